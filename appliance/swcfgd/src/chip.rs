// SPDX-License-Identifier: Apache-2.0
//! What the engine asks: the core, whether all is in the chip; asicd, how its ports are.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use serde_json::Value;
use tandem_core::Jobs;
use tandem_mgmt::client::{Client, query};
use tandem_mgmt::types::{Items, Port};
use tandem_store::model::FilterKey;
use tandem_swchip::{Ask, Chip, PortState, Tree};
use tandem_swconfig::Platform;

use crate::below;

/// The chip has so long to take what was asked for.
const LIMIT: Duration = Duration::from_secs(20);
/// Refusals that are looked at.
const FAILURES: usize = 1024;

/// The core and asicd.
pub struct Asked {
    /// To the core.
    pub jobs: Jobs,
    /// To asicd.
    pub asicd: Client,
    /// To the core's own interface, which explains.
    pub core: Client,
}

impl Asked {
    /// Counts of a table of the chip, by the number that its rows have.
    fn counts<const N: usize>(
        &self,
        table: &str,
        key: &str,
        counts: [&str; N],
    ) -> BTreeMap<u32, [u64; N]> {
        let mut all = BTreeMap::new();
        let mut cursor = Some(0u64);
        while let Some(at) = cursor {
            let path = query(
                &format!("/v1/table/{table}"),
                &[("cursor", &at.to_string())],
            );
            let page: Items<Value> = match self.asicd.get(&path) {
                Ok(page) => page,
                Err(e) => {
                    tracing::warn!("{e}");
                    break;
                }
            };
            for row in &page.items {
                let number = row[key].as_u64().and_then(|n| u32::try_from(n).ok());
                let count = counts.map(|c| row[c].as_u64().unwrap_or(0));
                all.extend(number.map(|n| (n, count)));
            }
            cursor = page.next;
        }
        all
    }
}

/// Whether an object that the chip has no room for is one of the configuration's: a domain, a membership, a router
/// interface, a port-channel, what access lists are made of. What has no room of routes, neighbours and learned stations goes by the CPU, as always.
fn is_configured(object: &str) -> bool {
    let kinds = [
        "Domain", "Member", "Rif", "Vlan", "Lag", "AclTable", "AclBind", "AclRange", "Rule",
        "Policer", "Mirror",
    ];
    kinds.iter().any(|kind| object.starts_with(kind))
}

/// A port's state has to be in the chip within this, or its BPDUs are out of date.
const TREE_LIMIT_NS: u64 = 2_000_000_000;

/// How the spanning tree asks whether what it has said is in the chip.
pub fn ask_of(jobs: Jobs, tree: Arc<Tree>) -> Ask {
    Box::new(move |number| {
        let tree = Arc::clone(&tree);
        jobs.post(Box::new(move |core| {
            // without a chip there is none whose states would be known
            if core.epoch() == 0 {
                tree.passed(number, false);
                return;
            }
            core.sync(
                TREE_LIMIT_NS,
                Box::new(move |done| tree.passed(number, done.is_ok())),
            );
        }))
    })
}

impl Chip for Asked {
    fn settle(&self) -> Option<BTreeMap<String, String>> {
        let (to, answer) = mpsc::channel();
        let done = to.clone();
        let posted = self.jobs.post(Box::new(move |core| {
            if core.epoch() == 0 {
                let _ = done.send(false);
                return;
            }
            let ns = u64::try_from(LIMIT.as_nanos()).unwrap_or(u64::MAX);
            core.sync(
                ns,
                Box::new(move |result| {
                    if let Err(why) = &result {
                        tracing::warn!("the chip has not all that was asked for: {why}");
                    }
                    let _ = done.send(result.is_ok());
                }),
            );
        }));
        if !posted || !answer.recv_timeout(LIMIT * 2).unwrap_or(false) {
            return None;
        }
        let (to, answer) = mpsc::channel();
        let posted = self.jobs.post(Box::new(move |core| {
            // thousands of routes or rules without room are not to hide one VLAN
            let all = core.store().failures_of_objects();
            let all = all.into_iter().filter(|(what, _)| is_configured(what));
            let (rules, rest): (Vec<_>, Vec<_>) =
                all.partition(|(what, _)| what.starts_with("Rule "));
            let all = rest.into_iter().chain(rules).take(FAILURES);
            let _ = to.send(all.map(|(what, why)| (what, why.to_string())).collect());
        }));
        match posted {
            true => answer.recv_timeout(LIMIT).ok(),
            false => None,
        }
    }

    fn ports(&self) -> Vec<PortState> {
        let state = |p: Port| {
            let c = p.counters.unwrap_or_default();
            PortState {
                port: p.port,
                carrier: p.link,
                speed: p.speed_mbps,
                counters: [c.rx_packets, c.rx_bytes, c.tx_packets, c.tx_bytes],
            }
        };
        below::ports(&self.asicd).into_iter().map(state).collect()
    }

    fn matches(&self) -> BTreeMap<(u16, bool, u16), u64> {
        let (to, answer) = mpsc::channel();
        let posted = self.jobs.post(Box::new(move |core| {
            let rows = core.store().counted_rules();
            let _ = to.send(rows);
        }));
        let rules = match posted {
            true => answer.recv_timeout(LIMIT).unwrap_or_default(),
            false => Vec::new(),
        };
        if rules.is_empty() {
            return BTreeMap::new();
        }
        let counts = self.counts("acl-counters", "counter", ["packets"]);
        let met = |(port, key, counter): &(u16, FilterKey, u32)| {
            let at = (*port, key.egress, key.priority);
            Some((at, counts.get(counter)?[0]))
        };
        rules.iter().filter_map(met).collect()
    }

    fn policed(&self) -> BTreeMap<u32, [u64; 2]> {
        self.counts("policers", "policer", ["passed", "dropped"])
    }

    fn platform(&self, what: &Platform) -> Result<Vec<Vec<String>>, String> {
        below::platform(&self.asicd, &self.core, what)
    }
}
