// SPDX-License-Identifier: Apache-2.0
//! Push and pop (§5.12, §7.2.5). New headers take their fields from those that are there (table 8); a new MPLS header is
//! the outermost of its kind and stands behind the VLAN tags, where alone it is valid.
use super::{Effect, Packet};
use crate::parse::Net;
use tandem_openflow::Field;

impl Packet<'_, '_> {
    pub(super) fn shim(&self, at: u32) -> u32 {
        self.frame
            .bytes()
            .get(at as usize..)
            .and_then(|b| b.first_chunk())
            .map_or(0, |s| u32::from_be_bytes(*s))
    }

    /// A new outermost tag with VLAN and priority of the one that was.
    pub fn push_vlan(&mut self, tpid: u16) -> Effect {
        let tci = if self.lay.tagged {
            u16::from_be_bytes([self.byte(14), self.byte(15)]) & 0xefff
        } else {
            0
        };
        if !self.frame.push_tag(tpid, tci) && !self.grow(12, &[tpid, tci]) {
            return Effect::None;
        }
        self.parse()
    }

    fn grow(&mut self, at: usize, words: &[u16]) -> bool {
        if !self.frame.insert(at, words.len() * 2) {
            return false;
        }
        for (n, w) in (0u32..).zip(words) {
            self.write(at as u32 + n * 2, &w.to_be_bytes());
        }
        true
    }

    /// The outermost tag goes.
    pub fn pop_vlan(&mut self) -> Effect {
        if !self.lay.tagged || !self.frame.pop_tag() {
            return Effect::None;
        }
        self.parse()
    }

    /// A new outermost label: label, traffic class and TTL of the one that was, or the TTL of the IP header.
    pub fn push_mpls(&mut self, ethertype: u16) -> Effect {
        const BOTTOM: u32 = 0x100;
        let at = self.lay.net_at;
        let shim = match self.lay.net {
            Net::Mpls => self.shim(at) & !BOTTOM,
            Net::Ip4 => u32::from(self.byte(at + 8)) | BOTTOM,
            Net::Ip6 => u32::from(self.byte(at + 7)) | BOTTOM,
            // Labels below that can't be seen are no labels
            _ => BOTTOM,
        };
        let [a, b] = [(shim >> 16) as u16, shim as u16];
        let type_at = self.lay.type_at;
        if !self.grow(type_at as usize + 2, &[a, b]) {
            return Effect::None;
        }
        self.write(type_at, &ethertype.to_be_bytes());
        self.parse()
    }

    /// The outermost label goes; what is below is what the action says.
    pub fn pop_mpls(&mut self, ethertype: u16) -> Effect {
        if self.lay.net != Net::Mpls || !self.frame.remove(self.lay.net_at as usize, 4) {
            return Effect::None;
        }
        self.write(self.lay.type_at, &ethertype.to_be_bytes());
        self.parse()
    }

    /// A new Ethernet header in front, with the same addresses, and a service tag: its I-SID is that of the one that was,
    /// its priority that of the VLAN tag.
    pub fn push_pbb(&mut self, ethertype: u16) -> Effect {
        let mut addresses = [0; 12];
        if let Some(a) = self.frame.bytes().first_chunk() {
            addresses = *a;
        }
        let isid = match self.lay.net {
            Net::Pbb => self.key.get(Field::PbbIsid) as u32,
            _ => 0,
        };
        let tag = (self.key.get(Field::VlanPcp) as u32) << 29 | isid;
        if !self.frame.insert(0, 18) {
            return Effect::None;
        }
        self.write(0, &addresses);
        self.write(12, &ethertype.to_be_bytes());
        self.write(14, &tag.to_be_bytes());
        self.parse()
    }

    /// The outermost service tag goes, and with it all that is before the customer's addresses.
    pub fn pop_pbb(&mut self) -> Effect {
        if self.lay.net != Net::Pbb || !self.frame.remove(0, self.lay.net_at as usize + 4) {
            return Effect::None;
        }
        self.parse()
    }
}
