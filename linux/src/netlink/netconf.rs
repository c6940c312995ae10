//! Per-interface sysctls that the kernel tells of: RTM_*NETCONF (`linux/netconf.h`).

use super::consts::{
    NETCONFA_BC_FORWARDING, NETCONFA_FORWARDING, NETCONFA_IFINDEX,
    NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN, NETCONFA_MC_FORWARDING, NETCONFA_PROXY_NEIGH,
    NETCONFA_RP_FILTER, NLM_F_DUMP, RTM_GETNETCONF,
};
use super::types::{Family, Netconf, NetconfTarget, Object};
use super::wire::{Attrs, Writer, u8_at, u32_at};

/// `NETCONFA_IFINDEX_ALL`, `NETCONFA_IFINDEX_DEFAULT`: −1 and −2.
const ALL: u32 = u32::MAX;
const DEFAULT: u32 = u32::MAX - 1;

pub(super) fn decode(payload: &[u8]) -> Option<Object> {
    let family = Family::from_raw(u8_at(payload, 0))?;
    let mut target = None;
    let mut c = Netconf {
        family,
        target: NetconfTarget::All,
        forwarding: None,
        rp_filter: None,
        ignore_linkdown: None,
        mc_forwarding: None,
        proxy_neigh: None,
        bc_forwarding: None,
    };
    for (kind, v) in Attrs::after(payload, 1) {
        let value = u32_at(v, 0);
        let on = Some(value != 0);
        match kind {
            NETCONFA_IFINDEX => {
                target = Some(match value {
                    ALL => NetconfTarget::All,
                    DEFAULT => NetconfTarget::Default,
                    index => NetconfTarget::Link(index),
                });
            }
            NETCONFA_FORWARDING => c.forwarding = on,
            NETCONFA_RP_FILTER => c.rp_filter = u8::try_from(value).ok(),
            NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN => c.ignore_linkdown = on,
            NETCONFA_MC_FORWARDING => c.mc_forwarding = on,
            NETCONFA_PROXY_NEIGH => c.proxy_neigh = on,
            NETCONFA_BC_FORWARDING => c.bc_forwarding = on,
            _ => {}
        }
    }
    c.target = target?;
    Some(Object::Netconf(c))
}

/// The request that dumps a family's.
pub(super) fn dump(w: &mut Writer, seq: u32, family: Family) {
    w.begin(RTM_GETNETCONF, NLM_F_DUMP, seq, &[family.raw()]);
}
