//! A ping from VLAN to VLAN: the database, two TAPs of a kernel, its routes, the very core, the chip in the process.
//! Needs root: without it the test says so and passes.
//!
//! ```text
//!   a, 10.10.0.2 ── port 1 (access 10) ┌──────┐ port 3 (trunk 10, 20) ── b, 10.20.0.2, with the tag of VLAN 20
//!                                      │ chip │
//!                                      └─┬──┬─┘
//!                     trapped, flooded ▲ │  │ ▼ as the database has it
//!                         vlan10, 10.10.0.1    vlan20, 10.20.0.1    a kernel's namespace
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::os::fd::AsFd as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded};
use tandem_core::io::{Command as ToIo, Signals};
use tandem_core::plant::Front;
use tandem_core::source::{Source, Write, WriteBack};
use tandem_core::{Core, Seat, Sources};
use tandem_linux::netns;
use tandem_netlink::{Config, NetlinkSource};
use tandem_packet::{Buffer, Frame, Offload};
use tandem_pipeline::{CpuMeta, Event, Sink};
use tandem_sal::Attach;
use tandem_store::model::SourceId;
use tandem_twin::chip::{Shared, Sizes};
use tandem_twin::random::Random;
use tandem_twin::wired;
use tandem_vlans::{
    Database, KernelTaps, Mode, Port, Switch, TapMaker as _, TapOf, Teller, Vlan, Vlans, tagged,
    untagged,
};

const VLANS: SourceId = SourceId(9);
const A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
const B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];
/// What is waited for at most, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

/// What leaves the chip, what its CPU gets, and whom it has learned.
#[derive(Default)]
struct Out {
    wire: Vec<(u16, Vec<u8>)>,
    cpu: Vec<(u16, Vec<u8>)>,
    learned: Vec<(u16, [u8; 6], u16)>,
}

impl Sink for Out {
    fn tx(&mut self, port: u16, frame: &Frame<'_>) {
        self.wire.push((port, frame.bytes().to_vec()));
    }

    fn cpu(&mut self, meta: CpuMeta, frame: &Frame<'_>) {
        self.cpu.push((meta.port, frame.bytes().to_vec()));
    }

    fn event(&mut self, event: Event) {
        if let Event::Learn { fid, mac, port, .. } = event {
            self.learned.push((fid, mac, port));
        }
    }
}

struct World {
    core: Core,
    chip: Shared,
    commands: Receiver<ToIo>,
    signals: Arc<Signals>,
    switch: Switch,
    taps: KernelTaps,
    teller: Option<Teller>,
    writer: Box<dyn WriteBack>,
    begun: Instant,
    /// Frames that the CPU got.
    trapped: usize,
}

fn ip(args: &str) {
    let done = Command::new("ip").args(args.split(' ')).status().unwrap();
    assert!(done.success(), "ip {args}");
}

fn seat(source: Arc<dyn Source + Sync>, ports: &[u16]) -> Seat {
    Seat {
        source,
        ports: ports.to_vec(),
        hold_ns: u64::MAX,
    }
}

fn database() -> Database {
    let mut d = Database::new([2, 0, 0, 0, 0, 0x99]);
    let trunk = Mode::Trunk {
        native: 1,
        allowed: [10, 20].into_iter().collect(),
    };
    for (n, mode) in [(1, Mode::Access(10)), (2, Mode::Access(20)), (3, trunk)] {
        let port = Port {
            name: format!("Gi1/0/{n}"),
            mac: [2, 0, 0, 0, 1, n as u8],
            mtu: 1500,
            up: true,
            mode,
        };
        d.set_port(n, port).unwrap();
    }
    for vid in [10, 20] {
        let (name, active) = (format!("VLAN{vid:04}"), true);
        d.set_vlan(vid, Vlan { name, active }).unwrap();
    }
    d
}

impl World {
    fn new() -> World {
        ip("link set lo up");
        for (name, value) in [
            ("ipv4/ip_forward", "1"),
            ("ipv4/conf/all/send_redirects", "0"),
            ("ipv4/conf/default/send_redirects", "0"),
            ("ipv4/conf/all/rp_filter", "0"),
            ("ipv4/conf/default/rp_filter", "0"),
        ] {
            std::fs::write(format!("/proc/sys/net/{name}"), value).unwrap();
        }
        let switch = Switch::new(database());
        let mut taps = KernelTaps::new();
        for vid in [10, 20] {
            switch.route(vid, &mut taps).unwrap();
            // however long a turn takes, no neighbour is given up
            for (name, value) in [
                ("base_reachable_time_ms", "3600000"),
                ("delay_first_probe_time", "3600"),
                ("ucast_solicit", "1000"),
                ("mcast_solicit", "1000"),
            ] {
                let path = format!("/proc/sys/net/ipv4/neigh/vlan{vid}/{name}");
                std::fs::write(path, value).unwrap();
            }
            ip(&format!("address add 10.{vid}.0.1/24 dev vlan{vid}"));
            ip(&format!("link set vlan{vid} up"));
        }
        let kernel = NetlinkSource::start(Config::default()).unwrap();
        let (vlans, teller) = switch.source(VLANS, None);
        let writer = vlans.writer().unwrap();
        let chip = Shared::new(Sizes::BIG.firmware(3).unwrap(), Random::new(1));
        chip.lock().cables(&[]);
        let front = |port| Front {
            port,
            name: format!("Gi1/0/{port}"),
            ifindex: Database::device(port),
        };
        let seats = vec![
            seat(Arc::new(kernel), &[]),
            seat(Arc::new(vlans), &[1, 2, 3]),
        ];
        let front = (1..=3).map(front).collect();
        let wired = wired::core(&chip, front, Attach::Cold, Sources::new(seats).unwrap());
        let wired = wired.unwrap();
        World {
            core: wired.core,
            chip,
            commands: wired.commands,
            signals: wired.signals,
            switch,
            taps,
            teller: Some(teller),
            writer,
            begun: Instant::now(),
            trapped: 0,
        }
    }

    fn turn(&mut self) {
        if let Some(teller) = &mut self.teller {
            teller.turn();
        }
        self.core.turn(self.now());
        for command in self.commands.try_iter() {
            if let ToIo::Barrier(token) = command {
                self.signals.passed.fetch_max(token, Ordering::Release);
            }
        }
    }

    fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64 + 1
    }

    /// A frame comes in by a port: what leaves by others at once.
    fn send(&mut self, port: u16, frame: &[u8]) -> Vec<(u16, Vec<u8>)> {
        let (mut buffer, mut out) = (Buffer::new(), Out::default());
        assert!(buffer.set(frame));
        let now = self.now();
        tandem_pipeline::process(
            &mut self.chip.lock().firmware.state,
            &mut buffer.frame(Offload::NONE),
            port,
            now,
            &mut out,
        );
        // as the packet thread has it: what was learned is written back before the frame is given on
        let writes: Vec<Write> = out
            .learned
            .iter()
            .map(|(fid, mac, port)| Write::FdbLearned {
                ifindex: Database::device(*port),
                mac: *mac,
                vlan: self.core.store().domain(*fid).unwrap().vlan,
            })
            .collect();
        self.writer
            .write(&writes, &mut |_, e| panic!("{e}"))
            .unwrap();
        for (port, frame) in out.cpu {
            self.trapped += 1;
            self.up(port, &frame);
        }
        out.wire
    }

    /// A frame that the CPU got goes to its VLAN's TAP.
    fn up(&mut self, port: u16, frame: &[u8]) {
        let (tag, bare) = untagged(frame).unwrap();
        let vid = self.switch.change(|d| d.vlan_at(port, tag)).unwrap();
        if let Some(tap) = self.taps.of(vid) {
            tap.write(&bare).unwrap();
        }
    }

    /// What the kernel sends, by the ports where it leaves.
    fn down(&mut self) -> Vec<(u16, Vec<u8>)> {
        let (mut out, mut buffer) = (Vec::new(), [0; 2048]);
        for (vid, tap) in self.taps.iter() {
            while let Ok(n) = tap.read(&mut buffer) {
                let frame = &buffer[..n];
                let to = frame[..6].try_into().unwrap();
                for (port, tag) in self.switch.change(|d| d.ways(vid, to)) {
                    let frame = match tag {
                        true => tagged(frame, vid).unwrap(),
                        false => frame.to_vec(),
                    };
                    out.push((port, frame));
                }
            }
        }
        out
    }

    /// Both stations answer what they are asked, until a ping of a's has come back; how many frames the CPU got for it.
    fn ping(&mut self, seq: u16, router: [u8; 6]) -> usize {
        let until = Instant::now() + PATIENCE;
        let before = self.trapped;
        let ask = echo(router, A, [10, 10, 0, 2], [10, 20, 0, 2], 8, seq);
        let (mut wire, mut asked) = (self.send(1, &ask), Instant::now());
        loop {
            assert!(Instant::now() < until, "no answer to ping {seq}");
            if asked.elapsed() > Duration::from_secs(1) {
                // the kernel keeps few packets while it asks for a neighbour, and not for long
                (wire, asked) = (self.send(1, &ask), Instant::now());
            }
            for (port, frame) in std::mem::take(&mut wire) {
                let (tag, frame) = untagged(&frame).unwrap();
                let answer = match (port, tag) {
                    (1, 0) if frame[..6] == A && is_echo(&frame, 0, seq) => {
                        assert_eq!(frame[26..34], [10, 20, 0, 2, 10, 10, 0, 2]);
                        assert_eq!(frame[22], 63, "routed once");
                        return self.trapped - before;
                    }
                    (1, 0) => answer(&frame, A, [10, 10, 0, 2]),
                    (3, 20) => answer(&frame, B, [10, 20, 0, 2]).and_then(|f| tagged(&f, 20)),
                    // flooded
                    (2, 0) | (3, 10) => None,
                    other => panic!("{other:?}: {frame:02x?}"),
                };
                if let Some(answer) = answer {
                    wire.extend(self.send(port, &answer));
                }
            }
            self.turn();
            wire.extend(self.down());
            if wire.is_empty() {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }

    /// Pings, until one passes without the CPU.
    fn until_the_chip_routes(&mut self, router: [u8; 6]) {
        let until = Instant::now() + PATIENCE;
        for seq in 0.. {
            if self.ping(seq, router) == 0 {
                return;
            }
            assert!(Instant::now() < until, "the CPU has a part in each ping");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn settle(&mut self) {
        let until = Instant::now() + PATIENCE;
        self.turn();
        while !self.core.settled() {
            assert!(Instant::now() < until, "the core does not settle");
            self.turn();
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// What the sources had to say until now has come, and is done.
    fn sync(&mut self) {
        let until = Instant::now() + PATIENCE;
        let (to, answers) = bounded(1);
        let done = Box::new(move |done| to.send(done).unwrap());
        self.core.sync(u64::MAX, done);
        loop {
            assert!(Instant::now() < until, "the core does not answer");
            self.turn();
            if let Ok(done) = answers.try_recv() {
                done.unwrap();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn vlans_come(&mut self) -> Vlans {
        let (vlans, teller) = self.switch.source(VLANS, None);
        self.teller = Some(teller);
        vlans
    }
}

fn sum(words: &[u8]) -> [u8; 2] {
    let words = words
        .chunks(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let sum: u32 = words.sum();
    let sum = (sum >> 16) + (sum & 0xffff);
    (!((sum >> 16) + (sum & 0xffff)) as u16).to_be_bytes()
}

/// An ICMP echo request (8) or its answer (0).
fn echo(to: [u8; 6], from: [u8; 6], src: [u8; 4], dst: [u8; 4], kind: u8, seq: u16) -> Vec<u8> {
    let mut ip = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0];
    ip.extend(src.into_iter().chain(dst));
    let sum_of_header = sum(&ip);
    ip[10..12].copy_from_slice(&sum_of_header);
    let mut icmp = vec![kind, 0, 0, 0, 0, 7];
    icmp.extend(seq.to_be_bytes());
    let sum_of_it = sum(&icmp);
    icmp[2..4].copy_from_slice(&sum_of_it);
    let mut frame = [&to[..], &from, &[8, 0], &ip, &icmp].concat();
    frame.resize(60, 0);
    frame
}

fn is_echo(frame: &[u8], kind: u8, seq: u16) -> bool {
    frame.len() >= 42
        && frame[12..14] == [8, 0]
        && frame[23] == 1
        && frame[34] == kind
        && frame[40..42] == seq.to_be_bytes()
}

/// What a station says to an ARP request for its address, or to an echo request.
fn answer(frame: &[u8], mac: [u8; 6], addr: [u8; 4]) -> Option<Vec<u8>> {
    let from: [u8; 6] = frame[6..12].try_into().unwrap();
    if frame[12..14] == [8, 6] && frame[21] == 1 && frame[38..42] == addr {
        let head = [&from[..], &mac, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2]].concat();
        let mut reply = [&head[..], &mac, &addr, &frame[22..28], &frame[28..32]].concat();
        reply.resize(60, 0);
        return Some(reply);
    }
    let asks = frame.len() >= 42 && frame[12..14] == [8, 0] && frame[23] == 1 && frame[34] == 8;
    if !asks || frame[..6] != mac || frame[30..34] != addr {
        return None;
    }
    let src: [u8; 4] = frame[26..30].try_into().unwrap();
    let seq = u16::from_be_bytes([frame[40], frame[41]]);
    Some(echo(from, mac, addr, src, 0, seq))
}

/// A namespace that goes with this value.
struct Space(String);

impl Drop for Space {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

#[test]
fn a_ping_is_routed_between_two_vlans_of_the_database() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: making network namespaces needs root");
        return;
    }
    let space = Space(format!("tnt-{}-vlans", std::process::id()));
    ip(&format!("netns add {}", space.0));
    let ns = netns::open(&space.0).unwrap();
    netns::run_in(ns.as_fd(), || {
        let mut w = World::new();
        let TapOf { mac: router, .. } = w.switch.change(|d| d.tap(10)).unwrap();
        assert_eq!(w.switch.change(|d| d.stations().count()), 0);
        w.settle();
        w.until_the_chip_routes(router);
        let known: Vec<_> = w.switch.change(|d| d.stations().collect());
        assert_eq!(known, [(10, A, 1), (20, B, 3)]);

        // the database's voice is lost, and comes back: the chip goes on meanwhile
        w.teller = None;
        (0..20).for_each(|_| w.turn());
        assert_eq!(w.ping(1000, router), 0);
        let vlans = w.vlans_come();
        w.core.replace_source(Arc::new(vlans)).unwrap();
        (0..20).for_each(|_| w.turn());
        assert_eq!(w.ping(1001, router), 0);

        // so is the kernel's
        let kernel = NetlinkSource::start(Config::default()).unwrap();
        w.core.replace_source(Arc::new(kernel)).unwrap();
        w.sync();
        assert_eq!(w.ping(1002, router), 0);

        // `no interface vlan 20`: nothing routes there, and the VLAN is bridged still
        w.switch.unroute(20, &mut w.taps).unwrap();
        let until = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < until);
            w.turn();
            let ask = echo(router, A, [10, 10, 0, 2], [10, 20, 0, 2], 8, 2000);
            if w.send(1, &ask).is_empty() && w.down().iter().all(|(port, _)| *port == 1) {
                break;
            }
        }
        let bare = echo(B, A, [10, 20, 0, 9], [10, 20, 0, 2], 8, 2001);
        let out = w.send(2, &bare);
        assert_eq!(out, [(3, tagged(&bare, 20).unwrap())]);
        Ok(())
    })
    .unwrap();
}

/// Who deletes a TAP by hand, or moves it away, has it again by `interface vlan` said once more.
#[test]
fn a_tap_that_is_gone_is_had_again() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: making network namespaces needs root");
        return;
    }
    let [space, other] =
        ["taps", "away"].map(|name| Space(format!("tnt-{}-{name}", std::process::id())));
    for s in [&space, &other] {
        ip(&format!("netns add {}", s.0));
    }
    let ns = netns::open(&space.0).unwrap();
    netns::run_in(ns.as_fd(), || {
        let mut taps = KernelTaps::new();
        let first = taps.make(10).unwrap();
        assert_eq!(taps.make(10), Ok(first), "it is there");
        ip("link del vlan10");
        let second = taps.make(10).unwrap();
        ip("link set vlan10 up");
        assert_ne!(first.device, second.device);
        ip(&format!("link set vlan10 netns {}", other.0));
        taps.make(10).unwrap();
        ip("link set vlan10 up");
        assert_eq!(taps.iter().count(), 1);
        taps.remove(10);
        Ok(())
    })
    .unwrap();
}
