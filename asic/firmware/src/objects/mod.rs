//! One file per kind of object (`TND_CLS_*`), each over its ABI body in normal form.

use crate::classes::{Class, class};

pub(crate) mod acl_bind;
pub(crate) mod acl_counter;
pub(crate) mod acl_entry;
pub(crate) mod acl_range;
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
pub(crate) mod port_set;
pub(crate) mod rif;
pub(crate) mod route;
pub(crate) mod storm;
pub(crate) mod trap;
pub(crate) mod vlan;
pub(crate) mod vrf;

/// The one list of object classes. A sweep goes by its order: what refers to others is before them.
pub(crate) const CLASSES: &[Class] = &[
    class::<acl_bind::AclBind>(),
    class::<acl_entry::AclEntry>(),
    class::<acl_table::AclTable>(),
    class::<acl_counter::AclCounter>(),
    class::<acl_range::AclRange>(),
    class::<policer::Policer>(),
    class::<mirror::Mirror>(),
    class::<route::Route>(),
    class::<neigh::Neigh>(),
    class::<fdb::Fdb>(),
    class::<mdb::Mdb>(),
    class::<port_set::PortSet>(),
    class::<nhg::Nhg>(),
    class::<nexthop::NextHop>(),
    class::<rif::Rif>(),
    class::<member::Member>(),
    class::<vlan::Vlan>(),
    class::<lag::Lag>(),
    class::<vrf::Vrf>(),
    class::<port::Port>(),
    class::<storm::Storm>(),
    class::<trap::Trap>(),
    class::<led::Led>(),
];

/// A unicast address.
pub(crate) fn unicast(mac: [u8; 6]) -> bool {
    mac[0] & 1 == 0
}
