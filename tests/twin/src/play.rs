//! Plays a recording: the switch in the process hears what the kernel said, packets are sent through its chip meanwhile.
//!
//! ```text
//!   step k ─► Kernel ── datagrams, dumps ──► Stepped (listener) ── events ──► Core ── commands ──► Direct ─► Firmware
//!     │          time, turns, losses, restarts: drawn from the variant's seed                         probes ─► pipeline
//!     └─ at a rest: everything is in sync, each probe's answer is the kernel's at k, or the CPU's
//!        between:   each answer is the kernel's at a rest from the last that was all taken in to its newest
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Receiver;
use serde::{Deserialize, Serialize};
use tandem_core::api::audit_own;
use tandem_core::io;
use tandem_core::plant::Front;
use tandem_core::source::Source;
use tandem_core::{Core, Seat, Sources};
use tandem_firmware::Firmware;
use tandem_netlink::{Config, Stepped, Steps};
use tandem_sal::Attach;

use crate::chip::{Faults, Passed, Shared, Sizes};
use crate::hidden;
use crate::kernel::{Clock, Kernel, Prepared};
use crate::paths::queriers;
use crate::random::Random;
use crate::tally::Tally;
use crate::verdict::{
    Case, Surplus, Verdict, Why, is_hidden, judge, judge_early, judge_late, judge_lost, judge_shut,
    surplus,
};
use crate::wired;

/// Turns until a rest at most.
const TURNS: usize = 20_000;
/// Time until a rest at most, ns.
const PATIENCE_NS: u64 = 600_000_000_000;
/// Turns without work in a row before it counts as a rest.
const QUIET: usize = 2;

/// A bridge's own querier is believed so long after the switch has seen it first, ns: the response time that it may have had before,
/// and more (`querier.rs` of the netlink source).
const QUERIER_NS: u64 = 11_000_000_000;

/// How a recording is played.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// All that is drawn on the way follows from it.
    pub seed: u64,
    /// The chip's.
    pub sizes: Sizes,
    /// How its answers go astray.
    pub faults: Faults,
    /// In so many of a thousand steps the switch daemon is killed and starts again; the chip loses its power.
    pub restarts: [u16; 2],
    /// In so many of a thousand steps notifications are lost.
    pub overflows: u16,
    /// Commands that the kernel executes at most before the switch comes to rest.
    pub behind: usize,
    /// Commands that it executes at most while it is asked.
    pub ahead: usize,
    /// Datagrams that are read at once at most.
    pub burst: usize,
    /// Turns of the switch between two rests.
    pub turns: usize,
    /// Probes after each of these turns.
    pub between: usize,
    /// In so many of a thousand cases a probe is sent at a rest.
    pub probes: u16,
    /// At so many of a thousand rests, and at the last one, kernel, store and chip are compared.
    #[serde(default = "always")]
    pub audits: u16,
}

const fn always() -> u16 {
    1000
}

impl Variant {
    /// Any.
    #[must_use]
    pub fn draw(seed: u64) -> Variant {
        let mut r = Random::new(seed);
        let sizes = match r.below(4) {
            0 => Sizes::TINY,
            1 => Sizes::draw(&mut r),
            _ => Sizes::BIG,
        };
        let mut often = |n: usize| match r.below(4) {
            0 => 1 + r.below(n) as u16,
            _ => 0,
        };
        let faults = Faults {
            late: often(300),
            lost: often(50),
            ignored: often(50),
            doubled: often(300),
            refused: often(100),
        };
        let restarts = [often(200), often(100)];
        let overflows = often(200);
        Variant {
            seed,
            sizes,
            faults,
            restarts,
            overflows,
            behind: 1 + if r.below(2) == 0 { 0 } else { r.below(4) },
            ahead: if r.below(3) == 0 { r.below(3) } else { 0 },
            burst: match r.below(3) {
                0 => 1,
                1 => 1 + r.below(8),
                _ => usize::MAX,
            },
            turns: r.below(8),
            between: 1 + r.below(4),
            probes: 1000,
            // one costs as much as three rests without
            audits: if r.below(8) == 0 { 100 } else { 10 },
        }
    }

    /// The simplest: a big chip that does as it is told, each step followed by a rest.
    #[must_use]
    pub fn plain() -> Variant {
        Variant {
            seed: 0,
            sizes: Sizes::BIG,
            faults: Faults::default(),
            restarts: [0, 0],
            overflows: 0,
            behind: 1,
            ahead: 0,
            burst: usize::MAX,
            turns: 0,
            between: 0,
            probes: 1000,
            audits: always(),
        }
    }
}

/// A play that did not go as it must.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kernel was at this rest.
    pub step: usize,
    /// The last rest that the switch had taken in before.
    pub taken: usize,
    /// The probe that was answered wrongly, if it is that.
    pub probe: Option<usize>,
    /// In words.
    pub what: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "step {} (taken in: {})", self.step, self.taken)?;
        if let Some(probe) = self.probe {
            write!(f, ", probe {probe}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// The switch daemon, without its threads.
struct Switch {
    listener: Stepped,
    source: Arc<Steps>,
    core: Core,
    commands: Receiver<io::Command>,
}

fn front(prepared: &Prepared) -> Vec<Front> {
    let ports = prepared.recording.ports.iter().enumerate();
    ports
        .map(|(n, p)| Front {
            port: n as u16 + 1,
            name: p.name.clone(),
            ifindex: p.ifindex,
        })
        .collect()
}

impl Switch {
    /// As the daemon starts (`daemon.rs`).
    fn start(
        prepared: &Prepared,
        kernel: &Kernel,
        chip: &Shared,
        how: Attach,
    ) -> Result<Switch, String> {
        let words = |e: &dyn std::fmt::Display| format!("the switch does not start: {e}");
        kernel.forget();
        let front = front(prepared);
        let (listener, steps) = Stepped::new(
            Config {
                ports: front.iter().map(|p| (p.ifindex, p.port)).collect(),
                ..Config::default()
            },
            Box::new(kernel.clone()),
            Box::new(kernel.clone()),
        )
        .map_err(|e| words(&e))?;
        let source = Arc::new(steps);
        let sources = Sources::new(vec![Seat {
            source: source.clone(),
            ports: front.iter().map(|p| p.port).collect(),
            hold_ns: u64::MAX,
        }])
        .map_err(|e| words(&e))?;
        let wired = wired::core(chip, front, how, sources)?;
        Ok(Switch {
            listener,
            source,
            core: wired.core,
            commands: wired.commands,
        })
    }

    /// A turn of each. False: neither had anything to do.
    fn turn(&mut self, now: u64) -> bool {
        let idle = self.listener.turn();
        let worked = self.core.turn(now);
        while self.commands.try_recv().is_ok() {}
        worked || idle.is_none_or(|i| i == Duration::ZERO)
    }

    /// Whether there is nothing more to come.
    fn rests(&self, kernel: &Kernel) -> bool {
        kernel.unread() == 0
            && !self.listener.owes()
            && self.source.messages().is_empty()
            && self.core.settled()
    }
}

/// One play.
struct Play<'a> {
    prepared: &'a Prepared,
    variant: &'a Variant,
    kernel: Kernel,
    clock: Clock,
    chip: Shared,
    random: Random,
    taken: usize,
    /// The bridges of whose queriers the switch had the time to be sure.
    queriers: BTreeSet<u32>,
    /// Something happened since the last rest, for the coverage.
    restarted: bool,
    passed: Passed,
    tally: Tally,
}

/// A chip that is played with, kept for the next play with the same one.
#[derive(Default)]
pub struct Shelf {
    chips: Vec<(Sizes, u16, Firmware)>,
}

impl Shelf {
    fn take(&mut self, sizes: Sizes, ports: u16) -> Result<Firmware, String> {
        let same = |(s, p, _): &(Sizes, u16, Firmware)| (*s, *p) == (sizes, ports);
        match self.chips.iter().position(same) {
            Some(n) => Ok(self.chips.swap_remove(n).2),
            None => sizes.firmware(ports),
        }
    }

    fn give(&mut self, sizes: Sizes, ports: u16, firmware: Firmware) {
        if self.chips.len() >= 4 {
            self.chips.remove(0);
        }
        self.chips.push((sizes, ports, firmware));
    }
}

/// Plays a recording once.
///
/// # Errors
/// What did not go as it must.
pub fn play(
    prepared: &Arc<Prepared>,
    variant: &Variant,
    shelf: &mut Shelf,
) -> Result<Tally, Failure> {
    let failed = |what| Failure {
        step: 0,
        taken: 0,
        probe: None,
        what,
    };
    let ports = prepared.recording.ports.len() as u16;
    let firmware = shelf.take(variant.sizes, ports).map_err(failed)?;
    let mut random = Random::new(variant.seed);
    let chip = Shared::new(firmware, Random::new(random.next()));
    let clock = Clock::default();
    clock.pass(1_000_000_000);
    let kernel = Kernel::new(Arc::clone(prepared), clock.clone());
    let mut play = Play {
        prepared,
        variant,
        kernel,
        clock,
        chip: chip.clone(),
        random,
        taken: 0,
        queriers: BTreeSet::new(),
        restarted: false,
        passed: Passed::default(),
        tally: Tally::default(),
    };
    let done = play.run();
    let tally = std::mem::take(&mut play.tally);
    drop(play);
    if let Some(firmware) = chip.into_firmware() {
        shelf.give(variant.sizes, ports, firmware);
    }
    done.map(|()| tally)
}

impl Play<'_> {
    fn fail(&self, probe: Option<usize>, what: String) -> Failure {
        Failure {
            step: self.kernel.at(),
            taken: self.taken,
            probe,
            what,
        }
    }

    fn run(&mut self) -> Result<(), Failure> {
        let prepared = self.prepared;
        self.kernel.set_burst(self.variant.burst);
        self.cables();
        self.chip.lock().faults = self.variant.faults;
        let mut switch = self.start(Attach::Cold)?;
        self.rest(&mut switch)?;
        let last = prepared.recording.steps.len().saturating_sub(1);
        while self.kernel.at() < last {
            let steps = 1 + self.random.below(self.variant.behind);
            for _ in 0..steps {
                self.kernel.advance();
                self.cables();
                self.happen(&mut switch)?;
                for _ in 0..self.variant.turns {
                    self.turn(&mut switch);
                    self.between()?;
                }
            }
            self.kernel.allow(self.random.below(self.variant.ahead + 1));
            self.rest(&mut switch)?;
        }
        self.tally.plays = 1;
        self.tally.writes = self.kernel.writes();
        Ok(())
    }

    /// The chip's cables are those of the kernel's ports.
    fn cables(&mut self) {
        let rest = self.prepared.rest(self.kernel.at());
        self.chip.lock().cables(&rest.dark);
    }

    /// Misfortunes.
    fn happen(&mut self, switch: &mut Switch) -> Result<(), Failure> {
        let [warm, cold] = self.variant.restarts;
        if self.random.permille(self.variant.overflows) {
            let keep = self.random.below(3);
            self.kernel.overflow(keep);
            self.tally.overflows += 1;
        }
        if self.random.permille(cold) {
            let mut chip = self.chip.lock();
            chip.fail();
            chip.kept = false;
            drop(chip);
            self.cables();
            self.restarted = true;
            self.tally.restarts[1] += 1;
        }
        if self.random.permille(warm) {
            let how = match self.chip.lock().empty {
                true => Attach::Cold,
                false => Attach::Warm,
            };
            *switch = self.start(how)?;
            self.restarted = true;
            self.queriers.clear();
            self.tally.restarts[0] += 1;
        }
        Ok(())
    }

    fn start(&self, how: Attach) -> Result<Switch, Failure> {
        let mut switch = Switch::start(self.prepared, &self.kernel, &self.chip, how)
            .map_err(|e| self.fail(None, e))?;
        // recordings have few routes: what goes in slices is cut into small ones
        // other bits than those that say who is looked at by all that is computed anew (`rest`)
        match self.variant.seed / 16 % 4 {
            0 | 1 => {}
            n => switch.core.set_slice(n as usize - 1),
        }
        Ok(switch)
    }

    fn turn(&mut self, switch: &mut Switch) -> bool {
        let worked = switch.turn(self.clock.now());
        self.clock.pass(1_000_000);
        worked
    }

    /// Lets the switch work until it rests, and looks at everything.
    fn rest(&mut self, switch: &mut Switch) -> Result<(), Failure> {
        let begin = self.clock.now();
        let (mut quiet, mut pause, mut asked) = (0, 1_000_000, usize::MAX);
        for turn in 0..TURNS {
            if asked != self.kernel.at() {
                // what no message tells of is read at a barrier
                asked = self.kernel.at();
                switch.source.barrier(turn as u64);
                self.cables();
            }
            let worked = self.turn(switch);
            // to look mends what differs, and costs more than twice what the play does: one in sixteen is looked at
            let differs = match self.variant.seed % 16 {
                0 => switch.core.topology_differs(self.clock.now()),
                _ => None,
            };
            let differs = differs.unwrap_or_default();
            if let Some(first) = differs.first() {
                let n = differs.len();
                let text =
                    format!("what is derived step by step is not what follows, {n} times: {first}");
                return Err(self.fail(None, text));
            }
            if worked {
                (quiet, pause) = (0, 1_000_000);
                self.between()?;
                continue;
            }
            if asked == self.kernel.at() && switch.rests(&self.kernel) {
                quiet += 1;
                if quiet > QUIET {
                    let there = BTreeSet::from_iter(queriers(self.prepared.rest(asked)));
                    let waits = !there.is_subset(&self.queriers);
                    self.queriers = there;
                    if waits {
                        self.clock.pass(QUERIER_NS);
                        quiet = 0;
                        continue;
                    }
                    self.kernel.allow(0);
                    return self.look(switch);
                }
                continue;
            }
            quiet = 0;
            self.clock.pass(pause);
            pause = (pause * 2).min(1_000_000_000);
            if self.clock.now() - begin > PATIENCE_NS {
                break;
            }
        }
        let rows = format!(
            "the switch does not come to rest: {} datagrams unread, listener owes {}, store idle {}, {:?}",
            self.kernel.unread(),
            switch.listener.owes(),
            switch.core.store().idle(),
            switch.core.store().counters(),
        );
        Err(self.fail(None, rows))
    }

    /// Sends some probes while things are under way.
    fn between(&mut self) -> Result<(), Failure> {
        let probes = self.prepared.recording.probes.len();
        for _ in 0..self.variant.between {
            if probes == 0 {
                return Ok(());
            }
            let probe = self.random.below(probes);
            let at = self.kernel.at();
            let verdict = self.send(probe, self.taken..=at);
            self.tally.count(verdict, 1);
            if let Verdict::Wrong(why) = verdict {
                let what = self.words(probe, self.taken..=at, &why);
                return Err(self.fail(Some(probe), what));
            }
        }
        Ok(())
    }

    /// Sends a probe; its verdict against the kernel's answers at these rests, the best of them.
    fn send(&mut self, probe: usize, rests: std::ops::RangeInclusive<usize>) -> Verdict {
        let recording = &self.prepared.recording;
        let Some(p) = recording.probes.get(probe) else {
            return Verdict::Exact;
        };
        let now = self.clock.now();
        let mut chip = self.chip.lock();
        chip.look(p.port, &p.frame.0, now, &mut self.passed);
        let empty = chip.empty;
        drop(chip);
        self.passed.out.sort_unstable();
        let mut best = Verdict::Wrong(Why::Frames);
        // the newest first: most often it is that
        for at in rests.clone().rev() {
            let Some(case) = self.case(probe, at) else {
                continue;
            };
            match judge(&self.passed, &case, empty) {
                Verdict::Wrong(why) => {
                    if let Verdict::Wrong(_) = best {
                        best = Verdict::Wrong(why);
                    }
                }
                less @ (Verdict::OtherNextHop(_) | Verdict::Dark) => best = less,
                other => return other,
            }
        }
        match best {
            Verdict::Wrong(_) => {
                let lost = self.lost(probe, rests.clone());
                lost.or_else(|| self.late(probe, rests)).unwrap_or(best)
            }
            other => other,
        }
    }

    /// The same, with what went into ports that are down; none: nothing did, or that is no answer either.
    fn lost(&mut self, probe: usize, rests: std::ops::RangeInclusive<usize>) -> Option<Verdict> {
        let p = self.prepared.recording.probes.get(probe)?;
        let now = self.clock.now();
        let would = |but: &[u16]| {
            let mut would = Passed::default();
            let mut chip = self.chip.lock();
            chip.would(p.port, &p.frame.0, now, but, &mut would);
            drop(chip);
            would.out.sort_unstable();
            would
        };
        let all_up = would(&[]);
        let of = |at| self.prepared.rest(at).down.iter().copied();
        let down: Vec<u16> = rests.clone().flat_map(of).collect();
        let still = rests.start() == rests.end();
        rests.rev().find_map(|at| {
            let case = self.case(probe, at)?;
            let judged = |would: &Passed| match judge_lost(&self.passed, would, &down, &case) {
                Verdict::Wrong(_) => None,
                // nothing has gone down, or come up
                Verdict::Lost if still => None,
                verdict => Some(verdict),
            };
            // those that were down at that rest had no part in its floods
            let as_then = || judged(&would(&case.rest.down));
            judged(&all_up).or_else(as_then)
        })
    }

    /// The same, between rests, for what came in by a port that is down at one of them, left by one that has come up, or went into a
    /// bridge that went down.
    fn late(&self, probe: usize, rests: std::ops::RangeInclusive<usize>) -> Option<Verdict> {
        if rests.start() == rests.end() {
            return None;
        }
        let end = *rests.end();
        let newest = self.prepared.rest(end);
        let mut cases = rests
            .rev()
            .filter_map(|at| Some((at, self.case(probe, at)?)));
        cases.find_map(|(at, case)| {
            let late = judge_late(&self.passed, &case);
            late.or_else(|| judge_early(&self.passed, newest, &case))
                .or_else(|| {
                    let mut later = (at + 1..=end).map(|at| self.prepared.rest(at));
                    later.find_map(|later| judge_shut(&self.passed, later, &case))
                })
        })
    }

    /// What the kernel made of a probe at a rest.
    fn case(&self, probe: usize, at: usize) -> Option<Case<'_>> {
        let recording = &self.prepared.recording;
        Some(Case {
            probe: recording.probes.get(probe)?,
            answer: recording.steps.get(at)?.answers.get(probe)?,
            rest: self.prepared.rest(at),
            ports: &recording.ports,
            owes: self.prepared.owes(at, probe)?,
        })
    }

    /// A wrong answer in words.
    fn words(
        &self,
        probe: usize,
        rests: std::ops::RangeInclusive<usize>,
        why: &dyn std::fmt::Display,
    ) -> String {
        let out = self.passed.out.iter();
        let chip: Vec<String> = out.map(|(port, f)| frame(*port, f, false)).collect();
        let mut text = format!("{why}: the chip sends [{}]", chip.join(", "));
        for (reason, copy) in &self.passed.cpu {
            let copy = if *copy { "a copy" } else { "it" };
            let reason = tandem_pipeline::trap::reason_name(*reason);
            text += &format!(", {copy} to the CPU ({reason})");
        }
        for at in rests {
            let answer = self.prepared.recording.steps.get(at);
            if let Some(a) = answer.and_then(|s| s.answers.get(probe)) {
                let all: Vec<String> = a
                    .out
                    .iter()
                    .map(|o| frame(o.port, &o.frame.0, o.made))
                    .collect();
                text += &format!("; the kernel at {at} [{}]", all.join(", "));
            }
        }
        if let Some(p) = self.prepared.recording.probes.get(probe) {
            text += &format!("; the probe {}", frame(p.port, &p.frame.0, false));
            text += &crate::paths::routes(&p.frame.0, self.prepared.rest(self.kernel.at()));
        }
        text
    }

    /// At a rest: each probe, the accounts.
    fn look(&mut self, switch: &mut Switch) -> Result<(), Failure> {
        let at = self.kernel.at();
        let (before, trapped) = (self.taken, self.tally.trapped[0]);
        self.taken = at;
        // what is programmed outlives who did it, until the power fails
        let mut chip = self.chip.lock();
        (chip.empty, chip.kept) = (false, true);
        drop(chip);
        let fits = switch.core.store().counters().waiting == 0;
        // nothing was refused, and nothing will be
        let plain = fits && self.variant.sizes == Sizes::BIG && self.variant.faults.refused == 0;
        for probe in 0..self.prepared.recording.probes.len() {
            if !self.random.permille(self.variant.probes) {
                continue;
            }
            let verdict = self.send(probe, at..=at);
            self.tally.count(verdict, 0);
            match verdict {
                Verdict::Wrong(why) => {
                    let what = self.words(probe, at..=at, &why);
                    return Err(self.fail(Some(probe), what));
                }
                Verdict::Trapped(reason) if fits => {
                    let surplus = self.case(probe, at).map(|c| surplus(reason, &c));
                    if let Some(surplus @ (Surplus::Allowed | Surplus::Wrong)) = surplus {
                        *self.tally.fits_but_trapped.entry(reason).or_default() += 1;
                        let hidden = surplus == Surplus::Wrong
                            && plain
                            && self.case(probe, at).is_some_and(|c| is_hidden(&c));
                        self.tally.hidden += u64::from(hidden);
                        if surplus == Surplus::Wrong && plain && !hidden {
                            let why = Why::NotForwarded;
                            let what = self.words(probe, at..=at, &why);
                            return Err(self.fail(Some(probe), what));
                        }
                    }
                }
                _ => {}
            }
        }
        let accounts = self.chip.lock().firmware.check_accounting();
        accounts.map_err(|e| self.fail(None, format!("the chip's accounts: {e}")))?;
        let last = at + 1 >= self.prepared.recording.steps.len();
        if last || self.random.permille(self.variant.audits) {
            self.tally.audits += 1;
            let unseen = audit(switch).map_err(|e| self.fail(None, e))?;
            self.tally.unseen += u64::from(unseen);
            // the audit takes the running store's word for what no dump shows
            let several = switch.core.store().several6();
            let twins = switch.listener.twins6();
            let hidden = hidden::check(self.prepared.rest(at), &several, &twins);
            hidden.map_err(|e| self.fail(None, e))?;
        }
        self.tally.rests += 1;
        let outcomes = [
            fits && !self.restarted,
            !fits && self.variant.faults.refused == 0,
            !fits && self.variant.faults.refused > 0,
            self.tally.trapped[0] > trapped,
            self.restarted,
        ];
        self.restarted = false;
        for step in before + 1..=at {
            if let Some((what, how)) = self.prepared.cell(step) {
                self.tally.cells.count(what, how, outcomes);
            }
        }
        Ok(())
    }
}

/// The kernel's tables, the store and the chip's, side by side. True: the kernel has routes that its dumps don't show.
fn audit(switch: &mut Switch) -> Result<bool, String> {
    let answer = audit_own(&mut switch.core).map_err(|e| format!("no audit: {e}"))?;
    let Some(first) = answer.items.first() else {
        return Ok(!answer.warnings.is_empty());
    };
    Err(format!(
        "the audit finds {} differences, the first ({}): {} {}: {} is wanted, {} is there",
        answer.items.len(),
        first.between,
        first.kind,
        first.key,
        first.wanted,
        first.found
    ))
}

/// A frame in a few words.
fn frame(port: u16, frame: &[u8], made: bool) -> String {
    let hex: String = frame.iter().map(|b| format!("{b:02x}")).collect();
    let short = hex.get(..84).unwrap_or(&hex);
    let made = if made { " made" } else { "" };
    format!("swp{port}:{short}({}){made}", frame.len())
}
