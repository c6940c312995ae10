// SPDX-License-Identifier: Apache-2.0
//! A packet on its way through the pipeline, and what actions do to its bytes.
//!
//! Every change is made to the frame and to the key alike, so that the next table sees the packet as it is. A change that
//! uncovers or covers headers parses the frame again; [`Effect`] says which kind it was.
mod fields;
mod sums;
mod tags;
mod ttl;

use crate::key::Key;
use crate::parse::{Layout, Net, parse};
use tandem_openflow::{Field, Version};
use tandem_packet::Frame;

/// What an action did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: the packet has no such header, or there is no room for one.
    None,
    /// Fields have other values, which follow from the key and the action.
    Fields,
    /// Other headers are seen: what the key is depends on the packet's bytes.
    Headers,
    /// The TTL is used up: the packet must not go on.
    InvalidTtl,
}

/// The IP header whose transport checksum is kept, as distances from the end of the frame (the front moves).
#[derive(Clone, Copy, Debug, Default)]
struct Anchor {
    net: u32,
    proto_at: u32,
    sum_at: u32,
    sum_proto: u8,
}

/// A frame with its key.
#[derive(Debug)]
pub struct Packet<'a, 'm> {
    /// The bytes.
    pub frame: &'a mut Frame<'m>,
    /// Its fields.
    pub key: Key,
    /// Its headers.
    pub lay: Layout,
    version: Version,
    anchor: Anchor,
}

impl<'a, 'm> Packet<'a, 'm> {
    /// `None`: shorter than an Ethernet header.
    #[inline]
    pub fn new(frame: &'a mut Frame<'m>, in_port: u32, version: Version) -> Option<Packet<'a, 'm>> {
        let mut key = Key::default();
        key.0[0] = u64::from(in_port) << 32 | u64::from(in_port);
        let lay = parse(frame.bytes(), version, &mut key)?;
        Some(Packet::parsed(frame, key, lay, version))
    }

    #[inline]
    fn parsed(frame: &'a mut Frame<'m>, key: Key, lay: Layout, version: Version) -> Packet<'a, 'm> {
        let mut p = Packet {
            frame,
            key,
            lay,
            version,
            anchor: Anchor::default(),
        };
        p.hold();
        p
    }

    /// The same packet in other memory: a copy of the frame that `frame` is.
    pub fn copy<'b, 'n>(&self, frame: &'b mut Frame<'n>) -> Packet<'b, 'n> {
        Packet {
            frame,
            key: self.key,
            lay: self.lay,
            version: self.version,
            anchor: self.anchor,
        }
    }

    #[inline]
    fn hold(&mut self) {
        if matches!(self.lay.net, Net::Ip4 | Net::Ip6) {
            let len = self.frame.len() as u32;
            self.anchor = Anchor {
                net: len - self.lay.net_at,
                proto_at: len.saturating_sub(self.lay.proto_at),
                sum_at: match self.lay.sum_at {
                    0 => 0,
                    at => len - at,
                },
                sum_proto: self.lay.sum_proto,
            };
        }
    }

    /// Reads the frame again after a change. An IP header that was seen before keeps its transport header.
    fn parse(&mut self) -> Effect {
        let Some(lay) = parse(self.frame.bytes(), self.version, &mut self.key) else {
            return Effect::Headers;
        };
        self.lay = lay;
        let len = self.frame.len() as u32;
        if matches!(lay.net, Net::Ip4 | Net::Ip6) {
            if len - lay.net_at == self.anchor.net {
                self.lay.proto_at = len - self.anchor.proto_at;
                self.lay.sum_proto = self.anchor.sum_proto;
                self.lay.sum_at = match self.anchor.sum_at {
                    0 => 0,
                    back => len - back,
                };
            } else {
                self.hold();
            }
        }
        Effect::Headers
    }

    fn byte(&self, at: u32) -> u8 {
        self.frame
            .bytes()
            .get(at as usize)
            .copied()
            .unwrap_or_default()
    }

    fn is(&self, field: Field, of: &[u16]) -> bool {
        of.iter().any(|v| u128::from(*v) == self.key.get(field))
    }

    /// Bytes for a meter and for counters.
    pub fn bytes(&self) -> u64 {
        self.frame.len() as u64
    }
}
