//! Traffic control's filters: RTM_*TFILTER and RTM_*QDISC (`linux/rtnetlink.h`, `linux/pkt_cls.h`), as far as `flower`,
//! `matchall` and their actions; of other kinds only that they are there.

use super::consts::{NLM_F_DUMP, RTM_GETQDISC, RTM_GETTFILTER};
use super::types::{
    Filter, FilterAction, FilterKind, FlowerKey, Hook, Object, Police, Qdisc, Ranged,
};
use super::wire::{Attrs, Writer, mac, text, u8_at, u16_at, u32_at};

/// Bytes of `struct tcmsg`.
const TCMSG: usize = 20;
/// `TCM_IFINDEX_MAGIC_BLOCK`: the filter is a shared block's.
const MAGIC_BLOCK: u32 = 0xffff_ffff;
/// The handle of `clsact` and `ingress`, and the parents of the two hooks.
const CLSACT: u32 = 0xffff_0000;
const INGRESS: u32 = 0xffff_fff2;
const EGRESS: u32 = 0xffff_fff3;

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_CHAIN: u16 = 11;
const TCA_INGRESS_BLOCK: u16 = 13;
const TCA_EGRESS_BLOCK: u16 = 14;

const ACT_KIND: u16 = 1;
const ACT_OPTIONS: u16 = 2;

const SKIP_HW: u32 = 1 << 0;

/// Decodes a filter. `None`: the head of a list of filters, or a filter of a shared block.
pub(super) fn decode(payload: &[u8]) -> Option<Object> {
    if payload.len() < TCMSG {
        return None;
    }
    let (ifindex, handle, parent, info) = (
        u32_at(payload, 4),
        u32_at(payload, 8),
        u32_at(payload, 12),
        u32_at(payload, 16),
    );
    if ifindex == 0 || ifindex == MAGIC_BLOCK {
        return None;
    }
    // the parent of a filter of `ingress` is the qdisc itself
    let hook = match parent {
        CLSACT | INGRESS => Hook::Ingress,
        EGRESS => Hook::Egress,
        _ => return None,
    };
    let attrs = Attrs::after(payload, TCMSG);
    let options = attrs.get(TCA_OPTIONS);
    let name = attrs.get(TCA_KIND).map(text).unwrap_or_default();
    let kind = match (name.as_str(), options) {
        ("flower", Some(o)) => flower(o),
        ("matchall", Some(o)) => matchall(o),
        _ => FilterKind::Other,
    };
    Some(Object::Filter(Filter {
        ifindex,
        hook,
        chain: attrs.get(TCA_CHAIN).map_or(0, |v| u32_at(v, 0)),
        priority: (info >> 16) as u16,
        protocol: (info as u16).to_be(),
        handle,
        name,
        whole: options.is_some(),
        kind,
    }))
}

/// Decodes a qdisc: only those with filters for what comes in or leaves by a device.
pub(super) fn decode_qdisc(payload: &[u8]) -> Option<Object> {
    if payload.len() < TCMSG || u32_at(payload, 8) != CLSACT {
        return None;
    }
    let attrs = Attrs::after(payload, TCMSG);
    Some(Object::Qdisc(Qdisc {
        ifindex: u32_at(payload, 4),
        shared: attrs.get(TCA_INGRESS_BLOCK).is_some() || attrs.get(TCA_EGRESS_BLOCK).is_some(),
    }))
}

fn be16(v: &[u8]) -> u16 {
    v.first_chunk().map_or(0, |b| u16::from_be_bytes(*b))
}

fn addr16(v: &[u8]) -> [u8; 16] {
    let mut out = [0; 16];
    for (to, from) in out.iter_mut().zip(v) {
        *to = *from;
    }
    out
}

/// Keys of a flower filter: a value and the bits of it that count.
fn flower(options: &[u8]) -> FilterKind {
    let mut k = FlowerKey::default();
    let mut actions = Vec::new();
    let mut flags = 0;
    for (kind, v) in Attrs::new(options) {
        match kind {
            3 => actions = list(v),
            4 => k.dst_mac.0 = mac(v).unwrap_or_default(),
            5 => k.dst_mac.1 = mac(v).unwrap_or_default(),
            6 => k.src_mac.0 = mac(v).unwrap_or_default(),
            7 => k.src_mac.1 = mac(v).unwrap_or_default(),
            8 => k.ethertype = Some(be16(v)),
            9 => k.protocol = Some(u8_at(v, 0)),
            10 | 14 => k.src_ip.0 = addr16(v),
            11 | 15 => k.src_ip.1 = addr16(v),
            12 | 16 => k.dst_ip.0 = addr16(v),
            13 | 17 => k.dst_ip.1 = addr16(v),
            18 | 20 | 41 => k.src_port.0 = be16(v),
            35 | 37 | 39 => k.src_port.1 = be16(v),
            19 | 21 | 42 => k.dst_port.0 = be16(v),
            36 | 38 | 40 => k.dst_port.1 = be16(v),
            22 => flags = u32_at(v, 0),
            23 => k.vlan_id = Some(u16_at(v, 0)),
            24 => k.vlan_prio = Some(u8_at(v, 0)),
            25 => k.vlan_ethertype = Some(be16(v)),
            47 => k.flags.0 = u32_at(v, 0).to_be(),
            48 => k.flags.1 = u32_at(v, 0).to_be(),
            // ICMP: code and type, of both families
            49 | 53 => k.dst_port.0 = u16::from(u8_at(v, 0)),
            50 | 54 => k.dst_port.1 = u16::from(u8_at(v, 0)),
            51 | 55 => k.src_port.0 = u16::from(u8_at(v, 0)),
            52 | 56 => k.src_port.1 = u16::from(u8_at(v, 0)),
            71 => k.tcp_flags.0 = be16(v),
            72 => k.tcp_flags.1 = be16(v),
            73 => k.tos.0 = u8_at(v, 0),
            74 => k.tos.1 = u8_at(v, 0),
            75 => k.ttl.0 = u8_at(v, 0),
            76 => k.ttl.1 = u8_at(v, 0),
            87 => k.src_range.get_or_insert((0, 0)).0 = be16(v),
            88 => k.src_range.get_or_insert((0, 0)).1 = be16(v),
            89 => k.dst_range.get_or_insert((0, 0)).0 = be16(v),
            90 => k.dst_range.get_or_insert((0, 0)).1 = be16(v),
            // a class id changes nothing here; how many devices have it in hardware is no key
            1 | 86 => {}
            _ => k.other = true,
        }
    }
    FilterKind::Flower {
        key: Box::new(k),
        actions,
        skip_hw: flags & SKIP_HW != 0,
    }
}

fn matchall(options: &[u8]) -> FilterKind {
    let attrs = Attrs::new(options);
    FilterKind::Matchall {
        actions: attrs.get(2).map(list).unwrap_or_default(),
        skip_hw: attrs.get(3).is_some_and(|v| u32_at(v, 0) & SKIP_HW != 0),
    }
}

/// Actions in the order of their numbers.
fn list(actions: &[u8]) -> Vec<FilterAction> {
    let mut all: Vec<(u16, FilterAction)> =
        Attrs::new(actions).map(|(n, v)| (n, action(v))).collect();
    all.sort_by_key(|(n, _)| *n);
    all.into_iter().map(|(_, a)| a).collect()
}

fn action(v: &[u8]) -> FilterAction {
    let attrs = Attrs::new(v);
    let kind = attrs.get(ACT_KIND).map(text).unwrap_or_default();
    let options = Attrs::new(attrs.get(ACT_OPTIONS).unwrap_or(&[]));
    match kind.as_str() {
        // struct tc_gact: index, capab, action …; an attribute 3 makes it a matter of chance
        "gact" if options.get(3).is_none() => match options.get(2) {
            Some(p) => FilterAction::Decide(u32_at(p, 8) as i32),
            None => FilterAction::Other(kind),
        },
        // struct tc_mirred: index, capab, action, refcnt, bindcnt, eaction, ifindex
        "mirred" => match options.get(2).filter(|p| p.len() >= 28) {
            Some(p) => FilterAction::Mirred {
                what: u32_at(p, 20),
                ifindex: u32_at(p, 24),
                then: u32_at(p, 8) as i32,
            },
            None => FilterAction::Other(kind),
        },
        "police" => police(&options).map_or(FilterAction::Other(kind), FilterAction::Police),
        _ => FilterAction::Other(kind),
    }
}

/// `struct tc_police`, and what does not fit there.
fn police(options: &Attrs<'_>) -> Option<Police> {
    /// Nanoseconds of a tick (`PSCHED_SHIFT`).
    const TICK_NS: u64 = 64;
    let u64_of = |kind| {
        options
            .get(kind)
            .map(|v| v.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b)))
    };
    let p = options.get(1).filter(|p| p.len() >= 56)?;
    let (linklayer, overhead, mpu) = (u8_at(p, 21) & 0xf, u16_at(p, 22), u16_at(p, 26));
    let rate = u64_of(8).unwrap_or_else(|| u64::from(u32_at(p, 28)));
    let packets = u64_of(10).unwrap_or(0);
    let tokens = |rate: u64, ticks: u64| {
        let ns = u128::from(ticks) * u128::from(TICK_NS);
        // the kernel has rounded down to a tick
        u64::try_from((ns * u128::from(rate) + 500_000_000) / 1_000_000_000).unwrap_or(u64::MAX)
    };
    Some(Police {
        index: u32_at(p, 0),
        exceed: u32_at(p, 4) as i32,
        conform: options.get(5).map_or(0, |v| u32_at(v, 0) as i32),
        mtu: u32_at(p, 16),
        rate: Ranged {
            rate,
            burst: tokens(rate, u64::from(u32_at(p, 12))),
        },
        packets: Ranged {
            rate: packets,
            burst: tokens(packets, u64_of(11).unwrap_or(0)),
        },
        // a peak rate, an average rate, another link layer, bytes added to each packet
        other: u32_at(p, 40) != 0
            || options.get(9).is_some()
            || options.get(4).is_some()
            || linklayer > 1
            || overhead != 0
            || mpu != 0,
    })
}

fn tcmsg(ifindex: u32, parent: u32) -> [u8; TCMSG] {
    let mut b = [0; TCMSG];
    for (at, word) in [(4, ifindex), (12, parent)] {
        if let Some(to) = b.get_mut(at..at + 4) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
    }
    b
}

/// The request that dumps the filters of one hook.
pub(super) fn dump(w: &mut Writer, seq: u32, ifindex: u32, hook: Hook) {
    let parent = match hook {
        Hook::Ingress => INGRESS,
        Hook::Egress => EGRESS,
    };
    w.begin(RTM_GETTFILTER, NLM_F_DUMP, seq, &tcmsg(ifindex, parent));
}

/// The request that dumps all devices' qdiscs.
pub(super) fn dump_qdiscs(w: &mut Writer, seq: u32) {
    w.begin(RTM_GETQDISC, NLM_F_DUMP, seq, &tcmsg(0, 0));
}

#[cfg(test)]
mod tests {
    use super::super::wire::Msgs;
    use super::*;

    fn filter(parent: u32, kind: &[u8], options: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut w = Writer::default();
        let mut fixed = tcmsg(7, parent);
        fixed[8..12].copy_from_slice(&1u32.to_ne_bytes());
        fixed[16..].copy_from_slice(&(10u32 << 16 | u32::from(0x0800u16.to_be())).to_ne_bytes());
        w.begin(44, 0, 1, &fixed);
        w.attr(TCA_KIND, kind);
        let nest = w.nest(TCA_OPTIONS);
        options(&mut w);
        w.end_nest(nest);
        w.bytes().to_vec()
    }

    fn read(bytes: &[u8]) -> Option<Filter> {
        match Msgs::new(bytes).next().and_then(|m| decode(m.payload)) {
            Some(Object::Filter(f)) => Some(f),
            _ => None,
        }
    }

    #[test]
    fn keys_and_actions() {
        let m = filter(INGRESS, b"flower\0", |w| {
            w.attr(8, &0x0800u16.to_be_bytes());
            w.attr(9, &[6]);
            w.attr(12, &[10, 0, 0, 0]);
            w.attr(13, &[255, 0, 0, 0]);
            w.attr(19, &80u16.to_be_bytes());
            w.attr(36, &u16::MAX.to_be_bytes());
            let acts = w.nest(3);
            for (n, code) in [(2u16, 0u32), (1, 3)] {
                let one = w.nest(n);
                w.attr(ACT_KIND, b"gact\0");
                let o = w.nest(ACT_OPTIONS);
                let mut parms = [0u8; 20];
                parms[8..12].copy_from_slice(&code.to_ne_bytes());
                w.attr(2, &parms);
                w.end_nest(o);
                w.end_nest(one);
            }
            w.end_nest(acts);
        });
        let f = read(&m).unwrap();
        assert_eq!(
            (f.ifindex, f.priority, f.protocol, f.handle),
            (7, 10, 0x0800, 1)
        );
        assert_eq!(f.hook, Hook::Ingress);
        let FilterKind::Flower {
            key,
            actions,
            skip_hw,
        } = f.kind
        else {
            panic!("no flower");
        };
        assert!(!skip_hw && !key.other);
        assert_eq!(key.protocol, Some(6));
        assert_eq!(&key.dst_ip.0[..4], &[10, 0, 0, 0]);
        assert_eq!(&key.dst_ip.1[..4], &[255, 0, 0, 0]);
        assert_eq!(key.dst_port, (80, u16::MAX));
        // by their numbers, not as they stand
        assert_eq!(actions, [FilterAction::Decide(3), FilterAction::Decide(0)]);
    }

    #[test]
    fn a_policer_in_bytes_and_packets() {
        let m = filter(EGRESS, b"matchall\0", |w| {
            let acts = w.nest(2);
            let one = w.nest(1);
            w.attr(ACT_KIND, b"police\0");
            let o = w.nest(ACT_OPTIONS);
            let mut p = [0u8; 56];
            p[0..4].copy_from_slice(&5u32.to_ne_bytes());
            p[4..8].copy_from_slice(&2u32.to_ne_bytes());
            // 10 ms at 1,000,000 bytes/s
            p[12..16].copy_from_slice(&(10_000_000u32 / 64).to_ne_bytes());
            p[28..32].copy_from_slice(&1_000_000u32.to_ne_bytes());
            w.attr(1, &p);
            w.end_nest(o);
            w.end_nest(one);
            w.end_nest(acts);
        });
        let f = read(&m).unwrap();
        assert_eq!(f.hook, Hook::Egress);
        let FilterKind::Matchall { actions, .. } = f.kind else {
            panic!("no matchall");
        };
        let [FilterAction::Police(p)] = &actions[..] else {
            panic!("no policer: {actions:?}");
        };
        assert_eq!((p.index, p.exceed, p.conform, p.other), (5, 2, 0, false));
        assert_eq!(
            p.rate,
            Ranged {
                rate: 1_000_000,
                burst: 10_000
            }
        );
    }

    #[test]
    fn what_is_not_known_is_said() {
        let arp = filter(INGRESS, b"flower\0", |w| w.attr(61, &[1]));
        let FilterKind::Flower { key, .. } = read(&arp).unwrap().kind else {
            panic!("no flower");
        };
        assert!(key.other);
        let u32s = filter(CLSACT, b"u32\0", |_| {});
        assert_eq!(read(&u32s).unwrap().kind, FilterKind::Other);
        // of another qdisc than the two
        assert_eq!(read(&filter(0x10000, b"u32\0", |_| {})), None);
        for n in 0..TCMSG {
            assert_eq!(decode(&vec![0xff; n]), None);
        }
    }
}
