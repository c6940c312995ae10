//! All slices, the crossbar between them, and the way around for ports that are not congested.

use std::sync::Arc;

use tandem_packet::{Frame, Offload, segment};

use crate::arbiter::Arbiter;
use crate::class::{CLASSES, class_of};
use crate::config::{Config, ConfigError, Ingress};
use crate::egress::EgressPort;
use crate::ingress::{Dest, IngressSlice};
use crate::shaper::Shaper;
use crate::stats::{FabricStats, QueueStats};

/// A cable that took nothing is looked at again after so long.
const RETRY_NS: u64 = 100_000;
/// Class of what the driver itself sends: network control (IEEE 802.1Q table I-2).
const CPU_CLASS: u8 = 7;
/// Frames that one port sends before the next one has its turn.
const PORT_BURST: usize = 32;

/// A frame that waits; one copy for all ports that want it in the same form.
#[derive(Debug, PartialEq, Eq)]
pub struct Packet {
    bytes: Box<[u8]>,
    offload: Offload,
    class: u8,
    packets: u64,
    wire_bytes: u64,
}

impl Packet {
    /// The frame.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What its producer left undone.
    pub fn offload(&self) -> Offload {
        self.offload
    }

    /// Its traffic class.
    pub fn class(&self) -> u8 {
        self.class
    }

    /// What it takes of a buffer.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// What becomes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handling {
    /// It may leave now, by the caller's hand.
    Direct,
    /// It waits, or was dropped and counted.
    Kept,
}

/// Where frames leave that have waited.
pub trait Wire {
    /// Does the cable take a frame now? Asked before [`Wire::send`], and of a cable that was blocked.
    fn ready(&mut self, port: u16) -> bool;
    /// Send it.
    fn send(&mut self, port: u16, packet: &Packet);
}

/// See the module.
pub struct Fabric {
    config: Config,
    ingress: Vec<IngressSlice>,
    egress: Vec<EgressPort>,
    arbiter: Arbiter,
    /// By port - 1: ask before a frame leaves.
    hot: Vec<bool>,
    stats: Vec<[QueueStats; CLASSES]>,
    totals: FabricStats,
    /// Frames on both sides of the crossbar, replicas counted.
    waiting: usize,
    blocked: usize,
    /// Something came to an ingress slice after the crossbar has been looked at last.
    fresh: bool,
    /// Slice and class of the frame that the pipeline has now.
    slice: usize,
    class: u8,
    /// Ports that it has gone to so far, or wants to.
    copies: u32,
    /// What of it has to wait, and where it goes: known when the pipeline has done with it.
    pending: Vec<(Arc<Packet>, Vec<u16>)>,
    spare: Vec<Vec<u16>>,
}

impl Fabric {
    /// An empty one; no port has a limit.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let slices = config.slices();
        let ports = usize::from(config.ports);
        let hot = config.ingress == Ingress::Fifo || !config.bypass;
        Ok(Fabric {
            ingress: (0..=slices).map(|_| IngressSlice::new(&config)).collect(),
            egress: (0..ports).map(|_| EgressPort::new()).collect(),
            arbiter: Arbiter::new(slices + 1, slices),
            hot: vec![hot; ports],
            stats: vec![[QueueStats::default(); CLASSES]; ports],
            totals: FabricStats::default(),
            waiting: 0,
            blocked: 0,
            fresh: false,
            slice: slices,
            class: CPU_CLASS,
            copies: 0,
            pending: Vec::new(),
            spare: Vec::new(),
            config,
        })
    }

    /// As given.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The classes of a port.
    pub fn stats(&self, port: u16) -> Option<&[QueueStats; CLASSES]> {
        self.stats.get(at(port))
    }

    /// Tail drops of all classes of a port, in packets.
    pub fn tail_drops(&self, port: u16) -> u64 {
        self.stats(port)
            .map_or(0, |s| s.iter().map(|q| q.tail_drops).sum())
    }

    /// The crossbar and the buffer.
    pub fn totals(&self) -> FabricStats {
        self.totals
    }

    /// A port's limit in Mbit/s; 0: none.
    pub fn rate(&self, port: u16) -> u32 {
        self.egress.get(at(port)).map_or(0, |p| p.shaper.mbps())
    }

    /// Limits a port to so many Mbit/s; 0: no longer. False: there is no such port.
    pub fn set_rate(&mut self, port: u16, mbps: u32) -> bool {
        let Some(p) = self.egress.get_mut(at(port)) else {
            return false;
        };
        p.shaper = Shaper::new(mbps);
        self.refresh(port);
        true
    }

    /// A frame comes in by `port`, as it is in `bytes`.
    #[inline]
    pub fn begin(&mut self, port: u16, bytes: &[u8]) {
        if !self.pending.is_empty() {
            self.commit();
        }
        self.slice = self.config.slice(port);
        self.class = class_of(bytes, self.config.trust);
        self.copies = 0;
    }

    /// The driver sends a frame itself.
    pub fn begin_cpu(&mut self) {
        if !self.pending.is_empty() {
            self.commit();
        }
        self.slice = self.config.slices();
        self.class = CPU_CLASS;
        self.copies = 0;
    }

    /// The frame that came in last wants to leave by `port`, in this form.
    #[inline]
    pub fn offer(&mut self, port: u16, frame: &Frame<'_>, now_ns: u64) -> Handling {
        self.copies += 1;
        if self.hot.get(at(port)).copied().unwrap_or(false) {
            return self.ask(port, frame, now_ns);
        }
        self.count_direct(port, frame);
        Handling::Direct
    }

    #[inline]
    fn count_direct(&mut self, port: u16, frame: &Frame<'_>) {
        let wire = segment::wire(frame.bytes(), &frame.offload);
        let queue = self.stats.get_mut(at(port));
        if let Some(q) = queue.and_then(|s| s.get_mut(usize::from(self.class))) {
            q.packets += wire.packets;
            q.bytes += wire.bytes;
        }
    }

    #[cold]
    fn ask(&mut self, port: u16, frame: &Frame<'_>, now_ns: u64) -> Handling {
        let behind = self.config.ingress == Ingress::Fifo
            && (!self.pending.is_empty()
                || self
                    .ingress
                    .get(self.slice)
                    .is_some_and(IngressSlice::blocks));
        let wire = segment::wire(frame.bytes(), &frame.offload);
        let Some(p) = self.egress.get_mut(at(port)) else {
            return Handling::Direct;
        };
        if self.config.bypass
            && !behind
            && p.waiting == 0
            && p.blocked_until.is_none()
            && p.shaper.ready(now_ns)
        {
            p.shaper.send(wire.packets, wire.bytes, now_ns);
            self.count_direct(port, frame);
            return Handling::Direct;
        }
        let same = self.pending.iter_mut().find(|(p, ports)| {
            p.offload == frame.offload && *p.bytes == *frame.bytes() && !ports.contains(&port)
        });
        let len = frame.len() as u64;
        match same {
            Some((_, ports)) => ports.push(port),
            None if self.totals.buffered + len > self.config.buffer_bytes => {
                self.lose(port, self.class, wire.packets, wire.bytes);
                return Handling::Kept;
            }
            None => {
                let mut ports = self.spare.pop().unwrap_or_default();
                ports.push(port);
                let packet = Packet {
                    bytes: frame.bytes().into(),
                    offload: frame.offload,
                    class: self.class,
                    packets: wire.packets,
                    wire_bytes: wire.bytes,
                };
                self.pending.push((Arc::new(packet), ports));
                self.totals.buffered += len;
                self.totals.watermark = self.totals.watermark.max(self.totals.buffered);
            }
        }
        self.waiting += 1;
        if let Some(p) = self.egress.get_mut(at(port)) {
            p.waiting += 1;
        }
        if let Some(h) = self.hot.get_mut(at(port)) {
            *h = true;
        }
        if let Some(q) = self.queue(port, self.class) {
            q.deepen(len);
        }
        Handling::Kept
    }

    /// Puts what waits of the last frame into its ingress slice: once for a single port, else once per egress slice. What
    /// went to several ports takes the latter way even if only one of them is congested: floods stay in order.
    fn commit(&mut self) {
        self.fresh = true;
        let mut pending = std::mem::take(&mut self.pending);
        for (packet, mut ports) in pending.drain(..) {
            if let ([port], 1) = (ports.as_slice(), self.copies) {
                self.put(&packet, Dest::Port(*port), &[*port]);
            } else {
                ports.sort_unstable();
                let per = usize::from(self.config.ports_per_slice);
                for of_slice in ports.chunk_by(|a, b| at(*a) / per == at(*b) / per) {
                    let slice = of_slice.first().map_or(0, |p| at(*p) / per);
                    let bits = of_slice
                        .iter()
                        .fold(0u64, |bits, p| bits | 1 << (at(*p) - slice * per));
                    self.put(&packet, Dest::Slice(slice, bits), of_slice);
                }
            }
            self.release(packet);
            ports.clear();
            if self.spare.len() < CLASSES {
                self.spare.push(ports);
            }
        }
        self.pending = pending;
    }

    fn put(&mut self, packet: &Arc<Packet>, dest: Dest, ports: &[u16]) {
        let kept = self
            .ingress
            .get_mut(self.slice)
            .is_some_and(|s| s.push(packet, dest));
        if !kept {
            for port in ports {
                self.lose(*port, packet.class, packet.packets, packet.wire_bytes);
                self.leave(*port, packet);
            }
        }
    }

    /// One round of the crossbar: each slice sends at most one frame, and gets at most one. False: nothing can cross.
    pub fn round(&mut self) -> bool {
        if self.waiting == 0 {
            return false;
        }
        let Fabric {
            ingress,
            egress,
            arbiter,
            config,
            ..
        } = self;
        let room = |port: u16, class: usize, bytes: u64| {
            egress
                .get(at(port))
                .is_some_and(|p| p.room(class, bytes, config.egress_bytes))
        };
        let matched = arbiter.round(|input, output| {
            ingress
                .get(input)
                .is_some_and(|slice| slice.asks(output, &room))
        });
        // the frames first: what arrives changes what has room
        let crossing: Vec<(Arc<Packet>, Dest)> = matched
            .iter()
            .zip(ingress)
            .filter_map(|(output, slice)| slice.take((*output)?, &room))
            .collect();
        let any = !crossing.is_empty();
        for (packet, dest) in crossing {
            self.arrive(packet, dest);
        }
        self.totals.rounds += u64::from(any);
        any
    }

    fn arrive(&mut self, packet: Arc<Packet>, dest: Dest) {
        match dest {
            Dest::Port(port) => {
                self.totals.unicast += 1;
                if let Some(p) = self.egress.get_mut(at(port)) {
                    p.push(packet);
                }
            }
            Dest::Slice(slice, ports) => {
                self.totals.multicast += 1;
                let first = slice * usize::from(self.config.ports_per_slice);
                for n in (0..64).filter(|n| ports & 1 << n != 0) {
                    let limit = self.config.egress_bytes;
                    let (class, len) = (usize::from(packet.class), packet.len());
                    let port = (first + n) as u16 + 1;
                    match self.egress.get_mut(first + n) {
                        Some(p) if p.room(class, len, limit) => {
                            p.push(Arc::clone(&packet));
                            self.totals.replicas += 1;
                        }
                        _ => {
                            self.lose(port, packet.class, packet.packets, packet.wire_bytes);
                            self.leave(port, &packet);
                        }
                    }
                }
                self.release(packet);
            }
        }
    }

    /// Lets frames cross and leave until nothing moves, or about `budget` have left; how many left.
    pub fn run(&mut self, now_ns: u64, budget: usize, wire: &mut impl Wire) -> usize {
        if !self.pending.is_empty() {
            self.commit();
        }
        if self.waiting == 0 && self.blocked == 0 {
            return 0;
        }
        self.fresh = false;
        let mut sent = 0;
        loop {
            while self.round() {}
            let before = sent;
            for port in 1..=self.config.ports {
                sent += self.drain(port, PORT_BURST, now_ns, wire);
            }
            if sent == before || sent >= budget {
                return sent;
            }
        }
    }

    /// One slot of time: one round of the crossbar, then every port sends at most one frame.
    pub fn step(&mut self, now_ns: u64, wire: &mut impl Wire) -> usize {
        if !self.pending.is_empty() {
            self.commit();
        }
        self.round();
        (1..=self.config.ports)
            .map(|port| self.drain(port, 1, now_ns, wire))
            .sum()
    }

    fn drain(&mut self, port: u16, most: usize, now_ns: u64, wire: &mut impl Wire) -> usize {
        let mut sent = 0;
        while sent < most {
            let Some(p) = self.egress.get_mut(at(port)) else {
                break;
            };
            if p.is_empty() && p.blocked_until.is_none() || !p.shaper.ready(now_ns) {
                break;
            }
            if p.blocked_until.is_some_and(|until| now_ns < until) {
                break;
            }
            if !wire.ready(port) {
                self.block(port, now_ns);
                break;
            }
            if p.blocked_until.take().is_some() {
                self.blocked -= 1;
            }
            let Some(packet) = p.pop(&self.config.weights) else {
                break;
            };
            p.shaper.send(packet.packets, packet.wire_bytes, now_ns);
            wire.send(port, &packet);
            sent += 1;
            if let Some(q) = self.queue(port, packet.class) {
                q.packets += packet.packets;
                q.bytes += packet.wire_bytes;
                q.queued += packet.packets;
            }
            self.leave(port, &packet);
            self.release(packet);
        }
        self.refresh(port);
        sent
    }

    /// The cable takes nothing more: frames wait, and it is looked at again soon.
    pub fn block(&mut self, port: u16, now_ns: u64) {
        if let Some(p) = self.egress.get_mut(at(port)) {
            if p.blocked_until.is_none() {
                self.blocked += 1;
            }
            p.blocked_until = Some(now_ns + RETRY_NS);
        }
        self.refresh(port);
    }

    /// When there is something to do again; none: when the next frame comes.
    pub fn due(&self, now_ns: u64) -> Option<u64> {
        if self.waiting == 0 && self.blocked == 0 {
            return None;
        }
        if self.fresh || !self.pending.is_empty() {
            return Some(now_ns);
        }
        // what else has not crossed waits for room behind a port that has frames
        self.egress
            .iter()
            .filter(|p| !p.is_empty() || p.blocked_until.is_some())
            .map(|p| {
                let blocked = p.blocked_until.unwrap_or(0);
                p.shaper.free_at_ns().max(blocked).max(now_ns)
            })
            .min()
    }

    fn queue(&mut self, port: u16, class: u8) -> Option<&mut QueueStats> {
        self.stats.get_mut(at(port))?.get_mut(usize::from(class))
    }

    fn lose(&mut self, port: u16, class: u8, packets: u64, bytes: u64) {
        if let Some(q) = self.queue(port, class) {
            q.tail_drops += packets;
            q.tail_drop_bytes += bytes;
        }
    }

    /// A port has one frame less to wait for.
    fn leave(&mut self, port: u16, packet: &Packet) {
        self.waiting -= 1;
        if let Some(p) = self.egress.get_mut(at(port)) {
            p.waiting -= 1;
        }
        if let Some(q) = self.queue(port, packet.class) {
            q.depth -= packet.len();
        }
    }

    /// Gives the buffer back with the last reference.
    fn release(&mut self, packet: Arc<Packet>) {
        if Arc::strong_count(&packet) == 1 {
            self.totals.buffered -= packet.len();
        }
    }

    fn refresh(&mut self, port: u16) {
        let always = self.config.ingress == Ingress::Fifo || !self.config.bypass;
        if let (Some(p), Some(hot)) = (self.egress.get(at(port)), self.hot.get_mut(at(port))) {
            *hot = always || p.waiting > 0 || p.blocked_until.is_some() || p.shaper.mbps() > 0;
        }
    }
}

#[inline]
fn at(port: u16) -> usize {
    usize::from(port).wrapping_sub(1)
}
