// SPDX-License-Identifier: Apache-2.0
//! What is wanted of FRR, and how it is made so: the difference is said line by line, and a line that is refused takes
//! back those before it.
//!
//! ```text
//!   set(wanted) ── difference to what was said ──► ospfd, ripd, bgpd      refused: the undo list, the last one first
//!                                                     ▲
//!   tick() each half second ── who has come (back)? ──┘  difference to its `show running-config`
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::lines::{Daemon, Line, read};
use crate::vty::{ANSWER, Failure, Vty};

/// Who has taken all the time that an answer has is left alone for so long: lines of all sessions wait meanwhile.
const LEFT_ALONE: Duration = Duration::from_secs(30);

/// The way to FRR, shared by who sets and who looks after it.
#[derive(Clone)]
pub struct Frr {
    folder: Arc<Path>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    wanted: Vec<Line>,
    links: BTreeMap<Daemon, Vty>,
    /// Of whom something was wanted once: the others' configuration is nobody's here.
    ours: BTreeSet<Daemon>,
    /// Who was away the last time: said once.
    away: BTreeSet<Daemon>,
    /// Who was late the last time, and since when that is known.
    late: BTreeMap<Daemon, Instant>,
    notes: Vec<String>,
}

/// What one step has done, to be undone: lines that are said then, in this order.
type Undo = Vec<(Vec<String>, String)>;

impl Frr {
    /// By the sockets of this folder, usually /run/frr. Nobody is spoken to before something is wanted of it.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Frr {
        Frr {
            folder: folder.into().into(),
            state: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The socket of a program.
    pub(crate) fn socket(&self, program: &str) -> PathBuf {
        self.folder.join(format!("{program}.vty"))
    }

    /// What is wanted from now on: all of it, or what was before. Who is away is told when it comes.
    ///
    /// # Errors
    /// What was refused, by whom, in one line.
    pub fn set(&self, now: &[Line]) -> Result<(), String> {
        let mut state = self.lock();
        let mut done: Vec<(Daemon, Vec<Undo>)> = Vec::new();
        for daemon in Daemon::ALL {
            let of = |all: &[Line]| -> Vec<Line> {
                let all = all.iter().filter(|l| l.daemon == daemon);
                all.cloned().collect()
            };
            let (was, want) = (of(&state.wanted), of(now));
            if was == want {
                continue;
            }
            let reached = self.reach(&mut state, daemon, was);
            let (undo, failure) = match reached {
                // it begins with what it has
                Ok((vty, is)) => {
                    let mut undo = Vec::new();
                    let failure = make(vty, &is, &want, &mut undo).err();
                    (undo, failure)
                }
                Err(away) => {
                    let what = format!(
                        "{} is not reached ({away}): it is told when it comes",
                        daemon.word()
                    );
                    tracing::warn!("{what}");
                    state.notes.push(format!("% {what}"));
                    continue;
                }
            };
            done.push((daemon, undo));
            let Some(failure) = failure else {
                state.ours.insert(daemon);
                continue;
            };
            let mut why = match failure {
                Failure::Refused(why) => format!("{}: {why}", daemon.word()),
                Failure::Lost(why) => {
                    // what it has done of it shows when it is spoken to again
                    state.links.remove(&daemon);
                    state.ours.insert(daemon);
                    format!("{} does not answer: {why}", daemon.word())
                }
            };
            // of a line that is not taken there is nothing more to say
            state.notes.clear();
            for (daemon, undo) in done.into_iter().rev() {
                if let Err(more) = state.back(daemon, undo) {
                    tracing::error!("on the way back: {more}");
                    why.push_str(&format!("; and what was before is not back: {more}"));
                }
            }
            return Err(why);
        }
        state.ours.extend(now.iter().map(|l| l.daemon));
        state.wanted = now.to_vec();
        Ok(())
    }

    /// A daemon, and the lines that it has: what it was told, or what it says itself if it was not spoken to before.
    fn reach<'s>(
        &self,
        state: &'s mut State,
        daemon: Daemon,
        was: Vec<Line>,
    ) -> Result<(&'s mut Vty, Vec<Line>), String> {
        if state.links.get_mut(&daemon).is_some_and(Vty::is_gone) {
            state.links.remove(&daemon);
        }
        let began = Instant::now();
        let anew = || {
            let mut vty = Vty::open(&self.socket(daemon.word()))?;
            let text = vty.running()?;
            Ok((vty, read(daemon, &text)))
        };
        let vty = match state.links.remove(&daemon) {
            Some(vty) => Ok((vty, was)),
            None => anew(),
        };
        let vty = vty.map_err(|f| {
            if began.elapsed() >= ANSWER {
                state.late.insert(daemon, Instant::now());
            }
            match f {
                Failure::Refused(why) | Failure::Lost(why) => why,
            }
        })?;
        state.away.remove(&daemon);
        state.late.remove(&daemon);
        Ok((state.links.entry(daemon).or_insert(vty.0), vty.1))
    }

    /// Says all again to who has come, or come back. Called now and then.
    pub fn tick(&self) {
        for daemon in Daemon::ALL {
            // for each by itself: lines wait for no more than one of them
            let mut state = self.lock();
            if !state.ours.contains(&daemon) {
                continue;
            }
            if state.links.get_mut(&daemon).is_some_and(Vty::is_gone) {
                state.links.remove(&daemon);
                tracing::warn!("{} has gone", daemon.word());
            }
            let late = state.late.get(&daemon);
            let alone = late.is_some_and(|since| since.elapsed() < LEFT_ALONE);
            if alone || state.links.contains_key(&daemon) {
                continue;
            }
            let want: Vec<Line> = {
                let all = state.wanted.iter().filter(|l| l.daemon == daemon);
                all.cloned().collect()
            };
            let lost = match self.reach(&mut state, daemon, Vec::new()) {
                Ok((vty, is)) => {
                    let (said, lost) = make_what_goes(vty, &is, &want);
                    tracing::info!("{} is there: {said} lines differed", daemon.word());
                    lost
                }
                Err(why) => Some(why),
            };
            if let Some(why) = lost {
                state.links.remove(&daemon);
                if state.away.insert(daemon) {
                    tracing::warn!("{} is not reached: {why}", daemon.word());
                }
            }
        }
    }

    /// What has to be said of the last [`Frr::set`], once.
    pub fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().notes)
    }

    /// What a program answers to a command of `show`; it is spoken to for this alone.
    ///
    /// # Errors
    /// It is away, or late, or does not know that.
    pub fn ask(&self, program: &str, command: &str) -> Result<String, String> {
        let vty = Vty::open(&self.socket(program));
        let asked = vty.and_then(|mut vty| vty.command(command));
        asked.map_err(|f| match f {
            Failure::Refused(why) => format!("{program}: {why}"),
            Failure::Lost(why) => format!("{program} is not reached ({why})"),
        })
    }
}

impl State {
    fn back(&mut self, daemon: Daemon, undo: Vec<Undo>) -> Result<(), String> {
        // one that is lost is made as it was when it is reached
        let Some(vty) = self.links.get_mut(&daemon) else {
            return Ok(());
        };
        let mut why = Ok(());
        for (below, text) in undo.into_iter().rev().flatten() {
            match vty.configure(&below, &text) {
                Ok(()) => {}
                Err(Failure::Refused(more)) => why = Err(format!("{}: {more}", daemon.word())),
                Err(Failure::Lost(_)) => {
                    self.links.remove(&daemon);
                    return Ok(());
                }
            }
        }
        why
    }
}

/// One thing to say, and the way back.
struct Step {
    below: Vec<String>,
    text: String,
    undo: Undo,
    goes: bool,
    line: Line,
}

/// What is to be said, in order: what goes, the last one first, and then what comes.
fn steps(is: &[Line], want: &[Line]) -> Vec<Step> {
    let said = |l: &Line| (l.below.clone(), l.text.clone());
    let has = |all: &[Line], line: &Line| all.iter().any(|l| l.is(line));
    let mut all = Vec::new();
    let goes: Vec<&Line> = is.iter().filter(|l| !has(want, l)).collect();
    for line in goes.iter().rev() {
        // it goes with what it is below, or another one takes its place
        let with = goes
            .iter()
            .any(|l| line.is_below(l) && !want.iter().any(|w| w.replaces(l)));
        if with || want.iter().any(|w| w.replaces(line)) {
            continue;
        }
        let below = is.iter().filter(|l| l.is_below(line));
        all.push(Step {
            below: line.below.clone(),
            text: line.no.clone(),
            undo: std::iter::once(*line).chain(below).map(said).collect(),
            goes: true,
            line: (*line).clone(),
        });
    }
    // what has gone with the line that it was below is said again
    let gone: Vec<Line> = all.iter().map(|s| s.line.clone()).collect();
    let lost = |line: &Line| gone.iter().any(|g| line.is_below(g));
    for line in want.iter().filter(|l| !has(is, l) || lost(l)) {
        let before = is.iter().find(|l| l.replaces(line));
        let back = before.map_or_else(|| (line.below.clone(), line.no.clone()), said);
        all.push(Step {
            below: line.below.clone(),
            text: line.text.clone(),
            undo: vec![back],
            goes: false,
            line: line.clone(),
        });
    }
    all
}

/// Says what differs; stops at what is refused. `undo` has the way back of what was done.
fn make(vty: &mut Vty, is: &[Line], want: &[Line], undo: &mut Vec<Undo>) -> Result<(), Failure> {
    for step in steps(is, want) {
        match vty.configure(&step.below, &step.text) {
            Ok(()) => undo.push(step.undo),
            // somebody else may have taken it away
            Err(Failure::Refused(why)) if step.goes => {
                let has = read(step.line.daemon, &vty.running()?);
                if has.iter().any(|l| l.is(&step.line)) {
                    return Err(Failure::Refused(why));
                }
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Says what differs, all that is not refused: how much that was, and why it came to no end.
fn make_what_goes(vty: &mut Vty, is: &[Line], want: &[Line]) -> (usize, Option<String>) {
    let mut said = 0;
    for step in steps(is, want) {
        said += 1;
        match vty.configure(&step.below, &step.text) {
            Ok(()) => {}
            Err(Failure::Refused(why)) => {
                tracing::error!("{}: {why}", step.line.daemon.word());
            }
            Err(Failure::Lost(why)) => return (said, Some(why)),
        }
    }
    (said, None)
}
