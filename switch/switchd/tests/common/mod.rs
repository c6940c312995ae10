//! Namespaces for tests: unique names, gone with the value. Each file is a program of its own: they run one after the other, and
//! who waits a moment for frames that are not to come shares the processors with few others.
#![allow(dead_code)]

use std::collections::HashMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tandem_switchd::ports::Keeper;

/// A network namespace of its own.
pub struct Ns(pub String);

impl Ns {
    /// `None` (said aloud) when not root.
    pub fn new(what: &str) -> Option<Ns> {
        static N: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "swd-{what}-{}-{}",
            std::process::id(),
            N.fetch_add(1, Ordering::Relaxed)
        );
        if !Command::new("ip")
            .args(["netns", "add", &name])
            .status()
            .is_ok_and(|s| s.success())
        {
            eprintln!("skipped: making a network namespace needs root and iproute2");
            return None;
        }
        let ns = Ns(name);
        ns.run("ip link set lo up");
        Some(ns)
    }

    /// Runs a command line in it; its standard output.
    pub fn run(&self, line: &str) -> String {
        let (ok, out, err) = self.try_run(line);
        assert!(ok, "{line}: {err}");
        out
    }

    pub fn try_run(&self, line: &str) -> (bool, String, String) {
        let out = Command::new("ip")
            .args(["netns", "exec", &self.0])
            .args(line.split_whitespace())
            .output()
            .unwrap();
        (
            out.status.success(),
            String::from_utf8_lossy(&out.stdout).into_owned(),
            String::from_utf8_lossy(&out.stderr).into_owned(),
        )
    }

    /// Runs a closure in it, in a thread of its own.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        tandem_linux::netns::run_in_named(Some(&self.0), || Ok(work())).unwrap()
    }
}

impl Drop for Ns {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

/// Keeps descriptors in a map, as asicd would.
#[derive(Default)]
pub struct Kept(pub HashMap<String, OwnedFd>, pub Option<usize>);

impl Keeper for Kept {
    fn get(&mut self, name: &str) -> anyhow::Result<Option<OwnedFd>> {
        Ok(self.0.get(name).map(|fd| fd.try_clone()).transpose()?)
    }
    fn keep(&mut self, name: &str, fd: BorrowedFd<'_>) -> anyhow::Result<()> {
        let full = self.1.is_some_and(|most| self.0.len() >= most);
        anyhow::ensure!(!full || self.0.contains_key(name), "no room to keep {name}");
        self.0.insert(name.into(), fd.try_clone_to_owned()?);
        Ok(())
    }
    fn kept(&mut self) -> anyhow::Result<Vec<String>> {
        Ok(self.0.keys().cloned().collect())
    }
    fn forget(&mut self, name: &str) -> anyhow::Result<()> {
        self.0.remove(name);
        Ok(())
    }
}

/// How long what is to come is waited for: the end of a test that hangs, and no verdict on a machine that has other work.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `done`; false after `limit`.
pub fn wait_for(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if done() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What these devices do by themselves, late, is over: the kernel has told their operational states (net/core/link_watch.c).
pub fn all_up(ns: &Ns, devices: &[&str]) {
    let up = |device: &&str| {
        let shown = ns.run(&format!("ip -br link show {device}"));
        shown.split_whitespace().nth(1) == Some("UP")
    };
    assert!(
        wait_for(PATIENCE, || devices.iter().all(up)),
        "{}",
        ns.run("ip -br link")
    );
}

/// An Ethernet frame, padded to 60 bytes.
pub fn frame(dst: [u8; 6], src: [u8; 6], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut f = Vec::new();
    f.extend_from_slice(&dst);
    f.extend_from_slice(&src);
    f.extend_from_slice(&ethertype.to_be_bytes());
    f.extend_from_slice(payload);
    f.resize(f.len().max(60), 0);
    f
}

/// An ARP request.
pub fn arp_request(src: [u8; 6], spa: [u8; 4], tpa: [u8; 4]) -> Vec<u8> {
    let mut p = vec![0, 1, 8, 0, 6, 4, 0, 1];
    p.extend_from_slice(&src);
    p.extend_from_slice(&spa);
    p.extend_from_slice(&[0; 6]);
    p.extend_from_slice(&tpa);
    frame([0xff; 6], src, 0x0806, &p)
}

/// IPv4 + UDP without data.
pub fn udp(dst_mac: [u8; 6], src_mac: [u8; 6], src: [u8; 4], dst: [u8; 4]) -> Vec<u8> {
    let mut ip = vec![0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0];
    ip.extend_from_slice(&src);
    ip.extend_from_slice(&dst);
    let sum = ip
        .chunks(2)
        .map(|c| u32::from(u16::from_be_bytes([c[0], c[1]])))
        .sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip.extend_from_slice(&[0x10, 0, 0x20, 0, 0, 8, 0, 0]);
    frame(dst_mac, src_mac, 0x0800, &ip)
}

/// The switchd under test.
pub fn switchd() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_switchd"))
}

/// The asicd beside it; `None` (said aloud) when it was not built.
pub fn asicd() -> Option<PathBuf> {
    let path = switchd().with_file_name("asicd");
    if path.exists() {
        return Some(path);
    }
    // skipping would look like passing
    panic!(
        "no asicd at {}: cargo build -p tandem-asicd",
        path.display()
    );
}

/// One of the daemons, as instance `t`; killed when dropped.
pub struct Daemon(Child);

impl Daemon {
    pub fn start(program: &Path, ns: &Ns, run: &Path, args: &[&str]) -> Daemon {
        let child = Command::new("ip")
            .args(["netns", "exec", &ns.0])
            .arg(program)
            .args(["--name", "t", "--log", "warn"])
            .args(args)
            .env("TANDEM_RUN", run)
            .spawn()
            .unwrap();
        Daemon(child)
    }

    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        std::mem::forget(self);
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn get(run: &std::path::Path, path: &str) -> Option<Value> {
    tandem_mgmt::Client::new(run.join("t/switchd.sock"))
        .get(path)
        .ok()
}

pub fn sync(run: &std::path::Path) {
    assert!(
        wait_for(PATIENCE, || get(run, "/v1/status").is_some()),
        "switchd does not answer"
    );
    let _: Value = tandem_mgmt::Client::new(run.join("t/switchd.sock"))
        .with_timeout(2 * PATIENCE)
        .post("/v1/sync", &serde_json::json!({"timeout_ms": 60_000}))
        .unwrap();
}
