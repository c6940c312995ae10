// SPDX-License-Identifier: Apache-2.0
//! Where packets go that leave the tables: out of ports, to controllers, or where an ordinary switch would send them.

use std::collections::BTreeMap;

use tandem_ofpipeline::{PacketIn as About, Sink, Why};
use tandem_openflow::model::{PacketIn, PacketReason, Reply};
use tandem_openflow::{Field, Oxm, port};
use tandem_packet::Frame;

use crate::buffers::Buffers;
use crate::conn::{Conn, ENOUGH};

/// The ports' far ends.
pub trait Wires {
    /// A frame that leaves by a port; what is not copied is gone.
    fn send(&mut self, port: u32, queue: Option<u32>, frame: &Frame<'_>);
}

/// Frames for `NORMAL`, which are looked at when the tables are done with theirs.
#[derive(Debug, Default)]
pub struct Normal {
    frames: Vec<(u32, Vec<u8>)>,
    /// Memory of earlier ones.
    spare: Vec<Vec<u8>>,
}

/// One packet may go to `NORMAL` so often: each bucket of a group may send it there.
const NORMALS: usize = 4096;
const SPARE: usize = 64;

impl Normal {
    fn push(&mut self, in_port: u32, bytes: &[u8]) {
        if self.frames.len() < NORMALS {
            let mut mem = self.spare.pop().unwrap_or_default();
            mem.clear();
            mem.extend_from_slice(bytes);
            self.frames.push((in_port, mem));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(crate) fn take(&mut self) -> Vec<(u32, Vec<u8>)> {
        std::mem::take(&mut self.frames)
    }

    pub(crate) fn done(&mut self, mem: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(mem);
        }
    }
}

/// The sink of the tables.
pub(crate) struct Leaves<'a, W> {
    pub(crate) wires: &'a mut W,
    pub(crate) conns: &'a mut BTreeMap<u32, Conn>,
    pub(crate) buffers: &'a mut Buffers,
    pub(crate) normal: &'a mut Normal,
    pub(crate) now_ns: u64,
}

/// Room for a packet-in's header and fields.
const HEAD: usize = 256;

impl<W: Wires> Sink for Leaves<'_, W> {
    #[inline]
    fn output(&mut self, port: u32, queue: Option<u32>, frame: &Frame<'_>) {
        self.wires.send(port, queue, frame);
    }

    fn packet_in(&mut self, about: &About<'_>, frame: &Frame<'_>) {
        let reason = match about.why {
            Why::NoMatch => PacketReason::NoMatch,
            Why::Action => PacketReason::Action,
            Why::InvalidTtl => PacketReason::InvalidTtl,
        };
        let bytes = frame.bytes();
        let mut said: Option<(Option<u32>, Vec<Oxm>, usize)> = None;
        for conn in self.conns.values_mut() {
            let half = conn.half();
            let wanted = conn.wants.packet_in.get(half).copied().unwrap_or(0);
            if !conn.is_up() || wanted >> reason as u8 & 1 == 0 {
                continue;
            }
            if conn.waiting() > ENOUGH || !admitted(conn, self.now_ns) {
                conn.counts.packet_ins_dropped += 1;
                continue;
            }
            // kept once, for whoever asks first
            let (buffer, fields, len) = said.get_or_insert_with(|| {
                let whole = about.max_len == port::NO_BUFFER_LEN;
                let buffer = if whole {
                    None
                } else {
                    self.buffers.keep(bytes, about.in_port, self.now_ns)
                };
                let most = match buffer {
                    Some(_) => usize::from(about.max_len),
                    None => usize::MAX,
                };
                let most = most.min(tandem_openflow::LONGEST - HEAD);
                (buffer, fields(about), bytes.len().min(most))
            });
            conn.counts.packet_ins += 1;
            conn.reply(
                0,
                &Reply::PacketIn(PacketIn {
                    buffer: *buffer,
                    total_len: u16::try_from(bytes.len()).unwrap_or(u16::MAX),
                    reason,
                    table: about.table,
                    cookie: about.cookie,
                    fields,
                    data: bytes.get(..*len).unwrap_or(bytes),
                }),
            );
        }
    }

    fn normal(&mut self, in_port: u32, frame: &Frame<'_>) {
        self.normal.push(in_port, frame.bytes());
    }
}

fn admitted(conn: &mut Conn, now_ns: u64) -> bool {
    match &mut conn.limit {
        None => true,
        Some(bucket) if bucket.admits(1, now_ns) => {
            bucket.charge(1, now_ns);
            true
        }
        Some(_) => false,
    }
}

/// The pipeline's fields that go with a packet (§7.4.1): where it came in, and what else is not zero.
fn fields(about: &About<'_>) -> Vec<Oxm> {
    let mut all = vec![Oxm::exact(Field::InPort, u128::from(about.in_port))];
    let physical = about.key.get(Field::InPhyPort);
    if physical != 0 && physical != u128::from(about.in_port) {
        all.push(Oxm::exact(Field::InPhyPort, physical));
    }
    for field in [Field::Metadata, Field::TunnelId] {
        let value = about.key.get(field);
        if value != 0 {
            all.push(Oxm::exact(field, value));
        }
    }
    all
}
