// SPDX-License-Identifier: Apache-2.0
//! `router …`: what lines come to, what is refused, and lines for the properties of all configurations.

use proptest::collection::vec;
use proptest::prelude::*;
use tandem_swconfig::routing::Learned;
use tandem_swconfig::{Config, Net};

use super::{Bench, vlan_interface};
use crate::{load, lock, render};

/// Lines of a router, most of them with a sense.
pub(super) fn line() -> impl Strategy<Value = String> {
    let no = || prop_oneof![4 => Just(""), 1 => Just("no ")];
    let n = || 1u8..4;
    let peer = prop_oneof![
        Just("remote-as 65001"),
        Just("remote-as 65002"),
        Just("description two  words"),
        Just("shutdown"),
        Just("password x"),
        Just("ebgp-multihop 3"),
        Just("update-source Vlan700"),
        Just("update-source loopback 1"),
        Just("timers 1 3"),
        Just("activate"),
        Just("next-hop-self"),
        Just("route-reflector-client"),
    ];
    let from = prop_oneof![
        Just("connected"),
        Just("static metric 5"),
        Just("rip"),
        Just("ospf 1"),
        Just("bgp 65001 metric 3"),
    ];
    let other = prop_oneof![
        Just("version 1"),
        Just("log-adjacency-changes"),
        Just("bgp log-neighbor-changes"),
        Just("bgp default ipv4-unicast"),
        Just("default bgp default ipv4-unicast"),
        Just("passive-interface default"),
        Just("passive-interface Vlan700"),
        Just("passive-interface lo1"),
        Just("default-information originate"),
        Just("default-information originate always"),
        Just("maximum-paths 4"),
        Just("maximum-paths 1"),
        Just("auto-summary"),
        Just("address-family ipv4 unicast"),
        Just("area 2 stub"),
        Just("area 0.0.0.3 nssa no-summary"),
    ];
    prop_oneof![
        (no(), n()).prop_map(|(no, n)| format!("{no}router-id 1.1.1.{n}")),
        (no(), n()).prop_map(|(no, n)| format!("{no}bgp router-id 1.1.1.{n}")),
        (no(), n(), n())
            .prop_map(|(no, n, a)| format!("{no}network 10.{n}.0.1 0.0.0.255 area {a}")),
        (no(), n()).prop_map(|(no, n)| format!("{no}network 10.{n}.0.0 mask 255.255.0.0")),
        (no(), n()).prop_map(|(no, n)| format!("{no}network 10.{n}.0.0")),
        (no(), n(), peer).prop_map(|(no, n, p)| format!("{no}neighbor 10.0.0.{n} {p}")),
        n().prop_map(|n| format!("no neighbor 10.0.0.{n}")),
        (no(), from).prop_map(|(no, f)| format!("{no}redistribute {f}")),
        (no(), other).prop_map(|(no, o)| format!("{no}{o}")),
    ]
}

/// Lines that go to a router, and those of interfaces.
pub(super) fn begin() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("router ospf 1".into()),
        Just("router ospf 2".into()),
        Just("router rip".into()),
        Just("router bgp 65001".into()),
        Just("no router ospf 1".into()),
        Just("no router bgp 65001".into()),
        (0u8..2).prop_map(|n| format!("ip ospf 1 area {n}")),
        Just("ip ospf cost 7".into()),
        Just("ip ospf network point-to-point".into()),
        Just("no ip ospf network".into()),
        Just("no ip ospf 1 area".into()),
    ]
}

/// The routers that such lines come to.
pub(super) fn routers() -> impl Strategy<Value = Config> {
    let heads = ["router ospf 1", "router rip", "router bgp 65001"];
    let one = || proptest::option::of(vec(line(), 0..20));
    [one(), one(), one()].prop_map(move |all| {
        let bench = Bench::new();
        let mut text = String::new();
        for (head, lines) in heads.iter().zip(all) {
            for line in lines.into_iter().flat_map(|l| {
                std::iter::once((*head).to_owned()).chain(l.into_iter().map(|l| format!(" {l}")))
            }) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        let ports = lock(&bench.switch).ports();
        load::read(&Config::default(), &text, &ports, false).0
    })
}

fn set(lines: &[&str]) -> Bench {
    let mut bench = Bench::new();
    bench.set(lines);
    bench
}

#[test]
fn as_ios_writes_it() {
    let mut bench = set(&[
        "interface vlan 10",
        "ip ospf 1 area 0.0.0.0",
        "ip ospf cost 5",
        "router ospf 1",
        "network 10.1.2.3 0.0.255.255 area 0.0.0.1",
        "passive-interface vlan 10",
        "redistribute static subnets metric 3",
        "router-id 1.1.1.1",
        "router-id 2.2.2.2",
        "default-information originate always",
        "router bgp 65001",
        "neighbor 10.0.0.2 remote-as 65002",
        "neighbor 10.0.0.2 update-source vlan 10",
        "address-family ipv4",
        "neighbor 10.0.0.2 next-hop-self",
        "exit-address-family",
        "network 10.9.0.0 mask 255.255.0.0",
        "network 10.0.0.0",
        "no bgp default ipv4-unicast",
        "router rip",
        "version 2",
        "network 192.168.7.9",
        "no auto-summary",
    ]);
    let text = bench.say("show running-config | begin router");
    let wanted = "\
router ospf 1
 router-id 2.2.2.2
 redistribute static metric 3
 passive-interface Vlan10
 network 10.1.0.0 0.0.255.255 area 1
 default-information originate always
!
router rip
 version 2
 network 192.168.7.0
!
router bgp 65001
 no bgp default ipv4-unicast
 network 10.0.0.0
 network 10.9.0.0 mask 255.255.0.0
 neighbor 10.0.0.2 remote-as 65002
 neighbor 10.0.0.2 update-source Vlan10
 neighbor 10.0.0.2 activate
 neighbor 10.0.0.2 next-hop-self
!
end
";
    assert_eq!(text, wanted);
    let text = bench.say("show running-config interface vlan 10");
    assert!(
        text.contains("\n ip ospf 1 area 0\n ip ospf cost 5\n"),
        "{text}"
    );
    // it goes with what of interfaces refers to it
    bench.set(&["no router ospf 1"]);
    let text = bench.say("show running-config interface vlan 10");
    assert!(!text.contains("area") && text.contains("cost 5"), "{text}");
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let mut bench = set(&["router ospf 1", "router bgp 65001", "interface vlan 10"]);
    let before = bench.config();
    bench.say("configure terminal");
    for (below, line, why) in [
        (
            "hostname Switch",
            "router ospf 2",
            "% OSPF process 1 is there already, and is the only one\n",
        ),
        (
            "hostname Switch",
            "router bgp 7",
            "% BGP is already running; AS is 65001\n",
        ),
        ("hostname Switch", "no router rip", "% RIP is not running\n"),
        (
            "interface vlan 10",
            "ip ospf 2 area 0",
            "% OSPF process 1 is there already, and is the only one\n",
        ),
        (
            "interface gi1/0/1",
            "ip ospf cost 3",
            "% GigabitEthernet1/0/1 is a switched port: its VLAN's interface routes\n",
        ),
        (
            "router ospf 1",
            "area 0 stub",
            "% OSPF: Backbone can not be configured as stub or NSSA area\n",
        ),
        (
            "router ospf 1",
            "no network 10.0.0.0 0.255.255.255 area 0",
            "% There is no such network\n",
        ),
        (
            "router bgp 65001",
            "neighbor 10.0.0.2 shutdown",
            "% Specify remote-as or peer-group commands first\n",
        ),
        (
            "router bgp 65001",
            "auto-summary",
            "% Networks are told as they are: no auto-summary is what there is\n",
        ),
        (
            "router bgp 65001",
            "no neighbor 10.0.0.2",
            "% There is no such neighbor\n",
        ),
    ] {
        bench.quiet(&[below]);
        assert_eq!(bench.say(line), why, "{line}");
    }
    // wildcards with holes are none, nor is a mask
    for line in [
        "network 10.0.0.0 0.255.0.255 area 0",
        "network 10.0.0.0 255.0.0.0 area 0",
    ] {
        bench.quiet(&["router ospf 1"]);
        assert!(bench.say(line).contains("marker"), "{line}");
    }
    assert_eq!(bench.config(), before);
}

/// A neighbour stays as it is when the default changes, and what is as usual is not written.
#[test]
fn who_is_told_ipv4_routes() {
    let mut bench = set(&[
        "router bgp 1",
        "neighbor 10.0.0.2 remote-as 2",
        "neighbor 10.0.0.3 remote-as 3",
    ]);
    let mut after = |line: &str| {
        bench.set(&["router bgp 1", line]);
        let text = bench.say("show running-config | section router bgp");
        let lines = text
            .lines()
            .filter(|l| l.contains("activate") || l.contains("default"));
        lines
            .map(|l| l.trim().to_owned())
            .collect::<Vec<_>>()
            .join("; ")
    };
    assert_eq!(after("neighbor 10.0.0.2 activate"), "");
    assert_eq!(
        after("no neighbor 10.0.0.3 activate"),
        "no neighbor 10.0.0.3 activate"
    );
    assert_eq!(
        after("bgp default ipv4-unicast"),
        "no neighbor 10.0.0.3 activate"
    );
    let off = "no bgp default ipv4-unicast; neighbor 10.0.0.2 activate";
    assert_eq!(after("no bgp default ipv4-unicast"), off);
    assert_eq!(after("no bgp default ipv4-unicast"), off);
    assert_eq!(after("no neighbor 10.0.0.3 activate"), off);
    assert_eq!(
        after("default neighbor 10.0.0.2 activate"),
        "no bgp default ipv4-unicast"
    );
    assert_eq!(
        after("neighbor 10.0.0.3 activate"),
        "no bgp default ipv4-unicast; neighbor 10.0.0.3 activate"
    );
    assert_eq!(
        after("bgp default ipv4-unicast"),
        "no neighbor 10.0.0.2 activate"
    );
}

#[test]
fn a_refused_router_takes_its_lines_with_it() {
    let bench = Bench::new();
    let ports = lock(&bench.switch).ports();
    let text = "router ospf 1\n router-id 1.1.1.1\nrouter ospf 2\n router-id 2.2.2.2\nrouter rip\n version 2\n";
    let (config, bad) = load::read(&Config::default(), text, &ports, false);
    assert_eq!(bad.iter().map(|b| b.number).collect::<Vec<_>>(), [3, 4]);
    let lines = render::config(&config, &[]);
    assert!(
        lines.contains(" router-id 1.1.1.1\n!\nrouter rip\n version 2\n"),
        "{lines}"
    );
}

#[test]
fn what_protocols_have_put_into_the_kernel_is_shown() {
    let mut bench = set(&[
        "ip routing",
        "interface vlan 10",
        "ip address 10.0.0.1 255.255.255.0",
        "ip route 30.0.0.0 255.0.0.0 10.0.0.9",
        "ip route 40.0.0.0 255.0.0.0 10.0.0.9 200",
    ]);
    let learned = |to: &str, prefix, code, distance, metric, gateways: &[&str]| Learned {
        to: Net {
            address: to.parse().unwrap(),
            prefix,
        },
        code,
        distance,
        metric,
        age: "00:01:02".into(),
        ways: gateways
            .iter()
            .map(|g| (Some(g.parse().unwrap()), Some(vlan_interface(10))))
            .collect(),
    };
    bench.fake.lock().unwrap().learned = vec![
        learned("0.0.0.0", 0, "O E2", 110, 1, &["10.0.0.2"]),
        learned("20.1.0.0", 16, "O", 110, 20, &["10.0.0.2", "10.0.0.3"]),
        learned("20.2.0.0", 16, "O IA", 110, 30, &["10.0.0.2"]),
        learned("50.0.0.0", 8, "B", 20, 0, &["10.0.0.2"]),
        // a static one is better, or worse; a connected one is best
        learned("30.0.0.0", 8, "O", 110, 20, &["10.0.0.2"]),
        learned("40.0.0.0", 8, "R", 120, 2, &["10.0.0.2"]),
        learned("10.0.0.0", 24, "O", 110, 20, &["10.0.0.2"]),
    ];
    let text = bench.say("show ip route | begin Gateway");
    let wanted = "\
Gateway of last resort is 10.0.0.2 to network 0.0.0.0

O*E2  0.0.0.0/0 [110/1] via 10.0.0.2, 00:01:02, Vlan10
      10.0.0.0/8 is variably subnetted, 2 subnets, 2 masks
C        10.0.0.0/24 is directly connected, Vlan10
L        10.0.0.1/32 is directly connected, Vlan10
      20.0.0.0/16 is subnetted, 2 subnets
O        20.1.0.0 [110/20] via 10.0.0.2, 00:01:02, Vlan10
                  [110/20] via 10.0.0.3, 00:01:02, Vlan10
O IA     20.2.0.0 [110/30] via 10.0.0.2, 00:01:02, Vlan10
S     30.0.0.0/8 [1/0] via 10.0.0.9
R     40.0.0.0/8 [120/2] via 10.0.0.2, 00:01:02, Vlan10
B     50.0.0.0/8 [20/0] via 10.0.0.2, 00:01:02, Vlan10
";
    assert_eq!(text, wanted);
}

#[test]
fn a_note_is_of_the_line_that_was_carried_out_last() {
    let mut bench = Bench::new();
    let away = "% ospfd is away";
    bench.fake.lock().unwrap().away = Some(away);
    let mut line = |line: &str| {
        let out = bench.session.line(line);
        assert!(!out.refused, "{line}: {}", out.text);
        out.text.lines().filter(|l| *l == away).count()
    };
    line("configure terminal");
    assert_eq!(line("router ospf 1"), 1);
    line("end");
    line("write memory");
    assert_eq!(line("configure replace startup-config force"), 0);
    line("configure terminal");
    line("no router ospf 1");
    line("end");
    // each way in which all of it may come
    assert_eq!(line("configure replace startup-config force"), 1);
    for answers in [
        &["configure replace startup-config", "y"][..],
        &["copy startup-config running-config", ""],
        &["reload", "no", ""],
    ] {
        line("configure terminal");
        line("no router ospf 1");
        line("end");
        let said: Vec<usize> = answers.iter().map(|a| line(a)).collect();
        assert_eq!(said.last(), Some(&1), "{answers:?}");
        assert_eq!(said.iter().sum::<usize>(), 1, "{answers:?}");
    }
    // what came of the start is no line's
    let mut bench = Bench::new();
    bench.fake.lock().unwrap().away = Some(away);
    let mut files = bench.files.clone();
    crate::Store::write(&mut files, crate::STARTUP, "router ospf 1\n").unwrap();
    assert_eq!(
        lock(&bench.switch).boot(crate::OnBad::Skip),
        Vec::<String>::new()
    );
    assert_eq!(bench.fake.lock().unwrap().notes, [away]);
    bench.set(&["vlan 7"]);
}

#[test]
fn a_protocol_that_is_one_process_is_told_once() {
    let mut bench = Bench::new();
    bench.set(&[
        "router bgp 65001",
        "redistribute ospf 1 metric 5",
        "redistribute ospf 2",
    ]);
    let text = bench.say("show running-config");
    let lines: Vec<&str> = text
        .lines()
        .filter(|l| l.contains("redistribute"))
        .collect();
    assert_eq!(lines, [" redistribute ospf 2"]);
}
