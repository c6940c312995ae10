// SPDX-License-Identifier: Apache-2.0
//! What a command makes of a configuration: pure, on a candidate that nobody carries out yet.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tandem_swconfig::{
    Config, Interface, Kind, Mode as PortMode, Name, Net, Route, Switchport, Via, Vlan,
};
use tandem_swgrammar::{Arg, Form, Id, Mode, Parsed};

pub use crate::scope::Scope;
use crate::users;

/// What it came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Said to the user, a line each.
    pub notes: Vec<String>,
    /// Where it goes on; `None`: where it was.
    pub scope: Option<Scope>,
    /// A VLAN that was not asked for, and was made because a port is to be in it.
    pub made: Option<u16>,
}

/// The longest name of a VLAN.
pub const VLAN_NAME_MOST: usize = 32;
/// The longest name of the switch.
pub const HOSTNAME_MOST: usize = 63;

/// What VLAN is called without a name of its own.
#[must_use]
pub fn vlan_name(id: u16, vlan: &Vlan) -> String {
    match &vlan.name {
        Some(name) => name.clone(),
        None if id == 1 => "default".into(),
        None => format!("VLAN{id:04}"),
    }
}

/// Is the VLAN in the database?
#[must_use]
pub fn has_vlan(config: &Config, id: u16) -> bool {
    id == 1 || config.vlans.contains_key(&id)
}

pub(crate) const INTERNAL: &str = "% Internal error: the command lacks an argument";

/// Changes the candidate. After a refusal it may be half changed where a scope is many interfaces or VLANs, and is to be
/// dropped.
///
/// # Errors
/// Why not, in a line.
pub fn change(config: &mut Config, scope: &Scope, parsed: &Parsed) -> Result<Done, String> {
    match parsed.mode {
        Mode::Interface => {
            let Scope::Interfaces { names, .. } = scope else {
                return Err(INTERNAL.into());
            };
            let mut done = Done::default();
            for name in names {
                let notes = of_interface(config, name, parsed, &mut done.made)?;
                for note in notes {
                    if !done.notes.contains(&note) {
                        done.notes.push(note);
                    }
                }
            }
            Ok(done)
        }
        Mode::Vlan => {
            let Scope::Vlans(ids) = scope else {
                return Err(INTERNAL.into());
            };
            for id in ids {
                of_vlan(config, *id, ids.len(), parsed)?;
            }
            Ok(Done::default())
        }
        Mode::Line => {
            let Scope::Lines(lines) = scope else {
                return Err(INTERNAL.into());
            };
            users::of_lines(&mut config.access, lines, parsed)?;
            Ok(Done::default())
        }
        Mode::Ospf | Mode::Rip | Mode::Bgp => {
            let Scope::Router(router) = scope else {
                return Err(INTERNAL.into());
            };
            crate::routing::of_router(config, router, parsed)?;
            Ok(Done::default())
        }
        Mode::StandardList | Mode::ExtendedList | Mode::Ipv6List => {
            let Scope::List { name, kind } = scope else {
                return Err(INTERNAL.into());
            };
            crate::acl::of_list(config, name, *kind, parsed)?;
            Ok(Done::default())
        }
        Mode::ClassMap => {
            let Scope::Class(name) = scope else {
                return Err(INTERNAL.into());
            };
            crate::policy::of_class(config, name, parsed)?;
            Ok(Done::default())
        }
        Mode::PolicyMap | Mode::PolicyClass => {
            let Scope::Policy { name, class } = scope else {
                return Err(INTERNAL.into());
            };
            crate::policy::of_policy(config, name, class.as_deref(), parsed)
        }
        Mode::Config | Mode::Exec => of_switch(config, parsed),
    }
}

/// Can it be the address of one host?
fn is_host(a: Ipv4Addr) -> bool {
    !(a.is_unspecified() || a.is_loopback() || a.is_multicast() || a.is_broadcast())
}

fn of_switch(config: &mut Config, parsed: &Parsed) -> Result<Done, String> {
    let plain = parsed.form == Form::Plain;
    let mut done = Done::default();
    match parsed.id {
        Id::Hostname if !plain => config.hostname = None,
        Id::Hostname => {
            let name = parsed.text().ok_or(INTERNAL)?;
            let right = name.len() <= HOSTNAME_MOST
                && name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.ends_with(|c: char| c.is_ascii_alphanumeric())
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
            if !right {
                return Err("% Hostname contains one or more illegal characters.".into());
            }
            config.hostname = Some(name.into()).filter(|n| n != "Switch");
        }
        Id::Routing => config.routing = plain,
        Id::TagNative => config.tag_native = plain,
        id if crate::services::is_switchs(id) => {
            crate::services::of_switch(&mut config.services, parsed)?;
        }
        Id::Aging if !plain => config.aging = None,
        Id::Aging => match parsed.number().ok_or(INTERNAL)? {
            1..10 => return Err("% Aging time is 0, or 10 to 1000000 seconds".into()),
            seconds => config.aging = Some(seconds).filter(|s| *s != 300),
        },
        id if crate::tree::is_switchs(id) => crate::tree::of_switch(&mut config.tree, parsed)?,
        Id::Igmp | Id::IgmpVlan | Id::Mld | Id::MldVlan => {
            crate::snooping::of_switch(config, parsed)?;
        }
        Id::Encryption | Id::EnableSecret | Id::Username | Id::Banner | Id::Line => {
            done.scope = users::of_switch(&mut config.access, parsed)?.map(Scope::Lines);
        }
        Id::Vlan if parsed.form == Form::Plain => {
            let ids = parsed.vlans().ok_or(INTERNAL)?;
            for id in ids.iter().filter(|id| **id != 1) {
                config.vlans.entry(*id).or_default();
            }
            done.scope = Some(Scope::Vlans(ids.clone()));
        }
        Id::Vlan => {
            let ids = parsed.vlans().ok_or(INTERNAL)?;
            if parsed.form == Form::No && ids.contains(&1) {
                return Err("%Default VLAN 1 may not be deleted.".into());
            }
            for id in ids {
                match (id, parsed.form) {
                    (_, Form::No) => drop(config.vlans.remove(id)),
                    _ => {
                        config
                            .vlans
                            .entry(*id)
                            .and_modify(|v| *v = Vlan::default())
                            .or_default()
                            .suspended = false
                    }
                }
            }
            config.vlans.remove(&1);
        }
        Id::Interface => {
            let name = *parsed.interfaces().first().ok_or(INTERNAL)?;
            done = interface(config, name, parsed.form)?;
        }
        Id::InterfaceRange => {
            let names = parsed.interfaces();
            for name in names.iter().filter(|n| !n.is_port()) {
                config
                    .interfaces
                    .entry(*name)
                    .or_insert_with(|| Interface::new(name));
            }
            done.scope = Some(Scope::Interfaces { names, range: true });
        }
        Id::IpRoute | Id::Ipv6Route => route(config, parsed)?,
        Id::RouterOspf | Id::RouterRip | Id::RouterBgp => {
            done = crate::routing::of_switch(config, parsed)?;
        }
        Id::ClassMap | Id::PolicyMap => done = crate::policy::of_switch(config, parsed)?,
        Id::MonitorSource | Id::MonitorDestination | Id::NoMonitor => {
            crate::monitor::of_switch(config, parsed)?;
        }
        Id::IpList | Id::Ipv6List | Id::NumberedList | Id::Resequence => {
            done = crate::acl::of_switch(config, parsed)?;
        }
        Id::Neighbour => {
            let address = parsed.args.iter().find_map(|a| match a {
                Arg::Address(a) => Some(*a),
                _ => None,
            });
            let address = address.ok_or(INTERNAL)?;
            if !plain {
                if config.neighbours.remove(&address).is_none() {
                    return Err("% No such entry to delete".into());
                }
                return Ok(done);
            }
            let mac = parsed.mac().ok_or(INTERNAL)?;
            if mac[0] & 1 == 1 || mac == [0; 6] {
                return Err("% Only unicast addresses can be configured statically".into());
            }
            if !is_host(address) {
                return Err(format!("% {address} is no host's address"));
            }
            config.neighbours.insert(address, mac);
        }
        Id::Station => {
            let (mac, vlan) = (
                parsed.mac().ok_or(INTERNAL)?,
                parsed.vlan().ok_or(INTERNAL)?,
            );
            if !plain {
                if config.stations.remove(&(vlan, mac)).is_none() {
                    return Err("% MAC address could not be removed: it is not static there".into());
                }
                return Ok(done);
            }
            if mac[0] & 1 == 1 || mac == [0; 6] {
                return Err("% Only unicast addresses can be configured statically".into());
            }
            let port = *parsed.interfaces().first().ok_or(INTERNAL)?;
            config.stations.insert((vlan, mac), port);
        }
        _ => return Err(INTERNAL.into()),
    }
    Ok(done)
}

fn interface(config: &mut Config, name: Name, form: Form) -> Result<Done, String> {
    let mut done = Done::default();
    match form {
        Form::Plain => {
            if !name.is_port() {
                config
                    .interfaces
                    .entry(name)
                    .or_insert_with(|| Interface::new(&name));
            }
            done.scope = Some(Scope::Interfaces {
                names: vec![name],
                range: false,
            });
        }
        Form::No if name.is_port() => {
            return Err("% Removal of physical interfaces is not permitted".into());
        }
        Form::No => {
            config.interfaces.remove(&name);
            if name.kind == Kind::PortChannel {
                done.notes = crate::channel::removed(config, name.number);
            }
        }
        Form::Default => {
            if name.is_port() {
                config.interfaces.remove(&name);
            } else if let Some(interface) = config.interfaces.get_mut(&name) {
                *interface = Interface::new(&name);
                crate::channel::keep(config, &name, &Interface::new(&name))?;
            }
            done.notes
                .push(format!("Interface {name} set to default configuration"));
        }
    }
    Ok(done)
}

fn of_vlan(config: &mut Config, id: u16, many: usize, parsed: &Parsed) -> Result<(), String> {
    let plain = parsed.form == Form::Plain;
    if !has_vlan(config, id) {
        return Err(format!("% VLAN {id} is not there any more"));
    }
    match parsed.id {
        Id::VlanName => {
            let name = parsed.text().filter(|_| plain);
            if id == 1 {
                return Err("%Default VLAN 1 may not have its name changed.".into());
            }
            if let Some(name) = name {
                if many > 1 {
                    return Err("% A name is one VLAN's".into());
                }
                if name.len() > VLAN_NAME_MOST {
                    return Err(format!(
                        "% VLAN name is longer than {VLAN_NAME_MOST} characters"
                    ));
                }
                // what a VLAN is called without a name is its own, whether it is there or not
                let another =
                    |text: &str| text.len() == 4 && text.parse().is_ok_and(|n: u16| n != id);
                let same =
                    |(other, v): (&u16, &Vlan)| *other != id && v.name.as_deref() == Some(name);
                if name == "default"
                    || name.strip_prefix("VLAN").is_some_and(another)
                    || config.vlans.iter().any(same)
                {
                    return Err(format!("% VLAN name {name} is used by another VLAN"));
                }
            }
            let own = name.filter(|n| *n != format!("VLAN{id:04}"));
            config.vlans.entry(id).or_default().name = own.map(Into::into);
        }
        Id::VlanState => {
            let suspended = plain && parsed.has("suspend");
            if id == 1 && suspended {
                return Err("%Default VLAN 1 may not be suspended.".into());
            }
            if id != 1 {
                config.vlans.entry(id).or_default().suspended = suspended;
            }
        }
        _ => return Err(INTERNAL.into()),
    }
    Ok(())
}

fn of_interface(
    config: &mut Config,
    name: &Name,
    parsed: &Parsed,
    made: &mut Option<u16>,
) -> Result<Vec<String>, String> {
    let mut notes = Vec::new();
    if !name.is_port() && !config.interfaces.contains_key(name) {
        return Err(format!("% Interface {name} is not there any more"));
    }
    let mut set = config.interface(name);
    let plain = parsed.form == Form::Plain;
    match parsed.id {
        Id::Description => {
            let text = parsed.text().filter(|_| plain);
            set.description =
                text.map(|t| t.chars().take(240).collect::<String>().trim_end().into());
        }
        Id::Shutdown => set.shutdown = plain,
        Id::ChannelGroup => {
            notes.extend(crate::channel::of_interface(
                config, name, &mut set, parsed,
            )?);
        }
        Id::ServicePolicy => crate::policy::of_interface(name, &mut set.policy, parsed)?,
        Id::Helper => crate::services::helper(name, &mut set, parsed)?,
        Id::Storm => crate::monitor::storm(name, &mut set.storm, parsed)?,
        Id::IpGroup | Id::Ipv6Group => crate::acl::of_interface(name, &mut set.groups, parsed)?,
        Id::Speed | Id::Duplex => crate::media::of_interface(name, parsed)?,
        Id::Mtu => set.mtu = parsed.number().filter(|n| plain && *n != 1500),
        Id::Switchport => {
            if !name.is_switched() {
                return Err(format!("% Command rejected: {name} not a switching port."));
            }
            if parsed.form == Form::No {
                set.switchport = None;
            } else if set.switchport.is_none() {
                set.switchport = Some(Switchport::default());
                set.ipv4 = None;
                set.secondary.clear();
                set.ipv6.clear();
                set.ospf.clear();
                set.helpers.clear();
            }
        }
        Id::AccessVlan | Id::NativeVlan | Id::AllowedVlans | Id::SwitchportMode => {
            let Some(port) = &mut set.switchport else {
                return Err(format!("% Command rejected: {name} not a switching port."));
            };
            let vlan = parsed.vlan().filter(|_| plain);
            match parsed.id {
                Id::AccessVlan => {
                    port.access = vlan.unwrap_or(1);
                    if !has_vlan(config, port.access) {
                        notes.push(format!(
                            "% Access VLAN does not exist. Creating vlan {}",
                            port.access
                        ));
                        config.vlans.insert(port.access, Vlan::default());
                        *made = Some(port.access);
                    }
                }
                Id::NativeVlan => port.native = vlan.unwrap_or(1),
                Id::SwitchportMode => {
                    port.mode = if plain && parsed.has("trunk") {
                        PortMode::Trunk
                    } else {
                        PortMode::Access
                    };
                }
                _ if plain => port.allowed = allowed(port.allowed.take(), parsed)?,
                _ => port.allowed = None,
            }
        }
        Id::TreeCost
        | Id::TreePortPriority
        | Id::TreePortfast
        | Id::TreeGuard
        | Id::TreeLinkType => crate::tree::of_interface(name, &mut set.tree, parsed)?,
        id if crate::routing::is_interfaces(id) => {
            crate::routing::of_interface(config, name, &mut set, parsed)?;
        }
        Id::IpAddress => ip_address(config, name, &mut set, parsed)?,
        Id::Ipv6Address => ipv6_address(config, name, &mut set, parsed)?,
        _ => return Err(INTERNAL.into()),
    }
    crate::channel::keep(config, name, &set)?;
    if name.is_port() && set == Interface::new(name) {
        config.interfaces.remove(name);
    } else {
        config.interfaces.insert(*name, set);
    }
    Ok(notes)
}

/// `switchport trunk allowed vlan …`
fn allowed(was: Option<BTreeSet<u16>>, parsed: &Parsed) -> Result<Option<BTreeSet<u16>>, String> {
    let every = || (1..=4094).collect::<BTreeSet<u16>>();
    if parsed.has("all") {
        return Ok(None);
    }
    if parsed.has("none") {
        return Ok(Some(BTreeSet::new()));
    }
    let said = parsed.vlans().ok_or(INTERNAL)?;
    let now = if parsed.has("except") {
        every().difference(said).copied().collect()
    } else if parsed.has("remove") {
        was.unwrap_or_else(every)
            .difference(said)
            .copied()
            .collect()
    } else if parsed.has("add") {
        was.unwrap_or_else(every).union(said).copied().collect()
    } else {
        said.clone()
    };
    Ok(Some(now).filter(|n| n.len() < 4094))
}

/// A network's address.
#[must_use]
pub fn network4(net: Net<Ipv4Addr>) -> Ipv4Addr {
    let bits = u32::from(net.address);
    Ipv4Addr::from(bits & mask4(net.prefix))
}

/// The bits of a prefix.
#[must_use]
pub fn mask4(prefix: u8) -> u32 {
    u32::MAX
        .checked_shl(32 - u32::from(prefix.min(32)))
        .unwrap_or(0)
}

/// A network's address.
#[must_use]
pub fn network6(net: Net<Ipv6Addr>) -> Ipv6Addr {
    let mask = u128::MAX
        .checked_shl(128 - u32::from(net.prefix.min(128)))
        .unwrap_or(0);
    Ipv6Addr::from(u128::from(net.address) & mask)
}

/// Is the address in the network?
#[must_use]
pub fn within(net: Net<IpAddr>, address: IpAddr) -> bool {
    match (net.address, address) {
        (IpAddr::V4(n), IpAddr::V4(a)) => {
            network4(Net {
                address: n,
                prefix: net.prefix,
            }) == network4(Net {
                address: a,
                prefix: net.prefix,
            })
        }
        (IpAddr::V6(n), IpAddr::V6(a)) => {
            network6(Net {
                address: n,
                prefix: net.prefix,
            }) == network6(Net {
                address: a,
                prefix: net.prefix,
            })
        }
        _ => false,
    }
}

fn overlap4(a: Net<Ipv4Addr>, b: Net<Ipv4Addr>) -> bool {
    let prefix = a.prefix.min(b.prefix);
    network4(Net { prefix, ..a }) == network4(Net { prefix, ..b })
}

fn ip_address(
    config: &Config,
    name: &Name,
    set: &mut Interface,
    parsed: &Parsed,
) -> Result<(), String> {
    if set.switchport.is_some() {
        return Err("% IP addresses may not be configured on L2 links.".into());
    }
    let net = match parsed.args.as_slice() {
        [Arg::Address(address), Arg::Mask(prefix)] => Some(Net {
            address: *address,
            prefix: *prefix,
        }),
        _ => None,
    };
    let secondary = parsed.has("secondary");
    if parsed.form != Form::Plain {
        match net {
            None => {
                set.ipv4 = None;
                set.secondary.clear();
            }
            Some(net) if secondary => {
                if !set.secondary.remove(&net) {
                    return Err("% Invalid address".into());
                }
            }
            Some(net) if set.ipv4 == Some(net) => {
                if !set.secondary.is_empty() {
                    return Err("% Must delete secondary before deleting primary".into());
                }
                set.ipv4 = None;
            }
            Some(_) => return Err("% Invalid address".into()),
        }
        return Ok(());
    }
    let net = net.ok_or(INTERNAL)?;
    let [first, ..] = net.address.octets();
    if first == 0 || first == 127 || first >= 224 {
        return Err(format!("% Not a valid host address - {}", net.address));
    }
    let (host, hosts) = (
        u32::from(net.address) & !mask4(net.prefix),
        !mask4(net.prefix),
    );
    if net.prefix == 0 || net.prefix < 31 && (host == 0 || host == hosts) {
        return Err(format!(
            "% Bad mask /{} for address {}",
            net.prefix, net.address
        ));
    }
    for (other, i) in config.interfaces.iter().filter(|(other, _)| *other != name) {
        if let Some(theirs) = i
            .ipv4
            .iter()
            .chain(&i.secondary)
            .find(|n| overlap4(**n, net))
        {
            return Err(format!("% {} overlaps with {other}", network4(*theirs)));
        }
    }
    is_gateway(config, IpAddr::V4(net.address))?;
    match &set.ipv4 {
        _ if !secondary => {
            if set.secondary.iter().any(|n| n.address == net.address) {
                return Err(format!(
                    "% {} is assigned as a secondary address on {name}",
                    net.address
                ));
            }
            set.ipv4 = Some(net);
        }
        None => return Err("% A primary address has to be there before a secondary one".into()),
        Some(primary) if primary.address == net.address => {
            return Err("% Secondary can't be same as primary".into());
        }
        Some(_) => {
            set.secondary.retain(|n| n.address != net.address);
            set.secondary.insert(net);
        }
    }
    Ok(())
}

fn ipv6_address(
    config: &Config,
    name: &Name,
    set: &mut Interface,
    parsed: &Parsed,
) -> Result<(), String> {
    if set.switchport.is_some() {
        return Err("% IPv6 addresses may not be configured on L2 links.".into());
    }
    let net = parsed.args.iter().find_map(|a| match a {
        Arg::Prefix6(net) => Some(*net),
        _ => None,
    });
    if parsed.form != Form::Plain {
        match net {
            None => set.ipv6.clear(),
            Some(net) if set.ipv6.remove(&net) => {}
            Some(_) => return Err("% Invalid address".into()),
        }
        return Ok(());
    }
    let net = net.ok_or(INTERNAL)?;
    let address = net.address;
    let link_local = address.segments()[0] & 0xffc0 == 0xfe80;
    if address.is_multicast()
        || address.is_unspecified()
        || address.is_loopback()
        || link_local
        || net.prefix == 0
    {
        return Err(format!(
            "% {name}: {} is not an address that an interface is given",
            shown6(net)
        ));
    }
    for (other, i) in config.interfaces.iter().filter(|(other, _)| *other != name) {
        let same = |n: &&Net<Ipv6Addr>| {
            let prefix = n.prefix.min(net.prefix);
            network6(Net { prefix, ..**n }) == network6(Net { prefix, ..net })
        };
        if let Some(theirs) = i.ipv6.iter().find(same) {
            let of = |n: Net<Ipv6Addr>| {
                shown6(Net {
                    address: network6(n),
                    ..n
                })
            };
            return Err(format!(
                "%{name}: Error: {} is overlapping with {} on {other}",
                of(net),
                of(*theirs)
            ));
        }
    }
    is_gateway(config, IpAddr::V6(address))?;
    set.ipv6.retain(|n| n.address != address);
    set.ipv6.insert(net);
    Ok(())
}

/// The other way round a route by the switch itself is refused as well.
fn is_gateway(config: &Config, address: IpAddr) -> Result<(), String> {
    match config
        .routes
        .iter()
        .find(|r| r.via == Via::Gateway(address))
    {
        Some(route) => Err(format!(
            "% {address} is the next hop of a static route to {}/{}",
            route.to.address, route.to.prefix
        )),
        None => Ok(()),
    }
}

/// As IOS writes it, in capitals.
#[must_use]
pub fn shown6(net: Net<Ipv6Addr>) -> String {
    format!("{}/{}", net.address.to_string().to_uppercase(), net.prefix)
}

fn route(config: &mut Config, parsed: &Parsed) -> Result<(), String> {
    let mut to = None;
    let mut via = parsed.has("null0").then_some(Via::Null);
    let mut distance = None;
    let mut first = None;
    for arg in &parsed.args {
        match arg {
            Arg::Address(a) if to.is_none() && first.is_none() => first = Some(*a),
            Arg::Mask(prefix) => {
                to = first.map(|a| Net {
                    address: IpAddr::V4(a),
                    prefix: *prefix,
                })
            }
            Arg::Prefix6(n) => {
                to = Some(Net {
                    address: IpAddr::V6(n.address),
                    prefix: n.prefix,
                })
            }
            Arg::Address(a) => via = Some(Via::Gateway(IpAddr::V4(*a))),
            Arg::Address6(a) => via = Some(Via::Gateway(IpAddr::V6(*a))),
            Arg::Number(n) => distance = u8::try_from(*n).ok(),
            _ => return Err(INTERNAL.into()),
        }
    }
    let to = to.ok_or(INTERNAL)?;
    let clean = match to.address {
        IpAddr::V4(address) => {
            network4(Net {
                address,
                prefix: to.prefix,
            }) == address
        }
        IpAddr::V6(address) => {
            network6(Net {
                address,
                prefix: to.prefix,
            }) == address
        }
    };
    if !clean {
        return Err("%Inconsistent address and mask".into());
    }
    if parsed.form != Form::Plain {
        let before = config.routes.len();
        let goes = |r: &Route| {
            r.to == to
                && via.as_ref().is_none_or(|v| *v == r.via)
                && distance.is_none_or(|d| d == r.distance)
        };
        config.routes.retain(|r| !goes(r));
        return match config.routes.len() == before {
            true => Err("%No matching route to delete".into()),
            false => Ok(()),
        };
    }
    let via = via.ok_or(INTERNAL)?;
    if let Via::Gateway(gateway) = via {
        let own = |i: &Interface| match gateway {
            IpAddr::V4(g) => i.ipv4.iter().chain(&i.secondary).any(|n| n.address == g),
            IpAddr::V6(g) => i.ipv6.iter().any(|n| n.address == g),
        };
        if config.interfaces.values().any(own) {
            return Err("%Invalid next hop address (it's this router)".into());
        }
        if gateway.is_unspecified() || gateway.is_multicast() || gateway.is_loopback() {
            return Err("%Invalid next hop address".into());
        }
    }
    // the same way with another distance is the same route
    config.routes.retain(|r| !(r.to == to && r.via == via));
    config.routes.insert(Route {
        to,
        via,
        distance: distance.unwrap_or(1),
    });
    Ok(())
}
