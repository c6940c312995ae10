// SPDX-License-Identifier: Apache-2.0
//! The spanning tree's ports are the database's.

use std::sync::Arc;

use tandem_linux::eventfd::EventFd;
use tandem_rstp::PortState;
use tandem_swstack::tree::{Member, Ports, Tree};
use tandem_vlans::{State, Switch};

use crate::engine::Board;

struct OfDatabase(Switch);

impl Ports for OfDatabase {
    fn set(&self, port: u16, state: PortState) -> bool {
        let state = match state {
            PortState::Discarding => State::Blocking,
            PortState::Learning => State::Learning,
            PortState::Forwarding => State::Forwarding,
        };
        self.0.change(|d| d.set_state(port, state))
    }

    fn forget(&self, port: u16) {
        self.0.change(|d| d.forget_stations(None, Some(port)));
    }
}

/// Without a tree. `wake` is the packet thread's.
pub(crate) fn tree(board: &Board, switch: Switch, wake: Arc<EventFd>) -> Tree {
    let member = |p: &(u16, String, [u8; 6], u32)| {
        Some(Member {
            number: p.0,
            name: board.name(p.0)?,
            mac: p.2,
            mbps: p.3,
        })
    };
    let members = board.ports.iter().filter_map(member).collect();
    Tree::new(board.mac, members, Box::new(OfDatabase(switch)), wake)
}
