//! Is a packet's answer one that the kernel gave?
//!
//! | the chip | the kernel, at one of its rests in question | verdict |
//! |---|---|---|
//! | to the CPU, once, and nothing else | whatever | trapped: the kernel's own answer follows |
//! | to the CPU, and frames as well, or twice | | wrong: the kernel forwards it a second time |
//! | frames, and a copy if the kernel made frames of its own | the same frames | exact |
//! | one frame, by another port or to another station | both are legs of one route that the kernel may have taken | other leg |
//! | one frame, by a leg with a station | none, at most a redirect: another leg of that route leads nowhere | other leg |
//! | nothing: it went into a wire that is not there, to a leg with a station | one frame, by another leg of that route | other leg |
//! | one frame | none: it came in by a port that is down at this rest, whose routes lead there | other leg |
//! | nothing, or some: the others went into ports that are down at one of these rests | what would have left is an answer | lost |
//! | nothing | none, as it may have kept an ICMP error back, and is never silent there | wrong |
//! | nothing, or some of the frames of a flood | its power failed, and it is being programmed again | dark |
//! | anything else | | wrong |

use tandem_abi::raw;
use tandem_linux::netlink as nl;
use tandem_store::model::Route;

use crate::chip::Passed;
use crate::kernel::Rest;
use crate::paths::{self, Leg, Packet};
use crate::player::{is_copy, untagged};
use crate::recording::{Answer, Out, Port, Probe};

/// What is thought of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As the kernel's.
    Exact,
    /// As the kernel's, by another leg of the same route.
    OtherLeg(Leniency),
    /// As the kernel's, but for what went into ports that went down, or came up, meanwhile.
    Lost,
    /// The CPU's, for this reason.
    Trapped(u16),
    /// Less than the kernel's, after a power failure.
    Dark,
    /// No answer of the kernel's.
    Wrong(Why),
}

/// Why an answer may be another leg's than the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leniency {
    /// The chip hashes otherwise.
    Hash,
    /// The kernel chose a leg that nobody answers behind.
    NoStation,
    /// The kernel chose a leg without a carrier.
    NoCarrier,
    /// The same, though it was told to leave such legs out: it weighs them anew at the next change only (net/ipv4/fib_semantics.c
    /// `fib_rebalance`).
    NotWeighed,
    /// The chip chose a leg without a carrier.
    NoCarrierOfChip,
    /// The chip chose a leg that leaves a bridge by a port that does not forward.
    PortShut,
    /// What it came in by is down: the kernel says nothing of a frame that came just before, or just after.
    CameByDown,
}

impl std::fmt::Display for Leniency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Leniency::Hash => "another leg",
            Leniency::NoStation => "… the kernel's has no station",
            Leniency::NoCarrier => "… the kernel's has no carrier",
            Leniency::NotWeighed => "… which it was told to leave out",
            Leniency::NoCarrierOfChip => "… the chip's has no carrier",
            Leniency::PortShut => "… the chip's leaves by a bridge's port that does not forward",
            Leniency::CameByDown => "… it came in by a port that is down",
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
}

/// Compares an answer of the chip with one of the kernel's. `passed.out` is sorted. `dark`: the chip's power has failed, and it
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
    // the chip chose another leg of the route, behind which nobody answers
    (raw::TND_TRAP_UNRESOLVED, |case| {
        let mut ways = legs(case).into_iter().flatten();
        ways.any(|(way, leg)| !way.ignored && leg.is_none_or(|leg| leg.dark))
    }),
    // whether the kernel's bridge goes by its querier yet no message tells
    (raw::TND_TRAP_L2_MULTICAST, |case| {
        paths::may_have_querier(case.probe.port, case.rest, case.ports)
    }),
    (raw::TND_TRAP_ROUTE, |case| {
        Packet::of(&case.probe.frame.0).is_some_and(|p| paths::is_beyond(&p, case.rest))
    }),
    // a setting of its port that the chip does not know
    (raw::TND_TRAP_UNSUPPORTED, |case| {
        paths::has_unknown_setting(case.probe.port, case.rest, case.ports)
    }),
    // policy rules: the routes that a table's prefix leads to are not all
    (raw::TND_TRAP_UNSUPPORTED, |case| {
        Packet::of(&case.probe.frame.0).is_some_and(|p| {
            let mut rules = case.rest.rules(nl::Family::of(&p.dst));
            rules.any(|r| !r.is_default())
        })
    }),
];

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

/// Whether a route that decides about a packet stands between the ways of another, where no dump shows it (net/ipv6/ip6_fib.c
/// `fib6_dump_node`). `told`: the routes of keys that have several, as messages told (`Store::several6`).
#[must_use]
pub fn is_hidden(case: &Case<'_>, told: &[Vec<Route>]) -> bool {
    let of = |r: &nl::Route| (r.table, r.dst, r.metric);
    let hides = |r: &nl::Route| {
        let dumped = case.rest.routes().filter(|o| of(o) == of(r)).count();
        let same = |o: &Route| (o.key.table, o.key.prefix, o.key.metric) == of(r);
        let mut lists = told.iter();
        lists.any(|list| list.first().is_some_and(same) && list.len() > dumped)
    };
    let several = |r: &nl::Route| matches!(r.nexthops, nl::Nexthops::Many(_)) && r.nh_id == 0;
    Packet::of(&case.probe.frame.0).is_some_and(|p| {
        let candidates = paths::candidates(&p, case.rest);
        candidates.iter().any(|r| several(r) && hides(r))
    })
}

/// The kernel's copies of the probe.
fn copies(answer: &Answer) -> impl Iterator<Item = &Out> {
    answer.out.iter().filter(|o| !o.made)
}

/// Judges what the chip decided alone.
fn frames(passed: &Passed, case: &Case<'_>) -> Verdict {
    let count = copies(case.answer).count();
    let chip = match passed.out.as_slice() {
        [(port, frame)] => Some((*port, frame.as_slice())),
        _ => None,
    };
    if let (0, Some(chip)) = (count, chip)
        && let Some(why) = silent_leg(chip, case)
    {
        return Verdict::OtherLeg(why);
    }
    if passed.cpu.is_empty() && count != case.answer.out.len() {
        return Verdict::Wrong(Why::NoCopy);
    }
    let all = copies(case.answer).map(|o| (o.port, &o.frame.0));
    if all.eq(passed.out.iter().map(|(port, frame)| (*port, frame))) {
        let silent = passed.cpu.is_empty() && passed.out.is_empty();
        return match silent && case.answer.limited && owes_error(case) {
            true => Verdict::Wrong(Why::NoError),
            false => Verdict::Exact,
        };
    }
    match (one_copy(case.answer), chip) {
        (Some(kernel), Some(chip)) if other_leg(kernel, chip, case, Leg::lives) => {
            Verdict::OtherLeg(Leniency::Hash)
        }
        (Some(kernel), None) if passed.out.is_empty() && shut_leg(kernel, case) => {
            Verdict::OtherLeg(Leniency::PortShut)
        }
        _ => Verdict::Wrong(Why::Frames),
    }
}

/// The kernel sent a packet by a leg that lives, of a route of which another one leaves a bridge by a port that does not forward, or by
/// nobody knows which.
fn shut_leg(kernel: (u16, &[u8]), case: &Case<'_>) -> bool {
    let shut = |(way, leg): &Path| {
        let lost = || paths::may_get_lost(way, case.rest);
        !way.ignored && leg.map_or_else(lost, |leg| leg.shut)
    };
    let mut routes = legs(case).into_iter();
    routes.any(|r| has(&r, kernel, Leg::lives) && r.iter().any(shut))
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
    match (
        judge(would, case, false),
        one_copy(case.answer),
        lost.as_slice(),
    ) {
        (Verdict::Exact | Verdict::OtherLeg(_), ..) => Verdict::Lost,
        // at a rest that has no carrier there
        (_, Some(kernel), [(port, frame)])
            if passed.out.is_empty() && other_leg(kernel, (*port, frame), case, Leg::is_lost) =>
        {
            Verdict::OtherLeg(Leniency::NoCarrierOfChip)
        }
        _ => wrong,
    }
}

/// Judges an answer between rests to what came in by a port that is down at this rest. A frame that came just before is routed as this
/// rest has it (net/core/dev.c `process_backlog` asks no device whether it is up), and nothing was sent by it that would tell.
#[must_use]
pub fn judge_late(passed: &Passed, case: &Case<'_>) -> Option<Verdict> {
    let ([(port, frame)], []) = (passed.out.as_slice(), passed.cpu.as_slice()) else {
        return None;
    };
    let packet = Packet::of(&case.probe.frame.0)?;
    let (rest, ports) = (case.rest, case.ports);
    let leads = |way: &paths::Way| {
        let leg = paths::leg(way, &packet, rest, ports);
        leg.is_some_and(|leg| leg.lives() && leg.is(*port, frame))
    };
    let mut routes = paths::candidates(&packet, rest).into_iter();
    let known = rest.down.contains(&case.probe.port)
        && is_copy(&case.probe.frame.0, frame)
        && routes.any(|r| paths::ways(r, rest).iter().any(|w| !w.ignored && leads(w)));
    known.then_some(Verdict::OtherLeg(Leniency::CameByDown))
}

/// The kernel's only copy.
fn one_copy(answer: &Answer) -> Option<(u16, &[u8])> {
    let mut all = copies(answer);
    let one = all.next()?;
    all.next().is_none().then_some((one.port, &one.frame.0))
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

/// A way, and its leg where somebody answers there.
type Path = (paths::Way, Option<Leg>);

/// The routes with several ways that the kernel may have taken.
fn legs(case: &Case<'_>) -> Vec<Vec<Path>> {
    let Some(packet) = Packet::of(&case.probe.frame.0) else {
        return Vec::new();
    };
    let (rest, ports) = (case.rest, case.ports);
    let all = paths::candidates(&packet, rest).into_iter();
    let ways = all.map(|route| paths::ways(route, rest));
    let path = |w: paths::Way| (w, paths::leg(&w, &packet, rest, ports));
    ways.filter(|ways| ways.len() > 1)
        .map(|ways| ways.into_iter().map(path).collect())
        .collect()
}

/// A packet has gone by one of a route's legs of this kind, that is not to be left out.
fn has(route: &[Path], (port, frame): (u16, &[u8]), kind: fn(&Leg) -> bool) -> bool {
    let kept = route.iter().filter(|(way, _)| !way.ignored);
    let mut legs = kept.filter_map(|(_, leg)| leg.as_ref());
    legs.any(|leg| kind(leg) && leg.is(port, frame))
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

/// The kernel said nothing of a packet, and may have chosen a leg that leads nowhere: the chip chose one of the same route with a
/// station. A packet for whom nobody answers is dropped without an error here, as nobody is asked (net/core/neighbour.c
/// `__neigh_event_send`).
fn silent_leg(chip: (u16, &[u8]), case: &Case<'_>) -> Option<Leniency> {
    if !is_copy(&case.probe.frame.0, chip.1) || !case.answer.out.iter().all(is_redirect) {
        return None;
    }
    // silent for a reason of its own: then no leg is right
    let packet = Packet::of(&case.probe.frame.0)?;
    if paths::is_unheard(&packet, case.probe.port, case.rest, case.ports) {
        return None;
    }
    let routes = legs(case).into_iter();
    let reason = |(way, leg): &Path| match leg {
        _ if way.ignored => Some(Leniency::NotWeighed),
        Some(leg) => leg.dark.then_some(Leniency::NoCarrier),
        None if paths::is_dark(way, case.rest) => Some(Leniency::NoCarrier),
        None => Some(Leniency::NoStation),
    };
    let ways = routes.filter(|r| has(r, chip, Leg::lives)).flatten();
    // the most ordinary one
    ways.filter_map(|path| reason(&path)).min()
}

/// Two frames that are one packet, sent to two legs of one route, the kernel's to one that lives.
fn other_leg(
    kernel: (u16, &[u8]),
    chip: (u16, &[u8]),
    case: &Case<'_>,
    kind: fn(&Leg) -> bool,
) -> bool {
    let one = |r: &Vec<Path>| has(r, kernel, Leg::lives) && has(r, chip, kind);
    untagged(kernel.1) == untagged(chip.1) && legs(case).iter().any(one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Bytes;

    /// To 10.9.0.1, as a host sends it, or as a router does: to the second address of a port.
    fn frame(port: u8, routed: bool) -> Vec<u8> {
        let mut f = vec![2, 0, 0, 0, 9, port, 2, 0, 0, 0, 2, port, 8, 0];
        let (ttl, sum): (u8, u16) = if routed { (63, 0x67c5) } else { (64, 0x66c5) };
        f.extend([0x45, 0, 0, 28, 0, 0, 0, 0, ttl, 17]);
        f.extend(sum.to_be_bytes());
        f.extend([10, 1, 0, 2, 10, 9, 0, 1]);
        f.extend([0, 9, 0, 9, 0, 8, 0, 0]);
        f
    }

    fn out(port: u8) -> Out {
        Out {
            port: u16::from(port),
            frame: Bytes(frame(port, true)),
            made: false,
        }
    }

    fn passed(ports: &[u8], cpu: &[(u16, bool)]) -> Passed {
        Passed {
            out: ports
                .iter()
                .map(|p| (u16::from(*p), frame(*p, true)))
                .collect(),
            cpu: cpu.to_vec(),
        }
    }

    fn judged(passed: &Passed, kernel: &[Out], dark: bool) -> Verdict {
        let probe = Probe {
            port: 1,
            frame: Bytes(frame(1, false)),
        };
        let answer = Answer {
            out: kernel.to_vec(),
            limited: false,
        };
        let case = Case {
            probe: &probe,
            answer: &answer,
            rest: &Rest::default(),
            ports: &[],
        };
        judge(passed, &case, dark)
    }

    const IT: (u16, bool) = (raw::TND_TRAP_ROUTE, false);
    const COPY: (u16, bool) = (raw::TND_TRAP_REDIRECT, true);

    #[test]
    fn the_same_frames_are_exact() {
        assert_eq!(judged(&passed(&[2], &[]), &[out(2)], false), Verdict::Exact);
        assert_eq!(
            judged(&passed(&[2], &[COPY]), &[out(2)], false),
            Verdict::Exact
        );
        assert_eq!(judged(&passed(&[], &[]), &[], false), Verdict::Exact);
        for (chip, kernel) in [(vec![3], vec![2]), (vec![], vec![2]), (vec![2, 3], vec![2])] {
            let kernel: Vec<Out> = kernel.into_iter().map(out).collect();
            let verdict = judged(&passed(&chip, &[]), &kernel, false);
            assert_eq!(verdict, Verdict::Wrong(Why::Frames), "{chip:?}");
        }
        // the kernel is silent: so must the chip be
        assert_eq!(
            judged(&passed(&[2], &[]), &[], false),
            Verdict::Wrong(Why::Frames)
        );
    }

    #[test]
    fn the_cpu_has_it_once_and_alone() {
        assert_eq!(
            judged(&passed(&[], &[IT]), &[out(2)], false),
            Verdict::Trapped(IT.0)
        );
        let twice = Verdict::Wrong(Why::TwiceToCpu);
        assert_eq!(judged(&passed(&[], &[IT, IT]), &[out(2)], false), twice);
        assert_eq!(
            judged(&passed(&[2], &[COPY, COPY]), &[out(2)], false),
            twice
        );
        let both = Verdict::Wrong(Why::ForwardedAndTrapped);
        assert_eq!(judged(&passed(&[2], &[IT]), &[out(2)], false), both);
        // wherever among the CPU's it stands
        assert_eq!(judged(&passed(&[2], &[IT, COPY]), &[out(2)], false), both);
        assert_eq!(judged(&passed(&[2], &[COPY, IT]), &[out(2)], false), both);
        // a copy of what has not been forwarded is none
        let lost = judged(&passed(&[], &[COPY]), &[out(2)], false);
        assert_eq!(lost, Verdict::Wrong(Why::Frames));
    }

    #[test]
    fn what_the_kernel_answers_itself_wants_a_copy() {
        let made = Out {
            made: true,
            ..out(1)
        };
        let kernel = [made, out(2)];
        let verdict = judged(&passed(&[2], &[]), &kernel, false);
        assert_eq!(verdict, Verdict::Wrong(Why::NoCopy));
        assert_eq!(
            judged(&passed(&[2], &[COPY]), &kernel, false),
            Verdict::Exact
        );
    }

    #[test]
    fn after_a_power_failure_less_will_do_and_nothing_else() {
        let kernel = [out(2), out(3)];
        assert_eq!(judged(&passed(&[], &[]), &kernel, true), Verdict::Dark);
        assert_eq!(judged(&passed(&[3], &[]), &kernel, true), Verdict::Dark);
        assert_eq!(judged(&passed(&[2, 3], &[]), &kernel, true), Verdict::Exact);
        let wrong = Verdict::Wrong(Why::Frames);
        assert_eq!(judged(&passed(&[4], &[]), &kernel, true), wrong);
        assert_eq!(judged(&passed(&[2, 4], &[]), &kernel, true), wrong);
        assert_eq!(judged(&passed(&[2], &[]), &[], true), wrong);
        // twice what the kernel sent once
        assert_eq!(judged(&passed(&[2, 2], &[]), &kernel, true), wrong);
    }

    #[test]
    fn a_surplus_wants_a_reason() {
        let probe = Probe {
            port: 1,
            frame: Bytes(frame(1, false)),
        };
        let of = |out: Vec<Out>| {
            let answer = Answer {
                out,
                limited: false,
            };
            let case = Case {
                probe: &probe,
                answer: &answer,
                rest: &Rest::default(),
                ports: &[],
            };
            surplus(raw::TND_TRAP_ROUTE, &case)
        };
        assert_eq!(of(vec![out(2)]), Surplus::Wrong);
        assert_eq!(of(vec![]), Surplus::None);
        assert_eq!(
            of(vec![
                out(2),
                Out {
                    made: true,
                    ..out(1)
                }
            ]),
            Surplus::None
        );
    }

    fn link(index: u32, port: u8, carrier: bool) -> nl::Object {
        // IFF_UP, IFF_LOWER_UP
        let flags = 1 | u32::from(carrier) << 16;
        nl::Object::Link(nl::Link {
            index,
            name: format!("swp{port}"),
            kind: nl::LinkKind::Other(String::new()),
            flags,
            mtu: 1500,
            mac: Some([2, 0, 0, 0, 2, port]),
            master: 0,
            slave_kind: String::new(),
            lower: 0,
            lower_elsewhere: false,
            operstate: 6,
            promiscuity: 0,
            brport: None,
            bond: None,
        })
    }

    fn neighbour(port: u8) -> nl::Object {
        nl::Object::Neigh(nl::Neigh {
            ifindex: u32::from(port),
            addr: [10, port, 0, 2].into(),
            mac: Some([2, 0, 0, 0, 9, port]),
            state: 0x80,
            flags: 0,
            ext_flags: 0,
        })
    }

    fn route(dst: &str, ways: &[u8]) -> nl::Object {
        let way = |port: &u8| nl::RouteNexthop {
            ifindex: u32::from(*port),
            gateway: Some([10, *port, 0, 2].into()),
            weight: 1,
            flags: 0,
            encap: false,
        };
        nl::Object::Route(nl::Route {
            table: 254,
            dst: dst.parse().unwrap(),
            tos: 0,
            metric: 0,
            kind: 1,
            scope: 0,
            protocol: 3,
            flags: 0,
            nh_id: 0,
            nexthops: nl::Nexthops::Many(ways.iter().map(way).collect()),
            src: None,
            prefsrc: None,
            mtu: 0,
            other: 0,
        })
    }

    /// The same route where ways without a carrier are left out.
    fn without_dark(mut route: nl::Object) -> nl::Object {
        if let nl::Object::Route(nl::Route {
            nexthops: nl::Nexthops::Many(ways),
            ..
        }) = &mut route
        {
            for way in ways.iter_mut().filter(|w| w.ifindex == 4) {
                way.flags = nl::consts::RTNH_F_DEAD | nl::consts::RTNH_F_LINKDOWN;
            }
        }
        route
    }

    /// How a probe is sent, and what the kernel was told.
    #[derive(Clone, Copy)]
    struct World {
        port: u8,
        /// The kernel's answer may be limited.
        limited: bool,
    }

    const USUAL: World = World {
        port: 1,
        limited: false,
    };

    /// The ports' netdevs have their numbers as ifindex; 4 has no carrier, and nobody answers at 5.
    fn within<T>(
        world: World,
        kernel: &[Out],
        routes: &[nl::Object],
        f: impl FnOnce(&Case<'_>) -> T,
    ) -> T {
        let ports: Vec<Port> = (1..=5)
            .map(|n| Port {
                ifindex: n,
                ..Port::default()
            })
            .collect();
        let links = (1..=5).map(|n| link(u32::from(n), n, n != 4));
        let neighbours = (1..=4).map(neighbour);
        let objects = links.chain(neighbours).chain(routes.iter().cloned());
        let confs = (1..=5).map(|n| {
            nl::Object::Netconf(nl::Netconf {
                family: nl::Family::V4,
                target: nl::NetconfTarget::Link(n),
                forwarding: Some(true),
                rp_filter: None,
                ignore_linkdown: None,
                mc_forwarding: None,
                proxy_neigh: None,
                bc_forwarding: None,
            })
        });
        let objects = objects.chain(confs);
        let rest = Rest::new(objects, Default::default(), &ports);
        let mut sent = frame(world.port, false);
        // to the port's own address
        sent[4] = 2;
        let probe = Probe {
            port: u16::from(world.port),
            frame: Bytes(sent),
        };
        let answer = Answer {
            out: kernel.to_vec(),
            limited: world.limited,
        };
        f(&Case {
            probe: &probe,
            answer: &answer,
            rest: &rest,
            ports: &ports,
        })
    }

    fn by(world: World, passed: &Passed, kernel: &[Out], routes: &[nl::Object]) -> Verdict {
        within(world, kernel, routes, |case| judge(passed, case, false))
    }

    fn routed(passed: &Passed, kernel: &[Out], routes: &[nl::Object]) -> Verdict {
        by(USUAL, passed, kernel, routes)
    }

    const WRONG: Verdict = Verdict::Wrong(Why::Frames);

    #[test]
    fn another_leg_is_one_of_the_longest_prefix() {
        let wide = route("10.0.0.0/8", &[2, 3]);
        let narrow = route("10.9.0.0/24", &[3, 1]);
        let at_3 = passed(&[3], &[]);
        assert_eq!(
            routed(&at_3, &[out(2)], std::slice::from_ref(&wide)),
            Verdict::OtherLeg(Leniency::Hash)
        );
        assert_eq!(
            routed(&passed(&[1], &[]), &[out(2)], std::slice::from_ref(&wide)),
            WRONG
        );
        // the wider route is not asked
        assert_eq!(routed(&at_3, &[out(2)], &[wide.clone(), narrow]), WRONG);
        // one way has no other
        assert_eq!(
            routed(&at_3, &[out(2)], &[route("10.0.0.0/8", &[2])]),
            WRONG
        );
        // another packet is none of its legs
        let mut changed = at_3;
        changed.out[0].1[30] ^= 1;
        assert_eq!(routed(&changed, &[out(2)], &[wide]), WRONG);
    }

    #[test]
    fn a_leg_of_the_kernels_that_leads_nowhere_is_silent() {
        let unknown = [route("10.0.0.0/8", &[2, 5])];
        let dark = [route("10.0.0.0/8", &[2, 4])];
        let known = [route("10.0.0.0/8", &[2, 3])];
        let ignored = [without_dark(dark[0].clone())];
        let mut told = out(1);
        told.made = true;
        // ICMP, another type
        told.frame.0[23] = 1;
        let error = told.clone();
        told.frame.0[34] = 5;
        let at_2 = passed(&[2], &[]);
        let other = |why| Verdict::OtherLeg(why);
        assert_eq!(routed(&at_2, &[], &unknown), other(Leniency::NoStation));
        assert_eq!(routed(&at_2, &[], &dark), other(Leniency::NoCarrier));
        assert_eq!(routed(&at_2, &[], &ignored), other(Leniency::NotWeighed));
        // what goes back by the same way is told of first; an error is none of these ways
        assert_eq!(routed(&at_2, &[told], &dark), other(Leniency::NoCarrier));
        assert_eq!(routed(&at_2, &[error], &dark), Verdict::Wrong(Why::NoCopy));
        // what the chip must leave out
        assert_eq!(routed(&passed(&[4], &[]), &[], &ignored), WRONG);
        assert_eq!(routed(&at_2, &[], &known), WRONG);
        // the chip's: what is not resolved goes to the CPU, what has no carrier is looked at closer
        let nothing = passed(&[], &[]);
        assert_eq!(routed(&nothing, &[out(2)], &dark), WRONG);
        assert_eq!(routed(&nothing, &[out(2)], &unknown), WRONG);
    }

    #[test]
    fn a_leg_of_the_chips_without_a_carrier_is_one_that_the_kernel_has() {
        let lost = |would: &[u8], kernel: &[Out], ways: &[u8]| {
            let routes = [route("10.0.0.0/8", ways)];
            within(USUAL, kernel, &routes, |case| {
                judge_lost(&passed(&[], &[]), &passed(would, &[]), &[4], case)
            })
        };
        assert_eq!(
            lost(&[4], &[out(2)], &[2, 4]),
            Verdict::OtherLeg(Leniency::NoCarrierOfChip)
        );
        // it is none of the route's
        assert_eq!(lost(&[4], &[out(2)], &[2, 3]), WRONG);
        // the kernel does not go by that route
        assert_eq!(lost(&[4], &[out(1)], &[2, 4]), WRONG);
        // told to leave it out, the chip must
        let ignored = [without_dark(route("10.0.0.0/8", &[2, 4]))];
        let sent = within(USUAL, &[out(2)], &ignored, |case| {
            judge_lost(&passed(&[], &[]), &passed(&[4], &[]), &[4], case)
        });
        assert_eq!(sent, WRONG);
        // that port is up
        assert_eq!(lost(&[3], &[out(2)], &[2, 3]), WRONG);
        // it went nowhere at all
        assert_eq!(lost(&[], &[out(2)], &[2, 4]), WRONG);
    }

    #[test]
    fn what_went_into_a_port_that_went_down_is_lost() {
        let lost = |out: &[u8], would: &[u8], kernel: &[Out]| {
            within(USUAL, kernel, &[], |case| {
                judge_lost(&passed(out, &[]), &passed(would, &[]), &[2, 4], case)
            })
        };
        assert_eq!(lost(&[], &[2], &[out(2)]), Verdict::Lost);
        assert_eq!(lost(&[3], &[2, 3], &[out(2), out(3)]), Verdict::Lost);
        // the kernel sent it elsewhere
        assert_eq!(lost(&[], &[2], &[out(3)]), WRONG);
        // one that is up has lost nothing
        assert_eq!(lost(&[], &[3], &[out(3)]), WRONG);
        assert_eq!(lost(&[], &[2, 3], &[out(2), out(3)]), WRONG);
        // that one is not among what would have left
        assert_eq!(lost(&[1], &[2, 3], &[out(2), out(3)]), WRONG);
        // were they up the CPU would have it
        let trapped = within(USUAL, &[out(2)], &[], |case| {
            judge_lost(&passed(&[], &[]), &passed(&[2], &[COPY]), &[2], case)
        });
        assert_eq!(trapped, WRONG);
    }

    #[test]
    fn a_limit_excuses_the_kernel_alone() {
        let limited = World {
            limited: true,
            ..USUAL
        };
        let nothing = passed(&[], &[]);
        let none = Verdict::Wrong(Why::NoError);
        assert_eq!(by(limited, &nothing, &[], &[]), none);
        assert_eq!(by(USUAL, &nothing, &[], &[]), Verdict::Exact);
        // where the CPU has it nothing is missing
        let trapped = passed(&[], &[IT]);
        assert_eq!(by(limited, &trapped, &[], &[]), Verdict::Trapped(IT.0));
        // no wire that it could have come by, a leg where it is lost
        let at_4 = World { port: 4, ..limited };
        assert_eq!(by(at_4, &nothing, &[], &[]), Verdict::Exact);
        let dark = [route("10.0.0.0/8", &[2, 4])];
        assert_eq!(by(limited, &nothing, &[], &dark), Verdict::Exact);
    }

    #[test]
    fn what_came_in_by_a_port_that_is_down_goes_by_the_routes_of_then() {
        let routes = [route("10.0.0.0/8", &[2])];
        let late = |port: u8, out: &[u8], routes: &[nl::Object]| {
            let world = World { port, ..USUAL };
            within(world, &[], routes, |case| {
                judge_late(&passed(out, &[]), case)
            })
        };
        let other = Some(Verdict::OtherLeg(Leniency::CameByDown));
        assert_eq!(late(4, &[2], &routes), other);
        // by a port that is up, elsewhere, or twice
        assert_eq!(late(1, &[2], &routes), None);
        assert_eq!(late(4, &[3], &routes), None);
        assert_eq!(late(4, &[2, 3], &routes), None);
        assert_eq!(late(4, &[2], &[]), None);
        // into a leg without a carrier
        assert_eq!(late(4, &[4], &[route("10.0.0.0/8", &[4])]), None);
    }
}
