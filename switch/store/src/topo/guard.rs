//! A bridge goes down or comes up: several ports of it go into service or out, with a write each.
//!
//! ```text
//!   two ports or more ─► all of the bridge trap ─► answered ─► their states ─► answered ─► they trap no more
//! ```
//!
//! Between two of these writes a frame would be flooded to a part of the ports, which is neither as before nor as after. What
//! spanning tree does to ports of a bridge that is up is not held up: there one port does not wait for another.

use super::ports::BRIDGED;
use crate::Store;
use crate::hw::bodies::{Member, Port};
use crate::hw::table::Sent;
use crate::model::{BR_STATE_DISABLED, BR_STATE_FORWARDING, Link};
use crate::sync::Phase;
use crate::topo::LinkRec;
use std::collections::{BTreeMap, BTreeSet};
use tandem_abi::raw::*;

/// How far a bridge is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Its ports are to trap, and are else what they were.
    Trap,
    /// They are to be what they shall be, and trap.
    Change,
}

impl Store {
    /// Of these ports, which are to be looked at, several of one bridge go into service or out: all of it are looked at.
    pub(super) fn guard_bridges(&mut self, ports: &mut BTreeSet<u16>) {
        let mut changed: BTreeMap<u32, u32> = BTreeMap::new();
        for port in ports.iter().filter(|p| !self.topo.leaving.contains(p)) {
            let Some(l) = self.link_of_port(*port) else {
                continue;
            };
            let (Some(now), Some((_, was))) = (&l.bridge_port, self.was_bridged(*port)) else {
                continue;
            };
            let both = [now.state, was];
            if both.contains(&BR_STATE_DISABLED) && both.contains(&BR_STATE_FORWARDING) {
                *changed.entry(l.master).or_default() += 1;
            }
        }
        let turned = std::mem::take(&mut self.topo.turned);
        for (bridge, n) in changed {
            let is_down = |r: &LinkRec| !r.link.admin_up;
            let turns = turned.contains(&bridge) || self.links.get(&bridge).is_some_and(is_down);
            // what goes on between others is not interrupted: a carrier that is lost is no flood to a part
            if n > 1
                && !self.topo.guards.contains_key(&bridge)
                && (turns || !self.one_stays(bridge))
            {
                self.topo.guards.insert(bridge, Guard::Trap);
            }
        }
        for bridge in self.topo.guards.keys() {
            ports.extend(self.ports_in(*bridge));
        }
    }

    /// What a port was to its bridge: flags, and spanning tree's state. What nobody has said yet is as an earlier core has left it.
    fn was_bridged(&self, port: u16) -> Option<(u32, u8)> {
        let was = self.hw.ports.get(u32::from(port) - 1);
        let was = was.and_then(|o| o.want.as_ref());
        let swept = self.warm && self.phase != Phase::Normal;
        let left = || self.hw.ids.left_bridged(port).filter(|_| swept);
        was.map(|was| (was.flags, was.stp)).or_else(left)
    }

    /// A port of this bridge forwards there, and is to go on. Not known of a port of which this core has said nothing: behind a restart all
    /// ports of a guarded bridge trap.
    fn one_stays(&self, bridge: u32) -> bool {
        let of_it = |m: &Member| {
            let domain = self.topo.domain_of.get(&m.vlan);
            domain.is_some_and(|d| d.dev == bridge)
        };
        self.ports_in(bridge).iter().any(|port| {
            let mut all = self.member_ids.range((*port, 0)..=(*port, u16::MAX));
            let is_there = all.any(|(_, id)| {
                let o = self.hw.members.get(*id);
                o.and_then(|o| o.have.as_ref()).is_some_and(of_it)
            });
            if !is_there || self.topo.leaving.contains(port) {
                return false;
            }
            let open = |state| state == BR_STATE_FORWARDING;
            let now = self.link_of_port(*port).and_then(|l| l.bridge_port);
            let was = self.hw.ports.get(u32::from(*port) - 1);
            let was = was.and_then(|o| o.want.as_ref());
            now.is_some_and(|p| open(p.state)) && was.is_some_and(|w| open(w.stp))
        })
    }

    fn ports_in(&self, bridge: u32) -> Vec<u16> {
        let all = self.devices_in(bridge);
        let ports = all.filter_map(|l| self.topo.port_of.get(&l.ifindex));
        ports.copied().collect()
    }

    /// What a port of a guarded bridge is meanwhile.
    pub(super) fn guarded(&self, port: u16, l: &Link, body: &mut Port) {
        let guard = l.bridge_port.and_then(|_| self.topo.guards.get(&l.master));
        if let (Some(Guard::Trap), Some((flags, stp))) = (guard, self.was_bridged(port)) {
            body.flags = body.flags & !BRIDGED | flags & BRIDGED;
            body.stp = stp;
        }
        if guard.is_some() && body.flags & TND_PORT_UP != 0 {
            body.flags |= TND_PORT_TRAP_ALL;
        }
    }

    /// Where all ports of a bridge are what they were to be, the next step is due.
    pub(crate) fn step_guards(&mut self) {
        let stands = |s: &Store, port: &u16| {
            // what the step before means for it is not looked at yet
            if s.topo.dirty.ports.contains(port) {
                return false;
            }
            let o = s.hw.ports.get(u32::from(*port) - 1);
            o.is_none_or(|o| {
                o.fail.is_some() || matches!(o.sent, Sent::Nothing) && o.have == o.want
            })
        };
        for (bridge, guard) in self.topo.guards.clone() {
            let ports = self.ports_in(bridge);
            if !ports.iter().all(|p| stands(self, p)) {
                continue;
            }
            match guard {
                Guard::Trap => _ = self.topo.guards.insert(bridge, Guard::Change),
                Guard::Change => _ = self.topo.guards.remove(&bridge),
            }
            self.topo.dirty.ports.extend(ports);
        }
    }
}
