// SPDX-License-Identifier: Apache-2.0
//! A configuration as text: the commands that make it, in the order of the grammar's table.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};

use tandem_swconfig::{Config, Interface, Mode as PortMode, Name, Route, Via, Vlan};
use tandem_swgrammar::{COMMANDS, Id, Mode};

use crate::change::{mask4, shown6};

/// The longest list of VLANs of a line: IOS has it so, and a line has to be one of the console.
const LIST_MOST: usize = 180;

/// What is between two `!`: a line alone, or a header and the lines below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first line.
    pub head: String,
    /// Those of its own mode, without the space in front.
    pub lines: Vec<String>,
}

fn line(text: impl Into<String>) -> Block {
    Block {
        head: text.into(),
        lines: Vec::new(),
    }
}

/// `1-5,7`
#[must_use]
pub fn list(vlans: &BTreeSet<u16>) -> String {
    ranges(vlans).join(",")
}

fn ranges(vlans: &BTreeSet<u16>) -> Vec<String> {
    let mut parts = Vec::new();
    let mut run: Option<(u16, u16)> = None;
    let mut close = |run: Option<(u16, u16)>| {
        parts.extend(run.map(|(low, high)| match high - low {
            0 => low.to_string(),
            1 => format!("{low},{high}"),
            _ => format!("{low}-{high}"),
        }));
    };
    for vlan in vlans {
        run = match run {
            Some((low, high)) if high + 1 == *vlan => Some((low, *vlan)),
            done => {
                close(done);
                Some((*vlan, *vlan))
            }
        };
    }
    close(run);
    parts
}

/// A list in pieces, each of at most so many characters.
#[must_use]
pub fn pieces(vlans: &BTreeSet<u16>, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in ranges(vlans) {
        match lines.last_mut() {
            Some(last) if last.len() + 1 + part.len() <= most => {
                last.push(',');
                last.push_str(&part);
            }
            _ => lines.push(part),
        }
    }
    lines
}

/// All blocks. Of ports without anything set there is one too: `ports` says which there are.
#[must_use]
pub fn blocks(config: &Config, ports: &[Name]) -> Vec<Block> {
    let rows = COMMANDS
        .iter()
        .filter(|c| c.modes == [Mode::Config] && !c.no.is_empty());
    rows.flat_map(|c| of_switch(c.id, config, ports)).collect()
}

fn of_switch(id: Id, config: &Config, ports: &[Name]) -> Vec<Block> {
    match id {
        Id::Hostname => vec![line(format!(
            "hostname {}",
            config.hostname.as_deref().unwrap_or("Switch")
        ))],
        Id::Routing if config.routing => vec![line("ip routing")],
        Id::Aging => {
            let said = config
                .aging
                .map(|s| line(format!("mac address-table aging-time {s}")));
            said.into_iter().collect()
        }
        Id::TagNative if config.tag_native => vec![line("vlan dot1q tag native")],
        Id::Vlan => vlans(config),
        Id::Encryption | Id::EnableSecret | Id::Username | Id::Banner | Id::Line => {
            crate::users::blocks(id, &config.access)
        }
        id if crate::tree::is_switchs(id) => crate::tree::line(id, &config.tree)
            .into_iter()
            .map(line)
            .collect(),
        Id::Interface => {
            let mut names: BTreeSet<Name> = ports.iter().copied().collect();
            names.extend(config.interfaces.keys());
            names
                .iter()
                .map(|n| interface(n, &config.interface(n)))
                .collect()
        }
        Id::RouterOspf | Id::RouterRip | Id::RouterBgp => {
            let all = crate::routing::routers(id, config).into_iter();
            all.map(|(head, lines)| Block { head, lines }).collect()
        }
        Id::IpRoute | Id::Ipv6Route => {
            let wanted = |r: &&Route| r.to.address.is_ipv4() == (id == Id::IpRoute);
            config
                .routes
                .iter()
                .filter(wanted)
                .map(|r| line(route(r)))
                .collect()
        }
        Id::IpList | Id::Ipv6List => crate::acl::blocks(id, config),
        id if crate::services::is_switchs(id) => crate::services::blocks(id, &config.services),
        Id::ClassMap | Id::PolicyMap => crate::policy::blocks(id, config),
        Id::Igmp | Id::IgmpVlan | Id::Mld | Id::MldVlan => crate::snooping::blocks(id, config),
        Id::MonitorSource | Id::MonitorDestination => crate::monitor::blocks(id, config),
        Id::Neighbour => {
            let said = |(address, mac): (&std::net::Ipv4Addr, &[u8; 6])| {
                line(format!("arp {address} {} ARPA", shown_mac(mac)))
            };
            config.neighbours.iter().map(said).collect()
        }
        Id::Station => {
            let said = |((vlan, mac), port): (&(u16, [u8; 6]), &Name)| {
                line(format!(
                    "mac address-table static {} vlan {vlan} interface {port}",
                    shown_mac(mac)
                ))
            };
            config.stations.iter().map(said).collect()
        }
        _ => Vec::new(),
    }
}

/// VLANs with something set of them have a block, the others are in lists between those.
fn vlans(config: &Config) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut plain = BTreeSet::new();
    let close = |plain: &mut BTreeSet<u16>, blocks: &mut Vec<Block>| {
        blocks.extend(
            pieces(plain, LIST_MOST)
                .into_iter()
                .map(|p| line(format!("vlan {p}"))),
        );
        plain.clear();
    };
    for (id, vlan) in &config.vlans {
        let Vlan { name, suspended } = vlan;
        let mut lines: Vec<String> = name.iter().map(|n| format!("name {n}")).collect();
        lines.extend(suspended.then(|| "state suspend".into()));
        if lines.is_empty() {
            plain.insert(*id);
        } else {
            close(&mut plain, &mut blocks);
            blocks.push(Block {
                head: format!("vlan {id}"),
                lines,
            });
        }
    }
    close(&mut plain, &mut blocks);
    blocks
}

/// One interface's block.
#[must_use]
pub fn interface(name: &Name, set: &Interface) -> Block {
    let rows = COMMANDS.iter().filter(|c| c.modes == [Mode::Interface]);
    Block {
        head: format!("interface {name}"),
        lines: rows.flat_map(|c| of_interface(c.id, name, set)).collect(),
    }
}

fn of_interface(id: Id, name: &Name, set: &Interface) -> Vec<String> {
    if set.channel.is_some() && crate::channel::says_its_channel(id) {
        return Vec::new();
    }
    if id == Id::ChannelGroup {
        return set.channel.iter().map(crate::channel::line).collect();
    }
    if matches!(id, Id::IpGroup | Id::Ipv6Group) {
        return crate::acl::group_lines(id, &set.groups);
    }
    if id == Id::ServicePolicy {
        let line = |name: &String| format!("service-policy input {name}");
        return set.policy.iter().map(line).collect();
    }
    if id == Id::Helper {
        return crate::services::helper_lines(&set.helpers);
    }
    if id == Id::Storm {
        return crate::monitor::storm_lines(&set.storm);
    }
    let one = |text: Option<String>| text.into_iter().collect();
    let Some(port) = &set.switchport else {
        return match id {
            Id::Switchport if name.is_switched() => vec!["no switchport".into()],
            Id::IpAddress => {
                let said = |n: &tandem_swconfig::Net<Ipv4Addr>, tail| {
                    format!(
                        "ip address {} {}{tail}",
                        n.address,
                        Ipv4Addr::from(mask4(n.prefix))
                    )
                };
                // the first is the primary one when it is read back
                let first = set.ipv4.iter().map(|n| said(n, ""));
                first
                    .chain(set.secondary.iter().map(|n| said(n, " secondary")))
                    .collect()
            }
            Id::Ipv6Address => set
                .ipv6
                .iter()
                .map(|n| format!("ipv6 address {}", shown6(*n)))
                .collect(),
            _ => of_any(id, set),
        };
    };
    match id {
        Id::AccessVlan => {
            one((port.access != 1).then(|| format!("switchport access vlan {}", port.access)))
        }
        Id::NativeVlan => {
            one((port.native != 1).then(|| format!("switchport trunk native vlan {}", port.native)))
        }
        Id::AllowedVlans => match &port.allowed {
            None => Vec::new(),
            Some(none) if none.is_empty() => vec!["switchport trunk allowed vlan none".into()],
            Some(some) => {
                let said = |(i, piece): (usize, String)| {
                    let add = if i == 0 { "" } else { "add " };
                    format!("switchport trunk allowed vlan {add}{piece}")
                };
                pieces(some, LIST_MOST)
                    .into_iter()
                    .enumerate()
                    .map(said)
                    .collect()
            }
        },
        // said with a VLAN as well, although it is so without: who reads it looks for it
        Id::SwitchportMode => one(match port.mode {
            PortMode::Trunk => Some("switchport mode trunk".into()),
            PortMode::Access => (port.access != 1).then(|| "switchport mode access".into()),
        }),
        _ => of_any(id, set),
    }
}

fn of_any(id: Id, set: &Interface) -> Vec<String> {
    let said = match id {
        Id::Description => set.description.as_ref().map(|d| format!("description {d}")),
        Id::Mtu => set.mtu.map(|m| format!("mtu {m}")),
        id if crate::routing::is_interfaces(id) => crate::routing::interface_line(id, &set.ospf),
        Id::Shutdown => set.shutdown.then(|| "shutdown".into()),
        id => crate::tree::port_line(id, &set.tree),
    };
    said.into_iter().collect()
}

fn route(route: &Route) -> String {
    let mut text = match route.to.address {
        IpAddr::V4(to) => format!("ip route {to} {}", Ipv4Addr::from(mask4(route.to.prefix))),
        IpAddr::V6(address) => {
            format!(
                "ipv6 route {}",
                shown6(tandem_swconfig::Net {
                    address,
                    prefix: route.to.prefix
                })
            )
        }
    };
    match &route.via {
        Via::Gateway(gateway) => text.push_str(&format!(" {gateway}").to_uppercase()),
        Via::Null => text.push_str(" Null0"),
    }
    if route.distance != 1 {
        let _ = write!(text, " {}", route.distance);
    }
    text
}

/// `0011.2233.4455`
#[must_use]
pub fn shown_mac(mac: &[u8; 6]) -> String {
    let [a, b, c, d, e, f] = mac;
    format!("{a:02x}{b:02x}.{c:02x}{d:02x}.{e:02x}{f:02x}")
}

/// The text of blocks, with `!` between them as IOS sets it.
#[must_use]
pub fn text(blocks: &[Block]) -> String {
    let mut text = String::from("!\n");
    let word = |b: &Block| b.head.split(' ').take(2).collect::<Vec<_>>().join(" ");
    for (i, block) in blocks.iter().enumerate() {
        let _ = writeln!(text, "{}", block.head);
        for line in &block.lines {
            let _ = writeln!(text, " {line}");
        }
        // lines of one command stand together
        let next = blocks.get(i + 1);
        let together = |n: &Block| {
            block.lines.is_empty()
                && n.lines.is_empty()
                && word(block) == word(n)
                && !block.head.starts_with("interface")
                && !block.head.starts_with("router")
        };
        if !next.is_some_and(together) {
            text.push_str("!\n");
        }
    }
    text.push_str("end\n");
    text
}

/// What is kept, and what `show running-config` shows after its head.
#[must_use]
pub fn config(config: &Config, ports: &[Name]) -> String {
    text(&blocks(config, ports))
}
