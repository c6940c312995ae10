//! Whether packets get to the chip's routes at all: router interfaces may hand them to the CPU before that.

use crate::Store;
use crate::model::{ConfScope, Family};
use std::collections::{BTreeMap, BTreeSet};
use tandem_abi::raw::*;

/// Interfaces named in one line.
const NAMED: usize = 8;

impl Store {
    /// Why packets of a family that come in on a router interface with these flags are not looked up in the chip.
    pub(crate) fn ingress_gap(
        &self,
        ifindex: u32,
        family: Family,
        flags: u32,
        reason: &str,
    ) -> String {
        let flag = match family {
            Family::V4 => TND_RIF_V4,
            Family::V6 => TND_RIF_V6,
        };
        if flags & flag != 0 && flags & TND_RIF_TRAP_ALL == 0 {
            return String::new();
        }
        let forwards = |scope| self.conf(family, scope).forwarding == Some(true);
        match family {
            _ if flags & TND_RIF_TRAP_ALL != 0 => reason.into(),
            Family::V4 if !forwards(ConfScope::Interface(ifindex)) => {
                match forwards(ConfScope::All) {
                    true => "the kernel does not forward what comes in there (net.ipv4.conf.*.forwarding is 0)",
                    false => "the kernel does not forward IPv4 (net.ipv4.ip_forward is 0)",
                }
                .into()
            }
            Family::V6 if !forwards(ConfScope::All) => {
                "the kernel does not forward IPv6 (net.ipv6.conf.all.forwarding is 0)".into()
            }
            _ if reason.is_empty() => "the kernel takes no IPv6 there".into(),
            _ => reason.into(),
        }
    }

    /// Why no packet of this family gets to the routes of a table, whatever interface it comes in on; empty if some do,
    /// or if there is no interface.
    pub fn unreached(&self, slot: u8, family: Family) -> String {
        let Some(all) = self.topo.ingress.get(&slot) else {
            return String::new();
        };
        // asked of every row of a table: as a rule the first interface lets packets through
        let gaps = || all.values().map(|gap| Self::gap_of(gap, family));
        if gaps().any(str::is_empty) {
            return String::new();
        }
        let gaps: BTreeSet<&str> = gaps().collect();
        if gaps.is_empty() {
            return String::new();
        }
        let reasons: Vec<&str> = gaps.into_iter().collect();
        format!("what comes in goes to the CPU: {}", reasons.join("; "))
    }

    /// Some next hop of this family's routes is in use: somebody wants packets forwarded.
    pub fn routes_forward(&self, family: Family) -> bool {
        let sets = self.paths.ids().into_iter().map(|id| &self.paths.sets[id]);
        let mut keys = sets
            .filter(|s| !s.next_hops.is_empty())
            .filter_map(|s| s.key.as_ref());
        keys.any(|k| k.family == family)
    }

    /// On which interfaces packets don't get to the routes of a table, where on others they do: one line for each
    /// reason.
    pub(super) fn ingress_details(&self, slot: u8, family: Family) -> Vec<String> {
        let mut by_reason: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        let all = self.topo.ingress.get(&slot).into_iter().flatten();
        for (ifindex, gap) in all {
            let gap = Self::gap_of(gap, family);
            by_reason.entry(gap).or_default().push(*ifindex);
        }
        // nothing gets to them, and that is a reason of its own
        if by_reason.remove("").is_none() {
            return Vec::new();
        }
        by_reason
            .into_iter()
            .map(|(reason, mut on)| {
                on.sort_unstable();
                let names: Vec<String> = on.iter().take(NAMED).map(|i| self.dev(*i)).collect();
                let more = match on.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    n => format!(" and {n} more"),
                };
                let names = names.join(", ");
                format!("what comes in on {names}{more} goes to the CPU: {reason}")
            })
            .collect()
    }

    fn gap_of([v4, v6]: &[String; 2], family: Family) -> &str {
        match family {
            Family::V4 => v4,
            Family::V6 => v6,
        }
    }
}
