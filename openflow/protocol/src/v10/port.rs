// SPDX-License-Identifier: Apache-2.0
//! `ofp_phy_port` (1.0 §5.2.1), `ofp_port_mod` (1.0 §5.3.3), queues (1.0 §5.2.2, §5.3.4), statistics of both.

use crate::model::{Port, PortMod, PortStats, Queue, QueueStats, port_config, port_state};
use crate::port;
use crate::v13::{encode_counters, encode_rate};
use crate::wire::{Put, Reader, Result};

/// Bits of `ofp_port_features` that both versions have in the same place: speeds up to 10 Gb/s.
const SPEEDS: u32 = 0x7f;
/// The other five: 1.0's copper, fiber, autonegotiation and two of pause are four bits higher in 1.3.
const HOW10: u32 = 0xf80;

fn features_from10(bits: u32) -> u32 {
    bits & SPEEDS | (bits & HOW10) << 4
}

/// 1.3's speeds above 10 Gb/s are not in 1.0.
fn features_to10(bits: u32) -> u32 {
    bits & SPEEDS | bits >> 4 & HOW10
}

pub(super) fn decode(mut r: Reader<'_>) -> Result<PortMod> {
    let (number, hw_addr) = (r.u16()?, r.mac()?);
    let (config, mask, advertise) = (r.u32()?, r.u32()?, r.u32()?);
    r.skip(4)?;
    r.end("bytes after a port's change")?;
    Ok(PortMod {
        port: port::from10(number),
        hw_addr,
        // 1.0 has no error for bits that it does not know
        config: config & port_config::ALL10,
        mask: mask & port_config::ALL10,
        advertise: features_from10(advertise),
    })
}

pub(super) fn encode(m: &PortMod, out: &mut Vec<u8>) {
    out.put16(port::to10(m.port).unwrap_or(0xffff));
    out.put(&m.hw_addr);
    out.put32(m.config);
    out.put32(m.mask);
    out.put32(features_to10(m.advertise));
    out.zeros(4);
}

pub(super) fn encode_port(p: &Port, out: &mut Vec<u8>) {
    out.put16(port::to10(p.number).unwrap_or(0xffff));
    out.put(&p.hw_addr);
    out.text(&p.name, 16);
    out.put32(p.config & port_config::ALL10);
    // OFPPS_STP_BLOCK; what else 1.0 says of a spanning tree does not hold on a switch that has none
    let blocked = if p.state & port_state::BLOCKED != 0 {
        3 << 8
    } else {
        0
    };
    out.put32(p.state & port_state::LINK_DOWN | blocked);
    for bits in [p.current, p.advertised, p.supported, p.peer] {
        out.put32(features_to10(bits));
    }
}

pub(super) fn encode_stats(s: &PortStats, out: &mut Vec<u8>) {
    out.put16(port::to10(s.port).unwrap_or(0xffff));
    out.zeros(6);
    encode_counters(s, out);
}

pub(super) fn encode_queue_stats(s: &QueueStats, out: &mut Vec<u8>) {
    out.put16(port::to10(s.port).unwrap_or(0xffff));
    out.zeros(2);
    out.put32(s.queue);
    out.put64(s.tx_bytes);
    out.put64(s.tx_packets);
    out.put64(s.tx_errors);
}

pub(super) fn encode_queue(q: &Queue, out: &mut Vec<u8>) {
    let start = out.len();
    out.put32(q.queue);
    out.put16(0);
    out.zeros(2);
    encode_rate(1, q.min_rate, out);
    out.put_len(start + 4, start);
}
