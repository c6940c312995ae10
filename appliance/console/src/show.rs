// SPDX-License-Identifier: Apache-2.0
//! What `show` shows, in the columns of IOS: others read it by programs.

use std::collections::{BTreeMap, BTreeSet};

use tandem_swconfig::{Interface, Link, Name};
use tandem_swgrammar::{Id, Parsed};

use crate::clock::Moment;
use crate::services::Ntp;
use crate::{STARTUP, Store as _, Switch, load, render};

mod acl;
mod channel;
mod interfaces;
mod ip;
mod ipif;
mod json;
mod layer2;
mod lldp;
mod monitor;
mod platform;
mod policy;
mod ports;
mod snooping;
mod tree;

pub(crate) use json::json;

/// How an interface is.
pub(crate) struct State {
    pub name: Name,
    pub set: Interface,
    pub link: Option<Link>,
}

impl State {
    /// Up: nobody has shut it, and it has carrier, or needs none.
    pub(crate) fn is_up(&self) -> bool {
        let carrier = self.link.as_ref().is_some_and(|l| l.carrier);
        !self.set.shutdown && (carrier || self.name.kind == tandem_swconfig::Kind::Loopback)
    }
}

/// All interfaces: VLAN interfaces first, as IOS has them, then ports, port-channels, loopbacks. A port of a port-channel that
/// is shut down is so itself.
pub(crate) fn states(switch: &Switch) -> Vec<State> {
    let mut links: BTreeMap<Name, Link> = switch.links().into_iter().map(|l| (l.name, l)).collect();
    let mut names: BTreeSet<Name> = switch.engine.ports().into_iter().collect();
    names.extend(switch.config.interfaces.keys());
    let mut states: Vec<State> = names
        .into_iter()
        .map(|name| State {
            name,
            set: {
                let mut set = switch.config.interface(&name);
                let channel = switch.config.channel_of(&name);
                set.shutdown |= channel.is_some_and(|(_, i)| i.shutdown);
                set
            },
            link: links.remove(&name),
        })
        .collect();
    states.sort_by_key(|s| match s.name.kind {
        tandem_swconfig::Kind::Vlan => 0,
        tandem_swconfig::Kind::PortChannel => 2,
        tandem_swconfig::Kind::Loopback => 3,
        _ => 1,
    });
    states
}

/// Those of a command: the one that it names, or all.
pub(crate) fn chosen(switch: &Switch, parsed: &Parsed) -> Vec<State> {
    let one = parsed.interfaces().first().copied();
    states(switch)
        .into_iter()
        .filter(|s| one.is_none_or(|n| n == s.name))
        .collect()
}

/// What a command shows.
pub(crate) fn show(switch: &Switch, parsed: &Parsed) -> String {
    let one = parsed.interfaces().first().copied();
    match parsed.id {
        Id::ShowVersion => version(switch),
        Id::ShowInventory => inventory(switch),
        Id::ShowClock => {
            let now = Moment::now(switch.config.services.zone.as_ref());
            format!("{}\n", now.clock())
        }
        Id::ShowLldp => lldp::neighbours(switch, parsed),
        Id::ShowLog => switch.logs.shown(),
        Id::ShowNtpStatus => ntp(switch, Ntp::Status),
        Id::ShowNtpAssociations => ntp(switch, Ntp::Associations),
        Id::ShowRunning => match one {
            Some(name) if !known(switch, &name) => unknown(&name),
            one => running(switch, one),
        },
        Id::ShowStartup => startup(switch),
        Id::ShowDifferences => differences(switch),
        Id::ShowRevert => crate::revert::shown(switch),
        Id::ShowCpu => switch.load.cpu(parsed),
        Id::ShowProcessMemory => switch.load.memory(parsed),
        Id::ShowMemory => switch.load.pool(),
        Id::ShowDebugging => String::new(),
        Id::Dir | Id::ShowFlash | Id::More | Id::Verify => crate::files::files(switch, parsed),
        Id::ShowVlan => layer2::vlan(switch, parsed),
        Id::ShowStations => layer2::stations(switch, parsed),
        Id::ShowAging => format!(
            "Global Aging Time: {:>4}\n",
            switch.config.aging.unwrap_or(300)
        ),
        Id::ShowTree => tree::tree(switch, parsed),
        Id::ShowTreeDetail => tree::detail(switch),
        Id::ShowTreeSummary => tree::summary(switch),
        Id::ShowTreePort => tree::port(switch, one),
        Id::ShowRecovery => tree::recovery(switch),
        Id::ShowErrDisabled => {
            ports::err_disabled(&chosen(switch, parsed), &tree::err_disabled(switch))
        }
        Id::ShowIgmp | Id::ShowMld => snooping::show(switch, parsed),
        Id::ShowStatus => ports::status(&chosen(switch, parsed), &tree::err_disabled(switch)),
        Id::ShowSwitchport => ports::switchport(switch, &chosen(switch, parsed)),
        Id::ShowEtherchannel => channel::summary(switch, parsed),
        Id::ShowTrunk => ports::trunk(switch, &chosen(switch, parsed)),
        Id::ShowDescription => interfaces::description(&chosen(switch, parsed)),
        Id::ShowInterfaces => match one {
            Some(name) if !known(switch, &name) => unknown(&name),
            _ => interfaces::long(switch, &chosen(switch, parsed)),
        },
        Id::ShowIpBrief => interfaces::ip_brief(&states(switch)),
        Id::ShowIpInterface => ipif::interfaces(switch, parsed),
        Id::ShowIpv6Brief => interfaces::ipv6_brief(&states(switch)),
        Id::ShowIpRoute => ip::routes4(switch),
        Id::ShowIpv6Route => ip::routes6(switch),
        Id::ShowArp => ip::arp(switch),
        Id::ShowProtocols => ip::protocols(switch),
        Id::ShowOspf | Id::ShowOspfNeighbours | Id::ShowOspfInterface | Id::ShowOspfDatabase => {
            ip::ospf(switch, parsed)
        }
        Id::ShowBgp | Id::ShowBgpSummary | Id::ShowBgpNeighbours | Id::ShowRip => {
            ip::others(switch, parsed)
        }
        Id::ShowPolicyMap | Id::ShowClassMap => crate::policy::show(&switch.config, parsed),
        Id::ShowPolicyInterface => policy::interfaces(switch, parsed),
        Id::ShowMonitor => monitor::sessions(switch, parsed),
        Id::ShowStorm => monitor::storms(switch, parsed),
        Id::ShowLists => acl::lists(switch, acl::Of::All, parsed.text()),
        Id::ShowIpLists => acl::lists(switch, acl::Of::Ipv4, parsed.text()),
        Id::ShowIpv6Lists => acl::lists(switch, acl::Of::Ipv6, parsed.text()),
        Id::ShowResources | Id::ShowReplication | Id::ShowDrift | Id::ShowWhy => {
            platform::platform(switch, parsed)
        }
        _ => String::new(),
    }
}

fn ntp(switch: &Switch, what: Ntp) -> String {
    match switch.daemons.ntp(what) {
        Ok(text) => text,
        Err(why) => format!("% {why}\n"),
    }
}

fn known(switch: &Switch, name: &Name) -> bool {
    name.is_port() || switch.config.interfaces.contains_key(name)
}

fn unknown(name: &Name) -> String {
    format!("% Interface {name} does not exist\n")
}

/// `show running-config`, of all or of one interface.
pub(crate) fn running(switch: &Switch, one: Option<Name>) -> String {
    let text = match one {
        None => render::config(&switch.config, &switch.engine.ports()),
        Some(name) => {
            let block = render::interface(&name, &switch.config.interface(&name));
            let lines: String = block.lines.iter().map(|l| format!(" {l}\n")).collect();
            format!("!\n{}\n{lines}end\n\n", block.head)
        }
    };
    format!(
        "Building configuration...\n\nCurrent configuration : {} bytes\n{text}",
        text.len()
    )
}

fn startup(switch: &Switch) -> String {
    match switch.store.read(STARTUP) {
        Ok(Some(text)) => format!(
            "Using {} out of {} bytes\n{text}",
            text.len(),
            crate::store::LARGEST
        ),
        Ok(None) => format!("{STARTUP} is not present\n"),
        Err(e) => format!("% {STARTUP}: {e}\n"),
    }
}

fn differences(switch: &Switch) -> String {
    let kept = match switch.store.read(STARTUP) {
        Ok(text) => text.unwrap_or_default(),
        Err(e) => return format!("% {STARTUP}: {e}\n"),
    };
    let (kept, bad) = load::read(
        &tandem_swconfig::Config::default(),
        &kept,
        &switch.ports(),
        false,
    );
    let mut text: String = bad.iter().map(|b| format!("{b}\n")).collect();
    text.push_str("!Contextual Config Diffs:\n");
    match load::differences(&kept, &switch.config) {
        none if none.is_empty() => text.push_str("!No changes were found\n"),
        some => text.push_str(&some),
    }
    text
}

/// The box's serial number is its first MAC address: it has no other.
fn first_mac(switch: &Switch) -> [u8; 6] {
    let ports = switch.engine.ports();
    let links = switch.engine.links();
    let of = |port: &Name| links.iter().find(|l| l.name == *port).map(|l| l.mac);
    ports.iter().find_map(of).unwrap_or_default()
}

fn serial(mac: &[u8; 6]) -> String {
    mac.iter().map(|b| format!("{b:02X}")).collect()
}

fn inventory(switch: &Switch) -> String {
    let ports = switch.engine.ports().len();
    format!(
        "NAME: \"1\", DESCR: \"Tandem, {ports} ports, engine {}\"\nPID: TANDEM-{ports} , VID: V01  , SN: {}\n\n",
        switch.engine.name(),
        serial(&first_mac(switch))
    )
}

/// The lines that clients look for are as in IOS; what it is not, it does not say.
fn version(switch: &Switch) -> String {
    let name = switch.config.hostname.as_deref().unwrap_or("Switch");
    let mac = first_mac(switch);
    let vlans = switch
        .config
        .interfaces
        .keys()
        .filter(|n| n.kind == tandem_swconfig::Kind::Vlan)
        .count();
    let ports = switch.engine.ports().len();
    let colons: Vec<String> = mac.iter().map(|b| format!("{b:02x}")).collect();
    let serial = serial(&mac);
    format!(
        "Tandem Software ({engine}), Version {version}, RELEASE SOFTWARE (tandem)\n\
         The console is in the manner of Cisco IOS Software, of which nothing is in here\n\
         \n\
         {name} uptime is {uptime}\n\
         System image file is \"flash:tandem-{version}\"\n\
         \n\
         {vlans} Virtual Ethernet interfaces\n\
         {ports} Ethernet interfaces\n\
         {kept} bytes of configuration memory.\n\
         Base Ethernet MAC Address       : {mac}\n\
         Processor board ID {serial}\n\
         \n",
        engine = switch.engine.name().to_uppercase(),
        version = env!("CARGO_PKG_VERSION"),
        uptime = uptime(switch.uptime()),
        kept = crate::store::LARGEST,
        mac = colons.join(":"),
    )
}

/// `1 week, 2 days, 3 hours, 4 minutes`
fn uptime(seconds: u64) -> String {
    let minutes = seconds / 60;
    let parts = [
        (minutes / 10080, "week"),
        (minutes / 1440 % 7, "day"),
        (minutes / 60 % 24, "hour"),
    ];
    let word = |(n, word): (u64, &str)| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let mut text: Vec<String> = parts
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(word)
        .collect();
    text.push(word((minutes % 60, "minute")));
    text.join(", ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn uptime_in_words() {
        assert_eq!(super::uptime(59), "0 minutes");
        assert_eq!(super::uptime(60), "1 minute");
        assert_eq!(super::uptime(7 * 86400 + 3600), "1 week, 1 hour, 0 minutes");
        assert_eq!(
            super::uptime(2 * 86400 + 7200 + 120),
            "2 days, 2 hours, 2 minutes"
        );
    }
}
