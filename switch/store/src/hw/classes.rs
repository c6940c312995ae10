//! The one list of the store's object classes. Their number, their tables and queues, whose turn it is, and who is told of an
//! answer follow from a class's line here; what its objects are says its body (`bodies.rs`, `acl.rs`).

pub(crate) use super::acl::{AclBind, AclCounter, AclEntry, AclRange, AclTable, Mirror, Policer};
pub(crate) use super::bodies::{Fdb, Lag, Mdb, Member, Neigh, Nexthop, Nhg, Port, Rif, Vlan, Vrf};
use super::queues::Behind;
use super::table::{HwBody, Table};
use super::{Flights, Ids, Ref, Waiting};
use crate::Store;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use tandem_abi::raw;

/// What follows from a class's line.
pub(crate) trait HwClass: HwBody {
    /// The class.
    const CLS: Cls;
    /// `TND_CLS_*`
    const ABI: u16;
    /// An object came to stand, failed, or went: what depends on it looks again. With the time.
    const CHANGED: fn(&mut Store, Ref, u64) = |_, _, _| {};
    /// An answer came, whatever it was. With the time.
    const ANSWERED: fn(&mut Store, Ref, u64) = |_, _, _| {};
    /// An id was given back: its owner forgets it.
    const RELEASED: fn(&mut Store, u32) = |_, _| {};
    /// Its objects.
    fn all(hw: &Hw) -> &Table<Self>;
    /// Its objects.
    fn table(hw: &mut Hw) -> &mut Table<Self>;
}

// `$d` is a dollar sign for the macros that this one makes.
macro_rules! classes {
    ($d:tt $($cls:ident: $table:ident = $abi:ident
        $(, changed $changed:expr)? $(, answered $answered:expr)? $(, released $released:expr)?;)*) => {
        /// Classes of objects that the store programs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) enum Cls {
            $($cls,)*
            Route4,
            Route6,
            Lease,
        }

        /// Classes with a table and a queue, by their turns.
        pub(crate) const CLASSES: [Cls; [$(raw::$abi),*].len()] = [$(Cls::$cls),*];

        /// Tables of all classes but routes, the queues, and what is on its way.
        #[derive(Debug, Default)]
        pub(crate) struct Hw {
            $(pub $table: Table<$cls>,)*
            pub ids: Ids,
            /// Objects to look at, by class.
            pub queues: [VecDeque<u32>; CLASSES.len()],
            pub flights: Flights,
            pub waiting: HashMap<u16, Waiting>,
            /// Objects that came to stand, failed or went: those who are to know have not been told yet.
            pub changed: Vec<Ref>,
            /// Who waits for the next answer about a target: routes that only now move to it.
            pub awaited: HashMap<Ref, BTreeSet<Ref>>,
            /// Those of them whose target was answered or looked at.
            pub woken: Vec<Ref>,
            /// Routes that are to leave the target that the chip has them go by.
            pub leaving: HashMap<Ref, BTreeSet<Ref>>,
            /// Next hops that a warm attach has found to be others than they are to be, or that are others since a dump has begun, by table
            /// id. Until the end of its sweep the chip may have routes by them that the kernel has no more: so long they trap.
            pub found_otherwise: BTreeSet<u32>,
            /// Targets that are not written before those have gone; with each the groups that wait to take it in.
            pub parting: HashMap<Ref, BTreeSet<Ref>>,
            /// Ports whose turn comes behind stations.
            pub behind: Behind,
            /// Objects that could not be deleted because something on the chip refers to them.
            pub in_use: BTreeSet<Ref>,
            /// Something was taken away since: they are tried again.
            pub released: bool,
            /// Everything is programmed anew, on a chip that has nothing: until what decides where frames go stands, ports
            /// give them to the CPU.
            pub bare: bool,
            /// Ports that an earlier core has left trapping, by table id: so they stay until then. What it had no room for is not
            /// there.
            pub trapping: HashSet<u32>,
        }

        $(impl HwClass for $cls {
            const CLS: Cls = Cls::$cls;
            const ABI: u16 = raw::$abi;
            $(const CHANGED: fn(&mut Store, Ref, u64) = $changed;)?
            $(const ANSWERED: fn(&mut Store, Ref, u64) = $answered;)?
            $(const RELEASED: fn(&mut Store, u32) = $released;)?
            fn all(hw: &Hw) -> &Table<Self> {
                &hw.$table
            }
            fn table(hw: &mut Hw) -> &mut Table<Self> {
                &mut hw.$table
            }
        })*

        /// Runs `$body` with `$t` standing for the body type of a class; what has no table gives the default.
        macro_rules! with_class {
            ($d cls:expr, $d t:ident => $d body:expr) => {
                match $d cls {
                    $($crate::hw::Cls::$cls => {
                        type $d t = $crate::hw::classes::$cls;
                        $d body
                    })*
                    $crate::hw::Cls::Route4 | $crate::hw::Cls::Route6 | $crate::hw::Cls::Lease => {
                        Default::default()
                    }
                }
            };
        }

        /// Runs `$body` once for each class, with `$t` standing for its body type.
        macro_rules! each_class {
            ($d t:ident => $d body:expr) => {
                $({
                    type $d t = $crate::hw::classes::$cls;
                    $d body
                })*
            };
        }
    };
}

// What others refer to has its turn before them.
classes! { $
    Lag: lags = TND_CLS_LAG,
        changed Store::lag_answered, answered Store::lag_answered,
        released Store::lag_released;
    Port: ports = TND_CLS_PORT, answered |s, _, _| s.port_answered();
    Vlan: vlans = TND_CLS_VLAN, changed Store::vlan_changed;
    Member: members = TND_CLS_VLAN_MEMBER,
        changed |s, r, _| s.member_changed(r.id), answered |s, r, _| s.member_answered(r.id),
        released Store::member_released;
    Vrf: vrfs = TND_CLS_VRF, changed |s, r, now| s.vrf_changed(r.id, now), released Store::vrf_released;
    Rif: rifs = TND_CLS_RIF, changed Store::base_changed,
        released Store::rif_released;
    Nexthop: nexthops = TND_CLS_NEXTHOP,
        changed |s, r, now| s.target_changed(r, now), released Store::nexthop_released;
    Nhg: nhgs = TND_CLS_NHG,
        changed |s, r, now| s.target_changed(r, now), released Store::nhg_released;
    Neigh: neighs = TND_CLS_NEIGH, released Store::neigh_released;
    Fdb: fdb = TND_CLS_FDB, changed |s, r, now| s.fdb_state_changed(r.id, now), released Store::fdb_released;
    Mdb: mdb = TND_CLS_MDB, changed |s, r, now| s.group_changed(r.id, now), released Store::group_released;
    AclTable: acl_tables = TND_CLS_ACL_TABLE,
        changed |s, r, _| s.rule_part_changed(r), released |s, id| s.end_list_of(Some(id), None);
    AclCounter: acl_counters = TND_CLS_ACL_COUNTER,
        changed |s, r, _| s.rule_part_changed(r), released |s, id| s.part_released(Ref::new(Cls::AclCounter, id));
    AclRange: acl_ranges = TND_CLS_ACL_RANGE,
        changed |s, r, _| s.rule_part_changed(r), released |s, id| s.part_released(Ref::new(Cls::AclRange, id));
    Policer: policers = TND_CLS_POLICER,
        changed |s, r, _| s.rule_part_changed(r), released |s, id| s.part_released(Ref::new(Cls::Policer, id));
    Mirror: mirrors = TND_CLS_MIRROR,
        changed |s, r, _| s.rule_part_changed(r), released |s, id| s.part_released(Ref::new(Cls::Mirror, id));
    AclEntry: acl_entries = TND_CLS_ACL_ENTRY,
        changed Store::list_answered, answered Store::list_answered, released Store::rule_released;
    AclBind: acl_binds = TND_CLS_ACL_BIND,
        changed |s, r, now| { s.bind_changed(r.id); s.list_answered(r, now); },
        answered Store::list_answered, released |s, id| s.end_list_of(None, Some(id));
}

#[expect(
    clippy::single_component_path_imports,
    reason = "so that other modules can import them, wherever they stand"
)]
pub(crate) use {each_class, with_class};
