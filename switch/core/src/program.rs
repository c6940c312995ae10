//! From plan to completion.

use std::sync::atomic::Ordering::Acquire;

use tandem_abi::object::read_object;
use tandem_abi::raw;
use tandem_sal::{Outcome, PostError, Request};
use tandem_store::model::FdbKey;
use tandem_store::{Completion, DeviceEvent, Planned, Ring};

use super::{COMPLETIONS, Core, IO_EVENTS, Note};
use crate::io::IoEvent;
use crate::source::Write;
use tandem_sal::Event as SalEvent;

/// Warm attaches in a row that the chip did not take, before a cold one.
const RESYNCS: u8 = 3;

/// Tokens of the core's own commands: the store's have a slot number below 2³² in the low half and
/// never reach this.
pub(super) const OWN: u64 = 0xffff_ffff_0000_0000;

impl Core {
    /// Plans, posts, publishes. True: something was posted, or there is more to plan.
    pub(super) fn program(&mut self, now: u64) -> bool {
        if self.control.is_none() {
            return false;
        }
        let mut posted = false;
        // one batch a turn: completions and messages get their turn between
        if self.unposted.is_empty() {
            self.planned.clear();
            self.store.plan_some(&mut self.planned, now);
            posted |= self.store.unfinished();
            self.unposted.extend(self.planned.drain(..));
        }
        if self.store.take_resync_failed() {
            self.resyncs_failed += 1;
            // what a warm attach can't bring about, a cold one does
            self.cold_next |= self.resyncs_failed >= RESYNCS;
            self.lose("it does not take the replay of its tables");
            return posted;
        }
        if self.resyncs_failed > 0 && self.store.idle() {
            self.resyncs_failed = 0;
        }
        while let Some(p) = self.unposted.pop_front() {
            match self.post(&p, now) {
                Ok(()) => posted = true,
                Err(PostError::Full) => {
                    self.unposted.push_front(p);
                    break;
                }
                Err(PostError::Impossible) => {
                    // answered here, so that the store doesn't wait for ever
                    tracing::error!(op = p.op, cls = p.cls, "a command can't be posted");
                    self.store.complete(
                        p.token,
                        &Completion {
                            status: raw::TND_ST_INVALID,
                            ..Default::default()
                        },
                        now,
                    );
                }
                Err(PostError::Corrupt(e)) => {
                    self.lose(&e.to_string());
                    return posted;
                }
            }
        }
        if let Some(c) = &mut self.control {
            c.flush();
        }
        posted
    }

    fn post(&mut self, p: &Planned, now: u64) -> Result<(), PostError> {
        let Some(control) = &mut self.control else {
            return Err(PostError::Full);
        };
        let pair = match p.ring {
            Ring::Sync => 0,
            Ring::Bulk => 1,
        };
        control.post(
            pair,
            p.token,
            &Request {
                op: p.op,
                cls: p.cls,
                flags: p.flags,
                lease: p.lease,
                arg: 0,
                body: p.body.bytes(),
                output: false,
            },
            now,
        )?;
        let replayed = self.replaying && p.cls == raw::TND_CLS_RIF && p.op != raw::TND_OP_DELETE;
        match p.op {
            raw::TND_OP_BEGIN_RESYNC => self.replaying = true,
            raw::TND_OP_END_RESYNC => self.replaying = false,
            _ => {}
        }
        if let Some(note) = note_of(p).or_else(|| replayed.then_some(Note::Rif)) {
            self.notes.insert(p.token, note);
        }
        Ok(())
    }

    /// Takes completions. True: there were some.
    pub(super) fn completions(&mut self, now: u64) -> bool {
        let Some(mut control) = self.control.take() else {
            return false;
        };
        let mut next = Vec::new();
        let (mut stuck, mut written) = (false, false);
        let result = control.reap(now, COMPLETIONS, &mut |outcome| match outcome {
            Outcome::Done { token, cpl, output } => {
                if token >= OWN {
                    next.extend(self.own_done(token, &cpl, &output, now));
                    return;
                }
                let note = if self.notes.is_empty() {
                    None
                } else {
                    self.notes.remove(&token)
                };
                stuck |= matches!(note, Some(Note::Rif)) && cpl.status == raw::TND_ST_IN_USE;
                if let Some(note) = note
                    && matches!(cpl.status, raw::TND_ST_OK | raw::TND_ST_NOENT)
                {
                    self.noted(note);
                }
                self.store.complete(token, &convert(&cpl), now);
                written = true;
            }
            Outcome::TimedOut { token } => {
                self.notes.remove(&token);
                if token >= OWN {
                    self.own_lost(token);
                } else {
                    self.store.timed_out(token, now);
                }
            }
        });
        self.control = Some(control);
        if written {
            self.confirmed_ns = now;
        }
        for n in next {
            self.go_on(n, now);
        }
        match result {
            // its hosts are keyed by the VRF, so it can't change with any; what refers to it is named again in the same
            // replay, so it never gets rid of them
            Ok(_) if stuck => {
                self.cold_next = true;
                self.lose("a router interface moved to another VRF meanwhile: its tables are written anew");
                true
            }
            Ok(n) => n > 0,
            Err(e) => {
                self.lose(&e.to_string());
                true
            }
        }
    }

    fn noted(&mut self, note: Note) {
        match note {
            Note::Member { port, vid, fid } => {
                self.view.lock().set_member(port, vid, fid);
            }
            Note::Rif => {}
        }
    }

    /// Events of the io thread. True: there were some.
    pub(super) fn io_events(&mut self, now: u64) -> bool {
        let lost = self
            .io_stats
            .events_lost
            .load(std::sync::atomic::Ordering::Relaxed);
        if lost != self.upkeep.events_lost_seen {
            self.upkeep.events_lost_seen = lost;
            self.upkeep.read_fdb = true;
        }
        // what the packet thread finds late is of an attach that is over
        if self.signals.dead.swap(0, Acquire) == self.attaches {
            self.lose("a packet ring is dead");
        }
        // read before the channel: what a barrier follows is in it by now
        let passed = self.signals.passed.load(Acquire);
        let mut n = 0;
        while n < IO_EVENTS {
            let Ok(event) = self.io_events.try_recv() else {
                self.io_barrier(passed);
                break;
            };
            n += 1;
            match event {
                IoEvent::Fdb(event) => {
                    let Some(event) = device_event(&event) else {
                        continue;
                    };
                    // the io thread has written to the kernel already
                    let back = self.store.device_event(event, now);
                    // but not where a person's entry is: only the store knows that it had no room, and its station has
                    // now been learned elsewhere
                    if let (DeviceEvent::Learn { .. }, Some(b)) = (event, back)
                        && self.view.lock().moves(&FdbKey {
                            bridge: b.bridge,
                            vlan: b.vlan,
                            mac: b.mac,
                        })
                    {
                        self.writes.push(Write::FdbLearned {
                            ifindex: b.ifindex,
                            mac: b.mac,
                            vlan: b.vlan,
                        });
                    }
                }
                IoEvent::ReadFdb => self.upkeep.read_fdb = true,
            }
        }
        self.write_back();
        n > 0
    }
}

/// The store's form of an FDB event.
pub(super) fn device_event(e: &SalEvent) -> Option<DeviceEvent> {
    Some(match *e {
        SalEvent::Learn { fid, mac, port } => DeviceEvent::Learn { fid, mac, port },
        SalEvent::Move { fid, mac, port, .. } => DeviceEvent::Move { fid, mac, port },
        SalEvent::Age { fid, mac, port } => DeviceEvent::Age { fid, mac, port },
        _ => return None,
    })
}

fn note_of(p: &Planned) -> Option<Note> {
    if p.cls != raw::TND_CLS_VLAN_MEMBER {
        return None;
    }
    let (m, _) = read_object::<raw::tnd_vlan_member>(p.body.bytes()).ok()?;
    Some(Note::Member {
        port: m.port,
        vid: m.vid,
        fid: (p.op != raw::TND_OP_DELETE).then_some(m.fid),
    })
}

fn convert(cpl: &raw::tnd_cpl) -> Completion {
    let mut c = Completion {
        status: cpl.status,
        table: cpl.table,
        needed: cpl.needed,
        free: cpl.free,
        size: cpl.size,
        result: cpl.result,
        delta_count: u8::try_from(cpl.delta_count).unwrap_or(0),
        ..Default::default()
    };
    for (to, from) in c.deltas.iter_mut().zip(&cpl.delta) {
        *to = (from.pool, from.slots as i32);
    }
    c
}
