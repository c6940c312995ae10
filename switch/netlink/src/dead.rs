//! Which next hops are dead: what the kernel marks in silence, and a multipath route's message would tell.
//!
//! A next hop dies with its device's link, which the link tells, in IPv6 where that is switched off on its device (`disable_ipv6`), or in IPv4
//! with its device's last address (net/ipv4/fib_frontend.c `fib_disable_ip`), which the routes that were there then keep and later ones do
//! not have.

use tandem_linux::netlink::consts::{RTNH_F_DEAD, RTNH_F_LINKDOWN};
use tandem_linux::netlink::{Nexthops, Route, RouteNexthop};

use super::aliases::{Key, MARK};
use super::fib::{Change, Content, Emit, FibCopy, HopFlags};

/// So many next hops [`digest`] tells apart.
const EXACT: usize = 7;

/// Dead and linkdown of the next hops: exact up to seven next hops, folded beyond.
pub(super) fn digest(r: &Route) -> u16 {
    let mut d = 0u16;
    for h in r.nexthops.as_slice() {
        let two =
            u16::from(h.flags & RTNH_F_DEAD != 0) | u16::from(h.flags & RTNH_F_LINKDOWN != 0) << 1;
        d = (d << 2 | d >> 13 & 3) & !MARK ^ two;
    }
    d & !MARK
}

/// Whether next hop `i` of `n` was dead when the route was last told: as when its device lost its last IPv4 address, which no
/// link tells.
pub(super) fn told_dead(state: u16, i: usize, n: usize) -> bool {
    n <= EXACT && i < n && state >> (2 * (n - 1 - i)) & 1 != 0
}

/// A route that another one's message moves: nothing is told of it. `state`: its next hops', when it was last told (in IPv6, whose
/// next hops are told in changing order, nothing but the device makes one dead).
pub(super) fn rebuild(mut r: Route, c: &Content, state: u16, next_hops: &HopFlags<'_>) -> Route {
    let (n, v4) = (c.nexthops.as_slice().len(), r.dst.addr().is_ipv4());
    let now = |(i, h): (usize, &RouteNexthop)| {
        let dead = match v4 && told_dead(state, i, n) {
            true => RTNH_F_DEAD,
            false => 0,
        };
        RouteNexthop {
            flags: h.flags | dead | next_hops(h.ifindex),
            ..*h
        }
    };
    r.kind = c.kind;
    r.scope = c.scope;
    r.protocol = c.protocol;
    r.nh_id = c.nh_id;
    r.src = c.src;
    r.prefsrc = c.prefsrc;
    r.mtu = c.mtu;
    r.nexthops = match &c.nexthops {
        Nexthops::None => Nexthops::None,
        Nexthops::One(h) => Nexthops::One(now((0, h))),
        Nexthops::Many(hops) => Nexthops::Many(hops.iter().enumerate().map(now).collect()),
    };
    r
}

impl FibCopy {
    /// The device lost its last IPv4 address: its next hops of the IPv4 routes that are there are dead from now on. Routes without another
    /// next hop go, of which others tell.
    pub(super) fn die(&mut self, index: u32, next_hops: &HopFlags<'_>, emit: &mut Emit<'_>) {
        let hits = self
            .contents
            .which(|c| c.uses(index) && c.dies_with_device());
        if hits.is_empty() {
            return;
        }
        let mut found = Vec::new();
        self.v4.aliases.retain(|key, a| {
            if hits.get(a.content as usize) == Some(&true) {
                found.push((*key, a.position));
            }
            true
        });
        for (key, position) in found {
            let mut list = self.v4.aliases.list(&key);
            let Some(a) = list.iter_mut().find(|a| a.position == position) else {
                continue;
            };
            let (Some(bare), Some(c)) = (key.route(), self.contents.get(a.content)) else {
                continue;
            };
            let state = a.state | dead_bits(c, index);
            let n = c.hops().len();
            let lives = |(i, h): (usize, &RouteNexthop)| {
                !told_dead(state, i, n) && next_hops(h.ifindex) & RTNH_F_DEAD == 0
            };
            if state != a.state && c.hops().iter().enumerate().any(lives) {
                a.state = state;
                let route = rebuild(bare, c, state, next_hops);
                emit(Change::Upsert(&route, position));
                self.v4.aliases.set(key, &list);
            }
        }
    }
}

/// The bits of [`digest`] that say that the next hops on a device are dead; none where it is folded.
fn dead_bits(c: &Content, index: u32) -> u16 {
    let n = c.hops().len();
    if n > EXACT {
        return 0;
    }
    let on = c
        .hops()
        .iter()
        .enumerate()
        .filter(|(_, h)| h.ifindex == index);
    on.fold(0, |bits, (i, _)| bits | 1 << (2 * (n - 1 - i)))
}
