// SPDX-License-Identifier: Apache-2.0
//! What each table can do (`OFPMP_TABLE_FEATURES`, §7.3.5.5), and wishes for other tables.

use tandem_ofpipeline::Switch;
use tandem_ofpipeline::stats::Features;
use tandem_openflow::model::{FieldId, Property, TableFeatures};
use tandem_openflow::{Error, Field};

use crate::conn::Parts;

/// `ofp_instruction_type` without goto, which the last table has not.
const INSTRUCTIONS: [u16; 5] = [2, 3, 4, 5, 6];
const GOTO: u16 = 1;
/// `ofp_action_type`: all of 1.3's.
const ACTIONS: [u16; 16] = [
    0, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
];
/// Messages of one request.
const MESSAGES: u32 = 64;

/// As bits of their numbers.
pub(crate) fn action_bits() -> u32 {
    ACTIONS.iter().fold(0, |all, n| all | 1 << n)
}

fn ids(fields: &[Field], masked: &[Field]) -> Vec<FieldId> {
    fields
        .iter()
        .map(|f| FieldId {
            field: *f,
            masked: masked.contains(f),
        })
        .collect()
}

fn of(f: &Features) -> TableFeatures {
    let next: Vec<u8> = f
        .next
        .clone()
        .filter_map(|n| u8::try_from(n).ok())
        .collect();
    let mut kinds = INSTRUCTIONS.to_vec();
    if !next.is_empty() {
        kinds.insert(0, GOTO);
    }
    let set = ids(&f.set, &[]);
    let mut properties = vec![
        Property::Instructions { miss: false, kinds },
        Property::NextTables {
            miss: false,
            tables: next,
        },
    ];
    // what holds for the table-miss flow is the same, and then need not be said (§7.3.5.5.2)
    for write in [true, false] {
        properties.push(Property::Actions {
            miss: false,
            write,
            kinds: ACTIONS.to_vec(),
        });
    }
    properties.push(Property::Match(ids(&f.matched, &f.masked)));
    properties.push(Property::Wildcards(ids(&f.wildcards, &[])));
    for write in [true, false] {
        properties.push(Property::SetField {
            miss: false,
            write,
            fields: set.clone(),
        });
    }
    TableFeatures {
        table: f.table,
        name: format!("table{}", f.table),
        metadata_match: f.metadata_match,
        metadata_write: f.metadata_write,
        config: 0,
        max_entries: f.max_entries,
        properties,
    }
}

/// Is each of `wished` among `had`?
fn within<T: PartialEq>(wished: &[T], had: &[T]) -> bool {
    wished.iter().all(|w| had.contains(w))
}

/// A field that may have a mask may also be matched without one.
fn fields_within(wished: &[FieldId], had: &[FieldId]) -> bool {
    wished.iter().all(|w| {
        had.iter()
            .any(|h| h.field == w.field && (h.masked || !w.masked))
    })
}

fn fits(wished: &Property, had: &Property) -> Option<bool> {
    Some(match (wished, had) {
        (Property::Instructions { kinds: w, .. }, Property::Instructions { kinds: h, .. }) => {
            within(w, h)
        }
        (Property::NextTables { tables: w, .. }, Property::NextTables { tables: h, .. }) => {
            within(w, h)
        }
        (
            Property::Actions {
                write: a, kinds: w, ..
            },
            Property::Actions {
                write: b, kinds: h, ..
            },
        ) if a == b => within(w, h),
        (Property::Match(w), Property::Match(h)) => fields_within(w, h),
        // which fields may be left out; whether they may have a mask is said by Match
        (Property::Wildcards(w), Property::Wildcards(h)) => {
            w.iter().all(|w| h.iter().any(|h| h.field == w.field))
        }
        (
            Property::SetField {
                write: a,
                fields: w,
                ..
            },
            Property::SetField {
                write: b,
                fields: h,
                ..
            },
        ) if a == b => fields_within(w, h),
        _ => return None,
    })
}

/// What the tables can do.
pub(crate) fn features(switch: &Switch) -> Vec<TableFeatures> {
    (0..switch.config().tables)
        .filter_map(|n| switch.features(n))
        .map(|f| of(&f))
        .collect()
}

/// A wish for tables: what they can do already is granted, and nothing has to be changed for it. A pipeline with fewer
/// tables, or tables that refuse what they could do, is not made.
///
/// # Errors
/// What a table can't do, by the standard's codes.
pub(crate) fn check_wish(switch: &Switch, wish: &[TableFeatures]) -> Result<(), Error> {
    let mut seen = [false; 256];
    for w in wish {
        let again = seen
            .get_mut(usize::from(w.table))
            .is_none_or(|s| std::mem::replace(s, true));
        let Some(had) = switch.features(w.table).filter(|_| !again) else {
            return Err(Error::TABLE_FEATURES_FAILED_BAD_TABLE);
        };
        let had = of(&had);
        if w.metadata_match & !had.metadata_match != 0
            || w.metadata_write & !had.metadata_write != 0
        {
            return Err(Error::TABLE_FEATURES_FAILED_BAD_METADATA);
        }
        if w.max_entries > had.max_entries {
            return Err(Error::TABLE_FEATURES_FAILED_BAD_ARGUMENT);
        }
        for p in &w.properties {
            let fit = had.properties.iter().find_map(|h| fits(p, h));
            if fit == Some(false) {
                return Err(Error::TABLE_FEATURES_FAILED_BAD_ARGUMENT);
            }
        }
    }
    Ok(())
}

/// One more message of a wish in several; the whole wish when it was the last.
///
/// # Errors
/// More than can be kept.
pub(crate) fn gather(
    parts: &mut Option<Parts>,
    xid: u32,
    more: bool,
    tables: &[TableFeatures],
) -> Result<Option<Vec<TableFeatures>>, Error> {
    let mut all = match parts.take() {
        Some(p) if p.xid == xid => p,
        // another transaction ends the earlier one
        _ => Parts {
            xid,
            tables: Vec::new(),
            messages: 0,
        },
    };
    all.messages += 1;
    if all.messages > MESSAGES {
        return Err(Error::BAD_REQUEST_MULTIPART_BUFFER_OVERFLOW);
    }
    all.tables.extend_from_slice(tables);
    if more {
        *parts = Some(all);
        return Ok(None);
    }
    Ok(Some(all.tables))
}
