//! A port's side of an egress slice: its queues, their scheduler, its wire.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::class::CLASSES;
use crate::fabric::Packet;
use crate::shaper::Shaper;

/// Bytes that a weight of one may send in a round: a full frame (M. Shreedhar, G. Varghese, "Efficient Fair Queuing
/// using Deficit Round Robin", 1996, wants at least that).
const QUANTUM: u64 = 1518;

/// One port.
#[derive(Debug, Clone)]
pub(crate) struct EgressPort {
    queues: [VecDeque<Arc<Packet>>; CLASSES],
    bytes: [u64; CLASSES],
    deficit: [u64; CLASSES],
    /// The class that deficit round robin is at, and whether it has got its quantum.
    turn: usize,
    paid: bool,
    pub(crate) shaper: Shaper,
    /// The cable takes nothing; look again then.
    pub(crate) blocked_until: Option<u64>,
    /// Frames for this port on both sides of the crossbar.
    pub(crate) waiting: u32,
    here: u32,
}

impl EgressPort {
    pub(crate) fn new() -> Self {
        EgressPort {
            queues: Default::default(),
            bytes: [0; CLASSES],
            deficit: [0; CLASSES],
            turn: 0,
            paid: false,
            shaper: Shaper::new(0),
            blocked_until: None,
            waiting: 0,
            here: 0,
        }
    }

    /// Nothing in its queues (there may be something before the crossbar).
    pub(crate) fn is_empty(&self) -> bool {
        self.here == 0
    }

    /// Do so many bytes fit?
    pub(crate) fn room(&self, class: usize, bytes: u64, limit: u64) -> bool {
        let there = self.bytes.get(class).copied().unwrap_or(u64::MAX);
        there == 0 || there.saturating_add(bytes) <= limit
    }

    pub(crate) fn push(&mut self, packet: Arc<Packet>) {
        let class = usize::from(packet.class());
        if let (Some(q), Some(b)) = (self.queues.get_mut(class), self.bytes.get_mut(class)) {
            *b += packet.len();
            q.push_back(packet);
            self.here += 1;
        }
    }

    /// The next frame: of the most urgent strict class that has one, else by deficit round robin.
    pub(crate) fn pop(&mut self, weights: &[u16; CLASSES]) -> Option<Arc<Packet>> {
        if self.here == 0 {
            return None;
        }
        let strict = (0..CLASSES).rev().find(|c| {
            weights.get(*c) == Some(&0) && self.queues.get(*c).is_some_and(|q| !q.is_empty())
        });
        let class = match strict {
            Some(class) => class,
            None => self.round_robin(weights)?,
        };
        let packet = self.queues.get_mut(class)?.pop_front()?;
        if let Some(b) = self.bytes.get_mut(class) {
            *b -= packet.len();
        }
        self.here -= 1;
        Some(packet)
    }

    fn round_robin(&mut self, weights: &[u16; CLASSES]) -> Option<usize> {
        // each round pays every waiting class at least a quantum: a super-frame's turn comes within 64 KiB / QUANTUM
        for _ in 0..CLASSES * 64 {
            let class = self.turn;
            let weight = weights.get(class).copied().unwrap_or(0);
            let head = self.queues.get(class).and_then(|q| q.front());
            let deficit = self.deficit.get_mut(class)?;
            match head {
                Some(packet) if weight > 0 => {
                    if !self.paid {
                        self.paid = true;
                        *deficit += u64::from(weight) * QUANTUM;
                    }
                    if packet.len() <= *deficit {
                        *deficit -= packet.len();
                        return Some(class);
                    }
                }
                _ => *deficit = 0,
            }
            self.turn = (class + 1) % CLASSES;
            self.paid = false;
        }
        None
    }
}
