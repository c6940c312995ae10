// SPDX-License-Identifier: Apache-2.0
//! Access lists: lines, their refusals, and what is shown.

use super::Bench;

const WEB: &[&str] = &[
    "ip access-list extended WEB",
    "permit tcp 10.1.0.0 0.0.255.255 any eq 80",
    "15 deny udp any range 1 1023 host 10.2.0.1 neq ntp",
    "permit icmp any any 8",
    "remark  everything  else",
    "permit tcp any any established log",
    "deny ip any any dscp ef fragments",
];

#[test]
fn a_list_is_what_was_typed() {
    let mut bench = Bench::new();
    bench.set(WEB);
    let text = bench.say("show running-config | section access-list");
    assert_eq!(
        text,
        "ip access-list extended WEB\n \
         10 permit tcp 10.1.0.0 0.0.255.255 any eq www\n \
         15 deny udp any range 1 1023 host 10.2.0.1 neq ntp\n \
         25 permit icmp any any echo\n \
         35 remark everything  else\n \
         45 permit tcp any any established log\n \
         55 deny ip any any dscp ef fragments\n"
    );
    assert_eq!(bench.say("conf t").lines().count(), 1);
    assert_eq!(bench.say("ip access-list ext WEB"), "");
    assert_eq!(bench.session.prompt(), "Switch(config-ext-nacl)#");
    bench.quiet(&["no 15", "no permit icmp any any echo", "end"]);
    let web = bench.config().lists["WEB"].clone();
    let left: Vec<u32> = web.entries.keys().copied().collect();
    assert_eq!(left, [10, 35, 45, 55]);
    bench.set(&["ip access-list resequence WEB 100 1"]);
    let web = bench.config().lists["WEB"].clone();
    assert!(web.entries.keys().copied().eq(100..104));
}

#[test]
fn lists_by_number() {
    let mut bench = Bench::new();
    bench.set(&[
        "access-list 10 permit 10.0.0.1",
        "access-list 10 deny 10.0.0.0 0.0.0.255",
        "access-list 10 deny 10.0.0.0 0.0.0.255",
        "access-list 2000 permit ip any any",
        "no access-list 2000 permit ip any any",
    ]);
    assert_eq!(
        bench.say("show access-lists"),
        "Standard IP access list 10\n    \
         10 permit 10.0.0.1\n    \
         20 deny   10.0.0.0, wildcard bits 0.0.0.255\n"
    );
    bench.say("conf t");
    let wrong = |at: usize| {
        format!(
            "{:1$}^\n% Invalid input detected at '^' marker.\n\n",
            "",
            "Switch(config)#".len() + at
        )
    };
    // a standard list has no protocols, a number beyond is none
    assert_eq!(bench.say("access-list 10 permit tcp any any"), wrong(22));
    assert_eq!(bench.say("access-list 200 permit any"), wrong(12));
    assert_eq!(
        bench.say("access-list 100 permit ip any"),
        "% Incomplete command.\n\n"
    );
    for (line, why) in [
        (
            "ip access-list extended 10",
            "% Invalid access list name.\n",
        ),
        (
            "ip access-list standard 7a",
            "% Invalid access list name.\n",
        ),
        (
            "no ip access-list standard x",
            "% Access list x is not there\n",
        ),
    ] {
        assert_eq!(bench.say(line), why, "{line}");
    }
    bench.quiet(&["ip access-list standard x"]);
    assert_eq!(
        bench.say("ip access-list extended x"),
        "% Access list x is there, and is standard\n"
    );
    bench.quiet(&["ip access-list standard x", "10 permit any"]);
    assert_eq!(bench.say("10 deny any"), "% Duplicate sequence number\n");
    assert_eq!(
        bench.say("no 20"),
        "% Specified access list entry is not there\n"
    );
    bench.quiet(&["2147483647 deny host 1.2.3.4"]);
    assert_eq!(
        bench.say("deny host 1.2.3.5"),
        "% Sequence numbers end at 2147483647\n"
    );
}

#[test]
fn lists_of_interfaces() {
    let mut bench = Bench::new();
    bench.set(&[
        "interface gi1/0/1",
        "ip access-group WEB in",
        "ipv6 traffic-filter SIX in",
        "interface vlan 7",
        "ip access-group 10 in",
        "ip access-group 100 out",
    ]);
    let text = bench.say("show running-config | include access-group|traffic-filter");
    assert_eq!(
        text,
        " ip access-group WEB in\n ipv6 traffic-filter SIX in\n ip access-group 10 in\n ip access-group 100 out\n"
    );
    bench.set(&["interface vlan 7", "ip address 10.7.0.1 255.255.255.0"]);
    let shown = "Vlan7 is up, line protocol is up\n  \
                 Internet address is 10.7.0.1/24\n  \
                 Broadcast address is 255.255.255.255\n  \
                 MTU is 1500 bytes\n  \
                 Outgoing access list is 100\n  \
                 Inbound  access list is 10\n";
    let port = "GigabitEthernet1/0/1 is up, line protocol is up\n  Inbound  access list is WEB\n";
    assert_eq!(bench.say("show ip interface vlan 7"), shown);
    assert_eq!(bench.say("show ip interface"), format!("{shown}{port}"));
    assert_eq!(
        bench.say("show ip interface gi1/0/2"),
        "GigabitEthernet1/0/2 is down, line protocol is down\n  Inbound  access list is not set\n"
    );
    bench.say("conf t");
    bench.quiet(&["interface gi1/0/2"]);
    assert_eq!(
        bench.say("ip access-group WEB out"),
        "% Command rejected: an access list of a port is one of what comes in\n"
    );
    bench.quiet(&["interface loopback 1"]);
    assert_eq!(
        bench.say("ip access-group WEB in"),
        "% Command rejected: Loopback1 has no access lists, ports and VLAN interfaces have\n"
    );
    bench.quiet(&["interface gi1/0/1", "no ip access-group in"]);
    bench.quiet(&["no ipv6 traffic-filter SIX in", "end"]);
    assert!(!bench.config().interfaces.contains_key(&super::port(1)));
}

#[test]
fn what_rules_have_met_is_shown() {
    let mut bench = Bench::new();
    bench.set(WEB);
    bench.set(&[
        "ipv6 access-list SIX",
        "permit tcp any 2001:db8::/32 eq bgp",
        "sequence 30 deny ipv6 host 2001:db8::1 any",
    ]);
    bench.fake.lock().unwrap().matches = [
        ((false, "WEB".into(), 10), 1),
        ((false, "WEB".into(), 55), 12),
        ((true, "SIX".into(), 30), 3),
        ((true, "WEB".into(), 10), 99),
    ]
    .into();
    let four = "Extended IP access list WEB\n    \
                10 permit tcp 10.1.0.0 0.0.255.255 any eq www (1 match)\n    \
                15 deny udp any range 1 1023 host 10.2.0.1 neq ntp\n    \
                25 permit icmp any any echo\n    \
                45 permit tcp any any established log\n    \
                55 deny ip any any dscp ef fragments (12 matches)\n";
    let six = "IPv6 access list SIX\n    \
               permit tcp any 2001:DB8::/32 eq bgp sequence 10\n    \
               deny ipv6 host 2001:DB8::1 any (3 matches) sequence 30\n";
    assert_eq!(bench.say("show access-lists"), format!("{four}{six}"));
    assert_eq!(bench.say("show ip access-lists"), four);
    assert_eq!(bench.say("show ipv6 access-list"), six);
    assert_eq!(bench.say("show ip access-lists NONE"), "");
}

#[test]
fn help_goes_word_by_word() {
    let mut bench = Bench::new();
    bench.say("conf t");
    bench.quiet(&["ip access-list extended WEB"]);
    let words = |bench: &Bench, line: &str| -> Vec<String> {
        let text = bench.session.help(line);
        let word = |l: &str| l.split_whitespace().next().unwrap_or_default().to_owned();
        text.lines().map(word).collect()
    };
    assert_eq!(
        words(&bench, "permit tcp any "),
        ["A.B.C.D", "any", "eq", "gt", "host", "lt", "neq", "range"]
    );
    assert_eq!(
        words(&bench, "permit tcp any any eq 80 "),
        ["dscp", "established", "log", "<cr>"]
    );
    assert_eq!(words(&bench, "permit tcp any host "), ["A.B.C.D"]);
    assert_eq!(
        bench.session.help("permit tcp any any est"),
        "established\n"
    );
    assert_eq!(
        bench.session.complete("permit tcp any any est").as_deref(),
        Some("permit tcp any any established ")
    );
}
