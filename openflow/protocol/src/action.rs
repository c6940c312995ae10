// SPDX-License-Identifier: Apache-2.0
//! Actions (§7.2.5; 1.0 §5.2.4) and instructions (§7.2.4), as values.

use crate::Field;

/// One action. 1.0's are here as well, where 1.3 has none of the same meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// To a port ([`crate::port`] has the reserved ones); `max_len`: bytes for the controller.
    #[allow(missing_docs)]
    Output { port: u32, max_len: u16 },
    /// The TTL of the next header becomes that of the outermost.
    CopyTtlOut,
    /// The TTL of the outermost header becomes that of the next.
    CopyTtlIn,
    /// The outermost MPLS header's TTL.
    SetMplsTtl(u8),
    /// The outermost MPLS header's TTL, less one; invalid at 0 or 1.
    DecMplsTtl,
    /// EtherType 0x8100 or 0x88a8.
    PushVlan(u16),
    /// The outermost tag.
    PopVlan,
    /// EtherType 0x8847 or 0x8848.
    PushMpls(u16),
    /// The EtherType of what is below.
    PopMpls(u16),
    /// For outputs that follow.
    SetQueue(u32),
    /// Through a group.
    Group(u32),
    /// IPv4's TTL, IPv6's hop limit.
    SetNwTtl(u8),
    /// IPv4's TTL or IPv6's hop limit, less one; invalid at 0 or 1.
    DecNwTtl,
    /// [`Field::settable`] alone, value within its bits.
    #[allow(missing_docs)]
    SetField { field: Field, value: u128 },
    /// EtherType 0x88e7.
    PushPbb(u16),
    /// The outermost service tag with the backbone's Ethernet header.
    PopPbb,
    /// 1.0, `OFPAT_SET_VLAN_VID`: the tag's VLAN, with a new tag of priority 0 when there is none.
    SetVlanVid10(u16),
    /// 1.0, `OFPAT_SET_VLAN_PCP`: the tag's priority, with a new tag of VLAN 0 when there is none.
    SetVlanPcp10(u8),
    /// 1.0, `OFPAT_STRIP_VLAN`: nothing when there is no tag.
    StripVlan10,
    /// 1.0, `OFPAT_SET_NW_SRC`, `_DST`: of IPv4; nothing for other packets.
    #[allow(missing_docs)]
    SetNw10 { dst: bool, addr: u32 },
    /// 1.0, `OFPAT_SET_NW_TOS`: the upper six bits of IPv4's TOS, or of IPv6's traffic class.
    SetNwTos10(u8),
    /// 1.0, `OFPAT_SET_TP_SRC`, `_DST`: of TCP or UDP, over IPv4 or IPv6; nothing for other packets.
    #[allow(missing_docs)]
    SetTp10 { dst: bool, port: u16 },
    /// 1.0, `OFPAT_ENQUEUE`.
    #[allow(missing_docs)]
    Enqueue10 { port: u32, queue: u32 },
}

/// The instructions of a flow: each at most once, carried out in this order (§5.9).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Instructions {
    /// First of all; the packet may end here.
    pub meter: Option<u32>,
    /// At once, in their order; `None` and an empty list are two things: table features and dumps show them.
    pub apply: Option<Vec<Action>>,
    /// Empties the action set.
    pub clear: bool,
    /// Into the action set.
    pub write: Option<Vec<Action>>,
    /// Value and mask.
    pub metadata: Option<(u64, u64)>,
    /// To a later table.
    pub goto: Option<u8>,
}
