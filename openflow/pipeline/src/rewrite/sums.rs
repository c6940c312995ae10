// SPDX-License-Identifier: Apache-2.0
//! Bytes under a checksum: written, and the checksum changed by the difference (RFC 1624). What was wrong before stays
//! wrong: a switch does not make a broken packet look whole.
use super::Packet;
use crate::parse::Net;
use tandem_packet::checksum;

const CRC32C: [u32; 256] = {
    let mut table = [0u32; 256];
    let mut n = 0;
    while n < 256 {
        let mut c = n as u32;
        let mut bit = 0;
        while bit < 8 {
            c = if c & 1 != 0 {
                c >> 1 ^ 0x82f6_3b78
            } else {
                c >> 1
            };
            bit += 1;
        }
        table[n] = c;
        n += 1;
    }
    table
};

#[inline]
fn step(crc: u32, byte: u8) -> u32 {
    crc >> 8 ^ CRC32C[usize::from(crc as u8 ^ byte)]
}

/// Words before and after, at an even offset of what is summed.
fn words<'a>(old: &'a [u8], new: &'a [u8]) -> impl Iterator<Item = (u16, u16)> + 'a {
    let word = |w: &[u8]| match *w {
        [a, b] => u16::from_be_bytes([a, b]),
        [a] => u16::from_be_bytes([a, 0]),
        _ => 0,
    };
    old.chunks(2)
        .zip(new.chunks(2))
        .map(move |(o, n)| (word(o), word(n)))
}

impl Packet<'_, '_> {
    /// Writes without any checksum.
    pub(super) fn write(&mut self, at: u32, new: &[u8]) {
        let at = at as usize;
        if let Some(place) = self.frame.bytes_mut().get_mut(at..at + new.len()) {
            place.copy_from_slice(new);
        }
    }

    fn old<const N: usize>(&self, at: u32) -> [u8; N] {
        self.frame
            .bytes()
            .get(at as usize..)
            .and_then(|b| b.first_chunk())
            .copied()
            .unwrap_or([0; N])
    }

    /// Writes words of IPv4's header, whose checksum follows.
    pub(super) fn write_ip4<const N: usize>(&mut self, header: u32, at: u32, new: [u8; N]) {
        let old: [u8; N] = self.old(at);
        self.write(at, &new);
        self.adjust(header + 10, &old, &new);
    }

    /// Writes an address or what else the transport checksum is over beside its own header.
    pub(super) fn write_pseudo<const N: usize>(&mut self, at: u32, new: [u8; N]) {
        let old: [u8; N] = self.old(at);
        if self.lay.net == Net::Ip4 {
            self.write_ip4(self.lay.net_at, at, new);
        } else {
            self.write(at, &new);
        }
        if !matches!(self.lay.sum_proto, 1 | 132) {
            self.adjust_l4(&old, &new);
        }
    }

    /// Writes words of the transport header.
    pub(super) fn write_l4<const N: usize>(&mut self, at: u32, new: [u8; N]) {
        let old: [u8; N] = self.old(at);
        self.write(at, &new);
        if self.lay.sum_proto == 132 {
            self.adjust_crc(at, &old, &new);
        } else {
            self.adjust_l4(&old, &new);
        }
    }

    /// The transport checksum, after what it is over has changed from `old` to `new`, words each.
    pub(super) fn adjust_l4(&mut self, old: &[u8], new: &[u8]) {
        let at = match self.lay.sum_proto {
            6 => 16,
            17 => 6,
            1 | 58 => 2,
            _ => return,
        };
        let at = self.lay.sum_at + at;
        let [a, b] = self.old(at);
        // UDP without a checksum
        if self.lay.sum_proto == 17 && [a, b] == [0, 0] {
            return;
        }
        self.adjust(at, old, new);
        // UDP writes a sum of zero like this, and so does a message of nothing but zeros, which ICMP alone can be: it has no
        // pseudo header
        let zeros = |b: &[u8]| b.iter().all(|x| *x == 0);
        let ones = match self.lay.sum_proto {
            17 => true,
            1 => self
                .frame
                .bytes()
                .get(self.lay.sum_at as usize..self.lay.end as usize)
                .is_some_and(zeros),
            _ => false,
        };
        if ones && self.old(at) == [0, 0] {
            self.write(at, &[0xff, 0xff]);
        }
    }

    fn adjust(&mut self, at: u32, old: &[u8], new: &[u8]) {
        let mut sum = u16::from_be_bytes(self.old(at));
        for (o, n) in words(old, new) {
            sum = checksum::update(sum, o, n);
        }
        self.write(at, &sum.to_be_bytes());
    }

    /// SCTP's CRC32c is linear: that of the difference goes on top. Of a fragment it can't be known, the rest is elsewhere.
    fn adjust_crc(&mut self, at: u32, old: &[u8], new: &[u8]) {
        if self.lay.fragment {
            return;
        }
        let mut crc = 0;
        for (o, n) in old.iter().zip(new) {
            crc = step(crc, o ^ n);
        }
        let behind = self.lay.end.saturating_sub(at + new.len() as u32);
        for _ in 0..behind {
            crc = step(crc, 0);
        }
        let field = self.lay.sum_at + 8;
        let sum = u32::from_le_bytes(self.old(field)) ^ crc;
        self.write(field, &sum.to_le_bytes());
    }
}
