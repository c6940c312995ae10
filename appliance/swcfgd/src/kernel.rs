// SPDX-License-Identifier: Apache-2.0
//! The daemon with engine `kernel`: the console, beside a switchd that offloads what it makes.
//!
//! ```text
//!   swcfgd.sock ─► KernelEngine ─► br0, vlanN, swpN of the kernel ─► switchd ─► asicd
//!                      └── ports, explain ◄──────────────────────────┴───────────┘
//! ```

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use tandem_linux::sandbox::{Capability, Sandbox};
use tandem_mgmt::client::Client;
use tandem_mgmt::instance::{Daemon, Instance};
use tandem_mgmt::types::{Items, Port, Status};
use tandem_swconfig::{Config, Engine as _, Name, Platform};
use tandem_swconsole::{FileStore, Log, Logs, STARTUP, Store};
use tandem_swfrr::Frr;
use tandem_swkernel::{Board, KernelEngine, Netlink, PortState, States, Was};
use tandem_swstack::tree::Tree;
use tandem_swstack::{Beside, Probes};

use crate::args::Args;
use crate::bpdus::Bpdus;
use crate::names::Names;
use crate::services::Services;
use crate::{below, door, log};

/// How often a switchd that is not there is looked for.
const RETRY: Duration = Duration::from_millis(100);
/// In the instance's folder: what is carried out, as a configuration.
const CARRIED: &str = "carried-out";

/// switchd and asicd.
struct Asked {
    asicd: Client,
    switchd: Client,
}

impl tandem_swkernel::Below for Asked {
    fn ports(&self) -> Vec<PortState> {
        let state = |p: Port| {
            let c = p.counters.unwrap_or_default();
            PortState {
                port: p.port,
                speed: p.speed_mbps,
                counters: [c.rx_packets, c.rx_bytes, c.tx_packets, c.tx_bytes],
            }
        };
        below::ports(&self.asicd).into_iter().map(state).collect()
    }

    fn platform(&self, what: &Platform) -> Result<Vec<Vec<String>>, String> {
        below::platform(&self.asicd, &self.switchd, what)
    }
}

/// What is carried out, kept for who comes after a `kill -9`: so that can tell what others have changed since.
struct Carried {
    store: FileStore,
    path: PathBuf,
    ports: Vec<Name>,
}

impl Carried {
    fn new(instance: &Instance, ports: Vec<Name>) -> anyhow::Result<Carried> {
        let folder = instance.dir().join(CARRIED);
        Ok(Carried {
            path: folder.join(STARTUP),
            store: FileStore::new(&folder).with_context(|| format!("{}", folder.display()))?,
            ports,
        })
    }

    /// While a change is under way nobody knows what is carried out.
    fn write(&mut self, config: Option<&Config>) {
        let done = match config {
            Some(config) => {
                let text = tandem_swconsole::render::config(config, &self.ports);
                self.store.write(STARTUP, &text).map_err(|e| e.to_string())
            }
            None => match std::fs::remove_file(&self.path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e.to_string()),
                _ => Ok(()),
            },
        };
        if let Err(e) = done {
            tracing::warn!("{}: {e}", self.path.display());
        }
    }
}

/// Runs the daemon until SIGTERM, SIGINT or SIGHUP.
///
/// # Errors
/// One line.
pub fn run(args: &Args, logs: Arc<Logs>) -> anyhow::Result<()> {
    let instance = Instance::resolve(args.name.as_deref())?;
    instance.create_dir()?;
    let _pid = instance.claim(Daemon::Swcfgd)?;
    let folder = args.startup(&instance);
    let store = FileStore::new(&folder)
        .with_context(|| format!("configurations in {}", folder.display()))?;
    let names = Names::start();
    let login = door::bind_login(instance.dir())?;
    log::to_hosts(&logs, log::socket().context("a socket for syslog")?);
    // what a daemon that is locked in may not look at
    let frr = Frr::new(crate::frr::folder(args.frr.as_deref(), instance.name()));
    crate::frr::join();
    let beside = Beside::new(frr.clone(), Probes::open());
    let bpdus = Bpdus::open()?;
    lock_in(args, &instance, &folder)?;
    tandem_swkernel::does().map_err(|why| {
        anyhow::anyhow!("{why}: start the switch with --engine chip, which needs none")
    })?;
    let main = std::thread::current();
    let stop = tandem_mgmt::signals::on_end(move || main.unpark())?;
    let asked = Asked {
        asicd: Client::to(&instance, Daemon::Asicd),
        switchd: Client::to(&instance, Daemon::Switchd),
    };
    let Some(board) = wait_for_ports(&asked, &stop)? else {
        return Ok(());
    };
    let ports = board.ports.len();
    let states = States::open(board.clone()).map_err(anyhow::Error::msg)?;
    let tree = Arc::new(Tree::new(
        board.mac(),
        states.members(),
        Box::new(states.clone()),
        bpdus.bell(),
    ));
    let kernel = || {
        let tree = Some(Arc::clone(&tree));
        Netlink::open(board.clone(), beside.clone(), tree).map_err(anyhow::Error::msg)
    };
    let kernels: [Box<dyn tandem_swkernel::Kernel>; 2] = [Box::new(kernel()?), Box::new(kernel()?)];
    let mut carried = Carried::new(&instance, board.names())?;
    let before = match carried.store.read(STARTUP) {
        Ok(text) => text,
        Err(e) => {
            tracing::warn!("{}: {e}", carried.path.display());
            None
        }
    };
    let record = Box::new(move |config: Option<&Config>| carried.write(config));
    let mut engine = KernelEngine::new(board, kernels, Box::new(asked), record);
    let before = match before {
        Some(_) => {
            let kept = FileStore::new(instance.dir().join(CARRIED))?;
            let (config, bad) = tandem_swconsole::startup(&kept, &engine);
            // what can't be read is not known
            bad.is_empty().then_some(config)
        }
        None => None,
    };
    let was = before.as_ref().map_or(Was::Unknown, Was::Said);
    let mut was = Some(was);
    let config = below::begin(&store, &mut engine, |engine, config| {
        engine.restore(was.take().unwrap_or(Was::Unknown), config)
    })?;
    let switchd = Client::to(&instance, Daemon::Switchd);
    bpdus.start(tree, states, switchd, Arc::clone(&stop))?;
    crate::frr::look_after(frr, Arc::clone(&stop))?;
    let asicd = Client::to(&instance, Daemon::Asicd);
    let links = engine.links().into_iter().filter(|l| l.name.is_port());
    let devices = links.map(|l| (l.linux, l.name)).collect();
    log::look_at_links(Arc::clone(&logs), asicd, engine.ports(), Arc::clone(&stop))?;
    let mut console = tandem_swconsole::Switch::new(Arc::new(engine), Box::new(store));
    console.logs = logs;
    console.daemons = Arc::new(Services::new(instance.dir(), devices)?);
    console.log = Log::new(|who, line| tracing::info!(target: "console", "{who}: {line}"));
    console.begin(config);
    let console = Arc::new(Mutex::new(console));
    let path = instance.socket(Daemon::Swcfgd);
    door::open(&path, login, names, &console)?;
    crate::drift::watch(Arc::clone(&console), Arc::clone(&stop))?;
    tracing::info!("instance {}: engine kernel, {ports} ports", instance.name());
    tandem_mgmt::service::ready(&format!("engine kernel, {ports} ports"));
    while !stop.load(Relaxed) {
        std::thread::park();
    }
    tracing::info!("stopping");
    tandem_mgmt::service::stopping();
    Ok(())
}

/// Gives away what the daemon doesn't need; nothing else of it runs yet.
fn lock_in(args: &Args, instance: &Instance, startup: &Path) -> anyhow::Result<()> {
    let sandbox = Sandbox {
        capabilities: vec![Capability::CAP_NET_ADMIN],
        read: vec!["/proc".into()],
        write: vec![
            instance.dir().into(),
            startup.into(),
            "/proc/sys/net".into(),
        ],
        ip6: false,
    };
    Ok(sandbox.lock_in(!args.no_sandbox)?)
}

/// The front panel, once switchd has made its netdevs. `None`: told to stop meanwhile.
fn wait_for_ports(asked: &Asked, stop: &AtomicBool) -> anyhow::Result<Option<Board>> {
    let mut said = false;
    while !stop.load(Relaxed) {
        match look_for_ports(asked)? {
            Ok(board) => return Ok(Some(board)),
            Err(why) if !said => {
                tracing::warn!("{why}; waiting");
                said = true;
            }
            Err(_) => {}
        }
        std::thread::sleep(RETRY);
    }
    Ok(None)
}

/// The ports, or why there are none yet.
fn look_for_ports(asked: &Asked) -> anyhow::Result<Result<Board, String>> {
    let status: Status = match asked.switchd.get("/v1/status") {
        Ok(status) => status,
        Err(e) => return Ok(Err(e.to_string())),
    };
    if status.daemon != "switchd" {
        anyhow::bail!(
            "instance {} is driven by {}: engine kernel wants a switchd",
            status.instance,
            status.daemon
        );
    }
    if status.sync.is_none_or(|s| s.phase != "steady") {
        return Ok(Err("switchd is not ready".into()));
    }
    let (ports, chip) = match (
        asked.switchd.get::<Items<Port>>("/v1/ports"),
        asked.asicd.get::<Items<Port>>("/v1/ports"),
    ) {
        (Ok(ports), Ok(chip)) => (ports.items, chip.items),
        (Err(e), _) | (_, Err(e)) => return Ok(Err(e.to_string())),
    };
    match board(&ports, &chip) {
        board if board.ports.is_empty() => Ok(Err("switchd has no ports".into())),
        board => Ok(Ok(board)),
    }
}

fn board(ports: &[Port], chip: &[Port]) -> Board {
    let port = |p: &Port| {
        // one that is away or gone comes back by its own name
        let netdev = Some(&p.netdev).filter(|n| !n.is_empty());
        let most = chip.iter().find(|c| c.port == p.port);
        (
            p.port,
            netdev.unwrap_or(&p.name).clone(),
            mac(&p.mac).unwrap_or_default(),
            most.map_or(0, |c| c.max_speed_mbps),
        )
    };
    Board {
        ports: ports.iter().map(port).collect(),
    }
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let octets = text.split(':').map(|o| u8::from_str_radix(o, 16).ok());
    octets.collect::<Option<Vec<u8>>>()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_panel_is_switchds_netdevs_with_the_chips_speeds() {
        let port = |port, netdev: &str| Port {
            port,
            name: format!("swp{port}"),
            netdev: netdev.into(),
            mac: "02:00:00:00:00:0a".into(),
            ..Port::default()
        };
        let chip = Port {
            port: 1,
            max_speed_mbps: 100_000,
            ..Port::default()
        };
        let board = board(&[port(1, "renamed"), port(2, "")], &[chip]);
        let mac = [2, 0, 0, 0, 0, 10];
        assert_eq!(
            board.ports,
            [
                (1, "renamed".into(), mac, 100_000),
                (2, "swp2".into(), mac, 0)
            ]
        );
    }
}
