// SPDX-License-Identifier: Apache-2.0
//! `spanning-tree …`: what it makes of a configuration, and the lines that say it.

use tandem_swconfig::Name;
use tandem_swconfig::tree::{PortTree, Tree};
use tandem_swgrammar::{Form, Id, Parsed};

use crate::change::INTERNAL;

/// Seconds of a command whose range the grammar knows.
fn seconds(number: Option<u32>, usual: u8) -> Option<u8> {
    number
        .and_then(|n| u8::try_from(n).ok())
        .filter(|n| *n != usual)
}

/// Changes what is set of the switch.
pub(crate) fn of_switch(tree: &mut Tree, parsed: &Parsed) -> Result<(), String> {
    let plain = parsed.form == Form::Plain;
    let number = parsed.number().filter(|_| plain);
    match parsed.id {
        Id::TreeMode if plain && !parsed.has("rstp") => {
            return Err(
                "% One spanning tree for all VLANs is what there is: spanning-tree mode rstp"
                    .into(),
            );
        }
        Id::TreeMode => tree.on = plain,
        Id::TreePriority => {
            if number.is_some_and(|n| !n.is_multiple_of(4096)) {
                return Err("% Bridge Priority must be in increments of 4096.".into());
            }
            let priority = number.and_then(|n| u16::try_from(n).ok());
            tree.priority = priority.filter(|n| *n != 32_768);
        }
        Id::TreeHello => tree.hello = seconds(number, 2),
        Id::TreeForward => tree.forward = seconds(number, 15),
        Id::TreeMaxAge => tree.max_age = seconds(number, 20),
        _ => return Err(INTERNAL.into()),
    }
    Ok(())
}

/// Changes what is set of a port.
pub(crate) fn of_interface(
    name: &Name,
    tree: &mut PortTree,
    parsed: &Parsed,
) -> Result<(), String> {
    if !name.is_port() {
        return Err(format!("% Command rejected: {name} not a switching port."));
    }
    let plain = parsed.form == Form::Plain;
    let number = parsed.number().filter(|_| plain);
    match parsed.id {
        Id::TreeCost => tree.cost = number,
        Id::TreePortPriority => {
            if number.is_some_and(|n| !n.is_multiple_of(16)) {
                return Err("% Port Priority in increments of 16 is required".into());
            }
            let priority = number.and_then(|n| u8::try_from(n).ok());
            tree.priority = priority.filter(|n| *n != 128);
        }
        Id::TreePortfast => tree.edge = plain,
        Id::TreeGuard => tree.guard = plain && parsed.has("enable"),
        Id::TreeLinkType => tree.point_to_point = plain.then(|| parsed.has("point-to-point")),
        _ => return Err(INTERNAL.into()),
    }
    Ok(())
}

/// Is it a command of the switch's tree?
pub(crate) fn is_switchs(id: Id) -> bool {
    use Id::{TreeForward, TreeHello, TreeMaxAge, TreeMode, TreePriority};
    matches!(
        id,
        TreeMode | TreePriority | TreeHello | TreeForward | TreeMaxAge
    )
}

/// The line that says what is set of the switch.
pub(crate) fn line(id: Id, tree: &Tree) -> Option<String> {
    let time = |word: &str, value: Option<u8>| value.map(|v| format!("spanning-tree {word} {v}"));
    match id {
        Id::TreeMode => tree.on.then(|| "spanning-tree mode rstp".into()),
        Id::TreePriority => tree.priority.map(|p| format!("spanning-tree priority {p}")),
        Id::TreeHello => time("hello-time", tree.hello),
        Id::TreeForward => time("forward-time", tree.forward),
        Id::TreeMaxAge => time("max-age", tree.max_age),
        _ => None,
    }
}

/// The line that says what is set of a port.
pub(crate) fn port_line(id: Id, tree: &PortTree) -> Option<String> {
    match id {
        Id::TreeCost => tree.cost.map(|c| format!("spanning-tree cost {c}")),
        Id::TreePortPriority => tree
            .priority
            .map(|p| format!("spanning-tree port-priority {p}")),
        Id::TreePortfast => tree.edge.then(|| "spanning-tree portfast".into()),
        Id::TreeGuard => tree.guard.then(|| "spanning-tree bpduguard enable".into()),
        Id::TreeLinkType => tree.point_to_point.map(|one| {
            let word = if one { "point-to-point" } else { "shared" };
            format!("spanning-tree link-type {word}")
        }),
        _ => None,
    }
}
