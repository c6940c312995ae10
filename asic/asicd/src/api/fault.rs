//! Fault plans: the chip misbehaves as told, from now on; or from the start, by a file:
//!
//! ```toml
//! [[fault]]
//! kind = "fail"       # kinds and arguments as in POST /v1/fault
//! nth = 3
//! cls = "route"
//! ```

use serde::Deserialize;
use serde_json::{Value, json};
use tandem_abi::raw;
use tandem_firmware::{Fault, FaultAction, FlipTable, PoolId, class_names};

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
    /// The nth command is executed once, and its completion comes twice.
    Duplicate {
        /// 1 is the next one.
        #[serde(default = "one")]
        nth: u64,
    },
    /// A port's link goes down now, and up again.
    Flap {
        /// `swp3`
        port: String,
        /// How often.
        #[serde(default = "once")]
        count: u32,
        /// Milliseconds that it is down, and up before it goes down again.
        #[serde(default = "tenth")]
        ms: u64,
    },
    /// The driver finds an index that can't be in a ring, which ends its session.
    Corrupt {
        /// `completion`, `event`, `rx`.
        ring: String,
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

fn once() -> u32 {
    1
}

fn tenth() -> u64 {
    100
}

/// The longest half of a flap: a day.
const FLAP_MS: u64 = 86_400_000;

/// A file of faults.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    #[serde(default)]
    fault: Vec<Request>,
}

/// Reads a plan; an error is one line.
pub fn plan(text: &str) -> Result<Vec<Request>, String> {
    let plan: Plan = toml::from_str(text).map_err(|e| {
        let line = e
            .span()
            .map(|s| text.get(..s.start).unwrap_or("").lines().count().max(1));
        let at = line.map_or_else(String::new, |n| format!("line {n}: "));
        format!("{at}{}", e.message().replace('\n', " "))
    })?;
    Ok(plan.fault)
}

/// What is armed: in words, and how many commands it has looked at.
pub fn armed(asic: &Asic) -> Vec<Value> {
    let of_commands = asic.fw.faults.iter();
    let mut all: Vec<Value> = of_commands
        .map(|(f, seen)| json!({"fault": words(f), "matched": seen}))
        .collect();
    for f in asic.flaps.iter() {
        all.push(json!({"fault": format!("swp{} flaps, {} more", f.port, f.left)}));
    }
    if let Some(vid) = asic.out.cpu.stray_tag() {
        all.push(json!({"fault": format!("untagged packets get VLAN {vid}")}));
    }
    all
}

/// A fault of commands in words.
fn words(f: &Fault) -> String {
    let what = match f.action {
        FaultAction::Fail => "fails".to_owned(),
        FaultAction::Delay(ns) => format!("takes {} ms longer", ns / 1_000_000),
        FaultAction::DropCompletion => "is not answered".into(),
        FaultAction::DuplicateCompletion => "is answered twice".into(),
        FaultAction::Reset => "resets the chip".into(),
    };
    if let Some(pool) = f.pool {
        let pool = PoolId::ALL.into_iter().find(|p| *p as u16 == pool);
        return format!("what needs {} {what}", pool.map_or("a pool", PoolId::name));
    }
    let which = match (f.op, f.cls.and_then(class_name)) {
        (None, None) => "command".to_owned(),
        (_, None) => "write".into(),
        (_, Some(name)) => format!("write of {name}"),
    };
    match (f.after, f.count) {
        (0 | 1, 0) => format!("every {which} {what}"),
        (n, 0) => format!("every {which} from number {n} {what}"),
        (n, 1) => format!("{which} {n} {what}"),
        (n, count) => format!("{which} {n} {what}, and the {} after it", count - 1),
    }
}

/// Applies it; the answer says what was done, an error is one line.
pub fn apply(asic: &mut Asic, request: Request) -> Result<String, String> {
    match request {
        Request::Fail { nth: 0, .. } | Request::Drop { nth: 0 } | Request::Duplicate { nth: 0 } => {
            Err("nth counts from 1: the next one is 1".into())
        }
        Request::Fail { nth, cls, count } => {
            let cls = cls.as_deref().map(class).transpose()?;
            // Ports and traps are there from the start: they are only updated
            let op = match cls {
                Some(raw::TND_CLS_PORT | raw::TND_CLS_TRAP | raw::TND_CLS_STORM) => {
                    raw::TND_OP_UPDATE
                }
                _ => raw::TND_OP_CREATE,
            };
            let fault = Fault {
                op: Some(op),
                cls,
                after: nth,
                count,
                ..Fault::of(FaultAction::Fail)
            };
            asic.fw.faults.add(fault)?;
            Ok(words(&fault))
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
                op: Some(raw::TND_OP_CREATE),
                pool: Some(pool as u16),
                count: 0,
                ..Fault::of(FaultAction::Fail)
            })?;
            Ok(format!("{table} takes nothing any more"))
        }
        Request::Delay { ms } => {
            asic.fw.faults.add(Fault {
                count: 0,
                ..Fault::of(FaultAction::Delay(ms.saturating_mul(1_000_000)))
            })?;
            Ok(format!("every command takes {ms} ms longer"))
        }
        Request::Drop { nth } => {
            asic.fw.faults.add(Fault {
                after: nth,
                ..Fault::of(FaultAction::DropCompletion)
            })?;
            Ok(format!("completion {nth} never comes"))
        }
        Request::Duplicate { nth } => {
            asic.fw.faults.add(Fault {
                after: nth,
                ..Fault::of(FaultAction::DuplicateCompletion)
            })?;
            Ok(format!("completion {nth} comes twice"))
        }
        Request::Flap { count: 0, .. } => Err("count is how often: at least 1".into()),
        Request::Flap { port, count, ms } => {
            let number = super::port_number(&port)
                .filter(|n| asic.port(*n).is_some())
                .ok_or_else(|| format!("no port '{port}': ports are swp1, swp2, …"))?;
            if !(1..=FLAP_MS).contains(&ms) {
                return Err(format!("{ms} ms can't be: 1 to {FLAP_MS}"));
            }
            asic.flap(number, count, ms * 1_000_000, tandem_linux::clock::now_ns());
            Ok(format!(
                "{port} is down, and up again after {ms} ms; {count} times"
            ))
        }
        Request::Corrupt { ring } => {
            let kind = match ring.as_str() {
                "completion" => raw::TND_RING_CPL,
                "event" => raw::TND_RING_EVENT,
                "rx" => raw::TND_RING_RX,
                _ => {
                    return Err(format!(
                        "no ring '{ring}' that the chip fills: completion, event, rx"
                    ));
                }
            };
            match asic.scribble(kind) {
                true => Ok(format!("the {ring} ring has an index that can't be")),
                false => Err("no driver is attached: it has no rings".into()),
            }
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
            asic.end_flaps();
            Ok("no faults any more".into())
        }
    }
}

fn class_name(cls: u16) -> Option<&'static str> {
    class_names().find(|c| c.1 == cls).map(|c| c.0)
}

fn class(name: &str) -> Result<u16, String> {
    let plain = match name.replace('_', "-").as_str() {
        "vlan-member" => "member".to_owned(),
        "neighbour" => "neigh".into(),
        other => other.to_owned(),
    };
    let found = class_names().find(|c| c.0 == plain);
    found.map(|c| c.1).ok_or_else(|| {
        let names: Vec<&str> = class_names().map(|c| c.0).collect();
        format!("no class '{name}': {}", names.join(", "))
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
        assert_eq!(
            read(json!({"kind": "flap", "port": "swp3"})).unwrap(),
            Request::Flap {
                port: "swp3".into(),
                count: 1,
                ms: 100
            }
        );
        assert!(read(json!({"kind": "duplicate"})).is_ok());
        assert!(read(json!({"kind": "corrupt", "ring": "event"})).is_ok());
        assert!(read(json!({"kind": "explode"})).is_err());
        assert!(read(json!({"kind": "delay"})).is_err());
    }

    #[test]
    fn a_plan_is_a_list_of_faults() {
        let text = "[[fault]]\nkind = \"delay\"\nms = 5\n\n[[fault]]\nkind = \"drop\"\n";
        let two = vec![Request::Delay { ms: 5 }, Request::Drop { nth: 1 }];
        assert_eq!(plan(text), Ok(two));
        assert_eq!(plan("# none\n"), Ok(Vec::new()));
        for (bad, told) in [
            ("[[fault]]\nkind = \"explode\"\n", "explode"),
            ("[[fault]]\nkind = \"delay\"\n", "ms"),
            ("[[faults]]\nkind = \"reset\"\n", "faults"),
            ("kind =", "line 1"),
        ] {
            let e = plan(bad).unwrap_err();
            assert!(e.contains(told) && !e.contains('\n'), "{e}");
        }
    }

    #[test]
    fn what_is_armed_is_said_in_words() {
        let fault = |action, cls: Option<u16>, pool, after, count| {
            words(&Fault {
                action,
                op: cls.map(|_| raw::TND_OP_CREATE),
                cls,
                pool,
                after,
                count,
            })
        };
        let route = Some(raw::TND_CLS_ROUTE);
        let lpm = Some(PoolId::Lpm4 as u16);
        for (is, told) in [
            (
                fault(FaultAction::Fail, route, None, 3, 1),
                "write of route 3 fails",
            ),
            (
                fault(FaultAction::Fail, route, None, 1, 0),
                "every write of route fails",
            ),
            (
                fault(FaultAction::Fail, None, lpm, 1, 0),
                "what needs ipv4-lpm fails",
            ),
            (
                fault(FaultAction::Delay(5_000_000), None, None, 1, 0),
                "every command takes 5 ms longer",
            ),
            (
                fault(FaultAction::DuplicateCompletion, None, None, 2, 1),
                "command 2 is answered twice",
            ),
        ] {
            assert_eq!(is, told);
        }
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
