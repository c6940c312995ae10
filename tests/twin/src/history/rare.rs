//! Every fourth history is about what is rare in the others: each verb and each kind of route, of next-hop object and of rule is
//! drawn about as often as any other, and about half of the commands are meant to be refused by the kernel. Each verb with
//! each kind of route has its turn, by the seed, and is most of what such a history does with routes.

use super::bridging::PORT_FLAGS;
use super::draw::{Draw, TRIES};
use super::known::{Intent, is_six, same_key};
use super::op::{NextHop, PORT_INDEX, Target, VERBS, Verb, Way, device};
use super::{PORTS, host_mac, v4, v6};

/// So many of a hundred commands can't succeed, as far as is known.
const REFUSED: u64 = 40;
/// So many of a hundred commands are about the route whose turn it is.
const FOCUS: u64 = 48;
/// And so many about one of these kinds, by [`Draw::of_kind`], and can't succeed: next-hop objects, neighbours, bridges, rules.
const VAIN: u64 = 18;
const VAIN_KINDS: [usize; 6] = [1, 5, 6, 6, 6, 7];

/// Where routes lead, by [`leads`].
const LEADS: usize = 8;
const ONE_NEXT_HOP: usize = 0;
const OBJECT: usize = 1;
const MULTIPATH: usize = 2;
const LOCAL: usize = 7;
/// A station whose address no interface has as its own.
const NOBODY: u8 = 66;

/// Which route is wanted.
#[derive(Clone, Copy)]
pub(super) struct Route {
    verb: Verb,
    pub six: bool,
    /// Where it leads, by [`leads`].
    lead: usize,
    metric: bool,
    succeeds: bool,
}

/// Which command is wanted.
#[derive(Clone, Copy)]
pub(super) enum Aim {
    Route(Route),
    /// A member of a group of several, of that family, shall be a blackhole.
    MemberToBlackhole(bool),
    /// An IPv6 neighbour of a device without IPv6.
    NeighbourWithout6,
    /// A rule that is there already.
    RuleAgain,
    /// A setting of a port that is in no bridge.
    SettingOutside,
    /// One of [`Draw::of_kind`], and whether it can succeed.
    Kind(usize, bool),
}

impl Route {
    /// Of that family, and with a metric or without.
    fn is_like(&self, r: &Way) -> bool {
        is_six(r) == self.six && (r.metric != 0) == self.metric
    }
}

/// Where it leads, as a number.
fn leads(target: &Target) -> usize {
    match target {
        Target::NextHops(next_hops) if next_hops.len() > 1 => MULTIPATH,
        Target::NextHops(_) | Target::Any => ONE_NEXT_HOP,
        Target::Object(_) => OBJECT,
        // from RTN_BLACKHOLE, 6, on
        Target::Special(kind) => usize::from(*kind) - 3,
        Target::Local(_) => LOCAL,
    }
}

/// The route whose turn it is, if this history is one of those.
pub(super) fn focus(seed: u64) -> Option<Route> {
    if seed % 4 != 3 {
        return None;
    }
    let mut turn = (seed / 4) as usize;
    let mut next = |n: usize| {
        let place = turn % n;
        turn /= n;
        place
    };
    Some(Route {
        verb: VERBS.get(next(VERBS.len())).copied().unwrap_or_default(),
        six: next(2) == 1,
        lead: next(LEADS),
        metric: next(2) == 1,
        succeeds: true,
    })
}

impl Draw {
    /// A command of such a history.
    pub fn rare_command(&mut self) -> Intent {
        let prepared = self.prepared.take();
        let mut aim = prepared.unwrap_or_else(|| self.aim());
        let (mut intent, mut succeeds) = self.aimed(aim);
        for n in 0..TRIES {
            if self.known.takes(&intent) == succeeds {
                break;
            }
            if n % 10 == 9 {
                aim = self.aim();
            }
            // what was to make way was not taken
            self.prepared = None;
            (intent, succeeds) = self.aimed(aim);
        }
        intent
    }

    fn aim(&mut self) -> Aim {
        let succeeds = !self.rng.percent(REFUSED);
        let focus = self.focus.filter(|_| !self.routed.is_empty());
        if let Some(focus) = focus.filter(|_| self.rng.percent(FOCUS)) {
            let succeeds = self.rng.percent(50);
            return Aim::Route(Route { succeeds, ..focus });
        }
        let vain = self.rng.of(&VAIN_KINDS);
        let may = self.weights.get(vain).is_some_and(|w| *w > 0);
        if may && self.rng.percent(VAIN) {
            return self.kind(vain, false);
        }
        match self.rng.weighted(&self.weights.clone()) {
            0 => Aim::Route(Route {
                verb: self.rng.of(&VERBS),
                six: self.six && self.rng.percent(45),
                lead: self.rng.below(LEADS),
                metric: self.rng.percent(50),
                succeeds,
            }),
            kind => self.kind(kind, succeeds),
        }
    }

    fn kind(&mut self, kind: usize, succeeds: bool) -> Aim {
        match kind {
            1 if !succeeds && self.rng.percent(50) => {
                Aim::MemberToBlackhole(self.six && self.rng.percent(60))
            }
            5 if !succeeds && self.six && self.rng.percent(30) => Aim::NeighbourWithout6,
            6 if !succeeds && self.rng.percent(30) => Aim::SettingOutside,
            7 if !succeeds && self.rng.percent(75) => Aim::RuleAgain,
            _ => Aim::Kind(kind, succeeds),
        }
    }

    /// What is wanted, or what has to be there before; and whether it can succeed.
    fn aimed(&mut self, aim: Aim) -> (Intent, bool) {
        match aim {
            Aim::Route(route) => self.rare_route(route),
            Aim::MemberToBlackhole(six) => self.member_to_blackhole(six),
            Aim::NeighbourWithout6 => self.neighbour_without6(),
            Aim::RuleAgain => self.rule_again(),
            Aim::SettingOutside => (self.setting_outside(), false),
            Aim::Kind(kind, succeeds) => (self.of_kind(kind), succeeds),
        }
    }

    /// Before that a group, where none is there.
    fn member_to_blackhole(&mut self, six: bool) -> (Intent, bool) {
        let mut members = self.known.members();
        members.retain(|id| (*id > 10) == six);
        if let Some(id) = members.get(self.rng.below(members.len())) {
            return (Intent::Nexthop(true, *id, six, None), false);
        }
        self.prepared = Some(Aim::MemberToBlackhole(six));
        let more = if six { 10 } else { 0 };
        let mut singles = self.known.singles();
        singles.retain(|id| (*id > 10) == six);
        if singles.len() < 2 {
            let mut ids: Vec<u32> = self.ids.iter().map(|id| id + more).collect();
            ids.retain(|id| !singles.contains(id));
            let (dev, via) = self.gateway(six);
            let next_hop = NextHop {
                dev,
                via: Some(via),
                ..NextHop::default()
            };
            let id = self.rng.of(&ids);
            return (Intent::Nexthop(true, id, six, Some(next_hop)), true);
        }
        let two = self.rng.some(&singles, 2).into_iter().map(|id| (id, 1));
        let group = self.rng.of(&self.groups) + more;
        (Intent::Group(true, group, two.collect()), true)
    }

    /// Before that a device loses IPv6, where none has.
    fn neighbour_without6(&mut self) -> (Intent, bool) {
        let without: Vec<u32> = self.known.without6.iter().copied().collect();
        if let Some(dev) = without.get(self.rng.below(without.len())) {
            let neighbour = Intent::Neighbour(*dev, v6(*dev, 2), Some(host_mac(1, 0x33)), true);
            return (neighbour, false);
        }
        self.prepared = Some(Aim::NeighbourWithout6);
        let name = device(self.rng.of(&self.routed));
        let key = format!("ipv6/conf/{name}/disable_ipv6");
        (Intent::Sysctl(key, "1".into()), true)
    }

    /// Before that a rule, where none is there.
    fn rule_again(&mut self) -> (Intent, bool) {
        let at = self.rng.below(self.known.rules.len());
        if let Some(rule) = self.known.rules.get(at).cloned() {
            return (Intent::Rule(true, rule), false);
        }
        self.prepared = Some(Aim::RuleAgain);
        (self.rule(), true)
    }

    fn setting_outside(&mut self) -> Intent {
        let dev = PORT_INDEX + 1 + self.rng.below(usize::from(PORTS)) as u32;
        let flag = self.rng.of(&PORT_FLAGS);
        Intent::PortFlag(dev, flag, 0)
    }

    fn rare_route(&mut self, route: Route) -> (Intent, bool) {
        let Route { verb, succeeds, .. } = route;
        self.in_vrf = !self.known.vrf.is_empty() && self.rng.percent(40);
        // what is there can be deleted, and can't be made once more
        let delete = verb == Verb::Delete;
        let there = succeeds == delete && self.rng.percent(if succeeds { 90 } else { 60 });
        // IPv4 replaces the first: by one that stands behind it it can't
        let behind = verb == Verb::Replace && !route.six;
        if verb == Verb::Change && succeeds && !self.known.routes.iter().any(|r| route.is_like(r)) {
            return self.make_way(route, false);
        }
        if !there {
            // half of them where something is already
            let beside = succeeds && (verb == Verb::Change || self.rng.percent(50));
            return (Intent::Route(verb, self.rare_way(route, beside)), succeeds);
        }
        if let Some(way) = self.known_route(route, behind) {
            return (Intent::Route(verb, way), succeeds);
        }
        self.make_way(route, behind)
    }

    /// A route that has to be there before that one.
    fn make_way(&mut self, route: Route, behind: bool) -> (Intent, bool) {
        self.prepared = Some(Aim::Route(route));
        let first = Route {
            verb: Verb::Append,
            succeeds: true,
            ..route
        };
        (
            Intent::Route(first.verb, self.rare_way(first, behind)),
            true,
        )
    }

    /// A new way of that kind; `beside`: with the key of one that is there, if one is.
    fn rare_way(&mut self, route: Route, beside: bool) -> Way {
        let Route { six, succeeds, .. } = route;
        let delete = route.verb == Verb::Delete;
        let target = match route.lead {
            ONE_NEXT_HOP if delete && self.rng.percent(50) => Target::Any,
            ONE_NEXT_HOP => Target::NextHops(vec![self.next_hop(six)]),
            OBJECT => {
                let group = self.rng.percent(35);
                self.object(six, group)
            }
            MULTIPATH => self.several(six),
            LOCAL => Target::Local(self.rng.of(&self.routed)),
            // as `leads` has it
            kind => Target::Special(kind as u8 + 3),
        };
        let src = self.rng.percent(if succeeds { 5 } else { 40 }).then(|| {
            let dev = self.rng.of(&self.routed);
            let last = if succeeds { 1 } else { NOBODY };
            if six { v6(dev, last) } else { v4(dev, last) }
        });
        let src = src.filter(|_| !delete);
        let all = self.known.routes.iter().filter(|r| route.is_like(r));
        let all: Vec<Way> = all.cloned().collect();
        if let Some(there) = all.get(self.rng.below(all.len())).filter(|_| beside) {
            return Way {
                src,
                target,
                ..there.clone()
            };
        }
        Way {
            dst: self.rng.of(&self.prefixes[usize::from(six)]),
            table: self.table(),
            metric: if route.metric { 10 } else { 0 },
            tos: if !six && self.rng.percent(3) { 0x10 } else { 0 },
            src,
            target,
        }
    }

    /// One of the routes that are there and lead so; `behind`: behind another one with its key.
    fn known_route(&mut self, route: Route, behind: bool) -> Option<Way> {
        let all = &self.known.routes;
        let next_hops = |r: &Way| match &r.target {
            Target::NextHops(next_hops) => next_hops.clone(),
            _ => Vec::new(),
        };
        // an IPv6 route of several next hops is known as one for each
        let whole = |r: &Way| {
            let parts = all.iter().filter(|o| is_six(r) && same_key(o, r));
            let parts: Vec<NextHop> = parts.flat_map(next_hops).collect();
            let mut way = r.clone();
            if parts.len() > 1 {
                way.target = Target::NextHops(parts);
            }
            way
        };
        let like = |(n, r): (usize, &Way)| {
            let way = whole(r);
            let mut before = all.iter().take(n);
            (route.is_like(r)
                && leads(&way.target) == route.lead
                && (!behind || before.any(|o| same_key(o, r))))
            .then_some(way)
        };
        let found: Vec<Way> = all.iter().enumerate().filter_map(like).collect();
        found.get(self.rng.below(found.len())).cloned()
    }
}
