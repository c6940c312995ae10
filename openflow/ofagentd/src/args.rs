// SPDX-License-Identifier: Apache-2.0
//! The command line.

use std::str::FromStr;

use clap::{Parser, ValueEnum};
use tandem_openflow::port;
use tandem_ports::{PortKind, PortSpec};

use crate::lsi::{self, LsiArg, Of};
use crate::target::Target;
use crate::tls::{Files, MISSING};

/// What happens while no controller is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fail {
    /// The flows stay and forward.
    Secure,
    /// It is an ordinary learning switch.
    Standalone,
}

/// How the chip's MAC table is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MacLookup {
    /// By address: for flows on `eth_dst` alone.
    Address,
    /// By VLAN and address: for flows on `vlan_vid` and `eth_dst`.
    Vlan,
}

/// A port: its cable, and its number for controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortArg {
    /// The cable; its number is the N of `swpN`.
    pub spec: PortSpec,
    /// For controllers.
    pub number: u32,
}

impl PortArg {
    /// The switch's own port, a TAP of this name.
    pub fn local(iface: &str) -> PortArg {
        let kind = PortKind::Tap {
            iface: iface.to_owned(),
            netns: None,
        };
        PortArg {
            spec: PortSpec { number: 0, kind },
            number: port::LOCAL,
        }
    }

    /// `swp1`; `local`.
    pub fn name(&self) -> String {
        match self.number {
            port::LOCAL => "local".into(),
            _ => self.spec.name(),
        }
    }
}

/// An interface's name.
pub fn interface(text: &str) -> Result<String, String> {
    match text.len() {
        1..=15 if !text.contains(['/', ' ', ':', '@']) => Ok(text.to_owned()),
        _ => Err("wanted an interface's name, 1 to 15 bytes".into()),
    }
}

/// Of `swp1=what:x` the `what`.
fn cable_of(text: &str) -> Option<&str> {
    let (_, cable) = text.split_once('=')?;
    Some(cable.split_once(':')?.0)
}

impl FromStr for PortArg {
    type Err = String;

    /// `swp1=IFACE` is port 1, `swp1=IFACE:7` is port 7.
    fn from_str(text: &str) -> Result<PortArg, String> {
        let read = |text: &str| text.parse::<PortSpec>().map_err(|e| e.to_string());
        let last = text.rsplit_once(':');
        let numbered = last.and_then(|(cable, n)| Some((cable, n.parse::<u32>().ok()?)));
        if let Some((cable, number)) = numbered
            && let Ok(spec) = read(cable)
        {
            let number =
                lsi::number(&number.to_string()).map_err(|e| format!("port '{text}': {e}"))?;
            return Ok(PortArg { spec, number });
        }
        let spec = read(text).map_err(|why| match (last, cable_of(text)) {
            (Some((cable, n)), Some(kind)) if read(cable).is_ok() => {
                let why = lsi::number(n).err().unwrap_or(why);
                format!("port '{text}': {why}, and '{kind}' no kind of cable")
            }
            _ => why,
        })?;
        let number = u32::from(spec.number);
        Ok(PortArg { spec, number })
    }
}

/// Versions of OpenFlow.
pub fn versions(text: &str) -> Result<Vec<String>, String> {
    text.split(',')
        .map(|v| match v {
            "1.0" | "1.3" => Ok(v.to_owned()),
            other => Err(format!("'{other}' is not spoken: 1.0, 1.3 or 1.0,1.3")),
        })
        .collect()
}

/// A datapath id.
pub fn datapath_id(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        // as people write and controllers show it
        None if text.len() == 16 => u64::from_str_radix(text, 16),
        None => text.parse(),
    };
    match parsed {
        Ok(0) | Err(_) => Err("wanted a number, 0xHEX or 16 hexadecimal digits, not 0".into()),
        Ok(id) => Ok(id),
    }
}

/// An OpenFlow switch, 1.0 and 1.3, on interfaces of this machine.
#[derive(Clone, Debug, Parser)]
#[command(name = "ofagentd", version)]
pub struct Args {
    /// Instance name; by default derived from the network namespace.
    #[arg(long)]
    pub name: Option<String>,
    /// A port: swpN=IFACE[@NETNS], its number for controllers being N, or swpN=IFACE:NUMBER; further kinds of cables as
    /// asicd has them (af_xdp:IFACE, tap:NAME, dgram:LOCAL,REMOTE, pcap:IN,OUT).
    #[arg(long = "port", value_name = "swpN=CABLE[:NUMBER]")]
    pub ports: Vec<PortArg>,
    /// The switch's ports are those of the asicd of this instance, and flows stand in its chip as far as they can.
    #[arg(long, conflicts_with = "ports")]
    pub asic: bool,
    /// How the chip's MAC table is looked up: by address alone, or by VLAN and address.
    #[arg(long, value_enum, default_value = "address", requires = "asic")]
    pub mac_lookup: MacLookup,
    /// Chains of flows of several tables behind one flow that are composed to rules of the chip. One with more is the
    /// software's.
    #[arg(long, value_name = "N", default_value = "8192", requires = "asic", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub chains: u32,
    /// A logical switch of some of the ports, with a number for each, else its own: red:swp1,swp2=5. Without, there is one of
    /// all ports. Options with LSI= are that one's.
    #[arg(long = "lsi", value_name = "NAME:swpN[=NUMBER],…")]
    pub lsis: Vec<LsiArg>,
    /// The port LOCAL: a TAP of this name is made, this machine's own interface at the switch.
    #[arg(long, value_name = "[LSI=]IFACE", value_parser = lsi::of_local)]
    pub local: Vec<Of<String>>,
    /// A controller to call: tcp:HOST[:PORT], ssl:HOST[:PORT], unix:PATH; or where controllers come: ptcp:[ADDRESS:][PORT],
    /// pssl:[ADDRESS:][PORT], punix:PATH.
    #[arg(long = "controller", value_name = "[LSI=]TARGET", value_parser = lsi::of_target)]
    pub controllers: Vec<Of<Target>>,
    /// Keys of ssl: and pssl:.
    #[command(flatten)]
    pub tls: Files,
    /// Datapath id: a number, 0xHEX or 16 hexadecimal digits [default: from the first port's address].
    #[arg(long, value_name = "[LSI=]ID", value_parser = lsi::of_id)]
    pub datapath_id: Vec<Of<u64>>,
    /// Without controllers: secure (the flows stay) or standalone (an ordinary learning switch).
    /// [default: secure]
    #[arg(long, value_name = "[LSI=]MODE", value_parser = lsi::of_fail)]
    pub fail: Vec<Of<Fail>>,
    /// Versions that are offered: 1.0, 1.3 or 1.0,1.3 [default: both].
    #[arg(long, value_name = "[LSI=]VERSIONS", value_parser = lsi::of_versions)]
    pub versions: Vec<Of<Vec<String>>>,
    /// Flow tables of 1.3; 1.0 has one.
    #[arg(long, value_name = "N", default_value_t = 255, value_parser = clap::value_parser!(u8).range(1..))]
    pub tables: u8,
    /// Flows at most, of all tables together.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=4_000_000))]
    pub max_flows: u32,
    /// Queues of each port, which count and do not schedule.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(0..=64))]
    pub queues: u32,
    /// Packet-ins a second for each controller; 0: no limit.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(0..=10_000_000))]
    pub packet_in_rate: u64,
    /// Seconds of silence after which a controller is asked whether it lives, and after as many more given up.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub probe: u64,
    /// What to log to stderr: error, warn, info, debug, trace, off, or a tracing filter (info,tandem_ports=debug).
    #[arg(long, default_value = "info")]
    pub log: String,
    /// Keep all privileges, paths and system calls: for debugging.
    #[arg(long)]
    pub no_sandbox: bool,
}

impl Args {
    /// All ports, `LOCAL` too.
    pub fn all_ports(&self) -> impl Iterator<Item = PortArg> {
        let local = self.local.iter().map(|o| PortArg::local(&o.value));
        self.ports.iter().cloned().chain(local)
    }

    /// One line when two ports have the same name, cable or number, or what is given is nobody's.
    pub fn check(&self) -> Result<(), String> {
        let locals: Vec<PortArg> = self
            .local
            .iter()
            .map(|o| PortArg::local(&o.value))
            .collect();
        let whose = |o: &Of<String>| match &o.lsi {
            Some(lsi) => format!("LOCAL of {lsi}"),
            None => "LOCAL".into(),
        };
        let front = self.ports.iter().map(|p| (p.name(), &p.spec.kind));
        let own = self.local.iter().map(whose);
        tandem_ports::check(front.chain(own.zip(locals.iter().map(|p| &p.spec.kind))))?;
        let tls = self.controllers.iter().any(|c| c.value.is_tls());
        if tls && !self.tls.all() {
            return Err(MISSING.into());
        }
        if self.tls.any() && !tls {
            return Err(
                "--private-key, --certificate and --ca-cert are for controllers by ssl: and pssl:, and there is none"
                    .into(),
            );
        }
        for (n, port) in self.ports.iter().enumerate() {
            for earlier in self.ports.iter().take(n) {
                if self.lsis.is_empty() && earlier.number == port.number {
                    return Err(format!(
                        "{} and {} have the same number {}",
                        earlier.name(),
                        port.name(),
                        port.number
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> Result<Args, clap::Error> {
        Args::try_parse_from(["ofagentd"].iter().chain(words))
    }

    #[test]
    fn ports_have_numbers_of_their_own_or_their_names() {
        for (text, cable, number) in [
            ("swp1=eth0", "eth0", 1),
            ("swp3=eth0:7", "eth0", 7),
            ("swp2=veth0@blue:9", "veth0@blue", 9),
            ("swp2=tap:t0", "tap:t0", 2),
            ("swp2=tap:t0:5", "tap:t0", 5),
        ] {
            let p: PortArg = text.parse().unwrap();
            assert_eq!(
                (p.spec.kind.to_string(), p.number),
                (cable.to_owned(), number)
            );
        }
        for (bad, why) in [
            ("swp1=eth0:0", "0 is no number"),
            ("swp1=eth0:65280", "65280 is no number"),
            ("swp1=eth0:99999999999", "99999999999 is no number"),
            ("swp1=eth0@blue:x", "x is no number"),
            (
                "swp1=what:x",
                "x is no number of a port, 1 to 65279, and 'what' no kind of cable",
            ),
            ("swp1=:x", "unknown kind ''"),
            ("eth0", "no '='"),
        ] {
            let said = bad.parse::<PortArg>().unwrap_err();
            assert!(said.contains(why), "{bad}: {said}");
        }
        let two = |a, b| args(&["--port", a, "--port", b]).unwrap().check();
        assert!(two("swp1=a", "swp2=b").is_ok());
        assert!(
            two("swp1=a", "swp1=b:3")
                .unwrap_err()
                .contains("cabled twice")
        );
        assert!(
            two("swp1=a", "swp2=b:1")
                .unwrap_err()
                .contains("same number")
        );
        let of = |words: &[&str]| args(words).unwrap().check();
        for (words, why) in [
            (
                &["--port", "swp1=a", "--port", "swp2=a"][..],
                "a is cabled twice: to swp1 and to swp2",
            ),
            (
                &["--port", "swp1=a", "--local", "a"],
                "a is cabled twice: to swp1 and to LOCAL",
            ),
            (
                &["--ca-cert", "/x", "--controller", "tcp:h"],
                "for controllers by ssl: and pssl:",
            ),
        ] {
            let said = of(words).unwrap_err();
            assert!(said.contains(why), "{words:?}: {said}");
        }
        assert!(of(&["--port", "swp1=a", "--port", "swp2=a@other"]).is_ok());
        let some = ["--controller", "pssl:", "--ca-cert", "/x"];
        assert_eq!(of(&some).unwrap_err(), MISSING);
        let rest = ["--certificate", "/y", "--private-key", "/z"];
        assert!(of(&[some, rest].concat()).is_ok());
    }

    #[test]
    fn ids_and_versions() {
        let id = |t| args(&["--datapath-id", t]).map(|a| a.datapath_id[0].value);
        assert_eq!(id("17").unwrap(), 17);
        assert_eq!(id("0xab").unwrap(), 0xab);
        assert_eq!(id("00000000000000ab").unwrap(), 0xab);
        for bad in ["0", "x", ""] {
            assert!(id(bad).is_err());
        }
        let offered = |t| args(&["--versions", t]).map(|a| a.versions[0].value.clone());
        assert_eq!(offered("1.3").unwrap(), ["1.3"]);
        assert_eq!(offered("1.0,1.3").unwrap(), ["1.0", "1.3"]);
        assert!(args(&["--versions", "1.4"]).is_err());
        assert!(args(&["--tables", "0"]).is_err());
    }
}
