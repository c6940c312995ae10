//! eventfd(2): one doorbell between two processes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

/// A counter that is rung by one side and drained by the other. Neither call ever sleeps.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// A fresh one.
    pub fn new() -> std::io::Result<Self> {
        Ok(EventFd(eventfd(
            0,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        )?))
    }

    /// One that came from the other side; it is made non-blocking.
    pub fn from_fd(fd: OwnedFd) -> std::io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(EventFd(fd))
    }

    /// Rings. A bell that is rung already stays rung, so a full counter is no error.
    pub fn ring(&self) {
        let _ = rustix::io::retry_on_intr(|| rustix::io::write(&self.0, &1u64.to_ne_bytes()));
    }

    /// True if it was rung since the last call.
    pub fn drain(&self) -> bool {
        let mut count = [0; 8];
        matches!(
            rustix::io::retry_on_intr(|| rustix::io::read(&self.0, &mut count)),
            Ok(8)
        )
    }

    /// Sleeps until it is rung, at most `timeout`; does not drain.
    pub fn wait(&self, timeout: Duration) -> std::io::Result<bool> {
        let limit = Timespec::try_from(timeout).ok();
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut fds, limit.as_ref()) {
            Ok(n) => Ok(n > 0),
            Err(Errno::INTR) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_once_however_often_it_was_rung() {
        let bell = EventFd::new().unwrap();
        assert!(!bell.drain());
        assert!(!bell.wait(Duration::ZERO).unwrap());
        bell.ring();
        bell.ring();
        assert!(bell.wait(Duration::from_secs(60)).unwrap());
        assert!(bell.drain());
        assert!(!bell.drain());
    }
}
