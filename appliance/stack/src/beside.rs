// SPDX-License-Identifier: Apache-2.0
//! What stands beside addresses and routes of the kernel, for either engine: FRR, who asks other hosts, neighbours.

use std::net::Ipv4Addr;

use tandem_swconfig::probe::Prober;
use tandem_swconfig::routing::{Ask, Learned};
use tandem_swfrr::{Frr, Line};

use crate::neighbours::Neighbour;
use crate::probes::Probes;

/// Routing protocols by FRR, if there are any, and sockets for `ping`.
#[derive(Clone, Default)]
pub struct Beside {
    frr: Option<Frr>,
    probes: Probes,
}

impl Beside {
    /// With these.
    #[must_use]
    pub fn new(frr: Frr, probes: Probes) -> Beside {
        Beside {
            frr: Some(frr),
            probes,
        }
    }

    /// Makes routing protocols be so: all of it, or as they were.
    ///
    /// # Errors
    /// One line.
    pub fn protocols(&self, now: &[Line]) -> Result<(), String> {
        self.frr.as_ref().map_or(Ok(()), |frr| frr.set(now))
    }

    /// The routes that they have put into the kernel.
    #[must_use]
    pub fn learned(&self) -> Vec<Learned> {
        crate::learned::learned(self.frr.as_ref()).unwrap_or_else(|e| {
            tracing::warn!("routes of protocols: {e}");
            Vec::new()
        })
    }

    /// What they say.
    ///
    /// # Errors
    /// There are none, or they do not answer.
    pub fn ask(&self, what: Ask) -> Result<String, String> {
        let frr = self.frr.as_ref().ok_or("There are no routing protocols")?;
        tandem_swfrr::show::show(frr, what)
    }

    /// What has to be said of the last [`Beside::protocols`], once.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.frr.as_ref().map(Frr::notes).unwrap_or_default()
    }

    /// The kernel's neighbours on VLAN interfaces.
    #[must_use]
    pub fn neighbours(&self) -> Vec<Neighbour> {
        crate::neighbours::neighbours().unwrap_or_else(|e| {
            tracing::warn!("neighbours: {e}");
            Vec::new()
        })
    }

    /// Forgets those that are not set by hand.
    ///
    /// # Errors
    /// One line.
    pub fn forget_neighbours(&self) -> Result<(), String> {
        crate::neighbours::forget()
    }

    /// Who asks other hosts, from this address if it is said.
    ///
    /// # Errors
    /// As [`Probes::prober`].
    pub fn prober(&self, source: Option<Ipv4Addr>) -> Result<Box<dyn Prober>, String> {
        self.probes.prober(source)
    }
}
