// SPDX-License-Identifier: Apache-2.0
//! Classes of packets, and what of them may come in.

use std::collections::BTreeSet;

/// `class-map`: packets that are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// `match-any`: one of its lines is enough; else all.
    pub any: bool,
    /// Its lines.
    pub matches: BTreeSet<Match>,
}

/// A line of a class.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    /// `match access-group N`: what an access list of IPv4 permits.
    Number(u32),
    /// `match access-group name …`: what the access lists of this name permit.
    List(String),
    /// `match dscp`.
    Dscp(u8),
    /// `match any`.
    Any,
}

/// `police`: what exceeds it is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Police {
    /// Bits each second.
    pub rate: u32,
    /// Octets at once; `None`: a quarter of a second, and a frame of any length.
    pub burst: Option<u32>,
}

/// `policy-map`: classes in the order in which they are asked, each with its limit. `class-default` is all that is left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Names of classes; one that is not there meets nothing.
    pub classes: Vec<(String, Option<Police>)>,
}

/// The class of what no other has met.
pub const DEFAULT: &str = "class-default";
