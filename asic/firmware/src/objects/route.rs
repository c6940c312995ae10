//! TND_CLS_ROUTE: a prefix in a VRF, to a next hop, a group, the CPU or nowhere.

use crate::Firmware;
use crate::costs::{Cost, CostRow};
use crate::dump::{SECOND, strides};
use crate::object::{DEPEND, Failure, INVALID, Object, body, count_down, count_up};
use crate::pools::{Need, PoolId};
use tandem_abi::raw;
use tandem_pipeline::entry::RouteTarget;
use tandem_tables::lpm::{Addr, InsertError, RouteId};
use zerocopy::IntoBytes;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Route(raw::tnd_route);

/// A route's key in table form.
enum Prefix {
    V4(u32),
    V6(u128),
}

impl Route {
    fn new(fw: &Firmware, vrf: u16, family: u8, addr: [u8; 16], plen: u8, value: u32) -> Self {
        let t = RouteTarget::unpack(value);
        let (target_kind, target) = fw.state.target_id(t);
        let (action, reason) = match t {
            RouteTarget::Trap(r) => (raw::TND_ACT_TRAP, r),
            RouteTarget::Drop => (raw::TND_ACT_DROP, 0),
            _ => (raw::TND_ACT_FORWARD, 0),
        };
        Self(raw::tnd_route {
            struct_size: size_of::<raw::tnd_route>() as u16,
            vrf,
            family,
            prefix_len: plen,
            action,
            reason,
            target_kind,
            reserved0: [0; 3],
            target,
            addr,
        })
    }

    /// The first IPv4 route at or after a cursor; the cursor behind it is its [`RouteId`] + 1.
    pub(crate) fn next4(fw: &Firmware, cursor: u32, end: u32) -> Option<(u32, Self)> {
        let (next, r) = fw.state.lpm4.next_before(cursor, end)?;
        let mut addr = [0; 16];
        addr[..4].copy_from_slice(&r.addr.to_be_bytes());
        Some((
            next,
            Self::new(fw, r.vrf, raw::TND_AF_INET, addr, r.plen, r.value),
        ))
    }

    /// As [`Self::next4`] for IPv6.
    pub(crate) fn next6(fw: &Firmware, cursor: u32, end: u32) -> Option<(u32, Self)> {
        let (next, r) = fw.state.lpm6.next_before(cursor, end)?;
        Some((
            next,
            Self::new(
                fw,
                r.vrf,
                raw::TND_AF_INET6,
                r.addr.to_be_bytes(),
                r.plen,
                r.value,
            ),
        ))
    }

    fn prefix(&self) -> Option<Prefix> {
        let [a, b, c, d, ..] = self.0.addr;
        match self.0.family {
            raw::TND_AF_INET => Some(Prefix::V4(u32::from_be_bytes([a, b, c, d]))),
            raw::TND_AF_INET6 => Some(Prefix::V6(u128::from_be_bytes(self.0.addr))),
            _ => None,
        }
    }

    /// Its entry in the table.
    pub(crate) fn hit(&self, fw: &Firmware) -> Option<(RouteId, u32)> {
        let r = self.0;
        let hit = match self.prefix()? {
            Prefix::V4(a) => fw.state.lpm4.get(r.vrf, a, r.prefix_len),
            Prefix::V6(a) => fw.state.lpm6.get(r.vrf, a, r.prefix_len),
        };
        hit.map(|h| (h.id, h.value))
    }

    fn v6(&self) -> bool {
        self.0.family == raw::TND_AF_INET6
    }

    fn count(&self, fw: &mut Firmware, up: bool) {
        let id = self.0.target;
        let cls = match self.0.target_kind {
            raw::TND_RT_NEXTHOP => raw::TND_CLS_NEXTHOP,
            raw::TND_RT_NHG => raw::TND_CLS_NHG,
            _ => return,
        };
        let count = if up { count_up } else { count_down };
        count(&mut fw.refs, (cls, id));
    }

    fn insert(&self, fw: &mut Firmware, value: u32) -> Result<(), Failure> {
        let r = self.0;
        let (pool, cost) = if self.v6() {
            (PoolId::Lpm6, fw.state.lpm6.cost())
        } else {
            (PoolId::Lpm4, fw.state.lpm4.cost())
        };
        let need = Need { pool, slots: cost };
        let promised = fw.check_lease(need)?;
        let done = match (self.prefix().ok_or(INVALID)?, promised) {
            (Prefix::V4(a), false) => fw.state.lpm4.insert(r.vrf, a, r.prefix_len, value),
            (Prefix::V4(a), true) => fw
                .state
                .lpm4
                .insert_committed(r.vrf, a, r.prefix_len, value),
            (Prefix::V6(a), false) => fw.state.lpm6.insert(r.vrf, a, r.prefix_len, value),
            (Prefix::V6(a), true) => fw
                .state
                .lpm6
                .insert_committed(r.vrf, a, r.prefix_len, value),
        };
        match done {
            Ok(_) => {
                fw.took(need);
                Ok(())
            }
            Err(InsertError::Full(f)) => Err(Failure::Full(pool, f)),
            Err(InsertError::BadLength(_)) => Err(INVALID),
        }
    }
}

impl Object for Route {
    const CLASS: u16 = raw::TND_CLS_ROUTE;
    const NAME: &'static str = "route";
    const COSTS: &'static [CostRow] = &[
        CostRow {
            family: raw::TND_AF_INET,
            name: "ipv4-route",
            slots: |fw| vec![Cost::of(PoolId::Lpm4, fw.state.lpm4.cost())],
        },
        CostRow {
            family: raw::TND_AF_INET6,
            name: "ipv6-route",
            slots: |fw| vec![Cost::of(PoolId::Lpm6, fw.state.lpm6.cost())],
        },
    ];
    const WIDE: bool = true;

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, size_of::<raw::tnd_route>()).map(Self)
    }
    fn normal(self, _: &Firmware) -> Result<Self, Failure> {
        let mut r = self.0;
        let masked = match self.prefix().ok_or(INVALID)? {
            Prefix::V4(a) => {
                r.prefix_len <= 32 && a.masked(r.prefix_len) == a && r.addr[4..] == [0; 12]
            }
            Prefix::V6(a) => r.prefix_len <= 128 && a.masked(r.prefix_len) == a,
        };
        if !masked {
            return Err(INVALID);
        }
        let forwards = matches!(r.target_kind, raw::TND_RT_NEXTHOP | raw::TND_RT_NHG);
        match r.action {
            raw::TND_ACT_FORWARD if forwards => r.reason = 0,
            raw::TND_ACT_TRAP if u16::from(r.reason) < raw::TND_TRAP_REASON_COUNT => {
                if r.reason == 0 {
                    r.reason = raw::TND_TRAP_ROUTE as u8;
                }
            }
            raw::TND_ACT_DROP => r.reason = 0,
            _ => return Err(INVALID),
        }
        if r.action != raw::TND_ACT_FORWARD {
            r.target_kind = raw::TND_RT_NONE;
            r.target = 0;
        }
        r.struct_size = size_of::<raw::tnd_route>() as u16;
        r.reserved0 = [0; 3];
        Ok(Self(r))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        let r = self.0;
        let (_, value) = self.hit(fw)?;
        let addr = match self.prefix()? {
            Prefix::V4(a) => {
                let mut addr = [0; 16];
                addr[..4].copy_from_slice(&a.masked(r.prefix_len).to_be_bytes());
                addr
            }
            Prefix::V6(a) => a.masked(r.prefix_len).to_be_bytes(),
        };
        Some(Self::new(fw, r.vrf, r.family, addr, r.prefix_len, value))
    }
    fn depends(&self, fw: &Firmware) -> Result<(), Failure> {
        let r = self.0;
        let target = r.target_kind == raw::TND_RT_NONE
            || fw.state.route_target(r.target_kind, r.target).is_some();
        if target && fw.state.has_vrf(r.vrf) {
            Ok(())
        } else {
            Err(DEPEND)
        }
    }
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        let r = self.0;
        let value = match r.action {
            raw::TND_ACT_TRAP => RouteTarget::Trap(r.reason),
            raw::TND_ACT_DROP => RouteTarget::Drop,
            _ => fw
                .state
                .route_target(r.target_kind, r.target)
                .ok_or(DEPEND)?,
        }
        .pack();
        match old {
            None => self.insert(fw, value)?,
            Some(_) => {
                let (id, _) = self.hit(fw).ok_or(INVALID)?;
                if self.v6() {
                    fw.state.lpm6.set_value(id, value);
                } else {
                    fw.state.lpm4.set_value(id, value);
                }
            }
        }
        self.count(fw, true);
        if let Some(o) = old {
            o.count(fw, false);
        }
        Ok(())
    }
    fn in_use(&self, _: &Firmware) -> bool {
        false
    }
    fn remove(&self, fw: &mut Firmware) {
        let r = self.0;
        let gone = match self.prefix() {
            Some(Prefix::V4(a)) => fw
                .state
                .lpm4
                .remove(r.vrf, a, r.prefix_len)
                .map(|g| (PoolId::Lpm4, g.1)),
            Some(Prefix::V6(a)) => fw
                .state
                .lpm6
                .remove(r.vrf, a, r.prefix_len)
                .map(|g| (PoolId::Lpm6, g.1)),
            None => None,
        };
        if let Some((pool, slots)) = gone {
            fw.delta(pool, -i64::from(slots));
            self.count(fw, false);
        }
    }
    fn trapped(&self, asked: &Self) -> Option<Self> {
        let reason = match asked.0.reason {
            r if r != 0 && u16::from(r) < raw::TND_TRAP_REASON_COUNT => r,
            _ => raw::TND_TRAP_ROUTE as u8,
        };
        Some(Self(raw::tnd_route {
            action: raw::TND_ACT_TRAP,
            reason,
            target_kind: raw::TND_RT_NONE,
            target: 0,
            ..self.0
        }))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn unflip(&self, fw: &mut Firmware) {
        fw.unflip_route(self);
    }
    fn family(&self) -> u8 {
        self.0.family
    }
    fn position(&self, fw: &Firmware) -> Option<u64> {
        let (id, _) = self.hit(fw)?;
        Some(u64::from(id.0) | if self.v6() { SECOND } else { 0 })
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        let end = |second: bool| match second {
            true => (from.max(SECOND) as u32, fw.state.lpm6.positions()),
            false if from >= SECOND => (0, 0),
            false => (from as u32, fw.state.lpm4.positions()),
        };
        let (v4, v6) = (end(false), end(true));
        let v4 = strides(fw, v4.0, v4.1, |at, end| Self::next4(fw, at, end));
        let v6 = strides(fw, v6.0, v6.1, |at, end| Self::next6(fw, at, end));
        v4.chain(v6.map(|(at, route)| (SECOND | at, route)))
    }
}
