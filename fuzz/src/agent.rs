// SPDX-License-Identifier: Apache-2.0
//! The OpenFlow switch as a whole: bytes of several controllers, frames, links, time, a chip below that answers,
//! refuses, keeps silent and dies as the bytes say, and a file of the tables that outlives the process.

use std::collections::BTreeMap;

use tandem_abi::raw;
use tandem_ofagent::{Agent, ConnId, Settings, Wires};
use tandem_ofchip::{Chip, Limits, Lookup, PortOf, Setup, Slice};
use tandem_ofpipeline::flows::blank;
use tandem_openflow::model::{FlowCommand, FlowMod, Request};
use tandem_openflow::random::Source;
use tandem_openflow::{Action, Field, Header, Instructions, Match, Oxm, Version, encode_request};
use tandem_packet::{Buffer, Frame, Offload};
use tandem_sal::told::{Answer, Told};

use crate::input::Input;
use crate::kept::Kept;

const PORTS: u8 = 4;
const CONTROLLERS: usize = 3;
const SECOND: u64 = 1_000_000_000;

/// What a chip has of everything: little.
const POOLS: [(&str, u32); 7] = [
    ("acl-tcam", 32),
    ("is2-tcam", 96),
    ("is1-tcam", 32),
    ("es0-tcam", 16),
    ("acl-counter", 8),
    ("multicast-group", 8),
    ("vlan", 4),
];

/// The chip's profile, where there is one.
type Below = Option<&'static str>;

/// What leaves by ports that are there.
struct Out;

impl Wires for Out {
    fn send(&mut self, port: u32, _queue: Option<u32>, frame: &Frame<'_>) {
        assert!((1..=u32::from(PORTS)).contains(&port), "port {port}");
        assert!(frame.len() >= 14);
    }
}

/// Times that one chip is silent, at most: each takes many turns.
const PAUSES: usize = 8;

/// What becomes of a command, by a byte: most are done.
fn answer(byte: u8) -> Answer {
    match byte {
        255 => Answer::Dies,
        250.. => Answer::TimedOut,
        240.. => Answer::Status(raw::TND_ST_FAULT),
        230.. => Answer::Status(raw::TND_ST_TABLE_FULL),
        // too short to be noticed, or long enough
        220.. => Answer::Pauses(u64::from(byte - 219) * SECOND / 2),
        _ => Answer::Status(raw::TND_ST_OK),
    }
}

fn mac(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, n]
}

fn hello(version: Version) -> [u8; 8] {
    [version as u8, 0, 0, 8, 0, 0, 0, 1]
}

/// A flow that writes a tag's VLAN id and sends, by two bytes.
fn writes(n: u8, of: u8) -> FlowMod {
    let vid = |v: u8| Oxm::exact(Field::VlanVid, 0x1000 | u128::from(v));
    let port = Oxm::exact(Field::InPort, u128::from(of & 3) + 1);
    let fields = match of & 4 {
        0 => vec![vid(n & 7)],
        _ => vec![port, vid(n & 7)],
    };
    let output = Action::Output {
        port: u32::from(of >> 3 & 3) + 1,
        max_len: 0,
    };
    let set = Action::SetField {
        field: Field::VlanVid,
        value: 0x1000 | u128::from(8 + (of & 15)),
    };
    FlowMod {
        command: match n >> 3 & 7 {
            0 => FlowCommand::DeleteStrict,
            1 => FlowCommand::ModifyStrict,
            _ => FlowCommand::Add,
        },
        priority: u16::from(of >> 5),
        matching: Match {
            fields,
            exact: false,
        },
        instructions: Instructions {
            apply: Some(vec![set, output]),
            ..Instructions::default()
        },
        ..blank()
    }
}

/// A switch without ports.
fn agent_at(now: u64) -> Agent {
    let settings = Settings {
        tables: 4,
        max_flows: 64,
        queues: 2,
        ..Settings::default()
    };
    Agent::new(settings, now)
}

/// Its ports, with links up or down, and the chip that it may have.
fn equip(agent: &mut Agent, chip: Below, links: [bool; PORTS as usize], now: u64) {
    for (n, up) in (1..=PORTS).zip(links) {
        agent.add_port(n.into(), &format!("swp{n}"), mac(n), (up, 1_000), now);
    }
    if let Some(profile) = chip {
        let ports = (1..=PORTS).map(|n| PortOf {
            number: n.into(),
            port: n,
            mac: mac(n),
        });
        let chip = Chip::new(Setup {
            profile: profile.into(),
            lookup: Lookup::Address,
            version: Version::V13,
            ports: ports.collect(),
            local: false,
            chains: Limits {
                forms: true,
                ..Limits::default()
            },
            classes: true,
            slice: Slice::default(),
        });
        agent.set_chip(chip.expect("a known profile"), now);
    }
}

/// The switch, and what its controllers have read and not looked at.
struct World {
    agent: Agent,
    kept: Option<Kept>,
    chip: Below,
    links: [bool; PORTS as usize],
    read: BTreeMap<ConnId, Vec<u8>>,
    now: u64,
}

impl World {
    fn new(how: u8) -> World {
        let (mut agent, now) = (agent_at(1), 1);
        let links = [true; PORTS as usize];
        let chip = match (how & 1 == 0, how & 4 != 0) {
            (true, false) => Some("tiny"),
            // which classifies as well, so that flows may write
            (true, true) => Some("nxp-t1040"),
            _ => None,
        };
        equip(&mut agent, chip, links, now);
        let keeps = how & 2 != 0;
        World {
            kept: keeps.then(|| Kept::new(&mut agent, now)),
            agent,
            chip,
            links,
            read: BTreeMap::new(),
            now,
        }
    }

    /// The process is killed, and there is another one.
    fn kill(&mut self, back: u16) {
        if let Some(kept) = &mut self.kept {
            let (chip, links, now) = (self.chip, self.links, self.now);
            let next = kept.next(back, agent_at(now), now, |a| equip(a, chip, links, now));
            self.agent = next;
            self.read.clear();
        }
    }

    fn connect(&mut self, version: Version) -> Option<ConnId> {
        let id = self.agent.connected("fuzz".into(), self.now)?;
        self.read.insert(id, Vec::new());
        self.feed(id, &hello(version));
        Some(id)
    }

    /// Bytes of a controller, as far as there is room for them.
    fn feed(&mut self, id: ConnId, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.agent.room(id);
            let n = room.len().min(bytes.len());
            if n == 0 {
                return;
            }
            room[..n].copy_from_slice(&bytes[..n]);
            self.agent.filled(id, n, self.now);
            bytes = &bytes[n..];
            self.work();
        }
    }

    /// As the switch's thread does: messages, time, the chip.
    fn work(&mut self) {
        for id in self.read.keys().copied().collect::<Vec<_>>() {
            self.agent.work(id, 16, self.now, &mut Out);
        }
        self.agent.tick(self.now);
        if let Some(chip) = self.agent.chip_mut() {
            chip.turn(self.now);
        }
        if let Some(kept) = &mut self.kept {
            kept.settle(&mut self.agent, self.now);
        }
    }

    /// A controller reads: whole messages, of its version but for hellos and errors about these.
    fn take(&mut self, id: ConnId, most: usize) {
        let n = self.agent.output(id).len().min(most);
        let Some(read) = self.read.get_mut(&id) else {
            return;
        };
        read.extend_from_slice(&self.agent.output(id)[..n]);
        self.agent.sent(id, n, self.now);
        let agreed = self.agent.conn(id).and_then(|c| c.version());
        let mut at = 0;
        while let Some(h) = Header::of(&read[at..]) {
            assert!(h.length >= 8, "a message of {} bytes", h.length);
            let ours = agreed.is_none_or(|v| h.version == v as u8);
            assert!(ours || h.kind < 2, "version {} kind {}", h.version, h.kind);
            if read.len() < at + usize::from(h.length) {
                break;
            }
            at += usize::from(h.length);
        }
        read.drain(..at);
        if self.agent.output(id).is_empty()
            && self.agent.conn(id).is_some_and(|c| c.end().is_some())
        {
            self.agent.disconnected(id, self.now);
            self.read.remove(&id);
        }
    }

    fn attach(&mut self, fates: &[u8]) {
        let now = self.now;
        if let Some(chip) = self.agent.chip_mut()
            && chip.lost().is_some()
        {
            let mut pauses = 0;
            let few = |a: &Answer| {
                pauses += usize::from(matches!(a, Answer::Pauses(_)));
                !matches!(a, Answer::Pauses(_)) || pauses <= PAUSES
            };
            let told = Told::new(&POOLS, fates.iter().map(|b| answer(*b)).filter(few));
            chip.attach(Box::new(told), now).expect("its sizes");
        }
    }

    fn nth(&self, n: u8) -> Option<ConnId> {
        let all: Vec<ConnId> = self.read.keys().copied().collect();
        all.get(usize::from(n) % all.len().max(1)).copied()
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let (kind, n) = (input.u8(), input.u8());
        match kind % 10 {
            0 if self.read.len() < CONTROLLERS => {
                let version = if n & 1 == 0 {
                    Version::V13
                } else {
                    Version::V10
                };
                self.connect(version);
            }
            // anything, or what a controller might say
            1 => {
                if let Some(id) = self.nth(kind >> 4) {
                    self.feed(id, input.take(n.into()));
                }
            }
            // a flow that writes, which nobody draws by chance
            4 if kind >= 200 => {
                if let Some(id) = self.nth(n >> 6) {
                    let version = self.agent.conn(id).and_then(|c| c.version());
                    let version = version.unwrap_or(Version::V13);
                    let mut message = Vec::new();
                    let request = Request::FlowMod(writes(n, input.u8()));
                    if encode_request(version, n.into(), &request, &mut message).is_ok() {
                        self.feed(id, &message);
                    }
                }
            }
            2..=4 => {
                let bytes = input.take(n.into());
                if let Some(id) = self.nth(kind >> 4) {
                    let version = self.agent.conn(id).and_then(|c| c.version());
                    let version = version.unwrap_or(Version::V13);
                    let mut message = Vec::new();
                    let request = Source::new(bytes).request(version);
                    if encode_request(version, n.into(), &request, &mut message).is_ok() {
                        self.feed(id, &message);
                    }
                }
            }
            5 => {
                let mut buffer = Buffer::with_capacity(1024);
                if buffer.set(input.take(n.into())) {
                    let port = u32::from(kind >> 4) % (u32::from(PORTS) + 2);
                    let mut frame = buffer.frame(Offload::NONE);
                    self.agent.frame(port, &mut frame, self.now, &mut Out);
                }
            }
            6 => self.now += u64::from(n) * (SECOND >> (kind >> 4)),
            7 => self.attach(input.take(n.into())),
            8 => {
                if let Some(id) = self.nth(kind >> 4) {
                    self.take(id, usize::from(n) << 6);
                }
            }
            _ => {
                let (port, id) = (1 + n % PORTS, self.nth(kind >> 4));
                match (n >> 4, id) {
                    (0..=5, _) => {
                        let up = n >> 4 & 1 == 0;
                        self.links[usize::from(port) - 1] = up;
                        self.agent.set_link(port.into(), up, 1_000, self.now);
                    }
                    (6..=7, Some(id)) => self.agent.deaf(id),
                    (8..=9, Some(id)) => {
                        self.agent.disconnected(id, self.now);
                        self.read.remove(&id);
                    }
                    (12, _) if self.kept.is_some() => {
                        if let Some(kept) = &mut self.kept {
                            kept.write_all(&mut self.agent);
                        }
                    }
                    (13, _) if self.kept.is_some() => {
                        let len = usize::from(input.u8());
                        let records = input.take(len);
                        if let Some(kept) = &mut self.kept {
                            kept.foreign(records, agent_at(self.now), self.now);
                        }
                    }
                    (14.., _) if self.kept.is_some() => self.kill(input.u16()),
                    _ => {
                        if let Some(chip) = self.agent.chip_mut() {
                            chip.lose("told to");
                        }
                    }
                }
            }
        }
        self.work();
    }

    /// Whatever was: with a chip that does what it is told, a controller that comes now has its barrier answered, and the chip
    /// is not silent for ever.
    fn end(&mut self) {
        for id in self.read.keys().copied().collect::<Vec<_>>() {
            self.agent.disconnected(id, self.now);
        }
        self.read.clear();
        let version = self.agent.datapath().version();
        let id = self.connect(version).expect("nobody else is there");
        let barrier = if version == Version::V10 { 18 } else { 20 };
        self.feed(id, &[version as u8, barrier, 0, 8, 0, 0, 0, 9]);
        let mut done = false;
        for _ in 0..20_000 {
            self.attach(&[]);
            self.work();
            let out = self.agent.output(id);
            let (mut at, all) = (0, out.len());
            while let Some(h) = Header::of(out.get(at..).unwrap_or_default()) {
                done |= h.kind == barrier + 1;
                at += usize::from(h.length);
            }
            self.agent.sent(id, all, self.now);
            if done && self.agent.chip_mut().is_none_or(|c| !c.is_silent()) {
                return;
            }
            // what was refused is tried again after a while
            self.now += SECOND / 100;
            assert!(
                done || self.agent.conn(id).is_some_and(|c| c.end().is_none()),
                "{:?}",
                self.agent.conn(id).map(|c| c.end())
            );
        }
        let chip = self.agent.chip_mut();
        panic!("no answer: to a barrier {done}, {chip:?}");
    }
}

/// The first byte: with a chip or without, with a file or without, which chip. Then steps. A process with a file is killed at their end,
/// whatever there is by then; the last two bytes say how much of it is cut off.
pub(crate) fn agent(data: &[u8]) {
    let mut input = Input::new(data);
    let mut w = World::new(input.u8());
    while !input.is_empty() {
        w.step(&mut input);
    }
    let last = data.split_last_chunk::<2>();
    w.kill(last.map_or(0, |(_, back)| u16::from_le_bytes(*back)));
    w.end();
}
