// SPDX-License-Identifier: Apache-2.0
//! Port Receive state machine (17.23).

use super::MIGRATE_TIME;
use crate::bpdu::Bpdu;
use crate::port::Port;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Discard,
    Receive,
}

pub(crate) fn begin(p: &mut Port) {
    discard(p);
}

pub(crate) fn step(p: &mut Port) -> bool {
    if !p.enabled() {
        if p.rcvd_bpdu || p.timers.edge_delay_while != MIGRATE_TIME {
            discard(p);
            return true;
        }
        return false;
    }
    let may = match p.states.prx {
        State::Discard => true,
        State::Receive => !p.rcvd_msg,
    };
    if may && p.rcvd_bpdu {
        receive(p);
        return true;
    }
    false
}

fn discard(p: &mut Port) {
    p.states.prx = State::Discard;
    p.rcvd_bpdu = false;
    p.rcvd_rstp = false;
    p.rcvd_stp = false;
    p.rcvd_msg = false;
    p.timers.edge_delay_while = MIGRATE_TIME;
}

fn receive(p: &mut Port) {
    p.states.prx = State::Receive;
    // updtBPDUVersion (17.21.22)
    match p.bpdu {
        Some(Bpdu::Rst(..)) => p.rcvd_rstp = true,
        Some(Bpdu::Config(_) | Bpdu::Tcn) => p.rcvd_stp = true,
        None => {}
    }
    p.oper_edge = false;
    p.rcvd_bpdu = false;
    p.rcvd_msg = true;
    p.timers.edge_delay_while = MIGRATE_TIME;
}
