// SPDX-License-Identifier: Apache-2.0
//! Sockets for `ping` and `traceroute`, opened before the daemon gives the right to them away.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, ipproto, recv, sendto,
    socket_with, sockopt,
};
use tandem_swconfig::probe::{Heard, Prober, Question};

/// Who may ask at once.
const SOCKETS: u16 = 4;
/// The header of IPv4, and that of ICMP.
const HEADERS: usize = 20 + 8;

/// Raw sockets of ICMP that nobody uses just now; each with the number that its questions have.
#[derive(Clone, Default)]
pub struct Probes(Arc<Mutex<Vec<(OwnedFd, u16)>>>);

impl Probes {
    /// As many as may be had: without the right to them there are none.
    #[must_use]
    pub fn open() -> Probes {
        let first = u16::try_from(std::process::id() & 0xfff).unwrap_or_default() << 4;
        let mut all = Vec::new();
        for n in 0..SOCKETS {
            let socket = socket_with(
                AddressFamily::INET,
                SocketType::RAW,
                SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
                Some(ipproto::ICMP),
            );
            match socket {
                Ok(fd) => all.push((fd, first | n)),
                Err(e) => {
                    tracing::warn!("no socket for ping: {e}");
                    break;
                }
            }
        }
        Probes(Arc::new(Mutex::new(all)))
    }

    /// One who asks, from this address if it is said.
    ///
    /// # Errors
    /// All are asking, or that is no address of this switch.
    pub fn prober(&self, source: Option<Ipv4Addr>) -> Result<Box<dyn Prober>, String> {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (fd, id) = free.pop().ok_or("Too many are asking, or none may")?;
        drop(free);
        let prober = Asking {
            to: self.clone(),
            socket: Some(fd),
            id,
            sequence: 0,
        };
        let from = SocketAddrV4::new(source.unwrap_or(Ipv4Addr::UNSPECIFIED), 0);
        if let Some(fd) = &prober.socket {
            bind(fd, &from).map_err(|_| {
                "Invalid source address- IP address not on any of our up interfaces".to_owned()
            })?;
        }
        Ok(Box::new(prober))
    }
}

struct Asking {
    to: Probes,
    /// There until it is given back.
    socket: Option<OwnedFd>,
    id: u16,
    sequence: u16,
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut free = self.to.0.lock().unwrap_or_else(PoisonError::into_inner);
        free.extend(self.socket.take().map(|fd| (fd, self.id)));
    }
}

impl Prober for Asking {
    fn ask(&mut self, question: &Question) -> Result<(), String> {
        let Some(fd) = &self.socket else {
            return Err("it is over".into());
        };
        // what nobody has waited for
        while recv(fd, &mut [0u8; 1][..], RecvFlags::DONTWAIT).is_ok() {}
        self.sequence = self.sequence.wrapping_add(1);
        let words = |e: Errno| e.to_string();
        sockopt::set_ip_ttl(fd, question.ttl.into()).map_err(words)?;
        let packet = request(self.id, self.sequence, question.size.into());
        let to = SocketAddrV4::new(question.to, 0);
        sendto(fd, &packet, SendFlags::empty(), &to).map_err(words)?;
        Ok(())
    }

    fn hear(&mut self, within: Duration) -> Option<Heard> {
        let fd = self.socket.as_ref()?;
        let end = Instant::now() + within;
        let mut packet = vec![0u8; 65_536];
        loop {
            match recv(fd, packet.as_mut_slice(), RecvFlags::DONTWAIT) {
                Ok((length, _)) => {
                    let heard = read(packet.get(..length)?, self.id, self.sequence);
                    if heard.is_some() {
                        return heard;
                    }
                    continue;
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return None,
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let left = Timespec::try_from(left).ok()?;
            let _ = poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&left));
        }
    }
}

/// The Internet's checksum.
fn sum(data: &[u8]) -> u16 {
    let mut sum: u32 = data
        .chunks(2)
        .map(|c| match c {
            [a, b] => u32::from(u16::from_be_bytes([*a, *b])),
            [a] => u32::from(*a) << 8,
            _ => 0,
        })
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or_default()
}

/// An echo request that makes a datagram of so many octets.
fn request(id: u16, sequence: u16, size: usize) -> Vec<u8> {
    let mut packet = vec![8, 0, 0, 0];
    packet.extend(id.to_be_bytes());
    packet.extend(sequence.to_be_bytes());
    let data = [0xab, 0xcd].into_iter().cycle();
    packet.extend(data.take(size.saturating_sub(HEADERS)));
    let [high, low] = sum(&packet).to_be_bytes();
    if let [_, _, a, b, ..] = packet.as_mut_slice() {
        (*a, *b) = (high, low);
    }
    packet
}

/// The message behind an IPv4 header, and whose it is.
fn behind(datagram: &[u8]) -> Option<(Ipv4Addr, &[u8])> {
    let header = usize::from(datagram.first()? & 15) * 4;
    let from: [u8; 4] = datagram.get(12..16)?.try_into().ok()?;
    Some((from.into(), datagram.get(header..)?))
}

/// What a datagram says to a question, if it does.
fn read(datagram: &[u8], id: u16, sequence: u16) -> Option<Heard> {
    let [i, j] = id.to_be_bytes();
    let [s, t] = sequence.to_be_bytes();
    let (from, message) = behind(datagram)?;
    let kind = *message.first()?;
    // the question itself, behind what was wrong with it
    let asked = |message: &[u8]| {
        let (_, inner) = behind(message.get(8..)?)?;
        (inner.first()? == &8 && inner.get(4..8)? == [i, j, s, t]).then_some(())
    };
    match kind {
        0 if message.get(4..8)? == [i, j, s, t] => Some(Heard::Answer(from)),
        3 => asked(message).map(|()| Heard::Unreachable(from)),
        11 => asked(message).map(|()| Heard::Expired(from)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(from: u8, message: &[u8]) -> Vec<u8> {
        let mut all = vec![0; 20];
        (all[0], all[15]) = (0x45, from);
        all.extend(message);
        all
    }

    #[test]
    fn what_says_something_to_the_question() {
        let asked = request(0x1234, 7, 100);
        assert_eq!(asked.len(), 80);
        assert_eq!(sum(&asked), 0, "a sum over all of it is none");
        let mut answer = asked.clone();
        answer[0] = 0;
        let heard = |m: &[u8]| read(&ip(9, m), 0x1234, 7);
        let from = Ipv4Addr::new(0, 0, 0, 9);
        assert_eq!(heard(&answer), Some(Heard::Answer(from)));
        // our own question, which a raw socket hears where it is to ourselves
        assert_eq!(heard(&asked), None);
        assert_eq!(read(&ip(9, &answer), 0x1234, 8), None, "another one's");
        assert_eq!(read(&ip(9, &answer), 0x1235, 7), None, "somebody else's");
        for (kind, wanted) in [(3, Heard::Unreachable(from)), (11, Heard::Expired(from))] {
            let mut message = vec![kind, 0, 0, 0, 0, 0, 0, 0];
            message.extend(ip(1, &asked[..8]));
            assert_eq!(heard(&message), Some(wanted));
            assert_eq!(read(&ip(9, &message), 0x1234, 8), None);
            for cut in 0..message.len() {
                assert_eq!(heard(&message[..cut]), None);
            }
        }
        for cut in 0..20 {
            assert_eq!(read(&ip(9, &answer)[..cut], 0x1234, 7), None);
        }
    }

    #[test]
    fn a_socket_is_given_back() {
        let probes = Probes::open();
        let there = probes.0.lock().unwrap().len();
        if there == 0 {
            assert!(probes.prober(None).is_err());
            return;
        }
        // 192.0.2.1 is nobody's
        assert!(probes.prober(Some(Ipv4Addr::new(192, 0, 2, 1))).is_err());
        let all: Vec<_> = (0..there).map(|_| probes.prober(None).unwrap()).collect();
        assert!(probes.prober(None).is_err());
        drop(all);
        let mut one = probes.prober(Some(Ipv4Addr::LOCALHOST)).unwrap();
        let question = Question {
            to: Ipv4Addr::LOCALHOST,
            size: 100,
            ttl: 1,
        };
        one.ask(&question).unwrap();
        let heard = one.hear(Duration::from_secs(60));
        assert_eq!(heard, Some(Heard::Answer(Ipv4Addr::LOCALHOST)));
        assert_eq!(one.hear(Duration::ZERO), None);
    }
}
