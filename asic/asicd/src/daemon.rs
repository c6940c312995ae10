//! Starting and stopping: files, sockets, threads, signals.

use std::path::Path;
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
use tandem_mgmt::instance::{Daemon, Instance};
use tandem_ports::{Change, Kept, rights, self_test};

use crate::api::fault;
use crate::args::{Args, Carrier};
use crate::asic::{Asic, Wait};
use crate::deadline::Deadline;
use crate::keeper::{self, UPDATES, Update};
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
    self_test::ahead(args.ports.iter().map(|p| &p.kind));
    let mut sandbox = rights(args.ports.iter().map(|p| &p.kind));
    sandbox.write.push(instance.dir().into());
    sandbox.lock_in(!args.no_sandbox)?;
    let epoch_ns = clock::epoch_ns();
    let bell = Arc::new(EventFd::new()?);
    let spec = LayoutSpec {
        platform: platform::blob(&profile, base_mac(&instance)),
        device_name: profile.name.clone(),
        features: LayoutSpec::default().features | profile.features(),
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
    asic.deadline = Deadline::new(args.flow_deadline.0, clock::now_ns());
    let cables = plug(&mut asic, args, epoch_ns)?;
    if let Some(path) = &args.faults {
        for (n, fault) in (1..).zip(faults) {
            let done = fault::apply(&mut asic, fault)
                .map_err(|e| anyhow!("{}: fault {n}: {e}", path.display()))?;
            tracing::warn!("fault plan: {done}");
        }
    }
    let (update_to, updates) = bounded(UPDATES);
    let keeper = keeper::start(cables, update_to, Arc::clone(&bell))?;
    let (job_to, jobs) = bounded(JOBS);
    let handle = Jobs::new(job_to, Arc::clone(&bell));
    let server = tandem_mgmt::server::serve(
        &instance.socket(Daemon::Asicd),
        crate::api::router(handle, instance.name().to_owned()),
    )?;
    let wake = Arc::clone(&bell);
    let stop = tandem_mgmt::signals::on_end(move || wake.ring())?;
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
        if !worked && matches!(wait, Wait::Look { .. }) && spin.yields(now) {
            std::thread::yield_now();
        }
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
    let [_, _, _, _, a, b, c, d] = instance.hash().to_be_bytes();
    // The last byte counts ports
    Some([0x02, a, b, c, d, 0])
}

fn plug(asic: &mut Asic, args: &Args, epoch_ns: u64) -> anyhow::Result<Vec<Kept>> {
    let mut cables = Vec::new();
    for spec in &args.ports {
        if let Some(slot) = asic.ports.get_mut(usize::from(spec.number) - 1) {
            slot.kind = Some(spec.kind.clone());
        }
        let (cable, opened) = Kept::open(spec.clone(), spec.name(), epoch_ns)?;
        asic.update(Update {
            port: spec.number,
            change: Change::Opened(opened),
        });
        cables.push(cable);
    }
    Ok(cables)
}
