// SPDX-License-Identifier: Apache-2.0
//! Starting and stopping: files, sockets, threads, signals.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use crossbeam_channel::bounded;
use tandem_linux::clock;
use tandem_linux::eventfd::EventFd;
use tandem_linux::netns;
use tandem_linux::sandbox::{Capability, Sandbox};
use tandem_mgmt::instance::{Daemon, Instance};
use tandem_ofagent::{Agent, Settings};
use tandem_openflow::Version;
use tandem_openflow::model::Desc;
use tandem_ports::{PortKind, self_test};

use crate::args::{Args, Fail};
use crate::keeper::{self, Keeper, UPDATES};
use crate::links::Links;
use crate::poller::Poller;
use crate::switch::{Jobs, Plant};
use crate::target::Target;

/// Requests of the management API that may wait.
const JOBS: usize = 64;

/// Runs the daemon until SIGTERM, SIGINT or SIGHUP.
pub fn run(args: &Args) -> anyhow::Result<()> {
    args.check().map_err(|e| anyhow!(e))?;
    let instance = Instance::resolve(args.name.as_deref())?;
    instance.create_dir()?;
    let _pid = instance.claim(Daemon::Ofagentd)?;
    let by_xdp = |kind: &PortKind| matches!(kind, PortKind::Packet { xdp: true, .. });
    if args.ports.iter().any(|p| by_xdp(&p.spec.kind)) {
        // it makes a namespace and reads the kernel's types, which nothing does later; each port says what came of it
        let _ = self_test::passed();
    }
    let poller = Poller::new()?;
    // hosts' addresses are looked up and sockets made where files can still be read
    let links = Links::open(&args.controllers, &args.tls, &poller)?;
    lock_in(args, &instance)?;
    let bell = Arc::new(EventFd::new()?);
    let now = clock::now_ns();
    let mut cables = Vec::new();
    let mut opened = Vec::new();
    for port in args.all_ports() {
        let (kept, mac, halves) = keeper::open(port.clone())?;
        cables.push(kept);
        opened.push((port, mac, halves));
    }
    let first = opened.first().map(|(_, mac, _)| *mac);
    let settings = settings(args, &instance, first);
    let datapath = settings.datapath;
    let mut plant = Plant::new(Agent::new(settings, now), links, poller);
    for (port, mac, halves) in opened {
        plant.add_port(port, mac, *halves, now);
    }
    let (update_to, updates) = bounded(UPDATES);
    let (keeper, orders) = Keeper::start(cables, update_to, Arc::clone(&bell))?;
    let (job_to, jobs) = bounded(JOBS);
    let handle = Jobs::new(job_to, Arc::clone(&bell));
    let server = tandem_mgmt::server::serve(
        &instance.socket(Daemon::Ofagentd),
        crate::api::router(handle, orders, instance.name().to_owned()),
    )?;
    let stop = Arc::new(AtomicBool::new(false));
    {
        let (stop, bell) = (Arc::clone(&stop), Arc::clone(&bell));
        tandem_mgmt::signals::on_end(move || {
            stop.store(true, Ordering::Relaxed);
            bell.ring();
        })?;
    }
    let ready = format!(
        "datapath {datapath:016x}, {} ports, {} controllers",
        args.ports.len(),
        args.controllers.len()
    );
    tracing::info!("instance {} ready: {ready}", instance.name());
    tandem_mgmt::service::ready(&ready);
    let done = plant.run(&bell, &updates, &jobs, &stop);
    tracing::info!("stopping");
    tandem_mgmt::service::stopping();
    // the API first: its requests need the switch's thread no more
    drop(jobs);
    server.stop();
    drop(updates);
    drop(keeper);
    plant.links.close();
    done
}

fn settings(args: &Args, instance: &Instance, first: Option<[u8; 6]>) -> Settings {
    let versions = args.versions.iter().map(|v| match v.as_str() {
        "1.0" => Version::V10,
        _ => Version::V13,
    });
    let datapath = args
        .datapath_id
        .unwrap_or_else(|| datapath_id(instance.name(), first));
    Settings {
        datapath,
        versions: versions.collect(),
        tables: args.tables,
        max_flows: args.max_flows,
        fail: match args.fail {
            Fail::Secure => tandem_ofagent::Fail::Secure,
            Fail::Standalone => tandem_ofagent::Fail::Standalone,
        },
        desc: Desc {
            manufacturer: "Tandem".into(),
            hardware: "software switch".into(),
            software: format!("ofagentd {}", env!("CARGO_PKG_VERSION")),
            serial: "none".into(),
            datapath: instance.name().into(),
        },
        queues: args.queues,
        local: args.local.is_some(),
        packet_ins: args.packet_in_rate,
        probe_ns: args.probe * 1_000_000_000,
        secret: secret(),
    }
}

/// A seed for the tables' hashes that nobody knows.
fn secret() -> u64 {
    let mut bytes = [0; 8];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => u64::from_ne_bytes(bytes),
        _ => clock::now_ns(),
    }
}

/// The first port's address (§7.3.1: the lower 48 bits are for one); without ports of the instance's name.
fn datapath_id(name: &str, first: Option<[u8; 6]>) -> u64 {
    let bytes = first.unwrap_or_else(|| {
        // FNV-1a: any stable hash does
        let h = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        let [_, _, _, a, b, c, d, e] = h.to_be_bytes();
        [2, a, b, c, d, e]
    });
    bytes.iter().fold(0, |all, b| all << 8 | u64::from(*b))
}

/// Gives away what the daemon doesn't need; nothing else of it runs yet.
fn lock_in(args: &Args, instance: &Instance) -> anyhow::Result<()> {
    if args.no_sandbox {
        tracing::warn!("--no-sandbox: running with all privileges");
        return Ok(());
    }
    let mut sandbox = Sandbox {
        capabilities: vec![
            Capability::CAP_NET_ADMIN,
            Capability::CAP_NET_RAW,
            Capability::CAP_BPF,
        ],
        read: vec!["/proc".into(), netns::NETNS_DIR.into()],
        // a TAP may be added later
        write: vec![instance.dir().into(), "/dev/net/tun".into()],
        ip6: true,
    };
    for port in args.all_ports() {
        match &port.spec.kind {
            PortKind::Packet { netns: ns, xdp, .. } => {
                if let Some(ns) = ns {
                    // setns(2)
                    sandbox.capabilities.push(Capability::CAP_SYS_ADMIN);
                    sandbox.read.push(netns::path_of(ns));
                }
                if *xdp {
                    // a program that reads the kernel's structures, a memory that is locked
                    sandbox.capabilities.push(Capability::CAP_PERFMON);
                    sandbox.capabilities.push(Capability::CAP_IPC_LOCK);
                }
            }
            PortKind::Tap { netns: ns, .. } => {
                sandbox.capabilities.push(Capability::CAP_SYS_ADMIN);
                sandbox.read.extend(ns.iter().map(|ns| netns::path_of(ns)));
            }
            PortKind::Dgram { local, .. } => sandbox.write.push(folder_of(local)),
            PortKind::Pcap { input, output, .. } => {
                sandbox.read.push(input.clone());
                sandbox.write.push(folder_of(output));
            }
        }
    }
    for target in &args.controllers {
        match target {
            // its file is taken away at the end
            Target::Punix(path) => sandbox.write.push(folder_of(path)),
            Target::Unix(path) => sandbox.read.push(folder_of(path)),
            Target::Tcp { .. } | Target::Ptcp { .. } => {}
        }
    }
    if !sandbox.enter()?.paths {
        tracing::warn!("this kernel has no Landlock: paths are not limited");
    }
    Ok(())
}

/// Where a file is to be made.
fn folder_of(path: &Path) -> PathBuf {
    path.parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
        .to_path_buf()
}
