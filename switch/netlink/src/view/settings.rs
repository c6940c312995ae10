//! Settings: of interfaces, which messages tell of, and sysctls that are read.

use std::collections::{BTreeMap, BTreeSet};

use tandem_linux::netlink as nl;
use tandem_store::model::{self, Object};

use super::super::convert;
use super::{KernelView, LinkState, Sink, upsert};

impl KernelView {
    /// An interface's settings.
    pub(super) fn netconf(&mut self, c: &nl::Netconf, out: &mut Sink<'_>) {
        let mut c = convert::netconf(c);
        let v6 = c.family == model::Family::V6;
        if let model::ConfScope::Interface(i) = c.scope
            && v6
        {
            self.reread |= self.conf6.insert(i);
            c.disabled = Some(self.without6.contains(&i));
        }
        let of = (c.family, c.scope);
        if c.ignore_linkdown == Some(true) {
            self.left_out.insert(of);
        }
        let no_longer = c.ignore_linkdown == Some(false) && self.left_out.remove(&of);
        // a dump calls a next hop without carrier dead where it is to be left out, and no message tells when it no longer is
        match c.scope {
            _ if !no_longer => {}
            model::ConfScope::Interface(i) if v6 => drop(self.doubts.links6.insert(i)),
            model::ConfScope::Interface(i) => drop(self.doubts.links.insert(i)),
            model::ConfScope::All => self.doubts.routes = true,
            model::ConfScope::Default => {}
        }
        upsert(out, Object::Netconf(c));
    }

    /// The namespace's settings, as just read.
    pub fn settings(&mut self, now: model::Settings, out: &mut Sink<'_>) {
        if self.settings != Some(now) || self.full.is_some() {
            self.settings = Some(now);
            upsert(out, Object::Settings(now));
        }
    }

    /// `send_redirects` of all, default and every interface, as just read.
    pub fn redirects(&mut self, now: BTreeMap<model::ConfScope, bool>, out: &mut Sink<'_>) {
        for (scope, on) in &now {
            if self.redirects.get(scope) != Some(on) || self.full.is_some() {
                upsert(
                    out,
                    Object::Netconf(model::Netconf {
                        family: model::Family::V4,
                        scope: *scope,
                        forwarding: None,
                        rp_filter: None,
                        ignore_linkdown: None,
                        send_redirects: Some(*on),
                        disabled: None,
                    }),
                );
            }
        }
        self.redirects = now;
    }

    /// There is a bridge.
    pub fn has_bridge(&self) -> bool {
        let bridge = |l: &LinkState| matches!(l.model.kind, model::LinkKind::Bridge(_));
        self.links.values().any(bridge)
    }

    /// The sysctls should be read before their time.
    pub fn take_reread(&mut self) -> bool {
        std::mem::take(&mut self.reread)
    }

    /// The interfaces without IPv6, as just read: they take none in, whatever `forwarding` says.
    pub fn without_ipv6(&mut self, now: BTreeSet<u32>, out: &mut Sink<'_>) {
        for i in now.symmetric_difference(&self.without6) {
            // next hops die and live again with it, in silence (net/ipv6/route.c `rt6_disable_ip`, `rt6_sync_up`)
            self.doubts.links6.insert(*i);
            if self.conf6.contains(i) {
                upsert(
                    out,
                    Object::Netconf(model::Netconf {
                        family: model::Family::V6,
                        scope: model::ConfScope::Interface(*i),
                        forwarding: None,
                        rp_filter: None,
                        ignore_linkdown: None,
                        send_redirects: None,
                        disabled: Some(now.contains(i)),
                    }),
                );
            }
        }
        self.without6 = now;
    }
}
