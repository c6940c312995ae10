// SPDX-License-Identifier: Apache-2.0
//! Copies of frames to another port, and limits of what floods.

use std::collections::BTreeMap;

use crate::{Config, Name};

/// Which frames of a port are copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// What comes in.
    pub rx: bool,
    /// What leaves.
    pub tx: bool,
}

/// `monitor session N`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// `source interface`.
    pub sources: BTreeMap<Name, Ways>,
    /// `destination interface`: it has the copies, and is in no VLAN.
    pub destination: Option<Name>,
}

/// How much may come in by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Of the port's speed, in hundredths of a percent.
    Percent(u32),
    /// Frames each second.
    Pps(u32),
    /// Bits each second.
    Bps(u32),
}

/// `storm-control …` of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Storm {
    /// To everybody.
    pub broadcast: Option<Level>,
    /// To groups.
    pub multicast: Option<Level>,
    /// To one station, known or not.
    pub unicast: Option<Level>,
}

impl Config {
    /// The session that has copies sent to a port: that one is no port of the switch's VLANs.
    #[must_use]
    pub fn monitors_to(&self, name: &Name) -> Option<u8> {
        let to = |s: &Session| s.destination == Some(*name);
        self.sessions.iter().find(|(_, s)| to(s)).map(|(n, _)| *n)
    }
}
