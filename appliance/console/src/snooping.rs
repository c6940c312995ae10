// SPDX-License-Identifier: Apache-2.0
//! `ip igmp snooping …`, `ipv6 mld snooping …`: what they make of a configuration, and the lines that say it.

use std::net::IpAddr;

use tandem_swconfig::Config;
use tandem_swconfig::snooping::{OfVlan, Protocol, Snooping};
use tandem_swgrammar::{Arg, Form, Id, Parsed};

use crate::change::INTERNAL;
use crate::render::Block;

/// Members of a protocol that are set at most: a chip has room for thousands of groups, and reports need some.
const MEMBERS: usize = 1024;

/// Which protocol a command is of, if it is one of these.
fn protocol(id: Id) -> Option<Protocol> {
    match id {
        Id::Igmp | Id::IgmpVlan | Id::ShowIgmp => Some(Protocol::Igmp),
        Id::Mld | Id::MldVlan | Id::ShowMld => Some(Protocol::Mld),
        _ => None,
    }
}

/// The same of a command of `show`.
pub(crate) fn shown_protocol(id: Id) -> Protocol {
    protocol(id).unwrap_or(Protocol::Igmp)
}

/// Commands of snooping.
pub(crate) fn of_switch(config: &mut Config, parsed: &Parsed) -> Result<(), String> {
    let of = protocol(parsed.id).ok_or(INTERNAL)?;
    let set = match of {
        Protocol::Igmp => &mut config.igmp,
        Protocol::Mld => &mut config.mld,
    };
    let plain = parsed.form == Form::Plain;
    if !matches!(parsed.id, Id::IgmpVlan | Id::MldVlan) {
        match parsed.has("querier") {
            true => set.querier = plain,
            false => set.on = plain,
        }
        return Ok(());
    }
    let vid = parsed.vlan().ok_or(INTERNAL)?;
    let fixed = set.vlans.values().map(|v| v.members.len()).sum::<usize>();
    let vlan = set.vlans.entry(vid).or_default();
    of_vlan(of, vlan, parsed, fixed)?;
    set.vlans.retain(|_, v| *v != OfVlan::default());
    Ok(())
}

fn of_vlan(of: Protocol, vlan: &mut OfVlan, parsed: &Parsed, fixed: usize) -> Result<(), String> {
    let plain = parsed.form == Form::Plain;
    let port = parsed.interfaces().first().copied();
    if parsed.has("immediate-leave") {
        vlan.immediate = plain;
    } else if parsed.has("querier") {
        vlan.querier = plain;
    } else if parsed.has("mrouter") {
        let port = port.ok_or(INTERNAL)?;
        match plain {
            true => _ = vlan.routers.insert(port),
            false => _ = vlan.routers.remove(&port),
        }
    } else if parsed.has("static") {
        let group = parsed.args.iter().find_map(|a| match a {
            Arg::Address(a) => Some(IpAddr::V4(*a)),
            Arg::Address6(a) => Some(IpAddr::V6(*a)),
            _ => None,
        });
        let group = group.ok_or(INTERNAL)?;
        let member = (group, port.ok_or(INTERNAL)?);
        if !plain {
            vlan.members.remove(&member);
            return Ok(());
        }
        if !is_kept(group) {
            let text = shown_group(group);
            return Err(format!(
                "% {text} is no group that has members: all ports have it"
            ));
        }
        if vlan.members.insert(member) && fixed >= MEMBERS {
            return Err(format!(
                "% {MEMBERS} static members of {} are there",
                of.words()
            ));
        }
    } else {
        // out of the box each VLAN snoops where the switch does
        vlan.off = parsed.form == Form::No;
    }
    Ok(())
}

/// Not a group of the link alone.
fn is_kept(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(a) => a.is_multicast() && !matches!(a.octets(), [224, 0, 0, _]),
        IpAddr::V6(a) => a.is_multicast() && a.segments() != [0xff02, 0, 0, 0, 0, 0, 0, 1],
    }
}

/// As IOS writes it: IPv6 in capital letters.
pub(crate) fn shown_group(group: IpAddr) -> String {
    group.to_string().to_uppercase()
}

/// The lines of a row of the grammar.
pub(crate) fn blocks(id: Id, config: &Config) -> Vec<Block> {
    let Some(of) = protocol(id) else {
        return Vec::new();
    };
    let set = config.snooping(of);
    let lines = match id {
        Id::Igmp | Id::Mld => of_all(set),
        _ => set
            .vlans
            .iter()
            .flat_map(|(vid, v)| lines(*vid, v))
            .collect(),
    };
    let line = |(no, text): (bool, String)| Block {
        head: format!("{}{}{text}", if no { "no " } else { "" }, of.words()),
        lines: Vec::new(),
    };
    lines.into_iter().map(line).collect()
}

fn of_all(set: &Snooping) -> Vec<(bool, String)> {
    let all = [(set.on, ""), (set.querier, " querier")];
    let said = all.into_iter().filter(|(on, _)| *on);
    said.map(|(_, text)| (false, text.into())).collect()
}

/// Each with whether it begins with `no`.
fn lines(vid: u16, set: &OfVlan) -> Vec<(bool, String)> {
    let mut all = Vec::new();
    let mut add = |no, text: String| all.push((no, format!(" vlan {vid}{text}")));
    if set.off {
        add(true, String::new());
    }
    if set.immediate {
        add(false, " immediate-leave".into());
    }
    if set.querier {
        add(false, " querier".into());
    }
    for port in &set.routers {
        add(false, format!(" mrouter interface {port}"));
    }
    for (group, port) in &set.members {
        add(
            false,
            format!(" static {} interface {port}", shown_group(*group)),
        );
    }
    all
}
