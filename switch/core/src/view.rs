//! What the io thread needs to know of the core's world: which bridge a forwarding domain is, which
//! ports are in it, which FDB entries are not the chip's to change.
//!
//! Small and under one lock: the core changes it on link, FDB and member changes, the io thread
//! reads it once per batch of events.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tandem_abi::raw::TND_VID_ANY;
use tandem_sal::Event;
use tandem_store::model::{FdbKey, SourceId};

use crate::source::Write;

/// A port as the io thread sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PortView {
    ifindex: u32,
    /// The bridge it is in by the kernel's last word; 0 = none.
    bridge: u32,
    /// The domains that the chip was last told for it: the VID, and the bridge that this stands for.
    domains: HashMap<u16, (u16, u32)>,
    /// The domain of each VID.
    vids: HashMap<u16, u16>,
}

/// Whose an entry is that the chip did not learn, and what it does when its station turns up elsewhere, as in the kernel
/// (net/bridge/br_fdb.c `br_fdb_update`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// It stays: local, sticky, a black hole.
    Fixed,
    /// It moves, and stays somebody's: static.
    Moves,
    /// It moves, and is the bridge's (here: the chip's) from then on: `extern_learn` of another program.
    Yields,
}

/// The shared knowledge.
#[derive(Debug, Default)]
pub struct View {
    ports: HashMap<u16, PortView>,
    by_ifindex: HashMap<u32, u16>,
    /// Whose each netdev is.
    owners: HashMap<u32, SourceId>,
    /// Number of front-panel ports.
    front: u16,
    /// Entries that a person or another program set, not overwritten by learning, and the netdev that each leads to.
    pinned: HashMap<FdbKey, (Pin, u32)>,
    /// Addresses that the chip has learned. What the kernel then says of them is the echo of our own
    /// write; an `extern_learn` entry of any other address is somebody else's. Marked before the
    /// write, so that no echo can come first; an address that was aged is forgotten.
    own: HashSet<FdbKey>,
    /// The same, by VLAN, of what a warm attach has found: which bridge that is, is not known yet.
    found: HashSet<(u16, [u8; 6])>,
}

/// [`View`] for two threads.
#[derive(Clone, Debug, Default)]
pub struct SharedView(Arc<Mutex<View>>);

impl SharedView {
    /// The view; a panic elsewhere does not make it unusable.
    pub fn lock(&self) -> MutexGuard<'_, View> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a device event means for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Write this.
    Write(Write),
    /// Nothing: somebody set the entry by hand, or the port is in no bridge any more.
    Nothing,
    /// The domain is not known yet: read the chip's table when it is.
    Unknown,
}

impl View {
    /// A port and its netdev.
    pub fn add_port(&mut self, port: u16, ifindex: u32) {
        if let Some(old) = self.ports.get(&port).map(|p| p.ifindex) {
            self.by_ifindex.remove(&old);
        }
        self.ports.entry(port).or_default().ifindex = ifindex;
        self.by_ifindex.insert(ifindex, port);
    }

    /// How many ports the front panel has; those of groups come behind.
    pub fn set_front(&mut self, ports: u16) {
        self.front = ports;
    }

    /// A bond: its group's port comes behind those of the front panel.
    pub fn add_group(&mut self, lag: u16, ifindex: u32) {
        self.add_port(self.front + lag, ifindex);
    }

    /// The front-panel port of a netdev.
    pub fn port_of(&self, ifindex: u32) -> Option<u16> {
        self.by_ifindex.get(&ifindex).copied()
    }

    /// Whose a netdev is; `None`: it is gone.
    pub fn set_owner(&mut self, ifindex: u32, owner: Option<SourceId>) {
        match owner {
            Some(owner) => self.owners.insert(ifindex, owner),
            None => self.owners.remove(&ifindex),
        };
    }

    /// Drops the owners of netdevs that are gone.
    pub fn retain_owners(&mut self, lives: impl Fn(&u32) -> bool) {
        self.owners.retain(|i, _| lives(i));
    }

    /// Drops marks of somebody's entries that are gone.
    pub fn retain_pins(&mut self, there: impl Fn(&FdbKey) -> bool) {
        self.pinned.retain(|k, _| there(k));
    }

    /// Who said a netdev.
    pub fn owner(&self, ifindex: u32) -> Option<SourceId> {
        self.owners.get(&ifindex).copied()
    }

    /// The kernel says which bridge a netdev is in; 0 = none. True: a front-panel port joined one.
    pub fn set_bridge(&mut self, ifindex: u32, bridge: u32) -> bool {
        let Some(port) = self.by_ifindex.get(&ifindex) else {
            return false;
        };
        let p = self.ports.entry(*port).or_default();
        let joined = bridge != 0 && p.bridge != bridge;
        p.bridge = bridge;
        joined
    }

    /// The chip has put a port with a VID into a domain (or taken it out): that of the bridge the kernel has it in now.
    pub fn set_member(&mut self, port: u16, vid: u16, fid: Option<u16>) {
        let Some(p) = self.ports.get_mut(&port) else {
            return;
        };
        if let Some(old) = p.vids.remove(&vid) {
            p.domains.remove(&old);
        }
        if let Some(f) = fid {
            p.vids.insert(vid, f);
            p.domains.insert(f, (vid, p.bridge));
        }
    }

    /// Nothing is known of the chip's domains any more.
    pub fn forget_members(&mut self) {
        for p in self.ports.values_mut() {
            p.domains.clear();
            p.vids.clear();
        }
    }

    /// Somebody else's entry is there, and leads to this netdev.
    pub fn pin(&mut self, key: FdbKey, pin: Pin, ifindex: u32) {
        self.pinned.insert(key, (pin, ifindex));
    }

    /// It has gone.
    pub fn unpin(&mut self, key: &FdbKey) {
        self.pinned.remove(key);
    }

    /// The bridge that the kernel has a port in; 0 = none.
    pub fn kernel_bridge(&self, port: u16) -> u32 {
        self.ports.get(&port).map_or(0, |p| p.bridge)
    }

    /// The netdev of a port.
    pub fn ifindex_of(&self, port: u16) -> Option<u32> {
        self.ports.get(&port).map(|p| p.ifindex)
    }

    /// Whether somebody else's entry is there.
    pub fn is_pinned(&self, key: &FdbKey) -> bool {
        self.pinned.contains_key(key)
    }

    /// Whether a person's entry is there that moves with its station.
    pub fn moves(&self, key: &FdbKey) -> bool {
        self.pinned.get(key).is_some_and(|p| p.0 == Pin::Moves)
    }

    /// The chip has learned this address.
    #[cfg(test)]
    pub fn set_own(&mut self, key: FdbKey) {
        self.own.insert(key);
    }

    /// The chip had learned this address before a warm attach, in some bridge.
    pub fn set_found(&mut self, vlan: u16, mac: [u8; 6]) {
        self.found.insert((vlan, mac));
    }

    /// Whether the chip has learned this address.
    pub fn is_own(&self, key: &FdbKey) -> bool {
        self.own.contains(key) || self.found.contains(&(key.vlan, key.mac))
    }

    /// The chip has not learned it any more.
    pub fn unset_own(&mut self, key: &FdbKey) {
        self.own.remove(key);
        self.found.remove(&(key.vlan, key.mac));
    }

    /// How many addresses are marked as the chip's.
    pub fn own_len(&self) -> usize {
        self.own.len() + self.found.len()
    }

    /// Drops addresses that the kernel removed: the chip never ages them.
    pub fn retain_own(&mut self, keep: impl Fn(&FdbKey) -> bool) {
        self.own.retain(keep);
    }

    /// What the chip has learned is this: nothing else is marked any more.
    pub fn only_own(&mut self, all: impl Iterator<Item = FdbKey>) {
        self.own = all.collect();
        self.found.clear();
    }

    /// The bridge of a domain that a port is in.
    pub fn bridge_of(&self, port: u16, fid: u16) -> Option<u32> {
        let &(_, bridge) = self.ports.get(&port)?.domains.get(&fid)?;
        (bridge != 0).then_some(bridge)
    }

    /// What an event means for the kernel's FDB. Call it before the write: it marks the address as
    /// the chip's.
    pub fn meaning(&mut self, event: &Event) -> Meaning {
        let (fid, mac, port, learned) = match *event {
            Event::Learn { fid, mac, port } | Event::Move { fid, mac, port, .. } => {
                (fid, mac, port, true)
            }
            Event::Age { fid, mac, port } => (fid, mac, port, false),
            _ => return Meaning::Nothing,
        };
        let Some(p) = self.ports.get(&port) else {
            return Meaning::Nothing;
        };
        let Some(&(vid, bridge)) = p.domains.get(&fid) else {
            return Meaning::Unknown;
        };
        if bridge == 0 || bridge != p.bridge {
            return Meaning::Nothing;
        }
        let vlan = vlan_of(vid);
        let ifindex = p.ifindex;
        let key = FdbKey { bridge, vlan, mac };
        match self.pinned.get_mut(&key) {
            // it stays what it is, in another place
            Some((Pin::Moves, place)) if matches!(event, Event::Move { .. }) => {
                *place = ifindex;
                return Meaning::Write(Write::FdbLearned { ifindex, mac, vlan });
            }
            Some((Pin::Yields, _)) if matches!(event, Event::Move { .. }) => {
                self.pinned.remove(&key);
            }
            Some(_) => return Meaning::Nothing,
            None => {}
        }
        if learned {
            self.own.insert(key);
        } else {
            self.unset_own(&key);
        }
        Meaning::Write(if learned {
            Write::FdbLearned { ifindex, mac, vlan }
        } else {
            Write::FdbAged { ifindex, mac, vlan }
        })
    }

    /// The kernel has just learned from a frame that is older than the chip's word `event` about its source: what is to be
    /// written behind it. What somebody has set since goes back to where it was set. `set`: the place of `event` is that
    /// already, from an earlier such frame, of which the kernel's word may be on its way here.
    pub fn late(&mut self, event: &Event, set: bool) -> Meaning {
        let Event::Move {
            fid,
            mac,
            port,
            old_port,
        } = *event
        else {
            return Meaning::Nothing;
        };
        let place = self.ports.get(&port);
        let domain = place.and_then(|p| Some((p.ifindex, *p.domains.get(&fid)?, p.bridge)));
        let Some((chips, (vid, bridge), now)) = domain else {
            return self.meaning(event);
        };
        let vlan = vlan_of(vid);
        let pinned = self.pinned.get(&FdbKey { bridge, vlan, mac });
        match pinned.filter(|(pin, _)| *pin != Pin::Fixed && bridge == now) {
            None => self.meaning(event),
            Some(&(_, ifindex)) if self.port_of(ifindex) != Some(old_port) => {
                Meaning::Write(Write::FdbLearned { ifindex, mac, vlan })
            }
            Some(_) if set => Meaning::Write(Write::FdbLearned {
                ifindex: chips,
                mac,
                vlan,
            }),
            // it was set to where the frame came from
            Some(_) => Meaning::Nothing,
        }
    }
}

/// The kernel's VLAN of a membership: none without VLAN filtering.
pub fn vlan_of(vid: u16) -> u16 {
    if vid == TND_VID_ANY { 0 } else { vid }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];
    const LEARN: Event = Event::Learn {
        fid: 3,
        mac: MAC,
        port: 1,
    };

    #[test]
    fn learning_reaches_the_bridge_that_the_domain_stands_for() {
        let mut v = View::default();
        v.add_port(1, 10);
        assert_eq!(v.meaning(&LEARN), Meaning::Unknown);
        assert!(v.set_bridge(10, 50));
        assert!(!v.set_bridge(10, 50));
        v.set_member(1, TND_VID_ANY, Some(3));
        assert_eq!(
            v.meaning(&LEARN),
            Meaning::Write(Write::FdbLearned {
                ifindex: 10,
                mac: MAC,
                vlan: 0
            })
        );
        assert_eq!(v.bridge_of(1, 3), Some(50));
        // a person's entry stays
        let key = FdbKey {
            bridge: 50,
            vlan: 0,
            mac: MAC,
        };
        let moved = Event::Move {
            fid: 3,
            mac: MAC,
            port: 1,
            old_port: 2,
        };
        v.pin(key, Pin::Fixed, 10);
        assert_eq!(v.meaning(&LEARN), Meaning::Nothing);
        assert_eq!(v.meaning(&moved), Meaning::Nothing);
        // unless it is one that moves, as the kernel's static ones do
        v.pin(key, Pin::Moves, 10);
        assert_eq!(v.meaning(&LEARN), Meaning::Nothing);
        assert!(matches!(v.meaning(&moved), Meaning::Write(_)));
        // another program's moves once, and is the chip's then
        v.retain_own(|_| false);
        v.pin(key, Pin::Yields, 10);
        assert_eq!(v.meaning(&LEARN), Meaning::Nothing);
        assert!(!v.is_own(&key));
        assert!(matches!(v.meaning(&moved), Meaning::Write(_)));
        assert!(v.is_own(&key) && !v.is_pinned(&key));
        // the port has moved on: the chip's events are of the old bridge
        v.set_bridge(10, 51);
        assert_eq!(v.meaning(&LEARN), Meaning::Nothing);
    }
    /// The kernel moved a person's entry by a frame from before it was set: it goes back to where the person has put it, and not
    /// to where the chip saw the station before.
    #[test]
    fn a_late_frame_does_not_move_what_was_set_since() {
        let mut v = View::default();
        for port in 1..=3 {
            v.add_port(port, 10 * u32::from(port));
            v.set_bridge(10 * u32::from(port), 50);
            v.set_member(port, TND_VID_ANY, Some(1));
        }
        let key = FdbKey {
            bridge: 50,
            vlan: 0,
            mac: MAC,
        };
        let to = |port| Event::Move {
            fid: 1,
            mac: MAC,
            port,
            old_port: 1,
        };
        let write = |ifindex| {
            Meaning::Write(Write::FdbLearned {
                ifindex,
                mac: MAC,
                vlan: 0,
            })
        };
        assert_eq!(v.late(&to(2), false), write(20));
        for pin in [Pin::Moves, Pin::Yields] {
            v.retain_own(|_| false);
            v.pin(key, pin, 30);
            assert_eq!(v.late(&to(2), false), write(30), "{pin:?}");
            assert!(v.is_pinned(&key));
        }
        // the kernel's word of what that frame did comes before its word of what was written, and another such frame
        v.pin(key, Pin::Moves, 10);
        assert_eq!(v.late(&to(3), true), write(30));
        // somebody has set it to where such frames come from
        assert_eq!(v.late(&to(2), false), Meaning::Nothing);
        // but where the chip has moved it after that
        v.pin(key, Pin::Moves, 30);
        assert_eq!(v.meaning(&to(2)), write(20));
        assert_eq!(v.late(&to(2), false), write(20));
        v.pin(key, Pin::Fixed, 30);
        assert_eq!(v.late(&to(2), false), Meaning::Nothing);
    }

    /// A station may be in two bridges; that it is aged in one says nothing of the other.
    #[test]
    fn a_bridge_has_addresses_of_its_own() {
        let mut v = View::default();
        for (port, bridge) in [(1, 50), (2, 60)] {
            v.add_port(port, u32::from(port) * 10);
            v.set_bridge(u32::from(port) * 10, bridge);
            v.set_member(port, TND_VID_ANY, Some(port));
        }
        let own = |v: &View, bridge| {
            v.is_own(&FdbKey {
                bridge,
                vlan: 0,
                mac: MAC,
            })
        };
        for port in [1, 2] {
            v.meaning(&Event::Learn {
                fid: port,
                mac: MAC,
                port,
            });
        }
        assert!(own(&v, 50) && own(&v, 60));
        v.meaning(&Event::Age {
            fid: 1,
            mac: MAC,
            port: 1,
        });
        assert!(!own(&v, 50) && own(&v, 60));
        // found by a warm attach: in which bridge is not known yet
        v.set_found(0, MAC);
        assert!(own(&v, 50));
        v.only_own(std::iter::empty());
        assert!(!own(&v, 50) && !own(&v, 60) && v.own_len() == 0);
    }

    #[test]
    fn a_vlan_has_addresses_of_its_own() {
        let mut v = View::default();
        v.add_port(1, 10);
        v.set_bridge(10, 50);
        v.set_member(1, 10, Some(3));
        v.set_member(1, 20, Some(4));
        let write = |vlan| {
            Meaning::Write(Write::FdbLearned {
                ifindex: 10,
                mac: MAC,
                vlan,
            })
        };
        let learn = |fid| Event::Learn {
            fid,
            mac: MAC,
            port: 1,
        };
        assert_eq!(v.meaning(&learn(3)), write(10));
        let own = |v: &View, vlan| {
            v.is_own(&FdbKey {
                bridge: 50,
                vlan,
                mac: MAC,
            })
        };
        assert!(own(&v, 10) && !own(&v, 20));
        // pinned in the one VLAN, free in the other
        let pinned = FdbKey {
            bridge: 50,
            vlan: 10,
            mac: MAC,
        };
        v.pin(pinned, Pin::Fixed, 10);
        assert_eq!(v.meaning(&learn(3)), Meaning::Nothing);
        assert_eq!(v.meaning(&learn(4)), write(20));
        // ages in one, stays in the other
        let aged = Event::Age {
            fid: 4,
            mac: MAC,
            port: 1,
        };
        v.meaning(&aged);
        assert!(own(&v, 10) && !own(&v, 20));
        v.set_member(1, 20, None);
        assert_eq!(v.meaning(&learn(4)), Meaning::Unknown);
        v.forget_members();
        assert_eq!(v.meaning(&learn(3)), Meaning::Unknown);
    }
}
