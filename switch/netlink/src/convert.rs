//! From the kernel's words to the store's.

use std::collections::HashMap;

use tandem_linux::netlink as nl;
use tandem_linux::netlink::consts;
use tandem_store::model;

/// 802.1Q: `ETH_P_8021Q`.
const ETH_P_8021Q: u16 = 0x8100;

/// Front-panel ports by the interface index of their TAP.
pub(super) type Ports = HashMap<u32, u16>;

pub(super) fn family(f: nl::Family) -> model::Family {
    match f {
        nl::Family::V4 => model::Family::V4,
        nl::Family::V6 => model::Family::V6,
    }
}

pub(super) fn link(l: &nl::Link, ports: &Ports) -> model::Link {
    let kind = match (&l.kind, ports.get(&l.index)) {
        (_, Some(port)) => model::LinkKind::Swp { port: *port },
        (nl::LinkKind::Bridge(b), None) => model::LinkKind::Bridge(model::BridgeInfo {
            vlan_filtering: b.vlan_filtering,
            mcast_snooping: b.mcast_snooping,
            mcast_unsupported: if b.mcast.per_vlan {
                Some("snooping per VLAN (mcast_vlan_snooping)")
            } else if !b.mcast.tells {
                Some("this kernel does not tell of queriers")
            } else if b.mcast.router == 0 {
                Some("with mcast_router 0 the kernel does not tell of router ports")
            } else {
                None
            },
            mcast_router: b.mcast.router,
            igmp_version: b.mcast.igmp,
            mld_version: b.mcast.mld,
            // the view knows better: it remembers
            querier4: model::Querier::Unsure,
            querier6: model::Querier::Unsure,
            ageing_s: match b.topology_change {
                true => b.forward_delay.div_ceil(100).max(1),
                false => b.ageing_time.div_ceil(100),
            },
            nf_call: model::NfCall {
                ip: b.nf_call.ip,
                ip6: b.nf_call.ip6,
                arp: b.nf_call.arp,
            },
            no_link_local_learning: b.no_link_local_learning,
            learning_limited: b.max_learned != 0,
            unsupported: if b.mst {
                Some("a spanning tree per VLAN (mst_enabled)")
            } else if !matches!(b.vlan_protocol, 0 | ETH_P_8021Q) {
                Some("VLAN protocol 802.1ad")
            } else {
                None
            },
        }),
        (nl::LinkKind::Bond(b), None) => model::LinkKind::Bond(bond(l.index, b)),
        (nl::LinkKind::Vrf(table), None) => model::LinkKind::Vrf { table: *table },
        (_, None) if l.flags & consts::IFF_LOOPBACK != 0 => model::LinkKind::Loopback,
        (nl::LinkKind::Vlan(v), None)
            if v.protocol == ETH_P_8021Q && v.reorder_hdr && !v.egress_qos =>
        {
            model::LinkKind::Vlan { vid: v.id }
        }
        (nl::LinkKind::Vlan(_), None) => model::LinkKind::Other("vlan".into()),
        (nl::LinkKind::Tun, None) => model::LinkKind::Other("tun".into()),
        (nl::LinkKind::Other(kind), None) if kind.is_empty() => {
            model::LinkKind::Other("device".into())
        }
        (nl::LinkKind::Other(kind), None) => model::LinkKind::Other(kind.clone()),
    };
    let veth = matches!(&l.kind, nl::LinkKind::Other(kind) if kind == "veth");
    model::Link {
        ifindex: l.index,
        name: l.name.clone(),
        kind,
        master: l.master,
        lower: if veth || l.lower_elsewhere {
            0
        } else {
            l.lower
        },
        promiscuous: matches!(&l.kind, nl::LinkKind::Bridge(_))
            && (l.promiscuity != 0 || l.flags & libc::IFF_PROMISC as u32 != 0),
        admin_up: l.admin_up(),
        carrier: l.carrier(),
        mtu: l.mtu,
        mac: l.mac.unwrap_or_default(),
        bridge_port: l.brport.as_ref().map(bridge_port),
        bond_active: l.bond.is_some_and(|b| b.active && b.up),
        mc_forwarding: matches!(&l.kind, nl::LinkKind::Bridge(_))
            && l.flags & libc::IFF_ALLMULTI as u32 != 0,
    }
}

/// A bond's group (linux/if_bonding.h).
fn bond(index: u32, b: &nl::BondInfo) -> model::BondInfo {
    use tandem_abi::raw::{TND_LAG_HASH_L2, TND_LAG_HASH_L3, TND_LAG_HASH_L4};
    let mode = match b.mode {
        1 | 2 | 4 => None,
        0 => Some("mode balance-rr"),
        3 => Some("mode broadcast"),
        5 => Some("mode balance-tlb"),
        6 => Some("mode balance-alb"),
        _ => Some("this mode"),
    };
    let (hash, policy) = match (b.mode, b.hash) {
        // one member at a time
        (1, _) | (_, 0) => (TND_LAG_HASH_L2, None),
        (_, 1) => (TND_LAG_HASH_L4, None),
        (_, 2) => (TND_LAG_HASH_L3, None),
        _ => (TND_LAG_HASH_L2, Some("this xmit_hash_policy")),
    };
    model::BondInfo {
        lag: (index.wrapping_sub(1) % u32::from(model::BONDS)) as u16 + 1,
        hash,
        unsupported: mode
            .or(policy)
            .or(b.all_active.then_some("all_slaves_active"))
            // the kernel looks when a member last carried a frame, and sees none of the chip's
            .or(b.arp_monitor.then_some("arp_interval")),
    }
}

/// What a device's VLANs are, one by one.
pub(super) fn bridge_vlans(b: &nl::BridgeVlans) -> impl Iterator<Item = model::BridgeVlan> + '_ {
    b.vlans.iter().flat_map(|v| {
        (v.first..=v.last).map(|vid| model::BridgeVlan {
            ifindex: b.ifindex,
            vid,
            pvid: v.pvid,
            untagged: v.untagged,
            state: v.state,
            unsupported: v.other,
            tap: 0,
        })
    })
}

pub(super) fn mdb_entry(bridge: u32, e: &nl::MdbEntry) -> model::MdbEntry {
    model::MdbEntry {
        bridge,
        vlan: e.vlan,
        group: match e.group {
            nl::MdbGroup::Ip(a) => model::GroupAddr::Ip(a),
            nl::MdbGroup::Mac(m) => model::GroupAddr::Mac(m),
        },
        source: e.source,
        ifindex: e.ifindex,
        include: e.mode == Some(true),
        blocked: e.blocked,
    }
}

pub(super) fn router_port(bridge: u32, r: &nl::RouterPort) -> model::RouterPort {
    model::RouterPort {
        bridge,
        ifindex: r.ifindex,
        v4: r.v4,
        v6: r.v6,
    }
}

pub(super) fn bridge_port(p: &nl::BridgePort) -> model::BridgePort {
    model::BridgePort {
        state: p.state,
        learning: p.learning,
        unicast_flood: p.unicast_flood,
        mcast_flood: p.mcast_flood,
        bcast_flood: p.bcast_flood,
        hairpin: p.hairpin,
        isolated: p.isolated,
        locked: p.locked,
        unsupported: p.other.or(p.neigh_suppress.then_some("neigh_suppress")),
    }
}

pub(super) fn addr(a: &nl::Addr) -> model::Addr {
    model::Addr {
        ifindex: a.ifindex,
        addr: a.local,
        prefix_len: a.prefix_len,
    }
}

/// `None`: a multicast group's; nothing is routed to those, and the kernel makes them in silence.
pub(super) fn neigh(n: &nl::Neigh) -> Option<model::Neigh> {
    (!n.addr.is_multicast()).then(|| model::Neigh {
        ifindex: n.ifindex,
        addr: n.addr,
        mac: n.mac.unwrap_or_default(),
        state: n.state,
    })
}

/// `None`: an entry of the device itself (`self`: multicast filters and the like), not of a bridge.
pub(super) fn fdb(f: &nl::FdbEntry) -> Option<model::FdbEntry> {
    if f.master == 0 {
        return None;
    }
    let kind = if f.state & consts::NUD_PERMANENT != 0 {
        model::FdbKind::Local
    } else if f.state & consts::NUD_NOARP != 0 {
        // also where a person has made what we learned static: the kernel leaves `extern_learn` on it
        // (net/bridge/br_fdb.c `fdb_add_entry`), which we never write together with `static`
        model::FdbKind::Static
    } else if f.ext_flags & consts::NTF_EXT_LOCKED != 0 {
        model::FdbKind::Locked
    } else if f.flags & consts::NTF_EXT_LEARNED != 0 {
        model::FdbKind::ExternLearn
    } else {
        model::FdbKind::Dynamic
    };
    Some(model::FdbEntry {
        bridge: f.master,
        vlan: f.vlan,
        mac: f.mac,
        ifindex: f.ifindex,
        kind,
        sticky: f.flags & consts::NTF_STICKY != 0,
    })
}

pub(super) fn fdb_key(f: &model::FdbEntry) -> model::FdbKey {
    model::FdbKey {
        bridge: f.bridge,
        vlan: f.vlan,
        mac: f.mac,
    }
}

/// A resilient group has its members where its buckets should be: no message has these.
pub(super) fn nexthop(n: &nl::Nexthop) -> model::NexthopObject {
    let mut unsupported = n.fdb.then_some(model::Unsupported::FdbNexthop);
    let kind = match &n.kind {
        nl::NexthopKind::Blackhole => model::NexthopKind::Blackhole,
        nl::NexthopKind::Group { members, resilient } => {
            if *resilient {
                model::NexthopKind::Buckets(members.clone())
            } else {
                model::NexthopKind::Group(members.clone())
            }
        }
        nl::NexthopKind::Single {
            ifindex,
            gateway,
            encap,
        } => {
            if *encap {
                unsupported = unsupported.or(Some(model::Unsupported::Encap));
            }
            let flags = n.flags as u8;
            model::NexthopKind::Single(model::NextHop {
                ifindex: *ifindex,
                gateway: *gateway,
                weight: 1,
                dead: flags & consts::RTNH_F_DEAD != 0,
                linkdown: flags & consts::RTNH_F_LINKDOWN != 0,
                onlink: flags & consts::RTNH_F_ONLINK != 0,
            })
        }
    };
    model::NexthopObject {
        id: n.id,
        kind,
        unsupported,
    }
}

fn next_hop(h: &nl::RouteNexthop) -> model::NextHop {
    model::NextHop {
        ifindex: h.ifindex,
        gateway: h.gateway,
        weight: u32::from(h.weight),
        dead: h.flags & consts::RTNH_F_DEAD != 0,
        linkdown: h.flags & consts::RTNH_F_LINKDOWN != 0,
        onlink: h.flags & consts::RTNH_F_ONLINK != 0,
    }
}

pub(super) fn route_key(r: &nl::Route, position: u16) -> model::RouteKey {
    model::RouteKey {
        table: r.table,
        prefix: r.dst,
        tos: r.tos,
        metric: r.metric,
        position,
    }
}

pub(super) fn route(r: &nl::Route, position: u16) -> model::Route {
    let (kind, known) = route_type(match r.kind {
        // the next-hop object is, and the kernel tells it of its routes: only what the object is now counts
        consts::RTN_BLACKHOLE if r.nh_id != 0 => consts::RTN_UNICAST,
        kind => kind,
    });
    let hops = r.nexthops.as_slice();
    let unsupported = if hops.iter().any(|h| h.encap) {
        Some(model::Unsupported::Encap)
    } else if r.kind == 0 {
        // no kernel's: what it hides from dumps (`fib/hidden.rs`)
        Some(model::Unsupported::Hidden)
    } else if r.src.is_some() {
        Some(model::Unsupported::SourcePrefix)
    } else if r.mtu != 0 {
        // forwarding honours a route's own MTU
        Some(model::Unsupported::Metrics)
    } else if !known {
        Some(model::Unsupported::Type)
    } else {
        None
    };
    let nexthops = match hops {
        _ if r.nh_id != 0 => model::RouteNextHops::Object(r.nh_id),
        [] => model::RouteNextHops::None,
        [one] => model::RouteNextHops::One(next_hop(one)),
        many => {
            let mut next_hops: Vec<model::NextHop> = many.iter().map(next_hop).collect();
            // IPv6 tells the next hops of one route in changing order: in one order the flows stay where they are
            if r.dst.addr().is_ipv6() {
                next_hops.sort_unstable_by_key(|n| (n.ifindex, n.gateway, n.weight));
            }
            model::RouteNextHops::Many(next_hops.into())
        }
    };
    model::Route {
        key: route_key(r, position),
        kind,
        scope: r.scope,
        protocol: r.protocol,
        prefsrc: r.prefsrc,
        nexthops,
        unsupported,
    }
}

/// The type, and whether it is one of the list.
const fn route_type(raw: u8) -> (model::RouteType, bool) {
    use model::RouteType as T;
    match raw {
        consts::RTN_UNICAST => (T::Unicast, true),
        consts::RTN_LOCAL => (T::Local, true),
        consts::RTN_BROADCAST => (T::Broadcast, true),
        consts::RTN_ANYCAST => (T::Anycast, true),
        consts::RTN_MULTICAST => (T::Multicast, true),
        consts::RTN_BLACKHOLE => (T::Blackhole, true),
        consts::RTN_UNREACHABLE => (T::Unreachable, true),
        consts::RTN_PROHIBIT => (T::Prohibit, true),
        consts::RTN_THROW => (T::Throw, true),
        _ => (T::Unicast, false),
    }
}

pub(super) fn rule(r: &nl::Rule) -> model::Rule {
    model::Rule {
        family: family(r.family),
        priority: r.priority,
        table: if r.action == consts::FR_ACT_TO_TBL {
            r.table
        } else {
            0
        },
        is_default: r.is_default(),
        l3mdev: r.l3mdev && r.action == consts::FR_ACT_TO_TBL,
        iif: r.iif.clone(),
        text: r.text.clone(),
    }
}

pub(super) fn scope(t: nl::NetconfTarget) -> model::ConfScope {
    match t {
        nl::NetconfTarget::All => model::ConfScope::All,
        nl::NetconfTarget::Default => model::ConfScope::Default,
        nl::NetconfTarget::Link(index) => model::ConfScope::Interface(index),
    }
}

pub(super) fn netconf(c: &nl::Netconf) -> model::Netconf {
    model::Netconf {
        family: family(c.family),
        scope: scope(c.target),
        forwarding: c.forwarding,
        rp_filter: c.rp_filter,
        ignore_linkdown: c.ignore_linkdown,
        send_redirects: None,
        disabled: None,
    }
}

pub(super) fn base_chain(c: &nl::BaseChain) -> Option<model::BaseChain> {
    Some(model::BaseChain {
        family: c.family,
        table: c.table.clone(),
        name: c.name.clone(),
        hook: c.hook?,
        devices: c.devices.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bonds_that_watch_their_links_by_arp_are_the_kernels() {
        let plain = nl::BondInfo {
            mode: 1,
            ..nl::BondInfo::default()
        };
        let by_arp = nl::BondInfo {
            arp_monitor: true,
            ..plain
        };
        assert_eq!(bond(1, &plain).unsupported, None);
        assert_eq!(bond(1, &by_arp).unsupported, Some("arp_interval"));
    }
}
