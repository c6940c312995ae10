// SPDX-License-Identifier: Apache-2.0
//! What stood in the tables of an earlier process comes back with its age and its counters.
use crate::flows::priority_of;
use crate::key::Key;
use crate::ports::Count;
use crate::stats::FlowStats;
use crate::switch::{Switch, TableCount};
use tandem_openflow::Error;
use tandem_openflow::model::{FlowCommand, FlowMod, GroupMod, MeterMod, flow_flags};

/// What a flow is beside what its message said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// When it came.
    pub since_ns: u64,
    /// When a packet met it last, or when it came.
    pub last_ns: u64,
    /// Packets that met it.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Switch {
    /// A flow that stood here before; others that it overlaps may stand already. Its groups and its meter come first.
    ///
    /// # Errors
    /// Those of a flow that is added, but for an overlap.
    pub fn restore_flow(&mut self, m: &FlowMod, past: &Past) -> Result<u32, Error> {
        let mut plain = m.clone();
        plain.command = FlowCommand::Add;
        plain.flags &= !flow_flags::CHECK_OVERLAP;
        self.flow_mod(&plain, past.since_ns, &mut Vec::new())?;
        let (value, mask) = Key::of_match(&m.matching.fields);
        let number = self.rules.exactly(m.table, &value, &mask, priority_of(m));
        let number = number.ok_or(Error::FLOW_MOD_FAILED_UNKNOWN)?;
        let flags = self.flags_of(m);
        if let Some(f) = self.rules.flows.get_mut(number) {
            f.flags = flags;
        }
        if let Some(hot) = self.live.hot.get_mut(number as usize) {
            (hot.packets, hot.bytes, hot.last_ns) = (past.packets, past.bytes, past.last_ns);
        }
        Ok(number)
    }

    /// A group that stood here before: what came to it, then what took each bucket. The groups that it forwards to come
    /// first; ports and groups that it watches come later, or have gone: it is live when they are.
    ///
    /// # Errors
    /// Those of a group that is added.
    pub fn restore_group(
        &mut self,
        m: &GroupMod,
        since_ns: u64,
        counts: &[Count],
    ) -> Result<(), Error> {
        self.put_group(m, since_ns, false)?;
        if let Some(c) = self.live.groups.get_mut(&m.group)
            && let Some((all, buckets)) = counts.split_first()
        {
            c.count = *all;
            for (to, from) in c.buckets.iter_mut().zip(buckets) {
                *to = *from;
            }
        }
        Ok(())
    }

    /// A meter that stood here before: what came to it, then what each band was applied to. Its bands have all their
    /// tokens.
    ///
    /// # Errors
    /// Those of a meter that is added.
    pub fn restore_meter(
        &mut self,
        m: &MeterMod,
        since_ns: u64,
        counts: &[Count],
    ) -> Result<(), Error> {
        self.meter_mod(m, since_ns, &mut Vec::new())?;
        if let Some(meter) = self.live.meters.map.get_mut(&m.meter)
            && let Some((all, bands)) = counts.split_first()
        {
            meter.count = *all;
            for (to, from) in meter.band_counts.iter_mut().zip(bands) {
                *to = *from;
            }
        }
        Ok(())
    }

    /// What a table had counted.
    pub fn restore_table(&mut self, table: u8, count: TableCount) {
        if let Some(c) = self.live.tables.get_mut(usize::from(table)) {
            *c = count;
        }
    }

    /// Numbers of groups, from one on.
    pub fn groups_from(&self, number: u32) -> impl Iterator<Item = u32> + '_ {
        self.rules.groups.map.range(number..).map(|(n, _)| *n)
    }

    /// Numbers of meters, from one on.
    pub fn meters_from(&self, number: u32) -> impl Iterator<Item = u32> + '_ {
        self.live.meters.map.range(number..).map(|(n, _)| *n)
    }

    /// The number behind the last flow's.
    pub fn flow_numbers(&self) -> u32 {
        self.rules.flows.end()
    }

    /// The flow of this number, if packets met it since then, or then.
    pub fn used_since(&self, n: u32, ns: u64) -> Option<FlowStats<'_>> {
        let h = self.live.hot.get(n as usize)?;
        let met = h.packets > 0 || h.flags & flow_flags::NO_PKT_COUNTS != 0;
        (h.last_ns >= ns && met).then(|| self.flow_count(n))?
    }
}
