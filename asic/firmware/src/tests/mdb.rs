//! Multicast groups as a driver sees them.

use super::*;
use raw::*;

fn group(fid: u16, family: u8, addr: &[u8], source: &[u8], ports: &[u16]) -> Vec<u8> {
    let mut head = tnd_mdb {
        struct_size: size::<tnd_mdb>(),
        fid,
        family,
        count: ports.len() as u16,
        flags: TND_MDB_CPU_COPY,
        ..Default::default()
    };
    head.addr[..addr.len()].copy_from_slice(addr);
    head.source[..source.len()].copy_from_slice(source);
    let mut out = head.as_bytes().to_vec();
    for port in ports {
        let p = tnd_mdb_port {
            port: *port,
            reserved0: 0,
        };
        out.extend(p.as_bytes());
    }
    out
}

/// IPv4 group `n` of a domain.
pub(super) fn ip4(fid: u16, n: u8, ports: &[u16]) -> Vec<u8> {
    group(fid, TND_AF_INET, &[225, 0, 0, n], &[], ports)
}

fn act(f: &mut Firmware, o: u16, body: &[u8]) -> tnd_cpl {
    run(f, &cmd(o, TND_CLS_MDB), body).0
}

#[test]
fn keys_and_bodies_are_checked() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    let create = |f: &mut Firmware, body: &[u8]| act(f, TND_OP_CREATE, body).status;
    assert_eq!(create(f, &ip4(1, 1, &[1])), TND_ST_DEPEND, "no domain");
    assert_eq!(super::create(f, TND_CLS_VLAN, &vlan(1)), 0);
    let mac = [1, 0, 0, 1, 2, 3];
    for (why, bad) in [
        ("family", group(1, 3, &[225, 0, 0, 1], &[], &[1])),
        (
            "beyond IPv4",
            group(1, TND_AF_INET, &[225, 0, 0, 1, 1], &[], &[1]),
        ),
        ("no address", group(1, TND_AF_INET, &[], &[], &[1])),
        ("a station", group(1, 0, &[2, 0, 0, 1, 2, 3], &[], &[1])),
        ("broadcast", group(1, 0, &[0xff; 6], &[], &[1])),
        ("a source of a MAC address", group(1, 0, &mac, &[1], &[1])),
        ("port 0", ip4(1, 1, &[0])),
        ("beyond all groups", ip4(1, 1, &[8 + 1025])),
        ("twice", ip4(1, 1, &[2, 2])),
        ("too many", ip4(1, 1, &(1..=257).collect::<Vec<u16>>())),
        ("cut off", ip4(1, 1, &[1, 2])[..50].to_vec()),
    ] {
        assert_eq!(create(f, &bad), TND_ST_INVALID, "{why}");
    }
    let mut drops = ip4(1, 1, &[1]);
    drops[5] = TND_ACT_DROP;
    assert_eq!(create(f, &drops), TND_ST_INVALID, "drop");
    assert_eq!(pool(f, PoolId::Mdb).used, 0);
    // order does not matter, and a group that is not there yet is no hindrance
    assert_eq!(create(f, &ip4(1, 1, &[9, 2, 1])), 0);
    assert_eq!(create(f, &ip4(1, 1, &[1, 2, 9])), 0, "equal");
    assert_eq!(create(f, &ip4(1, 1, &[1])), TND_ST_EXISTS);
    assert_eq!(act(f, TND_OP_UPDATE, &ip4(1, 2, &[1])).status, TND_ST_NOENT);
    let c = act(f, TND_OP_UPDATE, &ip4(1, 1, &[3]));
    assert_eq!((c.status, c.delta_count), (0, 0));
    // the domain is kept
    let del = |f: &mut Firmware| run(f, &cmd(TND_OP_DELETE, TND_CLS_VLAN), vlan(1).as_bytes()).0;
    assert_eq!(del(f).status, TND_ST_IN_USE);
    let key = group(1, 0, &mac, &[], &[1]);
    assert_eq!(create(f, &key), 0);
    assert_eq!(act(f, TND_OP_SET_TRAP, &key).status, 0);
    assert_eq!(
        act(f, TND_OP_SET_TRAP, &ip4(1, 7, &[])).status,
        TND_ST_NOENT
    );
    let (_, out) = run(f, &cmd(TND_OP_QUERY, TND_CLS_MDB), &key);
    let (told, rest) = tnd_mdb::read_from_prefix(&out).unwrap();
    assert_eq!((told.action, told.count, told.flags), (TND_ACT_TRAP, 0, 0));
    assert!(rest.is_empty());
    for body in [key, ip4(1, 1, &[])] {
        assert_eq!(act(f, TND_OP_DELETE, &body).status, 0);
    }
    assert_eq!(del(f).status, 0);
    assert_eq!(pool(f, PoolId::Mdb).used, 0);
}

#[test]
fn full_is_said_and_a_trap_needs_no_room() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    create(f, TND_CLS_VLAN, &vlan(1));
    for n in 1..=4 {
        assert_eq!(act(f, TND_OP_CREATE, &ip4(1, n, &[1])).status, 0);
    }
    let source = group(1, TND_AF_INET, &[225, 0, 0, 1], &[10, 0, 0, 1], &[2]);
    let c = act(f, TND_OP_CREATE, &source);
    assert_eq!(
        (c.status, c.table, c.needed, c.free, c.size),
        (TND_ST_TABLE_FULL, PoolId::Mdb as u16, 1, 0, 4)
    );
    assert_eq!(act(f, TND_OP_SET_TRAP, &ip4(1, 1, &[])).status, 0);
    assert_eq!(act(f, TND_OP_DELETE, &ip4(1, 2, &[])).status, 0);
    assert_eq!(act(f, TND_OP_CREATE, &source).status, 0);
    // a driver that attaches warm and names two of them
    f.attach(true);
    run(f, &cmd(TND_OP_BEGIN_RESYNC, 0), &[]);
    create(f, TND_CLS_VLAN, &vlan(1));
    for body in [&source, &ip4(1, 3, &[1])] {
        let c = act(f, TND_OP_CREATE, body);
        assert_eq!((c.status, c.delta_count), (0, 0));
    }
    let (c, _) = run(f, &cmd(TND_OP_END_RESYNC, 0), &[]);
    assert_eq!((c.status, c.result), (0, 2));
    assert_eq!(pool(f, PoolId::Mdb).used, 2);
    // one that names nothing: groups go before their domain does
    f.attach(true);
    run(f, &cmd(TND_OP_BEGIN_RESYNC, 0), &[]);
    let (c, _) = run(f, &cmd(TND_OP_END_RESYNC, 0), &[]);
    assert_eq!((c.status, c.result), (0, 3));
    assert_eq!(
        (pool(f, PoolId::Mdb).used, pool(f, PoolId::Vlan).used),
        (0, 0)
    );
    assert_eq!(f.check_accounting(), Ok(()));
}
