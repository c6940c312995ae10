//! The chip in the process: firmware and pipeline, and a `Device` that reaches them without rings.
//!
//! ```text
//!   core ── post, flush ──► Direct: two queues ── executed in any order between them ──► Firmware
//!        ◄──── reap ─────── answers: at once, late, twice, never                            │ tables
//!   a probe ──────────────────────────────────────────────────────────────────────► pipeline ┘ (looks only: no learning)
//! ```
//!
//! As the rings do, it answers each command once at most: what comes twice or too late is counted and dropped.

use std::collections::{HashMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tandem_abi::{Status, raw};
use tandem_firmware::{Firmware, Profile};
use tandem_packet::{Buffer, Frame, Offload};
use tandem_pipeline::{CpuMeta, Event, Sink};
use tandem_sal::control::{ControlCounters, TIMEOUT_NS};
use tandem_sal::{Attach, Device, Outcome, PostError, Request, SalError, SalIo};

use crate::random::Random;

/// Commands that a pair holds.
const LIMITS: [usize; 2] = [128, 2048];
/// Bytes that a command with output may write.
const OUT: u32 = 64 << 10;

/// Sizes of a chip's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sizes {
    /// Buckets of 4 in each of two banks of the exact-match table.
    pub buckets: u32,
    /// Prefixes of IPv4 and of IPv6.
    pub prefixes: [u32; 2],
    /// Router interfaces.
    pub rifs: u32,
    /// Virtual routers.
    pub vrfs: u32,
    /// Forwarding domains, and four times as many memberships.
    pub vlans: u32,
    /// Next hops.
    pub nexthops: u32,
    /// Groups of next hops, and four times as many members.
    pub groups: u32,
    /// Slots of rules.
    pub rules: u32,
    /// Multicast groups.
    pub mdb: u32,
}

impl Sizes {
    /// Of the profile `tiny`.
    pub const TINY: Sizes = Sizes {
        buckets: 3,
        prefixes: [32, 32],
        rifs: 8,
        vrfs: 4,
        vlans: 4,
        nexthops: 6,
        groups: 2,
        rules: 32,
        mdb: 4,
    };
    /// More than any history needs.
    pub const BIG: Sizes = Sizes {
        buckets: 64,
        prefixes: [512, 512],
        rifs: 128,
        vrfs: 32,
        vlans: 128,
        nexthops: 256,
        groups: 64,
        rules: 512,
        mdb: 64,
    };

    /// Any, from next to nothing on.
    #[must_use]
    pub fn draw(random: &mut Random) -> Sizes {
        let mut up_to = |n: usize| 1 + random.below(n) as u32;
        Sizes {
            buckets: up_to(8),
            prefixes: [up_to(40), up_to(40)],
            rifs: up_to(10),
            vrfs: up_to(4),
            vlans: up_to(6),
            nexthops: up_to(10),
            groups: up_to(4),
            rules: up_to(32),
            mdb: up_to(6),
        }
    }

    /// The profile `tiny` with these sizes and so many ports.
    ///
    /// # Errors
    /// One line: there is no such profile, or no such chip.
    pub fn firmware(self, ports: u16) -> Result<Firmware, String> {
        let mut p = Profile::builtin("tiny").map_err(|e| e.to_string())?;
        if let [run] = p.ports.as_mut_slice() {
            run.count = ports;
        }
        p.exact.buckets_per_bank = self.buckets;
        [p.lpm4.size, p.lpm6.size] = self.prefixes;
        p.pools.rif = self.rifs;
        p.pools.vrf = self.vrfs;
        p.pools.vlan = self.vlans;
        p.pools.vlan_member = 4 * self.vlans;
        p.pools.nexthop = self.nexthops;
        p.pools.nhg = self.groups;
        p.pools.nhg_member = 4 * self.groups;
        p.pools.nhg_max_members = p.pools.nhg_max_members.min(4 * self.groups);
        p.pools.mdb = self.mdb;
        for tcam in &mut p.acl.tcam {
            tcam.size = self.rules;
        }
        Firmware::new(p).map_err(|e| e.to_string())
    }
}

/// How answers go astray, in so many of a thousand commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faults {
    /// Executed, and answered up to a second late.
    pub late: u16,
    /// Executed, and never answered.
    pub lost: u16,
    /// Not executed, and never answered.
    pub ignored: u16,
    /// Answered twice.
    pub doubled: u16,
    /// Refused for want of room, whatever room there is: making something, but what is there already (asked for it once more, as
    /// the answer was lost, a chip finds it before it looks for room).
    pub refused: u16,
}

impl Faults {
    /// None.
    #[must_use]
    pub fn none(&self) -> bool {
        *self == Faults::default()
    }
}

/// What the driver did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Attaches that were begun.
    pub begun: u64,
    /// The ports were made to lose their carrier.
    pub dark: bool,
    /// How long the driver wanted to sleep last, at most (ns).
    pub sleep_ns: u64,
}

/// What became of a packet in the chip.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Frames that left, by port and content.
    pub out: Vec<(u16, Vec<u8>)>,
    /// Each time that the CPU got it: the reason, and whether that is a copy of what was forwarded.
    pub cpu: Vec<(u16, bool)>,
}

struct Look<'a>(&'a mut Passed);

impl Sink for Look<'_> {
    const DRY: bool = true;

    fn tx(&mut self, port: u16, frame: &Frame<'_>) {
        self.0.out.push((port, frame.bytes().to_vec()));
    }
    fn cpu(&mut self, meta: CpuMeta, _frame: &Frame<'_>) {
        let copy = meta.flags & (raw::TND_RX_L2_FORWARDED | raw::TND_RX_L3_FORWARDED) != 0;
        self.0.cpu.push((meta.reason, copy));
    }
    fn event(&mut self, _event: Event) {}
}

struct Nowhere;

impl Sink for Nowhere {
    fn tx(&mut self, _port: u16, _frame: &Frame<'_>) {}
    fn cpu(&mut self, _meta: CpuMeta, _frame: &Frame<'_>) {}
    fn event(&mut self, _event: Event) {}
}

/// The chip, shared by who programs it and who sends through it.
pub struct Chip {
    /// Its firmware.
    pub firmware: Firmware,
    /// It is dead for its driver.
    pub dead: bool,
    /// Who loses it attaches it warm again, unless that is to be cold: its tables outlive its driver.
    pub kept: bool,
    /// Its tables were emptied, and whoever programs it anew is not done: it drops.
    pub empty: bool,
    /// So often it says *not yet* before it answers, to an attach and to a command.
    pub slow: usize,
    /// Questions that it answers before it makes an attach, each as [`slow`](Self::slow).
    pub questions: usize,
    /// Why it makes none.
    pub refuses: Option<String>,
    /// Bytes that a page of a dump has at most.
    pub page: u32,
    /// Packets and events of the next attach.
    pub packets: Option<Box<SalIo>>,
    /// What its driver did to it and to the ports.
    pub seen: Seen,
    /// How its answers go astray.
    pub faults: Faults,
    /// Commands that were refused though there was room.
    pub refusals: u64,
    /// Commands that change something, in their order, where somebody wants to know: operation, class and body.
    pub changes: Option<Vec<(u16, u16, Vec<u8>)>>,
    random: Random,
    buffer: Buffer,
    epoch: u32,
    pub(crate) deaths: u64,
}

/// [`Chip`], shared.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Chip>>);

impl Shared {
    /// A chip of this firmware, with cables in all ports.
    #[must_use]
    pub fn new(mut firmware: Firmware, random: Random) -> Shared {
        firmware.cold_reset();
        firmware.faults.clear();
        Shared(Arc::new(Mutex::new(Chip {
            firmware,
            dead: false,
            kept: false,
            empty: true,
            slow: 0,
            questions: 0,
            refuses: None,
            page: OUT,
            packets: None,
            seen: Seen::default(),
            faults: Faults::default(),
            refusals: 0,
            changes: None,
            random,
            buffer: Buffer::new(),
            epoch: 0,
            deaths: 0,
        })))
    }

    /// The chip.
    pub fn lock(&self) -> MutexGuard<'_, Chip> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the firmware out, if nobody else holds the chip.
    #[must_use]
    pub fn into_firmware(self) -> Option<Firmware> {
        let chip = Arc::into_inner(self.0)?;
        let chip = chip.into_inner().unwrap_or_else(PoisonError::into_inner);
        Some(chip.firmware)
    }
}

impl Chip {
    /// What a command would make is there, equal or not.
    fn has(&mut self, create: &raw::tnd_cmd, body: &[u8], now: u64) -> bool {
        let query = raw::tnd_cmd {
            op: raw::TND_OP_QUERY,
            cls: create.cls,
            body_size: create.body_size,
            ..Default::default()
        };
        let found = self.firmware.execute(&query, body, &mut Vec::new(), now);
        found.status != raw::TND_ST_NOENT
    }

    /// Carrier of all ports; `dark` have none.
    pub fn cables(&mut self, dark: &[u16]) {
        for port in 1..=self.firmware.profile().port_count() {
            let _ = self.firmware.state.set_link(port, !dark.contains(&port));
        }
    }

    /// What would become of a frame now.
    pub fn look(&mut self, port: u16, frame: &[u8], now: u64, passed: &mut Passed) {
        passed.out.clear();
        passed.cpu.clear();
        if self.buffer.set(frame) {
            tandem_pipeline::process(
                &mut self.firmware.state,
                &mut self.buffer.frame(Offload::NONE),
                port,
                now,
                &mut Look(passed),
            );
        }
    }

    /// What would have become of it were all ports up, and in service in their bridges, but these and the one that it comes in by.
    pub fn would(&mut self, port: u16, frame: &[u8], now: u64, but: &[u16], passed: &mut Passed) {
        let ports = 1..=self.firmware.profile().port_count();
        let state = &mut self.firmware.state;
        let down: Vec<_> = ports
            .filter(|p| *p != port && !but.contains(p))
            .filter_map(|p| Some((p, state.port(p).filter(|s| !s.is_up())?)))
            .map(|(p, s)| (p, s.config, s.link))
            .collect();
        for (port, mut config, _) in down.iter().copied() {
            config.flags |= raw::TND_PORT_UP;
            config.stp_state = raw::TND_STP_FORWARDING;
            let _ = (state.set_port(port, config), state.set_link(port, true));
        }
        self.look(port, frame, now, passed);
        let state = &mut self.firmware.state;
        for (port, config, link) in down {
            let _ = (state.set_port(port, config), state.set_link(port, link));
        }
    }

    /// A frame comes in, and its sender is learned; what leaves goes nowhere.
    pub fn hear(&mut self, port: u16, frame: &[u8], now: u64) {
        if self.buffer.set(frame) {
            let mut frame = self.buffer.frame(Offload::NONE);
            tandem_pipeline::process(
                &mut self.firmware.state,
                &mut frame,
                port,
                now,
                &mut Nowhere,
            );
        }
    }

    /// Whoever drives it, or is about to, must attach again; its tables stay.
    pub fn die(&mut self) {
        self.dead = true;
        self.deaths += 1;
    }

    /// Power fails: it dies, and its tables are empty.
    pub fn fail(&mut self) {
        self.firmware.cold_reset();
        self.empty = true;
        self.die();
    }

    fn attach(&mut self, how: Attach) -> u32 {
        self.firmware.attach(how == Attach::Warm);
        self.empty |= how == Attach::Cold;
        self.dead = false;
        self.epoch += 1;
        self.epoch
    }
}

#[derive(Debug)]
struct Command {
    seq: u64,
    cmd: raw::tnd_cmd,
    body: Vec<u8>,
}

#[derive(Debug)]
struct Answer {
    due_ns: u64,
    seq: u64,
    cpl: raw::tnd_cpl,
    output: Vec<u8>,
}

/// The device: commands go to the firmware without rings.
pub struct Direct {
    chip: Shared,
    epoch: u32,
    seq: u64,
    /// Posted, and how many of them the chip may see.
    queues: [VecDeque<Command>; 2],
    visible: [usize; 2],
    /// Token and deadline by sequence number.
    pending: HashMap<u64, (u64, u64)>,
    order: VecDeque<(u64, u64)>,
    answers: Vec<Answer>,
    /// Since when it was looked for an answer, times.
    waited: usize,
    counters: ControlCounters,
}

impl Direct {
    /// Attaches.
    #[must_use]
    pub fn attach(chip: &Shared, how: Attach) -> Direct {
        let epoch = chip.lock().attach(how);
        Direct {
            chip: chip.clone(),
            epoch,
            seq: 0,
            queues: Default::default(),
            visible: [0; 2],
            pending: HashMap::new(),
            order: VecDeque::new(),
            answers: Vec::new(),
            waited: 0,
            counters: ControlCounters::default(),
        }
    }

    /// Executes some of what is visible, in order within each pair.
    fn execute(&mut self, mut budget: usize, now: u64) {
        let chip = self.chip.clone();
        let mut chip = chip.lock();
        if chip.epoch != self.epoch || chip.dead {
            return;
        }
        while budget > 0 {
            let choices = self.visible.map(|n| n > 0);
            let pair = match choices {
                [true, true] => chip.random.below(2),
                [true, false] => 0,
                [false, true] => 1,
                _ => return,
            };
            budget -= 1;
            let (Some(queue), Some(visible)) =
                (self.queues.get_mut(pair), self.visible.get_mut(pair))
            else {
                return;
            };
            *visible -= 1;
            let Some(command) = queue.pop_front() else {
                return;
            };
            self.answer(&mut chip, &command, now);
        }
    }

    fn answer(&mut self, chip: &mut Chip, command: &Command, now: u64) {
        let faults = chip.faults;
        let Command { seq, cmd, body } = command;
        if let raw::TND_OP_CREATE
        | raw::TND_OP_UPDATE
        | raw::TND_OP_DELETE
        | raw::TND_OP_SET_TRAP
        | raw::TND_OP_END_RESYNC = cmd.op
            && let Some(changes) = &mut chip.changes
        {
            changes.push((cmd.op, cmd.cls, body.clone()));
        }
        if chip.random.permille(faults.ignored) {
            return;
        }
        let mut output = Vec::new();
        let refused = cmd.op == raw::TND_OP_CREATE && chip.random.permille(faults.refused);
        let cpl = if refused && !chip.has(cmd, body, now) {
            chip.refusals += 1;
            raw::tnd_cpl {
                op: cmd.op,
                cls: cmd.cls,
                status: raw::TND_ST_TABLE_FULL,
                cookie: cmd.cookie,
                needed: 1,
                ..Default::default()
            }
        } else {
            chip.firmware.execute(cmd, body, &mut output, now)
        };
        if chip.random.permille(faults.lost) {
            return;
        }
        let late = match chip.random.permille(faults.late) {
            true => chip.random.below(1_000_000_000) as u64,
            false => 0,
        };
        let answer = |due_ns, output| Answer {
            due_ns,
            seq: *seq,
            cpl,
            output,
        };
        if chip.random.permille(faults.doubled) {
            let later = chip.random.below(2_000_000_000) as u64;
            self.answers.push(answer(now + later, output.clone()));
        }
        self.answers.push(answer(now + late, output));
    }

    fn command(
        &mut self,
        token: u64,
        request: &Request<'_>,
        deadline: u64,
    ) -> Result<Command, PostError> {
        let mut cmd = request.command(token, self.epoch)?;
        cmd.out_size = match (request.output, request.op) {
            (false, _) => 0,
            (true, raw::TND_OP_DUMP) => self.chip.lock().page,
            (true, _) => OUT,
        };
        let seq = self.seq;
        self.seq += 1;
        self.pending.insert(seq, (token, deadline));
        self.order.push_back((deadline, seq));
        self.counters.posted += 1;
        Ok(Command {
            seq,
            cmd,
            body: request.body.to_vec(),
        })
    }
}

impl Device for Direct {
    fn epoch(&self) -> u32 {
        self.epoch
    }

    fn counters(&self) -> ControlCounters {
        self.counters
    }

    fn limit(&self, pair: usize) -> usize {
        LIMITS.get(pair).copied().unwrap_or(0)
    }

    fn outstanding(&self) -> usize {
        self.pending.len()
    }

    fn post(
        &mut self,
        pair: usize,
        token: u64,
        request: &Request<'_>,
        now_ns: u64,
    ) -> Result<(), PostError> {
        let queued = self.queues.get(pair).ok_or(PostError::Impossible)?.len();
        if queued >= self.limit(pair) || self.pending.len() >= LIMITS[0] + LIMITS[1] {
            return Err(PostError::Full);
        }
        let command = self.command(token, request, now_ns.saturating_add(TIMEOUT_NS))?;
        if let Some(queue) = self.queues.get_mut(pair) {
            queue.push_back(command);
        }
        Ok(())
    }

    fn flush(&mut self) {
        self.visible = [0, 1].map(|i: usize| self.queues.get(i).map_or(0, VecDeque::len));
    }

    fn reap(
        &mut self,
        now_ns: u64,
        budget: usize,
        sink: &mut dyn FnMut(Outcome),
    ) -> Result<usize, SalError> {
        let waiting: usize = self.visible.iter().sum();
        let (draw, slow) = {
            let mut chip = self.chip.lock();
            (chip.random.below(4), chip.slow)
        };
        let some = match draw {
            // as often as not all of it
            0 => waiting / 2,
            1 => waiting.min(1),
            _ => waiting,
        };
        self.waited = match waiting {
            0 => 0,
            _ => self.waited + 1,
        };
        if some > 0 && self.waited > slow {
            self.waited = 0;
            self.execute(some, now_ns);
        }
        let mut n = 0;
        let (pending, counters) = (&mut self.pending, &mut self.counters);
        self.answers.retain_mut(|a| {
            if a.due_ns > now_ns || n >= budget {
                return true;
            }
            match pending.remove(&a.seq) {
                Some((token, _)) => {
                    n += 1;
                    counters.completed += 1;
                    sink(Outcome::Done {
                        token,
                        cpl: a.cpl,
                        output: std::mem::take(&mut a.output),
                    });
                }
                None => counters.stray += 1,
            }
            false
        });
        while let Some(&(deadline, seq)) = self.order.front() {
            if self.pending.contains_key(&seq) {
                if deadline > now_ns {
                    break;
                }
                if let Some((token, _)) = self.pending.remove(&seq) {
                    n += 1;
                    self.counters.timed_out += 1;
                    sink(Outcome::TimedOut { token });
                }
            }
            self.order.pop_front();
        }
        Ok(n)
    }

    fn arm(&mut self) -> Result<bool, SalError> {
        Ok(self.answers.is_empty())
    }

    fn disarm(&mut self) {}

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        self.order.front().map(|o| o.0)
    }

    fn call(
        &mut self,
        what: &'static str,
        request: &Request<'_>,
    ) -> Result<(raw::tnd_cpl, Vec<u8>), SalError> {
        // all that was posted before comes first
        self.flush();
        self.execute(usize::MAX, 0);
        let command = self
            .command(u64::MAX, request, u64::MAX)
            .map_err(|_| SalError::RingFull(what))?;
        self.pending.remove(&command.seq);
        self.order.pop_back();
        let mut chip = self.chip.lock();
        if chip.epoch != self.epoch || chip.dead {
            return Err(SalError::Timeout(what));
        }
        let mut output = Vec::new();
        let cpl = chip
            .firmware
            .execute(&command.cmd, &command.body, &mut output, 0);
        let status = Status::from_raw(cpl.status);
        if !status.is_ok() {
            return Err(SalError::Refused { what, status });
        }
        Ok((cpl, output))
    }
}
