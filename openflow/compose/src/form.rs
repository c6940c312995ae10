// SPDX-License-Identifier: Apache-2.0
//! What a packet has become on its way, as far as that follows from the flows it met: a later table's match is seen back
//! through it, to a match on the packet as it came in.
//!
//! ```text
//!   came in            f0: push_vlan, vid := 100            f1 asks            of what came in
//!   in_port=1 ───────► pushed (vid 100, pcp as it was) ───► vlan_vid=100   ──► true
//!   untagged                                                vlan_vid=200   ──► never
//!                                                           eth_dst=N      ──► eth_dst=N
//! ```
use crate::groups::{BUCKETS, Groups, Through, Via};
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_ofoffload::{Beyond, PortMask, Rewrite, Vlan};
use tandem_ofpipeline::key::{NET, place};
use tandem_ofpipeline::process::rank;
use tandem_openflow::{Action, Field, Instructions, Oxm, oxm, port};

const PRESENT: u128 = oxm::VID_PRESENT as u128;
/// 802.1Q.
pub(crate) const TPID: u16 = 0x8100;
const GROUP: u8 = 53;
const OUTPUT: u8 = 54;

/// What becomes of a packet's outermost tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tag {
    /// It stays, or none comes.
    #[default]
    Keep,
    /// A new one; what is `None` is as in the tag that was, 0 if there was none.
    #[allow(missing_docs)]
    Push {
        tpid: u16,
        vid: Option<u16>,
        pcp: Option<u8>,
    },
    /// It goes.
    Pop,
}

/// What a packet that is sent differs in from the one that came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Effect {
    /// VLAN id and priority are those of the tag that it came in with.
    pub rewrite: Rewrite,
    /// Beside that.
    pub tag: Tag,
}

/// What a later match is, asked of the packet that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It can't be asked.
    Dark,
    Never,
    /// If this holds.
    If(Vec<Oxm>),
}

/// The ports of OpenFlow's port numbers.
pub(crate) type Ports = BTreeMap<u32, PortMask>;

/// What a packet's way depends on beside flows.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub ports: &'a Ports,
    pub groups: &'a Groups,
    /// May it leave in two forms?
    pub forms: bool,
}

/// The outermost tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outer {
    /// As it came in, or with another VLAN id or priority.
    Own,
    Pushed {
        tpid: u16,
        vid: Option<u16>,
        pcp: Option<u8>,
    },
    /// It came in with one that is gone: what is below is not known.
    Popped,
    /// Two pushed, or one in the place of another.
    Other,
}

pub(crate) type Looks = (Outer, Rewrite, u64, Vec<(Field, u128)>);

/// A packet on its way.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    outer: Outer,
    /// Of the tag that it came in with, what was written.
    own: Rewrite,
    metadata: u64,
    /// Addresses and the tunnel, if they were written.
    known: Vec<(Field, u128)>,
    /// Fields whose values are not known any more, a bit each.
    dark: u64,
    /// Something was written that no chip writes.
    beyond: Option<Beyond>,
    /// The action set.
    set: BTreeMap<u8, Action>,
    ports: PortMask,
    effect: Effect,
    /// Ports that it is sent to in another form than these.
    second: Option<(PortMask, Effect)>,
    sent: bool,
    controller: bool,
    /// Groups and buckets that it went through.
    pub via: Via,
    /// Is it perhaps not as long as it came in?
    pub resized: bool,
    /// It is the CPU's, whatever follows.
    pub cpu: Option<Option<Beyond>>,
    /// Its source was found in a table of sources.
    pub checked: bool,
}

impl Default for Form {
    fn default() -> Form {
        Form {
            outer: Outer::Own,
            own: Rewrite::default(),
            metadata: 0,
            known: Vec::new(),
            dark: 0,
            beyond: None,
            set: BTreeMap::new(),
            ports: PortMask::default(),
            effect: Effect::default(),
            second: None,
            sent: false,
            controller: false,
            via: Via::default(),
            resized: false,
            cpu: None,
            checked: false,
        }
    }
}

/// What is known of the packet that came in.
pub(crate) fn of(fields: &[Oxm], f: Field) -> Option<Oxm> {
    fields.iter().find(|o| o.field == f).copied()
}

/// Did it come in with a tag? `None`: not known.
fn tagged(fields: &[Oxm]) -> Option<bool> {
    of(fields, Field::VlanVid)
        .filter(|o| o.mask & PRESENT != 0)
        .map(|o| o.value & PRESENT != 0)
}

/// Two matches as one, fields in order; `None`: no packet has both.
pub(crate) fn both(a: &[Oxm], b: &[Oxm]) -> Option<Vec<Oxm>> {
    let mut all = Vec::with_capacity(a.len() + b.len());
    all.extend_from_slice(a);
    for o in b.iter().filter(|o| o.mask != 0) {
        match all.iter_mut().find(|p| p.field == o.field) {
            Some(p) if (p.value ^ o.value) & p.mask & o.mask != 0 => return None,
            Some(p) => (p.value, p.mask) = (p.value | o.value, p.mask | o.mask),
            None => all.push(*o),
        }
    }
    all.sort_unstable_by_key(|o| o.field);
    Some(all)
}

/// Those without it are fields of the frame itself.
fn above(f: Field) -> bool {
    place(f).2 != 0
}

impl Form {
    /// What later tables may ask for of it that another packet does not have: of as much the chains are as a rule the
    /// same.
    pub fn looks(&self) -> Looks {
        (self.outer, self.own, self.metadata, self.known.clone())
    }

    /// A later table's match, asked of the packet that came in, of which `came` is known.
    pub fn back(&self, came: &[Oxm], wanted: &[Oxm]) -> Seen {
        let mut left = Vec::new();
        let mut dark = false;
        for o in wanted.iter().filter(|o| o.mask != 0) {
            let value = match o.field {
                Field::Metadata => Some(u128::from(self.metadata)),
                Field::VlanVid | Field::VlanPcp => match self.tag_field(came, o) {
                    Seen::Never => return Seen::Never,
                    Seen::Dark => {
                        dark = true;
                        continue;
                    }
                    Seen::If(more) => {
                        left.extend(more);
                        continue;
                    }
                },
                f => self.known.iter().find(|(g, _)| *g == f).map(|(_, v)| *v),
            };
            match value {
                Some(v) if v & o.mask != o.value => return Seen::Never,
                Some(_) => {}
                None if self.dark >> (o.field as u8) & 1 != 0 => dark = true,
                None => left.push(*o),
            }
        }
        if dark { Seen::Dark } else { Seen::If(left) }
    }

    fn tag_field(&self, came: &[Oxm], o: &Oxm) -> Seen {
        let is = |v: u128| {
            if v & o.mask == o.value {
                Seen::If(Vec::new())
            } else {
                Seen::Never
            }
        };
        let vid = o.field == Field::VlanVid;
        let written = |vid_: Option<u16>, pcp: Option<u8>| match vid {
            true => vid_.map(|v| PRESENT | u128::from(v)),
            false => pcp.map(u128::from),
        };
        let own = written(self.own.vid, self.own.pcp);
        match (self.outer, tagged(came)) {
            (Outer::Own, _) => own.map_or_else(|| Seen::If(vec![*o]), is),
            (Outer::Pushed { vid: v, pcp, .. }, was) => match (written(v, pcp).or(own), was) {
                (Some(v), _) => is(v),
                (None, Some(true)) => Seen::If(vec![*o]),
                (None, Some(false)) => is(if vid { PRESENT } else { 0 }),
                (None, None) => Seen::Dark,
            },
            (Outer::Popped | Outer::Other, _) => Seen::Dark,
        }
    }

    /// What is not known any more.
    fn forget(&mut self, which: impl Fn(Field) -> bool) {
        for f in Field::ALL.into_iter().filter(|f| which(*f)) {
            self.dark |= 1 << (f as u8);
            self.known.retain(|(g, _)| *g != f);
        }
    }

    fn set_field(&mut self, came: &[Oxm], field: Field, value: u128) {
        match field {
            Field::VlanVid | Field::VlanPcp => {
                let (vid_, pcp_) = match field {
                    Field::VlanVid => (Some(value as u16 & 0xfff), None),
                    _ => (None, Some(value as u8 & 7)),
                };
                match (&mut self.outer, tagged(came)) {
                    (Outer::Pushed { vid, pcp, .. }, _) => {
                        (*vid, *pcp) = (vid_.or(*vid), pcp_.or(*pcp));
                    }
                    (Outer::Own, Some(true)) => {
                        self.own.vid = vid_.or(self.own.vid);
                        self.own.pcp = pcp_.or(self.own.pcp);
                    }
                    // Nothing is written where there is no tag
                    (Outer::Own, Some(false)) => {}
                    _ => self.other_tag(),
                }
            }
            Field::IpDscp => {
                self.own.dscp = Some(value as u8);
                self.forget(|f| f == field);
            }
            Field::EthDst | Field::EthSrc | Field::TunnelId => {
                self.beyond = Some(Beyond::Rewrite);
                self.known.retain(|(f, _)| *f != field);
                self.known.push((field, value));
            }
            _ => {
                self.beyond = Some(Beyond::Rewrite);
                match field {
                    Field::EthType => self.forget(|f| f == field || above(f)),
                    Field::IpProto | Field::Icmpv6Type => {
                        self.forget(|f| f == field || place(f).2 > NET);
                    }
                    _ => self.forget(|f| f == field),
                }
            }
        }
    }

    fn other_tag(&mut self) {
        self.outer = Outer::Other;
        self.beyond = Some(Beyond::Tag);
    }

    fn action(&mut self, came: &[Oxm], a: &Action, around: Around<'_>) {
        self.resized |= matches!(
            a,
            Action::PushVlan(_) | Action::PopVlan | Action::PushMpls(_) | Action::PopMpls(_)
        );
        match *a {
            Action::Output { port, .. } => self.output(came, port, around.ports),
            Action::Group(g) => self.group(came, g, around),
            Action::SetField { field, value } => self.set_field(came, field, value),
            Action::PushVlan(tpid) => match self.outer {
                Outer::Own => {
                    self.outer = Outer::Pushed {
                        tpid,
                        vid: None,
                        pcp: None,
                    };
                }
                _ => self.other_tag(),
            },
            Action::PopVlan => match (self.outer, tagged(came)) {
                (Outer::Pushed { .. }, _) => self.outer = Outer::Own,
                (Outer::Own, Some(true)) => self.outer = Outer::Popped,
                (Outer::Own, Some(false)) => {}
                _ => self.other_tag(),
            },
            // 1.0's write a tag where there is none
            Action::SetVlanVid10(_) | Action::SetVlanPcp10(_) | Action::StripVlan10 => {
                self.action10(came, a);
            }
            Action::SetQueue(_) => self.beyond = Some(Beyond::Rewrite),
            Action::PushMpls(_) | Action::PopMpls(_) => {
                self.beyond = Some(Beyond::Rewrite);
                self.forget(|f| f == Field::EthType || above(f));
            }
            // Whether a TTL is used up its match does not say; nor what is below a PBB header
            _ => self.cpu = Some(Some(Beyond::Rewrite)),
        }
    }

    fn action10(&mut self, came: &[Oxm], a: &Action) {
        let bare = self.outer == Outer::Own && tagged(came) == Some(false);
        let known = bare || !matches!((self.outer, tagged(came)), (Outer::Own, None));
        let (field, value) = match *a {
            _ if !known => {
                self.cpu = Some(Some(Beyond::Tag));
                return;
            }
            Action::SetVlanVid10(vid) => (Field::VlanVid, vid),
            Action::SetVlanPcp10(pcp) => (Field::VlanPcp, u16::from(pcp)),
            _ => {
                match self.outer {
                    Outer::Pushed { .. } => self.outer = Outer::Own,
                    Outer::Own if !bare => self.outer = Outer::Popped,
                    Outer::Own => {}
                    Outer::Popped | Outer::Other => self.other_tag(),
                }
                self.resized = true;
                return;
            }
        };
        if bare {
            (self.outer, self.resized) = (
                Outer::Pushed {
                    tpid: TPID,
                    vid: Some(0),
                    pcp: Some(0),
                },
                true,
            );
        }
        self.set_field(came, field, u128::from(value));
    }

    /// A copy goes through each bucket, and the packet itself goes on as it is (§5.6).
    fn group(&mut self, came: &[Oxm], group: u32, around: Around<'_>) {
        let Some(buckets) = around.groups.buckets(group) else {
            self.cpu = Some(Some(Beyond::Group));
            return;
        };
        let here = Through {
            group,
            bucket: None,
            resized: self.resized,
        };
        Arc::make_mut(&mut self.via).push(here);
        for (n, actions) in buckets {
            if self.via.len() > BUCKETS {
                self.cpu = Some(Some(Beyond::Group));
            }
            if self.cpu.is_some() {
                return;
            }
            Arc::make_mut(&mut self.via).push(Through {
                bucket: Some(*n),
                ..here
            });
            let before = self.clone();
            let set = actions.iter().filter_map(|a| Some((rank(a)?, *a)));
            self.set = set.collect();
            self.carry_out(came, around);
            // Where it was sent stays, what it had become does not
            let after = std::mem::replace(self, before);
            (self.ports, self.effect, self.second) = (after.ports, after.effect, after.second);
            (self.sent, self.controller) = (after.sent, after.controller);
            (self.via, self.cpu) = (after.via, after.cpu);
        }
    }

    fn output(&mut self, came: &[Oxm], to: u32, ports: &Ports) {
        if to == port::CONTROLLER {
            self.controller = true;
            return;
        }
        let Some(mask) = ports.get(&to).copied() else {
            self.cpu = Some(Some(Beyond::Port));
            return;
        };
        if of(came, Field::InPort).is_some_and(|o| ports.get(&(o.value as u32)) == Some(&mask)) {
            // Not back where it came from (§4.5)
            return;
        }
        let effect = self.effect_now();
        let second = self.second.map(|(ports, _)| ports).unwrap_or_default();
        let third = self.sent
            && self.effect != effect
            && self.second.is_some_and(|(_, known)| known != effect);
        if self.ports.meets(mask) || second.meets(mask) || third {
            self.cpu = Some(Some(Beyond::Copies));
            return;
        }
        if let Some(beyond) = self.beyond {
            self.cpu = Some(Some(beyond));
            return;
        }
        if self.sent && self.effect != effect {
            self.second.get_or_insert((second, effect)).0.join(mask);
            return;
        }
        self.ports.join(mask);
        (self.effect, self.sent) = (effect, true);
    }

    fn effect_now(&self) -> Effect {
        let tag = match self.outer {
            Outer::Own | Outer::Other => Tag::Keep,
            Outer::Pushed { tpid, vid, pcp } => Tag::Push { tpid, vid, pcp },
            Outer::Popped => Tag::Pop,
        };
        let mut rewrite = self.own;
        if tag == Tag::Pop {
            // What was written is gone with the tag
            (rewrite.vid, rewrite.pcp) = (None, None);
        }
        Effect { rewrite, tag }
    }

    /// A flow's instructions, but for its goto (§5.9: meter, apply, clear, write, metadata).
    pub fn through(&mut self, came: &[Oxm], i: &Instructions, around: Around<'_>) {
        if i.meter.is_some() {
            self.cpu = Some(Some(Beyond::Meter));
        }
        for a in i.apply.iter().flatten() {
            if self.cpu.is_some() {
                return;
            }
            self.action(came, a, around);
        }
        if self.controller {
            // Alone or beside ports: the CPU does all of it
            self.cpu = self.cpu.or(Some(self.sent.then_some(Beyond::Copies)));
        }
        if i.clear {
            self.set.clear();
        }
        for a in i.write.iter().flatten() {
            if let Some(at) = rank(a) {
                self.set.insert(at, *a);
            }
        }
        if let Some((value, mask)) = i.metadata {
            self.metadata = self.metadata & !mask | value & mask;
        }
    }

    /// The end of the way: the action set is carried out (§5.10). A set that sends nowhere does nothing.
    pub fn end(mut self, came: &[Oxm], around: Around<'_>) -> (Answer, Via) {
        self.carry_out(came, around);
        let via = Arc::clone(&self.via);
        (self.miss(around.forms), via)
    }

    /// The action set.
    pub fn carry_out(&mut self, came: &[Oxm], around: Around<'_>) {
        let set = std::mem::take(&mut self.set);
        if set.keys().any(|at| *at >= GROUP) {
            let group = set.contains_key(&GROUP);
            for (at, a) in &set {
                if self.cpu.is_none() && !(group && *at == OUTPUT) {
                    self.action(came, a, around);
                }
            }
        }
    }

    /// Where it was sent, in which forms; `None`: not by a chip.
    pub fn sends(&self) -> Option<Vec<(PortMask, Effect)>> {
        if self.cpu.is_some() || self.controller {
            return None;
        }
        let first = self.sent.then_some((self.ports, self.effect));
        Some(first.into_iter().chain(self.second).collect())
    }

    /// The VLAN of its only tag, 802.1Q, that has nothing of its own: of a packet that came in with that tag, or without one
    /// and got one.
    pub fn vlan(&self, came: Vlan) -> Option<u16> {
        let vid = match (self.outer, came) {
            (Outer::Own, Vlan::Tag(v)) => v,
            (
                Outer::Pushed {
                    tpid: TPID,
                    vid: Some(v),
                    pcp: None | Some(0),
                },
                Vlan::Untagged,
            ) => v,
            _ => return None,
        };
        let plain = self.own == Rewrite::default() && self.beyond.is_none();
        Some(vid).filter(|v| plain && (1..=4094).contains(v))
    }

    /// [`Form::looks`] of a packet in a VLAN, whichever tag it came with.
    pub fn looks_within(&self) -> Looks {
        let (_, _, metadata, known) = self.looks();
        (Outer::Own, Rewrite::default(), metadata, known)
    }

    /// A table without a flow for it: it is dropped there, but for what was sent on the way (§5.4).
    pub fn miss(self, forms: bool) -> Answer {
        if let Some(beyond) = self.cpu {
            return Answer::Cpu(beyond);
        }
        let none = PortMask::default();
        match (self.controller, self.sent) {
            (false, true)
                if forms && self.ports != none && self.second.is_some_and(|(p, _)| p != none) =>
            {
                let first = (self.ports, self.effect);
                Answer::Forms(Box::new([first, self.second.unwrap_or_default()]))
            }
            _ if self.second.is_some() => Answer::Cpu(Some(Beyond::Copies)),
            (true, true) => Answer::Cpu(Some(Beyond::Copies)),
            (true, false) => Answer::Cpu(None),
            (false, true) if self.ports != PortMask::default() => Answer::Out {
                ports: self.ports,
                effect: self.effect,
            },
            _ => Answer::Drop,
        }
    }
}

/// What becomes of a rule's packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nowhere.
    Drop,
    /// Out of these ports, in one form, but never of the one it came in by.
    #[allow(missing_docs)]
    Out { ports: PortMask, effect: Effect },
    /// The same in two forms, by some ports the one and by others the other. Boxed: hardly a rule has it.
    Forms(Box<[(PortMask, Effect); 2]>),
    /// To the CPU as it came in: to the controller, or for a reason.
    Cpu(Option<Beyond>),
}
