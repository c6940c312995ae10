// SPDX-License-Identifier: Apache-2.0
//! Time to live: set, less one, copied between the outermost header that has one and the next (§5.12).
use super::{Effect, Packet};
use crate::parse::Net;
use tandem_openflow::Field;

/// A header with a TTL.
#[derive(Clone, Copy)]
enum Header {
    Mpls(u32),
    Ip4(u32),
    Ip6(u32),
}

impl Packet<'_, '_> {
    fn outermost(&self) -> Option<Header> {
        let at = self.lay.net_at;
        match self.lay.net {
            Net::Mpls => Some(Header::Mpls(at)),
            Net::Ip4 => Some(Header::Ip4(at)),
            Net::Ip6 => Some(Header::Ip6(at)),
            _ => None,
        }
    }

    /// Behind the last label the first four bits say which IP it is; behind IP its protocol does.
    fn next(&self) -> Option<Header> {
        let at = match self.lay.net {
            Net::Mpls => {
                let at = self.lay.net_at + 4;
                if self.shim(self.lay.net_at) & 0x100 == 0 {
                    let whole = self.frame.len() as u32 >= at + 4;
                    return whole.then_some(Header::Mpls(at));
                }
                at
            }
            Net::Ip4 | Net::Ip6 if self.is(Field::IpProto, &[4, 41]) && self.lay.body_at > 0 => {
                self.lay.body_at
            }
            _ => return None,
        };
        let left = self.lay.end.saturating_sub(at);
        let first = self.byte(at);
        let words = u32::from(first & 0xf);
        match first >> 4 {
            4 if words >= 5 && left >= words * 4 => Some(Header::Ip4(at)),
            6 if left >= 40 => Some(Header::Ip6(at)),
            _ => None,
        }
    }

    fn ttl(&self, of: Header) -> u8 {
        match of {
            Header::Mpls(at) => self.byte(at + 3),
            Header::Ip4(at) => self.byte(at + 8),
            Header::Ip6(at) => self.byte(at + 7),
        }
    }

    fn set_ttl(&mut self, of: Header, ttl: u8) {
        match of {
            Header::Mpls(at) => self.write(at + 3, &[ttl]),
            Header::Ip4(at) => self.write_ip4(at, at + 8, [ttl, self.byte(at + 9)]),
            Header::Ip6(at) => self.write(at + 7, &[ttl]),
        }
    }

    /// The outermost header's becomes that of the next.
    pub fn copy_ttl_out(&mut self) -> Effect {
        if let (Some(outer), Some(inner)) = (self.outermost(), self.next()) {
            self.set_ttl(outer, self.ttl(inner));
        }
        Effect::None
    }

    /// The next header's becomes that of the outermost.
    pub fn copy_ttl_in(&mut self) -> Effect {
        if let (Some(outer), Some(inner)) = (self.outermost(), self.next()) {
            self.set_ttl(inner, self.ttl(outer));
        }
        Effect::None
    }

    /// Of the outermost label (`mpls`) or of the IP header.
    pub fn set_ttl_of(&mut self, mpls: bool, ttl: u8) -> Effect {
        if let Some(h) = self.outermost_of(mpls) {
            self.set_ttl(h, ttl);
        }
        Effect::None
    }

    /// One less; at 0 and 1 it is used up.
    pub fn dec_ttl_of(&mut self, mpls: bool) -> Effect {
        let Some(h) = self.outermost_of(mpls) else {
            return Effect::None;
        };
        match self.ttl(h) {
            0 | 1 => Effect::InvalidTtl,
            ttl => {
                self.set_ttl(h, ttl - 1);
                Effect::None
            }
        }
    }

    fn outermost_of(&self, mpls: bool) -> Option<Header> {
        self.outermost()
            .filter(|h| matches!(h, Header::Mpls(_)) == mpls)
    }
}
