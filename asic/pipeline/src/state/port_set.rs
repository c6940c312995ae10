//! Sets of ports, as masks: where entries and rules of flow ports send to.

use tandem_abi::raw;

/// Bit `n % 8` of byte `n / 8` is port `n`.
pub type PortMask = [u8; raw::TND_PORT_SET_BYTES];

/// The ports of a mask, ascending; 0 is none.
pub fn ports_of(mask: &PortMask) -> impl Iterator<Item = u16> {
    let bits = mask.iter().enumerate();
    bits.flat_map(|(at, byte)| {
        let mut left = *byte;
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros() as u16;
            left &= left.wrapping_sub(1);
            (bit < 8).then_some(at as u16 * 8 + bit)
        })
    })
    .filter(|port| *port != 0)
}

/// The mask of some ports; those beyond it are left out.
pub fn mask_of(ports: impl IntoIterator<Item = u16>) -> PortMask {
    let mut mask = PortMask::default();
    for port in ports {
        if let Some(byte) = mask.get_mut(usize::from(port / 8)) {
            *byte |= 1 << (port % 8);
        }
    }
    mask
}

/// A port set (`struct tnd_port_set`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortSet {
    /// The driver's key.
    pub id: u16,
    /// Who gets the frames.
    pub ports: PortMask,
}
