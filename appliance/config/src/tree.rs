// SPDX-License-Identifier: Apache-2.0
//! Spanning tree: what is set, and how it is. One tree for all VLANs; numbers and ranges are those of IEEE 802.1D-2004.

use crate::Name;

/// `spanning-tree …` of the switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// `spanning-tree mode rstp`; without a mode there is no tree, and BPDUs pass like any other frame to a group.
    pub on: bool,
    /// `priority`, in steps of 4096; `None`: 32768.
    pub priority: Option<u16>,
    /// `hello-time`, seconds; `None`: 2.
    pub hello: Option<u8>,
    /// `forward-time`, seconds; `None`: 15.
    pub forward: Option<u8>,
    /// `max-age`, seconds; `None`: 20.
    pub max_age: Option<u8>,
    /// `portfast default`: of access ports.
    pub edge_default: bool,
    /// `portfast bpduguard default`: of ports with portfast.
    pub guard_default: bool,
    /// `errdisable recovery cause bpduguard`: a port that the guard took out of service comes back.
    pub recovers: bool,
    /// `errdisable recovery interval`, seconds; `None`: 300.
    pub interval: Option<u32>,
}

/// Seconds after which a port comes back, unless others are set.
pub const RECOVERS_AFTER: u32 = 300;

/// `spanning-tree …` of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortTree {
    /// `cost`; `None`: by the link's speed.
    pub cost: Option<u32>,
    /// `port-priority`, in steps of 16; `None`: 128.
    pub priority: Option<u8>,
    /// `portfast`: a host is behind it, and it forwards at once.
    pub edge: bool,
    /// `bpduguard enable`: a BPDU takes it out of service.
    pub guard: bool,
    /// `bpduguard disable`: none does, whatever is set for all.
    pub no_guard: bool,
    /// `link-type`: point-to-point, or shared; `None`: as the link is.
    pub point_to_point: Option<bool>,
}

impl PortTree {
    /// With what is set for all ports, for one that is an access port or not.
    #[must_use]
    pub fn with(&self, of: &Tree, access: bool) -> PortTree {
        let edge = self.edge || of.edge_default && access;
        PortTree {
            edge,
            guard: self.guard || of.guard_default && edge && !self.no_guard,
            ..self.clone()
        }
    }
}

/// A bridge: priority and MAC address.
pub type Bridge = (u16, [u8; 6]);

/// A port's role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Role {
    Root,
    Designated,
    Alternate,
    Backup,
    Disabled,
}

/// What a port does with frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum State {
    Discarding,
    Learning,
    Forwarding,
}

/// How a port is, for `show`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortView {
    /// Which one.
    pub name: Name,
    /// Its number in the tree: not in every case that of its name.
    pub number: u16,
    /// Its role.
    pub role: Role,
    /// Its state.
    pub state: State,
    /// What a way over it costs.
    pub cost: u32,
    /// Its priority.
    pub priority: u8,
    /// There is no bridge behind it.
    pub edge: bool,
    /// There is one at most.
    pub point_to_point: bool,
    /// Its neighbours speak the protocol of 1998.
    pub old_neighbour: bool,
    /// BPDU guard has taken it out of service.
    pub err_disabled: bool,
    /// Seconds until it comes back by itself.
    pub recovers_in: Option<u32>,
}

/// How the tree is, for `show`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// This bridge.
    pub bridge: Bridge,
    /// The root.
    pub root: Bridge,
    /// What the way there costs.
    pub cost: u32,
    /// By which port; `None`: this bridge is the root.
    pub root_port: Option<Name>,
    /// The root's hello time, max age, forward delay.
    pub root_times: [u16; 3],
    /// This bridge's own.
    pub times: [u16; 3],
    /// Its ports.
    pub ports: Vec<PortView>,
}
