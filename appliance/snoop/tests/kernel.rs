// SPDX-License-Identifier: Apache-2.0
//! The judge: a bridge of the kernel that snoops. Both hear the same random messages; who is a member, where routers are,
//! and who gets a frame to a group has to be the same. Needs root: without it the test says so and passes.
//!
//! ```text
//!   h1 ── b1 ─┐
//!   h2 ── b2 ─┤ br0 (mcast_snooping 1), one namespace       the same frames ──► Snooping, in this process
//!   h3 ── b3 ─┘
//! ```
//!
//! Timers are the same in both and run in real time: after each message it is waited until both say the same.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{group, hello, host, join, leave, mac, query, report};
use tandem_linux::{clock, ifreq, netns, packet_socket};
use tandem_snoop::{Family, SECOND, Set, Snooping, Times};

/// What is waited for at most, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);
const VLAN: u16 = 1;
const PORTS: u16 = 3;
const MS: u64 = SECOND / 1000;

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
    fn ip(&self, words: &str) {
        let mut all = vec!["ip", "-n", &self.0];
        all.extend(words.split(' '));
        run(&all);
    }

    fn bridge(&self, words: &str) -> serde_json::Value {
        let mut all = vec!["bridge", "-n", &self.0, "-j"];
        all.extend(words.split(' '));
        serde_json::from_str(&run(&all)).unwrap()
    }
}

impl Drop for Ns {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

type Socket = (packet_socket::PacketRx, packet_socket::PacketTx);

struct Both {
    ns: Ns,
    hosts: BTreeMap<u16, Socket>,
    ours: Snooping,
    six: bool,
    marks: u64,
}

/// Members and ports of routers.
type State = (BTreeSet<(IpAddr, u16)>, BTreeSet<u16>);

impl Both {
    fn new(six: bool, immediate: bool) -> Both {
        let name = format!(
            "tns-{}-{}{}",
            std::process::id(),
            u8::from(six),
            u8::from(immediate)
        );
        run(&["ip", "netns", "add", &name]);
        let ns = Ns(name);
        ns.ip("link add br0 type bridge mcast_snooping 1 forward_delay 0 \
               mcast_last_member_interval 20 mcast_last_member_count 2 mcast_igmp_version 2 mcast_mld_version 1");
        ns.ip("link set br0 addrgenmode none up");
        let mut hosts = BTreeMap::new();
        for n in 1..=PORTS {
            ns.ip(&format!("link add h{n} type veth peer name b{n}"));
            // nobody else is to say anything here
            ns.ip(&format!("link set h{n} addrgenmode none up"));
            ns.ip(&format!("link set b{n} master br0 addrgenmode none up"));
            if immediate {
                ns.ip(&format!(
                    "link set b{n} type bridge_slave mcast_fast_leave on"
                ));
            }
            let socket = netns::run_in_named(Some(&ns.0), || {
                let index = ifreq::ControlSocket::open()?
                    .link(&format!("h{n}"))?
                    .ifindex;
                packet_socket::open(index, 1500)
            });
            hosts.insert(n, socket.unwrap());
        }
        let times = Times {
            last_member: 200 * MS,
            ..Times::default()
        };
        let mut ours = Snooping::new(mac(99), times);
        let set = Set {
            immediate,
            ..Set::default()
        };
        let all = Family::ALL.map(|f| ((VLAN, f), set.clone())).into();
        let _ = ours.configure(&all, clock::now_ns());
        Both {
            ns,
            hosts,
            ours,
            six,
            marks: 0,
        }
    }

    fn family(&self) -> Family {
        if self.six { Family::V6 } else { Family::V4 }
    }

    fn put(&mut self, port: u16, frame: &[u8]) {
        let tx = &mut self.hosts.get_mut(&port).unwrap().1;
        tx.queue(&[0; packet_socket::VNET_HDR_LEN], frame);
        tx.flush();
    }

    fn say(&mut self, port: u16, frame: &[u8]) {
        self.put(port, frame);
        let _ = self.ours.receive(VLAN, port, frame, clock::now_ns());
    }

    fn kernels(&self) -> State {
        let port = |v: &serde_json::Value| {
            let name = v["port"].as_str()?;
            name.strip_prefix('b').and_then(|n| n.parse::<u16>().ok())
        };
        let all = self.ns.bridge("-d mdb show");
        let (mut members, mut routers) = (BTreeSet::new(), BTreeSet::new());
        for m in all[0]["mdb"].as_array().into_iter().flatten() {
            let group = m["grp"].as_str().and_then(|g| g.parse::<IpAddr>().ok());
            members.extend(group.zip(port(m)));
        }
        for r in all[0]["router"]["br0"].as_array().into_iter().flatten() {
            routers.extend(port(r));
        }
        members.retain(|m| m.0.is_ipv6() == self.six);
        (members, routers)
    }

    fn our_state(&mut self) -> State {
        let _ = self.ours.tick(clock::now_ns());
        let family = self.family();
        let members = self.ours.members().map(|m| (m.1, m.2)).collect();
        let routers = self.ours.routers(VLAN, family).into_keys().collect();
        (members, routers)
    }

    /// Who gets a frame to a group that comes from a port. A broadcast behind it says when all have had it.
    fn got(&mut self, port: u16, to: IpAddr) -> BTreeSet<u16> {
        self.marks += 1;
        let mark = self.marks.to_be_bytes();
        let mut frame = common::frame(port, host(self.six, port as u8), to, vec![0; 8]);
        // UDP, not a message of groups, and without the options those have
        match self.six {
            false => {
                frame[14] = 0x45;
                frame[17] = 28;
                frame[23] = 17;
                frame[24..26].fill(0);
                let words = frame[14..34].chunks(2);
                let mut sum: u32 = words.map(|c| u32::from(c[0]) << 8 | u32::from(c[1])).sum();
                sum = (sum & 0xffff) + (sum >> 16);
                frame[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
            }
            true => frame[20] = 17,
        }
        // the kernel takes off what is behind the packet
        frame.truncate(if self.six { 70 } else { 42 });
        let at = frame.len() - 8;
        frame[at..].copy_from_slice(&mark);
        let mut end = vec![0xff; 6];
        end.extend(mac(port));
        end.extend([0x88, 0xb5]);
        end.extend(mark);
        end.resize(60, 0);
        self.put(port, &frame);
        self.put(port, &end);
        let mut got = BTreeSet::new();
        let mut scratch = vec![0; 70_000];
        for (n, (rx, _)) in self.hosts.iter_mut().filter(|h| *h.0 != port) {
            let begun = Instant::now();
            let mut ended = false;
            while !ended {
                assert!(begun.elapsed() < PATIENCE, "a broadcast is lost");
                rx.receive(64, &mut scratch, 0, &mut |f| {
                    let octets = &f.mem[f.start..f.end];
                    if octets == frame {
                        got.insert(*n);
                    }
                    ended |= octets == end;
                });
            }
        }
        got
    }

    /// The same, as we have it.
    fn ours_get(&mut self, port: u16, to: IpAddr) -> BTreeSet<u16> {
        let (members, routers) = self.our_state();
        let all = (1..=PORTS).filter(|p| *p != port);
        let there = self.ours.querier(VLAN, self.family()).1;
        all.filter(|p| !there || members.contains(&(to, *p)) || routers.contains(p))
            .collect()
    }

    /// Waits until both say the same.
    fn agree(&mut self, after: &str) {
        let begun = Instant::now();
        loop {
            let (kernels, ours) = (self.kernels(), self.our_state());
            if kernels == ours {
                return;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "after {after}: the kernel {kernels:?}, we {ours:?}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn agree_on_frames(&mut self, after: &str) {
        for (port, n) in (1..=PORTS).flat_map(|p| (1..=4).map(move |n| (p, n))) {
            let to = group(self.six, n);
            let begun = Instant::now();
            loop {
                let (kernels, ours) = (self.got(port, to), self.ours_get(port, to));
                if kernels == ours {
                    break;
                }
                let late = begun.elapsed() >= PATIENCE;
                assert!(
                    !late,
                    "after {after}: {to} from {port}: the kernel {kernels:?}, we {ours:?}"
                );
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// Numbers that look random (xorshift).
struct Draw(u64);

impl Draw {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

fn history(seed: u64, steps: usize) {
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (six, immediate) = (draw.next(2) == 1, draw.next(3) == 0);
    let mut both = Both::new(six, immediate);
    both.agree_on_frames("nothing");
    for step in 0..steps {
        let port = 1 + draw.next(u64::from(PORTS)) as u16;
        let n = 1 + draw.next(3) as u8;
        let g = group(six, n);
        let (word, frame) = match draw.next(20) {
            0..7 => ("join", join(port, g)),
            7..11 => ("leave", leave(port, g)),
            11..14 => {
                let kind = 1 + draw.next(7) as u8;
                ("report", report(port, kind, g, draw.next(3) as u8))
            }
            14..17 => {
                let from = host(six, 1 + draw.next(3) as u8);
                ("query", query(port, from, None, 100 * (1 + draw.next(4))))
            }
            17..19 => (
                "query of one",
                query(port, host(six, 9), Some(g), 100 * (1 + draw.next(3))),
            ),
            _ if !six => ("hello", hello(port)),
            _ => continue,
        };
        let what =
            format!("seed {seed}, step {step}: {word} of {g} at {port} (immediate: {immediate})");
        both.say(port, &frame);
        both.agree(&what);
        if draw.next(8) == 0 {
            both.agree_on_frames(&what);
        }
    }
    both.agree_on_frames("all of it");
    // who goes with a port
    both.ns.ip("link set b2 down");
    let _ = both.ours.port_down(2);
    both.agree("a port is down");
}

#[test]
fn as_the_kernels_bridge() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: making network namespaces needs root");
        return;
    }
    for seed in 1..=30 {
        history(seed, 40);
    }
}
