//! Lists of rules: what a frame is matched by, and what the rule that it hits does.
//!
//! ```text
//!   port_acl ─► … decision … ─► ingress_acl ─► egress_acl, for each port ─► rewrite, tag ─► wire
//!      │                            └──────────────┴── any says trap: the whole frame, as it came in
//!      └ permit: what it counts, polices and mirrors waits until the chip has dealt with the frame itself
//! ```
//!
//! A frame that goes to the CPU in the end leaves no trace here: the kernel applies the same rules to it.

pub mod key;

use key::{fields, is_whole, mac, on_its_way, set_class, set_tag};
use tandem_abi::raw;
use tandem_packet::{EtherType, L3, Mac, Tag};
use tandem_tables::tcam::{FrameKind, WORDS, Words, word};

use crate::egress::Kind;
use crate::io::{CpuMeta, Sink};
use crate::names::{DropReason, Stage};
use crate::police::Policed;
use crate::run::{Done, Run, Step};
use crate::state::{AclRule, AclStage, Act, Bound, EgressTag, NONE, PortMask, State};
use crate::tag::DomainTag;

/// What a hit has done to the rest of a frame's way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pending {
    /// Side effects of a rule at the stage of the port, until the frame's fate is known.
    pub(crate) hit: Option<Act>,
    /// What a frame of a flow port is classified as.
    pub(crate) class: Option<Act>,
    /// Slot of the next hop that a rule sends routed packets to.
    pub(crate) nexthop: u32,
    /// The frame's fields, if a list has asked for them.
    key: Option<(FrameKind, Words)>,
    /// The lists between decision and wire have been asked.
    pub(crate) asked: bool,
}

impl Pending {
    /// Nothing yet. A function, not a constant: what is not there is not written either, for each frame.
    #[inline(always)]
    pub(crate) fn nothing() -> Pending {
        Pending {
            hit: None,
            class: None,
            nexthop: NONE,
            key: None,
            asked: false,
        }
    }
}

/// How a frame would leave by a port.
#[derive(Debug, Clone, Copy)]
struct Leaving {
    tag: EgressTag,
    /// Destination and source, if it is routed.
    macs: Option<(Mac, Mac)>,
}

/// What a list says about a frame that would leave.
enum Ruling {
    Pass(Option<Act>),
    Trap(u16, Option<u16>),
    Drop(DropReason, Act),
}

impl<S: Sink> Run<'_, '_, S> {
    /// The list of the ingress port.
    #[cold]
    pub(crate) fn port_acl(&mut self) -> Step<()> {
        self.stage(Stage::PortAcl);
        let bind = self.bind(self.from, AclStage::Port);
        if bind.traps() {
            return self.trap_incomplete();
        }
        self.need_key()?;
        let Some(act) = self.look_up(bind, None, Stage::PortAcl) else {
            return Ok(());
        };
        if !self.passes(&act) {
            self.police(&act);
            return self.drop(DropReason::AclPoliced);
        }
        match act.action {
            raw::TND_ACL_DROP => {
                self.acl.hit = Some(act);
                self.drop(DropReason::AclPort)
            }
            raw::TND_ACL_TRAP => {
                self.effects(&act);
                self.trap_by_rule(&act)
            }
            // A copy that the analyser port's own list would have a say in is beyond the chip.
            _ if self.mirror_is_filtered(&act) => self.trap(raw::TND_TRAP_ACL),
            raw::TND_ACL_REDIRECT_PORT => {
                self.acl.hit = Some(act);
                self.redirect(act.target as u16)
            }
            _ => {
                if act.action == raw::TND_ACL_REDIRECT_NEXTHOP {
                    self.acl.nexthop = act.target;
                }
                self.acl.hit = Some(act);
                self.classify_as(&act)
            }
        }
    }

    /// A rule's VLAN and priority, as if the frame had come with them.
    fn classify_as(&mut self, act: &Act) -> Step<()> {
        let sets = act.flags & (raw::TND_ACL_SET_VID | raw::TND_ACL_SET_PCP);
        if sets == 0 {
            return Ok(());
        }
        let aware = self.st.port(self.from).is_some_and(|p| p.vids.is_some());
        let old = self.eth.tag;
        // Behind a service tag, and where tags are payload, the frame itself would have to change now.
        if !aware || old.is_some_and(|t| t.tpid != EtherType::VLAN.0) {
            return self.trap(raw::TND_TRAP_ACL);
        }
        let mut tci = old.map_or(0, |t| t.tci);
        if sets & raw::TND_ACL_SET_VID != 0 {
            tci = tci & 0xf000 | act.vid & 0xfff;
        }
        if sets & raw::TND_ACL_SET_PCP != 0 {
            tci = tci & 0x1fff | u16::from(act.pcp & 7) << 13;
        }
        let tpid = EtherType::VLAN.0;
        self.tag = DomainTag::given(Tag { tpid, tci }, old);
        Ok(())
    }

    /// Out of a port as it is.
    fn redirect(&mut self, port: u16) -> Step<()> {
        let Some(p) = self.st.port(port) else {
            return self.drop(DropReason::EgressDown);
        };
        let (up, mtu) = (p.sends(), p.config.mtu);
        if self.filtered_out() {
            self.leaving(0, &[(port, EgressTag::AsIs)], None, None)?;
        }
        if !up {
            return self.drop(DropReason::EgressDown);
        }
        if !crate::run::fits(self.l2_len, mtu) {
            return self.drop(DropReason::EgressOversize);
        }
        self.commit();
        if self.filtered_out()
            && let Err(reason) = self.leave(port, EgressTag::AsIs)
        {
            return self.drop(reason);
        }
        self.send(port);
        self.count_l2();
        Err(Done)
    }

    /// The lists that a frame would meet on its way out by `ports`, before anything is changed or sent: one of them that
    /// wants it to go to the CPU gets the whole frame there, whatever the other ports are. `flood`: those of `ports`, all
    /// members of `fid`, that would get it. `macs`: new destination and source, if it is routed.
    #[cold]
    pub(crate) fn leaving(
        &mut self,
        fid: u16,
        ports: &[(u16, EgressTag)],
        flood: Option<Kind>,
        macs: Option<(Mac, Mac)>,
    ) -> Step<()> {
        self.acl.asked = true;
        let bind = self.bind(self.from, AclStage::Ingress);
        let mut hit = None;
        if !bind.is_nothing() {
            self.stage(Stage::IngressAcl);
            match self.ruling(bind, None)? {
                Ruling::Pass(act) => hit = act,
                Ruling::Trap(reason, class) => return self.trap_as(reason, class),
                Ruling::Drop(reason, act) => {
                    self.commit();
                    self.dropped_by(reason, &act);
                    return self.drop(reason);
                }
            }
        }
        for (port, tag) in ports {
            let bind = self.bind(*port, AclStage::Egress);
            let gets = |kind| {
                self.wants(*port, kind) && self.admissible(fid, *port, macs.is_some()).is_ok()
            };
            if bind.is_nothing() || !flood.is_none_or(gets) {
                continue;
            }
            match self.ruling(bind, Some(&Leaving { tag: *tag, macs }))? {
                Ruling::Trap(reason, class) => return self.trap_as(reason, class),
                Ruling::Pass(Some(act)) if self.mirror_is_filtered(&act) => {
                    return self.trap(raw::TND_TRAP_ACL);
                }
                _ => {}
            }
        }
        if let Some(act) = hit {
            if self.mirror_is_filtered(&act) {
                return self.trap(raw::TND_TRAP_ACL);
            }
            self.commit();
            self.effects(&act);
        }
        Ok(())
    }

    /// The list of the port that a frame leaves by, for good: [`Run::leaving`] has been asked before, the frame has the
    /// form that leaves.
    #[cold]
    pub(crate) fn leave(&mut self, port: u16, tag: EgressTag) -> Result<(), DropReason> {
        let bind = self.bind(port, AclStage::Egress);
        if bind.is_nothing() {
            return Ok(());
        }
        self.stage(Stage::EgressAcl);
        if self.acl.key.is_none() {
            return Err(DropReason::AclEgress);
        }
        let macs = match self.frame.bytes().first_chunk::<12>() {
            Some([a, b, c, d, e, f, g, h, i, j, k, l]) if self.routed => {
                Some(([*a, *b, *c, *d, *e, *f], [*g, *h, *i, *j, *k, *l]))
            }
            _ => None,
        };
        match self.ruling(bind, Some(&Leaving { tag, macs })) {
            Ok(Ruling::Pass(None)) => Ok(()),
            Ok(Ruling::Pass(Some(act))) => {
                self.effects(&act);
                Ok(())
            }
            Ok(Ruling::Drop(reason, act)) => {
                self.dropped_by(reason, &act);
                Err(reason)
            }
            // not after `leaving`; if it were, the frame must not leave
            Ok(Ruling::Trap(..)) | Err(_) => Err(DropReason::AclEgress),
        }
    }

    fn dropped_by(&mut self, reason: DropReason, act: &Act) {
        if reason == DropReason::AclPoliced {
            self.police(act);
        } else {
            self.effects(act);
        }
    }

    /// Is there a list between the decision and the wire, for anybody?
    #[inline]
    pub(crate) fn filtered_out(&self) -> bool {
        self.st.acl.out_bound != 0
    }

    /// What a rule of the port's list counts, polices and mirrors becomes true: the chip deals with the frame itself.
    #[inline]
    pub(crate) fn commit(&mut self) {
        if self.acl.hit.is_some() {
            self.commit_hit();
        }
    }

    #[cold]
    fn commit_hit(&mut self) {
        if let Some(act) = self.acl.hit.take() {
            self.effects(&act);
        }
    }

    /// The kernel will deal with the frame: nothing has happened.
    pub(crate) fn forget(&mut self) {
        self.acl.hit = None;
    }

    fn ruling(&mut self, bind: Bound, how: Option<&Leaving>) -> Step<Ruling> {
        if bind.traps() {
            let reason = self.protocol_reason();
            return Ok(Ruling::Trap(
                reason.unwrap_or(raw::TND_TRAP_ACL_INCOMPLETE),
                None,
            ));
        }
        self.need_key()?;
        let act = match (how, self.acl.key) {
            (Some(how), Some((kind, key))) => {
                let left = self.as_it_leaves(kind, key, how);
                self.look_up(bind, Some(&left), Stage::EgressAcl)
            }
            _ => self.look_up(bind, None, Stage::IngressAcl),
        };
        let Some(act) = act else {
            return Ok(Ruling::Pass(None));
        };
        if !self.passes(&act) {
            return Ok(Ruling::Drop(DropReason::AclPoliced, act));
        }
        Ok(match act.action {
            raw::TND_ACL_TRAP => Ruling::Trap(
                self.protocol_reason().unwrap_or(raw::TND_TRAP_ACL),
                trap_class(&act),
            ),
            raw::TND_ACL_DROP if how.is_none() => Ruling::Drop(DropReason::AclIngress, act),
            raw::TND_ACL_DROP => Ruling::Drop(DropReason::AclEgress, act),
            _ => Ruling::Pass(Some(act)),
        })
    }

    fn bind(&self, port: u16, stage: AclStage) -> Bound {
        self.st.acl.at(port, stage)
    }

    /// What a list says of a frame with these fields; None: with its own. Nothing is copied before a rule has matched.
    #[inline]
    fn look_up(
        &mut self,
        bind: Bound,
        fields: Option<&(FrameKind, Words)>,
        stage: Stage,
    ) -> Option<Act> {
        let fields = fields.or(self.acl.key.as_ref())?;
        first_match(self.st, self.sink, bind, fields, stage).map(|rule| rule.act)
    }

    fn trap_incomplete(&mut self) -> Step<()> {
        let reason = self.protocol_reason();
        self.trap(reason.unwrap_or(raw::TND_TRAP_ACL_INCOMPLETE))
    }

    fn trap_by_rule(&mut self, act: &Act) -> Step<()> {
        let reason = self.protocol_reason().unwrap_or(raw::TND_TRAP_ACL);
        self.trap_as(reason, trap_class(act))
    }

    // ---- what rules refer to

    pub(crate) fn passes(&self, act: &Act) -> bool {
        act.policer == NONE
            || self
                .st
                .acl
                .admits(act.policer, self.wire.packets, self.wire.bytes, self.now)
    }

    /// A policer drops the frame: it counts, and so does the rule.
    pub(crate) fn police(&mut self, act: &Act) {
        if S::DRY {
            return;
        }
        let (packets, bytes) = (self.wire.packets, self.wire.bytes);
        self.st
            .acl
            .charge(act.policer, packets, bytes, self.now, false);
        self.count_hit(act);
    }

    fn count_hit(&mut self, act: &Act) {
        if let Some(c) = self.st.acl.counters.at_mut(act.counter) {
            c.packets += self.wire.packets;
            c.bytes += self.wire.bytes;
            c.used_ns = self.now;
        }
    }

    /// Charges the policer of a rule for a frame that passes.
    pub(crate) fn charge(&mut self, act: &Act) {
        if !S::DRY {
            let (packets, bytes) = (self.wire.packets, self.wire.bytes);
            self.st
                .acl
                .charge(act.policer, packets, bytes, self.now, true);
        }
    }

    /// Counts, charges, mirrors.
    fn effects(&mut self, act: &Act) {
        if !S::DRY {
            self.charge(act);
            self.count_hit(act);
        }
        if act.mirror != NONE {
            self.mirror(act.mirror);
        }
    }

    /// Would the copy meet a list of the analyser port?
    pub(crate) fn mirror_is_filtered(&self, act: &Act) -> bool {
        let port = self.st.acl.mirrors.at(act.mirror).map_or(0, |m| m.port);
        port != 0 && !self.bind(port, AclStage::Egress).is_nothing()
    }

    /// Sends a copy of the frame, as it is now, to a session's analyser or to the CPU.
    fn mirror(&mut self, slot: u32) {
        let Some(session) = self.st.acl.mirrors.at_mut(slot) else {
            return;
        };
        let skip = session.skipped + 1 < session.rate;
        if !S::DRY {
            session.skipped = if skip { session.skipped + 1 } else { 0 };
        }
        if skip {
            return;
        }
        let session = *session;
        let most = match session.truncate {
            0 => usize::MAX,
            n => n as usize,
        };
        if session.port == 0 {
            self.sample(most, slot);
            return;
        }
        if !self.st.port(session.port).is_some_and(|p| p.is_up()) {
            return;
        }
        if S::TRACE {
            self.trace(
                Stage::Egress,
                format_args!("copy out of port {}, session {}", session.port, session.id),
            );
        }
        if !S::DRY {
            if let Some(m) = self.st.acl.mirrors.at_mut(slot) {
                m.packets += self.wire.packets;
            }
            let st = &mut *self.st;
            self.frame
                .cut(most, |f| crate::egress::count_tx(st, f, session.port));
        }
        let sink = &mut *self.sink;
        self.frame.cut(most, |f| sink.tx(session.port, f));
    }

    /// A copy for the CPU of what the chip deals with itself: nobody forwards it again.
    fn sample(&mut self, most: usize, slot: u32) {
        let reason = raw::TND_TRAP_SAMPLE;
        // what is cut off a super-frame is no packet for the CPU
        let cut = most < self.frame.len();
        let packets = if cut { 1 } else { self.wire.packets };
        let (class, policed) = self.police_trap(reason, None, packets);
        if policed == Policed::Reason {
            return;
        }
        if !S::DRY {
            if let Some(m) = self.st.acl.mirrors.at_mut(slot) {
                m.packets += self.wire.packets;
            }
            if let Some(c) = self.st.counters.port_mut(self.ingress) {
                c.copied += packets;
            }
        }
        if policed == Policed::Class {
            return;
        }
        if S::TRACE {
            self.trace(Stage::Cpu, format_args!("sample to CPU"));
        }
        let meta = CpuMeta {
            port: self.ingress,
            reason,
            class,
            flags: raw::TND_RX_L2_FORWARDED
                | raw::TND_RX_L3_FORWARDED
                | if self.eth.tag.is_some() {
                    raw::TND_RX_TAGGED
                } else {
                    0
                },
            fid: self.fid,
            tag: self.eth.tag,
            time_ns: self.now,
        };
        let sink = &mut *self.sink;
        self.frame.cut(most, |f| sink.cpu(meta, f));
    }

    // ---- keys

    /// The frame's fields, once. A frame that claims to be IP and is not goes to the CPU: what its fields are is the
    /// kernel's to say.
    #[inline]
    fn need_key(&mut self) -> Step<()> {
        if self.acl.key.is_some() {
            return Ok(());
        }
        let kind = FrameKind::of(self.eth.ethertype.0);
        let (_, words) = self.acl.key.insert((kind, [0; WORDS]));
        let l3 = fields(&self.eth, self.frame.bytes(), self.from, words);
        if !matches!(l3, L3::Bad(_)) {
            return Ok(());
        }
        self.acl.key = None;
        self.trap(raw::TND_TRAP_ERROR)
    }

    /// The same at a flow port. False: rules can't tell what it is, as not all of its headers are there, or can be read.
    #[inline]
    pub(crate) fn flow_key(&mut self) -> bool {
        if self.acl.key.is_some() {
            // it was whole, or is the CPU's
            return true;
        }
        let kind = FrameKind::of(self.eth.ethertype.0);
        let (_, words) = self.acl.key.insert((kind, [0; WORDS]));
        let l3 = fields(&self.eth, self.frame.bytes(), self.from, words);
        is_whole(&l3, &self.eth, self.frame.bytes())
    }

    /// What a list of a flow port says, and the ports that it names.
    #[inline]
    pub(crate) fn look_up_flow(&mut self, bind: Bound, stage: Stage) -> Option<(Act, PortMask)> {
        let key = self.acl.key.as_ref()?;
        let rule = first_match(self.st, self.sink, bind, key, stage)?;
        Some((rule.act, rule.body.ports))
    }

    /// The rule about a frame of a flow port that leaves a port, with the tag that it has on its way: list, priority, what it does.
    pub(crate) fn look_up_form(&self, bind: Bound, tag: Option<Tag>) -> Option<(u32, u32, Act)> {
        let table = self.st.acl.tables.at(bind.slot)?;
        let kind = FrameKind::of(self.eth.ethertype.0);
        let key = on_its_way(self.from, &self.eth.dst, tag);
        let (priority, rule) = table.rules.lookup(kind, &key)?;
        Some((table.id, priority, rule.act))
    }

    /// The frame is classified so: the list at stage FLOW asks for that.
    pub(crate) fn classified(&mut self, act: Act, tci: u16) {
        if let Some((_, key)) = &mut self.acl.key {
            set_class(key, tci, act.group);
        }
        self.acl.class = Some(act);
    }

    /// The fields with which it would leave.
    fn as_it_leaves(&self, kind: FrameKind, mut key: Words, how: &Leaving) -> (FrameKind, Words) {
        let service = self.eth.tag.filter(|_| self.tag.tag().is_none());
        let mut kind = kind;
        if let Some((dst, src)) = how.macs {
            key[word::DST_MAC] = mac(&dst);
            key[word::SRC_MAC] = mac(&src);
            // one hop less
            key[word::L4] = key[word::L4].wrapping_sub(1 << 8);
        }
        let inner = match (how.tag, how.macs) {
            (EgressTag::Vid(vid), macs) => {
                let own = service.filter(|_| macs.is_none());
                // what is routed leaves its priority behind
                let own_tag = self.tag.tag().filter(|_| macs.is_none());
                let tci = own_tag.map_or(0, |t| t.tci) & 0xf000 | vid;
                let tag = Tag {
                    tpid: EtherType::VLAN.0,
                    tci,
                };
                set_tag(&mut key, Some(tag));
                own
            }
            (_, Some(_)) => {
                set_tag(&mut key, None);
                None
            }
            (_, None) => {
                set_tag(&mut key, service);
                None
            }
        };
        if let Some(tag) = inner {
            // a tag before the one that was there: that is payload now
            kind = FrameKind::Other;
            key[word::IP4] = 0;
            key[word::L4] = 0;
            key[word::META] = key[word::META] & 0x0000_ffff_ffff_ff00
                | u64::from(tag.tpid) << word::ETHERTYPE_SHIFT;
            for w in key.iter_mut().skip(word::SRC_IP6) {
                *w = 0;
            }
        }
        (kind, key)
    }
}

/// The rule of a list that decides about a frame with these fields.
fn first_match<'s, S: Sink>(
    st: &'s State,
    sink: &mut S,
    bind: Bound,
    (kind, key): &(FrameKind, Words),
    stage: Stage,
) -> Option<&'s AclRule> {
    let table = st.acl.tables.at(bind.slot)?;
    let hit = table.rules.lookup(*kind, key);
    if S::TRACE {
        let id = table.id;
        match hit {
            Some((priority, rule)) => {
                let action = crate::names::acl_action(rule.act.action);
                let text = format_args!("list {id}, rule {priority}: {action}");
                sink.trace(stage, text);
            }
            None => sink.trace(stage, format_args!("list {id}: no rule matches")),
        }
    }
    hit.map(|(_, rule)| rule)
}

pub(crate) fn trap_class(act: &Act) -> Option<u16> {
    (act.flags & raw::TND_ACL_TRAP_CLASS != 0).then_some(act.class)
}
