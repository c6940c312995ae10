// SPDX-License-Identifier: Apache-2.0
//! The spanning tree's ports are the bridge's: what it says of a port the kernel is told, and told again where the kernel
//! itself has said something else.
//!
//! The bridge has no spanning tree of its own (`stp_state 0`): that of the kernel is the one of 1998, and its third way,
//! states by somebody else, begins with a program that the kernel runs, in the first network namespace alone. Without one a
//! port of which the carrier comes forwards at once, and so does every port that is *blocking* then. So a port that discards is
//! *listening*, which the kernel leaves alone, and *locked*: nobody who comes in is known there, whatever else it is until
//! this process has heard of its carrier.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tandem_linux::netlink::tc::Tc;
use tandem_linux::netlink::{
    Dump, Filter, FilterAction, FilterKind, FlowerKey, Hook, Link, Object, PortIs, Requests,
};
use tandem_rstp::PortState;
use tandem_swstack::tree::{Member, Ports};

use crate::plan::Board;

/// The group of bridges.
pub const BRIDGES: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0];
/// Behind switchd's own programs.
const PRIORITY: u16 = 2;
/// For all ethertypes.
const ETH_P_ALL: u16 = 3;
/// To the CPU, and there not to the bridge: `TC_ACT_TRAP`.
const TRAP: i32 = 8;

/// `BR_STATE_*` of a state.
pub(crate) fn number(state: PortState) -> u8 {
    match state {
        PortState::Discarding => 1,
        PortState::Learning => 2,
        PortState::Forwarding => 3,
    }
}

/// What is to be said of a port that is so, in this order: it opens last, and closes first.
pub(crate) fn orders(state: PortState) -> [PortIs; 2] {
    let is = PortIs::State(number(state));
    match state {
        PortState::Discarding => [is, PortIs::Locked(true)],
        _ => [PortIs::Locked(false), is],
    }
}

/// The filter that keeps BPDUs of a port from being forwarded: the chip traps them, packet sockets have them, the bridge not.
pub(crate) fn filter(ifindex: u32) -> Filter {
    let key = FlowerKey {
        dst_mac: (BRIDGES, [u8::MAX; 6]),
        ..FlowerKey::default()
    };
    Filter {
        ifindex,
        hook: Hook::Ingress,
        chain: 0,
        priority: PRIORITY,
        protocol: ETH_P_ALL,
        handle: 1,
        name: "flower".into(),
        whole: true,
        kind: FilterKind::Flower {
            key: Box::new(key),
            actions: vec![FilterAction::Decide(TRAP)],
            skip_hw: false,
        },
    }
}

/// Puts such a filter at a port, or takes it away.
pub(crate) fn keep_bpdus(ifindex: u32, on: bool) -> Result<(), String> {
    let mut tc = Tc::open().map_err(|e| e.to_string())?;
    let done = match on {
        true => tc
            .ensure_clsact(ifindex)
            .and_then(|_| tc.put_filter(&filter(ifindex))),
        false => tc.remove_filter(&filter(ifindex)),
    };
    done.map_err(|e| e.to_string())
}

struct Inner {
    requests: Requests,
    states: BTreeMap<u16, PortState>,
}

/// The states of the bridge's ports; by one network namespace's kernel.
#[derive(Clone)]
pub struct States {
    board: Board,
    inner: Arc<Mutex<Inner>>,
}

/// How a port's link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLink {
    /// Its number.
    pub port: u16,
    /// Its netdev.
    pub ifindex: u32,
    /// Is it up, and has it carrier?
    pub up: bool,
}

impl States {
    /// Of this thread's network namespace. Nothing is said yet.
    ///
    /// # Errors
    /// One line.
    pub fn open(board: Board) -> Result<States, String> {
        let inner = Inner {
            requests: Requests::open().map_err(|e| e.to_string())?,
            states: BTreeMap::new(),
        };
        Ok(States {
            board,
            inner: Arc::new(Mutex::new(inner)),
        })
    }

    /// The ports as the tree knows them.
    #[must_use]
    pub fn members(&self) -> Vec<Member> {
        let member = |p: &(u16, String, [u8; 6], u32)| {
            Some(Member {
                number: p.0,
                name: self.board.name(p.0)?,
                mac: p.2,
                mbps: p.3,
            })
        };
        self.board.ports.iter().filter_map(member).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self, name: &str) -> Option<u16> {
        let port = self.board.ports.iter().find(|p| p.1 == name)?;
        Some(port.0)
    }

    /// How links are, and whether the kernel has given a port another state than it is to have: then it is told again.
    ///
    /// # Errors
    /// One line.
    pub fn look(&self) -> Result<Vec<PortLink>, String> {
        let mut inner = self.lock();
        let mut all = Vec::new();
        for link in links(&mut inner.requests)? {
            let Some(port) = self.number(&link.name) else {
                continue;
            };
            let up = link.admin_up() && link.carrier();
            let is = link.brport.as_ref().map(|b| (b.state, b.locked));
            let state = inner.states.get(&port).copied();
            if let Some(state) = state
                && differs(state, up, is)
            {
                say(&mut inner.requests, &link.name, link.index, state);
            }
            all.push(PortLink {
                port,
                ifindex: link.index,
                up,
            });
        }
        Ok(all)
    }
}

/// Whether a port is otherwise than it is to be: where it has no carrier the kernel has the say in its state.
fn differs(wanted: PortState, up: bool, is: Option<(u8, bool)>) -> bool {
    let locked = wanted == PortState::Discarding;
    is.is_some_and(|(state, lock)| lock != locked || up && state != number(wanted))
}

fn links(requests: &mut Requests) -> Result<Vec<Link>, String> {
    let all = requests.objects(Dump::Links).map_err(|e| e.to_string())?;
    let link = |o| match o {
        Object::Link(l) => Some(l),
        _ => None,
    };
    Ok(all.into_iter().filter_map(link).collect())
}

fn say(requests: &mut Requests, name: &str, ifindex: u32, state: PortState) {
    for is in orders(state) {
        match requests.bridge_port(ifindex, is) {
            // without carrier it is closed already, and told again when that comes
            Err(e) if e.errno == libc::ENETDOWN => {}
            Err(e) => tracing::warn!("spanning tree: {name}: {e}"),
            Ok(()) => {}
        }
    }
}

impl Ports for States {
    fn set(&self, port: u16, state: PortState) -> bool {
        let Some(name) = self.board.netdev(port) else {
            return false;
        };
        let mut inner = self.lock();
        let was = inner.states.insert(port, state);
        if was == Some(state) {
            return false;
        }
        let found = links(&mut inner.requests).map(|all| all.into_iter().find(|l| l.name == name));
        match found {
            Ok(Some(link)) => say(&mut inner.requests, name, link.index, state),
            Ok(None) => tracing::warn!("spanning tree: {name} is not there"),
            Err(e) => tracing::warn!("spanning tree: {name}: {e}"),
        }
        true
    }

    fn forget(&self, port: u16) {
        let Some(name) = self.board.netdev(port) else {
            return;
        };
        let mut inner = self.lock();
        if let Err(e) = forget(&mut inner.requests, name) {
            tracing::warn!("spanning tree: {name}: {e}");
        }
    }
}

/// Forgets what was learned behind a port.
fn forget(requests: &mut Requests, name: &str) -> Result<(), String> {
    let all = links(requests)?;
    let Some(port) = all.iter().find(|l| l.name == name) else {
        return Ok(());
    };
    let found = requests.objects(Dump::Fdb).map_err(|e| e.to_string())?;
    for o in found {
        let Object::Fdb(e) = o else { continue };
        let learned = e.vlan != 0 && !crate::netlink::stays(&e);
        if e.ifindex == port.index && learned {
            match requests.fdb_del(e.ifindex, &e.mac, e.vlan) {
                Err(e) if !e.is_gone() => return Err(e.to_string()),
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_closes_first_and_opens_last() {
        use PortState::{Discarding, Forwarding, Learning};
        // never blocking, which the kernel would open by itself
        assert_eq!(orders(Discarding), [PortIs::State(1), PortIs::Locked(true)]);
        assert_eq!(orders(Learning), [PortIs::Locked(false), PortIs::State(2)]);
        assert_eq!(
            orders(Forwarding),
            [PortIs::Locked(false), PortIs::State(3)]
        );
        // what the kernel has made of it when its carrier came
        assert!(differs(Discarding, true, Some((3, true))));
        assert!(!differs(Discarding, false, Some((0, true))));
        assert!(differs(Discarding, false, Some((0, false))));
        assert!(differs(Forwarding, true, Some((1, false))));
        assert!(!differs(Forwarding, true, Some((3, false))));
        assert!(!differs(Forwarding, true, None), "it is in no bridge");
    }
}
