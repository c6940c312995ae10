//! The chip's pools, and leases. What an object takes of them its class says (`costs.rs`).
//!
//! | pool | where its counters live |
//! |---|---|
//! | exact-match, ipv4-lpm, ipv6-lpm | in the table, because the pipeline learns into it too |
//! | rif … mirror | here; rules are in a TCAM of their own, or among the IPv6 prefixes |

use crate::Firmware;
use crate::keys::FlowRows;
use crate::objects::acl_entry::{AclEntry, Range};
use crate::profile::{AclWidths, Profile};
use std::collections::{HashMap, HashSet};
use tandem_pipeline::state::{ACL_STAGES, AclStage, State};
use tandem_tables::pool::{Full, Pool};
use tandem_tables::tcam::{Match, Width};

/// What is known of a pool without a chip.
struct Spec {
    name: &'static str,
    unit: &'static str,
    /// Slots by the profile, where the counters live here.
    size: Option<fn(&Profile) -> u32>,
    /// Slots that the tables hold.
    held: fn(&Recount<'_>) -> usize,
}

/// The one list of pools: name, unit, size (`None`: the table itself counts), what the tables hold. Its order is their numbers.
macro_rules! pools {
    ($($(#[$doc:meta])* $id:ident = $name:literal, $unit:literal, $size:expr, $held:expr;)*) => {
        /// A pool. The number is its id in SNAPSHOT, deltas and completions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum PoolId { $($(#[$doc])* $id),* }

        impl PoolId {
            /// All pools, by id.
            pub const ALL: [PoolId; [$($name),*].len()] = [$(PoolId::$id),*];

            fn spec(self) -> &'static Spec {
                match self {
                    $(PoolId::$id => &Spec { name: $name, unit: $unit, size: $size, held: $held }),*
                }
            }
        }
    };
}

pools! {
    /// MAC, IPv4 host, IPv6 host.
    ExactMatch = "exact-match", "slot", None, |r| r.fw.state.exact.recount() as usize;
    /// IPv4 prefixes.
    Lpm4 = "ipv4-lpm", "slot", None, |r| r.fw.state.lpm4.recount() as usize;
    /// IPv6 prefixes.
    Lpm6 = "ipv6-lpm", "slot", None,
        |r| r.fw.state.lpm6.recount() as usize + r.rules(PoolId::Lpm6);
    /// Router interfaces.
    Rif = "rif", "entry", Some(|p| p.pools.rif), |r| r.fw.state.rifs().count();
    /// Virtual routers.
    Vrf = "vrf", "entry", Some(|p| p.pools.vrf), |r| r.fw.state.vrfs().len().saturating_sub(1);
    /// Forwarding domains.
    Vlan = "vlan", "entry", Some(|p| p.pools.vlan), |r| r.fw.state.vlans().count();
    /// (port, VLAN) memberships.
    VlanMember = "vlan-member", "entry", Some(|p| p.pools.vlan_member), |r| r.fw.state.members().count();
    /// Next hops.
    Nexthop = "nexthop", "entry", Some(|p| p.pools.nexthop), |r| r.fw.state.nexthop_count();
    /// Next-hop groups.
    Nhg = "nexthop-group", "entry", Some(|p| p.pools.nhg), |r| r.fw.state.nhg_count();
    /// Members of groups.
    NhgMember = "nexthop-group-member", "member", Some(|p| p.pools.nhg_member),
        |r| r.fw.state.nhgs().map(|(_, g)| g.members().len()).sum();
    /// Lines of the TCAM for rules; the only one, or the first of several.
    Tcam = "acl-tcam", "line", Some(|p| p.acl.tcam_size(0)), |r| r.rules(PoolId::Tcam);
    /// A second one, where stages have their own.
    Tcam2 = "acl-tcam-2", "line", Some(|p| p.acl.tcam_size(1)), |r| r.rules(PoolId::Tcam2);
    /// A third one.
    Tcam3 = "acl-tcam-3", "line", Some(|p| p.acl.tcam_size(2)), |r| r.rules(PoolId::Tcam3);
    /// Range checkers for transport ports: objects, and those of rules that write their range out.
    AclRange = "acl-range", "entry", Some(|p| p.acl.ranges), |r| r.ranges.len() + r.fw.state.acl.ranges().len();
    /// Lists of rules.
    AclTable = "acl-table", "entry", Some(|p| p.acl.tables), |r| r.fw.state.acl.tables().len();
    /// Counters of rules.
    AclCounter = "acl-counter", "entry", Some(|p| p.acl.counters), |r| r.fw.state.acl.counters().len();
    /// Policers.
    Policer = "policer", "entry", Some(|p| p.acl.policers), |r| r.fw.state.acl.policers().len();
    /// Mirror sessions.
    Mirror = "mirror", "entry", Some(|p| p.acl.mirrors), |r| r.fw.state.acl.mirrors().len();
    /// Link aggregation groups.
    Lag = "lag", "entry", Some(|p| p.pools.lag), |r| r.fw.state.lags().count();
    /// Members of these.
    LagMember = "lag-member", "member", Some(|p| p.pools.lag_member),
        |r| r.fw.state.lags().map(|(_, l)| l.config.members.len()).sum();
    /// Masks of ports: multicast groups, port sets.
    Mdb = "multicast-group", "entry", Some(|p| p.pools.mdb), |r| r.fw.state.mdb.len() + r.fw.state.port_sets.len();
}

impl PoolId {
    /// Name in SNAPSHOT, JSON and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// What a slot is.
    #[must_use]
    pub fn unit(self) -> &'static str {
        self.spec().unit
    }
}

/// Slots wanted of one pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// Where.
    pub pool: PoolId,
    /// How many.
    pub slots: u32,
}

impl Need {
    /// What a group takes: itself, and its members.
    pub(crate) fn group(pool: PoolId, members: PoolId, n: u32) -> Vec<Need> {
        vec![
            Need { pool, slots: 1 },
            Need {
                pool: members,
                slots: n,
            },
        ]
    }
}

/// Where the lines of a stage's rules are, and how many a rule takes by the width of its key.
#[derive(Debug, Clone)]
struct StageTcam {
    pool: PoolId,
    widths: AclWidths,
    /// At the stages of flow ports.
    rows: Option<FlowRows>,
}

/// Counters of the pools that live here, and where rules are.
#[derive(Debug, Clone)]
pub struct Pools {
    /// By [`PoolId`]; `None`: the table itself counts.
    counted: [Option<Pool>; PoolId::ALL.len()],
    nhg_max_members: u32,
    /// By [`AclStage`].
    tcam: [StageTcam; ACL_STAGES],
}

impl Pools {
    /// Empty pools of a profile's sizes.
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        let acl = &profile.acl;
        let tcam = AclStage::ALL.map(|stage| {
            let (at, memory) = acl.of_stage(stage);
            let flow = matches!(
                stage,
                AclStage::Flow | AclStage::FlowClass | AclStage::FlowEgress
            );
            StageTcam {
                pool: match at {
                    _ if memory.shares_lpm6 => PoolId::Lpm6,
                    0 => PoolId::Tcam,
                    1 => PoolId::Tcam2,
                    _ => PoolId::Tcam3,
                },
                widths: memory.flow.widths.filter(|_| flow).unwrap_or(memory.widths),
                rows: Some(memory.flow).filter(|_| flow),
            }
        });
        Self {
            counted: PoolId::ALL.map(|id| id.spec().size.map(|size| Pool::new(size(profile)))),
            nhg_max_members: profile.pools.nhg_max_members,
            tcam,
        }
    }

    /// Most members of one group.
    #[must_use]
    pub fn nhg_max_members(&self) -> u32 {
        self.nhg_max_members
    }

    /// Lines that a rule of some width takes.
    #[must_use]
    pub fn rule(&self, stage: AclStage, width: Width) -> Need {
        let tcam = &self.tcam[stage as usize];
        Need {
            pool: tcam.pool,
            slots: tcam.widths.of(width),
        }
    }

    /// Lines that a rule takes.
    #[must_use]
    pub fn rule_of(&self, stage: AclStage, what: &Match) -> Need {
        let rows = self.tcam[stage as usize].rows.as_ref();
        self.rule(stage, rows.map_or_else(|| what.width(), |r| r.width(what)))
    }

    /// What rows of flow ports can do; of other stages what they always can is known where rules are written.
    pub(crate) fn rows(&self, stage: AclStage) -> Option<&FlowRows> {
        self.tcam[stage as usize].rows.as_ref()
    }

    /// A pool's counters.
    #[must_use]
    pub fn get<'a>(&'a self, state: &'a State, id: PoolId) -> &'a Pool {
        match id {
            PoolId::Lpm4 => state.lpm4.pool(),
            PoolId::Lpm6 => state.lpm6.pool(),
            _ => self
                .counted
                .get(id as usize)
                .and_then(Option::as_ref)
                .unwrap_or_else(|| state.exact.pool()),
        }
    }

    fn counted_mut(&mut self, id: PoolId) -> Option<&mut Pool> {
        self.counted.get_mut(id as usize)?.as_mut()
    }

    /// Rules may be in the memory of IPv6 prefixes: the prefixes themselves are counted there.
    fn counted_or_lpm6<'a>(&'a mut self, state: &'a mut State, id: PoolId) -> Option<&'a mut Pool> {
        match id {
            PoolId::Lpm6 => Some(state.lpm6.pool_mut()),
            _ => self.counted_mut(id),
        }
    }

    /// Forgets the counters that live here: a cold reset.
    pub fn reset(&mut self) {
        self.counted.iter_mut().flatten().for_each(Pool::reset);
    }

    /// An object is written: free, or with `promised` committed, → used. For pools that live here, and rules.
    ///
    /// # Errors
    /// What was needed and there.
    pub fn take(&mut self, state: &mut State, need: Need, promised: bool) -> Result<(), Full> {
        match self.counted_or_lpm6(state, need.pool) {
            Some(p) if promised => p.take_committed(need.slots),
            Some(p) => p.take(need.slots),
            None => Ok(()),
        }
    }

    /// An object is removed. For pools that live here, and rules.
    pub fn give(&mut self, state: &mut State, need: Need) {
        if let Some(p) = self.counted_or_lpm6(state, need.pool) {
            p.give(need.slots);
        }
    }

    /// Free → committed.
    ///
    /// # Errors
    /// What was needed and can be promised.
    pub fn commit(&mut self, state: &mut State, need: Need) -> Result<(), Full> {
        match need.pool {
            PoolId::ExactMatch => state.exact.commit(need.slots),
            PoolId::Lpm4 => state.lpm4.pool_mut().commit(need.slots),
            PoolId::Lpm6 => state.lpm6.pool_mut().commit(need.slots),
            id => self
                .counted_mut(id)
                .map_or(Ok(()), |p| p.commit(need.slots)),
        }
    }

    /// Committed → free.
    pub fn release(&mut self, state: &mut State, need: Need) {
        match need.pool {
            PoolId::ExactMatch => state.exact.release(need.slots),
            PoolId::Lpm4 => state.lpm4.pool_mut().release(need.slots),
            PoolId::Lpm6 => state.lpm6.pool_mut().release(need.slots),
            id => {
                if let Some(p) = self.counted_mut(id) {
                    p.release(need.slots);
                }
            }
        }
    }

    /// Free or committed → in flight.
    ///
    /// # Errors
    /// What was needed and there.
    pub fn begin(&mut self, state: &mut State, need: Need, promised: bool) -> Result<(), Full> {
        let p = match need.pool {
            PoolId::ExactMatch => return state.exact.begin(need.slots, promised),
            PoolId::Lpm4 => Some(state.lpm4.pool_mut()),
            PoolId::Lpm6 => Some(state.lpm6.pool_mut()),
            id => self.counted_mut(id),
        };
        match p {
            Some(p) if promised => p.begin_committed(need.slots),
            Some(p) => p.begin(need.slots),
            None => Ok(()),
        }
    }

    /// In flight → where it came from.
    pub fn end(&mut self, state: &mut State, need: Need, promised: bool) {
        let p = match need.pool {
            PoolId::ExactMatch => return state.exact.end(need.slots, promised),
            PoolId::Lpm4 => Some(state.lpm4.pool_mut()),
            PoolId::Lpm6 => Some(state.lpm6.pool_mut()),
            id => self.counted_mut(id),
        };
        match p {
            Some(p) if promised => p.end_committed(need.slots),
            Some(p) => p.end(need.slots),
            None => {}
        }
    }
}

/// Most leases at a time.
pub const MAX_LEASES: usize = 1024;

/// Slots promised to one lease and not used yet.
#[derive(Debug, Clone, Default)]
pub struct Lease {
    left: [u32; PoolId::ALL.len()],
    cookie: u64,
}

impl Lease {
    /// An empty one, granted to the LEASE with this cookie.
    #[must_use]
    pub fn for_cookie(cookie: u64) -> Self {
        Self {
            cookie,
            ..Self::default()
        }
    }
    /// Cookie of the LEASE that it was granted to.
    #[must_use]
    pub fn cookie(&self) -> u64 {
        self.cookie
    }
    /// A lease over a vector of needs.
    #[must_use]
    pub fn new(needs: &[Need]) -> Self {
        let mut l = Self::default();
        for n in needs {
            l.add(*n);
        }
        l
    }
    /// Slots left in a pool.
    #[must_use]
    pub fn left(&self, pool: PoolId) -> u32 {
        self.left.get(pool as usize).copied().unwrap_or(0)
    }
    /// More.
    pub fn add(&mut self, need: Need) {
        if let Some(l) = self.left.get_mut(need.pool as usize) {
            *l = l.saturating_add(need.slots);
        }
    }
    /// Less; false if there is not so much.
    pub fn sub(&mut self, need: Need) -> bool {
        match self.left.get_mut(need.pool as usize) {
            Some(l) if *l >= need.slots => {
                *l -= need.slots;
                true
            }
            _ => false,
        }
    }
    /// What is left.
    #[must_use]
    pub fn rest(&self) -> Vec<Need> {
        let all = PoolId::ALL.iter().zip(self.left);
        all.filter(|(_, slots)| *slots > 0)
            .map(|(pool, slots)| Need { pool: *pool, slots })
            .collect()
    }
}

/// Slots held for a command in flight.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Resets of the chip before it was held: a later one has forgotten it already.
    pub(crate) resets: u64,
    /// Each with the lease it came from.
    pub(crate) slots: Vec<(Need, Option<u32>)>,
}

/// What the tables hold, counted anew.
struct Recount<'a> {
    fw: &'a Firmware,
    rules: HashMap<PoolId, usize>,
    ranges: HashSet<Range>,
}

impl<'a> Recount<'a> {
    fn new(fw: &'a Firmware) -> Self {
        let (mut rules, mut ranges) = (HashMap::new(), HashSet::new());
        for (_, table) in fw.state.acl.tables().iter() {
            for (_, what, rule) in table.rules.iter(0) {
                let need = fw.pools.rule_of(table.stage, what);
                *rules.entry(need.pool).or_default() += need.slots as usize;
                ranges.extend(AclEntry::of_rule(rule).ranges());
            }
        }
        Recount { fw, rules, ranges }
    }

    /// Slots of rules in a pool.
    fn rules(&self, pool: PoolId) -> usize {
        self.rules.get(&pool).copied().unwrap_or(0)
    }
}

impl Firmware {
    /// Holds every pool's counters against each other and against what the tables hold. `Err` names the pool.
    ///
    /// # Errors
    /// One line: the pool and its numbers.
    pub fn check_accounting(&self) -> Result<(), String> {
        let recount = Recount::new(self);
        for id in PoolId::ALL {
            let (p, held) = (self.pools.get(&self.state, id), (id.spec().held)(&recount));
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
