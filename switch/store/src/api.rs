//! What goes in and out of the store besides [`crate::model::Event`]: commands, completions, explanations.

use crate::model::{FdbKind, GroupAddr, RouteType};
use crate::reason::Reason;
use ipnet::IpNet;
use serde::Serialize;
use std::collections::HashMap;
use std::net::IpAddr;
use tandem_abi::raw::{
    TND_ACT_DROP, TND_ACT_FORWARD, TND_ACT_TRAP, TND_AF_INET, TND_AF_INET6, TND_CLS_NEIGH,
    TND_CLS_ROUTE, tnd_class_cost, tnd_nhg, tnd_nhg_member, tnd_pool, tnd_port, tnd_rif,
};

/// What to do with what does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// The cover rule: what does not fit goes to the CPU.
    #[default]
    Trap,
    /// Flag it only and leave it out of the hardware: a less specific entry answers, wrongly. For teaching.
    Fail,
}

/// A pool of the chip, from SNAPSHOT at attach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolInfo {
    /// `tnd_pool.pool`
    pub id: u16,
    /// `tnd_pool.name`, e.g. `ipv4-lpm`.
    pub name: String,
    /// Slots.
    pub size: u32,
}

/// What the store needs to know of the chip and of the wishes of the operator.
#[derive(Clone, Debug)]
pub struct Config {
    /// Policy.
    pub policy: Policy,
    /// Number of front-panel ports; they are 1..=ports.
    pub ports: u16,
    /// The chip's pools.
    pub pools: Vec<PoolInfo>,
    /// Routes that the IPv4 and the IPv6 table hold when empty: pool size / cost of a route (DUMP of TND_CLS_COST). The
    /// reserves are scaled to it; 0: no reserve.
    pub route_slots: [u32; 2],
    /// What one object of each class takes, and of which pool (DUMP of TND_CLS_COST).
    pub costs: Vec<tnd_class_cost>,
    /// Units kept per family for aggregate trap prefixes; scaled down to an eighth of the table.
    pub aggregate_units: u32,
    /// Units kept per family for local and connected prefixes; scaled down likewise.
    pub local_units: u32,
    /// Commands outstanding at most, on the synchronous and on the bulk ring.
    pub max_outstanding: [usize; 2],
}

impl Default for Config {
    fn default() -> Self {
        Config {
            policy: Policy::Trap,
            ports: 0,
            pools: Vec::new(),
            route_slots: [0, 0],
            costs: Vec::new(),
            aggregate_units: 16,
            local_units: 32,
            max_outstanding: [128, 2048],
        }
    }
}

impl Config {
    /// For a chip with these pools (SNAPSHOT) and costs (DUMP of TND_CLS_COST); wishes are the default.
    #[must_use]
    pub fn of_chip(ports: u16, pools: &[tnd_pool], costs: &[tnd_class_cost]) -> Config {
        let size = |pool| pools.iter().find(|p| p.pool == pool).map_or(0, |p| p.size);
        let fit = |family| {
            let cost = first_cost(costs, TND_CLS_ROUTE, Some(family));
            cost.map_or(0, |c| size(c.pool) / c.cost.max(1))
        };
        Config {
            ports,
            pools: pools
                .iter()
                .map(|p| PoolInfo {
                    id: p.pool,
                    name: tandem_abi::get_name(&p.name),
                    size: p.size,
                })
                .collect(),
            route_slots: [TND_AF_INET, TND_AF_INET6].map(fit),
            costs: costs.to_vec(),
            ..Config::default()
        }
    }

    /// How many hosts of a family fit, 0 for IPv4 and 1 for IPv6; `None`: the chip doesn't say.
    #[must_use]
    pub fn hosts(&self, family: usize) -> Option<u32> {
        let family = [TND_AF_INET, TND_AF_INET6].get(family)?;
        let (pool, cost) = self.cost(TND_CLS_NEIGH, Some(*family))?;
        let size = self.pools.iter().find(|p| p.id == pool)?.size;
        Some(size / cost)
    }

    /// The pool of objects of a class (`TND_CLS_*`), and how many slots one takes; `None`: the chip doesn't say. Family:
    /// `TND_AF_*`, or none if it doesn't matter.
    pub(crate) fn cost(&self, cls: u16, family: Option<u8>) -> Option<(u16, u32)> {
        let cost = first_cost(&self.costs, cls, family)?;
        Some((cost.pool, cost.cost.max(1)))
    }
}

fn first_cost(costs: &[tnd_class_cost], cls: u16, family: Option<u8>) -> Option<&tnd_class_cost> {
    let of = |c: &&tnd_class_cost| c.cls == cls && family.is_none_or(|f| c.family == f);
    costs.iter().find(of)
}

/// Which command pair a command is for. The store never has two commands of one object outstanding, and posts a
/// dependent only after its dependency's completion, so the pairs need no ordering between them. Within a pair,
/// commands must be posted in the order in which they are handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Ring {
    /// Pair 0: ports, interfaces, next hops, neighbours, FDB.
    Sync,
    /// Pair 1: routes and what must be in order with them.
    Bulk,
}

/// Body of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Fits into the descriptor.
    Inline {
        /// Valid bytes of `data`.
        len: u8,
        /// At most `TND_BODY_INLINE` bytes.
        data: [u8; 64],
    },
    /// Goes through the arena.
    Arena(Box<[u8]>),
}

impl Body {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Body::Inline { len, data } => data.get(..usize::from(*len)).unwrap_or(data),
            Body::Arena(b) => b,
        }
    }
}

/// One command to post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Give it back in [`crate::Store::complete`].
    pub token: u64,
    /// Which pair.
    pub ring: Ring,
    /// `TND_OP_*`
    pub op: u16,
    /// `TND_CLS_*`
    pub cls: u16,
    /// `TND_CMD_*` (without `TND_CMD_ARENA`, which is the poster's business).
    pub flags: u32,
    /// Lease id with `TND_CMD_LEASE` or for RELEASE, else 0.
    pub lease: u32,
    /// Body.
    pub body: Body,
}

/// What the device answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// `TND_ST_*`
    pub status: u16,
    /// Pool, with TABLE_FULL and BUCKET_FULL.
    pub table: u16,
    /// Slots wanted.
    pub needed: u32,
    /// Slots free.
    pub free: u32,
    /// Slots of the pool.
    pub size: u32,
    /// LEASE: the lease's id; END_RESYNC: number swept.
    pub result: u64,
    /// Valid entries of `deltas`.
    pub delta_count: u8,
    /// (pool, slots): taken > 0, given back < 0.
    pub deltas: [(u16, i32); 8],
}

/// How the driver attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attach {
    /// The chip is empty.
    Cold,
    /// The chip kept its tables.
    Warm,
}

/// What an earlier switchd has left in the chip that the next one must know, so that what is there keeps its number; and
/// numbers that shall be as somebody else's. All are the chip's.
#[derive(Clone, Debug, Default)]
pub struct Left {
    /// Groups with their members.
    pub groups: Vec<(tnd_nhg, Vec<tnd_nhg_member>)>,
    /// Router interfaces: those of ports' VLANs have no number of their own, and a place has one.
    pub rifs: Vec<tnd_rif>,
    /// Ports: they are there always, so an equal one is not written again.
    pub ports: Vec<tnd_port>,
    /// Domains by their members: port and VID.
    pub members: HashMap<(u16, u16), u16>,
    /// Domains by what they stand for, where that is known.
    pub domains: HashMap<Domain, u16>,
    /// VRFs by their tables, where they are known.
    pub vrfs: HashMap<u32, u16>,
}

/// What the device reported about its forwarding database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceEvent {
    /// TND_EV_LEARN
    Learn {
        /// Forwarding domain.
        fid: u16,
        /// Address.
        mac: [u8; 6],
        /// Front-panel port.
        port: u16,
    },
    /// TND_EV_MOVE
    Move {
        /// Forwarding domain.
        fid: u16,
        /// Address.
        mac: [u8; 6],
        /// New front-panel port.
        port: u16,
    },
    /// TND_EV_AGE
    Age {
        /// Forwarding domain.
        fid: u16,
        /// Address.
        mac: [u8; 6],
        /// Front-panel port where it was.
        port: u16,
    },
}

/// An FDB entry that a device event means for the kernel (`extern_learn`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdbWriteBack {
    /// Add or replace; false = delete.
    pub add: bool,
    /// ifindex of the bridge.
    pub bridge: u32,
    /// VLAN, 0 without filtering.
    pub vlan: u16,
    /// ifindex of the swp device.
    pub ifindex: u32,
    /// Address.
    pub mac: [u8; 6],
}

/// What a forwarding domain of the chip stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Domain {
    /// ifindex of the bridge.
    pub dev: u32,
    /// VLAN; 0: a bridge without VLAN filtering.
    pub vlan: u16,
}

impl Domain {
    /// The VLAN id of its ports' memberships.
    pub(crate) fn vid(self) -> u16 {
        match self.vlan {
            0 => tandem_abi::raw::TND_VID_ANY,
            vlan => vlan,
        }
    }
}

/// A neighbour that the hardware needs: the kernel shall resolve it and keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Wanted {
    /// Interface.
    pub ifindex: u32,
    /// Gateway or host.
    pub addr: IpAddr,
    /// It is in use. False: forget about it.
    pub needed: bool,
    /// It is usable now: keep it alive only while hit bits say used. False: resolve it.
    pub resolved: bool,
}

/// Where an object is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// In the chip, as it should be.
    Installed,
    /// In the chip as something else: its packets go to the CPU.
    Trap,
    /// On its way, or it waits for something that is.
    Pending,
    /// The chip refused it.
    Failed,
    /// Left out: something else answers for it.
    #[default]
    Omitted,
}

/// What the chip's entry does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// Sends packets on.
    Forward,
    /// Gives them to the CPU.
    Trap,
    /// Drops them.
    Drop,
    /// There is no entry.
    #[default]
    None,
}

impl Action {
    /// Of a body's `TND_ACT_*`.
    pub fn of(action: u8) -> Action {
        match action {
            TND_ACT_FORWARD => Action::Forward,
            TND_ACT_TRAP => Action::Trap,
            TND_ACT_DROP => Action::Drop,
            _ => Action::None,
        }
    }

    /// As people read it.
    pub fn text(self) -> &'static str {
        match self {
            Action::Forward => "forward",
            Action::Trap => "trap",
            Action::Drop => "drop",
            Action::None => "none",
        }
    }
}

/// Why an object is or is not in hardware.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The object, as a person writes it.
    pub key: String,
    /// A route's prefix.
    pub net: Option<IpNet>,
    /// Slot of the VRF of a route or neighbour.
    pub slot: u8,
    /// Devices that a neighbour or a MAC address is on: interface, port, bridge.
    pub devices: Vec<String>,
    /// The kernel has it.
    pub known: bool,
    /// It stands in the chip's tables.
    pub in_hardware: bool,
    /// As in its row.
    pub state: State,
    /// What the chip does.
    pub action: Action,
    /// Where to, in words: `via 10.0.0.2 dev swp1`.
    pub target: String,
    /// Slots that it takes, by the last completion's deltas or the class's cost; 0 if it isn't in hardware.
    pub cost: u32,
    /// The pool that it lives in, empty if none.
    pub table: String,
    /// Why it is not in hardware or why it traps; none if it forwards.
    pub reason: Option<Reason>,
    /// Why no packet gets to it, though it is as it should be: what comes in goes to the CPU before any lookup. None if
    /// packets do. Of routes, and of neighbours.
    pub unreached: Option<Reason>,
    /// Since when it is in this state, on the caller's clock.
    pub since_ns: u64,
    /// The entry that catches its packets meanwhile: a prefix; empty if the object itself is there or nothing does
    /// (an LPM miss traps).
    pub cover: String,
    /// What it waits for.
    pub waiting_for: String,
    /// Others whose packets go to the CPU because of the same cover.
    pub innocent: Vec<String>,
    /// What of it goes to the CPU although it forwards, and why: one line each.
    pub details: Vec<String>,
    /// Who said so.
    pub source: u8,
}

/// Counters of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Events applied.
    pub events: u64,
    /// Objects that were upserted and equal to what was there.
    pub unchanged: u64,
    /// Commands handed out.
    pub commands: u64,
    /// Of them, those that changed or made an object (no replay of an equal one, no lease).
    pub writes: u64,
    /// Replayed in a warm attach.
    pub replayed: u64,
    /// Completions that said no.
    pub failed: u64,
    /// Completions that said TABLE_FULL or BUCKET_FULL.
    pub full: u64,
    /// Covers turned to trap.
    pub covers_set: u64,
    /// Covers turned back.
    pub covers_restored: u64,
    /// Objects retried after something was freed.
    pub retries: u64,
    /// Syncs completed, and objects that they swept.
    pub syncs: u64,
    /// Objects removed by a sync.
    pub swept: u64,
    /// Routes of tables that no default rule looks up: not programmed.
    pub other_tables: u64,
    /// Events of a source for what another one owns: refused.
    pub refused: u64,
    /// Objects that failed and wait now.
    pub waiting: u64,
}

/// A route for `show` and `audit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteRow {
    /// `10.0.0.0/24`
    pub prefix: String,
    /// VRF, 0 = the default one: a number of the store's own.
    pub vrf: u16,
    /// The VRF's name, empty for the default one.
    pub vrf_name: String,
    /// None: an aggregate trap of the reserve, nobody's route.
    pub kind: Option<RouteType>,
    /// In words.
    pub target: String,
    /// Table of the route that counts.
    pub table: u32,
    /// Its metric.
    pub metric: u32,
    /// Number of the source that said it; 0: nobody.
    pub source: u8,
    /// Where it is.
    pub state: State,
    /// What the chip's entry does.
    pub action: Action,
    /// Why it is not in hardware, or why it traps.
    pub reason: Option<Reason>,
    /// As [`Explanation::unreached`].
    pub unreached: Option<Reason>,
}

impl RouteRow {
    /// What kind of route it is, as people read it.
    pub fn kind_text(&self) -> &'static str {
        self.kind.map_or("aggregate", RouteType::text)
    }

    /// What tells it from the others: prefix and VRF.
    pub fn key(&self) -> String {
        match self.vrf_name.as_str() {
            "" => self.prefix.clone(),
            name => format!("{} vrf {name}", self.prefix),
        }
    }
}

/// A neighbour for `show` and `audit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighRow {
    /// Address.
    pub addr: IpAddr,
    /// `nud::*`
    pub nud: u16,
    /// Interface name.
    pub dev: String,
    /// `aa:bb:cc:dd:ee:ff`, empty if unresolved.
    pub mac: String,
    /// Where it is.
    pub state: State,
    /// Why it is not in hardware, or why it traps.
    pub reason: Option<Reason>,
    /// As [`Explanation::unreached`].
    pub unreached: Option<Reason>,
}

/// A filter of traffic control for `show`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterRow {
    /// Device.
    pub dev: String,
    /// At the hook for what leaves.
    pub egress: bool,
    /// Chain.
    pub chain: u32,
    /// Preference.
    pub priority: u16,
    /// Within the preference.
    pub handle: u32,
    /// What it looks at and does.
    pub text: String,
    /// The chip's counter of its rule, 0 = none.
    pub counter: u32,
    /// Where it is.
    pub state: State,
    /// Why it is not in hardware, or why it traps.
    pub reason: Option<Reason>,
}

/// A multicast group for `show`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MdbRow {
    /// Bridge name.
    pub bridge: String,
    /// VLAN, 0 without filtering.
    pub vlan: u16,
    /// None: the bridge's ports to multicast routers.
    pub group: Option<GroupAddr>,
    /// Sender; none: all.
    pub source: Option<IpAddr>,
    /// Devices; the bridge itself among them.
    pub members: Vec<String>,
    /// Where it is.
    pub state: State,
    /// Why it is not in hardware, or why it traps.
    pub reason: Option<Reason>,
}

/// An FDB entry for `show` and `audit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FdbRow {
    /// Bridge name.
    pub bridge: String,
    /// Forwarding domain in the chip, 0 = none.
    pub fid: u16,
    /// VLAN, 0 without filtering.
    pub vlan: u16,
    /// `aa:bb:cc:dd:ee:ff`
    pub mac: String,
    /// Device.
    pub dev: String,
    /// None: the chip has learned it, and the kernel has not heard of it.
    pub kind: Option<FdbKind>,
    /// Where it is.
    pub state: State,
    /// What the chip's entry does.
    pub action: Action,
    /// Why it is not in hardware, or why it traps.
    pub reason: Option<Reason>,
}
