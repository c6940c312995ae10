// SPDX-License-Identifier: Apache-2.0
//! `show … | json`: the same facts for programs, where there is more than text.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tandem_swconfig::{Mode, Name};
use tandem_swgrammar::{Id, Parsed};

use super::{chosen, ip, layer2, ports};
use crate::Switch;
use crate::change::vlan_name;
use crate::render::shown_mac;

/// What a command shows as JSON; `None`: it has text alone.
pub(crate) fn json(switch: &Switch, parsed: &Parsed) -> Option<Value> {
    Some(match parsed.id {
        Id::ShowVersion => version(switch),
        Id::ShowVlan => vlans(switch, parsed),
        Id::ShowStatus => status(switch, parsed),
        Id::ShowStations => stations(switch, parsed),
        Id::ShowIpRoute => ip::json(switch, true),
        Id::ShowIpv6Route => ip::json(switch, false),
        _ => return None,
    })
}

fn name(name: &Name) -> Value {
    Value::String(name.to_string())
}

fn version(switch: &Switch) -> Value {
    let mac = super::first_mac(switch);
    json!({
        "hostname": switch.config.hostname.as_deref().unwrap_or("Switch"),
        "version": env!("CARGO_PKG_VERSION"),
        "engine": switch.engine.name(),
        "uptime_s": switch.uptime(),
        "ports": switch.engine.ports().len(),
        "mac": shown_mac(&mac),
        "serial": super::serial(&mac),
    })
}

fn vlans(switch: &Switch, parsed: &Parsed) -> Value {
    let mut inside: BTreeMap<u16, Vec<Value>> = BTreeMap::new();
    for (port, vid) in layer2::access_ports(switch) {
        inside.entry(vid).or_default().push(name(&port));
    }
    let all: Vec<Value> = layer2::chosen_vlans(switch, parsed)
        .iter()
        .map(|(id, vlan)| {
            json!({
                "vlan": id,
                "name": vlan_name(*id, vlan),
                "active": !vlan.suspended,
                "access_ports": inside.remove(id).unwrap_or_default(),
            })
        })
        .collect();
    json!({ "vlans": all })
}

fn status(switch: &Switch, parsed: &Parsed) -> Value {
    let err_disabled = super::tree::err_disabled(switch);
    let states = chosen(switch, parsed);
    let all: Vec<Value> = states
        .iter()
        .filter(|s| s.name.is_switched())
        .map(|s| {
            let port = s.set.switchport.as_ref();
            json!({
                "interface": name(&s.name),
                "description": s.set.description,
                "status": ports::word(s, &err_disabled),
                "mode": port.map(|p| if p.mode == Mode::Trunk { "trunk" } else { "access" }),
                "vlan": port.filter(|p| p.mode == Mode::Access).map(|p| p.access),
                "speed_mbps": s.link.as_ref().map(|l| l.speed).filter(|l| *l != 0),
            })
        })
        .collect();
    json!({ "interfaces": all })
}

fn stations(switch: &Switch, parsed: &Parsed) -> Value {
    let all: Vec<Value> = layer2::chosen_stations(switch, parsed)
        .iter()
        .map(|s| {
            json!({
                "vlan": s.vlan,
                "mac": shown_mac(&s.mac),
                "type": if s.fixed { "static" } else { "dynamic" },
                "interface": s.port.as_ref().map(name),
            })
        })
        .collect();
    json!({ "stations": all })
}
