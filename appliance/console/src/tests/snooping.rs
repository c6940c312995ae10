// SPDX-License-Identifier: Apache-2.0
//! IGMP and MLD snooping: what is typed, kept and shown.

use std::collections::BTreeMap;

use tandem_swconfig::snooping::View;

use super::{Bench, port};

#[test]
fn snooping_is_what_was_typed() {
    let mut bench = Bench::new();
    bench.set(&[
        "vlan 10,20",
        "ip igmp snooping",
        "ip igmp snooping querier",
        "no ip igmp snooping vlan 20",
        "ip igmp snooping vlan 10 immediate-leave",
        "ip igmp snooping vlan 10 querier",
        "ip igmp snooping vlan 10 mrouter interface gi1/0/4",
        "ip igmp snooping vlan 10 static 239.1.2.3 interface gi1/0/2",
        "ipv6 mld snooping",
        "ipv6 mld snooping vlan 10 static ff05::ab interface te1/0/9",
    ]);
    let all = "ip igmp snooping\n\
               ip igmp snooping querier\n\
               ip igmp snooping vlan 10 immediate-leave\n\
               ip igmp snooping vlan 10 querier\n\
               ip igmp snooping vlan 10 mrouter interface GigabitEthernet1/0/4\n\
               ip igmp snooping vlan 10 static 239.1.2.3 interface GigabitEthernet1/0/2\n\
               no ip igmp snooping vlan 20\n\
               ipv6 mld snooping\n\
               ipv6 mld snooping vlan 10 static FF05::AB interface TenGigabitEthernet1/0/9\n";
    assert_eq!(bench.say("show running-config | include snooping"), all);
    bench.say("copy running-config x");
    bench.say("");
    bench.set(&[
        "default ip igmp snooping vlan 20",
        "default ip igmp snooping querier",
        "no ip igmp snooping vlan 10 immediate-leave",
        "no ip igmp snooping vlan 10 querier",
        "no ip igmp snooping vlan 10 mrouter interface gi1/0/4",
        "no ip igmp snooping vlan 10 static 239.1.2.3 interface gi1/0/2",
        "no ipv6 mld snooping vlan 10 static ff05::ab interface te1/0/9",
        "no ipv6 mld snooping",
    ]);
    let left = "ip igmp snooping\n";
    assert_eq!(bench.say("show running-config | include snooping"), left);
    bench.set(&["default ip igmp snooping"]);
    assert_eq!(bench.say("show running-config | include snooping"), "");
    let config = bench.config();
    assert_eq!((config.igmp, config.mld), Default::default());
    let said = bench.say("configure replace x force");
    assert!(said.ends_with("Rollback Done\n"), "{said}");
    assert_eq!(bench.say("show running-config | include snooping"), all);
}

#[test]
fn groups_of_the_link_have_no_members() {
    let mut bench = Bench::new();
    bench.say("conf t");
    for (line, group) in [
        (
            "ip igmp snooping vlan 1 static 224.0.0.5 interface gi1/0/2",
            "224.0.0.5",
        ),
        (
            "ip igmp snooping vlan 1 static 10.0.0.1 interface gi1/0/2",
            "10.0.0.1",
        ),
        (
            "ipv6 mld snooping vlan 1 static ff02::1 interface gi1/0/2",
            "FF02::1",
        ),
        (
            "ipv6 mld snooping vlan 1 static 2001:db8::1 interface gi1/0/2",
            "2001:DB8::1",
        ),
    ] {
        let why = format!("% {group} is no group that has members: all ports have it\n");
        assert_eq!(bench.say(line), why, "{line}");
    }
    for n in 0..1024 {
        let (a, b) = (n / 256, n % 256);
        assert_eq!(
            bench.say(&format!(
                "ip igmp snooping vlan 1 static 239.0.{a}.{b} interface gi1/0/1"
            )),
            ""
        );
    }
    let more = "ip igmp snooping vlan 2 static 239.1.1.1 interface gi1/0/1";
    assert_eq!(
        bench.say(more),
        "% 1024 static members of ip igmp snooping are there\n"
    );
    // one that is there already is none more
    assert_eq!(
        bench.say("ip igmp snooping vlan 1 static 239.0.0.0 interface gi1/0/1"),
        ""
    );
    bench.say("end");
    assert_eq!(bench.config().igmp.vlans[&1].members.len(), 1024);
    assert_eq!(bench.config().igmp.vlans.len(), 1);
}

#[test]
fn snooping_letter_by_letter() {
    let mut bench = Bench::new();
    bench.set(&[
        "vlan 10",
        "ip igmp snooping",
        "ip igmp snooping vlan 10 immediate-leave",
    ]);
    let ip = |text: &str| text.parse().unwrap();
    bench.fake.lock().unwrap().snooping = View {
        queriers: BTreeMap::from([(1, (None, false)), (10, (Some(ip("10.0.0.1")), true))]),
        members: vec![
            (1, ip("239.1.2.3"), Some(port(1)), true),
            (10, ip("225.1.2.3"), None, false),
            (10, ip("225.1.2.3"), Some(port(1)), false),
            (10, ip("225.1.2.3"), Some(port(9)), true),
        ],
        routers: vec![(10, port(4), false), (10, port(5), true)],
    };
    assert_eq!(
        bench.say("show ip igmp snooping groups"),
        "Vlan      Group                    Type        Version     Port List\n\
         -----------------------------------------------------------------------\n\
         1         239.1.2.3                user                    Gi1/0/1\n\
         10        225.1.2.3                igmp,user   v2          Switch, Gi1/0/1, Te1/0/9\n\n"
    );
    assert_eq!(
        bench.say("show ip igmp snooping mrouter"),
        "Vlan    ports\n----    -----\n  10    Gi1/0/4(dynamic), Gi1/0/5(static)\n\n"
    );
    assert_eq!(
        bench.say("show ip igmp snooping querier"),
        "Vlan      IP Address               IGMP Version   Groups\n\
         -------------------------------------------------------------\n\
         10        10.0.0.1                 v2             to members\n\n"
    );
    assert_eq!(
        bench.say("show ip igmp snooping vlan 10"),
        "Global IGMP Snooping configuration:\n\
         -------------------------------------------\n\
         IGMP snooping                : Enabled\n\
         IGMP snooping querier        : Disabled\n\
         Report suppression           : Disabled\n\
         Robustness variable          : 2\n\
         Last member query count      : 2\n\
         Last member query interval   : 1000\n\
         \n\
         Vlan 10:\n\
         --------\n\
         IGMP snooping                       : Enabled\n\
         IGMPv2 immediate leave              : Enabled\n\
         Multicast router learning mode      : pim-dvmrp\n\
         IGMP snooping querier               : Disabled\n\
         Groups are                          : to members\n\n"
    );
    let one = bench.say("show ip igmp snooping groups vlan 1");
    assert!(
        one.contains("239.1.2.3") && !one.contains("225.1.2.3"),
        "{one}"
    );
    assert_eq!(
        bench.say("show ipv6 mld snooping mrouter"),
        "% Engine fake does not snoop\n"
    );
}
