// SPDX-License-Identifier: Apache-2.0
//! What can't be carried out, said before anything is done.

use std::net::IpAddr;

use ipnet::IpNet;
use tandem_swconfig::{Config, Interface, Kind, Name, Switchport, Via, channel};

/// VLAN ids that there are.
const IDS: std::ops::RangeInclusive<u16> = 1..=4094;
/// What an MTU may be: the least that IPv4 asks for, and what a frame of the TX ring has room for.
const MTU: std::ops::RangeInclusive<u32> = 68..=9216;

/// Below this the kernel has no IPv6 on a device.
pub(crate) const MTU6: u32 = 1280;

/// The network of an address.
///
/// # Errors
/// There is no such prefix length.
pub fn network(address: IpAddr, prefix: u8) -> Result<IpNet, String> {
    IpNet::new(address, prefix).map_err(|_| format!("{address}/{prefix}: no such prefix length"))
}

/// All addresses of an interface, the first one first.
#[must_use]
pub fn addresses(interface: &Interface) -> Vec<(IpAddr, u8)> {
    let v4 = interface.ipv4.iter().chain(&interface.secondary);
    let v4 = v4.map(|n| (IpAddr::V4(n.address), n.prefix));
    let v6 = interface.ipv6.iter();
    v4.chain(v6.map(|n| (IpAddr::V6(n.address), n.prefix)))
        .collect()
}

fn vlan(vid: u16) -> Result<(), String> {
    match IDS.contains(&vid) {
        true => Ok(()),
        false => Err(format!("{vid} is no VLAN id: 1 to 4094 are")),
    }
}

fn interface(engine: &str, name: &Name, of: &Interface) -> Result<(), String> {
    if let Some(mtu) = of.mtu.filter(|mtu| !MTU.contains(mtu)) {
        return Err(format!(
            "{name}: an MTU of {mtu}: {} to {} are",
            MTU.start(),
            MTU.end()
        ));
    }
    if of.mtu.is_some_and(|mtu| mtu < MTU6) && !of.ipv6.is_empty() {
        return Err(format!(
            "{name}: IPv6 asks for an MTU of {MTU6} at the least"
        ));
    }
    match (name.kind, &of.switchport) {
        (Kind::Vlan, _) => vlan(name.number),
        (Kind::Loopback, _) => Ok(()),
        (_, None) => Err(format!(
            "{name}: engine {engine} has no routed ports: give it a VLAN of its own, and that an interface"
        )),
        (_, Some(_)) if !addresses(of).is_empty() => Err(format!(
            "{name}: a switched port has no address: its VLAN's interface has"
        )),
        (kind, _) if of.channel.is_some() && !kind.is_port() => {
            Err(format!("{name}: only ports are in port-channels"))
        }
        (
            _,
            Some(Switchport {
                access,
                native,
                allowed,
                ..
            }),
        ) => {
            let all = allowed.iter().flatten();
            all.chain([access, native]).try_for_each(|vid| vlan(*vid))
        }
    }
}

/// A port that is in a port-channel, or is to be.
fn member(config: &Config, name: &Name, of: &Interface) -> Result<(), String> {
    let Some(set) = of.channel else { return Ok(()) };
    let group = channel::name(set.number);
    let Some((_, its)) = config.channel_of(name) else {
        return Err(format!("{name}: there is no {group}"));
    };
    if !of.follows(its) {
        return Err(format!(
            "{name}: VLANs, MTU and spanning tree are those of {group}"
        ));
    }
    if config.members(set.number).nth(channel::MEMBERS).is_some() {
        return Err(format!(
            "{group} has {} ports, which is the most",
            channel::MEMBERS
        ));
    }
    let mut all = config.members(set.number);
    let other = |n: &Name| {
        let theirs = config.interface(n).channel;
        theirs.is_some_and(|c| c.mode != set.mode)
    };
    match all.find(other) {
        Some(other) => Err(format!(
            "{name} is in {group} by another mode than {other}: a port-channel has one"
        )),
        None => Ok(()),
    }
}

/// Whether a configuration can be carried out with these ports, by `engine`; its own rules come beside.
///
/// # Errors
/// Why it can't, in one line.
pub fn check(config: &Config, ports: &[Name], engine: &str) -> Result<(), String> {
    let there = |name: &Name| match ports.contains(name) {
        true => Ok(()),
        false => Err(format!("there is no {name}")),
    };
    for (vid, v) in &config.vlans {
        vlan(*vid)?;
        if *vid == 1 && v.suspended {
            return Err("VLAN 1 is the default VLAN: it stays, and is active".into());
        }
    }
    let mut nets: Vec<(IpNet, &Name)> = Vec::new();
    for (name, of) in &config.interfaces {
        if name.is_port() {
            there(name)?;
        }
        interface(engine, name, of)?;
        member(config, name, of)?;
        for (address, prefix) in addresses(of) {
            let net = network(address, prefix)?;
            let mut others = nets.iter().filter(|(_, other)| *other != name);
            if let Some((with, other)) =
                others.find(|(n, _)| n.contains(&net.network()) || net.contains(&n.network()))
            {
                let with = with.trunc();
                return Err(format!(
                    "{name}: {} overlaps with {with} of {other}",
                    net.trunc()
                ));
            }
            nets.push((net, name));
        }
    }
    for route in &config.routes {
        let to = network(route.to.address, route.to.prefix)?;
        if to.trunc() != to {
            return Err(format!("route to {to}: it has bits of a host"));
        }
        if let Via::Gateway(gateway) = route.via
            && gateway.is_ipv4() != to.addr().is_ipv4()
        {
            return Err(format!(
                "route to {to} by {gateway}: that is of another family"
            ));
        }
    }
    for ((vid, mac), name) in &config.stations {
        vlan(*vid)?;
        match name.kind {
            Kind::PortChannel if config.interfaces.contains_key(name) => {}
            _ => there(name)?,
        }
        if let Some((group, _)) = config.channel_of(name) {
            return Err(format!(
                "{name} is in {group}: a station set by hand is behind that"
            ));
        }
        if mac[0] & 1 != 0 || *mac == [0; 6] {
            return Err(format!("{mac:02x?} is no station"));
        }
    }
    Ok(())
}
