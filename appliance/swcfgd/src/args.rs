// SPDX-License-Identifier: Apache-2.0
//! The command line.

use std::path::{Path, PathBuf};

use clap::Parser;
use tandem_mgmt::instance::Instance;

/// The appliance's daemon: a VLAN switch and router on asicd; without bridges and VLAN interfaces of the kernel, or with
/// them and switchd.
#[derive(Clone, Debug, Parser)]
#[command(name = "swcfgd", version)]
pub struct Args {
    /// Instance name; by default derived from the network namespace.
    #[arg(long)]
    pub name: Option<String>,
    /// The folder of configurations: startup-config, and what `copy` writes; by default one of the instance's own in
    /// /var/lib/tandem.
    #[arg(long, value_name = "FOLDER")]
    pub startup: Option<PathBuf>,
    /// The folder of the sockets of FRR's daemons, which carry routing protocols out; by default /run/frr, and in a network
    /// namespace of its own the one of FRR's `-N INSTANCE`, /run/frr/INSTANCE.
    #[arg(long, value_name = "FOLDER")]
    pub frr: Option<PathBuf>,
    /// Whose the VLANs are: chip (a VLAN database, in switchd's place) or kernel (a bridge of the kernel, beside switchd).
    #[arg(long, value_enum, default_value_t = Which::Chip)]
    pub engine: Which,
    /// What to log to stderr: error, warn, info, debug, trace, off, or a tracing filter (info,tandem_ports=debug).
    #[arg(long, default_value = "info")]
    pub log: String,
    /// Keep all privileges, paths and system calls: for debugging.
    #[arg(long)]
    pub no_sandbox: bool,
}

/// Who carries a configuration out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Which {
    /// The VLAN database.
    Chip,
    /// The kernel's bridge.
    Kernel,
}

impl Args {
    /// The folder of configurations.
    #[must_use]
    pub fn startup(&self, instance: &Instance) -> PathBuf {
        let own = || Path::new("/var/lib/tandem").join(instance.name());
        self.startup.clone().unwrap_or_else(own)
    }
}
