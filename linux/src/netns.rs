//! Network namespaces: doing something inside another one.
//!
//! A namespace belongs to a thread (setns(2)), so the work runs in a helper thread that dies
//! afterwards; the caller's own namespace never changes.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Where iproute2 keeps named namespaces (ip-netns(8)).
pub const NETNS_DIR: &str = "/run/netns";

/// Identity of a network namespace: the inode of its nsfs file.
pub type NetnsId = u64;

/// Path of the namespace `name`, which may also be an absolute path itself.
pub fn path_of(name: &str) -> PathBuf {
    if name.starts_with('/') {
        PathBuf::from(name)
    } else {
        Path::new(NETNS_DIR).join(name)
    }
}

/// The calling thread's namespace.
pub fn current_id() -> io::Result<NetnsId> {
    Ok(std::fs::metadata("/proc/thread-self/ns/net")?.ino())
}

/// Identity of the namespace behind an open nsfs descriptor.
pub fn id_of(fd: BorrowedFd<'_>) -> io::Result<NetnsId> {
    Ok(rustix::fs::fstat(fd)?.st_ino)
}

/// Opens the namespace `name` (see [`path_of`]).
pub fn open(name: &str) -> io::Result<File> {
    let path = path_of(name);
    File::open(&path).map_err(|e| {
        io::Error::new(
            e.kind(),
            format!("no network namespace {name} ({}: {e})", path.display()),
        )
    })
}

/// Runs `work` inside the namespace of `ns` in a helper thread and returns its answer.
pub fn run_in<T, F>(ns: BorrowedFd<'_>, work: F) -> io::Result<T>
where
    T: Send,
    F: FnOnce() -> io::Result<T> + Send,
{
    help(move || {
        move_into_link_name_space(ns, Some(LinkNameSpaceType::Network))?;
        work()
    })
}

/// Runs `work` inside a new namespace, which ends with it unless something of it is kept open.
pub fn run_in_new<T, F>(work: F) -> io::Result<T>
where
    T: Send,
    F: FnOnce() -> io::Result<T> + Send,
{
    help(move || {
        // SAFETY: only UnshareFlags::FILES would let a thread see descriptors that aren't its own; this is NEWNET alone.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
        work()
    })
}

fn help<T, F>(work: F) -> io::Result<T>
where
    T: Send,
    F: FnOnce() -> io::Result<T> + Send,
{
    std::thread::scope(|scope| {
        let helper = std::thread::Builder::new()
            .name("netns".into())
            .spawn_scoped(scope, work)?;
        helper
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the namespace helper thread died")))
    })
}

/// Runs `work` inside the namespace `name`, or in the caller's own when `name` is `None`.
pub fn run_in_named<T, F>(name: Option<&str>, work: F) -> io::Result<T>
where
    T: Send,
    F: FnOnce() -> io::Result<T> + Send,
{
    match name {
        None => work(),
        Some(name) => {
            let ns = open(name)?;
            run_in(ns.as_fd(), work)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_namespace_is_found_and_entered() {
        let own = current_id().unwrap();
        let file = File::open("/proc/thread-self/ns/net").unwrap();
        assert_eq!(id_of(file.as_fd()).unwrap(), own);
        // setns needs CAP_SYS_ADMIN; without it the answer is an error, not a panic
        match run_in(file.as_fd(), current_id) {
            Ok(id) => assert_eq!(id, own),
            Err(e) => assert_eq!(e.raw_os_error(), Some(libc::EPERM)),
        }
    }

    #[test]
    fn missing_namespace_is_named() {
        let e = run_in_named(Some("tandem-no-such-ns"), || Ok(())).unwrap_err();
        assert!(e.to_string().contains("tandem-no-such-ns"), "{e}");
    }
}
