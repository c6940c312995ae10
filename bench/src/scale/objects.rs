//! What the kernel would tell of a shape.

use super::{BOND, BONDED, SPARE};
use anyhow::Result;
use std::net::{IpAddr, Ipv4Addr};
use tandem_abi::raw::tnd_acl_key;
use tandem_store::model::*;

pub(super) fn link(ifindex: u32, name: String, kind: LinkKind) -> Link {
    let [_, b, c, d] = ifindex.to_be_bytes();
    Link {
        ifindex,
        name,
        kind,
        master: 0,
        lower: 0,
        promiscuous: false,
        admin_up: true,
        carrier: true,
        mtu: 1500,
        mac: [2, 0, 0, b, c, d],
        bridge_port: None,
        bond_active: false,
        mc_forwarding: false,
    }
}

pub(super) fn swp(port: u16) -> Link {
    link(
        u32::from(port),
        format!("swp{port}"),
        LinkKind::Swp { port },
    )
}

pub(super) fn joined(port: u16, bridge: u32) -> Link {
    Link {
        master: bridge,
        bridge_port: Some(BridgePort::default()),
        ..swp(port)
    }
}

pub(super) fn bond(unsupported: Option<&'static str>) -> Link {
    let info = BondInfo {
        lag: 1,
        hash: 0,
        unsupported,
    };
    link(BOND, "bond0".into(), LinkKind::Bond(info))
}

/// The bond's port.
pub(super) fn bonded(active: bool) -> Link {
    Link {
        master: BOND,
        bond_active: active,
        carrier: active,
        ..swp(BONDED)
    }
}

pub(super) fn bridge(ifindex: u32, vlan_filtering: bool) -> Link {
    let info = BridgeInfo {
        vlan_filtering,
        ageing_s: 300,
        ..BridgeInfo::default()
    };
    link(ifindex, format!("br{ifindex}"), LinkKind::Bridge(info))
}

pub(super) fn vlan_interface(ifindex: u32, vid: u16, lower: &Link) -> Link {
    Link {
        lower: lower.ifindex,
        mac: lower.mac,
        ..link(ifindex, format!("v{ifindex}"), LinkKind::Vlan { vid })
    }
}

pub(super) fn vlan(ifindex: u32, vid: u16) -> Object {
    Object::BridgeVlan(BridgeVlan {
        ifindex,
        vid,
        pvid: false,
        untagged: false,
        state: 3,
        unsupported: None,
        tap: 0,
    })
}

pub(super) fn hop(ifindex: u32, gateway: Option<Ipv4Addr>) -> NextHop {
    NextHop {
        ifindex,
        gateway: gateway.map(IpAddr::from),
        weight: 1,
        dead: false,
        linkdown: false,
        onlink: false,
    }
}

pub(super) fn route(
    prefix: (Ipv4Addr, u8),
    table: u32,
    kind: RouteType,
    to: NextHop,
) -> Result<Object> {
    let scope = match (kind, to.gateway) {
        (RouteType::Local, _) => 254,
        (_, None) => 253,
        _ => 0,
    };
    Ok(Object::Route(Route {
        key: RouteKey {
            table,
            prefix: ipnet::Ipv4Net::new(prefix.0, prefix.1)?.into(),
            tos: 0,
            metric: 0,
            position: 0,
        },
        kind,
        scope,
        protocol: 2,
        prefsrc: None,
        nexthops: RouteNextHops::One(to),
        unsupported: None,
    }))
}

pub(super) fn address(ifindex: u32, a: Ipv4Addr) -> Addr {
    Addr {
        ifindex,
        addr: a.into(),
        prefix_len: 24,
    }
}

pub(super) fn forwarding(ifindex: u32) -> Object {
    Object::Netconf(Netconf {
        family: Family::V4,
        scope: ConfScope::Interface(ifindex),
        forwarding: Some(true),
        rp_filter: Some(0),
        ignore_linkdown: Some(false),
        send_redirects: Some(true),
        disabled: None,
    })
}

/// Without them everything routed traps.
pub(super) fn kernel_rules() -> [Object; 2] {
    [(0, TABLE_LOCAL), (32766, TABLE_MAIN)].map(|(priority, table)| {
        Object::Rule(Rule {
            family: Family::V4,
            priority,
            table,
            is_default: true,
            l3mdev: false,
            iif: String::new(),
            text: format!("from all lookup {table}"),
        })
    })
}

pub(super) fn filter() -> Filter {
    Filter {
        key: FilterKey {
            ifindex: u32::from(SPARE),
            egress: false,
            chain: 0,
            priority: 10,
            handle: 1,
        },
        text: String::from("drop"),
        fields: tnd_acl_key::default(),
        mask: tnd_acl_key::default(),
        src_ports: None,
        dst_ports: None,
        verdict: FilterVerdict::Drop,
        mirror: None,
        police: None,
        kernel: None,
    }
}

/// One of port 1: a UDP port's packets leave by port 2.
pub(super) fn to_port_two(k: usize) -> Filter {
    let mut f = filter();
    f.key.ifindex = 1;
    f.key.handle = k as u32 + 1;
    (f.fields.ethertype, f.mask.ethertype) = (0x0800, u16::MAX);
    (f.fields.protocol, f.mask.protocol) = (17, u8::MAX);
    (f.fields.dst_port, f.mask.dst_port) = (k as u16, u16::MAX);
    f.verdict = FilterVerdict::Redirect(2);
    f
}

/// An interface with 10.A.B.1/24, as the kernel tells of it, and a neighbour 10.A.B.2.
pub(super) fn addressed(ifindex: u32, net: u32) -> Result<Vec<Object>> {
    let at = |host: u32| Ipv4Addr::from((10 << 24) + (net << 8) + host);
    let own = hop(ifindex, None);
    Ok(vec![
        forwarding(ifindex),
        Object::Addr(address(ifindex, at(1))),
        route((at(1), 32), TABLE_LOCAL, RouteType::Local, own)?,
        route((at(0), 24), TABLE_MAIN, RouteType::Unicast, own)?,
        route((at(255), 32), TABLE_LOCAL, RouteType::Broadcast, own)?,
        Object::Neigh(Neigh {
            ifindex,
            addr: at(2).into(),
            mac: [2, 1, 0, 0, (net >> 8) as u8, net as u8],
            state: nud::REACHABLE,
        }),
    ])
}
