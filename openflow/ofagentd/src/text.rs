// SPDX-License-Identifier: Apache-2.0
//! Matches, actions and instructions in the words of `ovs-ofctl`.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};
use tandem_mgmt::hex;
use tandem_ofagent::Step;
use tandem_openflow::model::{Band, BandType, meter_flags};
use tandem_openflow::oxm::VID_PRESENT;
use tandem_openflow::{Action, Field, Instructions, Match, Oxm, port};
use tandem_packet::ether;

/// A port's number, or the name of a reserved one.
pub fn port_name(number: u32) -> String {
    match number {
        port::IN_PORT => "IN_PORT".into(),
        port::TABLE => "TABLE".into(),
        port::NORMAL => "NORMAL".into(),
        port::FLOOD => "FLOOD".into(),
        port::ALL => "ALL".into(),
        port::CONTROLLER => "CONTROLLER".into(),
        port::LOCAL => "LOCAL".into(),
        port::ANY => "ANY".into(),
        n => n.to_string(),
    }
}

/// A MAC address.
fn mac(value: u128) -> String {
    let [.., a, b, c, d, e, f] = value.to_be_bytes();
    ether::show(&[a, b, c, d, e, f]).to_string()
}

fn value(field: Field, v: u128) -> String {
    match field {
        Field::InPort | Field::InPhyPort => port_name(v as u32),
        Field::EthDst | Field::EthSrc | Field::ArpSha | Field::ArpTha => mac(v),
        Field::Ipv6NdSll | Field::Ipv6NdTll => mac(v),
        Field::Ipv4Src | Field::Ipv4Dst | Field::ArpSpa | Field::ArpTpa => {
            Ipv4Addr::from_bits(v as u32).to_string()
        }
        Field::Ipv6Src | Field::Ipv6Dst | Field::Ipv6NdTarget => Ipv6Addr::from_bits(v).to_string(),
        Field::EthType => format!("{v:#06x}"),
        Field::VlanVid if v & u128::from(VID_PRESENT) != 0 => {
            (v & u128::from(VID_PRESENT - 1)).to_string()
        }
        Field::VlanVid => "none".into(),
        Field::Metadata | Field::TunnelId | Field::Ipv6Exthdr => format!("{v:#x}"),
        _ => v.to_string(),
    }
}

fn oxm(o: &Oxm) -> String {
    let name = o.field.name();
    if o.mask == o.field.all_ones() {
        return format!("{name}={}", value(o.field, o.value));
    }
    match o.field {
        Field::VlanVid => format!("{name}={:#x}/{:#x}", o.value, o.mask),
        f => format!("{name}={}/{}", value(f, o.value), value(f, o.mask)),
    }
}

/// A match; empty when it is everything.
pub fn matching(m: &Match) -> String {
    let all: Vec<String> = m.fields.iter().map(oxm).collect();
    all.join(",")
}

fn action(a: &Action) -> String {
    let way = |dst: bool| if dst { "dst" } else { "src" };
    match *a {
        Action::Output {
            port: port::CONTROLLER,
            max_len,
        } if max_len == port::NO_BUFFER_LEN => "CONTROLLER".into(),
        Action::Output {
            port: port::CONTROLLER,
            max_len,
        } => format!("CONTROLLER:{max_len}"),
        Action::Output { port, .. } if port > port::MAX => port_name(port),
        Action::Output { port, .. } => format!("output:{port}"),
        Action::CopyTtlOut => "copy_ttl_out".into(),
        Action::CopyTtlIn => "copy_ttl_in".into(),
        Action::SetMplsTtl(t) => format!("set_mpls_ttl:{t}"),
        Action::DecMplsTtl => "dec_mpls_ttl".into(),
        Action::PushVlan(t) => format!("push_vlan:{t:#06x}"),
        Action::PopVlan | Action::StripVlan10 => "pop_vlan".into(),
        Action::PushMpls(t) => format!("push_mpls:{t:#06x}"),
        Action::PopMpls(t) => format!("pop_mpls:{t:#06x}"),
        Action::SetQueue(q) => format!("set_queue:{q}"),
        Action::Group(g) => format!("group:{g}"),
        Action::SetNwTtl(t) => format!("set_nw_ttl:{t}"),
        Action::DecNwTtl => "dec_nw_ttl".into(),
        Action::SetField { field, value: v } => {
            format!("set_field:{}->{}", value(field, v), field.name())
        }
        Action::PushPbb(t) => format!("push_pbb:{t:#06x}"),
        Action::PopPbb => "pop_pbb".into(),
        Action::SetVlanVid10(v) => format!("mod_vlan_vid:{v}"),
        Action::SetVlanPcp10(v) => format!("mod_vlan_pcp:{v}"),
        Action::SetNw10 { dst, addr } => {
            format!("mod_nw_{}:{}", way(dst), Ipv4Addr::from_bits(addr))
        }
        Action::SetNwTos10(t) => format!("mod_nw_tos:{t}"),
        Action::SetTp10 { dst, port } => format!("mod_tp_{}:{port}", way(dst)),
        Action::Enqueue10 { port, queue } => format!("enqueue:{}:{queue}", port_name(port)),
    }
}

/// A list of actions.
pub fn actions(list: &[Action]) -> String {
    let all: Vec<String> = list.iter().map(action).collect();
    all.join(",")
}

/// What a flow does; `drop` when it is nothing.
pub fn instructions(i: &Instructions) -> String {
    let mut all = Vec::new();
    if let Some(m) = i.meter {
        all.push(format!("meter:{m}"));
    }
    if let Some(list) = i.apply.as_ref().filter(|l| !l.is_empty()) {
        all.push(actions(list));
    }
    if i.clear {
        all.push("clear_actions".into());
    }
    if let Some(list) = i.write.as_ref().filter(|l| !l.is_empty()) {
        all.push(format!("write_actions({})", actions(list)));
    }
    if let Some((value, mask)) = i.metadata {
        all.push(match mask {
            u64::MAX => format!("write_metadata:{value:#x}"),
            _ => format!("write_metadata:{value:#x}/{mask:#x}"),
        });
    }
    if let Some(to) = i.goto {
        all.push(format!("goto_table:{to}"));
    }
    if all.is_empty() {
        return "drop".into();
    }
    all.join(",")
}

/// A meter's band.
pub fn band(b: &Band, flags: u16) -> String {
    let unit = if flags & meter_flags::PKTPS != 0 {
        "pkt/s"
    } else {
        "kb/s"
    };
    let kind = match b.kind {
        BandType::Drop => "drop".to_owned(),
        BandType::DscpRemark(levels) => format!("dscp_remark:{levels}"),
    };
    let burst = if flags & meter_flags::BURST != 0 {
        format!(",burst:{}", b.burst)
    } else {
        String::new()
    };
    format!("{kind} above {} {unit}{burst}", b.rate)
}

/// One thing that happens to a frame on paper: a stage and words, the frame as it is then.
pub fn step(s: &Step) -> Value {
    match s {
        Step::Alone { to } => {
            let goes = match to {
                Some(port::FLOOD) => "flood".into(),
                Some(n) => format!("port {}", port_name(*n)),
                None => "dropped".into(),
            };
            json!({
                "stage": "standalone",
                "text": format!("no controller is connected, an ordinary switch: {goes}"),
            })
        }
        Step::Met { table, flow: None } => json!({
            "stage": format!("table {table}"),
            "text": "no flow: the packet is dropped (1.0: it goes to the controller)",
        }),
        Step::Met {
            table,
            flow: Some((number, f)),
        } => {
            let matching = match matching(&f.matching) {
                m if m.is_empty() => "everything".into(),
                m => m,
            };
            let does = instructions(&f.instructions);
            json!({
                "stage": format!("table {table}"),
                "text": format!("priority {}, cookie {:#x}, {matching} => {does}", f.priority, f.cookie),
                "flow": number,
            })
        }
        Step::Output { port, queue, bytes } => json!({
            "stage": "output",
            "text": match queue {
                Some(q) => format!("port {}, queue {q}, {} bytes", port_name(*port), bytes.len()),
                None => format!("port {}, {} bytes", port_name(*port), bytes.len()),
            },
            "port": port_name(*port),
            "frame": hex::encode(bytes),
        }),
        Step::Controller {
            reason,
            table,
            cookie,
            max_len,
            bytes,
        } => json!({
            "stage": "controller",
            "text": match max_len {
                &port::NO_BUFFER_LEN => format!("packet-in ({reason}), table {table}, cookie {cookie:#x}, whole"),
                n => format!("packet-in ({reason}), table {table}, cookie {cookie:#x}, up to {n} bytes"),
            },
            "frame": hex::encode(bytes),
        }),
        Step::Normal { bytes } => json!({
            "stage": "normal",
            "text": "as an ordinary switch: by its learned addresses",
            "frame": hex::encode(bytes),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_written_as_people_know_them() {
        let m = Match {
            fields: vec![
                Oxm::exact(Field::InPort, 3),
                Oxm::exact(Field::EthDst, 0x0200_0000_0001),
                Oxm::exact(Field::EthType, 0x800),
                Oxm::exact(Field::VlanVid, 0x1005),
                Oxm::masked(Field::Ipv4Dst, 0x0a00_0000, 0xff00_0000),
            ],
            exact: false,
        };
        assert_eq!(
            matching(&m),
            "in_port=3,eth_dst=02:00:00:00:00:01,eth_type=0x0800,vlan_vid=5,ipv4_dst=10.0.0.0/255.0.0.0"
        );
        let to = |port| Action::Output { port, max_len: 128 };
        let i = Instructions {
            meter: Some(4),
            apply: Some(vec![
                Action::SetField {
                    field: Field::EthSrc,
                    value: 0x0200_0000_0002,
                },
                to(5),
                to(port::CONTROLLER),
            ]),
            write: Some(vec![Action::Group(9)]),
            goto: Some(7),
            ..Instructions::default()
        };
        assert_eq!(
            instructions(&i),
            "meter:4,set_field:02:00:00:00:00:02->eth_src,output:5,CONTROLLER:128,write_actions(group:9),goto_table:7"
        );
        assert_eq!(instructions(&Instructions::default()), "drop");
    }
}
