// SPDX-License-Identifier: Apache-2.0
//! A line held against the commands: what it is, where it goes wrong, what may follow.

use std::collections::{BTreeMap, BTreeSet};

use tandem_swconfig::acl::{Entry, ListKind};

use crate::args::{Arg, Kind, Ports, Take, Word, numbers};
use crate::table::{COMMANDS, Command, Form, Id, Mode, Undo};
use crate::words;

/// A place of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Key(&'static str),
    Arg(Kind),
}

/// A command in one of its forms, with nothing optional any more.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub command: &'static Command,
    pub form: Form,
    pub tokens: Vec<Token>,
}

/// A command that was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Which one.
    pub id: Id,
    /// With `no` or `default` in front of it.
    pub form: Form,
    /// Of which mode: a command of the mode above leaves the one below.
    pub mode: Mode,
    /// Its keywords, in full.
    pub keys: Vec<&'static str>,
    /// What was typed between them.
    pub args: Vec<Arg>,
    /// Is the first thing after the command's first word typed by the user, not a keyword?
    pub argument_first: bool,
}

impl Parsed {
    /// Is this keyword in it?
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.keys.contains(&key)
    }

    /// Its first VLAN.
    #[must_use]
    pub fn vlan(&self) -> Option<u16> {
        self.args.iter().find_map(|a| match a {
            Arg::Vlan(v) => Some(*v),
            _ => None,
        })
    }

    /// Its VLANs.
    #[must_use]
    pub fn vlans(&self) -> Option<&BTreeSet<u16>> {
        self.args.iter().find_map(|a| match a {
            Arg::Vlans(v) => Some(v),
            _ => None,
        })
    }

    /// Its first number.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        self.args.iter().find_map(|a| match a {
            Arg::Number(n) => Some(*n),
            _ => None,
        })
    }

    /// Its first text: a word, a file, a line.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.args.iter().find_map(|a| match a {
            Arg::Text(t) => Some(t.as_str()),
            _ => None,
        })
    }

    /// Its MAC address.
    #[must_use]
    pub fn mac(&self) -> Option<[u8; 6]> {
        self.args.iter().find_map(|a| match a {
            Arg::Mac(m) => Some(*m),
            _ => None,
        })
    }

    /// Its line of an access list.
    #[must_use]
    pub fn rule(&self) -> Option<&Entry> {
        self.args.iter().find_map(|a| match a {
            Arg::Rule(entry) => Some(&**entry),
            _ => None,
        })
    }

    /// Its interfaces.
    #[must_use]
    pub fn interfaces(&self) -> Vec<tandem_swconfig::Name> {
        let of = |a: &Arg| match a {
            Arg::Interface(n) => vec![*n],
            Arg::Interfaces(n) => n.clone(),
            _ => Vec::new(),
        };
        self.args.iter().flat_map(of).collect()
    }
}

/// Why a line is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Wrong from this character of the line on.
    Invalid(usize),
    /// Something is missing at its end.
    Incomplete,
    /// A word begins more than one keyword.
    Ambiguous,
}

impl Failure {
    /// In the words of IOS; `prompt` is how many characters stand in front of the line.
    #[must_use]
    pub fn shown(self, line: &str, prompt: usize) -> String {
        match self {
            Failure::Invalid(at) => format!(
                "{:1$}^\n% Invalid input detected at '^' marker.\n\n",
                "",
                prompt + at
            ),
            Failure::Incomplete => "% Incomplete command.\n\n".into(),
            Failure::Ambiguous => format!("% Ambiguous command:  \"{}\"\n", line.trim_end()),
        }
    }
}

/// Something that may follow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Next {
    /// What is typed.
    pub word: String,
    /// What it is.
    pub help: String,
    /// Is it typed as it stands?
    pub literal: bool,
}

/// All commands, ready to be held against lines.
#[derive(Debug)]
pub struct Grammar {
    paths: Vec<Path>,
}

impl Default for Grammar {
    fn default() -> Grammar {
        Grammar::new()
    }
}

/// A path on the way: so much of it has been typed, up to a word.
#[derive(Clone)]
struct At<'g> {
    path: &'g Path,
    token: usize,
    args: Vec<Arg>,
}

/// What is left after all words.
struct Walked<'g> {
    live: Vec<At<'g>>,
    /// Interfaces whose number has to come.
    numbers: BTreeSet<tandem_swconfig::Kind>,
    /// What may stand in a rule of an access list.
    rules: Vec<Next>,
}

/// The words of a line.
#[must_use]
pub fn split(line: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut begin: Option<(usize, usize)> = None;
    for (at, (byte, c)) in line.char_indices().enumerate() {
        if !c.is_whitespace() {
            begin = begin.or(Some((byte, at)));
        } else if let Some((from, at)) = begin.take() {
            words.extend(line.get(from..byte).map(|text| Word { text, at }));
        }
    }
    if let Some((from, at)) = begin {
        words.extend(line.get(from..).map(|text| Word { text, at }));
    }
    words
}

impl Grammar {
    /// Of the table.
    #[must_use]
    pub fn new() -> Grammar {
        let mut paths = Vec::new();
        for command in COMMANDS {
            let mut add = |form, first: Option<&'static str>, pattern: &'static str| {
                for mut tokens in expand(pattern) {
                    tokens.splice(..0, first.map(Token::Key));
                    paths.push(Path {
                        command,
                        form,
                        tokens,
                    });
                }
            };
            add(Form::Plain, None, command.line);
            if !command.no.is_empty() {
                add(Form::No, Some("no"), command.no);
                if command.default != Undo::Never {
                    add(Form::Default, Some("default"), command.no);
                }
            }
        }
        Grammar { paths }
    }

    /// What a line is, in this mode or in the one above it.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(
        &self,
        mode: Mode,
        level: u8,
        line: &str,
        ports: &Ports,
    ) -> Result<Parsed, Failure> {
        let here = self.parse_in(mode, level, line, ports);
        let Err(failure) = &here else {
            return here;
        };
        if matches!(mode, Mode::Exec | Mode::Config) {
            return here;
        }
        match (failure, self.parse_in(Mode::Config, level, line, ports)) {
            (_, Ok(parsed)) => Ok(parsed),
            // the one that understood more of it
            (Failure::Invalid(a), Err(Failure::Invalid(b))) => Err(Failure::Invalid(*a.max(&b))),
            (Failure::Invalid(_), Err(other)) => Err(other),
            (failure, _) => Err(*failure),
        }
    }

    fn parse_in(
        &self,
        mode: Mode,
        level: u8,
        line: &str,
        ports: &Ports,
    ) -> Result<Parsed, Failure> {
        let words = split(line);
        let walked = self.walk(mode, level, line, &words, ports)?;
        let whole = |at: &&At<'_>| at.token == at.path.tokens.len();
        let Some(at) = walked.live.iter().find(whole) else {
            return Err(Failure::Incomplete);
        };
        let key = |t: &Token| match t {
            Token::Key(key) => Some(*key),
            Token::Arg(_) => None,
        };
        Ok(Parsed {
            id: at.path.command.id,
            form: at.path.form,
            mode,
            keys: at.path.tokens.iter().filter_map(key).collect(),
            args: at.args.clone(),
            argument_first: matches!(at.path.tokens.get(1), Some(Token::Arg(_))),
        })
    }

    /// All paths that the words go along.
    fn walk<'g>(
        &'g self,
        mode: Mode,
        level: u8,
        line: &str,
        words: &[Word<'_>],
        ports: &Ports,
    ) -> Result<Walked<'g>, Failure> {
        let open = |p: &&Path| p.command.modes.contains(&mode) && p.command.level <= level;
        let begin = |path| At {
            path,
            token: 0,
            args: Vec::new(),
        };
        // by the word that each is at: an interface may take two
        let mut at: BTreeMap<usize, Vec<At<'g>>> = BTreeMap::new();
        at.insert(0, self.paths.iter().filter(open).map(begin).collect());
        let mut more = BTreeSet::new();
        let mut rules = Vec::new();
        let mut wrong = 0;
        for (i, word) in words.iter().enumerate() {
            let Some(live) = at.remove(&i) else {
                continue;
            };
            let keys: BTreeSet<&str> = live.iter().filter_map(|a| key_at(a, word.text)).collect();
            let exact = keys.iter().find(|k| k.eq_ignore_ascii_case(word.text));
            let key = match (exact, keys.len()) {
                (Some(key), _) => Some(*key),
                (None, 0) => None,
                (None, 1) => keys.first().copied(),
                (None, _) => return Err(Failure::Ambiguous),
            };
            wrong = wrong.max(word.at);
            for mut a in live {
                match (a.path.tokens.get(a.token), key) {
                    (Some(Token::Key(k)), Some(key)) if *k == key => {
                        a.token += 1;
                        at.entry(i + 1).or_default().push(a);
                    }
                    (Some(Token::Arg(kind)), None) => {
                        match kind.take(words.get(i..).unwrap_or_default(), line, ports) {
                            Take::Is(used, arg) => {
                                a.token += 1;
                                a.args.push(arg);
                                at.entry(i + used).or_default().push(a);
                            }
                            Take::Open(used, arg, next) => {
                                a.token += 1;
                                a.args.push(arg);
                                at.entry(i + used).or_default().push(a);
                                rules.extend(next);
                            }
                            Take::More(kind) => {
                                more.insert(kind);
                            }
                            Take::Part(next) => rules.extend(next),
                            Take::No(character) => wrong = wrong.max(character),
                        }
                    }
                    _ => {}
                }
            }
            if at.is_empty() && more.is_empty() && rules.is_empty() {
                return Err(Failure::Invalid(wrong));
            }
        }
        let live = at.remove(&words.len()).unwrap_or_default();
        if live.is_empty() && more.is_empty() && rules.is_empty() {
            return Err(Failure::Invalid(wrong));
        }
        Ok(Walked {
            live,
            numbers: more,
            rules,
        })
    }

    /// What may follow the line; with no space at its end, what its last word may become.
    ///
    /// # Errors
    /// Why the line is none so far.
    pub fn next(
        &self,
        mode: Mode,
        level: u8,
        line: &str,
        ports: &Ports,
    ) -> Result<Vec<Next>, Failure> {
        let mut words = split(line);
        let open = line.chars().next_back().is_none_or(char::is_whitespace);
        let last = if open { None } else { words.pop() };
        let prefix = last.map_or("", |w| w.text);
        let mut found = BTreeSet::new();
        let mut failure = Failure::Invalid(0);
        let modes = match mode {
            Mode::Exec | Mode::Config => vec![mode],
            // what is above is offered once something of it is typed
            _ if words.is_empty() && prefix.is_empty() => vec![mode],
            _ => vec![mode, Mode::Config],
        };
        for mode in modes {
            match self.walk(mode, level, line, &words, ports) {
                Ok(walked) => walked.offer(prefix, ports, &mut found),
                Err(f) => failure = f,
            }
            if !found.is_empty() {
                break;
            }
        }
        if !found.is_empty() {
            return Ok(found.into_iter().collect());
        }
        Err(match (failure, last) {
            (Failure::Invalid(_), Some(word)) => Failure::Invalid(word.at),
            (failure, _) => failure,
        })
    }
}

impl Walked<'_> {
    fn offer(&self, prefix: &str, ports: &Ports, found: &mut BTreeSet<Next>) {
        let begins = |word: &str| {
            word.get(..prefix.len())
                .is_some_and(|w| w.eq_ignore_ascii_case(prefix))
        };
        let mut add = |word: &str, help: &str, literal: bool| {
            if begins(word) || !literal && prefix.is_empty() {
                found.insert(Next {
                    word: word.into(),
                    help: help.into(),
                    literal,
                });
            }
        };
        for kind in &self.numbers {
            let (low, high) = numbers(*kind);
            let at = ports.ports.iter().filter(|(n, _)| n.kind == *kind);
            let word = match at.map(|(n, _)| n.number).max() {
                Some(most) if kind.is_port() => format!("<1/0/1-1/0/{most}>"),
                _ => format!("<{low}-{high}>"),
            };
            add(&word, "Interface number", false);
        }
        for next in &self.rules {
            add(&next.word, &next.help, next.literal);
        }
        for at in &self.live {
            match at.path.tokens.get(at.token) {
                None => add("<cr>", "", false),
                Some(Token::Key(key)) => {
                    let before = at.path.tokens.get(..at.token).unwrap_or_default();
                    add(key, words::help(before, key), true);
                }
                Some(Token::Arg(place @ (Kind::Interface | Kind::Port | Kind::Switched))) => {
                    for k in ports.kinds(*place) {
                        add(k.word(), words::interface(k), true);
                    }
                }
                Some(Token::Arg(Kind::Rule(list))) => {
                    for next in crate::rule::first(*list) {
                        add(&next.word, &next.help, next.literal);
                    }
                }
                Some(Token::Arg(kind)) => add(&kind.shown(), kind.help(), false),
            }
        }
    }
}

/// The keyword that a path is at, if the word begins it.
fn key_at(at: &At<'_>, word: &str) -> Option<&'static str> {
    match at.path.tokens.get(at.token) {
        Some(Token::Key(key)) => key
            .get(..word.len())
            .filter(|k| k.eq_ignore_ascii_case(word))
            .map(|_| *key),
        _ => None,
    }
}

/// Every way through a pattern.
pub(crate) fn expand(pattern: &'static str) -> Vec<Vec<Token>> {
    let mut ways = vec![Vec::new()];
    let mut rest = pattern.trim_start();
    while let Some(c) = rest.chars().next() {
        let (inside, after) = match c {
            '{' | '[' | '(' => enclosed(rest),
            _ => {
                let (word, after) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
                ways.iter_mut().for_each(|w| w.push(token(word)));
                rest = after.trim_start();
                continue;
            }
        };
        let parts: Vec<Vec<Vec<Token>>> = alternatives(inside).into_iter().map(expand).collect();
        let mut inner: Vec<Vec<Token>> = match c {
            '(' => any_order(&parts),
            _ => parts.concat(),
        };
        if c == '[' {
            inner.push(Vec::new());
        }
        let joined = |w: &Vec<Token>| {
            let w = w.clone();
            inner
                .clone()
                .into_iter()
                .map(move |i| [w.clone(), i].concat())
        };
        ways = ways.iter().flat_map(joined).collect();
        rest = after.trim_start();
    }
    ways
}

/// Some of these, or none, in any order, each once.
fn any_order(parts: &[Vec<Vec<Token>>]) -> Vec<Vec<Token>> {
    let mut ways = vec![Vec::new()];
    for (i, first) in parts.iter().enumerate() {
        let mut others = parts.to_vec();
        others.remove(i);
        for rest in any_order(&others) {
            ways.extend(first.iter().map(|f| [f.clone(), rest.clone()].concat()));
        }
    }
    ways
}

/// What is inside of the brackets that a text begins with, and what is after them.
fn enclosed(text: &'static str) -> (&'static str, &'static str) {
    let mut depth = 0usize;
    for (i, c) in text.char_indices() {
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' if depth == 1 => {
                return (
                    text.get(1..i).unwrap_or_default(),
                    text.get(i + 1..).unwrap_or_default(),
                );
            }
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    (text.get(1..).unwrap_or_default(), "")
}

/// Its parts between `|`, but not between those in brackets.
fn alternatives(text: &'static str) -> Vec<&'static str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0usize, 0);
    for (i, c) in text.char_indices() {
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => {
                parts.extend(text.get(from..i));
                from = i + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(from..));
    parts
}

fn token(word: &'static str) -> Token {
    let numbers = || {
        let (low, high) = word.strip_prefix('<')?.strip_suffix('>')?.split_once('-')?;
        Some(Kind::Number(low.parse().ok()?, high.parse().ok()?))
    };
    Token::Arg(match word {
        "VLAN" => Kind::Vlan,
        "VLANS" => Kind::Vlans,
        "ADDRESS" => Kind::Address,
        "MASK" => Kind::Mask,
        "WILDMASK" => Kind::Wildmask,
        "AREA" => Kind::Area,
        "ADDRESS6" => Kind::Address6,
        "PREFIX6" => Kind::Prefix6,
        "INTERFACE" => Kind::Interface,
        "PORT" => Kind::Port,
        "SWITCHED" => Kind::Switched,
        "RANGE" => Kind::Range,
        "MAC" => Kind::Mac,
        "WORD" => Kind::Word,
        "FILE" => Kind::File,
        "LINE" => Kind::Line,
        "RULE1" => Kind::Rule(ListKind::Standard),
        "RULE2" => Kind::Rule(ListKind::Extended),
        "RULE6" => Kind::Rule(ListKind::Ipv6),
        _ => match numbers() {
            Some(kind) => kind,
            None => return Token::Key(word),
        },
    })
}
