// SPDX-License-Identifier: Apache-2.0
//! Bridge Detection state machine (17.25): is there no bridge behind the port?

use crate::port::Port;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Edge,
    NotEdge,
}

pub(crate) fn begin(p: &mut Port) {
    match p.config.admin_edge {
        true => edge(p),
        false => not_edge(p),
    }
}

pub(crate) fn step(p: &mut Port) -> bool {
    match p.states.bdm {
        State::Edge if !p.enabled() && !p.config.admin_edge || !p.oper_edge => not_edge(p),
        State::NotEdge if !p.enabled() && p.config.admin_edge => edge(p),
        State::NotEdge
            if p.timers.edge_delay_while == 0
                && p.config.auto_edge
                && p.send_rstp
                && p.proposing =>
        {
            edge(p);
        }
        _ => return false,
    }
    true
}

fn edge(p: &mut Port) {
    p.states.bdm = State::Edge;
    p.oper_edge = true;
}

fn not_edge(p: &mut Port) {
    p.states.bdm = State::NotEdge;
    p.oper_edge = false;
}
