// SPDX-License-Identifier: Apache-2.0
//! The IP stack of the network namespace in which this is called, with the TAPs of VLANs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use tandem_swconfig::probe::Prober;
use tandem_swconfig::routing::{Ask, Learned};
use tandem_swconfig::{Net, Via};
use tandem_swfrr::{Frr, Line};
use tandem_swstack::Ip;
use tandem_vlans::{TapMaker, TapOf};

use crate::probes::Probes;
use crate::steps::{Device, Neighbour, Says, Stack, Wanted};
use crate::taps::Taps;

/// The kernel.
pub struct Kernel {
    ip: Ip,
    taps: Arc<Taps>,
    frr: Option<Frr>,
    probes: Probes,
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
            frr: None,
            probes: Probes::default(),
        })
    }

    /// With routing protocols, and those who ask other hosts.
    #[must_use]
    pub fn with(mut self, frr: Frr, probes: Probes) -> Kernel {
        (self.frr, self.probes) = (Some(frr), probes);
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

    fn protocols(&mut self, now: &[Line]) -> Result<(), String> {
        match &self.frr {
            Some(frr) => frr.set(now),
            None => Ok(()),
        }
    }

    fn forget_neighbours(&mut self) -> Result<(), String> {
        crate::neighbours::forget()
    }

    fn notes(&mut self) -> Vec<String> {
        self.frr.as_ref().map(Frr::notes).unwrap_or_default()
    }

    fn says(&self) -> Box<dyn Says> {
        Box::new(Seen {
            frr: self.frr.clone(),
            probes: self.probes.clone(),
        })
    }
}

/// What there is to be seen of it.
struct Seen {
    frr: Option<Frr>,
    probes: Probes,
}

impl Says for Seen {
    fn learned(&self) -> Vec<Learned> {
        let found = crate::learned::learned(self.frr.as_ref());
        found.unwrap_or_else(|e| {
            tracing::warn!("routes of protocols: {e}");
            Vec::new()
        })
    }

    fn ask(&self, what: Ask) -> Result<String, String> {
        match &self.frr {
            Some(frr) => tandem_swfrr::show::show(frr, what),
            None => Err("There are no routing protocols".into()),
        }
    }

    fn neighbours(&self) -> Vec<Neighbour> {
        crate::neighbours::neighbours().unwrap_or_else(|e| {
            tracing::warn!("neighbours: {e}");
            Vec::new()
        })
    }

    fn prober(&self, source: Option<Ipv4Addr>) -> Result<Box<dyn Prober>, String> {
        self.probes.prober(source)
    }

    fn counters(&self) -> BTreeMap<String, [u64; 4]> {
        tandem_swstack::counters()
    }
}
