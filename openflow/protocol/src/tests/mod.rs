// SPDX-License-Identifier: Apache-2.0
//! Messages there and back, any bytes, and the error of each malformed one.

mod framing;
// members stand in lines as the standard's structures have them
#[rustfmt::skip]
mod layouts;
mod malformed10;
mod malformed13;
mod trips;

use crate::Version;

/// A message with its header.
fn message(version: Version, kind: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![version as u8, kind, 0, 0, 0, 0, 0, 1];
    out.extend_from_slice(body);
    let length = out.len() as u16;
    out[2..4].copy_from_slice(&length.to_be_bytes());
    out
}
