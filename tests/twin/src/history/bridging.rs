//! What is done to bridges, their ports and stations.

use tandem_linux::netlink::consts::{
    NLM_F_ACK, NLM_F_REQUEST, NUD_NOARP, RTM_DELNEIGH, RTM_NEWLINK, RTM_NEWNEIGH, RTM_SETLINK,
};

use super::op::{Act, Op, Verb, device, ifinfo, mac_words, message};

pub(super) const AF_BRIDGE: u8 = 7;

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
/// `bridge link set … learning`
pub const LEARNING: PortFlag = PortFlag(8, "learning");
/// `bridge link set … state`
pub const PORT_STATE: PortFlag = PortFlag(1, "state");

impl Op {
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

    /// A port comes into a bridge that learns nothing: `ip link set … master …` and `bridge link set … learning off`, both in one
    /// datagram, so that no frame is in between. The answer is the first one's.
    #[must_use]
    pub fn still_port(dev: u32, bridge: u32) -> Self {
        let mut op = Self::master(dev, Some(bridge));
        let quiet = Self::port_flag(dev, &LEARNING, 0);
        if let (Act::Message(both), Act::Message(mut second)) = (&mut op.act, quiet.act) {
            // `nlmsg_flags` without NLM_F_ACK
            if let Some(flags) = second.get_mut(6..8) {
                flags.copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
            }
            both.extend(second);
        }
        op.text += " learning off";
        op
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

    /// `bridge fdb add|replace|del MAC dev … master static|dynamic [vlan …]`; VLAN 0: none is named.
    #[must_use]
    pub fn fdb(verb: Verb, dev: u32, mac: [u8; 6], is_static: bool, vlan: u16) -> Self {
        const NDA_LLADDR: u16 = 2;
        const NDA_VLAN: u16 = 5;
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
        let act = message(kind, verb.flags(), &fixed, |w| {
            w.attr(NDA_LLADDR, &mac);
            if vlan != 0 {
                w.attr(NDA_VLAN, &vlan.to_ne_bytes());
            }
        });
        let how = if is_static { "static" } else { "dynamic" };
        let mut text = format!(
            "bridge fdb {} {} dev {} master {how}",
            verb.word(),
            mac_words(mac),
            device(dev)
        );
        if vlan != 0 {
            text += &format!(" vlan {vlan}");
        }
        Self::plain(text, act)
    }
}
