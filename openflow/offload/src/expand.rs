// SPDX-License-Identifier: Apache-2.0
//! A match as rows of a TCAM: exact ones where a kind of rows can ask for all of it, wide ones where none can.
//!
//! ```text
//!   eth_src=…, any EtherType      IS2:   MAC_ETYPE   eth_src=…    exact
//!                                        ARP         eth_src=…    exact
//!                                        IP4         everything   wide: it can only trap
//!                                        …
//! ```
use crate::tables::{Frames, Masks, RowKind, Tcam};
use std::sync::Arc;
use tandem_ofpipeline::key::Key;
use tandem_openflow::{Field, Oxm, oxm};

/// A row that a match needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// Index into [`Tcam::kinds`]; it meets the frames of its kind alone.
    pub kind: usize,
    /// What it asks for.
    pub fields: Vec<Oxm>,
    /// Does it ask for all that the match does? If not, it meets packets of others, and can only trap.
    pub exact: bool,
    /// Lines that it takes.
    pub lines: u32,
    pub(crate) value: Key,
    pub(crate) mask: Arc<Key>,
}

/// All packets of an entry, in the parts by which is weighed what rows trap.
pub(crate) const ALL: i128 = 64;

impl Row {
    /// Of an entry's packets, the part that it meets: all, or as long as nobody measures it a half. Of ARP and RARP it is
    /// the least there is, as hardly anything of what stations say is that.
    pub(crate) fn part(&self, whole: bool) -> i128 {
        match exact_ether(&self.fields) {
            _ if whole => ALL,
            Some(0x0806 | 0x8035) => 1,
            _ => ALL / 2,
        }
    }
}

fn field(fields: &[Oxm], f: Field) -> Option<Oxm> {
    fields.iter().find(|o| o.field == f).copied()
}

fn exact(fields: &[Oxm], f: Field) -> Option<u128> {
    field(fields, f)
        .filter(|o| o.mask == f.all_ones())
        .map(|o| o.value)
}

/// What a column can ask of a field, at most what `wanted` does: `None` if nothing.
fn ask(masks: Masks, wanted: Oxm) -> Option<Oxm> {
    let present = u128::from(oxm::VID_PRESENT);
    if wanted.field == Field::VlanVid && wanted.mask & present == 0 && wanted.value == 0 {
        // No tag, or one with these bits zero: of an untagged frame the chip knows another VLAN
        return None;
    }
    let whole = wanted.mask == wanted.field.all_ones();
    match masks {
        Masks::Any => Some(wanted),
        Masks::Exact => whole.then_some(wanted),
        Masks::Values(list) => (whole && list.contains(&wanted.value)).then_some(wanted),
        Masks::Bits(list) => list
            .iter()
            .filter(|(v, m)| wanted.mask & m == *m && wanted.value & m == *v)
            .max_by_key(|(_, m)| m.count_ones())
            .map(|(v, m)| Oxm::masked(wanted.field, *v, *m)),
    }
}

/// What a kind of rows can ask of a match.
fn row(kind: usize, of: &RowKind, wanted: &[Oxm], whole: bool) -> Row {
    // Thousands are kept: no room for more than it has
    let mut fields = Vec::with_capacity(wanted.len() + 1);
    for w in wanted {
        let Some(column) = of.columns.iter().find(|c| c.field == w.field) else {
            continue;
        };
        fields.extend(ask(column.masks, *w));
    }
    // A field means what its prerequisites say: without them it is not asked for
    loop {
        let met = |o: &Oxm| {
            oxm::prerequisites_met(o.field, |f| match f {
                Field::VlanVid => field(&fields, f)
                    .filter(|v| v.mask & u128::from(oxm::VID_PRESENT) != 0)
                    .map(|v| v.value),
                _ => exact(&fields, f),
            })
        };
        let kept: Vec<Oxm> = fields.iter().filter(|o| met(o)).copied().collect();
        if kept.len() == fields.len() {
            break;
        }
        fields = kept;
    }
    let exact = whole && fields == wanted;
    if exact_ether(&fields).is_none()
        && let Some(one) = of.frames.one()
    {
        // The type of its key says so; here it keeps the row from others' ways
        fields.push(Oxm::exact(Field::EthType, u128::from(one)));
        fields.sort_by_key(|o| o.field);
    }
    let (value, mask) = Key::of_match(&fields);
    Row {
        kind,
        fields,
        exact,
        lines: of.lines,
        value,
        mask: Arc::new(mask),
    }
}

fn exact_ether(fields: &[Oxm]) -> Option<u16> {
    exact(fields, Field::EthType).map(|e| e as u16)
}

fn bits(r: &Row) -> u32 {
    r.fields.iter().map(|o| o.mask.count_ones()).sum()
}

impl crate::Offload {
    /// Wide rows are the same for many flows, and kept once.
    pub(crate) fn shared(&mut self, mut row: Row) -> Arc<Row> {
        row.mask = self.masks.shared(*row.mask);
        if row.exact {
            return Arc::new(row);
        }
        if let Some(known) = self.wide_rows.get(&row) {
            return Arc::clone(known);
        }
        let new = Arc::new(row);
        self.wide_rows.insert(Arc::clone(&new));
        new
    }
}

/// The rows of a match, between them all of its packets; none if the table has no kind for some of them.
pub fn expand(table: &Tcam, wanted: &[Oxm]) -> Vec<Row> {
    let ether = exact_ether(wanted);
    let proto = exact(wanted, Field::IpProto).map(|p| p as u8);
    let best = |of: &dyn Fn(Frames) -> bool| {
        let rows = table.kinds.iter().enumerate();
        rows.filter(|(_, k)| of(k.frames))
            .map(|(n, k)| row(n, k, wanted, true))
            .min_by_key(|r| (!r.exact, std::cmp::Reverse(bits(r)), r.lines, r.kind))
    };
    let one = best(&|f| f.covers(ether, proto));
    if let Some(r) = &one
        && r.exact
    {
        return vec![r.clone()];
    }
    let mut rows = Vec::new();
    for part in &table.split {
        let Some(frames) = table.kinds.get(*part).map(|k| k.frames) else {
            continue;
        };
        if frames.meets(ether, proto) {
            // Within the part's frames, whatever kind looks at them
            let within = |f: Frames| f == frames || (f.covers(ether, proto) && ether.is_some());
            rows.extend(best(&within));
        }
    }
    if rows.iter().any(|r| r.exact) {
        return rows;
    }
    one.into_iter().collect()
}
