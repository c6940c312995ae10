// SPDX-License-Identifier: Apache-2.0
//! What the chip's ports have counted, over all devices: one that comes back begins at zero, a port's numbers do not.

use foldhash::HashMap;
use tandem_abi::raw;

use crate::{Chip, Trust};

/// The counters of a port, in a fixed order.
fn fields(s: &mut raw::tnd_port_stats) -> [&mut u64; 11] {
    [
        &mut s.rx_packets,
        &mut s.rx_bytes,
        &mut s.rx_multicast,
        &mut s.rx_broadcast,
        &mut s.rx_dropped,
        &mut s.rx_cpu,
        &mut s.tx_packets,
        &mut s.tx_bytes,
        &mut s.tx_multicast,
        &mut s.tx_broadcast,
        &mut s.tx_dropped,
    ]
}

#[derive(Clone, Copy, Debug, Default)]
struct Total {
    /// Since it is the switch's port.
    whole: raw::tnd_port_stats,
    /// What the device said last.
    last: raw::tnd_port_stats,
    /// It is the switch's since then: what the device says next is where it begins.
    begins: bool,
}

/// Of all ports, by the chip's numbers.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    ports: HashMap<u16, Total>,
}

impl Totals {
    /// What the device says.
    pub fn tell(&mut self, mut now: raw::tnd_port_stats) {
        let t = self.ports.entry(now.port).or_default();
        let mut last = t.last;
        t.last = now;
        if std::mem::take(&mut t.begins) {
            return;
        }
        let (now, mut old) = (fields(&mut now), fields(&mut last));
        // None of its counters goes back but by its start
        if now.iter().zip(&old).any(|(n, o)| **n < **o) {
            old.iter_mut().for_each(|o| **o = 0);
        }
        for ((whole, now), old) in fields(&mut t.whole).into_iter().zip(now).zip(old) {
            *whole = whole.saturating_add(*now - *old);
        }
    }

    /// It is the switch's from here on, that is from the next [`Totals::tell`]: of what it was before nothing is counted.
    pub fn begin(&mut self, port: u16) {
        let t = self.ports.entry(port).or_default();
        t.whole = raw::tnd_port_stats::default();
        t.begins = true;
    }

    /// As of the last read.
    pub fn of(&self, port: u16) -> Option<&raw::tnd_port_stats> {
        self.ports.get(&port).map(|t| &t.whole)
    }
}

impl Chip {
    /// What a port has counted, as of the last read: since the first device's start, or since it is the switch's. `None`:
    /// nobody knows, as the device can't be asked or does not answer, and may count on. One that has ended counts nothing any
    /// more.
    pub fn port_stats(&self, number: u32) -> Option<&raw::tnd_port_stats> {
        let known =
            !matches!(self.trust, Trust::Lost { gone: false, .. }) && !self.counts.is_stale();
        self.totals.of(self.ports.chip(number)?).filter(|_| known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(rx: u64, tx: u64) -> raw::tnd_port_stats {
        raw::tnd_port_stats {
            port: 3,
            rx_packets: rx,
            rx_bytes: 100 * rx,
            tx_packets: tx,
            tx_bytes: 100 * tx,
            ..Default::default()
        }
    }

    #[test]
    fn numbers_never_go_back() {
        let mut t = Totals::default();
        let at = |t: &Totals| t.of(3).map(|s| (s.rx_packets, s.rx_bytes, s.tx_packets));
        assert_eq!(at(&t), None);
        for (rx, tx, whole) in [
            (5, 1, (5, 500, 1)),
            (9, 1, (9, 900, 1)),
            // another device: more went out than from the first one
            (2, 4, (11, 1100, 5)),
            (2, 4, (11, 1100, 5)),
            (3, 4, (12, 1200, 5)),
            (0, 0, (12, 1200, 5)),
        ] {
            t.tell(said(rx, tx));
            assert_eq!(at(&t), Some(whole));
        }
        // another switch's port for a while, of which nobody asked: what it was before is not counted
        t.begin(3);
        assert_eq!(at(&t), Some((0, 0, 0)));
        t.tell(said(7, 7));
        t.tell(said(8, 7));
        assert_eq!(at(&t), Some((1, 100, 0)));
    }
}
