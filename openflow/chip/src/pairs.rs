// SPDX-License-Identifier: Apache-2.0
//! Flows that write: the rows of their list that classify, and the row of their group.
//!
//! ```text
//!   opens:  row of the group, which traps ─► rows that classify ─► the row answers      each waits for the one before
//!   closes: rows that classify go ─► the row goes
//! ```
//!
//! A frame that is of a group and meets no row of it would leave by another flow's row with what is written here. So a row that
//! classifies waits until that of its group is confirmed, and that goes when those are confirmed to be gone; a number is
//! used again behind that.

use tandem_abi::raw;
use tandem_ofoffload::Write;

use crate::want::{Class, Row, Scope, Target, class_at};
use crate::{Act, Chip, row};

impl Chip {
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
            _ => {}
        }
    }
}
