//! Ports on real netdevs: veth pairs between namespaces of their own.
//!
//! ```text
//!   ns host1            ns switch               ns host2
//!   h1 10.9.9.1 ◄────► p1      p2 ◄────► h2 10.9.9.2
//!                       └ a two-port repeater ┘
//! ```
//!
//! Needs root; says so and passes where it is not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tandem_linux::{netns, packet_socket};
use tandem_packet::Frame;
use tandem_ports::{Cable, Change, Opened, RxPort, SCRATCH, TxPort};

fn sh(command: &str) -> bool {
    Command::new("sh")
        .args(["-c", command])
        .output()
        .is_ok_and(|o| o.status.success())
}

fn must(command: &str) {
    let out = Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(
        out.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
}

fn root() -> bool {
    let root = sh("test $(id -u) = 0 && ip netns list");
    if !root {
        eprintln!("skipped: needs root and iproute2 to make network namespaces");
    }
    root
}

/// The same tests on both kinds of sockets.
macro_rules! on_both {
    ($($name:ident)*) => {
        mod af_packet {
            $(#[test]
            fn $name() {
                if super::root() {
                    super::$name(super::Net::new("af_packet"));
                }
            })*
        }
        mod af_xdp {
            $(#[test]
            fn $name() {
                if super::root() && super::has_xdp() {
                    super::$name(super::Net::new("af_xdp"));
                }
            })*
        }
    };
}

on_both! {
    host_behind_a_port_gets_no_answer
    what_is_to_come_can_be_seen
    tags_keep_their_tpid
    what_leaves_keeps_its_order
    streams_with_default_offloads
    link_follows_the_netdev
}

/// AF_XDP can be had; a kernel from 6.8 on that shows its types must pass the self-test.
fn has_xdp() -> bool {
    match tandem_ports::self_test::passed() {
        Ok(_) => true,
        Err(why) => {
            let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
            let mut parts = release.split('.').map(|n| n.parse().unwrap_or(0));
            let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
            let types = std::path::Path::new(tandem_linux::btf::KERNEL).exists();
            assert!(version < (6, 8) || !types, "{why}");
            eprintln!("skipped: {why}");
            false
        }
    }
}

/// Three namespaces with two veth pairs, removed when dropped.
struct Net {
    name: String,
    kind: &'static str,
}

impl Net {
    fn new(kind: &'static str) -> Net {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "asicd-p{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let net = Net { name, kind };
        for ns in ["h1", "sw", "h2"] {
            must(&format!("ip netns add {}", net.ns(ns)));
        }
        net.pair(1);
        net.pair(2);
        net
    }

    fn ns(&self, part: &str) -> String {
        format!("{}-{part}", self.name)
    }

    fn pair(&self, n: u8) {
        let (h, sw) = (self.ns(&format!("h{n}")), self.ns("sw"));
        must(&format!(
            "ip link add p{n} netns {sw} type veth peer name h{n} netns {h} && \
             ip -n {h} addr add 10.9.9.{n}/24 dev h{n} && ip -n {h} link set h{n} up"
        ));
    }

    fn cable_by(&self, kind: &str, n: u8) -> Cable {
        let spec = format!("swp{n}={kind}:p{n}@{}", self.ns("sw"));
        Cable::new(spec.parse().unwrap(), 0)
    }

    /// The port opened, by the kind of socket that was asked for.
    fn open(&self, n: u8) -> (Cable, Opened) {
        self.open_by(self.kind, n)
    }

    fn open_by(&self, kind: &str, n: u8) -> (Cable, Opened) {
        let (cable, opened) = self.open_any(kind, n);
        assert_eq!(opened.note, None);
        assert_eq!(matches!(opened.rx, RxPort::Xdp(_)), kind == "af_xdp");
        (cable, opened)
    }

    fn open_any(&self, kind: &str, n: u8) -> (Cable, Opened) {
        let mut cable = self.cable_by(kind, n);
        match cable.check().unwrap() {
            Some(Change::Opened(o)) => (cable, *o),
            _ => panic!("not opened"),
        }
    }

    /// A raw socket in a host, as a host's own packet generator.
    fn raw(&self, n: u8) -> (packet_socket::PacketRx, packet_socket::PacketTx) {
        netns::run_in_named(Some(&self.ns(&format!("h{n}"))), || {
            let index = tandem_linux::ifreq::ControlSocket::open()?
                .link(&format!("h{n}"))?
                .ifindex;
            packet_socket::open(index, 1500)
        })
        .unwrap()
    }

    /// One of several echoes is answered; `no`: none is, in a second.
    fn ping(&self, no: bool) -> bool {
        let how = if no { "-c 2 -i 0.2 -W 1" } else { "-c 1 -w 60" };
        let h1 = self.ns("h1");
        sh(&format!("ip netns exec {h1} ping -n {how} 10.9.9.9"))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for ns in ["h1", "sw", "h2"] {
            sh(&format!("ip netns del {}", self.ns(ns)));
        }
    }
}

/// How long what is to come is waited for: the end of a test that hangs, and no verdict on a machine that has other work.
const PATIENCE: Duration = Duration::from_secs(60);

fn wait(fd: std::os::fd::BorrowedFd<'_>, ms: i64) {
    let mut fds = [rustix::event::PollFd::new(
        &fd,
        rustix::event::PollFlags::IN,
    )];
    let time = rustix::time::Timespec {
        tv_sec: ms / 1000,
        tv_nsec: (ms % 1000) * 1_000_000,
    };
    let _ = rustix::event::poll(&mut fds, Some(&time));
}

/// Programs on an interface, as `ip link` shows them.
fn has_program(ns: &str, iface: &str) -> bool {
    sh(&format!(
        "ip -n {ns} -d link show {iface} | grep -q prog/xdp"
    ))
}

/// What a port says of itself next; whoever waits for that is woken for other things as well.
fn change(cable: &mut Cable) -> Change {
    let end = Instant::now() + PATIENCE;
    loop {
        match cable.check().unwrap() {
            Some(change) => return change,
            None => wait(cable.notify_fd().unwrap(), 1000),
        }
        assert!(Instant::now() < end, "nothing changed");
    }
}

/// Receives until `accept` says yes.
fn receive_one(rx: &mut RxPort, mut accept: impl FnMut(&mut Frame<'_>) -> bool) -> bool {
    let mut scratch = vec![0; SCRATCH];
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let mut found = false;
        rx.receive(0, 64, &mut scratch, &mut |f: &mut Frame<'_>| {
            found |= accept(f)
        });
        if found {
            return true;
        }
        wait(rx.fd().unwrap(), 50);
    }
    false
}

/// Passes every frame from one port to the other until stopped.
struct Repeater {
    stop: Arc<AtomicBool>,
    big: Arc<AtomicU64>,
    partial: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Repeater {
    fn start(a: Opened, b: Opened) -> Repeater {
        let stop = Arc::new(AtomicBool::new(false));
        let big = Arc::new(AtomicU64::new(0));
        let partial = Arc::new(AtomicU64::new(0));
        let (s, g, p) = (stop.clone(), big.clone(), partial.clone());
        let thread = std::thread::spawn(move || {
            let mut scratch = vec![0; SCRATCH];
            let (mut rx1, mut tx1) = (a.rx, a.tx);
            let (mut rx2, mut tx2) = (b.rx, b.tx);
            let mut pass = |rx: &mut RxPort, tx: &mut TxPort| {
                let n = rx.receive(0, 64, &mut scratch, &mut |f: &mut Frame<'_>| {
                    g.fetch_add(u64::from(f.offload.gso.is_some()), Ordering::Relaxed);
                    p.fetch_add(u64::from(f.offload.csum.is_some()), Ordering::Relaxed);
                    tx.queue(f, 0);
                });
                tx.flush();
                n
            };
            while !s.load(Ordering::Relaxed) {
                if pass(&mut rx1, &mut tx2) + pass(&mut rx2, &mut tx1) == 0 {
                    let (f1, f2) = (rx1.fd().unwrap(), rx2.fd().unwrap());
                    let mut fds = [f1, f2].map(|f| {
                        rustix::event::PollFd::from_borrowed_fd(f, rustix::event::PollFlags::IN)
                    });
                    let time = rustix::time::Timespec {
                        tv_sec: 0,
                        tv_nsec: 100_000_000,
                    };
                    let _ = rustix::event::poll(&mut fds, Some(&time));
                }
            }
        });
        Repeater {
            stop,
            big,
            partial,
            thread: Some(thread),
        }
    }
}

impl Drop for Repeater {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn host_behind_a_port_gets_no_answer(net: Net) {
    let sw = net.ns("sw");
    must(&format!(
        "ip -n {sw} addr add 10.9.9.9/24 dev p1 && ip -n {sw} link set p1 up"
    ));
    assert!(net.ping(false), "without the switch the netdev answers");
    let (cable, mut opened) = net.open(1);
    must(&format!("ip -n {} neigh flush all", net.ns("h1")));
    let (mut host, _) = net.raw(1);
    assert!(!net.ping(true), "cut off: no ARP, no echo");
    assert!(
        receive_one(&mut opened.rx, |f| f.bytes().get(12..14) == Some(&[8, 6])),
        "the port itself sees the ARP request"
    );
    // Nor does the local stack send anything by it
    sh(&format!("ip netns exec {sw} ping -n -c 1 -W 1 10.9.9.1"));
    let own = netns::run_in_named(Some(&sw), || {
        tandem_linux::ifreq::ControlSocket::open()?.mac("p1")
    })
    .unwrap();
    let mut scratch = vec![0; SCRATCH];
    let mut leaked = 0;
    host.receive(1000, &mut scratch, 64, &mut |f| {
        leaked += usize::from(f.mem.get(f.start + 6..f.start + 12) == Some(&own));
    });
    assert_eq!(leaked, 0, "frames of the local stack left by the port");
    assert_eq!(has_program(&sw, "p1"), net.kind == "af_xdp");
    drop(opened);
    drop(cable);
    assert!(!has_program(&sw, "p1"));
    assert!(
        net.ping(false),
        "the doors are open again after a clean end"
    );
}

/// Looking ahead shows the frames in order and takes none.
fn what_is_to_come_can_be_seen(net: Net) {
    let (_cable, mut port) = net.open(1);
    let (_host_rx, mut host_tx) = net.raw(1);
    let ours = |bytes: &[u8]| bytes.get(..6) == Some(&[0x02, 0, 0, 0, 0, 0x77]);
    for n in 0..5u8 {
        let mut frame = vec![0x02, 0, 0, 0, 0, 0x77, 0x02, 0, 0, 0, 0, 0x78, 0x12, 0x34];
        frame.extend([n; 50]);
        host_tx.queue(&[0; 10], &frame);
    }
    host_tx.flush();
    let until = Instant::now() + PATIENCE;
    let mut ahead: Vec<Vec<u8>> = Vec::new();
    while ahead.len() < 5 && Instant::now() < until {
        ahead.clear();
        port.rx.lookahead(64, |bytes| {
            if ours(bytes) {
                ahead.push(bytes.to_vec());
            }
        });
    }
    assert_eq!(ahead.len(), 5);
    let mut taken = Vec::new();
    let mut scratch = vec![0; SCRATCH];
    port.rx.receive(0, 64, &mut scratch, &mut |f| {
        if ours(f.bytes()) {
            taken.push(f.bytes().to_vec());
        }
    });
    assert_eq!(ahead, taken);
    port.rx
        .lookahead(64, |bytes| assert!(!ours(bytes), "taken already"));
}

/// A frame with a number, of so many bytes.
fn numbered(number: u32, len: usize) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 0x77, 0x02, 0, 0, 0, 0, 0x78, 0x12, 0x34];
    frame.extend(number.to_be_bytes());
    frame.resize(len, number as u8);
    frame
}

fn put(tx: &mut TxPort, frame: &[u8]) {
    let mut mem = [&[0; 64], frame].concat();
    let end = mem.len();
    let none = tandem_packet::Offload::NONE;
    tx.queue(&Frame::new(&mut mem, 64, end, none), 0);
}

/// Numbers and lengths of our frames that came, until there are `count`.
fn numbers(rx: &mut packet_socket::PacketRx, count: usize) -> Vec<(u32, usize)> {
    let (mut scratch, mut seen) = (vec![0; SCRATCH], Vec::new());
    let until = Instant::now() + PATIENCE;
    while seen.len() < count && Instant::now() < until {
        rx.receive(64, &mut scratch, 64, &mut |f| {
            let bytes = &f.mem[f.start..f.end];
            if bytes.starts_with(&[0x02, 0, 0, 0, 0, 0x77]) {
                let number = u32::from_be_bytes(*bytes[14..].first_chunk().unwrap());
                assert!(bytes == numbered(number, bytes.len()), "{bytes:02x?}");
                seen.push((number, bytes.len()));
            }
        });
    }
    seen
}

/// More frames than any ring has room for, and some that are too long for a slot or a chunk.
fn what_leaves_keeps_its_order(net: Net) {
    must(&format!("ip -n {} link set h1 mtu 9000", net.ns("h1")));
    let (_cable, mut port) = net.open(1);
    let (mut host_rx, _host_tx) = net.raw(1);
    let len = |n: u32| match n % 50 {
        // each way to be sent: alone, among others, several together
        20 | 47..50 => 3000,
        33 => 6000,
        _ => 60 + n as usize % 1400,
    };
    for first in (0..6000).step_by(100) {
        let sent: Vec<_> = (first..first + 100).map(|n| (n, len(n))).collect();
        for (n, len) in &sent {
            put(&mut port.tx, &numbered(*n, *len));
        }
        assert!(port.tx.flush());
        assert_eq!(numbers(&mut host_rx, sent.len()), sent);
    }
    let stats = port.tx.stats();
    assert_eq!((stats.frames, stats.dropped), (6000, 0));
}

/// What a netdev without carrier or that is down does not take is lost and counted, and is not sent later.
#[test]
fn what_a_netdev_refuses_is_lost() {
    if !root() {
        return;
    }
    let net = Net::new("af_packet");
    let (_cable, mut port) = net.open(1);
    let (mut host_rx, _host_tx) = net.raw(1);
    let (sw, h1) = (net.ns("sw"), net.ns("h1"));
    let mut next = 0;
    let mut send = |count: u32| {
        let sent: Vec<_> = (next..next + count).map(|n| (n, 60)).collect();
        for (n, len) in &sent {
            put(&mut port.tx, &numbered(*n, *len));
        }
        assert!(port.tx.flush());
        next += count;
        let stats = port.tx.stats();
        (sent, stats.frames, stats.dropped)
    };
    for (n, what) in [format!("{h1} link set h1"), format!("{sw} link set p1")]
        .iter()
        .enumerate()
    {
        let before = 20 * n as u64;
        let lost = 130 * n as u64;
        let (sent, frames, dropped) = send(10);
        assert_eq!((frames, dropped), (before + 10, lost));
        assert_eq!(numbers(&mut host_rx, 10), sent);
        must(&format!("ip -n {what} down"));
        let (_, frames, dropped) = send(130);
        assert_eq!((frames, dropped), (before + 10, lost + 130), "{what}");
        must(&format!("ip -n {what} up"));
        let (sent, frames, dropped) = send(10);
        assert_eq!((frames, dropped), (before + 20, lost + 130), "{what}");
        assert_eq!(numbers(&mut host_rx, 10), sent, "{what}");
    }
}

fn tags_keep_their_tpid(net: Net) {
    let (_cable, mut port) = net.open(1);
    let (mut host_rx, mut host_tx) = net.raw(1);
    let tags: [&[u8]; 4] = [
        &[0x81, 0x00, 0x20, 0x64],
        &[0x88, 0xa8, 0x00, 0x07],
        &[0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x60, 0x01],
        &[0x81, 0x00, 0x00, 0x00],
    ];
    for tag in tags {
        let mut frame = vec![0x02, 0, 0, 0, 0, 0x77, 0x02, 0, 0, 0, 0, 0x78];
        frame.extend(tag);
        frame.extend([0x12, 0x34]);
        frame.extend((0..64).map(|b| b as u8));
        host_tx.queue(&[0; 10], &frame);
        host_tx.flush();
        assert!(
            receive_one(&mut port.rx, |f| f.bytes() == frame),
            "in: {tag:02x?}"
        );
        // And out again
        let mut mem = [vec![0; 64], frame.clone()].concat();
        let end = mem.len();
        port.tx.queue(
            &Frame::new(&mut mem, 64, end, tandem_packet::Offload::NONE),
            0,
        );
        port.tx.flush();
        let mut scratch = vec![0; SCRATCH];
        let until = Instant::now() + PATIENCE;
        let mut seen = false;
        while !seen && Instant::now() < until {
            host_rx.receive(64, &mut scratch, 64, &mut |f| {
                let rest = &f.mem[f.start..f.end];
                let mut whole = rest.to_vec();
                if let Some((tpid, tci)) = f.tag {
                    whole.splice(12..12, [tpid.to_be_bytes(), tci.to_be_bytes()].concat());
                }
                seen |= whole == frame;
            });
        }
        assert!(seen, "out: {tag:02x?}");
    }
}

fn stream(net: &Net, bytes: usize) -> (f64, Duration) {
    let listener =
        netns::run_in_named(Some(&net.ns("h2")), || TcpListener::bind("10.9.9.2:7000")).unwrap();
    let server = std::thread::spawn(move || {
        let (mut s, _) = listener.accept().unwrap();
        let mut buf = vec![0; 1 << 16];
        let (mut total, mut sum) = (0usize, 0u64);
        loop {
            let n = s.read(&mut buf).unwrap();
            if n == 0 {
                return (total, sum);
            }
            for b in &buf[..n] {
                sum = sum.wrapping_mul(31).wrapping_add(u64::from(*b));
            }
            total += n;
        }
    });
    let mut c = netns::run_in_named(Some(&net.ns("h1")), || {
        TcpStream::connect_timeout(&"10.9.9.2:7000".parse().unwrap(), PATIENCE)
    })
    .unwrap();
    c.set_write_timeout(Some(PATIENCE)).unwrap();
    let start = Instant::now();
    let block: Vec<u8> = (0..1 << 16).map(|i| (i * 7 % 251) as u8).collect();
    let mut sum = 0u64;
    for _ in 0..bytes / block.len() {
        c.write_all(&block).unwrap();
        for b in &block {
            sum = sum.wrapping_mul(31).wrapping_add(u64::from(*b));
        }
    }
    drop(c);
    let (total, got) = server.join().unwrap();
    assert_eq!(total, bytes / block.len() * block.len());
    assert_eq!(sum, got, "the bytes arrive as they were sent");
    let time = start.elapsed();
    (total as f64 * 8.0 / time.as_secs_f64() / 1e9, time)
}

fn streams_with_default_offloads(net: Net) {
    let (_c1, a) = net.open(1);
    let (_c2, b) = net.open(2);
    assert!(a.link.up && b.link.up);
    let repeater = Repeater::start(a, b);
    let (gbit, _) = stream(&net, 64 << 20);
    eprintln!("TCP through a repeater, super-frames whole: {gbit:.2} Gbit/s");
    assert_eq!(
        repeater.big.load(Ordering::Relaxed) > 0,
        net.kind == "af_packet",
        "super-frames come through, or are none"
    );
    assert!(
        repeater.partial.load(Ordering::Relaxed) > 0,
        "partial checksums came through"
    );

    // UDP with a partial checksum arrives; the receiver's kernel would drop a wrong one
    let (rx, tx) = (
        netns::run_in_named(Some(&net.ns("h2")), || UdpSocket::bind("10.9.9.2:7001")).unwrap(),
        netns::run_in_named(Some(&net.ns("h1")), || UdpSocket::bind("10.9.9.1:0")).unwrap(),
    );
    for socket in [&rx, &tx] {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    tx.send_to(&[5; 1000], "10.9.9.2:7001").unwrap();
    assert_eq!(rx.recv(&mut [0; 2000]).unwrap(), 1000);

    // Idle round trips
    let mut times: Vec<Duration> = (0..200)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            let start = Instant::now();
            tx.send_to(&[1], "10.9.9.2:7001").unwrap();
            let (_, from) = rx.recv_from(&mut [0; 9]).unwrap();
            rx.send_to(&[1], from).unwrap();
            tx.recv(&mut [0; 9]).unwrap();
            start.elapsed()
        })
        .collect();
    times.sort();
    eprintln!(
        "idle round trip: median {:?}, 99 % {:?}",
        times[100], times[198]
    );
}

#[test]
fn super_frames_are_cut_for_af_xdp() {
    if !root() || !has_xdp() {
        return;
    }
    let net = Net::new("af_packet");
    let (_c1, a) = net.open(1);
    let (_c2, b) = net.open_by("af_xdp", 2);
    let repeater = Repeater::start(a, b);
    let (gbit, _) = stream(&net, 16 << 20);
    eprintln!("TCP from a packet socket to AF_XDP: {gbit:.2} Gbit/s");
    assert!(repeater.big.load(Ordering::Relaxed) > 0);
}

/// Each frame that has been sent wakes who waits at the socket that it left by.
#[test]
fn nobody_waits_where_af_xdp_sends() {
    if !root() || !has_xdp() {
        return;
    }
    let net = Net::new("af_xdp");
    let (_cable, opened) = net.open_by("af_xdp", 1);
    let fd = opened.rx.fd().unwrap();
    let out = rustix::event::PollFlags::OUT;
    let mut fds = [rustix::event::PollFd::from_borrowed_fd(fd, out)];
    let now = rustix::time::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let ready = rustix::event::poll(&mut fds, Some(&now)).unwrap();
    assert_eq!(ready, 0, "the receiving socket can send, too");
}

/// A netdev that can't have AF_XDP is a port all the same, and says why.
#[test]
fn what_af_xdp_is_not_fit_for_goes_by_packet_sockets() {
    if !root() || !has_xdp() {
        return;
    }
    let net = Net::new("af_xdp");
    let sw = net.ns("sw");
    must(&format!(
        "ip -n {sw} link del p1 && ip link add p1 netns {sw} numrxqueues 2 numtxqueues 2 type veth \
         peer name h1 netns {} && ip -n {} link set h1 up && ip netns exec {sw} ethtool -L p1 rx 2",
        net.ns("h1"),
        net.ns("h1")
    ));
    let (mut cable, opened) = net.open_any("af_xdp", 1);
    let note = opened.note.unwrap();
    assert!(note.contains("2 receive queues"), "{note}");
    assert!(matches!(opened.rx, RxPort::Packet(_)));
    assert!(cable.check().unwrap().is_none());
    drop(cable);
    // More queues while it is one: it becomes a packet socket
    must(&format!("ip netns exec {sw} ethtool -L p1 rx 1"));
    // Its peer has more of them to send by than it has to receive: the driver refuses
    let (cable, opened) = net.open_any("af_xdp", 1);
    let note = opened.note.unwrap();
    assert!(note.contains("its peer may have more queues"), "{note}");
    drop(cable);
    must(&format!(
        "ip netns exec {} ethtool -L h1 tx 1",
        net.ns("h1")
    ));
    let (mut cable, opened) = net.open_by("af_xdp", 1);
    must(&format!("ip netns exec {sw} ethtool -L p1 rx 2"));
    assert!(matches!(cable.check().unwrap(), Some(Change::Gone)));
    drop(opened);
    let Some(Change::Opened(opened)) = cable.check().unwrap() else {
        panic!("not opened again");
    };
    assert!(opened.note.unwrap().contains("2 receive queues"));
    // A driver without XDP of its own
    drop(cable);
    must(&format!("ip -n {sw} link add d1 type bridge"));
    let mut cable = Cable::new(format!("swp1=af_xdp:d1@{sw}").parse().unwrap(), 0);
    let Some(Change::Opened(opened)) = cable.check().unwrap() else {
        panic!("not opened");
    };
    let note = opened.note.unwrap();
    assert!(note.contains("driver bridge"), "{note}");
    assert!(!note.contains('\n'));
}

#[test]
fn super_frames_are_cut_for_a_netdev_that_cannot() {
    if !root() {
        return;
    }
    if !sh("command -v ethtool") {
        eprintln!("skipped: needs ethtool to turn segmentation offload off");
        return;
    }
    let net = Net::new("af_packet");
    must(&format!(
        "ip netns exec {} ethtool -K p2 tso off gso off tx off",
        net.ns("sw")
    ));
    let (_c1, a) = net.open(1);
    let (_c2, b) = net.open(2);
    let repeater = Repeater::start(a, b);
    let (gbit, _) = stream(&net, 16 << 20);
    eprintln!("TCP through a repeater, cut here: {gbit:.2} Gbit/s");
    assert!(repeater.big.load(Ordering::Relaxed) > 0);
}

fn link_follows_the_netdev(net: Net) {
    let (mut cable, opened) = net.open(1);
    assert!(
        opened.link.up && opened.link.speed_mbps == 10_000,
        "{:?}",
        opened.link
    );
    assert!(cable.check().unwrap().is_none());
    must(&format!("ip -n {} link set h1 down", net.ns("h1")));
    assert!(matches!(change(&mut cable), Change::Link(l) if !l.up));
    must(&format!("ip -n {} link set h1 up", net.ns("h1")));
    assert!(matches!(change(&mut cable), Change::Link(l) if l.up));
    must(&format!("ip -n {} link del h1", net.ns("h1")));
    assert!(matches!(change(&mut cable), Change::Gone));
    drop(opened);
    let e = cable.check().err().unwrap().to_string();
    assert!(e.contains("no interface p1"), "{e}");
    net.pair(1);
    assert!(matches!(cable.check().unwrap(), Some(Change::Opened(o)) if o.link.up));
    // A namespace that goes away takes the port with it, and does not live on because of it
    must(&format!("ip netns del {}", net.ns("sw")));
    assert!(matches!(cable.check().unwrap(), Some(Change::Gone)));
    assert!(cable.check().is_err());
}

#[test]
fn a_tap_is_a_cable_to_its_stack() {
    if !root() {
        return;
    }
    let net = Net::new("af_packet");
    let mut cable = Cable::new(format!("swp1=tap:t0@{}", net.ns("h1")).parse().unwrap(), 0);
    let Some(Change::Opened(mut port)) = cable.check().unwrap() else {
        panic!("not opened");
    };
    assert!(!port.link.up, "the netdev is down");
    must(&format!(
        "ip -n {0} addr add 10.8.8.1/24 dev t0 && ip -n {0} link set t0 up",
        net.ns("h1")
    ));
    assert!(matches!(change(&mut cable), Change::Link(l) if l.up));
    sh(&format!(
        "ip netns exec {} ping -n -c 1 -W 1 10.8.8.2",
        net.ns("h1")
    ));
    assert!(receive_one(&mut port.rx, |f| f.bytes().get(12..14) == Some(&[8, 6])));
    // The netdev may move to another namespace
    must(&format!(
        "ip -n {} link set t0 netns {}",
        net.ns("h1"),
        net.ns("h2")
    ));
    let down = matches!(cable.check().unwrap(), Some(Change::Link(l)) if !l.up);
    assert!(down, "a moved netdev is down");
    must(&format!("ip -n {} link set t0 up", net.ns("h2")));
    assert!(matches!(cable.check().unwrap(), Some(Change::Link(l)) if l.up));
}
