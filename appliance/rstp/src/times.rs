// SPDX-License-Identifier: Apache-2.0
//! Times as BPDUs carry them: 9.2.8, 17.18.4.

/// One second, in what BPDUs count in.
pub const SECOND: u16 = 256;

/// Message age and timer parameters, in 1/256 of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Times {
    /// How old what is said is: a second for each bridge on its way.
    pub message_age: u16,
    /// How old it may become.
    pub max_age: u16,
    /// From one BPDU to the next.
    pub hello: u16,
    /// For each step towards forwarding that nobody has agreed to.
    pub forward_delay: u16,
}

impl Times {
    /// Of a bridge that is the root, from whole seconds.
    pub fn of_root(max_age: u8, hello: u8, forward_delay: u8) -> Times {
        let of = |seconds: u8| u16::from(seconds) * SECOND;
        Times {
            message_age: 0,
            max_age: of(max_age),
            hello: of(hello),
            forward_delay: of(forward_delay),
        }
    }

    /// A second older, in whole seconds (17.21.25 d, 17.21.23).
    pub fn aged(self) -> Times {
        let age = self.message_age.saturating_add(SECOND);
        Times {
            message_age: age.saturating_add(SECOND / 2) / SECOND * SECOND,
            ..self
        }
    }

    /// Is what is a second older still no older than it may be?
    pub fn lives(self) -> bool {
        self.aged().message_age <= self.max_age
    }
}

/// Whole seconds for a timer that counts them: not shorter than what was said.
pub fn seconds(time: u16) -> u16 {
    time.div_ceil(SECOND)
}
