// SPDX-License-Identifier: Apache-2.0
//! Port-channels: what is typed, what is kept, what is shown.

use tandem_swconfig::channel::{Channel, Mode, name};

use super::{Bench, port};

/// Ports 1, 2 and 3 as a trunk; 1 and 3 have carrier.
fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.set(&[
        "vlan 2",
        "interface gi1/0/1",
        "switchport mode trunk",
        "mtu 2000",
    ]);
    bench.say("conf t");
    bench.say("interface range gi1/0/1-3");
    assert_eq!(
        bench.say("channel-group 1 mode on"),
        "Creating a port-channel interface Port-channel 1\n"
    );
    bench.say("end");
    bench
}

fn block(bench: &mut Bench, interface: &str) -> Vec<String> {
    let text = bench.say(&format!("show running-config interface {interface}"));
    let lines = text.lines().skip(5).take_while(|l| *l != "end");
    lines.map(|l| l.trim().to_owned()).collect()
}

#[test]
fn its_ports_follow() {
    let mut bench = bench();
    let config = bench.config();
    let channel = Channel {
        number: 1,
        mode: Mode::On,
    };
    for n in 1..=3 {
        let of = config.interface(&port(n));
        assert_eq!(of.channel, Some(channel));
        assert!(of.follows(&config.interface(&name(1))));
    }
    // it began as its first port was, and says it once
    let trunk = ["switchport mode trunk", "mtu 2000"];
    assert_eq!(block(&mut bench, "po1"), trunk);
    assert_eq!(block(&mut bench, "gi1/0/2"), ["channel-group 1 mode on"]);
    bench.set(&[
        "interface port-channel 1",
        "switchport trunk allowed vlan 2",
        "no mtu",
        "spanning-tree cost 7",
        "description both",
        "interface gi1/0/2",
        "description one",
        "shutdown",
    ]);
    let config = bench.config();
    let [two, three] = [2, 3].map(|n| config.interface(&port(n)));
    let group = config.interface(&name(1));
    assert!(two.follows(&group) && three.follows(&group));
    assert_eq!((three.tree.cost, three.mtu), (Some(7), None));
    assert!(two.shutdown && !three.shutdown && !group.shutdown);
    assert_eq!(
        block(&mut bench, "gi1/0/2"),
        ["description one", "channel-group 1 mode on", "shutdown"]
    );
    // port-channels stand in front of ports
    let text = bench.say("show running-config");
    let at = |what: &str| text.find(what).unwrap();
    assert!(at("interface Port-channel1") < at("interface GigabitEthernet1/0/1"));
}

#[test]
fn what_it_has_is_set_there() {
    let mut bench = bench();
    bench.say("conf t");
    bench.say("interface gi1/0/1");
    let before = bench.config();
    let why = "% Command rejected: GigabitEthernet1/0/1 is in Port-channel1, where its VLANs, MTU and spanning tree are set\n";
    for line in [
        "switchport access vlan 2",
        "no switchport mode",
        "no switchport",
        "mtu 1600",
        "spanning-tree portfast",
    ] {
        assert_eq!(bench.say(line), why, "{line}");
    }
    // what is so already may be said
    bench.quiet(&["switchport mode trunk", "mtu 2000"]);
    for (line, why) in [
        ("channel-group 2 mode desirable", "PAgP is not there"),
        ("channel-group 2 mode auto", "PAgP is not there"),
        ("channel-group 2 mode passive", "LACP is not there"),
        ("no channel-group 2", "is in another channel group"),
    ] {
        assert!(bench.say(line).contains(why), "{line}");
    }
    bench.say("interface po1");
    for (line, why) in [
        ("no switchport", "has ports"),
        ("channel-group 2 mode on", "is no port"),
        ("storm-control broadcast level 1", "has no storm-control"),
        ("service-policy input x", "has no policy"),
        ("ip access-group x in", "has no access lists"),
    ] {
        assert!(bench.say(line).contains(why), "{line}");
    }
    bench.say("interface gi1/0/7");
    bench.quiet(&["no switchport"]);
    assert!(
        bench
            .say("channel-group 1 mode on")
            .contains("do not route")
    );
    bench.quiet(&["switchport", "interface vlan 2"]);
    assert!(bench.say("channel-group 1 mode on").contains("is no port"));
    bench.say("end");
    let mut after = bench.config();
    after.interfaces.remove(&super::vlan_interface(2));
    assert_eq!(after, before);
}

#[test]
fn it_goes_and_its_ports_are_shut_down() {
    let mut bench = bench();
    bench.set(&["interface gi1/0/3", "no channel-group 1 mode on"]);
    let config = bench.config();
    let three = config.interface(&port(3));
    assert_eq!(
        (three.channel, three.shutdown, three.mtu),
        (None, false, Some(2000))
    );
    bench.say("conf t");
    assert_eq!(
        bench.say("no interface port-channel 1"),
        "GigabitEthernet1/0/1 was in Port-channel1, and is shut down\n\
         GigabitEthernet1/0/2 was in Port-channel1, and is shut down\n"
    );
    let config = bench.config();
    let [one, two, three] = [1, 2, 3].map(|n| config.interface(&port(n)));
    assert!(one.shutdown && two.shutdown && !three.shutdown);
    assert_eq!((one.channel, two.channel), (None, None));
    assert!(!config.interfaces.contains_key(&name(1)));
    // one that is there is followed by who comes; set to its beginning, so are its ports
    bench.quiet(&[
        "interface po2",
        "switchport access vlan 2",
        "interface gi1/0/1",
    ]);
    bench.quiet(&["default channel-group", "channel-group 2 mode active"]);
    assert!(
        bench
            .config()
            .interface(&port(1))
            .follows(&bench.config().interface(&name(2)))
    );
    bench.say("default interface po2");
    let config = bench.config();
    assert_eq!(
        config.interface(&port(1)).switchport,
        Some(Default::default())
    );
    assert!(config.interface(&port(1)).channel.is_some());
    bench.say("default interface gi1/0/1");
    assert_eq!(bench.config().members(2).count(), 0);
    bench.say("end");
}

#[test]
fn how_it_is_shown() {
    let mut bench = bench();
    bench.set(&["interface port-channel 7"]);
    let heads = "Group  Port-channel  Protocol    Ports\n\
                 ------+-------------+-----------+-----------------------------------------------\n";
    let text = bench.say("show etherchannel summary");
    assert!(
        text.contains("Number of channel-groups in use: 2\n"),
        "{text}"
    );
    let table = text.split_once(heads).unwrap().1;
    assert_eq!(
        table,
        "1      Po1(SU)         -         Gi1/0/1(P)  Gi1/0/2(D)  Gi1/0/3(P)\n\
         7      Po7(SD)         -\n"
    );
    assert!(
        bench
            .say("show etherchannel 7 summary")
            .ends_with(&format!("{heads}7      Po7(SD)         -\n"))
    );
    let text = bench.say("show interfaces port-channel 1");
    assert!(
        text.starts_with("Port-channel1 is up, line protocol is up (connected)\n"),
        "{text}"
    );
    assert!(
        text.contains("  Hardware is EtherChannel, address is "),
        "{text}"
    );
    assert!(
        text.contains("  Members in this channel: Gi1/0/1 Gi1/0/2 Gi1/0/3\n"),
        "{text}"
    );
    let status = bench.say("show interfaces status");
    let last = status.lines().rev().nth(1).unwrap();
    assert!(last.starts_with("Po1 "), "behind the ports: {last}");
    let trunks = bench.say("show interfaces trunk");
    assert!(
        trunks.contains("Po1 ") && !trunks.contains("Gi1/0/1 "),
        "{trunks}"
    );
    let vlans = bench.say("show vlan brief");
    assert!(
        vlans.contains("Po7") && !vlans.contains("Gi1/0/1,"),
        "{vlans}"
    );
    let ports = bench.say("show interfaces gi1/0/1 switchport");
    assert!(
        ports.contains("Operational Mode: trunk (member of bundle Po1)\n"),
        "{ports}"
    );
    // shut down: so are its ports
    bench.set(&["interface po1", "shutdown"]);
    let status = bench.say("show interfaces gi1/0/1 status");
    assert!(status.contains(" disabled "), "{status}");
    assert!(bench.say("show etherchannel summary").contains("Po1(SD)"));
    let brief = bench.say("show ip interface brief");
    let down = brief
        .lines()
        .find(|l| l.starts_with("Port-channel1 "))
        .unwrap();
    assert!(down.contains("administratively down"), "{brief}");
}

#[test]
fn eight_ports_are_two_lines() {
    let mut bench = Bench::new();
    bench.say("conf t");
    bench.say("interface range gi1/0/1-6");
    bench.say("channel-group 1 mode active");
    bench.say("end");
    let text = bench.say("show etherchannel summary");
    let lines: Vec<&str> = text.lines().rev().take(2).collect();
    assert_eq!(
        lines,
        [
            "                                 Gi1/0/5(P)  Gi1/0/6(D)",
            "1      Po1(SU)         LACP      Gi1/0/1(P)  Gi1/0/2(D)  Gi1/0/3(P)  Gi1/0/4(D)"
        ]
    );
}
