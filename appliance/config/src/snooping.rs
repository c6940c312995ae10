// SPDX-License-Identifier: Apache-2.0
//! IGMP and MLD snooping: what is set, and how it is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::Name;

/// Which protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// `ip igmp snooping …`.
    Igmp,
    /// `ipv6 mld snooping …`.
    Mld,
}

impl Protocol {
    /// Both.
    pub const ALL: [Protocol; 2] = [Protocol::Igmp, Protocol::Mld];

    /// What its commands begin with.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Protocol::Igmp => "ip igmp snooping",
            Protocol::Mld => "ipv6 mld snooping",
        }
    }
}

/// What is set of one VLAN.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfVlan {
    /// `no … vlan N`: nobody snoops there.
    pub off: bool,
    /// `immediate-leave`: who leaves is gone at once.
    pub immediate: bool,
    /// `querier`: the switch asks there, where nobody else does.
    pub querier: bool,
    /// `mrouter interface …`: a router is behind them.
    pub routers: BTreeSet<Name>,
    /// `static … interface …`: members that stay.
    pub members: BTreeSet<(IpAddr, Name)>,
}

/// What is set of one protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snooping {
    /// Without more words: in all VLANs that are not `off`.
    pub on: bool,
    /// `querier`: the switch asks in all of them.
    pub querier: bool,
    /// By VLAN.
    pub vlans: BTreeMap<u16, OfVlan>,
}

/// A member, for `show`: its VLAN, its group, behind which port (`None`: the switch itself), and whether it was set.
pub type Member = (u16, IpAddr, Option<Name>, bool);

/// How it is, of one protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Who asks, by VLAN, and whether groups go to their members there: without a querier they are flooded.
    pub queriers: BTreeMap<u16, (Option<IpAddr>, bool)>,
    /// Members.
    pub members: Vec<Member>,
    /// Ports of routers, by VLAN, and whether they were set.
    pub routers: Vec<(u16, Name, bool)>,
}
