//! The way to the CPU: last policer, class queues, strict order into the RX ring.
//!
//! ```text
//!   Sink::cpu ─► class's policer ─► class queue ─► RX ring      link        may fill all of it
//!                │ dropped,         │ dropped,     │            control     7/8
//!                │ EV_TRAP_DROP     │ counted      ▼            unresolved  6/8
//!                ▼                  ▼            driver         data        4/8
//! ```
//!
//! A queue is bounded in packets and in bytes; what doesn't fit is the newest one. A lower class
//! leaves room in the ring for the higher ones, so a flood of data costs no session.

use std::collections::VecDeque;

use tandem_abi::{Memory, Producer, PushError, raw};
use tandem_pipeline::CpuMeta;
use tandem_pipeline::trap::{CLASSES, REASONS};
use zerocopy::{FromZeros, IntoBytes};

/// Packets that wait in each class.
pub const QUEUE_PACKETS: [usize; CLASSES] = [1024, 1024, 512, 512];
/// Bytes that wait in each class.
pub const QUEUE_BYTES: [usize; CLASSES] = [2 << 20, 4 << 20, 1 << 20, 1 << 20];
/// Eighths of the RX ring that a class may fill.
pub const RING_SHARE: [u32; CLASSES] = [8, 7, 6, 4];

/// A token bucket. Tokens are counted in billionths, so that no time is lost to rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    rate_pps: u32,
    burst: u32,
    tokens: u64,
    at_ns: u64,
}

const TOKEN: u64 = 1_000_000_000;

impl Bucket {
    /// A full bucket; rate 0 lets everything pass.
    pub fn new(rate_pps: u32, burst: u32) -> Self {
        Bucket {
            rate_pps,
            burst: burst.max(1),
            tokens: u64::from(burst.max(1)) * TOKEN,
            at_ns: 0,
        }
    }

    /// Packets per second and burst.
    pub fn config(&self) -> (u32, u32) {
        (self.rate_pps, self.burst)
    }

    /// May one packet pass?
    pub fn take(&mut self, now_ns: u64) -> bool {
        if self.rate_pps == 0 {
            return true;
        }
        let passed = now_ns.saturating_sub(self.at_ns);
        self.at_ns = now_ns.max(self.at_ns);
        self.tokens = self
            .tokens
            .saturating_add(passed.saturating_mul(u64::from(self.rate_pps)))
            .min(u64::from(self.burst) * TOKEN);
        match self.tokens.checked_sub(TOKEN) {
            Some(rest) => {
                self.tokens = rest;
                true
            }
            None => false,
        }
    }
}

/// What one trap reason's packets met on their way to the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReasonCounters {
    /// Put into the RX ring.
    pub delivered: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Dropped by the class's policer.
    pub policed: u64,
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
    /// Dropped by the policer.
    pub policed: u64,
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

/// Queues and policers of all classes.
pub struct Cpu {
    queues: [VecDeque<Waiting>; CLASSES],
    bytes: [usize; CLASSES],
    policers: [Bucket; CLASSES],
    /// Policed since the last event about it.
    unreported: [u64; CLASSES],
    reasons: [ReasonCounters; REASONS],
    classes: [ClassCounters; CLASSES],
    /// Buffers to use again, at most as many as the queues hold.
    spare: Vec<Vec<u8>>,
    attached: bool,
    waiting: usize,
    /// A fault: untagged packets get this tag on their way to the driver (seed 000 §5.2.5).
    stray_vid: Option<u16>,
}

impl Cpu {
    /// Empty queues with these policers, by class.
    pub fn new(policers: [Bucket; CLASSES]) -> Self {
        Cpu {
            queues: Default::default(),
            bytes: [0; CLASSES],
            policers,
            unreported: [0; CLASSES],
            reasons: [ReasonCounters::default(); REASONS],
            classes: [ClassCounters::default(); CLASSES],
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
        for class in 0..CLASSES {
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
    pub fn offer(&mut self, meta: CpuMeta, frame: &[u8], event_seq: u32, now_ns: u64) {
        let class = usize::from(meta.class).min(CLASSES - 1);
        if !self.attached {
            self.count(class, meta.reason, |r, c| {
                r.no_driver += 1;
                c.no_driver += 1;
            });
            return;
        }
        if !self.policers.get_mut(class).is_some_and(|p| p.take(now_ns)) {
            self.count(class, meta.reason, |r, c| {
                r.policed += 1;
                c.policed += 1;
            });
            if let Some(n) = self.unreported.get_mut(class) {
                *n += 1;
            }
            return;
        }
        let full =
            |limit: &[usize; CLASSES], have: usize| limit.get(class).is_none_or(|l| have > *l);
        let packets = self.queues.get(class).map_or(0, VecDeque::len) + 1;
        let bytes = self.bytes.get(class).copied().unwrap_or(0) + frame.len();
        if full(&QUEUE_PACKETS, packets) || full(&QUEUE_BYTES, bytes) {
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
            q.push_back(Waiting {
                meta,
                event_seq,
                frame: copy,
            });
            *b = bytes;
            self.waiting += 1;
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
        for (class, share) in RING_SHARE.into_iter().enumerate() {
            let limit = size / 8 * share;
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

    /// Packets policed since the last call, for classes where there are any.
    pub fn take_unreported(&mut self) -> impl Iterator<Item = (u16, u64)> + use<> {
        std::mem::take(&mut self.unreported)
            .into_iter()
            .enumerate()
            .filter(|(_, n)| *n > 0)
            .map(|(class, n)| (class as u16, n))
    }

    /// Gives a count back that could not be reported.
    pub fn put_unreported(&mut self, class: u16, n: u64) {
        if let Some(u) = self.unreported.get_mut(usize::from(class)) {
            *u += n;
        }
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

    /// Rate and burst of a class's policer.
    pub fn policer(&self, class: u16) -> (u32, u32) {
        self.policers
            .get(usize::from(class))
            .map_or((0, 0), Bucket::config)
    }

    fn pop(&mut self, class: usize) -> Option<Waiting> {
        let w = self.queues.get_mut(class)?.pop_front()?;
        if let Some(b) = self.bytes.get_mut(class) {
            *b = b.saturating_sub(w.frame.len());
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
    fn a_bucket_lets_its_rate_pass() {
        let mut b = Bucket::new(1000, 10);
        let passed = (0..100_000u64).filter(|i| b.take(i * 10_000)).count();
        // One second at 1000/s, and the burst
        assert!((1000..=1011).contains(&passed), "{passed}");
        let mut none = Bucket::new(0, 0);
        assert!((0..1000).all(|_| none.take(0)));
    }

    #[test]
    fn queues_are_bounded_and_say_what_they_drop() {
        let mut cpu = Cpu::new([Bucket::new(0, 0); CLASSES]);
        cpu.offer(meta(3, raw::TND_TRAP_ROUTE), &[0; 60], 0, 0);
        assert_eq!(cpu.class(3).no_driver, 1);
        cpu.set_attached(true);
        for _ in 0..2000 {
            cpu.offer(meta(3, raw::TND_TRAP_ROUTE), &[0; 60], 0, 0);
        }
        assert_eq!(cpu.queued(3), QUEUE_PACKETS[3]);
        assert_eq!(cpu.reason(raw::TND_TRAP_ROUTE).queue_full, 2000 - 512);
        // Few but long ones meet the other limit
        for _ in 0..600 {
            cpu.offer(meta(2, raw::TND_TRAP_CONNECTED), &[0; 9000], 0, 0);
        }
        assert_eq!(cpu.queued(2), QUEUE_BYTES[2] / 9000);
        // The other classes are not touched
        cpu.offer(meta(0, raw::TND_TRAP_ARP), &[0; 60], 0, 0);
        assert_eq!(cpu.queued(0), 1);
        cpu.set_attached(false);
        assert!(cpu.is_empty());
        assert_eq!(cpu.class(3).no_driver, 1 + 512);
    }

    #[test]
    fn policed_packets_are_reported_once() {
        let mut cpu = Cpu::new([Bucket::new(10, 2); CLASSES]);
        cpu.set_attached(true);
        for _ in 0..5 {
            cpu.offer(meta(3, raw::TND_TRAP_LPM_MISS), &[0; 60], 0, 1);
        }
        assert_eq!(cpu.class(3).policed, 3);
        assert_eq!(cpu.take_unreported().collect::<Vec<_>>(), [(3, 3)]);
        assert_eq!(cpu.take_unreported().count(), 0);
        cpu.put_unreported(3, 3);
        assert_eq!(cpu.take_unreported().collect::<Vec<_>>(), [(3, 3)]);
    }
}
