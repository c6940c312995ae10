//! What the kernel has, as far as it takes to know what its messages leave out. Pure: messages go
//! in, events come out.

mod bridges;
mod looks;
mod nexthops;
mod settings;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use tandem_linux::netlink as nl;
use tandem_linux::netlink::consts::{
    IFF_LOWER_UP, IFF_RUNNING, IFF_UP, RT_SCOPE_HOST, RTN_ANYCAST, RTN_LOCAL, RTNH_F_DEAD,
    RTNH_F_LINKDOWN,
};
use tandem_store::model::{self, Event, Key, KindSet, Object, SourceId};

use super::aliases::Alias;
use super::convert::{self, Ports};
use super::dead::told_dead;
use super::doubts::Doubts;
use super::fib::{Change, Content, FibCopy, Lines, Op};
use super::filter;
use super::querier::{Heard, Tracker};
use bridges::snoops;

const SRC: SourceId = SourceId::NETLINK;

/// Where events go.
pub(super) type Sink<'a> = dyn FnMut(Event) + 'a;

#[derive(Debug, Clone)]
struct LinkState {
    model: model::Link,
    flags: u32,
}

/// The view.
#[derive(Debug, Default)]
pub(super) struct KernelView {
    ports: Ports,
    links: HashMap<u32, LinkState>,
    nexthops: BTreeMap<u32, model::NexthopObject>,
    /// Buckets of resilient groups, as a dump brings them: how many so far, and runs of members.
    buckets: BTreeMap<u32, (u32, Vec<(u32, u32)>)>,
    /// Resilient groups whose buckets are to be read again.
    mixed: BTreeSet<u32>,
    /// IPv4 addresses of each device.
    addrs4: HashMap<u32, BTreeSet<model::Addr>>,
    /// Devices that lost their last IPv4 address: the IPv4 next hops that they had then are dead until they get another,
    /// or are set up again.
    disabled4: BTreeSet<u32>,
    chains: BTreeSet<(u8, String, String)>,
    /// VLANs of bridges and ports.
    vlans: BTreeMap<(u32, u16), model::BridgeVlan>,
    /// Devices with filters of traffic control, as a dump has them.
    filtered: BTreeSet<u32>,
    redirects: BTreeMap<model::ConfScope, bool>,
    settings: Option<model::Settings>,
    /// Interfaces with IPv6 settings, and those of them where it is switched off.
    conf6: BTreeSet<u32>,
    without6: BTreeSet<u32>,
    /// Where next hops without carrier are left out (`ignore_routes_with_linkdown`).
    left_out: BTreeSet<(model::Family, model::ConfScope)>,
    /// Something hints at a sysctl that no message tells of.
    reread: bool,
    fib: FibCopy,
    /// Next-hop objects that came, changed or went while all of them are being looked at.
    told: Option<BTreeSet<u32>>,
    /// The request that the last message of a next-hop object answers.
    request: Option<u64>,
    doubts: Doubts,
    /// Devices of which a route's or an object's message told another state than their own: the kernel has not got round to a change
    /// yet, or a dump has overtaken it. It will tell of the device once more.
    suspects: BTreeSet<u32>,
    /// Queriers of bridges that snoop.
    queriers: HashMap<u32, Tracker>,
    heard: Heard,
    /// When a querier may come or go without a message, ms.
    querier_due: Option<u64>,
    /// Time, ms: set by whoever owns the view.
    now: u64,
    /// Nothing is remembered: what is there has been for long.
    settled: bool,
    /// IPv6 addresses of each device.
    addrs6: HashMap<u32, BTreeSet<IpAddr>>,
    /// Ports to multicast routers, and whether of both families: then one may end without a message.
    routers: BTreeMap<(u32, u32), bool>,
    /// Bridge ports' `mcast_router`, where it is not 1.
    router_set: BTreeMap<u32, u8>,
    /// A full dump runs: every object is said again, and these are the keys seen so far.
    full: Option<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    links: BTreeSet<u32>,
    nexthops: BTreeSet<u32>,
    chains: BTreeSet<(u8, String, String)>,
    vlans: BTreeSet<(u32, u16)>,
}

fn upsert(out: &mut Sink<'_>, object: Object) {
    out(Event::Upsert(SRC, object));
}

fn remove(out: &mut Sink<'_>, key: Key) {
    out(Event::Remove(SRC, key));
}

/// Turns a change of the FIB copy into an event.
fn say(out: &mut Sink<'_>, change: &Change<'_>) {
    match change {
        Change::Upsert(r, position) => upsert(out, Object::Route(convert::route(r, *position))),
        Change::Remove(r, position) => remove(out, Key::Route(convert::route_key(r, *position))),
    }
}

/// Dead and linkdown, as the kernel marks a next hop on this device.
fn next_hop_flags(links: &HashMap<u32, LinkState>, ifindex: u32) -> u8 {
    let flags = links.get(&ifindex).map_or(0, |l| l.flags);
    let mut out = 0;
    if flags & IFF_UP == 0 {
        out |= RTNH_F_DEAD;
    }
    if flags & IFF_LOWER_UP == 0 {
        out |= RTNH_F_LINKDOWN;
    }
    out
}

/// Those that the next hops of an IPv6 route have: they die with IPv6 on their device as well, in silence (net/ipv6/route.c
/// `rt6_sync_down_dev`).
fn next_hop_flags6(links: &HashMap<u32, LinkState>, without6: &BTreeSet<u32>, ifindex: u32) -> u8 {
    match without6.contains(&ifindex) {
        true => RTNH_F_DEAD | RTNH_F_LINKDOWN,
        false => next_hop_flags(links, ifindex),
    }
}

/// Whether a bridge filters by VLAN.
fn filters(l: &model::Link) -> bool {
    matches!(l.kind, model::LinkKind::Bridge(b) if b.vlan_filtering)
}

impl KernelView {
    pub fn new(ports: Ports) -> Self {
        Self {
            ports,
            ..Self::default()
        }
    }

    /// For one look: whatever the kernel tells of queriers it has gone by for long.
    pub fn settled(ports: Ports) -> Self {
        Self {
            settled: true,
            ..Self::new(ports)
        }
    }

    /// What time it is, ms.
    pub fn tick(&mut self, now: u64) {
        self.now = now;
    }

    /// All messages that were read are applied.
    pub fn caught_up(&mut self) {
        self.fib.caught_up();
    }

    /// Takes the doubts that have gathered.
    pub fn take_doubts(&mut self) -> Doubts {
        let routes = self.doubts.routes | self.fib.take_unsure();
        Doubts {
            routes,
            ..std::mem::take(&mut self.doubts)
        }
    }

    pub fn has_doubts(&self) -> bool {
        !self.doubts.is_empty() || self.fib.is_unsure()
    }

    pub fn routes(&self) -> usize {
        self.fib.len()
    }

    /// Different contents of routes that are held.
    #[cfg(test)]
    pub fn contents(&self) -> usize {
        self.fib.contents.iter().count()
    }

    /// Notifications of nftables were lost.
    pub fn doubt_base_chains(&mut self) {
        self.doubts.kinds |= KindSet::BASE_CHAIN.0;
    }

    /// Names of the interfaces, for reading their sysctls.
    pub fn interfaces(&self) -> impl Iterator<Item = (u32, &str)> {
        self.links.iter().map(|(i, l)| (*i, l.model.name.as_str()))
    }

    /// Takes a notification.
    pub fn event(&mut self, event: nl::Event, out: &mut Sink<'_>) {
        match event {
            nl::Event::New(object, mode) => {
                let mode = self.mode(&object, mode);
                self.object(object, Op::New(mode), out);
            }
            nl::Event::Del(object) => self.del(object, out),
            nl::Event::Overrun => {}
        }
    }

    /// Routes of a next-hop object that was replaced are told of with its request, as what is in no other's place.
    fn mode(&mut self, object: &nl::Object, mode: nl::NewMode) -> nl::NewMode {
        match (object, mode) {
            (nl::Object::Nexthop(_), nl::NewMode::Replace(request)) => {
                self.request = Some(request);
                mode
            }
            (nl::Object::Route(r), nl::NewMode::Replace(request))
                if r.nh_id != 0 && self.request == Some(request) =>
            {
                nl::NewMode::Told
            }
            _ => mode,
        }
    }

    /// Only a dump of everything can say what is there.
    pub fn is_lost(&self) -> bool {
        self.fib.is_lost()
    }

    /// A dump begins, perhaps once more.
    pub fn begin_dump(&mut self) {
        self.fib.begin_dump();
    }

    /// Objects that will come next, one after the other: what is remembered of them comes near.
    pub fn touch(&self, objects: &[nl::Object]) {
        for o in objects {
            if let nl::Object::Route(r) = o {
                std::hint::black_box(self.fib.touch(r));
            }
        }
    }

    /// Takes an object of a dump.
    pub fn dumped(&mut self, object: nl::Object, out: &mut Sink<'_>) {
        let again = self.full.is_some();
        self.object(object, Op::Dumped { again }, out);
    }

    fn object(&mut self, object: nl::Object, op: Op, out: &mut Sink<'_>) {
        match object {
            nl::Object::Route(r) => self.route(&r, op, out),
            nl::Object::Neigh(n) => {
                if let Some(n) = convert::neigh(&n) {
                    upsert(out, Object::Neigh(n));
                }
            }
            nl::Object::Fdb(f) => {
                if let Some(f) = convert::fdb(&f) {
                    upsert(out, Object::Fdb(f));
                }
            }
            nl::Object::Link(l) => self.link(&l, op, out),
            nl::Object::BridgePort {
                ifindex,
                master,
                brport,
            } => self.bridge_port(ifindex, master, brport.as_ref(), out),
            nl::Object::BridgeVlans(b) => {
                for v in convert::bridge_vlans(&b) {
                    self.bridge_vlan(v, out);
                }
            }
            nl::Object::Addr(a) => {
                let a = convert::addr(&a);
                upsert(out, Object::Addr(a));
                self.address_new(a);
            }
            nl::Object::Mdb(m) => self.mdb(&m, op, out),
            nl::Object::Nexthop(n) => {
                let nh = self.with_buckets(&n);
                self.suspect(&nh, op);
                self.nexthop(nh, out);
            }
            nl::Object::NexthopBucket(b) => match op {
                Op::Dumped { .. } => self.bucket(&b),
                // others may have moved with it: all of them are read
                _ => {
                    self.mixed.insert(b.group);
                }
            },
            nl::Object::Rule(r) => upsert(out, Object::Rule(convert::rule(&r))),
            nl::Object::Netconf(c) => self.netconf(&c, out),
            nl::Object::BaseChain(c) => {
                if let Some(chain) = convert::base_chain(&c) {
                    let key = (chain.family, chain.table.clone(), chain.name.clone());
                    if let Some(seen) = &mut self.full {
                        seen.chains.insert(key.clone());
                    }
                    self.chains.insert(key);
                    upsert(out, Object::BaseChain(chain));
                }
            }
            nl::Object::Filter(f) => match op {
                Op::Dumped { .. } => {
                    if let Some(f) = filter::convert(&f) {
                        upsert(out, Object::Filter(Box::new(f)));
                    }
                }
                _ => self.filters_changed(&f),
            },
            nl::Object::Qdisc(q) => match op {
                Op::Dumped { .. } => {
                    self.filtered.insert(q.ifindex);
                    for f in filter::shared(&q) {
                        upsert(out, Object::Filter(Box::new(f)));
                    }
                }
                _ => self.doubts.kinds |= KindSet::FILTER.0,
            },
            nl::Object::NftTable { .. } => {}
        }
    }

    /// A message about a filter may stand for many, and leaves out what a dump has.
    fn filters_changed(&mut self, f: &nl::Filter) {
        if !filter::is_ours(f) {
            self.doubts.kinds |= KindSet::FILTER.0;
        }
    }

    /// The dumps of filters that the dump of qdiscs before them asks for.
    pub fn filter_dumps(&self) -> Vec<nl::Dump> {
        let hooks = [nl::Hook::Ingress, nl::Hook::Egress];
        let of = |i: &u32| hooks.map(|h| nl::Dump::Filters(*i, h));
        self.filtered.iter().flat_map(of).collect()
    }

    fn del(&mut self, object: nl::Object, out: &mut Sink<'_>) {
        match object {
            nl::Object::Route(r) => self.route(&r, Op::Del, out),
            nl::Object::Neigh(n) => {
                if convert::neigh(&n).is_some() {
                    remove(out, Key::Neigh(n.ifindex, n.addr));
                }
            }
            nl::Object::Fdb(f) => {
                if let Some(f) = convert::fdb(&f) {
                    remove(out, Key::Fdb(convert::fdb_key(&f)));
                }
            }
            nl::Object::Link(l) => self.link_gone(l.index, out),
            nl::Object::BridgePort { ifindex, .. } => self.bridge_port(ifindex, 0, None, out),
            nl::Object::BridgeVlans(b) => {
                for v in convert::bridge_vlans(&b) {
                    self.vlans.remove(&(v.ifindex, v.vid));
                    remove(out, Key::BridgeVlan(v.ifindex, v.vid));
                }
            }
            nl::Object::Addr(a) => {
                let a = convert::addr(&a);
                // disable_ipv6 takes them
                self.reread |= a.addr.is_ipv6();
                self.next_hops_die(a, out);
                remove(out, Key::Addr(a));
                self.address_gone(a, out);
            }
            nl::Object::Mdb(m) => {
                for e in &m.entries {
                    remove(out, Key::Mdb(convert::mdb_entry(m.bridge, e).key()));
                }
                self.doubt_groups(&m);
            }
            nl::Object::Nexthop(n) => {
                self.nexthops_gone(&BTreeSet::from([n.id]), out);
                self.doubts.nexthops = true;
            }
            nl::Object::Rule(r) => {
                remove(out, Key::Rule(convert::rule(&r)));
                // two equal rules may stand side by side, and one is left
                self.doubts.kinds |= KindSet::RULE.0;
            }
            nl::Object::Netconf(c) => {
                let scope = convert::scope(c.target);
                self.left_out.remove(&(convert::family(c.family), scope));
                match (c.family, scope) {
                    (nl::Family::V4, scope) => {
                        self.redirects.remove(&scope);
                    }
                    (nl::Family::V6, model::ConfScope::Interface(i)) => {
                        self.conf6.remove(&i);
                        self.without6.remove(&i);
                    }
                    _ => {}
                }
                remove(out, Key::Netconf(convert::family(c.family), scope));
            }
            nl::Object::BaseChain(c) => {
                // devices may leave a netdev chain one by one
                if !c.devices.is_empty() {
                    self.doubt_base_chains();
                }
                let key = (c.family, c.table, c.name);
                if self.chains.remove(&key) {
                    remove(out, Key::BaseChain(key.0, key.1, key.2));
                }
            }
            nl::Object::Filter(f) => self.filters_changed(&f),
            // its filters go without a message
            nl::Object::Qdisc(_) => self.doubts.kinds |= KindSet::FILTER.0,
            nl::Object::NexthopBucket(_) => {}
            nl::Object::NftTable { family, name } => {
                let hit = |k: &(u8, String, String)| {
                    (family == 0 || k.0 == family) && name.as_ref().is_none_or(|n| *n == k.1)
                };
                let gone: Vec<_> = self.chains.iter().filter(|k| hit(k)).cloned().collect();
                for key in gone {
                    self.chains.remove(&key);
                    remove(out, Key::BaseChain(key.0, key.1, key.2));
                }
            }
        }
    }

    // -- routes ------------------------------------------------------------------------------

    fn route(&mut self, r: &nl::Route, op: Op, out: &mut Sink<'_>) {
        let (links, without6) = (&self.links, &self.without6);
        let flags = |ifindex| match r.dst.addr().is_ipv6() {
            true => next_hop_flags6(links, without6, ifindex),
            false => next_hop_flags(links, ifindex),
        };
        // the kernel never calls a next hop of an own address's route dead (IPv6 has no scopes: by the kind of route)
        let own = r.scope == RT_SCOPE_HOST || matches!(r.kind, RTN_LOCAL | RTN_ANYCAST);
        if op != Op::Del && r.nh_id == 0 && !own {
            for h in r.nexthops.as_slice() {
                let told = h.flags & (RTNH_F_DEAD | RTNH_F_LINKDOWN);
                if h.ifindex != 0 && told != flags(h.ifindex) {
                    self.suspects.insert(h.ifindex);
                }
            }
        }
        // it went with its object, in silence, before the dump that has neither
        let unknown = r.nh_id != 0 && !self.nexthops.contains_key(&r.nh_id);
        self.doubts.routes |= unknown && matches!(op, Op::New(_));
        let fits = self.fib.apply(r, op, &flags, &mut |c| say(out, &c));
        if !fits {
            // a deletion of something else than what we have
            match r.nexthops.as_slice() {
                [] => self.doubts.routes = true,
                // a look at one device's routes passes over those that lead there by an object
                _ if r.nh_id != 0 => self.doubts.routes = true,
                hops => self.doubts.links.extend(hops.iter().map(|h| h.ifindex)),
            }
        }
    }

    fn address_new(&mut self, a: model::Addr) {
        if a.addr.is_ipv6() {
            self.addrs6.entry(a.ifindex).or_default().insert(a.addr);
        }
        if a.addr.is_ipv4() {
            self.addrs4.entry(a.ifindex).or_default().insert(a);
            let disabled = self.disabled4.remove(&a.ifindex);
            // a dump has its next hops dead: the message of its last address was lost
            if self.suspects.remove(&a.ifindex) || disabled {
                self.doubts.links.insert(a.ifindex); // dead next hops are alive again
            }
        }
    }

    fn address_gone(&mut self, a: model::Addr, out: &mut Sink<'_>) {
        if let Some(all) = self.addrs6.get_mut(&a.ifindex) {
            all.remove(&a.addr);
        }
        // routes with this preferred source go (IPv4, some kernels in silence) or lose it (IPv6)
        let contents = self.fib.contents.iter();
        let users = contents.filter(|c| c.prefsrc == Some(a.addr));
        let devices: Vec<u32> = users.flat_map(|c| self.devices(c)).collect();
        self.doubts.links.extend(devices);
        if a.addr.is_ipv6() {
            let last = self.addrs6.values().all(|all| !all.contains(&a.addr));
            let (links, without6) = (&self.links, &self.without6);
            let flags = |i| next_hop_flags6(links, without6, i);
            (self.fib).source_gone6(a.addr, last, &flags, &mut |c| say(out, &c));
        }
        let left = self.addrs4.get_mut(&a.ifindex).map(|all| {
            all.remove(&a);
            all.len()
        });
        if a.addr.is_ipv4() && left == Some(0) {
            // the last one: the kernel takes IPv4 off the device, own addresses' routes too
            self.addrs4.remove(&a.ifindex);
            self.disabled4.insert(a.ifindex);
            self.doubts.links.insert(a.ifindex);
            self.routes_dead(a.ifindex, true, false, &BTreeSet::new(), out);
        }
    }

    /// With a device's last IPv4 address the next hops there die, of routes that have others. They do behind the routes that prefer it as
    /// their source, which go; but those are said first that stay, or the wider of two would go by a dead next hop for a moment.
    fn next_hops_die(&mut self, a: model::Addr, out: &mut Sink<'_>) {
        let all = self.addrs4.get(&a.ifindex);
        if a.addr.is_ipv4() && all.is_some_and(|all| all.len() == 1 && all.contains(&a)) {
            let links = &self.links;
            let flags = |i| next_hop_flags(links, i);
            (self.fib).die(a.ifindex, &flags, &mut |c| say(out, &c));
        }
    }

    /// The devices that a route of this content leaves by.
    fn devices(&self, c: &Content) -> Vec<u32> {
        let mut out: Vec<u32> = c.hops().iter().map(|h| h.ifindex).collect();
        let mut members = vec![c.nh_id()];
        if let Some(o) = self.nexthops.get(&c.nh_id()) {
            members.extend(o.kind.members());
        }
        for id in members {
            if let Some(model::NexthopObject {
                kind: model::NexthopKind::Single(nh),
                ..
            }) = self.nexthops.get(&id)
            {
                out.push(nh.ifindex);
            }
        }
        out.retain(|i| *i != 0);
        out
    }

    // -- links -------------------------------------------------------------------------------

    fn link(&mut self, l: &nl::Link, op: Op, out: &mut Sink<'_>) {
        let mut new = convert::link(l, &self.ports);
        if let (model::LinkKind::Bridge(b), nl::LinkKind::Bridge(told)) = (&mut new.kind, &l.kind) {
            [b.querier4, b.querier6] = self.queriers(new.ifindex, told);
        }
        self.router_setting(new.ifindex, new.master, l.brport.as_ref());
        let old = self.links.get(&new.ifindex);
        if new.bridge_port.is_none()
            && let Some(old) = old.filter(|o| o.model.master == new.master)
        {
            // some messages leave the settings out
            new.bridge_port = old.model.bridge_port;
        }
        let before = old.map(|o| o.flags);
        let masters = [old.map_or(0, |o| o.model.master), new.master];
        let moved = old.is_some() && masters[0] != masters[1];
        // settings of VLANs hang on those of the bridge: with the filter off they are not looked at, nor told of
        let refiltered = old.is_some_and(|o| filters(&o.model) != filters(&new));
        // groups are not told of while the bridge does not snoop; versions decide what a message has of them
        let resnooped = old.is_some_and(|o| snoops(&o.model) != snoops(&new));
        let changed = old.is_none_or(|o| o.model != new);
        let index = new.ifindex;
        let state = LinkState {
            model: new.clone(),
            flags: l.flags,
        };
        self.links.insert(index, state);
        let again = match &mut self.full {
            Some(seen) => {
                seen.links.insert(index);
                true
            }
            None => false,
        };
        if changed || again {
            upsert(out, Object::Link(new));
        }
        if moved || refiltered {
            self.doubts.kinds |= KindSet::BRIDGE_VLAN.0;
        }
        if moved || resnooped {
            self.doubts.kinds |= KindSet::MDB.0;
        }
        if moved {
            self.vlans_gone(index, out);
        }
        if moved && masters.into_iter().any(|m| self.is_vrf(m)) {
            // all its IPv4 routes go, those of own addresses too; what is up gets them again with messages
            // (net/ipv4/fib_frontend.c `fib_netdev_event`, NETDEV_CHANGEUPPER)
            self.routes_dead(index, true, false, &BTreeSet::new(), out);
            self.doubts.links.insert(index);
        }
        let Some(before) = before else { return };
        let went = |bit: u32| before & bit != 0 && l.flags & bit == 0;
        // next hops become dead or alive in silence; RUNNING changes when the kernel gets round to a
        // carrier's change, LOWER_UP may show before
        // (a dump is no such event: looking again and again would raise the same doubt again and again)
        let suspect = !matches!(op, Op::Dumped { .. }) && self.suspects.remove(&index);
        if suspect || (before ^ l.flags) & (IFF_UP | IFF_LOWER_UP | IFF_RUNNING) != 0 {
            self.doubts.links.insert(index);
            self.doubts.nexthops |= suspect && !self.nexthops_on(index).is_empty();
        }
        if before & IFF_UP == 0 && l.flags & IFF_UP != 0 {
            self.disabled4.remove(&index);
        }
        if went(IFF_UP) {
            self.device_silent(index, false, out);
        } else if (before & (IFF_RUNNING | IFF_LOWER_UP) != 0)
            && l.flags & (IFF_RUNNING | IFF_LOWER_UP) == 0
        {
            // the second of them to go, whichever it is (net/ipv4/nexthop.c `nh_netdev_event`)
            self.device_nexthops_gone(index, out);
        }
    }

    fn link_gone(&mut self, index: u32, out: &mut Sink<'_>) {
        // what led there may have been told of behind a dump that has neither
        if self.links.remove(&index).is_none() && !self.suspects.contains(&index) {
            return;
        }
        self.device_silent(index, true, out);
        self.vlans_gone(index, out);
        self.queriers.remove(&index);
        self.addrs6.remove(&index);
        self.routers.retain(|k, _| k.0 != index && k.1 != index);
        self.router_set.remove(&index);
        self.addrs4.remove(&index);
        self.disabled4.remove(&index);
        self.suspects.remove(&index);
        self.doubts.links.insert(index);
        if self
            .chains
            .iter()
            .any(|(family, ..)| matches!(family, 1 | 5))
        {
            self.doubt_base_chains(); // chains at its hooks go with it
        }
        remove(out, Key::Link(index));
    }

    /// The device went down (`gone`: away): what the kernel removes without a message
    /// (net/ipv4/fib_semantics.c `fib_sync_down_dev`, net/ipv4/nexthop.c `nexthop_flush_dev`).
    fn device_silent(&mut self, index: u32, gone: bool, out: &mut Sink<'_>) {
        self.fib.doubt_all_hidden();
        let ids = self.nexthops_on(index);
        let objects = self.with_groups(&ids);
        // those of objects and the others at once, the widest first
        self.routes_dead(index, gone, gone, &objects, out);
        if !ids.is_empty() {
            self.objects_gone(&ids, objects, out);
            self.doubts.nexthops = true;
        }
    }

    fn is_vrf(&self, index: u32) -> bool {
        let link = self.links.get(&index);
        link.is_some_and(|l| matches!(l.model.kind, model::LinkKind::Vrf { .. }))
    }

    /// IPv4 routes of which no next hop is left alive; with `own` those of own addresses as well, with
    /// `gone` those that have any next hop on the device. And all routes by next-hop objects that go.
    fn routes_dead(
        &mut self,
        index: u32,
        own: bool,
        gone: bool,
        objects: &BTreeSet<u32>,
        out: &mut Sink<'_>,
    ) {
        let (links, disabled) = (&self.links, &self.disabled4);
        let down = |i: u32| i == index || links.get(&i).is_none_or(|l| l.flags & IFF_UP == 0);
        let dead = |a: &Alias, c: &Content| {
            let n = c.hops().len();
            let mut hops = c.hops().iter().enumerate();
            gone || hops.all(|(i, h)| {
                // one that came after the address had gone is alive
                down(h.ifindex) || disabled.contains(&h.ifindex) && told_dead(a.state, i, n)
            })
        };
        let by_object = |c: &Content| objects.contains(&c.nh_id());
        let leads = |c: &Content| c.uses(index) && (own || c.dies_with_device());
        let which =
            |v6: bool, a: &Alias, c: &Content| by_object(c) || !v6 && leads(c) && dead(a, c);
        let say = &mut |c: Change<'_>| say(out, &c);
        let f = |c: &Content| by_object(c) || leads(c);
        let family = objects.is_empty().then_some(false);
        self.fib.drop_aliases(family, f, which, say);
    }

    // -- full dumps --------------------------------------------------------------------------

    /// A full dump begins: every object that comes is said again.
    pub fn begin_full(&mut self, out: &mut Sink<'_>) {
        out(Event::BeginSync(SRC, KindSet::ALL));
        self.full = Some(Seen::default());
        self.doubts = Doubts::default();
        self.mixed.clear();
        self.buckets.clear();
        self.addrs4.clear();
        self.addrs6.clear();
        self.routers.clear();
        self.disabled4.clear();
        self.suspects.clear();
        self.filtered.clear();
        self.fib.unmark(|_| true);
        self.fib.begin_full();
    }

    /// The full dump is complete: what it did not hold is gone. The store sweeps by the same rule,
    /// so no removals are said. `lines`: what the kernel hides from dumps shows there.
    pub fn end_full(&mut self, lines: Option<&Lines>, out: &mut Sink<'_>) {
        if let Some(seen) = self.full.take() {
            self.links.retain(|i, _| seen.links.contains(i));
            self.nexthops.retain(|i, _| seen.nexthops.contains(i));
            self.chains.retain(|k| seen.chains.contains(k));
            self.vlans.retain(|k, _| seen.vlans.contains(k));
        }
        self.fib.sweep(None, |_| true, &mut |_| {});
        if let Some(lines) = lines {
            let flags = |ifindex| next_hop_flags6(&self.links, &self.without6, ifindex);
            self.fib.find_hidden(lines, &flags, &mut |c| say(out, &c));
        }
        out(Event::EndSync(SRC));
    }

    /// A dump of a few kinds begins or ends.
    pub fn begin_kinds(&mut self, kinds: KindSet, out: &mut Sink<'_>) {
        out(Event::BeginSync(SRC, kinds));
        if kinds.contains(KindSet::BASE_CHAIN) {
            self.chains.clear();
        }
        if kinds.contains(KindSet::BRIDGE_VLAN) {
            self.vlans.clear();
        }
        if kinds.contains(KindSet::FILTER) {
            self.filtered.clear();
        }
        if kinds.contains(KindSet::MDB) {
            self.routers.clear();
        }
    }

    /// See [`KernelView::begin_kinds`].
    pub fn end_kinds(&mut self, out: &mut Sink<'_>) {
        out(Event::EndSync(SRC));
    }
}
