//! What a command, a DUMP, a sweep and a fault plan know of a class: it follows from its line in the one list
//! ([`CLASSES`](crate::objects::CLASSES)). A class that the ABI has and the list has not is a compile error.

use crate::Firmware;
use crate::costs::CostRow;
use crate::dump::{self, Writer};
use crate::object::{Failure, Object};
use crate::objects::CLASSES;
use crate::pools::Need;
use crate::resync::Confirmed;
use crate::turn::Walk;
use tandem_abi::raw;

type Operate =
    fn(&mut Firmware, &raw::tnd_cmd, &[u8], &mut Vec<u8>, &mut raw::tnd_cpl) -> Result<(), Failure>;

/// What the firmware does with objects of a class.
pub(crate) struct Class {
    /// `TND_CLS_*`.
    pub(crate) cls: u16,
    /// In fault plans.
    pub(crate) name: &'static str,
    /// CREATE, UPDATE, DELETE, SET_TRAP, QUERY.
    pub(crate) operate: Operate,
    /// DUMP from a cursor on; gives the next one.
    pub(crate) dump: fn(&Firmware, u64, &mut Writer<'_>) -> u64,
    /// What of a DELETE can be done ahead, within units of work; true: what is left is short.
    pub(crate) clear: fn(&mut Firmware, &[u8], &mut Walk, u64) -> bool,
    /// Cursors have more than 32 bits.
    pub(crate) wide: bool,
    /// Removes what was not confirmed, within units of work; true: all of it.
    pub(crate) sweep: fn(&mut Firmware, &mut Confirmed, &mut u64) -> bool,
    /// Its rows of `TND_CLS_COST`.
    pub(crate) costs: &'static [CostRow],
    /// Slots that a CREATE with this body takes.
    pub(crate) needs: fn(&Firmware, &[u8]) -> Vec<Need>,
    /// Positions may be anywhere.
    pub(crate) sparse: bool,
}

/// A class's line.
pub(crate) const fn class<O: Object>() -> Class {
    Class {
        cls: O::CLASS,
        name: O::NAME,
        operate: Firmware::operate::<O>,
        dump: dump::list::<O>,
        clear: |fw, body, walk, units| {
            let object = O::parse(body).filter(|o| o.find(fw).is_some() && !o.held(fw));
            let all = object.and_then(|o| o.entries(fw));
            all.is_none_or(|all| fw.empty(all, walk, units))
        },
        wide: O::WIDE,
        sweep: if O::FIXED {
            |_, _, _| true
        } else {
            Firmware::sweep_class::<O>
        },
        costs: O::COSTS,
        needs: |fw, body| O::parse(body).map_or_else(Vec::new, |o| o.needs(fw)),
        sparse: O::SPARSE,
    }
}

/// Classes that are no objects: they are only read.
const READ_ONLY: [u16; 4] = [
    raw::TND_CLS_COST,
    raw::TND_CLS_GEOMETRY,
    raw::TND_CLS_PORT_STATS,
    raw::TND_CLS_NHG_STATS,
];

/// Numbers of classes are below.
const NUMBERS: usize = 64;

/// Place in [`CLASSES`] by number.
static INDEX: [Option<u8>; NUMBERS] = index();

const fn index() -> [Option<u8>; NUMBERS] {
    let list = CLASSES;
    let mut all = [None; NUMBERS];
    let mut i = 0;
    while i < list.len() {
        let at = list[i].cls as usize;
        assert!(all[at].is_none(), "a class is declared twice");
        all[at] = Some(i as u8);
        i += 1;
    }
    all
}

// Every class of the ABI is declared, once.
const _: () = {
    let (abi, all) = (tandem_abi::object::CLASSES, index());
    let mut i = 0;
    while i < abi.len() {
        let mut known = all[abi[i] as usize].is_some();
        let mut j = 0;
        while j < READ_ONLY.len() {
            known |= READ_ONLY[j] == abi[i];
            j += 1;
        }
        assert!(known, "a class of the ABI is missing in objects/mod.rs");
        i += 1;
    }
};

/// A class by its number.
pub(crate) fn of(cls: u16) -> Option<&'static Class> {
    CLASSES.get(place(cls)?)
}

/// The place of a class in [`CLASSES`].
pub(crate) fn place(cls: u16) -> Option<usize> {
    INDEX.get(usize::from(cls))?.map(usize::from)
}

/// The rows of `TND_CLS_COST`, by class.
pub(crate) fn cost_rows() -> impl Iterator<Item = (u16, &'static CostRow)> {
    let all = (0..NUMBERS as u16).filter_map(of);
    all.flat_map(|c| c.costs.iter().map(|row| (c.cls, row)))
}

/// Classes that commands write, by name and number (`TND_CLS_*`).
pub fn names() -> impl Iterator<Item = (&'static str, u16)> {
    CLASSES.iter().map(|c| (c.name, c.cls))
}
