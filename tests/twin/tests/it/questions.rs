//! What the chip is told beside the tables: the core waits for no answer, and each comes, or the reason why there is none.

use std::sync::Arc;

use crate::common::{addr, forwarding, local, swp, via};
use crate::fake::Fake;
use crossbeam_channel::{Receiver, bounded};
use tandem_abi::raw;
use tandem_core::plant::Front;
use tandem_core::{Core, Seat, Sources, api, storm};
use tandem_sal::Attach;
use tandem_store::model::*;
use tandem_twin::chip::{Direct, Shared, Sizes};
use tandem_twin::random::Random;
use tandem_twin::wired;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const KIND: u8 = raw::TND_STORM_BROADCAST;

struct Rig {
    core: Core,
    chip: Shared,
    kernel: Arc<Fake>,
    now: u64,
}

impl Rig {
    fn new() -> Rig {
        Rig::with(Sizes::BIG, Vec::new())
    }

    fn with(sizes: Sizes, objects: Vec<Object>) -> Rig {
        let chip = Shared::new(sizes.firmware(4).unwrap(), Random::new(1));
        chip.lock().cables(&[]);
        let front = |port: u16| Front {
            port,
            name: format!("swp{port}"),
            ifindex: 10 + u32::from(port),
        };
        let kernel = Fake::told(1, "kernel", objects);
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
            now: SECOND,
        };
        rig.settle();
        rig
    }

    fn settle(&mut self) {
        self.run(SECOND);
        assert!(self.core.settled());
    }

    fn run(&mut self, ns: u64) {
        let end = self.now + ns;
        while self.now < end {
            self.now += 5 * MS;
            self.core.turn(self.now);
        }
    }

    /// Sets a limit of swp1; where the answer comes.
    fn limit(&mut self, rate: u64) -> Receiver<Result<String, String>> {
        let (to, said) = bounded(1);
        let done = Box::new(move |answer| to.send(answer).unwrap());
        self.core.set_storm(1, KIND, rate, done);
        assert!(said.is_empty(), "answered before a turn");
        said
    }

    /// What the chip has of it.
    fn left(&self) -> storm::Storms {
        storm::left(&mut Direct::attach(&self.chip, Attach::Warm)).unwrap()
    }
}

#[test]
fn an_answer_comes_in_a_later_turn() {
    let mut rig = Rig::new();
    let said = rig.limit(500);
    rig.run(SECOND);
    let done = "swp1: broadcast at most 500 packets/s";
    assert_eq!(said.try_recv(), Ok(Ok(done.into())));
    assert_eq!(rig.left(), storm::Storms::from([((1, KIND), 500)]));
}

#[test]
fn a_chip_that_does_not_answer_keeps_nobody_waiting_for_ever() {
    let mut rig = Rig::new();
    rig.chip.lock().faults.ignored = 1000;
    let said = rig.limit(500);
    // it has five seconds
    rig.run(3 * SECOND);
    assert!(said.is_empty());
    rig.run(4 * SECOND);
    let why = said.try_recv().unwrap().unwrap_err();
    assert_eq!(why, "swp1: storm control: the chip did not answer in time");
}

/// Who asks when the chip dies is told so; a chip that has forgotten the limits has them again.
#[test]
fn a_chip_that_dies_owes_nobody_an_answer() {
    let mut rig = Rig::new();
    let set = rig.limit(500);
    rig.run(SECOND);
    assert!(set.try_recv().unwrap().is_ok());
    rig.chip.lock().faults.ignored = 1000;
    let said = rig.limit(700);
    rig.run(100 * MS);
    {
        let mut chip = rig.chip.lock();
        (chip.dead, chip.faults.ignored) = (true, 0);
    }
    rig.run(10 * MS);
    let why = said.try_recv().unwrap().unwrap_err();
    assert!(why.contains("the ASIC is lost: power failed"), "{why}");
    rig.run(SECOND);
    assert_eq!(rig.left(), storm::Storms::from([((1, KIND), 500)]));
}

#[test]
fn without_a_chip_there_is_a_reason_at_once() {
    let mut rig = Rig::new();
    rig.chip.lock().dead = true;
    // one turn: it is lost, and not looked for yet
    rig.run(5 * MS);
    let said = rig.limit(500);
    rig.run(5 * MS);
    let why = said.try_recv().unwrap().unwrap_err();
    assert_eq!(why, "swp1: no ASIC attached: is the chip running?");
}

/// An interface with 10.N.0.1/24, as the kernel tells of it.
fn addressed(ifindex: u32, n: u8) -> Vec<Object> {
    vec![
        forwarding(Family::V4, ConfScope::Interface(ifindex)),
        addr(ifindex, &format!("10.{n}.0.1/24")),
        local(&format!("10.{n}.0.1/32"), ifindex, RouteType::Local),
        broadcast(ifindex, n),
        via(&format!("10.{n}.0.0/24"), ifindex, ""),
    ]
}

fn broadcast(ifindex: u32, n: u8) -> Object {
    local(&format!("10.{n}.0.255/32"), ifindex, RouteType::Broadcast)
}

/// A bridge without room for its domain has no router interface: its connected prefix answers for no broadcast address, which has no
/// room either. So IPv4 of all interfaces is the kernel's, and rightly.
#[test]
fn an_audit_knows_of_own_prefixes_that_another_chip_would_leave_out() {
    let mut objects = vec![Object::Link(swp(1))];
    objects.extend(addressed(11, 1));
    for (bridge, port) in [(50, 2), (51, 3)] {
        objects.push(Object::Link(Link {
            ifindex: bridge,
            name: format!("br{bridge}"),
            kind: LinkKind::Bridge(BridgeInfo::default()),
            ..swp(port)
        }));
        objects.push(Object::Link(Link {
            master: bridge,
            bridge_port: Some(BridgePort::default()),
            ..swp(port)
        }));
    }
    objects.extend(addressed(51, 2));
    let sizes = Sizes {
        vlans: 1,
        ..Sizes::BIG
    };
    let mut rig = Rig::with(sizes, objects);
    let own = broadcast(51, 2);
    let Object::Route(Route { key, .. }) = &own else {
        return;
    };
    let gone = Event::Remove(SourceId(1), Key::Route(*key));
    rig.kernel.pass(&[gone]);
    rig.settle();
    rig.chip.lock().faults.refused = 1000;
    rig.kernel.say(own);
    rig.settle();
    rig.chip.lock().faults.refused = 0;
    let why = format!("{:?}", rig.core.store().port_reason(11));
    assert!(why.contains("OwnPrefix"), "{why}");
    let audit = api::audit_own(&mut rig.core).unwrap();
    assert_eq!(audit.items.len(), 0, "{:?}", audit.items);
}

/// More ranges of ports than the chip has: rules that trap, though the kernel has packets dropped there, and rules that would trap
/// anyway and lack theirs.
#[test]
fn an_audit_knows_of_rules_without_their_range() {
    let rule = |n: u16, kernel: bool| {
        let mut fields = raw::tnd_acl_key::default();
        let mut mask = raw::tnd_acl_key::default();
        (fields.ethertype, mask.ethertype) = (0x0800, u16::MAX);
        (fields.protocol, mask.protocol) = (17, u8::MAX);
        Object::Filter(Box::new(Filter {
            key: FilterKey {
                ifindex: 11,
                egress: false,
                chain: 0,
                priority: n,
                handle: 1,
            },
            text: String::new(),
            fields,
            mask,
            src_ports: None,
            dst_ports: Some((n, 1000 + n)),
            verdict: FilterVerdict::Drop,
            mirror: None,
            police: None,
            kernel: kernel.then(|| "skip_hw".into()),
        }))
    };
    for kernel in [false, true] {
        let mut objects = vec![Object::Link(swp(1))];
        objects.extend((1..=40).map(|n| rule(n, kernel)));
        let mut rig = Rig::with(Sizes::BIG, objects);
        rig.settle();
        let rows = rig.core.store().filters();
        assert_eq!(rows.len(), 40);
        assert!(rig.core.store().counters().waiting > 0);
        let audit = api::audit_own(&mut rig.core).unwrap();
        assert_eq!(audit.items.len(), 0, "{:?}", audit.items);
    }
}
