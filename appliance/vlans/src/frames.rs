//! The tag of a frame, on and off: a TAP of a VLAN has frames without it.

use crate::database::Refusal;

/// 802.1Q.
const TPID: [u8; 2] = [0x81, 0x00];

/// The VLAN id of a frame's tag (0: a tag of priority alone, or none), and the frame without it. None: it is too short.
#[must_use]
pub fn untagged(frame: &[u8]) -> Option<(u16, Vec<u8>)> {
    let (macs, rest) = frame.split_at_checked(12)?;
    match rest {
        [a, b, hi, lo, inner @ ..] if [*a, *b] == TPID => {
            let vid = u16::from_be_bytes([*hi, *lo]) & 0xfff;
            Some((vid, [macs, inner].concat()))
        }
        [_, _, ..] => Some((0, frame.to_vec())),
        _ => None,
    }
}

/// A frame without a tag, with that of a VLAN. None: it is too short.
#[must_use]
pub fn tagged(frame: &[u8], vid: u16) -> Option<Vec<u8>> {
    let (macs, rest) = frame.split_at_checked(12)?;
    Some([macs, &TPID, &vid.to_be_bytes(), rest].concat())
}

/// Is it the address of one station?
pub(crate) fn is_station(mac: [u8; 6]) -> Result<(), Refusal> {
    match mac[0] & 1 != 0 || mac == [0; 6] {
        true => Err(Refusal::NoStation(mac)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_comes_on_and_off() {
        let frame: Vec<u8> = (0..60).collect();
        let with = tagged(&frame, 4094).unwrap();
        assert_eq!(with.len(), 64);
        assert_eq!(untagged(&with), Some((4094, frame.clone())));
        assert_eq!(untagged(&frame), Some((0, frame.clone())));
        for n in 0..14 {
            assert_eq!(untagged(&frame[..n]), None, "{n}");
        }
        assert_eq!(tagged(&frame[..11], 1), None);
    }
}
