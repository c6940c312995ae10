//! IPv4 routes: tables, leaves of one key, aliases in them (net/ipv4/fib_trie.c).

use super::infos::Hop;
use super::messages::{APPEND, CREATE, DELROUTE, EXCL, MULTI, NEWROUTE, REPLACE, Request};
use super::{Cause, EEXIST, EINVAL, ENOENT, ESRCH, MAIN, NOWHERE, Net, mask4};

pub const UNICAST: u8 = 1;
pub const BLACKHOLE: u8 = 6;
pub const UNREACHABLE: u8 = 7;
pub const PROHIBIT: u8 = 8;
pub const THROW: u8 = 9;

/// `struct fib_config`
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub dst: u32,
    pub len: u8,
    pub tos: u8,
    pub protocol: u8,
    pub scope: u8,
    pub kind: u8,
    pub table: u32,
    pub oif: u32,
    pub gateway: Option<u32>,
    pub priority: u32,
    pub prefsrc: u32,
    pub rt_flags: u32,
    pub nh_id: u32,
    pub hops: Option<Vec<Hop>>,
    /// NLM_F_*
    pub flags: u16,
}

/// `struct fib_alias`
#[derive(Debug, Clone, Copy)]
pub struct Alias {
    pub len: u8,
    pub tos: u8,
    pub kind: u8,
    /// Which `struct fib_info`.
    pub info: u64,
}

impl Alias {
    pub const fn slen(&self) -> u8 {
        32 - self.len
    }
}

/// All routes that begin with the same address.
#[derive(Debug, Clone)]
pub struct Leaf {
    pub key: u32,
    pub aliases: Vec<Alias>,
}

/// A table, its leaves by key.
#[derive(Debug, Clone)]
pub struct Table {
    pub id: u32,
    pub leaves: Vec<Leaf>,
}

/// `fib_props[…].error`
pub const fn error_of(kind: u8) -> i32 {
    match kind {
        BLACKHOLE => super::EINVAL,
        UNREACHABLE => super::EHOSTUNREACH,
        PROHIBIT => super::EACCES,
        THROW => super::EAGAIN,
        _ => 0,
    }
}

impl Net {
    /// `fib_new_table`
    pub fn table4(&mut self, id: u32) -> &mut Table {
        let at = match self.tables.iter().position(|t| t.id == id) {
            Some(at) => at,
            None => {
                // by bucket: `FIB_TABLE_HASHSZ`
                let bucket = |id: u32| id & 255;
                let at = self.tables.iter().position(|t| bucket(t.id) > bucket(id));
                let at = at.unwrap_or(self.tables.len());
                let leaves = Vec::new();
                self.tables.insert(at, Table { id, leaves });
                at
            }
        };
        &mut self.tables[at]
    }

    /// `rtm_to_fib_config`
    pub fn config4(r: &Request<'_>) -> Result<Config, i32> {
        let mut c = Config {
            len: r.byte(1),
            tos: r.byte(3),
            table: u32::from(r.byte(4)),
            protocol: r.byte(5),
            scope: r.byte(6),
            kind: r.byte(7),
            rt_flags: r.long(8),
            flags: r.flags,
            ..Config::default()
        };
        for (kind, v) in r.attrs() {
            match kind {
                1 => c.dst = super::messages::v4(v),
                4 => c.oif = r.number(4),
                5 => c.gateway = Some(super::messages::v4(v)).filter(|g| *g != 0),
                6 => c.priority = r.number(6),
                7 => c.prefsrc = super::messages::v4(v),
                9 => {
                    let hops = super::messages::hops(v);
                    c.hops = Some(hops.iter().map(Hop::read).collect());
                }
                15 => c.table = r.number(15),
                30 => c.nh_id = r.number(30),
                _ => {}
            }
        }
        if c.len > 32 || c.dst & !mask4(c.len) != 0 {
            return Err(EINVAL);
        }
        if c.nh_id != 0 && (c.oif != 0 || c.gateway.is_some() || c.hops.is_some()) {
            return Err(EINVAL);
        }
        if c.table == 0 {
            c.table = MAIN;
        }
        Ok(c)
    }

    /// `inet_rtm_newroute`
    pub fn inet_newroute(&mut self, r: &Request<'_>) -> Result<(), i32> {
        let cfg = Self::config4(r)?;
        self.fib_table_insert(&cfg, Cause::Asked)
    }

    /// `inet_rtm_delroute`
    pub fn inet_delroute(&mut self, r: &Request<'_>) -> Result<(), i32> {
        let cfg = Self::config4(r)?;
        if cfg.nh_id != 0 && self.nexthop(cfg.nh_id).is_none() {
            return Err(EINVAL);
        }
        if !self.tables.iter().any(|t| t.id == cfg.table) {
            return Err(ESRCH);
        }
        self.fib_table_delete(&cfg, Cause::Asked)
    }

    /// `fib_find_alias`: the first that is not before this key.
    fn find_alias(&self, leaf: &Leaf, slen: u8, tos: u8, priority: u32) -> Option<usize> {
        for (n, fa) in leaf.aliases.iter().enumerate() {
            if fa.slen() < slen {
                continue;
            }
            if fa.slen() != slen {
                break;
            }
            if fa.tos > tos {
                continue;
            }
            if self.info(fa.info).priority >= priority || fa.tos < tos {
                return Some(n);
            }
        }
        None
    }

    /// `fib_table_insert`
    pub fn fib_table_insert(&mut self, cfg: &Config, from: Cause) -> Result<(), i32> {
        let (id, key, slen) = (cfg.table, cfg.dst, 32 - cfg.len);
        let fi = self.fib_create_info(cfg)?;
        let mut modes = EXCL;
        let leaf = self.leaf(id, key).cloned();
        let mut at = leaf
            .as_ref()
            .and_then(|l| self.find_alias(l, slen, cfg.tos, cfg.priority));
        let same_key = |net: &Self, fa: &Alias| {
            fa.slen() == slen && fa.tos == cfg.tos && net.info(fa.info).priority == cfg.priority
        };
        if let (Some(l), Some(first)) = (&leaf, at)
            && let Some(fa) = l.aliases.get(first)
            && same_key(self, fa)
        {
            if cfg.flags & EXCL != 0 {
                self.fib_release_info(fi);
                return Err(EEXIST);
            }
            modes &= !EXCL;
            let mut matched = None;
            let mut end = l.aliases.len();
            for (n, fa) in l.aliases.iter().enumerate().skip(first) {
                if !same_key(self, fa) {
                    end = n;
                    break;
                }
                if fa.kind == cfg.kind && fa.info == fi {
                    matched = Some(n);
                    break;
                }
            }
            if cfg.flags & REPLACE != 0 {
                modes |= REPLACE;
                if let Some(n) = matched {
                    self.fib_release_info(fi);
                    return if n == first { Ok(()) } else { Err(EEXIST) };
                }
                let new = Alias {
                    len: cfg.len,
                    tos: cfg.tos,
                    kind: cfg.kind,
                    info: fi,
                };
                let old = fa.info;
                if let Some(slot) = self
                    .leaf_mut(id, key)
                    .and_then(|l| l.aliases.get_mut(first))
                {
                    *slot = new;
                }
                self.tell_route4(NEWROUTE, id, key, &new, from, modes);
                self.fib_release_info(old);
                return Ok(());
            }
            if matched.is_some() {
                self.fib_release_info(fi);
                return Err(EEXIST);
            }
            if cfg.flags & APPEND != 0 {
                modes |= APPEND;
                at = (end < l.aliases.len()).then_some(end);
            }
        }
        if cfg.flags & CREATE == 0 {
            self.fib_release_info(fi);
            return Err(ENOENT);
        }
        modes |= CREATE;
        let new = Alias {
            len: cfg.len,
            tos: cfg.tos,
            kind: cfg.kind,
            info: fi,
        };
        // `fib_insert_alias`: before that one, or behind all that are as long
        let at = match (&leaf, at) {
            (_, Some(at)) => at,
            (Some(l), None) => {
                let after = l.aliases.iter().position(|fa| slen < fa.slen());
                after.unwrap_or(l.aliases.len())
            }
            (None, None) => 0,
        };
        let table = self.table4(id);
        let place = table.leaves.partition_point(|l| l.key < key);
        if leaf.is_none() {
            let aliases = Vec::new();
            table.leaves.insert(place, Leaf { key, aliases });
        }
        if let Some(l) = table.leaves.get_mut(place) {
            l.aliases.insert(at.min(l.aliases.len()), new);
        }
        self.tell_route4(NEWROUTE, id, key, &new, from, modes);
        Ok(())
    }

    fn leaf(&self, table: u32, key: u32) -> Option<&Leaf> {
        let table = self.tables.iter().find(|t| t.id == table)?;
        table.leaves.iter().find(|l| l.key == key)
    }

    pub fn leaf_mut(&mut self, table: u32, key: u32) -> Option<&mut Leaf> {
        let table = self.tables.iter_mut().find(|t| t.id == table)?;
        table.leaves.iter_mut().find(|l| l.key == key)
    }

    /// `fib_table_delete`
    pub fn fib_table_delete(&mut self, cfg: &Config, from: Cause) -> Result<(), i32> {
        let slen = 32 - cfg.len;
        let leaf = self.leaf(cfg.table, cfg.dst).ok_or(ESRCH)?;
        let first = self.find_alias(leaf, slen, cfg.tos, 0).ok_or(ESRCH)?;
        let mut found = None;
        for (n, fa) in leaf.aliases.iter().enumerate().skip(first) {
            if fa.slen() != slen || fa.tos != cfg.tos {
                break;
            }
            let fi = self.info(fa.info);
            if (cfg.kind == 0 || fa.kind == cfg.kind)
                && (cfg.scope == NOWHERE || fi.scope == cfg.scope)
                && (cfg.prefsrc == 0 || fi.prefsrc == cfg.prefsrc)
                && (cfg.protocol == 0 || fi.protocol == cfg.protocol)
                && self.fib_nh_match(cfg, fi)
            {
                found = Some((n, *fa));
                break;
            }
        }
        let (at, fa) = found.ok_or(ESRCH)?;
        self.tell_route4(DELROUTE, cfg.table, cfg.dst, &fa, from, 0);
        self.drop_alias(cfg.table, cfg.dst, at);
        self.fib_release_info(fa.info);
        Ok(())
    }

    /// `fib_remove_alias`
    fn drop_alias(&mut self, table: u32, key: u32, at: usize) {
        if let Some(t) = self.tables.iter_mut().find(|t| t.id == table) {
            if let Some(l) = t.leaves.iter_mut().find(|l| l.key == key) {
                l.aliases.remove(at);
            }
            t.leaves.retain(|l| !l.aliases.is_empty());
        }
    }

    /// `fib_flush`: in each table from the highest key down, what is marked dead. Nobody is told, but where the route's source
    /// address went.
    pub fn fib_flush(&mut self) {
        let tables: Vec<u32> = self.tables.iter().map(|t| t.id).collect();
        for id in tables {
            let leaves = self.table4(id).leaves.clone();
            for leaf in leaves.iter().rev() {
                let mut gone = 0;
                for (n, fa) in leaf.aliases.iter().enumerate() {
                    let fi = self.info(fa.info);
                    if fi.flags & super::DEAD == 0 {
                        continue;
                    }
                    let told = fi.source_gone;
                    if told {
                        self.tell_route4(DELROUTE, id, leaf.key, fa, Cause::Kernel, 0);
                    }
                    self.drop_alias(id, leaf.key, n - gone);
                    gone += 1;
                    self.fib_release_info(fa.info);
                }
            }
        }
    }

    /// `fib_info_notify_update`: routes of these infos are told again, from the highest key down.
    pub fn fib_notify_update(&mut self, infos: &[u64]) {
        let tables = self.tables.clone();
        for table in &tables {
            for leaf in table.leaves.iter().rev() {
                for fa in &leaf.aliases {
                    if infos.contains(&fa.info) {
                        self.tell_route4(NEWROUTE, table.id, leaf.key, fa, Cause::Asked, REPLACE);
                    }
                }
            }
        }
    }

    fn tell_route4(
        &mut self,
        kind: u16,
        table: u32,
        key: u32,
        fa: &Alias,
        from: Cause,
        modes: u16,
    ) {
        let bytes = self.route4_message(kind, table, key, fa, self.cause(from), modes);
        self.tell(bytes);
    }

    /// `fib_table_dump`, of all tables
    pub fn dump_routes4(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for table in &self.tables {
            for leaf in &table.leaves {
                for fa in &leaf.aliases {
                    let m =
                        self.route4_message(NEWROUTE, table.id, leaf.key, fa, (0, 0), MULTI | 0x20);
                    all.push(m);
                }
            }
        }
        all
    }
}
