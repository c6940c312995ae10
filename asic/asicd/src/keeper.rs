//! The thread that looks after cables: opening a port and asking for a netdev's state may wait
//! for locks of the kernel, so the packet thread does neither.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::Sender;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tandem_linux::eventfd::EventFd;
use tandem_ports::{Cable, Change};

/// Updates that may wait for the packet thread.
pub const UPDATES: usize = 256;
const PERIOD: Duration = Duration::from_secs(1);

/// What happened to a port.
pub struct Update {
    /// Its number.
    pub port: u16,
    /// What happened.
    pub change: Change,
}

/// The running thread. Stopping it opens the netdevs to the local stack again.
pub struct Keeper {
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts it. `cables` are those that the caller has opened already.
    pub fn start(cables: Vec<Cable>, to: Sender<Update>, bell: Arc<EventFd>) -> io::Result<Keeper> {
        let stop = Arc::new(EventFd::new()?);
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("keeper".into())
            .spawn(move || run(cables, &to, &bell, &stopped))?;
        Ok(Keeper {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(cables: Vec<Cable>, to: &Sender<Update>, bell: &EventFd, stop: &EventFd) {
    let mut cables: Vec<(Cable, bool)> = cables.into_iter().map(|c| (c, true)).collect();
    loop {
        if !sleep(&cables, stop) {
            return;
        }
        for (cable, plugged) in &mut cables {
            let spec = cable.spec();
            let (port, name) = (spec.number, spec.name());
            match cable.check() {
                Ok(None) => {}
                Ok(Some(change)) => {
                    match &change {
                        Change::Opened(o) => {
                            tracing::info!(
                                "{name}: {} is back, link {}",
                                cable.spec().kind,
                                up_down(o.link.up)
                            );
                            if let Some(note) = &o.note {
                                tracing::warn!("{name}={}: {note}", cable.spec().kind);
                            }
                        }
                        Change::Gone => {
                            tracing::warn!("{name}: {} is gone, link down", cable.spec().kind);
                        }
                        Change::Link(l) => tracing::info!("{name}: link {}", up_down(l.up)),
                    }
                    *plugged = !matches!(change, Change::Gone);
                    if to.send(Update { port, change }).is_err() {
                        return;
                    }
                    bell.ring();
                }
                // Said once; it is tried again all the time
                Err(e) if *plugged => {
                    *plugged = false;
                    tracing::warn!("{e}");
                }
                Err(_) => {}
            }
        }
    }
}

fn up_down(up: bool) -> &'static str {
    if up { "up" } else { "down" }
}

/// Until a link changes, a second has passed, or (false) the end.
fn sleep(cables: &[(Cable, bool)], stop: &EventFd) -> bool {
    let fds: Vec<BorrowedFd<'_>> = std::iter::once(stop.as_fd())
        .chain(cables.iter().filter_map(|(c, _)| c.notify_fd()))
        .collect();
    let mut polled: Vec<PollFd<'_>> = fds
        .iter()
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    let limit = Timespec::try_from(PERIOD).ok();
    let _ = poll(&mut polled, limit.as_ref());
    !stop.drain()
}
