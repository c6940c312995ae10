// SPDX-License-Identifier: Apache-2.0
//! Random configurations, written and read back.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use tandem_swconfig::acl::{Entry, Groups, List, ListKind, Ports, Rule, Side};
use tandem_swconfig::monitor::{Level, Session, Storm, Ways};
use tandem_swconfig::policy::{Class, Match, Police, Policy};
use tandem_swconfig::snooping::{OfVlan, Snooping};
use tandem_swconfig::tree::{PortTree, Tree};
use tandem_swconfig::users::{Access, Kept, Line, User};
use tandem_swconfig::{
    Config, Interface, Kind, Mode, Name, Net, Route, Switchport, Via, Vlan, channel,
};

use super::{Bench, port};
use crate::{load, lock, render};

/// `spanning-tree` of the switch.
fn tree() -> impl Strategy<Value = Tree> {
    let times = (
        option::of(1u8..=10),
        option::of(4u8..=30),
        option::of(6u8..=40),
    );
    let recovery = (any::<bool>(), option::of(30u32..=86_400));
    let defaults = (any::<bool>(), any::<bool>(), recovery);
    (any::<bool>(), option::of(0u16..=15), times, defaults).prop_map(
        |(
            on,
            priority,
            (hello, forward, max_age),
            (edge_default, guard_default, (recovers, interval)),
        )| Tree {
            on,
            priority: priority.map(|p| p * 4096).filter(|p| *p != 32_768),
            hello: hello.filter(|s| *s != 2),
            forward: forward.filter(|s| *s != 15),
            max_age: max_age.filter(|s| *s != 20),
            edge_default,
            guard_default,
            recovers,
            interval: interval.filter(|s| *s != 300),
        },
    )
}

/// IGMP snooping, or with groups of IPv6 that of MLD.
fn snooping(v6: bool) -> impl Strategy<Value = Snooping> {
    let name = |n: u16| port(1 + n % 10);
    let group = move |n: u8| -> IpAddr {
        match v6 {
            false => IpAddr::from([239, 1, 0, n]),
            true => IpAddr::from([0xff05, 0, 0, 0, 0, 0, 0xabc, n.into()]),
        }
    };
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let some = (
        vec(any::<u16>(), 0..3),
        vec((any::<u8>(), any::<u16>()), 0..3),
    );
    let vlan =
        (flags, some).prop_map(
            move |((off, immediate, querier), (routers, members))| OfVlan {
                off,
                immediate,
                querier,
                routers: routers.into_iter().map(name).collect(),
                members: members
                    .into_iter()
                    .map(|(g, p)| (group(g), name(p)))
                    .collect(),
            },
        );
    let vlans = proptest::collection::btree_map(1u16..=4094, vlan, 0..4);
    (any::<bool>(), any::<bool>(), vlans).prop_map(|(on, querier, mut vlans)| {
        vlans.retain(|_, v| *v != OfVlan::default());
        Snooping { on, querier, vlans }
    })
}

/// `spanning-tree` of a port.
fn port_tree() -> impl Strategy<Value = PortTree> {
    let cost = option::of(1u32..=200_000_000);
    let priority = option::of(0u8..=15);
    let point_to_point = option::of(any::<bool>());
    (cost, priority, any::<bool>(), 0u8..3, point_to_point).prop_map(
        |(cost, priority, edge, guard, point_to_point)| PortTree {
            cost,
            priority: priority.map(|p| p * 16).filter(|p| *p != 128),
            edge,
            guard: guard == 1,
            no_guard: guard == 2,
            point_to_point,
        },
    )
}

fn side(v6: bool) -> impl Strategy<Value = Side> {
    let bits = if v6 { 128u32 } else { 32 };
    (any::<u128>(), any::<u32>(), 0..=bits, 0u8..3).prop_map(
        move |(address, holes, length, how)| {
            let all = if v6 { u128::MAX } else { u32::MAX.into() };
            let care = match how {
                0 => 0,
                1 if !v6 => holes.into(),
                _ => all & all.checked_shl(bits - length).unwrap_or(0),
            };
            let address = address & care;
            Side { address, care }
        },
    )
}

fn ports_of_rule() -> impl Strategy<Value = Ports> {
    let port = || prop_oneof![any::<u16>(), 0u16..600];
    prop_oneof![
        Just(Ports::Any),
        port().prop_map(Ports::Eq),
        port().prop_map(Ports::Neq),
        port().prop_map(Ports::Gt),
        port().prop_map(Ports::Lt),
        (port(), port()).prop_map(|(a, b)| Ports::Range(a.min(b), a.max(b))),
    ]
}

fn rule(kind: ListKind) -> impl Strategy<Value = Rule> {
    let v6 = kind == ListKind::Ipv6;
    let protocol = option::of(prop_oneof![
        Just(6u8),
        Just(17),
        Just(if v6 { 58 } else { 1 }),
        any::<u8>()
    ]);
    let icmp = option::of((any::<u8>(), option::of(any::<u8>())));
    (
        (any::<bool>(), protocol, side(v6), side(v6)),
        (ports_of_rule(), ports_of_rule(), icmp),
        (
            any::<bool>(),
            any::<bool>(),
            option::of(0u8..64),
            any::<bool>(),
        ),
    )
        .prop_map(
            move |(
                (permit, protocol, from, to),
                (from_ports, to_ports, icmp),
                (established, fragments, dscp, log),
            )| {
                let mut rule = Rule {
                    permit,
                    from,
                    log,
                    ..Rule::default()
                };
                if kind == ListKind::Standard {
                    return rule;
                }
                (rule.protocol, rule.to, rule.dscp) = (protocol, to, dscp);
                if matches!(protocol, Some(6 | 17)) {
                    (rule.from_ports, rule.to_ports) = (from_ports, to_ports);
                }
                rule.established = established && protocol == Some(6);
                rule.icmp = icmp.filter(|_| protocol == Some(if v6 { 58 } else { 1 }));
                rule.fragments = fragments && !rule.is_deep();
                rule
            },
        )
}

fn list(kind: ListKind) -> impl Strategy<Value = List> {
    let remark = "[!-~]([ -~]{0,30}[!-~])?".prop_map(Entry::Remark);
    let entry = prop_oneof![3 => rule(kind).prop_map(Entry::Rule), 1 => remark];
    proptest::collection::btree_map(1u32..=2_147_483_647, entry, 0..6)
        .prop_map(move |entries| List { kind, entries })
}

type Lists = std::collections::BTreeMap<String, List>;

/// Lists of IPv4 and of IPv6.
fn lists() -> impl Strategy<Value = (Lists, Lists)> {
    let some = |names: [&'static str; 2], kind| {
        let name = prop_oneof![Just(names[0].to_owned()), Just(names[1].to_owned())];
        proptest::collection::btree_map(name, list(kind), 0..3)
    };
    let standard = some(["1300", "web"], ListKind::Standard);
    let extended = some(["100", "Mail-in"], ListKind::Extended);
    (standard, extended, some(["web", "six"], ListKind::Ipv6)).prop_map(|(mut four, more, six)| {
        four.extend(more);
        (four, six)
    })
}

fn groups(name: Name) -> impl Strategy<Value = Groups> {
    let one = || {
        option::weighted(
            0.2,
            prop_oneof![Just("web".to_owned()), Just("six".to_owned())],
        )
    };
    (one(), one(), one(), one()).prop_map(move |(ipv4_in, ipv4_out, ipv6_in, ipv6_out)| {
        let out = name.kind == Kind::Vlan;
        match out || name.is_port() {
            true => Groups {
                ipv4_in,
                ipv6_in,
                ipv4_out: ipv4_out.filter(|_| out),
                ipv6_out: ipv6_out.filter(|_| out),
            },
            false => Groups::default(),
        }
    })
}

fn policies() -> impl Strategy<Value = Vec<(String, Policy)>> {
    let police = option::of((8000u32.., option::of(9238u32..512_000_000)));
    let police = police.prop_map(|p| p.map(|(rate, burst)| Police { rate, burst }));
    let classes = proptest::collection::btree_map(
        prop_oneof![Just("gold"), Just("none")],
        police.clone(),
        0..3,
    );
    let policy = (classes, option::of(police)).prop_map(|(classes, rest)| {
        let mut all: Vec<_> = classes
            .into_iter()
            .map(|(n, p)| (n.to_owned(), p))
            .collect();
        all.extend(rest.map(|p| ("class-default".to_owned(), p)));
        ("in".to_owned(), Policy { classes: all })
    });
    vec(policy, 0..2)
}

fn classes() -> impl Strategy<Value = Vec<(String, Class)>> {
    let line = prop_oneof![
        (1u32..2700).prop_map(Match::Number),
        Just(Match::List("web".into())),
        (0u8..64).prop_map(Match::Dscp),
        Just(Match::Any),
    ];
    let class = (any::<bool>(), btree_set(line, 0..4));
    vec(
        class.prop_map(|(any, matches)| ("gold".to_owned(), Class { any, matches })),
        0..2,
    )
}

fn storm() -> impl Strategy<Value = Storm> {
    let level = || {
        option::weighted(
            0.2,
            prop_oneof![
                (0u32..=10_000).prop_map(Level::Percent),
                (1u32..).prop_map(Level::Pps),
                (8000u32..).prop_map(Level::Bps),
            ],
        )
    };
    (level(), level(), level()).prop_map(|(broadcast, multicast, unicast)| Storm {
        broadcast,
        multicast,
        unicast,
    })
}

/// Ports 1 to 5 are sources, a session's own port is where its copies go.
fn sessions() -> impl Strategy<Value = std::collections::BTreeMap<u8, Session>> {
    let ways = prop_oneof![Just((true, true)), Just((true, false)), Just((false, true))];
    let ways = ways.prop_map(|(rx, tx)| Ways { rx, tx });
    let sources = proptest::collection::btree_map((1u16..6).prop_map(port), ways, 0..3);
    let session = move |n: u8| {
        (sources.clone(), any::<bool>()).prop_map(move |(sources, to)| {
            let destination = to.then(|| port(u16::from(n) + 5));
            (
                n,
                Session {
                    sources,
                    destination,
                },
            )
        })
    };
    vec((1u8..5).prop_flat_map(session), 0..3).prop_map(|all| {
        let some = |(_, s): &(u8, Session)| *s != Session::default();
        all.into_iter().filter(some).collect()
    })
}

/// A switched or a routed port's, a VLAN interface's or a loopback's; `at` is its own, so that no addresses overlap.
fn interface(name: Name, at: u8) -> impl Strategy<Value = Interface> {
    let description = option::of("[!-~]([ -~]{0,30}[!-~])?");
    let switchport = (
        any::<bool>(),
        1u16..=4094,
        1u16..=4094,
        option::of(prop_oneof![
            Just(BTreeSet::new()),
            btree_set(1u16..=4094, 0..300)
        ]),
    );
    let addresses = (
        option::of(8u8..=30),
        btree_set(2u8..250, 0..3),
        btree_set(1u16..9, 0..3),
    );
    (
        description,
        any::<bool>(),
        option::of(68u32..=9216),
        option::of(switchport),
        addresses,
        option::of(port_tree()),
        (groups(name), storm(), super::services::helpers()),
    )
        .prop_map(
            move |(
                description,
                shutdown,
                mtu,
                switchport,
                (ipv4, secondary, ipv6),
                tree,
                (groups, storm, helpers),
            )| {
                let mut set = Interface {
                    description,
                    shutdown,
                    mtu: mtu.filter(|m| *m != 1500),
                    tree: tree.filter(|_| name.is_port()).unwrap_or_default(),
                    groups,
                    storm: Some(storm).filter(|_| name.is_port()).unwrap_or_default(),
                    ..Interface::new(&name)
                };
                match switchport.filter(|_| name.is_port()) {
                    Some((trunk, access, native, allowed)) => {
                        let mode = if trunk { Mode::Trunk } else { Mode::Access };
                        set.switchport = Some(Switchport {
                            mode,
                            access,
                            native,
                            allowed,
                        });
                    }
                    None => {
                        set.switchport = None;
                        let net = |b: u8, prefix| Net {
                            address: Ipv4Addr::new(at + 10, b, 0, 1),
                            prefix,
                        };
                        set.ipv4 = ipv4.map(|prefix| net(1, prefix.max(16)));
                        if ipv4.is_some() {
                            set.secondary = secondary.iter().map(|b| net(*b, 24)).collect();
                        }
                        let six = |n: &u16| Ipv6Addr::new(0x2001, 0xdb8, at.into(), *n, 0, 0, 0, 1);
                        set.helpers = helpers;
                        set.ipv6 = ipv6
                            .iter()
                            .map(|n| Net {
                                address: six(n),
                                prefix: 64,
                            })
                            .collect();
                    }
                }
                set
            },
        )
}

fn route() -> impl Strategy<Value = Route> {
    let four = (any::<u32>(), 0u8..=32, option::of(1u8..=9)).prop_map(|(bits, prefix, gateway)| {
        let address = crate::change::network4(Net {
            address: bits.into(),
            prefix,
        });
        (
            IpAddr::V4(address),
            prefix,
            gateway.map(|g| IpAddr::V4(Ipv4Addr::new(9, 0, 0, g))),
        )
    });
    let six =
        (any::<u128>(), 0u8..=128, option::of(1u16..=9)).prop_map(|(bits, prefix, gateway)| {
            let address = crate::change::network6(Net {
                address: bits.into(),
                prefix,
            });
            let gateway = gateway.map(|g| IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, g)));
            (IpAddr::V6(address), prefix, gateway)
        });
    (prop_oneof![four, six], 1u8..=254).prop_map(|((address, prefix, gateway), distance)| Route {
        to: Net { address, prefix },
        via: gateway.map_or(Via::Null, Via::Gateway),
        distance,
    })
}

fn line() -> impl Strategy<Value = Line> {
    let timeout = option::of(0u32..100_000);
    (timeout, any::<bool>(), option::of(0u8..=15), any::<bool>()).prop_map(
        |(timeout, login, level, synchronous)| Line {
            timeout: timeout.filter(|s| *s != 600),
            login,
            level: level.filter(|l| *l != 1),
            synchronous,
        },
    )
}

/// Users, secrets that others have kept, banners, lines.
fn access() -> impl Strategy<Value = Access> {
    let kept = || {
        let all = [
            "5 $1$28772684$iEwNOgGugqO9.bIz5sk8k/",
            "9 $9$2MJBozw/9R3UsU$2lFhcKvpghcyw8deP25GOfyZaagyUOGBymkryvOdfo6",
            "9 $argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAA",
        ];
        (0..all.len()).prop_map(move |i| Kept(all[i].into()))
    };
    let user = (option::of(0u8..=15), option::of(kept()));
    let users = btree_map(
        "[a-z][a-zA-Z0-9._-]{0,8}",
        user.prop_map(|(level, secret)| User { level, secret }),
        0..5,
    );
    let banner = || {
        option::of(
            "[ -\\]_-~]{1,20}(\n[ -\\]_-~]{0,20}){0,4}".prop_filter("ends", |t| !t.ends_with('\n')),
        )
    };
    let vty = (line(), line(), 0usize..=16)
        .prop_map(|(a, b, at)| std::array::from_fn(|i| if i < at { a.clone() } else { b.clone() }));
    let enable = btree_map(1u8..=15, kept(), 0..3);
    (
        any::<bool>(),
        enable,
        users,
        banner(),
        banner(),
        option::of(line()),
        option::of(vty),
    )
        .prop_map(
            |(encryption, enable, users, motd, before_login, console, vty)| Access {
                encryption,
                enable,
                users,
                motd,
                before_login,
                console: console.unwrap_or_default(),
                vty: vty.unwrap_or_default(),
            },
        )
}

fn vlan() -> impl Strategy<Value = Vlan> {
    (option::of("[a-z][!-~]{0,20}"), any::<bool>())
        .prop_map(|(name, suspended)| Vlan { name, suspended })
}

/// A switched port comes into a port-channel, which begins as it is.
fn add_to_channel(config: &mut Config, port: Name, number: u16) {
    let mut set = config.interface(&port);
    if set.switchport.is_none() {
        return;
    }
    let group = channel::name(number);
    let mut new = Interface::new(&group);
    new.follow(&set);
    new.shutdown = number == 2;
    set.follow(config.interfaces.entry(group).or_insert(new));
    let mode = match number {
        1 => channel::Mode::Active,
        _ => channel::Mode::On,
    };
    set.channel = Some(channel::Channel { number, mode });
    config.interfaces.insert(port, set);
}

pub(super) fn config() -> impl Strategy<Value = Config> {
    let loopbacks = (0..4).map(|n| Name {
        kind: Kind::Loopback,
        number: n,
    });
    let vlans = (1..6).map(|n| Name {
        kind: Kind::Vlan,
        number: n * 700,
    });
    let names: Vec<Name> = (1..=10).map(port).chain(loopbacks).chain(vlans).collect();
    let one = |(at, name): (usize, Name)| {
        option::weighted(0.6, interface(name, at as u8))
            .prop_map(move |set| set.map(|set| (name, set)))
    };
    let interfaces: Vec<_> = names.into_iter().enumerate().map(one).collect();
    let switch = (
        option::of("[a-z][a-z0-9-]{0,10}[a-z]"),
        any::<bool>(),
        any::<bool>(),
        option::of(10u32..=1_000_000),
    );
    let stations = vec((1u16..=4094, any::<[u8; 6]>(), 1u16..=10), 0..5);
    let neighbours = btree_map(1u8..=200, any::<[u8; 5]>(), 0..4);
    let ids = proptest::collection::btree_map(2u16..=4094, vlan(), 0..200);
    let channels = proptest::collection::btree_map(1u16..=10, 1u16..=3, 0..5);
    (
        switch,
        ids,
        interfaces,
        vec(route(), 0..8),
        (stations, neighbours),
        (
            tree(),
            access(),
            super::services::services(),
            snooping(false),
            snooping(true),
        ),
        super::routing::routers(),
        (lists(), sessions(), classes(), policies(), channels),
    )
        .prop_map(
            |(
                (hostname, routing, tag_native, aging),
                vlans,
                interfaces,
                routes,
                (stations, neighbours),
                (tree, access, services, igmp, mld),
                routers,
                ((lists, lists6), sessions, classes, policies, channels),
            )| {
                let mut config = Config {
                    hostname,
                    routing,
                    tag_native,
                    neighbours: neighbours
                        .into_iter()
                        .map(|(last, [a, b, c, d, e])| {
                            (Ipv4Addr::new(10, 2, 0, last), [2, a, b, c, d, e])
                        })
                        .collect(),
                    aging: aging.filter(|a| *a != 300),
                    tree,
                    igmp,
                    mld,
                    access,
                    services,
                    routers: routers.routers,
                    lists,
                    lists6,
                    sessions,
                    classes: classes.into_iter().collect(),
                    policies: policies.into_iter().collect(),
                    ..Config::default()
                };
                let mut names = BTreeSet::new();
                for (id, mut vlan) in vlans {
                    // a name is one VLAN's
                    vlan.name = vlan
                        .name
                        .filter(|n| n != "default" && names.insert(n.clone()));
                    config.vlans.insert(id, vlan);
                }
                for (name, set) in interfaces.into_iter().flatten() {
                    if !name.is_port() || set != Interface::new(&name) {
                        config.interfaces.insert(name, set);
                    }
                }
                for route in routes {
                    config
                        .routes
                        .retain(|r| !(r.to == route.to && r.via == route.via));
                    config.routes.insert(route);
                }
                for (vlan, mut mac, at) in stations {
                    mac[0] = mac[0] & 0xfe | 2;
                    config.stations.insert((vlan, mac), port(at));
                }
                for (at, number) in channels {
                    add_to_channel(&mut config, port(at), number);
                }
                config
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    /// What is written is read back as it was, with no bad line, and each line is one that may be typed.
    #[test]
    fn read_back(config in config()) {
        let bench = Bench::new();
        let (names, ports) = { let s = lock(&bench.switch); (s.engine.ports(), s.ports()) };
        let text = render::config(&config, &names);
        let (read, bad) = load::read(&Config::default(), &text, &ports, false);
        prop_assert_eq!(&bad, &Vec::new());
        prop_assert_eq!(&read, &config);
        prop_assert!(text.lines().all(|l| l.len() <= load::LINE_MOST));
        prop_assert_eq!(load::differences(&read, &config), "");
    }

    /// From one configuration to another by `configure replace`: whole.
    #[test]
    fn replaced(from in config(), to in config()) {
        let mut bench = Bench::new();
        let names = lock(&bench.switch).engine.ports();
        lock(&bench.switch).apply(from.clone()).unwrap();
        let text = render::config(&to, &names);
        bench.files.0.lock().unwrap().insert("x".into(), text);
        let said = bench.say("configure replace x force");
        prop_assert!(said.ends_with("Rollback Done\n"), "{}", said);
        prop_assert_eq!(bench.config(), to);
    }

    /// Any lines leave a configuration that is written and read back.
    #[test]
    fn any_lines_leave_what_can_be_kept(lines in vec(typed(), 0..40)) {
        let mut bench = Bench::new();
        bench.say("conf t");
        for line in &lines {
            bench.say(line);
        }
        let (config, text, ports) = {
            let s = lock(&bench.switch);
            (Config::clone(&s.config), render::config(&s.config, &s.engine.ports()), s.ports())
        };
        let (read, bad) = load::read(&Config::default(), &text, &ports, false);
        prop_assert_eq!(&bad, &Vec::new(), "{:?}", lines);
        prop_assert_eq!(&read, &config, "{:?}", lines);
        let applied = bench.fake.lock().unwrap().applied.last().cloned().unwrap_or_default();
        prop_assert_eq!(applied, config);
    }
}

/// Lines that are likely to do something, and to get in each other's way.
fn typed() -> impl Strategy<Value = String> {
    let vlan = || (1u16..6).prop_map(|v| v.to_string());
    let net = || {
        (
            1u8..4,
            0u8..3,
            prop_oneof![Just("255.255.0.0"), Just("255.255.255.0")],
        )
    };
    prop_oneof![
        vlan().prop_map(|v| format!("vlan {v}")),
        vlan().prop_map(|v| format!("no vlan {v}")),
        vlan().prop_map(|v| format!("name VLAN000{v}")),
        vlan().prop_map(|v| format!("name n{v}")),
        Just("state suspend".into()),
        Just("no name".into()),
        (1u16..11).prop_map(|n| format!("interface {}", port(n))),
        vlan().prop_map(|v| format!("interface vlan {v}")),
        vlan().prop_map(|v| format!("no interface vlan {v}")),
        Just("interface loopback 0".into()),
        Just("interface range gi1/0/1 - 3 , vlan 2".into()),
        Just("interface range gi1/0/1-4".into()),
        vlan().prop_map(|v| format!("switchport access vlan {v}")),
        vlan().prop_map(|v| format!("switchport trunk native vlan {v}")),
        (
            vlan(),
            prop_oneof![Just("add "), Just("remove "), Just("except "), Just("")]
        )
            .prop_map(|(v, how)| format!("switchport trunk allowed vlan {how}{v}")),
        Just("switchport mode trunk".into()),
        Just("switchport".into()),
        Just("no switchport".into()),
        Just("shutdown".into()),
        (1u16..4).prop_map(|n| format!("channel-group {n} mode on")),
        (1u16..4).prop_map(|n| format!("channel-group {n} mode active")),
        Just("no channel-group".into()),
        (1u16..4).prop_map(|n| format!("interface port-channel {n}")),
        (1u16..4).prop_map(|n| format!("no interface port-channel {n}")),
        (1u16..4).prop_map(|n| format!("default interface port-channel {n}")),
        (1u16..4).prop_map(|n| format!("default interface {}", port(n))),
        Just("interface range po1 , gi1/0/1 - 2".into()),
        Just("mtu 2000".into()),
        Just("default shutdown".into()),
        Just("description  two  words ".into()),
        net().prop_map(|(a, b, mask)| format!("ip address 10.{a}.{b}.1 {mask}")),
        net().prop_map(|(a, b, mask)| format!("ip address 10.{a}.{b}.2 {mask} secondary")),
        net().prop_map(|(a, b, mask)| format!("no ip address 10.{a}.{b}.1 {mask}")),
        net().prop_map(|(a, b, mask)| format!("no ip address 10.{a}.{b}.2 {mask} secondary")),
        Just("no ip address".into()),
        net().prop_map(|(a, b, _)| format!("ipv6 address 2001:db8:{a}::{b}:1/64")),
        net().prop_map(|(a, b, _)| format!("ip route 20.0.0.0 255.0.0.0 10.{a}.{b}.1 {a}")),
        net().prop_map(|(a, b, _)| format!("no ip route 20.0.0.0 255.0.0.0 10.{a}.{b}.1")),
        Just("ip routing".into()),
        super::routing::begin(),
        super::routing::line(),
        Just("hostname x".into()),
        (0u32..5).prop_map(|n| format!("spanning-tree priority {}", n * 2048)),
        (6u32..30).prop_map(|n| format!("spanning-tree max-age {n}")),
        vlan().prop_map(|v| format!("ip igmp snooping vlan {v}")),
        vlan().prop_map(|v| format!("no ip igmp snooping vlan {v}")),
        vlan().prop_map(|v| format!("ip igmp snooping vlan {v} immediate-leave")),
        vlan().prop_map(|v| format!("no ipv6 mld snooping vlan {v} mrouter interface gi1/0/1")),
        vlan().prop_map(|v| format!("ipv6 mld snooping vlan {v} mrouter interface gi1/0/1")),
        Just("spanning-tree mode rstp".into()),
        Just("no spanning-tree mode".into()),
        Just("spanning-tree portfast".into()),
        Just("spanning-tree bpduguard enable".into()),
        Just("spanning-tree bpduguard disable".into()),
        Just("spanning-tree portfast default".into()),
        Just("spanning-tree portfast bpduguard default".into()),
        Just("no spanning-tree portfast default".into()),
        Just("errdisable recovery cause bpduguard".into()),
        (30u32..400).prop_map(|n| format!("errdisable recovery interval {n}")),
        Just("spanning-tree link-type shared".into()),
        (0u32..5).prop_map(|n| format!("spanning-tree port-priority {}", n * 8)),
        Just("no spanning-tree portfast".into()),
        Just("mac address-table static 0011.2233.4455 vlan 2 interface gi1/0/1".into()),
        Just("username bob privilege 3".into()),
        Just(
            "username bob secret 9 $9$2MJBozw/9R3UsU$2lFhcKvpghcyw8deP25GOfyZaagyUOGBymkryvOdfo6"
                .into()
        ),
        Just("no username bob".into()),
        Just("banner motd #".into()),
        Just("banner login #a#b".into()),
        Just("#".into()),
        Just("line con 0".into()),
        Just("line vty 3 9".into()),
        (0u32..12).prop_map(|n| format!("exec-timeout {n} 0")),
        Just("privilege level 4".into()),
        Just("login local".into()),
        Just("default exec-timeout".into()),
        Just("exit".into()),
        Just("access-list 10 permit 10.0.0.0 0.255.255.255".into()),
        Just("access-list 10 deny any log".into()),
        Just("no access-list 10".into()),
        Just("ip access-list extended web".into()),
        Just("ip access-list standard web".into()),
        Just("ip access-list resequence web 5 5".into()),
        (0u32..4).prop_map(|n| format!("{} permit tcp any any eq {n}", n * 5 + 5)),
        Just("permit host 10.0.0.1".into()),
        Just("remark  two  words ".into()),
        Just("no 10".into()),
        Just("ipv6 access-list web".into()),
        Just("permit icmp any host 2001:db8::1 echo-request".into()),
        Just("no ipv6 access-list web".into()),
        Just("ip access-group web in".into()),
        Just("ip access-group 10 out".into()),
        Just("ipv6 traffic-filter web in".into()),
        Just("no ip access-group in".into()),
        Just("storm-control broadcast level 1.5".into()),
        Just("storm-control multicast level pps 7".into()),
        Just("no storm-control broadcast level".into()),
        (1u16..4, 1u16..4)
            .prop_map(|(n, p)| format!("monitor session {n} source interface {} rx", port(p))),
        (1u16..4, 1u16..4)
            .prop_map(|(n, p)| format!("no monitor session {n} source interface {}", port(p))),
        (1u16..4, 1u16..4)
            .prop_map(|(n, p)| format!("monitor session {n} destination interface {}", port(p))),
        Just("no monitor session 1".into()),
        Just("class-map gold".into()),
        Just("match access-group 10".into()),
        Just("match ip dscp ef".into()),
        Just("no match dscp 46".into()),
        Just("policy-map in".into()),
        Just("class gold".into()),
        Just("class class-default".into()),
        Just("no class gold".into()),
        Just("police 8000 10000 exceed-action drop".into()),
        Just("no police".into()),
        Just("service-policy input in".into()),
        (0u8..9).prop_map(|n| format!("logging buffered 5000 {n}")),
        Just("no logging buffered".into()),
        Just("no logging on".into()),
        Just("default logging trap".into()),
        Just("logging host 10.0.0.9".into()),
        Just("no logging 10.0.0.9".into()),
        Just("clock timezone X -0 30".into()),
        Just("ntp server 10.0.0.9 prefer iburst".into()),
        Just("snmp-server community public".into()),
        Just("snmp-server location  two  words ".into()),
        Just("ip helper-address 10.0.0.9".into()),
        Just("no ip helper-address".into()),
    ]
}
