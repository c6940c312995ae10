//! Where the pipeline's answers go: egress ports, the way to the CPU, events, captures.

use tandem_packet::{Buffer, Frame, segment};
use tandem_pipeline::{CpuMeta, Event, Sink};
use tandem_ports::TxPort;

use crate::capture::{CPU_PORT, Captures};
use crate::cpu::Cpu;
use crate::events::Events;

/// Everything that frames and events leave by.
pub struct Output {
    /// Sending halves by port number - 1; none where nothing is cabled.
    pub tx: Vec<Option<TxPort>>,
    /// The way to the CPU.
    pub cpu: Cpu,
    /// Events to the driver.
    pub events: Events,
    /// Running captures.
    pub captures: Captures,
    /// Frames for ports where nothing is cabled.
    pub unplugged: u64,
    /// Super-frames for the CPU whose headers made no sense.
    pub uncuttable: u64,
    /// Ports with frames that wait for a flush.
    dirty: Vec<bool>,
    any_dirty: bool,
    cut: Buffer,
}

impl Output {
    /// For ports 1..=`ports`, nothing cabled.
    pub fn new(ports: u16, cpu: Cpu, epoch_ns: u64) -> Self {
        Output {
            tx: (0..ports).map(|_| None).collect(),
            cpu,
            events: Events::new(ports),
            captures: Captures::new(epoch_ns),
            unplugged: 0,
            uncuttable: 0,
            dirty: vec![false; usize::from(ports)],
            any_dirty: false,
            cut: Buffer::new(),
        }
    }

    /// The same as the pipeline's sink at a time.
    #[inline]
    pub fn at(&mut self, now_ns: u64) -> At<'_> {
        At { out: self, now_ns }
    }

    /// Lets go of all frames that wait in egress batches.
    pub fn flush(&mut self) {
        if !self.any_dirty {
            return;
        }
        self.any_dirty = false;
        for (dirty, tx) in self.dirty.iter_mut().zip(&mut self.tx) {
            if std::mem::take(dirty)
                && let Some(tx) = tx
            {
                tx.flush();
            }
        }
    }

    /// A frame that came in, for captures.
    #[inline]
    pub fn ingress(&mut self, port: u16, frame: &Frame<'_>, now_ns: u64) {
        if !self.captures.is_empty() {
            self.captures.frame(port, frame, now_ns);
        }
    }
}

/// [`Output`] at a time.
pub struct At<'a> {
    out: &'a mut Output,
    now_ns: u64,
}

impl Sink for At<'_> {
    #[inline]
    fn tx(&mut self, port: u16, frame: &Frame<'_>) {
        let out = &mut *self.out;
        if !out.captures.is_empty() {
            out.captures.frame(port, frame, self.now_ns);
        }
        let at = usize::from(port).wrapping_sub(1);
        match (out.tx.get_mut(at), out.dirty.get_mut(at)) {
            (Some(Some(tx)), Some(dirty)) => {
                tx.queue(frame, self.now_ns);
                *dirty = true;
                out.any_dirty = true;
            }
            _ => out.unplugged += 1,
        }
    }

    fn cpu(&mut self, meta: CpuMeta, frame: &Frame<'_>) {
        let Output {
            cpu,
            events,
            captures,
            cut,
            uncuttable,
            ..
        } = &mut *self.out;
        if !captures.is_empty() {
            captures.frame(CPU_PORT, frame, self.now_ns);
        }
        let seq = events.seq();
        if frame.offload.is_none() {
            cpu.offer(meta, frame.bytes(), seq, self.now_ns);
        } else if segment::segment_frame(frame, cut, |bytes| {
            cpu.offer(meta, bytes, seq, self.now_ns);
        })
        .is_err()
        {
            *uncuttable += 1;
        }
    }

    fn event(&mut self, event: Event) {
        self.out.events.fdb(event);
    }
}
