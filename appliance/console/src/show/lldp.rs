// SPDX-License-Identifier: Apache-2.0
//! `show lldp neighbors`

use std::fmt::Write as _;

use tandem_swgrammar::Parsed;

use crate::Switch;
use crate::services::Neighbour;

/// What IOS has a letter for, by the words of lldpd.
const LETTERS: [(&str, &str); 8] = [
    ("Router", "R"),
    ("Bridge", "B"),
    ("Tel", "T"),
    ("Docsis", "C"),
    ("Wlan", "W"),
    ("Repeater", "P"),
    ("Station", "S"),
    ("Other", "O"),
];
const HEAD: &str = "Capability codes:
    (R) Router, (B) Bridge, (T) Telephone, (C) DOCSIS Cable Device
    (W) WLAN Access Point, (P) Repeater, (S) Station, (O) Other

Device ID           Local Intf     Hold-time  Capability      Port ID
";

/// In short, or with `detail`.
pub(super) fn neighbours(switch: &Switch, parsed: &Parsed) -> String {
    if !switch.config.services.lldp {
        return "% LLDP is not enabled\n".into();
    }
    let all = match switch.daemons.neighbours() {
        Ok(all) => all,
        Err(why) => return format!("% {why}\n"),
    };
    let long = parsed.has("detail");
    let mut text = String::from(if long { "" } else { HEAD });
    for neighbour in &all {
        text.push_str(&if long {
            detail(neighbour)
        } else {
            row(neighbour)
        });
    }
    let _ = writeln!(text, "\nTotal entries displayed: {}", all.len());
    text
}

fn letters(of: &Neighbour, enabled: bool) -> String {
    let wanted = of.capabilities.iter().filter(|(_, is)| *is || !enabled);
    let letter = |(word, _): &(String, bool)| {
        let found = LETTERS.iter().find(|(w, _)| w == word);
        found.map(|(_, letter)| *letter)
    };
    wanted.filter_map(letter).collect::<Vec<_>>().join(",")
}

/// One that does not say what it is called is known by its number.
fn row(of: &Neighbour) -> String {
    let name: String = of
        .name
        .as_ref()
        .unwrap_or(&of.chassis)
        .chars()
        .take(19)
        .collect();
    format!(
        "{name:<20}{:<15}{:<11}{:<16}{}\n",
        of.port,
        of.hold,
        letters(of, true),
        of.port_id
    )
}

fn detail(of: &Neighbour) -> String {
    let said = |what: &str, text: &Option<String>| match text {
        Some(text) => format!("{what}: {text}\n"),
        None => format!("{what} - not advertised\n"),
    };
    let mut text = format!(
        "------------------------------------------------\nLocal Intf: {}\nChassis id: {}\nPort id: {}\n",
        of.port, of.chassis, of.port_id
    );
    text.push_str(&said("Port Description", &of.port_description));
    text.push_str(&said("System Name", &of.name));
    match &of.description {
        Some(description) => {
            let _ = write!(text, "\nSystem Description: \n{description}\n\n");
        }
        None => text.push_str("System Description - not advertised\n\n"),
    }
    let _ = writeln!(text, "Time remaining: {} seconds", of.hold);
    let _ = writeln!(text, "System Capabilities: {}", letters(of, false));
    let _ = writeln!(text, "Enabled Capabilities: {}", letters(of, true));
    if of.addresses.is_empty() {
        text.push_str("Management Addresses - not advertised\n");
    } else {
        text.push_str("Management Addresses:\n");
        for address in &of.addresses {
            let family = if address.contains(':') { "IPV6" } else { "IP" };
            let _ = writeln!(text, "    {family}: {address}");
        }
    }
    text.push_str("Vlan ID: - not advertised\n\n");
    text
}
