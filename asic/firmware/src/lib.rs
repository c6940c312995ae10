//! Firmware of the software ASIC: checks commands, accounts, applies, completes.
//!
//! ```text
//!   rings ─► Processor ─► Firmware::execute ─► objects/*  ─► State (tables, read by the pipeline)
//!            order,        op, class, lease,    one file       │
//!            waiting,      fault plan,          per kind       └─► Pools: used, in flight, committed, free
//!            latency       resync                                  as events, never computed from each other
//!
//!   NHG ──► NEXTHOP ──► RIF ──► VRF      a reference keeps its target: DELETE of the target is IN_USE,
//!    ▲         ▲         ▲ └──► VLAN     CREATE without the target is DEPEND
//!    └─ ROUTE ─┘       NEIGH     ▲
//!         └──► VRF               └── VLAN_MEMBER, FDB
//!   ACL_BIND ──► ACL_TABLE ◄── ACL_ENTRY ──► ACL_COUNTER, ACL_RANGE, POLICER, MIRROR, NEXTHOP
//! ```
//!
//! Pure: no clock, no I/O. The daemon feeds it from the rings through [`Processor`] and owns the only instance.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod classes;
mod costs;
mod dump;
pub mod fault;
mod flip;
pub mod keys;
mod lease;
mod object;
mod objects;
pub mod platform;
pub mod pools;
pub mod processor;
pub mod profile;
pub mod queues;
mod resync;
#[cfg(test)]
mod tests;
pub mod turn;

pub use classes::names as class_names;
pub use fault::{Fault, FaultAction, FaultPlan};
pub use flip::FlipTable;
pub use pools::{Need, PoolId};
pub use processor::{CplSink, Processor, Ran, SubmitError};
pub use profile::Profile;

use object::Failure;
use pools::{Held, Lease, Pools};
use std::collections::{BTreeSet, HashMap};
use tandem_abi::raw;
use tandem_pipeline::state::State;
use tandem_pipeline::trap::{TrapConfig, reasons};
use tandem_tables::exact::ExactMatch;
use tandem_tables::lpm::Lpm;
use tandem_tables::pool::FullKind;

/// Seed of the exact-match hash; a driver learns it by a DUMP of `TND_CLS_GEOMETRY`.
pub(crate) const EXACT_SEED: u64 = 0x7461_6e64_656d;

/// Most bytes that one command writes at `out_offset`, however large `out_size` is.
pub const MAX_OUT: usize = 1 << 20;
/// Most bytes of body that a command may bring.
pub const MAX_BODY: usize = 64 << 10;

/// What one command may do, and what it has done so far.
#[derive(Debug, Default)]
pub(crate) struct Context {
    /// Take slots from this lease.
    pub(crate) lease: Option<u32>,
    /// Pool and change; one line per pool.
    pub(crate) deltas: Vec<(PoolId, i64)>,
    /// What the slices of the command that is executed next have given back.
    pub(crate) ahead: Vec<(PoolId, i64)>,
    pub(crate) now_ns: u64,
}

/// References to objects, counted, so that a DELETE can be refused at once: by class and number, how many objects name it.
pub(crate) type References = HashMap<(u16, u32), u32>;

/// The chip's firmware. See the module.
#[derive(Debug)]
pub struct Firmware {
    /// What the pipeline reads. Only the firmware writes objects into it.
    pub state: State,
    /// Faults to come.
    pub faults: FaultPlan,
    /// Packets that the egress queue of a port (index, from 1) had no room for: the daemon counts them, the firmware
    /// reports them.
    pub tx_dropped: Vec<u64>,
    profile: Profile,
    pools: Pools,
    leases: HashMap<u32, Lease>,
    next_lease: u32,
    refs: References,
    /// Port ranges that rules write out, and how many rules use each.
    pub(crate) ranges: HashMap<objects::acl_entry::Range, u32>,
    resync: Option<Box<resync::Confirmed>>,
    /// Addresses that the driver has written, counted by domain and by group: whoever walks through these notices.
    named: HashMap<turn::Entries, u64>,
    /// What [`turn`] has just found out: these entries are gone, or the driver has some of them.
    walked: Option<(turn::Entries, bool)>,
    flips: Vec<flip::Flip>,
    blinking: BTreeSet<u16>,
    resets: u64,
    cx: Context,
}

impl Firmware {
    /// A chip after power-on.
    ///
    /// # Errors
    /// The profile's geometry can't be (a parsed profile's can).
    pub fn new(profile: Profile) -> Result<Self, tandem_tables::exact::BadGeometry> {
        let exact = ExactMatch::new(profile.exact.geometry(), profile.exact.widths, EXACT_SEED)?;
        let lpm4 = Lpm::new(profile.lpm4.size, profile.lpm4.cost);
        let lpm6 = Lpm::new(profile.lpm6.size, profile.lpm6.cost);
        let mut fw = Self {
            state: State::new(profile.port_count(), exact, lpm4, lpm6),
            faults: FaultPlan::default(),
            tx_dropped: vec![0; usize::from(profile.port_count()) + 1],
            pools: Pools::new(&profile),
            profile,
            leases: HashMap::new(),
            next_lease: 1,
            refs: References::default(),
            ranges: HashMap::new(),
            resync: None,
            named: HashMap::new(),
            walked: None,
            flips: Vec::new(),
            blinking: BTreeSet::new(),
            resets: 0,
            cx: Context::default(),
        };
        fw.default_traps();
        for class in tandem_pipeline::trap::ORDER {
            let p = fw.profile.class_policer(class);
            fw.state.police.set_class(class, p.rate_pps, p.burst);
        }
        fw.set_base_mac(platform::parse_mac(&fw.profile.platform.base_mac).unwrap_or_default());
        Ok(fw)
    }

    /// The switch's base MAC address, where it is not the profile's. Flows choose among members by it.
    pub fn set_base_mac(&mut self, mac: [u8; 6]) {
        self.state.set_hash(mac, self.profile.hash.symmetric);
    }

    /// The chip's profile.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Cold reset: tables, accounting, leases and resync are empty; the fault plan stays.
    pub fn cold_reset(&mut self) {
        self.resets += 1;
        self.state.clear();
        self.pools.reset();
        self.leases.clear();
        self.refs = References::default();
        self.ranges.clear();
        self.set_resync(None);
        self.walked = None;
        self.flips.clear();
        self.blinking.clear();
        self.default_traps();
    }

    /// Whether the lamp beside a port blinks.
    #[must_use]
    pub fn blinks(&self, port: u16) -> bool {
        self.blinking.contains(&port)
    }

    /// A driver attaches. Cold empties the chip; warm keeps tables and counters, and gives back what the last driver
    /// had leased.
    pub fn attach(&mut self, warm: bool) {
        if !warm {
            self.cold_reset();
            return;
        }
        self.set_resync(None);
        let ids: Vec<u32> = self.leases.keys().copied().collect();
        for id in ids {
            self.drop_lease(id);
        }
    }

    /// Each reason without a policer of its own: the last one is its class's.
    fn default_traps(&mut self) {
        for r in reasons() {
            // a reason of the pipeline's own list can't be refused
            let _ = self.state.set_trap(r, TrapConfig::default_for(r));
        }
    }

    /// What the latency model says an op costs, in ns.
    #[must_use]
    pub fn cost_ns(&self, op: u16) -> u64 {
        match op {
            raw::TND_OP_CREATE | raw::TND_OP_UPDATE | raw::TND_OP_DELETE | raw::TND_OP_SET_TRAP => {
                self.profile.latency.write_ns
            }
            // nobody waits for a release, and it reads nothing: a posted write
            raw::TND_OP_NOP | raw::TND_OP_RELEASE => 0,
            _ => self.profile.latency.query_ns,
        }
    }

    /// Executes one command at `now_ns`. `body` holds `body_size` bytes; results for `out_offset` go to `out`, at most
    /// `out_size` bytes. Never fails otherwise than in the completion's status, never panics, whatever the bytes are.
    pub fn execute(
        &mut self,
        cmd: &raw::tnd_cmd,
        body: &[u8],
        out: &mut Vec<u8>,
        now_ns: u64,
    ) -> raw::tnd_cpl {
        let fault = self.check_fault(cmd, body);
        self.execute_with(cmd, body, out, now_ns, fault)
    }

    /// The fault that a command runs into, if any. Asked once per command.
    pub(crate) fn check_fault(&mut self, cmd: &raw::tnd_cmd, body: &[u8]) -> Option<Fault> {
        if self.faults.is_empty() {
            return None;
        }
        let pools: Vec<PoolId> = self
            .create_needs(cmd, body)
            .iter()
            .map(|n| n.pool)
            .collect();
        self.faults.check(cmd.op, cmd.cls, &pools)
    }

    pub(crate) fn execute_with(
        &mut self,
        cmd: &raw::tnd_cmd,
        body: &[u8],
        out: &mut Vec<u8>,
        now_ns: u64,
        fault: Option<Fault>,
    ) -> raw::tnd_cpl {
        out.clear();
        self.cx.deltas = std::mem::take(&mut self.cx.ahead);
        self.cx.now_ns = now_ns;
        self.cx.lease = None;
        let mut cpl = answer(cmd, raw::TND_ST_OK);
        let result = match fault {
            Some(Fault {
                action: FaultAction::Fail,
                pool,
                ..
            }) => Err(self.injected(pool, cmd, body)),
            Some(Fault {
                action: FaultAction::Reset,
                ..
            }) => {
                self.cold_reset();
                Err(Failure::Status(raw::TND_ST_FAULT))
            }
            _ => self.dispatch(cmd, body, out, &mut cpl),
        };
        self.walked = None;
        if let Err(f) = result {
            self.report(&mut cpl, f);
            out.clear();
        }
        for ((pool, slots), d) in self
            .cx
            .deltas
            .iter()
            .filter(|d| d.1 != 0)
            .zip(&mut cpl.delta)
        {
            *d = raw::tnd_delta {
                pool: *pool as u16,
                reserved: 0,
                slots: *slots as i32 as u32,
            };
            cpl.delta_count += 1;
        }
        cpl.out_len = out.len() as u32;
        cpl
    }

    fn injected(&self, pool: Option<u16>, cmd: &raw::tnd_cmd, body: &[u8]) -> Failure {
        let need = self
            .create_needs(cmd, body)
            .into_iter()
            .find(|n| Some(n.pool as u16) == pool);
        match need {
            Some(n) => Failure::Full(n.pool, self.pools.get(&self.state, n.pool).full(n.slots)),
            None => Failure::Status(raw::TND_ST_FAULT),
        }
    }

    fn report(&self, cpl: &mut raw::tnd_cpl, failure: Failure) {
        cpl.result = 0;
        match failure {
            Failure::Status(s) => cpl.status = s,
            Failure::Full(pool, full) => {
                cpl.status = match full.kind {
                    FullKind::Table => raw::TND_ST_TABLE_FULL,
                    FullKind::Bucket => raw::TND_ST_BUCKET_FULL,
                };
                cpl.table = pool as u16;
                cpl.needed = full.needed;
                cpl.free = full.free;
                cpl.size = full.size;
            }
        }
    }

    /// What every command is asked before anything is done; gives the lease that it names.
    pub(crate) fn admissible(
        &self,
        cmd: &raw::tnd_cmd,
        body: &[u8],
    ) -> Result<Option<u32>, Failure> {
        if body.len() > MAX_BODY {
            return Err(Failure::Status(raw::TND_ST_INVALID));
        }
        let lease = (cmd.flags & raw::TND_CMD_LEASE != 0).then_some(cmd.lease);
        if lease.is_some_and(|id| !self.leases.contains_key(&id)) {
            return Err(Failure::Status(raw::TND_ST_LEASE));
        }
        Ok(lease)
    }

    fn dispatch(
        &mut self,
        cmd: &raw::tnd_cmd,
        body: &[u8],
        out: &mut Vec<u8>,
        cpl: &mut raw::tnd_cpl,
    ) -> Result<(), Failure> {
        self.cx.lease = self.admissible(cmd, body)?;
        match cmd.op {
            raw::TND_OP_NOP => Ok(()),
            raw::TND_OP_CREATE
            | raw::TND_OP_UPDATE
            | raw::TND_OP_DELETE
            | raw::TND_OP_SET_TRAP
            | raw::TND_OP_QUERY => match classes::of(cmd.cls) {
                Some(class) => (class.operate)(self, cmd, body, out, cpl),
                None if (cmd.op, cmd.cls) == (raw::TND_OP_QUERY, raw::TND_CLS_NHG_STATS) => {
                    self.query_nhg_stats(cmd, body, out, cpl)
                }
                None => Err(Failure::Status(raw::TND_ST_UNSUPPORTED)),
            },
            raw::TND_OP_DUMP => self.dump(cmd, out, cpl),
            raw::TND_OP_ACTIVITY => self.activity(cmd, out, cpl),
            raw::TND_OP_LEASE => self
                .grant(body, cmd.cookie)
                .map(|id| cpl.result = u64::from(id)),
            raw::TND_OP_RELEASE => {
                let gone = match cmd.lease {
                    0 => self.drop_lease_of(cmd.arg),
                    id => self.drop_lease(id),
                };
                if gone {
                    Ok(())
                } else {
                    Err(Failure::Status(raw::TND_ST_LEASE))
                }
            }
            // its sweep would take the new resync for its own
            raw::TND_OP_BEGIN_RESYNC if self.resync.as_ref().is_some_and(|c| c.sweeping()) => {
                Err(Failure::Status(raw::TND_ST_INVALID))
            }
            raw::TND_OP_BEGIN_RESYNC => {
                self.set_resync(Some(Box::default()));
                Ok(())
            }
            raw::TND_OP_END_RESYNC => self.end_resync().map(|n| cpl.result = n),
            raw::TND_OP_SNAPSHOT => self.snapshot(cmd, out, cpl),
            _ => Err(Failure::Status(raw::TND_ST_UNSUPPORTED)),
        }
    }

    /// A command is accepted but takes time: its slots are in flight from now on. Nothing is held if they are not
    /// there; the command will say so when it is executed.
    pub(crate) fn begin(&mut self, cmd: &raw::tnd_cmd, body: &[u8]) -> Held {
        let lease = (cmd.flags & raw::TND_CMD_LEASE != 0).then_some(cmd.lease);
        let mut held = Held {
            resets: self.resets,
            ..Held::default()
        };
        for need in self.create_needs(cmd, body) {
            let there = match lease {
                Some(id) => self.leases.get_mut(&id).is_some_and(|l| l.sub(need)),
                None => true,
            };
            if there
                && self
                    .pools
                    .begin(&mut self.state, need, lease.is_some())
                    .is_ok()
            {
                held.slots.push((need, lease));
            }
        }
        held
    }

    /// The command is about to be executed, or void.
    pub(crate) fn end(&mut self, held: &Held) {
        if held.resets != self.resets {
            return;
        }
        for (need, lease) in &held.slots {
            self.pools.end(&mut self.state, *need, lease.is_some());
            if let Some(id) = lease {
                match self.leases.get_mut(id) {
                    Some(l) => l.add(*need),
                    // released meanwhile
                    None => self.pools.release(&mut self.state, *need),
                }
            }
        }
    }
}

/// A completion for a command, with a status and nothing else.
pub(crate) fn answer(cmd: &raw::tnd_cmd, status: u16) -> raw::tnd_cpl {
    raw::tnd_cpl {
        op: cmd.op,
        cls: cmd.cls,
        status,
        cookie: cmd.cookie,
        seq: cmd.seq,
        epoch: cmd.epoch,
        ..Default::default()
    }
}
