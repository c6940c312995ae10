//! Addresses: RTM_*ADDR (`linux/if_addr.h`).

use super::consts::{NLM_F_DUMP, RTM_GETADDR};
use super::types::{Addr, Object};
use super::wire::{Attrs, Writer, ip, u8_at, u32_at};

/// Bytes of `struct ifaddrmsg`.
const IFADDR: usize = 8;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;

pub(super) fn decode(payload: &[u8]) -> Option<Object> {
    let (mut address, mut local) = (None, None);
    let mut flags = u32::from(u8_at(payload, 2));
    for (kind, v) in Attrs::after(payload, IFADDR) {
        match kind {
            IFA_ADDRESS => address = ip(v),
            IFA_LOCAL => local = ip(v),
            IFA_FLAGS => flags = u32_at(v, 0),
            _ => {}
        }
    }
    // IFA_ADDRESS is the far end of a point-to-point link, and the address itself everywhere else
    let near = local.or(address)?;
    Some(Object::Addr(Addr {
        ifindex: u32_at(payload, 4),
        local: near,
        prefix_len: u8_at(payload, 1),
        peer: address.filter(|a| *a != near),
        flags,
        scope: u8_at(payload, 3),
    }))
}

/// The request that dumps all addresses of both families.
pub(super) fn dump(w: &mut Writer, seq: u32) {
    w.begin(RTM_GETADDR, NLM_F_DUMP, seq, &[0; IFADDR]);
}
