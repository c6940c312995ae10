//! Leases: what is promised holds, whatever the keys are.

use super::*;
use raw::*;

pub(super) fn lease(items: &[(u16, u8, u32)]) -> Vec<u8> {
    let head = tnd_lease {
        struct_size: size_of::<tnd_lease>() as u16,
        count: items.len() as u16,
        ..Default::default()
    };
    let mut b = head.as_bytes().to_vec();
    for (cls, family, count) in items {
        b.extend(
            tnd_lease_item {
                cls: *cls,
                family: *family,
                reserved0: 0,
                count: *count,
            }
            .as_bytes(),
        );
    }
    b
}

fn grant(fw: &mut Firmware, items: &[(u16, u8, u32)]) -> (tnd_cpl, u32) {
    let cpl = run(fw, &cmd(TND_OP_LEASE, 0), &lease(items)).0;
    (cpl, cpl.result as u32)
}

fn with_lease(fw: &mut Firmware, lease: u32, cls: u16, body: &[u8]) -> tnd_cpl {
    run(
        fw,
        &tnd_cmd {
            flags: TND_CMD_LEASE,
            lease,
            ..cmd(TND_OP_CREATE, cls)
        },
        body,
    )
    .0
}

#[test]
fn a_lease_is_all_or_nothing_and_refunded() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    assert_eq!(create(f, TND_CLS_RIF, &rif(1, 0, 1)), TND_ST_OK);
    let (cpl, _) = grant(
        f,
        &[(TND_CLS_NEXTHOP, 0, 2), (TND_CLS_ROUTE, TND_AF_INET, 33)],
    );
    assert_eq!(
        (cpl.status, cpl.table, cpl.needed, cpl.free),
        (TND_ST_TABLE_FULL, 1, 33, 32)
    );
    assert_eq!(pool(f, PoolId::Nexthop).committed, 0);
    let (cpl, id) = grant(
        f,
        &[
            (TND_CLS_NEXTHOP, 0, 2),
            (TND_CLS_NHG, 0, 1),
            (TND_CLS_ROUTE, TND_AF_INET, 32),
        ],
    );
    assert_eq!(cpl.status, TND_ST_OK);
    assert_eq!(pool(f, PoolId::NhgMember).committed, 4);
    // others find the table full, the lease does not
    assert_eq!(
        create(f, TND_CLS_ROUTE, &route4(0, 0, 0, None)),
        TND_ST_TABLE_FULL
    );
    assert_eq!(
        with_lease(f, id, TND_CLS_ROUTE, route4(0, 0, 0, None).as_bytes()).status,
        TND_ST_OK
    );
    assert_eq!(
        with_lease(f, id, TND_CLS_NEXTHOP, nexthop(1, 1).as_bytes()).status,
        TND_ST_OK
    );
    assert_eq!(
        with_lease(f, id, TND_CLS_NEXTHOP, nexthop(2, 1).as_bytes()).status,
        TND_ST_OK
    );
    assert_eq!(
        with_lease(f, id, TND_CLS_NEXTHOP, nexthop(3, 1).as_bytes()).status,
        TND_ST_LEASE
    );
    let cpl = with_lease(f, id, TND_CLS_NHG, &nhg(1, &[(1, 1), (2, 1)]));
    assert_eq!(deltas(&cpl), [(8, 1), (9, 2)]);
    assert_eq!(pool(f, PoolId::NhgMember).committed, 2);
    // an object that is there already takes nothing out of it
    assert_eq!(
        with_lease(f, id, TND_CLS_ROUTE, route4(0, 0, 0, None).as_bytes()).delta_count,
        0
    );
    assert_eq!(pool(f, PoolId::Lpm4).committed, 31);
    let release = tnd_cmd {
        lease: id,
        ..cmd(TND_OP_RELEASE, 0)
    };
    assert_eq!(run(f, &release, &[]).0.status, TND_ST_OK);
    assert_eq!(run(f, &release, &[]).0.status, TND_ST_LEASE);
    assert_eq!(
        with_lease(f, id, TND_CLS_ROUTE, route4(0, 1 << 31, 1, None).as_bytes()).status,
        TND_ST_LEASE
    );
    for p in PoolId::ALL {
        assert_eq!(pool(f, p).committed, 0);
    }
    assert_eq!(f.check_accounting(), Ok(()));
}

#[test]
fn a_group_that_does_not_fit_its_lease_leaves_the_lease_as_it_was() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    assert_eq!(create(f, TND_CLS_RIF, &rif(1, 0, 1)), TND_ST_OK);
    for i in 1..=4 {
        assert_eq!(create(f, TND_CLS_NEXTHOP, &nexthop(i, 1)), TND_ST_OK);
    }
    let (_, id) = grant(f, &[(TND_CLS_NHG, 0, 2)]);
    let four = [(1, 1), (2, 1), (3, 1), (4, 1)];
    assert_eq!(
        with_lease(f, id, TND_CLS_NHG, &nhg(1, &four)).status,
        TND_ST_OK
    );
    // update takes members from the lease too: it has four left
    let c = tnd_cmd {
        flags: TND_CMD_LEASE,
        lease: id,
        ..cmd(TND_OP_UPDATE, TND_CLS_NHG)
    };
    assert_eq!(run(f, &c, &nhg(1, &four[..1])).0.status, TND_ST_OK);
    assert_eq!(run(f, &c, &nhg(1, &four)).0.status, TND_ST_OK);
    assert_eq!(
        with_lease(f, id, TND_CLS_NHG, &nhg(2, &four)).status,
        TND_ST_LEASE
    );
    assert_eq!(
        (pool(f, PoolId::Nhg).committed, pool(f, PoolId::Nhg).used),
        (1, 1)
    );
    assert_eq!(f.check_accounting(), Ok(()));
}

#[test]
fn bad_leases_are_refused() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    for items in [&[][..], &[(TND_CLS_PORT, 0, 1)], &[(TND_CLS_ROUTE, 0, 1)]] {
        assert_eq!(grant(f, items).0.status, TND_ST_INVALID);
    }
    let nine = [(TND_CLS_RIF, 0, 0); 9];
    assert_eq!(grant(f, &nine).0.status, TND_ST_INVALID);
    let (cpl, _) = grant(f, &[(TND_CLS_NEIGH, TND_AF_INET6, u32::MAX)]);
    assert_eq!((cpl.status, cpl.table), (TND_ST_TABLE_FULL, 0));
    let mut cut = lease(&[(TND_CLS_RIF, 0, 1)]);
    cut.pop();
    assert_eq!(run(f, &cmd(TND_OP_LEASE, 0), &cut).0.status, TND_ST_INVALID);
}

/// A driver that never heard of its lease names it by the LEASE's cookie; one that was not granted is not there.
#[test]
fn a_lease_whose_completion_was_lost_is_released_by_its_cookie() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    let mut ask = cmd(TND_OP_LEASE, 0);
    ask.cookie = 77;
    let body = lease(&[(TND_CLS_RIF, 0, 3)]);
    assert_eq!(run(f, &ask, &body).0.status, TND_ST_OK);
    assert_eq!(pool(f, PoolId::Rif).committed, 3);
    let mut release = cmd(TND_OP_RELEASE, 0);
    for other in [76, 78] {
        release.arg = other;
        assert_eq!(run(f, &release, &[]).0.status, TND_ST_LEASE);
        assert_eq!(pool(f, PoolId::Rif).committed, 3);
    }
    release.arg = 77;
    assert_eq!(run(f, &release, &[]).0.status, TND_ST_OK);
    assert_eq!(pool(f, PoolId::Rif).committed, 0);
    assert_eq!(run(f, &release, &[]).0.status, TND_ST_LEASE);
}

/// After four thousand million of them the ids begin anew; those that are still out are passed over.
#[test]
fn a_lease_that_is_out_keeps_its_id() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    let one = |f: &mut Firmware| grant(f, &[(TND_CLS_RIF, 0, 1)]).1;
    assert_eq!(one(f), 1);
    f.next_lease = u32::MAX;
    assert_eq!((one(f), one(f)), (u32::MAX, 2));
    assert_eq!(pool(f, PoolId::Rif).committed, 3);
    f.attach(true);
    assert_eq!(pool(f, PoolId::Rif).committed, 0);
}

/// What is said to fit of an object is what the scarcest of the pools that it needs has room for.
#[test]
fn room_is_that_of_the_scarcest_pool() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    let room = |f: &Firmware, cls| {
        let rows = f.resources().1;
        let row = rows.iter().find(|r| r.cls == cls).unwrap();
        (row.free_guaranteed, row.free_expected)
    };
    // two groups of at most four members, of eight in all
    assert_eq!(room(f, TND_CLS_NHG), (2, 2));
    assert_eq!(create(f, TND_CLS_RIF, &rif(1, 0, 1)), TND_ST_OK);
    for i in 1..=5 {
        assert_eq!(create(f, TND_CLS_NEXTHOP, &nexthop(i, 1)), TND_ST_OK);
    }
    let three = nhg(1, &[(1, 1), (2, 1), (3, 1)]);
    assert_eq!(
        run(f, &cmd(TND_OP_CREATE, TND_CLS_NHG), &three).0.status,
        TND_ST_OK
    );
    // one group is left, and five members: another big one
    assert_eq!(room(f, TND_CLS_NHG), (1, 1));
    let four = nhg(1, &[(1, 1), (2, 1), (3, 1), (4, 1)]);
    assert_eq!(
        run(f, &cmd(TND_OP_DELETE, TND_CLS_NHG), &three).0.status,
        TND_ST_OK
    );
    let (_, id) = grant(f, &[(TND_CLS_NHG, 0, 1)]);
    assert_eq!(room(f, TND_CLS_NHG), (1, 1));
    assert_eq!(with_lease(f, id, TND_CLS_NHG, &four).status, TND_ST_OK);
    assert_eq!(room(f, TND_CLS_NHG), (1, 1));
    // two bonds, but four members in all, and a bond may have more: no bond is sure to fit
    assert_eq!(room(f, TND_CLS_LAG), (0, 2));
}

#[test]
fn leases_are_bounded_and_go_with_their_driver() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    for _ in 0..crate::pools::MAX_LEASES {
        assert_eq!(grant(f, &[(TND_CLS_RIF, 0, 0)]).0.status, TND_ST_OK);
    }
    assert_eq!(grant(f, &[(TND_CLS_RIF, 0, 0)]).0.status, TND_ST_LEASE);
    f.attach(true);
    assert_eq!(grant(f, &[(TND_CLS_RIF, 0, 3)]).0.status, TND_ST_OK);
    assert_eq!(pool(f, PoolId::Rif).committed, 3);
    f.attach(true);
    assert_eq!(pool(f, PoolId::Rif).committed, 0);
}

/// Promise 3 on a chip of real size: at 80 % fill at least 5 % of the slots are guaranteed, and the guarantee holds
/// against keys that crowd into few buckets.
#[test]
fn at_80_percent_5_percent_are_guaranteed_against_colliding_keys() {
    let mut fw = chip("spectrum-sn2700");
    let f = &mut fw;
    assert_eq!(create(f, TND_CLS_RIF, &rif(1, 0, 1)), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    let size = pool(f, PoolId::ExactMatch).size;
    let mut n = 0u32;
    while f.state.exact.pool().used() < size / 10 * 8 {
        n += 1;
        let status = match n % 3 {
            0 => create(f, TND_CLS_NEIGH, &neigh4(1, n)),
            1 => create(f, TND_CLS_NEIGH, &neigh6(1, u128::from(n) << 32 | 1)),
            _ => create(f, TND_CLS_FDB, &fdb(1, n, 1)),
        };
        assert_eq!(status, TND_ST_OK);
    }
    for row in f.resources().1.iter().filter(|r| r.pool == 0) {
        assert!(row.free_guaranteed * row.cost * 20 >= size, "{row:?}");
        assert!(row.free_guaranteed <= row.free_expected);
    }
    let count = cost(&f.resources().1, "mac").free_guaranteed;
    let (cpl, id) = grant(f, &[(TND_CLS_FDB, 0, count)]);
    assert_eq!(cpl.status, TND_ST_OK);
    // addresses that crowd into forty buckets of the first bank; `promises_hold_against_colliding_keys` in the tables
    // collides in all banks, which takes a smaller memory to search for
    let mut fit = 0;
    let mut mac = 0x4000_0000u32;
    while fit < count {
        mac += 1;
        let e = fdb(1, mac, 1);
        let key = tandem_tables::exact::Key::Mac { fid: 1, mac: e.mac };
        if f.state.exact.buckets_of(&key)[0] >= 40 {
            continue;
        }
        let cpl = with_lease(f, id, TND_CLS_FDB, e.as_bytes());
        assert_eq!(cpl.status, TND_ST_OK, "after {fit} of {count}");
        fit += 1;
    }
    assert_eq!(f.check_accounting(), Ok(()));
}

/// With what the dump says a table can be made elsewhere that places every key as the chip's own does.
#[test]
fn the_geometry_dump_describes_the_exact_match_memory() {
    use tandem_tables::exact::{ExactMatch, Geometry, Key, Widths};
    let mut fw = chip("tiny");
    let f = &mut fw;
    assert_eq!(create(f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    let rows = dump::<tnd_geometry>(f, TND_OP_DUMP, TND_CLS_GEOMETRY, 100);
    assert_eq!(rows.len(), 1);
    let g = rows[0];
    assert_eq!((g.hash, g.exact_pool), (TND_EXACT_HASH_MIX64, 0));
    assert_eq!(
        (g.nhg_member_pool, g.nhg_max_members),
        (9, f.pools.nhg_max_members())
    );
    let geometry = Geometry {
        banks: g.banks,
        buckets_per_bank: g.buckets_per_bank,
        slots_per_bucket: g.slots_per_bucket,
        stash: g.stash,
        max_moves: g.max_moves,
    };
    let widths = Widths {
        mac: g.width_mac.into(),
        host4: g.width_host4.into(),
        host6: g.width_host6.into(),
    };
    let mut model = ExactMatch::new(geometry, widths, g.seed).unwrap();
    for i in 1..60 {
        let o = fdb(1, i, 1);
        let chip = create(f, TND_CLS_FDB, &o) == TND_ST_OK;
        let key = Key::Mac {
            fid: o.fid,
            mac: o.mac,
        };
        assert_eq!(model.insert(key, 0, 0).is_ok(), chip);
        assert_eq!(model.buckets_of(&key), f.state.exact.buckets_of(&key));
        assert_eq!(model.stash_used(), f.state.exact.stash_used());
    }
    let c = tnd_cmd {
        out_size: 8,
        ..cmd(TND_OP_DUMP, TND_CLS_GEOMETRY)
    };
    assert_eq!(run(f, &c, &[]).0.status, TND_ST_NO_OUTPUT);
}

/// The pipeline learns into the same memory: it takes free slots, never those that a lease was promised, however many
/// stations there are.
#[test]
fn learning_takes_nothing_that_is_leased() {
    use tandem_tables::exact::Key;
    let mut fw = chip("tiny");
    let f = &mut fw;
    assert_eq!(create(f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    let (cpl, id) = grant(f, &[(TND_CLS_FDB, 0, 6)]);
    assert_eq!(cpl.status, TND_ST_OK);
    let mut learned = 0;
    for i in 0..2000u32 {
        let [_, a, b, c] = i.to_be_bytes();
        let key = Key::Mac {
            fid: 1,
            mac: [2, 7, 7, a, b, c],
        };
        learned += u32::from(f.state.exact.insert(key, 1, 0).is_ok());
    }
    assert!(learned >= 20, "{learned} learned");
    assert_eq!(pool(f, PoolId::ExactMatch).committed, 6);
    // each of them, though the banks are as full as learning makes them
    for i in 1..=6 {
        let cpl = with_lease(f, id, TND_CLS_FDB, fdb(1, i, 1).as_bytes());
        assert_eq!(cpl.status, TND_ST_OK, "{i}");
    }
    assert_eq!(f.check_accounting(), Ok(()));
}
