//! Where the chip saw stations last, by the numbers of its events: which frames are older than that.
//!
//! ```text
//!   chip:  frame A from port 1 ─► queue of its class … waits        MOVE of A to port 2, event 7
//!   here:  event 7 ─► kernel: A behind swp2          frame A, "6 events before it" ─► kernel's bridge learns: A behind swp1
//!                                                    6 ≤ 7 ─► kernel, once more: A behind swp2
//! ```
//!
//! A frame that is newer than the chip's word about its source is no business of ours: there the chip does not learn, and what
//! the kernel learns counts.

use std::collections::HashMap;

use tandem_sal::{Event, RxMeta};

/// Stations remembered at most: older ones make room. A frame waits behind a few thousand others at most.
const MOST: usize = 16384;

/// Where a station was seen, and the number of the event that said so.
#[derive(Clone, Copy, Debug)]
struct Place {
    port: u16,
    seq: u32,
    /// Not the chip's word, but somebody's who has set the entry since.
    set: bool,
}

/// The latest places, by forwarding domain of the chip and address.
#[derive(Debug, Default)]
pub struct Places(HashMap<(u16, [u8; 6]), Place>);

/// The source address of a frame.
pub fn source(frame: &[u8]) -> Option<[u8; 6]> {
    frame.get(6..12)?.try_into().ok()
}

/// `a` comes before `b`, in numbers that wrap.
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Places {
    /// Takes note of an event and its number.
    pub fn note(&mut self, event: &Event, seq: u32) {
        match *event {
            Event::Learn { fid, mac, port } | Event::Move { fid, mac, port, .. } => {
                if self.0.len() >= MOST {
                    let old = seq.wrapping_sub(MOST as u32 / 2);
                    self.0.retain(|_, p| !before(p.seq, old));
                }
                let place = Place {
                    port,
                    seq,
                    set: false,
                };
                self.0.insert((fid, mac), place);
            }
            Event::Age { fid, mac, .. } => {
                self.0.remove(&(fid, mac));
            }
            _ => {}
        }
    }

    /// What the chip has said of a frame's source since the frame came in, if that is another port; and whether it is not
    /// its own word, but where somebody has set the entry since.
    pub fn newer(&self, meta: &RxMeta, mac: [u8; 6]) -> Option<(Event, bool)> {
        let place = self.0.get(&(meta.fid, mac))?;
        let late = place.port != meta.port && !before(place.seq, meta.event_seq);
        let event = Event::Move {
            fid: meta.fid,
            mac,
            port: place.port,
            old_port: meta.port,
        };
        late.then_some((event, place.set))
    }

    /// Somebody has set the entry of an address to this port since the chip's last word about it.
    pub fn set(&mut self, fid: u16, mac: [u8; 6], port: u16) {
        if let Some(place) = self.0.get_mut(&(fid, mac)) {
            (place.port, place.set) = (port, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];

    fn frame(port: u16, event_seq: u32) -> RxMeta {
        RxMeta {
            port,
            reason: 0,
            class: 0,
            flags: 0,
            fid: 3,
            event_seq,
        }
    }

    #[test]
    fn only_frames_of_before_the_move_are_late() {
        // around the end of the numbers
        for first in [6, u32::MAX] {
            let mut p = Places::default();
            let to = |port| Event::Move {
                fid: 3,
                mac: MAC,
                port,
                old_port: 1,
            };
            p.note(&to(2), first);
            let late = to(2);
            let word = Some((late, false));
            assert_eq!(p.newer(&frame(1, first), MAC), word);
            assert_eq!(p.newer(&frame(1, first.wrapping_sub(5)), MAC), word);
            // where the chip saw it itself, another station, a frame of after that which the chip did not learn from
            assert_eq!(p.newer(&frame(2, first), MAC), None);
            assert_eq!(p.newer(&frame(1, first), [2, 0, 0, 0, 0, 8]), None);
            assert_eq!(p.newer(&frame(1, first.wrapping_add(1)), MAC), None);
            // set by somebody since, and seen by the chip after that
            p.set(3, MAC, 4);
            assert_eq!(p.newer(&frame(1, first), MAC), Some((to(4), true)));
            p.note(&to(2), first);
            assert_eq!(p.newer(&frame(1, first), MAC), word);
            let aged = Event::Age {
                fid: 3,
                mac: MAC,
                port: 2,
            };
            p.note(&aged, first.wrapping_add(1));
            assert_eq!(p.newer(&frame(1, first), MAC), None);
        }
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut p = Places::default();
        for n in 0..3 * MOST as u32 {
            let [a, b, c, d] = n.to_be_bytes();
            let event = Event::Learn {
                fid: 3,
                mac: [2, 0, a, b, c, d],
                port: 1,
            };
            p.note(&event, n);
            assert!(p.0.len() <= MOST);
        }
        assert!(p.0.len() >= MOST / 2);
    }
}
