//! Router interfaces: who has one, where, and what of what comes in there is the kernel's.

use crate::Store;
use crate::api::Domain;
use crate::fib::V4;
use crate::hw::bodies::{Rif, RifPlace};
use crate::hw::table::Sent;
use crate::model::{BR_STATE_FORWARDING, ConfScope, Family, LinkKind, Rule};
use crate::reason::Reason;
use crate::slices::Each;
use tandem_abi::raw::*;

/// What an interface is to the chip.
struct Seat {
    place: RifPlace,
    vrf: u8,
    /// The router interface, why what comes in there traps, and why packets of IPv4 and of IPv6 don't get to the routes.
    /// None: nothing needs one yet.
    rif: Option<(Rif, Option<Reason>, [Option<Reason>; 2])>,
}

impl Store {
    /// The next interface that is to be looked at; then what that has found, first what goes.
    pub(crate) fn step_rifs(&mut self, now: u64) -> bool {
        let t = &mut self.topo;
        if let Some(i) = t.dirty.rifs.pop_first() {
            // it takes as long as two others
            self.slices.left_over(1);
            self.look_at_rif(i, now);
        } else if let Some((i, r)) = t.rifs_gone.pop_first() {
            self.rif_gone(i, r, now);
        } else if let Some((i, body)) = t.rifs_wanted.pop_first() {
            self.want_rif(i, body, now);
        } else {
            return false;
        }
        true
    }

    fn look_at_rif(&mut self, i: u32, now: u64) {
        self.slices.look();
        let mut seat = self.seat(i);
        self.topo.rif_moving.remove(&i);
        if let Some(s) = &seat
            && self.held_by_other(s)
        {
            self.topo.rif_moving.insert(i);
            seat = None;
        }
        let place = seat.as_ref().map(|s| s.place);
        let before = match place {
            Some(place) => self.topo.routable.insert(i, place),
            None => self.topo.routable.remove(&i),
        };
        if before != place && !self.topo.everything {
            self.touch_paths_on(i);
        }
        for of_table in self.topo.ingress.values_mut() {
            of_table.remove(&i);
        }
        self.topo.ingress.retain(|_, of_table| !of_table.is_empty());
        self.ingress_reasons.remove(&i);
        self.topo.rifs_gone.remove(&i);
        self.topo.rifs_wanted.remove(&i);
        let rif = seat.and_then(|s| s.rif);
        let loose = (rif.as_ref()).is_some_and(|(body, ..)| body.flags & TND_RIF_RPF_LOOSE != 0);
        let was_none = self.topo.loose.is_empty();
        match loose {
            true => self.topo.loose.insert(i),
            false => self.topo.loose.remove(&i),
        };
        if was_none != self.topo.loose.is_empty() {
            // Broadcast addresses below their connected prefix: needed now, or no longer, as far as interfaces were looked at. They are
            // written when all have been.
            self.for_below(V4::default(), 0, Each::Own, now);
        }
        let t = &mut self.topo;
        let Some((body, reason, gap)) = rif else {
            t.rifs_gone.extend(t.rif_of.get(&i).map(|r| (i, *r)));
            return;
        };
        t.ingress.entry(body.vrf).or_default().insert(i, gap);
        t.rifs_wanted.insert(i, body);
        if let Some(reason) = reason {
            self.ingress_reasons.insert(i, reason);
        }
    }

    fn want_rif(&mut self, i: u32, body: Rif, now: u64) {
        let want = |s: &Store, r: u32| {
            s.hw.rifs
                .get(r)
                .and_then(|o| o.want.as_ref().map(|w| (w.place, w.vrf)))
        };
        // Another place is another object: a RIF doesn't move.
        if let Some(&r) = self.topo.rif_of.get(&i)
            && want(self, r).is_some_and(|w| w.0 != body.place)
        {
            self.rif_gone(i, r, now);
        }
        let r = match self.topo.rif_of.get(&i) {
            Some(r) => *r,
            None => {
                let r = self.hw.rifs.take();
                self.topo.rif_of.insert(i, r);
                self.topo.if_of_rif.insert(r, i);
                self.topo.at_place.insert((body.place, r));
                self.topo.place_of.insert(r, body.place);
                self.topo.dirty.neighbours.insert(i);
                r
            }
        };
        if want(self, r).is_some_and(|w| w.1 != body.vrf) {
            self.topo.dirty.neighbours.insert(i);
        }
        self.hw.want(r, Some(body), now);
    }

    fn rif_gone(&mut self, i: u32, rif: u32, now: u64) {
        self.topo.rif_of.remove(&i);
        self.topo.if_of_rif.remove(&rif);
        self.topo.dirty.neighbours.insert(i);
        self.hw.want::<Rif>(rif, None, now);
    }

    /// A place has one router interface on the chip: that of another VRF goes, with all that refers to it, first.
    fn held_by_other(&self, s: &Seat) -> bool {
        if self.vrfs.slots.is_empty() {
            return false;
        }
        self.rifs_at(s.place).any(|id| {
            let Some(o) = self.hw.rifs.get(id) else {
                return false;
            };
            let on_way = match &o.sent {
                Sent::Put(b) => Some(b),
                _ => None,
            };
            // what it has is what counts, where it has something
            let held = o.have.as_ref().or(on_way);
            held.is_some_and(|b| b.vrf != s.vrf)
        })
    }

    /// Table ids of router interfaces at a place.
    pub(crate) fn rifs_at(&self, place: RifPlace) -> impl Iterator<Item = u32> {
        let all = self.topo.at_place.range((place, 0)..=(place, u32::MAX));
        all.map(|x| x.1)
    }

    /// Its place is free: who waits for it looks again.
    pub(crate) fn rif_released(&mut self, id: u32) {
        let t = &mut self.topo;
        if let Some(place) = t.place_of.remove(&id) {
            t.at_place.remove(&(place, id));
        }
        t.dirty.rifs.extend(&t.rif_moving);
    }

    /// What an interface is to the chip, if it can be a router interface.
    fn seat(&self, i: u32) -> Option<Seat> {
        let l = &self.links.get(&i)?.link;
        let vrf = self.vrf_master(l)?;
        if self.topo.reasons.contains_key(&i) {
            return None;
        }
        let place = match l.kind {
            LinkKind::Swp { port } if port >= 1 && port <= self.config.ports => {
                RifPlace::Port(port)
            }
            LinkKind::Bond(_) => RifPlace::Port(*self.topo.port_of.get(&i)?),
            LinkKind::Bridge(info) => {
                let vlan = if info.vlan_filtering {
                    self.vlans_of(i).find(|v| v.pvid && v.untagged)?.vid
                } else {
                    0
                };
                let f = self.topo.fid_of.get(&Domain { dev: i, vlan })?;
                let there = self.topo.bridges.contains_key(&i) && !self.topo.hidden.contains(&i);
                there.then_some(RifPlace::Vlan(*f))?
            }
            LinkKind::Vlan { .. } | LinkKind::Other(_) => {
                let (lower, vid) = self.vlan_of(l)?;
                let there = !self.topo.hidden.contains(&lower);
                there.then(|| self.vlan_place(l, lower, vid).ok())??
            }
            _ => return None,
        };
        let mut seat = Seat {
            place,
            vrf,
            rif: None,
        };
        if !self.has_address(i, |_| true) && !self.paths.on_interface.contains_key(&i) {
            return Some(seat);
        }
        let (mut flags, mut reason) = self.rif_flags(i);
        // Its port may be up and bring packets that nobody takes. A bridge that is down takes what a port brings that was put into service
        // by hand; where none is, it opens behind what was to do for routes when it comes up.
        let is_shut = match l.kind {
            LinkKind::Vlan { .. } | LinkKind::Other(_) => true,
            LinkKind::Bridge(_) => {
                let mut ports = self.devices_in(i).filter_map(|l| l.bridge_port);
                !ports.any(|p| p.state == BR_STATE_FORWARDING)
            }
            _ => false,
        };
        if is_shut && !l.admin_up {
            flags |= TND_RIF_TRAP_ALL;
            reason = Some(Reason::Down);
        }
        let of = |family| self.ingress_gap(i, family, flags, reason.as_ref());
        let gap = [of(Family::V4), of(Family::V6)];
        let body = Rif {
            vrf,
            place,
            mac: l.mac,
            flags,
            mtu: l.mtu,
            lag: match place {
                RifPlace::Port(p) | RifPlace::PortVlan(p, _) => self.lag_of_port(p),
                RifPlace::Vlan(_) => None,
            },
        };
        seat.rif = Some((body, reason, gap));
        Some(seat)
    }

    /// A policy rule beyond the kernel's own that looks at what comes in here.
    fn rule_at(&self, family: Family, ifindex: u32) -> Option<&Rule> {
        let name = self.dev(ifindex);
        let vrf = self.vrf_name(self.slot_of(ifindex));
        self.rules.iter().map(|r| &r.0).find(|r| {
            r.family == family
                && !r.is_default
                && !r.l3mdev
                && (r.iif.is_empty() || r.iif == name || r.iif == vrf)
        })
    }

    /// Flags of a router interface, and why what comes in there traps.
    fn rif_flags(&self, ifindex: u32) -> (u32, Option<Reason>) {
        let own4 = self.conf(Family::V4, ConfScope::Interface(ifindex));
        let all4 = self.conf(Family::V4, ConfScope::All);
        // IPv6 forwarding is decided by conf/all alone (ip6_forward), but an interface with disable_ipv6 or without any
        // IPv6 settings (its MTU is below 1280) takes no IPv6 packet at all.
        let has6 = self
            .netconf
            .contains_key(&(Family::V6, ConfScope::Interface(ifindex)));
        let own6 = self.conf(Family::V6, ConfScope::Interface(ifindex));
        let all6 = self.conf(Family::V6, ConfScope::All);
        let mut flags = 0;
        let mut reason = None;
        if own4.forwarding == Some(true) {
            flags |= TND_RIF_V4;
        }
        if all6.forwarding == Some(true) && has6 && own6.disabled != Some(true) {
            flags |= TND_RIF_V6;
        }
        match own4.rp_filter.unwrap_or(0).max(all4.rp_filter.unwrap_or(0)) {
            0 => {}
            1 => {
                flags |= TND_RIF_TRAP_ALL;
                reason = Some(Reason::StrictReversePath);
            }
            // Without an IPv4 address the kernel takes only sources whose route leads back there.
            _ if !self.has_address(ifindex, |a| a.addr.is_ipv4()) => {
                flags &= !TND_RIF_V4;
                reason = Some(Reason::LooseWithoutAddress);
            }
            _ => flags |= TND_RIF_RPF_LOOSE,
        }
        if own4.send_redirects == Some(false) && all4.send_redirects == Some(false) {
            flags |= TND_RIF_NO_REDIRECT;
        }
        for (family, flag) in [(Family::V4, TND_RIF_V4), (Family::V6, TND_RIF_V6)] {
            if let Some(r) = self.rule_at(family, ifindex) {
                flags &= !flag;
                reason = Some(Reason::PolicyRule(r.text.clone()));
            }
        }
        let slot = self.slot_of(ifindex);
        if self.lacks_own(slot) {
            flags &= !TND_RIF_V4;
            reason = Some(Reason::OwnPrefix);
        }
        let of_all = self.topo.router_reason.clone();
        if let Some(why) = of_all.or_else(|| self.vrf_reason(slot)) {
            flags |= TND_RIF_TRAP_ALL;
            reason = Some(why);
        }
        (flags, reason)
    }
}
