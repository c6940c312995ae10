// SPDX-License-Identifier: Apache-2.0
//! Port Role Transition state machine (17.29): from a role to what the port may do, as fast as
//! the neighbours agree.

use super::{edge_delay, forward_delay, fwd_delay, hello_time, max_age, rstp_version};
use crate::bridge::Bridge;
use crate::port::{Port, Role};

/// Where the machine waits. What it passes through at once (ROOT_AGREED, DESIGNATED_PROPOSE, …) is part of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::enum_variant_names)] // the standard's names
pub(crate) enum State {
    DisablePort,
    DisabledPort,
    RootPort,
    DesignatedPort,
    BlockPort,
    AlternatePort,
}

/// INIT_PORT and DISABLE_PORT.
pub(crate) fn begin(p: &mut Port) {
    p.role = Role::Disabled;
    p.learn = false;
    p.forward = false;
    p.synced = false;
    p.sync = true;
    p.re_root = true;
    p.timers.rr_while = fwd_delay(p);
    p.timers.fd_while = max_age(p);
    p.timers.rb_while = 0;
    p.states.prt = State::DisablePort;
}

pub(crate) fn step(b: &mut Bridge, i: usize) -> bool {
    let p = &mut b.ports[i];
    if !p.settled() {
        return false;
    }
    if p.role != p.selected_role {
        new_role(p);
        return true;
    }
    match p.states.prt {
        State::DisablePort => disabling(p),
        State::DisabledPort => disabled(p),
        State::RootPort => root(b, i),
        State::DesignatedPort => designated(p),
        State::BlockPort => blocking(p),
        State::AlternatePort => alternate(b, i),
    }
}

fn new_role(p: &mut Port) {
    p.role = p.selected_role;
    match p.role {
        Role::Disabled => {
            p.states.prt = State::DisablePort;
            p.learn = false;
            p.forward = false;
        }
        Role::Root => {
            p.states.prt = State::RootPort;
            p.timers.rr_while = fwd_delay(p);
        }
        Role::Designated => p.states.prt = State::DesignatedPort,
        Role::Alternate | Role::Backup => {
            p.states.prt = State::BlockPort;
            p.learn = false;
            p.forward = false;
        }
    }
}

fn disabling(p: &mut Port) -> bool {
    if p.learning || p.forwarding {
        return false;
    }
    p.states.prt = State::DisabledPort;
    settle_disabled(p);
    true
}

fn settle_disabled(p: &mut Port) {
    p.timers.fd_while = max_age(p);
    p.synced = true;
    p.timers.rr_while = 0;
    p.sync = false;
    p.re_root = false;
}

fn disabled(p: &mut Port) -> bool {
    if p.timers.fd_while != max_age(p) || p.sync || p.re_root || !p.synced {
        settle_disabled(p);
        return true;
    }
    false
}

fn root(b: &mut Bridge, i: usize) -> bool {
    let rapid = rstp_version(b.config.version);
    let p = &b.ports[i];
    if p.proposed && !p.agree {
        // ROOT_PROPOSED
        set_sync_tree(b);
        b.ports[i].proposed = false;
        return true;
    }
    if p.proposed && p.agree || !p.agree && all_synced(b) {
        // ROOT_AGREED
        let p = &mut b.ports[i];
        p.proposed = false;
        p.sync = false;
        p.agree = true;
        p.new_info = true;
        return true;
    }
    if !p.forward && !p.re_root {
        // REROOT
        for p in &mut b.ports {
            p.re_root = true; // setReRootTree (17.21.15)
        }
        return true;
    }
    let may = p.timers.fd_while == 0 || rapid && p.timers.rb_while == 0 && re_rooted(b, i);
    let p = &mut b.ports[i];
    if may && p.learn && !p.forward {
        // ROOT_FORWARD
        p.timers.fd_while = 0;
        p.forward = true;
        return true;
    }
    if may && !p.learn {
        // ROOT_LEARN
        p.timers.fd_while = forward_delay(p);
        p.learn = true;
        return true;
    }
    if p.re_root && p.forward {
        // REROOTED
        p.re_root = false;
        return true;
    }
    if p.timers.rr_while != fwd_delay(p) {
        p.timers.rr_while = fwd_delay(p);
        return true;
    }
    false
}

fn designated(p: &mut Port) -> bool {
    if !p.forward && !p.agreed && !p.proposing && !p.oper_edge {
        // DESIGNATED_PROPOSE
        p.proposing = true;
        p.timers.edge_delay_while = edge_delay(p);
        p.new_info = true;
        return true;
    }
    if !p.synced && (!p.learning && !p.forwarding || p.agreed || p.oper_edge) || p.sync && p.synced
    {
        // DESIGNATED_SYNCED
        p.timers.rr_while = 0;
        p.synced = true;
        p.sync = false;
        return true;
    }
    if p.timers.rr_while == 0 && p.re_root {
        // DESIGNATED_RETIRED
        p.re_root = false;
        return true;
    }
    if (p.sync && !p.synced || p.re_root && p.timers.rr_while != 0 || p.disputed)
        && !p.oper_edge
        && (p.learn || p.forward)
    {
        // DESIGNATED_DISCARD
        p.learn = false;
        p.forward = false;
        p.disputed = false;
        p.timers.fd_while = forward_delay(p);
        return true;
    }
    let may = (p.timers.fd_while == 0 || p.agreed || p.oper_edge)
        && (p.timers.rr_while == 0 || !p.re_root)
        && !p.sync;
    if may && p.learn && !p.forward {
        // DESIGNATED_FORWARD
        p.forward = true;
        p.timers.fd_while = 0;
        p.agreed = p.send_rstp;
        return true;
    }
    if may && !p.learn {
        // DESIGNATED_LEARN
        p.learn = true;
        p.timers.fd_while = forward_delay(p);
        return true;
    }
    false
}

fn blocking(p: &mut Port) -> bool {
    if p.learning || p.forwarding {
        return false;
    }
    p.states.prt = State::AlternatePort;
    settle_alternate(p);
    true
}

fn settle_alternate(p: &mut Port) {
    p.timers.fd_while = forward_delay(p);
    p.synced = true;
    p.timers.rr_while = 0;
    p.sync = false;
    p.re_root = false;
}

fn alternate(b: &mut Bridge, i: usize) -> bool {
    let p = &b.ports[i];
    if p.proposed && !p.agree {
        // ALTERNATE_PROPOSED
        set_sync_tree(b);
        b.ports[i].proposed = false;
        return true;
    }
    if p.proposed && p.agree || !p.agree && all_synced(b) {
        // ALTERNATE_AGREED
        let p = &mut b.ports[i];
        p.proposed = false;
        p.agree = true;
        p.new_info = true;
        return true;
    }
    let p = &mut b.ports[i];
    if p.timers.fd_while != forward_delay(p) || p.sync || p.re_root || !p.synced {
        settle_alternate(p);
        return true;
    }
    if p.role == Role::Backup && p.timers.rb_while != 2 * hello_time(p) {
        // BACKUP_PORT
        p.timers.rb_while = 2 * hello_time(p);
        return true;
    }
    false
}

/// 17.21.14.
fn set_sync_tree(b: &mut Bridge) {
    for p in &mut b.ports {
        p.sync = true;
    }
}

/// `allSynced` (17.20.3), in the later standard's words: roles that are about to change are not synchronized.
fn all_synced(b: &Bridge) -> bool {
    b.ports
        .iter()
        .all(|p| p.selected && p.role == p.selected_role && (p.role == Role::Root || p.synced))
}

/// `reRooted` (17.20.10).
fn re_rooted(b: &Bridge, i: usize) -> bool {
    b.ports
        .iter()
        .enumerate()
        .all(|(j, p)| j == i || p.timers.rr_while == 0)
}
