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
    /// Whose the VLANs are: kernel (a bridge of the kernel, beside switchd) or chip (a VLAN database, in switchd's place)
    /// [default: kernel where the kernel can, else chip].
    #[arg(long, value_enum)]
    pub engine: Option<Which>,
    /// Say which engine that is, and why, and end.
    #[arg(long)]
    pub which: bool,
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

impl Which {
    /// The one for this kernel, and why it is.
    #[must_use]
    pub fn usual() -> (Which, String) {
        Which::by(&tandem_swkernel::does())
    }

    fn by(does: &Result<(), String>) -> (Which, String) {
        match does {
            Ok(()) => (
                Which::Kernel,
                "this kernel has bridges that filter by VLAN, and VLAN devices on them".into(),
            ),
            Err(lacks) => (Which::Chip, lacks.clone()),
        }
    }

    /// As the command line has it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Which::Chip => "chip",
            Which::Kernel => "kernel",
        }
    }
}

impl Args {
    /// The folder of configurations.
    #[must_use]
    pub fn startup(&self, instance: &Instance) -> PathBuf {
        let own = || Path::new("/var/lib/tandem").join(instance.name());
        self.startup.clone().unwrap_or_else(own)
    }
}

#[cfg(test)]
mod tests {
    use super::Which;

    #[test]
    fn the_kernel_decides_and_the_reason_is_said() {
        let (which, why) = Which::by(&Ok(()));
        assert!(which == Which::Kernel && why.contains("filter by VLAN"));
        let lacks = Err("this kernel has no VLAN devices on bridges".to_owned());
        let (which, why) = Which::by(&lacks);
        assert_eq!((which.word(), Err(why)), ("chip", lacks));
    }
}
