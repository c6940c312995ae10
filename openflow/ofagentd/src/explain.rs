// SPDX-License-Identifier: Apache-2.0
//! `GET /v1/explain/flow?key=`: of one flow where it is and why, rule by rule.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use axum::Json;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_linux::clock;
use tandem_mgmt::server::{ApiError, ApiResult};
use tandem_ofchip::{
    Act, Chip, Explained, Others, PortMask, Rewrite, Ruled, Second, Tagging, Usage, Wanted,
};
use tandem_ofpipeline::Switch;
use tandem_ofpipeline::flows::{Flow, all_flows};
use tandem_openflow::Match;

use crate::api::{Api, place, read, seconds, share};
use crate::rows::chip_state;
use crate::text;

/// Rules of a flow that are told: those first that the chip does not answer.
const RULES: usize = 64;
/// Flows that are looked at in one go for a match.
const LOOKS: u32 = 10_000;
/// Flows that are named where a match is of several.
const SEVERAL: usize = 8;

/// Which flow.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Which {
    /// Its number, or its match as it is shown, with `table=` and `priority=` if that is of several flows.
    key: String,
    lsi: Option<String>,
}

/// The words of a match.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    table: Option<String>,
    priority: Option<String>,
    fields: BTreeSet<String>,
}

fn words(matching: &str) -> BTreeSet<String> {
    let all = matching.split(',').map(|w| w.trim().to_lowercase());
    all.filter(|w| !w.is_empty() && w != "-").collect()
}

impl Asked {
    fn new(key: &str) -> Asked {
        let mut asked = Asked::default();
        for word in words(key) {
            match word.split_once('=') {
                Some(("table", n)) => asked.table = Some(n.to_owned()),
                Some(("priority", n)) => asked.priority = Some(n.to_owned()),
                _ => {
                    asked.fields.insert(word);
                }
            }
        }
        asked
    }

    fn is(&self, flow: &Flow) -> bool {
        let same =
            |asked: &Option<String>, is: u32| asked.as_ref().is_none_or(|a| a.parse() == Ok(is));
        same(&self.table, flow.table.into())
            && same(&self.priority, flow.priority.into())
            && words(&text::matching(&flow.matching)) == self.fields
    }
}

/// The number of the one flow that is meant. Flows are looked at some at a time, as packets wait meanwhile.
async fn number(api: &Api, lsi: &Option<String>, key: &str) -> Result<u32, ApiError> {
    let none = || ApiError::not_found(format!("there is no flow {key}"));
    if let Ok(n) = key.trim().parse() {
        return Ok(n);
    }
    if key.trim().is_empty() {
        return Err(ApiError::bad_request(
            "give the number of a flow, or its match (- is everything)",
        ));
    }
    let mut found = Vec::new();
    let mut next = Some(0);
    while let Some(from) = next {
        let asked = Asked::new(key);
        let (some, then) = api
            .of(lsi.clone(), move |l| {
                let mut some = Vec::new();
                let switch = l.agent.datapath().switch();
                let next = switch.flow_page(&all_flows(), from, LOOKS, |f| {
                    if asked.is(f.flow) {
                        some.push(f.number);
                    }
                    ControlFlow::Continue(())
                });
                (some, next)
            })
            .await?;
        found.extend(some);
        next = then;
    }
    match found.as_slice() {
        [] => Err(none()),
        [one] => Ok(*one),
        all => {
            let some: Vec<String> = all.iter().take(SEVERAL).map(u32::to_string).collect();
            let more = if all.len() > SEVERAL { ", …" } else { "" };
            Err(ApiError::bad_request(format!(
                "{} flows have that match: give table= and priority= as well, or one of the numbers {}{more}",
                all.len(),
                some.join(", ")
            )))
        }
    }
}

/// A flow in a line.
fn said(f: &Flow) -> String {
    let matching = match text::matching(&f.matching) {
        m if m.is_empty() => "everything".into(),
        m => m,
    };
    let does = text::instructions(&f.instructions);
    format!(
        "table {}, priority {}, {matching} => {does}",
        f.table, f.priority
    )
}

/// What becomes of a frame, in the words of flows.
fn answer(chip: &Chip, wanted: &Wanted, second: Option<&Second>) -> String {
    let Wanted::Act(Act::Out { ports, rewrite }) = wanted else {
        return match wanted {
            Wanted::Act(Act::Drop) => "drop".into(),
            _ => "CPU".into(),
        };
    };
    let first = sent(chip, *ports, rewrite);
    match second {
        Some(s) => format!("{first}; {}", sent(chip, s.ports, &s.rewrite)),
        None => first,
    }
}

/// In one form.
fn sent(chip: &Chip, ports: PortMask, rewrite: &Rewrite) -> String {
    let numbers = ports
        .ports()
        .filter_map(|p| chip.number(u16::from(p)))
        .map(|n| format!("output:{n}"));
    let tag = match rewrite.tag {
        Tagging::Stays => None,
        Tagging::Comes => Some("push_vlan".to_owned()),
        Tagging::Goes => Some("pop_vlan".to_owned()),
    };
    let written = [
        tag,
        rewrite.vid.map(|v| format!("vlan_vid:={v}")),
        rewrite.pcp.map(|v| format!("vlan_pcp:={v}")),
        rewrite.dscp.map(|v| format!("ip_dscp:={v}")),
    ];
    let all: Vec<String> = written.into_iter().flatten().chain(numbers).collect();
    match all.is_empty() {
        true => "drop".into(),
        false => all.join(","),
    }
}

fn others(switch: &Switch, o: &Others) -> Value {
    let named = |n: &u32| json!({"number": n, "flow": switch.flow(*n).map(said)});
    let flows: Vec<Value> = o.flows.iter().map(named).collect();
    json!({"rules": o.rules, "flows": flows})
}

/// A rule, and where it stands.
pub(crate) fn ruled(chip: &Chip, switch: &Switch, r: &Ruled) -> Value {
    let matching = Match {
        fields: r.fields.clone(),
        exact: false,
    };
    json!({
        "flows": r.flows,
        "match": text::matching(&matching),
        "does": answer(chip, &r.answer, r.second.as_ref()),
        "place": r.share.map(share),
        "why": r.why,
        "needs": r.needs,
        "lines": r.cost.0,
        "mac_entries": r.cost.1,
        "turned_by": others(switch, &r.turned_by),
        "turns": others(switch, &r.turns),
    })
}

/// What it takes, and what is left of that.
fn cost(chip: &Chip, u: Usage, e: &Explained) -> Value {
    let cost = e.cost;
    let of = |pool: &str, slots: u32, used: u32, size: u32| json!({"pool": pool, "slots": slots, "free": size.saturating_sub(used), "size": size});
    let mut all = vec![
        of(
            &format!("{} lines", chip.list_name()),
            cost.0,
            u.acl_used,
            u.acl_size,
        ),
        of("MAC table entries", cost.1, u.mac_used, chip.mac_size()),
    ];
    if let Some(name) = chip.class_name().filter(|_| e.class > 0) {
        let pool = format!("{name} lines");
        all.push(of(&pool, e.class, u.class_used, u.class_size));
    }
    all.into()
}

/// `GET /v1/explain/flow?key=`
pub(crate) async fn flow(State(api): State<Api>, Query(which): Query<Which>) -> ApiResult<Value> {
    let n = number(&api, &which.lsi, &which.key).await?;
    read(&api, &which.lsi).await?;
    let found = api
        .of(which.lsi, move |l| {
            let now = clock::now_ns();
            let dp = l.agent.datapath();
            let (switch, chip) = (dp.switch(), dp.chip());
            let f = switch.flow_count(n)?;
            let known = |n: u64| (n != u64::MAX).then_some(n);
            let (packets, bytes) = dp.counted(&f);
            let (place, why) = place(chip, &f);
            let hardware = chip.map_or((None, None), |c| c.counted(n));
            let mut v = json!({
                "kind": "flow",
                "number": n,
                "object": said(f.flow),
                "cookie": format!("{:#x}", f.flow.cookie),
                "in_hardware": place == json!("hardware"),
                "place": place,
                "why": why,
                "packets": known(packets),
                "bytes": known(bytes),
                "hardware_packets": hardware.0,
                "hardware_bytes": hardware.1,
                "software_packets": known(f.packets),
                "software_bytes": known(f.bytes),
                "age_s": seconds(f.flow.since_ns, now),
                "idle_s": seconds(f.last_ns, now),
                "idle_timeout": f.flow.idle,
                "hard_timeout": f.flow.hard,
                "chip": chip.map(chip_state),
            });
            if let (Some(chip), Value::Object(o)) = (chip, &mut v) {
                let e = chip.explain(n, RULES);
                let rules: Vec<Value> = e.rules.iter().map(|r| ruled(chip, switch, r)).collect();
                o.insert("cost".into(), cost(chip, chip.usage(), &e));
                o.insert("rules".into(), rules.into());
                o.insert("rules_in_all".into(), json!(e.all));
            }
            Some(v)
        })
        .await?;
    found
        .map(Json)
        .ok_or_else(|| ApiError::not_found(format!("there is no flow {n}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_ofpipeline::Config;
    use tandem_ofpipeline::flows::blank;
    use tandem_openflow::model::FlowMod;
    use tandem_openflow::{Field, Oxm};

    #[test]
    fn a_flow_is_named_by_the_words_of_its_match() {
        let mut switch = Switch::new(Config::default());
        let fields = vec![
            Oxm::exact(Field::InPort, 3),
            Oxm::exact(Field::EthDst, 0x0200_0000_00ab),
        ];
        for (priority, fields) in [(5, fields), (0, Vec::new())] {
            let flow = FlowMod {
                priority,
                matching: Match {
                    fields,
                    exact: false,
                },
                ..blank()
            };
            switch.flow_mod(&flow, 1, &mut Vec::new()).unwrap();
        }
        let is = |key: &str| {
            let asked = Asked::new(key);
            let all = switch.flows_of(tandem_openflow::model::TABLE_ALL);
            let mut of = all.into_iter().filter_map(|n| switch.flow(n));
            of.find(|f| asked.is(f)).map(|f| f.priority)
        };
        // as it is shown, in any order and case
        assert_eq!(is("in_port=3,eth_dst=02:00:00:00:00:ab"), Some(5));
        assert_eq!(is("eth_dst=02:00:00:00:00:AB, in_port=3"), Some(5));
        assert_eq!(is("table=0,in_port=3,eth_dst=02:00:00:00:00:ab"), Some(5));
        assert_eq!(is("-"), Some(0));
        assert_eq!(is("priority=0,-"), Some(0));
        for none in [
            "in_port=3",
            "priority=4,in_port=3,eth_dst=02:00:00:00:00:ab",
            "table=x,-",
        ] {
            assert_eq!(is(none), None, "{none}");
        }
    }
}
