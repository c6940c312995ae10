//! epoll_wait(2).

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{Timespec, epoll};

/// Sleeps until a descriptor of the instance is ready, at most `limit` (none: for ever); `ready` then has those that are, as many
/// as it has room for.
///
/// # Errors
/// The system's. A signal is none: nothing is ready then.
pub fn wait(
    instance: impl AsFd,
    limit: Option<Duration>,
    ready: &mut Vec<epoll::Event>,
) -> io::Result<()> {
    ready.clear();
    let limit = limit.and_then(|l| Timespec::try_from(l).ok());
    match epoll::wait(
        instance,
        rustix::buffer::spare_capacity(ready),
        limit.as_ref(),
    ) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}
