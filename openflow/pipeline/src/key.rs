// SPDX-License-Identifier: Apache-2.0
//! The flow key: all match fields of one packet, in 14 words.
//!
//! ```text
//!   word 0   IN_PORT 32 │ IN_PHY_PORT 32                7   IPv6 source, low    │ ARP SHA 48, ARP OP 16
//!        1   METADATA                                   8   IPv6 destination, high │ ARP THA 48
//!        2   TUNNEL_ID                                  9   IPv6 destination, low
//!        3   ETH_DST 48 │ ETH_TYPE 16                  10   IPV6_FLABEL 20, IPV6_EXTHDR 9,
//!        4   ETH_SRC 48 │ VLAN_VID 13 │ VLAN_PCP 3          MPLS label 20, TC 3, BOS 1 │ PBB_ISID 24
//!        5   there 16, IP_PROTO 8, DSCP 6, ECN 2,      11   IPV6_ND_TARGET, high
//!            L4 source 16, L4 destination 16           12   IPV6_ND_TARGET, low
//!        6   IPv6 source, high │ IPv4 source 32,       13   IPV6_ND_SLL or IPV6_ND_TLL 48
//!            IPv4 destination 32 │ ARP SPA, ARP TPA
//! ```
//!
//! Fields share a place where their prerequisites exclude each other: whoever matches one of them matches, exactly, the
//! EtherType, the protocol or the ICMPv6 type that says which of them it is. Of a field that a packet does not have (a
//! header cut short, the ports of a later fragment) the bits `there` are zero, and a match on the field asks for them.
use tandem_openflow::{Field, Oxm};

/// Words of a key.
pub const WORDS: usize = 14;

/// A network header that is whole: IPv4, IPv6, ARP, MPLS, PBB.
pub const NET: u64 = 1 << 48;
/// Ports, or ICMP type and code.
pub const L4: u64 = 1 << 49;
/// ND's target.
pub const ND_TARGET: u64 = 1 << 50;
/// ND's source link-layer address.
pub const ND_SLL: u64 = 1 << 51;
/// ND's target link-layer address.
pub const ND_TLL: u64 = 1 << 52;
/// The word of the bits above.
pub const THERE: usize = 5;

/// The values of all fields, or a mask of all fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub [u64; WORDS]);

impl Default for Key {
    fn default() -> Key {
        Key([0; WORDS])
    }
}

/// Where a field stands: word and shift (of a field of 128 bits: its high word), and what of [`THERE`] says that it is
/// there.
pub const fn place(field: Field) -> (usize, u32, u64) {
    match field {
        Field::InPort => (0, 32, 0),
        Field::InPhyPort => (0, 0, 0),
        Field::Metadata => (1, 0, 0),
        Field::TunnelId => (2, 0, 0),
        Field::EthDst => (3, 16, 0),
        Field::EthType => (3, 0, 0),
        Field::EthSrc => (4, 16, 0),
        Field::VlanVid => (4, 3, 0),
        Field::VlanPcp => (4, 0, 0),
        Field::IpProto => (5, 40, NET),
        Field::IpDscp => (5, 34, NET),
        Field::IpEcn => (5, 32, NET),
        Field::TcpSrc | Field::UdpSrc | Field::SctpSrc | Field::Icmpv4Type | Field::Icmpv6Type => {
            (5, 16, NET | L4)
        }
        Field::TcpDst | Field::UdpDst | Field::SctpDst | Field::Icmpv4Code | Field::Icmpv6Code => {
            (5, 0, NET | L4)
        }
        Field::Ipv4Src | Field::ArpSpa => (6, 32, NET),
        Field::Ipv4Dst | Field::ArpTpa => (6, 0, NET),
        Field::ArpSha => (7, 16, NET),
        Field::ArpOp => (7, 0, NET),
        Field::ArpTha => (8, 16, NET),
        Field::Ipv6Src => (6, 0, NET),
        Field::Ipv6Dst => (8, 0, NET),
        Field::Ipv6Flabel => (10, 44, NET),
        Field::Ipv6Exthdr => (10, 32, NET),
        Field::MplsLabel => (10, 12, NET),
        Field::MplsTc => (10, 9, NET),
        Field::MplsBos => (10, 8, NET),
        Field::PbbIsid => (10, 8, NET),
        Field::Ipv6NdTarget => (11, 0, NET | L4 | ND_TARGET),
        Field::Ipv6NdSll => (13, 0, NET | L4 | ND_SLL),
        Field::Ipv6NdTll => (13, 0, NET | L4 | ND_TLL),
    }
}

impl Key {
    /// Writes a field; what is beyond its width is cut off.
    #[inline]
    pub fn set(&mut self, field: Field, value: u128) {
        let (word, shift, _) = place(field);
        let value = value & field.all_ones();
        if field.bits() == 128 {
            self.0[word] = (value >> 64) as u64;
            self.0[word + 1] = value as u64;
        } else {
            let ones = (field.all_ones() as u64) << shift;
            self.0[word] = self.0[word] & !ones | (value as u64) << shift;
        }
    }

    /// Reads a field, whether the packet has it or not.
    #[inline]
    pub fn get(&self, field: Field) -> u128 {
        let (word, shift, _) = place(field);
        if field.bits() == 128 {
            u128::from(self.0[word]) << 64 | u128::from(self.0[word + 1])
        } else {
            u128::from(self.0[word] >> shift) & field.all_ones()
        }
    }

    /// Value of a field that the packet has: `None` for what is not in it.
    pub fn field(&self, field: Field) -> Option<u128> {
        let there = match field {
            Field::VlanPcp => self.get(Field::VlanVid) != 0,
            Field::InPort
            | Field::InPhyPort
            | Field::Metadata
            | Field::TunnelId
            | Field::EthDst
            | Field::EthSrc
            | Field::EthType
            | Field::VlanVid => true,
            _ => {
                let met = tandem_openflow::oxm::prerequisites_met(field, |f| Some(self.get(f)));
                met && self.has(place(field).2)
            }
        };
        there.then(|| self.get(field))
    }

    /// A word.
    #[inline]
    pub fn word(&self, at: u8) -> u64 {
        self.0.get(usize::from(at)).copied().unwrap_or_default()
    }

    /// Does the packet have all of these of [`THERE`]?
    #[inline]
    pub fn has(&self, there: u64) -> bool {
        self.0[THERE] & there == there
    }

    /// Value and mask of a match.
    pub fn of_match(oxms: &[Oxm]) -> (Key, Key) {
        let (mut value, mut mask) = (Key::default(), Key::default());
        for o in oxms.iter().filter(|o| o.mask != 0) {
            value.set(o.field, value.get(o.field) | o.value & o.mask);
            mask.set(o.field, mask.get(o.field) | o.mask);
            let there = place(o.field).2;
            value.0[THERE] |= there;
            mask.0[THERE] |= there;
        }
        (value, mask)
    }

    /// Both at once.
    #[inline]
    pub fn and(&self, other: &Key) -> Key {
        let mut k = *self;
        for (a, b) in k.0.iter_mut().zip(other.0) {
            *a &= b;
        }
        k
    }

    /// What one of them has.
    pub fn or(&self, other: &Key) -> Key {
        let mut k = *self;
        for (a, b) in k.0.iter_mut().zip(other.0) {
            *a |= b;
        }
        k
    }

    /// Has `other` no bit that this has not?
    pub fn covers(&self, other: &Key) -> bool {
        self.0.iter().zip(other.0).all(|(a, b)| a & b == b)
    }

    /// As a mask: what decides among rules of one priority that match one packet. The one with more bits comes first, and
    /// of as many, the one whose words are greater. The bits of [`THERE`] do not count.
    pub fn rank(&self) -> (u32, Key) {
        let mut bits = *self;
        bits.0[THERE] &= NET - 1;
        (bits.0.iter().map(|w| w.count_ones()).sum(), bits)
    }

    /// Which words are not zero, a bit each.
    pub fn used(&self) -> u16 {
        let mut used = 0;
        for (n, w) in self.0.iter().enumerate() {
            used |= u16::from(*w != 0) << n;
        }
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_keeps_its_value_beside_those_it_may_stand_with() {
        for field in Field::ALL {
            let mut k = Key([u64::MAX; WORDS]);
            k.set(field, 0);
            assert_eq!(k.get(field), 0);
            let zeroes: u32 = k.0.iter().map(|w| w.count_zeros()).sum();
            assert_eq!(zeroes, u32::from(field.bits()), "{field:?}");
            let mut k = Key::default();
            k.set(field, u128::MAX);
            assert_eq!(k.get(field), field.all_ones());
            let ones: u32 = k.0.iter().map(|w| w.count_ones()).sum();
            assert_eq!(ones, u32::from(field.bits()), "{field:?}");
        }
    }

    #[test]
    fn fields_that_can_be_matched_together_do_not_share_bits() {
        let mask = |f: Field| {
            let mut k = Key::default();
            k.set(f, u128::MAX);
            k
        };
        let together: [&[Field]; 5] = [
            &[
                Field::InPort,
                Field::InPhyPort,
                Field::Metadata,
                Field::TunnelId,
                Field::EthDst,
                Field::EthSrc,
                Field::EthType,
                Field::VlanVid,
                Field::VlanPcp,
            ],
            &[
                Field::IpProto,
                Field::IpDscp,
                Field::IpEcn,
                Field::TcpSrc,
                Field::TcpDst,
                Field::Ipv4Src,
                Field::Ipv4Dst,
            ],
            &[
                Field::IpProto,
                Field::IpDscp,
                Field::IpEcn,
                Field::Icmpv6Type,
                Field::Icmpv6Code,
                Field::Ipv6Src,
                Field::Ipv6Dst,
                Field::Ipv6Flabel,
                Field::Ipv6Exthdr,
                Field::Ipv6NdTarget,
                Field::Ipv6NdSll,
            ],
            &[
                Field::ArpOp,
                Field::ArpSha,
                Field::ArpSpa,
                Field::ArpTha,
                Field::ArpTpa,
            ],
            &[Field::MplsLabel, Field::MplsTc, Field::MplsBos],
        ];
        for set in &together[1..] {
            let all: Vec<Field> = together[0].iter().chain(*set).copied().collect();
            for (i, a) in all.iter().enumerate() {
                for b in &all[i + 1..] {
                    assert_eq!(mask(*a).and(&mask(*b)), Key::default(), "{a:?} {b:?}");
                }
            }
        }
    }
}
