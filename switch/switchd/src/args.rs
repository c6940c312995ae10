//! The command line and the configuration file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::{Parser, ValueEnum};
use serde::Deserialize;
use tandem_sal::Splits;

use crate::forward_mark::Hook;
use tandem_core::storm;

/// Storm control in a file: packets a second by kind, by port.
type StormFile = BTreeMap<String, BTreeMap<String, u64>>;

/// What happens to what does not fit into the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// Its packets go to the CPU, which answers: never wrong.
    Trap,
    /// It is only reported; a less specific entry answers, wrongly. For teaching.
    Fail,
}

/// The switch daemon: makes the chip forward as this network namespace's kernel tables say.
#[derive(Clone, Debug, Parser)]
#[command(name = "switchd", version)]
pub struct Args {
    /// Instance name; by default derived from the network namespace.
    #[arg(long)]
    pub name: Option<String>,
    /// What happens to what does not fit [default: trap].
    #[arg(long, value_enum)]
    pub policy: Option<Policy>,
    /// Split a front-panel port into 2 or 4, if its cage can; its neighbours are disabled.
    #[arg(long = "split", value_name = "swpN=PARTS", value_parser = split)]
    pub splits: Vec<(String, u16)>,
    /// Storm control of a port; KIND is broadcast, multicast or unknown_unicast, PPS packets a second.
    #[arg(long = "storm", value_name = "swpN=KIND:PPS", value_parser = storm_limit)]
    pub storms: Vec<storm::Wanted>,
    /// A TOML file with the keys `policy`, `log`, `split` and `storm`; the command line goes first.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What to log to stderr: error, warn, info, debug, trace, off, or a tracing filter (info,tandem_ports=debug) [default: info].
    #[arg(long)]
    pub log: Option<String>,
    /// Where the programs stand that keep forwarded frames from leaving twice [default: tcx where the kernel has it].
    #[arg(long, value_enum)]
    pub forward_mark: Option<Hook>,
    /// Keep all privileges, paths and system calls: for debugging.
    #[arg(long)]
    pub no_sandbox: bool,
}

/// The file's part. Other keys are the business of who else reads the file.
#[derive(Clone, Debug, Default, Deserialize)]
struct File {
    policy: Option<Policy>,
    log: Option<String>,
    #[serde(default)]
    split: Splits,
    #[serde(default)]
    storm: StormFile,
}

impl File {
    fn storms(&self) -> anyhow::Result<Vec<storm::Wanted>> {
        let ports = self.storm.iter();
        let all = ports.flat_map(|(port, kinds)| kinds.iter().map(move |(k, r)| (port, k, *r)));
        all.map(|(port, kind, rate)| storm::Wanted::new(port, kind, rate))
            .collect()
    }
}

fn storm_limit(text: &str) -> anyhow::Result<storm::Wanted> {
    let (port, kind, rate) = text
        .split_once('=')
        .and_then(|(port, limit)| Some((port, limit.split_once(':')?)))
        .and_then(|(port, (kind, rate))| Some((port, kind, rate.parse().ok()?)))
        .ok_or_else(|| anyhow!("wanted swpN=KIND:PPS, such as swp1=broadcast:500"))?;
    storm::Wanted::new(port, kind, rate)
}

fn split(text: &str) -> anyhow::Result<(String, u16)> {
    text.split_once('=')
        .and_then(|(port, parts)| Some((port.to_owned(), parts.parse().ok()?)))
        .ok_or_else(|| anyhow!("wanted swpN=PARTS, such as swp1=4"))
}

/// What holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Policy.
    pub policy: Policy,
    /// Log filter.
    pub log: String,
    /// Ports that are split.
    pub splits: Splits,
    /// Storm control that the operator wants; of two of a port and kind the later.
    pub storms: Vec<storm::Wanted>,
    /// Where the forward mark's programs stand; none: in the best place.
    pub forward_mark: Option<Hook>,
    /// Give away what isn't needed.
    pub sandbox: bool,
}

impl Args {
    /// Command line over file over defaults.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        let file = match &self.config {
            None => File::default(),
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("configuration {}", path.display()))?;
                parse(&text).with_context(|| format!("configuration {}", path.display()))?
            }
        };
        let mut storms = file.storms().context("storm control")?;
        storms.extend(self.storms.iter().cloned());
        let mut splits = file.split;
        splits.extend(self.splits.iter().cloned());
        Ok(Settings {
            splits,
            storms,
            policy: self.policy.or(file.policy).unwrap_or(Policy::Trap),
            log: self
                .log
                .clone()
                .or(file.log)
                .unwrap_or_else(|| "info".into()),
            forward_mark: self.forward_mark,
            sandbox: !self.no_sandbox,
        })
    }
}

/// Whether a file of this text would be taken; if not, one line says why.
///
/// # Errors
/// The first thing in it that can't be.
pub fn check_file(text: &str) -> anyhow::Result<()> {
    parse(text)?.storms().map(drop)
}

fn parse(text: &str) -> anyhow::Result<File> {
    // a value of the file that is quoted may have lines
    toml::from_str(text).map_err(|e| anyhow::anyhow!("{}", e.message().replace('\n', " ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_goes_before_the_file() {
        let dir = std::env::temp_dir().join(format!("switchd-args-{}", std::process::id()));
        std::fs::write(
            &dir,
            "policy = \"fail\"\nlog = \"debug\"\nprofile = \"tiny\"\n[split]\nswp1 = 2\n",
        )
        .unwrap();
        let file = dir.to_str().unwrap();
        let s = Args::try_parse_from(["switchd", "--config", file])
            .unwrap()
            .settings()
            .unwrap();
        assert_eq!((s.policy, s.log.as_str()), (Policy::Fail, "debug"));
        let s = Args::try_parse_from(["switchd", "--config", file, "--policy", "trap"])
            .unwrap()
            .settings()
            .unwrap();
        assert_eq!(s.policy, Policy::Trap);
        assert_eq!(s.splits, Splits::from([("swp1".into(), 2)]));
        let more = ["switchd", "--config", file, "--split", "swp5=4"];
        let s = Args::try_parse_from(more).unwrap().settings().unwrap();
        let both = Splits::from([("swp1".into(), 2), ("swp5".into(), 4)]);
        assert_eq!(s.splits, both);
        for wrong in ["swp1", "swp1=", "swp1=two", "=x"] {
            assert!(Args::try_parse_from(["switchd", "--split", wrong]).is_err());
        }
        std::fs::remove_file(dir).unwrap();
        assert!(parse("policy = \"maybe\"").is_err());
    }

    #[test]
    fn storm_control_is_said_by_port_and_kind() {
        let file = "[storm.swp1]\nbroadcast = 500\nmulticast = 7\n";
        let said = parse(file).unwrap().storms().unwrap();
        let want = |kind, rate| storm::Wanted::new("swp1", kind, rate).unwrap();
        assert_eq!(said, [want("broadcast", 500), want("multicast", 7)]);
        assert_eq!(storm_limit("swp1=broadcast:500").unwrap(), said[0]);
        for wrong in ["swp1", "swp1=broadcast", "swp1=broadcast:x", "swp1=rain:5"] {
            assert!(storm_limit(wrong).is_err(), "{wrong}");
        }
        for wrong in [
            "swp1 = 5",
            "[storm.swp1]\nrain = 5",
            "[storm.swp1]\nbroadcast = 0",
        ] {
            let wrong = wrong.replace("swp1 = 5", "[storm]\nswp1 = 5");
            let e = check_file(&wrong).unwrap_err().to_string();
            assert!(!e.contains('\n'), "{e}");
        }
    }
}
