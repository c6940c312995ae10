//! Starting and stopping: files, sockets, threads, signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use crossbeam_channel::bounded;
use tandem_core::source::{Heard, Source};
use tandem_core::view::SharedView;
use tandem_core::{Core, Jobs, Seat, Sources, api, attach, storm};
use tandem_linux::clock;
use tandem_linux::eventfd::EventFd;
use tandem_linux::netlink::tc::{QdiscWatch, Tc};
use tandem_linux::sandbox::{Capability, Sandbox};
use tandem_mgmt::instance::{Daemon, Instance};
use tandem_netlink::{Config as NetlinkConfig, NetlinkSource};
use tandem_sal::{Attach, Sal, Splits};

use crate::args::{Policy, Settings};
use crate::forward_mark::{ForwardMark, Hook};
use crate::io;
use crate::takeover;
use crate::wired::{self, Wired};

/// Requests of the management API that may wait.
const JOBS: usize = 64;
/// Events of the io thread that may wait.
const IO_EVENTS: usize = 8192;
/// Commands to the io thread that may wait.
const COMMANDS: usize = 64;
/// How often a device that is not there is looked for.
const RETRY: Duration = Duration::from_millis(100);

/// Runs the daemon until SIGTERM, SIGINT or SIGHUP.
pub fn run(name: Option<&str>, settings: &Settings) -> anyhow::Result<()> {
    let instance = Instance::resolve(name)?;
    instance.create_dir()?;
    let _pid = instance.claim(Daemon::Switchd)?;
    // before anything is given away: nothing is loaded later, and attaching needs no more than traffic control does
    let mut mark = ForwardMark::load(settings.forward_mark.unwrap_or_else(Hook::best))
        .context("the forward mark needs CAP_BPF and CAP_NET_ADMIN (root) and a kernel with BPF")?;
    lock_in(settings, &instance)?;
    let wake = Arc::new(EventFd::new().context("eventfd")?);
    let bell = Arc::clone(&wake);
    let stop = tandem_mgmt::signals::on_end(move || bell.ring())?;

    let Some(mut sal) = wait_for_device(&instance, &settings.splits, &stop)? else {
        return Ok(());
    };
    let platform = sal.platform().clone();
    let mut tc = Tc::open()?;
    let view = SharedView::default();
    let (ports, relearn) = takeover::take(&platform.ports, &mut sal, &mut mark, &mut tc)?;
    for port in &ports {
        view.lock().add_port(port.port, port.ifindex);
    }
    let watch = match mark.hook() {
        Hook::Clsact => Some(QdiscWatch::open()?),
        Hook::Tcx => None,
    };
    view.lock()
        .set_front(u16::try_from(ports.len()).unwrap_or(u16::MAX));
    let ports = Arc::new(ports);
    let restart = ports.iter().any(|p| p.taken_over);
    let (how, store_how) = if restart {
        (Attach::Warm, tandem_store::Attach::Warm)
    } else {
        (Attach::Cold, tandem_store::Attach::Cold)
    };
    let (mut control, sal_io) = sal.attach(how)?;
    let policy = match settings.policy {
        Policy::Trap => tandem_store::Policy::Trap,
        Policy::Fail => tandem_store::Policy::Fail,
    };
    let mut warnings = platform.warnings.clone();
    let mut storms = storm::left(&mut control)?;
    let names = ports.iter().map(|p| (p.name.as_str(), p.port)).collect();
    warnings.extend(storm::lay_over(&mut storms, &settings.storms, &names));
    for w in &warnings {
        tracing::warn!("{w}");
    }
    let read = attach::read(&mut control, how, policy, ports.len(), &view)?;

    let heard = Arc::<Heard>::default();
    let source: Arc<dyn Source + Sync> = Arc::new(
        NetlinkSource::start(NetlinkConfig {
            ports: ports.iter().map(|p| (p.ifindex, p.port)).collect(),
            heard: Arc::clone(&heard),
            bell: Some(Arc::clone(&wake)),
            ..NetlinkConfig::default()
        })
        .map_err(|e| anyhow::anyhow!("{e}"))?,
    );
    let sources = Sources::new(vec![Seat {
        source,
        ports: ports.iter().map(|p| p.port).collect(),
        hold_ns: u64::MAX,
    }])
    .map_err(|e| anyhow::anyhow!("{e}"))?;
    let (io_to, io_commands) = bounded(COMMANDS);
    let (events_to, io_events) = bounded(IO_EVENTS);
    let io_wake = Arc::new(EventFd::new()?);
    let io_stats = Arc::new(tandem_core::io::IoStats::default());
    let signals = Arc::new(tandem_core::io::Signals::default());
    let io_parts = io::Parts {
        ports: Arc::clone(&ports),
        writer: sources
            .writer(view.clone())
            .map_err(|e| anyhow::anyhow!("{e}"))?,
        view: view.clone(),
        commands: io_commands,
        wake: Arc::clone(&io_wake),
        events: events_to,
        core_wake: Arc::clone(&wake),
        stats: Arc::clone(&io_stats),
        signals: Arc::clone(&signals),
        heard,
        stop: Arc::clone(&stop),
    };
    let first = tandem_core::io::FIRST_ATTACH;
    io_to.send(tandem_core::io::Command::Attach(Box::new(sal_io), first))?;
    let io_stop = Arc::clone(&stop);
    let core_wake = Arc::clone(&wake);
    let io_thread = std::thread::Builder::new()
        .name("io".into())
        .spawn(move || {
            if let Err(e) = io::run(io_parts) {
                tracing::error!("io: {e}");
            }
            io_stop.store(true, Relaxed);
            core_wake.ring();
        })?;
    let (job_to, jobs) = bounded(JOBS);
    let plant = Wired {
        socket: instance.driver_socket(),
        name: driver_name(&instance),
        policy,
        ports: Arc::clone(&ports),
        front: wired::front(&ports),
        splits: settings.splits.clone(),
        platform,
        mark,
        tc,
        watch,
        sal: Some(sal),
        begun: None,
    };
    let chip = plant.platform.chip.clone();
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
            relearn,
        },
    )?;
    if relearn {
        tracing::warn!(
            "an earlier version had turned `learning` off at the ports: on again where a port is not locked"
        );
    }
    let server = tandem_mgmt::server::serve(
        &instance.socket(Daemon::Switchd),
        api::router(Jobs::new(job_to, wake), instance.name().to_owned()),
    )?;
    tracing::info!(
        "instance {}: chip {chip}, {} ports, attached {}",
        instance.name(),
        ports.len(),
        if restart { "warm" } else { "cold" }
    );
    // the netdevs are there: whoever configures interfaces may begin
    tandem_mgmt::service::ready(&format!("chip {chip}, {} ports", ports.len()));
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
    join(io_thread, "io");
    Ok(())
}

/// Gives away what the daemon doesn't need; nothing else of it runs yet.
fn lock_in(settings: &Settings, instance: &Instance) -> anyhow::Result<()> {
    let sandbox = Sandbox {
        capabilities: vec![Capability::CAP_NET_ADMIN],
        read: vec!["/proc".into()],
        write: vec![instance.dir().into(), "/dev/net/tun".into()],
        ip6: false,
    };
    Ok(sandbox.lock_in(settings.sandbox)?)
}

fn join(thread: JoinHandle<()>, name: &str) {
    if thread.join().is_err() {
        tracing::error!("the {name} thread died");
    }
}

fn driver_name(instance: &Instance) -> String {
    format!("switchd {}", instance.name())
        .chars()
        .take(31)
        .collect()
}

/// Connects; waits for an asicd that is not there yet. `None`: told to stop meanwhile.
fn wait_for_device(
    instance: &Instance,
    splits: &Splits,
    stop: &AtomicBool,
) -> anyhow::Result<Option<Sal>> {
    let mut said = false;
    let mut busy = 0;
    while !stop.load(Relaxed) {
        match wired::connect(&instance.driver_socket(), &driver_name(instance), splits) {
            Ok(sal) => return Ok(Some(sal)),
            Err(e) => {
                use tandem_carrier::CarrierError;
                let tandem_sal::SalError::Carrier(carrier) = &e else {
                    return Err(e.into());
                };
                match carrier {
                    CarrierError::NoAsic(_) | CarrierError::Gone => {}
                    // a switchd that was just killed is still being noticed
                    CarrierError::Refused(_) if busy < 20 => busy += 1,
                    _ => return Err(e.into()),
                }
                if !said {
                    tracing::warn!("{e}; waiting");
                    said = true;
                }
                std::thread::sleep(RETRY);
            }
        }
    }
    Ok(None)
}
