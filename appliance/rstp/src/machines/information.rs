// SPDX-License-Identifier: Apache-2.0
//! Port Information state machine (17.27): what a BPDU says, against what the port has.

use super::rstp_version;
use crate::bpdu::{Bpdu, Rapid, SentRole};
use crate::config::Version;
use crate::port::{InfoIs, Port};
use crate::times::seconds;

/// Where the machine waits; what it does at once on its way (UPDATE, RECEIVE and the five behind it) is part of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Disabled,
    Aged,
    Current,
}

/// `rcvdInfo`: the answers of rcvInfo (17.21.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RcvdInfo {
    SuperiorDesignated,
    RepeatedDesignated,
    InferiorDesignated,
    InferiorRootAlternate,
    Other,
}

pub(crate) fn begin(p: &mut Port) {
    disabled(p);
}

pub(crate) fn step(p: &mut Port, version: Version) -> bool {
    if !p.enabled() && p.info_is != InfoIs::Disabled {
        disabled(p);
        return true;
    }
    match p.states.pim {
        State::Disabled if p.rcvd_msg => disabled(p),
        State::Disabled if p.enabled() => aged(p),
        State::Aged | State::Current if p.selected && p.updt_info => update(p),
        State::Current if p.rcvd_msg && !p.updt_info => receive(p, version),
        State::Current
            if p.info_is == InfoIs::Received
                && p.timers.rcvd_info_while == 0
                && !p.updt_info
                && !p.rcvd_msg =>
        {
            aged(p);
        }
        _ => return false,
    }
    true
}

fn disabled(p: &mut Port) {
    p.states.pim = State::Disabled;
    p.rcvd_msg = false;
    p.proposing = false;
    p.proposed = false;
    p.agree = false;
    p.agreed = false;
    p.timers.rcvd_info_while = 0;
    p.info_is = InfoIs::Disabled;
    p.ask_for_selection();
}

fn aged(p: &mut Port) {
    p.states.pim = State::Aged;
    p.info_is = InfoIs::Aged;
    p.ask_for_selection();
}

fn update(p: &mut Port) {
    p.states.pim = State::Current;
    p.proposing = false;
    p.proposed = false;
    // betterorsameinfo (17.21.1) of what is its own
    p.agreed &= p.info_is == InfoIs::Mine && p.designated_priority <= p.port_priority;
    p.synced &= p.agreed;
    p.port_priority = p.designated_priority;
    p.port_times = p.designated_times;
    p.updt_info = false;
    p.info_is = InfoIs::Mine;
    p.new_info = true;
}

fn receive(p: &mut Port, version: Version) {
    p.rcvd_msg = false;
    let Some(bpdu) = p.bpdu.take() else { return };
    match rcv_info(p, &bpdu) {
        RcvdInfo::SuperiorDesignated => {
            p.agreed = false;
            p.proposing = false;
            record_proposal(p, &bpdu);
            set_tc_flags(p, &bpdu);
            p.agree &= p.info_is == InfoIs::Received && p.msg_priority <= p.port_priority;
            record_agreement(p, &bpdu, version);
            p.synced &= p.agreed;
            // recordPriority, recordTimes (17.21.12, 17.21.13)
            p.port_priority = p.msg_priority;
            p.port_times = p.msg_times;
            updt_rcvd_info_while(p);
            p.info_is = InfoIs::Received;
            p.ask_for_selection();
        }
        RcvdInfo::RepeatedDesignated => {
            record_proposal(p, &bpdu);
            set_tc_flags(p, &bpdu);
            record_agreement(p, &bpdu, version);
            updt_rcvd_info_while(p);
        }
        RcvdInfo::InferiorDesignated => record_dispute(p, &bpdu),
        RcvdInfo::InferiorRootAlternate => {
            record_agreement(p, &bpdu, version);
            set_tc_flags(p, &bpdu);
        }
        // a TCN BPDU says nothing of priorities, but that
        RcvdInfo::Other if bpdu == Bpdu::Tcn => set_tc_flags(p, &bpdu),
        RcvdInfo::Other => {}
    }
}

/// The role that a BPDU's sender has; a Config BPDU's is designated.
fn sent_role(bpdu: &Bpdu) -> Option<SentRole> {
    match bpdu {
        Bpdu::Config(_) => Some(SentRole::Designated),
        Bpdu::Rst(_, Rapid { role, .. }) => Some(match role {
            SentRole::Unknown => SentRole::Designated,
            role => *role,
        }),
        Bpdu::Tcn => None,
    }
}

/// `rcvInfo` (17.21.8): also takes msgPriority and msgTimes.
fn rcv_info(p: &mut Port, bpdu: &Bpdu) -> RcvdInfo {
    let (Some(info), Some(role)) = (bpdu.info(), sent_role(bpdu)) else {
        return RcvdInfo::Other;
    };
    p.msg_priority = info.vector;
    p.msg_times = info.times;
    let same = p.msg_priority == p.port_priority;
    if role != SentRole::Designated {
        return match p.msg_priority >= p.port_priority {
            true => RcvdInfo::InferiorRootAlternate,
            false => RcvdInfo::Other,
        };
    }
    let superior = match same {
        true => p.msg_times != p.port_times,
        false => p.msg_priority.supersedes(&p.port_priority),
    };
    if superior {
        RcvdInfo::SuperiorDesignated
    } else if same && p.info_is == InfoIs::Received {
        RcvdInfo::RepeatedDesignated
    } else {
        RcvdInfo::InferiorDesignated
    }
}

/// 17.21.11.
fn record_proposal(p: &mut Port, bpdu: &Bpdu) {
    if let Bpdu::Rst(_, rapid) = bpdu {
        p.proposed |= rapid.proposal && sent_role(bpdu) == Some(SentRole::Designated);
    }
}

/// 17.21.9.
fn record_agreement(p: &mut Port, bpdu: &Bpdu, version: Version) {
    let agreement = matches!(bpdu, Bpdu::Rst(_, rapid) if rapid.agreement);
    p.agreed = agreement && rstp_version(version) && p.point_to_point();
    p.proposing &= !p.agreed;
}

/// 17.21.10: a port that learns on the same LAN, and takes less for the best that there is: it does not hear this one.
fn record_dispute(p: &mut Port, bpdu: &Bpdu) {
    if matches!(bpdu, Bpdu::Rst(_, rapid) if rapid.learning) {
        p.disputed = true;
        p.agreed = false;
    }
}

/// 17.21.17.
fn set_tc_flags(p: &mut Port, bpdu: &Bpdu) {
    match bpdu {
        Bpdu::Tcn => p.rcvd_tcn = true,
        Bpdu::Config(info) | Bpdu::Rst(info, _) => {
            p.rcvd_tc |= info.topology_change;
            p.rcvd_tc_ack |= info.topology_change_ack;
        }
    }
}

/// 17.21.23.
fn updt_rcvd_info_while(p: &mut Port) {
    p.timers.rcvd_info_while = match p.port_times.lives() {
        true => 3 * seconds(p.port_times.hello).max(1),
        false => 0,
    };
}
