// SPDX-License-Identifier: Apache-2.0
//! Words of flows that write, and a packet for them.

use super::universe::FIRST;
use tandem_ofpipeline::flows::blank;
use tandem_openflow::model::{FlowCommand, FlowMod};
use tandem_openflow::{Action, Field, Instructions, Match, Oxm};

/// Of the VLAN id: there is a tag.
pub const PRESENT: u128 = 0x1000;
pub const PUSH: Action = Action::PushVlan(0x8100);

/// A new flow of table 0.
pub fn flow(priority: u16, fields: &[Oxm], apply: &[Action]) -> FlowMod {
    let mut fields = fields.to_vec();
    fields.sort_by_key(|o| o.field);
    FlowMod {
        command: FlowCommand::Add,
        priority,
        matching: Match {
            fields,
            exact: false,
        },
        instructions: Instructions {
            apply: Some(apply.to_vec()),
            ..Instructions::default()
        },
        ..blank()
    }
}

pub fn out(port: u32) -> Action {
    Action::Output {
        port: FIRST + port - 1,
        max_len: 0,
    }
}

pub fn set(field: Field, value: u128) -> Action {
    Action::SetField { field, value }
}

pub fn vid(v: u128) -> Action {
    set(Field::VlanVid, PRESENT | v)
}

/// An IPv4 packet over Ethernet, with a tag if there is one.
pub fn frame(tci: Option<u16>) -> Vec<u8> {
    let mut f = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    if let Some(tci) = tci {
        f.extend([0x81, 0]);
        f.extend(tci.to_be_bytes());
    }
    f.extend([8, 0]);
    let ip = [
        0x45, 0x03, 0, 28, 0, 0, 0, 0, 64, 17, 0x66, 0xcc, 10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 0, 9, 0,
        8, 0, 0,
    ];
    f.extend(ip);
    f.resize(64, 0);
    f
}
