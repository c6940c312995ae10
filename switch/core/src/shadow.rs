//! What the core remembers besides what the store keeps of the sources' objects: which FDB entries are the chip's learning,
//! and where nothing learned may stay.

use std::collections::HashSet;

use tandem_store::Store;
use tandem_store::model::{
    BR_STATE_FORWARDING, BR_STATE_LEARNING, Event, FdbKey, FdbKind, Key, LinkKind, Object,
};

use crate::source::Write;
use crate::view::{Pin, SharedView};

fn aged(ifindex: u32, key: &FdbKey) -> Write {
    Write::FdbAged {
        ifindex,
        mac: key.mac,
        vlan: key.vlan,
    }
}

/// The memory.
#[derive(Debug, Default)]
pub struct Shadow {
    /// The chip's `extern_learn` entries.
    pub learned: HashSet<FdbKey>,
    /// Ports without link, bridges that are down: what was learned there has been forgotten.
    dead: HashSet<u32>,
    /// Bridges that learn a limited number of stations: the kernel learns there, for it counts no others than its own.
    limited: HashSet<u32>,
    /// Bridge ports whose state lets them learn. It can be set by hand while the bridge is down, and then they do.
    listening: HashSet<u32>,
    /// An earlier version of the daemon had these ports, and turned `learning` off at all of them.
    pub relearn: bool,
    /// A dump has shown all ports where that is so: once it is written, it is done.
    pub relearned: bool,
    /// A front-panel port came (back): its programs are to be looked after.
    pub appeared: bool,
}

impl Shadow {
    /// Knows nothing; `relearn`: `learning` is to be turned on again at the ports.
    #[must_use]
    pub fn new(relearn: bool) -> Shadow {
        Shadow {
            relearn,
            ..Shadow::default()
        }
    }

    /// Takes note of an event before the store gets it. `writes`: what it asks to be written back.
    pub fn note(
        &mut self,
        event: &Event,
        store: &Store,
        view: &SharedView,
        writes: &mut Vec<Write>,
    ) {
        match event {
            Event::Upsert(source, Object::Link(l)) => {
                // the master may be a bond or VRF: only a bridge port has bridge port settings
                let in_bridge = if l.bridge_port.is_some() { l.master } else { 0 };
                let ours = {
                    let mut v = view.lock();
                    v.set_owner(l.ifindex, Some(*source));
                    if let LinkKind::Bond(b) = l.kind {
                        v.add_group(b.lag, l.ifindex);
                    }
                    v.set_bridge(l.ifindex, in_bridge);
                    v.port_of(l.ifindex).is_some()
                };
                // a locked port stays as it is: there the flag is what keeps strangers out
                if let Some(b) = l.bridge_port.filter(|_| ours && self.relearn)
                    && !b.learning
                    && !b.locked
                {
                    writes.push(Write::Learning {
                        ifindex: l.ifindex,
                        on: true,
                    });
                }
                match l.bridge_port {
                    Some(b) if matches!(b.state, BR_STATE_LEARNING | BR_STATE_FORWARDING) => {
                        self.listening.insert(l.ifindex);
                    }
                    _ => {
                        self.listening.remove(&l.ifindex);
                    }
                }
                // a bond that the chip hasn't any more may have stations from when it had
                if ours || l.bridge_port.is_some() {
                    self.port_lives(l.ifindex, l.admin_up && l.carrier, store, writes);
                }
                self.appeared |= ours && store.link(l.ifindex).is_none();
                if let LinkKind::Bridge(b) = l.kind {
                    self.bridge_lives(l.ifindex, l.admin_up, store, writes);
                    self.limit_learning(l.ifindex, b.learning_limited, store, view, writes);
                }
            }
            Event::Remove(_, Key::Link(i)) => {
                self.dead.remove(i);
                self.limited.remove(i);
                self.listening.remove(i);
                let mut v = view.lock();
                v.set_bridge(*i, 0);
                v.set_owner(*i, None);
            }
            Event::Upsert(_, Object::Fdb(f)) => {
                let key = FdbKey {
                    bridge: f.bridge,
                    vlan: f.vlan,
                    mac: f.mac,
                };
                match f.kind {
                    FdbKind::ExternLearn if view.lock().is_own(&key) => {
                        self.learned.insert(key);
                        view.lock().unpin(&key);
                        let bridge =
                            self.dead.contains(&f.bridge) && !self.listening.contains(&f.ifindex);
                        let limited = self.limited.contains(&f.bridge);
                        if bridge || limited || self.dead.contains(&f.ifindex) {
                            // the chip learned it just before the port or the bridge died, or the limit came
                            writes.push(aged(f.ifindex, &key));
                        }
                    }
                    // the bridge has taken over what was the chip's, or learned what the chip has no room for
                    FdbKind::Dynamic | FdbKind::Locked => {
                        self.learned.remove(&key);
                        view.lock().unpin(&key);
                        if self.limited.contains(&f.bridge) {
                            view.lock().unset_own(&key);
                        }
                    }
                    FdbKind::ExternLearn
                    | FdbKind::Local
                    | FdbKind::Static
                    | FdbKind::Blackhole => {
                        self.learned.remove(&key);
                        let pin = match f.kind {
                            FdbKind::Static if !f.sticky => Pin::Moves,
                            FdbKind::ExternLearn if !f.sticky => Pin::Yields,
                            _ => Pin::Fixed,
                        };
                        view.lock().pin(key, pin, f.ifindex);
                    }
                }
            }
            // With a port's VLAN goes what was learned there (net/bridge/br_vlan.c `nbp_vlan_delete`), but not what is
            // `extern_learn`: ours. One by one the kernel refuses it: the port is not in that VLAN any more.
            Event::Remove(_, Key::BridgeVlan(ifindex, vlan)) => {
                let (ifindex, vlan) = (*ifindex, *vlan);
                let mut there = self.learned.iter().filter(|k| k.vlan == vlan);
                if there.any(|k| self.place(k, store) == Some(ifindex)) {
                    writes.push(Write::FdbFlush { ifindex, vlan });
                }
            }
            Event::Remove(_, Key::Fdb(k)) => {
                self.learned.remove(k);
                view.lock().unpin(k);
                if self.limited.contains(&k.bridge) {
                    view.lock().unset_own(k);
                }
            }
            _ => {}
        }
    }

    /// The chip's `extern_learn` entries, and where each leads to.
    fn places<'a>(&'a self, store: &'a Store) -> impl Iterator<Item = (&'a FdbKey, u32)> {
        let place = |k| Some((k, store.fdb_entry(k)?.ifindex));
        self.learned.iter().filter_map(place)
    }

    /// Where such an entry leads to.
    #[must_use]
    pub fn place(&self, key: &FdbKey, store: &Store) -> Option<u32> {
        let entry = store.fdb_entry(key).filter(|_| self.learned.contains(key));
        entry.map(|e| e.ifindex)
    }

    /// Every source has told all that it has.
    pub fn all_told(&mut self) {
        self.relearned |= std::mem::take(&mut self.relearn);
    }

    /// A sync ended, and the store has swept what it did not confirm.
    pub fn swept(&mut self, store: &Store, view: &SharedView) {
        let mut view = view.lock();
        let lives = |i: &u32| store.link(*i).is_some();
        view.retain_owners(lives);
        for gone in [&mut self.dead, &mut self.limited, &mut self.listening] {
            gone.retain(lives);
        }
        let said = |k: &FdbKey| store.fdb_entry(k).is_some();
        self.learned.retain(said);
        view.retain_pins(said);
    }

    /// What the chip learned behind a port ends with the port's life, as the kernel's own learning
    /// does (net/bridge/br_stp_if.c `br_stp_disable_port`). The kernel keeps `extern_learn` entries:
    /// they are ours to remove, and the chip's go with them.
    fn port_lives(&mut self, ifindex: u32, alive: bool, store: &Store, writes: &mut Vec<Write>) {
        if alive {
            self.dead.remove(&ifindex);
        } else if self.dead.insert(ifindex) {
            let behind = self.places(store).filter(|(_, at)| *at == ifindex);
            writes.extend(behind.map(|(key, _)| aged(ifindex, key)));
        }
    }

    /// A bridge that is taken down disables its ports, and so forgets what it has learned (net/bridge/br_stp_if.c
    /// `br_stp_disable_port`), but not what is `extern_learn`: ours.
    fn bridge_lives(&mut self, ifindex: u32, alive: bool, store: &Store, writes: &mut Vec<Write>) {
        if alive {
            self.dead.remove(&ifindex);
        } else if self.dead.insert(ifindex) {
            let inside = self.places(store).filter(|(k, _)| k.bridge == ifindex);
            writes.extend(inside.map(|(key, at)| aged(at, key)));
        }
    }

    /// Where a limit comes, what the chip has learned before is learned again, by the kernel, which counts it. Whatever is
    /// written there as `extern_learn` from now on is somebody else's.
    fn limit_learning(
        &mut self,
        bridge: u32,
        limited: bool,
        store: &Store,
        view: &SharedView,
        writes: &mut Vec<Write>,
    ) {
        if !limited {
            self.limited.remove(&bridge);
        } else if self.limited.insert(bridge) {
            let inside = self.places(store).filter(|(k, _)| k.bridge == bridge);
            writes.extend(inside.map(|(key, at)| aged(at, key)));
            let learned = &self.learned;
            let keep = |k: &FdbKey| k.bridge != bridge || learned.contains(k);
            view.lock().retain_own(keep);
        }
    }

    /// The kernel learns in this bridge, and not the chip.
    pub fn kernel_learns(&self, bridge: u32) -> bool {
        self.limited.contains(&bridge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_store::Config;
    use tandem_store::model::{BridgeInfo, BridgePort, FdbEntry, KindSet, Link, SourceId};

    const SRC: SourceId = SourceId::NETLINK;

    /// A station behind a port of bridge 50 that the chip has learned.
    fn learned_at(ifindex: u32, vlan: u16, n: u8) -> FdbEntry {
        FdbEntry {
            bridge: 50,
            vlan,
            mac: [2, 0, 0, 0, 0, n],
            ifindex,
            kind: FdbKind::ExternLearn,
            sticky: false,
        }
    }

    fn key_of(e: &FdbEntry) -> FdbKey {
        FdbKey {
            bridge: e.bridge,
            vlan: e.vlan,
            mac: e.mac,
        }
    }

    fn link(ifindex: u32, kind: LinkKind, port: Option<u8>) -> Link {
        Link {
            ifindex,
            kind,
            master: if port.is_some() { 50 } else { 0 },
            admin_up: port.is_some(),
            carrier: true,
            bridge_port: port.map(|state| BridgePort {
                state,
                ..Default::default()
            }),
            name: String::new(),
            lower: 0,
            promiscuous: false,
            mtu: 1500,
            mac: [0; 6],
            bond_active: false,
            mc_forwarding: false,
        }
    }

    /// As the core does it.
    #[derive(Default)]
    struct Rig {
        shadow: Shadow,
        view: SharedView,
        store: Option<Store>,
    }

    impl Rig {
        fn place(&self, e: &FdbEntry) -> Option<u32> {
            self.shadow.place(&key_of(e), self.store.as_ref()?)
        }

        fn note(&mut self, event: &Event) -> Vec<Write> {
            let mut writes = Vec::new();
            let store = self
                .store
                .get_or_insert_with(|| Store::new(Config::default()));
            self.shadow.note(event, store, &self.view, &mut writes);
            store.apply(event.clone(), 0);
            if matches!(event, Event::EndSync(_)) {
                self.shadow.swept(store, &self.view);
            }
            writes
        }
    }

    #[test]
    fn a_sync_sweeps_what_its_own_source_has_said() {
        let (mut rig, other) = (Rig::default(), SourceId(7));
        let mut note = |event: &Event| rig.note(event);
        let swp = |ifindex| Object::Link(link(ifindex, LinkKind::Swp { port: 1 }, None));
        for (source, ifindexes) in [(SRC, [5, 6]), (other, [8, 9])] {
            note(&Event::BeginSync(source, KindSet::ALL));
            for i in ifindexes {
                note(&Event::Upsert(source, swp(i)));
            }
            note(&Event::EndSync(source));
        }
        note(&Event::BeginSync(other, KindSet::ALL));
        note(&Event::BeginSync(SRC, KindSet::ALL));
        note(&Event::Upsert(SRC, swp(5)));
        note(&Event::Upsert(other, swp(8)));
        note(&Event::EndSync(SRC));
        note(&Event::EndSync(other));
        let owners = [5, 6, 8, 9].map(|i| rig.view.lock().owner(i));
        assert_eq!(owners, [Some(SRC), None, Some(other), None]);
    }

    /// What is not confirmed is swept with the mark that it was learned, or set by somebody.
    #[test]
    fn a_sync_sweeps_marks_of_stations() {
        let mut rig = Rig::default();
        rig.view.lock().add_port(1, 7);
        let all: Vec<FdbEntry> = (1..=4).map(|n| learned_at(7, 0, n)).collect();
        for e in &all[..2] {
            rig.view.lock().set_own(key_of(e));
        }
        let bridge = Object::Link(link(50, LinkKind::Bridge(BridgeInfo::default()), None));
        for confirmed in [&all[..], &[all[0], all[2]]] {
            rig.note(&Event::BeginSync(SRC, KindSet::ALL));
            rig.note(&Event::Upsert(SRC, bridge.clone()));
            for e in confirmed {
                rig.note(&Event::Upsert(SRC, Object::Fdb(*e)));
            }
            rig.note(&Event::EndSync(SRC));
        }
        let there = |e: &FdbEntry| (rig.place(e), rig.view.lock().is_pinned(&key_of(e)));
        let found: Vec<_> = all.iter().map(there).collect();
        let wanted = [(Some(7), false), (None, false), (None, true), (None, false)];
        assert_eq!(found, wanted);
    }

    /// `fdb_max_learned`: the kernel counts what it has learned itself. What the chip has learned before goes, and what other
    /// programs write stays theirs, though the chip had learned that station once.
    #[test]
    fn where_a_limit_comes_the_kernel_learns_anew() {
        let mut rig = Rig::default();
        let view = rig.view.clone();
        view.lock().add_port(1, 7);
        let (known, flushed) = (learned_at(7, 0, 1), learned_at(7, 0, 2));
        let bridge = |learning_limited| {
            let mut l = link(
                50,
                LinkKind::Bridge(BridgeInfo {
                    learning_limited,
                    ..Default::default()
                }),
                None,
            );
            l.admin_up = true;
            Event::Upsert(SRC, Object::Link(l))
        };
        let mut note = |event: &Event| (rig.note(event), rig.shadow.kernel_learns(50));
        note(&bridge(false));
        for e in [known, flushed] {
            view.lock().set_own(key_of(&e));
            note(&Event::Upsert(SRC, Object::Fdb(e)));
        }
        note(&Event::Remove(SRC, Key::Fdb(key_of(&flushed))));
        let gone = |e: &FdbEntry| vec![aged(e.ifindex, &key_of(e))];
        assert_eq!(note(&bridge(true)), (gone(&known), true));
        assert_eq!(note(&bridge(true)), (vec![], true));
        // the echo of what was learned just before
        let echo = Event::Upsert(SRC, Object::Fdb(known));
        assert_eq!(note(&echo).0, gone(&known));
        note(&Event::Remove(SRC, Key::Fdb(key_of(&known))));
        for e in [known, flushed] {
            assert_eq!(note(&Event::Upsert(SRC, Object::Fdb(e))).0, []);
            assert!(view.lock().is_pinned(&key_of(&e)));
        }
        assert_eq!(note(&bridge(false)), (vec![], false));
    }

    /// A port of a bridge that is down learns all the same if its state was set by hand, in the kernel as in the chip.
    #[test]
    fn what_is_learned_in_a_bridge_that_is_down_stays_if_its_port_learns() {
        for (state, aged) in [(0, 1), (1, 1), (BR_STATE_LEARNING, 0), (3, 0)] {
            let (mut rig, mut writes) = (Rig::default(), Vec::new());
            rig.view.lock().add_port(1, 7);
            let learned = learned_at(7, 0, 9);
            rig.view.lock().set_own(key_of(&learned));
            for object in [
                Object::Link(link(50, LinkKind::Bridge(BridgeInfo::default()), None)),
                Object::Link(link(7, LinkKind::Swp { port: 1 }, Some(state))),
                Object::Fdb(learned),
            ] {
                writes.extend(rig.note(&Event::Upsert(SRC, object)));
            }
            assert_eq!(writes.len(), aged, "state {state}");
        }
    }

    #[test]
    fn with_a_vlan_of_a_port_goes_what_was_learned_there() {
        let (mut rig, mut writes) = (Rig::default(), Vec::new());
        for (vlan, ifindex) in [(10, 7), (20, 7), (10, 8)] {
            let learned = learned_at(ifindex, vlan, ifindex as u8);
            rig.view.lock().set_own(key_of(&learned));
            writes.extend(rig.note(&Event::Upsert(SRC, Object::Fdb(learned))));
        }
        assert!(writes.is_empty());
        let gone = Event::Remove(SRC, Key::BridgeVlan(7, 10));
        writes.extend(rig.note(&gone));
        let want = Write::FdbFlush {
            ifindex: 7,
            vlan: 10,
        };
        assert_eq!(writes, [want]);
        // of a VLAN where nobody was there is nothing to flush
        let gone = Event::Remove(SRC, Key::BridgeVlan(7, 30));
        writes.extend(rig.note(&gone));
        assert_eq!(writes.len(), 1);
    }
}
