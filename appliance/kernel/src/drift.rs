// SPDX-License-Identifier: Apache-2.0
//! What is otherwise in the kernel than the configuration says: somebody has changed it by `ip` or `bridge`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use tandem_linux::netlink::Membership;
use tandem_swstack::{Device, Wanted, keys};

use crate::netlink::BRIDGE;
use crate::plan::{Board, Plan};
use crate::steps::runs;

const NOTHING: &str = "-";

fn member(of: Option<Membership>) -> String {
    match of {
        None => NOTHING.into(),
        Some(m) => match (m.pvid, m.untagged) {
            (true, true) => "untagged, PVID".into(),
            (true, false) => "tagged, PVID".into(),
            (false, true) => "untagged".into(),
            (false, false) => "tagged".into(),
        },
    }
}

fn is(up: bool) -> &'static str {
    if up { "up" } else { "down" }
}

struct Rows(Vec<Vec<String>>);

impl Rows {
    fn say(&mut self, what: impl Display, wanted: impl Display, is: impl Display) {
        self.0
            .push(vec![what.to_string(), wanted.to_string(), is.to_string()]);
    }

    fn differ<T: PartialEq + Display>(&mut self, what: impl Display, wanted: T, is: T) {
        if wanted != is {
            self.say(what, wanted, is);
        }
    }

    fn members(
        &mut self,
        who: &str,
        wanted: &BTreeMap<u16, Membership>,
        is: &BTreeMap<u16, Membership>,
    ) {
        for ((first, last), [wanted, is]) in runs(wanted, is) {
            let vids = match first == last {
                true => format!("VLAN {first}"),
                false => format!("VLANs {first}-{last}"),
            };
            self.say(format!("{who} {vids}"), member(wanted), member(is));
        }
    }

    fn device(&mut self, device: Device, wanted: Option<&Wanted>, is: Option<&Wanted>) {
        let name = match device {
            Device::Vlan(vid) => format!("vlan{vid}"),
            Device::Loopback(_) => "lo".into(),
        };
        let (Some(wanted), Some(is)) = (wanted, is) else {
            let there = |w: Option<&Wanted>| if w.is_some() { "there" } else { NOTHING };
            self.say(&name, there(wanted), there(is));
            return;
        };
        if let Device::Vlan(_) = device {
            self.differ(&name, self::is(wanted.up), self::is(is.up));
            self.differ(format!("{name} MTU"), wanted.mtu, is.mtu);
        }
        // a loopback that is shut down has its addresses nowhere
        let set = |w: &Wanted| -> BTreeSet<_> {
            let here = w.up || matches!(device, Device::Vlan(_));
            w.addresses.iter().filter(|_| here).copied().collect()
        };
        let (wanted, is) = (set(wanted), set(is));
        for (address, prefix) in wanted.symmetric_difference(&is) {
            let text = format!("{address}/{prefix}");
            let of = |all: &BTreeSet<_>| match all.contains(&(*address, *prefix)) {
                true => text.clone(),
                false => NOTHING.into(),
            };
            self.say(&name, of(&wanted), of(&is));
        }
    }
}

/// Rows of a table, the first one its heads: what, as the configuration says it, and as it is.
pub(crate) fn drift(board: &Board, wanted: &Plan, is: &Plan) -> Vec<Vec<String>> {
    let heads = ["Object", "Configuration", "Kernel"].map(str::to_owned);
    let mut rows = Rows(vec![heads.to_vec()]);
    for (number, port) in &wanted.ports {
        let name = board.netdev(*number).unwrap_or_default();
        let Some(there) = is.ports.get(number) else {
            rows.say(name, format!("in {BRIDGE}"), NOTHING);
            continue;
        };
        rows.differ(name, self::is(port.up), self::is(there.up));
        rows.differ(format!("{name} MTU"), port.mtu, there.mtu);
        rows.members(name, &port.vlans, &there.vlans);
    }
    rows.members(BRIDGE, &wanted.own, &is.own);
    rows.differ(format!("{BRIDGE} ageing time"), wanted.aging, is.aging);
    for key in keys(&wanted.stations, &is.stations) {
        let of = |p: &Plan| {
            let port = p.stations.get(&key).and_then(|n| board.netdev(*n));
            port.unwrap_or(NOTHING).to_owned()
        };
        let colons: Vec<String> = key.1.iter().map(|b| format!("{b:02x}")).collect();
        let what = format!("{} VLAN {}", colons.join(":"), key.0);
        rows.differ(what, of(wanted), of(is));
    }
    for device in keys(&wanted.devices, &is.devices) {
        let pair = [wanted, is].map(|p| p.devices.get(&device));
        rows.device(device, pair[0], pair[1]);
    }
    rows.differ("forwarding", wanted.routing, is.routing);
    for (to, distance) in keys(&wanted.routes, &is.routes) {
        let there = |p: &Plan| p.routes.contains_key(&(to, distance));
        let what = format!("route {}/{} [{distance}]", to.address, to.prefix);
        match (there(wanted), there(is)) {
            (true, false) => rows.say(what, "there", "- (removed, or its gateway is on no link)"),
            (false, true) => rows.say(what, NOTHING, "there"),
            _ => {}
        }
    }
    rows.0
}
