//! Traps: reasons a packet goes to the CPU, and their classes. What of it passes: [`crate::police`].

use tandem_abi::raw;

/// Number of trap reasons, 0 (unused) included.
pub const REASONS: usize = raw::TND_TRAP_REASON_COUNT as usize;
/// Number of trap classes.
pub const TRAP_CLASSES: usize = raw::TND_TC_COUNT as usize;
/// All classes, the one that goes first first. `TND_TC_*` are not in this order.
pub const ORDER: [u16; TRAP_CLASSES] = [
    raw::TND_TC_LINK,
    raw::TND_TC_CONTROL,
    raw::TND_TC_DISCOVERY,
    raw::TND_TC_UNRESOLVED,
    raw::TND_TC_DATA,
    raw::TND_TC_FLOW,
];

/// Name, default class and description of every reason of `enum tnd_trap_reason`, in order from 1.
const LIST: &[(u16, &str, u16, &str)] = &[
    (
        raw::TND_TRAP_LINK_PROTO,
        "link_proto",
        raw::TND_TC_LINK,
        "to 01:80:c2:00:00:0X",
    ),
    (raw::TND_TRAP_ARP, "arp", raw::TND_TC_DISCOVERY, "ARP"),
    (
        raw::TND_TRAP_ND,
        "nd",
        raw::TND_TC_DISCOVERY,
        "IPv6 neighbour discovery",
    ),
    (
        raw::TND_TRAP_IGMP_MLD,
        "igmp_mld",
        raw::TND_TC_DISCOVERY,
        "multicast membership",
    ),
    (
        raw::TND_TRAP_ROUTING,
        "routing",
        raw::TND_TC_CONTROL,
        "routing protocol to an own address or its group",
    ),
    (
        raw::TND_TRAP_LOCAL,
        "local",
        raw::TND_TC_CONTROL,
        "to an own address",
    ),
    (
        raw::TND_TRAP_L2_LOCAL,
        "l2_local",
        // whoever knows such an address can flood it; protocols to it have their own reasons
        raw::TND_TC_DATA,
        "the FDB entry says CPU",
    ),
    (
        raw::TND_TRAP_BROADCAST,
        "broadcast",
        raw::TND_TC_DATA,
        "broadcast or multicast, most often a copy of a flooded frame",
    ),
    (
        raw::TND_TRAP_UNRESOLVED,
        "unresolved",
        raw::TND_TC_UNRESOLVED,
        "next hop or host not resolved",
    ),
    (
        raw::TND_TRAP_TTL,
        "ttl",
        raw::TND_TC_DATA,
        "TTL or hop limit expires here",
    ),
    (
        raw::TND_TRAP_MTU,
        "mtu",
        raw::TND_TC_DATA,
        "longer than the egress interface's MTU",
    ),
    (
        raw::TND_TRAP_OPTIONS,
        "options",
        raw::TND_TC_DATA,
        "IPv4 options or IPv6 hop-by-hop header",
    ),
    (
        raw::TND_TRAP_LPM_MISS,
        "lpm_miss",
        raw::TND_TC_DATA,
        "no route in hardware",
    ),
    (
        raw::TND_TRAP_ROUTE,
        "route",
        raw::TND_TC_DATA,
        "route entry set to trap",
    ),
    (
        raw::TND_TRAP_FDB_INCOMPLETE,
        "fdb_incomplete",
        raw::TND_TC_DATA,
        "unknown unicast while an FDB entry is missing in hardware, and sources that the CPU is to learn",
    ),
    (
        raw::TND_TRAP_UNSUPPORTED,
        "unsupported",
        raw::TND_TC_DATA,
        "the interface has a feature the chip has not",
    ),
    (
        raw::TND_TRAP_L2_MULTICAST,
        "l2_multicast",
        raw::TND_TC_DATA,
        "multicast that the CPU must forward",
    ),
    (
        raw::TND_TRAP_REDIRECT,
        "redirect",
        raw::TND_TC_DATA,
        "leaves by the interface it came in on",
    ),
    (
        raw::TND_TRAP_CONNECTED,
        "connected",
        raw::TND_TC_UNRESOLVED,
        "connected route, neighbour not resolved",
    ),
    (
        raw::TND_TRAP_ERROR,
        "error",
        raw::TND_TC_DATA,
        "bad header or source: the kernel owes an answer or a counter",
    ),
    (
        raw::TND_TRAP_ACL,
        "acl",
        raw::TND_TC_DATA,
        "a rule says so, or asks for what the chip can't do there",
    ),
    (
        raw::TND_TRAP_ACL_INCOMPLETE,
        "acl_incomplete",
        raw::TND_TC_DATA,
        "a list that has not all of its rules in hardware",
    ),
    (
        raw::TND_TRAP_SAMPLE,
        "sample",
        raw::TND_TC_DATA,
        "copy of a frame, by a mirror session",
    ),
    (
        raw::TND_TRAP_FLOW,
        "flow",
        raw::TND_TC_FLOW,
        "a flow port's rule or entry says so",
    ),
    (
        raw::TND_TRAP_FLOW_MISS,
        "flow_miss",
        raw::TND_TC_FLOW,
        "no rule and no entry of a flow port knows the frame or its source",
    ),
];

/// Stable name of a `TND_TRAP_*` reason.
pub fn reason_name(reason: u16) -> &'static str {
    LIST.iter()
        .find(|r| r.0 == reason)
        .map_or("unknown", |r| r.1)
}

/// Stable name of a `TND_TC_*` class.
pub fn trap_class_name(class: u16) -> &'static str {
    match class {
        raw::TND_TC_LINK => "link",
        raw::TND_TC_CONTROL => "control",
        raw::TND_TC_DISCOVERY => "discovery",
        raw::TND_TC_UNRESOLVED => "unresolved",
        raw::TND_TC_DATA => "data",
        raw::TND_TC_FLOW => "flow",
        _ => "unknown",
    }
}

/// All reasons, from 1.
pub fn reasons() -> impl Iterator<Item = u16> {
    LIST.iter().map(|r| r.0)
}

/// `struct tnd_trap` without its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrapConfig {
    /// `TND_TC_*`.
    pub class: u16,
    /// Packets per second that the reason gets at most, 0 = what its class's policer lets pass.
    pub rate_pps: u32,
    /// Packets that may come at once.
    pub burst: u32,
}

impl TrapConfig {
    /// Class of a reason before anybody configures it, without policer. Unknown reasons are data.
    pub fn default_for(reason: u16) -> TrapConfig {
        TrapConfig {
            class: LIST
                .iter()
                .find(|r| r.0 == reason)
                .map_or(raw::TND_TC_DATA, |r| r.2),
            rate_pps: 0,
            burst: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_line() {
        assert_eq!(LIST.len() + 1, REASONS);
        for (i, r) in LIST.iter().enumerate() {
            assert_eq!(usize::from(r.0), i + 1);
            assert_ne!(trap_class_name(r.2), "unknown");
        }
        assert_eq!(reason_name(raw::TND_TRAP_ARP), "arp");
        assert_eq!(reason_name(99), "unknown");
    }
}
