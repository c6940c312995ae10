//! Events and packets.
//!
//! ```text
//!   event ring ─► Event           in order, before packets that name a later event_seq
//!   rx ring ────► RxMeta + frame  why it came, what the chip has done with it already
//!   tx ring ◄──── port, frame     or "through the pipeline"
//! ```

use std::os::fd::{AsFd, BorrowedFd};

use tandem_abi::{Consumer, Producer, PushError, raw};
use tandem_carrier::{Bell, Region};
use zerocopy::IntoBytes;

use crate::SalError;

/// What the device reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Events were lost: read this class again.
    Lost {
        /// `TND_CLS_*`; 0 = all.
        cls: u16,
    },
    /// A new address.
    Learn {
        /// Forwarding domain.
        fid: u16,
        /// Address.
        mac: [u8; 6],
        /// Front-panel port.
        port: u16,
    },
    /// An address went to another port.
    Move {
        /// Forwarding domain.
        fid: u16,
        /// Address.
        mac: [u8; 6],
        /// Where it is now.
        port: u16,
        /// Where it was.
        old_port: u16,
    },
    /// An address was not seen for the ageing time.
    Age {
        /// Forwarding domain.
        fid: u16,
        /// Address.
        mac: [u8; 6],
        /// Where it was.
        port: u16,
    },
    /// Carrier.
    Link {
        /// Front-panel port.
        port: u16,
        /// Carrier.
        up: bool,
        /// 0 = not known.
        speed_mbps: u32,
    },
    /// A trap class's last policer dropped packets.
    TrapDrop {
        /// `TND_TC_*`
        class: u32,
        /// Packets since the last such event.
        count: u64,
    },
}

/// What is known of a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxMeta {
    /// Ingress port, from 1.
    pub port: u16,
    /// `TND_TRAP_*`
    pub reason: u16,
    /// `TND_TC_*`
    pub class: u16,
    /// `TND_RX_*`
    pub flags: u16,
    /// Forwarding domain, 0 = none.
    pub fid: u16,
    /// Events below this number are to be handled before the packet.
    pub event_seq: u32,
}

impl RxMeta {
    /// The chip has forwarded the packet already: the CPU's is a copy.
    pub fn forwarded(&self) -> bool {
        self.flags & (raw::TND_RX_L2_FORWARDED | raw::TND_RX_L3_FORWARDED) != 0
    }

    /// The chip has routed it.
    pub fn routed(&self) -> bool {
        self.flags & raw::TND_RX_L3_FORWARDED != 0
    }
}

/// Counters of the packet path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounters {
    /// Events taken.
    pub events: u64,
    /// Events or packets of an earlier attach, dropped.
    pub stale: u64,
    /// Event numbers that never came.
    pub events_lost: u64,
    /// Packets taken.
    pub rx: u64,
    /// Packets posted.
    pub tx: u64,
    /// Packets that found the tx ring full.
    pub tx_full: u64,
    /// Packets longer than an entry.
    pub tx_long: u64,
}

/// The packet half of an attach.
#[derive(Debug)]
pub struct SalIo {
    event: Consumer<Region>,
    rx: Consumer<Region>,
    tx: Producer<Region>,
    event_wake: Bell,
    rx_wake: Bell,
    tx_kick: Bell,
    epoch: u32,
    next_event: u32,
    held: Option<Event>,
    frame_max: usize,
    counters: IoCounters,
}

/// The rings and doorbells of [`SalIo::new`].
pub(crate) struct Parts {
    pub event: Consumer<Region>,
    pub rx: Consumer<Region>,
    pub tx: Producer<Region>,
    pub event_wake: Bell,
    pub rx_wake: Bell,
    pub tx_kick: Bell,
}

impl SalIo {
    pub(crate) fn new(parts: Parts, epoch: u32) -> Self {
        SalIo {
            frame_max: parts
                .tx
                .ring()
                .entry_size
                .saturating_sub(raw::TND_PKT_META_SIZE),
            event: parts.event,
            rx: parts.rx,
            tx: parts.tx,
            event_wake: parts.event_wake,
            rx_wake: parts.rx_wake,
            tx_kick: parts.tx_kick,
            epoch,
            next_event: 0,
            held: None,
            counters: IoCounters::default(),
        }
    }

    /// Epoch of this attach.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Counters.
    pub fn counters(&self) -> IoCounters {
        self.counters
    }

    /// Bytes of a frame at most.
    pub fn frame_max(&self) -> usize {
        self.frame_max
    }

    /// The next event. A gap in the numbers is `Lost` of everything first.
    pub fn event(&mut self) -> Result<Option<Event>, SalError> {
        if let Some(held) = self.held.take() {
            return Ok(Some(held));
        }
        while let Some(e) = self.event.pop_struct::<raw::tnd_event>()? {
            if e.epoch != self.epoch {
                self.counters.stale += 1;
                continue;
            }
            let gap = e.seq.wrapping_sub(self.next_event);
            self.next_event = e.seq.wrapping_add(1);
            self.counters.events += 1;
            let event = decode(&e);
            if gap != 0 {
                self.counters.events_lost += u64::from(gap);
                self.held = event;
                return Ok(Some(Event::Lost {
                    cls: raw::TND_CLS_NONE,
                }));
            }
            // a kind of a later version says nothing to us
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// The number of the event that comes next: the one that was taken last is the one before.
    pub fn next_event(&self) -> u32 {
        self.next_event
    }

    /// The next event, if the packet of `meta` has to wait for it.
    pub fn event_before(&mut self, meta: &RxMeta) -> Result<Option<Event>, SalError> {
        let behind = meta.event_seq.wrapping_sub(self.next_event) as i32;
        if behind <= 0 && self.held.is_none() {
            return Ok(None);
        }
        self.event()
    }

    /// The next packet; `frame` holds it afterwards.
    pub fn receive(&mut self, frame: &mut Vec<u8>) -> Result<Option<RxMeta>, SalError> {
        while let Some(m) = self
            .rx
            .pop_packet(frame, |m: &raw::tnd_rx| m.len as usize)?
        {
            if m.epoch != self.epoch {
                self.counters.stale += 1;
                continue;
            }
            self.counters.rx += 1;
            return Ok(Some(RxMeta {
                port: m.port,
                reason: m.reason,
                class: m.trap_class,
                flags: m.flags,
                fid: m.fid,
                event_seq: m.event_seq,
            }));
        }
        Ok(None)
    }

    /// Free entries of the tx ring.
    pub fn tx_free(&mut self) -> Result<usize, SalError> {
        Ok(self.tx.free_slots()? as usize)
    }

    /// Posts a frame to leave by `port`; false: no room, or too long; counted. Invisible to the
    /// device until [`flush`](Self::flush).
    pub fn transmit(&mut self, port: u16, flags: u16, frame: &[u8]) -> Result<bool, SalError> {
        let Ok(len) = u32::try_from(frame.len()) else {
            self.counters.tx_long += 1;
            return Ok(false);
        };
        let meta = raw::tnd_tx {
            len,
            port,
            flags,
            epoch: self.epoch,
            ..Default::default()
        };
        match self.tx.push(&[meta.as_bytes(), frame]) {
            Ok(()) => {
                self.counters.tx += 1;
                Ok(true)
            }
            Err(PushError::Full) => {
                self.counters.tx_full += 1;
                Ok(false)
            }
            Err(PushError::TooLong { .. }) => {
                self.counters.tx_long += 1;
                Ok(false)
            }
            Err(PushError::Corrupt(c)) => Err(c.into()),
        }
    }

    /// Shows the device what was posted.
    pub fn flush(&mut self) {
        if self.tx.publish() {
            self.tx_kick.ring();
        }
    }

    /// Descriptors that are readable when events or packets came; after [`arm`](Self::arm).
    pub fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.event_wake.as_fd(), self.rx_wake.as_fd()]
    }

    /// Before sleeping: asks for doorbells. True: nothing waits.
    pub fn arm(&mut self) -> Result<bool, SalError> {
        let event = self.event.arm()?;
        Ok(self.rx.arm()? && event && self.held.is_none())
    }

    /// After waking.
    pub fn disarm(&mut self) {
        self.event.disarm();
        self.rx.disarm();
        self.event_wake.drain();
        self.rx_wake.drain();
    }
}

fn decode(e: &raw::tnd_event) -> Option<Event> {
    Some(match e.kind {
        raw::TND_EV_LOST => Event::Lost { cls: e.cls },
        raw::TND_EV_LEARN => Event::Learn {
            fid: e.fid,
            mac: e.mac,
            port: e.port,
        },
        raw::TND_EV_MOVE => Event::Move {
            fid: e.fid,
            mac: e.mac,
            port: e.port,
            old_port: e.old_port,
        },
        raw::TND_EV_AGE => Event::Age {
            fid: e.fid,
            mac: e.mac,
            port: e.port,
        },
        raw::TND_EV_LINK => Event::Link {
            port: e.port,
            up: e.up != 0,
            speed_mbps: e.speed_mbps,
        },
        raw::TND_EV_TRAP_DROP => Event::TrapDrop {
            class: e.trap_class,
            count: e.count,
        },
        _ => return None,
    })
}
