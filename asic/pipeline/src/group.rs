//! Next-hop groups, and the hashes by which flows choose among members.

use std::collections::HashMap;

use tandem_abi::raw;
use tandem_packet::{Ip4, Ip6};
use tandem_tables::ecmp::Ways;

/// Which fields choose the member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashPolicy {
    /// Addresses, and the IPv6 flow label.
    L3,
    /// Addresses, protocol and ports; a fragment falls back to addresses and protocol, so that all of them go together.
    L4,
}

impl HashPolicy {
    /// From `TND_HASH_*`.
    pub fn from_abi(h: u32) -> Option<HashPolicy> {
        if h == raw::TND_HASH_L3 {
            Some(HashPolicy::L3)
        } else if h == raw::TND_HASH_L4 {
            Some(HashPolicy::L4)
        } else {
            None
        }
    }

    /// To `TND_HASH_*`.
    pub fn to_abi(self) -> u32 {
        match self {
            HashPolicy::L3 => raw::TND_HASH_L3,
            HashPolicy::L4 => raw::TND_HASH_L4,
        }
    }
}

/// `struct tnd_nhg` and its members, without the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupConfig {
    /// Hash policy.
    pub hash: HashPolicy,
    /// Next hop ids and weights 1..=256, at most `TND_NHG_MAX_MEMBERS`.
    pub members: Vec<(u32, u32)>,
}

/// A group in its slot.
#[derive(Debug, Clone)]
pub struct Group {
    id: u32,
    config: GroupConfig,
    /// To next hops' slots.
    ways: Ways,
}

impl Group {
    /// None: no members, too many, or a weight out of range. `slots` go with `config.members`.
    pub(crate) fn new(id: u32, config: &GroupConfig, slots: &[u32]) -> Option<Group> {
        let n = config.members.len();
        if n == 0 || n > raw::TND_NHG_MAX_MEMBERS || n != slots.len() {
            return None;
        }
        if config.members.iter().any(|(_, w)| !(1..=256).contains(w)) {
            return None;
        }
        let weights = config.members.iter().map(|(_, w)| *w);
        let ways: Vec<(u32, u32)> = slots.iter().copied().zip(weights).collect();
        Some(Group {
            id,
            config: config.clone(),
            ways: Ways::new(&ways),
        })
    }

    /// The driver's key.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// As configured.
    pub fn config(&self) -> GroupConfig {
        self.config.clone()
    }

    /// Hash policy.
    #[inline]
    pub fn hash(&self) -> HashPolicy {
        self.config.hash
    }

    /// Members: next hop ids and weights.
    pub fn members(&self) -> &[(u32, u32)] {
        &self.config.members
    }

    /// A flow's member and its next hop slot.
    #[inline]
    pub fn select(&self, hash: u32) -> Option<(u32, u32)> {
        self.ways.select(hash)
    }

    /// Packets that the chip has sent to each member, since it is one.
    pub fn packets(&self) -> &[u64] {
        self.ways.packets()
    }

    #[inline]
    pub(crate) fn count(&mut self, member: u32, packets: u64) {
        self.ways.count(member, packets);
    }

    /// Members of `old` that stay keep their counts: the first of a next hop the first's, the second the second's.
    pub(crate) fn take_counts(&mut self, old: &Group) {
        let mut before: HashMap<u32, Vec<u64>> = HashMap::new();
        for ((nexthop, _), packets) in old.members().iter().zip(old.packets()).rev() {
            before.entry(*nexthop).or_default().push(*packets);
        }
        for ((nexthop, _), packets) in self.config.members.iter().zip(self.ways.packets_mut()) {
            *packets = before.get_mut(nexthop).and_then(Vec::pop).unwrap_or(0);
        }
    }
}

/// Mixes 64 bits so that each of them reaches all of the result (the finaliser of MurmurHash3, public domain).
#[inline]
pub(crate) fn mix(mut h: u64) -> u64 {
    h ^= h >> 33;
    h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^= h >> 33;
    h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ h >> 33
}

/// Where hashes begin. Switches of different addresses choose independently of each other, or one behind another would see
/// only flows that its own hash sends the same way (polarisation); and one switch chooses its members of aggregation groups
/// independently of its next hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowHash {
    seed: u64,
    /// Both directions of a flow have one hash.
    symmetric: bool,
}

impl FlowHash {
    /// Of the next-hop groups and of the aggregation groups of the switch with this base MAC address: the same at every start,
    /// so a flow keeps its path.
    pub fn pair(base: [u8; 6], symmetric: bool) -> (FlowHash, FlowHash) {
        let [a, b, c, d, e, f] = base;
        let base = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        // any two numbers
        let of = |other: u64| FlowHash {
            seed: mix(base ^ other),
            symmetric,
        };
        (of(0x7461_6e64_656d_3031), of(0x6c61_6700_0000_0001))
    }

    /// Two ends in the order in which they enter the hash.
    #[inline]
    fn ends<T: Ord>(self, src: T, dst: T) -> (T, T) {
        if self.symmetric && dst < src {
            (dst, src)
        } else {
            (src, dst)
        }
    }

    /// Hash of what is no IP: two stations and what else tells flows apart.
    #[inline]
    pub(crate) fn stations(self, src: u64, dst: u64, other: u64) -> u32 {
        let (one, two) = self.ends(src, dst);
        (mix(mix(one ^ mix(two ^ self.seed)) ^ other) >> 32) as u32
    }
}

/// Flow hash of an IPv4 packet.
#[inline]
pub fn hash4(ip: &Ip4, policy: HashPolicy, by: FlowHash) -> u32 {
    let (mut src, mut dst) = (u32::from_be_bytes(ip.src), u32::from_be_bytes(ip.dst));
    let (mut sport, mut dport) = match policy == HashPolicy::L4 && !ip.fragment {
        true => (ip.l4.src_port, ip.l4.dst_port),
        false => (0, 0),
    };
    if by.symmetric {
        ((src, sport), (dst, dport)) = by.ends((src, sport), (dst, dport));
    }
    let mut h = mix((u64::from(src) << 32 | u64::from(dst)) ^ by.seed);
    if policy == HashPolicy::L4 {
        let ports = u64::from(sport) << 16 | u64::from(dport);
        h = mix(h ^ (ports << 8 | u64::from(ip.l4.protocol)));
    }
    (h >> 32) as u32
}

/// Flow hash of an IPv6 packet. Fragments go by what all of a packet's have in common: no ports, and of the protocols the one
/// that the fixed header names, as options may follow the first one's fragment header.
#[inline]
pub fn hash6(ip: &Ip6, policy: HashPolicy, by: FlowHash) -> u32 {
    let half = |a: u128| ((a >> 64) as u64, a as u64);
    let (mut src, mut dst) = (u128::from_be_bytes(ip.src), u128::from_be_bytes(ip.dst));
    let (mut sport, mut dport) = match policy == HashPolicy::L4 && !ip.fragment {
        true => (ip.l4.src_port, ip.l4.dst_port),
        false => (0, 0),
    };
    if by.symmetric {
        ((src, sport), (dst, dport)) = by.ends((src, sport), (dst, dport));
    }
    let ((s1, s0), (d1, d0)) = (half(src), half(dst));
    let mut h = mix(s1 ^ by.seed);
    h = mix(h ^ s0);
    h = mix(h ^ d1);
    h = mix(h ^ d0);
    let last = match policy {
        // each direction has a label of its own
        HashPolicy::L3 if by.symmetric => 0,
        HashPolicy::L3 => u64::from(ip.flow_label) << 8,
        HashPolicy::L4 => u64::from(sport) << 24 | u64::from(dport) << 8,
    };
    let protocol = match ip.fragment {
        true => ip.next_header,
        false => ip.l4.protocol,
    };
    (mix(h ^ (last | u64::from(protocol))) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_packet::L4;

    fn by() -> FlowHash {
        FlowHash::pair([2, 0, 0, 0, 0, 1], false).0
    }

    fn group(weights: &[u32]) -> Group {
        let members = weights
            .iter()
            .enumerate()
            .map(|(i, w)| (i as u32, *w))
            .collect();
        let slots: Vec<u32> = (0..weights.len() as u32).collect();
        Group::new(
            1,
            &GroupConfig {
                hash: HashPolicy::L4,
                members,
            },
            &slots,
        )
        .unwrap()
    }

    fn ip4(src: u32, dst: u32, sport: u16, dport: u16) -> Ip4 {
        Ip4 {
            src: src.to_be_bytes(),
            dst: dst.to_be_bytes(),
            ttl: 64,
            header_len: 20,
            total_len: 40,
            fragment: false,
            l4: L4 {
                protocol: 6,
                src_port: sport,
                dst_port: dport,
                icmp_type: 0,
            },
        }
    }

    /// Shares of 20,000 flows lie within 5 % of the weights, for flows that differ in one field only.
    #[test]
    fn shares_follow_weights_within_5_percent() {
        const FLOWS: u32 = 20_000;
        let flows: [fn(u32) -> u32; 4] = [
            |i| {
                hash4(
                    &ip4(0x0a00_0001, 0x0b00_0000 + i, 0, 0),
                    HashPolicy::L3,
                    by(),
                )
            },
            |i| {
                hash4(
                    &ip4(0x0a00_0000 + i, 0x0b00_0001, 0, 0),
                    HashPolicy::L3,
                    by(),
                )
            },
            |i| hash4(&ip4(1, 2, 1024 + i as u16, 80), HashPolicy::L4, by()),
            |i| {
                let mut src = [0x20; 16];
                src[12..].copy_from_slice(&i.to_be_bytes());
                let ip = Ip6 {
                    src,
                    dst: [0x30; 16],
                    hop_limit: 64,
                    payload_len: 0,
                    flow_label: 0,
                    next_header: 17,
                    hop_by_hop: false,
                    fragment: false,
                    l4: L4::default(),
                };
                hash6(&ip, HashPolicy::L3, by())
            },
        ];
        for weights in [
            &[1, 1][..],
            &[1, 1, 1],
            &[1, 1, 1, 1],
            &[1, 3],
            &[2, 3, 5],
            &[1; 8],
        ] {
            let g = group(weights);
            let total: u32 = weights.iter().sum();
            for (f, flow) in flows.iter().enumerate() {
                let mut hits = vec![0u32; weights.len()];
                for i in 0..FLOWS {
                    hits[g.select(flow(i)).unwrap().0 as usize] += 1;
                }
                for (hit, w) in hits.iter().zip(weights) {
                    let want = f64::from(FLOWS) * f64::from(*w) / f64::from(total);
                    let off = (f64::from(*hit) - want).abs() / want;
                    assert!(off < 0.05, "flows {f} weights {weights:?}: {hits:?}");
                }
            }
        }
    }

    #[test]
    fn members_that_stay_keep_their_counts() {
        let with = |members: &[u32]| {
            let config = GroupConfig {
                hash: HashPolicy::L3,
                members: members.iter().map(|m| (*m, 1)).collect(),
            };
            Group::new(1, &config, members).unwrap()
        };
        let mut old = with(&[7, 8, 7]);
        for (member, packets) in [(0, 10), (1, 20), (2, 30), (3, 40)] {
            old.count(member, packets);
        }
        assert_eq!(old.packets(), [10, 20, 30]);
        let mut new = with(&[9, 7, 8, 7, 7]);
        new.take_counts(&old);
        assert_eq!(new.packets(), [0, 10, 20, 30, 0]);
    }

    fn ip6(src: u32, dst: u32, ports: (u16, u16), flow_label: u32) -> Ip6 {
        let address = |n: u32| {
            let mut a = [0x20; 16];
            a[12..].copy_from_slice(&n.to_be_bytes());
            a
        };
        Ip6 {
            src: address(src),
            dst: address(dst),
            hop_limit: 64,
            payload_len: 0,
            flow_label,
            next_header: 17,
            hop_by_hop: false,
            fragment: false,
            l4: L4 {
                protocol: 17,
                src_port: ports.0,
                dst_port: ports.1,
                icmp_type: 0,
            },
        }
    }

    /// With addresses alone the flow label tells the flows of two hosts apart (RFC 6438); ports do not.
    #[test]
    fn flow_labels_spread_where_ports_do_not() {
        let g = group(&[1, 1]);
        let share = |flow: &dyn Fn(u32) -> Ip6| {
            let hash = |i| hash6(&flow(i), HashPolicy::L3, by());
            let first = (0..1000).filter(|i| g.select(hash(*i)).unwrap().0 == 0);
            first.count()
        };
        let by_label = share(&|i| ip6(1, 2, (1, 2), i));
        assert!((400..600).contains(&by_label), "{by_label} of 1,000");
        let by_port = share(&|i| ip6(1, 2, (i as u16, 2), 7));
        assert!(by_port == 0 || by_port == 1000, "{by_port} of 1,000");
    }

    /// 20,000 flows, every hash of them.
    fn hashes(by: FlowHash, policy: HashPolicy, v6: bool) -> Vec<u32> {
        let flow = |i: u32| match v6 {
            false => hash4(&ip4(0x0a00_0000 + i, 7, i as u16, 80), policy, by),
            true => hash6(&ip6(0x0a00_0000 + i, 7, (i as u16, 80), 0), policy, by),
        };
        (0..20_000).map(flow).collect()
    }

    /// Switches one behind another, each with two equal ways: whoever went left at the first goes both ways at the second.
    /// With the same for an aggregation group behind a next-hop group, in one switch and in the next.
    #[test]
    fn switches_in_a_row_choose_independently() {
        let bases = [
            [2, 0x54, 0x4e, 1, 0, 0],
            [2, 0x54, 0x4e, 1, 1, 0],
            [2, 1, 2, 3, 4, 0],
        ];
        let mut all: Vec<FlowHash> = Vec::new();
        for symmetric in [false, true] {
            all.extend(bases.map(|b| FlowHash::pair(b, symmetric).0));
            all.extend(bases.map(|b| FlowHash::pair(b, symmetric).1));
        }
        for (policy, v6) in [
            (HashPolicy::L3, false),
            (HashPolicy::L4, false),
            (HashPolicy::L3, true),
            (HashPolicy::L4, true),
        ] {
            let hashed: Vec<Vec<u32>> = all.iter().map(|by| hashes(*by, policy, v6)).collect();
            for (i, first) in hashed.iter().enumerate() {
                for (j, second) in hashed.iter().enumerate() {
                    // the same switch and kind of group
                    if i % 6 == j % 6 {
                        continue;
                    }
                    let left = first.iter().zip(second).filter(|(f, _)| **f < 1 << 31);
                    let (ways, both): (Vec<u32>, u32) = (left.map(|(_, s)| s >> 31).collect(), 2);
                    let right = ways.iter().sum::<u32>() as f64;
                    let half = ways.len() as f64 / f64::from(both);
                    assert!(
                        (right - half).abs() < half * 0.06,
                        "{policy:?} {i} {j}: {right} {half}"
                    );
                }
            }
        }
        // the same at every start
        assert_eq!(
            FlowHash::pair(bases[0], true),
            FlowHash::pair(bases[0], true)
        );
    }

    #[test]
    fn a_symmetric_hash_is_one_for_both_directions() {
        for (symmetric, seed) in [(true, 1), (true, 9), (false, 1)] {
            let (by, lag) = FlowHash::pair([2, 0, 0, 0, 0, seed], symmetric);
            for policy in [HashPolicy::L3, HashPolicy::L4] {
                let same4 = |i: u32| {
                    let (out, back) = (ip4(i, 9, 1000, 80), ip4(9, i, 80, 1000));
                    hash4(&out, policy, by) == hash4(&back, policy, by)
                };
                let same6 = |i: u32| {
                    // each end draws a flow label of its own
                    let (out, back) = (ip6(i, 9, (1000, 80), i), ip6(9, i, (80, 1000), 77));
                    hash6(&out, policy, by) == hash6(&back, policy, by)
                };
                assert_eq!((20..90).all(same4), symmetric);
                assert_eq!((20..90).all(same6), symmetric);
                // one address, two ports
                let (out, back) = (ip4(9, 9, 1000, 80), ip4(9, 9, 80, 1000));
                let same = hash4(&out, policy, by) == hash4(&back, policy, by);
                assert_eq!(same, symmetric || policy == HashPolicy::L3);
            }
            let same = (20..90).all(|i| lag.stations(i, 9, 0) == lag.stations(9, i, 0));
            assert_eq!(same, symmetric);
        }
    }

    /// A first fragment with options behind its fragment header: its transport is known, that of the later ones isn't.
    #[test]
    fn all_fragments_of_a_packet_have_one_hash() {
        let first = Ip6 {
            fragment: true,
            next_header: 44,
            ..ip6(1, 2, (1000, 80), 5)
        };
        let later = Ip6 {
            l4: L4 {
                protocol: 60,
                ..L4::default()
            },
            ..first
        };
        for policy in [HashPolicy::L3, HashPolicy::L4] {
            assert_eq!(hash6(&first, policy, by()), hash6(&later, policy, by()));
        }
    }

    #[test]
    fn fragments_hash_without_ports() {
        let whole = ip4(1, 2, 3, 4);
        let first = Ip4 {
            fragment: true,
            ..whole
        };
        let rest = Ip4 {
            l4: L4 {
                protocol: 6,
                ..L4::default()
            },
            ..first
        };
        assert_eq!(
            hash4(&first, HashPolicy::L4, by()),
            hash4(&rest, HashPolicy::L4, by())
        );
        assert_ne!(
            hash4(&whole, HashPolicy::L4, by()),
            hash4(&rest, HashPolicy::L4, by())
        );
    }

    #[test]
    fn bad_groups_are_refused() {
        let c = |members| GroupConfig {
            hash: HashPolicy::L3,
            members,
        };
        assert!(Group::new(1, &c(vec![]), &[]).is_none());
        assert!(Group::new(1, &c(vec![(1, 0)]), &[0]).is_none());
        assert!(Group::new(1, &c(vec![(1, 257)]), &[0]).is_none());
        assert!(Group::new(1, &c(vec![(1, 1)]), &[]).is_none());
    }
}
