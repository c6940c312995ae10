// SPDX-License-Identifier: Apache-2.0
//! `show spanning-tree`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tandem_swconfig::Name;
use tandem_swconfig::tree::{PortView, RECOVERS_AFTER, Role, State, View};
use tandem_swgrammar::Parsed;

use crate::Switch;
use crate::change::has_vlan;
use crate::render::shown_mac;

/// Ports that BPDU guard has taken out of service.
pub(super) fn err_disabled(switch: &Switch) -> BTreeSet<Name> {
    let ports = switch.engine.spanning_tree().map(|t| t.ports);
    let out = ports.into_iter().flatten().filter(|p| p.err_disabled);
    out.map(|p| p.name).collect()
}

const NONE: &str = "\nNo spanning tree instance exists.\n\n";

/// The one tree there is, as IOS shows the one of VLAN 1. Ports without a link are not in it.
pub(super) fn tree(switch: &Switch, parsed: &Parsed) -> String {
    if let Some(id) = parsed.vlan().filter(|id| !has_vlan(&switch.config, *id)) {
        return format!("\nSpanning tree instance(s) for vlan {id} does not exist.\n\n");
    }
    match switch.engine.spanning_tree() {
        None => NONE.into(),
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
            let of = view.ports.iter().find(|p| p.name == *port);
            let number = of.map_or(port.number, |p| p.number);
            let _ = writeln!(text, "             Port        {number} ({port})");
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

/// `show spanning-tree interface`
pub(super) fn port(switch: &Switch, one: Option<Name>) -> String {
    let ports = switch.engine.spanning_tree().map(|t| t.ports);
    let mut ports = ports.into_iter().flatten();
    let of = ports.find(|p| Some(p.name) == one && p.role != Role::Disabled);
    match (of, one) {
        (Some(port), _) => format!(
            "\nVlan                Role Sts Cost      Prio.Nbr Type\n\
             ------------------- ---- --- --------- -------- --------------------------------\n{}\n",
            row_of("VLAN0001", &port)
        ),
        (None, Some(name)) => format!("no spanning tree info available for {name}\n\n"),
        (None, None) => String::new(),
    }
}

/// `show spanning-tree summary`
pub(super) fn summary(switch: &Switch) -> String {
    let Some(view) = switch.engine.spanning_tree() else {
        return NONE.into();
    };
    let set = &switch.config.tree;
    let word = |on: bool| if on { "enabled" } else { "disabled" };
    let root = if view.root_port.is_none() {
        "VLAN0001"
    } else {
        "none"
    };
    let ports = view.ports.iter().filter(|p| p.role != Role::Disabled);
    let count = |state| ports.clone().filter(|p| p.state == state).count();
    let [blocks, learns, forwards] =
        [State::Discarding, State::Learning, State::Forwarding].map(count);
    let mut text = format!("Switch is in rstp mode\nRoot bridge for: {root}\n");
    for (what, on) in [
        ("Portfast Default", set.edge_default),
        ("PortFast BPDU Guard Default", set.guard_default),
    ] {
        let _ = writeln!(text, "{what:<28} is {}", word(on));
    }
    let _ = writeln!(
        text,
        "\nName                   Blocking Listening Learning Forwarding STP Active\n\
         ---------------------- -------- --------- -------- ---------- ----------\n\
         VLAN0001               {blocks:>8} {:>9} {learns:>8} {forwards:>10} {:>10}",
        0,
        blocks + learns + forwards
    );
    text
}

/// `show spanning-tree detail`
pub(super) fn detail(switch: &Switch) -> String {
    let Some(view) = switch.engine.spanning_tree() else {
        return NONE.into();
    };
    let (priority, mac) = view.bridge;
    let [hello, max_age, forward] = view.times;
    let mut text = format!(
        "\n VLAN0001 is executing the rstp compatible Spanning Tree protocol\n  \
         Bridge Identifier has priority {priority}, sysid 0, address {}\n  \
         Configured hello time {hello}, max age {max_age}, forward delay {forward}\n",
        shown_mac(&mac)
    );
    match &view.root_port {
        None => text.push_str("  We are the root of the spanning tree\n"),
        Some(port) => {
            let (priority, mac) = view.root;
            let _ = writeln!(
                text,
                "  Current root has priority {priority}, address {}\n  Root port is {} ({port}), cost of root path is {}",
                shown_mac(&mac),
                port.number,
                view.cost
            );
        }
    }
    for p in view.ports.iter().filter(|p| p.role != Role::Disabled) {
        let (role, state) = (format!("{:?}", p.role), format!("{:?}", p.state));
        let state = if p.state == State::Discarding {
            "blocking".into()
        } else {
            state.to_lowercase()
        };
        let _ = writeln!(
            text,
            "\n Port {n} ({}) of VLAN0001 is {} {state} \n   Port path cost {}, Port priority {}, Port Identifier {}.{n}.",
            p.name,
            role.to_lowercase(),
            p.cost,
            p.priority,
            p.priority,
            n = p.name.number
        );
        if p.edge {
            text.push_str("   The port is in the portfast mode\n");
        }
        let link = if p.point_to_point {
            "point-to-point"
        } else {
            "shared"
        };
        let _ = writeln!(text, "   Link type is {link}");
    }
    text.push('\n');
    text
}

/// `show errdisable recovery`
pub(super) fn recovery(switch: &Switch) -> String {
    let set = &switch.config.tree;
    let status = if set.recovers { "Enabled" } else { "Disabled" };
    let mut text = format!(
        "ErrDisable Reason            Timer Status\n-----------------            --------------\n\
         {:<28} {status}\n\nTimer interval: {} seconds\n\n\
         Interfaces that will be enabled at the next timeout:\n",
        "bpduguard",
        set.interval.unwrap_or(RECOVERS_AFTER)
    );
    let ports = switch
        .engine
        .spanning_tree()
        .map(|t| t.ports)
        .unwrap_or_default();
    let waits: Vec<(&PortView, u32)> = ports
        .iter()
        .filter_map(|p| Some((p, p.recovers_in?)))
        .collect();
    if !waits.is_empty() {
        text.push_str("\nInterface       Errdisable reason       Time left(sec)\n---------       -----------------       --------------\n");
    }
    for (p, left) in waits {
        let _ = writeln!(
            text,
            "{:<15} {:>17} {left:>20}",
            p.name.short(),
            "bpduguard"
        );
    }
    text
}

fn row(port: &PortView) -> String {
    row_of(&port.name.short(), port)
}

fn row_of(head: &str, port: &PortView) -> String {
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
    let id = format!("{}.{}", port.priority, port.number);
    format!(
        "{head:<19} {role} {state} {:<9} {id:<8} {kind}\n",
        port.cost
    )
}
