// SPDX-License-Identifier: Apache-2.0
//! Users, secrets, lines and banners: what commands make of them, and the lines that say them.

use tandem_swconfig::users::{Access, Kept, Line, User, VTYS};
use tandem_swgrammar::{Arg, Form, Id, Parsed};
use tandem_swsecret::{Kind, Secret};

use crate::change::INTERNAL;
use crate::render::Block;

/// Users at most.
const USERS_MOST: usize = 256;
/// Octets of a banner.
const BANNER_MOST: usize = 4096;
/// How a banner's end is written.
const BANNER_END: &str = "^C";
/// Characters of a user's name.
pub(crate) const NAME_MOST: usize = 32;

/// Which lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// `line console 0`.
    Console,
    /// `line vty FIRST LAST`.
    Vty(u8, u8),
}

impl Lines {
    fn of(self, access: &mut Access) -> &mut [Line] {
        match self {
            Lines::Console => std::slice::from_mut(&mut access.console),
            Lines::Vty(first, last) => access
                .vty
                .get_mut(usize::from(first)..=usize::from(last))
                .unwrap_or_default(),
        }
    }
}

pub(crate) fn numbers(parsed: &Parsed) -> Vec<u32> {
    let number = |a: &Arg| match a {
        Arg::Number(n) => Some(*n),
        _ => None,
    };
    parsed.args.iter().filter_map(number).collect()
}

pub(crate) fn texts(parsed: &Parsed) -> impl Iterator<Item = &str> {
    parsed.args.iter().filter_map(|a| match a {
        Arg::Text(t) => Some(t.as_str()),
        _ => None,
    })
}

/// A name as a Unix user may have it.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=NAME_MOST).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// `secret [0|5|8|9] TEXT`: what is kept of it.
fn kept(parsed: &Parsed, text: &str) -> Result<Kept, String> {
    let kinds = [Kind::Md5, Kind::Pbkdf2, Kind::Nine];
    let secret = match kinds.into_iter().find(|k| parsed.has(k.word())) {
        Some(kind) => Secret::kept(kind, text).ok_or_else(|| {
            format!(
                "% The secret you entered is not a valid encrypted secret of type {}.\n\
                 % To enter an unencrypted one, say no type: it is encrypted here.",
                kind.word()
            )
        })?,
        None => Secret::of_plain(text)?,
    };
    Ok(Kept(secret.to_string()))
}

/// A secret that was typed becomes what is kept of it: before anybody has the configuration, for it takes its time.
pub(crate) fn hash(parsed: &mut Parsed) -> Result<(), String> {
    let last = match (parsed.id, parsed.form) {
        (Id::EnableSecret, Form::Plain) => 1,
        (Id::Username, Form::Plain) => 2,
        _ => return Ok(()),
    };
    let is_kept = ["5", "8", "9"].iter().any(|kind| parsed.has(kind));
    let mut texts = parsed.args.iter_mut().filter_map(|a| match a {
        Arg::Text(t) => Some(t),
        _ => None,
    });
    let Some(text) = texts.nth(last - 1).filter(|_| !is_kept) else {
        return Ok(());
    };
    let secret = Secret::of_plain(text)?.to_string();
    let (kind, kept) = secret.split_once(' ').ok_or(INTERNAL)?;
    let kinds = [Kind::Md5, Kind::Pbkdf2, Kind::Nine];
    let kind = kinds.into_iter().find(|k| k.word() == kind);
    *text = kept.into();
    parsed.keys.retain(|k| *k != "0");
    parsed.keys.push(kind.ok_or(INTERNAL)?.word());
    Ok(())
}

/// Changes what is set of the switch; which lines come next, if it was `line`.
pub(crate) fn of_switch(access: &mut Access, parsed: &Parsed) -> Result<Option<Lines>, String> {
    let plain = parsed.form == Form::Plain;
    match parsed.id {
        Id::Encryption => access.encryption = plain,
        Id::EnableSecret => {
            let level = parsed.number().and_then(|n| u8::try_from(n).ok());
            let level = level.unwrap_or(15);
            if plain {
                let secret = kept(parsed, parsed.text().ok_or(INTERNAL)?)?;
                access.enable.insert(level, secret);
            } else {
                access.enable.remove(&level);
            }
        }
        Id::Username => user(access, parsed)?,
        Id::Banner => {
            let banner = match plain {
                true => whole(parsed.text().ok_or(INTERNAL)?)?,
                false => None,
            };
            match parsed.has("motd") {
                true => access.motd = banner,
                false => access.before_login = banner,
            }
        }
        Id::Line => {
            let lines = lines(parsed)?;
            if plain {
                return Ok(Some(lines));
            }
            lines.of(access).fill(Line::default());
        }
        _ => return Err(INTERNAL.into()),
    }
    Ok(None)
}

fn lines(parsed: &Parsed) -> Result<Lines, String> {
    if parsed.has("console") {
        return Ok(Lines::Console);
    }
    let numbers = numbers(parsed);
    let at = |i: usize| numbers.get(i).and_then(|n| u8::try_from(*n).ok());
    let first = at(0).ok_or(INTERNAL)?;
    let last = at(1).unwrap_or(first);
    if last < first || usize::from(last) >= VTYS {
        return Err("% Bad line number - the last one is smaller than the first".into());
    }
    Ok(Lines::Vty(first, last))
}

fn user(access: &mut Access, parsed: &Parsed) -> Result<(), String> {
    let mut texts = texts(parsed);
    let name = texts.next().ok_or(INTERNAL)?;
    if parsed.form != Form::Plain {
        access.users.remove(name);
        return Ok(());
    }
    if !is_name(name) {
        return Err(format!(
            "% A user's name has 1 to {NAME_MOST} letters, digits, and - . _ behind the first"
        ));
    }
    if !access.users.contains_key(name) && access.users.len() >= USERS_MOST {
        return Err(format!(
            "% There are {USERS_MOST} users, and no room for more"
        ));
    }
    let secret = match texts.next() {
        Some(text) => Some(kept(parsed, text)?),
        None => None,
    };
    let user: &mut User = access.users.entry(name.into()).or_default();
    if parsed.has("privilege") {
        user.level = parsed.number().and_then(|n| u8::try_from(n).ok());
    }
    if secret.is_some() {
        user.secret = secret;
    }
    Ok(())
}

/// Changes what is set of lines.
pub(crate) fn of_lines(access: &mut Access, lines: &Lines, parsed: &Parsed) -> Result<(), String> {
    let numbers = numbers(parsed);
    let at = |i: usize| numbers.get(i).copied();
    if parsed.id == Id::Login && parsed.form == Form::Plain && !parsed.has("local") {
        return Err("% A line has no password of its own: login local asks for a user's".into());
    }
    for line in lines.of(access) {
        match (parsed.id, parsed.form) {
            (Id::ExecTimeout, Form::Plain) => {
                let seconds = at(0).ok_or(INTERNAL)?.saturating_mul(60);
                let seconds = seconds.saturating_add(at(1).unwrap_or(0));
                line.timeout = Some(seconds).filter(|s| *s != 600);
            }
            // as IOS: without a time-out is another thing than with the usual one
            (Id::ExecTimeout, Form::No) => line.timeout = Some(0),
            (Id::ExecTimeout, Form::Default) => line.timeout = None,
            (Id::LineLevel, form) => {
                let level = at(0).and_then(|n| u8::try_from(n).ok());
                line.level = level.filter(|l| form == Form::Plain && *l != 1);
            }
            (Id::Synchronous, form) => line.synchronous = form == Form::Plain,
            (Id::Login, form) => line.login = form == Form::Plain,
            _ => return Err(INTERNAL.into()),
        }
    }
    Ok(())
}

fn one(text: String) -> Block {
    Block {
        head: text,
        lines: Vec::new(),
    }
}

/// What a configuration says of this.
pub(crate) fn blocks(id: Id, access: &Access) -> Vec<Block> {
    match id {
        Id::Encryption if access.encryption => vec![one("service password-encryption".into())],
        Id::EnableSecret => {
            let said = |(level, Kept(secret)): (&u8, &Kept)| match level {
                15 => one(format!("enable secret {secret}")),
                level => one(format!("enable secret level {level} {secret}")),
            };
            access.enable.iter().map(said).collect()
        }
        Id::Username => {
            let said = |(name, user): (&String, &User)| {
                let mut text = format!("username {name}");
                if let Some(level) = user.level {
                    text.push_str(&format!(" privilege {level}"));
                }
                if let Some(Kept(secret)) = &user.secret {
                    text.push_str(&format!(" secret {secret}"));
                }
                one(text)
            };
            access.users.iter().map(said).collect()
        }
        Id::Banner => {
            let both = [("motd", &access.motd), ("login", &access.before_login)];
            let said = |(which, text): (&str, &Option<String>)| {
                let text = text.as_ref()?;
                Some(one(format!(
                    "banner {which} {BANNER_END}\n{text}\n{BANNER_END}"
                )))
            };
            both.into_iter().filter_map(said).collect()
        }
        Id::Line => all_lines(access),
        _ => Vec::new(),
    }
}

fn all_lines(access: &Access) -> Vec<Block> {
    let mut blocks = Vec::new();
    if access.console != Line::default() {
        blocks.push(block("line con 0".into(), &access.console));
    }
    if access.vty.iter().all(|l| *l == Line::default()) {
        return blocks;
    }
    let mut first = 0;
    for run in access.vty.chunk_by(|a, b| a == b) {
        let last = first + run.len() - 1;
        let head = match run.len() {
            1 => format!("line vty {first}"),
            _ => format!("line vty {first} {last}"),
        };
        blocks.extend(run.first().map(|line| block(head, line)));
        first = last + 1;
    }
    blocks
}

fn block(head: String, line: &Line) -> Block {
    let mut lines = Vec::new();
    if let Some(seconds) = line.timeout {
        lines.push(format!("exec-timeout {} {}", seconds / 60, seconds % 60));
    }
    lines.extend(line.level.map(|level| format!("privilege level {level}")));
    lines.extend(line.synchronous.then(|| "logging synchronous".into()));
    lines.extend(line.login.then(|| "login local".into()));
    Block { head, lines }
}

/// What ends a banner that begins so.
fn end_of(text: &str) -> &str {
    if text.starts_with(BANNER_END) {
        return BANNER_END;
    }
    let first = text.chars().next().map_or(0, char::len_utf8);
    text.get(..first).unwrap_or_default()
}

/// What a banner says that is between its two ends; `None`: nothing.
fn whole(text: &str) -> Result<Option<String>, String> {
    let end = end_of(text);
    let inside = text.get(end.len()..).unwrap_or_default();
    let Some((inside, _)) = inside.split_once(end) else {
        return Err("% The banner has no end".into());
    };
    // a line that has nothing but the begin or the end is no line of it
    let inside = inside.strip_prefix('\n').unwrap_or(inside);
    let inside = inside.strip_suffix('\n').unwrap_or(inside);
    if inside.len() > BANNER_MOST {
        return Err(format!("% A banner has at most {BANNER_MOST} octets"));
    }
    if inside.contains(BANNER_END) {
        return Err(format!("% A banner has no {BANNER_END} in it"));
    }
    Ok(Some(inside.to_string()).filter(|t| !t.is_empty()))
}

/// A banner whose end has not come yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gather {
    parsed: Parsed,
    text: String,
}

impl Gather {
    /// Of a command that needs more lines.
    pub(crate) fn of(parsed: &Parsed) -> Option<Gather> {
        let text = (parsed.id == Id::Banner && parsed.form == Form::Plain)
            .then(|| parsed.text())
            .flatten()?;
        let end = end_of(text);
        let inside = text.get(end.len()..)?;
        (!inside.contains(end)).then(|| Gather {
            parsed: parsed.clone(),
            text: text.into(),
        })
    }

    /// What is said to who types it.
    pub(crate) fn hint(&self) -> String {
        let end = end_of(&self.text);
        format!("Enter TEXT message.  End with the character '{end}'.")
    }

    /// One line more. The command with all of its text, if that was its last one.
    pub(crate) fn line(&mut self, line: &str) -> Option<Parsed> {
        let end = end_of(&self.text).to_string();
        let last = line.contains(&end);
        // what is too long is refused at its end, and takes no memory until then
        if self.text.len() <= BANNER_MOST + 1 || last {
            self.text.push('\n');
            self.text.push_str(line);
        }
        last.then(|| {
            let mut parsed = self.parsed.clone();
            parsed.args = vec![Arg::Text(std::mem::take(&mut self.text))];
            parsed
        })
    }
}
