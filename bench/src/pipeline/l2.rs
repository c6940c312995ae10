//! What a bridge does: addresses, VLAN tags, groups of ports, an ACL table.

use super::{Chip, FLOWS, Flow, LEN, Made, bridge_port, ip_header};
use crate::prefixes::{self, Rng};
use anyhow::Result;
use tandem_abi::{Command, raw};

fn mac(rng: &mut Rng) -> [u8; 6] {
    let b = rng.bits().to_le_bytes();
    [b[0] & 0xfc | 2, b[1], b[2], b[3], b[4], b[5]]
}

/// Stations near port 1 and far from it, half of 65,536 each: three quarters of the exact-match table.
struct Stations {
    rng: Rng,
    near: Vec<[u8; 6]>,
    far: Vec<[u8; 6]>,
}

impl Stations {
    fn new() -> Stations {
        let mut rng = Rng::new(3);
        let mut near: Vec<_> = (0..FLOWS).map(|_| mac(&mut rng)).collect();
        let far = near.split_off(FLOWS / 2);
        Stations { rng, near, far }
    }

    /// Makes the chip know them: `domain` of the nth of a half, the halves behind `ports`.
    fn known(&self, chip: &mut Chip, ports: [u16; 2], domain: impl Fn(usize) -> u16) -> Result<()> {
        for (list, port) in [(&self.near, ports[0]), (&self.far, ports[1])] {
            for (n, mac) in list.iter().enumerate() {
                chip.create(&raw::tnd_fdb {
                    fid: domain(n),
                    mac: *mac,
                    port,
                    ..Default::default()
                })?;
            }
        }
        Ok(())
    }

    /// Flow n: from the nth near station to one far away, drawn among those of `domains` whose number has n's rest.
    fn flow(&mut self, n: usize, domains: usize) -> Flow {
        let mut f = [0u8; LEN];
        let far =
            self.rng.below((self.far.len() / domains) as u64) as usize * domains + n % domains;
        f[0..6].copy_from_slice(&self.far[far]);
        f[6..12].copy_from_slice(&self.near[n % self.near.len()]);
        f[12..14].copy_from_slice(&[0x08, 0x00]);
        ip_header(&mut f, 0x0a00_0001, 0x0a00_0002);
        f
    }
}

fn domain(chip: &mut Chip, fid: u16, members: impl Iterator<Item = (u16, u16, u32)>) -> Result<()> {
    chip.create(&raw::tnd_vlan {
        fid,
        flags: raw::TND_VLAN_LEARNING,
        ageing_s: 300,
        ..Default::default()
    })?;
    for (port, vid, flags) in members {
        chip.create(&raw::tnd_vlan_member {
            fid,
            port,
            vid,
            flags,
            ..Default::default()
        })?;
    }
    Ok(())
}

const UNAWARE: u32 = raw::TND_MEMBER_PVID | raw::TND_MEMBER_UNTAGGED;

/// One bridge between ports 1 and 2.
pub(super) fn plain() -> Result<Made> {
    let mut chip = Chip::new("spectrum-sn2700")?;
    domain(
        &mut chip,
        1,
        [1, 2].map(|p| (p, raw::TND_VID_ANY, UNAWARE)).into_iter(),
    )?;
    let mut stations = Stations::new();
    stations.known(&mut chip, [1, 2], |_| 1)?;
    let flows = (0..FLOWS).map(|n| stations.flow(n, 1)).collect();
    Ok((chip, flows))
}

/// VLANs of the row with tags.
const VLANS: u16 = 64;

/// A bridge that filters VLANs: tagged in, tagged out, 64 VLANs in turns.
pub(super) fn tagged() -> Result<Made> {
    let mut chip = Chip::new("spectrum-sn2700")?;
    for n in 1..=VLANS {
        domain(&mut chip, n, [1, 2].map(|p| (p, 100 + n, 0)).into_iter())?;
    }
    let of = |n: usize| (n % usize::from(VLANS)) as u16 + 1;
    let mut stations = Stations::new();
    stations.known(&mut chip, [1, 2], of)?;
    let flows = (0..FLOWS).map(|n| {
        let f = stations.flow(n, usize::from(VLANS));
        let mut tagged = [0u8; LEN];
        tagged[..12].copy_from_slice(&f[..12]);
        tagged[12..14].copy_from_slice(&[0x81, 0]);
        tagged[14..16].copy_from_slice(&(100 + of(n)).to_be_bytes());
        tagged[16..].copy_from_slice(&f[12..LEN - 4]);
        tagged
    });
    let flows = flows.collect();
    Ok((chip, flows))
}

/// The bridge between two groups of two ports; what leaves is spread by its five-tuple.
pub(super) fn lag() -> Result<Made> {
    let mut chip = Chip::new("spectrum-sn2700")?;
    let first = chip.firmware.profile().port_count() + 1;
    let groups = [first, first + 1];
    for (lag, ports) in [(1, [1, 3]), (2, [2, 4])] {
        let head = raw::tnd_lag {
            lag,
            count: 2,
            hash: raw::TND_LAG_HASH_L4,
            ..Default::default()
        };
        let flags = raw::TND_LAG_ACTIVE;
        let members = ports.map(|port| raw::tnd_lag_member { port, flags });
        chip.run(&Command::create(&head).members(&members))?;
        chip.run(&Command::update(&bridge_port(first + lag - 1)))?;
    }
    domain(
        &mut chip,
        1,
        groups.map(|p| (p, raw::TND_VID_ANY, UNAWARE)).into_iter(),
    )?;
    let mut stations = Stations::new();
    stations.known(&mut chip, groups, |_| 1)?;
    let mut flows: Vec<_> = (0..FLOWS).map(|n| stations.flow(n, 1)).collect();
    any_addresses(&mut flows);
    Ok((chip, flows))
}

/// IPv4 sources within 10.0.0.0/8, any destination.
fn any_addresses(flows: &mut [Flow]) {
    let mut rng = Rng::new(11);
    for f in flows {
        let src = 0x0a00_0000 | rng.bits() as u32 & 0x00ff_ffff;
        ip_header(f, src, rng.bits() as u32);
    }
}

/// Rules of the list, and masks among them.
const RULES: u32 = 256;
const MASKS: u32 = 16;

/// The bridge with a list at port 1: of 256 rules of 16 masks every frame hits the last, which counts.
pub(super) fn acl() -> Result<Made> {
    let (mut chip, mut flows) = plain()?;
    list(&mut chip, raw::TND_ACL_PORT)?;
    any_addresses(&mut flows);
    Ok((chip, flows))
}

/// A flow port: stations by address.
pub(super) fn flow_stations() -> Result<Made> {
    let mut chip = Chip::new("arista-7500e")?;
    let mut port = bridge_port(1);
    port.flags |= raw::TND_PORT_FLOWS;
    chip.run(&Command::update(&port))?;
    chip.create(&raw::tnd_vlan {
        fid: raw::TND_FLOWS_FID,
        flags: raw::TND_VLAN_FLOWS,
        ..Default::default()
    })?;
    let mut stations = Stations::new();
    stations.known(&mut chip, [1, 2], |_| raw::TND_FLOWS_FID)?;
    let flows = (0..FLOWS).map(|n| stations.flow(n, 1)).collect();
    Ok((chip, flows))
}

/// The same with the list in front, whose last rule sends the frames out of port 2.
pub(super) fn flow_rules() -> Result<Made> {
    let (mut chip, mut flows) = flow_stations()?;
    list(&mut chip, raw::TND_ACL_FLOW)?;
    any_addresses(&mut flows);
    Ok((chip, flows))
}

fn list(chip: &mut Chip, stage: u16) -> Result<()> {
    chip.create(&raw::tnd_acl_table {
        stage,
        table: 1,
        ..Default::default()
    })?;
    chip.create(&raw::tnd_acl_counter {
        counter: 1,
        ..Default::default()
    })?;
    for n in 0..RULES {
        let mut e = raw::tnd_acl_entry {
            table: 1,
            priority: n,
            action: raw::TND_ACL_DROP,
            counter: 1,
            ..Default::default()
        };
        (e.key.ethertype, e.mask.ethertype) = (0x0800, u16::MAX);
        let last = n == RULES - 1;
        let net = if last {
            0x0a00_0000
        } else {
            0x0b00_0000 | n << 15
        };
        let len = if last { 8 } else { 17 + n % (MASKS - 1) };
        let mask = prefixes::mask(len as u8);
        e.mask.src_ip[..4].copy_from_slice(&mask.to_be_bytes());
        e.key.src_ip[..4].copy_from_slice(&(net & mask).to_be_bytes());
        if last {
            (e.action, e.target) = match stage {
                raw::TND_ACL_FLOW => (raw::TND_ACL_REDIRECT_PORT, 2),
                _ => (raw::TND_ACL_PERMIT, 0),
            };
        } else {
            (e.key.protocol, e.mask.protocol) = (17, 0xff);
            (e.key.dst_port, e.mask.dst_port) = (n as u16, u16::MAX);
        }
        chip.create(&e)?;
    }
    chip.create(&raw::tnd_acl_bind {
        port: 1,
        stage,
        table: 1,
        ..Default::default()
    })
}
