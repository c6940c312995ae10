// SPDX-License-Identifier: Apache-2.0
//! What chronyd says to everybody on its machine: version 6 of its protocol of commands, of which nothing that changes
//! anything is asked here.

use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

/// Where it listens.
const AT: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 323);
/// It has so long for an answer.
const WITHIN: Duration = Duration::from_secs(1);
/// What is too short for its answer is not answered; no answer that is asked for here is longer.
const LONG: usize = 128;
/// Where an answer's own words begin.
const HEAD: usize = 28;
/// Servers that are shown.
const MOST: u32 = 64;

const VERSION: u8 = 6;
const REQUEST: u8 = 1;
const REPLY: u8 = 2;

/// A question, and what its answer is called.
#[derive(Clone, Copy)]
enum Ask {
    Count,
    Source(u32),
    Tracking,
}

impl Ask {
    fn codes(self) -> (u16, u16) {
        match self {
            Ask::Count => (14, 2),
            Ask::Source(_) => (15, 3),
            Ask::Tracking => (33, 5),
        }
    }
}

fn question(ask: Ask, number: u32) -> Vec<u8> {
    let mut text = vec![VERSION, REQUEST, 0, 0];
    text.extend(ask.codes().0.to_be_bytes());
    text.extend([0, 0]);
    text.extend(number.to_be_bytes());
    text.extend([0; 8]);
    if let Ask::Source(index) = ask {
        text.extend(index.to_be_bytes());
    }
    text.resize(LONG, 0);
    text
}

/// What it says, if it is the answer to this question; an `Err` inside: that it does not say.
fn answer(ask: Ask, number: u32, text: &[u8]) -> Option<io::Result<Fields<'_>>> {
    let (own, reply) = ask.codes();
    let mut head = Fields(text);
    let is = (head.u8()?, head.u8()?) == (VERSION, REPLY);
    head.skip(2)?;
    let (command, kind, status) = (head.u16()?, head.u16()?, head.u16()?);
    head.skip(6)?;
    if !is || command != own || head.u32()? != number {
        return None;
    }
    if status != 0 || kind != reply {
        let e = io::Error::other(format!("it refuses ({status})"));
        return Some(Err(e));
    }
    text.get(HEAD..).map(|data| Ok(Fields(data)))
}

/// Octets that are read one field after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (now, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*now)
    }

    fn skip(&mut self, octets: usize) -> Option<()> {
        self.0 = self.0.get(octets..)?;
        Some(())
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(|[one]| one)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    /// Seven bits of an exponent, 25 of a coefficient, both signed.
    fn float(&mut self) -> Option<f64> {
        let bits = self.u32()?.cast_signed();
        let (exponent, coefficient) = (bits >> 25, bits << 7 >> 7);
        Some(f64::from(coefficient) * f64::from(exponent - 25).exp2())
    }

    /// An address of IPv4; others have none here.
    fn address(&mut self) -> Option<Option<Ipv4Addr>> {
        let first: [u8; 4] = self.take()?;
        self.skip(12)?;
        let family = self.u16()?;
        self.skip(2)?;
        Some((family == 1).then(|| Ipv4Addr::from(first)))
    }
}

/// A server that is asked.
#[derive(Debug, PartialEq)]
struct Source {
    address: Option<Ipv4Addr>,
    poll: i16,
    stratum: u16,
    state: u16,
    reach: u16,
    since: u32,
    offset: f64,
    error: f64,
}

impl Source {
    fn read(text: &mut Fields<'_>) -> Option<Source> {
        let address = text.address()?;
        let (poll, stratum, state) = (text.u16()?.cast_signed(), text.u16()?, text.u16()?);
        text.skip(4)?;
        let (reach, since) = (text.u16()?, text.u32()?);
        text.skip(4)?;
        Some(Source {
            address,
            poll,
            stratum,
            state,
            reach,
            since,
            offset: text.float()?,
            error: text.float()?,
        })
    }

    /// As IOS shows it.
    fn row(&self) -> String {
        // selected, no use, says what others do not, jumps, may be selected, could be
        let mark = match self.state {
            0 => '*',
            2 => 'x',
            3 => '-',
            4 | 5 => '+',
            _ => ' ',
        };
        let address = self.address.map_or_else(|| "-".into(), |a| a.to_string());
        let when = match self.since {
            u32::MAX => "-".into(),
            seconds => seconds.to_string(),
        };
        let poll = 2f64.powi(self.poll.into());
        format!(
            "{mark}~{address:<15} {:<15} {:>2} {when:>6} {poll:>6} {:>5o}      - {:>7.3} {:>6.3}",
            "-",
            self.stratum,
            self.reach,
            self.offset * 1000.0,
            self.error * 1000.0
        )
    }
}

/// How the clock is.
#[derive(Debug, PartialEq)]
struct Tracking {
    reference: u32,
    address: Option<Ipv4Addr>,
    stratum: u16,
    leap: u16,
    offset: f64,
    /// Parts in a million that it would be too fast.
    fast: f64,
    delay: f64,
    dispersion: f64,
    interval: f64,
}

impl Tracking {
    fn read(text: &mut Fields<'_>) -> Option<Tracking> {
        let (reference, address) = (text.u32()?, text.address()?);
        let (stratum, leap) = (text.u16()?, text.u16()?);
        text.skip(12)?;
        let mut float = || text.float();
        let (offset, _, _) = (float()?, float()?, float()?);
        let (fast, _, _) = (float()?, float()?, float()?);
        Some(Tracking {
            reference,
            address,
            stratum,
            leap,
            offset,
            fast,
            delay: float()?,
            dispersion: float()?,
            interval: float()?,
        })
    }

    /// As IOS says it.
    fn shown(&self) -> String {
        let mut text = String::new();
        // what it is told that it has not is 3, and of nobody it has nothing
        let _ = match self.leap < 3 && self.stratum > 0 {
            true => {
                let reference = match self.address {
                    Some(address) => address.to_string(),
                    None => format!("{:08X}", self.reference),
                };
                let stratum = self.stratum;
                writeln!(
                    text,
                    "Clock is synchronized, stratum {stratum}, reference is {reference}"
                )
            }
            false => writeln!(
                text,
                "Clock is unsynchronized, stratum 16, no reference clock"
            ),
        };
        let actual = 250.0 * (1.0 - self.fast / 1e6);
        let _ = writeln!(
            text,
            "nominal freq is 250.0000 Hz, actual freq is {actual:.4} Hz"
        );
        let ms = |seconds: f64| format!("{:.4} msec", seconds * 1000.0);
        let _ = writeln!(
            text,
            "clock offset is {}, root delay is {}\nroot dispersion is {}\nsystem poll interval is {:.0}",
            ms(self.offset),
            ms(self.delay),
            ms(self.dispersion),
            self.interval
        );
        text
    }
}

/// Asks, and reads the answer; what is not one is passed over until the time is up.
fn ask<T>(
    socket: &UdpSocket,
    ask: Ask,
    read: impl Fn(&mut Fields<'_>) -> Option<T>,
) -> io::Result<T> {
    // whose answer it is: one that comes too late is not the next one's
    let number = match ask {
        Ask::Count => 1,
        Ask::Tracking => 2,
        Ask::Source(index) => index.wrapping_add(3),
    };
    socket.send(&question(ask, number))?;
    let mut text = [0; 512];
    for _ in 0..8 {
        let length = socket.recv(&mut text)?;
        let found = text.get(..length).and_then(|t| answer(ask, number, t));
        if let Some(found) = found {
            let odd = || io::Error::other("its answer is too short");
            return read(&mut found?).ok_or_else(odd);
        }
    }
    Err(io::Error::other("what came was no answer"))
}

fn connect() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_read_timeout(Some(WITHIN))?;
    socket.connect(AT)?;
    Ok(socket)
}

/// `show ntp status`
pub(super) fn status() -> io::Result<String> {
    let tracking = ask(&connect()?, Ask::Tracking, Tracking::read)?;
    Ok(tracking.shown())
}

/// `show ntp associations`
pub(super) fn associations() -> io::Result<String> {
    let socket = connect()?;
    let count = ask(&socket, Ask::Count, |text| text.u32())?;
    let mut text = String::from(
        "  address         ref clock       st   when   poll reach  delay  offset   disp\n",
    );
    for index in 0..count.min(MOST) {
        let source = ask(&socket, Ask::Source(index), Source::read)?;
        let _ = writeln!(text, "{}", source.row());
    }
    text.push_str(" * sys.peer, # selected, + candidate, - outlyer, x falseticker, ~ configured\n");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer, as chronyd makes it.
    fn said(command: u16, kind: u16, status: u16, number: u32, data: &[u8]) -> Vec<u8> {
        let mut text = vec![6, 2, 0, 0];
        for word in [command, kind, status, 0, 0, 0] {
            text.extend(word.to_be_bytes());
        }
        text.extend(number.to_be_bytes());
        text.extend([0; 8]);
        text.extend(data);
        text
    }

    fn four(address: [u8; 4]) -> Vec<u8> {
        let mut text = address.to_vec();
        text.extend([0; 12]);
        text.extend([0, 1, 0, 0]);
        text
    }

    #[test]
    fn a_question_is_as_long_as_its_answer() {
        let text = question(Ask::Source(5), 7);
        assert_eq!(text.len(), LONG);
        assert_eq!(text[..12], [6, 1, 0, 0, 0, 15, 0, 0, 0, 0, 0, 7]);
        assert_eq!(text[20..24], [0, 0, 0, 5]);
    }

    #[test]
    fn floats() {
        let float = |bits: u32| Fields(&bits.to_be_bytes()).float().unwrap();
        assert!((float(2 << 25 | 1 << 23) - 1.0).abs() < 1e-9);
        assert!(
            (float(0x7f << 25 | 1 << 23) - 0.125).abs() < 1e-9,
            "a negative exponent"
        );
        assert!(
            (float(2 << 25 | 0x0180_0000) + 1.0).abs() < 1e-9,
            "a negative coefficient"
        );
        assert!(float(0).abs() < 1e-9);
    }

    #[test]
    fn a_server_as_a_row() {
        let mut data = four([10, 9, 0, 1]);
        for word in [6u16, 2, 0, 0, 0, 0o377] {
            data.extend(word.to_be_bytes());
        }
        data.extend(24u32.to_be_bytes());
        for float in [0u32, 2 << 25 | 1 << 23, 0x7f << 25 | 1 << 23] {
            data.extend(float.to_be_bytes());
        }
        let text = said(15, 3, 0, 9, &data);
        let mut fields = answer(Ask::Source(0), 9, &text).unwrap().unwrap();
        let source = Source::read(&mut fields).unwrap();
        assert_eq!(
            source.row(),
            "*~10.9.0.1        -                2     24     64   377      - 1000.000 125.000"
        );
    }

    #[test]
    fn what_is_no_answer_is_none() {
        let good = said(33, 5, 0, 2, &[0; 76]);
        assert!(answer(Ask::Tracking, 2, &good).unwrap().is_ok());
        assert!(answer(Ask::Tracking, 3, &good).is_none(), "another one's");
        assert!(answer(Ask::Count, 2, &good).is_none());
        let refused = said(33, 1, 2, 2, &[]);
        assert!(answer(Ask::Tracking, 2, &refused).unwrap().is_err());
        for length in 0..good.len() {
            let short = &good[..length];
            let found = answer(Ask::Tracking, 2, short).and_then(|f| Tracking::read(&mut f.ok()?));
            assert_eq!(found, None, "{length}");
        }
        let tracking = Tracking::read(&mut answer(Ask::Tracking, 2, &good).unwrap().unwrap());
        assert!(
            tracking
                .unwrap()
                .shown()
                .starts_with("Clock is unsynchronized")
        );
    }
}
