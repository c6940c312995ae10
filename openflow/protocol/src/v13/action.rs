// SPDX-License-Identifier: Apache-2.0
//! Actions (§7.2.5).

use super::oxm::{decode_set, put_header};
use crate::model::GROUP_MAX;
use crate::oxm::VID_PRESENT;
use crate::wire::{Head, Put, Reader, Result};
use crate::{Action, Error, Field, port};

pub(super) const OUTPUT: u16 = 0;
const COPY_TTL_OUT: u16 = 11;
const COPY_TTL_IN: u16 = 12;
const SET_MPLS_TTL: u16 = 15;
const DEC_MPLS_TTL: u16 = 16;
const PUSH_VLAN: u16 = 17;
const POP_VLAN: u16 = 18;
const PUSH_MPLS: u16 = 19;
const POP_MPLS: u16 = 20;
const SET_QUEUE: u16 = 21;
const GROUP: u16 = 22;
const SET_NW_TTL: u16 = 23;
const DEC_NW_TTL: u16 = 24;
const SET_FIELD: u16 = 25;
const PUSH_PBB: u16 = 26;
const POP_PBB: u16 = 27;
const EXPERIMENTER: u16 = 0xffff;

/// All of `r`. `table`: may an output name [`port::TABLE`], as it may in a packet-out alone (§7.2.5.1)?
pub(super) fn decode_actions(r: &mut Reader<'_>, table: bool) -> Result<Vec<Action>> {
    r.all(|r| decode_action(r, table))
}

fn decode_action(r: &mut Reader<'_>, table: bool) -> Result<Action> {
    let here = *r;
    let mut head = Head::take(r, Error::BAD_ACTION_BAD_LEN, "length of an action")?;
    let kind = head.kind;
    let argument = |what: &'static str, wanted: u64, got: u64| {
        here.bad(Error::BAD_ACTION_BAD_ARGUMENT, what, wanted, got)
    };
    if kind == OUTPUT {
        head.exactly(16)?;
        let (to, max_len) = (head.body.u32()?, head.body.u16()?);
        if !port::can_output(to) || (to == port::TABLE && !table) {
            let error = Error::BAD_ACTION_BAD_OUT_PORT;
            return Err(here.bad(
                error,
                "port of an output",
                u64::from(port::MAX),
                u64::from(to),
            ));
        }
        return Ok(Action::Output { port: to, max_len });
    }
    if kind == SET_FIELD {
        let (field, value) = decode_set(&mut head.body)?;
        return Ok(Action::SetField { field, value });
    }
    if kind == EXPERIMENTER {
        let whose = u64::from(head.body.u32()?);
        return Err(here.bad(
            Error::BAD_ACTION_BAD_EXPERIMENTER,
            "experimenter of an action",
            None,
            whose,
        ));
    }
    let action = match kind {
        COPY_TTL_OUT => Action::CopyTtlOut,
        COPY_TTL_IN => Action::CopyTtlIn,
        SET_MPLS_TTL => Action::SetMplsTtl(head.body.u8()?),
        DEC_MPLS_TTL => Action::DecMplsTtl,
        PUSH_VLAN => {
            let ether = head.body.u16()?;
            // §7.2.5.6
            if ether != 0x8100 && ether != 0x88a8 {
                return Err(argument(
                    "EtherType of a VLAN to push",
                    0x8100,
                    u64::from(ether),
                ));
            }
            Action::PushVlan(ether)
        }
        POP_VLAN => Action::PopVlan,
        PUSH_MPLS => {
            let ether = head.body.u16()?;
            // §7.2.5.6
            if ether != 0x8847 && ether != 0x8848 {
                return Err(argument(
                    "EtherType of MPLS to push",
                    0x8847,
                    u64::from(ether),
                ));
            }
            Action::PushMpls(ether)
        }
        POP_MPLS => Action::PopMpls(head.body.u16()?),
        SET_QUEUE => Action::SetQueue(head.body.u32()?),
        GROUP => {
            let group = head.body.u32()?;
            // §7.2.5.2: a group that can be there
            if group > GROUP_MAX {
                let error = Error::BAD_ACTION_BAD_OUT_GROUP;
                return Err(here.bad(
                    error,
                    "group of an action",
                    u64::from(GROUP_MAX),
                    u64::from(group),
                ));
            }
            Action::Group(group)
        }
        SET_NW_TTL => Action::SetNwTtl(head.body.u8()?),
        DEC_NW_TTL => Action::DecNwTtl,
        PUSH_PBB => {
            let ether = head.body.u16()?;
            // §7.2.5.6
            if ether != 0x88e7 {
                return Err(argument(
                    "EtherType of PBB to push",
                    0x88e7,
                    u64::from(ether),
                ));
            }
            Action::PushPbb(ether)
        }
        POP_PBB => Action::PopPbb,
        _ => {
            return Err(here.bad(
                Error::BAD_ACTION_BAD_TYPE,
                "type of an action",
                None,
                u64::from(kind),
            ));
        }
    };
    head.exactly(8)?;
    Ok(action)
}

/// All, with 1.0's by what is nearest to them.
pub(super) fn encode_actions(actions: &[Action], out: &mut Vec<u8>) {
    for &action in actions {
        encode_action(action, out);
    }
}

fn encode_action(action: Action, out: &mut Vec<u8>) {
    match action {
        Action::Output { port, max_len } => {
            out.put16(OUTPUT);
            out.put16(16);
            out.put32(port);
            out.put16(max_len);
            out.zeros(6);
        }
        Action::CopyTtlOut => word(COPY_TTL_OUT, 0, out),
        Action::CopyTtlIn => word(COPY_TTL_IN, 0, out),
        Action::SetMplsTtl(ttl) => word(SET_MPLS_TTL, u32::from(ttl) << 24, out),
        Action::DecMplsTtl => word(DEC_MPLS_TTL, 0, out),
        Action::PushVlan(ether) => word(PUSH_VLAN, u32::from(ether) << 16, out),
        Action::PopVlan | Action::StripVlan10 => word(POP_VLAN, 0, out),
        Action::PushMpls(ether) => word(PUSH_MPLS, u32::from(ether) << 16, out),
        Action::PopMpls(ether) => word(POP_MPLS, u32::from(ether) << 16, out),
        Action::SetQueue(queue) => word(SET_QUEUE, queue, out),
        Action::Group(group) => word(GROUP, group, out),
        Action::SetNwTtl(ttl) => word(SET_NW_TTL, u32::from(ttl) << 24, out),
        Action::DecNwTtl => word(DEC_NW_TTL, 0, out),
        Action::PushPbb(ether) => word(PUSH_PBB, u32::from(ether) << 16, out),
        Action::PopPbb => word(POP_PBB, 0, out),
        Action::SetField { field, value } => set(field, value, out),
        Action::SetVlanVid10(vid) => set(Field::VlanVid, u128::from(vid | VID_PRESENT), out),
        Action::SetVlanPcp10(pcp) => set(Field::VlanPcp, u128::from(pcp), out),
        Action::SetNw10 { dst, addr } => {
            let field = if dst { Field::Ipv4Dst } else { Field::Ipv4Src };
            set(field, u128::from(addr), out);
        }
        Action::SetNwTos10(tos) => set(Field::IpDscp, u128::from(tos >> 2), out),
        Action::SetTp10 { dst, port } => {
            let field = if dst { Field::TcpDst } else { Field::TcpSrc };
            set(field, u128::from(port), out);
        }
        Action::Enqueue10 { port, queue } => {
            word(SET_QUEUE, queue, out);
            encode_action(Action::Output { port, max_len: 0 }, out);
        }
    }
}

/// An action of 8 bytes.
fn word(kind: u16, body: u32, out: &mut Vec<u8>) {
    out.put16(kind);
    out.put16(8);
    out.put32(body);
}

fn set(field: Field, value: u128, out: &mut Vec<u8>) {
    let start = out.len();
    out.put16(SET_FIELD);
    out.put16(0);
    put_header(field, false, out);
    out.put_number(value, field.bytes());
    out.pad8(start);
    out.put_len(start + 2, start);
}
