//! What a daemon gives away before it touches its first packet: capabilities, paths, system calls.
//!
//! ```text
//!   start as root ── Sandbox::enter ──▶ threads, sockets, packets
//!                        │
//!                        ├─ capabilities: the named ones, out of the bounding set too  capabilities(7)
//!                        ├─ no_new_privs: no exec gives any back                       prctl(2)
//!                        ├─ paths: the named ones, the rest is EACCES                  landlock(7)
//!                        └─ system calls: the list below, the rest is ENOSYS           seccomp(2)
//! ```
//!
//! All three belong to the calling thread and to the threads that it starts later, so this is the
//! first thing that a daemon does once it has its directory.
//!
//! A forbidden call is answered ENOSYS and doesn't kill: libraries take that for an older kernel and
//! do without, and a switch that forwards on is worth more than one that ends on a new C library.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus,
};
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

pub use caps::Capability;

/// File rights up to Linux 6.2: later ones (ioctl of devices) say nothing about paths.
const RIGHTS: ABI = ABI::V3;

/// What stays.
#[derive(Clone, Debug, Default)]
pub struct Sandbox {
    /// Capabilities, as far as the process has them.
    pub capabilities: Vec<Capability>,
    /// Files and folders that are read; those that aren't there are passed over.
    pub read: Vec<PathBuf>,
    /// Files and folders that are written, made and removed; likewise.
    pub write: Vec<PathBuf>,
    /// Sockets of IPv6, too: for who speaks to other machines.
    pub ip6: bool,
}

/// What the kernel took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    /// False on a kernel without Landlock: paths are not limited.
    pub paths: bool,
}

/// Why a daemon can't lock itself in.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// Capabilities.
    #[error("dropping capabilities: {0}")]
    Capabilities(#[from] caps::errors::CapsError),
    /// Paths.
    #[error("limiting paths: {0}")]
    Paths(#[from] landlock::RulesetError),
    /// A path that is there and can't be opened.
    #[error("limiting paths: {0}")]
    Path(#[from] landlock::PathFdError),
    /// The filter's construction.
    #[error("limiting system calls: {0}")]
    Calls(#[from] seccompiler::BackendError),
    /// The filter's installation.
    #[error("limiting system calls: {0}")]
    Install(#[from] seccompiler::Error),
    /// No list of system calls for this machine.
    #[error("limiting system calls: {0} is not known")]
    Machine(&'static str),
}

impl Sandbox {
    /// Locks the calling thread in, for good, and all threads that it starts from now on.
    pub fn enter(&self) -> Result<Entered, SandboxError> {
        let paths = self.limit_paths()?;
        self.limit_capabilities()?;
        limit_calls(self.ip6)?;
        Ok(Entered { paths })
    }

    /// As a daemon does it: not at all if that was not `wanted`; the log has what it goes without.
    pub fn lock_in(&self, wanted: bool) -> Result<(), SandboxError> {
        if !wanted {
            tracing::warn!("--no-sandbox: running with all privileges");
        } else if !self.enter()?.paths {
            tracing::warn!("this kernel has no Landlock: paths are not limited");
        }
        Ok(())
    }

    fn limit_capabilities(&self) -> Result<(), SandboxError> {
        use caps::CapSet;
        let kept: caps::CapsHashSet = self.capabilities.iter().copied().collect();
        // Without CAP_SETPCAP the bounding set stays; no_new_privs makes it meaningless
        if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)? {
            for c in caps::read(None, CapSet::Bounding)?.difference(&kept) {
                caps::drop(None, CapSet::Bounding, *c)?;
            }
        }
        caps::clear(None, CapSet::Ambient)?;
        caps::clear(None, CapSet::Inheritable)?;
        let had = caps::read(None, CapSet::Permitted)?;
        let left: caps::CapsHashSet = had.intersection(&kept).copied().collect();
        caps::set(None, CapSet::Effective, &left)?;
        caps::set(None, CapSet::Permitted, &left)?;
        Ok(())
    }

    fn limit_paths(&self) -> Result<bool, SandboxError> {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(RIGHTS))?
            .create()?;
        let list = |paths: &[PathBuf], access| -> Result<Vec<_>, SandboxError> {
            paths
                .iter()
                .filter(|p| p.exists())
                .map(|p| Ok(PathBeneath::new(PathFd::new(p)?, fitting(p, access))))
                .collect()
        };
        // Reading is no running
        let read = AccessFs::from_read(RIGHTS) & !AccessFs::Execute;
        for rule in list(&self.read, read)? {
            rules = rules.add_rule(rule)?;
        }
        for rule in list(&self.write, read | AccessFs::from_write(RIGHTS))? {
            rules = rules.add_rule(rule)?;
        }
        Ok(rules.restrict_self()?.ruleset != RulesetStatus::NotEnforced)
    }
}

/// Where a file is to be made.
pub fn folder_of(path: &Path) -> PathBuf {
    path.parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
        .to_path_buf()
}

/// A file has fewer rights than a folder.
fn fitting(path: &Path, access: landlock::BitFlags<AccessFs>) -> landlock::BitFlags<AccessFs> {
    if path.is_dir() {
        access
    } else {
        access & AccessFs::from_file(RIGHTS)
    }
}

/// Nothing of a daemon's own runs another program, traces, mounts, loads a module or sets a clock.
const CALLS: &[i64] = &[
    // files
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_openat,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_lseek,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_getdents64,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_umask,
    libc::SYS_getcwd,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_ioctl,
    libc::SYS_memfd_create,
    // sockets; which ones, see below
    libc::SYS_socketpair,
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    // waiting
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    // for another process's end
    libc::SYS_pidfd_open,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_restart_syscall,
    // memory
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_brk,
    libc::SYS_membarrier,
    // threads and signals
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_set_tid_address,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_tgkill,
    libc::SYS_prctl,
    libc::SYS_capget,
    libc::SYS_getrandom,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_setscheduler,
    libc::SYS_setpriority,
    libc::SYS_getpriority,
    libc::SYS_prlimit64,
    libc::SYS_getrusage,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    // the filters of the ports and the forward mark
    libc::SYS_bpf,
];

/// Calls that only older machines have; newer ones were made for the others to do without.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[i64] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_mkdir,
    libc::SYS_unlink,
    libc::SYS_rmdir,
    libc::SYS_rename,
    libc::SYS_chmod,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_getrlimit,
    libc::SYS_arch_prctl,
    libc::SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[i64] = &[];

/// Families of the sockets: management and carrier, netlink, ports, and the one for ioctls.
const FAMILIES: &[i32] = &[
    libc::AF_UNIX,
    libc::AF_NETLINK,
    libc::AF_PACKET,
    libc::AF_INET,
    libc::AF_XDP,
];

/// Namespaces are entered (a port of another one), never made.
const NAMESPACES: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

fn limit_calls(ip6: bool) -> Result<(), SandboxError> {
    let equal = |argument, value: i32| {
        SeccompRule::new(vec![SeccompCondition::new(
            argument,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Eq,
            u64::from(value.cast_unsigned()),
        )?])
    };
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = CALLS
        .iter()
        .chain(OLD_CALLS)
        .map(|call| (*call, Vec::new()))
        .collect();
    let families = FAMILIES
        .iter()
        .chain(ip6.then_some(&libc::AF_INET6))
        .map(|f| equal(0, *f));
    rules.insert(libc::SYS_socket, families.collect::<Result<_, _>>()?);
    rules.insert(libc::SYS_setns, vec![equal(1, libc::CLONE_NEWNET)?]);
    // clone3(2) isn't in the list: it takes its flags by pointer, which a filter can't follow, and C
    // libraries then use clone(2)
    let none = SeccompCmpOp::MaskedEq(u64::from(NAMESPACES.cast_unsigned()));
    rules.insert(
        libc::SYS_clone,
        vec![SeccompRule::new(vec![SeccompCondition::new(
            0,
            SeccompCmpArgLen::Dword,
            none,
            0,
        )?])?],
    );
    let arch = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|_| SandboxError::Machine(std::env::consts::ARCH))?;
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Errno(libc::ENOSYS.cast_unsigned()),
        SeccompAction::Allow,
        arch,
    )?;
    let program: seccompiler::BpfProgram = filter.try_into()?;
    Ok(seccompiler::apply_filter(&program)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread of its own: it stays locked in until it ends.
    fn locked_in<T: Send>(sandbox: Sandbox, work: impl FnOnce(Entered) -> T + Send) -> T {
        std::thread::scope(|s| s.spawn(|| work(sandbox.enter().unwrap())).join().unwrap())
    }

    #[test]
    fn named_paths_are_reached_and_no_others() {
        let dir = std::env::temp_dir().join(format!("tandem-sandbox-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("mine")).unwrap();
        std::fs::write(dir.join("other"), "x").unwrap();
        let sandbox = Sandbox {
            read: vec!["/proc".into(), dir.join("not there")],
            write: vec![dir.join("mine")],
            ..Sandbox::default()
        };
        locked_in(sandbox, |entered| {
            assert!(std::fs::read("/proc/self/status").is_ok());
            std::fs::write(dir.join("mine/file"), "x").unwrap();
            std::fs::rename(dir.join("mine/file"), dir.join("mine/other")).unwrap();
            std::os::unix::net::UnixListener::bind(dir.join("mine/socket")).unwrap();
            std::fs::remove_file(dir.join("mine/socket")).unwrap();
            if !entered.paths {
                return; // a kernel without Landlock says so
            }
            let denied = |r: std::io::Result<()>| {
                assert_eq!(r.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
            };
            denied(std::fs::read("/etc/passwd").map(drop));
            denied(std::fs::read(dir.join("other")).map(drop));
            denied(std::fs::write("/proc/self/comm", "x"));
            denied(std::fs::write(dir.join("new"), "x"));
        });
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn nothing_is_run_and_no_odd_socket_is_made() {
        let sandbox = Sandbox {
            read: vec!["/".into()],
            ..Sandbox::default()
        };
        locked_in(sandbox, |_| {
            // threads, still
            assert_eq!(std::thread::spawn(|| 7).join().unwrap(), 7);
            assert!(std::process::Command::new("/bin/true").status().is_err());
            let socket =
                |family| rustix::net::socket(family, rustix::net::SocketType::STREAM, None);
            assert!(socket(rustix::net::AddressFamily::UNIX).is_ok());
            assert_eq!(
                socket(rustix::net::AddressFamily::INET6).unwrap_err(),
                rustix::io::Errno::NOSYS
            );
            let own = std::fs::File::open("/proc/thread-self/ns/uts").unwrap();
            let uts = rustix::thread::LinkNameSpaceType::HostNameAndNISDomainName;
            assert_eq!(
                rustix::thread::move_into_link_name_space(
                    std::os::fd::AsFd::as_fd(&own),
                    Some(uts)
                ),
                Err(rustix::io::Errno::NOSYS)
            );
        });
    }

    #[test]
    fn only_named_capabilities_are_left() {
        let sandbox = Sandbox {
            capabilities: vec![Capability::CAP_NET_RAW],
            read: vec!["/proc".into()],
            ..Sandbox::default()
        };
        locked_in(sandbox, |_| {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let field = |name: &str| {
                let line = status.lines().find(|l| l.starts_with(name)).unwrap();
                u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap()
            };
            let only = 1 << Capability::CAP_NET_RAW.index();
            for set in ["CapEff:", "CapPrm:"] {
                assert_eq!(field(set) & !only, 0, "{set}");
            }
            for set in ["CapInh:", "CapAmb:"] {
                assert_eq!(field(set), 0, "{set}");
            }
            assert_eq!(field("NoNewPrivs:"), 1);
            assert_eq!(field("Seccomp:"), 2);
        });
    }
}
