// SPDX-License-Identifier: Apache-2.0
//! Match fields (§7.2.3, table 12): class `OPENFLOW_BASIC`, their widths, masks and prerequisites.

/// `OFPXMC_OPENFLOW_BASIC`.
pub const CLASS_BASIC: u16 = 0x8000;
/// `OFPXMC_EXPERIMENTER`.
pub const CLASS_EXPERIMENTER: u16 = 0xffff;
/// `OFPVID_PRESENT`, the bit of [`Field::VlanVid`] that says that there is a tag.
pub const VID_PRESENT: u16 = 0x1000;

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $bits:literal, $mask:literal, $word:literal;)*) => {
        /// A field of a packet or of its way through the pipeline; the number is that of `oxm_ofb_match_fields`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Field { $(#[doc = concat!("`", $word, "`.")] $(#[$doc])* $name = $number,)* }

        impl Field {
            /// All fields, by number.
            pub const ALL: [Field; 40] = [$(Field::$name,)*];

            /// Width in bits.
            pub const fn bits(self) -> u8 {
                match self { $(Field::$name => $bits,)* }
            }

            /// May a mask be given?
            pub const fn maskable(self) -> bool {
                match self { $(Field::$name => $mask,)* }
            }

            /// As `ovs-ofctl` and os-ken write it.
            pub const fn name(self) -> &'static str {
                match self { $(Field::$name => $word,)* }
            }

            /// The field of a number of class `OPENFLOW_BASIC`.
            pub const fn of(number: u8) -> Option<Field> {
                match number { $($number => Some(Field::$name),)* _ => None }
            }
        }
    };
}

fields! {
    InPort = 0, 32, false, "in_port";
    InPhyPort = 1, 32, false, "in_phy_port";
    Metadata = 2, 64, true, "metadata";
    EthDst = 3, 48, true, "eth_dst";
    EthSrc = 4, 48, true, "eth_src";
    EthType = 5, 16, false, "eth_type";
    /// 13 bits: the highest is [`VID_PRESENT`].
    VlanVid = 6, 13, true, "vlan_vid";
    VlanPcp = 7, 3, false, "vlan_pcp";
    IpDscp = 8, 6, false, "ip_dscp";
    IpEcn = 9, 2, false, "ip_ecn";
    IpProto = 10, 8, false, "ip_proto";
    Ipv4Src = 11, 32, true, "ipv4_src";
    Ipv4Dst = 12, 32, true, "ipv4_dst";
    TcpSrc = 13, 16, false, "tcp_src";
    TcpDst = 14, 16, false, "tcp_dst";
    UdpSrc = 15, 16, false, "udp_src";
    UdpDst = 16, 16, false, "udp_dst";
    SctpSrc = 17, 16, false, "sctp_src";
    SctpDst = 18, 16, false, "sctp_dst";
    Icmpv4Type = 19, 8, false, "icmpv4_type";
    Icmpv4Code = 20, 8, false, "icmpv4_code";
    ArpOp = 21, 16, false, "arp_op";
    ArpSpa = 22, 32, true, "arp_spa";
    ArpTpa = 23, 32, true, "arp_tpa";
    ArpSha = 24, 48, true, "arp_sha";
    ArpTha = 25, 48, true, "arp_tha";
    Ipv6Src = 26, 128, true, "ipv6_src";
    Ipv6Dst = 27, 128, true, "ipv6_dst";
    Ipv6Flabel = 28, 20, true, "ipv6_flabel";
    Icmpv6Type = 29, 8, false, "icmpv6_type";
    Icmpv6Code = 30, 8, false, "icmpv6_code";
    Ipv6NdTarget = 31, 128, false, "ipv6_nd_target";
    Ipv6NdSll = 32, 48, false, "ipv6_nd_sll";
    Ipv6NdTll = 33, 48, false, "ipv6_nd_tll";
    MplsLabel = 34, 20, false, "mpls_label";
    MplsTc = 35, 3, false, "mpls_tc";
    MplsBos = 36, 1, false, "mpls_bos";
    PbbIsid = 37, 24, true, "pbb_isid";
    TunnelId = 38, 64, true, "tunnel_id";
    /// Bits of `ofp_ipv6exthdr_flags` (§7.2.3.8).
    Ipv6Exthdr = 39, 9, true, "ipv6_exthdr";
}

impl Field {
    /// Bytes of the value on the wire (the mask has as many): labels of 20 bits are in four (§7.2.3.7, table 12).
    pub const fn bytes(self) -> usize {
        match self.bits() {
            20 => 4,
            bits => (bits as usize).div_ceil(8),
        }
    }

    /// All of the field's bits.
    pub const fn all_ones(self) -> u128 {
        if self.bits() == 128 {
            u128::MAX
        } else {
            (1 << self.bits()) - 1
        }
    }

    /// Is it what a set-field action may name? Not the two ports and not what only exists to be matched (§7.2.5.1,
    /// which forbids `IN_PORT`, `IN_PHY_PORT` and `METADATA`). The extension headers' bits are what the packet has,
    /// there is nothing to write.
    pub const fn settable(self) -> bool {
        !matches!(
            self,
            Field::InPort | Field::InPhyPort | Field::Metadata | Field::Ipv6Exthdr
        )
    }
}

/// One match field with its mask, or with a value to set. Values are numbers: the bytes of the wire, big endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oxm {
    /// Which.
    pub field: Field,
    /// Within [`Field::all_ones`]; zero where the mask is.
    pub value: u128,
    /// Bits that count; [`Field::all_ones`] when the wire had none.
    pub mask: u128,
}

impl Oxm {
    /// All bits of `field` are to be `value`.
    pub const fn exact(field: Field, value: u128) -> Oxm {
        Oxm {
            field,
            value: value & field.all_ones(),
            mask: field.all_ones(),
        }
    }

    /// The bits of `mask` are to be as `value` has them.
    pub const fn masked(field: Field, value: u128, mask: u128) -> Oxm {
        let mask = mask & field.all_ones();
        Oxm {
            field,
            value: value & mask,
            mask,
        }
    }
}

/// What must have been matched before `field` may be (table 12, *Pre-requisite*), given what is matched already:
/// `exact(field)` answers with the exact value that is asked of a field, `None` when there is none or it is masked.
pub fn prerequisites_met(field: Field, exact: impl Fn(Field) -> Option<u128>) -> bool {
    let ether = |of: &[u128]| exact(Field::EthType).is_some_and(|v| of.contains(&v));
    let proto = |of: u128| ether(&[0x0800, 0x86dd]) && exact(Field::IpProto) == Some(of);
    let icmp6 = |of: &[u128]| {
        ether(&[0x86dd])
            && exact(Field::IpProto) == Some(58)
            && exact(Field::Icmpv6Type).is_some_and(|v| of.contains(&v))
    };
    match field {
        Field::InPort
        | Field::Metadata
        | Field::EthDst
        | Field::EthSrc
        | Field::EthType
        | Field::VlanVid
        | Field::TunnelId => true,
        Field::InPhyPort => exact(Field::InPort).is_some(),
        // The caller knows what of a tag is matched; 0 of VLAN_VID is "no tag", which has no priority
        Field::VlanPcp => exact(Field::VlanVid).is_some_and(|v| v != 0),
        Field::IpDscp | Field::IpEcn | Field::IpProto => ether(&[0x0800, 0x86dd]),
        Field::Ipv4Src | Field::Ipv4Dst => ether(&[0x0800]),
        Field::TcpSrc | Field::TcpDst => proto(6),
        Field::UdpSrc | Field::UdpDst => proto(17),
        Field::SctpSrc | Field::SctpDst => proto(132),
        Field::Icmpv4Type | Field::Icmpv4Code => {
            ether(&[0x0800]) && exact(Field::IpProto) == Some(1)
        }
        Field::ArpOp | Field::ArpSpa | Field::ArpTpa | Field::ArpSha | Field::ArpTha => {
            ether(&[0x0806])
        }
        Field::Ipv6Src | Field::Ipv6Dst | Field::Ipv6Flabel | Field::Ipv6Exthdr => ether(&[0x86dd]),
        Field::Icmpv6Type | Field::Icmpv6Code => {
            ether(&[0x86dd]) && exact(Field::IpProto) == Some(58)
        }
        Field::Ipv6NdTarget => icmp6(&[135, 136]),
        Field::Ipv6NdSll => icmp6(&[135]),
        Field::Ipv6NdTll => icmp6(&[136]),
        Field::MplsLabel | Field::MplsTc | Field::MplsBos => ether(&[0x8847, 0x8848]),
        Field::PbbIsid => ether(&[0x88e7]),
    }
}
