// SPDX-License-Identifier: Apache-2.0
//! Port State Transition state machine (17.30): what the roles decide is done.

use crate::bridge::{Action, Bridge};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Discarding,
    Learning,
    Forwarding,
}

pub(crate) fn begin(b: &mut Bridge, i: usize) {
    discarding(b, i);
}

pub(crate) fn step(b: &mut Bridge, i: usize) -> bool {
    let p = &mut b.ports[i];
    match p.states.pst {
        State::Discarding if p.learn => {
            p.states.pst = State::Learning;
            p.learning = true;
            say(b, i);
        }
        State::Learning if !p.learn => discarding(b, i),
        State::Learning if p.forward => {
            p.states.pst = State::Forwarding;
            p.forwarding = true;
            p.counters.forwarded += 1;
            say(b, i);
        }
        State::Forwarding if !p.forward => discarding(b, i),
        _ => return false,
    }
    true
}

fn discarding(b: &mut Bridge, i: usize) {
    let p = &mut b.ports[i];
    p.states.pst = State::Discarding;
    p.learning = false;
    p.forwarding = false;
    say(b, i);
}

fn say(b: &mut Bridge, i: usize) {
    let p = &b.ports[i];
    let (port, state) = (p.number, p.state());
    b.actions.push(Action::State { port, state });
}
