// SPDX-License-Identifier: Apache-2.0
//! What is known of a flow by itself.
use crate::{Act, Entry, KNOWN, Only, Rewrite, Stand, pairs};
use tandem_ofpipeline::key::{Key, THERE};

impl Entry {
    /// The match of those packets that it may answer: who meets the others alone does not stand in its way.
    pub(crate) fn answers(&self) -> (Key, Key) {
        let (mut value, mut mask) = (self.value, *self.mask);
        if self.only == Some(Only::Mac) {
            value.0[THERE] |= KNOWN;
            mask.0[THERE] |= KNOWN;
        }
        (value, mask)
    }

    /// What the MAC table does, which writes nothing.
    pub(crate) fn mac_act(&self) -> Act {
        match self.act {
            _ if self.second.is_some() => Act::Cpu,
            Act::Out { rewrite, .. } if rewrite != Rewrite::default() => Act::Cpu,
            act => act,
        }
    }

    /// Has no packet of it a source that the MAC table has?
    pub(crate) fn is_unknown(&self) -> bool {
        (self.mask.0[THERE] & !self.value.0[THERE]) & KNOWN != 0
    }

    /// Is there no packet of the other that this one answers?
    pub(crate) fn is_apart(&self, unknown: bool) -> bool {
        unknown && self.only == Some(Only::Mac)
    }

    /// Do its rows, where it stands, ask for all that it does?
    pub(crate) fn rows_exact(&self, stand: Stand) -> bool {
        match stand {
            Stand::Acl { .. } => self.rows.iter().all(|r| r.exact),
            _ => true,
        }
    }

    /// Has it no packet that is the software's?
    pub(crate) fn answers_all(&self) -> bool {
        self.state.real && self.holes == 0
    }

    pub(crate) fn wide(&self) -> bool {
        self.rows.iter().any(|r| !r.exact)
    }

    /// Does it keep a flow behind it that it meets from being a pair? What it sends would leave with what is written for that,
    /// and what its rows ask of the tag is the class by then. What it drops or leaves to the CPU is as it came.
    pub(crate) fn bars(&self) -> bool {
        matches!(self.act, Act::Out { .. }) || pairs::asks_tag(&self.flow.fields)
    }

    /// Lines that its pair takes of what classifies.
    pub(crate) fn class_lines(&self) -> u32 {
        self.class.iter().map(|r| r.lines).sum()
    }

    /// Lines that it takes in the ACL where it stands so.
    pub(crate) fn lines(&self, stand: Stand) -> u32 {
        let wide = match stand {
            Stand::Acl { wide } => wide,
            // That of its group
            Stand::Pair => return 1,
            _ => return 0,
        };
        let rows = self.rows.iter().filter(|r| r.exact || wide);
        rows.map(|r| r.lines).sum()
    }
}
