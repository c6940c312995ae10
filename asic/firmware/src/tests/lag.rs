//! Link aggregation groups as a driver sees them.

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
