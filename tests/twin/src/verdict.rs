//! Is a packet's answer one that the kernel gave?
//!
//! | the chip | the kernel, at one of its rests in question | verdict |
//! |---|---|---|
//! | to the CPU, once, and nothing else | whatever | trapped: the kernel's own answer follows |
//! | to the CPU, and frames as well, or twice | | wrong: the kernel forwards it a second time |
//! | frames, and a copy if the kernel made frames of its own | the same frames | exact |
//! | one frame, by another port or to another station | both are next hops of one route that the kernel may have taken | other next hop |
//! | one frame, by a next hop with a station | none, at most a redirect: another next hop of that route leads nowhere | other next hop |
//! | nothing: it went into a wire that is not there, to a next hop with a station | one frame, by another next hop of that route | other next hop |
//! | nothing at all: another next hop of that route leaves a bridge by a port that does not forward, or floods one of which none does | one frame, by a next hop that lives | other next hop |
//! | one frame | none: it came in by a port that is down at this rest, whose routes lead there | other next hop |
//! | nothing, or some: the others went into ports that are down at one of these rests | what would have left is an answer | lost |
//! | nothing, or a part of a flood | routed into a bridge that is down at a later rest | lost |
//! | nothing | routed into a bridge by a port of it that does not forward at a later rest, or has left it without a carrier | lost |
//! | nothing | none, as it may have kept an ICMP error back, and is never silent there | wrong |
//! | nothing, or some of the frames of a flood | its tables were emptied, and it is being programmed again | dark |
//! | anything else | | wrong |

use std::sync::OnceLock;

use tandem_abi::raw;
use tandem_linux::netlink as nl;

use crate::chip::Passed;
use crate::hidden::hides;
use crate::kernel::Rest;
use crate::paths::{self, NextHop, Packet};
use crate::player::{is_copy, untagged};
use crate::recording::{Answer, Out, Port, Probe};

/// What is thought of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As the kernel's.
    Exact,
    /// As the kernel's, by another next hop of the same route.
    OtherNextHop(Leniency),
    /// As the kernel's, but for what went into ports that went down, or came up, meanwhile, or into a bridge that went down.
    Lost,
    /// The CPU's, for this reason.
    Trapped(u16),
    /// Less than the kernel's, after a power failure.
    Dark,
    /// No answer of the kernel's.
    Wrong(Why),
}

/// Why an answer may be another next hop's than the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leniency {
    /// The chip hashes otherwise.
    Hash,
    /// The kernel chose a next hop that nobody answers behind.
    NoStation,
    /// The kernel chose a next hop without a carrier.
    NoCarrier,
    /// The same, though it was told to leave such next hops out: it weighs them anew at the next change only (net/ipv4/fib_semantics.c
    /// `fib_rebalance`).
    NotWeighed,
    /// The kernel chose a next hop that leaves a bridge by a port that does not forward.
    PortShutOfKernel,
    /// The chip chose a next hop without a carrier.
    NoCarrierOfChip,
    /// The chip chose a next hop that leaves a bridge by a port that does not forward.
    PortShut,
    /// What it came in by is down: the kernel says nothing of a frame that came just before, or just after.
    CameByDown,
    /// It left by a port that has come up since the rest whose routes lead there.
    CameUp,
}

impl std::fmt::Display for Leniency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Leniency::Hash => "another next hop",
            Leniency::NoStation => "… the kernel's has no station",
            Leniency::NoCarrier => "… the kernel's has no carrier",
            Leniency::NotWeighed => "… which it was told to leave out",
            Leniency::PortShutOfKernel => {
                "… the kernel's leaves by a bridge's port that does not forward"
            }
            Leniency::NoCarrierOfChip => "… the chip's has no carrier",
            Leniency::PortShut => "… the chip's leaves by a bridge's port that does not forward",
            Leniency::CameByDown => "… by a port that is down, or without IPv6",
            Leniency::CameUp => "… it left by a port that came up",
        })
    }
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The chip has forwarded it, and the CPU has it without being told so.
    ForwardedAndTrapped,
    /// The CPU has it more than once.
    TwiceToCpu,
    /// The kernel made frames of its own, and the CPU has nothing.
    NoCopy,
    /// The kernel owes an ICMP error, and the CPU has nothing.
    NoError,
    /// Other frames than the kernel's.
    Frames,
    /// Given to the CPU though the chip could have forwarded it as the kernel does.
    NotForwarded,
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Why::ForwardedAndTrapped => "forwarded, and given to the CPU as if it were not",
            Why::TwiceToCpu => "given to the CPU twice",
            Why::NoCopy => "the CPU has no copy of what the kernel answers itself",
            Why::NoError => "dropped where the kernel owes an ICMP error",
            Why::Frames => "other frames than the kernel's",
            Why::NotForwarded => "given to the CPU, though there is room for all",
        })
    }
}

/// What an answer is held to.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// What was sent.
    pub probe: &'a Probe,
    /// What the kernel made of it at this rest.
    pub answer: &'a Answer,
    /// What the kernel had.
    pub rest: &'a Rest,
    /// The front-panel ports.
    pub ports: &'a [Port],
    /// Whether the kernel owes an ICMP error, once that was asked: each play asks it.
    pub owes: &'a OnceLock<bool>,
}

/// Compares an answer of the chip with one of the kernel's. `passed.out` is sorted. `dark`: the chip's tables were emptied, and it
/// is not in sync yet.
#[must_use]
pub fn judge(passed: &Passed, case: &Case<'_>, dark: bool) -> Verdict {
    let trapped = passed.cpu.iter().filter(|(_, copy)| !copy).count();
    match (passed.cpu.as_slice(), trapped, passed.out.is_empty()) {
        ([(reason, _)], 1, true) => return Verdict::Trapped(*reason),
        (_, 1.., false) => return Verdict::Wrong(Why::ForwardedAndTrapped),
        ([], ..) | ([_], 0, _) => {}
        _ => return Verdict::Wrong(Why::TwiceToCpu),
    }
    match (frames(passed, case), dark) {
        (Verdict::Wrong(_), true) if is_part(passed, case.answer) => Verdict::Dark,
        (verdict, _) => verdict,
    }
}

/// Of a packet that went to the CPU while there was room for everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surplus {
    /// The kernel does not forward it, or answers itself as well.
    None,
    /// The kernel forwards it in silence; that the chip does not has a known reason.
    Allowed,
    /// The chip could have forwarded it.
    Wrong,
}

/// Whether a reason of [`SURPLUS`] holds for a packet.
type Holds = fn(&Case<'_>) -> bool;

/// Reasons for which the chip gives away what it has room for, and when that is right.
const SURPLUS: &[(u16, Holds)] = &[
    // a device without an address is no router interface of the chip's
    (raw::TND_TRAP_L2_LOCAL, |case| {
        paths::inside(case.probe.port, case.rest, case.ports)
            .is_some_and(|inside| !case.rest.addrs().any(|a| a.ifindex == inside))
    }),
    // a bridge that is the kernel's, where it came in or where it goes
    (raw::TND_TRAP_L2_LOCAL, |case| {
        paths::inside(case.probe.port, case.rest, case.ports)
            .is_some_and(|inside| paths::is_kernels(inside, case.rest, case.ports))
    }),
    (raw::TND_TRAP_ROUTE, |case| {
        let kernels = |w: &paths::Way| paths::is_kernels(w.ifindex, case.rest, case.ports);
        Packet::of(&case.probe.frame.0).is_some_and(|p| {
            let mut routes = paths::candidates(&p, case.rest).into_iter();
            routes.any(|r| paths::ways(r, case.rest).iter().any(kernels))
        })
    }),
    // the chip chose another next hop of the route, behind which nobody answers
    (raw::TND_TRAP_UNRESOLVED, |case| {
        let mut ways = next_hops(case).into_iter().flatten();
        ways.any(|(way, next_hop)| !way.ignored && next_hop.is_none_or(|next_hop| next_hop.dark))
    }),
    // ... or whose station is known behind a port of a bridge that is out of service
    (raw::TND_TRAP_FDB_INCOMPLETE, |case| {
        let mut ways = next_hops(case).into_iter().flatten();
        ways.any(|(way, next_hop)| !way.ignored && next_hop.is_some_and(|n| n.shut))
    }),
    // whether the kernel's bridge goes by its querier yet no message tells
    (raw::TND_TRAP_L2_MULTICAST, |case| {
        Packet::of(&case.probe.frame.0).is_some_and(|p| {
            let family = nl::Family::of(&p.dst);
            paths::may_have_querier(case.probe.port, family, case.rest, case.ports)
        })
    }),
    // a member of its group has a setting that the chip does not know
    (raw::TND_TRAP_L2_MULTICAST, |case| {
        let mut out = case.answer.out.iter();
        let group = || Packet::of(&case.probe.frame.0).map(|p| p.dst);
        let unknown = |g| paths::is_unknown_to_group(g, case.probe.port, case.rest, case.ports);
        out.any(|o| paths::has_unknown_setting(o.port, case.rest, case.ports))
            || group().is_some_and(unknown)
    }),
    (raw::TND_TRAP_ROUTE, |case| {
        Packet::of(&case.probe.frame.0).is_some_and(|p| paths::is_beyond(&p, case.rest))
    }),
    // its prefix, or the one that it comes from, is an own one for packets of another type of service
    (raw::TND_TRAP_LOCAL, |case| {
        Packet::of(&case.probe.frame.0)
            .is_some_and(|p| paths::is_own_by_tos(p.dst, case.probe.port, case.rest, case.ports))
    }),
    (raw::TND_TRAP_ERROR, |case| {
        Packet::of(&case.probe.frame.0)
            .is_some_and(|p| paths::is_own_by_tos(p.src, case.probe.port, case.rest, case.ports))
    }),
    // a setting of its port that the chip does not know
    (raw::TND_TRAP_UNSUPPORTED, |case| {
        paths::has_unknown_setting(case.probe.port, case.rest, case.ports)
    }),
    // policy rules: the routes that a table's prefix leads to are not all
    (raw::TND_TRAP_UNSUPPORTED, has_rules),
    // ... and what is an own address by the tables that they have nothing to do with is looked for first
    (raw::TND_TRAP_LOCAL, has_rules),
    // ... or where it claims to come from, an own address: the kernel asks the rules as if it had come in where it leaves, and one that
    // says nothing of that lets it pass (net/ipv4/fib_frontend.c `__fib_validate_source`; IPv6 asks no such thing)
    (raw::TND_TRAP_ERROR, |case| {
        let packet = Packet::of(&case.probe.frame.0).filter(|p| p.src.is_ipv4());
        packet.is_some_and(|p| paths::is_own(p.src, case.rest)) && has_rules(case)
    }),
];

/// There are policy rules beyond the kernel's own.
fn has_rules(case: &Case<'_>) -> bool {
    Packet::of(&case.probe.frame.0).is_some_and(|p| {
        let mut rules = case.rest.rules(nl::Family::of(&p.dst));
        rules.any(|r| !r.is_default())
    })
}

/// Whether the CPU has a packet, for this reason, that the chip could have forwarded.
#[must_use]
pub fn surplus(reason: u16, case: &Case<'_>) -> Surplus {
    let out = &case.answer.out;
    if out.is_empty() || out.iter().any(|o| o.made) {
        return Surplus::None;
    }
    let known = |(r, holds): &(u16, Holds)| *r == reason && holds(case);
    match SURPLUS.iter().any(known) {
        true => Surplus::Allowed,
        false => Surplus::Wrong,
    }
}

/// Whether a route that decides about a packet stands between the ways of another, where no dump shows it.
#[must_use]
pub fn is_hidden(case: &Case<'_>) -> bool {
    Packet::of(&case.probe.frame.0).is_some_and(|p| {
        let candidates = paths::candidates(&p, case.rest);
        candidates.iter().any(|r| hides(case.rest, r))
    })
}

/// The kernel's copies of the probe.
fn copies(answer: &Answer) -> impl Iterator<Item = &Out> {
    answer.out.iter().filter(|o| !o.made)
}

/// Judges what the chip decided alone.
fn frames(passed: &Passed, case: &Case<'_>) -> Verdict {
    let count = copies(case.answer).count();
    if count == 0
        && !passed.out.is_empty()
        && let Some(why) = silent_next_hop(&sent(&passed.out), case)
    {
        return Verdict::OtherNextHop(why);
    }
    if passed.cpu.is_empty() && count != case.answer.out.len() {
        return Verdict::Wrong(Why::NoCopy);
    }
    let all = copies(case.answer).map(|o| (o.port, &o.frame.0));
    if all.eq(passed.out.iter().map(|(port, frame)| (*port, frame))) {
        let silent = passed.cpu.is_empty() && passed.out.is_empty();
        return match silent && case.answer.limited && *case.owes.get_or_init(|| owes_error(case)) {
            true => Verdict::Wrong(Why::NoError),
            false => Verdict::Exact,
        };
    }
    let chip = sent(&passed.out);
    let kernel: Sent = copies(case.answer).map(|o| (o.port, &*o.frame.0)).collect();
    let nothing = chip.is_empty() && passed.cpu.is_empty();
    if other_next_hop(&kernel, &chip, case, NextHop::lives) {
        Verdict::OtherNextHop(Leniency::Hash)
    } else if nothing && shut_next_hop(&kernel, case) {
        Verdict::OtherNextHop(Leniency::PortShut)
    } else {
        Verdict::Wrong(Why::Frames)
    }
}

/// The kernel sent a packet by a next hop that lives, of a route of which another one leaves a bridge by a port that does not forward, or
/// floods a bridge of which no port does: its neighbour is known, by which port is not. One whose neighbour is unknown is the CPU's.
fn shut_next_hop(kernel: &[(u16, &[u8])], case: &Case<'_>) -> bool {
    let Some(packet) = Packet::of(&case.probe.frame.0) else {
        return false;
    };
    let shut = |(way, next_hop): &Path| {
        let lost = || paths::floods_nowhere(way, &packet, case.rest);
        !way.ignored
            && next_hop
                .as_ref()
                .map_or_else(lost, |next_hop| next_hop.shut)
    };
    let mut routes = next_hops(case).into_iter();
    routes.any(|r| has(&r, kernel, NextHop::lives) && r.iter().any(shut))
}

/// Judges an answer of which frames went into ports that are down in the chip. `would`: what would have left were they up;
/// `down`: the ports that are down at one of the rests in question.
#[must_use]
pub fn judge_lost(passed: &Passed, would: &Passed, down: &[u16], case: &Case<'_>) -> Verdict {
    let wrong = Verdict::Wrong(Why::Frames);
    let mut left = passed.out.iter().peekable();
    let mut lost = Vec::new();
    // both are sorted
    for one in &would.out {
        if left.next_if_eq(&one).is_none() {
            lost.push(one);
        }
    }
    let known = |(port, _): &&(u16, Vec<u8>)| down.contains(port);
    if left.next().is_some()
        || lost.is_empty()
        || !lost.iter().all(known)
        || passed.cpu != would.cpu
    {
        return wrong;
    }
    let kernel: Sent = copies(case.answer).map(|o| (o.port, &*o.frame.0)).collect();
    let chip = sent(&would.out);
    match judge(would, case, false) {
        Verdict::Exact | Verdict::OtherNextHop(_) => Verdict::Lost,
        // at a rest that has no carrier there
        _ if passed.out.is_empty() && other_next_hop(&kernel, &chip, case, NextHop::is_lost) => {
            Verdict::OtherNextHop(Leniency::NoCarrierOfChip)
        }
        _ if passed.out.is_empty() && is_wider(&chip, case) => Verdict::Lost,
        _ => wrong,
    }
}

/// A packet would have left by a next hop of some route that contains it, though others are asked before that one. What a port that goes
/// down takes along is worked on route by route: the surest is gone, and the one behind it still has the next hop that went as well.
fn is_wider(chip: &[(u16, &[u8])], case: &Case<'_>) -> bool {
    let ([(_, frame)], Some(packet)) = (chip, Packet::of(&case.probe.frame.0)) else {
        return false;
    };
    let (rest, ports) = (case.rest, case.ports);
    let leads = |way: &paths::Way| {
        let next_hop = paths::next_hop(way, &packet, rest, ports);
        !way.ignored && next_hop.is_some_and(|next_hop| next_hop.is(chip))
    };
    let first = paths::candidates(&packet, rest);
    let behind = |r: &&nl::Route| {
        let ours = paths::may_ask(r.table, case.probe.port, rest, ports);
        ours && !first.iter().any(|f| std::ptr::eq(*f, *r))
    };
    let mut routes = paths::matching(&packet, rest).filter(behind);
    is_copy(&case.probe.frame.0, frame)
        && paths::has_lost_a_hop(&packet, frame)
        && routes.any(|r| paths::ways(r, rest).iter().any(leads))
}

/// Judges an answer between rests to what came in by a port that is down at this rest. A frame that came just before is routed as this
/// rest has it (net/core/dev.c `process_backlog` asks no device whether it is up), and nothing was sent by it that would tell. What the
/// kernel forwards from no port at all it does not forward from this one. Likewise what came in just before IPv6 was switched off at its
/// port: the switch reads that now and then.
#[must_use]
pub fn judge_late(passed: &Passed, case: &Case<'_>) -> Option<Verdict> {
    let ([(port, frame)], []) = (passed.out.as_slice(), passed.cpu.as_slice()) else {
        return None;
    };
    let packet = Packet::of(&case.probe.frame.0)?;
    let (rest, ports) = (case.rest, case.ports);
    let leads = |way: &paths::Way| {
        let next_hop = paths::next_hop(way, &packet, rest, ports);
        next_hop.is_some_and(|next_hop| next_hop.lives() && next_hop.is(&[(*port, frame)]))
    };
    let mut routes = paths::candidates(&packet, rest).into_iter();
    let ours = |r: &nl::Route| paths::may_ask(r.table, case.probe.port, rest, ports);
    let port_of = |n: u16| ports.get(usize::from(n).checked_sub(1)?);
    let without6 = || port_of(case.probe.port).is_some_and(|p| rest.is_without6(&p.name));
    let known = (rest.down.contains(&case.probe.port) || packet.dst.is_ipv6() && without6())
        && !paths::is_refused(&packet, case.probe.port, rest, ports)
        && is_copy(&case.probe.frame.0, frame)
        && paths::has_lost_a_hop(&packet, frame)
        && routes.any(|r| ours(r) && paths::ways(r, rest).iter().any(|w| !w.ignored && leads(w)));
    known.then_some(Verdict::OtherNextHop(Leniency::CameByDown))
}

/// Judges an answer between rests that left by a port which had no carrier at this rest, or was down, and is up at the newest one: a
/// cable is there before the switch has read what happened until then, and its routes are this rest's. The kernel sent by that
/// port as well, where it was lost.
#[must_use]
pub fn judge_early(passed: &Passed, newest: &Rest, case: &Case<'_>) -> Option<Verdict> {
    let [(port, frame)] = passed.out.as_slice() else {
        return None;
    };
    let packet = Packet::of(&case.probe.frame.0)?;
    let (rest, ports) = (case.rest, case.ports);
    let silent = |rest: &Rest| rest.dark.contains(port) || rest.down.contains(port);
    let leads = |way: &paths::Way| {
        let next_hop = paths::next_hop(way, &packet, rest, ports);
        !way.ignored && next_hop.is_some_and(|next_hop| next_hop.is(&[(*port, frame)]))
    };
    let mut routes = paths::candidates(&packet, rest).into_iter();
    let ours = |r: &nl::Route| paths::may_ask(r.table, case.probe.port, rest, ports);
    let known = silent(rest)
        && !silent(newest)
        && case.answer.out.iter().all(is_redirect)
        && passed.cpu.iter().all(|(_, copy)| *copy)
        && !paths::is_refused(&packet, case.probe.port, rest, ports)
        && is_copy(&case.probe.frame.0, frame)
        && paths::has_lost_a_hop(&packet, frame)
        && routes.any(|r| ours(r) && paths::ways(r, rest).iter().any(leads));
    known.then_some(Verdict::OtherNextHop(Leniency::CameUp))
}

/// Judges silence between rests where the kernel routed into a bridge that is down, or gone, at a later one. A bridge that goes down
/// takes its ports out of service before it is down, and its routes go after that (net/bridge/br_device.c `br_dev_stop`, net/core/dev.c
/// `__dev_close_many`, net/ipv4/fib_frontend.c `fib_inetaddr_event`): what is routed there meanwhile is dropped without an error, or
/// flooded by the ports that are left, as one goes after the other (net/bridge/br_stp_if.c `br_stp_disable_bridge`). Dropped is as well
/// what one of the route's next hops sends by a bridge's port that does not forward at that rest: the bridge loses its carrier
/// with the last one that does, and its neighbours are forgotten after that (net/bridge/br_stp.c `br_port_state_selection`,
/// net/core/link_watch.c `linkwatch_do_dev`), up to a second later. So it is where the last one that has a carrier leaves the bridge, whose
/// stations go with it (net/bridge/br_if.c `del_nbp`).
#[must_use]
pub fn judge_shut(passed: &Passed, later: &Rest, case: &Case<'_>) -> Option<Verdict> {
    let silent = passed.out.is_empty();
    if !passed.cpu.is_empty() || !silent && !is_part(passed, case.answer) {
        return None;
    }
    let packet = Packet::of(&case.probe.frame.0)?;
    let (rest, ports) = (case.rest, case.ports);
    let kernel: Sent = copies(case.answer).map(|o| (o.port, &*o.frame.0)).collect();
    let is_up = |rest: &Rest, i| rest.link(i).is_some_and(nl::Link::admin_up);
    let shuts = |l: &nl::Link| {
        matches!(l.kind, nl::LinkKind::Bridge(_)) && is_up(rest, l.index) && !is_up(later, l.index)
    };
    let by_bridge = |way: &paths::Way| {
        let link = rest.link(way.ifindex);
        let below = link.and_then(|l| rest.link(l.lower));
        let next_hop = paths::next_hop(way, &packet, rest, ports);
        [link, below].into_iter().flatten().any(shuts) && next_hop.is_some_and(|n| n.is(&kernel))
    };
    let next_hop = |way: &paths::Way| paths::next_hop(way, &packet, rest, ports);
    let by_it = |way: &paths::Way| next_hop(way).is_some_and(|n| n.is(&kernel));
    let into_bridge = |way: &paths::Way| {
        let link = rest.link(way.ifindex);
        let below = link.and_then(|l| rest.link(l.lower));
        let mut all = [link, below].into_iter().flatten();
        all.any(|l| matches!(l.kind, nl::LinkKind::Bridge(_)))
    };
    let shut_since = |way: &paths::Way| {
        !way.ignored
            && into_bridge(way)
            && next_hop(way).is_some_and(|n| n.lives() && n.is_shut_at(rest, later, ports))
    };
    let mut routes = paths::candidates(&packet, rest).into_iter();
    let known = routes.any(|r| {
        let ways = paths::ways(r, rest);
        let shut = || silent && ways.iter().any(by_it) && ways.iter().any(shut_since);
        ways.iter().any(by_bridge) || shut()
    });
    known.then_some(Verdict::Lost)
}

/// Frames with the ports that they left by, in order.
type Sent<'a> = Vec<(u16, &'a [u8])>;

/// What the chip sent.
fn sent(out: &[(u16, Vec<u8>)]) -> Sent<'_> {
    out.iter().map(|(port, frame)| (*port, &**frame)).collect()
}

/// All that came out is the kernel's, though not all of the kernel's came out.
fn is_part(passed: &Passed, answer: &Answer) -> bool {
    let mut kernels = copies(answer);
    // both are sorted
    let is =
        |(port, frame): &(u16, Vec<u8>)| kernels.any(|o| o.port == *port && o.frame.0 == *frame);
    passed.out.iter().all(is)
}

/// Whether a probe that nothing came of deserves an ICMP error, by the kernel's tables.
fn owes_error(case: &Case<'_>) -> bool {
    let packet = Packet::of(&case.probe.frame.0);
    packet.is_some_and(|p| !paths::may_be_silent(&p, case.probe.port, case.rest, case.ports))
}

/// A way, and its next hop where somebody answers there.
type Path = (paths::Way, Option<NextHop>);

/// The routes with several ways that the kernel may have taken.
fn next_hops(case: &Case<'_>) -> Vec<Vec<Path>> {
    let Some(packet) = Packet::of(&case.probe.frame.0) else {
        return Vec::new();
    };
    let (rest, ports) = (case.rest, case.ports);
    let all = paths::candidates(&packet, rest).into_iter();
    let ways = all.map(|route| paths::ways(route, rest));
    let path = |w: paths::Way| (w, paths::next_hop(&w, &packet, rest, ports));
    ways.filter(|ways| ways.len() > 1)
        .map(|ways| ways.into_iter().map(path).collect())
        .collect()
}

/// A packet has gone by one of a route's next hops of this kind, that is not to be left out.
fn has(route: &[Path], sent: &[(u16, &[u8])], kind: fn(&NextHop) -> bool) -> bool {
    let kept = route.iter().filter(|(way, _)| !way.ignored);
    let mut next_hops = kept.filter_map(|(_, next_hop)| next_hop.as_ref());
    next_hops.any(|next_hop| kind(next_hop) && next_hop.is(sent))
}

/// ICMP and ICMPv6: what a router tells before it forwards.
fn is_redirect(out: &Out) -> bool {
    let at = |n: usize| out.frame.0.get(n).copied();
    match (at(12), at(13)) {
        (Some(0x08), Some(0x00)) => (at(23), at(34)) == (Some(1), Some(5)),
        (Some(0x86), Some(0xdd)) => (at(20), at(54)) == (Some(58), Some(137)),
        _ => false,
    }
}

/// The kernel said nothing of a packet, and may have chosen a next hop that leads nowhere: the chip chose one of the same route with a
/// station. A packet for whom nobody answers is dropped without an error here, as nobody is asked (net/core/neighbour.c
/// `__neigh_event_send`).
fn silent_next_hop(chip: &[(u16, &[u8])], case: &Case<'_>) -> Option<Leniency> {
    let packet = Packet::of(&case.probe.frame.0)?;
    let routed =
        |frame: &[u8]| is_copy(&case.probe.frame.0, frame) && paths::has_lost_a_hop(&packet, frame);
    if !chip.iter().all(|c| routed(c.1)) || !case.answer.out.iter().all(is_redirect) {
        return None;
    }
    // silent for a reason of its own: then no next hop is right
    if paths::is_unheard(&packet, case.probe.port, case.rest, case.ports) {
        return None;
    }
    let routes = next_hops(case).into_iter();
    let reason = |(way, next_hop): &Path| match next_hop {
        _ if way.ignored => Some(Leniency::NotWeighed),
        Some(next_hop) if next_hop.shut => Some(Leniency::PortShutOfKernel),
        Some(next_hop) => next_hop.dark.then_some(Leniency::NoCarrier),
        None if paths::is_dark(way, case.rest) => Some(Leniency::NoCarrier),
        None => Some(Leniency::NoStation),
    };
    let ways = routes.filter(|r| has(r, chip, NextHop::lives)).flatten();
    // the most ordinary one
    ways.filter_map(|path| reason(&path)).min()
}

/// One packet, sent to two next hops of one route, the kernel's to one that lives. By the same next hop they are the same frames, to their
/// VLANs' tags.
fn other_next_hop(
    kernel: &[(u16, &[u8])],
    chip: &[(u16, &[u8])],
    case: &Case<'_>,
    kind: fn(&NextHop) -> bool,
) -> bool {
    let Some(packet) = kernel.first().map(|k| untagged(k.1)) else {
        return false;
    };
    let one = |r: &Vec<Path>| has(r, kernel, NextHop::lives) && has(r, chip, kind);
    let same_next_hop = kernel.len() == chip.len()
        && (kernel.iter().zip(chip)).all(|(k, c)| k.0 == c.0 && k.1.get(..12) == c.1.get(..12));
    !same_next_hop
        && kernel.iter().chain(chip).all(|s| untagged(s.1) == packet)
        && next_hops(case).iter().any(one)
}

#[cfg(test)]
mod tests;
