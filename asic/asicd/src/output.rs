//! Where the pipeline's answers go: queues and egress ports, the way to the CPU, events, captures.

use tandem_packet::{Buffer, Frame, segment};
use tandem_pipeline::{CpuMeta, Event, Sink};
use tandem_ports::TxPort;
use tandem_queues::{Fabric, Handling, Packet, Wire};

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
    /// What a congested port's frames wait in.
    pub fabric: Fabric,
    /// Frames for ports where nothing is cabled.
    pub unplugged: u64,
    /// Super-frames for the CPU whose headers made no sense.
    pub uncuttable: u64,
    /// Ports with frames that wait for a flush.
    dirty: Vec<bool>,
    any_dirty: bool,
    cut: Buffer,
    again: Buffer,
}

/// Frames that leave the queues in one turn, about.
const QUEUE_BURST: usize = 256;

impl Output {
    /// For the ports of `fabric`, nothing cabled.
    pub fn new(fabric: Fabric, cpu: Cpu, epoch_ns: u64) -> Self {
        let ports = fabric.config().ports;
        Output {
            tx: (0..ports).map(|_| None).collect(),
            cpu,
            events: Events::new(ports),
            captures: Captures::new(epoch_ns),
            fabric,
            unplugged: 0,
            uncuttable: 0,
            dirty: vec![false; usize::from(ports)],
            any_dirty: false,
            cut: Buffer::new(),
            again: Buffer::new(),
        }
    }

    /// The same as the pipeline's sink at a time.
    #[inline]
    pub fn at(&mut self, now_ns: u64) -> At<'_> {
        At { out: self, now_ns }
    }

    /// Lets frames leave the queues as far as ports take them. True: some did.
    pub fn run_queues(&mut self, now_ns: u64) -> bool {
        let Output {
            fabric,
            tx,
            captures,
            unplugged,
            dirty,
            any_dirty,
            again,
            ..
        } = self;
        let mut cables = Cables {
            tx,
            captures,
            unplugged,
            dirty,
            any_dirty,
            again,
            now_ns,
        };
        fabric.run(now_ns, QUEUE_BURST, &mut cables) > 0
    }

    /// Which ports have frames that wait for [`Output::flush`], by port number - 1.
    pub fn dirty(&self) -> &[bool] {
        &self.dirty
    }

    /// Lets go of all frames that wait in egress batches.
    pub fn flush(&mut self, now_ns: u64) {
        if !self.any_dirty {
            return;
        }
        self.any_dirty = false;
        for ((port, dirty), tx) in (1..).zip(&mut self.dirty).zip(&mut self.tx) {
            if std::mem::take(dirty)
                && let Some(tx) = tx
                && !tx.flush()
            {
                self.fabric.block(port, now_ns);
            }
        }
    }

    /// A frame that came in, for captures and queues.
    #[inline]
    pub fn ingress(&mut self, port: u16, frame: &Frame<'_>, now_ns: u64) {
        self.fabric.begin(port, frame.bytes());
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
        let at = usize::from(port).wrapping_sub(1);
        let (tx, dirty) = (out.tx.get_mut(at), out.dirty.get_mut(at));
        let cabled = matches!(tx, Some(Some(_)));
        if cabled && out.fabric.offer(port, frame, self.now_ns) == Handling::Kept {
            return;
        }
        if !out.captures.is_empty() {
            out.captures.frame(port, frame, self.now_ns);
        }
        match (tx, dirty) {
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
            cpu.offer(meta, frame.bytes(), seq);
        } else if segment::segment_frame(frame, cut, |bytes| {
            cpu.offer(meta, bytes, seq);
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

/// The cables, for frames that have waited.
struct Cables<'a> {
    tx: &'a mut [Option<TxPort>],
    captures: &'a mut Captures,
    unplugged: &'a mut u64,
    dirty: &'a mut [bool],
    any_dirty: &'a mut bool,
    again: &'a mut Buffer,
    now_ns: u64,
}

impl Wire for Cables<'_> {
    fn ready(&mut self, port: u16) -> bool {
        let at = usize::from(port).wrapping_sub(1);
        // a batch in the making is no reason to wait; one that the netdev did not take is
        let waits = self.dirty.get(at) == Some(&false);
        match self.tx.get_mut(at) {
            Some(Some(tx)) if waits => tx.flush(),
            _ => true,
        }
    }

    fn send(&mut self, port: u16, packet: &Packet) {
        let at = usize::from(port).wrapping_sub(1);
        if !self.again.set(packet.bytes()) {
            return;
        }
        let frame = self.again.frame(packet.offload());
        if !self.captures.is_empty() {
            self.captures.frame(port, &frame, self.now_ns);
        }
        match (self.tx.get_mut(at), self.dirty.get_mut(at)) {
            (Some(Some(tx)), Some(dirty)) => {
                tx.queue(&frame, self.now_ns);
                *dirty = true;
                *self.any_dirty = true;
            }
            _ => *self.unplugged += 1,
        }
    }
}
