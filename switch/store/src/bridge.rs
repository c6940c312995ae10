//! Bridges: what becomes a forwarding domain, and why one can't be offloaded.

use crate::Store;
use crate::api::Domain;
use crate::model::{BaseChain, BridgeInfo, Link, LinkKind, NfCall};
use crate::reason::{Hook, Reason};
use crate::slices::{Span, Walk};

fn is_vlan(l: &Link) -> bool {
    matches!(&l.kind, LinkKind::Vlan { .. }) || l.kind == LinkKind::Other("vlan".into())
}

impl Store {
    /// The next bridge that is to be looked at.
    pub(crate) fn step_bridge(&mut self, s: Span<u32>) -> bool {
        let Some(&b) = self.topo.looked_bridges.range(s.left()).next() else {
            return false;
        };
        self.slices.is_at(Walk::Bridges(s.behind(b)));
        self.slices.look();
        let new = self.bridge_state(b);
        let old = self.topo.bridges.get(&b);
        if old == new.as_ref() {
            return true;
        }
        let came = old.is_some() != new.is_some();
        match new {
            Some(new) => _ = self.topo.bridges.insert(b, new),
            None => _ = self.topo.bridges.remove(&b),
        }
        if came {
            self.topo.dirty.vlan_sets.insert(b);
        }
        self.mark_ports_of(b, came);
        true
    }

    /// A bridge with front-panel ports, and why it can't be offloaded.
    fn bridge_state(&self, i: u32) -> Option<(BridgeInfo, Option<Reason>)> {
        let bridge = &self.links.get(&i)?.link;
        let LinkKind::Bridge(info) = bridge.kind else {
            return None;
        };
        // NFPROTO_BRIDGE; what a bridge of another source bridges does not pass the kernel's
        let kernels = self.is_firsts(i);
        let nft = self.chains.iter().find(|c| kernels && c.0.family == 7);
        let ports: Vec<&Link> = self.devices_in(i).collect();
        let is_port = |p: &Link| self.topo.port_of.contains_key(&p.ifindex);
        if !ports.iter().any(|p| is_port(p)) {
            return None;
        }
        let alien = ports
            .iter()
            .filter(|p| !is_port(p))
            .min_by_key(|p| p.ifindex);
        // What the chip can't keep from leaving by a port, all ports must leave to the kernel.
        let of_vlan = || {
            ports.iter().filter(|_| info.vlan_filtering).find_map(|p| {
                let why = self.port_vlan_reason(p.ifindex)?;
                Some(Reason::Of(p.name.clone(), why.into()))
            })
        };
        let reason = if let (true, Some(u)) = (info.vlan_filtering, info.unsupported) {
            Some(Reason::Setting(u))
        } else if let Some(r) = of_vlan() {
            Some(r)
        } else if let Some(a) = alien {
            Some(Reason::Alien(a.name.clone()))
        } else if let Some(c) = nft {
            Some(Reason::Bridged(c.0.text()))
        } else if let Some(r) = self.nf_call_reason(info.nf_call).filter(|_| kernels) {
            Some(r)
        } else if let Some((p, c)) = ports
            .iter()
            .find_map(|p| Some((p, self.device_chain(&p.name, true)?)))
        {
            Some(Reason::Leaves(c, p.name.clone()))
        } else if let Some(u) = self.upper_of(bridge) {
            Some(Reason::OnTop(u.to_owned()))
        } else if bridge.promiscuous {
            Some(Reason::Promiscuous)
        } else {
            self.incomplete(i)
        };
        Some((info, reason))
    }

    /// Why bridged frames pass the chains of the IP families, if they do.
    fn nf_call_reason(&self, own: NfCall) -> Option<Reason> {
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
            let chain = format!("nftables base chain {}", c.0.text());
            return Some(Reason::BridgedByIp(chain));
        }
        if self.settings.iptables && (ip || ip6) {
            return Some(Reason::BridgedByIp("legacy iptables".into()));
        }
        (self.settings.arptables && (own.arp || all.arp))
            .then(|| Reason::BridgedByIp("legacy arptables".into()))
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
            .map(BaseChain::text)
    }

    /// The same, whichever of the two.
    pub(crate) fn chained(&self, device: &str) -> Option<Hook> {
        self.device_chain(device, false)
            .or_else(|| self.device_chain(device, true))
            .map(Hook::Chain)
    }

    /// A device on top of a bridge that takes frames which aren't for the bridge's own MAC, or of those some before the
    /// bridge does. A VLAN device with the same MAC does not: the chip sends tagged frames for it to the CPU.
    fn upper_of(&self, bridge: &Link) -> Option<&str> {
        self.devices_on(bridge.ifindex)
            .find(|l| !is_vlan(l) || l.mac != bridge.mac)
            .map(|l| l.name.as_str())
    }

    /// Chains at the hooks of a bridge device see what is routed through it: it gets no router interface. What is
    /// bridged passes them by.
    pub(crate) fn bridge_device_reason(&self, bridge: u32) -> Option<Reason> {
        let first = Domain {
            dev: bridge,
            vlan: 0,
        };
        let (d, _) = self.topo.fid_of.range(first..).next()?;
        let l = &self.links.get(&bridge).filter(|_| d.dev == bridge)?.link;
        self.hooked(l).map(Reason::Hooked)
    }
}
