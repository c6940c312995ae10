//! What the pipeline reads: ports, forwarding domains, router interfaces, next hops, and the lookup tables.
//!
//! ```text
//!   (port, vid) ─► fid ─► Vlan { members, rif }          exact: (fid, mac)  ─► FdbValue   ─► port
//!   port ──────────────► rif ─► Rif { vrf, mac, mtu }           (vrf, host) ─► HostValue  ─► rif, mac
//!                                                        lpm:   (vrf, prefix) ─► RouteTarget ─► next hop or group slot
//! ```
//!
//! The firmware is the only writer of objects; the pipeline itself writes learned FDB entries, activity, policers and
//! counters. Setters keep the indexes right and refuse what would break them, but know nothing of accounting or of
//! references between objects: that is the firmware's work. Everything the packet path needs is found by array index.

use std::collections::HashMap;

use tandem_abi::raw;
use tandem_packet::Mac;
use tandem_tables::exact::ExactMatch;
use tandem_tables::lpm::{Lpm4, Lpm6};

use crate::counters::Counters;
use crate::entry::{Action, MAX_RIF, RouteTarget};
use crate::group::Group;
pub use crate::group::{GroupConfig, HashPolicy};
use crate::trap::{REASONS, Trap, TrapConfig};

/// FIDs are 1..=4095.
pub const MAX_FID: u16 = 4095;
/// VIDs are 1..=4094 (802.1Q clause 9.6), and [`raw::TND_VID_ANY`].
pub const MAX_VID: u16 = 4094;

/// Why a setter refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// Port number out of range.
    #[error("port {0} does not exist")]
    NoPort(u16),
    /// Forwarding domain absent or number out of range.
    #[error("forwarding domain {0} does not exist")]
    NoVlan(u16),
    /// VLAN id out of range.
    #[error("VLAN id {0} is not 1..4094 or ANY")]
    BadVid(u16),
    /// VRF absent.
    #[error("VRF {0} does not exist")]
    NoVrf(u16),
    /// RIF id out of range.
    #[error("RIF id {0} is above {MAX_RIF}")]
    BadRif(u16),
    /// The port or domain has another RIF.
    #[error("port or forwarding domain already has RIF {0}")]
    RifTaken(u16),
    /// Next hop absent.
    #[error("next hop {0} does not exist")]
    NoNexthop(u32),
    /// Group without members, with too many, or with a weight out of range.
    #[error("next-hop group needs 1 to {max} members of weight 1 to 256", max = raw::TND_NHG_MAX_MEMBERS)]
    BadGroup,
    /// Trap reason out of range.
    #[error("trap reason {0} does not exist")]
    NoReason(u16),
    /// Trap class out of range.
    #[error("trap class {0} does not exist")]
    NoClass(u16),
    /// Kind of RIF that this chip has not.
    #[error("RIF kind {0} is not supported")]
    RifKind(u16),
}

/// `struct tnd_port` without its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortConfig {
    /// `TND_PORT_*`.
    pub flags: u32,
    /// Bytes of L3 packet.
    pub mtu: u32,
    /// `TND_STP_*`.
    pub stp_state: u8,
    /// The netdev's address.
    pub mac: Mac,
}

impl Default for PortConfig {
    /// A port nobody configured yet: down.
    fn default() -> Self {
        PortConfig {
            flags: raw::TND_PORT_LEARNING
                | raw::TND_PORT_FLOOD_UC
                | raw::TND_PORT_FLOOD_MC
                | raw::TND_PORT_FLOOD_BC,
            mtu: 1500,
            stp_state: raw::TND_STP_FORWARDING,
            mac: [0; 6],
        }
    }
}

/// What frames without a (known) tag belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Untagged {
    /// Nothing: no member at all (perhaps a RIF), or no PVID.
    #[default]
    None,
    /// VLAN-unaware: this domain, tags left alone.
    Any(u16),
    /// PVID's domain.
    Pvid(u16),
}

/// A port.
#[derive(Debug, Clone)]
pub struct Port {
    /// As configured.
    pub config: PortConfig,
    /// Carrier.
    pub link: bool,
    pub(crate) untagged: Untagged,
    /// Domain by VID, 0 = not a member; only on VLAN-aware ports.
    pub(crate) vids: Option<Box<[u16]>>,
    pub(crate) rif: Option<u16>,
}

impl Port {
    #[inline]
    pub(crate) fn has(&self, flag: u32) -> bool {
        self.config.flags & flag != 0
    }

    /// Takes and sends frames: administratively up, with carrier.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.link && self.has(raw::TND_PORT_UP)
    }
}

/// `struct tnd_vlan` without its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VlanConfig {
    /// `TND_VLAN_*`.
    pub flags: u32,
    /// Ageing time in seconds, 0 = never.
    pub ageing_s: u32,
}

/// How a port takes part in a forwarding domain, packed for the egress path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EgressTag {
    /// Leave the frame alone.
    AsIs,
    /// Without tag.
    Untagged,
    /// With this VID.
    Vid(u16),
}

/// A forwarding domain.
#[derive(Debug, Clone)]
pub struct Vlan {
    /// As configured.
    pub config: VlanConfig,
    /// Members sorted by port; at most one line per port.
    pub(crate) members: Vec<(u16, EgressTag)>,
    /// By port number.
    pub(crate) egress: Box<[Option<EgressTag>]>,
    pub(crate) rif: Option<u16>,
}

impl Vlan {
    #[inline]
    pub(crate) fn has(&self, flag: u32) -> bool {
        self.config.flags & flag != 0
    }

    /// Ports in it, ascending.
    pub fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.members.iter().map(|m| m.0)
    }
}

/// `struct tnd_vlan_member` without its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberConfig {
    /// Forwarding domain.
    pub fid: u16,
    /// `TND_MEMBER_*`.
    pub flags: u32,
}

/// Where a RIF is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RifPlace {
    /// Untagged frames of a port.
    Port(u16),
    /// A forwarding domain.
    Fid(u16),
}

/// `struct tnd_rif` without its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RifConfig {
    /// Virtual router.
    pub vrf: u16,
    /// Port or domain.
    pub place: RifPlace,
    /// Router MAC.
    pub mac: Mac,
    /// `TND_RIF_*`.
    pub flags: u32,
    /// Bytes of L3 packet.
    pub mtu: u32,
}

impl RifConfig {
    #[inline]
    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

/// `struct tnd_nexthop` without its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NexthopConfig {
    /// Egress router interface.
    pub rif: u16,
    /// What to do.
    pub action: Action,
    /// With trap: `TND_TRAP_*`.
    pub reason: u8,
    /// The neighbour's address.
    pub mac: Mac,
}

/// A next hop in its slot.
#[derive(Debug, Clone)]
pub struct Nexthop {
    /// The driver's key.
    pub id: u32,
    /// As configured.
    pub config: NexthopConfig,
    /// Used since [`State::take_nexthop_active`].
    pub(crate) active: bool,
}

/// Objects in dense slots, named by the driver's own ids.
#[derive(Debug, Clone)]
struct Slots<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
    by_id: HashMap<u32, u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots {
            entries: Vec::new(),
            free: Vec::new(),
            by_id: HashMap::new(),
        }
    }
}

impl<T> Slots<T> {
    #[inline]
    fn at(&self, slot: u32) -> Option<&T> {
        self.entries.get(slot as usize)?.as_ref()
    }
    #[inline]
    fn at_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.entries.get_mut(slot as usize)?.as_mut()
    }
    fn slot(&self, id: u32) -> Option<u32> {
        self.by_id.get(&id).copied()
    }
    fn get(&self, id: u32) -> Option<&T> {
        self.at(self.slot(id)?)
    }
    /// Puts a new object into a free slot, or replaces the one with this id.
    fn put(&mut self, id: u32, value: T) -> u32 {
        let slot = match self.slot(id) {
            Some(slot) => slot,
            None => {
                let slot = self.free.pop().unwrap_or_else(|| {
                    self.entries.push(None);
                    self.entries.len() as u32 - 1
                });
                self.by_id.insert(id, slot);
                slot
            }
        };
        if let Some(e) = self.entries.get_mut(slot as usize) {
            *e = Some(value);
        }
        slot
    }
    fn remove(&mut self, id: u32) -> Option<T> {
        let slot = self.by_id.remove(&id)?;
        self.free.push(slot);
        self.entries.get_mut(slot as usize)?.take()
    }
    fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.entries
            .iter()
            .enumerate()
            .filter_map(|(slot, e)| e.as_ref().map(|e| (slot as u32, e)))
    }
    fn len(&self) -> usize {
        self.by_id.len()
    }
}

/// Everything the pipeline reads. See the module.
#[derive(Debug, Clone)]
pub struct State {
    ports: Vec<Port>,
    pub(crate) vlans: Vec<Option<Box<Vlan>>>,
    member_count: usize,
    vrfs: Vec<u16>,
    rifs: Vec<Option<RifConfig>>,
    nexthops: Slots<Nexthop>,
    nhgs: Slots<Group>,
    traps: [Trap; REASONS],
    /// MAC addresses ([`crate::entry::FdbValue`]) and hosts ([`crate::entry::HostValue`]).
    pub exact: ExactMatch,
    /// IPv4 prefixes ([`RouteTarget`]).
    pub lpm4: Lpm4,
    /// IPv6 prefixes ([`RouteTarget`]).
    pub lpm6: Lpm6,
    /// What was counted.
    pub counters: Counters,
    pub(crate) age_cursor: u32,
}

impl State {
    /// A chip with ports 1..=`ports`, all down, VRF 0, and empty objects around the given tables.
    pub fn new(ports: u16, exact: ExactMatch, lpm4: Lpm4, lpm6: Lpm6) -> State {
        State {
            ports: vec![
                Port {
                    config: PortConfig::default(),
                    link: false,
                    untagged: Untagged::None,
                    vids: None,
                    rif: None,
                };
                usize::from(ports)
            ],
            vlans: vec![None; usize::from(MAX_FID) + 1],
            member_count: 0,
            vrfs: vec![0],
            rifs: Vec::new(),
            nexthops: Slots::default(),
            nhgs: Slots::default(),
            traps: std::array::from_fn(|r| Trap::new(TrapConfig::default_for(r as u16))),
            exact,
            lpm4,
            lpm6,
            counters: Counters::new(ports),
            age_cursor: 0,
        }
    }

    /// Cold reset: no object is left, ports are as after [`State::new`] but keep their carrier, traps are back at their
    /// defaults (a profile's own are to be set again). Counters stay.
    pub fn clear(&mut self) {
        for p in &mut self.ports {
            *p = Port {
                config: PortConfig::default(),
                link: p.link,
                untagged: Untagged::None,
                vids: None,
                rif: None,
            };
        }
        self.vlans.fill(None);
        self.member_count = 0;
        self.vrfs = vec![0];
        self.rifs.clear();
        self.nexthops = Slots::default();
        self.nhgs = Slots::default();
        self.traps = std::array::from_fn(|r| Trap::new(TrapConfig::default_for(r as u16)));
        self.exact.clear();
        self.lpm4.clear();
        self.lpm6.clear();
        self.age_cursor = 0;
    }

    // ---- ports

    /// Number of ports; they are 1..=this.
    pub fn port_count(&self) -> u16 {
        self.ports.len() as u16
    }

    /// One port, from 1.
    #[inline]
    pub fn port(&self, port: u16) -> Option<&Port> {
        self.ports.get(usize::from(port).wrapping_sub(1))
    }

    fn port_mut(&mut self, port: u16) -> Result<&mut Port, SetError> {
        self.ports
            .get_mut(usize::from(port).wrapping_sub(1))
            .ok_or(SetError::NoPort(port))
    }

    /// UPDATE of a port.
    pub fn set_port(&mut self, port: u16, config: PortConfig) -> Result<(), SetError> {
        self.port_mut(port)?.config = config;
        Ok(())
    }

    /// Carrier came or went.
    pub fn set_link(&mut self, port: u16, up: bool) -> Result<(), SetError> {
        self.port_mut(port)?.link = up;
        Ok(())
    }

    // ---- forwarding domains and members

    /// One forwarding domain.
    #[inline]
    pub fn vlan(&self, fid: u16) -> Option<&Vlan> {
        self.vlans.get(usize::from(fid))?.as_deref()
    }

    #[inline]
    pub(crate) fn vlan_mut(&mut self, fid: u16) -> Option<&mut Vlan> {
        self.vlans.get_mut(usize::from(fid))?.as_deref_mut()
    }

    /// Creates or updates a forwarding domain.
    pub fn set_vlan(&mut self, fid: u16, config: VlanConfig) -> Result<(), SetError> {
        let ports = self.ports.len() + 1;
        if fid == 0 {
            return Err(SetError::NoVlan(fid));
        }
        match self.vlans.get_mut(usize::from(fid)) {
            Some(Some(vlan)) => vlan.config = config,
            Some(empty) => {
                *empty = Some(Box::new(Vlan {
                    config,
                    members: Vec::new(),
                    egress: vec![None; ports].into_boxed_slice(),
                    rif: None,
                }));
            }
            None => return Err(SetError::NoVlan(fid)),
        }
        Ok(())
    }

    /// Removes a forwarding domain with its members (FDB entries and the RIF are the caller's). False: it was not there.
    pub fn remove_vlan(&mut self, fid: u16) -> bool {
        if self.vlan(fid).is_none() {
            return false;
        }
        let of_it: Vec<(u16, u16)> = self
            .members()
            .filter(|(_, _, m)| m.fid == fid)
            .map(|(port, vid, _)| (port, vid))
            .collect();
        for (port, vid) in of_it {
            self.remove_member(port, vid);
        }
        if let Some(v) = self.vlans.get_mut(usize::from(fid)) {
            *v = None;
        }
        true
    }

    /// All forwarding domains.
    pub fn vlans(&self) -> impl Iterator<Item = (u16, &Vlan)> {
        self.vlans
            .iter()
            .enumerate()
            .filter_map(|(fid, v)| v.as_deref().map(|v| (fid as u16, v)))
    }

    /// One member entry; `vid` may be `TND_VID_ANY`.
    pub fn member(&self, port: u16, vid: u16) -> Option<MemberConfig> {
        let p = self.port(port)?;
        if vid == raw::TND_VID_ANY {
            return match p.untagged {
                Untagged::Any(fid) => Some(MemberConfig {
                    fid,
                    flags: raw::TND_MEMBER_PVID | raw::TND_MEMBER_UNTAGGED,
                }),
                _ => None,
            };
        }
        let fid = *p.vids.as_ref()?.get(usize::from(vid))?;
        if fid == 0 {
            return None;
        }
        let mut flags = 0;
        if self.egress_tag(fid, port) == Some(EgressTag::Untagged) {
            flags |= raw::TND_MEMBER_UNTAGGED;
        }
        if p.untagged == Untagged::Pvid(fid) {
            flags |= raw::TND_MEMBER_PVID;
        }
        Some(MemberConfig { fid, flags })
    }

    /// Creates or updates a member entry. A port is either VLAN-unaware (one `TND_VID_ANY` entry, whose flags count for
    /// nothing) or VLAN-aware; whichever is set last wins. One VID per port in a domain.
    pub fn set_member(
        &mut self,
        port: u16,
        vid: u16,
        config: MemberConfig,
    ) -> Result<(), SetError> {
        if self.port(port).is_none() {
            return Err(SetError::NoPort(port));
        }
        if self.vlan(config.fid).is_none() {
            return Err(SetError::NoVlan(config.fid));
        }
        if vid != raw::TND_VID_ANY && !(1..=MAX_VID).contains(&vid) {
            return Err(SetError::BadVid(vid));
        }
        let aware = vid != raw::TND_VID_ANY;
        let stale: Vec<u16> = self
            .members()
            .filter(|(p, v, m)| {
                *p == port
                    && ((*v != raw::TND_VID_ANY) != aware || *v == vid || m.fid == config.fid)
            })
            .map(|(_, v, _)| v)
            .collect();
        for v in stale {
            self.remove_member(port, v);
        }
        let p = self.port_mut(port)?;
        let tag = if aware {
            let vids = p
                .vids
                .get_or_insert_with(|| vec![0; usize::from(MAX_VID) + 1].into_boxed_slice());
            if let Some(slot) = vids.get_mut(usize::from(vid)) {
                *slot = config.fid;
            }
            if config.flags & raw::TND_MEMBER_PVID != 0 {
                p.untagged = Untagged::Pvid(config.fid);
            }
            if config.flags & raw::TND_MEMBER_UNTAGGED != 0 {
                EgressTag::Untagged
            } else {
                EgressTag::Vid(vid)
            }
        } else {
            p.untagged = Untagged::Any(config.fid);
            EgressTag::AsIs
        };
        if let Some(Some(v)) = self.vlans.get_mut(usize::from(config.fid)) {
            v.members.push((port, tag));
            v.members.sort_unstable_by_key(|m| m.0);
            if let Some(e) = v.egress.get_mut(usize::from(port)) {
                *e = Some(tag);
            }
        }
        self.member_count += 1;
        Ok(())
    }

    /// Removes a member entry. False: it was not there.
    pub fn remove_member(&mut self, port: u16, vid: u16) -> bool {
        let Some(member) = self.member(port, vid) else {
            return false;
        };
        if let Ok(p) = self.port_mut(port) {
            if vid == raw::TND_VID_ANY {
                p.untagged = Untagged::None;
            } else {
                if let Some(slot) = p.vids.as_mut().and_then(|v| v.get_mut(usize::from(vid))) {
                    *slot = 0;
                }
                if p.untagged == Untagged::Pvid(member.fid) {
                    p.untagged = Untagged::None;
                }
                if p.vids.as_ref().is_some_and(|v| v.iter().all(|f| *f == 0)) {
                    p.vids = None;
                }
            }
        }
        if let Some(Some(v)) = self.vlans.get_mut(usize::from(member.fid)) {
            v.members.retain(|m| m.0 != port);
            if let Some(e) = v.egress.get_mut(usize::from(port)) {
                *e = None;
            }
        }
        self.member_count -= 1;
        true
    }

    /// All member entries: port, vid, entry; ascending.
    pub fn members(&self) -> impl Iterator<Item = (u16, u16, MemberConfig)> + '_ {
        (1..=self.port_count()).flat_map(move |port| {
            let p = self.port(port);
            let aware = p
                .and_then(|p| p.vids.as_deref())
                .unwrap_or_default()
                .iter()
                .enumerate()
                .filter(|(_, fid)| **fid != 0)
                .filter_map(move |(vid, _)| {
                    self.member(port, vid as u16).map(|m| (port, vid as u16, m))
                });
            let any = self
                .member(port, raw::TND_VID_ANY)
                .map(|m| (port, raw::TND_VID_ANY, m));
            aware.chain(any)
        })
    }

    /// Number of member entries.
    pub fn member_count(&self) -> usize {
        self.member_count
    }

    #[inline]
    pub(crate) fn egress_tag(&self, fid: u16, port: u16) -> Option<EgressTag> {
        self.vlan(fid)?
            .egress
            .get(usize::from(port))
            .copied()
            .flatten()
    }

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

    /// The router interface of a port or of a forwarding domain.
    pub fn rif_at(&self, place: RifPlace) -> Option<u16> {
        match place {
            RifPlace::Port(port) => self.port(port)?.rif,
            RifPlace::Fid(fid) => self.vlan(fid)?.rif,
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
            RifPlace::Port(port) if self.port(port).is_none() => {
                return Err(SetError::NoPort(port));
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
        self.nexthops.iter()
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
        let group = Group::new(id, config, &slots).ok_or(SetError::BadGroup)?;
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

    /// All groups in the order of slots.
    pub fn nhgs(&self) -> impl Iterator<Item = (u32, &Group)> {
        self.nhgs.iter()
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
        self.traps.get(usize::from(reason)).map(Trap::config)
    }

    /// UPDATE of a reason; its bucket starts full.
    pub fn set_trap(&mut self, reason: u16, config: TrapConfig) -> Result<(), SetError> {
        if config.class >= raw::TND_TC_COUNT {
            return Err(SetError::NoClass(config.class));
        }
        match self.traps.get_mut(usize::from(reason)) {
            Some(t) if reason != 0 => {
                *t = Trap::new(config);
                Ok(())
            }
            _ => Err(SetError::NoReason(reason)),
        }
    }

    #[inline]
    pub(crate) fn trap_mut(&mut self, reason: u16) -> Option<&mut Trap> {
        self.traps.get_mut(usize::from(reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::state;

    #[test]
    fn members_are_indexed_both_ways() {
        let mut s = state(4);
        s.set_vlan(10, VlanConfig::default()).unwrap();
        s.set_vlan(20, VlanConfig::default()).unwrap();
        let m = |fid, flags| MemberConfig { fid, flags };
        assert_eq!(s.set_member(9, 1, m(10, 0)), Err(SetError::NoPort(9)));
        assert_eq!(s.set_member(1, 1, m(11, 0)), Err(SetError::NoVlan(11)));
        assert_eq!(s.set_member(1, 0, m(10, 0)), Err(SetError::BadVid(0)));
        let access = raw::TND_MEMBER_PVID | raw::TND_MEMBER_UNTAGGED;
        s.set_member(1, 100, m(10, access)).unwrap();
        s.set_member(1, 200, m(20, 0)).unwrap();
        s.set_member(2, raw::TND_VID_ANY, m(10, 0)).unwrap();
        assert_eq!(s.member(1, 100), Some(m(10, access)));
        assert_eq!(s.member(1, 200), Some(m(20, 0)));
        assert_eq!(s.member_count(), 3);
        assert_eq!(s.vlan(10).unwrap().ports().collect::<Vec<_>>(), [1, 2]);
        // the same again changes nothing
        s.set_member(1, 200, m(20, 0)).unwrap();
        assert_eq!(s.member_count(), 3);
        assert_eq!(s.members().count(), 3);
        // VLAN-unaware replaces the VLANs
        s.set_member(1, raw::TND_VID_ANY, m(20, 0)).unwrap();
        assert_eq!(s.member(1, 100), None);
        assert_eq!(s.vlan(10).unwrap().ports().collect::<Vec<_>>(), [2]);
        assert!(s.remove_vlan(20));
        assert_eq!(s.member(1, raw::TND_VID_ANY), None);
        assert!(!s.remove_vlan(20));
        assert_eq!(s.member_count(), 1);
    }

    #[test]
    fn rifs_know_their_place() {
        let mut s = state(2);
        s.set_vlan(1, VlanConfig::default()).unwrap();
        let c = RifConfig {
            vrf: 0,
            place: RifPlace::Port(1),
            mac: [2; 6],
            flags: 0,
            mtu: 1500,
        };
        s.set_rif(5, c).unwrap();
        assert_eq!(s.rif_at(RifPlace::Port(1)), Some(5));
        assert_eq!(s.set_rif(6, c), Err(SetError::RifTaken(5)));
        assert_eq!(
            s.set_rif(6, RifConfig { vrf: 3, ..c }),
            Err(SetError::NoVrf(3))
        );
        let moved = RifConfig {
            place: RifPlace::Fid(1),
            ..c
        };
        s.set_rif(5, moved).unwrap();
        assert_eq!(s.rif_at(RifPlace::Port(1)), None);
        assert_eq!(s.rif_at(RifPlace::Fid(1)), Some(5));
        assert!(s.remove_rif(5) && !s.remove_rif(5));
        assert_eq!(s.rif_at(RifPlace::Fid(1)), None);
        assert_eq!(
            s.set_rif(MAX_RIF + 1, c),
            Err(SetError::BadRif(MAX_RIF + 1))
        );
    }

    #[test]
    fn slots_stay_while_objects_change() {
        let mut s = state(1);
        let nh = |rif| NexthopConfig {
            rif,
            action: Action::Forward,
            reason: 0,
            mac: [2; 6],
        };
        let a = s.set_nexthop(4_000_000_000, nh(1)).unwrap();
        let b = s.set_nexthop(7, nh(2)).unwrap();
        assert_ne!(a, b);
        assert_eq!(s.set_nexthop(4_000_000_000, nh(3)).unwrap(), a);
        assert_eq!(s.nexthop(4_000_000_000).unwrap().rif, 3);
        let g = GroupConfig {
            hash: HashPolicy::L3,
            members: vec![(7, 1), (4_000_000_000, 3)],
        };
        let slot = s.set_nhg(1, &g).unwrap();
        assert_eq!(s.nhg(1).unwrap().config(), g);
        assert_eq!(
            s.route_target(raw::TND_RT_NHG, 1),
            Some(RouteTarget::Group(slot))
        );
        assert_eq!(s.target_id(RouteTarget::Nexthop(a)), (1, 4_000_000_000));
        assert_eq!(
            s.set_nhg(
                2,
                &GroupConfig {
                    members: vec![(9, 1)],
                    ..g.clone()
                }
            ),
            Err(SetError::NoNexthop(9))
        );
        assert_eq!(
            s.set_nhg(
                2,
                &GroupConfig {
                    members: vec![],
                    ..g
                }
            ),
            Err(SetError::BadGroup)
        );
        assert!(s.remove_nexthop(7));
        assert_eq!(s.set_nexthop(8, nh(1)).unwrap(), b);
        s.clear();
        assert_eq!(s.nexthop_count() + s.nhg_count(), 0);
    }

    #[test]
    fn traps_have_classes() {
        let mut s = state(1);
        assert_eq!(s.trap(raw::TND_TRAP_ARP).unwrap().class, raw::TND_TC_LINK);
        assert_eq!(s.trap(0), None);
        let c = TrapConfig {
            class: 1,
            rate_pps: 5,
            burst: 5,
        };
        s.set_trap(2, c).unwrap();
        assert_eq!(s.trap(2), Some(c));
        assert_eq!(s.set_trap(0, c), Err(SetError::NoReason(0)));
        assert_eq!(
            s.set_trap(2, TrapConfig { class: 9, ..c }),
            Err(SetError::NoClass(9))
        );
    }
}
