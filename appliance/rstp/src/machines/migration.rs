// SPDX-License-Identifier: Apache-2.0
//! Port Protocol Migration state machine (17.24): the version that the neighbours speak.

use super::{MIGRATE_TIME, rstp_version};
use crate::config::Version;
use crate::port::Port;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    CheckingRstp,
    SelectingStp,
    Sensing,
}

pub(crate) fn begin(p: &mut Port, version: Version) {
    checking_rstp(p, version);
}

pub(crate) fn step(p: &mut Port, version: Version) -> bool {
    match p.states.ppm {
        State::CheckingRstp if p.timers.mdelay_while != MIGRATE_TIME && !p.enabled() => {
            checking_rstp(p, version);
        }
        State::CheckingRstp if p.timers.mdelay_while == 0 => sensing(p),
        State::SelectingStp if p.timers.mdelay_while == 0 || !p.enabled() || p.mcheck => sensing(p),
        State::Sensing
            if !p.enabled() || p.mcheck || rstp_version(version) && !p.send_rstp && p.rcvd_rstp =>
        {
            checking_rstp(p, version);
        }
        State::Sensing if p.send_rstp && p.rcvd_stp => {
            p.states.ppm = State::SelectingStp;
            p.send_rstp = false;
            p.timers.mdelay_while = MIGRATE_TIME;
        }
        _ => return false,
    }
    true
}

fn checking_rstp(p: &mut Port, version: Version) {
    p.states.ppm = State::CheckingRstp;
    p.mcheck = false;
    p.send_rstp = rstp_version(version);
    p.timers.mdelay_while = MIGRATE_TIME;
}

fn sensing(p: &mut Port) {
    p.states.ppm = State::Sensing;
    p.rcvd_rstp = false;
    p.rcvd_stp = false;
}
