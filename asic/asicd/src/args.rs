//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use tandem_ports::PortSpec;

/// Where the driver is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// A process on this machine: it connects to the instance's `driver.sock`.
    #[default]
    Socket,
    /// A kernel in a VM: this ivshmem server owns the memory between us.
    Ivshmem(PathBuf),
}

impl std::str::FromStr for Carrier {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "socket" => Ok(Carrier::Socket),
            Some(("ivshmem", path)) if !path.is_empty() => Ok(Carrier::Ivshmem(path.into())),
            _ => Err(format!(
                "{text} is no carrier: write socket or ivshmem:SOCKET"
            )),
        }
    }
}

/// None: no end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowDeadline(pub Option<Duration>);

impl std::str::FromStr for FlowDeadline {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        tandem_mgmt::deadline::parse(text).map(FlowDeadline)
    }
}

/// The software ASIC: forwards packets between its front-panel ports as its driver programs it.
#[derive(Clone, Debug, Parser)]
#[command(name = "asicd", version)]
pub struct Args {
    /// Instance name; by default derived from the network namespace.
    #[arg(long)]
    pub name: Option<String>,
    /// Chip profile: the name of a built-in one or the path of a TOML file.
    #[arg(long, default_value = "spectrum-sn2700")]
    pub profile: String,
    /// Cable a front-panel port: swpN=IFACE[@NETNS], swpN=af_xdp:IFACE[@NETNS] (by AF_XDP where that is as good as a
    /// packet socket, else by one), swpN=tap:NAME[@NETNS],
    /// swpN=dgram:LOCAL,REMOTE (Unix sockets), swpN=pcap:IN,OUT[,timed|fast].
    #[arg(long = "port", value_name = "swpN=CABLE")]
    pub ports: Vec<PortSpec>,
    /// Let writes and queries take the profile's time.
    #[arg(long)]
    pub latency: bool,
    /// A plan of faults that are armed from the start: a TOML file of [[fault]] tables, as `tandem fault` arms them live.
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
    /// Flow ports forward by entries that no driver looks after for so many seconds, and give every frame to the CPU then,
    /// until one opens them: its process is gone, or stopped. 10 at least; 0, never: for ever.
    #[arg(long, value_name = "SECONDS", default_value = "never")]
    pub flow_deadline: FlowDeadline,
    /// How the driver reaches the chip: socket (a process on this machine) or ivshmem:SOCKET (a VM;
    /// SOCKET is tandem-ivshmem-server's).
    #[arg(long, default_value = "socket", value_name = "CARRIER")]
    pub carrier: Carrier,
    /// What to log to stderr: error, warn, info, debug, trace, off, or a tracing filter (info,tandem_ports=debug).
    #[arg(long, default_value = "info")]
    pub log: String,
    /// Keep all privileges, paths and system calls: for debugging.
    #[arg(long)]
    pub no_sandbox: bool,
}

impl Args {
    /// One line when a port or a netdev is cabled twice.
    pub fn check(&self) -> Result<(), String> {
        tandem_ports::check(self.ports.iter().map(|p| (p.name(), &p.kind)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cable_per_port() {
        let args = |list: &[&str]| {
            let mut all = vec!["asicd"];
            for p in list {
                all.extend(["--port", p]);
            }
            Args::try_parse_from(all)
        };
        assert!(args(&["swp1=a", "swp2=a@n"]).unwrap().check().is_ok());
        let e = args(&["swp1=a", "swp1=b"]).unwrap().check().unwrap_err();
        assert!(e.contains("swp1 is cabled twice"), "{e}");
        let e = args(&["swp1=a", "swp2=af_xdp:a"]).unwrap();
        assert_eq!(
            e.check(),
            Err("a is cabled twice: to swp1 and to swp2".into())
        );
        assert!(args(&["swp0=a"]).is_err());
    }

    #[test]
    fn carriers() {
        assert_eq!("socket".parse(), Ok(Carrier::Socket));
        assert_eq!("ivshmem:/a:b".parse(), Ok(Carrier::Ivshmem("/a:b".into())));
        for bad in ["", "ivshmem", "ivshmem:", "pci:/x", "socket:/x"] {
            let e = bad.parse::<Carrier>().unwrap_err();
            assert!(e.contains("is no carrier"), "{e}");
        }
    }
}
