// SPDX-License-Identifier: Apache-2.0
//! Logical switches: subsets of the ports, each with numbers, controllers, a datapath id and tables of its own.
//!
//! ```text
//!   --port swp1=… swp2=… swp3=…    --lsi red:swp1,swp2    --lsi blue:swp3=1    --controller red=tcp:…
//!              │                              │                   │
//!        the machine's ports             red: 1, 2             blue: 1            one process, one thread
//! ```
//!
//! Without `--lsi` there is one switch, without a name, of all ports.

use std::fmt;
use std::str::FromStr;

use tandem_openflow::Version;

use crate::args::{Args, Fail, PortArg, datapath_id, interface, versions};
use crate::target::Target;

/// Logical switches at most.
pub const SWITCHES: usize = 16;
/// 1.0 has 16 bits for a port's number.
const LAST: u32 = 0xfeff;

/// Whose port, by which number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// The switch, as they were given.
    pub lsi: u16,
    /// For its controllers.
    pub number: u32,
}

/// `--lsi red:swp1,swp2=5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LsiArg {
    /// Its name.
    pub name: String,
    /// The N of each `swpN`, and its number for controllers, if it is told.
    pub ports: Vec<(u16, Option<u32>)>,
}

fn is_name(text: &str) -> bool {
    let own = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    (1..=15).contains(&text.len())
        && text.bytes().all(own)
        && text.starts_with(|c: char| c.is_ascii_lowercase())
}

/// A number for controllers.
pub fn number(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(n @ 1..=LAST) => Ok(n),
        _ => Err(format!("{text} is no number of a port, 1 to {LAST}")),
    }
}

/// The N of `swpN`.
pub fn front(text: &str) -> Result<u16, String> {
    let n = text.strip_prefix("swp").and_then(|n| n.parse().ok());
    n.filter(|n| *n > 0).ok_or_else(|| match text {
        "" => "a port is missing: swp1".into(),
        _ => format!("there is no port {text}"),
    })
}

impl FromStr for LsiArg {
    type Err = String;

    fn from_str(text: &str) -> Result<LsiArg, String> {
        let fail = |why: String| format!("--lsi {text}: {why}");
        let (name, list) = text
            .split_once(':')
            .ok_or_else(|| fail("wanted NAME:swp1,swp2=5".into()))?;
        if !is_name(name) {
            return Err(fail(format!(
                "'{name}' is no name, 1 to 15 of a-z, 0-9, - and _, a letter first"
            )));
        }
        let one = |p: &str| match p.split_once('=') {
            Some((swp, n)) => Ok((front(swp)?, Some(number(n)?))),
            None => Ok((front(p)?, None)),
        };
        let ports: Result<Vec<_>, String> = list.split(',').map(one).collect();
        Ok(LsiArg {
            name: name.to_owned(),
            ports: ports.map_err(fail)?,
        })
    }
}

/// The value of an option, of one logical switch or of all: `red=VALUE`, `VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Of<T> {
    /// Whose.
    pub lsi: Option<String>,
    /// What.
    pub value: T,
}

fn of<T>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Of<T>, String> {
    let named = text.split_once('=').filter(|(name, _)| is_name(name));
    let (lsi, rest) = match named {
        Some((name, rest)) => (Some(name.to_owned()), rest),
        None => (None, text),
    };
    let value = parse(rest)?;
    Ok(Of { lsi, value })
}

/// `[LSI=]TARGET`
pub fn of_target(text: &str) -> Result<Of<Target>, String> {
    of(text, |t| t.parse().map_err(|e: String| e))
}

/// `[LSI=]ID`
pub fn of_id(text: &str) -> Result<Of<u64>, String> {
    of(text, datapath_id)
}

/// `[LSI=]MODE`
pub fn of_fail(text: &str) -> Result<Of<Fail>, String> {
    of(text, |t| match t {
        "secure" => Ok(Fail::Secure),
        "standalone" => Ok(Fail::Standalone),
        other => Err(format!("'{other}' is neither secure nor standalone")),
    })
}

/// `[LSI=]VERSIONS`
pub fn of_versions(text: &str) -> Result<Of<Vec<String>>, String> {
    of(text, versions)
}

/// `[LSI=]IFACE`
pub fn of_local(text: &str) -> Result<Of<String>, String> {
    of(text, interface)
}

/// A switch as it is asked for.
#[derive(Clone, Debug)]
pub struct Switch {
    /// Empty: the one of all ports.
    pub name: String,
    /// The N of each `swpN` with its number; none: all ports, with their own.
    pub ports: Option<Vec<(u16, u32)>>,
    /// Whom it obeys.
    pub controllers: Vec<Target>,
    /// None: of its first port's address.
    pub datapath_id: Option<u64>,
    /// Without controllers.
    pub fail: Fail,
    /// What it offers.
    pub versions: Vec<String>,
    /// Its port `LOCAL`.
    pub local: Option<String>,
}

impl Switch {
    /// `red: `; nothing of the one of all ports.
    pub fn prefix(&self) -> String {
        match self.name.is_empty() {
            true => String::new(),
            false => format!("{}: ", self.name),
        }
    }

    /// The number of `swpN`, if it is this one's.
    pub fn number(&self, front: u16, own: u32) -> Option<u32> {
        match &self.ports {
            None => Some(own),
            Some(list) => list.iter().find(|(n, _)| *n == front).map(|(_, n)| *n),
        }
    }
}

/// What is said of names that are not those of the switches.
struct Names<'a>(&'a [LsiArg]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|l| l.name.as_str()).collect();
        f.write_str(&names.join(", "))
    }
}

/// The last value for a switch: its own, or that of all.
fn last<'a, T>(all: &'a [Of<T>], name: &str) -> Option<&'a T> {
    let own = all.iter().filter(|o| o.lsi.as_deref() == Some(name));
    let common = all.iter().filter(|o| o.lsi.is_none());
    own.last().or(common.last()).map(|o| &o.value)
}

fn named<T>(option: &str, all: &[Of<T>], lsis: &[LsiArg], each: bool) -> Result<(), String> {
    for o in all {
        match &o.lsi {
            Some(name) if lsis.is_empty() => {
                return Err(format!(
                    "--{option} {name}=…: there are no logical switches, --lsi {name}:swp1,…"
                ));
            }
            Some(name) if lsis.iter().all(|l| l.name != *name) => {
                let names = Names(lsis);
                return Err(format!(
                    "--{option} {name}=…: there is no logical switch {name}, but {names}"
                ));
            }
            None if each && !lsis.is_empty() => {
                let names = Names(lsis);
                return Err(format!(
                    "--{option}: which logical switch's, of {names}? --{option} NAME=…"
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The switches that a command line asks for.
///
/// # Errors
/// One line that says what can't be.
pub fn switches(args: &Args) -> Result<Vec<Switch>, String> {
    let lsis = &args.lsis;
    named("controller", &args.controllers, lsis, true)?;
    named("datapath-id", &args.datapath_id, lsis, true)?;
    named("local", &args.local, lsis, true)?;
    named("fail", &args.fail, lsis, false)?;
    named("versions", &args.versions, lsis, false)?;
    if lsis.is_empty() {
        return Ok(vec![of_args(args, "", None)]);
    }
    if lsis.len() > SWITCHES {
        let n = lsis.len();
        return Err(format!("{n} logical switches: {SWITCHES} at most"));
    }
    let mut all: Vec<Switch> = Vec::new();
    for lsi in lsis {
        let name = &lsi.name;
        if all.iter().any(|s| s.name == *name) {
            return Err(format!("there are two logical switches {name}"));
        }
        let mut ports: Vec<(u16, u32)> = Vec::new();
        for (front, own) in &lsi.ports {
            let cable = args.ports.iter().find(|p| p.spec.number == *front);
            if cable.is_none() && !args.asic {
                return Err(format!(
                    "{name}: there is no port swp{front}: --port swp{front}=…"
                ));
            }
            let cabled = cable.map_or(u32::from(*front), |p| p.number);
            let n = own.unwrap_or(cabled);
            let other = all.iter().find(|s| s.number(*front, n).is_some());
            if let Some(other) = other {
                return Err(format!(
                    "swp{front} is in {} and in {name}: a port is one logical switch's",
                    other.name
                ));
            }
            for (f, m) in &ports {
                if f == front {
                    return Err(format!("{name}: swp{front} twice"));
                }
                if *m == n {
                    return Err(format!(
                        "{name}: swp{f} and swp{front} have the same number {n}"
                    ));
                }
            }
            ports.push((*front, n));
        }
        all.push(of_args(args, name, Some(ports)));
    }
    let homeless = |p: &&PortArg| all.iter().all(|s| s.number(p.spec.number, 0).is_none());
    if let Some(p) = args.ports.iter().find(homeless) {
        return Err(format!("{} is in no logical switch", p.name()));
    }
    same_ids(all.iter().filter_map(|s| Some((&s.name, s.datapath_id?))))?;
    Ok(all)
}

/// One line if two switches have one id: controllers would take them for one.
pub fn same_ids<'a>(ids: impl Iterator<Item = (&'a String, u64)>) -> Result<(), String> {
    let mut seen: Vec<(&String, u64)> = Vec::new();
    for (name, id) in ids {
        if let Some((other, _)) = seen.iter().find(|(_, i)| *i == id) {
            return Err(format!(
                "{other} and {name} have the same datapath id {id:016x}: --datapath-id {name}=…"
            ));
        }
        seen.push((name, id));
    }
    Ok(())
}

fn of_args(args: &Args, name: &str, ports: Option<Vec<(u16, u32)>>) -> Switch {
    let own = args
        .controllers
        .iter()
        .filter(|c| c.lsi.as_deref().unwrap_or("") == name);
    let offered = || vec!["1.0".to_owned(), "1.3".to_owned()];
    Switch {
        name: name.to_owned(),
        ports,
        controllers: own.map(|c| c.value.clone()).collect(),
        datapath_id: last(&args.datapath_id, name).copied(),
        fail: last(&args.fail, name).copied().unwrap_or(Fail::Secure),
        versions: last(&args.versions, name).cloned().unwrap_or_else(offered),
        local: last(&args.local, name).cloned(),
    }
}

impl Switch {
    /// Its cables of those of the machine, `LOCAL` too.
    pub fn cables(&self, args: &Args) -> Vec<PortArg> {
        let own = args.ports.iter().filter_map(|p| {
            let number = self.number(p.spec.number, p.number)?;
            Some(PortArg {
                spec: p.spec.clone(),
                number,
            })
        });
        let local = self.local.as_deref().map(PortArg::local);
        own.chain(local).collect()
    }

    /// What its hello offers.
    pub fn offers(&self) -> Vec<Version> {
        let version = |v: &String| match v.as_str() {
            "1.0" => Version::V10,
            _ => Version::V13,
        };
        self.versions.iter().map(version).collect()
    }

    /// What its tables speak before a controller has come.
    pub fn newest(&self) -> Version {
        match self.versions.iter().any(|v| v == "1.3") {
            true => Version::V13,
            false => Version::V10,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn made(words: &str) -> Result<Vec<Switch>, String> {
        let args = Args::try_parse_from(["ofagentd"].into_iter().chain(words.split(' ')));
        switches(&args.map_err(|e| e.to_string())?)
    }

    const PORTS: &str = "--port swp1=a --port swp2=b --port swp5=c:9";

    #[test]
    fn each_has_its_own() {
        let all = made(&format!(
            "{PORTS} --lsi red:swp1,swp5 --lsi blue:swp2=1 --controller red=tcp:h --controller blue=ptcp: \
             --controller blue=unix:/a=b --fail standalone --fail red=secure --versions blue=1.0 --datapath-id red=7"
        ))
        .unwrap();
        let [red, blue] = all.as_slice() else {
            panic!("{all:?}")
        };
        assert_eq!(red.ports, Some(vec![(1, 1), (5, 9)]), "its cable's number");
        assert_eq!(blue.ports, Some(vec![(2, 1)]));
        assert_eq!([red.controllers.len(), blue.controllers.len()], [1, 2]);
        assert_eq!([red.fail, blue.fail], [Fail::Secure, Fail::Standalone]);
        assert_eq!(blue.versions, ["1.0"]);
        assert_eq!(red.versions, ["1.0", "1.3"]);
        assert_eq!([red.datapath_id, blue.datapath_id], [Some(7), None]);
        let one = made(&format!("{PORTS} --controller tcp:h --local me")).unwrap();
        assert_eq!((one.len(), one[0].ports.clone()), (1, None));
        assert_eq!(one[0].number(5, 9), Some(9));
        assert_eq!(one[0].local.as_deref(), Some("me"));
    }

    #[test]
    fn what_cannot_be_is_one_line() {
        let ids = "--datapath-id r=7 --datapath-id b=0x7";
        for (words, said) in [
            (
                "--lsi r:swp1,swp2 --lsi b:swp2,swp5",
                "swp2 is in r and in b",
            ),
            (
                "--lsi r:swp1,swp2,swp5 --lsi b:swp9",
                "b: there is no port swp9",
            ),
            (
                "--lsi r:swp1,swp2=1,swp5",
                "r: swp1 and swp2 have the same number 1",
            ),
            ("--lsi r:swp1,swp1=2,swp2,swp5", "r: swp1 twice"),
            ("--lsi r:swp1,swp2 --lsi r:swp5", "two logical switches r"),
            ("--lsi r:swp1,swp2", "swp5 is in no logical switch"),
            (
                &format!("--lsi r:swp1,swp2 --lsi b:swp5 {ids}"),
                "the same datapath id 0000000000000007",
            ),
            (
                "--lsi r:swp1,swp2,swp5 --controller x=tcp:h",
                "there is no logical switch x, but r",
            ),
            (
                "--lsi r:swp1,swp2,swp5 --controller tcp:h",
                "which logical switch's, of r?",
            ),
            (
                "--lsi r:swp1,swp2,swp5 --local me",
                "which logical switch's",
            ),
            ("--controller r=tcp:h", "there are no logical switches"),
            ("--lsi R:swp1", "'R' is no name"),
            ("--lsi r", "wanted NAME:swp1"),
            ("--lsi r:swp1=0,swp2,swp5", "0 is no number of a port"),
            ("--lsi r:eth0", "there is no port eth0"),
            ("--lsi r:", "a port is missing"),
        ] {
            let why = made(&format!("{PORTS} {words}")).unwrap_err();
            assert!(why.contains(said), "{words}: {why}");
        }
        let many: Vec<String> = (1..=17)
            .map(|n| format!("--asic --lsi n{n}:swp{n}"))
            .collect();
        let many = many.join(" ").replacen("--asic ", "", 16);
        assert!(made(&many).unwrap_err().contains("16 at most"));
    }
}
