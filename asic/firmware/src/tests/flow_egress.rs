//! Lists for the form in which frames of flow ports leave a port: which chips have them, what their rows can ask for and write.

use super::acl::{bind, rule, table};
use super::*;
use crate::Profile;
use crate::pools::PoolId;
use raw::*;

const EGRESS: u16 = TND_ACL_FLOW_EGRESS;

fn form(priority: u32) -> tnd_acl_entry {
    tnd_acl_entry {
        flags: TND_ACL_SET_VID,
        vid: 20,
        ..rule(2, priority, TND_ACL_PERMIT)
    }
}

#[test]
fn which_chips_have_forms() {
    for name in Profile::names() {
        let mut fw = chip(name);
        let f = &mut fw;
        let has = f.profile().features() & TND_FEAT_FLOW_EGRESS != 0;
        assert_eq!(has, name == "nxp-t1040", "{name}");
        let want = if has { TND_ST_OK } else { TND_ST_UNSUPPORTED };
        let got = create(f, TND_CLS_ACL_TABLE, &table(2, EGRESS));
        assert_eq!(got, want, "{name}");
        if has {
            assert_eq!(create(f, TND_CLS_ACL_BIND, &bind(1, EGRESS, 2, 0)), 0);
            create(f, TND_CLS_ACL_TABLE, &table(1, TND_ACL_EGRESS));
            let other = bind(1, EGRESS, 1, 0);
            assert_eq!(create(f, TND_CLS_ACL_BIND, &other), TND_ST_INVALID);
            let all = dump::<tnd_acl_bind>(f, TND_OP_DUMP, TND_CLS_ACL_BIND, 250);
            assert_eq!(all, [bind(1, EGRESS, 2, 0)]);
        }
        assert_eq!(f.check_accounting(), Ok(()));
    }
}

#[test]
fn rows_for_forms() {
    let mut fw = chip("nxp-t1040");
    let f = &mut fw;
    create(f, TND_CLS_ACL_TABLE, &table(2, EGRESS));
    let counter = tnd_acl_counter {
        struct_size: size::<tnd_acl_counter>(),
        counter: 1,
        ..Default::default()
    };
    create(f, TND_CLS_ACL_COUNTER, &counter);
    type Ask = fn(&mut tnd_acl_entry);
    let asks: [(Ask, u16); 27] = [
        (|_| {}, TND_ST_OK),
        (|e| e.mask.port = 0xffff, TND_ST_OK),
        (|e| (e.key.tci, e.mask.tci) = (4064, 0x0fe0), TND_ST_OK),
        (|e| e.mask.tci = 0xefff, TND_ST_OK),
        (|e| e.mask.tci = 0xffff, TND_ST_UNSUPPORTED),
        (|e| e.mask.tag = 0xff, TND_ST_OK),
        (
            |e| (e.key.tag, e.mask.tag) = (TND_ACL_TAG_8021Q, 0xff),
            TND_ST_UNSUPPORTED,
        ),
        (|e| e.mask.tag = 1, TND_ST_UNSUPPORTED),
        // A group or none, broadcast, and no other address
        (|e| e.mask.dst_mac[0] = 1, TND_ST_OK),
        (
            |e| (e.key.dst_mac, e.mask.dst_mac) = ([0xff; 6], [0xff; 6]),
            TND_ST_OK,
        ),
        (|e| e.mask.dst_mac = [0xff; 6], TND_ST_UNSUPPORTED),
        (|e| e.mask.src_mac = [0xff; 6], TND_ST_UNSUPPORTED),
        (
            |e| (e.key.ethertype, e.mask.ethertype) = (0x0800, 0xffff),
            TND_ST_UNSUPPORTED,
        ),
        (|e| e.mask.group = 0xff, TND_ST_UNSUPPORTED),
        // What they write
        (|e| e.vid = TND_ACL_VID_NONE, TND_ST_OK),
        (|e| e.vid = 0, TND_ST_INVALID),
        (|e| e.vid = 4096, TND_ST_INVALID),
        (|e| (e.flags, e.pcp) = (TND_ACL_SET_PCP, 7), TND_ST_OK),
        (|e| (e.flags, e.pcp) = (TND_ACL_SET_PCP, 8), TND_ST_INVALID),
        (|e| (e.flags, e.vid) = (0, 0), TND_ST_OK),
        (
            |e| (e.flags, e.dscp) = (TND_ACL_SET_DSCP, 9),
            TND_ST_UNSUPPORTED,
        ),
        (|e| e.group = 1, TND_ST_UNSUPPORTED),
        // And do nothing else
        (|e| e.action = TND_ACL_TRAP, TND_ST_OK),
        (|e| e.action = TND_ACL_DROP, TND_ST_UNSUPPORTED),
        (
            |e| (e.action, e.target) = (TND_ACL_REDIRECT_PORT, 1),
            TND_ST_UNSUPPORTED,
        ),
        (
            |e| (e.action, e.ports[0]) = (TND_ACL_REDIRECT_PORTS, 4),
            TND_ST_UNSUPPORTED,
        ),
        (|e| e.counter = 1, TND_ST_UNSUPPORTED),
    ];
    for (n, (ask, want)) in asks.into_iter().enumerate() {
        let mut e = form(n as u32);
        ask(&mut e);
        let before = pool(f, PoolId::Tcam3).used;
        assert_eq!(create(f, TND_CLS_ACL_ENTRY, &e), want, "row {n}");
        let lines = u32::from(want == TND_ST_OK);
        assert_eq!(pool(f, PoolId::Tcam3).used, before + lines, "row {n}");
    }
    assert_eq!(f.check_accounting(), Ok(()));
    // One that can't do what it should traps, and writes nothing
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &form(100)), 0);
    let status = op(f, TND_OP_SET_TRAP, TND_CLS_ACL_ENTRY, &form(100)).status;
    assert_eq!(status, 0);
    let all = dump::<tnd_acl_entry>(f, TND_OP_DUMP, TND_CLS_ACL_ENTRY, 250);
    assert_eq!(all.last(), Some(&rule(2, 100, TND_ACL_TRAP)));
}

/// As many as there are lines, and what a resync does not confirm goes.
#[test]
fn how_many_there_are() {
    let mut fw = chip("nxp-t1040");
    let f = &mut fw;
    create(f, TND_CLS_ACL_TABLE, &table(2, EGRESS));
    let size = pool(f, PoolId::Tcam3).size;
    assert_eq!(size, 1024);
    for n in 0..size {
        assert_eq!(create(f, TND_CLS_ACL_ENTRY, &form(n)), TND_ST_OK);
    }
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &form(size)), TND_ST_TABLE_FULL);
    assert_eq!(f.check_accounting(), Ok(()));
    run(f, &cmd(TND_OP_BEGIN_RESYNC, 0), &[]);
    assert_eq!(create(f, TND_CLS_ACL_TABLE, &table(2, EGRESS)), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &form(7)), TND_ST_OK);
    let (c, _) = run(f, &cmd(TND_OP_END_RESYNC, 0), &[]);
    assert_eq!(c.status, TND_ST_OK);
    assert_eq!(pool(f, PoolId::Tcam3).used, 1);
    let all = dump::<tnd_acl_entry>(f, TND_OP_DUMP, TND_CLS_ACL_ENTRY, 250);
    assert_eq!(all, [form(7)]);
}
