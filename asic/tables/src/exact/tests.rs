use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};

/// Widths for a bucket of `slots`.
fn widths(slots: u32) -> Widths {
    Widths {
        mac: 1,
        host4: 1,
        host6: slots / 2,
    }
}

fn table(buckets: u32, slots: u32, stash: u32) -> ExactMatch {
    let g = Geometry {
        banks: 4,
        buckets_per_bank: buckets,
        slots_per_bucket: slots,
        stash,
        max_moves: 16,
    };
    ExactMatch::new(g, widths(slots), 7).unwrap()
}

fn key(kind: Kind, n: u32) -> Key {
    let b = n.to_be_bytes();
    match kind {
        Kind::Mac => Key::Mac {
            fid: 1 + (n % 3) as u16,
            mac: [2, 0, b[0], b[1], b[2], b[3]],
        },
        Kind::Host4 => Key::Host4 {
            vrf: (n % 2) as u16,
            addr: b,
        },
        Kind::Host6 => {
            let mut addr = [0x20; 16];
            addr[12..].copy_from_slice(&b);
            Key::Host6 {
                vrf: (n % 2) as u16,
                addr,
            }
        }
    }
}

const KINDS: [Kind; 3] = [Kind::Mac, Kind::Host4, Kind::Host6];

#[test]
fn an_address_that_looks_like_a_key_word_is_not_one() {
    let mut t = table(1, 4, 0);
    let mac = Packed::mac(1, [0, 1, 2, 3, 4, 5]);
    let addr = (u128::from(mac.head) << 64 | 99).to_be_bytes();
    t.insert(Key::Host6 { vrf: 0, addr }, 5, 0).unwrap();
    assert_eq!(t.get_mac(1, [0, 1, 2, 3, 4, 5]), None);
    assert_eq!(t.get_host6(0, addr).unwrap().value, 5);
}

/// The signs of two hosts are equal, and so are all their buckets: the last bytes alone tell them apart.
#[test]
fn hosts_that_differ_in_their_last_bytes_are_two() {
    let mut t = table(1, 4, 0);
    let host = |n: u64| (0x20_01_u128 << 112 | u128::from(n)).to_be_bytes();
    let hash = |t: &ExactMatch, n| Packed::host6(0, host(n)).hash(t.seed);
    let addr = host(0);
    t.insert(Key::Host6 { vrf: 0, addr }, 5, 0).unwrap();
    let first = hash(&t, 0) >> 48 | 1;
    let alike = |h: u64| h >> 48 | 1 == first && t.presence.may(h);
    let twin = (1..u64::MAX).find(|n| alike(hash(&t, *n))).unwrap();
    assert_eq!(t.get_host6(0, host(0)).unwrap().value, 5);
    assert_eq!(t.get_host6(0, host(twin)), None);
}

/// An address that was looked up ahead is gone, and at its place are now words of IPv6 hosts that look like it.
#[test]
fn what_was_seen_before_a_change_is_looked_up_again() {
    let mut t = table(1, 4, 0);
    let mac = |n: u8| [2, 0, 0, 0, 0, n];
    let keys = (0..16).map(|n| Key::Mac {
        fid: 1,
        mac: mac(n),
    });
    for k in keys.clone() {
        t.insert(k, 7, 0).unwrap();
    }
    let macs: Vec<[u8; 6]> = (0..16).map(mac).collect();
    let mut seen = [Seen::default(); 16];
    t.see_macs(1, &macs, &mut seen, false);
    for k in keys {
        t.remove(&k).unwrap();
    }
    for (mac, seen) in macs.iter().zip(seen) {
        let head = u128::from(Packed::mac(1, *mac).head) << 64;
        let hosts: Vec<Key> = (0..8)
            .map(|n| (head | n).to_be_bytes())
            .map(|addr| Key::Host6 { vrf: 0, addr })
            .collect();
        for k in &hosts {
            t.insert(*k, 9, 0).unwrap();
        }
        assert_eq!(t.get_mac_seen(1, *mac, seen), None);
        for k in &hosts {
            t.remove(k).unwrap();
        }
    }
}

#[test]
fn a_stamp_is_renewed_when_it_is_old() {
    let mut t = table(4, 4, 0);
    let id = t.insert(key(Kind::Mac, 1), 5, 100).unwrap().id;
    let Key::Mac { fid, mac } = key(Kind::Mac, 1) else {
        panic!("a MAC address");
    };
    let place = t.get_mac(fid, mac).unwrap().place;
    let mut stamp = |now| {
        t.touch_at(place, now);
        t.entry(id).unwrap().stamp_ns
    };
    assert_eq!(stamp(200), 200, "the first use counts");
    assert_eq!(stamp(199 + STAMP_NS), 200, "not that old");
    assert_eq!(stamp(200 + STAMP_NS), 200 + STAMP_NS);
}

#[test]
fn an_entry_that_moves_keeps_its_stamp() {
    let mut t = table(64, 4, 0);
    let mut moves = 0;
    let mut n = 0;
    while let Ok(p) = t.insert(key(Kind::Mac, n), 5, 1000 + u64::from(n)) {
        moves += p.moves;
        n += 1;
    }
    assert!(moves > 0, "{n} entries and none has moved");
    for n in 0..n {
        let id = t.get(&key(Kind::Mac, n)).unwrap().id;
        assert_eq!(t.entry(id).unwrap().stamp_ns, 1000 + u64::from(n));
    }
}

/// What a leased command in flight may need is nobody else's.
#[test]
fn a_leased_command_in_flight_holds_its_part_of_the_stash() {
    let mut t = table(4, 4, 8);
    t.commit(5).unwrap();
    assert_eq!(t.stash_free(), 3);
    t.begin(2, true).unwrap();
    assert_eq!(t.stash_free(), 3);
    assert_eq!(t.commit(4).unwrap_err().free, 3);
    t.end(2, true);
    assert_eq!(t.stash_free(), 3);
}

#[test]
fn bad_geometry_says_which_number() {
    let g = Geometry {
        banks: 9,
        buckets_per_bank: 1,
        slots_per_bucket: 4,
        stash: 0,
        max_moves: 0,
    };
    assert_eq!(
        ExactMatch::new(g, widths(4), 0).unwrap_err().to_string(),
        "exact-match geometry: banks is 9, must be 1..8"
    );
}

#[test]
fn fid_beyond_12_bits_is_refused() {
    let mut t = table(4, 4, 0);
    let k = Key::Mac {
        fid: 4096 + 1,
        mac: [0; 6],
    };
    assert_eq!(t.insert(k, 1, 0), Err(InsertError::BadFid(4097)));
    assert_eq!(t.get(&k), None);
}

/// Keys of a kind whose buckets are all those of the first one: what an adversary who knows the seed would send.
fn colliding(t: &ExactMatch, kind: Kind, want: usize) -> Vec<Key> {
    let first = t.buckets_of(&key(kind, 1));
    (1..u32::MAX)
        .map(|n| key(kind, n))
        .filter(|k| t.buckets_of(k) == first)
        .take(want)
        .collect()
}

#[test]
fn bucket_full_and_table_full_are_different_answers() {
    let mut t = table(2, 4, 3);
    let keys = colliding(&t, Kind::Mac, 20);
    // 4 buckets of 4 slots, then the stash; nothing can step aside, as all keys share all buckets
    for (i, k) in keys.iter().take(19).enumerate() {
        let p = t.insert(*k, i as u64, 0).unwrap();
        assert_eq!(p.in_stash, i >= 16);
    }
    let Err(InsertError::Full(f)) = t.insert(keys[19], 0, 0) else {
        panic!("fits")
    };
    assert_eq!(
        (f.kind, f.needed, f.free, f.size),
        (FullKind::Bucket, 1, 16, 35)
    );
    let mut n = 100_000;
    while t.pool().free() > 0 {
        n += 1;
        let _ = t.insert(key(Kind::Mac, n), 0, 0);
    }
    let Err(InsertError::Full(f)) = t.insert(keys[19], 0, 0) else {
        panic!("fits")
    };
    assert_eq!(
        (f.kind, f.needed, f.free, f.size),
        (FullKind::Table, 1, 0, 35)
    );
    assert!(keys[..19].iter().all(|k| t.get(k).is_some()));
    assert_eq!(t.recount(), t.pool().used());
}

/// At 80 % fill at least 5 % of the size is guaranteed, and every promise is kept although all keys that come share all
/// their buckets and everybody else has filled the rest.
#[test]
fn promises_hold_against_colliding_keys() {
    for (seed, kind) in (0..4).flat_map(|seed| KINDS.map(|kind| (seed, kind))) {
        let mut t = table(16, 4, 20);
        let size = t.pool().size();
        let width = widths(4).of(kind);
        let mut n = seed << 16;
        while t.pool().used() < size * 8 / 10 {
            n += 1;
            t.insert(key(Kind::Mac, n), 0, 0).unwrap();
        }
        let guaranteed = t.free_guaranteed(kind);
        let slots = guaranteed * width;
        assert!(slots * 20 >= size, "{kind:?}: {slots} of {size}");
        t.commit(slots).unwrap();
        assert_eq!(t.free_guaranteed(kind), 0);
        assert!(t.commit(width).is_err());
        for i in 0..2000 {
            let _ = t.insert(key(Kind::Host4, 5_000_000 + i), 0, 0);
        }
        assert_eq!(t.pool().committed(), slots);
        let hostile = colliding(&t, kind, guaranteed as usize);
        for k in &hostile {
            t.insert_committed(*k, 1, 0).unwrap();
        }
        assert!(
            t.insert_committed(key(Kind::Host6, 4_000_000), 1, 0)
                .is_err()
        );
        assert!(hostile.iter().all(|k| t.get(k).is_some()));
        assert!(t.pool().check());
    }
}

/// Fills with `first` up to `percent`, then with `second` until an insert fails: free_expected must have told where.
fn first_failure(first: Kind, percent: u32, second: Kind, slots: u32) -> (u32, u32, u32) {
    let mut t = table(4096 / slots, slots, 1024);
    let size = t.pool().size();
    let mut n = 0u32;
    while t.pool().used() < size / 100 * percent {
        n += 1;
        t.insert(key(first, n.wrapping_mul(0x9e37_79b1)), 0, 0)
            .unwrap();
    }
    let expected = t.free_expected(second);
    let mut fit = 0;
    loop {
        n += 1;
        match t.insert(key(second, n.wrapping_mul(0x9e37_79b1)), 0, 0) {
            Ok(_) => fit += 1,
            Err(_) => return (expected, fit, size / widths(slots).of(second)),
        }
    }
}

#[test]
fn free_expected_is_within_2_percent_of_the_first_failure() {
    for slots in [4, 8] {
        for first in KINDS {
            for second in KINDS {
                for percent in [0, 50, 80, 90] {
                    let (expected, fit, size) = first_failure(first, percent, second, slots);
                    let off = f64::from(expected.abs_diff(fit)) / f64::from(size);
                    println!(
                        "{slots} {first:?} {percent} {second:?} expected {expected} fit {fit} of {size}: {off:.4}"
                    );
                    assert!(
                        off <= 0.02,
                        "{slots} {first:?} {percent} % then {second:?}: expected {expected}, fit {fit} of {size}"
                    );
                    // Of what is free the error is larger the fuller the table is: it must not promise much too much.
                    assert!(
                        expected * 100 <= fit * 106 && expected * 100 >= fit * 84,
                        "{slots} {first:?} {percent} % then {second:?}: expected {expected}, fit {fit}"
                    );
                }
            }
        }
    }
}

#[test]
fn churn_gives_the_stash_back() {
    let mut t = table(256, 4, 256);
    let keys: Vec<Key> = (0..t.pool().size()).map(|n| key(Kind::Mac, n)).collect();
    let fit: Vec<&Key> = keys
        .iter()
        .filter(|k| t.insert(**k, 0, 0).is_ok())
        .collect();
    assert!(t.stash_used() > 0);
    for k in &fit[..fit.len() / 2] {
        t.remove(k).unwrap();
    }
    assert_eq!(t.stash_used(), 0);
    assert!(fit[fit.len() / 2..].iter().all(|k| t.get(k).is_some()));
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u8, u32, u64),
    Remove(u8, u32),
    Update(u8, u32, u64),
    Touch(u8, u32),
    Commit(u32),
    Release,
    InsertCommitted(u8, u32),
}

fn op() -> impl Strategy<Value = Op> {
    let n = 0u32..120;
    prop_oneof![
        6 => (0u8..3, n.clone(), any::<u64>()).prop_map(|(k, n, v)| Op::Insert(k, n, v)),
        3 => (0u8..3, n.clone()).prop_map(|(k, n)| Op::Remove(k, n)),
        1 => (0u8..3, n.clone(), any::<u64>()).prop_map(|(k, n, v)| Op::Update(k, n, v)),
        1 => (0u8..3, n.clone()).prop_map(|(k, n)| Op::Touch(k, n)),
        1 => (0u32..8).prop_map(Op::Commit),
        1 => Just(Op::Release),
        1 => (0u8..3, n).prop_map(|(k, n)| Op::InsertCommitted(k, n)),
    ]
}

proptest! {
    /// The table against a map: contents, counters, ids that stay, cursors.
    #[test]
    fn equals_a_map(slots in prop_oneof![Just(4u32), Just(8)], ops in prop::collection::vec(op(), 1..400)) {
        let mut t = table(if slots == 4 { 4 } else { 2 }, slots, 8);
        let mut model: BTreeMap<Key, (u64, EntryId)> = BTreeMap::new();
        for (now, op) in ops.into_iter().enumerate() {
            let now = now as u64;
            match op {
                Op::Insert(k, n, v) => {
                    let k = key(KINDS[k as usize], n);
                    let free = t.pool().free();
                    match t.insert(k, v, now) {
                        Ok(p) => {
                            prop_assert_eq!(p.slots == 0, model.contains_key(&k));
                            model.insert(k, (v, p.id));
                        }
                        Err(InsertError::Full(f)) => {
                            prop_assert!(!model.contains_key(&k));
                            prop_assert_eq!(f.free, free);
                            prop_assert_eq!(f.kind == FullKind::Table, free < widths(slots).of(k.kind()));
                        }
                        Err(e) => prop_assert!(false, "{}", e),
                    }
                }
                Op::Remove(k, n) => {
                    let k = key(KINDS[k as usize], n);
                    let got = t.remove(&k);
                    prop_assert_eq!(got.map(|g| g.0), model.remove(&k).map(|m| m.0));
                }
                Op::Update(k, n, v) => {
                    let k = key(KINDS[k as usize], n);
                    let there = t.update(&k, v);
                    prop_assert_eq!(there, model.contains_key(&k));
                    if let Some(m) = model.get_mut(&k) { m.0 = v; }
                }
                Op::Touch(k, n) => {
                    if let Some(h) = t.get(&key(KINDS[k as usize], n)) {
                        t.touch(h.id, now);
                        prop_assert_eq!(t.entry(h.id).unwrap().stamp_ns, now);
                        prop_assert!(t.take_active(h.id) && !t.take_active(h.id));
                    }
                }
                Op::Commit(n) => {
                    let can = t.stash_free();
                    prop_assert_eq!(t.commit(n).is_ok(), can >= n);
                }
                Op::Release => { let n = t.pool().committed(); t.release(n); }
                Op::InsertCommitted(k, n) => {
                    let k = key(KINDS[k as usize], n);
                    let enough = t.pool().committed() >= widths(slots).of(k.kind()) || model.contains_key(&k);
                    let got = t.insert_committed(k, 1, now);
                    prop_assert_eq!(got.is_ok(), enough);
                    if let Ok(p) = got { model.insert(k, (1, p.id)); }
                }
            }
            prop_assert!(t.pool().check());
            prop_assert_eq!(t.recount(), t.pool().used());
            prop_assert!(t.stash_used() + t.pool().committed() <= t.geometry().stash);
        }
        for f in 0..4 {
            let of_it = model.keys().filter(|k| matches!(k, Key::Mac { fid, .. } if *fid == f)).count();
            prop_assert_eq!(t.count_fid(f) as usize, of_it);
        }
        for (k, (v, id)) in &model {
            prop_assert_eq!(t.get(k), Some(Hit { id: *id, value: *v }));
            prop_assert_eq!(t.entry(*id).map(|e| (e.key, e.value)), Some((*k, *v)));
        }
        let mut seen = HashSet::new();
        let mut cursor = 0;
        while let Some((next, e)) = t.next(cursor) {
            cursor = next;
            prop_assert!(seen.insert(e.key));
        }
        prop_assert_eq!(seen.len(), model.len());
        let (mut n, mut cursor) = (0, 0);
        loop {
            cursor = t.scan(cursor, 3, |_| n += 1);
            if cursor == 0 { break; }
        }
        prop_assert_eq!(n, model.len());
        let keys: Vec<Key> = model.keys().copied().collect();
        let committed = t.pool().committed();
        t.release(committed);
        for k in keys { prop_assert!(t.remove(&k).is_some()); }
        prop_assert_eq!((t.pool().used(), t.pool().free(), t.stash_used()), (0, t.pool().size(), 0));
        prop_assert!(t.lines.iter().all(|l| l.0 == [[0; 2]; 4]));
    }
}

/// What was seen ahead gives the answers of a lookup at once, whatever happens to the table in between.
#[test]
fn seen_ahead_answers_as_a_lookup() {
    let mut t = table(64, 4, 64);
    let mac = |n: u32| [2, 0, 0, (n >> 16) as u8, (n >> 8) as u8, n as u8];
    let macs: Vec<[u8; 6]> = (0..900).map(mac).collect();
    let insert = |t: &mut ExactMatch, n: u32| {
        let key = Key::Mac {
            fid: 3,
            mac: mac(n),
        };
        t.insert(key, u64::from(n), 0).unwrap();
    };
    for n in (0..900).step_by(2) {
        insert(&mut t, n);
    }
    let mut seen = vec![Seen::default(); macs.len()];
    t.see_macs(3, &macs, &mut seen, true);
    let found = |t: &ExactMatch, seen: &[Seen]| {
        let mut hits = 0;
        for ((n, mac), seen) in macs.iter().enumerate().zip(seen) {
            let one = t.get_mac(3, *mac);
            assert_eq!(t.get_mac_seen(3, *mac, *seen), one);
            // of another address, of another domain
            let other = t.get_mac(3, macs[(n + 1) % macs.len()]);
            assert_eq!(t.get_mac_seen(3, macs[(n + 1) % macs.len()], *seen), other);
            assert_eq!(t.get_mac_seen(4, *mac, *seen), None);
            hits += usize::from(one.is_some());
        }
        hits
    };
    let known = seen.iter().filter(|s| **s != Seen::default()).count();
    assert!(known > 400, "{known} of 450 seen");
    assert_eq!(found(&t, &seen), 450);
    // entries come, go and move
    for n in (1..600).step_by(2) {
        insert(&mut t, n);
    }
    for n in (0..300).step_by(4) {
        t.remove(&Key::Mac {
            fid: 3,
            mac: mac(n),
        });
    }
    assert_eq!(found(&t, &seen), 450 + 300 - 75);
}
