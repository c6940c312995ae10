// SPDX-License-Identifier: Apache-2.0
//! Messages by os-ken's names.

use crate::names::{
    actions, bands, buckets, fields, hex, instructions, mac, port, port_no, table_features,
};
use serde_json::{Value, json};
use tandem_openflow::model::*;
use tandem_openflow::random::{OwnedPart, OwnedReply};
use tandem_openflow::{Hello, Version};

fn buffer_id(buffer: Option<u32>) -> u32 {
    buffer.unwrap_or(0xffff_ffff)
}

fn hello(h: &Hello) -> Value {
    match h.bitmap {
        Some(bitmap) => {
            // os-ken does not look at the highest bit
            let versions: Vec<u32> = (0..31).filter(|n| bitmap >> n & 1 != 0).collect();
            json!({"cls": "OFPHello", "elements": [{"versions": versions}]})
        }
        None => json!({"cls": "OFPHello", "elements": []}),
    }
}

fn flow_mod(v: Version, m: &FlowMod) -> Value {
    let mut out = json!({
        "cls": "OFPFlowMod", "cookie": m.cookie, "command": m.command as u8,
        "idle_timeout": m.idle_timeout, "hard_timeout": m.hard_timeout, "priority": m.priority,
        "buffer_id": buffer_id(m.buffer), "out_port": port_no(v, m.out_port),
        "match": fields(&m.matching.fields),
    });
    if v == Version::V10 {
        out["flags"] = json!(m.flags & 3);
        out["actions"] = actions(v, m.instructions.apply.as_deref().unwrap_or_default());
    } else {
        out["cookie_mask"] = json!(m.cookie_mask);
        out["table_id"] = json!(m.table);
        out["out_group"] = json!(m.out_group);
        out["flags"] = json!(m.flags);
        out["instructions"] = instructions(&m.instructions);
    }
    out
}

fn filter(v: Version, cls: &str, f: &FlowFilter) -> Value {
    let mut out = json!({
        "cls": cls, "table_id": f.table, "out_port": port_no(v, f.out_port),
        "match": fields(&f.matching.fields),
    });
    if v == Version::V13 {
        out["out_group"] = json!(f.out_group);
        out["cookie"] = json!(f.cookie);
        out["cookie_mask"] = json!(f.cookie_mask);
    }
    out
}

fn asks(v: Version, m: &Multipart<'_>) -> Value {
    let mut out = match &m.asks {
        Asks::Desc => json!({"cls": "OFPDescStatsRequest"}),
        Asks::Flow(f) => filter(v, "OFPFlowStatsRequest", f),
        Asks::Aggregate(f) => filter(v, "OFPAggregateStatsRequest", f),
        Asks::Table => json!({"cls": "OFPTableStatsRequest"}),
        Asks::Port { port } => json!({"cls": "OFPPortStatsRequest", "port_no": port_no(v, *port)}),
        Asks::Queue { port, queue } => json!({
            "cls": "OFPQueueStatsRequest", "port_no": port_no(v, *port), "queue_id": queue,
        }),
        Asks::Group { group } => json!({"cls": "OFPGroupStatsRequest", "group_id": group}),
        Asks::GroupDesc => json!({"cls": "OFPGroupDescStatsRequest"}),
        Asks::GroupFeatures => json!({"cls": "OFPGroupFeaturesStatsRequest"}),
        Asks::Meter { meter } => json!({"cls": "OFPMeterStatsRequest", "meter_id": meter}),
        Asks::MeterConfig { meter } => {
            json!({"cls": "OFPMeterConfigStatsRequest", "meter_id": meter})
        }
        Asks::MeterFeatures => json!({"cls": "OFPMeterFeaturesStatsRequest"}),
        Asks::TableFeatures(tables) => {
            let body: Vec<Value> = tables.iter().map(table_features).collect();
            json!({"cls": "OFPTableFeaturesStatsRequest", "body": body})
        }
        Asks::PortDesc => json!({"cls": "OFPPortDescStatsRequest"}),
        Asks::Experimenter(e) => json!({
            "cls": if v == Version::V10 { "OFPVendorStatsRequest" } else { "OFPExperimenterStatsRequest" },
            "experimenter": e.experimenter, "exp_type": e.kind, "data": hex(e.data),
        }),
    };
    out["flags"] = json!(u16::from(m.more));
    out
}

pub fn request(v: Version, r: &Request<'_>) -> Value {
    match r {
        Request::Hello(_) if v == Version::V10 => json!({"cls": "OFPHello"}),
        Request::Hello(h) => hello(h),
        Request::Error { kind, code, data } => {
            json!({"cls": "OFPErrorMsg", "type": kind, "code": code, "data": hex(data)})
        }
        Request::Echo(data) => json!({"cls": "OFPEchoRequest", "data": hex(data)}),
        Request::EchoReply(data) => json!({"cls": "OFPEchoReply", "data": hex(data)}),
        Request::Experimenter(e) if v == Version::V10 => {
            json!({"cls": "OFPVendor", "vendor": e.experimenter, "data": hex(e.data)})
        }
        Request::Experimenter(e) => json!({
            "cls": "OFPExperimenter", "experimenter": e.experimenter, "exp_type": e.kind,
            "data": hex(e.data),
        }),
        Request::Features => json!({"cls": "OFPFeaturesRequest"}),
        Request::GetConfig => json!({"cls": "OFPGetConfigRequest"}),
        Request::SetConfig(c) => json!({
            "cls": "OFPSetConfig", "flags": c.fragments as u16, "miss_send_len": c.miss_send_len,
        }),
        Request::PacketOut(m) => json!({
            "cls": "OFPPacketOut", "buffer_id": buffer_id(m.buffer), "in_port": port_no(v, m.in_port),
            "actions": actions(v, &m.actions), "data": hex(m.data),
        }),
        Request::FlowMod(m) => flow_mod(v, m),
        Request::GroupMod(m) => json!({
            "cls": "OFPGroupMod", "command": m.command as u8, "type": m.kind as u8,
            "group_id": m.group, "buckets": buckets(&m.buckets),
        }),
        Request::PortMod(m) => {
            let advertise = match v {
                Version::V10 => m.advertise & 0x7f | (m.advertise & 0xf800) >> 4,
                Version::V13 => m.advertise,
            };
            json!({
                "cls": "OFPPortMod", "port_no": port_no(v, m.port), "hw_addr": mac(m.hw_addr),
                "config": m.config, "mask": m.mask, "advertise": advertise,
            })
        }
        Request::TableMod(m) => {
            json!({"cls": "OFPTableMod", "table_id": m.table, "config": m.config})
        }
        Request::Multipart(m) => asks(v, m),
        Request::Barrier => json!({"cls": "OFPBarrierRequest"}),
        Request::QueueConfig { port } => {
            json!({"cls": "OFPQueueGetConfigRequest", "port": port_no(v, *port)})
        }
        Request::Role(m) => json!({
            "cls": "OFPRoleRequest", "role": m.role as u32, "generation_id": m.generation,
        }),
        Request::GetAsync => json!({"cls": "OFPGetAsyncRequest"}),
        Request::SetAsync(a) => filters("OFPSetAsync", a),
        Request::MeterMod(m) => json!({
            "cls": "OFPMeterMod", "command": m.command as u8, "flags": m.flags,
            "meter_id": m.meter, "bands": bands(&m.bands),
        }),
    }
}

fn filters(cls: &str, a: &Async) -> Value {
    json!({
        "cls": cls, "packet_in_mask": a.packet_in, "port_status_mask": a.port_status,
        "flow_removed_mask": a.flow_removed,
    })
}

pub fn reply(v: Version, r: &OwnedReply) -> Value {
    let ten = v == Version::V10;
    match r {
        OwnedReply::Hello(h) if ten => {
            let _ = h;
            json!({"cls": "OFPHello"})
        }
        OwnedReply::Hello(h) => hello(h),
        OwnedReply::Error(error, data) => {
            let most = if error.kind == 0 { data.len() } else { 64 };
            let mut out = json!({
                "cls": "OFPErrorMsg", "data": hex(data.get(..most).unwrap_or(data)),
            });
            // what 1.0 makes of it is a table of its own
            if !ten {
                out["type"] = json!(error.kind);
                out["code"] = json!(error.code);
            }
            out
        }
        OwnedReply::Echo(data) => json!({"cls": "OFPEchoRequest", "data": hex(data)}),
        OwnedReply::EchoReply(data) => json!({"cls": "OFPEchoReply", "data": hex(data)}),
        OwnedReply::Experimenter(whose, _, data) if ten => {
            json!({"cls": "OFPVendor", "vendor": whose, "data": hex(data)})
        }
        OwnedReply::Experimenter(whose, kind, data) => json!({
            "cls": "OFPExperimenter", "experimenter": whose, "exp_type": kind, "data": hex(data),
        }),
        OwnedReply::Features(f) if ten => {
            let ports: Vec<Value> = f.ports.iter().map(|p| port(v, p)).collect();
            json!({
                "cls": "OFPSwitchFeatures", "datapath_id": f.datapath, "n_buffers": f.buffers,
                "n_tables": f.tables, "capabilities": f.capabilities & 0x67 | 0x80,
                "actions": 0xfff, "ports": {"numbered": ports},
            })
        }
        OwnedReply::Features(f) => json!({
            "cls": "OFPSwitchFeatures", "datapath_id": f.datapath, "n_buffers": f.buffers,
            "n_tables": f.tables, "auxiliary_id": f.auxiliary, "capabilities": f.capabilities,
        }),
        OwnedReply::Config(c) => json!({
            "cls": "OFPGetConfigReply", "flags": c.fragments as u16,
            "miss_send_len": c.miss_send_len,
        }),
        OwnedReply::PacketIn {
            buffer,
            total_len,
            reason,
            table,
            cookie,
            fields: known,
            data,
        } => {
            // os-ken cuts data off at total_len
            let data = data.get(..usize::from(*total_len)).unwrap_or(data);
            let mut out = json!({
                "cls": "OFPPacketIn", "buffer_id": buffer_id(*buffer), "total_len": total_len,
                "data": hex(data),
            });
            if ten {
                out["in_port"] = json!(known.first().map(|o| o.value as u32));
                out["reason"] = json!((*reason as u8).min(1));
            } else {
                out["reason"] = json!(*reason as u8);
                out["table_id"] = json!(table);
                out["cookie"] = json!(cookie);
                out["match"] = fields(known);
            }
            out
        }
        OwnedReply::FlowRemoved(m) => {
            let mut out = json!({
                "cls": "OFPFlowRemoved", "cookie": m.cookie, "priority": m.priority,
                "duration_sec": m.lifetime.sec, "duration_nsec": m.lifetime.nsec,
                "idle_timeout": m.idle_timeout, "packet_count": m.packets, "byte_count": m.bytes,
                "match": fields(&m.matching.fields),
            });
            if ten {
                out["reason"] = json!((m.reason as u8).min(2));
            } else {
                out["reason"] = json!(m.reason as u8);
                out["table_id"] = json!(m.table);
                out["hard_timeout"] = json!(m.hard_timeout);
            }
            out
        }
        OwnedReply::PortStatus(reason, p) => {
            json!({"cls": "OFPPortStatus", "reason": *reason as u8, "desc": port(v, p)})
        }
        OwnedReply::Barrier => json!({"cls": "OFPBarrierReply"}),
        OwnedReply::QueueConfig(number, queues) => {
            let queues: Vec<Value> = queues.iter().map(|q| queue(v, q)).collect();
            json!({
                "cls": "OFPQueueGetConfigReply", "port": port_no(v, *number), "queues": queues,
            })
        }
        OwnedReply::Role(m) => json!({
            "cls": "OFPRoleReply", "role": m.role as u32, "generation_id": m.generation,
        }),
        OwnedReply::Async(a) => filters("OFPGetAsyncReply", a),
    }
}

fn queue(v: Version, q: &Queue) -> Value {
    let mut properties = Vec::new();
    if let Some(rate) = q.min_rate {
        properties.push(json!({"property": 1, "rate": rate}));
    }
    if v == Version::V10 {
        return json!({"queue_id": q.queue, "properties": properties});
    }
    if let Some(rate) = q.max_rate {
        properties.push(json!({"property": 2, "rate": rate}));
    }
    json!({"queue_id": q.queue, "port": q.port, "properties": properties})
}

/// Has a reply one part of this kind alone?
pub fn alone(p: &OwnedPart) -> bool {
    matches!(
        p,
        OwnedPart::Desc(_)
            | OwnedPart::Aggregate(_)
            | OwnedPart::GroupFeatures(_)
            | OwnedPart::MeterFeatures(_)
    )
}

pub fn part(v: Version, p: &OwnedPart) -> Value {
    let ten = v == Version::V10;
    match p {
        OwnedPart::Desc(d) => json!({
            "mfr_desc": hex(d.manufacturer.as_bytes()), "hw_desc": hex(d.hardware.as_bytes()),
            "sw_desc": hex(d.software.as_bytes()), "serial_num": hex(d.serial.as_bytes()),
            "dp_desc": hex(d.datapath.as_bytes()),
        }),
        OwnedPart::Flow(s) => {
            let mut out = json!({
                "table_id": s.table, "duration_sec": s.lifetime.sec,
                "duration_nsec": s.lifetime.nsec, "priority": s.priority,
                "idle_timeout": s.idle_timeout, "hard_timeout": s.hard_timeout,
                "cookie": s.cookie, "packet_count": s.packets, "byte_count": s.bytes,
                "match": fields(&s.matching.fields),
            });
            if ten {
                let applied = s.instructions.apply.as_deref().unwrap_or_default();
                out["actions"] = actions(v, applied);
            } else {
                out["flags"] = json!(s.flags);
                out["instructions"] = instructions(&s.instructions);
            }
            out
        }
        OwnedPart::Aggregate(a) => json!({
            "packet_count": a.packets, "byte_count": a.bytes, "flow_count": a.flows,
        }),
        OwnedPart::Table(s) => {
            let mut out = json!({
                "table_id": s.table, "active_count": s.active, "lookup_count": s.lookups,
                "matched_count": s.matched,
            });
            if ten {
                out["name"] = hex(s.name.as_bytes());
                out["wildcards"] = json!(0x3f_ffff);
                out["max_entries"] = json!(s.max_entries);
            }
            out
        }
        OwnedPart::Port(s) => {
            let mut out = json!({
                "port_no": port_no(v, s.port), "rx_packets": s.rx_packets,
                "tx_packets": s.tx_packets, "rx_bytes": s.rx_bytes, "tx_bytes": s.tx_bytes,
                "rx_dropped": s.rx_dropped, "tx_dropped": s.tx_dropped,
                "rx_errors": s.rx_errors, "tx_errors": s.tx_errors,
                "rx_frame_err": s.rx_frame_err, "rx_over_err": s.rx_over_err,
                "rx_crc_err": s.rx_crc_err, "collisions": s.collisions,
            });
            if !ten {
                out["duration_sec"] = json!(s.lifetime.sec);
                out["duration_nsec"] = json!(s.lifetime.nsec);
            }
            out
        }
        OwnedPart::Queue(s) => {
            let mut out = json!({
                "port_no": port_no(v, s.port), "queue_id": s.queue, "tx_bytes": s.tx_bytes,
                "tx_packets": s.tx_packets, "tx_errors": s.tx_errors,
            });
            if !ten {
                out["duration_sec"] = json!(s.lifetime.sec);
                out["duration_nsec"] = json!(s.lifetime.nsec);
            }
            out
        }
        OwnedPart::Group(s) => json!({
            "group_id": s.group, "ref_count": s.references, "packet_count": s.packets,
            "byte_count": s.bytes, "duration_sec": s.lifetime.sec,
            "duration_nsec": s.lifetime.nsec, "bucket_stats": counters(&s.buckets, ["packet_count", "byte_count"]),
        }),
        OwnedPart::GroupDesc(d) => json!({
            "type": d.kind as u8, "group_id": d.group, "buckets": buckets(&d.buckets),
        }),
        OwnedPart::GroupFeatures(f) => json!({
            "types": f.types, "capabilities": f.capabilities, "max_groups": f.max_groups,
            "actions": f.actions,
        }),
        OwnedPart::Meter(s) => json!({
            "meter_id": s.meter, "flow_count": s.flows, "packet_in_count": s.packets,
            "byte_in_count": s.bytes, "duration_sec": s.lifetime.sec,
            "duration_nsec": s.lifetime.nsec,
            "band_stats": counters(&s.bands, ["packet_band_count", "byte_band_count"]),
        }),
        OwnedPart::MeterConfig(m) => json!({
            "flags": m.flags, "meter_id": m.meter, "bands": bands(&m.bands),
        }),
        OwnedPart::MeterFeatures(f) => json!({
            "max_meter": f.max_meters, "band_types": f.band_types,
            "capabilities": f.capabilities, "max_bands": f.max_bands, "max_color": f.max_color,
        }),
        OwnedPart::TableFeatures(f) => table_features(f),
        OwnedPart::PortDesc(p) => port(v, p),
    }
}

fn counters(list: &[(u64, u64)], [packets, bytes]: [&str; 2]) -> Value {
    list.iter()
        .map(|(p, b)| json!({packets: p, bytes: b}))
        .collect()
}
