//! Software segmentation of super-frames: TCP over IPv4 and IPv6, UDP (one datagram per segment).
//!
//! ```text
//!   | Ethernet, tags | IP | TCP, seq s, flags | payload ........................ |
//!        │ gso_size n
//!        ├─► headers, id i,   seq s,    no FIN/PSH, CWR kept | n bytes |
//!        ├─► headers, id i+1, seq s+n,  no FIN/PSH/CWR       | n bytes |
//!        └─► headers, id i+2, seq s+2n, FIN/PSH as they were | rest    |
//! ```

use crate::checksum::{self, put16};
use crate::offload::Gso;
use crate::parse::{L3, parse, protocol};
use crate::{Buffer, Frame, Offload};

/// Why a super-frame can't be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    /// The headers are not those that the GSO kind names.
    #[error("GSO frame of kind {0:?} has other headers")]
    Headers(Gso),
    /// gso_size is zero.
    #[error("GSO frame without a segment size")]
    Size,
    /// A segment is longer than the scratch buffer.
    #[error("segment of {needed} bytes does not fit the buffer of {room}")]
    Room {
        /// Bytes of the segment.
        needed: usize,
        /// Bytes there are.
        room: usize,
    },
}

/// Where the headers of a super-frame end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    l3: usize,
    l4: usize,
    payload: usize,
    end: usize,
    v6: bool,
    tcp: bool,
}

fn cut(b: &[u8], gso: Gso) -> Option<Cut> {
    let p = parse(b)?;
    // Segmentation looks through one more tag than switching does.
    let (l3, ethertype) = if p.ethertype.is_tag() {
        let inner = b.get(p.l3_offset..p.l3_offset + 4)?;
        (
            p.l3_offset + 4,
            u16::from_be_bytes([*inner.get(2)?, *inner.get(3)?]),
        )
    } else {
        (p.l3_offset, p.ethertype.0)
    };
    let view = crate::Parsed {
        l3_offset: l3,
        ethertype: crate::EtherType(ethertype),
        ..p
    };
    let (v6, l4, end, proto, fragment) = match view.l3(b) {
        L3::Ip4(ip) => (
            false,
            l3 + usize::from(ip.header_len),
            l3 + usize::from(ip.total_len),
            ip.l4.protocol,
            ip.fragment,
        ),
        L3::Ip6(ip) => {
            let end = l3 + 40 + usize::from(ip.payload_len);
            // Extension headers in front of a segmented transport are not produced by anybody.
            let direct = b.get(l3 + 6).copied() == Some(ip.l4.protocol);
            (true, l3 + 40, end, ip.l4.protocol, !direct)
        }
        _ => return None,
    };
    let tcp = proto == protocol::TCP;
    let fits = match gso {
        Gso::Tcp4 => tcp && !v6,
        Gso::Tcp6 => tcp && v6,
        Gso::UdpL4 => proto == protocol::UDP,
    };
    if !fits || fragment {
        return None;
    }
    let l4_len = if tcp {
        usize::from(b.get(l4 + 12)? >> 4) * 4
    } else {
        8
    };
    let payload = l4 + l4_len;
    (l4_len >= if tcp { 20 } else { 8 } && payload <= end && end <= b.len()).then_some(Cut {
        l3,
        l4,
        payload,
        end,
        v6,
        tcp,
    })
}

/// What a frame is on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wire {
    /// Frames.
    pub packets: u64,
    /// Bytes of all of them, without FCS.
    pub bytes: u64,
    /// Bytes of the longest one.
    pub longest: usize,
}

/// What a frame becomes on the wire: itself, or the segments of a super-frame. A super-frame that can't be cut counts
/// as it is.
#[inline]
pub fn wire(b: &[u8], offload: &Offload) -> Wire {
    match offload.gso {
        None => Wire {
            packets: 1,
            bytes: b.len() as u64,
            longest: b.len(),
        },
        Some(gso) => {
            let (packets, bytes) = wire_gso(b, gso, offload.gso_size);
            Wire {
                packets: packets >> 32,
                bytes,
                longest: (packets & 0xffff_ffff) as usize,
            }
        }
    }
}

/// Packets (upper half) and bytes of the longest one; bytes of all. Two words come back in registers: a [`Wire`] would
/// come through memory, for ordinary frames too, and be copied from there before its words have arrived.
#[cold]
#[inline(never)]
fn wire_gso(b: &[u8], gso: Gso, size: u16) -> (u64, u64) {
    let pack = |n: usize, longest: usize| (n as u64) << 32 | longest as u64 & 0xffff_ffff;
    let (Some(c), true) = (cut(b, gso), size > 0) else {
        return (pack(1, b.len()), b.len() as u64);
    };
    let payload = c.end - c.payload;
    let size = usize::from(size);
    let n = payload.div_ceil(size).max(1);
    let longest = c.payload + payload.min(size);
    (pack(n, longest), (payload + n * c.payload) as u64)
}

/// Cuts a super-frame and hands each complete, checksummed segment to `emit`; returns how many there were. `scratch`
/// holds one segment at a time. A frame without GSO is passed on once, its partial checksum completed.
pub fn segment(
    b: &[u8],
    offload: &Offload,
    scratch: &mut Buffer,
    mut emit: impl FnMut(&[u8]),
) -> Result<usize, SegmentError> {
    let room = scratch.capacity();
    let out = scratch.room();
    let Some(gso) = offload.gso else {
        let seg = out.get_mut(..b.len()).ok_or(SegmentError::Room {
            needed: b.len(),
            room,
        })?;
        seg.copy_from_slice(b);
        if let Some(c) = offload.csum {
            let _ = checksum::complete_at(seg, c);
        }
        emit(seg);
        return Ok(1);
    };
    let size = usize::from(offload.gso_size);
    if size == 0 {
        return Err(SegmentError::Size);
    }
    let c = cut(b, gso).ok_or(SegmentError::Headers(gso))?;
    let headers = b.get(..c.payload).unwrap_or_default();
    let payload = b.get(c.payload..c.end).unwrap_or_default();
    let needed = headers.len() + payload.len().min(size);
    if needed > out.len() {
        return Err(SegmentError::Room { needed, room });
    }
    // A UDP sender may have asked for no checksum at all (IPv4 only).
    let no_sum =
        !c.tcp && !c.v6 && offload.csum.is_none() && b.get(c.l4 + 6..c.l4 + 8) == Some(&[0, 0]);
    let count = payload.len().div_ceil(size).max(1);
    for i in 0..count {
        let from = i * size;
        let part = payload
            .get(from..(from + size).min(payload.len()))
            .unwrap_or_default();
        let len = headers.len() + part.len();
        let Some(seg) = out.get_mut(..len) else {
            break;
        };
        let (h, p) = seg.split_at_mut(headers.len());
        h.copy_from_slice(headers);
        p.copy_from_slice(part);
        finish(seg, c, i, from, count, no_sum);
        emit(seg);
    }
    Ok(count)
}

/// Makes the headers of segment `i` right: lengths, id, sequence, flags, checksums.
fn finish(seg: &mut [u8], c: Cut, i: usize, from: usize, count: usize, no_sum: bool) {
    let len = seg.len();
    let l4_len = len - c.l4;
    if c.v6 {
        put16(seg, c.l3 + 4, (len - c.l3 - 40) as u16);
    } else {
        put16(seg, c.l3 + 2, (len - c.l3) as u16);
        let id = seg
            .get(c.l3 + 4..c.l3 + 6)
            .and_then(|b| b.first_chunk::<2>())
            .map_or(0, |b| u16::from_be_bytes(*b));
        put16(seg, c.l3 + 4, id.wrapping_add(i as u16));
        if let Some(h) = seg.get_mut(c.l3..c.l4) {
            checksum::ip4_set(h);
        }
    }
    if c.tcp {
        if let Some(field) = seg.get_mut(c.l4 + 4..c.l4 + 8)
            && let Some(seq) = field.first_chunk::<4>()
        {
            let seq = u32::from_be_bytes(*seq).wrapping_add(from as u32);
            field.copy_from_slice(&seq.to_be_bytes());
        }
        if let Some(flags) = seg.get_mut(c.l4 + 13) {
            if i + 1 != count {
                *flags &= !(FIN | PSH);
            }
            if i != 0 {
                *flags &= !CWR;
            }
        }
    } else {
        put16(seg, c.l4 + 4, l4_len as u16);
    }
    let (at, proto) = if c.tcp {
        (c.l4 + 16, protocol::TCP)
    } else {
        (c.l4 + 6, protocol::UDP)
    };
    put16(seg, at, 0);
    if no_sum {
        return;
    }
    let (src, dst) = if c.v6 {
        (c.l3 + 8..c.l3 + 24, c.l3 + 24..c.l3 + 40)
    } else {
        (c.l3 + 12..c.l3 + 16, c.l3 + 16..c.l3 + 20)
    };
    let pseudo = checksum::pseudo(
        seg.get(src).unwrap_or_default(),
        seg.get(dst).unwrap_or_default(),
        proto,
        l4_len as u32,
    );
    let total = checksum::add(pseudo, seg.get(c.l4..).unwrap_or_default());
    let check = match !checksum::fold(total) {
        0 if !c.tcp => 0xffff,
        check => check,
    };
    put16(seg, at, check);
}

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Cuts a frame of the pipeline; see [`segment`].
pub fn segment_frame(
    frame: &Frame<'_>,
    scratch: &mut Buffer,
    emit: impl FnMut(&[u8]),
) -> Result<usize, SegmentError> {
    segment(frame.bytes(), &frame.offload, scratch, emit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PartialChecksum;
    use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
    use proptest::prelude::*;

    fn super_frame(v6: bool, tcp: bool, tags: usize, payload: &[u8]) -> (Vec<u8>, Offload) {
        let b = PacketBuilder::ethernet2([2; 6], [4; 6]);
        let b = if v6 {
            b.ipv6([1; 16], [2; 16], 9)
        } else {
            b.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9)
        };
        let mut f = Vec::new();
        if tcp {
            let mut h = etherparse::TcpHeader::new(1, 2, 0xffff_ff00, 4096);
            h.psh = true;
            h.fin = true;
            h.cwr = true;
            h.ack = true;
            h.set_options_raw(&[1, 1, 1, 1, 1, 1, 1, 0]).unwrap();
            b.tcp_header(h).write(&mut f, payload).unwrap();
        } else {
            b.udp(1, 2).write(&mut f, payload).unwrap();
        }
        for _ in 0..tags {
            f.splice(12..12, [0x81, 0, 0, 9]);
        }
        let start = (if v6 { 54 } else { 34 }) + 4 * tags as u16;
        let off = Offload {
            csum: Some(PartialChecksum {
                start,
                offset: if tcp { 16 } else { 6 },
            }),
            gso: Some(match (v6, tcp) {
                (false, true) => Gso::Tcp4,
                (true, true) => Gso::Tcp6,
                _ => Gso::UdpL4,
            }),
            gso_size: 100,
            hdr_len: start + 20,
            ecn: true,
            data_valid: false,
        };
        (f, off)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

        /// Every segment is what etherparse would have built, payloads join to the original.
        #[test]
        fn segments_are_right(v6: bool, tcp: bool, tags in 0usize..3, size in 1u16..300, payload in proptest::collection::vec(any::<u8>(), 1..900)) {
            let (f, mut off) = super_frame(v6, tcp, tags, &payload);
            off.gso_size = size;
            let mut scratch = Buffer::with_capacity(2000);
            let mut segs: Vec<Vec<u8>> = Vec::new();
            let n = segment(&f, &off, &mut scratch, |s| segs.push(s.to_vec())).unwrap();
            prop_assert_eq!(n, payload.len().div_ceil(usize::from(size)));
            let w = wire(&f, &off);
            prop_assert_eq!(w.packets, n as u64);
            prop_assert_eq!(w.bytes, segs.iter().map(|s| s.len() as u64).sum::<u64>());
            prop_assert_eq!(w.longest, segs[0].len());
            let mut joined = Vec::new();
            for (i, s) in segs.iter().enumerate() {
                let sliced = SlicedPacket::from_ethernet(s).unwrap();
                match sliced.net.unwrap() {
                    NetSlice::Ipv4(ip) => {
                        let h = ip.header().to_header();
                        prop_assert_eq!(h.header_checksum, h.calc_header_checksum());
                        prop_assert_eq!(h.identification, i as u16);
                        prop_assert_eq!(usize::from(h.total_len) + 14 + 4 * tags, s.len());
                        match sliced.transport.unwrap() {
                            TransportSlice::Tcp(t) => {
                                let th = t.to_header();
                                prop_assert_eq!(th.checksum, th.calc_checksum_ipv4(&h, t.payload()).unwrap());
                                prop_assert_eq!(th.sequence_number, 0xffff_ff00u32.wrapping_add((i * usize::from(size)) as u32));
                                prop_assert_eq!((th.fin, th.psh), (i + 1 == n, i + 1 == n));
                                prop_assert_eq!((th.cwr, th.ack), (i == 0, true));
                                joined.extend_from_slice(t.payload());
                            }
                            TransportSlice::Udp(u) => {
                                let uh = u.to_header();
                                prop_assert_eq!(uh.checksum, uh.calc_checksum_ipv4(&h, u.payload()).unwrap());
                                prop_assert_eq!(usize::from(uh.length), u.payload().len() + 8);
                                joined.extend_from_slice(u.payload());
                            }
                            _ => prop_assert!(false),
                        }
                    }
                    NetSlice::Ipv6(ip) => {
                        let h = ip.header().to_header();
                        prop_assert_eq!(usize::from(h.payload_length) + 54 + 4 * tags, s.len());
                        match sliced.transport.unwrap() {
                            TransportSlice::Tcp(t) => {
                                let th = t.to_header();
                                prop_assert_eq!(th.checksum, th.calc_checksum_ipv6(&h, t.payload()).unwrap());
                                joined.extend_from_slice(t.payload());
                            }
                            TransportSlice::Udp(u) => {
                                let uh = u.to_header();
                                prop_assert_eq!(uh.checksum, uh.calc_checksum_ipv6(&h, u.payload()).unwrap());
                                joined.extend_from_slice(u.payload());
                            }
                            _ => prop_assert!(false),
                        }
                    }
                    _ => prop_assert!(false),
                }
            }
            prop_assert_eq!(joined, payload);
        }

        /// Arbitrary bytes under any offload never panic, and a cut never grows.
        #[test]
        fn nonsense_is_refused(mut f in proptest::collection::vec(any::<u8>(), 0..200), h: [u8; 10], ip: bool) {
            if ip && f.len() > 40 { f[12] = 8; f[13] = 0; f[14] = 0x45; f[23] = 6; checksum::ip4_set(&mut f[14..34]); }
            if let Some(off) = Offload::from_virtio(&h) {
                let mut scratch = Buffer::with_capacity(128);
                let _ = wire(&f, &off);
                let _ = segment(&f, &off, &mut scratch, |s| assert!(s.len() <= 128));
            }
        }
    }

    #[test]
    fn kinds_must_match() {
        let (f, mut off) = super_frame(false, true, 0, &[0; 500]);
        off.gso = Some(Gso::Tcp6);
        let mut scratch = Buffer::new();
        assert_eq!(
            segment(&f, &off, &mut scratch, |_| ()),
            Err(SegmentError::Headers(Gso::Tcp6))
        );
        assert_eq!(wire(&f, &off).packets, 1);
        let mut small = Buffer::with_capacity(60);
        off.gso = Some(Gso::Tcp4);
        assert!(matches!(
            segment(&f, &off, &mut small, |_| ()),
            Err(SegmentError::Room { .. })
        ));
    }
}
