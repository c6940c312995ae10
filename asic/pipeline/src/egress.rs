//! Egress: may the frame leave by this port, in which tag form, and to how many ports.
//!
//! Replication never copies a frame: the ports that want it as it is come first, then the tag is changed once in place
//! and the others follow.

use tandem_abi::raw;
use tandem_packet::{EtherType, Frame, Mac, Tag, segment};

use crate::io::Sink;
use crate::names::{DropReason, Stage};
use crate::run::{Run, Step, fits};
use crate::state::{EgressTag, State};
use crate::tag::DomainTag;

/// What is flooded: which `TND_PORT_FLOOD_*` flag a port needs to get it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Unicast,
    Multicast,
    Broadcast,
    /// To the members of a multicast group ([`Run::group`]) and to ports with one of these flags.
    Group(u32),
}

impl Kind {
    fn flag(self) -> u32 {
        match self {
            Kind::Unicast => raw::TND_PORT_FLOOD_UC,
            Kind::Multicast => raw::TND_PORT_FLOOD_MC,
            Kind::Broadcast => raw::TND_PORT_FLOOD_BC,
            Kind::Group(routers) => routers,
        }
    }
}

impl<S: Sink> Run<'_, '_, S> {
    /// Sends a bridged frame to one port of its domain.
    pub(crate) fn unicast(&mut self, port: u16) -> Step<()> {
        self.stage(Stage::Egress);
        if self.at_odds(self.fid, port) {
            let reason = self.protocol_reason();
            return self.trap(reason.unwrap_or(raw::TND_TRAP_FDB_INCOMPLETE));
        }
        if self.filtered_out() {
            let tag = self.st.egress_tag(self.fid, port);
            let way = tag.map(|tag| (port, tag));
            self.leaving(self.fid, way.as_slice(), None, None)?;
        }
        self.commit();
        if self.unheard {
            let reason = self.protocol_reason();
            let reason = reason.unwrap_or(raw::TND_TRAP_FDB_INCOMPLETE);
            self.copy(reason, raw::TND_RX_L2_FORWARDED);
        }
        if let Err(reason) = self.send_in(self.fid, port) {
            return self.drop(reason);
        }
        self.count_l2();
        Ok(())
    }

    /// Sends a frame that was routed into domain `fid` to one of its ports.
    pub(crate) fn routed_unicast(&mut self, fid: u16, port: u16) -> Step<()> {
        self.stage(Stage::Egress);
        match self.send_in(fid, port) {
            Ok(()) => Ok(()),
            Err(reason) => self.drop(reason),
        }
    }

    /// Sends a routed frame out of a port that is in no domain; `vid`: tagged, with priority 0 as a VLAN interface does.
    pub(crate) fn routed_port(&mut self, port: u16, vid: Option<u16>) -> Step<()> {
        self.stage(Stage::Egress);
        if !self.st.port(port).is_some_and(|p| p.sends()) {
            return self.drop(DropReason::EgressDown);
        }
        if let Some(vid) = vid
            && let Err(reason) = self.tag_with(vid)
        {
            return self.drop(reason);
        }
        let tag = vid.map_or(EgressTag::Untagged, EgressTag::Vid);
        if self.filtered_out()
            && let Err(reason) = self.leave(port, tag)
        {
            return self.drop(reason);
        }
        self.send(port);
        Ok(())
    }

    /// Floods to the members of `fid`. `copied`: the CPU has it already, so nobody left is no drop.
    pub(crate) fn flood(&mut self, fid: u16, kind: Kind, copied: bool) -> Step<()> {
        self.stage(Stage::Flood);
        if self.filtered_out() && !self.acl.asked {
            self.leaving_by_flood(fid, kind, None)?;
        }
        // Lent out for the loop, so that no list is copied.
        if self.st.replayed && !copied && !self.floods_somewhere(fid, kind) {
            let reason = self.protocol_reason();
            return self.trap(reason.unwrap_or(raw::TND_TRAP_FDB_INCOMPLETE));
        }
        let Some(members) = self
            .st
            .vlan_mut(fid)
            .map(|v| std::mem::take(&mut v.members))
        else {
            return self.drop(DropReason::NoFloodPort);
        };
        self.commit();
        let before = self.st.counters.tag_changes;
        let came_tagged = self.tag.in_bytes();
        let (sent, with_tag) = self.flood_to(fid, kind, &members);
        if let Some(v) = self.st.vlan_mut(fid) {
            v.members = members;
        }
        if S::TRACE {
            self.trace(Stage::Flood, format_args!("flooded to {sent} ports"));
        }
        if sent == 0 {
            if copied {
                return Ok(());
            }
            return self.drop(DropReason::NoFloodPort);
        }
        if !S::DRY {
            let changes = self.st.counters.tag_changes - before;
            let stacked = u64::from(came_tagged) + u64::from(with_tag);
            self.st.counters.flood.count(sent.into(), changes, stacked);
        }
        if !self.routed {
            self.count_l2();
        }
        Ok(())
    }

    /// Is there a port of domain `fid` that a flood of this kind would leave by?
    #[cold]
    fn floods_somewhere(&self, fid: u16, kind: Kind) -> bool {
        let gets = |(port, _): &(u16, EgressTag)| {
            self.wants(*port, kind) && self.admissible(fid, *port, self.routed).is_ok()
        };
        self.st
            .vlan(fid)
            .is_some_and(|v| v.members.iter().any(gets))
    }

    /// [`Run::leaving`] for a frame that would be flooded in domain `fid`.
    #[cold]
    pub(crate) fn leaving_by_flood(
        &mut self,
        fid: u16,
        kind: Kind,
        macs: Option<(Mac, Mac)>,
    ) -> Step<()> {
        let lent = |v: &mut crate::state::Vlan| std::mem::take(&mut v.members);
        let Some(members) = self.st.vlan_mut(fid).map(lent) else {
            return Ok(());
        };
        let way = self.leaving(fid, &members, Some(kind), macs);
        if let Some(v) = self.st.vlan_mut(fid) {
            v.members = members;
        }
        way
    }

    /// How often it was sent, and how often of that with a tag.
    fn flood_to(&mut self, fid: u16, kind: Kind, members: &[(u16, EgressTag)]) -> (u32, u32) {
        // Which turn a tag form has: first those that take the frame as it came, then other VLAN ids, then no tag.
        let first = match self.tag {
            DomainTag::Present(t) => Some(t),
            _ => None,
        };
        let turn = |tag: EgressTag| match (tag, first) {
            (EgressTag::Vid(vid), Some(t)) if t.vid() == vid => 0,
            (EgressTag::Vid(_), _) => 1,
            (_, Some(_)) => 2,
            (_, None) => 0,
        };
        let (mut sent, mut with_tag) = (0, 0);
        let mut now = 0;
        let mut last = 0;
        while now <= last {
            for (port, tag) in members {
                let mine = turn(*tag);
                last = mine.max(last);
                if mine == now && self.wants(*port, kind) && self.send_in(fid, *port).is_ok() {
                    sent += 1;
                    with_tag += u32::from(matches!(tag, EgressTag::Vid(_)));
                }
            }
            now += 1;
        }
        (sent, with_tag)
    }

    pub(crate) fn wants(&self, port: u16, kind: Kind) -> bool {
        self.st.port(port).is_some_and(|p| p.has(kind.flag()))
            || matches!(kind, Kind::Group(_)) && self.st.mdb.has(self.group, port)
    }

    /// A station is known behind a port that has left its domain, or that was taken out of service there though it could send, and traps:
    /// of the two one is out of date, and until the other is written the packet is the CPU's. One that does not trap stays as it is. While
    /// all is said anew the station may be elsewhere since, whatever its port is out of service for.
    #[inline]
    pub(crate) fn at_odds(&self, fid: u16, port: u16) -> bool {
        let shut = |p: &crate::state::Port| {
            let off = p.config.stp_state == raw::TND_STP_DISABLED;
            off && (self.st.replayed || p.sends() && p.has(raw::TND_PORT_TRAP_ALL))
        };
        self.st.egress_tag(fid, port).is_none() || self.st.port(port).is_none_or(shut)
    }

    /// May the frame leave domain `fid` by `port`, and with which tag?
    #[inline]
    pub(crate) fn admissible(
        &self,
        fid: u16,
        port: u16,
        routed: bool,
    ) -> Result<EgressTag, DropReason> {
        let Some(tag) = self.st.egress_tag(fid, port) else {
            return Err(DropReason::NotEgressMember);
        };
        let Some(p) = self.st.port(port) else {
            return Err(DropReason::NotEgressMember);
        };
        // What was routed into the domain comes from the bridge itself: it has no port to be kept apart from.
        if !routed {
            if port == self.from && !p.has(raw::TND_PORT_HAIRPIN) {
                return Err(DropReason::SamePort);
            }
            if p.config.flags & self.port_flags & raw::TND_PORT_ISOLATED != 0 {
                return Err(DropReason::Isolated);
            }
        }
        if p.config.stp_state != raw::TND_STP_FORWARDING {
            return Err(DropReason::StpEgress);
        }
        if !p.sends() {
            return Err(DropReason::EgressDown);
        }
        if !fits(self.l2_len, p.config.mtu) {
            return Err(DropReason::EgressOversize);
        }
        Ok(tag)
    }

    /// Sends the frame out of a port of domain `fid`, in the tag form that the port wants, if it may leave there.
    #[inline]
    fn send_in(&mut self, fid: u16, port: u16) -> Result<(), DropReason> {
        let tag = self.admissible(fid, port, self.routed)?;
        match tag {
            EgressTag::Vid(vid) => self.tag_with(vid)?,
            EgressTag::AsIs | EgressTag::Untagged if self.tag.in_bytes() => self.untag(),
            EgressTag::AsIs | EgressTag::Untagged => {}
        }
        if self.filtered_out() {
            self.leave(port, tag)?;
        }
        self.send(port);
        Ok(())
    }

    /// Takes the classifying tag out of the bytes.
    pub(crate) fn untag(&mut self) {
        if self.frame.pop_tag() {
            self.tag = self.tag.removed();
            self.count_tag_change();
        }
    }

    /// Makes `vid` the outer tag; priority and drop eligibility are those it came in with.
    pub(crate) fn tag_with(&mut self, vid: u16) -> Result<(), DropReason> {
        let tpid = EtherType::VLAN.0;
        let old = self.tag.tag().map_or(0, |t| t.tci);
        let tci = old & 0xf000 | vid;
        match self.tag {
            DomainTag::Present(t) if t.tci == tci => return Ok(()),
            tag if tag.in_bytes() => self.frame.set_tag(tpid, tci),
            _ if !self.frame.push_tag(tpid, tci) => return Err(DropReason::NoHeadroom),
            _ => {}
        }
        self.tag = DomainTag::Present(Tag { tpid, tci });
        self.count_tag_change();
        Ok(())
    }

    pub(crate) fn count_tag_change(&mut self) {
        if !S::DRY {
            self.st.counters.tag_changes += 1;
        }
    }

    #[inline]
    pub(crate) fn count_l2(&mut self) {
        if !S::DRY
            && let Some(c) = self.st.counters.port_mut(self.ingress)
        {
            c.l2_forwarded += self.wire.packets;
        }
    }

    #[inline]
    pub(crate) fn send(&mut self, port: u16) {
        let Some(port) = self.st.member_for(port, self.frame.bytes()) else {
            // a group without active members has no carrier: nobody gets here
            return;
        };
        if S::TRACE {
            let len = self.frame.len();
            self.trace(
                Stage::Egress,
                format_args!("out of port {port}, {len} bytes"),
            );
        }
        if !S::DRY {
            count_tx(self.st, self.frame, port);
        }
        self.sink.tx(port, self.frame);
    }
}

/// Counts a frame that leaves.
#[inline]
pub(crate) fn count_tx(st: &mut State, frame: &Frame<'_>, port: u16) {
    let wire = segment::wire(frame.bytes(), &frame.offload);
    if let Some(c) = st.counters.port_mut(port) {
        c.tx.count(frame.bytes(), wire);
    }
}
