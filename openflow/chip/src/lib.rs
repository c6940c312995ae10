// SPDX-License-Identifier: Apache-2.0
//! OpenFlow flows in a switch chip: what `tandem-ofoffload` decides, as commands of the ABI, in an order in which no packet
//! ever has a third answer.
//!
//! ```text
//!   flows ─► Compose: rules ─► Offload: who stands where ─► writes ─► what is wanted, object by object
//!                                                                          │ commands, in one order
//!                               settled, counts, room ◄── answers ◄── Device: one command pair ─► asicd
//! ```
//!
//! # The order
//!
//! Commands are executed in the order of their pair, so the order of the writes is the chip's. But one of them may fail,
//! and those behind it are under way. So a write that *opens* (makes an entry answer by itself, or takes something away
//! that was in front) waits until all unanswered writes that some packet of it meets are confirmed; one that *closes*
//! (traps) never waits. Flows of different packets, which most are, wait for nobody.
//!
//! # Trust
//!
//! ```text
//!            a write is refused, its answer is lost
//!   whole ──────────────────────────────────────────► trapping: TRAP_ALL of all ports
//!     ▲                                                  │ confirmed: every answer is the software's
//!     │ confirmed                                        ▼
//!   opening ◄── nothing is left to write ── mending: all that is not sure is deleted and written anew
//!                                              │ refused again        ▲
//!                                              └──► trapped ──────────┘ 1, 2, 4 … 64 s
//!   device dead, TRAP_ALL not confirmed ──► lost: the owner attaches cold; everything is written anew
//! ```
//!
//! Nothing here reads a clock, sleeps or knows sockets.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod ahead;
mod counts;
mod explain;
mod flow;
mod groups;
mod lookups;
mod measure;
mod pairs;
mod part;
mod parting;
mod ports;
mod profile;
mod room;
mod row;
mod setup;
mod silence;
#[cfg(test)]
mod tests;
mod totals;
mod turn;
mod uses;
mod want;
mod warm;

pub use ahead::Ahead;
pub use counts::{Counted, Past, Tally, Unwritten};
pub use explain::{Explained, Others, Ruled};
pub use part::{Part, Slice, parts};
pub use ports::{May, PortOf};
pub use profile::{Lookup, Unfit};
pub use setup::{AttachError, Setup};
pub use tandem_ofcompose::Limits;
pub use tandem_ofoffload::{Act, PortMask, Rewrite, Second, Share, Tagging, Usage, Wanted};

use std::collections::{BTreeSet, VecDeque};

use foldhash::HashMap;
use tandem_abi::object::fixed;
use tandem_abi::raw;
use tandem_ofcompose::{Compose, FlowId, RuleId};
use tandem_ofoffload::{MacKey, Offload, Write};
use tandem_openflow::Version;
use tandem_sal::{Device, Request, SalError};

use counts::Counts;
use groups::Groups;
use lookups::Lookups;
use measure::Measure;
use parting::Parting;
use ports::{PortIs, Ports};
use profile::Known;
use room::{Room, release};
use silence::Silence;
use totals::Totals;
use uses::Uses;
use want::{Command, Row, Scope, Target, Want};

/// Steps that wait, above which no further change should be brought.
const BUSY: usize = 4096;

/// What a command that is under way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Write(Target),
    Port,
    /// The last question to a counter; whether its end is queued behind it.
    Last(u32, bool),
    /// A page of all ports' counters, of all rows'.
    ReadPorts,
    Read,
    Lease,
    Release,
    Sign,
}

#[derive(Clone, Debug)]
struct Step {
    what: What,
    scope: Scope,
    opens: bool,
    command: Command,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    token: u64,
    what: What,
    scope: Scope,
    /// Posted before the chip was no longer trusted: whatever its answer is, it is written anew.
    void: bool,
}

/// How far the chip is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Trust {
    Whole,
    Opening,
    Trapping,
    Mending,
    Trapped {
        retry_ns: u64,
    },
    /// `gone`: it has ended, and with it all that it held.
    Lost {
        why: String,
        gone: bool,
    },
}

/// What has gone wrong, and what was done, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Troubles {
    pub refused: u64,
    pub unanswered: u64,
    pub mended: u64,
    pub attaches: u64,
}

/// A chip that a switch's flows stand in.
pub struct Chip {
    known: Known,
    setup: Setup,
    ports: Ports,
    compose: Compose,
    /// The flows of each rule, as they count.
    flows_of: HashMap<RuleId, Vec<FlowId>>,
    groups: Groups,
    /// Rules of two forms.
    formed: BTreeSet<RuleId>,
    /// Are the ports to ask for sources?
    asks: bool,
    /// Who is a member of which domain changes: all goes to the CPU meanwhile.
    shut: bool,
    /// What was cut is not looked at again before.
    settle_ns: u64,
    offload: Offload,
    device: Option<Box<dyn Device>>,
    pair: usize,
    want: Want,
    miss: Act,
    queue: VecDeque<Step>,
    flights: Vec<Flight>,
    token: u64,
    trust: Trust,
    /// What may be otherwise in the chip than it is wanted.
    dirty: BTreeSet<Target>,
    parting: Parting,
    backoff_ns: u64,
    room: Room,
    lines: u32,
    /// Of those that classify.
    class_lines: u32,
    /// Groups of packets that leave in two forms, as many as there are lines for.
    form_groups: u32,
    counts: Counts,
    uses: Uses,
    /// As of the last turn.
    now_ns: u64,
    /// When something was posted last.
    posted_ns: u64,
    silence: Silence,
    totals: Totals,
    /// Ports that were its own, until the chip knows.
    leaving: BTreeSet<u8>,
    lookups: Lookups,
    measure: Measure,
    troubles: Troubles,
}

impl std::fmt::Debug for Chip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chip")
            .field("profile", &self.setup.profile)
            .field("trust", &self.trust)
            .field("queue", &self.queue.len())
            .field("flights", &self.flights.len())
            .finish_non_exhaustive()
    }
}

impl Chip {
    /// A chip that is not attached yet: all flows are the software's.
    ///
    /// # Errors
    /// No tables are known for the profile.
    pub fn new(setup: Setup) -> Result<Chip, Unfit> {
        let slice = profile::domains(&setup.profile, setup.lookup, setup.slice);
        let setup = Setup { slice, ..setup };
        let (classes, forms) = (setup.classes, setup.has_forms());
        let known = profile::known(&setup.profile, setup.lookup, slice, classes, forms)?;
        let chains = Limits {
            forms: known.has_forms(),
            ..setup.chains
        };
        let setup = Setup { chains, ..setup };
        let ports = Ports {
            list: setup.ports.iter().map(|p| (*p, May::default())).collect(),
            local: setup.local,
            none: false,
        };
        let (compose, first) = flow::compose(&setup, &ports);
        let mut chip = Chip {
            offload: known.empty(),
            room: Room::new(known.mac_part(slice)),
            compose,
            flows_of: HashMap::default(),
            groups: Groups::default(),
            formed: BTreeSet::new(),
            asks: false,
            shut: false,
            settle_ns: 0,
            known,
            ports,
            setup,
            device: None,
            pair: 0,
            want: Want::new(slice),
            miss: Act::Cpu,
            queue: VecDeque::new(),
            flights: Vec::new(),
            token: slice.token(),
            trust: Trust::Lost {
                why: "not attached yet".into(),
                gone: false,
            },
            dirty: BTreeSet::new(),
            parting: Parting::default(),
            backoff_ns: 0,
            lines: 0,
            class_lines: 0,
            form_groups: 0,
            counts: Counts::new(slice),
            uses: Uses::default(),
            now_ns: 0,
            posted_ns: 0,
            silence: Silence::default(),
            totals: Totals::default(),
            leaving: BTreeSet::new(),
            lookups: Lookups::default(),
            measure: Measure::default(),
            troubles: Troubles::default(),
        };
        for rules in first {
            chip.decide(rules);
        }
        Ok(chip)
    }

    /// A cold attach was made: all is written anew, and nothing but this may write there.
    ///
    /// # Errors
    /// The device does not tell its sizes, or they are too small for this use.
    pub fn attach(&mut self, mut device: Box<dyn Device>, now_ns: u64) -> Result<(), AttachError> {
        let (_, out) = device.call(
            "snapshot",
            &Request {
                op: raw::TND_OP_SNAPSHOT,
                output: true,
                ..Default::default()
            },
        )?;
        let sizes = self.known.sizes(fixed::<raw::tnd_pool>(&out))?;
        profile::check(self.setup.lookup, &self.setup.profile, &sizes)?;
        self.begins(&mut *device, &sizes, now_ns)?;
        self.counts.emptied(now_ns);
        self.device = Some(device);
        self.need_vlans();
        self.dirty = self.want.all().collect();
        self.trust = Trust::Trapping;
        self.write_ports(true);
        self.lookups.ends();
        self.resize();
        Ok(())
    }

    /// An attach: sizes, ports' counters, and nothing that is left of the last one.
    fn begins(
        &mut self,
        device: &mut dyn Device,
        sizes: &profile::Sizes,
        now_ns: u64,
    ) -> Result<(), AttachError> {
        (self.now_ns, self.posted_ns) = (now_ns, now_ns);
        // One that has begun anew says so by these, while they are small
        match device.dump(|stats: raw::tnd_port_stats, _| self.totals.tell(stats)) {
            Ok(()) => self.lookups.sees(Some(self.kept())),
            Err(SalError::Refused { .. }) => self.lookups.sees(None), // a device may not tell
            Err(e) => return Err(e.into()),
        }
        self.leaving.clear();
        self.pair = usize::from(device.limit(1) > 0);
        let slice = self.setup.slice;
        let mut fixed = self.guards();
        fixed.extend(self.want.rows.get(&row::LAST_ROW).map(|r| r.entry));
        let fixed = self.known.guard_lines(&fixed);
        self.lines = slice.part(sizes.lines).saturating_sub(fixed);
        self.class_lines = slice
            .part(sizes.class)
            .saturating_sub(self.known.class_fixed());
        // A line for each of the ports, however many of them a flow goes to
        let ports = self.ports.list.len().max(1) as u32;
        self.form_groups = slice.part(sizes.forms) / ports;
        self.counts.size = slice.part(sizes.counters);
        self.room.void();
        self.queue.clear();
        self.flights.clear();
        self.silence = Silence::default();
        self.troubles.attaches += 1;
        Ok(())
    }

    /// The domains of what is wanted, and no others.
    fn need_vlans(&mut self) {
        let want = &self.want;
        let entries = want.macs.keys().map(|k| want.fid(k.vlan));
        let members = want.members.keys().map(|(_, vid)| want.fid_of(*vid));
        let own = [self.setup.slice.fid()].into_iter();
        self.want.vlans = own.chain(entries).chain(members).collect();
    }

    /// Is it to be attached, cold? Why.
    pub fn lost(&self) -> Option<&str> {
        match &self.trust {
            Trust::Lost { why, .. } => Some(why),
            _ => None,
        }
    }

    /// Does it answer nothing, though it is attached? It may forward on.
    pub fn is_silent(&self) -> bool {
        self.silence.is()
    }

    /// What the tables speak.
    pub fn version(&self) -> Version {
        self.setup.version
    }

    /// The tables are those of another version, and empty.
    pub fn begin(&mut self, version: Version) {
        let guards = (0..self.guards().len() as u32).map(Target::Row);
        let counters: Vec<u32> = self.counts.ids().collect();
        self.offload = self.known.empty();
        let want = self.want.begin();
        self.counts.clear();
        self.uses.clear();
        self.miss = Act::Cpu;
        self.setup.version = version;
        // The guards are others: there is no moment without them if all is written anew
        let old = guards.chain(want.all()).chain(self.want.all());
        let old: Vec<Target> = old
            .chain(counters.into_iter().map(Target::Counter))
            .collect();
        self.start_over(old.into_iter());
        self.lookups = Lookups::default();
        self.measure = Measure::default();
        let (compose, first) = flow::compose(&self.setup, &self.ports);
        self.compose = compose;
        self.flows_of.clear();
        self.formed.clear();
        self.groups = Groups::default();
        self.asks = false;
        for rules in first {
            self.decide(rules);
        }
    }

    /// OpenFlow's number of a port of the chip.
    pub fn number(&self, port: u16) -> Option<u32> {
        self.ports.number(port)
    }

    /// The chip's number of a port.
    pub fn port(&self, number: u32) -> Option<u16> {
        self.ports.chip(number)
    }

    /// Is every answer of the chip that of the tables as they are, or the CPU?
    pub fn is_settled(&self) -> bool {
        self.is_settled_to(self.mark())
    }

    /// Behind everything that was written: the token of the step that is queued next.
    pub fn mark(&self) -> u64 {
        self.token + self.queue.len() as u64
    }

    /// The same of the tables as they were at a mark, whatever was written behind it.
    pub fn is_settled_to(&self, mark: u64) -> bool {
        match self.trust {
            Trust::Whole | Trust::Opening => {
                let before = mark.saturating_sub(self.token) as usize;
                let waits = self.queue.iter().take(before).map(|s| &s.scope);
                let flies = self.flights.iter().filter(|f| f.token < mark);
                let mut all = waits.chain(flies.map(|f| &f.scope));
                all.all(|s| *s == Scope::Nothing)
            }
            // Every frame goes to the CPU
            Trust::Mending | Trust::Trapped { .. } => true,
            Trust::Trapping => false,
            // It may forward on, unless it has ended
            Trust::Lost { gone, .. } => gone,
        }
    }

    /// Does it answer by itself?
    pub fn is_open(&self) -> bool {
        matches!(self.trust, Trust::Whole)
    }

    /// Should no further change be brought for now? Many writes wait, or it is not known yet whether there is room for
    /// one more.
    pub fn is_busy(&self) -> bool {
        self.queue.len() > BUSY || self.leases() && self.room.is_due(self.want.macs.len() as u32)
    }

    /// Is more room asked for, where there is some?
    fn leases(&self) -> bool {
        let size = self.known.chip.mac.map_or(0, |m| m.size as usize);
        self.writes_now() && self.want.macs.len() < size
    }

    /// How full it is.
    pub fn usage(&self) -> Usage {
        self.offload.usage()
    }

    /// Counters of rows that are taken, and those that there are.
    pub fn counters(&self) -> (u32, u32) {
        (self.counts.used(), self.counts.size)
    }

    /// Do all frames go to the CPU, as the tables are not asked or fragments are dropped?
    pub fn is_none(&self) -> bool {
        self.ports.none
    }

    /// What has gone wrong.
    pub fn troubles(&self) -> Troubles {
        self.troubles
    }

    // -- counters

    /// Asks for a read of all counters: the number that [`Chip::read_done`] has when it is done.
    pub fn read(&mut self) -> u64 {
        self.counts.wanted += 1;
        self.counts.wanted
    }

    /// The last read that was done.
    pub fn read_done(&self) -> u64 {
        self.counts.done
    }

    /// Flows that packets met in the chip, and when at the latest, since this was asked last.
    pub fn take_used(&mut self) -> Vec<(FlowId, u64)> {
        let mut used = self.counts.take_used();
        used.retain(|(id, _)| !lookups::is_table(*id) && !groups::is_group(*id));
        used
    }

    /// May packets meet a flow in the chip at this moment, where nothing tells of them? Then it is not idle.
    pub fn is_busy_with(&self, id: FlowId) -> bool {
        self.lost().is_none() && self.uses.is_busy(id)
    }

    /// The same of flows that it ended for, and when: they were perhaps used until then.
    pub fn take_ended(&mut self) -> Vec<(FlowId, u64)> {
        self.uses.take_used()
    }

    /// Flows whose next packet is to be told to [`Chip::met`]: their entries trap until then.
    pub fn take_asks(&mut self) -> Vec<FlowId> {
        self.uses.take_asks()
    }

    /// Packets have met these flows in software.
    pub fn met(&mut self, flows: &[FlowId]) {
        let rules = self.uses.met(flows);
        self.ask(&rules, false);
    }

    /// The sum of a flow that is gone, once its rows' last counts are known.
    pub fn whole(&mut self, tally: Tally) -> Option<Counted> {
        self.counts.whole(tally)
    }

    /// Nobody asks for that sum.
    pub fn forget(&mut self, tally: Tally) {
        self.counts.forget(tally);
    }

    // -- writes

    fn guards(&self) -> Vec<raw::tnd_acl_entry> {
        let table = self.setup.slice.table();
        row::guards(table, self.setup.version, self.known.ports6())
    }

    /// The decision's writes: what is wanted from here on, and the commands for it.
    fn apply(&mut self, writes: Vec<Write>) {
        let mut ask = Vec::new();
        for mut w in writes {
            if let Write::MacPut { flow, act, .. } = &mut w
                && act.real()
                && self.uses.is_stale(&self.timed(*flow))
            {
                *act = Act::Cpu;
                ask.push(*flow);
            }
            self.write(w);
        }
        self.ask(&ask, true);
        for rule in std::mem::take(&mut self.uses.touched) {
            self.stands(rule);
        }
    }

    fn write(&mut self, w: Write) {
        match w {
            Write::RowAdd {
                at,
                flow: rule,
                fields,
                ungrouped,
                act,
                ..
            } => {
                let table = self.setup.slice.table();
                let Some(mut entry) = row::of(table, at, &fields, |p| self.ports.chip(p)) else {
                    // The tables of profile.rs have no such column
                    tracing::error!("a row that the chip has no fields for: {fields:?}");
                    return;
                };
                if ungrouped {
                    entry.mask.group = u8::MAX;
                }
                let scope = Scope::of_row(&fields);
                let mut row = Row {
                    rule,
                    counter: 0,
                    entry,
                    scope,
                };
                self.set_row(&mut row, act);
                self.want.rows.insert(at, row);
                self.push(raw::TND_OP_CREATE, Target::Row(at), scope, act.real());
            }
            Write::RowAct { at, act } => {
                let Some(mut row) = self.want.rows.remove(&at) else {
                    return;
                };
                self.set_row(&mut row, act);
                let scope = row.scope;
                self.want.rows.insert(at, row);
                self.push(raw::TND_OP_UPDATE, Target::Row(at), scope, act.real());
            }
            Write::RowMove { from, to } => {
                let Some(mut row) = self.want.rows.remove(&from) else {
                    return;
                };
                row.entry.priority = to;
                let scope = row.scope;
                // It is to count elsewhere, and does so with a write that comes behind these
                let parts = if row.counter == 0 {
                    row.entry.counter
                } else {
                    0
                };
                self.want.rows.insert(to, row);
                self.push(raw::TND_OP_CREATE, Target::Row(to), scope, true);
                self.part(to, parts);
                self.drop_object(Target::Row(from), scope, true);
            }
            Write::RowDel { at } => {
                let Some(row) = self.want.rows.remove(&at) else {
                    return;
                };
                self.retire(at, row.counter);
                self.drop_object(Target::Row(at), row.scope, true);
            }
            Write::GroupAdd { .. }
            | Write::ClassAdd { .. }
            | Write::ClassAct { .. }
            | Write::ClassDel { .. }
            | Write::FormAdd { .. }
            | Write::FormDel { .. } => self.write_pair(w),
            Write::SetAdd(ports) => {
                let id = self.want.add_set(ports);
                self.push(raw::TND_OP_CREATE, Target::Set(id), Scope::Nothing, false);
            }
            Write::SetDel(ports) => {
                if let Some(id) = self.want.remove_set(ports) {
                    self.drop_object(Target::Set(id), Scope::Nothing, false);
                }
            }
            Write::MacPut { key, act, flow } => {
                if act.real() {
                    self.uncounted(flow);
                }
                self.uses.written(&key);
                self.uses.touched.insert(flow);
                let fid = self.want.fid(key.vlan);
                if self.want.vlans.insert(fid) {
                    self.push(raw::TND_OP_CREATE, Target::Vlan(fid), Scope::Nothing, false);
                }
                let op = match self.want.macs.insert(key, act) {
                    Some(_) => raw::TND_OP_UPDATE,
                    None => raw::TND_OP_CREATE,
                };
                self.push(op, Target::Mac(key), self.scope_of(&key), act.real());
            }
            Write::MacDel(key) => {
                self.uses.written(&key);
                self.want.macs.remove(&key);
                self.drop_object(Target::Mac(key), self.scope_of(&key), true);
            }
            Write::Miss(act) => {
                self.miss = act;
                if let Some(rule) = self.offload.miss_of() {
                    self.uncounted(rule);
                }
                if self.setup.slice.has_mac() {
                    self.write_ports(act.real());
                    return;
                }
                self.want.set_last(act);
                let last = Target::Row(row::LAST_ROW);
                self.push(raw::TND_OP_UPDATE, last, Scope::All, act.real());
            }
        }
    }

    /// A rule answers where nobody counts.
    fn uncounted(&mut self, rule: RuleId) {
        let flows = self.flows_of.get(&rule);
        self.counts.uncounted(flows.map_or(&[][..], Vec::as_slice));
    }

    /// Which packets an entry is about: where sources are asked for, those from its station as well.
    fn scope_of(&self, key: &MacKey) -> Scope {
        if self.asks {
            return Scope::All;
        }
        Scope::of_mac(key)
    }

    fn writes_now(&self) -> bool {
        matches!(self.trust, Trust::Whole | Trust::Opening)
    }

    fn push(&mut self, op: u16, target: Target, scope: Scope, opens: bool) {
        if !self.writes_now() {
            self.soil(target);
            return;
        }
        let Some(mut command) = self.want.write(op, target) else {
            return;
        };
        let mut used_up = None;
        if op == raw::TND_OP_CREATE
            && matches!(target, Target::Mac(_))
            && let Some((lease, last)) = self.room.draw()
        {
            command.flags |= raw::TND_CMD_LEASE;
            command.lease = lease;
            used_up = last.then_some(lease);
        }
        self.queue.push_back(Step {
            what: What::Write(target),
            scope,
            opens,
            command,
        });
        if let Some(lease) = used_up {
            // what it had over is free again, its number too, and its slots if the entries are never written
            self.aside(What::Release, release(lease, 0));
        }
    }

    fn drop_object(&mut self, target: Target, scope: Scope, opens: bool) {
        if !self.writes_now() {
            self.soil(target);
            return;
        }
        if let Some(command) = self.want.delete(target) {
            self.queue.push_back(Step {
                what: What::Write(target),
                scope,
                opens,
                command,
            });
        }
    }

    /// Ports as they are to be; while the chip is not trusted, to the CPU with everything.
    fn write_ports(&mut self, opens: bool) {
        let trap = !self.writes_now() || self.shut;
        if !self.writes_now() && !matches!(self.trust, Trust::Trapping) {
            // They are written when it is open again
            return;
        }
        let is = self.ports_are(trap);
        for p in &self.ports.list {
            let body = self.ports.body(p, is);
            self.queue.push_back(Step {
                what: What::Port,
                scope: Scope::All,
                opens: opens && !trap,
                command: Command::of(raw::TND_OP_UPDATE, &body),
            });
        }
        let leaving: Vec<u8> = self.leaving.iter().copied().collect();
        for port in leaving {
            self.write_nobodys(port);
        }
    }

    fn ports_are(&self, trap: bool) -> PortIs {
        PortIs {
            unaware: self.setup.lookup == Lookup::Address,
            drop: self.miss.real(),
            source: self.asks,
            trap,
        }
    }

    /// A port that is not the switch's any more: down, and no list looks at its frames.
    fn write_nobodys(&mut self, port: u8) {
        for command in ports::nobodys(port, self.known.stages()) {
            self.queue.push_back(Step {
                what: What::Port,
                scope: Scope::All,
                opens: false,
                command,
            });
        }
    }

    /// The decision is told what is promised.
    fn resize(&mut self) {
        if self.offload.usage().class_size != self.class_lines {
            let writes = self.offload.resize_class(self.class_lines);
            self.apply(writes);
        }
        let writes = self.offload.resize_forms(self.form_groups);
        self.apply(writes);
        // What it gives up makes room, and so on; each round has less
        for _ in 0..8 {
            let mac = self.room.size(self.want.macs.len() as u32);
            let u = self.offload.usage();
            if (u.acl_size, u.mac_size) == (self.lines, mac) {
                return;
            }
            let writes = self.offload.resize(self.lines, mac);
            self.apply(writes);
        }
    }
}
