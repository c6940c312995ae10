//! What a board's firmware tells: the port map and the system EEPROM (seed 000 §6.1 and §6.4).
//!
//! ```text
//!   struct tnd_platform │ struct tnd_platform_port × port_count │ ONIE TlvInfo image
//! ```
//!
//! The EEPROM image follows the ONIE design document, "ONIE System EEPROM format": `TlvInfo\0`, version 1, length (big
//! endian), then type-length-value records; the last one (0xFE) is the CRC-32 of IEEE 802.3 over everything before its
//! value.

use crate::profile::Profile;
use tandem_abi::raw;
use zerocopy::IntoBytes;

/// TLV types of the ONIE document that are written here.
mod tlv {
    pub const PRODUCT_NAME: u8 = 0x21;
    pub const PART_NUMBER: u8 = 0x22;
    pub const SERIAL: u8 = 0x23;
    pub const BASE_MAC: u8 = 0x24;
    pub const MAC_COUNT: u8 = 0x2a;
    pub const VENDOR: u8 = 0x2d;
    pub const CRC32: u8 = 0xfe;
}

/// `aa:bb:cc:dd:ee:ff`.
#[must_use]
pub fn parse_mac(s: &str) -> Option<[u8; 6]> {
    let mut out = [0; 6];
    let mut parts = s.split(':');
    for b in &mut out {
        let p = parts.next()?;
        if p.len() != 2 {
            return None;
        }
        *b = u8::from_str_radix(p, 16).ok()?;
    }
    if parts.next().is_some() || out[0] & 1 != 0 {
        return None;
    }
    Some(out)
}

/// The ONIE TlvInfo image of a board; `base_mac` overrides the profile's.
#[must_use]
pub fn eeprom(profile: &Profile, base_mac: Option<[u8; 6]>) -> Vec<u8> {
    let info = &profile.platform;
    let mac = base_mac
        .or_else(|| parse_mac(&info.base_mac))
        .unwrap_or_default();
    let mut records = Vec::new();
    let mut put = |kind: u8, value: &[u8]| {
        let value = value.get(..value.len().min(255)).unwrap_or_default();
        records.extend([kind, value.len() as u8]);
        records.extend(value);
    };
    put(tlv::PRODUCT_NAME, info.product.as_bytes());
    put(tlv::PART_NUMBER, info.part_number.as_bytes());
    put(tlv::SERIAL, info.serial.as_bytes());
    put(tlv::BASE_MAC, &mac);
    put(tlv::MAC_COUNT, &info.mac_count.to_be_bytes());
    put(tlv::VENDOR, info.vendor.as_bytes());
    records.extend([tlv::CRC32, 4]);
    let mut image = b"TlvInfo\0\x01".to_vec();
    image.extend((records.len() as u16 + 4).to_be_bytes());
    image.extend(records);
    let crc = crc32(&image);
    image.extend(crc.to_be_bytes());
    image
}

/// The platform blob that goes into the region at `platform_offset`.
#[must_use]
pub fn blob(profile: &Profile, base_mac: Option<[u8; 6]>) -> Vec<u8> {
    let head = size_of::<raw::tnd_platform>();
    let ports_len = usize::from(profile.port_count()) * size_of::<raw::tnd_platform_port>();
    let image = eeprom(profile, base_mac);
    let mut p = raw::tnd_platform {
        struct_size: head as u16,
        port_count: profile.port_count(),
        ports_offset: head as u32,
        eeprom_offset: (head + ports_len) as u32,
        eeprom_size: image.len() as u32,
        ..Default::default()
    };
    tandem_abi::set_name(&mut p.chip, &profile.name);
    let mut out = p.as_bytes().to_vec();
    let mut number = 1;
    for run in &profile.ports {
        let modes = run.breakout.iter().fold(0, |m, b| {
            m | match b {
                2 => raw::TND_BREAKOUT_2,
                4 => raw::TND_BREAKOUT_4,
                _ => raw::TND_BREAKOUT_NONE,
            }
        });
        for _ in 0..run.count {
            let port = raw::tnd_platform_port {
                port: number,
                front_panel: number,
                cage: run.cage.to_abi(),
                lanes: run.lanes,
                breakout_modes: modes,
                max_speed_mbps: run.speed_mbps,
            };
            out.extend(port.as_bytes());
            number += 1;
        }
    }
    out.extend(image);
    out
}

/// CRC-32 of IEEE 802.3 (reflected, initial and final value all ones), as zlib's.
#[must_use]
pub fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(!0u32, |mut crc, b| {
        crc ^= u32::from(*b);
        for _ in 0..8 {
            crc = if crc & 1 != 0 {
                crc >> 1 ^ 0xedb8_8320
            } else {
                crc >> 1
            };
        }
        crc
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_of_the_check_string() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn eeprom_is_a_chain_of_tlvs_with_a_good_checksum() {
        let p = Profile::builtin("tiny").unwrap();
        let image = eeprom(&p, Some([2, 0, 0, 0, 0, 9]));
        assert_eq!(&image[..9], b"TlvInfo\0\x01");
        let len = u16::from_be_bytes([image[9], image[10]]) as usize;
        assert_eq!(len, image.len() - 11);
        let (mut at, mut types, mut mac) = (11, Vec::new(), None);
        while at < image.len() {
            let (t, l) = (image[at], image[at + 1] as usize);
            if t == 0x24 {
                mac = Some(image[at + 2..at + 2 + l].to_vec());
            }
            types.push(t);
            at += 2 + l;
        }
        assert_eq!(at, image.len());
        assert_eq!(types, [0x21, 0x22, 0x23, 0x24, 0x2a, 0x2d, 0xfe]);
        assert_eq!(mac.unwrap(), [2, 0, 0, 0, 0, 9]);
        let crc = u32::from_be_bytes(image[image.len() - 4..].try_into().unwrap());
        assert_eq!(crc, crc32(&image[..image.len() - 4]));
    }

    #[test]
    fn blob_holds_what_its_offsets_say() {
        for name in Profile::names() {
            let p = Profile::builtin(name).unwrap();
            let b = blob(&p, None);
            let eeprom_at = u32::from_le_bytes(b[8..12].try_into().unwrap()) as usize;
            let eeprom_len = u32::from_le_bytes(b[12..16].try_into().unwrap()) as usize;
            assert_eq!(eeprom_at + eeprom_len, b.len());
            assert_eq!(b[eeprom_at..], eeprom(&p, None));
            assert_eq!(eeprom_at, 48 + 16 * usize::from(p.port_count()));
        }
    }

    #[test]
    fn macs_are_checked() {
        assert_eq!(parse_mac("02:00:00:00:00:0a"), Some([2, 0, 0, 0, 0, 10]));
        for s in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:0a:01",
            "03:00:00:00:00:00",
            "2:00:00:00:00:00",
            "0x:00:00:00:00:00",
        ] {
            assert_eq!(parse_mac(s), None, "{s}");
        }
    }
}
