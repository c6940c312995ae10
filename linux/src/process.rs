//! Another process, and its end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// One process, whoever has its number later (pidfd_open(2)). Readable when it has ended: then its sockets and rings are
/// closed.
#[derive(Debug)]
pub struct Process(OwnedFd);

impl Process {
    /// Whoever listened at the other end of a connected Unix socket, in this PID namespace or another.
    ///
    /// # Errors
    /// It is nobody's, or the process has ended, which some kernels say so. Before Linux 6.5 also: it has no number in this PID
    /// namespace.
    pub fn of_peer(socket: impl AsFd) -> io::Result<Process> {
        match crate::peercred::process_of(&socket) {
            // An older kernel. Where a newer one says no, the number may be another's by now
            Err(e) if e.raw_os_error() == Some(libc::ENOPROTOOPT) => {
                let (pid, _) = crate::peercred::of(socket)?;
                Process::of(pid.ok_or(io::ErrorKind::NotFound)?)
            }
            process => process.map(Process),
        }
    }

    fn of(pid: Pid) -> io::Result<Process> {
        Ok(Process(pidfd_open(pid, PidfdFlags::empty())?))
    }

    /// Has it ended?
    pub fn has_ended(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&Timespec::default())), Ok(n) if n > 0)
    }
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn an_end_is_seen_when_it_has_come() {
        let (a, _b) = crate::fdpass::pair().unwrap();
        assert!(!Process::of_peer(a).unwrap().has_ended(), "it is this one");
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let it = Process::of(Pid::from_child(&child)).unwrap();
        assert!(!it.has_ended());
        child.kill().unwrap();
        // waits for it: the descriptor is of the one that was
        child.wait().unwrap();
        assert!(it.has_ended());
    }
}
