//! What the core remembers of the source's objects for its own upkeep (the store keeps the rest):
//! names, bridge membership, who is a neighbour behind which MAC, which FDB entries are learned.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use tandem_store::model::{
    BR_STATE_FORWARDING, BR_STATE_LEARNING, Event, FdbKey, FdbKind, Key, KindSet, LinkKind, Object,
    SourceId, nud,
};

use crate::source::Write;
use crate::view::{Pin, SharedView};

/// A netdev.
#[derive(Clone, Debug)]
pub struct LinkInfo {
    /// Name.
    pub name: String,
    /// Bridge or other master; 0 = none.
    pub master: u32,
    /// Bytes of L3 packet.
    pub mtu: u32,
    /// Address.
    pub mac: [u8; 6],
    /// IFF_UP.
    pub admin_up: bool,
    /// It is a bridge.
    pub bridge: bool,
    generation: u32,
}

/// A neighbour.
#[derive(Clone, Copy, Debug)]
pub struct NeighInfo {
    /// Link-layer address.
    pub mac: [u8; 6],
    /// `nud::*`
    pub state: u16,
    generation: u32,
}

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
    /// By interface index.
    pub links: HashMap<u32, LinkInfo>,
    /// By interface index and address.
    pub neighbours: HashMap<(u32, IpAddr), NeighInfo>,
    /// The chip's `extern_learn` entries: the device, with the generation.
    pub learned: HashMap<FdbKey, (u32, u32)>,
    pinned: HashMap<FdbKey, u32>,
    /// Ports without link, bridges that are down: what was learned there has been forgotten.
    dead: HashSet<u32>,
    /// Bridges that learn a limited number of stations: the kernel learns there, for it counts no others than its own.
    limited: HashSet<u32>,
    /// Bridge ports whose state lets them learn. It can be set by hand while the bridge is down, and then they do.
    listening: HashSet<u32>,
    /// An earlier version of switchd had these ports, and turned `learning` off at all of them.
    pub relearn: bool,
    /// A dump has shown all ports where that is so: once it is written, it is done.
    pub relearned: bool,
    /// A front-panel port came (back): its programs are to be looked after.
    pub appeared: bool,
    /// By source: the number of its latest sync, and what that one is of.
    syncs: HashMap<SourceId, (u32, KindSet)>,
}

/// In what a sync has confirmed: the source in the highest eight bits, the number of the sync below.
fn source_of(mark: u32) -> u8 {
    (mark >> 24) as u8
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
    pub fn note(&mut self, event: &Event, view: &SharedView, writes: &mut Vec<Write>) {
        let mark = match event {
            Event::Upsert(source, _) => self.mark(*source),
            _ => 0,
        };
        match event {
            Event::Upsert(source, Object::Link(l)) => {
                let bridge = matches!(l.kind, LinkKind::Bridge(_));
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
                    self.port_lives(l.ifindex, l.admin_up && l.carrier, writes);
                }
                self.appeared |= ours && !self.links.contains_key(&l.ifindex);
                if let LinkKind::Bridge(b) = l.kind {
                    self.bridge_lives(l.ifindex, l.admin_up, writes);
                    self.limit_learning(l.ifindex, b.learning_limited, view, writes);
                }
                self.links.insert(
                    l.ifindex,
                    LinkInfo {
                        name: l.name.clone(),
                        master: l.master,
                        mtu: l.mtu,
                        mac: l.mac,
                        admin_up: l.admin_up,
                        bridge,
                        generation: mark,
                    },
                );
            }
            Event::Remove(_, Key::Link(i)) => {
                self.links.remove(i);
                self.dead.remove(i);
                self.limited.remove(i);
                self.listening.remove(i);
                let mut v = view.lock();
                v.set_bridge(*i, 0);
                v.set_owner(*i, None);
            }
            Event::Upsert(_, Object::Neigh(n)) => {
                self.neighbours.insert(
                    (n.ifindex, n.addr),
                    NeighInfo {
                        mac: n.mac,
                        state: n.state,
                        generation: mark,
                    },
                );
            }
            Event::Remove(_, Key::Neigh(i, a)) => {
                self.neighbours.remove(&(*i, *a));
            }
            Event::Upsert(_, Object::Fdb(f)) => {
                let key = FdbKey {
                    bridge: f.bridge,
                    vlan: f.vlan,
                    mac: f.mac,
                };
                match f.kind {
                    FdbKind::ExternLearn if view.lock().is_own(&key) => {
                        self.learned.insert(key, (f.ifindex, mark));
                        self.unpin(key, view);
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
                        self.unpin(key, view);
                        if self.limited.contains(&f.bridge) {
                            view.lock().unset_own(&key);
                        }
                    }
                    FdbKind::ExternLearn
                    | FdbKind::Local
                    | FdbKind::Static
                    | FdbKind::Blackhole => {
                        self.learned.remove(&key);
                        self.pinned.insert(key, mark);
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
                let mut places = self.learned.iter().map(|(k, l)| (l.0, k.vlan));
                if places.any(|p| p == (ifindex, vlan)) {
                    writes.push(Write::FdbFlush { ifindex, vlan });
                }
            }
            Event::Remove(_, Key::Fdb(k)) => {
                self.learned.remove(k);
                self.unpin(*k, view);
                if self.limited.contains(&k.bridge) {
                    view.lock().unset_own(k);
                }
            }
            Event::BeginSync(source, kinds) => {
                let sync = self.syncs.entry(*source).or_insert((0, KindSet(0)));
                *sync = (sync.0.wrapping_add(1) & 0xff_ffff, *kinds);
            }
            Event::EndSync(source) => self.sweep(*source, view),
            _ => {}
        }
    }

    /// What the latest sync of a source confirms carries this.
    fn mark(&self, source: SourceId) -> u32 {
        let number = self.syncs.get(&source).map_or(0, |s| s.0);
        u32::from(source.0) << 24 | number
    }

    /// Every source has told all that it has.
    pub fn all_told(&mut self) {
        self.relearned |= std::mem::take(&mut self.relearn);
    }

    /// A sync ended: what of its source and its kinds it did not confirm is gone.
    fn sweep(&mut self, source: SourceId, view: &SharedView) {
        let now = self.mark(source);
        let stays = |mark: u32| mark == now || source_of(mark) != source.0;
        let kinds = match self.syncs.get_mut(&source) {
            Some(sync) => std::mem::replace(&mut sync.1, KindSet(0)),
            None => return,
        };
        if kinds.contains(KindSet::LINK) {
            self.links.retain(|i, l| {
                let stays = stays(l.generation);
                if !stays {
                    view.lock().set_owner(*i, None);
                }
                stays
            });
            for gone in [&mut self.dead, &mut self.limited, &mut self.listening] {
                gone.retain(|i| self.links.contains_key(i));
            }
        }
        if kinds.contains(KindSet::NEIGH) {
            self.neighbours.retain(|_, n| stays(n.generation));
        }
        if !kinds.contains(KindSet::FDB) {
            return;
        }
        self.learned.retain(|_, l| stays(l.1));
        let gone: Vec<_> = self
            .pinned
            .iter()
            .filter(|(_, g)| !stays(**g))
            .map(|(k, _)| *k)
            .collect();
        for key in gone {
            self.unpin(key, view);
        }
    }

    /// What the chip learned behind a port ends with the port's life, as the kernel's own learning
    /// does (net/bridge/br_stp_if.c `br_stp_disable_port`). The kernel keeps `extern_learn` entries:
    /// they are ours to remove, and the chip's go with them.
    fn port_lives(&mut self, ifindex: u32, alive: bool, writes: &mut Vec<Write>) {
        if alive {
            self.dead.remove(&ifindex);
        } else if self.dead.insert(ifindex) {
            let behind = self.learned.iter().filter(|(_, l)| l.0 == ifindex);
            writes.extend(behind.map(|(key, _)| aged(ifindex, key)));
        }
    }

    /// A bridge that is taken down disables its ports, and so forgets what it has learned (net/bridge/br_stp_if.c
    /// `br_stp_disable_port`), but not what is `extern_learn`: ours.
    fn bridge_lives(&mut self, ifindex: u32, alive: bool, writes: &mut Vec<Write>) {
        if alive {
            self.dead.remove(&ifindex);
        } else if self.dead.insert(ifindex) {
            let inside = self.learned.iter().filter(|(k, _)| k.bridge == ifindex);
            writes.extend(inside.map(|(key, l)| aged(l.0, key)));
        }
    }

    /// Where a limit comes, what the chip has learned before is learned again, by the kernel, which counts it. Whatever is
    /// written there as `extern_learn` from now on is somebody else's.
    fn limit_learning(
        &mut self,
        bridge: u32,
        limited: bool,
        view: &SharedView,
        writes: &mut Vec<Write>,
    ) {
        if !limited {
            self.limited.remove(&bridge);
        } else if self.limited.insert(bridge) {
            let learned = &self.learned;
            let inside = learned.iter().filter(|(k, _)| k.bridge == bridge);
            writes.extend(inside.map(|(key, l)| aged(l.0, key)));
            let keep = |k: &FdbKey| k.bridge != bridge || learned.contains_key(k);
            view.lock().retain_own(keep);
        }
    }

    /// The kernel learns in this bridge, and not the chip.
    pub fn kernel_learns(&self, bridge: u32) -> bool {
        self.limited.contains(&bridge)
    }

    fn unpin(&mut self, key: FdbKey, view: &SharedView) {
        if self.pinned.remove(&key).is_some() {
            view.lock().unpin(&key);
        }
    }

    /// A netdev's name, or its number.
    pub fn name(&self, ifindex: u32) -> String {
        self.links
            .get(&ifindex)
            .map_or_else(|| format!("if{ifindex}"), |l| l.name.clone())
    }

    /// Neighbours of an interface that have this link-layer address and were not confirmed lately.
    pub fn stale_behind(&self, ifindex: u32, mac: [u8; 6]) -> Vec<IpAddr> {
        self.neighbours
            .iter()
            .filter(|((i, _), n)| *i == ifindex && n.mac == mac && n.state & nud::STALE != 0)
            .map(|((_, a), _)| *a)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_store::model::{BridgeInfo, BridgePort, FdbEntry, Link};

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

    #[test]
    fn a_sync_sweeps_what_its_own_source_has_said() {
        let (view, mut shadow) = (SharedView::default(), Shadow::default());
        let other = SourceId(7);
        let mut note = |event: &Event| shadow.note(event, &view, &mut Vec::new());
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
        let mut left: Vec<u32> = shadow.links.keys().copied().collect();
        left.sort_unstable();
        assert_eq!(left, [5, 8]);
        let owners = [5, 6, 8, 9].map(|i| view.lock().owner(i));
        assert_eq!(owners, [Some(SRC), None, Some(other), None]);
    }

    /// `fdb_max_learned`: the kernel counts what it has learned itself. What the chip has learned before goes, and what other
    /// programs write stays theirs, though the chip had learned that station once.
    #[test]
    fn where_a_limit_comes_the_kernel_learns_anew() {
        let (view, mut shadow) = (SharedView::default(), Shadow::default());
        let mut writes = Vec::new();
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
        let mut note = |event: &Event| {
            writes.clear();
            shadow.note(event, &view, &mut writes);
            (writes.clone(), shadow.kernel_learns(50))
        };
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
            let (view, mut shadow) = (SharedView::default(), Shadow::default());
            let mut writes = Vec::new();
            view.lock().add_port(1, 7);
            let learned = learned_at(7, 0, 9);
            view.lock().set_own(key_of(&learned));
            for object in [
                Object::Link(link(50, LinkKind::Bridge(BridgeInfo::default()), None)),
                Object::Link(link(7, LinkKind::Swp { port: 1 }, Some(state))),
                Object::Fdb(learned),
            ] {
                shadow.note(&Event::Upsert(SRC, object), &view, &mut writes);
            }
            assert_eq!(writes.len(), aged, "state {state}");
        }
    }

    #[test]
    fn with_a_vlan_of_a_port_goes_what_was_learned_there() {
        let (view, mut shadow) = (SharedView::default(), Shadow::default());
        let mut writes = Vec::new();
        for (vlan, ifindex) in [(10, 7), (20, 7), (10, 8)] {
            let learned = learned_at(ifindex, vlan, ifindex as u8);
            view.lock().set_own(key_of(&learned));
            let event = Event::Upsert(SRC, Object::Fdb(learned));
            shadow.note(&event, &view, &mut writes);
        }
        assert!(writes.is_empty());
        let gone = Event::Remove(SRC, Key::BridgeVlan(7, 10));
        shadow.note(&gone, &view, &mut writes);
        let want = Write::FdbFlush {
            ifindex: 7,
            vlan: 10,
        };
        assert_eq!(writes, [want]);
        // of a VLAN where nobody was there is nothing to flush
        let gone = Event::Remove(SRC, Key::BridgeVlan(7, 30));
        shadow.note(&gone, &view, &mut writes);
        assert_eq!(writes.len(), 1);
    }
}
