// SPDX-License-Identifier: Apache-2.0
//! `show ip igmp snooping …`, `show ipv6 mld snooping …`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use tandem_swconfig::Name;
use tandem_swconfig::snooping::{OfVlan, Protocol, View};
use tandem_swgrammar::Parsed;

use crate::Switch;
use crate::snooping::{shown_group, shown_protocol};

pub(super) fn show(switch: &Switch, parsed: &Parsed) -> String {
    let of = shown_protocol(parsed.id);
    let Some(view) = switch.engine.snooping(of) else {
        return format!("% Engine {} does not snoop\n", switch.engine.name());
    };
    let one = parsed.vlan();
    match () {
        () if parsed.has("groups") || parsed.has("address") => groups(of, &view, one),
        () if parsed.has("mrouter") => routers(&view, one),
        () if parsed.has("querier") => queriers(of, &view, one),
        () => all(switch, of, &view, one),
    }
}

fn is_wanted(one: Option<u16>) -> impl Fn(&u16) -> bool {
    move |vid| one.is_none_or(|one| one == *vid)
}

fn able(on: bool) -> &'static str {
    if on { "Enabled" } else { "Disabled" }
}

/// How it is set, of the switch and of its VLANs.
fn all(switch: &Switch, of: Protocol, view: &View, one: Option<u16>) -> String {
    let set = switch.config.snooping(of);
    let (name, leave) = match of {
        Protocol::Igmp => ("IGMP", "IGMPv2"),
        Protocol::Mld => ("MLD", "MLDv1"),
    };
    let mut text = format!(
        "Global {name} Snooping configuration:\n{}\n",
        "-".repeat(43)
    );
    let mut row = |what: &str, is: &str| _ = writeln!(text, "{what:<28} : {is}");
    row(&format!("{name} snooping"), able(set.on));
    row(&format!("{name} snooping querier"), able(set.querier));
    row("Report suppression", "Disabled");
    row("Robustness variable", "2");
    row("Last member query count", "2");
    row("Last member query interval", "1000");
    let wanted = is_wanted(one);
    let mut vlans: Vec<u16> = switch.config.vlans.keys().copied().chain([1]).collect();
    vlans.sort_unstable();
    vlans.dedup();
    for vid in vlans.into_iter().filter(|v| wanted(v)) {
        let usual = OfVlan::default();
        let v = set.vlans.get(&vid).unwrap_or(&usual);
        let title = format!("Vlan {vid}:");
        let _ = writeln!(text, "\n{title}\n{}", "-".repeat(title.len()));
        let mut row = |what: &str, is: &str| _ = writeln!(text, "{what:<35} : {is}");
        row(&format!("{name} snooping"), able(set.on && !v.off));
        row(&format!("{leave} immediate leave"), able(v.immediate));
        row("Multicast router learning mode", "pim-dvmrp");
        row(
            &format!("{name} snooping querier"),
            able(set.querier || v.querier),
        );
        let forwards = match view.queriers.get(&vid) {
            Some((_, true)) => "to members",
            Some((Some(_), false)) => "flooded: members are not known yet",
            Some((None, _)) => "flooded: no querier is known",
            None => "flooded",
        };
        row("Groups are", forwards);
    }
    text.push('\n');
    text
}

/// Ports of one group, and how it is known.
#[derive(Default)]
struct Row {
    ports: Vec<String>,
    fixed: bool,
    learned: bool,
}

fn groups(of: Protocol, view: &View, one: Option<u16>) -> String {
    let (word, version, width) = match of {
        Protocol::Igmp => ("igmp", "v2", 24),
        Protocol::Mld => ("mld", "v1", 40),
    };
    let mut rows: BTreeMap<(u16, IpAddr), Row> = BTreeMap::new();
    let wanted = is_wanted(one);
    for (vid, group, port, fixed) in view.members.iter().filter(|m| wanted(&m.0)) {
        let row = rows.entry((*vid, *group)).or_default();
        row.ports.push(port.map_or("Switch".into(), |p| p.short()));
        row.fixed |= fixed;
        row.learned |= !fixed;
    }
    let mut text = format!(
        "{:<9} {:<width$} {:<11} {:<11} Port List\n{}\n",
        "Vlan",
        "Group",
        "Type",
        "Version",
        "-".repeat(width + 47)
    );
    for ((vid, group), row) in rows {
        let kind = match (row.learned, row.fixed) {
            (true, true) => format!("{word},user"),
            (true, false) => word.into(),
            _ => "user".into(),
        };
        let version = if row.learned { version } else { "" };
        let _ = writeln!(
            text,
            "{vid:<9} {:<width$} {kind:<11} {version:<11} {}",
            shown_group(group),
            row.ports.join(", ")
        );
    }
    text.push('\n');
    text
}

fn routers(view: &View, one: Option<u16>) -> String {
    let mut rows: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    let wanted = is_wanted(one);
    let word = |set: &bool| if *set { "static" } else { "dynamic" };
    let text = |port: &Name, set| format!("{}({})", port.short(), word(set));
    for (vid, port, set) in view.routers.iter().filter(|r| wanted(&r.0)) {
        rows.entry(*vid).or_default().push(text(port, set));
    }
    let mut text = String::from("Vlan    ports\n----    -----\n");
    for (vid, ports) in rows {
        let _ = writeln!(text, "{vid:>4}    {}", ports.join(", "));
    }
    text.push('\n');
    text
}

fn queriers(of: Protocol, view: &View, one: Option<u16>) -> String {
    let (version, name, width) = match of {
        Protocol::Igmp => ("v2", "IGMP Version", 24),
        Protocol::Mld => ("v1", "MLD Version", 40),
    };
    let mut text = format!(
        "{:<9} {:<width$} {name:<14} Groups\n{}\n",
        "Vlan",
        "IP Address",
        "-".repeat(width + 37)
    );
    let wanted = is_wanted(one);
    for (vid, (from, there)) in view.queriers.iter().filter(|q| wanted(q.0)) {
        let Some(from) = from else { continue };
        let groups = if *there { "to members" } else { "flooded" };
        let _ = writeln!(
            text,
            "{vid:<9} {:<width$} {version:<14} {groups}",
            shown_group(*from)
        );
    }
    text.push('\n');
    text
}
