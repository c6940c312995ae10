//! Changes of bridges: the bridge itself, its ports, their VLANs, stations set by hand, VLAN devices on it.

use super::consts::{
    NDA_LLADDR, NDA_VLAN, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NTF_MASTER, NUD_NOARP,
    RTM_DELLINK, RTM_NEWLINK, RTM_NEWNEIGH, RTM_SETLINK,
};
use super::link::{
    IFLA_ADDRESS, IFLA_BR_AGEING_TIME, IFLA_BR_MCAST_SNOOPING, IFLA_BR_VLAN_DEFAULT_PVID,
    IFLA_BR_VLAN_FILTERING, IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINK, IFLA_LINKINFO,
    IFLA_MASTER, ifinfo,
};
use super::neigh::ndmsg;
use super::wire::Writer;

const IFLA_AF_SPEC: u16 = 26;
const IFLA_BRIDGE_FLAGS: u16 = 0;
const IFLA_BRIDGE_VLAN_INFO: u16 = 2;
/// `BRIDGE_FLAGS_SELF`: the bridge's own entry.
const SELF: u16 = 2;
const PVID: u16 = 1 << 1;
const UNTAGGED: u16 = 1 << 2;
const RANGE_BEGIN: u16 = 1 << 3;
const RANGE_END: u16 = 1 << 4;
const IFLA_VLAN_ID: u16 = 1;
const IFLA_VLAN_FLAGS: u16 = 2;
/// `VLAN_FLAG_REORDER_HDR`
const REORDER_HDR: u32 = 1;
/// `VLAN_FLAG_BRIDGE_BINDING`: its carrier is that of the bridge's ports that are in the VLAN.
const BRIDGE_BINDING: u32 = 1 << 4;

/// A bridge that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgeOf<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its MAC address, whatever its ports have.
    pub mac: [u8; 6],
}

/// How a port, or the bridge itself, is in a VLAN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Membership {
    /// Untagged frames belong to it.
    pub pvid: bool,
    /// The tag is removed at egress.
    pub untagged: bool,
}

fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

fn new_link(w: &mut Writer, flags: u16, seq: u32, name: &str) {
    let flags = flags | NLM_F_CREATE | NLM_F_EXCL;
    w.begin(RTM_NEWLINK, flags, seq, &ifinfo(libc::AF_UNSPEC, 0, 0, 0));
    w.attr(IFLA_IFNAME, &text(name));
}

/// One that filters by VLAN, with VLAN 1 for ports that come; it floods all multicast. Its MTU follows the least of its
/// ports until somebody sets another one: one that it is made with is no such.
fn add_bridge(w: &mut Writer, flags: u16, seq: u32, of: &BridgeOf<'_>) {
    new_link(w, flags, seq, of.name);
    w.attr(IFLA_ADDRESS, &of.mac);
    let link = w.nest(IFLA_LINKINFO);
    w.attr(IFLA_INFO_KIND, b"bridge");
    let data = w.nest(IFLA_INFO_DATA);
    w.attr(IFLA_BR_VLAN_FILTERING, &[1]);
    w.attr(IFLA_BR_VLAN_DEFAULT_PVID, &1u16.to_ne_bytes());
    w.attr(IFLA_BR_MCAST_SNOOPING, &[0]);
    w.end_nest(data);
    w.end_nest(link);
}

fn add_vlan_device(w: &mut Writer, flags: u16, seq: u32, (name, lower, vid): (&str, u32, u16)) {
    new_link(w, flags, seq, name);
    w.attr_u32(IFLA_LINK, lower);
    let link = w.nest(IFLA_LINKINFO);
    w.attr(IFLA_INFO_KIND, b"vlan");
    let data = w.nest(IFLA_INFO_DATA);
    w.attr(IFLA_VLAN_ID, &vid.to_ne_bytes());
    let on = REORDER_HDR | BRIDGE_BINDING;
    w.attr(
        IFLA_VLAN_FLAGS,
        &[on.to_ne_bytes(), on.to_ne_bytes()].concat(),
    );
    w.end_nest(data);
    w.end_nest(link);
}

fn set_master(w: &mut Writer, flags: u16, seq: u32, index: u32, master: u32) {
    let fixed = ifinfo(libc::AF_UNSPEC, index, 0, 0);
    w.begin(RTM_SETLINK, flags, seq, &fixed);
    w.attr_u32(IFLA_MASTER, master);
}

fn set_ageing(w: &mut Writer, flags: u16, seq: u32, index: u32, centiseconds: u32) {
    let fixed = ifinfo(libc::AF_UNSPEC, index, 0, 0);
    w.begin(RTM_NEWLINK, flags, seq, &fixed);
    let link = w.nest(IFLA_LINKINFO);
    w.attr(IFLA_INFO_KIND, b"bridge");
    let data = w.nest(IFLA_INFO_DATA);
    w.attr_u32(IFLA_BR_AGEING_TIME, centiseconds);
    w.end_nest(data);
    w.end_nest(link);
}

/// `bridge vlan add|del vid FIRST-LAST dev … [pvid] [untagged] [self]`
fn bridge_vlans(
    w: &mut Writer,
    (flags, seq): (u16, u32),
    (index, own): (u32, bool),
    (first, last): (u16, u16),
    of: Option<Membership>,
) {
    let kind = match of {
        Some(_) => RTM_SETLINK,
        None => RTM_DELLINK,
    };
    w.begin(kind, flags, seq, &ifinfo(libc::AF_BRIDGE, index, 0, 0));
    let spec = w.nest(IFLA_AF_SPEC);
    if own {
        w.attr(IFLA_BRIDGE_FLAGS, &SELF.to_ne_bytes());
    }
    let of = of.unwrap_or_default();
    let bit = |on: bool, bit: u16| if on { bit } else { 0 };
    let how = bit(of.pvid, PVID) | bit(of.untagged, UNTAGGED);
    let mut info = |how: u16, vid: u16| {
        w.attr(
            IFLA_BRIDGE_VLAN_INFO,
            &[how.to_ne_bytes(), vid.to_ne_bytes()].concat(),
        );
    };
    match first == last {
        true => info(how, first),
        false => {
            info(how | RANGE_BEGIN, first);
            info(how | RANGE_END, last);
        }
    }
    w.end_nest(spec);
}

/// `bridge fdb replace MAC dev PORT master static vlan VLAN`
fn fdb_static(w: &mut Writer, flags: u16, seq: u32, (port, mac, vlan): (u32, &[u8; 6], u16)) {
    let nd = ndmsg(libc::AF_BRIDGE as u8, port, NUD_NOARP, NTF_MASTER);
    w.begin(RTM_NEWNEIGH, flags | NLM_F_CREATE | NLM_F_REPLACE, seq, &nd);
    w.attr(NDA_LLADDR, mac);
    w.attr(NDA_VLAN, &vlan.to_ne_bytes());
}

impl super::Requests {
    /// Makes a bridge that filters by VLAN: ports that come are in VLAN 1, multicast is flooded.
    ///
    /// # Errors
    /// What the kernel says: `EEXIST` of a name that is there, `EOPNOTSUPP` and the like of a kernel without.
    pub fn add_bridge(&mut self, of: &BridgeOf<'_>) -> super::Result<()> {
        self.ask("make a bridge that filters by VLAN", |w, f, s| {
            add_bridge(w, f, s, of);
        })
    }

    /// Makes an 802.1Q device on a bridge, whose carrier is that of the ports in its VLAN.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn add_vlan_device(&mut self, name: &str, bridge: u32, vid: u16) -> super::Result<()> {
        self.ask("make a VLAN device", |w, f, s| {
            add_vlan_device(w, f, s, (name, bridge, vid));
        })
    }

    /// Puts a device into a bridge; 0: takes it out.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn set_master(&mut self, index: u32, master: u32) -> super::Result<()> {
        self.ask("put a device into a bridge", |w, f, s| {
            set_master(w, f, s, index, master);
        })
    }

    /// How long a bridge knows a station that it does not hear, in 1/100 s.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn bridge_ageing(&mut self, index: u32, centiseconds: u32) -> super::Result<()> {
        self.ask("set the ageing time", |w, f, s| {
            set_ageing(w, f, s, index, centiseconds);
        })
    }

    /// Puts a port, or the bridge itself (`own`), into VLANs; without a membership takes it out. A PVID can't be several.
    ///
    /// # Errors
    /// What the kernel says; that it is not in a VLAN that it leaves is none.
    pub fn bridge_vlans(
        &mut self,
        index: u32,
        own: bool,
        vids: (u16, u16),
        of: Option<Membership>,
    ) -> super::Result<()> {
        let what = match of {
            Some(_) => "put a port into a VLAN",
            None => "take a port out of a VLAN",
        };
        self.ask(what, |w, f, s| {
            bridge_vlans(w, (f, s), (index, own), vids, of);
        })
    }

    /// Sets a station of a bridge by hand.
    ///
    /// # Errors
    /// What the kernel says: `EINVAL` when the port is not in that VLAN.
    pub fn fdb_static(&mut self, port: u32, mac: &[u8; 6], vlan: u16) -> super::Result<()> {
        self.ask("set a station", |w, f, s| {
            fdb_static(w, f, s, (port, mac, vlan));
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::wire::{Attrs, Msgs, u16_at, u32_at};
    use crate::netlink::{LinkKind, Object, decode_route_family};

    #[test]
    fn what_is_made_is_what_the_kernel_will_say() {
        let mut w = Writer::new();
        let of = BridgeOf {
            name: "br0",
            mac: [2, 0, 0, 0, 0, 7],
        };
        add_bridge(&mut w, 0, 1, &of);
        add_vlan_device(&mut w, 0, 2, ("vlan10", 5, 10));
        set_ageing(&mut w, 0, 3, 5, 30_000);
        let mut links = Msgs::new(w.bytes()).map(|m| match decode_route_family(&m) {
            Some(crate::netlink::Event::New(Object::Link(l), _)) => l,
            other => panic!("{other:?}"),
        });
        let bridge = links.next().unwrap();
        assert_eq!((bridge.name.as_str(), bridge.mtu), ("br0", 0));
        assert_eq!(bridge.mac, Some([2, 0, 0, 0, 0, 7]));
        let LinkKind::Bridge(info) = bridge.kind else {
            panic!("{:?}", bridge.kind);
        };
        assert!(info.vlan_filtering && !info.mcast_snooping);
        assert_eq!(info.default_pvid, 1);
        let vlan = links.next().unwrap();
        let LinkKind::Vlan(info) = vlan.kind else {
            panic!("{:?}", vlan.kind);
        };
        assert_eq!((vlan.name.as_str(), vlan.lower), ("vlan10", 5));
        assert!(info.id == 10 && info.reorder_hdr);
        let LinkKind::Bridge(info) = links.next().unwrap().kind else {
            panic!("no bridge");
        };
        assert_eq!(info.ageing_time, 30_000);
    }

    #[test]
    fn vlans_of_ports_one_and_many() {
        let asked = |own, vids, of| {
            let mut w = Writer::new();
            bridge_vlans(&mut w, (0, 1), (7, own), vids, of);
            let m = Msgs::new(w.bytes()).next().unwrap();
            assert_eq!(u32_at(m.payload, 4), 7);
            let spec = Attrs::after(m.payload, 16).get(IFLA_AF_SPEC).unwrap();
            let infos: Vec<_> = Attrs::new(spec)
                .map(|(kind, v)| (kind, u16_at(v, 0), u16_at(v, 2)))
                .collect();
            (m.kind, infos)
        };
        let access = Membership {
            pvid: true,
            untagged: true,
        };
        let (kind, infos) = asked(false, (2, 2), Some(access));
        assert_eq!((kind, infos), (RTM_SETLINK, vec![(2, 6, 2)]));
        let (kind, infos) = asked(false, (2, 9), Some(Membership::default()));
        assert_eq!((kind, infos), (RTM_SETLINK, vec![(2, 8, 2), (2, 16, 9)]));
        let (kind, infos) = asked(true, (3, 3), None);
        assert_eq!((kind, infos), (RTM_DELLINK, vec![(0, 2, 0), (2, 0, 3)]));
    }
}
