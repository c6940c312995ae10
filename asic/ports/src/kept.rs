//! The thread that looks after cables: opening a port and asking for a netdev's state may wait for locks of the kernel, so the
//! thread that forwards does neither.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tandem_linux::eventfd::EventFd;

use crate::cable::{Cable, Change, Opened};
use crate::spec::PortSpec;

const PERIOD: Duration = Duration::from_secs(1);

/// A port's cable, and whether it is plugged in.
pub struct Kept {
    cable: Cable,
    name: String,
    plugged: bool,
}

impl Kept {
    /// Opens the cable of the port that is called `name`.
    ///
    /// # Errors
    /// It can't be opened.
    pub fn open(spec: PortSpec, name: String, epoch_ns: u64) -> io::Result<(Kept, Box<Opened>)> {
        let mut cable = Cable::new(spec, epoch_ns);
        let Some(Change::Opened(opened)) = cable.check()? else {
            return Err(io::Error::other(format!("{name} can't be opened")));
        };
        let kept = Kept {
            cable,
            name,
            plugged: true,
        };
        kept.tell(&opened);
        Ok((kept, opened))
    }

    /// The port and what it is cabled to.
    pub fn spec(&self) -> &PortSpec {
        self.cable.spec()
    }

    /// As it is called in the log.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn tell(&self, opened: &Opened) {
        if let Some(note) = &opened.note {
            tracing::warn!("{}={}: {note}", self.name, self.spec().kind);
        }
    }

    /// What has happened to it, which the log has then, too.
    pub fn look(&mut self) -> Option<Change> {
        let change = match self.cable.check() {
            Ok(change) => change?,
            Err(e) => {
                // said once; it is tried again all the time
                if self.plugged {
                    tracing::warn!("{e}");
                }
                self.plugged = false;
                return None;
            }
        };
        let (name, kind) = (&self.name, &self.spec().kind);
        let up_down = |up| if up { "up" } else { "down" };
        match &change {
            Change::Opened(o) => {
                tracing::info!("{name}: {kind} is back, link {}", up_down(o.link.up));
                self.tell(o);
            }
            Change::Gone => tracing::warn!("{name}: {kind} is gone, link down"),
            Change::Link(l) => tracing::info!("{name}: link {}", up_down(l.up)),
        }
        self.plugged = !matches!(change, Change::Gone);
        Some(change)
    }
}

/// The running thread. Stopping it opens the netdevs to the local stack again.
pub struct Keeper {
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts it: `run` ends when the bell that it is given is rung, and drops the cables.
    ///
    /// # Errors
    /// There is no descriptor or thread left.
    pub fn start(run: impl FnOnce(&EventFd) + Send + 'static) -> io::Result<Keeper> {
        let stop = Arc::new(EventFd::new()?);
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("keeper".into())
            .spawn(move || run(&stopped))?;
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

/// Until a link changes, `wake` is rung, a second has passed, or (false) the end.
pub fn sleep<'a>(
    all: impl IntoIterator<Item = &'a Kept>,
    wake: Option<&EventFd>,
    stop: &EventFd,
) -> bool {
    let links = all.into_iter().filter_map(|k| k.cable.notify_fd());
    let fds: Vec<BorrowedFd<'_>> = std::iter::once(stop.as_fd())
        .chain(wake.map(AsFd::as_fd))
        .chain(links)
        .collect();
    let mut polled: Vec<PollFd<'_>> = fds
        .iter()
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    let limit = Timespec::try_from(PERIOD).ok();
    let _ = poll(&mut polled, limit.as_ref());
    wake.map(EventFd::drain);
    !stop.drain()
}
