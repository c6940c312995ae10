//! Whatever is on its way, and however slowly the chip answers: what it does with a packet at any moment the kernel did at some
//! moment since all was written the last time, or the CPU has the packet.

use crate::common::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use tandem_abi::raw::TND_ST_FAULT;
use tandem_store::model::*;
use tandem_store::*;

/// Each holds the ones after it.
const PREFIXES: [(&str, u32); 5] = [
    ("0.0.0.0/0", 0),
    ("40.0.0.0/8", 0xff00_0000),
    ("40.1.0.0/16", 0xffff_0000),
    ("40.1.1.0/24", 0xffff_ff00),
    ("40.1.1.1/32", 0xffff_ffff),
];
/// For each prefix an address that no longer one holds.
const ADDRESSES: [[u8; 4]; 5] = [
    [50, 0, 0, 1],
    [40, 2, 0, 1],
    [40, 1, 2, 1],
    [40, 1, 1, 2],
    [40, 1, 1, 1],
];

/// Own prefixes: the kernel looks at these first. Both hold the address of 40.1.0.0/16.
const OWN: [&str; 2] = ["40.1.2.0/24", "40.1.2.1/32"];

#[derive(Clone, Copy, Debug)]
enum Op {
    /// A route of this prefix is made or replaced: by one of two known gateways, or by one that the chip has never heard of.
    Route(usize, u8),
    Del(usize),
    /// An own prefix comes or goes.
    Own(usize, bool),
    Plan,
    /// The chip executes one command of this ring.
    Run(usize),
    /// The chip fails one command about a route, and says so.
    Fail,
    /// One command about a route gets no answer, and was carried out or not.
    Lose(bool),
    /// One of the two known gateways is another station; not where a prefix was made since the last rest: what covers that one may go by
    /// the new station before it is there.
    Moves(u8),
    /// What is done to this prefix next is not told: a dump finds it.
    Unheard(usize, u8),
    /// A dump begins, and has the routes, the widest ones first or last.
    Dump(bool),
    /// And ends, if one runs. At a rest it has ended, and there is one if something was not told.
    Dumped,
    Rest,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => (0usize..5, 0u8..4).prop_map(|(p, g)| Op::Route(p, g)),
        3 => (0usize..5).prop_map(Op::Del),
        2 => (0usize..2, any::<bool>()).prop_map(|(n, there)| Op::Own(n, there)),
        4 => Just(Op::Plan),
        3 => Just(Op::Run(0)),
        6 => Just(Op::Run(1)),
        1 => Just(Op::Fail),
        1 => any::<bool>().prop_map(Op::Lose),
        2 => (0u8..2).prop_map(Op::Moves),
        2 => (0usize..5, 0u8..5).prop_map(|(p, g)| Op::Unheard(p, g)),
        2 => any::<bool>().prop_map(Op::Dump),
        2 => Just(Op::Dumped),
        2 => Just(Op::Rest),
    ]
}

struct Play {
    rig: Rig,
    /// The gateway of each prefix.
    kernel: BTreeMap<usize, u8>,
    own: [bool; OWN.len()],
    /// The station that a gateway is, where that is not the one of its own number.
    stations: BTreeMap<u8, u8>,
    /// What the kernel has done with each address since the last rest: to this station, or an error.
    since: Vec<Vec<Option<u8>>>,
    fresh: u8,
    failed: usize,
    /// A prefix was made since the last rest.
    made: bool,
    /// Prefixes that have left one of the two gateways since then, and which of these have another station.
    left: BTreeSet<(usize, u8)>,
    moved: BTreeSet<u8>,
    /// Something was not told.
    unheard: bool,
    dumping: bool,
}

/// So many commands fail at most since the last rest: one that fails more often is given up.
const FAILURES: usize = 3;

impl Play {
    fn new(outstanding: usize, room: Option<u32>) -> Play {
        let mut rig = match room {
            Some(routes) => Rig::tiny(routes, Policy::Trap),
            None => Rig::new("spectrum-sn2700", Policy::Trap),
        };
        rig.store = Store::new(Config {
            max_outstanding: [outstanding; 2],
            ..rig.chip.config(Policy::Trap)
        });
        rig.begin();
        interface(&mut rig, 1);
        interface(&mut rig, 2);
        rig.up(neigh(11, "10.1.0.3", 3));
        rig.up(neigh(12, "10.2.0.4", 4));
        rig.up(via("60.0.0.0/8", 11, "10.1.0.3"));
        rig.up(via("61.0.0.0/8", 12, "10.2.0.4"));
        rig.end();
        rig.store.attach(Attach::Cold, 0);
        rig.settle();
        Play {
            rig,
            kernel: BTreeMap::new(),
            own: [false; OWN.len()],
            stations: BTreeMap::new(),
            since: vec![vec![None]; ADDRESSES.len()],
            fresh: 10,
            failed: 0,
            made: false,
            left: BTreeSet::new(),
            moved: BTreeSet::new(),
            unheard: false,
            dumping: false,
        }
    }

    fn answer(&self, address: usize) -> Option<u8> {
        if address == 2 && self.own.contains(&true) {
            return None;
        }
        let a = u32::from_be_bytes(ADDRESSES[address]);
        let (_, gateway) = (self.kernel.iter().rev()).find(|(p, _)| {
            let (text, mask) = PREFIXES[**p];
            let of: Ipv4Addr = text.split('/').next().unwrap().parse().unwrap();
            a & mask == of.to_bits()
        })?;
        Some(self.station(*gateway))
    }

    /// The kernel's route of a prefix is another one.
    fn leads(&mut self, p: usize, g: u8) {
        self.leaves(p, Some(g));
        let gateway = match g {
            0 => 3,
            1 => 4,
            _ => {
                self.fresh += 1;
                self.fresh
            }
        };
        self.made |= self.kernel.insert(p, gateway).is_none();
    }

    fn tell(&mut self, p: usize) {
        let Some(&gateway) = self.kernel.get(&p) else {
            return;
        };
        let port = if gateway == 4 { 2 } else { 1 };
        let text = format!("10.{port}.0.{gateway}");
        let station = self.station(gateway);
        self.rig.up(neigh(10 + port, &text, station));
        self.rig.up(via(PREFIXES[p].0, 10 + port, &text));
    }

    /// Interfaces, gateways and routes once more.
    fn dump(&mut self, widest_first: bool) {
        self.rig.begin();
        self.dumping = true;
        self.unheard = false;
        interface(&mut self.rig, 1);
        interface(&mut self.rig, 2);
        for (port, gateway) in [(1u32, 3), (2, 4)] {
            let text = format!("10.{port}.0.{gateway}");
            let station = self.station(gateway);
            self.rig.up(neigh(10 + port, &text, station));
        }
        self.rig.up(via("60.0.0.0/8", 11, "10.1.0.3"));
        self.rig.up(via("61.0.0.0/8", 12, "10.2.0.4"));
        let mut all: Vec<usize> = self.kernel.keys().copied().collect();
        if !widest_first {
            all.reverse();
        }
        all.into_iter().for_each(|p| self.tell(p));
        let own = OWN.iter().zip(self.own).filter(|(_, there)| *there);
        for (own, _) in own {
            self.rig.up(local(own, 12, RouteType::Local));
        }
    }

    fn dumped(&mut self) {
        if self.dumping {
            self.rig.end();
            self.dumping = false;
        }
    }

    /// A prefix goes, or goes by something else.
    fn leaves(&mut self, p: usize, to: Option<u8>) {
        let of = |gateway: &u8| gateway.checked_sub(3).filter(|g| *g < 2);
        if let Some(from) = self.kernel.get(&p).and_then(of)
            && to != Some(from)
        {
            self.left.insert((p, from));
        }
    }

    fn station(&self, gateway: u8) -> u8 {
        self.stations.get(&gateway).copied().unwrap_or(gateway)
    }

    fn play(&mut self, op: Op) -> Result<(), String> {
        // behind what was lost nothing is heard before the dump
        let op = match op {
            Op::Route(p, g) if self.unheard => Op::Unheard(p, g),
            Op::Del(p) if self.unheard => Op::Unheard(p, 4),
            Op::Own(..) | Op::Moves(_) if self.unheard => Op::Plan,
            op => op,
        };
        match op {
            // the station is written ahead of the prefixes that came before this one was back
            Op::Route(p, g) if self.left.contains(&(p, g)) && self.moved.contains(&g) => {}
            Op::Route(p, g) => {
                self.leads(p, g);
                self.tell(p);
            }
            Op::Unheard(..) | Op::Dump(_) if self.failed > 0 => {}
            Op::Unheard(p, g) if self.left.contains(&(p, g)) && self.moved.contains(&g) => {}
            Op::Unheard(p, 4) => {
                self.leaves(p, None);
                self.kernel.remove(&p);
                self.unheard = true;
            }
            Op::Unheard(p, g) => {
                self.leads(p, g);
                self.unheard = true;
            }
            Op::Dump(widest_first) => self.dump(widest_first),
            Op::Dumped => self.dumped(),
            Op::Del(p) => {
                self.leaves(p, None);
                self.rig.del(Key::Route(key(PREFIXES[p].0)));
                self.kernel.remove(&p);
            }
            Op::Own(n, there) => {
                let own = local(OWN[n], 12, RouteType::Local);
                match (own, there) {
                    (own, true) => self.rig.up(own),
                    (Object::Route(own), false) => self.rig.del(Key::Route(own.key)),
                    _ => unreachable!(),
                }
                self.made |= there && !self.own[n];
                self.own[n] = there;
            }
            Op::Plan => _ = self.rig.plan(),
            Op::Run(ring) => _ = self.rig.run(ring),
            Op::Fail if self.failed < FAILURES => {
                if let Some(p) = self.rig.chip.rings[1].pop_front() {
                    let c = Completion {
                        status: TND_ST_FAULT,
                        ..Completion::default()
                    };
                    self.rig.store.complete(p.token, &c, self.rig.now);
                    self.failed += 1;
                }
            }
            Op::Lose(done) if self.failed < FAILURES => {
                if let Some(p) = self.rig.chip.rings[1].front().map(|p| p.token) {
                    match done {
                        true => _ = self.rig.chip.run(1),
                        false => _ = self.rig.chip.rings[1].pop_front(),
                    }
                    self.rig.store.timed_out(p, self.rig.now);
                    self.failed += 1;
                }
            }
            Op::Fail | Op::Lose(_) => {}
            Op::Moves(_) if self.made => {}
            Op::Moves(g) => {
                self.moved.insert(g);
                self.fresh += 1;
                self.stations.insert(3 + g, self.fresh);
                let text = ["10.1.0.3", "10.2.0.4"][usize::from(g)];
                self.rig.up(neigh(11 + u32::from(g), text, self.fresh));
            }
            Op::Rest => {
                self.dumped();
                if self.unheard {
                    self.dump(true);
                    self.dumped();
                }
                self.rig.settle();
                (self.failed, self.made) = (0, false);
                self.left.clear();
                self.moved.clear();
                (0..ADDRESSES.len()).for_each(|a| self.since[a].clear());
            }
        }
        for (i, a) in ADDRESSES.iter().enumerate() {
            let now = self.answer(i);
            if self.since[i].last() != Some(&now) {
                self.since[i].push(now);
            }
            let chip = self.rig.chip.lookup(IpAddr::from(*a));
            let allowed = match &chip {
                Answer::Trap => true,
                Answer::Ways(w) => (self.since[i].iter().flatten()).any(|m| w[0].1 == mac(*m)),
                Answer::Drop => false,
            };
            if !allowed {
                return Err(format!(
                    "{a:?}: {chip:?}, and the kernel {:?}",
                    self.since[i]
                ));
            }
        }
        Ok(())
    }
}

fn play(ops: &[Op], outstanding: usize, room: Option<u32>) -> Result<Play, String> {
    let mut p = Play::new(outstanding, room);
    for (i, op) in ops.iter().enumerate() {
        p.play(*op).map_err(|e| format!("at {i}, {op:?}: {e}"))?;
    }
    Ok(p)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: std::env::var("PROPTEST_CASES").ok().and_then(|v| v.parse().ok()).unwrap_or(500), max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn the_chip_answers_as_the_kernel_did(
        ops in prop::collection::vec(op(), 1..60),
        outstanding in prop::sample::select(vec![1usize, 2, 64]),
        room in prop::sample::select(vec![None, None, Some(6), Some(8)]),
    ) {
        let r = play(&ops, outstanding, room);
        prop_assert!(r.is_ok(), "{}", r.err().unwrap());
        let mut p = r.unwrap();
        p.play(Op::Rest).unwrap();
        for (i, a) in ADDRESSES.iter().enumerate() {
            let chip = p.rig.chip.lookup(IpAddr::from(*a));
            let wanted = match p.answer(i) {
                Some(m) => by(m, &chip),
                None => chip == Answer::Trap,
            };
            prop_assert!(wanted || (room.is_some() && chip == Answer::Trap), "{:?}: {:?}", a, chip);
        }
    }
}

/// What has been wrong.
#[test]
fn nothing_is_passed() {
    use Op::{Del, Dump, Dumped, Lose, Moves, Own, Plan, Rest, Route, Run, Unheard};
    let [one, other, fresh] = [0, 1, 2];
    // a prefix that is queued changes once more, and one for a part of it has come between
    let queued: &[Op] = &[
        Route(0, one),
        Route(1, one),
        Rest,
        Route(1, fresh),
        Route(2, one),
        Route(1, other),
        Plan,
        Run(1),
        Run(1),
        Run(0),
        Plan,
    ];
    let goes = &[queued[..5].to_vec(), vec![Del(1)], queued[6..].to_vec()].concat();
    // one goes before it was written, and the next above it is not written either
    let never: &[Op] = &[
        Route(3, one),
        Route(0, other),
        Route(1, fresh),
        Del(3),
        Plan,
        Run(1),
    ];
    // one goes before it was written, and one for a part of it has come behind what is above both
    let part: &[Op] = &[
        Route(1, fresh),
        Route(0, one),
        Route(2, other),
        Del(1),
        Plan,
        Run(1),
    ];
    // one comes and goes, and meanwhile one below it has gone, and one above it
    let between: &[Op] = &[
        Route(4, one),
        Route(2, other),
        Rest,
        Route(3, fresh),
        Del(4),
        Del(2),
        Del(3),
        Plan,
        Run(1),
    ];
    // the same, and it was there before
    let there = &[&between[..1], &[Route(3, one)], &between[1..]].concat();
    // one goes, and the one above it has changed before while a command was on its way
    let flight: &[Op] = &[
        Route(1, fresh),
        Route(0, one),
        Plan,
        Run(1),
        Run(0),
        Plan,
        Route(0, other),
        Del(1),
        Run(1),
        Run(1),
        Plan,
        Run(1),
    ];
    // one goes and comes back while its DELETE is on its way, and what is above it changes, or goes as well
    let back = |last: Op| {
        let ops = [
            Route(3, other),
            Route(1, other),
            Route(0, one),
            Rest,
            Del(3),
            Plan,
            Route(3, other),
        ];
        [&ops[..], &[last, Plan, Run(1), Run(1)]].concat()
    };
    let (changes, ends) = (&back(Route(1, one))[..], &back(Del(1))[..]);
    // one goes before it was written, and before it those above it that the chip has
    let all: &[Op] = &[
        Route(1, other),
        Route(3, one),
        Rest,
        Route(4, fresh),
        Del(3),
        Del(1),
        Del(4),
        Plan,
        Run(1),
    ];
    // one goes, or moves to another next hop, and the one that it leaves is another station
    let leaves = |last: Op| [Route(1, one), Rest, last, Moves(0), Plan, Run(0), Rest];
    let (gone, moved) = (&leaves(Del(1))[..], &leaves(Route(1, fresh))[..]);
    // two change places, and both next hops are other stations: neither waits for the other
    let places: &[Op] = &[
        Route(1, one),
        Route(3, other),
        Rest,
        Route(1, other),
        Route(3, one),
        Moves(0),
        Moves(1),
        Plan,
        Run(0),
        Rest,
    ];
    // one is not made, and nobody says so; what covers it has come behind it
    let lost: &[Op] = &[
        Route(2, one),
        Route(0, other),
        Plan,
        Lose(false),
        Plan,
        Run(1),
        Plan,
        Run(1),
        Plan,
        Run(1),
    ];
    // an own one waits for the own one above it, which is not written either; what covers both is behind it
    let own: &[Op] = &[Own(1, true), Route(0, one), Own(0, true), Plan, Run(1)];
    // one that is left out below another one, which goes and comes back
    let comes_back: &[Op] = &[
        Own(1, true),
        Route(0, one),
        Own(0, true),
        Rest,
        Own(0, false),
        Plan,
        Own(0, true),
    ];
    // a prefix that is queued already is another one in a dump, which has a new one for a part of it as well
    let held: &[Op] = &[
        Route(1, one),
        Rest,
        Route(1, fresh),
        Unheard(2, one),
        Unheard(1, other),
        Dump(true),
        Plan,
        Run(1),
        Plan,
        Run(1),
        Plan,
        Run(1),
        Dumped,
        Rest,
    ];
    // one has gone, which a dump is to find, and its gateway is another station meanwhile
    let unsaid: &[Op] = &[
        Route(2, one),
        Rest,
        Unheard(2, 4),
        Dump(false),
        Moves(0),
        Plan,
        Run(0),
        Dumped,
        Rest,
    ];
    for (ops, outstanding) in [
        (unsaid, 1),
        (held, 1),
        (own, 1),
        (comes_back, 1),
        (gone, 1),
        (moved, 64),
        (places, 64),
        (lost, 1),
        (all, 1),
        (changes, 64),
        (ends, 64),
        (queued, 1),
        (goes, 1),
        (never, 1),
        (part, 1),
        (between, 1),
        (there, 1),
        (flight, 2),
    ] {
        let mut p = play(ops, outstanding, None).unwrap_or_else(|e| panic!("{ops:?}: {e}"));
        p.rig.settle();
        for (i, a) in ADDRESSES.iter().enumerate() {
            let chip = p.rig.chip.lookup(IpAddr::from(*a));
            let wanted = p.answer(i).map_or(chip == Answer::Trap, |m| by(m, &chip));
            assert!(wanted, "{ops:?}: {a:?}: {chip:?}");
        }
    }
}

/// A route by a gateway that is another station since a dump has begun.
fn moved_in_a_dump(r: &mut Rig, with_route: bool) {
    r.begin();
    interface(r, 1);
    interface(r, 2);
    r.up(neigh(11, "10.1.0.2", 7));
    if with_route {
        r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    }
}

fn routed() -> Rig {
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.settle();
    r
}

fn there(r: &Rig) -> Answer {
    r.chip.lookup(IpAddr::from([20, 0, 0, 1]))
}

/// The dump ends before an empty chip has all: when it has, the gateway is its station.
#[test]
fn a_gateway_that_moves_in_a_replay_does_not_trap_for_ever() {
    let mut r = routed();
    r.chip.cold();
    r.store.attach(Attach::Cold, r.now);
    r.plan();
    moved_in_a_dump(&mut r, true);
    r.end();
    r.settle();
    assert!(by(7, &there(&r)));
}

/// A warm attach ends within a dump that is to find that the route has gone: the station is not written before that.
#[test]
fn a_gateway_waits_for_the_dump_within_which_an_attach_ends() {
    let mut r = routed();
    r.attach_warm();
    moved_in_a_dump(&mut r, false);
    r.settle_unsynced();
    assert!(!by(7, &there(&r)));
    r.end();
    for _ in 0..1000 {
        r.plan();
        assert!(!by(7, &there(&r)));
        if !r.run(0) && !r.run(1) {
            break;
        }
    }
    r.settle();
    assert_eq!(there(&r), Answer::Trap);
    r.up(via("20.0.0.0/8", 11, "10.1.0.2"));
    r.settle();
    assert!(by(7, &there(&r)));
}
