// SPDX-License-Identifier: Apache-2.0
//! Whose turn it is to change something. Sessions that look never ask for one.
//!
//! ```text
//!   session ── Turn::take ──► copy of the configuration ─► change ─► Engine::apply ─► exchanged ── dropped: the next one's
//!   session ── Turn::take ──► not within this time: who has it, so that it can be said, and asked again, or not
//! ```

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tandem_swconfig::Config;

use crate::{OnBad, Switch, lock, startup};

/// Who has the turn, and does what.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    busy: Mutex<Option<String>>,
    free: Condvar,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn of one, until it is dropped.
pub(crate) struct Turn {
    turns: Arc<Turns>,
    switch: Arc<Mutex<Switch>>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.turns.lock() = None;
        self.turns.free.notify_all();
    }
}

impl Turn {
    /// Waits no longer than this for it.
    ///
    /// # Errors
    /// Who has it, and what for.
    pub fn take(switch: &Arc<Mutex<Switch>>, what: &str, within: Duration) -> Result<Turn, String> {
        let turns = Arc::clone(&lock(switch).turns);
        let until = Instant::now() + within;
        let mut busy = turns.lock();
        while let Some(who) = busy.as_ref() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(who.clone());
            }
            let waited = turns.free.wait_timeout(busy, left);
            busy = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *busy = Some(what.into());
        drop(busy);
        Ok(Turn {
            turns,
            switch: Arc::clone(switch),
        })
    }

    /// The switch as it is now.
    pub fn seen(&self) -> Switch {
        lock(&self.switch).clone()
    }

    /// The switch of all.
    pub fn switch(&self) -> &Arc<Mutex<Switch>> {
        &self.switch
    }

    /// Makes the configuration this one: all of it or nothing. Others look meanwhile, and see the one of before.
    ///
    /// # Errors
    /// What the engine says, in one line.
    pub fn apply(&self, now: Config) -> Result<(), String> {
        let seen = self.seen();
        seen.carry_out(&now)?;
        if *seen.config != now {
            lock(&self.switch).config = Arc::new(now);
        }
        Ok(())
    }

    /// As a start: what is kept is carried out, what was learned is forgotten, all sessions are over. What was wrong, a line
    /// each. What stays the same the chip forwards meanwhile.
    pub fn reload(&self) -> Vec<String> {
        {
            let mut switch = lock(&self.switch);
            switch.reloads += 1;
            switch.started = Instant::now();
        }
        let mut seen = self.seen();
        let (config, mut said) = startup(&seen.store, &*seen.engine);
        let mut is_done = true;
        if self.apply(config).is_err() {
            // which line it is shows only from nothing on
            said = match self.apply(Config::default()) {
                Ok(()) => {
                    seen.config = Arc::default();
                    let said = seen.boot(OnBad::Skip);
                    lock(&self.switch).config = Arc::clone(&seen.config);
                    said
                }
                Err(why) => {
                    is_done = false;
                    vec![why]
                }
            };
        }
        // else all is as it was: what waits for a word goes on waiting
        if is_done {
            crate::revert::done_by_start(&mut seen);
        }
        if let Err(why) = seen.engine.forget_stations(None, None) {
            said.push(format!("% {why}"));
        }
        said
    }

    /// Counts from here on, of one interface or of all.
    pub fn clear_counters(&self, one: Option<&tandem_swconfig::Name>) {
        let links = self.seen().engine.links();
        let mut switch = lock(&self.switch);
        let cleared = Arc::make_mut(&mut switch.cleared);
        for link in links {
            if one.is_none_or(|n| *n == link.name) {
                cleared.insert(link.name, link.counters);
            }
        }
    }
}
