//! Which IPv4 route a packet takes (net/ipv4/fib_trie.c `fib_table_lookup`, net/ipv4/fib_rules.c, net/ipv4/fib_semantics.c).

use super::addresses::RT_LOCAL;
use super::infos::{Info, Way};
use super::routes4::{Alias, UNICAST, error_of};
use super::{DEAD, EACCES, EAGAIN, EINVAL, ENETUNREACH, LINK, LINKDOWN, LOCAL, Net};

/// `FIB_LOOKUP_IGNORE_LINKSTATE`
pub const IGNORE_LINKSTATE: u32 = 1;

/// `struct flowi4`
#[derive(Debug, Clone, Copy, Default)]
pub struct Flow {
    pub daddr: u32,
    pub saddr: u32,
    pub oif: u32,
    pub iif: u32,
    pub tos: u8,
    pub scope: u8,
}

/// `struct fib_result`
#[derive(Debug, Clone, Copy, Default)]
pub struct Found {
    pub kind: u8,
    pub scope: u8,
    pub way: Way,
    pub table: u32,
    pub len: u8,
    pub info: u64,
}

impl Net {
    /// `fib_lookup_good_nhc`
    fn good_way(&self, way: &Way, flow: &Flow, flags: u32) -> bool {
        way.flags & DEAD == 0
            && !(way.flags & LINKDOWN != 0
                && flags & IGNORE_LINKSTATE == 0
                && self.ignores(way.dev))
            && (flow.oif == 0 || flow.oif == way.oif)
    }

    /// The ways of a route, be they its own or its object's.
    pub fn ways_of(&self, fi: &Info) -> Vec<Way> {
        if fi.nh == 0 {
            fi.ways.clone()
        } else {
            self.nexthop_ways(fi.nh)
        }
    }

    /// `fib_table_lookup`
    pub fn fib_table_lookup(&self, id: u32, flow: &Flow, flags: u32) -> Result<Found, i32> {
        let Some(table) = self.tables.iter().find(|t| t.id == id) else {
            return Err(EAGAIN);
        };
        let covers = |key: u32, fa: &Alias| u64::from(key ^ flow.daddr) < 1u64 << fa.slen();
        // the longest first; routes of one leaf stand together, as their addresses end in zeros
        let mut leaves: Vec<(u8, usize)> = Vec::new();
        for (n, leaf) in table.leaves.iter().enumerate() {
            let fit = leaf.aliases.iter().filter(|fa| covers(leaf.key, fa));
            if let Some(len) = fit.map(|fa| fa.len).max() {
                leaves.push((len, n));
            }
        }
        leaves.sort_by_key(|(len, _)| std::cmp::Reverse(*len));
        for (_, n) in leaves {
            let Some(leaf) = table.leaves.get(n) else {
                continue;
            };
            for fa in leaf.aliases.iter().filter(|fa| covers(leaf.key, fa)) {
                let fi = self.info(fa.info);
                // `fib_dscp_masked_match`
                if fa.tos != 0 && fa.tos != flow.tos & 0x1e || fi.scope < flow.scope {
                    continue;
                }
                match error_of(fa.kind) {
                    0 => {}
                    error => return Err(error),
                }
                if fi.flags & DEAD != 0 {
                    continue;
                }
                if fi.nh != 0 && self.nexthop_is_blackhole(fi.nh) {
                    return Err(EINVAL);
                }
                let ways = self.ways_of(fi);
                let good = ways.iter().find(|w| self.good_way(w, flow, flags));
                match good {
                    Some(way) => {
                        return Ok(Found {
                            kind: fa.kind,
                            scope: fi.scope,
                            way: *way,
                            table: id,
                            len: fa.len,
                            info: fa.info,
                        });
                    }
                    // `goto miss`: other routes of this leaf are not looked at
                    None if fi.nh != 0 => break,
                    None => {}
                }
            }
        }
        Err(EAGAIN)
    }

    /// `__fib_lookup`: by the rules, one after the other.
    pub fn fib_lookup(&self, flow: &Flow, flags: u32) -> Result<Found, i32> {
        for rule in &self.rules[0] {
            if rule.iif != 0 && rule.iif != flow.iif || !rule.matches4(flow.saddr) {
                continue;
            }
            let found = match rule.action {
                1 => self.fib_table_lookup(rule.table, flow, flags),
                // `fib4_rule_action`
                7 => Err(ENETUNREACH),
                8 => Err(EACCES),
                _ => Err(EINVAL),
            };
            if !matches!(found, Err(EAGAIN)) {
                return found;
            }
        }
        Err(ENETUNREACH)
    }

    /// `__inet_dev_addr_type`, of the local table
    pub fn addr_type(&self, addr: u32, dev: Option<u32>) -> u8 {
        self.addr_type_table(addr, dev, LOCAL)
    }

    pub fn addr_type_table(&self, addr: u32, dev: Option<u32>, table: u32) -> u8 {
        const RT_MULTICAST: u8 = 5;
        match addr >> 24 {
            0 => return super::addresses::RT_BROADCAST,
            224..=239 => return RT_MULTICAST,
            _ => {}
        }
        if !self.tables.iter().any(|t| t.id == table) {
            return super::addresses::RT_BROADCAST;
        }
        let flow = Flow {
            daddr: addr,
            ..Flow::default()
        };
        let Ok(found) = self.fib_table_lookup(table, &flow, 0) else {
            return UNICAST;
        };
        let first = self.ways_of(self.info(found.info)).first().map(|w| w.dev);
        if dev.is_none() || dev == first {
            found.kind
        } else {
            UNICAST
        }
    }

    /// `__ip_dev_find`: an address of the switch, or one of the local table.
    pub fn is_local_source(&self, addr: u32) -> bool {
        self.is_own4(addr) || self.addr_type(addr, None) == RT_LOCAL
    }

    /// `__fib_validate_source` without a reverse path filter. (Only in namespaces that had a rule or a local route of their own
    /// is it asked at all; otherwise nothing but the switch's own addresses is refused, which have a local route as well.)
    pub fn is_martian(&self, source: u32, destination: u32, tos: u8, oif: u32) -> bool {
        let flow = Flow {
            daddr: source,
            saddr: destination,
            iif: if oif == 0 { 1 } else { oif },
            tos,
            ..Flow::default()
        };
        self.fib_lookup(&flow, 0).is_ok_and(|f| f.kind != UNICAST)
    }

    /// `fib_select_path`
    pub fn fib_select_path(&mut self, found: &mut Found, flow: &Flow, hash: i64) {
        if flow.oif != 0 {
            return;
        }
        let fi = self.info(found.info);
        let ways = self.ways_of(fi);
        if ways.len() > 1 {
            let (nh, scope) = (fi.nh, fi.scope);
            let way = if nh != 0 {
                self.nexthop_select_path(nh, hash)
            } else if self.by_hash_alone {
                Self::fib_select_multipath(&ways, hash, 0)
            } else {
                self.check_sources(&ways, scope, flow);
                Self::fib_select_multipath(&ways, hash, flow.saddr)
            };
            found.way = way.unwrap_or(found.way);
            return;
        }
        let all = (self.tables.iter()).filter(|t| t.id == found.table);
        let all = all.flat_map(|t| &t.leaves).flat_map(|l| &l.aliases);
        if found.len == 0 && found.kind == UNICAST && all.filter(|fa| fa.len == 0).count() > 1 {
            // `fib_select_default` goes by neighbours' states, and by its last choice
            self.refused = Some("packets of the switch by one of several default routes");
        }
    }

    /// `fib_select_multipath`: by hash; a way of the source address goes before (since Linux 6.16).
    pub fn fib_select_multipath(ways: &[Way], hash: i64, source: u32) -> Option<Way> {
        let (mut best, mut chosen) = (-1, None);
        for way in ways.iter().filter(|w| w.upper >= 0) {
            let mut score = i32::from(hash <= way.upper);
            if source != 0 && way.source == source {
                score += 2;
            }
            if score > best {
                (best, chosen) = (score, Some(*way));
            }
            if score == 3 || source == 0 && score == 1 {
                break;
            }
        }
        chosen
    }

    /// A way's source address is worked out anew now and then (`fib_result_prefsrc`): which one stands there is not known when
    /// the addresses have changed.
    fn check_sources(&mut self, ways: &[Way], scope: u8, flow: &Flow) {
        let changed = |w: &Way| {
            let now = self.select_addr(w.dev, w.gateway.unwrap_or(0), scope);
            now != w.source && [now, w.source].contains(&flow.saddr)
        };
        if flow.saddr != 0 && ways.iter().any(changed) {
            self.refused = Some("a multipath route's ways whose source addresses have changed");
        }
    }

    /// `fib_result_prefsrc`
    pub fn prefsrc(&self, found: &Found) -> u32 {
        let fi = self.info(found.info);
        if fi.prefsrc != 0 {
            return fi.prefsrc;
        }
        let gateway = found.way.gateway.unwrap_or(0);
        self.select_addr(found.way.dev, gateway, fi.scope)
    }

    /// Is the way's gateway where packets go, or their destination itself (`rt_set_nexthop`)?
    pub fn next_address(way: &Way, destination: u32) -> u32 {
        match way.gateway {
            Some(g) if way.scope == LINK => g,
            _ => destination,
        }
    }
}
