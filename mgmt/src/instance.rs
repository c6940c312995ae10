//! Instances: several switches on one machine, each with a name and a directory.
//!
//! ```text
//! /run/tandem/<instance>/    0700
//!     asicd.sock switchd.sock driver.sock  asicd.pid switchd.pid  config.toml  asicd.log switchd.log
//!     ofagentd.sock ofagentd.pid ofagentd.log
//! ```
//!
//! `TANDEM_RUN` replaces `/run/tandem`; a relative one counts from the working directory of who reads it.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The daemons of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Daemon {
    /// The software ASIC.
    Asicd,
    /// The user-space control plane.
    Switchd,
    /// An OpenFlow switch.
    Ofagentd,
    /// The appliance's console with engine kernel, beside switchd; its socket is no API's.
    Swcfgd,
}

impl Daemon {
    /// The program's name.
    pub fn name(self) -> &'static str {
        match self {
            Daemon::Asicd => "asicd",
            Daemon::Switchd => "switchd",
            Daemon::Ofagentd => "ofagentd",
            Daemon::Swcfgd => "swcfgd",
        }
    }
}

impl std::fmt::Display for Daemon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What went wrong with an instance's name or files.
#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    /// A name that can't be a directory.
    #[error(
        "instance name {0:?} not usable: need 1 to 64 letters, digits, '-', '_' or '.', not first '.'"
    )]
    Name(String),
    /// Another process holds the pid file.
    #[error("{daemon} runs already for instance {instance} (pid {pid}): stop it or choose --name")]
    Running {
        /// Which daemon.
        daemon: Daemon,
        /// Of which instance.
        instance: String,
        /// Its process.
        pid: String,
    },
    /// Whether the daemon runs is not for this user to know.
    #[error("{path}: permission denied: the instance is another user's, call this as root", path = path.display())]
    Denied {
        /// Which file.
        path: PathBuf,
    },
    /// A file operation failed.
    #[error("{what} {path}: {cause}", path = path.display())]
    Io {
        /// "create directory", …
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// The system's answer; part of the line, hence not an error of its own behind it.
        cause: std::io::Error,
    },
}

/// A name and where its files are. Making one touches no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    name: String,
    dir: PathBuf,
}

/// Base of all instances: `TANDEM_RUN` or `/run/tandem`. Absolute: a daemon with another working directory must not look
/// elsewhere than who started it.
pub fn base_dir() -> PathBuf {
    match std::env::var_os("TANDEM_RUN") {
        Some(dir) if !dir.is_empty() => {
            std::path::absolute(&dir).unwrap_or_else(|_| PathBuf::from(dir))
        }
        _ => "/run/tandem".into(),
    }
}

/// Device and inode: which namespace it is.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|m| (m.dev(), m.ino()))
}

/// The name that the current network namespace gives: `default` in the initial one, else its name
/// under `/run/netns`, else `ns-<inode>`.
pub fn current_name() -> String {
    let Some(own) = identity(Path::new("/proc/thread-self/ns/net")) else {
        return "default".into();
    };
    if is_initial(own) {
        return "default".into();
    }
    netns_name(own).unwrap_or_else(|| format!("ns-{}", own.1))
}

/// Whether the own network namespace is the initial one: that of process 1. Where one may not look at that one's namespace
/// (ordinary users, containers) `/proc/PID/net` still tells them apart: every namespace has files of its own there.
/// In a user namespace of one's own nothing is initial.
fn is_initial(own: (u64, u64)) -> bool {
    if let Some(id) = identity(Path::new("/proc/1/ns/net")) {
        return id == own;
    }
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    if !map.split_whitespace().eq(["0", "0", "4294967295"]) {
        return false;
    }
    let files = |of: &str| identity(Path::new(&format!("/proc/{of}/net/dev")));
    match (files("1"), files("thread-self")) {
        (Some(first), Some(here)) => first == here,
        // mounted with hidepid: a name under /run/netns says that it is another one
        _ => netns_name(own).is_none(),
    }
}

/// The name under `/run/netns` of the namespace with this device and inode; the first in order.
fn netns_name(own: (u64, u64)) -> Option<String> {
    let mut names: Vec<String> = fs::read_dir("/run/netns")
        .ok()?
        .flatten()
        .filter(|e| fs::metadata(e.path()).is_ok_and(|m| (m.dev(), m.ino()) == own))
        .filter_map(|e| e.file_name().into_string().ok())
        .filter(|n| valid(n))
        .collect();
    names.sort();
    names.into_iter().next()
}

fn valid(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

impl Instance {
    /// From `--name`, or from the current network namespace without it.
    pub fn resolve(name: Option<&str>) -> Result<Self, InstanceError> {
        Self::in_dir(
            &base_dir(),
            &name.map_or_else(current_name, ToOwned::to_owned),
        )
    }

    /// Below another base directory: for tests.
    pub fn in_dir(base: &Path, name: &str) -> Result<Self, InstanceError> {
        if !valid(name) {
            return Err(InstanceError::Name(name.into()));
        }
        Ok(Instance {
            name: name.into(),
            dir: base.join(name),
        })
    }

    /// Names of the instances that have a directory, sorted.
    pub fn list() -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(base_dir())
            .into_iter()
            .flatten()
            .flatten()
            .filter(|e| e.path().is_dir())
            .filter_map(|e| e.file_name().into_string().ok())
            .filter(|n| valid(n))
            .collect();
        names.sort();
        names
    }

    /// The directory of all instances that this one lies in: what `TANDEM_RUN` has to be for it.
    pub fn base(&self) -> &Path {
        self.dir.parent().unwrap_or(&self.dir)
    }

    /// The instance's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Of its name, the same at every start: several switches on one machine tell their addresses apart by it.
    pub fn hash(&self) -> u64 {
        // FNV-1a: any stable hash does
        let byte = |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3);
        self.name.bytes().fold(0xcbf2_9ce4_8422_2325, byte)
    }

    /// The instance's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Management socket of a daemon.
    pub fn socket(&self, daemon: Daemon) -> PathBuf {
        self.dir.join(format!("{daemon}.sock"))
    }

    /// Socket of the ABI's carrier.
    pub fn driver_socket(&self) -> PathBuf {
        self.dir.join("driver.sock")
    }

    /// Pid file of a daemon.
    pub fn pid_file(&self, daemon: Daemon) -> PathBuf {
        self.dir.join(format!("{daemon}.pid"))
    }

    /// Log of a daemon that was started by `tandem up`.
    pub fn log_file(&self, daemon: Daemon) -> PathBuf {
        self.dir.join(format!("{daemon}.log"))
    }

    /// The configuration it was started with.
    pub fn config_file(&self) -> PathBuf {
        self.dir.join("config.toml")
    }

    /// Makes the directory (0700), and its base if need be; corrects the mode of one that is there.
    pub fn create_dir(&self) -> Result<(), InstanceError> {
        let io = |what, path: &Path, cause| InstanceError::Io {
            what,
            path: path.into(),
            cause,
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(self.base())
            .map_err(|e| io("create directory", self.base(), e))?;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)
            .map_err(|e| io("create directory", &self.dir, e))?;
        fs::set_permissions(&self.dir, fs::Permissions::from_mode(0o700))
            .map_err(|e| io("set mode 0700 on", &self.dir, e))
    }

    /// Claims the daemon's role: a locked pid file. The lock goes with the process, however it
    /// ends, so a stale file is no obstacle.
    pub fn claim(&self, daemon: Daemon) -> Result<PidFile, InstanceError> {
        self.create_dir()?;
        let path = self.pid_file(daemon);
        let io = |what| {
            let path = path.clone();
            move |cause| InstanceError::Io { what, path, cause }
        };
        let mut file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(io("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let mut pid = String::new();
                let _ = file.read_to_string(&mut pid);
                return Err(InstanceError::Running {
                    daemon,
                    instance: self.name.clone(),
                    pid: pid.trim().into(),
                });
            }
            Err(fs::TryLockError::Error(e)) => return Err(io("lock")(e)),
        }
        file.set_len(0).map_err(io("truncate"))?;
        file.rewind().map_err(io("rewind"))?;
        writeln!(file, "{}", std::process::id()).map_err(io("write"))?;
        Ok(PidFile { _file: file })
    }

    /// The process that holds a daemon's pid file now. Not being allowed to look is no answer.
    pub fn running(&self, daemon: Daemon) -> Result<Option<u32>, InstanceError> {
        let path = self.pid_file(daemon);
        let failed = |what| {
            let path = path.clone();
            move |cause: std::io::Error| match cause.kind() {
                ErrorKind::PermissionDenied => InstanceError::Denied { path },
                _ => InstanceError::Io { what, path, cause },
            }
        };
        let mut file = match File::open(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(failed("open"))?,
        };
        match file.try_lock_shared() {
            Err(fs::TryLockError::WouldBlock) => {}
            Err(fs::TryLockError::Error(e)) => return Err(failed("lock")(e)),
            Ok(()) => return Ok(None),
        }
        let mut pid = String::new();
        file.read_to_string(&mut pid).map_err(failed("read"))?;
        Ok(pid.trim().parse().ok())
    }
}

/// A claimed pid file; the claim ends when it is dropped.
#[derive(Debug)]
pub struct PidFile {
    _file: File,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temp(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("tandem-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        dir
    }

    #[test]
    fn names_that_leave_the_directory_are_refused() {
        for bad in ["", ".", "..", "a/b", ".x", "a b", &"x".repeat(65)] {
            assert!(Instance::in_dir(Path::new("/x"), bad).is_err(), "{bad}");
        }
        let ok = Instance::in_dir(Path::new("/x"), "lab-1.a_b").unwrap();
        assert_eq!(
            ok.socket(Daemon::Asicd),
            Path::new("/x/lab-1.a_b/asicd.sock")
        );
        assert_eq!(ok.driver_socket(), Path::new("/x/lab-1.a_b/driver.sock"));
    }

    #[test]
    fn a_cause_is_named_once() {
        let base = temp("cause");
        fs::create_dir_all(&base).unwrap();
        fs::write(base.join("one"), "a file, not a folder").unwrap();
        let i = Instance::in_dir(&base, "one").unwrap();
        let e = i.running(Daemon::Asicd).unwrap_err();
        assert!(e.to_string().contains("Not a directory"), "{e}");
        assert!(std::error::Error::source(&e).is_none(), "printed again");
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn this_namespace_has_a_name() {
        assert!(valid(&current_name()));
    }

    #[test]
    fn a_role_is_claimed_once_and_a_stale_file_is_no_obstacle() {
        let base = temp("claim");
        let i = Instance::in_dir(&base, "one").unwrap();
        let held = i.claim(Daemon::Asicd).unwrap();
        assert_eq!(i.running(Daemon::Asicd).unwrap(), Some(std::process::id()));
        let e = i.claim(Daemon::Asicd).unwrap_err().to_string();
        assert!(
            e.contains("asicd runs already for instance one")
                && e.contains(&format!("pid {}", std::process::id())),
            "{e}"
        );
        assert_eq!(i.running(Daemon::Switchd).unwrap(), None);
        drop(held);
        assert_eq!(i.running(Daemon::Asicd).unwrap(), None);
        drop(i.claim(Daemon::Asicd).unwrap());
        assert_eq!(
            fs::metadata(i.dir()).unwrap().permissions().mode() & 0o777,
            0o700
        );
        fs::remove_dir_all(base).unwrap();
    }
}
