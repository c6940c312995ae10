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
//!   ACL_BIND ──► ACL_TABLE ◄── ACL_ENTRY ──► ACL_COUNTER, POLICER, MIRROR, NEXTHOP
//! ```
//!
//! Pure: no clock, no I/O. The daemon feeds it from the rings through [`Processor`] and owns the only instance.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod classes;
mod dump;
pub mod fault;
mod flip;
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

/// References to objects, counted, so that a DELETE can be refused at once.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// By RIF: neighbours, and next hops that forward.
    pub(crate) rif: HashMap<u16, u32>,
    /// By next hop: routes, group members, and rules that redirect to it.
    pub(crate) nexthop: HashMap<u32, u32>,
    /// By group: routes.
    pub(crate) nhg: HashMap<u32, u32>,
    /// By counter: rules.
    pub(crate) counter: HashMap<u32, u32>,
    /// By policer: rules.
    pub(crate) policer: HashMap<u32, u32>,
    /// By mirror session: rules.
    pub(crate) mirror: HashMap<u32, u32>,
}

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
    /// Port ranges in the range checkers, and how many rules use each.
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
        self.resync = None;
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
        self.resync = None;
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
                self.resync = Some(Box::default());
                Ok(())
            }
            raw::TND_OP_END_RESYNC => self.end_resync().map(|n| cpl.result = n),
            raw::TND_OP_SNAPSHOT => self.snapshot(cmd, out, cpl),
            _ => Err(Failure::Status(raw::TND_ST_UNSUPPORTED)),
        }
    }

    /// Slots that a CREATE takes if its object is not there yet.
    fn create_needs(&self, cmd: &raw::tnd_cmd, body: &[u8]) -> Vec<Need> {
        if cmd.op != raw::TND_OP_CREATE {
            return Vec::new();
        }
        let family = body.get(4).copied().unwrap_or(0);
        let mut needs = self
            .pools
            .worst_case(&self.state, cmd.cls, family, 1)
            .unwrap_or_default();
        if cmd.cls == raw::TND_CLS_NHG {
            let count = body
                .get(2..4)
                .map_or(0, |b| u32::from(b[0]) | u32::from(b[1]) << 8);
            for n in needs.iter_mut().filter(|n| n.pool == PoolId::NhgMember) {
                n.slots = count.min(self.pools.nhg_max_members());
            }
        }
        needs
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

    /// All pools and all class costs, from one instant: what SNAPSHOT and a DUMP of `TND_CLS_COST` tell.
    #[must_use]
    pub fn resources(&self) -> (Vec<raw::tnd_pool>, Vec<raw::tnd_class_cost>) {
        let pools = PoolId::ALL.iter().map(|id| self.pool_row(*id)).collect();
        let classes = pools::COST_ROWS.iter().map(|r| self.cost_row(r)).collect();
        (pools, classes)
    }

    /// Holds every pool's counters against each other and against what the tables hold. `Err` names the pool.
    ///
    /// # Errors
    /// One line: the pool and its numbers.
    pub fn check_accounting(&self) -> Result<(), String> {
        let groups: usize = self.state.nhgs().map(|(_, g)| g.members().len()).sum();
        let rules = self.rule_slots();
        let acl = &self.state.acl;
        let held = [
            self.state.exact.recount() as usize,
            self.state.lpm4.recount() as usize,
            self.state.lpm6.recount() as usize + rules.of(PoolId::Lpm6),
            self.state.rifs().count(),
            self.state.vrfs().len().saturating_sub(1),
            self.state.vlans().count(),
            self.state.members().count(),
            self.state.nexthop_count(),
            self.state.nhg_count(),
            groups,
            rules.of(PoolId::Tcam),
            rules.of(PoolId::Tcam2),
            rules.of(PoolId::Tcam3),
            rules.ranges.len(),
            acl.tables().count(),
            acl.counters().count(),
            acl.policers().count(),
            acl.mirrors().count(),
            self.state.lags().count(),
            self.state.lags().map(|(_, l)| l.config.members.len()).sum(),
            self.state.mdb.len(),
        ];
        for (id, held) in PoolId::ALL.iter().zip(held) {
            let p = self.pools.get(&self.state, *id);
            if !p.check() || p.used() as usize != held {
                return Err(format!(
                    "{}: used {} + in flight {} + committed {} + free {} of size {}, table holds {held}",
                    id.name(),
                    p.used(),
                    p.in_flight(),
                    p.committed(),
                    p.free(),
                    p.size()
                ));
            }
        }
        Ok(())
    }
}

/// What the rules in all lists take, added up.
struct RuleSlots {
    slots: HashMap<PoolId, usize>,
    ranges: std::collections::HashSet<objects::acl_entry::Range>,
}

impl RuleSlots {
    fn of(&self, pool: PoolId) -> usize {
        self.slots.get(&pool).copied().unwrap_or(0)
    }
}

impl Firmware {
    fn rule_slots(&self) -> RuleSlots {
        let mut all = RuleSlots {
            slots: HashMap::new(),
            ranges: std::collections::HashSet::new(),
        };
        for (_, table) in self.state.acl.tables() {
            for (_, what, _) in table.rules.iter(0) {
                let need = self.pools.rule(table.stage, what.width());
                *all.slots.entry(need.pool).or_default() += need.slots as usize;
                all.ranges.extend(what.ranges.src);
                all.ranges.extend(what.ranges.dst);
            }
        }
        all
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

/// Takes a command as a fuzzer gives it: arbitrary descriptors and bodies, one after the other, at a tiny chip. Returns
/// the number of commands executed. Must never panic, and the accounting must hold after each.
pub fn fuzz_execute(data: &[u8]) -> usize {
    let Ok(mut fw) = Profile::builtin("tiny")
        .map_err(drop)
        .and_then(|p| Firmware::new(p).map_err(drop))
    else {
        return 0;
    };
    let mut out = Vec::new();
    let mut n = 0;
    for chunk in data.chunks(192) {
        let mut cmd = raw::tnd_cmd::default();
        let bytes = zerocopy::IntoBytes::as_mut_bytes(&mut cmd);
        for (to, from) in bytes.iter_mut().zip(chunk) {
            *to = *from;
        }
        // most ops and classes beyond the known ones say the same: keep near
        cmd.op %= 15;
        cmd.cls %= 36;
        let body = chunk.get(64..).unwrap_or_default();
        fw.execute(&cmd, body, &mut out, n as u64);
        assert!(out.len() <= cmd.out_size as usize);
        assert_eq!(fw.check_accounting(), Ok(()));
        n += 1;
    }
    n
}
