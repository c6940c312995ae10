// SPDX-License-Identifier: Apache-2.0
//! The kernel of the network namespace in which this is called.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use tandem_linux::ifreq::ControlSocket;
use tandem_linux::netlink::consts::{NTF_EXT_LEARNED, NUD_NOARP, NUD_PERMANENT, RT_SCOPE_LINK};
use tandem_linux::netlink::{
    BridgeOf, BridgePort, Dump, Error, FdbEntry, Link, LinkKind, Membership, Object, Requests,
};
use tandem_swconfig::{Net, Via};
use tandem_swfrr::Line;
use tandem_swstack::tree::{self, Tree};
use tandem_swstack::{Beside, Device, Ip, NEVER, RouteKey, Wanted, ipv6, setting};

use crate::engine::{Kernel, Known, Netdev};
use crate::plan::{Board, Plan, Port};
use crate::states::keep_bpdus;
use crate::steps::At;

/// The one bridge.
pub const BRIDGE: &str = "br0";
/// What a VLAN's device may have at the most; the bridge's own, which limits no frame that it forwards.
const MTU: u32 = 9216;
/// More than a year: what the kernel's hundredths have room for.
const LONGEST: u32 = 40_000_000;

fn words(e: impl ToString) -> String {
    e.to_string()
}

/// The kernel, the ports by their netdevs.
pub struct Netlink {
    requests: Requests,
    control: ControlSocket,
    ip: Ip,
    board: Board,
    beside: Beside,
    tree: Option<Arc<Tree>>,
}

/// Whether this kernel has bridges that filter by VLAN, and VLAN devices.
///
/// # Errors
/// One line, what to do about it.
pub fn does() -> Result<(), String> {
    let lacks = |what: &str, e: &Error| format!("this kernel has no {what} ({e})");
    let mut requests = Requests::open().map_err(words)?;
    let control = ControlSocket::open().map_err(words)?;
    if control.link(BRIDGE).is_ok() {
        return Ok(());
    }
    let probe = format!("swprobe{}", std::process::id() % 10_000_000);
    let bridge = BridgeOf {
        name: &probe,
        mac: [2, 0, 0, 0, 0, 1],
    };
    requests
        .add_bridge(&bridge)
        .map_err(|e| lacks("bridges that filter by VLAN", &e))?;
    let index = control.link(&probe).map_err(words)?.ifindex;
    let upper = format!("{probe}v");
    let made = requests.add_vlan_device(&upper, index, 1);
    // what stands on it goes with it
    requests.delete_link(index).map_err(words)?;
    made.map_err(|e| lacks("VLAN devices on bridges", &e))
}

/// All of a kind.
fn all(what: Dump) -> Result<Vec<Object>, String> {
    let mut requests = Requests::open().map_err(words)?;
    requests.objects(what).map_err(words)
}

fn links() -> Result<Vec<Link>, String> {
    let all = all(Dump::Links)?.into_iter();
    Ok(all
        .filter_map(|o| match o {
            Object::Link(l) => Some(l),
            _ => None,
        })
        .collect())
}

/// A state that a spanning tree has given.
fn closed(port: &BridgePort) -> bool {
    port.locked || matches!(port.state, 1 | 2)
}

/// The bridge, if it is there and is one that this engine can have.
fn bridge(links: &[Link]) -> Result<Option<&Link>, String> {
    let Some(link) = links.iter().find(|l| l.name == BRIDGE) else {
        return Ok(None);
    };
    match &link.kind {
        LinkKind::Bridge(b) if b.vlan_filtering => Ok(Some(link)),
        LinkKind::Bridge(_) => Err(format!(
            "{BRIDGE} is there and does not filter by VLAN: ip link set {BRIDGE} type bridge vlan_filtering 1, or delete it"
        )),
        _ => Err(format!("{BRIDGE} is there and is no bridge: rename it")),
    }
}

/// The index of a VLAN's device, if what is called so is that.
fn ours(links: &[Link], vid: u16) -> Option<u32> {
    let bridge = links.iter().find(|l| l.name == BRIDGE)?.index;
    let of = |l: &&Link| {
        let kind = matches!(&l.kind, LinkKind::Vlan(v) if v.id == vid);
        kind && l.lower == bridge && l.name == format!("vlan{vid}")
    };
    links.iter().find(of).map(|l| l.index)
}

/// Without IPv6 nothing is said of it by a device that has no addresses.
fn silent(name: &str) -> Result<(), String> {
    match ipv6() {
        true => setting(&format!("ipv6/conf/{name}/disable_ipv6"), true),
        false => Ok(()),
    }
}

impl Netlink {
    /// Of this thread's network namespace, with these ports, their spanning tree, and who stands beside.
    ///
    /// # Errors
    /// One line.
    pub fn open(board: Board, beside: Beside, tree: Option<Arc<Tree>>) -> Result<Netlink, String> {
        Ok(Netlink {
            requests: Requests::open().map_err(words)?,
            control: ControlSocket::open().map_err(words)?,
            ip: Ip::open()?,
            board,
            beside,
            tree,
        })
    }

    fn index(&self, name: &str) -> Result<u32, String> {
        let link = self.control.link(name);
        Ok(link.map_err(|e| format!("{name}: {e}"))?.ifindex)
    }

    fn netdev(&self, port: u16) -> Result<&str, String> {
        let name = self.board.netdev(port);
        name.ok_or_else(|| format!("there is no port {port}"))
    }

    /// Entries of the bridge's table, with their port.
    fn entries(&self, links: &[Link]) -> Result<Vec<(u16, FdbEntry)>, String> {
        let Some(bridge) = bridge(links)? else {
            return Ok(Vec::new());
        };
        let of = |index: u32| {
            let name = &links.iter().find(|l| l.index == index)?.name;
            let port = self.board.ports.iter().find(|p| p.1 == *name)?;
            Some(port.0)
        };
        let ports: BTreeMap<u32, u16> = links
            .iter()
            .filter_map(|l| Some((l.index, of(l.index)?)))
            .collect();
        let all = all(Dump::Fdb)?.into_iter();
        Ok(all
            .filter_map(|o| match o {
                Object::Fdb(e) if e.master == bridge.index && e.vlan != 0 => {
                    Some((*ports.get(&e.ifindex)?, e))
                }
                _ => None,
            })
            .filter(|(_, e)| e.state & NUD_PERMANENT == 0)
            .collect())
    }
}

/// An entry that nobody has learned: set by hand, or the port's own.
pub(crate) fn stays(e: &FdbEntry) -> bool {
    e.state & NUD_PERMANENT != 0 || is_fixed(e)
}

fn is_fixed(e: &FdbEntry) -> bool {
    e.state & NUD_NOARP != 0 && e.flags & NTF_EXT_LEARNED == 0
}

impl Kernel for Netlink {
    fn members(&mut self, at: At, vids: (u16, u16), of: Option<Membership>) -> Result<(), String> {
        let (name, own) = match at {
            At::Port(n) => (self.netdev(n)?, false),
            At::Bridge => (BRIDGE, true),
        };
        let name = name.to_owned();
        let index = self.index(&name)?;
        let done = self.requests.bridge_vlans(index, own, vids, of);
        done.map_err(|e| format!("{name}: VLAN {}: {e}", vids.0))
    }

    fn up(&mut self, port: u16, up: bool) -> Result<(), String> {
        let name = self.netdev(port)?;
        let done = self.control.set_up(name, up);
        done.map_err(|e| format!("{name}: {e}"))
    }

    fn mtu(&mut self, port: u16, mtu: u32) -> Result<(), String> {
        let name = self.netdev(port)?;
        let done = self.control.set_mtu(name, mtu);
        done.map_err(|e| format!("{name}: MTU {mtu}: {e}"))
    }

    fn aging(&mut self, seconds: u32) -> Result<(), String> {
        let index = self.index(BRIDGE)?;
        let done = self
            .requests
            .bridge_ageing(index, seconds.min(LONGEST) * 100);
        done.map_err(words)
    }

    fn station(&mut self, key: (u16, [u8; 6]), port: u16, on: bool) -> Result<(), String> {
        let name = self.netdev(port)?.to_owned();
        let index = self.index(&name)?;
        let done = match on {
            true => self.requests.fdb_static(index, &key.1, key.0),
            false => match self.requests.fdb_del(index, &key.1, key.0) {
                Err(e) if e.is_gone() => Ok(()),
                // somebody has taken the port out of the VLAN: nothing is found by it
                Err(e) if e.errno == libc::EINVAL => Ok(()),
                done => done,
            },
        };
        done.map_err(|e| format!("{name}: {e}"))
    }

    fn device(&mut self, vid: u16, on: bool) -> Result<(), String> {
        let name = format!("vlan{vid}");
        if !on {
            // on the way back it may be somebody else's, for which it was refused
            let Some(index) = ours(&links()?, vid) else {
                return Ok(());
            };
            return match self.requests.delete_link(index) {
                Err(e) if !e.is_gone() => Err(format!("{name}: {e}")),
                _ => Ok(()),
            };
        }
        let index = self.index(BRIDGE)?;
        match self.requests.add_vlan_device(&name, index, vid) {
            Err(e) if e.errno == libc::EEXIST => {
                if ours(&links()?, vid).is_none() {
                    return Err(format!(
                        "{name} is there and is not VLAN {vid} of {BRIDGE}: rename it"
                    ));
                }
            }
            done => done.map_err(|e| format!("{name}: {e}"))?,
        }
        silent(&name)
    }

    fn change(&mut self, device: Device, was: &Wanted, now: &Wanted) -> Result<(), String> {
        self.ip.change(device, was, now)
    }

    fn forward(&mut self, on: bool) -> Result<(), String> {
        self.ip.forward(on)
    }

    fn route(&mut self, to: Net<IpAddr>, distance: u8, via: &BTreeSet<Via>) -> Result<(), String> {
        self.ip.route(to, distance, via)
    }

    fn routes(&mut self) -> Result<Vec<RouteKey>, String> {
        self.ip.routes()
    }

    fn begin(&mut self) -> Result<bool, String> {
        let mut all = links()?;
        let new = bridge(&all)?.is_none();
        if new {
            let of = BridgeOf {
                name: BRIDGE,
                mac: self.board.mac(),
            };
            self.requests.add_bridge(&of).map_err(words)?;
            silent(BRIDGE)?;
            // or it would follow the least of its ports
            let mtu = self.control.set_mtu(BRIDGE, MTU);
            mtu.map_err(|e| format!("{BRIDGE}: {e}"))?;
            let index = self.index(BRIDGE)?;
            // its own VLANs are those that have an interface
            let own = self.requests.bridge_vlans(index, true, (1, 1), None);
            own.map_err(words)?;
            let up = self.control.set_up(BRIDGE, true);
            up.map_err(|e| format!("{BRIDGE}: {e}"))?;
            all = links()?;
        }
        let index = self.index(BRIDGE)?;
        for (_, name, _, _) in &self.board.ports {
            let link = all.iter().find(|l| l.name == *name);
            match link.map_or(0, |l| l.master) {
                0 if link.is_none() => tracing::warn!("{name} is not there"),
                0 => {
                    let port = self.index(name)?;
                    silent(name)?;
                    let into = self.requests.set_master(port, index);
                    into.map_err(|e| format!("{name}: {e}"))?;
                }
                master if master == index => {}
                _ => tracing::warn!("{name} is in another device, and stays there"),
            }
        }
        Ok(new)
    }

    fn read(&self, wanted: &Plan) -> Result<Plan, String> {
        let links = links()?;
        let mut plan = Plan::default();
        let mut addresses: BTreeMap<u32, Vec<(IpAddr, u8)>> = BTreeMap::new();
        for o in all(Dump::Addrs)? {
            if let Object::Addr(a) = o
                && a.scope != RT_SCOPE_LINK
            {
                let here = addresses.entry(a.ifindex).or_default();
                here.push((a.local, a.prefix_len));
            }
        }
        let of = |index: u32| addresses.get(&index).cloned().unwrap_or_default();
        if let Some(bridge) = bridge(&links)? {
            if let LinkKind::Bridge(b) = &bridge.kind {
                plan.aging = match b.ageing_time / 100 {
                    LONGEST => NEVER,
                    seconds => seconds,
                };
            }
            let mut vlans: BTreeMap<u32, BTreeMap<u16, Membership>> = BTreeMap::new();
            for o in all(Dump::BridgeVlans)? {
                let Object::BridgeVlans(b) = o else { continue };
                let here = vlans.entry(b.ifindex).or_default();
                for v in b.vlans {
                    let how = Membership {
                        pvid: v.pvid,
                        untagged: v.untagged,
                    };
                    here.extend((v.first..=v.last).map(|vid| (vid, how)));
                }
            }
            plan.own = vlans.remove(&bridge.index).unwrap_or_default();
            for (number, name, _, _) in &self.board.ports {
                let port = links
                    .iter()
                    .find(|l| l.name == *name && l.master == bridge.index);
                plan.ports.extend(port.map(|l| {
                    let port = Port {
                        up: l.admin_up(),
                        mtu: l.mtu,
                        vlans: vlans.remove(&l.index).unwrap_or_default(),
                    };
                    (*number, port)
                }));
                // a port that somebody else's tree has closed is not told from one of before
                plan.tree.tree.on |= port.and_then(|l| l.brport.as_ref()).is_some_and(closed);
            }
            for l in &links {
                let LinkKind::Vlan(v) = &l.kind else { continue };
                if ours(&links, v.id) == Some(l.index) {
                    let set = Wanted {
                        up: l.admin_up(),
                        mtu: l.mtu,
                        addresses: of(l.index),
                    };
                    plan.devices.insert(Device::Vlan(v.id), set);
                }
            }
            let fixed = self.entries(&links)?;
            let fixed = fixed.into_iter().filter(|(_, e)| is_fixed(e));
            plan.stations = fixed.map(|(port, e)| ((e.vlan, e.mac), port)).collect();
        }
        let lo = links.iter().find(|l| l.name == "lo");
        let lo = lo.map(|l| of(l.index)).unwrap_or_default();
        for (device, set) in &wanted.devices {
            if let Device::Loopback(_) = device {
                let there = set.addresses.iter().filter(|a| lo.contains(a));
                let is = Wanted {
                    addresses: there.copied().collect(),
                    ..set.clone()
                };
                plan.devices.insert(*device, is);
            }
        }
        let forward = std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward");
        plan.routing = forward.is_ok_and(|text| text.trim() == "1");
        let routes = Ip::open()?.routes()?.into_iter();
        plan.routes = routes.map(|key| (key, BTreeSet::new())).collect();
        Ok(plan)
    }

    fn netdevs(&self) -> Result<BTreeMap<String, Netdev>, String> {
        let all = links()?.into_iter();
        Ok(all
            .map(|l| {
                let carrier = l.admin_up() && l.carrier();
                let is = Netdev {
                    mac: l.mac.unwrap_or_default(),
                    carrier,
                };
                (l.name, is)
            })
            .collect())
    }

    fn known(&self) -> Result<Vec<Known>, String> {
        let links = links()?;
        let all = self.entries(&links)?.into_iter();
        Ok(all
            .map(|(port, e)| (e.vlan, e.mac, is_fixed(&e), port))
            .collect())
    }

    fn forget(&mut self, all: &[Known]) -> Result<(), String> {
        for (vid, mac, _, port) in all {
            let index = self.index(self.netdev(*port)?)?;
            match self.requests.fdb_del(index, mac, *vid) {
                // the bridge has forgotten it meanwhile
                Err(e) if !e.is_gone() => return Err(e.to_string()),
                _ => {}
            }
        }
        Ok(())
    }

    fn protocols(&mut self, now: &[Line]) -> Result<(), String> {
        self.beside.protocols(now)
    }

    fn tree(&mut self, wanted: &tree::Wanted) -> Result<(), String> {
        let Some(tree) = self.tree.clone() else {
            return Ok(());
        };
        for (_, name, _, _) in &self.board.ports {
            let done = self
                .index(name)
                .and_then(|index| keep_bpdus(index, wanted.tree.on));
            match done {
                Err(e) if wanted.tree.on => return Err(format!("{name}: {e}")),
                Err(e) => tracing::warn!("{name}: {e}"),
                Ok(()) => {}
            }
        }
        tree.configure(wanted)
    }

    fn spanning_tree(&self) -> Option<Arc<Tree>> {
        self.tree.clone()
    }

    fn beside(&self) -> Beside {
        self.beside.clone()
    }

    fn counters(&self) -> BTreeMap<String, [u64; 4]> {
        tandem_swstack::counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_linux::netlink::{BridgeInfo, VlanInfo};

    fn link(index: u32, name: &str, kind: LinkKind, lower: u32) -> Link {
        Link {
            index,
            name: name.into(),
            kind,
            flags: 0,
            mtu: 1500,
            mac: None,
            master: 0,
            slave_kind: String::new(),
            lower,
            lower_elsewhere: false,
            operstate: 0,
            promiscuity: 0,
            brport: None,
            bond: None,
        }
    }

    fn vlan(id: u16) -> LinkKind {
        LinkKind::Vlan(VlanInfo {
            id,
            ..VlanInfo::default()
        })
    }

    #[test]
    fn what_is_only_called_so_is_somebody_elses() {
        let filters = BridgeInfo {
            vlan_filtering: true,
            ..BridgeInfo::default()
        };
        let all = [
            link(1, "lo", LinkKind::Other(String::new()), 0),
            link(5, BRIDGE, LinkKind::Bridge(filters), 0),
            link(6, "vlan2", vlan(2), 5),
            link(7, "vlan3", LinkKind::Other("dummy".into()), 0),
            link(8, "vlan4", vlan(4), 1),
            link(9, "vlan5", vlan(6), 5),
            link(10, "mine", vlan(7), 5),
        ];
        let found: Vec<_> = (1..10).filter_map(|vid| ours(&all, vid)).collect();
        assert_eq!(found, [6]);
        assert_eq!(ours(&all[2..], 2), None, "without the bridge");
        assert_eq!(bridge(&all).map(|l| l.map(|l| l.index)), Ok(Some(5)));
        let of = |kind| bridge(&[link(5, BRIDGE, kind, 0)]).map(|_| ());
        let other = of(LinkKind::Bridge(BridgeInfo::default())).unwrap_err();
        assert!(other.contains("does not filter by VLAN"), "{other}");
        assert!(of(LinkKind::Tun).is_err() && bridge(&all[2..]) == Ok(None));
    }
}
