//! Counts of what was seen in plays, and the file in which long runs add up.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::coverage::Cells;
use crate::verdict::{Leniency, Verdict};

/// Counts of what was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Plays.
    pub plays: u64,
    /// Rests that were judged.
    pub rests: u64,
    /// Audits, and those to which a dump did not show all routes.
    pub audits: u64,
    /// The same.
    pub unseen: u64,
    /// Packets by verdict, at rests and between them.
    pub exact: [u64; 2],
    /// The same.
    pub other_next_hop: [u64; 2],
    /// Of these, the reason.
    pub leniencies: BTreeMap<Leniency, [u64; 2]>,
    /// Packets that went to the CPU.
    pub trapped: [u64; 2],
    /// Between rests: what went into ports that went down or came up meanwhile.
    pub lost: u64,
    /// At a rest with room for everything, what the kernel forwarded and the chip did not, by the trap's reason.
    pub fits_but_trapped: BTreeMap<u16, u64>,
    /// Of these, with room for everything and none of the reasons: a route that no dump shows stands between the ways.
    pub hidden: u64,
    /// Between a power failure and the next rest: less than any rest's.
    pub dark: u64,
    /// What was written back to the kernel, which took none of it.
    pub writes: u64,
    /// Restarts: warm, cold.
    pub restarts: [u64; 2],
    /// Times that notifications were lost.
    pub overflows: u64,
    /// By construct, operation and outcome.
    pub cells: Cells,
}

impl Tally {
    /// Counts a verdict; `place` 0: at a rest, 1: between them.
    pub fn count(&mut self, verdict: Verdict, place: usize) {
        let counts = match verdict {
            Verdict::Exact => &mut self.exact,
            Verdict::OtherNextHop(why) => {
                let counts = self.leniencies.entry(why).or_default();
                if let Some(n) = counts.get_mut(place) {
                    *n += 1;
                }
                &mut self.other_next_hop
            }
            Verdict::Trapped(_) => &mut self.trapped,
            Verdict::Dark => {
                self.dark += 1;
                return;
            }
            Verdict::Lost => {
                self.lost += 1;
                return;
            }
            Verdict::Wrong(_) => return,
        };
        if let Some(n) = counts.get_mut(place) {
            *n += 1;
        }
    }

    /// Adds another one's counts.
    pub fn add(&mut self, other: &Tally) {
        self.plays += other.plays;
        self.rests += other.rests;
        self.audits += other.audits;
        self.unseen += other.unseen;
        self.hidden += other.hidden;
        let pairs = [
            (&mut self.exact, other.exact),
            (&mut self.other_next_hop, other.other_next_hop),
            (&mut self.trapped, other.trapped),
            (&mut self.restarts, other.restarts),
        ];
        for (to, from) in pairs {
            to.iter_mut().zip(from).for_each(|(a, b)| *a += b);
        }
        for (reason, n) in &other.fits_but_trapped {
            *self.fits_but_trapped.entry(*reason).or_default() += n;
        }
        for (why, counts) in &other.leniencies {
            let all = self.leniencies.entry(*why).or_default();
            all.iter_mut().zip(counts).for_each(|(a, b)| *a += b);
        }
        self.dark += other.dark;
        self.lost += other.lost;
        self.writes += other.writes;
        self.overflows += other.overflows;
        self.cells.add(&other.cells);
    }
}

impl Tally {
    /// What became of the packets, and what was allowed, a line each.
    #[must_use]
    pub fn packets(&self) -> String {
        let mut text = format!("{:<36} {:>12} {:>12}\n", "packets", "at rests", "between");
        let mut line = |name: &str, [rest, between]: [u64; 2]| {
            let _ = writeln!(text, "{name:<36} {rest:>12} {between:>12}");
        };
        line("as the kernel's", self.exact);
        for (why, counts) in &self.leniencies {
            line(&why.to_string(), *counts);
        }
        line("to the CPU", self.trapped);
        line("lost in ports that went or came", [0, self.lost]);
        line("dark after a power failure", [0, self.dark]);
        for (reason, n) in &self.fits_but_trapped {
            let name = tandem_pipeline::trap::reason_name(*reason);
            line(&format!("fits, but trapped: {name}"), [*n, 0]);
        }
        line("… of them, behind a hidden route", [self.hidden, 0]);
        line("audits", [self.audits, 0]);
        line("… with routes that no dump shows", [self.unseen, 0]);
        text
    }
}

/// The hash of the production code that this program was built from (`build.rs`).
pub const PRODUCTION: &str = env!("PRODUCTION");

/// What runs of one production code come to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// Histories recorded and played.
    pub histories: u64,
    /// Plays that went as they must.
    pub plays: u64,
    /// Rests that were judged in these.
    pub rests: u64,
    /// Packets that were judged in these.
    pub packets: u64,
    /// Histories of which a play failed.
    pub failures: u64,
    /// What was played in these, by construct, operation and outcome.
    #[serde(default)]
    pub cells: Cells,
    /// What their histories have, in some of these runs.
    #[serde(default)]
    pub have: BTreeSet<String>,
}

impl Sum {
    /// What a run of so many histories comes to, which have this.
    #[must_use]
    pub fn of(histories: u64, failures: u64, tally: &Tally, have: &[String]) -> Sum {
        let packets = [tally.exact, tally.other_next_hop, tally.trapped];
        Sum {
            histories,
            plays: tally.plays,
            rests: tally.rests,
            packets: packets.iter().flatten().sum::<u64>() + tally.dark + tally.lost,
            failures,
            cells: tally.cells.clone(),
            have: have.iter().cloned().collect(),
        }
    }

    fn add(&mut self, other: &Sum) {
        self.histories += other.histories;
        self.plays += other.plays;
        self.rests += other.rests;
        self.packets += other.packets;
        self.failures += other.failures;
        self.cells.add(&other.cells);
        self.have.extend(other.have.iter().cloned());
    }
}

/// Adds a run to a file's sums by production code, under its name; gives this code's sum with it. A file that is not there is
/// made; of runs that end at once none is lost.
///
/// # Errors
/// The file can't be read or written, or is no tally.
pub fn add_to(file: &Path, production: &str, run: &Sum) -> std::io::Result<Sum> {
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(file)?;
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let mut all: BTreeMap<String, Sum> = match text.as_str() {
        "" => BTreeMap::new(),
        text => serde_json::from_str(text)?,
    };
    let sum = all.entry(production.to_owned()).or_default();
    sum.add(run);
    let sum = sum.clone();
    let text = serde_json::to_string_pretty(&all)? + "\n";
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(text.as_bytes())?;
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_add_up_by_production_code() {
        let file = std::env::temp_dir().join(format!("twin-tally-{}.json", std::process::id()));
        let mut cells = Cells::default();
        let outcomes = [true, false, true, false, false];
        cells.count(&"route".into(), &"add".into(), outcomes);
        let tally = Tally {
            cells: cells.clone(),
            plays: 10,
            rests: 20,
            exact: [3, 4],
            trapped: [0, 5],
            dark: 6,
            ..Tally::default()
        };
        let run = Sum::of(2, 1, &tally, &[]);
        assert_eq!(run.packets, 18);
        assert_eq!(add_to(&file, "a", &run).unwrap(), run);
        let other = Sum::of(7, 0, &tally, &["bridges".to_owned()]);
        assert_eq!(add_to(&file, "b", &other).unwrap(), other);
        let both = add_to(&file, "a", &other).unwrap();
        assert_eq!(
            (
                both.histories,
                both.plays,
                both.rests,
                both.packets,
                both.failures
            ),
            (9, 20, 40, 36, 1)
        );
        cells.count(&"route".into(), &"add".into(), outcomes);
        assert_eq!(both.cells, cells);
        // what is no tally is not written over
        std::fs::write(&file, "[1]").unwrap();
        assert!(add_to(&file, "a", &run).is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "[1]");
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn the_production_code_has_a_hash() {
        assert_eq!(PRODUCTION.len(), 16);
        assert_ne!(PRODUCTION, "cbf29ce484222325");
    }
}
