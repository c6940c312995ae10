// SPDX-License-Identifier: Apache-2.0
//! Who gets frames to groups that the CPU floods, and what snooping itself asks.

use tandem_linux::clock;
use tandem_sal::SalError;
use tandem_swchip::{Onward, To};
use tandem_vlans::Database;

use super::Io;

/// Of the ways of a frame to a group, those that are meant: a message's as snooping has it, members of all others.
pub(super) fn narrow(
    d: &Database,
    vid: u16,
    bare: &[u8],
    onward: Option<&Onward>,
    ways: &mut Vec<(u16, bool)>,
) {
    match onward {
        Some(Onward::All) => {}
        Some(Onward::Ports(some)) => ways.retain(|(port, _)| some.contains(port)),
        None => d.to_members(vid, bare, ways),
    }
}

impl Io {
    /// What snooping asks: by the ports of a VLAN, and its device, whose groups are members as well.
    pub(super) fn queries(&mut self) -> Result<bool, SalError> {
        let now = clock::now_ns();
        let next = self.p.snoop.tick(now, self.p.tree.flushed());
        self.tick = self.tick.into_iter().chain(next).min();
        let mut any = false;
        while let Some((vid, to, frame)) = self.p.snoop.next_out() {
            any = true;
            let Some(mac) = frame.first_chunk::<6>() else {
                continue;
            };
            let mut ways = self.p.switch.ask(|d| d.ways(vid, *mac));
            match to {
                To::Port(one) => ways.retain(|(port, _)| *port == one),
                To::All => {
                    if let Some(l) = self.line(vid) {
                        // of a device that is down nobody is a member
                        let _ = l.tap.write(&frame);
                    }
                }
            }
            self.send(vid, &frame, &ways)?;
        }
        Ok(any)
    }
}
