use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Prefixes that overlap a lot: few distinct bits, all lengths.
fn prefix(bits: u8) -> impl Strategy<Value = (u16, u128, u8)> {
    let lengths = prop_oneof![3 => 0..=bits, 1 => Just(0), 1 => Just(bits), 1 => Just(16u8), 1 => Just(17u8), 1 => Just(20u8), 1 => Just(24u8), 1 => Just(25u8), 1 => Just(8u8), 1 => Just(9u8)];
    let addr = prop_oneof![
        3 => (0u128..8, 0u32..128).prop_map(|(v, s)| v << s),
        1 => any::<u128>(),
        1 => Just(u128::MAX),
    ];
    (prop_oneof![Just(0u16), Just(3u16)], addr, lengths)
}

trait FromU128: Addr {
    fn from_u128(v: u128) -> Self;
}
impl FromU128 for u32 {
    fn from_u128(v: u128) -> Self {
        (v ^ (v >> 96)) as u32
    }
}
impl FromU128 for u128 {
    fn from_u128(v: u128) -> Self {
        v
    }
}

type Model<A> = BTreeMap<(u16, u8, A), u32>;

fn naive<A: Addr>(m: &Model<A>, vrf: u16, addr: A) -> Option<(u32, u8)> {
    (0..=A::BITS)
        .rev()
        .find_map(|l| m.get(&(vrf, l, addr.masked(l))).map(|v| (*v, l)))
}

fn run<A: FromU128>(
    room: usize,
    ops: Vec<(u8, (u16, u128, u8), u32)>,
    probes: &[u128],
) -> Result<(), TestCaseError> {
    let mut t: Lpm<A> = Lpm::new(room as u32 * 2, 2);
    let mut model: Model<A> = BTreeMap::new();
    for (op, (vrf, addr, plen), value) in ops {
        let addr = A::from_u128(addr);
        let k = (vrf, plen, addr.masked(plen));
        match op {
            0..=4 => {
                let got = t.insert(vrf, addr, plen, value);
                if model.contains_key(&k) || model.len() < room {
                    prop_assert_eq!(got, Ok(if model.contains_key(&k) { 0 } else { 2 }));
                    model.insert(k, value);
                } else {
                    let full = t.pool().full(2);
                    prop_assert_eq!(got, Err(InsertError::Full(full)));
                }
            }
            5..=7 => prop_assert_eq!(t.remove(vrf, addr, plen).map(|r| r.0), model.remove(&k)),
            _ => {
                prop_assert_eq!(t.update(vrf, addr, plen, value), model.contains_key(&k));
                if let Some(v) = model.get_mut(&k) {
                    *v = value;
                }
            }
        }
        prop_assert_eq!(t.len() as usize, model.len());
        prop_assert_eq!(t.recount(), t.pool().used());
        prop_assert!(t.pool().check());
    }
    let edges: Vec<A> = model.keys().map(|k| k.2).collect();
    let addrs: Vec<A> = probes
        .iter()
        .map(|p| A::from_u128(*p))
        .chain(edges)
        .collect();
    let mut many = vec![Answer { cell: 7, value: 7 }; addrs.len() + 1];
    for vrf in [0, 1, 3] {
        t.lookup_bulk(vrf, &addrs, &mut many);
        for (addr, answer) in addrs.iter().zip(&many) {
            let expected = naive(&model, vrf, *addr);
            let hit = t.lookup(vrf, *addr);
            prop_assert_eq!(
                hit.map(|h| (h.value, t.records[h.id.0 as usize].plen)),
                expected
            );
            prop_assert_eq!(answer.hit(), hit);
            prop_assert_eq!(answer.value, expected.map_or(0, |e| e.0));
        }
    }
    let mut cursor = 0;
    let mut seen: Model<A> = BTreeMap::new();
    while let Some((next, r)) = t.next(cursor) {
        cursor = next;
        prop_assert!(seen.insert((r.vrf, r.plen, r.addr), r.value).is_none());
    }
    prop_assert_eq!(&seen, &model);
    for (vrf, plen, addr) in model.into_keys() {
        prop_assert!(t.remove(vrf, addr, plen).is_some());
    }
    prop_assert_eq!((t.len(), t.pool().used(), t.nodes_in_use()), (0, 0, 0));
    prop_assert!(t.roots.iter().all(Option::is_none));
    Ok(())
}

proptest! {
    #[test]
    fn v4_equals_the_oracle(
        ops in prop::collection::vec((0u8..10, prefix(32), any::<u32>()), 1..250),
        probes in prop::collection::vec(any::<u128>(), 20),
    ) {
        run::<u32>(100, ops.clone(), &probes)?;
        run::<u32>(LARGE as usize, ops, &probes)?;
    }

    #[test]
    fn v6_equals_the_oracle(
        ops in prop::collection::vec((0u8..10, prefix(128), any::<u32>()), 1..250),
        probes in prop::collection::vec(any::<u128>(), 20),
    ) {
        run::<u128>(100, ops.clone(), &probes)?;
        run::<u128>(LARGE as usize, ops, &probes)?;
    }
}

#[test]
fn activity_is_read_and_cleared() {
    let mut t = Lpm4::new(8, 1);
    t.insert(0, 0x0a00_0000, 8, 1).unwrap();
    let hit = t.lookup(0, 0x0a01_0203).unwrap();
    assert!(!t.take_active(hit.id));
    t.touch(hit.id);
    assert!(t.take_active(hit.id) && !t.take_active(hit.id));
}

#[test]
fn too_long_a_prefix_is_refused() {
    assert_eq!(
        Lpm4::new(8, 1).insert(0, 0, 33, 0),
        Err(InsertError::BadLength(33))
    );
    assert_eq!(Lpm4::new(8, 1).get(0, 0, 33), None);
}

#[test]
fn a_new_route_in_an_old_slot_was_not_used() {
    let mut t = Lpm4::new(8, 1);
    t.insert(0, 0x0a00_0000, 8, 1).unwrap();
    let old = t.lookup(0, 0x0a00_0001).unwrap().id;
    t.touch(old);
    t.remove(0, 0x0a00_0000, 8).unwrap();
    t.insert(0, 0x0b00_0000, 8, 2).unwrap();
    let (_, route) = t.next(0).unwrap();
    assert_eq!((route.id, route.active), (old, false));
}

/// The burst's last part has but one address.
#[test]
fn bursts_of_any_length_see_what_is_below_the_root() {
    let mut t = Lpm4::new(8, 1);
    t.insert(0, 0x0a00_0000, 8, 1).unwrap();
    t.insert(0, 0x0a00_0001, 32, 2).unwrap();
    for many in [1, 2, BULK, BULK + 1] {
        let mut answers = vec![Answer::default(); many];
        t.lookup_bulk(0, &vec![0x0a00_0001; many], &mut answers);
        assert!(answers.iter().all(|a| a.value == 2), "{many} addresses");
    }
}
