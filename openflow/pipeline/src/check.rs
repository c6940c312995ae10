// SPDX-License-Identifier: Apache-2.0
//! What is refused (§6.4, §7.2.3.5, §7.2.4, §7.2.5), before anything is changed.
//!
//! A set-field action needs its field's prerequisites: from the match, or from what earlier actions of the list made of the
//! packet. For other actions the match need not say that the header is there (they do nothing where it is not), but it
//! must not say that it is not.
use crate::key::Key;
use crate::process::rank;
use crate::switch::{Config, Switch};
use tandem_openflow::model::{FlowMod, GROUP_MAX, METER_MAX};
use tandem_openflow::oxm::{VID_PRESENT, prerequisites_met};
use tandem_openflow::{Action, Error, Field, Instructions, Oxm, Version, port};

/// Fields at most once, masks where they may be, values within field and mask, prerequisites before what needs them.
pub fn matches(oxms: &[Oxm]) -> Result<(), Error> {
    for (n, o) in oxms.iter().enumerate() {
        let before = oxms.get(..n).unwrap_or_default();
        let ones = o.field.all_ones();
        if before.iter().any(|b| b.field == o.field) {
            return Err(Error::BAD_MATCH_DUP_FIELD);
        }
        if o.mask & !ones != 0 || o.mask != ones && !o.field.maskable() {
            return Err(Error::BAD_MATCH_BAD_MASK);
        }
        if o.value & !ones != 0 {
            return Err(Error::BAD_MATCH_BAD_VALUE);
        }
        if o.value & !o.mask != 0 {
            return Err(Error::BAD_MATCH_BAD_WILDCARDS);
        }
        let present = u128::from(VID_PRESENT);
        // OFPVID_NONE, or a VLAN with OFPVID_PRESENT; a mask may leave the bit out
        if o.field == Field::VlanVid
            && o.mask & present != 0
            && o.value & present == 0
            && o.value != 0
        {
            return Err(Error::BAD_MATCH_BAD_VALUE);
        }
        let seen = Seen::of_match(before);
        if !seen.meets(o.field, before) {
            return Err(Error::BAD_MATCH_BAD_PREREQ);
        }
    }
    Ok(())
}

/// What is known of a packet: that it matched, and what actions have made of it since.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    ether: Option<u16>,
    tagged: Option<bool>,
    protocol: Option<u8>,
    icmp6: Option<u8>,
    /// Nothing is known and all is allowed: the buckets of a group.
    any: bool,
}

impl Seen {
    fn of_match(oxms: &[Oxm]) -> Seen {
        let exact = |f: Field| {
            oxms.iter()
                .find(|o| o.field == f && o.mask == f.all_ones())
                .map(|o| o.value)
        };
        let present = u128::from(VID_PRESENT);
        Seen {
            ether: exact(Field::EthType).map(|v| v as u16),
            tagged: oxms
                .iter()
                .find(|o| o.field == Field::VlanVid && o.mask & present != 0)
                .map(|o| o.value & present != 0),
            protocol: exact(Field::IpProto).map(|v| v as u8),
            icmp6: exact(Field::Icmpv6Type).map(|v| v as u8),
            any: false,
        }
    }

    fn of_packet(key: &Key) -> Seen {
        Seen {
            ether: Some(key.get(Field::EthType) as u16),
            tagged: Some(key.get(Field::VlanVid) != 0),
            protocol: key.field(Field::IpProto).map(|v| v as u8),
            icmp6: key.field(Field::Icmpv6Type).map(|v| v as u8),
            any: false,
        }
    }

    fn meets(&self, field: Field, matched: &[Oxm]) -> bool {
        prerequisites_met(field, |f| match f {
            Field::EthType => self.ether.map(u128::from),
            Field::IpProto => self.protocol.map(u128::from),
            Field::Icmpv6Type => self.icmp6.map(u128::from),
            Field::VlanVid => self.tagged.map(u128::from),
            Field::InPort => matched.iter().find(|o| o.field == f).map(|o| o.value),
            _ => None,
        })
    }

    fn is_not(&self, types: &[u16]) -> bool {
        self.ether.is_some_and(|e| !types.contains(&e))
    }

    fn new_type(&mut self, ether: Option<u16>) {
        self.ether = ether;
        self.protocol = None;
        self.icmp6 = None;
    }

    /// One action's own argument, and whether it fits what is known.
    fn action(&mut self, a: &Action) -> Result<(), Error> {
        const IP: [u16; 2] = [0x0800, 0x86dd];
        const MPLS: [u16; 2] = [0x8847, 0x8848];
        let inconsistent = match *a {
            Action::PushVlan(t) => {
                if !matches!(t, 0x8100 | 0x88a8) {
                    return Err(Error::BAD_ACTION_BAD_ARGUMENT);
                }
                self.tagged = Some(true);
                false
            }
            Action::PopVlan => self.tagged.replace_none() == Some(false),
            Action::PushMpls(t) => {
                if !MPLS.contains(&t) {
                    return Err(Error::BAD_ACTION_BAD_ARGUMENT);
                }
                self.new_type(Some(t));
                false
            }
            Action::PopMpls(t) => {
                let bad = self.is_not(&MPLS);
                self.new_type(Some(t));
                bad
            }
            Action::PushPbb(t) => {
                if t != 0x88e7 {
                    return Err(Error::BAD_ACTION_BAD_ARGUMENT);
                }
                self.new_type(Some(t));
                self.tagged = Some(false);
                false
            }
            Action::PopPbb => {
                let bad = self.is_not(&[0x88e7]);
                self.new_type(None);
                self.tagged = None;
                bad
            }
            Action::SetMplsTtl(_) | Action::DecMplsTtl => self.is_not(&MPLS),
            Action::SetNwTtl(_) | Action::DecNwTtl => self.is_not(&IP),
            Action::CopyTtlIn | Action::CopyTtlOut => self.is_not(&IP) && self.is_not(&MPLS),
            Action::SetField { field, value } => return self.set_field(field, value),
            _ => false,
        };
        if inconsistent && !self.any {
            return Err(Error::BAD_ACTION_MATCH_INCONSISTENT);
        }
        Ok(())
    }

    fn set_field(&mut self, field: Field, value: u128) -> Result<(), Error> {
        if !field.settable() {
            return Err(Error::BAD_ACTION_BAD_SET_TYPE);
        }
        let vid = field == Field::VlanVid;
        if value & !field.all_ones() != 0 || vid && value & u128::from(VID_PRESENT) == 0 {
            return Err(Error::BAD_ACTION_BAD_SET_ARGUMENT);
        }
        let tag = vid && self.tagged != Some(true);
        if !self.any && (tag || !self.meets(field, &[])) {
            return Err(Error::BAD_ACTION_MATCH_INCONSISTENT);
        }
        match field {
            Field::EthType => self.new_type(Some(value as u16)),
            Field::IpProto => {
                self.protocol = Some(value as u8);
                self.icmp6 = None;
            }
            Field::Icmpv6Type => self.icmp6 = Some(value as u8),
            _ => {}
        }
        Ok(())
    }
}

/// What was there before it was forgotten.
trait ReplaceNone {
    fn replace_none(&mut self) -> Option<bool>;
}

impl ReplaceNone for Option<bool> {
    fn replace_none(&mut self) -> Option<bool> {
        self.take()
    }
}

/// Where a list of actions stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a flow or a bucket: no output to `TABLE`.
    Stored,
    /// In a packet-out.
    PacketOut,
}

impl Switch {
    fn outward(&self, a: &Action, place: Place) -> Result<(), Error> {
        match *a {
            Action::Output { port, .. } => out_port(port, place, self.config()),
            Action::Group(g) if g > GROUP_MAX || self.group(g).is_none() => {
                Err(Error::BAD_ACTION_BAD_OUT_GROUP)
            }
            Action::SetQueue(q) => {
                let known = self.ports().any(|e| e.port.queues.contains(&q));
                known.then_some(()).ok_or(Error::BAD_ACTION_BAD_QUEUE)
            }
            Action::Enqueue10 { port, queue } => {
                if port > port::MAX && port != port::IN_PORT {
                    return Err(Error::BAD_ACTION_BAD_OUT_PORT);
                }
                out_port(port, place, self.config())?;
                let known = match self.port(port) {
                    Some(e) => e.port.queues.contains(&queue),
                    None => port == port::IN_PORT,
                };
                known.then_some(()).ok_or(Error::BAD_ACTION_BAD_QUEUE)
            }
            _ => Ok(()),
        }
    }

    fn list(&self, actions: &[Action], seen: &mut Seen, place: Place) -> Result<(), Error> {
        if actions.len() > self.config().actions as usize {
            return Err(Error::BAD_ACTION_TOO_MANY);
        }
        for a in actions {
            seen.action(a)?;
            self.outward(a, place)?;
        }
        Ok(())
    }

    /// The actions as the set executes them, whatever their order in the list.
    fn set(&self, actions: &[Action], seen: &mut Seen) -> Result<(), Error> {
        let mut sorted = actions.to_vec();
        sorted.sort_by_key(|a| rank(a).unwrap_or(u8::MAX));
        self.list(&sorted, seen, Place::Stored)
    }

    /// A flow_mod's match and instructions, for a flow of `table`.
    pub(crate) fn check_flow(&self, m: &FlowMod) -> Result<(), Error> {
        let Instructions {
            meter,
            apply,
            clear: _,
            write,
            metadata: _,
            goto,
        } = &m.instructions;
        if let Some(id) = meter {
            // The standard has words for meter_mod alone: *the meter specified is invalid*, *a non-existent meter*
            if !(1..=METER_MAX).contains(id) {
                return Err(Error::METER_MOD_FAILED_INVALID_METER);
            }
            if self.meter(*id).is_none() {
                return Err(Error::METER_MOD_FAILED_UNKNOWN_METER);
            }
        }
        if let Some(to) = goto
            && (*to <= m.table || *to >= self.config().tables)
        {
            return Err(Error::BAD_INSTRUCTION_BAD_TABLE_ID);
        }
        let mut seen = Seen::of_match(&m.matching.fields);
        seen.any = self.config().version == Version::V10;
        self.list(
            apply.as_deref().unwrap_or_default(),
            &mut seen,
            Place::Stored,
        )?;
        self.set(write.as_deref().unwrap_or_default(), &mut seen)
    }

    /// A bucket's actions. What packets come is not known, so no match is asked for.
    pub(crate) fn check_bucket(&self, actions: &[Action]) -> Result<(), Error> {
        let mut seen = Seen {
            any: true,
            ..Seen::default()
        };
        self.set(actions, &mut seen)
    }

    /// A packet-out's actions, for the packet it carries.
    pub(crate) fn check_packet_out(&self, actions: &[Action], key: &Key) -> Result<(), Error> {
        let mut seen = Seen::of_packet(key);
        seen.any = self.config().version == Version::V10;
        self.list(actions, &mut seen, Place::PacketOut)
    }
}

fn out_port(number: u32, place: Place, config: &Config) -> Result<(), Error> {
    let valid = match number {
        port::TABLE => place == Place::PacketOut,
        port::IN_PORT | port::ALL | port::CONTROLLER => true,
        port::LOCAL => config.local,
        port::NORMAL => config.normal,
        port::FLOOD => config.flood,
        0 | port::ANY => false,
        n => n <= config.max_port,
    };
    valid.then_some(()).ok_or(Error::BAD_ACTION_BAD_OUT_PORT)
}
