//! A core, wired as the daemon wires it (`daemon.rs`), on the chip in the process and without threads.

use std::sync::Arc;

use crossbeam_channel::{Receiver, bounded};
use tandem_core::io::{Command, Signals};
use tandem_core::plant::Front;
use tandem_core::view::SharedView;
use tandem_core::{Core, Jobs, Parts, Sources, attach};
use tandem_linux::eventfd::EventFd;
use tandem_sal::Attach;
use tandem_store::Policy;

use crate::bench::Bench;
use crate::chip::{Direct, Shared};

/// A core, and what the packet thread would have of it.
pub struct Wired {
    /// The core, which has not had a turn.
    pub core: Core,
    /// What it asks of the packet thread.
    pub commands: Receiver<Command>,
    /// What the packet thread says beside its channel.
    pub signals: Arc<Signals>,
    /// What others have done by it between two turns.
    pub jobs: Jobs,
}

/// A core for these ports and sources on a chip that is attached so.
///
/// # Errors
/// One line: the chip can't be read, or a source not be written to.
pub fn core(
    chip: &Shared,
    front: Vec<Front>,
    how: Attach,
    sources: Sources,
) -> Result<Wired, String> {
    let words = |e: &dyn std::fmt::Display| format!("the switch does not start: {e}");
    let view = SharedView::default();
    for port in &front {
        view.lock().add_port(port.port, port.ifindex);
    }
    view.lock().set_front(front.len() as u16);
    let mut device = Direct::attach(chip, how);
    let read =
        attach::read(&mut device, how, Policy::Trap, front.len(), &view).map_err(|e| words(&e))?;
    let wake = Arc::new(EventFd::new().map_err(|e| words(&e))?);
    let (io, commands) = bounded(64);
    // nobody sends anything here: the channel is closed, which says the same
    let (_, io_events) = bounded(0);
    let (job_to, jobs) = bounded(64);
    let job_to = Jobs::new(job_to, Arc::clone(&wake));
    let signals = Arc::<Signals>::default();
    let core = Core::new(
        Box::new(Bench {
            chip: chip.clone(),
            front,
            begun: None,
        }),
        Parts {
            now: 0,
            control: Box::new(device),
            left: read.left,
            found_fdb: read.found_fdb,
            storms: std::collections::BTreeMap::new(),
            attach: match how {
                Attach::Warm => tandem_store::Attach::Warm,
                Attach::Cold => tandem_store::Attach::Cold,
            },
            config: read.config,
            warnings: Vec::new(),
            sources,
            view,
            io,
            io_wake: Arc::clone(&wake),
            io_stats: Arc::default(),
            signals: Arc::clone(&signals),
            io_events,
            jobs,
            wake,
            relearn: false,
        },
    )
    .map_err(|e| words(&e))?;
    Ok(Wired {
        core,
        commands,
        signals,
        jobs: job_to,
    })
}
