// SPDX-License-Identifier: Apache-2.0
//! Ports: their states, their VLANs, trunks.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tandem_swconfig::{Kind, Mode, Name, Switchport};

use super::State;
use crate::Switch;
use crate::change::vlan_name;
use crate::render::{list, pieces};

/// What is on a port, as far as its speed says it.
fn media(name: &Name) -> &'static str {
    match name.kind {
        Kind::Gigabit => "10/100/1000BaseTX",
        Kind::TenGigabit => "10GBase",
        Kind::TwentyFiveGig => "25GBase",
        Kind::FortyGigabit => "40GBase",
        // as in IOS
        Kind::PortChannel => "",
        _ => "100GBase",
    }
}

/// How a port is, in a word.
pub(super) fn word(state: &State, err_disabled: &BTreeSet<Name>) -> &'static str {
    match (state.set.shutdown, state.is_up()) {
        (true, _) => "disabled",
        _ if err_disabled.contains(&state.name) => "err-disabled",
        (false, true) => "connected",
        (false, false) => "notconnect",
    }
}

/// `show interfaces status`
pub(super) fn status(states: &[State], err_disabled: &BTreeSet<Name>) -> String {
    let mut text = String::from(
        "\nPort         Name               Status       Vlan       Duplex  Speed Type\n",
    );
    for state in states.iter().filter(|s| s.name.is_switched()) {
        let status = word(state, err_disabled);
        let vlan = match &state.set.switchport {
            None => "routed".into(),
            Some(port) if port.mode == Mode::Trunk => "trunk".into(),
            Some(port) => port.access.to_string(),
        };
        let speed = state.link.as_ref().map_or(0, |l| l.speed);
        let (duplex, speed) = match state.is_up() && speed != 0 {
            true => ("a-full", format!("a-{}", shown_speed(speed))),
            false => ("auto", "auto".into()),
        };
        let name: String = state
            .set
            .description
            .iter()
            .flat_map(|d| d.chars())
            .take(18)
            .collect();
        let _ = writeln!(
            text,
            "{:<12} {:<18} {status:<12} {vlan:<10} {duplex:>6} {speed:>6} {}",
            state.name.short(),
            name.trim_end(),
            media(&state.name)
        );
    }
    text
}

/// `show interfaces status err-disabled`
pub(super) fn err_disabled(states: &[State], out: &BTreeSet<Name>) -> String {
    let mut text = String::from(
        "\nPort      Name               Status       Reason               Err-disabled Vlans\n",
    );
    for state in states.iter().filter(|s| word(s, out) == "err-disabled") {
        let name = state.set.description.iter().flat_map(|d| d.chars());
        let name: String = name.take(18).collect();
        let row = format!(
            "{:<9} {name:<18} err-disabled bpduguard",
            state.name.short()
        );
        let _ = writeln!(text, "{row}");
    }
    text
}

fn shown_speed(mbps: u32) -> String {
    match mbps {
        10_000.. => format!("{}G", mbps / 1000),
        _ => mbps.to_string(),
    }
}

/// A VLAN and what it is called.
fn called(switch: &Switch, id: u16) -> String {
    match switch.config.vlans.get(&id) {
        Some(vlan) => format!("{id} ({})", vlan_name(id, vlan)),
        None if id == 1 => "1 (default)".into(),
        None => format!("{id} (Inactive)"),
    }
}

/// `show interfaces switchport`
pub(super) fn switchport(switch: &Switch, states: &[State]) -> String {
    let mut text = String::new();
    for state in states.iter().filter(|s| s.name.is_switched()) {
        let _ = writeln!(text, "Name: {}", state.name.short());
        let Some(port) = &state.set.switchport else {
            text.push_str("Switchport: Disabled\n\n");
            continue;
        };
        let trunk = port.mode == Mode::Trunk;
        let mode = if trunk { "trunk" } else { "static access" };
        let tagging = if switch.config.tag_native {
            "enabled"
        } else {
            "disabled"
        };
        let lines = [
            "Switchport: Enabled".into(),
            format!("Administrative Mode: {mode}"),
            format!(
                "Operational Mode: {}{}",
                if state.is_up() { mode } else { "down" },
                match state.set.channel {
                    Some(c) => format!(" (member of bundle Po{})", c.number),
                    None => String::new(),
                }
            ),
            "Administrative Trunking Encapsulation: dot1q".into(),
            format!(
                "Operational Trunking Encapsulation: {}",
                if trunk { "dot1q" } else { "native" }
            ),
            "Negotiation of Trunking: Off".into(),
            format!("Access Mode VLAN: {}", called(switch, port.access)),
            format!("Trunking Native Mode VLAN: {}", called(switch, port.native)),
            format!("Administrative Native VLAN tagging: {tagging}"),
            "Voice VLAN: none".into(),
            format!("Trunking VLANs Enabled: {}", enabled(port)),
            "Pruning VLANs Enabled: NONE".into(),
            String::new(),
            "Protected: false".into(),
            "Unknown unicast blocked: disabled".into(),
            "Unknown multicast blocked: disabled".into(),
            String::new(),
        ];
        text.push_str(&lines.join("\n"));
        text.push('\n');
    }
    text
}

/// The VLANs of a trunk, in lines that programs put together again.
fn enabled(port: &Switchport) -> String {
    match &port.allowed {
        None => "ALL".into(),
        Some(none) if none.is_empty() => "NONE".into(),
        Some(some) => pieces(some, 50).join(",\n     "),
    }
}

/// `show interfaces trunk`
pub(super) fn trunk(switch: &Switch, states: &[State]) -> String {
    // a port of a port-channel is that one's
    let of = |s: &State| {
        let alone = s.set.switchport.clone().filter(|_| s.set.channel.is_none());
        alone.filter(|p| p.mode == Mode::Trunk)
    };
    let trunks: Vec<(&State, Switchport)> =
        states.iter().filter_map(|s| Some((s, of(s)?))).collect();
    if trunks.is_empty() {
        return String::new();
    }
    let every: BTreeSet<u16> = (1..=4094).collect();
    let mut there: BTreeSet<u16> = switch
        .config
        .vlans
        .iter()
        .filter(|(_, v)| !v.suspended)
        .map(|(id, _)| *id)
        .collect();
    there.insert(1);
    let shown = |set: &BTreeSet<u16>| {
        if set.is_empty() {
            "none".into()
        } else {
            list(set)
        }
    };
    let mut text =
        String::from("\nPort        Mode             Encapsulation  Status        Native vlan\n");
    for (state, port) in &trunks {
        let status = if state.is_up() {
            "trunking"
        } else {
            "not-trunking"
        };
        let _ = writeln!(
            text,
            "{:<11} {:<16} {:<14} {status:<13} {}",
            state.name.short(),
            "on",
            "802.1q",
            port.native
        );
    }
    let mut part = |title: &str, of: &dyn Fn(&State, &BTreeSet<u16>) -> String| {
        let _ = writeln!(text, "\nPort        {title}");
        for (state, port) in &trunks {
            let allowed = port.allowed.as_ref().unwrap_or(&every);
            let _ = writeln!(text, "{:<11} {}", state.name.short(), of(state, allowed));
        }
    };
    let active = |allowed: &BTreeSet<u16>| shown(&allowed.intersection(&there).copied().collect());
    part("Vlans allowed on trunk", &|_, allowed| shown(allowed));
    part(
        "Vlans allowed and active in management domain",
        &|_, allowed| active(allowed),
    );
    part(
        "Vlans in spanning tree forwarding state and not pruned",
        &|state, allowed| match state.is_up() {
            true => active(allowed),
            false => "none".into(),
        },
    );
    text
}
