//! Bit flips in table memory, for audits: one entry is changed behind the firmware's back.
//!
//! The original is kept aside only so that the accounting of references stays right: a command that names the entry
//! writes it anew, as it would on real memory. Dumps, queries and the pipeline see the flipped entry.

use crate::Firmware;
use crate::object::Object;
use crate::objects::route::Route;
use serde::{Deserialize, Serialize};
use tandem_pipeline::entry::{Action, FdbValue, HostValue, RouteTarget};
use tandem_pipeline::state::NexthopConfig;
use tandem_tables::exact::{EntryId, Key, Kind};
use tandem_tables::lpm::RouteId;

/// Most flips at a time.
const MAX_FLIPS: usize = 64;

/// Where to flip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlipTable {
    /// A MAC address: its port, or its action.
    Fdb,
    /// A host: a bit of its MAC.
    Neigh,
    /// A route: forwarding becomes drop, anything else becomes a trap for another reason.
    Route4,
    /// As [`FlipTable::Route4`].
    Route6,
    /// A next hop: a bit of its MAC.
    Nexthop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flip {
    Exact(EntryId, Key, u64),
    Route4(RouteId, u32),
    Route6(RouteId, u32),
    Nexthop(u32, NexthopConfig),
}

fn flipped_route(value: u32) -> u32 {
    match RouteTarget::unpack(value) {
        RouteTarget::Trap(_) => RouteTarget::Drop,
        RouteTarget::Drop => RouteTarget::Trap(tandem_abi::raw::TND_TRAP_ROUTE as u8),
        _ => RouteTarget::Drop,
    }
    .pack()
}

impl Firmware {
    /// Changes the `index`th entry (from 0, in dump order) of a table.
    ///
    /// # Errors
    /// One line: no such entry, or too many flips.
    pub fn flip(&mut self, table: FlipTable, index: u32) -> Result<(), String> {
        if self.flips.len() >= MAX_FLIPS {
            return Err(format!(
                "flips full (needs 1, free 0 of {MAX_FLIPS}): reset the chip first"
            ));
        }
        let none = || format!("no entry {index} in {table:?}");
        let n = index as usize;
        match table {
            FlipTable::Fdb | FlipTable::Neigh => {
                let mut cursor = 0;
                let mut left = n;
                loop {
                    let (next, e) = self.state.exact.next(cursor).ok_or_else(none)?;
                    cursor = next;
                    if (e.key.kind() == Kind::Mac) != (table == FlipTable::Fdb) {
                        continue;
                    }
                    if left > 0 {
                        left -= 1;
                        continue;
                    }
                    let value = if table == FlipTable::Fdb {
                        let v = FdbValue::unpack(e.value);
                        let action = if v.action == Action::Drop {
                            Action::Trap
                        } else {
                            Action::Drop
                        };
                        FdbValue { action, ..v }.pack()
                    } else {
                        let mut v = HostValue::unpack(e.value);
                        v.mac[5] ^= 1;
                        v.pack()
                    };
                    self.state.exact.set_value(e.id, value);
                    self.flips.push(Flip::Exact(e.id, e.key, e.value));
                    return Ok(());
                }
            }
            FlipTable::Route4 => {
                let mut cursor = 0;
                for _ in 0..n {
                    cursor = self.state.lpm4.next(cursor).ok_or_else(none)?.0;
                }
                let (_, r) = self.state.lpm4.next(cursor).ok_or_else(none)?;
                self.state.lpm4.set_value(r.id, flipped_route(r.value));
                self.flips.push(Flip::Route4(r.id, r.value));
                Ok(())
            }
            FlipTable::Route6 => {
                let mut cursor = 0;
                for _ in 0..n {
                    cursor = self.state.lpm6.next(cursor).ok_or_else(none)?.0;
                }
                let (_, r) = self.state.lpm6.next(cursor).ok_or_else(none)?;
                self.state.lpm6.set_value(r.id, flipped_route(r.value));
                self.flips.push(Flip::Route6(r.id, r.value));
                Ok(())
            }
            FlipTable::Nexthop => {
                let (id, config) = self
                    .state
                    .nexthops()
                    .nth(n)
                    .map(|(_, x)| (x.id, x.config))
                    .ok_or_else(none)?;
                let mut mac = config.mac;
                mac[5] ^= 1;
                self.state
                    .set_nexthop(id, NexthopConfig { mac, ..config })
                    .map_err(|e| e.to_string())?;
                self.flips.push(Flip::Nexthop(id, config));
                Ok(())
            }
        }
    }

    /// Forgets the newest flip that `mine` accepts, after `restore` has put its original back.
    fn unflip(&mut self, mine: impl Fn(&Flip) -> bool) -> Vec<Flip> {
        let (hits, rest) = self.flips.drain(..).partition(|f| mine(f));
        self.flips = rest;
        hits
    }

    pub(crate) fn unflip_exact(&mut self, key: &Key) {
        if self.flips.is_empty() {
            return;
        }
        let there = self.state.exact.get(key).map(|h| h.id);
        // newest first: the oldest original is the true one
        for f in self
            .unflip(|f| matches!(f, Flip::Exact(_, k, _) if k == key))
            .into_iter()
            .rev()
        {
            if let Flip::Exact(id, _, value) = f
                && there == Some(id)
            {
                self.state.exact.set_value(id, value);
            }
        }
    }

    pub(crate) fn unflip_route(&mut self, route: &Route) {
        if self.flips.is_empty() {
            return;
        }
        let Some((id, _)) = route.hit(self) else {
            return;
        };
        let v6 = route.find(self).is_some_and(|r| {
            let mut b = Vec::new();
            r.encode(&mut b);
            b.get(4) == Some(&tandem_abi::raw::TND_AF_INET6)
        });
        let mine = |f: &Flip| match f {
            Flip::Route4(i, _) => !v6 && *i == id,
            Flip::Route6(i, _) => v6 && *i == id,
            _ => false,
        };
        for f in self.unflip(mine).into_iter().rev() {
            match f {
                Flip::Route4(i, value) => self.state.lpm4.set_value(i, value),
                Flip::Route6(i, value) => self.state.lpm6.set_value(i, value),
                _ => false,
            };
        }
    }

    pub(crate) fn unflip_nexthop(&mut self, id: u32) {
        if self.flips.is_empty() {
            return;
        }
        for f in self
            .unflip(|f| matches!(f, Flip::Nexthop(i, _) if *i == id))
            .into_iter()
            .rev()
        {
            if let Flip::Nexthop(i, config) = f
                && self.state.nexthop(i).is_some()
            {
                // it was set before
                let _ = self.state.set_nexthop(i, config);
            }
        }
    }
}
