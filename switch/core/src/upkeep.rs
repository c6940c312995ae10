//! What has to be done again and again: neighbours resolved and kept, the chip's FDB read after a
//! loss.
//!
//! ```text
//!   store.take_wanted: gateway not resolved ──► NTF_USE: now, after 1 s, 2 s, … 30 s
//!   every 2 s: ACTIVITY of neighbours, next hops: used and STALE ──► NTF_USE (what a packet does)
//!   events lost, or a new attach: DUMP of the FDB ──► what the kernel lacks is written there
//!                                                     what the chip lacks twice is removed there
//! ```
//!
//! A packet that the chip forwards never tells the kernel that its neighbour is in use. The hit bits
//! do: a used neighbour is confirmed as a packet would confirm it, one that is not used goes stale
//! and is forgotten by the kernel's own rules. NTF_USE and not NTF_MANAGED: a managed entry stays for
//! ever when switchd does not come back, and ARP tables are the whole machine's.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;

use tandem_abi::object::records;
use tandem_abi::raw;
use tandem_sal::{Event, Pages, PostError, Request};
use tandem_store::Settling;
use tandem_store::model::{FdbKey, nud};
use zerocopy::IntoBytes;

use super::Core;
use super::program::{OWN, device_event};
use crate::SECOND_NS;
use crate::plant::Fault;
use crate::source::Write;
use crate::view::Meaning;

/// Between two readings of hit bits.
const ACTIVITY_NS: u64 = 2 * SECOND_NS;
/// Longest pause between two requests to resolve the same neighbour.
const RESOLVE_MAX_NS: u64 = 30 * SECOND_NS;
/// Between two turns of requests to resolve.
const RESOLVE_TURN_NS: u64 = SECOND_NS / 100;
/// A policer's drops are in `status` for so long.
const ALARM_NS: u64 = 30 * SECOND_NS;
/// Requests to the kernel in one turn.
const USES: usize = 256;
/// Neighbours waited for at most; those beyond are resolved by their own packets.
const UNRESOLVED_MAX: usize = 65536;
/// Entries of one FDB dump at most: beyond, the rest is read by the next one.
const FDB_MAX: usize = 1 << 20;

/// Addresses remembered as the chip's own at most, before those that are gone are looked for.
const OWN_MAX: usize = 1 << 20;

/// The core's own commands.
const ACT_NEIGH: u64 = OWN | 1;
const ACT_NEXTHOP: u64 = OWN | 2;
const FDB: u64 = OWN | 3;
const FORGET: u64 = OWN | 4;

#[derive(Clone, Copy, Debug)]
struct Resolve {
    next_ns: u64,
    pause_ns: u64,
}

#[derive(Debug, Default)]
enum FdbRead {
    #[default]
    Idle,
    /// Entries so far, and how far that is.
    Running(Vec<raw::tnd_fdb>, Pages),
}

/// State of the upkeep.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    unresolved: BTreeMap<(u32, IpAddr), Resolve>,
    /// No neighbour is due before.
    resolve_ns: u64,
    activity_ns: u64,
    /// How far the reading of hit bits has come, by its number.
    activity: BTreeMap<u64, Pages>,
    /// The chip's FDB is to be read.
    pub read_fdb: bool,
    /// What is to be done before it is read.
    settling: Option<Settling>,
    pub events_lost_seen: u64,
    fdb: FdbRead,
    /// Learned in the kernel, not in the chip by the last dump: (bridge, mac).
    suspects: HashSet<FdbKey>,
    /// Drops of the chip's last policers: counted so far, in the last interval, when.
    policed: [(u64, u64, u64); raw::TND_TC_COUNT as usize],
    /// The same of packets of the kernel that the chip did not take.
    refused: (u64, u64, u64),
    /// NTF_USE sent.
    pub uses: u64,
    /// FDB dumps done.
    pub fdb_reads: u64,
}

impl Upkeep {
    pub(super) fn device_lost(&mut self) {
        self.activity.clear();
        self.fdb = FdbRead::Idle;
        self.suspects.clear();
    }

    pub(super) fn rows(&self) -> BTreeMap<&'static str, u64> {
        BTreeMap::from([
            ("neighbours_unresolved", self.unresolved.len() as u64),
            ("neighbours_used", self.uses),
            ("fdb_reads", self.fdb_reads),
        ])
    }

    /// When the next thing is due; `chip`: there is one that is asked for hit bits.
    pub(super) fn next(&self, now: u64, chip: bool) -> Option<u64> {
        let resolve = (!self.unresolved.is_empty()).then_some(self.resolve_ns);
        let activity = (chip && self.activity.is_empty()).then_some(self.activity_ns);
        resolve
            .into_iter()
            .chain(activity)
            .min()
            .map(|t| t.max(now))
    }
}

impl Core {
    pub(super) fn upkeep(&mut self, now: u64) {
        self.resolve(now);
        if self.shadow.appeared | self.plant.marks_doubtful() {
            self.look_after_marks();
        }
        if self.control.is_none() || self.phase != super::Phase::Steady {
            return;
        }
        if now >= self.upkeep.activity_ns && self.upkeep.activity.is_empty() {
            self.upkeep.activity_ns = now + ACTIVITY_NS;
            // what one change has to say comes within milliseconds
            let before = now.saturating_sub(SECOND_NS);
            for source in self.sources.iter() {
                self.store.told_before(source.id(), before);
            }
            self.policed(now);
            self.look_after_marks();
            let mut view = self.view.lock();
            if view.own_len() > OWN_MAX {
                view.only_own(self.shadow.learned.iter().copied());
            }
            drop(view);
            for (token, cls) in [
                (ACT_NEIGH, raw::TND_CLS_NEIGH),
                (ACT_NEXTHOP, raw::TND_CLS_NEXTHOP),
            ] {
                if self.ask(token, raw::TND_OP_ACTIVITY, cls, 0, now) {
                    self.upkeep.activity.insert(token, Pages::default());
                }
            }
        }
        if !self.upkeep.read_fdb || !matches!(self.upkeep.fdb, FdbRead::Idle) {
            return;
        }
        // domains are known when the store has done what it had to do by now
        let store = &self.store;
        let settling = &mut self.upkeep.settling;
        if store.has_settled(settling.get_or_insert_with(|| store.settling())) {
            self.upkeep.settling = None;
            self.upkeep.read_fdb = false;
            if self.ask(FDB, raw::TND_OP_DUMP, raw::TND_CLS_FDB, 0, now) {
                self.upkeep.fdb = FdbRead::Running(Vec::new(), Pages::default());
            } else {
                self.upkeep.read_fdb = true;
            }
        }
    }

    /// Front-panel ports of this namespace whose forward mark is not there.
    pub(crate) fn unmarked(&mut self) -> Vec<(u32, String)> {
        let mut missing = Vec::new();
        let ports: Vec<u32> = self.plant.ports().iter().map(|p| p.ifindex).collect();
        for ifindex in ports {
            let Some(link) = self.store.link(ifindex) else {
                continue;
            };
            if !self.plant.is_marked(ifindex) {
                missing.push((ifindex, link.name.clone()));
            }
        }
        missing
    }

    /// Without the mark, what the chip has forwarded leaves a second time.
    fn look_after_marks(&mut self) {
        self.shadow.appeared = false;
        let ports: Vec<u32> = self.plant.ports().iter().map(|p| p.ifindex).collect();
        for ifindex in ports {
            let Some(name) = self.store.link(ifindex).map(|l| l.name.clone()) else {
                continue;
            };
            let text = format!(
                "{name}: another program stands before tandem_mark or tandem_once: what it accepts may leave twice"
            );
            let fault = self.plant.mark_fault(ifindex);
            if fault == Some(Fault::Missing) {
                match self.plant.mark(ifindex) {
                    Ok(()) => tracing::warn!("{name}: the forward mark was gone: attached again"),
                    Err(e) => self.warn(format!("{name}: forward mark: {e}")),
                }
            }
            if fault == Some(Fault::NotFirst) {
                self.warn(text);
            } else {
                self.warnings.retain(|w| *w != text);
            }
        }
    }

    /// Deletes what the chip has learned and the store knows nothing of.
    pub(super) fn forget_station(&mut self, fid: u16, mac: [u8; 6], now: u64) {
        let body = raw::tnd_fdb {
            struct_size: size_of::<raw::tnd_fdb>() as u16,
            fid,
            mac,
            ..Default::default()
        };
        let request = Request {
            op: raw::TND_OP_DELETE,
            cls: raw::TND_CLS_FDB,
            body: body.as_bytes(),
            ..Default::default()
        };
        self.own(FORGET, &request, now);
    }

    fn ask(&mut self, token: u64, op: u16, cls: u16, cursor: u64, now: u64) -> bool {
        let request = Request {
            op,
            cls,
            arg: cursor,
            output: true,
            ..Default::default()
        };
        self.own(token, &request, now)
    }

    /// Posts a command of the core's own.
    fn own(&mut self, token: u64, request: &Request<'_>, now: u64) -> bool {
        let Some(control) = &mut self.control else {
            return false;
        };
        match control.post(0, token, request, now) {
            Ok(()) => {
                control.flush();
                true
            }
            Err(PostError::Corrupt(e)) => {
                self.lose(&e.to_string());
                false
            }
            Err(_) => false,
        }
    }

    /// Gateways that nobody has resolved yet.
    fn resolve(&mut self, now: u64) {
        for w in self.store.take_wanted() {
            let key = (w.ifindex, w.addr);
            if !w.needed || w.resolved {
                self.upkeep.unresolved.remove(&key);
            } else if self.upkeep.unresolved.len() < UNRESOLVED_MAX {
                self.upkeep.unresolved.entry(key).or_insert(Resolve {
                    next_ns: now,
                    pause_ns: SECOND_NS,
                });
                self.upkeep.resolve_ns = now;
            }
        }
        if self.upkeep.unresolved.is_empty() || now < self.upkeep.resolve_ns {
            return;
        }
        let mut due = Vec::new();
        let mut earliest = u64::MAX;
        for (key, r) in &mut self.upkeep.unresolved {
            if r.next_ns <= now && due.len() < USES {
                r.next_ns = now + r.pause_ns;
                r.pause_ns = (r.pause_ns * 2).min(RESOLVE_MAX_NS);
                due.push(*key);
            }
            earliest = earliest.min(r.next_ns);
        }
        // those that did not get their turn: soon, not at once
        self.upkeep.resolve_ns = earliest.max(now + RESOLVE_TURN_NS);
        for (ifindex, addr) in due {
            self.use_neighbour(ifindex, addr);
        }
        self.write_back();
    }

    fn use_neighbour(&mut self, ifindex: u32, addr: IpAddr) {
        self.upkeep.uses += 1;
        self.writes.push(Write::NeighUse { ifindex, addr });
    }

    /// One of the core's own commands was answered.
    pub(super) fn own_done(
        &mut self,
        token: u64,
        cpl: &raw::tnd_cpl,
        output: &[u8],
        now: u64,
    ) -> Option<(u64, u16, u16, u64)> {
        let ok = cpl.status == raw::TND_ST_OK;
        let more = |pages: &mut Pages| match ok {
            true => pages.goes_on(cpl.result),
            false => Ok(false),
        };
        match token {
            ACT_NEIGH | ACT_NEXTHOP => {
                let used = self.used(token, output);
                for (ifindex, addr) in used {
                    self.use_neighbour(ifindex, addr);
                }
                self.write_back();
                // one without an end ends here, and begins anew at its time
                if self.upkeep.activity.get_mut(&token).map(more) == Some(Ok(true)) {
                    return Some((token, cpl.op, cpl.cls, cpl.result));
                }
                self.upkeep.activity.remove(&token);
            }
            FDB => {
                let FdbRead::Running(entries, pages) = &mut self.upkeep.fdb else {
                    return None;
                };
                entries.extend(records::<raw::tnd_fdb>(output).map(|(e, _)| e));
                let more = more(pages);
                if more == Ok(true) && entries.len() < FDB_MAX {
                    return Some((token, cpl.op, cpl.cls, cpl.result));
                }
                let entries = std::mem::take(entries);
                self.upkeep.fdb = FdbRead::Idle;
                if let Err(why) = more {
                    // what it lacks says nothing: it is read again when there is a reason
                    self.warn(format!("the ASIC's FDB can't be read: {why}"));
                } else if ok {
                    self.compare_fdb(&entries, now);
                } else {
                    self.upkeep.read_fdb = true;
                }
            }
            _ => self.questions.done(token, cpl, output),
        }
        None
    }

    /// Looks whether the chip's last policers dropped: that is CPU traffic beyond its rate. And whether the chip took all that
    /// the kernel sent.
    fn policed(&mut self, now: u64) {
        let upkeep = &mut self.upkeep;
        let counters = (upkeep.policed.iter_mut().zip(&self.io_stats.policed))
            .chain([(&mut upkeep.refused, &self.io_stats.tx_refused)]);
        for ((seen, lately, at), counter) in counters {
            let count = counter.load(std::sync::atomic::Ordering::Relaxed);
            if count != *seen {
                *lately = count.wrapping_sub(*seen);
                *at = now;
                *seen = count;
            }
        }
    }

    /// One line for each trap class that lost packets lately, and one if the chip did not take the kernel's.
    pub(crate) fn alarms(&self, now: u64) -> Vec<String> {
        let recent = |(_, lately, at): &(u64, u64, u64)| *lately > 0 && now < *at + ALARM_NS;
        let (seen, lately, _) = self.upkeep.refused;
        let origin = self.plant.names().origin;
        let refused = recent(&self.upkeep.refused).then(|| {
            format!(
                "packets of {origin} are longer than the chip takes, or faster: {lately} lost within 2 s, {seen} in all"
            )
        });
        let undeletable = Some(self.store.undeletable()).filter(|n| *n > 0 && self.store.idle());
        let undeletable = undeletable.map(|n| {
            format!(
                "{n} objects that nobody wants any more stay in the chip: something there still refers to them"
            )
        });
        let what = [
            "link protocols",
            "routing protocols and own addresses",
            "packets to unresolved neighbours",
            "packets of what is not in hardware",
            "ARP, neighbour discovery and multicast memberships",
            "packets of flow ports",
        ];
        what.iter()
            .zip(&self.upkeep.policed)
            .filter(|(_, counter)| recent(counter))
            .map(|(what, (seen, lately, _))| {
                format!(
                    "{what} come faster than the CPU's policer lets through: {lately} dropped within 2 s, {seen} in all (tandem show traps)"
                )
            })
            .chain(refused)
            .chain(undeletable)
            .collect()
    }

    /// Goes on with a dump that [`own_done`](Self::own_done) wants to go on with.
    pub(super) fn go_on(&mut self, next: (u64, u16, u16, u64), now: u64) {
        let (token, op, cls, cursor) = next;
        if !self.ask(token, op, cls, cursor, now) {
            self.own_lost(token);
        }
    }

    /// One of the core's own commands was not answered.
    pub(super) fn own_lost(&mut self, token: u64) {
        match token {
            ACT_NEIGH | ACT_NEXTHOP => {
                self.upkeep.activity.remove(&token);
            }
            FDB => {
                self.upkeep.fdb = FdbRead::Idle;
                self.upkeep.read_fdb = true;
            }
            _ => self.questions.timed_out(token),
        }
    }

    /// Neighbours that the chip used and that the kernel has not confirmed lately.
    fn used(&self, token: u64, output: &[u8]) -> Vec<(u32, IpAddr)> {
        let mut used = HashSet::new();
        let mut note = |w: Option<tandem_store::Wanted>| {
            let Some(w) = w.filter(|w| w.needed && w.resolved) else {
                return;
            };
            let state = self.store.neighbour_state(w.ifindex, w.addr);
            let stale = state.is_some_and(|state| state & nud::STALE != 0);
            if stale && used.len() < USES {
                used.insert((w.ifindex, w.addr));
            }
        };
        if token == ACT_NEIGH {
            for (n, _) in records::<raw::tnd_neigh>(output) {
                note(addr_of(&n).and_then(|a| self.store.host_neighbour(n.rif, a)));
            }
        } else {
            for (n, _) in records::<raw::tnd_nexthop>(output) {
                note(self.store.nexthop_neighbour(n.nexthop));
            }
        }
        used.into_iter().collect()
    }

    /// The chip's FDB against the kernel's learned entries.
    fn compare_fdb(&mut self, entries: &[raw::tnd_fdb], now: u64) {
        self.upkeep.fdb_reads += 1;
        let mut there = HashSet::new();
        for e in entries {
            let somebodys = raw::TND_FDB_STATIC | raw::TND_FDB_NO_AGE;
            let forward = e.action == raw::TND_ACT_FORWARD && e.flags & somebodys == 0;
            let place = self.store.fdb_place(e.fid, e.port);
            let Some((domain, ifindex)) = place.filter(|_| forward) else {
                continue;
            };
            let key = FdbKey {
                bridge: domain.dev,
                vlan: domain.vlan,
                mac: e.mac,
            };
            there.insert(key);
            if self.shadow.kernel_learns(domain.dev) && e.flags & raw::TND_FDB_LEARNED == 0 {
                continue; // the kernel's own, and still to be counted by it
            }
            if self.shadow.place(&key, &self.store) == Some(ifindex) {
                continue;
            }
            let event = Event::Learn {
                fid: e.fid,
                mac: e.mac,
                port: e.port,
            };
            let meaning = self.view.lock().meaning(&event);
            if let Meaning::Write(w) = meaning {
                self.writes.push(w);
                if let Some(d) = device_event(&event) {
                    let _ = self.store.device_event(d, now);
                }
            }
        }
        self.write_back();
        // an entry may move while the table is read: only what is missing twice is gone
        let missing: HashSet<FdbKey> = self
            .shadow
            .learned
            .iter()
            .filter(|key| !there.contains(key) && self.store.fdb_stands(key))
            .copied()
            .collect();
        let before = std::mem::take(&mut self.upkeep.suspects);
        let (gone, new): (Vec<_>, Vec<_>) = missing.into_iter().partition(|k| before.contains(k));
        if !new.is_empty() {
            self.upkeep.suspects = new.into_iter().collect();
            self.upkeep.read_fdb = true;
        }
        for key in gone {
            let Some(ifindex) = self.shadow.place(&key, &self.store) else {
                continue;
            };
            self.writes.push(Write::FdbAged {
                ifindex,
                mac: key.mac,
                vlan: key.vlan,
            });
        }
        self.write_back();
    }
}

fn addr_of(n: &raw::tnd_neigh) -> Option<IpAddr> {
    match usize::from(n.family) {
        f if f == raw::TND_AF_INET as usize => {
            let [a, b, c, d, ..] = n.addr;
            Some(IpAddr::from([a, b, c, d]))
        }
        f if f == raw::TND_AF_INET6 as usize => Some(IpAddr::from(n.addr)),
        _ => None,
    }
}
