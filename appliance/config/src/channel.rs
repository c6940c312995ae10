// SPDX-License-Identifier: Apache-2.0
//! Port-channels: ports that are one link.

use crate::{Config, Interface, Kind, Name};

/// Ports of a port-channel at most, as in IOS.
pub const MEMBERS: usize = 8;

/// `channel-group N mode …`: who says that a port takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `on`: the configuration alone.
    On,
    /// `active`: LACP with the neighbour.
    Active,
}

/// `channel-group N mode …` of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The port-channel's number.
    pub number: u16,
    /// Its mode.
    pub mode: Mode,
}

/// A port-channel's name.
#[must_use]
pub fn name(number: u16) -> Name {
    Name {
        kind: Kind::PortChannel,
        number,
    }
}

impl Interface {
    /// Takes from another what all of a port-channel have alike: VLANs, MTU, spanning tree.
    pub fn follow(&mut self, other: &Interface) {
        self.switchport.clone_from(&other.switchport);
        self.mtu = other.mtu;
        self.tree.clone_from(&other.tree);
    }

    /// Has it all that alike with another?
    #[must_use]
    pub fn follows(&self, other: &Interface) -> bool {
        self.switchport == other.switchport && self.mtu == other.mtu && self.tree == other.tree
    }
}

impl Config {
    /// The ports of a port-channel.
    pub fn members(&self, number: u16) -> impl Iterator<Item = Name> {
        let of = move |i: &Interface| i.channel.is_some_and(|c| c.number == number);
        let all = self.interfaces.iter();
        all.filter(move |(_, i)| of(i)).map(|(name, _)| *name)
    }

    /// What is set of the port-channel that a port is in.
    #[must_use]
    pub fn channel_of(&self, port: &Name) -> Option<(Name, &Interface)> {
        let channel = self.interfaces.get(port)?.channel?;
        let name = name(channel.number);
        Some((name, self.interfaces.get(&name)?))
    }
}
