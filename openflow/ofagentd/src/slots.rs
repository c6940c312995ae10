// SPDX-License-Identifier: Apache-2.0
//! Ports' sending halves.

use std::collections::BTreeMap;

use tandem_ofagent::Wires;
use tandem_packet::Frame;
use tandem_ports::TxPort;
use tandem_sal::SalIo;

/// All of them, by number, and which have frames that wait.
#[derive(Default)]
pub struct Slots {
    ports: BTreeMap<u32, (TxPort, bool)>,
    queued: Vec<u32>,
    /// The chip's: by number, its own number of each.
    pub chip: BTreeMap<u32, u16>,
    /// Where frames to these go, while it is attached.
    pub io: Option<SalIo>,
    /// Of this turn.
    pub now_ns: u64,
}

impl Slots {
    /// A port has this half now.
    pub fn put(&mut self, number: u32, tx: TxPort) {
        self.ports.insert(number, (tx, false));
    }

    /// It has none any more.
    pub fn take(&mut self, number: u32) {
        self.ports.remove(&number);
    }

    /// Frames that its cable did not take.
    pub fn dropped(&self, number: u32) -> u64 {
        self.ports
            .get(&number)
            .map_or(0, |(tx, _)| tx.stats().dropped)
    }

    /// Lets go of everything. True: a cable takes nothing more for now, and what is left waits for the next call.
    pub fn flush(&mut self) -> bool {
        let mut left = Vec::new();
        for number in self.queued.drain(..) {
            if let Some((tx, queued)) = self.ports.get_mut(&number) {
                *queued = !tx.flush();
                if *queued {
                    left.push(number);
                }
            }
        }
        self.queued = left;
        if let Some(io) = &mut self.io {
            io.flush();
        }
        !self.queued.is_empty()
    }
}

impl Wires for Slots {
    #[inline]
    fn send(&mut self, port: u32, _queue: Option<u32>, frame: &Frame<'_>) {
        if let Some((tx, queued)) = self.ports.get_mut(&port) {
            tx.queue(frame, self.now_ns);
            if !*queued {
                *queued = true;
                self.queued.push(port);
            }
            return;
        }
        if let (Some(port), Some(io)) = (self.chip.get(&port), &mut self.io)
            && let Err(e) = io.transmit(*port, 0, frame.bytes())
        {
            // Whoever looks after the rings finds the same
            tracing::debug!("a frame to the chip: {e}");
        }
    }
}
