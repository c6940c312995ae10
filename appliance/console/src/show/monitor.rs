// SPDX-License-Identifier: Apache-2.0
//! `show monitor`, `show storm-control`.

use std::fmt::Write as _;

use tandem_swconfig::Name;
use tandem_swconfig::monitor::{Level, Session};
use tandem_swgrammar::Parsed;

use super::chosen;
use crate::Switch;
use crate::monitor::{level_text, levels};

fn session(number: u8, session: &Session) -> String {
    let head = format!("Session {number}");
    let mut text = format!("{head}\n{}\n", "-".repeat(head.len()));
    let _ = writeln!(text, "{:<22} : Local Session", "Type");
    let named = |rx, tx| {
        let ports = session.sources.iter();
        let some = ports.filter(|(_, w)| (w.rx, w.tx) == (rx, tx));
        let names: Vec<String> = some.map(|(n, _)| Name::short(n)).collect();
        names.join(",")
    };
    if !session.sources.is_empty() {
        let _ = writeln!(text, "{:<22} :", "Source Ports");
        for (word, rx, tx) in [
            ("RX Only", true, false),
            ("TX Only", false, true),
            ("Both", true, true),
        ] {
            let names = named(rx, tx);
            if !names.is_empty() {
                let _ = writeln!(text, "    {word:<18} : {names}");
            }
        }
    }
    if let Some(port) = &session.destination {
        let _ = writeln!(text, "{:<22} : {}", "Destination Ports", port.short());
        let _ = writeln!(text, "    {:<18} : Native", "Encapsulation");
        let _ = writeln!(text, "    {:<18} : Disabled", "      Ingress");
    }
    text + "\n"
}

/// All sessions, or one.
pub(super) fn sessions(switch: &Switch, parsed: &Parsed) -> String {
    let only = parsed.number();
    let all = switch.config.sessions.iter();
    let some = all.filter(|(n, _)| only.is_none_or(|o| o == u32::from(**n)));
    let text: String = some.map(|(n, s)| session(*n, s)).collect();
    match (text.is_empty(), only) {
        (false, _) => text,
        (true, Some(n)) => format!("Session {n} is not configured\n"),
        (true, None) => "No SPAN configuration is present in the system.\n".into(),
    }
}

/// Limits of what floods. What flows at the moment is not measured.
pub(super) fn storms(switch: &Switch, parsed: &Parsed) -> String {
    let only = ["broadcast", "multicast", "unicast"]
        .into_iter()
        .find(|w| parsed.has(w));
    let mut text = String::from("Key: U - Unicast, B - Broadcast, M - Multicast\n");
    let line = |text: &mut String, [port, state, upper, dropped, kind]: [&str; 5]| {
        let _ = writeln!(
            text,
            "{port:<10} {state:<14} {upper:>14}  {dropped:>10}  {kind:<4}"
        );
    };
    line(
        &mut text,
        ["Interface", "Filter State", "Upper", "Dropped", "Type"],
    );
    line(
        &mut text,
        [
            "---------",
            "-------------",
            "--------------",
            "----------",
            "----",
        ],
    );
    let policed = switch.engine.policed();
    for state in chosen(switch, parsed) {
        for (word, level) in levels(&state.set.storm) {
            if only.is_some_and(|o| o != word) {
                continue;
            }
            let is = if state.is_up() {
                "Forwarding"
            } else {
                "Link Down"
            };
            let upper = match level {
                Level::Percent(_) => format!("{}%", level_text(level)),
                Level::Pps(n) => format!("{n} pps"),
                Level::Bps(n) => format!("{n} bps"),
            };
            let kind = word.get(..1).unwrap_or_default().to_uppercase();
            let key = (state.name, format!("storm-control {word}"));
            let dropped = policed.get(&key).map_or(0, |c| c[1]).to_string();
            line(
                &mut text,
                [&state.name.short(), is, &upper, &dropped, &kind],
            );
        }
    }
    text
}
