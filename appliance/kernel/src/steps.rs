// SPDX-License-Identifier: Apache-2.0
//! What differs between two plans, as steps that can be undone.

use std::collections::{BTreeMap, BTreeSet};

use tandem_linux::netlink::Membership;
use tandem_swconfig::Via;
use tandem_swfrr::Line;
use tandem_swstack::tree;
use tandem_swstack::{Device, RouteKey, Wanted, keys};

use crate::engine::Kernel;
use crate::plan::Plan;

/// Who is in a VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum At {
    /// A port.
    Port(u16),
    /// The bridge itself.
    Bridge,
}

/// VLANs, from the first to the last, in which somebody was so, and is to be so.
pub(crate) type Run = ((u16, u16), [Option<Membership>; 2]);

/// One change; the first of each pair is what was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Members(At, Run),
    Up(u16, [bool; 2]),
    Mtu(u16, [u32; 2]),
    Aging([u32; 2]),
    Station((u16, [u8; 6]), [Option<u16>; 2]),
    Device(Device, Box<[Option<Wanted>; 2]>),
    Routing([bool; 2]),
    Route(RouteKey, [BTreeSet<Via>; 2]),
    Protocols([Vec<Line>; 2]),
    Tree(Box<[tree::Wanted; 2]>),
}

/// What differs of somebody's VLANs: neighbours in number of which the same is to be said are one. A PVID is said by itself.
pub(crate) fn runs(was: &BTreeMap<u16, Membership>, now: &BTreeMap<u16, Membership>) -> Vec<Run> {
    let mut all: Vec<Run> = Vec::new();
    for vid in keys(was, now) {
        let pair = [was, now].map(|all| all.get(&vid).copied());
        if pair[0] == pair[1] {
            continue;
        }
        let alone = pair.iter().flatten().any(|m| m.pvid);
        match all.last_mut() {
            Some(((_, last), before)) if !alone && *last + 1 == vid && *before == pair => {
                *last = vid;
            }
            _ => all.push(((vid, vid), pair)),
        }
    }
    all
}

/// What is to be done, in order: nothing is in two VLANs meanwhile, and nothing stands on what is not there yet.
pub(crate) fn steps(was: &Plan, now: &Plan) -> Vec<Step> {
    let mut all = Vec::new();
    let device = |d: &Device| [was, now].map(|p| p.devices.get(d).cloned());
    let devices: Vec<Device> = keys(&was.devices, &now.devices).collect();
    for d in &devices {
        if let pair @ [Some(_), None] = device(d) {
            all.push(Step::Device(*d, Box::new(pair)));
        }
    }
    let station = |k: &(u16, [u8; 6])| [was, now].map(|p| p.stations.get(k).copied());
    let stations: Vec<_> = keys(&was.stations, &now.stations).collect();
    for k in &stations {
        if let [Some(port), to] = station(k)
            && to != Some(port)
        {
            all.push(Step::Station(*k, [Some(port), None]));
        }
    }
    let mut members: Vec<(At, Run)> = Vec::new();
    let (mut down, mut mtus, mut up) = (Vec::new(), Vec::new(), Vec::new());
    for number in keys(&was.ports, &now.ports) {
        // one that is not there is none whose settings could be changed
        let (Some(a), Some(b)) = (was.ports.get(&number), now.ports.get(&number)) else {
            continue;
        };
        let differs = runs(&a.vlans, &b.vlans).into_iter();
        members.extend(differs.map(|run| (At::Port(number), run)));
        if a.mtu != b.mtu {
            mtus.push(Step::Mtu(number, [a.mtu, b.mtu]));
        }
        match (a.up, b.up) {
            (true, false) => down.push(Step::Up(number, [true, false])),
            (false, true) => up.push(Step::Up(number, [false, true])),
            _ => {}
        }
    }
    let own = runs(&was.own, &now.own).into_iter();
    members.extend(own.map(|run| (At::Bridge, run)));
    let (gone, mut come): (Vec<_>, Vec<_>) =
        members.into_iter().partition(|(_, (_, p))| p[1].is_none());
    // a PVID ends before another one begins, which would end it unsaid: then the way back says it as well
    let has = |of: Option<Membership>| of.is_some_and(|m| m.pvid);
    come.sort_by_key(|(_, (_, p))| !has(p[0]) || has(p[1]));
    all.append(&mut down);
    all.extend(gone.into_iter().map(|(at, run)| Step::Members(at, run)));
    all.append(&mut mtus);
    all.extend(come.into_iter().map(|(at, run)| Step::Members(at, run)));
    if was.tree != now.tree {
        let pair = [was, now].map(|p| p.tree.clone());
        all.push(Step::Tree(Box::new(pair)));
    }
    all.append(&mut up);
    if was.aging != now.aging {
        all.push(Step::Aging([was.aging, now.aging]));
    }
    for k in &stations {
        if let [from, Some(port)] = station(k)
            && from != Some(port)
        {
            all.push(Step::Station(*k, [None, Some(port)]));
        }
    }
    for d in &devices {
        let pair = device(d);
        if pair[1].is_some() && pair[0] != pair[1] {
            all.push(Step::Device(*d, Box::new(pair)));
        }
    }
    if was.routing != now.routing {
        all.push(Step::Routing([was.routing, now.routing]));
    }
    for key in keys(&was.routes, &now.routes) {
        let pair = [was, now].map(|p| p.routes.get(&key).cloned().unwrap_or_default());
        if pair[0] != pair[1] {
            all.push(Step::Route(key, pair));
        }
    }
    if was.protocols != now.protocols {
        let pair = [was, now].map(|p| p.protocols.clone());
        all.push(Step::Protocols(pair));
    }
    all
}

fn turn<T: Clone>([a, b]: &[T; 2]) -> [T; 2] {
    [b.clone(), a.clone()]
}

impl Step {
    /// The way back.
    pub fn back(&self) -> Step {
        match self {
            Step::Members(at, (vids, p)) => Step::Members(*at, (*vids, turn(p))),
            Step::Up(n, p) => Step::Up(*n, turn(p)),
            Step::Mtu(n, p) => Step::Mtu(*n, turn(p)),
            Step::Aging(p) => Step::Aging(turn(p)),
            Step::Station(k, p) => Step::Station(*k, turn(p)),
            Step::Device(d, p) => Step::Device(*d, Box::new(turn(p))),
            Step::Routing(p) => Step::Routing(turn(p)),
            Step::Route(k, p) => Step::Route(*k, turn(p)),
            Step::Protocols(p) => Step::Protocols(turn(p)),
            Step::Tree(p) => Step::Tree(Box::new(turn(p))),
        }
    }

    /// Does it. What it has done of it when it fails is undone by its way back.
    pub fn take(&self, kernel: &mut dyn Kernel) -> Result<(), String> {
        match self {
            Step::Members(at, (vids, [_, of])) => kernel.members(*at, *vids, *of),
            Step::Up(n, [_, up]) => kernel.up(*n, *up),
            Step::Mtu(n, [_, mtu]) => kernel.mtu(*n, *mtu),
            Step::Aging([_, seconds]) => kernel.aging(*seconds),
            Step::Station(key, [_, Some(port)]) => kernel.station(*key, *port, true),
            Step::Station(key, [Some(port), None]) => kernel.station(*key, *port, false),
            Step::Station(_, [None, None]) => Ok(()),
            Step::Device(device, pair) => {
                let nothing = Wanted::default();
                let [was, now] = &**pair;
                if let Device::Vlan(vid) = device {
                    match (was, now) {
                        (_, None) => return kernel.device(*vid, false),
                        (None, Some(_)) => kernel.device(*vid, true)?,
                        _ => {}
                    }
                }
                let of = |w: &Option<Wanted>| w.clone().unwrap_or_else(|| nothing.clone());
                kernel.change(*device, &of(was), &of(now))
            }
            Step::Routing([_, on]) => kernel.forward(*on),
            Step::Route((to, distance), [_, via]) => kernel.route(*to, *distance, via),
            Step::Protocols([_, now]) => kernel.protocols(now),
            Step::Tree(p) => kernel.tree(&p[1]),
        }
    }
}
