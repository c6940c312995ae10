//! The chip's pools, the cost of each class of object in them, and leases.
//!
//! | pool | where its counters live |
//! |---|---|
//! | exact-match, ipv4-lpm, ipv6-lpm | in the table, because the pipeline learns into it too |
//! | rif … mirror | here; rules are in a TCAM of their own, or among the IPv6 prefixes |

use crate::profile::{AclWidths, Profile};
use tandem_abi::raw;
use tandem_pipeline::state::{AclStage, State};
use tandem_tables::exact::Kind;
use tandem_tables::pool::{Full, Pool};
use tandem_tables::tcam::Width;

/// A pool. The number is its id in SNAPSHOT, deltas and completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
pub enum PoolId {
    /// MAC, IPv4 host, IPv6 host.
    ExactMatch = 0,
    /// IPv4 prefixes.
    Lpm4 = 1,
    /// IPv6 prefixes.
    Lpm6 = 2,
    /// Router interfaces.
    Rif = 3,
    /// Virtual routers.
    Vrf = 4,
    /// Forwarding domains.
    Vlan = 5,
    /// (port, VLAN) memberships.
    VlanMember = 6,
    /// Next hops.
    Nexthop = 7,
    /// Next-hop groups.
    Nhg = 8,
    /// Members of groups.
    NhgMember = 9,
    /// Lines of the TCAM for rules; the only one, or the first of several.
    Tcam = 10,
    /// A second one, where stages have their own.
    Tcam2 = 11,
    /// A third one.
    Tcam3 = 12,
    /// Range checkers for transport ports.
    AclRange = 13,
    /// Lists of rules.
    AclTable = 14,
    /// Counters of rules.
    AclCounter = 15,
    /// Policers.
    Policer = 16,
    /// Mirror sessions.
    Mirror = 17,
    /// Link aggregation groups.
    Lag = 18,
    /// Members of these.
    LagMember = 19,
    /// Multicast groups.
    Mdb = 20,
}

impl PoolId {
    /// All pools, by id.
    pub const ALL: [PoolId; 21] = [
        PoolId::ExactMatch,
        PoolId::Lpm4,
        PoolId::Lpm6,
        PoolId::Rif,
        PoolId::Vrf,
        PoolId::Vlan,
        PoolId::VlanMember,
        PoolId::Nexthop,
        PoolId::Nhg,
        PoolId::NhgMember,
        PoolId::Tcam,
        PoolId::Tcam2,
        PoolId::Tcam3,
        PoolId::AclRange,
        PoolId::AclTable,
        PoolId::AclCounter,
        PoolId::Policer,
        PoolId::Mirror,
        PoolId::Lag,
        PoolId::LagMember,
        PoolId::Mdb,
    ];

    /// Name in SNAPSHOT, JSON and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PoolId::ExactMatch => "exact-match",
            PoolId::Lpm4 => "ipv4-lpm",
            PoolId::Lpm6 => "ipv6-lpm",
            PoolId::Rif => "rif",
            PoolId::Vrf => "vrf",
            PoolId::Vlan => "vlan",
            PoolId::VlanMember => "vlan-member",
            PoolId::Nexthop => "nexthop",
            PoolId::Nhg => "nexthop-group",
            PoolId::NhgMember => "nexthop-group-member",
            PoolId::Tcam => "acl-tcam",
            PoolId::Tcam2 => "acl-tcam-2",
            PoolId::Tcam3 => "acl-tcam-3",
            PoolId::AclRange => "acl-range",
            PoolId::AclTable => "acl-table",
            PoolId::AclCounter => "acl-counter",
            PoolId::Policer => "policer",
            PoolId::Mirror => "mirror",
            PoolId::Lag => "lag",
            PoolId::LagMember => "lag-member",
            PoolId::Mdb => "multicast-group",
        }
    }

    /// What a slot is.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            PoolId::ExactMatch | PoolId::Lpm4 | PoolId::Lpm6 => "slot",
            PoolId::NhgMember | PoolId::LagMember => "member",
            PoolId::Tcam | PoolId::Tcam2 | PoolId::Tcam3 => "line",
            _ => "entry",
        }
    }

    fn counted(self) -> Option<usize> {
        (self as usize).checked_sub(PoolId::Rif as usize)
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

/// Classes that cost something, as `TND_CLS_COST` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostRow {
    /// `TND_CLS_*`
    pub cls: u16,
    /// `TND_AF_*`, 0 = any.
    pub family: u8,
    /// Name in JSON.
    pub name: &'static str,
}

/// See [`CostRow`].
pub const COST_ROWS: [CostRow; 21] = [
    CostRow {
        cls: raw::TND_CLS_FDB,
        family: 0,
        name: "mac",
    },
    CostRow {
        cls: raw::TND_CLS_NEIGH,
        family: raw::TND_AF_INET,
        name: "ipv4-host",
    },
    CostRow {
        cls: raw::TND_CLS_NEIGH,
        family: raw::TND_AF_INET6,
        name: "ipv6-host",
    },
    CostRow {
        cls: raw::TND_CLS_ROUTE,
        family: raw::TND_AF_INET,
        name: "ipv4-route",
    },
    CostRow {
        cls: raw::TND_CLS_ROUTE,
        family: raw::TND_AF_INET6,
        name: "ipv6-route",
    },
    CostRow {
        cls: raw::TND_CLS_RIF,
        family: 0,
        name: "rif",
    },
    CostRow {
        cls: raw::TND_CLS_VRF,
        family: 0,
        name: "vrf",
    },
    CostRow {
        cls: raw::TND_CLS_VLAN,
        family: 0,
        name: "vlan",
    },
    CostRow {
        cls: raw::TND_CLS_VLAN_MEMBER,
        family: 0,
        name: "vlan-member",
    },
    CostRow {
        cls: raw::TND_CLS_NEXTHOP,
        family: 0,
        name: "nexthop",
    },
    CostRow {
        cls: raw::TND_CLS_NHG,
        family: 0,
        name: "nexthop-group",
    },
    CostRow {
        cls: raw::TND_CLS_ACL_ENTRY,
        family: 0,
        name: "acl-rule-l2",
    },
    CostRow {
        cls: raw::TND_CLS_ACL_ENTRY,
        family: raw::TND_AF_INET,
        name: "acl-rule-ipv4",
    },
    CostRow {
        cls: raw::TND_CLS_ACL_ENTRY,
        family: raw::TND_AF_INET6,
        name: "acl-rule-ipv6",
    },
    CostRow {
        cls: raw::TND_CLS_ACL_ENTRY,
        family: raw::TND_ACL_WIDTH_FULL,
        name: "acl-rule-full",
    },
    CostRow {
        cls: raw::TND_CLS_ACL_TABLE,
        family: 0,
        name: "acl-table",
    },
    CostRow {
        cls: raw::TND_CLS_ACL_COUNTER,
        family: 0,
        name: "acl-counter",
    },
    CostRow {
        cls: raw::TND_CLS_POLICER,
        family: 0,
        name: "policer",
    },
    CostRow {
        cls: raw::TND_CLS_MIRROR,
        family: 0,
        name: "mirror",
    },
    CostRow {
        cls: raw::TND_CLS_LAG,
        family: 0,
        name: "lag",
    },
    CostRow {
        cls: raw::TND_CLS_MDB,
        family: 0,
        name: "multicast-group",
    },
];

/// Where the lines of a stage's rules are, and how many a rule takes by the width of its key.
#[derive(Debug, Clone, Copy)]
struct StageTcam {
    pool: PoolId,
    widths: AclWidths,
}

/// Counters of the pools that live here, and what an object costs.
#[derive(Debug, Clone)]
pub struct Pools {
    counted: [Pool; 18],
    nhg_max_members: u32,
    /// By [`AclStage`].
    tcam: [StageTcam; 3],
}

impl Pools {
    /// Empty pools of a profile's sizes.
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        let (p, acl) = (&profile.pools, &profile.acl);
        let sizes = [
            p.rif,
            p.vrf,
            p.vlan,
            p.vlan_member,
            p.nexthop,
            p.nhg,
            p.nhg_member,
            acl.tcam_size(0),
            acl.tcam_size(1),
            acl.tcam_size(2),
            acl.ranges,
            acl.tables,
            acl.counters,
            acl.policers,
            acl.mirrors,
            p.lag,
            p.lag_member,
            p.mdb,
        ];
        let tcam = AclStage::ALL.map(|stage| {
            let (at, memory) = acl.of_stage(stage);
            StageTcam {
                pool: match at {
                    _ if memory.shares_lpm6 => PoolId::Lpm6,
                    0 => PoolId::Tcam,
                    1 => PoolId::Tcam2,
                    _ => PoolId::Tcam3,
                },
                widths: memory.widths,
            }
        });
        Self {
            counted: sizes.map(Pool::new),
            nhg_max_members: p.nhg_max_members,
            tcam,
        }
    }

    /// Most members of one group.
    #[must_use]
    pub fn nhg_max_members(&self) -> u32 {
        self.nhg_max_members
    }

    /// Lines that a rule takes.
    #[must_use]
    pub fn rule(&self, stage: AclStage, width: Width) -> Need {
        let tcam = self.tcam[stage as usize];
        Need {
            pool: tcam.pool,
            slots: tcam.widths.of(width),
        }
    }

    /// A pool's counters.
    #[must_use]
    pub fn get<'a>(&'a self, state: &'a State, id: PoolId) -> &'a Pool {
        match id {
            PoolId::Lpm4 => state.lpm4.pool(),
            PoolId::Lpm6 => state.lpm6.pool(),
            _ => id
                .counted()
                .and_then(|i| self.counted.get(i))
                .unwrap_or_else(|| state.exact.pool()),
        }
    }

    fn counted_mut(&mut self, id: PoolId) -> Option<&mut Pool> {
        id.counted().and_then(|i| self.counted.get_mut(i))
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
        self.counted.iter_mut().for_each(Pool::reset);
    }

    /// Slots that `n` objects of a class take at worst: whatever their keys, and a group with all members.
    #[must_use]
    pub fn worst_case(&self, state: &State, cls: u16, family: u8, n: u32) -> Option<Vec<Need>> {
        let need = |pool, each: u32| Need {
            pool,
            slots: each.saturating_mul(n),
        };
        let v4 = family == raw::TND_AF_INET;
        let v6 = family == raw::TND_AF_INET6;
        let widths = state.exact.widths();
        Some(match cls {
            raw::TND_CLS_FDB => vec![need(PoolId::ExactMatch, widths.of(Kind::Mac))],
            raw::TND_CLS_NEIGH if v4 => vec![need(PoolId::ExactMatch, widths.of(Kind::Host4))],
            raw::TND_CLS_NEIGH if v6 => vec![need(PoolId::ExactMatch, widths.of(Kind::Host6))],
            raw::TND_CLS_ROUTE if v4 => vec![need(PoolId::Lpm4, state.lpm4.cost())],
            raw::TND_CLS_ROUTE if v6 => vec![need(PoolId::Lpm6, state.lpm6.cost())],
            raw::TND_CLS_RIF => vec![need(PoolId::Rif, 1)],
            raw::TND_CLS_VRF => vec![need(PoolId::Vrf, 1)],
            raw::TND_CLS_VLAN => vec![need(PoolId::Vlan, 1)],
            raw::TND_CLS_VLAN_MEMBER => vec![need(PoolId::VlanMember, 1)],
            raw::TND_CLS_NEXTHOP => vec![need(PoolId::Nexthop, 1)],
            raw::TND_CLS_NHG => vec![
                need(PoolId::Nhg, 1),
                need(PoolId::NhgMember, self.nhg_max_members),
            ],
            // a lease knows no stage: room in each of the memories, and for two ranges that nobody else has
            raw::TND_CLS_ACL_ENTRY => {
                let width = match family {
                    0 => Width::L2,
                    _ if v4 => Width::Ip4,
                    _ if v6 => Width::Ip6,
                    raw::TND_ACL_WIDTH_FULL => Width::Full,
                    _ => return None,
                };
                let mut all: Vec<Need> = Vec::new();
                // the list that most rules are in comes first
                for stage in [AclStage::Ingress, AclStage::Port, AclStage::Egress] {
                    let one = self.rule(stage, width);
                    if one.slots > 0 && all.iter().all(|n| n.pool != one.pool) {
                        all.push(need(one.pool, one.slots));
                    }
                }
                all.push(need(PoolId::AclRange, 2));
                all
            }
            raw::TND_CLS_ACL_TABLE => vec![need(PoolId::AclTable, 1)],
            raw::TND_CLS_ACL_COUNTER => vec![need(PoolId::AclCounter, 1)],
            raw::TND_CLS_POLICER => vec![need(PoolId::Policer, 1)],
            raw::TND_CLS_MIRROR => vec![need(PoolId::Mirror, 1)],
            raw::TND_CLS_MDB => vec![need(PoolId::Mdb, 1)],
            raw::TND_CLS_LAG => vec![
                need(PoolId::Lag, 1),
                need(PoolId::LagMember, raw::TND_LAG_MAX_MEMBERS as u32),
            ],
            _ => return None,
        })
    }

    /// Objects of a class that still fit: guaranteed whatever their keys, and expected if keys spread as usual.
    #[must_use]
    pub fn room(&self, state: &State, cls: u16, family: u8) -> (u32, u32) {
        let kind = match (cls, family) {
            (raw::TND_CLS_FDB, _) => Some(Kind::Mac),
            (raw::TND_CLS_NEIGH, f) if f == raw::TND_AF_INET => Some(Kind::Host4),
            (raw::TND_CLS_NEIGH, _) => Some(Kind::Host6),
            _ => None,
        };
        if let Some(k) = kind {
            return (state.exact.free_guaranteed(k), state.exact.free_expected(k));
        }
        let fits = |n: &Need| {
            self.get(state, n.pool)
                .free()
                .checked_div(n.slots)
                .unwrap_or(0)
        };
        let worst = self.worst_case(state, cls, family, 1).unwrap_or_default();
        let guaranteed = worst.iter().map(fits).min().unwrap_or(0);
        // a usual group has two members, not the most that a group may have
        let expected = worst
            .iter()
            .map(|n| {
                if n.pool == PoolId::AclRange {
                    // and a usual rule has no ranges
                    u32::MAX
                } else if matches!(n.pool, PoolId::NhgMember | PoolId::LagMember) {
                    fits(&Need {
                        slots: n.slots.min(2),
                        ..*n
                    })
                } else {
                    fits(n)
                }
            })
            .min()
            .unwrap_or(0);
        (guaranteed, expected.max(guaranteed))
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
