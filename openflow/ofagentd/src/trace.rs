// SPDX-License-Identifier: Apache-2.0
//! `POST /v1/trace`: a frame through the software's tables on paper, and where the chip has the rule that it meets. What
//! the chip itself does with the frame is asicd's to say.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_linux::clock;
use tandem_mgmt::hex;
use tandem_mgmt::server::{ApiError, ApiResult};
use tandem_ofagent::{Datapath, Step};
use tandem_ofpipeline::Switch;

use crate::api::Api;
use crate::explain::ruled;
use crate::rows::chip_state;
use crate::text;

/// A frame on paper needs a copy of the tables.
const TRACED: usize = 100_000;
/// Bytes of a frame on paper at most: each of its outputs is one row.
const FRAME: usize = 16_384;

/// A frame at a port.
#[derive(Debug, Deserialize)]
struct Frame {
    lsi: Option<String>,
    port: String,
    frame: String,
}

/// What a copy of the tables is of.
fn copied(switch: &Switch) -> usize {
    let flows: usize = switch.table_stats().map(|t| t.active as usize).sum();
    let buckets = switch.groups().filter_map(|n| switch.group(n));
    flows + switch.meters().count() + buckets.map(|(g, _)| 1 + g.buckets.len()).sum::<usize>()
}

/// What of the chip is to be compared: which of its ports the frame comes in by, the rule that it meets if all that it
/// met is one of the chip's, what the software sends by which of its ports. Null without a chip, or at a port that is not
/// the chip's.
fn on_chip(dp: &Datapath, port: u32, steps: &[Step]) -> Value {
    let Some((chip, port)) = dp.chip().and_then(|c| Some((c, c.port(port)?))) else {
        return Value::Null;
    };
    let (mut met, mut sent, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for s in steps {
        match s {
            Step::Met { flow, .. } => met.extend(flow.as_ref().map(|(n, _)| *n)),
            Step::Output { port, bytes, .. } => match chip.port(*port) {
                Some(p) => sent.push(json!({"port": p, "frame": hex::encode(bytes)})),
                None => others.push(text::port_name(*port)),
            },
            Step::Controller { .. } => others.push("the controller".into()),
            Step::Normal { .. } => others.push("NORMAL".into()),
            Step::Alone { .. } => {}
        }
    }
    let rule = chip.rule_of(&met);
    json!({
        "port": port,
        "state": chip_state(chip),
        "settled": chip.is_settled(),
        "rule": rule.map(|r| ruled(chip, dp.switch(), &r)),
        "sent": sent,
        "elsewhere": others,
    })
}

/// `POST /v1/trace`
pub(crate) async fn trace(State(api): State<Api>, Json(body): Json<Value>) -> ApiResult<Value> {
    let asked: Frame =
        serde_json::from_value(body).map_err(|e| ApiError::bad_request(format!("trace: {e}")))?;
    let bytes =
        hex::decode(&asked.frame).map_err(|e| ApiError::bad_request(format!("the frame: {e}")))?;
    if !(14..=FRAME).contains(&bytes.len()) {
        return Err(ApiError::bad_request(format!(
            "the frame has {} bytes, not 14 to {FRAME}",
            bytes.len()
        )));
    }
    api.of(asked.lsi.clone(), move |l| {
        let dp = l.agent.datapath();
        let port = dp
            .ports()
            .find(|e| e.port.name == asked.port || e.port.number.to_string() == asked.port)
            .ok_or_else(|| ApiError::not_found(format!("there is no port {}", asked.port)))?
            .port
            .number;
        let much = copied(dp.switch());
        if much > TRACED {
            return Err(ApiError::unavailable(format!(
                "a trace needs a copy of the tables, and packets would wait for that of {much} flows, groups and buckets: up to {TRACED} are copied"
            )));
        }
        let steps = l.agent.on_paper(port, &bytes, clock::now_ns());
        let rows: Vec<Value> = steps.iter().map(text::step).collect();
        let mut v = json!({ "items": rows });
        if let Value::Object(o) = &mut v {
            o.insert("chip".into(), on_chip(dp, port, &steps));
        }
        Ok(Json(v))
    })
    .await?
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_ofpipeline::Config;
    use tandem_ofpipeline::flows::blank;
    use tandem_openflow::model::{Bucket, GROUP_ANY, GroupCommand, GroupMod, GroupType};
    use tandem_openflow::port;

    #[test]
    fn a_copy_is_of_flows_and_of_buckets() {
        let mut switch = Switch::new(Config::default());
        let mut removed = Vec::new();
        assert_eq!(copied(&switch), 0);
        switch.flow_mod(&blank(), 1, &mut removed).unwrap();
        let bucket = Bucket {
            weight: 0,
            watch_port: port::ANY,
            watch_group: GROUP_ANY,
            actions: Vec::new(),
        };
        let group = GroupMod {
            command: GroupCommand::Add,
            kind: GroupType::All,
            group: 8,
            buckets: vec![bucket; 5],
        };
        switch.group_mod(&group, 1, &mut removed).unwrap();
        assert_eq!(copied(&switch), 1 + 1 + 5);
    }
}
