// SPDX-License-Identifier: Apache-2.0
//! What `show spanning-tree` has to tell.

use crate::bridge::Bridge;
use crate::config::Version;
use crate::port::{Counters, PortState, Role};
use crate::priority::{BridgeId, PortId};
use crate::times::seconds;

/// The bridge, and the root as it sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeView {
    /// What it speaks.
    pub version: Version,
    /// Its own identifier.
    pub id: BridgeId,
    /// The root's.
    pub root: BridgeId,
    /// What the way to the root costs.
    pub cost: u32,
    /// The Root Port's number; `None`: this bridge is the root.
    pub root_port: Option<u16>,
    /// The root's hello time, seconds.
    pub hello: u16,
    /// The root's max age, seconds.
    pub max_age: u16,
    /// The root's forward delay, seconds.
    pub forward_delay: u16,
    /// Changes of the topology.
    pub changes: u64,
    /// When it changed last (as the times that were given), and by which port that was known.
    pub changed: Option<(u64, u16)>,
    /// Turns that ended before the machines were at rest: a defect, if there are any.
    pub cut_short: u64,
    /// By number.
    pub ports: Vec<PortView>,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortView {
    /// Its number.
    pub number: u16,
    /// Priority and number.
    pub id: PortId,
    /// Its role.
    pub role: Role,
    /// What it does with frames.
    pub state: PortState,
    /// What a way over it costs.
    pub cost: u32,
    /// The LAN's designated bridge.
    pub designated_bridge: BridgeId,
    /// The LAN's designated port.
    pub designated_port: PortId,
    /// What the way to the root costs from there.
    pub designated_cost: u32,
    /// There is no bridge behind it.
    pub edge: bool,
    /// There is one at most.
    pub point_to_point: bool,
    /// The neighbours speak the old protocol.
    pub stp_neighbour: bool,
    /// BPDU guard has taken it out of service.
    pub err_disabled: bool,
    /// Root guard holds it back: what is said behind it is better than what the bridge has.
    pub root_inconsistent: bool,
    /// What has been counted.
    pub counters: Counters,
}

impl Bridge {
    /// How it is now.
    pub fn show(&self) -> BridgeView {
        let root = self.root_priority.root;
        BridgeView {
            version: self.config.version,
            id: self.id(),
            root,
            cost: self.root_priority.cost,
            root_port: self.root_port.map(PortId::number),
            hello: seconds(self.root_times.hello),
            max_age: seconds(self.root_times.max_age),
            forward_delay: seconds(self.root_times.forward_delay),
            changes: self.changes,
            changed: self.changed,
            cut_short: self.cut_short,
            ports: self
                .ports
                .iter()
                .map(|p| PortView {
                    number: p.number,
                    id: p.id(),
                    role: p.role,
                    state: p.state(),
                    cost: p.cost(),
                    designated_bridge: p.port_priority.bridge,
                    designated_port: p.port_priority.port,
                    designated_cost: p.port_priority.cost,
                    edge: p.oper_edge,
                    point_to_point: p.point_to_point(),
                    stp_neighbour: !p.send_rstp && self.config.version == Version::Rstp,
                    err_disabled: p.err_disabled,
                    root_inconsistent: p.config.root_guard
                        && p.role == Role::Alternate
                        && p.port_priority.root <= root,
                    counters: p.counters,
                })
                .collect(),
        }
    }
}
