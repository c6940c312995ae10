//! `--port swpN=KIND:ARG`: what a port is cabled to.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use tandem_linux::netns;
use tandem_linux::sandbox::{Capability, Sandbox, folder_of};

/// How a capture is played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// As fast as frames are taken.
    #[default]
    Fast,
    /// At the distances of its time stamps.
    Timed,
}

/// The kind of a port with its argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// A netdev, in the namespace `netns` or in the daemon's own.
    Packet {
        /// Interface name.
        iface: String,
        /// Name under /run/netns, or a path.
        netns: Option<String>,
        /// By an AF_XDP socket where the netdev can have one, not by a packet socket.
        xdp: bool,
    },
    /// A TAP netdev that is made: its network stack is the far end of the cable.
    Tap {
        /// Interface name.
        iface: String,
        /// Namespace to make it in.
        netns: Option<String>,
    },
    /// A Unix datagram socket of a process, such as the NIC of a virtual machine.
    Dgram {
        /// Our end, which is made.
        local: PathBuf,
        /// The far end.
        remote: PathBuf,
    },
    /// Frames from one capture file, frames into another.
    Pcap {
        /// Capture to play.
        input: PathBuf,
        /// Capture to write.
        output: PathBuf,
        /// Pace of playing.
        pace: Pace,
    },
}

/// What a daemon with such ports keeps when it locks itself in, besides what it writes itself.
pub fn rights<'a>(kinds: impl IntoIterator<Item = &'a PortKind>) -> Sandbox {
    let mut sandbox = Sandbox {
        capabilities: vec![
            Capability::CAP_NET_ADMIN,
            Capability::CAP_NET_RAW,
            Capability::CAP_BPF,
        ],
        read: vec!["/proc".into(), netns::NETNS_DIR.into()],
        ..Sandbox::default()
    };
    for kind in kinds {
        match kind {
            PortKind::Packet { netns: ns, xdp, .. } => {
                if let Some(ns) = ns {
                    // setns(2)
                    sandbox.capabilities.push(Capability::CAP_SYS_ADMIN);
                    sandbox.read.push(netns::path_of(ns));
                }
                if *xdp {
                    // a program that reads the kernel's structures, a memory that is locked
                    sandbox.capabilities.push(Capability::CAP_PERFMON);
                    sandbox.capabilities.push(Capability::CAP_IPC_LOCK);
                }
            }
            PortKind::Tap { netns: ns, .. } => {
                // it may be moved to another namespace, and is watched there
                sandbox.capabilities.push(Capability::CAP_SYS_ADMIN);
                sandbox.write.push("/dev/net/tun".into());
                sandbox.read.extend(ns.iter().map(|ns| netns::path_of(ns)));
            }
            PortKind::Dgram { local, .. } => sandbox.write.push(folder_of(local)),
            PortKind::Pcap { input, output, .. } => {
                sandbox.read.push(input.clone());
                sandbox.write.push(folder_of(output));
            }
        }
    }
    sandbox
}

/// Ports by their names, and what each is cabled to: no name and no netdev twice.
///
/// # Errors
/// One line.
pub fn check<'a>(ports: impl IntoIterator<Item = (String, &'a PortKind)>) -> Result<(), String> {
    let (mut kinds, mut netdevs) = (BTreeMap::new(), BTreeMap::new());
    for (name, kind) in ports {
        if let Some(first) = kinds.insert(name.clone(), kind) {
            return Err(format!("{name} is cabled twice: to {first} and to {kind}"));
        }
        if let PortKind::Packet { iface, netns, .. } | PortKind::Tap { iface, netns } = kind
            && let Some(first) = netdevs.insert((iface, netns), name.clone())
        {
            return Err(format!("{iface} is cabled twice: to {first} and to {name}"));
        }
    }
    Ok(())
}

/// One port and what it is cabled to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// Number, from 1: the N of `swpN`.
    pub number: u16,
    /// What it is cabled to.
    pub kind: PortKind,
}

/// Why a port specification can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "port '{text}': {why}; expected swpN=IFACE[@NETNS], swpN=af_xdp:IFACE[@NETNS], swpN=tap:NAME[@NETNS], swpN=dgram:LOCAL,REMOTE or swpN=pcap:IN,OUT[,timed|fast]"
)]
pub struct SpecError {
    text: String,
    why: String,
}

impl PortSpec {
    /// `swp1`.
    pub fn name(&self) -> String {
        format!("swp{}", self.number)
    }
}

impl FromStr for PortSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let fail = |why: String| SpecError {
            text: text.to_owned(),
            why,
        };
        let (name, cable) = text
            .split_once('=')
            .ok_or_else(|| fail("there is no '='".into()))?;
        let number = name
            .strip_prefix("swp")
            .and_then(|n| n.parse::<u16>().ok())
            .filter(|n| *n > 0)
            .ok_or_else(|| fail(format!("'{name}' is no front-panel port (swp1, swp2, …)")))?;
        let kind = match cable.split_once(':') {
            Some(("af_packet", arg)) => packet(arg, false).map_err(fail)?,
            Some(("af_xdp", arg)) => packet(arg, true).map_err(fail)?,
            Some(("tap", arg)) => {
                let (iface, netns) = interface(arg).map_err(fail)?;
                PortKind::Tap { iface, netns }
            }
            Some(("dgram", arg)) => dgram(arg).map_err(fail)?,
            Some(("pcap", arg)) => pcap(arg).map_err(fail)?,
            Some((kind, _)) => return Err(fail(format!("unknown kind '{kind}'"))),
            None => packet(cable, false).map_err(fail)?,
        };
        Ok(PortSpec { number, kind })
    }
}

fn packet(arg: &str, xdp: bool) -> Result<PortKind, String> {
    let (iface, netns) = interface(arg)?;
    Ok(PortKind::Packet { iface, netns, xdp })
}

fn interface(arg: &str) -> Result<(String, Option<String>), String> {
    let (iface, netns) = match arg.split_once('@') {
        Some((i, n)) => (i, Some(n)),
        None => (arg, None),
    };
    if iface.is_empty() || iface.len() > 15 || iface.contains(['/', ' ']) {
        return Err(format!("'{iface}' is no interface name (1 to 15 bytes)"));
    }
    if netns == Some("") {
        return Err("the namespace after '@' is empty".into());
    }
    Ok((iface.to_owned(), netns.map(str::to_owned)))
}

fn dgram(arg: &str) -> Result<PortKind, String> {
    match arg.split_once(',') {
        Some((local, remote)) if !local.is_empty() && !remote.is_empty() && local != remote => {
            Ok(PortKind::Dgram {
                local: local.into(),
                remote: remote.into(),
            })
        }
        _ => Err("two different paths of sockets are needed".into()),
    }
}

fn pcap(arg: &str) -> Result<PortKind, String> {
    let mut parts = arg.split(',');
    let (Some(input), Some(output)) = (parts.next(), parts.next()) else {
        return Err("two files are needed".into());
    };
    if input.is_empty() || output.is_empty() {
        return Err("two files are needed".into());
    }
    let pace = match (parts.next(), parts.next()) {
        (None, _) | (Some("fast"), None) => Pace::Fast,
        (Some("timed"), None) => Pace::Timed,
        (Some(other), _) => return Err(format!("'{other}' is neither timed nor fast")),
    };
    Ok(PortKind::Pcap {
        input: input.into(),
        output: output.into(),
        pace,
    })
}

impl fmt::Display for PortKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortKind::Packet { iface, netns, xdp } => {
                f.write_str(if *xdp { "af_xdp:" } else { "" })?;
                f.write_str(iface)?;
                netns.as_ref().map_or(Ok(()), |n| write!(f, "@{n}"))
            }
            PortKind::Tap { iface, netns } => {
                write!(f, "tap:{iface}")?;
                netns.as_ref().map_or(Ok(()), |n| write!(f, "@{n}"))
            }
            PortKind::Dgram { local, remote } => {
                write!(f, "dgram:{},{}", local.display(), remote.display())
            }
            PortKind::Pcap {
                input,
                output,
                pace,
            } => write!(
                f,
                "pcap:{},{}{}",
                input.display(),
                output.display(),
                match pace {
                    Pace::Fast => "",
                    Pace::Timed => ",timed",
                }
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_and_written() {
        for text in [
            "swp1=eth3",
            "swp32=veth0@blue",
            "swp1=af_xdp:eth3",
            "swp1=af_xdp:eth3@blue",
            "swp2=tap:t0",
            "swp2=tap:t0@n",
            "swp3=dgram:/a,/b",
            "swp3=pcap:a,b",
            "swp3=pcap:a,b,timed",
        ] {
            let spec: PortSpec = text.parse().unwrap();
            assert_eq!(format!("{}={}", spec.name(), spec.kind), text);
        }
        let spec: PortSpec = "swp1=af_packet:eth3".parse().unwrap();
        assert_eq!(spec.kind.to_string(), "eth3");
        let spec: PortSpec = "swp1=pcap:a,b,fast".parse().unwrap();
        assert_eq!(spec.kind.to_string(), "pcap:a,b");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, why) in [
            ("swp1", "no '='"),
            ("swp0=eth0", "no front-panel port"),
            ("eth0=eth0", "no front-panel port"),
            ("swp1=", "no interface name"),
            ("swp1=averyveryverylongname", "no interface name"),
            ("swp1=eth0@", "namespace"),
            ("swp1=foo:bar", "unknown kind 'foo'"),
            ("swp1=af_xdp:", "no interface name"),
            ("swp1=dgram:a", "two different paths"),
            ("swp1=dgram:a,a", "two different paths"),
            ("swp1=pcap:a", "two files"),
            ("swp1=pcap:a,b,slow", "neither"),
        ] {
            let e = text.parse::<PortSpec>().unwrap_err().to_string();
            assert!(e.contains(why), "{text}: {e}");
            assert!(!e.contains('\n'));
        }
    }
}
