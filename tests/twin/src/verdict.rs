//! Is a packet's answer one that the kernel gave?
//!
//! | the chip | the kernel, at one of its rests in question | verdict |
//! |---|---|---|
//! | to the CPU alone | whatever | trapped: the kernel's own answer follows |
//! | frames, and a copy if the kernel made frames of its own | the same frames | exact |
//! | the same but for Ethernet addresses and port | both are legs of the longest multipath route | other leg |
//! | one frame, by a leg with a station | none: another leg of that route has no known station | other leg |
//! | anything else | | wrong |

use std::collections::BTreeMap;
use std::net::IpAddr;

use tandem_linux::netlink as nl;
use tandem_packet::{L3, parse};

use crate::chip::Passed;
use crate::kernel::Rest;
use crate::recording::{Answer, Port};

/// What is thought of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As the kernel's.
    Exact,
    /// As the kernel's, by another leg of the same route.
    OtherLeg,
    /// The CPU's, for this reason.
    Trapped(u16),
    /// No answer of the kernel's.
    Wrong,
}

/// Frames of an answer that are the probe's copies, and whether the kernel made some of its own.
fn copies(answer: &Answer) -> (usize, bool) {
    let copies = answer.out.iter().filter(|o| !o.made).count();
    (copies, copies != answer.out.len())
}

/// Compares an answer of the chip with one of the kernel's. `passed.out` is sorted.
#[must_use]
pub fn judge(passed: &Passed, answer: &Answer, rest: &Rest, ports: &[Port]) -> Verdict {
    if let (Some((reason, false)), true) = (passed.cpu, passed.out.is_empty()) {
        return Verdict::Trapped(reason);
    }
    let (count, made) = copies(answer);
    if count == 0
        && let [c] = passed.out.as_slice()
        && silent_leg((c.0, &c.1), rest, ports)
    {
        return Verdict::OtherLeg;
    }
    if (made && passed.cpu.is_none()) || count != passed.out.len() {
        return Verdict::Wrong;
    }
    let kernels = answer.out.iter().filter(|o| !o.made);
    let same = kernels
        .clone()
        .zip(&passed.out)
        .all(|(k, c)| (k.port, &k.frame.0) == (c.0, &c.1));
    if same {
        return Verdict::Exact;
    }
    if let (Some(k), [c]) = (kernels.clone().next(), passed.out.as_slice())
        && other_leg((k.port, &k.frame.0), (c.0, &c.1), rest, ports)
    {
        return Verdict::OtherLeg;
    }
    Verdict::Wrong
}

/// Destination of an IP packet.
fn destination(frame: &[u8]) -> Option<IpAddr> {
    match parse(frame)?.l3(frame) {
        L3::Ip4(ip) => Some(IpAddr::from(ip.dst)),
        L3::Ip6(ip) => Some(IpAddr::from(ip.dst)),
        _ => None,
    }
}

/// The kernel's routes to where a probe goes, for people.
#[must_use]
pub fn routes(probe: &[u8], rest: &Rest) -> String {
    let Some(dst) = destination(probe) else {
        return String::new();
    };
    let mut text = format!("; routes to {dst}:");
    for r in rest.routes().filter(|r| r.dst.contains(&dst)) {
        text += &format!(
            " {} table {} metric {} type {}",
            r.dst, r.table, r.metric, r.kind
        );
        if r.nh_id != 0 {
            text += &format!(" nhid {}", r.nh_id);
        }
        for (ifindex, gateway) in ways(r, rest) {
            let station = rest.mac_of(ifindex, &gateway.unwrap_or(dst)).is_some();
            let known = if station { "" } else { " (no station)" };
            text += &match gateway {
                Some(g) => format!(" via {g} if {ifindex}{known}"),
                None => format!(" if {ifindex}{known}"),
            };
        }
        text.push(',');
    }
    text
}

/// Interface and gateway of each living leg.
fn ways(route: &nl::Route, rest: &Rest) -> Vec<(u32, Option<IpAddr>)> {
    const DEAD: u8 = 1;
    let mut ways = Vec::new();
    if route.nh_id != 0 {
        // the kernel may tell its legs as well
        objects(route.nh_id, rest, 0, &mut ways);
        return ways;
    }
    for n in route.nexthops.as_slice() {
        if n.flags & DEAD == 0 {
            ways.push((n.ifindex, n.gateway));
        }
    }
    ways
}

/// Port and station behind each living leg of a route with several.
fn legs(route: &nl::Route, dst: IpAddr, rest: &Rest, ports: &[Port]) -> Vec<(u16, [u8; 6])> {
    let ways = ways(route, rest);
    let station = |(ifindex, gateway): (u32, Option<IpAddr>)| {
        let port = ports.iter().position(|p| p.ifindex == ifindex)? as u16 + 1;
        Some((port, rest.mac_of(ifindex, &gateway.unwrap_or(dst))?))
    };
    ways.into_iter().filter_map(station).collect()
}

fn objects(id: u32, rest: &Rest, depth: u8, ways: &mut Vec<(u32, Option<IpAddr>)>) {
    match rest.nexthops().find(|n| n.id == id).map(|n| &n.kind) {
        Some(nl::NexthopKind::Single {
            ifindex, gateway, ..
        }) => ways.push((*ifindex, *gateway)),
        Some(nl::NexthopKind::Group { members, .. }) if depth == 0 => {
            for (id, _) in members {
                objects(*id, rest, 1, ways);
            }
        }
        _ => {}
    }
}

/// The kernel sent nothing, and may have chosen a leg behind which nobody answers: the chip chose one of the same route with a
/// station.
fn silent_leg(chip: (u16, &[u8]), rest: &Rest, ports: &[Port]) -> bool {
    let Some(dst) = destination(chip.1) else {
        return false;
    };
    let to = |r: &&nl::Route| r.dst.contains(&dst);
    rest.routes().filter(to).any(|r| {
        let longer = |o: &nl::Route| o.table == r.table && o.dst.prefix_len() > r.dst.prefix_len();
        let all = ways(r, rest).len();
        let legs = legs(r, dst, rest, ports);
        all > legs.len()
            && legs
                .iter()
                .any(|(p, mac)| *p == chip.0 && chip.1.get(..6) == Some(mac.as_slice()))
            && !rest.routes().filter(to).any(longer)
    })
}

/// Two frames that are one packet, sent to two legs of the longest multipath route to its destination.
fn other_leg(a: (u16, &[u8]), b: (u16, &[u8]), rest: &Rest, ports: &[Port]) -> bool {
    if a.1.get(12..) != b.1.get(12..) {
        return false;
    }
    let Some(dst) = destination(a.1) else {
        return false;
    };
    let several =
        |r: &&nl::Route| r.dst.contains(&dst) && (r.nexthops.as_slice().len() > 1 || r.nh_id != 0);
    let longest = rest
        .routes()
        .filter(several)
        .map(|r| r.dst.prefix_len())
        .max();
    let same_length = |r: &&nl::Route| Some(r.dst.prefix_len()) == longest;
    rest.routes().filter(several).filter(same_length).any(|r| {
        let legs = legs(r, dst, rest, ports);
        let is = |(port, frame): (u16, &[u8])| {
            legs.iter()
                .any(|(p, mac)| *p == port && frame.get(..6) == Some(mac.as_slice()))
        };
        is(a) && is(b)
    })
}

/// Counts of what was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Plays.
    pub plays: u64,
    /// Rests that were judged.
    pub rests: u64,
    /// Packets by verdict, at rests and between them.
    pub exact: [u64; 2],
    /// The same.
    pub other_leg: [u64; 2],
    /// The same.
    pub trapped: [u64; 2],
    /// At a rest with room for everything, what the kernel forwarded and the chip did not, by the trap's reason.
    pub fits_but_trapped: BTreeMap<u16, u64>,
    /// Between rests: neither the CPU's nor any rest's, as the chip had just lost its power.
    pub dark: u64,
    /// What was written back to the kernel, which took none of it.
    pub writes: u64,
    /// Restarts: warm, cold.
    pub restarts: [u64; 2],
    /// Times that notifications were lost.
    pub overflows: u64,
    /// Commands posted, and not answered in time.
    pub commands: [u64; 2],
    /// By construct, operation and outcome.
    pub cells: BTreeMap<(String, String, &'static str), u64>,
}

impl Tally {
    /// Adds another one's counts.
    pub fn add(&mut self, other: &Tally) {
        self.plays += other.plays;
        self.rests += other.rests;
        let pairs = [
            (&mut self.exact, other.exact),
            (&mut self.other_leg, other.other_leg),
            (&mut self.trapped, other.trapped),
            (&mut self.restarts, other.restarts),
            (&mut self.commands, other.commands),
        ];
        for (to, from) in pairs {
            to.iter_mut().zip(from).for_each(|(a, b)| *a += b);
        }
        for (reason, n) in &other.fits_but_trapped {
            *self.fits_but_trapped.entry(*reason).or_default() += n;
        }
        self.dark += other.dark;
        self.writes += other.writes;
        self.overflows += other.overflows;
        for (cell, n) in &other.cells {
            *self.cells.entry(cell.clone()).or_default() += n;
        }
    }
}
