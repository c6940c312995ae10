//! Flow ports: rules, stations, the miss, and nothing of a bridge or a router. Every address is only an address.
//!
//! ```text
//!                ┌─────────────────────────┐ no rule  ┌─────────────┐      ┌──────────────────┐ not there
//!  frame ───────►│ list at stage FLOW      ├─────────►│ source here │─────►│ FDB: (FID,       │───────────► drop, or CPU
//!        │ trap  │ the first rule decides  │          │ (SOURCE)    │      │ destination)     │             (flow_miss)
//!        │ all   └─┬────────┬──────────┬───┘          └──────┬──────┘      └──┬─────┬───────┬─┘
//!        ▼         │ drop   │ CPU      │ permit: past SOURCE │ no             │     │ CPU   │ drop
//!       CPU        ▼        ▼          └───────────────────► ▼ CPU            │     ▼       ▼
//!      (flow)    port, ports  (flow)                         (flow_miss)      │   (flow)
//!                  │                                                          ▼
//!                  └──► up? MTU? not where it came from? ◄─────────── port, port set
//!                            │ vid and pcp of the rule into the tag that it has
//!                            ▼ wire
//! ```
//!
//! A domain with members has only their frames: with the tag that the member has there, without one of ports whose PVID
//! it is, or all of a port. What the FDB forwards there leaves by members alone, with the tag, without one, or as it came.
//!
//! A list at stage FLOW_CLASS goes before all of it: the VLAN id and the priority that it gives a frame are what the list and the
//! domain are asked with, and together with a DSCP what it leaves with. The list can ask for the group that it puts it into as well.
//!
//! In which form each copy leaves a list of its port may say, at stage FLOW_EGRESS: `forms.rs`.
//!
//! A frame whose headers rules can't tell (`is_whole` of [`crate::acl::key`]) is the CPU's wherever a list at FLOW or FLOW_CLASS
//! is bound.

use tandem_abi::raw;
use tandem_packet::{EtherType, Tag, rewrite};

use crate::acl::trap_class;
use crate::entry::{Action, FdbValue};
use crate::io::Sink;
use crate::names::{DropReason, Stage};
use crate::run::{Done, Run, Step, action_text, fits};
use crate::state::{AclStage, Act, EgressTag, PortMask, Untagged, Vlan, ports_of};

/// Has the rule something to write into the tag?
pub(crate) fn rewrites(act: &Act) -> bool {
    act.flags & (raw::TND_ACL_SET_VID | raw::TND_ACL_SET_PCP) != 0
}

/// The tag with what the rule writes.
pub(crate) fn rewritten(old: Tag, act: &Act) -> Tag {
    let mut tci = old.tci;
    if act.flags & raw::TND_ACL_SET_VID != 0 {
        tci = tci & 0xf000 | act.vid & 0xfff;
    }
    if act.flags & raw::TND_ACL_SET_PCP != 0 {
        tci = tci & 0x1fff | u16::from(act.pcp & 7) << 13;
    }
    Tag { tci, ..old }
}

/// The tag that a frame is looked up and leaves with, of the one that it came with and what it is classified as.
pub(crate) fn classified(came: Option<Tag>, act: &Act) -> Option<Tag> {
    if act.flags & raw::TND_ACL_SET_VID == 0 {
        return came.map(|old| rewritten(old, act));
    }
    let new = Tag {
        tpid: EtherType::VLAN.0,
        tci: 0,
    };
    (act.vid != raw::TND_ACL_VID_NONE).then(|| rewritten(came.unwrap_or(new), act))
}

impl<S: Sink> Run<'_, '_, S> {
    /// All stages of a frame that came in at a flow port. Not a part of the function that forwards for bridges and routers.
    #[inline(never)]
    pub(crate) fn by_flows(&mut self) -> Step<()> {
        if self.port_flags & raw::TND_PORT_TRAP_ALL != 0 {
            return self.trap(raw::TND_TRAP_FLOW);
        }
        let mut fid = self.flow_fid(self.eth.tag);
        self.fid = fid.unwrap_or(0);
        if self.flow_class()? {
            fid = self.flow_fid(self.flow_tag());
        }
        let decided = self.flow_list()?;
        if !decided && self.port_flags & raw::TND_PORT_FLOWS_SOURCE != 0 {
            self.flow_source(fid)?;
        }
        self.flow_station(fid)
    }

    /// The tag that it came with, or was given.
    pub(crate) fn flow_tag(&self) -> Option<Tag> {
        let came = self.eth.tag;
        self.acl
            .class
            .as_ref()
            .map_or(came, |act| classified(came, act))
    }

    /// True: it is classified.
    fn flow_class(&mut self) -> Step<bool> {
        let bind = self.st.acl.at(self.from, AclStage::FlowClass);
        if bind.is_nothing() {
            return Ok(false);
        }
        self.stage(Stage::FlowClass);
        if !self.flow_key() || bind.traps() {
            self.trap(raw::TND_TRAP_FLOW)?;
        }
        let Some((act, _)) = self.look_up_flow(bind, Stage::FlowClass) else {
            return Ok(false);
        };
        if act.action == raw::TND_ACL_TRAP {
            self.trap_as(raw::TND_TRAP_FLOW, trap_class(&act))?;
        }
        let came = self.eth.tag.map_or(0, |t| t.tci);
        let new = rewritten(Tag { tpid: 0, tci: came }, &act);
        self.classified(act, new.tci);
        if S::TRACE {
            let sets = |flag: u32, value: u16| (act.flags & flag != 0).then_some(value);
            let (vid, pcp, dscp) = (
                sets(raw::TND_ACL_SET_VID, act.vid),
                sets(raw::TND_ACL_SET_PCP, act.pcp.into()),
                sets(raw::TND_ACL_SET_DSCP, act.dscp.into()),
            );
            let named = [("VLAN", vid), ("priority", pcp), ("DSCP", dscp)];
            let mut text = format!("group {}", act.group);
            for (name, value) in named {
                match value {
                    Some(raw::TND_ACL_VID_NONE) => text += ", no tag",
                    Some(value) => text += &format!(", {name} {value}"),
                    None => {}
                }
            }
            self.trace(Stage::FlowClass, format_args!("{text}"));
        }
        Ok(true)
    }

    /// The domain whose stations it may be to.
    fn flow_fid(&self, tag: Option<Tag>) -> Option<u16> {
        let port = self.st.port(self.from)?;
        let flows = |fid: &u16| self.flow_domain(*fid).is_some();
        let own = match port.untagged {
            Untagged::Any(fid) if flows(&fid) => return Some(fid),
            Untagged::Pvid(fid) => Some(fid).filter(flows),
            _ => None,
        };
        // Whose frames are in no member's domain
        let common = |fid: &u16| self.flow_domain(*fid).is_some_and(|v| v.members.is_empty());
        let all = Some(raw::TND_FLOWS_FID).filter(common);
        if self.port_flags & raw::TND_PORT_FLOWS_UNAWARE != 0 {
            return all;
        }
        let Some(tag) = tag else {
            return own.or(all);
        };
        let vid = Some(tag.vid()).filter(|vid| !matches!(vid, 0 | 4095))?;
        let by = port.vids.as_ref().and_then(|v| v.get(usize::from(vid)));
        match by.filter(|fid| flows(fid)) {
            Some(fid) => Some(*fid).filter(|fid| own != Some(*fid)),
            None => Some(vid).filter(common),
        }
    }

    /// A domain of flow ports.
    fn flow_domain(&self, fid: u16) -> Option<&Vlan> {
        self.st.vlan(fid).filter(|v| v.has(raw::TND_VLAN_FLOWS))
    }

    /// Has a domain members, by which its frames leave?
    fn flow_members(&self, fid: Option<u16>) -> Option<u16> {
        fid.filter(|fid| {
            self.flow_domain(*fid)
                .is_some_and(|v| !v.members.is_empty())
        })
    }

    /// True: a rule has matched, and permits.
    fn flow_list(&mut self) -> Step<bool> {
        let bind = self.st.acl.at(self.from, AclStage::Flow);
        if bind.is_nothing() {
            return Ok(false);
        }
        self.stage(Stage::FlowAcl);
        if bind.traps() || !self.flow_key() {
            return self.trap(raw::TND_TRAP_FLOW);
        }
        let Some((act, ports)) = self.look_up_flow(bind, Stage::FlowAcl) else {
            return Ok(false);
        };
        if !self.passes(&act) {
            self.police(&act);
            return self.drop(DropReason::AclPoliced);
        }
        match act.action {
            raw::TND_ACL_TRAP => return self.flow_trap(&act, trap_class(&act)),
            raw::TND_ACL_DROP => {}
            // there is no tag to write into
            _ if rewrites(&act) && self.flow_tag().is_none() => return self.flow_trap(&act, None),
            // a copy would meet a list
            _ if self.mirror_is_filtered(&act) => return self.flow_trap(&act, None),
            _ => {}
        }
        self.acl.hit = Some(act);
        match act.action {
            raw::TND_ACL_DROP => self.drop(DropReason::AclFlow),
            raw::TND_ACL_REDIRECT_PORT => self.flow_to(act.target as u16, None).map(|()| true),
            raw::TND_ACL_REDIRECT_PORTS => self.flow_to_all(&ports, None).map(|()| true),
            _ => Ok(true),
        }
    }

    /// A rule hands it to the CPU, at the rate of its policer; who gets it counts and mirrors.
    fn flow_trap(&mut self, act: &Act, class: Option<u16>) -> Step<bool> {
        self.charge(act);
        self.trap_as(raw::TND_TRAP_FLOW, class)
    }

    /// A source that is not known to be at this port, is the CPU's to look at.
    fn flow_source(&mut self, fid: Option<u16>) -> Step<()> {
        self.stage(Stage::Learning);
        let (src, seen, from) = (self.eth.src, self.hint.src, self.from);
        let exact = &self.st.exact;
        let entry = fid.and_then(|fid| exact.get_mac_seen(fid, src, seen));
        let here = entry
            .map(|hit| FdbValue::unpack(hit.value))
            .is_some_and(|e| e.action == Action::Forward && e.set.is_none() && e.port == from);
        if here {
            return Ok(());
        }
        if S::TRACE {
            self.trace(Stage::Learning, format_args!("source is not known here"));
        }
        self.trap(raw::TND_TRAP_FLOW_MISS)
    }

    fn flow_station(&mut self, fid: Option<u16>) -> Step<()> {
        self.stage(Stage::L2Lookup);
        let (dst, seen) = (self.eth.dst, self.hint.dst);
        let exact = &self.st.exact;
        let Some(hit) = fid.and_then(|fid| exact.get_mac_seen(fid, dst, seen)) else {
            if S::TRACE {
                self.trace(Stage::L2Lookup, format_args!("FDB miss"));
            }
            if self.port_flags & raw::TND_PORT_FLOWS_DROP != 0 {
                return self.drop(DropReason::FlowMiss);
            }
            return self.trap(raw::TND_TRAP_FLOW_MISS);
        };
        let entry = FdbValue::unpack(hit.value);
        let set = entry.set_slot().and_then(|slot| self.st.port_sets.at(slot));
        let set = set.copied();
        if S::TRACE {
            let (action, port) = (action_text(entry.action), entry.port);
            match set {
                Some(set) => {
                    let text = format_args!("FDB hit: {action}, port set {}", set.id);
                    self.sink.trace(Stage::L2Lookup, text);
                }
                None => {
                    let text = format_args!("FDB hit: {action}, port {port}");
                    self.sink.trace(Stage::L2Lookup, text);
                }
            }
        }
        let members = self.flow_members(fid);
        match (entry.action, set) {
            (Action::Forward, Some(set)) => self.flow_to_all(&set.ports, members),
            (Action::Forward, None) => self.flow_to(entry.port, members),
            (Action::Drop, _) => self.drop(DropReason::FdbDrop),
            (Action::Trap, _) => self.trap(raw::TND_TRAP_FLOW),
        }
    }

    /// May it leave there, as a member of a domain that has some?
    pub(crate) fn flow_leaves(
        &self,
        port: u16,
        members: Option<u16>,
    ) -> Result<EgressTag, DropReason> {
        if port == self.from {
            return Err(DropReason::SamePort);
        }
        let tag = match members {
            Some(fid) => self.st.egress_tag(fid, port),
            None => Some(EgressTag::AsIs),
        };
        let tag = tag.ok_or(DropReason::NotEgressMember)?;
        let to = self.st.port(port).filter(|p| p.sends());
        let to = to.ok_or(DropReason::EgressDown)?;
        if fits(self.l2_len, to.config.mtu) {
            Ok(tag)
        } else {
            Err(DropReason::EgressOversize)
        }
    }

    fn flow_to(&mut self, port: u16, members: Option<u16>) -> Step<()> {
        self.stage(Stage::Egress);
        let tag = match self.flow_leaves(port, members) {
            Ok(tag) => tag,
            Err(reason) => return self.drop(reason),
        };
        let base = self.flow_base();
        self.flow_forms(std::iter::once(port), members, base)?;
        let how = self.flow_leaves_as(port, tag, base);
        if let Err(reason) = self.flow_goes().and_then(|()| self.flow_form(how, base)) {
            return self.drop(reason);
        }
        self.send(port);
        self.count_l2();
        Err(Done)
    }

    fn flow_to_all(&mut self, ports: &PortMask, members: Option<u16>) -> Step<()> {
        self.stage(Stage::Flood);
        let before = self.st.counters.tag_changes;
        let (mut sent, mut goes) = (0, None);
        let base = self.flow_base();
        self.flow_forms(ports_of(ports), members, base)?;
        for turn in 0..3 {
            for port in ports_of(ports) {
                let Ok(tag) = self.flow_leaves(port, members) else {
                    continue;
                };
                let how = self.flow_leaves_as(port, tag, base);
                if how.form.turn() != turn {
                    continue;
                }
                let goes = *goes.get_or_insert_with(|| self.flow_goes().is_ok());
                if goes && self.flow_form(how, base).is_ok() {
                    self.send(port);
                    sent += 1;
                }
            }
        }
        if S::TRACE {
            self.trace(Stage::Flood, format_args!("to {sent} ports"));
        }
        if sent == 0 {
            return self.drop(DropReason::NoFloodPort);
        }
        if !S::DRY {
            let changes = self.st.counters.tag_changes - before;
            self.st.counters.flood.count(sent, changes, changes);
        }
        self.count_l2();
        Err(Done)
    }

    /// The chip forwards it: what its rule counts, polices and mirrors becomes true, then what it is classified as and what
    /// the rule writes.
    fn flow_goes(&mut self) -> Result<(), DropReason> {
        let act = self.acl.hit.filter(rewrites);
        self.commit();
        if let Some(class) = self.acl.class {
            self.flow_becomes(&class)?;
        }
        if let (Some(act), Some(old)) = (act, self.flow_tag()) {
            let new = rewritten(old, &act);
            self.frame.set_tag(new.tpid, new.tci);
            self.count_tag_change();
        }
        Ok(())
    }

    /// What it is classified as becomes its own.
    fn flow_becomes(&mut self, class: &Act) -> Result<(), DropReason> {
        if class.flags & raw::TND_ACL_SET_DSCP != 0 {
            let at = self.eth.l3_offset;
            let packet = self.frame.bytes_mut().get_mut(at..).unwrap_or_default();
            match self.eth.ethertype {
                EtherType::IPV4 => rewrite::set_dscp4(packet, class.dscp),
                EtherType::IPV6 => rewrite::set_dscp6(packet, class.dscp),
                _ => {}
            }
        }
        let came = self.eth.tag;
        match (came, classified(came, class)) {
            (old, new) if old == new => return Ok(()),
            (None, Some(new)) if !self.frame.push_tag(new.tpid, new.tci) => {
                return Err(DropReason::NoHeadroom);
            }
            (Some(_), Some(new)) => self.frame.set_tag(new.tpid, new.tci),
            (Some(_), None) if !self.frame.pop_tag() => return Err(DropReason::Runt),
            _ => {}
        }
        self.count_tag_change();
        Ok(())
    }
}
