// SPDX-License-Identifier: Apache-2.0
//! Set-field (§7.2.5.1) and 1.0's actions that set.
use super::{Effect, Packet};
use crate::key;
use crate::parse::Net;
use tandem_openflow::Field;
use tandem_openflow::oxm::VID_PRESENT;

fn low<const N: usize>(value: u128) -> [u8; N] {
    let all = value.to_be_bytes();
    all.last_chunk().copied().unwrap_or([0; N])
}

impl Packet<'_, '_> {
    /// Sets a field; nothing if the packet has none.
    pub fn set_field(&mut self, field: Field, value: u128) -> Effect {
        let value = value & field.all_ones();
        match field {
            Field::TunnelId => {}
            Field::EthDst => self.write(0, &low::<6>(value)),
            Field::EthSrc => self.write(6, &low::<6>(value)),
            Field::EthType => {
                self.write(self.lay.type_at, &low::<2>(value));
                return self.parse();
            }
            Field::VlanVid | Field::VlanPcp => {
                if !self.lay.tagged {
                    return Effect::None;
                }
                let [a, b] = [self.byte(14), self.byte(15)];
                let tci = u16::from_be_bytes([a, b]);
                let v = value as u16;
                let tci = if field == Field::VlanVid {
                    tci & 0xf000 | v & 0x0fff
                } else {
                    tci & 0x1fff | v << 13
                };
                self.write(14, &tci.to_be_bytes());
                if field == Field::VlanVid {
                    self.key.set(field, value | u128::from(VID_PRESENT));
                    return Effect::Fields;
                }
            }
            Field::IpDscp
            | Field::IpEcn
            | Field::IpProto
            | Field::Ipv4Src
            | Field::Ipv4Dst
            | Field::Ipv6Src
            | Field::Ipv6Dst
            | Field::Ipv6Flabel => return self.set_ip(field, value),
            Field::ArpOp | Field::ArpSpa | Field::ArpTpa | Field::ArpSha | Field::ArpTha => {
                if self.lay.net != Net::Arp {
                    return Effect::None;
                }
                let at = self.lay.net_at;
                match field {
                    Field::ArpOp => self.write(at + 6, &low::<2>(value)),
                    Field::ArpSha => self.write(at + 8, &low::<6>(value)),
                    Field::ArpSpa => self.write(at + 14, &low::<4>(value)),
                    Field::ArpTha => self.write(at + 18, &low::<6>(value)),
                    _ => self.write(at + 24, &low::<4>(value)),
                }
            }
            Field::MplsLabel | Field::MplsTc | Field::MplsBos => {
                if self.lay.net != Net::Mpls {
                    return Effect::None;
                }
                let mut shim = self.shim(self.lay.net_at);
                let (shift, ones) = match field {
                    Field::MplsLabel => (12, 0xf_ffff),
                    Field::MplsTc => (9, 7),
                    _ => (8, 1),
                };
                shim = shim & !(ones << shift) | (value as u32) << shift;
                self.write(self.lay.net_at, &shim.to_be_bytes());
            }
            Field::PbbIsid => {
                if self.lay.net != Net::Pbb {
                    return Effect::None;
                }
                self.write(self.lay.net_at + 1, &low::<3>(value));
            }
            Field::TcpSrc
            | Field::TcpDst
            | Field::UdpSrc
            | Field::UdpDst
            | Field::SctpSrc
            | Field::SctpDst
            | Field::Icmpv4Type
            | Field::Icmpv4Code
            | Field::Icmpv6Type
            | Field::Icmpv6Code
            | Field::Ipv6NdTarget
            | Field::Ipv6NdSll
            | Field::Ipv6NdTll => return self.set_l4(field, value),
            Field::InPort | Field::InPhyPort | Field::Metadata | Field::Ipv6Exthdr => {
                return Effect::None;
            }
        }
        self.key.set(field, value);
        Effect::Fields
    }

    fn set_ip(&mut self, field: Field, value: u128) -> Effect {
        let at = self.lay.net_at;
        match (field, self.lay.net) {
            (Field::IpDscp, net @ (Net::Ip4 | Net::Ip6)) => {
                self.set_tos(net, (value as u8) << 2, 0xfc);
            }
            (Field::IpEcn, net @ (Net::Ip4 | Net::Ip6)) => {
                self.set_tos(net, value as u8, 0x03);
            }
            (Field::IpProto, Net::Ip4) => {
                let [old, new] = [self.byte(at + 9), value as u8];
                self.write_ip4(at, at + 8, [self.byte(at + 8), new]);
                return self.protocol_changed(old, new);
            }
            (Field::IpProto, Net::Ip6) => {
                let [old, new] = [self.byte(self.lay.proto_at), value as u8];
                self.write(self.lay.proto_at, &[new]);
                return self.protocol_changed(old, new);
            }
            (Field::Ipv4Src, Net::Ip4) => self.write_pseudo(at + 12, low::<4>(value)),
            (Field::Ipv4Dst, Net::Ip4) => self.write_pseudo(at + 16, low::<4>(value)),
            (Field::Ipv6Src, Net::Ip6) => self.write_pseudo(at + 8, low::<16>(value)),
            (Field::Ipv6Dst, Net::Ip6) if self.lay.routed => {
                self.write(at + 24, &low::<16>(value));
            }
            (Field::Ipv6Dst, Net::Ip6) => self.write_pseudo(at + 24, low::<16>(value)),
            (Field::Ipv6Flabel, Net::Ip6) => {
                let [_, a, b, c] = (value as u32).to_be_bytes();
                let a = self.byte(at + 1) & 0xf0 | a;
                self.write(at + 1, &[a, b, c]);
            }
            _ => return Effect::None,
        }
        self.key.set(field, value);
        Effect::Fields
    }

    fn set_tos(&mut self, net: Net, value: u8, mask: u8) {
        let at = self.lay.net_at;
        if net == Net::Ip4 {
            let tos = self.byte(at + 1) & !mask | value & mask;
            self.write_ip4(at, at, [self.byte(at), tos]);
        } else {
            let [a, b] = [self.byte(at), self.byte(at + 1)];
            let class = (a << 4 | b >> 4) & !mask | value & mask;
            self.write(at, &[a & 0xf0 | class >> 4, class << 4 | b & 0x0f]);
        }
    }

    fn protocol_changed(&mut self, old: u8, new: u8) -> Effect {
        if !matches!(self.lay.sum_proto, 1 | 132) {
            self.adjust_l4(&[0, old], &[0, new]);
        }
        self.parse()
    }

    fn set_l4(&mut self, field: Field, value: u128) -> Effect {
        if !self.key.has(key::place(field).2) || self.lay.l4_at == 0 {
            return Effect::None;
        }
        let protocol = match field {
            Field::TcpSrc | Field::TcpDst => 6,
            Field::UdpSrc | Field::UdpDst => 17,
            Field::SctpSrc | Field::SctpDst => 132,
            Field::Icmpv4Type | Field::Icmpv4Code => 1,
            _ => 58,
        };
        if !self.is(Field::IpProto, &[protocol]) {
            return Effect::None;
        }
        let at = self.lay.l4_at;
        match field {
            Field::TcpSrc | Field::UdpSrc | Field::SctpSrc => self.write_l4(at, low::<2>(value)),
            Field::TcpDst | Field::UdpDst | Field::SctpDst => {
                self.write_l4(at + 2, low::<2>(value));
            }
            Field::Icmpv4Type | Field::Icmpv6Type => {
                self.write_l4(at, [value as u8, self.byte(at + 1)]);
                if field == Field::Icmpv6Type {
                    return self.parse();
                }
            }
            Field::Icmpv4Code | Field::Icmpv6Code => {
                self.write_l4(at, [self.byte(at), value as u8]);
            }
            Field::Ipv6NdTarget => self.write_l4(at + 8, low::<16>(value)),
            Field::Ipv6NdSll => self.write_l4(self.lay.sll_at, low::<6>(value)),
            _ => self.write_l4(self.lay.tll_at, low::<6>(value)),
        }
        self.key.set(field, value);
        Effect::Fields
    }

    /// 1.0, `OFPAT_SET_VLAN_VID` and `OFPAT_SET_VLAN_PCP`: of the tag, or of a new one.
    pub fn set_vlan10(&mut self, field: Field, value: u16) -> Effect {
        let made = if self.lay.tagged {
            Effect::None
        } else {
            self.push_vlan(0x8100)
        };
        match (made, self.set_field(field, u128::from(value))) {
            (Effect::None, set) => set,
            (made, _) => made,
        }
    }

    /// 1.0, `OFPAT_SET_NW_SRC`, `_DST`: IPv4 alone.
    pub fn set_nw10(&mut self, dst: bool, addr: u32) -> Effect {
        let field = if dst { Field::Ipv4Dst } else { Field::Ipv4Src };
        self.set_field(field, u128::from(addr))
    }

    /// 1.0, `OFPAT_SET_NW_TOS`: of IPv6 too, as its match means it.
    pub fn set_tos10(&mut self, tos: u8) -> Effect {
        match self.lay.net {
            Net::Ip4 | Net::Ip6 => self.set_field(Field::IpDscp, u128::from(tos >> 2)),
            _ => Effect::None,
        }
    }

    /// 1.0, `OFPAT_SET_TP_SRC`, `_DST`: TCP and UDP, of IPv6 too.
    pub fn set_tp10(&mut self, dst: bool, port: u16) -> Effect {
        if !matches!(self.lay.net, Net::Ip4 | Net::Ip6) {
            return Effect::None;
        }
        let field = match (self.key.get(Field::IpProto), dst) {
            (6, false) => Field::TcpSrc,
            (6, true) => Field::TcpDst,
            (17, false) => Field::UdpSrc,
            (17, true) => Field::UdpDst,
            _ => return Effect::None,
        };
        self.set_field(field, u128::from(port))
    }
}
