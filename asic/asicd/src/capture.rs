//! Captures of a port, both directions, as a pcap stream to a client of the management API.
//!
//! Each capture has a bounded queue to its client; what doesn't fit is dropped and counted, and
//! forwarding never waits for it.

use std::net::IpAddr;
use std::str::FromStr;

use tandem_packet::{Buffer, EtherType, Frame, L3, parse, segment};
use tandem_ports::pcap;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

/// Pieces of the stream that wait for the client.
pub const DEPTH: usize = 1024;
/// Captures at the same time.
pub const CAPTURES: usize = 8;
/// Terms of a filter.
const TERMS: usize = 8;
/// The CPU port's number: what goes to the driver and comes from it.
pub const CPU_PORT: u16 = 0;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    Arp,
    Ip4,
    Ip6,
    Icmp,
    Icmp6,
    Tcp,
    Udp,
    Host(IpAddr),
    Port(u16),
}

/// Terms that must all hold. Empty: every frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(Vec<Term>);

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let mut terms = Vec::new();
        while let Some(word) = words.next() {
            let mut argument = |what: &str| {
                words
                    .next()
                    .ok_or_else(|| format!("filter: '{word}' needs {what}"))
            };
            terms.push(match word {
                "and" if !terms.is_empty() => continue,
                "arp" => Term::Arp,
                "ip" => Term::Ip4,
                "ip6" => Term::Ip6,
                "icmp" => Term::Icmp,
                "icmp6" => Term::Icmp6,
                "tcp" => Term::Tcp,
                "udp" => Term::Udp,
                "host" => {
                    let a = argument("an address")?;
                    Term::Host(
                        a.parse()
                            .map_err(|_| format!("filter: '{a}' is no IP address"))?,
                    )
                }
                "port" => {
                    let p = argument("a port number")?;
                    Term::Port(
                        p.parse()
                            .map_err(|_| format!("filter: '{p}' is no port number"))?,
                    )
                }
                other => {
                    return Err(format!(
                        "filter: '{other}' is not known (arp, ip, ip6, icmp, icmp6, tcp, udp, host ADDRESS, port N, and)"
                    ));
                }
            });
            if terms.len() > TERMS {
                return Err(format!("filter: more than {TERMS} terms"));
            }
        }
        Ok(Filter(terms))
    }
}

impl Filter {
    /// Do all terms hold for the frame?
    pub fn matches(&self, frame: &[u8]) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let Some(parsed) = parse(frame) else {
            return false;
        };
        let l3 = parsed.l3(frame);
        self.0
            .iter()
            .all(|t| t.holds(parsed.ethertype, &l3, frame.get(parsed.l3_offset..)))
    }
}

impl Term {
    fn holds(&self, ethertype: EtherType, l3: &L3, rest: Option<&[u8]>) -> bool {
        let l4 = match l3 {
            L3::Ip4(h) => Some(&h.l4),
            L3::Ip6(h) => Some(&h.l4),
            _ => None,
        };
        let protocol = |p: u8| l4.is_some_and(|l| l.protocol == p);
        match self {
            Term::Arp => ethertype == EtherType::ARP,
            Term::Ip4 => ethertype == EtherType::IPV4,
            Term::Ip6 => ethertype == EtherType::IPV6,
            Term::Icmp => protocol(1),
            Term::Icmp6 => protocol(58),
            Term::Tcp => protocol(6),
            Term::Udp => protocol(17),
            Term::Port(n) => l4.is_some_and(|l| {
                matches!(l.protocol, 6 | 17) && (l.src_port == *n || l.dst_port == *n)
            }),
            Term::Host(IpAddr::V4(a)) => {
                let a = a.octets();
                match l3 {
                    L3::Ip4(h) => h.src == a || h.dst == a,
                    // Sender and target address of ARP (RFC 826)
                    _ if ethertype == EtherType::ARP => {
                        rest.is_some_and(|r| r.get(14..18) == Some(&a) || r.get(24..28) == Some(&a))
                    }
                    _ => false,
                }
            }
            Term::Host(IpAddr::V6(a)) => {
                matches!(l3, L3::Ip6(h) if h.src == a.octets() || h.dst == a.octets())
            }
        }
    }
}

/// One running capture.
pub struct Capture {
    port: u16,
    filter: Filter,
    left: u64,
    to: Sender<Vec<u8>>,
    dropped: u64,
}

impl Capture {
    /// Starts one: the pcap file header goes out at once. `count` frames at most, 0 = no limit.
    pub fn start(port: u16, filter: Filter, count: u64, to: Sender<Vec<u8>>) -> Self {
        let _ = to.try_send(pcap::file_header().to_vec());
        Capture {
            port,
            filter,
            left: if count == 0 { u64::MAX } else { count },
            to,
            dropped: 0,
        }
    }
}

/// All running captures.
pub struct Captures {
    list: Vec<Capture>,
    epoch_ns: u64,
    scratch: Buffer,
    dropped: u64,
}

impl Captures {
    /// None yet. `epoch_ns` is the time since 1970 at time 0 of the daemon's clock.
    pub fn new(epoch_ns: u64) -> Self {
        Captures {
            list: Vec::new(),
            epoch_ns,
            scratch: Buffer::new(),
            dropped: 0,
        }
    }

    /// Adds one; one line when there are too many.
    pub fn add(&mut self, capture: Capture) -> Result<(), String> {
        self.list.retain(|c| !c.to.is_closed());
        if self.list.len() >= CAPTURES {
            return Err(format!("{CAPTURES} captures run already: end one"));
        }
        self.list.push(capture);
        Ok(())
    }

    /// Is there nothing to do for frames?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Frames that a client was too slow for.
    pub fn dropped(&self) -> u64 {
        self.dropped + self.list.iter().map(|c| c.dropped).sum::<u64>()
    }

    /// Shows a frame that passed `port` to its captures, as it is on the wire.
    #[cold]
    pub fn frame(&mut self, port: u16, frame: &Frame<'_>, now_ns: u64) {
        let time = self.epoch_ns.saturating_add(now_ns);
        let mut ended = false;
        for c in self.list.iter_mut().filter(|c| c.port == port) {
            if !c.filter.matches(frame.bytes()) {
                continue;
            }
            let _ = segment::segment_frame(frame, &mut self.scratch, |bytes| {
                if c.left == 0 {
                    return;
                }
                let mut piece = Vec::with_capacity(16 + bytes.len());
                piece.extend_from_slice(&pcap::record_header(time, bytes.len()));
                piece.extend_from_slice(bytes);
                match c.to.try_send(piece) {
                    Ok(()) => c.left -= 1,
                    Err(TrySendError::Full(_)) => c.dropped += 1,
                    Err(TrySendError::Closed(_)) => c.left = 0,
                }
            });
            ended |= c.left == 0;
        }
        if ended {
            self.sweep();
        }
    }

    /// Forgets captures whose client is gone; now and then, for those that see no frames.
    pub fn sweep(&mut self) {
        let dropped = &mut self.dropped;
        self.list.retain(|c| {
            let stay = c.left > 0 && !c.to.is_closed();
            if !stay {
                *dropped += c.dropped;
            }
            stay
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_packet::Offload;

    fn udp4() -> Vec<u8> {
        let mut f = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        f.extend([
            0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        f.extend([0, 53, 0x13, 0x88, 0, 8, 0, 0]);
        tandem_packet::checksum::ip4_set(&mut f[14..34]);
        f
    }

    #[test]
    fn filters_say_what_they_mean() {
        let udp = udp4();
        for (text, want) in [
            ("", true),
            ("udp", true),
            ("tcp", false),
            ("ip and udp", true),
            ("host 10.0.0.1", true),
            ("host 10.0.0.3", false),
            ("udp and port 53 and host 10.0.0.2", true),
            ("port 5000", true),
            ("port 54", false),
            ("arp", false),
            ("ip6", false),
        ] {
            assert_eq!(
                text.parse::<Filter>().unwrap().matches(&udp),
                want,
                "{text}"
            );
        }
        let mut arp = vec![0xff; 6];
        arp.extend([2, 0, 0, 0, 0, 2, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        arp.extend([2, 0, 0, 0, 0, 2, 10, 0, 0, 9, 0, 0, 0, 0, 0, 0, 10, 0, 0, 8]);
        assert!(
            "arp and host 10.0.0.9"
                .parse::<Filter>()
                .unwrap()
                .matches(&arp)
        );
        assert!("host 10.0.0.8".parse::<Filter>().unwrap().matches(&arp));
        assert!(!"host 10.0.0.7".parse::<Filter>().unwrap().matches(&arp));
        for bad in ["host", "host x", "port y", "foo", "and"] {
            assert!(
                bad.parse::<Filter>().unwrap_err().starts_with("filter"),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_slow_client_loses_frames_not_time() {
        let mut captures = Captures::new(5);
        let (to, mut from) = tokio::sync::mpsc::channel(3);
        captures
            .add(Capture::start(1, "udp".parse().unwrap(), 0, to))
            .unwrap();
        let mut bytes = [vec![0; 64], udp4()].concat();
        let end = bytes.len();
        let frame = Frame::new(&mut bytes, 64, end, Offload::NONE);
        for _ in 0..5 {
            captures.frame(1, &frame, 1);
            captures.frame(2, &frame, 1);
        }
        assert_eq!(captures.dropped(), 3);
        assert_eq!(from.try_recv().unwrap().len(), 24);
        assert_eq!(from.try_recv().unwrap().len(), 16 + udp4().len());
        drop(from);
        captures.sweep();
        assert!(captures.is_empty());
        assert_eq!(captures.dropped(), 3);
    }

    #[test]
    fn a_capture_ends_after_its_count() {
        let mut captures = Captures::new(0);
        let (to, mut from) = tokio::sync::mpsc::channel(10);
        captures
            .add(Capture::start(1, Filter::default(), 2, to))
            .unwrap();
        let mut bytes = [vec![0; 64], udp4()].concat();
        let end = bytes.len();
        let frame = Frame::new(&mut bytes, 64, end, Offload::NONE);
        for _ in 0..5 {
            captures.frame(1, &frame, 1);
        }
        assert!(captures.is_empty());
        let mut pieces = 0;
        while from.try_recv().is_ok() {
            pieces += 1;
        }
        assert_eq!(pieces, 3);
        for _ in 0..CAPTURES {
            let (to, from) = tokio::sync::mpsc::channel(10);
            captures
                .add(Capture::start(1, Filter::default(), 2, to))
                .unwrap();
            std::mem::forget(from);
        }
        let (to, _from) = tokio::sync::mpsc::channel(10);
        assert!(
            captures
                .add(Capture::start(1, Filter::default(), 2, to))
                .is_err()
        );
    }
}
