//! How long the packet thread looks on before it sleeps.
//!
//! ```text
//!   work ──► looks on ──► nothing for 20 µs ─────────────────────► sleeps: a wake-up for what comes next
//!               ├── commands alone ──► nothing for 80 µs ─────────────────────────┤
//!               └── busy: 64 frames within a millisecond ──► nothing for 200 µs ──┘
//! ```
//!
//! Who wakes a sleeper pays for it, and on a port that is the processor that the frames come in on: with an interrupt to
//! another processor, for every burst. Frames at even distances, 64 in a millisecond, would keep the thread awake by the
//! short time already; the long one does the same for as many that come in bursts, and only for them: an idle chip sleeps.
//!
//! A driver that changes one thing after the other, each once the one before is there, comes back within the time that its
//! own work takes, and lets the processor go meanwhile: it would pay for a wake-up with each command.

/// Frames within [`WINDOW_NS`] that make it busy.
const BUSY_FRAMES: u64 = 64;
/// It is busy for so long after them.
const WINDOW_NS: u64 = 1_000_000;
/// While it is busy it looks on for so long: more than a burst of 64 frames is away from the next one.
const BUSY_SPIN_NS: u64 = 200_000;

/// Behind commands alone it looks on for so long.
const COMMAND_SPIN_NS: u64 = 80_000;

/// Times in ns on the daemon's clock.
#[derive(Clone, Copy, Debug)]
pub struct Spin {
    spin_ns: u64,
    worked_at: u64,
    window_at: u64,
    /// Taken from ports before the window began.
    frames: u64,
    busy_until: u64,
    /// Taken from ports before the last turn with work.
    seen: u64,
    /// That turn was the driver's alone.
    driver: bool,
}

impl Spin {
    /// One that looks on for `spin_ns` when it isn't busy.
    #[must_use]
    pub fn new(spin_ns: u64, now_ns: u64) -> Self {
        Spin {
            spin_ns,
            worked_at: now_ns,
            window_at: now_ns,
            frames: 0,
            busy_until: 0,
            seen: 0,
            driver: false,
        }
    }

    /// After a turn: whether there was work, and how many `frames` were taken from ports since the start.
    pub fn turned(&mut self, now_ns: u64, worked: bool, frames: u64) {
        if worked {
            self.worked_at = now_ns;
            self.driver = frames == self.seen;
            self.seen = frames;
        }
        if frames.saturating_sub(self.frames) >= BUSY_FRAMES {
            self.busy_until = now_ns + WINDOW_NS;
        } else if now_ns.saturating_sub(self.window_at) < WINDOW_NS {
            return;
        }
        (self.window_at, self.frames) = (now_ns, frames);
    }

    /// Frames come one after the other.
    #[must_use]
    pub fn busy(&self, now_ns: u64) -> bool {
        now_ns < self.busy_until
    }

    /// Nothing but the driver's commands was there to be done: who waits for their answers may be waiting for this very
    /// processor. Where frames came it is not given away, as they would wait until it is back.
    #[must_use]
    pub fn yields(&self, now_ns: u64) -> bool {
        self.driver && !self.busy(now_ns)
    }

    /// It is too early to sleep.
    #[must_use]
    pub fn looks_on(&self, now_ns: u64) -> bool {
        let limit = match (self.busy(now_ns), self.driver) {
            (true, _) => self.spin_ns.max(BUSY_SPIN_NS),
            (false, true) => self.spin_ns.max(COMMAND_SPIN_NS),
            (false, false) => self.spin_ns,
        };
        now_ns.saturating_sub(self.worked_at) < limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPIN: u64 = 20_000;

    /// Bursts of so many frames every so often, for 20 ms: the share of time in which it would sleep, in per cent.
    fn asleep(burst: u64, every_ns: u64) -> u64 {
        let mut spin = Spin::new(SPIN, 0);
        let (mut frames, mut slept, mut looked) = (0, 0, 0);
        for now in (0..20_000_000).step_by(1_000) {
            let work = now % every_ns == 0;
            frames += if work { burst } else { 0 };
            spin.turned(now, work, frames);
            looked += 1;
            slept += u64::from(!spin.looks_on(now));
        }
        slept * 100 / looked
    }

    #[test]
    fn bursts_that_follow_one_another_find_it_awake_and_others_don_t() {
        assert_eq!(asleep(64, 160_000), 0);
        // once it is known to be busy
        assert!(asleep(16, 160_000) <= 3);
        assert!(asleep(8, 160_000) > 80);
        assert!(asleep(1, 100_000) > 75);
        assert!(asleep(1, 1_000_000) >= 97);
        assert!(asleep(63, 1_000_000) >= 97);
        // a burst each 5 ms is no traffic to wait for: it costs the long time once
        assert!(asleep(64, 5_000_000) >= 95);
    }

    #[test]
    fn it_lets_others_go_on_behind_commands_alone() {
        let mut spin = Spin::new(SPIN, 0);
        spin.turned(0, true, 0);
        assert!(spin.yields(0));
        spin.turned(1_000, true, 1);
        assert!(!spin.yields(1_000));
        spin.turned(2_000, false, 1);
        assert!(!spin.yields(2_000));
        spin.turned(3_000, true, 1);
        spin.turned(4_000, false, 1);
        assert!(spin.yields(4_000));
        spin.turned(5_000, true, 65);
        spin.turned(6_000, true, 65);
        assert!(!spin.yields(6_000), "busy");
    }

    /// A command every so often, each for an answer to the one before: is it awake for each?
    #[test]
    fn commands_that_follow_one_another_find_it_awake() {
        for (every, awake) in [(70_000, true), (90_000, false)] {
            let mut spin = Spin::new(SPIN, 0);
            for now in (0..2_000_000).step_by(1_000) {
                let work = now % every == 0;
                assert!(!work || !awake || spin.looks_on(now), "{every}");
                spin.turned(now, work, 0);
            }
            spin.turned(2_000_000, true, 0);
            assert_eq!(spin.looks_on(2_000_000 + every - 1_000), awake);
            // with a frame it is as ever
            spin.turned(2_100_000, true, 1);
            assert!(!spin.looks_on(2_100_000 + SPIN));
        }
    }

    #[test]
    fn it_calms_down() {
        let mut spin = Spin::new(SPIN, 0);
        spin.turned(0, true, 64);
        assert!(spin.busy(0) && spin.looks_on(199_000) && !spin.looks_on(200_000));
        assert!(!spin.busy(WINDOW_NS));
        spin.turned(5_000_000, true, 65);
        assert!(spin.looks_on(5_000_000 + SPIN - 1) && !spin.looks_on(5_000_000 + SPIN));
    }
}
