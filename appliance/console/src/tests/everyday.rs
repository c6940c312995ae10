// SPDX-License-Identifier: Apache-2.0
//! `reload`, `| json`, counters and neighbours.

use serde_json::{Value, json};
use tandem_swconfig::Station;
use tandem_swconfig::routing::Ask;

use super::{Bench, port, vlan_interface};
use crate::session::{Door, Session};
use crate::{STARTUP, lock};

#[test]
fn a_reload_is_a_start_and_ends_all_sessions() {
    let mut bench = Bench::new();
    bench.set(&["vlan 7"]);
    bench.say("write memory");
    bench.set(&["hostname lost", "vlan 8"]);
    let mut other = Session::new(bench.switch.clone(), Door::cli());
    // it asks first whether to keep what is not kept
    assert_eq!(bench.say("reload"), "");
    assert_eq!(
        bench.session.prompt(),
        "System configuration has been modified. Save? [yes/no]: "
    );
    assert_eq!(bench.say(""), "Please answer 'yes' or 'no'.\n");
    bench.say("no");
    assert_eq!(bench.session.prompt(), "Proceed with reload? [confirm]");
    assert_eq!(bench.say("n"), "");
    assert_eq!(
        bench.config().hostname.as_deref(),
        Some("lost"),
        "nothing is done"
    );
    bench.say("reload");
    bench.say("no");
    assert!(bench.session.line("").closed);
    let config = bench.config();
    assert_eq!((config.hostname, config.vlans.len()), (None, 1));
    assert_eq!(bench.fake.lock().unwrap().forgotten, [(None, None)]);
    let out = other.line("show privilege");
    assert!(
        out.closed && out.text.starts_with("The switch has been reloaded"),
        "{out:?}"
    );
    // a new one is none of before; what is kept is not asked for
    bench.session = Session::new(bench.switch.clone(), Door::cli());
    bench.say("reload");
    assert_eq!(bench.session.prompt(), "Proceed with reload? [confirm]");
    bench.say("n");
    bench.set(&["hostname kept"]);
    bench.say("reload");
    assert_eq!(bench.say("yes"), "Building configuration...\n[OK]\n");
    assert!(bench.session.line("").closed);
    assert_eq!(bench.config().hostname.as_deref(), Some("kept"));
}

#[test]
fn a_reload_of_what_is_refused_does_the_rest() {
    let mut bench = Bench::new();
    let text = "vlan 7\nvlan 9\nfrobnicate\nhostname there\n";
    bench
        .files
        .0
        .lock()
        .unwrap()
        .insert(STARTUP.into(), text.into());
    bench.fake.lock().unwrap().refuse = Some((9, "no room"));
    bench.say("reload");
    bench.say("no");
    let out = bench.session.line("");
    assert!(
        out.closed && out.text.contains("% line 2: vlan 9: no room"),
        "{out:?}"
    );
    assert!(out.text.contains("% line 3: frobnicate"), "{out:?}");
    let config = bench.config();
    assert_eq!(config.hostname.as_deref(), Some("there"));
    assert!(config.vlans.contains_key(&7) && !config.vlans.contains_key(&9));
}

fn parsed(bench: &mut Bench, line: &str) -> Value {
    serde_json::from_str(&bench.say(&format!("{line} | json"))).unwrap()
}

#[test]
fn facts_for_programs() {
    let mut bench = Bench::new();
    bench.set(&[
        "hostname box",
        "ip routing",
        "vlan 7",
        "name seven",
        "interface gi1/0/1",
        "switchport access vlan 7",
        "description to x",
        "interface gi1/0/2",
        "switchport mode trunk",
        "interface vlan 7",
        "ip address 10.7.0.1 255.255.255.0",
        "ip route 20.0.0.0 255.0.0.0 10.7.0.2 5",
        "ip route 30.0.0.0 255.0.0.0 null0",
    ]);
    bench.fake.lock().unwrap().stations = vec![Station {
        vlan: 7,
        mac: [2, 0, 0, 0, 0, 9],
        fixed: false,
        port: Some(port(1)),
    }];
    let version = parsed(&mut bench, "show version");
    assert_eq!(
        (&version["hostname"], &version["ports"]),
        (&json!("box"), &json!(10))
    );
    let vlan = parsed(&mut bench, "show vlan id 7");
    assert_eq!(
        vlan,
        json!({"vlans": [{"vlan": 7, "name": "seven", "active": true, "access_ports": ["GigabitEthernet1/0/1"]}]})
    );
    let ports = parsed(&mut bench, "show interfaces status");
    assert_eq!(
        ports["interfaces"][0],
        json!({"interface": "GigabitEthernet1/0/1", "description": "to x", "status": "connected",
            "mode": "access", "vlan": 7, "speed_mbps": 1000})
    );
    let (mode, vlan) = (
        &ports["interfaces"][1]["mode"],
        &ports["interfaces"][1]["vlan"],
    );
    assert_eq!((mode, vlan), (&json!("trunk"), &Value::Null));
    let stations = parsed(&mut bench, "show mac address-table dynamic");
    assert_eq!(
        stations,
        json!({"stations": [{"vlan": 7, "mac": "0200.0000.0009", "type": "dynamic", "interface": "GigabitEthernet1/0/1"}]})
    );
    let routes = parsed(&mut bench, "show ip route");
    let row = |prefix: &str, code: &str, distance: u8, gateway: Value, interface: Value| {
        json!({"prefix": prefix, "code": code, "distance": distance, "metric": 0,
            "next_hops": [{"gateway": gateway, "interface": interface}]})
    };
    assert_eq!(
        routes["routes"],
        json!([
            row("10.7.0.0/24", "C", 0, Value::Null, json!("Vlan7")),
            row("10.7.0.1/32", "L", 0, Value::Null, json!("Vlan7")),
            row("20.0.0.0/8", "S", 5, json!("10.7.0.2"), Value::Null),
            row("30.0.0.0/8", "S", 1, Value::Null, json!("Null0")),
        ])
    );
    assert_eq!(
        bench.say("show clock | json"),
        "% There is no JSON of this\n"
    );
    assert!(
        bench
            .session
            .help("show vlan | ")
            .contains("\n  json     As JSON")
    );
}

#[test]
fn counters_from_here_on() {
    let mut bench = Bench::new();
    let count = |bench: &mut Bench| bench.say("show interfaces gi1/0/1 | include packets input");
    assert!(count(&mut bench).contains("10 packets input, 1000 bytes"));
    bench.say("clear counters gi1/0/2");
    bench.say("n");
    bench.say("clear counters gi1/0/2");
    bench.say("");
    assert!(
        count(&mut bench).contains("10 packets input"),
        "another one's"
    );
    bench.say("clear counters");
    bench.say("");
    assert!(count(&mut bench).contains(" 0 packets input, 0 bytes"));
    // who has begun anew since
    std::sync::Arc::make_mut(&mut lock(&bench.switch).cleared)
        .insert(port(1), [11, 1000, 20, 2000]);
    assert!(count(&mut bench).contains("10 packets input"));
}

#[test]
fn neighbours_and_own_addresses() {
    let mut bench = Bench::new();
    bench.set(&["interface vlan 7", "ip address 10.7.0.1 255.255.255.0"]);
    bench.fake.lock().unwrap().neighbours = vec![
        (vlan_interface(7), [10, 7, 0, 9].into(), None),
        (
            vlan_interface(7),
            [10, 7, 0, 2].into(),
            Some([2, 0, 0, 0, 0, 9]),
        ),
        (vlan_interface(7), "fe80::1".parse().unwrap(), None),
    ];
    let wanted = "\
Protocol  Address          Age (min)  Hardware Addr   Type   Interface
Internet  10.7.0.1                 -   0200.0000.0107  ARPA   Vlan7
Internet  10.7.0.2                 0   0200.0000.0009  ARPA   Vlan7
Internet  10.7.0.9                 0   Incomplete      ARPA   
";
    assert_eq!(bench.say("show ip arp"), wanted);
    assert_eq!(bench.say("show arp"), wanted);
    bench.quiet(&["clear arp-cache"]);
    assert_eq!(bench.fake.lock().unwrap().neighbours, []);
}

#[test]
fn so_many_lines_are_remembered() {
    let mut bench = Bench::new();
    bench.quiet(&["terminal history size 2"]);
    for n in 1..4 {
        bench.say(&format!("show vlan id {n}"));
    }
    assert_eq!(
        bench.say("show history"),
        "  show vlan id 3\n  show history\n"
    );
    bench.quiet(&["terminal history size 0"]);
    assert_eq!(bench.say("show history"), "");
}

#[test]
fn protocols_begin_anew() {
    let mut bench = Bench::new();
    bench.say("clear ip bgp *");
    bench.say("clear ip bgp 10.0.0.2");
    // Enter says no
    for answer in ["", "no", "yes"] {
        bench.say("clear ip ospf process");
        assert_eq!(bench.session.prompt(), "Reset ALL OSPF processes? [no]: ");
        bench.say(answer);
    }
    let asked = bench.fake.lock().unwrap().asked.lock().unwrap().clone();
    let one = Some([10, 0, 0, 2].into());
    assert_eq!(
        asked,
        [Ask::BgpAnew(None), Ask::BgpAnew(one), Ask::OspfAnew]
    );
    assert!(bench.say("clear ip bgp").contains("Incomplete"));
}

#[test]
fn much_at_once_for_who_helps_and_no_secrets_in_it() {
    let mut bench = Bench::new();
    bench.set(&[
        "vlan 7",
        "username al secret hidden",
        "router bgp 1",
        "neighbor 10.0.0.2 remote-as 2",
        "neighbor 10.0.0.2 password hidden",
    ]);
    let text = bench.say("show tech-support");
    for title in [
        "show version",
        "show running-config",
        "show vlan",
        "show processes cpu",
    ] {
        assert!(
            text.contains(&format!(
                "\n------------------ {title} ------------------\n"
            )),
            "{title}"
        );
    }
    assert!(text.contains("username al secret <removed>\n"), "{text}");
    assert!(text.contains(" neighbor 10.0.0.2 password <removed>\n"));
    assert!(!text.contains("hidden") && !text.contains("$argon2"));
    // each of its parts is a command
    assert_eq!(text.matches("------------------ show ").count(), 27);
}

#[test]
fn there_is_no_debugging_and_that_is_said() {
    let mut bench = Bench::new();
    assert!(bench.session.line("debug ip packet").refused);
    for line in ["undebug all", "no debug all", "u all"] {
        assert_eq!(
            bench.say(line),
            "All possible debugging has been turned off\n"
        );
    }
    assert_eq!(bench.say("show debugging"), "");
}

#[test]
fn a_port_has_one_speed() {
    let mut bench = Bench::new();
    bench.set(&[
        "interface gi1/0/1",
        "speed auto",
        "speed 1000",
        "duplex full",
        "duplex auto",
        "no speed",
        "interface te1/0/9",
        "speed 10000",
    ]);
    assert_eq!(
        bench.config(),
        Default::default(),
        "nothing that is to be kept"
    );
    bench.say("configure terminal");
    for (port, line, why) in [
        ("gi1/0/1", "speed 100", "has 1000 Mb/s and no other speed"),
        ("gi1/0/1", "duplex half", "has full duplex and no other"),
        ("te1/0/9", "speed 1000", "has 10000 Mb/s"),
        ("vlan 1", "speed auto", "Vlan1 is no port"),
    ] {
        bench.say(&format!("interface {port}"));
        let said = bench.session.line(line);
        assert!(
            said.refused && said.text.contains(why),
            "{line}: {}",
            said.text
        );
    }
}

#[test]
fn a_neighbour_set_by_hand() {
    let mut bench = Bench::new();
    bench.set(&[
        "arp 10.7.0.2 0200.0000.0009 arpa",
        "arp 10.7.0.3 0200.0000.000a ARPA",
        "no arp 10.7.0.3",
    ]);
    let text = bench.say("show running-config");
    assert!(
        text.contains("\narp 10.7.0.2 0200.0000.0009 ARPA\n"),
        "{text}"
    );
    assert!(!text.contains("10.7.0.3"));
    bench.say("configure terminal");
    for (line, why) in [
        ("arp 10.7.0.2 0100.5e00.0001 arpa", "Only unicast"),
        ("arp 224.0.0.1 0200.0000.0009 arpa", "no host's address"),
        ("arp 10.7.0.2 0200.0000.0009", "Incomplete"),
        ("no arp 10.7.0.9", "No such entry"),
    ] {
        let said = bench.session.line(line);
        assert!(
            said.refused && said.text.contains(why),
            "{line}: {}",
            said.text
        );
    }
    bench.say("end");
    let known = [(
        vlan_interface(7),
        [10, 7, 0, 2].into(),
        Some([2, 0, 0, 0, 0, 9]),
    )];
    bench.fake.lock().unwrap().neighbours = known.to_vec();
    let shown = bench.say("show ip arp");
    assert!(
        shown.contains("Internet  10.7.0.2                 -   0200.0000.0009  ARPA   Vlan7"),
        "{shown}"
    );
    bench.set(&["default arp 10.7.0.2"]);
    assert!(bench.config().neighbours.is_empty());
}
