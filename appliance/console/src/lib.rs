// SPDX-License-Identifier: Apache-2.0
//! The console of the appliance: sessions that change one configuration, keep it, and show how things are.
//!
//! ```text
//!   bytes ──► shell::Shell ──► Session ──► grammar ──► change::change(candidate) ──► Engine::apply(was, now) ──► Switch
//!             line editor,     one line     Parsed                                    refused: nothing has happened
//!             pages            at a time    └──► show, copy, write …  ◄──► Store (startup-config)
//! ```
//!
//! Many sessions have one [`Switch`] behind a mutex, which is held for no longer than it takes to copy it: who looks has a
//! copy, and waits for nobody; who changes something has a turn, one at a time, and exchanges the configuration at its end:
//!
//! ```text
//! let switch = Switch::new(Arc::new(engine), Box::new(FileStore::new("/var/lib/tandem/appliance")?));
//! let switch = Arc::new(Mutex::new(switch));
//! let said = lock(&switch).boot(OnBad::Skip);                     // startup-config; what was wrong, a line each
//! let mut session = Session::new(switch.clone(), Door::cli());    // privileged; Door::console(), Door::vty(level)
//! let out: Output = session.line("show vlan");                    // out.text ends in a newline or is empty; out.closed
//! let question: String = session.prompt();                        // `Switch#`, or what a command asks
//! Shell::new(session, terminal).run()?;                           // interactive, over a `Terminal`
//! ```
#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tandem_swconfig::{Config, Engine, Interface, Link, Name};
use tandem_swgrammar::Ports;
use tandem_swsecret::Gate;

mod acl;
pub mod change;
mod channel;
mod clock;
mod files;
pub mod load;
pub mod logs;
mod media;
mod monitor;
mod pipe;
mod places;
mod policy;
mod probe;
mod processes;
pub mod render;
mod revert;
mod routing;
mod scope;
pub mod services;
pub mod session;
pub mod shell;
mod show;
mod snooping;
pub mod store;
mod tree;
mod turns;
mod users;
pub mod wire;

pub use load::{Bad, OnBad};
pub use logs::Logs;
pub use places::{Kind, Places};
pub use services::Daemons;
pub use session::{Came, Door, Output, Session};
pub use shell::{Shell, Terminal};
pub use store::{FileStore, Shelf, Store};

/// The name of the configuration that a boot begins with.
pub const STARTUP: &str = "startup-config";

/// A wrong secret is said to be one after this time: what takes longer, and what is looked up at all, does not show.
pub const WRONG_AFTER: Duration = Duration::from_secs(1);

type Tell = dyn FnMut(&str, &str) + Send;

/// Is told who typed what.
#[derive(Clone)]
pub struct Log(Arc<Mutex<Tell>>);

impl Log {
    /// Who is told.
    pub fn new(tell: impl FnMut(&str, &str) + Send + 'static) -> Log {
        Log(Arc::new(Mutex::new(tell)))
    }

    /// Tells it.
    pub fn say(&self, who: &str, line: &str) {
        let mut tell = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (*tell)(who, line);
    }
}

/// The file that a start begins with: what was before changes that nobody has confirmed, or what is kept.
fn first(store: &dyn Store) -> &'static str {
    match store.read(revert::KEPT) {
        Ok(Some(_)) => revert::KEPT,
        _ => STARTUP,
    }
}

/// What a startup-config says, before anything is carried out, and what is wrong with it, a line each; what is wrong is
/// left out.
pub fn startup(store: &dyn Store, engine: &dyn Engine) -> (Config, Vec<String>) {
    let file = first(store);
    match store.read(file) {
        Ok(Some(text)) => {
            let (config, bad) = load::read(&Config::default(), &text, &ports(engine), false);
            (config, bad.iter().map(Bad::to_string).collect())
        }
        Ok(None) => (Config::default(), Vec::new()),
        Err(e) => (Config::default(), vec![format!("% {file}: {e}")]),
    }
}

/// Carries a startup-config out on an engine with nothing set that has refused it as a whole: line by line. What is carried
/// out, and what was wrong or refused, a line each.
pub fn by_line(store: &dyn Store, engine: &dyn Engine) -> (Config, Vec<String>) {
    let mut config = Config::default();
    let file = first(store);
    let said = match store.read(file) {
        Ok(text) => {
            let (ports, text) = (ports(engine), text.unwrap_or_default());
            load::boot(engine, &mut config, &ports, &text, OnBad::Skip)
        }
        Err(e) => vec![format!("% {file}: {e}")],
    };
    (config, said)
}

/// Makes an engine's configuration another one: all of it or nothing.
fn apply(engine: &dyn Engine, is: &Config, now: &Config) -> Result<(), String> {
    // of what was carried out before nothing is to be said any more
    drop(engine.notes());
    if now == is {
        return Ok(());
    }
    engine.apply(is, now).map_err(|e| {
        let line = e.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("% {}", line.trim_start_matches("% "))
    })
}

/// The interfaces that may be typed.
fn ports(engine: &dyn Engine) -> Ports {
    Ports {
        ports: engine.called(),
    }
}

/// The one switch of all sessions, and a copy of it for who looks.
#[derive(Clone)]
pub struct Switch {
    /// As it is carried out.
    pub config: Arc<Config>,
    /// Who does that.
    pub engine: Arc<dyn Engine>,
    /// What is kept.
    pub store: Shelf,
    /// Is told each line before it is carried out; answers to what a command asks are not told.
    pub log: Log,
    /// Who is in.
    pub places: Arc<Places>,
    /// What has happened.
    pub logs: Arc<Logs>,
    /// What others do for the switch.
    pub daemons: Arc<dyn Daemons>,
    /// How often somebody may be wrong.
    pub gate: Arc<Gate>,
    started: Instant,
    /// How often it was reloaded: sessions of before are over.
    pub(crate) reloads: u32,
    /// What had been counted when `clear counters` was said.
    cleared: Arc<BTreeMap<Name, [u64; 4]>>,
    /// What the box and its programs do.
    load: Arc<processes::Seen>,
    /// What has to be confirmed.
    reverts: Arc<revert::Reverts>,
    /// Who may change something.
    turns: Arc<turns::Turns>,
}

/// The switch, for a moment: nobody waits for the kernel or the chip with it. A session that panicked with it has left the configuration as it was: it is
/// exchanged in one step.
pub fn lock(switch: &Arc<Mutex<Switch>>) -> MutexGuard<'_, Switch> {
    switch.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Switch {
    /// As out of the box; [`Switch::boot`] carries out what is kept.
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>, store: Box<dyn Store + Send>) -> Switch {
        Switch {
            config: Arc::default(),
            engine,
            store: Shelf::new(store),
            log: Log::new(|_, _| {}),
            places: Arc::default(),
            logs: Arc::default(),
            daemons: Arc::new(services::Nobody),
            gate: Arc::new(Gate::new(WRONG_AFTER)),
            started: Instant::now(),
            reloads: 0,
            cleared: Arc::default(),
            load: Arc::default(),
            reverts: Arc::default(),
            turns: Arc::default(),
        }
    }

    /// The interfaces that may be typed.
    #[must_use]
    pub fn ports(&self) -> Ports {
        ports(&*self.engine)
    }

    /// What the engine has carried out at its start; no session is there yet.
    pub fn begin(&mut self, config: Config) {
        self.config = Arc::new(config);
        self.begun();
        revert::done_by_start(self);
        if let Err(e) = processes::watch(&self.load) {
            self.log
                .say("start", &format!("(nobody looks at the load: {e})"));
        }
    }

    /// Makes the configuration this one, all of it or nothing, while there is no session.
    ///
    /// # Errors
    /// What the engine says, in one line.
    pub fn apply(&mut self, now: Config) -> Result<(), String> {
        self.carry_out(&now)?;
        self.config = Arc::new(now);
        Ok(())
    }

    /// Has the engine, the log and others make it be so: all of it or nothing. Others look meanwhile, and see what was before.
    ///
    /// # Errors
    /// As [`Switch::apply`].
    fn carry_out(&self, now: &Config) -> Result<(), String> {
        self.daemons.set(now).map_err(|why| format!("% {why}"))?;
        let newly = |(name, set): (&Name, &Interface)| {
            (set.shutdown && !self.config.interface(name).shutdown).then_some(*name)
        };
        let shut: Vec<Name> = now.interfaces.iter().filter_map(newly).collect();
        if let Err(why) = apply(&*self.engine, &self.config, now) {
            if let Err(e) = self.daemons.set(&self.config) {
                self.logs.say(logs::ERROR, &e);
            }
            return Err(why);
        }
        self.logs.set(now);
        for name in shut {
            let text = format!("Interface {name}, changed state to administratively down");
            self.logs.say(logs::ADMIN_DOWN, &text);
        }
        Ok(())
    }

    /// What was carried out at the start the log and others hear of.
    fn begun(&self) {
        self.logs.set(&self.config);
        if let Err(why) = self.daemons.set(&self.config) {
            self.logs.say(logs::ERROR, &why);
        }
        self.logs.say(logs::RESTART, "System restarted");
    }

    /// Carries out the startup-config: the first thing after [`Switch::new`]. What was wrong with it, a line each.
    pub fn boot(&mut self, bad: OnBad) -> Vec<String> {
        let file = first(&self.store);
        match self.store.read(file) {
            Ok(Some(text)) => {
                let ports = self.ports();
                let config = Arc::make_mut(&mut self.config);
                let said = load::boot(&*self.engine, config, &ports, &text, bad);
                self.begun();
                said
            }
            Ok(None) => Vec::new(),
            Err(e) => vec![format!("% {file}: {e}")],
        }
    }

    /// Is the configuration what is kept for the next start?
    #[must_use]
    pub fn is_kept(&self) -> bool {
        let text = self.store.read(STARTUP).ok().flatten();
        let text = text.unwrap_or_default();
        let (kept, _) = load::read(&Config::default(), &text, &self.ports(), false);
        kept == *self.config
    }

    /// How interfaces are, with what they have counted since that was cleared.
    #[must_use]
    pub(crate) fn links(&self) -> Vec<Link> {
        let mut links = self.engine.links();
        for link in &mut links {
            let since = self.cleared.get(&link.name).copied().unwrap_or_default();
            // one that has begun anew has less
            if since.iter().zip(link.counters).all(|(s, c)| *s <= c) {
                for (counter, since) in link.counters.iter_mut().zip(since) {
                    *counter -= since;
                }
            }
        }
        links
    }

    /// Seconds since it was made, or reloaded.
    #[must_use]
    pub fn uptime(&self) -> u64 {
        self.started.elapsed().as_secs()
    }
}

#[cfg(test)]
mod tests;
