//! Addresses: RTM_*ADDR (`linux/if_addr.h`).

use std::net::IpAddr;

use super::consts::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, RTM_DELADDR, RTM_GETADDR, RTM_NEWADDR};
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

impl super::Requests {
    /// Puts an address on a device, or takes it off.
    ///
    /// # Errors
    /// What the kernel says: `EEXIST` of one that is there.
    pub fn address(
        &mut self,
        ifindex: u32,
        address: IpAddr,
        prefix_len: u8,
        on: bool,
    ) -> super::Result<()> {
        let what = match on {
            true => "add an address",
            false => "remove an address",
        };
        self.ask(what, |w, f, s| {
            let (kind, flags) = match on {
                true => (RTM_NEWADDR, f | NLM_F_CREATE | NLM_F_EXCL),
                false => (RTM_DELADDR, f),
            };
            change(w, (kind, flags, s), ifindex, address, prefix_len);
        })
    }
}

fn change(
    w: &mut Writer,
    (kind, flags, seq): (u16, u16, u32),
    ifindex: u32,
    address: IpAddr,
    prefix_len: u8,
) {
    let family = match address {
        IpAddr::V4(_) => libc::AF_INET,
        IpAddr::V6(_) => libc::AF_INET6,
    };
    let mut fixed = [0; IFADDR];
    fixed[0] = family as u8;
    fixed[1] = prefix_len;
    fixed[4..].copy_from_slice(&ifindex.to_ne_bytes());
    w.begin(kind, flags, seq, &fixed);
    w.attr_ip(IFA_LOCAL, &address);
    w.attr_ip(IFA_ADDRESS, &address);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::wire::Msgs;

    #[test]
    fn what_is_asked_for_is_what_the_kernel_will_say() {
        for (address, prefix_len) in [("10.0.0.1", 24), ("fd00::1", 64)] {
            let local = address.parse().unwrap();
            let mut w = Writer::new();
            change(&mut w, (RTM_NEWADDR, 0, 7), 5, local, prefix_len);
            let msg = Msgs::new(w.bytes()).next().unwrap();
            let wanted = Addr {
                ifindex: 5,
                local,
                prefix_len,
                peer: None,
                flags: 0,
                scope: 0,
            };
            assert_eq!(decode(msg.payload), Some(Object::Addr(wanted)));
        }
    }
}
