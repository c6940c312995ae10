//! Changes of traffic control's filters: what [`super::filter`] reads, written.

use super::consts::{NLM_F_CREATE, NLM_F_REPLACE, RTM_DELTFILTER, RTM_NEWTFILTER};
use super::tc::{Direction, Tc, absent_is_fine, tcmsg};
use super::types::{Filter, FilterAction, FilterKind, FlowerKey, Hook, Police};
use super::wire::Writer;

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const FLOWER_ACT: u16 = 3;
const FLOWER_FLAGS: u16 = 22;
const MATCHALL_ACT: u16 = 2;
const MATCHALL_FLAGS: u16 = 3;
const ACT_KIND: u16 = 1;
const ACT_OPTIONS: u16 = 2;
const SKIP_HW: u32 = 1;
const ETH_P_IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// Nanoseconds of a tick (`PSCHED_SHIFT`).
const TICK_NS: u128 = 64;
/// Bytes of the table of rates that the kernel wants to have and looks at no more.
const RATES: usize = 1024;

fn head(w: &mut Writer, kind: u16, flags: u16, seq: u32, f: &Filter) {
    let direction = match f.hook {
        Hook::Ingress => Direction::Ingress,
        Hook::Egress => Direction::Egress,
    };
    let info = u32::from(f.priority) << 16 | u32::from(f.protocol.to_be());
    let fixed = tcmsg(f.ifindex, f.handle, direction.parent(), info);
    w.begin(kind, flags, seq, &fixed);
    w.attr(TCA_KIND, &[f.name.as_bytes(), &[0]].concat());
}

/// All of a filter, of chain 0.
fn put(w: &mut Writer, flags: u16, seq: u32, f: &Filter) {
    head(
        w,
        RTM_NEWTFILTER,
        flags | NLM_F_CREATE | NLM_F_REPLACE,
        seq,
        f,
    );
    let nest = w.nest(TCA_OPTIONS);
    match &f.kind {
        FilterKind::Flower {
            key,
            actions,
            skip_hw,
        } => {
            keys(w, key);
            list(w, FLOWER_ACT, actions);
            if *skip_hw {
                w.attr_u32(FLOWER_FLAGS, SKIP_HW);
            }
        }
        FilterKind::Matchall { actions, skip_hw } => {
            list(w, MATCHALL_ACT, actions);
            if *skip_hw {
                w.attr_u32(MATCHALL_FLAGS, SKIP_HW);
            }
        }
        FilterKind::Other => {}
    }
    w.end_nest(nest);
}

/// A value and its mask, where anything of it counts.
fn masked<const N: usize>(w: &mut Writer, kinds: [u16; 2], (value, mask): ([u8; N], [u8; N])) {
    if mask != [0; N] {
        w.attr(kinds[0], &value);
        w.attr(kinds[1], &mask);
    }
}

fn keys(w: &mut Writer, k: &FlowerKey) {
    masked(w, [4, 5], k.dst_mac);
    masked(w, [6, 7], k.src_mac);
    if let Some(t) = k.ethertype {
        w.attr(8, &t.to_be_bytes());
    }
    if let Some(vid) = k.vlan_id {
        w.attr(23, &vid.to_ne_bytes());
    }
    if let Some(prio) = k.vlan_prio {
        w.attr(24, &[prio]);
    }
    if let Some(t) = k.vlan_ethertype {
        w.attr(25, &t.to_be_bytes());
    }
    if let Some(p) = k.protocol {
        w.attr(9, &[p]);
    }
    let v6 = k.vlan_ethertype.or(k.ethertype) == Some(ETH_P_IPV6);
    addresses(w, v6, k);
    let pair = |(value, mask): (u16, u16)| (value.to_be_bytes(), mask.to_be_bytes());
    let byte = |(value, mask): (u16, u16)| ([value as u8], [mask as u8]);
    let (from, to) = (k.src_port, k.dst_port);
    match k.protocol {
        Some(TCP) => {
            masked(w, [18, 35], pair(from));
            masked(w, [19, 36], pair(to));
        }
        Some(UDP) => {
            masked(w, [20, 37], pair(from));
            masked(w, [21, 38], pair(to));
        }
        Some(SCTP) => {
            masked(w, [41, 39], pair(from));
            masked(w, [42, 40], pair(to));
        }
        Some(ICMP) => {
            masked(w, [51, 52], byte(from));
            masked(w, [49, 50], byte(to));
        }
        Some(ICMPV6) => {
            masked(w, [55, 56], byte(from));
            masked(w, [53, 54], byte(to));
        }
        _ => {}
    }
    for (kinds, range) in [([87, 88], k.src_range), ([89, 90], k.dst_range)] {
        if let Some((from, to)) = range {
            w.attr(kinds[0], &from.to_be_bytes());
            w.attr(kinds[1], &to.to_be_bytes());
        }
    }
    if k.flags.1 != 0 {
        w.attr(47, &k.flags.0.to_be_bytes());
        w.attr(48, &k.flags.1.to_be_bytes());
    }
    masked(w, [71, 72], pair(k.tcp_flags));
    masked(w, [73, 74], ([k.tos.0], [k.tos.1]));
    masked(w, [75, 76], ([k.ttl.0], [k.ttl.1]));
}

fn addresses(w: &mut Writer, v6: bool, k: &FlowerKey) {
    for (kinds4, kinds6, (value, mask)) in [
        ([10, 11], [14, 15], k.src_ip),
        ([12, 13], [16, 17], k.dst_ip),
    ] {
        if v6 {
            masked(w, kinds6, (value, mask));
        } else if let (Some(value), Some(mask)) = (value.first_chunk(), mask.first_chunk::<4>()) {
            masked(w, kinds4, (*value, *mask));
        }
    }
}

fn list(w: &mut Writer, kind: u16, actions: &[FilterAction]) {
    let nest = w.nest(kind);
    for (n, action) in (1..).zip(actions) {
        let one = w.nest(n);
        match action {
            FilterAction::Decide(code) => {
                w.attr(ACT_KIND, b"gact\0");
                let options = w.nest(ACT_OPTIONS);
                // struct tc_gact: index, capab, action, refcnt, bindcnt
                w.attr(2, &words(&[0, 0, code.cast_unsigned(), 0, 0]));
                w.end_nest(options);
            }
            FilterAction::Mirred {
                what,
                ifindex,
                then,
            } => {
                w.attr(ACT_KIND, b"mirred\0");
                let options = w.nest(ACT_OPTIONS);
                // struct tc_mirred: index, capab, action, refcnt, bindcnt, eaction, ifindex
                let parms = [0, 0, then.cast_unsigned(), 0, 0, *what, *ifindex];
                w.attr(2, &words(&parms));
                w.end_nest(options);
            }
            FilterAction::Police(p) => {
                w.attr(ACT_KIND, b"police\0");
                let options = w.nest(ACT_OPTIONS);
                police(w, p);
                w.end_nest(options);
            }
            FilterAction::Other(kind) => w.attr(ACT_KIND, &[kind.as_bytes(), &[0]].concat()),
        }
        w.end_nest(one);
    }
    w.end_nest(nest);
}

fn words(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|w| w.to_ne_bytes()).collect()
}

/// `struct tc_police`, and what does not fit there: by bytes alone.
fn police(w: &mut Writer, p: &Police) {
    let ticks = (u128::from(p.rate.burst) * 1_000_000_000)
        .checked_div(u128::from(p.rate.rate) * TICK_NS)
        .unwrap_or(0);
    let ticks = u32::try_from(ticks).unwrap_or(u32::MAX);
    let rate = u32::try_from(p.rate.rate).unwrap_or(u32::MAX);
    // index, action, limit, burst, mtu
    let mut parms = words(&[p.index, p.exceed.cast_unsigned(), 0, ticks, p.mtu]);
    // struct tc_ratespec: cell_log, linklayer (Ethernet), overhead, cell_align, mpu, rate
    parms.extend_from_slice(&[3, 1, 0, 0, 0, 0, 0, 0]);
    parms.extend_from_slice(&rate.to_ne_bytes());
    // struct tc_ratespec of a peak, of which there is none; refcnt, bindcnt, capab
    parms.extend_from_slice(&[0; 12 + 12]);
    w.attr(1, &parms);
    w.attr(2, &[0; RATES]);
    if rate == u32::MAX {
        w.attr(8, &p.rate.rate.to_ne_bytes());
    }
    w.attr_u32(5, p.conform.cast_unsigned());
}

impl Tc {
    /// Puts a filter at its place, in the place of the one that is there. The `clsact` qdisc must be there.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn put_filter(&mut self, f: &Filter) -> super::Result<()> {
        let ask = &mut self.requests;
        ask.ask("tc: put a filter", |w, flags, s| put(w, flags, s, f))
    }

    /// Removes the filter of that place; absent is fine.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn remove_filter(&mut self, f: &Filter) -> super::Result<()> {
        let ask = &mut self.requests;
        absent_is_fine(ask.ask("tc: remove a filter", |w, flags, s| {
            head(w, RTM_DELTFILTER, flags, s, f);
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::wire::Msgs;
    use crate::netlink::{Object, Ranged};

    fn read(f: &Filter) -> Filter {
        let mut w = Writer::new();
        put(&mut w, 0, 1, f);
        let m = Msgs::new(w.bytes()).next().unwrap();
        match super::super::filter::decode(m.payload) {
            Some(Object::Filter(f)) => f,
            other => panic!("{other:?}"),
        }
    }

    fn flower(key: FlowerKey, actions: Vec<FilterAction>) -> Filter {
        Filter {
            ifindex: 7,
            hook: Hook::Ingress,
            chain: 0,
            priority: 10,
            protocol: 0x0800,
            handle: 3,
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
    fn what_is_written_is_what_is_read() {
        let four = |b: [u8; 4]| {
            let mut all = [0; 16];
            all[..4].copy_from_slice(&b);
            all
        };
        let tcp = FlowerKey {
            ethertype: Some(0x0800),
            dst_mac: ([2, 0, 0, 0, 0, 1], [255; 6]),
            protocol: Some(TCP),
            src_ip: (four([10, 0, 0, 0]), four([255, 0, 0, 0])),
            dst_ip: (four([10, 1, 2, 3]), four([255; 4])),
            dst_port: (80, u16::MAX),
            src_range: Some((1000, 2000)),
            tcp_flags: (0x10, 0x10),
            flags: (0, 1),
            tos: (0xb8, 0xfc),
            ..FlowerKey::default()
        };
        let f = flower(tcp, vec![FilterAction::Decide(2)]);
        assert_eq!(read(&f), f);
        let ping6 = FlowerKey {
            ethertype: Some(0x8100),
            vlan_id: Some(10),
            vlan_ethertype: Some(ETH_P_IPV6),
            protocol: Some(ICMPV6),
            src_ip: ([0x20; 16], [255; 16]),
            src_port: (128, 255),
            dst_port: (0, 255),
            ..FlowerKey::default()
        };
        let mut f = flower(ping6, vec![FilterAction::Decide(0)]);
        f.protocol = 0x8100;
        f.hook = Hook::Egress;
        assert_eq!(read(&f), f);
        let group = FlowerKey {
            dst_mac: ([1, 0x80, 0xc2, 0, 0, 0], [255; 6]),
            ..FlowerKey::default()
        };
        let f = flower(group, vec![FilterAction::Decide(8)]);
        assert_eq!(read(&f), f);
    }

    #[test]
    fn copies_and_policers() {
        let copy = FilterAction::Mirred {
            what: 2,
            ifindex: 9,
            then: 3,
        };
        let limit = FilterAction::Police(Police {
            index: 5,
            exceed: 2,
            conform: 3,
            mtu: 10_000,
            rate: Ranged {
                rate: 1_000_000,
                burst: 100_000,
            },
            packets: Ranged::default(),
            other: false,
        });
        let mut f = flower(FlowerKey::default(), Vec::new());
        f.name = "matchall".into();
        f.kind = FilterKind::Matchall {
            actions: vec![copy, limit, FilterAction::Decide(0)],
            skip_hw: false,
        };
        assert_eq!(read(&f), f);
    }
}
