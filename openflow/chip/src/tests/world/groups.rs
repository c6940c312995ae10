// SPDX-License-Identifier: Apache-2.0
//! What of the world is of groups.

use super::World;
use tandem_ofpipeline::Switch;
use tandem_openflow::model::{Bucket, GROUP_ANY, GroupCommand, GroupMod, GroupType};
use tandem_openflow::port;

/// As it is, whatever ports are live from here on.
pub(super) fn frozen(switch: &Switch) -> Switch {
    let mut s = switch.clone();
    for n in switch.groups() {
        let (g, _) = switch.group(n).unwrap();
        let Some(taken) = g.taken() else { continue };
        let bare = |b: &Bucket| Bucket {
            weight: 0,
            watch_port: port::ANY,
            watch_group: GROUP_ANY,
            actions: b.actions.clone(),
        };
        let m = GroupMod {
            command: GroupCommand::Modify,
            kind: GroupType::All,
            group: n,
            buckets: g.buckets[taken].iter().map(bare).collect(),
        };
        s.group_mod(&m, 0, &mut Vec::new()).unwrap();
    }
    s
}

impl World {
    /// A cable is pulled, or put in: everywhere at once.
    pub fn link(&mut self, port: u16, up: bool) {
        self.down.retain(|p| *p != port);
        if !up {
            self.down.push(port);
        }
        let at = usize::from(port) - 1;
        self.ports[at].live = up;
        let (now, number) = (self.now, self.ports[at].number);
        // The cable is what it is for every state; groups follow it when the chip is told
        self.states = self.states.iter().map(frozen).collect();
        for s in [&mut self.soft, &mut self.whole]
            .into_iter()
            .chain(&mut self.states)
        {
            // some of the states may be of when it was there
            if let Some(p) = s.port(number) {
                let mut p = p.port.clone();
                p.live = up;
                s.set_port(p, now);
            }
        }
        self.log.push(format!("link {port} {up}"));
        let base = self.base;
        self.inner(|i| {
            let _ = i.firmware.state.set_link(base + port, up);
        });
        self.ports_changed();
    }

    /// The tables are those of an earlier process.
    pub fn lose_counts(&mut self) {
        self.chip.restore_counts(None, &self.soft, self.now);
    }

    pub(super) fn regroup(&mut self) {
        let groups = self.soft.take_regrouped();
        self.chip.regroup(&self.soft, &groups);
    }

    pub(super) fn check_groups(&mut self) {
        for n in self.whole.groups() {
            let both = (
                self.soft.group(n).unwrap().1,
                self.whole.group(n).unwrap().1,
            );
            let buckets = both.0.buckets.iter().zip(&both.1.buckets).zip(0..);
            let buckets = buckets.map(|((s, w), b)| (Some(b), s, w));
            let all = [(None, &both.0.count, &both.1.count)].into_iter();
            for (bucket, s, w) in all.chain(buckets) {
                let (packets, bytes) = self.chip.group_counted(n, bucket);
                let right = packets.is_none_or(|p| p + s.packets == w.packets)
                    && bytes.is_none_or(|b| b + s.bytes == w.bytes);
                let said = (n, bucket, packets, bytes, s, w);
                assert!(right, "{said:?}\n{:#?}\n{}", self.flows(), self.history());
                self.seen.counted += u64::from(packets.is_some_and(|p| p > 0));
            }
        }
    }
}
