// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeSet;

use proptest::prelude::*;
use tandem_swconfig::{Kind, Name};

use crate::table::EVERYWHERE;
use crate::walk::{Token, expand};
use crate::words::WORDS;
use crate::{Arg, COMMANDS, Failure, Form, Grammar, Id, Mode, Parsed, Ports};

fn ports() -> Ports {
    let port = |kind, number| (Name { kind, number }, format!("swp{number}"));
    Ports {
        ports: (1..=8)
            .map(|n| port(Kind::Gigabit, n))
            .chain([port(Kind::TenGigabit, 9)])
            .collect(),
    }
}

fn gi(number: u16) -> Name {
    Name {
        kind: Kind::Gigabit,
        number,
    }
}

fn parse(mode: Mode, line: &str) -> Result<Parsed, Failure> {
    Grammar::new().parse(mode, 15, line, &ports())
}

fn id(mode: Mode, line: &str) -> Id {
    parse(mode, line)
        .unwrap_or_else(|e| panic!("{line}: {e:?}"))
        .id
}

fn next(mode: Mode, line: &str) -> Vec<String> {
    let found = Grammar::new()
        .next(mode, 15, line, &ports())
        .unwrap_or_else(|e| panic!("{line}: {e:?}"));
    found.into_iter().map(|n| n.word).collect()
}

#[test]
fn words_may_be_short() {
    assert_eq!(id(Mode::Exec, "sh run"), Id::ShowRunning);
    assert_eq!(id(Mode::Exec, "conf t"), Id::Configure);
    assert_eq!(id(Mode::Exec, "SHOW Vlan BR"), Id::ShowVlan);
    assert_eq!(id(Mode::Exec, "wr"), Id::Write);
    assert_eq!(id(Mode::Exec, "en"), Id::Enable);
    assert_eq!(id(Mode::Exec, "sh int status"), Id::ShowStatus);
    assert_eq!(id(Mode::Exec, "sh mac add dyn"), Id::ShowStations);
    assert_eq!(id(Mode::Interface, "sw tr all vl add 5"), Id::AllowedVlans);
    assert_eq!(id(Mode::Interface, "shut"), Id::Shutdown);
    assert_eq!(parse(Mode::Exec, "sh v"), Err(Failure::Ambiguous));
    assert_eq!(parse(Mode::Exec, "e"), Err(Failure::Ambiguous));
    // an exact word wins over those that it begins
    assert_eq!(id(Mode::Exec, "show ip route"), Id::ShowIpRoute);
    assert_eq!(parse(Mode::Interface, "ip"), Err(Failure::Incomplete));
}

#[test]
fn a_command_of_the_mode_above_is_one_of_it() {
    let vlan = parse(Mode::Interface, "vlan 10").unwrap();
    assert_eq!((vlan.id, vlan.mode), (Id::Vlan, Mode::Config));
    let route = parse(Mode::Interface, "ip route 10.0.0.0 255.0.0.0 null0").unwrap();
    assert_eq!((route.id, route.mode), (Id::IpRoute, Mode::Config));
    assert_eq!(
        parse(Mode::Interface, "int gi1/0/2").unwrap().mode,
        Mode::Config
    );
    assert_eq!(parse(Mode::Vlan, "name a").unwrap().mode, Mode::Vlan);
    // the caret is where more of it was understood
    assert_eq!(
        parse(Mode::Interface, "ip route 10.0.0.0 255.0.255.0"),
        Err(Failure::Invalid(18))
    );
    // exec mode's are not
    assert_eq!(parse(Mode::Config, "show vlan"), Err(Failure::Invalid(0)));
}

#[test]
fn no_and_default() {
    let no = parse(Mode::Interface, "no sw acc vl").unwrap();
    assert_eq!((no.id, no.form), (Id::AccessVlan, Form::No));
    assert_eq!(
        parse(Mode::Interface, "no switchport access vlan 7")
            .unwrap()
            .vlan(),
        Some(7)
    );
    assert_eq!(
        parse(Mode::Interface, "default switchport").unwrap().form,
        Form::Default
    );
    assert_eq!(
        parse(Mode::Interface, "no description what it was")
            .unwrap()
            .id,
        Id::Description
    );
    assert_eq!(
        parse(Mode::Interface, "default end"),
        Err(Failure::Invalid(8))
    );
    assert_eq!(
        parse(Mode::Config, "no ip route 10.0.0.0 255.0.0.0")
            .unwrap()
            .id,
        Id::IpRoute
    );
}

#[test]
fn interfaces_in_all_their_ways() {
    for line in [
        "int gi1/0/1",
        "interface GigabitEthernet 1/0/1",
        "int swp1",
        "INT g1/0/1",
        "int Gi 1/0/1",
    ] {
        assert_eq!(
            parse(Mode::Config, line).unwrap().interfaces(),
            [gi(1)],
            "{line}"
        );
    }
    let vlan = Name {
        kind: Kind::Vlan,
        number: 10,
    };
    for line in ["int vlan 10", "int vl10", "interface Vlan10", "int v 10"] {
        assert_eq!(
            parse(Mode::Config, line).unwrap().interfaces(),
            [vlan],
            "{line}"
        );
    }
    assert_eq!(
        parse(Mode::Config, "int gi1/0/77"),
        Err(Failure::Invalid(6))
    );
    assert_eq!(
        parse(Mode::Config, "int gi 1/0/77"),
        Err(Failure::Invalid(7))
    );
    assert_eq!(
        parse(Mode::Config, "int vlan 4095"),
        Err(Failure::Invalid(9))
    );
    assert_eq!(parse(Mode::Config, "int gi"), Err(Failure::Incomplete));
    assert_eq!(
        parse(Mode::Config, "int te1/0/1"),
        Err(Failure::Invalid(6)),
        "port 1 is not of that speed"
    );
}

#[test]
fn ranges() {
    let range = |line: &str| parse(Mode::Config, line).map(|p| p.interfaces());
    let all = [gi(1), gi(2), gi(3), gi(4), gi(7)];
    for line in [
        "int range gi1/0/1 - 4 , gi1/0/7",
        "int ra gi1/0/1-4,gi1/0/7",
        "interface range GigabitEthernet 1/0/1 - 1/0/4, Gi 1/0/7",
        "int range gi1/0/1-gi1/0/4,swp7",
    ] {
        assert_eq!(range(line).unwrap(), all, "{line}");
    }
    assert_eq!(range("int range vlan 10 - 12").unwrap().len(), 3);
    assert_eq!(range("int range gi1/0/4 - 1"), Err(Failure::Invalid(20)));
    assert_eq!(range("int range gi1/0/1 - 99"), Err(Failure::Invalid(10)));
    assert!(range("int range gi1/0/1 ,").is_err());
    assert!(range("int range gi1/0/1 -").is_err());
    assert!(range("int range -").is_err());
}

#[test]
fn numbers_lists_and_addresses() {
    let vlans = |line: &str| parse(Mode::Config, line).map(|p| p.vlans().cloned());
    assert_eq!(
        vlans("vlan 1-3,7").unwrap(),
        Some(BTreeSet::from([1, 2, 3, 7]))
    );
    for line in [
        "vlan 0",
        "vlan 4095",
        "vlan 3-1",
        "vlan 1,,2",
        "vlan +5",
        "vlan 1-",
        "vlan 99999999999999999999",
    ] {
        assert_eq!(vlans(line), Err(Failure::Invalid(5)), "{line}");
    }
    let address = parse(Mode::Interface, "ip addr 10.0.0.1 255.255.255.0 sec").unwrap();
    assert_eq!(
        address.args,
        [Arg::Address([10, 0, 0, 1].into()), Arg::Mask(24)]
    );
    assert!(address.has("secondary"));
    assert_eq!(
        parse(Mode::Interface, "ip addr 10.0.0.1 255.0.255.0"),
        Err(Failure::Invalid(17))
    );
    assert_eq!(parse(Mode::Interface, "mtu 67"), Err(Failure::Invalid(4)));
    assert_eq!(
        parse(Mode::Interface, "mtu 9216").unwrap().number(),
        Some(9216)
    );
    assert_eq!(
        parse(
            Mode::Config,
            "mac addr stat 0011.2233.44ff vlan 1 int gi1/0/1"
        )
        .unwrap()
        .mac(),
        Some([0, 0x11, 0x22, 0x33, 0x44, 0xff])
    );
    assert!(parse(Mode::Config, "mac addr stat 0011.2233 vlan 1 int gi1/0/1").is_err());
    assert!(parse(Mode::Interface, "ipv6 address 2001:db8::1/129").is_err());
    assert_eq!(
        parse(Mode::Interface, "description  a  |  b ")
            .unwrap()
            .text(),
        Some("a  |  b")
    );
}

#[test]
fn a_file_is_never_elsewhere() {
    for file in [
        "../x",
        "flash:../x",
        "/etc/passwd",
        "flash:a/b",
        ".x",
        "flash:",
        "-x",
        "a b/c",
    ] {
        let line = format!("configure replace {file}");
        assert!(parse(Mode::Exec, &line).is_err(), "{file}");
    }
    assert_eq!(
        parse(Mode::Exec, "configure replace flash:a.cfg")
            .unwrap()
            .text(),
        Some("a.cfg")
    );
    assert_eq!(
        parse(Mode::Exec, "configure replace start").unwrap().text(),
        None
    );
}

#[test]
fn what_may_follow() {
    assert_eq!(
        next(Mode::Interface, "switchport mode "),
        ["access", "trunk"]
    );
    assert_eq!(next(Mode::Interface, "sh"), ["shutdown"]);
    assert_eq!(next(Mode::Exec, "sh"), ["show"]);
    assert_eq!(
        next(Mode::Exec, "show vlan "),
        ["<cr>", "brief", "id", "name"]
    );
    assert_eq!(
        next(Mode::Interface, "switchport access vlan "),
        ["<1-4094>"]
    );
    assert_eq!(
        next(Mode::Config, "interface "),
        [
            "GigabitEthernet",
            "Loopback",
            "Port-channel",
            "TenGigabitEthernet",
            "Vlan",
            "range"
        ]
    );
    assert_eq!(next(Mode::Config, "interface gig"), ["GigabitEthernet"]);
    assert_eq!(next(Mode::Config, "interface gi "), ["<1/0/1-1/0/8>"]);
    assert_eq!(next(Mode::Config, "interface vlan "), ["<1-4094>"]);
    assert_eq!(next(Mode::Config, "interface po "), ["<1-128>"]);
    assert_eq!(
        next(Mode::Exec, "show mac address-table interface "),
        ["GigabitEthernet", "Port-channel", "TenGigabitEthernet"]
    );
    let source = "monitor session 1 source interface ";
    assert_eq!(
        next(Mode::Config, source),
        ["GigabitEthernet", "TenGigabitEthernet"]
    );
    // of the mode above, once something of it is typed
    assert!(!next(Mode::Interface, "").contains(&"hostname".into()));
    assert_eq!(next(Mode::Interface, "host"), ["hostname"]);
    let grammar = Grammar::new();
    assert_eq!(
        grammar.next(Mode::Exec, 15, "show xyz ", &ports()),
        Err(Failure::Invalid(5))
    );
    assert_eq!(
        grammar.next(Mode::Exec, 15, "xyz", &ports()),
        Err(Failure::Invalid(0))
    );
}

#[test]
fn below_a_level_a_command_is_not_there() {
    let grammar = Grammar::new();
    assert_eq!(
        grammar.parse(Mode::Exec, 1, "conf t", &ports()),
        Err(Failure::Invalid(0))
    );
    assert_eq!(
        grammar.parse(Mode::Exec, 1, "show running-config", &ports()),
        Err(Failure::Invalid(5))
    );
    assert!(grammar.parse(Mode::Exec, 1, "show vlan", &ports()).is_ok());
}

#[test]
fn errors_in_the_words_of_ios() {
    let shown = |line: &str, prompt| parse(Mode::Exec, line).unwrap_err().shown(line, prompt);
    assert_eq!(
        shown("show xyz", 7),
        "            ^\n% Invalid input detected at '^' marker.\n\n"
    );
    assert_eq!(shown("show", 7), "% Incomplete command.\n\n");
    assert_eq!(shown("sh v", 7), "% Ambiguous command:  \"sh v\"\n");
}

/// Every keyword has help, and help that nobody sees is gone.
#[test]
fn every_word_has_help() {
    let mut seen = BTreeSet::from(["no", "default"]);
    for command in COMMANDS {
        for tokens in expand(command.line).into_iter().chain(expand(command.no)) {
            for (i, token) in tokens.iter().enumerate() {
                let Token::Key(key) = token else { continue };
                assert!(
                    key.chars().all(|c| !c.is_ascii_uppercase()),
                    "{key} is not known as a kind"
                );
                let entry = crate::words::entry(&tokens[..i], key);
                seen.insert(entry.unwrap_or_else(|| panic!("{}: {key}", command.line)).0);
            }
        }
    }
    let unseen: Vec<_> = WORDS
        .iter()
        .map(|(w, _)| *w)
        .filter(|w| !seen.contains(w))
        .collect();
    assert_eq!(unseen, Vec::<&str>::new());
}

proptest! {
    #[test]
    fn any_line_is_answered(line in "[ -~\t\u{e4}\u{4e2d}]{0,60}", mode in 0usize..EVERYWHERE.len()) {
        let mode = EVERYWHERE[mode];
        let grammar = Grammar::new();
        let length = line.chars().count();
        if let Err(Failure::Invalid(at)) = grammar.parse(mode, 15, &line, &ports()) {
            prop_assert!(at <= length);
        }
        let _ = grammar.next(mode, 15, &line, &ports());
    }

    /// What is offered is understood: a line made of what help says goes on.
    #[test]
    fn what_is_offered_may_be_typed(picks in proptest::collection::vec(0usize..100, 1..8), mode in 0usize..EVERYWHERE.len()) {
        let mode = EVERYWHERE[mode];
        let grammar = Grammar::new();
        let mut line = String::new();
        for pick in picks {
            let offered = grammar.next(mode, 15, &line, &ports());
            let offered = offered.map_err(|e| TestCaseError::fail(format!("{line:?}: {e:?}")))?;
            let next = &offered[pick % offered.len()];
            if next.literal {
                line.push_str(&next.word);
                line.push(' ');
            } else {
                break;
            }
        }
    }
}

/// The table of docs/console.md is this one. With TANDEM_SHOWN=write in the environment it is written instead.
#[test]
fn documented() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/console.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("<!-- commands -->\n").unwrap();
    let (is, after) = rest.split_once("<!-- end -->").unwrap();
    let mut table =
        String::from("| mode | level | command | `no` | what it does |\n|---|---|---|---|---|\n");
    for command in COMMANDS {
        let modes: Vec<&str> = command
            .modes
            .iter()
            .map(|m| if *m == Mode::Exec { "exec" } else { m.word() })
            .collect();
        let code = |t: &str| {
            if t.is_empty() {
                String::new()
            } else {
                format!("`{}`", t.replace('|', "\\|"))
            }
        };
        let (line, no) = (code(command.line), code(command.no));
        table += &format!(
            "| {} | {} | {line} | {no} | {} |\n",
            modes.join(", "),
            command.level,
            command.what
        );
    }
    if std::env::var("TANDEM_SHOWN").is_ok_and(|v| v == "write") {
        std::fs::write(
            &path,
            format!("{before}<!-- commands -->\n{table}<!-- end -->{after}"),
        )
        .unwrap();
        return;
    }
    assert!(
        is == table,
        "docs/console.md has another table of commands; the test says how to write it"
    );
}
