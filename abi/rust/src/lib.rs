//! The device ABI in Rust: layouts generated from `abi/tandem.h`, and the rings.
//!
//! Knows nothing of how the shared memory came to be: that is the carrier's job.
#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

#[cfg(target_endian = "big")]
compile_error!(
    "the ABI is little endian and its structs are used in place: this target is big endian"
);

/// Structs and constants of `abi/tandem.h`, under their C names.
///
/// Enumerations and flags have the width of the field that carries them (`TND_OP_CREATE: u16`,
/// `TND_ACT_TRAP: u8`); sizes and counts are `usize`. `Default` is all zeroes.
#[allow(
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    clippy::all,
    rustdoc::all
)]
pub mod raw {
    include!("generated.rs");
}

#[cfg(feature = "testing")]
pub mod command;
pub mod endpoint;
pub mod handshake;
pub mod layout;
pub mod memory;
pub mod object;
pub mod ring;
pub mod status;

#[cfg(feature = "testing")]
pub use command::Command;
pub use endpoint::{DevicePair, DeviceRings, DriverPair, DriverRings};
pub use layout::{Layout, LayoutError, LayoutSpec};
pub use memory::{Arena, HeapMemory, Memory};
pub use object::{Object, ObjectKey};
pub use ring::{Consumer, Corrupt, Producer, PushError, RingLayout};
pub use status::{Status, describe};

/// Fills a fixed name field: cut at a character's border, always NUL terminated.
pub fn set_name(field: &mut [u8; raw::TND_NAME_SIZE], name: &str) {
    *field = [0; raw::TND_NAME_SIZE];
    let mut end = name.len().min(raw::TND_NAME_SIZE - 1);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    for (to, from) in field.iter_mut().zip(name.as_bytes().iter().take(end)) {
        *to = *from;
    }
}

/// Reads a name field up to its NUL; what is not printable becomes `?`.
pub fn get_name(field: &[u8]) -> String {
    field
        .iter()
        .take_while(|&&b| b != 0)
        .map(|&b| {
            if b.is_ascii_graphic() || b == b' ' {
                char::from(b)
            } else {
                '?'
            }
        })
        .collect()
}
