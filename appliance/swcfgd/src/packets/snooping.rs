// SPDX-License-Identifier: Apache-2.0
//! Who gets frames to groups that the CPU floods, and what snooping itself asks.

use std::sync::atomic::Ordering::Relaxed;

use tandem_linux::clock;
use tandem_sal::SalError;
use tandem_swchip::{Onward, To, from_nobody};
use tandem_vlans::Database;

use super::{Io, ROOM};

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
        let (mut any, room) = (false, self.p.ports.min(ROOM));
        // as many VLANs as there are ask at once: what the ring has no room for waits, or the last ones were never asked
        while self.p.snoop.has_out() {
            if let Some(sal) = &mut self.sal
                && sal.tx_free()? < room
            {
                self.tx_blocked = true;
                self.p.stats.tx_full.fetch_add(1, Relaxed);
                break;
            }
            let Some((vid, to, frame)) = self.p.snoop.next_out() else {
                break;
            };
            any = true;
            let Some(mac) = frame.first_chunk::<6>() else {
                continue;
            };
            let mut ways = self.p.switch.ask(|d| d.ways(vid, *mac));
            match to {
                To::Port(one) => ways.retain(|(port, _)| *port == one),
                To::All => {
                    if let Some(l) = self.line(vid) {
                        // of a device that is down nobody is a member; and what is from its own address it does not hear
                        let own = from_nobody(&frame);
                        let _ = l.tap.write(own.as_ref().unwrap_or(&frame));
                    }
                }
            }
            self.send(vid, &frame, &ways)?;
        }
        Ok(any)
    }
}
