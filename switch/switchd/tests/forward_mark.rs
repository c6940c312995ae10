//! The forward mark on real TAPs and a real bridge.
//!
//! ```text
//!   test ── q0, q1 ── swp1 ┐
//!   test ── q0, q1 ── swp2 ┼─ br0 10.0.0.1/24        swp4 10.4.0.1/24 ── q0, q1 ── test
//!   test ── q0, q1 ── swp3 ┤
//!   test ─────────── vm0 ┘ (a TAP of somebody else, no front-panel port)
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Kept, Ns, PATIENCE, all_up, arp_request, frame, udp, wait_for};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use tandem_core::plant::Fault;
use tandem_linux::bpf::{self, Insn, ProgType, Reg, Tcx, tc_act};
use tandem_linux::netlink::tc::{Direction, QdiscWatch, Slot, Tc};
use tandem_linux::tap::{Tap, TapOptions};
use tandem_sal::PlatformPort;
use tandem_switchd::forward_mark::{ForwardMark, Hook, QUEUE_COPY, QUEUE_TRAPPED};
use tandem_switchd::ports::Port;
use tandem_switchd::takeover;

const HOST: [u8; 6] = [2, 0xaa, 0, 0, 0, 1];
/// An EtherType that nobody in the kernel speaks (IEEE 802 local experimental).
const PROBE: u16 = 0x88b5;

fn map(n: u16) -> PlatformPort {
    PlatformPort {
        port: n,
        front_panel: n,
        name: format!("swp{n}"),
        mac: Some([2, 0x54, 0, 0, 0, n as u8]),
        breakout_modes: 0,
        max_speed_mbps: 0,
    }
}

/// Frames of `ethertype` that come out of a port within a moment; where `wanted` are to come, that begins when they are there.
fn come(queues: &[Tap], ethertype: u16, wanted: usize) -> Vec<Vec<u8>> {
    let (mut got, mut end) = (Vec::new(), None);
    let begin = Instant::now();
    loop {
        for q in queues {
            got.extend(read_all(q, ethertype));
        }
        if got.len() >= wanted || begin.elapsed() > PATIENCE {
            let now = Instant::now();
            if now >= *end.get_or_insert(now + MOMENT) {
                return got;
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

const MOMENT: Duration = Duration::from_millis(60);

fn out(port: &Port, ethertype: u16, wanted: usize) -> Vec<Vec<u8>> {
    come(&port.queues, ethertype, wanted)
}

fn drain(ports: &[Port]) {
    for p in ports {
        out(p, 0, 0);
    }
}

fn read_all(tap: &Tap, ethertype: u16) -> Vec<Vec<u8>> {
    let mut got = Vec::new();
    let mut buf = [0; 2048];
    while let Ok(n) = tap.read(&mut buf) {
        if buf[12..14] == ethertype.to_be_bytes() {
            got.push(buf[..n].to_vec());
        }
    }
    got
}

#[test]
fn frames_leave_once() {
    for hook in [Hook::best(), Hook::Clsact] {
        once(hook);
    }
}

fn once(hook: Hook) {
    let Some(ns) = Ns::new("mark") else { return };
    let mut kept = Kept::default();
    let ports: Vec<Port> = ns.enter(|| {
        (1..=4)
            .map(|n| Port::open(&map(n), &mut kept).unwrap())
            .collect()
    });
    let (mark, mut tc) = ns.enter(|| (ForwardMark::load(hook).unwrap(), Tc::open().unwrap()));
    for p in &ports {
        attach(&ns, p, &mark, &mut tc);
        p.set_carrier(true).unwrap();
    }
    ns.run("ip link add br0 type bridge mcast_snooping 0 forward_delay 0");
    for n in 1..=3 {
        ns.run(&format!("ip link set swp{n} master br0 up"));
    }
    let vm = ns.enter(|| Tap::open("vm0", TapOptions::default()).unwrap());
    ns.run("ip link set vm0 master br0 up");
    ns.run("ip link set br0 up");
    ns.run("ip link set swp4 up");
    ns.run("ip addr add 10.0.0.1/24 dev br0");
    ns.run("ip addr add 10.4.0.1/24 dev swp4");
    ns.run("ip neigh add 10.4.0.2 lladdr 02:bb:00:00:00:04 dev swp4");
    ns.run("sysctl -qw net.ipv4.ip_forward=1");
    ns.run("sysctl -qw net.ipv4.conf.all.rp_filter=0");
    // a device forwards when the kernel has come round to its carrier
    all_up(&ns, &["swp1", "swp2", "swp3", "swp4", "br0"]);
    assert!(wait_for(PATIENCE, || {
        let ports = ns.run("bridge link show");
        ports.matches("state forwarding").count() == 4
    }));
    drain(&ports);
    let bridge_mac: [u8; 6] = {
        let text = ns.run("cat /sys/class/net/br0/address");
        let b: Vec<u8> = text
            .trim()
            .split(':')
            .map(|x| u8::from_str_radix(x, 16).unwrap())
            .collect();
        b.try_into().unwrap()
    };
    // twice: attaching again changes nothing
    for round in 0..2 {
        let broadcast = frame([0xff; 6], HOST, PROBE, b"broadcast");
        // the chip has flooded it: the kernel must not send it again ...
        ports[0].queues[QUEUE_COPY].write(&broadcast).unwrap();
        assert!(
            out(&ports[1], PROBE, 0).is_empty(),
            "copy left again, round {round}"
        );
        assert!(
            out(&ports[2], PROBE, 0).is_empty(),
            "copy left again, round {round}"
        );
        // ... but the kernel's own side of the bridge gets it
        assert_eq!(
            come(std::slice::from_ref(&vm), PROBE, 1),
            vec![broadcast.clone()]
        );
        // trapped: the kernel floods it, once to each
        ports[0].queues[QUEUE_TRAPPED].write(&broadcast).unwrap();
        assert_eq!(out(&ports[1], PROBE, 1), vec![broadcast.clone()]);
        assert_eq!(out(&ports[2], PROBE, 1), vec![broadcast.clone()]);
        assert!(out(&ports[0], PROBE, 0).is_empty());
        assert_eq!(
            come(std::slice::from_ref(&vm), PROBE, 1),
            vec![broadcast.clone()]
        );
        // a copy is consumed: ARP for the bridge's address is answered, once, where it came from
        let arp = arp_request(HOST, [10, 0, 0, 9], [10, 0, 0, 1]);
        ports[0].queues[QUEUE_COPY].write(&arp).unwrap();
        assert_eq!(out(&ports[0], 0x0806, 1).len(), 1, "ARP answer");
        assert!(
            out(&ports[1], 0x0806, 0).is_empty(),
            "ARP request left again"
        );
        // routing: trapped goes on, a copy does not
        let packet = udp(bridge_mac, HOST, [10, 0, 0, 9], [10, 4, 0, 2]);
        ports[0].queues[QUEUE_TRAPPED].write(&packet).unwrap();
        assert_eq!(
            out(&ports[3], 0x0800, 1).len(),
            1,
            "trapped packet is routed"
        );
        ports[0].queues[QUEUE_COPY].write(&packet).unwrap();
        assert!(
            out(&ports[3], 0x0800, 0).is_empty(),
            "routed copy left again"
        );
        // users' marks stay theirs
        for p in &ports {
            attach(&ns, p, &mark, &mut tc);
        }
        if hook == Hook::Tcx {
            assert_eq!(programs(&ns, &ports[0], Tcx::Egress).len(), 1);
            continue;
        }
        let filters = ns.run("tc filter show dev swp1 egress");
        assert_eq!(filters.matches("direct-action").count(), 1, "{filters}");
    }
}

/// In the port's namespace, where switchd's threads are.
fn attach(ns: &Ns, port: &Port, mark: &ForwardMark, tc: &mut Tc) {
    ns.enter(|| port.attach_mark(mark, tc).unwrap());
}

fn had_off(port: &Port, tc: &mut Tc) -> bool {
    ForwardMark::had_learning_off(tc, port.ifindex).unwrap()
}

fn programs(ns: &Ns, port: &Port, hook: Tcx) -> Vec<u32> {
    ns.enter(|| bpf::tcx_programs(port.ifindex, hook).unwrap())
}

fn fault(ns: &Ns, port: &Port, mark: &ForwardMark, tc: &mut Tc) -> Option<Fault> {
    ns.enter(|| mark.fault(tc, port.ifindex).unwrap())
}

/// A program of somebody else's.
fn stranger(ns: &Ns) -> std::os::fd::OwnedFd {
    let pass = [Insn::mov_imm(Reg::R0, tc_act::UNSPEC), Insn::exit()];
    ns.enter(|| bpf::load(ProgType::SchedCls, "t_stranger", &pass).unwrap())
}

fn slot(port: &Port, direction: Direction) -> Slot {
    Slot {
        ifindex: port.ifindex,
        direction,
        priority: 1,
        handle: 0x7d,
    }
}

/// One port with a kernel that has tcx; what asicd would keep.
fn tcx_port() -> Option<(Ns, Kept, Port, Tc)> {
    if Hook::best() != Hook::Tcx {
        eprintln!("skipped: needs a kernel with tcx (6.6)");
        return None;
    }
    let ns = Ns::new("tcx")?;
    let mut kept = Kept::default();
    let port = ns.enter(|| Port::open(&map(1), &mut kept).unwrap());
    let tc = ns.enter(|| Tc::open().unwrap());
    Some((ns, kept, port, tc))
}

/// A switchd that was killed leaves its programs; the next takes them over, and replaces those of another version.
#[test]
fn programs_are_never_there_twice() {
    let Some((ns, mut kept, port, mut tc)) = tcx_port() else {
        return;
    };
    let both = [Tcx::Ingress, Tcx::Egress];
    let start = |kept: &mut Kept, tc: &mut Tc| {
        let mut mark = ForwardMark::load(Hook::Tcx).unwrap();
        mark.settle(kept).unwrap();
        assert!(!had_off(&port, tc));
        attach(&ns, &port, &mark, tc);
        mark.settled(kept).unwrap();
        mark
    };
    drop(start(&mut kept, &mut tc));
    let first = both.map(|hook| programs(&ns, &port, hook));
    let mark = start(&mut kept, &mut tc);
    assert_eq!(both.map(|hook| programs(&ns, &port, hook)), first);
    assert!(first.iter().all(|p| p.len() == 1));
    assert_eq!(fault(&ns, &port, &mark, &mut tc), None);
    // clsact is the user's, and so is what stands behind
    ns.run("tc qdisc add dev swp1 clsact");
    // one that is put in front hides it
    let user = stranger(&ns);
    ns.enter(|| bpf::tcx_attach_first(port.ifindex, Tcx::Egress, user.as_fd()).unwrap());
    assert_eq!(fault(&ns, &port, &mark, &mut tc), Some(Fault::NotFirst));
    ns.enter(|| bpf::tcx_detach(port.ifindex, Tcx::Egress, user.as_fd()).unwrap());
    // another version has left its own: in its place, once
    for (hook, name) in both.into_iter().zip(["mark/ingress/01", "mark/egress/01"]) {
        let own = stranger(&ns);
        ns.enter(|| bpf::tcx_attach_first(port.ifindex, hook, own.as_fd()).unwrap());
        kept.0.insert(name.into(), own);
        assert_eq!(programs(&ns, &port, hook).len(), 2);
    }
    let mark = start(&mut kept, &mut tc);
    assert_eq!(both.map(|hook| programs(&ns, &port, hook)), first);
    assert_eq!(kept.0.keys().filter(|k| k.starts_with("mark/")).count(), 2);
    // and where only that one's were
    let stale = stranger(&ns);
    drop(mark);
    kept.0.retain(|k, _| !k.starts_with("mark/"));
    let again = ns.enter(|| Port::open(&map(2), &mut kept).unwrap());
    ns.enter(|| bpf::tcx_attach_first(again.ifindex, Tcx::Ingress, stale.as_fd()).unwrap());
    kept.0.insert("mark/ingress/02".into(), stale);
    let mut mark = ForwardMark::load(Hook::Tcx).unwrap();
    mark.settle(&mut kept).unwrap();
    attach(&ns, &again, &mark, &mut tc);
    assert_eq!(programs(&ns, &again, Tcx::Ingress).len(), 1);
    assert_eq!(fault(&ns, &again, &mark, &mut tc), None);
}

/// As versions did that turned `learning` off.
fn of_before(ns: &Ns, port: &Port, tc: &mut Tc) {
    tc.ensure_clsact(port.ifindex).unwrap();
    for (direction, name) in [
        (Direction::Egress, "tandem_once"),
        (Direction::Ingress, "tandem_mark"),
    ] {
        let program = stranger(ns);
        tc.replace_bpf(slot(port, direction), program.as_fd(), name)
            .unwrap();
    }
}

/// Whoever dies before `learning` is on again leaves that to the next, though the programs that said so are gone.
#[test]
fn that_learning_was_turned_off_is_not_forgotten() {
    let Some(ns) = Ns::new("relearn") else { return };
    for hook in [Hook::best(), Hook::Clsact] {
        let mut kept = Kept::default();
        let mut tc = ns.enter(|| Tc::open().unwrap());
        let maps = [map(1), map(2)];
        let start = |kept: &mut Kept, tc: &mut Tc| {
            let mut mark = ForwardMark::load(hook).unwrap();
            ns.enter(|| takeover::take(&maps, kept, &mut mark, tc).unwrap())
        };
        let (ports, relearn) = start(&mut kept, &mut tc);
        assert!(!relearn);
        ns.enter(|| of_before(&ns, &ports[1], &mut tc));
        for _ in 0..3 {
            assert!(start(&mut kept, &mut tc).1, "{hook:?}");
        }
        takeover::relearned(&mut kept).unwrap();
        assert!(!start(&mut kept, &mut tc).1);
    }
}

/// An asicd of before keeps so many names as many ports take: the programs do without, and the ports are there.
#[test]
fn ports_go_before_programs_where_there_is_little_room() {
    let Some(ns) = Ns::new("room") else { return };
    let mut kept = Kept(Default::default(), Some(4));
    let mut mark = ForwardMark::load(Hook::best()).unwrap();
    let (ports, relearn) = ns.enter(|| {
        let mut tc = Tc::open().unwrap();
        takeover::take(&[map(1), map(2)], &mut kept, &mut mark, &mut tc).unwrap()
    });
    assert_eq!(
        (ports.len(), relearn, mark.hook()),
        (2, false, Hook::Clsact)
    );
}

/// From a switchd that stood in clsact to one in tcx, and back.
#[test]
fn programs_move_from_clsact_to_tcx_and_back() {
    let Some((ns, mut kept, port, mut tc)) = tcx_port() else {
        return;
    };
    let old = |tc: &mut Tc| of_before(&ns, &port, tc);
    let mut mark = ForwardMark::load(Hook::Tcx).unwrap();
    mark.settle(&mut kept).unwrap();
    old(&mut tc);
    assert!(had_off(&port, &mut tc), "it had turned it off");
    attach(&ns, &port, &mark, &mut tc);
    assert!(!ns.run("tc qdisc show dev swp1").contains("clsact"));
    assert_eq!(fault(&ns, &port, &mark, &mut tc), None);
    assert!(!had_off(&port, &mut tc));
    attach(&ns, &port, &mark, &mut tc);
    // the user's own filter there stays, and its qdisc
    old(&mut tc);
    let user = stranger(&ns);
    let theirs = Slot {
        priority: 7,
        ..slot(&port, Direction::Ingress)
    };
    tc.replace_bpf(theirs, user.as_fd(), "theirs").unwrap();
    assert!(had_off(&port, &mut tc));
    attach(&ns, &port, &mark, &mut tc);
    let shown = ns.run("tc filter show dev swp1 ingress");
    assert!(
        shown.contains("theirs") && !shown.contains("tandem"),
        "{shown}"
    );
    // back, to one of today's
    let mut mark = ForwardMark::load(Hook::Clsact).unwrap();
    mark.settle(&mut kept).unwrap();
    assert!(!had_off(&port, &mut tc));
    attach(&ns, &port, &mark, &mut tc);
    assert!(programs(&ns, &port, Tcx::Ingress).is_empty());
    assert_eq!(fault(&ns, &port, &mark, &mut tc), None);
    let mut mark = ForwardMark::load(Hook::Tcx).unwrap();
    mark.settle(&mut kept).unwrap();
    assert!(!had_off(&port, &mut tc), "that one left it alone");
    attach(&ns, &port, &mark, &mut tc);
    assert_eq!(fault(&ns, &port, &mark, &mut tc), None);
}

/// Where the mark stands in clsact, that this was deleted is heard at once.
#[test]
fn a_deleted_clsact_is_heard_of() {
    let Some(ns) = Ns::new("watch") else { return };
    let mut watch = ns.enter(|| QdiscWatch::open().unwrap());
    ns.run("ip link add x0 type veth peer name x1");
    ns.run("tc qdisc add dev x0 clsact");
    assert!(!watch.deleted());
    ns.run("tc qdisc del dev x0 clsact");
    assert!(watch.deleted());
    assert!(!watch.deleted());
}
