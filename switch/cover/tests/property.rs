//! The rule alone, against a naive kernel: after every single command the chip's answer is the kernel's of before or
//! after the operation, or a trap; and once everything fits nothing traps.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use std::collections::BTreeMap;
mod sim;

use sim::{Answer, Command, Sim};
use tandem_cover::{Bits, Cover, NONE, NodeId, V4, V6};

#[derive(Clone, Debug)]
enum Op {
    Add(u32, u8, u32),
    AddTrap(u32, u8),
    Remove(usize),
    Resize(usize),
}

/// Prefixes from a small space so that they nest and repeat.
fn prefix() -> impl Strategy<Value = (u32, u8)> {
    (
        0u32..64,
        prop::sample::select(vec![0u8, 1, 2, 3, 4, 5, 6, 8, 10, 16, 24, 32]),
    )
        .prop_map(|(x, len)| {
            let bits = (x << 26) | ((x & 7) << 8) | (x & 3);
            (V4(bits).mask(len).0, len)
        })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (prefix(), 1u32..5).prop_map(|((b, l), v)| Op::Add(b, l, v)),
        1 => prefix().prop_map(|(b, l)| Op::AddTrap(b, l)),
        5 => (0usize..64).prop_map(Op::Remove),
        1 => (3usize..14).prop_map(Op::Resize),
    ]
}

fn longest<B: Bits>(t: &BTreeMap<(B, u8), Answer>, a: B) -> Answer {
    (0..=B::WIDTH)
        .rev()
        .find_map(|l| t.get(&(a.mask(l), l)).copied())
        .unwrap_or(Answer::Trap)
}

fn check<B: Bits>(
    ops: Vec<Op>,
    slots: usize,
    units: usize,
    conv: impl Fn(u32) -> B,
) -> Result<(), TestCaseError> {
    let mut sim: Sim<B> = Sim::new(slots, units);
    let mut chip: BTreeMap<(B, u8), Answer> = BTreeMap::new();
    for op in &ops {
        let before = sim.kernel.clone();
        let commands = match *op {
            Op::Add(b, l, v) => sim.add(conv(b), l, Answer::Via(v)),
            Op::AddTrap(b, l) => sim.add(conv(b), l, Answer::Trap),
            Op::Remove(n) => {
                let keys: Vec<_> = sim.kernel.keys().copied().collect();
                if keys.is_empty() {
                    continue;
                }
                let (b, l) = keys[n % keys.len()];
                sim.remove(b, l)
            }
            Op::Resize(n) => sim.resize(n + units),
        };
        // Addresses where answers can differ: the first and last of every prefix in play.
        let mut addrs: Vec<B> = Vec::new();
        for (b, l) in before.keys().chain(sim.kernel.keys()).chain(chip.keys()) {
            addrs.push(*b);
            let mut x = b.to_bytes();
            for i in *l..B::WIDTH {
                x[usize::from(i / 8)] |= 0x80 >> (i % 8);
            }
            addrs.push(B::from_bytes(&x));
        }
        for c in commands {
            match c {
                Command::Create(b, l, a) => {
                    prop_assert!(chip.insert((b, l), a).is_none(), "created twice: {c}")
                }
                Command::Update(b, l, a) => {
                    prop_assert!(chip.insert((b, l), a).is_some(), "not there: {c}")
                }
                Command::Delete(b, l) => {
                    prop_assert!(chip.remove(&(b, l)).is_some(), "not there: {c}")
                }
            }
            prop_assert!(
                chip.len() <= sim.slots.max(slots + 14),
                "more entries than slots"
            );
            for &a in &addrs {
                let (hw, old, new) = (
                    longest(&chip, a),
                    longest(&before, a),
                    longest(&sim.kernel, a),
                );
                prop_assert!(
                    hw == Answer::Trap || hw == old || hw == new,
                    "after {c}: {a:?} goes {hw:?}, the kernel says {old:?} before and {new:?} after"
                );
            }
        }
        prop_assert_eq!(&chip, &sim.chip);
        for &a in &addrs {
            let (hw, new) = (longest(&chip, a), longest(&sim.kernel, a));
            prop_assert!(
                hw == Answer::Trap || hw == new,
                "settled: {:?} goes {:?}, not {:?}",
                a,
                hw,
                new
            );
        }
        let aggregates = chip.keys().filter(|k| !sim.kernel.contains_key(k)).count();
        prop_assert!(aggregates <= units);
    }
    // Room for everything: nothing traps, no aggregate stays.
    sim.resize(10_000);
    prop_assert_eq!(&sim.chip, &sim.kernel);
    for (b, l) in sim.kernel.keys() {
        let id = sim.cover.find(*b, *l).unwrap();
        prop_assert!(!sim.cover.is_missing(id));
    }
    // Everything goes: the trie is empty again.
    for (b, l) in sim.kernel.keys().copied().collect::<Vec<_>>() {
        sim.remove(b, l);
    }
    prop_assert!(sim.chip.is_empty());
    prop_assert_eq!(sim.cover.nodes(), 1);
    Ok(())
}

proptest! {
    #[test]
    fn never_another_answer_v4(ops in prop::collection::vec(op(), 1..60), slots in 3usize..12, units in 0usize..4) {
        check(ops, slots + units, units, V4)?;
    }

    #[test]
    fn never_another_answer_v6(ops in prop::collection::vec(op(), 1..40), slots in 3usize..10, units in 0usize..4) {
        check(ops, slots + units, units, |b| V6([b, 0, 0, b]))?;
    }

    #[test]
    fn an_approach_ends_at_the_nodes_that_are_there(
        there in prop::collection::vec(prefix(), 0..60), others in prop::collection::vec(prefix(), 0..20),
    ) {
        let mut cover: Cover<V4> = Cover::new();
        for (b, l) in &there {
            cover.node(V4(*b), *l);
        }
        let wanted: Vec<(V4, u8)> = there.iter().chain(&others).map(|(b, l)| (V4(*b), *l)).collect();
        let mut found = vec![u32::MAX; wanted.len()];
        cover.approach(&wanted, &mut found);
        for ((b, l), at) in wanted.iter().zip(&found) {
            prop_assert!(cover.find(*b, *l).is_none_or(|node| node == *at), "{b:?}/{l}");
        }
    }

    /// Who climbs ends at something above, and has gone up where there was anything.
    #[test]
    fn a_climb_ends_above(there in prop::collection::vec(prefix(), 1..60)) {
        let mut cover: Cover<V4> = Cover::new();
        for (b, l) in &there {
            cover.node(V4(*b), *l);
        }
        // made first: one that is in the way of a later one stands above it
        let from: Vec<u32> = there.iter().filter_map(|(b, l)| cover.find(V4(*b), *l)).chain([NONE]).collect();
        let mut to = from.clone();
        cover.climb(&mut to);
        for (a, b) in from.iter().zip(&to).filter(|x| *x.0 != NONE) {
            let ((low, long), (high, short)) = (cover.prefix(*a), cover.prefix(*b));
            prop_assert!(short <= long && low.mask(short).0 == high.0);
            prop_assert!(short < long || long == 0, "{low:?}/{long} stays");
        }
        prop_assert_eq!(to.last(), Some(&NONE));
    }

    /// From any prefix on, there or not, a walk finds what stands behind it below another, in prefix order.
    #[test]
    fn a_walk_goes_on_where_it_was(
        there in prop::collection::btree_set(prefix(), 0..40), top in prefix(), after in prop::option::of(prefix()),
    ) {
        let mut cover: Cover<V4> = Cover::new();
        for (b, l) in &there {
            let node = cover.node(V4(*b), *l);
            cover.set_value(node, 1);
        }
        let below = |(b, l): &(u32, u8)| *l >= top.1 && V4(*b).mask(top.1).0 == top.0;
        let mut at = after.filter(below);
        let wanted: Vec<(u32, u8)> = there.iter().filter(|p| below(p) && at.is_none_or(|a| **p > a)).copied().collect();
        let mut found = Vec::new();
        while let Some((node, _)) = cover.next_below(V4(top.0), top.1, at.map(|(b, l)| (V4(b), l))) {
            let (b, l) = cover.prefix(node);
            at = Some((b.0, l));
            found.extend(at);
        }
        prop_assert_eq!(found, wanted);
    }
}

/// Two aggregate traps, which are to go for one above them, that one, and another that stays.
fn two_below_one() -> (Cover<V4>, [NodeId; 2], NodeId, NodeId) {
    let mut cover: Cover<V4> = Cover::new();
    cover.set_units(3);
    let [all, one, another, other] = [
        (0, 0),
        (0x0a00_0000, 16),
        (0x0a01_0000, 16),
        (0xc800_0000, 16),
    ]
    .map(|(b, l)| {
        let id = cover.node(V4(b), l);
        cover.set_kernel(id, true);
        id
    });
    cover.installed(all);
    for id in [one, another] {
        cover.missing(id);
        assert!(cover.aggregate(id));
        cover.aggregate_up(id, true);
    }
    cover.missing(other);
    let above = cover.find(V4(0x0a00_0000), 15).expect("the one above");
    assert!(cover.aggregate(above) && !cover.aggregate(one) && !cover.aggregate(another));
    cover.aggregate_up(above, true);
    (cover, [one, another], above, other)
}

/// What they stood for goes before they are gone.
#[test]
fn what_takes_over_for_nothing_goes() {
    let (mut cover, two, above, other) = two_below_one();
    for id in two {
        cover.set_kernel(id, false);
    }
    for id in two {
        cover.aggregate_up(id, false);
    }
    assert!(!cover.aggregate(above) && cover.aggregate(other));
}

/// The same, where something is still missing below one of them.
#[test]
fn what_takes_over_for_one_stays() {
    let (mut cover, [one, another], above, _) = two_below_one();
    cover.set_kernel(one, false);
    for id in [one, another] {
        cover.aggregate_up(id, false);
        assert!(cover.aggregate(above));
    }
    cover.set_kernel(another, false);
    assert!(!cover.aggregate(above));
}
