// SPDX-License-Identifier: Apache-2.0
//! `ofp_port` (§7.2.1), `ofp_port_mod` (§7.3.4.3), port and queue statistics (§7.3.5.6 to §7.3.5.8), queues (§7.3.6).

use crate::Error;
use crate::model::{Port, PortMod, PortStats, Queue, QueueStats, port_config, port_features};
use crate::wire::{Put, Reader, Result};

pub(super) fn decode(mut r: Reader<'_>) -> Result<PortMod> {
    let port = r.u32()?;
    r.skip(4)?;
    let hw_addr = r.mac()?;
    r.skip(2)?;
    let config = r.u32()?;
    let at_mask = r;
    let mask = r.u32()?;
    let at_advertise = r;
    let advertise = r.u32()?;
    r.skip(4)?;
    r.end("bytes after a port's change")?;
    if mask & !port_config::ALL != 0 {
        let (most, got) = (u64::from(port_config::ALL), u64::from(mask));
        return Err(at_mask.bad(
            Error::PORT_MOD_FAILED_BAD_CONFIG,
            "config bits of a port",
            most,
            got,
        ));
    }
    if advertise & !port_features::ALL != 0 {
        let (most, got) = (u64::from(port_features::ALL), u64::from(advertise));
        let error = Error::PORT_MOD_FAILED_BAD_ADVERTISE;
        return Err(at_advertise.bad(error, "features to advertise", most, got));
    }
    Ok(PortMod {
        port,
        hw_addr,
        config,
        mask,
        advertise,
    })
}

pub(super) fn encode(m: &PortMod, out: &mut Vec<u8>) {
    out.put32(m.port);
    out.zeros(4);
    out.put(&m.hw_addr);
    out.zeros(2);
    out.put32(m.config);
    out.put32(m.mask);
    out.put32(m.advertise);
    out.zeros(4);
}

pub(super) fn encode_port(p: &Port, out: &mut Vec<u8>) {
    out.put32(p.number);
    out.zeros(4);
    out.put(&p.hw_addr);
    out.zeros(2);
    out.text(&p.name, 16);
    out.put32(p.config & port_config::ALL);
    out.put32(p.state);
    out.put32(p.current);
    out.put32(p.advertised);
    out.put32(p.supported);
    out.put32(p.peer);
    out.put32(p.current_speed);
    out.put32(p.max_speed);
}

/// The twelve counters, which are 1.0's too.
pub(crate) fn encode_counters(s: &PortStats, out: &mut Vec<u8>) {
    for n in [
        s.rx_packets,
        s.tx_packets,
        s.rx_bytes,
        s.tx_bytes,
        s.rx_dropped,
        s.tx_dropped,
        s.rx_errors,
        s.tx_errors,
        s.rx_frame_err,
        s.rx_over_err,
        s.rx_crc_err,
        s.collisions,
    ] {
        out.put64(n);
    }
}

pub(super) fn encode_stats(s: &PortStats, out: &mut Vec<u8>) {
    out.put32(s.port);
    out.zeros(4);
    encode_counters(s, out);
    out.put32(s.lifetime.sec);
    out.put32(s.lifetime.nsec);
}

pub(super) fn encode_queue_stats(s: &QueueStats, out: &mut Vec<u8>) {
    out.put32(s.port);
    out.put32(s.queue);
    out.put64(s.tx_bytes);
    out.put64(s.tx_packets);
    out.put64(s.tx_errors);
    out.put32(s.lifetime.sec);
    out.put32(s.lifetime.nsec);
}

pub(super) fn encode_queue(q: &Queue, out: &mut Vec<u8>) {
    let start = out.len();
    out.put32(q.queue);
    out.put32(q.port);
    out.put16(0);
    out.zeros(6);
    encode_rate(1, q.min_rate, out);
    encode_rate(2, q.max_rate, out);
    out.put_len(start + 8, start);
}

/// `ofp_queue_prop_min_rate`, `_max_rate`; the former is 1.0's too.
pub(crate) fn encode_rate(kind: u16, rate: Option<u16>, out: &mut Vec<u8>) {
    if let Some(rate) = rate {
        out.put16(kind);
        out.put16(16);
        out.zeros(4);
        out.put16(rate);
        out.zeros(6);
    }
}
