// SPDX-License-Identifier: Apache-2.0
//! Starting and stopping: files, sockets, threads, signals.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use crossbeam_channel::bounded;
use tandem_carrier::CarrierError;
use tandem_core::plant::Front;
use tandem_core::source::Source;
use tandem_core::view::SharedView;
use tandem_core::{Core, Jobs, Seat, Sources, api, attach, storm};
use tandem_linux::clock;
use tandem_linux::eventfd::EventFd;
use tandem_linux::sandbox::{Capability, Sandbox};
use tandem_mgmt::client::Client;
use tandem_mgmt::instance::{Daemon, Instance};
use tandem_netlink::{Config as NetlinkConfig, NetlinkSource};
use tandem_sal::{Attach, Platform, Sal, SalError, Splits};
use tandem_store::Policy;
use tandem_store::model::SourceId;
use tandem_swchip::{Board, ChipEngine, Devices, Kernel, Taps};
use tandem_swconfig::Engine as _;
use tandem_swconsole::{FileStore, Log, Logs};
use tandem_swfrr::Frr;
use tandem_swstack::{Beside, Probes};
use tandem_vlans::{Database, Switch};

use crate::args::Args;
use crate::chip::Asked;
use crate::names::Names;
use crate::packets;
use crate::plant::{CARRIER_TIMEOUT, Cell, MARK, Watch, Wired};
use crate::services::Services;
use crate::{below, door, log};

/// Requests of the management API that may wait.
const JOBS: usize = 64;
/// Events of the packet thread that may wait.
const IO_EVENTS: usize = 8192;
/// Commands to the packet thread that may wait.
const COMMANDS: usize = 64;
/// How often a device that is not there is looked for.
const RETRY: Duration = Duration::from_millis(100);
/// The database, among the core's sources.
const VLANS: SourceId = SourceId(2);

/// Runs the daemon until SIGTERM, SIGINT or SIGHUP.
///
/// # Errors
/// One line.
pub fn run(args: &Args, logs: Arc<Logs>) -> anyhow::Result<()> {
    let instance = Instance::resolve(args.name.as_deref())?;
    instance.create_dir()?;
    // it stands where switchd does: an asicd has one of them
    let _pid = instance.claim(Daemon::Switchd)?;
    let folder = args.startup(&instance);
    let store = FileStore::new(&folder)
        .with_context(|| format!("configurations in {}", folder.display()))?;
    raise_descriptors();
    let names = Names::start();
    let login = door::bind_login(instance.dir())?;
    // what a daemon that is locked in may not look at
    let frr = Frr::new(crate::frr::folder(args.frr.as_deref(), instance.name()));
    crate::frr::join();
    let probes = Probes::open();
    log::to_hosts(&logs, log::socket().context("a socket for syslog")?);
    lock_in(args, &instance, &folder)?;
    let wake = Arc::new(EventFd::new().context("eventfd")?);
    let bell = Arc::clone(&wake);
    let stop = tandem_mgmt::signals::on_end(move || bell.ring())?;
    let Some(mut sal) = wait_for_device(&instance, &stop)? else {
        return Ok(());
    };
    let platform = sal.platform().clone();
    let (warm, kept) = take_over(&mut sal)?;
    let watch = Watch::of(&sal)?;
    let cell = Cell::default();
    *cell.lock() = Some(sal);

    let board = board(&platform, &instance);
    let switch = Switch::new(board.database());
    let io_wake = Arc::new(EventFd::new()?);
    let keeper = Arc::new(cell.clone());
    let taps = Arc::new(Taps::new(board.mac, Arc::clone(&io_wake), keeper));
    let kernel = Kernel::open(Arc::clone(&taps)).map_err(anyhow::Error::msg)?;
    let kernel = kernel.with(Beside::new(frr.clone(), probes));
    let mut engine = ChipEngine::new(board, switch.clone(), Box::new(kernel), Arc::clone(&taps));
    // before the core hears anything: what it then finds in the chip is what it wants there
    let mut kept = Some(kept);
    let config = below::begin(&store, &mut engine, |engine, config| {
        engine.restore(kept.take().unwrap_or_default(), config)
    })?;

    let view = SharedView::default();
    let front = front(&platform);
    for port in &front {
        view.lock().add_port(port.port, port.ifindex);
    }
    view.lock()
        .set_front(u16::try_from(front.len()).unwrap_or(u16::MAX));
    let (how, store_how) = match warm {
        true => (Attach::Warm, tandem_store::Attach::Warm),
        false => (Attach::Cold, tandem_store::Attach::Cold),
    };
    let (mut control, sal_io) = match &mut *cell.lock() {
        Some(sal) => {
            let halves = sal.attach(how)?;
            if !warm {
                // the tables are empty: from here on they are ours
                sal.keep(MARK, EventFd::new()?.as_fd())?;
            }
            halves
        }
        None => anyhow::bail!("asicd is gone"),
    };
    let warnings = platform.warnings.clone();
    for w in &warnings {
        tracing::warn!("{w}");
    }
    let storms = storm::left(&mut control)?;
    let read = attach::read(&mut control, how, Policy::Trap, front.len(), &view)?;

    let text = |e: tandem_core::source::SourceError| anyhow::anyhow!("{e}");
    let netlink: Arc<dyn Source + Sync> = Arc::new(
        NetlinkSource::start(NetlinkConfig {
            bell: Some(Arc::clone(&wake)),
            ..NetlinkConfig::default()
        })
        .map_err(|e| anyhow::anyhow!("{e}"))?,
    );
    let (vlans, teller) = switch.source(VLANS, Some(Arc::clone(&wake)));
    let seat = |source, ports| Seat {
        source,
        ports,
        hold_ns: u64::MAX,
    };
    let sources = Sources::new(vec![
        seat(netlink, Vec::new()),
        seat(Arc::new(vlans), front.iter().map(|p| p.port).collect()),
    ])
    .map_err(text)?;
    let (io_to, io_commands) = bounded(COMMANDS);
    let (events_to, io_events) = bounded(IO_EVENTS);
    let io_stats = Arc::<tandem_core::io::IoStats>::default();
    let signals = Arc::<tandem_core::io::Signals>::default();
    let parts = packets::Parts {
        switch: switch.clone(),
        taps: Arc::clone(&taps),
        tree: engine.tree(),
        devices: engine.devices(),
        snoop: engine.snoop(),
        ports: front.len(),
        writer: sources.writer(view.clone()).map_err(text)?,
        view: view.clone(),
        commands: io_commands,
        wake: Arc::clone(&io_wake),
        events: events_to,
        core_wake: Arc::clone(&wake),
        stats: Arc::clone(&io_stats),
        signals: Arc::clone(&signals),
        stop: Arc::clone(&stop),
    };
    let first = tandem_core::io::FIRST_ATTACH;
    io_to.send(tandem_core::io::Command::Attach(Box::new(sal_io), first))?;
    let io_thread = thread("packets", &stop, &wake, move || packets::run(parts))?;
    let ends = Arc::clone(&stop);
    let teller = thread("teller", &stop, &wake, move || {
        teller.run(|| ends.load(Relaxed));
        Ok(())
    })?;
    crate::frr::look_after(frr, Arc::clone(&stop))?;
    let (job_to, jobs) = bounded(JOBS);
    let chip = platform.chip.clone();
    let ports = front.len();
    let plant = Wired {
        socket: instance.driver_socket(),
        name: driver_name(&instance),
        platform,
        front,
        taps,
        cell,
        watch: Some(watch),
        begun: None,
    };
    let mut core = Core::new(
        Box::new(plant),
        tandem_core::Parts {
            now: clock::now_ns(),
            control: Box::new(control),
            left: read.left,
            found_fdb: read.found_fdb,
            storms,
            attach: store_how,
            config: read.config,
            warnings,
            sources,
            view,
            io: io_to,
            io_wake: Arc::clone(&io_wake),
            io_stats,
            signals,
            io_events,
            jobs,
            wake: Arc::clone(&wake),
            relearn: false,
        },
    )?;
    let jobs = Jobs::new(job_to, wake);
    let tree = engine.tree();
    tree.set_ask(crate::chip::ask_of(jobs.clone(), Arc::clone(&tree)));
    let server = tandem_mgmt::server::serve(
        &instance.socket(Daemon::Switchd),
        api::router(jobs.clone(), instance.name().to_owned()),
    )?;
    engine.set_chip(Box::new(Asked {
        jobs,
        asicd: Client::to(&instance, Daemon::Asicd),
        core: Client::to(&instance, Daemon::Switchd),
    }));
    let asicd = Client::to(&instance, Daemon::Asicd);
    let device = |n: tandem_swconfig::Name| (Devices::name(n.number), n);
    let devices = engine.ports().into_iter().map(device).collect();
    log::look_at_links(Arc::clone(&logs), asicd, engine.ports(), Arc::clone(&stop))?;
    let mut console = tandem_swconsole::Switch::new(Arc::new(engine), Box::new(store));
    console.logs = logs;
    console.daemons = Arc::new(Services::new(instance.dir(), devices)?);
    console.log = Log::new(|who, line| tracing::info!(target: "console", "{who}: {line}"));
    console.begin(config);
    let console = Arc::new(Mutex::new(console));
    let path = instance.socket(Daemon::Swcfgd);
    door::open(&path, login, names, &console)?;
    tracing::info!(
        "instance {}: chip {chip}, {ports} ports, attached {}",
        instance.name(),
        if warm { "warm" } else { "cold" }
    );
    tandem_mgmt::service::ready(&format!("chip {chip}, {ports} ports"));
    while !stop.load(Relaxed) {
        let now = clock::now_ns();
        if !core.turn(now) {
            core.sleep(now);
        }
    }
    core.detach();
    tracing::info!("stopping");
    tandem_mgmt::service::stopping();
    stop.store(true, Relaxed);
    io_wake.ring();
    // requests that still wait for the core get an answer: it is gone
    drop(core);
    server.stop();
    for (name, thread) in [("packet", io_thread), ("teller", teller)] {
        if thread.join().is_err() {
            tracing::error!("the {name} thread died");
        }
    }
    Ok(())
}

/// A thread without which the daemon ends.
fn thread(
    name: &'static str,
    stop: &Arc<AtomicBool>,
    wake: &Arc<EventFd>,
    body: impl FnOnce() -> anyhow::Result<()> + Send + 'static,
) -> anyhow::Result<std::thread::JoinHandle<()>> {
    let (stop, wake) = (Arc::clone(stop), Arc::clone(wake));
    let thread = std::thread::Builder::new().name(name.into());
    Ok(thread.spawn(move || {
        if let Err(e) = body() {
            tracing::error!("{name}: {e}");
        }
        stop.store(true, Relaxed);
        wake.ring();
    })?)
}

/// Each VLAN interface has a descriptor, and so has each session: as many as may be, where a shell gives 1,024.
fn raise_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let may = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: may.maximum,
        ..may
    };
    if let Err(e) = setrlimit(Resource::Nofile, all) {
        tracing::warn!("{e}: at most {:?} descriptors", may.current);
    }
}

/// Gives away what the daemon doesn't need; nothing else of it runs yet.
fn lock_in(args: &Args, instance: &Instance, startup: &Path) -> anyhow::Result<()> {
    let sandbox = Sandbox {
        capabilities: vec![Capability::CAP_NET_ADMIN],
        read: vec!["/proc".into()],
        write: vec![
            instance.dir().into(),
            startup.into(),
            "/dev/net/tun".into(),
            "/proc/sys/net".into(),
        ],
        ip6: false,
    };
    Ok(sandbox.lock_in(!args.no_sandbox)?)
}

fn driver_name(instance: &Instance) -> String {
    format!("swcfgd {}", instance.name())
        .chars()
        .take(31)
        .collect()
}

/// The front panel, as the core knows it: the database's devices.
fn front(platform: &Platform) -> Vec<Front> {
    let one = |p: &tandem_sal::PlatformPort| Front {
        port: p.port,
        name: p.name.clone(),
        ifindex: Database::device(p.port),
    };
    platform.ports.iter().map(one).collect()
}

/// Its MAC is the board's, or else one that the instance's name gives: the same at each start.
fn board(platform: &Platform, instance: &Instance) -> Board {
    let [a, b, c, d, e, ..] = instance.hash().to_be_bytes();
    let mac = platform.mac_base.unwrap_or([2, a, b, c, d, e]);
    let port = |p: &tandem_sal::PlatformPort| {
        let own = p.mac.unwrap_or(mac);
        (p.port, p.name.clone(), own, p.max_speed_mbps)
    };
    Board {
        mac,
        ports: platform.ports.iter().map(port).collect(),
    }
}

/// What asicd keeps: whether its tables are ours, and TAPs of VLANs. What others have left there goes.
fn take_over(sal: &mut Sal) -> anyhow::Result<(bool, Vec<(u16, OwnedFd)>)> {
    let names = sal.kept()?;
    // a switchd that was here since has written the tables anew, and left the mark
    let others = names.iter().any(|n| n.starts_with("tap/"));
    let warm = !others && names.iter().any(|n| n == MARK);
    let mut kept = Vec::new();
    for name in &names {
        match Taps::vlan_of(name) {
            Some(vid) => kept.extend(sal.get(name)?.map(|fd| (vid, fd))),
            None if name == MARK => {}
            None => {
                sal.forget(name)?;
            }
        }
    }
    if !warm {
        // none while the tables are another's
        sal.forget(MARK)?;
    }
    Ok((warm, kept))
}

/// Connects; waits for an asicd that is not there yet. `None`: told to stop meanwhile.
fn wait_for_device(instance: &Instance, stop: &AtomicBool) -> anyhow::Result<Option<Sal>> {
    let (mut said, mut busy) = (false, 0);
    let (socket, name) = (instance.driver_socket(), driver_name(instance));
    while !stop.load(Relaxed) {
        let e = match Sal::connect(&socket, &name, &Splits::new(), CARRIER_TIMEOUT) {
            Ok(sal) => return Ok(Some(sal)),
            Err(e) => e,
        };
        match &e {
            SalError::Carrier(CarrierError::NoAsic(_) | CarrierError::Gone) => {}
            // a driver that was just killed is still being noticed
            SalError::Carrier(CarrierError::Refused(_)) if busy < 20 => busy += 1,
            _ => return Err(e.into()),
        }
        if !said {
            tracing::warn!("{e}; waiting");
            said = true;
        }
        std::thread::sleep(RETRY);
    }
    Ok(None)
}
