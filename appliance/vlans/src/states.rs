// SPDX-License-Identifier: Apache-2.0
//! What ports do with frames, as a spanning tree has it.

use tandem_store::model::{BR_STATE_FORWARDING, BR_STATE_LEARNING};

use crate::database::{Database, What};

/// `BR_STATE_BLOCKING` of linux/if_bridge.h.
const BR_STATE_BLOCKING: u8 = 4;

/// What a port does with frames, by a spanning tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Nothing but what is for the link alone.
    Blocking,
    /// Stations are learned.
    Learning,
    /// All.
    #[default]
    Forwarding,
}

impl State {
    /// `BR_STATE_*`.
    pub(crate) fn number(self) -> u8 {
        match self {
            State::Blocking => BR_STATE_BLOCKING,
            State::Learning => BR_STATE_LEARNING,
            State::Forwarding => BR_STATE_FORWARDING,
        }
    }
}

impl Database {
    /// What a spanning tree makes a port do. True: it did something else before.
    pub fn set_state(&mut self, port: u16, state: State) -> bool {
        let was = match state {
            State::Forwarding => self.states.remove(&port),
            _ => self.states.insert(port, state),
        };
        let other = was.unwrap_or_default() != state;
        if other {
            self.touch(What::Port(port));
        }
        other
    }

    /// There is no spanning tree: all ports forward.
    pub fn open_all(&mut self) {
        for port in std::mem::take(&mut self.states).into_keys() {
            self.touch(What::Port(port));
        }
    }

    /// What a port does with frames.
    #[must_use]
    pub fn state(&self, port: u16) -> State {
        self.states.get(&port).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, Port};
    use tandem_store::model::Object;

    fn said(d: &Database, port: u16) -> u8 {
        match d.object(What::Port(port)) {
            Some(Object::Link(l)) => l.bridge_port.unwrap().state,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_state_is_said_and_kept_to() {
        let mut d = Database::new([2, 0, 0, 0, 0, 9]);
        let port = |n: u16| Port {
            name: format!("swp{n}"),
            mac: [2, 0, 0, 0, 1, n as u8],
            mtu: 1500,
            up: true,
            mode: Mode::Access(1),
        };
        for n in [1, 2] {
            d.set_port(n, port(n)).unwrap();
        }
        d.untouch();
        let (a, b, all) = ([2, 0, 0, 0, 2, 1], [2, 0, 0, 0, 2, 2], [0xff; 6]);
        assert_eq!((d.state(1), said(&d, 1)), (State::Forwarding, 3));
        assert!(!d.set_state(1, State::Forwarding) && !d.is_touched());
        assert!(d.set_state(1, State::Blocking));
        assert_eq!(
            (said(&d, 1), said(&d, 2), d.take()),
            (4, 3, Some(What::Port(1)))
        );
        assert!(!d.set_state(1, State::Blocking));
        // the CPU sends nothing there, and hears nobody
        assert_eq!(d.ways(1, all), [(2, false)]);
        d.heard(1, 1, a, 0);
        assert_eq!(d.stations().count(), 0);
        assert!(d.set_state(1, State::Learning));
        assert_eq!((said(&d, 1), d.ways(1, all)), (2, vec![(2, false)]));
        d.heard(1, 1, b, 0);
        assert_eq!((d.stations().count(), d.ways(1, b)), (1, vec![]));
        assert!(d.set_state(1, State::Forwarding));
        assert_eq!((said(&d, 1), d.ways(1, b)), (3, vec![(1, false)]));
        // set anew by the configuration, a port keeps what the tree has made of it
        d.set_state(1, State::Blocking);
        d.set_port(1, port(1)).unwrap();
        assert_eq!(said(&d, 1), 4);
    }
}
