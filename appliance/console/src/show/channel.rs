// SPDX-License-Identifier: Apache-2.0
//! `show etherchannel summary`.

use std::fmt::Write as _;

use tandem_swconfig::Kind;
use tandem_swconfig::channel::{Channel, Mode};
use tandem_swgrammar::Parsed;

use super::{State, states};
use crate::Switch;

/// Ports in a line.
const IN_LINE: usize = 4;

/// Port-channels and their ports. A letter is only there if it may be shown.
pub(super) fn summary(switch: &Switch, parsed: &Parsed) -> String {
    let all = states(switch);
    let only = parsed.number();
    let chosen = |s: &&State| only.is_none_or(|n| n == u32::from(s.name.number));
    let groups = all.iter().filter(|s| s.name.kind == Kind::PortChannel);
    let groups: Vec<&State> = groups.filter(chosen).collect();
    let mut text = format!(
        "Flags:  D - down        P - bundled in port-channel\n        \
         S - Layer2      U - in use\n\n\n\
         Number of channel-groups in use: {n}\n\
         Number of aggregators:           {n}\n\n\
         Group  Port-channel  Protocol    Ports\n\
         ------+-------------+-----------+-----------------------------------------------\n",
        n = groups.len()
    );
    for group in groups {
        let number = group.name.number;
        let of = |s: &&State| s.set.channel.is_some_and(|c| c.number == number);
        let members: Vec<&State> = all.iter().filter(of).collect();
        let lacp = |c: Channel| c.mode == Mode::Active;
        let protocol = match members.iter().any(|s| s.set.channel.is_some_and(lacp)) {
            true => "LACP",
            false => "-",
        };
        let is = if group.is_up() { "SU" } else { "SD" };
        let name = format!("{}({is})", group.name.short());
        let port = |s: &&State| {
            let flag = if s.is_up() { "P" } else { "D" };
            format!("{}({flag})", s.name.short())
        };
        let ports: Vec<String> = members.iter().map(port).collect();
        let mut lines = ports.chunks(IN_LINE);
        let mut line = |head: String| {
            let ports = lines.next()?.iter().map(|p| format!("{p:<12}"));
            let line = format!("{head}{}", ports.collect::<String>());
            let _ = writeln!(text, "{}", line.trim_end());
            Some(())
        };
        let head = format!("{number:<6} {name:<15} {protocol:<9} ");
        if line(head.clone()).is_none() {
            let _ = writeln!(text, "{}", head.trim_end());
            continue;
        }
        while line(format!("{:33}", "")).is_some() {}
    }
    text
}
