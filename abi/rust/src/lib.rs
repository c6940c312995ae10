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
