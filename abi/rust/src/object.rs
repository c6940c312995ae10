//! Objects: which class a body is of, what its key is, and how bodies are read and written.
//!
//! A body grows at its end only. [`read_object`] takes a shorter body of an older peer (what is
//! missing is zero) and a longer one of a newer peer (what is not known is skipped).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::raw;

/// Bodies are at most this long, whatever the arena's size: a full group has 2064 bytes.
pub const BODY_MAX: usize = 4096;

/// Class and key fields of an object: comparable, hashable, printable. Keys of one class differ
/// exactly when their objects differ.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// `TND_CLS_*`.
    pub cls: u16,
    /// The key's fields one after the other, numbers big endian so that keys sort as numbers do.
    pub bytes: [u8; 36],
}

impl ObjectKey {
    fn new(cls: u16, parts: &[&[u8]]) -> Self {
        let mut bytes = [0; 36];
        for (to, from) in bytes.iter_mut().zip(parts.iter().copied().flatten()) {
            *to = *from;
        }
        ObjectKey { cls, bytes }
    }
}

impl std::fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:", class_name(self.cls))?;
        for b in self.bytes {
            write!(f, "{b:02x}")?;
        }
        Ok(())
    }
}

/// A body of `abi/tandem.h` that CREATE, UPDATE, DELETE, SET_TRAP and QUERY take.
pub trait Object: FromBytes + IntoBytes + Immutable + KnownLayout + Copy + Default {
    /// `TND_CLS_*`.
    const CLASS: u16;
    /// The key's fields.
    fn key(&self) -> ObjectKey;
    /// The first field.
    fn struct_size(&self) -> u16;
    /// Sets the first field to this version's size.
    fn set_struct_size(&mut self);
    /// Bytes that follow the struct: members of a group.
    fn tail(&self) -> usize {
        0
    }
}

// Record, class and its name in words, key's fields, what follows the record.
macro_rules! object {
    ($($ty:ident = $cls:ident $name:literal: |$o:ident| [$($part:expr),*] $(tail $tail:expr)?;)*) => {
        $(
        impl Object for raw::$ty {
            const CLASS: u16 = raw::$cls;
            fn key(&self) -> ObjectKey {
                let $o = self;
                ObjectKey::new(Self::CLASS, &[$(&$part),*])
            }
            fn struct_size(&self) -> u16 {
                self.struct_size
            }
            fn set_struct_size(&mut self) {
                self.struct_size = std::mem::size_of::<Self>() as u16;
            }
            $(fn tail(&self) -> usize {
                let $o = self;
                $tail
            })?
        }
    )*

        /// Classes that have a body, in no order.
        pub const CLASSES: &[u16] = &[$(raw::$cls),*];

        /// Bytes of the struct that a body of this class begins with; 0: it has none.
        pub fn struct_size(cls: u16) -> usize {
            match cls {
                $(raw::$cls => std::mem::size_of::<raw::$ty>(),)*
                _ => 0,
            }
        }

        /// A class's name: `route`, `next-hop group`, …
        pub fn class_name(cls: u16) -> &'static str {
            match cls {
                $(raw::$cls => $name,)*
                _ => "unknown class",
            }
        }
    };
}

object! {
    tnd_port = TND_CLS_PORT "port": |o| [o.port.to_be_bytes()];
    tnd_vlan = TND_CLS_VLAN "VLAN": |o| [o.fid.to_be_bytes()];
    tnd_vlan_member = TND_CLS_VLAN_MEMBER "VLAN member": |o| [o.port.to_be_bytes(), o.vid.to_be_bytes()];
    tnd_fdb = TND_CLS_FDB "FDB entry": |o| [o.fid.to_be_bytes(), o.mac];
    tnd_mdb = TND_CLS_MDB "multicast group": |o| [o.fid.to_be_bytes(), [o.family], o.addr, o.source]
        tail usize::from(o.count) * std::mem::size_of::<raw::tnd_mdb_port>();
    tnd_port_set = TND_CLS_PORT_SET "port set": |o| [o.set.to_be_bytes()];
    tnd_vrf = TND_CLS_VRF "VRF": |o| [o.vrf.to_be_bytes()];
    tnd_rif = TND_CLS_RIF "RIF": |o| [o.rif.to_be_bytes()];
    tnd_neigh = TND_CLS_NEIGH "neighbour": |o| [o.rif.to_be_bytes(), [o.family], o.addr];
    tnd_nexthop = TND_CLS_NEXTHOP "next hop": |o| [o.nexthop.to_be_bytes()];
    tnd_nhg = TND_CLS_NHG "next-hop group": |o| [o.nhg.to_be_bytes()]
        tail usize::from(o.count) * std::mem::size_of::<raw::tnd_nhg_member>();
    tnd_route = TND_CLS_ROUTE "route": |o| [o.vrf.to_be_bytes(), [o.family, o.prefix_len], o.addr];
    tnd_trap = TND_CLS_TRAP "trap": |o| [o.reason.to_be_bytes()];
    tnd_led = TND_CLS_LED "LED": |o| [o.port.to_be_bytes()];
    tnd_storm = TND_CLS_STORM "storm control": |o| [o.port.to_be_bytes(), [o.kind]];
    tnd_lag = TND_CLS_LAG "LAG": |o| [o.lag.to_be_bytes()]
        tail usize::from(o.count) * std::mem::size_of::<raw::tnd_lag_member>();
    tnd_acl_table = TND_CLS_ACL_TABLE "ACL": |o| [o.table.to_be_bytes()];
    tnd_acl_bind = TND_CLS_ACL_BIND "ACL binding": |o| [o.port.to_be_bytes(), o.stage.to_be_bytes()];
    tnd_acl_entry = TND_CLS_ACL_ENTRY "ACL rule": |o| [o.table.to_be_bytes(), o.priority.to_be_bytes()];
    tnd_acl_counter = TND_CLS_ACL_COUNTER "ACL counter": |o| [o.counter.to_be_bytes()];
    tnd_acl_range = TND_CLS_ACL_RANGE "ACL range": |o| [o.range.to_be_bytes()];
    tnd_policer = TND_CLS_POLICER "policer": |o| [o.policer.to_be_bytes()];
    tnd_mirror = TND_CLS_MIRROR "mirror session": |o| [o.mirror.to_be_bytes()];
    // read only, in dumps
    tnd_port_stats = TND_CLS_PORT_STATS "port counters": |o| [o.port.to_be_bytes()];
    tnd_nhg_stats = TND_CLS_NHG_STATS "next-hop group counters": |o| [o.nhg.to_be_bytes()]
        tail usize::from(o.count) * std::mem::size_of::<raw::tnd_nhg_member_stats>();
    tnd_class_cost = TND_CLS_COST "class cost": |o| [o.cls.to_be_bytes(), [o.family], o.pool.to_be_bytes()];
    tnd_geometry = TND_CLS_GEOMETRY "table geometry": |o| [o.exact_pool.to_be_bytes()];
}

/// Why a body can't be read: `TND_ST_INVALID`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Shorter than it says, or than any version was.
    #[error("body of {have} bytes, need {need}")]
    Short {
        /// Bytes there.
        have: usize,
        /// Bytes needed.
        need: usize,
    },
    /// Longer than any body may be.
    #[error("body of {0} bytes is too long")]
    Long(u32),
    /// Outside of the arena: the session is over (`TND_FAIL_BOUNDS`).
    #[error(transparent)]
    Bounds(#[from] crate::memory::OutOfArena),
}

/// Reads a body, whichever version wrote it. The second part is what follows the struct: members
/// of a group, the next record of a dump.
pub fn read_object<T: Object>(body: &[u8]) -> Result<(T, &[u8]), BodyError> {
    let short = |need| BodyError::Short {
        have: body.len(),
        need,
    };
    let (&[lo, hi], _) = body.split_first_chunk::<2>().ok_or(short(4))?;
    // two fields at least: the size itself and what stands beside it in every body
    let size = usize::from(u16::from_le_bytes([lo, hi]));
    if size < 4 {
        return Err(short(4));
    }
    let (own, rest) = body.split_at_checked(size).ok_or(short(size))?;
    let mut value = T::default();
    for (to, from) in value.as_mut_bytes().iter_mut().zip(own) {
        *to = *from;
    }
    Ok((value, rest))
}

/// Reads a next-hop group with its members; a count beyond `TND_NHG_MAX_MEMBERS` or beyond the body
/// is refused.
pub fn read_nhg(body: &[u8]) -> Result<(raw::tnd_nhg, Vec<raw::tnd_nhg_member>), BodyError> {
    let (nhg, rest) = read_object::<raw::tnd_nhg>(body)?;
    let need = nhg.tail();
    if usize::from(nhg.count) > raw::TND_NHG_MAX_MEMBERS {
        return Err(BodyError::Long(body.len() as u32));
    }
    let members = rest.get(..need).ok_or(BodyError::Short {
        have: rest.len(),
        need,
    })?;
    Ok((nhg, fixed(members).collect()))
}

/// Reads a lease's lines.
#[cfg(feature = "testing")]
pub fn read_lease(body: &[u8]) -> Result<Vec<raw::tnd_lease_item>, BodyError> {
    let short = |need| BodyError::Short {
        have: body.len(),
        need,
    };
    let (&head, _) = body.split_first_chunk::<4>().ok_or(short(8))?;
    let [s0, s1, c0, c1] = head;
    let size = usize::from(u16::from_le_bytes([s0, s1]));
    let count = usize::from(u16::from_le_bytes([c0, c1]));
    if size < 4 || count > raw::TND_LEASE_MAX_CLASSES {
        return Err(BodyError::Long(body.len() as u32));
    }
    let need = size + count * std::mem::size_of::<raw::tnd_lease_item>();
    Ok(fixed(body.get(size..need).ok_or(short(need))?).collect())
}

/// Structs of fixed size, one after the other: SNAPSHOT's pools, members. A rest that is too short
/// is left out.
pub fn fixed<T: FromBytes>(bytes: &[u8]) -> impl Iterator<Item = T> + '_ {
    bytes
        .chunks_exact(std::mem::size_of::<T>())
        .filter_map(|c| T::read_from_bytes(c).ok())
}

/// Records of a DUMP, each with what follows it (members); ends at the first that can't be read.
pub fn records<T: Object>(bytes: &[u8]) -> impl Iterator<Item = (T, &[u8])> + '_ {
    let mut left = bytes;
    std::iter::from_fn(move || {
        let (object, rest) = read_object::<T>(left).ok()?;
        let (tail, rest) = rest.split_at_checked(object.tail())?;
        left = rest;
        Some((object, tail))
    })
}
