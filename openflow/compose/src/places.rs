// SPDX-License-Identifier: Apache-2.0
//! Where flows of the first table stand that are alike but for their port.
//!
//! ```text
//!   20480  in_port=1             ► goto 1    ╌╌╌┐ nothing between that meets it
//!   20480  in_port=3, udp 7000   ► drop         │
//!   20479  in_port=3             ► goto 1    ◄──┘ both stand here: what goes on to table 1 is in one place
//! ```
//!
//! A chain's place begins with that of its flow in table 0, and rules of several ports are one entry only if they stand
//! in one place. Flows of one mask never meet, so between them the order says nothing: each may stand as far behind as
//! the last of those that ask for a port, or a port and a VLAN, and go on to the same table, as long as it passes by no
//! flow that it meets.
use crate::form::both;
use crate::{Compose, FlowId};
use foldhash::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included};
use tandem_ofoffload::Step;
use tandem_openflow::{Field, Oxm};

/// Flows that one may pass by, as each is looked at.
const BETWEEN: usize = 1024;
/// More that are alike stand where they are: with each change all are looked at.
pub(crate) const ALIKE: usize = 512;

/// Flows that are alike: do they ask for a VLAN beside the port, and where do they go on?
type Alike = (bool, u8);

#[derive(Clone, Debug, Default)]
struct Line {
    steps: BTreeMap<Step, BTreeSet<FlowId>>,
    count: usize,
}

impl Line {
    /// Where the last of them stands, if that is where all may stand.
    fn last(&self) -> Option<Step> {
        let last = self.steps.last_key_value().map(|(s, _)| s.clone());
        last.filter(|_| self.count <= ALIKE)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    all: HashMap<Alike, Line>,
    /// The last of each, as it was when the others were looked at.
    last: HashMap<Alike, Step>,
}

impl Compose {
    fn alike(&self, id: FlowId) -> Option<Alike> {
        let f = &self.flows.get(&id)?.flow;
        let mut asks = f.fields.iter().filter(|o| o.mask != 0);
        let whole = |o: &Oxm| o.mask == o.field.all_ones();
        let port = asks.next();
        let vlan = asks.next();
        let fits = port.is_some_and(|o| o.field == Field::InPort && whole(o))
            && vlan.is_none_or(|o| o.field == Field::VlanVid && whole(o))
            && asks.next().is_none();
        let goto = f.instructions.goto?;
        (fits && f.table == 0 && self.limits.sources).then_some((vlan.is_some(), goto))
    }

    /// A flow came, or is about to go or to do something else: it is one of those that are alike, or no more.
    pub(crate) fn line_up(&mut self, id: FlowId, to: bool) {
        let step = self.flows.get(&id).map(|k| k.step.clone());
        let Some((alike, step)) = self.alike(id).zip(step) else {
            return;
        };
        let line = self.places.all.entry(alike).or_default();
        let at = line.steps.entry(step.clone()).or_default();
        if to {
            line.count += usize::from(at.insert(id));
        } else {
            line.count -= usize::from(at.remove(&id));
        }
        if at.is_empty() {
            line.steps.remove(&step);
        }
    }

    /// Where it may stand, if that is not further in front.
    fn behind(&self, id: FlowId, last: &Step) -> Option<Step> {
        let (k, t) = (self.flows.get(&id)?, self.tables.get(&0)?);
        if k.step >= *last {
            return Some(k.step.clone());
        }
        let past = (
            Excluded((k.step.clone(), FlowId::MAX)),
            Included((last.clone(), FlowId::MAX)),
        );
        let meets = |g: &FlowId| {
            let g = self.flows.get(g);
            g.is_some_and(|g| both(&g.flow.fields, &k.flow.fields).is_some())
        };
        let passed = t.flows.range(past).take(BETWEEN + 1).enumerate();
        let mut stays = passed.map(|(n, (_, g))| n == BETWEEN || meets(g));
        Some(match stays.any(|s| s) {
            true => k.step.clone(),
            false => last.clone(),
        })
    }

    /// A flow of table 0 came, changed or is about to go: who stands elsewhere now.
    pub(crate) fn place_anew(&mut self, id: FlowId) {
        let Some(changed) = self.flows.get(&id).filter(|k| k.flow.table == 0) else {
            return;
        };
        let mut moved = Vec::new();
        let line = self.alike(id).and_then(|a| self.places.all.get(&a));
        if line.and_then(Line::last).is_none() && changed.place != changed.step {
            moved.push((id, changed.step.clone()));
        }
        let mut lasts = Vec::new();
        for (alike, line) in &self.places.all {
            let last = line.last();
            let same = self.places.last.get(alike) == last.as_ref();
            if !same || line.count == 0 {
                lasts.push((*alike, last.clone()));
            }
            if same && last.as_ref().is_none_or(|l| changed.step > *l) {
                continue;
            }
            let touched = |(_, g): &(Step, FlowId)| {
                let g = self.flows.get(g);
                !same || g.is_some_and(|g| both(&g.flow.fields, &changed.flow.fields).is_some())
            };
            let flows = line
                .steps
                .iter()
                .flat_map(|(s, ids)| ids.iter().map(|g| (s.clone(), *g)));
            for (step, g) in flows.filter(touched) {
                let is = self.flows.get(&g).map(|k| &k.place);
                let place = match &last {
                    Some(last) => self.behind(g, last),
                    None => Some(step),
                };
                moved.extend(place.filter(|p| Some(p) != is).map(|p| (g, p)));
            }
        }
        for (alike, last) in lasts {
            match last {
                Some(last) => drop(self.places.last.insert(alike, last)),
                None => {
                    self.places.last.remove(&alike);
                    let left = |l: &Line| l.count > 0;
                    if !self.places.all.get(&alike).is_some_and(left) {
                        self.places.all.remove(&alike);
                    }
                }
            }
        }
        for (g, place) in moved {
            self.stand(g, place);
        }
    }

    /// It stands there from here on, with all chains that begin with it.
    fn stand(&mut self, id: FlowId, place: Step) {
        let Some(k) = self.flows.get_mut(&id) else {
            return;
        };
        k.place = place.clone();
        for n in k.nodes.clone() {
            self.replace(n, place.clone());
        }
    }
}
