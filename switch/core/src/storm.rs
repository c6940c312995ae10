//! Storm control of ports: a setting of the chip, which no table of the kernel has. The chip keeps it while it lives, switchd
//! while it does: after a restart of the one it comes from the other. What `--storm` and the file say holds in any case: so it
//! outlives a stop of both, as long as whoever starts switchd says it again (`tandem up` does).

use std::collections::BTreeMap;

use tandem_abi::raw;
use tandem_sal::{Device, SalError};
use zerocopy::IntoBytes;

use super::Core;
use crate::questions::Question;

/// Packets a second, by port and `TND_STORM_*`.
pub type Storms = BTreeMap<(u16, u8), u64>;

/// Kinds by their names.
pub const KINDS: [(&str, u8); 3] = [
    ("broadcast", raw::TND_STORM_BROADCAST),
    ("multicast", raw::TND_STORM_MULTICAST),
    ("unknown_unicast", raw::TND_STORM_UNKNOWN_UC),
];

/// A limit that the operator wants, of a port that may not be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// `swp1`
    port: String,
    /// `TND_STORM_*`
    kind: u8,
    /// Packets a second, not 0.
    rate: u64,
}

impl Wanted {
    /// `kind` by its name.
    ///
    /// # Errors
    /// One line: there is no such kind, or the rate is 0.
    pub fn new(port: &str, kind: &str, rate: u64) -> anyhow::Result<Self> {
        let kind = kind_of(kind).map_err(|e| anyhow::anyhow!(e))?;
        anyhow::ensure!(rate > 0, "0 packets/s is no limit: leave it out");
        Ok(Wanted {
            port: port.to_owned(),
            kind,
            rate,
        })
    }
}

/// A kind by its name; if there is none, one line that says which there are.
pub fn kind_of(name: &str) -> Result<u8, String> {
    let found = KINDS.into_iter().find(|k| k.0 == name);
    found.map(|k| k.1).ok_or_else(|| {
        let all = KINDS.map(|k| k.0).join(", ");
        format!("{name:?} is no kind of storm: {all}")
    })
}

/// The number that a port of this name has whenever it is there: that of its cage, and so many more as it is a part.
fn number(name: &str) -> Option<u16> {
    let (cage, part) = name
        .strip_prefix("swp")
        .map(|rest| rest.split_once('s').unwrap_or((rest, "0")))?;
    cage.parse::<u16>().ok()?.checked_add(part.parse().ok()?)
}

/// Lays what is wanted over what the chip has. A limit of a port that is not there, such as one that is split now, is a
/// warning, and what the chip has of it from before goes (0 packets a second): its number is another port's now.
pub fn lay_over(
    storms: &mut Storms,
    wanted: &[Wanted],
    ports: &BTreeMap<&str, u16>,
) -> Vec<String> {
    let mut warnings = Vec::new();
    for w in wanted
        .iter()
        .filter(|w| !ports.contains_key(w.port.as_str()))
    {
        let number = number(&w.port).filter(|n| ports.values().any(|p| p == n));
        if let Some(number) = number {
            storms.insert((number, w.kind), 0);
        }
    }
    for w in wanted {
        match ports.get(w.port.as_str()) {
            Some(port) => {
                storms.insert((*port, w.kind), w.rate);
            }
            None => warnings.push(format!(
                "storm control: there is no port {:?}, its limit is left out",
                w.port
            )),
        }
    }
    warnings
}

/// What the chip has from an earlier switchd.
pub fn left(control: &mut dyn Device) -> Result<Storms, SalError> {
    let mut all = Storms::new();
    control.dump(|s: raw::tnd_storm, _| {
        if s.rate_packets > 0 {
            all.insert((s.port, s.kind), s.rate_packets);
        }
    })?;
    Ok(all)
}

impl Core {
    /// Sets a port's limit, 0 = none. `done` has what was done, or why not, once the chip has answered.
    pub fn set_storm(
        &mut self,
        port: u16,
        kind: u8,
        rate: u64,
        done: Box<dyn FnOnce(Result<String, String>) + Send>,
    ) {
        let answer = move |core: &mut Core, written: Result<(), String>| {
            done(written.map(|()| core.storm_is(port, kind, rate)));
        };
        self.write_storm(port, kind, rate, answer);
    }

    /// What the chip has taken is what the next one is told.
    fn storm_is(&mut self, port: u16, kind: u8, rate: u64) -> String {
        let name = KINDS.iter().find(|k| k.1 == kind).map_or("", |k| k.0);
        if rate == 0 {
            self.storms.remove(&(port, kind));
            format!("swp{port}: {name} without limit")
        } else {
            self.storms.insert((port, kind), rate);
            format!("swp{port}: {name} at most {rate} packets/s")
        }
    }

    /// The chip may be a new one.
    pub(super) fn restore_storms(&mut self) {
        let storms: Vec<_> = self.storms.iter().map(|(k, rate)| (*k, *rate)).collect();
        for ((port, kind), rate) in storms {
            let warn = |core: &mut Core, written: Result<(), String>| {
                if let Err(text) = written {
                    core.warn(text);
                }
            };
            self.write_storm(port, kind, rate, warn);
        }
        self.storms.retain(|_, rate| *rate > 0);
    }

    fn write_storm(
        &mut self,
        port: u16,
        kind: u8,
        rate: u64,
        done: impl FnOnce(&mut Core, Result<(), String>) + Send + 'static,
    ) {
        let body = raw::tnd_storm {
            struct_size: size_of::<raw::tnd_storm>() as u16,
            port,
            kind,
            rate_packets: rate,
            // a tenth of a second at once
            burst_packets: if rate == 0 { 0 } else { (rate / 10).max(1) },
            ..Default::default()
        };
        self.ask_chip(Question {
            what: "storm control",
            op: raw::TND_OP_UPDATE,
            cls: raw::TND_CLS_STORM,
            arg: 0,
            body: body.as_bytes().to_vec(),
            output: false,
            answer: Box::new(move |core, answer| {
                let failed = |why| format!("swp{port}: {why}");
                done(core, answer.map(|_| ()).map_err(failed));
            }),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_a_port_that_is_split_now_is_no_limit_of_its_parts() {
        let b = raw::TND_STORM_BROADCAST;
        let wanted = |port: &str, rate| Wanted::new(port, "broadcast", rate).unwrap();
        let mut storms = Storms::from([((2, b), 5), ((3, b), 7)]);
        let ports = BTreeMap::from([("swp1s0", 1), ("swp1s1", 2), ("swp3", 3)]);
        let said = lay_over(
            &mut storms,
            &[wanted("swp2", 5), wanted("swp99", 5)],
            &ports,
        );
        assert_eq!(said.len(), 2);
        assert_eq!(storms, Storms::from([((2, b), 0), ((3, b), 7)]));
        // and what is wanted of the part itself holds
        lay_over(
            &mut storms,
            &[wanted("swp1s1", 9), wanted("swp2", 5)],
            &ports,
        );
        assert_eq!(storms.get(&(2, b)), Some(&9));
    }
}
