//! VRFs: devices with a routing table of their own, and the interfaces that look up there.
//!
//! ```text
//!   red (vrf, table 10) ── slot 1 ──► VRF        routes of table 10 ──► ROUTE(vrf)   in the same trie, below slot 1
//!     ├── swp1                                    RIF(swp1) ── vrf
//!     └── br0.10                                  RIF(br0.10) ── vrf
//! ```
//!
//! A slot is the table id of the VRF on the chip plus one; slot 0 is the default VRF, tables local and main.

use crate::Store;
use crate::fib::{F_QUEUED, Fam, SLOT_BITS, V4, V6};
use crate::hw::bodies::{RifPlace, Vrf};
use crate::hw::{Cls, Ref};
use crate::model::{Family, KindSet, Link, LinkKind, SourceId, TABLE_LOCAL, TABLE_MAIN};
use crate::reason::Reason;
use crate::slices::Each;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};

/// A VRF.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VrfRec {
    /// ifindex of its device.
    pub ifindex: u32,
    /// Its table.
    pub table: u32,
    /// Its device is gone: the slot is free when the chip has none of its routes any more.
    pub dying: bool,
}

/// All VRFs.
#[derive(Debug, Default)]
pub(crate) struct Vrfs {
    /// By slot.
    pub slots: BTreeMap<u8, VrfRec>,
    /// Slot by table, of those that live.
    pub by_table: HashMap<u32, u8>,
    /// Routes of a table that nobody looked up before are to be told again.
    pub resync: bool,
}

impl Store {
    /// Where the routes of a table are kept, and the table's rank there: IPv4 and IPv6 keep local and main in one trie,
    /// local first. The default table counts only where main has nothing, and there a lookup misses and traps.
    pub(crate) fn table_place(&self, table: u32) -> Option<(u8, u8)> {
        match table {
            TABLE_LOCAL => Some((0, 0)),
            TABLE_MAIN => Some((0, 1)),
            _ => self.vrfs.by_table.get(&table).map(|slot| (*slot, 1)),
        }
    }

    /// The slot's table, for people.
    pub(crate) fn table_of(&self, slot: u8, rank: u8) -> u32 {
        match (slot, rank) {
            (0, 0) => TABLE_LOCAL,
            (0, _) => TABLE_MAIN,
            _ => self.vrfs.slots.get(&slot).map_or(0, |v| v.table),
        }
    }

    /// The name of a slot's VRF; empty for the default one.
    pub(crate) fn vrf_name(&self, slot: u8) -> String {
        match self.vrfs.slots.get(&slot) {
            Some(v) => self.dev(v.ifindex),
            None => String::new(),
        }
    }

    /// The slot of the VRF with this name.
    pub fn vrf_slot(&self, name: &str) -> Option<u8> {
        let mut live = self.vrfs.slots.iter().filter(|(_, v)| !v.dying);
        live.find(|(_, v)| self.dev(v.ifindex) == name)
            .map(|(slot, _)| *slot)
    }

    /// The store's number of a VRF of the chip, for [`Store::explain_route_in`].
    pub fn slot_of_vrf(&self, vrf: u16) -> Option<u8> {
        self.hw.ids.slot(vrf)
    }

    /// Routes of a table became of interest: the source shall tell all of them again. Asked once.
    pub fn take_resync(&mut self) -> bool {
        std::mem::take(&mut self.vrfs.resync)
    }

    /// A device came or changed: a VRF takes a slot before the first of its routes comes.
    pub(crate) fn vrf_link(&mut self, source: SourceId, link: &Link) {
        let LinkKind::Vrf { table } = link.kind else {
            return;
        };
        if self.vrfs.by_table.contains_key(&table) || matches!(table, 0 | TABLE_LOCAL | TABLE_MAIN)
        {
            return;
        }
        let id = self.hw.vrfs.take();
        let Ok(slot) = u8::try_from(id + 1) else {
            self.hw.vrfs.release(id);
            return;
        };
        let rec = VrfRec {
            ifindex: link.ifindex,
            table,
            dying: false,
        };
        self.vrfs.slots.insert(slot, rec);
        self.vrfs.by_table.insert(table, slot);
        // Its table is its source's: whoever else is telling all there is tells nothing of that.
        let running = self.syncs.get(&source).and_then(|s| s.running);
        self.vrfs.resync |= !running.is_some_and(|k| k.contains(KindSet::ROUTE));
    }

    /// A device is gone: with a VRF go all routes of its table.
    pub(crate) fn vrf_gone(&mut self, ifindex: u32, now: u64) {
        let mut live = self.vrfs.slots.iter_mut().filter(|(_, v)| !v.dying);
        let Some((slot, rec)) = live.find(|(_, v)| v.ifindex == ifindex) else {
            return;
        };
        rec.dying = true;
        let (slot, table) = (*slot, rec.table);
        self.vrfs.by_table.remove(&table);
        self.for_all_in(slot, Each::Remove, now);
    }

    /// Does something with all prefixes of a slot.
    fn for_all_in(&mut self, slot: u8, each: Each, now: u64) {
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        self.for_below(V4::new(slot, any), SLOT_BITS, each, now);
        self.for_below(V6::new(slot, any), SLOT_BITS, each, now);
    }

    fn on_chip_in<F: Fam>(&self, slot: u8) -> bool {
        let fib = F::fib(&self.fibs);
        let mut found = false;
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        fib.cover.each_below(F::new(slot, any), SLOT_BITS, |_, e| {
            let x = &fib.entries[e];
            found |= x.have.present() || x.is(crate::fib::F_FLIGHT | F_QUEUED);
            !found
        });
        found
    }

    /// VRF objects as they should be; one that is no more stays until its routes are gone.
    pub(crate) fn refresh_vrfs(&mut self, now: u64) {
        let all: Vec<(u8, VrfRec)> = self.vrfs.slots.iter().map(|(s, v)| (*s, *v)).collect();
        for (slot, rec) in all {
            let id = u32::from(slot) - 1;
            let in_use = !rec.dying || self.on_chip_in::<V4>(slot) || self.on_chip_in::<V6>(slot);
            let body = Vrf { table: rec.table };
            self.hw.want(id, in_use.then_some(body), now);
        }
    }

    /// Some VRF's device is gone, and its routes may be by now.
    pub(crate) fn vrfs_dying(&self) -> bool {
        self.vrfs.slots.values().any(|v| v.dying)
    }

    /// Its object is gone: the slot is free.
    pub(crate) fn vrf_released(&mut self, id: u32) {
        if let Ok(slot) = u8::try_from(id + 1) {
            self.vrfs.slots.remove(&slot);
        }
    }

    /// The chip looks routes of this slot up.
    pub(crate) fn slot_stands(&self, slot: u8) -> bool {
        slot == 0
            || self
                .hw
                .vrfs
                .get(u32::from(slot) - 1)
                .is_some_and(|o| o.have.is_some() && o.want.is_some())
    }

    /// A VRF came to stand or failed: what is in it looks again.
    pub(crate) fn vrf_changed(&mut self, id: u32, now: u64) {
        let Ok(slot) = u8::try_from(id + 1) else {
            return;
        };
        self.for_all_in(slot, Each::Reeval, now);
        let inside = self.topo.ingress.get(&slot);
        let inside = inside.into_iter().flat_map(BTreeMap::keys);
        let rifs = inside.filter_map(|i| self.topo.rif_of.get(i).copied());
        for rif in rifs.collect::<Vec<_>>() {
            self.hw.retry_dependent(Ref::new(Cls::Rif, rif));
        }
    }

    /// The VRF that a routed interface is in; 0: the default one. None: it has some other master.
    pub(crate) fn vrf_master(&self, l: &Link) -> Option<u8> {
        if l.master == 0 {
            return Some(0);
        }
        let mut live = self.vrfs.slots.iter().filter(|(_, v)| !v.dying);
        live.find(|(_, v)| v.ifindex == l.master)
            .map(|(slot, _)| *slot)
    }

    /// By which VRF's routes packets go that come in there: by this port with this tag's VLAN (0: none), or in this
    /// forwarding domain (0: none). 0 is the default one.
    pub fn slot_at(&self, port: u16, vid: u16, fid: u16) -> u8 {
        let domain = self.hw.ids.fids.table(u32::from(fid));
        let place = match (domain, vid) {
            (Some(domain), _) => RifPlace::Vlan(domain),
            // one that is gone by now: nobody knows
            (None, _) if fid != 0 => return 0,
            (None, 0) => RifPlace::Port(port),
            (None, vid) => RifPlace::PortVlan(port, vid),
        };
        let mut rifs = self.rifs_at(place).filter_map(|r| self.hw.rifs.get(r));
        let there = rifs.find_map(|r| r.want.as_ref());
        match (there, place) {
            (Some(rif), _) => rif.vrf,
            (None, RifPlace::Port(_)) => {
                let dev = self.topo.if_of_port.get(&port);
                dev.map_or(0, |i| self.slot_of(*i))
            }
            _ => 0,
        }
    }

    /// The slot of an interface's routes.
    pub(crate) fn slot_of(&self, ifindex: u32) -> u8 {
        let link = self.links.get(&ifindex);
        link.and_then(|r| self.vrf_master(&r.link)).unwrap_or(0)
    }

    /// Why what comes in on interfaces of a VRF must go to the CPU.
    pub(crate) fn vrf_reason(&self, slot: u8) -> Option<Reason> {
        let rec = self.vrfs.slots.get(&slot)?;
        let l = self.links.get(&rec.ifindex).map(|r| &r.link)?;
        if !l.admin_up {
            return Some(Reason::VrfDown(l.name.clone()));
        }
        if let Some(h) = self.hooked(l) {
            return Some(Reason::HookedVrf(h, l.name.clone()));
        }
        for family in [Family::V4, Family::V6] {
            let of = |f: &dyn Fn(&crate::model::Rule) -> bool| {
                let all = self.rules.iter().map(|r| &r.0);
                all.filter(|r| r.family == family && f(r))
                    .map(|r| r.priority)
                    .min()
            };
            let l3mdev = of(&|r| r.l3mdev);
            let local = of(&|r| r.is_default && r.table == TABLE_LOCAL);
            match (l3mdev, local) {
                (None, None) => {}
                (None, _) => return Some(Reason::NoVrfRule(family)),
                (Some(vrf), Some(local)) if local < vrf => {
                    return Some(Reason::LocalBeforeVrf { family, local, vrf });
                }
                _ => {}
            }
        }
        None
    }
}
