// SPDX-License-Identifier: Apache-2.0
//! `show spanning-tree`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tandem_swconfig::Name;
use tandem_swconfig::tree::{PortView, Role, State, View};

use crate::Switch;
use crate::render::shown_mac;

/// Ports that BPDU guard has taken out of service.
pub(super) fn err_disabled(switch: &Switch) -> BTreeSet<Name> {
    let ports = switch.engine.spanning_tree().map(|t| t.ports);
    let out = ports.into_iter().flatten().filter(|p| p.err_disabled);
    out.map(|p| p.name).collect()
}

/// The one tree there is, as IOS shows the one of VLAN 1. Ports without a link are not in it.
pub(super) fn tree(switch: &Switch) -> String {
    match switch.engine.spanning_tree() {
        None => "\nNo spanning tree instance exists.\n\n".into(),
        Some(view) => shown(&view, switch.config.aging.unwrap_or(300)),
    }
}

fn times([hello, max_age, forward]: [u16; 3]) -> String {
    format!(
        "             Hello Time  {hello:>2} sec  Max Age {max_age:>2} sec  Forward Delay {forward:>2} sec\n"
    )
}

fn shown(view: &View, aging: u32) -> String {
    let mut text = String::from("\nVLAN0001\n  Spanning tree enabled protocol rstp\n");
    let (priority, mac) = view.root;
    let _ = writeln!(text, "  Root ID    Priority    {priority}");
    let _ = writeln!(text, "             Address     {}", shown_mac(&mac));
    match &view.root_port {
        None => text.push_str("             This bridge is the root\n"),
        Some(port) => {
            let _ = writeln!(text, "             Cost        {}", view.cost);
            let _ = writeln!(text, "             Port        {} ({port})", port.number);
        }
    }
    text.push_str(&times(view.root_times));
    let (priority, mac) = view.bridge;
    let _ = writeln!(
        text,
        "\n  Bridge ID  Priority    {priority}  (priority {priority} sys-id-ext 0)"
    );
    let _ = writeln!(text, "             Address     {}", shown_mac(&mac));
    text.push_str(&times(view.times));
    let _ = writeln!(text, "             Aging Time  {aging} sec\n");
    text.push_str(
        "Interface           Role Sts Cost      Prio.Nbr Type\n\
         ------------------- ---- --- --------- -------- --------------------------------\n",
    );
    let there = view.ports.iter().filter(|p| p.role != Role::Disabled);
    there.for_each(|p| text.push_str(&row(p)));
    text.push('\n');
    text
}

fn row(port: &PortView) -> String {
    let role = match port.role {
        Role::Root => "Root",
        Role::Designated => "Desg",
        Role::Alternate => "Altn",
        Role::Backup => "Back",
        Role::Disabled => "Dsbl",
    };
    let state = match port.state {
        State::Discarding => "BLK",
        State::Learning => "LRN",
        State::Forwarding => "FWD",
    };
    let mut kind = String::from(if port.point_to_point { "P2p" } else { "Shr" });
    kind.push_str(if port.edge { " Edge" } else { "" });
    kind.push_str(if port.old_neighbour { " Peer(STP)" } else { "" });
    let id = format!("{}.{}", port.priority, port.name.number);
    format!(
        "{:<19} {role} {state} {:<9} {id:<8} {kind}\n",
        port.name.short(),
        port.cost
    )
}
