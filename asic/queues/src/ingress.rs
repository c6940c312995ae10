//! An ingress slice: what waits before the crossbar.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::class::CLASSES;
use crate::config::{Config, Ingress};
use crate::fabric::Packet;

/// Where a frame goes in one crossing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dest {
    /// To one port.
    Port(u16),
    /// To several ports of one slice; a bit per port of it. Replicated there.
    Slice(usize, u64),
}

/// Frames of one class, first in first out.
#[derive(Debug, Clone)]
struct Queue<T> {
    frames: VecDeque<T>,
    bytes: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue {
            frames: VecDeque::new(),
            bytes: 0,
        }
    }
}

type Classes<T> = Option<Box<[Queue<T>; CLASSES]>>;

/// One slice.
#[derive(Debug, Clone)]
pub(crate) struct IngressSlice {
    per_slice: usize,
    limit: u64,
    /// By egress port - 1; made when first needed.
    voqs: Vec<Classes<Arc<Packet>>>,
    /// By egress slice.
    multicast: Vec<Classes<(Arc<Packet>, u64)>>,
    /// Frames for each egress slice.
    waiting: Vec<u32>,
    /// Whose turn it is, by egress slice: a port of it, or behind them the multicast queue.
    turn: Vec<usize>,
    /// Instead of all of this: one queue.
    fifo: Option<Queue<(Arc<Packet>, Dest)>>,
}

/// What would cross next.
#[derive(Debug, Clone, Copy)]
struct Choice {
    class: usize,
    position: usize,
}

impl IngressSlice {
    pub(crate) fn new(config: &Config) -> Self {
        // the CPU's slice sends, but nothing goes there: packets for the CPU have queues of their own
        let slices = config.slices();
        IngressSlice {
            per_slice: usize::from(config.ports_per_slice),
            limit: config.ingress_bytes,
            voqs: vec![None; usize::from(config.ports)],
            multicast: vec![None; slices],
            waiting: vec![0; slices],
            turn: vec![0; slices],
            fifo: (config.ingress == Ingress::Fifo).then(Queue::default),
        }
    }

    /// Nothing may overtake what waits here.
    pub(crate) fn blocks(&self) -> bool {
        self.fifo.as_ref().is_some_and(|f| !f.frames.is_empty())
    }

    /// False: the queue is full.
    pub(crate) fn push(&mut self, packet: &Arc<Packet>, dest: Dest) -> bool {
        let (class, len) = (usize::from(packet.class()), packet.len());
        let limit = self.limit;
        if let Some(fifo) = &mut self.fifo {
            return push(fifo, (Arc::clone(packet), dest), len, limit);
        }
        let (slice, kept) = match dest {
            Dest::Port(port) => {
                let at = usize::from(port).wrapping_sub(1);
                let queue = self
                    .voqs
                    .get_mut(at)
                    .and_then(|q| q.get_or_insert_with(Box::default).get_mut(class));
                let kept = queue.is_some_and(|q| push(q, Arc::clone(packet), len, limit));
                (at / self.per_slice, kept)
            }
            Dest::Slice(slice, ports) => {
                let queue = self
                    .multicast
                    .get_mut(slice)
                    .and_then(|q| q.get_or_insert_with(Box::default).get_mut(class));
                let kept = queue.is_some_and(|q| push(q, (Arc::clone(packet), ports), len, limit));
                (slice, kept)
            }
        };
        if kept && let Some(n) = self.waiting.get_mut(slice) {
            *n += 1;
        }
        kept
    }

    /// Is there a frame that could cross to `slice`? `room`: port, class and bytes fit behind the crossbar.
    pub(crate) fn asks(&self, slice: usize, room: &impl Fn(u16, usize, u64) -> bool) -> bool {
        if let Some(fifo) = &self.fifo {
            return fifo.frames.front().is_some_and(|(p, dest)| match dest {
                Dest::Port(port) => {
                    usize::from(*port - 1) / self.per_slice == slice
                        && room(*port, usize::from(p.class()), p.len())
                }
                Dest::Slice(s, _) => *s == slice,
            });
        }
        self.choose(slice, room).is_some()
    }

    /// Takes it out.
    pub(crate) fn take(
        &mut self,
        slice: usize,
        room: &impl Fn(u16, usize, u64) -> bool,
    ) -> Option<(Arc<Packet>, Dest)> {
        if let Some(fifo) = &mut self.fifo {
            let (packet, dest) = fifo.frames.pop_front()?;
            fifo.bytes -= packet.len();
            return Some((packet, dest));
        }
        let Choice { class, position } = self.choose(slice, room)?;
        if let Some(turn) = self.turn.get_mut(slice) {
            *turn = (position + 1) % (self.per_slice + 1);
        }
        if let Some(n) = self.waiting.get_mut(slice) {
            *n -= 1;
        }
        if position == self.per_slice {
            let q = self.multicast.get_mut(slice)?.as_mut()?.get_mut(class)?;
            let (packet, ports) = q.frames.pop_front()?;
            q.bytes -= packet.len();
            return Some((packet, Dest::Slice(slice, ports)));
        }
        let at = slice * self.per_slice + position;
        let q = self.voqs.get_mut(at)?.as_mut()?.get_mut(class)?;
        let packet = q.frames.pop_front()?;
        q.bytes -= packet.len();
        Some((packet, Dest::Port(at as u16 + 1)))
    }

    /// The most urgent class first; within it ports and multicast take turns.
    fn choose(&self, slice: usize, room: &impl Fn(u16, usize, u64) -> bool) -> Option<Choice> {
        if self.waiting.get(slice).copied().unwrap_or(0) == 0 {
            return None;
        }
        let first = self.turn.get(slice).copied().unwrap_or(0);
        let places = self.per_slice + 1;
        for class in (0..CLASSES).rev() {
            for position in (0..places).map(|n| (first + n) % places) {
                let may = if position == self.per_slice {
                    front(&self.multicast, slice, class).is_some()
                } else {
                    let at = slice * self.per_slice + position;
                    front(&self.voqs, at, class)
                        .is_some_and(|p| room(at as u16 + 1, class, p.len()))
                };
                if may {
                    return Some(Choice { class, position });
                }
            }
        }
        None
    }
}

fn push<T>(queue: &mut Queue<T>, frame: T, len: u64, limit: u64) -> bool {
    // an empty queue takes any frame: one that is longer than the queue must pass too
    if queue.bytes > 0 && queue.bytes + len > limit {
        return false;
    }
    queue.bytes += len;
    queue.frames.push_back(frame);
    true
}

fn front<T>(queues: &[Classes<T>], at: usize, class: usize) -> Option<&T> {
    queues.get(at)?.as_ref()?.get(class)?.frames.front()
}
