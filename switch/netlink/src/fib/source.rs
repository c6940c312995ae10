//! Preferred sources of IPv6 routes: the kernel takes them off in silence, and leaves the route where it stands.

use std::collections::HashSet;
use std::net::IpAddr;

use super::super::aliases::{Alias, Key, Key6};
use super::super::dead::rebuild;
use super::{Change, Content, Emit, FibCopy, HopFlags};

impl FibCopy {
    /// An IPv6 address goes, from its last device (`last`) or from one of several (net/ipv6/route.c `fib6_remove_prefsrc`). Of a multipath route
    /// it goes next hop by next hop, and whether another device's address counts the kernel's version says: where such a route has others
    /// beside it, a look at a device would have it behind them, and everything is to be dumped.
    pub(in super::super) fn source_gone6(
        &mut self,
        addr: IpAddr,
        last: bool,
        next_hops: &HopFlags<'_>,
        emit: &mut Emit<'_>,
    ) {
        let hits = (self.contents).which(|c| c.prefsrc == Some(addr) && c.nh_id == 0);
        if hits.is_empty() {
            return;
        }
        let loses = |a: &Alias| hits.get(a.content as usize) == Some(&true);
        let mut keys: HashSet<Key6> = HashSet::new();
        self.v6.aliases.visit(|key, a| {
            if loses(a) {
                keys.insert(*key);
            }
        });
        for key in keys {
            let mut list = self.v6.aliases.list(&key);
            for i in 0..list.len() {
                let alone = list.len() == 1;
                let Some(a) = list.get(i).copied().filter(loses) else {
                    continue;
                };
                let Some(content) = self.contents.get(a.content) else {
                    continue;
                };
                let bare = Content {
                    prefsrc: None,
                    ..content.clone()
                };
                // nor is a message of before a dump, which has routes that have it again
                let sure = last && bare.hops().len() < 2 && !self.v6.dumped;
                let id = self.contents.intern(bare);
                // two that nothing tells apart, or the same one, which a dump has found already
                let twice = list.iter().any(|a| a.content == id);
                if !sure || twice {
                    self.contents.forget(id);
                    self.lost |= !alone;
                    continue;
                }
                self.contents.keep(id);
                self.contents.release(a.content);
                if let Some(place) = list.get_mut(i) {
                    place.content = id;
                }
                if let (Some(route), Some(c)) = (key.route(), self.contents.get(id)) {
                    let route = rebuild(route, c, a.state, next_hops);
                    emit(Change::Upsert(&route, a.position));
                }
            }
            self.v6.aliases.set(key, &list);
        }
    }
}
