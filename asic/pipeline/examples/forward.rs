//! How long `process` takes: 64-byte frames, 65,536 flows, one core, everything counted and learned. For a profiler:
//!
//! ```text
//! cargo build --release -p tandem-pipeline --example forward
//! perf record target/release/examples/forward l2 && perf report
//! ```
//!
//! The benchmark with a peer is `./run bench NAME=pipeline`; this one needs nothing but this crate.

use tandem_abi::raw;
use tandem_packet::checksum;
use tandem_pipeline::entry::{Action, FdbValue, RouteTarget};
use tandem_pipeline::state::{
    AclBind, AclStage, MemberConfig, NexthopConfig, PortConfig, RifConfig, RifPlace, State,
    VlanConfig,
};
use tandem_pipeline::{Ahead, CpuMeta, Event, Frame, Hint, Offload, Sink, process_seen};
use tandem_tables::exact::{ExactMatch, Geometry, Key, Widths};
use tandem_tables::lpm::{Lpm4, Lpm6};

const FLOWS: usize = 1 << 16;
const LEN: usize = 60;
const HEADROOM: usize = 64;
const ROUTER: [u8; 6] = [2, 0xaa, 0, 0, 0, 1];

#[derive(Default)]
struct Count {
    tx: u64,
    other: u64,
}

impl Sink for Count {
    #[inline]
    fn tx(&mut self, port: u16, frame: &Frame<'_>) {
        self.tx += u64::from(port) * u64::from(!frame.is_empty());
    }
    fn cpu(&mut self, _meta: CpuMeta, _frame: &Frame<'_>) {
        self.other += 1;
    }
    fn event(&mut self, _event: Event) {
        self.other += 1;
    }
}

/// splitmix64
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn chip() -> Option<State> {
    let exact = ExactMatch::new(
        Geometry {
            banks: 4,
            buckets_per_bank: 5100,
            slots_per_bucket: 4,
            stash: 5440,
            max_moves: 32,
        },
        Widths {
            mac: 1,
            host4: 1,
            host6: 2,
        },
        1,
    )
    .ok()?;
    let mut s = State::new(4, exact, Lpm4::new(1 << 20, 1), Lpm6::new(1024, 1));
    for port in 1..=4 {
        let config = PortConfig::default();
        let flags = config.flags | raw::TND_PORT_UP;
        s.set_port(port, PortConfig { flags, ..config }).ok()?;
        s.set_link(port, true).ok()?;
    }
    Some(s)
}

fn frame(dst: [u8; 6], src: [u8; 6], to: u32) -> [u8; LEN] {
    let mut f = [0; LEN];
    f[..6].copy_from_slice(&dst);
    f[6..12].copy_from_slice(&src);
    f[12..14].copy_from_slice(&[8, 0]);
    f[14..26].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0]);
    f[26..30].copy_from_slice(&[10, 1, 2, 3]);
    f[30..34].copy_from_slice(&to.to_be_bytes());
    checksum::ip4_set(&mut f[14..34]);
    f
}

fn l2() -> Option<(State, Vec<[u8; LEN]>)> {
    let mut s = chip()?;
    let vlan = VlanConfig {
        flags: raw::TND_VLAN_LEARNING,
        ageing_s: 300,
    };
    s.set_vlan(1, vlan).ok()?;
    for port in 1..=4 {
        let member = MemberConfig { fid: 1, flags: 3 };
        s.set_member(port, raw::TND_VID_ANY, member).ok()?;
    }
    let flows = stations(&mut s, 1)?;
    Some((s, flows))
}

/// The same stations behind a flow port.
fn flows() -> Option<(State, Vec<[u8; LEN]>)> {
    let mut s = chip()?;
    let vlan = VlanConfig {
        flags: raw::TND_VLAN_FLOWS,
        ageing_s: 0,
    };
    s.set_vlan(raw::TND_FLOWS_FID, vlan).ok()?;
    let config = s.port(1)?.config;
    let flags = config.flags | raw::TND_PORT_FLOWS;
    s.set_port(1, PortConfig { flags, ..config }).ok()?;
    let flows = stations(&mut s, raw::TND_FLOWS_FID)?;
    Some((s, flows))
}

/// Stations half of which are near, and frames from these to the others.
fn stations(s: &mut State, fid: u16) -> Option<Vec<[u8; LEN]>> {
    let mut seed = 1;
    let macs: Vec<[u8; 6]> = (0..FLOWS)
        .map(|_| {
            let [a, b, c, d, e, ..] = random(&mut seed).to_le_bytes();
            [2, a, b, c, d, e]
        })
        .collect();
    for (i, mac) in macs.iter().enumerate() {
        let value = FdbValue {
            port: if i % 2 == 0 { 1 } else { 2 },
            flags: 0,
            action: Action::Forward,
            set: None,
        };
        let key = Key::Mac { fid, mac: *mac };
        s.exact.insert(key, value.pack(), 0).ok()?;
    }
    let flows = (0..FLOWS)
        .map(|i| {
            let dst = (random(&mut seed) as usize % FLOWS) | 1;
            frame(macs[dst], macs[i & !1], 0)
        })
        .collect();
    Some(flows)
}

/// The same with a list of 256 rules of 16 masks on port 1; the last one is that which all frames hit, and it counts. At a flow port
/// it sends them out of a port.
fn acl(made: (State, Vec<[u8; LEN]>), stage: AclStage) -> Option<(State, Vec<[u8; LEN]>)> {
    let (mut s, mut flows) = made;
    let mut seed = 3;
    for f in &mut flows {
        let [a, b, c, ..] = random(&mut seed).to_le_bytes();
        f[24..30].copy_from_slice(&[0, 0, 10, a, b, c]);
        checksum::ip4_set(&mut f[14..34]);
    }
    s.acl.add_table(1, stage);
    s.acl.add_counter(1);
    for n in 0..256u32 {
        let mut e = raw::tnd_acl_entry {
            table: 1,
            priority: n,
            counter: 1,
            ..Default::default()
        };
        (e.key.ethertype, e.mask.ethertype) = (0x0800, u16::MAX);
        let len = if n == 255 { 8 } else { 17 + n % 15 };
        let (mask, net) = (u32::MAX << (32 - len), 0x0b00_0000 | n << 15);
        e.mask.src_ip[..4].copy_from_slice(&mask.to_be_bytes());
        if n == 255 {
            e.key.src_ip[..4].copy_from_slice(&(0x0a01_0203 & mask).to_be_bytes());
            if stage == AclStage::Flow {
                (e.action, e.target) = (raw::TND_ACL_REDIRECT_PORT, 2);
            }
        } else {
            e.action = raw::TND_ACL_DROP;
            e.key.src_ip[..4].copy_from_slice(&(net & mask).to_be_bytes());
            (e.key.protocol, e.mask.protocol) = (17, 0xff);
            (e.key.dst_port, e.mask.dst_port) = (n as u16, u16::MAX);
        }
        s.acl.put_rule(e, e.target);
    }
    let bind = AclBind { table: 1, flags: 0 };
    s.set_acl_bind(1, stage, bind).ok()?;
    Some((s, flows))
}

fn l3(routes: usize) -> Option<(State, Vec<[u8; LEN]>)> {
    let mut s = chip()?;
    for n in 1..=2 {
        let rif = RifConfig {
            vrf: 0,
            place: RifPlace::Port(n),
            mac: [2, 0xaa, 0, 0, 0, n as u8],
            flags: raw::TND_RIF_V4,
            mtu: 1500,
        };
        s.set_rif(n, rif).ok()?;
    }
    let mut slots = Vec::new();
    for id in 0..256 {
        let nexthop = NexthopConfig {
            rif: 2,
            action: Action::Forward,
            reason: 0,
            mac: [2, 0, 0, 0, 0, id as u8],
        };
        slots.push(s.set_nexthop(id, nexthop).ok()?);
    }
    let mut seed = 2;
    let mut nets = Vec::new();
    while nets.len() < routes {
        let net = 0x1000_0000 + (random(&mut seed) as u32 & 0x3fff_ffff);
        // lengths roughly as in the Internet's table
        let plen =
            [24, 24, 24, 24, 24, 24, 22, 22, 23, 20, 19, 16][random(&mut seed) as usize % 12];
        let slot = slots[random(&mut seed) as usize % slots.len()];
        let value = RouteTarget::Nexthop(slot).pack();
        s.lpm4.insert(0, net, plen, value).ok()?;
        nets.push(net);
    }
    let flows = (0..FLOWS)
        .map(|_| {
            let net = nets[random(&mut seed) as usize % nets.len()];
            frame(ROUTER, [2, 0, 0, 0, 9, 9], net)
        })
        .collect();
    Some((s, flows))
}

/// Time this thread was on a core, in seconds: other load on the machine counts for less than with a wall clock.
fn on_core() -> f64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|s| s.split(' ').next()?.parse::<f64>().ok())
        .map_or(0.0, |ns| ns / 1e9)
}

fn main() {
    let which = std::env::args().nth(1).unwrap_or_else(|| "l2".into());
    let made = match which.as_str() {
        "l2" => l2(),
        "acl" => l2().and_then(|made| acl(made, AclStage::Port)),
        "flow-mac" => flows(),
        "flow-acl" => flows().and_then(|made| acl(made, AclStage::Flow)),
        "l3" => l3(100_000),
        "l3-900k" => l3(900_000),
        _ => None,
    };
    let Some((mut s, flows)) = made else {
        eprintln!("usage: forward [l2|acl|flow-mac|flow-acl|l3|l3-900k] [cold]");
        std::process::exit(2);
    };
    let ahead = std::env::args().nth(2).as_deref() != Some("cold");
    let mut memory = vec![[0u8; 192]; 32];
    let mut look = Ahead::default();
    for round in 0..5 {
        let mut count = Count::default();
        let begin = on_core();
        let mut done = 0u64;
        for now in 0..20u64 {
            for burst in flows.chunks_exact(32) {
                for (slot, template) in memory.iter_mut().zip(burst) {
                    slot[HEADROOM..HEADROOM + LEN].copy_from_slice(template);
                }
                if ahead {
                    look.begin(&s, 1);
                    for slot in &memory {
                        look.see(&s, &slot[HEADROOM..HEADROOM + LEN]);
                    }
                    look.finish(&s);
                }
                for (n, slot) in memory.iter_mut().enumerate() {
                    let mut f = Frame::new(slot, HEADROOM, HEADROOM + LEN, Offload::NONE);
                    let hint = if ahead { look.hint(n) } else { Hint::default() };
                    process_seen(&mut s, &mut f, 1, now, &mut count, hint);
                }
                done += 32;
            }
        }
        let t = on_core() - begin;
        println!(
            "{which} round {round}: {:.2} Mpps, {:.1} ns per frame, {} to the CPU",
            done as f64 / t / 1e6,
            t * 1e9 / done as f64,
            count.other
        );
    }
}
