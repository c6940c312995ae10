// SPDX-License-Identifier: Apache-2.0
//! Actions carried out: one by one, as a set (§5.10), and as the buckets of a group (§5.6).
use crate::meters::Verdict;
use crate::process::{PacketIn, Sink, Why};
use crate::rewrite::{Effect, Packet};
use crate::switch::{Config, Live, Rules};
use tandem_openflow::model::{GroupType, METER_CONTROLLER};
use tandem_openflow::{Action, Field, port};
use tandem_packet::Frame;

/// Room in front of a copied frame.
const ROOM: usize = 256;

/// Where an action stands in an action set, which has one of each kind, and of set-field one for each field (§5.10). Of
/// pops the outermost header's comes first, as pushes end with it: VLAN, PBB, MPLS. `None`: 1.0's, which has no sets.
pub fn rank(a: &Action) -> Option<u8> {
    Some(match a {
        Action::CopyTtlIn => 0,
        Action::PopVlan => 1,
        Action::PopPbb => 2,
        Action::PopMpls(_) => 3,
        Action::PushMpls(_) => 4,
        Action::PushPbb(_) => 5,
        Action::PushVlan(_) => 6,
        Action::CopyTtlOut => 7,
        Action::DecMplsTtl => 8,
        Action::DecNwTtl => 9,
        Action::SetMplsTtl(_) => 10,
        Action::SetNwTtl(_) => 11,
        Action::SetField { field, .. } => 12 + *field as u8,
        Action::SetQueue(_) => 52,
        Action::Group(_) => 53,
        Action::Output { .. } => 54,
        Action::SetVlanVid10(_)
        | Action::SetVlanPcp10(_)
        | Action::StripVlan10
        | Action::SetNw10 { .. }
        | Action::SetNwTos10(_)
        | Action::SetTp10 { .. }
        | Action::Enqueue10 { .. } => return None,
    })
}

const GROUP: u8 = 53;
const OUTPUT: u8 = 54;

/// An action set.
#[derive(Clone, Debug)]
pub(crate) struct ActionSet<'r> {
    used: u64,
    actions: [&'r Action; 55],
}

impl Default for ActionSet<'_> {
    #[inline]
    fn default() -> Self {
        ActionSet {
            used: 0,
            actions: [&Action::CopyTtlIn; 55],
        }
    }
}

impl<'r> ActionSet<'r> {
    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }

    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// In the place of one of its kind.
    pub(crate) fn write(&mut self, a: &'r Action) {
        if let Some(at) = rank(a)
            && let Some(place) = self.actions.get_mut(usize::from(at))
        {
            *place = a;
            self.used |= 1 << at;
        }
    }
}

/// What is known while a packet is processed.
pub(crate) struct Run<'r, 's, S> {
    pub(crate) rules: &'r Rules,
    pub(crate) live: &'s mut Live,
    pub(crate) config: &'r Config,
    pub(crate) sink: &'s mut S,
    pub(crate) now_ns: u64,
    pub(crate) in_port: u32,
    pub(crate) table: u8,
    pub(crate) cookie: u64,
    pub(crate) why: Why,
    pub(crate) queue: Option<u32>,
}

/// A copy of a frame in `mem`, with room in front.
pub(crate) fn copied<'n>(mem: &'n mut Vec<u8>, frame: &Frame<'_>) -> Frame<'n> {
    mem.clear();
    mem.resize(ROOM, 0);
    mem.extend_from_slice(frame.bytes());
    let end = mem.len();
    Frame::new(mem, ROOM, end, frame.offload)
}

impl<S: Sink> Run<'_, '_, S> {
    /// One action, at once.
    pub(crate) fn action(&mut self, p: &mut Packet<'_, '_>, a: &Action) -> Effect {
        match *a {
            Action::Output { port, max_len } => {
                self.output(p, port, max_len);
                Effect::None
            }
            Action::Group(g) => {
                self.group(p, g);
                Effect::None
            }
            Action::SetQueue(q) => {
                self.queue = Some(q);
                Effect::None
            }
            Action::Enqueue10 { port, queue } => {
                let before = self.queue.replace(queue);
                self.output(p, port, 0);
                self.queue = before;
                Effect::None
            }
            Action::SetField { field, value } => p.set_field(field, value),
            Action::CopyTtlOut => p.copy_ttl_out(),
            Action::CopyTtlIn => p.copy_ttl_in(),
            Action::SetMplsTtl(ttl) => p.set_ttl_of(true, ttl),
            Action::DecMplsTtl => p.dec_ttl_of(true),
            Action::SetNwTtl(ttl) => p.set_ttl_of(false, ttl),
            Action::DecNwTtl => p.dec_ttl_of(false),
            Action::PushVlan(t) => p.push_vlan(t),
            Action::PopVlan | Action::StripVlan10 => p.pop_vlan(),
            Action::PushMpls(t) => p.push_mpls(t),
            Action::PopMpls(t) => p.pop_mpls(t),
            Action::PushPbb(t) => p.push_pbb(t),
            Action::PopPbb => p.pop_pbb(),
            Action::SetVlanVid10(v) => p.set_vlan10(Field::VlanVid, v),
            Action::SetVlanPcp10(v) => p.set_vlan10(Field::VlanPcp, u16::from(v)),
            Action::SetNw10 { dst, addr } => p.set_nw10(dst, addr),
            Action::SetNwTos10(tos) => p.set_tos10(tos),
            Action::SetTp10 { dst, port } => p.set_tp10(dst, port),
        }
    }

    /// The action set, at the end of the way. Of a group and an output the group alone is done; without either the packet
    /// is dropped.
    pub(crate) fn set(&mut self, p: &mut Packet<'_, '_>, set: &ActionSet<'_>) {
        if set.used >> GROUP == 0 {
            return;
        }
        let mut used = set.used;
        if used >> GROUP & 1 != 0 {
            used &= !(1 << OUTPUT);
        }
        while used != 0 {
            let at = used.trailing_zeros() as usize;
            used &= used - 1;
            let Some(a) = set.actions.get(at) else {
                continue;
            };
            match a {
                Action::Group(g) => self.group(p, *g),
                a => {
                    if self.action(p, a) == Effect::InvalidTtl {
                        self.invalid_ttl(p);
                        return;
                    }
                }
            }
        }
    }

    /// A packet whose TTL is used up.
    pub(crate) fn invalid_ttl(&mut self, p: &Packet<'_, '_>) {
        if self.config.invalid_ttl {
            let why = std::mem::replace(&mut self.why, Why::InvalidTtl);
            self.packet_in(p, self.config.miss_send_len);
            self.why = why;
        }
    }

    pub(crate) fn packet_in(&mut self, p: &Packet<'_, '_>, max_len: u16) {
        let verdict = self.live.measure(METER_CONTROLLER, p.bytes(), self.now_ns);
        if verdict == Verdict::Drop {
            return;
        }
        let about = PacketIn {
            why: self.why,
            table: self.table,
            cookie: self.cookie,
            max_len,
            in_port: self.in_port,
            key: &p.key,
        };
        self.sink.packet_in(&about, p.frame);
    }

    #[inline]
    pub(crate) fn output(&mut self, p: &Packet<'_, '_>, to: u32, max_len: u16) {
        match to {
            port::CONTROLLER => self.packet_in(p, max_len),
            port::NORMAL => self.sink.normal(self.in_port, p.frame),
            port::IN_PORT => self.send(p, self.in_port),
            port::ALL | port::FLOOD => {
                for n in 0..self.live.ports.list.len() {
                    let Some(e) = self.live.ports.list.get(n) else {
                        break;
                    };
                    let port = &e.port;
                    // What may not send is not among them
                    let not_there = port.no_fwd || !port.live || to == port::FLOOD && port.no_flood;
                    let number = port.number;
                    if number != self.in_port && !not_there {
                        self.send(p, number);
                    }
                }
            }
            // Back where it came from only by the name IN_PORT (§4.5)
            to if to == self.in_port => {}
            to => self.send(p, to),
        }
    }

    fn send(&mut self, p: &Packet<'_, '_>, to: u32) {
        let Some(e) = self.live.ports.get_mut(to) else {
            return;
        };
        if !e.port.live || e.port.no_fwd {
            e.count.tx_dropped += 1;
            return;
        }
        let bytes = p.bytes();
        e.count.tx.add(bytes);
        let mut queue = None;
        if let Some(q) = self.queue
            && let Some(at) = e.port.queues.iter().position(|have| *have == q)
            && let Some(c) = e.queues.get_mut(at)
        {
            c.tx.add(bytes);
            queue = Some(q);
        }
        self.sink.output(to, queue, p.frame);
    }

    /// A packet through a group: each bucket gets a copy.
    fn group(&mut self, p: &Packet<'_, '_>, number: u32) {
        let rules = self.rules;
        if self.live.buckets_left == 0 {
            return;
        }
        let Some(group) = rules.groups.map.get(&number) else {
            return;
        };
        if let Some(c) = self.live.groups.get_mut(&number) {
            c.count.add(p.bytes());
        }
        let live = match group.kind {
            GroupType::All => Some(0..group.buckets.len()),
            GroupType::Indirect => Some(0..1),
            GroupType::Select => group.select(&p.key).map(|n| n..n + 1),
            GroupType::FastFailover => group.first_live().map(|n| n..n + 1),
        };
        for n in live.into_iter().flatten() {
            let Some(bucket) = group.buckets.get(n) else {
                return;
            };
            if self.live.buckets_left == 0 {
                return;
            }
            self.live.buckets_left -= 1;
            if let Some(c) = self
                .live
                .groups
                .get_mut(&number)
                .and_then(|g| g.buckets.get_mut(n))
            {
                c.add(p.bytes());
            }
            let mut set = ActionSet::default();
            for a in &bucket.actions {
                set.write(a);
            }
            let queue = self.queue;
            let mut mem = self.live.copies.pop().unwrap_or_default();
            let mut frame = copied(&mut mem, p.frame);
            self.set(&mut p.copy(&mut frame), &set);
            self.live.copies.push(mem);
            self.queue = queue;
        }
    }
}
