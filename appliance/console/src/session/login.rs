// SPDX-License-Identifier: Apache-2.0
//! Who a session is: Username and Password, `enable`, and how long it waits for a key.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tandem_swconfig::users::{Access, Kept, Line};
use tandem_swsecret::{Gate, Secret, Way};

use super::{Ask, Door, Output, Session, said};
use crate::places::Kind;
use crate::{Switch, lock, logs};

/// Who comes in has said who it is after this time, or is closed.
const LOGIN_WITHIN: Duration = Duration::from_secs(60);
/// After so many wrong answers it is over.
const WRONG_MOST: u8 = 3;

/// How far somebody is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Is known, or need not be.
    In,
    /// A name is asked for.
    Name,
    /// The secret of this name.
    Password(String),
}

/// How somebody came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Came {
    /// Where.
    pub kind: Kind,
    /// Who it is, if somebody else has made sure of that.
    pub user: Option<String>,
    /// From where, as `show users` shows it.
    pub from: String,
    /// What the log calls it.
    pub who: String,
}

/// Is it the secret? Where there is none, to find that out takes as long.
fn is(secret: Option<Kept>, typed: &str) -> bool {
    static NOBODYS: OnceLock<Option<Secret>> = OnceLock::new();
    match secret.and_then(|Kept(text)| Secret::read(&text)) {
        Some(secret) => secret.is(typed),
        None => {
            let other = NOBODYS.get_or_init(|| Secret::of_plain("nobody's").ok());
            std::hint::black_box(other.as_ref().is_some_and(|s| s.is(typed)));
            false
        }
    }
}

/// Holds a name and a secret against each other, no more often than the gate lets. The outer `None`: too often.
fn try_one(gate: &Gate, way: Way, name: &str, secret: Option<Kept>, typed: &str) -> Option<bool> {
    let begun = Instant::now();
    let right = gate.take(way, name, begun).then(|| is(secret, typed));
    if right == Some(true) {
        gate.right(way, name);
    } else {
        std::thread::sleep(gate.delay().saturating_sub(begun.elapsed()));
    }
    right
}

/// Is this a user's secret? For another program that asks for it: sshd, by PAM.
#[must_use]
pub fn check(switch: &Arc<Mutex<Switch>>, who: &str, name: &str, typed: &str) -> bool {
    let places = Arc::clone(&lock(switch).places);
    let Some(_one) = places.check() else {
        let log = lock(switch).log.clone();
        log.say(who, "(was refused, too many ask at once)");
        return false;
    };
    let (gate, secret) = {
        let switch = lock(switch);
        let user = switch.config.access.users.get(name);
        (
            Arc::clone(&switch.gate),
            user.and_then(|u| u.secret.clone()),
        )
    };
    let right = try_one(&gate, Way::Far, name, secret, typed);
    let seen = lock(switch).clone();
    tell(&seen, who, name, right);
    right == Some(true)
}

/// The log has names that there are. What else was typed for one may be a secret.
fn tell(switch: &Switch, who: &str, name: &str, right: Option<bool>) {
    let known = switch.config.access.users.contains_key(name);
    let name = if known {
        name
    } else {
        "a name that is not there"
    };
    let what = match right {
        Some(true) => "has logged in",
        Some(false) => "was refused",
        None => "was refused, too many were wrong",
    };
    switch.log.say(who, &format!("({name} {what})"));
    let (kind, text) = match right {
        Some(true) => (
            logs::LOGIN,
            format!("Login Success [user: {name}] [Source: {who}]"),
        ),
        _ => {
            let text = format!("Login failed [user: {name}] [Source: {who}] [Reason: {what}]");
            (logs::NO_LOGIN, text)
        }
    };
    switch.logs.say(kind, &text);
}

impl Session {
    /// Somebody came in: with a place, known or to be asked.
    ///
    /// # Errors
    /// All places are taken.
    pub fn enter(switch: Arc<Mutex<Switch>>, came: Came) -> Result<Session, String> {
        let (place, line, user) = {
            let switch = lock(&switch);
            let access = &switch.config.access;
            let user = came.user.filter(|u| access.users.contains_key(u));
            let place = switch
                .places
                .take(came.kind, user.as_deref(), &came.from)
                .ok_or("% All lines are taken")?;
            let line = place.line(access).cloned().unwrap_or_default();
            let user = user.map(|u| {
                let level = access.users.get(&u).and_then(|u| u.level);
                (u, level)
            });
            (place, line, user)
        };
        let usual = line.level.unwrap_or(1);
        let (level, stage) = match (came.kind, &user) {
            (Kind::Cli, _) => (15, Stage::In),
            (Kind::Vty, Some((_, level))) => (level.unwrap_or(usual), Stage::In),
            (Kind::Console, _) if !line.login => (usual, Stage::In),
            _ => (0, Stage::Name),
        };
        let door = Door {
            level,
            kind: came.kind,
        };
        let mut session = Session::new(switch, door);
        session.who = format!("{} ({})", place.name(), came.who);
        session.place = Some(place);
        session.read_line();
        if stage == Stage::In
            && let Some((name, _)) = user
        {
            session.is(&name);
            // root's have a line in the log for each command, and nothing that could be refused
            if came.kind != Kind::Cli {
                let switch = session.seen();
                switch.log.say(&session.who, "(is in)");
                let text = format!("Login Success [user: {name}] [Source: {}]", session.who);
                switch.logs.say(logs::LOGIN, &text);
            }
        }
        session.stage = stage;
        Ok(session)
    }

    /// What is shown to who comes in, before the first prompt.
    #[must_use]
    pub fn greeting(&self) -> String {
        let switch = lock(&self.switch);
        let access = &switch.config.access;
        let mut text = String::new();
        let asks = self.stage != Stage::In;
        let before = access.before_login.as_ref().filter(|_| asks);
        for banner in access.motd.iter().chain(before) {
            text.push_str(banner);
            text.push('\n');
        }
        if asks {
            text.push_str("\nUser Access Verification\n\n");
        }
        text
    }

    /// Has it been made sure who this is, or need it not be?
    #[must_use]
    pub fn is_in(&self) -> bool {
        self.stage == Stage::In
    }

    /// For how long a key is waited for, and what is said when none has come; `None`: for ever.
    #[must_use]
    pub fn patience(&self) -> Option<(Duration, String)> {
        if self.stage != Stage::In {
            let left = LOGIN_WITHIN.saturating_sub(self.came.elapsed());
            return Some((left, "% Login timed out".into()));
        }
        let idle = self.idle;
        let said = match (idle / 60, idle % 60) {
            (0, seconds) => format!("{seconds} s"),
            (minutes, 0) => format!("{minutes} min"),
            (minutes, seconds) => format!("{minutes} min {seconds} s"),
        };
        let said = format!("% Nothing was typed for {said}: the session is closed");
        (idle != 0).then(|| (Duration::from_secs(idle.into()), said))
    }

    /// Has it taken too long to say who it is, however much is typed?
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.stage != Stage::In && self.came.elapsed() >= LOGIN_WITHIN
    }

    #[cfg(test)]
    pub(crate) fn came_before(mut self, time: Duration) -> Session {
        self.came -= time;
        self
    }

    /// What its line says of time, kept: a key is not to wait for another session's line.
    pub(super) fn read_line(&mut self) {
        let switch = lock(&self.switch);
        let place = self.place.as_ref();
        let line = place.and_then(|p| p.line(&switch.config.access));
        self.idle = line.map_or(0, Line::idle);
    }

    /// It is known who it is.
    fn is(&mut self, name: &str) {
        self.who = format!("{name} on {}", self.who);
        if let Some(place) = &self.place {
            place.is_of(name);
        }
        self.user = Some(name.into());
    }

    fn way(&self) -> Way {
        match self.door.kind {
            Kind::Console => Way::Near,
            Kind::Vty | Kind::Cli => Way::Far,
        }
    }

    /// A line of who is not known yet: a name, or its secret. Nothing else is looked at.
    pub(super) fn login(&mut self, line: &str) -> Output {
        let typed = line.trim_end_matches(['\r', '\n']);
        let name = match std::mem::replace(&mut self.stage, Stage::Name) {
            Stage::Password(name) => name,
            _ => {
                let name = typed.trim();
                if !name.is_empty() {
                    // what is too long is no name that there is
                    self.stage = Stage::Password(name.chars().take(64).collect());
                }
                return Output::default();
            }
        };
        let shared = Arc::clone(&self.switch);
        let (gate, secret) = {
            let switch = lock(&shared);
            let user = switch.config.access.users.get(&name);
            let secret = user.and_then(|u| u.secret.clone());
            (Arc::clone(&switch.gate), secret)
        };
        let right = try_one(&gate, self.way(), &name, secret, typed);
        let switch = lock(&shared).clone();
        tell(&switch, &self.who, &name, right);
        // it may have been removed meanwhile
        let user = switch.config.access.users.get(&name);
        if let (Some(true), Some(user)) = (right, user) {
            let line = self.place.as_ref();
            let line = line.and_then(|p| p.line(&switch.config.access));
            let usual = line.and_then(|l| l.level).unwrap_or(1);
            self.level = user.level.unwrap_or(usual);
            self.stage = Stage::In;
            self.is(&name);
            return Output::default();
        }
        self.wrong += 1;
        let mut output = said(match right {
            None => "% Too many logins were wrong: try again later\n\n".into(),
            Some(_) => "% Login invalid\n\n".into(),
        });
        output.closed = self.wrong >= WRONG_MOST;
        output
    }

    /// `enable`
    pub(super) fn enable(&mut self, access: &Access, level: u8) -> Output {
        let free = match self.door.kind {
            Kind::Cli => true,
            // as long as nobody has set any; whose level is known has that one
            Kind::Console => access.enable.is_empty() && self.user.is_none(),
            Kind::Vty => false,
        };
        if level <= self.level {
            self.go_down(level);
        } else if free {
            self.level = level;
        } else if access.enable.contains_key(&level) {
            self.ask = Some(Ask::Enable { level, wrong: 0 });
        } else {
            return said("% No password set".into());
        }
        Output::default()
    }

    /// The secret of a level was asked for.
    pub(super) fn enabled(&mut self, level: u8, wrong: u8, line: &str) -> Output {
        let typed = line.trim_end_matches(['\r', '\n']);
        let shared = Arc::clone(&self.switch);
        let (gate, secret) = {
            let switch = lock(&shared);
            let secret = switch.config.access.enable.get(&level).cloned();
            (Arc::clone(&switch.gate), secret)
        };
        // a name cannot have a space in it
        let name = format!(
            "{} enable {level}",
            self.user.as_deref().unwrap_or_default()
        );
        // who knocks outside does not shut out who is in
        let way = match self.user {
            Some(_) => Way::Inside,
            None => self.way(),
        };
        let right = try_one(&gate, way, &name, secret, typed);
        let what = match right {
            Some(true) => "has level",
            Some(false) => "was refused level",
            None => "was refused, too many were wrong, level",
        };
        let log = lock(&shared).log.clone();
        log.say(&self.who, &format!("({what} {level})"));
        match right {
            Some(true) => {
                self.level = level;
                Output::default()
            }
            None => said("% Access denied\n\n".into()),
            Some(false) if wrong + 1 >= WRONG_MOST => said("% Bad secrets\n\n".into()),
            Some(false) => {
                self.ask = Some(Ask::Enable {
                    level,
                    wrong: wrong + 1,
                });
                Output::default()
            }
        }
    }

    /// Less may be done from here on: no mode of configuration is left to who may not configure, behind `do` as well.
    pub(super) fn go_down(&mut self, level: u8) {
        self.level = level;
        if level < 15 {
            self.scope = None;
        }
    }
}
