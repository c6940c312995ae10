//! Neighbours and bridge FDB entries: RTM_*NEIGH (`linux/neighbour.h`). One message type, told
//! apart by its family: AF_BRIDGE is the FDB.

use std::net::IpAddr;

use super::consts::{
    NDA_DST, NDA_FLAGS_EXT, NDA_LLADDR, NDA_MASTER, NDA_NDM_FLAGS_MASK, NDA_NDM_STATE_MASK,
    NDA_VLAN, NLM_F_BULK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NTF_EXT_LEARNED,
    NTF_MASTER, NTF_PROXY, NTF_USE, NUD_NOARP, NUD_PERMANENT, NUD_REACHABLE, RTM_DELNEIGH,
    RTM_GETNEIGH, RTM_NEWNEIGH,
};
use super::error::Result;
use super::socket::Requests;
use super::types::{Family, FdbEntry, Neigh, Object};
use super::wire::{Attrs, Writer, ip, mac, u8_at, u16_at, u32_at};

/// Bytes of `struct ndmsg`.
const NDMSG: usize = 12;

pub(super) fn decode(payload: &[u8]) -> Option<Object> {
    if payload.len() < NDMSG {
        return None;
    }
    let family = i32::from(u8_at(payload, 0));
    let ifindex = u32_at(payload, 4);
    let state = u16_at(payload, 8);
    let flags = u8_at(payload, 10);
    let (mut dst, mut lladdr, mut vlan, mut master, mut ext_flags) = (None, None, 0, 0, 0);
    for (kind, v) in Attrs::after(payload, NDMSG) {
        match kind {
            NDA_DST => dst = ip(v),
            NDA_LLADDR => lladdr = mac(v),
            NDA_VLAN => vlan = u16_at(v, 0),
            NDA_MASTER => master = u32_at(v, 0),
            NDA_FLAGS_EXT => ext_flags = u32_at(v, 0),
            _ => {}
        }
    }
    if family == libc::AF_BRIDGE {
        return Some(Object::Fdb(FdbEntry {
            ifindex,
            master,
            mac: lladdr?,
            vlan,
            state,
            flags,
            ext_flags,
        }));
    }
    if family != libc::AF_INET && family != libc::AF_INET6 || flags & NTF_PROXY != 0 {
        return None; // proxy entries are not neighbours
    }
    Some(Object::Neigh(Neigh {
        ifindex,
        addr: dst?,
        mac: lladdr,
        state,
        flags,
        ext_flags,
    }))
}

pub(super) fn ndmsg(family: u8, ifindex: u32, state: u16, flags: u8) -> [u8; NDMSG] {
    let mut b = [0; NDMSG];
    b[0] = family;
    b[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    b[8..10].copy_from_slice(&state.to_ne_bytes());
    b[10] = flags;
    b
}

/// The request that dumps the neighbours of a family.
pub(super) fn dump(w: &mut Writer, seq: u32, family: Family) {
    w.begin(RTM_GETNEIGH, NLM_F_DUMP, seq, &ndmsg(family.raw(), 0, 0, 0));
}

/// The request that dumps all bridges' FDBs.
pub(super) fn dump_fdb(w: &mut Writer, seq: u32) {
    w.begin(
        RTM_GETNEIGH,
        NLM_F_DUMP,
        seq,
        &ndmsg(libc::AF_BRIDGE as u8, 0, 0, 0),
    );
}

/// What the hardware learned: `bridge fdb replace MAC dev PORT master extern_learn`.
pub(super) fn fdb_learned(
    w: &mut Writer,
    flags: u16,
    seq: u32,
    port: u32,
    addr: &[u8; 6],
    vlan: u16,
) {
    let nd = ndmsg(
        libc::AF_BRIDGE as u8,
        port,
        NUD_REACHABLE,
        NTF_MASTER | NTF_EXT_LEARNED,
    );
    w.begin(RTM_NEWNEIGH, flags | NLM_F_CREATE | NLM_F_REPLACE, seq, &nd);
    w.attr(NDA_LLADDR, addr);
    if vlan != 0 {
        w.attr(NDA_VLAN, &vlan.to_ne_bytes());
    }
}

/// `bridge fdb del MAC dev PORT master`.
pub(super) fn fdb_del(w: &mut Writer, flags: u16, seq: u32, port: u32, addr: &[u8; 6], vlan: u16) {
    w.begin(
        RTM_DELNEIGH,
        flags,
        seq,
        &ndmsg(libc::AF_BRIDGE as u8, port, 0, NTF_MASTER),
    );
    w.attr(NDA_LLADDR, addr);
    if vlan != 0 {
        w.attr(NDA_VLAN, &vlan.to_ne_bytes());
    }
}

/// `bridge fdb flush dev PORT master vlan VLAN extern_learn nostatic nopermanent`: also when the port has left that VLAN,
/// where entries can't be removed one by one (net/bridge/br_fdb.c `br_fdb_delete_bulk`; 5.19).
pub(super) fn fdb_flush(w: &mut Writer, flags: u16, seq: u32, port: u32, vlan: u16) {
    let nd = ndmsg(libc::AF_BRIDGE as u8, port, 0, NTF_MASTER | NTF_EXT_LEARNED);
    w.begin(RTM_DELNEIGH, flags | NLM_F_BULK, seq, &nd);
    w.attr(NDA_VLAN, &vlan.to_ne_bytes());
    let no_state = NUD_NOARP | NUD_PERMANENT;
    w.attr(NDA_NDM_STATE_MASK, &no_state.to_ne_bytes());
    w.attr(NDA_NDM_FLAGS_MASK, &[NTF_EXT_LEARNED]);
}

/// Makes the kernel resolve or confirm a neighbour as if a packet were waiting (`ip neigh … use`).
fn neigh_use(w: &mut Writer, flags: u16, seq: u32, ifindex: u32, addr: &IpAddr) {
    let nd = ndmsg(Family::of(addr).raw(), ifindex, 0, NTF_USE);
    w.begin(RTM_NEWNEIGH, flags | NLM_F_CREATE, seq, &nd);
    w.attr_ip(NDA_DST, addr);
}

impl Requests {
    /// Makes the kernel resolve or confirm a neighbour, as a packet to it would; one that is set by hand stays as it is.
    ///
    /// The request alone takes "permanent" from an entry (net/core/neighbour.c `__neigh_update`, since Linux 5.16), and who
    /// sets neighbours by hand does so when we have just heard that there is none. So it asks for a new entry first, which
    /// is refused where there is one, and then looks at what there is.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn neigh_use(&mut self, ifindex: u32, addr: &IpAddr) -> Result<()> {
        const REQUEST: &str = "resolve neighbour";
        let made = self.ask(REQUEST, |w, f, s| {
            neigh_use(w, f | NLM_F_EXCL, s, ifindex, addr);
        });
        match made {
            Err(e) if e.errno == libc::EEXIST => {}
            other => return other,
        }
        if self.neigh_state(ifindex, addr)?.unwrap_or(0) & (NUD_PERMANENT | NUD_NOARP) != 0 {
            return Ok(());
        }
        self.ask(REQUEST, |w, f, s| neigh_use(w, f, s, ifindex, addr))
    }

    /// Sets a neighbour by hand.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn neigh_permanent(&mut self, ifindex: u32, addr: &IpAddr, mac: &[u8; 6]) -> Result<()> {
        self.ask("set neighbour", |w, f, s| {
            neigh_permanent(w, f, s, ifindex, addr, mac)
        })
    }

    /// Removes a neighbour.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn neigh_del(&mut self, ifindex: u32, addr: &IpAddr) -> Result<()> {
        self.ask("remove neighbour", |w, f, s| {
            neigh_del(w, f, s, ifindex, addr)
        })
    }

    /// The state of a neighbour, `NUD_*`. `None`: there is no such entry, or the kernel can't tell of one alone (5.0).
    fn neigh_state(&mut self, ifindex: u32, addr: &IpAddr) -> Result<Option<u16>> {
        self.ask_one(
            "read neighbour",
            |w, seq| {
                let nd = ndmsg(Family::of(addr).raw(), ifindex, 0, 0);
                w.begin(RTM_GETNEIGH, 0, seq, &nd);
                w.attr_ip(NDA_DST, addr);
            },
            |msg| match decode(msg.payload) {
                Some(Object::Neigh(n)) if msg.kind == RTM_NEWNEIGH => Some(n.state),
                _ => None,
            },
        )
    }
}

/// A neighbour set by hand (`ip neigh replace … nud permanent`).
fn neigh_permanent(
    w: &mut Writer,
    flags: u16,
    seq: u32,
    ifindex: u32,
    addr: &IpAddr,
    lladdr: &[u8; 6],
) {
    let nd = ndmsg(Family::of(addr).raw(), ifindex, NUD_PERMANENT, 0);
    w.begin(RTM_NEWNEIGH, flags | NLM_F_CREATE | NLM_F_REPLACE, seq, &nd);
    w.attr_ip(NDA_DST, addr);
    w.attr(NDA_LLADDR, lladdr);
}

/// Removes a neighbour.
fn neigh_del(w: &mut Writer, flags: u16, seq: u32, ifindex: u32, addr: &IpAddr) {
    w.begin(
        RTM_DELNEIGH,
        flags,
        seq,
        &ndmsg(Family::of(addr).raw(), ifindex, 0, 0),
    );
    w.attr_ip(NDA_DST, addr);
}
