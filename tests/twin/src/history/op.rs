//! One thing that is done to a kernel: in iproute2's words, and as the message that says it.

use std::net::IpAddr;

use ipnet::IpNet;
use tandem_linux::netlink::consts::{
    NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NUD_NOARP, NUD_PERMANENT,
    RT_SCOPE_HOST, RT_SCOPE_LINK, RT_SCOPE_NOWHERE, RT_SCOPE_UNIVERSE, RT_TABLE_LOCAL, RTA_DST,
    RTA_GATEWAY, RTA_MULTIPATH, RTA_NH_ID, RTA_OIF, RTA_PREFSRC, RTA_PRIORITY, RTA_TABLE,
    RTM_DELADDR, RTM_DELLINK, RTM_DELNEIGH, RTM_DELNEXTHOP, RTM_DELROUTE, RTM_DELRULE, RTM_NEWADDR,
    RTM_NEWLINK, RTM_NEWNEIGH, RTM_NEWNEXTHOP, RTM_NEWROUTE, RTM_NEWRULE, RTN_LOCAL, RTN_UNICAST,
    RTNH_F_ONLINK, RTPROT_BOOT,
};
use tandem_linux::netlink::wire::Writer;

/// The switch's devices: `swp1` has index 11.
pub const PORT_INDEX: u32 = 10;
/// The hosts' ends of the cables: that of `swp1` has index 101. They differ from the ports', or the kernel takes its time
/// with their links' changes (net/core/link_watch.c `linkwatch_urgent_event`).
pub const HOST_INDEX: u32 = 100;
/// The switch's bridges: the first has index 21.
pub const BRIDGE_INDEX: u32 = 20;

/// What has to be waited for after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wait {
    /// All is said when the answer is there.
    Nothing,
    /// Links may have changed: the link watch tells later.
    Links,
    /// A device is new: it gets the settings of neighbours that all have, and then as with links.
    Device(u32),
    /// The kernel's clock must tick: it goes by a querier of its own from the next tick on (net/bridge/br_multicast.c
    /// `__br_multicast_querier_exists`).
    Tick,
    /// An IPv6 address is told of, and its route made, by a work queue (net/ipv6/addrconf.c `addrconf_dad_work`).
    Address(u32, IpAddr),
}

/// How it is done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Act {
    /// A message to rtnetlink, with NLM_F_ACK; its sequence number is put in as it is sent.
    Message(Vec<u8>),
    /// The host's end of this port's cable goes up or down.
    Cable(u16, bool),
    /// A file below `/proc/sys/net` gets this value.
    Sysctl(String, String),
}

/// One thing that is done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Op {
    /// For people.
    pub text: String,
    /// How.
    pub act: Act,
    /// And then.
    pub wait: Wait,
}

/// All of them.
pub const VERBS: [Verb; 6] = [
    Verb::Add,
    Verb::Append,
    Verb::Prepend,
    Verb::Replace,
    Verb::Change,
    Verb::Delete,
];

/// What `ip route` shall do to routes with the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Verb {
    /// Refused if there is one.
    #[default]
    Add,
    /// Behind those that there are.
    Append,
    /// Before them.
    Prepend,
    /// In place of the first, or new.
    Replace,
    /// In place of the first, if there is one.
    Change,
    /// Gone.
    Delete,
}

impl Verb {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Append => "append",
            Self::Prepend => "prepend",
            Self::Replace => "replace",
            Self::Change => "change",
            Self::Delete => "del",
        }
    }

    /// ip/iproute.c `do_iproute`
    pub(super) const fn flags(self) -> u16 {
        NLM_F_ACK
            | match self {
                Self::Add => NLM_F_CREATE | NLM_F_EXCL,
                Self::Append => NLM_F_CREATE | NLM_F_APPEND,
                Self::Prepend => NLM_F_CREATE,
                Self::Replace => NLM_F_CREATE | NLM_F_REPLACE,
                Self::Change => NLM_F_REPLACE,
                Self::Delete => 0,
            }
    }
}

/// A way out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NextHop {
    /// By which device; 0: the kernel finds it.
    pub dev: u32,
    /// To which gateway.
    pub via: Option<IpAddr>,
    /// From 1.
    pub weight: u8,
    /// The gateway is on the link, whatever the routes say.
    pub onlink: bool,
}

impl NextHop {
    fn words(&self, many: bool) -> String {
        let mut s = String::new();
        if many {
            s += " nexthop";
        }
        if let Some(via) = self.via {
            s += &format!(" via {via}");
        }
        if self.dev != 0 {
            s += &format!(" dev {}", device(self.dev));
        }
        if many && self.weight > 1 {
            s += &format!(" weight {}", self.weight);
        }
        if self.onlink {
            s += " onlink";
        }
        s
    }
}

/// Where a route leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// To a next-hop object.
    Object(u32),
    /// By one next hop, or several.
    NextHops(Vec<NextHop>),
    /// `RTN_*`: nowhere.
    Special(u8),
    /// To the switch itself, by this device.
    Local(u32),
    /// Of a route to be deleted: whatever it is.
    Any,
}

/// A route as a user writes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Way {
    /// Its prefix.
    pub dst: IpNet,
    /// 0: the main one.
    pub table: u32,
    /// 0: none (IPv6: 1024).
    pub metric: u32,
    /// IPv4 only.
    pub tos: u8,
    /// Preferred source.
    pub src: Option<IpAddr>,
    /// Where to.
    pub target: Target,
}

/// A device's name.
#[must_use]
pub fn device(index: u32) -> String {
    match index {
        1 => "lo".into(),
        21..=29 => format!("br{}", index - BRIDGE_INDEX),
        31..=39 => {
            let (on, vid) = super::stacked::lower(index).unwrap_or_default();
            format!("{}.{vid}", device(on))
        }
        41..=49 => format!("vrf{}", index - 40),
        i => format!("swp{}", i.wrapping_sub(PORT_INDEX)),
    }
}

const fn family(a: &IpAddr) -> u8 {
    match a {
        IpAddr::V4(_) => 2,
        IpAddr::V6(_) => 10,
    }
}

fn special(kind: u8) -> &'static str {
    match kind {
        2 => "local",
        6 => "blackhole",
        7 => "unreachable",
        8 => "prohibit",
        9 => "throw",
        _ => "unicast",
    }
}

pub(super) fn message(kind: u16, flags: u16, fixed: &[u8], body: impl FnOnce(&mut Writer)) -> Act {
    let mut w = Writer::new();
    w.begin(kind, flags, 0, fixed);
    body(&mut w);
    Act::Message(w.bytes().to_vec())
}

impl Op {
    pub(super) fn plain(text: String, act: Act) -> Self {
        let wait = Wait::Nothing;
        Self { text, act, wait }
    }

    pub(super) fn links(text: String, act: Act) -> Self {
        let wait = Wait::Links;
        Self { text, act, wait }
    }

    /// `ip route VERB …`
    #[must_use]
    pub fn route(verb: Verb, way: &Way) -> Self {
        let dst = way.dst;
        let v6 = if dst.addr().is_ipv6() { "-6 " } else { "" };
        let mut text = format!("ip {v6}route {}", verb.word());
        if let Target::Special(kind) = way.target {
            text += &format!(" {}", special(kind));
        }
        if matches!(way.target, Target::Local(_)) {
            text += " local";
        }
        text += &format!(" {dst}");
        match &way.target {
            Target::Object(id) => text += &format!(" nhid {id}"),
            Target::NextHops(next_hops) => next_hops
                .iter()
                .for_each(|next_hop| text += &next_hop.words(next_hops.len() > 1)),
            Target::Local(dev) => text += &format!(" dev {}", device(*dev)),
            Target::Special(_) | Target::Any => {}
        }
        for (word, value) in [("metric", way.metric), ("table", way.table)] {
            if value != 0 {
                text += &format!(" {word} {value}");
            }
        }
        if way.tos != 0 {
            text += &format!(" tos {:#x}", way.tos);
        }
        if let Some(src) = way.src {
            text += &format!(" src {src}");
        }
        let kind = if verb == Verb::Delete {
            RTM_DELROUTE
        } else {
            RTM_NEWROUTE
        };
        let fixed = rtmsg(verb, way);
        Self::plain(
            text,
            message(kind, verb.flags(), &fixed, |w| way_body(w, way)),
        )
    }

    /// `ip nexthop add|replace id …`: one next hop, or nowhere.
    #[must_use]
    pub fn nexthop(replace: bool, id: u32, v6: bool, next_hop: Option<&NextHop>) -> Self {
        let words = next_hop.map_or_else(|| " blackhole".into(), |l| l.words(false));
        let af: u8 = match next_hop.and_then(|l| l.via) {
            Some(via) => family(&via),
            None if v6 => 10,
            None => 2,
        };
        let ip = if af == 10 && next_hop.is_none_or(|l| l.via.is_none()) {
            "ip -6"
        } else {
            "ip"
        };
        let text = format!("{ip} nexthop {} id {id}{words}", add_or_replace(replace));
        let mut fixed = [af, 0, RTPROT_BOOT, 0, 0, 0, 0, 0];
        if next_hop.is_some_and(|l| l.onlink) {
            fixed[4] = RTNH_F_ONLINK;
        }
        let act = message(RTM_NEWNEXTHOP, make_flags(replace), &fixed, |w| {
            w.attr_u32(NHA_ID, id);
            match next_hop {
                None => w.attr(NHA_BLACKHOLE, &[]),
                Some(next_hop) => {
                    w.attr_u32(NHA_OIF, next_hop.dev);
                    if let Some(via) = &next_hop.via {
                        w.attr_ip(NHA_GATEWAY, via);
                    }
                }
            }
        });
        Self::plain(text, act)
    }

    /// `ip nexthop add|replace id … group …`: members and their weights.
    #[must_use]
    pub fn group(replace: bool, id: u32, members: &[(u32, u8)]) -> Self {
        let words: Vec<String> = members
            .iter()
            .map(|(id, weight)| match weight {
                0 | 1 => id.to_string(),
                w => format!("{id},{w}"),
            })
            .collect();
        let text = format!(
            "ip nexthop {} id {id} group {}",
            add_or_replace(replace),
            words.join("/")
        );
        let fixed = [0, 0, RTPROT_BOOT, 0, 0, 0, 0, 0];
        let act = message(RTM_NEWNEXTHOP, make_flags(replace), &fixed, |w| {
            w.attr_u32(NHA_ID, id);
            let mut body = Vec::with_capacity(members.len() * 8);
            for (id, weight) in members {
                body.extend_from_slice(&id.to_ne_bytes());
                body.extend_from_slice(&[weight.saturating_sub(1), 0, 0, 0]);
            }
            w.attr(NHA_GROUP, &body);
        });
        Self::plain(text, act)
    }

    /// `ip nexthop add|replace id … group … type resilient buckets …`: who moves from one member to another does so at once.
    #[must_use]
    pub fn resilient(replace: bool, id: u32, members: &[(u32, u8)], buckets: u16) -> Self {
        const NHA_GROUP_TYPE: u16 = 3;
        const NHA_RES_GROUP: u16 = 12;
        const BUCKETS: u16 = 1;
        const IDLE_TIMER: u16 = 2;
        const RESILIENT: u16 = 1;
        let plain = Self::group(replace, id, members);
        let Act::Message(m) = plain.act else {
            return plain;
        };
        // the same message, with more behind it
        let act = message(
            RTM_NEWNEXTHOP,
            make_flags(replace),
            m.get(16..).unwrap_or(&[]),
            |w| {
                w.attr(NHA_GROUP_TYPE, &RESILIENT.to_ne_bytes());
                let nest = w.nest(NHA_RES_GROUP);
                w.attr(BUCKETS, &buckets.to_ne_bytes());
                w.attr_u32(IDLE_TIMER, 0);
                w.end_nest(nest);
            },
        );
        let text = format!(
            "{} type resilient buckets {buckets} idle_timer 0",
            plain.text
        );
        Self::plain(text, act)
    }

    /// `ip nexthop del id …`
    #[must_use]
    pub fn nexthop_del(id: u32) -> Self {
        let act = message(RTM_DELNEXTHOP, NLM_F_ACK, &[0; 8], |w| {
            w.attr_u32(NHA_ID, id);
        });
        Self::plain(format!("ip nexthop del id {id}"), act)
    }

    /// `ip addr add|del … dev …`, IPv6 without asking whether somebody else has it.
    #[must_use]
    pub fn address(add: bool, dev: u32, net: IpNet) -> Self {
        const IFA_F_NODAD: u8 = 2;
        const IFA_ADDRESS: u16 = 1;
        const IFA_LOCAL: u16 = 2;
        let v6 = net.addr().is_ipv6();
        let (kind, flags, verb) = if add {
            (
                RTM_NEWADDR,
                NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
                Verb::Add.word(),
            )
        } else {
            (RTM_DELADDR, NLM_F_ACK, Verb::Delete.word())
        };
        let nodad = if v6 && add { IFA_F_NODAD } else { 0 };
        let scope = match net.addr() {
            IpAddr::V6(a) if a.segments()[0] == 0xfe80 => RT_SCOPE_LINK,
            _ => RT_SCOPE_UNIVERSE,
        };
        let mut fixed = [
            family(&net.addr()),
            net.prefix_len(),
            nodad,
            scope,
            0,
            0,
            0,
            0,
        ];
        fixed[4..].copy_from_slice(&dev.to_ne_bytes());
        let act = message(kind, flags, &fixed, |w| {
            w.attr_ip(IFA_LOCAL, &net.addr());
            w.attr_ip(IFA_ADDRESS, &net.addr());
        });
        let nodad = if nodad != 0 { " nodad" } else { "" };
        let text = format!("ip addr {verb} {net} dev {}{nodad}", device(dev));
        let wait = if v6 && add {
            Wait::Address(dev, net.addr())
        } else {
            Wait::Nothing
        };
        Self { text, act, wait }
    }

    /// `ip neigh replace … nud permanent|noarp`, `ip neigh del …` without a MAC address.
    #[must_use]
    pub fn neighbour(dev: u32, addr: IpAddr, mac: Option<[u8; 6]>, permanent: bool) -> Self {
        const NDA_DST: u16 = 1;
        const NDA_LLADDR: u16 = 2;
        let (state, word) = if permanent {
            (NUD_PERMANENT, "permanent")
        } else {
            (NUD_NOARP, "noarp")
        };
        let mut fixed = [0; 12];
        fixed[0] = family(&addr);
        fixed[4..8].copy_from_slice(&dev.to_ne_bytes());
        let name = device(dev);
        match mac {
            Some(mac) => {
                fixed[8..10].copy_from_slice(&state.to_ne_bytes());
                let act = message(RTM_NEWNEIGH, make_flags(true), &fixed, |w| {
                    w.attr_ip(NDA_DST, &addr);
                    w.attr(NDA_LLADDR, &mac);
                });
                let mac = mac_words(mac);
                Self::plain(
                    format!("ip neigh replace {addr} lladdr {mac} dev {name} nud {word}"),
                    act,
                )
            }
            None => {
                let act = message(RTM_DELNEIGH, NLM_F_ACK, &fixed, |w| {
                    w.attr_ip(NDA_DST, &addr);
                });
                Self::plain(format!("ip neigh del {addr} dev {name}"), act)
            }
        }
    }

    /// `ip link set … up|down`
    #[must_use]
    pub fn link(dev: u32, up: bool) -> Self {
        let act = message(
            RTM_NEWLINK,
            NLM_F_ACK,
            &ifinfo(dev, u32::from(up), 1),
            |_| {},
        );
        Self::links(
            format!("ip link set {} {}", device(dev), up_or_down(up)),
            act,
        )
    }

    /// The host's end of a port's cable.
    #[must_use]
    pub fn cable(port: u16, up: bool) -> Self {
        Self::links(
            format!("host h{port} {}", up_or_down(up)),
            Act::Cable(port, up),
        )
    }

    /// `sysctl KEY=VALUE`, of `net`.
    #[must_use]
    pub fn sysctl(key: &str, value: &str) -> Self {
        Self::links(
            format!("sysctl {key}={value}"),
            Act::Sysctl(key.to_owned(), value.to_owned()),
        )
    }

    /// `ip link del …`
    #[must_use]
    pub fn link_del(dev: u32) -> Self {
        let act = message(RTM_DELLINK, NLM_F_ACK, &ifinfo(dev, 0, 0), |_| {});
        Self::links(format!("ip link del {}", device(dev)), act)
    }

    /// `ip rule add|del pref … [from …] [iif …] [table …|ACTION]`
    #[must_use]
    pub fn rule(add: bool, rule: &Policy) -> Self {
        const FRA_SRC: u16 = 2;
        const FRA_IIFNAME: u16 = 3;
        const FRA_PRIORITY: u16 = 6;
        let v6 = rule.v6;
        let mut fixed = [0; 12];
        fixed[0] = if v6 { 10 } else { 2 };
        fixed[2] = rule.from.map_or(0, |f| f.prefix_len());
        fixed[4] = rule.table;
        fixed[7] = if rule.table != 0 { 1 } else { rule.action };
        let (kind, flags) = if add {
            (RTM_NEWRULE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL)
        } else {
            (RTM_DELRULE, NLM_F_ACK)
        };
        if !add {
            (fixed[2], fixed[4], fixed[7]) = (0, 0, 0);
        }
        let mut text = format!(
            "ip {}rule {} pref {}",
            if v6 { "-6 " } else { "" },
            if add { "add" } else { "del" },
            rule.pref
        );
        let act = message(kind, flags, &fixed, |w| {
            w.attr_u32(FRA_PRIORITY, rule.pref);
            if !add {
                return;
            }
            if let Some(from) = &rule.from {
                w.attr_ip(FRA_SRC, &from.addr());
                text += &format!(" from {from}");
            }
            if rule.iif != 0 {
                let name = device(rule.iif);
                w.attr(FRA_IIFNAME, zero_terminated(&name).as_slice());
                text += &format!(" iif {name}");
            }
            text += &match (rule.table, rule.action) {
                (0, action) => format!(" {}", special(action)),
                (table, _) => format!(" table {table}"),
            };
        });
        Self::plain(text, act)
    }
}

/// A policy rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Policy {
    /// Its family.
    pub v6: bool,
    /// Its preference.
    pub pref: u32,
    /// Whose packets.
    pub from: Option<IpNet>,
    /// Those that came in here; 0: anywhere.
    pub iif: u32,
    /// Which table they go by; 0: `action`.
    pub table: u8,
    /// `FR_ACT_*`: 6 blackhole, 7 unreachable, 8 prohibit.
    pub action: u8,
}

const NHA_ID: u16 = 1;
const NHA_GROUP: u16 = 2;
const NHA_BLACKHOLE: u16 = 4;
const NHA_OIF: u16 = 5;
const NHA_GATEWAY: u16 = 6;

const fn add_or_replace(replace: bool) -> &'static str {
    if replace { "replace" } else { "add" }
}

const fn up_or_down(up: bool) -> &'static str {
    if up { "up" } else { "down" }
}

const fn make_flags(replace: bool) -> u16 {
    let how = if replace { NLM_F_REPLACE } else { NLM_F_EXCL };
    NLM_F_ACK | NLM_F_CREATE | how
}

pub(super) fn mac_words(mac: [u8; 6]) -> String {
    mac.map(|b| format!("{b:02x}")).join(":")
}

pub(super) fn zero_terminated(name: &str) -> Vec<u8> {
    let mut b = name.as_bytes().to_vec();
    b.push(0);
    b
}

pub(super) fn ifinfo(dev: u32, flags: u32, change: u32) -> [u8; 16] {
    let mut b = [0; 16];
    b[4..8].copy_from_slice(&dev.to_ne_bytes());
    b[8..12].copy_from_slice(&flags.to_ne_bytes());
    b[12..].copy_from_slice(&change.to_ne_bytes());
    b
}

/// `struct rtmsg`, as ip/iproute.c fills it.
fn rtmsg(verb: Verb, way: &Way) -> [u8; 12] {
    let kind = match &way.target {
        Target::Special(kind) => *kind,
        Target::Local(_) => RTN_LOCAL,
        Target::Any => 0,
        _ => RTN_UNICAST,
    };
    let scope = match &way.target {
        _ if verb == Verb::Delete && way.dst.addr().is_ipv4() => RT_SCOPE_NOWHERE,
        Target::Local(_) => RT_SCOPE_HOST,
        Target::NextHops(next_hops) if next_hops.iter().all(|l| l.via.is_none()) => RT_SCOPE_LINK,
        _ => RT_SCOPE_UNIVERSE,
    };
    let table = match way.table {
        0 => 254,
        t if t < 256 => t as u8,
        _ => 0,
    };
    let protocol = if verb == Verb::Delete { 0 } else { RTPROT_BOOT };
    let mut b = [0; 12];
    b[0] = family(&way.dst.addr());
    b[1] = way.dst.prefix_len();
    (b[3], b[4], b[5], b[6], b[7]) = (way.tos, table, protocol, scope, kind);
    if let Target::NextHops(next_hops) = &way.target
        && let [next_hop] = next_hops.as_slice()
        && next_hop.onlink
    {
        b[8] = RTNH_F_ONLINK;
    }
    b
}

fn way_body(w: &mut Writer, way: &Way) {
    if way.dst.prefix_len() != 0 {
        w.attr_ip(RTA_DST, &way.dst.addr());
    }
    if way.table > RT_TABLE_LOCAL {
        w.attr_u32(RTA_TABLE, way.table);
    }
    if way.metric != 0 {
        w.attr_u32(RTA_PRIORITY, way.metric);
    }
    if let Some(src) = &way.src {
        w.attr_ip(RTA_PREFSRC, src);
    }
    match &way.target {
        Target::Object(id) => w.attr_u32(RTA_NH_ID, *id),
        Target::Local(dev) => w.attr_u32(RTA_OIF, *dev),
        Target::NextHops(next_hops) => match next_hops.as_slice() {
            [next_hop] => {
                if next_hop.dev != 0 {
                    w.attr_u32(RTA_OIF, next_hop.dev);
                }
                if let Some(via) = &next_hop.via {
                    w.attr_ip(RTA_GATEWAY, via);
                }
            }
            next_hops => {
                let nest = w.nest(RTA_MULTIPATH);
                for next_hop in next_hops {
                    let at = w.len();
                    let mut rtnh = [0; 8];
                    rtnh[2] = if next_hop.onlink { RTNH_F_ONLINK } else { 0 };
                    rtnh[3] = next_hop.weight.saturating_sub(1);
                    rtnh[4..].copy_from_slice(&next_hop.dev.to_ne_bytes());
                    w.raw(&rtnh);
                    if let Some(via) = &next_hop.via {
                        w.attr_ip(RTA_GATEWAY, via);
                    }
                    w.patch_u16(at, (w.len() - at) as u16);
                }
                w.end_nest(nest);
            }
        },
        Target::Special(_) | Target::Any => {}
    }
}

#[cfg(test)]
mod tests {
    use tandem_linux::netlink::{self as nl, Event, Object, Protocol};

    use super::*;

    fn read(op: &Op) -> Object {
        let Act::Message(m) = &op.act else {
            panic!("{op:?}")
        };
        let mut found = None;
        nl::decode(Protocol::Route, m, |event| {
            if let Event::New(o, _) | Event::Del(o) = event {
                found = Some(o);
            }
        });
        found.unwrap()
    }

    #[test]
    fn words_and_message_say_the_same() {
        let way = Way {
            dst: "21.0.0.0/24".parse().unwrap(),
            table: 99,
            metric: 10,
            tos: 0x10,
            src: None,
            target: Target::NextHops(vec![
                NextHop {
                    dev: 11,
                    via: Some("10.1.0.2".parse().unwrap()),
                    weight: 3,
                    onlink: true,
                },
                NextHop {
                    dev: 12,
                    weight: 1,
                    ..NextHop::default()
                },
            ]),
        };
        let op = Op::route(Verb::Append, &way);
        assert_eq!(
            op.text,
            "ip route append 21.0.0.0/24 nexthop via 10.1.0.2 dev swp1 weight 3 onlink nexthop dev swp2 metric 10 \
             table 99 tos 0x10"
        );
        let Object::Route(r) = read(&op) else {
            panic!("{op:?}")
        };
        assert_eq!((r.table, r.dst, r.metric, r.tos), (99, way.dst, 10, 0x10));
        let nl::Nexthops::Many(next_hops) = &r.nexthops else {
            panic!("{r:?}")
        };
        assert_eq!(
            (next_hops[0].weight, next_hops[0].flags),
            (3, RTNH_F_ONLINK)
        );
        assert_eq!((next_hops[1].ifindex, next_hops[1].gateway), (12, None));

        let op = Op::group(true, 100, &[(1, 2), (3, 1)]);
        assert_eq!(op.text, "ip nexthop replace id 100 group 1,2/3");
        let Object::Nexthop(n) = read(&op) else {
            panic!("{op:?}")
        };
        let members = vec![(1, 2), (3, 1)];
        let resilient = false;
        assert_eq!(n.kind, nl::NexthopKind::Group { members, resilient });

        let op = Op::rule(
            true,
            &Policy {
                pref: 100,
                from: Some("40.0.0.0/8".parse().unwrap()),
                iif: 11,
                table: 99,
                ..Policy::default()
            },
        );
        assert_eq!(
            op.text,
            "ip rule add pref 100 from 40.0.0.0/8 iif swp1 table 99"
        );
        let Object::Rule(r) = read(&op) else {
            panic!("{op:?}")
        };
        assert_eq!((r.priority, r.table, r.iif.as_str()), (100, 99, "swp1"));
    }
}
