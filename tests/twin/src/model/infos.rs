//! What IPv4 routes share: ways out, source, preference (net/ipv4/fib_semantics.c).

use super::addresses::RT_LOCAL;
use super::links::Event;
use super::lookup4::{Flow, IGNORE_LINKSTATE};
use super::messages::{INET, Message, attribute};
use super::routes4::{Alias, BLACKHOLE, Config, UNICAST, error_of};
use super::{
    DEAD, EINVAL, ENETDOWN, ENODEV, HOST, LINK, LINKDOWN, LOCAL, MAIN, NOWHERE, Net, ONLINK,
};

/// A way as a request has it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hop {
    pub dev: u32,
    pub gateway: Option<u32>,
    pub flags: u32,
    pub weight: u32,
}

impl Hop {
    pub fn read(h: &super::messages::Hop<'_>) -> Self {
        Self {
            dev: h.dev,
            gateway: h.gateway.map(super::messages::v4).filter(|g| *g != 0),
            flags: u32::from(h.flags),
            weight: u32::from(h.hops) + 1,
        }
    }
}

/// `struct fib_nh`
#[derive(Debug, Clone, Copy, Default)]
pub struct Way {
    /// 0: none.
    pub dev: u32,
    pub oif: u32,
    pub gateway: Option<u32>,
    pub scope: u8,
    pub flags: u32,
    pub weight: u32,
    /// The source address by it when the route was made (`nh_saddr`).
    pub source: u32,
    /// Hashes up to here; -1: none.
    pub upper: i64,
}

/// `struct fib_info`
#[derive(Debug, Clone)]
pub struct Info {
    pub id: u64,
    pub protocol: u8,
    pub scope: u8,
    pub kind: u8,
    pub table: u32,
    pub priority: u32,
    pub prefsrc: u32,
    pub flags: u32,
    /// Next-hop object; 0: none.
    pub nh: u32,
    pub ways: Vec<Way>,
    pub refs: usize,
    pub source_gone: bool,
}

/// `RTNH_COMPARE_MASK`: flags that tell no routes apart.
const COMPARE: u32 = 1 | 8 | 16 | 64;

impl Net {
    /// An info that an alias refers to.
    pub fn info(&self, id: u64) -> &Info {
        static NONE: Info = Info {
            id: 0,
            protocol: 0,
            scope: 0,
            kind: 0,
            table: 0,
            priority: 0,
            prefsrc: 0,
            flags: 0,
            nh: 0,
            ways: Vec::new(),
            refs: 0,
            source_gone: false,
        };
        self.infos.iter().find(|i| i.id == id).unwrap_or(&NONE)
    }

    /// `fib_release_info`
    pub fn fib_release_info(&mut self, id: u64) {
        if let Some(fi) = self.infos.iter_mut().find(|i| i.id == id) {
            fi.refs -= 1;
        }
        self.infos.retain(|i| i.refs != 0);
    }

    fn hold(&mut self, id: u64) -> u64 {
        if let Some(fi) = self.infos.iter_mut().find(|i| i.id == id) {
            fi.refs += 1;
        }
        id
    }

    /// `fib_create_info`; what it gives is held.
    pub fn fib_create_info(&mut self, cfg: &Config) -> Result<u64, i32> {
        // `fib_props[…].scope`
        let least = match cfg.kind {
            2 => HOST,
            3 | 4 => LINK,
            _ => 0,
        };
        if cfg.kind > 11 || least > cfg.scope || cfg.rt_flags & (DEAD | LINKDOWN) != 0 {
            return Err(EINVAL);
        }
        if cfg.nh_id != 0 {
            if let Some(id) = self.fib_find_info_nh(cfg) {
                return Ok(self.hold(id));
            }
            if self.nexthop(cfg.nh_id).is_none() {
                return Err(EINVAL);
            }
        }
        let mut fi = Info {
            id: 0,
            protocol: cfg.protocol,
            scope: cfg.scope,
            kind: cfg.kind,
            table: cfg.table,
            priority: cfg.priority,
            prefsrc: cfg.prefsrc,
            flags: cfg.rt_flags,
            nh: cfg.nh_id,
            ways: Vec::new(),
            refs: 1,
            source_gone: false,
        };
        if cfg.nh_id == 0 {
            fi.ways = match &cfg.hops {
                Some(hops) => hops.iter().map(Self::fib_nh_init).collect(),
                None => vec![Self::fib_nh_init(&Hop {
                    dev: cfg.oif,
                    gateway: cfg.gateway,
                    flags: cfg.rt_flags,
                    weight: 1,
                })],
            };
            if fi.ways.is_empty() {
                return Err(EINVAL);
            }
            // `fib_get_nhs`
            if cfg.hops.is_some() && fi.ways.iter().any(|w| w.flags & (DEAD | LINKDOWN) != 0) {
                return Err(EINVAL);
            }
        }
        if error_of(cfg.kind) != 0 {
            if cfg.gateway.is_some() || cfg.oif != 0 || cfg.hops.is_some() {
                return Err(EINVAL);
            }
            return Ok(self.link_info(fi));
        }
        if !(1..=5).contains(&cfg.kind) || cfg.scope > HOST {
            return Err(EINVAL);
        }
        if fi.nh != 0 {
            self.fib_check_nexthop(fi.nh, cfg.scope)?;
        } else if cfg.scope == HOST {
            let [way] = fi.ways.as_mut_slice() else {
                return Err(EINVAL);
            };
            if way.gateway.is_some() {
                return Err(EINVAL);
            }
            way.scope = NOWHERE;
            if self.dev(way.oif).is_none() {
                return Err(ENODEV);
            }
            way.dev = way.oif;
        } else {
            let mut down = 0;
            for n in 0..fi.ways.len() {
                let mut way = fi.ways[n];
                self.fib_check_nh(&mut way, cfg.table, cfg.scope)?;
                down += usize::from(way.flags & LINKDOWN != 0);
                fi.ways[n] = way;
            }
            if down == fi.ways.len() {
                fi.flags |= LINKDOWN;
            }
        }
        if fi.prefsrc != 0 && !self.fib_valid_prefsrc(cfg) {
            return Err(EINVAL);
        }
        // `fib_info_update_nhc_saddr`
        for way in &mut fi.ways {
            way.source = self.select_addr(way.dev, way.gateway.unwrap_or(0), fi.scope);
        }
        self.fib_rebalance(&mut fi);
        Ok(self.link_info(fi))
    }

    /// The end of `fib_create_info`: one that is equal serves both (`fib_find_info`).
    fn link_info(&mut self, mut fi: Info) -> u64 {
        let equal = |o: &Info| {
            o.ways.len() == fi.ways.len()
                && o.protocol == fi.protocol
                && o.scope == fi.scope
                && o.prefsrc == fi.prefsrc
                && o.priority == fi.priority
                && o.kind == fi.kind
                && o.table == fi.table
                && (o.flags ^ fi.flags) & !COMPARE == 0
                && Self::nh_comp(o, &fi)
        };
        if let Some(old) = self.infos.iter().rev().find(|o| equal(o)) {
            let id = old.id;
            return self.hold(id);
        }
        fi.id = self.stamp();
        let id = fi.id;
        self.infos.push(fi);
        id
    }

    /// `nh_comp`
    fn nh_comp(a: &Info, b: &Info) -> bool {
        if a.nh != 0 || b.nh != 0 {
            return a.nh == b.nh;
        }
        a.ways.iter().zip(&b.ways).all(|(x, y)| {
            x.oif == y.oif
                && x.gateway == y.gateway
                && x.scope == y.scope
                && x.weight == y.weight
                && (x.flags ^ y.flags) & !COMPARE == 0
        })
    }

    /// `fib_find_info_nh`
    fn fib_find_info_nh(&self, cfg: &Config) -> Option<u64> {
        let equal = |o: &&Info| {
            o.nh == cfg.nh_id
                && o.protocol == cfg.protocol
                && o.scope == cfg.scope
                && o.prefsrc == cfg.prefsrc
                && o.priority == cfg.priority
                && o.kind == cfg.kind
                && o.table == cfg.table
                && (o.flags ^ cfg.rt_flags) & !COMPARE == 0
        };
        self.infos.iter().rev().find(equal).map(|o| o.id)
    }

    /// `fib_nh_init`
    pub fn fib_nh_init(h: &Hop) -> Way {
        Way {
            oif: h.dev,
            gateway: h.gateway,
            flags: h.flags,
            weight: h.weight,
            ..Way::default()
        }
    }

    /// `fib_check_nh`
    pub fn fib_check_nh(&self, way: &mut Way, table: u32, scope: u8) -> Result<(), i32> {
        let Some(gateway) = way.gateway else {
            // `fib_check_nh_nongw`
            if way.flags & ONLINK != 0 {
                return Err(EINVAL);
            }
            let dev = self.dev(way.oif).ok_or(ENODEV)?;
            if !dev.up {
                return Err(ENETDOWN);
            }
            (way.dev, way.scope) = (dev.index, HOST);
            if !dev.carrier {
                way.flags |= LINKDOWN;
            }
            return Ok(());
        };
        // `fib_check_nh_v4_gw`
        if way.flags & ONLINK != 0 {
            if scope >= LINK {
                return Err(EINVAL);
            }
            let dev = self.dev(way.oif).ok_or(ENODEV)?;
            if !dev.up {
                return Err(ENETDOWN);
            }
            if self.addr_type(gateway, Some(dev.index)) != UNICAST {
                return Err(EINVAL);
            }
            (way.dev, way.scope) = (dev.index, LINK);
            if !dev.carrier {
                way.flags |= LINKDOWN;
            }
            return Ok(());
        }
        let flow = Flow {
            daddr: gateway,
            scope: (scope + 1).max(LINK),
            oif: way.oif,
            iif: 1,
            ..Flow::default()
        };
        let mut found = None;
        if table != 0 && table != MAIN && self.tables.iter().any(|t| t.id == table) {
            found = self.fib_table_lookup(table, &flow, IGNORE_LINKSTATE).ok();
        }
        let res = match found {
            Some(res) => res,
            None => self.fib_lookup(&flow, IGNORE_LINKSTATE)?,
        };
        if res.kind != UNICAST && res.kind != RT_LOCAL {
            return Err(EINVAL);
        }
        way.scope = res.scope;
        way.oif = res.way.oif;
        way.dev = res.way.dev;
        let dev = self.dev(way.dev).ok_or(EINVAL)?;
        if !dev.carrier {
            way.flags |= LINKDOWN;
        }
        if dev.up { Ok(()) } else { Err(ENETDOWN) }
    }

    /// `fib_valid_prefsrc`
    fn fib_valid_prefsrc(&self, cfg: &Config) -> bool {
        if cfg.kind == RT_LOCAL && cfg.dst != 0 && cfg.prefsrc == cfg.dst {
            return true;
        }
        let table = if cfg.table == MAIN { LOCAL } else { cfg.table };
        let mut kind = self.addr_type_table(cfg.prefsrc, None, table);
        if kind != RT_LOCAL && table != LOCAL {
            kind = self.addr_type_table(cfg.prefsrc, None, LOCAL);
        }
        kind == RT_LOCAL
    }

    /// `fib_rebalance`
    fn fib_rebalance(&self, fi: &mut Info) {
        if fi.nh != 0 || fi.ways.len() < 2 {
            return;
        }
        let dead = |w: &Way| w.flags & DEAD != 0 || w.flags & LINKDOWN != 0 && self.ignores(w.dev);
        let alive: Vec<bool> = fi.ways.iter().map(|w| !dead(w)).collect();
        super::hash::bounds(
            fi.ways
                .iter_mut()
                .zip(alive)
                .map(|(w, alive)| (&mut w.upper, if alive { w.weight } else { 0 })),
        );
    }

    /// `fib_nh_match`: is it the route that shall be deleted?
    pub fn fib_nh_match(&self, cfg: &Config, fi: &Info) -> bool {
        if cfg.priority != 0 && cfg.priority != fi.priority {
            return false;
        }
        if cfg.nh_id != 0 {
            return fi.nh == cfg.nh_id;
        }
        if fi.nh != 0 {
            return cfg.oif == 0 && cfg.gateway.is_none() && cfg.hops.is_none();
        }
        if cfg.oif != 0 || cfg.gateway.is_some() {
            let Some(way) = fi.ways.first() else {
                return false;
            };
            return (cfg.oif == 0 || cfg.oif == way.oif)
                && (cfg.gateway.is_none() || cfg.gateway == way.gateway);
        }
        let Some(hops) = &cfg.hops else { return true };
        for (n, way) in fi.ways.iter().enumerate() {
            // more ways than were named: -EINVAL, which is no match either
            let Some(hop) = hops.get(n) else { return false };
            if hop.dev != 0 && hop.dev != way.oif {
                return false;
            }
            if hop.gateway.is_some() && hop.gateway != way.gateway {
                return false;
            }
        }
        true
    }

    /// `fib_sync_down_addr`
    pub fn fib_sync_down_addr(&mut self, local: u32) -> bool {
        let mut any = false;
        let all = self.infos.iter_mut();
        for fi in all.filter(|fi| local != 0 && fi.prefsrc == local && fi.table == MAIN) {
            fi.flags |= DEAD;
            fi.source_gone = true;
            any = true;
        }
        any
    }

    /// `fib_sync_down_dev`
    pub fn fib_sync_down_dev(&mut self, dev: u32, event: Event, force: bool) -> bool {
        let mut any = false;
        let marks = match event {
            Event::Change => LINKDOWN,
            _ => DEAD | LINKDOWN,
        };
        let mut infos = std::mem::take(&mut self.infos);
        for fi in infos
            .iter_mut()
            .filter(|fi| fi.ways.iter().any(|w| w.dev == dev))
        {
            let mut dead = 0;
            for way in &mut fi.ways {
                if way.flags & DEAD != 0 {
                    dead += 1;
                } else if way.dev == dev && (force || way.scope != NOWHERE) {
                    way.flags |= marks;
                    dead += 1;
                }
            }
            if dead == fi.ways.len() {
                fi.flags |= marks;
                any = true;
            }
            self.fib_rebalance(fi);
        }
        self.infos = infos;
        any
    }

    /// `fib_sync_up`
    pub fn fib_sync_up(&mut self, dev: u32, flags: u32) {
        let Some(d) = self.dev(dev).filter(|d| d.up) else {
            return;
        };
        let mut clear = flags;
        if flags & DEAD != 0 && d.lives() {
            clear |= LINKDOWN;
        }
        let up: Vec<u32> = (self.devs.iter().filter(|d| d.up))
            .map(|d| d.index)
            .collect();
        let mut infos = std::mem::take(&mut self.infos);
        for fi in infos
            .iter_mut()
            .filter(|fi| fi.ways.iter().any(|w| w.dev == dev))
        {
            let mut alive = 0;
            for way in &mut fi.ways {
                if way.flags & clear == 0 {
                    alive += 1;
                    continue;
                }
                if !up.contains(&way.dev) || way.dev != dev {
                    continue;
                }
                alive += 1;
                way.flags &= !clear;
            }
            if alive > 0 {
                fi.flags &= !clear;
            }
            self.fib_rebalance(fi);
        }
        self.infos = infos;
    }

    /// `fib_disable_ip`
    pub fn fib_disable_ip(&mut self, dev: u32, force: bool) {
        if self.fib_sync_down_dev(dev, Event::Down, force) {
            self.fib_flush();
        }
        self.neigh_ifdown(dev);
    }

    /// `fib_dump_info`
    pub fn route4_message(
        &self,
        kind: u16,
        table: u32,
        key: u32,
        fa: &Alias,
        from: (u32, u32),
        modes: u16,
    ) -> Vec<u8> {
        let fi = self.info(fa.info);
        let blackhole = fi.nh != 0 && self.nexthop_is_blackhole(fi.nh);
        let rt_kind = if blackhole { BLACKHOLE } else { fa.kind };
        let ways = self.ways_of(fi);
        let mut flags = fi.flags;
        if let [way] = ways.as_slice() {
            flags = self.way_flags(way);
        }
        let small = u8::try_from(table).unwrap_or(252);
        let mut fixed = [
            INET,
            fa.len,
            0,
            fa.tos,
            small,
            fi.protocol,
            fi.scope,
            rt_kind,
            0,
            0,
            0,
            0,
        ];
        fixed[8..].copy_from_slice(&flags.to_ne_bytes());
        let mut m = Message::new(kind, modes, from.0, from.1, &fixed);
        m.number(15, table);
        if fa.len != 0 {
            m.v4(1, key);
        }
        if fi.priority != 0 {
            m.number(6, fi.priority);
        }
        if fi.prefsrc != 0 {
            m.v4(7, fi.prefsrc);
        }
        if fi.nh != 0 {
            m.number(30, fi.nh);
        }
        if let [way] = ways.as_slice() {
            if let Some(g) = way.gateway {
                m.v4(5, g);
            }
            if way.dev != 0 {
                m.number(4, way.dev);
            }
        } else {
            let mut nest = Vec::new();
            for way in &ways {
                let gateway = way.gateway.map(|g| attribute(5, &g.to_be_bytes()));
                let gateway = gateway.unwrap_or_default();
                nest.extend_from_slice(&(8 + gateway.len() as u16).to_ne_bytes());
                nest.push(self.way_flags(way) as u8);
                nest.push((way.weight - 1) as u8);
                nest.extend_from_slice(&way.dev.to_ne_bytes());
                nest.extend_from_slice(&gateway);
            }
            m.bytes(9, &nest);
        }
        m.done()
    }

    /// `fib_nexthop_info`
    fn way_flags(&self, way: &Way) -> u32 {
        let mut flags = way.flags & (DEAD | LINKDOWN | ONLINK);
        if way.flags & LINKDOWN != 0 && self.ignores(way.dev) {
            flags |= DEAD;
        }
        flags
    }
}
