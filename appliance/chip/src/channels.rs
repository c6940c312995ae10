// SPDX-License-Identifier: Apache-2.0
//! Port-channels: groups of the database, which are ports of its bridge.

use std::collections::BTreeSet;

use tandem_swconfig::channel::{self, Mode};
use tandem_swconfig::snooping::{OfVlan, Protocol};
use tandem_swconfig::{Config, Interface, Kind, Link, Name};
use tandem_vlans::{group_of_port, port_of_group};

/// The port of the database that an interface is.
pub(crate) fn number(name: &Name) -> u16 {
    match name.kind {
        Kind::PortChannel => port_of_group(name.number),
        _ => name.number,
    }
}

/// The port-channel that a port of the database is, if it is one.
pub(crate) fn name(port: u16) -> Option<Name> {
    group_of_port(port).map(channel::name)
}

/// What is set of an interface; a port of a port-channel that is shut down is so itself.
pub(crate) fn interface(config: &Config, name: &Name) -> Interface {
    let mut of = config.interface(name);
    of.shutdown |= config.channel_of(name).is_some_and(|(_, i)| i.shutdown);
    of
}

/// How a port-channel is, by how its ports are.
pub(crate) fn link(number: u16, mac: [u8; 6], members: &[&Link], out: bool) -> Link {
    let up = members.iter().filter(|l| l.carrier);
    let mut counters = [0; 4];
    for link in members {
        for (sum, n) in counters.iter_mut().zip(link.counters) {
            *sum += n;
        }
    }
    Link {
        name: channel::name(number),
        linux: String::new(),
        mac: members.first().map_or(mac, |l| l.mac),
        carrier: up.clone().next().is_some() && !out,
        speed: up.map(|l| l.speed).sum(),
        counters,
    }
}

/// What can't be asked for.
///
/// # Errors
/// Why, in one line.
pub(crate) fn check(config: &Config) -> Result<(), String> {
    for (name, of) in &config.interfaces {
        let Some(channel) = of.channel else { continue };
        let group = channel::name(channel.number);
        let not = |what: &str| {
            Err(format!(
                "{name} has {what}, which a port of {group} can't have"
            ))
        };
        if channel.mode != Mode::On {
            return Err(format!(
                "{name}: engine chip speaks no LACP: channel-group {} mode on is what there is",
                channel.number
            ));
        }
        if of.groups != Default::default() {
            return not("an access list");
        }
        if of.storm != Default::default() {
            return not("storm-control");
        }
        if of.policy.is_some() {
            return not("a policy");
        }
        let mut sessions = config.sessions.values();
        if sessions.any(|s| s.destination == Some(*name) || s.sources.contains_key(name)) {
            return not("a monitor session");
        }
        let mut snooping = Protocol::ALL.map(|p| config.snooping(p)).into_iter();
        let is_set =
            |v: &OfVlan| v.routers.contains(name) || v.members.iter().any(|m| m.1 == *name);
        if snooping.any(|s| s.vlans.values().any(is_set)) {
            return not("a router or a static group of snooping");
        }
    }
    Ok(())
}

/// Port-channels that have ports.
pub(crate) fn with_ports(config: &Config) -> impl Iterator<Item = (Name, Interface)> {
    let numbers = config.interfaces.values().filter_map(|i| i.channel);
    let numbers: BTreeSet<u16> = numbers.map(|c| c.number).collect();
    let names = numbers.into_iter().map(channel::name);
    names.map(|n| (n, config.interface(&n)))
}
