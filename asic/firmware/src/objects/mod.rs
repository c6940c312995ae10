//! One file per kind of object (`TND_CLS_*`), each over its ABI body in normal form.

pub(crate) mod acl_bind;
pub(crate) mod acl_counter;
pub(crate) mod acl_entry;
pub(crate) mod acl_table;
pub(crate) mod fdb;
pub(crate) mod lag;
pub(crate) mod led;
pub(crate) mod mdb;
pub(crate) mod member;
pub(crate) mod mirror;
pub(crate) mod neigh;
pub(crate) mod nexthop;
pub(crate) mod nhg;
pub(crate) mod policer;
pub(crate) mod port;
pub(crate) mod rif;
pub(crate) mod route;
pub(crate) mod storm;
pub(crate) mod trap;
pub(crate) mod vlan;
pub(crate) mod vrf;

/// A unicast address.
pub(crate) fn unicast(mac: [u8; 6]) -> bool {
    mac[0] & 1 == 0
}
