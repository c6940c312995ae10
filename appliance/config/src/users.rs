// SPDX-License-Identifier: Apache-2.0
//! Who may come in, and how: users, secrets, lines, banners.

use std::collections::BTreeMap;
use std::fmt;

/// Lines from elsewhere, so many at once.
pub const VTYS: usize = 16;

/// What is kept of a secret: its type and its hash, `9 $argon2id$…`. It is not shown by `{:?}`.
#[derive(Clone, PartialEq, Eq)]
pub struct Kept(pub String);

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept({})", self.0.get(..1).unwrap_or_default())
    }
}

/// `username …`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// `privilege`; `None`: what the line gives.
    pub level: Option<u8>,
    /// `secret`; `None`: nobody can log in as this one but by ssh's keys.
    pub secret: Option<Kept>,
}

/// `line …`: how a session is that comes in there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// `exec-timeout`, seconds, 0: never; `None`: 600.
    pub timeout: Option<u32>,
    /// `login local`: Username and Password are asked. From elsewhere they always are.
    pub login: bool,
    /// `privilege level`; `None`: 1.
    pub level: Option<u8>,
    /// `logging synchronous`: read and kept; nothing is logged to a line.
    pub synchronous: bool,
}

impl Line {
    /// After how many seconds without a key a session ends; 0: never.
    #[must_use]
    pub fn idle(&self) -> u32 {
        self.timeout.unwrap_or(600)
    }
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// `service password-encryption`: read and kept; secrets are never kept as they were typed.
    pub encryption: bool,
    /// `enable secret`, by its level.
    pub enable: BTreeMap<u8, Kept>,
    /// `username`.
    pub users: BTreeMap<String, User>,
    /// `banner motd`: lines without the last one's end.
    pub motd: Option<String>,
    /// `banner login`.
    pub before_login: Option<String>,
    /// `line console 0`.
    pub console: Line,
    /// `line vty …`.
    pub vty: [Line; VTYS],
}
