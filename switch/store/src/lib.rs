//! The store: desired and installed state of every object.
//!
//! ```text
//!   sources ── model::Event ──► apply ─┐                       ┌─► plan ── Planned ──► SAL ──► ASIC
//!                                      ├─► desired / installed ┤
//!   ASIC ── DeviceEvent ───► device_event                      └─◄ complete ◄─ Completion ── SAL
//! ```
//!
//! Pure: no I/O, no thread, no clock (time is an argument).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod api;
mod bridge;
mod domains;
mod doors;
mod explain;
mod fdb;
mod fib;
mod filter;
mod hw;
mod lacking;
mod lag;
mod leaving;
mod mdb;
pub mod model;
mod near;
mod neigh;
mod objects;
mod owner;
mod page;
mod paths;
mod program;
mod reason;
mod reserve;
mod resolve;
mod routes;
mod slices;
mod sync;
mod together;
mod topo;
mod unanswered;
mod undecided;
mod vlan;
mod vrf;
mod waiting;

pub use api::*;
pub use owner::{OWN_NUMBERS, Refused};
pub use page::Page;
pub use reason::{Hook, Reason};
pub use slices::SLICE;
pub use waiting::Settling;

use fib::{Alias, Fibs};
use hw::{Fail, Hw, Ref};
use model::{
    Addr, BaseChain, ConfScope, Event, Family, FdbKey, Key, KindSet, Object, Rule, Settings,
    SourceId,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use sync::{Phase, Replay};
use tandem_cover::slab::Slab;

/// A source's sync.
#[derive(Debug, Default)]
struct SyncState {
    /// Kinds being dumped.
    running: Option<KindSet>,
    /// A first dump of links and routes is complete.
    reached: bool,
    /// Generation per kind, by bit of [`KindSet`].
    generations: [u16; KindSet::COUNT],
}

/// The store.
#[derive(Debug, Default)]
pub struct Store {
    config: Config,
    counters: Counters,
    syncs: HashMap<SourceId, SyncState>,
    owners: owner::Owners,
    /// All sources have reached the end of their first dump.
    synced: bool,
    // What sources said.
    links: HashMap<u32, topo::LinkRec>,
    addrs: BTreeMap<Addr, (u8, u16)>,
    rules: Vec<(Rule, u8, u16)>,
    chains: Vec<(BaseChain, u8, u16)>,
    netconf: HashMap<(Family, ConfScope), topo::Conf>,
    settings: Settings,
    neighs: BTreeMap<(IpAddr, u32), neigh::NeighRec>,
    /// The same by interface.
    neighs_on: BTreeSet<(u32, IpAddr)>,
    fdb: BTreeMap<FdbKey, fdb::FdbRec>,
    /// The kernel's entries by the device that they lead to.
    fdb_behind: BTreeSet<(u32, FdbKey)>,
    /// VLANs of bridges and ports, with source and generation.
    vlans: BTreeMap<(u32, u16), (model::BridgeVlan, u8, u16)>,
    filters: filter::Filters,
    lags: lag::Lags,
    groups: mdb::Groups,
    /// Ports of groups that were configured.
    lag_ports: BTreeSet<u16>,
    vrfs: vrf::Vrfs,
    paths: paths::Paths,
    slices: slices::Slices,
    aliases: Slab<Alias>,
    fibs: Fibs,
    // What follows from it.
    topo: topo::Topo,
    ingress_reasons: HashMap<u32, Reason>,
    ports_taken: u32,
    /// Table ids of memberships by port and VID, and back.
    member_ids: BTreeMap<(u16, u16), u32>,
    member_keys: HashMap<u32, (u16, u16)>,
    neigh_ids: HashMap<(IpAddr, u32), u32>,
    neigh_keys: HashMap<u32, (IpAddr, u32)>,
    fdb_ids: HashMap<FdbKey, u32>,
    fdb_keys: HashMap<u32, FdbKey>,
    fdb_failed: HashMap<u32, HashSet<u32>>,
    /// Stations that only knocked: the kernel sends to them, the chip has no entry that would not let them in.
    knocking: HashMap<Domain, HashSet<[u8; 6]>>,
    wanted: BTreeSet<(u32, IpAddr)>,
    // The chip.
    phase: Phase,
    warm: bool,
    /// How often the chip refused to begin or end the replay.
    resync_tries: u8,
    resync_failed: bool,
    replay: Replay,
    reserve: reserve::Reserve,
    hw: Hw,
    fails: HashMap<Ref, Fail>,
    lacking: lacking::Lacking,
    attempts: HashMap<Ref, u8>,
    urgent: VecDeque<Ref>,
    route_queue: VecDeque<Ref>,
    together: together::Together,
    deferred: Vec<Ref>,
    pending_aggregates: usize,
    progress: waiting::Progress,
    doors: doors::Doors,
}

impl Store {
    /// An empty store, without a chip: [`Store::attach`] gives it one.
    pub fn new(config: Config) -> Store {
        Store {
            config,
            ..Store::default()
        }
    }

    /// What the chip offers became known (again): takes effect at the next [`Store::attach`].
    pub fn set_config(&mut self, config: Config) {
        self.config = config;
    }

    /// The netdev of a port has gone to another network namespace, or is no longer there: all of the port's packets are
    /// that kernel's.
    pub fn port_away(&mut self, port: u16, away: bool) {
        let changed = match away {
            true => self.topo.away.insert(port),
            false => self.topo.away.remove(&port),
        };
        if changed {
            self.topo.dirty.ports.insert(port);
        }
    }

    /// Is it there?
    pub fn is_away(&self, port: u16) -> bool {
        self.topo.away.contains(&port)
    }

    /// Takes one event from a source. What earlier ones have left over is done first, all at once: who has other things to
    /// do asks [`Store::behind`] before.
    pub fn apply(&mut self, event: Event, now_ns: u64) {
        self.catch_up_all(now_ns);
        self.counters.events += 1;
        self.together.begin(Some(event.source()));
        self.together.goes_on = false;
        match event {
            Event::Upsert(source, object) => self.upsert(source, object, now_ns),
            Event::Remove(source, key) => self.remove(source, &key, now_ns),
            Event::BeginSync(source, kinds) => self.begin_sync(source, kinds),
            Event::EndSync(source) => self.end_sync(source, now_ns),
        }
        if !self.behind() {
            self.together_ends(now_ns);
        }
    }

    fn upsert(&mut self, source: SourceId, object: Object, now: u64) {
        let g = self.generation(source, object.kind());
        match object {
            Object::Link(x) => self.upsert_link(source, x, g, now),
            Object::Addr(x) => self.upsert_addr(source, x, g),
            Object::Neigh(x) => self.upsert_neigh(source, x, g, now),
            Object::Fdb(x) => self.upsert_fdb(source, x, g, now),
            Object::BridgeVlan(x) => self.upsert_bridge_vlan(source, x, g),
            Object::Nexthop(x) => self.upsert_nexthop(source, x, g, now),
            Object::Route(x) => self.upsert_route(source, x, g, now),
            Object::Rule(x) => self.upsert_rule(source, x, g),
            Object::BaseChain(x) => self.upsert_chain(source, x, g),
            Object::Filter(x) => self.upsert_filter(source, *x, g),
            Object::Mdb(x) => self.upsert_mdb(source, x, g, now),
            Object::RouterPort(x) => self.upsert_router_port(source, x, g),
            Object::VlanSnooping(x) => self.upsert_vlan_snooping(source, x, g),
            Object::Netconf(x) => self.upsert_netconf(source, x, g),
            Object::Settings(x) => self.upsert_settings(x),
        }
    }

    /// A source removes only what is its own.
    pub(crate) fn remove(&mut self, source: SourceId, key: &Key, now: u64) {
        let src = source.0;
        match key {
            Key::Link(i) if self.links.get(i).is_some_and(|l| l.source == src) => {
                self.remove_link(*i, now)
            }
            Key::Addr(a) if self.addrs.get(a).is_some_and(|v| v.0 == src) => {
                self.remove_addr(*a, true, now)
            }
            Key::Neigh(i, a) if self.neighs.get(&(*a, *i)).is_some_and(|n| n.source == src) => {
                self.remove_neigh(*i, *a, now);
            }
            Key::Fdb(k)
                if self
                    .fdb
                    .get(k)
                    .is_some_and(|r| r.kernel.is_some() && r.source == src) =>
            {
                self.remove_fdb(*k, now);
            }
            Key::BridgeVlan(i, vid) if self.vlans.get(&(*i, *vid)).is_some_and(|v| v.1 == src) => {
                self.remove_bridge_vlan(*i, *vid);
            }
            Key::Nexthop(id) if self.paths.objects.get(id).is_some_and(|o| o.1 == src) => {
                self.remove_nexthop(*id, now)
            }
            Key::Route(k) => self.remove_route(source, k, now),
            Key::Rule(r) if self.rules.iter().any(|x| x.0 == *r && x.1 == src) => {
                self.remove_rule(r)
            }
            Key::BaseChain(f, t, n)
                if self.chains.iter().any(|c| {
                    c.1 == src && c.0.family == *f && c.0.table == *t && c.0.name == *n
                }) =>
            {
                self.remove_chain(*f, t, n);
            }
            Key::Filter(k) if self.filters.all().get(k).is_some_and(|f| f.1 == src) => {
                self.filters.remove(k);
                self.filter_changed(k);
            }
            Key::Mdb(k) => self.remove_mdb(source, k, now),
            Key::RouterPort(bridge, port) => self.remove_router_port(source, *bridge, *port),
            Key::VlanSnooping(bridge, vlan) => self.remove_vlan_snooping(source, *bridge, *vlan),
            Key::Netconf(f, s) if self.netconf.get(&(*f, *s)).is_some_and(|c| c.source == src) => {
                self.netconf.remove(&(*f, *s));
                self.netconf_changed(*s);
            }
            _ => {}
        }
    }

    /// The chip reported an FDB change; returns what to write into the kernel.
    pub fn device_event(&mut self, event: DeviceEvent, now_ns: u64) -> Option<FdbWriteBack> {
        self.fdb_event(event, now_ns)
    }

    /// How many objects that nobody wants the chip does not delete, because something there refers to them.
    pub fn undeletable(&self) -> usize {
        self.hw.in_use.len()
    }

    /// The driver lost the device. Events are still taken; nothing is planned until [`Store::attach`].
    pub fn detach(&mut self) {
        self.phase = Phase::Detached;
        self.progress.epoch += 1;
        self.hw.flights.clear();
    }

    /// Nothing outstanding, nothing to plan, no sync running.
    pub fn idle(&self) -> bool {
        self.phase == Phase::Normal
            && self.rests()
            && self.doors.none_waits()
            && self.syncs.values().all(|s| s.running.is_none())
    }

    /// Nothing is to do for routes that have come: interfaces that wait for them may open, though a source says more.
    pub(crate) fn rests(&self) -> bool {
        !self.replay.holds()
            && self.synced
            && !self.topo.dirty.any()
            && self.paths.dirty.is_empty()
            && !self.behind()
            && self.hw.changed.is_empty()
            && self.hw.woken.is_empty()
            && self.queues_idle()
    }

    /// Commands outstanding on the synchronous and the bulk ring.
    pub fn outstanding(&self) -> [usize; 2] {
        self.hw.flights.outstanding
    }

    /// Counters.
    pub fn counters(&self) -> Counters {
        Counters {
            waiting: (self.fails.len() + self.hw.failed()) as u64,
            ..self.counters
        }
    }

    /// Gateways of routes whose need or state changed since the last call.
    pub fn take_wanted(&mut self) -> Vec<Wanted> {
        let changed = std::mem::take(&mut self.wanted);
        changed
            .into_iter()
            .map(|(ifindex, addr)| {
                let needed = self
                    .paths
                    .gateways
                    .get(&(ifindex, addr))
                    .and_then(|&g| self.paths.gateway_info.get(g as usize))
                    .and_then(Option::as_ref)
                    .is_some_and(|g| !g.paths.is_empty());
                let resolved = self
                    .neighs
                    .get(&(addr, ifindex))
                    .is_some_and(neigh::NeighRec::usable);
                Wanted {
                    ifindex,
                    addr,
                    needed,
                    resolved,
                }
            })
            .collect()
    }

    /// The neighbour behind a host entry, for its hit bit.
    pub fn host_neighbour(&self, rif: u16, addr: IpAddr) -> Option<Wanted> {
        let ifindex = self.device_of_rif(rif)?;
        let resolved = self.neighs.get(&(addr, ifindex))?.usable();
        Some(Wanted {
            ifindex,
            addr,
            needed: true,
            resolved,
        })
    }

    /// The neighbour behind a next hop, for its hit bit.
    pub fn nexthop_neighbour(&self, nexthop: u32) -> Option<Wanted> {
        let g = self
            .paths
            .gateway_info
            .get(self.hw.ids.nexthops.table(nexthop)? as usize)?
            .as_ref()?;
        let resolved = self
            .neighs
            .get(&(g.addr, g.ifindex))
            .is_some_and(neigh::NeighRec::usable);
        Some(Wanted {
            ifindex: g.ifindex,
            addr: g.addr,
            needed: !g.paths.is_empty(),
            resolved,
        })
    }

    /// The bridge with its VLAN, and the front-panel device, behind a (fid, port) of the chip.
    pub fn fdb_place(&self, fid: u16, port: u16) -> Option<(Domain, u32)> {
        Some((self.domain(fid)?, *self.topo.if_of_port.get(&port)?))
    }

    /// Bytes that routes take, indexes included, and how many routes that are.
    #[cfg(feature = "oracle")]
    pub fn route_memory(&self) -> (usize, usize) {
        (
            self.fibs.v4.bytes() + self.fibs.v6.bytes() + self.aliases.bytes(),
            self.aliases.len(),
        )
    }
}

impl Explanation {
    /// For a key that nobody announced.
    pub(crate) fn unknown(key: String) -> Explanation {
        Explanation {
            key,
            ..Explanation::default()
        }
    }
}
