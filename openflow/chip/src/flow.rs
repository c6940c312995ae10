// SPDX-License-Identifier: Apache-2.0
//! Flows of the first table, as the software pipeline has them, for the decision.

use tandem_ofoffload::{Change, Flow, Id};
use tandem_ofpipeline::flows;
use tandem_openflow::{Field, Oxm};

use crate::Chip;
use crate::counts::{Counted, Tally};
use crate::ports::{May, Ports};

impl Chip {
    /// A flow of this number is there, new or changed.
    pub fn put(&mut self, id: Id, flow: &flows::Flow) {
        if !self.meets(flow) {
            // One that was there under this number is gone
            self.remove(id);
            return;
        }
        let wanted = self.ports.wanted(&flow.instructions);
        let idle = flow.idle > 0;
        let writes = match self.offload.flow(id) {
            Some(f) if f.priority == flow.priority && same(&f.fields, &flow.matching.fields) => {
                if f.wanted == wanted && f.idle == idle {
                    return;
                }
                self.offload.modify(id, wanted, idle, f.counted)
            }
            _ => {
                let mut fields = flow.matching.fields.clone();
                fields.sort_by_key(|o| o.field);
                let new = Flow {
                    priority: flow.priority,
                    fields,
                    wanted,
                    idle,
                    counted: false,
                    traffic: 1,
                };
                self.offload.add(id, new)
            }
        };
        self.apply(writes);
        self.resize();
    }

    /// Can frames of the chip meet it in the first table?
    fn meets(&self, flow: &flows::Flow) -> bool {
        let of = |o: &Oxm| {
            o.field != Field::InPort
                || u32::try_from(o.value).is_ok_and(|n| self.ports.chip(n).is_some())
        };
        flow.table == 0 && flow.matching.fields.iter().all(of)
    }

    fn remove(&mut self, id: Id) {
        let writes = self.offload.remove(id);
        self.apply(writes);
        self.resize();
    }

    /// The flows of these numbers went, all at once: of each what its rows have counted, or what names that until it is
    /// known.
    pub fn leave(&mut self, ids: &[Id]) -> Vec<Result<Tally, Counted>> {
        let known: Vec<_> = ids.iter().map(|id| self.offload.counts(*id)).collect();
        let writes = self
            .offload
            .batch(ids.iter().map(|id| Change::Remove { id: *id }).collect());
        self.apply(writes);
        self.resize();
        let left = ids.iter().zip(known).map(|(id, known)| {
            let (packets, bytes) = known.map_or((true, true), |k| (k.packets, k.bytes));
            match self.counts.leave(*id) {
                Ok(tally) => {
                    self.counts.lose_sum(tally, !packets, !bytes);
                    Ok(tally)
                }
                Err(c) => Err(Counted {
                    lost: c.lost || !packets,
                    lost_bytes: c.lost_bytes || !bytes,
                    ..c
                }),
            }
        });
        left.collect()
    }

    /// A flow's counters begin anew.
    pub fn reset(&mut self, id: Id) {
        self.counts.reset(id);
        self.offload.reset_counts(id);
        for at in self.offload.counters(id) {
            let Some(mut row) = self.want.rows.remove(&at) else {
                continue;
            };
            self.counts.retire(row.counter);
            row.counter = 0;
            let act = self.offload.row_answer(id);
            self.count(&mut row, act);
            row.set(act);
            let scope = row.scope;
            self.want.rows.insert(at, row);
            self.update_row(at, scope);
        }
    }

    /// What the ports may do; `none`: all frames are the CPU's. True: something is new, and all flows have to be put once more.
    pub fn set_ports(&mut self, may: impl Fn(u32) -> May, none: bool) -> bool {
        let old = self.ports.clone();
        for (p, m) in &mut self.ports.list {
            *m = may(p.number);
        }
        self.ports.none = none;
        let takes = |p: &Ports, m: &May| m.receive && !p.none;
        let (mut closes, mut opens, mut others) = (false, false, false);
        for ((_, a), (_, b)) in old.list.iter().zip(&self.ports.list) {
            closes |= takes(&old, a) && !takes(&self.ports, b);
            opens |= !takes(&old, a) && takes(&self.ports, b);
            others |= (a.send, a.flood) != (b.send, b.flood);
        }
        if closes || opens {
            self.write_ports(opens);
        }
        others
    }
}

/// The same match? The decision's leaves out what asks for nothing.
fn same(kept: &[Oxm], new: &[Oxm]) -> bool {
    let mut new: Vec<Oxm> = new.iter().filter(|o| o.mask != 0).copied().collect();
    new.sort_by_key(|o| o.field);
    kept == new
}
