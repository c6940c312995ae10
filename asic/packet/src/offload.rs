//! What the producer of a frame left undone, in the meaning of virtio's `virtio_net_hdr` (linux/virtio_net.h).

/// Bytes of `struct virtio_net_hdr` as AF_PACKET and TAP carry it (no `num_buffers`).
pub const VIRTIO_NET_HDR_LEN: usize = 10;

const F_NEEDS_CSUM: u8 = 1;
const F_DATA_VALID: u8 = 2;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// The transport checksum covers only the pseudo header so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialChecksum {
    /// Where summing starts, bytes from the start of the frame.
    pub start: u16,
    /// Where the result goes, bytes from `start`.
    pub offset: u16,
}

/// How a super-frame is to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gso {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP over either, one datagram per segment.
    UdpL4,
}

/// The work left on a frame. `Offload::NONE` is an ordinary frame, complete as on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offload {
    /// A transport checksum to be completed.
    pub csum: Option<PartialChecksum>,
    /// Kind of segmentation, if any.
    pub gso: Option<Gso>,
    /// Payload bytes per segment; not zero with `gso`.
    pub gso_size: u16,
    /// Headers in front of the payload in bytes; a hint only, the segmenter parses for itself.
    pub hdr_len: u16,
    /// TCP with ECN: CWR goes into the first segment only.
    pub ecn: bool,
    /// The producer says the transport checksum was verified or need not be.
    pub data_valid: bool,
}

impl Default for Offload {
    fn default() -> Self {
        Self::NONE
    }
}

impl Offload {
    /// Nothing left to do.
    pub const NONE: Offload = Offload {
        csum: None,
        gso: None,
        gso_size: 0,
        hdr_len: 0,
        ecn: false,
        data_valid: false,
    };

    /// Reads a little-endian `virtio_net_hdr`. None: unknown GSO kind, or a GSO frame without size.
    pub fn from_virtio(h: &[u8; VIRTIO_NET_HDR_LEN]) -> Option<Offload> {
        let [flags, kind, l0, l1, g0, g1, s0, s1, o0, o1] = *h;
        let gso_size = u16::from_le_bytes([g0, g1]);
        let gso = match kind & !GSO_ECN {
            GSO_NONE => None,
            GSO_TCPV4 => Some(Gso::Tcp4),
            GSO_TCPV6 => Some(Gso::Tcp6),
            GSO_UDP_L4 => Some(Gso::UdpL4),
            _ => return None,
        };
        if gso.is_some() && gso_size == 0 {
            return None;
        }
        Some(Offload {
            csum: (flags & F_NEEDS_CSUM != 0).then(|| PartialChecksum {
                start: u16::from_le_bytes([s0, s1]),
                offset: u16::from_le_bytes([o0, o1]),
            }),
            gso,
            gso_size: if gso.is_some() { gso_size } else { 0 },
            hdr_len: u16::from_le_bytes([l0, l1]),
            ecn: gso.is_some() && kind & GSO_ECN != 0,
            data_valid: flags & F_DATA_VALID != 0,
        })
    }

    /// Writes a little-endian `virtio_net_hdr`.
    pub fn to_virtio(self) -> [u8; VIRTIO_NET_HDR_LEN] {
        let kind = match self.gso {
            None => GSO_NONE,
            Some(Gso::Tcp4) => GSO_TCPV4,
            Some(Gso::Tcp6) => GSO_TCPV6,
            Some(Gso::UdpL4) => GSO_UDP_L4,
        } | if self.ecn { GSO_ECN } else { 0 };
        let (flags, start, offset) = match self.csum {
            Some(c) => (F_NEEDS_CSUM, c.start, c.offset),
            None if self.data_valid => (F_DATA_VALID, 0, 0),
            None => (0, 0, 0),
        };
        let [l0, l1] = self.hdr_len.to_le_bytes();
        let [g0, g1] = self.gso_size.to_le_bytes();
        let [s0, s1] = start.to_le_bytes();
        let [o0, o1] = offset.to_le_bytes();
        [flags, kind, l0, l1, g0, g1, s0, s1, o0, o1]
    }

    /// Is the frame complete as it is?
    pub fn is_none(&self) -> bool {
        self.csum.is_none() && self.gso.is_none()
    }

    /// The frame's start moved by `bytes` (a tag pushed: +4, removed: −4): offsets follow.
    #[inline]
    pub(crate) fn moved(&mut self, bytes: i16) {
        if let Some(c) = &mut self.csum {
            c.start = c.start.saturating_add_signed(bytes);
        }
        if self.gso.is_some() {
            self.hdr_len = self.hdr_len.saturating_add_signed(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtio_header_round_trips() {
        let h = [1, 0x81, 54, 0, 0xa8, 0x05, 34, 0, 16, 0];
        let o = Offload::from_virtio(&h).unwrap();
        assert_eq!(o.gso, Some(Gso::Tcp4));
        assert!(o.ecn);
        assert_eq!(o.gso_size, 1448);
        assert_eq!(
            o.csum,
            Some(PartialChecksum {
                start: 34,
                offset: 16
            })
        );
        assert_eq!(o.to_virtio(), h);
        assert_eq!(Offload::from_virtio(&[0; 10]).unwrap(), Offload::NONE);
        assert_eq!(Offload::NONE.to_virtio(), [0; 10]);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Offload::from_virtio(&[0, 3, 0, 0, 1, 0, 0, 0, 0, 0]).is_none());
        assert!(Offload::from_virtio(&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0]).is_none());
    }
}
