//! A switch without a control plane: asicd on veth pairs, programmed over the real carrier. Each file is a program of its own: they
//! run one after the other, and what is judged by the clock (queues, the flood, deadlines) shares its processors with few others.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tandem_abi::{Command, DriverRings, Status, raw};
use tandem_carrier::{DriverSide, Region};
use tandem_mgmt::Client;

pub fn sh(command: &str) -> bool {
    Process::new("sh")
        .args(["-c", command])
        .output()
        .is_ok_and(|o| o.status.success())
}

pub fn must(command: &str) -> String {
    let out = Process::new("sh").args(["-c", command]).output().unwrap();
    assert!(
        out.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Where tests need root they say so and pass.
pub fn root() -> bool {
    let root = sh("test $(id -u) = 0 && ip netns list");
    if !root {
        eprintln!("skipped: needs root and iproute2 to make network namespaces");
    }
    root
}

/// How long what is to come is waited for: the end of a test that hangs, and no verdict on a machine that has other work.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `f` holds.
pub fn eventually(what: &str, mut f: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !f() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Namespaces h1…hn with interfaces hN (10.7.0.N/24), cabled to p1…pn in the namespace of the
/// switch; a running asicd. All removed when dropped.
pub struct Bench {
    pub name: String,
    hosts: u8,
    dir: PathBuf,
    asicd: Option<Child>,
    extra: Vec<String>,
}

impl Bench {
    /// `hosts` hosts on swp1…, of the chip `tiny` unless `extra` says otherwise.
    pub fn new(hosts: u8, extra: &[&str]) -> Bench {
        let bench = Bench::cold(hosts, extra);
        for n in 1..=hosts {
            bench.pair(n);
        }
        bench.start()
    }

    /// The namespaces only.
    pub fn cold(hosts: u8, extra: &[&str]) -> Bench {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("asicd-t{}-{n}", std::process::id());
        let dir = std::env::temp_dir().join(&name);
        std::fs::create_dir_all(&dir).unwrap();
        let bench = Bench {
            name,
            hosts,
            dir,
            asicd: None,
            extra: extra.iter().map(|s| (*s).to_owned()).collect(),
        };
        must(&format!("ip netns add {}", bench.ns("sw")));
        for n in 1..=hosts {
            let host = bench.host(n);
            // hosts say nothing unasked: MLD and router solicitations come when the kernel likes
            must(&format!(
                "ip netns add {host} && \
                 ip netns exec {host} sysctl -qw net.ipv6.conf.default.disable_ipv6=1"
            ));
        }
        bench
    }

    pub fn ns(&self, part: &str) -> String {
        format!("{}-{part}", self.name)
    }

    pub fn host(&self, n: u8) -> String {
        self.ns(&format!("h{n}"))
    }

    /// A host asks for an address for half a minute: who waits for an answer may wait so long.
    pub fn pair(&self, n: u8) {
        let (h, sw) = (self.host(n), self.ns("sw"));
        must(&format!(
            "ip link add p{n} netns {sw} type veth peer name h{n} netns {h} && \
             ip netns exec {h} sysctl -qw net.ipv4.neigh.h{n}.mcast_solicit=30 && \
             ip -n {h} addr add 10.7.0.{n}/24 dev h{n} && ip -n {h} link set h{n} up"
        ));
    }

    /// One more cable, before the start.
    pub fn add_port(&mut self, spec: &str) {
        self.extra.push(format!("--port={spec}"));
    }

    pub fn start(mut self) -> Bench {
        self.launch();
        self
    }

    pub fn launch(&mut self) {
        let mut command = Process::new(env!("CARGO_BIN_EXE_asicd"));
        command.env("TANDEM_RUN", &self.dir).args(["--name", "t"]);
        if !self.extra.iter().any(|a| a == "--profile") {
            command.args(["--profile", "tiny"]);
        }
        for n in 1..=self.hosts {
            command.arg(format!("--port=swp{n}=p{n}@{}", self.ns("sw")));
        }
        command.args(&self.extra);
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.dir.join("log"))
            .unwrap();
        self.asicd = Some(command.stderr(Stdio::from(log)).spawn().unwrap());
        let sock = self.dir.join("t/asicd.sock");
        let end = Instant::now() + PATIENCE;
        while !sock.exists() {
            assert!(Instant::now() < end, "asicd did not start: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    pub fn dir(&self) -> PathBuf {
        self.dir.join("t")
    }

    pub fn driver(&self, cold: bool) -> Driver {
        Driver::connect(&self.dir().join("driver.sock"), cold)
    }

    pub fn api(&self) -> Client {
        Client::new(self.dir().join("asicd.sock"))
    }

    /// All hosts in one bridge domain without VLANs, learning on.
    pub fn bridge(&self, driver: &mut Driver) {
        driver.vlan(1);
        for n in 1..=self.hosts {
            driver.port_up(u16::from(n), 0);
            driver.member_any(u16::from(n), 1);
        }
    }

    /// For answers that are not to come: they have a second.
    pub fn ping(&self, from: u8, to: u8, extra: &str) -> bool {
        sh(&format!(
            "ip netns exec {} ping -n -W 1 {extra} 10.7.0.{to}",
            self.host(from)
        ))
    }

    /// For answers that are to come, on a busy machine late: one at least of those that `extra` asks for.
    pub fn reaches(&self, from: u8, to: u8, extra: &str) -> bool {
        let host = self.host(from);
        sh(&format!(
            "ip netns exec {host} ping -n -W 60 {extra} 10.7.0.{to}"
        ))
    }

    /// So many echoes that all are to be answered, one after the other: each is waited for, where ping itself waits for the last
    /// of several for two round trips only.
    pub fn echoes(&self, from: u8, count: u32, pause: &str, what: &str) -> String {
        format!(
            "for i in $(seq {count}); do ip netns exec {} ping -n -c 1 -W 60 {what} || exit 1; sleep {pause}; done",
            self.host(from)
        )
    }

    pub fn pid(&self) -> i32 {
        self.asicd.as_ref().unwrap().id() as i32
    }

    /// SIGTERM, and the exit status.
    pub fn stop(&mut self) -> bool {
        let Some(mut child) = self.asicd.take() else {
            return true;
        };
        sh(&format!("kill -TERM {}", child.id()));
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = child.try_wait().unwrap() {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = child.kill();
        let _ = child.wait();
        false
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.asicd.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("asicd's log:\n{}", self.log());
        }
        for part in (1..=self.hosts)
            .map(|n| format!("h{n}"))
            .chain(["sw".to_owned()])
        {
            sh(&format!("ip netns del {}", self.ns(&part)));
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A minimal driver: one command at a time on pair 0.
pub struct Driver {
    pub side: DriverSide,
    pub rings: DriverRings<Region>,
    seq: Vec<u32>,
}

impl Driver {
    pub fn connect(path: &std::path::Path, cold: bool) -> Driver {
        let side = DriverSide::connect(path, "test-driver", PATIENCE).unwrap();
        Driver::on(side, cold)
    }

    pub fn on(mut side: DriverSide, cold: bool) -> Driver {
        let rings = side.attach(cold).unwrap();
        let seq = vec![0; rings.pairs.len()];
        Driver { side, rings, seq }
    }

    /// Posts without waiting; false: the ring is full.
    pub fn post(&mut self, pair: usize, command: &Command) -> bool {
        let epoch = self.rings.epoch;
        let ring = &mut self.rings.pairs[pair].cmd;
        if ring.free_slots().unwrap() == 0 {
            return false;
        }
        if command.arena_size() > 0 {
            self.rings.arena.write(0, command.body()).unwrap();
        }
        let cmd = command.encode(self.seq[pair], epoch, 0);
        let ring = &mut self.rings.pairs[pair].cmd;
        ring.push(&[zerocopy::IntoBytes::as_bytes(&cmd)]).unwrap();
        self.seq[pair] = self.seq[pair].wrapping_add(1);
        if ring.publish() {
            let number = ring.ring().doorbell;
            self.side.to_device(number).unwrap().ring();
        }
        true
    }

    pub fn reap(&mut self, pair: usize) -> Option<raw::tnd_cpl> {
        self.rings.pairs[pair].cpl.pop_struct().unwrap()
    }

    pub fn run(&mut self, command: &Command) -> raw::tnd_cpl {
        assert!(self.post(0, command));
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(cpl) = self.reap(0) {
                return cpl;
            }
            assert!(Instant::now() < end, "no completion");
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    pub fn ok(&mut self, command: &Command) -> raw::tnd_cpl {
        let cpl = self.run(command);
        let status = Status::from_raw(cpl.status);
        assert!(status.is_ok(), "{command:?}: {status}");
        cpl
    }

    pub fn vlan(&mut self, fid: u16) {
        self.ok(&Command::create(&raw::tnd_vlan {
            fid,
            flags: raw::TND_VLAN_LEARNING,
            ageing_s: 300,
            ..Default::default()
        }));
    }

    pub fn port_up(&mut self, port: u16, more: u32) {
        self.ok(&Command::update(&raw::tnd_port {
            port,
            flags: raw::TND_PORT_UP
                | raw::TND_PORT_LEARNING
                | raw::TND_PORT_FLOOD_UC
                | raw::TND_PORT_FLOOD_MC
                | raw::TND_PORT_FLOOD_BC
                | more,
            mtu: 1500,
            stp_state: raw::TND_STP_FORWARDING,
            mac: [2, 0, 0, 0, 0xff, port as u8],
            ..Default::default()
        }));
    }

    pub fn member_any(&mut self, port: u16, fid: u16) {
        self.ok(&Command::create(&raw::tnd_vlan_member {
            fid,
            port,
            vid: raw::TND_VID_ANY,
            flags: raw::TND_MEMBER_PVID | raw::TND_MEMBER_UNTAGGED,
            ..Default::default()
        }));
    }

    pub fn event(&mut self) -> Option<raw::tnd_event> {
        self.rings.event.pop_struct().unwrap()
    }

    pub fn packet(&mut self) -> Option<(raw::tnd_rx, Vec<u8>)> {
        let mut body = Vec::new();
        let head = self
            .rings
            .rx
            .pop_packet::<raw::tnd_rx>(&mut body, |h| h.len as usize)
            .unwrap()?;
        Some((head, body))
    }

    pub fn send(&mut self, port: u16, flags: u16, frame: &[u8]) {
        let head = raw::tnd_tx {
            len: frame.len() as u32,
            port,
            flags,
            epoch: self.rings.epoch,
            ..Default::default()
        };
        let tx = &mut self.rings.tx;
        tx.push(&[zerocopy::IntoBytes::as_bytes(&head), frame])
            .unwrap();
        if tx.publish() {
            let number = tx.ring().doorbell;
            self.side.to_device(number).unwrap().ring();
        }
    }
}
