//! What a router does: routes over next hops and groups of them, hosts, IPv4 and IPv6.

use super::{Chip, FLOWS, Flow, LEN, Made, ip_header};
use crate::prefixes::{self, Prefix, Rng};
use anyhow::Result;
use std::collections::BTreeSet;
use tandem_abi::{Command, raw};

const ROUTER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Next hops of the routes.
const NEXTHOPS: u32 = 250;

/// Two router interfaces, 250 next hops behind the second.
fn router() -> Result<Chip> {
    let mut chip = Chip::new("jericho2-large")?;
    for (rif, mac) in [(1, ROUTER_MAC), (2, [2, 0, 0, 0, 0, 2])] {
        chip.create(&raw::tnd_rif {
            rif,
            kind: raw::TND_RIF_PORT,
            port: rif,
            mac,
            flags: raw::TND_RIF_V4 | raw::TND_RIF_V6,
            mtu: 1500,
            ..Default::default()
        })?;
    }
    for nexthop in 1..=NEXTHOPS {
        chip.create(&raw::tnd_nexthop {
            rif: 2,
            nexthop,
            mac: [2, 0, 0, 1, 0, nexthop as u8],
            ..Default::default()
        })?;
    }
    Ok(chip)
}

fn addr4(addr: u32) -> [u8; 16] {
    let mut a = [0u8; 16];
    a[..4].copy_from_slice(&addr.to_be_bytes());
    a
}

/// Hosts of their own, from `first` on: each packet asks for one first.
fn hosts(chip: &mut Chip, first: u32, count: u32) -> Result<()> {
    for n in 0..count {
        chip.create(&raw::tnd_neigh {
            rif: 2,
            family: raw::TND_AF_INET,
            mac: [2, 0, 0, 1, (n >> 8) as u8, n as u8],
            addr: addr4(first + n),
            ..Default::default()
        })?;
    }
    Ok(())
}

fn to_router(ethertype: [u8; 2]) -> Flow {
    let mut f = [0u8; LEN];
    f[0..6].copy_from_slice(&ROUTER_MAC);
    f[6..12].copy_from_slice(&[2, 0, 0, 2, 0, 0]);
    f[12..14].copy_from_slice(&ethertype);
    f
}

/// A frame for each of these destinations; sources as `source` draws them.
fn flows4(to: Vec<u32>, source: impl Fn(&mut Rng) -> u32) -> Vec<Flow> {
    let mut rng = Rng::new(5);
    let frames = to.into_iter().map(|dst| {
        let mut f = to_router([0x08, 0x00]);
        ip_header(&mut f, source(&mut rng), dst);
        f
    });
    frames.collect()
}

/// One of 65,536 stations of 10.0.0.0/16.
fn near(rng: &mut Rng) -> u32 {
    0x0a00_0000 | (rng.bits() as u32 & 0xffff)
}

fn routes4(chip: &mut Chip, table: &[Prefix], kind: u8) -> Result<()> {
    for p in table {
        chip.create(&raw::tnd_route {
            family: raw::TND_AF_INET,
            prefix_len: p.len,
            target_kind: kind,
            target: p.nexthop,
            addr: addr4(p.addr),
            ..Default::default()
        })?;
    }
    Ok(())
}

/// Routes over 250 next hops; destinations uniform over the prefixes.
pub(super) fn routes(table: &[Prefix]) -> Result<Made> {
    let mut chip = router()?;
    hosts(&mut chip, 0xc000_0201, NEXTHOPS)?;
    routes4(&mut chip, table, raw::TND_RT_NEXTHOP)?;
    Ok((chip, flows4(prefixes::inside(table, FLOWS, 9), near)))
}

/// The routes by groups of eight next hops; any unicast source.
pub(super) fn groups(table: &[Prefix]) -> Result<Made> {
    let mut chip = router()?;
    hosts(&mut chip, 0xc000_0201, NEXTHOPS)?;
    for nhg in 1..=NEXTHOPS {
        let head = raw::tnd_nhg {
            nhg,
            count: 8,
            hash: raw::TND_HASH_L4,
            ..Default::default()
        };
        let member = |i: u32| raw::tnd_nhg_member {
            nexthop: (nhg + i * 31) % NEXTHOPS + 1,
            weight: 1,
        };
        let members: Vec<_> = (0..8).map(member).collect();
        chip.run(&Command::create(&head).members(&members))?;
    }
    routes4(&mut chip, table, raw::TND_RT_NHG)?;
    let any = |rng: &mut Rng| 0x0100_0000 + rng.below(0x7e00_0000) as u32;
    Ok((chip, flows4(prefixes::inside(table, FLOWS, 9), any)))
}

/// 16,384 hosts, and the routes that none of them asks.
pub(super) fn host_routes(table: &[Prefix]) -> Result<Made> {
    const HOSTS: u32 = 1 << 14;
    const FIRST: u32 = 0x0a80_0000;
    let mut chip = router()?;
    hosts(&mut chip, FIRST, HOSTS)?;
    routes4(&mut chip, table, raw::TND_RT_NEXTHOP)?;
    let mut rng = Rng::new(9);
    let to = (0..FLOWS).map(|_| FIRST + rng.below(u64::from(HOSTS)) as u32);
    Ok((chip, flows4(to.collect(), near)))
}

/// IPv6 routes, of 48 bits mostly, as the public table has them (half /48, a fifth /32, the rest between); destinations uniform over them.
pub(super) fn routes6(count: usize) -> Result<Made> {
    let mut chip = router()?;
    let mut rng = Rng::new(42);
    let mut table = BTreeSet::new();
    while table.len() < count {
        let len = match rng.below(10) {
            0..=4 => 48,
            5..=6 => 32,
            7 => 44,
            8 => 40,
            _ => 36,
        };
        let mask = u128::MAX << (128 - len);
        let addr = 0x2000 << 112 | u128::from(rng.bits() >> 3) << 64;
        table.insert((addr & mask, len as u8));
    }
    for (n, (addr, prefix_len)) in table.iter().enumerate() {
        chip.create(&raw::tnd_route {
            family: raw::TND_AF_INET6,
            prefix_len: *prefix_len,
            target_kind: raw::TND_RT_NEXTHOP,
            target: n as u32 % NEXTHOPS + 1,
            addr: addr.to_be_bytes(),
            ..Default::default()
        })?;
    }
    let table: Vec<_> = table.into_iter().collect();
    let flows = (0..FLOWS).map(|_| {
        let (addr, len) = table[rng.below(table.len() as u64) as usize];
        let wide = u128::from(rng.bits()) << 64 | u128::from(rng.bits());
        let dst = addr | wide & !(u128::MAX << (128 - u32::from(len)));
        let src = 0x2001_0db8 << 96 | u128::from(rng.bits() & 0xffff);
        let mut f = to_router([0x86, 0xdd]);
        // no next header
        f[14..22].copy_from_slice(&[0x60, 0, 0, 0, 0, (LEN - 54) as u8, 59, 64]);
        f[22..38].copy_from_slice(&src.to_be_bytes());
        f[38..54].copy_from_slice(&dst.to_be_bytes());
        f
    });
    let flows = flows.collect();
    Ok((chip, flows))
}
