// SPDX-License-Identifier: Apache-2.0
//! One record: a number for its kind, then its fields, little endian. What a controller said is its message, as
//! OpenFlow writes it.

use tandem_ofpipeline::TableCount;
use tandem_ofpipeline::past::Past;
use tandem_ofpipeline::ports::{Count, PortCount};
use tandem_openflow::Version;

/// What the next process is to know of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortPast {
    /// Another port may have its number at the next start.
    pub name: String,
    /// `ofp_port_config`.
    pub config: u32,
    /// Its cable as was told last: is it up, and of how many Mbit/s?
    pub link: (bool, u32),
    /// All that it counted; since when it is there.
    pub count: PortCount,
    /// Frames that its cable lost: received in vain, broken ones, not sent.
    pub lost: [u64; 3],
    /// Sent from its queues.
    pub queues: Vec<Count>,
}

/// What a chip answered of a flow, but for what the counters say that it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChipFlow {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// There were packets that nobody counted.
    pub lost: bool,
    /// Or that were not counted in bytes.
    pub lost_bytes: bool,
}

/// What is written. Of each thing the last record counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// The tables are empty, and of this version.
    Begin(Version),
    /// A flow by its number, its message.
    Flow(u32, Past, &'a [u8]),
    /// What met it: packets, bytes, when the last one did.
    FlowCount(u32, Past),
    FlowGone(u32),
    /// A group, since when, its message; its counts begin anew.
    Group(u32, u64, &'a [u8]),
    /// What came to it, what took each bucket.
    GroupCount(u32, Vec<Count>),
    /// The group, or all.
    GroupGone(u32),
    Meter(u32, u64, &'a [u8]),
    MeterCount(u32, Vec<Count>),
    MeterGone(u32),
    Table(u8, TableCount),
    Port(u32, PortPast),
    PortGone(u32),
    /// Are fragments dropped? `miss_send_len`.
    Config(bool, u16),
    /// The newest generation of masters.
    Generation(u64),
    /// There is a chip, which has answered nothing that is not said behind this; the counter that it took last.
    Chip(u32),
    ChipFlow(u32, ChipFlow),
    /// A counter, and whose it is.
    ChipCounter(u32, Vec<u32>),
    ChipCounterGone(u32),
}

trait Put {
    fn u8(&mut self, v: u8);
    fn u32(&mut self, v: u32);
    fn u64(&mut self, v: u64);
    fn bytes(&mut self, v: &[u8]);
    fn counts(&mut self, v: &[Count]);
}

impl Put for Vec<u8> {
    fn u8(&mut self, v: u8) {
        self.push(v);
    }
    fn u32(&mut self, v: u32) {
        self.extend_from_slice(&v.to_le_bytes());
    }
    fn u64(&mut self, v: u64) {
        self.extend_from_slice(&v.to_le_bytes());
    }
    fn bytes(&mut self, v: &[u8]) {
        self.u32(v.len() as u32);
        self.extend_from_slice(v);
    }
    fn counts(&mut self, v: &[Count]) {
        self.u32(v.len() as u32);
        for c in v {
            self.u64(c.packets);
            self.u64(c.bytes);
        }
    }
}

/// What is left of a batch.
struct Get<'a>(&'a [u8]);

impl<'a> Get<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }
    fn u8(&mut self) -> Option<u8> {
        self.array().map(|[b]| b)
    }
    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let n = self.u32()? as usize;
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }
    fn count(&mut self) -> Option<Count> {
        Some(Count {
            packets: self.u64()?,
            bytes: self.u64()?,
        })
    }
    fn counts(&mut self) -> Option<Vec<Count>> {
        let n = self.u32()? as usize;
        // no more than there are bytes for
        (n <= self.0.len() / 16).then(|| (0..n).map_while(|_| self.count()).collect())
    }
    fn past(&mut self) -> Option<Past> {
        Some(Past {
            since_ns: self.u64()?,
            last_ns: self.u64()?,
            packets: self.u64()?,
            bytes: self.u64()?,
        })
    }
}

/// A flow's record without its message, whose length [`end_flow`] puts in: the record that is written most.
pub(crate) fn begin_flow(number: u32, past: &Past, out: &mut Vec<u8>) -> usize {
    out.u8(1);
    out.u32(number);
    put_past(past, out);
    out.u32(0);
    out.len()
}

/// The message that was begun at `start` is all there.
pub(crate) fn end_flow(start: usize, out: &mut [u8]) {
    let len = (out.len() - start) as u32;
    if let Some(field) = out.get_mut(start - 4..start) {
        field.copy_from_slice(&len.to_le_bytes());
    }
}

fn put_past(p: &Past, out: &mut Vec<u8>) {
    for v in [p.since_ns, p.last_ns, p.packets, p.bytes] {
        out.u64(v);
    }
}

impl<'a> Record<'a> {
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Record::Begin(version) => {
                out.u8(0);
                out.u8(*version as u8);
            }
            Record::Flow(n, past, message) => {
                let start = begin_flow(*n, past, out);
                out.extend_from_slice(message);
                end_flow(start, out);
            }
            Record::FlowCount(n, past) => {
                out.u8(2);
                out.u32(*n);
                put_past(past, out);
            }
            Record::Group(n, since, message) | Record::Meter(n, since, message) => {
                out.u8(if matches!(self, Record::Group(..)) {
                    4
                } else {
                    7
                });
                out.u32(*n);
                out.u64(*since);
                out.bytes(message);
            }
            Record::GroupCount(n, counts) | Record::MeterCount(n, counts) => {
                let group = matches!(self, Record::GroupCount(..));
                out.u8(if group { 5 } else { 8 });
                out.u32(*n);
                out.counts(counts);
            }
            Record::FlowGone(n) => gone(3, *n, out),
            Record::GroupGone(n) => gone(6, *n, out),
            Record::MeterGone(n) => gone(9, *n, out),
            Record::PortGone(n) => gone(12, *n, out),
            Record::Table(n, c) => {
                out.u8(10);
                out.u8(*n);
                out.u64(c.lookups);
                out.u64(c.matched);
            }
            Record::Port(n, p) => {
                out.u8(11);
                out.u32(*n);
                out.bytes(p.name.as_bytes());
                out.u32(p.config);
                out.u8(u8::from(p.link.0));
                out.u32(p.link.1);
                let c = &p.count;
                let all = [c.rx.packets, c.rx.bytes, c.tx.packets, c.tx.bytes];
                let rest = [c.rx_dropped, c.tx_dropped, c.since_ns];
                all.iter()
                    .chain(&rest)
                    .chain(&p.lost)
                    .for_each(|v| out.u64(*v));
                out.counts(&p.queues);
            }
            Record::Config(drop, len) => {
                out.u8(13);
                out.u8(u8::from(*drop));
                out.u32(u32::from(*len));
            }
            Record::Generation(n) => {
                out.u8(14);
                out.u64(*n);
            }
            Record::Chip(last) => gone(15, *last, out),
            Record::ChipFlow(n, f) => {
                out.u8(16);
                out.u32(*n);
                out.u64(f.packets);
                out.u64(f.bytes);
                out.u8(u8::from(f.lost) | u8::from(f.lost_bytes) << 1);
            }
            Record::ChipCounter(id, flows) => {
                out.u8(17);
                out.u32(*id);
                out.u32(flows.len() as u32);
                flows.iter().for_each(|n| out.u32(*n));
            }
            Record::ChipCounterGone(id) => gone(18, *id, out),
        }
    }

    fn get(g: &mut Get<'a>) -> Option<Record<'a>> {
        Some(match g.u8()? {
            0 => Record::Begin(Version::of(g.u8()?)?),
            1 => Record::Flow(g.u32()?, g.past()?, g.bytes()?),
            2 => Record::FlowCount(g.u32()?, g.past()?),
            3 => Record::FlowGone(g.u32()?),
            4 => Record::Group(g.u32()?, g.u64()?, g.bytes()?),
            5 => Record::GroupCount(g.u32()?, g.counts()?),
            6 => Record::GroupGone(g.u32()?),
            7 => Record::Meter(g.u32()?, g.u64()?, g.bytes()?),
            8 => Record::MeterCount(g.u32()?, g.counts()?),
            9 => Record::MeterGone(g.u32()?),
            10 => {
                let table = g.u8()?;
                let (lookups, matched) = (g.u64()?, g.u64()?);
                Record::Table(table, TableCount { lookups, matched })
            }
            11 => {
                let number = g.u32()?;
                let port = PortPast {
                    name: String::from_utf8(g.bytes()?.to_vec()).ok()?,
                    config: g.u32()?,
                    link: (g.u8()? != 0, g.u32()?),
                    count: PortCount {
                        rx: g.count()?,
                        tx: g.count()?,
                        rx_dropped: g.u64()?,
                        tx_dropped: g.u64()?,
                        since_ns: g.u64()?,
                    },
                    lost: [g.u64()?, g.u64()?, g.u64()?],
                    queues: g.counts()?,
                };
                Record::Port(number, port)
            }
            12 => Record::PortGone(g.u32()?),
            13 => Record::Config(g.u8()? != 0, u16::try_from(g.u32()?).ok()?),
            14 => Record::Generation(g.u64()?),
            15 => Record::Chip(g.u32()?),
            16 => {
                let (n, packets, bytes, lost) = (g.u32()?, g.u64()?, g.u64()?, g.u8()?);
                let flow = ChipFlow {
                    packets,
                    bytes,
                    lost: lost & 1 != 0,
                    lost_bytes: lost & 2 != 0,
                };
                Record::ChipFlow(n, flow)
            }
            17 => {
                let (id, n) = (g.u32()?, g.u32()? as usize);
                // no more than there are bytes for
                if n > g.0.len() / 4 {
                    return None;
                }
                Record::ChipCounter(id, (0..n).map_while(|_| g.u32()).collect())
            }
            18 => Record::ChipCounterGone(g.u32()?),
            _ => return None,
        })
    }

    /// All records of a batch. `None`: it says what can't be read.
    pub fn all(batch: &'a [u8]) -> Option<Vec<Record<'a>>> {
        let mut g = Get(batch);
        let mut all = Vec::new();
        while !g.0.is_empty() {
            all.push(Record::get(&mut g)?);
        }
        Some(all)
    }
}

fn gone(kind: u8, n: u32, out: &mut Vec<u8>) {
    out.u8(kind);
    out.u32(n);
}
