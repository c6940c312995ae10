// SPDX-License-Identifier: Apache-2.0
//! Port Role Selection state machine (17.28): the bridge's one machine, and the spanning tree's algorithm.

use crate::bridge::Bridge;
use crate::port::{InfoIs, Role};
use crate::priority::{PortId, Vector};
use crate::times::Times;

pub(crate) fn step(b: &mut Bridge) -> bool {
    if !b.ports.iter().any(|p| p.reselect) {
        return false;
    }
    // ROLE_SELECTION: clearReselectTree, updtRolesTree, setSelectedTree
    for p in &mut b.ports {
        p.reselect = false;
    }
    updt_roles_tree(b);
    for p in &mut b.ports {
        p.selected = true;
    }
    true
}

/// 17.21.25.
fn updt_roles_tree(b: &mut Bridge) {
    let id = b.id();
    let own = Vector {
        root: id,
        cost: 0,
        bridge: id,
        port: PortId(0),
    };
    // a) and b): the vector with the way over the port added, and the port that it came to
    let best = b
        .ports
        .iter()
        .enumerate()
        .filter(|(_, p)| p.info_is == InfoIs::Received && !p.config.root_guard)
        .filter(|(_, p)| !p.port_priority.bridge.same_bridge(id))
        // Not the standard's: what names this very bridge as the root, but not as it is now, is from before its priority
        // was changed. Nobody else can know better; believed, it would go round until it is too old (docs/rstp.md).
        .filter(|(_, p)| !p.port_priority.root.same_bridge(id))
        .map(|(i, p)| {
            let cost = p.port_priority.cost.saturating_add(p.cost());
            (
                Vector {
                    cost,
                    ..p.port_priority
                },
                p.id(),
                i,
            )
        })
        .min()
        .filter(|(vector, _, _)| *vector < own);
    let (root, root_port) = match best {
        Some((vector, _, i)) => (vector, Some(i)),
        None => (own, None),
    };
    // c) and d)
    b.root_priority = root;
    b.root_port = root_port.map(|i| b.ports[i].id());
    let bridge_times = b.bridge_times();
    b.root_times = match root_port {
        Some(i) => b.ports[i].port_times.aged(),
        None => bridge_times,
    };
    for (i, p) in b.ports.iter_mut().enumerate() {
        // e)
        p.designated_priority = Vector {
            root: root.root,
            cost: root.cost,
            bridge: id,
            port: p.id(),
        };
        p.designated_times = Times {
            hello: bridge_times.hello,
            ..b.root_times
        };
        // f) to l)
        let better = p.designated_priority < p.port_priority;
        (p.selected_role, p.updt_info) = match p.info_is {
            InfoIs::Disabled => (Role::Disabled, false),
            InfoIs::Aged => (Role::Designated, true),
            InfoIs::Mine => {
                let changed =
                    p.port_priority != p.designated_priority || p.port_times != p.designated_times;
                (Role::Designated, changed)
            }
            InfoIs::Received if root_port == Some(i) => (Role::Root, false),
            InfoIs::Received if better => (Role::Designated, true),
            InfoIs::Received if p.port_priority.bridge.same_bridge(id) => (Role::Backup, false),
            InfoIs::Received => (Role::Alternate, false),
        };
    }
}
