// SPDX-License-Identifier: Apache-2.0
//! A packet's way: tables, instructions, action set (§5).
//!
//! ```text
//!   way cached?  ── yes ─► flows by number          ┐  each: count, meter, apply, clear, write, metadata
//!                ── no ──► lookup, table by table   ┘       goto ─► next flow
//!        headers uncovered, remarked, or more than four tables: the next way begins at the table at hand
//!        no goto: the action set is executed
//! ```
use crate::actions::{ActionSet, Run};
use crate::cache::{MISS, Way};
use crate::key::Key;
use crate::meters::{Verdict, remarked};
use crate::rewrite::{Effect, Packet};
use crate::switch::{Config, Fragments, Hot, Live, Rules, Switch};
use tandem_openflow::model::flow_flags;
use tandem_openflow::{Action, Error, Field, Instructions, Version, port};
use tandem_packet::{Frame, checksum};

pub use crate::actions::rank;
pub use tandem_openflow::model::PacketReason as Why;

/// Buckets that one packet may take, in all groups together; a packet-out, however often it goes to the tables.
pub(crate) const BUCKETS: u32 = 4096;

/// What is said of a packet that goes to the controller.
#[derive(Clone, Copy, Debug)]
pub struct PacketIn<'a> {
    /// Why.
    pub why: Why,
    /// The table of the flow, or that had none.
    pub table: u8,
    /// The flow's; all ones when there is none.
    pub cookie: u64,
    /// Bytes of the packet to be sent.
    pub max_len: u16,
    /// Where it came in.
    pub in_port: u32,
    /// Its fields: `IN_PHY_PORT`, `METADATA`, `TUNNEL_ID` are told with it.
    pub key: &'a Key,
}

/// Where packets go. A frame is lent: what is not copied is gone.
pub trait Sink {
    /// Out of a port, [`port::LOCAL`] being one, that is there, up and may send; `queue` if one was set and the port has it.
    fn output(&mut self, port: u32, queue: Option<u32>, frame: &Frame<'_>);
    /// To the controllers.
    fn packet_in(&mut self, about: &PacketIn<'_>, frame: &Frame<'_>);
    /// To what an ordinary switch would do.
    fn normal(&mut self, in_port: u32, frame: &Frame<'_>);
    /// Is [`Sink::met`] called?
    const WATCHES: bool = false;
    /// A packet met a flow of a table, by its number, or none: for who shows its way.
    fn met(&mut self, _table: u8, _flow: Option<(u32, &crate::flows::Flow)>) {}
}

/// What is behind a flow's instructions.
enum Next {
    Table(u8),
    End,
    Gone,
}

impl Switch {
    /// A packet that came in by a port. Frames are whole: checksums that were left undone are completed first, segmentation
    /// must be done.
    pub fn process<S: Sink>(
        &mut self,
        frame: &mut Frame<'_>,
        in_port: u32,
        now_ns: u64,
        sink: &mut S,
    ) {
        if frame.offload.csum.is_some() {
            checksum::complete(frame);
        }
        let bytes = frame.len() as u64;
        let Some(at) = self.live.ports.get_mut(in_port) else {
            return;
        };
        let whole = bytes >= 14;
        if at.port.no_recv || !whole {
            at.count.rx_dropped += 1;
            return;
        }
        at.count.rx.add(bytes);
        let no_packet_in = at.port.no_packet_in;
        let Some(mut packet) = Packet::new(frame, in_port, self.config().version) else {
            return;
        };
        if packet.lay.fragment && self.config().fragments == Fragments::Drop {
            return;
        }
        self.live.buckets_left = BUCKETS;
        self.tables(&mut packet, in_port, no_packet_in, now_ns, sink);
    }

    /// A packet from a controller, with what is to be done with it. An error: nothing was.
    pub fn packet_out<S: Sink>(
        &mut self,
        frame: &mut Frame<'_>,
        in_port: u32,
        actions: &[Action],
        now_ns: u64,
        sink: &mut S,
    ) -> Result<(), Error> {
        let version = self.config().version;
        let Some(mut packet) = Packet::new(frame, in_port, version) else {
            return Err(Error::BAD_REQUEST_BAD_PACKET);
        };
        self.check_packet_out(actions, &packet.key)?;
        self.live.buckets_left = BUCKETS;
        let mut queue = None;
        for a in actions {
            if let Action::Output {
                port: port::TABLE, ..
            } = a
            {
                // The tables see the packet as it is; what is left of the list does as well
                let mut copy = std::mem::take(&mut self.live.copies);
                let mut mem = copy.pop().unwrap_or_default();
                let mut frame = crate::actions::copied(&mut mem, packet.frame);
                let mut other = packet.copy(&mut frame);
                self.live.copies = copy;
                let quiet = self
                    .live
                    .ports
                    .get(in_port)
                    .is_some_and(|e| e.port.no_packet_in);
                self.tables(&mut other, in_port, quiet, now_ns, sink);
                self.live.copies.push(mem);
                continue;
            }
            let mut run = Run {
                rules: &self.rules,
                live: &mut self.live,
                config: &self.config,
                sink,
                now_ns,
                in_port,
                table: 0,
                cookie: u64::MAX,
                why: Why::Action,
                queue,
            };
            if run.action(&mut packet, a) == Effect::InvalidTtl {
                run.invalid_ttl(&packet);
                break;
            }
            queue = run.queue;
        }
        Ok(())
    }

    fn tables<S: Sink>(
        &mut self,
        packet: &mut Packet<'_, '_>,
        in_port: u32,
        no_packet_in: bool,
        now_ns: u64,
        sink: &mut S,
    ) {
        let mut set = ActionSet::default();
        let mut table = 0;
        let (config, rules, live, cache) = self.parts();
        let mut run = Run {
            rules,
            live,
            config,
            sink,
            now_ns,
            in_port,
            table,
            cookie: u64::MAX,
            why: Why::Action,
            queue: None,
        };
        'ways: loop {
            let place = cache.is_on().then(|| cache.place(&packet.key, table));
            let known = match &place {
                Some(p) => {
                    let hot = &run.live.hot;
                    cache.get(p, &packet.key, |flow| {
                        hot.get(flow as usize).map_or(0, |h| h.generation)
                    })
                }
                None => None,
            };
            let mut found = Way::default();
            let mut end = Next::End;
            for n in 0..cache.steps() {
                let step = known.as_ref().and_then(|w| w.step(n));
                if known.is_some() && step.is_none() {
                    // The way went no further when it was found
                    continue 'ways;
                }
                let flow = match step {
                    Some(s) => s.flow,
                    None => {
                        let flow = run
                            .rules
                            .tables
                            .get(usize::from(table))
                            .and_then(|t| t.lookup(run.rules.secret, &packet.key))
                            .unwrap_or(MISS);
                        let generation =
                            run.live.hot.get(flow as usize).map_or(0, |h| h.generation);
                        found.push(table, flow, generation);
                        flow
                    }
                };
                let (next, effect) = run.flow(packet, table, flow, &mut set, no_packet_in);
                found.rewritten |= effect != Effect::None;
                end = next;
                match end {
                    Next::Table(to) => table = to,
                    Next::End | Next::Gone => break,
                }
                if effect == Effect::Headers {
                    break;
                }
            }
            if let (Some(p), None) = (&place, &known) {
                cache.put(p, &found);
            }
            match end {
                Next::Table(_) => {}
                Next::End => break,
                Next::Gone => return,
            }
        }
        run.set(packet, &set);
    }
}

impl<'r, S: Sink> Run<'r, '_, S> {
    /// One table's part: what the flow of this number does, or a miss.
    fn flow(
        &mut self,
        packet: &mut Packet<'_, '_>,
        table: u8,
        number: u32,
        set: &mut ActionSet<'r>,
        no_packet_in: bool,
    ) -> (Next, Effect) {
        let rules: &'r Rules = self.rules;
        self.table = table;
        if S::WATCHES {
            let flow = rules.flows.get(number).map(|f| (number, f));
            self.sink.met(table, flow);
        }
        let hot = self.live.hot.get_mut(number as usize);
        if let Some(c) = self.live.tables.get_mut(usize::from(table)) {
            c.lookups += 1;
            c.matched += u64::from(hot.is_some());
        }
        let Some(hot) = hot else {
            self.miss(packet, no_packet_in);
            return (Next::Gone, Effect::None);
        };
        count(hot, packet.bytes(), self.now_ns);
        if hot.asked {
            hot.asked = false;
            self.live.met.push(number);
        }
        // A set of earlier tables would be told of with this flow's cookie
        if hot.only != 0 && set.is_empty() {
            let to = hot.only;
            self.output(packet, to, 0);
            return (Next::End, Effect::None);
        }
        let Some(flow) = rules.flows.get(number) else {
            return (Next::Gone, Effect::None);
        };
        // In 1.0 what meets a flow is no miss
        let miss = flow.is_miss() && self.config.version == Version::V13;
        self.cookie = flow.cookie;
        self.why = if miss { Why::NoMatch } else { Why::Action };
        let Instructions {
            meter,
            apply,
            clear,
            write,
            metadata,
            goto,
        } = &flow.instructions;
        let mut effect = Effect::None;
        if let Some(id) = meter {
            match self.live.measure(*id, packet.bytes(), self.now_ns) {
                Verdict::Pass => {}
                Verdict::Drop => return (Next::Gone, Effect::None),
                Verdict::Remark(levels) => {
                    let dscp = packet.key.get(Field::IpDscp) as u8;
                    let new = remarked(dscp, levels);
                    if new != dscp {
                        packet.set_field(Field::IpDscp, u128::from(new));
                        // Whether it is remarked follows from the time, not from the key
                        effect = Effect::Headers;
                    }
                }
            }
        }
        let quiet = miss && no_packet_in;
        for a in apply.as_deref().unwrap_or_default() {
            if quiet
                && matches!(
                    a,
                    Action::Output {
                        port: port::CONTROLLER,
                        ..
                    }
                )
            {
                continue;
            }
            match self.action(packet, a) {
                Effect::InvalidTtl => {
                    self.invalid_ttl(packet);
                    return (Next::Gone, Effect::None);
                }
                Effect::Headers => effect = Effect::Headers,
                Effect::Fields if effect == Effect::None => effect = Effect::Fields,
                _ => {}
            }
        }
        if *clear {
            set.clear();
        }
        for a in write.as_deref().unwrap_or_default() {
            if !(quiet
                && matches!(
                    a,
                    Action::Output {
                        port: port::CONTROLLER,
                        ..
                    }
                ))
            {
                set.write(a);
            }
        }
        if let Some((value, mask)) = metadata {
            let old = packet.key.get(Field::Metadata) as u64;
            packet
                .key
                .set(Field::Metadata, u128::from(old & !mask | value & mask));
            if effect == Effect::None {
                effect = Effect::Fields;
            }
        }
        match goto {
            Some(to) => (Next::Table(*to), effect),
            None => (Next::End, effect),
        }
    }

    /// No flow: 1.3 drops (§5.4), 1.0 asks the controller.
    fn miss(&mut self, packet: &Packet<'_, '_>, no_packet_in: bool) {
        if self.config.version == Version::V10 && !no_packet_in {
            self.cookie = u64::MAX;
            self.why = Why::NoMatch;
            self.packet_in(packet, self.config.miss_send_len);
        }
    }
}

#[inline]
fn count(hot: &mut Hot, bytes: u64, now_ns: u64) {
    hot.packets += u64::from(hot.flags & flow_flags::NO_PKT_COUNTS == 0);
    if hot.flags & flow_flags::NO_BYT_COUNTS == 0 {
        hot.bytes += bytes;
    }
    hot.last_ns = now_ns;
}

impl Live {
    /// A meter that is not there lets everything pass.
    pub(crate) fn measure(&mut self, meter: u32, bytes: u64, now_ns: u64) -> Verdict {
        match self.meters.map.get_mut(&meter) {
            Some(m) => m.measure(bytes, now_ns),
            None => Verdict::Pass,
        }
    }
}

impl Switch {
    /// What packets look at, what they change, and the cache between the two.
    fn parts(&mut self) -> (&Config, &Rules, &mut Live, &mut crate::cache::Cache) {
        (&self.config, &self.rules, &mut self.live, &mut self.cache)
    }
}
