//! Events to the driver: numbered, bounded, never lost in silence.
//!
//! FDB events wait in a queue of bounded length until the ring has room. If the queue is full,
//! too, FDB events are dropped and one LOST event says so; link states and counts of policed
//! packets are kept as state, so of those only the intermediate steps can be lost.

use std::collections::VecDeque;

use tandem_abi::{Memory, Producer, PushError, raw};
use tandem_pipeline::Event;
use tandem_ports::Link;
use zerocopy::{FromZeros, IntoBytes};

use crate::cpu::Cpu;

/// Events that wait beside the ring.
pub const QUEUE: usize = 4096;
/// Policed packets of a class are reported at most this often.
pub const TRAP_DROP_NS: u64 = 100_000_000;

/// Events of the present epoch.
pub struct Events {
    queue: VecDeque<raw::tnd_event>,
    epoch: u32,
    attached: bool,
    /// Number of the next event.
    next_seq: u32,
    /// Events that are in the ring.
    posted: u32,
    lost_fdb: u64,
    lost_total: u64,
    /// Ports whose link state the driver doesn't know yet.
    links: Vec<Option<Link>>,
    link_waits: bool,
    trap_drop_at: u64,
}

impl Events {
    /// For ports 1..=`ports`, no driver.
    pub fn new(ports: u16) -> Self {
        Events {
            queue: VecDeque::new(),
            epoch: 0,
            attached: false,
            next_seq: 0,
            posted: 0,
            lost_fdb: 0,
            lost_total: 0,
            links: vec![None; usize::from(ports) + 1],
            link_waits: false,
            trap_drop_at: 0,
        }
    }

    /// A new epoch: numbers start at zero. The caller tells all link states afterwards.
    pub fn attach(&mut self, epoch: u32) {
        self.detach();
        self.epoch = epoch;
        self.attached = true;
    }

    /// No driver: nothing is kept, a driver reads the tables when it attaches.
    pub fn detach(&mut self) {
        self.queue.clear();
        self.links.fill(None);
        self.link_waits = false;
        self.lost_fdb = 0;
        self.next_seq = 0;
        self.posted = 0;
        self.attached = false;
    }

    /// Events numbered so far: what a packet that comes now must wait for.
    #[inline]
    pub fn seq(&self) -> u32 {
        self.next_seq
    }

    /// Events in the ring so far.
    pub fn posted(&self) -> u32 {
        self.posted
    }

    /// FDB events that were lost since the start.
    pub fn lost(&self) -> u64 {
        self.lost_total
    }

    /// Takes an event of the pipeline.
    pub fn fdb(&mut self, event: Event) {
        if !self.attached {
            return;
        }
        if self.queue.len() >= QUEUE || self.lost_fdb > 0 {
            self.lost_fdb += 1;
            self.lost_total += 1;
            return;
        }
        let mut e = raw::tnd_event::new_zeroed();
        match event {
            Event::Learn { fid, mac, port } => {
                e.kind = raw::TND_EV_LEARN;
                (e.fid, e.mac, e.port) = (fid, mac, port);
            }
            Event::Move {
                fid,
                mac,
                port,
                old_port,
            } => {
                e.kind = raw::TND_EV_MOVE;
                (e.fid, e.mac, e.port, e.old_port) = (fid, mac, port, old_port);
            }
            Event::Age { fid, mac, port } => {
                e.kind = raw::TND_EV_AGE;
                (e.fid, e.mac, e.port) = (fid, mac, port);
            }
        }
        self.number(e);
    }

    /// A port's link state is this now.
    pub fn link(&mut self, port: u16, link: Link) {
        if !self.attached {
            return;
        }
        if let Some(l) = self.links.get_mut(usize::from(port)) {
            *l = Some(link);
            self.link_waits = true;
        }
    }

    /// Moves what waits into the ring; returns how many. The caller publishes. An error is the
    /// ring's end.
    pub fn drain<M: Memory>(
        &mut self,
        ring: &mut Producer<M>,
        cpu: &mut Cpu,
        now_ns: u64,
    ) -> Result<usize, PushError> {
        if self.queue.is_empty() && self.lost_fdb == 0 && !self.link_waits
            && now_ns < self.trap_drop_at {
                return Ok(0);
            }
        let mut free = ring.free_slots().map_err(PushError::from)? as usize;
        if self.link_waits && self.queue.len() < QUEUE {
            self.queue_links();
        }
        if now_ns >= self.trap_drop_at {
            self.trap_drop_at = now_ns + TRAP_DROP_NS;
            for (class, count) in cpu.take_unreported() {
                if self.queue.len() >= QUEUE {
                    cpu.put_unreported(class, count);
                    continue;
                }
                let mut e = raw::tnd_event::new_zeroed();
                e.kind = raw::TND_EV_TRAP_DROP;
                e.trap_class = u32::from(class);
                e.count = count;
                self.number(e);
            }
        }
        let mut moved = 0;
        loop {
            while free > 0 {
                let Some(e) = self.queue.front() else {
                    break;
                };
                ring.push(&[e.as_bytes()])?;
                self.queue.pop_front();
                self.posted = self.posted.wrapping_add(1);
                free -= 1;
                moved += 1;
            }
            if self.lost_fdb == 0 || !self.queue.is_empty() {
                return Ok(moved);
            }
            let mut e = raw::tnd_event::new_zeroed();
            e.kind = raw::TND_EV_LOST;
            e.cls = raw::TND_CLS_FDB;
            e.count = std::mem::take(&mut self.lost_fdb);
            self.number(e);
        }
    }

    fn queue_links(&mut self) {
        for port in 0..self.links.len() {
            if self.queue.len() >= QUEUE {
                return;
            }
            let Some(link) = self.links.get_mut(port).and_then(Option::take) else {
                continue;
            };
            let mut e = raw::tnd_event::new_zeroed();
            e.kind = raw::TND_EV_LINK;
            e.port = port as u16;
            e.up = u16::from(link.up);
            e.speed_mbps = link.speed_mbps;
            self.number(e);
        }
        self.link_waits = false;
    }

    fn number(&mut self, mut e: raw::tnd_event) {
        e.seq = self.next_seq;
        e.epoch = self.epoch;
        self.next_seq = self.next_seq.wrapping_add(1);
        self.queue.push_back(e);
    }
}
