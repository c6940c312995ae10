// SPDX-License-Identifier: Apache-2.0
//! IGMP and MLD snooping, between what the chip traps and the database's groups.
//!
//! ```text
//!   configuration ──────────────┐                  ┌─► Database: members, ports of routers, queriers ─► core ─► chip
//!   reports, queries, hellos ───┼─► Snooping ─► ───┤
//!   links, the tree, seconds ───┘     (snoop)      └─► queries that leave, for the packet thread
//!                                       └─► where a message goes on
//! ```
//!
//! Nothing here waits for the chip: an entry that it has not yet, or no room for, sends frames of the group to the CPU, or to
//! all, and never nowhere.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tandem_linux::clock;
use tandem_linux::eventfd::EventFd;
use tandem_snoop::{Change, Family, Forward, HOST, Set, Snooping, Times, To};
use tandem_swconfig::snooping::{Protocol, View};
use tandem_swconfig::{Config, Kind, Name};
use tandem_vlans::Switch;

use crate::engine::Board;

/// Queries that wait to be sent at most: one that is lost is said again.
const OUT: usize = 8192;

/// All that is set, by VLAN and family.
pub(crate) type Wanted = BTreeMap<(u16, Family), Set>;

fn family(of: Protocol) -> Family {
    match of {
        Protocol::Igmp => Family::V4,
        Protocol::Mld => Family::V6,
    }
}

/// The switch's address of the link, by its MAC (RFC 4291, appendix A): MLD's queries have to come from one.
fn link_local([a, b, c, d, e, f]: [u8; 6]) -> IpAddr {
    let of = |x, y| u16::from_be_bytes([x, y]);
    let [b, c, d, e] = [of(a ^ 2, b), of(c, 0xff), of(0xfe, d), of(e, f)];
    IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, b, c, d, e))
}

/// What a configuration wants: in each VLAN that there is, active or not.
pub(crate) fn wanted(config: &Config, mac: [u8; 6]) -> Wanted {
    let mut all = Wanted::new();
    for protocol in Protocol::ALL {
        let set = config.snooping(protocol);
        if !set.on {
            continue;
        }
        let there: BTreeSet<u16> = config.vlans.keys().copied().chain([1]).collect();
        for vid in there {
            let of = set.vlans.get(&vid).cloned().unwrap_or_default();
            if of.off {
                continue;
            }
            let mut members: BTreeMap<IpAddr, BTreeSet<u16>> = BTreeMap::new();
            for (group, port) in &of.members {
                members.entry(*group).or_default().insert(port.number);
            }
            let from = match protocol {
                Protocol::Igmp => address(config, vid),
                Protocol::Mld => link_local(mac),
            };
            let set = Set {
                immediate: of.immediate,
                querier: (set.querier || of.querier).then_some(from),
                routers: of.routers.iter().map(|n| n.number).collect(),
                members,
            };
            all.insert((vid, family(protocol)), set);
        }
    }
    all
}

/// The switch's address in a VLAN; without one it asks as nobody, whom all others come before.
fn address(config: &Config, vid: u16) -> IpAddr {
    let name = Name {
        kind: Kind::Vlan,
        number: vid,
    };
    let own = config.interfaces.get(&name).and_then(|i| i.ipv4);
    IpAddr::V4(own.map_or(Ipv4Addr::UNSPECIFIED, |net| net.address))
}

/// Where a message of groups goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Onward {
    /// To all ports of its VLAN, as if nobody snooped.
    All,
    /// To these ports of it.
    Ports(BTreeSet<u16>),
}

struct Inner {
    snooping: Snooping,
    /// VLAN, to whom, the frame without a tag.
    out: VecDeque<(u16, To, Vec<u8>)>,
    /// So often the tree has changed.
    tree: u64,
}

/// Snooping, for the engine and for the packet thread.
pub struct Snoop {
    names: BTreeMap<u16, Name>,
    switch: Switch,
    wake: Arc<EventFd>,
    inner: Mutex<Inner>,
}

impl Snoop {
    /// Of no VLAN. `wake` is the packet thread's.
    #[must_use]
    pub fn new(board: &Board, switch: Switch, wake: Arc<EventFd>) -> Snoop {
        let all = board.ports.iter();
        Snoop {
            names: all.filter_map(|p| Some((p.0, board.name(p.0)?))).collect(),
            switch,
            wake,
            inner: Mutex::new(Inner {
                snooping: Snooping::new(board.mac, Times::default()),
                out: VecDeque::new(),
                tree: 0,
            }),
        }
    }

    fn name(&self, port: u16) -> Option<Name> {
        let name = self.names.get(&port).copied();
        name.or_else(|| crate::channels::name(port))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Snoops as it is wanted.
    pub(crate) fn configure(&self, wanted: &Wanted) {
        let mut inner = self.lock();
        let before: BTreeSet<u16> = inner.snooping.snooped().map(|s| s.0).collect();
        let changes = inner.snooping.configure(wanted, clock::now_ns());
        let after: BTreeSet<u16> = wanted.keys().map(|k| k.0).collect();
        self.switch.change(|d| {
            for vid in before.difference(&after) {
                d.set_snooping(*vid, None);
            }
            for vid in &after {
                d.set_snooping(*vid, Some(there(&inner.snooping, *vid)));
            }
        });
        self.carry_out(&mut inner, changes);
        drop(inner);
        self.wake.ring();
    }

    /// Hosts and routers are behind other ports from now on: all is flooded until they were asked.
    pub(crate) fn restart(&self) {
        let mut inner = self.lock();
        let changes = inner.snooping.restart(clock::now_ns());
        self.carry_out(&mut inner, changes);
        drop(inner);
        self.wake.ring();
    }

    /// A frame without a tag came by a port of a VLAN (0: the switch itself sends it). `None`: it is no message of groups, or
    /// nobody snoops there.
    pub fn receive(&self, vid: u16, port: u16, bare: &[u8], now: u64) -> Option<Onward> {
        let mut inner = self.lock();
        let (forward, changes) = inner.snooping.receive(vid, port, bare, now);
        self.carry_out(&mut inner, changes);
        match forward? {
            Forward::All => Some(Onward::All),
            Forward::Nowhere => Some(Onward::Ports(BTreeSet::new())),
            Forward::Routers => {
                let family = match bare.get(12..14) {
                    Some([8, 0]) => Family::V4,
                    _ => Family::V6,
                };
                let routers = inner.snooping.routers(vid, family);
                // as long as nobody is known who asks, all may be it
                match routers.is_empty() && !inner.snooping.querier(vid, family).1 {
                    true => Some(Onward::All),
                    false => Some(Onward::Ports(routers.into_keys().collect())),
                }
            }
        }
    }

    /// The chip has said how a port's link is.
    pub fn link(&self, port: u16, up: bool) {
        if up {
            return;
        }
        let mut inner = self.lock();
        let changes = inner.snooping.port_down(port);
        self.carry_out(&mut inner, changes);
    }

    /// What is due by now. When it is to be asked again, ns; `None`: when something happens. `tree`: how often the spanning
    /// tree has made forget where stations are, and so where members are.
    pub fn tick(&self, now: u64, tree: u64) -> Option<u64> {
        let mut inner = self.lock();
        if std::mem::replace(&mut inner.tree, tree) != tree {
            let changes = inner.snooping.restart(now);
            self.carry_out(&mut inner, changes);
        }
        let changes = inner.snooping.tick(now);
        self.carry_out(&mut inner, changes);
        inner.snooping.next()
    }

    /// Are there queries that are to leave?
    #[must_use]
    pub fn has_out(&self) -> bool {
        !self.lock().out.is_empty()
    }

    /// A query that is to leave: its VLAN, to whom, the frame without a tag.
    pub fn next_out(&self) -> Option<(u16, To, Vec<u8>)> {
        self.lock().out.pop_front()
    }

    fn carry_out(&self, inner: &mut Inner, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        let Inner { snooping, out, .. } = inner;
        self.switch.change(|d| {
            for change in changes {
                match change {
                    Change::Member {
                        vlan,
                        group,
                        port,
                        there,
                    } => d.set_member(vlan, group, port, there),
                    Change::Router {
                        vlan,
                        family,
                        port,
                        there,
                    } => d.set_router(vlan, family == Family::V6, port, there),
                    // of a VLAN that snoops no longer the configuration has said it
                    Change::Querier { vlan, .. } => {
                        if snooping.snooped().any(|s| s.0 == vlan) {
                            d.set_snooping(vlan, Some(there(snooping, vlan)));
                        }
                    }
                    Change::Send { vlan, to, frame } => {
                        if out.len() < OUT {
                            out.push_back((vlan, to, frame));
                        }
                    }
                }
            }
        });
    }

    /// How it is.
    #[must_use]
    pub fn view(&self, of: Protocol) -> View {
        let inner = self.lock();
        let (s, family) = (&inner.snooping, family(of));
        let vlans: Vec<u16> = s.snooped().filter(|x| x.1 == family).map(|x| x.0).collect();
        let member = |(vid, group, port, until): (u16, IpAddr, u16, Option<u64>)| {
            let name = match port {
                HOST => None,
                _ => Some(self.name(port)?),
            };
            Some((vid, group, name, until.is_none()))
        };
        let members = s.members().filter(|m| Family::of(m.1) == family);
        let routers = vlans.iter().flat_map(|vid| {
            let all = s.routers(*vid, family).into_iter();
            all.filter_map(|(port, set)| Some((*vid, self.name(port)?, set)))
        });
        let mut members: Vec<_> = members.filter_map(member).collect();
        members.sort_by_key(|m| (m.0, m.1));
        View {
            queriers: vlans.iter().map(|v| (*v, s.querier(*v, family))).collect(),
            members,
            routers: routers.collect(),
        }
    }
}

/// Whether groups of IPv4, and of IPv6, go to their members in a VLAN.
fn there(snooping: &Snooping, vid: u16) -> [bool; 2] {
    Family::ALL.map(|family| snooping.querier(vid, family).1)
}

#[cfg(test)]
mod tests;
