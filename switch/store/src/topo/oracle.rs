//! The judge of what is computed step by step: everything derived is computed anew and must be what it was.

use crate::Store;
use crate::fib::{Fam, V4, V6};
use crate::hw::{Cls, HwClass, each_class};
use crate::model::LinkKind;
use crate::paths::Paths;
use crate::sync::Phase;
use crate::topo::Topo;
use crate::topo::dirty::odd;
use std::any::Any;
use std::collections::BTreeSet;
use std::fmt::Debug;
use tandem_cover::NONE;

/// What rows are of.
#[derive(Clone, Copy)]
enum What {
    Class(Cls),
    Named(&'static str),
}

impl Debug for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            What::Class(cls) => write!(f, "{cls:?}"),
            What::Named(name) => f.write_str(name),
        }
    }
}

/// All that is derived, row by row, as it is now: kept, to be compared with what it is later.
enum Look {
    /// Each kind's [`Rows`], in the order in which they are named, always the same.
    Keep(Vec<Box<dyn Any>>),
    /// What was kept and is not compared yet, and what differs so far.
    Compare(std::vec::IntoIter<Box<dyn Any>>, Vec<String>),
}

/// Rows of one kind. They are kept as they are: words are made of those that differ alone, as most often none does.
type Rows<K, V> = Vec<(K, V)>;

impl Look {
    /// The rows of one kind.
    fn rows<'a, K: Ord + Debug + 'static, V: PartialEq + Clone + Debug + 'static>(
        &mut self,
        what: What,
        all: impl Iterator<Item = (K, &'a V)> + Clone,
    ) {
        let keep = || -> Rows<K, V> { all.clone().map(|(k, v)| (k, v.clone())).collect() };
        match self {
            Look::Keep(kept) => kept.push(Box::new(keep())),
            Look::Compare(kept, differs) => {
                let was = kept
                    .next()
                    .and_then(|was| was.downcast::<Rows<K, V>>().ok());
                match was {
                    // most often they are the same, in the same order
                    Some(was) if same(all.clone(), &was) => {}
                    Some(was) => compare(what, *was, keep(), differs),
                    None => differs.push(format!("{what:?}: not compared")),
                }
            }
        }
    }

    fn map<'a, K: Ord + Copy + Debug + 'static, V: PartialEq + Clone + Debug + 'static>(
        &mut self,
        what: &'static str,
        all: impl IntoIterator<Item = (&'a K, &'a V), IntoIter: Clone>,
    ) {
        self.rows(What::Named(what), all.into_iter().map(|(k, v)| (*k, v)));
    }

    fn set<K: Ord + Copy + Debug + 'static>(&mut self, what: &'static str, all: &BTreeSet<K>) {
        self.rows(What::Named(what), all.iter().map(|k| (*k, &())));
    }
}

/// Whether these are the rows that were kept, in their order.
fn same<'a, K: PartialEq, V: PartialEq + 'a>(
    mut all: impl Iterator<Item = (K, &'a V)>,
    rows: &[(K, V)],
) -> bool {
    let is = |(k, v): &(K, V)| all.next().is_some_and(|now| now.0 == *k && now.1 == v);
    rows.iter().all(is) && all.next().is_none()
}

/// Rows that are others later: their key, what it was, what it is then.
fn compare<K: Ord + Debug, V: PartialEq + Debug>(
    what: What,
    mut was: Rows<K, V>,
    mut is: Rows<K, V>,
    differs: &mut Vec<String>,
) {
    was.sort_by(|a, b| a.0.cmp(&b.0));
    is.sort_by(|a, b| a.0.cmp(&b.0));
    let get = |rows: &[(K, V)], key: &K| rows.binary_search_by(|r| r.0.cmp(key)).ok();
    let words = |v: Option<&V>| v.map_or_else(|| "nothing".to_owned(), |v| format!("{v:?}"));
    let new = is.iter().filter(|r| get(&was, &r.0).is_none());
    for (k, _) in was.iter().chain(new) {
        let old = get(&was, k).and_then(|n| was.get(n)).map(|r| &r.1);
        let now = get(&is, k).and_then(|n| is.get(n)).map(|r| &r.1);
        if old != now {
            let (old, now) = (words(old), words(now));
            differs.push(format!("{what:?} {k:?}: {old}, computed anew {now}"));
        }
    }
}

impl Store {
    /// What of the derived state is another one when all of it is computed anew: object, what it was, what it is then.
    /// None: it was not looked at, as something is still to be done, or objects that failed are being tried again: what hangs
    /// on them follows their answers. To look mends what differs: who judges much sees less of what follows.
    pub fn topology_differs(&mut self, now_ns: u64) -> Option<Vec<String>> {
        let failing = !self.topo.incomplete.is_empty()
            || self.lags.failed
            || !self.filters.parts_failed.is_empty()
            || self.filters.binds_failed;
        // a VRF that goes stays until its routes are gone, which each plan asks
        let moving = failing && !self.idle() || self.vrfs_dying();
        if self.phase == Phase::Detached || !self.synced || self.topology_open() || moving {
            return None;
        }
        let mut look = Look::Keep(Vec::new());
        self.derived(&mut look);
        self.indexes(&mut look, false);
        let unseen = self.unseen_members();
        self.topo.dirty.all = true;
        while self.topology_open() {
            self.refresh_topology(now_ns);
            self.refresh_paths(now_ns);
            self.catch_up_all(now_ns);
        }
        if let Look::Keep(before) = look {
            look = Look::Compare(before.into_iter(), Vec::new());
        }
        self.derived(&mut look);
        self.indexes(&mut look, true);
        match look {
            Look::Compare(_, mut differs) => {
                differs.extend(unseen);
                self.routes_differ::<V4>(&mut differs);
                self.routes_differ::<V6>(&mut differs);
                Some(differs)
            }
            Look::Keep(_) => None,
        }
    }

    /// Memberships of a bridge that their port has left and that are not among those that were wanted otherwise; and ids among these
    /// that are another port's by now.
    fn unseen_members(&self) -> Vec<String> {
        let mut all = Vec::new();
        for ((port, vid), id) in &self.member_ids {
            let link = self.link_of_port(*port);
            let master = link.map_or(0, |l| l.bridge_port.map_or(0, |_| l.master));
            let o = self.hw.members.get(*id);
            let left = o.is_some_and(|o| self.is_of_another(o, master));
            if left && !self.topo.moving.contains(&(*port, *id)) {
                all.push(format!("port {port} leaves by VLAN {vid}: not looked at"));
            }
        }
        for (port, id) in &self.topo.moving {
            if self.member_keys.get(id).is_none_or(|k| k.0 != *port) {
                all.push(format!("port {port} looks at membership {id}, not its own"));
            }
        }
        all
    }

    /// Prefixes that should be something else than is known of them.
    fn routes_differ<F: Fam>(&self, differs: &mut Vec<String>) {
        let fib = F::fib(&self.fibs);
        for e in 0..fib.entries.bound() {
            let x = fib.entries[e];
            if x.node != NONE && x.want != self.effective::<F>(e) {
                let (prefix, now) = (fib.cover.prefix(x.node), self.effective::<F>(e));
                differs.push(format!("{prefix:?}: {:?}, computed anew {now:?}", x.want));
            }
        }
    }

    /// How often everything was computed anew.
    pub fn wholes(&self) -> usize {
        self.topo.wholes
    }

    fn topology_open(&self) -> bool {
        self.topo.dirty.any() || !self.paths.dirty.is_empty() || self.behind()
    }

    /// The indexes: as they are, or from what they are of.
    fn indexes(&self, look: &mut Look, anew: bool) {
        let t = &self.topo;
        let mut of = Topo::default();
        let mut paths = Paths::default();
        let mut neighbours = BTreeSet::new();
        let mut behind = BTreeSet::new();
        let mut members = BTreeSet::new();
        let mut lacks = BTreeSet::new();
        if anew {
            for (i, r) in &self.links {
                of.within.insert((r.link.master, *i));
                of.above.insert((r.link.lower, *i));
                of.names.insert((r.link.name.clone(), *i));
                if let LinkKind::Bond(_) = r.link.kind {
                    of.bonds.insert(*i);
                }
                if let LinkKind::Vlan { vid } = r.link.kind {
                    of.vlans_on.insert((r.link.lower, vid, *i));
                }
            }
            let taps = self.vlans.values().filter(|v| v.0.tap != 0);
            of.taps
                .extend(taps.map(|(v, ..)| (v.tap, v.ifindex, v.vid)));
            let odd_ones = self.vlans.iter().filter(|(_, v)| odd(&v.0));
            of.odd_vlans.extend(odd_ones.map(|(k, _)| *k));
            for (id, o) in &self.paths.objects {
                paths.index_object(*id, None, Some(&o.0.kind));
            }
            for p in self.paths.ids() {
                if let Some(key) = &self.paths.sets[p].key {
                    paths.index_path(p, key, true);
                }
            }
            neighbours.extend(self.neighs.keys().map(|k| (k.1, k.0)));
            let stations = self.fdb.iter();
            members = self.groups.members_anew();
            lacks.extend(t.incomplete.iter().map(|(r, dev)| (*dev, *r)));
            behind.extend(stations.filter_map(|(k, r)| Some((r.ifindex()?, *k))));
        }
        look.set("lacks", if anew { &lacks } else { &t.lacks });
        let (t, p) = if anew {
            (&of, &paths)
        } else {
            (t, &self.paths)
        };
        let (n, f, m) = match anew {
            true => (&neighbours, &behind, &members),
            false => (&self.neighs_on, &self.fdb_behind, &self.groups.of_member),
        };
        look.set("is in", &t.within);
        look.set("is on", &t.above);
        look.set("VLAN interface", &t.vlans_on);
        look.set("TAP of a VLAN", &t.taps);
        look.set("odd VLAN", &t.odd_vlans);
        look.rows(
            What::Named("is called"),
            t.names.iter().map(|x| (x.clone(), &())),
        );
        look.set("bond", &t.bonds);
        let to = match anew {
            true => &self.filters.sending_anew(),
            false => &self.filters.sending,
        };
        look.set("filter to", to);
        let used_by = match anew {
            true => &self.filters.users_anew(),
            false => &self.filters.users,
        };
        look.set("filter uses", used_by);
        look.rows(What::Named("member of groups"), m.iter().map(|x| (*x, &())));
        look.map("paths over", &p.leading);
        look.set("object on", &p.objects_on);
        look.map("paths preferring", &p.preferring);
        look.set("neighbour on", n);
        look.set("station behind", f);
    }

    fn derived(&self, look: &mut Look) {
        each_class!(T => {
            let all = T::all(&self.hw);
            let ids = all.ids();
            let wants = ids.iter().filter_map(|id| Some((*id, all.get(*id)?.want.as_ref()?)));
            look.rows(What::Class(T::CLS), wants);
        });
        let t = &self.topo;
        look.map("reason", &t.reasons);
        look.map("bridge", &t.bridges);
        look.map("domain", &t.fid_of);
        look.map("domain of", &t.domain_of);
        look.map("interface", &t.rif_of);
        look.map("interface of", &t.if_of_rif);
        look.map("place", &t.routable);
        look.map("port of", &t.port_of);
        look.map("device of port", &t.if_of_port);
        look.map("ingress", &t.ingress);
        look.map("ingress reason", &self.ingress_reasons);
        look.map("group of bond", &self.lags.on);
        look.map("bond reason", &self.lags.reasons);
        look.map("group reason", &self.groups.reasons);
        look.set("hidden", &t.hidden);
        look.set("switching", &t.switching);
        look.set("moving", &t.rif_moving);
        look.set("loose", &t.loose);
        look.map("router", [(&(), &t.router_reason)]);
        let ids = self.paths.ids();
        let targets = ids.iter().map(|p| (*p, &self.paths.sets[*p].target));
        look.rows(What::Named("path"), targets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// What differs between two maps and two sets.
    fn differs(maps: [&[(u32, &'static str)]; 2], sets: [&[u32]; 2]) -> Vec<String> {
        let [was, is] = maps.map(|m| BTreeMap::from_iter(m.iter().copied()));
        let [had, has] = sets.map(|s| BTreeSet::from_iter(s.iter().copied()));
        let mut look = Look::Keep(Vec::new());
        look.map("name", &was);
        look.set("there", &had);
        let Look::Keep(kept) = look else {
            return Vec::new();
        };
        let mut look = Look::Compare(kept.into_iter(), Vec::new());
        look.map("name", &is);
        look.set("there", &has);
        match look {
            Look::Compare(_, differs) => differs,
            Look::Keep(_) => Vec::new(),
        }
    }

    #[test]
    fn rows_that_are_others_new_or_gone_differ() {
        let was = [(1, "a"), (2, "b"), (3, "c")];
        assert_eq!(differs([&was, &was], [&[5, 6], &[6, 5]]), [""; 0]);
        let is = [(1, "a"), (2, "x"), (4, "d")];
        let found = differs([&was, &is], [&[5, 6], &[6]]);
        let wanted = [
            r#"name 2: "b", computed anew "x""#,
            r#"name 3: "c", computed anew nothing"#,
            r#"name 4: nothing, computed anew "d""#,
            "there 5: (), computed anew nothing",
        ];
        assert_eq!(found, wanted);
        // what ends earlier, or goes on
        assert_eq!(differs([&was, &was[..2]], [&[], &[]]).len(), 1);
        assert_eq!(differs([&was[..2], &was], [&[], &[]]).len(), 1);
    }

    #[test]
    fn an_order_is_no_difference() {
        let mut look = Look::Keep(Vec::new());
        look.rows(What::Named("a"), [(1, &'a'), (2, &'b')].into_iter());
        let Look::Keep(kept) = look else { return };
        let mut look = Look::Compare(kept.into_iter(), Vec::new());
        look.rows(What::Named("a"), [(2, &'b'), (1, &'a')].into_iter());
        assert!(matches!(look, Look::Compare(_, differs) if differs.is_empty()));
    }
}
