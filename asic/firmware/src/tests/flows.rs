//! Flow ports as a driver sees them: sets of ports, entries of any address, what a chip's rows can ask for.

use super::acl::{bind, rule, table};
use super::*;
use raw::*;
use tandem_pipeline::entry::FdbValue;
use tandem_pipeline::state::{PortMask, mask_of};
use tandem_tables::exact::Key;

pub(super) fn set(id: u16, ports: PortMask) -> tnd_port_set {
    tnd_port_set {
        struct_size: size::<tnd_port_set>(),
        set: id,
        reserved0: 0,
        ports,
    }
}

fn ports(ports: &[u16]) -> PortMask {
    mask_of(ports.iter().copied())
}

pub(super) fn flow_vlan(fid: u16) -> tnd_vlan {
    tnd_vlan {
        flags: TND_VLAN_FLOWS,
        ..vlan(fid)
    }
}

/// An entry that sends to a set, as the chip tells it.
pub(super) fn to_set(n: u32, set: u16) -> tnd_fdb {
    tnd_fdb {
        set,
        flags: TND_FDB_STATIC,
        ..fdb(TND_FLOWS_FID, n, 0)
    }
}

fn said<T: IntoBytes + zerocopy::Immutable>(
    f: &mut Firmware,
    o: u16,
    cls: u16,
    body: &T,
) -> (u16, Vec<(u16, i32)>) {
    let c = op(f, o, cls, body);
    (c.status, deltas(&c))
}

const MASKS: u16 = PoolId::Mdb as u16;

#[test]
fn sets_of_ports() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    for (why, bad) in [
        ("no number", set(0, ports(&[1]))),
        ("port 0", set(1, ports(&[0, 1]))),
        ("a port that is not there", set(1, ports(&[1, 9]))),
    ] {
        assert_eq!(create(f, TND_CLS_PORT_SET, &bad), TND_ST_INVALID, "{why}");
    }
    let one = set(7, ports(&[1, 8]));
    let cls = TND_CLS_PORT_SET;
    assert_eq!(said(f, TND_OP_UPDATE, cls, &one).0, TND_ST_NOENT);
    assert_eq!(said(f, TND_OP_CREATE, cls, &one), (0, vec![(MASKS, 1)]));
    assert_eq!(said(f, TND_OP_CREATE, cls, &one), (0, vec![]), "equal");
    let other = set(7, ports(&[2]));
    assert_eq!(create(f, cls, &other), TND_ST_EXISTS);
    assert_eq!(said(f, TND_OP_UPDATE, cls, &other), (0, vec![]));
    assert_eq!(create(f, cls, &set(65_535, ports(&[]))), 0, "nobody");
    let all = dump::<tnd_port_set>(f, TND_OP_DUMP, cls, 64);
    assert_eq!(all, [other, set(65_535, ports(&[]))]);
    let (_, out) = run(f, &cmd(TND_OP_QUERY, cls), one.as_bytes());
    assert_eq!(out, other.as_bytes());
    assert_eq!(said(f, TND_OP_SET_TRAP, cls, &one).0, TND_ST_UNSUPPORTED);
    assert_eq!(said(f, TND_OP_DELETE, cls, &one), (0, vec![(MASKS, -1)]));
    assert_eq!(said(f, TND_OP_DELETE, cls, &one).0, TND_ST_NOENT);
    // groups and sets share the masks
    create(f, TND_CLS_VLAN, &vlan(1));
    for n in 1..=3 {
        let c = run(
            f,
            &cmd(TND_OP_CREATE, TND_CLS_MDB),
            &super::mdb::ip4(1, n, &[1]),
        )
        .0;
        assert_eq!(c.status, 0);
    }
    let c = op(f, TND_OP_CREATE, cls, &one);
    assert_eq!((c.status, c.table, c.size), (TND_ST_TABLE_FULL, MASKS, 4));
    assert_eq!(f.check_accounting(), Ok(()));
}

/// An entry may name a set that is there; a set that is named stays.
#[test]
fn entries_keep_their_sets() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    let (cls, sets) = (TND_CLS_FDB, TND_CLS_PORT_SET);
    assert_eq!(create(f, cls, &to_set(1, 7)), TND_ST_DEPEND, "no domain");
    create(f, TND_CLS_VLAN, &flow_vlan(TND_FLOWS_FID));
    assert_eq!(create(f, cls, &to_set(1, 7)), TND_ST_DEPEND, "no set");
    for id in [7, 8] {
        create(f, sets, &set(id, ports(&[1, 2])));
    }
    let both = tnd_fdb {
        port: 1,
        ..to_set(1, 7)
    };
    assert_eq!(create(f, cls, &both), TND_ST_INVALID, "a port and a set");
    // static, whatever the driver says: the pipeline may neither move nor age it
    let young = tnd_fdb {
        flags: 0,
        ..to_set(1, 7)
    };
    assert_eq!(create(f, cls, &young), 0);
    assert_eq!(dump::<tnd_fdb>(f, TND_OP_DUMP, cls, 64), [to_set(1, 7)]);
    let in_use = |f: &mut Firmware, id| said(f, TND_OP_DELETE, sets, &set(id, ports(&[]))).0;
    assert_eq!(in_use(f, 7), TND_ST_IN_USE);
    // each way to leave a set: another one, a port, trap, drop, delete
    let back = |f: &mut Firmware| {
        assert_eq!(said(f, TND_OP_UPDATE, cls, &to_set(1, 7)).0, 0);
        assert_eq!(in_use(f, 7), TND_ST_IN_USE);
    };
    assert_eq!(said(f, TND_OP_UPDATE, cls, &to_set(1, 8)).0, 0);
    assert_eq!(in_use(f, 8), TND_ST_IN_USE);
    let freed = |f: &mut Firmware| {
        assert_eq!(in_use(f, 7), 0);
        assert_eq!(create(f, sets, &set(7, ports(&[3]))), 0);
    };
    freed(f);
    back(f);
    assert_eq!(said(f, TND_OP_UPDATE, cls, &fdb(TND_FLOWS_FID, 1, 2)).0, 0);
    freed(f);
    back(f);
    assert_eq!(said(f, TND_OP_SET_TRAP, cls, &to_set(1, 0)).0, 0);
    freed(f);
    back(f);
    let drops = tnd_fdb {
        action: TND_ACT_DROP,
        ..to_set(1, 7)
    };
    assert_eq!(
        said(f, TND_OP_UPDATE, cls, &drops).0,
        0,
        "and the set is of no account"
    );
    freed(f);
    back(f);
    assert_eq!(said(f, TND_OP_DELETE, cls, &to_set(1, 0)).0, 0);
    for id in [7, 8] {
        assert_eq!(in_use(f, id), 0);
    }
    assert_eq!(
        (pool(f, PoolId::Mdb).used, pool(f, PoolId::ExactMatch).used),
        (0, 0)
    );
}

/// Every address is one, in a domain of flow ports.
#[test]
fn addresses_of_flow_domains() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    create(f, TND_CLS_VLAN, &vlan(1));
    create(f, TND_CLS_VLAN, &flow_vlan(2));
    for mac in [
        [0; 6],
        [0xff; 6],
        [1, 0x80, 0xc2, 0, 0, 0],
        [1, 0, 0x5e, 0, 0, 1],
    ] {
        for (fid, want) in [(1, TND_ST_INVALID), (2, TND_ST_OK)] {
            let e = tnd_fdb {
                mac,
                ..fdb(fid, 0, 1)
            };
            assert_eq!(create(f, TND_CLS_FDB, &e), want, "{mac:x?} in {fid}");
        }
    }
    create(f, TND_CLS_PORT_SET, &set(1, ports(&[1])));
    let e = tnd_fdb {
        set: 1,
        ..fdb(1, 5, 0)
    };
    assert_eq!(create(f, TND_CLS_FDB, &e), TND_ST_INVALID, "a set");
    assert_eq!(create(f, TND_CLS_FDB, &tnd_fdb { fid: 2, ..e }), 0);
    assert_eq!(pool(f, PoolId::ExactMatch).used, 5);
}

/// A domain that is of flow ports no more keeps the entries that only such a domain may have: they can be taken back, not written.
#[test]
fn a_domain_leaves_flow_ports() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    let cls = TND_CLS_FDB;
    create(f, TND_CLS_VLAN, &flow_vlan(TND_FLOWS_FID));
    create(f, TND_CLS_PORT_SET, &set(7, ports(&[1])));
    create(f, TND_CLS_PORT_SET, &set(8, ports(&[2])));
    let group = tnd_fdb {
        mac: [1, 0, 0x5e, 0, 0, 1],
        ..fdb(TND_FLOWS_FID, 0, 1)
    };
    assert_eq!(create(f, cls, &to_set(1, 7)), 0);
    assert_eq!(create(f, cls, &group), 0);
    let plain = vlan(TND_FLOWS_FID);
    assert_eq!(said(f, TND_OP_UPDATE, TND_CLS_VLAN, &plain).0, 0);
    let all = dump::<tnd_fdb>(f, TND_OP_DUMP, cls, 64);
    assert!(all.len() == 2 && all.contains(&to_set(1, 7)) && all.contains(&group));
    // what is there is there, nothing more comes
    assert_eq!(create(f, cls, &to_set(1, 7)), 0, "equal");
    for (what, e) in [
        ("another set", to_set(1, 8)),
        ("a group's port", tnd_fdb { port: 2, ..group }),
    ] {
        let s = said(f, TND_OP_UPDATE, cls, &e).0;
        assert_eq!(s, TND_ST_INVALID, "{what}");
    }
    // a port in place of the set, trap, and away
    assert_eq!(said(f, TND_OP_UPDATE, cls, &fdb(TND_FLOWS_FID, 1, 2)).0, 0);
    assert_eq!(said(f, TND_OP_SET_TRAP, cls, &group).0, 0);
    assert_eq!(said(f, TND_OP_DELETE, cls, &group).0, 0);
    assert_eq!(said(f, TND_OP_DELETE, cls, &to_set(1, 0)).0, 0);
    for id in [7, 8] {
        let set = set(id, ports(&[]));
        assert_eq!(said(f, TND_OP_DELETE, TND_CLS_PORT_SET, &set).0, 0);
    }
    assert_eq!(f.check_accounting(), Ok(()));
}

/// What a driver may say of an entry with a set beside it: learned or not, it stays where it is, and so does its set.
#[test]
fn a_set_is_nothing_to_learn() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    create(f, TND_CLS_VLAN, &flow_vlan(TND_FLOWS_FID));
    create(f, TND_CLS_PORT_SET, &set(7, ports(&[1])));
    let learned = tnd_fdb {
        flags: TND_FDB_LEARNED,
        ..to_set(1, 7)
    };
    assert_eq!(create(f, TND_CLS_FDB, &learned), 0);
    let flags = TND_FDB_LEARNED | TND_FDB_STATIC;
    let told = tnd_fdb { flags, ..learned };
    assert_eq!(
        dump::<tnd_fdb>(f, TND_OP_DUMP, TND_CLS_FDB, 64),
        [told],
        "static"
    );
    let seven = set(7, ports(&[]));
    let delete = |f: &mut Firmware| said(f, TND_OP_DELETE, TND_CLS_PORT_SET, &seven).0;
    assert_eq!(delete(f), TND_ST_IN_USE);
    // it goes with its domain, and gives its set back, whatever its memory has become
    f.flip(FlipTable::Fdb, 0).unwrap();
    let domain = flow_vlan(TND_FLOWS_FID);
    assert_eq!(said(f, TND_OP_DELETE, TND_CLS_VLAN, &domain).0, 0);
    assert_eq!(delete(f), 0);
    assert_eq!(f.check_accounting(), Ok(()));
}

/// A set that is swapped while an entry names it: the pipeline sends to the new ports.
#[test]
fn a_set_is_swapped_below_its_entries() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    create(f, TND_CLS_VLAN, &flow_vlan(TND_FLOWS_FID));
    create(f, TND_CLS_PORT_SET, &set(7, ports(&[1])));
    create(f, TND_CLS_FDB, &to_set(1, 7));
    let other = set(7, ports(&[2, 3]));
    assert_eq!(
        said(f, TND_OP_UPDATE, TND_CLS_PORT_SET, &other),
        (0, vec![])
    );
    let key = Key::Mac {
        fid: TND_FLOWS_FID,
        mac: to_set(1, 7).mac,
    };
    let value = FdbValue::unpack(f.state.exact.get(&key).unwrap().value);
    let slot = value.set_slot().unwrap();
    assert_eq!(f.state.port_sets.at(slot).unwrap().ports, ports(&[2, 3]));
    assert_eq!(
        said(f, TND_OP_DELETE, TND_CLS_PORT_SET, &other).0,
        TND_ST_IN_USE
    );
}

/// Of an entry and its set the driver names one alone: an unnamed entry leaves the set without users, a set that a named entry
/// refers to stays.
#[test]
fn a_warm_start_with_half_of_it() {
    let cls = TND_CLS_PORT_SET;
    for names_the_set in [true, false] {
        let mut fw = chip("tiny");
        let f = &mut fw;
        let seven = set(7, ports(&[1]));
        create(f, TND_CLS_VLAN, &flow_vlan(TND_FLOWS_FID));
        create(f, cls, &seven);
        create(f, TND_CLS_FDB, &to_set(1, 7));
        f.attach(true);
        run(f, &cmd(TND_OP_BEGIN_RESYNC, 0), &[]);
        create(f, TND_CLS_VLAN, &flow_vlan(TND_FLOWS_FID));
        let named = match names_the_set {
            true => create(f, cls, &seven),
            false => create(f, TND_CLS_FDB, &to_set(1, 7)),
        };
        assert_eq!(named, 0);
        let (c, _) = run(f, &cmd(TND_OP_END_RESYNC, 0), &[]);
        let swept = u64::from(names_the_set);
        assert_eq!((c.status, c.result), (0, swept));
        let entries = dump::<tnd_fdb>(f, TND_OP_DUMP, TND_CLS_FDB, 64);
        assert_eq!(entries.is_empty(), names_the_set);
        assert_eq!(dump::<tnd_port_set>(f, TND_OP_DUMP, cls, 64), [seven]);
        let want = if names_the_set { 0 } else { TND_ST_IN_USE };
        assert_eq!(said(f, TND_OP_DELETE, cls, &seven).0, want);
    }
}

/// A driver that attaches warm: what it names stays as it is, the rest goes, entries before their sets.
#[test]
fn a_warm_start() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    let name = |f: &mut Firmware, ids: &[u16]| {
        create(f, TND_CLS_VLAN, &flow_vlan(TND_FLOWS_FID));
        create(f, TND_CLS_ACL_TABLE, &table(1, TND_ACL_FLOW));
        for id in ids {
            assert_eq!(create(f, TND_CLS_PORT_SET, &set(*id, ports(&[1, *id]))), 0);
            assert_eq!(create(f, TND_CLS_FDB, &to_set((*id).into(), *id)), 0);
            assert_eq!(
                create(f, TND_CLS_ACL_BIND, &bind(*id, TND_ACL_FLOW, 1, 0)),
                0
            );
        }
    };
    let resync = |f: &mut Firmware, ids: &[u16]| {
        f.attach(true);
        run(f, &cmd(TND_OP_BEGIN_RESYNC, 0), &[]);
        if !ids.is_empty() {
            name(f, ids);
        }
        let (c, _) = run(f, &cmd(TND_OP_END_RESYNC, 0), &[]);
        assert_eq!(c.status, 0);
        assert_eq!(f.check_accounting(), Ok(()));
        c.result
    };
    name(f, &[2, 3, 4]);
    let all = dump::<tnd_acl_bind>(f, TND_OP_DUMP, TND_CLS_ACL_BIND, 40);
    assert_eq!(all, [2, 3, 4].map(|p| bind(p, TND_ACL_FLOW, 1, 0)));
    assert_eq!(resync(f, &[2, 3, 4]), 0);
    assert_eq!(resync(f, &[3]), 6);
    let sets = dump::<tnd_port_set>(f, TND_OP_DUMP, TND_CLS_PORT_SET, 64);
    assert_eq!(sets, [set(3, ports(&[1, 3]))]);
    assert_eq!(
        dump::<tnd_fdb>(f, TND_OP_DUMP, TND_CLS_FDB, 64),
        [to_set(3, 3)]
    );
    // set, entry, binding, list, domain
    assert_eq!(resync(f, &[]), 5);
    assert_eq!(
        (pool(f, PoolId::Mdb).used, pool(f, PoolId::ExactMatch).used),
        (0, 0)
    );
}

/// Only a chip with the stage has flow ports, and says so.
#[test]
fn which_chips_have_flow_ports() {
    for name in Profile::names() {
        let mut f = chip(name);
        let offered = f.profile().features();
        let has = offered & TND_FEAT_FLOWS != 0;
        assert_eq!(offered & TND_FEAT_FLOW_MEMBERS != 0, has, "{name}");
        assert_eq!(offered & TND_FEAT_FLOW_FIDS != 0, has, "{name}");
        let known = ["tiny", "nxp-t1040", "arista-7500e"].contains(&name);
        assert_eq!(has, known, "{name}");
        let (_, out) = run(
            &mut f,
            &cmd(TND_OP_QUERY, TND_CLS_PORT),
            tnd_port {
                struct_size: size::<tnd_port>(),
                port: 1,
                ..Default::default()
            }
            .as_bytes(),
        );
        let mut p = tnd_port::read_from_bytes(&out).unwrap();
        p.flags |= TND_PORT_FLOWS | TND_PORT_FLOWS_DROP;
        let want = if has { TND_ST_OK } else { TND_ST_UNSUPPORTED };
        assert_eq!(
            op(&mut f, TND_OP_UPDATE, TND_CLS_PORT, &p).status,
            want,
            "{name}"
        );
        create(&mut f, TND_CLS_ACL_TABLE, &table(1, TND_ACL_FLOW));
        let s = create(&mut f, TND_CLS_ACL_ENTRY, &rule(1, 1, TND_ACL_DROP));
        assert_eq!(s, want, "{name}");
    }
}

/// What flow ports hand to the CPU: of the T1040 what its two ports to it carry, of the 7500E a link's.
#[test]
fn what_comes_to_the_cpu() {
    for name in Profile::names() {
        let p = Profile::builtin(name).unwrap();
        let flow = p.class_policer(TND_TC_FLOW);
        let mbps = u64::from(flow.rate_pps) * 84 * 8 / 1_000_000;
        match name {
            "nxp-t1040" => assert_eq!(mbps, 4_999),
            "arista-7500e" => assert_eq!(mbps, 999),
            _ => assert_eq!(flow, p.class_policer(TND_TC_DATA), "{name}"),
        }
        assert!(p.traps.flow.is_some(), "{name}");
    }
}

/// Rules that send to ports are of this stage alone, and of chips that can.
#[test]
fn rules_that_send_to_ports() {
    let to = |mask: PortMask| tnd_acl_entry {
        ports: mask,
        ..rule(1, 1, TND_ACL_REDIRECT_PORTS)
    };
    for stage in [TND_ACL_PORT, TND_ACL_INGRESS, TND_ACL_EGRESS] {
        let mut f = chip("nxp-t1040");
        create(&mut f, TND_CLS_ACL_TABLE, &table(1, stage));
        let s = create(&mut f, TND_CLS_ACL_ENTRY, &to(ports(&[1])));
        assert_eq!(s, TND_ST_UNSUPPORTED);
    }
    let mut fw = chip("nxp-t1040");
    let f = &mut fw;
    create(f, TND_CLS_ACL_TABLE, &table(1, TND_ACL_FLOW));
    for bad in [ports(&[0]), ports(&[1, 9]), ports(&[255])] {
        assert_eq!(create(f, TND_CLS_ACL_ENTRY, &to(bad)), TND_ST_INVALID);
    }
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &to(ports(&[1, 8]))), 0);
    // of other actions they are of no account
    let drops = tnd_acl_entry {
        action: TND_ACL_DROP,
        target: 3,
        ..to(ports(&[1]))
    };
    assert_eq!(op(f, TND_OP_UPDATE, TND_CLS_ACL_ENTRY, &drops).status, 0);
    let all = || rule(1, 1, TND_ACL_DROP);
    assert_eq!(
        dump::<tnd_acl_entry>(f, TND_OP_DUMP, TND_CLS_ACL_ENTRY, 250),
        [all()]
    );
    op(f, TND_OP_UPDATE, TND_CLS_ACL_ENTRY, &to(ports(&[2])));
    op(f, TND_OP_SET_TRAP, TND_CLS_ACL_ENTRY, &drops);
    let traps = tnd_acl_entry {
        action: TND_ACL_TRAP,
        ..all()
    };
    assert_eq!(
        dump::<tnd_acl_entry>(f, TND_OP_DUMP, TND_CLS_ACL_ENTRY, 250),
        [traps]
    );
    for name in ["tiny", "arista-7500e"] {
        let mut f = chip(name);
        create(&mut f, TND_CLS_ACL_TABLE, &table(1, TND_ACL_FLOW));
        let s = create(&mut f, TND_CLS_ACL_ENTRY, &to(ports(&[1])));
        assert_eq!(s, TND_ST_UNSUPPORTED, "{name}");
        let one = tnd_acl_entry {
            target: 2,
            ..rule(1, 1, TND_ACL_REDIRECT_PORT)
        };
        assert_eq!(create(&mut f, TND_CLS_ACL_ENTRY, &one), 0, "{name}");
    }
}

/// What rows of IS2 can ask for, as the silicon's keys have it, and how many lines they take (0: refused).
#[test]
fn rows_of_the_vsc9953() {
    let mut fw = chip("nxp-t1040");
    let f = &mut fw;
    create(f, TND_CLS_ACL_TABLE, &table(1, TND_ACL_FLOW));
    create(f, TND_CLS_ACL_TABLE, &table(2, TND_ACL_INGRESS));
    type Ask = fn(&mut tnd_acl_entry);
    let ether =
        |n: u16| move |e: &mut tnd_acl_entry| (e.key.ethertype, e.mask.ethertype) = (n, 0xffff);
    let (arp, ip4, ip6) = (ether(0x0806), ether(0x0800), ether(0x86dd));
    let nothing: Ask = |_| {};
    let src_mac: Ask = |e| e.mask.src_mac = [0xff; 6];
    let dst_mac: Ask = |e| e.mask.dst_mac = [0xff; 6];
    let a_group: Ask = |e| (e.key.dst_mac[0], e.mask.dst_mac[0]) = (1, 1);
    let no_group: Ask = |e| e.mask.dst_mac[0] = 1;
    let broadcast: Ask = |e| (e.key.dst_mac, e.mask.dst_mac) = ([0xff; 6], [0xff; 6]);
    let every: Ask = |e| (e.mask.port, e.mask.tci, e.mask.tag) = (0xffff, 0xffff, 0xff);
    let src_ip: Ask = |e| e.mask.src_ip[0] = 0xff;
    let dst_ip: Ask = |e| e.mask.dst_ip[0] = 0xff;
    let protocol: Ask = |e| (e.key.protocol, e.mask.protocol) = (17, 0xff);
    let tos: Ask = |e| e.mask.tos = 0xfc;
    let ttl: Ask = |e| e.mask.ttl = 0xff;
    let pieces: Ask = |e| (e.mask.fragment, e.mask.tcp_flags) = (TND_ACL_FRAGMENT, 2);
    let udp_port: Ask = |e| {
        (e.key.protocol, e.mask.protocol) = (17, 0xff);
        e.mask.dst_port = 0xffff;
    };
    let icmp_type: Ask = |e| {
        (e.key.protocol, e.mask.protocol) = (1, 0xff);
        e.mask.src_port = 0xffff;
    };
    let any_port: Ask = |e| e.mask.src_port = 0xffff;
    let tcp_range: Ask = |e| {
        (e.key.protocol, e.mask.protocol) = (6, 0xff);
        (e.dst_port_min, e.dst_port_max) = (1, 9);
    };
    let any_range: Ask = |e| (e.dst_port_min, e.dst_port_max) = (1, 9);
    let writes: Ask = |e| (e.flags, e.vid) = (TND_ACL_SET_VID, 9);
    let priority: Ask = |e| e.flags = TND_ACL_SET_PCP;
    let in_some: Ask = |e| e.mask.ethertype = 0xff00;
    type Kind<'a> = (&'a str, &'a dyn Fn(&mut tnd_acl_entry), &'a [(Ask, u32)]);
    let own: [Kind<'_>; 6] = [
        (
            "any",
            &nothing,
            &[
                (every, 1),
                (src_mac, 1),
                (dst_mac, 1),
                (in_some, 1),
                (writes, 0),
                (priority, 0),
            ],
        ),
        (
            "other",
            &ether(0x88b5),
            &[(every, 1), (src_mac, 1), (dst_mac, 1)],
        ),
        (
            "ARP",
            &arp,
            &[
                (every, 1),
                (src_mac, 1),
                (dst_mac, 0),
                (a_group, 1),
                (broadcast, 1),
            ],
        ),
        (
            "RARP",
            &ether(0x8035),
            &[(src_mac, 1), (dst_mac, 0), (broadcast, 1)],
        ),
        (
            "IPv4",
            &ip4,
            &[
                (every, 1),
                (src_mac, 0),
                (dst_mac, 0),
                (a_group, 1),
                (no_group, 1),
                (broadcast, 1),
                (src_ip, 1),
                (dst_ip, 1),
                (protocol, 1),
                (tos, 1),
                (ttl, 0),
                (pieces, 1),
                (udp_port, 1),
                (tcp_range, 1),
                (icmp_type, 0),
                (any_port, 0),
                (any_range, 0),
                (writes, 0),
            ],
        ),
        (
            "IPv6",
            &ip6,
            &[
                (every, 1),
                (src_mac, 0),
                (dst_mac, 0),
                (a_group, 1),
                (broadcast, 1),
                (src_ip, 1),
                (dst_ip, 0),
                (protocol, 1),
                (tos, 0),
                (ttl, 0),
                (pieces, 0),
                (udp_port, 0),
                (tcp_range, 0),
            ],
        ),
    ];
    for (what, kind, asks) in own {
        for (at, (ask, lines)) in asks.iter().enumerate() {
            let mut e = rule(1, 1, TND_ACL_PERMIT);
            kind(&mut e);
            ask(&mut e);
            let c = op(f, TND_OP_CREATE, TND_CLS_ACL_ENTRY, &e);
            if *lines == 0 {
                assert_eq!(c.status, TND_ST_UNSUPPORTED, "{what}, {at}");
                continue;
            }
            assert_eq!(c.status, TND_ST_OK, "{what}, {at}");
            assert_eq!(pool(f, PoolId::Tcam).used, *lines, "{what}, {at}");
            assert_eq!(op(f, TND_OP_DELETE, TND_CLS_ACL_ENTRY, &e).status, 0);
        }
    }
    // a group's bit beside addresses of IP takes no more than these
    let mut e = rule(1, 1, TND_ACL_DROP);
    ip4(&mut e);
    a_group(&mut e);
    dst_ip(&mut e);
    assert_eq!(
        said(f, TND_OP_CREATE, TND_CLS_ACL_ENTRY, &e),
        (0, vec![(PoolId::Tcam as u16, 1)])
    );
    // a bridge's rules are written with the full keys, whatever flow ports have
    let mut e = tnd_acl_entry { table: 2, ..e };
    assert_eq!(
        said(f, TND_OP_CREATE, TND_CLS_ACL_ENTRY, &e),
        (0, vec![(PoolId::Tcam as u16, 2)])
    );
    (e.priority, e.mask.ttl) = (2, 0xff);
    assert_eq!(create(f, TND_CLS_ACL_ENTRY, &e), 0);
    assert_eq!(f.check_accounting(), Ok(()));
}

/// The rows of chips that are known by their widths: every field, and both rewrites.
#[test]
fn rows_of_other_chips() {
    for name in ["tiny", "arista-7500e"] {
        let mut f = chip(name);
        let widths = f.profile().acl.tcam[0].widths;
        create(&mut f, TND_CLS_ACL_TABLE, &table(1, TND_ACL_FLOW));
        let mut e = tnd_acl_entry {
            flags: TND_ACL_SET_VID | TND_ACL_SET_PCP,
            vid: 5,
            pcp: 3,
            ..rule(1, 1, TND_ACL_PERMIT)
        };
        (e.key.ethertype, e.mask.ethertype) = (0x86dd, 0xffff);
        e.mask.dst_ip = [0xff; 16];
        (e.mask.ttl, e.mask.dst_port) = (0xff, 0xffff);
        let lines = |f: &mut Firmware, e: &tnd_acl_entry| {
            let c = op(f, TND_OP_CREATE, TND_CLS_ACL_ENTRY, e);
            assert_eq!(c.status, 0, "{name}");
            deltas(&c)[0].1 as u32
        };
        assert_eq!(lines(&mut f, &e), widths.ipv6);
        (e.priority, e.mask.dst_mac[0]) = (2, 1);
        assert_eq!(lines(&mut f, &e), widths.full, "a group is an address");
        let next = tnd_acl_entry {
            priority: 3,
            target: 1,
            action: TND_ACL_REDIRECT_NEXTHOP,
            ..e
        };
        create(&mut f, TND_CLS_RIF, &rif(1, 0, 1));
        create(&mut f, TND_CLS_NEXTHOP, &nexthop(1, 1));
        assert_eq!(create(&mut f, TND_CLS_ACL_ENTRY, &next), TND_ST_UNSUPPORTED);
    }
}
