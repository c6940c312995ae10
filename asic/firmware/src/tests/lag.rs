//! Link aggregation groups as a driver sees them.

use super::acl::{rule, table};
use super::flows::set;
use super::*;
use raw::*;

fn lag(id: u16, members: &[(u16, u16)]) -> Vec<u8> {
    let head = tnd_lag {
        struct_size: size::<tnd_lag>(),
        lag: id,
        count: members.len() as u16,
        hash: TND_LAG_HASH_L4,
    };
    let mut out = head.as_bytes().to_vec();
    for (port, flags) in members {
        let m = tnd_lag_member {
            port: *port,
            flags: *flags,
        };
        out.extend(m.as_bytes());
    }
    out
}

fn act(f: &mut Firmware, o: u16, body: &[u8]) -> tnd_cpl {
    run(f, &cmd(o, TND_CLS_LAG), body).0
}

#[test]
fn a_group_is_a_port() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    let on = TND_LAG_ACTIVE;
    // before there is one, its port is none: tiny has 8 ports
    create(f, TND_CLS_VLAN, &vlan(1));
    assert_eq!(create(f, TND_CLS_FDB, &fdb(1, 1, 9)), TND_ST_INVALID);
    assert_eq!(
        create(f, TND_CLS_VLAN_MEMBER, &member(1, 9, TND_VID_ANY)),
        TND_ST_INVALID
    );
    let c = act(f, TND_OP_CREATE, &lag(1, &[(2, on), (1, on)]));
    assert_eq!((c.status, deltas(&c).len()), (0, 2));
    assert_eq!(
        act(f, TND_OP_CREATE, &lag(1, &[(1, on), (2, on)])).status,
        0,
        "equal"
    );
    assert_eq!(
        create(f, TND_CLS_VLAN_MEMBER, &member(1, 9, TND_VID_ANY)),
        0
    );
    assert_eq!(create(f, TND_CLS_FDB, &fdb(1, 1, 9)), 0);
    assert_eq!(create(f, TND_CLS_RIF, &rif(1, 0, 9)), 0);
    let on_vlan = tnd_rif {
        kind: TND_RIF_PORT_VLAN,
        vid: 10,
        ..rif(2, 0, 9)
    };
    assert_eq!(create(f, TND_CLS_RIF, &on_vlan), 0);
    assert_eq!(dump::<tnd_port>(f, TND_OP_DUMP, TND_CLS_PORT, 999).len(), 9);
    // what stands on its port keeps it
    let gone = |f: &mut Firmware| act(f, TND_OP_DELETE, &lag(1, &[])).status;
    for (cls, body) in [
        (TND_CLS_RIF, rif(1, 0, 9).as_bytes().to_vec()),
        (TND_CLS_FDB, fdb(1, 1, 9).as_bytes().to_vec()),
        (
            TND_CLS_VLAN_MEMBER,
            member(1, 9, TND_VID_ANY).as_bytes().to_vec(),
        ),
        (TND_CLS_RIF, on_vlan.as_bytes().to_vec()),
    ] {
        assert_eq!(gone(f), TND_ST_IN_USE);
        assert_eq!(run(f, &cmd(TND_OP_DELETE, cls), &body).0.status, 0);
    }
    assert_eq!(gone(f), 0);
    assert_eq!(
        (pool(f, PoolId::Lag).used, pool(f, PoolId::LagMember).used),
        (0, 0)
    );
    assert_eq!(dump::<tnd_port>(f, TND_OP_DUMP, TND_CLS_PORT, 999).len(), 8);
}

/// Sets of ports and rules that send to a group's port keep the group, in every way that they come to name it.
#[test]
fn who_sends_to_a_group_keeps_it() {
    let mut fw = chip("nxp-t1040");
    let f = &mut fw;
    let both = |lag: u16| {
        let mut ports = [0; TND_PORT_SET_BYTES];
        (ports[0], ports[1]) = (2, 1 << lag);
        ports
    };
    let gone = |f: &mut Firmware, id| act(f, TND_OP_DELETE, &lag(id, &[])).status;
    let made = |f: &mut Firmware, id| assert_eq!(act(f, TND_OP_CREATE, &lag(id, &[])).status, 0);
    let to = |lag| set(7, both(lag));
    assert_eq!(create(f, TND_CLS_PORT_SET, &to(1)), TND_ST_INVALID);
    made(f, 1);
    made(f, 2);
    assert_eq!(create(f, TND_CLS_PORT_SET, &to(1)), 0);
    assert_eq!(gone(f, 1), TND_ST_IN_USE);
    assert_eq!(op(f, TND_OP_UPDATE, TND_CLS_PORT_SET, &to(2)).status, 0);
    assert_eq!(gone(f, 2), TND_ST_IN_USE);
    assert_eq!(gone(f, 1), 0);
    op(f, TND_OP_DELETE, TND_CLS_PORT_SET, &to(2));
    assert_eq!(gone(f, 2), 0);
    // rules
    create(f, TND_CLS_ACL_TABLE, &table(1, TND_ACL_FLOW));
    made(f, 1);
    made(f, 2);
    let one = tnd_acl_entry {
        target: 9,
        ..rule(1, 1, TND_ACL_REDIRECT_PORT)
    };
    let several = tnd_acl_entry {
        ports: both(2),
        ..rule(1, 1, TND_ACL_REDIRECT_PORTS)
    };
    let cls = TND_CLS_ACL_ENTRY;
    assert_eq!(create(f, cls, &one), 0);
    assert_eq!(gone(f, 1), TND_ST_IN_USE);
    assert_eq!(op(f, TND_OP_UPDATE, cls, &several).status, 0);
    assert_eq!(gone(f, 2), TND_ST_IN_USE);
    assert_eq!(gone(f, 1), 0);
    op(f, TND_OP_SET_TRAP, cls, &several);
    assert_eq!(gone(f, 2), 0);
    // a sweep takes who sends first
    made(f, 1);
    create(f, TND_CLS_PORT_SET, &to(1));
    op(f, TND_OP_UPDATE, cls, &one);
    f.attach(true);
    run(f, &cmd(TND_OP_BEGIN_RESYNC, 0), &[]);
    let (c, _) = run(f, &cmd(TND_OP_END_RESYNC, 0), &[]);
    assert_eq!((c.status, c.result), (0, 4), "rule, list, set, group");
    assert_eq!(f.check_accounting(), Ok(()));
}

#[test]
fn limits_are_said() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    assert_eq!(act(f, TND_OP_CREATE, &lag(0, &[])).status, TND_ST_INVALID);
    assert_eq!(
        act(f, TND_OP_CREATE, &lag(1, &[(9, 0)])).status,
        TND_ST_INVALID
    );
    assert_eq!(
        act(f, TND_OP_CREATE, &lag(1, &[(1, 0), (1, 0)])).status,
        TND_ST_INVALID
    );
    assert_eq!(
        act(f, TND_OP_CREATE, &lag(1, &[(1, 0), (2, 0), (3, 0)])).status,
        0
    );
    assert_eq!(
        act(f, TND_OP_CREATE, &lag(2, &[(3, 0)])).status,
        TND_ST_IN_USE,
        "a port is in one group"
    );
    assert_eq!(
        act(f, TND_OP_CREATE, &lag(2, &[(3, 0), (4, 0)])).status,
        TND_ST_IN_USE,
        "whoever comes with it"
    );
    // four members in all: the second group's do not fit, and nothing of it is there
    let c = act(f, TND_OP_CREATE, &lag(2, &[(4, 0), (5, 0)]));
    assert_eq!(
        (c.status, c.table),
        (TND_ST_TABLE_FULL, PoolId::LagMember as u16)
    );
    assert_eq!((c.needed, c.free, c.size), (2, 1, 4));
    assert_eq!(pool(f, PoolId::Lag).used, 1);
    assert_eq!(act(f, TND_OP_UPDATE, &lag(1, &[(1, 0)])).status, 0);
    assert_eq!(act(f, TND_OP_CREATE, &lag(2, &[(2, 0), (3, 0)])).status, 0);
    let c = act(f, TND_OP_CREATE, &lag(3, &[]));
    assert_eq!((c.status, c.table), (TND_ST_TABLE_FULL, PoolId::Lag as u16));
    // a driver that attaches warm and names one of them
    f.attach(true);
    run(f, &cmd(TND_OP_BEGIN_RESYNC, 0), &[]);
    act(f, TND_OP_CREATE, &lag(2, &[(2, 0), (3, 0)]));
    let (c, _) = run(f, &cmd(TND_OP_END_RESYNC, 0), &[]);
    assert_eq!((c.status, c.result), (0, 1));
    assert_eq!(pool(f, PoolId::LagMember).used, 2);
}
