//! A controller as small as may be: the messages of OpenFlow 1.3 that the benchmarks send and read.

use anyhow::{Context, Result, bail};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use tandem_linux::netns;

/// Where the switches wait for controllers.
pub const PORT: u16 = 6654;

const VERSION: u8 = 4;
const HELLO: u8 = 0;
const ERROR: u8 = 1;
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;
const SET_CONFIG: u8 = 9;
const PACKET_IN: u8 = 10;
const PACKET_OUT: u8 = 13;
const FLOW_MOD: u8 = 14;
const MULTIPART_REQUEST: u8 = 18;
const BARRIER_REQUEST: u8 = 20;
const ANY: u32 = u32::MAX;
const ADD: u8 = 0;
const DELETE: u8 = 3;
const DELETE_STRICT: u8 = 4;
/// No buffer, of a message; the whole frame, of an action.
const NO_BUFFER: u32 = u32::MAX;
const WHOLE: u16 = u16::MAX;

/// Fields that a flow may match (7.2.3.7).
pub mod field {
    pub const IN_PORT: u8 = 0;
    pub const ETH_DST: u8 = 3;
    pub const ETH_SRC: u8 = 4;
    pub const ETH_TYPE: u8 = 5;
    pub const IP_PROTO: u8 = 10;
    pub const IPV4_SRC: u8 = 11;
    pub const IPV4_DST: u8 = 12;
    pub const TCP_SRC: u8 = 13;
    pub const TCP_DST: u8 = 14;
}

/// The port that is the controllers.
pub const CONTROLLER: u32 = 0xffff_fffd;
/// Flows that say nothing else have this priority.
pub const PRIORITY: u16 = 0x8000;

/// One field of a match behind the others, with its header.
pub fn put(out: &mut Vec<u8>, field: u8, value: &[u8]) {
    out.extend_from_slice(&[0x80, 0, field << 1, value.len() as u8]);
    out.extend_from_slice(value);
}

/// A message of OpenFlow 1.3.
pub fn message(kind: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let mut out = vec![VERSION, kind];
    out.extend_from_slice(&(body.len() as u16 + 8).to_be_bytes());
    out.extend_from_slice(&xid.to_be_bytes());
    out.extend_from_slice(body);
    out
}

/// Whether all before it is done.
pub fn barrier(xid: u32) -> Vec<u8> {
    message(BARRIER_REQUEST, xid, &[])
}

/// An action that sends to a port.
fn output(port: u32) -> [u8; 16] {
    let mut action = [0; 16];
    action[3] = 16;
    action[4..8].copy_from_slice(&port.to_be_bytes());
    action[8..10].copy_from_slice(&WHOLE.to_be_bytes());
    action
}

fn flow_mod(command: u8, priority: u16, fields: &[u8], port: Option<u32>) -> Vec<u8> {
    let mut body = vec![0; 16];
    body.extend_from_slice(&[if command == DELETE { 255 } else { 0 }, command, 0, 0, 0, 0]);
    body.extend_from_slice(&priority.to_be_bytes());
    for any in [NO_BUFFER, ANY, ANY] {
        body.extend_from_slice(&any.to_be_bytes());
    }
    body.extend_from_slice(&[0; 4]);
    let length = 4 + fields.len();
    body.extend_from_slice(&[0, 1]);
    body.extend_from_slice(&(length as u16).to_be_bytes());
    body.extend_from_slice(fields);
    body.resize(body.len() + length.next_multiple_of(8) - length, 0);
    if let Some(port) = port {
        // apply actions
        body.extend_from_slice(&[0, 4, 0, 24, 0, 0, 0, 0]);
        body.extend_from_slice(&output(port));
    }
    message(FLOW_MOD, 1, &body)
}

/// A flow of table 0 that sends to a port.
pub fn flow(priority: u16, fields: &[u8], port: u32) -> Vec<u8> {
    flow_mod(ADD, priority, fields, Some(port))
}

/// The end of a flow of table 0 with exactly this match.
pub fn no_flow(priority: u16, fields: &[u8]) -> Vec<u8> {
    flow_mod(DELETE_STRICT, priority, fields, None)
}

/// The end of all flows.
fn no_flows() -> Vec<u8> {
    flow_mod(DELETE, 0, &[], None)
}

/// A frame that came in at port 1 leaves by a port.
pub fn packet_out(port: u32, frame: &[u8]) -> Vec<u8> {
    let mut body = NO_BUFFER.to_be_bytes().to_vec();
    body.extend_from_slice(&1_u32.to_be_bytes());
    body.extend_from_slice(&[0, 16, 0, 0, 0, 0, 0, 0]);
    body.extend_from_slice(&output(port));
    body.extend_from_slice(frame);
    message(PACKET_OUT, 5, &body)
}

/// The frame of a packet-in.
fn packet(body: &[u8]) -> Option<&[u8]> {
    let length = u16::from_be_bytes(body.get(18..20)?.try_into().ok()?);
    body.get(16 + usize::from(length).next_multiple_of(8) + 2..)
}

/// Kind, transaction and length of the message that begins with this head.
fn head(bytes: [u8; 8]) -> (u8, u32, usize) {
    let [_, kind, l0, l1, x0, x1, x2, x3] = bytes;
    let length = u16::from_be_bytes([l0, l1]);
    (
        kind,
        u32::from_be_bytes([x0, x1, x2, x3]),
        usize::from(length).max(8),
    )
}

/// One that asks and waits for the answer.
pub struct Client(TcpStream);

impl Client {
    /// Connects within a namespace, and says hello.
    pub fn new(ns: &str) -> Result<Client> {
        let begin = Instant::now();
        let stream = loop {
            match netns::run_in_named(Some(ns), || TcpStream::connect(("127.0.0.1", PORT))) {
                Ok(s) => break s,
                Err(_) if begin.elapsed() < Duration::from_secs(10) => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(e) => return Err(e).context("the switch takes no controller"),
            }
        };
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut client = Client(stream);
        client.send(&message(HELLO, 0, &[]))?;
        client.send(&barrier(0))?;
        client.answer(0)?;
        Ok(client)
    }

    /// Sends messages.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.0.write_all(bytes)?)
    }

    /// Reads until a message of this transaction comes; its body.
    pub fn answer(&mut self, xid: u32) -> Result<Vec<u8>> {
        loop {
            let mut bytes = [0; 8];
            self.0.read_exact(&mut bytes)?;
            let (kind, theirs, length) = head(bytes);
            let mut body = vec![0; length - 8];
            self.0.read_exact(&mut body)?;
            match kind {
                ERROR => bail!("the switch answered an error: {:?}", body.get(..4)),
                ECHO_REQUEST => self.send(&message(ECHO_REPLY, theirs, &body))?,
                HELLO | PACKET_IN => {}
                _ if theirs == xid => return Ok(body),
                _ => {}
            }
        }
    }

    /// Sends messages, and waits until they are done.
    pub fn done(&mut self, bytes: &[u8]) -> Result<()> {
        self.send(bytes)?;
        self.send(&barrier(2))?;
        self.answer(2).map(|_| ())
    }

    /// Takes all flows away.
    pub fn clear(&mut self) -> Result<()> {
        self.done(&no_flows())
    }

    /// What is done with fragments: dropped, or what the flows say. Sets the most that is told of a packet, too.
    pub fn fragments(&mut self, drop: bool) -> Result<()> {
        let body = [&[0, u8::from(drop)][..], &WHOLE.to_be_bytes()].concat();
        self.done(&message(SET_CONFIG, 6, &body))
    }

    /// How many flows there are, by an aggregate.
    pub fn count(&mut self) -> Result<u32> {
        let mut body = vec![0, 2, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0];
        body.extend_from_slice(&[255; 8]);
        body.extend_from_slice(&[0; 20]);
        body.extend_from_slice(&[0, 1, 0, 4, 0, 0, 0, 0]);
        self.send(&message(MULTIPART_REQUEST, 3, &body))?;
        let got = self.answer(3)?;
        let at = got.get(24..28).context("no aggregate in the answer")?;
        Ok(u32::from_be_bytes(at.try_into()?))
    }
}

/// One that is asked: it never waits, and answers packet-ins.
pub struct Answering {
    stream: TcpStream,
    read: Vec<u8>,
    written: Vec<u8>,
}

impl Answering {
    /// From now on it answers.
    pub fn new(mut client: Client) -> Result<Answering> {
        // Open vSwitch tells nothing to a controller that came to it and has not said how much it wants of a packet
        client.fragments(false)?;
        client.0.set_nonblocking(true)?;
        Ok(Answering {
            stream: client.0,
            read: Vec::new(),
            written: Vec::new(),
        })
    }

    /// Reads what is there; `answer` gets the frame of each packet-in, and what answers it.
    pub fn turn(&mut self, mut answer: impl FnMut(&[u8], &mut Vec<u8>)) -> Result<()> {
        let mut buffer = [0; 65536];
        match self.stream.read(&mut buffer) {
            Ok(0) => bail!("the switch hung up"),
            Ok(n) => self
                .read
                .extend_from_slice(buffer.get(..n).unwrap_or_default()),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => return Err(e.into()),
        }
        let mut rest = &self.read[..];
        while let Some(bytes) = rest.first_chunk::<8>() {
            let (kind, xid, length) = head(*bytes);
            let Some((one, others)) = rest.split_at_checked(length) else {
                break;
            };
            let body = one.get(8..).unwrap_or_default();
            match kind {
                ERROR => bail!("the switch answered an error: {:?}", body.get(..4)),
                ECHO_REQUEST => {
                    self.written
                        .extend_from_slice(&message(ECHO_REPLY, xid, body));
                }
                PACKET_IN => answer(
                    packet(body).context("a packet-in without a frame")?,
                    &mut self.written,
                ),
                _ => {}
            }
            rest = others;
        }
        let used = self.read.len() - rest.len();
        self.read.drain(..used);
        if !self.written.is_empty() {
            match self.stream.write(&self.written) {
                Ok(n) => drop(self.written.drain(..n)),
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }
}

impl AsFd for Answering {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_mod_has_its_length_and_is_padded() {
        for (fields, length) in [(10, 88), (14, 96), (42, 120)] {
            let m = flow(PRIORITY, &vec![0; fields], 1);
            assert_eq!(m.len(), length);
            assert_eq!(m.get(2..4), Some(&(length as u16).to_be_bytes()[..]));
        }
    }

    #[test]
    fn the_frame_of_a_packet_in_is_behind_its_match() {
        // buffer, length, reason, table, cookie, a match of 12 bytes in 16, two bytes more
        let mut body = vec![0; 16];
        body.extend_from_slice(&[0, 1, 0, 12]);
        body.extend_from_slice(&[0; 12]);
        body.extend_from_slice(&[0, 0, 7, 8, 9]);
        assert_eq!(packet(&body), Some(&[7, 8, 9][..]));
        assert_eq!(packet(&body[..17]), None);
    }
}
