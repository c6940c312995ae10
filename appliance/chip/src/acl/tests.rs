// SPDX-License-Identifier: Apache-2.0
use std::net::Ipv4Addr;

use tandem_swconfig::acl::{Entry, Groups, Ports, Side};
use tandem_swconfig::{Net, Vlan};

use super::*;

const ROUTER: [u8; 6] = [2, 0, 0, 0, 0, 0x99];

fn name(kind: Kind, number: u16) -> Name {
    Name { kind, number }
}

fn ports() -> Vec<(Name, u32)> {
    (1..=3).map(|n| (name(Kind::Gigabit, n), 1000)).collect()
}

fn list(kind: ListKind, rules: &[Rule]) -> List {
    let entry = |(n, r): (u32, &Rule)| (n * 10, Entry::Rule(r.clone()));
    List {
        kind,
        entries: (1u32..).zip(rules).map(entry).collect(),
    }
}

fn tcp(permit: bool, to_ports: Ports) -> Rule {
    Rule {
        permit,
        protocol: Some(6),
        to_ports,
        ..Rule::default()
    }
}

fn host(last: u8) -> Side {
    Side {
        address: u32::from(Ipv4Addr::new(10, 0, 0, last)).into(),
        care: u32::MAX.into(),
    }
}

/// Port 1: access 2; port 2: trunk of 2 and 3, native 2; port 3: trunk of 3. Interfaces of both VLANs.
fn config(groups: [(Name, Groups); 2], lists: &[(&str, List)]) -> Config {
    let mut config = Config::default();
    let port = |mode, access, native, allowed: &[u16]| {
        let mut of = Interface::new(&name(Kind::Gigabit, 1));
        of.switchport = Some(Switchport {
            mode,
            access,
            native,
            allowed: Some(allowed.iter().copied().collect()),
        });
        of
    };
    let all = [
        port(Mode::Access, 2, 1, &[]),
        port(Mode::Trunk, 1, 2, &[2, 3]),
        port(Mode::Trunk, 1, 1, &[3]),
    ];
    config.interfaces = ports().into_iter().map(|p| p.0).zip(all).collect();
    for vid in [2, 3] {
        config.vlans.insert(vid, Vlan::default());
        let address = Net {
            address: Ipv4Addr::new(10, vid as u8, 0, 1),
            prefix: 24,
        };
        let of = Interface {
            ipv4: Some(address),
            ..Interface::default()
        };
        config.interfaces.insert(name(Kind::Vlan, vid), of);
    }
    for (name, groups) in groups {
        config.interfaces.entry(name).or_default().groups = groups;
    }
    for (name, list) in lists {
        let lists = match list.kind {
            ListKind::Ipv6 => &mut config.lists6,
            _ => &mut config.lists,
        };
        lists.insert((*name).into(), list.clone());
    }
    config
}

fn nobody() -> (Name, Groups) {
    (name(Kind::Loopback, 9), Groups::default())
}

fn v4(ins: &str, out: &str) -> Groups {
    let some = |t: &str| Some(t.to_owned()).filter(|t| !t.is_empty());
    Groups {
        ipv4_in: some(ins),
        ipv4_out: some(out),
        ..Groups::default()
    }
}

fn one_port(rules: &[Rule]) -> Vec<Ruled> {
    let at = (name(Kind::Gigabit, 1), v4("x", ""));
    let config = config([at, nobody()], &[("x", list(ListKind::Extended, rules))]);
    let mut all = super::rules(&config, &ports(), ROUTER);
    assert_eq!(check(&config, &all), Ok(()));
    assert_eq!(
        (all.ports.len(), all.vlans.len()),
        (usize::from(!rules.is_empty()), 0)
    );
    all.ports.remove(&(1, false)).unwrap_or_default()
}

#[test]
fn a_list_ends_with_a_silent_denial_and_names_its_lines() {
    let plain = Rule {
        permit: true,
        from: host(3),
        dscp: Some(46),
        ..Rule::default()
    };
    let rules = one_port(&[plain.clone(), plain]);
    let [one, two, rest] = rules.as_slice() else {
        panic!("{rules:?}");
    };
    assert_eq!(one.of, [(false, "x".into(), 10)]);
    assert_eq!(two.of, [(false, "x".into(), 20)]);
    let (f, m) = (one.filter.fields, one.filter.mask);
    assert_eq!((f.ethertype, m.ethertype), (0x0800, u16::MAX));
    assert_eq!(
        (&f.src_ip[..4], &m.src_ip[..5]),
        (&[10, 0, 0, 3][..], &[255, 255, 255, 255, 0][..])
    );
    assert_eq!((f.tos, m.tos, m.dst_ip), (46 << 2, 0xfc, [0; 16]));
    assert_eq!((m.tag, m.tci, m.dst_mac), (0, 0, [0; 6]));
    assert_eq!(one.filter.verdict, FilterVerdict::Permit);
    assert_eq!(
        (rest.filter.verdict, rest.of.len()),
        (FilterVerdict::Drop, 0)
    );
    let base = Whose::default().base(0x0800);
    assert_eq!(
        (rest.filter.fields, rest.filter.mask),
        (base.fields, base.mask)
    );
    assert_eq!(one_port(&[]).len(), 0);
}

#[test]
fn pieces_of_packets_follow_the_first_one() {
    let rules = one_port(&[tcp(true, Ports::Eq(80)), tcp(false, Ports::Eq(81))]);
    let [first, permit, pieces, deny, rest] = rules.as_slice() else {
        panic!("{rules:?}");
    };
    let fragment = |r: &Ruled| (r.filter.fields.fragment, r.filter.mask.fragment);
    // which port it is of only the CPU reads
    assert_eq!(fragment(first), (3, 3));
    assert!(first.filter.kernel.is_some());
    assert_eq!(
        (fragment(permit), permit.filter.dst_ports),
        ((0, 1), Some((80, 80)))
    );
    assert_eq!((fragment(pieces), pieces.filter.dst_ports), ((1, 3), None));
    assert_eq!(pieces.filter.verdict, FilterVerdict::Permit);
    assert_eq!(
        (fragment(deny), deny.filter.verdict),
        ((0, 1), FilterVerdict::Drop)
    );
    assert_eq!(fragment(rest), (0, 0));
    let fragments = Rule {
        fragments: true,
        ..tcp(false, Ports::Any)
    };
    let rules = one_port(&[fragments]);
    assert_eq!((rules.len(), fragment(&rules[0])), (2, (1, 3)));
}

#[test]
fn what_one_rule_of_the_chip_can_not_say_are_several() {
    let established = Rule {
        established: true,
        ..tcp(true, Ports::Any)
    };
    let flags = |r: &Ruled| (r.filter.fields.tcp_flags, r.filter.mask.tcp_flags);
    let rules = one_port(&[established]);
    assert_eq!((flags(&rules[1]), flags(&rules[2])), ((0x10, 0x10), (4, 4)));
    let both = Rule {
        from_ports: Ports::Neq(5),
        ..tcp(false, Ports::Neq(0))
    };
    let rules = one_port(&[both]);
    let ranges: Vec<_> = rules
        .iter()
        .map(|r| (r.filter.src_ports, r.filter.dst_ports))
        .collect();
    let high = Some((1, 65_535));
    assert_eq!(
        ranges[1..3],
        [(Some((0, 4)), high), (Some((6, 65_535)), high)]
    );
    assert_eq!(rules.len(), 4);
    // no port is less than 0
    assert_eq!(one_port(&[tcp(false, Ports::Lt(0))]).len(), 2);
    let echo = Rule {
        permit: true,
        protocol: Some(1),
        icmp: Some((8, Some(0))),
        ..Rule::default()
    };
    let rules = one_port(&[echo]);
    let (f, m) = (rules[1].filter.fields, rules[1].filter.mask);
    assert_eq!(
        (f.src_port, m.src_port, f.dst_port, m.dst_port),
        (8, 65_535, 0, 65_535)
    );
}

#[test]
fn neighbours_of_ipv6_are_permitted_at_the_end() {
    let groups = Groups {
        ipv6_in: Some("x".into()),
        ..Groups::default()
    };
    let deny = Rule {
        protocol: Some(58),
        ..Rule::default()
    };
    let at = (name(Kind::Gigabit, 1), groups);
    let config = config([at, nobody()], &[("x", list(ListKind::Ipv6, &[deny]))]);
    let all = super::rules(&config, &ports(), ROUTER);
    let rules = &all.ports[&(1, false)];
    let kinds: Vec<_> = rules
        .iter()
        .map(|r| (r.filter.fields.src_port, r.filter.verdict))
        .collect();
    use FilterVerdict::{Drop, Permit};
    assert_eq!(kinds, [(0, Drop), (136, Permit), (135, Permit), (0, Drop)]);
    assert!(rules.iter().all(|r| r.filter.fields.ethertype == 0x86dd));
}

/// Tag, destination, source of rules that end a list: which frames it is asked of.
fn asked(all: &Rules, at: (u16, bool)) -> Vec<(Option<u16>, bool, bool)> {
    let rules = all.ports.get(&at).into_iter().flatten();
    let ends = rules.filter(|r| r.of.is_empty());
    let who = |r: &Ruled| {
        let (f, m) = (&r.filter.fields, &r.filter.mask);
        let tci = (m.tci == 0xfff).then_some(f.tci);
        let is = |mac, mask| mask == [255; 6] && mac == ROUTER;
        (tci, is(f.dst_mac, m.dst_mac), is(f.src_mac, m.src_mac))
    };
    ends.map(who).collect()
}

#[test]
fn a_vlan_interfaces_list_is_its_ports() {
    let permit = Rule {
        permit: true,
        ..Rule::default()
    };
    let lists = [("x", list(ListKind::Standard, &[permit]))];
    let two = (name(Kind::Vlan, 2), v4("x", "x"));
    let mut config = config([two.clone(), (name(Kind::Vlan, 3), v4("x", ""))], &lists);
    let all = super::rules(&config, &ports(), ROUTER);
    assert_eq!(check(&config, &all), Ok(()));
    let (to, from) = (|tci| (tci, true, false), |tci| (tci, false, true));
    assert_eq!(asked(&all, (1, false)), [to(None)]);
    // of the native VLAN with a tag, and without
    assert_eq!(
        asked(&all, (2, false)),
        [to(Some(0)), to(Some(2)), to(Some(3))]
    );
    assert_eq!(asked(&all, (3, false)), [to(Some(3))]);
    assert_eq!(asked(&all, (1, true)), [from(None)]);
    assert_eq!(asked(&all, (2, true)), [from(Some(0))]);
    assert_eq!(asked(&all, (3, true)), []);
    let vlans: Vec<_> = all.vlans.keys().copied().collect();
    assert_eq!(vlans, [(2, false), (2, true), (3, false)]);
    assert_eq!(all.own.len(), 2);
    // where the native VLAN has tags too
    config.tag_native = true;
    let all = super::rules(&config, &ports(), ROUTER);
    assert_eq!(asked(&all, (2, false)), [to(Some(2)), to(Some(3))]);
    assert_eq!(asked(&all, (2, true)), [from(Some(2))]);
    // a port's own goes first
    let port = config.interfaces.get_mut(&name(Kind::Gigabit, 2)).unwrap();
    port.groups = v4("x", "");
    let all = super::rules(&config, &ports(), ROUTER);
    assert_eq!(asked(&all, (2, false)), [(None, false, false)]);
    assert_eq!(asked(&all, (2, true)), [from(Some(2))]);
    assert_eq!(all.listed, [(2, false)].into());
    // a list that is not there, or is empty, lets everything pass
    config
        .lists
        .insert("x".into(), list(ListKind::Standard, &[]));
    assert_eq!(super::rules(&config, &ports(), ROUTER), Rules::default());
    config.lists.clear();
    assert_eq!(super::rules(&config, &ports(), ROUTER), Rules::default());
}

#[test]
fn what_is_not_there_is_refused() {
    let at = |kind, groups| {
        let config = config([(name(kind, 1), groups), nobody()], &[]);
        check(&config, &super::rules(&config, &ports(), ROUTER)).unwrap_err()
    };
    assert!(at(Kind::Gigabit, v4("", "x")).ends_with("is one of what comes in"));
    assert!(
        at(Kind::Loopback, v4("x", ""))
            .ends_with("only ports and VLAN interfaces have access lists")
    );
    let rules = vec![tcp(true, Ports::Eq(1)); RULES / 2];
    let x = (name(Kind::Gigabit, 1), v4("x", ""));
    let config = config([x, nobody()], &[("x", list(ListKind::Extended, &rules))]);
    let why = check(&config, &super::rules(&config, &ports(), ROUTER)).unwrap_err();
    assert_eq!(
        why,
        "port 1: the access lists come to more than 16000 rules, which is the most"
    );
}

#[test]
fn a_list_at_every_vlan_is_refused_before_it_takes_all_memory() {
    let lines = 2_000;
    let mut config = Config::default();
    let rules = vec![Rule::default(); lines];
    config
        .lists
        .insert("x".into(), list(ListKind::Extended, &rules));
    for vid in 2..202 {
        let at = name(Kind::Vlan, vid);
        let mut of = Interface::new(&at);
        of.groups = v4("x", "x");
        config.interfaces.insert(at, of);
        config.vlans.insert(vid, Vlan::default());
    }
    // without a port, its devices' alone
    let all = super::rules(&config, &[], ROUTER);
    let of_vlans: usize = all.vlans.values().map(Vec::len).sum();
    assert!(of_vlans <= OF_VLANS + lines + 1, "{of_vlans}");
    let why = check(&config, &all).unwrap_err();
    assert!(why.contains("VLAN interfaces come to more than"), "{why}");
    // a trunk of all of them
    let trunk = name(Kind::Gigabit, 1);
    let mut of = Interface::new(&trunk);
    of.switchport = Some(Switchport {
        mode: Mode::Trunk,
        ..Switchport::default()
    });
    config.interfaces.insert(trunk, of);
    let all = super::rules(&config, &ports(), ROUTER);
    for rules in all.ports.values() {
        assert!(rules.len() <= RULES + lines + 1, "{}", rules.len());
    }
    let why = check(&config, &all).unwrap_err();
    assert!(why.starts_with("port 1: "), "{why}");
}
