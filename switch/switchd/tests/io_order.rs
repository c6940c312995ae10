//! The io thread between a device of the test and a real bridge.
//!
//! ```text
//!   test's device ── events, rx, tx ── io thread ── swp1 ┐
//!                                                  swp2 ┼─ br0 10.0.0.1/24
//!                                                  swp3 ┘
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Kept, Ns, PATIENCE, arp_request, wait_for};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::Duration;

use tandem_abi::{LayoutSpec, Memory, Status, raw};
use tandem_carrier::{DeviceEvent, DeviceSide};
use tandem_core::io::{Command, IoEvent, IoStats, Signals};
use tandem_core::source::Source;
use tandem_core::view::{Pin, SharedView};
use tandem_linux::eventfd::EventFd;
use tandem_linux::netlink::tc::Tc;
use tandem_netlink::{Config, NetlinkSource};
use tandem_sal::{Attach, PlatformPort, Sal, SalControl, Splits};
use tandem_switchd::forward_mark::{ForwardMark, Hook};
use tandem_switchd::io;
use tandem_switchd::ports::Port;
use zerocopy::IntoBytes;

const FID: u16 = 7;

enum Do {
    /// (kind, mac, port) as an event, no packet.
    Event(u16, [u8; 6], u16),
    /// A learn event, and the frame that caused it right behind, published at once.
    LearnAndFrame([u8; 6], u16, Vec<u8>),
    /// A trapped frame that came in by a port when so many events had been told.
    Frame(u16, u32, Vec<u8>),
    /// The packet ring's index runs ahead.
    Nonsense,
}

fn platform() -> Vec<u8> {
    let head = std::mem::size_of::<raw::tnd_platform>() as u32;
    let mut out = raw::tnd_platform {
        struct_size: head as u16,
        port_count: 3,
        ports_offset: head,
        ..Default::default()
    }
    .as_bytes()
    .to_vec();
    for n in 1..=3 {
        let port = raw::tnd_platform_port {
            port: n,
            front_panel: n,
            ..Default::default()
        };
        out.extend_from_slice(port.as_bytes());
    }
    out
}

/// Runs a device until `stop`; frames that the driver sends come out of the channel.
fn device(
    path: &std::path::Path,
    stop: Arc<AtomicBool>,
    orders: mpsc::Receiver<Do>,
    sent: mpsc::Sender<(u16, Vec<u8>)>,
) -> std::thread::JoinHandle<()> {
    let spec = LayoutSpec {
        platform: platform(),
        ..Default::default()
    };
    let mut side = DeviceSide::listen(path, spec).unwrap();
    std::thread::spawn(move || {
        let mut seq = 0;
        while !stop.load(SeqCst) {
            for e in side.handle() {
                if matches!(e, DeviceEvent::Request(_)) {
                    side.acknowledge(Status::Ok);
                }
            }
            if let Some(rings) = side.rings() {
                let epoch = rings.epoch;
                let mut event = |kind, mac, port| {
                    let e = raw::tnd_event {
                        kind,
                        seq,
                        epoch,
                        fid: FID,
                        port,
                        up: 1,
                        mac,
                        ..Default::default()
                    };
                    rings.event.push(&[e.as_bytes()]).unwrap();
                    seq += 1;
                    seq
                };
                for order in orders.try_iter() {
                    match order {
                        Do::Event(kind, mac, port) => {
                            event(kind, mac, port);
                        }
                        Do::Nonsense => {
                            let ring = *rings.rx.ring();
                            let far = ring.entry_count + 1;
                            rings.rx.memory().store_release(ring.prod, far);
                            // rings the doorbell
                            event(raw::TND_EV_LINK, [0; 6], 3);
                        }
                        Do::Frame(port, event_seq, frame) => {
                            let rx = raw::tnd_rx {
                                len: frame.len() as u32,
                                port,
                                fid: FID,
                                event_seq,
                                epoch,
                                ..Default::default()
                            };
                            rings.rx.push(&[rx.as_bytes(), &frame]).unwrap();
                        }
                        Do::LearnAndFrame(mac, port, frame) => {
                            let event_seq = event(raw::TND_EV_LEARN, mac, port);
                            let rx = raw::tnd_rx {
                                len: frame.len() as u32,
                                port,
                                flags: raw::TND_RX_L2_FORWARDED,
                                event_seq,
                                epoch,
                                ..Default::default()
                            };
                            rings.rx.push(&[rx.as_bytes(), &frame]).unwrap();
                        }
                    }
                }
                let mut frame = Vec::new();
                while let Ok(Some(tx)) = rings
                    .tx
                    .pop_packet(&mut frame, |t: &raw::tnd_tx| t.len as usize)
                {
                    let _ = sent.send((tx.port, frame.clone()));
                }
            }
            side.flush();
            std::thread::sleep(Duration::from_micros(100));
        }
    })
}

/// The io thread, between ports in a namespace and a device of the test.
struct Bench {
    ns: Ns,
    dir: std::path::PathBuf,
    stop: Arc<AtomicBool>,
    order: mpsc::Sender<Do>,
    sent: mpsc::Receiver<(u16, Vec<u8>)>,
    sal: Sal,
    view: SharedView,
    commands: crossbeam_channel::Sender<Command>,
    attaches: u32,
    events: crossbeam_channel::Receiver<IoEvent>,
    wake: Arc<EventFd>,
    stats: Arc<IoStats>,
    signals: Arc<Signals>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Bench {
    fn attach(&mut self) -> SalControl {
        let (control, io) = self.sal.attach(Attach::Cold).unwrap();
        self.attaches += 1;
        let attach = Command::Attach(Box::new(io), self.attaches);
        self.commands.send(attach).unwrap();
        self.wake.ring();
        control
    }

    fn carrier(&self, dev: &str) -> bool {
        self.ns
            .run(&format!("ip -br link show {dev}"))
            .contains("LOWER_UP")
    }

    fn event(&self, kind: u16, mac: [u8; 6], port: u16) {
        self.order.send(Do::Event(kind, mac, port)).unwrap();
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        self.wake.ring();
        for t in self.threads.drain(..) {
            let _ = t.join();
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// `None` (said aloud) when not root.
fn bench(what: &str) -> Option<Bench> {
    let ns = Ns::new(what)?;
    let dir = std::env::temp_dir().join(format!("swd-{what}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("driver.sock");
    let stop = Arc::new(AtomicBool::new(false));
    let (order, orders) = mpsc::channel();
    let (sent_to, sent) = mpsc::channel();
    let device = device(&path, stop.clone(), orders, sent_to);
    let sal = Sal::connect(&path, "test", &Splits::new(), PATIENCE).unwrap();
    let maps: Vec<PlatformPort> = sal.platform().ports.clone();
    let view = SharedView::default();
    let (ports, source) = ns.enter(|| {
        let mut kept = Kept::default();
        let mark = ForwardMark::load(Hook::best()).unwrap();
        let mut tc = Tc::open().unwrap();
        let ports: Vec<Port> = maps
            .iter()
            .map(|m| Port::open(m, &mut kept).unwrap())
            .collect();
        for p in &ports {
            p.attach_mark(&mark, &mut tc).unwrap();
            view.lock().add_port(p.port, p.ifindex);
        }
        (ports, NetlinkSource::start(Config::default()).unwrap())
    });
    let writer = ns.enter(|| source.writer().unwrap());
    let (commands_to, orders) = crossbeam_channel::bounded(8);
    let (events_to, events) = crossbeam_channel::bounded(1024);
    let wake = Arc::new(EventFd::new().unwrap());
    let stats = Arc::new(IoStats::default());
    let signals = Arc::new(Signals::default());
    let parts = io::Parts {
        heard: Arc::default(),
        ports: Arc::new(ports),
        writer,
        view: view.clone(),
        commands: orders,
        wake: wake.clone(),
        events: events_to,
        core_wake: Arc::new(EventFd::new().unwrap()),
        stats: stats.clone(),
        signals: signals.clone(),
        stop: stop.clone(),
    };
    let thread = std::thread::spawn(move || io::run(parts).unwrap());
    Some(Bench {
        ns,
        dir,
        stop,
        order,
        sent,
        sal,
        view,
        commands: commands_to,
        attaches: 0,
        events,
        wake,
        stats,
        signals,
        threads: vec![thread, device],
    })
}

#[test]
fn a_dead_ring_is_told_and_the_next_attach_is_taken() {
    let Some(mut b) = bench("dead") else { return };
    let _first = b.attach();
    b.ns.run("ip link set swp1 up");
    b.event(raw::TND_EV_LINK, [0; 6], 1);
    assert!(wait_for(PATIENCE, || b.carrier("swp1")));
    assert_eq!(b.signals.dead.load(SeqCst), 0);
    b.order.send(Do::Nonsense).unwrap();
    assert!(wait_for(PATIENCE, || {
        b.signals.dead.load(SeqCst) == b.attaches
    }));
    // the thread lives, takes what the ports send, and drops it
    b.ns.run("ip addr add 10.0.0.1/24 dev swp1");
    b.ns.try_run("ping -c 1 -W 1 10.0.0.2");
    assert!(wait_for(PATIENCE, || {
        b.stats.tx_detached.load(SeqCst) > 0
    }));
    // an Attach that was lost may be said twice
    b.signals.dead.store(0, SeqCst);
    drop(_first);
    let second = b.attach();
    drop(second);
    let _third = b.attach();
    b.ns.run("ip link set swp2 up");
    b.event(raw::TND_EV_LINK, [0; 6], 2);
    assert!(wait_for(PATIENCE, || b.carrier("swp2")));
    assert_eq!(b.signals.dead.load(SeqCst), 0);
}

/// The ports in br0, forwarding, and the view knows.
fn bridged(b: &Bench) -> u32 {
    for port in 1..=3 {
        b.event(raw::TND_EV_LINK, [0; 6], port);
    }
    let Bench { ns, view, .. } = b;
    ns.run("ip link add br0 type bridge mcast_snooping 0 forward_delay 0");
    for n in 1..=3 {
        ns.run(&format!("ip link set swp{n} master br0 up"));
    }
    ns.run("ip link set br0 up");
    ns.run("ip addr add 10.0.0.1/24 dev br0");
    assert!(wait_for(PATIENCE, || {
        let ports = ns.run("bridge link show");
        ports.matches("state forwarding").count() == 3
    }));
    let index = |name: &str| -> u32 {
        let text = ns.run(&format!("cat /sys/class/net/{name}/ifindex"));
        text.trim().parse().unwrap()
    };
    let bridge = index("br0");
    for n in 1..=3u16 {
        let mut v = view.lock();
        v.set_bridge(index(&format!("swp{n}")), bridge);
        v.set_member(n, raw::TND_VID_ANY, Some(FID));
    }
    bridge
}

/// The kernel learns from every frame that it gets, also from one that waited while its station moved.
#[test]
fn a_late_frame_does_not_move_a_station_back() {
    let Some(mut b) = bench("late") else { return };
    let _control = b.attach();
    bridged(&b);
    let Bench {
        ns, order, stats, ..
    } = &b;
    let mac = [2, 0xaa, 0, 0, 0, 1];
    let entry = || {
        let all = ns.run("bridge fdb show br br0");
        let mut lines = all.lines().filter(|l| l.starts_with("02:aa:00:00:00:01"));
        lines.next().unwrap_or_default().to_owned()
    };
    // three events so far: LINK. LEARN is the fourth, MOVE the fifth
    for (kind, port) in [(raw::TND_EV_LEARN, 1), (raw::TND_EV_MOVE, 2)] {
        order.send(Do::Event(kind, mac, port)).unwrap();
    }
    assert!(wait_for(PATIENCE, || entry().contains("dev swp2 extern_learn")));
    let arp = arp_request(mac, [10, 0, 0, 9], [10, 0, 0, 1]);
    // of before the move, and of before the station was known at all
    for (n, event_seq) in [(1, 4), (2, 3)] {
        order.send(Do::Frame(1, event_seq, arp.clone())).unwrap();
        assert!(wait_for(PATIENCE, || stats.fdb_late.load(SeqCst) == n));
        // counted, and then said to the kernel
        assert!(
            wait_for(PATIENCE, || entry().contains("dev swp2 extern_learn")),
            "{}",
            entry()
        );
    }
    // newer than the move: the chip does not learn there, and the kernel's word counts
    order.send(Do::Frame(3, 5, arp)).unwrap();
    assert!(
        wait_for(PATIENCE, || entry().contains("dev swp3")),
        "{}",
        entry()
    );
    assert!(!entry().contains("extern_learn"), "{}", entry());
    assert_eq!(stats.fdb_late.load(SeqCst), 2);
}

#[test]
fn what_is_learned_reaches_the_kernel_before_the_frame() {
    let Some(mut b) = bench("order") else { return };
    let _control = b.attach();
    // carrier follows the chip
    assert!(!b.carrier("swp1"));
    let bridge = bridged(&b);
    let Bench {
        ns,
        order,
        sent,
        view,
        events,
        stats,
        ..
    } = &b;
    while sent.recv_timeout(Duration::from_millis(100)).is_ok() {}
    // a new host asks for the bridge's address: were it not learned yet when the answer is sent,
    // the bridge would flood the answer to all three ports
    for n in 0..50u8 {
        let mac = [2, 0xaa, 0, 0, 0, n];
        let arp = arp_request(mac, [10, 0, 0, 100 + n], [10, 0, 0, 1]);
        order.send(Do::LearnAndFrame(mac, 2, arp)).unwrap();
        let mut answers = Vec::new();
        while let Ok((port, frame)) = sent.recv_timeout(match answers.is_empty() {
            true => PATIENCE,
            false => Duration::from_millis(15),
        }) {
            if frame.starts_with(&mac) {
                answers.push(port);
            }
        }
        assert_eq!(answers, [2], "host {n}");
    }
    // and the core was told, in order
    let told: Vec<IoEvent> = events.try_iter().collect();
    assert_eq!(told.len(), 50);
    // ageing takes the entry out of the kernel
    let mac = [2, 0xaa, 0, 0, 0, 7];
    assert!(
        ns.run("bridge fdb show br br0")
            .contains("02:aa:00:00:00:07 dev swp2 extern_learn")
    );
    order.send(Do::Event(raw::TND_EV_AGE, mac, 2)).unwrap();
    assert!(wait_for(PATIENCE, || {
        !ns.run("bridge fdb show br br0")
            .contains("02:aa:00:00:00:07")
    }));
    // a person's entry is not the chip's to move
    ns.run("bridge fdb add 02:aa:00:00:00:99 dev swp3 master static");
    let key = tandem_store::model::FdbKey {
        bridge,
        vlan: 0,
        mac: [2, 0xaa, 0, 0, 0, 0x99],
    };
    let swp3 = view.lock().ifindex_of(3).unwrap();
    view.lock().pin(key, Pin::Moves, swp3);
    order
        .send(Do::Event(raw::TND_EV_LEARN, [2, 0xaa, 0, 0, 0, 0x99], 1))
        .unwrap();
    order
        .send(Do::Event(raw::TND_EV_LEARN, [2, 0xaa, 0, 0, 0, 0x98], 1))
        .unwrap();
    assert!(wait_for(PATIENCE, || {
        ns.run("bridge fdb show br br0")
            .contains("02:aa:00:00:00:98 dev swp1")
    }));
    assert!(
        ns.run("bridge fdb show br br0")
            .contains("02:aa:00:00:00:99 dev swp3")
    );
    assert_eq!(stats.fdb_refused.load(SeqCst), 0);
}
