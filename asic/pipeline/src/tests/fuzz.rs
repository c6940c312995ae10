//! Arbitrary frames through arbitrary states: no panic, one answer for each frame, counters that add up.

use tandem_abi::raw;

use crate::entry::{Action, FdbValue, HostValue, RouteTarget};
use crate::state::{
    AclBind, AclStage, GroupConfig, HashPolicy, LagConfig, MemberConfig, Mirror, NexthopConfig,
    PortConfig, PortMask, PortSet, RifConfig, RifPlace, VlanConfig,
};
use crate::testkit::{Out, ip6, mac, router_mac, state_sized};
use crate::{Ahead, Buffer, CpuMeta, DropReason, Offload, State, age, process, process_seen};
use tandem_tables::exact::Key;

/// xorshift64*: the same numbers in every run.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 16) % n
    }
    pub fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

const PORTS: u16 = 6;

fn change(s: &mut State, r: &mut Rng) {
    let port = r.below(8) as u16;
    let fid = r.below(5) as u16;
    let rif = r.below(8) as u16;
    match r.below(16) {
        0 => {
            let config = PortConfig {
                flags: r.next() as u32
                    & if r.chance(12) {
                        0x1ff
                    } else {
                        0x1ff & !(raw::TND_PORT_TRAP_ALL | raw::TND_PORT_LOCKED)
                    }
                    | raw::TND_PORT_UP
                    | if r.chance(10) {
                        raw::TND_PORT_FLOWS | r.next() as u32 & 0x7000
                    } else {
                        0
                    },
                mtu: r.pick(&[1500, 1500, 1500, 1500, 1500, 68, 9000, 0, u32::MAX]),
                stp_state: r.pick(&[3, 3, 3, 3, 3, 3, 3, 3, 0, 1, 2, 4, 9]),
                mac: router_mac(port),
            };
            let _ = s.set_port(port, config);
            let _ = s.set_link(port, !r.chance(9));
        }
        1 => {
            let flags = r.next() as u32 & (0xf | raw::TND_VLAN_FLOWS);
            let _ = s.set_vlan(
                r.pick(&[fid, fid, fid, raw::TND_FLOWS_FID]),
                VlanConfig {
                    flags,
                    ageing_s: r.below(3) as u32,
                },
            );
        }
        2 => {
            let vid = r.pick(&[raw::TND_VID_ANY, 1, 2, 4094, 4095, 0]);
            let _ = s.set_member(
                port,
                vid,
                MemberConfig {
                    fid,
                    flags: r.next() as u32 & 3,
                },
            );
        }
        3 => {
            let vid = r.pick(&[raw::TND_VID_ANY, 1, 2, 4094]);
            s.remove_member(port, vid);
        }
        4 if r.chance(4) => {
            s.remove_vlan(fid);
        }
        5 => {
            let place = match r.below(3) {
                0 => RifPlace::Port(port),
                1 => RifPlace::PortVlan(port, r.pick(&[1, 2, 4094])),
                _ => RifPlace::Fid(fid),
            };
            let config = RifConfig {
                vrf: r.below(2) as u16,
                place,
                mac: router_mac(match place {
                    RifPlace::Port(p) | RifPlace::PortVlan(p, _) => p,
                    RifPlace::Fid(_) => r.below(7) as u16,
                }),
                flags: if r.chance(4) {
                    r.next() as u32 & 0x1f
                } else {
                    3
                },
                mtu: r.pick(&[1500, 1500, 1500, 50, 9000]),
            };
            let _ = s.set_rif(rif, config);
        }
        6 if r.chance(4) => {
            s.remove_rif(rif);
        }
        7 => {
            let action = r.pick(&[Action::Forward, Action::Forward, Action::Trap, Action::Drop]);
            let value = FdbValue {
                port,
                flags: r.below(8) as u16,
                action,
                set: FdbValue::of_slot(r.below(3) as u32).filter(|_| r.chance(4)),
            };
            let key = Key::Mac {
                fid: r.pick(&[fid, fid, raw::TND_FLOWS_FID]),
                mac: mac(r.below(8) as u16),
            };
            let _ = s.exact.insert(key, value.pack(), 0);
        }
        8 => {
            let action = r.pick(&[Action::Forward, Action::Forward, Action::Trap, Action::Drop]);
            let config = NexthopConfig {
                rif,
                action,
                reason: r.below(24) as u8,
                mac: mac(rif),
            };
            let _ = s.set_nexthop(r.below(6) as u32, config);
        }
        9 => {
            let members = (0..r.below(4))
                .map(|_| (r.below(6) as u32, r.below(300) as u32))
                .collect();
            let hash = r.pick(&[HashPolicy::L3, HashPolicy::L4]);
            let _ = s.set_nhg(r.below(3) as u32, &GroupConfig { hash, members });
        }
        10 => {
            // dangling slots too: the firmware would not, the pipeline must not care
            let target = match r.below(4) {
                0 => RouteTarget::Trap(r.below(24) as u8),
                1 => RouteTarget::Drop,
                2 => RouteTarget::Nexthop(r.below(9) as u32),
                _ => RouteTarget::Group(r.below(4) as u32),
            };
            let plen = r.pick(&[0, 16, 24, 24, 32, 32]);
            let addr = u32::from_be_bytes([10, 0, r.below(4) as u8, r.below(4) as u8]);
            let _ = s.lpm4.insert(r.below(2) as u16, addr, plen, target.pack());
            let a6 = u128::from_be_bytes(ip6(r.below(4) as u16, r.below(4) as u16));
            let _ = s
                .lpm6
                .insert(r.below(2) as u16, a6, plen * 4, target.pack());
        }
        11 => {
            let action = r.pick(&[Action::Forward, Action::Trap, Action::Drop]);
            let value = HostValue {
                rif,
                action,
                mac: mac(rif),
            }
            .pack();
            let (net, host) = (r.below(4) as u16, r.below(4) as u16);
            let vrf = r.below(2) as u16;
            let _ = s.exact.insert(
                Key::Host4 {
                    vrf,
                    addr: [10, 0, net as u8, host as u8],
                },
                value,
                0,
            );
            let _ = s.exact.insert(
                Key::Host6 {
                    vrf,
                    addr: ip6(net, host),
                },
                value,
                0,
            );
        }
        12 => {
            let config = crate::trap::TrapConfig {
                class: r.below(5) as u16,
                rate_pps: r.pick(&[0, 1000, u32::MAX]),
                burst: r.below(20) as u32,
            };
            let _ = s.set_trap(r.below(25) as u16, config);
        }
        13 => rules(s, r, port, false),
        14 => {
            let mut members = Vec::new();
            for p in 1..=PORTS {
                if r.chance(4) {
                    members.push((p, !r.chance(3)));
                }
            }
            let hash = r.below(4) as u16;
            let _ = s.set_lag(r.below(3) as u16, LagConfig { hash, members });
        }
        15 if r.chance(3) => {
            s.remove_lag(r.below(3) as u16);
        }
        15 => {
            // entries of sets that are gone, too
            let (id, ports) = (r.below(3) as u16 + 1, random_mask(r));
            s.port_sets.remove(r.below(3) as u16 + 1);
            s.port_sets.put(id, PortSet { id, ports });
        }
        _ => {}
    }
}

/// Ports that there are, and others.
fn random_mask(r: &mut Rng) -> PortMask {
    let mut mask = PortMask::default();
    (mask[0], mask[1]) = (r.next() as u8, (r.next() & r.next()) as u8);
    mask
}

/// Lists, rules of random fields, bindings and what rules refer to; dangling things are refused or ignored.
fn rules(s: &mut State, r: &mut Rng, port: u16, mirrors: bool) {
    use tandem_abi::raw::*;
    let id = r.below(4) as u32 + 1;
    match r.below(8) {
        0 => s.acl.add_table(id, r.pick(&AclStage::ALL)),
        1 => {
            s.acl.add_counter(id);
            let (rate, burst) = (r.pick(&[1, 1000, u64::MAX]), r.pick(&[1, 5000, u64::MAX]));
            s.acl.set_policer(id, r.below(2) as u16, rate, burst);
        }
        2 => {
            s.acl.set_mirror(Mirror {
                id: id as u16,
                port: r.below(9) as u16,
                truncate: r.pick(&[0, 20, 9000]),
                rate: r.pick(&[0, 1, 3]),
                ..Mirror::default()
            });
        }
        3 if r.chance(4) => {
            s.acl.remove_rule(id, r.below(6) as u32);
        }
        3 | 4 => {
            let bind = AclBind {
                table: r.below(5) as u32,
                flags: u16::from(r.chance(8)),
            };
            let bind = if r.chance(3) {
                AclBind::default()
            } else {
                bind
            };
            let _ = s.set_acl_bind(port, r.pick(&AclStage::ALL), bind);
        }
        _ => {
            let mut e = tnd_acl_entry {
                table: id,
                priority: r.below(6) as u32,
                action: r.below(6) as u16,
                flags: r.next() as u32 & 7 & r.next() as u32,
                counter: r.below(3) as u32,
                policer: r.below(3) as u32,
                // a copy is a second fate: see `mirrors`
                mirror: if mirrors { r.below(3) as u16 } else { 0 },
                vid: r.below(4096) as u16,
                pcp: r.below(9) as u8,
                trap_class: r.below(raw::TND_TC_COUNT.into()) as u16,
                ports: random_mask(r),
                ..Default::default()
            };
            if r.chance(2) {
                (e.key.ethertype, e.mask.ethertype) = (r.pick(&[0x0800, 0x86dd, 0x0806]), 0xffff);
            }
            if r.chance(2) {
                (e.key.protocol, e.mask.protocol) = (r.pick(&[6, 17, 58]), 0xff);
            }
            if r.chance(3) {
                (e.dst_port_min, e.dst_port_max) = (r.next() as u16, r.next() as u16);
            }
            if r.chance(3) {
                (e.key.dst_mac[5], e.mask.dst_mac[5]) = (r.below(4) as u8, 3);
            }
            let target = r.below(9) as u32;
            s.acl.put_rule(e, target);
        }
    }
}

/// A frame: anything from noise to a sound packet with one byte wrong.
pub fn frame(r: &mut Rng, f: &mut Vec<u8>, port: u16) -> Offload {
    f.clear();
    if r.chance(20) {
        let len = r.below(100);
        f.extend((0..len).map(|_| r.next() as u8));
        return offload(r);
    }
    let n = r.below(8) as u16;
    let dst = match r.below(8) {
        0 => [0xff; 6],
        1 => [1, 0x80, 0xc2, 0, 0, r.below(40) as u8],
        2 => [1, 0, 0x5e, 0, 0, n as u8],
        3 => mac(n),
        _ => router_mac(port),
    };
    let src = if r.chance(16) {
        r.pick(&[[0; 6], [0xff; 6]])
    } else {
        mac(r.below(8) as u16)
    };
    f.extend(dst);
    f.extend(src);
    for _ in 0..r.pick(&[0, 0, 0, 1, 1, 2, 9]) {
        f.extend(r.pick(&[0x8100u16, 0x88a8]).to_be_bytes());
        f.extend(r.pick(&[0u16, 1, 2, 4094, 4095, 0xe001]).to_be_bytes());
    }
    let l4 = r.pick(&[1u8, 2, 6, 17, 58, 89, 0, 43, 44, 60, 132]);
    let body = r.below(64) as usize;
    match r.below(5) {
        0 => f.extend([8, 6]),
        1 => f.extend([r.next() as u8, r.next() as u8]),
        2 | 3 => {
            f.extend([8, 0]);
            let at = f.len();
            let len = (20 + body) as u16;
            f.extend([0x45, 0]);
            f.extend(len.to_be_bytes());
            f.extend([
                0,
                1,
                r.pick(&[0, 0, 0x20, 0x40]),
                r.pick(&[0, 0, 9]),
                r.pick(&[0, 1, 2, 64, 255]),
                l4,
                0,
                0,
            ]);
            f.extend([10, 0, r.below(4) as u8, r.below(4) as u8]);
            f.extend(r.pick(&[
                [10, 0, 1, 2],
                [10, 0, 2, 3],
                [224, 0, 0, 5],
                [127, 0, 0, 1],
                [10, 0, 3, 1],
            ]));
            tandem_packet::checksum::ip4_set(&mut f[at..]);
        }
        _ => {
            f.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            f.extend((body as u16).to_be_bytes());
            f.extend([l4, r.pick(&[0, 1, 64])]);
            f.extend(ip6(r.below(4) as u16, r.below(4) as u16));
            f.extend(ip6(r.below(4) as u16, r.below(4) as u16));
        }
    }
    f.extend((0..body).map(|_| r.next() as u8));
    if r.chance(3) && !f.is_empty() {
        let at = r.below(f.len() as u64) as usize;
        f[at] = r.next() as u8;
    }
    if r.chance(6) {
        let len = r.below(f.len() as u64 + 1) as usize;
        f.truncate(len);
    }
    if r.chance(200) {
        f.resize(r.pick(&[1518, 1519, 1522, 9018, 65_000]), 0);
    }
    offload(r)
}

fn offload(r: &mut Rng) -> Offload {
    if r.chance(8) {
        let mut h = [0; 10];
        for b in &mut h {
            *b = r.next() as u8;
        }
        h[1] = r.pick(&[0, 1, 4, 5, 0x81]);
        Offload::from_virtio(&h).unwrap_or_default()
    } else {
        Offload::NONE
    }
}

/// Copies of every kind, which would spoil the accounts of the other test.
#[test]
fn mirrors() {
    let mut r = Rng(0x6d69_7272_6f72);
    let mut s = state_sized(PORTS, 8);
    let mut b = Buffer::with_capacity(70_000);
    let mut bytes = Vec::new();
    let mut copies = 0;
    for n in 0..20_000u64 {
        change(&mut s, &mut r);
        rules(&mut s, &mut r, n as u16 % 8, true);
        let port = r.below(6) as u16 + 1;
        let off = frame(&mut r, &mut bytes, port);
        assert!(b.set(&bytes));
        let mut out = Out::default();
        process(&mut s, &mut b.frame(off), port, n * 1000, &mut out);
        if n % 5000 == 4999 {
            copies += s.acl.mirrors().iter().map(|(_, m)| m.packets).sum::<u64>();
            s.clear();
        }
    }
    assert!(copies > 100, "{copies}");
}

/// Set FUZZ_FRAMES for more than the 200,000 of an ordinary run.
#[test]
fn arbitrary_frames_and_states() {
    let frames: u64 = std::env::var("FUZZ_FRAMES")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(200_000);
    let mut r = Rng(0x7461_6e64_656d);
    let mut s = state_sized(PORTS, 8);
    s.add_vrf(1);
    let mut b = Buffer::with_capacity(70_000);
    let mut bytes = Vec::new();
    let mut other = Vec::new();
    let mut now = 0;
    let mut heard_only = 0;
    let mut ahead = Ahead::default();
    let mut seen = std::collections::BTreeSet::new();
    for n in 0..frames {
        if n % 3 == 0 {
            change(&mut s, &mut r);
        }
        let port = if r.chance(20) {
            r.pick(&[0, 7])
        } else {
            r.below(6) as u16 + 1
        };
        let off = frame(&mut r, &mut bytes, port);
        now += r.below(2_000_000);
        let before: u64 = s.counters.drops.iter().sum();
        assert!(b.set(&bytes));
        let mut out = Out::default();
        ahead.begin(&s, port);
        ahead.see(&s, &bytes);
        ahead.see(&s, &other);
        other.clone_from(&bytes);
        ahead.finish(&s);
        // the hint of another frame does no harm
        let hint = ahead.hint(usize::from(r.chance(10)));
        process_seen(&mut s, &mut b.frame(off), port, now, &mut out, hint);
        let dropped = s.counters.drops.iter().sum::<u64>() - before;
        // what its sender is to be told of, whatever becomes of it
        let redirect = |c: &&(CpuMeta, Vec<u8>)| {
            c.0.reason == raw::TND_TRAP_REDIRECT && c.0.flags & raw::TND_RX_L3_FORWARDED != 0
        };
        let redirects = out.cpu.iter().filter(redirect).count();
        let copies = out
            .cpu
            .iter()
            .filter(|c| c.0.flags & raw::TND_RX_L2_FORWARDED != 0)
            .count();
        let trapped = out.cpu.len() - copies - redirects;
        // exactly one fate, at most one copy
        assert!(trapped <= 1 && copies + redirects <= 1);
        let dropped = usize::from(dropped > 0);
        // the CPU heard of a source whose frame could not leave: that is dropped, and only that
        let heard = |c: &(CpuMeta, Vec<u8>)| c.0.reason == raw::TND_TRAP_FDB_INCOMPLETE;
        let copied = copies > 0 && !(dropped > 0 && out.cpu.iter().any(heard));
        heard_only += u64::from(copied && out.tx.is_empty())
            * tandem_packet::segment::wire(&bytes, &off).packets;
        assert_eq!(
            dropped + trapped + usize::from(!out.tx.is_empty() || copied),
            1,
            "frame {n}"
        );
        for (meta, got) in &out.cpu {
            assert_eq!(*got, bytes);
            seen.insert(meta.reason);
            assert!(meta.class < raw::TND_TC_COUNT && meta.port == port);
        }
        for (to, _, _) in &out.tx {
            assert!(s.port(*to).unwrap().is_up());
        }
        let mut ports: Vec<u16> = out.tx.iter().map(|t| t.0).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), out.tx.len(), "a port got the frame twice");
        if n % 50 == 0 {
            age(&mut s, now, 64, &mut out);
            let t = crate::trace::trace(&mut s, &bytes, port, now);
            assert!(!t.lines.is_empty());
        }
        if n % 20_000 == 19_999 {
            s.clear();
            s.add_vrf(1);
        }
    }
    // what came in is accounted for, packet by packet
    let mut fates = heard_only;
    let mut came = 0;
    for p in &s.counters.ports {
        came += p.rx.packets;
        fates += p.l2_forwarded + p.l3_forwarded + p.trapped + p.drops.iter().sum::<u64>();
    }
    assert_eq!(came, fates);
    if frames >= 200_000 {
        let dropped = s.counters.drops.iter().filter(|c| **c > 0).count();
        assert!(
            seen.len() >= 21,
            "reasons met: {seen:?} {:?}",
            s.counters.stages
        );
        assert!(dropped >= 22, "drop reasons met: {dropped}");
        for reason in [raw::TND_TRAP_FLOW, raw::TND_TRAP_FLOW_MISS] {
            assert!(seen.contains(&reason), "{reason}: {seen:?}");
        }
        for reason in [DropReason::AclFlow, DropReason::FlowMiss] {
            assert!(s.counters.drops[reason as usize] > 0, "{reason:?}");
        }
    }
}
