//! Frames for `tandem trace`: from hexadecimal, from a capture, or built from a few words.

use anyhow::{Context, Result, anyhow, bail};
use etherparse::{
    IpHeaders, Ipv4Extensions, Ipv4Header, Ipv6Extensions, Ipv6Header, PacketBuilder, VlanId,
};
use std::net::{IpAddr, SocketAddr};
use tandem_mgmt::hex;

/// Longest frame that a port takes.
const LONGEST: usize = 10_240;

/// What to build.
pub struct Spec {
    /// Destination MAC
    pub dmac: [u8; 6],
    /// Source MAC
    pub smac: [u8; 6],
    /// VLAN tag
    pub vlan: Option<u16>,
    /// TTL or hop limit
    pub ttl: u8,
    /// Bytes of payload
    pub size: u16,
}

/// The protocols that can be built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Proto {
    /// Echo request
    Icmp,
    /// Datagram
    Udp,
    /// SYN
    Tcp,
}

/// `00:11:…` or `0011…`, blanks ignored.
pub fn from_hex(text: &str) -> Result<Vec<u8>> {
    let bytes = hex::decode(text).map_err(|e| anyhow!("a frame: {e}"))?;
    if bytes.len() > LONGEST {
        bail!("a frame has at most {LONGEST} bytes, got {}", bytes.len());
    }
    Ok(bytes)
}

/// `00:11:22:33:44:55`
pub fn mac(text: &str) -> Result<[u8; 6]> {
    let bytes: Vec<u8> = text
        .split([':', '-'])
        .map(|p| {
            if p.len() == 2 {
                u8::from_str_radix(p, 16).ok()
            } else {
                None
            }
        })
        .collect::<Option<_>>()
        .with_context(|| format!("{text} is no MAC address"))?;
    bytes
        .try_into()
        .map_err(|_| anyhow::anyhow!("{text} is no MAC address"))
}

/// The first frame of a pcap file (either byte order, micro- or nanoseconds).
pub fn from_pcap(data: &[u8]) -> Result<Vec<u8>> {
    let word = |at: usize, swap: bool| -> Result<u32> {
        let b: [u8; 4] = data
            .get(at..at + 4)
            .and_then(|s| s.try_into().ok())
            .context("the capture is cut off")?;
        Ok(if swap {
            u32::from_be_bytes(b)
        } else {
            u32::from_le_bytes(b)
        })
    };
    let swap = match word(0, false)? {
        0xa1b2_c3d4 | 0xa1b2_3c4d => false,
        0xd4c3_b2a1 | 0x4d3c_b2a1 => true,
        _ => bail!("not a pcap file (pcapng is not read: convert it with editcap -F pcap)"),
    };
    if word(20, swap)? & 0xffff != 1 {
        bail!("the capture's link type is not Ethernet");
    }
    let (kept, full) = (word(32, swap)? as usize, word(36, swap)? as usize);
    if kept < full {
        bail!("the first frame was cut to {kept} of {full} bytes when it was captured");
    }
    if kept > LONGEST {
        bail!("a frame has at most {LONGEST} bytes, got {kept}");
    }
    Ok(data
        .get(40..40 + kept)
        .context("the capture is cut off")?
        .to_vec())
}

fn address(text: &str, default_port: u16) -> Result<SocketAddr> {
    if let Ok(s) = text.parse() {
        return Ok(s);
    }
    let ip: IpAddr = text
        .parse()
        .with_context(|| format!("{text} is no IP address"))?;
    Ok(SocketAddr::new(ip, default_port))
}

/// A frame with correct lengths and checksums, padded to 60 bytes.
pub fn build(spec: &Spec, proto: Proto, src: &str, dst: &str) -> Result<Vec<u8>> {
    let (sport, dport) = match proto {
        Proto::Tcp => (40000, 80),
        _ => (40000, 7),
    };
    let (src, dst) = (address(src, sport)?, address(dst, dport)?);
    let ip = match (src.ip(), dst.ip()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => IpHeaders::Ipv4(
            Ipv4Header {
                time_to_live: spec.ttl,
                dont_fragment: true,
                source: src.octets(),
                destination: dst.octets(),
                ..Ipv4Header::default()
            },
            Ipv4Extensions::default(),
        ),
        (IpAddr::V6(src), IpAddr::V6(dst)) => IpHeaders::Ipv6(
            Ipv6Header {
                hop_limit: spec.ttl,
                source: src.octets(),
                destination: dst.octets(),
                ..Ipv6Header::default()
            },
            Ipv6Extensions::default(),
        ),
        (src, dst) => bail!("{src} and {dst} are not of one family"),
    };
    let link = PacketBuilder::ethernet2(spec.smac, spec.dmac);
    let packet = match spec.vlan {
        Some(vid) => link.single_vlan(VlanId::try_new(vid)?).ip(ip),
        None => link.ip(ip),
    };
    let data: Vec<u8> = (0..spec.size).map(|i| i as u8).collect();
    let mut frame = Vec::new();
    match proto {
        Proto::Icmp if src.is_ipv6() => packet.icmpv6_echo_request(1, 1).write(&mut frame, &data),
        Proto::Icmp => packet.icmpv4_echo_request(1, 1).write(&mut frame, &data),
        Proto::Udp => packet.udp(src.port(), dst.port()).write(&mut frame, &data),
        Proto::Tcp => {
            let syn = packet.tcp(src.port(), dst.port(), 1, u16::MAX).syn();
            syn.write(&mut frame, &[])
        }
    }?;
    frame.resize(frame.len().max(60), 0);
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071 over several pieces, each of even length but the last.
    fn checksum(pieces: &[&[u8]]) -> u16 {
        let mut sum = 0u32;
        for piece in pieces {
            for pair in piece.chunks(2) {
                sum += u32::from(u16::from_be_bytes([
                    pair.first().copied().unwrap_or(0),
                    pair.get(1).copied().unwrap_or(0),
                ]));
            }
        }
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    fn spec() -> Spec {
        Spec {
            dmac: [2, 0, 0, 0, 0, 9],
            smac: [2, 0, 0, 0, 0, 1],
            vlan: None,
            ttl: 64,
            size: 10,
        }
    }

    /// The Internet checksum over data that contains its own checksum is zero.
    #[test]
    fn checksums_verify() {
        for (proto, src, dst, number) in [
            (Proto::Icmp, "10.0.0.1", "10.0.0.2", 1),
            (Proto::Udp, "10.0.0.1:5", "10.0.0.2:53", 17),
            (Proto::Tcp, "10.0.0.1", "10.0.0.2", 6),
        ] {
            let f = build(&spec(), proto, src, dst).unwrap();
            assert_eq!(checksum(&[&f[14..34]]), 0);
            let total = u16::from_be_bytes([f[16], f[17]]) as usize;
            let seg = &f[34..14 + total];
            let len = (seg.len() as u32).to_be_bytes();
            if number == 1 {
                assert_eq!(checksum(&[seg]), 0);
            } else {
                assert_eq!(checksum(&[&f[26..34], &len, &[0, number], seg]), 0);
            }
        }
        let f = build(&spec(), Proto::Icmp, "2001:db8::1", "2001:db8::2").unwrap();
        let seg = &f[54..];
        let len = (seg.len() as u32).to_be_bytes();
        assert_eq!(checksum(&[&f[22..54], &len, &[0, 58], seg]), 0);
        assert_eq!((f[20], f[21]), (58, 64));
    }

    #[test]
    fn tags_ports_and_padding() {
        let f = build(
            &Spec {
                vlan: Some(100),
                ..spec()
            },
            Proto::Udp,
            "10.0.0.1",
            "10.0.0.2:9999",
        )
        .unwrap();
        assert_eq!(&f[12..18], &[0x81, 0, 0, 100, 8, 0]);
        assert_eq!(&f[38 + 2..38 + 4], &9999u16.to_be_bytes());
        assert!(f.len() >= 60);
    }

    #[test]
    fn hexadecimal() {
        assert_eq!(from_hex("00:1a ff").unwrap(), vec![0, 0x1a, 0xff]);
        assert!(from_hex("0").is_err());
        assert!(from_hex("zz").is_err());
        assert!(mac("02:00:00:00:00").is_err());
        assert_eq!(mac("02:00:00:00:00:ff").unwrap(), [2, 0, 0, 0, 0, 255]);
    }

    #[test]
    fn mixed_families_and_nonsense_are_refused_in_one_line() {
        for (a, b) in [("10.0.0.1", "::1"), ("ten", "10.0.0.1")] {
            let e = build(&spec(), Proto::Icmp, a, b).unwrap_err().to_string();
            assert!(!e.contains('\n') && !e.is_empty());
        }
    }

    #[test]
    fn first_frame_of_a_capture() {
        let mut f = Vec::new();
        f.extend(0xa1b2_c3d4u32.to_le_bytes());
        f.extend([2, 0, 4, 0]);
        f.extend([0; 8]);
        f.extend(65535u32.to_le_bytes());
        f.extend(1u32.to_le_bytes());
        f.extend([0; 8]);
        f.extend(3u32.to_le_bytes());
        f.extend(3u32.to_le_bytes());
        f.extend([7, 8, 9]);
        assert_eq!(from_pcap(&f).unwrap(), vec![7, 8, 9]);
        f.truncate(42);
        assert!(from_pcap(&f).is_err());
        assert!(from_pcap(b"nope").is_err());
    }
}
