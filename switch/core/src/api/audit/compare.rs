//! What should be there, and how what is there differs.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::net::IpAddr;

use ipnet::IpNet;
use tandem_abi::object::{Object as _, ObjectKey};
use tandem_abi::raw;
use tandem_mgmt::server::ApiError;
use tandem_mgmt::types::{AuditAnswer, Difference};
use tandem_store::model::{Event, Family, Object, SourceId};
use tandem_store::{
    Action, Attach, Completion, Config, Explanation, Left, Planned, Policy, State, Store,
};

use super::chip::{Chip, same};
use super::{Asks, PAGE, Progress, listed};

/// Differences reported at most; there is one line for the rest.
const MAX: usize = 1000;
/// Rounds of planning at most: far more than any dependency is deep.
const ROUNDS: usize = 1 << 20;
/// Explanations asked for in one job.
const EXPLAIN: usize = 256;

/// What follows from the kernel's tables alone.
pub(super) struct Expected {
    /// If everything fitted.
    pub chip: Chip,
    /// Routes that no dump shows, as the running store has them.
    pub unseen: usize,
    store: Store,
}

impl Expected {
    /// Numbers that could be counted on are those of the running store (`numbers`); of router interfaces on ports' VLANs
    /// they are as in `found`: any would do. `living`: number and ifindex of the ports whose netdevs live, here or elsewhere.
    pub(super) fn of(
        owners: &[(SourceId, Vec<u16>)],
        said: Vec<Event>,
        living: &[(u16, u32)],
        config: Config,
        numbers: Left,
        found: &Chip,
        progress: &Progress,
    ) -> Expected {
        let mut store = Store::new(Config {
            // an endless chip: no reserves, nothing fails
            route_slots: [0, 0],
            policy: Policy::Trap,
            ..config
        });
        store.adopt(Left {
            rifs: found.rifs.values().copied().collect(),
            ..numbers
        });
        store.attach(Attach::Cold, 1);
        for &(port, ifindex) in living {
            let is_it =
                |e: &Event| matches!(e, Event::Upsert(_, Object::Link(l)) if l.ifindex == ifindex);
            store.port_away(port, !said.iter().any(is_it));
        }
        store.set_sources(owners);
        for event in said {
            super::say(&mut store, event);
            progress.step();
        }
        let mut chip = Chip::default();
        let mut planned: Vec<Planned> = Vec::new();
        for _ in 0..ROUNDS {
            progress.step();
            planned.clear();
            store.plan(&mut planned, 1);
            if planned.is_empty() {
                break;
            }
            for p in &planned {
                let body = p.body.bytes();
                match p.op {
                    raw::TND_OP_CREATE | raw::TND_OP_UPDATE => chip.put(p.cls, body),
                    raw::TND_OP_DELETE => chip.remove(p.cls, body),
                    _ => {}
                }
                let done = Completion {
                    result: 1,
                    ..Completion::default()
                };
                store.complete(p.token, &done, 1);
            }
        }
        Expected {
            chip,
            unseen: 0,
            store,
        }
    }

    fn routes(&self) -> HashMap<String, String> {
        let mut all = HashMap::new();
        for family in [Family::V4, Family::V6] {
            let (mut cursor, mut rows) = (0, Vec::new());
            loop {
                cursor = self.store.routes(family, cursor, PAGE, &mut rows);
                for r in rows.drain(..) {
                    let text = route_text(&r);
                    all.insert(r.key(), text);
                }
                if cursor == 0 {
                    break;
                }
            }
        }
        all
    }
}

fn route_text(r: &tandem_store::RouteRow) -> String {
    format!(
        "{} {} table {} metric {}",
        r.kind_text(),
        r.target,
        r.table,
        r.metric
    )
}

/// Gathers differences up to the limit.
#[derive(Default)]
pub(super) struct Gather {
    items: Vec<Difference>,
    more: usize,
}

impl Gather {
    fn add(&mut self, kind: &str, key: String, between: &str, wanted: String, found: String) {
        if self.items.len() >= MAX {
            self.more += 1;
            return;
        }
        self.items.push(Difference {
            kind: kind.into(),
            key,
            between: between.into(),
            wanted,
            found,
        });
    }

    fn into(self, mut answer: AuditAnswer) -> AuditAnswer {
        answer.items.extend(self.items);
        if self.more > 0 {
            answer
                .warnings
                .push(format!("{} more differences are not listed", self.more));
        }
        answer
    }
}

const SOURCE: &str = "kernel-store";
const ASIC: &str = "store-asic";

/// Two maps of texts.
fn texts(
    g: &mut Gather,
    kind: &str,
    wanted: &HashMap<String, String>,
    found: &HashMap<String, String>,
) {
    between(g, kind, SOURCE, wanted, found);
}

fn between(
    g: &mut Gather,
    kind: &str,
    whom: &str,
    wanted: &HashMap<String, String>,
    found: &HashMap<String, String>,
) {
    for (key, want) in wanted {
        match found.get(key) {
            None => g.add(kind, key.clone(), whom, want.clone(), "nothing".into()),
            Some(have) if have != want => {
                g.add(kind, key.clone(), whom, want.clone(), have.clone())
            }
            Some(_) => {}
        }
    }
    for (key, have) in found.iter().filter(|(k, _)| !wanted.contains_key(*k)) {
        g.add(kind, key.clone(), whom, "nothing".into(), have.clone());
    }
}

/// What the source says against the running store, by rows.
pub(super) async fn rows(api: &impl Asks, expected: &Expected) -> Result<AuditAnswer, ApiError> {
    let mut g = Gather::default();
    let mut answer = AuditAnswer::default();
    let mut found = HashMap::new();
    for family in [Family::V4, Family::V6] {
        let mut cursor = 0;
        loop {
            let (next, page) = api
                .ask(move |core| {
                    let mut rows = Vec::new();
                    let next = core.store.routes(family, cursor, PAGE, &mut rows);
                    (next, rows)
                })
                .await?;
            for r in page {
                // the reserve's own traps are nobody's routes
                if r.table != 0 {
                    let text = route_text(&r);
                    found.insert(r.key(), text);
                }
            }
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
    }
    let wanted = expected.routes();
    answer.compared.insert("routes".into(), wanted.len() as u64);
    if expected.unseen > 0 {
        answer.warnings.push(format!(
            "{} IPv6 routes stand between the ways of others, where no dump shows them: not compared with the source",
            expected.unseen
        ));
    }
    texts(&mut g, "route", &wanted, &found);

    let neighbours = listed(api, Store::neighbour_page).await?;
    let fdb = listed(api, Store::fdb_page).await?;
    let neigh = |rows: Vec<tandem_store::NeighRow>| -> HashMap<String, String> {
        rows.into_iter()
            // without an address it is not there for forwarding
            .filter(|r| !r.mac.is_empty())
            .map(|r| {
                (
                    format!("{} dev {}", r.addr, r.dev),
                    format!("lladdr {}", r.mac),
                )
            })
            .collect()
    };
    let entries = |rows: Vec<tandem_store::FdbRow>| -> HashMap<String, String> {
        rows.into_iter()
            .filter_map(|r| Some((r.kind?, r)))
            .map(|(kind, r)| {
                (
                    format!("{} {} vlan {}", r.mac, r.bridge, r.vlan),
                    format!("{} dev {}", kind.text(), r.dev),
                )
            })
            .collect()
    };
    let wanted = neigh(expected.store.neighbours());
    answer
        .compared
        .insert("neighbours".into(), wanted.len() as u64);
    texts(&mut g, "neighbour", &wanted, &neigh(neighbours));
    let wanted = entries(expected.store.fdb());
    answer.compared.insert("fdb".into(), wanted.len() as u64);
    texts(&mut g, "fdb", &wanted, &entries(fdb));
    Ok(g.into(answer))
}

/// What the running store says of an object.
enum Ask {
    /// VRF of the chip.
    Route(u16, IpNet),
    Neighbour(IpAddr),
    Mac([u8; 6]),
}

async fn explain(api: &impl Asks, asks: Vec<Ask>) -> Result<Vec<Vec<Explanation>>, ApiError> {
    let mut all = Vec::with_capacity(asks.len());
    let mut asks = asks.into_iter().peekable();
    while asks.peek().is_some() {
        let some: Vec<Ask> = asks.by_ref().take(EXPLAIN).collect();
        all.extend(
            api.ask(move |core| {
                some.into_iter()
                    .map(|a| match a {
                        Ask::Route(vrf, net) => vec![core.explain_route(vrf, net)],
                        Ask::Neighbour(a) => core.store.explain_neighbour(a),
                        Ask::Mac(m) => core.store.explain_mac(m),
                    })
                    .collect::<Vec<_>>()
            })
            .await?,
        );
    }
    Ok(all)
}

/// What should be in the chip against what is there.
pub(super) async fn tables(
    api: &impl Asks,
    expected: &Expected,
    found: &Chip,
    policy: Policy,
    answer: AuditAnswer,
) -> Result<AuditAnswer, ApiError> {
    let mut g = Gather::default();
    let reasons = port_reasons(api).await?;
    let without_room = |port: u16| {
        let have = found.ports.get(&port);
        have.is_some_and(|h| h.flags & raw::TND_PORT_TRAP_ALL != 0) && reasons.contains(&port)
    };
    let want = &fitting(&expected.chip, found, without_room);
    for (port, w) in &want.ports {
        let have = found.ports.get(port);
        if have.is_none_or(|h| !same(h, w)) {
            g.add(
                "port",
                format!("swp{port}"),
                ASIC,
                port_text(Some(w)),
                port_text(have),
            );
        }
    }
    plain(
        &mut g,
        "vlan",
        &want.vlans,
        &incomplete(want, found),
        |k| format!("fid {k}"),
        |v| format!("flags {:#x} ageing {} s", v.flags, v.ageing_s),
    );
    Chip::plain(want, found, &mut g);
    // those that do not fit are missing, and those of bridges whose ports trap because a VLAN has no room: a host may be
    // behind such a port that the chip doesn't see
    let mut rifs = want.rifs.clone();
    let bridge = |fid: u16| Some(expected.store.domain(fid)?.dev);
    let members = expected.chip.members.iter();
    let hidden: HashSet<u32> = members
        .filter(|((port, _), _)| without_room(*port))
        .filter_map(|(_, m)| bridge(m.fid))
        .collect();
    rifs.retain(|k, r| {
        let without =
            r.kind == raw::TND_RIF_FID && bridge(r.fid).is_some_and(|b| hidden.contains(&b));
        found.rifs.contains_key(k) || !without
    });
    // where an own IPv4 prefix is not there the chip does not know who claims to be from there: it may route none of that VRF. With
    // more room it might be left out, as the prefix above it would answer
    let mut own = api.ask(|core| core.store.own_missing()).await?;
    // one that nobody wants any more is no reason
    own.retain(|r| expected.store.is_own(r));
    let stands = |r: &raw::tnd_route| {
        let there = found.routes.get(&r.key());
        there.is_some_and(|f| (f.action, f.reason) == (r.action, r.reason))
    };
    let lack = own.iter().filter(|r| !stands(r));
    let lacking: HashSet<u16> = lack.map(|r| r.vrf).collect();
    for r in rifs.values_mut().filter(|r| lacking.contains(&r.vrf)) {
        r.flags &= !raw::TND_RIF_V4;
    }
    let failed = api.ask(|core| core.store.rifs_failed()).await?;
    let fails = |rif: u16| {
        let device = expected.store.device_of_rif(rif);
        device.is_some_and(|i| failed.contains(&i))
    };
    rifs.retain(|k, _| found.rifs.contains_key(k) || !fails(*k));
    plain(
        &mut g,
        "rif",
        &rifs,
        &found.rifs,
        |k| format!("rif {k}"),
        |r| {
            format!(
                "vrf {} kind {} port {} fid {} mac {} mtu {} flags {:#x}",
                r.vrf,
                r.kind,
                r.port,
                r.fid,
                mac(r.mac),
                r.mtu,
                r.flags
            )
        },
    );
    let rows = listed(api, Store::mdb_page).await?;
    let failed = rows.into_iter().filter(|r| r.state == State::Failed);
    let no_room = failed.filter_map(|r| r.group).collect();
    between(
        &mut g,
        "group",
        ASIC,
        &super::groups::texts(want, want, found, &no_room),
        &super::groups::texts(found, want, found, &no_room),
    );
    rules(api, &mut g, want, found).await?;
    fdb(api, &mut g, want, found).await?;
    neighbours(api, &mut g, want, found).await?;
    routes(api, &mut g, want, found, policy).await?;
    Ok(g.into(answer))
}

/// Ports whose packets go to the CPU for a reason that is known.
async fn port_reasons(api: &impl Asks) -> Result<HashSet<u16>, ApiError> {
    api.ask(|core| {
        let ports = core.plant().ports().iter();
        ports
            .filter(|p| core.store.port_reason(p.ifindex).is_some())
            .map(|p| p.port)
            .collect()
    })
    .await
}

/// What is wanted, as far as it fits: VLANs and memberships may be missing of ports all of whose frames go to the CPU
/// for a reason that the running store has.
fn fitting(want: &Chip, found: &Chip, without_room: impl Fn(u16) -> bool) -> Chip {
    let mut want = want.clone();
    for (port, w) in &mut want.ports {
        if without_room(*port) {
            w.flags |= raw::TND_PORT_TRAP_ALL;
        }
    }
    // of each domain whether all of its ports say so
    let mut excused: HashMap<u16, bool> = HashMap::new();
    for ((port, _), m) in &want.members {
        *excused.entry(m.fid).or_insert(true) &= without_room(*port);
    }
    want.vlans
        .retain(|fid, _| found.vlans.contains_key(fid) || excused.get(fid) != Some(&true));
    want.members
        .retain(|k, _| found.members.contains_key(k) || !without_room(k.0));
    want
}

/// The chip's VLANs, without the trap of unknown unicast where an FDB entry does not fit: it has to be there.
fn incomplete(want: &Chip, found: &Chip) -> HashMap<u16, raw::tnd_vlan> {
    let mut vlans = found.vlans.clone();
    let missing = want.fdb.keys().filter(|k| !found.fdb.contains_key(*k));
    let missing: HashSet<u16> = missing.map(|k| k.0).collect();
    let lacks = super::groups::lacks(want, found);
    for (fid, v) in &mut vlans {
        let wanted = want.vlans.get(fid).map_or(0, |w| w.flags);
        if wanted & raw::TND_VLAN_UC_TRAP == 0 && missing.contains(fid) {
            v.flags &= !raw::TND_VLAN_UC_TRAP;
        }
        v.flags = super::groups::as_wanted(*fid, v.flags, wanted, &lacks);
    }
    vlans
}

/// Groups and lists of rules. One of which everything traps may lack rules, and a rule may trap for want of a session or a
/// policer, if the running store knows why.
async fn rules(api: &impl Asks, g: &mut Gather, want: &Chip, found: &Chip) -> Result<(), ApiError> {
    let ports = port_reasons(api).await?;
    // of a group that the chip has no room for the members say so
    let groups = |chip: &Chip| -> HashMap<String, String> {
        let told = |m: &(u16, bool)| ports.contains(&m.0);
        let lags = chip.lags.iter().filter(|(_, l)| !l.1.iter().all(told));
        lags.map(|(lag, l)| (format!("lag {lag}"), format!("{l:?}")))
            .collect()
    };
    between(g, "lag", ASIC, &groups(want), &groups(found));
    let hidden = |port: u16, stage: u16| {
        let bind = found.acl_binds.get(&(port, stage));
        bind.is_some_and(|b| b.flags & raw::TND_ACL_BIND_TRAP_ALL != 0) && ports.contains(&port)
    };
    // a list's number is its port and stage
    let list = |b: &raw::tnd_acl_bind| u32::from(b.port) << 2 | u32::from(b.stage & 3);
    let excused: Vec<u32> = found
        .acl_binds
        .values()
        .filter(|b| hidden(b.port, b.stage))
        .map(list)
        .collect();
    let open = |list: u32| !excused.contains(&list);
    let traps = |e: Option<&raw::tnd_acl_entry>| e.is_some_and(|e| e.action == raw::TND_ACL_TRAP);
    // one that traps anyway may be without its range of ports
    let lacks = |have: u32, want: u32| have == 0 && want != 0;
    let parts_lack = api.ask(|core| core.store.rules_that_trap()).await?;
    let mut parts_lack: HashSet<(u32, u32)> = parts_lack.into_iter().collect();
    parts_lack.retain(|rule| {
        let (have, want) = (found.acl_rules.get(rule), want.acl_rules.get(rule));
        let lacks_range = have.zip(want).is_some_and(|(f, w)| {
            lacks(f.src_range, w.src_range) || lacks(f.dst_range, w.dst_range)
        });
        traps(have) && (!traps(want) || lacks_range)
    });
    let kept = |chip: &Chip| -> [HashMap<String, String>; 3] {
        let tables = chip.acl_tables.values().filter(|t| open(t.table));
        let binds = chip.acl_binds.values().filter(|b| open(list(b)));
        let compared =
            |e: &raw::tnd_acl_entry| open(e.table) && !parts_lack.contains(&(e.table, e.priority));
        let rules = chip.acl_rules.values().filter(|e| compared(e));
        [
            tables
                .map(|t| (format!("list {}", t.table), format!("stage {}", t.stage)))
                .collect(),
            binds
                .map(|b| {
                    let key = format!("swp{} stage {}", b.port, b.stage);
                    (key, format!("list {} flags {:#x}", b.table, b.flags))
                })
                .collect(),
            rules
                .map(|e| {
                    let key = format!("list {} priority {}", e.table, e.priority);
                    (key, format!("{e:?}"))
                })
                .collect(),
        ]
    };
    let kinds = ["acl", "acl-bind", "acl-rule"];
    for ((kind, want), found) in kinds.into_iter().zip(kept(want)).zip(kept(found)) {
        between(g, kind, ASIC, &want, &found);
    }
    if excused.is_empty() && parts_lack.is_empty() {
        between(g, "acl-part", ASIC, &want.parts(), &found.parts());
    }
    Ok(())
}

/// Classes that always fit or whose absence shows in others' reasons.
pub(super) fn plain<K: Eq + std::hash::Hash, T: zerocopy::IntoBytes + zerocopy::Immutable>(
    g: &mut Gather,
    kind: &str,
    want: &HashMap<K, T>,
    found: &HashMap<K, T>,
    key: impl Fn(&K) -> String,
    text: impl Fn(&T) -> String,
) {
    for (k, w) in want {
        match found.get(k) {
            Some(f) if same(f, w) => {}
            f => g.add(
                kind,
                key(k),
                ASIC,
                text(w),
                f.map_or("nothing".into(), &text),
            ),
        }
    }
    for (k, f) in found.iter().filter(|(k, _)| !want.contains_key(*k)) {
        g.add(kind, key(k), ASIC, "nothing".into(), text(f));
    }
}

fn action(a: u8) -> &'static str {
    Action::of(a).text()
}

fn mac(m: [u8; 6]) -> String {
    let [a, b, c, d, e, f] = m;
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

fn port_text(p: Option<&raw::tnd_port>) -> String {
    p.map_or("nothing".into(), |p| {
        format!("flags {:#x} mtu {} stp {}", p.flags, p.mtu, p.stp_state)
    })
}

fn fdb_text(f: &raw::tnd_fdb) -> String {
    if f.action == raw::TND_ACT_FORWARD {
        format!("forward to swp{}", f.port)
    } else {
        action(f.action).into()
    }
}

async fn fdb(api: &impl Asks, g: &mut Gather, want: &Chip, found: &Chip) -> Result<(), ApiError> {
    let mut missing = Vec::new();
    for (k, w) in &want.fdb {
        match found.fdb.get(k) {
            Some(f) if fdb_text(f) == fdb_text(w) => {}
            Some(f) => g.add(
                "fdb",
                format!("{} fid {}", mac(k.1), k.0),
                ASIC,
                fdb_text(w),
                fdb_text(f),
            ),
            None => missing.push((k, w)),
        }
    }
    let said = explain(api, missing.iter().map(|(k, _)| Ask::Mac(k.1)).collect()).await?;
    for ((k, w), said) in missing.iter().zip(said) {
        // it may be missing when the store knows that, and why
        let known = said.iter().any(|e| !e.in_hardware && e.reason.is_some());
        if !known {
            g.add(
                "fdb",
                format!("{} fid {}", mac(k.1), k.0),
                ASIC,
                fdb_text(w),
                "nothing".into(),
            );
        }
    }
    for (k, f) in found.fdb.iter().filter(|(k, _)| !want.fdb.contains_key(*k)) {
        g.add(
            "fdb",
            format!("{} fid {}", mac(k.1), k.0),
            ASIC,
            "nothing".into(),
            fdb_text(f),
        );
    }
    Ok(())
}

fn address(family: u8, bytes: &[u8; 16]) -> IpAddr {
    if u32::from(family) == u32::from(raw::TND_AF_INET) {
        let [a, b, c, d, ..] = *bytes;
        IpAddr::from([a, b, c, d])
    } else {
        IpAddr::from(*bytes)
    }
}

fn neigh_text(n: &raw::tnd_neigh) -> String {
    format!("{} lladdr {}", action(n.action), mac(n.mac))
}

async fn neighbours(
    api: &impl Asks,
    g: &mut Gather,
    want: &Chip,
    found: &Chip,
) -> Result<(), ApiError> {
    let key = |n: &raw::tnd_neigh| format!("{} rif {}", address(n.family, &n.addr), n.rif);
    let mut missing = Vec::new();
    for (k, w) in &want.neighbours {
        match found.neighbours.get(k) {
            Some(f) if same(f, w) => {}
            Some(f) => g.add("neighbour", key(w), ASIC, neigh_text(w), neigh_text(f)),
            None => missing.push(w),
        }
    }
    let asks = missing
        .iter()
        .map(|w| Ask::Neighbour(address(w.family, &w.addr)))
        .collect();
    for (w, said) in missing.iter().zip(explain(api, asks).await?) {
        if !said.iter().any(|e| !e.in_hardware && e.reason.is_some()) {
            g.add("neighbour", key(w), ASIC, neigh_text(w), "nothing".into());
        }
    }
    let extra = |k: &&ObjectKey| !want.neighbours.contains_key(*k);
    for k in found.neighbours.keys().filter(extra) {
        if let Some(f) = found.neighbours.get(k) {
            g.add("neighbour", key(f), ASIC, "nothing".into(), neigh_text(f));
        }
    }
    Ok(())
}

/// Where a route leads in this chip, in words that don't depend on ids of groups, nor on the order of their members: a new
/// switchd takes a group over in the order in which it stands (`store/src/hw/ids.rs`).
fn target(chip: &Chip, r: &raw::tnd_route) -> String {
    let mut text = action(r.action).to_owned();
    if r.action != raw::TND_ACT_FORWARD {
        return text;
    }
    let hop = |id: u32, weight: u32| match chip.nexthops.get(&id) {
        None => format!(" next hop {id} that is not there"),
        Some(n) if n.action == raw::TND_ACT_FORWARD => {
            format!(" via {} rif {} weight {weight}", mac(n.mac), n.rif)
        }
        Some(n) => format!(" {} rif {} weight {weight}", action(n.action), n.rif),
    };
    if r.target_kind == raw::TND_RT_NEXTHOP {
        text += &hop(r.target, 1);
    } else if let Some((hash, members)) = chip.groups.get(&r.target) {
        let mut hops: Vec<String> = members.iter().map(|(id, w)| hop(*id, *w)).collect();
        hops.sort_unstable();
        text.extend(hops);
        let _ = write!(text, " hash {hash}");
    } else {
        let _ = write!(text, " group {} that is not there", r.target);
    }
    text
}

fn prefix(r: &raw::tnd_route) -> Option<IpNet> {
    IpNet::new(address(r.family, &r.addr), r.prefix_len).ok()
}

async fn routes(
    api: &impl Asks,
    g: &mut Gather,
    want: &Chip,
    found: &Chip,
    policy: Policy,
) -> Result<(), ApiError> {
    let mut differing = Vec::new();
    for (k, w) in &want.routes {
        let Some(net) = prefix(w) else { continue };
        let have = found.routes.get(k);
        let (wanted, is) = (
            target(want, w),
            have.map_or("nothing".into(), |h| target(found, h)),
        );
        if wanted != is {
            differing.push((net, w.vrf, wanted, is, have.map(|h| h.action)));
        }
    }
    let extra: Vec<_> = found
        .routes
        .iter()
        .filter(|(k, _)| !want.routes.contains_key(*k))
        .filter_map(|(_, f)| Some((prefix(f)?, f)))
        .collect();
    let asks = differing.iter().map(|d| Ask::Route(d.1, d.0)).collect();
    for ((net, vrf, wanted, is, does), said) in differing.into_iter().zip(explain(api, asks).await?)
    {
        let reason = said.first().is_some_and(|e| e.reason.is_some());
        let harmless = match does {
            Some(raw::TND_ACT_TRAP) => reason,
            None => {
                let fails = said.first().is_some_and(|e| !e.in_hardware);
                // a less specific entry that forwards would answer, wrongly
                let safe =
                    policy == Policy::Fail || cover(found, vrf, net) != Some(raw::TND_ACT_FORWARD);
                reason && fails && safe
            }
            _ => false,
        };
        if !harmless {
            g.add("route", route_key(net, vrf), ASIC, wanted, is);
        }
    }
    let asks = extra
        .iter()
        .map(|(net, f)| Ask::Route(f.vrf, *net))
        .collect();
    for ((net, f), said) in extra.iter().zip(explain(api, asks).await?) {
        // the reserve's aggregate traps are the store's own
        let own = said.first().is_some_and(|e| e.known && e.net == Some(*net));
        if !(own && f.action == raw::TND_ACT_TRAP) {
            let key = route_key(*net, f.vrf);
            g.add("route", key, ASIC, "nothing".into(), target(found, f));
        }
    }
    Ok(())
}

fn route_key(net: IpNet, vrf: u16) -> String {
    match vrf {
        0 => net.to_string(),
        v => format!("{net} vrf {v}"),
    }
}

/// What the longest shorter entry does.
fn cover(chip: &Chip, vrf: u16, net: IpNet) -> Option<u8> {
    let mut shorter = net.supernet()?;
    loop {
        let (family, addr) = match shorter.network() {
            IpAddr::V4(a) => {
                let mut b = [0; 16];
                for (to, from) in b.iter_mut().zip(a.octets()) {
                    *to = from;
                }
                (raw::TND_AF_INET, b)
            }
            IpAddr::V6(a) => (raw::TND_AF_INET6, a.octets()),
        };
        let probe = raw::tnd_route {
            vrf,
            family,
            addr,
            prefix_len: shorter.prefix_len(),
            ..Default::default()
        };
        if let Some(r) = chip.routes.get(&tandem_abi::object::Object::key(&probe)) {
            return Some(r.action);
        }
        shorter = shorter.supernet()?;
    }
}
