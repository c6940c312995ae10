//! Two sources with ports of their own, one core, and the chip in the process.
//!
//! ```text
//!   kernel: swp1, swp2, the default VRF ─┐                       ┌─► store ─► Direct ─► firmware ─► a packet
//!   other:  swp3, swp4, VRF red ─────────┴─ killed, back, away ──┘
//! ```

mod groups;
mod vlans;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::common::{addr, forwarding, local, mac, neigh, single, swp, via};
use crate::fake::Fake;
use crossbeam_channel::{Receiver, bounded};
use tandem_abi::object::{Object as _, read_object};
use tandem_abi::raw;
use tandem_core::io::{Command, Signals};
use tandem_core::plant::Front;
use tandem_core::source::Write;
use tandem_core::view::SharedView;
use tandem_core::{Core, Seat, Sources};
use tandem_sal::Attach;
use tandem_store::model::*;
use tandem_store::{Action, OWN_NUMBERS};
use tandem_twin::chip::{Passed, Shared, Sizes};
use tandem_twin::random::Random;
use tandem_twin::wired;
use tandem_vlans::Teller;

const KERNEL: u8 = 1;
const OTHER: u8 = 7;
const RED: u32 = OWN_NUMBERS + 70;
const TABLE: u32 = 10;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// How long the other one is waited for.
const HOLD: u64 = 5 * SECOND;

/// swpN with 10.N.0.1/24 and a station 10.N.0.2, in a table.
fn interface(n: u16, master: u32, table: Option<u32>) -> Vec<Object> {
    let i = 10 + u32::from(n);
    let link = Link { master, ..swp(n) };
    let own = local(&format!("10.{n}.0.1/32"), i, RouteType::Local);
    vec![
        Object::Link(link),
        forwarding(Family::V4, ConfScope::Interface(i)),
        addr(i, &format!("10.{n}.0.1/24")),
        placed(own, table),
        placed(via(&format!("10.{n}.0.0/24"), i, ""), table),
        neigh(i, &format!("10.{n}.0.2"), 100 + n as u8),
    ]
}

/// A route in another table.
fn placed(object: Object, table: Option<u32>) -> Object {
    match (object, table) {
        (Object::Route(mut r), Some(table)) => {
            r.key.table = table;
            Object::Route(r)
        }
        (other, _) => other,
    }
}

fn rule(family: Family, priority: u32, table: u32, l3mdev: bool) -> Object {
    Object::Rule(Rule {
        family,
        priority,
        table,
        is_default: !l3mdev,
        l3mdev,
        iif: String::new(),
        text: format!("from all lookup {table}"),
    })
}

/// swp1, swp2, and 20.0.0.0/8 behind swp1.
fn kernel_objects() -> Vec<Object> {
    let mut all = Vec::new();
    for f in [Family::V4, Family::V6] {
        all.push(rule(f, 32765, TABLE_LOCAL, false));
        all.push(rule(f, 1000, 0, true));
        all.push(rule(f, 32766, TABLE_MAIN, false));
    }
    all.extend(interface(1, 0, None));
    all.extend(interface(2, 0, None));
    all.push(via("20.0.0.0/8", 11, "10.1.0.2"));
    all
}

/// VRF red with swp3, swp4, and 30.0.0.0/8 behind swp3.
fn other_objects() -> Vec<Object> {
    let red = Link {
        ifindex: RED,
        name: "red".into(),
        kind: LinkKind::Vrf { table: TABLE },
        mac: mac(170),
        ..swp(1)
    };
    let mut all = vec![Object::Link(red)];
    all.extend(interface(3, RED, Some(TABLE)));
    all.extend(interface(4, RED, Some(TABLE)));
    all.push(behind_swp3());
    all
}

fn behind_swp3() -> Object {
    placed(via("30.0.0.0/8", 13, "10.3.0.2"), Some(TABLE))
}

struct Rig {
    core: Core,
    chip: Shared,
    signals: Arc<Signals>,
    commands: Receiver<Command>,
    /// Speaks for a source that has no thread here.
    teller: Option<Teller>,
    now: u64,
}

fn chip() -> Shared {
    let firmware = Sizes::BIG.firmware(4).unwrap();
    let chip = Shared::new(firmware, Random::new(1));
    chip.lock().cables(&[]);
    chip.lock().changes = Some(Vec::new());
    chip
}

impl Rig {
    fn new(chip: Shared, how: Attach, sources: &[(&Arc<Fake>, &[u16], u64)]) -> Rig {
        let front: Vec<Front> = (1..=4u16)
            .map(|port| Front {
                port,
                name: format!("swp{port}"),
                ifindex: 10 + u32::from(port),
            })
            .collect();
        let seat = |(source, ports, hold_ns): &(&Arc<Fake>, &[u16], u64)| Seat {
            source: Arc::clone(source) as _,
            ports: ports.to_vec(),
            hold_ns: *hold_ns,
        };
        Rig::seated(chip, how, front, sources.iter().map(seat).collect())
    }

    fn seated(chip: Shared, how: Attach, front: Vec<Front>, seats: Vec<Seat>) -> Rig {
        let sources = Sources::new(seats).unwrap();
        let mut wired = wired::core(&chip, front, how, sources).unwrap();
        // what goes in slices takes as many turns as it can
        wired.core.set_slice(1);
        Rig {
            core: wired.core,
            chip,
            signals: wired.signals,
            commands: wired.commands,
            teller: None,
            now: SECOND,
        }
    }

    /// Turns for so long.
    fn run(&mut self, ns: u64) {
        let end = self.now + ns;
        while self.now < end {
            self.now += 5 * MS;
            if let Some(teller) = &mut self.teller {
                teller.turn();
            }
            self.core.turn(self.now);
            for command in self.commands.try_iter() {
                if let Command::Barrier(token) = command {
                    self.signals.passed.fetch_max(token, Ordering::Release);
                }
            }
        }
    }

    /// Enough turns for all that is to be done.
    fn settle(&mut self) {
        self.run(SECOND);
        assert!(self.core.settled());
    }

    /// What was changed in the chip since this was asked last.
    fn changes(&mut self) -> Vec<(u16, u16, Vec<u8>)> {
        self.chip
            .lock()
            .changes
            .replace(Vec::new())
            .unwrap_or_default()
    }

    /// The port by which a packet for this address leaves that came in by `port`; None: it goes to the CPU, or nowhere.
    fn way(&mut self, port: u16, to: [u8; 4]) -> Option<u16> {
        let mut passed = Passed::default();
        let frame = packet(mac(port as u8), to);
        self.chip.lock().look(port, &frame, self.now, &mut passed);
        assert!(passed.out.len() < 2);
        passed.out.first().map(|o| o.0)
    }

    fn warned(&self, text: &str) -> bool {
        self.core.warnings().iter().any(|w| w.contains(text))
    }
}

/// UDP without payload.
fn packet(router: [u8; 6], to: [u8; 4]) -> Vec<u8> {
    let mut f = router.to_vec();
    f.extend([2, 9, 9, 9, 9, 9, 8, 0]);
    let mut ip = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 9, 9, 9];
    ip.extend(to);
    let words = ip
        .chunks(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let sum: u32 = words.sum();
    let sum = !((sum >> 16) + (sum & 0xffff)) as u16;
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    f.extend(ip);
    f.extend([0, 7, 0, 7, 0, 8, 0, 0]);
    f.resize(60, 0);
    f
}

/// Differences between what the sources want, the store and the chip.
fn audit(rig: &mut Rig) -> Result<usize, String> {
    let answer = tandem_core::api::audit_own(&mut rig.core)?;
    assert!(answer.compared["routes"] >= 5, "{:?}", answer.compared);
    Ok(answer.items.len())
}

/// Both, at work.
fn both() -> (Rig, Arc<Fake>, Arc<Fake>) {
    let kernel = Fake::told(KERNEL, "kernel", kernel_objects());
    let other = Fake::told(OTHER, "other", other_objects());
    let seats: [(_, &[u16], _); 2] = [(&kernel, &[1, 2], u64::MAX), (&other, &[3, 4], HOLD)];
    let mut rig = Rig::new(chip(), Attach::Cold, &seats);
    rig.settle();
    assert_eq!(rig.way(2, [20, 0, 0, 1]), Some(1));
    assert_eq!(rig.way(4, [30, 0, 0, 1]), Some(3));
    assert_eq!(audit(&mut rig), Ok(0));
    rig.changes();
    (rig, kernel, other)
}

/// None of these is about what only the kernel has: its ports, its router interfaces (theirs have the MACs), its routes.
fn none_of_the_kernels(changes: &[(u16, u16, Vec<u8>)]) {
    for (op, cls, body) in changes {
        let kernels = match *cls {
            raw::TND_CLS_PORT => {
                let (p, _) = read_object::<raw::tnd_port>(body).unwrap();
                p.port <= 2
            }
            raw::TND_CLS_ROUTE => {
                let (r, _) = read_object::<raw::tnd_route>(body).unwrap();
                r.vrf == 0
            }
            _ => false,
        };
        assert!(!kernels, "op {op}, class {cls}: {body:?}");
    }
}

#[test]
fn a_killed_source_costs_the_other_nothing() {
    let (mut rig, _kernel, other) = both();
    other.kill();
    rig.run(HOLD - SECOND);
    assert_eq!(rig.changes(), []);
    assert_eq!(rig.way(4, [30, 0, 0, 1]), Some(3), "it is waited for");
    assert!(audit(&mut rig).unwrap_err().contains("other is not there"));

    // back with all that it had: nothing is written
    let other = Fake::told(OTHER, "other", other_objects());
    rig.core.replace_source(other.clone()).unwrap();
    rig.run(HOLD);
    assert!(rig.core.settled());
    assert_eq!(rig.changes(), []);

    // back without a route: that one goes
    other.kill();
    rig.run(SECOND);
    let mut less = other_objects();
    assert!(less.pop().is_some());
    let other = Fake::told(OTHER, "other", less);
    rig.core.replace_source(other.clone()).unwrap();
    rig.settle();
    let changes = rig.changes();
    let (op, cls, body) = changes.iter().find(|c| c.1 == raw::TND_CLS_ROUTE).unwrap();
    assert_eq!((*op, *cls), (raw::TND_OP_DELETE, raw::tnd_route::CLASS));
    assert_eq!(read_object::<raw::tnd_route>(body).unwrap().0.addr[0], 30);
    none_of_the_kernels(&changes);
    assert_eq!(rig.way(4, [10, 3, 0, 2]), Some(3));

    // not back
    other.kill();
    rig.run(HOLD + SECOND);
    assert!(rig.core.settled());
    assert!(rig.warned("other is not there"));
    let changes = rig.changes();
    assert!(
        changes
            .iter()
            .any(|c| c.0 == raw::TND_OP_DELETE && c.1 == raw::TND_CLS_ROUTE)
    );
    none_of_the_kernels(&changes);
    assert_eq!(rig.way(4, [10, 3, 0, 2]), None);
    assert_eq!(rig.way(2, [20, 0, 0, 1]), Some(1));
    assert_eq!(audit(&mut rig), Ok(0));

    // late
    let other = Fake::told(OTHER, "other", other_objects());
    rig.core.replace_source(other.clone()).unwrap();
    rig.settle();
    none_of_the_kernels(&rig.changes());
    assert_eq!(rig.way(4, [30, 0, 0, 1]), Some(3));
    assert!(!rig.warned("other is not there"));
}

/// The kernel, and the other one, which has to be asked for its dump and is not heard yet.
fn one_is_slow() -> (Rig, Arc<Fake>) {
    let kernel = Fake::told(KERNEL, "kernel", kernel_objects());
    let other = Fake::new(OTHER, "other", other_objects());
    *other.asked.lock().unwrap() = Some(0);
    let seats: [(_, &[u16], _); 2] = [(&kernel, &[1, 2], u64::MAX), (&other, &[3, 4], HOLD)];
    (Rig::new(chip(), Attach::Cold, &seats), other)
}

#[test]
fn a_dump_that_outlasts_the_hold_time_is_asked_for_again() {
    let (mut rig, other) = one_is_slow();
    let dump = other.dump();
    // all but the route behind swp3 is said in time
    let (first, rest) = dump.split_at(dump.len() - 2);
    other.pass(first);
    rig.run(HOLD + SECOND);
    assert!(rig.core.settled());
    assert!(rig.warned("other is not there"));
    assert_eq!(*other.asked.lock().unwrap(), Some(1));
    assert_eq!(rig.way(4, [10, 3, 0, 2]), None);

    // the rest of what it was saying, and a change to it: without the first part they are nothing
    rig.changes();
    other.pass(rest);
    other.say(Object::Link(Link {
        master: RED,
        ..swp(4)
    }));
    other.pass(&[
        Event::BeginSync(SourceId(OTHER), KindSet::ADDR),
        Event::EndSync(SourceId(OTHER)),
    ]);
    rig.settle();
    assert_eq!(rig.changes(), []);
    assert!(rig.warned("other is not there"));
    assert_eq!(audit(&mut rig), Ok(0));

    // asked for, in two parts, and a change behind it
    other.pass(first);
    rig.run(SECOND);
    assert!(rig.warned("other is not there"), "its dump is not complete");
    other.pass(rest);
    other.say(placed(via("60.0.0.0/8", 14, "10.4.0.2"), Some(TABLE)));
    rig.settle();
    assert!(!rig.warned("other is not there"));
    assert_eq!(rig.way(4, [10, 3, 0, 2]), Some(3));
    assert_eq!(rig.way(4, [30, 0, 0, 1]), Some(3));
    assert_eq!(rig.way(3, [60, 0, 0, 1]), Some(4));
    assert_eq!(*other.asked.lock().unwrap(), Some(1));
}

/// What its dump did not confirm is swept for longer than it was to be waited for.
#[test]
fn one_whose_dump_has_come_to_its_end_is_there() {
    let (mut rig, other) = one_is_slow();
    rig.run(HOLD - 10 * MS);
    other.pass(&other.dump());
    rig.settle();
    assert!(!rig.warned("other is not there"));
    assert_eq!(*other.asked.lock().unwrap(), Some(0));
    assert_eq!(rig.way(4, [30, 0, 0, 1]), Some(3));
}

#[test]
fn what_one_that_is_away_began_to_say_goes_with_it() {
    let (mut rig, other) = one_is_slow();
    rig.run(HOLD + SECOND);
    assert_eq!(*other.asked.lock().unwrap(), Some(1));
    let dump = other.dump();
    rig.changes();
    other.pass(&dump[..dump.len() - 1]);
    rig.run(SECOND);
    assert_ne!(rig.changes(), []);
    other.kill();
    rig.settle();
    assert!(rig.warned("other is not there"));
    assert_eq!(rig.way(4, [10, 3, 0, 2]), None);
    assert_eq!(audit(&mut rig), Ok(0));
}

#[test]
fn the_chip_is_swept_when_all_sources_have_told() {
    for comes in [true, false] {
        let (rig, ..) = both();
        let chip = rig.chip.clone();
        drop(rig);
        let kernel = Fake::told(KERNEL, "kernel", kernel_objects());
        let other = Fake::new(OTHER, "other", other_objects());
        // asked when its time is over, it says nothing
        *other.asked.lock().unwrap() = Some(0);
        let seats: [(_, &[u16], _); 2] = [(&kernel, &[1, 2], u64::MAX), (&other, &[3, 4], HOLD)];
        let mut rig = Rig::new(chip, Attach::Warm, &seats);
        rig.run(HOLD - SECOND);
        assert_eq!(rig.changes(), []);
        assert!(!rig.core.settled());
        assert_eq!(rig.way(4, [30, 0, 0, 1]), Some(3));
        assert_eq!(rig.way(2, [20, 0, 0, 1]), Some(1));
        if comes {
            other.pass(&other.dump());
        }
        rig.run(3 * SECOND);
        assert!(rig.core.settled());
        let ends = rig.changes();
        let ends = ends.iter().filter(|c| c.0 == raw::TND_OP_END_RESYNC);
        assert_eq!(ends.count(), 1);
        assert_eq!(rig.way(4, [30, 0, 0, 1]), comes.then_some(3));
        assert_eq!(rig.way(2, [20, 0, 0, 1]), Some(1));
        assert_eq!(rig.warned("other is not there"), !comes);
    }
}

#[test]
fn what_leads_to_another_sources_interface_traps_before_that_goes() {
    let (mut rig, kernel, other) = both();
    kernel.say(via("40.0.0.0/8", 13, "10.3.0.2"));
    rig.settle();
    assert_eq!(rig.way(2, [40, 0, 0, 1]), Some(3));
    rig.changes();
    other.kill();
    rig.run(HOLD + SECOND);
    assert!(rig.core.settled());
    let changes = rig.changes();
    let trapped = changes.iter().position(|(_, cls, body)| {
        *cls == raw::TND_CLS_ROUTE && read_object::<raw::tnd_route>(body).unwrap().0.addr[0] == 40
    });
    let gone = |cls, of_it: &dyn Fn(&[u8]) -> bool| {
        changes
            .iter()
            .position(|c| c.0 == raw::TND_OP_DELETE && c.1 == cls && of_it(&c.2))
    };
    let nexthop = gone(raw::TND_CLS_NEXTHOP, &|_| true);
    assert!(trapped.unwrap() < nexthop.unwrap());
    // that of its other port goes as it can
    let rif = gone(raw::TND_CLS_RIF, &|body| {
        read_object::<raw::tnd_rif>(body).unwrap().0.port == 3
    });
    assert!(trapped.unwrap() < rif.unwrap());
    assert_eq!(rig.way(2, [40, 0, 0, 1]), None);
    let mut rows = Vec::new();
    rig.core.store().routes(Family::V4, 0, 100, &mut rows);
    let row = rows.iter().find(|r| r.prefix == "40.0.0.0/8").unwrap();
    assert_eq!((row.action, row.source), (Action::Trap, KERNEL));
}

#[test]
fn nobody_speaks_of_what_is_anothers() {
    let (mut rig, kernel, other) = both();
    let wrong = [
        // the port of the other one, its device, its table, what stands on its device
        (
            &other,
            Object::Link(Link {
                ifindex: 99,
                ..swp(1)
            }),
            "port 1",
        ),
        (
            &other,
            Object::Link(Link {
                mtu: 9000,
                ..swp(2)
            }),
            "port 2",
        ),
        // a device and a next-hop object of its own, with numbers that the kernel may give to its own
        (
            &other,
            Object::Link(Link {
                ifindex: 70,
                kind: LinkKind::Vrf { table: 20 },
                ..swp(1)
            }),
            "device 70 (below 2147483648)",
        ),
        (
            &other,
            single(OWN_NUMBERS - 1, 13, "10.3.0.2"),
            "next-hop object 2147483647 (below 2147483648)",
        ),
        (&other, addr(11, "10.77.0.1/24"), "device 11"),
        (&other, via("50.0.0.0/8", 13, "10.3.0.2"), "the default VRF"),
        (&other, rule(Family::V4, 5, 77, false), "policy"),
        (
            &kernel,
            placed(via("50.0.0.0/8", 11, "10.1.0.2"), Some(TABLE)),
            "table 10",
        ),
        (&kernel, neigh(13, "10.3.0.2", 1), "device 13"),
        (
            &kernel,
            forwarding(Family::V4, ConfScope::Interface(13)),
            "device 13",
        ),
    ];
    let count = wrong.len() as u64;
    for (source, object, what) in wrong {
        source.say(object);
        rig.settle();
        let whose = match Arc::ptr_eq(source, &kernel) {
            true => ("kernel", "other"),
            false => ("other", "kernel"),
        };
        let line = format!("{}: {what} belongs to {}", whose.0, whose.1);
        assert!(rig.warned(&line), "{line}");
    }
    assert_eq!(rig.changes(), []);
    assert_eq!(rig.core.store().counters().refused, count);
    assert_eq!(audit(&mut rig), Ok(0));
    assert_eq!(rig.way(2, [20, 0, 0, 1]), Some(1));
    assert_eq!(rig.way(4, [30, 0, 0, 1]), Some(3));
}

#[test]
fn a_barrier_passes_all_sources_and_writes_go_to_the_owner() {
    let (mut rig, kernel, other) = both();
    *other.silent.lock().unwrap() = Some(Vec::new());
    let (to, answer) = bounded(1);
    rig.core
        .sync(60 * SECOND, Box::new(move |r| to.send(r).unwrap()));
    rig.run(2 * SECOND);
    assert!(answer.is_empty(), "one source has not passed it");
    let kept = other.silent.lock().unwrap().take().unwrap();
    kept.into_iter()
        .for_each(|t| tandem_core::source::Source::barrier(&*other, t));
    rig.run(SECOND);
    answer.try_recv().unwrap().unwrap();

    // whoever is away is not waited for
    other.kill();
    let (to, answer) = bounded(1);
    rig.core
        .sync(60 * SECOND, Box::new(move |r| to.send(r).unwrap()));
    rig.run(SECOND);
    assert!(answer.is_empty());
    rig.run(HOLD);
    answer.try_recv().unwrap().unwrap();

    // a gateway that nobody has resolved is asked for where it is
    let other = Fake::told(OTHER, "other", other_objects());
    rig.core.replace_source(other.clone()).unwrap();
    rig.settle();
    other.say(placed(via("60.0.0.0/8", 14, "10.4.0.9"), Some(TABLE)));
    rig.settle();
    let asked = |w: &Write| matches!(w, Write::NeighUse { ifindex: 14, .. });
    assert!(other.written.lock().unwrap().iter().any(asked));
    assert!(!kernel.written.lock().unwrap().iter().any(asked));
}

/// Somebody was asked to resolve a gateway behind this device.
fn asked_behind(source: &Fake, device: u32) -> bool {
    let written = source.written.lock().unwrap();
    let asks = |w: &Write| matches!(w, Write::NeighUse { ifindex, .. } if *ifindex == device);
    written.iter().any(asks)
}

#[test]
fn one_that_cannot_be_written_to_keeps_nobody_elses_writes() {
    let (mut rig, kernel, other) = both();
    other.kill();
    let other = Fake::told(OTHER, "other", other_objects());
    other.shut.store(true, Ordering::Relaxed);
    rig.core.replace_source(other.clone()).unwrap();
    rig.settle();
    kernel.say(via("60.0.0.0/8", 12, "10.2.0.9"));
    other.say(placed(via("61.0.0.0/8", 14, "10.4.0.9"), Some(TABLE)));
    rig.settle();
    assert!(asked_behind(&kernel, 12));
    assert!(!asked_behind(&other, 14));
    // it is tried again
    other.shut.store(false, Ordering::Relaxed);
    other.say(placed(via("62.0.0.0/8", 13, "10.3.0.9"), Some(TABLE)));
    rig.settle();
    assert!(asked_behind(&other, 13));
    assert!(!asked_behind(&kernel, 13));
}

#[test]
fn a_core_begins_with_one_that_cannot_be_written_to() {
    let kernel = Fake::told(KERNEL, "kernel", kernel_objects());
    let other = Fake::told(OTHER, "other", other_objects());
    other.shut.store(true, Ordering::Relaxed);
    let sources = |seats: &[(&Arc<Fake>, &[u16])]| {
        let seat = |(source, ports): &(&Arc<Fake>, &[u16])| Seat {
            source: Arc::clone(source) as _,
            ports: ports.to_vec(),
            hold_ns: HOLD,
        };
        Sources::new(seats.iter().map(seat).collect()).unwrap()
    };
    let view = SharedView::default();
    let two = sources(&[(&kernel, &[1, 2]), (&other, &[3, 4])]);
    assert!(two.writer(view.clone()).is_ok());
    let error = sources(&[(&other, &[3, 4])]).writer(view).err().unwrap();
    assert_eq!(error.0, "other can't be written to");
}

#[test]
fn what_is_said_of_a_device_before_its_owner_says_it_goes() {
    let kernel = Fake::new(KERNEL, "kernel", kernel_objects());
    *kernel.asked.lock().unwrap() = Some(0);
    let mut objects = other_objects();
    objects.extend([
        neigh(11, "10.1.0.9", 9),
        addr(11, "10.77.0.1/24"),
        forwarding(Family::V4, ConfScope::Interface(11)),
    ]);
    let other = Fake::told(OTHER, "other", objects);
    let seats: [(_, &[u16], _); 2] = [(&kernel, &[1, 2], u64::MAX), (&other, &[3, 4], HOLD)];
    let mut rig = Rig::new(chip(), Attach::Cold, &seats);
    rig.run(SECOND);
    kernel.pass(&kernel.dump());
    rig.settle();
    assert_eq!(rig.way(2, [10, 1, 0, 9]), None);
    assert_eq!(rig.way(2, [20, 0, 0, 1]), Some(1));
    assert!(rig.warned("other: device 11 belongs to kernel"));
    assert_eq!(rig.core.store().counters().refused, 3);
    assert_eq!(audit(&mut rig), Ok(0));
    // what the owner had said of it before may have been written over: it is asked once more
    assert_eq!(*kernel.asked.lock().unwrap(), Some(1));
    rig.changes();
    kernel.pass(&kernel.dump());
    rig.settle();
    assert_eq!(rig.changes(), []);
    assert_eq!(*kernel.asked.lock().unwrap(), Some(1));
}

#[test]
fn routes_of_a_table_before_its_vrf_are_the_vrfs_owners() {
    let mut objects = kernel_objects();
    objects.push(placed(via("50.0.0.0/8", 11, "10.1.0.2"), Some(TABLE)));
    let kernel = Fake::told(KERNEL, "kernel", objects);
    let other = Fake::new(OTHER, "other", other_objects());
    let seats: [(_, &[u16], _); 2] = [(&kernel, &[1, 2], u64::MAX), (&other, &[3, 4], HOLD)];
    let mut rig = Rig::new(chip(), Attach::Cold, &seats);
    rig.run(SECOND);
    other.pass(&other.dump());
    rig.settle();
    assert_eq!(rig.way(4, [50, 0, 0, 1]), None);
    assert_eq!(rig.way(4, [30, 0, 0, 1]), Some(3));
    assert_eq!(audit(&mut rig), Ok(0));
}

/// A port's netdev goes to another network namespace, or is there when the core begins, and no message says so: the dump that
/// does not know it does.
#[test]
fn a_port_that_a_dump_does_not_know_is_in_another_namespace() {
    let moved = "swp2: its netdev is in another network namespace";
    let without = |dump: Vec<Event>| -> Vec<Event> {
        let is_it = |e: &Event| matches!(e, Event::Upsert(_, Object::Link(l)) if l.ifindex == 12);
        dump.into_iter().filter(|e| !is_it(e)).collect()
    };
    let (mut rig, kernel, _other) = both();
    assert!(!rig.warned(moved));
    kernel.pass(&without(kernel.dump()));
    rig.settle();
    assert!(rig.warned(moved));
    assert_eq!(rig.core.warnings().len(), 1, "{:?}", rig.core.warnings());
    kernel.pass(&without(kernel.dump()));
    rig.settle();
    assert_eq!(rig.core.warnings().len(), 1);
    kernel.pass(&kernel.dump());
    rig.settle();
    assert!(!rig.warned(moved));
    assert_eq!(rig.way(1, [10, 2, 0, 2]), Some(2));

    let kernel = Fake::new(KERNEL, "kernel", kernel_objects());
    kernel.pass(&without(kernel.dump()));
    let seats: [(_, &[u16], _); 1] = [(&kernel, &[1, 2, 3, 4], u64::MAX)];
    let mut rig = Rig::new(chip(), Attach::Cold, &seats);
    rig.settle();
    assert!(rig.warned(moved));
}
