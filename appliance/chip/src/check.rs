// SPDX-License-Identifier: Apache-2.0
//! What can't be carried out, said before anything is done.

use tandem_swconfig::{Config, Name};

/// What is set of the spanning tree, whether there is one or not.
fn tree(config: &Config, ports: &[Name]) -> Result<(), String> {
    let words = |e: tandem_rstp::Refusal| format!("spanning tree: {e}");
    crate::tree::bridge([0; 6], &config.tree)
        .check()
        .map_err(words)?;
    for (name, of) in &config.interfaces {
        let set = crate::tree::port([0; 6], &of.tree).check();
        set.map_err(|e| format!("{name}: {}", words(e)))?;
    }
    match config.tree.on && ports.len() > tandem_rstp::MOST_PORTS {
        true => Err(words(tandem_rstp::Refusal::TooManyPorts)),
        false => Ok(()),
    }
}

/// Whether a configuration can be carried out with these ports.
///
/// # Errors
/// Why it can't, in one line.
pub(crate) fn check(config: &Config, ports: &[Name]) -> Result<(), String> {
    tandem_swstack::check(config, ports, "chip")?;
    tree(config, ports)
}
