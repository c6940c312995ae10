//! Writes that fail, and entries that change behind everybody's back.

use super::flows::{flow_vlan, set, to_set};
use super::scenarios::with_rif;
use super::*;
use raw::*;

const NH: u8 = TND_RT_NEXTHOP;

#[test]
fn a_failed_write_changes_nothing() {
    let mut fw = with_rif();
    let f = &mut fw;
    let fault = |action, pool| Fault {
        action,
        op: Some(TND_OP_CREATE),
        cls: None,
        pool,
        after: 2,
        count: 1,
    };
    f.faults.add(fault(FaultAction::Fail, None)).unwrap();
    assert_eq!(create(f, TND_CLS_NEXTHOP, &nexthop(1, 1)), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_NEXTHOP, &nexthop(2, 1)), TND_ST_FAULT);
    assert_eq!(create(f, TND_CLS_NEXTHOP, &nexthop(2, 1)), TND_ST_OK);
    f.faults.clear();
    // "fail a table" says that it is full
    f.faults
        .add(fault(FaultAction::Fail, Some(PoolId::Lpm4 as u16)))
        .unwrap();
    assert_eq!(create(f, TND_CLS_ROUTE, &route6(0, 0, 0, None)), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_ROUTE, &route4(0, 0, 0, None)), TND_ST_OK);
    let cpl = op(
        f,
        TND_OP_CREATE,
        TND_CLS_ROUTE,
        &route4(0, 1 << 31, 1, None),
    );
    assert_eq!((cpl.status, cpl.table), (TND_ST_TABLE_FULL, 1));
    assert_eq!(f.check_accounting(), Ok(()));
}

#[test]
fn a_flipped_entry_shows_in_dumps_and_goes_with_the_next_write() {
    let mut fw = with_rif();
    let f = &mut fw;
    assert_eq!(create(f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_NEXTHOP, &nexthop(1, 1)), TND_ST_OK);
    let r = route4(0, 0, 0, Some((NH, 1)));
    let r6 = route6(0, 0, 0, Some((NH, 1)));
    assert_eq!(create(f, TND_CLS_ROUTE, &r), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_ROUTE, &r6), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_NEIGH, &neigh4(1, 9)), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_FDB, &fdb(1, 9, 1)), TND_ST_OK);
    for t in [
        FlipTable::Route4,
        FlipTable::Route6,
        FlipTable::Neigh,
        FlipTable::Fdb,
        FlipTable::Nexthop,
    ] {
        f.flip(t, 0).unwrap();
        assert!(f.flip(t, 9).unwrap_err().starts_with("no entry 9 in "));
    }
    f.flip(FlipTable::Route4, 0).unwrap();
    assert!(
        dump::<tnd_route>(f, TND_OP_DUMP, TND_CLS_ROUTE, 4096)
            .iter()
            .all(|x| x.action != TND_ACT_FORWARD)
    );
    assert_ne!(
        dump::<tnd_neigh>(f, TND_OP_DUMP, TND_CLS_NEIGH, 4096)[0].mac,
        neigh4(1, 9).mac
    );
    assert_eq!(
        dump::<tnd_fdb>(f, TND_OP_DUMP, TND_CLS_FDB, 4096)[0].action,
        TND_ACT_DROP
    );
    assert_ne!(
        dump::<tnd_nexthop>(f, TND_OP_DUMP, TND_CLS_NEXTHOP, 4096)[0].mac,
        nexthop(1, 1).mac
    );
    // once more, each: what was there before the first flip is what comes back
    for t in [FlipTable::Neigh, FlipTable::Fdb, FlipTable::Nexthop] {
        f.flip(t, 0).unwrap();
    }
    // writing the same again repairs, and references are what they were
    assert_eq!(create(f, TND_CLS_ROUTE, &r), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_ROUTE, &r6), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_NEIGH, &neigh4(1, 9)), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_FDB, &fdb(1, 9, 1)), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_NEXTHOP, &nexthop(1, 1)), TND_ST_OK);
    assert_eq!(
        dump::<tnd_neigh>(f, TND_OP_DUMP, TND_CLS_NEIGH, 4096)[0].mac,
        neigh4(1, 9).mac
    );
    assert_eq!(
        dump::<tnd_fdb>(f, TND_OP_DUMP, TND_CLS_FDB, 4096)[0].action,
        TND_ACT_FORWARD
    );
    assert_eq!(
        dump::<tnd_nexthop>(f, TND_OP_DUMP, TND_CLS_NEXTHOP, 4096)[0].mac,
        nexthop(1, 1).mac
    );
    assert_eq!(
        op(f, TND_OP_DELETE, TND_CLS_NEXTHOP, &nexthop(1, 1)).status,
        TND_ST_IN_USE
    );
    assert_eq!(op(f, TND_OP_DELETE, TND_CLS_ROUTE, &r).status, TND_ST_OK);
    assert_eq!(op(f, TND_OP_DELETE, TND_CLS_ROUTE, &r6).status, TND_ST_OK);
    assert_eq!(
        op(f, TND_OP_DELETE, TND_CLS_NEXTHOP, &nexthop(1, 1)).status,
        TND_ST_OK
    );
    assert_eq!(f.check_accounting(), Ok(()));
}

/// What a flip hides is given back as well: a sweep frees what entries refer to, and so its targets go with them.
#[test]
fn a_flipped_entry_goes_with_its_references() {
    let mut fw = with_rif();
    let f = &mut fw;
    create(f, TND_CLS_VLAN, &flow_vlan(TND_FLOWS_FID));
    create(f, TND_CLS_PORT_SET, &set(7, [0; TND_PORT_SET_BYTES]));
    assert_eq!(create(f, TND_CLS_FDB, &to_set(1, 7)), TND_ST_OK);
    for (id, r) in [
        (1, route4(0, 0, 0, Some((NH, 1)))),
        (2, route6(0, 0, 0, Some((NH, 2)))),
    ] {
        assert_eq!(create(f, TND_CLS_NEXTHOP, &nexthop(id, 1)), TND_ST_OK);
        assert_eq!(create(f, TND_CLS_ROUTE, &r), TND_ST_OK);
    }
    // each once, and one twice
    for t in [
        FlipTable::Fdb,
        FlipTable::Route4,
        FlipTable::Route6,
        FlipTable::Route6,
    ] {
        f.flip(t, 0).unwrap();
    }
    f.attach(true);
    run(f, &cmd(TND_OP_BEGIN_RESYNC, 0), &[]);
    let (c, _) = run(f, &cmd(TND_OP_END_RESYNC, 0), &[]);
    assert_eq!(c.status, TND_ST_OK);
    for id in [
        PoolId::Mdb,
        PoolId::Nexthop,
        PoolId::Rif,
        PoolId::ExactMatch,
    ] {
        assert_eq!(pool(f, id).used, 0, "{}", id.name());
    }
    assert_eq!(f.check_accounting(), Ok(()));
}
