//! Virtual routers, router interfaces, next hops, groups, traps.

use tandem_abi::raw;

use super::{MAX_VID, Nexthop, NexthopConfig, RifConfig, RifPlace, SetError, State};
use crate::entry::{MAX_RIF, RouteTarget};
use crate::group::{Group, GroupConfig};
use crate::trap::TrapConfig;

impl State {
    // ---- virtual routers and router interfaces

    /// Is the VRF there? 0 always is.
    pub fn has_vrf(&self, vrf: u16) -> bool {
        self.vrfs.binary_search(&vrf).is_ok()
    }

    /// Creates a VRF. False: it was there.
    pub fn add_vrf(&mut self, vrf: u16) -> bool {
        match self.vrfs.binary_search(&vrf) {
            Ok(_) => false,
            Err(at) => {
                self.vrfs.insert(at, vrf);
                true
            }
        }
    }

    /// Removes a VRF other than 0. False: it was not there.
    pub fn remove_vrf(&mut self, vrf: u16) -> bool {
        match self.vrfs.binary_search(&vrf) {
            Ok(at) if vrf != 0 => {
                self.vrfs.remove(at);
                true
            }
            _ => false,
        }
    }

    /// All VRFs, ascending.
    pub fn vrfs(&self) -> &[u16] {
        &self.vrfs
    }

    /// One router interface.
    #[inline]
    pub fn rif(&self, rif: u16) -> Option<&RifConfig> {
        self.rifs.get(usize::from(rif))?.as_ref()
    }

    /// The router interface of a place.
    pub fn rif_at(&self, place: RifPlace) -> Option<u16> {
        match place {
            RifPlace::Port(port) => self.port(port)?.rif,
            RifPlace::Fid(fid) => self.vlan(fid)?.rif,
            RifPlace::PortVlan(port, vid) => self.port(port)?.vid_rif(vid),
        }
    }

    fn set_rif_at(&mut self, place: RifPlace, rif: Option<u16>) {
        match place {
            RifPlace::Port(port) => {
                if let Ok(p) = self.port_mut(port) {
                    p.rif = rif;
                }
            }
            RifPlace::Fid(fid) => {
                if let Some(Some(v)) = self.vlans.get_mut(usize::from(fid)) {
                    v.rif = rif;
                }
            }
            RifPlace::PortVlan(port, vid) => {
                if let Ok(p) = self.port_mut(port) {
                    p.set_vid_rif(vid, rif);
                }
            }
        }
    }

    /// Creates or updates a router interface; it may move.
    pub fn set_rif(&mut self, rif: u16, config: RifConfig) -> Result<(), SetError> {
        if rif > MAX_RIF {
            return Err(SetError::BadRif(rif));
        }
        if !self.has_vrf(config.vrf) {
            return Err(SetError::NoVrf(config.vrf));
        }
        match config.place {
            RifPlace::Port(port) | RifPlace::PortVlan(port, _) if self.port(port).is_none() => {
                return Err(SetError::NoPort(port));
            }
            RifPlace::PortVlan(_, vid) if !(1..=MAX_VID).contains(&vid) => {
                return Err(SetError::BadVid(vid));
            }
            RifPlace::Fid(fid) if self.vlan(fid).is_none() => return Err(SetError::NoVlan(fid)),
            _ => {}
        }
        match self.rif_at(config.place) {
            Some(other) if other != rif => return Err(SetError::RifTaken(other)),
            _ => {}
        }
        if let Some(old) = self.rif(rif).copied() {
            self.set_rif_at(old.place, None);
        }
        if self.rifs.len() <= usize::from(rif) {
            self.rifs.resize(usize::from(rif) + 1, None);
        }
        if let Some(slot) = self.rifs.get_mut(usize::from(rif)) {
            *slot = Some(config);
        }
        self.set_rif_at(config.place, Some(rif));
        Ok(())
    }

    /// Removes a router interface. False: it was not there.
    pub fn remove_rif(&mut self, rif: u16) -> bool {
        let Some(old) = self.rif(rif).copied() else {
            return false;
        };
        self.set_rif_at(old.place, None);
        if let Some(slot) = self.rifs.get_mut(usize::from(rif)) {
            *slot = None;
        }
        true
    }

    /// All router interfaces, ascending.
    pub fn rifs(&self) -> impl Iterator<Item = (u16, &RifConfig)> {
        self.rifs
            .iter()
            .enumerate()
            .filter_map(|(id, r)| r.as_ref().map(|r| (id as u16, r)))
    }

    /// Where the numbers of router interfaces end.
    pub fn rif_slots(&self) -> u32 {
        self.rifs.len() as u32
    }

    // ---- next hops and groups

    /// Creates or updates a next hop; gives its slot, which stays until it is removed.
    pub fn set_nexthop(&mut self, id: u32, config: NexthopConfig) -> Result<u32, SetError> {
        if config.rif > MAX_RIF {
            return Err(SetError::BadRif(config.rif));
        }
        let active = self.nexthops.get(id).is_some_and(|n| n.active);
        Ok(self.nexthops.put(id, Nexthop { id, config, active }))
    }

    /// Removes a next hop (nothing may refer to it any more). False: it was not there.
    pub fn remove_nexthop(&mut self, id: u32) -> bool {
        self.nexthops.remove(id).is_some()
    }

    /// One next hop by the driver's id.
    pub fn nexthop(&self, id: u32) -> Option<&NexthopConfig> {
        self.nexthops.get(id).map(|n| &n.config)
    }

    /// Its slot, for [`RouteTarget::Nexthop`].
    pub fn nexthop_slot(&self, id: u32) -> Option<u32> {
        self.nexthops.slot(id)
    }

    /// The next hop in a slot.
    #[inline]
    pub fn nexthop_at(&self, slot: u32) -> Option<&Nexthop> {
        self.nexthops.at(slot)
    }

    #[inline]
    pub(crate) fn nexthop_at_mut(&mut self, slot: u32) -> Option<&mut Nexthop> {
        self.nexthops.at_mut(slot)
    }

    /// All next hops in the order of slots.
    pub fn nexthops(&self) -> impl Iterator<Item = (u32, &Nexthop)> {
        self.nexthops_from(0)
    }

    /// The same from one slot on.
    pub fn nexthops_from(&self, slot: u32) -> impl Iterator<Item = (u32, &Nexthop)> {
        self.nexthops.from(slot)
    }

    /// Slots of next hops, used or free: where [`Self::nexthops_from`] ends.
    pub fn nexthop_slots(&self) -> u32 {
        self.nexthops.slots()
    }

    /// The same of groups.
    pub fn nhg_slots(&self) -> u32 {
        self.nhgs.slots()
    }

    /// Number of next hops.
    pub fn nexthop_count(&self) -> usize {
        self.nexthops.len()
    }

    /// Was the next hop used since the last call?
    pub fn take_nexthop_active(&mut self, id: u32) -> bool {
        self.nexthops
            .slot(id)
            .and_then(|slot| self.nexthops.at_mut(slot))
            .is_some_and(|n| std::mem::take(&mut n.active))
    }

    /// Creates or swaps a group in one step; gives its slot, which stays until it is removed.
    pub fn set_nhg(&mut self, id: u32, config: &GroupConfig) -> Result<u32, SetError> {
        let mut slots = Vec::with_capacity(config.members.len());
        for (nexthop, _) in &config.members {
            slots.push(
                self.nexthop_slot(*nexthop)
                    .ok_or(SetError::NoNexthop(*nexthop))?,
            );
        }
        let mut group = Group::new(id, config, &slots).ok_or(SetError::BadGroup)?;
        if let Some(old) = self.nhgs.get(id) {
            group.take_counts(old);
        }
        Ok(self.nhgs.put(id, group))
    }

    /// Removes a group (no route may refer to it any more). False: it was not there.
    pub fn remove_nhg(&mut self, id: u32) -> bool {
        self.nhgs.remove(id).is_some()
    }

    /// One group by the driver's id.
    pub fn nhg(&self, id: u32) -> Option<&Group> {
        self.nhgs.get(id)
    }

    /// Its slot, for [`RouteTarget::Group`].
    pub fn nhg_slot(&self, id: u32) -> Option<u32> {
        self.nhgs.slot(id)
    }

    /// The group in a slot.
    #[inline]
    pub fn nhg_at(&self, slot: u32) -> Option<&Group> {
        self.nhgs.at(slot)
    }

    #[inline]
    pub(crate) fn nhg_at_mut(&mut self, slot: u32) -> Option<&mut Group> {
        self.nhgs.at_mut(slot)
    }

    /// All groups in the order of slots.
    pub fn nhgs(&self) -> impl Iterator<Item = (u32, &Group)> {
        self.nhgs_from(0)
    }

    /// The same from one slot on.
    pub fn nhgs_from(&self, slot: u32) -> impl Iterator<Item = (u32, &Group)> {
        self.nhgs.from(slot)
    }

    /// Number of groups.
    pub fn nhg_count(&self) -> usize {
        self.nhgs.len()
    }

    /// `TND_RT_*` and id to a route's value. None: unknown kind or absent object.
    pub fn route_target(&self, kind: u8, id: u32) -> Option<RouteTarget> {
        match kind {
            raw::TND_RT_NEXTHOP => self.nexthop_slot(id).map(RouteTarget::Nexthop),
            raw::TND_RT_NHG => self.nhg_slot(id).map(RouteTarget::Group),
            _ => None,
        }
    }

    /// The `TND_RT_*` kind and id behind a route's value; (`TND_RT_NONE`, 0) for trap and drop.
    pub fn target_id(&self, target: RouteTarget) -> (u8, u32) {
        match target {
            RouteTarget::Nexthop(slot) => (
                raw::TND_RT_NEXTHOP,
                self.nexthop_at(slot).map_or(0, |n| n.id),
            ),
            RouteTarget::Group(slot) => (raw::TND_RT_NHG, self.nhg_at(slot).map_or(0, Group::id)),
            RouteTarget::Trap(_) | RouteTarget::Drop => (raw::TND_RT_NONE, 0),
        }
    }

    // ---- traps

    /// A reason's class and policer.
    pub fn trap(&self, reason: u16) -> Option<TrapConfig> {
        if reason == 0 {
            return None;
        }
        self.police.config(reason)
    }

    /// UPDATE of a reason; its bucket starts full.
    pub fn set_trap(&mut self, reason: u16, config: TrapConfig) -> Result<(), SetError> {
        if config.class >= raw::TND_TC_COUNT {
            return Err(SetError::NoClass(config.class));
        }
        if reason != 0 && self.police.configure(reason, config) {
            Ok(())
        } else {
            Err(SetError::NoReason(reason))
        }
    }
}
