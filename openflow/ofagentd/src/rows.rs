// SPDX-License-Identifier: Apache-2.0
//! Switches as the status has them: each by itself, and all together.

use serde_json::{Value, json};
use tandem_ofchip::Chip;

use crate::kept::Kept;
use crate::switch::Lsi;
use crate::text;

/// Whether the chip answers by itself, in words.
pub fn chip_state(chip: &Chip) -> String {
    match chip.lost() {
        Some(why) => format!("not attached: {why}"),
        None if chip.is_silent() => "does not answer".into(),
        None if chip.is_open() => "open".into(),
        None => "all frames go to the CPU".into(),
    }
}

fn chip_row(chip: &Chip) -> Value {
    let (u, t) = (chip.usage(), chip.troubles());
    json!({
        "state": chip_state(chip),
        "settled": chip.is_settled(),
        "acl_used": u.acl_used,
        "acl_size": u.acl_size,
        "mac_used": u.mac_used,
        "mac_size": chip.mac_size(),
        "mac_promised": u.mac_size.saturating_sub(u.mac_used),
        "port_sets_used": u.sets_used,
        "port_sets_size": u.sets_size,
        "class_used": u.class_used,
        "class_size": u.class_size,
        "groups_used": u.groups_used,
        "groups_size": u.groups_size,
        "forms_used": u.forms_used,
        "forms_size": u.forms_size,
        "turned": u.turned,
        "denied": u.denied,
        "refused": t.refused,
        "unanswered": t.unanswered,
        "mended": t.mended,
        "attaches": t.attaches,
    })
}

/// A switch, without its tables' contents.
pub fn lsi_row(l: &Lsi) -> Value {
    let agent = &l.agent;
    let dp = agent.datapath();
    let flows: u64 = dp.switch().table_stats().map(|t| u64::from(t.active)).sum();
    let up = agent.conns().filter(|(_, c)| c.version().is_some());
    let ports: Vec<String> = dp
        .ports()
        .map(|e| format!("{}={}", e.port.name, text::port_name(e.port.number)))
        .collect();
    json!({
        "lsi": l.name,
        "datapath_id": format!("{:016x}", agent.settings().datapath),
        "version_spoken": dp.version().name(),
        "ports": ports.len(),
        "members": ports.join(","),
        "flows": flows,
        "groups": dp.switch().groups().count(),
        "meters": dp.switch().meters().count(),
        "action_bytes": dp.switch().action_bytes(),
        "controllers": up.count(),
        "standalone": agent.stands_alone(),
        "kept": l.kept.as_ref().is_some_and(Kept::keeps),
        "kept_bytes": l.kept.as_ref().map_or(0, Kept::bytes),
        "chip": dp.chip().map(chip_row),
    })
}

/// True of all switches together when it is of each; other words are when they are of one.
fn is_of_all(key: &str) -> bool {
    matches!(key, "settled" | "kept")
}

/// What several switches are together: numbers are added, words listed, each once. The one that differs says how the chip is.
pub fn together(rows: &[Value]) -> Value {
    let mut all = serde_json::Map::new();
    for row in rows.iter().filter_map(Value::as_object) {
        for (key, value) in row {
            let old = all.remove(key);
            let new = match (old, value) {
                (None, v) => v.clone(),
                (Some(Value::Number(a)), Value::Number(b)) => {
                    json!(a.as_u64().unwrap_or(0) + b.as_u64().unwrap_or(0))
                }
                (Some(Value::Bool(a)), Value::Bool(b)) if is_of_all(key) => json!(a && *b),
                (Some(Value::Bool(a)), Value::Bool(b)) => json!(a || *b),
                (Some(Value::String(a)), Value::String(b)) if key == "state" => match a.as_str() {
                    "open" => json!(b),
                    _ => json!(a),
                },
                (Some(Value::String(a)), Value::String(b)) => {
                    match a.split(", ").any(|known| known == b) {
                        true => json!(a),
                        false => json!(format!("{a}, {b}")),
                    }
                }
                (Some(a @ Value::Object(_)), b @ Value::Object(_)) => together(&[a, b.clone()]),
                (Some(old), _) => old,
            };
            all.insert(key.clone(), new);
        }
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_switches_are_added_up() {
        let row = |flows: u32, id: &str, version: &str, alone: bool, state: &str, settled: bool| {
            json!({
                "flows": flows, "datapath_id": id, "version_spoken": version, "standalone": alone,
                "kept": settled,
                "chip": { "state": state, "settled": settled, "acl_used": flows },
            })
        };
        let rows = [
            row(2, "01", "1.3", false, "open", true),
            row(3, "02", "1.3", true, "all frames go to the CPU", false),
        ];
        let said = together(&rows);
        assert_eq!(
            said,
            json!({
                "flows": 5, "datapath_id": "01, 02", "version_spoken": "1.3", "standalone": true,
                "kept": false,
                "chip": { "state": "all frames go to the CPU", "settled": false, "acl_used": 5 },
            })
        );
        assert_eq!(together(&rows[..1]), rows[0]);
    }
}
