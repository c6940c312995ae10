//! Names that are counted: stages and drop reasons, each list written once.

/// Declares an enumeration whose members have a name (for JSON, metrics, the CLI) and a description.
macro_rules! named {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($variant:ident = $text:literal $(in $stage:ident)? : $doc:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        $vis enum $name { $(#[doc = $doc] $variant,)* }

        impl $name {
            /// All members, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// Stable name, lower case with underscores.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// What it means, one line.
            pub const fn describe(self) -> &'static str {
                match self { $($name::$variant => $doc,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        named!(@stages $name [$($variant $($stage)?,)*]);
    };
    (@stages $name:ident [$($variant:ident $stage:ident,)+]) => {
        impl $name {
            /// The stage that counts it.
            pub const fn stage(self) -> Stage {
                match self { $($name::$variant => Stage::$stage,)* }
            }
        }
    };
    (@stages $name:ident [$($variant:ident,)+]) => {};
}

named! {
    /// Stages of the pipeline in the order of seed 000 §2.6.
    pub enum Stage {
        IngressMac = "ingress_mac": "length and state of the ingress port",
        Parser = "parser": "Ethernet header and outer tag",
        PortAcl = "port_acl": "rules of the port, before the frame is classified",
        Vlan = "vlan": "classification into a forwarding domain or a router port",
        Learning = "learning": "source address",
        L2Lookup = "l2_lookup": "destination address: link-local group, router MAC, FDB",
        Flood = "flood": "replication to the members of a forwarding domain",
        L3Header = "l3_header": "router: header, options, martians, ingress RIF",
        L3Lookup = "l3_lookup": "router: host table, LPM, multipath",
        L3Egress = "l3_egress": "router: TTL, MTU, redirect, rewrite",
        IngressAcl = "ingress_acl": "rules for what the chip has decided to forward",
        EgressAcl = "egress_acl": "rules of the egress port",
        Egress = "egress": "egress port: state, isolation, MTU, tag",
        FlowClass = "flow_class": "rules that classify frames of a flow port",
        FlowAcl = "flow_acl": "rules of a flow port",
        FlowEgress = "flow_egress": "rules for the form in which frames of flow ports leave a port",
        Cpu = "cpu": "trap reason and its policer",
    }
}

named! {
    /// Why a frame was dropped. Each reason belongs to one stage.
    pub enum DropReason {
        Runt = "runt" in IngressMac: "shorter than an Ethernet header (14 bytes)",
        Oversize = "oversize" in IngressMac: "longer than the ingress port's MTU plus header and one tag (MTU + 18)",
        NoSuchPort = "no_such_port" in IngressMac: "ingress port does not exist",
        LagInactive = "lag_inactive" in Parser: "ingress port is a member of a link aggregation group that takes no part",
        PortDown = "port_down" in IngressMac: "ingress port is administratively down or has no carrier",
        NotMember = "vlan_not_member" in Vlan: "the tag's VLAN has no member entry on the ingress port",
        NoPvid = "vlan_no_pvid" in Vlan: "untagged or priority-tagged frame on a port without PVID",
        OtherHost = "other_host" in Vlan: "unicast to a foreign MAC address on a port that is in no bridge",
        StpIngress = "stp_ingress" in Vlan: "ingress port is not forwarding (spanning tree)",
        BadSource = "bad_source_mac" in Learning: "source address is a group address or zero",
        Locked = "port_locked" in Learning: "source address unknown on a locked port",
        StpLearning = "stp_learning" in Learning: "ingress port learns but does not forward yet (spanning tree)",
        FdbDrop = "fdb_drop" in L2Lookup: "FDB entry with action drop",
        SamePort = "same_port" in L2Lookup: "destination is on the ingress port (no hairpin)",
        StormControl = "storm_control" in Flood: "more broadcast, multicast or unknown unicast than the port may bring",
        NoFloodPort = "no_flood_port" in Flood: "nobody to flood to",
        Isolated = "isolated" in Egress: "both ports are isolated",
        StpEgress = "stp_egress" in Egress: "egress port is not forwarding (spanning tree)",
        EgressDown = "egress_down" in Egress: "egress port is down or has no carrier",
        EgressOversize = "egress_oversize" in Egress: "bridged frame is longer than the egress port's MTU plus header and one tag",
        NotEgressMember = "egress_not_member" in Egress: "egress port is not a member of the forwarding domain",
        NoHeadroom = "no_headroom" in Egress: "no room in the buffer to push a tag",
        HostDrop = "host_drop" in L3Lookup: "host entry with action drop",
        Blackhole = "blackhole" in L3Lookup: "route with action drop",
        NexthopDrop = "nexthop_drop" in L3Lookup: "next hop with action drop",
        AclPort = "acl_port_drop" in PortAcl: "a rule of the port's list drops it",
        AclIngress = "acl_ingress_drop" in IngressAcl: "a rule of the ingress list drops it",
        AclEgress = "acl_egress_drop" in EgressAcl: "a rule of the egress port's list drops it",
        AclFlow = "acl_flow_drop" in FlowAcl: "a rule of a flow port's list drops it",
        FlowMiss = "flow_miss" in L2Lookup: "no rule and no FDB entry of a flow port that drops what nothing knows",
        AclPoliced = "acl_policer" in PortAcl: "more than the policer of a rule lets pass",
        TrapPolicer = "trap_policer" in Cpu: "the trap reason's policer is exhausted",
    }
}

/// What a rule does (`enum tnd_acl_action`), in a word.
pub fn acl_action(action: u16) -> &'static str {
    use tandem_abi::raw;
    match action {
        raw::TND_ACL_PERMIT => "permit",
        raw::TND_ACL_DROP => "drop",
        raw::TND_ACL_TRAP => "trap",
        raw::TND_ACL_REDIRECT_PORT => "redirect_port",
        raw::TND_ACL_REDIRECT_NEXTHOP => "redirect_nexthop",
        raw::TND_ACL_REDIRECT_PORTS => "redirect_ports",
        _ => "unknown",
    }
}

/// Where a list works (`enum tnd_acl_stage`), in a word.
pub fn acl_stage(stage: u16) -> &'static str {
    use tandem_abi::raw;
    match stage {
        raw::TND_ACL_PORT => "port",
        raw::TND_ACL_INGRESS => "ingress",
        raw::TND_ACL_EGRESS => "egress",
        raw::TND_ACL_FLOW => "flow",
        raw::TND_ACL_FLOW_CLASS => "flow_class",
        raw::TND_ACL_FLOW_EGRESS => "flow_egress",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_stable_in_form() {
        let mut names: Vec<&str> = DropReason::ALL.iter().map(|r| r.name()).collect();
        names.extend(Stage::ALL.iter().map(|s| s.name()));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.iter().all(|n| {
            n.bytes()
                .all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit())
        }));
        assert_eq!(DropReason::Runt.stage(), Stage::IngressMac);
        assert_eq!(format!("{:>6}", DropReason::Runt), "  runt");
        assert!(DropReason::ALL.iter().all(|r| !r.describe().is_empty()));
    }
}
