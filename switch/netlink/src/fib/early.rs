//! Messages that a dump has overtaken: it found what they tell of, and may have lost whom that replaced.

use tandem_linux::netlink::{NewMode, Route};

use super::super::aliases::{Alias, Key, Key4, Key6};
use super::{Content, Family, FibCopy, Op};

impl<K: Key> Family<K> {
    /// A dump of everything begins.
    pub(super) fn begin_full(&mut self) {
        self.twins.clear();
        self.displaced.clear();
        self.dumped = true;
    }

    /// All messages of before are applied.
    pub(super) fn caught_up(&mut self) {
        self.torn.clear();
        self.displaced.clear();
        self.dumped = false;
    }

    /// A dump had not these: what is left beside them stays, whatever took their place.
    pub(super) fn tear(&mut self, gone: Vec<K>) {
        let left = gone.into_iter().filter(|key| self.aliases.holds(key));
        self.torn.extend(left);
    }

    /// The key's routes before a message that may take one out which it does not mean; of other messages none.
    pub(super) fn may_displace(&self, key: &K, op: Op) -> Vec<Alias> {
        match op {
            Op::New(NewMode::Replace(_)) if self.dumped => self.aliases.list(key),
            _ => Vec::new(),
        }
    }

    /// Such a message was applied.
    pub(super) fn note_displaced(&mut self, key: K, before: &[Alias]) {
        if before.is_empty() {
            return;
        }
        let left = self.aliases.list(&key);
        let stays = |b: &Alias| left.iter().any(|a| a.content == b.content);
        if !before.iter().all(stays) {
            self.displaced.insert(key);
        }
    }
}

impl FibCopy {
    /// What a message about an IPv6 route does beside what dumps have found, and whether it comes late: its route goes behind the
    /// others of its key.
    pub(super) fn overtaken6(&mut self, key: &Key6, r: &Route, op: Op) -> (Op, bool) {
        let replaces = matches!(op, Op::New(NewMode::Replace(_)));
        let found = self.found_early(key, r, op);
        // in its place, among those that are there with it
        let placed = replaces && found == Some(true);
        let late = found.is_some() && !placed;
        self.unsure |= !late && self.v6.dumped && self.may_have_replaced(key, r, op);
        // whose place it took is gone: no other one goes, and where it stands a dump of everything says
        let torn = replaces && !placed && self.v6.torn.contains(key);
        self.lost |= torn;
        match placed || torn {
            true => (Op::New(NewMode::Append), late),
            false => (op, late),
        }
    }

    /// A look at one device's IPv4 routes found this one ahead of its message, or elsewhere among those of its key than it was, and others of
    /// the key lead to other devices: which of them it stands behind such a look does not say.
    pub(super) fn is_out_of_order(&mut self, key: &Key4, r: &Route) -> bool {
        let Some((ifindex, disorder)) = &mut self.looked_at else {
            return false;
        };
        let list = self.v4.aliases.list(key);
        let content = |a: &Alias| self.contents.get(a.content);
        let elsewhere = |a: &Alias| content(a).is_some_and(|c| !c.uses(*ifindex));
        if !list.iter().any(elsewhere) {
            return false;
        }
        let after = self.v4.last.filter(|(last, _)| last == key);
        let dumped = Content::of(r);
        let found = list.iter().find(|a| content(a) == Some(&dumped));
        let in_order = |a: &Alias| after.is_none_or(|(_, position)| a.position > position);
        let twin = |a: &Alias| after.is_some() && self.v4.run.contains(&a.content);
        let here = found.is_some_and(|a| in_order(a) || twin(a));
        *disorder |= !here;
        !here
    }

    /// This is the message of an IPv6 route that a dump has found already; true: one of everything.
    fn found_early(&mut self, key: &Key6, r: &Route, op: Op) -> Option<bool> {
        if let Op::Dumped { again } = op {
            // All of a key's routes are found at once by a dump of everything: the first of them needs no place behind others
            if again && !self.v6.aliases.holds(key) {
                return None;
            }
            let content = Content::of(r);
            let list = self.v6.aliases.list(key);
            let any = |f: &dyn Fn(&Content) -> bool| {
                list.iter()
                    .any(|a| self.contents.get(a.content).is_some_and(f))
            };
            // what joins others has its place from the first of them
            let joins = |c: &Content| c.joins() && c.src == content.src;
            let placed = any(&|c| *c == content) || content.joins() && any(&joins);
            let found = (*key, content);
            if !placed || again && self.early.contains_key(&found) {
                self.early.insert(found, again);
            }
            return None;
        }
        if self.early.is_empty() {
            return None;
        }
        let found = self.early.remove(&(*key, Content::of(r)));
        found.filter(|_| !matches!(op, Op::Del | Op::New(NewMode::Told)))
    }

    /// An IPv6 route that a dump has found took another's place: of several that are here that one may be among them, put there by an
    /// earlier message that the dump had overtaken as well.
    fn may_have_replaced(&self, key: &Key6, r: &Route, op: Op) -> bool {
        if !matches!(op, Op::New(NewMode::Replace(_))) {
            return false;
        }
        let list = self.v6.aliases.list(key);
        let content = Content::of(r);
        let same = |a: &Alias| self.contents.get(a.content) == Some(&content);
        list.len() > 1 && list.iter().any(same)
    }
}
