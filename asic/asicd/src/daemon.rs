//! Starting and stopping: files, sockets, threads, signals.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use crossbeam_channel::{Receiver, bounded};
use tandem_abi::LayoutSpec;
use tandem_carrier::DeviceSide;
use tandem_firmware::{Profile, platform};
use tandem_linux::clock;
use tandem_linux::eventfd::EventFd;
use tandem_linux::netns;
use tandem_linux::sandbox::{Capability, Sandbox};
use tandem_mgmt::instance::{Daemon, Instance};
use tandem_ports::{Cable, Change, PortKind, PortSpec, self_test};

use crate::api::fault;
use crate::args::{Args, Carrier};
use crate::asic::{Asic, Wait};
use crate::keeper::{Keeper, UPDATES, Update};
use crate::poller::Poller;
use crate::spin::Spin;

/// Requests of the management API that may wait.
pub const JOBS: usize = 64;
/// Requests answered in one turn.
const JOBS_PER_TURN: usize = 4;
/// The thread looks on for so long after the last work before it sleeps (longer while frames come one after the other:
/// [`Spin`]): a driver that posts one command after the other needs no wake-up for each.
const SPIN_NS: u64 = 20_000;
/// A kernel in a VM posts one command per route, about this far apart, and waits in a busy loop: a
/// wake-up in between would be most of what it waits for.
const SPIN_VM_NS: u64 = 150_000;
const SLEEP_NS: u64 = 1_000_000_000;
/// An ivshmem server that doesn't answer for so long is none.
const JOIN: Duration = Duration::from_secs(5);

/// Something to do between two bursts.
pub type Job = tandem_mgmt::server::Job<Asic>;
/// The way for other threads to have it done by the packet thread.
pub type Jobs = tandem_linux::jobs::Jobs<Job>;

/// Runs the daemon until SIGTERM, SIGINT or SIGHUP.
pub fn run(args: &Args) -> anyhow::Result<()> {
    args.check().map_err(|e| anyhow!(e))?;
    let instance = Instance::resolve(args.name.as_deref())?;
    instance.create_dir()?;
    let _pid = instance.claim(Daemon::Asicd)?;
    let profile = load_profile(&args.profile)?;
    let count = profile.port_count();
    if let Some(port) = args.ports.iter().find(|p| p.number > count) {
        bail!(
            "{}: chip {} has ports swp1 to swp{count}",
            port.name(),
            profile.name
        );
    }
    let faults = load_faults(args.faults.as_deref())?;
    let by_xdp = |p: &PortSpec| matches!(p.kind, PortKind::Packet { xdp: true, .. });
    if args.ports.iter().any(by_xdp) {
        // It makes a namespace and reads the kernel's types, which nothing does later; each port says what came of it
        let _ = self_test::passed();
    }
    lock_in(args, &instance)?;
    let epoch_ns = clock::epoch_ns();
    let bell = Arc::new(EventFd::new()?);
    let spec = LayoutSpec {
        platform: platform::blob(&profile, base_mac(&instance)),
        device_name: profile.name.clone(),
        ..LayoutSpec::default()
    };
    let side = match &args.carrier {
        Carrier::Socket => DeviceSide::listen(&instance.driver_socket(), spec)?,
        Carrier::Ivshmem(path) => DeviceSide::join(path, spec, JOIN)?,
    };
    let poller = Poller::new(bell.as_ref())?;
    let mut asic =
        Asic::new(profile, args.latency, side, poller, epoch_ns).map_err(|e| anyhow!(e))?;
    if let Some(mac) = base_mac(&instance) {
        asic.fw.set_base_mac(mac);
    }
    let cables = plug(&mut asic, args, epoch_ns)?;
    if let Some(path) = &args.faults {
        for (n, fault) in (1..).zip(faults) {
            let done = fault::apply(&mut asic, fault)
                .map_err(|e| anyhow!("{}: fault {n}: {e}", path.display()))?;
            tracing::warn!("fault plan: {done}");
        }
    }
    let (update_to, updates) = bounded(UPDATES);
    let keeper = Keeper::start(cables, update_to, Arc::clone(&bell))?;
    let (job_to, jobs) = bounded(JOBS);
    let handle = Jobs::new(job_to, Arc::clone(&bell));
    let server = tandem_mgmt::server::serve(
        &instance.socket(Daemon::Asicd),
        crate::api::router(handle, instance.name().to_owned()),
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
        "chip {}, {} of {count} ports cabled",
        args.profile,
        args.ports.len()
    );
    tracing::info!("instance {} ready: {ready}", instance.name());
    tandem_mgmt::service::ready(&ready);
    let spin_ns = match &args.carrier {
        Carrier::Socket => SPIN_NS,
        Carrier::Ivshmem(_) => SPIN_VM_NS,
    };
    serve(&mut asic, &bell, &updates, &jobs, &stop, spin_ns);
    tracing::info!("stopping");
    tandem_mgmt::service::stopping();
    // The API first: its requests need the packet thread no more
    drop(jobs);
    server.stop();
    drop(updates);
    drop(keeper);
    Ok(())
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
        write: vec![instance.dir().into()],
        ip6: false,
    };
    for port in &args.ports {
        match &port.kind {
            PortKind::Packet { netns: ns, xdp, .. } => {
                if let Some(ns) = ns {
                    // setns(2)
                    sandbox.capabilities.push(Capability::CAP_SYS_ADMIN);
                    sandbox.read.push(netns::path_of(ns));
                }
                if *xdp {
                    // A program that reads the kernel's structures, a memory that is locked
                    sandbox.capabilities.push(Capability::CAP_PERFMON);
                    sandbox.capabilities.push(Capability::CAP_IPC_LOCK);
                }
            }
            PortKind::Tap { netns: ns, .. } => {
                // it may be moved to another namespace, and is watched there
                sandbox.capabilities.push(Capability::CAP_SYS_ADMIN);
                sandbox.write.push("/dev/net/tun".into());
                sandbox.read.extend(ns.iter().map(|ns| netns::path_of(ns)));
            }
            PortKind::Dgram { local, .. } => sandbox.write.push(folder_of(local)),
            PortKind::Pcap { input, output, .. } => {
                sandbox.read.push(input.clone());
                sandbox.write.push(folder_of(output));
            }
        }
    }
    let entered = sandbox.enter()?;
    if !entered.paths {
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

/// The packet thread's loop.
fn serve(
    asic: &mut Asic,
    bell: &EventFd,
    updates: &Receiver<Update>,
    jobs: &Receiver<Job>,
    stop: &AtomicBool,
    spin_ns: u64,
) {
    let mut now = clock::now_ns();
    let mut spin = Spin::new(spin_ns, now);
    while !stop.load(Ordering::Relaxed) {
        let mut worked = asic.turn(now);
        for update in updates.try_iter().take(UPDATES) {
            asic.update(update);
            worked = true;
        }
        for job in jobs.try_iter().take(JOBS_PER_TURN) {
            job(asic);
            worked = true;
        }
        now = clock::now_ns();
        spin.turned(now, worked, asic.stats.frames);
        let wait = match spin.looks_on(now) {
            true => Wait::Look {
                busy: spin.busy(now),
            },
            false => Wait::Sleep {
                until_ns: now + SLEEP_NS,
            },
        };
        asic.wait(now, wait, &mut || {
            bell.drain();
        });
        now = clock::now_ns();
    }
}

fn load_faults(path: Option<&Path>) -> anyhow::Result<Vec<fault::Request>> {
    let Some(path) = path else {
        return Ok(Vec::new());
    };
    let text =
        std::fs::read_to_string(path).with_context(|| format!("fault plan {}", path.display()))?;
    fault::plan(&text).map_err(|e| anyhow!("{}: {e}", path.display()))
}

fn load_profile(name: &str) -> anyhow::Result<Profile> {
    if name.contains('/') || name.ends_with(".toml") {
        let text = std::fs::read_to_string(name).with_context(|| format!("profile {name}"))?;
        return Ok(Profile::parse(&text, name)?);
    }
    Ok(Profile::builtin(name)?)
}

/// Several switches on one machine must not share addresses: all but the default instance get a
/// locally administered base MAC of their own, the same at every start.
fn base_mac(instance: &Instance) -> Option<[u8; 6]> {
    if instance.name() == "default" {
        return None;
    }
    // FNV-1a: any stable hash does
    let h = instance
        .name()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
    let [_, _, _, _, a, b, c, d] = h.to_be_bytes();
    // The last byte counts ports
    Some([0x02, a, b, c, d, 0])
}

fn plug(asic: &mut Asic, args: &Args, epoch_ns: u64) -> anyhow::Result<Vec<Cable>> {
    let mut cables = Vec::new();
    for spec in &args.ports {
        let mut cable = Cable::new(spec.clone(), epoch_ns);
        if let Some(slot) = asic.ports.get_mut(usize::from(spec.number) - 1) {
            slot.kind = Some(spec.kind.clone());
        }
        match cable.check()? {
            Some(Change::Opened(opened)) => {
                if let Some(note) = &opened.note {
                    tracing::warn!("{}={}: {note}", spec.name(), spec.kind);
                }
                asic.update(Update {
                    port: spec.number,
                    change: Change::Opened(opened),
                });
            }
            _ => bail!("{} can't be opened", spec.name()),
        }
        cables.push(cable);
    }
    Ok(cables)
}
