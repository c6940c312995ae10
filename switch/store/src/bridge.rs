//! Bridges: what becomes a forwarding domain, and why one can't be offloaded.

use crate::Store;
use crate::model::{BaseChain, BridgeInfo, Link, LinkKind, NfCall};
use std::collections::{BTreeMap, BTreeSet};

fn is_vlan(l: &Link) -> bool {
    matches!(&l.kind, LinkKind::Vlan { .. }) || l.kind == LinkKind::Other("vlan".into())
}

impl Store {
    /// Bridges with front-panel ports: why one can't be offloaded, empty if it can.
    pub(crate) fn bridges(&self) -> BTreeMap<u32, (BridgeInfo, String)> {
        let mut out = BTreeMap::new();
        // NFPROTO_BRIDGE
        let nft = self.chains.iter().find(|c| c.0.family == 7);
        for (i, r) in &self.links {
            let LinkKind::Bridge(info) = r.link.kind else {
                continue;
            };
            let ports: Vec<&Link> = self
                .links
                .values()
                .map(|l| &l.link)
                .filter(|l| l.master == *i)
                .collect();
            let is_port = |p: &Link| self.topo.port_of.contains_key(&p.ifindex);
            if !ports.iter().any(|p| is_port(p)) {
                continue;
            }
            let alien = ports
                .iter()
                .filter(|p| !is_port(p))
                .min_by_key(|p| p.ifindex);
            // What the chip can't keep from leaving by a port, all ports must leave to the kernel.
            let of_vlan = || {
                ports.iter().filter(|_| info.vlan_filtering).find_map(|p| {
                    Some(format!("{}: {}", p.name, self.port_vlan_reason(p.ifindex)?))
                })
            };
            let reason = if let (true, Some(u)) = (info.vlan_filtering, info.unsupported) {
                format!("{u} is not offloaded")
            } else if let Some(r) = of_vlan() {
                r
            } else if let Some(a) = alien {
                format!("{} is a member and not a front-panel port", a.name)
            } else if let Some(c) = nft {
                format!(
                    "nftables base chain {}/{} sees bridged frames",
                    c.0.table, c.0.name
                )
            } else if let Some(r) = self.nf_call_reason(info.nf_call) {
                r
            } else if let Some((p, c)) = ports
                .iter()
                .find_map(|p| Some((p, self.device_chain(&p.name, true)?)))
            {
                format!("nftables base chain {c} sees what leaves by {}", p.name)
            } else if let Some(u) = self.upper_of(&r.link) {
                format!("{u} is on top of it")
            } else if r.link.promiscuous {
                "it is promiscuous: somebody wants every frame".into()
            } else {
                self.incomplete(*i).unwrap_or_default()
            };
            out.insert(*i, (info, reason));
        }
        out
    }

    /// Why bridged frames pass the chains of the IP families, if they do.
    fn nf_call_reason(&self, own: NfCall) -> Option<String> {
        let all = self.settings.nf_call;
        let (ip, ip6) = (own.ip || all.ip, own.ip6 || all.ip6);
        // Prerouting, forward, postrouting; NFPROTO_INET is both.
        let chain = self.chains.iter().find(|c| {
            matches!(c.0.hook, 0 | 2 | 4)
                && match c.0.family {
                    1 => ip || ip6,
                    2 => ip,
                    10 => ip6,
                    _ => false,
                }
        });
        if let Some(c) = chain {
            return Some(format!(
                "nftables base chain {}/{} sees bridged frames (bridge-nf-call)",
                c.0.table, c.0.name
            ));
        }
        if self.settings.iptables && (ip || ip6) {
            return Some("legacy iptables sees bridged frames (bridge-nf-call)".into());
        }
        (self.settings.arptables && (own.arp || all.arp))
            .then(|| "legacy arptables sees bridged frames (bridge-nf-call)".into())
    }

    /// A chain at a device's own hook: what comes in there, or what leaves.
    pub(crate) fn device_chain(&self, device: &str, egress: bool) -> Option<String> {
        // NFPROTO_NETDEV has hooks of its own; NF_INET_INGRESS is 5.
        let at_hook = |c: &BaseChain| match c.family {
            5 => c.hook == u32::from(egress),
            1 => c.hook == 5 && !egress,
            _ => false,
        };
        let names = |d: &String| match d.strip_suffix('*') {
            Some(start) => device.starts_with(start),
            None => d == device,
        };
        self.chains
            .iter()
            .map(|c| &c.0)
            .find(|c| at_hook(c) && c.devices.iter().any(names))
            .map(|c| format!("{}/{}", c.table, c.name))
    }

    /// A device on top of a bridge that takes frames which aren't for the bridge's own MAC, or of those some before the
    /// bridge does. A VLAN device with the same MAC does not: the chip sends tagged frames for it to the CPU.
    fn upper_of(&self, bridge: &Link) -> Option<&str> {
        self.links
            .values()
            .map(|r| &r.link)
            .filter(|l| l.lower == bridge.ifindex)
            .filter(|l| !is_vlan(l) || l.mac != bridge.mac)
            .min_by_key(|l| l.ifindex)
            .map(|l| l.name.as_str())
    }

    /// Chains at the hooks of a bridge device see what is routed through it: it gets no router interface. What is
    /// bridged passes them by.
    pub(crate) fn bridge_device_reasons(&mut self) {
        let mut found = Vec::new();
        let bridges: BTreeSet<u32> = self.topo.fid_of.keys().map(|d| d.dev).collect();
        for b in bridges {
            let Some(r) = self.links.get(&b) else {
                continue;
            };
            if !matches!(r.link.kind, LinkKind::Bridge(_)) {
                continue;
            }
            if let Some(h) = self.hooked(&r.link) {
                found.push((b, format!("{h} it")));
            }
        }
        for (b, reason) in found {
            self.topo.reasons.entry(b).or_insert(reason);
        }
    }
}
