//! What the io thread needs to know of the core's world: which bridge a forwarding domain is, which
//! ports are in it, which FDB entries are not the chip's to change.
//!
//! Small and under one lock: the core changes it on link, FDB and member changes, the io thread
//! reads it once per batch of events.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tandem_sal::Event;

use crate::source::Write;

/// A port as the io thread sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PortView {
    ifindex: u32,
    /// The bridge it is in by the kernel's last word; 0 = none.
    bridge: u32,
    /// The domain that the chip was last told for it, and the bridge that this stands for.
    member: Option<(u16, u32)>,
}

/// The shared knowledge.
#[derive(Debug, Default)]
pub struct View {
    ports: HashMap<u16, PortView>,
    by_ifindex: HashMap<u32, u16>,
    /// Entries that a person or another program set: never overwritten by learning.
    pinned: HashSet<(u32, [u8; 6])>,
    /// Addresses that the chip has learned. What the kernel then says of them is the echo of our own
    /// write; an `extern_learn` entry of any other address is somebody else's. Marked before the
    /// write, so that no echo can come first; an address that was aged is forgotten.
    own: HashSet<[u8; 6]>,
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
        self.ports.entry(port).or_default().ifindex = ifindex;
        self.by_ifindex.insert(ifindex, port);
    }

    /// The front-panel port of a netdev.
    pub fn port_of(&self, ifindex: u32) -> Option<u16> {
        self.by_ifindex.get(&ifindex).copied()
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

    /// The chip has put a port into a domain (or taken it out): that of the bridge the kernel has it
    /// in now.
    pub fn set_member(&mut self, port: u16, fid: Option<u16>) {
        if let Some(p) = self.ports.get_mut(&port) {
            p.member = fid.map(|f| (f, p.bridge));
        }
    }

    /// Somebody else's entry appeared or went.
    pub fn pin(&mut self, bridge: u32, mac: [u8; 6], pinned: bool) {
        if pinned {
            self.pinned.insert((bridge, mac));
        } else {
            self.pinned.remove(&(bridge, mac));
        }
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
    pub fn is_pinned(&self, bridge: u32, mac: [u8; 6]) -> bool {
        self.pinned.contains(&(bridge, mac))
    }

    /// The chip has learned this address.
    pub fn set_own(&mut self, mac: [u8; 6]) {
        self.own.insert(mac);
    }

    /// Whether the chip has learned this address.
    pub fn is_own(&self, mac: [u8; 6]) -> bool {
        self.own.contains(&mac)
    }

    /// How many addresses are marked as the chip's.
    pub fn own_len(&self) -> usize {
        self.own.len()
    }

    /// Drops addresses that the kernel removed: the chip never ages them.
    pub fn retain_own(&mut self, keep: impl Fn(&[u8; 6]) -> bool) {
        self.own.retain(keep);
    }

    /// The bridge of a domain that a port is in.
    pub fn bridge_of(&self, port: u16, fid: u16) -> Option<u32> {
        let (f, bridge) = self.ports.get(&port)?.member?;
        (f == fid && bridge != 0).then_some(bridge)
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
        let Some((member_fid, bridge)) = p.member else {
            return Meaning::Unknown;
        };
        if member_fid != fid || bridge == 0 || bridge != p.bridge {
            return Meaning::Nothing;
        }
        if self.pinned.contains(&(bridge, mac)) {
            return Meaning::Nothing;
        }
        let ifindex = p.ifindex;
        if learned {
            self.own.insert(mac);
        } else {
            self.own.remove(&mac);
        }
        Meaning::Write(if learned {
            Write::FdbLearned {
                ifindex,
                mac,
                vlan: 0,
            }
        } else {
            Write::FdbAged {
                ifindex,
                mac,
                vlan: 0,
            }
        })
    }
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
        v.set_member(1, Some(3));
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
        v.pin(50, MAC, true);
        assert_eq!(v.meaning(&LEARN), Meaning::Nothing);
        v.pin(50, MAC, false);
        // the port has moved on: the chip's news are of the old bridge
        v.set_bridge(10, 51);
        assert_eq!(v.meaning(&LEARN), Meaning::Nothing);
    }
}
