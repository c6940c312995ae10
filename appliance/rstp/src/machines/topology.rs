// SPDX-License-Identifier: Apache-2.0
//! Topology Change state machine (17.31): who was where is forgotten.

use super::hello_time;
use crate::bridge::{Action, Bridge};
use crate::port::{Port, Role};
use crate::times::{Times, seconds};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Inactive,
    Learning,
    Active,
}

pub(crate) fn begin(b: &mut Bridge, i: usize) {
    inactive(b, i);
}

pub(crate) fn step(b: &mut Bridge, i: usize) -> bool {
    let times = b.root_times;
    let p = &mut b.ports[i];
    let noticed = p.rcvd_tc || p.rcvd_tcn || p.rcvd_tc_ack || p.tc_prop;
    match p.states.tcm {
        State::Inactive if p.learn && !p.fdb_flush => learning(p),
        State::Learning if p.role.is_active() && p.forward && !p.oper_edge => {
            // DETECTED
            p.states.tcm = State::Active;
            new_tc_while(p, &times);
            p.new_info = true;
            set_tc_prop_tree(b, i);
            b.topology_changed(i);
        }
        State::Learning if !(p.role.is_active() || p.learn || p.learning || noticed) => {
            inactive(b, i);
        }
        State::Learning if noticed => learning(p),
        State::Active if !p.role.is_active() || p.oper_edge => learning(p),
        State::Active if p.rcvd_tcn => {
            // NOTIFIED_TCN, and from there to NOTIFIED_TC
            let first = b.ports.iter().all(|p| p.timers.tc_while == 0);
            new_tc_while(&mut b.ports[i], &times);
            notified_tc(b, i, first);
        }
        State::Active if p.rcvd_tc => {
            let first = b.ports.iter().all(|p| p.timers.tc_while == 0);
            notified_tc(b, i, first);
        }
        State::Active if p.tc_prop => {
            // PROPAGATING
            new_tc_while(p, &times);
            p.tc_prop = false;
            flush(b, i);
        }
        State::Active if p.rcvd_tc_ack => {
            // ACKNOWLEDGED
            p.timers.tc_while = 0;
            p.rcvd_tc_ack = false;
        }
        _ => return false,
    }
    true
}

fn inactive(b: &mut Bridge, i: usize) {
    let p = &mut b.ports[i];
    p.states.tcm = State::Inactive;
    p.timers.tc_while = 0;
    p.tc_ack = false;
    flush(b, i);
}

fn learning(p: &mut Port) {
    p.states.tcm = State::Learning;
    p.rcvd_tc = false;
    p.rcvd_tcn = false;
    p.rcvd_tc_ack = false;
    p.tc_prop = false;
}

/// `first`: no port told others of a change yet.
fn notified_tc(b: &mut Bridge, i: usize, first: bool) {
    let p = &mut b.ports[i];
    p.rcvd_tcn = false;
    p.rcvd_tc = false;
    p.tc_ack |= p.role == Role::Designated;
    set_tc_prop_tree(b, i);
    if first {
        b.topology_changed(i);
    }
}

/// `newTcWhile` (17.21.7).
fn new_tc_while(p: &mut Port, root: &Times) {
    if p.timers.tc_while != 0 {
        return;
    }
    match p.send_rstp {
        true => {
            p.timers.tc_while = hello_time(p) + 1;
            p.new_info = true;
        }
        false => p.timers.tc_while = seconds(root.max_age) + seconds(root.forward_delay),
    }
}

/// `setTcPropTree` (17.21.18): all but the port that it is known by.
fn set_tc_prop_tree(b: &mut Bridge, from: usize) {
    for (i, p) in b.ports.iter_mut().enumerate() {
        p.tc_prop |= i != from;
    }
}

/// `fdbFlush` (17.19.7): set, and cleared at once. Whoever carries out the actions forgets the stations before anything
/// that comes behind; a bridge of version 0 would let them age fast, and does it this way too.
fn flush(b: &mut Bridge, i: usize) {
    let p = &mut b.ports[i];
    p.fdb_flush = false;
    let port = p.number;
    b.actions.push(Action::Flush { port });
}
