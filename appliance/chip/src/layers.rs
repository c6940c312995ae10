// SPDX-License-Identifier: Apache-2.0
//! Several lists at one port, of which each has its say: limits, classes, access lists, copies. The chip has one list, whose
//! first rule that meets decides, so it is made of all pairs.
//!
//! ```text
//!   limits: broadcast, at 100 pps         list: permit tcp           broadcast, tcp: permit, at 100 pps
//!           (all else)                ×         deny ip        ──►   broadcast, ip:  deny
//!                                               (all else)           broadcast:      permit, at 100 pps
//!                                                                    tcp:            permit
//!                                                                    ip:             deny
//! ```

use tandem_abi::raw::tnd_acl_key;
use tandem_store::model::FilterPolice;
use tandem_store::model::{Filter, FilterVerdict};
use tandem_swconfig::Config;
use tandem_swconfig::monitor::{Level, Storm};
use tandem_vlans::{Database, RULES};
use zerocopy::{FromBytes, IntoBytes};

use crate::acl::{Ruled, nothing_yet};

/// Numbers of policers from here on are the engine's: the kernel's own begin with 1.
const POLICERS: u32 = 1 << 31;
/// So many policers a port has at most.
pub(crate) const POLICERS_OF_PORT: u32 = 256;
/// Parts of a second for which a limit may be passed at once.
const BURST: u64 = 10;
/// The longest frame of all.
const LONGEST: u64 = 9216 + 22;

/// The rule for what both of them meet; none: nothing does.
pub(crate) fn both(a: &Ruled, b: &Ruled) -> Option<Ruled> {
    let (f, g) = (&a.filter, &b.filter);
    let zip = |x: &tnd_acl_key, y: &tnd_acl_key| -> Vec<(u8, u8)> {
        let bytes = x.as_bytes().iter().zip(y.as_bytes());
        bytes.map(|(x, y)| (*x, *y)).collect()
    };
    let fields = zip(&f.fields, &g.fields);
    let masks = zip(&f.mask, &g.mask);
    let mut all = fields.iter().zip(&masks);
    if all.any(|((x, y), (m, n))| (x ^ y) & m & n != 0) {
        return None;
    }
    let merged = |pairs: &[(u8, u8)]| {
        let bytes: Vec<u8> = pairs.iter().map(|(x, y)| x | y).collect();
        tnd_acl_key::read_from_bytes(&bytes).ok()
    };
    let within = |x: Option<(u16, u16)>, y: Option<(u16, u16)>| match (x, y) {
        (Some(x), Some(y)) => {
            let (from, to) = (x.0.max(y.0), x.1.min(y.1));
            (from <= to).then_some(Some((from, to)))
        }
        (x, y) => Some(x.or(y)),
    };
    let drops = |f: &Filter| f.verdict == FilterVerdict::Drop;
    let kernel = f.kernel.clone().or_else(|| g.kernel.clone());
    let text = match (f.text.is_empty(), g.text.is_empty()) {
        (false, false) => format!("{}; {}", f.text, g.text),
        _ => format!("{}{}", f.text, g.text),
    };
    let filter = Filter {
        text,
        fields: merged(&fields)?,
        mask: merged(&masks)?,
        src_ports: within(f.src_ports, g.src_ports)?,
        dst_ports: within(f.dst_ports, g.dst_ports)?,
        verdict: match drops(f) || drops(g) {
            true => FilterVerdict::Drop,
            false => FilterVerdict::Permit,
        },
        mirror: f.mirror.or(g.mirror),
        police: f.police.or(g.police),
        kernel,
        ..f.clone()
    };
    let of = a.of.iter().chain(&b.of).cloned().collect();
    Some(Ruled { filter, of })
}

/// Both lists as one; more rules than a port may have are cut off, and refused by their number.
pub(crate) fn product(first: Vec<Ruled>, second: Vec<Ruled>) -> Vec<Ruled> {
    if first.is_empty() || second.is_empty() {
        return if first.is_empty() { second } else { first };
    }
    let mut all = Vec::new();
    for a in first {
        let passes = a.filter.verdict != FilterVerdict::Drop && a.filter.kernel.is_none();
        if passes {
            all.extend(second.iter().filter_map(|b| both(&a, b)));
        }
        all.push(a);
        if all.len() > RULES {
            return all;
        }
    }
    all.extend(second);
    all
}

/// How many bytes or frames each second, by the port's Mb/s.
fn rate(level: Level, mbps: u32) -> (bool, u64) {
    match level {
        Level::Pps(n) => (true, n.into()),
        Level::Bps(n) => (false, u64::from(n) / 8),
        Level::Percent(n) => (
            false,
            u64::from(mbps) * 1_000_000 / 8 * u64::from(n) / 10_000,
        ),
    }
}

/// A policer of a port: its number there, and what it lets pass.
pub(crate) fn police(port: u16, n: u32, packets: bool, rate: u64, burst: u64) -> FilterPolice {
    FilterPolice {
        index: POLICERS | u32::from(port) << 8 | (n % POLICERS_OF_PORT),
        packets,
        rate,
        burst,
        longest: u32::MAX,
    }
}

/// The rules of `storm-control`.
pub(crate) fn storm(port: u16, mbps: u32, storm: &Storm) -> Vec<Ruled> {
    if *storm == Storm::default() {
        return Vec::new();
    }
    let mac = |text: &str, fields: [u8; 6], mask: [u8; 6]| {
        let mut f = nothing_yet();
        f.text = text.into();
        (f.fields.dst_mac, f.mask.dst_mac) = (fields, mask);
        f
    };
    // what is for the link alone is no storm
    let link = mac(
        "what is for the link alone",
        [0x01, 0x80, 0xc2, 0, 0, 0],
        [255, 255, 255, 255, 255, 0xf0],
    );
    let all = [
        ("broadcast", [255; 6], [255; 6], storm.broadcast),
        (
            "multicast",
            [1, 0, 0, 0, 0, 0],
            [1, 0, 0, 0, 0, 0],
            storm.multicast,
        ),
        ("unicast", [0; 6], [1, 0, 0, 0, 0, 0], storm.unicast),
    ];
    let mut rules = vec![link];
    for (n, (word, fields, mask, level)) in (0..).zip(all) {
        let mut f = mac(&format!("storm-control {word}"), fields, mask);
        match level.map(|l| rate(l, mbps)) {
            // not a group's limit
            None if word == "broadcast" && storm.multicast.is_some() => {}
            None => continue,
            Some((_, 0)) => f.verdict = FilterVerdict::Drop,
            Some((packets, rate)) => {
                let least = if packets { 1 } else { LONGEST };
                f.police = Some(police(port, n, packets, rate, (rate / BURST).max(least)));
            }
        }
        rules.push(f);
    }
    let ruled = |filter| Ruled {
        filter,
        of: Vec::new(),
    };
    rules.into_iter().map(ruled).collect()
}

/// Where the frames of a port are copied to, of what comes in or leaves.
pub(crate) fn copied_to(config: &Config, port: &tandem_swconfig::Name, out: bool) -> Option<u16> {
    let session = |s: &tandem_swconfig::monitor::Session| {
        let ways = s.sources.get(port)?;
        let to = s.destination?;
        (if out { ways.tx } else { ways.rx }).then_some(to.number)
    };
    config.sessions.values().find_map(session)
}

/// All rules copy to a port, and what none of them meets is copied as well.
pub(crate) fn copy(rules: &mut Vec<Ruled>, to: u16) {
    let mut rest = nothing_yet();
    rest.text = "monitor session".into();
    rules.push(Ruled {
        filter: rest,
        of: Vec::new(),
    });
    for rule in rules {
        rule.filter.mirror = Some(Database::device(to));
    }
}

#[cfg(test)]
mod tests;
