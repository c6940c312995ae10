// SPDX-License-Identifier: Apache-2.0
//! From what stands in the chip to what is to stand there, write by write.
//!
//! ```text
//!   1 turn     what must not answer any longer, or not while guards are away, traps in place: needs no room
//!   2 delete   rows, back to front: here only if the new ones would not fit beside them
//!   3 add      rows, front to back: a guard stands before what it guards against; a pair, which traps, is one
//!   4 delete   entries of the MAC table       (what is behind them is the miss alone)
//!   5 add      entries of the MAC table
//!   6 delete   rows, back to front: what a guard was for is gone before it is
//!   7 answer   what may: all guards stand
//! ```
//!
//! A flow's *guard* is what keeps its packets from entries of flows behind it: its rows in the ACL, its entry in the
//! MAC table from the miss alone. What holds after each write: between an entry that answers and a flow in front of
//! it that meets it, and that is in the table before and after the change, a guard stands, be it the flow's own or
//! that of a flow that has all of its packets.
use crate::index::Side;
use crate::order::Full;
use crate::{Act, Entry, Id, MacKey, Offload, Only, PortMask, Stand, Standing, Write};
use crate::{decide, pairs};
use foldhash::{HashMap, HashSet};
use std::collections::BTreeMap;

/// What the chip has beyond what stands with each flow.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub acl_used: u32,
    pub class_used: u32,
    /// Who a group is of.
    pub groups: BTreeMap<u8, Id>,
    /// Who an entry is of, and what it does.
    mac: HashMap<MacKey, (Id, Act)>,
    sets: HashMap<PortMask, u32>,
    miss: Act,
    pub miss_of: Option<Id>,
}

impl Default for Device {
    fn default() -> Device {
        Device {
            acl_used: 0,
            class_used: 0,
            groups: BTreeMap::new(),
            mac: HashMap::default(),
            sets: HashMap::default(),
            miss: Act::Cpu,
            miss_of: None,
        }
    }
}

pub(crate) struct Job {
    place: Full,
    pub id: Id,
    /// Index into the flows that are gone.
    pub gone: Option<usize>,
    pub want: Standing,
}

impl Job {
    pub fn place(&self) -> &Full {
        &self.place
    }
}

fn set_of(act: Act) -> Option<PortMask> {
    match act {
        Act::Out { ports, .. } if ports.count() > 1 => Some(ports),
        _ => None,
    }
}

fn real(act: Option<Act>) -> bool {
    act.is_some_and(Act::real)
}

impl Offload {
    fn wanted(&self, e: &Entry) -> Standing {
        let turned = e.holes > 0;
        let now = |act: Act| if turned { Act::Cpu } else { act };
        let seen = |act: Act| if e.asked { Act::Cpu } else { now(act) };
        let mut want = Standing {
            rows: vec![None; e.rows.len()],
            ..Standing::default()
        };
        match e.state.stand {
            Stand::Mac => want.mac = Some(seen(e.mac_act())),
            Stand::Pair => {
                want.pair = Offload::pair_of(e).map(|(act, writes)| (now(act), writes));
            }
            Stand::Miss => want.miss = Some(now(e.act)),
            Stand::Acl { wide } => {
                let act = now(self.row_act(e));
                for (w, r) in want.rows.iter_mut().zip(&e.rows) {
                    *w = match (r.exact, wide) {
                        (true, _) => Some(act),
                        (false, true) => Some(Act::Cpu),
                        (false, false) => None,
                    };
                }
            }
            _ => {}
        }
        want
    }

    pub(crate) fn entry(&self, job: &Job) -> Option<&Entry> {
        match job.gone {
            Some(n) => self.gone.get(n),
            None => self.flows.get(&job.id).map(|e| &**e),
        }
    }

    pub(crate) fn standing(&mut self, job: &Job) -> Option<&mut Standing> {
        match job.gone {
            Some(n) => self.gone.get_mut(n).map(|e| &mut e.standing),
            None => self.flows.get_mut(&job.id).map(|e| &mut e.standing),
        }
    }

    fn jobs(&mut self) -> Vec<Job> {
        let mut ids = std::mem::take(&mut self.touched);
        ids.sort_unstable();
        ids.dedup();
        let mut jobs: Vec<Job> = Vec::with_capacity(ids.len() + self.gone.len());
        for (n, e) in self.gone.iter().enumerate() {
            jobs.push(Job {
                place: self.order.full(e.place),
                id: e.place.id,
                gone: Some(n),
                want: Standing {
                    rows: vec![None; e.rows.len()],
                    ..Standing::default()
                },
            });
        }
        for id in ids {
            if let Some(e) = self.flows.get(&id) {
                let want = self.wanted(e);
                if want != e.standing {
                    jobs.push(Job {
                        place: self.order.full(e.place),
                        id,
                        gone: None,
                        want,
                    });
                }
            }
        }
        jobs.sort_unstable_by(|a, b| a.place.cmp(&b.place));
        jobs
    }

    /// The writes that lead to what was decided.
    pub(crate) fn plan(&mut self) -> Vec<Write> {
        let mut jobs = self.jobs();
        let mut out = Vec::new();
        let (mut adds, mut deletes) = (0, false);
        let (mut leaves, mut comes) = (false, false);
        for j in &jobs {
            let Some(e) = self.entry(j) else { continue };
            leaves |= e.standing.mac.is_some() && j.want.mac.is_none();
            comes |= e.standing.mac.is_none() && j.want.mac.is_some();
            deletes |= e.standing.pair.is_some() && j.want.pair.is_none();
            for ((now, want), row) in e.standing.rows.iter().zip(&j.want.rows).zip(&e.rows) {
                match (now, want) {
                    (None, Some(_)) => adds += row.lines,
                    (Some(_), None) => deletes = true,
                    _ => {}
                }
            }
        }
        let pairs = self.new_pairs(&jobs);
        let full = self.device.acl_used + adds + pairs.groups > self.chip.acl.size;
        let tight = deletes && (full || self.pairs_tight(&pairs));
        if tight {
            self.guardless(&mut jobs);
        }
        let miss = self.wanted_miss(&jobs);
        // 1
        let crowded = self.crowded(&jobs);
        let moved = self.pairs_move(&jobs);
        for j in &jobs {
            self.turn(j, tight, crowded, moved, &mut out);
        }
        // Else what a packet is to meet stands before what it met goes
        let gaps = tight || crowded || leaves && comes;
        if self.device.miss.real() && (gaps || miss != (self.device.miss, self.device.miss_of)) {
            self.put_miss(Act::Cpu, &mut out);
        }
        // 2 to 6
        if tight {
            self.delete_rows(&jobs, &mut out);
        }
        for j in &jobs {
            self.add_rows(j, moved, &mut out);
        }
        self.delete_macs(&jobs, crowded, &mut out);
        for j in &jobs {
            if let (Some(act), Some(e)) = (j.want.mac, self.entry(j))
                && e.standing.mac.is_none()
            {
                self.put_mac(j, act, &mut out);
            }
        }
        if !tight {
            self.delete_rows(&jobs, &mut out);
        }
        // 7
        for j in &jobs {
            self.answer(j, &mut out);
        }
        self.put_miss(miss.0, &mut out);
        self.device.miss_of = miss.1;
        self.count(&jobs);
        for e in std::mem::take(&mut self.gone) {
            self.order.leave(e.place);
        }
        self.mixed = false;
        out
    }

    /// What is behind a guard that goes before another stands, and answers: it traps meanwhile.
    fn guardless(&self, jobs: &mut Vec<Job>) {
        let known: HashSet<Id> = jobs
            .iter()
            .filter(|j| j.gone.is_none())
            .map(|j| j.id)
            .collect();
        let mut more = HashSet::default();
        for j in jobs.iter() {
            let Some(e) = self.entry(j) else { continue };
            let goes = e.standing.rows.iter().zip(&j.want.rows);
            let pair = e.standing.pair.is_some() && j.want.pair.is_none();
            if pair
                || goes
                    .into_iter()
                    .any(|(now, want)| now.is_some() && want.is_none())
            {
                decide::meeting(&self.real, self, e, Side::Behind, |g| {
                    if !known.contains(&g) {
                        more.insert(g);
                    }
                });
            }
        }
        for id in more {
            if let Some(e) = self.flows.get(&id) {
                jobs.push(Job {
                    place: self.order.full(e.place),
                    id,
                    gone: None,
                    want: self.wanted(e),
                });
            }
        }
        jobs.sort_unstable_by(|a, b| a.place.cmp(&b.place));
    }

    fn wanted_miss(&self, jobs: &[Job]) -> (Act, Option<Id>) {
        let mut miss = (self.device.miss, self.device.miss_of);
        for j in jobs {
            match j.want.miss {
                Some(act) => return (act, Some(j.id)),
                None if miss.1 == Some(j.id) => miss = (Act::Cpu, None),
                None => {}
            }
        }
        miss
    }

    /// Are there not masks enough for all port sets, old and new?
    fn crowded(&self, jobs: &[Job]) -> bool {
        let new: HashSet<PortMask> = jobs
            .iter()
            .filter_map(|j| set_of(j.want.mac?))
            .filter(|s| !self.device.sets.contains_key(s))
            .collect();
        self.device.sets.len() + new.len() > self.chip.mac.map_or(0, |m| m.port_sets as usize)
    }

    fn turn(&mut self, j: &Job, tight: bool, crowded: bool, moved: bool, out: &mut Vec<Write>) {
        let Some(e) = self.entry(j) else { return };
        let standing = e.standing.clone();
        // Packets of a flow that goes, or of a source that comes, meet what it does only when it does what it will
        let mixed = self.mixed && (!self.gone.is_empty() || e.only == Some(Only::Mac));
        let other = |now: Option<Act>, want: Option<Act>| mixed && want.is_some() && now != want;
        for (n, (now, want)) in (0u8..).zip(standing.rows.iter().zip(&j.want.rows)) {
            // Meanwhile packets are of a group that were not, or will not be, and rows for the tag don't keep those from it
            let met = moved && now != want;
            let turns = met || tight || *want == Some(Act::Cpu) || other(*now, *want);
            if real(*now) && turns {
                self.row_act_at(j, n, Act::Cpu, out);
            }
        }
        self.turn_pair(j, tight, mixed, out);
        if real(standing.mac) {
            let set = crowded && set_of(standing.mac.unwrap_or(Act::Cpu)).is_some();
            if tight
                || j.want.mac == Some(Act::Cpu)
                || other(standing.mac, j.want.mac)
                || set && j.want.mac.is_some() && j.want.mac != standing.mac
            {
                self.put_mac(j, Act::Cpu, out);
            }
        }
    }

    fn row_act_at(&mut self, j: &Job, row: u8, act: Act, out: &mut Vec<Write>) {
        let Some(at) = self.labels.of(&j.place, row) else {
            return;
        };
        if let Some(s) = self.standing(j)
            && let Some(r) = s.rows.get_mut(usize::from(row))
        {
            *r = Some(act);
            out.push(Write::RowAct { at, act });
        }
    }

    fn add_rows(&mut self, j: &Job, moved: bool, out: &mut Vec<Write>) {
        for (n, want) in (0u8..).zip(&j.want.rows) {
            let act = match *want {
                // It does when all is classified as it will be
                Some(_) if moved => Act::Cpu,
                Some(act) => act,
                None => continue,
            };
            let Some(e) = self.entry(j) else { continue };
            let row = usize::from(n);
            let (Some(None), Some(of)) = (e.standing.rows.get(row), e.rows.get(row)) else {
                continue;
            };
            let (kind, fields, lines) = (of.kind, of.fields.clone(), of.lines);
            let ungrouped = self.chip.class.is_some() && pairs::asks_tag(&fields);
            let (at, moves) = self.labels.insert(j.place.clone(), n);
            out.extend(
                moves
                    .into_iter()
                    .map(|(from, to)| Write::RowMove { from, to }),
            );
            self.device.acl_used += lines;
            if let Some(s) = self.standing(j) {
                s.rows[row] = Some(act);
            }
            out.push(Write::RowAdd {
                at,
                flow: j.id,
                kind,
                fields,
                ungrouped,
                act,
            });
        }
        self.add_pair(j, out);
    }

    fn delete_rows(&mut self, jobs: &[Job], out: &mut Vec<Write>) {
        for j in jobs.iter().rev() {
            self.delete_pair(j, out);
            for (n, want) in (0u8..).zip(&j.want.rows) {
                let row = usize::from(n);
                let Some(e) = self.entry(j) else { continue };
                let (Some(Some(_)), None, Some(of)) =
                    (e.standing.rows.get(row), want, e.rows.get(row))
                else {
                    continue;
                };
                self.device.acl_used -= of.lines;
                if let Some(at) = self.labels.remove(&j.place, n) {
                    out.push(Write::RowDel { at });
                }
                if let Some(s) = self.standing(j) {
                    s.rows[row] = None;
                }
            }
        }
    }

    fn delete_macs(&mut self, jobs: &[Job], crowded: bool, out: &mut Vec<Write>) {
        let new = |j: &&Job| {
            j.want.mac.is_some() && self.entry(j).is_some_and(|e| e.standing.mac.is_none())
        };
        let keys: HashSet<MacKey> = jobs
            .iter()
            .filter(new)
            .filter_map(|j| self.entry(j)?.mac)
            .collect();
        for j in jobs {
            let Some(e) = self.entry(j) else { continue };
            let (Some(_), None, Some(key)) = (e.standing.mac, j.want.mac, e.mac) else {
                continue;
            };
            let set = e.standing.mac.and_then(set_of);
            if let Some(s) = self.standing(j) {
                s.mac = None;
            }
            if keys.contains(&key) && !crowded {
                // What comes is written over it; the port set is given back then
                continue;
            }
            self.device.mac.remove(&key);
            out.push(Write::MacDel(key));
            self.release(set, out);
        }
    }

    fn release(&mut self, set: Option<PortMask>, out: &mut Vec<Write>) {
        if let Some(s) = set
            && let Some(n) = self.device.sets.get_mut(&s)
        {
            *n -= 1;
            if *n == 0 {
                self.device.sets.remove(&s);
                out.push(Write::SetDel(s));
            }
        }
    }

    fn put_mac(&mut self, j: &Job, act: Act, out: &mut Vec<Write>) {
        let Some(e) = self.entry(j) else { return };
        let Some(key) = e.mac else { return };
        if let Some(s) = set_of(act) {
            let n = self.device.sets.entry(s).or_default();
            if *n == 0 {
                out.push(Write::SetAdd(s));
            }
            *n += 1;
        }
        out.push(Write::MacPut {
            key,
            flow: j.id,
            act,
        });
        let old = self.device.mac.insert(key, (j.id, act));
        self.release(old.and_then(|(_, a)| set_of(a)), out);
        if let Some(s) = self.standing(j) {
            s.mac = Some(act);
        }
    }

    fn put_miss(&mut self, act: Act, out: &mut Vec<Write>) {
        if self.device.miss != act {
            self.device.miss = act;
            out.push(Write::Miss(act));
        }
    }

    fn answer(&mut self, j: &Job, out: &mut Vec<Write>) {
        for (n, want) in (0u8..).zip(&j.want.rows) {
            let now = self
                .entry(j)
                .and_then(|e| e.standing.rows.get(usize::from(n)).copied())
                .flatten();
            if let (Some(now), Some(want)) = (now, *want)
                && now != want
            {
                self.row_act_at(j, n, want, out);
            }
        }
        self.answer_pair(j, out);
        let now = self.entry(j).and_then(|e| e.standing.mac);
        if let (Some(now), Some(want)) = (now, j.want.mac)
            && now != want
        {
            self.put_mac(j, want, out);
        }
        if let Some(s) = self.standing(j) {
            s.miss = j.want.miss;
        }
    }

    /// What the chip answers by itself is counted there, or is not.
    fn count(&mut self, jobs: &[Job]) {
        let counted = self.chip.acl.counted;
        for j in jobs {
            if let Some(e) = self.flows.get_mut(&j.id)
                && j.gone.is_none()
            {
                let dark = real(e.standing.mac) || real(e.standing.miss);
                let pair = e.standing.pair.is_some_and(|(act, _)| act.real());
                let rows = pair || e.standing.rows.iter().any(|a| real(*a));
                e.counts.packets &= !dark && (!rows || counted.packets);
                e.counts.bytes &= !dark && (!rows || counted.bytes);
            }
        }
    }
}
