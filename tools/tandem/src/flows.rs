// SPDX-License-Identifier: Apache-2.0
//! `tandem openflow explain` and `trace`: one flow, one frame, in the software's tables and in the chip.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tandem_mgmt::client::query;
use tandem_mgmt::types::TraceAnswer;
use tandem_mgmt::{Client, Daemon, Instance};

use crate::out::Out;
use crate::table::cell;
use crate::{Answer, Usage};

fn list<'a>(v: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    v[key].as_array().into_iter().flatten()
}

/// Other flows, and of how many rules they are some.
fn others(v: &Value) -> Option<String> {
    let rules = v["rules"].as_u64().filter(|n| *n > 0)?;
    let flows: Vec<String> = list(v, "flows")
        .map(|f| format!("flow {}: {}", cell(&f["number"]), cell(&f["flow"])))
        .collect();
    let named = flows.len() as u64;
    Some(match rules > named {
        true => format!("{rules} rules, as {}", flows.join("; ")),
        false => flows.join("; "),
    })
}

/// Packets or bytes, and who had them.
fn counted(v: &Value, what: &str) -> String {
    let of = |who: &str| cell(&v[format!("{who}{what}")]);
    let unknown = |key: &str| v[format!("{key}{what}")].is_null();
    match v["place"].is_null() {
        true => of(""),
        false if unknown("hardware_") => format!(
            "not known: the chip did not count them all, or can't be asked; {} by the software",
            of("software_")
        ),
        false => format!(
            "{}: {} by the chip, {} by the software",
            of(""),
            of("hardware_"),
            of("software_")
        ),
    }
}

fn timeout(seconds: &Value, so_far: &Value, word: &str) -> String {
    match seconds.as_u64() {
        None | Some(0) => format!("{word} none"),
        Some(n) => format!("{word} {n} s, {} s so far", cell(so_far)),
    }
}

fn explain_text(v: &Value) -> String {
    let mut s = String::new();
    let mut line = |head: &str, value: String| s += &format!("{head:14}{value}\n");
    line("flow", cell(&v["number"]));
    line("object", cell(&v["object"]));
    line("cookie", cell(&v["cookie"]));
    if !v["place"].is_null() {
        let place = match v["place"].as_str() {
            Some("hardware") => "yes",
            Some("partly") => "partly",
            _ => "no",
        };
        line("in hardware", place.into());
        line("why", cell(&v["why"]));
        if v["chip"] != "open" {
            line("chip", cell(&v["chip"]));
        }
        let cost: Vec<String> = list(v, "cost")
            .map(|c| {
                let of = |k: &str| cell(&c[k]);
                let (slots, pool) = (of("slots"), of("pool"));
                format!("{slots} {pool} ({} of {} free)", of("free"), of("size"))
            })
            .collect();
        line("cost", cost.join(", "));
    }
    line("packets", counted(v, "packets"));
    line("bytes", counted(v, "bytes"));
    let idle = timeout(&v["idle_timeout"], &v["idle_s"], "idle");
    let hard = timeout(&v["hard_timeout"], &v["age_s"], "hard");
    line("timeouts", format!("{idle}; {hard}"));
    line(
        "used",
        format!(
            "{} s ago, came {} s ago",
            cell(&v["idle_s"]),
            cell(&v["age_s"])
        ),
    );
    let rules: Vec<&Value> = list(v, "rules").collect();
    let all = v["rules_in_all"].as_u64().unwrap_or(0);
    match rules.len() as u64 {
        told if told < all => line("rules", format!("{all}, of which these are {told}")),
        0 => {}
        told => line("rules", told.to_string()),
    }
    for r in rules {
        let matching = match cell(&r["match"]) {
            m if m == "-" => "everything".into(),
            m => m,
        };
        let flows: Vec<String> = list(r, "flows").map(cell).collect();
        let chain = match flows.len() {
            0 | 1 => String::new(),
            _ => format!(", of flows {}", flows.join(" > ")),
        };
        line("", format!("{matching} => {}{chain}", cell(&r["does"])));
        // the reason says so itself where the software has packets of it by design
        let why = cell(&r["why"]);
        let said = ["software: ", "partly software: ", "nowhere: "];
        let place = match r["place"].as_str() {
            Some(place) if !said.iter().any(|s| why.starts_with(s)) => format!("{place}: "),
            _ => String::new(),
        };
        line("  where", format!("{place}{why}"));
        if let Some(o) = others(&r["turned_by"]) {
            line("  turned by", o);
        }
        if let Some(o) = others(&r["turns"]) {
            line("  turns", o);
        }
        if !r["needs"].is_null() {
            line("  needs", cell(&r["needs"]));
        }
    }
    s
}

/// `tandem openflow explain flow`
pub fn explain(client: &Client, lsi: Option<&str>, key: &str, out: Out) -> Result<Answer> {
    if key.trim().is_empty() {
        return Err(Usage(
            "explain flow of nothing: give its number or its match, as show flows --why has them (- is everything)"
                .into(),
        )
        .into());
    }
    let v: Value = client.get(&query(
        "/v1/explain/flow",
        &[("key", key), ("lsi", lsi.unwrap_or_default())],
    ))?;
    out.print(&v, || explain_text(&v))?;
    Ok(Answer::Yes)
}

/// Do the software and the chip do the same with a frame? `None`: that is not to be said.
fn agreement(soft: &Value, chip: &TraceAnswer) -> (Option<bool>, String) {
    let port = |p: &Value| format!("swp{}", cell(p));
    let mut sent: Vec<(String, String)> = list(soft, "sent")
        .map(|s| (port(&s["port"]), cell(&s["frame"])))
        .collect();
    let frames = chip.egress.iter().cloned().zip(chip.frames.iter().cloned());
    let mut forwarded: Vec<(String, String)> = frames.collect();
    sent.sort();
    forwarded.sort();
    let mut said: Vec<String> = sent.iter().map(|(p, _)| p.clone()).collect();
    said.extend(list(soft, "elsewhere").map(cell));
    let software = match said.is_empty() {
        true => "drops it".to_owned(),
        false => format!("sends it to {}", said.join(", ")),
    };
    let out = match chip.egress.is_empty() {
        true => "drops it".to_owned(),
        false => format!("forwards it to {}", chip.egress.join(", ")),
    };
    let same = sent == forwarded && list(soft, "elsewhere").next().is_none();
    match (chip.cpu.is_empty(), chip.egress.is_empty()) {
        (false, true) => (
            Some(true),
            format!("the chip gives it to the CPU, and the software {software}"),
        ),
        (true, _) if same => (Some(true), format!("the chip {out}: the same")),
        (true, _) if soft["settled"] == false => (
            None,
            format!(
                "the chip {out}, the software {software}: the chip is being written, ask again"
            ),
        ),
        (copied, _) => {
            let copy = if copied {
                ""
            } else {
                " and gives the CPU a copy"
            };
            let bytes = match chip.egress.is_empty() || said != chip.egress {
                true => "",
                false => ", with other bytes",
            };
            (
                Some(false),
                format!("NOT the same: the chip {out}{copy}, the software {software}{bytes}"),
            )
        }
    }
}

fn steps<'a>(v: &'a Value, of: &str) -> Vec<(String, String)> {
    let step = |s: &'a Value| (format!("{of}{}", cell(&s["stage"])), cell(&s["text"]));
    list(v, "items").map(step).collect()
}

/// `tandem openflow trace`: exit 1 if the chip does something else than the software.
pub fn trace(
    instance: &Instance,
    lsi: Option<&str>,
    port: &str,
    hex: &str,
    out: Out,
) -> Result<Answer> {
    let body = json!({"lsi": lsi, "port": port, "frame": hex});
    let mut v: Value = Client::to(instance, Daemon::Ofagentd).post("/v1/trace", &body)?;
    let mut lines = steps(&v, "");
    if !list(&v, "items").any(|s| s.get("frame").is_some()) {
        lines.push(("verdict".into(), "dropped".into()));
    }
    let mut answer = Answer::Yes;
    if let Some(at) = v["chip"]["port"].as_u64() {
        let body = json!({"port": format!("swp{at}"), "frame": hex});
        let client = Client::to(instance, Daemon::Asicd);
        let (same, text) = match client.post::<TraceAnswer>("/v1/trace", &body) {
            Ok(chip) => {
                let (same, text) = agreement(&v["chip"], &chip);
                let said = serde_json::to_value(&chip).context("an answer of asicd")?;
                lines.extend(steps(&said, "chip "));
                lines.push(("chip verdict".into(), chip.verdict));
                v["chip"]["trace"] = said;
                (same, text)
            }
            // without its chip the software is asked all the same
            Err(e) => (None, format!("the chip can't be asked: {e}")),
        };
        let rule = &v["chip"]["rule"];
        if !rule.is_null() {
            let flows: Vec<String> = list(rule, "flows").map(cell).collect();
            let text = format!("flow {}: {}", flows.join(" > "), cell(&rule["why"]));
            lines.push(("chip rule".into(), text));
        }
        if same == Some(false) {
            answer = Answer::No;
        }
        v["chip"]["same"] = json!(same);
        v["chip"]["agreement"] = json!(text);
        lines.push(("agreement".into(), text));
    }
    out.print(&v, || {
        let width = lines.iter().map(|(s, _)| s.len()).max().unwrap_or(0);
        let width = width.max(11);
        let line = |(s, t): &(String, String)| format!("{s:width$} {t}\n");
        lines.iter().map(line).collect()
    })?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_explained_rule_by_rule() {
        let other = |n: u64| json!({"rules": n, "flows": [{"number": 9, "flow": "table 0, priority 20, - => group:1"}]});
        let v = json!({
            "number": 7, "object": "table 1, priority 5, in_port=1 => output:2", "cookie": "0x0", "place": "partly",
            "why": "1 of 2 rules: in IS2", "chip": "open", "packets": 12, "hardware_packets": 10,
            "software_packets": 2, "bytes": null, "hardware_bytes": null, "software_bytes": 120,
            "cost": [{"pool": "IS2 lines", "slots": 2, "free": 2040, "size": 2044}],
            "idle_timeout": 10, "idle_s": 1.5, "hard_timeout": 0, "age_s": 3.0, "rules_in_all": 2,
            "rules": [
                {"flows": [2, 7], "match": "", "does": "output:2", "place": "software",
                 "why": "software: it goes through a group", "needs": "ports instead of the group",
                 "turned_by": other(0), "turns": other(12)},
                {"flows": [7], "match": "in_port=1", "does": "output:2", "place": "software", "needs": null,
                 "why": "in IS2; traps", "turned_by": other(1), "turns": other(0)},
            ],
        });
        let text = explain_text(&v);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[3..],
            [
                "in hardware   partly",
                "why           1 of 2 rules: in IS2",
                "cost          2 IS2 lines (2040 of 2044 free)",
                "packets       12: 10 by the chip, 2 by the software",
                "bytes         not known: the chip did not count them all, or can't be asked; 120 by the software",
                "timeouts      idle 10 s, 1.5 s so far; hard none",
                "used          1.5 s ago, came 3.0 s ago",
                "rules         2",
                "              everything => output:2, of flows 2 > 7",
                "  where       software: it goes through a group",
                "  turns       12 rules, as flow 9: table 0, priority 20, - => group:1",
                "  needs       ports instead of the group",
                "              in_port=1 => output:2",
                "  where       software: in IS2; traps",
                "  turned by   flow 9: table 0, priority 20, - => group:1",
            ]
        );
    }

    #[test]
    fn a_frame_has_one_answer() {
        let soft = |sent: &[(u64, &str)], elsewhere: &[&str], settled: bool| {
            let sent: Vec<Value> = sent
                .iter()
                .map(|(p, f)| json!({"port": p, "frame": f}))
                .collect();
            json!({"sent": sent, "elsewhere": elsewhere, "settled": settled})
        };
        let chip = |egress: &[(&str, &str)], cpu: &[&str]| TraceAnswer {
            egress: egress.iter().map(|(p, _)| (*p).to_owned()).collect(),
            frames: egress.iter().map(|(_, f)| (*f).to_owned()).collect(),
            cpu: cpu.iter().map(|c| (*c).to_owned()).collect(),
            ..TraceAnswer::default()
        };
        let two = soft(&[(3, "aa"), (2, "aa")], &[], true);
        let cases = [
            // in any order
            (
                &two,
                chip(&[("swp2", "aa"), ("swp3", "aa")], &[]),
                Some(true),
            ),
            (&two, chip(&[("swp2", "aa")], &[]), Some(false)),
            (
                &two,
                chip(&[("swp2", "aa"), ("swp3", "ab")], &[]),
                Some(false),
            ),
            (&two, chip(&[], &[]), Some(false)),
            (&two, chip(&[], &["flow"]), Some(true)),
            (
                &two,
                chip(&[("swp2", "aa"), ("swp3", "aa")], &["flow"]),
                Some(false),
            ),
        ];
        for (soft, chip, same) in cases {
            assert_eq!(agreement(soft, &chip).0, same, "{chip:?}");
        }
        let drops = soft(&[], &[], true);
        assert_eq!(
            agreement(&drops, &chip(&[], &[])),
            (Some(true), "the chip drops it: the same".into())
        );
        let controller = soft(&[], &["the controller"], true);
        assert_eq!(agreement(&controller, &chip(&[], &[])).0, Some(false));
        assert_eq!(
            agreement(&controller, &chip(&[], &["flow_miss"])).1,
            "the chip gives it to the CPU, and the software sends it to the controller"
        );
        let late = soft(&[(2, "aa")], &[], false);
        assert_eq!(agreement(&late, &chip(&[], &[])).0, None);
    }
}
