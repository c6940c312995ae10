//! Lists of rules as a driver sees them: references, slots, replacement in one step, resync.

use super::*;
use proptest::prelude::*;
use raw::*;

pub(super) fn table(id: u32, stage: u16) -> tnd_acl_table {
    tnd_acl_table {
        struct_size: size::<tnd_acl_table>(),
        stage,
        table: id,
    }
}

pub(super) fn bind(port: u16, stage: u16, table: u32, flags: u16) -> tnd_acl_bind {
    tnd_acl_bind {
        struct_size: size::<tnd_acl_bind>(),
        port,
        stage,
        flags,
        table,
        reserved0: 0,
    }
}

pub(super) fn rule(table: u32, priority: u32, action: u16) -> tnd_acl_entry {
    tnd_acl_entry {
        struct_size: size::<tnd_acl_entry>(),
        action,
        table,
        priority,
        ..Default::default()
    }
}

fn ip(mut e: tnd_acl_entry, ethertype: u16, n: u8) -> tnd_acl_entry {
    (e.key.ethertype, e.mask.ethertype) = (ethertype, u16::MAX);
    (e.key.dst_ip[3], e.mask.dst_ip[3]) = (n, 0xff);
    e
}

fn ranged(e: tnd_acl_entry, low: u16, high: u16) -> tnd_acl_entry {
    tnd_acl_entry {
        dst_port_min: low,
        dst_port_max: high,
        ..ip(e, 0x0800, 1)
    }
}

/// A rule about packets that have destination ports.
fn named(e: tnd_acl_entry, src: u32, dst: u32) -> tnd_acl_entry {
    tnd_acl_entry {
        src_range: src,
        dst_range: dst,
        ..ip(e, 0x0800, 1)
    }
}

fn range(id: u32, field: u16, min: u16, max: u16) -> tnd_acl_range {
    tnd_acl_range {
        struct_size: size::<tnd_acl_range>(),
        field,
        range: id,
        min,
        max,
        reserved0: 0,
    }
}

fn counter(id: u32) -> tnd_acl_counter {
    tnd_acl_counter {
        struct_size: size::<tnd_acl_counter>(),
        counter: id,
        ..Default::default()
    }
}

fn policer(id: u32) -> tnd_policer {
    tnd_policer {
        struct_size: size::<tnd_policer>(),
        policer: id,
        rate: 1000,
        burst: 1000,
        ..Default::default()
    }
}

fn mirror(id: u16, port: u16) -> tnd_mirror {
    tnd_mirror {
        struct_size: size::<tnd_mirror>(),
        mirror: id,
        port,
        ..Default::default()
    }
}

fn status<T: IntoBytes + zerocopy::Immutable>(fw: &mut Firmware, o: u16, cls: u16, b: &T) -> u16 {
    op(fw, o, cls, b).status
}

#[test]
fn references_keep_their_targets() {
    let mut f = chip("tiny");
    let f = &mut f;
    let e = tnd_acl_entry {
        counter: 1,
        policer: 1,
        mirror: 1,
        ..rule(5, 1, TND_ACL_DROP)
    };
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &e), TND_ST_DEPEND);
    assert_eq!(create(f, TND_CLS_ACL_TABLE, &table(5, TND_ACL_PORT)), 0);
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &e), TND_ST_DEPEND);
    assert_eq!(create(f, TND_CLS_ACL_COUNTER, &counter(1)), 0);
    assert_eq!(create(f, TND_CLS_POLICER, &policer(1)), 0);
    assert_eq!(create(f, TND_CLS_MIRROR, &mirror(1, 2)), 0);
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &e), 0);
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &e), 0, "an equal rule");
    assert_eq!(create(f, TND_CLS_ACL_BIND, &bind(1, TND_ACL_PORT, 5, 0)), 0);
    // another stage than the list's, a list that is not there
    assert_eq!(
        create(f, TND_CLS_ACL_BIND, &bind(1, TND_ACL_EGRESS, 5, 0)),
        TND_ST_INVALID
    );
    assert_eq!(
        create(f, TND_CLS_ACL_BIND, &bind(1, TND_ACL_PORT, 6, 0)),
        TND_ST_DEPEND
    );
    for (cls, s) in [
        (
            TND_CLS_ACL_TABLE,
            status(f, TND_OP_DELETE, TND_CLS_ACL_TABLE, &table(5, 1)),
        ),
        (
            TND_CLS_ACL_COUNTER,
            status(f, TND_OP_DELETE, TND_CLS_ACL_COUNTER, &counter(1)),
        ),
        (
            TND_CLS_POLICER,
            status(f, TND_OP_DELETE, TND_CLS_POLICER, &policer(1)),
        ),
        (
            TND_CLS_MIRROR,
            status(f, TND_OP_DELETE, TND_CLS_MIRROR, &mirror(1, 2)),
        ),
    ] {
        assert_eq!(s, TND_ST_IN_USE, "class {cls}");
    }
    // a rule that does less frees what it named
    let plain = rule(5, 1, TND_ACL_TRAP);
    assert_eq!(status(f, TND_OP_UPDATE, TND_CLS_ACL_ENTRY, &plain), 0);
    assert_eq!(
        status(f, TND_OP_DELETE, TND_CLS_ACL_COUNTER, &counter(1)),
        0
    );
    assert_eq!(status(f, TND_OP_DELETE, TND_CLS_ACL_ENTRY, &plain), 0);
    assert_eq!(
        status(f, TND_OP_DELETE, TND_CLS_ACL_TABLE, &table(5, 1)),
        TND_ST_IN_USE,
        "still bound"
    );
    assert_eq!(
        status(f, TND_OP_DELETE, TND_CLS_ACL_BIND, &bind(1, 1, 0, 0)),
        0
    );
    assert_eq!(status(f, TND_OP_DELETE, TND_CLS_ACL_TABLE, &table(5, 1)), 0);
}

#[test]
fn a_redirect_keeps_its_next_hop() {
    let mut f = chip("tiny");
    let f = &mut f;
    let e = tnd_acl_entry {
        target: 1,
        ..rule(5, 1, TND_ACL_REDIRECT_NEXTHOP)
    };
    assert_eq!(create(f, TND_CLS_ACL_TABLE, &table(5, TND_ACL_PORT)), 0);
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &e), TND_ST_DEPEND);
    assert_eq!(create(f, TND_CLS_RIF, &rif(1, 0, 1)), 0);
    for id in [1, 2] {
        assert_eq!(create(f, TND_CLS_NEXTHOP, &nexthop(id, 1)), 0);
    }
    let gone = |f: &mut Firmware, id| {
        let body = nexthop(id, 1);
        status(f, TND_OP_DELETE, TND_CLS_NEXTHOP, &body)
    };
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &e), 0);
    assert_eq!(gone(f, 1), TND_ST_IN_USE);
    // another one, and none any more
    let other = tnd_acl_entry { target: 2, ..e };
    assert_eq!(status(f, TND_OP_UPDATE, TND_CLS_ACL_ENTRY, &other), 0);
    assert_eq!((gone(f, 1), gone(f, 2)), (0, TND_ST_IN_USE));
    assert_eq!(status(f, TND_OP_DELETE, TND_CLS_ACL_ENTRY, &other), 0);
    assert_eq!(gone(f, 2), 0);
}

#[test]
fn a_full_tcam_says_so_and_the_port_can_still_trap() {
    let mut f = chip("tiny");
    let f = &mut f;
    create(f, TND_CLS_ACL_TABLE, &table(1, TND_ACL_PORT));
    create(f, TND_CLS_ACL_BIND, &bind(1, TND_ACL_PORT, 1, 0));
    for n in 0..32 {
        assert_eq!(
            create(f, TND_CLS_ACL_ENTRY, &ip(rule(1, n, 0), 0x0800, n as u8)),
            0
        );
    }
    let c = op(
        f,
        TND_OP_CREATE,
        TND_CLS_ACL_ENTRY,
        &ip(rule(1, 99, 0), 0x86dd, 1),
    );
    assert_eq!(c.status, TND_ST_TABLE_FULL);
    assert_eq!(
        (c.table, c.needed, c.free, c.size),
        (PoolId::Tcam as u16, 2, 0, 32)
    );
    let c = op(
        f,
        TND_OP_SET_TRAP,
        TND_CLS_ACL_BIND,
        &bind(1, TND_ACL_PORT, 0, 0),
    );
    assert_eq!((c.status, c.delta_count), (0, 0));
    let all = dump::<tnd_acl_bind>(f, TND_OP_DUMP, TND_CLS_ACL_BIND, 1 << 12);
    assert_eq!(all, [bind(1, TND_ACL_PORT, 1, TND_ACL_BIND_TRAP_ALL)]);
    // a port without any list can be turned as well
    assert_eq!(
        status(
            f,
            TND_OP_SET_TRAP,
            TND_CLS_ACL_BIND,
            &bind(2, TND_ACL_EGRESS, 0, 0)
        ),
        0
    );
    // widening a rule in place needs room: the old one stays
    let wide = ip(rule(1, 3, TND_ACL_DROP), 0x86dd, 3);
    assert_eq!(
        status(f, TND_OP_UPDATE, TND_CLS_ACL_ENTRY, &wide),
        TND_ST_TABLE_FULL
    );
    let (_, out) = run(f, &cmd(TND_OP_QUERY, TND_CLS_ACL_ENTRY), wide.as_bytes());
    let there = tnd_acl_entry::read_from_bytes(&out).unwrap();
    assert_eq!((there.key.ethertype, there.action), (0x0800, 0));
    assert_eq!(pool(f, PoolId::Tcam).used, 32);
}

#[test]
fn ranges_are_shared_and_undone() {
    let mut f = chip("tiny");
    let f = &mut f;
    create(f, TND_CLS_ACL_TABLE, &table(1, TND_ACL_PORT));
    let e = |p, low, high| ranged(rule(1, p, 0), low, high);
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &e(1, 10, 20)), 0);
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &e(2, 10, 20)), 0);
    assert_eq!(pool(f, PoolId::AclRange).used, 1);
    // both directions at once: the second finds no checker, and the first is given back
    let both = tnd_acl_entry {
        src_port_min: 1,
        src_port_max: 2,
        ..e(3, 3, 4)
    };
    let c = op(f, TND_OP_CREATE, TND_CLS_ACL_ENTRY, &both);
    assert_eq!(
        (c.status, c.table),
        (TND_ST_TABLE_FULL, PoolId::AclRange as u16)
    );
    assert_eq!(
        (pool(f, PoolId::AclRange).used, pool(f, PoolId::Tcam).used),
        (1, 2)
    );
    // one port is a key, all ports are none
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &e(4, 7, 7)), 0);
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &e(5, 0, u16::MAX)), 0);
    assert_eq!(pool(f, PoolId::AclRange).used, 1);
    for p in [1, 2] {
        assert_eq!(status(f, TND_OP_DELETE, TND_CLS_ACL_ENTRY, &e(p, 0, 0)), 0);
    }
    assert_eq!(pool(f, PoolId::AclRange).used, 0);
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &both), 0);
}

/// Ranges that rules name: as many as there are checkers, together with those that rules write out.
#[test]
fn named_ranges_are_objects() {
    const SRC: u16 = TND_ACL_RANGE_SRC;
    const DST: u16 = TND_ACL_RANGE_DST;
    let mut f = chip("tiny");
    let f = &mut f;
    create(f, TND_CLS_ACL_TABLE, &table(1, TND_ACL_PORT));
    for bad in [
        range(0, DST, 1, 2),
        range(1, 0, 1, 2),
        range(1, 3, 1, 2),
        range(1, DST, 2, 2),
        range(1, DST, 3, 2),
    ] {
        assert_eq!(create(f, TND_CLS_ACL_RANGE, &bad), TND_ST_INVALID);
    }
    let rule_of = |p, src, dst| named(rule(1, p, 0), src, dst);
    // before its range there is no rule
    assert_eq!(
        create(f, TND_CLS_ACL_ENTRY, &rule_of(1, 0, 7)),
        TND_ST_DEPEND
    );
    assert_eq!(create(f, TND_CLS_ACL_RANGE, &range(7, DST, 10, 20)), 0);
    assert_eq!(create(f, TND_CLS_ACL_RANGE, &range(7, DST, 10, 20)), 0);
    for p in [1, 2] {
        assert_eq!(create(f, TND_CLS_ACL_ENTRY, &rule_of(p, 0, 7)), 0);
    }
    assert_eq!(pool(f, PoolId::AclRange).used, 1);
    // what rules were written with does not change, nor is it taken away
    let other = range(7, DST, 10, 21);
    for op in [TND_OP_CREATE, TND_OP_UPDATE] {
        assert_eq!(status(f, op, TND_CLS_ACL_RANGE, &other), TND_ST_EXISTS);
    }
    let gone = |f: &mut Firmware| status(f, TND_OP_DELETE, TND_CLS_ACL_RANGE, &range(7, DST, 1, 2));
    assert_eq!(gone(f), TND_ST_IN_USE);
    // a range of the destination is none of the source; and one port has one condition
    for bad in [
        rule_of(3, 7, 0),
        tnd_acl_entry {
            dst_port_min: 1,
            dst_port_max: 2,
            ..rule_of(3, 0, 7)
        },
        tnd_acl_entry {
            dst_range: 7,
            ..rule(1, 3, 0)
        },
    ] {
        assert_eq!(
            create(f, TND_CLS_ACL_ENTRY, &bad),
            TND_ST_INVALID,
            "{bad:?}"
        );
    }
    let mut both = rule_of(3, 0, 7);
    both.mask.dst_port = u16::MAX;
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &both), TND_ST_INVALID);
    // the second checker is a rule's own; the third there is not
    assert_eq!(
        create(f, TND_CLS_ACL_ENTRY, &ranged(rule(1, 4, 0), 30, 40)),
        0
    );
    let c = op(f, TND_OP_CREATE, TND_CLS_ACL_RANGE, &range(8, SRC, 10, 20));
    assert_eq!(
        (c.status, c.table),
        (TND_ST_TABLE_FULL, PoolId::AclRange as u16)
    );
    assert_eq!((c.needed, c.free, c.size), (1, 0, 2));
    for p in [1, 2, 4] {
        assert_eq!(
            status(f, TND_OP_DELETE, TND_CLS_ACL_ENTRY, &rule(1, p, 0)),
            0
        );
    }
    assert_eq!(gone(f), TND_ST_OK);
    assert_eq!(pool(f, PoolId::AclRange).used, 0);
}

/// Drivers of before 1.6 and 1.7 write shorter rules.
#[test]
fn shorter_rules() {
    for before in [176usize, 184] {
        let mut f = chip("tiny");
        let f = &mut f;
        create(f, TND_CLS_ACL_TABLE, &table(1, TND_ACL_PORT));
        let e = tnd_acl_entry {
            struct_size: before as u16,
            ..ranged(rule(1, 1, 0), 5, 9)
        };
        let create = cmd(TND_OP_CREATE, TND_CLS_ACL_ENTRY);
        let (c, _) = run(f, &create, &e.as_bytes()[..before]);
        assert_eq!(c.status, TND_ST_OK);
        let whole = tnd_acl_entry {
            struct_size: size::<tnd_acl_entry>(),
            ..e
        };
        assert_eq!(
            dump::<tnd_acl_entry>(f, TND_OP_DUMP, TND_CLS_ACL_ENTRY, 250),
            [whole]
        );
    }
}

#[test]
fn senseless_rules_are_refused() {
    let mut f = chip("tiny");
    let f = &mut f;
    create(f, TND_CLS_ACL_TABLE, &table(1, TND_ACL_EGRESS));
    let base = rule(1, 1, 0);
    let mut l4 = base;
    l4.mask.dst_port = 1;
    let mut tail = ip(base, 0x0800, 1);
    tail.mask.src_ip[9] = 1;
    let bad = [
        l4,
        tail,
        rule(1, 1, 9),
        ranged(
            tnd_acl_entry {
                src_port_min: 5,
                src_port_max: 4,
                ..base
            },
            1,
            2,
        ),
        tnd_acl_entry {
            flags: TND_ACL_SET_PCP,
            pcp: 8,
            ..base
        },
        tnd_acl_entry {
            flags: TND_ACL_SET_VID,
            vid: 4095,
            ..base
        },
        tnd_acl_entry {
            flags: TND_ACL_TRAP_CLASS,
            trap_class: 9,
            ..rule(1, 1, TND_ACL_TRAP)
        },
        tnd_acl_entry {
            target: 99,
            ..rule(1, 1, TND_ACL_REDIRECT_PORT)
        },
    ];
    for e in bad {
        assert_eq!(create(f, TND_CLS_ACL_ENTRY, &e), TND_ST_INVALID, "{e:?}");
    }
    let moves = tnd_acl_entry {
        target: 1,
        ..rule(1, 1, TND_ACL_REDIRECT_PORT)
    };
    assert_eq!(
        create(f, TND_CLS_ACL_ENTRY, &moves),
        TND_ST_UNSUPPORTED,
        "at egress"
    );
    assert_eq!(
        create(
            f,
            TND_CLS_POLICER,
            &tnd_policer {
                rate: 0,
                ..policer(1)
            }
        ),
        TND_ST_INVALID
    );
    assert_eq!(create(f, TND_CLS_MIRROR, &mirror(1, 99)), TND_ST_INVALID);
    // bits outside of the mask count for nothing: an equal rule
    let mut loose = ip(rule(1, 1, TND_ACL_DROP), 0x0800, 1);
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &loose), 0);
    loose.key.src_mac = [9; 6];
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &loose), 0);
}

#[test]
fn a_lease_holds_room_for_rules() {
    let mut f = chip("tiny");
    let f = &mut f;
    create(f, TND_CLS_ACL_TABLE, &table(1, TND_ACL_PORT));
    let head = tnd_lease {
        struct_size: size::<tnd_lease>(),
        count: 1,
        reserved0: 0,
    };
    let item = tnd_lease_item {
        cls: TND_CLS_ACL_ENTRY,
        family: TND_AF_INET6,
        reserved0: 0,
        count: 1,
    };
    let body = [head.as_bytes(), item.as_bytes()].concat();
    let (c, _) = run(f, &cmd(TND_OP_LEASE, 0), &body);
    assert_eq!(c.status, 0);
    assert_eq!(pool(f, PoolId::Tcam).committed, 2);
    let leased = raw::tnd_cmd {
        flags: TND_CMD_LEASE,
        lease: c.result as u32,
        ..cmd(TND_OP_CREATE, TND_CLS_ACL_ENTRY)
    };
    let (c, _) = run(f, &leased, ip(rule(1, 1, 0), 0x86dd, 1).as_bytes());
    assert_eq!(
        (
            c.status,
            pool(f, PoolId::Tcam).committed,
            pool(f, PoolId::Tcam).used
        ),
        (0, 0, 2)
    );
}

#[test]
fn resync_sweeps_what_was_not_named() {
    let mut f = chip("tiny");
    let f = &mut f;
    for id in [1, 2] {
        create(f, TND_CLS_ACL_TABLE, &table(id, TND_ACL_PORT));
        create(f, TND_CLS_ACL_COUNTER, &counter(id));
        create(f, TND_CLS_ACL_BIND, &bind(id as u16, TND_ACL_PORT, id, 0));
        for p in 0..3 {
            let e = tnd_acl_entry {
                counter: id,
                ..rule(id, p, 0)
            };
            assert_eq!(create(f, TND_CLS_ACL_ENTRY, &e), 0);
        }
    }
    create(f, TND_CLS_POLICER, &policer(9));
    for id in [1, 2] {
        create(f, TND_CLS_ACL_RANGE, &range(id, TND_ACL_RANGE_SRC, 1, 2));
    }
    create(f, TND_CLS_ACL_ENTRY, &named(rule(2, 9, 0), 2, 0));
    f.attach(true);
    run(f, &cmd(TND_OP_BEGIN_RESYNC, 0), &[]);
    create(f, TND_CLS_ACL_TABLE, &table(1, TND_ACL_PORT));
    create(f, TND_CLS_ACL_COUNTER, &counter(1));
    create(f, TND_CLS_ACL_RANGE, &range(1, TND_ACL_RANGE_SRC, 1, 2));
    create(f, TND_CLS_ACL_BIND, &bind(1, TND_ACL_PORT, 1, 0));
    create(
        f,
        TND_CLS_ACL_ENTRY,
        &tnd_acl_entry {
            counter: 1,
            ..rule(1, 1, 0)
        },
    );
    let (c, _) = run(f, &cmd(TND_OP_END_RESYNC, 0), &[]);
    // a binding, six rules, a list, a counter, a policer, a range
    assert_eq!((c.status, c.result), (0, 11));
    assert_eq!(pool(f, PoolId::AclRange).used, 1);
    assert_eq!(
        dump::<tnd_acl_entry>(f, TND_OP_DUMP, TND_CLS_ACL_ENTRY, 250).len(),
        1
    );
    assert_eq!(
        dump::<tnd_acl_bind>(f, TND_OP_DUMP, TND_CLS_ACL_BIND, 200).len(),
        1
    );
    assert_eq!(pool(f, PoolId::Tcam).used, 1);
    assert_eq!(pool(f, PoolId::AclCounter).used, 1);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Rules of all widths come, change and go at random: after each command the accounting holds (`run` checks), the dump is
    /// what was written, in order.
    #[test]
    fn random_rules(ops in prop::collection::vec((0u8..5, 0u32..12, any::<u8>(), any::<u8>()), 1..120)) {
        for profile in ["tiny", "arista-7500e"] {
            let mut fw = chip(profile);
            let f = &mut fw;
            create(f, TND_CLS_ACL_TABLE, &table(1, TND_ACL_PORT));
            create(f, TND_CLS_ACL_COUNTER, &counter(1));
            let named_as = [range(1, TND_ACL_RANGE_SRC, 10, 20), range(2, TND_ACL_RANGE_DST, 10, 20)];
            let mut ranges = std::collections::BTreeSet::new();
            let mut model = std::collections::BTreeMap::new();
            for (o, priority, shape, n) in &ops {
                let id = u32::from(n % 2) + 1;
                if shape % 7 == 6 {
                    // a range comes, or goes
                    let r = &named_as[id as usize - 1];
                    let used = model.values().any(|e: &tnd_acl_entry| e.src_range == id || e.dst_range == id);
                    if *o == 4 {
                        let want = match (ranges.contains(&id), used) {
                            (false, _) => TND_ST_NOENT,
                            (true, true) => TND_ST_IN_USE,
                            (true, false) => TND_ST_OK,
                        };
                        prop_assert_eq!(status(f, TND_OP_DELETE, TND_CLS_ACL_RANGE, r), want);
                        if want == TND_ST_OK { ranges.remove(&id); }
                    } else {
                        let s = create(f, TND_CLS_ACL_RANGE, r);
                        prop_assert!(s == TND_ST_OK || s == TND_ST_TABLE_FULL && !ranges.contains(&id));
                        if s == TND_ST_OK { ranges.insert(id); }
                    }
                    prop_assert_eq!(f.check_accounting(), Ok(()));
                    continue;
                }
                let base = tnd_acl_entry { counter: u32::from(n % 2), ..rule(1, *priority, u16::from(n % 3)) };
                let mut e = match shape % 7 {
                    0 => base,
                    1 => ip(base, 0x0800, *n),
                    2 => ip(base, 0x86dd, *n),
                    3 => ranged(base, 10, 11 + u16::from(n % 4)),
                    5 => named(base, id & 1, id & 2),
                    _ => ip(base, 0x86dd, *n),
                };
                if shape % 7 == 4 {
                    (e.key.src_mac[5], e.mask.src_mac[5]) = (n | 1, 0xff);
                }
                let name = if *o == 4 { TND_OP_DELETE } else if *o % 2 == 0 { TND_OP_CREATE } else { TND_OP_UPDATE };
                let s = status(f, name, TND_CLS_ACL_ENTRY, &e);
                prop_assert_eq!(f.check_accounting(), Ok(()));
                let old = model.get(priority).copied();
                let there = [e.src_range, e.dst_range].into_iter().all(|r| r == 0 || ranges.contains(&r));
                let want = match (name, old) {
                    (TND_OP_CREATE, None) if !there => TND_ST_DEPEND,
                    (TND_OP_UPDATE, Some(_)) if !there => TND_ST_DEPEND,
                    (TND_OP_DELETE | TND_OP_UPDATE, None) => TND_ST_NOENT,
                    (TND_OP_CREATE, Some(o)) if o != e => TND_ST_EXISTS,
                    _ => TND_ST_OK,
                };
                if s == TND_ST_TABLE_FULL {
                    prop_assert!(want == TND_ST_OK && name != TND_OP_DELETE);
                } else {
                    prop_assert_eq!(s, want);
                }
                if s == TND_ST_OK {
                    if name == TND_OP_DELETE { model.remove(priority); } else { model.insert(*priority, e); }
                }
            }
            let all = dump::<tnd_acl_entry>(f, TND_OP_DUMP, TND_CLS_ACL_ENTRY, 400);
            prop_assert_eq!(all, model.values().copied().collect::<Vec<_>>());
            for e in model.values() {
                prop_assert_eq!(status(f, TND_OP_DELETE, TND_CLS_ACL_ENTRY, e), TND_ST_OK);
            }
            for id in &ranges {
                prop_assert_eq!(status(f, TND_OP_DELETE, TND_CLS_ACL_RANGE, &named_as[*id as usize - 1]), TND_ST_OK);
            }
            for id in [PoolId::Tcam, PoolId::AclRange, PoolId::Lpm6] {
                prop_assert_eq!(pool(f, id).used, 0);
            }
        }
    }
}

/// What a CREATE takes is in flight while it lasts: of a rule by its own fields, whatever number its list has.
#[test]
fn the_slots_of_a_rule_are_in_flight() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    let in_flight = |f: &Firmware, id| pool(f, id).in_flight;
    let lines = |f: &mut Firmware, e: &tnd_acl_entry| {
        let held = f.begin(&cmd(TND_OP_CREATE, TND_CLS_ACL_ENTRY), e.as_bytes());
        let there = (in_flight(f, PoolId::Tcam), in_flight(f, PoolId::AclRange));
        f.end(&held);
        there
    };
    for list in [1, 2, 7] {
        assert_eq!(
            create(f, TND_CLS_ACL_TABLE, &table(list, TND_ACL_INGRESS)),
            TND_ST_OK
        );
        let plain = rule(list, 1, TND_ACL_DROP);
        let (l2, none) = lines(f, &plain);
        assert_eq!((l2 > 0, none), (true, 0), "list {list}");
        assert_eq!(lines(f, &ip(plain, 0x86dd, 1)).1, 0);
        assert!(lines(f, &ip(plain, 0x86dd, 1)).0 > l2, "list {list}");
        assert_eq!(lines(f, &ranged(plain, 5, 9)).1, 1, "list {list}");
    }
    let create_lag = cmd(TND_OP_CREATE, TND_CLS_LAG);
    let empty = tnd_lag {
        struct_size: size::<tnd_lag>(),
        lag: 1,
        ..Default::default()
    };
    let held = f.begin(&create_lag, empty.as_bytes());
    assert_eq!(in_flight(f, PoolId::Lag), 1);
    assert_eq!(in_flight(f, PoolId::LagMember), 0);
    f.end(&held);
    assert_eq!(f.check_accounting(), Ok(()));
}
