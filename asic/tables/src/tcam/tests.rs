//! The matcher against a scan of all rules from the first to the last.

use super::*;
use proptest::prelude::*;

/// Words from a handful of values and masks, so that rules overlap and keys hit.
fn words(seed: u64, few: u64) -> Words {
    let mut w = [0; WORDS];
    let mut x = seed | 1;
    for (i, word) in w.iter_mut().enumerate() {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        if (x >> 20).is_multiple_of(few) {
            *word = match i {
                word::META => (x & 1) << 8 | (x >> 3 & 1),
                word::L4 => (x & 3) << 48 | (x >> 5 & 7) << 32 | (x >> 9 & 1) << 24,
                _ => x & 0x3_0000_0003,
            };
        }
    }
    w
}

fn what(mask: u64, value: u64, ethertype: u8, range: (u8, u8, u8)) -> Match {
    let mut m = Match {
        value: words(value, 1),
        mask: words(mask, 3),
        ranges: Ranges::default(),
    };
    let e = match ethertype % 5 {
        0 => Some(0x0800u64),
        1 => Some(0x86dd),
        2 => Some(0x0806),
        _ => None,
    };
    if let Some(e) = e {
        m.mask[word::META] |= 0xffff << word::ETHERTYPE_SHIFT;
        m.value[word::META] |= e << word::ETHERTYPE_SHIFT;
    } else if ethertype.is_multiple_of(7) {
        // some bits of it only
        m.mask[word::META] |= 0x0800 << word::ETHERTYPE_SHIFT;
        m.value[word::META] |= 0x0800 << word::ETHERTYPE_SHIFT;
    }
    for (v, k) in m.value.iter_mut().zip(&m.mask) {
        *v &= k;
    }
    let (low, high) = (
        u16::from(range.1.min(range.2) % 8),
        u16::from(range.1.max(range.2) % 8),
    );
    let range_of = (low <= high).then_some((low, high));
    match range.0 % 6 {
        0 => m.ranges.dst = range_of,
        1 => m.ranges.src = range_of,
        _ => {}
    }
    m
}

fn key(seed: u64, kind: FrameKind) -> Words {
    let mut k = words(seed, 1);
    let e = match kind {
        FrameKind::Ip4 => 0x0800,
        FrameKind::Ip6 => 0x86dd,
        FrameKind::Other => 0x0806,
    };
    k[word::META] |= e << word::ETHERTYPE_SHIFT;
    k
}

#[derive(Clone, Debug)]
enum Op {
    Put(u32, u64, u64, u8, (u8, u8, u8)),
    Remove(u32),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    // few masks, few priorities: chains, replacements, empty tuples
    let put = (
        0u32..24,
        1u64..12,
        1u64..9,
        any::<u8>(),
        any::<(u8, u8, u8)>(),
    )
        .prop_map(|(p, m, v, e, r)| Op::Put(p, m, v, e, r));
    prop::collection::vec(
        prop_oneof![4 => put, 1 => (0u32..24).prop_map(Op::Remove)],
        0..80,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn as_a_scan_of_all_rules(ops in ops(), probes in prop::collection::vec((1u64..40, 0usize..3), 1..60)) {
        let mut m: Matcher<u32> = Matcher::default();
        let mut naive: BTreeMap<u32, (Match, u32)> = BTreeMap::new();
        for (n, op) in ops.into_iter().enumerate() {
            let n = n as u32;
            match op {
                Op::Put(p, mask, value, e, range) => {
                    let w = what(mask, value, e, range);
                    prop_assert_eq!(m.put(p, w, n), naive.insert(p, (w, n)).map(|o| o.1));
                }
                Op::Remove(p) => prop_assert_eq!(m.remove(p), naive.remove(&p).map(|o| o.1)),
            }
            for (seed, kind) in &probes {
                let kind = FrameKind::ALL[*kind];
                let k = key(*seed, kind);
                let want = naive.iter().find(|(_, (w, _))| w.matches(&k)).map(|(p, (_, d))| (*p, *d));
                prop_assert_eq!(m.lookup(kind, &k).map(|(p, d)| (p, *d)), want);
            }
        }
        prop_assert_eq!(m.len(), naive.len());
        let all: Vec<u32> = m.iter(0).map(|(p, _, _)| p).collect();
        prop_assert_eq!(all, naive.keys().copied().collect::<Vec<_>>());
        let rest: Vec<u32> = naive.keys().copied().collect();
        for p in rest {
            m.remove(p);
        }
        prop_assert!(FrameKind::ALL.iter().all(|k| m.tuples(*k) == 0));
    }
}

#[test]
fn width_follows_the_fields() {
    let of = |f: &dyn Fn(&mut Match)| {
        let mut m = what(0, 0, 3, (5, 0, 0));
        m.mask = [0; WORDS];
        f(&mut m);
        m.width()
    };
    assert_eq!(of(&|_| ()), Width::L2);
    assert_eq!(of(&|m| m.mask[word::SRC_MAC] = 1), Width::L2);
    assert_eq!(of(&|m| m.mask[word::IP4] = 1), Width::Ip4);
    assert_eq!(of(&|m| m.ranges.dst = Some((1, 2))), Width::Ip4);
    assert_eq!(of(&|m| m.mask[word::META] = 1), Width::Ip4);
    assert_eq!(of(&|m| m.mask[word::DST_IP6 + 1] = 1), Width::Ip6);
    assert_eq!(
        of(&|m| {
            m.mask[word::L4] = 1;
            m.mask[word::META] = 0xffff << word::ETHERTYPE_SHIFT;
            m.value[word::META] = 0x86dd << word::ETHERTYPE_SHIFT;
        }),
        Width::Ip6
    );
    assert_eq!(
        of(&|m| {
            m.mask[word::IP4] = 1;
            m.mask[word::DST_MAC] = 1;
        }),
        Width::Full
    );
}

#[test]
fn many_rules_of_few_masks_need_few_probes() {
    let mut m = Matcher::default();
    for n in 0..4096u32 {
        let mut w = what(0, 0, 0, (5, 0, 0));
        let plen = 17 + n % 16;
        w.mask = [0; WORDS];
        w.mask[word::IP4] = u64::from(u32::MAX << (32 - plen));
        w.mask[word::META] = 0xffff << word::ETHERTYPE_SHIFT;
        w.value = [0; WORDS];
        w.value[word::IP4] = u64::from(n.wrapping_mul(0x9e37_79b1)) & w.mask[word::IP4];
        w.value[word::META] = 0x0800 << word::ETHERTYPE_SHIFT;
        m.put(n, w, n);
    }
    assert_eq!(m.tuples(FrameKind::Ip4), 16);
    assert_eq!(m.tuples(FrameKind::Ip6), 0);
}

/// A tuple's filter says perhaps for few keys that no rule has, however many rules there were.
#[test]
fn filters_answer_for_most_frames() {
    let key = |n: u32| {
        let mut k = [0; WORDS];
        k[word::IP4] = u64::from(n);
        k
    };
    let mut mask = [0; WORDS];
    mask[word::IP4] = u64::MAX;
    let mut t = tuple::Tuple::new(mask);
    let perhaps = |t: &tuple::Tuple| (10_000..20_000).filter(|n| t.may(&key(*n))).count();
    for n in 0..1000 {
        let (rule, priority) = (n, n);
        t.set(&key(n), First { rule, priority });
    }
    assert!((0..1000).all(|n| t.may(&key(n))));
    assert!(perhaps(&t) < 1000, "{} of 10,000", perhaps(&t));
    for n in 0..900 {
        t.clear(&key(n));
    }
    assert!((900..1000).all(|n| t.may(&key(n))));
    assert!(perhaps(&t) < 300, "{} of 10,000", perhaps(&t));
    for n in 900..1000 {
        t.clear(&key(n));
    }
    assert_eq!(perhaps(&t), 0);
}
