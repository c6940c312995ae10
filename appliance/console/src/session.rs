// SPDX-License-Identifier: Apache-2.0
//! A session: where it is, what it may, and what a line does.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tandem_swconfig::{Name, routing};
use tandem_swgrammar::{Failure, Form, Grammar, Id, Mode, Parsed};

use tandem_swsecret::redacted;

use crate::change::Scope;
use crate::load::LINE_MOST;
use crate::places::{Kind, Place};
use crate::probe::{self, Task};
use crate::users::Gather;
use crate::{STARTUP, Switch, lock, logs, pipe, show};

mod kept;
mod login;
mod turn;

use kept::{File, ask_copy};
use login::Stage;
pub use login::{Came, check};
use turn::{Pending, Waits};

/// The lines that a session remembers, unless it says otherwise.
pub const HISTORY_MOST: usize = 20;

/// How somebody came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Door {
    /// The privilege level that it begins with.
    pub level: u8,
    /// Where.
    pub kind: Kind,
}

impl Door {
    /// For root: privileged from the first line on.
    #[must_use]
    pub fn cli() -> Door {
        Door {
            level: 15,
            kind: Kind::Cli,
        }
    }

    /// A line at the box itself: `enable` without a password, as long as none is set.
    #[must_use]
    pub fn console() -> Door {
        Door {
            level: 1,
            kind: Kind::Console,
        }
    }

    /// From elsewhere: who has been asked for a password has this level.
    #[must_use]
    pub fn vty(level: u8) -> Door {
        Door {
            level,
            kind: Kind::Vty,
        }
    }
}

/// What a line says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The text: lines, each with its end; or nothing.
    pub text: String,
    /// Is the session over?
    pub closed: bool,
    /// Was it refused? What begins with `%` is no refusal where it was done all the same.
    pub refused: bool,
}

impl Output {
    /// What has come since belongs to it.
    pub(crate) fn add(&mut self, more: Output) {
        self.text.push_str(&more.text);
        self.closed |= more.closed;
        self.refused |= more.refused;
    }
}

/// A command that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ask {
    /// Whether to keep what is not kept, before the next one.
    ReloadSave,
    Reload,
    ClearCounters(Option<Name>),
    ClearOspf,
    ClearLog,
    Copy {
        from: File,
        to: File,
    },
    Erase,
    /// A file; `true`: its name was confirmed already.
    Delete(String, bool),
    Replace {
        file: String,
        /// In which it has to be confirmed.
        minutes: Option<u32>,
    },
    /// The secret of a privilege level, and how often what was said was none.
    Enable {
        level: u8,
        wrong: u8,
    },
    /// More lines of a banner.
    Banner(Gather),
}

/// What goes on since the last line.
enum Goes {
    /// `ping`, `traceroute`.
    Probe(Task),
    /// Another session has its turn.
    Waits(Waits),
}

/// What `show tech-support` is made of.
const TECH: [&str; 27] = [
    "show clock",
    "show version",
    "show inventory",
    "show running-config",
    "show archive config differences",
    "show flash:",
    "show interfaces status",
    "show interfaces",
    "show interfaces trunk",
    "show vlan",
    "show mac address-table",
    "show spanning-tree",
    "show ip interface brief",
    "show ipv6 interface brief",
    "show ip route",
    "show ipv6 route",
    "show ip arp",
    "show ip protocols",
    "show access-lists",
    "show monitor",
    "show platform resources",
    "show platform replication",
    "show platform drift",
    "show processes cpu",
    "show processes memory",
    "show memory",
    "show users",
];

/// A line of a configuration for somebody else: what is kept of secrets is none of theirs.
fn without_secrets(line: &str) -> String {
    for word in [" secret ", " password ", " community "] {
        if let Some((before, _)) = line.split_once(word) {
            return format!("{before}{word}<removed>");
        }
    }
    line.into()
}

/// A session.
pub struct Session {
    switch: Arc<Mutex<Switch>>,
    grammar: Grammar,
    door: Door,
    who: String,
    level: u8,
    scope: Option<Scope>,
    ask: Option<Ask>,
    /// The last one, without secrets: what others wait for.
    line: String,
    task: Option<Goes>,
    /// How often the switch had been reloaded when it began.
    reloads: u32,
    history: VecDeque<String>,
    /// So many lines of them.
    remembers: usize,
    /// Lines of a page; 0: no pages.
    length: u16,
    /// Characters of a line; 0: as many as come.
    width: u16,
    stage: Stage,
    user: Option<String>,
    place: Option<Place>,
    came: Instant,
    wrong: u8,
    /// Seconds without a key; 0: as many as there may be.
    idle: u32,
}

impl Session {
    /// Somebody came in.
    #[must_use]
    pub fn new(switch: Arc<Mutex<Switch>>, door: Door) -> Session {
        let reloads = lock(&switch).reloads;
        Session {
            switch,
            reloads,
            grammar: Grammar::new(),
            door,
            who: String::new(),
            level: door.level,
            scope: None,
            ask: None,
            line: String::new(),
            task: None,
            history: VecDeque::new(),
            remembers: HISTORY_MOST,
            length: 24,
            width: 80,
            stage: Stage::In,
            user: None,
            place: None,
            came: Instant::now(),
            wrong: 0,
            idle: 0,
        }
    }

    /// The size of its terminal; what is 0 is not known, and stays.
    pub fn size(&mut self, width: u16, height: u16) {
        for (mine, given) in [(&mut self.width, width), (&mut self.length, height)] {
            if given != 0 {
                *mine = given.min(512);
            }
        }
    }

    /// Who it is, for the log.
    #[must_use]
    pub fn named(mut self, who: impl Into<String>) -> Session {
        self.who = who.into();
        self
    }

    /// Lines of a page; 0: no pages.
    #[must_use]
    pub fn length(&self) -> u16 {
        self.length
    }

    /// Characters of a line; 0: as many as come.
    #[must_use]
    pub fn width(&self) -> u16 {
        self.width
    }

    /// What was typed, the oldest first.
    pub fn history(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.history.iter().map(String::as_str)
    }

    /// Does a command wait for an answer? Then what is typed is no command, and help has nothing to say.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.stage != Stage::In || self.ask.is_some()
    }

    /// Is what is typed a secret, to be shown nowhere?
    #[must_use]
    pub fn hides(&self) -> bool {
        matches!(self.stage, Stage::Password(_)) || matches!(self.ask, Some(Ask::Enable { .. }))
    }

    /// Does something go on, of which [`Session::step`] says more?
    #[must_use]
    pub fn runs(&self) -> bool {
        self.task.is_some()
    }

    /// Is it another session's turn?
    pub(crate) fn waits(&self) -> bool {
        matches!(self.task, Some(Goes::Waits(_)))
    }

    /// Lets it go on, for about so long: what there is to say of it. No other session waits for that.
    pub fn step(&mut self, within: Duration) -> Output {
        match self.task.take() {
            None => Output::default(),
            Some(Goes::Probe(mut task)) => {
                let text = task.step(within);
                if !task.is_over() {
                    self.task = Some(Goes::Probe(task));
                }
                Output {
                    text,
                    ..Output::default()
                }
            }
            Some(Goes::Waits(waits)) => self.wait(waits, within),
        }
    }

    /// Ends it: what there is to say of that.
    pub fn stop(&mut self) -> Output {
        match self.task.take() {
            None => Output::default(),
            Some(Goes::Probe(mut task)) => Output {
                text: task.end(),
                ..Output::default()
            },
            Some(Goes::Waits(_)) => said("% It was not its turn yet: nothing is changed".into()),
        }
    }

    /// What stands in front of the line.
    #[must_use]
    pub fn prompt(&self) -> String {
        match self.stage {
            Stage::In => {}
            Stage::Name => return "Username: ".into(),
            Stage::Password(_) => return "Password: ".into(),
        }
        match &self.ask {
            Some(Ask::Enable { .. }) => "Password: ".into(),
            Some(Ask::Banner(_)) => String::new(),
            Some(Ask::ReloadSave) => {
                "System configuration has been modified. Save? [yes/no]: ".into()
            }
            Some(Ask::Reload) => "Proceed with reload? [confirm]".into(),
            Some(Ask::ClearLog) => "Clear logging buffer [confirm]".into(),
            Some(Ask::ClearOspf) => "Reset ALL OSPF processes? [no]: ".into(),
            Some(Ask::ClearCounters(None)) => {
                "Clear \"show interface\" counters on all interfaces [confirm]".into()
            }
            Some(Ask::ClearCounters(Some(_))) => {
                "Clear \"show interface\" counters on this interface [confirm]".into()
            }
            Some(Ask::Copy { to, .. }) => format!("Destination filename [{}]? ", to.name()),
            Some(Ask::Erase) => {
                "Erasing the nvram filesystem will remove all configuration files! Continue? [confirm]".into()
            }
            Some(Ask::Delete(name, false)) => format!("Delete filename [{name}]? "),
            Some(Ask::Delete(name, true)) => format!("Delete flash:/{name}? [confirm]"),
            Some(Ask::Replace { .. }) => "Enter Y if you are sure you want to proceed. ? [no]: ".into(),
            None => {
                let switch = lock(&self.switch);
                let name = switch.config.hostname.as_deref().unwrap_or("Switch");
                let mode = match &self.scope {
                    None => String::new(),
                    Some(Scope::Interfaces { range: true, .. }) => "(config-if-range)".into(),
                    Some(scope) => format!("({})", scope.mode().word()),
                };
                let end = if self.level > 1 { '#' } else { '>' };
                format!("{name}{mode}{end}")
            }
        }
    }

    fn mode(&self) -> Mode {
        self.scope.as_ref().map_or(Mode::Exec, Scope::mode)
    }

    /// Back to exec mode, and no answer is waited for: ^Z, ^C.
    pub fn leave(&mut self) {
        if self.stage != Stage::In {
            self.stage = Stage::Name;
        }
        let was = self.scope.take();
        self.ask = None;
        if let Some(Goes::Waits(waits)) = &mut self.task {
            waits.leave();
        }
        self.has_configured(was.is_some());
    }

    /// Was it in a mode of configuration, and is not any more?
    fn has_configured(&self, was: bool) {
        if was && self.scope.is_none() {
            let text = format!("Configured from console by {}", self.who);
            lock(&self.switch).logs.say(logs::CONFIGURED, &text);
        }
    }

    /// Carries out a line, or takes it as the answer to what a command asks.
    pub fn line(&mut self, line: &str) -> Output {
        let was = self.scope.is_some();
        let output = self.take(line);
        self.has_configured(was);
        output
    }

    fn take(&mut self, line: &str) -> Output {
        self.task = None;
        if self.reloads != lock(&self.switch).reloads {
            return reloaded();
        }
        if self.stage != Stage::In {
            return self.login(line);
        }
        if let Some(place) = &self.place {
            place.touch();
            self.read_line();
        }
        match self.ask.take() {
            None => {}
            Some(Ask::Enable { level, wrong }) => return self.enabled(level, wrong, line),
            Some(Ask::Banner(gather)) => return self.gather(gather, line),
            Some(ask) => return self.begin(Pending::Answer(ask, line.trim().into())),
        }
        if line.len() > LINE_MOST {
            return said(format!("% Line is longer than {LINE_MOST} octets"));
        }
        let line: String = line
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        if line.trim().is_empty() || line.trim_start().starts_with('!') {
            return Output::default();
        }
        let shown = redacted(line.trim_end());
        self.seen().log.say(&self.who, &shown);
        self.line.clone_from(&shown);
        // what has a secret in it is not remembered
        let last = self.history.back();
        if shown == line.trim_end() && last.is_none_or(|last| *last != shown) {
            self.history.push_back(line.trim_end().into());
        }
        if self.history.len() > self.remembers {
            self.history.pop_front();
        }
        let prompt = self.prompt().chars().count();
        match &self.scope {
            None => self.exec(&line, prompt),
            Some(_) => self.configure(&line, prompt),
        }
    }

    /// A line of a configuration mode: it takes effect now, or not at all.
    fn configure(&mut self, line: &str, prompt: usize) -> Output {
        let Some(scope) = self.scope.clone() else {
            return Output::default();
        };
        let ports = self.seen().ports();
        let parsed = match self.grammar.parse(scope.mode(), self.level, line, &ports) {
            Ok(parsed) => parsed,
            Err(failure) => {
                return said(failure.shown(line, prompt));
            }
        };
        match parsed.id {
            Id::Do => {
                let text = parsed.text().unwrap_or_default().to_string();
                let before = line.chars().count() - line.trim_end().chars().count();
                let at = line.chars().count() - before - text.chars().count();
                return self.exec(&text, prompt + at);
            }
            Id::End => self.scope = None,
            Id::Exit => self.scope = scope.above(),
            _ => {
                if let Some(gather) = Gather::of(&parsed) {
                    let hint = gather.hint();
                    self.ask = Some(Ask::Banner(gather));
                    return said(hint);
                }
                return self.begin(Pending::Set(scope, Box::new(parsed)));
            }
        }
        Output::default()
    }

    /// A copy of the switch, for who looks.
    fn seen(&self) -> Switch {
        lock(&self.switch).clone()
    }

    /// A line more of a banner; the last one sets it.
    fn gather(&mut self, mut gather: Gather, line: &str) -> Output {
        let line: String = line
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let Some(parsed) = gather.line(&line) else {
            self.ask = Some(Ask::Banner(gather));
            return Output::default();
        };
        self.begin(Pending::Set(Scope::Switch, Box::new(parsed)))
    }

    /// A line of exec mode.
    fn exec(&mut self, line: &str, prompt: usize) -> Output {
        let (command, filter) = match pipe::split(line) {
            Some((command, filter)) => (command, Some(filter)),
            None => (line, None),
        };
        let switch = self.seen();
        let ports = switch.ports();
        let parsed = match self.grammar.parse(Mode::Exec, self.level, command, &ports) {
            Ok(parsed) => parsed,
            Err(failure) => {
                return said(failure.shown(line, prompt));
            }
        };
        // what is no command may be a secret that was typed where none is asked for, and more people read this log
        let text = format!("User:{}  command:{}", self.who, self.line.trim());
        switch.logs.say(logs::EXEC, &text);
        if let Some(filter) = filter {
            if !parsed.has("show") {
                let at = command.chars().count();
                return said(Failure::Invalid(at).shown(line, prompt));
            }
            if pipe::is_json(filter) {
                return said(match show::json(&switch, &parsed) {
                    Some(value) => format!("{value:#}"),
                    None => "% There is no JSON of this".into(),
                });
            }
            return match pipe::Pipe::new(filter) {
                Ok(pipe) => said(pipe.run(&self.show(&switch, &parsed))),
                Err(why) => said(why),
            };
        }
        match parsed.id {
            Id::Enable => return self.enable(&switch.config.access, level_of(&parsed, 15)),
            Id::Disable => {
                let to = level_of(&parsed, self.level.min(1));
                if to > self.level {
                    return said("% New privilege level must be less than the current one".into());
                }
                self.go_down(to);
            }
            Id::Exit | Id::Logout => {
                return Output {
                    closed: true,
                    ..Output::default()
                };
            }
            Id::Configure if parsed.has("revert") => {
                return self.begin(Pending::Exec(Box::new(parsed)));
            }
            Id::Configure => {
                self.scope = Some(Scope::Switch);
                return said(
                    "Enter configuration commands, one per line.  End with CNTL/Z.".into(),
                );
            }
            Id::Terminal => {
                let number = parsed.number().and_then(|n| u16::try_from(n).ok());
                let to = match (parsed.form, parsed.has("length")) {
                    (Form::Plain, _) => number.unwrap_or(0),
                    (_, true) => 24,
                    (_, false) => 80,
                };
                if parsed.has("length") {
                    self.length = to;
                } else {
                    self.width = to;
                }
            }
            Id::Reload => {
                self.ask = Some(match switch.is_kept() {
                    true => Ask::Reload,
                    false => Ask::ReloadSave,
                });
            }
            Id::ClearCounters => {
                self.ask = Some(Ask::ClearCounters(parsed.interfaces().first().copied()));
            }
            Id::ClearOspf => self.ask = Some(Ask::ClearOspf),
            Id::ClearLog => self.ask = Some(Ask::ClearLog),
            Id::HistorySize => {
                let number = parsed.number().and_then(|n| usize::try_from(n).ok());
                self.remembers = number.unwrap_or(HISTORY_MOST);
                let more = self.history.len().saturating_sub(self.remembers);
                self.history.drain(..more);
            }
            Id::Ping | Id::Traceroute => {
                let begun = probe::source(&parsed, &switch.config).and_then(|source| {
                    let prober = switch.engine.prober(source);
                    let prober = prober.map_err(|why| format!("% {why}"))?;
                    Task::new(&parsed, source, prober)
                });
                return match begun {
                    Ok((task, text)) => {
                        self.task = Some(Goes::Probe(task));
                        said(text)
                    }
                    Err(why) => said(why),
                };
            }
            Id::Replace => {
                let file = parsed.text().unwrap_or(STARTUP).to_string();
                if parsed.has("force") {
                    return self.begin(Pending::Exec(Box::new(parsed)));
                }
                let minutes = parsed.number();
                self.ask = Some(Ask::Replace { file, minutes });
                return said(
                    "This will apply all necessary additions and deletions\n\
                     to replace the current running configuration with the\n\
                     contents of the specified configuration file, which is\n\
                     assumed to be a complete configuration, not a partial\n\
                     configuration."
                        .into(),
                );
            }
            Id::Copy => self.ask = ask_copy(&parsed),
            Id::Write if parsed.has("erase") => self.ask = Some(Ask::Erase),
            Id::Write if parsed.has("terminal") => {
                return said(show::running(&switch, None));
            }
            Id::Confirm
            | Id::Revert
            | Id::ClearArp
            | Id::ClearBgp
            | Id::ClearStations
            | Id::Write => {
                return self.begin(Pending::Exec(Box::new(parsed)));
            }
            Id::Erase => self.ask = Some(Ask::Erase),
            Id::Undebug => return said("All possible debugging has been turned off".into()),
            Id::Debug => {
                return said(
                    "% There is no debugging: show platform why, show access-lists and monitor session tell".into(),
                );
            }
            Id::Delete if parsed.has("/force") => {
                return self.begin(Pending::Exec(Box::new(parsed)));
            }
            Id::Delete => {
                let name = parsed.text().unwrap_or_default().into();
                self.ask = Some(Ask::Delete(name, false));
            }
            _ => {
                return said(self.show(&switch, &parsed));
            }
        }
        Output::default()
    }

    fn show(&self, switch: &Switch, parsed: &Parsed) -> String {
        match parsed.id {
            Id::ShowHistory => self.history.iter().map(|l| format!("  {l}\n")).collect(),
            Id::ShowUsers => switch.places.users(self.place.as_ref()),
            Id::ShowLine => switch.places.lines(self.place.as_ref()),
            Id::ShowPrivilege => format!("Current privilege level is {}\n", self.level),
            Id::ShowTech => self.tech(switch),
            _ => show::show(switch, parsed),
        }
    }

    /// All that somebody who helps from afar asks for. Secrets are not in it.
    fn tech(&self, switch: &Switch) -> String {
        let ports = switch.ports();
        let mut text = String::new();
        for line in TECH {
            let Ok(parsed) = self.grammar.parse(Mode::Exec, self.level, line, &ports) else {
                continue;
            };
            let shown = self.show(switch, &parsed);
            let shown: Vec<String> = shown.lines().map(without_secrets).collect();
            text.push_str(&format!(
                "\n------------------ {line} ------------------\n\n{}\n",
                shown.join("\n")
            ));
        }
        text
    }

    /// What `?` shows behind a line.
    #[must_use]
    pub fn help(&self, line: &str) -> String {
        if self.stage != Stage::In {
            return String::new();
        }
        let Some((mode, line)) = self.helped(line) else {
            return pipe::help();
        };
        let ports = self.seen().ports();
        let next = match self.grammar.next(mode, self.level, line, &ports) {
            Ok(next) => next,
            Err(Failure::Ambiguous) => return Failure::Ambiguous.shown(line, 0),
            Err(_) => return "% Unrecognized command\n".into(),
        };
        // a word that has begun: what it may become, side by side
        if line.chars().next_back().is_some_and(|c| !c.is_whitespace()) {
            let words: Vec<&str> = next.iter().map(|n| n.word.as_str()).collect();
            return format!("{}\n", words.join("  "));
        }
        let wide = next.iter().map(|n| n.word.len()).max().unwrap_or(0);
        // <cr> is the last one
        let (cr, others): (Vec<_>, Vec<_>) = next.iter().partition(|n| n.word == "<cr>");
        let shown = |n: &&tandem_swgrammar::walk::Next| {
            format!("  {:wide$}  {}", n.word, n.help)
                .trim_end()
                .to_string()
        };
        let mut lines: Vec<String> = others.iter().map(shown).collect();
        let show = mode == Mode::Exec
            && self
                .grammar
                .parse(mode, self.level, line, &ports)
                .is_ok_and(|p| p.has("show"));
        if show {
            lines.push(format!("  {:wide$}  Output modifiers", "|"));
        }
        lines.extend(cr.iter().map(shown));
        lines.join("\n") + "\n"
    }

    /// What a line becomes by Tab, if that is clear.
    #[must_use]
    pub fn complete(&self, line: &str) -> Option<String> {
        if self.asks() {
            return None;
        }
        let (mode, command) = self.helped(line)?;
        if command.chars().next_back().is_none_or(char::is_whitespace) {
            return None;
        }
        let ports = self.seen().ports();
        let next = self.grammar.next(mode, self.level, command, &ports).ok()?;
        let [one] = next.as_slice() else {
            return None;
        };
        let begun = line.rfind(char::is_whitespace).map_or(0, |i| i + 1);
        one.literal
            .then(|| format!("{}{} ", line.get(..begun).unwrap_or_default(), one.word))
    }

    /// The mode and the line that help is about: behind `do` it is exec mode's. `None`: it is about a filter.
    fn helped<'l>(&self, line: &'l str) -> Option<(Mode, &'l str)> {
        let mode = self.mode();
        let exec = if mode == Mode::Exec {
            Some(line)
        } else {
            line.trim_start().strip_prefix("do ")
        };
        match exec {
            Some(exec) if pipe::split(exec).is_some() => None,
            Some(exec) => Some((Mode::Exec, exec)),
            None => Some((mode, line)),
        }
    }
}

fn reloaded() -> Output {
    Output {
        closed: true,
        ..said("The switch has been reloaded: this session is over".into())
    }
}

/// A protocol begins anew: nothing to say, or why not.
fn anew(switch: &Switch, what: routing::Ask) -> String {
    let done = switch.engine.protocols(what);
    done.unwrap_or_else(|why| format!("% {why}"))
}

/// Text with the end of its last line; nothing stays nothing. A line that begins with `%` is a refusal.
fn said(mut text: String) -> Output {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    // IOS's mark of what was not done, under a caret or by itself
    let refused = text.lines().any(|line| line.starts_with('%'));
    Output {
        text,
        closed: false,
        refused,
    }
}

fn level_of(parsed: &Parsed, usual: u8) -> u8 {
    let level = parsed.number().and_then(|n| u8::try_from(n).ok());
    level.unwrap_or(usual)
}
