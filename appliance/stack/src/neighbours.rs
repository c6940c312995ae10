// SPDX-License-Identifier: Apache-2.0
//! The kernel's neighbours on VLAN interfaces.

use std::net::{IpAddr, Ipv4Addr};

use tandem_linux::netlink::consts::{NUD_NOARP, NUD_PERMANENT};
use tandem_linux::netlink::{Dump, Family, Neigh, Object, Requests};
use tandem_swconfig::Name;

use crate::learned::links;

/// A neighbour: where, which address, and whose it is if that is known.
pub type Neighbour = (Name, IpAddr, Option<[u8; 6]>);
use crate::Device;

/// Those that may be spoken to, or are asked for; not those that need nobody to be asked.
fn found(requests: &mut Requests) -> Result<Vec<(Name, Neigh)>, String> {
    let links = links(requests)?;
    let mut all = Vec::new();
    for family in [Family::V4, Family::V6] {
        let some = requests.objects(Dump::Neighs(family));
        let some = some.map_err(|e| e.to_string())?.into_iter();
        all.extend(some.filter_map(|o| match o {
            Object::Neigh(n) if n.state & NUD_NOARP == 0 => Some((*links.get(&n.ifindex)?, n)),
            _ => None,
        }));
    }
    Ok(all)
}

/// Where, which address, and whose it is if that is known.
pub(crate) fn neighbours() -> Result<Vec<Neighbour>, String> {
    let mut requests = Requests::open().map_err(|e| e.to_string())?;
    let all = found(&mut requests)?.into_iter();
    Ok(all
        .map(|(name, n)| (name, n.addr, n.mac.filter(|_| n.usable())))
        .collect())
}

/// Forgets those that are not set by hand.
pub(crate) fn forget() -> Result<(), String> {
    let mut requests = Requests::open().map_err(|e| e.to_string())?;
    for (_, n) in found(&mut requests)? {
        if n.state & NUD_PERMANENT == 0 {
            match requests.neigh_del(n.ifindex, &n.addr) {
                Err(e) if !e.is_gone() => return Err(e.to_string()),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Those that are set by hand, of IPv4.
///
/// # Errors
/// One line.
pub fn fixed() -> Result<Vec<(Device, Ipv4Addr)>, String> {
    let mut requests = Requests::open().map_err(|e| e.to_string())?;
    let all = found(&mut requests)?.into_iter();
    Ok(all
        .filter(|(_, n)| n.state & NUD_PERMANENT != 0)
        .filter_map(|(name, n)| match n.addr {
            IpAddr::V4(address) => Some((Device::of(&name)?, address)),
            IpAddr::V6(_) => None,
        })
        .collect())
}
