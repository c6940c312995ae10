// SPDX-License-Identifier: Apache-2.0
//! Any history of messages, against the rules of RFC 2236, 2710 and 4541 said otherwise: by looking at all of the history,
//! each time, who is where.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use common::{group, hello, host, join, leave, query, report};
use proptest::prelude::*;
use tandem_snoop::{
    Change, Family, Forward, GROUPS, HOST, SECOND, Set, Snooping, Times, To, parse,
};

const VLAN: u16 = 10;
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x99];

/// What the changes add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Said {
    members: BTreeSet<(IpAddr, u16)>,
    routers: BTreeSet<(Family, u16)>,
    there: BTreeSet<Family>,
    sent: Vec<(To, Vec<u8>)>,
}

impl Said {
    /// Each change is one.
    fn take(&mut self, all: Vec<Change>) {
        for change in all {
            let new = match change {
                Change::Member {
                    vlan,
                    group,
                    port,
                    there,
                } => {
                    assert_eq!(vlan, VLAN);
                    match there {
                        true => self.members.insert((group, port)),
                        false => self.members.remove(&(group, port)),
                    }
                }
                Change::Router {
                    family,
                    port,
                    there,
                    ..
                } => match there {
                    true => self.routers.insert((family, port)),
                    false => self.routers.remove(&(family, port)),
                },
                Change::Querier { family, there, .. } => match there {
                    true => self.there.insert(family),
                    false => self.there.remove(&family),
                },
                Change::Send { to, frame, .. } => {
                    self.sent.push((to, frame));
                    true
                }
            };
            assert!(new, "said twice: {self:?}");
        }
    }
}

struct Rig {
    of: Snooping,
    said: Said,
    now: u64,
}

impl Rig {
    fn new(set: Set) -> Rig {
        let mut rig = Rig {
            of: Snooping::new(MAC, Times::default()),
            said: Said::default(),
            now: 1_000 * SECOND,
        };
        rig.set(set);
        rig
    }

    fn set(&mut self, set: Set) {
        let of = |family| {
            let mut set = set.clone();
            set.members.retain(|g, _| Family::of(*g) == family);
            set.querier = set.querier.filter(|a| Family::of(*a) == family);
            ((VLAN, family), set)
        };
        let all = Family::ALL.map(of).into();
        self.said.take(self.of.configure(&all, self.now));
    }

    /// Time passes, in steps no longer than to what is due.
    fn wait(&mut self, ns: u64) {
        let end = self.now + ns;
        while let Some(at) = self.of.next().filter(|at| *at <= end) {
            assert!(at > self.now, "it is due again and again");
            self.now = at;
            self.said.take(self.of.tick(at));
        }
        self.now = end;
    }

    fn hear(&mut self, port: u16, frame: &[u8]) -> Option<Forward> {
        let (forward, changes) = self.of.receive(VLAN, port, frame, self.now);
        self.said.take(changes);
        forward
    }

    fn agrees(&self) {
        let members = self.of.members().map(|m| (m.1, m.2)).collect();
        let routers = |f| self.of.routers(VLAN, f).into_keys().map(move |p| (f, p));
        let routers = Family::ALL.into_iter().flat_map(routers).collect();
        let there = |f: &Family| self.of.querier(VLAN, *f).1;
        let there = Family::ALL.into_iter().filter(there).collect();
        assert_eq!(
            (&self.said.members, &self.said.routers, &self.said.there),
            (&members, &routers, &there)
        );
    }
}

#[derive(Clone, Debug)]
enum What {
    Join(u16, u8),
    Leave(u16, u8),
    Record(u16, u8, u8, u8),
    Query(u16, u8, u64),
    Ask(u16, u8, u64),
    Hello(u16),
    Down(u16),
    Restart,
}

fn what() -> impl Strategy<Value = What> {
    let (port, g) = (1..4u16, 1..4u8);
    prop_oneof![
        6 => (port.clone(), g.clone()).prop_map(|(p, g)| What::Join(p, g)),
        3 => (port.clone(), g.clone()).prop_map(|(p, g)| What::Leave(p, g)),
        3 => (port.clone(), 1..8u8, g.clone(), 0..3u8).prop_map(|(p, k, g, n)| What::Record(p, k, g, n)),
        4 => (port.clone(), 1..4u8, 1..100u64).prop_map(|(p, a, d)| What::Query(p, a, d * 100)),
        1 => (port.clone(), g, 1..30u64).prop_map(|(p, g, d)| What::Ask(p, g, d * 100)),
        1 => port.clone().prop_map(What::Hello),
        1 => port.prop_map(What::Down),
        1 => Just(What::Restart),
    ]
}

const MS: u64 = SECOND / 1000;

/// All that happened, and the rules.
struct Oracle {
    six: bool,
    immediate: bool,
    all: Vec<(u64, What)>,
}

impl Oracle {
    /// The queries that counted: those of the lowest address while it is heard. When, until when their first answers were
    /// awaited, by which port.
    fn queries(&self) -> Vec<(u64, u64, u8, u16)> {
        let mut all: Vec<(u64, u64, u8, u16)> = Vec::new();
        let mut begun = 0;
        for (at, what) in &self.all {
            match what {
                What::Query(port, from, delay) => {
                    let last = all
                        .last()
                        .filter(|q| q.0 + 255 * SECOND > *at && begun < all.len());
                    match last.copied() {
                        None => all.push((*at, at + delay * MS, *from, *port)),
                        Some((_, silent, elected, _)) if *from <= elected => {
                            all.push((*at, silent, *from, *port));
                        }
                        Some(_) => {}
                    }
                }
                What::Restart => begun = all.len(),
                _ => {}
            }
        }
        all
    }

    /// Since the tree has changed last.
    fn restarted(&self, now: u64) -> u64 {
        let all = self
            .all
            .iter()
            .filter(|(at, w)| matches!(w, What::Restart) && *at <= now);
        all.map(|x| x.0).max().unwrap_or(0)
    }

    fn querier_at(&self, now: u64, index: usize) -> bool {
        // of those that came before this message
        let before = Oracle {
            all: self.all[..index].to_vec(),
            ..*self
        };
        let restart = before.restarted(now);
        let last = before.queries().last().copied();
        last.is_some_and(|q| {
            q.0 + 255 * SECOND > now && q.0 >= restart && before.since_restart(q.0)
        })
    }

    /// No change of the tree came after a query of this time.
    fn since_restart(&self, query: u64) -> bool {
        let restart = self
            .all
            .iter()
            .rposition(|(_, w)| matches!(w, What::Restart));
        let asked = self
            .all
            .iter()
            .rposition(|(at, w)| *at == query && matches!(w, What::Query(..)));
        restart < asked
    }

    fn there(&self, now: u64) -> bool {
        let last = self.queries().last().copied();
        self.querier_at(now, self.all.len()) && last.is_some_and(|q| q.1 <= now)
    }

    fn members(&self, now: u64) -> BTreeSet<(IpAddr, u16)> {
        let mut out = BTreeSet::new();
        for (port, g) in (1..4u16).flat_map(|p| (1..4u8).map(move |g| (p, g))) {
            let mut until = 0;
            for (n, (at, what)) in self.all.iter().enumerate() {
                let left = |until: u64| match () {
                    () if until <= *at => until,
                    () if self.immediate => *at,
                    () if self.querier_at(*at, n) => until,
                    () => until.min(at + 2 * SECOND),
                };
                until = match what {
                    What::Join(p, x) if (*p, *x) == (port, g) => at + 260 * SECOND,
                    What::Leave(p, x) if (*p, *x) == (port, g) => left(until),
                    What::Record(p, 1 | 3, x, 0) if (*p, *x) == (port, g) => left(until),
                    What::Record(p, 1..=6, x, _) if (*p, *x) == (port, g) => at + 260 * SECOND,
                    What::Ask(_, x, delay) if *x == g => until.min(at + 2 * delay * MS),
                    What::Down(p) if *p == port => until.min(*at),
                    _ => until,
                };
            }
            if until > now {
                out.insert((group(self.six, g), port));
            }
        }
        out
    }

    fn routers(&self, now: u64) -> BTreeSet<u16> {
        let hellos = self.all.iter().filter_map(|(at, w)| match w {
            What::Hello(p) if !self.six => Some((*at, *p)),
            _ => None,
        });
        let asked = self.queries().into_iter().map(|q| (q.0, q.3));
        let alive = |(at, p): &(u64, u16)| {
            let down = |(a, w): &(u64, What)| *a >= *at && matches!(w, What::Down(x) if x == p);
            at + 255 * SECOND > now && !self.all.iter().any(down)
        };
        hellos.chain(asked).filter(alive).map(|x| x.1).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_history_is_by_the_rules(
        six in any::<bool>(),
        immediate in any::<bool>(),
        history in proptest::collection::vec((what(), 1..400u64, 1..60u64), 1..60),
    ) {
        let family = if six { Family::V6 } else { Family::V4 };
        let mut rig = Rig::new(Set { immediate, ..Set::default() });
        let mut oracle = Oracle { six, immediate, all: Vec::new() };
        for (what, tenths, often) in history {
            // mostly tenths of a second, now and then minutes; never two at once
            let wait = if often == 1 { tenths * SECOND } else { tenths * SECOND / 10 };
            rig.wait(wait + 7);
            oracle.all.push((rig.now, what.clone()));
            match what {
                What::Join(p, g) => prop_assert_eq!(rig.hear(p, &join(p, group(six, g))), Some(Forward::Routers)),
                What::Leave(p, g) => prop_assert_eq!(rig.hear(p, &leave(p, group(six, g))), Some(Forward::Routers)),
                What::Record(p, k, g, n) => {
                    prop_assert_eq!(rig.hear(p, &report(p, k, group(six, g), n)), Some(Forward::Routers));
                }
                What::Query(p, a, d) => {
                    prop_assert_eq!(rig.hear(p, &query(p, host(six, a), None, d)), Some(Forward::All));
                }
                What::Ask(p, g, d) => {
                    let of = Some(group(six, g));
                    prop_assert_eq!(rig.hear(p, &query(p, host(six, 9), of, d)), Some(Forward::All));
                }
                What::Hello(p) if !six => prop_assert_eq!(rig.hear(p, &hello(p)), Some(Forward::All)),
                What::Hello(_) => {}
                What::Down(p) => rig.said.take(rig.of.port_down(p)),
                What::Restart => rig.said.take(rig.of.restart(rig.now)),
            }
            rig.agrees();
            prop_assert_eq!(&rig.said.members, &oracle.members(rig.now));
            let routers: BTreeSet<u16> = rig.said.routers.iter().filter(|r| r.0 == family).map(|r| r.1).collect();
            prop_assert_eq!(routers, oracle.routers(rig.now));
            prop_assert_eq!(rig.said.there.contains(&family), oracle.there(rig.now));
            prop_assert!(rig.said.sent.is_empty(), "nobody has asked us to ask");
        }
        // and it all ends
        rig.wait(600 * SECOND);
        prop_assert_eq!((&rig.said, rig.of.next()), (&Said::default(), None));
    }
}

/// Of a query: which group, and what to.
fn asked(sent: &(To, Vec<u8>)) -> (To, Option<tandem_snoop::Asked>) {
    match parse(&sent.1) {
        Ok(Some(tandem_snoop::Message::Query { of, .. })) => (sent.0, of),
        other => panic!("{other:?}"),
    }
}

#[test]
fn we_ask_where_nobody_else_does() {
    use tandem_snoop::Asked;
    for six in [false, true] {
        let family = if six { Family::V6 } else { Family::V4 };
        let from = host(six, 50);
        let mut rig = Rig::new(Set {
            querier: Some(from),
            ..Set::default()
        });
        let all = (To::All, Some(Asked::All));
        assert_eq!(rig.said.sent.iter().map(asked).collect::<Vec<_>>(), [all]);
        // until the answers are there all is flooded
        rig.wait(10 * SECOND - 1);
        assert!(rig.said.there.is_empty());
        rig.wait(1);
        assert_eq!(rig.said.there, BTreeSet::from([family]));
        // the first two a quarter of the time apart
        rig.wait(22 * SECOND);
        assert_eq!(rig.said.sent.len(), 2);
        rig.wait(31 * SECOND);
        assert_eq!(rig.said.sent.len(), 3);
        rig.wait(124 * SECOND);
        assert_eq!(rig.said.sent.len(), 3);
        rig.wait(2 * SECOND);
        assert_eq!(rig.said.sent.len(), 4);
        // one who leaves is asked for, twice, and only by its port
        let g = group(six, 1);
        rig.hear(1, &join(1, g));
        rig.hear(2, &join(2, g));
        rig.said.sent.clear();
        rig.hear(1, &leave(1, g));
        rig.wait(SECOND);
        let one = (To::Port(1), Some(Asked::Group(g)));
        assert_eq!(
            rig.said.sent.iter().map(asked).collect::<Vec<_>>(),
            [one, one]
        );
        assert_eq!(rig.said.members.len(), 2);
        // another host there answers
        rig.hear(1, &join(1, g));
        rig.wait(5 * SECOND);
        assert_eq!(rig.said.members.len(), 2);
        rig.hear(1, &leave(1, g));
        rig.wait(2 * SECOND);
        assert_eq!(rig.said.members, BTreeSet::from([(g, 2)]));
        // a higher address is none, a lower one asks in our stead, and then we do again
        rig.hear(3, &query(3, host(six, 60), None, 1000));
        assert_eq!(rig.of.querier(VLAN, family), (Some(from), true));
        rig.said.sent.clear();
        rig.hear(3, &query(3, host(six, 40), None, 1000));
        assert_eq!(rig.of.querier(VLAN, family), (Some(host(six, 40)), false));
        assert_eq!(rig.of.routers(VLAN, family), BTreeMap::from([(3, false)]));
        rig.wait(254 * SECOND);
        assert_eq!((rig.said.sent.len(), rig.said.there.len()), (0, 1));
        rig.wait(SECOND);
        assert_eq!(rig.said.sent.iter().map(asked).collect::<Vec<_>>(), [all]);
        assert_eq!(
            (rig.of.querier(VLAN, family), rig.said.routers.len()),
            ((Some(from), true), 0)
        );
        // and stop when nobody wants us to
        rig.set(Set::default());
        rig.said.sent.clear();
        rig.wait(300 * SECOND);
        assert_eq!(rig.said, Said::default());
    }
}

#[test]
fn what_is_set_stays() {
    let (g, other) = (group(false, 1), group(true, 2));
    let set = Set {
        routers: BTreeSet::from([3]),
        members: BTreeMap::from([(g, BTreeSet::from([1, 2])), (other, BTreeSet::from([1]))]),
        immediate: true,
        ..Set::default()
    };
    let mut rig = Rig::new(set.clone());
    let all = BTreeSet::from([(g, 1), (g, 2), (other, 1)]);
    assert_eq!(rig.said.members, all);
    // it joins, leaves, is silent, its port goes down: it stays
    rig.hear(1, &join(1, g));
    rig.hear(1, &leave(1, g));
    rig.hear(2, &join(2, g));
    rig.hear(3, &hello(3));
    rig.wait(300 * SECOND);
    rig.said.take(rig.of.port_down(1));
    rig.agrees();
    assert_eq!((&rig.said.members, rig.said.routers.len()), (&all, 2));
    // no longer set, one that was heard stays as long as it is
    rig.hear(2, &join(2, g));
    rig.set(Set {
        immediate: true,
        ..Set::default()
    });
    rig.agrees();
    assert_eq!(rig.said.members, BTreeSet::from([(g, 2)]));
    rig.set(set);
    assert_eq!(rig.said.members, all);
    rig.said.take(rig.of.configure(&BTreeMap::new(), rig.now));
    assert_eq!(rig.said, Said::default());
    assert_eq!(rig.hear(1, &join(1, g)), None);
}

#[test]
fn groups_of_the_link_are_nobodys() {
    let mut rig = Rig::new(Set::default());
    for g in ["224.0.0.5", "ff02::1", "10.0.0.1", "fe80::1"] {
        let g: IpAddr = g.parse().unwrap();
        assert_eq!(rig.hear(1, &join(1, g)), Some(Forward::Routers));
        assert_eq!(rig.said, Said::default(), "{g}");
    }
    let g: IpAddr = "ff02::1:ff00:1".parse().unwrap();
    rig.hear(HOST, &join(1, g));
    assert_eq!(rig.said.members, BTreeSet::from([(g, HOST)]));
    // the switch's own stack is no router behind a port
    rig.hear(HOST, &query(1, host(false, 1), None, 100));
    assert!(rig.said.routers.is_empty());
}

/// Who finds no room is served like all the others: the VLAN floods.
#[test]
fn without_room_a_vlan_floods() {
    let mut rig = Rig::new(Set::default());
    rig.hear(1, &query(1, host(false, 1), None, 100));
    rig.wait(SECOND);
    let g = |n: usize| IpAddr::from([226, 0, (n >> 8) as u8, n as u8]);
    for n in 0..GROUPS {
        rig.hear(2, &join(2, g(n)));
    }
    assert_eq!((rig.said.members.len(), rig.of.refused()), (GROUPS, 0));
    assert!(rig.said.there.contains(&Family::V4));
    rig.hear(2, &join(2, g(GROUPS)));
    assert_eq!((rig.said.members.len(), rig.of.refused()), (GROUPS, 1));
    assert!(rig.said.there.is_empty());
    rig.agrees();
    // a member of a group that is there needs room as a member alone
    rig.hear(3, &join(3, g(0)));
    assert_eq!(rig.said.members.len(), GROUPS + 1);
    // again by the rules when the others are gone, and those without room have said so again
    for _ in 0..3 {
        rig.hear(1, &query(1, host(false, 1), None, 100));
        rig.wait(90 * SECOND);
    }
    assert!(rig.said.there.contains(&Family::V4));
    rig.hear(2, &join(2, g(GROUPS)));
    assert_eq!(rig.said.members, BTreeSet::from([(g(GROUPS), 2)]));
}

#[test]
fn a_broken_message_goes_nowhere_where_it_is_snooped() {
    let mut rig = Rig::new(Set::default());
    let mut bad = join(1, group(false, 1));
    bad[40] ^= 1;
    assert_eq!(rig.hear(1, &bad), Some(Forward::Nowhere));
    assert_eq!(rig.of.receive(VLAN + 1, 1, &bad, rig.now).0, None);
    assert_eq!(rig.said, Said::default());
}

#[test]
fn who_leaves_twice_stays_no_longer() {
    let mut rig = Rig::new(Set::default());
    let g = group(false, 1);
    rig.hear(1, &join(1, g));
    rig.hear(1, &leave(1, g));
    rig.wait(SECOND);
    rig.hear(1, &leave(1, g));
    rig.hear(2, &query(2, host(false, 9), Some(g), 9_000));
    rig.wait(SECOND - 1);
    assert_eq!(rig.said.members.len(), 1);
    rig.wait(1);
    assert_eq!(rig.said.members.len(), 0);
}
