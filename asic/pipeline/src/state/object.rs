//! The objects: each mirrors its body in the ABI, without the key.

use tandem_abi::raw;
use tandem_packet::Mac;

use super::MAX_VID;
use crate::entry::Action;

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

/// Set in [`Port::hot`] beside the ABI's flags: a list is bound at the stage of the port.
pub(crate) const HOT_ACL: u32 = 1 << 31;
/// The same: it has a limit for what it floods.
pub(crate) const HOT_STORM: u32 = 1 << 30;
/// What [`Port::hot`] has beyond `TND_PORT_*`.
const HOT: u32 = 0xff00_0000;

/// A port.
#[derive(Debug, Clone)]
pub struct Port {
    /// As configured.
    pub config: PortConfig,
    /// `TND_PORT_*`, and what else a frame must stop for on its usual way: one word to look at.
    pub(crate) hot: u32,
    /// Carrier.
    pub link: bool,
    /// Port number of the link aggregation group that it is a member of, 0 = none.
    pub(crate) lag: u16,
    pub(crate) untagged: Untagged,
    /// Domain by VID, 0 = not a member; only on VLAN-aware ports.
    pub(crate) vids: Option<Box<[u16]>>,
    /// VIDs that it is a member by.
    pub(super) vid_count: u16,
    /// Of untagged frames.
    pub(crate) rif: Option<u16>,
    /// By `TND_STORM_*` - 1; only on ports that have one.
    pub(crate) storms: Option<Box<[super::Storm; super::STORM_KINDS as usize]>>,
    /// Of tagged frames, by VID; only on ports that have one.
    pub(crate) vid_rifs: Option<Box<[Option<u16>]>>,
    /// VIDs that have one.
    vid_rif_count: u16,
}

impl Port {
    /// Nobody configured it yet.
    pub(crate) fn new(link: bool) -> Port {
        let config = PortConfig::default();
        Port {
            hot: config.flags & !HOT,
            config,
            link,
            lag: 0,
            untagged: Untagged::None,
            vids: None,
            vid_count: 0,
            rif: None,
            vid_rifs: None,
            vid_rif_count: 0,
            storms: None,
        }
    }

    pub(crate) fn configure(&mut self, config: PortConfig) {
        self.hot = self.hot & HOT | config.flags & !HOT;
        self.config = config;
    }

    pub(crate) fn set_hot(&mut self, bit: u32, on: bool) {
        self.hot = self.hot & !bit | if on { bit } else { 0 };
    }

    #[inline]
    pub(crate) fn has(&self, flag: u32) -> bool {
        self.config.flags & flag != 0
    }

    /// The router interface of frames tagged `vid`.
    #[inline]
    pub(crate) fn vid_rif(&self, vid: u16) -> Option<u16> {
        *self.vid_rifs.as_ref()?.get(usize::from(vid))?
    }

    /// Memory is held only while some VID has one.
    pub(super) fn set_vid_rif(&mut self, vid: u16, rif: Option<u16>) {
        if rif.is_none() && self.vid_rifs.is_none() {
            return;
        }
        let all = self
            .vid_rifs
            .get_or_insert_with(|| vec![None; usize::from(MAX_VID) + 1].into_boxed_slice());
        if let Some(slot) = all.get_mut(usize::from(vid)) {
            self.vid_rif_count += u16::from(rif.is_some());
            self.vid_rif_count -= u16::from(slot.is_some());
            *slot = rif;
        }
        if self.vid_rif_count == 0 {
            self.vid_rifs = None;
        }
    }

    /// Frames may leave by it as a port of its own: up, and in no link aggregation group.
    #[inline]
    pub(crate) fn sends(&self) -> bool {
        self.is_up() && self.lag == 0
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Members sorted by tag form, those of one form by port; at most one line per port. A flood changes the tag once for each
    /// form then, however many VLAN ids there are.
    pub(crate) members: Vec<(u16, EgressTag)>,
    /// By port number.
    pub(crate) egress: Box<[Option<EgressTag>]>,
    /// By port number: the VID by which it is a member, 0 = it is none.
    pub(super) vids: Box<[u16]>,
    pub(crate) rif: Option<u16>,
}

impl Vlan {
    #[inline]
    pub(crate) fn has(&self, flag: u32) -> bool {
        self.config.flags & flag != 0
    }

    /// Ports in it, those of one tag form ascending.
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
    /// Frames of a port that are tagged (802.1Q) with a VID.
    PortVlan(u16, u16),
}

/// `struct tnd_rif` without its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RifConfig {
    /// Virtual router.
    pub vrf: u16,
    /// Port, domain, or VLAN of a port.
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
    pub active: bool,
}
