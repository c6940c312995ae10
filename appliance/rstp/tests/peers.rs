// SPDX-License-Identifier: Apache-2.0
//! Bridges that others have written: Open vSwitch's RSTP, and the kernel's STP of 1998. Needs root, and Open vSwitch:
//! without them the test says so and passes.
//!
//! ```text
//!            ┌── a1 ─── o1 ──┐                  one namespace; Open vSwitch in user space with a database of its own,
//!   ours: A ─┤               ├─ ovs-vswitchd    ours in this process, on packet sockets
//!            a2              o2
//!            └─ b2 ─ B ─ b1 ─┘
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tandem_linux::{clock, ifreq, netns, packet_socket};
use tandem_rstp::{Action, Bridge, Config, Link, PortConfig, PortState, Role};

/// What is waited for at most, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);
const COST: u32 = 20_000;
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

fn run(words: &[&str]) -> String {
    let out = Command::new(words[0])
        .args(&words[1..])
        .output()
        .expect(words[0]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{words:?}: {said}");
    String::from_utf8_lossy(&out.stdout).trim().to_string()
}

/// A namespace that goes with this object.
struct Ns(String);

impl Ns {
    fn new(what: &str) -> Ns {
        let name = format!("tnr-{}-{what}", std::process::id());
        run(&["ip", "netns", "add", &name]);
        Ns(name)
    }

    fn ip(&self, words: &str) {
        let mut all = vec!["ip", "-n", &self.0];
        all.extend(words.split(' '));
        run(&all);
    }

    fn veth(&self, a: &str, b: &str) {
        self.ip(&format!("link add {a} type veth peer name {b}"));
        for name in [a, b] {
            // nobody else is to say anything here
            self.ip(&format!("link set {name} addrgenmode none up"));
        }
    }
}

impl Drop for Ns {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

/// One of our bridges, its ports packet sockets.
struct Ours {
    bridge: Bridge,
    sockets: BTreeMap<u16, (packet_socket::PacketRx, packet_socket::PacketTx)>,
    states: BTreeMap<u16, PortState>,
}

impl Ours {
    fn new(ns: &Ns, config: Config, ports: &[&str]) -> Ours {
        let mut ours = Ours {
            bridge: Bridge::new(config).unwrap(),
            sockets: BTreeMap::new(),
            states: BTreeMap::new(),
        };
        for (number, name) in (1..).zip(ports) {
            let socket = netns::run_in_named(Some(&ns.0), || {
                let index = ifreq::ControlSocket::open()?.link(name)?.ifindex;
                packet_socket::open(index, 1500)
            });
            ours.sockets.insert(number, socket.unwrap());
            let mut mac = ours.bridge.config().mac;
            mac[5] = number as u8;
            let mut config = PortConfig::new(mac);
            config.cost = Some(COST);
            ours.tell(|b, now| b.set_port(number, config, now).unwrap());
            ours.up(number);
        }
        ours
    }

    fn tell(&mut self, what: impl FnOnce(&mut Bridge, u64) -> Vec<Action>) {
        for action in what(&mut self.bridge, clock::now_ns()) {
            match action {
                Action::Send { port, frame } => {
                    let socket = self.sockets.get_mut(&port).unwrap();
                    socket.1.queue(&[0; packet_socket::VNET_HDR_LEN], &frame);
                    socket.1.flush();
                }
                Action::State { port, state } => {
                    self.states.insert(port, state);
                }
                Action::Flush { .. } | Action::ErrDisabled { .. } => {}
            }
        }
    }

    fn up(&mut self, port: u16) {
        let link = Link {
            mbps: 1000,
            full_duplex: true,
        };
        self.tell(|b, now| b.port_up(port, link, now).unwrap());
    }

    fn down(&mut self, port: u16) {
        self.tell(|b, now| b.port_down(port, now).unwrap());
    }

    fn priority(&mut self, priority: u16) {
        let config = Config {
            priority,
            ..self.bridge.config().clone()
        };
        self.tell(|b, now| b.configure(config, now).unwrap());
    }

    /// What has come, and what is due.
    fn step(&mut self) {
        let mut frames = Vec::new();
        let mut scratch = vec![0; 70_000];
        for (port, (rx, _)) in &mut self.sockets {
            rx.receive(64, &mut scratch, 0, &mut |frame| {
                let octets = &frame.mem[frame.start..frame.end];
                if octets.starts_with(&tandem_rstp::bpdu::GROUP) {
                    frames.push((*port, octets.to_vec()));
                }
            });
        }
        for (port, frame) in frames {
            self.tell(|b, now| b.receive(port, &frame, now).unwrap_or_default());
        }
        self.tell(|b, now| b.tick(now));
    }

    fn port(&self, number: u16) -> (Role, PortState) {
        let view = self.bridge.show();
        let role = view.ports.iter().find(|p| p.number == number).unwrap().role;
        (role, self.states[&number])
    }
}

/// All of ours go on until `are` says what is wanted; what it said last, if it never does.
fn until<T: PartialEq + std::fmt::Debug>(
    what: &str,
    ours: &mut [&mut Ours],
    wanted: &T,
    mut are: impl FnMut(&[&mut Ours]) -> T,
) {
    let begun = Instant::now();
    let mut looked = begun;
    loop {
        for one in ours.iter_mut() {
            one.step();
        }
        std::thread::sleep(Duration::from_millis(2));
        if looked.elapsed() < Duration::from_millis(100) {
            continue;
        }
        looked = Instant::now();
        let is = are(ours);
        if is == *wanted {
            eprintln!("{what}: {} ms", begun.elapsed().as_millis());
            return;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "{what}: {is:?} instead of {wanted:?}"
        );
    }
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip("making network namespaces needs root");
    }
    root
}

fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

struct Ovs {
    dir: PathBuf,
    daemons: Vec<Child>,
}

impl Ovs {
    fn new(ns: &Ns) -> Ovs {
        let dir = std::env::temp_dir().join(&ns.0);
        std::fs::create_dir_all(&dir).unwrap();
        let mut ovs = Ovs {
            dir,
            daemons: Vec::new(),
        };
        let db = ovs.path("conf.db");
        run(&["ovsdb-tool", "create", &db, SCHEMA]);
        let remote = format!("--remote=punix:{}", ovs.path("db.sock"));
        ovs.start(ns, "ovsdb-server", &[&db, &remote], "db.sock");
        ovs.vsctl(&["--no-wait", "init"]);
        let socket = format!("unix:{}", ovs.path("db.sock"));
        ovs.start(ns, "ovs-vswitchd", &[&socket], "ovs-vswitchd.ctl");
        ovs
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    fn start(&mut self, ns: &Ns, program: &str, args: &[&str], makes: &str) {
        let control = format!("--unixctl={}", self.path(&format!("{program}.ctl")));
        let child = Command::new("ip")
            .args(["netns", "exec", &ns.0, program, "--no-chdir", &control])
            .args(args)
            .env("OVS_RUNDIR", &self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.daemons.push(child.unwrap());
        let begun = Instant::now();
        while !self.dir.join(makes).exists() {
            assert!(begun.elapsed() < PATIENCE, "{program} made no {makes}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn vsctl(&self, words: &[&str]) -> String {
        let db = format!("--db=unix:{}", self.path("db.sock"));
        run(&[&["ovs-vsctl", "--timeout=60", &db], words].concat())
    }

    /// Role and state of a port, in its words.
    fn port(&self, name: &str) -> (String, String) {
        let status = self.vsctl(&["get", "port", name, "rstp_status"]);
        let word = |key: &str| {
            let (_, rest) = status.split_once(&format!("{key}="))?;
            Some(rest.split([',', '}']).next()?.trim_matches('"').to_string())
        };
        let said = |key| word(key).unwrap_or_default();
        (said("rstp_port_role"), said("rstp_port_state"))
    }
}

impl Drop for Ovs {
    fn drop(&mut self) {
        for d in self.daemons.iter_mut().rev() {
            let _ = d.kill();
            let _ = d.wait();
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// a1, a2, b1, b2, then o1, o2: each one's role and whether it forwards.
type Ring = [(String, bool); 6];

fn ring(words: &str) -> Ring {
    let mut all = words.split(' ').map(|word| {
        let forwards = matches!(word, "Root" | "Designated");
        (word.to_string(), forwards)
    });
    std::array::from_fn(|_| all.next().unwrap())
}

fn look(ours: &[&mut Ours], ovs: &Ovs) -> Ring {
    let mine = |which: usize, port| {
        let (role, state) = ours[which].port(port);
        (format!("{role:?}"), state == PortState::Forwarding)
    };
    let theirs = |port| {
        let (role, state) = ovs.port(port);
        (role, state == "Forwarding")
    };
    [
        mine(0, 1),
        mine(0, 2),
        mine(1, 1),
        mine(1, 2),
        theirs("o1"),
        theirs("o2"),
    ]
}

#[test]
fn a_ring_with_open_vswitch() {
    if !is_root() {
        return;
    }
    if !Path::new(SCHEMA).exists() || !Path::new("/usr/sbin/ovs-vswitchd").exists() {
        skip("Open vSwitch is not there: apt-get install openvswitch-switch");
        return;
    }
    let ns = Ns::new("ovs");
    ns.veth("a1", "o1");
    ns.veth("b1", "o2");
    ns.veth("a2", "b2");
    let ovs = Ovs::new(&ns);
    ovs.vsctl(&[
        "add-br",
        "br0",
        "--",
        "set",
        "bridge",
        "br0",
        "datapath_type=netdev",
    ]);
    let hw = "other_config:hwaddr=02:00:00:00:0c:00";
    let id = "other_config:rstp-address=02:00:00:00:0c:00";
    let priority = "other_config:rstp-priority=4096";
    ovs.vsctl(&["set", "bridge", "br0", "rstp_enable=true", hw, id, priority]);
    for port in ["o1", "o2"] {
        let cost = format!("other_config:rstp-path-cost={COST}");
        ovs.vsctl(&["add-port", "br0", port, "--", "set", "port", port, &cost]);
    }
    let mut a = Ours::new(&ns, Config::new([2, 0, 0, 0, 0x0a, 0]), &["a1", "a2"]);
    let mut b = Ours::new(&ns, Config::new([2, 0, 0, 0, 0x0b, 0]), &["b1", "b2"]);

    let ovs_is_root = ring("Root Designated Root Alternate Designated Designated");
    let a_is_root = ring("Designated Designated Alternate Root Root Designated");
    let without_a1 = ring("Disabled Designated Designated Root Disabled Root");
    let both = &mut [&mut a, &mut b];
    until("their root", both, &ovs_is_root, |o| look(o, &ovs));

    both[0].priority(0);
    until("our root", both, &a_is_root, |o| look(o, &ovs));

    ns.ip("link set o1 down");
    both[0].down(1);
    until("a link is cut", both, &without_a1, |o| look(o, &ovs));
    ns.ip("link set o1 up");
    both[0].up(1);
    until("and there again", both, &a_is_root, |o| look(o, &ovs));

    both[0].priority(32_768);
    until("their root again", both, &ovs_is_root, |o| look(o, &ovs));

    // the root's own priority, by them: A has the least address of those with the default one
    ovs.vsctl(&["set", "bridge", "br0", "other_config:rstp-priority=61440"]);
    let a_by_address = ring("Designated Designated Designated Root Root Alternate");
    until("their priority is less", both, &a_by_address, |o| {
        look(o, &ovs)
    });
    for one in both {
        let view = one.bridge.show();
        assert!(
            view.ports
                .iter()
                .all(|p| !p.stp_neighbour && p.counters.refused == 0)
        );
        assert_eq!(view.cut_short, 0);
    }
}

/// a1, a2, and whether k1, k2 forward.
fn with_kernel(ours: &[&mut Ours], ns: &Ns) -> (String, String) {
    let mine = format!("{:?} {:?}", ours[0].port(1), ours[0].port(2));
    let theirs = ["k1", "k2"].map(|port| {
        let said = run(&["bridge", "-n", &ns.0, "link", "show", "dev", port]);
        let (_, rest) = said.split_once("state ").unwrap_or_default();
        rest.split(' ').next().unwrap_or_default().to_string()
    });
    (mine, theirs.join(" "))
}

#[test]
fn the_kernels_old_protocol() {
    if !is_root() {
        return;
    }
    let ns = Ns::new("stp");
    ns.veth("a1", "k1");
    ns.veth("a2", "k2");
    ns.ip("link add br0 type bridge stp_state 1 priority 4096 forward_delay 400 hello_time 200 max_age 600");
    for port in ["k1", "k2"] {
        ns.ip(&format!("link set {port} master br0"));
        ns.ip(&format!("link set {port} type bridge_slave cost {COST}"));
    }
    ns.ip("link set br0 addrgenmode none up");
    let config = Config {
        max_age: 6,
        forward_delay: 4,
        ..Config::new([2, 0, 0, 0, 0x0a, 0])
    };
    let mut a = Ours::new(&ns, config, &["a1", "a2"]);
    let ours = &mut [&mut a];
    let want = |a1: &str, a2: &str, kernel: &str| {
        let of = |role: &str| match role {
            "Alternate" | "Disabled" => format!("({role}, Discarding)"),
            _ => format!("({role}, Forwarding)"),
        };
        (format!("{} {}", of(a1), of(a2)), kernel.to_string())
    };
    let theirs = want("Root", "Alternate", "forwarding forwarding");
    until("their root", ours, &theirs, |o| with_kernel(o, &ns));
    assert!(ours[0].bridge.show().ports.iter().all(|p| p.stp_neighbour));

    ours[0].priority(0);
    let mine = want("Designated", "Designated", "forwarding blocking");
    until("our root", ours, &mine, |o| with_kernel(o, &ns));

    ns.ip("link set k1 down");
    ours[0].down(1);
    let second = want("Disabled", "Designated", "disabled forwarding");
    until("a link is cut", ours, &second, |o| with_kernel(o, &ns));
    ns.ip("link set k1 up");
    ours[0].up(1);
    until("and there again", ours, &mine, |o| with_kernel(o, &ns));

    ours[0].priority(61_440);
    until("their root again", ours, &theirs, |o| with_kernel(o, &ns));
    assert_eq!(ours[0].bridge.show().cut_short, 0);
}
