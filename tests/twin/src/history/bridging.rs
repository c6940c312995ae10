//! What is done to bridges, their ports and stations.

use tandem_linux::netlink::consts::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NUD_NOARP, RTM_DELNEIGH, RTM_NEWLINK, RTM_NEWNEIGH,
    RTM_SETLINK,
};

use super::op::{Op, Verb, Wait, device, ifinfo, mac_words, message, zero_terminated};

const AF_BRIDGE: u8 = 7;

/// A setting of a bridge's port: `IFLA_BRPORT_*` and its word.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PortFlag(pub u16, pub &'static str);

/// The settings that are drawn, besides `state`.
pub const PORT_FLAGS: [PortFlag; 7] = [
    PortFlag(4, "hairpin"),
    PortFlag(8, "learning"),
    PortFlag(9, "flood"),
    PortFlag(27, "mcast_flood"),
    PortFlag(30, "bcast_flood"),
    PortFlag(32, "neigh_suppress"),
    PortFlag(33, "isolated"),
];
/// `bridge link set … state`
pub const PORT_STATE: PortFlag = PortFlag(1, "state");

impl Op {
    /// `ip link add brN address … type bridge`, without snooping and spanning tree.
    #[must_use]
    pub fn bridge(dev: u32, mac: [u8; 6]) -> Self {
        const IFLA_ADDRESS: u16 = 1;
        const IFLA_IFNAME: u16 = 3;
        const IFLA_LINKINFO: u16 = 18;
        const INFO_KIND: u16 = 1;
        const INFO_DATA: u16 = 2;
        const BR_MCAST_SNOOPING: u16 = 23;
        let name = device(dev);
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
        let act = message(RTM_NEWLINK, flags, &ifinfo(dev, 0, 0), |w| {
            w.attr(IFLA_IFNAME, zero_terminated(&name).as_slice());
            w.attr(IFLA_ADDRESS, &mac);
            let info = w.nest(IFLA_LINKINFO);
            w.attr(INFO_KIND, b"bridge");
            let data = w.nest(INFO_DATA);
            w.attr(BR_MCAST_SNOOPING, &[0]);
            w.end_nest(data);
            w.end_nest(info);
        });
        let mac = mac_words(mac);
        Self {
            text: format!("ip link add {name} address {mac} type bridge mcast_snooping 0"),
            act,
            wait: Wait::Device(dev),
        }
    }

    /// `ip link set … master …`, `nomaster` without one.
    #[must_use]
    pub fn master(dev: u32, master: Option<u32>) -> Self {
        const IFLA_MASTER: u16 = 10;
        let act = message(RTM_NEWLINK, NLM_F_ACK, &ifinfo(dev, 0, 0), |w| {
            w.attr_u32(IFLA_MASTER, master.unwrap_or(0));
        });
        let words = master.map_or_else(|| "nomaster".into(), |m| format!("master {}", device(m)));
        Self::links(format!("ip link set {} {words}", device(dev)), act)
    }

    /// `bridge link set dev … WORD on|off` or `state N`.
    #[must_use]
    pub fn port_flag(dev: u32, flag: &PortFlag, value: u8) -> Self {
        const IFLA_PROTINFO: u16 = 12;
        let mut fixed = ifinfo(dev, 0, 0);
        fixed[0] = AF_BRIDGE;
        let act = message(RTM_SETLINK, NLM_F_ACK, &fixed, |w| {
            let nest = w.nest(IFLA_PROTINFO);
            w.attr(flag.0, &[value]);
            w.end_nest(nest);
        });
        let value = match (flag.1, value) {
            ("state", n) => n.to_string(),
            (_, 0) => "off".into(),
            _ => "on".into(),
        };
        Self::links(
            format!("bridge link set dev {} {} {value}", device(dev), flag.1),
            act,
        )
    }

    /// `bridge fdb add|replace|del MAC dev … master static|dynamic`
    #[must_use]
    pub fn fdb(verb: Verb, dev: u32, mac: [u8; 6], is_static: bool) -> Self {
        const NDA_LLADDR: u16 = 2;
        const NTF_MASTER: u8 = 4;
        const NUD_REACHABLE: u16 = 2;
        let state = if is_static { NUD_NOARP } else { NUD_REACHABLE };
        let mut fixed = [0; 12];
        fixed[0] = AF_BRIDGE;
        fixed[4..8].copy_from_slice(&dev.to_ne_bytes());
        fixed[8..10].copy_from_slice(&state.to_ne_bytes());
        fixed[10] = NTF_MASTER;
        let kind = if verb == Verb::Delete {
            RTM_DELNEIGH
        } else {
            RTM_NEWNEIGH
        };
        let act = message(kind, verb.flags(), &fixed, |w| w.attr(NDA_LLADDR, &mac));
        let how = if is_static { "static" } else { "dynamic" };
        let text = format!(
            "bridge fdb {} {} dev {} master {how}",
            verb.word(),
            mac_words(mac),
            device(dev)
        );
        Self::plain(text, act)
    }
}
