//! Bodies of the classes that lists of rules are made of. Their ids on the chip follow from what they are, so that a
//! restart finds them again: a list's from port and stage, a policer's from the kernel's number, a session's from its port,
//! a range's from its ends.

use super::ids::Ids;
use super::table::HwBody;
use super::{Cls, Ref, body_of};
use crate::api::Body;
use std::sync::Arc;
use tandem_abi::raw::*;

fn size<T>() -> u16 {
    size_of::<T>() as u16
}

/// A list's id on the chip: never 0, as stages count from 1.
pub(crate) fn list_id(port: u16, stage: u16) -> u32 {
    u32::from(port) << 2 | u32::from(stage & 3)
}

/// TND_CLS_ACL_TABLE
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AclTable {
    pub port: u16,
    pub stage: u16,
}

impl HwBody for AclTable {
    fn same_key(&self, other: &Self) -> bool {
        self == other
    }
    fn encode(&self, _: u32, _: &Ids) -> Body {
        body_of(&tnd_acl_table {
            struct_size: size::<tnd_acl_table>(),
            stage: self.stage,
            table: list_id(self.port, self.stage),
        })
    }
    fn deps(&self, _: &mut dyn FnMut(Ref)) {}
    /// There is nothing to differ in.
    fn spoil(&mut self) {}
}

/// TND_CLS_ACL_COUNTER
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AclCounter {
    pub counter: u32,
}

impl HwBody for AclCounter {
    fn same_key(&self, other: &Self) -> bool {
        self == other
    }
    fn encode(&self, _: u32, _: &Ids) -> Body {
        body_of(&tnd_acl_counter {
            struct_size: size::<tnd_acl_counter>(),
            counter: self.counter,
            ..Default::default()
        })
    }
    fn deps(&self, _: &mut dyn FnMut(Ref)) {}
    /// There is nothing to differ in.
    fn spoil(&mut self) {}
}

/// TND_CLS_ACL_RANGE: ports from, to; the first is the lower one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AclRange {
    pub source: bool,
    pub ports: (u16, u16),
}

impl AclRange {
    /// Its id on the chip. Of the two halves the lower number is the beginning: which comes first says which port it is of.
    /// Never 0, as the two differ.
    pub fn id(&self) -> u32 {
        let (min, max) = self.ports;
        let (high, low) = if self.source { (max, min) } else { (min, max) };
        u32::from(high) << 16 | u32::from(low)
    }
}

impl HwBody for AclRange {
    fn same_key(&self, other: &Self) -> bool {
        self == other
    }
    fn encode(&self, _: u32, _: &Ids) -> Body {
        body_of(&tnd_acl_range {
            struct_size: size::<tnd_acl_range>(),
            field: if self.source {
                TND_ACL_RANGE_SRC
            } else {
                TND_ACL_RANGE_DST
            },
            range: self.id(),
            min: self.ports.0,
            max: self.ports.1,
            reserved0: 0,
        })
    }
    fn deps(&self, _: &mut dyn FnMut(Ref)) {}
    /// There is nothing to differ in: its id is its ports.
    fn spoil(&mut self) {}
}

/// TND_CLS_POLICER
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Policer {
    pub policer: u32,
    pub flags: u16,
    pub rate: u64,
    pub burst: u64,
}

impl HwBody for Policer {
    fn same_key(&self, other: &Self) -> bool {
        self.policer == other.policer
    }
    fn encode(&self, _: u32, _: &Ids) -> Body {
        body_of(&tnd_policer {
            struct_size: size::<tnd_policer>(),
            flags: self.flags,
            policer: self.policer,
            rate: self.rate,
            burst: self.burst,
            ..Default::default()
        })
    }
    fn deps(&self, _: &mut dyn FnMut(Ref)) {}
    fn spoil(&mut self) {
        self.flags = u16::MAX;
    }
}

/// TND_CLS_MIRROR: all of each frame to one port.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mirror {
    pub port: u16,
}

impl HwBody for Mirror {
    fn same_key(&self, other: &Self) -> bool {
        self == other
    }
    fn encode(&self, _: u32, _: &Ids) -> Body {
        body_of(&tnd_mirror {
            struct_size: size::<tnd_mirror>(),
            mirror: self.port,
            port: self.port,
            ..Default::default()
        })
    }
    fn deps(&self, _: &mut dyn FnMut(Ref)) {}
    /// There is nothing to differ in: its id is its port.
    fn spoil(&mut self) {}
}

/// TND_CLS_ACL_ENTRY. The list's, the one that is wanted, that on its way and that on the chip are one, where they are equal.
pub(crate) type AclEntry = Arc<Rule>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// With the chip's ids.
    pub body: tnd_acl_entry,
    /// Table id of the list.
    pub list: u32,
    /// What else the rule names.
    pub parts: Vec<Ref>,
}

impl HwBody for AclEntry {
    fn same_key(&self, other: &Self) -> bool {
        (self.body.table, self.body.priority) == (other.body.table, other.body.priority)
    }
    fn encode(&self, _: u32, _: &Ids) -> Body {
        body_of(&self.body)
    }
    fn deps(&self, f: &mut dyn FnMut(Ref)) {
        f(Ref::new(Cls::AclTable, self.list));
        self.parts.iter().copied().for_each(f);
    }
    fn spoil(&mut self) {
        Arc::make_mut(self).body.action = u16::MAX;
    }
}

/// TND_CLS_ACL_BIND
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AclBind {
    pub port: u16,
    pub stage: u16,
    /// Table id of the list.
    pub list: u32,
    /// The list is not all there: everything to the CPU.
    pub trap_all: bool,
    /// What is there is not known.
    pub unsure: bool,
}

impl HwBody for AclBind {
    fn same_key(&self, other: &Self) -> bool {
        (self.port, self.stage) == (other.port, other.stage)
    }
    fn encode(&self, _: u32, _: &Ids) -> Body {
        body_of(&tnd_acl_bind {
            struct_size: size::<tnd_acl_bind>(),
            port: self.port,
            stage: self.stage,
            flags: if self.trap_all {
                TND_ACL_BIND_TRAP_ALL
            } else {
                0
            },
            // what traps everything needs no list, not even room for one
            table: if self.trap_all {
                0
            } else {
                list_id(self.port, self.stage)
            },
            reserved0: 0,
        })
    }
    fn deps(&self, f: &mut dyn FnMut(Ref)) {
        if !self.trap_all {
            f(Ref::new(Cls::AclTable, self.list));
        }
    }
    fn spoil(&mut self) {
        self.unsure = true;
    }
}
