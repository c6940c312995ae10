// SPDX-License-Identifier: Apache-2.0
//! VLANs and stations.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tandem_swconfig::{Kind, Mode, Name, Station, Vlan};
use tandem_swgrammar::{Arg, Parsed};

use crate::Switch;
use crate::change::vlan_name;
use crate::render::shown_mac;

/// The width of the last column of `show vlan`.
const PORTS_WIDE: usize = 31;

/// The VLANs that a command names, or all.
pub(super) fn chosen_vlans(switch: &Switch, parsed: &Parsed) -> BTreeMap<u16, Vlan> {
    let mut vlans: BTreeMap<u16, Vlan> = switch.config.vlans.clone();
    vlans.entry(1).or_default();
    let named = parsed.text();
    vlans.retain(|id, v| {
        parsed.vlan().is_none_or(|one| one == *id) && named.is_none_or(|n| n == vlan_name(*id, v))
    });
    vlans
}

/// Access ports and their VLANs; those of a port-channel are that one's, which comes behind all ports.
pub(super) fn access_ports(switch: &Switch) -> Vec<(Name, u16)> {
    let channels = switch.config.interfaces.keys();
    let channels = channels.filter(|n| n.kind == Kind::PortChannel).copied();
    let all = switch.engine.ports().into_iter().chain(channels);
    let access = |name: Name| {
        let set = switch.config.interface(&name);
        let port = set.switchport.filter(|_| set.channel.is_none())?;
        (port.mode == Mode::Access).then_some((name, port.access))
    };
    all.filter_map(access).collect()
}

/// `show vlan`
pub(super) fn vlan(switch: &Switch, parsed: &Parsed) -> String {
    let vlans = chosen_vlans(switch, parsed);
    let named = parsed.text();
    if let (Some(id), true) = (parsed.vlan(), vlans.is_empty()) {
        return format!("VLAN id {id} not found in current VLAN database\n");
    }
    if let (Some(name), true) = (named, vlans.is_empty()) {
        return format!("VLAN {name} not found in current VLAN database\n");
    }
    let mut inside: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for (port, vid) in access_ports(switch) {
        inside.entry(vid).or_default().push(port.short());
    }
    let mut text = String::from(
        "\nVLAN Name                             Status    Ports\n\
         ---- -------------------------------- --------- -------------------------------\n",
    );
    for (id, vlan) in &vlans {
        let status = if vlan.suspended {
            "suspended"
        } else {
            "active"
        };
        let mut lines = wrapped(inside.get(id).map_or(&[], Vec::as_slice)).into_iter();
        let first = lines.next().unwrap_or_default();
        let _ = writeln!(
            text,
            "{id:<4} {:<32} {status:<9} {first}",
            vlan_name(*id, vlan)
        );
        lines.for_each(|l| {
            let _ = writeln!(text, "{:48}{l}", "");
        });
    }
    if parsed.has("brief") {
        return text;
    }
    text.push_str(
        "\nVLAN Type  SAID       MTU   Parent RingNo BridgeNo Stp  BrdgMode Trans1 Trans2\n\
         ---- ----- ---------- ----- ------ ------ -------- ---- -------- ------ ------\n",
    );
    for id in vlans.keys() {
        let said = 100_000 + u32::from(*id);
        let _ = writeln!(
            text,
            "{id:<4} enet  {said:<10} 1500  -      -      -        -    -        0      0   "
        );
    }
    if parsed.vlan().is_none() && named.is_none() {
        text.push_str(
            "\nRemote SPAN VLANs\n\
             ------------------------------------------------------------------------------\n\
             \n\n\
             Primary Secondary Type              Ports\n\
             ------- --------- ----------------- ------------------------------------------\n",
        );
    }
    text
}

/// Names with commas between them, in lines of the last column.
fn wrapped(names: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        match lines.last_mut() {
            Some(line) if line.len() + 2 + name.len() <= PORTS_WIDE => {
                line.push_str(", ");
                line.push_str(name);
            }
            Some(line) => {
                line.push(',');
                lines.push(name.clone());
            }
            None => lines.push(name.clone()),
        }
    }
    lines
}

/// The stations that a command is about.
pub(super) fn chosen_stations(switch: &Switch, parsed: &Parsed) -> Vec<Station> {
    let mut stations = switch.engine.stations();
    stations.sort();
    let address = parsed.args.iter().find_map(|a| match a {
        Arg::Mac(mac) => Some(*mac),
        _ => None,
    });
    let port = parsed.interfaces().first().copied();
    stations.retain(|s| {
        (!parsed.has("dynamic") || !s.fixed)
            && (!parsed.has("static") || s.fixed)
            && parsed.vlan().is_none_or(|v| v == s.vlan)
            && address.is_none_or(|m| m == s.mac)
            && port.is_none_or(|p| s.port == Some(p))
    });
    stations
}

/// `show mac address-table`
pub(super) fn stations(switch: &Switch, parsed: &Parsed) -> String {
    let stations = chosen_stations(switch, parsed);
    let mut text = String::from(
        "          Mac Address Table\n\
         -------------------------------------------\n\
         \n\
         Vlan    Mac Address       Type        Ports\n\
         ----    -----------       --------    -----\n",
    );
    for station in &stations {
        let kind = if station.fixed { "STATIC" } else { "DYNAMIC" };
        let port = station.port.map_or("CPU".into(), |p| p.short());
        let _ = writeln!(
            text,
            "{:>4}    {}    {kind:<8}    {port}",
            station.vlan,
            shown_mac(&station.mac)
        );
    }
    let _ = writeln!(
        text,
        "Total Mac Addresses for this criterion: {}",
        stations.len()
    );
    text
}
