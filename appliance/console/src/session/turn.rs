// SPDX-License-Identifier: Apache-2.0
//! What a session changes, when it is its turn: at once, or when others have had theirs. It says whom it waits for, and ^C
//! ends that.

use std::time::{Duration, Instant};

use tandem_swconfig::{Config, routing};
use tandem_swgrammar::{Arg, Id, Mode, Parsed};

use super::kept::{copy, replace, save};
use super::{Ask, Goes, Output, Session, anew, said};
use crate::change::{Scope, change};
use crate::turns::Turn;
use crate::{STARTUP, Store as _, lock, logs, revert, users};

/// A session that waits for so long says so.
const SAY_AFTER: Duration = Duration::from_secs(1);

/// What is to be carried out.
pub(super) enum Pending {
    /// A command of a configuration mode.
    Set(Scope, Box<Parsed>),
    /// One of exec mode.
    Exec(Box<Parsed>),
    /// What a command has asked, and the answer.
    Answer(Ask, String),
}

/// It is another session's turn.
pub(super) struct Waits {
    pending: Pending,
    since: Instant,
    said: bool,
    /// Is configuration mode left behind it?
    leaves: bool,
}

impl Waits {
    /// Behind it the session is in exec mode: ^Z.
    pub(super) fn leave(&mut self) {
        self.leaves = true;
    }
}

impl Session {
    /// Carries something out if nobody else does just now; or waits, which [`Session::step`] goes on with.
    pub(super) fn begin(&mut self, mut pending: Pending) -> Output {
        // hashing takes its time, and nobody is to wait for it
        if let Pending::Set(_, parsed) = &mut pending
            && let Err(why) = users::hash(parsed)
        {
            return said(why);
        }
        let waits = Waits {
            pending,
            since: Instant::now(),
            said: false,
            leaves: false,
        };
        self.wait(waits, Duration::ZERO)
    }

    /// Waits no longer than this for its turn.
    pub(super) fn wait(&mut self, mut waits: Waits, within: Duration) -> Output {
        let what = format!("{}: {}", self.who, self.line);
        let who = match Turn::take(&self.switch, &what, within) {
            Ok(turn) => {
                let output = self.carry_out(waits.pending, &turn);
                if waits.leaves {
                    self.scope = None;
                }
                return output;
            }
            Err(who) => who,
        };
        let mut output = Output::default();
        if !waits.said && waits.since.elapsed() >= SAY_AFTER {
            waits.said = true;
            output.text = format!("Waiting for {who} (^C ends this)\n");
        }
        self.task = Some(Goes::Waits(waits));
        output
    }

    fn carry_out(&mut self, pending: Pending, turn: &Turn) -> Output {
        if self.reloads != lock(&self.switch).reloads {
            return super::reloaded();
        }
        match pending {
            Pending::Set(scope, parsed) => {
                let output = self.set(turn, &scope, &parsed);
                if !output.refused {
                    let text = format!("User:{}  logged command:{}", self.who, self.line.trim());
                    turn.seen().logs.say(logs::COMMAND, &text);
                }
                output
            }
            Pending::Exec(parsed) => self.act(turn, &parsed),
            Pending::Answer(ask, answer) => {
                let text = self.answer(ask, &answer, turn);
                let closed = self.reloads != lock(&self.switch).reloads;
                Output {
                    closed,
                    ..done(text, turn)
                }
            }
        }
    }

    /// Carries a command out that changes the configuration.
    fn set(&mut self, turn: &Turn, scope: &Scope, parsed: &Parsed) -> Output {
        let seen = turn.seen();
        let mut now = Config::clone(&seen.config);
        let done = change(&mut now, scope, parsed).and_then(|done| turn.apply(now).map(|()| done));
        match done {
            Ok(mut done) => {
                let above = (parsed.mode == Mode::Config).then_some(Scope::Switch);
                self.scope = done.scope.take().or(above).or(Some(scope.clone()));
                done.notes.extend(seen.engine.notes());
                Output {
                    refused: false,
                    ..said(done.notes.join("\n"))
                }
            }
            Err(why) => said(why),
        }
    }

    /// Carries out a command of exec mode that changes something.
    fn act(&mut self, turn: &Turn, parsed: &Parsed) -> Output {
        let engine = turn.seen().engine;
        let port = parsed.interfaces().first().copied();
        let done = match parsed.id {
            Id::ClearArp => engine.forget_neighbours(),
            Id::ClearStations => engine.forget_stations(parsed.vlan(), port.as_ref()),
            Id::ClearBgp => {
                let one = parsed.args.iter().find_map(|a| match a {
                    Arg::Address(a) => Some(*a),
                    _ => None,
                });
                return said(anew(&turn.seen(), routing::Ask::BgpAnew(one)));
            }
            Id::Replace => {
                let file = parsed.text().unwrap_or(STARTUP);
                let text = self.replace(turn, file, parsed.number());
                return self::done(text, turn);
            }
            Id::Configure => {
                let minutes = parsed.number().unwrap_or(1);
                if let Err(why) = revert::begin(turn, minutes, &self.named_shortly()) {
                    return said(why);
                }
                self.scope = Some(Scope::Switch);
                return said(format!(
                    "{}Enter configuration commands, one per line.  End with CNTL/Z.",
                    begun(minutes)
                ));
            }
            Id::Delete => return said(delete(turn, parsed.text().unwrap_or_default())),
            Id::Confirm => {
                return revert::confirm(turn).map_or_else(said, |()| Output::default());
            }
            Id::Revert => {
                let done = match parsed.number() {
                    Some(minutes) => revert::retime(turn, minutes).map(|()| String::new()),
                    None => revert::now(turn),
                };
                return self::done(done.unwrap_or_else(|why| why), turn);
            }
            _ => {
                let saved = save(turn, STARTUP);
                return said(format!("Building configuration...\n{saved}"));
            }
        };
        match done {
            Ok(()) => Output::default(),
            Err(why) => said(format!("% {why}")),
        }
    }

    /// Makes the configuration that of a file; with minutes, until it is confirmed in them, or as it was.
    fn replace(&self, turn: &Turn, file: &str, minutes: Option<u32>) -> String {
        let Some(minutes) = minutes else {
            return replace(turn, file);
        };
        if let Err(why) = revert::begin(turn, minutes, &self.named_shortly()) {
            return why;
        }
        let text = replace(turn, file);
        // of what was not done there is nothing to confirm; a banner may have lines that begin with %
        if !text.ends_with("Rollback Done\n") {
            return match revert::confirm(turn) {
                Ok(()) => text,
                Err(why) => format!("{text}\n{why}"),
            };
        }
        format!("{}{text}", begun(minutes))
    }

    fn named_shortly(&self) -> String {
        self.user.clone().unwrap_or_else(|| self.who.clone())
    }

    /// What a command asked has been answered.
    fn answer(&mut self, ask: Ask, answer: &str, turn: &Turn) -> String {
        let yes = answer.is_empty() || answer.to_ascii_lowercase().starts_with('y');
        match ask {
            Ask::ReloadSave => match answer.to_ascii_lowercase().as_str() {
                "y" | "yes" => {
                    let said = save(turn, STARTUP);
                    // what is not kept would be lost
                    if !said.starts_with('%') {
                        self.ask = Some(Ask::Reload);
                    }
                    format!("Building configuration...\n{said}")
                }
                "n" | "no" => {
                    self.ask = Some(Ask::Reload);
                    String::new()
                }
                _ => {
                    self.ask = Some(Ask::ReloadSave);
                    "Please answer 'yes' or 'no'.".into()
                }
            },
            Ask::Reload if yes => {
                let text = format!("Reload requested by {}", self.who);
                turn.seen().logs.say(logs::RELOAD, &text);
                turn.reload().join("\n")
            }
            Ask::ClearLog if yes => {
                turn.seen().logs.clear();
                String::new()
            }
            Ask::ClearOspf if yes && !answer.is_empty() => {
                anew(&turn.seen(), routing::Ask::OspfAnew)
            }
            Ask::ClearCounters(one) if yes => {
                turn.clear_counters(one.as_ref());
                String::new()
            }
            Ask::Erase if yes => match turn.seen().store.erase(STARTUP) {
                Ok(()) => "[OK]\nErase of nvram: complete".into(),
                Err(e) => format!("% {STARTUP}: {e}"),
            },
            Ask::Delete(name, false) if answer.is_empty() || answer == name => {
                self.ask = Some(Ask::Delete(name, true));
                String::new()
            }
            Ask::Delete(_, false) => "% The file is what the command says".into(),
            Ask::Delete(name, true) if yes => delete(turn, &name),
            Ask::Replace { file, minutes } if yes && !answer.is_empty() => {
                self.replace(turn, &file, minutes)
            }
            Ask::Copy { from, to } => match (&to, answer) {
                (_, "") => copy(turn, &from, &to),
                (to, name) if name == to.name() => copy(turn, &from, to),
                _ => "% The destination is what the command says".into(),
            },
            _ => String::new(),
        }
    }
}

fn delete(turn: &Turn, name: &str) -> String {
    let mut seen = turn.seen();
    let done = match seen.store.read(name) {
        Ok(None) => return crate::files::missing(name),
        _ if name == revert::KEPT && revert::is_pending(&seen) => {
            return "% configure confirm removes it".into();
        }
        _ => seen.store.erase(name),
    };
    done.map_or_else(|e| format!("% {name}: {e}"), |()| String::new())
}

fn begun(minutes: u32) -> String {
    let time = match minutes {
        1 => "one minute".into(),
        n => format!("{n} minutes"),
    };
    format!(
        "Rollback Confirmed Change: Backing up current running config to flash:{}\n\
         Rollback Confirmed Change: Rollback will begin in {time}.\n\
         Enter \"configure confirm\" if you wish to keep what you've configured\n",
        revert::KEPT
    )
}

/// What came of a whole configuration, and what has to be said beside it, which is no refusal.
fn done(text: String, turn: &Turn) -> Output {
    let mut out = said(text);
    for note in turn.seen().engine.notes() {
        out.text.push_str(&note);
        out.text.push('\n');
    }
    out
}
