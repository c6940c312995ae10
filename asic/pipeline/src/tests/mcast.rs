//! Multicast in a domain that snoops, against a model that says port by port who gets a frame, as
//! net/bridge/br_input.c and br_forward.c do.

use proptest::prelude::*;
use std::collections::BTreeMap;
use tandem_abi::raw;

use crate::entry::Action;
use crate::state::{MdbConfig, MdbKey};
use crate::testkit::*;
use crate::{DropReason, State};

const PORTS: u16 = 6;
const GROUPS4: [[u8; 4]; 4] = [
    [225, 1, 1, 1],
    [225, 1, 1, 2],
    [224, 0, 0, 5],
    [239, 9, 9, 9],
];
const SOURCES4: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];

fn group6(scope: u8, n: u8) -> [u8; 16] {
    let mut a = [0; 16];
    (a[0], a[1], a[15]) = (0xff, scope, n);
    a
}

fn key(family: u8, addr: &[u8], source: Option<&[u8]>) -> MdbKey {
    let wide = |b: &[u8]| {
        let mut out = [0; 16];
        out[..b.len()].copy_from_slice(b);
        out
    };
    MdbKey {
        fid: 1,
        family,
        addr: wide(addr),
        source: source.map(wide).unwrap_or_default(),
    }
}

fn entry(ports: &[u16], cpu: bool) -> MdbConfig {
    MdbConfig {
        action: Action::Forward,
        cpu,
        ports: ports.to_vec(),
    }
}

fn flags(s: &mut State, on: u32) {
    let mut c = s.vlan(1).unwrap().config;
    c.flags |= on | raw::TND_VLAN_SNOOP;
    s.set_vlan(1, c).unwrap();
}

fn to4(group: [u8; 4], source: [u8; 4]) -> Vec<u8> {
    let dst = [1, 0, 0x5e, group[1] & 0x7f, group[2], group[3]];
    udp4(dst, mac(1), source, group, 8, 20)
}

fn to6(group: [u8; 16]) -> Vec<u8> {
    let dst = [0x33, 0x33, group[12], group[13], group[14], group[15]];
    udp6(dst, mac(1), ip6(1, 1), group, 8, 20)
}

#[test]
fn who_gets_what() {
    use Answer::{Both, Cpu, Drop, Tx};
    let mut s = bridge(4);
    flags(&mut s, raw::TND_VLAN_MC4_MEMBERS);
    s.mdb.set(key(2, &GROUPS4[0], None), entry(&[2, 3], false));
    let known = to4(GROUPS4[0], SOURCES4[0]);
    assert_eq!(run(&mut s, 1, &known), Tx(vec![2, 3]));
    assert_eq!(run(&mut s, 2, &known), Tx(vec![3]), "not back");
    // the port's own flag is about what is flooded
    port_flags(&mut s, 3, 0, raw::TND_PORT_FLOOD_MC);
    assert_eq!(run(&mut s, 1, &known), Tx(vec![2, 3]));
    let unknown = to4(GROUPS4[1], SOURCES4[0]);
    assert_eq!(run(&mut s, 1, &unknown), Drop(DropReason::NoFloodPort));
    port_flags(&mut s, 4, raw::TND_PORT_ROUTER4, 0);
    assert_eq!(run(&mut s, 1, &unknown), Tx(vec![4]));
    assert_eq!(run(&mut s, 1, &known), Tx(vec![2, 3, 4]));
    // its source's own entry goes first
    s.mdb
        .set(key(2, &GROUPS4[0], Some(&SOURCES4[0])), entry(&[3], true));
    assert_eq!(
        run(&mut s, 1, &known),
        Both(vec![3, 4], raw::TND_TRAP_L2_MULTICAST)
    );
    assert_eq!(
        run(&mut s, 1, &to4(GROUPS4[0], SOURCES4[1])),
        Tx(vec![2, 3, 4])
    );
    // of the other family there is no querier: flooded, whatever is known
    s.mdb.set(key(10, &group6(5, 1), None), entry(&[2], false));
    let six = to6(group6(5, 1));
    assert_eq!(
        run(&mut s, 1, &six),
        Both(vec![2, 4], raw::TND_TRAP_BROADCAST),
        "port 3 does not want to be flooded"
    );
    flags(&mut s, raw::TND_VLAN_MC6_MEMBERS | raw::TND_VLAN_MC6_CPU);
    assert_eq!(
        run(&mut s, 1, &six),
        Both(vec![2], raw::TND_TRAP_L2_MULTICAST)
    );
    // not IP: by MAC address
    let other = ether([1, 0, 0, 1, 2, 3], mac(1), 0x88b5, &[0; 46]);
    assert_eq!(
        run(&mut s, 1, &other),
        Both(vec![2, 4], raw::TND_TRAP_BROADCAST)
    );
    s.mdb
        .set(key(0, &[1, 0, 0, 1, 2, 3], None), entry(&[2], false));
    assert_eq!(
        run(&mut s, 1, &other),
        Tx(vec![2, 4]),
        "and where IPv4 routers are"
    );
    // messages that the kernel must hear, and what it drops
    let mut igmp = to4(GROUPS4[0], SOURCES4[0]);
    igmp[23] = 2;
    tandem_packet::checksum::ip4_set(&mut igmp[14..34]);
    assert_eq!(run(&mut s, 1, &igmp), Cpu(raw::TND_TRAP_IGMP_MLD));
    let mut pim = to4([224, 0, 0, 13], SOURCES4[0]);
    pim[23] = 103;
    tandem_packet::checksum::ip4_set(&mut pim[14..34]);
    assert_eq!(run(&mut s, 1, &pim), Cpu(raw::TND_TRAP_ROUTING));
    let mut empty = to6(group6(5, 1));
    empty.truncate(54);
    (empty[18], empty[19], empty[20]) = (0, 0, 59);
    assert_eq!(run(&mut s, 1, &empty), Cpu(raw::TND_TRAP_ERROR));
    // one more bit: what has no entry is the kernel's
    flags(&mut s, raw::TND_VLAN_MC4_TRAP);
    assert_eq!(run(&mut s, 1, &unknown), Cpu(raw::TND_TRAP_L2_MULTICAST));
    assert_eq!(
        run(&mut s, 1, &known),
        Both(vec![3, 4], raw::TND_TRAP_L2_MULTICAST)
    );
    // and before all of it: everything
    flags(&mut s, raw::TND_VLAN_MC_TRAP);
    assert_eq!(run(&mut s, 1, &known), Cpu(raw::TND_TRAP_L2_MULTICAST));
}

/// Members of mixed tagging: one change of the tag for all of them, as in flooding.
#[test]
fn a_group_of_mixed_tagging_costs_one_change() {
    let mut s = state(6);
    ports_up(&mut s);
    s.set_vlan(7, Default::default()).unwrap();
    for port in 1..=6 {
        let untagged = if port % 2 == 0 {
            raw::TND_MEMBER_UNTAGGED | raw::TND_MEMBER_PVID
        } else {
            0
        };
        let config = crate::state::MemberConfig {
            fid: 7,
            flags: untagged,
        };
        s.set_member(port, 7, config).unwrap();
    }
    let mut c = s.vlan(7).unwrap().config;
    c.flags = raw::TND_VLAN_SNOOP | raw::TND_VLAN_MC4_MEMBERS;
    s.set_vlan(7, c).unwrap();
    let k = MdbKey {
        fid: 7,
        ..key(2, &GROUPS4[0], None)
    };
    s.mdb.set(k, entry(&[2, 3, 4, 5, 6], false));
    let f = tagged(to4(GROUPS4[0], SOURCES4[0]), 0x8100, 7);
    assert_eq!(run(&mut s, 1, &f), Answer::Tx(vec![3, 5, 2, 4, 6]));
    assert_eq!(s.counters.flood.most_tag_changes, 1);
    assert_eq!(s.counters.flood.sent, 5);
}

#[derive(Debug, Clone)]
enum Op {
    Set(usize, Vec<u16>, bool, bool),
    Remove(usize),
    Port(u16, u32),
    Domain(u32),
    Frame(u16, usize, usize),
}

/// Frames and entries are of the same few groups.
fn groups(n: usize) -> (u8, Vec<u8>) {
    match n {
        0..4 => (2, GROUPS4[n].to_vec()),
        4 => (10, group6(5, 1).to_vec()),
        5 => (10, group6(2, 1).to_vec()),
        6 => (10, group6(2, 9).to_vec()),
        _ => (0, vec![1, 0, 0, 1, 2, 3]),
    }
}

fn keys(n: usize) -> MdbKey {
    // entries of one source for the first IPv4 groups
    match n {
        8..10 => key(2, &GROUPS4[n - 8], Some(&SOURCES4[0])),
        _ => {
            let (family, addr) = groups(n % 8);
            key(family, &addr, None)
        }
    }
}

const DOMAIN: [u32; 9] = [
    raw::TND_VLAN_CPU_COPY,
    raw::TND_VLAN_MC4_MEMBERS,
    raw::TND_VLAN_MC4_TRAP,
    raw::TND_VLAN_MC6_MEMBERS,
    raw::TND_VLAN_MC6_TRAP,
    raw::TND_VLAN_MAC_TRAP,
    raw::TND_VLAN_MC4_CPU,
    raw::TND_VLAN_MC6_CPU,
    raw::TND_VLAN_MC_TRAP,
];
const PORT: [u32; 5] = [
    raw::TND_PORT_FLOOD_MC,
    raw::TND_PORT_ROUTER4,
    raw::TND_PORT_ROUTER6,
    raw::TND_PORT_ISOLATED,
    raw::TND_PORT_HAIRPIN,
];

fn some_of(of: &'static [u32]) -> impl Strategy<Value = u32> {
    prop::collection::vec(any::<bool>(), of.len())
        .prop_map(move |on| of.iter().zip(on).filter(|x| x.1).map(|x| x.0).sum())
}

fn ops() -> impl Strategy<Value = Op> {
    let ports = prop::collection::btree_set(1..=PORTS, 0..4);
    prop_oneof![
        4 => (0usize..10, ports, any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(k, p, cpu, trap)| Op::Set(k, p.into_iter().collect(), cpu, trap)),
        1 => (0usize..10).prop_map(Op::Remove),
        2 => (1..=PORTS, some_of(&PORT)).prop_map(|(p, f)| Op::Port(p, f)),
        2 => some_of(&DOMAIN).prop_map(Op::Domain),
        8 => (1..=PORTS, 0usize..8, 0usize..2).prop_map(|(p, g, s)| Op::Frame(p, g, s)),
    ]
}

#[derive(Default)]
struct Model {
    entries: BTreeMap<MdbKey, MdbConfig>,
    ports: BTreeMap<u16, u32>,
    domain: u32,
}

impl Model {
    /// Who gets a frame: ports ascending, and whether the CPU does; None: the CPU alone.
    fn answer(&self, from: u16, group: usize, source: usize) -> Option<(Vec<u16>, bool)> {
        let (family, addr) = groups(group);
        let has = |f| self.domain & f != 0;
        let link_local = group == 2 || group == 5;
        let by_source = (family == 2).then(|| SOURCES4[source].to_vec());
        let entry = self
            .entries
            .get(&key(family, &addr, by_source.as_deref()))
            .or_else(|| self.entries.get(&key(family, &addr, None)));
        let (members, trap, cpu, routers) = match family {
            2 => (
                has(raw::TND_VLAN_MC4_MEMBERS),
                has(raw::TND_VLAN_MC4_TRAP),
                has(raw::TND_VLAN_MC4_CPU),
                raw::TND_PORT_ROUTER4,
            ),
            10 => (
                has(raw::TND_VLAN_MC6_MEMBERS),
                has(raw::TND_VLAN_MC6_TRAP),
                has(raw::TND_VLAN_MC6_CPU),
                raw::TND_PORT_ROUTER6,
            ),
            _ => (
                entry.is_some(),
                has(raw::TND_VLAN_MAC_TRAP),
                false,
                raw::TND_PORT_ROUTER4,
            ),
        };
        let copies = has(raw::TND_VLAN_CPU_COPY);
        let flooded = || {
            let all = self.deliver(from, |f, _| f & raw::TND_PORT_FLOOD_MC != 0);
            Some((all, copies))
        };
        if has(raw::TND_VLAN_MC_TRAP) {
            return if link_local || family == 0 {
                flooded()
            } else {
                None
            };
        }
        if link_local {
            return flooded();
        }
        match (members, entry) {
            (false, _) if trap => None,
            (false, _) => flooded(),
            (true, None) if trap => None,
            (true, Some(e)) if e.action == Action::Trap => None,
            (true, e) => {
                let wants =
                    |f: u32, p: u16| f & routers != 0 || e.is_some_and(|e| e.ports.contains(&p));
                let cpu = copies && (cpu || e.is_some_and(|e| e.cpu));
                Some((self.deliver(from, wants), cpu))
            }
        }
    }

    fn deliver(&self, from: u16, wants: impl Fn(u32, u16) -> bool) -> Vec<u16> {
        let flags = |p: u16| self.ports[&p];
        let isolated = |p| flags(p) & flags(from) & raw::TND_PORT_ISOLATED != 0;
        (1..=PORTS)
            .filter(|p| *p != from || flags(*p) & raw::TND_PORT_HAIRPIN != 0)
            .filter(|p| !isolated(*p) && wants(flags(*p), *p))
            .collect()
    }
}

fn sent(group: usize, source: usize) -> Vec<u8> {
    match groups(group) {
        (2, a) => to4(a.try_into().unwrap(), SOURCES4[source]),
        (10, a) => to6(a.try_into().unwrap()),
        (_, a) => ether(a.try_into().unwrap(), mac(1), 0x88b5, &[0; 46]),
    }
}

proptest! {
    #[test]
    fn every_frame_goes_where_the_model_says(ops in prop::collection::vec(ops(), 1..80)) {
        let mut s = bridge(PORTS);
        let mut m = Model::default();
        flags(&mut s, 0);
        m.domain = raw::TND_VLAN_CPU_COPY;
        for p in 1..=PORTS {
            m.ports.insert(p, raw::TND_PORT_FLOOD_MC);
        }
        for op in ops {
            match op {
                Op::Set(k, ports, cpu, trap) => {
                    let config = MdbConfig {
                        action: if trap { Action::Trap } else { Action::Forward },
                        cpu,
                        ports,
                    };
                    m.entries.insert(keys(k), config.clone());
                    s.mdb.set(keys(k), config);
                }
                Op::Remove(k) => {
                    prop_assert_eq!(m.entries.remove(&keys(k)).is_some(), s.mdb.remove(&keys(k)).is_some());
                }
                Op::Port(p, f) => {
                    m.ports.insert(p, f);
                    port_flags(&mut s, p, f, PORT.iter().sum());
                    port_flags(&mut s, p, f, 0);
                }
                Op::Domain(f) => {
                    m.domain = f;
                    let mut c = s.vlan(1).unwrap().config;
                    c.flags = f | raw::TND_VLAN_SNOOP;
                    s.set_vlan(1, c).unwrap();
                }
                Op::Frame(from, group, source) => {
                    let want = m.answer(from, group, source);
                    let got = run(&mut s, from, &sent(group, source));
                    let got = match got {
                        Answer::Cpu(_) => None,
                        Answer::Tx(mut p) => { p.sort_unstable(); Some((p, false)) }
                        Answer::Both(mut p, _) => { p.sort_unstable(); Some((p, true)) }
                        Answer::Drop(DropReason::NoFloodPort) => Some((vec![], false)),
                        other => return Err(TestCaseError::fail(format!("{other:?}"))),
                    };
                    prop_assert_eq!(got, want, "port {} group {} source {} flags {:#x}", from, group, source, m.domain);
                }
            }
            prop_assert_eq!(s.mdb.len(), m.entries.len());
            prop_assert_eq!(s.mdb.in_domain(1), !m.entries.is_empty());
        }
    }
}
