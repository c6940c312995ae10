//! Numbers of the kernel's netlink interfaces that `libc` does not have, or has in other types.
#![allow(missing_docs)] // the names are the kernel's: linux/rtnetlink.h, neighbour.h, nexthop.h …

pub const IFF_UP: u32 = 0x1;
pub const IFF_LOOPBACK: u32 = 0x8;
pub const IFF_RUNNING: u32 = 0x40;
pub const IFF_LOWER_UP: u32 = 0x1_0000;

pub const NUD_REACHABLE: u16 = 0x02;
pub const NUD_STALE: u16 = 0x04;
pub const NUD_DELAY: u16 = 0x08;
pub const NUD_PROBE: u16 = 0x10;
pub const NUD_NOARP: u16 = 0x40;
pub const NUD_PERMANENT: u16 = 0x80;

pub const NTF_USE: u8 = 0x01;
pub const NTF_MASTER: u8 = 0x04;
pub const NTF_PROXY: u8 = 0x08;
pub const NTF_EXT_LEARNED: u8 = 0x10;
pub const NTF_STICKY: u8 = 0x40;
pub const NTF_EXT_LOCKED: u32 = 0x02;

pub const NDA_DST: u16 = 1;
pub const NDA_LLADDR: u16 = 2;
pub const NDA_VLAN: u16 = 5;
pub const NDA_MASTER: u16 = 9;
pub const NDA_FLAGS_EXT: u16 = 15;
pub const NDA_NDM_STATE_MASK: u16 = 16;
pub const NDA_NDM_FLAGS_MASK: u16 = 17;

pub const RTN_UNICAST: u8 = 1;
pub const RTN_LOCAL: u8 = 2;
pub const RTN_BROADCAST: u8 = 3;
pub const RTN_ANYCAST: u8 = 4;
pub const RTN_MULTICAST: u8 = 5;
pub const RTN_BLACKHOLE: u8 = 6;
pub const RTN_UNREACHABLE: u8 = 7;
pub const RTN_PROHIBIT: u8 = 8;
pub const RTN_THROW: u8 = 9;

pub const RT_TABLE_MAIN: u32 = 254;
pub const RT_TABLE_LOCAL: u32 = 255;

pub const RT_SCOPE_UNIVERSE: u8 = 0;
pub const RT_SCOPE_LINK: u8 = 253;
pub const RT_SCOPE_HOST: u8 = 254;
pub const RT_SCOPE_NOWHERE: u8 = 255;

pub const RTPROT_BOOT: u8 = 3;

pub const RTNH_F_DEAD: u8 = 1;
pub const RTNH_F_ONLINK: u8 = 4;
pub const RTNH_F_LINKDOWN: u8 = 16;

pub const RTM_F_CLONED: u32 = 0x200;
pub const RTM_F_FIB_MATCH: u32 = 0x2000;

pub const RTA_DST: u16 = 1;
pub const RTA_SRC: u16 = 2;
pub const RTA_OIF: u16 = 4;
pub const RTA_GATEWAY: u16 = 5;
pub const RTA_PRIORITY: u16 = 6;
pub const RTA_PREFSRC: u16 = 7;
pub const RTA_METRICS: u16 = 8;
pub const RTA_MULTIPATH: u16 = 9;
pub const RTA_FLOW: u16 = 11;
pub const RTA_TABLE: u16 = 15;
pub const RTA_VIA: u16 = 18;
pub const RTA_NEWDST: u16 = 19;
pub const RTA_ENCAP_TYPE: u16 = 21;
pub const RTA_ENCAP: u16 = 22;
pub const RTA_NH_ID: u16 = 30;
pub const RTAX_MTU: u16 = 2;

pub const RTM_NEWLINK: u16 = 16;
pub const RTM_DELLINK: u16 = 17;
pub const RTM_GETLINK: u16 = 18;
pub const RTM_SETLINK: u16 = 19;
pub const RTM_NEWADDR: u16 = 20;
pub const RTM_DELADDR: u16 = 21;
pub const RTM_GETADDR: u16 = 22;
pub const RTM_NEWROUTE: u16 = 24;
pub const RTM_DELROUTE: u16 = 25;
pub const RTM_GETROUTE: u16 = 26;
pub const RTM_NEWNEIGH: u16 = 28;
pub const RTM_DELNEIGH: u16 = 29;
pub const RTM_GETNEIGH: u16 = 30;
pub const RTM_NEWRULE: u16 = 32;
pub const RTM_DELRULE: u16 = 33;
pub const RTM_GETRULE: u16 = 34;
pub const RTM_NEWQDISC: u16 = 36;
pub const RTM_DELQDISC: u16 = 37;
pub const RTM_GETQDISC: u16 = 38;
pub const RTM_NEWTFILTER: u16 = 44;
pub const RTM_DELTFILTER: u16 = 45;
pub const RTM_GETTFILTER: u16 = 46;
pub const RTM_NEWNETCONF: u16 = 80;
pub const RTM_DELNETCONF: u16 = 81;
pub const RTM_GETNETCONF: u16 = 82;
pub const RTM_NEWNEXTHOP: u16 = 104;
pub const RTM_DELNEXTHOP: u16 = 105;
pub const RTM_GETNEXTHOP: u16 = 106;
pub const RTM_NEWNEXTHOPBUCKET: u16 = 116;
pub const RTM_GETNEXTHOPBUCKET: u16 = 118;
pub const RTM_NEWMDB: u16 = 84;
pub const RTM_DELMDB: u16 = 85;
pub const RTM_GETMDB: u16 = 86;
pub const RTM_NEWVLAN: u16 = 112;
pub const RTM_DELVLAN: u16 = 113;
pub const RTM_GETVLAN: u16 = 114;

pub const NLMSG_ERROR: u16 = 2;
pub const NLMSG_DONE: u16 = 3;
pub const NLMSG_OVERRUN: u16 = 4;

pub const NLM_F_REQUEST: u16 = 0x01;
pub const NLM_F_MULTI: u16 = 0x02;
pub const NLM_F_ACK: u16 = 0x04;
pub const NLM_F_DUMP_INTR: u16 = 0x10;
pub const NLM_F_DUMP: u16 = 0x300;
pub const NLM_F_REPLACE: u16 = 0x100;
/// Of a request to delete: all that match (5.19).
pub const NLM_F_BULK: u16 = 0x200;
pub const NLM_F_EXCL: u16 = 0x200;
pub const NLM_F_CREATE: u16 = 0x400;
pub const NLM_F_APPEND: u16 = 0x800;
pub const NLM_F_CAPPED: u16 = 0x100;
pub const NLM_F_ACK_TLVS: u16 = 0x200;

pub const NHA_ID: u16 = 1;
pub const NHA_GROUP: u16 = 2;
pub const NHA_GROUP_TYPE: u16 = 3;
pub const NHA_BLACKHOLE: u16 = 4;
pub const NHA_OIF: u16 = 5;
pub const NHA_GATEWAY: u16 = 6;
pub const NHA_ENCAP_TYPE: u16 = 7;
pub const NHA_ENCAP: u16 = 8;
pub const NHA_FDB: u16 = 11;
pub const NHA_RES_GROUP: u16 = 12;
pub const NHA_RES_BUCKET: u16 = 13;
pub const NHA_RES_BUCKET_INDEX: u16 = 1;
pub const NHA_RES_BUCKET_NH_ID: u16 = 3;

pub const NETCONFA_IFINDEX: u16 = 1;
pub const NETCONFA_FORWARDING: u16 = 2;
pub const NETCONFA_RP_FILTER: u16 = 3;
pub const NETCONFA_MC_FORWARDING: u16 = 4;
pub const NETCONFA_PROXY_NEIGH: u16 = 5;
pub const NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN: u16 = 6;
pub const NETCONFA_BC_FORWARDING: u16 = 8;

pub const FR_ACT_TO_TBL: u8 = 1;
pub const FR_ACT_BLACKHOLE: u8 = 6;

/// Groups of the routing family that carry forwarding state.
pub mod group {
    pub const LINK: u32 = 1;
    pub const NEIGH: u32 = 3;
    pub const TC: u32 = 4;
    pub const IPV4_IFADDR: u32 = 5;
    pub const IPV4_ROUTE: u32 = 7;
    pub const IPV4_RULE: u32 = 8;
    pub const IPV6_IFADDR: u32 = 9;
    pub const IPV6_ROUTE: u32 = 11;
    pub const IPV6_RULE: u32 = 19;
    pub const IPV4_NETCONF: u32 = 24;
    pub const IPV6_NETCONF: u32 = 25;
    pub const MDB: u32 = 26;
    pub const NEXTHOP: u32 = 32;
    pub const BRVLAN: u32 = 33;
    /// `NFNLGRP_NFTABLES`, on a `NETLINK_NETFILTER` socket.
    pub const NFTABLES: u32 = 7;
}
