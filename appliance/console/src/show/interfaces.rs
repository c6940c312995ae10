// SPDX-License-Identifier: Apache-2.0
//! Interfaces in short and at length.

use std::fmt::Write as _;

use tandem_swconfig::{Kind, Name};

use super::State;
use crate::Switch;
use crate::render::shown_mac;

/// `show interfaces description`
pub(super) fn description(states: &[State]) -> String {
    let mut text =
        String::from("Interface                      Status         Protocol Description\n");
    for state in states {
        let status = match (state.set.shutdown, state.is_up()) {
            (true, _) => "admin down",
            (false, true) => "up",
            (false, false) => "down",
        };
        let protocol = if state.is_up() { "up" } else { "down" };
        let said = state.set.description.as_deref().unwrap_or_default();
        let _ = writeln!(
            text,
            "{:<30} {status:<14} {protocol:<8} {said}",
            state.name.short()
        );
    }
    text
}

/// Of the line, and of the protocol above it.
fn up_down(state: &State) -> (&'static str, &'static str) {
    match (state.set.shutdown, state.is_up()) {
        (true, _) => ("administratively down", "down"),
        (false, true) => ("up", "up"),
        (false, false) => ("down", "down"),
    }
}

/// `show ip interface brief`
pub(super) fn ip_brief(states: &[State]) -> String {
    let mut text = String::from(
        "Interface              IP-Address      OK? Method Status                Protocol\n",
    );
    for state in states {
        let (status, protocol) = up_down(state);
        let (address, method) = match state.set.ipv4 {
            Some(net) => (net.address.to_string(), "manual"),
            None => ("unassigned".into(), "unset"),
        };
        // a long name would move the columns: IOS shortens it
        let name = Some(state.name.to_string()).filter(|n| n.len() <= 22);
        let name = name.unwrap_or_else(|| state.name.short());
        let _ = writeln!(
            text,
            "{name:<22} {address:<15} YES {method:<6} {status:<21} {protocol:<8}"
        );
    }
    text
}

/// `show ipv6 interface brief`
pub(super) fn ipv6_brief(states: &[State]) -> String {
    let mut text = String::new();
    for state in states {
        let (status, protocol) = up_down(state);
        let _ = writeln!(text, "{:<22} [{status}/{protocol}]", state.name.to_string());
        for net in &state.set.ipv6 {
            let _ = writeln!(text, "    {}", net.address.to_string().to_uppercase());
        }
        if state.set.ipv6.is_empty() {
            text.push_str("    unassigned\n");
        }
    }
    text
}

/// What it is made of; the speed that it has without another word, kb/s; its delay.
fn hardware(name: &Name) -> (&'static str, u64, u32) {
    match name.kind {
        Kind::Gigabit => ("Gigabit Ethernet", 1_000_000, 10),
        Kind::TenGigabit => ("Ten Gigabit Ethernet", 10_000_000, 10),
        Kind::TwentyFiveGig => ("Twenty Five Gigabit Ethernet", 25_000_000, 10),
        Kind::FortyGigabit => ("Forty Gigabit Ethernet", 40_000_000, 10),
        Kind::HundredGig => ("Hundred Gigabit Ethernet", 100_000_000, 10),
        Kind::PortChannel => ("EtherChannel", 1_000_000, 10),
        Kind::Loopback => ("Loopback", 8_000_000, 5000),
        Kind::Vlan => ("Ethernet SVI", 1_000_000, 10),
    }
}

/// `show interfaces`: what is not counted is not there, rather than 0.
pub(super) fn long(switch: &Switch, states: &[State]) -> String {
    let mut text = String::new();
    for state in states {
        let (status, protocol) = up_down(state);
        let behind = match state.name.is_switched() {
            false => "",
            true if state.is_up() => " (connected)",
            true if state.set.shutdown => " (disabled)",
            true => " (notconnect)",
        };
        let _ = writeln!(
            text,
            "{} is {status}, line protocol is {protocol}{behind}",
            state.name
        );
        let (hardware, kbps, delay) = hardware(&state.name);
        let speed = state.link.as_ref().map_or(0, |l| l.speed);
        match &state.link {
            Some(link) if state.name.kind != Kind::Loopback => {
                let mac = shown_mac(&link.mac);
                let _ = writeln!(
                    text,
                    "  Hardware is {hardware}, address is {mac} (bia {mac})"
                );
            }
            _ => {
                let _ = writeln!(text, "  Hardware is {hardware}");
            }
        }
        if let Some(said) = &state.set.description {
            let _ = writeln!(text, "  Description: {said}");
        }
        if let Some(net) = state.set.ipv4 {
            let _ = writeln!(text, "  Internet address is {}/{}", net.address, net.prefix);
        }
        let bandwidth = if speed == 0 {
            kbps
        } else {
            u64::from(speed) * 1000
        };
        let mtu = state.set.mtu.unwrap_or(1500);
        let _ = writeln!(
            text,
            "  MTU {mtu} bytes, BW {bandwidth} Kbit/sec, DLY {delay} usec, "
        );
        let encapsulation = if state.name.kind == Kind::Loopback {
            "LOOPBACK"
        } else {
            "ARPA"
        };
        let _ = writeln!(text, "  Encapsulation {encapsulation}, loopback not set");
        if state.name.is_switched() {
            match state.is_up() && speed != 0 {
                true => {
                    let _ = writeln!(text, "  Full-duplex, {speed}Mb/s");
                }
                false => text.push_str("  Auto-duplex, Auto-speed\n"),
            }
        }
        if state.name.kind == Kind::PortChannel {
            let members = switch.config.members(state.name.number);
            let members: Vec<String> = members.map(|n| n.short()).collect();
            let _ = writeln!(text, "  Members in this channel: {}", members.join(" "));
        }
        if let Some(link) = &state.link {
            let [packets_in, octets_in, packets_out, octets_out] = link.counters;
            let _ = writeln!(
                text,
                "     {packets_in} packets input, {octets_in} bytes, 0 no buffer"
            );
            let _ = writeln!(
                text,
                "     {packets_out} packets output, {octets_out} bytes, 0 underruns"
            );
        }
    }
    text
}
