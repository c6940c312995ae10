// SPDX-License-Identifier: Apache-2.0
//! Actions of 1.0 (1.0 §5.2.4).

use crate::oxm::VID_PRESENT;
use crate::wire::{Head, Put, Reader, Result};
use crate::{Action, Error, Field, port};

const OUTPUT: u16 = 0;
const SET_VLAN_VID: u16 = 1;
const SET_VLAN_PCP: u16 = 2;
const STRIP_VLAN: u16 = 3;
const SET_DL_SRC: u16 = 4;
const SET_DL_DST: u16 = 5;
const SET_NW_SRC: u16 = 6;
const SET_NW_DST: u16 = 7;
const SET_NW_TOS: u16 = 8;
const SET_TP_SRC: u16 = 9;
const SET_TP_DST: u16 = 10;
const ENQUEUE: u16 = 11;
const VENDOR: u16 = 0xffff;
/// A bit for each.
pub(super) const ALL: u32 = (1 << 12) - 1;

/// All of `r`. `table`: may an output name [`port::TABLE`], as it may in a packet-out alone?
pub(super) fn decode_actions(r: &mut Reader<'_>, table: bool) -> Result<Vec<Action>> {
    r.all(|r| decode_action(r, table))
}

fn decode_action(r: &mut Reader<'_>, table: bool) -> Result<Action> {
    let here = *r;
    let mut head = Head::take(r, Error::BAD_ACTION_BAD_LEN, "length of an action")?;
    let kind = head.kind;
    let wanted = match kind {
        SET_DL_SRC | SET_DL_DST | ENQUEUE => 16,
        _ => 8,
    };
    if kind == VENDOR {
        let whose = u64::from(head.body.u32()?);
        return Err(here.bad(
            Error::BAD_ACTION_BAD_EXPERIMENTER,
            "vendor of an action",
            None,
            whose,
        ));
    }
    if kind > ENQUEUE {
        let error = Error::BAD_ACTION_BAD_TYPE;
        return Err(here.bad(error, "type of an action", None, u64::from(kind)));
    }
    head.exactly(wanted)?;
    let mut body = head.body;
    let argument = |what: &'static str, most: u64, got: u64| {
        here.bad(Error::BAD_ACTION_BAD_ARGUMENT, what, most, got)
    };
    let to = |number: u16| {
        let to = port::from10(number);
        // 1.0 §5.2.4: a queue is of a real port, or of the one that the packet came from
        let has_queues = to <= port::MAX || to == port::IN_PORT;
        let fits = (kind == OUTPUT || has_queues) && (to != port::TABLE || table);
        if port::can_output(to) && fits {
            return Ok(to);
        }
        let error = Error::BAD_ACTION_BAD_OUT_PORT;
        Err(here.bad(error, "port of an output", 0xff00, u64::from(number)))
    };
    Ok(match kind {
        OUTPUT => Action::Output {
            port: to(body.u16()?)?,
            max_len: body.u16()?,
        },
        SET_VLAN_VID => {
            let vid = body.u16()?;
            if vid > 0xfff {
                return Err(argument("VLAN to set", 0xfff, u64::from(vid)));
            }
            Action::SetVlanVid10(vid)
        }
        SET_VLAN_PCP => {
            let pcp = body.u8()?;
            if pcp > 7 {
                return Err(argument("VLAN priority to set", 7, u64::from(pcp)));
            }
            Action::SetVlanPcp10(pcp)
        }
        STRIP_VLAN => Action::StripVlan10,
        SET_DL_SRC => Action::SetField {
            field: Field::EthSrc,
            value: body.number(6)?,
        },
        SET_DL_DST => Action::SetField {
            field: Field::EthDst,
            value: body.number(6)?,
        },
        SET_NW_SRC | SET_NW_DST => Action::SetNw10 {
            dst: kind == SET_NW_DST,
            addr: body.u32()?,
        },
        SET_NW_TOS => {
            let tos = body.u8()?;
            if tos & 3 != 0 {
                return Err(argument("TOS to set", 0xfc, u64::from(tos)));
            }
            Action::SetNwTos10(tos)
        }
        SET_TP_SRC | SET_TP_DST => Action::SetTp10 {
            dst: kind == SET_TP_DST,
            port: body.u16()?,
        },
        _ => {
            let port = to(body.u16()?)?;
            body.skip(6)?;
            Action::Enqueue10 {
                port,
                queue: body.u32()?,
            }
        }
    })
}

/// Those that 1.0 has something for.
pub(super) fn encode_actions(actions: &[Action], out: &mut Vec<u8>) {
    for &action in actions {
        encode_action(action, out);
    }
}

fn encode_action(action: Action, out: &mut Vec<u8>) {
    match action {
        Action::Output { port, max_len } => {
            head(OUTPUT, 8, out);
            out.put16(port::to10(port).unwrap_or(0xffff));
            out.put16(max_len);
        }
        Action::SetVlanVid10(vid) => half(SET_VLAN_VID, vid, out),
        Action::SetVlanPcp10(pcp) => byte(SET_VLAN_PCP, pcp, out),
        Action::StripVlan10 | Action::PopVlan => half(STRIP_VLAN, 0, out),
        Action::SetNw10 { dst, addr } => {
            head(if dst { SET_NW_DST } else { SET_NW_SRC }, 8, out);
            out.put32(addr);
        }
        Action::SetNwTos10(tos) => byte(SET_NW_TOS, tos, out),
        Action::SetTp10 { dst, port } => half(if dst { SET_TP_DST } else { SET_TP_SRC }, port, out),
        Action::Enqueue10 { port, queue } => {
            head(ENQUEUE, 16, out);
            out.put16(port::to10(port).unwrap_or(0xffff));
            out.zeros(6);
            out.put32(queue);
        }
        Action::SetField { field, value } => encode_set(field, value, out),
        // 1.3's alone
        Action::CopyTtlOut
        | Action::CopyTtlIn
        | Action::SetMplsTtl(_)
        | Action::DecMplsTtl
        | Action::PushVlan(_)
        | Action::PushMpls(_)
        | Action::PopMpls(_)
        | Action::SetQueue(_)
        | Action::Group(_)
        | Action::SetNwTtl(_)
        | Action::DecNwTtl
        | Action::PushPbb(_)
        | Action::PopPbb => {}
    }
}

fn encode_set(field: Field, value: u128, out: &mut Vec<u8>) {
    let dst = matches!(field, Field::Ipv4Dst | Field::TcpDst | Field::UdpDst);
    match field {
        Field::EthSrc | Field::EthDst => {
            let kind = if field == Field::EthSrc {
                SET_DL_SRC
            } else {
                SET_DL_DST
            };
            head(kind, 16, out);
            out.put_number(value, 6);
            out.zeros(6);
        }
        Field::VlanVid => half(SET_VLAN_VID, value as u16 & !VID_PRESENT, out),
        Field::VlanPcp => byte(SET_VLAN_PCP, value as u8, out),
        Field::IpDscp => byte(SET_NW_TOS, (value as u8) << 2, out),
        Field::Ipv4Src | Field::Ipv4Dst => {
            let addr = value as u32;
            encode_action(Action::SetNw10 { dst, addr }, out);
        }
        Field::TcpSrc | Field::TcpDst | Field::UdpSrc | Field::UdpDst => {
            let port = value as u16;
            encode_action(Action::SetTp10 { dst, port }, out);
        }
        _ => {}
    }
}

fn head(kind: u16, length: u16, out: &mut Vec<u8>) {
    out.put16(kind);
    out.put16(length);
}

fn half(kind: u16, value: u16, out: &mut Vec<u8>) {
    head(kind, 8, out);
    out.put16(value);
    out.zeros(2);
}

fn byte(kind: u16, value: u8, out: &mut Vec<u8>) {
    head(kind, 8, out);
    out.put8(value);
    out.zeros(3);
}
