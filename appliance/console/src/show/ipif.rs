// SPDX-License-Identifier: Apache-2.0
//! `show ip interface`: addresses and access lists.

use std::fmt::Write as _;

use tandem_swgrammar::Parsed;

use super::{State, chosen, known, unknown};
use crate::Switch;

fn one(state: &State, asked: bool) -> Option<String> {
    let up = |is| if is { "up" } else { "down" };
    let admin = match state.set.shutdown {
        true => "administratively down",
        false => up(state.is_up()),
    };
    let mut text = format!(
        "{} is {admin}, line protocol is {}\n",
        state.name,
        up(state.is_up())
    );
    let list = |name: &Option<String>| name.clone().unwrap_or_else(|| "not set".into());
    let ins = list(&state.set.groups.ipv4_in);
    if state.set.switchport.is_some() {
        // IOS shows a switched port if it is asked for, or has a list
        let shown = asked || state.set.groups.ipv4_in.is_some();
        let _ = writeln!(text, "  Inbound  access list is {ins}");
        return shown.then_some(text);
    }
    match &state.set.ipv4 {
        None => text += "  Internet protocol processing disabled\n",
        Some(net) => {
            let _ = writeln!(text, "  Internet address is {}/{}", net.address, net.prefix);
            text += "  Broadcast address is 255.255.255.255\n";
            let _ = writeln!(text, "  MTU is {} bytes", state.set.mtu.unwrap_or(1500));
            for net in &state.set.secondary {
                let _ = writeln!(text, "  Secondary address {}/{}", net.address, net.prefix);
            }
            let _ = writeln!(
                text,
                "  Outgoing access list is {}",
                list(&state.set.groups.ipv4_out)
            );
            let _ = writeln!(text, "  Inbound  access list is {ins}");
        }
    }
    Some(text)
}

/// All interfaces, or one.
pub(super) fn interfaces(switch: &Switch, parsed: &Parsed) -> String {
    let only = parsed.interfaces().first().copied();
    if let Some(name) = only.filter(|n| !known(switch, n)) {
        return unknown(&name);
    }
    let all = chosen(switch, parsed);
    all.iter().filter_map(|s| one(s, only.is_some())).collect()
}
