//! The seam to the kernel that is listened to: its notifications, its answers, its files, its clock.
//!
//! ```text
//!   Listener ── recv, renew, wait ──► Ears       Monitor: sockets of all groups
//!            ── begin, step, file … ► Questions  Requests: a socket, /proc          the kernel of this namespace
//!                                                any other: what a kernel said once (tests)
//! ```

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tandem_linux::eventfd::EventFd;
use tandem_linux::netlink as nl;
use tandem_linux::netlink::{Dump, Found, Lookup, Monitor, Protocol, Requests, Step};

/// Where notifications come from.
pub trait Ears: std::fmt::Debug + Send {
    /// Takes what is there, up to one batch of each protocol, without waiting: how many datagrams, and whether some were
    /// lost.
    ///
    /// # Errors
    /// Anything but a loss.
    fn recv(&mut self, sink: &mut dyn FnMut(Protocol, &[u8])) -> nl::Result<(usize, bool)>;

    /// Forgets what was not read and listens anew; false: there is nothing to listen with, and all is as it was.
    fn renew(&mut self, receive_buffer: usize) -> bool;

    /// Sleeps until there is something or `wake` is rung, at most `timeout`.
    fn wait(&self, wake: &EventFd, timeout: Duration);

    /// Waits because whoever reads the events is behind, or because the kernel's tables don't stand still.
    fn pause(&self, time: Duration);
}

/// Who answers questions.
pub trait Questions: std::fmt::Debug + Send {
    /// Begins a dump; one that was under way is given up.
    ///
    /// # Errors
    /// When the request can't be sent.
    fn begin(&mut self, what: Dump) -> nl::Result<()>;

    /// The dump's next objects.
    ///
    /// # Errors
    /// What the kernel says; the dump is over then.
    fn step(&mut self, each: &mut dyn FnMut(nl::Object)) -> nl::Result<Step>;

    /// Looks up addresses, some of those given from the first one on: each answer with its number. Gives how many those were.
    ///
    /// # Errors
    /// When no answers are to be had.
    fn lookups(&mut self, all: &[Lookup], each: &mut dyn FnMut(usize, Found)) -> nl::Result<usize>;

    /// Returns when every change is over that is under way.
    ///
    /// # Errors
    /// What the kernel says.
    fn settle(&mut self) -> nl::Result<()>;

    /// Whether there are IPsec policies.
    ///
    /// # Errors
    /// What the kernel says.
    fn ipsec_policies(&mut self) -> nl::Result<bool>;

    /// What a file below /proc says; none: there is no such file.
    fn file(&self, path: &str) -> Option<String>;

    /// The time.
    fn now(&self) -> Instant;
}

impl Ears for Monitor {
    fn recv(&mut self, sink: &mut dyn FnMut(Protocol, &[u8])) -> nl::Result<(usize, bool)> {
        Monitor::recv(self, sink)
    }

    fn renew(&mut self, receive_buffer: usize) -> bool {
        Monitor::renew(self, receive_buffer)
    }

    fn wait(&self, wake: &EventFd, timeout: Duration) {
        let fds = self.fds().chain([wake.as_fd()]);
        let mut fds: Vec<PollFd<'_>> = fds
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let _ = poll(&mut fds, Timespec::try_from(timeout).ok().as_ref());
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

impl Questions for Requests {
    fn begin(&mut self, what: Dump) -> nl::Result<()> {
        Requests::begin(self, what)
    }

    fn step(&mut self, each: &mut dyn FnMut(nl::Object)) -> nl::Result<Step> {
        Requests::step(self, each)
    }

    fn lookups(&mut self, all: &[Lookup], each: &mut dyn FnMut(usize, Found)) -> nl::Result<usize> {
        Requests::lookups(self, all, each)
    }

    fn settle(&mut self) -> nl::Result<()> {
        Requests::settle(self)
    }

    fn ipsec_policies(&mut self) -> nl::Result<bool> {
        Requests::ipsec_policies(self)
    }

    fn file(&self, path: &str) -> Option<String> {
        // names of devices need not be text
        let bytes = std::fs::read(path).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn now(&self) -> Instant {
        Instant::now()
    }
}
