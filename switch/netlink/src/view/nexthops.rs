//! Next-hop objects, and the buckets of resilient groups.
//!
//! ```text
//!  group's message ──► who stays keeps the buckets ──► upsert ─┐
//!  bucket's message, or a member gone ─────────────────────────┴► `mixed` ──► dump of its buckets ──► upsert
//! ```
//!
//! The kernel tells of a bucket that its timers moved, but not of those that move with a group's replacement or with a
//! member that went (net/ipv4/nexthop.c `replace_nexthop_grp_res`): they are read after either.

use std::collections::BTreeSet;

use tandem_linux::netlink as nl;
use tandem_store::model::{self, Key, NexthopKind, Object};

use super::super::convert;
use super::super::fib::{Change, Content, Op};
use super::{KernelView, Sink, next_hop_flags, remove, say, upsert};

impl KernelView {
    pub(super) fn device_nexthops_gone(&mut self, index: u32, out: &mut Sink<'_>) {
        let ids = self.nexthops_on(index);
        if !ids.is_empty() {
            self.nexthops_gone(&ids, out);
            self.doubts.nexthops = true;
        }
    }

    /// Objects that lead to a device.
    pub(super) fn nexthops_on(&self, index: u32) -> BTreeSet<u32> {
        let on_device = |n: &&model::NexthopObject| matches!(&n.kind, NexthopKind::Single(nh) if nh.ifindex == index);
        let all = self.nexthops.values().filter(on_device);
        all.map(|n| n.id).collect()
    }

    /// An object comes to devices that are up and have a carrier alone (net/ipv4/nexthop.c `rtm_to_nh_config`).
    pub(super) fn suspect(&mut self, nh: &model::NexthopObject, op: Op) {
        if let (Op::New(_), NexthopKind::Single(n)) = (op, &nh.kind)
            && n.ifindex != 0
            && next_hop_flags(&self.links, n.ifindex) != 0
        {
            self.suspects.insert(n.ifindex);
        }
    }

    pub(super) fn nexthop(&mut self, nh: model::NexthopObject, out: &mut Sink<'_>) {
        if let Some(told) = &mut self.told {
            told.insert(nh.id);
        }
        let again = match &mut self.full {
            Some(seen) => {
                seen.nexthops.insert(nh.id);
                true
            }
            None => false,
        };
        let changed = self.nexthops.get(&nh.id) != Some(&nh);
        if changed {
            self.nexthops.insert(nh.id, nh.clone());
        }
        if changed || again {
            upsert(out, Object::Nexthop(nh));
        }
    }

    /// Objects go, with the routes that use them and the groups that have no other member.
    pub(super) fn nexthops_gone(&mut self, ids: &BTreeSet<u32>, out: &mut Sink<'_>) {
        let gone = self.with_groups(ids);
        self.fib.doubt_all_hidden();
        let by_it = |c: &Content| gone.contains(&c.nh_id());
        let say = &mut |c: Change<'_>| say(out, &c);
        self.fib.drop_aliases(None, by_it, |_, _, _| true, say);
        self.objects_gone(ids, gone, out);
    }

    /// With the groups that have no other member.
    pub(super) fn with_groups(&self, ids: &BTreeSet<u32>) -> BTreeSet<u32> {
        let goes = |n: &&model::NexthopObject| {
            n.kind.members().any(|id| ids.contains(&id))
                && n.kind.without(|id| ids.contains(&id)).is_none()
        };
        let groups = self.nexthops.values().filter(goes).map(|n| n.id);
        ids.iter().copied().chain(groups).collect()
    }

    /// Objects go, `gone` with the groups that have no other member; their routes have gone.
    pub(super) fn objects_gone(
        &mut self,
        ids: &BTreeSet<u32>,
        gone: BTreeSet<u32>,
        out: &mut Sink<'_>,
    ) {
        let mut groups = Vec::new();
        for n in self.nexthops.values() {
            if !gone.contains(&n.id)
                && n.kind.members().any(|id| ids.contains(&id))
                && let Some(kind) = n.kind.without(|id| ids.contains(&id))
            {
                groups.push(model::NexthopObject { kind, ..n.clone() });
            }
        }
        for group in groups {
            if matches!(group.kind, NexthopKind::Buckets(_)) {
                self.mixed.insert(group.id);
            }
            self.nexthop(group, out);
        }
        if let Some(told) = &mut self.told {
            told.extend(&gone);
        }
        // groups before their members
        let (of_groups, singles): (Vec<u32>, Vec<u32>) =
            gone.iter().partition(|id| !ids.contains(id));
        for id in of_groups.into_iter().chain(singles) {
            self.mixed.remove(&id);
            if self.nexthops.remove(&id).is_some() {
                remove(out, Key::Nexthop(id));
            }
        }
    }

    /// All next-hop objects were dumped: what came meanwhile is applied before the dump is.
    pub fn begin_nexthops(&mut self) {
        self.told = Some(BTreeSet::new());
    }

    /// The dump of all next-hop objects: what is not among them is gone. How many. Of what was told meanwhile the message is newer.
    pub fn check_nexthops(&mut self, mut dump: Vec<nl::Nexthop>, out: &mut Sink<'_>) -> usize {
        let told = self.told.take().unwrap_or_default();
        dump.retain(|n| !told.contains(&n.id));
        let there: BTreeSet<u32> = dump.iter().map(|n| n.id).collect();
        for n in &dump {
            let nh = self.with_buckets(n);
            self.nexthop(nh, out);
        }
        let gone: BTreeSet<u32> = self
            .nexthops
            .keys()
            .filter(|id| !there.contains(id) && !told.contains(id))
            .copied()
            .collect();
        if !gone.is_empty() {
            self.nexthops_gone(&gone, out);
        }
        gone.len()
    }

    // -- resilient groups --------------------------------------------------------------------

    /// The object, with what is known of its buckets if it is a resilient group.
    pub(super) fn with_buckets(&mut self, n: &nl::Nexthop) -> model::NexthopObject {
        let mut nh = convert::nexthop(n);
        let (NexthopKind::Buckets(members), None) = (&nh.kind, nh.unsupported) else {
            return nh;
        };
        let is_member = |id: u32| members.iter().any(|m| m.0 == id);
        let read = self.buckets.remove(&nh.id).map(|(_, runs)| runs);
        let known = match (&read, self.nexthops.get(&nh.id).map(|o| &o.kind)) {
            (Some(runs), _) => NexthopKind::Buckets(runs.clone()),
            (None, Some(old @ NexthopKind::Buckets(_))) => old.clone(),
            _ => NexthopKind::Buckets(Vec::new()),
        };
        // a message tells of the group and may follow a change of its buckets; a dump of them came with a dump of groups
        if read.is_none() || known.members().any(|id| !is_member(id)) {
            self.mixed.insert(nh.id);
        }
        match known.without(|id| !is_member(id)) {
            Some(kind) => nh.kind = kind,
            None => {
                nh.kind = NexthopKind::Buckets(Vec::new());
                nh.unsupported = Some(model::Unsupported::BucketsUnread);
            }
        }
        nh
    }

    /// A bucket, from a dump: they come in their order, and from the first again if the dump is repeated.
    pub(super) fn bucket(&mut self, b: &nl::NexthopBucket) {
        let (count, runs) = self.buckets.entry(b.group).or_default();
        if b.index == 0 {
            (*count, *runs) = (0, Vec::new());
        }
        if *count == u32::from(b.index) {
            *count += 1;
            model::add_run(runs, b.nexthop, 1);
        }
    }

    /// Resilient groups whose buckets are to be read.
    pub fn take_mixed(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.mixed)
    }

    /// There are such groups.
    pub fn is_mixed(&self) -> bool {
        !self.mixed.is_empty()
    }

    /// The dump of a group's buckets begins.
    pub fn begin_buckets(&mut self, group: u32) {
        self.buckets.remove(&group);
    }

    /// It is complete.
    pub fn end_buckets(&mut self, group: u32, out: &mut Sink<'_>) {
        let Some((_, runs)) = self.buckets.remove(&group) else {
            return;
        };
        let Some(o) = self.nexthops.get(&group) else {
            return;
        };
        if matches!(o.kind, NexthopKind::Buckets(_)) {
            let nh = model::NexthopObject {
                kind: NexthopKind::Buckets(runs),
                unsupported: None,
                ..o.clone()
            };
            self.nexthop(nh, out);
        }
    }
}
