//! Devices: RTM_*LINK (`linux/if_link.h`).

use super::consts::{RTM_DELLINK, RTM_GETLINK, RTM_NEWLINK, RTM_SETLINK};
use super::types::{
    BondInfo, BondMember, BridgeInfo, BridgeMcast, BridgePort, Link, LinkKind, Object, VlanInfo,
};
use super::wire::{Attrs, Writer, mac, text, u8_at, u16_at, u32_at, u64_at};

/// Bytes of `struct ifinfomsg`.
const IFINFO: usize = 16;

pub(super) const IFLA_ADDRESS: u16 = 1;
pub(super) const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
pub(super) const IFLA_LINK: u16 = 5;
pub(super) const IFLA_MASTER: u16 = 10;
const IFLA_PROTINFO: u16 = 12;
const IFLA_OPERSTATE: u16 = 16;
pub(super) const IFLA_LINKINFO: u16 = 18;
const IFLA_EXT_MASK: u16 = 29;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_PROMISCUITY: u16 = 30;
pub(super) const IFLA_INFO_KIND: u16 = 1;
pub(super) const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFLA_INFO_SLAVE_KIND: u16 = 4;
const IFLA_INFO_SLAVE_DATA: u16 = 5;

const IFLA_VRF_TABLE: u16 = 1;
const IFLA_BR_VLAN_PROTOCOL: u16 = 8;
const IFLA_BR_MULTI_BOOLOPT: u16 = 46;
/// `BR_BOOLOPT_MST_ENABLE`, a bit of `struct br_boolopt_multi`'s `optval`.
const BOOLOPT_MST: u32 = 1 << 2;
/// `BR_BOOLOPT_NO_LL_LEARN`
const BOOLOPT_NO_LL_LEARN: u32 = 1 << 0;
/// `BR_BOOLOPT_MCAST_VLAN_SNOOPING`
const BOOLOPT_MCAST_VLAN: u32 = 1 << 1;

const IFLA_BR_FORWARD_DELAY: u16 = 1;
pub(super) const IFLA_BR_AGEING_TIME: u16 = 4;
const IFLA_BR_TOPOLOGY_CHANGE: u16 = 14;
const IFLA_BR_STP_STATE: u16 = 5;
pub(super) const IFLA_BR_VLAN_FILTERING: u16 = 7;
const IFLA_BR_GROUP_FWD_MASK: u16 = 9;
pub(super) const IFLA_BR_MCAST_SNOOPING: u16 = 23;
const IFLA_BR_MCAST_ROUTER: u16 = 22;
const IFLA_BR_MCAST_QUERIER: u16 = 25;
const IFLA_BR_MCAST_QUERIER_INTVL: u16 = 32;
const IFLA_BR_MCAST_QUERY_INTVL: u16 = 33;
const IFLA_BR_MCAST_QUERY_RESPONSE_INTVL: u16 = 34;
const IFLA_BR_MCAST_IGMP_VERSION: u16 = 43;
const IFLA_BR_MCAST_MLD_VERSION: u16 = 44;
const IFLA_BR_MCAST_QUERIER_STATE: u16 = 47;
const IFLA_BR_FDB_MAX_LEARNED: u16 = 49;
const BRIDGE_QUERIER_IP_OTHER_TIMER: u16 = 3;
const BRIDGE_QUERIER_IPV6_ADDRESS: u16 = 5;
const BRIDGE_QUERIER_IPV6_OTHER_TIMER: u16 = 7;
const IFLA_BR_NF_CALL_IPTABLES: u16 = 36;
const IFLA_BR_NF_CALL_IP6TABLES: u16 = 37;
const IFLA_BR_NF_CALL_ARPTABLES: u16 = 38;
pub(super) const IFLA_BR_VLAN_DEFAULT_PVID: u16 = 39;

const IFLA_BRPORT_STATE: u16 = 1;
const IFLA_BRPORT_LEARNING: u16 = 8;
const IFLA_BRPORT_LOCKED: u16 = 39;
/// `RTEXT_FILTER_SKIP_STATS`: no counters, a third of the bytes.
const RTEXT_FILTER_SKIP_STATS: u32 = 1 << 3;

/// Decodes RTM_NEWLINK or RTM_DELLINK. An AF_BRIDGE message speaks of a bridge port only.
pub(super) fn decode(payload: &[u8]) -> Option<Object> {
    if payload.len() < IFINFO {
        return None;
    }
    let index = u32_at(payload, 4);
    if i32::from(u8_at(payload, 0)) == libc::AF_BRIDGE {
        let attrs = Attrs::after(payload, IFINFO);
        let master = attrs.get(IFLA_MASTER).map_or(0, |v| u32_at(v, 0));
        let brport = attrs.get(IFLA_PROTINFO).filter(|v| v.len() > 4).map(brport);
        return Some(Object::BridgePort {
            ifindex: index,
            master,
            brport,
        });
    }
    let mut link = Link {
        index,
        name: String::new(),
        kind: LinkKind::Other(String::new()),
        flags: u32_at(payload, 8),
        mtu: 0,
        mac: None,
        master: 0,
        slave_kind: String::new(),
        lower: 0,
        lower_elsewhere: false,
        operstate: 0,
        promiscuity: 0,
        brport: None,
        bond: None,
    };
    for (kind, v) in Attrs::after(payload, IFINFO) {
        match kind {
            IFLA_IFNAME => link.name = text(v),
            IFLA_MTU => link.mtu = u32_at(v, 0),
            IFLA_ADDRESS => link.mac = mac(v),
            IFLA_MASTER => link.master = u32_at(v, 0),
            IFLA_LINK => link.lower = u32_at(v, 0),
            IFLA_LINK_NETNSID => link.lower_elsewhere = true,
            IFLA_PROMISCUITY => link.promiscuity = u32_at(v, 0),
            IFLA_OPERSTATE => link.operstate = u8_at(v, 0),
            IFLA_LINKINFO => info(&mut link, v),
            _ => {}
        }
    }
    Some(Object::Link(link))
}

fn info(link: &mut Link, linkinfo: &[u8]) {
    let attrs = Attrs::new(linkinfo);
    let kind = attrs.get(IFLA_INFO_KIND).map(text).unwrap_or_default();
    link.kind = match kind.as_str() {
        "bridge" => LinkKind::Bridge(attrs.get(IFLA_INFO_DATA).map(bridge).unwrap_or_default()),
        "bond" => LinkKind::Bond(attrs.get(IFLA_INFO_DATA).map(bond).unwrap_or_default()),
        "tun" => LinkKind::Tun,
        "vlan" => LinkKind::Vlan(attrs.get(IFLA_INFO_DATA).map(vlan).unwrap_or_default()),
        "vrf" => LinkKind::Vrf(
            attrs
                .get(IFLA_INFO_DATA)
                .and_then(|d| Attrs::new(d).get(IFLA_VRF_TABLE))
                .map_or(0, |v| u32_at(v, 0)),
        ),
        _ => LinkKind::Other(kind),
    };
    link.slave_kind = attrs
        .get(IFLA_INFO_SLAVE_KIND)
        .map(text)
        .unwrap_or_default();
    if link.slave_kind == "bridge" {
        link.brport = attrs.get(IFLA_INFO_SLAVE_DATA).map(brport);
    }
    if link.slave_kind == "bond" {
        link.bond = attrs.get(IFLA_INFO_SLAVE_DATA).map(bond_member);
    }
}

fn bond(data: &[u8]) -> BondInfo {
    let attrs = Attrs::new(data);
    let byte = |kind| attrs.get(kind).map_or(0, |v| u8_at(v, 0));
    BondInfo {
        mode: byte(1),                                                // IFLA_BOND_MODE
        hash: byte(14),                                               // IFLA_BOND_XMIT_HASH_POLICY
        all_active: byte(17) != 0,                                    // IFLA_BOND_ALL_SLAVES_ACTIVE
        arp_monitor: attrs.get(7).is_some_and(|v| u32_at(v, 0) != 0), // IFLA_BOND_ARP_INTERVAL
    }
}

fn bond_member(data: &[u8]) -> BondMember {
    let attrs = Attrs::new(data);
    let zero = |kind| attrs.get(kind).is_some_and(|v| u8_at(v, 0) == 0);
    BondMember {
        active: zero(1), // IFLA_BOND_SLAVE_STATE: BOND_STATE_ACTIVE
        up: zero(2),     // IFLA_BOND_SLAVE_MII_STATUS: BOND_LINK_UP
    }
}

fn vlan(data: &[u8]) -> VlanInfo {
    const ID: u16 = 1; // IFLA_VLAN_ID
    const FLAGS: u16 = 2; // struct ifla_vlan_flags
    const EGRESS_QOS: u16 = 3; // nested, only when there is a mapping
    const PROTOCOL: u16 = 5; // network order
    const REORDER_HDR: u32 = 1;
    let mut info = VlanInfo::default();
    for (kind, v) in Attrs::new(data) {
        match kind {
            ID => info.id = u16_at(v, 0),
            FLAGS => info.reorder_hdr = u32_at(v, 0) & REORDER_HDR != 0,
            EGRESS_QOS => info.egress_qos = !v.is_empty(),
            PROTOCOL => info.protocol = u16_at(v, 0).swap_bytes(),
            _ => {}
        }
    }
    info
}

fn bridge(data: &[u8]) -> BridgeInfo {
    let mut b = BridgeInfo::default();
    for (kind, v) in Attrs::new(data) {
        match kind {
            IFLA_BR_FORWARD_DELAY => b.forward_delay = u32_at(v, 0),
            IFLA_BR_AGEING_TIME => b.ageing_time = u32_at(v, 0),
            IFLA_BR_TOPOLOGY_CHANGE => b.topology_change = v.first().is_some_and(|x| *x != 0),
            IFLA_BR_STP_STATE => b.stp_state = u32_at(v, 0),
            IFLA_BR_VLAN_FILTERING => b.vlan_filtering = u8_at(v, 0) != 0,
            IFLA_BR_GROUP_FWD_MASK => b.group_fwd_mask = u16_at(v, 0),
            IFLA_BR_MCAST_SNOOPING => b.mcast_snooping = u8_at(v, 0) != 0,
            IFLA_BR_NF_CALL_IPTABLES => b.nf_call.ip = u8_at(v, 0) != 0,
            IFLA_BR_NF_CALL_IP6TABLES => b.nf_call.ip6 = u8_at(v, 0) != 0,
            IFLA_BR_NF_CALL_ARPTABLES => b.nf_call.arp = u8_at(v, 0) != 0,
            IFLA_BR_VLAN_DEFAULT_PVID => b.default_pvid = u16_at(v, 0),
            IFLA_BR_VLAN_PROTOCOL => b.vlan_protocol = u16_at(v, 0).to_be(),
            IFLA_BR_MULTI_BOOLOPT => {
                // a kernel that knows this option may know the later attribute as well, which is there only when it has
                // something to say
                b.mcast.tells = u32_at(v, 4) & BOOLOPT_MCAST_VLAN != 0;
                b.mcast.per_vlan = u32_at(v, 0) & BOOLOPT_MCAST_VLAN != 0;
                b.mst = u32_at(v, 0) & BOOLOPT_MST != 0;
                b.no_link_local_learning = u32_at(v, 0) & BOOLOPT_NO_LL_LEARN != 0;
            }
            IFLA_BR_FDB_MAX_LEARNED => b.max_learned = u32_at(v, 0),
            IFLA_BR_MCAST_ROUTER => b.mcast.router = u8_at(v, 0),
            IFLA_BR_MCAST_QUERIER => b.mcast.querier = u8_at(v, 0) != 0,
            IFLA_BR_MCAST_QUERIER_INTVL => b.mcast.querier_interval = u64_at(v, 0),
            IFLA_BR_MCAST_QUERY_INTVL => b.mcast.query_interval = u64_at(v, 0),
            IFLA_BR_MCAST_QUERY_RESPONSE_INTVL => b.mcast.response_interval = u64_at(v, 0),
            IFLA_BR_MCAST_IGMP_VERSION => b.mcast.igmp = u8_at(v, 0),
            IFLA_BR_MCAST_MLD_VERSION => b.mcast.mld = u8_at(v, 0),
            IFLA_BR_MCAST_QUERIER_STATE => queriers(&mut b.mcast, v),
            _ => {}
        }
    }
    b
}

fn queriers(m: &mut BridgeMcast, state: &[u8]) {
    for (kind, v) in Attrs::new(state) {
        match kind {
            BRIDGE_QUERIER_IP_OTHER_TIMER => m.other[0] = Some(u64_at(v, 0)),
            BRIDGE_QUERIER_IPV6_OTHER_TIMER => m.other[1] = Some(u64_at(v, 0)),
            BRIDGE_QUERIER_IPV6_ADDRESS => m.address6 = v.try_into().unwrap_or_default(),
            _ => {}
        }
    }
}

fn brport(data: &[u8]) -> BridgePort {
    let mut p = BridgePort::default();
    for (kind, v) in Attrs::new(data) {
        let on = u8_at(v, 0) != 0;
        match kind {
            IFLA_BRPORT_STATE => p.state = u8_at(v, 0),
            4 => p.hairpin = on,                // MODE
            5 if on => p.other = Some("guard"), // GUARD: BPDUs shut the port
            IFLA_BRPORT_LEARNING => p.learning = on,
            9 => p.unicast_flood = on,                    // UNICAST_FLOOD
            10 | 12 if on => p.other = Some("proxy_arp"), // PROXYARP, PROXYARP_WIFI
            25 => p.mcast_router = u8_at(v, 0),           // MULTICAST_ROUTER
            27 => p.mcast_flood = on,                     // MCAST_FLOOD
            28 if on => p.other = Some("mcast_to_unicast"), // MCAST_TO_UCAST
            29 if on => p.other = Some("vlan_tunnel"),    // VLAN_TUNNEL
            30 => p.bcast_flood = on,                     // BCAST_FLOOD
            31 if u16_at(v, 0) != 0 => p.other = Some("group_fwd_mask"),
            32 => p.neigh_suppress = on,            // NEIGH_SUPPRESS
            33 => p.isolated = on,                  // ISOLATED
            34 => p.other = Some("backup_port"),    // BACKUP_PORT
            35 | 36 if on => p.other = Some("mrp"), // MRP_RING_OPEN, MRP_IN_OPEN
            IFLA_BRPORT_LOCKED => p.locked = on,
            40 if on => p.other = Some("mab"), // MAB: the bridge notes who knocks at a locked port
            43 if on => p.other = Some("neigh_vlan_suppress"), // NEIGH_VLAN_SUPPRESS
            44 if u32_at(v, 0) != 0 => p.other = Some("backup_nhid"), // BACKUP_NHID
            _ => {}
        }
    }
    p
}

/// The request that dumps all devices.
pub(super) fn dump(w: &mut Writer, seq: u32) {
    w.begin(RTM_GETLINK, super::consts::NLM_F_DUMP, seq, &[0; IFINFO]);
    w.attr_u32(IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
}

pub(super) fn ifinfo(family: i32, index: u32, flags: u32, change: u32) -> [u8; IFINFO] {
    let mut b = [0; IFINFO];
    b[0] = family as u8;
    b[4..8].copy_from_slice(&index.to_ne_bytes());
    b[8..12].copy_from_slice(&flags.to_ne_bytes());
    b[12..16].copy_from_slice(&change.to_ne_bytes());
    b
}

impl super::Requests {
    /// Deletes a device, whoever holds it.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn delete_link(&mut self, index: u32) -> super::Result<()> {
        self.ask("delete a device", |w, f, s| {
            w.begin(RTM_DELLINK, f, s, &ifinfo(libc::AF_UNSPEC, index, 0, 0));
        })
    }

    /// Makes a pair of veths with an MTU in bytes.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn add_veth(&mut self, names: [&str; 2], mtu: u32) -> super::Result<()> {
        self.ask("make a veth pair", |w, f, s| add_veth(w, f, s, names, mtu))
    }
}

/// A new pair of veths.
fn add_veth(w: &mut Writer, flags: u16, seq: u32, names: [&str; 2], mtu: u32) {
    let flags = flags | super::consts::NLM_F_CREATE | super::consts::NLM_F_EXCL;
    let info = ifinfo(libc::AF_UNSPEC, 0, 0, 0);
    let name = |n: &str| [n.as_bytes(), &[0]].concat();
    w.begin(RTM_NEWLINK, flags, seq, &info);
    w.attr(IFLA_IFNAME, &name(names[0]));
    w.attr_u32(IFLA_MTU, mtu);
    let link = w.nest(IFLA_LINKINFO);
    w.attr(IFLA_INFO_KIND, b"veth");
    let data = w.nest(IFLA_INFO_DATA);
    let peer = w.nest(VETH_INFO_PEER);
    w.raw(&info);
    w.attr(IFLA_IFNAME, &name(names[1]));
    w.attr_u32(IFLA_MTU, mtu);
    w.end_nest(peer);
    w.end_nest(data);
    w.end_nest(link);
}

/// Changes nothing, under the lock of all configuration.
pub(super) fn touch(w: &mut Writer, flags: u16, seq: u32, index: u32) {
    w.begin(
        RTM_NEWLINK,
        flags,
        seq,
        &ifinfo(libc::AF_UNSPEC, index, 0, 0),
    );
}

/// MAC address.
pub(super) fn set_mac(w: &mut Writer, flags: u16, seq: u32, index: u32, addr: &[u8; 6]) {
    w.begin(
        RTM_NEWLINK,
        flags,
        seq,
        &ifinfo(libc::AF_UNSPEC, index, 0, 0),
    );
    w.attr(IFLA_ADDRESS, addr);
}

/// Learning by the kernel on a bridge port.
pub(super) fn set_learning(w: &mut Writer, flags: u16, seq: u32, index: u32, on: bool) {
    w.begin(
        RTM_SETLINK,
        flags,
        seq,
        &ifinfo(libc::AF_BRIDGE, index, 0, 0),
    );
    let nest = w.nest(IFLA_PROTINFO);
    w.attr(IFLA_BRPORT_LEARNING, &[u8::from(on)]);
    w.end_nest(nest);
}

/// What a bridge's port does with frames (`BR_STATE_*`), or whether it takes only those of stations that are known there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortIs {
    /// `bridge link set … state`
    State(u8),
    /// `bridge link set … locked`
    Locked(bool),
}

fn set_port(w: &mut Writer, flags: u16, seq: u32, (index, is): (u32, PortIs)) {
    let fixed = ifinfo(libc::AF_BRIDGE, index, 0, 0);
    w.begin(RTM_SETLINK, flags, seq, &fixed);
    let nest = w.nest(IFLA_PROTINFO);
    match is {
        PortIs::State(state) => w.attr(IFLA_BRPORT_STATE, &[state]),
        PortIs::Locked(on) => w.attr(IFLA_BRPORT_LOCKED, &[u8::from(on)]),
    }
    w.end_nest(nest);
}

impl super::Requests {
    /// Says what a bridge's port does with frames.
    ///
    /// # Errors
    /// What the kernel says: `ENETDOWN` of a state where the port has no carrier, `EBUSY` where the kernel's own spanning tree has it.
    pub fn bridge_port(&mut self, index: u32, is: PortIs) -> super::Result<()> {
        self.ask("set a bridge's port", |w, f, s| {
            set_port(w, f, s, (index, is));
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bonds() {
        // IFLA_BOND_MODE 1, IFLA_BOND_ARP_INTERVAL of 0 and of 100 ms, IFLA_BOND_ALL_SLAVES_ACTIVE
        let of = |interval: u8, all: u8| {
            let mut data = vec![5, 0, 1, 0, 1, 0, 0, 0, 8, 0, 7, 0, interval, 0, 0, 0];
            data.extend([5, 0, 17, 0, all, 0, 0, 0]);
            bond(&data)
        };
        assert_eq!((of(0, 0).mode, of(0, 0).arp_monitor), (1, false));
        assert!(of(100, 0).arp_monitor && !of(100, 0).all_active);
        assert!(of(0, 1).all_active && !of(0, 1).arp_monitor);
    }
}
