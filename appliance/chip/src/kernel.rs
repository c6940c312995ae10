// SPDX-License-Identifier: Apache-2.0
//! The IP stack of the network namespace in which this is called, with the TAPs of VLANs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use tandem_swconfig::probe::Prober;
use tandem_swconfig::routing::{Ask, Learned};
use tandem_swconfig::{Net, Via};
use tandem_swfrr::Line;
use tandem_swstack::{Beside, Ip};
use tandem_vlans::{TapMaker, TapOf};

use crate::steps::{Device, Neighbour, Says, Stack, Wanted};
use crate::taps::Taps;

/// The kernel.
pub struct Kernel {
    ip: Ip,
    taps: Arc<Taps>,
    beside: Beside,
}

impl Kernel {
    /// Of this thread's network namespace, with these TAPs.
    ///
    /// # Errors
    /// One line.
    pub fn open(taps: Arc<Taps>) -> Result<Kernel, String> {
        Ok(Kernel {
            ip: Ip::open()?,
            taps,
            beside: Beside::default(),
        })
    }

    /// With routing protocols, and those who ask other hosts.
    #[must_use]
    pub fn with(mut self, beside: Beside) -> Kernel {
        self.beside = beside;
        self
    }
}

impl TapMaker for Kernel {
    fn make(&mut self, vid: u16) -> Result<TapOf, String> {
        self.taps.make(vid)
    }

    fn remove(&mut self, vid: u16) {
        self.taps.remove(vid);
    }
}

impl Stack for Kernel {
    fn set(&mut self, device: Device, wanted: &Wanted) -> Result<(), String> {
        self.ip.set(device, wanted)
    }

    fn forward(&mut self, on: bool) -> Result<(), String> {
        self.ip.forward(on)
    }

    fn route(&mut self, to: Net<IpAddr>, distance: u8, via: &BTreeSet<Via>) -> Result<(), String> {
        self.ip.route(to, distance, via)
    }

    fn routes(&mut self) -> Result<Vec<(Net<IpAddr>, u8)>, String> {
        self.ip.routes()
    }

    fn neighbour(
        &mut self,
        at: Device,
        address: Ipv4Addr,
        mac: Option<[u8; 6]>,
    ) -> Result<(), String> {
        self.ip.neighbour(at, address, mac)
    }

    fn fixed(&mut self) -> Result<Vec<(Device, Ipv4Addr)>, String> {
        tandem_swstack::fixed_neighbours()
    }

    fn protocols(&mut self, now: &[Line]) -> Result<(), String> {
        self.beside.protocols(now)
    }

    fn forget_neighbours(&mut self) -> Result<(), String> {
        self.beside.forget_neighbours()
    }

    fn notes(&mut self) -> Vec<String> {
        self.beside.notes()
    }

    fn says(&self) -> Box<dyn Says> {
        Box::new(Seen(self.beside.clone()))
    }
}

/// What there is to be seen of it.
struct Seen(Beside);

impl Says for Seen {
    fn learned(&self) -> Vec<Learned> {
        self.0.learned()
    }

    fn ask(&self, what: Ask) -> Result<String, String> {
        self.0.ask(what)
    }

    fn neighbours(&self) -> Vec<Neighbour> {
        self.0.neighbours()
    }

    fn prober(&self, source: Option<Ipv4Addr>) -> Result<Box<dyn Prober>, String> {
        self.0.prober(source)
    }

    fn counters(&self) -> BTreeMap<String, [u64; 4]> {
        tandem_swstack::counters()
    }
}
