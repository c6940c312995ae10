//! Lists that classify frames of flow ports: which chips have them, what their rows can ask for and write.

use super::acl::{bind, rule, table};
use super::*;
use crate::Profile;
use crate::pools::PoolId;
use raw::*;

const CLASS: u16 = TND_ACL_FLOW_CLASS;

fn class(priority: u32) -> tnd_acl_entry {
    tnd_acl_entry {
        group: 7,
        ..rule(2, priority, TND_ACL_PERMIT)
    }
}

#[test]
fn which_chips_classify() {
    for name in Profile::names() {
        let mut fw = chip(name);
        let f = &mut fw;
        let has = f.profile().features() & TND_FEAT_FLOW_CLASS != 0;
        assert_eq!(has, name == "nxp-t1040", "{name}");
        let want = if has { TND_ST_OK } else { TND_ST_UNSUPPORTED };
        assert_eq!(
            create(f, TND_CLS_ACL_TABLE, &table(2, CLASS)),
            want,
            "{name}"
        );
        create(f, TND_CLS_ACL_TABLE, &table(1, TND_ACL_FLOW));
        let mut asks = rule(1, 1, TND_ACL_DROP);
        (asks.key.group, asks.mask.group) = (7, u8::MAX);
        assert_eq!(create(f, TND_CLS_ACL_ENTRY, &asks), want, "{name}");
        if has {
            assert_eq!(create(f, TND_CLS_ACL_BIND, &bind(1, CLASS, 2, 0)), 0);
            assert_eq!(
                create(f, TND_CLS_ACL_BIND, &bind(1, CLASS, 1, 0)),
                TND_ST_INVALID
            );
        }
        assert_eq!(f.check_accounting(), Ok(()));
    }
}

#[test]
fn rows_that_classify() {
    let mut fw = chip("nxp-t1040");
    let f = &mut fw;
    create(f, TND_CLS_ACL_TABLE, &table(2, CLASS));
    type Ask = fn(&mut tnd_acl_entry);
    let ip4: Ask = |e| (e.key.ethertype, e.mask.ethertype) = (0x0800, 0xffff);
    let ip6: Ask = |e| (e.key.ethertype, e.mask.ethertype) = (0x86dd, 0xffff);
    let any: Ask = |_| {};
    let asks: [(Ask, Ask, u16); 22] = [
        (any, any, TND_ST_OK),
        (
            any,
            |e| (e.mask.port, e.mask.tci, e.mask.tag) = (0xffff, 0xffff, 0xff),
            TND_ST_OK,
        ),
        (any, |e| e.mask.dst_mac = [0xff; 6], TND_ST_OK),
        (
            ip4,
            |e| e.mask.src_ip = [0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            TND_ST_OK,
        ),
        (ip4, |e| e.mask.tos = 0xfc, TND_ST_OK),
        (ip4, |e| e.mask.ttl = 0xff, TND_ST_UNSUPPORTED),
        (ip4, |e| e.mask.src_port = 0xffff, TND_ST_UNSUPPORTED),
        (
            ip4,
            |e| (e.key.protocol, e.mask.protocol, e.mask.src_port) = (6, 0xff, 0xffff),
            TND_ST_OK,
        ),
        (ip6, |e| e.mask.tos = 0xfc, TND_ST_OK),
        (ip6, |e| e.mask.src_ip[0] = 0xff, TND_ST_UNSUPPORTED),
        // What they write
        (
            any,
            |e| (e.flags, e.vid) = (TND_ACL_SET_VID, TND_ACL_VID_NONE),
            TND_ST_OK,
        ),
        (
            any,
            |e| (e.flags, e.vid) = (TND_ACL_SET_VID, 0),
            TND_ST_INVALID,
        ),
        (
            any,
            |e| (e.flags, e.vid) = (TND_ACL_SET_VID, 4096),
            TND_ST_INVALID,
        ),
        (
            any,
            |e| (e.flags, e.dscp) = (TND_ACL_SET_DSCP, 63),
            TND_ST_OK,
        ),
        (
            any,
            |e| (e.flags, e.dscp) = (TND_ACL_SET_DSCP, 64),
            TND_ST_INVALID,
        ),
        (
            any,
            |e| (e.flags, e.pcp) = (TND_ACL_SET_PCP, 8),
            TND_ST_INVALID,
        ),
        (any, |e| e.group = 255, TND_ST_OK),
        (any, |e| e.action = TND_ACL_TRAP, TND_ST_OK),
        // And do nothing else
        (any, |e| e.action = TND_ACL_DROP, TND_ST_UNSUPPORTED),
        (
            any,
            |e| (e.action, e.target) = (TND_ACL_REDIRECT_PORT, 1),
            TND_ST_UNSUPPORTED,
        ),
        (any, |e| e.mask.group = 0xff, TND_ST_UNSUPPORTED),
        (any, |e| e.counter = 1, TND_ST_UNSUPPORTED),
    ];
    create(
        f,
        TND_CLS_ACL_COUNTER,
        &tnd_acl_counter {
            struct_size: size::<tnd_acl_counter>(),
            counter: 1,
            ..Default::default()
        },
    );
    for (n, (kind, ask, want)) in asks.into_iter().enumerate() {
        let mut e = class(n as u32);
        kind(&mut e);
        ask(&mut e);
        let before = pool(f, PoolId::Tcam2).used;
        assert_eq!(create(f, TND_CLS_ACL_ENTRY, &e), want, "row {n}");
        let lines = if want == TND_ST_OK { 2 } else { 0 };
        assert_eq!(pool(f, PoolId::Tcam2).used, before + lines, "row {n}");
    }
    assert_eq!(f.check_accounting(), Ok(()));
    // One that can't do what it should traps, and writes nothing
    let e = tnd_acl_entry {
        flags: TND_ACL_SET_DSCP,
        dscp: 9,
        ..class(100)
    };
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &e), 0);
    assert_eq!(op(f, TND_OP_SET_TRAP, TND_CLS_ACL_ENTRY, &e).status, 0);
    let all = dump::<tnd_acl_entry>(f, TND_OP_DUMP, TND_CLS_ACL_ENTRY, 250);
    assert_eq!(all.last(), Some(&rule(2, 100, TND_ACL_TRAP)));
}

/// Rules of other stages have none of it.
#[test]
fn other_stages_do_not_classify() {
    for stage in [TND_ACL_PORT, TND_ACL_INGRESS, TND_ACL_EGRESS, TND_ACL_FLOW] {
        let mut fw = chip("nxp-t1040");
        let f = &mut fw;
        create(f, TND_CLS_ACL_TABLE, &table(1, stage));
        let with = |set: fn(&mut tnd_acl_entry)| {
            let mut e = rule(1, 1, TND_ACL_PERMIT);
            set(&mut e);
            e
        };
        let asks = with(|e| e.mask.group = 0xff);
        let want = if stage == TND_ACL_FLOW {
            TND_ST_OK
        } else {
            TND_ST_UNSUPPORTED
        };
        assert_eq!(create(f, TND_CLS_ACL_ENTRY, &asks), want);
        for (e, want) in [
            (with(|e| e.group = 1), TND_ST_UNSUPPORTED),
            (with(|e| e.flags = TND_ACL_SET_DSCP), TND_ST_UNSUPPORTED),
            (
                with(|e| (e.flags, e.vid) = (TND_ACL_SET_VID, TND_ACL_VID_NONE)),
                TND_ST_INVALID,
            ),
        ] {
            let e = tnd_acl_entry { priority: 2, ..e };
            assert_eq!(create(f, TND_CLS_ACL_ENTRY, &e), want, "stage {stage}");
        }
    }
}
