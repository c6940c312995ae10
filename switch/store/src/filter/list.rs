//! An ACL table as far as the chip has come, and what people are told of it.

use super::{At, Shown, list_id, stage};
use crate::Store;
use crate::api::{FilterRow, State};
use crate::hw::acl::{AclBind, AclTable};
use crate::hw::table::Sent;
use crate::hw::{Cls, HwClass, Ref, with_class};
use crate::model::{FilterKey, FilterVerdict};
use crate::reason::Reason;
use crate::slices::Walk;
use crate::sync::Phase;

impl Store {
    // -- a list, rule by rule -----------------------------------------------------------------------------------------

    /// Takes a list as far as the chip has come. See the head of this file for the order.
    pub(super) fn step_list(&mut self, at: At, now: u64) {
        if !self.filters.looked.is_empty() {
            // some of its rules may not be as they should be yet
            self.filters.touched.insert(at);
            return;
        }
        let Some(l) = self.filters.lists.get(&at) else {
            return;
        };
        let (table, bind) = (l.table, l.bind);
        let b = self.hw.acl_binds.get(bind);
        let bound = b.and_then(|o| o.have.as_ref()).map(|h| h.trap_all);
        let moving = b.is_some_and(|o| !matches!(o.sent, Sent::Nothing));
        if l.target.is_empty() {
            self.hw.want::<AclBind>(bind, None, now);
            if bound.is_some() || moving {
                return; // a list that is still asked is left whole
            }
            self.walk(Walk::Due(at), now);
            self.hw.want::<AclTable>(table, None, now);
            return;
        }
        let (port, stage) = at;
        self.hw.want(table, Some(AclTable { port, stage }), now);
        let (open, failed) = (l.open.len(), !l.failed.is_empty());
        let wanted = |trap_all| AclBind {
            port,
            stage,
            list: table,
            trap_all,
            unsure: false,
        };
        if open == 0 {
            self.hw.want(bind, Some(wanted(false)), now);
            return;
        }
        // One rule is changed in one step, and needs no trap unless it fails.
        let one = bound == Some(false) && open == 1 && !failed;
        // What stood before an attach that kept the tables is confirmed, not trapped.
        let confirmed = self.warm && self.phase != Phase::Normal && !failed;
        if !one && !confirmed {
            self.hw.want(bind, Some(wanted(true)), now);
            // Not before everything traps, or nothing asks the list. What is under way to the binding may be the end of
            // an earlier trap.
            if moving || bound == Some(false) {
                return;
            }
        }
        self.walk(Walk::Due(at), now);
    }

    /// The next rule that has changed is wanted: first those that go.
    pub(crate) fn step_due(&mut self, at: At, now: u64) -> bool {
        let Some(l) = self.filters.lists.get_mut(&at) else {
            return false;
        };
        let Some(priority) = l.going.pop_first().or_else(|| l.due.pop_first()) else {
            return false;
        };
        self.slices.look();
        let want = l.target.get(&priority);
        let id = match l.entries.get(&priority) {
            Some(id) => *id,
            None => {
                let id = self.hw.acl_entries.take();
                l.entries.insert(priority, id);
                let rule = (Cls::AclEntry, id);
                self.filters.list_of.insert(rule, (at, priority));
                id
            }
        };
        self.hw.want(id, want.cloned(), now);
        self.note_rule(at, priority);
        true
    }

    /// Whether a rule is in hardware as it should be, has failed, and is wanted.
    pub(super) fn note_rule(&mut self, at: At, priority: u32) {
        let Some(l) = self.filters.lists.get_mut(&at) else {
            return;
        };
        let id = l.entries.get(&priority);
        let o = id.and_then(|id| self.hw.acl_entries.get(*id));
        let target = l.target.get(&priority);
        let is_due = o.and_then(|o| o.want.as_ref()) != target;
        let fails = target.is_some() && o.is_some_and(|o| o.fail.is_some());
        let stands = o.and_then(|o| o.have.as_ref()) == target;
        let is_open = match target {
            Some(_) => is_due || fails || !stands,
            None => id.is_some(),
        };
        for (set, is) in [
            (&mut l.open, is_open),
            (&mut l.failed, fails),
            (&mut l.due, is_due && target.is_some()),
            (&mut l.going, is_due && target.is_none()),
        ] {
            match is {
                true => set.insert(priority),
                false => set.remove(&priority),
            };
        }
    }

    /// A table, or what rules share, came to stand, or failed: rules go without, or get it back.
    pub(crate) fn rule_part_changed(&mut self, r: Ref) {
        let of = &self.filters;
        let part = of.by_table.get(&(r.cls, r.id)).map(|id| (r.cls, *id));
        let users: Vec<FilterKey> = part.into_iter().flat_map(|p| of.users(p)).collect();
        let waiting: Vec<u32> = if r.cls == Cls::AclTable {
            let lists = of.lists.values().filter(|l| l.table == r.id);
            lists.flat_map(|l| l.entries.values()).copied().collect()
        } else {
            let rules = users.iter().filter_map(|k| of.shown.get(k));
            let entry = |s: &Shown| of.lists.get(&s.at)?.entries.get(&s.priority).copied();
            rules.filter_map(entry).collect()
        };
        for id in waiting {
            let r = Ref::new(Cls::AclEntry, id);
            self.hw.retry_dependent(r);
            self.rule_changed(r);
        }
        if r.cls == Cls::AclTable {
            for id in self.hw.acl_binds.ids() {
                self.hw.retry_dependent(Ref::new(Cls::AclBind, id));
            }
            return;
        }
        let failed = self.part_failed(r);
        let had_failed = self.filters.parts_failed.remove(&r);
        if failed {
            self.filters.parts_failed.insert(r);
        }
        if failed || had_failed {
            self.topo.dirty.rules.extend(users);
        }
    }

    fn part_failed(&self, r: Ref) -> bool {
        with_class!(r.cls, T => T::all(&self.hw).get(r.id).is_some_and(|o| o.failed().is_some()))
    }

    /// A binding failed, which a chip with lists does not: all ports are looked at.
    pub(crate) fn bind_changed(&mut self, id: u32) {
        let failed = self.hw.acl_binds.get(id).is_some_and(|o| o.fail.is_some());
        if failed || self.filters.binds_failed {
            self.topo.dirty.ports.extend(self.topo.if_of_port.keys());
        }
        self.filters.binds_failed |= failed;
    }

    /// A rule or a binding was answered.
    pub(crate) fn list_answered(&mut self, r: Ref, now: u64) {
        if let Some(at) = self.rule_changed(r) {
            self.step_list(at, now);
        }
    }

    /// Of a rule, or a binding: its list.
    fn rule_changed(&mut self, r: Ref) -> Option<At> {
        let (at, priority) = *self.filters.list_of.get(&(r.cls, r.id))?;
        if r.cls == Cls::AclEntry {
            self.slices.look();
            self.note_rule(at, priority);
        }
        Some(at)
    }

    pub(crate) fn rule_released(&mut self, id: u32) {
        if let Some((at, p)) = self.filters.list_of.remove(&(Cls::AclEntry, id))
            && let Some(l) = self.filters.lists.get_mut(&at)
        {
            l.entries.remove(&p);
            self.note_rule(at, p);
            self.step_list(at, 0);
        }
    }

    /// A counter, policer or session.
    pub(crate) fn part_released(&mut self, r: Ref) {
        self.filters.parts_failed.remove(&r);
        if let Some(chip) = self.filters.by_table.remove(&(r.cls, r.id)) {
            self.filters.parts.remove(&(r.cls, chip));
        }
    }

    /// A list without filters, off the chip: its table or its binding was the last of it.
    pub(crate) fn end_list_of(&mut self, table: Option<u32>, bind: Option<u32>) {
        let lists = self.filters.lists.iter();
        let ended = lists.filter(|(_, l)| Some(l.table) == table || Some(l.bind) == bind);
        let ended: Vec<At> = ended.map(|(at, _)| *at).collect();
        for at in ended {
            self.end_list(at, table, bind);
        }
    }

    fn end_list(&mut self, at: At, table: Option<u32>, bind: Option<u32>) {
        let Some(l) = self.filters.lists.get_mut(&at) else {
            return;
        };
        // the ids are taken again, of the same list
        if table == Some(l.table) {
            l.table = self.hw.acl_tables.take();
        }
        if bind == Some(l.bind) {
            self.filters.list_of.remove(&(Cls::AclBind, l.bind));
            l.bind = self.hw.acl_binds.take();
            let bind = (Cls::AclBind, l.bind);
            self.filters.list_of.insert(bind, (at, 0));
        }
        let idle = l.target.is_empty() && l.entries.is_empty();
        let (table, bind) = (l.table, l.bind);
        let free = |have: bool, want: bool| !have && !want;
        let t = self.hw.acl_tables.get(table);
        let b = self.hw.acl_binds.get(bind);
        let off = t.is_none_or(|o| free(o.have.is_some(), o.want.is_some()))
            && b.is_none_or(|o| free(o.have.is_some(), o.want.is_some()));
        if idle && off {
            self.filters.lists.remove(&at);
            self.filters.list_of.remove(&(Cls::AclBind, bind));
            self.hw.acl_tables.release(table);
            self.hw.acl_binds.release(bind);
            self.hw.acl_tables.released.clear();
            self.hw.acl_binds.released.clear();
        } else {
            self.step_list(at, 0);
        }
    }

    /// Why the chip can't even be told that a port's list is not whole: it has no lists. The ports that then trap by
    /// themselves: that one, or, for what leaves by it, all.
    pub(crate) fn no_lists(&self, port: u16) -> Option<Reason> {
        self.filters.lists.iter().find_map(|(at, l)| {
            let fail = self.hw.acl_binds.get(l.bind)?.fail.as_ref()?;
            let here = at.0 == port || at.1 == stage(true);
            let whom = self.topo.if_of_port.get(&at.0)?;
            here.then(|| Reason::Lists(self.dev(*whom), self.fail_reason(fail).into()))
        })
    }

    // -- for people ---------------------------------------------------------------------------------------------------

    /// Why everything of a port's hook traps; None if it does not.
    fn list_reason(&self, at: At) -> Option<Reason> {
        let l = self.filters.lists.get(&at)?;
        let o = self.hw.acl_binds.get(l.bind)?;
        if !o.want.as_ref()?.trap_all {
            return None;
        }
        let open = l.open.iter().filter_map(|p| l.entries.get(p));
        let failed = open
            .filter_map(|id| self.hw.acl_entries.get(*id))
            .find_map(|o| o.fail.as_ref());
        Some(match failed {
            Some(f) => self.fail_reason(f),
            None => Reason::RulesPending,
        })
    }

    /// Why all that comes in by a port, or leaves by it, goes to the CPU because of its filters.
    pub(crate) fn filters_reason(&self, ifindex: u32) -> Option<Reason> {
        let &port = self.topo.port_of.get(&ifindex)?;
        let of = |egress| self.list_reason((port, stage(egress)));
        of(false)
            .map(|r| Reason::IngressList(r.into()))
            .or_else(|| of(true).map(|r| Reason::EgressList(r.into())))
    }

    /// Rules (list, priority) of filters whose packets are the kernel's, for a reason that is known.
    pub fn rules_that_trap(&self) -> Vec<(u32, u32)> {
        let shown = self.filters.shown.values();
        shown
            .filter(|s| s.reason.is_some())
            .map(|s| (list_id(s.at.0, s.at.1), s.priority))
            .collect()
    }

    /// Of filters at front-panel ports whose rules count: the port, and the chip's counter.
    pub fn counted_rules(&self) -> Vec<(u16, FilterKey, u32)> {
        let all = self.filters.shown.iter().filter(|(_, s)| s.counter != 0);
        all.map(|(key, s)| (s.at.0, *key, s.counter)).collect()
    }

    /// All filters at front-panel ports.
    pub fn filters(&self) -> Vec<FilterRow> {
        let mut rows = Vec::new();
        for (key, (f, ..)) in &self.filters.all {
            if !self.topo.port_of.contains_key(&key.ifindex) {
                continue;
            }
            let shown = self.filters.shown.get(key);
            let list = shown.and_then(|s| self.filters.lists.get(&s.at));
            let entry = shown
                .zip(list)
                .and_then(|(s, l)| l.entries.get(&s.priority))
                .and_then(|id| self.hw.acl_entries.get(*id));
            let whole = shown.and_then(|s| self.list_reason(s.at));
            let (state, reason) = match (shown, entry) {
                (None, _) => (State::Omitted, Some(Reason::OtherChain(key.chain))),
                (Some(_), None) if f.verdict == FilterVerdict::Next => (State::Omitted, None),
                (Some(_), Some(e)) if e.fail.is_some() => {
                    (State::Failed, e.fail.as_ref().map(|x| self.fail_reason(x)))
                }
                (Some(s), Some(e)) if e.have.is_some() && e.have == e.want => match whole {
                    Some(why) => (State::Trap, Some(Reason::ListPartly(why.into()))),
                    None if s.reason.is_none() => (State::Installed, None),
                    None => (State::Trap, s.reason.clone()),
                },
                (Some(s), _) => (State::Pending, s.reason.clone()),
            };
            rows.push(FilterRow {
                dev: self.dev(key.ifindex),
                egress: key.egress,
                chain: key.chain,
                priority: key.priority,
                handle: key.handle,
                text: f.text.clone(),
                counter: shown.map_or(0, |s| s.counter),
                state,
                reason,
            });
        }
        rows
    }
}
