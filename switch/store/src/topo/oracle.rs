//! The judge of what is computed step by step: everything derived is computed anew and must be what it was.

use crate::Store;
use crate::model::LinkKind;
use crate::paths::Paths;
use crate::sync::Phase;
use crate::topo::Topo;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

type Derived = BTreeMap<String, String>;

fn each<K: Debug, V: Debug>(out: &mut Derived, what: &str, all: impl IntoIterator<Item = (K, V)>) {
    for (k, v) in all {
        out.insert(format!("{what} {k:?}"), format!("{v:?}"));
    }
}

impl Store {
    /// What of the derived state is another one when all of it is computed anew: object, what it was, what it is then.
    /// Empty where something is still to be looked at, or where objects that failed are being tried again: what hangs on
    /// them follows their answers.
    pub fn topology_differs(&mut self, now_ns: u64) -> Vec<String> {
        let failing = self.topo.degraded
            || self.lags.failed
            || self.filters.parts_failed
            || self.filters.binds_failed;
        // a VRF that goes stays until its routes are gone, which each plan asks
        let moving = failing && !self.idle() || self.vrfs_dying();
        if self.phase == Phase::Detached || !self.synced || self.topology_open() || moving {
            return Vec::new();
        }
        let mut before = self.derived();
        self.indexes(&mut before, false);
        self.topo.dirty.all = true;
        while self.topology_open() {
            self.refresh_topology(now_ns);
            self.refresh_paths(now_ns);
        }
        let mut after = self.derived();
        self.indexes(&mut after, true);
        let none = String::from("nothing");
        let keys = before
            .keys()
            .chain(after.keys().filter(|k| !before.contains_key(*k)));
        keys.filter_map(|k| {
            let (was, is) = (
                before.get(k).unwrap_or(&none),
                after.get(k).unwrap_or(&none),
            );
            (was != is).then(|| format!("{k}: {was}, computed anew {is}"))
        })
        .collect()
    }

    fn topology_open(&self) -> bool {
        self.topo.dirty.any() || !self.paths.dirty.is_empty()
    }

    /// The indexes: as they are, or from what they are of.
    fn indexes(&self, out: &mut Derived, anew: bool) {
        let t = &self.topo;
        let mut of = Topo::default();
        let mut paths = Paths::default();
        let mut neighbours = BTreeSet::new();
        let mut behind = BTreeSet::new();
        if anew {
            for (i, r) in &self.links {
                of.within.insert((r.link.master, *i));
                of.above.insert((r.link.lower, *i));
                if let LinkKind::Vlan { vid } = r.link.kind {
                    of.vlans_on.insert((r.link.lower, vid, *i));
                }
            }
            for p in self.paths.ids() {
                if let Some(key) = &self.paths.sets[p].key {
                    paths.index_path(p, key, true);
                }
            }
            neighbours.extend(self.neighs.keys().map(|k| (k.1, k.0)));
            let stations = self.fdb.iter();
            behind.extend(stations.filter_map(|(k, r)| Some((r.ifindex()?, *k))));
        }
        let (t, p) = if anew {
            (&of, &paths)
        } else {
            (t, &self.paths)
        };
        let (n, f) = match anew {
            true => (&neighbours, &behind),
            false => (&self.neighs_on, &self.fdb_behind),
        };
        each(out, "is in", t.within.iter().map(|x| (x, ())));
        each(out, "is on", t.above.iter().map(|x| (x, ())));
        each(out, "VLAN interface", t.vlans_on.iter().map(|x| (x, ())));
        each(out, "paths over", &p.leading);
        each(out, "paths preferring", &p.preferring);
        each(out, "neighbour on", n.iter().map(|x| (x, ())));
        each(out, "station behind", f.iter().map(|x| (x, ())));
    }

    fn derived(&self) -> Derived {
        let mut out = Derived::new();
        macro_rules! wanted { ($($f:ident),*) => { $(
            let ids = self.hw.$f.ids();
            let wants = ids.iter().filter_map(|id| Some((*id, self.hw.$f.get(*id)?.want.as_ref()?)));
            each(&mut out, stringify!($f), wants);
        )* } }
        wanted!(
            lags, ports, vlans, members, vrfs, rifs, nexthops, nhgs, neighs, fdb, mdb
        );
        wanted!(
            acl_tables,
            acl_counters,
            policers,
            mirrors,
            acl_entries,
            acl_binds
        );
        let t = &self.topo;
        each(&mut out, "reason", &t.reasons);
        each(&mut out, "bridge", &t.bridges);
        each(&mut out, "domain", &t.fid_of);
        each(&mut out, "domain of", &t.domain_of);
        each(&mut out, "interface", &t.rif_of);
        each(&mut out, "interface of", &t.if_of_rif);
        each(&mut out, "place", &t.routable);
        each(&mut out, "port of", &t.port_of);
        each(&mut out, "device of port", &t.if_of_port);
        each(&mut out, "ingress", &t.ingress);
        each(&mut out, "ingress reason", &self.ingress_reasons);
        let sets: [(&str, String); 6] = [
            ("hidden", format!("{:?}", t.hidden)),
            ("switching", format!("{:?}", t.switching)),
            ("moving", format!("{:?}", t.rif_moving)),
            ("loose", format!("{:?}", t.loose)),
            ("odd VLANs", format!("{:?}", t.odd_vlans)),
            ("router", t.router_reason.clone()),
        ];
        out.extend(sets.map(|(k, v)| (k.to_owned(), v)));
        let paths = self.paths.ids();
        let targets = paths.iter().map(|p| (*p, &self.paths.sets[*p].target));
        each(&mut out, "path", targets);
        out
    }
}
