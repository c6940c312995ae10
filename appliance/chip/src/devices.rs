// SPDX-License-Identifier: Apache-2.0
//! Devices of ports, for who speaks with the neighbour at a cable: what LLDP sends and hears, and nothing else.
//!
//! ```text
//!   lldpd ◄──► TAP port3 ◄──► packet thread ◄──► port 3, without a tag; no VLAN, no bridge, no address
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tandem_linux::eventfd::EventFd;
use tandem_linux::ifreq::ControlSocket;
use tandem_linux::netlink::Requests;
use tandem_linux::tap::{Tap, TapOptions};
use tandem_swstack::setting;

use crate::engine::Board;

/// The groups of LLDP: nearest bridge, nearest bridge of more than two ports, nearest bridge of a customer.
const GROUPS: [[u8; 6]; 3] = [
    [0x01, 0x80, 0xc2, 0, 0, 0x0e],
    [0x01, 0x80, 0xc2, 0, 0, 0x03],
    [0x01, 0x80, 0xc2, 0, 0, 0x00],
];
/// LLDP's EtherType.
const TYPE: [u8; 2] = [0x88, 0xcc];

/// Is it a frame of LLDP?
#[must_use]
pub fn is_lldp(frame: &[u8]) -> bool {
    GROUPS.iter().any(|g| frame.starts_with(g)) && frame.get(12..14) == Some(&TYPE)
}

/// Devices by port. They go with the process: who speaks at them speaks again when there are new ones.
pub struct Devices {
    all: Mutex<Vec<(u16, Arc<Tap>)>>,
    /// Grows with each change.
    version: AtomicU64,
    /// Rung with it.
    bell: Arc<EventFd>,
}

impl Devices {
    pub(crate) fn new(bell: Arc<EventFd>) -> Devices {
        Devices {
            all: Mutex::default(),
            version: AtomicU64::new(0),
            bell,
        }
    }

    /// What the device of a port is called.
    #[must_use]
    pub fn name(port: u16) -> String {
        format!("port{port}")
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u16, Arc<Tap>)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touch(&self) {
        self.version.fetch_add(1, Ordering::Release);
        self.bell.ring();
    }

    /// Another number after each change.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// All of them.
    #[must_use]
    pub fn list(&self) -> Vec<(u16, Arc<Tap>)> {
        self.lock().clone()
    }

    /// One for each port, or none.
    pub(crate) fn make(&self, board: &Board) -> Result<(), String> {
        let mut all = self.lock();
        if !all.is_empty() {
            return Ok(());
        }
        let made: Result<Vec<_>, String> = board
            .ports
            .iter()
            .map(|(number, _, mac, _)| {
                let name = Devices::name(*number);
                let tap = device(&name, mac).map_err(|e| format!("{name}: {e}"))?;
                Ok((*number, Arc::new(tap)))
            })
            .collect();
        *all = made?;
        drop(all);
        self.touch();
        Ok(())
    }

    /// There are none any more.
    pub(crate) fn remove(&self) {
        let gone = std::mem::take(&mut *self.lock());
        if gone.is_empty() {
            return;
        }
        self.touch();
        for (port, tap) in gone {
            // who moves its frames holds it still: its name is to be free at once
            if let Err(e) = crate::taps::delete(&tap) {
                tracing::debug!("{}: {e}", Devices::name(port));
            }
        }
    }
}

fn device(name: &str, mac: &[u8; 6]) -> std::io::Result<Tap> {
    let tap = Tap::open(name, TapOptions::default())?;
    tap.set_carrier(false)?;
    let control = ControlSocket::open()?;
    Requests::open()?.link_mac(control.link(name)?.ifindex, mac)?;
    // nothing of the kernel's own is to be said there
    let path = format!("ipv6/conf/{name}/disable_ipv6");
    if let Err(e) = setting(&path, true) {
        tracing::debug!("{e}");
    }
    control.set_up(name, true)?;
    Ok(tap)
}

#[cfg(test)]
mod tests {
    use super::is_lldp;

    #[test]
    fn lldp_alone() {
        let frame = |last: u8, kind: u16| {
            let mut f = vec![1, 0x80, 0xc2, 0, 0, last, 2, 0, 0, 0, 0, 1];
            f.extend(kind.to_be_bytes());
            f
        };
        assert!(
            [0x0e, 3, 0]
                .iter()
                .all(|last| is_lldp(&frame(*last, 0x88cc)))
        );
        assert!(!is_lldp(&frame(2, 0x88cc)) && !is_lldp(&frame(0x0e, 0x8100)));
        assert!(!is_lldp(&frame(0x0e, 0x88cc)[..13]));
    }
}
