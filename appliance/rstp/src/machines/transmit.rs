// SPDX-License-Identifier: Apache-2.0
//! Port Transmit state machine (17.26), txConfig, txRstp, txTcn (17.21.19 to 17.21.21).

use super::hello_time;
use crate::bpdu::{Bpdu, Info, Rapid, SentRole};
use crate::bridge::{Action, Bridge};
use crate::port::{Port, Role};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Init,
    Idle,
}

pub(crate) fn begin(p: &mut Port) {
    p.states.ptx = State::Init;
    p.new_info = true;
    p.tx_count = 0;
}

/// One transition out of IDLE, and what follows it back to IDLE without a condition. A port without a link says
/// nothing, as role Disabled has no BPDU.
pub(crate) fn step(b: &mut Bridge, i: usize) -> bool {
    let hold = b.config.tx_hold_count;
    let p = &mut b.ports[i];
    if p.states.ptx == State::Init {
        idle(p);
        return true;
    }
    if !p.settled() || !p.enabled() {
        return false;
    }
    if p.timers.hello_when == 0 {
        // TRANSMIT_PERIODIC
        p.new_info |= p.role == Role::Designated || p.role == Role::Root && p.timers.tc_while != 0;
        idle(p);
        return true;
    }
    if !p.new_info || p.tx_count >= hold {
        return false;
    }
    let bpdu = match (p.send_rstp, p.role) {
        (true, _) => Bpdu::Rst(info(p), rapid(p)),
        (false, Role::Designated) => Bpdu::Config(Info {
            topology_change_ack: p.tc_ack,
            ..info(p)
        }),
        (false, Role::Root) => Bpdu::Tcn,
        (false, _) => return false,
    };
    p.new_info = false;
    p.tx_count += 1;
    if bpdu != Bpdu::Tcn {
        p.tc_ack = false;
    }
    p.counters.sent += 1;
    let action = Action::Send {
        port: p.number,
        frame: bpdu.to_frame(p.config.mac),
    };
    idle(p);
    b.actions.push(action);
    true
}

fn idle(p: &mut Port) {
    p.states.ptx = State::Idle;
    p.timers.hello_when = hello_time(p);
}

fn info(p: &Port) -> Info {
    Info {
        vector: p.designated_priority,
        times: p.designated_times,
        topology_change: p.timers.tc_while != 0,
        topology_change_ack: false,
    }
}

fn rapid(p: &Port) -> Rapid {
    Rapid {
        role: match p.role {
            Role::Root => SentRole::Root,
            Role::Designated => SentRole::Designated,
            Role::Alternate | Role::Backup => SentRole::AlternateBackup,
            Role::Disabled => SentRole::Unknown,
        },
        proposal: p.proposing,
        agreement: p.agree,
        learning: p.learning,
        forwarding: p.forwarding,
    }
}
