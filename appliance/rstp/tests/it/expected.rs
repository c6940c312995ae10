// SPDX-License-Identifier: Apache-2.0
//! The spanning tree of a network, from the network alone: the least bridge is the root, each LAN is served by the bridge
//! that is nearest to it, ties go to the lower bridge, then to the lower port.

use std::collections::BTreeMap;

use tandem_rstp::{BridgeId, Config, Link, PortConfig, PortId, Role};

use crate::net::{At, Net};

fn bridge_id(config: &Config) -> BridgeId {
    BridgeId::new(config.priority, config.mac)
}

fn port_id(port: u16, config: &PortConfig) -> PortId {
    PortId::new(config.priority, port)
}

/// The root of each bridge.
pub fn roots(net: &Net) -> Vec<BridgeId> {
    tree(net).0.into_iter().map(|(root, _)| root).collect()
}

/// The role of each port of each bridge that has power.
pub fn roles(net: &Net) -> BTreeMap<At, Role> {
    tree(net).1
}

type Best = Vec<(BridgeId, u64)>;

fn tree(net: &Net) -> (Best, BTreeMap<At, Role>) {
    let on = |node: usize| net.nodes[node].bridge.is_some();
    let mut roles = BTreeMap::new();
    for (i, node) in net.nodes.iter().enumerate().filter(|(i, _)| on(*i)) {
        roles.extend(node.ports.keys().map(|p| ((i, *p), Role::Disabled)));
    }
    // LANs that are there, with the ends that have power
    let lans: Vec<(Vec<At>, u32)> = net
        .lans
        .iter()
        .filter(|l| l.up)
        .map(|l| (l.ends.iter().copied().filter(|e| on(e.0)).collect(), l.mbps))
        .collect();
    let id = |n: usize| bridge_id(&net.nodes[n].config);
    let cost = |at: At, mbps: u32| {
        let by_speed = Link {
            mbps,
            full_duplex: true,
        }
        .cost();
        u64::from(net.nodes[at.0].ports[&at.1].cost.unwrap_or(by_speed))
    };
    // (root, cost) of each bridge: again and again until nothing gets better
    let mut best: Best = (0..net.nodes.len()).map(|n| (id(n), 0)).collect();
    loop {
        let before = best.clone();
        for (ends, mbps) in &lans {
            for a in ends {
                for b in ends.iter().filter(|b| b.0 != a.0) {
                    let (root, far) = before[b.0];
                    best[a.0] = best[a.0].min((root, far + cost(*a, *mbps)));
                }
            }
        }
        if best == before {
            break;
        }
    }
    // each LAN's designated port
    let key = |at: &At| {
        let (root, far) = best[at.0];
        (
            root,
            far,
            id(at.0),
            port_id(at.1, &net.nodes[at.0].ports[&at.1]),
        )
    };
    let mut ways: BTreeMap<usize, Vec<_>> = BTreeMap::new();
    for (ends, mbps) in &lans {
        let Some(designated) = ends.iter().min_by_key(|e| key(e)) else {
            continue;
        };
        for end in ends {
            let role = match end {
                _ if end == designated => Role::Designated,
                _ if end.0 == designated.0 => Role::Backup,
                _ => {
                    let (root, far, bridge, port) = key(designated);
                    let own = port_id(end.1, &net.nodes[end.0].ports[&end.1]);
                    let way = (root, far + cost(*end, *mbps), bridge, port, own, *end);
                    ways.entry(end.0).or_default().push(way);
                    Role::Alternate
                }
            };
            roles.insert(*end, role);
        }
    }
    // a bridge that is not the root has its best way
    for (node, ways) in &ways {
        if best[*node].0 != id(*node)
            && let Some(way) = ways.iter().min()
        {
            roles.insert(way.5, Role::Root);
        }
    }
    (best, roles)
}

/// All roles are as they shall be, and what shall forward does.
pub fn check(net: &Net) -> Result<(), String> {
    for (at, role) in roles(net) {
        let is = net.role(at);
        if is != role {
            return Err(format!(
                "{at:?} is {is:?} instead of {role:?} at {} ms",
                net.now / 1_000_000
            ));
        }
        if net.forwards(at) != matches!(role, Role::Root | Role::Designated) {
            return Err(format!(
                "{at:?}, {role:?}: forwards is {}",
                net.forwards(at)
            ));
        }
    }
    for (i, node) in net.nodes.iter().enumerate() {
        let Some(bridge) = &node.bridge else { continue };
        if bridge.show().cut_short > 0 {
            return Err(format!("bridge {i} did not come to rest"));
        }
    }
    Ok(())
}
