//! `tandem show`: rows from the daemons, merged where both know something.

use crate::Answer;
use crate::args::{Show, Table};
use crate::out::Out;
use crate::table::{Column, cell, left, render, right};
use anyhow::Result;
use serde_json::{Map, Value, json};
use tandem_mgmt::client::query;
use tandem_mgmt::{Client, ClientError, Daemon, Instance};
use unicode_width::UnicodeWidthStr;

/// Keys of a port's row that switchd fills; all others are asicd's.
const SWITCHD_PORT_KEYS: [&str; 9] = [
    // of a part of a split port, what asicd doesn't know
    "name", "netdev", "ifindex", "mac", "mtu", "admin_up", "bridge", "state", "reason",
];

const PORTS: &[Column] = &[
    left("PORT", "name"),
    left("CABLE", "attachment"),
    left("LINK", "link"),
    left("ADMIN", "admin_up"),
    right("MTU", "mtu"),
    left("BRIDGE", "bridge"),
    left("STATE", "state"),
    right("RX-PACKETS", "counters.rx_packets"),
    right("RX-BYTES", "counters.rx_bytes"),
    right("TX-PACKETS", "counters.tx_packets"),
    right("TX-BYTES", "counters.tx_bytes"),
    right("RX-DROP", "counters.rx_dropped"),
    right("TX-DROP", "counters.tx_dropped"),
    right("TO-CPU", "counters.rx_cpu_packets"),
    right("FROM-CPU", "counters.tx_cpu_packets"),
    left("REASON", "reason"),
];
const FDB: &[Column] = &[
    left("MAC", "mac"),
    left("BRIDGE", "bridge"),
    right("FID", "fid"),
    left("DEV", "dev"),
    left("KIND", "kind"),
    left("STATE", "state"),
    left("REASON", "reason"),
];
const MDB: &[Column] = &[
    left("GROUP", "group"),
    left("SOURCE", "source"),
    left("BRIDGE", "bridge"),
    right("VLAN", "vlan"),
    left("MEMBERS", "members"),
    left("STATE", "state"),
    left("REASON", "reason"),
];
const ROUTES: &[Column] = &[
    left("PREFIX", "prefix"),
    right("VRF", "vrf"),
    right("METRIC", "metric"),
    left("KERNEL", "desired"),
    left("ASIC", "installed"),
    left("STATE", "state"),
    left("REASON", "reason"),
];
const NEIGHBOURS: &[Column] = &[
    left("ADDRESS", "address"),
    left("DEV", "dev"),
    left("MAC", "mac"),
    left("KERNEL", "source_state"),
    left("STATE", "state"),
    left("REASON", "reason"),
];
const ACL: &[Column] = &[
    left("DEV", "dev"),
    left("HOOK", "hook"),
    right("PREF", "pref"),
    right("HANDLE", "handle"),
    left("RULE", "rule"),
    right("PACKETS", "packets"),
    left("STATE", "state"),
    left("REASON", "reason"),
];
const POOLS: &[Column] = &[
    left("POOL", "name"),
    left("UNIT", "unit"),
    right("SIZE", "size"),
    right("USED", "used"),
    right("IN-FLIGHT", "in_flight"),
    right("COMMITTED", "committed"),
    right("FREE", "free"),
    right("HIGH-WATERMARK", "high_watermark"),
];
const CLASSES: &[Column] = &[
    left("CLASS", "cls"),
    left("POOL", "pool"),
    right("COST", "cost"),
    right("FREE-GUARANTEED", "free_guaranteed"),
    right("FREE-EXPECTED", "free_expected"),
];
const TRAPS: &[Column] = &[
    left("REASON", "reason"),
    left("CLASS", "class"),
    right("PACKETS", "packets"),
    right("BYTES", "bytes"),
    right("DROPPED", "dropped"),
    right("GUARANTEED-PPS", "guaranteed_pps"),
    right("RATE-PPS", "rate_pps"),
    right("BURST", "burst"),
];
const TRAP_CLASSES: &[Column] = &[
    left("CLASS", "class"),
    right("PACKETS", "packets"),
    right("QUEUED", "queued"),
    right("OF", "queue_size"),
    right("POLICED", "policer_dropped"),
    right("QUEUE-FULL", "queue_dropped"),
    right("RATE-PPS", "rate_pps"),
    right("BURST", "burst"),
];
const QUEUES: &[Column] = &[
    left("PORT", "port"),
    right("CLASS", "class"),
    right("LIMIT-MBPS", "limit_mbps"),
    right("PACKETS", "packets"),
    right("BYTES", "bytes"),
    right("QUEUED", "queued"),
    right("TAIL-DROPS", "tail_drops"),
    right("DEPTH", "depth"),
    right("HIGH-WATERMARK", "high_watermark"),
];
const DROPS: &[Column] = &[
    left("STAGE", "stage"),
    left("REASON", "reason"),
    left("PORT", "port"),
    right("PACKETS", "packets"),
];

/// All rows of a list, page after page, at most `limit`.
pub fn rows(
    client: &Client,
    path: &str,
    pairs: &[(&str, &str)],
    limit: Option<usize>,
) -> Result<Vec<Value>, ClientError> {
    let most = limit.unwrap_or(usize::MAX);
    let mut all: Vec<Value> = Vec::new();
    // where a list goes on is a number or a text, as its daemon likes it
    let mut cursor = String::new();
    loop {
        let mut pairs = pairs.to_vec();
        if !cursor.is_empty() {
            pairs.push(("cursor", &cursor));
        }
        let mut page: Value = client.get(&query(path, &pairs))?;
        if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
            all.extend(items);
        }
        let next = match page.get("next") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        if all.len() >= most || next.is_empty() || next == cursor {
            all.truncate(most);
            return Ok(all);
        }
        cursor = next;
    }
}

/// A part of a split port, `swp5s1`, has a number that is another port's where that port is not split: only switchd knows.
/// Without one the number is meant.
pub fn known_part(instance: &Instance, name: &str) -> Result<()> {
    let part = name.strip_prefix("swp").and_then(|n| n.split_once('s'));
    let client = Client::to(instance, Daemon::Switchd);
    let (Some((cage, _)), Ok(ports)) = (part, rows(&client, "/v1/ports", &[], None)) else {
        return Ok(());
    };
    let called = |row: &Value| row.get("name").and_then(Value::as_str) == Some(name);
    anyhow::ensure!(
        ports.iter().any(called),
        "no port {name}: swp{cage} is not split like that (tandem show ports lists them)"
    );
    Ok(())
}

/// asicd's rows with switchd's part of each laid over.
fn merge_ports(mut asic: Vec<Value>, switch: &[Value]) -> Vec<Value> {
    for row in &mut asic {
        let other = switch.iter().find(|s| s.get("port") == row.get("port"));
        if let (Some(other), Value::Object(row)) = (other, row) {
            for key in SWITCHD_PORT_KEYS {
                if let Some(v) = other.get(key) {
                    row.insert(key.into(), v.clone());
                }
            }
        }
    }
    asic
}

/// Of switchd's rows what it knows; the rest are zeroes for asicd to replace.
fn switchd_part(mut rows: Vec<Value>) -> Vec<Value> {
    for row in rows.iter_mut().filter_map(Value::as_object_mut) {
        row.retain(|k, _| k == "port" || SWITCHD_PORT_KEYS.contains(&k.as_str()));
    }
    rows
}

/// Both daemons' rows. What one of them knows is worth seeing while the other restarts or hangs.
fn ports(instance: &Instance) -> Result<Vec<Value>> {
    let ask = |daemon| rows(&Client::to(instance, daemon), "/v1/ports", &[], None);
    let missing = |e: &ClientError| eprintln!("tandem: {e}: its part of each port is missing");
    Ok(match (ask(Daemon::Asicd), ask(Daemon::Switchd)) {
        (Ok(asic), Ok(switch)) => merge_ports(asic, &switch),
        (Ok(asic), Err(e)) => {
            missing(&e);
            asic
        }
        (Err(e), Ok(switch)) => {
            missing(&e);
            switchd_part(switch)
        }
        (Err(e), Err(_)) => return Err(e.into()),
    })
}

/// Columns from the rows themselves, for table memory whose fields are those of the ABI.
fn auto(rows: &[Value]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut heads: Vec<String> = Vec::new();
    for row in rows {
        for key in row.as_object().map(Map::keys).into_iter().flatten() {
            if !heads.contains(key) {
                heads.push(key.clone());
            }
        }
    }
    let columns: Vec<Vec<String>> = heads
        .iter()
        .map(|h| {
            let mut c = vec![h.to_uppercase().replace('_', "-")];
            c.extend(rows.iter().map(|r| cell(r.get(h).unwrap_or(&Value::Null))));
            let width = c.iter().map(|s| s.width()).max().unwrap_or(0);
            c.into_iter()
                .map(|s| format!("{s}{}", " ".repeat(width - s.width())))
                .collect()
        })
        .collect();
    (0..=rows.len())
        .map(|i| {
            let line: Vec<&str> = columns
                .iter()
                .filter_map(|c| c.get(i).map(String::as_str))
                .collect();
            format!("{}\n", line.join("  ").trim_end())
        })
        .collect()
}

fn matches(row: &Value, word: &str) -> bool {
    match row {
        Value::Object(o) => o.values().any(|v| matches(v, word)),
        Value::Array(a) => a.iter().any(|v| matches(v, word)),
        v => cell(v).contains(word),
    }
}

/// Columns of what switchd lists beside the chip's memory.
fn listed(what: Table) -> Option<&'static [Column]> {
    Some(match what {
        Table::Fdb => FDB,
        Table::Mdb => MDB,
        Table::Routes => ROUTES,
        Table::Neighbours => NEIGHBOURS,
        Table::Acl => ACL,
        _ => return None,
    })
}

/// `tandem show TABLE`
pub fn show(instance: &Instance, s: &Show, out: Out) -> Result<Answer> {
    let asicd = Client::to(instance, Daemon::Asicd);
    let switchd = Client::to(instance, Daemon::Switchd);
    let family = s.family.as_deref().unwrap_or("");
    // a word is looked for in all rows, the limit is for those that are shown
    let fetch = if s.word.is_some() { None } else { s.limit };
    // tables have their names in the API's paths
    let name = crate::args::name(&s.what);
    let asked = |client: &Client, path: String| rows(client, &path, &[("family", family)], fetch);
    // where no daemon runs the kernel driver may have the chip
    let mut chip = match s.hw || crate::query::any_daemon(instance) {
        true => None,
        false => crate::driver::open(),
    };
    let driven = match &mut chip {
        Some(chip) => chip.rows(s.what)?,
        None => None,
    };
    let driven = driven.map(|mut rows| {
        let wanted = Value::from(format!("ipv{family}"));
        rows.retain(|r| family.is_empty() || r.get("family") == Some(&wanted));
        rows.truncate(fetch.unwrap_or(usize::MAX));
        rows
    });
    let (mut list, columns): (Vec<Value>, &[Column]) = match s.what {
        Table::Resources => {
            let r: Value = match &mut chip {
                Some(chip) => chip.resources()?,
                None => asicd.get("/v1/resources")?,
            };
            return two_tables(out, s, &r, POOLS, CLASSES);
        }
        Table::Traps => {
            let r: Value = asicd.get("/v1/traps")?;
            return two_tables(out, s, &r, TRAPS, TRAP_CLASSES);
        }
        Table::Queues => {
            let r: Value = asicd.get("/v1/queues")?;
            return queues(out, s, r);
        }
        Table::Ports => (ports(instance)?, PORTS),
        Table::Drops => (asked(&asicd, "/v1/drops".into())?, DROPS),
        Table::Replication | Table::Learning => (asked(&asicd, format!("/v1/{name}"))?, &[]),
        what => match (listed(what), driven) {
            (Some(columns), Some(driven)) if !s.hw => (driven, columns),
            (Some(columns), None) if !s.hw => (asked(&switchd, format!("/v1/{name}"))?, columns),
            (_, Some(driven)) => (driven, &[]),
            (_, None) => (asked(&asicd, format!("/v1/table/{name}"))?, &[]),
        },
    };
    pick(&mut list, s);
    let text = || {
        if columns.is_empty() {
            auto(&list)
        } else {
            render(columns, &list)
        }
    };
    out.print(&Value::Array(list.clone()), text)?;
    // a word that nothing matches is "not found"
    Ok(if s.word.is_some() && list.is_empty() {
        Answer::No
    } else {
        Answer::Yes
    })
}

/// Queues, and below them one line of the crossbar.
fn queues(out: Out, s: &Show, mut answer: Value) -> Result<Answer> {
    let mut list = Vec::new();
    if let Some(Value::Array(items)) = answer.get_mut("items").map(Value::take) {
        list = items;
    }
    pick(&mut list, s);
    let crossbar = answer.get("crossbar").cloned().unwrap_or_default();
    let value = json!({"items": list, "crossbar": crossbar});
    out.print(&value, || {
        format!(
            "{}\n{}",
            render(QUEUES, &list),
            auto(std::slice::from_ref(&crossbar))
        )
    })?;
    Ok(if s.word.is_some() && list.is_empty() {
        Answer::No
    } else {
        Answer::Yes
    })
}

/// The rows that were asked for: those with the word, no more than the limit.
fn pick(list: &mut Vec<Value>, s: &Show) {
    if let Some(word) = &s.word {
        list.retain(|row| matches(row, word));
    }
    list.truncate(s.limit.unwrap_or(usize::MAX));
}

/// An answer of `items` and `classes`: both, one below the other. Rows in which nothing happened stay: the table
/// is short, and "0" is an answer.
fn two_tables(
    out: Out,
    s: &Show,
    answer: &Value,
    first: &[Column],
    second: &[Column],
) -> Result<Answer> {
    let part = |key: &str| {
        let rows = answer.get(key).and_then(Value::as_array);
        let mut rows = rows.cloned().unwrap_or_default();
        pick(&mut rows, s);
        rows
    };
    let (items, classes) = (part("items"), part("classes"));
    let value = json!({"items": items, "classes": classes});
    out.print(&value, || {
        format!("{}\n{}", render(first, &items), render(second, &classes))
    })?;
    Ok(
        if s.word.is_some() && items.is_empty() && classes.is_empty() {
            Answer::No
        } else {
            Answer::Yes
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_daemon_keeps_its_part_of_a_port() {
        let merged = merge_ports(
            vec![
                json!({"port": 1, "name": "swp1", "link": true, "mtu": 0, "counters": {"rx_packets": 5}}),
            ],
            &[
                json!({"port": 1, "name": "swp1", "link": false, "mtu": 1500, "bridge": "br0", "counters": null}),
            ],
        );
        assert_eq!(merged[0]["link"], true);
        assert_eq!(merged[0]["mtu"], 1500);
        assert_eq!(merged[0]["counters"]["rx_packets"], 5);
        assert_eq!(merged[0]["bridge"], "br0");
        let alone = switchd_part(vec![
            json!({"port": 1, "name": "swp1", "link": false, "mtu": 1500, "counters": null}),
        ]);
        assert_eq!(alone, [json!({"port": 1, "name": "swp1", "mtu": 1500})]);
    }

    #[test]
    fn a_limit_holds_after_the_word() {
        let rows = || vec![json!({"a": "x"}), json!({"a": "y"}), json!({"a": "y"})];
        for (word, limit, left) in [
            (None, None, 3),
            (None, Some(2), 2),
            (Some("y"), None, 2),
            (Some("y"), Some(1), 1),
        ] {
            let s = Show {
                what: Table::Ports,
                word: word.map(str::to_owned),
                hw: false,
                family: None,
                limit,
            };
            let mut list = rows();
            pick(&mut list, &s);
            assert_eq!(list.len(), left, "{word:?} {limit:?}");
        }
    }

    #[test]
    fn a_word_is_found_in_any_column() {
        let row = json!({"prefix": "10.0.0.0/8", "nexthops": [{"via": "1.2.3.4"}]});
        assert!(matches(&row, "1.2.3"));
        assert!(!matches(&row, "swp"));
    }

    #[test]
    fn table_memory_shows_all_its_fields() {
        let text = auto(&[
            json!({"vrf": 0, "prefix": "10.0.0.0/8"}),
            json!({"vrf": 1, "prefix": "::/0", "action": "trap"}),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].contains("PREFIX") && lines[0].contains("ACTION"));
        assert!(lines[2].contains("trap"));
    }
}
