//! The forwarding database: the kernel's entries, the chip's own learning, and the two kept equal.
//!
//! ```text
//!   EV_LEARN ──► device: port ──► write-back (extern_learn) ──► kernel ──► Upsert: equal, nothing to program
//!   EV_AGE   ──► device: gone ──► write-back (delete)       ──► kernel ──► Remove
//!   bridge fdb add … static   ──► Upsert ──► CREATE           does not fit ──► unknown unicast of the domain traps
//! ```

use crate::Store;
use crate::api::{DeviceEvent, Domain, FdbWriteBack, Policy};
use crate::hw::bodies;
use crate::hw::table::Sent;
use crate::model::{FdbEntry, FdbKey, FdbKind, SourceId};
use crate::slices::Span;
use tandem_abi::raw::*;

/// One address of one bridge.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FdbRec {
    /// What the kernel has.
    pub kernel: Option<FdbEntry>,
    /// Port where the chip has learned it.
    pub device: Option<u16>,
    /// Port to which the chip has moved a static entry; the kernel's next word about it counts more.
    pub moved: Option<u16>,
    /// The chip aged it; the kernel's entry goes as soon as the write-back is through.
    pub aged: bool,
    /// The kernel's `extern_learn` entry is the chip's own learning: it ages. Anybody else's does not, until its station
    /// moves.
    pub own: bool,
    pub source: u8,
    pub generation: u16,
}

impl FdbRec {
    pub fn ifindex(&self) -> Option<u32> {
        self.kernel.map(|k| k.ifindex)
    }
}

impl Store {
    pub(crate) fn upsert_fdb(&mut self, source: SourceId, e: FdbEntry, generation: u16, now: u64) {
        let key = FdbKey {
            bridge: e.bridge,
            vlan: e.vlan,
            mac: e.mac,
        };
        let rec = self.fdb.entry(key).or_default();
        (rec.source, rec.generation) = (source.0, generation);
        if rec.kernel == Some(e) && !rec.aged {
            self.counters.unchanged += 1;
            return;
        }
        // The echo of where the chip saw it last has come already: this is somebody's newer word.
        let port_of = |k: FdbEntry| self.topo.port_of.get(&k.ifindex).copied();
        if rec.device.is_some()
            && rec.kernel.and_then(port_of) == rec.device
            && port_of(e) != rec.device
        {
            rec.device = None;
        }
        if let Some(old) = rec.kernel.replace(e) {
            self.fdb_behind.remove(&(old.ifindex, key));
        }
        self.fdb_behind.insert((e.ifindex, key));
        rec.moved = None;
        rec.aged = false;
        self.reeval_fdb(key, now);
    }

    pub(crate) fn remove_fdb(&mut self, key: FdbKey, now: u64) {
        if let Some(rec) = self.fdb.remove(&key) {
            if let Some(i) = rec.ifindex() {
                self.fdb_behind.remove(&(i, key));
            }
            self.reeval_fdb(key, now);
        }
    }

    /// The kernel's next word about this address is the echo of what the chip learned.
    pub fn fdb_own(&mut self, key: FdbKey) {
        self.fdb.entry(key).or_default().own = true;
    }

    /// The chip was attached warm, and has learned this address behind this port before.
    pub fn fdb_found(&mut self, key: FdbKey, port: u16, now_ns: u64) {
        let rec = self.fdb.entry(key).or_default();
        rec.device = Some(port);
        rec.own = true;
        rec.aged = false;
        self.reeval_fdb(key, now_ns);
    }

    /// It is on the chip as it should be, and forwards there. What traps (a station behind a bond that the chip hasn't)
    /// is the kernel's to forget.
    pub fn fdb_stands(&self, key: &FdbKey) -> bool {
        let o = self.fdb_ids.get(key).and_then(|id| self.hw.fdb.get(*id));
        let forwards = |b: &bodies::Fdb| b.action == TND_ACT_FORWARD;
        o.is_some_and(|o| {
            o.fail.is_none() && o.want.as_ref().is_some_and(forwards) && o.want == o.have
        })
    }

    /// The entry of one address as it should be on the chip.
    pub(crate) fn reeval_fdb(&mut self, key: FdbKey, now: u64) {
        self.slices.look();
        let body = self.fdb_body(key);
        self.note_knocking(key, body.is_none(), now);
        let id = match self.fdb_ids.get(&key) {
            Some(&id) => id,
            None if body.is_none() => return,
            None => {
                let id = self.hw.fdb.take();
                self.fdb_ids.insert(key, id);
                self.fdb_keys.insert(id, key);
                id
            }
        };
        // What the chip learned by itself is there already.
        if let (Some(rec), Some(b)) = (self.fdb.get(&key), &body)
            && rec.device == Some(b.port)
            && b.action == TND_ACT_FORWARD
            && b.flags == 0
        {
            let o = self.hw.fdb.at(id);
            if o.have.is_none() && matches!(o.sent, Sent::Nothing) {
                self.hw.adopt_fdb(id, b.clone(), now);
                return;
            }
        }
        let was = self.hw.fdb.get(id).and_then(|o| o.want.as_ref());
        match (was.map(|w| w.port), body.is_some()) {
            (_, true) => _ = self.topo.last_behind.remove(&id),
            (Some(port), false) => _ = self.topo.last_behind.insert(id, port),
            (None, false) => {}
        }
        self.hw.want(id, body, now);
        self.note_station(id);
        // One without room is another one now: its domain traps for one that is to stay, not for one that ages.
        if (self.hw.fdb.get(id)).is_some_and(|o| o.fail.is_some() || o.told) {
            self.fdb_state_changed(id, now);
        }
    }

    /// Whether an entry is queued: ports of its bridge that change from here on come behind it.
    pub(crate) fn note_station(&mut self, id: u32) {
        if self.hw.fdb.get(id).is_some_and(|o| o.queued)
            && let Some(key) = self.fdb_keys.get(&id)
        {
            self.hw.station_waits(id, key.bridge);
        }
    }

    /// A station that nobody has let in (`locked`) has no entry, and what is sent to it would be flooded.
    fn note_knocking(&mut self, key: FdbKey, absent: bool, now: u64) {
        let rec = self.fdb.get(&key).and_then(|r| r.kernel);
        let knocks = absent && rec.is_some_and(|e| e.kind == FdbKind::Locked);
        let domain = Domain::of(&key);
        let changed = if knocks {
            let all = self.knocking.entry(domain).or_default();
            all.insert(key.mac) && all.len() == 1
        } else if let Some(all) = self.knocking.get_mut(&domain) {
            let last = all.remove(&key.mac) && all.is_empty();
            if last {
                self.knocking.remove(&domain);
            }
            last
        } else {
            false
        };
        if changed && let Some(&f) = self.topo.fid_of.get(&domain) {
            self.want_vlan(f, now);
        }
    }

    fn fdb_body(&self, key: FdbKey) -> Option<bodies::Fdb> {
        let rec = self.fdb.get(&key)?;
        // Entries of a VLAN mean nothing without VLAN filtering, and the others nothing with it.
        let &vlan = self.topo.fid_of.get(&Domain::of(&key))?;
        let base = bodies::Fdb {
            vlan,
            mac: key.mac,
            port: 0,
            flags: 0,
            action: TND_ACT_FORWARD,
            lag: None,
        };
        let lag = |port| self.lag_of_port(port);
        let Some(e) = rec.kernel else {
            // Only the chip knows it so far; the kernel's echo is on its way.
            // a group's port may be gone, and what was learned there with it
            let there = |port: &u16| self.topo.if_of_port.contains_key(port);
            return rec.device.filter(there).map(|port| bodies::Fdb {
                port,
                lag: lag(port),
                ..base
            });
        };
        let port = self.topo.port_of.get(&e.ifindex).copied();
        let own = self
            .links
            .get(&e.ifindex)
            .is_some_and(|l| l.link.master == key.bridge);
        match (e.kind, port) {
            (FdbKind::Local, _) => Some(bodies::Fdb {
                action: TND_ACT_TRAP,
                flags: TND_FDB_STATIC,
                ..base
            }),
            (FdbKind::Blackhole, _) => Some(bodies::Fdb {
                action: TND_ACT_DROP,
                flags: TND_FDB_STATIC,
                ..base
            }),
            // The kernel's static entries follow their station, unless they are sticky. Another program's: the kernel ages
            // none, but the first frame from elsewhere makes it one that the bridge has learned (net/bridge/br_fdb.c
            // `br_fdb_update`).
            (FdbKind::Static | FdbKind::ExternLearn, Some(port))
                if own && !(e.kind == FdbKind::ExternLearn && rec.own) =>
            {
                let port = rec.moved.unwrap_or(port);
                Some(bodies::Fdb {
                    port,
                    lag: lag(port),
                    flags: if e.sticky {
                        TND_FDB_STATIC
                    } else {
                        TND_FDB_NO_AGE
                    },
                    ..base
                })
            }
            (FdbKind::ExternLearn | FdbKind::Dynamic, Some(_)) if rec.aged => None,
            // Who knocks here has been learned elsewhere since.
            (FdbKind::Locked, Some(knocked)) => {
                let port = rec.device.filter(|p| *p != knocked)?;
                let lag = lag(port);
                Some(bodies::Fdb { port, lag, ..base })
            }
            (FdbKind::ExternLearn | FdbKind::Dynamic, Some(port)) if own => {
                // Where the chip saw it last is newer than the kernel's echo.
                let port = rec.device.unwrap_or(port);
                Some(bodies::Fdb {
                    port,
                    lag: lag(port),
                    flags: if e.sticky { TND_FDB_STICKY } else { 0 },
                    ..base
                })
            }
            // On a device that isn't a front-panel port.
            (_, None) => Some(bodies::Fdb {
                action: TND_ACT_TRAP,
                flags: TND_FDB_STATIC,
                ..base
            }),
            _ => None,
        }
    }

    /// The chip learned, moved or aged an address.
    pub(crate) fn fdb_event(&mut self, event: DeviceEvent, now: u64) -> Option<FdbWriteBack> {
        let (fid, mac) = match event {
            DeviceEvent::Learn { fid, mac, .. }
            | DeviceEvent::Move { fid, mac, .. }
            | DeviceEvent::Age { fid, mac, .. } => (fid, mac),
        };
        let Domain { dev: bridge, vlan } = self.domain(fid)?;
        let key = FdbKey { bridge, vlan, mac };
        match event {
            DeviceEvent::Learn { port, .. } | DeviceEvent::Move { port, .. } => {
                let &ifindex = self.topo.if_of_port.get(&port)?;
                // The kernel's own entry is on the chip, or on its way: then nothing is learned, and this was before.
                let o = self.fdb_ids.get(&key).and_then(|id| self.hw.fdb.get(*id));
                let late = matches!(event, DeviceEvent::Learn { .. })
                    && o.is_some_and(|o| o.have.is_some() || !matches!(o.sent, Sent::Nothing));
                let rec = self.fdb.entry(key).or_default();
                let others = rec.kernel.is_some_and(|k| k.kind == FdbKind::ExternLearn) && !rec.own;
                if late && (others || rec.kernel.is_some_and(|k| k.kind == FdbKind::Static)) {
                    return None;
                }
                rec.device = Some(port);
                rec.own = true;
                rec.aged = false;
                rec.moved = rec
                    .kernel
                    .filter(|k| k.kind == FdbKind::Static && !k.sticky)
                    .map(|_| port);
                let known = rec.kernel.is_some_and(|k| match k.kind {
                    FdbKind::Local | FdbKind::Blackhole => true,
                    FdbKind::Static => k.sticky || k.ifindex == ifindex,
                    FdbKind::ExternLearn => k.ifindex == ifindex,
                    FdbKind::Dynamic | FdbKind::Locked => false,
                });
                let body = self.fdb_body(key)?;
                let id = match self.fdb_ids.get(&key) {
                    Some(&id) => id,
                    None => {
                        let id = self.hw.fdb.take();
                        self.fdb_ids.insert(key, id);
                        self.fdb_keys.insert(id, key);
                        id
                    }
                };
                let o = self.hw.fdb.get(id).and_then(|o| o.have.as_ref());
                let ageless = |b: &bodies::Fdb| b.flags & TND_FDB_NO_AGE != 0;
                let kept = matches!(event, DeviceEvent::Move { .. }) && o.is_some_and(ageless);
                if others || kept && !ageless(&body) {
                    // the chip moved it as it was, without age: from now on it is one that it has learned (which the kernel's
                    // echo may have said before)
                    let there = bodies::Fdb {
                        flags: TND_FDB_NO_AGE,
                        ..body.clone()
                    };
                    self.hw.adopt_fdb(id, there, now);
                    self.hw.want(id, Some(body), now);
                } else if body.flags & TND_FDB_STATIC == 0 {
                    self.hw.adopt_fdb(id, body, now);
                }
                (!known).then_some(FdbWriteBack {
                    add: true,
                    bridge,
                    vlan,
                    ifindex,
                    mac,
                })
            }
            DeviceEvent::Age { .. } => {
                let rec = self.fdb.get_mut(&key)?;
                rec.device = None;
                let kernel = rec.kernel;
                let ageing = kernel
                    .is_some_and(|k| matches!(k.kind, FdbKind::ExternLearn | FdbKind::Dynamic));
                if ageing {
                    rec.aged = true;
                }
                if kernel.is_none() {
                    self.fdb.remove(&key);
                }
                if let Some(&id) = self.fdb_ids.get(&key) {
                    self.hw.gone_fdb(id);
                    self.reeval_fdb(key, now);
                }
                // The slot is free for others.
                self.credit_all(1);
                let ifindex = kernel.filter(|_| ageing)?.ifindex;
                Some(FdbWriteBack {
                    add: false,
                    bridge,
                    vlan,
                    ifindex,
                    mac,
                })
            }
        }
    }

    /// What the chip did with an entry: where it has no room for somebody's, unknown stations of the domain go to the CPU.
    pub(crate) fn fdb_state_changed(&mut self, id: u32, now: u64) {
        let key = self.fdb_keys.get(&id);
        let Some(&vlan) = key.and_then(|k| self.topo.fid_of.get(&Domain::of(k))) else {
            return;
        };
        // One that ages and moves is flooded to, as where the chip has no room to learn: a bridge with more stations than
        // the chip has room for must not be the kernel's.
        let somebodys = |b: &bodies::Fdb| b.action != TND_ACT_FORWARD || b.flags != 0;
        let entry = self.hw.fdb.get(id).filter(|o| o.missing());
        let failed = entry.is_some_and(|o| o.want.as_ref().is_some_and(somebodys));
        let before = self.fdb_failed.contains_key(&vlan);
        if failed {
            self.fdb_failed.entry(vlan).or_default().insert(id);
        } else if let Some(set) = self.fdb_failed.get_mut(&vlan) {
            set.remove(&id);
            if set.is_empty() {
                self.fdb_failed.remove(&vlan);
            }
        }
        if before != self.fdb_failed.contains_key(&vlan) && self.config.policy == Policy::Trap {
            self.want_vlan(vlan, now);
        }
    }
}

impl FdbKey {
    /// Before and behind all others.
    pub(crate) const FIRST: FdbKey = FdbKey::at(0, 0, 0);
    pub(crate) const LAST: FdbKey = FdbKey::at(u32::MAX, u16::MAX, u8::MAX);

    /// The first or the last place of a VLAN, by the byte that its address is made of.
    const fn at(bridge: u32, vlan: u16, byte: u8) -> FdbKey {
        FdbKey {
            bridge,
            vlan,
            mac: [byte; 6],
        }
    }

    /// All of a bridge.
    pub(crate) fn of_bridge(bridge: u32) -> Span<FdbKey> {
        Span::new(
            FdbKey::at(bridge, 0, 0),
            FdbKey::at(bridge, u16::MAX, u8::MAX),
        )
    }

    /// All of a domain.
    pub(crate) fn in_domain(d: Domain) -> Span<FdbKey> {
        Span::new(
            FdbKey::at(d.dev, d.vlan, 0),
            FdbKey::at(d.dev, d.vlan, u8::MAX),
        )
    }
}
