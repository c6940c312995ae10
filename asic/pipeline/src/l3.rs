//! Routing: header checks, lookup, next hop, MTU, TTL, rewrite (RFC 1812, RFC 8200), in the order of `docs/mapping.md`.
//!
//! Whatever the kernel would do other than forward goes to the CPU with the frame still as it came in; only when
//! everything is decided are the bytes changed.

use tandem_abi::raw;
use tandem_packet::parse::{
    self, Ip4, Ip6, is_link_local6, is_martian_source4, is_martian_source6,
    is_unforwardable_source6,
};
use tandem_packet::{Gso, L3, Mac, rewrite};
use tandem_tables::exact::Place;
use tandem_tables::lpm::RouteId;

use crate::egress::Kind;
use crate::entry::{Action, FdbValue, HostValue, RouteTarget};
use crate::group::{hash4, hash6};
use crate::io::Sink;
use crate::names::{DropReason, Stage};
use crate::run::{Run, Step};
use crate::state::{EgressTag, NONE, RifConfig, RifPlace};
use crate::tag::DomainTag;

/// What the lookup found.
#[derive(Debug, Clone, Copy)]
enum Found {
    /// Out of this RIF to this neighbour.
    Forward(u16, Mac),
    Trap(u16),
    Drop(DropReason),
}

/// What was used, for activity bits.
#[derive(Debug, Clone, Copy)]
enum Used {
    Host(Place),
    Route4(RouteId),
    Route6(RouteId),
    Nothing,
}

/// The parts of an IP header that both versions share.
#[derive(Debug, Clone, Copy)]
struct Packet {
    v6: bool,
    ttl: u8,
    /// Header and payload in bytes.
    len: usize,
    /// Its sender is to be told of a shorter way.
    redirect: bool,
}

const LOCAL: u8 = raw::TND_TRAP_LOCAL as u8;

impl<S: Sink> Run<'_, '_, S> {
    /// A frame to the router MAC of `rif`.
    pub(crate) fn route(&mut self, rif: u16) -> Step<()> {
        self.stage(Stage::L3Header);
        let Some(config) = self.st.rif(rif).copied() else {
            return self.trap(raw::TND_TRAP_UNSUPPORTED);
        };
        let l3 = self.eth.l3(self.frame.bytes());
        if S::TRACE {
            self.trace(
                Stage::L3Header,
                format_args!("VRF {}, {}", config.vrf, ShowL3(&l3)),
            );
        }
        match &l3 {
            L3::Ip4(ip) => self.route4(rif, &config, ip, &l3),
            L3::Ip6(ip) => self.route6(rif, &config, ip, &l3),
            L3::Arp => self.trap(raw::TND_TRAP_ARP),
            L3::Other => {
                let reason = self.protocol_reason().unwrap_or(raw::TND_TRAP_L2_LOCAL);
                self.trap(reason)
            }
            L3::Bad(_) => self.trap(raw::TND_TRAP_ERROR),
        }
    }

    #[inline]
    fn route4(&mut self, rif: u16, config: &RifConfig, ip: &Ip4, l3: &L3) -> Step<()> {
        if ip.header_len != 20 {
            return self.trap(raw::TND_TRAP_OPTIONS);
        }
        if is_martian_source4(&ip.src) {
            return self.trap(raw::TND_TRAP_ERROR);
        }
        if parse::is_unroutable_dst4(&ip.dst) {
            return self.unroutable4(ip, l3);
        }
        self.stage(Stage::L3Lookup);
        let vrf = config.vrf;
        let (found, used) = match self.st.exact.get_host4(vrf, ip.dst) {
            Some(hit) => (host(hit.value), Used::Host(hit.place)),
            None => match self.st.lpm4.lookup(vrf, u32::from_be_bytes(ip.dst)) {
                Some(hit) => {
                    let target = RouteTarget::unpack(hit.value);
                    let seed = self.st.ecmp_hash;
                    let hash = |policy| hash4(ip, policy, seed);
                    (self.resolve(target, hash), Used::Route4(hit.id))
                }
                None => (Found::Trap(raw::TND_TRAP_LPM_MISS), Used::Nothing),
            },
        };
        self.trace_found(&found, &used);
        self.touch(used);
        if let Found::Trap(raw::TND_TRAP_LOCAL) = found {
            return self.trap(self.local_reason(l3));
        }
        if config.flags & (raw::TND_RIF_TRAP_ALL | raw::TND_RIF_V4) != raw::TND_RIF_V4 {
            return self.trap(raw::TND_TRAP_UNSUPPORTED);
        }
        if !self.source_ok4(config, &ip.src) {
            return self.trap(raw::TND_TRAP_ERROR);
        }
        let packet = Packet {
            v6: false,
            ttl: ip.ttl,
            len: usize::from(ip.total_len),
            redirect: false,
        };
        self.forward(rif, config, found, packet)
    }

    #[inline]
    fn route6(&mut self, rif: u16, config: &RifConfig, ip: &Ip6, l3: &L3) -> Step<()> {
        if ip.hop_by_hop {
            return self.trap(raw::TND_TRAP_OPTIONS);
        }
        if is_martian_source6(&ip.src) {
            return self.trap(raw::TND_TRAP_ERROR);
        }
        if ip.dst[0] == 0xff || is_link_local6(&ip.dst) || parse_special6(&ip.dst) {
            return self.unroutable6(ip, l3);
        }
        self.stage(Stage::L3Lookup);
        let vrf = config.vrf;
        let (found, used) = match self.st.exact.get_host6(vrf, ip.dst) {
            Some(hit) => (host(hit.value), Used::Host(hit.place)),
            None => match self.st.lpm6.lookup(vrf, u128::from_be_bytes(ip.dst)) {
                Some(hit) => {
                    let target = RouteTarget::unpack(hit.value);
                    let seed = self.st.ecmp_hash;
                    let hash = |policy| hash6(ip, policy, seed);
                    (self.resolve(target, hash), Used::Route6(hit.id))
                }
                None => (Found::Trap(raw::TND_TRAP_LPM_MISS), Used::Nothing),
            },
        };
        self.trace_found(&found, &used);
        self.touch(used);
        if let Found::Trap(raw::TND_TRAP_LOCAL) = found {
            return self.trap(self.local_reason(l3));
        }
        if config.flags & (raw::TND_RIF_TRAP_ALL | raw::TND_RIF_V6) != raw::TND_RIF_V6 {
            return self.trap(raw::TND_TRAP_UNSUPPORTED);
        }
        // Such a source may talk to us (that was LOCAL), but nobody forwards it.
        if is_unforwardable_source6(&ip.src) {
            return self.trap(raw::TND_TRAP_ERROR);
        }
        let packet = Packet {
            v6: true,
            ttl: ip.hop_limit,
            len: 40 + usize::from(ip.payload_len),
            redirect: false,
        };
        self.forward(rif, config, found, packet)
    }

    #[cold]
    fn unroutable4(&mut self, ip: &Ip4, l3: &L3) -> Step<()> {
        let own = self.local_reason(l3);
        let reason = match ip.dst {
            _ if own != raw::TND_TRAP_LOCAL => own,
            [255, 255, 255, 255] => raw::TND_TRAP_BROADCAST,
            [224..=239, ..] => raw::TND_TRAP_L2_MULTICAST,
            _ => raw::TND_TRAP_ERROR,
        };
        self.trap(reason)
    }

    #[cold]
    fn unroutable6(&mut self, ip: &Ip6, l3: &L3) -> Step<()> {
        let own = self.local_reason(l3);
        let reason = if own != raw::TND_TRAP_LOCAL || is_link_local6(&ip.dst) {
            own
        } else if ip.dst[0] == 0xff {
            raw::TND_TRAP_L2_MULTICAST
        } else {
            raw::TND_TRAP_ERROR
        };
        self.trap(reason)
    }

    /// The kernel takes no packet from outside that claims to be from one of its own addresses, and with loose reverse
    /// path filtering none whose source has no route. An entry that traps because something is missing below it proves
    /// nothing.
    #[inline]
    fn source_ok4(&self, config: &RifConfig, src: &[u8; 4]) -> bool {
        let hit = self.st.lpm4.lookup(config.vrf, u32::from_be_bytes(*src));
        match hit.map(|h| RouteTarget::unpack(h.value)) {
            Some(RouteTarget::Trap(LOCAL)) => false,
            _ if !config.has(raw::TND_RIF_RPF_LOOSE) => true,
            Some(RouteTarget::Nexthop(_) | RouteTarget::Group(_)) => true,
            Some(RouteTarget::Trap(reason)) => matches!(
                u16::from(reason),
                raw::TND_TRAP_CONNECTED | raw::TND_TRAP_UNRESOLVED
            ),
            Some(RouteTarget::Drop) | None => false,
        }
    }

    /// A route's target to what happens.
    #[inline]
    fn resolve(
        &mut self,
        target: RouteTarget,
        hash: impl Fn(crate::group::HashPolicy) -> u32,
    ) -> Found {
        let slot = match target {
            RouteTarget::Nexthop(slot) => slot,
            RouteTarget::Group(group) => {
                let Some(g) = self.st.nhg_at(group) else {
                    return Found::Trap(raw::TND_TRAP_ROUTE);
                };
                let Some((member, slot)) = g.select(hash(g.hash())) else {
                    return Found::Trap(raw::TND_TRAP_ROUTE);
                };
                self.member = Some((group, member));
                slot
            }
            RouteTarget::Trap(reason) => return Found::Trap(u16::from(reason)),
            RouteTarget::Drop => return Found::Drop(DropReason::Blackhole),
        };
        // A dangling slot can't be, the firmware counts references; if it were, the kernel decides.
        let Some(nexthop) = self.st.nexthop_at_mut(slot) else {
            return Found::Trap(raw::TND_TRAP_ROUTE);
        };
        if !S::DRY {
            nexthop.active = true;
        }
        let c = nexthop.config;
        match c.action {
            Action::Forward => Found::Forward(c.rif, c.mac),
            Action::Trap => Found::Trap(u16::from(c.reason)),
            Action::Drop => Found::Drop(DropReason::NexthopDrop),
        }
    }

    #[inline]
    fn touch(&mut self, used: Used) {
        if S::DRY {
            return;
        }
        match used {
            Used::Host(at) => self.st.exact.touch_at(at, self.now),
            Used::Route4(id) => self.st.lpm4.touch(id),
            Used::Route6(id) => self.st.lpm6.touch(id),
            Used::Nothing => {}
        }
    }

    fn trace_found(&mut self, found: &Found, used: &Used) {
        if !S::TRACE {
            return;
        }
        let what = match used {
            Used::Host(_) => "host entry",
            Used::Route4(_) | Used::Route6(_) => "route",
            Used::Nothing => "no entry",
        };
        match found {
            Found::Forward(rif, mac) => self.trace(
                Stage::L3Lookup,
                format_args!(
                    "{what}: RIF {rif}, neighbour {}",
                    tandem_packet::ether::show(mac)
                ),
            ),
            Found::Trap(reason) => self.trace(
                Stage::L3Lookup,
                format_args!("{what}: trap {}", crate::trap::reason_name(*reason)),
            ),
            Found::Drop(reason) => {
                self.trace(Stage::L3Lookup, format_args!("{what}: drop {reason}"));
            }
        }
    }

    /// From what was found to the wire.
    fn forward(
        &mut self,
        in_rif: u16,
        config: &RifConfig,
        found: Found,
        packet: Packet,
    ) -> Step<()> {
        let found = match self.acl.nexthop {
            NONE => found,
            // a rule knows better
            slot => {
                self.member = None;
                self.resolve(RouteTarget::Nexthop(slot), |_| 0)
            }
        };
        let (out_rif, mac) = match found {
            Found::Forward(rif, mac) => (rif, mac),
            Found::Trap(reason) => {
                // a reason that does not exist would lose the packet
                let known = self.st.trap(reason).is_some();
                return self.trap(if known { reason } else { raw::TND_TRAP_ROUTE });
            }
            Found::Drop(reason) => return self.drop(reason),
        };
        self.stage(Stage::L3Egress);
        let Some(out) = self.st.rif(out_rif).copied() else {
            return self.trap(raw::TND_TRAP_ROUTE);
        };
        if packet.ttl <= 1 {
            return self.trap(raw::TND_TRAP_TTL);
        }
        if self.network_len(packet.len) > out.mtu as usize {
            return self.trap(raw::TND_TRAP_MTU);
        }
        // IPv6 has no switch for redirects (RFC 4861 section 8): the kernel always owes one. Of several members the
        // kernel may choose another than the chip, and would tell the sender of that one's failure.
        let redirect = out_rif == in_rif
            && (packet.v6 || !config.has(raw::TND_RIF_NO_REDIRECT))
            && self.member.is_none_or(|(group, _)| {
                self.st
                    .nhg_at(group)
                    .is_some_and(|g| g.members().len() == 1)
            });
        let packet = Packet { redirect, ..packet };
        match out.place {
            RifPlace::Port(port) => {
                if self.filtered_out() {
                    let way = [(port, EgressTag::Untagged)];
                    self.leaving(0, &way, None, Some((mac, out.mac)))?;
                }
                self.rewrite(&out, &mac, packet);
                self.routed_port(port, None)?;
            }
            RifPlace::PortVlan(port, vid) => {
                if self.filtered_out() {
                    let way = [(port, EgressTag::Vid(vid))];
                    self.leaving(0, &way, None, Some((mac, out.mac)))?;
                }
                self.rewrite(&out, &mac, packet);
                self.routed_port(port, Some(vid))?;
            }
            RifPlace::Fid(fid) => match self.bridge_egress(fid, &mac)? {
                Some(port) => {
                    if self.filtered_out() {
                        let way = self.st.egress_tag(fid, port).map(|tag| (port, tag));
                        self.leaving(fid, way.as_slice(), None, Some((mac, out.mac)))?;
                    }
                    self.rewrite(&out, &mac, packet);
                    self.routed_unicast(fid, port)?;
                }
                None => {
                    if self.filtered_out() {
                        self.leaving_by_flood(fid, Kind::Unicast, Some((mac, out.mac)))?;
                    }
                    self.rewrite(&out, &mac, packet);
                    self.flood(fid, Kind::Unicast, false)?;
                }
            },
        }
        if !S::DRY {
            if let Some(c) = self.st.counters.port_mut(self.ingress) {
                c.l3_forwarded += self.wire.packets;
            }
            if let Some((group, member)) = self.member
                && let Some(g) = self.st.nhg_at_mut(group)
            {
                g.count(member, self.wire.packets);
            }
        }
        Ok(())
    }

    /// Which port of a domain has the next hop's address; None: flood.
    #[inline]
    fn bridge_egress(&mut self, fid: u16, mac: &Mac) -> Step<Option<u16>> {
        match self.st.exact.get_mac(fid, *mac) {
            Some(hit) => {
                let entry = FdbValue::unpack(hit.value);
                match entry.action {
                    Action::Forward if self.at_odds(fid, entry.port) => {
                        self.trap(raw::TND_TRAP_FDB_INCOMPLETE)
                    }
                    Action::Forward => Ok(Some(entry.port)),
                    Action::Drop => self.drop(DropReason::FdbDrop),
                    Action::Trap => self.trap(raw::TND_TRAP_L2_LOCAL),
                }
            }
            None => {
                let traps = self
                    .st
                    .vlan(fid)
                    .is_none_or(|v| v.has(raw::TND_VLAN_UC_TRAP));
                if traps || self.st.replayed {
                    self.trap(raw::TND_TRAP_FDB_INCOMPLETE)
                } else {
                    Ok(None)
                }
            }
        }
    }

    /// Longest L3 packet on the wire: a super-frame is measured by its segments.
    #[inline]
    fn network_len(&self, len: usize) -> usize {
        match self.frame.offload.gso {
            None => len,
            Some(Gso::Tcp4 | Gso::Tcp6 | Gso::UdpL4) => {
                self.wire.longest.saturating_sub(self.eth.l3_offset)
            }
        }
    }

    /// Changes the packet: padding off, tag off, new addresses, one hop less.
    #[inline]
    fn rewrite(&mut self, out: &RifConfig, mac: &Mac, packet: Packet) {
        self.commit();
        if packet.redirect {
            // whether the copy gets there or not, and whatever the port says to the packet: the kernel limits redirects too
            self.copy(raw::TND_TRAP_REDIRECT, raw::TND_RX_L3_FORWARDED);
        }
        if self.frame.offload.gso.is_none() {
            self.frame.truncate(self.eth.l3_offset + packet.len);
        }
        if self.tag.in_bytes() {
            self.untag();
        }
        self.tag = DomainTag::None;
        self.routed = true;
        self.l2_len = tandem_packet::ether::HEADER + self.network_len(packet.len);
        let bytes = self.frame.bytes_mut();
        rewrite::set_macs(bytes, mac, &out.mac);
        let ip = bytes
            .get_mut(tandem_packet::ether::HEADER..)
            .unwrap_or_default();
        if packet.v6 {
            rewrite::decrement_hop_limit(ip);
        } else {
            rewrite::decrement_ttl(ip);
        }
        if S::TRACE {
            self.trace(
                Stage::L3Egress,
                format_args!(
                    "rewrite: {} -> {}, TTL {}",
                    tandem_packet::ether::show(&out.mac),
                    tandem_packet::ether::show(mac),
                    packet.ttl.saturating_sub(1)
                ),
            );
        }
    }
}

#[inline]
fn host(value: u64) -> Found {
    let h = HostValue::unpack(value);
    match h.action {
        Action::Forward => Found::Forward(h.rif, h.mac),
        Action::Trap => Found::Trap(raw::TND_TRAP_UNRESOLVED),
        Action::Drop => Found::Drop(DropReason::HostDrop),
    }
}

/// ::, ::1 and v4-mapped destinations, which no router forwards.
#[inline]
fn parse_special6(dst: &[u8; 16]) -> bool {
    *dst == [0; 16] || parse::is_loopback6(dst) || parse::is_v4_mapped(dst)
}

/// Text of an L3 header in a trace.
struct ShowL3<'a>(&'a L3);

impl std::fmt::Display for ShowL3<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::net::{Ipv4Addr, Ipv6Addr};
        match self.0 {
            L3::Ip4(ip) => write!(
                f,
                "IPv4 {} -> {}, TTL {}, protocol {}",
                Ipv4Addr::from(ip.src),
                Ipv4Addr::from(ip.dst),
                ip.ttl,
                ip.l4.protocol
            ),
            L3::Ip6(ip) => write!(
                f,
                "IPv6 {} -> {}, hop limit {}, protocol {}",
                Ipv6Addr::from(ip.src),
                Ipv6Addr::from(ip.dst),
                ip.hop_limit,
                ip.l4.protocol
            ),
            L3::Arp => f.write_str("ARP"),
            L3::Other => f.write_str("not IP"),
            L3::Bad(why) => write!(f, "bad IP header: {why}"),
        }
    }
}
