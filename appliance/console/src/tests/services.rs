// SPDX-License-Identifier: Apache-2.0
//! The log, the clock, NTP, SNMP, DHCP servers elsewhere.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex};

use proptest::collection::{btree_map, btree_set};
use proptest::option;
use proptest::prelude::*;
use tandem_swconfig::Config;
use tandem_swconfig::services::{Buffer, Logging, NtpServer, Services, Snmp, Stamp, Zone};

use super::{Bench, port};
use crate::services::{Daemons, Neighbour, Ntp};
use crate::{lock, logs};

/// `ip helper-address`
pub(super) fn helpers() -> impl Strategy<Value = std::collections::BTreeSet<Ipv4Addr>> {
    btree_set((1u8..9).prop_map(|n| Ipv4Addr::new(10, 99, 0, n)), 0..3)
}

fn logging() -> impl Strategy<Value = Logging> {
    let buffer = option::of((4096u32..=16_777_216, 0u8..8));
    let hosts = btree_map(
        (1u8..9).prop_map(|n| Ipv4Addr::new(10, 99, 1, n)),
        1u16..,
        0..4,
    );
    let trap = option::of(0u8..8);
    (any::<bool>(), buffer, trap, 0u8..24, any::<bool>(), hosts).prop_map(
        |(off, buffer, trap, facility, origin, hosts)| Logging {
            off,
            buffer: buffer.map(|(octets, level)| Buffer { octets, level }),
            trap,
            facility,
            origin,
            hosts,
        },
    )
}

/// All of the switch's.
pub(super) fn services() -> impl Strategy<Value = Services> {
    let zone = option::of(("[A-Z]{1,7}", -1439i32..=1439));
    let text = || option::of("[!-~]([ -~]{0,30}[!-~])?");
    let word = "[!$-&(-\\[\\]-~]{1,32}";
    let ntp = btree_map(
        (1u8..9).prop_map(|n| Ipv4Addr::new(10, 99, 2, n)),
        (any::<bool>(), any::<bool>()),
        0..4,
    );
    let stamp = || {
        let words = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
        option::of(words.prop_map(|(millis, local, zone, year)| Stamp {
            millis,
            local,
            zone,
            year,
        }))
    };
    let domain = option::of("[a-z]{1,5}(\\.[a-z]{1,5}){0,2}");
    let more = (stamp(), stamp(), domain, any::<bool>(), any::<bool>());
    (
        logging(),
        zone,
        ntp,
        btree_set(word, 0..3),
        text(),
        text(),
        more,
    )
        .prop_map(
            |(logging, zone, ntp, communities, location, contact, more)| Services {
                stamp: more.0,
                debug_stamp: more.1,
                domain: more.2,
                ssh2: more.3,
                lldp: more.4,
                logging,
                zone: zone.map(|(name, minutes)| Zone { name, minutes }),
                ntp: ntp
                    .into_iter()
                    .map(|(a, (iburst, prefer))| (a, NtpServer { iburst, prefer }))
                    .collect(),
                snmp: Snmp {
                    communities,
                    location,
                    contact,
                },
            },
        )
}

#[test]
fn what_was_typed_is_what_is_set() {
    let mut bench = Bench::new();
    bench.set(&[
        "clock timezone CET 1",
        "logging buffered 8192 warnings",
        "logging trap 7",
        "logging facility local0",
        "logging origin-id hostname",
        "logging host 10.0.0.9",
        "logging 10.0.0.8",
        "logging host 10.0.0.7 transport udp port 5514",
        "ntp server 10.0.0.1 prefer",
        "ntp server 10.0.0.2 version 4 iburst",
        "snmp-server community public RO",
        "snmp-server location Rack 7, left",
        "snmp-server contact noc@example.org",
        "interface vlan 2",
        "ip helper-address 10.0.0.5",
        "ip helper-address 10.0.0.4",
    ]);
    assert_eq!(
        bench.say("show running-config | include clock|logging|ntp|snmp|helper"),
        "logging buffered 8192 warnings\n\
         clock timezone CET 1 0\n \
         ip helper-address 10.0.0.4\n \
         ip helper-address 10.0.0.5\n\
         logging trap debugging\n\
         logging facility local0\n\
         logging origin-id hostname\n\
         logging host 10.0.0.7 transport udp port 5514\n\
         logging host 10.0.0.8\n\
         logging host 10.0.0.9\n\
         snmp-server community public RO\n\
         snmp-server location Rack 7, left\n\
         snmp-server contact noc@example.org\n\
         ntp server 10.0.0.1 prefer\n\
         ntp server 10.0.0.2 iburst\n"
    );
    assert!(bench.say("show clock").contains(" CET "));
    bench.set(&[
        "no clock timezone",
        "default logging buffered",
        "no logging trap",
        "no logging facility",
        "no logging origin-id",
        "no logging host 10.0.0.7",
        "no logging 10.0.0.8",
        "default logging host 10.0.0.9",
        "no ntp server 10.0.0.1",
        "no ntp server 10.0.0.2 iburst",
        "no snmp-server community public",
        "no snmp-server location",
        "no snmp-server contact anybody",
        "interface vlan 2",
        "no ip helper-address 10.0.0.5",
        "no ip helper-address",
        "exit",
        "no logging buffered",
        "no logging on",
    ]);
    assert_eq!(
        bench.say("show running-config | include clock|logging|ntp|snmp|helper"),
        "no logging on\nno logging buffered\nno logging trap\n"
    );
    bench.set(&[
        "default logging on",
        "default logging trap",
        "logging buffered",
        "no interface vlan 2",
    ]);
    assert_eq!(bench.config(), Config::default());
}

#[test]
fn lines_that_configurations_of_others_have() {
    let mut bench = Bench::new();
    bench.set(&[
        "service timestamps debug datetime msec",
        "service timestamps log datetime msec localtime show-timezone",
        "no ip domain-lookup",
        "no ip domain lookup",
        "no logging console",
        "no logging monitor debugging",
        "ip domain-name example.org",
        "ip ssh version 2",
        "clock timezone CET 1",
    ]);
    assert_eq!(
        bench.say("show running-config | include stamps|domain|ssh|console|monitor"),
        "service timestamps log datetime msec localtime show-timezone\n\
         ip domain name example.org\nip ssh version 2\n"
    );
    let last = |bench: &mut Bench| {
        let text = bench.say("show logging");
        text.lines()
            .rev()
            .find(|l| l.contains("CONFIG_I"))
            .unwrap()
            .to_owned()
    };
    assert!(last(&mut bench).contains(" CET: %SYS-5-CONFIG_I: "));
    bench.set(&["no service timestamps log"]);
    assert!(last(&mut bench).starts_with("%SYS-5-CONFIG_I: "));
    assert_eq!(bench.config().services.debug_stamp, Some(Stamp::default()));
    bench.set(&[
        "default service timestamps",
        "no ip domain name",
        "no ip ssh version",
        "no clock timezone",
    ]);
    assert_eq!(bench.config(), Config::default());
    bench.say("conf t");
    for line in [
        "ip domain-lookup",
        "logging console",
        "logging monitor 7",
        "ip ssh version 1",
        "ip domain-name a..b",
    ] {
        assert!(bench.say(line).starts_with("% "), "{line}");
    }
    assert_eq!(bench.config(), Config::default());
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut bench = Bench::new();
    bench.say("conf t");
    for (line, why) in [
        (
            "logging host 224.0.0.1",
            "% Invalid host address - 224.0.0.1\n",
        ),
        (
            "ntp server 127.0.0.1",
            "% Invalid host address - 127.0.0.1\n",
        ),
        (
            "clock timezone CET 24",
            "% Hours before UTC are -23 to 23\n",
        ),
        (
            "clock timezone CET 1.5",
            "% Hours before UTC are -23 to 23\n",
        ),
        (
            "clock timezone C-T 1",
            "% A time zone's name has 1 to 7 letters and digits\n",
        ),
        (
            "snmp-server community s3cret rw",
            "% Nothing is changed by SNMP here: a community may read (ro)\n",
        ),
        (
            "snmp-server community a\"b",
            "% A community has 1 to 32 characters, without \" ' \\ #\n",
        ),
    ] {
        assert_eq!(bench.say(line), why, "{line}");
    }
    bench.quiet(&["interface gi1/0/1"]);
    assert_eq!(
        bench.say("ip helper-address 10.0.0.1"),
        "% Command rejected: GigabitEthernet1/0/1 is no routed interface.\n"
    );
    for n in 1..=16 {
        bench.quiet(&[&format!("logging host 10.1.0.{n}")]);
    }
    assert_eq!(
        bench.say("logging host 10.1.0.17"),
        "% There are 16 logging hosts, and no room for more\n"
    );
    bench.quiet(&["logging host 10.1.0.16 transport udp port 9"]);
    assert_eq!(bench.config().services.logging.hosts.len(), 16);
}

/// What hosts were sent.
type Sent = Arc<Mutex<Vec<(SocketAddrV4, String)>>>;

fn told(bench: &Bench) -> Sent {
    let sent = Sent::default();
    let to = Arc::clone(&sent);
    lock(&bench.switch)
        .logs
        .send_by(Box::new(move |host, text| {
            let text = String::from_utf8(text.to_vec()).unwrap();
            to.lock().unwrap().push((host, text));
            host.port() != 9
        }));
    sent
}

/// The messages that are kept, without their times.
fn kept(bench: &mut Bench) -> Vec<String> {
    let text = bench.say("show logging");
    let (_, lines) = text.split_once(" bytes):\n\n").unwrap();
    let bare = |l: &str| l.split_once(": ").unwrap().1.to_owned();
    lines
        .lines()
        .map(bare)
        .filter(|l| !l.starts_with("%PARSER-7"))
        .collect()
}

#[test]
fn what_happens_is_logged() {
    let mut bench = Bench::new();
    let ports = |up| [(port(1), true), (port(2), up), (port(3), up)];
    lock(&bench.switch).logs.links(&ports(true));
    bench.set(&["interface gi1/0/3", "shutdown"]);
    lock(&bench.switch).logs.links(&ports(false));
    lock(&bench.switch).logs.links(&ports(false));
    bench.say("conf t");
    assert!(bench.say("snmp-server community x rw").starts_with('%'));
    bench.quiet(&[
        "username bob secret s3cret",
        "interface gi1/0/3",
        "no shutdown",
    ]);
    bench.session.leave();
    lock(&bench.switch).logs.links(&ports(true));
    let [_, two, three] = ports(true).map(|(name, _)| name);
    let own = |line: &str| format!("%PARSER-5-CFGLOG_LOGGEDCMD: User:  logged command:{line}");
    let link = |name, how| format!("%LINK-3-UPDOWN: Interface {name}, changed state to {how}");
    let protocol = |name, how| {
        format!("%LINEPROTO-5-UPDOWN: Line protocol on Interface {name}, changed state to {how}")
    };
    let left = "%SYS-5-CONFIG_I: Configured from console by ".to_owned();
    assert_eq!(
        kept(&mut bench),
        [
            own("interface gi1/0/3"),
            format!("%LINK-5-CHANGED: Interface {three}, changed state to administratively down"),
            own("shutdown"),
            left.clone(),
            link(two, "down"),
            protocol(two, "down"),
            // that it is down was said, and why
            protocol(three, "down"),
            own("username bob secret *****"),
            own("interface gi1/0/3"),
            own("no shutdown"),
            left,
            link(two, "up"),
            protocol(two, "up"),
            link(three, "up"),
            protocol(three, "up"),
        ]
    );
    bench.say("clear logging");
    bench.say("");
    assert_eq!(kept(&mut bench), [""; 0]);
    bench.say("hunter2");
    let shown = bench.say("show logging");
    assert!(shown.contains("%PARSER-7-EXEC: User:  command:show logging\n"));
    assert!(!shown.contains("hunter2"), "a secret typed as a command");
}

#[test]
fn hosts_are_sent_what_they_are_to_have() {
    let mut bench = Bench::new();
    let sent = told(&bench);
    bench.set(&[
        "logging trap errors",
        "logging host 10.0.0.9",
        "logging host 10.0.0.8 transport udp port 9",
    ]);
    let say = |bench: &Bench, kind, text: &str| lock(&bench.switch).logs.say(kind, text);
    say(&bench, logs::ERROR, "a\nb");
    say(&bench, logs::WARNING, "c");
    bench.set(&[
        "hostname sw1",
        "logging origin-id hostname",
        "logging facility local0",
    ]);
    say(&bench, logs::ERROR, &"d".repeat(5000));
    let all = sent.lock().unwrap().clone();
    let hosts: Vec<String> = all.iter().map(|(host, _)| host.to_string()).collect();
    assert_eq!(
        hosts,
        ["10.0.0.8:9", "10.0.0.9:514", "10.0.0.8:9", "10.0.0.9:514"]
    );
    let texts: Vec<&str> = all.iter().map(|(_, text)| text.as_str()).collect();
    assert!(texts[0].starts_with("<187>1: ") && texts[0].ends_with(": %TANDEM-3-ERROR: a b"));
    assert!(
        texts[2].starts_with("<131>2: sw1: ") && texts[2].len() < 1100,
        "{}",
        texts[2]
    );
    let shown = bench.say("show logging");
    assert!(shown.contains("Trap logging: level errors, 2 message lines logged\n"));
    assert!(shown.contains("Logging to 10.0.0.8  (udp port 9, audit disabled,\n"));
    assert!(shown.contains("2 message lines lost"));
    bench.set(&["no logging on"]);
    say(&bench, logs::ERROR, "e");
    bench.set(&["logging on", "no logging trap"]);
    say(&bench, logs::ERROR, "f");
    assert_eq!(sent.lock().unwrap().len(), 4);
}

#[test]
fn the_buffer_is_as_long_as_it_is_set() {
    let mut bench = Bench::new();
    let say = |bench: &Bench, n: usize| {
        lock(&bench.switch)
            .logs
            .say(logs::WARNING, &format!("{n:0100}"));
    };
    (0..1000).for_each(|n| say(&bench, n));
    let all = kept(&mut bench);
    // 4,096 octets, of lines of 142 with their times
    assert!((26..=28).contains(&all.len()), "{}", all.len());
    assert!(all.last().unwrap().ends_with("999"), "the oldest go");
    bench.set(&["logging buffered 8192 errors"]);
    let before = kept(&mut bench);
    say(&bench, 7);
    assert_eq!(kept(&mut bench), before, "a warning is no error");
    bench.set(&["no logging buffered", "logging buffered"]);
    assert_eq!(kept(&mut bench).len(), 2, "what was kept is gone");
}

/// Daemons that refuse an NTP server, and say what they were told.
struct Told(Arc<Mutex<Vec<usize>>>);

impl Daemons for Told {
    fn set(&self, config: &Config) -> Result<(), String> {
        let servers = config.services.ntp.len();
        self.0.lock().unwrap().push(servers);
        match servers {
            2 => Err("no room on the disk".into()),
            _ => Ok(()),
        }
    }

    fn ntp(&self, what: Ntp) -> Result<String, String> {
        match what {
            Ntp::Status => Ok("Clock is synchronized\n".into()),
            Ntp::Associations => Err("chronyd is not reached".into()),
        }
    }

    fn neighbours(&self) -> Result<Vec<Neighbour>, String> {
        let quiet = Neighbour {
            port: "Gi1/0/2".into(),
            chassis: "0011.2233.4455".into(),
            port_id: "7".into(),
            hold: 30,
            ..Neighbour::default()
        };
        let one = Neighbour {
            port: "Gi1/0/1".into(),
            name: Some("a-box-with-a-very-long-name".into()),
            description: Some("Linux".into()),
            port_id: "Gi1/0/4".into(),
            port_description: Some("uplink".into()),
            hold: 120,
            capabilities: [("Bridge", true), ("Router", true), ("Wlan", false)]
                .map(|(word, is)| (word.into(), is))
                .into(),
            addresses: vec!["10.0.0.1".into(), "fe80::1".into()],
            ..quiet.clone()
        };
        Ok(vec![one, quiet])
    }
}

#[test]
fn daemons_are_told_all_or_nothing() {
    let mut bench = Bench::new();
    let heard = Arc::<Mutex<Vec<usize>>>::default();
    lock(&bench.switch).daemons = Arc::new(Told(Arc::clone(&heard)));
    bench.set(&["ntp server 10.0.0.1"]);
    bench.say("conf t");
    assert_eq!(bench.say("ntp server 10.0.0.2"), "% no room on the disk\n");
    assert_eq!(bench.config().services.ntp.len(), 1);
    // what the engine refuses is taken back here
    bench.fake.lock().unwrap().refuse = Some((7, "no"));
    bench.session.leave();
    let text = "ntp server 10.0.0.1\nntp server 10.0.0.2\nntp server 10.0.0.3\nvlan 7\n";
    bench
        .files
        .0
        .lock()
        .unwrap()
        .insert("x".into(), text.into());
    assert!(bench.say("configure replace x force").starts_with("% no\n"));
    assert_eq!(*heard.lock().unwrap(), [1, 2, 3, 1]);
    assert_eq!(bench.say("show ntp status"), "Clock is synchronized\n");
    assert_eq!(
        bench.say("show ntp associations"),
        "% chronyd is not reached\n"
    );
}

#[test]
fn neighbours_are_shown_as_in_ios() {
    let mut bench = Bench::new();
    lock(&bench.switch).daemons = Arc::new(Told(Arc::default()));
    assert_eq!(bench.say("show lldp neighbors"), "% LLDP is not enabled\n");
    bench.set(&["lldp run", "no cdp run"]);
    assert!(bench.say("show running-config").contains("\nlldp run\n"));
    let text = bench.say("show lldp neighbors");
    let (_, rows) = text.split_once("Port ID\n").unwrap();
    assert_eq!(
        rows,
        "a-box-with-a-very-l Gi1/0/1        120        B,R             Gi1/0/4\n\
         0011.2233.4455      Gi1/0/2        30                         7\n\
         \nTotal entries displayed: 2\n"
    );
    let text = bench.say("show lldp neighbors detail");
    for line in [
        "Port Description: uplink",
        "System Name - not advertised",
        "System Capabilities: B,R,W",
        "Enabled Capabilities: B,R",
        "    IPV6: fe80::1",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line}: {text}");
    }
    if let Some(to) = std::env::var_os("TANDEM_LLDP_TO") {
        let both = [bench.say("show lldp neighbors"), text];
        std::fs::write(to, both.join("=====\n")).unwrap();
    }
    bench.say("conf t");
    assert!(bench.say("cdp run").starts_with("% CDP is not spoken"));
}
