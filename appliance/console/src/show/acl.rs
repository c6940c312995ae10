// SPDX-License-Identifier: Apache-2.0
//! `show access-lists`: the lists, and how many packets their rules have met.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tandem_swconfig::acl::{List, ListKind};

use crate::Switch;
use crate::acl::rule_text;

/// Which families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    All,
    Ipv4,
    Ipv6,
}

fn head(name: &str, kind: ListKind) -> String {
    match kind {
        ListKind::Standard => format!("Standard IP access list {name}\n"),
        ListKind::Extended => format!("Extended IP access list {name}\n"),
        ListKind::Ipv6 => format!("IPv6 access list {name}\n"),
    }
}

/// Those of a name, or all.
pub(super) fn lists(switch: &Switch, of: Of, only: Option<&str>) -> String {
    let matches = switch.engine.matches();
    let mut text = String::new();
    let mut add = |all: &BTreeMap<String, List>, ipv6: bool| {
        // numbers first, and by their value
        let mut named: Vec<(&String, &List)> = all.iter().collect();
        named.sort_by_key(|(name, _)| name.parse::<u32>().unwrap_or(u32::MAX));
        for (name, list) in named
            .into_iter()
            .filter(|(n, _)| only.is_none_or(|o| o == *n))
        {
            text += &head(name, list.kind);
            for (at, rule) in list.rules() {
                let met = matches.get(&(ipv6, name.clone(), at)).copied();
                let met = match met.unwrap_or(0) {
                    0 => String::new(),
                    1 => " (1 match)".into(),
                    n => format!(" ({n} matches)"),
                };
                let line = rule_text(list.kind, rule, true);
                let _ = match ipv6 {
                    true => writeln!(text, "    {line}{met} sequence {at}"),
                    false => writeln!(text, "    {at} {line}{met}"),
                };
            }
        }
    };
    if of != Of::Ipv6 {
        add(&switch.config.lists, false);
    }
    if of != Of::Ipv4 {
        add(&switch.config.lists6, true);
    }
    text
}
