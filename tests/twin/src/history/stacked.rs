//! Devices on devices: bridges that know VLANs, VLAN interfaces, VRFs. And what is set of them.

use tandem_linux::netlink::consts::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, RTM_DELLINK, RTM_DELMDB, RTM_NEWLINK, RTM_NEWMDB,
    RTM_SETLINK,
};
use tandem_linux::netlink::wire::Writer;

use super::bridging::AF_BRIDGE;
use super::op::{Op, Wait, device, ifinfo, mac_words, message, zero_terminated};

/// The VLAN interfaces: index, what they are on, VLAN.
pub const VLAN_DEVICES: [(u32, u32, u16); 3] = [(31, 21, 10), (32, 21, 20), (33, 11, 5)];
/// The VRF's index.
pub const VRF: u32 = 41;
/// Its table.
pub const VRF_TABLE: u32 = 1001;
/// The VLANs of bridges.
pub const VLANS: [u16; 2] = [10, 20];

/// What a VLAN interface is on, and its VLAN.
#[must_use]
pub fn lower(dev: u32) -> Option<(u32, u16)> {
    let mut all = VLAN_DEVICES.iter();
    all.find(|(index, ..)| *index == dev)
        .map(|(_, on, vid)| (*on, *vid))
}

fn make(
    dev: u32,
    kind: &str,
    text: String,
    own: impl FnOnce(&mut Writer),
    data: impl FnOnce(&mut Writer),
) -> Op {
    const IFLA_IFNAME: u16 = 3;
    let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
    let act = message(RTM_NEWLINK, flags, &ifinfo(dev, 0, 0), |w| {
        w.attr(IFLA_IFNAME, zero_terminated(&device(dev)).as_slice());
        own(w);
        info(w, kind, data);
    });
    let wait = Wait::Device(dev);
    Op { text, act, wait }
}

fn info(w: &mut Writer, kind: &str, data: impl FnOnce(&mut Writer)) {
    const IFLA_LINKINFO: u16 = 18;
    const INFO_KIND: u16 = 1;
    const INFO_DATA: u16 = 2;
    let info = w.nest(IFLA_LINKINFO);
    w.attr(INFO_KIND, kind.as_bytes());
    let nest = w.nest(INFO_DATA);
    data(w);
    w.end_nest(nest);
    w.end_nest(info);
}

/// How a bridge is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct BridgeKind {
    /// It knows VLANs, and has none at first.
    pub vlans: bool,
    /// It looks at who wants which group, and believes whoever asks for it at once.
    pub snooping: bool,
}

impl Op {
    /// `ip link add brN address … type bridge …`, without spanning tree.
    #[must_use]
    pub fn bridge(dev: u32, mac: [u8; 6], kind: BridgeKind) -> Self {
        const IFLA_ADDRESS: u16 = 1;
        const BR_VLAN_FILTERING: u16 = 7;
        const BR_MCAST_SNOOPING: u16 = 23;
        const BR_MCAST_QUERY_RESPONSE_INTVL: u16 = 34;
        const BR_VLAN_DEFAULT_PVID: u16 = 39;
        let mut text = format!(
            "ip link add {} address {} type bridge mcast_snooping {}",
            device(dev),
            mac_words(mac),
            u8::from(kind.snooping)
        );
        if kind.snooping {
            text += " mcast_query_response_interval 0";
        }
        if kind.vlans {
            text += " vlan_filtering 1 vlan_default_pvid 0";
        }
        make(
            dev,
            "bridge",
            text,
            |w| w.attr(IFLA_ADDRESS, &mac),
            |w| {
                w.attr(BR_MCAST_SNOOPING, &[u8::from(kind.snooping)]);
                if kind.snooping {
                    w.attr(BR_MCAST_QUERY_RESPONSE_INTVL, &0u64.to_ne_bytes());
                }
                if kind.vlans {
                    w.attr(BR_VLAN_DEFAULT_PVID, &0u16.to_ne_bytes());
                    w.attr(BR_VLAN_FILTERING, &[1]);
                }
            },
        )
    }

    /// `ip link set brN type bridge mcast_querier 1`: by the response time that the bridge has already.
    #[must_use]
    pub fn querier(dev: u32) -> Self {
        const BR_MCAST_QUERIER: u16 = 25;
        let act = message(RTM_NEWLINK, NLM_F_ACK, &ifinfo(dev, 0, 0), |w| {
            info(w, "bridge", |w| w.attr(BR_MCAST_QUERIER, &[1]));
        });
        Self {
            text: format!("ip link set {} type bridge mcast_querier 1", device(dev)),
            act,
            wait: Wait::Tick,
        }
    }

    /// `ip link add link … name … type vlan id …`
    #[must_use]
    pub fn vlan_device(dev: u32) -> Self {
        const IFLA_LINK: u16 = 5;
        const IFLA_VLAN_ID: u16 = 1;
        let (on, vid) = lower(dev).unwrap_or_default();
        let text = format!(
            "ip link add link {} name {} type vlan id {vid}",
            device(on),
            device(dev)
        );
        make(
            dev,
            "vlan",
            text,
            |w| w.attr_u32(IFLA_LINK, on),
            |w| w.attr(IFLA_VLAN_ID, &vid.to_ne_bytes()),
        )
    }

    /// `ip link add … address … type vrf table …`
    #[must_use]
    pub fn vrf(dev: u32, table: u32) -> Self {
        const IFLA_ADDRESS: u16 = 1;
        const IFLA_VRF_TABLE: u16 = 1;
        let mac = [2, 0, 0, 0, 4, dev as u8];
        let text = format!(
            "ip link add {} address {} type vrf table {table}",
            device(dev),
            mac_words(mac)
        );
        make(
            dev,
            "vrf",
            text,
            |w| w.attr(IFLA_ADDRESS, &mac),
            |w| w.attr_u32(IFLA_VRF_TABLE, table),
        )
    }

    /// `bridge vlan add|del dev … vid … [pvid] [untagged] [self]`
    #[must_use]
    pub fn bridge_vlan(add: bool, dev: u32, vid: u16, untagged: bool) -> Self {
        const IFLA_AF_SPEC: u16 = 26;
        const BRIDGE_FLAGS: u16 = 0;
        const BRIDGE_VLAN_INFO: u16 = 2;
        const FLAGS_SELF: u16 = 2;
        const PVID_UNTAGGED: u16 = 2 | 4;
        let own = (21..30).contains(&dev);
        let mut fixed = ifinfo(dev, 0, 0);
        fixed[0] = AF_BRIDGE;
        let kind = if add { RTM_SETLINK } else { RTM_DELLINK };
        let flags = if untagged && add { PVID_UNTAGGED } else { 0 };
        let act = message(kind, NLM_F_ACK, &fixed, |w| {
            let nest = w.nest(IFLA_AF_SPEC);
            if own {
                w.attr(BRIDGE_FLAGS, &FLAGS_SELF.to_ne_bytes());
            }
            w.attr(
                BRIDGE_VLAN_INFO,
                &[flags.to_ne_bytes(), vid.to_ne_bytes()].concat(),
            );
            w.end_nest(nest);
        });
        let text = format!(
            "bridge vlan {} dev {} vid {vid}{}{}",
            if add { "add" } else { "del" },
            device(dev),
            if flags != 0 { " pvid untagged" } else { "" },
            if own { " self" } else { "" }
        );
        Self::links(text, act)
    }

    /// `bridge mdb add|del dev … port … grp … permanent`
    #[must_use]
    pub fn mdb(add: bool, bridge: u32, port: u32, group: [u8; 4]) -> Self {
        const MDBA_SET_ENTRY: u16 = 1;
        const PERMANENT: u8 = 1;
        let mut fixed = [0; 8];
        fixed[0] = AF_BRIDGE;
        fixed[4..].copy_from_slice(&bridge.to_ne_bytes());
        let (kind, flags) = if add {
            (RTM_NEWMDB, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL)
        } else {
            (RTM_DELMDB, NLM_F_ACK)
        };
        // `struct br_mdb_entry`
        let mut entry = [0; 28];
        entry[..4].copy_from_slice(&port.to_ne_bytes());
        entry[4] = PERMANENT;
        entry[8..12].copy_from_slice(&group);
        entry[24..26].copy_from_slice(&0x0800u16.to_be_bytes());
        let act = message(kind, flags, &fixed, |w| w.attr(MDBA_SET_ENTRY, &entry));
        let group = std::net::Ipv4Addr::from(group);
        let verb = if add { "add" } else { "del" };
        let (bridge, port) = (device(bridge), device(port));
        Self::plain(
            format!("bridge mdb {verb} dev {bridge} port {port} grp {group} permanent"),
            act,
        )
    }
}
