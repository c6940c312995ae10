//! What the pipeline reads: ports, forwarding domains, router interfaces, next hops, and the lookup tables.
//!
//! ```text
//!   (port, vid) ─► fid ─► Vlan { members, rif }          exact: (fid, mac)  ─► FdbValue   ─► port
//!   port, (port, vid) ─► rif ─► Rif { vrf, mac, mtu }           (vrf, host) ─► HostValue  ─► rif, mac
//!                                                        lpm:   (vrf, prefix) ─► RouteTarget ─► next hop or group slot
//! ```
//!
//! The firmware is the only writer of objects; the pipeline itself writes learned FDB entries, activity, policers and
//! counters. Setters keep the indexes right and refuse what would break them, but know nothing of accounting or of
//! references between objects: that is the firmware's work. Everything the packet path needs is found by array index.

mod acl;
mod heard;
mod lag;
mod object;
mod port_set;
mod ports;
mod router;
mod storm;
#[cfg(test)]
mod tests;
mod work;

use heard::Heard;
use tandem_abi::raw;
use tandem_tables::exact::ExactMatch;
use tandem_tables::lpm::{Lpm4, Lpm6};
use tandem_tables::mcast;
pub use tandem_tables::mcast::Key as MdbKey;
pub(crate) use tandem_tables::mcast::NONE as NO_GROUP;
use tandem_tables::slots::Slots;

use crate::counters::Counters;
#[cfg(doc)]
use crate::entry::RouteTarget;
use crate::entry::{Action, MAX_RIF};
use crate::group::Group;
pub use crate::group::{FlowHash, GroupConfig, HashPolicy};
use crate::police::Police;
pub use acl::*;
pub use lag::{Lag, LagConfig, MAX_LAG};
pub(crate) use object::{EgressTag, Untagged};
pub(crate) use object::{HOT_ACL, HOT_STORM};
pub use object::{
    MemberConfig, Nexthop, NexthopConfig, Port, PortConfig, RifConfig, RifPlace, Vlan, VlanConfig,
};
pub use port_set::{PortMask, PortSet, mask_of, ports_of};
pub use storm::{KINDS as STORM_KINDS, Storm, StormConfig};
pub use work::Work;

/// The table of multicast groups.
pub type Mdb = mcast::Mdb<Action>;
/// `struct tnd_mdb` without its key.
pub type MdbConfig = mcast::Config<Action>;
/// A multicast group in its slot.
pub type MdbEntry = mcast::Entry<Action>;

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
    /// Number of a link aggregation group out of range.
    #[error("LAG {0} is not 1..{MAX_LAG}")]
    BadLag(u16),
    /// VLAN id out of range.
    #[error("VLAN id {0} is not 1..4094 or ANY")]
    BadVid(u16),
    /// VRF absent.
    #[error("VRF {0} does not exist")]
    NoVrf(u16),
    /// RIF id out of range.
    #[error("RIF id {0} is above {MAX_RIF}")]
    BadRif(u16),
    /// The place has another RIF.
    #[error("its place already has RIF {0}")]
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
    /// Kind of storm control out of range.
    #[error("storm control {0} is not 1..{KINDS}", KINDS = storm::KINDS)]
    StormKind(u8),
    /// Kind of RIF that this chip has not.
    #[error("RIF kind {0} is not supported")]
    RifKind(u16),
}

/// Everything the pipeline reads. See the module.
#[derive(Debug, Clone)]
pub struct State {
    /// Front-panel ports, then those of link aggregation groups.
    ports: Vec<Port>,
    /// Front-panel ports.
    physical: u16,
    lags: Vec<Option<Lag>>,
    pub(crate) vlans: Vec<Option<Box<Vlan>>>,
    member_count: usize,
    vrfs: Vec<u16>,
    rifs: Vec<Option<RifConfig>>,
    nexthops: Slots<Nexthop>,
    nhgs: Slots<Group>,
    /// What of the packets for the CPU passes.
    pub police: Police,
    /// MAC addresses ([`crate::entry::FdbValue`]) and hosts ([`crate::entry::HostValue`]).
    pub exact: ExactMatch,
    /// IPv4 prefixes ([`RouteTarget`]).
    pub lpm4: Lpm4,
    /// IPv6 prefixes ([`RouteTarget`]).
    pub lpm6: Lpm6,
    /// What was counted.
    pub counters: Counters,
    /// Lists of rules.
    pub acl: Acl,
    /// Multicast groups.
    pub mdb: Mdb,
    /// Port sets, which FDB entries of flow ports name by slot.
    pub port_sets: Slots<PortSet, u16>,
    /// What the firmware's commands have cost.
    pub work: Work,
    /// A driver says anew what there is to be, and what it has not named yet is of another instant: what goes to a station that is not
    /// known, or would be dropped for a port out of service, is the CPU's.
    pub replayed: bool,
    pub(crate) age_cursor: u32,
    pub(crate) heard: Heard,
    /// How next-hop groups choose.
    pub(crate) ecmp_hash: FlowHash,
    /// How aggregation groups choose.
    pub(crate) lag_hash: FlowHash,
}

impl State {
    /// A chip with ports 1..=`ports`, all down, VRF 0, and empty objects around the given tables.
    pub fn new(ports: u16, exact: ExactMatch, lpm4: Lpm4, lpm6: Lpm6) -> State {
        let (ecmp_hash, lag_hash) = FlowHash::pair([0; 6], false);
        State {
            ports: vec![Port::new(false); usize::from(ports)],
            physical: ports,
            lags: Vec::new(),
            vlans: vec![None; usize::from(MAX_FID) + 1],
            member_count: 0,
            vrfs: vec![0],
            rifs: Vec::new(),
            nexthops: Slots::default(),
            nhgs: Slots::default(),
            police: Police::new(ports),
            exact,
            lpm4,
            lpm6,
            counters: Counters::new(ports),
            acl: Acl::new(ports),
            mdb: Mdb::default(),
            port_sets: Slots::default(),
            work: Work::default(),
            replayed: false,
            age_cursor: 0,
            heard: Heard::default(),
            ecmp_hash,
            lag_hash,
        }
    }

    /// Flows are told apart as the switch with this base MAC address does; `symmetric`: the two directions of one are not.
    pub fn set_hash(&mut self, base_mac: [u8; 6], symmetric: bool) {
        (self.ecmp_hash, self.lag_hash) = FlowHash::pair(base_mac, symmetric);
    }

    /// Cold reset: no object is left, ports are as after [`State::new`] but keep their carrier, traps are back at their
    /// defaults (a profile's own are to be set again). Counters stay.
    pub fn clear(&mut self) {
        self.ports.truncate(usize::from(self.physical));
        self.lags.clear();
        for p in &mut self.ports {
            *p = Port::new(p.link);
        }
        self.vlans.fill(None);
        self.member_count = 0;
        self.vrfs = vec![0];
        self.rifs.clear();
        self.nexthops = Slots::default();
        self.nhgs = Slots::default();
        self.police.clear();
        self.exact.clear();
        self.lpm4.clear();
        self.lpm6.clear();
        self.acl = Acl::new(self.port_count());
        self.mdb = Mdb::default();
        self.port_sets = Slots::default();
        self.age_cursor = 0;
        self.heard = Heard::default();
    }
}
