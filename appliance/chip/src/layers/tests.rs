// SPDX-License-Identifier: Apache-2.0
use tandem_swconfig::monitor::{Session, Ways};
use tandem_swconfig::{Kind, Name};

use super::*;

fn ruled(set: impl FnOnce(&mut Filter)) -> Ruled {
    let mut filter = nothing_yet();
    set(&mut filter);
    let of = vec![(false, filter.text.clone(), 1)];
    Ruled { filter, of }
}

fn proto(text: &str, number: u8, verdict: FilterVerdict) -> Ruled {
    ruled(|f| {
        f.text = text.into();
        (f.fields.protocol, f.mask.protocol) = (number, 255);
        f.verdict = verdict;
    })
}

fn texts(rules: &[Ruled]) -> Vec<&str> {
    rules.iter().map(|r| r.filter.text.as_str()).collect()
}

use FilterVerdict::{Drop, Permit};

#[test]
fn each_of_two_lists_has_its_say() {
    let port = |text: &str, ports| {
        ruled(|f| {
            f.text = text.into();
            f.dst_ports = Some(ports);
        })
    };
    let limits = vec![port("low", (0, 99)), port("high", (1000, 2000))];
    let list = vec![
        ruled(|f| {
            f.text = "web".into();
            f.dst_ports = Some((80, 1000));
        }),
        proto("tcp", 6, Drop),
    ];
    let all = product(limits, list);
    assert_eq!(
        texts(&all),
        [
            "low; web",
            "low; tcp",
            "low",
            "high; web",
            "high; tcp",
            "high",
            "web",
            "tcp"
        ]
    );
    let ports: Vec<_> = all.iter().map(|r| r.filter.dst_ports).collect();
    assert_eq!(
        ports[..4],
        [
            Some((80, 99)),
            Some((0, 99)),
            Some((0, 99)),
            Some((1000, 1000))
        ]
    );
    assert_eq!(
        (all[1].filter.verdict, all[2].filter.verdict),
        (Drop, Permit)
    );
    assert_eq!(all[0].of.len(), 2);
    // what is denied is denied; what nothing meets is not there; what the CPU is asked is asked alone
    let first = vec![proto("udp", 17, Drop), proto("icmp", 1, Permit), {
        let mut ask = proto("ask", 6, Permit);
        ask.filter.kernel = Some("the CPU's".into());
        ask
    }];
    let all = product(first, vec![proto("tcp", 6, Drop)]);
    assert_eq!(texts(&all), ["udp", "icmp", "ask", "tcp"]);
    assert_eq!(product(vec![], all.clone()), all);
    assert_eq!(product(all.clone(), vec![]), all);
    let mut asks = proto("ask", 6, Permit);
    asks.filter.kernel = Some("the CPU's".into());
    let all = product(vec![proto("all tcp", 6, Permit)], vec![asks]);
    assert!(all[0].filter.kernel.is_some());
}

#[test]
fn limits_are_policers() {
    let none = |storm: &Storm| super::storm(7, 1000, storm);
    assert_eq!(none(&Storm::default()), []);
    let rules = none(&Storm {
        broadcast: Some(Level::Percent(150)),
        multicast: Some(Level::Pps(50)),
        unicast: Some(Level::Percent(0)),
    });
    assert_eq!(
        texts(&rules),
        [
            "what is for the link alone",
            "storm-control broadcast",
            "storm-control multicast",
            "storm-control unicast"
        ]
    );
    let police: Vec<_> = rules
        .iter()
        .map(|r| {
            r.filter
                .police
                .map(|p| (p.index, p.packets, p.rate, p.burst))
        })
        .collect();
    let index = |n: u32| 0x8000_0000 | 7 << 8 | n;
    // 1.5 % of 1 Gb/s
    assert_eq!(
        police,
        [
            None,
            Some((index(0), false, 1_875_000, 187_500)),
            Some((index(1), true, 50, 5)),
            None
        ]
    );
    assert_eq!(
        (rules[0].filter.verdict, rules[3].filter.verdict),
        (Permit, Drop)
    );
    // a broadcast is no group's, and a frame of any length passes a full bucket
    let rules = none(&Storm {
        multicast: Some(Level::Bps(8000)),
        ..Storm::default()
    });
    let police: Vec<_> = rules
        .iter()
        .map(|r| r.filter.police.map(|p| (p.rate, p.burst)))
        .collect();
    assert_eq!(police, [None, None, Some((1000, 9238))]);
    let rules = none(&Storm {
        unicast: Some(Level::Pps(3)),
        ..Storm::default()
    });
    assert_eq!(rules.len(), 2);
    assert_eq!(rules[1].filter.police.map(|p| p.burst), Some(1));
}

fn port(number: u16) -> Name {
    Name {
        kind: Kind::Gigabit,
        number,
    }
}

/// Port 1 both ways to port 3, port 2 in alone.
fn config() -> Config {
    let mut config = Config::default();
    let both = Ways { rx: true, tx: true };
    let session = Session {
        sources: [(port(1), both), (port(2), Ways { tx: false, ..both })].into(),
        destination: Some(port(3)),
    };
    config.sessions.insert(1, session);
    config
}

#[test]
fn copies_are_of_all_that_there_is() {
    let mut config = config();
    let ports: Vec<(Name, u32)> = (1..=3).map(|n| (port(n), 1000)).collect();
    config.interfaces.insert(port(1), {
        let mut of = tandem_swconfig::Interface::new(&port(1));
        of.storm.broadcast = Some(Level::Pps(1));
        of
    });
    let all = crate::acl::rules(&config, &ports, [2; 6]);
    assert_eq!(crate::acl::check(&config, &all), Ok(()));
    let keys: Vec<_> = all.ports.keys().copied().collect();
    assert_eq!(keys, [(1, false), (1, true), (2, false)]);
    assert_eq!(
        all.copies,
        [((1, false), 3), ((1, true), 3), ((2, false), 3)].into()
    );
    let to = Some(Database::device(3));
    assert!(all.ports.values().flatten().all(|r| r.filter.mirror == to));
    assert_eq!(
        texts(&all.ports[&(1, false)]),
        [
            "what is for the link alone",
            "storm-control broadcast",
            "monitor session"
        ]
    );
    let limit = (1, "storm-control broadcast".to_owned());
    assert_eq!(all.limits, [(0x8000_0100, limit)].into());
    // where copies go is in no VLAN
    let set = crate::acl::without_monitors(&config);
    let switchport = set.interface(&port(3)).switchport.unwrap();
    assert_eq!(switchport.allowed, Some(Default::default()));
    assert_eq!(set.interface(&port(1)), config.interface(&port(1)));
    // without a destination nothing is copied
    config.sessions.get_mut(&1).unwrap().destination = None;
    let all = crate::acl::rules(&config, &ports, [2; 6]);
    assert_eq!((all.ports.len(), all.copies.len()), (1, 0));
}

#[test]
fn sessions_that_can_not_be() {
    let refused = |set: fn(&mut Config)| {
        let mut config = config();
        set(&mut config);
        let ports: Vec<(Name, u32)> = (1..=3).map(|n| (port(n), 1000)).collect();
        crate::acl::check(&config, &crate::acl::rules(&config, &ports, [2; 6])).err()
    };
    assert_eq!(refused(|_| {}), None);
    let why = refused(|c| {
        let mut second = c.sessions[&1].clone();
        second.destination = Some(port(4));
        c.sessions.insert(2, second);
    });
    assert_eq!(
        why.as_deref(),
        Some(
            "GigabitEthernet1/0/1: sessions 1 and 2 copy the same frames, and the chip copies each once"
        )
    );
    // the other way of the same port is another session's
    let why = refused(|c| {
        let mut second = c.sessions[&1].clone();
        second.destination = Some(port(4));
        second.sources = [(
            port(2),
            Ways {
                rx: false,
                tx: true,
            },
        )]
        .into();
        c.sessions.insert(2, second);
    });
    assert_eq!(why, None);
    let why = refused(|c| c.sessions.get_mut(&1).unwrap().destination = Some(port(2)));
    assert!(why.is_some_and(|w| w.ends_with("copies can't be sent there")));
    let why = refused(|c| {
        let second = Session {
            destination: Some(port(3)),
            ..Session::default()
        };
        c.sessions.insert(2, second);
    });
    assert!(why.is_some_and(|w| w.ends_with("is the destination of two sessions")));
}
