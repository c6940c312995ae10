// SPDX-License-Identifier: Apache-2.0
//! The chip with the software behind it, beside the software alone.
//!
//! ```text
//!   frame ─┬─► chip ─► ports                 the same frames out of the same ports,
//!          │     └─ trapped ─► `soft` ─► ports       and counts that add up
//!          └─► `whole` ─► ports
//! ```
//!
//! Between a change and `is_settled` the answer is the one from before or the one from after (`states`).

mod groups;
mod numbers;
mod silence;
mod together;

use super::device::{Fate, Inner, Passed, Shared};
pub use super::seen::Seen;
use super::universe::{self, FIRST};
use crate::{Chip, Counted, Limits, Lookup, May, Past, PortOf, Setup, Share, Slice, Tally};
pub use silence::{heard, hush, tick};
use std::collections::{BTreeMap, BTreeSet};
use tandem_abi::object::fixed;
use tandem_abi::raw;
use tandem_ofpipeline::flows::blank;
use tandem_ofpipeline::stats::FlowStats;
use tandem_ofpipeline::{Change, ChangeKind, Config, Fragments, PacketIn, Port, Sink, Switch};
use tandem_openflow::model::{
    Band, BandType, FlowCommand, FlowMod, GroupMod, MeterCommand, MeterMod, TABLE_ALL, meter_flags,
};
use tandem_openflow::{Error, Version};
use tandem_packet::{Buffer, Frame, Offload};
use tandem_sal::Request;
pub use together::{attach, killed, pass, rest, step};

pub const PORTS: u32 = 4;
const MS: u64 = 1_000_000;

/// What a switch does with a frame: out of which of the chip's ports, and what goes elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub out: Vec<(u16, Vec<u8>)>,
    pub elsewhere: u32,
}

impl Answer {
    fn show(&self, frame: &[u8]) -> String {
        let port = |(p, f): &(u16, Vec<u8>)| match f == frame {
            true => format!("{p}"),
            false => format!("{p}:{f:02x?}"),
        };
        let out: Vec<String> = self.out.iter().map(port).collect();
        format!("[{}]+{}", out.join(","), self.elsewhere)
    }
}

impl Sink for Answer {
    fn output(&mut self, port: u32, _queue: Option<u32>, frame: &Frame<'_>) {
        self.out
            .push(((port - FIRST + 1) as u16, frame.bytes().to_vec()));
    }
    fn packet_in(&mut self, _about: &PacketIn<'_>, _frame: &Frame<'_>) {
        self.elsewhere += 1;
    }
    fn normal(&mut self, _in_port: u32, _frame: &Frame<'_>) {
        self.elsewhere += 1;
    }
}

fn through(switch: &mut Switch, port: u16, frame: &[u8], now: u64) -> Answer {
    let mut answer = Answer::default();
    let mut buffer = Buffer::new();
    if buffer.set(frame) {
        let in_port = FIRST + u32::from(port) - 1;
        switch.process(&mut buffer.frame(Offload::NONE), in_port, now, &mut answer);
    }
    answer.out.sort();
    answer
}

/// A flow that is gone, whose last counts are on their way.
struct Leaving {
    tally: Tally,
    soft: (u64, u64),
    whole: (u64, u64),
}

/// The software's switch without flows.
fn fresh(version: Version, ports: &[Port]) -> Switch {
    let mut s = Switch::new(Config {
        version,
        tables: if version == Version::V10 { 1 } else { 3 },
        cache: 0,
        local: false,
        ..Config::default()
    });
    for p in ports {
        s.set_port(p.clone(), 0);
    }
    if version == Version::V13 {
        let meter = MeterMod {
            command: MeterCommand::Add,
            flags: meter_flags::PKTPS,
            meter: 1,
            bands: vec![Band {
                rate: 1,
                burst: 0,
                kind: BandType::Drop,
            }],
        };
        s.meter_mod(&meter, 0, &mut Vec::new()).unwrap();
        for m in universe::groups() {
            // A port that it watches may be away
            let _ = s.group_mod(&m, 0, &mut Vec::new());
        }
    }
    s
}

pub struct World {
    pub chip: Chip,
    pub device: Shared,
    /// Its ports are the chip's behind this one.
    base: u16,
    /// Gets what the chip traps.
    soft: Switch,
    /// Gets everything.
    whole: Switch,
    /// The switch as it was at each change since all was settled.
    states: Vec<Switch>,
    ports: Vec<Port>,
    down: Vec<u16>,
    /// Taken away.
    gone: Vec<u16>,
    no_fragments: bool,
    pub now: u64,
    /// A cold attach: the ports are not the switch's again yet.
    unseen: bool,
    leaving: Vec<Leaving>,
    /// Flows of which it was not known at each moment whether they were used.
    unsure: BTreeSet<u32>,
    /// Flows that came or changed since all was settled.
    fresh: BTreeSet<u32>,
    /// Or something else did that packets count for.
    others: bool,
    /// The device has ended, and nobody has attached to the next one.
    ended: bool,
    /// Processes so far that were killed.
    kills: u32,
    /// What the next one would find written down.
    kept: Past,
    pub next: Fate,
    /// Commands of this operation are refused, so often.
    pub refuses: (u16, u32),
    log: Vec<String>,
    pub seen: Seen,
}

impl World {
    pub fn new(profile: &str, lookup: Lookup, version: Version) -> World {
        World::within(profile, lookup, version, Limits::default())
    }

    pub fn within(profile: &str, lookup: Lookup, version: Version, chains: Limits) -> World {
        let device = Shared::new(profile);
        let slice = Slice::default();
        let mut w = World::on(&device, slice, profile, lookup, version, chains);
        attach(&mut [&mut w]);
        w
    }

    /// One of several switches on a chip, which is not attached yet. All number their ports alike.
    pub fn on(
        device: &Shared,
        slice: Slice,
        profile: &str,
        lookup: Lookup,
        version: Version,
        chains: Limits,
    ) -> World {
        let base = u16::from(slice.index) * PORTS as u16;
        let ports = (1..=PORTS as u8).map(|p| PortOf {
            number: FIRST + u32::from(p) - 1,
            port: base as u8 + p,
            mac: [2, 0, 0, 0, 1, base as u8 + p],
        });
        let mut chip = Chip::new(Setup {
            profile: profile.into(),
            lookup,
            version,
            ports: ports.collect(),
            local: false,
            chains,
            classes: true,
            slice,
        })
        .unwrap();
        let ports: Vec<Port> = (0..PORTS)
            .map(|n| Port {
                number: FIRST + n,
                live: true,
                ..Port::default()
            })
            .collect();
        let mut soft = fresh(version, &ports);
        let whole = soft.clone();
        soft.watch();
        chip.follow_all(&soft, 1_000_000_000);
        let states = vec![whole.clone()];
        World {
            chip,
            device: device.clone(),
            base,
            soft,
            whole,
            states,
            ports,
            down: Vec::new(),
            gone: Vec::new(),
            no_fragments: false,
            now: 1_000_000_000,
            unseen: true,
            leaving: Vec::new(),
            unsure: BTreeSet::new(),
            fresh: BTreeSet::new(),
            others: false,
            ended: false,
            kills: 0,
            kept: Past::default(),
            next: Fate::Done,
            refuses: (0, 0),
            log: Vec::new(),
            seen: Seen::default(),
        }
    }

    /// Its tables begin anew, empty.
    pub fn begin(&mut self, version: Version) {
        let there = self
            .ports
            .iter()
            .zip(1..)
            .filter(|(_, n)| !self.gone.contains(n));
        let there: Vec<Port> = there.map(|(p, _)| p.clone()).collect();
        self.whole = fresh(version, &there);
        self.soft = self.whole.clone();
        self.soft.watch();
        let config = if self.no_fragments {
            Fragments::Drop
        } else {
            Fragments::Normal
        };
        for s in [&mut self.soft, &mut self.whole] {
            s.set_config(config, 128, false);
        }
        self.log.push(format!("{version:?} begins"));
        self.others = true;
        self.states.push(self.whole.clone());
        self.leaving.clear();
        self.chip.begin(version);
        self.chip.follow_all(&self.soft, self.now);
        self.keep();
        self.settled();
    }

    pub fn inner<T>(&self, f: impl FnOnce(&mut Inner) -> T) -> T {
        f(&mut self.device.lock())
    }

    /// The next command is executed, its answer looked at. False: nothing waits.
    pub fn step(&mut self) -> bool {
        step(&mut [self])
    }

    /// What the chip and the software tell each other of the use of flows.
    fn met(&mut self) {
        let met = self.soft.take_met();
        self.chip.met(&met);
        for (n, used) in self.chip.take_ended() {
            self.soft.used(n, used);
            self.unsure.insert(n);
        }
        for n in self.chip.take_asks() {
            self.soft.ask(n);
        }
    }

    /// What the chip and the software have counted decides who stands where, as often as somebody looks after it.
    fn measure(&mut self) {
        let writes = |c: &Chip| {
            let write = |s: &&crate::Step| matches!(s.what, crate::What::Write(_));
            c.queue.iter().filter(write).count()
        };
        let before = writes(&self.chip);
        self.chip.measure(&self.soft, self.now);
        self.seen.traded += u64::from(writes(&self.chip) > before);
    }

    /// The list has so many lines for flows, until an attach finds out anew.
    pub fn room(&mut self, lines: u32) {
        self.log.push(format!("{lines} lines"));
        self.chip.lines = lines;
        self.chip.resize();
        self.settled();
    }

    /// Steps until all is settled, and no further.
    pub fn settle(&mut self) {
        while !self.chip.is_settled() {
            assert!(self.step(), "{:?}", self.chip);
        }
    }

    /// A turn ends: what is new is written down.
    fn keep(&mut self) {
        self.kept.take(self.chip.take_unwritten());
    }

    fn settled(&mut self) {
        if self.chip.is_settled() {
            self.unseen = false;
            self.fresh.clear();
            self.others = false;
            let last = self.states.len() - 1;
            self.states.drain(..last);
        }
    }

    /// Time until what was not answered is overdue.
    pub fn wait(&mut self) {
        self.now += 6_000_000_000;
        self.chip.turn(self.now);
    }

    /// Until the chip has nothing left to do.
    pub fn rest(&mut self) {
        rest(&mut [self]);
    }

    fn history(&self) -> String {
        let from = self.log.len().saturating_sub(40);
        self.log[from..].join("\n")
    }

    /// What would become of a frame.
    pub fn probe(&mut self, port: u16, frame: &[u8]) {
        if self.unseen || self.down.contains(&port) || self.gone.contains(&port) {
            return;
        }
        // by one that has ended none passes
        if self.chip.lost().is_some() && self.chip.is_settled() {
            return;
        }
        let (now, base) = (self.now, self.base);
        let passed = self.inner(|i| i.look(base + port, frame, now));
        let passed = self.own(passed);
        self.judge(port, frame, &passed);
    }

    /// By its own numbers; what is not its port no answer has.
    fn own(&self, mut passed: Passed) -> Passed {
        for (p, _) in &mut passed.out {
            *p = p.wrapping_sub(self.base);
        }
        passed
    }

    fn judge(&mut self, port: u16, frame: &[u8], passed: &Passed) {
        if !passed.cpu.is_empty() {
            self.seen.trapped += 1;
            assert_eq!(passed.cpu, [frame.to_vec()], "trapped as it came, once");
            assert!(passed.out.is_empty(), "trapped and sent");
            return;
        }
        self.saw(passed, frame);
        let is = Answer {
            out: passed.out.clone(),
            elsewhere: 0,
        };
        let now = self.now;
        let may: Vec<Answer> = self
            .states
            .iter()
            .map(|s| through(&mut s.clone(), port, frame, now))
            .collect();
        assert!(
            may.contains(&is),
            "port {port}, frame {frame:02x?}\nchip {}\nmay  {:?}\nsettled {} {:?}\nflows {:#?}\n{}",
            is.show(frame),
            may.iter().map(|m| m.show(frame)).collect::<Vec<_>>(),
            self.chip.is_settled(),
            self.chip,
            self.flows(),
            self.history()
        );
    }

    fn saw(&mut self, passed: &Passed, frame: &[u8]) {
        let chips = |n| matches!(self.chip.group_share(n), Some(Share::Whole | Share::Part));
        self.seen.grouped += u64::from(self.whole.groups().any(chips));
        if passed.out.is_empty() {
            self.seen.dropped += 1;
            return;
        }
        self.seen.sent += 1;
        self.seen.asked += u64::from(self.chip.asks);
        let writes = !self.chip.want.classes.is_empty();
        let changed = passed.out.iter().any(|(_, f)| f != frame);
        self.seen.written += u64::from(writes && changed);
        self.seen.forms += u64::from(passed.out.iter().any(|(_, f)| f.len() != frame.len()));
        let all = self.whole.flows_of(TABLE_ALL).len();
        self.seen.chained += u64::from(all > self.whole.flows_of(0).len());
    }

    pub fn flows(&self) -> Vec<String> {
        let all = self.whole.flows_of(TABLE_ALL);
        all.iter()
            .filter_map(|n| {
                let f = self.whole.flow(*n)?;
                Some(format!(
                    "{n}: table {} {} {:?} {:?} {}",
                    f.table,
                    f.priority,
                    f.matching.fields,
                    f.instructions,
                    self.chip.why(*n).unwrap_or_default()
                ))
            })
            .collect()
    }

    /// A frame comes in; counted by whoever answers it.
    pub fn send(&mut self, port: u16, frame: &[u8]) {
        let there = !self.down.contains(&port) && !self.gone.contains(&port);
        if self.unseen || !there || self.chip.lost().is_some() {
            return;
        }
        if !self.chip.is_settled() {
            // It counts for the same flows, by whichever of the tables it is answered
            let Some(met) = self.meets(port, frame) else {
                return;
            };
            self.unsure.extend(met);
            self.seen.between += 1;
        }
        // what is no frame the chip's ports count all the same
        if frame.len() < 14 {
            return;
        }
        self.now += MS;
        let now = self.now;
        let base = self.base;
        let passed = self.inner(|i| i.send(base + port, frame, now));
        let passed = self.own(passed);
        self.judge(port, frame, &passed);
        let whole = through(&mut self.whole, port, frame, now);
        let is = match passed.cpu.first() {
            Some(f) => through(&mut self.soft, port, f, now),
            None => Answer {
                out: passed.out,
                elsewhere: 0,
            },
        };
        assert_eq!(is, whole, "port {port}, frame {frame:02x?}");
        self.met();
    }

    /// The flows that a frame meets, if they are the same ones in all tables that may answer.
    fn meets(&self, port: u16, frame: &[u8]) -> Option<Vec<u32>> {
        if self.others {
            return None;
        }
        let met = |s: &Switch| {
            let mut after = s.clone();
            through(&mut after, port, frame, self.now);
            let (before, after) = (Self::counts(s), Self::counts(&after));
            let met = after.into_iter().filter(|(n, c)| before.get(n) != Some(c));
            met.map(|(n, _)| n).collect::<Vec<u32>>()
        };
        let mut all = self.states.iter().map(met);
        let first = all.next()?;
        let same = all.all(|other| other == first)
            && self.fresh.is_disjoint(&first.iter().copied().collect());
        same.then_some(first)
    }

    /// So much time, in which nothing comes; flows that are idle end, and none before its time.
    pub fn pass(&mut self, seconds: u64) {
        pass(&mut [self], seconds);
    }

    fn expire(&mut self) {
        let now = self.now;
        let (soft, whole) = (Self::counts(&self.soft), Self::counts(&self.whole));
        let chip = &self.chip;
        let busy = |n| chip.is_busy_with(n);
        self.soft.expire(now, 1000, busy, &mut Vec::new());
        let changes = self.soft.take_changes();
        for c in &changes {
            let f = self.whole.flow(c.flow).unwrap();
            let idle = now - self.whole.flow_count(c.flow).unwrap().last_ns;
            // a chip that is lost keeps nothing alive
            let early = idle < u64::from(f.idle) * 1000 * MS;
            let early = early && self.chip.troubles().attaches == 1;
            assert!(!early, "{f:?} idle for {idle} ns\n{}", self.history());
            let gone = FlowMod {
                command: FlowCommand::DeleteStrict,
                table: f.table,
                priority: f.priority,
                matching: f.matching.clone(),
                ..blank()
            };
            self.whole.flow_mod(&gone, now, &mut Vec::new()).unwrap();
            self.seen.ended += 1;
        }
        self.states.push(self.whole.clone());
        self.follow(&changes, &soft, &whole);
    }

    fn counts(switch: &Switch) -> BTreeMap<u32, (u64, u64)> {
        let all = switch.flows_of(TABLE_ALL);
        all.iter()
            .filter_map(|n| {
                let s: FlowStats<'_> = switch.flow_count(*n)?;
                Some((*n, (s.packets, s.bytes)))
            })
            .collect()
    }

    fn changed(&mut self, what: String, change: impl Fn(&mut Switch) -> Result<(), Error>) {
        let (soft, whole) = (Self::counts(&self.soft), Self::counts(&self.whole));
        let done = change(&mut self.soft);
        let same = change(&mut self.whole);
        assert_eq!(done.is_ok(), same.is_ok());
        self.log.push(format!("{what} {done:?}"));
        self.states.push(self.whole.clone());
        let changes = self.soft.take_changes();
        self.fresh.extend(changes.iter().map(|c| c.flow));
        self.follow(&changes, &soft, &whole);
    }

    fn follow(
        &mut self,
        changes: &[Change],
        soft: &BTreeMap<u32, (u64, u64)>,
        whole: &BTreeMap<u32, (u64, u64)>,
    ) {
        self.regroup();
        let left = self.chip.follow(&self.soft, changes);
        for c in changes {
            if let ChangeKind::Gone { .. } = c.kind {
                self.kept.flows.remove(&c.flow);
                let counters = self.kept.counters.values_mut();
                counters.for_each(|all| all.retain(|f| *f != c.flow));
            }
        }
        self.keep();
        let gone = changes
            .iter()
            .filter(|c| matches!(c.kind, ChangeKind::Gone { .. }));
        for (c, left) in gone.zip(left) {
            let of = |m: &BTreeMap<u32, (u64, u64)>| m.get(&c.flow).copied().unwrap_or_default();
            let (soft, whole) = (of(soft), of(whole));
            match left {
                Ok(tally) => self.leaving.push(Leaving { tally, soft, whole }),
                Err(c) => World::left(c, soft, whole),
            }
        }
        self.settled();
    }

    fn left(c: Counted, soft: (u64, u64), whole: (u64, u64)) {
        if !c.lost {
            assert_eq!(c.packets + soft.0, whole.0, "packets of a flow that went");
        }
        if !c.lost && !c.lost_bytes {
            assert_eq!(c.bytes + soft.1, whole.1, "bytes of a flow that went");
        }
    }

    pub fn flow_mod(&mut self, m: &FlowMod) {
        let now = self.now;
        let said = format!(
            "{:?} {} {:?} {:?}",
            m.command, m.priority, m.matching.fields, m.instructions
        );
        self.changed(said, |s| s.flow_mod(m, now, &mut Vec::new()));
    }

    pub fn group_mod(&mut self, m: &GroupMod) {
        let now = self.now;
        self.others = true;
        self.changed(format!("{m:?}"), |s| s.group_mod(m, now, &mut Vec::new()));
    }

    /// A port goes, or comes back; at rest, as what was sent there before is of no switch with ports as they are.
    pub fn toggle(&mut self, port: u16) {
        let at = usize::from(port) - 1;
        let number = self.ports[at].number;
        self.log.push(format!("toggle {port}"));
        if !self.gone.contains(&port) {
            self.gone.push(port);
            for s in [&mut self.soft, &mut self.whole] {
                s.remove_port(number);
            }
            self.states.push(self.whole.clone());
            self.regroup();
            let was = self.chip.remove_port(number, &self.soft);
            assert_eq!(was.map(u16::from), Some(self.base + port));
        } else {
            self.gone.retain(|p| *p != port);
            for s in [&mut self.soft, &mut self.whole] {
                s.set_port(self.ports[at].clone(), self.now);
            }
            self.states.push(self.whole.clone());
            let own = (self.base + port) as u8;
            let of = PortOf {
                number,
                port: own,
                mac: [2, 0, 0, 0, 1, own],
            };
            self.chip.add_port(of, &self.soft);
        }
        self.ports_changed();
    }

    /// What a port may do.
    pub fn configure(&mut self, port: u16, receive: bool, send: bool) {
        if self.gone.contains(&port) {
            return;
        }
        let now = self.now;
        let p = &mut self.ports[usize::from(port) - 1];
        (p.no_recv, p.no_fwd) = (!receive, !send);
        self.log.push(format!("{p:?}"));
        for s in [&mut self.soft, &mut self.whole] {
            s.set_port(p.clone(), now);
        }
        self.ports_changed();
    }

    pub fn fragments(&mut self, drop: bool) {
        self.no_fragments = drop;
        let what = [Fragments::Normal, Fragments::Drop][usize::from(drop)];
        for s in [&mut self.soft, &mut self.whole] {
            s.set_config(what, 128, false);
        }
        self.ports_changed();
    }

    fn ports_changed(&mut self) {
        self.others = true;
        self.states.push(self.whole.clone());
        let ports = self.ports.clone();
        let may = |n: u32| {
            let p = &ports[(n - FIRST) as usize];
            May {
                receive: !p.no_recv,
                send: !p.no_fwd,
                flood: true,
            }
        };
        self.regroup();
        self.chip.set_ports(may, self.no_fragments);
        self.keep();
        self.settled();
    }

    /// Slots of all tables that the device has promised and that are not used.
    pub fn promised(&mut self) -> u32 {
        let ask = Request {
            op: raw::TND_OP_SNAPSHOT,
            output: true,
            ..Request::default()
        };
        let device = self.chip.device.as_mut().unwrap();
        let (_, out) = device.call("snapshot", &ask).unwrap();
        fixed::<raw::tnd_pool>(&out).map(|p| p.committed).sum()
    }

    pub fn die(&mut self) {
        self.inner(|i| i.dead = true);
        self.log.push("dead".into());
    }

    /// The device is lost, and until somebody attaches anew flows change. `ended`: it forwards nothing any more; else it may
    /// forward on as it was, so that no barrier is answered.
    pub fn outage(&mut self, flows: &[FlowMod], ended: bool) {
        self.die();
        self.now += MS;
        self.chip.turn(self.now);
        assert!(self.chip.lost().is_some());
        // what has ended comes back by an attach alone
        self.ended |= ended;
        let ended = self.ended;
        if ended {
            self.inner(|i| i.firmware.cold_reset());
            self.chip.gone();
        }
        for m in flows {
            self.flow_mod(m);
            assert_eq!(self.chip.is_settled(), ended, "{}", self.history());
        }
    }

    /// Commands so far that changed what the chip holds.
    pub fn writes(&self) -> u64 {
        self.inner(|i| i.writes)
    }

    /// The next process has the flows.
    fn begins_again(&mut self) {
        self.log.push("killed".into());
        self.leaving.clear();
        self.kills += 1;
        let ports = self.chip.ports.list.iter().map(|(p, _)| *p);
        self.chip = Chip::new(Setup {
            ports: ports.collect(),
            ..self.chip.setup.clone()
        })
        .unwrap();
        // nothing is written down before what was is read
        let kept = self.kept.clone();
        self.ports_changed();
        self.kept = kept;
        self.chip.follow_all(&self.soft, self.now);
        self.chip
            .restore_counts(Some(&self.kept), &self.soft, self.now);
    }

    pub fn read(&mut self) {
        let read = self.chip.read();
        for _ in 0..10_000 {
            if self.chip.read_done() >= read {
                break;
            }
            self.step();
        }
        assert!(self.chip.read_done() >= read, "{:?}", self.chip);
        self.rest();
        for (n, at) in self.chip.take_used() {
            self.soft.used(n, at);
        }
    }
}
