//! IPv6 of a switch that has no addresses of it: a device is ready or not, and has a route to groups (net/ipv6/addrconf.c).

use super::links::Event;
use super::messages::{CREATE, DELROUTE, EXCL, INET6, MULTI, Message, NEWADDR, NEWROUTE};
use super::{HOST, LINKDOWN, LOCAL, Net};

const RTN_LOCAL: u8 = 2;
const RTN_MULTICAST: u8 = 5;
const RTPROT_KERNEL: u8 = 2;
/// `IP6_RT_PRIO_ADDRCONF`
const PRIORITY: u32 = 256;
const LOOPBACK: u128 = 1;

/// The route to ff00::/8 by a device.
#[derive(Debug, Clone, Copy)]
pub struct Groups6 {
    dev: u32,
    flags: u32,
}

impl Groups6 {
    fn message(&self, kind: u16, modes: u16) -> Vec<u8> {
        let to = (0xff << 120, 8);
        route(
            kind,
            modes,
            to,
            RTN_MULTICAST,
            PRIORITY,
            self.dev,
            self.flags,
        )
    }
}

/// `rt6_fill_node`
fn route(
    kind: u16,
    modes: u16,
    to: (u128, u8),
    rt_kind: u8,
    priority: u32,
    dev: u32,
    flags: u32,
) -> Vec<u8> {
    let mut fixed = [
        INET6,
        to.1,
        0,
        0,
        LOCAL as u8,
        RTPROT_KERNEL,
        0,
        rt_kind,
        0,
        0,
        0,
        0,
    ];
    fixed[8..].copy_from_slice(&flags.to_ne_bytes());
    let mut m = Message::new(kind, modes, 0, 0, &fixed);
    m.number(15, LOCAL);
    m.v6(1, to.0);
    m.number(6, priority);
    m.number(4, dev);
    m.bytes(20, &[0]);
    m.done()
}

impl Net {
    /// `addrconf_notify`
    pub fn addrconf_notify(&mut self, index: u32, event: Event) {
        let Some(dev) = self.dev(index).filter(|d| !d.is_lo()) else {
            return;
        };
        let link_ready = dev.up && dev.carrier && dev.is_running();
        let was_ready = dev.ready;
        let mine = self.groups6.iter_mut().filter(|g| g.dev == index);
        match event {
            // `addrconf_ifdown`
            Event::Down => {
                let gone: Vec<Groups6> = mine.map(|g| *g).collect();
                self.groups6.retain(|g| g.dev != index);
                for g in gone {
                    self.tell(g.message(DELROUTE, 0));
                }
                self.set_ready(index, false);
            }
            // `rt6_sync_down_dev`
            Event::Change if !link_ready => mine.for_each(|g| g.flags |= LINKDOWN),
            // `rt6_sync_up`
            Event::Change if was_ready => mine.for_each(|g| g.flags &= !LINKDOWN),
            Event::Up if !link_ready => {}
            Event::Up | Event::Change => {
                self.set_ready(index, true);
                self.add_mroute(index);
            }
        }
    }

    fn set_ready(&mut self, index: u32, ready: bool) {
        if let Some(d) = self.dev_mut(index) {
            d.ready = ready;
        }
    }

    /// `addrconf_add_mroute`
    fn add_mroute(&mut self, dev: u32) {
        if let Some(there) = self.groups6.iter_mut().find(|g| g.dev == dev) {
            there.flags &= !LINKDOWN;
            return;
        }
        // `fib6_add_rt2node`: the first of its metric is told as such
        let first = if self.groups6.is_empty() { EXCL } else { 0 };
        let new = Groups6 { dev, flags: 0 };
        self.groups6.push(new);
        self.tell(new.message(NEWROUTE, CREATE | first));
    }

    /// `inet6_fill_ifaddr`, of the loopback device's.
    pub fn dump_addrs6() -> Vec<Vec<u8>> {
        let mut fixed = [INET6, 128, 0x80, HOST, 0, 0, 0, 0];
        fixed[4..].copy_from_slice(&1u32.to_ne_bytes());
        let mut m = Message::new(NEWADDR, MULTI, 0, 0, &fixed);
        m.v6(1, LOOPBACK);
        m.number(8, 0x80);
        vec![m.done()]
    }

    /// `fib6_dump_table`
    pub fn dump_routes6(&self) -> Vec<Vec<u8>> {
        let modes = MULTI | 0x20;
        let own = route(NEWROUTE, modes, (LOOPBACK, 128), RTN_LOCAL, 0, 1, 0);
        let groups = self.groups6.iter().map(|g| g.message(NEWROUTE, modes));
        [own].into_iter().chain(groups).collect()
    }
}
