//! Front-panel ports, and those that stand for groups: their objects and why their frames are the kernel's.

use crate::Store;
use crate::hw::bodies::Port;
use crate::model::{BR_STATE_FORWARDING, BridgePort, Link};
use crate::vlan::Members;
use std::collections::BTreeSet;
use tandem_abi::raw::*;

impl Store {
    /// Memberships that are to be looked at.
    pub(super) fn refresh_members(&mut self, now: u64) {
        self.refresh_group_ports(now);
        let whole = std::mem::take(&mut self.topo.dirty.memberships);
        for port in &whole {
            let was = self.topo.switching.contains(port);
            let link = self.link_of_port(*port).cloned();
            let wanted = link.map_or_else(Members::new, |l| self.port_members(*port, &l));
            if self.want_members(*port, wanted, now) != was {
                self.topo.dirty.ports.insert(*port);
            }
        }
        let mut single: Vec<(u16, u16)> = Vec::new();
        for (port, vid) in std::mem::take(&mut self.topo.dirty.members) {
            if !whole.contains(&port) {
                single.push((port, vid));
            }
        }
        for of_port in single.chunk_by(|a, b| a.0 == b.0) {
            self.want_some_members(of_port, now);
        }
    }

    /// Ports of groups: there as long as the group is.
    fn refresh_group_ports(&mut self, now: u64) {
        if !self.topo.everything {
            return;
        }
        // Table ids are port − 1: take them all once, in order.
        while self.ports_taken < u32::from(self.config.ports) {
            self.hw.ports.take();
            self.ports_taken += 1;
        }
        let groups: BTreeSet<u16> = self.lags.on.keys().map(|lag| self.lag_port(*lag)).collect();
        for port in self
            .lag_ports
            .difference(&groups)
            .copied()
            .collect::<Vec<_>>()
        {
            self.lag_ports.remove(&port);
            self.topo.dirty.ports.remove(&port);
            self.topo.dirty.memberships.remove(&port);
            self.want_members(port, Members::new(), now);
            self.hw.want::<Port>(u32::from(port) - 1, None, now);
        }
        for port in groups {
            while self.ports_taken < u32::from(port) {
                self.hw.ports.take();
                self.ports_taken += 1;
            }
            self.lag_ports.insert(port);
            self.topo.dirty.ports.insert(port);
            self.topo.dirty.memberships.insert(port);
        }
    }

    fn link_of_port(&self, port: u16) -> Option<&Link> {
        let i = self.topo.if_of_port.get(&port)?;
        self.links.get(i).map(|r| &r.link)
    }

    /// Ports that are to be looked at.
    pub(super) fn refresh_ports(&mut self, now: u64) {
        for port in std::mem::take(&mut self.topo.dirty.ports) {
            let group = self.lag_ports.contains(&port);
            if port == 0 || (port > self.config.ports && !group) {
                continue;
            }
            let body = match self.link_of_port(port).cloned() {
                None if group => continue,
                None if self.topo.away.contains(&port) => Port::AWAY,
                None => Port::CUT_OFF,
                Some(l) => {
                    let (body, reason) = self.port_body(port, &l);
                    self.set_reason(l.ifindex, reason);
                    body
                }
            };
            self.hw.want(u32::from(port) - 1, Some(body), now);
        }
    }

    /// A port's object, and why its frames are the kernel's.
    fn port_body(&self, port: u16, l: &Link) -> (Port, String) {
        let mut flags = if l.admin_up { TND_PORT_UP } else { 0 };
        let mut stp = BR_STATE_FORWARDING;
        let mut reason = self.port_device_reason(l);
        if let (true, Some(why)) = (reason.is_empty(), self.no_lists(port)) {
            reason = why;
        }
        if let Some(why) = self.bond_of(l) {
            // what is set here sleeps while the port is in its group: until then all of it is the kernel's
            flags |= TND_PORT_TRAP_ALL;
            reason = why;
        } else if self.vrf_master(l).is_none() {
            let known = self.topo.bridges.get(&l.master);
            let bridge = known.map(|b| &b.1).filter(|why| !why.is_empty());
            match (known, &l.bridge_port) {
                (Some((info, _)), Some(bp)) => {
                    stp = bp.state;
                    flags |= bridge_port_flags(bp) | self.router_flags(l.master, l.ifindex);
                    if let Some(u) = bp.unsupported {
                        reason = format!("bridge port option {u} is not offloaded");
                    } else if bp.locked && bp.learning && info.no_link_local_learning {
                        // the chip would learn the very stations that ask to be let in (EAPOL)
                        reason =
                            "locked, learning and no_linklocal_learn are not offloaded together"
                                .into();
                    }
                    if let (true, Some(b)) = (reason.is_empty(), bridge) {
                        reason = format!("{}: {b}", self.dev(l.master));
                    }
                }
                _ => {
                    reason = match bridge {
                        Some(b) => format!("{}: {b}", self.dev(l.master)),
                        None => format!(
                            "its master {} is not an offloaded bridge",
                            self.dev(l.master)
                        ),
                    };
                }
            }
        }
        if self.topo.switching.contains(&port) && reason.is_empty() {
            reason = "its VLANs are being replaced".into();
        }
        if !reason.is_empty() {
            flags |= TND_PORT_TRAP_ALL;
        }
        let body = Port {
            flags,
            mtu: l.mtu,
            stp,
            mac: l.mac,
            lag: self.lag_of_port(port),
        };
        (body, reason)
    }

    /// Why what is attached to a port's device needs every frame.
    fn port_device_reason(&self, l: &Link) -> String {
        let free = self.vrf_master(l).is_some();
        let upper = self
            .devices_on(l.ifindex)
            .find(|u| !(free && self.plain_vlan(u, l)));
        if let Some(upper) = upper {
            return format!("{} is on top of it", upper.name);
        }
        match self
            .device_chain(&l.name, false)
            .or_else(|| self.device_chain(&l.name, true))
        {
            Some(c) => format!("nftables base chain {c} is attached to it"),
            None => String::new(),
        }
    }
}

/// What a bridge port's settings are on the chip.
fn bridge_port_flags(bp: &BridgePort) -> u32 {
    [
        (bp.learning, TND_PORT_LEARNING),
        (bp.unicast_flood, TND_PORT_FLOOD_UC),
        (bp.mcast_flood, TND_PORT_FLOOD_MC),
        (bp.bcast_flood, TND_PORT_FLOOD_BC),
        (bp.isolated, TND_PORT_ISOLATED),
        (bp.hairpin, TND_PORT_HAIRPIN),
        (bp.locked, TND_PORT_LOCKED),
    ]
    .into_iter()
    .filter(|(on, _)| *on)
    .fold(0, |all, (_, flag)| all | flag)
}
