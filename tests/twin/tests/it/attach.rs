//! A chip is lost and attached again, in steps: the core waits for none of them.
//!
//! ```text
//!   lost ─► connecting ─► pools, costs, what is left there … a page each ─► attached
//!             └─ each turn: events are taken, questions answered; the chip may die at any of them
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::common::bridged::{BRIDGE, bridge, key_of};
use crate::common::{addr, forwarding, hop, key, local, neigh, route, swp, via};
use crate::fake::Fake;
use crossbeam_channel::{Receiver, bounded};
use tandem_abi::object::records;
use tandem_abi::{LayoutSpec, Status, raw};
use tandem_carrier::DeviceSide;
use tandem_core::io::{Command, FIRST_ATTACH, Signals};
use tandem_core::plant::Front;
use tandem_core::source::{Source, Write};
use tandem_core::{Core, Jobs, Seat, Sources, api};
use tandem_sal::{Attach, Connected, Connecting, SalIo, Splits};
use tandem_store::model::*;
use tandem_twin::chip::{Shared, Sizes};
use tandem_twin::random::Random;
use tandem_twin::wired;
use zerocopy::IntoBytes;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// All that a warm attach says of itself, in its order.
const STEPS: [&str; 8] = [
    "connecting to it",
    "reading its pools, page 1",
    "reading its costs, page 1",
    "reading its groups of next hops, page 1",
    "reading its ports, page 1",
    "reading its router interfaces, page 1",
    "reading its memberships of VLANs, page 1",
    "reading its FDB, page 1",
];

/// swp1 and swp2 are routed, with a group of two ways; swp3 and swp4 are in a bridge.
fn objects() -> Vec<Object> {
    let mut all = Vec::new();
    for n in [1, 2] {
        let i = 10 + u32::from(n);
        all.extend([
            Object::Link(swp(n)),
            forwarding(Family::V4, ConfScope::Interface(i)),
            addr(i, &format!("10.{n}.0.1/24")),
            local(&format!("10.{n}.0.1/32"), i, RouteType::Local),
            via(&format!("10.{n}.0.0/24"), i, ""),
            neigh(i, &format!("10.{n}.0.2"), 100 + n as u8),
        ]);
    }
    let ways = vec![hop(11, "10.1.0.2"), hop(12, "10.2.0.2")];
    let ways = RouteNextHops::Many(ways.into());
    all.push(Object::Route(route("20.0.0.0/8", ways)));
    all.push(bridge(300));
    for n in [3, 4] {
        all.push(Object::Link(Link {
            master: BRIDGE,
            bridge_port: Some(BridgePort::default()),
            ..swp(n)
        }));
    }
    all
}

struct Rig {
    core: Core,
    chip: Shared,
    kernel: Arc<Fake>,
    jobs: Jobs,
    signals: Arc<Signals>,
    commands: Receiver<Command>,
    /// Writes that the kernel has said.
    echoed: usize,
    now: u64,
}

impl Rig {
    fn new() -> Rig {
        let chip = Shared::new(Sizes::BIG.firmware(4).unwrap(), Random::new(1));
        chip.lock().cables(&[]);
        chip.lock().kept = true;
        let front = |port: u16| Front {
            port,
            name: format!("swp{port}"),
            ifindex: 10 + u32::from(port),
        };
        let kernel = Fake::told(1, "kernel", objects());
        let seat = Seat {
            source: kernel.clone(),
            ports: (1..=4).collect(),
            hold_ns: u64::MAX,
        };
        let sources = Sources::new(vec![seat]).unwrap();
        let front = (1..=4).map(front).collect();
        let wired = wired::core(&chip, front, Attach::Cold, sources).unwrap();
        let mut rig = Rig {
            core: wired.core,
            chip,
            kernel,
            jobs: wired.jobs,
            signals: wired.signals,
            commands: wired.commands,
            echoed: 0,
            now: SECOND,
        };
        rig.settle();
        rig
    }

    fn turn(&mut self) {
        self.turn_alone();
        self.echo();
        for command in self.commands.try_iter() {
            if let Command::Barrier(token) = command {
                self.signals.passed.fetch_max(token, Ordering::Release);
            }
        }
    }

    fn run(&mut self, ns: u64) {
        let end = self.now + ns;
        while self.now < end {
            self.turn();
        }
    }

    /// Attached, and all is right. A fake kernel's snapshot has no stations that it was told of: with such, [`calm`](Self::calm).
    fn settle(&mut self) {
        self.calm();
        let audit = api::audit_own(&mut self.core).unwrap();
        assert_eq!(audit.items.len(), 0, "{:?}", audit.items);
        assert!(audit.compared["routes"] >= 5, "{:?}", audit.compared);
    }

    /// Attached, with nothing left to do.
    fn calm(&mut self) {
        let end = self.now + 3 * SECOND;
        self.run(SECOND / 2);
        while !self.core.settled() && self.now < end {
            self.turn();
        }
        assert!(self.core.settled());
        assert!(!self.warned("no ASIC"));
    }

    /// Its driver loses it: power fails as well, or its tables stay.
    fn kill(&self, power: bool) {
        let mut chip = self.chip.lock();
        match power {
            true => chip.fail(),
            false => chip.die(),
        }
        chip.kept = !power;
    }

    /// The kernel says what was written to it.
    fn echo(&mut self) {
        let written = self.kernel.written.lock().unwrap();
        for w in written.iter().skip(self.echoed) {
            let (Write::FdbLearned { ifindex, mac, vlan } | Write::FdbAged { ifindex, mac, vlan }) =
                *w
            else {
                continue;
            };
            let entry = FdbEntry {
                bridge: BRIDGE,
                vlan,
                mac,
                ifindex,
                kind: FdbKind::ExternLearn,
                sticky: false,
            };
            self.kernel.pass(&[match w {
                Write::FdbAged { .. } => Event::Remove(SourceId(1), key_of(&entry)),
                _ => Event::Upsert(SourceId(1), Object::Fdb(entry)),
            }]);
        }
        self.echoed = written.len();
    }

    /// A turn in which the packet thread does nothing.
    fn turn_alone(&mut self) {
        self.now += 5 * MS;
        self.core.turn(self.now);
    }

    /// The chip learns a station while nobody listens to its events.
    fn station(&mut self, port: u16, n: u8) {
        let mut frame = vec![0xff; 6];
        frame.extend(mac(n));
        frame.extend([0x88, 0xb5]);
        frame.resize(60, 0);
        self.chip.lock().hear(port, &frame, self.now);
        assert!(self.stations().contains(&mac(n)));
    }

    /// Those that the chip has.
    fn stations(&self) -> BTreeSet<[u8; 6]> {
        let dump = raw::tnd_cmd {
            op: raw::TND_OP_DUMP,
            cls: raw::TND_CLS_FDB,
            out_size: 1 << 16,
            ..Default::default()
        };
        let mut out = Vec::new();
        let fw = &mut self.chip.lock().firmware;
        let cpl = fw.execute(&dump, &[], &mut out, self.now);
        assert_eq!((cpl.status, cpl.result), (raw::TND_ST_OK, 0));
        let entries = records::<raw::tnd_fdb>(&out).map(|(e, _)| e);
        let learned = entries.filter(|e| e.flags & raw::TND_FDB_LEARNED != 0);
        learned.map(|e| e.mac).collect()
    }

    /// Those that the kernel was told of.
    fn learned(&self) -> BTreeSet<[u8; 6]> {
        let written = self.kernel.written.lock().unwrap();
        let learned = |w: &Write| match w {
            Write::FdbLearned { mac, .. } => Some(*mac),
            _ => None,
        };
        written.iter().filter_map(learned).collect()
    }

    /// Loses the chip and attaches it, up to where the packet thread is to have it, which takes nothing: its channel is full.
    fn hand_over(&mut self) {
        let waits: Vec<_> = (0..64).map(|_| self.sync(60 * SECOND)).collect();
        assert_eq!(self.commands.len(), waits.len(), "full");
        self.chip.lock().packets = Some(Box::new(packets()));
        self.kill(false);
        for _ in 0..500 {
            self.turn_alone();
        }
        let why = self.told_alone().unwrap();
        assert!(
            why.contains("(the packet thread takes no commands)"),
            "{why}"
        );
    }

    fn ask(&mut self) -> Receiver<Result<String, String>> {
        let (to, said) = bounded(1);
        let done = Box::new(move |answer| drop(to.send(answer)));
        self.core.set_storm(1, raw::TND_STORM_BROADCAST, 0, done);
        said
    }

    /// What is said to somebody who asks the chip, in one turn, if it can't be asked.
    fn told(&mut self) -> Option<String> {
        let said = self.ask();
        self.turn();
        said.try_recv().ok()?.err()
    }

    fn told_alone(&mut self) -> Option<String> {
        let said = self.ask();
        self.turn_alone();
        said.try_recv().ok()?.err()
    }

    /// How far the attach is, by the answer to a question that the chip can't be asked: it comes in one turn. `None`: it is
    /// attached, and asked.
    fn asked(&mut self) -> Option<String> {
        let why = self.told()?;
        let attaching = "swp1: no ASIC attached: the chip is being attached (";
        if let Some(at) = why.strip_prefix(attaching) {
            return Some(at.trim_end_matches(')').to_owned());
        }
        assert_eq!(why, "swp1: no ASIC attached: is the chip running?");
        Some(String::new())
    }

    /// Calls when all of before is in the chip.
    fn sync(&mut self, timeout_ns: u64) -> Receiver<Result<u64, String>> {
        let (to, answer) = bounded(1);
        let done = Box::new(move |r| drop(to.send(r)));
        self.core.sync(timeout_ns, done);
        answer
    }

    fn has_route(&self, prefix: &str) -> bool {
        let mut rows = Vec::new();
        self.core.store().routes(Family::V4, 0, 10_000, &mut rows);
        rows.iter().any(|r| r.prefix == prefix)
    }

    fn warned(&self, text: &str) -> bool {
        self.core.warnings().iter().any(|w| w.contains(text))
    }
}

/// The packet half of an attach, as asicd's socket brings it.
fn packets() -> SalIo {
    let dir = std::env::temp_dir().join(format!("twin-packets-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let socket = dir.join(format!("{:?}.sock", std::thread::current().id()));
    let head = std::mem::size_of::<raw::tnd_platform>() as u32;
    let platform = raw::tnd_platform {
        struct_size: head as u16,
        port_count: 1,
        ports_offset: head,
        ..Default::default()
    };
    let port = raw::tnd_platform_port {
        port: 1,
        front_panel: 1,
        ..Default::default()
    };
    let spec = LayoutSpec {
        platform: [platform.as_bytes(), port.as_bytes()].concat(),
        ..LayoutSpec::default()
    };
    let mut side = DeviceSide::listen(&socket, spec).unwrap();
    let timeout = std::time::Duration::from_secs(5);
    let begun = Connecting::begin(&socket, "test", &Splits::new(), timeout).unwrap();
    side.handle();
    let Connected::Up(mut sal) = begun.go_on().unwrap() else {
        panic!("no welcome");
    };
    sal.ask_attach(Attach::Cold).unwrap();
    side.handle();
    side.acknowledge(Status::Ok);
    sal.attached().unwrap().unwrap().1
}

/// At each step events are taken, in the turn in which they come, and a question gets its answer.
#[test]
fn while_a_chip_is_slow_the_core_goes_on() {
    let mut rig = Rig::new();
    let writes = rig.core.store().counters().writes;
    rig.chip.lock().slow = 7;
    rig.kill(false);
    rig.turn();
    let late = rig.sync(60 * SECOND);
    let mut seen = Vec::new();
    while let Some(at) = rig.asked() {
        if seen.last() != Some(&at) {
            seen.push(at);
        }
        assert!(seen.len() <= 1 + STEPS.len(), "{seen:?}");
        assert!(!rig.has_route("30.0.0.0/8"));
        rig.kernel.say(via("30.0.0.0/8", 11, "10.1.0.2"));
        let early = rig.sync(MS);
        rig.turn();
        assert!(rig.has_route("30.0.0.0/8"), "not taken: {seen:?}");
        if let Ok(Err(why)) = early.try_recv() {
            assert!(why.contains("no ASIC attached"), "{why}");
        } else {
            assert!(rig.core.settled() || rig.asked().is_none(), "{seen:?}");
        }
        let gone = Key::Route(key("30.0.0.0/8"));
        rig.kernel.pass(&[Event::Remove(SourceId(1), gone)]);
        rig.turn();
    }
    assert_eq!(seen[0], "");
    assert_eq!(seen[1..], STEPS);
    assert!(late.is_empty());
    rig.chip.lock().slow = 0;
    rig.settle();
    late.try_recv().unwrap().unwrap();
    assert_eq!(rig.core.store().counters().writes, writes, "a warm attach");
}

/// `status` over its socket, by a core that has not a moment to lose: its time stands still, and so does the attach.
#[test]
fn status_says_how_far_an_attach_is() {
    let mut rig = Rig::new();
    rig.chip.lock().slow = usize::MAX;
    rig.kill(false);
    rig.turn();
    rig.turn();
    let dir = std::env::temp_dir().join(format!("twin-attach-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let socket = dir.join("core.sock");
    let router = api::router(rig.jobs.clone(), "t".into());
    let server = tandem_mgmt::server::serve(&socket, router).unwrap();
    let asker = std::thread::spawn(move || {
        let client = tandem_mgmt::Client::new(socket);
        let status: serde_json::Value = client.get("/v1/status").unwrap();
        let audit: Result<serde_json::Value, _> = client.post(
            "/v1/storm",
            &serde_json::json!({"port": "swp1", "kind": "broadcast", "packets": 5}),
        );
        (status, audit.unwrap_err().to_string())
    });
    while !asker.is_finished() {
        rig.core.turn(rig.now);
        std::thread::yield_now();
    }
    let (status, refused) = asker.join().unwrap();
    server.stop();
    let _ = std::fs::remove_dir_all(dir);
    assert_eq!(status["device"], "attaching", "{status}");
    let line = "no ASIC is attached: nothing is in hardware (the chip is being attached: connecting to it)";
    assert_eq!(status["warnings"], serde_json::json!([line]));
    assert!(
        refused.contains("is being attached (connecting to it)"),
        "{refused}"
    );
    rig.chip.lock().slow = 0;
    rig.settle();
}

/// Whatever step it dies at, with its tables or without, the next attach is right.
#[test]
fn a_chip_that_dies_while_it_is_attached_is_attached_anew() {
    for power in [false, true] {
        let mut rig = Rig::new();
        let mut seen = BTreeSet::new();
        for turns in 0.. {
            let writes = rig.core.store().counters().writes;
            rig.chip.lock().slow = 2;
            rig.kill(false);
            rig.turn();
            for _ in 0..turns {
                rig.turn();
            }
            let at = rig.asked();
            let begun = rig.chip.lock().seen.begun;
            rig.kill(power);
            rig.chip.lock().slow = 0;
            rig.settle();
            assert!(rig.chip.lock().seen.begun > begun, "{at:?}: it did not die");
            let written = rig.core.store().counters().writes - writes;
            assert_eq!(written > 0, power, "{at:?}: {written} writes");
            match at {
                Some(at) => seen.insert(at),
                None => break,
            };
            assert!(turns < 1000, "{seen:?}");
        }
        assert!(seen.remove(""));
        assert_eq!(seen, STEPS.map(String::from).into());
    }
}

/// It is tried again, a person is told once, and no turn waits.
#[test]
fn a_chip_that_never_answers_is_reported_and_tried_again() {
    for connects in [false, true] {
        let mut rig = Rig::new();
        rig.kill(false);
        if connects {
            rig.chip.lock().faults.ignored = 1000;
        } else {
            rig.chip.lock().slow = usize::MAX;
        }
        rig.run(4 * SECOND);
        assert!(!rig.warned("no ASIC"), "it has five seconds");
        rig.run(8 * SECOND);
        let at = STEPS[usize::from(connects)];
        let what = at.trim_end_matches(", page 1");
        let line = format!("no ASIC: attaching it got no answer in 5 s: {what}");
        let dark = "no ASIC for 10 s: the ports have no carrier";
        let warnings: Vec<&String> = rig.core.warnings().iter().collect();
        assert_eq!(warnings, [&line, dark], "{warnings:?}");
        assert_eq!(rig.asked().as_deref(), Some(at), "tried again");
        {
            let mut chip = rig.chip.lock();
            (chip.faults.ignored, chip.slow) = (0, 0);
        }
        // what it was asked while it ignored everything it never answers
        rig.run(5 * SECOND);
        rig.settle();
    }
}

/// Nothing is due before the next attempt, and before what an attach waits for is late.
#[test]
fn without_a_chip_the_core_sleeps() {
    let mut rig = Rig::new();
    // long enough that hit bits were due several times
    for slow in [0, usize::MAX] {
        rig.kill(false);
        rig.chip.lock().slow = slow;
        rig.chip.lock().refuses = (slow == 0).then(|| "it is closed".into());
        rig.run(9 * SECOND);
        let (mut wakes, end) = (0, rig.now + SECOND);
        while rig.now < end {
            while rig.core.turn(rig.now) {}
            rig.core.sleep(rig.now);
            rig.now += rig.chip.lock().seen.sleep_ns.max(1);
            wakes += 1;
        }
        assert!(wakes <= 12, "{wakes} times in a second");
    }
    let mut chip = rig.chip.lock();
    (chip.slow, chip.refuses) = (0, None);
    drop(chip);
    rig.settle();
}

/// A person reads why, once, and everybody who asks is told; when it is over nothing is left of it.
#[test]
fn a_chip_that_refuses_is_quoted() {
    let mut rig = Rig::new();
    let why = "the chip is driven by another (pid 7): stop it first";
    rig.chip.lock().refuses = Some(why.into());
    rig.kill(false);
    rig.run(2 * SECOND);
    assert!(rig.chip.lock().seen.begun > 5, "tried again");
    let warnings: Vec<&String> = rig.core.warnings().iter().collect();
    assert_eq!(warnings, [&format!("no ASIC: {why}")]);
    let mut told = BTreeSet::new();
    for _ in 0..200 {
        told.extend(rig.told());
    }
    let said = format!("swp1: no ASIC attached: {why}");
    assert_eq!(told, BTreeSet::from([said]));
    // another reason takes the place of the first one
    rig.chip.lock().refuses = Some("another reason".into());
    rig.run(SECOND);
    let warnings: Vec<&String> = rig.core.warnings().iter().collect();
    assert_eq!(warnings, ["no ASIC: another reason"]);
    rig.chip.lock().refuses = None;
    rig.settle();
    assert!(rig.core.warnings().is_empty(), "{:?}", rig.core.warnings());
}

/// Each step has its time, though it says of itself what the one before said.
#[test]
fn each_answer_gives_an_attach_new_time() {
    let mut rig = Rig::new();
    {
        let mut chip = rig.chip.lock();
        (chip.slow, chip.questions) = (600, 3);
    }
    rig.kill(false);
    // three seconds for each of twelve answers: the ports keep their carrier as long as they come
    rig.turn();
    let began = rig.now;
    while rig.told().is_some() {}
    assert!(rig.now - began > 30 * SECOND);
    assert!(!rig.warned("no ASIC"), "{:?}", rig.core.warnings());
    assert!(!rig.chip.lock().seen.dark);
    assert_eq!(rig.chip.lock().seen.begun, 1);
    rig.chip.lock().slow = 0;
    rig.settle();
}

/// Answers that come keep the carrier for the attach that brings them, not for ever.
#[test]
fn a_chip_that_never_gets_through_costs_the_carrier() {
    let mut rig = Rig::new();
    {
        let mut chip = rig.chip.lock();
        (chip.slow, chip.questions) = (400, 2);
        chip.refuses = Some("it thought better of it".into());
    }
    rig.kill(false);
    // six seconds each
    rig.run(11 * SECOND);
    assert!(!rig.chip.lock().seen.dark);
    rig.run(2 * SECOND);
    assert!(rig.chip.lock().seen.dark);
}

/// A line for each thing that is waited for, not for each page of it.
#[test]
fn a_page_that_does_not_come_is_one_warning() {
    let mut rig = Rig::new();
    rig.chip.lock().page = 64;
    let mut lines = BTreeSet::new();
    for turns in 0..40 {
        rig.kill(false);
        rig.turn();
        for _ in 0..turns {
            rig.turn();
        }
        rig.chip.lock().faults.ignored = 1000;
        rig.run(6 * SECOND);
        let text = |w: &&String| w.starts_with("no ASIC: ");
        let now: Vec<&String> = rig.core.warnings().iter().filter(text).collect();
        assert!(now.len() <= 1, "{now:?}");
        lines.extend(now.into_iter().cloned());
        rig.chip.lock().faults.ignored = 0;
        rig.run(6 * SECOND);
        rig.settle();
    }
    assert!(
        lines.iter().any(|l| l.contains("reading its FDB")),
        "{lines:?}"
    );
    assert!(lines.iter().all(|l| !l.contains("page")), "{lines:?}");
}

/// What takes many pages is read whole, from a chip that goes on meanwhile and from one that dies at any of them.
#[test]
fn a_chip_is_read_in_many_pages() {
    let mut rig = Rig::new();
    for n in 0..40 {
        rig.station(3, n);
    }
    rig.chip.lock().page = 64;
    for dies in [false, true] {
        let writes = rig.core.store().counters().writes;
        rig.chip.lock().slow = 1;
        rig.kill(false);
        rig.turn();
        let mut pages = BTreeSet::new();
        while let Some(at) = rig.asked() {
            if dies && at == "reading its FDB, page 9" && !pages.contains(&at) {
                rig.kill(false);
            }
            pages.insert(at);
        }
        assert!(pages.contains("reading its FDB, page 10"), "{pages:?}");
        rig.calm();
        assert_eq!(rig.core.store().counters().writes, writes, "warm");
        let learned = rig.learned();
        assert!((0..40).all(|n| learned.contains(&mac(n))), "{learned:?}");
    }
}

fn mac(n: u8) -> [u8; 6] {
    [2, 0, 0, 7, 0, n]
}

/// The packet thread takes nothing: what was read waits, whatever the sources say meanwhile, and it is used when there is
/// a chip.
#[test]
fn what_was_read_waits_for_the_packet_thread() {
    let mut rig = Rig::new();
    rig.station(3, 1);
    rig.station(4, 2);
    rig.hand_over();
    // swp4 has left the bridge
    let mut dump = rig.kernel.dump();
    dump.retain(|e| !matches!(e, Event::Upsert(_, Object::Link(l)) if l.ifindex == 14));
    let end = dump.len() - 1;
    dump.insert(end, Event::Upsert(SourceId(1), Object::Link(swp(4))));
    rig.kernel.pass(&dump);
    for _ in 0..20 {
        rig.turn_alone();
    }
    assert!(rig.learned().is_empty(), "nobody can know that it is right");
    assert!(rig.stations().contains(&mac(2)));
    rig.calm();
    assert_eq!(rig.learned(), BTreeSet::from([mac(1)]));
    assert_eq!(rig.stations(), BTreeSet::from([mac(1)]));
}

/// It dies before the packet thread had it: what it had learned is nothing.
#[test]
fn what_a_dead_chip_had_learned_is_forgotten() {
    for taken in [false, true] {
        let mut rig = Rig::new();
        rig.station(3, 1);
        rig.hand_over();
        if taken {
            let taken: Vec<Command> = rig.commands.try_iter().collect();
            assert_eq!(taken.len(), 64);
            rig.turn_alone();
            assert!(matches!(rig.commands.try_recv(), Ok(Command::Detach)));
            let Ok(Command::Attach(_, number)) = rig.commands.try_recv() else {
                panic!("not handed over");
            };
            rig.signals.dead.store(number, Ordering::Release);
        }
        rig.kill(true);
        rig.turn_alone();
        rig.kernel.resync();
        for _ in 0..20 {
            rig.turn_alone();
        }
        rig.settle();
        assert!(rig.learned().is_empty(), "{taken}: {:?}", rig.learned());
    }
}

/// The packet thread finds late that the rings of an attach before are dead.
#[test]
fn a_dead_ring_is_that_of_its_own_attach() {
    let mut rig = Rig::new();
    rig.kill(false);
    rig.turn();
    rig.settle();
    let begun = rig.chip.lock().seen.begun;
    rig.signals.dead.store(FIRST_ATTACH, Ordering::Release);
    rig.run(SECOND);
    rig.settle();
    assert_eq!(rig.chip.lock().seen.begun, begun, "attached anew");
    rig.signals.dead.store(FIRST_ATTACH + 1, Ordering::Release);
    rig.run(SECOND);
    rig.settle();
    assert_eq!(rig.chip.lock().seen.begun, begun + 1);
}
