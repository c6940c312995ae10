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
        Id::TreePortfastDefault => tree.edge_default = plain,
        Id::TreeGuardDefault => tree.guard_default = plain,
        Id::Recovery => tree.recovers = plain,
        Id::RecoveryInterval => {
            tree.interval = number.filter(|n| *n != tandem_swconfig::tree::RECOVERS_AFTER);
        }
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
    if !name.is_switched() {
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
        Id::TreeGuard => {
            tree.guard = plain && parsed.has("enable");
            tree.no_guard = plain && parsed.has("disable");
        }
        Id::TreeLinkType => tree.point_to_point = plain.then(|| parsed.has("point-to-point")),
        _ => return Err(INTERNAL.into()),
    }
    Ok(())
}

/// Is it a command of the switch's tree?
pub(crate) fn is_switchs(id: Id) -> bool {
    use Id::{
        Recovery, RecoveryInterval, TreeForward, TreeGuardDefault, TreeHello, TreeMaxAge, TreeMode,
        TreePortfastDefault, TreePriority,
    };
    matches!(
        id,
        TreeMode
            | TreePriority
            | TreeHello
            | TreeForward
            | TreeMaxAge
            | TreePortfastDefault
            | TreeGuardDefault
            | Recovery
            | RecoveryInterval
    )
}

/// The line that says what is set of the switch.
pub(crate) fn line(id: Id, tree: &Tree) -> Option<String> {
    let time = |word: &str, value: Option<u8>| value.map(|v| format!("spanning-tree {word} {v}"));
    let said = |on: bool, line: &str| on.then(|| line.to_string());
    match id {
        Id::TreeMode => tree.on.then(|| "spanning-tree mode rstp".into()),
        Id::TreePriority => tree.priority.map(|p| format!("spanning-tree priority {p}")),
        Id::TreeHello => time("hello-time", tree.hello),
        Id::TreeForward => time("forward-time", tree.forward),
        Id::TreeMaxAge => time("max-age", tree.max_age),
        Id::TreePortfastDefault => said(tree.edge_default, "spanning-tree portfast default"),
        Id::TreeGuardDefault => said(
            tree.guard_default,
            "spanning-tree portfast bpduguard default",
        ),
        Id::Recovery => said(tree.recovers, "errdisable recovery cause bpduguard"),
        Id::RecoveryInterval => {
            let of = |n| format!("errdisable recovery interval {n}");
            tree.interval.map(of)
        }
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
        Id::TreeGuard => match (tree.guard, tree.no_guard) {
            (true, _) => Some("spanning-tree bpduguard enable".into()),
            (_, true) => Some("spanning-tree bpduguard disable".into()),
            _ => None,
        },
        Id::TreeLinkType => tree.point_to_point.map(|one| {
            let word = if one { "point-to-point" } else { "shared" };
            format!("spanning-tree link-type {word}")
        }),
        _ => None,
    }
}
