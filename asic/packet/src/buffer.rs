//! The buffer of one frame, with room in front for tags.

use crate::offload::Offload;

/// Bytes kept free in front of a frame: a handful of tags of 4 bytes, rounded to a cache line.
pub const HEADROOM: usize = 64;

/// Longest frame a [`Buffer`] holds: a 64 KiB super-frame (65,535 bytes of L3) with Ethernet and two tags.
pub const MAX_FRAME: usize = 65_535 + 14 + 8;

/// An owned buffer that is filled by a port, processed, and used again: one allocation in its life.
#[derive(Debug, Clone)]
pub struct Buffer {
    mem: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Default for Buffer {
    fn default() -> Self {
        Self::new()
    }
}

impl Buffer {
    /// A buffer for frames of up to [`MAX_FRAME`] bytes.
    pub fn new() -> Self {
        Self::with_capacity(MAX_FRAME)
    }

    /// A buffer for frames of up to `bytes` bytes, headroom added.
    pub fn with_capacity(bytes: usize) -> Self {
        Buffer {
            mem: vec![0; HEADROOM + bytes].into_boxed_slice(),
            start: HEADROOM,
            end: HEADROOM,
        }
    }

    /// Bytes a frame may have.
    pub fn capacity(&self) -> usize {
        self.mem.len().saturating_sub(HEADROOM)
    }

    /// Forgets the frame.
    pub fn clear(&mut self) {
        self.start = HEADROOM;
        self.end = HEADROOM;
    }

    /// Copies `bytes` in as the frame; false (and an empty frame) if they do not fit.
    #[must_use]
    pub fn set(&mut self, bytes: &[u8]) -> bool {
        self.clear();
        let end = HEADROOM + bytes.len();
        match self.mem.get_mut(HEADROOM..end) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.end = end;
                true
            }
            None => false,
        }
    }

    /// The memory behind the headroom, for `read(2)` and friends; then call [`Buffer::set_len`].
    pub fn room(&mut self) -> &mut [u8] {
        self.clear();
        self.mem.get_mut(HEADROOM..).unwrap_or_default()
    }

    /// Says how many bytes of [`Buffer::room`] were filled; more than there is room for counts as all of it.
    pub fn set_len(&mut self, len: usize) {
        self.start = HEADROOM;
        self.end = (HEADROOM + len).min(self.mem.len());
    }

    /// Length of the frame in bytes.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// No frame in it?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The frame's bytes.
    pub fn bytes(&self) -> &[u8] {
        self.mem.get(self.start..self.end).unwrap_or_default()
    }

    /// The frame as the pipeline works on it. What the pipeline does to it (tags, rewrites) is done to the memory, but
    /// the buffer's own length stays that of the frame that was put in: set or clear it before it is used again.
    pub fn frame(&mut self, offload: Offload) -> Frame<'_> {
        Frame::new(&mut self.mem, self.start, self.end, offload)
    }
}

/// A frame in borrowed memory: what goes through the pipeline.
#[derive(Debug)]
pub struct Frame<'a> {
    mem: &'a mut [u8],
    start: usize,
    end: usize,
    /// What the producer left undone; offsets count from the first byte of the frame.
    pub offload: Offload,
}

impl<'a> Frame<'a> {
    /// A frame at `mem[start..end]`; the bytes before `start` are its headroom. Bounds outside `mem` are cut.
    pub fn new(mem: &'a mut [u8], start: usize, end: usize, offload: Offload) -> Self {
        let end = end.min(mem.len());
        let start = start.min(end);
        Frame {
            mem,
            start,
            end,
            offload,
        }
    }

    /// Shows `look` at most the first `len` bytes, as a frame of its own that nothing is left undone in; then the frame is
    /// as it was.
    pub fn cut<R>(&mut self, len: usize, look: impl FnOnce(&Frame<'_>) -> R) -> R {
        if len >= self.len() {
            return look(self);
        }
        let (end, offload) = (self.end, self.offload);
        self.end = self.start + len;
        self.offload = Offload::NONE;
        let answer = look(self);
        (self.end, self.offload) = (end, offload);
        answer
    }

    /// Length in bytes, without FCS.
    #[inline]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Zero bytes long?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The frame from its destination address on.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.mem.get(self.start..self.end).unwrap_or_default()
    }

    /// The frame, to be changed in place.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.mem.get_mut(self.start..self.end).unwrap_or_default()
    }

    /// Cuts the frame to `len` bytes (a longer `len` does nothing).
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.end = self.end.min(self.start.saturating_add(len));
    }

    /// Room in front, in bytes.
    pub fn headroom(&self) -> usize {
        self.start
    }

    /// Puts a tag between the addresses and the rest; false if there is no room in front. Moves 12 bytes.
    #[must_use]
    pub fn push_tag(&mut self, tpid: u16, tci: u16) -> bool {
        if self.start < 4 || self.len() < 12 {
            return false;
        }
        let s = self.start;
        self.mem.copy_within(s..s + 12, s - 4);
        self.start = s - 4;
        let [t0, t1] = tpid.to_be_bytes();
        let [c0, c1] = tci.to_be_bytes();
        if let Some(tag) = self.mem.get_mut(s + 8..s + 12) {
            tag.copy_from_slice(&[t0, t1, c0, c1]);
        }
        self.offload.moved(4);
        true
    }

    /// Removes the outer tag (the caller has seen that there is one); false if the frame is too short for one.
    #[must_use]
    pub fn pop_tag(&mut self) -> bool {
        if self.len() < 18 {
            return false;
        }
        let s = self.start;
        self.mem.copy_within(s..s + 12, s + 4);
        self.start = s + 4;
        self.offload.moved(-4);
        true
    }

    /// Makes room for `n` bytes at offset `at`: what is before moves to the front, and where there is too little room in
    /// front, the whole frame moves to the end of its memory first. The new bytes have no meaning. False, and nothing is
    /// changed: the memory is too small, or `at` is outside.
    #[must_use]
    pub fn insert(&mut self, at: usize, n: usize) -> bool {
        if at > self.len() {
            return false;
        }
        if self.start < n {
            let shift = self.mem.len() - self.end;
            if self.start + shift < n {
                return false;
            }
            self.mem
                .copy_within(self.start..self.end, self.start + shift);
            self.start += shift;
            self.end += shift;
        }
        let s = self.start;
        self.mem.copy_within(s..s + at, s - n);
        self.start = s - n;
        self.offload.moved(i16::try_from(n).unwrap_or_default());
        true
    }

    /// Takes `n` bytes out at offset `at`; what is before moves back. False, and nothing is changed: there are not as many.
    #[must_use]
    pub fn remove(&mut self, at: usize, n: usize) -> bool {
        if at.checked_add(n).is_none_or(|end| end > self.len()) {
            return false;
        }
        let s = self.start;
        self.mem.copy_within(s..s + at, s + n);
        self.start = s + n;
        self.offload.moved(-i16::try_from(n).unwrap_or_default());
        true
    }

    /// Overwrites TPID and TCI of the outer tag.
    pub fn set_tag(&mut self, tpid: u16, tci: u16) {
        let [t0, t1] = tpid.to_be_bytes();
        let [c0, c1] = tci.to_be_bytes();
        if let Some(tag) = self.bytes_mut().get_mut(12..16) {
            tag.copy_from_slice(&[t0, t1, c0, c1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_come_and_go_without_moving_the_payload() {
        let mut b = Buffer::with_capacity(64);
        let plain: Vec<u8> = (0..60).collect();
        assert!(b.set(&plain));
        let mut f = b.frame(Offload {
            csum: Some(crate::PartialChecksum {
                start: 34,
                offset: 16,
            }),
            ..Offload::NONE
        });
        assert!(f.push_tag(0x8100, 0x2064));
        assert_eq!(f.len(), 64);
        assert_eq!(f.bytes()[..12], plain[..12]);
        assert_eq!(f.bytes()[12..16], [0x81, 0, 0x20, 0x64]);
        assert_eq!(f.bytes()[16..], plain[12..]);
        assert_eq!(f.offload.csum.unwrap().start, 38);
        assert!(f.push_tag(0x88a8, 1));
        f.set_tag(0x88a8, 2);
        assert_eq!(f.bytes()[12..16], [0x88, 0xa8, 0, 2]);
        assert!(f.pop_tag() && f.pop_tag());
        assert_eq!(f.bytes(), plain);
        assert_eq!(f.offload.csum.unwrap().start, 34);
    }

    #[test]
    fn limits_are_kept() {
        let mut b = Buffer::with_capacity(20);
        assert!(!b.set(&[0; 21]));
        assert!(b.is_empty());
        assert_eq!(b.room().len(), 20);
        b.set_len(1000);
        assert_eq!(b.len(), 20);
        let mut mem = [0u8; 14];
        let mut f = Frame::new(&mut mem, 2, 99, Offload::NONE);
        assert_eq!(f.len(), 12);
        assert!(!f.push_tag(0x8100, 1));
        assert!(!f.pop_tag());
        f.set_tag(1, 1);
    }

    #[test]
    fn bytes_come_and_go_in_the_middle() {
        let mut mem = [0u8; 24];
        for (n, b) in mem.iter_mut().enumerate().take(20) {
            *b = n as u8;
        }
        // 2 bytes of room in front, 4 behind
        let mut f = Frame::new(&mut mem, 2, 20, Offload::NONE);
        assert!(!f.insert(19, 1) && !f.remove(17, 2));
        assert!(!f.insert(4, 7), "there are six bytes in all");
        assert!(f.insert(4, 6));
        assert_eq!(f.len(), 24);
        assert_eq!(f.bytes()[..4], [2, 3, 4, 5]);
        assert_eq!(f.bytes()[10..], (6..20).collect::<Vec<u8>>());
        assert!(f.remove(4, 6));
        assert_eq!(f.bytes(), (2..20).collect::<Vec<u8>>());
    }

    #[test]
    fn super_frame_fits() {
        let mut b = Buffer::new();
        assert!(b.set(&vec![0; MAX_FRAME]));
        let mut f = b.frame(Offload::NONE);
        assert!(f.push_tag(0x8100, 1));
    }
}
