//! Every profile filled to 100 % and one more, then drained to zero.

use super::*;
use raw::*;

/// Creates objects until the pool says full; gives the bodies that fit.
fn fill<T: IntoBytes + zerocopy::Immutable>(
    fw: &mut Firmware,
    cls: u16,
    id: PoolId,
    mut make: impl FnMut(u32) -> T,
) -> Vec<T> {
    let mut all = Vec::new();
    for n in 0u32.. {
        let body = make(n);
        let cpl = op(fw, TND_OP_CREATE, cls, &body);
        match cpl.status {
            TND_ST_OK => all.push(body),
            TND_ST_TABLE_FULL | TND_ST_BUCKET_FULL => {
                assert_eq!(cpl.table, id as u16);
                assert_eq!(cpl.free, pool(fw, id).free);
                assert_eq!(cpl.size, pool(fw, id).size);
                assert_eq!(cpl.status == TND_ST_TABLE_FULL, cpl.free < cpl.needed);
                break;
            }
            s => panic!("{}: status {s} after {n}", id.name()),
        }
    }
    all
}

fn drain<T: IntoBytes + zerocopy::Immutable>(fw: &mut Firmware, cls: u16, all: &[T]) {
    for b in all {
        assert_eq!(op(fw, TND_OP_DELETE, cls, b).status, TND_ST_OK);
    }
}

fn profile(name: &str) {
    let mut fw = chip(name);
    let f = &mut fw;
    let big = f.profile().lpm4.size > 100_000 && cfg!(debug_assertions);
    assert_eq!(create(f, TND_CLS_RIF, &rif(1, 0, 1)), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_NEXTHOP, &nexthop(u32::MAX, 1)), TND_ST_OK);

    let nexthops = fill(f, TND_CLS_NEXTHOP, PoolId::Nexthop, |n| nexthop(n, 1));
    let vrfs = fill(f, TND_CLS_VRF, PoolId::Vrf, |n| vrf(n as u16 + 1));
    let vlans = if f.profile().pools.vlan < 4094 {
        fill(f, TND_CLS_VLAN, PoolId::Vlan, |n| vlan(n as u16 + 2))
    } else {
        Vec::new()
    };
    // scattered keys, as hosts have them
    let scatter = |n: u32| n.wrapping_mul(0x9e37_79b1);
    let empty = f.resources().1;
    let expected = |name| cost(&empty, name).free_expected;
    let mut used = Vec::new();
    let macs = fill(f, TND_CLS_FDB, PoolId::ExactMatch, |n| {
        fdb(1, scatter(n + 1), 1)
    });
    used.push((expected("mac"), macs.len()));
    drain(f, TND_CLS_FDB, &macs);
    if !big {
        let hosts = fill(f, TND_CLS_NEIGH, PoolId::ExactMatch, |n| {
            neigh6(1, u128::from(scatter(n)) << 64)
        });
        used.push((expected("ipv6-host"), hosts.len()));
        drain(f, TND_CLS_NEIGH, &hosts);
        let target = Some((TND_RT_NEXTHOP, u32::MAX));
        let v4 = fill(f, TND_CLS_ROUTE, PoolId::Lpm4, |n| {
            route4(0, n << 8, 24, target)
        });
        used.push((expected("ipv4-route"), v4.len()));
        let v6 = fill(f, TND_CLS_ROUTE, PoolId::Lpm6, |n| {
            route6(0, u128::from(n) << 80, 48, target)
        });
        used.push((expected("ipv6-route"), v6.len()));
        drain(f, TND_CLS_ROUTE, &v4);
        drain(f, TND_CLS_ROUTE, &v6);
    }
    let size = pool(f, PoolId::ExactMatch).size as usize;
    for (expected, fit) in used {
        // 2 % of the size; on the tiny chip one entry is 3 %
        assert!(
            (expected as usize).abs_diff(fit) <= (size / 50).max(3),
            "{name}: expected {expected}, fit {fit}"
        );
    }
    drain(f, TND_CLS_NEXTHOP, &nexthops);
    drain(f, TND_CLS_VRF, &vrfs);
    drain(f, TND_CLS_VLAN, &vlans);
    drain(f, TND_CLS_NEXTHOP, &[nexthop(u32::MAX, 1)]);
    drain(f, TND_CLS_VLAN, &[vlan(1)]);
    drain(f, TND_CLS_RIF, &[rif(1, 0, 1)]);
    for id in PoolId::ALL {
        let p = pool(f, id);
        assert_eq!((p.used, p.free), (0, p.size), "{name}: {}", id.name());
    }
    assert_eq!(f.check_accounting(), Ok(()));
}

#[test]
fn tiny() {
    profile("tiny");
}

#[test]
fn spectrum() {
    profile("spectrum-sn2700");
}

#[test]
fn arista() {
    profile("arista-7500e");
}

#[test]
fn jericho() {
    profile("jericho2-large");
}

#[test]
fn spectrum_2100() {
    profile("spectrum-sn2100");
}

/// Bridging and rules only: what a rule's key needs decides how many there are.
#[test]
fn nxp() {
    let mut fw = chip("nxp-t1040");
    let f = &mut fw;
    assert_eq!(create(f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    let scatter = |n: u32| n.wrapping_mul(0x9e37_79b1);
    let expected = cost(&f.resources().1, "mac").free_expected as usize;
    let macs = fill(f, TND_CLS_FDB, PoolId::ExactMatch, |n| {
        fdb(1, scatter(n + 1), 1)
    });
    assert!(macs.len() > 7800 && macs.len().abs_diff(expected) <= 8192 / 50);
    drain(f, TND_CLS_FDB, &macs);
    let c = op(f, TND_OP_CREATE, TND_CLS_RIF, &rif(1, 0, 1));
    assert_eq!((c.status, c.free, c.size), (TND_ST_TABLE_FULL, 0, 0));

    let stages = [
        (TND_ACL_PORT, PoolId::Tcam2, [512, 256, 256]),
        (TND_ACL_INGRESS, PoolId::Tcam, [2048, 1024, 1024]),
        (TND_ACL_EGRESS, PoolId::Tcam3, [0, 0, 0]),
    ];
    for (stage, id, counts) in stages {
        let table = tnd_acl_table {
            struct_size: size_of::<tnd_acl_table>() as u16,
            stage,
            table: 1,
        };
        assert_eq!(create(f, TND_CLS_ACL_TABLE, &table), TND_ST_OK);
        for (width, count) in counts.into_iter().enumerate() {
            let make = |n: u32| {
                let mut e = tnd_acl_entry {
                    struct_size: size_of::<tnd_acl_entry>() as u16,
                    table: 1,
                    priority: n,
                    ..Default::default()
                };
                let ethertype = if width == 1 { 0x86dd } else { 0x0800 };
                (e.key.ethertype, e.mask.ethertype) = (ethertype, u16::MAX);
                (e.key.dst_ip, e.mask.dst_ip) = ([0; 16], [0; 16]);
                e.key.dst_ip[..4].copy_from_slice(&n.to_be_bytes());
                e.mask.dst_ip[..4].fill(0xff);
                if width == 2 {
                    e.mask.dst_mac = [0xff; 6];
                }
                e
            };
            if count == 0 {
                let s = create(f, TND_CLS_ACL_ENTRY, &make(1));
                assert_eq!(s, TND_ST_UNSUPPORTED, "ES0 looks at no IP fields");
                continue;
            }
            let rules = fill(f, TND_CLS_ACL_ENTRY, id, make);
            assert_eq!(rules.len(), count, "stage {stage}, width {width}");
            drain(f, TND_CLS_ACL_ENTRY, &rules);
        }
        assert_eq!(op(f, TND_OP_DELETE, TND_CLS_ACL_TABLE, &table).status, 0);
    }
    for id in PoolId::ALL {
        assert_eq!(pool(f, id).used, u32::from(id == PoolId::Vlan));
    }
}
