//! What the board is: the port map and the EEPROM image of `struct tnd_platform`
//! (seed 000, 6.1 and 6.4; EEPROM: ONIE's TlvInfo format).

use std::collections::BTreeMap;

use tandem_abi::raw;
use zerocopy::FromBytes;

/// Ports to split, and into how many: `swp1` → 4.
pub type Splits = BTreeMap<String, u16>;

/// Ports that a platform may have at most: what one process can sensibly hold open.
const PORTS_MAX: usize = 512;

/// TlvInfo: eight bytes of magic, version, 16-bit big-endian length of the records.
const TLV_MAGIC: &[u8; 8] = b"TlvInfo\0";
const TLV_HEADER: usize = 11;
const TLV_MAC_BASE: u8 = 0x24;
const TLV_MAC_COUNT: u8 = 0x2a;
const TLV_CRC32: u8 = 0xfe;

/// One front-panel port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformPort {
    /// Number in all objects, from 1.
    pub port: u16,
    /// Number printed on the box, from 1; of a part, its cage's.
    pub front_panel: u16,
    /// `swp1`, or `swp1s0` of a part: the netdev's name.
    pub name: String,
    /// `TND_BREAKOUT_*`: what its cage can be split into; of a part, nothing.
    pub breakout_modes: u32,
    /// Base MAC plus index; `None` when the EEPROM has no usable base.
    pub mac: Option<[u8; 6]>,
    /// Mbit/s at most.
    pub max_speed_mbps: u32,
}

/// The board.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Platform {
    /// Name of the chip's profile.
    pub chip: String,
    /// Base MAC of the EEPROM.
    pub mac_base: Option<[u8; 6]>,
    /// MACs that the EEPROM grants, from the base on.
    pub mac_count: u16,
    /// Ports, by number.
    pub ports: Vec<PlatformPort>,
    /// What could not be used, one line each.
    pub warnings: Vec<String>,
}

/// Why a platform description can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("platform description: {0}")]
pub struct PlatformError(String);

fn bad(what: impl Into<String>) -> PlatformError {
    PlatformError(what.into())
}

impl Platform {
    /// Reads the copy that the carrier gives. Every offset in it is checked: the device wrote it.
    pub fn parse(blob: &[u8]) -> Result<Platform, PlatformError> {
        let (head, _) = raw::tnd_platform::read_from_prefix(blob)
            .map_err(|_| bad(format!("{} bytes are too short", blob.len())))?;
        let mut warnings = Vec::new();
        let eeprom = part(blob, head.eeprom_offset, head.eeprom_size as usize)
            .ok_or_else(|| bad("the EEPROM image lies outside"))?;
        let (mac_base, mac_count) = match eeprom_mac(eeprom) {
            Ok(found) => found,
            Err(why) => {
                warnings.push(format!("EEPROM: {why}: ports get random MAC addresses"));
                (None, 0)
            }
        };
        let count = usize::from(head.port_count);
        if count == 0 || count > PORTS_MAX {
            return Err(bad(format!("{count} ports, want 1 to {PORTS_MAX}")));
        }
        let size = std::mem::size_of::<raw::tnd_platform_port>();
        let map = part(blob, head.ports_offset, count * size)
            .ok_or_else(|| bad("the port map lies outside"))?;
        let mut ports: Vec<PlatformPort> = Vec::with_capacity(count);
        for (index, entry) in map.chunks_exact(size).enumerate() {
            let p = raw::tnd_platform_port::read_from_bytes(entry)
                .map_err(|_| bad("port map entry"))?;
            if p.port == 0 || ports.iter().any(|q| q.port == p.port) {
                return Err(bad(format!("port {} is zero or there twice", p.port)));
            }
            ports.push(PlatformPort {
                port: p.port,
                front_panel: p.front_panel,
                name: format!("swp{}", p.front_panel),
                breakout_modes: p.breakout_modes,
                mac: mac_base.and_then(|base| nth_mac(base, index, mac_count)),
                max_speed_mbps: p.max_speed_mbps,
            });
        }
        ports.sort_by_key(|p| p.port);
        Ok(Platform {
            chip: tandem_abi::get_name(&head.chip),
            mac_base,
            mac_count,
            ports,
            warnings,
        })
    }

    /// Splits ports (seed 000, 6.2): a part needs a port number of its own, and the chip has one per cage, so a port in
    /// *n* parts takes the numbers of its neighbours as well, in rows that begin at multiples of *n*. They are disabled: no
    /// netdev has their name. All of `splits`, or an error and nothing.
    pub fn split(&mut self, splits: &Splits) -> Result<(), PlatformError> {
        let mut ports = self.ports.clone();
        for (name, &parts) in splits {
            let wrong =
                |why: String| PlatformError(format!("{name} can't be split into {parts}: {why}"));
            let at = self
                .ports
                .iter()
                .position(|p| p.name == *name)
                .ok_or_else(|| wrong(format!("{} has no such port", self.chip)))?;
            let whole = self.ports.get(at).map_or(0, |p| p.breakout_modes);
            let n = usize::from(parts);
            let mode = match parts {
                2 => raw::TND_BREAKOUT_2,
                4 => raw::TND_BREAKOUT_4,
                _ => 0,
            };
            if whole & mode == 0 {
                let modes: Vec<&str> = [(raw::TND_BREAKOUT_2, "2"), (raw::TND_BREAKOUT_4, "4")]
                    .iter()
                    .filter_map(|(bit, text)| (whole & bit != 0).then_some(*text))
                    .collect();
                return Err(wrong(match modes.as_slice() {
                    [] => "its cage has one port".into(),
                    some => format!("its cage can be split into {}", some.join(" or ")),
                }));
            }
            if at % n != 0 {
                let begins = self.ports.get(at - at % n).map_or("", |p| &p.name);
                return Err(wrong(format!(
                    "ports are wired in rows of {n}, this row's first is {begins}"
                )));
            }
            let row = self
                .ports
                .get(at..at + n)
                .ok_or_else(|| wrong("its row is not complete".into()))?;
            if let Some(other) = row
                .iter()
                .find(|p| p.name != *name && splits.contains_key(&p.name))
            {
                return Err(wrong(format!(
                    "it needs {}, which is to be split itself",
                    other.name
                )));
            }
            let cage = row.first().map_or(0, |p| p.front_panel);
            for (index, port) in ports.iter_mut().skip(at).take(n).enumerate() {
                port.name = format!("{name}s{index}");
                port.front_panel = cage;
                port.breakout_modes = 0;
                port.max_speed_mbps /= u32::from(parts);
            }
        }
        self.ports = ports;
        Ok(())
    }
}

fn part(blob: &[u8], offset: u32, size: usize) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    blob.get(start..start.checked_add(size)?)
}

/// The base itself is the box's (its management port): ports begin one above it. Without a count,
/// as many as needed are granted.
fn nth_mac(base: [u8; 6], index: usize, count: u16) -> Option<[u8; 6]> {
    let step = u64::try_from(index).ok()? + 1;
    if count != 0 && step >= u64::from(count) {
        return None;
    }
    let [a, b, c, d, e, f] = base;
    let n = u64::from_be_bytes([0, 0, a, b, c, d, e, f]).checked_add(step)?;
    let [0, 0, a, b, c, d, e, f] = n.to_be_bytes() else {
        return None;
    };
    Some([a, b, c, d, e, f])
}

/// Base MAC and count of a TlvInfo image whose checksum is right.
fn eeprom_mac(image: &[u8]) -> Result<(Option<[u8; 6]>, u16), &'static str> {
    let header = image.get(..TLV_HEADER).ok_or("image too short")?;
    let [m0, m1, m2, m3, m4, m5, m6, m7, _version, hi, lo] = *header else {
        return Err("image too short");
    };
    if [m0, m1, m2, m3, m4, m5, m6, m7] != *TLV_MAGIC {
        return Err("no TlvInfo image");
    }
    let end = TLV_HEADER + usize::from(u16::from_be_bytes([hi, lo]));
    let whole = image.get(..end).ok_or("records longer than the image")?;
    let (mut mac, mut count, mut at, mut checked) = (None, 0, TLV_HEADER, false);
    while let Some(&[kind, len]) = whole.get(at..at + 2) {
        let value = whole
            .get(at + 2..at + 2 + usize::from(len))
            .ok_or("record cut off")?;
        match (kind, value) {
            (TLV_MAC_BASE, &[a, b, c, d, e, f]) => mac = Some([a, b, c, d, e, f]),
            (TLV_MAC_COUNT, &[hi, lo]) => count = u16::from_be_bytes([hi, lo]),
            (TLV_CRC32, &[a, b, c, d]) => {
                // over everything up to and with this record's type and length
                let covered = whole.get(..at + 2).ok_or("record cut off")?;
                if crc32(covered) != u32::from_be_bytes([a, b, c, d]) {
                    return Err("checksum is wrong");
                }
                checked = true;
                break;
            }
            _ => {}
        }
        at += 2 + value.len();
    }
    if !checked {
        return Err("no checksum");
    }
    if mac.is_none_or(|m: [u8; 6]| m[0] & 1 != 0 || m == [0; 6]) {
        return Err("no usable base MAC");
    }
    Ok((mac, count))
}

/// CRC-32 of IEEE 802.3, bit by bit: an image has a few hundred bytes.
fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |c, _| {
            (c >> 1) ^ (0xedb8_8320 & (c & 1).wrapping_neg())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use zerocopy::IntoBytes;

    fn eeprom(mac: [u8; 6], count: u16) -> Vec<u8> {
        let mut records = vec![TLV_MAC_BASE, 6];
        records.extend_from_slice(&mac);
        records.extend_from_slice(&[TLV_MAC_COUNT, 2]);
        records.extend_from_slice(&count.to_be_bytes());
        records.extend_from_slice(&[TLV_CRC32, 4]);
        let mut image = TLV_MAGIC.to_vec();
        image.push(1);
        image.extend_from_slice(&(records.len() as u16 + 4).to_be_bytes());
        image.extend_from_slice(&records);
        let crc = crc32(&image);
        image.extend_from_slice(&crc.to_be_bytes());
        image
    }

    fn blob(ports: &[(u16, u16)], eeprom: &[u8]) -> Vec<u8> {
        let head = std::mem::size_of::<raw::tnd_platform>() as u32;
        let size = std::mem::size_of::<raw::tnd_platform_port>() as u32;
        let mut p = raw::tnd_platform {
            struct_size: head as u16,
            port_count: ports.len() as u16,
            ports_offset: head,
            eeprom_offset: head + size * ports.len() as u32,
            eeprom_size: eeprom.len() as u32,
            ..Default::default()
        };
        tandem_abi::set_name(&mut p.chip, "tiny");
        let mut out = p.as_bytes().to_vec();
        for &(port, front_panel) in ports {
            let e = raw::tnd_platform_port {
                port,
                front_panel,
                ..Default::default()
            };
            out.extend_from_slice(e.as_bytes());
        }
        out.extend_from_slice(eeprom);
        out
    }

    #[test]
    fn ports_are_named_by_the_box_and_numbered_by_the_chip() {
        let image = eeprom([2, 0, 0, 0, 0, 0xff], 64);
        let p = Platform::parse(&blob(&[(2, 1), (1, 2)], &image)).unwrap();
        assert_eq!(p.chip, "tiny");
        assert_eq!(p.ports[0].name, "swp2");
        assert_eq!(p.ports[1].name, "swp1");
        assert_eq!(p.ports[1].mac, Some([2, 0, 0, 0, 1, 0]), "carries over");
        assert!(p.warnings.is_empty());
    }

    #[test]
    fn a_broken_eeprom_costs_the_macs_only() {
        let mut image = eeprom([2, 0, 0, 0, 0, 1], 0);
        image[15] ^= 1;
        let p = Platform::parse(&blob(&[(1, 1)], &image)).unwrap();
        assert_eq!(p.ports[0].mac, None);
        assert!(p.warnings[0].contains("checksum is wrong"));
    }

    #[test]
    fn impossible_maps_are_refused() {
        let image = eeprom([2, 0, 0, 0, 0, 1], 0);
        assert!(Platform::parse(&blob(&[(1, 1), (1, 2)], &image)).is_err());
        assert!(Platform::parse(&blob(&[], &image)).is_err());
        let mut outside = blob(&[(1, 1)], &image);
        outside[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(Platform::parse(&outside).is_err());
    }

    fn board(ports: u16, modes: u32) -> Platform {
        let map: Vec<(u16, u16)> = (1..=ports).map(|n| (n, n)).collect();
        let mut p = Platform::parse(&blob(&map, &eeprom([2, 0, 0, 0, 0, 0], 0))).unwrap();
        for port in &mut p.ports {
            port.breakout_modes = modes;
            port.max_speed_mbps = 100_000;
        }
        p
    }

    fn names(p: &Platform) -> String {
        let names: Vec<&str> = p.ports.iter().map(|p| p.name.as_str()).collect();
        names.join(" ")
    }

    #[test]
    fn a_split_takes_the_neighbours() {
        let mut p = board(8, raw::TND_BREAKOUT_2 | raw::TND_BREAKOUT_4);
        let macs: Vec<_> = p.ports.iter().map(|p| p.mac).collect();
        let splits = Splits::from([("swp1".into(), 4), ("swp7".into(), 2)]);
        p.split(&splits).unwrap();
        assert_eq!(
            names(&p),
            "swp1s0 swp1s1 swp1s2 swp1s3 swp5 swp6 swp7s0 swp7s1"
        );
        assert!(
            p.ports.iter().zip(1..).all(|(p, n)| p.port == n),
            "each has a number of its own"
        );
        assert_eq!(p.ports.iter().map(|p| p.mac).collect::<Vec<_>>(), macs);
        let speeds: Vec<_> = p.ports.iter().map(|p| p.max_speed_mbps / 1000).collect();
        assert_eq!(speeds, [25, 25, 25, 25, 100, 100, 50, 50]);
        assert_eq!(p.ports[7].front_panel, 7);
    }

    #[test]
    fn what_can_t_be_split_says_why_and_changes_nothing() {
        let both = raw::TND_BREAKOUT_2 | raw::TND_BREAKOUT_4;
        let cases = [
            (
                both,
                vec![("swp1", 3)],
                "swp1 can't be split into 3: its cage can be split into 2 or 4",
            ),
            (
                raw::TND_BREAKOUT_4,
                vec![("swp1", 2)],
                "its cage can be split into 4",
            ),
            (0, vec![("swp1", 2)], "its cage has one port"),
            (
                both,
                vec![("swp2", 2)],
                "ports are wired in rows of 2, this row's first is swp1",
            ),
            (both, vec![("swp9", 2)], "tiny has no such port"),
            (both, vec![("swp5", 4)], "its row is not complete"),
            (
                both,
                vec![("swp1", 4), ("swp3", 2)],
                "it needs swp3, which is to be split itself",
            ),
        ];
        for (modes, splits, why) in cases {
            let mut p = board(6, modes);
            let before = p.clone();
            let splits = splits
                .iter()
                .map(|(n, parts)| ((*n).to_owned(), *parts))
                .collect();
            let e = p.split(&splits).unwrap_err().to_string();
            assert!(e.contains(why), "{e}");
            assert_eq!(p, before);
        }
    }

    #[test]
    fn crc_is_ieee() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Platform::parse(&data);
            let _ = eeprom_mac(&data);
        }
    }
}
