// SPDX-License-Identifier: Apache-2.0
//! Devices of ports, for daemons that speak to the neighbour at a cable: LLDP.

use std::os::fd::AsFd as _;

use rustix::event::epoll;
use tandem_sal::SalError;
use tandem_swchip::{Devices, is_lldp};

use super::{BURST, Io, TOKEN_PORT, add};

impl Io {
    /// Those of ports: they come and go together.
    pub(super) fn refresh_devices(&mut self) {
        let version = self.p.devices.version();
        if version == self.cabled {
            return;
        }
        self.cabled = version;
        for (_, tap, _) in self.cables.drain(..) {
            let _ = epoll::delete(&self.epoll, tap.as_fd());
        }
        for (port, tap) in self.p.devices.list() {
            let name = Devices::name(port);
            if let Err(e) = add(&self.epoll, tap.as_fd(), TOKEN_PORT | u64::from(port)) {
                tracing::error!("{name}: {e}: what is sent there is not seen");
            }
            let up = self.p.switch.ask(|d| d.carrier(port)).unwrap_or(false);
            if let Err(e) = tap.set_carrier(up) {
                tracing::debug!("{name}: carrier: {e}");
            }
            self.cables.push((port, tap, true));
        }
    }

    /// What daemons say to the neighbours at ports, and nothing else that comes there.
    pub(super) fn say(&mut self) -> Result<bool, SalError> {
        let mut any = false;
        for at in 0..self.cables.len() {
            for _ in 0..BURST {
                let Some((port, tap, ready)) = self.cables.get_mut(at).filter(|c| c.2) else {
                    break;
                };
                let Ok(n) = tap.read(&mut self.buf) else {
                    *ready = false;
                    break;
                };
                let (port, frame) = (*port, self.buf.get(..n).unwrap_or(&[]).to_vec());
                any = true;
                if is_lldp(&frame) {
                    self.send_out(port, &frame)?;
                }
            }
        }
        Ok(any)
    }
}
