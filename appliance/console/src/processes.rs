// SPDX-License-Identifier: Apache-2.0
//! `show processes cpu`, `show processes memory`, `show memory`: of the box, and of the programs that make it a switch.
//!
//! ```text
//!   /proc/stat, /proc/N/stat ── each 5 s ──► shares of the last 5 s; of a minute and five, as averages that forget
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tandem_swgrammar::Parsed;

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(5);
/// Seconds of the averages.
const SPANS: [f64; 3] = [5.0, 60.0, 300.0];
/// Milliseconds of a tick of `/proc`: it has 100 a second, whatever the kernel's own clock has.
const TICK_MS: u64 = 10;
/// Rows at most: who starts programs without end fills no memory here.
const MOST: usize = 512;
/// The programs that make a box a switch, by the first letters of what the kernel calls them.
const NAMES: [&str; 14] = [
    "asicd", "switchd", "swcfgd", "swlogin", "swcon", "swclid", "swcli", "zebra", "ospfd", "ripd",
    "bgpd", "lldpd", "chronyd", "snmpd",
];

/// Shares of one CPU, of the last 5 s, a minute, five.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Shares([f64; 3]);

impl Shares {
    /// It was this share for so many seconds.
    fn add(&mut self, share: f64, seconds: f64) {
        for (of, span) in self.0.iter_mut().zip(SPANS) {
            // of the shortest one nothing older is left
            let weight = if span <= SPANS[0] {
                1.0
            } else {
                1.0 - (-seconds / span).exp()
            };
            *of += (share - *of) * weight;
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Process {
    name: String,
    /// Since it began.
    ticks: u64,
    switches: u64,
    resident: u64,
    shares: Shares,
}

/// What `/proc/stat` has counted: all ticks, those without work, those of interrupts.
type Ticks = [u64; 3];

#[derive(Debug, Default)]
struct State {
    at: Option<Instant>,
    ticks: Ticks,
    all: Shares,
    /// Of the last 5 s.
    interrupts: f64,
    processes: BTreeMap<u32, Process>,
    /// Octets: of the box, free now, free at the least.
    memory: [u64; 3],
}

/// What has been seen.
#[derive(Debug)]
pub(crate) struct Seen {
    proc: PathBuf,
    state: Mutex<State>,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen::of(Path::new("/proc"))
    }
}

/// The number at a place of a line.
fn number(line: &str, at: usize) -> u64 {
    let word = line.split_whitespace().nth(at);
    word.and_then(|w| w.parse().ok()).unwrap_or(0)
}

/// The number behind a word, in a file of lines.
fn behind(text: &str, word: &str) -> u64 {
    let line = text
        .lines()
        .find(|l| l.split([':', ' ', '\t']).next() == Some(word));
    line.map_or(0, |l| number(l, 1))
}

fn ticks(stat: &str) -> Ticks {
    let line = stat.lines().next().unwrap_or_default();
    // user nice system idle iowait irq softirq steal
    let of: Vec<u64> = (1..=8).map(|at| number(line, at)).collect();
    let at = |i: usize| of.get(i).copied().unwrap_or(0);
    [of.iter().sum(), at(3) + at(4), at(5) + at(6)]
}

/// A share of a difference of counters, in hundredths.
fn share(part: u64, all: u64) -> f64 {
    if all == 0 {
        0.0
    } else {
        part as f64 * 100.0 / all as f64
    }
}

impl Seen {
    /// By this folder.
    fn of(proc: &Path) -> Seen {
        Seen {
            proc: proc.to_owned(),
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.proc.join(name)).unwrap_or_default()
    }

    /// The programs as they are now; without shares.
    fn programs(&self) -> BTreeMap<u32, Process> {
        let mut all = BTreeMap::new();
        let Ok(entries) = fs::read_dir(&self.proc) else {
            return all;
        };
        for entry in entries.flatten() {
            let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|n| n.parse::<u32>().ok())
            else {
                continue;
            };
            let stat = self.read(&format!("{pid}/stat"));
            // the name may have anything in it, a bracket too
            let (Some(from), Some(to)) = (stat.find('('), stat.rfind(')')) else {
                continue;
            };
            let name = stat.get(from + 1..to).unwrap_or_default();
            if !NAMES.iter().any(|n| name.starts_with(n)) || all.len() >= MOST {
                continue;
            }
            let rest = stat.get(to + 1..).unwrap_or_default();
            let status = self.read(&format!("{pid}/status"));
            let process = Process {
                name: name
                    .chars()
                    .map(|c| if c.is_control() { '?' } else { c })
                    .collect(),
                ticks: number(rest, 11) + number(rest, 12),
                switches: behind(&status, "voluntary_ctxt_switches")
                    + behind(&status, "nonvoluntary_ctxt_switches"),
                resident: behind(&status, "VmRSS") * 1024,
                shares: Shares::default(),
            };
            all.insert(pid, process);
        }
        all
    }

    /// Looks.
    fn look(&self, now: Instant) {
        let (ticks, mut programs) = (ticks(&self.read("stat")), self.programs());
        let memory = self.read("meminfo");
        let mut state = self.lock();
        let seconds = state
            .at
            .map(|at| now.saturating_duration_since(at).as_secs_f64());
        let [all, idle, interrupts] = [0, 1, 2].map(|i| ticks[i].saturating_sub(state.ticks[i]));
        for (pid, process) in &mut programs {
            // a number that is another program's now has counted less
            let before = state
                .processes
                .get(pid)
                .filter(|p| p.name == process.name && p.ticks <= process.ticks);
            if let (Some(before), Some(seconds)) = (before, seconds) {
                process.shares = before.shares;
                process
                    .shares
                    .add(share(process.ticks - before.ticks, all), seconds);
            }
        }
        if let Some(seconds) = seconds {
            state.all.add(share(all.saturating_sub(idle), all), seconds);
            state.interrupts = share(interrupts, all);
        }
        let [total, free] = ["MemTotal", "MemAvailable"].map(|w| behind(&memory, w) * 1024);
        let least = match state.at {
            Some(_) => state.memory[2].min(free),
            None => free,
        };
        (state.at, state.ticks, state.processes, state.memory) =
            (Some(now), ticks, programs, [total, free, least]);
    }

    /// Looks if nobody has for long.
    fn fresh(&self) -> MutexGuard<'_, State> {
        let now = Instant::now();
        let at = self.lock().at;
        if at.is_none_or(|at| now.saturating_duration_since(at) > EVERY * 2) {
            self.look(now);
        }
        self.lock()
    }

    /// `show processes cpu`
    pub fn cpu(&self, parsed: &Parsed) -> String {
        let state = self.fresh();
        let whole = |n: f64| n.round();
        let [five, minute, minutes] = state.all.0.map(whole);
        let mut text = format!(
            "CPU utilization for five seconds: {five}%/{}%; one minute: {minute}%; five minutes: {minutes}%\n \
             PID Runtime(ms)     Invoked      uSecs   5Sec   1Min   5Min TTY Process \n",
            whole(state.interrupts)
        );
        let mut rows: Vec<(&u32, &Process)> = state.processes.iter().collect();
        if parsed.has("sorted") {
            rows.sort_by(|a, b| b.1.shares.0[0].total_cmp(&a.1.shares.0[0]));
        }
        for (pid, p) in rows {
            let ms = p.ticks * TICK_MS;
            let each = (ms * 1000).checked_div(p.switches).unwrap_or(0);
            let [five, minute, minutes] = p.shares.0;
            let _ = writeln!(
                text,
                "{pid:>4} {ms:>11} {:>11} {each:>10} {five:>5.2}% {minute:>5.2}% {minutes:>5.2}% {:>3} {} ",
                p.switches, 0, p.name
            );
        }
        text
    }

    /// `show processes memory`
    pub fn memory(&self, parsed: &Parsed) -> String {
        let state = self.fresh();
        let [total, free, _] = state.memory;
        let mut text = format!(
            "Processor Pool Total: {total:>10} Used: {:>10} Free: {free:>10}\n\n \
             PID TTY  Allocated      Freed    Holding    Getbufs    Retbufs Process\n",
            total.saturating_sub(free)
        );
        let mut rows: Vec<(&u32, &Process)> = state.processes.iter().collect();
        if parsed.has("sorted") {
            rows.sort_by_key(|(_, p)| std::cmp::Reverse(p.resident));
        }
        let mut sum = 0;
        for (pid, p) in rows {
            sum += p.resident;
            let _ = writeln!(
                text,
                "{pid:>4} {:>3} {:>10} {:>10} {:>10} {:>10} {:>10} {}",
                0, p.resident, 0, p.resident, 0, 0, p.name
            );
        }
        let _ = writeln!(text, "{:>30} {sum:>10} Total", "");
        text
    }

    /// `show memory`
    pub fn pool(&self) -> String {
        let state = self.fresh();
        let [total, free, least] = state.memory;
        format!(
            "                Head    Total(b)     Used(b)     Free(b)   Lowest(b)  Largest(b)\n\
             Processor {:>10} {total:>11} {:>11} {free:>11} {least:>11} {free:>11}\n",
            0,
            total.saturating_sub(free)
        )
    }
}

/// A thread that looks, as long as the switch is there.
pub(crate) fn watch(seen: &Arc<Seen>) -> std::io::Result<()> {
    let seen = Arc::downgrade(seen);
    std::thread::Builder::new()
        .name("load".into())
        .spawn(move || {
            while let Some(seen) = seen.upgrade() {
                seen.look(Instant::now());
                drop(seen);
                std::thread::sleep(EVERY);
            }
        })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_swgrammar::{Grammar, Mode};

    /// A box that has worked so many ticks.
    fn write(proc: &Path, busy: u64, idle: u64, ours: u64, free: u64) {
        let put = |name: &str, text: String| {
            let path = proc.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(
            "stat",
            format!("cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1\n"),
        );
        put(
            "meminfo",
            format!("MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: {free} kB\n"),
        );
        let stat = |name: &str, ticks: u64| {
            format!("9 ({name}) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 5 6 7\n")
        };
        put("9/stat", stat("asicd", ours));
        put("9/status", "Name:\tasicd\nVmRSS:\t  50 kB\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t1\n".into());
        put("8/stat", stat("a) b (sh", 7));
        put("self/stat", stat("asicd", 7));
    }

    fn parsed(line: &str) -> Parsed {
        Grammar::new()
            .parse(Mode::Exec, 15, line, &Default::default())
            .unwrap()
    }

    #[test]
    fn shares_of_what_was_counted_in_between() {
        let dir = std::env::temp_dir().join(format!("tandem-proc-{}", std::process::id()));
        let seen = Seen::of(&dir);
        let begun = Instant::now();
        write(&dir, 1000, 1000, 100, 600);
        seen.look(begun);
        write(&dir, 1150, 1050, 200, 400);
        seen.look(begun + Duration::from_secs(60));
        let text = seen.cpu(&parsed("show processes cpu sorted"));
        // 150 of 200, of which 100 are asicd's; the averages begin with nothing, and have 1 - 1/e of it after their time
        assert_eq!(
            text,
            "CPU utilization for five seconds: 75%/0%; one minute: 47%; five minutes: 14%\n \
             PID Runtime(ms)     Invoked      uSecs   5Sec   1Min   5Min TTY Process \n   \
             9        2000           4     500000 50.00% 31.61%  9.06%   0 asicd \n"
        );
        write(&dir, 1150, 1050, 200, 500);
        seen.look(begun + Duration::from_secs(61));
        assert_eq!(
            seen.memory(&parsed("show processes memory")),
            format!(
                "Processor Pool Total:    1024000 Used:     512000 Free:     512000\n\n{}\n{}\n{:>41} Total\n",
                " PID TTY  Allocated      Freed    Holding    Getbufs    Retbufs Process",
                "   9   0      51200          0      51200          0          0 asicd",
                51200
            )
        );
        let pool = seen.pool();
        assert!(
            pool.ends_with(
                "Processor          0     1024000      512000      512000      409600      512000\n"
            ),
            "{pool}"
        );
        fs::remove_dir_all(dir).unwrap();
    }
}
