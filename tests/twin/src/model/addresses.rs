//! IPv4 addresses, and the routes that they bring.

use super::links::Addr4;
use super::messages::{APPEND, CREATE, DELADDR, INET, Message, NEWADDR, Request};
use super::routes4::{Config, UNICAST};
use super::{Cause, EADDRNOTAVAIL, EEXIST, EINVAL, ENODEV, LINK, LOCAL, MAIN, Net};

pub const RT_LOCAL: u8 = 2;
pub const RT_BROADCAST: u8 = 3;
const HOST: u8 = 254;

impl Addr4 {
    /// `inet_fill_ifaddr`
    pub fn message(
        &self,
        kind: u16,
        dev: u32,
        name: &str,
        flags: u16,
        from: (u32, u32),
    ) -> Vec<u8> {
        let bits = 0x80 | u8::from(self.secondary);
        let mut fixed = [INET, self.len, bits, self.scope, 0, 0, 0, 0];
        fixed[4..].copy_from_slice(&dev.to_ne_bytes());
        let mut m = Message::new(kind, flags, from.0, from.1, &fixed);
        m.v4(1, self.local);
        m.v4(2, self.local);
        m.text(3, name);
        m.number(8, u32::from(bits));
        m.done()
    }
}

impl Net {
    fn tell_addr4(&mut self, kind: u16, index: u32, ifa: &Addr4, from: Cause) {
        let from = self.cause(from);
        let name = self.dev(index).map_or("", |d| d.name.as_str());
        let bytes = ifa.message(kind, index, name, 0, from);
        self.tell(bytes);
    }

    /// `inetdev_event`: lo comes up with its own.
    pub fn loopback_address(&mut self) {
        let ifa = Addr4 {
            local: 0x7f00_0001,
            len: 8,
            scope: HOST,
            secondary: false,
        };
        let _ = self.inet_insert_ifa(1, ifa, Cause::Kernel);
    }

    /// `inet_rtm_newaddr`
    pub fn inet_newaddr(&mut self, r: &Request<'_>) -> Result<(), i32> {
        let index = r.long(4);
        let (Some(local), len) = (r.attr(2), r.byte(1)) else {
            return Err(EINVAL);
        };
        if len > 32 {
            return Err(EINVAL);
        }
        if self.dev(index).is_none() {
            return Err(ENODEV);
        }
        let ifa = Addr4 {
            local: super::messages::v4(local),
            len,
            scope: r.byte(3),
            secondary: false,
        };
        self.inet_insert_ifa(index, ifa, Cause::Asked)
    }

    /// `__inet_insert_ifa`: a second one of a network is secondary and goes to the end, the others before it.
    fn inet_insert_ifa(&mut self, index: u32, mut ifa: Addr4, from: Cause) -> Result<(), i32> {
        let Some(dev) = self.dev_mut(index) else {
            return Err(ENODEV);
        };
        let mut last_primary = 0;
        for (n, other) in dev.addrs4.iter().enumerate() {
            if !other.secondary && ifa.scope <= other.scope {
                last_primary = n + 1;
            }
            if other.len == ifa.len && other.covers(ifa.local) {
                if other.local == ifa.local {
                    return Err(EEXIST);
                }
                if other.scope != ifa.scope {
                    return Err(EINVAL);
                }
                ifa.secondary = true;
            }
        }
        let at = if ifa.secondary {
            dev.addrs4.len()
        } else {
            last_primary
        };
        dev.addrs4.insert(at, ifa);
        self.tell_addr4(NEWADDR, index, &ifa, from);
        self.inetaddr_event(index, ifa, true);
        Ok(())
    }

    /// `inet_rtm_deladdr`
    pub fn inet_deladdr(&mut self, r: &Request<'_>) -> Result<(), i32> {
        let index = r.long(4);
        let Some(dev) = self.dev(index) else {
            return Err(ENODEV);
        };
        let (local, address) = (r.attr(2), r.attr(1));
        let wanted = |a: &Addr4| {
            local.is_none_or(|v| super::messages::v4(v) == a.local)
                && address.is_none_or(|v| a.len == r.byte(1) && a.covers(super::messages::v4(v)))
        };
        let Some(at) = dev.addrs4.iter().position(wanted) else {
            return Err(EADDRNOTAVAIL);
        };
        self.inet_del_ifa(index, at);
        Ok(())
    }

    /// `__inet_del_ifa`; secondaries go with their primary (`promote_secondaries` is off).
    fn inet_del_ifa(&mut self, index: u32, at: usize) {
        let Some(ifa) = self.dev(index).and_then(|d| d.addrs4.get(at)).copied() else {
            return;
        };
        if !ifa.secondary {
            loop {
                let Some(dev) = self.dev_mut(index) else {
                    return;
                };
                let after = dev.addrs4.iter().skip(at + 1);
                let found = after
                    .into_iter()
                    .position(|a| a.secondary && a.len == ifa.len && ifa.covers(a.local));
                let Some(n) = found else { break };
                let second = dev.addrs4.remove(at + 1 + n);
                self.tell_addr4(DELADDR, index, &second, Cause::Asked);
                self.inetaddr_event(index, second, false);
            }
        }
        if let Some(dev) = self.dev_mut(index) {
            dev.addrs4.remove(at);
        }
        self.tell_addr4(DELADDR, index, &ifa, Cause::Asked);
        self.inetaddr_event(index, ifa, false);
    }

    /// `fib_inetaddr_event`
    fn inetaddr_event(&mut self, index: u32, ifa: Addr4, up: bool) {
        if up {
            self.fib_add_ifaddr(index, ifa);
            self.fib_sync_up(index, super::DEAD);
            return;
        }
        self.fib_del_ifaddr(index, ifa);
        if self.dev(index).is_some_and(|d| d.addrs4.is_empty()) {
            self.fib_disable_ip(index, true);
        }
    }

    /// `fib_magic`
    fn fib_magic(&mut self, add: bool, kind: u8, dst: u32, len: u8, dev: u32, source: u32) {
        let (table, scope) = match kind {
            UNICAST => (MAIN, LINK),
            RT_LOCAL => (LOCAL, HOST),
            _ => (LOCAL, LINK),
        };
        let cfg = Config {
            protocol: 2,
            kind,
            dst,
            len,
            prefsrc: source,
            oif: dev,
            flags: CREATE | APPEND,
            table,
            scope,
            ..Config::default()
        };
        let _ = if add {
            self.fib_table_insert(&cfg, Cause::Kernel)
        } else {
            self.fib_table_delete(&cfg, Cause::Kernel)
        };
    }

    /// `inet_ifa_byprefix`
    fn ifa_by_prefix(&self, index: u32, prefix: u32, len: u8) -> Option<Addr4> {
        let addrs = &self.dev(index)?.addrs4;
        (addrs.iter())
            .find(|a| a.len == len && a.covers(prefix))
            .copied()
    }

    /// `fib_add_ifaddr`
    pub fn fib_add_ifaddr(&mut self, index: u32, ifa: Addr4) {
        let mask = ifa.mask();
        let prefix = ifa.local & mask;
        let prim = if ifa.secondary {
            match self.ifa_by_prefix(index, prefix, ifa.len) {
                Some(p) => p,
                None => return,
            }
        } else {
            ifa
        };
        self.fib_magic(true, RT_LOCAL, ifa.local, 32, index, prim.local);
        let Some((up, lo)) = self.dev(index).map(|d| (d.up, d.is_lo())) else {
            return;
        };
        if !up {
            return;
        }
        if prefix >> 24 != 0 && !ifa.secondary && (prefix != ifa.local || ifa.len < 32) {
            let kind = if lo { RT_LOCAL } else { UNICAST };
            self.fib_magic(true, kind, prefix, ifa.len, index, prim.local);
            if ifa.len < 31 {
                self.fib_magic(true, RT_BROADCAST, prefix | !mask, 32, index, prim.local);
            }
        }
    }

    /// `fib_del_ifaddr`, without promotion: no address has a broadcast address of its own here.
    fn fib_del_ifaddr(&mut self, index: u32, ifa: Addr4) {
        let mask = ifa.mask();
        let (brd, any) = (ifa.local | !mask, ifa.local & mask);
        let lo = index == 1;
        let mut prim = ifa;
        let mut subnet = false;
        if ifa.secondary {
            match self.ifa_by_prefix(index, any, ifa.len) {
                Some(p) => prim = p,
                None => return,
            }
        } else if any >> 24 != 0 && (any != ifa.local || ifa.len < 32) {
            let kind = if lo { RT_LOCAL } else { UNICAST };
            self.fib_magic(false, kind, any, ifa.len, index, prim.local);
            subnet = true;
        }
        let (mut local_ok, mut brd_ok, mut brd0, mut brd1) = (false, false, false, false);
        let mut prim1: Option<Addr4> = None;
        let mut same_source = false;
        let addrs = self.dev(index).map(|d| d.addrs4.clone());
        for one in addrs.unwrap_or_default() {
            if one.secondary {
                if one.len == prim.len && prim.covers(one.local) {
                    prim1 = Some(prim);
                } else {
                    if !same_source {
                        continue;
                    }
                    if prim1.is_none_or(|p| one.len != p.len || !p.covers(one.local)) {
                        prim1 = self.ifa_by_prefix(index, one.local, one.len);
                    }
                    if prim1.is_none_or(|p| p.local != prim.local) {
                        continue;
                    }
                }
            } else {
                if prim.local != one.local {
                    continue;
                }
                prim1 = Some(one);
                same_source |= prim.len != one.len;
            }
            local_ok |= ifa.local == one.local;
            // neither has a broadcast address assigned: both are 0
            brd_ok = true;
            let is_primary = prim1.is_some_and(|p| p.local == one.local && p.len == one.len);
            if is_primary && one.len < 31 {
                let (b, a) = (one.local | !one.mask(), one.local & one.mask());
                if a >> 24 != 0 {
                    brd1 |= brd == b || brd == a;
                    brd0 |= any == b || any == a;
                }
            }
        }
        if !brd_ok {
            self.fib_magic(false, RT_BROADCAST, 0, 32, index, prim.local);
        }
        if subnet && ifa.len < 31 {
            if !brd1 {
                self.fib_magic(false, RT_BROADCAST, brd, 32, index, prim.local);
            }
            if !brd0 {
                self.fib_magic(false, RT_BROADCAST, any, 32, index, prim.local);
            }
        }
        if !local_ok {
            self.fib_magic(false, RT_LOCAL, ifa.local, 32, index, prim.local);
            // `inet_addr_type_dev_table`
            let gone = self.addr_type(ifa.local, Some(index)) != RT_LOCAL;
            if gone && self.fib_sync_down_addr(ifa.local) {
                self.fib_flush();
            }
        }
    }

    /// `inet_select_addr`
    pub fn select_addr(&self, index: u32, dst: u32, scope: u8) -> u32 {
        let mut addr = 0;
        if let Some(d) = self.dev(index) {
            for ifa in &d.addrs4 {
                if ifa.secondary || ifa.scope.min(HOST) > scope {
                    continue;
                }
                if dst == 0 || ifa.covers(dst) {
                    addr = ifa.local;
                    break;
                }
                if addr == 0 {
                    addr = ifa.local;
                }
            }
        }
        if addr != 0 {
            return addr;
        }
        // `in_dev_select_addr`, of any device
        let all = self.devs.iter().flat_map(|d| &d.addrs4);
        let mut fit = all.filter(|a| !a.secondary && a.scope != LINK && a.scope <= scope);
        fit.next().map_or(0, |a| a.local)
    }

    /// Is it an address of the switch (`inet_lookup_ifaddr_rcu`)?
    pub fn is_own4(&self, a: u32) -> bool {
        let mut all = self.devs.iter().flat_map(|d| &d.addrs4);
        all.any(|ifa| ifa.local == a)
    }
}
