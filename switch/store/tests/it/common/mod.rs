//! A chip for the store's tests: the real firmware behind two rings that answer when the test says so, and a mirror of
//! what was accepted, to look packets up in.

pub mod bridged;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use tandem_abi::raw::*;
use tandem_firmware::{Firmware, Profile};
use tandem_store::model::*;
use tandem_store::*;
use zerocopy::{FromBytes, IntoBytes};

pub const SRC: SourceId = SourceId::NETLINK;

/// What the chip does with a packet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    Trap,
    Drop,
    /// (ifindex's RIF id, MAC) of every permitted way.
    Ways(Vec<(u16, [u8; 6])>),
}

/// Routes of another VRF than the default one count as of another family: lookups here are the default one's.
fn family_of(r: &tnd_route) -> u8 {
    match r.vrf {
        0 => r.family,
        v => 100 + v as u8,
    }
}

pub struct Chip {
    pub fw: Firmware,
    pub rings: [VecDeque<Planned>; 2],
    pub routes: BTreeMap<(u8, [u8; 16], u8), tnd_route>,
    pub nexthops: BTreeMap<u32, tnd_nexthop>,
    pub groups: BTreeMap<u32, Vec<(u32, u32)>>,
    pub hosts: BTreeMap<(u16, [u8; 16], u8), tnd_neigh>,
    pub rifs: BTreeMap<u16, tnd_rif>,
    pub fdb: BTreeMap<(u16, [u8; 6]), tnd_fdb>,
    pub vlans: BTreeMap<u16, tnd_vlan>,
    pub ports: BTreeMap<u16, tnd_port>,
    pub members: BTreeMap<(u16, u16), tnd_vlan_member>,
    /// Commands executed that changed something on the chip.
    pub writes: u64,
    pub log: Vec<String>,
    pub changed: Vec<String>,
}

pub fn profile(name: &str) -> Profile {
    Profile::builtin(name).expect("profile")
}

impl Chip {
    pub fn new(p: Profile) -> Chip {
        Chip {
            fw: Firmware::new(p).unwrap(),
            rings: Default::default(),
            routes: BTreeMap::new(),
            nexthops: BTreeMap::new(),
            groups: BTreeMap::new(),
            hosts: BTreeMap::new(),
            rifs: BTreeMap::new(),
            fdb: BTreeMap::new(),
            vlans: BTreeMap::new(),
            ports: BTreeMap::new(),
            members: BTreeMap::new(),
            writes: 0,
            log: Vec::new(),
            changed: Vec::new(),
        }
    }

    /// A cold attach: tables emptied.
    pub fn cold(&mut self) {
        self.fw.attach(false);
        self.rings = Default::default();
        self.routes.clear();
        self.nexthops.clear();
        self.groups.clear();
        self.hosts.clear();
        self.rifs.clear();
        self.fdb.clear();
        self.vlans.clear();
        self.members.clear();
        self.ports.clear();
    }

    pub fn post(&mut self, p: Planned) {
        let ring = matches!(p.ring, Ring::Bulk) as usize;
        self.rings[ring].push_back(p);
    }

    /// Forgets an address by itself, as it does when nobody has been heard from there.
    pub fn age(&mut self, fid: u16, mac: [u8; 6]) {
        let there = self.fdb[&(fid, mac)];
        self.post(Planned {
            token: u64::MAX,
            ring: Ring::Sync,
            op: TND_OP_DELETE,
            cls: TND_CLS_FDB,
            flags: 0,
            lease: 0,
            body: Body::Arena(there.as_bytes().into()),
        });
        assert_eq!(self.run(0).unwrap().1.status, TND_ST_OK);
    }

    /// Executes the oldest command of a ring.
    pub fn run(&mut self, ring: usize) -> Option<(u64, Completion)> {
        let p = self.rings[ring].pop_front()?;
        let cmd = tnd_cmd {
            op: p.op,
            cls: p.cls,
            flags: p.flags,
            lease: p.lease,
            body_size: p.body.bytes().len() as u32,
            ..Default::default()
        };
        let mut out = Vec::new();
        let cpl = self.fw.execute(&cmd, p.body.bytes(), &mut out, 0);
        if self.log.len() < 100_000 {
            self.log.push(format!(
                "op {} cls {} status {} {:02x?}",
                p.op,
                p.cls,
                cpl.status,
                &p.body.bytes()[..p.body.bytes().len().min(32)]
            ));
        }
        if cpl.status == TND_ST_OK {
            self.mirror(&p);
        }
        if p.op == TND_OP_END_RESYNC {
            self.reload();
        }
        let mut deltas = [(0u16, 0i32); 8];
        for (d, s) in deltas.iter_mut().zip(cpl.delta.iter()) {
            *d = (s.pool, s.slots as i32);
        }
        let c = Completion {
            status: cpl.status,
            table: cpl.table,
            needed: cpl.needed,
            free: cpl.free,
            size: cpl.size,
            result: cpl.result,
            delta_count: cpl.delta_count as u8,
            deltas,
        };
        Some((p.token, c))
    }

    fn mirror(&mut self, p: &Planned) {
        let b = p.body.bytes();
        let del = p.op == TND_OP_DELETE;
        if !matches!(
            p.op,
            TND_OP_CREATE | TND_OP_UPDATE | TND_OP_DELETE | TND_OP_SET_TRAP
        ) {
            return;
        }
        let changed = match p.cls {
            TND_CLS_ROUTE => {
                let mut r = tnd_route::read_from_prefix(b).unwrap().0;
                let k = (family_of(&r), r.addr, r.prefix_len);
                if del {
                    self.routes.remove(&k).is_some()
                } else {
                    if p.op == TND_OP_SET_TRAP {
                        (r.action, r.target_kind, r.target) = (TND_ACT_TRAP, 0, 0);
                    }
                    self.routes.insert(k, r) != Some(r)
                }
            }
            TND_CLS_NEXTHOP => {
                let n = tnd_nexthop::read_from_prefix(b).unwrap().0;
                if del {
                    self.nexthops.remove(&n.nexthop).is_some()
                } else {
                    self.nexthops.insert(n.nexthop, n) != Some(n)
                }
            }
            TND_CLS_NHG => {
                let (h, rest) = tnd_nhg::read_from_prefix(b).unwrap();
                let m: Vec<(u32, u32)> = rest
                    .chunks_exact(8)
                    .take(h.count as usize)
                    .map(|c| {
                        let m = tnd_nhg_member::read_from_prefix(c).unwrap().0;
                        (m.nexthop, m.weight)
                    })
                    .collect();
                let id = h.nhg;
                if del {
                    self.groups.remove(&id).is_some()
                } else {
                    self.groups.insert(id, m.clone()) != Some(m)
                }
            }
            TND_CLS_NEIGH => {
                let n = tnd_neigh::read_from_prefix(b).unwrap().0;
                let k = (n.rif, n.addr, n.family);
                if del {
                    self.hosts.remove(&k).is_some()
                } else {
                    self.hosts.insert(k, n) != Some(n)
                }
            }
            TND_CLS_RIF => {
                let n = tnd_rif::read_from_prefix(b).unwrap().0;
                if del {
                    self.rifs.remove(&n.rif).is_some()
                } else {
                    self.rifs.insert(n.rif, n) != Some(n)
                }
            }
            TND_CLS_FDB => {
                let n = tnd_fdb::read_from_prefix(b).unwrap().0;
                let k = (n.fid, n.mac);
                if del {
                    self.fdb.remove(&k).is_some()
                } else {
                    self.fdb.insert(k, n) != Some(n)
                }
            }
            TND_CLS_VLAN => {
                let n = tnd_vlan::read_from_prefix(b).unwrap().0;
                if del {
                    self.vlans.remove(&n.fid).is_some()
                } else {
                    self.vlans.insert(n.fid, n) != Some(n)
                }
            }
            TND_CLS_PORT => {
                let n = tnd_port::read_from_prefix(b).unwrap().0;
                self.ports.insert(n.port, n) != Some(n)
            }
            TND_CLS_VLAN_MEMBER => {
                let n = tnd_vlan_member::read_from_prefix(b).unwrap().0;
                if del {
                    self.members.remove(&(n.port, n.vid)).is_some()
                } else {
                    self.members.insert((n.port, n.vid), n) != Some(n)
                }
            }
            _ => false,
        };
        self.writes += u64::from(changed);
        if changed {
            self.changed.push(format!(
                "op {} cls {} {:02x?}",
                p.op,
                p.cls,
                &b[..b.len().min(32)]
            ));
        }
    }

    /// After a sweep: routes, hosts and so on as the firmware dumps them.
    pub fn reload(&mut self) {
        let mut routes = BTreeMap::new();
        for r in self.dump::<tnd_route>(TND_CLS_ROUTE) {
            routes.insert((family_of(&r), r.addr, r.prefix_len), r);
        }
        self.routes = routes;
        let hosts = self.dump::<tnd_neigh>(TND_CLS_NEIGH);
        self.hosts = hosts
            .into_iter()
            .map(|n| ((n.rif, n.addr, n.family), n))
            .collect();
        let nexthops = self.dump::<tnd_nexthop>(TND_CLS_NEXTHOP);
        self.nexthops = nexthops.into_iter().map(|n| (n.nexthop, n)).collect();
    }

    pub fn dump<T: FromBytes + IntoBytes>(&mut self, cls: u16) -> Vec<T> {
        let mut all = Vec::new();
        let mut cursor = 0;
        loop {
            let cmd = tnd_cmd {
                op: TND_OP_DUMP,
                cls,
                out_size: 65536,
                arg: cursor,
                ..Default::default()
            };
            let mut out = Vec::new();
            let cpl = self.fw.execute(&cmd, &[], &mut out, 0);
            assert_eq!(cpl.status, TND_ST_OK);
            for c in out.chunks_exact(size_of::<T>()) {
                all.push(T::read_from_bytes(c).ok().unwrap());
            }
            cursor = cpl.result;
            if cursor == 0 {
                return all;
            }
        }
    }

    /// The chip's answer for a routed packet.
    pub fn lookup(&self, addr: IpAddr) -> Answer {
        let (family, bytes, width) = match addr {
            IpAddr::V4(a) => {
                let mut b = [0; 16];
                b[..4].copy_from_slice(&a.octets());
                (TND_AF_INET, b, 32)
            }
            IpAddr::V6(a) => (TND_AF_INET6, a.octets(), 128),
        };
        if let Some(h) = self
            .hosts
            .values()
            .find(|h| h.family == family && h.addr == bytes)
        {
            return if h.action == TND_ACT_FORWARD {
                Answer::Ways(vec![(h.rif, h.mac)])
            } else {
                Answer::Trap
            };
        }
        for len in (0..=width).rev() {
            let mut k = bytes;
            for i in len..128 {
                k[(i / 8) as usize] &= !(0x80 >> (i % 8));
            }
            let Some(r) = self.routes.get(&(family, k, len as u8)) else {
                continue;
            };
            let way = |n: u32| {
                let n = self.nexthops.get(&n).expect("a route's next hop is there");
                if n.action == TND_ACT_FORWARD {
                    Some((n.rif, n.mac))
                } else {
                    None
                }
            };
            return match (r.action, r.target_kind) {
                (TND_ACT_TRAP, _) => Answer::Trap,
                (TND_ACT_DROP, _) => Answer::Drop,
                (_, TND_RT_NEXTHOP) => {
                    way(r.target).map_or(Answer::Trap, |w| Answer::Ways(vec![w]))
                }
                _ => {
                    let g = self
                        .groups
                        .get(&r.target)
                        .expect("a route's group is there");
                    let mut ways: Vec<_> = g.iter().filter_map(|m| way(m.0)).collect();
                    ways.sort_unstable();
                    ways.dedup();
                    if ways.is_empty() {
                        Answer::Trap
                    } else {
                        Answer::Ways(ways)
                    }
                }
            };
        }
        Answer::Trap
    }

    /// used + in_flight + committed + free == size in every pool.
    pub fn accounting(&mut self) {
        let cmd = tnd_cmd {
            op: TND_OP_SNAPSHOT,
            out_size: 65536,
            ..Default::default()
        };
        let mut out = Vec::new();
        let cpl = self.fw.execute(&cmd, &[], &mut out, 0);
        assert_eq!(cpl.status, TND_ST_OK);
        for c in out.chunks_exact(size_of::<tnd_pool>()) {
            let p = tnd_pool::read_from_bytes(c).unwrap();
            assert_eq!(
                p.used + p.in_flight + p.committed + p.free,
                p.size,
                "{:?}",
                p.name
            );
        }
    }

    pub fn pools(&mut self) -> Vec<tnd_pool> {
        let cmd = tnd_cmd {
            op: TND_OP_SNAPSHOT,
            out_size: 65536,
            ..Default::default()
        };
        let mut out = Vec::new();
        self.fw.execute(&cmd, &[], &mut out, 0);
        out.chunks_exact(size_of::<tnd_pool>())
            .map(|c| tnd_pool::read_from_bytes(c).unwrap())
            .collect()
    }

    /// A configuration for the store that fits this chip.
    pub fn config(&mut self, policy: Policy) -> Config {
        let (pools, costs) = self.fw.resources();
        Config {
            policy,
            ..Config::of_chip(8, &pools, &costs)
        }
    }
}

/// What becomes of a command.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// The chip carries it out and answers.
    Done,
    /// It does nothing, and answers so (`TND_ST_*`).
    Refused(u16),
    /// Its answer gets lost, and it was carried out or not.
    Lost(bool),
}

/// Store and chip, wired.
pub struct Rig {
    pub store: Store,
    pub chip: Chip,
    pub now: u64,
    /// After each plan everything is computed anew, and compared.
    pub judged: bool,
}

impl Rig {
    pub fn new(profile_name: &str, policy: Policy) -> Rig {
        Rig::of(profile(profile_name), policy)
    }

    pub fn of(p: Profile, policy: Policy) -> Rig {
        let mut chip = Chip::new(p);
        let store = Store::new(chip.config(policy));
        Rig {
            store,
            chip,
            now: 0,
            judged: false,
        }
    }

    /// A tiny chip with this many IPv4 routes.
    pub fn tiny(routes: u32, policy: Policy) -> Rig {
        let mut p = profile("tiny");
        p.lpm4.size = routes;
        Rig::of(p, policy)
    }

    pub fn up(&mut self, o: Object) {
        self.now += 1000;
        self.store.apply(Event::Upsert(SRC, o), self.now);
    }

    pub fn del(&mut self, k: Key) {
        self.now += 1000;
        self.store.apply(Event::Remove(SRC, k), self.now);
    }

    pub fn begin(&mut self) {
        self.store
            .apply(Event::BeginSync(SRC, KindSet::ALL), self.now);
    }

    pub fn end(&mut self) {
        self.store.apply(Event::EndSync(SRC), self.now);
    }

    pub fn plan(&mut self) -> usize {
        self.now += 1000;
        let mut out = Vec::new();
        let n = self.store.plan(&mut out, self.now);
        for p in out {
            self.chip.post(p);
        }
        if self.judged {
            self.judge();
        }
        n
    }

    /// What was computed step by step is what follows from everything. Whether it could be looked at.
    pub fn judge(&mut self) -> bool {
        let differs = self.store.topology_differs(self.now);
        let text = differs.as_ref().map(|d| d.join("\n"));
        assert_eq!(text.as_deref().unwrap_or_default(), "");
        differs.is_some()
    }

    pub fn run(&mut self, ring: usize) -> bool {
        self.now += 1000;
        match self.chip.run(ring) {
            Some((token, c)) => {
                self.store.complete(token, &c, self.now);
                true
            }
            None => false,
        }
    }

    /// As [`Rig::settle`], while a sync is running.
    pub fn settle_unsynced(&mut self) {
        for _ in 0..100_000 {
            if self.plan() == 0 && !self.run(0) && !self.run(1) {
                return;
            }
        }
        panic!("does not settle");
    }

    /// Command by command until nothing more is to do; those of ring `first` before the other's. `each`: after each.
    pub fn play(
        &mut self,
        first: usize,
        mut fate: impl FnMut(&Planned) -> Fate,
        mut each: impl FnMut(&Rig),
    ) {
        for _ in 0..10_000 {
            self.plan();
            let ring = match self.chip.rings[first].is_empty() {
                true => 1 - first,
                false => first,
            };
            let Some(p) = self.chip.rings[ring].front() else {
                assert!(self.store.idle());
                return;
            };
            let token = p.token;
            match fate(p) {
                Fate::Done => assert!(self.run(ring)),
                Fate::Refused(status) => {
                    self.chip.rings[ring].pop_front();
                    let c = Completion {
                        status,
                        ..Completion::default()
                    };
                    self.store.complete(token, &c, self.now);
                }
                Fate::Lost(true) => {
                    self.chip.run(ring);
                    self.store.timed_out(token, self.now);
                }
                Fate::Lost(false) => {
                    self.chip.rings[ring].pop_front();
                    self.store.timed_out(token, self.now);
                }
            }
            each(self);
        }
        panic!("does not settle");
    }

    /// The next process attaches warm: of what the chip holds its router interfaces and ports are known.
    pub fn attach_warm(&mut self) {
        self.chip.reload();
        self.store.adopt(Left {
            rifs: self.chip.dump(TND_CLS_RIF),
            ports: self.chip.dump(TND_CLS_PORT),
            ..Left::default()
        });
        self.store.attach(Attach::Warm, self.now);
    }

    /// Until nothing more happens. Panics if that never comes.
    pub fn settle(&mut self) {
        for _ in 0..100_000 {
            let n = self.plan();
            let a = self.run(0);
            let b = self.run(1);
            if n == 0 && !a && !b {
                assert!(
                    self.store.idle(),
                    "not idle, and nothing to do: {:?}",
                    self.store.outstanding()
                );
                return;
            }
        }
        panic!(
            "does not settle: {:?}",
            &self.chip.log[self.chip.log.len().saturating_sub(20)..]
        );
    }
}

/// A reason as people read it; empty if there is none.
pub fn words(why: &Option<Reason>) -> String {
    why.as_ref().map_or_else(String::new, Reason::to_string)
}

pub fn mac(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, n]
}

/// Front-panel port `n`: ifindex 10 + n.
pub fn swp(n: u16) -> Link {
    Link {
        ifindex: 10 + u32::from(n),
        name: format!("swp{n}"),
        kind: LinkKind::Swp { port: n },
        master: 0,
        lower: 0,
        promiscuous: false,
        admin_up: true,
        carrier: true,
        mtu: 1500,
        mac: mac(n as u8),
        bridge_port: None,
        bond_active: false,
        mc_forwarding: false,
    }
}

pub fn addr(ifindex: u32, a: &str) -> Object {
    let n: ipnet::IpNet = a.parse().unwrap();
    Object::Addr(Addr {
        ifindex,
        addr: n.addr(),
        prefix_len: n.prefix_len(),
    })
}

pub fn forwarding(family: Family, scope: ConfScope) -> Object {
    Object::Netconf(Netconf {
        family,
        scope,
        forwarding: Some(true),
        rp_filter: Some(0),
        ignore_linkdown: Some(false),
        send_redirects: Some(false),
        disabled: (family == Family::V6).then_some(false),
    })
}

pub fn hop(ifindex: u32, gw: &str) -> NextHop {
    NextHop {
        ifindex,
        gateway: (!gw.is_empty()).then(|| gw.parse().unwrap()),
        weight: 1,
        dead: false,
        linkdown: false,
        onlink: false,
    }
}

pub fn key(prefix: &str) -> RouteKey {
    RouteKey {
        table: TABLE_MAIN,
        prefix: prefix.parse().unwrap(),
        tos: 0,
        metric: 0,
        position: 0,
    }
}

pub fn route(prefix: &str, nexthops: RouteNextHops) -> Route {
    Route {
        key: key(prefix),
        kind: RouteType::Unicast,
        scope: 0,
        protocol: 3,
        prefsrc: None,
        nexthops,
        unsupported: None,
    }
}

pub fn via(prefix: &str, ifindex: u32, gw: &str) -> Object {
    Object::Route(route(prefix, RouteNextHops::One(hop(ifindex, gw))))
}

pub fn local(prefix: &str, ifindex: u32, kind: RouteType) -> Object {
    let mut r = route(prefix, RouteNextHops::One(hop(ifindex, "")));
    r.key.table = TABLE_LOCAL;
    r.kind = kind;
    r.scope = 254;
    Object::Route(r)
}

pub fn neigh(ifindex: u32, a: &str, m: u8) -> Object {
    Object::Neigh(Neigh {
        ifindex,
        addr: a.parse().unwrap(),
        mac: mac(m),
        state: nud::REACHABLE,
    })
}

/// An interface with an address 10.N.0.1/24, its routes, and a gateway 10.N.0.2 that is resolved.
pub fn interface(r: &mut Rig, n: u16) {
    let i = 10 + u32::from(n);
    r.up(Object::Link(swp(n)));
    r.up(forwarding(Family::V4, ConfScope::Interface(i)));
    r.up(addr(i, &format!("10.{n}.0.1/24")));
    r.up(local(&format!("10.{n}.0.1/32"), i, RouteType::Local));
    r.up(via(&format!("10.{n}.0.0/24"), i, ""));
    r.up(local(&format!("10.{n}.0.255/32"), i, RouteType::Broadcast));
    r.up(neigh(i, &format!("10.{n}.0.2"), 100 + n as u8));
}

/// Two interfaces, a default route by the first, another route by the second, on a chip that has them.
pub fn with_default(r: &mut Rig) {
    r.begin();
    interface(r, 1);
    interface(r, 2);
    r.up(via("0.0.0.0/0", 11, "10.1.0.2"));
    r.up(via("50.0.0.0/8", 12, "10.2.0.2"));
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
}

/// Two routed interfaces with a gateway each, on a chip that has them.
pub fn two_ports(profile: &str, policy: Policy) -> Rig {
    let mut r = Rig::new(profile, policy);
    r.begin();
    interface(&mut r, 1);
    interface(&mut r, 2);
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    r
}

/// The answer is the way to this station alone.
pub fn by(station: u8, answer: &Answer) -> bool {
    matches!(answer, Answer::Ways(w) if w.len() == 1 && w[0].1 == mac(station))
}

/// A next-hop object.
pub fn object(id: u32, kind: NexthopKind) -> Object {
    Object::Nexthop(NexthopObject {
        id,
        kind,
        unsupported: None,
    })
}

/// A next-hop object by a gateway.
pub fn single(id: u32, ifindex: u32, gateway: &str) -> Object {
    object(id, NexthopKind::Single(hop(ifindex, gateway)))
}

/// A tc filter at a port's ingress that drops everything.
pub fn drops_all(ifindex: u32, priority: u16) -> Object {
    Object::Filter(Box::new(Filter {
        key: FilterKey {
            ifindex,
            egress: false,
            chain: 0,
            priority,
            handle: 1,
        },
        text: String::from("drop"),
        fields: tnd_acl_key::default(),
        mask: tnd_acl_key::default(),
        src_ports: None,
        dst_ports: None,
        verdict: FilterVerdict::Drop,
        mirror: None,
        police: None,
        kernel: None,
    }))
}
