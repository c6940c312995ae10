//! Every table of every profile filled to its last slot and one more, alone and all together, and drained: in each
//! snapshot used + in flight + committed + free is the size, a refusal changes nothing, and at the end all is zero.
//!
//! Without optimisation big memories are a sixteenth of their size; `./run test-all` has them in full.

use super::lease::lease;
use super::*;
use raw::*;

/// Objects that may fill pools.
struct Kind {
    name: &'static str,
    cls: u16,
    /// Which pools may refuse it.
    pools: &'static [PoolId],
    /// The nth; none: there are no more keys.
    make: fn(u32) -> Option<Vec<u8>>,
}

const EXACT: &[PoolId] = &[PoolId::ExactMatch];
const LINES: &[PoolId] = &[
    PoolId::Tcam,
    PoolId::Tcam2,
    PoolId::Tcam3,
    PoolId::Lpm6,
    PoolId::AclRange,
];
/// A next hop that routes and groups point to, a list per stage for rules: ids that no kind below draws.
const NEXTHOP: u32 = u32::MAX;
const LIST: u32 = 1 << 24;

fn bytes<T: IntoBytes + zerocopy::Immutable>(body: T) -> Option<Vec<u8>> {
    Some(body.as_bytes().to_vec())
}

fn scatter(n: u32) -> u32 {
    n.wrapping_mul(0x9e37_79b1)
}

fn list(id: u32, stage: u16) -> tnd_acl_table {
    tnd_acl_table {
        struct_size: size::<tnd_acl_table>(),
        stage,
        table: id,
    }
}

/// A rule of stage 1..=4; width 0: Ethernet, 1: IPv4, 2: IPv6, 3: both MAC and IP, 4: IPv4 with a range of ports.
fn rule(stage: u32, width: u32, n: u32) -> Option<Vec<u8>> {
    let mut e = tnd_acl_entry {
        struct_size: size::<tnd_acl_entry>(),
        table: LIST + stage,
        priority: n << 3 | width,
        action: TND_ACL_DROP,
        ..Default::default()
    };
    if width == 0 || width == 3 {
        let [a, b, c, d] = n.to_be_bytes();
        (e.key.dst_mac, e.mask.dst_mac) = ([2, 0, a, b, c, d], [0xff; 6]);
    }
    if width > 0 {
        let ethertype = if width == 2 { 0x86dd } else { 0x0800 };
        (e.key.ethertype, e.mask.ethertype) = (ethertype, u16::MAX);
        e.key.dst_ip[..4].copy_from_slice(&n.to_be_bytes());
        e.mask.dst_ip[..4].fill(0xff);
    }
    if width == 4 {
        (e.key.protocol, e.mask.protocol) = (17, 0xff);
        (e.dst_port_min, e.dst_port_max) = (10 + (n % 60_000) as u16, 65_535);
    }
    bytes(e)
}

const KINDS: &[Kind] = &[
    Kind {
        name: "MAC addresses",
        cls: TND_CLS_FDB,
        pools: EXACT,
        make: |n| bytes(fdb(1, scatter(n + 1), 1)),
    },
    Kind {
        name: "IPv4 hosts",
        cls: TND_CLS_NEIGH,
        pools: EXACT,
        make: |n| bytes(neigh4(1, scatter(n))),
    },
    Kind {
        name: "IPv6 hosts",
        cls: TND_CLS_NEIGH,
        pools: EXACT,
        make: |n| bytes(neigh6(1, u128::from(scatter(n)) << 64 | 1)),
    },
    Kind {
        name: "IPv4 prefixes",
        cls: TND_CLS_ROUTE,
        pools: &[PoolId::Lpm4],
        make: |n| bytes(route4(0, n << 8, 24, Some((TND_RT_NEXTHOP, NEXTHOP)))),
    },
    Kind {
        name: "IPv6 prefixes",
        cls: TND_CLS_ROUTE,
        pools: &[PoolId::Lpm6],
        make: |n| {
            let target = Some((TND_RT_NEXTHOP, NEXTHOP));
            bytes(route6(0, u128::from(n) << 80, 48, target))
        },
    },
    Kind {
        name: "router interfaces",
        cls: TND_CLS_RIF,
        pools: &[PoolId::Rif],
        make: |n| {
            let id = u16::try_from(n + 2).ok().filter(|id| *id <= 16_000)?;
            let mut r = rif(id, 0, 2 + (n / 4094) as u16);
            (r.kind, r.vid) = (TND_RIF_PORT_VLAN, 1 + (n % 4094) as u16);
            bytes(r)
        },
    },
    Kind {
        name: "virtual routers",
        cls: TND_CLS_VRF,
        pools: &[PoolId::Vrf],
        make: |n| bytes(vrf(u16::try_from(n + 1).ok()?)),
    },
    Kind {
        name: "forwarding domains",
        cls: TND_CLS_VLAN,
        pools: &[PoolId::Vlan],
        make: |n| bytes(vlan(u16::try_from(n + 2).ok().filter(|f| *f <= 4095)?)),
    },
    Kind {
        name: "next hops",
        cls: TND_CLS_NEXTHOP,
        pools: &[PoolId::Nexthop],
        make: |n| bytes(nexthop(n, 1)),
    },
    Kind {
        name: "groups of one",
        cls: TND_CLS_NHG,
        pools: &[PoolId::Nhg, PoolId::NhgMember],
        make: |n| Some(nhg(n, &[(NEXTHOP, 1)])),
    },
    Kind {
        name: "groups of four",
        cls: TND_CLS_NHG,
        pools: &[PoolId::Nhg, PoolId::NhgMember],
        make: |n| {
            let of: Vec<(u32, u32)> = (0..4).map(|w| (NEXTHOP, w + 1)).collect();
            Some(nhg(1 << 24 | n, &of))
        },
    },
    Kind {
        name: "lists",
        cls: TND_CLS_ACL_TABLE,
        pools: &[PoolId::AclTable],
        make: |n| bytes(list(n + 1, TND_ACL_INGRESS)),
    },
    Kind {
        name: "rule counters",
        cls: TND_CLS_ACL_COUNTER,
        pools: &[PoolId::AclCounter],
        make: |n| {
            bytes(tnd_acl_counter {
                struct_size: size::<tnd_acl_counter>(),
                counter: n + 1,
                ..Default::default()
            })
        },
    },
    Kind {
        name: "ranges of ports",
        cls: TND_CLS_ACL_RANGE,
        pools: &[PoolId::AclRange],
        make: |n| {
            bytes(tnd_acl_range {
                struct_size: size::<tnd_acl_range>(),
                field: TND_ACL_RANGE_SRC,
                range: n + 1,
                min: 1,
                max: 2,
                reserved0: 0,
            })
        },
    },
    Kind {
        name: "policers",
        cls: TND_CLS_POLICER,
        pools: &[PoolId::Policer],
        make: |n| {
            bytes(tnd_policer {
                struct_size: size::<tnd_policer>(),
                policer: n + 1,
                rate: 1,
                burst: 1,
                ..Default::default()
            })
        },
    },
    Kind {
        name: "mirror sessions",
        cls: TND_CLS_MIRROR,
        pools: &[PoolId::Mirror],
        make: |n| {
            bytes(tnd_mirror {
                struct_size: size::<tnd_mirror>(),
                mirror: u16::try_from(n + 1).ok()?,
                port: 1,
                ..Default::default()
            })
        },
    },
    Kind {
        name: "port rules, Ethernet",
        cls: TND_CLS_ACL_ENTRY,
        pools: LINES,
        make: |n| rule(1, 0, n),
    },
    Kind {
        name: "ingress rules, IPv4",
        cls: TND_CLS_ACL_ENTRY,
        pools: LINES,
        make: |n| rule(2, 1, n),
    },
    Kind {
        name: "ingress rules, IPv6",
        cls: TND_CLS_ACL_ENTRY,
        pools: LINES,
        make: |n| rule(2, 2, n),
    },
    Kind {
        name: "ingress rules, all fields",
        cls: TND_CLS_ACL_ENTRY,
        pools: LINES,
        make: |n| rule(2, 3, n),
    },
    Kind {
        name: "port rules with ranges",
        cls: TND_CLS_ACL_ENTRY,
        pools: LINES,
        make: |n| rule(1, 4, n),
    },
    Kind {
        name: "egress rules, Ethernet",
        cls: TND_CLS_ACL_ENTRY,
        pools: LINES,
        make: |n| rule(3, 0, n),
    },
    Kind {
        name: "multicast groups",
        cls: TND_CLS_MDB,
        pools: &[PoolId::Mdb],
        make: |n| {
            let mut m = tnd_mdb {
                struct_size: size::<tnd_mdb>(),
                fid: 1,
                family: TND_AF_INET,
                ..Default::default()
            };
            let [a, b, c, d] = n.to_be_bytes();
            m.addr[..4].copy_from_slice(&[225 + a, b, c, d]);
            bytes(m)
        },
    },
    Kind {
        name: "port sets",
        cls: TND_CLS_PORT_SET,
        pools: &[PoolId::Mdb],
        make: |n| {
            let id = u16::try_from(n + 1).ok()?;
            bytes(super::flows::set(id, Default::default()))
        },
    },
    Kind {
        name: "rules of flow ports, Ethernet",
        cls: TND_CLS_ACL_ENTRY,
        pools: LINES,
        make: |n| rule(4, 0, n),
    },
    Kind {
        name: "rules of flow ports, IPv4",
        cls: TND_CLS_ACL_ENTRY,
        pools: LINES,
        make: |n| rule(4, 1, n),
    },
    Kind {
        name: "aggregation groups",
        cls: TND_CLS_LAG,
        pools: &[PoolId::Lag, PoolId::LagMember],
        make: |n| {
            let head = tnd_lag {
                struct_size: size::<tnd_lag>(),
                lag: u16::try_from(n + 1)
                    .ok()
                    .filter(|l| *l <= tandem_pipeline::state::MAX_LAG)?,
                ..Default::default()
            };
            bytes(head)
        },
    },
];

/// A number per pool, but for the high watermark.
type Pools = Vec<[u32; 4]>;

/// A snapshot as a driver takes it; promise 3 holds in it.
fn snapshot(f: &mut Firmware) -> Pools {
    let (cpl, out) = run(f, &cmd(TND_OP_SNAPSHOT, TND_CLS_NONE), &[]);
    assert_eq!(cpl.status, TND_ST_OK);
    out.chunks(size_of::<tnd_pool>())
        .map(|b| {
            let p = tnd_pool::read_from_bytes(b).unwrap();
            assert_eq!(
                p.used + p.in_flight + p.committed + p.free,
                p.size,
                "pool {}",
                p.pool
            );
            assert!(p.high_watermark >= p.used && p.high_watermark <= p.size);
            [p.used, p.in_flight, p.committed, p.free]
        })
        .collect()
}

/// What a CREATE said.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Fits,
    Full,
    /// This place is full, another key may fit.
    Bucket,
    /// The chip has nothing for such an object.
    Never,
}

fn try_create(f: &mut Firmware, kind: &Kind, body: &[u8]) -> Said {
    let cpl = run(f, &cmd(TND_OP_CREATE, kind.cls), body).0;
    match cpl.status {
        TND_ST_OK => Said::Fits,
        TND_ST_TABLE_FULL | TND_ST_BUCKET_FULL => {
            let id = kind.pools.iter().find(|p| **p as u16 == cpl.table);
            let row = pool(
                f,
                *id.unwrap_or_else(|| panic!("{}: pool {} is full", kind.name, cpl.table)),
            );
            if row.size == 0 {
                // and no object of it may be larger than nothing
                return Said::Never;
            }
            assert_eq!((cpl.free, cpl.size), (row.free, row.size), "{}", kind.name);
            assert!(cpl.needed > 0);
            let full = cpl.status == TND_ST_TABLE_FULL;
            assert_eq!(full, cpl.free < cpl.needed, "{}: {cpl:?}", kind.name);
            if full { Said::Full } else { Said::Bucket }
        }
        TND_ST_UNSUPPORTED | TND_ST_DEPEND => Said::Never,
        s => panic!("{}: status {s}", kind.name),
    }
}

/// One kind alone, to the last slot, one more, and back; how many fitted.
fn alone(f: &mut Firmware, kind: &Kind) -> usize {
    let before = snapshot(f);
    let mut all: Vec<Vec<u8>> = Vec::new();
    let mut refused = 0;
    for n in 0u32.. {
        let Some(body) = (kind.make)(n) else { break };
        match try_create(f, kind, &body) {
            Said::Fits => all.push(body),
            Said::Never => break,
            said => {
                // the hundred-and-first per cent: said once more, and nothing has changed
                let full = snapshot(f);
                refused += if said == Said::Full { 40 } else { 1 };
                let again = run(f, &cmd(TND_OP_CREATE, kind.cls), &body).0;
                assert_ne!(again.status, TND_ST_OK, "{}", kind.name);
                assert_eq!(snapshot(f), full, "{}: a refusal took something", kind.name);
                if refused >= 120 {
                    break;
                }
            }
        }
        if n % 64 == 0 {
            snapshot(f);
        }
    }
    assert_eq!(f.check_accounting(), Ok(()));
    // every second one first: holes
    let (odd, even): (Vec<_>, Vec<_>) = all.iter().enumerate().partition(|(i, _)| i % 2 == 1);
    for (i, body) in odd.into_iter().chain(even) {
        let cpl = run(f, &cmd(TND_OP_DELETE, kind.cls), body).0;
        assert_eq!(cpl.status, TND_ST_OK, "{}", kind.name);
        if i % 64 == 0 {
            snapshot(f);
        }
    }
    assert_eq!(snapshot(f), before, "{}: something stays", kind.name);
    all.len()
}

/// All kinds at once until nobody gets anything more, with deletes and a lease in between; then everything goes, in
/// another order.
fn together(f: &mut Firmware, seed: u64) {
    let before = snapshot(f);
    let mut state = seed;
    let mut draw = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut alive: Vec<&Kind> = KINDS.iter().collect();
    let mut next = vec![0u32; KINDS.len()];
    let mut refused = vec![0u32; KINDS.len()];
    let mut there: Vec<(u16, Vec<u8>)> = Vec::new();
    let mut leases = Vec::new();
    let mut turn = 0u32;
    while !alive.is_empty() {
        turn += 1;
        let at = draw(alive.len());
        let kind = alive[at];
        let i = KINDS.iter().position(|k| std::ptr::eq(k, kind)).unwrap();
        let said = match (kind.make)(next[i]) {
            Some(body) => {
                let said = try_create(f, kind, &body);
                if said == Said::Fits {
                    there.push((kind.cls, body));
                }
                said
            }
            None => Said::Never,
        };
        next[i] += 1;
        match said {
            Said::Fits => refused[i] = 0,
            Said::Full | Said::Bucket => refused[i] += 1,
            Said::Never => refused[i] = u32::MAX,
        }
        if refused[i] >= 30 {
            alive.swap_remove(at);
        }
        if turn.is_multiple_of(8) && !there.is_empty() && refused[i] == 0 {
            let (cls, body) = there.swap_remove(draw(there.len()));
            let gone = run(f, &cmd(TND_OP_DELETE, cls), &body).0.status;
            assert_eq!(gone, TND_ST_OK, "class {cls}");
        }
        if turn.is_multiple_of(500) && leases.len() < 20 {
            let items = [(TND_CLS_FDB, 0, 2), (TND_CLS_NEXTHOP, 0, 1)];
            let cpl = run(f, &cmd(TND_OP_LEASE, 0), &lease(&items)).0;
            if cpl.status == TND_ST_OK {
                leases.push(cpl.result as u32);
            }
        }
        if turn.is_multiple_of(32) {
            snapshot(f);
        }
    }
    assert_eq!(f.check_accounting(), Ok(()));
    for id in leases {
        let release = tnd_cmd {
            lease: id,
            ..cmd(TND_OP_RELEASE, 0)
        };
        assert_eq!(run(f, &release, &[]).0.status, TND_ST_OK);
    }
    for left in (1..=there.len()).rev() {
        let (cls, body) = there.swap_remove(draw(left));
        assert_eq!(run(f, &cmd(TND_OP_DELETE, cls), &body).0.status, TND_ST_OK);
        if left % 64 == 0 {
            snapshot(f);
        }
    }
    assert_eq!(snapshot(f), before, "something stays");
    assert_eq!(f.check_accounting(), Ok(()));
}

fn all_of(name: &str) {
    let mut profile = Profile::builtin(name).unwrap();
    if cfg!(debug_assertions) && profile.exact.buckets_per_bank > 4000 {
        profile.lpm4.size /= 16;
        profile.lpm6.size /= 16;
        profile.exact.buckets_per_bank /= 16;
        profile.exact.stash /= 16;
        for pool in [
            &mut profile.pools.nexthop,
            &mut profile.pools.nhg,
            &mut profile.pools.nhg_member,
            &mut profile.acl.counters,
            &mut profile.acl.policers,
        ] {
            *pool = (*pool / 16).max(1);
        }
        for tcam in &mut profile.acl.tcam {
            tcam.size /= 16;
        }
    }
    let mut fw = Firmware::new(profile).unwrap();
    let f = &mut fw;
    assert_eq!(create(f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    // a chip that only bridges refuses these two, and with them what needs them
    create(f, TND_CLS_RIF, &rif(1, 0, 1));
    create(f, TND_CLS_NEXTHOP, &nexthop(NEXTHOP, 1));
    let stages = [TND_ACL_PORT, TND_ACL_INGRESS, TND_ACL_EGRESS, TND_ACL_FLOW];
    for stage in stages {
        create(f, TND_CLS_ACL_TABLE, &list(LIST + u32::from(stage), stage));
    }
    let mut filled = std::collections::BTreeMap::new();
    for kind in KINDS {
        let n = alone(f, kind);
        println!("{name}: {n} {}", kind.name);
        filled.insert(kind.name, n);
    }
    assert!(filled["MAC addresses"] > 0);
    for seed in 0..2 {
        together(f, seed);
    }
    // every pool that keys can fill was filled to its last slot at some time
    for id in PoolId::ALL {
        let p = pool(f, id);
        let by_keys = matches!(
            id,
            PoolId::VlanMember
                | PoolId::Lag
                | PoolId::LagMember
                | PoolId::NhgMember
                | PoolId::Vlan
                | PoolId::Nhg
        );
        assert!(
            by_keys || p.size == 0 || p.high_watermark * 100 >= p.size * 93,
            "{name}: {} was {} of {} at most",
            id.name(),
            p.high_watermark,
            p.size
        );
    }
}

#[test]
fn tiny_in_full() {
    all_of("tiny");
}

#[test]
fn spectrum_sn2700_in_full() {
    all_of("spectrum-sn2700");
}

#[test]
fn spectrum_sn2100_in_full() {
    all_of("spectrum-sn2100");
}

#[test]
fn nxp_t1040_in_full() {
    all_of("nxp-t1040");
}

#[test]
fn arista_7500e_in_full() {
    all_of("arista-7500e");
}

#[test]
fn jericho2_large_in_full() {
    all_of("jericho2-large");
}

#[test]
fn scale_in_full() {
    all_of("scale");
}
