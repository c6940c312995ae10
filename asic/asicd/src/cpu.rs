//! The way to the CPU behind its policers: class queues, strict order into the RX ring.
//!
//! ```text
//!   Sink::cpu ─► class queue ─► RX ring      link        may fill all of it
//!                │ dropped,     │            control     7/8
//!                │ counted      ▼            discovery   6/8
//!                ▼            driver         unresolved  5/8
//!                                            data        4/8
//!                                            flow        3/8
//! ```
//!
//! A queue is bounded in packets and in bytes; what doesn't fit is the newest one. A lower class
//! leaves room in the ring for the higher ones, so a flood of data costs no session. Within a class
//! no reason and no port takes all: what came in by one port for one reason may be as much as there is
//! room left, so that the next one always finds some.

use std::collections::VecDeque;

use tandem_abi::{Memory, Producer, PushError, raw};
use tandem_pipeline::CpuMeta;
use tandem_pipeline::trap::{ORDER, REASONS, TRAP_CLASSES};
use zerocopy::{FromZeros, IntoBytes};

/// Packets that wait in each class (`TND_TC_*`).
pub const QUEUE_PACKETS: [usize; TRAP_CLASSES] = [2048, 2048, 1024, 1024, 2048, 2048];
/// Bytes that wait in each class.
pub const QUEUE_BYTES: [usize; TRAP_CLASSES] =
    [2 << 20, 4 << 20, 2 << 20, 2 << 20, 2 << 20, 4 << 20];
/// Eighths of the RX ring that a class may fill.
pub const RING_SHARE: [u32; TRAP_CLASSES] = [8, 7, 5, 4, 6, 3];

/// What one trap reason's packets met on their way to the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReasonCounters {
    /// Put into the RX ring.
    pub delivered: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Dropped because the class's queue was full.
    pub queue_full: u64,
    /// Dropped because no driver was attached.
    pub no_driver: u64,
}

/// What one class's packets met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounters {
    /// Put into the RX ring.
    pub delivered: u64,
    /// Dropped because the queue was full.
    pub queue_full: u64,
    /// Dropped because no driver was attached.
    pub no_driver: u64,
}

struct Waiting {
    meta: CpuMeta,
    event_seq: u32,
    frame: Vec<u8>,
}

/// What waits of one reason and port in one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Line {
    packets: usize,
    bytes: usize,
}

/// Queues of all classes.
pub struct Cpu {
    queues: [VecDeque<Waiting>; TRAP_CLASSES],
    bytes: [usize; TRAP_CLASSES],
    /// By class, reason and port number.
    lines: Vec<Line>,
    ports: usize,
    reasons: [ReasonCounters; REASONS],
    classes: [ClassCounters; TRAP_CLASSES],
    /// Buffers to use again, at most as many as the queues hold.
    spare: Vec<Vec<u8>>,
    attached: bool,
    waiting: usize,
    /// A fault: untagged packets get this tag on their way to the driver (seed 000 §5.2.5).
    stray_vid: Option<u16>,
}

impl Cpu {
    /// Empty queues of a chip with so many ports.
    pub fn new(ports: u16) -> Self {
        let ports = usize::from(ports) + 1;
        Cpu {
            queues: Default::default(),
            bytes: [0; TRAP_CLASSES],
            lines: vec![Line::default(); TRAP_CLASSES * REASONS * ports],
            ports,
            reasons: [ReasonCounters::default(); REASONS],
            classes: [ClassCounters::default(); TRAP_CLASSES],
            spare: Vec::new(),
            attached: false,
            waiting: 0,
            stray_vid: None,
        }
    }

    /// Untagged packets get a tag of this VLAN that was not on the wire; `None`: none does.
    pub fn set_stray_tag(&mut self, vid: Option<u16>) {
        self.stray_vid = vid;
    }

    /// What [`Self::set_stray_tag`] has set.
    pub fn stray_tag(&self) -> Option<u16> {
        self.stray_vid
    }

    /// A driver is attached or gone. Packets for a driver that is gone are dropped.
    pub fn set_attached(&mut self, attached: bool) {
        self.attached = attached;
        for class in 0..TRAP_CLASSES {
            while let Some(w) = self.pop(class) {
                self.count(class, w.meta.reason, |r, c| {
                    r.no_driver += 1;
                    c.no_driver += 1;
                });
                self.recycle(w.frame);
            }
        }
    }

    /// Takes one complete packet (no offload marks) for the CPU. `event_seq` events were posted
    /// before it.
    pub fn offer(&mut self, meta: CpuMeta, frame: &[u8], event_seq: u32) {
        let class = usize::from(meta.class).min(TRAP_CLASSES - 1);
        if !self.attached {
            self.count(class, meta.reason, |r, c| {
                r.no_driver += 1;
                c.no_driver += 1;
            });
            return;
        }
        if !self.has_room(class, &meta, frame.len()) {
            self.count(class, meta.reason, |r, c| {
                r.queue_full += 1;
                c.queue_full += 1;
            });
            return;
        }
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        match (self.stray_vid, frame.split_at_checked(12)) {
            (Some(vid), Some((addresses, rest))) if meta.flags & raw::TND_RX_TAGGED == 0 => {
                copy.extend_from_slice(addresses);
                copy.extend_from_slice(&[0x81, 0x00]);
                copy.extend_from_slice(&vid.to_be_bytes());
                copy.extend_from_slice(rest);
            }
            _ => copy.extend_from_slice(frame),
        }
        if let (Some(q), Some(b)) = (self.queues.get_mut(class), self.bytes.get_mut(class)) {
            let len = copy.len();
            q.push_back(Waiting {
                meta,
                event_seq,
                frame: copy,
            });
            *b += len;
            self.waiting += 1;
            if let Some(line) = self.line(class, &meta) {
                line.packets += 1;
                line.bytes += len;
            }
        }
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Moves packets into the RX ring, higher classes first, each up to its share; returns how
    /// many. A packet waits until the events before it are in their ring (`events_posted`). The
    /// caller publishes. An error is the ring's end.
    pub fn drain<M: Memory>(
        &mut self,
        ring: &mut Producer<M>,
        epoch: u32,
        events_posted: u32,
    ) -> Result<usize, PushError> {
        if self.waiting == 0 {
            return Ok(0);
        }
        let size = ring.ring().entry_count;
        let mut used = ring.occupancy().map_err(PushError::from)?;
        let mut moved = 0;
        for class in ORDER.map(usize::from) {
            let limit = size / 8 * RING_SHARE.get(class).copied().unwrap_or(0);
            while used < limit {
                let early = |w: &Waiting| w.event_seq.wrapping_sub(events_posted) as i32 > 0;
                if self
                    .queues
                    .get(class)
                    .and_then(VecDeque::front)
                    .is_some_and(early)
                {
                    break;
                }
                let Some(w) = self.pop(class) else {
                    break;
                };
                let head = head(&w, epoch);
                let result = ring.push(&[head.as_bytes(), &w.frame]);
                let (reason, len) = (w.meta.reason, w.frame.len() as u64);
                self.recycle(w.frame);
                match result {
                    Ok(()) => {
                        used += 1;
                        moved += 1;
                        self.count(class, reason, |r, c| {
                            r.delivered += 1;
                            r.bytes += len;
                            c.delivered += 1;
                        });
                    }
                    // Longer than an entry of the ring
                    Err(PushError::TooLong { .. }) => self.count(class, reason, |r, c| {
                        r.queue_full += 1;
                        c.queue_full += 1;
                    }),
                    Err(e) => return Err(e),
                }
            }
        }
        Ok(moved)
    }

    /// Counters of one reason.
    pub fn reason(&self, reason: u16) -> ReasonCounters {
        self.reasons
            .get(usize::from(reason))
            .copied()
            .unwrap_or_default()
    }

    /// Counters of one class.
    pub fn class(&self, class: u16) -> ClassCounters {
        self.classes
            .get(usize::from(class))
            .copied()
            .unwrap_or_default()
    }

    /// Packets that wait in a class.
    pub fn queued(&self, class: u16) -> usize {
        self.queues.get(usize::from(class)).map_or(0, VecDeque::len)
    }

    /// Does a packet fit in its class's queue? What waits of one reason and port may be no more than what is left.
    fn has_room(&mut self, class: usize, meta: &CpuMeta, len: usize) -> bool {
        let packets = self.queues.get(class).map_or(0, VecDeque::len);
        let bytes = self.bytes.get(class).copied().unwrap_or(0) + len;
        let left = |limit: &[usize; TRAP_CLASSES], used| limit.get(class)?.checked_sub(used);
        let (packets, bytes) = (left(&QUEUE_PACKETS, packets + 1), left(&QUEUE_BYTES, bytes));
        let line = self.line(class, meta).copied().unwrap_or_default();
        packets.is_some_and(|left| line.packets <= left)
            && bytes.is_some_and(|left| line.bytes <= left)
    }

    fn line(&mut self, class: usize, meta: &CpuMeta) -> Option<&mut Line> {
        let (reason, port) = (usize::from(meta.reason), usize::from(meta.port));
        if reason >= REASONS || port >= self.ports {
            return None;
        }
        let at = (class * REASONS + reason) * self.ports + port;
        self.lines.get_mut(at)
    }

    fn pop(&mut self, class: usize) -> Option<Waiting> {
        let w = self.queues.get_mut(class)?.pop_front()?;
        if let Some(b) = self.bytes.get_mut(class) {
            *b = b.saturating_sub(w.frame.len());
        }
        if let Some(line) = self.line(class, &w.meta) {
            line.packets = line.packets.saturating_sub(1);
            line.bytes = line.bytes.saturating_sub(w.frame.len());
        }
        self.waiting = self.waiting.saturating_sub(1);
        Some(w)
    }

    fn recycle(&mut self, frame: Vec<u8>) {
        // Super-long buffers are not kept: the spare ones are bounded in bytes, too
        if self.spare.len() < 256 && frame.capacity() <= 16 * 1024 {
            self.spare.push(frame);
        }
    }

    fn count(
        &mut self,
        class: usize,
        reason: u16,
        f: impl FnOnce(&mut ReasonCounters, &mut ClassCounters),
    ) {
        let reason = usize::from(reason).min(REASONS - 1);
        if let (Some(r), Some(c)) = (self.reasons.get_mut(reason), self.classes.get_mut(class)) {
            f(r, c);
        }
    }
}

fn head(w: &Waiting, epoch: u32) -> raw::tnd_rx {
    let m = &w.meta;
    let mut head = raw::tnd_rx::new_zeroed();
    head.len = w.frame.len() as u32;
    head.port = m.port;
    head.reason = m.reason;
    head.trap_class = m.class;
    head.flags = m.flags;
    head.fid = m.fid;
    if let Some(tag) = m.tag {
        head.flags |= raw::TND_RX_TAGGED;
        head.tpid = tag.tpid;
        head.tci = tag.tci;
    }
    head.event_seq = w.event_seq;
    head.epoch = epoch;
    head.time_ns = m.time_ns;
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(class: u16, reason: u16) -> CpuMeta {
        CpuMeta {
            port: 1,
            reason,
            class,
            flags: 0,
            fid: 0,
            tag: None,
            time_ns: 7,
        }
    }

    #[test]
    fn queues_are_bounded_and_say_what_they_drop() {
        let mut cpu = Cpu::new(4);
        cpu.offer(meta(3, raw::TND_TRAP_ROUTE), &[0; 60], 0);
        assert_eq!(cpu.class(3).no_driver, 1);
        cpu.set_attached(true);
        for _ in 0..2000 {
            cpu.offer(meta(3, raw::TND_TRAP_ROUTE), &[0; 60], 0);
        }
        // as much as is left
        assert_eq!(cpu.queued(3), QUEUE_PACKETS[3] / 2);
        assert_eq!(cpu.reason(raw::TND_TRAP_ROUTE).queue_full, 2000 - 512);
        // Few but long ones meet the other limit
        for _ in 0..600 {
            cpu.offer(meta(2, raw::TND_TRAP_CONNECTED), &[0; 9000], 0);
        }
        assert_eq!(cpu.queued(2), (QUEUE_BYTES[2] / 2).div_ceil(9000));
        // The other classes are not touched
        cpu.offer(meta(4, raw::TND_TRAP_ARP), &[0; 60], 0);
        assert_eq!(cpu.queued(4), 1);
        cpu.set_attached(false);
        assert!(cpu.is_empty());
        assert_eq!(cpu.class(3).no_driver, 1 + 512);
        assert!(cpu.lines.iter().all(|l| *l == Line::default()));
    }

    #[test]
    fn no_number_of_floods_fills_a_queue() {
        let mut cpu = Cpu::new(4);
        cpu.set_attached(true);
        let of = |reason, port| CpuMeta {
            port,
            ..meta(raw::TND_TC_DATA, reason)
        };
        for port in 1..=4 {
            for reason in [
                raw::TND_TRAP_ROUTE,
                raw::TND_TRAP_LPM_MISS,
                raw::TND_TRAP_TTL,
            ] {
                if (reason, port) == (raw::TND_TRAP_TTL, 4) {
                    continue;
                }
                for _ in 0..3000 {
                    cpu.offer(of(reason, port), &[0; 60], 0);
                    cpu.offer(of(reason, port), &[0; 9000], 0);
                }
            }
        }
        let before = cpu.reason(raw::TND_TRAP_TTL).queue_full;
        assert!(before > 0);
        // whatever nobody has sent yet still finds room
        for reason in [raw::TND_TRAP_TTL, raw::TND_TRAP_MTU] {
            let there = cpu.queued(raw::TND_TC_DATA);
            cpu.offer(of(reason, 4), &[0; 60], 0);
            assert_eq!(cpu.queued(raw::TND_TC_DATA), there + 1, "{reason}");
        }
        let waiting: usize = cpu.lines.iter().map(|l| l.packets).sum();
        assert_eq!(waiting, cpu.queued(raw::TND_TC_DATA));
        assert!(waiting <= QUEUE_PACKETS[3] && cpu.bytes[3] <= QUEUE_BYTES[3]);
    }

    #[test]
    fn classes_go_in_their_order_whatever_their_numbers() {
        let mut classes = ORDER;
        classes.sort_unstable();
        assert!((0..TRAP_CLASSES as u16).eq(classes));
        let shares = ORDER.map(|c| RING_SHARE[usize::from(c)]);
        assert!(shares.is_sorted_by(|a, b| a > b), "{shares:?}");
    }
}
