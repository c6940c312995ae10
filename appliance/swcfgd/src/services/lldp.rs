// SPDX-License-Identifier: Apache-2.0
//! LLDP by lldpd: what it reads, and its neighbours, as `lldpcli -f json0` writes them.

use std::fmt::Write as _;
use std::io;

use serde_json::Value;
use tandem_swconfig::{Config, Name};
use tandem_swconsole::services::Neighbour;

/// Characters of what a neighbour says; the rest is cut off.
const TEXT_MOST: usize = 255;
/// Neighbours that are shown.
const MOST: usize = 1024;

/// A port, and what the kernel calls its device.
pub type Port = (String, Name);

/// Commands of lldpcli.
pub(super) fn text(config: &Config, ports: &[Port]) -> String {
    if !config.services.lldp {
        return String::new();
    }
    let name = super::name(config);
    let devices: Vec<&str> = ports.iter().map(|(device, _)| device.as_str()).collect();
    let mut lines = format!(
        "configure system hostname {name}\nconfigure system description \"{}\"\nconfigure system interface pattern {}\n",
        super::DESCRIPTION,
        devices.join(",")
    );
    for (device, port) in ports {
        let short = port.short();
        let _ = writeln!(
            lines,
            "configure ports {device} lldp portidsubtype local {short}"
        );
    }
    lines
}

/// The first one's value, as a line.
fn value(of: &Value, key: &str) -> Option<String> {
    let text = of[key][0]["value"].as_str()?;
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().take(TEXT_MOST).map(plain).collect();
    Some(text.trim().to_owned()).filter(|t| !t.is_empty())
}

/// A number of a box or a port; a MAC as IOS has it.
fn id(of: &Value) -> String {
    let text = value(of, "id").unwrap_or_default();
    let digits: String = text.chars().filter(|c| *c != ':').collect();
    let mac = of["id"][0]["type"] == "mac" && digits.len() == 12 && digits.is_ascii();
    match (mac, digits.get(..4), digits.get(4..8), digits.get(8..)) {
        (true, Some(a), Some(b), Some(c)) => format!("{a}.{b}.{c}"),
        _ => text,
    }
}

/// All neighbours.
pub(super) fn neighbours(text: &str, ports: &[Port]) -> io::Result<Vec<Neighbour>> {
    let all: Value = serde_json::from_str(text)?;
    let list = all["lldp"][0]["interface"].as_array();
    let one = |i: &Value| {
        let device = i["name"].as_str()?;
        let (_, port) = ports.iter().find(|(d, _)| d == device)?;
        let (chassis, theirs) = (&i["chassis"][0], &i["port"][0]);
        let can = chassis["capability"].as_array();
        let capability = |c: &Value| {
            let word = c["type"].as_str()?.to_owned();
            Some((word, c["enabled"].as_bool().unwrap_or(false)))
        };
        let addresses = chassis["mgmt-ip"].as_array();
        let address = |a: &Value| a["value"].as_str()?.parse::<std::net::IpAddr>().ok();
        Some(Neighbour {
            port: port.short(),
            chassis: id(chassis),
            name: value(chassis, "name"),
            description: value(chassis, "descr"),
            port_id: id(theirs),
            port_description: value(theirs, "descr"),
            hold: value(theirs, "ttl")
                .and_then(|t| t.parse().ok())
                .unwrap_or(0),
            capabilities: can
                .into_iter()
                .flatten()
                .take(16)
                .filter_map(capability)
                .collect(),
            addresses: addresses
                .into_iter()
                .flatten()
                .take(16)
                .filter_map(address)
                .map(|a| a.to_string())
                .collect(),
        })
    };
    Ok(list
        .into_iter()
        .flatten()
        .take(MOST)
        .filter_map(one)
        .collect())
}
