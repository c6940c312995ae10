// SPDX-License-Identifier: Apache-2.0
//! `ofp_match` of 1.0 (1.0 §5.2.3): a structure of twelve fields, with a bit or a number of bits that are wildcards.

use crate::oxm::VID_PRESENT;
use crate::wire::{Put, Reader, Result, mac_number};
use crate::{Error, Field, Match, Oxm, port};

const IN_PORT: u32 = 1;
const DL_VLAN: u32 = 1 << 1;
const DL_SRC: u32 = 1 << 2;
const DL_DST: u32 = 1 << 3;
const DL_TYPE: u32 = 1 << 4;
const NW_PROTO: u32 = 1 << 5;
const TP_SRC: u32 = 1 << 6;
const TP_DST: u32 = 1 << 7;
const NW_SRC_SHIFT: u32 = 8;
const NW_DST_SHIFT: u32 = 14;
const NW_BITS: u32 = 0x3f;
const DL_VLAN_PCP: u32 = 1 << 20;
const NW_TOS: u32 = 1 << 21;
/// `OFPFW_ALL`.
pub(super) const ALL: u32 = (1 << 22) - 1;
/// `OFP_VLAN_NONE`.
const VLAN_NONE: u16 = 0xffff;
const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
/// 1.0 does not speak of it; but for addresses, its controllers mean by the same fields what they mean of IPv4, and so
/// do Open vSwitch and os-ken's switch tester.
const IPV6: u16 = 0x86dd;

/// Fields that the packet type does not have are wildcards, whatever their bits say (1.0 §3.4: what the header does
/// not have is not looked at). The EtherType 0x05ff stands for frames that have none (1.0 §3.4, table 3).
pub(super) fn decode(r: &mut Reader<'_>) -> Result<Match> {
    let start = *r;
    let wildcards = r.u32()? & ALL;
    let in_port = r.u16()?;
    let (dl_src, dl_dst) = (r.mac()?, r.mac()?);
    let (dl_vlan, dl_vlan_pcp) = (r.u16()?, r.u8()?);
    r.skip(1)?;
    let (dl_type, nw_tos, nw_proto) = (r.u16()?, r.u8()?, r.u8()?);
    r.skip(2)?;
    let (nw_src, nw_dst, tp_src, tp_dst) = (r.u32()?, r.u32()?, r.u16()?, r.u16()?);
    let asked = |bit: u32| wildcards & bit == 0;
    let mut fields = Vec::new();
    let mut exact = |field: Field, value: u128| fields.push(Oxm::exact(field, value));
    if asked(IN_PORT) {
        exact(Field::InPort, u128::from(port::from10(in_port)));
    }
    if asked(DL_DST) {
        exact(Field::EthDst, mac_number(dl_dst));
    }
    if asked(DL_SRC) {
        exact(Field::EthSrc, mac_number(dl_src));
    }
    if asked(DL_TYPE) {
        exact(Field::EthType, u128::from(dl_type));
    }
    let value = |what: &'static str, most: u64, got: u64| {
        start.bad(Error::BAD_MATCH_BAD_VALUE, what, most, got)
    };
    let pcp = asked(DL_VLAN_PCP) && !(asked(DL_VLAN) && dl_vlan == VLAN_NONE);
    if asked(DL_VLAN) {
        if dl_vlan > 0xfff && dl_vlan != VLAN_NONE {
            return Err(value("dl_vlan", 0xfff, u64::from(dl_vlan)));
        }
        let vid = if dl_vlan == VLAN_NONE {
            0
        } else {
            dl_vlan | VID_PRESENT
        };
        exact(Field::VlanVid, u128::from(vid));
    } else if pcp {
        // of any VLAN, but with a tag
        let present = u128::from(VID_PRESENT);
        fields.push(Oxm::masked(Field::VlanVid, present, present));
    }
    let mut exact = |field: Field, value: u128| fields.push(Oxm::exact(field, value));
    if pcp {
        if dl_vlan_pcp > 7 {
            return Err(value("dl_vlan_pcp", 7, u64::from(dl_vlan_pcp)));
        }
        exact(Field::VlanPcp, u128::from(dl_vlan_pcp));
    }
    let ether = asked(DL_TYPE).then_some(dl_type);
    let ip = matches!(ether, Some(IPV4 | IPV6));
    if ip && asked(NW_TOS) {
        exact(Field::IpDscp, u128::from(nw_tos >> 2));
    }
    if ip && asked(NW_PROTO) {
        exact(Field::IpProto, u128::from(nw_proto));
    }
    if ether == Some(ARP) && asked(NW_PROTO) {
        // the lower eight bits of the opcode
        exact(Field::ArpOp, u128::from(nw_proto));
    }
    let addresses = match ether {
        Some(IPV4) => Some((Field::Ipv4Src, Field::Ipv4Dst)),
        Some(ARP) => Some((Field::ArpSpa, Field::ArpTpa)),
        _ => None,
    };
    if let Some((src, dst)) = addresses {
        for (shift, field, addr) in [(NW_SRC_SHIFT, src, nw_src), (NW_DST_SHIFT, dst, nw_dst)] {
            if let Some(mask) = u32::MAX.checked_shl(wildcards >> shift & NW_BITS) {
                fields.push(Oxm::masked(field, u128::from(addr), u128::from(mask)));
            }
        }
    }
    let l4 = ether.filter(|_| ip && asked(NW_PROTO));
    if let Some((src, dst)) = l4.and_then(|ether| l4_fields(ether, nw_proto)) {
        for (bit, field, port) in [(TP_SRC, src, tp_src), (TP_DST, dst, tp_dst)] {
            if asked(bit) {
                if u128::from(port) > field.all_ones() {
                    return Err(value(field.name(), 0xff, u64::from(port)));
                }
                fields.push(Oxm::exact(field, u128::from(port)));
            }
        }
    }
    Ok(Match {
        fields,
        exact: wildcards == 0,
    })
}

/// What `tp_src` and `tp_dst` are.
fn l4_fields(ether: u16, proto: u8) -> Option<(Field, Field)> {
    match (ether, proto) {
        (IPV4, 1) => Some((Field::Icmpv4Type, Field::Icmpv4Code)),
        (IPV6, 58) => Some((Field::Icmpv6Type, Field::Icmpv6Code)),
        (_, 6) => Some((Field::TcpSrc, Field::TcpDst)),
        (_, 17) => Some((Field::UdpSrc, Field::UdpDst)),
        _ => None,
    }
}

#[derive(Default)]
struct Ten {
    in_port: u16,
    dl_src: u128,
    dl_dst: u128,
    dl_vlan: u16,
    dl_vlan_pcp: u8,
    dl_type: u16,
    nw_tos: u8,
    nw_proto: u8,
    nw_src: u32,
    nw_dst: u32,
    tp_src: u16,
    tp_dst: u16,
}

/// Fields and masks that 1.0 does not have are left out.
pub(super) fn encode(m: &Match, out: &mut Vec<u8>) {
    let mut wildcards = ALL;
    let mut ten = Ten::default();
    for oxm in &m.fields {
        let v = oxm.value;
        let whole = oxm.mask == oxm.field.all_ones();
        let bit = match oxm.field {
            Field::InPort => {
                ten.in_port = port::to10(v as u32).unwrap_or(0xffff);
                IN_PORT
            }
            Field::EthSrc if whole => {
                ten.dl_src = v;
                DL_SRC
            }
            Field::EthDst if whole => {
                ten.dl_dst = v;
                DL_DST
            }
            Field::EthType => {
                ten.dl_type = v as u16;
                DL_TYPE
            }
            Field::VlanVid if whole => {
                ten.dl_vlan = if v == 0 { VLAN_NONE } else { v as u16 & 0xfff };
                DL_VLAN
            }
            Field::VlanPcp => {
                ten.dl_vlan_pcp = v as u8;
                DL_VLAN_PCP
            }
            Field::IpDscp => {
                ten.nw_tos = (v as u8) << 2;
                NW_TOS
            }
            Field::IpProto | Field::ArpOp if v <= 0xff => {
                ten.nw_proto = v as u8;
                NW_PROTO
            }
            Field::Ipv4Src | Field::ArpSpa => {
                ten.nw_src = v as u32;
                wildcards &= !(NW_BITS << NW_SRC_SHIFT);
                wildcards |= (oxm.mask as u32).count_zeros() << NW_SRC_SHIFT;
                0
            }
            Field::Ipv4Dst | Field::ArpTpa => {
                ten.nw_dst = v as u32;
                wildcards &= !(NW_BITS << NW_DST_SHIFT);
                wildcards |= (oxm.mask as u32).count_zeros() << NW_DST_SHIFT;
                0
            }
            Field::TcpSrc | Field::UdpSrc | Field::Icmpv4Type | Field::Icmpv6Type => {
                ten.tp_src = v as u16;
                TP_SRC
            }
            Field::TcpDst | Field::UdpDst | Field::Icmpv4Code | Field::Icmpv6Code => {
                ten.tp_dst = v as u16;
                TP_DST
            }
            _ => 0,
        };
        wildcards &= !bit;
    }
    out.put32(if m.exact { 0 } else { wildcards });
    out.put16(ten.in_port);
    out.put_number(ten.dl_src, 6);
    out.put_number(ten.dl_dst, 6);
    out.put16(ten.dl_vlan);
    out.put8(ten.dl_vlan_pcp);
    out.zeros(1);
    out.put16(ten.dl_type);
    out.put8(ten.nw_tos);
    out.put8(ten.nw_proto);
    out.zeros(2);
    out.put32(ten.nw_src);
    out.put32(ten.nw_dst);
    out.put16(ten.tp_src);
    out.put16(ten.tp_dst);
}
