// SPDX-License-Identifier: Apache-2.0
//! Port-channels: what `channel-group` makes of a configuration, and the line that says it.
//!
//! What all ports of a port-channel have alike ([`Interface::follow`]) is set there: its ports follow, and say nothing of it
//! in a running-config.

use tandem_swconfig::channel::{self, Channel, Mode};
use tandem_swconfig::{Config, Interface, Kind, Name};
use tandem_swgrammar::{Form, Id, Parsed};

use crate::change::INTERNAL;

/// `channel-group` of a port. What is to be said of it.
pub(crate) fn of_interface(
    config: &mut Config,
    name: &Name,
    set: &mut Interface,
    parsed: &Parsed,
) -> Result<Option<String>, String> {
    if !name.is_port() {
        return Err(format!("% Command rejected: {name} is no port"));
    }
    let number = parsed.number().and_then(|n| u16::try_from(n).ok());
    if parsed.form != Form::Plain {
        let is_in = |c: &Channel| number.is_none_or(|n| n == c.number);
        if set.channel.is_some() && !set.channel.as_ref().is_some_and(is_in) {
            return Err(format!("% {name} is in another channel group"));
        }
        set.channel = None;
        return Ok(None);
    }
    let number = number.ok_or(INTERNAL)?;
    let mode = match (parsed.has("on"), parsed.has("active")) {
        (true, _) => Mode::On,
        (_, true) => Mode::Active,
        _ if parsed.has("passive") => return Err("% LACP is not there: mode on is".into()),
        _ => return Err("% PAgP is not there: mode on is".into()),
    };
    let group = channel::name(number);
    let there = config.interfaces.get(&group);
    let routes = |i: &Interface| i.switchport.is_none();
    if routes(set) || there.is_some_and(routes) {
        return Err(format!(
            "% Command rejected ({group}, {name}): a port-channel and its ports switch, and do not route"
        ));
    }
    set.channel = Some(Channel { number, mode });
    match there {
        Some(there) => {
            set.follow(&there.clone());
            Ok(None)
        }
        None => {
            let mut new = Interface::new(&group);
            new.follow(set);
            config.interfaces.insert(group, new);
            Ok(Some(format!(
                "Creating a port-channel interface Port-channel {number}"
            )))
        }
    }
}

/// What was changed of an interface holds together: what a port-channel has is not set at its ports, and they follow it.
///
/// # Errors
/// It does not.
pub(crate) fn keep(config: &mut Config, name: &Name, set: &Interface) -> Result<(), String> {
    if let Some(channel) = set.channel {
        let group = channel::name(channel.number);
        let there = config.interfaces.get(&group);
        return match there.is_some_and(|its| set.follows(its)) {
            true => Ok(()),
            false => Err(format!(
                "% Command rejected: {name} is in {group}, where its VLANs, MTU and spanning tree are set"
            )),
        };
    }
    if name.kind != Kind::PortChannel {
        return Ok(());
    }
    let members: Vec<Name> = config.members(name.number).collect();
    if set.switchport.is_none() && !members.is_empty() {
        return Err(format!(
            "% Command rejected: {name} has ports, and those do not route"
        ));
    }
    for member in members {
        if let Some(of) = config.interfaces.get_mut(&member) {
            of.follow(set);
        }
    }
    Ok(())
}

/// A port-channel goes. Its ports are by themselves then, and shut down: cables that were one would be a loop.
pub(crate) fn removed(config: &mut Config, number: u16) -> Vec<String> {
    let mut notes = Vec::new();
    for member in config.members(number).collect::<Vec<_>>() {
        if let Some(of) = config.interfaces.get_mut(&member) {
            (of.channel, of.shutdown) = (None, true);
            notes.push(format!(
                "{member} was in Port-channel{number}, and is shut down"
            ));
        }
    }
    notes
}

/// Is it a line that a port of a port-channel does not say, as that says it?
pub(crate) fn says_its_channel(id: Id) -> bool {
    use Id::{
        AccessVlan, AllowedVlans, Mtu, NativeVlan, Switchport, SwitchportMode, TreeCost, TreeGuard,
        TreeLinkType, TreePortPriority, TreePortfast,
    };
    matches!(
        id,
        Switchport
            | AccessVlan
            | NativeVlan
            | AllowedVlans
            | SwitchportMode
            | Mtu
            | TreeCost
            | TreePortPriority
            | TreePortfast
            | TreeGuard
            | TreeLinkType
    )
}

/// The line of a port.
pub(crate) fn line(channel: &Channel) -> String {
    let mode = match channel.mode {
        Mode::On => "on",
        Mode::Active => "active",
    };
    format!("channel-group {} mode {mode}", channel.number)
}
