// SPDX-License-Identifier: Apache-2.0
//! Ports' sending halves.

use std::collections::{BTreeMap, VecDeque};

use tandem_ofagent::Wires;
use tandem_packet::Frame;
use tandem_ports::TxPort;
use tandem_sal::SalIo;

/// Frames to the chip that are shown to it at once: its ring has room for several times as many.
const SHOWN: usize = 64;

/// Frames that wait for room in the chip's ring, at most.
const KEPT: usize = 4096;

/// What became of a frame to the chip.
enum Sent {
    Yes,
    /// Its ring has no room.
    Full,
    /// It is too long, or the ring is broken.
    No,
}

fn post(io: &mut SalIo, port: u16, frame: &[u8]) -> Sent {
    let long = io.counters().tx_long;
    match io.transmit(port, 0, frame) {
        Ok(true) => Sent::Yes,
        Ok(false) if io.counters().tx_long == long => Sent::Full,
        Ok(false) => Sent::No,
        Err(e) => {
            // Whoever looks after the rings finds the same
            tracing::debug!("a frame to the chip: {e}");
            Sent::No
        }
    }
}

/// A switch's own, by number, and which have frames that wait.
#[derive(Default)]
pub struct Slots {
    ports: BTreeMap<u32, (TxPort, bool)>,
    queued: Vec<u32>,
    /// The chip's: by number, its own number of each.
    pub chip: BTreeMap<u32, u16>,
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
        !self.queued.is_empty()
    }
}

/// Where frames to the chip go, whichever switch's they are.
#[derive(Default)]
pub struct ToChip {
    /// While it is attached.
    pub io: Option<SalIo>,
    /// Frames to the chip since they were last shown to it.
    posted: usize,
    /// For these its ring had no room: the port of each.
    kept: VecDeque<(u16, Vec<u8>)>,
    /// By port: frames that were too many or too long for the chip's ring, or that found no chip attached.
    lost: BTreeMap<u16, u64>,
}

impl ToChip {
    /// Frames that the way to the chip did not take.
    pub fn dropped(&self, port: u16) -> u64 {
        self.lost.get(&port).copied().unwrap_or(0)
    }

    /// A frame for a port of the chip: shown to it, kept until its ring has room, or dropped.
    fn transmit(&mut self, port: u16, frame: &[u8]) {
        let sent = match &mut self.io {
            None => Sent::No,
            Some(_) if !self.kept.is_empty() => Sent::Full,
            Some(io) => post(io, port, frame),
        };
        self.posted += 1;
        // What is not shown is not taken, and a turn may have more frames than the ring has room for
        if let Some(io) = &mut self.io
            && self.posted >= SHOWN
        {
            self.posted = 0;
            io.flush();
        }
        match sent {
            Sent::Yes => {}
            Sent::Full if self.kept.len() < KEPT => self.kept.push_back((port, frame.to_vec())),
            Sent::Full | Sent::No => *self.lost.entry(port).or_default() += 1,
        }
    }

    /// A port is another switch's from here on: nothing that this one sent is to leave by it.
    pub fn forget(&mut self, port: u16) {
        self.kept.retain(|(p, _)| *p != port);
        self.lost.remove(&port);
    }

    /// What the chip's ring had no room for, as far as it has some.
    fn post_kept(&mut self) {
        while let Some((port, frame)) = self.kept.front() {
            let sent = match &mut self.io {
                None => Sent::No,
                Some(io) => post(io, *port, frame),
            };
            match sent {
                Sent::Yes => {}
                Sent::Full => return,
                Sent::No => *self.lost.entry(*port).or_default() += 1,
            }
            self.kept.pop_front();
        }
    }

    /// Shows the chip what it was sent. True: its ring has no room, and what is left waits for the next call.
    pub fn flush(&mut self) -> bool {
        self.post_kept();
        if let Some(io) = &mut self.io {
            io.flush();
            self.posted = 0;
        }
        !self.kept.is_empty()
    }
}

/// The far ends of a switch's ports in one turn.
pub struct Out<'a> {
    /// Its own.
    pub slots: &'a mut Slots,
    /// The chip's.
    pub chip: &'a mut ToChip,
    /// Of this turn.
    pub now_ns: u64,
}

impl Wires for Out<'_> {
    #[inline]
    fn send(&mut self, port: u32, _queue: Option<u32>, frame: &Frame<'_>) {
        if let Some((tx, queued)) = self.slots.ports.get_mut(&port) {
            tx.queue(frame, self.now_ns);
            if !*queued {
                *queued = true;
                self.slots.queued.push(port);
            }
            return;
        }
        if let Some(of_chip) = self.slots.chip.get(&port).copied() {
            self.chip.transmit(of_chip, frame.bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_packet::{Buffer, Offload};

    #[test]
    fn frames_that_find_no_chip_are_counted() {
        let (mut slots, mut chip) = (Slots::default(), ToChip::default());
        slots.chip.insert(3, 2);
        let mut buffer = Buffer::new();
        assert!(buffer.set(&[0; 60]));
        let mut out = Out {
            slots: &mut slots,
            chip: &mut chip,
            now_ns: 1,
        };
        for port in [3, 3, 4] {
            out.send(port, None, &buffer.frame(Offload::NONE));
        }
        // port 4 is none
        assert_eq!([2, 4].map(|n| chip.dropped(n)), [2, 0]);
    }

    #[test]
    fn what_waits_for_a_port_goes_with_it() {
        let mut chip = ToChip::default();
        for port in [2, 3, 2] {
            chip.kept.push_back((port, vec![0; 60]));
            chip.transmit(port, &[0; 60]);
        }
        chip.forget(2);
        assert_eq!([2, 3].map(|n| chip.dropped(n)), [0, 1]);
        let left: Vec<u16> = chip.kept.iter().map(|(p, _)| *p).collect();
        assert_eq!(left, [3]);
    }
}
