// SPDX-License-Identifier: Apache-2.0
//! Flows that write: the rows of their list that classify, and the row of their group.
//!
//! ```text
//!   opens:  forms, if two ─► row of the group, which traps ─► rows that classify ─► the row answers      each waits for the one before
//!   closes: rows that classify go ─► the row goes ─► forms
//! ```
//!
//! A frame that is of a group and meets no row of it would leave by another flow's row with what is written here. So a row that
//! classifies waits until that of its group is confirmed, and that goes when those are confirmed to be gone; a number is
//! used again behind that.
//!
//! A frame that came in with a VLAN id by which packets of two forms are known would leave as they do. So while there are flows
//! of two forms, and only then, a guard in front of what classifies sends it to the CPU: written before any of them, deleted
//! behind the last one. Flows that ask for such a VLAN id are the CPU's meanwhile.

use tandem_abi::raw;
use tandem_ofcompose::RuleId;
use tandem_ofoffload::{Change, Write};

use crate::part::form_table;
use crate::want::{Class, Row, Scope, Target, class_at};
use crate::{Act, Chip, flow, row};

/// The guard, by the group that no flow has.
const GUARD: (u8, u8) = (0, 0);

impl Chip {
    /// Rules of two forms, perhaps, come or go.
    pub(crate) fn note_forms(&mut self, rules: &[Change]) {
        for c in rules {
            match c {
                Change::Add { id, chain, .. } if chain.second.is_some() => {
                    self.formed.insert(*id);
                }
                Change::Remove { id } => _ = self.formed.remove(id),
                Change::Add { .. } | Change::Modify { .. } => {}
            }
        }
    }

    /// Do frames that come in with a VLAN id of packets of two forms go to the CPU?
    pub(crate) fn is_guarded(&self) -> bool {
        self.want.classes.contains_key(&GUARD)
    }

    /// They do from here on. Whatever classifies for two forms waits for it.
    pub(crate) fn guard_forms(&mut self) {
        let entry = row::class_guard(self.setup.slice.class_table());
        let scope = Scope::All;
        self.want.classes.insert(GUARD, Class { entry, scope });
        let target = Target::Class(GUARD.0, GUARD.1);
        self.push(raw::TND_OP_CREATE, target, scope, false);
    }

    /// They need not any more, when all that there was of two forms is gone.
    pub(crate) fn unguard_forms(&mut self) {
        if let Some(guard) = self.want.classes.remove(&GUARD) {
            self.drop_object(Target::Class(GUARD.0, GUARD.1), guard.scope, true);
        }
    }

    /// Rules that ask for one of these VLAN ids, as they are: it depends on the guard whose they are.
    pub(crate) fn kept_rules(&self) -> Vec<Change> {
        let of = |id: &RuleId| {
            let r = self.compose.rule(*id)?;
            flow::is_kept(&r.fields).then(|| Change::Modify {
                id: *id,
                wanted: r.wanted(),
                idle: r.idle,
                counted: r.counted,
            })
        };
        self.flows_of.keys().filter_map(of).collect()
    }

    pub(crate) fn write_pair(&mut self, w: Write) {
        let slice = self.setup.slice;
        match w {
            Write::GroupAdd {
                at,
                group,
                flow: rule,
                fields,
            } => {
                let scope = Scope::of_row(&fields);
                let mut row = Row {
                    rule,
                    counter: 0,
                    entry: row::of_group(slice.table(), at, group),
                    scope,
                };
                self.set_row(&mut row, Act::Cpu);
                self.want.rows.insert(at, row);
                self.push(raw::TND_OP_CREATE, Target::Row(at), scope, false);
            }
            Write::ClassAdd {
                group,
                row: n,
                fields,
                writes,
                ..
            } => {
                let at = class_at(group, n);
                let ports = |p| self.ports.chip(p);
                let Some(mut entry) = row::of(slice.class_table(), at, &fields, ports) else {
                    // The tables of profile.rs have no such column
                    tracing::error!("a row that the chip has no fields for: {fields:?}");
                    return;
                };
                row::classify(&mut entry, group, writes);
                let scope = Scope::of_row(&fields);
                self.want.classes.insert((group, n), Class { entry, scope });
                let target = Target::Class(group, n);
                self.push(raw::TND_OP_CREATE, target, scope, true);
            }
            Write::ClassAct {
                group,
                row: n,
                writes,
            } => {
                let Some(class) = self.want.classes.get_mut(&(group, n)) else {
                    return;
                };
                row::classify(&mut class.entry, group, writes);
                let scope = class.scope;
                let target = Target::Class(group, n);
                self.push(raw::TND_OP_UPDATE, target, scope, true);
            }
            Write::ClassDel { group, row: n } => {
                if let Some(class) = self.want.classes.remove(&(group, n)) {
                    self.drop_object(Target::Class(group, n), class.scope, true);
                }
            }
            Write::FormAdd {
                group,
                vid,
                port,
                leaves,
                fields,
            } => {
                let entry = row::form(form_table(port), group, vid, leaves);
                let scope = Scope::of_row(&fields);
                let form = Class { entry, scope };
                self.want.forms.insert((port, group), form);
                let target = Target::Form(port, group);
                self.push(raw::TND_OP_CREATE, target, scope, false);
            }
            Write::FormDel { group, port } => {
                if let Some(form) = self.want.forms.remove(&(port, group)) {
                    self.drop_object(Target::Form(port, group), form.scope, true);
                }
            }
            _ => {}
        }
    }
}
