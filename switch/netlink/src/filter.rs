//! Filters of traffic control, from the kernel's words to the chip's.
//!
//! ```text
//!   flower, matchall ─ keys and actions that the chip has ───► a rule
//!                    └ others ─► the fields that it has ─────► a rule that is the kernel's
//!   any other kind ─────────────► every packet ──────────────► a rule that is the kernel's
//! ```
//!
//! A rule that is the kernel's sends its packets to the CPU, where the kernel applies the filter itself. As long as such a
//! rule looks at fewer fields than the filter, never at others, no packet gets another answer.

use std::fmt::Write as _;

use tandem_abi::raw;
use tandem_linux::netlink as nl;
use tandem_linux::netlink::{FilterAction, FilterKind, FlowerKey, Hook};
use tandem_store::model::{Filter, FilterKey, FilterPolice, FilterVerdict};

const ETH_P_ALL: u16 = 0x0003;
const ETH_P_8021Q: u16 = 0x8100;
const ETH_P_8021AD: u16 = 0x88a8;
const ETH_P_IP: u16 = 0x0800;
const ETH_P_IPV6: u16 = 0x86dd;
/// What the kernel's dissector looks through: the type that it compares is not that of the frame.
const LOOKED_THROUGH: [u16; 4] = [0x8864, 0x4305, ETH_P_8021Q, ETH_P_8021AD];
/// Below this a number is a length, and the kernel's name for the frame its own.
const FIRST_ETHERTYPE: u16 = 0x0600;

/// `TC_ACT_*`
mod act {
    pub const CONTINUE: i32 = -1;
    pub const OK: i32 = 0;
    pub const SHOT: i32 = 2;
    pub const PIPE: i32 = 3;
    pub const STOLEN: i32 = 4;
    pub const TRAP: i32 = 8;
}

/// `TCA_EGRESS_REDIR` and `TCA_EGRESS_MIRROR`.
const REDIRECT: u32 = 1;
const MIRROR: u32 = 2;

/// Place of switchd's own programs in `clsact`: first, so that no other filter can let a stamped frame pass.
pub const PRIORITY: u16 = 1;
/// Their number there.
pub const HANDLE: u32 = 0x7d;
/// switchd's own programs.
pub(super) fn is_ours(f: &nl::Filter) -> bool {
    f.name == "bpf" && f.priority == PRIORITY && f.handle == HANDLE
}

fn key_of(f: &nl::Filter) -> FilterKey {
    FilterKey {
        ifindex: f.ifindex,
        egress: f.hook == Hook::Egress,
        chain: f.chain,
        priority: f.priority,
        handle: f.handle,
    }
}

/// A rule without fields, for the kernel.
fn everything(key: FilterKey, text: String, why: &str) -> Filter {
    Filter {
        key,
        text,
        fields: raw::tnd_acl_key::default(),
        mask: raw::tnd_acl_key::default(),
        src_ports: None,
        dst_ports: None,
        verdict: FilterVerdict::Permit,
        mirror: None,
        police: None,
        kernel: Some(why.into()),
    }
}

/// What filters of a shared block may do, at both hooks.
pub(super) fn shared(q: &nl::Qdisc) -> Vec<Filter> {
    if !q.shared {
        return Vec::new();
    }
    let at = |egress| {
        let key = FilterKey {
            ifindex: q.ifindex,
            egress,
            chain: 0,
            priority: 0,
            handle: 0,
        };
        everything(
            key,
            "shared block".into(),
            "filters of a shared block are not offloaded",
        )
    };
    vec![at(false), at(true)]
}

/// The rule of a filter. None for the head of a list in a dump, and for switchd's own programs.
pub(super) fn convert(f: &nl::Filter) -> Option<Filter> {
    if !f.whole || is_ours(f) {
        return None;
    }
    let mut text = format!("pref {} {}", f.priority, f.name);
    if f.protocol != ETH_P_ALL {
        let _ = write!(text, " protocol {:#06x}", f.protocol);
    }
    let (flower, actions, skip_hw) = match &f.kind {
        FilterKind::Flower {
            key,
            actions,
            skip_hw,
        } => (Some(key), actions, *skip_hw),
        FilterKind::Matchall { actions, skip_hw } => (None, actions, *skip_hw),
        FilterKind::Other => {
            let why = format!("filters of kind {} are not offloaded", f.name);
            return Some(everything(key_of(f), text, &why));
        }
    };
    let mut out = everything(key_of(f), String::new(), "");
    out.kernel = None;
    protocol(&mut out, f.protocol);
    if let Some(k) = flower {
        fields(&mut out, f.protocol, k, &mut text);
    }
    decide(&mut out, actions, &mut text);
    if skip_hw {
        out.kernel = Some("skip_hw: the user wants it in software".into());
    }
    out.text = text;
    Some(out)
}

fn refuse(f: &mut Filter, why: &str) {
    if f.kernel.is_none() {
        f.kernel = Some(why.into());
    }
}

/// The protocol that a filter is asked for: the ethertype of the outermost tag, or of a frame without one.
fn protocol(f: &mut Filter, protocol: u16) {
    let tag = match protocol {
        ETH_P_ALL => return,
        ETH_P_8021Q => raw::TND_ACL_TAG_8021Q,
        ETH_P_8021AD => raw::TND_ACL_TAG_8021AD,
        p if p < FIRST_ETHERTYPE => {
            return refuse(f, "frames without an ethertype are not told apart");
        }
        p => {
            (f.fields.ethertype, f.mask.ethertype) = (p, u16::MAX);
            raw::TND_ACL_UNTAGGED
        }
    };
    (f.fields.tag, f.mask.tag) = (tag, u8::MAX);
}

fn mac(m: [u8; 6]) -> String {
    let [a, b, c, d, e, f] = m;
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

/// An address with its mask, as tc writes it.
fn network(v6: bool, (addr, mask): &([u8; 16], [u8; 16])) -> String {
    let ones: u32 = mask.iter().map(|b| b.count_ones()).sum();
    let [a, b, c, d, ..] = *addr;
    match v6 {
        true => format!("{}/{ones}", std::net::Ipv6Addr::from(*addr)),
        false => format!("{a}.{b}.{c}.{d}/{ones}"),
    }
}

fn fields(f: &mut Filter, protocol: u16, k: &FlowerKey, text: &mut String) {
    let tagged = matches!(protocol, ETH_P_8021Q | ETH_P_8021AD);
    let inner = match (tagged, k.vlan_ethertype) {
        (true, Some(t)) => Some(t),
        _ => k.ethertype.filter(|t| !(tagged && *t == protocol)),
    };
    if k.other {
        refuse(f, "it looks at fields that the chip does not");
    }
    (f.fields.dst_mac, f.mask.dst_mac) = k.dst_mac;
    (f.fields.src_mac, f.mask.src_mac) = k.src_mac;
    for (name, (addr, mask)) in [("dst_mac", k.dst_mac), ("src_mac", k.src_mac)] {
        if mask != [0; 6] {
            let _ = write!(text, " {name} {}", mac(addr));
        }
    }
    if let Some(vid) = k.vlan_id {
        f.fields.tci |= vid & 0xfff;
        f.mask.tci |= 0xfff;
        let _ = write!(text, " vlan_id {vid}");
    }
    if let Some(p) = k.vlan_prio {
        f.fields.tci |= u16::from(p & 7) << 13;
        f.mask.tci |= 7 << 13;
        let _ = write!(text, " vlan_prio {p}");
    }
    if f.mask.tci != 0 && !tagged {
        // a frame that says so has a tag: the kernel has it both ways
        (f.fields.tci, f.mask.tci) = (0, 0);
        refuse(f, "a VLAN without protocol 802.1Q is not offloaded");
    }
    match inner {
        Some(t) if LOOKED_THROUGH.contains(&t) || t < FIRST_ETHERTYPE => {
            (f.fields.ethertype, f.mask.ethertype) = (0, 0);
            return refuse(f, "what is behind this ethertype is not looked at");
        }
        Some(t) => (f.fields.ethertype, f.mask.ethertype) = (t, u16::MAX),
        None => {}
    }
    let v6 = inner == Some(ETH_P_IPV6);
    if !v6 && inner != Some(ETH_P_IP) {
        let l3 = k.protocol.is_some()
            || k.tos.1 != 0
            || k.ttl.1 != 0
            || k.flags.1 != 0
            || k.tcp_flags.1 != 0
            || k.src_ip.1 != [0; 16]
            || k.dst_ip.1 != [0; 16]
            || k.src_port.1 != 0
            || k.dst_port.1 != 0
            || k.src_range.is_some()
            || k.dst_range.is_some();
        if l3 {
            refuse(f, "it looks at fields that the chip does not");
        }
        return;
    }
    if let Some(p) = k.protocol {
        (f.fields.protocol, f.mask.protocol) = (p, u8::MAX);
        let _ = write!(text, " ip_proto {p}");
    }
    (f.fields.src_ip, f.mask.src_ip) = k.src_ip;
    (f.fields.dst_ip, f.mask.dst_ip) = k.dst_ip;
    for (name, net) in [("src_ip", &k.src_ip), ("dst_ip", &k.dst_ip)] {
        if net.1 != [0; 16] {
            let _ = write!(text, " {name} {}", network(v6, net));
        }
    }
    (f.fields.tos, f.mask.tos) = k.tos;
    (f.fields.ttl, f.mask.ttl) = k.ttl;
    (f.fields.src_port, f.mask.src_port) = k.src_port;
    (f.fields.dst_port, f.mask.dst_port) = k.dst_port;
    (f.src_ports, f.dst_ports) = (k.src_range, k.dst_range);
    for (name, (v, m)) in [("src_port", k.src_port), ("dst_port", k.dst_port)] {
        if m != 0 {
            let _ = write!(text, " {name} {v}");
        }
    }
    for (name, range) in [("src_port", k.src_range), ("dst_port", k.dst_range)] {
        if let Some((from, to)) = range {
            let _ = write!(text, " {name} {from}-{to}");
        }
    }
    match u8::try_from(k.tcp_flags.1) {
        Ok(mask) => {
            f.fields.tcp_flags = k.tcp_flags.0 as u8;
            f.mask.tcp_flags = mask;
        }
        Err(_) => refuse(f, "it looks at fields that the chip does not"),
    }
    match (k.flags.0, k.flags.1) {
        (_, 0) => {}
        (v, m) if m & !3 == 0 => (f.fields.fragment, f.mask.fragment) = (v as u8, m as u8),
        _ => refuse(f, "it looks at fields that the chip does not"),
    }
}

fn decide(f: &mut Filter, actions: &[FilterAction], text: &mut String) {
    for a in actions {
        match a {
            FilterAction::Decide(act::PIPE) => {}
            FilterAction::Decide(code) => return verdict(f, *code, text),
            FilterAction::Mirred {
                what: REDIRECT,
                ifindex,
                then: act::STOLEN,
            } => {
                f.verdict = FilterVerdict::Redirect(*ifindex);
                text.push_str(" redirect");
                return;
            }
            FilterAction::Mirred {
                what: MIRROR,
                ifindex,
                then,
            } => {
                text.push_str(" mirror");
                if f.mirror.is_some() || f.police.is_some() {
                    return refuse(
                        f,
                        "several copies, or one behind a policer, are not offloaded",
                    );
                }
                f.mirror = Some(*ifindex);
                if *then != act::PIPE {
                    return verdict(f, *then, text);
                }
            }
            FilterAction::Mirred { .. } => {
                text.push_str(" mirred");
                return refuse(f, "mirred to the ingress of a device is not offloaded");
            }
            FilterAction::Police(p) => {
                text.push_str(" police");
                if !police(f, p) {
                    return refuse(f, "this policer is not offloaded");
                }
                if p.conform != act::PIPE {
                    return verdict(f, p.conform, text);
                }
            }
            FilterAction::Other(kind) => {
                let _ = write!(text, " {kind}");
                return refuse(f, &format!("action {kind} is not offloaded"));
            }
        }
    }
    f.verdict = FilterVerdict::Permit;
}

/// A policer that drops what exceeds it, by one rate.
fn police(f: &mut Filter, p: &nl::Police) -> bool {
    let by_packets = p.packets.rate != 0;
    let rate = if by_packets { p.packets } else { p.rate };
    // the kernel's bucket of packets begins empty, the chip's full
    let plain = !p.other && p.exceed == act::SHOT && p.index != 0 && !by_packets;
    let one = rate.rate != 0 && rate.burst != 0 && (p.rate.rate == 0 || !by_packets);
    if !(plain && one && f.police.is_none() && f.mirror.is_none()) {
        return false;
    }
    f.police = Some(FilterPolice {
        index: p.index,
        packets: by_packets,
        rate: rate.rate,
        burst: rate.burst,
        longest: p.mtu,
    });
    true
}

fn verdict(f: &mut Filter, code: i32, text: &mut String) {
    let (name, verdict) = match code {
        // what is left when all actions are done: no classifier behind it is asked
        act::OK | act::PIPE => ("pass", FilterVerdict::Permit),
        act::SHOT | act::STOLEN => ("drop", FilterVerdict::Drop),
        act::CONTINUE if f.mirror.is_none() && f.police.is_none() => {
            ("continue", FilterVerdict::Next)
        }
        act::TRAP => {
            text.push_str(" trap");
            return refuse(f, "action trap");
        }
        _ => {
            let _ = write!(text, " action {code:#x}");
            return refuse(f, "this action is not offloaded");
        }
    };
    let _ = write!(text, " {name}");
    f.verdict = verdict;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flower(protocol: u16, key: FlowerKey, actions: Vec<FilterAction>) -> nl::Filter {
        nl::Filter {
            ifindex: 3,
            hook: Hook::Ingress,
            chain: 0,
            priority: 10,
            protocol,
            handle: 1,
            name: "flower".into(),
            whole: true,
            kind: FilterKind::Flower {
                key: Box::new(key),
                actions,
                skip_hw: false,
            },
        }
    }

    #[test]
    fn untagged_ip() {
        let k = FlowerKey {
            ethertype: Some(ETH_P_IP),
            protocol: Some(6),
            dst_port: (80, u16::MAX),
            ..FlowerKey::default()
        };
        let f = convert(&flower(ETH_P_IP, k, vec![FilterAction::Decide(act::SHOT)])).unwrap();
        assert_eq!((f.verdict, f.kernel), (FilterVerdict::Drop, None));
        assert_eq!((f.fields.tag, f.mask.tag), (0, 0xff));
        assert_eq!((f.fields.ethertype, f.fields.protocol), (ETH_P_IP, 6));
        assert_eq!(
            f.text,
            "pref 10 flower protocol 0x0800 ip_proto 6 dst_port 80 drop"
        );
    }

    #[test]
    fn behind_a_tag() {
        let k = FlowerKey {
            ethertype: Some(ETH_P_IPV6),
            vlan_id: Some(10),
            vlan_prio: Some(5),
            vlan_ethertype: Some(ETH_P_IPV6),
            ..FlowerKey::default()
        };
        let f = convert(&flower(ETH_P_8021Q, k, vec![])).unwrap();
        assert_eq!((f.verdict, &f.kernel), (FilterVerdict::Permit, &None));
        assert_eq!(
            (f.fields.tag, f.fields.tci, f.mask.tci),
            (1, 0xa00a, 0xefff)
        );
        assert_eq!(f.fields.ethertype, ETH_P_IPV6);
        // an ethertype that is the tag's own says nothing of what is behind it
        let k = FlowerKey {
            ethertype: Some(ETH_P_8021Q),
            vlan_id: Some(10),
            ..FlowerKey::default()
        };
        let f = convert(&flower(ETH_P_8021Q, k, vec![])).unwrap();
        assert_eq!((f.mask.ethertype, f.kernel), (0, None));
    }

    #[test]
    fn what_the_chip_can_t_is_the_kernel_s_with_no_more_fields() {
        let arp = FlowerKey {
            ethertype: Some(0x0806),
            other: true,
            ..FlowerKey::default()
        };
        let f = convert(&flower(0x0806, arp, vec![FilterAction::Decide(act::SHOT)])).unwrap();
        assert!(f.kernel.is_some());
        assert_eq!(f.fields.ethertype, 0x0806);
        for a in [
            FilterAction::Other("vlan".into()),
            FilterAction::Decide(0x2000_0001),
            FilterAction::Decide(act::TRAP),
            FilterAction::Mirred {
                what: 3,
                ifindex: 4,
                then: act::STOLEN,
            },
        ] {
            let f = convert(&flower(ETH_P_ALL, FlowerKey::default(), vec![a])).unwrap();
            assert!(f.kernel.is_some(), "{f:?}");
        }
        // PPPoE is looked through
        let k = FlowerKey {
            ethertype: Some(0x8864),
            ..FlowerKey::default()
        };
        let f = convert(&flower(0x8864, k, vec![])).unwrap();
        assert!(f.kernel.is_some() && f.mask.ethertype == 0);
        let mut other = flower(ETH_P_ALL, FlowerKey::default(), vec![]);
        other.kind = FilterKind::Other;
        assert!(convert(&other).unwrap().kernel.is_some());
        other.whole = false;
        assert_eq!(convert(&other), None);
    }

    #[test]
    fn copies_and_policers() {
        let mirror = FilterAction::Mirred {
            what: MIRROR,
            ifindex: 9,
            then: act::PIPE,
        };
        let two = vec![mirror.clone(), FilterAction::Decide(act::SHOT)];
        let f = convert(&flower(ETH_P_ALL, FlowerKey::default(), two)).unwrap();
        assert_eq!((f.mirror, f.verdict), (Some(9), FilterVerdict::Drop));
        let p = nl::Police {
            index: 7,
            exceed: act::SHOT,
            conform: act::OK,
            mtu: 2047,
            rate: nl::Ranged {
                rate: 1000,
                burst: 1500,
            },
            packets: nl::Ranged::default(),
            other: false,
        };
        let f = convert(&flower(
            ETH_P_ALL,
            FlowerKey::default(),
            vec![FilterAction::Police(p)],
        ))
        .unwrap();
        assert_eq!(f.kernel, None);
        assert_eq!(f.police.unwrap().rate, 1000);
        let both = vec![mirror, FilterAction::Police(p)];
        let f = convert(&flower(ETH_P_ALL, FlowerKey::default(), both)).unwrap();
        assert!(f.kernel.is_some());
        let reclassify = nl::Police { exceed: 1, ..p };
        let f = convert(&flower(
            ETH_P_ALL,
            FlowerKey::default(),
            vec![FilterAction::Police(reclassify)],
        ))
        .unwrap();
        assert!(f.kernel.is_some());
    }
}
