// SPDX-License-Identifier: Apache-2.0
//! Packets that wait for a controller's word (§6.1.2): a ring whose places are used again when their packet was taken
//! out or is too old. While there is no room, packets go to the controller whole: a flood that nobody answers does not
//! push out what a controller is about to name.

use tandem_openflow::Error;

/// Packets at most, `n_buffers`.
pub const BUFFERS: u32 = 256;
/// A packet that nobody asked for in this time is gone.
const KEPT_NS: u64 = 5_000_000_000;

/// A packet and where it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub bytes: Vec<u8>,
    pub in_port: u32,
}

#[derive(Debug, Default)]
struct Slot {
    /// None: never used, or forgotten.
    id: Option<u32>,
    at_ns: u64,
    packet: Option<Kept>,
}

/// All of them.
#[derive(Debug)]
pub struct Buffers {
    slots: Vec<Slot>,
    next: u32,
}

impl Default for Buffers {
    fn default() -> Self {
        Buffers {
            slots: (0..BUFFERS).map(|_| Slot::default()).collect(),
            // 0 is no buffer's number
            next: BUFFERS,
        }
    }
}

impl Buffers {
    fn slot(&mut self, id: u32) -> Option<&mut Slot> {
        self.slots.get_mut((id % BUFFERS) as usize)
    }

    /// Keeps a packet; its number. `None`: another one waits in its place.
    pub fn keep(&mut self, bytes: &[u8], in_port: u32, now_ns: u64) -> Option<u32> {
        let id = self.next;
        // as long as numbers last, and never OFP_NO_BUFFER
        self.next = match id.checked_add(1) {
            Some(n) if n < u32::MAX => n,
            _ => BUFFERS,
        };
        let slot = self.slot(id)?;
        if slot.packet.is_some() && now_ns.saturating_sub(slot.at_ns) <= KEPT_NS {
            return None;
        }
        slot.id = Some(id);
        slot.at_ns = now_ns;
        let kept = slot.packet.get_or_insert_with(|| Kept {
            bytes: Vec::new(),
            in_port,
        });
        kept.in_port = in_port;
        kept.bytes.clear();
        kept.bytes.extend_from_slice(bytes);
        Some(id)
    }

    /// Whether it is there.
    ///
    /// # Errors
    /// `BUFFER_EMPTY`: it was used already; `BUFFER_UNKNOWN`: there is none of this number, or none any more.
    pub fn look(&mut self, id: u32, now_ns: u64) -> Result<(), Error> {
        match self.slot(id) {
            Some(s) if s.id == Some(id) && s.packet.is_none() => {
                Err(Error::BAD_REQUEST_BUFFER_EMPTY)
            }
            Some(s) if s.id == Some(id) && now_ns.saturating_sub(s.at_ns) <= KEPT_NS => Ok(()),
            _ => Err(Error::BAD_REQUEST_BUFFER_UNKNOWN),
        }
    }

    /// Takes it out.
    ///
    /// # Errors
    /// As [`Buffers::look`].
    pub fn take(&mut self, id: u32, now_ns: u64) -> Result<Kept, Error> {
        self.look(id, now_ns)?;
        self.slot(id)
            .and_then(|s| s.packet.take())
            .ok_or(Error::BAD_REQUEST_BUFFER_EMPTY)
    }

    /// What was taken out was not used after all.
    pub fn put_back(&mut self, id: u32, kept: Kept) {
        if let Some(s) = self.slot(id)
            && s.id == Some(id)
        {
            s.packet = Some(kept);
        }
    }

    /// Forgets what is too old.
    pub fn expire(&mut self, now_ns: u64) {
        for s in &mut self.slots {
            if s.packet.is_some() && now_ns.saturating_sub(s.at_ns) > KEPT_NS {
                s.packet = None;
                s.id = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_there_once_for_five_seconds() {
        let mut b = Buffers::default();
        let (unknown, empty) = (
            Error::BAD_REQUEST_BUFFER_UNKNOWN,
            Error::BAD_REQUEST_BUFFER_EMPTY,
        );
        for none in [0, 7, 256, u32::MAX] {
            assert_eq!(b.look(none, 1), Err(unknown), "{none}");
        }
        let id = b.keep(b"abc", 3, 1).unwrap();
        let kept = b.take(id, 2).unwrap();
        assert_eq!(
            (kept.bytes.as_slice(), kept.in_port),
            (b"abc".as_slice(), 3)
        );
        assert_eq!(b.look(id, 2), Err(empty));
        b.put_back(id, kept);
        assert_eq!(b.look(id, 2), Ok(()));
        assert_eq!(b.look(id, 2 + KEPT_NS), Err(unknown));
        b.expire(2 + KEPT_NS);
        assert_eq!(b.take(id, 2), Err(unknown));
        b.next = u32::MAX - 1;
        assert_eq!(b.keep(b"z", 1, 9), Some(u32::MAX - 1));
        assert_eq!(b.keep(b"z", 1, 9), Some(BUFFERS));
    }

    #[test]
    fn a_flood_does_not_push_out_what_a_controller_is_about_to_name() {
        let mut b = Buffers::default();
        let first = b.keep(b"x", 1, 9).unwrap();
        for _ in 1..BUFFERS {
            b.keep(b"y", 1, 9).unwrap();
        }
        for _ in 0..2 * BUFFERS + 7 {
            assert_eq!(b.keep(b"y", 1, 9 + KEPT_NS), None);
        }
        assert_eq!(b.take(first, 9 + KEPT_NS).unwrap().bytes, b"x");
        // one place is free, and found within a round
        let kept = (0..BUFFERS).filter(|_| b.keep(b"z", 1, 9 + KEPT_NS).is_some());
        assert_eq!(kept.count(), 1);
        // the others are, when their packets are too old
        assert!(b.keep(b"z", 1, 10 + KEPT_NS).is_some());
    }
}
