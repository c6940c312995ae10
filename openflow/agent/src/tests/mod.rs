// SPDX-License-Identifier: Apache-2.0
//! The agent by bytes: what a controller sends, and each byte of what it gets.

mod below;
mod connections;
mod errors;
mod kept;
mod packets;
mod stats;
mod takes;

use tandem_ofpipeline::flows::blank;
use tandem_openflow::model::{Asks, FlowMod, Multipart, Request};
use tandem_openflow::{Action, Error, Hello, Instructions, Version, encode_request};
use tandem_packet::{Buffer, Frame, Offload};

use crate::{Agent, ConnId, Settings, Wires};

/// A flow of all packets that does so with them.
pub fn applying(actions: Vec<Action>) -> FlowMod {
    FlowMod {
        instructions: Instructions {
            apply: Some(actions),
            ..Instructions::default()
        },
        ..blank()
    }
}

pub fn asks(asks: Asks<'_>) -> Request<'_> {
    Request::Multipart(Multipart { more: false, asks })
}

/// Frames that left: port and bytes.
#[derive(Default)]
pub struct Out(pub Vec<(u32, Vec<u8>)>);

impl Wires for Out {
    fn send(&mut self, port: u32, _queue: Option<u32>, frame: &Frame<'_>) {
        self.0.push((port, frame.bytes().to_vec()));
    }
}

/// One message that the switch sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub version: u8,
    pub kind: u8,
    pub xid: u32,
    pub body: Vec<u8>,
}

impl Said {
    /// Of an error: type and code as they are on the wire, and the data.
    pub fn error(&self) -> (u16, u16, &[u8]) {
        assert_eq!(self.kind, 1, "{self:?}");
        let n = |at: usize| u16::from_be_bytes([self.body[at], self.body[at + 1]]);
        (n(0), n(2), &self.body[4..])
    }
}

pub const ECHO: u8 = 2;
pub const ECHO_REPLY: u8 = 3;
pub const FEATURES_REPLY: u8 = 6;
pub const PACKET_IN: u8 = 10;
pub const FLOW_REMOVED: u8 = 11;
pub const PORT_STATUS: u8 = 12;
pub const STATS_REPLY10: u8 = 17;
pub const MULTIPART_REPLY: u8 = 19;
pub const BARRIER_REPLY: u8 = 21;
pub const ROLE_REPLY: u8 = 25;

/// A switch with four ports and what has left it.
pub struct Bench {
    pub agent: Agent,
    pub out: Out,
    pub now: u64,
}

pub fn mac(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, n]
}

impl Bench {
    pub fn new(settings: Settings) -> Bench {
        let mut agent = Agent::new(settings, 1);
        for n in 1..=4 {
            agent.add_port(n, &format!("swp{n}"), mac(n as u8), (true, 1_000), 1);
        }
        Bench {
            agent,
            out: Out::default(),
            now: 1,
        }
    }

    /// One second later, so often.
    pub fn seconds(&mut self, n: u64) {
        for _ in 0..n {
            self.now += 1_000_000_000;
            self.agent.tick(self.now);
        }
    }

    /// Bytes of a controller.
    pub fn bytes(&mut self, id: ConnId, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = self.agent.room(id);
            let n = room.len().min(rest.len());
            room[..n].copy_from_slice(&rest[..n]);
            self.agent.filled(id, n, self.now);
            while self.agent.work(id, 100, self.now, &mut self.out) {}
            rest = &rest[n..];
            if n == 0 {
                break;
            }
        }
    }

    /// What waits for a controller.
    pub fn said(&mut self, id: ConnId) -> Vec<Said> {
        let bytes = self.agent.output(id).to_vec();
        self.agent.sent(id, bytes.len(), self.now);
        let mut rest = bytes.as_slice();
        let mut all = Vec::new();
        while rest.len() >= 8 {
            let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
            all.push(Said {
                version: rest[0],
                kind: rest[1],
                xid: u32::from_be_bytes([rest[4], rest[5], rest[6], rest[7]]),
                body: rest[8..length].to_vec(),
            });
            rest = &rest[length..];
        }
        assert!(rest.is_empty());
        all
    }

    pub fn connect(&mut self, version: Version) -> ConnId {
        let id = self.agent.connected("test".into(), self.now).unwrap();
        let mut hello = Vec::new();
        let ours = Request::Hello(Hello::of(&[version]));
        encode_request(version, 1, &ours, &mut hello).unwrap();
        self.bytes(id, &hello);
        assert_eq!(self.agent.conn(id).unwrap().version(), Some(version));
        self.said(id);
        id
    }

    /// Bytes of a message, and what is said to it.
    pub fn raw(&mut self, id: ConnId, message: &[u8]) -> Vec<Said> {
        self.bytes(id, message);
        self.said(id)
    }

    /// A request, and what is said to it.
    pub fn ask(&mut self, id: ConnId, request: &Request<'_>) -> Vec<Said> {
        let version = self.agent.conn(id).unwrap().version().unwrap();
        let mut message = Vec::new();
        encode_request(version, 77, request, &mut message).unwrap();
        self.raw(id, &message)
    }

    /// A request that is refused: type and code of the wire; the request comes back with it.
    pub fn refused(&mut self, id: ConnId, request: &Request<'_>) -> (u16, u16) {
        let version = self.agent.conn(id).unwrap().version().unwrap();
        let mut message = Vec::new();
        encode_request(version, 77, request, &mut message).unwrap();
        let said = self.raw(id, &message);
        assert_eq!(said.len(), 1, "{said:?}");
        assert_eq!(said[0].xid, 77);
        let (kind, code, data) = said[0].error();
        let whole = message.len().min(64);
        assert!(data.len() >= whole && message.starts_with(&data[..whole]));
        (kind, code)
    }

    pub fn fine(&mut self, id: ConnId, request: &Request<'_>) {
        let said = self.ask(id, request);
        assert_eq!(said, []);
    }

    /// A frame that comes in, and what leaves.
    pub fn frame(&mut self, port: u32, bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let mut mem = Buffer::new();
        assert!(mem.set(bytes));
        let mut frame = mem.frame(Offload::NONE);
        self.agent.frame(port, &mut frame, self.now, &mut self.out);
        std::mem::take(&mut self.out.0)
    }
}

/// An Ethernet frame of some experimental type.
pub fn ether(dst: u8, src: u8) -> Vec<u8> {
    let mut f = mac(dst).to_vec();
    f.extend(mac(src));
    f.extend([0x88, 0xb5]);
    f.extend([7; 50]);
    f
}

pub fn code(e: Error) -> (u16, u16) {
    (e.kind, e.code)
}
