// SPDX-License-Identifier: Apache-2.0
//! Matches, actions and what else is in several messages, by os-ken's names.

use serde_json::{Value, json};
use tandem_openflow::model::*;
use tandem_openflow::{Action, Field, Instructions, Oxm, Version, port};

pub fn hex(bytes: &[u8]) -> Value {
    let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    json!({ "hex": digits })
}

pub fn mac(bytes: [u8; 6]) -> String {
    let parts: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    parts.join(":")
}

/// A number of any width: JSON's have 64 bits.
fn wide(n: u128) -> String {
    format!("{n:#x}")
}

/// Names, values and masks.
pub fn fields(fields: &[Oxm]) -> Value {
    let list: Vec<Value> = fields
        .iter()
        .map(|o| {
            let mask = (o.mask != o.field.all_ones()).then(|| wide(o.mask));
            json!([o.field.name(), wide(o.value), mask])
        })
        .collect();
    json!({ "fields": list })
}

/// A port's number on the wire.
pub fn port_no(version: Version, number: u32) -> u32 {
    match version {
        Version::V10 => port::to10(number).map_or(0xffff, u32::from),
        Version::V13 => number,
    }
}

pub fn actions(version: Version, list: &[Action]) -> Value {
    list.iter().map(|&a| action(version, a)).collect()
}

fn action(version: Version, a: Action) -> Value {
    let ten = version == Version::V10;
    match a {
        Action::Output { port, max_len } => {
            json!({"cls": "OFPActionOutput", "port": port_no(version, port), "max_len": max_len})
        }
        Action::CopyTtlOut => json!({"cls": "OFPActionCopyTtlOut"}),
        Action::CopyTtlIn => json!({"cls": "OFPActionCopyTtlIn"}),
        Action::SetMplsTtl(ttl) => json!({"cls": "OFPActionSetMplsTtl", "mpls_ttl": ttl}),
        Action::DecMplsTtl => json!({"cls": "OFPActionDecMplsTtl"}),
        Action::PushVlan(ether) => json!({"cls": "OFPActionPushVlan", "ethertype": ether}),
        Action::PopVlan => json!({"cls": "OFPActionPopVlan"}),
        Action::PushMpls(ether) => json!({"cls": "OFPActionPushMpls", "ethertype": ether}),
        Action::PopMpls(ether) => json!({"cls": "OFPActionPopMpls", "ethertype": ether}),
        Action::SetQueue(queue) => json!({"cls": "OFPActionSetQueue", "queue_id": queue}),
        Action::Group(group) => json!({"cls": "OFPActionGroup", "group_id": group}),
        Action::SetNwTtl(ttl) => json!({"cls": "OFPActionSetNwTtl", "nw_ttl": ttl}),
        Action::DecNwTtl => json!({"cls": "OFPActionDecNwTtl"}),
        Action::SetField { field, value } if ten => {
            let [.., a, b, c, d, e, f] = value.to_be_bytes();
            let cls = if field == Field::EthSrc {
                "OFPActionSetDlSrc"
            } else {
                "OFPActionSetDlDst"
            };
            json!({"cls": cls, "dl_addr": hex(&[a, b, c, d, e, f])})
        }
        Action::SetField { field, value } => {
            json!({"cls": "OFPActionSetField", "key": field.name(), "value": {"wide": wide(value)}})
        }
        Action::PushPbb(ether) => json!({"cls": "OFPActionPushPbb", "ethertype": ether}),
        Action::PopPbb => json!({"cls": "OFPActionPopPbb"}),
        Action::SetVlanVid10(vid) => json!({"cls": "OFPActionVlanVid", "vlan_vid": vid}),
        Action::SetVlanPcp10(pcp) => json!({"cls": "OFPActionVlanPcp", "vlan_pcp": pcp}),
        Action::StripVlan10 => json!({"cls": "OFPActionStripVlan"}),
        Action::SetNw10 { dst, addr } => {
            let cls = if dst {
                "OFPActionSetNwDst"
            } else {
                "OFPActionSetNwSrc"
            };
            json!({"cls": cls, "nw_addr": addr})
        }
        Action::SetNwTos10(tos) => json!({"cls": "OFPActionSetNwTos", "tos": tos}),
        Action::SetTp10 { dst, port } => {
            let cls = if dst {
                "OFPActionSetTpDst"
            } else {
                "OFPActionSetTpSrc"
            };
            json!({"cls": cls, "tp": port})
        }
        Action::Enqueue10 { port, queue } => {
            json!({"cls": "OFPActionEnqueue", "port": port_no(version, port), "queue_id": queue})
        }
    }
}

pub fn instructions(all: &Instructions) -> Value {
    let v = Version::V13;
    let mut list = Vec::new();
    if let Some(meter) = all.meter {
        list.push(json!({"cls": "OFPInstructionMeter", "meter_id": meter}));
    }
    if let Some(a) = &all.apply {
        list.push(json!({"cls": "OFPInstructionActions", "type": 4, "actions": actions(v, a)}));
    }
    if all.clear {
        list.push(json!({"cls": "OFPInstructionActions", "type": 5, "actions": []}));
    }
    if let Some(a) = &all.write {
        list.push(json!({"cls": "OFPInstructionActions", "type": 3, "actions": actions(v, a)}));
    }
    if let Some((value, mask)) = all.metadata {
        list.push(json!({
            "cls": "OFPInstructionWriteMetadata", "metadata": value, "metadata_mask": mask,
        }));
    }
    if let Some(table) = all.goto {
        list.push(json!({"cls": "OFPInstructionGotoTable", "table_id": table}));
    }
    Value::Array(list)
}

pub fn buckets(list: &[Bucket]) -> Value {
    list.iter()
        .map(|b| {
            json!({
                "weight": b.weight, "watch_port": b.watch_port, "watch_group": b.watch_group,
                "actions": actions(Version::V13, &b.actions),
            })
        })
        .collect()
}

pub fn bands(list: &[Band]) -> Value {
    list.iter()
        .map(|b| match b.kind {
            BandType::Drop => {
                json!({"cls": "OFPMeterBandDrop", "rate": b.rate, "burst_size": b.burst})
            }
            BandType::DscpRemark(level) => json!({
                "cls": "OFPMeterBandDscpRemark", "rate": b.rate, "burst_size": b.burst,
                "prec_level": level,
            }),
        })
        .collect()
}

pub fn port(version: Version, p: &Port) -> Value {
    // 1.0's five features beside the speeds are four bits lower
    let features = |bits: u32| match version {
        Version::V10 => bits & 0x7f | (bits & 0xf800) >> 4,
        Version::V13 => bits,
    };
    let mut out = json!({
        "port_no": port_no(version, p.number), "hw_addr": mac(p.hw_addr), "name": hex(p.name.as_bytes()),
        "curr": features(p.current), "advertised": features(p.advertised),
        "supported": features(p.supported), "peer": features(p.peer),
    });
    if version == Version::V13 {
        out["config"] = json!(p.config & 0x65);
        out["state"] = json!(p.state);
        out["curr_speed"] = json!(p.current_speed);
        out["max_speed"] = json!(p.max_speed);
    } else {
        out["config"] = json!(p.config & 0x7f);
        let blocked = if p.state & 2 != 0 { 0x300 } else { 0 };
        out["state"] = json!(p.state & 1 | blocked);
    }
    out
}

pub fn table_features(t: &TableFeatures) -> Value {
    let ids = |list: &[FieldId]| -> Value {
        list.iter()
            .map(|f| json!({"type": f.field.name(), "hasmask": u8::from(f.masked)}))
            .collect()
    };
    let kinds = |list: &[u16]| -> Value { list.iter().map(|k| json!({"type": k})).collect() };
    let bit = u16::from;
    let properties: Vec<Value> = t
        .properties
        .iter()
        .map(|p| match p {
            Property::Instructions { miss, kinds: list } => {
                json!({"type": bit(*miss), "instruction_ids": kinds(list)})
            }
            Property::NextTables { miss, tables } => {
                json!({"type": 2 + bit(*miss), "table_ids": tables})
            }
            Property::Actions {
                miss,
                write,
                kinds: list,
            } => json!({
                "type": if *write { 4 } else { 6 } + bit(*miss), "action_ids": kinds(list),
            }),
            Property::Match(list) => json!({"type": 8, "oxm_ids": ids(list)}),
            Property::Wildcards(list) => json!({"type": 10, "oxm_ids": ids(list)}),
            Property::SetField {
                miss,
                write,
                fields,
            } => json!({
                "type": if *write { 12 } else { 14 } + bit(*miss), "oxm_ids": ids(fields),
            }),
        })
        .collect();
    json!({
        "table_id": t.table, "name": hex(t.name.as_bytes()), "metadata_match": t.metadata_match,
        "metadata_write": t.metadata_write, "config": t.config, "max_entries": t.max_entries,
        "properties": properties,
    })
}
