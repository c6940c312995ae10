//! By which ways the kernel's routes of a rest lead where a packet goes.
//!
//! ```text
//!   packet ─► routes that contain its destination ─► those that no surer one stands before ─► ways that live
//!                net/ipv4/fib_trie.c fib_table_lookup                                          ─► port, addresses
//!                net/ipv6/ip6_fib.c fib6_lookup
//! ```

use std::net::IpAddr;

use tandem_linux::netlink as nl;
use tandem_linux::netlink::consts::{
    FR_ACT_BLACKHOLE, RTN_ANYCAST, RTN_BLACKHOLE, RTN_BROADCAST, RTN_LOCAL, RTN_UNICAST,
    RTNH_F_DEAD, RTNH_F_LINKDOWN,
};
use tandem_packet::{L3, parse};

use crate::kernel::Rest;
use crate::player::vid;
use crate::recording::Port;

/// The STP state in which a bridge's port forwards (linux/if_bridge.h).
const BR_STATE_FORWARDING: u8 = 3;

/// What routes ask of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Whom it is sent to on the wire.
    pub station: [u8; 6],
    /// Source.
    pub src: IpAddr,
    /// Destination.
    pub dst: IpAddr,
    /// Type of service, or traffic class.
    pub tos: u8,
    /// Hops that are left.
    pub ttl: u8,
}

impl Packet {
    /// None: it is no IP packet.
    #[must_use]
    pub fn of(frame: &[u8]) -> Option<Packet> {
        let ether = parse(frame)?;
        let octet = |n: usize| frame.get(ether.l3_offset + n).copied().unwrap_or(0);
        let (src, dst, tos, ttl) = match ether.l3(frame) {
            L3::Ip4(ip) => (IpAddr::from(ip.src), IpAddr::from(ip.dst), octet(1), ip.ttl),
            L3::Ip6(ip) => {
                let class = octet(0) << 4 | octet(1) >> 4;
                (
                    IpAddr::from(ip.src),
                    IpAddr::from(ip.dst),
                    class,
                    ip.hop_limit,
                )
            }
            _ => return None,
        };
        Some(Packet {
            station: ether.dst,
            src,
            dst,
            tos,
            ttl,
        })
    }
}

/// One way of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Interface.
    pub ifindex: u32,
    /// Gateway; none: the destination itself.
    pub gateway: Option<IpAddr>,
    /// Its device has no carrier.
    pub linkdown: bool,
    /// Such ways are to be left out (`ignore_routes_with_linkdown`): told as dead, though their device is up.
    pub ignored: bool,
}

/// Where a packet leaves, and its VLAN's number on the wire there, 0: no tag. None: its bridge does not let it leave there, as far
/// as is known.
type Exit = (u16, Option<u16>);

/// What a packet looks like that has gone by a way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// Where it leaves: one port, or those by which its bridge floods what goes to a station that it does not know. In order.
    exits: Vec<Exit>,
    /// Whom it goes to.
    dst: [u8; 6],
    /// The interface's own address.
    src: [u8; 6],
    /// Nothing is at the other end of its wire.
    pub dark: bool,
    /// It leaves a bridge by a port that does not forward.
    pub shut: bool,
}

impl NextHop {
    /// What is sent by it arrives.
    #[must_use]
    pub fn lives(&self) -> bool {
        !self.dark && !self.shut
    }

    /// What is sent by it is lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.dark
    }

    /// It leaves a bridge, and at this later rest by no port that forwards. One that has left the bridge counts where that has no carrier
    /// since.
    #[must_use]
    pub fn is_shut_at(&self, rest: &Rest, later: &Rest, ports: &[Port]) -> bool {
        let carries = |rest: &Rest, i| rest.link(i).map(|l| l.admin_up() && l.carrier());
        let has_lost = |i| carries(rest, i) == Some(true) && carries(later, i) == Some(false);
        let left = |was: &nl::Link, is: &nl::Link| {
            was.brport.is_some() && was.master != is.master && has_lost(was.master)
        };
        let shut = |(port, _): &Exit| {
            let is = netdev(*port, later, ports);
            let both = netdev(*port, rest, ports).zip(is);
            is.is_some_and(is_shut) || both.is_some_and(|(was, is)| left(was, is))
        };
        self.exits.iter().all(shut)
    }

    /// These frames, in order of their ports, left by it.
    #[must_use]
    pub fn is(&self, sent: &[(u16, &[u8])]) -> bool {
        let is = |((port, vlan), (to, frame)): (&Exit, &(u16, &[u8]))| {
            port == to
                && *vlan == Some(vid(frame))
                && frame.get(..6) == Some(self.dst.as_slice())
                && frame.get(6..12) == Some(self.src.as_slice())
        };
        self.exits.len() == sent.len() && self.exits.iter().zip(sent).all(is)
    }
}

/// A way with these flags; none: it is dead.
fn way(ifindex: u32, gateway: Option<IpAddr>, flags: u8, rest: &Rest) -> Option<Way> {
    let linkdown = flags & RTNH_F_LINKDOWN != 0;
    let dead = flags & RTNH_F_DEAD != 0;
    let ignored = dead && linkdown && rest.link(ifindex).is_some_and(nl::Link::admin_up);
    (!dead || ignored).then_some(Way {
        ifindex,
        gateway,
        linkdown,
        ignored,
    })
}

/// The ways of a route that are not dead, or so only by a setting.
#[must_use]
pub fn ways(route: &nl::Route, rest: &Rest) -> Vec<Way> {
    let mut ways = Vec::new();
    if route.nh_id != 0 {
        // the kernel may tell its next hops as well
        of_object(route.nh_id, rest, 0, &mut ways);
        return ways;
    }
    let all = route.nexthops.as_slice().iter();
    ways.extend(all.filter_map(|n| way(n.ifindex, n.gateway, n.flags, rest)));
    ways
}

fn of_object(id: u32, rest: &Rest, depth: u8, ways: &mut Vec<Way>) {
    let Some(object) = rest.nexthops().find(|n| n.id == id) else {
        return;
    };
    match &object.kind {
        nl::NexthopKind::Single {
            ifindex, gateway, ..
        } => ways.extend(way(*ifindex, *gateway, object.flags as u8, rest)),
        nl::NexthopKind::Group { members, .. } if depth == 0 => {
            for (id, _) in members {
                of_object(*id, rest, 1, ways);
            }
        }
        _ => {}
    }
}

/// Whether a route drops without a word.
fn drops(route: &nl::Route, rest: &Rest) -> bool {
    let object = |n: &nl::Nexthop| n.id == route.nh_id && n.kind == nl::NexthopKind::Blackhole;
    route.kind == RTN_BLACKHOLE || route.nh_id != 0 && rest.nexthops().any(object)
}

/// Whether a route answers for sure, if it is asked: it is no way out, or has one that lives.
fn decides(route: &nl::Route, rest: &Rest) -> bool {
    route.kind != RTN_UNICAST || drops(route, rest) || ways(route, rest).iter().any(|w| !w.linkdown)
}

/// The routes that contain a packet's destination, in the kernel's order.
pub fn matching<'a>(packet: &'a Packet, rest: &'a Rest) -> impl Iterator<Item = &'a nl::Route> {
    rest.routes().filter(|r| {
        r.dst.contains(&packet.dst)
            && (r.tos == 0 || r.tos == packet.tos)
            && r.src.is_none_or(|net| net.contains(&packet.src))
    })
}

/// Whether `other` is asked before `route`, both in one table and in this order in its dump. Equal routes of IPv6 are
/// asked by the reachability of their neighbours: none of them for sure before another.
fn before(other: &nl::Route, route: &nl::Route, earlier: bool) -> bool {
    let rank = |r: &nl::Route| (r.dst.prefix_len(), r.tos);
    match rank(other).cmp(&rank(route)) {
        std::cmp::Ordering::Equal => {
            other.metric < route.metric
                || other.metric == route.metric && earlier && route.dst.addr().is_ipv4()
        }
        order => order.is_gt(),
    }
}

/// The routes that the kernel may have taken for a packet, as far as their tables tell: in each table those that no
/// route stands before that answers for sure.
#[must_use]
pub fn candidates<'a>(packet: &'a Packet, rest: &'a Rest) -> Vec<&'a nl::Route> {
    let all: Vec<&nl::Route> = matching(packet, rest).collect();
    let hidden = |(n, route): (usize, &&nl::Route)| {
        all.iter().enumerate().any(|(m, other)| {
            m != n
                && other.table == route.table
                && before(other, route, m < n)
                && decides(other, rest)
        })
    };
    let open = all.iter().enumerate().filter(|c| !hidden(*c));
    open.map(|(_, route)| *route).collect()
}

/// Nothing is at the other end of a way's wire.
#[must_use]
pub fn is_dark(way: &Way, rest: &Rest) -> bool {
    way.linkdown || rest.link(way.ifindex).is_none_or(|l| !l.carrier())
}

/// The next hop that a way is for a packet; none: nobody answers there, as far as is known.
#[must_use]
pub fn next_hop(way: &Way, packet: &Packet, rest: &Rest, ports: &[Port]) -> Option<NextHop> {
    let dst = rest.mac_of(way.ifindex, &way.gateway.unwrap_or(packet.dst))?;
    let link = rest.link(way.ifindex)?;
    let src = link.mac?;
    let Some(port) = rest.port_to(way.ifindex, dst, ports) else {
        let exits = flood(link, rest, ports);
        let dark = is_dark(way, rest);
        return (!exits.is_empty()).then_some(NextHop {
            exits,
            dst,
            src,
            dark,
            shut: false,
        });
    };
    let wire = netdev(port, rest, ports)?;
    // a bridge drops what would leave by a port that is down, a port's own routes go with it
    let down = wire.brport.is_some() && rest.down.contains(&port);
    Some(NextHop {
        exits: vec![(port, wire_vid(link, wire, rest))],
        dst,
        src,
        dark: is_dark(way, rest) || rest.dark.contains(&port) || down,
        shut: is_shut(wire),
    })
}

/// By which ports a bridge floods what leaves by this device to a station that it does not know (net/bridge/br_forward.c `br_flood`).
fn flood(link: &nl::Link, rest: &Rest, ports: &[Port]) -> Vec<Exit> {
    let bridge = match link.kind {
        nl::LinkKind::Vlan(_) => link.lower,
        _ => link.index,
    };
    let all = (1..=ports.len() as u16).filter_map(|n| Some((n, netdev(n, rest, ports)?)));
    let within = all.filter(|(n, wire)| {
        let silent = rest.dark.contains(n) || rest.down.contains(n);
        wire.master == bridge && wire.brport.is_some() && !silent && !takes_no_flood(wire)
    });
    let exits = within.map(|(n, wire)| (n, wire_vid(link, wire, rest)));
    // what its VLAN is not at does not leave there
    exits.filter(|(_, vlan)| vlan.is_some()).collect()
}

/// The VLAN's number that what leaves by a device has on the wire of a port, 0: no tag. None: the bridge between them, that tells
/// VLANs apart, does not let it leave there (net/bridge/br_vlan.c `br_handle_vlan`).
fn wire_vid(link: &nl::Link, wire: &nl::Link, rest: &Rest) -> Option<u16> {
    let (lower, own) = match link.kind {
        nl::LinkKind::Vlan(vlan) => (link.lower, vlan.id),
        _ => (link.index, 0),
    };
    let filtering = match rest.link(lower).map(|l| &l.kind) {
        Some(nl::LinkKind::Bridge(info)) => info.vlan_filtering,
        _ => false,
    };
    if !filtering {
        return Some(own);
    }
    let within = match own {
        0 => rest.vlans(lower).find(|v| v.pvid)?.first,
        vid => vid,
    };
    let mut all = rest.vlans(wire.index);
    let vlan = all.find(|v| (v.first..=v.last).contains(&within))?;
    Some(if vlan.untagged { 0 } else { within })
}

/// A bridge's port that does not forward.
fn is_shut(link: &nl::Link) -> bool {
    link.brport
        .as_ref()
        .is_some_and(|p| p.state != BR_STATE_FORWARDING)
}

/// What goes this way may get lost in silence: nothing is at the wire's other end, or it enters a bridge of which not every port
/// forwards, or takes part in a flood.
#[must_use]
pub fn may_get_lost(way: &Way, rest: &Rest) -> bool {
    let within = |l: &nl::Link| l.master == way.ifindex && l.brport.is_some();
    is_dark(way, rest) || rest.links().any(|l| within(l) && takes_no_flood(l))
}

/// A bridge's port by which no flood leaves.
fn takes_no_flood(link: &nl::Link) -> bool {
    let flooded = link.brport.as_ref().is_some_and(|p| p.unicast_flood);
    !link.admin_up() || !link.carrier() || is_shut(link) || !flooded
}

/// What goes this way floods a bridge of which no port lets it out: its neighbour is known, and the bridge does not know the station.
#[must_use]
pub fn floods_nowhere(way: &Way, packet: &Packet, rest: &Rest) -> bool {
    let within = |l: &&nl::Link| l.master == way.ifindex && l.brport.is_some();
    let mut ports = rest.links().filter(within).peekable();
    let known = rest.mac_of(way.ifindex, &way.gateway.unwrap_or(packet.dst));
    known.is_some() && ports.peek().is_some() && ports.all(takes_no_flood)
}

/// Whether the kernel chooses between routes by what no chip's route entry tells apart: the type of service, or, of equal
/// routes of IPv6, who answers; or among ways of which one is no gateway.
#[must_use]
pub fn is_beyond(packet: &Packet, rest: &Rest) -> bool {
    let by_tos = |r: &nl::Route| r.tos != 0 && r.dst.contains(&packet.dst);
    if rest.routes().any(by_tos) {
        return true;
    }
    candidates(packet, rest).into_iter().any(|route| {
        let rival = |o: &nl::Route| {
            o.dst == route.dst && o.table == route.table && o.metric == route.metric && o != route
        };
        let ways = ways(route, rest);
        packet.dst.is_ipv6() && rest.routes().any(rival)
            || ways.len() > 1 && ways.iter().any(|w| w.gateway.is_none())
    })
}

/// Of the routes of the longest prefix that an address is in, some have a type of service, and some are to the switch itself. `port`:
/// where the packet came in.
#[must_use]
pub fn is_own_by_tos(address: IpAddr, port: u16, rest: &Rest, ports: &[Port]) -> bool {
    let near = |r: &&nl::Route| r.dst.contains(&address) && may_ask(r.table, port, rest, ports);
    let own = |r: &nl::Route| [RTN_LOCAL, RTN_BROADCAST, RTN_ANYCAST].contains(&r.kind);
    let all: Vec<&nl::Route> = rest.routes().filter(near).collect();
    let longest = all.iter().map(|r| r.dst.prefix_len()).max();
    let mut first = all.iter().filter(|r| Some(r.dst.prefix_len()) == longest);
    first.clone().any(|r| r.tos != 0) && first.any(|r| own(r))
}

/// Is it an address of the kernel's own, by any table?
#[must_use]
pub fn is_own(address: IpAddr, rest: &Rest) -> bool {
    rest.routes()
        .any(|r| r.kind == RTN_LOCAL && r.dst.contains(&address))
}

fn netdev<'a>(port: u16, rest: &'a Rest, ports: &[Port]) -> Option<&'a nl::Link> {
    let place = usize::from(port).checked_sub(1)?;
    rest.link(ports.get(place)?.ifindex)
}

/// A port of a bridge has a setting of which the chip knows nothing: all that comes in there is the kernel's.
#[must_use]
pub fn has_unknown_setting(port: u16, rest: &Rest, ports: &[Port]) -> bool {
    let settings = netdev(port, rest, ports).and_then(|l| l.brport.as_ref());
    settings.is_some_and(|p| p.neigh_suppress || p.other.is_some())
}

/// A group of the bridge that this port is in has such a port among its members, whoever of them gets a packet: one may be down, or
/// isolated from where it came in.
#[must_use]
pub fn is_unknown_to_group(group: IpAddr, port: u16, rest: &Rest, ports: &[Port]) -> bool {
    let is_port = |n: u16, i: u32| netdev(n, rest, ports).is_some_and(|l| l.index == i);
    let unknown = |i: u32| {
        let mut all = 1..=ports.len() as u16;
        all.any(|n| is_port(n, i) && has_unknown_setting(n, rest, ports))
    };
    let at = netdev(port, rest, ports).map_or(0, |l| l.index);
    // by a bond, or a VLAN interface, it may be in any
    let bridge = inside(port, rest, ports).filter(|b| *b != at);
    let mut members = rest.members(bridge);
    members.any(|m| m.group == nl::MdbGroup::Ip(group) && unknown(m.ifindex))
}

/// A bridge that the chip leaves to the kernel where it would route: it has no ports, or one with a setting of which the chip knows
/// nothing.
#[must_use]
pub fn is_kernels(bridge: u32, rest: &Rest, ports: &[Port]) -> bool {
    let is_bridge = |l: &nl::Link| matches!(l.kind, nl::LinkKind::Bridge(_));
    let within = |n: &u16| netdev(*n, rest, ports).is_some_and(|l| l.master == bridge);
    let mut members = (1..=ports.len() as u16).filter(within).peekable();
    rest.link(bridge).is_some_and(is_bridge)
        && (members.peek().is_none() || members.any(|n| has_unknown_setting(n, rest, ports)))
}

/// A port is in a bridge that is a querier, or has heard one: whether the kernel goes by it yet no message tells. By its own it goes at
/// once where members need no time to answer, and in IPv6 where it has an address to ask from.
#[must_use]
pub fn may_have_querier(port: u16, family: nl::Family, rest: &Rest, ports: &[Port]) -> bool {
    let bridge = inside(port, rest, ports).and_then(|index| rest.link(index));
    bridge.is_some_and(|b| match &b.kind {
        nl::LinkKind::Bridge(info) => {
            let m = &info.mcast;
            let (other, asks) = match family {
                nl::Family::V4 => (m.other[0], true),
                nl::Family::V6 => (m.other[1], m.address6 != [0; 16]),
            };
            let doubtful = m.response_interval != 0 || !asks;
            info.mcast_snooping && (other.is_some() || m.querier && doubtful)
        }
        _ => false,
    })
}

/// The bridges that are queriers by which the kernel goes at once.
pub fn queriers(rest: &Rest) -> impl Iterator<Item = u32> {
    let at_once =
        |i: &nl::BridgeInfo| i.mcast_snooping && i.mcast.querier && i.mcast.response_interval == 0;
    let bridge = move |l: &&nl::Link| matches!(&l.kind, nl::LinkKind::Bridge(i) if at_once(i));
    rest.links().filter(bridge).map(|l| l.index)
}

/// The device by which packets of a port come in to be routed: its netdev, or the bridge that this one is a port of.
#[must_use]
pub fn inside(port: u16, rest: &Rest, ports: &[Port]) -> Option<u32> {
    let link = netdev(port, rest, ports)?;
    let bridge = rest.link(link.master);
    let bridge = bridge.filter(|m| matches!(m.kind, nl::LinkKind::Bridge(_)));
    Some(bridge.map_or(link.index, |b| b.index))
}

/// What the kernel forwards nowhere and is silent about, wherever its routes lead: a packet that came in by no wire, or by a bridge's
/// port that does not forward, or is refused.
#[must_use]
pub fn is_unheard(packet: &Packet, port: u16, rest: &Rest, ports: &[Port]) -> bool {
    // (a bridge that is down has shut its ports, and hears what comes in by one that was opened since)
    let Some(link) = netdev(port, rest, ports) else {
        return true;
    };
    !link.admin_up() || !link.carrier() || is_shut(link) || is_refused(packet, port, rest, ports)
}

/// What the kernel forwards nowhere whether its port works or not: a packet that came in where nothing is routed, from an address of
/// its own, without a hop left, to another station, or by a rule that says so.
#[must_use]
pub fn is_refused(packet: &Packet, port: u16, rest: &Rest, ports: &[Port]) -> bool {
    let (Some(link), Some(inside)) = (netdev(port, rest, ports), inside(port, rest, ports)) else {
        return true;
    };
    let family = nl::Family::of(&packet.dst);
    // a tag decides which device it came in by
    let stacked = |l: &nl::Link| matches!(l.kind, nl::LinkKind::Vlan(_)) && l.lower == inside;
    let by = |r: &nl::Rule| r.matches_all || rest.link(inside).is_some_and(|l| l.name == r.iif);
    // a port's own address is its bridge's as well, those of other ports are not (net/bridge/br_input.c `br_handle_frame`)
    let heard = |l: &nl::Link| l.index == link.index || l.index == inside || stacked(l);
    !rest.forwards(inside, family) && !rest.links().any(stacked)
        || rest.addrs().any(|a| a.local == packet.src)
        || packet.ttl <= 1
        || !(rest.links()).any(|l| heard(l) && l.mac == Some(packet.station))
        || rest
            .rules(family)
            .any(|r| r.action == FR_ACT_BLACKHOLE && by(r))
}

/// Whether a table may decide about what came in by a port: not that of a VRF which it is not in.
#[must_use]
pub fn may_ask(table: u32, port: u16, rest: &Rest, ports: &[Port]) -> bool {
    let inside = inside(port, rest, ports).unwrap_or_default();
    // a tag decides which device it came in by
    let by = |l: &nl::Link| l.index == inside || l.lower == inside;
    let mine = |vrf: &nl::Link| rest.links().any(|l| by(l) && l.master == vrf.index);
    let is_table = |l: &nl::Link| matches!(l.kind, nl::LinkKind::Vrf(t) if t == table);
    let mut vrfs = rest.links().filter(|l| is_table(l)).peekable();
    vrfs.peek().is_none() || vrfs.any(mine)
}

/// A frame is a packet that has one hop less, and its IPv4 header's checksum is right.
#[must_use]
pub fn has_lost_a_hop(packet: &Packet, frame: &[u8]) -> bool {
    let ip = crate::player::untagged(frame).get(2..).unwrap_or_default();
    let words = |header: &[u8]| {
        let sum: u32 = header
            .chunks_exact(2)
            .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]))
            .sum();
        (sum & 0xffff) + (sum >> 16)
    };
    let right = match ip.first().map(|b| (b >> 4, usize::from(b & 15) * 4)) {
        Some((4, length)) => ip.get(..length).map(words) == Some(0xffff),
        _ => true,
    };
    right && Packet::of(frame).is_some_and(|p| p.ttl.checked_add(1) == Some(packet.ttl))
}

/// What the kernel may have been silent about: as [`is_unheard`], and what a blackhole takes, or goes where it may get lost.
#[must_use]
pub fn may_be_silent(packet: &Packet, port: u16, rest: &Rest, ports: &[Port]) -> bool {
    let lost = |w: &Way| may_get_lost(w, rest);
    is_unheard(packet, port, rest, ports)
        || matching(packet, rest).any(|r| drops(r, rest) || ways(r, rest).iter().any(lost))
}

/// The kernel's routes to where a probe goes, for people.
#[must_use]
pub fn routes(probe: &[u8], rest: &Rest) -> String {
    let Some(packet) = Packet::of(probe) else {
        return String::new();
    };
    let dst = packet.dst;
    let mut text = format!("; routes to {dst}:");
    for r in rest.routes().filter(|r| r.dst.contains(&dst)) {
        text += &format!(
            " {} table {} metric {} type {}",
            r.dst, r.table, r.metric, r.kind
        );
        if r.nh_id != 0 {
            text += &format!(" nhid {}", r.nh_id);
        }
        if drops(r, rest) {
            text += " drops";
        }
        for way in ways(r, rest) {
            let (ifindex, gateway) = (way.ifindex, way.gateway);
            let station = rest.mac_of(ifindex, &gateway.unwrap_or(dst)).is_some();
            let known = if station { "" } else { " (no station)" };
            text += &match gateway {
                Some(g) => format!(" via {g} if {ifindex}{known}"),
                None => format!(" if {ifindex}{known}"),
            };
        }
        text.push(',');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, kind: nl::LinkKind, up: bool) -> nl::Link {
        nl::Link {
            index,
            name: format!("if{index}"),
            kind,
            // IFF_UP, IFF_LOWER_UP
            flags: u32::from(up) | 1 << 16,
            mtu: 1500,
            mac: Some([2, 0, 0, 0, 0, index as u8]),
            master: 0,
            slave_kind: String::new(),
            lower: 0,
            lower_elsewhere: false,
            operstate: 6,
            promiscuity: 0,
            brport: None,
            bond: None,
        }
    }

    /// Port 1 is in bridge 10, in this STP state; port 2 is in none. Was a packet by the first one to this station heard?
    fn heard(state: u8, bridge_up: bool, station: u8) -> bool {
        let ports = [1, 2].map(|ifindex| Port {
            ifindex,
            ..Port::default()
        });
        let info = nl::BridgeInfo::default();
        let brport = nl::BridgePort {
            state,
            ..nl::BridgePort::default()
        };
        let first = nl::Link {
            master: 10,
            brport: Some(brport),
            ..link(1, nl::LinkKind::Tun, true)
        };
        let second = link(2, nl::LinkKind::Tun, true);
        let bridge = link(10, nl::LinkKind::Bridge(info), bridge_up);
        let links = [first, second, bridge].map(nl::Object::Link);
        let conf = nl::Object::Netconf(nl::Netconf {
            family: nl::Family::V4,
            target: nl::NetconfTarget::Link(10),
            forwarding: Some(true),
            rp_filter: None,
            ignore_linkdown: None,
            mc_forwarding: None,
            proxy_neigh: None,
            bc_forwarding: None,
        });
        let rest = Rest::new(links.into_iter().chain([conf]), Default::default(), &ports);
        let packet = Packet {
            station: [2, 0, 0, 0, 0, station],
            src: [192, 0, 2, 1].into(),
            dst: [192, 0, 2, 2].into(),
            tos: 0,
            ttl: 64,
        };
        !is_unheard(&packet, 1, &rest, &ports)
    }

    #[test]
    fn a_bridge_routes_what_its_port_lets_in_and_is_for_it() {
        assert!(heard(BR_STATE_FORWARDING, true, 10));
        // the port's own address is the bridge's as well, another port's is not
        assert!(heard(BR_STATE_FORWARDING, true, 1));
        assert!(!heard(BR_STATE_FORWARDING, true, 2));
        // down, and its port opened by hand since: that is heard (600016)
        assert!(heard(BR_STATE_FORWARDING, false, 10));
        for state in [0, 1, 2, 4] {
            assert!(!heard(state, true, 10), "state {state}");
        }
    }
}
