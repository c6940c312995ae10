// SPDX-License-Identifier: Apache-2.0
//! What `show` shows, letter by letter (`tests/shown`, one file a command), and for programs that read it
//! (`tests/ntc.py`): texts of random configurations, and beside them what has to be read out of them.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use tandem_swconfig::tree::{PortView, Role, State, View};
use tandem_swconfig::{Config, Kind, Mode, Name, Station, channel};

use super::lines::EXAMPLE;
use super::{Bench, port};
use crate::{Switch, lock};

/// The commands whose texts are kept, and read by programs.
const COMMANDS: &[&str] = &[
    "show version",
    "show inventory",
    "show vlan",
    "show vlan brief",
    "show interfaces",
    "show interfaces status",
    "show interfaces switchport",
    "show interfaces trunk",
    "show etherchannel summary",
    "show interfaces description",
    "show ip interface brief",
    "show ipv6 interface brief",
    "show mac address-table",
    "show spanning-tree",
    "show spanning-tree vlan 2",
    "show spanning-tree interface gi1/0/1",
    "show spanning-tree detail",
    "show spanning-tree summary",
    "show errdisable recovery",
    "show interfaces status err-disabled",
    "show ip route",
    "show ipv6 route",
    "show archive config differences",
    "show running-config",
];

const MORE: &[&str] = &[
    "hostname core",
    "vlan 2",
    "name users",
    "vlan 1004",
    "state suspend",
    "vlan 3000-3040,3050,3060,3070,3080,3090,3100,3110,3120,3130,3140,3150,3160,3170,3180",
    "int gi1/0/5",
    "description to the server in the next room",
    "shutdown",
    "int gi1/0/7",
    "no switchport",
    "ip address 10.1.0.1 255.255.255.0",
    "ip address 10.2.0.1 255.255.255.0 secondary",
    "ipv6 address 2001:db8:7::1/64",
    "mtu 9000",
    "int te1/0/9",
    "switchport mode trunk",
    "switchport trunk native vlan 3",
    "switchport trunk allowed vlan 1-3,10,3000-3040,3050,3060,3070,3080,3090,3100,3110,3120,3130,3140,3150,3160,3170",
    "interface port-channel 3",
    "description both cables",
    "switchport mode trunk",
    "switchport trunk allowed vlan 2,3",
    "int gi1/0/8",
    "description the one",
    "channel-group 3 mode on",
    "int te1/0/10",
    "channel-group 3 mode on",
    "interface loopback 0",
    "ip address 10.255.0.1 255.255.255.255",
    "ip route 0.0.0.0 0.0.0.0 10.1.0.254",
    "ip route 172.16.0.0 255.255.0.0 10.1.0.253",
    "ip route 172.16.0.0 255.255.0.0 10.2.0.253",
    "ip route 10.3.0.0 255.255.0.0 null0",
    "ip route 10.4.0.0 255.255.0.0 10.9.9.9 9",
    "ip route 192.168.9.0 255.255.255.0 99.0.0.1 7",
    "ip route 10.5.0.0 255.255.0.0 10.3.0.1 250",
    "ip route 10.5.0.0 255.255.0.0 10.1.0.9 20",
    "ipv6 route 2001:db8:ff::/48 2001:db8:7::2",
    "ipv6 route ::/0 2001:db8:7::3 9",
    "ipv6 route 2001:db8:dead::/48 null0",
];

fn station(vlan: u16, last: u8, fixed: bool, port: Option<Name>) -> Station {
    Station {
        vlan,
        mac: [0, 0x11, 0x22, 0x33, 0x44, last],
        fixed,
        port,
    }
}

fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.set(EXAMPLE);
    bench.say("write");
    bench.set(MORE);
    bench.fake.lock().unwrap().stations = vec![
        station(3, 9, false, Some(port(9))),
        station(2, 1, false, Some(port(3))),
        station(1, 7, true, None),
        station(2, 2, true, Some(port(1))),
    ];
    bench.fake.lock().unwrap().tree = Some(tree());
    bench
}

fn tree() -> View {
    let of = |n, role, state, cost, edge| PortView {
        name: port(n),
        number: n,
        role,
        state,
        cost,
        priority: if n == 2 { 64 } else { 128 },
        edge,
        point_to_point: n != 3,
        old_neighbour: n == 3,
        err_disabled: n == 6,
        recovers_in: (n == 6).then_some(290),
    };
    View {
        bridge: (32_768, [2, 0, 0, 0, 0, 1]),
        root: (4096, [2, 0, 0, 0, 0, 9]),
        cost: 20_000,
        root_port: Some(port(1)),
        root_times: [2, 20, 15],
        times: [10, 40, 30],
        ports: vec![
            of(1, Role::Root, State::Forwarding, 20_000, false),
            of(2, Role::Alternate, State::Discarding, 20_000, false),
            of(3, Role::Designated, State::Learning, 200_000_000, false),
            of(4, Role::Backup, State::Discarding, 20_000, false),
            of(5, Role::Disabled, State::Discarding, 20_000, false),
            of(6, Role::Disabled, State::Discarding, 20_000, true),
            of(9, Role::Designated, State::Forwarding, 2000, true),
        ],
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shown")
}

fn file_of(command: &str) -> String {
    command.replace([' ', '/'], "_") + ".txt"
}

/// With TANDEM_SHOWN=write in the environment the files are written instead.
#[test]
fn letter_by_letter() {
    let mut bench = bench();
    for command in COMMANDS {
        // however long the test takes
        let text: String = bench
            .say(command)
            .split_inclusive('\n')
            .map(|l| {
                if l.contains(" uptime is ") {
                    "core uptime is 0 minutes\n"
                } else {
                    l
                }
            })
            .collect();
        let path = folder().join(file_of(command));
        if std::env::var("TANDEM_SHOWN").is_ok_and(|v| v == "write") {
            fs::create_dir_all(folder()).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, kept, "{command}");
    }
}

#[test]
fn parts_of_tables() {
    let mut bench = bench();
    let lines = |text: String, with: &str| text.lines().filter(|l| l.contains(with)).count();
    assert_eq!(
        lines(bench.say("show mac address-table dynamic"), "0011."),
        2
    );
    assert_eq!(
        lines(bench.say("show mac address-table static"), "0011."),
        2
    );
    assert_eq!(
        lines(bench.say("show mac address-table vlan 2"), "0011."),
        2
    );
    assert_eq!(
        lines(bench.say("show mac address-table dynamic vlan 2"), "0011."),
        1
    );
    assert_eq!(
        lines(
            bench.say("show mac address-table interface gi1/0/3"),
            "0011."
        ),
        1
    );
    assert_eq!(
        lines(
            bench.say("show mac address-table address 0011.2233.4409"),
            "0011."
        ),
        1
    );
    assert_eq!(
        bench.say("show mac address-table aging-time"),
        "Global Aging Time:  300\n"
    );
    assert!(bench.say("show vlan id 2").contains("users"));
    assert!(bench.say("show vlan name users").contains("\n2    users"));
    assert_eq!(
        bench.say("show vlan id 77"),
        "VLAN id 77 not found in current VLAN database\n"
    );
    assert_eq!(
        bench.say("show interfaces vlan 77"),
        "% Interface Vlan77 does not exist\n"
    );
    assert_eq!(
        lines(bench.say("show interfaces gi1/0/1 status"), "Gi1/0/"),
        1
    );
    assert_eq!(
        lines(bench.say("show interfaces gi1/0/1"), "line protocol"),
        1
    );
    assert_eq!(
        bench
            .say("show running-config interface vlan 2")
            .lines()
            .skip(3)
            .collect::<Vec<_>>(),
        [
            "!",
            "interface Vlan2",
            " ip address 192.168.2.254 255.255.255.0",
            "end",
            ""
        ]
    );
    bench.say("clear mac address-table dynamic vlan 2");
    bench.say("clear mac address-table dynamic interface gi1/0/3");
    bench.say("clear mac address-table dynamic");
    let forgotten = bench.fake.lock().unwrap().forgotten.clone();
    assert_eq!(
        forgotten,
        [(Some(2), None), (None, Some(port(3))), (None, None)]
    );
    bench.set(&["no ip routing"]);
    assert!(
        bench
            .say("show ip route")
            .starts_with("Default gateway is not set")
    );
}

/// What has to be read out of the texts, from the configuration and the engine alone.
fn facts(switch: &Switch) -> Value {
    let config = &switch.config;
    let links = switch.engine.links();
    // a port of a port-channel is shut down with it
    let shut = |name: &Name| {
        let channel = config.channel_of(name).is_some_and(|(_, i)| i.shutdown);
        config.interface(name).shutdown || channel
    };
    let up = |name: &Name| {
        let carrier = links.iter().any(|l| l.name == *name && l.carrier);
        !shut(name) && (carrier || name.kind == Kind::Loopback)
    };
    let ports = switch.engine.ports();
    let mut names = ports.clone();
    names.extend(config.interfaces.keys().filter(|n| !n.is_port()));
    let interfaces: Vec<Value> = names
        .iter()
        .map(|name| {
            let set = config.interface(name);
            let port = set.switchport.clone();
            let access = port.as_ref().is_some_and(|p| p.mode == Mode::Access);
            let link = links.iter().find(|l| l.name == *name);
            json!({
                "name": name.to_string(), "short": name.short(), "port": name.is_port(), "up": up(name),
                "switched": name.is_switched(), "channel": set.channel.map(|c| c.number),
                "lacp": set.channel.map(|c| c.mode == channel::Mode::Active),
                "shutdown": shut(name), "description": set.description.unwrap_or_default(), "mtu": set.mtu.unwrap_or(1500),
                "switchport": port.is_some(), "access": access,
                "vlan": port.as_ref().map(|p| p.access), "native": port.as_ref().map(|p| p.native),
                "allowed": port.and_then(|p| p.allowed).map(|a| a.into_iter().collect::<Vec<_>>()),
                "ipv4": set.ipv4.map(|n| (n.address.to_string(), n.prefix)),
                "ipv6": set.ipv6.iter().map(|n| n.address.to_string()).collect::<Vec<_>>(),
                "counters": link.map(|l| l.counters),
                "mac": link.map(|l| crate::render::shown_mac(&l.mac)),
            })
        })
        .collect();
    let mut vlans: std::collections::BTreeMap<u16, Value> = config
        .vlans
        .iter()
        .map(|(id, v)| {
            let name = v.name.clone().unwrap_or(format!("VLAN{id:04}"));
            (*id, json!({ "name": name, "suspended": v.suspended }))
        })
        .collect();
    vlans.insert(1, json!({ "name": "default", "suspended": false }));
    let stations: Vec<Value> = switch
        .engine
        .stations()
        .iter()
        .map(|s| {
            json!([
                s.vlan,
                crate::render::shown_mac(&s.mac),
                s.fixed,
                s.port.map(|p| p.short())
            ])
        })
        .collect();
    let routes: Vec<Value> = config
        .routes
        .iter()
        .map(|r| {
            json!([
                r.to.address.to_string(),
                r.to.prefix,
                format!("{:?}", r.via),
                r.distance
            ])
        })
        .collect();
    let lists = config.lists.iter().flat_map(|(name, list)| {
        let word = |permit| if permit { "permit" } else { "deny" };
        let rules = list.rules();
        rules.map(move |(n, r)| json!([name, n.to_string(), word(r.permit)]))
    });
    json!({
        "lists": lists.collect::<Vec<_>>(),
        "tree": tree_facts(switch),
        "zone": switch.config.services.zone.as_ref().map_or("UTC", |z| z.name.as_str()),
        "hostname": config.hostname.clone().unwrap_or("Switch".into()), "routing": config.routing,
        "interfaces": interfaces, "vlans": vlans, "stations": stations, "routes": routes,
    })
}

/// Rows of the spanning tree.
fn tree_facts(switch: &Switch) -> Vec<Value> {
    let ports = switch.engine.spanning_tree().map(|t| t.ports);
    let there = ports
        .into_iter()
        .flatten()
        .filter(|p| p.role != Role::Disabled);
    there
        .map(|p| {
            let role = match p.role {
                Role::Root => "Root",
                Role::Designated => "Desg",
                Role::Alternate => "Altn",
                _ => "Back",
            };
            let state = match p.state {
                State::Discarding => "BLK",
                State::Learning => "LRN",
                State::Forwarding => "FWD",
            };
            let number = p.name.number.to_string();
            json!([
                p.name.short(),
                role,
                state,
                p.cost.to_string(),
                p.priority.to_string(),
                number
            ])
        })
        .collect()
}

/// With a folder in TANDEM_SHOWN_TO: random configurations, each with its texts and facts, for `tests/ntc.py`.
#[test]
fn random_configurations() {
    let to = std::env::var_os("TANDEM_SHOWN_TO").map(PathBuf::from);
    let mut runner = TestRunner::default();
    let count = if to.is_some() { 40 } else { 3 };
    for i in 0..count {
        let mut bench = bench();
        if i > 0 {
            let config: Config = super::property::config()
                .new_tree(&mut runner)
                .unwrap()
                .current();
            lock(&bench.switch).apply(config).unwrap();
        }
        let facts = facts(&lock(&bench.switch));
        let texts: Vec<(String, String)> = COMMANDS
            .iter()
            .chain(&["show clock", "show access-lists", "show logging"])
            .map(|c| (c.to_string(), bench.say(c)))
            .collect();
        assert!(
            texts
                .iter()
                .all(|(c, t)| t.is_empty() || t.ends_with('\n') || c.is_empty())
        );
        if let Some(to) = &to {
            let texts: serde_json::Map<String, Value> =
                texts.into_iter().map(|(c, t)| (c, t.into())).collect();
            let all = json!({ "facts": facts, "texts": texts });
            fs::write(to.join(format!("{i}.json")), all.to_string()).unwrap();
        }
    }
}
