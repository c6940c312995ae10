// SPDX-License-Identifier: Apache-2.0
//! Changes that have to be confirmed: who cuts off the branch that it sits on gets it back.
//!
//! ```text
//!   configure terminal revert timer 5 ──► what is set is written to flash:revert-config ──► changes
//!       configure confirm ──► the file goes, changes stay          5 min, or configure revert now ──► as it was, the file goes
//!       a start while the file is there: it is what the switch begins with, instead of startup-config
//! ```
//!
//! The time is the switch's: it runs on when the session is over. No start asks for it, for the file says all.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tandem_swconfig::Config;

use crate::clock::Moment;
use crate::store::Store as _;
use crate::turns::Turn;
use crate::{Switch, load, lock, render};

/// The name under which it is kept how things were.
pub const KEPT: &str = "revert-config";

/// What is said where nothing waits for a word.
const NONE: &str = "%No Rollback Confirmed Change pending";
/// A way back that was refused is tried again after this time.
const AGAIN: Duration = Duration::from_secs(60);
/// For so long at once the timer waits for its turn: it may be confirmed meanwhile.
const STEP: Duration = Duration::from_secs(1);

/// What is to be confirmed, by when.
#[derive(Clone, Debug)]
struct Pending {
    /// Tells it from one before.
    number: u64,
    before: Arc<Config>,
    set: SystemTime,
    minutes: u32,
    until: Instant,
    who: String,
}

#[derive(Debug, Default)]
struct State {
    pending: Option<Pending>,
    last: u64,
}

/// One at a time.
#[derive(Debug, Default)]
pub(crate) struct Reverts {
    state: Mutex<State>,
    changed: Condvar,
}

impl Reverts {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing waits for a word any more.
    pub fn forget(&self) {
        self.lock().pending = None;
        self.changed.notify_all();
    }

    fn pending(&self) -> Option<Pending> {
        self.lock().pending.clone()
    }

    /// Waits until this one's time has come. False: it has been confirmed, or is another one's.
    fn is_due(&self, number: u64) -> bool {
        let mut state = self.lock();
        loop {
            let Some(of) = state.pending.as_ref().filter(|p| p.number == number) else {
                return false;
            };
            let left = of.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn due_in(&self, time: Duration) {
        if let Some(pending) = &mut self.lock().pending {
            pending.until = Instant::now() + time;
        }
        self.changed.notify_all();
    }

    /// As if its time had come.
    #[cfg(test)]
    pub fn expire(&self) {
        self.due_in(Duration::ZERO);
    }
}

fn minutes(n: u32) -> Duration {
    Duration::from_secs(u64::from(n) * 60)
}

/// From here on changes have to be confirmed, in so many minutes.
pub(crate) fn begin(turn: &Turn, after: u32, who: &str) -> Result<(), String> {
    let mut seen = turn.seen();
    let reverts = Arc::clone(&seen.reverts);
    if let Some(other) = reverts.pending() {
        return Err(format!(
            "% A change of {} is to be confirmed first: configure confirm, or configure revert now",
            other.who
        ));
    }
    let text = render::config(&seen.config, &seen.engine.ports());
    seen.store
        .write(KEPT, &text)
        .map_err(|e| format!("% {KEPT} is not written: {e}"))?;
    let number = {
        let mut state = reverts.lock();
        state.last += 1;
        state.pending = Some(Pending {
            number: state.last,
            before: seen.config,
            set: SystemTime::now(),
            minutes: after,
            until: Instant::now() + minutes(after),
            who: who.into(),
        });
        state.last
    };
    let (watched, switch) = (Arc::clone(&reverts), Arc::downgrade(turn.switch()));
    let thread = std::thread::Builder::new().name("revert".into());
    let begun = thread.spawn(move || watch(&watched, &switch, number));
    if let Err(e) = begun {
        reverts.forget();
        let _ = seen.store.erase(KEPT);
        return Err(format!("% There is no timer: {e}"));
    }
    Ok(())
}

/// What was changed stays.
pub(crate) fn confirm(turn: &Turn) -> Result<(), String> {
    let mut seen = turn.seen();
    if seen.reverts.pending().is_none() {
        return Err(NONE.into());
    }
    // with the file there a start would undo it
    seen.store
        .erase(KEPT)
        .map_err(|e| format!("% {KEPT} is not removed, and nothing is confirmed: {e}"))?;
    seen.reverts.forget();
    Ok(())
}

/// As it was, now: what differs.
pub(crate) fn now(turn: &Turn) -> Result<String, String> {
    let mut seen = turn.seen();
    let Some(pending) = seen.reverts.pending() else {
        return Err(NONE.into());
    };
    let before = Config::clone(&pending.before);
    let changes = load::differences(&seen.config, &before);
    turn.apply(before)
        .map_err(|why| format!("{why}\n% Nothing is reverted"))?;
    seen.reverts.forget();
    let mut text = format!("{changes}Total number of passes: 1\nRollback Done\n");
    // it is as it was all the same
    if let Err(e) = seen.store.erase(KEPT) {
        let why = format!("{KEPT} is not removed, and the next start begins with it: {e}");
        seen.log.say("revert", &format!("({why})"));
        text.push_str(&format!("% {why}\n"));
    }
    Ok(text)
}

/// Does something wait for a word?
pub(crate) fn is_pending(switch: &Switch) -> bool {
    switch.reverts.pending().is_some()
}

/// Another time.
pub(crate) fn retime(turn: &Turn, after: u32) -> Result<(), String> {
    let reverts = turn.seen().reverts;
    match &mut reverts.lock().pending {
        None => return Err(NONE.into()),
        Some(pending) => (pending.minutes, pending.set) = (after, SystemTime::now()),
    }
    reverts.due_in(minutes(after));
    Ok(())
}

/// `show archive config rollback timer`
pub(crate) fn shown(switch: &Switch) -> String {
    let Some(pending) = switch.reverts.pending() else {
        return format!("{NONE}\n");
    };
    let set = pending.set.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!(
        "\nTime configured(or reconfigured): {}\nTimer type: absolute timer\nTimer value: {} min\nUser: {}\n",
        Moment::of(set.as_secs(), set.subsec_millis(), None).clock(),
        pending.minutes,
        pending.who
    )
}

/// A start has carried out what was kept.
pub(crate) fn done_by_start(switch: &mut Switch) {
    switch.reverts.forget();
    if !matches!(switch.store.read(KEPT), Ok(Some(_))) {
        return;
    }
    let what = match switch.store.erase(KEPT) {
        Ok(()) => "(what was not confirmed is as it was before)".into(),
        Err(e) => format!("({KEPT} is not removed, and the next start begins with it: {e})"),
    };
    switch.log.say("start", &what);
}

/// The timer's own thread. It ends with what it waits for, or with the switch.
fn watch(reverts: &Reverts, switch: &Weak<Mutex<Switch>>, number: u64) {
    while reverts.is_due(number) {
        let Some(switch) = switch.upgrade() else {
            return;
        };
        let Ok(turn) = Turn::take(&switch, "the timer of configure revert", STEP) else {
            continue;
        };
        // while it waited
        if !reverts.is_due(number) {
            return;
        }
        let log = lock(&switch).log.clone();
        match now(&turn) {
            Ok(_) => log.say("timer", "(what was not confirmed is as it was before)"),
            Err(why) => {
                let why = why.replace('\n', " ");
                log.say(
                    "timer",
                    &format!("(is not reverted, and tried again: {why})"),
                );
                reverts.due_in(AGAIN);
            }
        }
    }
}
