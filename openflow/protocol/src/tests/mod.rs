// SPDX-License-Identifier: Apache-2.0
//! Messages there and back, any bytes, and the error of each malformed one.

mod framing;
// members stand in lines as the standard's structures have them
#[rustfmt::skip]
mod layouts;
mod malformed10;
mod malformed13;
mod trips;
