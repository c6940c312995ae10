//! Multicast groups: what a bridge's members, routers and queriers become on the chip, and that a group which does not fit
//! goes to the CPU and nowhere else.

use crate::common::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

const BR: u32 = 50;
const PORTS: u16 = 4;

fn info() -> BridgeInfo {
    BridgeInfo {
        mcast_snooping: true,
        ageing_s: 300,
        mcast_router: 1,
        igmp_version: 3,
        mld_version: 1,
        querier4: Querier::There,
        querier6: Querier::None,
        ..BridgeInfo::default()
    }
}

fn bridge(info: BridgeInfo) -> Object {
    Object::Link(Link {
        ifindex: BR,
        name: "br0".into(),
        kind: LinkKind::Bridge(info),
        mac: mac(200),
        ..swp(1)
    })
}

fn port(n: u16, unsupported: Option<&'static str>) -> Object {
    Object::Link(Link {
        master: BR,
        bridge_port: Some(BridgePort {
            unsupported,
            ..BridgePort::default()
        }),
        ..swp(n)
    })
}

fn ip4(n: u8) -> GroupAddr {
    GroupAddr::Ip(IpAddr::V4(Ipv4Addr::new(225, 0, 0, n)))
}

fn source(n: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, n))
}

fn member(group: GroupAddr, source: Option<IpAddr>, ifindex: u32) -> MdbEntry {
    MdbEntry {
        bridge: BR,
        vlan: 0,
        group,
        source,
        ifindex,
        include: false,
        blocked: false,
    }
}

fn on(n: u16) -> u32 {
    10 + u32::from(n)
}

fn router(n: u16, v4: bool, v6: bool) -> Object {
    Object::RouterPort(RouterPort {
        bridge: BR,
        ifindex: on(n),
        v4,
        v6,
    })
}

fn rig() -> Rig {
    let mut r = Rig::new("tiny", Policy::Trap);
    r.begin();
    r.up(bridge(info()));
    for n in 1..=PORTS {
        r.up(port(n, None));
    }
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    r
}

fn flags(r: &Rig) -> u32 {
    let (_, v) = r.chip.fw.state.vlans().next().expect("a domain");
    v.config.flags
}

/// Ports, the CPU: of an entry that forwards; None: it traps.
type Entry = Option<(Vec<u16>, bool)>;

fn entries(r: &Rig) -> BTreeMap<(u8, Vec<u8>, Vec<u8>), Entry> {
    let all = r.chip.fw.state.mdb.iter();
    all.map(|(_, e)| {
        let forwards = e.config.action.to_abi() == TND_ACT_FORWARD;
        let what = forwards.then(|| (e.config.ports.clone(), e.config.cpu));
        (
            (e.key.family, e.key.addr.to_vec(), e.key.source.to_vec()),
            what,
        )
    })
    .collect()
}

fn entry(r: &Rig, g: GroupAddr, s: Option<IpAddr>) -> Option<Entry> {
    entries(r).get(&name(g, s)).cloned()
}

fn name(g: GroupAddr, s: Option<IpAddr>) -> (u8, Vec<u8>, Vec<u8>) {
    let wide = |b: &[u8]| {
        let mut out = b.to_vec();
        out.resize(16, 0);
        out
    };
    let of = |a: IpAddr| match a {
        IpAddr::V4(a) => wide(&a.octets()),
        IpAddr::V6(a) => a.octets().to_vec(),
    };
    let (family, addr) = match g {
        GroupAddr::Ip(a @ IpAddr::V4(_)) => (TND_AF_INET, of(a)),
        GroupAddr::Ip(a) => (TND_AF_INET6, of(a)),
        GroupAddr::Mac(m) => (0, wide(&m)),
    };
    (family, addr, s.map_or(vec![0; 16], of))
}

#[test]
fn members_become_ports() {
    let mut r = rig();
    assert_eq!(
        flags(&r) & !TND_VLAN_LEARNING,
        TND_VLAN_CPU_COPY | TND_VLAN_SNOOP | TND_VLAN_MC4_MEMBERS
    );
    r.up(Object::Mdb(member(ip4(1), None, on(3))));
    r.up(Object::Mdb(member(ip4(1), None, on(2))));
    r.settle();
    assert_eq!(entry(&r, ip4(1), None), Some(Some((vec![2, 3], false))));
    // the bridge itself
    r.up(Object::Mdb(member(ip4(1), None, BR)));
    r.settle();
    assert_eq!(entry(&r, ip4(1), None), Some(Some((vec![2, 3], true))));
    r.del(Key::Mdb(member(ip4(1), None, on(3)).key()));
    r.del(Key::Mdb(member(ip4(1), None, BR).key()));
    r.settle();
    assert_eq!(entry(&r, ip4(1), None), Some(Some((vec![2], false))));
    // one that wants some sources only, and one that does not want this one
    let some = MdbEntry {
        include: true,
        ..member(ip4(1), None, on(4))
    };
    let not = MdbEntry {
        blocked: true,
        ..member(ip4(1), Some(source(1)), on(2))
    };
    r.up(Object::Mdb(some));
    r.up(Object::Mdb(not));
    r.up(Object::Mdb(member(ip4(1), Some(source(1)), on(4))));
    r.settle();
    assert_eq!(entry(&r, ip4(1), None), Some(Some((vec![2], false))));
    assert_eq!(
        entry(&r, ip4(1), Some(source(1))),
        Some(Some((vec![4], false)))
    );
    let why = &r.store.explain_group(ip4(1))[0];
    assert_eq!(
        (why.state, why.cost, why.table.as_str()),
        (State::Installed, 1, "multicast-group")
    );
    // the bridge looks at groups alone
    r.up(bridge(BridgeInfo {
        igmp_version: 2,
        ..info()
    }));
    r.settle();
    assert_eq!(entry(&r, ip4(1), None), Some(Some((vec![2, 4], false))));
    assert_eq!(entry(&r, ip4(1), Some(source(1))), None);
    let rows = r.store.mdb();
    assert!(
        words(&rows[1].reason).contains("does not look at sources"),
        "{rows:?}"
    );
    // multicast to unicast
    r.up(port(4, Some("mcast_to_unicast")));
    r.settle();
    assert_eq!(entry(&r, ip4(1), None), Some(None));
    let why = &r.store.explain_group(ip4(1))[0];
    assert_eq!(
        (why.action, words(&why.reason).as_str()),
        (Action::Trap, "swp4 has mcast_to_unicast")
    );
    // not from here any more
    r.up(bridge(BridgeInfo {
        mcast_snooping: false,
        ..info()
    }));
    r.settle();
    assert!(entries(&r).is_empty());
    assert_eq!(flags(&r) & !TND_VLAN_LEARNING, TND_VLAN_CPU_COPY);
}

#[test]
fn queriers_and_routers_decide() {
    let mut r = rig();
    let with = |f: fn(&mut BridgeInfo)| {
        let mut i = info();
        f(&mut i);
        bridge(i)
    };
    let of = |r: &Rig| flags(r) & !(TND_VLAN_LEARNING | TND_VLAN_CPU_COPY | TND_VLAN_SNOOP);
    r.up(with(|i| {
        (i.querier4, i.querier6) = (Querier::Unsure, Querier::There)
    }));
    r.settle();
    assert_eq!(of(&r), TND_VLAN_MC4_TRAP | TND_VLAN_MC6_MEMBERS);
    r.up(with(|i| i.mcast_router = 2));
    r.settle();
    assert_eq!(of(&r), TND_VLAN_MC4_MEMBERS | TND_VLAN_MC4_CPU);
    r.up(with(|i| i.mcast_unsupported = Some("snooping per VLAN")));
    r.settle();
    assert_eq!(of(&r), TND_VLAN_MC_TRAP);
    r.up(with(|i| i.querier4 = Querier::None));
    r.up(router(2, true, false));
    r.up(router(3, false, true));
    r.settle();
    assert_eq!(of(&r), 0);
    let port = |r: &Rig, n| r.chip.fw.state.port(n).unwrap().config.flags;
    let both = TND_PORT_ROUTER4 | TND_PORT_ROUTER6;
    assert_eq!(port(&r, 2) & both, TND_PORT_ROUTER4);
    assert_eq!(port(&r, 3) & both, TND_PORT_ROUTER6);
    r.del(Key::RouterPort(BR, on(2)));
    r.settle();
    assert_eq!(port(&r, 2) & both, 0);
    // a dump without it
    r.store.apply(Event::BeginSync(SRC, KindSet::MDB), r.now);
    r.end();
    r.settle();
    assert_eq!(port(&r, 3) & both, 0);
}

#[test]
fn what_does_not_fit_goes_to_the_cpu() {
    let mut r = rig();
    // room for four
    for n in 1..=4 {
        r.up(Object::Mdb(member(ip4(n), None, on(1))));
    }
    r.settle();
    assert_eq!(flags(&r) & TND_VLAN_MC4_TRAP, 0);
    let s = member(ip4(1), Some(source(1)), on(2));
    r.up(Object::Mdb(s));
    r.settle();
    assert_eq!(entry(&r, ip4(1), None), Some(None), "would answer for it");
    assert_eq!(entry(&r, ip4(2), None), Some(Some((vec![1], false))));
    assert_ne!(flags(&r) & TND_VLAN_MC4_TRAP, 0);
    let why = r.store.explain_group(ip4(1));
    assert!(
        why.iter()
            .any(|e| words(&e.reason).contains("multicast-group full (needs 1, free 0 of 4)")),
        "{why:?}"
    );
    assert!(
        why.iter().any(|e| e.cover == "225.0.0.1 of all sources"),
        "{why:?}"
    );
    // room again
    r.del(Key::Mdb(member(ip4(4), None, on(1)).key()));
    r.settle();
    assert_eq!(entry(&r, ip4(1), None), Some(Some((vec![1], false))));
    assert_eq!(
        entry(&r, ip4(1), Some(source(1))),
        Some(Some((vec![2], false)))
    );
    assert_eq!(flags(&r) & TND_VLAN_MC4_TRAP, 0);
    r.chip.accounting();
}

#[test]
fn a_warm_attach_keeps_entries() {
    let mut r = rig();
    r.up(Object::Mdb(member(ip4(1), None, on(1))));
    r.settle();
    let before = r.chip.writes;
    let had = entries(&r);
    r.chip.fw.attach(true);
    r.store.attach(Attach::Warm, r.now);
    for _ in 0..10_000 {
        let n = r.plan();
        let done = [r.run(0), r.run(1)];
        assert_eq!(entries(&r), had, "at every moment");
        assert_eq!(flags(&r) & TND_VLAN_MC4_TRAP, 0);
        if n == 0 && done == [false, false] {
            break;
        }
    }
    assert_eq!(r.chip.writes, before);
    // while a cold one is under way nothing is answered without an entry
    r.chip.cold();
    r.store.attach(Attach::Cold, r.now);
    for _ in 0..10_000 {
        let n = r.plan();
        let done = [r.run(0), r.run(1)];
        let there = r.chip.fw.state.vlans().next().is_some();
        if there && entries(&r).is_empty() {
            assert_ne!(flags(&r) & TND_VLAN_MC4_TRAP, 0);
        }
        if n == 0 && done == [false, false] {
            break;
        }
    }
    assert_eq!(entries(&r), had);
    assert_eq!(flags(&r) & TND_VLAN_MC4_TRAP, 0);
}

#[derive(Clone, Debug)]
enum Op {
    Join(u8, u8, u16, bool, bool),
    Leave(u8, u8, u16),
    Version(u8),
    Port(u16, bool),
    Sync(Vec<bool>),
    Warm,
    Cold,
}

fn group(n: u8) -> GroupAddr {
    match n % 6 {
        5 => GroupAddr::Mac([1, 0, 0, 0, 0, 5]),
        4 => GroupAddr::Ip(IpAddr::V6(Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0, 0, 4))),
        n => ip4(n + 1),
    }
}

fn ops() -> impl Strategy<Value = Op> {
    // 0: all sources; the port after the last is the bridge
    let port = 1..=PORTS + 1;
    prop_oneof![
        8 => (0u8..6, 0u8..3, port.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(g, s, p, i, b)| Op::Join(g, s, p, i, b)),
        5 => (0u8..6, 0u8..3, port).prop_map(|(g, s, p)| Op::Leave(g, s, p)),
        1 => (2u8..4).prop_map(Op::Version),
        1 => (1..=PORTS, any::<bool>()).prop_map(|(p, u)| Op::Port(p, u)),
        1 => prop::collection::vec(any::<bool>(), 40).prop_map(Op::Sync),
        1 => Just(Op::Warm),
        1 => Just(Op::Cold),
    ]
}

fn who(p: u16) -> u32 {
    if p > PORTS { BR } else { on(p) }
}

/// Whom the kernel's bridge sends a packet of a group and a source to (net/bridge/br_forward.c); None: the group is not
/// known. A port that gets it as unicast is left out, and told of.
fn kernel(
    members: &BTreeMap<MdbKey, MdbEntry>,
    g: GroupAddr,
    s: Option<IpAddr>,
    version: u8,
) -> Option<(BTreeSet<u16>, bool)> {
    let of = |s: Option<IpAddr>| -> Vec<&MdbEntry> {
        let all = members.values();
        all.filter(|e| e.group == g && e.source == s).collect()
    };
    let by_source = version == 3 && s.is_some_and(|s| s.is_ipv4());
    let own = if by_source { of(s) } else { Vec::new() };
    let star = own.is_empty();
    let hit = if star { of(None) } else { own };
    if hit.is_empty() {
        return None;
    }
    let is4 = matches!(g, GroupAddr::Ip(IpAddr::V4(_)));
    let mut out = BTreeSet::new();
    let mut host = false;
    for e in hit {
        if e.ifindex == BR {
            host = true;
        } else if !(e.blocked || star && version == 3 && is4 && e.include) {
            out.insert((e.ifindex - 10) as u16);
        }
    }
    Some((out, host))
}

proptest! {
    #[test]
    fn the_chip_answers_as_the_kernel_or_traps(ops in prop::collection::vec(ops(), 1..60)) {
        let mut r = rig();
        let mut members: BTreeMap<MdbKey, MdbEntry> = BTreeMap::new();
        let (mut version, mut odd) = (3, BTreeSet::new());
        let setting = |version| bridge(BridgeInfo { igmp_version: version, querier6: Querier::There, ..info() });
        r.up(setting(version));
        for op in ops {
            match op {
                Op::Join(g, s, p, include, blocked) => {
                    let g = group(g);
                    let s = (s > 0 && matches!(g, GroupAddr::Ip(IpAddr::V4(_)))).then(|| source(s));
                    let e = MdbEntry { include, blocked: blocked && s.is_some(), ..member(g, s, who(p)) };
                    members.insert(e.key(), e);
                    r.up(Object::Mdb(e));
                }
                Op::Leave(g, s, p) => {
                    let key = member(group(g), (s > 0).then(|| source(s)), who(p)).key();
                    members.remove(&key);
                    r.del(Key::Mdb(key));
                }
                Op::Version(v) => {
                    version = v;
                    r.up(setting(v));
                }
                Op::Port(p, strange) => {
                    if strange { odd.insert(p); } else { odd.remove(&p); }
                    r.up(port(p, strange.then_some("mcast_to_unicast")));
                }
                Op::Sync(keep) => {
                    let mut keep = keep.into_iter().chain(std::iter::repeat(true));
                    members.retain(|_, _| keep.next().unwrap());
                    r.store.apply(Event::BeginSync(SRC, KindSet::MDB), r.now);
                    for e in members.values() {
                        r.up(Object::Mdb(*e));
                    }
                    r.end();
                }
                Op::Warm => {
                    r.chip.fw.attach(true);
                    r.store.attach(Attach::Warm, r.now);
                }
                Op::Cold => {
                    r.chip.cold();
                    r.store.attach(Attach::Cold, r.now);
                }
            }
            r.settle();
            r.chip.accounting();
            let has = entries(&r);
            let flags = flags(&r);
            let mut wanted = 0;
            let groups: BTreeSet<(GroupAddr, Option<IpAddr>)> = members
                .values()
                .filter(|e| e.source.is_none() || version == 3)
                .map(|e| (e.group, e.source))
                .collect();
            wanted += groups.len();
            let fits = wanted <= 4;
            for n in 0..6 {
                let g = group(n);
                let (trap, is4) = match g {
                    GroupAddr::Ip(IpAddr::V4(_)) => (TND_VLAN_MC4_TRAP, true),
                    GroupAddr::Ip(_) => (TND_VLAN_MC6_TRAP, false),
                    GroupAddr::Mac(_) => (TND_VLAN_MAC_TRAP, false),
                };
                for s in [None, Some(source(1)), Some(source(2)), Some(source(9))] {
                    if s.is_some() && !is4 {
                        continue;
                    }
                    let want = kernel(&members, g, s, version);
                    let hit = has.get(&name(g, s)).or_else(|| has.get(&name(g, None)));
                    let got = match hit {
                        Some(None) => None,
                        Some(Some((ports, cpu))) => Some(Some((ports.iter().copied().collect::<BTreeSet<u16>>(), *cpu))),
                        None if flags & trap != 0 => None,
                        None => Some(None),
                    };
                    let strange = want.as_ref().is_some_and(|(p, _)| p.iter().any(|p| odd.contains(p)));
                    match got {
                        // to the CPU: only with a cause
                        None => prop_assert!(!fits || strange, "{g} {s:?} traps: {flags:#x} {:?}", r.store.mdb()),
                        Some(got) => {
                            prop_assert_eq!(got, want, "{} {:?} of {:?}", g, s, has);
                            prop_assert!(!strange);
                        }
                    }
                }
            }
        }
        // and nothing is left
        for key in members.keys() {
            r.del(Key::Mdb(*key));
        }
        r.settle();
        prop_assert!(entries(&r).is_empty());
        prop_assert_eq!(flags(&r) & (TND_VLAN_MC4_TRAP | TND_VLAN_MC6_TRAP | TND_VLAN_MAC_TRAP), 0);
    }
}
