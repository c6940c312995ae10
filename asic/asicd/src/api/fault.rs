//! Fault plans: the chip misbehaves as told, from now on.

use serde::Deserialize;
use serde_json::Value;
use tandem_abi::raw;
use tandem_firmware::{Fault, FaultAction, FlipTable, PoolId};

use crate::asic::Asic;

use super::table::{Table, page};

/// Body of `POST /v1/fault`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The nth write (of a class) fails, `count` times (0: from then on always).
    Fail {
        /// 1 is the next one.
        #[serde(default = "one")]
        nth: u64,
        /// `route`, `neigh`, …; none: every class.
        #[serde(default)]
        cls: Option<String>,
        /// How often.
        #[serde(default = "one")]
        count: u64,
    },
    /// A pool takes nothing any more.
    Table {
        /// The pool's name.
        table: String,
    },
    /// Completions come so much later.
    Delay {
        /// Milliseconds.
        ms: u64,
    },
    /// The nth command is executed, but its completion never comes.
    Drop {
        /// 1 is the next one.
        #[serde(default = "one")]
        nth: u64,
    },
    /// One entry of the table memory changes behind everybody's back.
    Flip {
        /// `fdb`, `neighbours`, `routes`, `nexthops`.
        table: String,
        /// As the table shows it: prefix, address, MAC, id; none: the first entry.
        #[serde(default)]
        key: Option<String>,
    },
    /// Untagged packets come to the driver with a tag that was not on the wire.
    StrayTag {
        /// Its VLAN.
        vid: u16,
    },
    /// The chip resets itself: tables empty, driver detached.
    Reset,
    /// No faults any more.
    Clear,
}

fn one() -> u64 {
    1
}

/// Applies it; the answer says what was done, an error is one line.
pub fn apply(asic: &mut Asic, request: Request) -> Result<String, String> {
    match request {
        Request::Fail { nth: 0, .. } | Request::Drop { nth: 0 } => {
            Err("nth counts from 1: the next one is 1".into())
        }
        Request::Fail { nth, cls, count } => {
            let cls = cls.as_deref().map(class).transpose()?;
            // Ports and traps are there from the start: they are only updated
            let op = match cls {
                Some(raw::TND_CLS_PORT | raw::TND_CLS_TRAP) => raw::TND_OP_UPDATE,
                _ => raw::TND_OP_CREATE,
            };
            asic.fw.faults.add(Fault {
                action: FaultAction::Fail,
                op: Some(op),
                cls,
                pool: None,
                after: nth,
                count,
            })?;
            Ok(format!("write {nth} fails"))
        }
        Request::Table { table } => {
            let pool = PoolId::ALL
                .into_iter()
                .find(|p| p.name() == table)
                .ok_or_else(|| {
                    let names: Vec<&str> = PoolId::ALL.iter().map(|p| p.name()).collect();
                    format!("no pool '{table}': there are {}", names.join(", "))
                })?;
            asic.fw.faults.add(Fault {
                action: FaultAction::Fail,
                op: Some(raw::TND_OP_CREATE),
                cls: None,
                pool: Some(pool as u16),
                after: 1,
                count: 0,
            })?;
            Ok(format!("{table} takes nothing any more"))
        }
        Request::Delay { ms } => {
            asic.fw.faults.add(Fault {
                action: FaultAction::Delay(ms.saturating_mul(1_000_000)),
                op: None,
                cls: None,
                pool: None,
                after: 1,
                count: 0,
            })?;
            Ok(format!("every command takes {ms} ms longer"))
        }
        Request::Drop { nth } => {
            asic.fw.faults.add(Fault {
                action: FaultAction::DropCompletion,
                op: None,
                cls: None,
                pool: None,
                after: nth,
                count: 1,
            })?;
            Ok(format!("completion {nth} never comes"))
        }
        Request::Flip { table, key } => flip(asic, &table, key.as_deref()),
        Request::StrayTag { vid } => {
            if !(1..=4094).contains(&vid) {
                return Err(format!("VLAN {vid} can't be: 1 to 4094"));
            }
            asic.out.cpu.set_stray_tag(Some(vid));
            Ok(format!(
                "untagged packets get VLAN {vid} on their way to the driver"
            ))
        }
        Request::Reset => {
            asic.fw.cold_reset();
            asic.fail(raw::TND_FAIL_INTERNAL, "a fault plan said so");
            Ok("the chip has reset itself".into())
        }
        Request::Clear => {
            asic.fw.faults.clear();
            asic.out.cpu.set_stray_tag(None);
            Ok("no faults any more".into())
        }
    }
}

fn class(name: &str) -> Result<u16, String> {
    Ok(match name.replace('_', "-").as_str() {
        "port" => raw::TND_CLS_PORT,
        "vlan" => raw::TND_CLS_VLAN,
        "vlan-member" | "member" => raw::TND_CLS_VLAN_MEMBER,
        "fdb" => raw::TND_CLS_FDB,
        "vrf" => raw::TND_CLS_VRF,
        "rif" => raw::TND_CLS_RIF,
        "neigh" | "neighbour" => raw::TND_CLS_NEIGH,
        "nexthop" => raw::TND_CLS_NEXTHOP,
        "nhg" => raw::TND_CLS_NHG,
        "route" => raw::TND_CLS_ROUTE,
        "trap" => raw::TND_CLS_TRAP,
        _ => {
            return Err(format!(
                "no class '{name}': port, vlan, member, fdb, vrf, rif, neigh, nexthop, nhg, route, trap"
            ));
        }
    })
}

/// A cell as the tables show it.
fn shown(v: &Value) -> String {
    match v {
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}

/// Finds the entry by its key in the table's own dump: a flip is named by its place there.
fn flip(asic: &mut Asic, name: &str, key: Option<&str>) -> Result<String, String> {
    let (dump, column) = match name {
        "fdb" => ("fdb", "mac"),
        "neighbours" | "neigh" => ("neighbours", "address"),
        "routes" | "route" => ("routes", "prefix"),
        "nexthops" | "nexthop" => ("nexthops", "nexthop"),
        _ => {
            return Err(format!(
                "no table '{name}' to flip: fdb, neighbours, routes, nexthops"
            ));
        }
    };
    let Some(table) = Table::by_name(dump) else {
        return Err(format!("no table '{name}'"));
    };
    let (mut cursor, mut v4, mut v6) = (0, 0u32, 0u32);
    loop {
        let rows = page(asic, table, cursor, 0)?;
        for row in &rows.items {
            let is_v6 = row.get("family").and_then(Value::as_str) == Some("ipv6");
            let what = row.get(column).map(shown).unwrap_or_default();
            let found = key.is_none_or(|k| what.eq_ignore_ascii_case(k));
            if found {
                let (to, index) = match dump {
                    "fdb" => (FlipTable::Fdb, v4 + v6),
                    "neighbours" => (FlipTable::Neigh, v4 + v6),
                    "nexthops" => (FlipTable::Nexthop, v4 + v6),
                    _ if is_v6 => (FlipTable::Route6, v6),
                    _ => (FlipTable::Route4, v4),
                };
                asic.fw.flip(to, index)?;
                return Ok(format!("{dump} {what}: changed in the chip's memory"));
            }
            if is_v6 {
                v6 += 1;
            } else {
                v4 += 1;
            }
        }
        match rows.next {
            Some(next) => cursor = next,
            None => {
                return Err(match key {
                    Some(key) => format!("nothing in table {dump} is '{key}'"),
                    None => format!("table {dump} is empty: there is nothing to flip"),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bodies_of_the_command_line_are_read() {
        let read = |v| serde_json::from_value::<Request>(v);
        assert_eq!(
            read(json!({"kind": "fail", "nth": 3, "cls": "route"})).unwrap(),
            Request::Fail {
                nth: 3,
                cls: Some("route".into()),
                count: 1
            }
        );
        assert!(read(json!({"kind": "table", "table": "ipv4-lpm"})).is_ok());
        assert!(read(json!({"kind": "flip", "table": "routes", "key": "10.0.0.0/8"})).is_ok());
        assert_eq!(read(json!({"kind": "reset"})).unwrap(), Request::Reset);
        assert_eq!(
            read(json!({"kind": "stray_tag", "vid": 3025})).unwrap(),
            Request::StrayTag { vid: 3025 }
        );
        assert!(read(json!({"kind": "explode"})).is_err());
        assert!(read(json!({"kind": "delay"})).is_err());
    }

    #[test]
    fn keys_are_what_the_tables_show() {
        assert_eq!(shown(&json!(2_189_251_235_u64)), "2189251235");
        assert_eq!(shown(&json!("fd00::1")), "fd00::1");
    }

    #[test]
    fn classes_have_names() {
        assert_eq!(class("route"), Ok(raw::TND_CLS_ROUTE));
        assert_eq!(class("fdb"), Ok(raw::TND_CLS_FDB));
        assert_eq!(class("neigh"), Ok(raw::TND_CLS_NEIGH));
        assert_eq!(class("vlan-member"), Ok(raw::TND_CLS_VLAN_MEMBER));
        assert!(class("nothing").is_err());
    }
}
