//! Routes: RTM_*ROUTE (`linux/rtnetlink.h`). The hot path: decoding allocates only for multipath.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::consts::{
    NLM_F_CREATE, NLM_F_DUMP, RT_TABLE_MAIN, RTA_DST, RTA_ENCAP, RTA_ENCAP_TYPE, RTA_FLOW,
    RTA_GATEWAY, RTA_METRICS, RTA_MULTIPATH, RTA_NEWDST, RTA_NH_ID, RTA_OIF, RTA_PREFSRC,
    RTA_PRIORITY, RTA_SRC, RTA_TABLE, RTA_VIA, RTAX_MTU, RTM_DELROUTE, RTM_F_CLONED, RTM_GETROUTE,
    RTM_NEWROUTE, RTN_UNICAST, RTNH_F_ONLINK,
};
use super::types::{Family, Nexthops, Object, Route, RouteNexthop};
use super::wire::{Attrs, Writer, ip, u8_at, u16_at, u32_at};

/// Bytes of `struct rtmsg`.
pub(super) const RTMSG: usize = 12;
/// Bytes of `struct rtnexthop`.
const RTNH: usize = 8;

/// Decodes RTM_NEWROUTE or RTM_DELROUTE; `None` for other families and for cached copies.
#[inline]
pub(super) fn decode(payload: &[u8]) -> Option<Object> {
    if payload.len() < RTMSG {
        return None;
    }
    let family = Family::from_raw(u8_at(payload, 0))?;
    let flags = u32_at(payload, 8);
    if flags & RTM_F_CLONED != 0 {
        return None;
    }
    let mut table = u32::from(u8_at(payload, 4));
    let (mut dst, mut src, mut prefsrc) = (None, None, None);
    let (mut metric, mut nh_id, mut mtu) = (0, 0, 0);
    let mut hop = RouteNexthop {
        ifindex: 0,
        gateway: None,
        weight: 1,
        flags: flags as u8,
        encap: false,
    };
    let mut many = None;
    let (mut metrics, mut ways) = (0, 0);
    for (kind, v) in Attrs::after(payload, RTMSG) {
        match kind {
            RTA_DST => dst = ip(v),
            RTA_TABLE => table = u32_at(v, 0),
            RTA_OIF => hop.ifindex = u32_at(v, 0),
            RTA_GATEWAY => hop.gateway = ip(v),
            RTA_VIA => hop.gateway = via(v),
            RTA_PRIORITY => metric = u32_at(v, 0),
            RTA_PREFSRC => prefsrc = ip(v),
            RTA_NH_ID => nh_id = u32_at(v, 0),
            RTA_MULTIPATH => many = Some(multipath(v, &mut ways)),
            RTA_SRC => src = ip(v),
            RTA_METRICS => {
                mtu = Attrs::new(v).get(RTAX_MTU).map_or(0, |m| u32_at(m, 0));
                metrics = hash(0, v);
            }
            RTA_ENCAP | RTA_ENCAP_TYPE | RTA_NEWDST => {
                hop.encap = true;
                ways = hash(ways, v);
            }
            RTA_FLOW => ways = hash(ways, v),
            _ => {}
        }
    }
    // Two IPv4 routes may differ in a metric alone (net/ipv4/fib_semantics.c `fib_find_info`), two of IPv6 not
    // (`rt6_duplicate_nexthop`), where the kernel also changes them in silence. An object's ways are its own.
    let other = match family {
        Family::V4 => metrics,
        Family::V6 => 0,
    } ^ if nh_id == 0 { ways } else { 0 };
    let src_len = u8_at(payload, 2);
    let nexthops = match many {
        Some(many) => Nexthops::Many(many),
        None if hop.ifindex == 0 && hop.gateway.is_none() => Nexthops::None,
        None => Nexthops::One(hop),
    };
    Some(Object::Route(Route {
        table,
        dst: prefix(family, dst, u8_at(payload, 1))?,
        tos: u8_at(payload, 3),
        metric,
        kind: u8_at(payload, 7),
        scope: u8_at(payload, 6),
        protocol: u8_at(payload, 5),
        flags,
        nh_id,
        nexthops,
        src: if src_len != 0 {
            prefix(family, src, src_len)
        } else {
            None
        },
        prefsrc,
        mtu,
        other,
    }))
}

fn prefix(family: Family, addr: Option<IpAddr>, len: u8) -> Option<IpNet> {
    match (family, addr) {
        (Family::V4, Some(IpAddr::V4(a))) => Ipv4Net::new(a, len).ok().map(IpNet::V4),
        (Family::V4, None) => Ipv4Net::new(Ipv4Addr::UNSPECIFIED, len).ok().map(IpNet::V4),
        (Family::V6, Some(IpAddr::V6(a))) => Ipv6Net::new(a, len).ok().map(IpNet::V6),
        (Family::V6, None) => Ipv6Net::new(Ipv6Addr::UNSPECIFIED, len).ok().map(IpNet::V6),
        _ => None,
    }
}

/// `struct rtvia`: a gateway of the other family.
fn via(v: &[u8]) -> Option<IpAddr> {
    ip(v.get(2..)?)
}

/// FNV-1a, 32 bits, of some bytes behind others; never 0.
fn hash(before: u32, bytes: &[u8]) -> u32 {
    let begin = before ^ 0x811c_9dc5;
    let h = (bytes.iter()).fold(begin, |h, b| (h ^ u32::from(*b)).wrapping_mul(0x0100_0193));
    h.max(1)
}

/// The next hops; what else tells them apart goes into `ways`, in whatever order they stand.
fn multipath(mut b: &[u8], ways: &mut u32) -> Box<[RouteNexthop]> {
    let mut out = Vec::with_capacity(b.len() / 16);
    while b.len() >= RTNH {
        let len = usize::from(u16_at(b, 0));
        let Some(attrs) = b.get(RTNH..len) else { break };
        let mut hop = RouteNexthop {
            ifindex: u32_at(b, 4),
            gateway: None,
            weight: u16::from(u8_at(b, 3)) + 1,
            flags: u8_at(b, 2),
            encap: false,
        };
        let mut own = 0;
        for (kind, v) in Attrs::new(attrs) {
            match kind {
                RTA_GATEWAY => hop.gateway = ip(v),
                RTA_VIA => hop.gateway = via(v),
                RTA_ENCAP | RTA_ENCAP_TYPE | RTA_NEWDST => {
                    hop.encap = true;
                    own = hash(own, v);
                }
                RTA_FLOW => own = hash(own, v),
                _ => {}
            }
        }
        if own != 0 {
            let of = hash(own, attrs) ^ hop.ifindex;
            *ways = ways.wrapping_add(of);
        }
        out.push(hop);
        b = b.get((len + 3) & !3..).unwrap_or(&[]);
    }
    out.into_boxed_slice()
}

/// Which routes a dump shall hold; the kernel filters (strict checking). Default: all of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RouteFilter {
    /// Only this table.
    pub table: Option<u32>,
    /// Only routes with a next hop on this interface. The kernel answers ENODEV if it is gone.
    pub oif: Option<u32>,
    /// Only this protocol (`RTPROT_*`).
    pub protocol: Option<u8>,
}

/// The request that dumps routes of a family.
pub(super) fn dump(w: &mut Writer, seq: u32, family: Family, filter: RouteFilter) {
    let mut fixed = [0; RTMSG];
    fixed[0] = family.raw();
    fixed[5] = filter.protocol.unwrap_or(0);
    w.begin(RTM_GETROUTE, NLM_F_DUMP, seq, &fixed);
    if let Some(table) = filter.table {
        w.attr_u32(RTA_TABLE, table);
    }
    if let Some(oif) = filter.oif {
        w.attr_u32(RTA_OIF, oif);
    }
}

fn header(route: &Route, table: u8) -> [u8; RTMSG] {
    let mut fixed = [0; RTMSG];
    fixed[0] = route.family().raw();
    fixed[1] = route.dst.prefix_len();
    fixed[2] = route.src.map_or(0, |s| s.prefix_len());
    fixed[3] = route.tos;
    fixed[4] = table;
    fixed[5] = route.protocol;
    fixed[6] = route.scope;
    fixed[7] = if route.kind == 0 {
        RTN_UNICAST
    } else {
        route.kind
    };
    let onlink = match &route.nexthops {
        Nexthops::One(h) => u32::from(h.flags & RTNH_F_ONLINK),
        _ => 0,
    };
    fixed[8..12].copy_from_slice(&onlink.to_ne_bytes());
    fixed
}

fn body(w: &mut Writer, route: &Route) {
    w.attr_ip(RTA_DST, &route.dst.addr());
    if route.table > 255 {
        w.attr_u32(RTA_TABLE, route.table);
    }
    if route.metric != 0 {
        w.attr_u32(RTA_PRIORITY, route.metric);
    }
    if let Some(src) = &route.src {
        w.attr_ip(RTA_SRC, &src.addr());
    }
    if let Some(prefsrc) = &route.prefsrc {
        w.attr_ip(RTA_PREFSRC, prefsrc);
    }
    if route.nh_id != 0 {
        w.attr_u32(RTA_NH_ID, route.nh_id);
        return;
    }
    match &route.nexthops {
        Nexthops::None => {}
        Nexthops::One(h) => {
            w.attr_u32(RTA_OIF, h.ifindex);
            gateway(w, route.family(), h);
        }
        Nexthops::Many(hops) => {
            let nest = w.nest(RTA_MULTIPATH);
            for h in hops {
                let at = w.len();
                let mut rtnh = [0; RTNH];
                rtnh[2] = h.flags & RTNH_F_ONLINK;
                rtnh[3] = h.weight.saturating_sub(1).min(255) as u8;
                rtnh[4..8].copy_from_slice(&h.ifindex.to_ne_bytes());
                w.raw(&rtnh);
                gateway(w, route.family(), h);
                w.patch_u16(at, (w.len() - at) as u16);
            }
            w.end_nest(nest);
        }
    }
}

fn gateway(w: &mut Writer, family: Family, hop: &RouteNexthop) {
    match (&hop.gateway, family) {
        (Some(gw @ IpAddr::V4(_)), Family::V4) | (Some(gw @ IpAddr::V6(_)), Family::V6) => {
            w.attr_ip(RTA_GATEWAY, gw)
        }
        (Some(IpAddr::V6(gw)), Family::V4) => {
            let mut v = Vec::with_capacity(18);
            v.extend_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
            v.extend_from_slice(&gw.octets());
            w.attr(RTA_VIA, &v);
        }
        _ => {}
    }
}

const fn table_byte(table: u32) -> u8 {
    match table {
        0 => RT_TABLE_MAIN as u8,
        t if t < 256 => t as u8,
        _ => 0,
    }
}

/// Adds a route; `flags` decides what happens to an equal key (NLM_F_REPLACE, _APPEND, _EXCL).
pub(super) fn add(w: &mut Writer, flags: u16, seq: u32, route: &Route) {
    w.begin(
        RTM_NEWROUTE,
        flags | NLM_F_CREATE,
        seq,
        &header(route, table_byte(route.table)),
    );
    body(w, route);
}

/// Removes a route.
pub(super) fn del(w: &mut Writer, flags: u16, seq: u32, route: &Route) {
    w.begin(
        RTM_DELROUTE,
        flags,
        seq,
        &header(route, table_byte(route.table)),
    );
    body(w, route);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::wire::Msgs;

    fn hop(ifindex: u32, gw: &str, weight: u16, flags: u8) -> RouteNexthop {
        RouteNexthop {
            ifindex,
            gateway: Some(gw.parse().unwrap()),
            weight,
            flags,
            encap: false,
        }
    }

    fn route(dst: &str, nexthops: Nexthops) -> Route {
        Route {
            table: 1000,
            dst: dst.parse().unwrap(),
            tos: 0,
            metric: 20,
            kind: RTN_UNICAST,
            scope: 0,
            protocol: 4,
            flags: 0,
            nh_id: 0,
            nexthops,
            src: None,
            prefsrc: None,
            mtu: 0,
            other: 0,
        }
    }

    #[test]
    fn routes_survive_the_wire() {
        let all = [
            route("10.1.0.0/16", Nexthops::One(hop(3, "10.0.0.1", 1, 0))),
            route("10.1.0.0/16", Nexthops::One(hop(3, "fe80::1", 1, 0))),
            route(
                "2001:db8::/32",
                Nexthops::Many(
                    [
                        hop(3, "fe80::1", 1, 0),
                        hop(4, "fe80::2", 256, RTNH_F_ONLINK),
                    ]
                    .into(),
                ),
            ),
            Route {
                prefsrc: Some("10.0.0.9".parse().unwrap()),
                ..route("0.0.0.0/0", Nexthops::None)
            },
            Route {
                nh_id: 9,
                ..route("::/0", Nexthops::None)
            },
        ];
        for r in all {
            let mut w = Writer::new();
            add(&mut w, 0, 1, &r);
            let back = Msgs::new(w.bytes()).next().and_then(|m| decode(m.payload));
            assert_eq!(back, Some(Object::Route(r)));
        }
    }

    #[test]
    fn a_prefix_longer_than_its_family_is_refused() {
        let r = route("10.1.0.0/16", Nexthops::None);
        let mut w = Writer::new();
        add(&mut w, 0, 1, &r);
        let mut bytes = w.bytes().to_vec();
        bytes[17] = 33;
        assert_eq!(
            Msgs::new(&bytes).next().and_then(|m| decode(m.payload)),
            None
        );
    }
}
