//! Neighbours: set by hand, or not known. Nobody answers who is asked, as the recorder has it.

use std::net::IpAddr;

use super::messages::{
    CREATE, DELNEIGH, EXCL, INET, INET6, Message, NEWNEIGH, PORT, REPLACE, Request,
};
use super::{EEXIST, EINVAL, ENODEV, ENOENT, Net};

pub const FAILED: u16 = 0x20;
pub const NOARP: u16 = 0x40;
pub const PERMANENT: u16 = 0x80;
/// `NUD_VALID`
const VALID: u16 = NOARP | PERMANENT;

#[derive(Debug, Clone)]
pub struct Neigh {
    pub dev: u32,
    pub addr: IpAddr,
    pub mac: [u8; 6],
    pub state: u16,
}

impl Neigh {
    pub const fn is_valid(&self) -> bool {
        self.state & VALID != 0
    }

    /// `neigh_fill_info`
    pub fn message(&self, kind: u16, flags: u16, seq: u32, port: u32) -> Vec<u8> {
        let mut fixed = [0; 12];
        fixed[0] = if self.addr.is_ipv4() { INET } else { INET6 };
        fixed[4..8].copy_from_slice(&self.dev.to_ne_bytes());
        fixed[8..10].copy_from_slice(&self.state.to_ne_bytes());
        fixed[11] = 1;
        let mut m = Message::new(kind, flags, seq, port, &fixed);
        match self.addr {
            IpAddr::V4(a) => m.bytes(1, &a.octets()),
            IpAddr::V6(a) => m.bytes(1, &a.octets()),
        }
        if self.is_valid() {
            m.bytes(2, &self.mac);
        }
        m.done()
    }
}

impl Net {
    pub fn neigh(&self, dev: u32, addr: IpAddr) -> Option<&Neigh> {
        self.neighs.iter().find(|n| n.dev == dev && n.addr == addr)
    }

    /// `neigh_add`
    pub fn neigh_add(&mut self, r: &Request<'_>) -> Result<(), i32> {
        let (dev, state) = (r.long(4), r.short(8));
        let Some(addr) = r.attr(1).and_then(super::messages::address) else {
            return Err(EINVAL);
        };
        let mac = r.attr(2).and_then(|v| v.first_chunk::<6>()).copied();
        let Some(mac) = mac else { return Err(EINVAL) };
        if self.dev(dev).is_none() {
            return Err(ENODEV);
        }
        let there = self
            .neighs
            .iter()
            .position(|n| n.dev == dev && n.addr == addr);
        let at = match there {
            None if r.flags & CREATE == 0 => return Err(ENOENT),
            None => self.neigh_create(dev, addr),
            Some(_) if r.flags & EXCL != 0 => return Err(EEXIST),
            Some(at) => at,
        };
        let Some(n) = self.neighs.get_mut(at) else {
            return Err(EINVAL);
        };
        // `__neigh_update`: without NLM_F_REPLACE another address is not taken
        let same = n.mac == mac;
        if n.is_valid() && !same && r.flags & REPLACE == 0 {
            return Ok(());
        }
        let notify = n.state != state || !same;
        (n.state, n.mac) = (state, mac);
        if notify {
            let bytes = n.message(NEWNEIGH, 0, 0, PORT);
            self.tell(bytes);
        }
        Ok(())
    }

    /// `___neigh_create`; the newest is last.
    fn neigh_create(&mut self, dev: u32, addr: IpAddr) -> usize {
        self.neighs.push(Neigh {
            dev,
            addr,
            mac: [0; 6],
            state: 0,
        });
        self.neighs.len() - 1
    }

    /// `neigh_delete`
    pub fn neigh_delete(&mut self, r: &Request<'_>) -> Result<(), i32> {
        let dev = r.long(4);
        let Some(addr) = r.attr(1).and_then(super::messages::address) else {
            return Err(EINVAL);
        };
        if self.dev(dev).is_none() {
            return Err(ENODEV);
        }
        let there = self
            .neighs
            .iter()
            .position(|n| n.dev == dev && n.addr == addr);
        let Some(at) = there else { return Err(ENOENT) };
        let mut n = self.neighs.remove(at);
        let told = n.is_valid();
        if !told {
            // the machine may have thrown it away (`neigh_periodic_work`)
            self.refused = Some("the deletion of a neighbour that did not answer");
        }
        n.state = FAILED;
        if told {
            let bytes = n.message(NEWNEIGH, 0, 0, PORT);
            self.tell(bytes);
        }
        let bytes = n.message(DELNEIGH, 0, 0, 0);
        self.tell(bytes);
        Ok(())
    }

    /// `neigh_ifdown`: all of them go, the newest first (`neigh_flush_dev`).
    pub fn neigh_ifdown(&mut self, dev: u32) {
        self.neigh_flush_dev(dev, false);
    }

    /// `neigh_carrier_down`: permanent ones stay.
    pub fn neigh_carrier_down(&mut self, dev: u32) {
        self.neigh_flush_dev(dev, true);
    }

    fn neigh_flush_dev(&mut self, dev: u32, skip_permanent: bool) {
        let goes = |n: &Neigh| n.dev == dev && !(skip_permanent && n.state & PERMANENT != 0);
        let gone: Vec<Neigh> = self.neighs.iter().filter(|n| goes(n)).cloned().collect();
        self.neighs.retain(|n| !goes(n));
        for n in gone.iter().rev() {
            let bytes = n.message(DELNEIGH, 0, 0, 0);
            self.tell(bytes);
        }
    }

    /// Where a packet to this neighbour goes: `ip_neigh_for_gw`, `ip6_finish_output2`, then `__neigh_event_send`, which asks
    /// nobody.
    pub fn neigh_output(&mut self, dev: u32, addr: IpAddr) -> Option<[u8; 6]> {
        // `arp_constructor`: a loopback device has one entry for all
        let (addr, lo) = match addr {
            IpAddr::V4(_) if dev == 1 => (IpAddr::from([0; 4]), true),
            _ => (addr, false),
        };
        let there = self
            .neighs
            .iter()
            .position(|n| n.dev == dev && n.addr == addr);
        let at = there.unwrap_or_else(|| self.neigh_create(dev, addr));
        let n = self.neighs.get_mut(at)?;
        if lo {
            n.state = NOARP;
        }
        if n.is_valid() {
            return Some(n.mac);
        }
        n.state = FAILED;
        None
    }

    /// Has the neighbour failed, as far as who chooses among ways can tell (`ipv4_good_nh`, `ipv6_good_nh`)?
    pub fn neigh_is_good(&self, dev: u32, addr: IpAddr) -> bool {
        self.neigh(dev, addr).is_none_or(Neigh::is_valid)
    }
}
