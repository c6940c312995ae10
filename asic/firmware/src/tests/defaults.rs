//! What the firmware makes of fields at their limits, and of those that are left out.

use super::*;
use raw::*;

fn trap(id: u32, rif: u16, reason: u16) -> tnd_nexthop {
    tnd_nexthop {
        action: TND_ACT_TRAP,
        reason: reason as u8,
        ..nexthop(id, rif)
    }
}

/// A next hop that traps may stand for a way out that the chip has not, and holds none that it has.
#[test]
fn a_next_hop_that_traps_holds_no_interface() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    assert_eq!(create(f, TND_CLS_NEXTHOP, &trap(1, 9, 0)), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_RIF, &rif(1, 0, 1)), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_NEXTHOP, &trap(2, 1, 0)), TND_ST_OK);
    let gone = op(f, TND_OP_DELETE, TND_CLS_RIF, &rif(1, 0, 1));
    assert_eq!(gone.status, TND_ST_OK);
}

#[test]
fn a_next_hops_reason_is_one_that_there_is() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    let last = TND_TRAP_REASON_COUNT - 1;
    assert_eq!(create(f, TND_CLS_NEXTHOP, &trap(1, 1, last)), TND_ST_OK);
    let beyond = trap(2, 1, last + 1);
    assert_eq!(create(f, TND_CLS_NEXTHOP, &beyond), TND_ST_INVALID);
}

#[test]
fn a_route_that_traps_says_why() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    let route = route4(0, 0x0a00_0000, 8, None);
    assert_eq!(create(f, TND_CLS_ROUTE, &route), TND_ST_OK);
    let (_, out) = run(f, &cmd(TND_OP_QUERY, TND_CLS_ROUTE), route.as_bytes());
    let found = tnd_route::read_from_bytes(&out).unwrap();
    assert_eq!(u16::from(found.reason), TND_TRAP_ROUTE);
}

#[test]
fn a_place_has_one_interface() {
    for (first, second) in [(1, 2), (2, 1)] {
        let mut fw = chip("tiny");
        let f = &mut fw;
        assert_eq!(create(f, TND_CLS_RIF, &rif(first, 0, 1)), TND_ST_OK);
        assert_eq!(create(f, TND_CLS_RIF, &rif(second, 0, 1)), TND_ST_EXISTS);
    }
}

#[test]
fn a_neighbour_is_its_interfaces() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    assert_eq!(create(f, TND_CLS_RIF, &rif(1, 0, 1)), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_RIF, &rif(2, 0, 2)), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_NEIGH, &neigh4(1, 9)), TND_ST_OK);
    let delete = |f: &mut Firmware, rif| op(f, TND_OP_DELETE, TND_CLS_NEIGH, &neigh4(rif, 9));
    assert_eq!(delete(f, 2).status, TND_ST_NOENT);
    assert_eq!(delete(f, 1).status, TND_ST_OK);
}

#[test]
fn an_entry_that_the_driver_changes_is_young() {
    let mut fw = chip("tiny");
    assert_eq!(create(&mut fw, TND_CLS_VLAN, &vlan(9)), TND_ST_OK);
    let mut stamp = |op, port, now| {
        let body = fdb(9, 1, port);
        let done = fw.execute(&cmd(op, TND_CLS_FDB), body.as_bytes(), &mut Vec::new(), now);
        assert_eq!(done.status, TND_ST_OK);
        fw.state.exact.next(0).unwrap().1.stamp_ns
    };
    assert_eq!(stamp(TND_OP_CREATE, 1, 100), 100);
    assert_eq!(stamp(TND_OP_UPDATE, 2, 900), 900);
    for op in [TND_OP_UPDATE, TND_OP_CREATE] {
        assert_eq!(stamp(op, 2, 950), 900, "the same once more");
    }
}
