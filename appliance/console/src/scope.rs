// SPDX-License-Identifier: Apache-2.0
//! Where in a configuration commands are typed.

use std::collections::BTreeSet;

use tandem_swconfig::Name;
use tandem_swconfig::acl::ListKind;
use tandem_swconfig::routing::Router;
use tandem_swgrammar::Mode;

use crate::users::Lines;

/// What commands are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The switch: configuration mode.
    Switch,
    /// One interface, or those of a range.
    Interfaces {
        /// Which ones.
        names: Vec<Name>,
        /// Was `range` said?
        range: bool,
    },
    /// VLANs.
    Vlans(BTreeSet<u16>),
    /// The line at the box, or some of those from elsewhere.
    Lines(Lines),
    /// A routing protocol.
    Router(Router),
    /// A class of packets.
    Class(String),
    /// A policy, and one of its classes.
    Policy {
        /// Its name.
        name: String,
        /// The class.
        class: Option<String>,
    },
    /// An access list.
    List {
        /// Its name.
        name: String,
        /// What it is.
        kind: ListKind,
    },
}

impl Scope {
    /// The mode of the grammar.
    #[must_use]
    pub fn mode(&self) -> Mode {
        match self {
            Scope::Switch => Mode::Config,
            Scope::Interfaces { .. } => Mode::Interface,
            Scope::Vlans(_) => Mode::Vlan,
            Scope::Lines(_) => Mode::Line,
            Scope::Router(router) => crate::routing::mode(router),
            Scope::Class(_) => Mode::ClassMap,
            Scope::Policy { class: None, .. } => Mode::PolicyMap,
            Scope::Policy { .. } => Mode::PolicyClass,
            Scope::List { kind, .. } => match kind {
                ListKind::Standard => Mode::StandardList,
                ListKind::Extended => Mode::ExtendedList,
                ListKind::Ipv6 => Mode::Ipv6List,
            },
        }
    }

    /// Where `exit` goes; `None`: to exec mode.
    pub(crate) fn above(&self) -> Option<Scope> {
        match self {
            Scope::Switch => None,
            Scope::Policy {
                name,
                class: Some(_),
            } => Some(Scope::Policy {
                name: name.clone(),
                class: None,
            }),
            _ => Some(Scope::Switch),
        }
    }

    /// May a refused command have done half of what it does?
    pub(crate) fn is_many(&self) -> bool {
        match self {
            Scope::Switch
            | Scope::Router(_)
            | Scope::List { .. }
            | Scope::Class(_)
            | Scope::Policy { .. } => false,
            Scope::Interfaces { names, .. } => names.len() > 1,
            Scope::Vlans(ids) => ids.len() > 1,
            Scope::Lines(_) => true,
        }
    }
}
