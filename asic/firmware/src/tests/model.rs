//! The firmware against a naive model: maps of bodies, and slots counted by adding up.

use super::flows::set;
use super::mdb::ip4;
use super::*;
use proptest::prelude::*;
use raw::*;
use std::collections::BTreeMap;
use tandem_pipeline::state::mask_of;

/// Class and key.
type Name = (u16, u64);

#[derive(Clone, Debug, PartialEq)]
struct Thing {
    refers: Vec<Name>,
    needs: Vec<(PoolId, u32)>,
    body: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Op {
    Create(u16, u8, u8),
    Update(u16, u8, u8),
    Delete(u16, u8),
    Trap(u16, u8),
    Lease(u16, u8),
    Release,
    Leased(u16, u8, u8),
    Fault(u64),
}

const CLASSES: [u16; 10] = [
    TND_CLS_VLAN,
    TND_CLS_VRF,
    TND_CLS_RIF,
    TND_CLS_NEXTHOP,
    TND_CLS_NHG,
    TND_CLS_ROUTE,
    TND_CLS_NEIGH,
    TND_CLS_PORT_SET,
    TND_CLS_FDB,
    TND_CLS_MDB,
];

fn ops() -> impl Strategy<Value = Op> {
    let c = prop::sample::select(&CLASSES[..]);
    prop_oneof![
        8 => (c.clone(), any::<u8>(), any::<u8>()).prop_map(|(c, k, v)| Op::Create(c, k, v)),
        3 => (c.clone(), any::<u8>(), any::<u8>()).prop_map(|(c, k, v)| Op::Update(c, k, v)),
        4 => (c.clone(), any::<u8>()).prop_map(|(c, k)| Op::Delete(c, k)),
        2 => (c.clone(), any::<u8>()).prop_map(|(c, k)| Op::Trap(c, k)),
        1 => (c.clone(), 0u8..4).prop_map(|(c, n)| Op::Lease(c, n)),
        1 => Just(Op::Release),
        1 => (1u64..4).prop_map(Op::Fault),
        2 => (c, any::<u8>(), any::<u8>()).prop_map(|(c, k, v)| Op::Leased(c, k, v)),
    ]
}

/// An object of a class from two small numbers: its key, and everything else.
fn thing(cls: u16, k: u8, v: u8) -> (Name, Thing) {
    let (refers, needs, body): (Vec<Name>, Vec<(PoolId, u32)>, Vec<u8>);
    let mut key = u64::from(k % 8);
    let nh = |v: u8| 10 + u32::from(v % 8);
    match cls {
        TND_CLS_VLAN => {
            refers = vec![];
            needs = vec![(PoolId::Vlan, 1)];
            body = tnd_vlan {
                flags: u32::from(v % 4) | if v & 4 != 0 { TND_VLAN_FLOWS } else { 0 },
                ..vlan(key as u16 + 1)
            }
            .as_bytes()
            .to_vec();
        }
        TND_CLS_VRF => {
            refers = vec![];
            needs = vec![(PoolId::Vrf, 1)];
            body = vrf(key as u16 + 1).as_bytes().to_vec();
        }
        TND_CLS_RIF => {
            // each RIF on a port of its own: sharing a place is a matter of the scenarios
            let vrf = u16::from(v % 3);
            refers = if vrf == 0 {
                vec![]
            } else {
                vec![(TND_CLS_VRF, u64::from(vrf) - 1)]
            };
            needs = vec![(PoolId::Rif, 1)];
            body = rif(key as u16, vrf, key as u16 + 1).as_bytes().to_vec();
        }
        TND_CLS_NEXTHOP => {
            refers = vec![(TND_CLS_RIF, u64::from(v % 8))];
            needs = vec![(PoolId::Nexthop, 1)];
            body = nexthop(10 + key as u32, u16::from(v % 8))
                .as_bytes()
                .to_vec();
        }
        TND_CLS_NHG => {
            key %= 4;
            let members: Vec<(u32, u32)> = (0..=v % 4)
                .map(|i| (nh(v.wrapping_add(i * 3)), 1))
                .collect();
            refers = members
                .iter()
                .map(|(id, _)| (TND_CLS_NEXTHOP, u64::from(id - 10)))
                .collect();
            needs = vec![(PoolId::Nhg, 1), (PoolId::NhgMember, members.len() as u32)];
            body = nhg(key as u32, &members);
        }
        TND_CLS_ROUTE => {
            key = u64::from(k % 24);
            let target = match v % 3 {
                0 => None,
                1 => Some((TND_RT_NEXTHOP, nh(v / 3))),
                _ => Some((TND_RT_NHG, u32::from(v / 3 % 4))),
            };
            refers = match target {
                None => vec![],
                Some((TND_RT_NEXTHOP, id)) => vec![(TND_CLS_NEXTHOP, u64::from(id) - 10)],
                Some((_, id)) => vec![(TND_CLS_NHG, u64::from(id))],
            };
            let n = k % 24 / 2;
            let (pool, r) = if k.is_multiple_of(2) {
                (PoolId::Lpm4, route4(0, u32::from(n) << 24, 8, target))
            } else {
                (PoolId::Lpm6, route6(0, u128::from(n) << 120, 8, target))
            };
            needs = vec![(pool, 1)];
            body = r.as_bytes().to_vec();
        }
        TND_CLS_MDB => {
            key = u64::from(k % 32);
            refers = vec![(TND_CLS_VLAN, u64::from(k % 4))];
            needs = vec![(PoolId::Mdb, 1)];
            let ports: Vec<u16> = (1..=8).filter(|p| v >> (p - 1) & 1 != 0).collect();
            body = ip4(u16::from(k % 4) + 1, 1 + k % 32 / 4, &ports);
        }
        TND_CLS_PORT_SET => {
            refers = vec![];
            needs = vec![(PoolId::Mdb, 1)];
            let ports = mask_of((1..=8).filter(|p| v >> (p - 1) & 1 != 0));
            body = set(key as u16 + 1, ports).as_bytes().to_vec();
        }
        TND_CLS_NEIGH => {
            // the address tells its RIF, so that no two RIFs of a VRF meet in one key
            key = u64::from(k);
            refers = vec![(TND_CLS_RIF, u64::from(k % 8))];
            let mac = [2, 0, 0, 0, 0, v % 3];
            let rif = u16::from(k % 8);
            let (slots, n) = if k & 64 == 0 {
                (1, neigh4(rif, k.into()))
            } else {
                (2, neigh6(rif, k.into()))
            };
            needs = vec![(PoolId::ExactMatch, slots)];
            body = tnd_neigh { mac, ..n }.as_bytes().to_vec();
        }
        _ => {
            key = u64::from(k);
            let vlan = (TND_CLS_VLAN, u64::from(k % 8));
            needs = vec![(PoolId::ExactMatch, 1)];
            let mut e = fdb(u16::from(k % 8) + 1, u32::from(k) + 1, u16::from(v % 8) + 1);
            if v < 128 {
                refers = vec![vlan];
            } else {
                (e.port, e.set, e.flags) = (0, e.port, TND_FDB_STATIC);
                refers = vec![vlan, (TND_CLS_PORT_SET, u64::from(v % 8))];
            }
            body = e.as_bytes().to_vec();
        }
    }
    (
        (cls, key),
        Thing {
            refers,
            needs,
            body,
        },
    )
}

#[derive(Default)]
struct Model {
    things: BTreeMap<Name, Thing>,
    /// Faults that fired and were seen.
    faults: u64,
}

impl Model {
    fn used(&self, pool: PoolId) -> u32 {
        self.things
            .values()
            .flat_map(|t| &t.needs)
            .filter(|n| n.0 == pool)
            .map(|n| n.1)
            .sum()
    }
    fn referred(&self, name: Name) -> bool {
        self.things.values().any(|t| t.refers.contains(&name))
    }
    /// Its domain is there, and none of flow ports: it may have no such entry.
    fn refused(&self, t: &Thing) -> bool {
        let sets = t.refers.iter().any(|r| r.0 == TND_CLS_PORT_SET);
        let domain = t.refers.first().and_then(|r| self.things.get(r));
        let domain = domain.and_then(|d| tnd_vlan::read_from_bytes(&d.body).ok());
        sets && domain.is_some_and(|d| d.flags & TND_VLAN_FLOWS == 0)
    }
    fn there(&self, t: &Thing) -> bool {
        t.refers.iter().all(|r| self.things.contains_key(r))
    }
}

fn check(fw: &Firmware, m: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(fw.check_accounting(), Ok(()));
    for id in PoolId::ALL {
        let p = pool(fw, id);
        prop_assert_eq!(p.used, m.used(id), "{}", id.name());
        prop_assert_eq!(
            p.used + p.in_flight + p.committed + p.free,
            p.size,
            "{}",
            id.name()
        );
        prop_assert!(p.high_watermark >= p.used);
    }
    for row in fw.resources().1 {
        prop_assert!(row.free_guaranteed <= row.free_expected);
    }
    Ok(())
}

/// A write: the model says what must come out, but for "full", which the numbers must justify.
fn write(fw: &mut Firmware, m: &mut Model, c: &tnd_cmd, k: u8, v: u8) -> Result<(), TestCaseError> {
    let (name, t) = thing(c.cls, k, v);
    let (cpl, _) = run(fw, c, &t.body);
    let old = m.things.get(&name).cloned();
    // hosts are keyed by VRF: a RIF with references keeps it
    let vrf_moves = c.cls == TND_CLS_RIF
        && old.as_ref().is_some_and(|o| o.refers != t.refers)
        && m.referred(name);
    let want = match (&old, c.op) {
        (None, TND_OP_UPDATE) => TND_ST_NOENT,
        (Some(o), _) if *o == t => TND_ST_OK,
        (Some(_), TND_OP_CREATE) => TND_ST_EXISTS,
        _ if m.refused(&t) => TND_ST_INVALID,
        _ if !m.there(&t) => TND_ST_DEPEND,
        _ if vrf_moves => TND_ST_IN_USE,
        _ => TND_ST_OK,
    };
    let more = |pool| {
        let slots = |t: &Thing| {
            t.needs
                .iter()
                .filter(|n| n.0 == pool)
                .map(|n| n.1)
                .sum::<u32>()
        };
        slots(&t).saturating_sub(old.as_ref().map_or(0, slots))
    };
    match cpl.status {
        TND_ST_TABLE_FULL | TND_ST_BUCKET_FULL => {
            prop_assert_eq!(want, TND_ST_OK);
            let id = PoolId::ALL[usize::from(cpl.table)];
            let p = pool(fw, id);
            prop_assert_eq!((cpl.needed, cpl.free, cpl.size), (more(id), p.free, p.size));
            prop_assert_eq!(cpl.status == TND_ST_BUCKET_FULL, p.free >= cpl.needed);
            prop_assert!(cpl.status == TND_ST_TABLE_FULL || id == PoolId::ExactMatch);
            prop_assert_eq!(cpl.delta_count, 0);
        }
        TND_ST_FAULT => {
            prop_assert!(c.op == TND_OP_CREATE && fw.faults.fired() > m.faults);
            m.faults = fw.faults.fired();
            prop_assert_eq!(cpl.delta_count, 0);
        }
        TND_ST_LEASE => {
            prop_assert!(c.flags & TND_CMD_LEASE != 0);
            prop_assert_eq!(cpl.delta_count, 0);
        }
        s => {
            prop_assert_eq!(s, want, "{:?} op {} over {:?}", name, c.op, old);
            if s == TND_ST_OK {
                let told: i64 = deltas(&cpl).iter().map(|d| i64::from(d.1)).sum();
                let before: i64 = old
                    .iter()
                    .flat_map(|o| &o.needs)
                    .map(|n| i64::from(n.1))
                    .sum();
                let after: i64 = t.needs.iter().map(|n| i64::from(n.1)).sum();
                prop_assert_eq!(told, after - before);
                m.things.insert(name, t);
            }
        }
    }
    Ok(())
}

fn trapped(cls: u16, t: &Thing) -> Option<Thing> {
    let mut t = t.clone();
    match cls {
        TND_CLS_ROUTE => {
            let mut r = tnd_route::read_from_bytes(&t.body).ok()?;
            (r.action, r.reason) = (TND_ACT_TRAP, 0);
            (r.target_kind, r.target) = (TND_RT_NONE, 0);
            t.body = r.as_bytes().to_vec();
            t.refers.clear();
        }
        TND_CLS_NEIGH => {
            let mut n = tnd_neigh::read_from_bytes(&t.body).ok()?;
            n.action = TND_ACT_TRAP;
            t.body = n.as_bytes().to_vec();
        }
        TND_CLS_NEXTHOP => {
            let mut n = tnd_nexthop::read_from_bytes(&t.body).ok()?;
            n.action = TND_ACT_TRAP;
            t.body = n.as_bytes().to_vec();
            t.refers.clear();
        }
        TND_CLS_MDB => {
            let (mut n, _) = tnd_mdb::read_from_prefix(&t.body).ok()?;
            (n.action, n.count) = (TND_ACT_TRAP, 0);
            t.body = n.as_bytes().to_vec();
        }
        TND_CLS_FDB => {
            let mut n = tnd_fdb::read_from_bytes(&t.body).ok()?;
            (n.action, n.port, n.set) = (TND_ACT_TRAP, 0, 0);
            t.body = n.as_bytes().to_vec();
            t.refers.truncate(1);
        }
        _ => return None,
    }
    Some(t)
}

fn play(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let mut fw = chip("tiny");
    let mut m = Model::default();
    let mut leases: Vec<u32> = Vec::new();
    for o in ops {
        match o {
            Op::Create(c, k, v) => write(&mut fw, &mut m, &cmd(TND_OP_CREATE, c), k, v)?,
            Op::Update(c, k, v) => write(&mut fw, &mut m, &cmd(TND_OP_UPDATE, c), k, v)?,
            Op::Leased(c, k, v) => {
                let lease = leases.last().copied().unwrap_or(99);
                let c = tnd_cmd {
                    flags: TND_CMD_LEASE,
                    lease,
                    ..cmd(TND_OP_CREATE, c)
                };
                write(&mut fw, &mut m, &c, k, v)?;
            }
            Op::Delete(c, k) => {
                let (name, t) = thing(c, k, 0);
                let cpl = run(&mut fw, &cmd(TND_OP_DELETE, c), &t.body).0;
                let want = match m.things.get(&name) {
                    // a host needs its RIF to be named; without it there is none
                    None => TND_ST_NOENT,
                    Some(_) if m.referred(name) => TND_ST_IN_USE,
                    Some(_) => TND_ST_OK,
                };
                prop_assert_eq!(cpl.status, want, "delete {:?}", name);
                if want == TND_ST_OK {
                    m.things.remove(&name);
                }
            }
            Op::Trap(c, k) => {
                let (name, t) = thing(c, k, 0);
                let cpl = run(&mut fw, &cmd(TND_OP_SET_TRAP, c), &t.body).0;
                prop_assert_eq!(cpl.delta_count, 0);
                let new = m.things.get(&name).map(|old| trapped(c, old));
                let want = match &new {
                    None => TND_ST_NOENT,
                    Some(None) => TND_ST_UNSUPPORTED,
                    Some(Some(_)) => TND_ST_OK,
                };
                prop_assert_eq!(cpl.status, want, "trap {:?}", name);
                if let Some(Some(new)) = new {
                    m.things.insert(name, new);
                }
            }
            Op::Lease(c, n) => {
                let family = if n % 2 == 0 {
                    TND_AF_INET
                } else {
                    TND_AF_INET6
                };
                let cpl = run(
                    &mut fw,
                    &cmd(TND_OP_LEASE, 0),
                    &super::lease::lease(&[(c, family, n.into())]),
                )
                .0;
                if cpl.status == TND_ST_OK {
                    leases.push(cpl.result as u32);
                } else {
                    prop_assert_eq!(cpl.status, TND_ST_TABLE_FULL);
                }
            }
            Op::Fault(after) => {
                fw.faults.clear();
                let fault = Fault {
                    action: FaultAction::Fail,
                    op: Some(TND_OP_CREATE),
                    cls: None,
                    pool: None,
                    after,
                    count: 1,
                };
                fw.faults.add(fault).unwrap();
            }
            Op::Release => {
                if let Some(lease) = leases.pop() {
                    prop_assert_eq!(
                        run(
                            &mut fw,
                            &tnd_cmd {
                                lease,
                                ..cmd(TND_OP_RELEASE, 0)
                            },
                            &[]
                        )
                        .0
                        .status,
                        TND_ST_OK
                    );
                }
            }
        }
        check(&fw, &m)?;
    }
    for lease in leases {
        run(
            &mut fw,
            &tnd_cmd {
                lease,
                ..cmd(TND_OP_RELEASE, 0)
            },
            &[],
        );
    }
    // drain: dependents first
    for cls in CLASSES.iter().rev() {
        let mine: Vec<(Name, Thing)> = m
            .things
            .iter()
            .filter(|(n, _)| n.0 == *cls)
            .map(|(n, t)| (*n, t.clone()))
            .collect();
        for (name, t) in mine {
            prop_assert_eq!(
                run(&mut fw, &cmd(TND_OP_DELETE, *cls), &t.body).0.status,
                TND_ST_OK,
                "drain {:?}",
                name
            );
            m.things.remove(&name);
        }
    }
    check(&fw, &m)?;
    for id in PoolId::ALL {
        prop_assert_eq!(
            (pool(&fw, id).used, pool(&fw, id).free),
            (0, pool(&fw, id).size)
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equals_the_model(ops in prop::collection::vec(ops(), 1..250)) {
        play(ops)?;
    }
}
