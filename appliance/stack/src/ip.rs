// SPDX-License-Identifier: Apache-2.0
//! The IP stack of the network namespace in which this is called.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use tandem_linux::ifreq::ControlSocket;
use tandem_linux::netlink::consts::{
    NLM_F_REPLACE, RT_SCOPE_LINK, RT_SCOPE_NOWHERE, RT_TABLE_MAIN, RTN_BLACKHOLE, RTN_UNICAST,
};
use tandem_linux::netlink::{
    Dump, Error, Family, Nexthops, Object, Requests, Route, RouteFilter, RouteNexthop,
};
use tandem_swconfig::{Net, Via};

use crate::check::MTU6;
use crate::{Device, Wanted, network};

/// Whose our static routes are (`rtm_protocol`): nobody else's, so that those of a process that is gone can be told.
pub const PROTOCOL: u8 = 84;
/// The first loopback's addresses, which stay.
const LOOPBACK: &str = "lo";

/// The kernel's addresses, routes and sysctls.
pub struct Ip {
    requests: Requests,
    control: ControlSocket,
    /// What each loopback has put on the one device.
    loopbacks: BTreeMap<u16, BTreeSet<(IpAddr, u8)>>,
}

impl Ip {
    /// Of this thread's network namespace.
    ///
    /// # Errors
    /// One line.
    pub fn open() -> Result<Ip, String> {
        Ok(Ip {
            requests: Requests::open().map_err(|e| e.to_string())?,
            control: ControlSocket::open().map_err(|e| e.to_string())?,
            loopbacks: BTreeMap::new(),
        })
    }

    fn addresses(&mut self, ifindex: u32) -> Result<Vec<(IpAddr, u8)>, String> {
        let all = self.requests.objects(Dump::Addrs);
        let all = all.map_err(|e| e.to_string())?.into_iter();
        Ok(all
            .filter_map(|o| match o {
                // a link's own address the kernel gives and takes by itself
                Object::Addr(a) if a.ifindex == ifindex && a.scope != RT_SCOPE_LINK => {
                    Some((a.local, a.prefix_len))
                }
                _ => None,
            })
            .collect())
    }

    /// On or off; that it is so already is no error.
    fn address(&mut self, ifindex: u32, of: (IpAddr, u8), on: bool) -> Result<(), String> {
        match self.requests.address(ifindex, of.0, of.1, on) {
            Err(e) if e.errno == libc::EEXIST && on => Ok(()),
            // ENXIO: below an MTU of 1280 the device has no IPv6 at all
            Err(e) if matches!(e.errno, libc::EADDRNOTAVAIL | libc::ENXIO) && !on => Ok(()),
            done => done.map_err(|e| format!("{}/{}: {e}", of.0, of.1)),
        }
    }

    fn loopback(&mut self, number: u16, wanted: &Wanted) -> Result<(), String> {
        let link = self.control.link(LOOPBACK);
        let ifindex = link.map_err(|e| format!("{LOOPBACK}: {e}"))?.ifindex;
        let now: BTreeSet<_> = match wanted.up {
            true => wanted.addresses.iter().copied().collect(),
            false => BTreeSet::new(),
        };
        let was = self.loopbacks.remove(&number).unwrap_or_default();
        self.loopbacks.insert(number, &was | &now);
        for gone in was.difference(&now) {
            self.address(ifindex, *gone, false)?;
        }
        for new in now.difference(&was) {
            self.address(ifindex, *new, true)?;
        }
        self.loopbacks.insert(number, now);
        Ok(())
    }

    fn vlan(&mut self, vid: u16, wanted: &Wanted) -> Result<(), String> {
        let name = format!("vlan{vid}");
        let words = |e: std::io::Error| format!("{name}: {e}");
        let ifindex = self.control.link(&name).map_err(words)?.ifindex;
        self.control.set_mtu(&name, wanted.mtu).map_err(words)?;
        let there = self.addresses(ifindex)?;
        let of = |all: &[(IpAddr, u8)], v4: bool| -> Vec<(IpAddr, u8)> {
            all.iter()
                .filter(|a| a.0.is_ipv4() == v4)
                .copied()
                .collect()
        };
        // the order of IPv4's says which one is the first: where it is another one, all of them come anew
        let (there4, want4) = (of(&there, true), of(&wanted.addresses, true));
        let first = there4.iter().find(|a| want4.contains(a));
        let anew = first.is_some() && first != want4.first();
        for a in there4.iter().filter(|a| anew || !want4.contains(a)).rev() {
            self.address(ifindex, *a, false)?;
        }
        let want6 = of(&wanted.addresses, false);
        // without an address of its own it has no IPv6, and says nothing of it
        if ipv6() && wanted.mtu >= MTU6 {
            setting(&format!("ipv6/conf/{name}/disable_ipv6"), want6.is_empty())?;
        }
        for a in of(&there, false).iter().filter(|a| !want6.contains(a)) {
            self.address(ifindex, *a, false)?;
        }
        for a in want4.iter().chain(&want6) {
            self.address(ifindex, *a, true)?;
        }
        self.control.set_up(&name, wanted.up).map_err(words)
    }
}

/// Whether the kernel has it at all.
#[must_use]
pub fn ipv6() -> bool {
    std::path::Path::new("/proc/sys/net/ipv6").exists()
}

/// Writes a switch of `/proc/sys/net`.
///
/// # Errors
/// One line.
pub fn setting(path: &str, on: bool) -> Result<(), String> {
    let path = format!("/proc/sys/net/{path}");
    std::fs::write(&path, if on { "1" } else { "0" }).map_err(|e| format!("{path}: {e}"))
}

/// What a gateway that is on no link is answered with, or one whose link is down.
fn waits(errno: i32) -> bool {
    matches!(
        errno,
        libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN | libc::EINVAL
    )
}

impl Ip {
    /// A neighbour set by hand, or no more; one of a device that is gone went with it.
    ///
    /// # Errors
    /// One line.
    pub fn neighbour(
        &mut self,
        at: Device,
        address: Ipv4Addr,
        mac: Option<[u8; 6]>,
    ) -> Result<(), String> {
        let Device::Vlan(vid) = at else {
            return Ok(());
        };
        let name = format!("vlan{vid}");
        let address = IpAddr::V4(address);
        let done = match (self.control.link(&name), mac) {
            (Err(_), None) => return Ok(()),
            (Err(e), _) => return Err(format!("{name}: {e}")),
            (Ok(link), Some(mac)) => self.requests.neigh_permanent(link.ifindex, &address, &mac),
            (Ok(link), None) => match self.requests.neigh_del(link.ifindex, &address) {
                Err(e) if e.is_gone() => Ok(()),
                done => done,
            },
        };
        done.map_err(|e| format!("neighbour {address}: {e}"))
    }

    /// Makes a device be as wanted, whatever is there.
    ///
    /// # Errors
    /// One line.
    pub fn set(&mut self, device: Device, wanted: &Wanted) -> Result<(), String> {
        match device {
            Device::Vlan(vid) => self.vlan(vid, wanted),
            Device::Loopback(n) => self.loopback(n, wanted),
        }
    }

    /// Touches only what differs.
    ///
    /// # Errors
    /// One line.
    pub fn change(&mut self, device: Device, was: &Wanted, now: &Wanted) -> Result<(), String> {
        let vid = match device {
            Device::Vlan(vid) => vid,
            Device::Loopback(_) => return self.on_loopback(was, now),
        };
        let name = format!("vlan{vid}");
        let words = |e: std::io::Error| format!("{name}: {e}");
        let ifindex = self.control.link(&name).map_err(words)?.ifindex;
        if was.mtu != now.mtu {
            self.control.set_mtu(&name, now.mtu).map_err(words)?;
        }
        let of = |w: &Wanted, v4: bool| -> Vec<(IpAddr, u8)> {
            let all = w.addresses.iter().filter(|a| a.0.is_ipv4() == v4);
            all.copied().collect()
        };
        let (was6, now6) = (of(was, false), of(now, false));
        // without an address of its own it has no IPv6, and says nothing of it; nor where the kernel gives it that anew
        let anew = was.mtu < MTU6 || was6.is_empty() != now6.is_empty();
        if ipv6() && now.mtu >= MTU6 && anew {
            setting(&format!("ipv6/conf/{name}/disable_ipv6"), now6.is_empty())?;
        }
        for (was, now) in [(of(was, true), of(now, true)), (was6, now6)] {
            // the order says which one is the first: where it is another one, all of them come anew
            let anew = was.first() != now.first();
            for a in was.iter().filter(|a| anew || !now.contains(a)).rev() {
                self.address(ifindex, *a, false)?;
            }
            // with the first one of a network the kernel drops the others
            for a in now.iter().filter(|_| was != now) {
                self.address(ifindex, *a, true)?;
            }
        }
        match was.up != now.up {
            true => self.control.set_up(&name, now.up).map_err(words),
            false => Ok(()),
        }
    }

    fn on_loopback(&mut self, was: &Wanted, now: &Wanted) -> Result<(), String> {
        let link = self.control.link(LOOPBACK);
        let ifindex = link.map_err(|e| format!("{LOOPBACK}: {e}"))?.ifindex;
        let of = |w: &Wanted| -> BTreeSet<(IpAddr, u8)> {
            let all = w.addresses.iter().filter(|_| w.up);
            all.copied().collect()
        };
        let (was, now) = (of(was), of(now));
        for gone in was.difference(&now) {
            self.address(ifindex, *gone, false)?;
        }
        for new in now.difference(&was) {
            self.address(ifindex, *new, true)?;
        }
        Ok(())
    }

    /// Whether it routes.
    ///
    /// # Errors
    /// One line.
    pub fn forward(&mut self, on: bool) -> Result<(), String> {
        setting("ipv4/ip_forward", on)?;
        match ipv6() {
            true => setting("ipv6/conf/all/forwarding", on),
            false => Ok(()),
        }
    }

    /// By these ways, in the place of those that are there; and what the kernel says to it.
    fn put(
        &mut self,
        route: &mut Route,
        hops: &[RouteNexthop],
    ) -> Result<Result<(), Error>, String> {
        route.nexthops = match hops {
            [] => Nexthops::None,
            [one] => Nexthops::One(*one),
            many => Nexthops::Many(many.into()),
        };
        let mut said = Ok(());
        let put =
            self.requests
                .routes(std::slice::from_ref(route), false, NLM_F_REPLACE, |_, e| {
                    said = Err(e)
                });
        put.map_err(|e| format!("route to {}: {e}", route.dst))?;
        Ok(said)
    }

    /// Makes a static route be so; with no next hop it goes. A gateway that is on no link is waited for, and that is no
    /// error: the others lead there meanwhile.
    ///
    /// # Errors
    /// One line.
    pub fn route(
        &mut self,
        to: Net<IpAddr>,
        distance: u8,
        via: &BTreeSet<Via>,
    ) -> Result<(), String> {
        let dst = network(to.address, to.prefix)?;
        let hop = |v: &Via| match v {
            Via::Gateway(gateway) => Some(RouteNexthop {
                ifindex: 0,
                gateway: Some(*gateway),
                weight: 1,
                flags: 0,
                encap: false,
            }),
            Via::Null => None,
        };
        let hops: Vec<RouteNexthop> = via.iter().filter_map(hop).collect();
        let mut route = Route {
            table: RT_TABLE_MAIN,
            dst,
            tos: 0,
            metric: u32::from(distance),
            kind: RTN_UNICAST,
            scope: 0,
            protocol: PROTOCOL,
            flags: 0,
            nh_id: 0,
            nexthops: Nexthops::None,
            src: None,
            prefsrc: None,
            mtu: 0,
            other: 0,
        };
        if !via.is_empty() {
            if hops.is_empty() {
                route.kind = RTN_BLACKHOLE;
            }
            let Err(e) = self.put(&mut route, &hops)? else {
                return Ok(());
            };
            if !waits(e.errno) {
                return Err(format!("route to {dst}: {e}"));
            }
            tracing::info!("route to {dst} waits: {e}");
            // the kernel takes all of the ways or none
            let mut there = Vec::new();
            for hop in hops.iter().filter(|_| hops.len() > 1) {
                there.push(*hop);
                match self.put(&mut route, &there)? {
                    Err(e) if !waits(e.errno) => return Err(format!("route to {dst}: {e}")),
                    Err(_) => drop(there.pop()),
                    Ok(()) => {}
                }
            }
            if !there.is_empty() {
                return Ok(());
            }
        }
        // what is there of before leads elsewhere
        route.nexthops = Nexthops::None;
        route.scope = RT_SCOPE_NOWHERE;
        for kind in [RTN_UNICAST, RTN_BLACKHOLE] {
            route.kind = kind;
            let mut failure = None;
            self.requests
                .routes(&[route.clone()], true, 0, |_, e| failure = Some(e))
                .map_err(|e| format!("route to {dst}: {e}"))?;
            if let Some(e) = failure.filter(|e| !e.is_gone()) {
                return Err(format!("route to {dst}: {e}"));
            }
        }
        Ok(())
    }

    /// Static routes that are there and were set by an engine.
    ///
    /// # Errors
    /// One line.
    pub fn routes(&mut self) -> Result<Vec<(Net<IpAddr>, u8)>, String> {
        let mut all = Vec::new();
        for family in [Family::V4, Family::V6] {
            let dump = Dump::Routes(family, RouteFilter::default());
            let found = self.requests.objects(dump).map_err(|e| e.to_string())?;
            all.extend(found.into_iter().filter_map(|o| match o {
                Object::Route(r) if r.protocol == PROTOCOL && r.table == RT_TABLE_MAIN => {
                    let to = Net {
                        address: r.dst.addr(),
                        prefix: r.dst.prefix_len(),
                    };
                    Some((to, u8::try_from(r.metric).ok()?))
                }
                _ => None,
            }));
        }
        Ok(all)
    }
}

/// Packets and octets in, packets and octets out, of all devices by name.
#[must_use]
pub fn counters() -> BTreeMap<String, [u64; 4]> {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let row = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let n: Vec<u64> = rest
            .split_whitespace()
            .filter_map(|w| w.parse().ok())
            .collect();
        let at = |i: usize| n.get(i).copied();
        // from where the device stands: what it sends is what came in at the switch
        Some((name.trim().to_owned(), [at(1)?, at(0)?, at(9)?, at(8)?]))
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipnet::IpNet;
    use std::process::Command;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tandem_linux::netns;

    struct Ns(String);

    impl Ns {
        /// With `vlan7`, whose name is all that it has of a VLAN interface. `None`: no right to make namespaces.
        fn new() -> Option<Ns> {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let n = COUNT.fetch_add(1, Ordering::Relaxed);
            let ns = Ns(format!("swstack-{}-{n}", std::process::id()));
            let made = Command::new("ip").args(["netns", "add", &ns.0]).status();
            if !made.is_ok_and(|s| s.success()) {
                eprintln!("skipped: needs root and iproute2 to make network namespaces");
                return None;
            }
            ns.ip("link add vlan7 type veth peer name peer7");
            Some(ns)
        }

        fn ip(&self, words: &str) -> String {
            let mut ip = Command::new("ip");
            ip.args(["-n", &self.0]).args(words.split(' '));
            let said = ip.output().unwrap();
            assert!(said.status.success(), "{words}: {said:?}");
            String::from_utf8(said.stdout).unwrap()
        }

        fn does(&self, what: impl FnOnce(&mut Ip) -> Result<(), String> + Send) {
            let done = netns::run_in_named(Some(&self.0), || {
                let mut ip = Ip::open().map_err(std::io::Error::other)?;
                what(&mut ip).map_err(std::io::Error::other)
            });
            done.unwrap();
        }

        fn change(&self, was: &Wanted, now: &Wanted) {
            self.does(|ip| ip.change(Device::Vlan(7), was, now));
        }

        fn speaks_ipv6(&self) -> bool {
            let words = ["netns", "exec", &self.0, "cat"];
            let file = "/proc/sys/net/ipv6/conf/vlan7/disable_ipv6";
            let said = Command::new("ip").args(words).arg(file).output().unwrap();
            assert!(said.status.success(), "{said:?}");
            said.stdout == b"0\n"
        }
    }

    impl Drop for Ns {
        fn drop(&mut self) {
            let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
        }
    }

    /// The kernel takes IPv6 away below an MTU of 1280, and gives it anew above, with settings of its own.
    #[test]
    fn a_small_mtu_takes_ipv6_away_and_gives_it_to_nobody() {
        let Some(ns) = Ns::new().filter(|_| ipv6()) else {
            return;
        };
        let of = |mtu, address: Option<&str>| Wanted {
            up: true,
            mtu,
            addresses: address
                .map(|a| (a.parse().unwrap(), 64))
                .into_iter()
                .collect(),
        };
        let (large, with) = (of(1500, None), of(1500, Some("2001:db8::1")));
        let small = of(1000, None);
        ns.change(&Wanted::default(), &large);
        assert!(!ns.speaks_ipv6());
        ns.change(&large, &small);
        ns.change(&small, &large);
        assert!(!ns.speaks_ipv6(), "nobody has asked for it");
        // with its address it goes in one step, and comes
        ns.change(&large, &with);
        ns.change(&with, &small);
        ns.change(&small, &with);
        assert!(ns.speaks_ipv6());
        ns.change(&with, &large);
        assert!(!ns.speaks_ipv6());
    }

    /// The kernel takes all ways of a route or none of them.
    #[test]
    fn a_gateway_that_is_waited_for_holds_up_no_other() {
        let Some(ns) = Ns::new() else { return };
        ns.ip("link set vlan7 up");
        ns.ip("link set peer7 up");
        let mut all = vec![(
            "10.77.0.0/16",
            ["10.7.0.9", "10.8.0.9"],
            ["10.7.0.1/24", "10.8.0.1/24"],
        )];
        if ipv6() {
            let gateways = ["2001:db8:7::9", "2001:db8:8::9"];
            let own = ["2001:db8:7::1/64", "2001:db8:8::1/64"];
            all.push(("2001:db8:77::/48", gateways, own));
        }
        for (to, gateways, own) in all {
            let net: IpNet = to.parse().unwrap();
            let key = Net {
                address: net.addr(),
                prefix: net.prefix_len(),
            };
            let via = gateways.map(|g| Via::Gateway(g.parse().unwrap()));
            // how many of the ways are there, of those that there can be
            let ways = |there: [&str; 2]| {
                for address in there.iter().filter(|a| !a.is_empty()) {
                    ns.ip(&format!("addr add {address} dev vlan7 nodad"));
                }
                ns.does(|ip| ip.route(key, 1, &BTreeSet::from(via.clone())));
                let family = if net.addr().is_ipv4() { "-4" } else { "-6" };
                let shown = ns.ip(&format!("{family} route show {to}"));
                for address in there.iter().filter(|a| !a.is_empty()) {
                    ns.ip(&format!("addr del {address} dev vlan7"));
                }
                gateways.map(|g| shown.contains(&format!("via {g} ")))
            };
            assert_eq!(ways(["", ""]), [false, false]);
            assert_eq!(ways([own[0], ""]), [true, false]);
            assert_eq!(ways(["", own[1]]), [false, true]);
            assert_eq!(ways(own), [true, true]);
            assert_eq!(ways([own[0], ""]), [true, false]);
            assert_eq!(ways(["", ""]), [false, false]);
        }
    }
}
