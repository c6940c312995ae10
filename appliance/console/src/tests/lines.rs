// SPDX-License-Identifier: Apache-2.0
//! Lines, and what they do to the configuration.

use std::collections::BTreeSet;

use tandem_swconfig::{Mode, Net, Via};

use super::{Bench, port, vlan_interface};
use crate::lock;
use crate::session::{Door, Session};

/// The seed's example: two trunks, two access ports, routed between VLANs 2 and 3.
pub(crate) const EXAMPLE: &[&str] = &[
    "ip routing",
    "vlan dot1q tag native",
    "vlan 2-3",
    "int gi1/0/1",
    "switchport mode trunk",
    "switchport trunk allowed vlan 1,2",
    "int gi1/0/2",
    "switchport mode trunk",
    "switchport trunk allowed vlan 1,3",
    "int gi1/0/3",
    "switchport access vlan 2",
    "int gi1/0/4",
    "switchport access vlan 3",
    "interface vlan 2",
    "ip address 192.168.2.254 255.255.255.0",
    "no shutdown",
    "interface vlan 3",
    "ip address 192.168.3.254 255.255.255.0",
];

#[test]
fn the_example_of_the_seed() {
    let mut bench = Bench::new();
    bench.set(EXAMPLE);
    let config = bench.config();
    assert!(config.routing && config.tag_native);
    assert_eq!(config.vlans.keys().copied().collect::<Vec<_>>(), [2, 3]);
    let trunk = config.interface(&port(1)).switchport.unwrap();
    assert_eq!(
        (trunk.mode, trunk.allowed),
        (Mode::Trunk, Some(BTreeSet::from([1, 2])))
    );
    assert_eq!(config.interface(&port(4)).switchport.unwrap().access, 3);
    let address = config.interface(&vlan_interface(3)).ipv4;
    assert_eq!(
        address,
        Some(Net {
            address: [192, 168, 3, 254].into(),
            prefix: 24
        })
    );
    assert_eq!(bench.fake.lock().unwrap().applied.last(), Some(&config));
    let text = bench.say("show running-config");
    let (_, text) = text.split_once("bytes\n").unwrap();
    assert_eq!(
        text,
        "!
hostname Switch
!
ip routing
!
vlan dot1q tag native
!
vlan 2,3
!
interface GigabitEthernet1/0/1
 switchport trunk allowed vlan 1,2
 switchport mode trunk
!
interface GigabitEthernet1/0/2
 switchport trunk allowed vlan 1,3
 switchport mode trunk
!
interface GigabitEthernet1/0/3
 switchport access vlan 2
 switchport mode access
!
interface GigabitEthernet1/0/4
 switchport access vlan 3
 switchport mode access
!
interface GigabitEthernet1/0/5
!
interface GigabitEthernet1/0/6
!
interface GigabitEthernet1/0/7
!
interface GigabitEthernet1/0/8
!
interface TenGigabitEthernet1/0/9
!
interface TenGigabitEthernet1/0/10
!
interface Vlan2
 ip address 192.168.2.254 255.255.255.0
!
interface Vlan3
 ip address 192.168.3.254 255.255.255.0
!
end
"
    );
}

#[test]
fn prompts() {
    let mut bench = Bench::new();
    let mut at = |line: &str| {
        bench.say(line);
        bench.session.prompt()
    };
    assert_eq!(at("disable"), "Switch>");
    assert_eq!(at("configure terminal"), "Switch>");
    assert_eq!(at("enable"), "Switch#");
    assert_eq!(at("conf t"), "Switch(config)#");
    assert_eq!(at("int gi1/0/1"), "Switch(config-if)#");
    assert_eq!(at("int range gi1/0/1 - 3"), "Switch(config-if-range)#");
    assert_eq!(at("vlan 10"), "Switch(config-vlan)#");
    assert_eq!(at("exit"), "Switch(config)#");
    assert_eq!(at("hostname core-1"), "core-1(config)#");
    assert_eq!(at("interface vlan 10"), "core-1(config-if)#");
    assert_eq!(
        at("ip routing"),
        "core-1(config)#",
        "a command of the mode above leaves this one"
    );
    assert_eq!(at("no hostname"), "Switch(config)#");
    assert_eq!(at("end"), "Switch#");
    assert!(bench.session.line("exit").closed);
}

#[test]
fn a_range_is_all_or_nothing() {
    let mut bench = Bench::new();
    bench.set(&["int gi1/0/2", "no switchport"]);
    bench.say("conf t");
    bench.quiet(&["interface range gi1/0/1 - 3", "description all of them"]);
    let before = bench.config();
    assert_eq!(
        before.interface(&port(3)).description.as_deref(),
        Some("all of them")
    );
    assert_eq!(
        bench.say("switchport access vlan 5"),
        "% Command rejected: GigabitEthernet1/0/2 not a switching port.\n"
    );
    assert_eq!(bench.config(), before);
    assert_eq!(
        bench.say("ip address 10.0.0.1 255.0.0.0"),
        "% IP addresses may not be configured on L2 links.\n"
    );
    assert_eq!(bench.config(), before);
}

#[test]
fn what_the_engine_refuses_has_not_happened() {
    let mut bench = Bench::new();
    bench.fake.lock().unwrap().refuse = Some((7, "chip: no\nroom for  VLAN 7"));
    bench.say("conf t");
    assert_eq!(bench.say("vlan 6-8"), "% chip: no room for VLAN 7\n");
    assert_eq!(
        bench.session.prompt(),
        "Switch(config)#",
        "and it is where it was"
    );
    assert!(bench.config().vlans.is_empty());
    assert_eq!(bench.say("interface range gi1/0/1 - 2"), "");
    assert_eq!(
        bench.say("switchport access vlan 7"),
        "% chip: no room for VLAN 7\n"
    );
    assert_eq!(bench.config(), Default::default());
}

#[test]
fn allowed_vlans() {
    let mut bench = Bench::new();
    bench.set(&["int gi1/0/1", "switchport mode trunk"]);
    let mut after = |line: &str| {
        bench.set(&["int gi1/0/1", line]);
        bench
            .config()
            .interface(&port(1))
            .switchport
            .unwrap()
            .allowed
            .map(|a| crate::render::list(&a))
    };
    assert_eq!(
        after("switchport trunk allowed vlan 1-5,10").as_deref(),
        Some("1-5,10")
    );
    assert_eq!(
        after("switchport trunk allowed vlan add 7,11").as_deref(),
        Some("1-5,7,10,11")
    );
    assert_eq!(
        after("switchport trunk allowed vlan remove 2-10").as_deref(),
        Some("1,11")
    );
    assert_eq!(
        after("switchport trunk allowed vlan except 10").as_deref(),
        Some("1-9,11-4094")
    );
    assert_eq!(
        after("switchport trunk allowed vlan add 10"),
        None,
        "all of them is all"
    );
    assert_eq!(
        after("switchport trunk allowed vlan remove 4094").as_deref(),
        Some("1-4093")
    );
    assert_eq!(
        after("switchport trunk allowed vlan none").as_deref(),
        Some("")
    );
    let text = bench.say("show running-config interface gi1/0/1");
    assert!(
        text.contains(" switchport trunk allowed vlan none\n"),
        "{text}"
    );
    let mut after = |line: &str| {
        bench.set(&["int gi1/0/1", line]);
        bench
            .config()
            .interface(&port(1))
            .switchport
            .unwrap()
            .allowed
            .map(|a| crate::render::list(&a))
    };
    assert_eq!(after("switchport trunk allowed vlan all"), None);
    assert_eq!(
        after("switchport trunk allowed vlan 5").as_deref(),
        Some("5")
    );
    assert_eq!(after("no switchport trunk allowed vlan"), None);
}

#[test]
fn addresses_that_can_not_be() {
    let mut bench = Bench::new();
    bench.set(&[
        "int vlan 10",
        "ip address 10.0.0.1 255.255.255.0",
        "int vlan 20",
    ]);
    bench.say("conf t");
    bench.quiet(&["int vlan 20"]);
    for (line, said) in [
        (
            "ip address 10.0.0.2 255.255.0.0",
            "% 10.0.0.0 overlaps with Vlan10",
        ),
        (
            "ip address 10.0.7.2 255.255.0.0",
            "% 10.0.0.0 overlaps with Vlan10",
        ),
        (
            "ip address 10.0.1.0 255.255.255.0",
            "% Bad mask /24 for address 10.0.1.0",
        ),
        (
            "ip address 10.0.1.255 255.255.255.0",
            "% Bad mask /24 for address 10.0.1.255",
        ),
        (
            "ip address 224.0.0.1 255.255.255.0",
            "% Not a valid host address - 224.0.0.1",
        ),
        (
            "ip address 127.0.0.1 255.0.0.0",
            "% Not a valid host address - 127.0.0.1",
        ),
        (
            "ip address 10.0.1.1 255.255.255.0 secondary",
            "% A primary address has to be there before a secondary one",
        ),
        (
            "ipv6 address fe80::1/64",
            "% Vlan20: FE80::1/64 is not an address that an interface is given",
        ),
        (
            "switchport",
            "% Command rejected: Vlan20 not a switching port.",
        ),
    ] {
        assert_eq!(bench.say(line), format!("{said}\n"), "{line}");
    }
    bench.quiet(&[
        "ip address 10.0.1.1 255.255.255.254",
        "ip address 10.0.2.1 255.255.255.0 secondary",
        "ipv6 address 2001:db8:20::1/64",
    ]);
    assert_eq!(
        bench.say("ip address 10.0.1.1 255.255.255.0 secondary"),
        "% Secondary can't be same as primary\n"
    );
    assert_eq!(
        bench.say("no ip address 10.0.1.1 255.255.255.254"),
        "% Must delete secondary before deleting primary\n"
    );
    bench.quiet(&["int vlan 10"]);
    assert_eq!(
        bench.say("ipv6 address 2001:db8:20:0:1::1/80"),
        "%Vlan10: Error: 2001:DB8:20:0:1::/80 is overlapping with 2001:DB8:20::/64 on Vlan20\n"
    );
    assert_eq!(
        bench.say("ip address 10.0.2.7 255.255.255.0"),
        "% 10.0.2.0 overlaps with Vlan20\n"
    );
    // its own network is no overlap
    bench.quiet(&[
        "ip address 10.0.0.2 255.255.255.0",
        "int vlan 20",
        "no ip address",
    ]);
    assert_eq!(
        bench.config().interface(&vlan_interface(20)).secondary,
        BTreeSet::new()
    );
}

#[test]
fn routes() {
    let mut bench = Bench::new();
    bench.set(&[
        "int vlan 10",
        "ip address 10.0.0.1 255.255.255.0",
        "ip route 20.0.0.0 255.0.0.0 10.0.0.2",
        "ip route 20.0.0.0 255.0.0.0 10.0.0.3 200",
        "ip route 30.0.0.0 255.0.0.0 null0",
        "ipv6 route 2001:db8::/32 2001:db9::1 5",
    ]);
    assert_eq!(bench.config().routes.len(), 4);
    bench.say("conf t");
    assert_eq!(
        bench.say("ip route 20.0.0.1 255.0.0.0 10.0.0.2"),
        "%Inconsistent address and mask\n"
    );
    assert_eq!(
        bench.say("ip route 20.0.0.0 255.0.0.0 10.0.0.1"),
        "%Invalid next hop address (it's this router)\n"
    );
    assert_eq!(
        bench.say("no ip route 20.0.0.0 255.0.0.0 10.0.0.9"),
        "%No matching route to delete\n"
    );
    bench.quiet(&["ip route 20.0.0.0 255.0.0.0 10.0.0.2 7"]);
    let of = |bench: &Bench| {
        bench
            .config()
            .routes
            .iter()
            .filter(|r| r.via != Via::Null)
            .count()
    };
    assert_eq!(of(&bench), 3, "another distance is not another route");
    bench.quiet(&["int vlan 10"]);
    assert_eq!(
        bench.say("ip address 10.0.0.3 255.255.255.0"),
        "% 10.0.0.3 is the next hop of a static route to 20.0.0.0/8\n"
    );
    assert_eq!(
        bench.say("ipv6 address 2001:db9::1/64"),
        "% 2001:db9::1 is the next hop of a static route to 2001:db8::/32\n"
    );
    bench.quiet(&[
        "no ip route 20.0.0.0 255.0.0.0",
        "no ipv6 route 2001:db8::/32",
    ]);
    assert_eq!(bench.config().routes.len(), 1);
}

#[test]
fn vlans() {
    let mut bench = Bench::new();
    bench.set(&["vlan 10", "name users", "state suspend", "vlan 1002-1005"]);
    assert_eq!(bench.config().vlans.len(), 5);
    assert_eq!(bench.config().vlans[&10].name.as_deref(), Some("users"));
    assert!(bench.config().vlans[&10].suspended);
    bench.say("conf t");
    bench.say("vlan 11");
    assert_eq!(
        bench.say("name users"),
        "% VLAN name users is used by another VLAN\n"
    );
    assert_eq!(
        bench.say("name VLAN1002"),
        "% VLAN name VLAN1002 is used by another VLAN\n"
    );
    assert!(
        bench
            .say("name 123456789012345678901234567890123")
            .starts_with("% VLAN name is longer")
    );
    assert_eq!(
        bench.say("no vlan 1"),
        "%Default VLAN 1 may not be deleted.\n"
    );
    assert_eq!(bench.say("vlan 1"), "");
    assert_eq!(
        bench.say("name x"),
        "%Default VLAN 1 may not have its name changed.\n"
    );
    assert_eq!(bench.say("no vlan 10,11,1002-1005"), "");
    assert_eq!(bench.config(), Default::default());
    assert!(bench.say("vlan 4095").contains("Invalid input"));
    bench.quiet(&["int gi1/0/1"]);
    assert_eq!(
        bench.say("switchport access vlan 9"),
        "% Access VLAN does not exist. Creating vlan 9\n"
    );
    assert!(bench.config().vlans.contains_key(&9));
}

#[test]
fn no_and_default_of_interfaces() {
    let mut bench = Bench::new();
    bench.set(&[
        "int gi1/0/1",
        "description a",
        "mtu 9000",
        "shutdown",
        "no switchport",
        "ip address 10.0.0.1 255.0.0.0",
    ]);
    bench.say("conf t");
    assert_eq!(
        bench.say("no interface gi1/0/1"),
        "% Removal of physical interfaces is not permitted\n"
    );
    bench.quiet(&["int gi1/0/1", "default switchport"]);
    let set = bench.config().interface(&port(1));
    assert!(set.switchport.is_some() && set.ipv4.is_none(), "{set:?}");
    bench.quiet(&["no description", "no mtu", "no shutdown"]);
    assert_eq!(bench.config(), Default::default());
    bench.quiet(&["int gi1/0/1", "description b"]);
    assert_eq!(
        bench.say("default interface gi1/0/1"),
        "Interface GigabitEthernet1/0/1 set to default configuration\n"
    );
    assert_eq!(bench.config(), Default::default());
}

/// Two sessions at one interface: who comes too late is told, and makes nothing.
#[test]
fn what_another_session_has_removed() {
    let mut bench = Bench::new();
    let mut other = Session::new(bench.switch.clone(), Door::cli());
    bench.say("conf t");
    bench.quiet(&["vlan 10", "interface vlan 10"]);
    other.line("conf t");
    other.line("no interface vlan 10");
    assert_eq!(
        bench.say("shutdown"),
        "% Interface Vlan10 is not there any more\n"
    );
    bench.quiet(&["vlan 10"]);
    other.line("no vlan 10");
    assert_eq!(bench.say("name x"), "% VLAN 10 is not there any more\n");
    assert_eq!(bench.config(), Default::default());
}

#[test]
fn levels() {
    let bench = Bench::new();
    let mut vty = Session::new(bench.switch.clone(), Door::vty(1));
    assert_eq!(vty.prompt(), "Switch>");
    assert_eq!(vty.line("enable").text, "% No password set\n");
    assert!(vty.line("conf t").text.contains("Invalid input"));
    assert!(
        vty.line("show running-config")
            .text
            .contains("Invalid input")
    );
    assert!(vty.line("show vlan").text.contains("default"));
    let mut console = Session::new(bench.switch.clone(), Door::console());
    console.line("en");
    assert_eq!(
        console.line("show privilege").text,
        "Current privilege level is 15\n"
    );
}

/// Who gives up the privilege is in no mode that only the privileged leave.
#[test]
fn disabled_from_configuration_mode() {
    let mut bench = Bench::new();
    for below in ["hostname Switch", "interface gi1/0/1", "vlan 10"] {
        bench.say("enable");
        bench.say("configure terminal");
        bench.say(below);
        bench.say("do disable");
        assert_eq!(bench.session.prompt(), "Switch>", "{below}");
    }
}

/// What is done is not refused, although IOS's note of it begins as a refusal does.
#[test]
fn a_note_is_no_refusal() {
    let mut bench = Bench::new();
    bench.say("configure terminal");
    bench.say("interface gi1/0/1");
    let made = bench.session.line("switchport access vlan 10");
    assert_eq!(
        made.text,
        "% Access VLAN does not exist. Creating vlan 10\n"
    );
    assert!(!made.refused && bench.config().vlans.contains_key(&10));
    for no in [
        "ip address 10.0.0.1 255.0.0.0",
        "nonsense",
        "no interface gi1/0/1",
    ] {
        assert!(bench.session.line(no).refused, "{no}");
    }
}

#[test]
fn the_caret_is_under_the_word() {
    let mut bench = Bench::new();
    // "Switch#" is seven characters
    assert_eq!(
        bench.say("show xyz"),
        format!("{:12}^\n% Invalid input detected at '^' marker.\n\n", "")
    );
    bench.say("conf t");
    // "Switch(config)#" is fifteen
    assert_eq!(
        bench.say("do show xyz"),
        format!("{:23}^\n% Invalid input detected at '^' marker.\n\n", "")
    );
    assert_eq!(bench.say("vlan"), "% Incomplete command.\n\n");
}

#[test]
fn filters() {
    let mut bench = Bench::new();
    bench.set(EXAMPLE);
    assert_eq!(
        bench.say("show run | include hostname|routing"),
        "hostname Switch\nip routing\n"
    );
    assert_eq!(
        bench.say("sh run | inc ^interface Vlan"),
        "interface Vlan2\ninterface Vlan3\n"
    );
    assert_eq!(
        bench.say("show run | section Vlan3"),
        "interface Vlan3\n ip address 192.168.3.254 255.255.255.0\n"
    );
    assert_eq!(
        bench.say("show run | count ^interface"),
        "Number of lines which match regexp = 12\n"
    );
    assert!(
        bench
            .say("show run | begin Vlan3")
            .starts_with("interface Vlan3\n")
    );
    assert!(
        !bench
            .say("show run | exclude interface")
            .contains("interface")
    );
    assert_eq!(
        bench.say("show run | include ("),
        "% Failed to compile regular expression.\n"
    );
    for regex in [
        r"^vlan \d",
        r"\bdot1q\b",
        r"^\w+ dot1q\s+tag",
        "^vlan .*q",
        "[Tt]ag|\u{e4}",
    ] {
        assert!(
            bench
                .say(&format!("show run | include {regex}"))
                .contains("vlan"),
            "{regex}"
        );
    }
    assert_eq!(
        bench.say("show run | include (a{900}){900}"),
        "% Failed to compile regular expression.\n"
    );
    assert_eq!(bench.say("show run | grep x"), "% Unknown filter: grep\n");
    assert!(bench.say("show run |").contains("Incomplete"));
    assert!(bench.say("write | include x").contains("Invalid input"));
    bench.say("conf t");
    assert_eq!(bench.say("do show run | inc hostname"), "hostname Switch\n");
    bench.quiet(&["int gi1/0/1", "description a | b"]);
    assert_eq!(
        bench.config().interface(&port(1)).description.as_deref(),
        Some("a | b")
    );
}

#[test]
fn every_command_is_told() {
    let mut bench = Bench::new();
    let told: std::sync::Arc<std::sync::Mutex<Vec<String>>> = std::sync::Arc::default();
    let log = told.clone();
    lock(&bench.switch).log =
        crate::Log::new(move |who, line| log.lock().unwrap().push(format!("{who}: {line}")));
    bench.session = Session::new(bench.switch.clone(), Door::cli()).named("root");
    for line in [
        "show privilege",
        "",
        "! a remark",
        "nonsense",
        "erase startup-config",
        "n",
        "conf t",
        "vlan 5 ",
    ] {
        bench.say(line);
    }
    assert_eq!(
        *told.lock().unwrap(),
        [
            "root: show privilege",
            "root: nonsense",
            "root: erase startup-config",
            "root: conf t",
            "root: vlan 5"
        ]
    );
}

#[test]
fn help_and_completion() {
    let mut bench = Bench::new();
    assert_eq!(bench.session.help("sho"), "show\n");
    assert_eq!(
        bench.session.help("show vlan "),
        "  brief  Brief summary\n  id     VLAN status by VLAN id\n  name   VLAN status by VLAN name\n  |      Output modifiers\n  \
         <cr>\n"
    );
    assert_eq!(bench.session.help("xyz "), "% Unrecognized command\n");
    assert_eq!(
        bench.session.help("sh v "),
        "% Ambiguous command:  \"sh v \"\n".replace("v \"", "v\"")
    );
    assert!(bench.session.help("show run | ").contains("include"));
    assert_eq!(bench.session.complete("sh"), Some("show ".into()));
    assert_eq!(
        bench.session.complete("show ru"),
        Some("show running-config ".into())
    );
    assert_eq!(bench.session.complete("show v"), None);
    bench.say("conf t");
    assert_eq!(
        bench.session.complete("int gig"),
        Some("int GigabitEthernet ".into())
    );
    assert_eq!(bench.session.complete("do sh"), Some("do show ".into()));
    assert!(bench.session.help("do show vlan ").contains("brief"));
    assert!(bench.session.help("").contains("hostname"));
}
