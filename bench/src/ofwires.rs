//! Numbered frames into port 1 of a switch and out of its port 2, by the process that also is its controller.
//!
//! ```text
//!   core 1: sendmmsg ─► g1 ═ p1 ─► switch (core 0) ─► p2 ═ g2 ─► recvmmsg, core 1
//!                                    │    ▲
//!                            packet-in    packet-out          (TCP, loopback of the switch's namespace)
//!                                    ▼    │
//!                                controller, core 1
//! ```

use crate::blast::{SINK_MAC, netns_ifindex};
use crate::forward::By;
use crate::ofclient::Client;
use crate::ofswitch::{self, Calls, Running, Who};
use crate::rig::Rig;
use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};
use tandem_linux::netns;
use tandem_linux::wires::Wires;

/// The stations that send have numbers behind this.
const SENDERS: [u8; 2] = [2, 1];

/// The frame of a number: each comes from a station of its own.
pub fn frame(number: u32) -> [u8; 60] {
    let mut f = [0; 60];
    f[..6].copy_from_slice(&SINK_MAC);
    f[6..8].copy_from_slice(&SENDERS);
    f[8..12].copy_from_slice(&number.to_be_bytes());
    // Local experimental EtherType 1 (IEEE 802): nobody answers it
    f[12..14].copy_from_slice(&[0x88, 0xb5]);
    f
}

/// The number of a frame, if it is one of ours.
pub fn number(frame: &[u8]) -> Option<u32> {
    let (senders, rest) = frame.get(6..12)?.split_first_chunk::<2>()?;
    let number = u32::from_be_bytes(rest.try_into().ok()?);
    (senders == &SENDERS).then_some(number)
}

/// A switch, and both of its cables.
pub struct Bed {
    /// The switch; gone before the namespaces are.
    pub switch: Running,
    wires: Wires,
    into: u32,
    from: u32,
    begin: Instant,
    rig: Rig,
}

impl Bed {
    /// A fresh one.
    pub fn new(who: Who, calls: Calls) -> Result<Bed> {
        let rig = Rig::new(&["sw", "gen"])?;
        for (gen_dev, dev) in [("g1", "p1"), ("g2", "p2")] {
            rig.veth(("gen", gen_dev), ("sw", dev))?;
        }
        let (wires, into, from) = netns::run_in_named(Some(&rig.ns("gen")), || {
            Ok((Wires::open()?, netns_ifindex("g1")?, netns_ifindex("g2")?))
        })?;
        let switch = ofswitch::start(&rig, who, By::Packet, calls)?;
        Ok(Bed {
            switch,
            wires,
            into,
            from,
            begin: Instant::now(),
            rig,
        })
    }

    /// One more controller of the switch.
    pub fn client(&self) -> Result<Client> {
        Client::new(&self.rig.ns("sw"))
    }

    /// Where the switch is.
    pub fn namespace(&self) -> String {
        self.rig.ns("sw")
    }

    /// Nanoseconds since it was made.
    pub fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// Sends the frame of a number into port 1.
    pub fn send(&mut self, number: u32) -> Result<()> {
        let sent = self.wires.send(&[(self.into, &frame(number))])?;
        (sent == 1)
            .then_some(())
            .context("a frame could not be sent")
    }

    /// The station that all frames are for says something.
    pub fn introduce(&mut self) -> Result<()> {
        let mut f = [0xff; 60];
        f[6..12].copy_from_slice(&SINK_MAC);
        f[12..14].copy_from_slice(&[0x88, 0xb5]);
        self.wires.send(&[(self.from, &f)])?;
        Ok(())
    }

    /// The numbers of frames that have come out of port 2.
    pub fn arrived(&mut self, mut f: impl FnMut(u32)) -> Result<()> {
        let from = self.from;
        self.wires.receive(|dev, frame| {
            if dev == from
                && let Some(n) = number(frame)
            {
                f(n);
            }
        })?;
        Ok(())
    }

    /// Sleeps until there is something to read from here or there, or it is that late.
    pub fn wait(&self, other: Option<BorrowedFd<'_>>, until: u64) -> Result<()> {
        let mut fds = vec![PollFd::new(&self.wires, PollFlags::IN)];
        if let Some(other) = &other {
            fds.push(PollFd::new(other, PollFlags::IN));
        }
        let limit = Timespec::try_from(Duration::from_nanos(until.saturating_sub(self.now())))?;
        match poll(&mut fds, Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}

/// The value below which this part of all lies; microseconds of nanoseconds.
pub fn quantile_us(ns: &mut [u64], part: f64) -> f64 {
    ns.sort_unstable();
    let at = (ns.len() as f64 * part) as usize;
    ns.get(at.min(ns.len().saturating_sub(1)))
        .map_or(f64::NAN, |v| *v as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_its_number() {
        assert_eq!(number(&frame(0x1234_5678)), Some(0x1234_5678));
        assert_eq!(number(&[0; 60]), None);
        assert_eq!(number(&[2; 8]), None);
    }

    #[test]
    fn quantiles() {
        let mut all: Vec<u64> = (1..=100).rev().map(|n| n * 1000).collect();
        assert_eq!(quantile_us(&mut all, 0.5), 51.0);
        assert_eq!(quantile_us(&mut all, 0.99), 100.0);
        assert!(quantile_us(&mut [], 0.5).is_nan());
    }
}
