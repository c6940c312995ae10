//! Whether packets get to the chip's routes at all: router interfaces may hand them to the CPU before that.

use crate::Store;
use crate::model::{ConfScope, Family};
use crate::reason::Reason;
use std::collections::{BTreeMap, HashMap};
use tandem_abi::raw::*;

/// Interfaces named in one line.
const NAMED: usize = 8;

/// [`Store::unreached`] for all rows of one answer: each table and family is asked once, however many interfaces it has.
#[derive(Default)]
pub(crate) struct Unreached(HashMap<(u8, Family), Option<Reason>>);

impl Unreached {
    pub fn of(&mut self, store: &Store, slot: u8, family: Family) -> Option<Reason> {
        let ask = || store.unreached(slot, family);
        self.0.entry((slot, family)).or_insert_with(ask).clone()
    }
}

impl Store {
    /// Why packets of a family that come in on a router interface with these flags are not looked up in the chip.
    pub(crate) fn ingress_gap(
        &self,
        ifindex: u32,
        family: Family,
        flags: u32,
        reason: Option<&Reason>,
    ) -> Option<Reason> {
        let flag = match family {
            Family::V4 => TND_RIF_V4,
            Family::V6 => TND_RIF_V6,
        };
        if flags & flag != 0 && flags & TND_RIF_TRAP_ALL == 0 {
            return None;
        }
        let forwards = |scope| self.conf(family, scope).forwarding == Some(true);
        match family {
            _ if flags & TND_RIF_TRAP_ALL != 0 => reason.cloned(),
            Family::V4 if !forwards(ConfScope::Interface(ifindex)) => {
                Some(match forwards(ConfScope::All) {
                    true => Reason::NotForwarding,
                    false => Reason::NoForwarding4,
                })
            }
            Family::V6 if !forwards(ConfScope::All) => Some(Reason::NoForwarding6),
            _ => Some(reason.cloned().unwrap_or(Reason::NoIpv6)),
        }
    }

    /// Why no packet of this family gets to the routes of a table, whatever interface it comes in on; none if some do,
    /// or if there is no interface.
    pub fn unreached(&self, slot: u8, family: Family) -> Option<Reason> {
        let gaps = || self.gaps(slot, family).map(|(_, gap)| gap);
        // as a rule the first interface lets packets through
        if gaps().any(|gap| gap.is_none()) {
            return None;
        }
        let gaps: BTreeMap<String, &Reason> =
            gaps().flatten().map(|gap| (gap.to_string(), gap)).collect();
        (!gaps.is_empty()).then(|| Reason::Unreached(gaps.into_values().cloned().collect()))
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
        let mut by_reason: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        let mut reached = false;
        for (ifindex, gap) in self.gaps(slot, family) {
            match gap {
                Some(gap) => by_reason.entry(gap.to_string()).or_default().push(ifindex),
                None => reached = true,
            }
        }
        // nothing gets to them, and that is a reason of its own
        if !reached {
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

    /// Interfaces of a table, and why packets that come in there do not get to its routes.
    fn gaps(&self, slot: u8, family: Family) -> impl Iterator<Item = (u32, Option<&Reason>)> {
        let all = self.topo.ingress.get(&slot).into_iter().flatten();
        all.map(move |(ifindex, [v4, v6])| match family {
            Family::V4 => (*ifindex, v4.as_ref()),
            Family::V6 => (*ifindex, v6.as_ref()),
        })
    }
}
