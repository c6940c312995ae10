//! A store as simple as can be, and what `ip -j` says in the same words.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;
use tandem_store::model::*;

/// Holds what the events say.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    pub objects: BTreeMap<String, (Object, bool)>,
    syncing: Option<KindSet>,
    pub syncs: usize,
    /// Upserts that changed nothing, outside of dumps.
    pub idle_upserts: usize,
}

fn kind(o: &Object) -> KindSet {
    match o {
        Object::Link(_) => KindSet::LINK,
        Object::Addr(_) => KindSet::ADDR,
        Object::Neigh(_) => KindSet::NEIGH,
        Object::Fdb(_) => KindSet::FDB,
        Object::BridgeVlan(_) => KindSet::BRIDGE_VLAN,
        Object::Nexthop(_) => KindSet::NEXTHOP,
        Object::Route(_) => KindSet::ROUTE,
        Object::Rule(_) => KindSet::RULE,
        Object::BaseChain(_) => KindSet::BASE_CHAIN,
        Object::Filter(_) => KindSet::FILTER,
        Object::Mdb(_) | Object::RouterPort(_) | Object::VlanSnooping(_) => KindSet::MDB,
        Object::Netconf(_) => KindSet::NETCONF,
        Object::Settings(_) => KindSet(0),
    }
}

fn key(o: &Object) -> String {
    let key = match o {
        Object::Link(l) => Key::Link(l.ifindex),
        Object::Addr(a) => Key::Addr(*a),
        Object::Neigh(n) => Key::Neigh(n.ifindex, n.addr),
        Object::Fdb(f) => Key::Fdb(FdbKey {
            bridge: f.bridge,
            vlan: f.vlan,
            mac: f.mac,
        }),
        Object::BridgeVlan(v) => Key::BridgeVlan(v.ifindex, v.vid),
        Object::Nexthop(n) => Key::Nexthop(n.id),
        Object::Route(r) => Key::Route(r.key),
        Object::Rule(r) => Key::Rule(r.clone()),
        Object::Filter(f) => Key::Filter(f.key),
        Object::Mdb(e) => Key::Mdb(e.key()),
        Object::RouterPort(r) => Key::RouterPort(r.bridge, r.ifindex),
        Object::VlanSnooping(v) => Key::VlanSnooping(v.bridge, v.vlan),
        Object::BaseChain(c) => Key::BaseChain(c.family, c.table.clone(), c.name.clone()),
        Object::Netconf(c) => Key::Netconf(c.family, c.scope),
        Object::Settings(_) => return "settings".into(),
    };
    format!("{key:?}")
}

impl Mirror {
    pub fn apply(&mut self, event: Event) {
        match event {
            Event::Upsert(_, mut object) => {
                let key = key(&object);
                let old = self.objects.get(&key);
                if let (Object::Netconf(new), Some((Object::Netconf(old), _))) = (&mut object, old)
                {
                    new.forwarding = new.forwarding.or(old.forwarding);
                    new.rp_filter = new.rp_filter.or(old.rp_filter);
                    new.ignore_linkdown = new.ignore_linkdown.or(old.ignore_linkdown);
                    new.disabled = new.disabled.or(old.disabled);
                    new.send_redirects = new.send_redirects.or(old.send_redirects);
                }
                if self.syncing.is_none() && old.is_some_and(|(o, _)| *o == object) {
                    self.idle_upserts += 1;
                }
                self.objects.insert(key, (object, true));
            }
            Event::Remove(_, key) => {
                self.objects.remove(&format!("{key:?}"));
            }
            Event::BeginSync(_, kinds) => {
                self.syncing = Some(kinds);
                self.objects
                    .values_mut()
                    .for_each(|(_, seen)| *seen = false);
            }
            Event::EndSync(_) => {
                let kinds = self.syncing.take().expect("EndSync after BeginSync");
                self.syncs += 1;
                self.objects
                    .retain(|_, (o, seen)| *seen || !kinds.contains(kind(o)) || kind(o).0 == 0);
            }
        }
    }

    pub fn get<T>(&self, f: impl Fn(&Object) -> Option<T>) -> Vec<T> {
        self.objects.values().filter_map(|(o, _)| f(o)).collect()
    }

    /// Routes in [`line`]'s words, sorted.
    pub fn routes(&self, names: &HashMap<u32, String>) -> Vec<String> {
        let mut keyed: BTreeMap<String, Vec<(u16, Route)>> = BTreeMap::new();
        for (object, _) in self.objects.values() {
            if let Object::Route(r) = object {
                let bare = RouteKey {
                    position: 0,
                    ..r.key
                };
                keyed
                    .entry(format!("{bare:?}"))
                    .or_default()
                    .push((r.key.position, r.clone()));
            }
        }
        let mut out = Vec::new();
        for mut aliases in keyed.into_values() {
            aliases.sort_by_key(|(position, _)| *position);
            for (order, (_, r)) in aliases.iter().enumerate() {
                out.push(line_of(r, order, names));
            }
        }
        out.sort();
        out
    }
}

fn line_of(r: &Route, order: usize, names: &HashMap<u32, String>) -> String {
    let hop = |h: &NextHop| {
        let name = names.get(&h.ifindex).cloned().unwrap_or_default();
        let gateway = h.gateway.map(|g| g.to_string()).unwrap_or_default();
        let mut flags = Vec::new();
        for (on, text) in [
            (h.dead, "dead"),
            (h.linkdown, "linkdown"),
            (h.onlink, "onlink"),
        ] {
            if on {
                flags.push(text);
            }
        }
        format!("{name}>{gateway}*{}{flags:?}", h.weight)
    };
    let mut hops: Vec<String> = match &r.nexthops {
        RouteNextHops::None => vec![],
        RouteNextHops::One(h) => vec![hop(h)],
        RouteNextHops::Many(many) => many.iter().map(hop).collect(),
        RouteNextHops::Object(id) => vec![format!("nhid {id}")],
    };
    hops.sort();
    let kind = format!("{:?}", r.kind).to_lowercase();
    let scope = if r.key.prefix.addr().is_ipv6() {
        0
    } else {
        r.scope
    };
    let prefsrc = r.prefsrc.map(|p| p.to_string()).unwrap_or_default();
    line(
        &r.key.prefix.to_string(),
        r.key.table,
        r.key.tos,
        r.key.metric,
        order,
        &kind,
        scope,
        &prefsrc,
        &hops,
    )
}

#[allow(clippy::too_many_arguments)]
fn line(
    dst: &str,
    table: u32,
    tos: u8,
    metric: u32,
    order: usize,
    kind: &str,
    scope: u8,
    prefsrc: &str,
    hops: &[String],
) -> String {
    format!("{dst} t{table} tos{tos} m{metric} #{order} {kind} scope{scope} src{prefsrc} {hops:?}")
}

pub(crate) fn names(links: &Value) -> HashMap<u32, String> {
    links
        .as_array()
        .into_iter()
        .flatten()
        .map(|l| {
            let index = l["ifindex"].as_u64().unwrap() as u32;
            (index, l["ifname"].as_str().unwrap().to_owned())
        })
        .collect()
}

/// The same words from `ip -j -d route show table all`. IPv6 may have a route twice (`replace` in another's place): the
/// second says nothing.
pub(crate) fn routes_of_ip(json: &Value, v6: bool) -> Vec<String> {
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let mut orders: HashMap<String, usize> = HashMap::new();
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for r in json.as_array().into_iter().flatten() {
        let mut dst = text(&r["dst"]);
        if dst == "default" {
            dst = if v6 {
                "::/0".into()
            } else {
                "0.0.0.0/0".into()
            };
        } else if !dst.contains('/') {
            dst += if v6 { "/128" } else { "/32" };
        }
        let table = match text(&r["table"]).as_str() {
            "" | "main" => 254,
            "local" => 255,
            "default" => 253,
            n => n.parse().unwrap(),
        };
        let tos = match text(&r["tos"]).as_str() {
            "" => 0,
            t => {
                let t = t.trim_start_matches("0x");
                u8::from_str_radix(t, 16).unwrap_or_else(|_| panic!("tos {t}"))
            }
        };
        let metric = r["metric"].as_u64().unwrap_or(0) as u32;
        let scope = match text(&r["scope"]).as_str() {
            _ if v6 => 0,
            "link" => 253,
            "host" => 254,
            "nowhere" => 255,
            _ => 0,
        };
        let hop = |h: &Value| {
            let gateway = match &h["via"] {
                Value::Null => text(&h["gateway"]),
                via => text(&via["host"]),
            };
            let mut flags: Vec<String> = h["flags"]
                .as_array()
                .into_iter()
                .flatten()
                .map(text)
                .collect();
            flags.retain(|f| matches!(f.as_str(), "dead" | "linkdown" | "onlink"));
            flags.sort_by_key(|f| ["dead", "linkdown", "onlink"].iter().position(|x| x == f));
            let weight = h["weight"].as_u64().unwrap_or(1);
            format!("{}>{gateway}*{weight}{flags:?}", text(&h["dev"]))
        };
        let mut hops: Vec<String> = if let Some(id) = r["nhid"].as_u64() {
            vec![format!("nhid {id}")]
        } else if let Some(many) = r["nexthops"].as_array() {
            many.iter().map(hop).collect()
        } else if r["dev"].is_string() {
            vec![hop(r)]
        } else {
            vec![]
        };
        hops.sort();
        let key = format!("{dst} {table} {tos} {metric}");
        let kind = match text(&r["type"]).as_str() {
            "" => "unicast".into(),
            // what the next-hop object is
            "blackhole" if r["nhid"].is_u64() => "unicast".into(),
            k => k.to_owned(),
        };
        let prefsrc = text(&r["prefsrc"]);
        if v6 && !seen.insert(format!("{key} {kind} {prefsrc} {hops:?}")) {
            continue;
        }
        let order = orders.entry(key).or_default();
        let here = *order;
        *order += 1;
        out.push(line(
            &dst, table, tos, metric, here, &kind, scope, &prefsrc, &hops,
        ));
    }
    out
}
