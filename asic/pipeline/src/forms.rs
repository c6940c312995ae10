//! The form in which frames of flow ports leave each port: lists at stage FLOW_EGRESS (ES0 of the VSC9953).
//!
//! ```text
//!  port, ports of a rule or of the FDB ─► a list of one of them traps? ─► CPU, as it came
//!        │ no
//!        ▼ for each that it may leave by
//!  list of this port: (port it came in by, VLAN id and priority it is classified with) ─► as it is, a tag, none
//!        │ no rule
//!        ▼
//!  the form of the domain's member, or as it is
//! ```
//!
//! Replication copies no frame: those as it is come first, then those with another tag, then those without.

use tandem_abi::raw;
use tandem_packet::{EtherType, Tag};

use crate::acl::trap_class;
use crate::flows::{classified, rewrites, rewritten};
use crate::io::Sink;
use crate::names::{DropReason, Stage};
use crate::run::{Run, Step};
use crate::state::{AclStage, EgressTag};
use crate::tag::DomainTag;

/// How a copy leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As it is on its way.
    AsIs,
    /// With this tag.
    Tag(Tag),
    /// Without one.
    Untagged,
}

impl Form {
    /// Whose turn it is among the copies of one frame: in place, a tag comes once and goes once.
    pub(crate) fn turn(self) -> u8 {
        match self {
            Form::AsIs => 0,
            Form::Tag(_) => 1,
            Form::Untagged => 2,
        }
    }

    /// That of a domain's member. The whole tag: what another copy had before it is not this one's.
    fn of_member(tag: EgressTag, base: Option<Tag>) -> Form {
        match (tag, base) {
            (EgressTag::AsIs, _) => Form::AsIs,
            (EgressTag::Untagged, _) => Form::Untagged,
            (EgressTag::Vid(vid), Some(own)) if own.vid() == vid => Form::Tag(own),
            (EgressTag::Vid(vid), _) => Form::Tag(Tag {
                tpid: EtherType::VLAN.0,
                tci: base.map_or(0, |t| t.tci & 0xf000) | vid,
            }),
        }
    }
}

/// How a copy leaves, and by which rule: list and priority.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaves {
    pub(crate) form: Form,
    rule: Option<(u32, u32)>,
}

impl<S: Sink> Run<'_, '_, S> {
    /// The tag that it has on its way: classified, and with what a rule writes.
    pub(crate) fn flow_base(&self) -> Option<Tag> {
        let class = self.flow_tag();
        match self.acl.hit.filter(rewrites) {
            Some(act) => class.map(|old| rewritten(old, &act)),
            None => class,
        }
    }

    /// A list that traps at one of the ports that it would leave by: then it is the CPU's, as it came, before any has it.
    #[inline]
    pub(crate) fn flow_forms(
        &mut self,
        ports: impl Iterator<Item = u16>,
        members: Option<u16>,
        base: Option<Tag>,
    ) -> Step<()> {
        if self.st.acl.forms_bound == 0 {
            return Ok(());
        }
        self.asked_for_forms(ports, members, base)
    }

    #[cold]
    fn asked_for_forms(
        &mut self,
        ports: impl Iterator<Item = u16>,
        members: Option<u16>,
        base: Option<Tag>,
    ) -> Step<()> {
        for port in ports {
            let bind = self.st.acl.at(port, AclStage::FlowEgress);
            if bind.is_nothing() || self.flow_leaves(port, members).is_err() {
                continue;
            }
            let rule = self.look_up_form(bind, base).map(|(_, _, act)| act);
            let rule = rule.filter(|act| act.action == raw::TND_ACL_TRAP);
            if !bind.traps() && rule.is_none() {
                continue;
            }
            self.stage(Stage::FlowEgress);
            if S::TRACE {
                let text = format_args!("the list of port {port} traps");
                self.trace(Stage::FlowEgress, text);
            }
            if let Some(hit) = self.acl.hit {
                self.charge(&hit);
            }
            self.trap_as(raw::TND_TRAP_FLOW, rule.as_ref().and_then(trap_class))?;
        }
        Ok(())
    }

    /// In which form it leaves a port where it may, as a member of a domain that has some in this one.
    #[inline]
    pub(crate) fn flow_leaves_as(&self, port: u16, member: EgressTag, base: Option<Tag>) -> Leaves {
        let plain = Leaves {
            form: Form::of_member(member, base),
            rule: None,
        };
        if self.st.acl.forms_bound == 0 {
            return plain;
        }
        let bind = self.st.acl.at(port, AclStage::FlowEgress);
        let Some((list, priority, act)) = self.look_up_form(bind, base) else {
            return plain;
        };
        let form = match classified(base, &act) {
            tag if tag == base => Form::AsIs,
            Some(tag) => Form::Tag(tag),
            None => Form::Untagged,
        };
        Leaves {
            form,
            rule: Some((list, priority)),
        }
    }

    /// The frame becomes so.
    pub(crate) fn flow_form(&mut self, how: Leaves, base: Option<Tag>) -> Result<(), DropReason> {
        if let Some((list, priority)) = how.rule {
            self.stage(Stage::FlowEgress);
            if S::TRACE {
                let text = match how.form {
                    Form::AsIs => "as it is".to_owned(),
                    Form::Tag(t) => format!("VLAN {}, priority {}", t.vid(), t.tci >> 13),
                    Form::Untagged => "no tag".to_owned(),
                };
                let text = format_args!("list {list}, rule {priority}: {text}");
                self.trace(Stage::FlowEgress, text);
            }
        }
        let own = match how.form {
            Form::AsIs => None,
            Form::Tag(_) | Form::Untagged => base,
        };
        if let (DomainTag::None, Some(own)) = (self.tag, own) {
            self.tag = DomainTag::Present(own);
        }
        match how.form {
            Form::AsIs => {}
            Form::Tag(tag) if self.tag == DomainTag::Present(tag) => {}
            Form::Tag(tag) => {
                if self.tag.in_bytes() {
                    self.frame.set_tag(tag.tpid, tag.tci);
                } else if !self.frame.push_tag(tag.tpid, tag.tci) {
                    return Err(DropReason::NoHeadroom);
                }
                self.tag = DomainTag::Present(tag);
                self.count_tag_change();
            }
            Form::Untagged if self.tag.in_bytes() => self.untag(),
            Form::Untagged => {}
        }
        Ok(())
    }
}
