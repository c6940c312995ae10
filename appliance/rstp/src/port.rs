// SPDX-License-Identifier: Apache-2.0
//! A port's variables, by the standard's names: 17.17 (timers), 17.19, and where each of its machines is.

use crate::bpdu::Bpdu;
use crate::config::{Link, PointToPoint, PortConfig};
use crate::machines::{
    edge, information, migration, receive, state, topology, transition, transmit,
};
use crate::priority::{PortId, Vector};
use crate::times::Times;

/// Port role (17.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The way to the root.
    Root,
    /// The LAN's way to the root.
    Designated,
    /// Another bridge is; this port would be another way to the root.
    Alternate,
    /// Another port of this very bridge is.
    Backup,
    /// Without a link, or out of service.
    Disabled,
}

impl Role {
    /// Does such a port forward, when all is settled?
    pub(crate) fn is_active(self) -> bool {
        matches!(self, Role::Root | Role::Designated)
    }
}

/// Port state (7.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// Nothing but BPDUs.
    Discarding,
    /// Stations are learned, nothing is forwarded.
    Learning,
    /// Stations are learned, frames forwarded.
    Forwarding,
}

/// `infoIs` (17.19.10): from where portPriority and portTimes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InfoIs {
    Disabled,
    Aged,
    Mine,
    Received,
}

/// The port's timers, in seconds (17.17); `txCount` is counted down with them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timers {
    pub(crate) edge_delay_while: u16,
    pub(crate) fd_while: u16,
    pub(crate) hello_when: u16,
    pub(crate) mdelay_while: u16,
    pub(crate) rb_while: u16,
    pub(crate) rcvd_info_while: u16,
    pub(crate) rr_while: u16,
    pub(crate) tc_while: u16,
}

/// Where the machines of a port are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct States {
    pub(crate) prx: receive::State,
    pub(crate) ppm: migration::State,
    pub(crate) bdm: edge::State,
    pub(crate) ptx: transmit::State,
    pub(crate) pim: information::State,
    pub(crate) prt: transition::State,
    pub(crate) pst: state::State,
    pub(crate) tcm: topology::State,
}

/// What has been counted of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// BPDUs that were sent.
    pub sent: u64,
    /// BPDUs that were received.
    pub received: u64,
    /// Frames that were no BPDU, or the port's own.
    pub refused: u64,
    /// Times that it began to forward.
    pub forwarded: u64,
}

/// A port: its settings, its link, its variables.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) number: u16,
    pub(crate) config: PortConfig,
    pub(crate) link: Option<Link>,
    pub(crate) err_disabled: bool,
    pub(crate) counters: Counters,
    /// The BPDU that `rcvdBPDU`, and then `rcvdMsg`, is about.
    pub(crate) bpdu: Option<Bpdu>,
    pub(crate) timers: Timers,
    pub(crate) states: States,

    pub(crate) agree: bool,
    pub(crate) agreed: bool,
    pub(crate) designated_priority: Vector,
    pub(crate) designated_times: Times,
    pub(crate) disputed: bool,
    pub(crate) fdb_flush: bool,
    pub(crate) forward: bool,
    pub(crate) forwarding: bool,
    pub(crate) info_is: InfoIs,
    pub(crate) learn: bool,
    pub(crate) learning: bool,
    pub(crate) mcheck: bool,
    pub(crate) msg_priority: Vector,
    pub(crate) msg_times: Times,
    pub(crate) new_info: bool,
    pub(crate) oper_edge: bool,
    pub(crate) port_priority: Vector,
    pub(crate) port_times: Times,
    pub(crate) proposed: bool,
    pub(crate) proposing: bool,
    pub(crate) rcvd_bpdu: bool,
    pub(crate) rcvd_msg: bool,
    pub(crate) rcvd_rstp: bool,
    pub(crate) rcvd_stp: bool,
    pub(crate) rcvd_tc: bool,
    pub(crate) rcvd_tc_ack: bool,
    pub(crate) rcvd_tcn: bool,
    pub(crate) re_root: bool,
    pub(crate) reselect: bool,
    pub(crate) role: Role,
    pub(crate) selected: bool,
    pub(crate) selected_role: Role,
    pub(crate) send_rstp: bool,
    pub(crate) sync: bool,
    pub(crate) synced: bool,
    pub(crate) tc_ack: bool,
    pub(crate) tc_prop: bool,
    pub(crate) tx_count: u8,
    pub(crate) updt_info: bool,
}

impl Port {
    /// A port before the machines' BEGIN, which sets what is not set here.
    pub(crate) fn new(number: u16, config: PortConfig) -> Port {
        Port {
            number,
            config,
            link: None,
            err_disabled: false,
            counters: Counters::default(),
            bpdu: None,
            timers: Timers::default(),
            states: States {
                prx: receive::State::Discard,
                ppm: migration::State::CheckingRstp,
                bdm: edge::State::NotEdge,
                ptx: transmit::State::Idle,
                pim: information::State::Disabled,
                prt: transition::State::DisablePort,
                pst: state::State::Discarding,
                tcm: topology::State::Inactive,
            },
            agree: false,
            agreed: false,
            designated_priority: Vector::default(),
            designated_times: Times::default(),
            disputed: false,
            fdb_flush: false,
            forward: false,
            forwarding: false,
            info_is: InfoIs::Disabled,
            learn: false,
            learning: false,
            mcheck: false,
            msg_priority: Vector::default(),
            msg_times: Times::default(),
            new_info: false,
            oper_edge: false,
            port_priority: Vector::default(),
            port_times: Times::default(),
            proposed: false,
            proposing: false,
            rcvd_bpdu: false,
            rcvd_msg: false,
            rcvd_rstp: false,
            rcvd_stp: false,
            rcvd_tc: false,
            rcvd_tc_ack: false,
            rcvd_tcn: false,
            re_root: false,
            reselect: false,
            role: Role::Disabled,
            selected: false,
            selected_role: Role::Disabled,
            send_rstp: true,
            sync: false,
            synced: false,
            tc_ack: false,
            tc_prop: false,
            tx_count: 0,
            updt_info: false,
        }
    }

    /// `portEnabled` (17.19.18).
    pub(crate) fn enabled(&self) -> bool {
        self.link.is_some() && !self.err_disabled
    }

    /// `portId`.
    pub(crate) fn id(&self) -> PortId {
        PortId::new(self.config.priority, self.number)
    }

    /// `PortPathCost`.
    pub(crate) fn cost(&self) -> u32 {
        let by_speed = || self.link.map_or(crate::config::MOST_COST, |l| l.cost());
        self.config.cost.unwrap_or_else(by_speed)
    }

    /// `operPointToPointMAC` (6.4.3).
    pub(crate) fn point_to_point(&self) -> bool {
        match self.config.point_to_point {
            PointToPoint::Auto => self.link.is_some_and(|l| l.full_duplex),
            PointToPoint::Yes => true,
            PointToPoint::No => false,
        }
    }

    /// Roles are to be selected anew.
    pub(crate) fn ask_for_selection(&mut self) {
        self.reselect = true;
        self.selected = false;
    }

    /// What qualifies most transitions of the machines behind role selection.
    pub(crate) fn settled(&self) -> bool {
        self.selected && !self.updt_info
    }

    /// What the port does with frames.
    pub(crate) fn state(&self) -> PortState {
        match (self.learning, self.forwarding) {
            (_, true) => PortState::Forwarding,
            (true, false) => PortState::Learning,
            (false, false) => PortState::Discarding,
        }
    }
}
