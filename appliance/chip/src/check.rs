// SPDX-License-Identifier: Apache-2.0
//! What can't be carried out, said before anything is done.

use tandem_swconfig::{Config, Name};

/// Whether a configuration can be carried out with these ports.
///
/// # Errors
/// Why it can't, in one line.
pub(crate) fn check(config: &Config, ports: &[Name]) -> Result<(), String> {
    // what this engine never can is said first
    crate::channels::check(config)?;
    tandem_swstack::check(config, ports, "chip")?;
    tandem_swstack::tree::check(config, ports)
}
