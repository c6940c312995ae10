//! Bodies of the classes, as values to compare, and how they are laid out in a command.

use super::ids::{Ids, Numbers};
use super::table::HwBody;
use super::{Cls, Ref, body_of};
use crate::api::{Body, Domain};
use crate::doors::lets;
use crate::model::{BR_STATE_FORWARDING, GroupAddr};
use std::net::IpAddr;
use tandem_abi::raw::*;
use zerocopy::IntoBytes;

fn size<T>() -> u16 {
    size_of::<T>() as u16
}

/// Family and address as the ABI carries them.
pub(crate) fn abi_addr(a: IpAddr) -> (u8, [u8; 16]) {
    match a {
        IpAddr::V4(a) => {
            let mut b = [0u8; 16];
            b[..4].copy_from_slice(&a.octets());
            (TND_AF_INET, b)
        }
        IpAddr::V6(a) => (TND_AF_INET6, a.octets()),
    }
}

/// TND_CLS_PORT. Table id = port − 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Port {
    pub flags: u32,
    pub mtu: u32,
    pub stp: u8,
    pub mac: [u8; 6],
    /// Table id of the link aggregation group whose port this is.
    pub lag: Option<u32>,
}

impl Port {
    /// There is no netdev: nothing comes in, nothing leaves.
    pub const CUT_OFF: Port = Port {
        flags: 0,
        // the chip refuses 0
        mtu: 1500,
        stp: TND_STP_DISABLED,
        mac: [0; 6],
        lag: None,
    };
    /// The netdev is another namespace's, whose settings nobody tells: its kernel hears all and sends what it likes, up to
    /// a cable's length.
    pub const AWAY: Port = Port {
        flags: TND_PORT_UP | TND_PORT_TRAP_ALL,
        mtu: 9216,
        stp: BR_STATE_FORWARDING,
        mac: [0; 6],
        lag: None,
    };

    /// It is not known.
    pub fn is_spoilt(&self) -> bool {
        self.mtu == u32::MAX
    }
}

impl HwBody for Port {
    const FIXED: bool = true;
    const KEEP: bool = true;
    fn encode(&self, id: u32, _: &Ids) -> Body {
        body_of(&tnd_port {
            struct_size: size::<tnd_port>(),
            port: (id + 1) as u16,
            flags: self.flags,
            mtu: self.mtu,
            stp_state: self.stp,
            mac: self.mac,
            ..Default::default()
        })
    }
    fn deps(&self, f: &mut dyn FnMut(Ref)) {
        on_lag(self.lag, f);
    }
    // all that it takes is the CPU's
    fn not_yet(&mut self, have: &Self) {
        *self = Port {
            flags: have.flags | TND_PORT_TRAP_ALL,
            ..have.clone()
        };
    }
    // it floods what it has no entry for yet, and filters nothing
    fn on_bare(&mut self) {
        if self.flags & TND_PORT_UP != 0 {
            self.flags |= TND_PORT_TRAP_ALL;
        }
    }
    fn spoil(&mut self) {
        self.mtu = u32::MAX;
        // perhaps it is open
        self.flags = (self.flags | TND_PORT_UP) & !TND_PORT_TRAP_ALL;
        self.stp = BR_STATE_FORWARDING;
    }
}

/// What is on a group's port needs the group.
fn on_lag(lag: Option<u32>, f: &mut dyn FnMut(Ref)) {
    if let Some(id) = lag {
        f(Ref::new(Cls::Lag, id));
    }
}

/// TND_CLS_LAG
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lag {
    pub lag: u16,
    pub hash: u16,
    /// Front-panel ports in order, and whether they take part.
    pub members: Vec<(u16, bool)>,
}

impl HwBody for Lag {
    fn same_key(&self, other: &Self) -> bool {
        self.lag == other.lag
    }
    fn encode(&self, _: u32, _: &Ids) -> Body {
        let head = tnd_lag {
            struct_size: size::<tnd_lag>(),
            lag: self.lag,
            count: self.members.len() as u16,
            hash: self.hash,
        };
        let mut b = head.as_bytes().to_vec();
        for (port, active) in &self.members {
            let m = tnd_lag_member {
                port: *port,
                flags: if *active { TND_LAG_ACTIVE } else { 0 },
            };
            b.extend_from_slice(m.as_bytes());
        }
        Body::Arena(b.into())
    }
    fn deps(&self, _: &mut dyn FnMut(Ref)) {}
    fn spoil(&mut self) {
        self.hash = u16::MAX;
    }
}

/// TND_CLS_VLAN
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Vlan {
    /// What it stands for.
    pub domain: Domain,
    pub flags: u32,
    pub ageing_s: u32,
}

impl HwBody for Vlan {
    fn numbers(ids: &mut Ids) -> Option<&mut Numbers> {
        Some(&mut ids.fids)
    }
    fn name(&mut self, id: u32, ids: &mut Ids) {
        ids.name_domain(id, self.domain);
    }
    fn encode(&self, id: u32, ids: &Ids) -> Body {
        body_of(&tnd_vlan {
            struct_size: size::<tnd_vlan>(),
            fid: ids.fid(id),
            flags: self.flags,
            ageing_s: self.ageing_s,
            ..Default::default()
        })
    }
    fn deps(&self, _: &mut dyn FnMut(Ref)) {}
    // unknown stations are the CPU's still
    fn not_yet(&mut self, have: &Self) {
        self.flags |= have.flags & TND_VLAN_UC_TRAP;
    }
    fn spoil(&mut self) {
        self.flags = u32::MAX;
    }
}

/// TND_CLS_VLAN_MEMBER. Ids by port and VID.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    /// Table id of the VLAN.
    pub vlan: u32,
    pub port: u16,
    pub vid: u16,
    pub flags: u32,
    /// Table id of the group whose port it is.
    pub lag: Option<u32>,
}

impl HwBody for Member {
    fn encode(&self, _: u32, ids: &Ids) -> Body {
        body_of(&tnd_vlan_member {
            struct_size: size::<tnd_vlan_member>(),
            fid: ids.fid(self.vlan),
            port: self.port,
            vid: self.vid,
            flags: self.flags,
            ..Default::default()
        })
    }
    fn deps(&self, f: &mut dyn FnMut(Ref)) {
        f(Ref::new(Cls::Vlan, self.vlan));
        on_lag(self.lag, f);
    }
    /// In another domain it would go on getting that one's floods, and hold the room that the new one may wait for.
    fn is_astray(&self, want: &Self) -> bool {
        self.vlan != want.vlan
    }
    fn spoil(&mut self) {
        self.flags = u32::MAX;
    }
}

/// TND_CLS_VRF, but the default one, which is there always.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Vrf {
    /// The table of its routes.
    pub table: u32,
}

impl HwBody for Vrf {
    fn numbers(ids: &mut Ids) -> Option<&mut Numbers> {
        Some(&mut ids.vrfs)
    }
    fn name(&mut self, id: u32, ids: &mut Ids) {
        ids.name_vrf(id, self.table);
    }
    fn encode(&self, id: u32, ids: &Ids) -> Body {
        body_of(&tnd_vrf {
            struct_size: size::<tnd_vrf>(),
            vrf: ids.vrfs.of(id) as u16,
            flags: 0,
        })
    }
    fn deps(&self, _: &mut dyn FnMut(Ref)) {}
    /// There is nothing to differ in.
    fn spoil(&mut self) {}
}

/// Where a router interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum RifPlace {
    Port(u16),
    /// Frames of a port with this VLAN's tag.
    PortVlan(u16, u16),
    /// Table id of the VLAN.
    Vlan(u32),
}

/// TND_CLS_RIF
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rif {
    /// 0, or the table id of the VRF plus one.
    pub vrf: u8,
    pub place: RifPlace,
    pub mac: [u8; 6],
    pub flags: u32,
    pub mtu: u32,
    /// Table id of the group whose port it is on.
    pub lag: Option<u32>,
}

impl HwBody for Rif {
    fn numbers(ids: &mut Ids) -> Option<&mut Numbers> {
        Some(&mut ids.rifs)
    }
    fn name(&mut self, id: u32, ids: &mut Ids) {
        ids.name_rif(id, self.place);
    }
    fn encode(&self, id: u32, ids: &Ids) -> Body {
        let (kind, port, vid, fid) = match self.place {
            RifPlace::Port(p) => (TND_RIF_PORT, p, 0, 0),
            RifPlace::PortVlan(p, vid) => (TND_RIF_PORT_VLAN, p, vid, 0),
            RifPlace::Vlan(v) => (TND_RIF_FID, 0, 0, ids.fid(v)),
        };
        body_of(&tnd_rif {
            struct_size: size::<tnd_rif>(),
            rif: ids.rif(id),
            vrf: ids.vrf(self.vrf),
            kind,
            port,
            vid,
            fid,
            mac: self.mac,
            flags: self.flags,
            mtu: self.mtu,
            ..Default::default()
        })
    }
    fn deps(&self, f: &mut dyn FnMut(Ref)) {
        if let RifPlace::Vlan(v) = self.place {
            f(Ref::new(Cls::Vlan, v));
        }
        if let Some(v) = self.vrf.checked_sub(1) {
            f(Ref::new(Cls::Vrf, u32::from(v)));
        }
        on_lag(self.lag, f);
    }
    fn as_left(&mut self, ids: &Ids) {
        self.flags &= !(ids.left_shut(self.place) & lets(self.flags));
    }
    fn not_yet(&mut self, have: &Self) {
        let which = TND_RIF_V4 | TND_RIF_V6 | TND_RIF_TRAP_ALL;
        let stays = match have.flags & TND_RIF_TRAP_ALL {
            0 => lets(have.flags) & lets(self.flags),
            _ => have.flags & which,
        };
        self.flags = self.flags & !which | stays;
    }
    fn spoil(&mut self) {
        self.mtu = u32::MAX;
        // perhaps it is open
        self.flags = (self.flags | TND_RIF_V4 | TND_RIF_V6) & !TND_RIF_TRAP_ALL;
    }
}

/// TND_CLS_NEXTHOP
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Nexthop {
    /// [`super::gateway_hash`] of what it leads to.
    pub hash: u32,
    /// Table id of the RIF.
    pub rif: u32,
    /// None: not resolved, packets go to the CPU, which makes the kernel resolve.
    pub mac: Option<[u8; 6]>,
}

impl HwBody for Nexthop {
    fn numbers(ids: &mut Ids) -> Option<&mut Numbers> {
        Some(&mut ids.nexthops)
    }
    fn name(&mut self, id: u32, ids: &mut Ids) {
        ids.name_nexthop(id, self.hash);
    }
    fn encode(&self, id: u32, ids: &Ids) -> Body {
        body_of(&tnd_nexthop {
            struct_size: size::<tnd_nexthop>(),
            rif: ids.rif(self.rif),
            nexthop: ids.nexthops.of(id),
            action: if self.mac.is_some() {
                TND_ACT_FORWARD
            } else {
                TND_ACT_TRAP
            },
            reason: if self.mac.is_some() {
                0
            } else {
                TND_TRAP_UNRESOLVED as u8
            },
            mac: self.mac.unwrap_or_default(),
        })
    }
    fn deps(&self, f: &mut dyn FnMut(Ref)) {
        f(Ref::new(Cls::Rif, self.rif));
    }
    fn spoil(&mut self) {
        self.mac = Some([0xff; 6]);
    }
}

/// TND_CLS_NHG
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Nhg {
    pub hash: u32,
    /// Table id of the next hop, weight.
    pub members: Box<[(u32, u32)]>,
}

impl HwBody for Nhg {
    fn numbers(ids: &mut Ids) -> Option<&mut Numbers> {
        Some(&mut ids.nhgs)
    }
    fn name(&mut self, id: u32, ids: &mut Ids) {
        ids.name_group(id, self);
    }
    fn encode(&self, id: u32, ids: &Ids) -> Body {
        let head = tnd_nhg {
            struct_size: size::<tnd_nhg>(),
            count: self.members.len() as u16,
            nhg: ids.nhgs.of(id),
            hash: self.hash,
            ..Default::default()
        };
        let mut b = Vec::with_capacity(
            size_of::<tnd_nhg>() + self.members.len() * size_of::<tnd_nhg_member>(),
        );
        b.extend_from_slice(head.as_bytes());
        for &(n, weight) in &self.members {
            b.extend_from_slice(
                tnd_nhg_member {
                    nexthop: ids.nexthops.of(n),
                    weight,
                }
                .as_bytes(),
            );
        }
        let mut data = [0u8; 64];
        match data.get_mut(..b.len()) {
            Some(d) => {
                d.copy_from_slice(&b);
                Body::Inline {
                    len: b.len() as u8,
                    data,
                }
            }
            None => Body::Arena(b.into()),
        }
    }
    fn deps(&self, f: &mut dyn FnMut(Ref)) {
        for m in &self.members {
            f(Ref::new(Cls::Nexthop, m.0));
        }
    }
    fn spoil(&mut self) {
        self.hash = u32::MAX;
    }
}

/// TND_CLS_NEIGH
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Neigh {
    /// Table id of the RIF.
    pub rif: u32,
    pub addr: IpAddr,
    pub mac: [u8; 6],
}

impl HwBody for Neigh {
    fn same_key(&self, other: &Self) -> bool {
        self.rif == other.rif
    }
    fn encode(&self, _: u32, ids: &Ids) -> Body {
        let (family, addr) = abi_addr(self.addr);
        body_of(&tnd_neigh {
            struct_size: size::<tnd_neigh>(),
            rif: ids.rif(self.rif),
            family,
            action: TND_ACT_FORWARD,
            mac: self.mac,
            addr,
            ..Default::default()
        })
    }
    fn deps(&self, f: &mut dyn FnMut(Ref)) {
        f(Ref::new(Cls::Rif, self.rif));
    }
    fn spoil(&mut self) {
        self.mac = [0xff; 6];
    }
}

/// TND_CLS_FDB
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fdb {
    /// Table id of the VLAN.
    pub vlan: u32,
    pub mac: [u8; 6],
    /// With [`TND_ACT_FORWARD`].
    pub port: u16,
    pub flags: u16,
    pub action: u8,
    /// Table id of the group whose port it leads to.
    pub lag: Option<u32>,
}

impl HwBody for Fdb {
    fn same_key(&self, other: &Self) -> bool {
        self.vlan == other.vlan
    }
    fn encode(&self, _: u32, ids: &Ids) -> Body {
        body_of(&tnd_fdb {
            struct_size: size::<tnd_fdb>(),
            fid: ids.fid(self.vlan),
            mac: self.mac,
            port: self.port,
            flags: self.flags,
            action: self.action,
            ..Default::default()
        })
    }
    fn deps(&self, f: &mut dyn FnMut(Ref)) {
        f(Ref::new(Cls::Vlan, self.vlan));
        on_lag(self.lag, f);
    }
    fn spoil(&mut self) {
        self.flags = u16::MAX;
    }
}

/// TND_CLS_MDB
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mdb {
    /// Table id of the VLAN.
    pub vlan: u32,
    pub group: GroupAddr,
    pub source: Option<IpAddr>,
    pub trap: bool,
    /// The bridge itself is a member.
    pub cpu: bool,
    /// Ascending.
    pub ports: Vec<u16>,
}

impl HwBody for Mdb {
    fn same_key(&self, other: &Self) -> bool {
        self.vlan == other.vlan
    }
    fn encode(&self, _: u32, ids: &Ids) -> Body {
        let (family, addr) = match self.group {
            GroupAddr::Ip(a) => abi_addr(a),
            GroupAddr::Mac(mac) => {
                let mut addr = [0; 16];
                addr[..6].copy_from_slice(&mac);
                (0, addr)
            }
        };
        let head = tnd_mdb {
            struct_size: size::<tnd_mdb>(),
            fid: ids.fid(self.vlan),
            family,
            action: if self.trap {
                TND_ACT_TRAP
            } else {
                TND_ACT_FORWARD
            },
            flags: if self.cpu { TND_MDB_CPU_COPY } else { 0 },
            count: self.ports.len() as u16,
            addr,
            source: self.source.map(|s| abi_addr(s).1).unwrap_or_default(),
            ..Default::default()
        };
        let mut b = head.as_bytes().to_vec();
        for port in &self.ports {
            let p = tnd_mdb_port {
                port: *port,
                reserved0: 0,
            };
            b.extend_from_slice(p.as_bytes());
        }
        Body::Arena(b.into())
    }
    fn deps(&self, f: &mut dyn FnMut(Ref)) {
        f(Ref::new(Cls::Vlan, self.vlan));
    }
    fn spoil(&mut self) {
        self.trap = !self.trap;
        self.ports = vec![u16::MAX];
    }
}
