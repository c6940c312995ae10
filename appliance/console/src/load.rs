// SPDX-License-Identifier: Apache-2.0
//! A configuration read from text: at boot, for `configure replace` and `copy`; and what two of them have different.

use std::collections::{BTreeMap, BTreeSet};

use tandem_swconfig::{Config, Engine};
use tandem_swgrammar::args::vlans;
use tandem_swgrammar::{Failure, Grammar, Id, Mode, Parsed, Ports};
use tandem_swsecret::redacted;

use crate::STARTUP;
use crate::change::{Scope, change};
use crate::render::{Block, blocks, pieces};
use crate::users::Gather;

/// The longest line, octets; of the console too.
pub const LINE_MOST: usize = 1024;

/// What to do about bad lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnBad {
    /// Leave them out, and do the rest.
    Skip,
    /// Do nothing.
    Refuse,
}

/// A bad line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// Its number, from 1.
    pub number: usize,
    /// The line.
    pub line: String,
    /// What is wrong with it.
    pub why: String,
}

impl std::fmt::Display for Bad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "% line {}: {}: {}", self.number, self.line, self.why)
    }
}

/// What of the lines that follow a bad one belongs to it, and so to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    Nothing,
    /// Those that stand further in.
    Indented,
    /// All but commands of configuration mode: it was the first line of an interface, a VLAN or a routing protocol.
    Mode,
}

/// First lines of what has lines below it.
const MODES: [&str; 8] = [
    "interface",
    "vlan ",
    "line ",
    "router ",
    "ip access-list",
    "ipv6 access-list",
    "class-map",
    "policy-map",
];

/// A text that is read, and where it is.
struct Reader<'t> {
    grammar: Grammar,
    ports: &'t Ports,
    scope: Scope,
    lost: Lost,
    /// Is the VLAN made that an access port is to be in, as if somebody typed it?
    make: bool,
    /// A banner that goes on.
    banner: Option<Gather>,
}

impl<'t> Reader<'t> {
    fn new(ports: &'t Ports, make: bool) -> Reader<'t> {
        Reader {
            grammar: Grammar::new(),
            ports,
            scope: Scope::Switch,
            lost: Lost::Nothing,
            make,
            banner: None,
        }
    }

    /// Does one line to a configuration. `false`: it ends the text.
    fn line(&mut self, config: &mut Config, line: &str) -> Result<bool, String> {
        if let Some(mut banner) = self.banner.take() {
            match banner.line(line) {
                Some(parsed) => return self.change(config, &parsed),
                None => self.banner = Some(banner),
            }
            return Ok(true);
        }
        let text = line.trim();
        if text.is_empty() || text.starts_with('!') {
            return Ok(true);
        }
        if self.lost != Lost::Nothing && line.starts_with(char::is_whitespace) {
            return Err("Below a line that is left out".into());
        }
        let done = self.do_line(config, text);
        if done.is_err() {
            self.lose(line);
        }
        done
    }

    fn do_line(&mut self, config: &mut Config, text: &str) -> Result<bool, String> {
        if text.len() > LINE_MOST {
            return Err(format!("Longer than {LINE_MOST} octets"));
        }
        let mode = if self.lost == Lost::Mode {
            Mode::Config
        } else {
            self.scope.mode()
        };
        let failed = |failure| match failure {
            // what is wrong may be a secret
            Failure::Invalid(_) if redacted(text) != text => "Invalid input".into(),
            Failure::Invalid(at) => {
                format!(
                    "Invalid input at \"{}\"",
                    text.chars().skip(at).take(40).collect::<String>()
                )
            }
            Failure::Incomplete => "Incomplete command".into(),
            Failure::Ambiguous => "Ambiguous command".into(),
        };
        let parsed = self
            .grammar
            .parse(mode, 15, text, self.ports)
            .map_err(failed)?;
        match parsed.id {
            Id::End => return Ok(false),
            Id::Exit => {
                let above = self.scope.above().unwrap_or(Scope::Switch);
                (self.scope, self.lost) = (above, Lost::Nothing);
                return Ok(true);
            }
            Id::Do => return Err("Not a configuration's".into()),
            _ => {}
        }
        if let Some(banner) = Gather::of(&parsed) {
            (self.banner, self.scope, self.lost) = (Some(banner), Scope::Switch, Lost::Nothing);
            return Ok(true);
        }
        self.change(config, &parsed)
    }

    fn change(&mut self, config: &mut Config, parsed: &Parsed) -> Result<bool, String> {
        // of one interface or VLAN a refused line has changed nothing: no copy of thousands of VLANs for each line
        let before = self.scope.is_many().then(|| config.clone());
        match change(config, &self.scope, parsed) {
            Ok(done) => {
                if let Some(made) = done.made.filter(|_| !self.make) {
                    config.vlans.remove(&made);
                }
                match done.scope {
                    Some(scope) => self.scope = scope,
                    None if parsed.mode == Mode::Config => self.scope = Scope::Switch,
                    None => {}
                }
                self.lost = Lost::Nothing;
                Ok(true)
            }
            Err(why) => {
                if let Some(before) = before {
                    *config = before;
                }
                Err(why.trim_start_matches(['%', ' ']).into())
            }
        }
    }

    /// What is below a bad line belongs to nothing, rather than to what was before it.
    fn lose(&mut self, line: &str) {
        self.lost = match line.starts_with(char::is_whitespace) {
            true => self.lost,
            false if MODES.iter().any(|m| line.starts_with(m)) => Lost::Mode,
            false if self.lost == Lost::Mode => Lost::Mode,
            false => Lost::Indented,
        };
    }
}

/// Reads a text on top of a configuration: what comes of it, and the bad lines. With `make` an access port's VLAN is made
/// if it is not there, as when it is typed; without it the text is all that there is.
#[must_use]
pub fn read(on: &Config, text: &str, ports: &Ports, make: bool) -> (Config, Vec<Bad>) {
    let mut reader = Reader::new(ports, make);
    let mut config = on.clone();
    let mut bad = Vec::new();
    for (i, line) in text.lines().enumerate() {
        match reader.line(&mut config, line) {
            Ok(true) => {}
            Ok(false) => break,
            Err(why) => bad.push(Bad {
                number: i + 1,
                line: shown(line),
                why,
            }),
        }
    }
    if reader.banner.is_some() {
        bad.push(Bad {
            number: text.lines().count(),
            line: text.lines().last().map(shown).unwrap_or_default(),
            why: "The end of a banner is missing".into(),
        });
    }
    (config, bad)
}

/// A line that may hold anything, to be shown.
fn shown(line: &str) -> String {
    let plain = |c: char| if c.is_control() { '?' } else { c };
    redacted(line).trim().chars().take(60).map(plain).collect()
}

/// Carries out a startup-config on an engine that has `config`; what was wrong, a line each.
pub(crate) fn boot(
    engine: &dyn Engine,
    config: &mut Config,
    ports: &Ports,
    text: &str,
    on_bad: OnBad,
) -> Vec<String> {
    let (now, bad) = read(config, text, ports, false);
    let mut said: Vec<String> = bad.iter().map(Bad::to_string).collect();
    if on_bad == OnBad::Refuse && !bad.is_empty() {
        said.push(format!("% {STARTUP} has bad lines: nothing of it is done"));
        return said;
    }
    let Err(why) = crate::apply(engine, config, &now) else {
        *config = now;
        return said;
    };
    if on_bad == OnBad::Refuse {
        said.push(format!(
            "% {STARTUP} is refused, nothing of it is done: {}",
            why.trim_start_matches("% ")
        ));
        return said;
    }
    // which line it is that is refused shows only line by line
    let mut reader = Reader::new(ports, false);
    for (i, line) in text.lines().enumerate() {
        let mut now = config.clone();
        match reader.line(&mut now, line) {
            Ok(true) => {}
            Ok(false) => break,
            // has been said
            Err(_) => continue,
        }
        let Err(why) = crate::apply(engine, config, &now) else {
            *config = now;
            continue;
        };
        let why = why.trim_start_matches("% ").into();
        said.push(
            Bad {
                number: i + 1,
                line: shown(line),
                why,
            }
            .to_string(),
        );
        reader.lose(line);
    }
    said
}

/// A block of each VLAN alone: one that joins a list is no difference of the others.
fn apart(config: &Config) -> Vec<Block> {
    let mut all = Vec::new();
    for block in blocks(config, &[]) {
        match block
            .head
            .strip_prefix("vlan ")
            .filter(|_| block.lines.is_empty())
            .and_then(vlans)
        {
            Some(ids) => all.extend(ids.iter().map(|id| Block {
                head: format!("vlan {id}"),
                lines: Vec::new(),
            })),
            None => all.push(block),
        }
    }
    all
}

/// What has to be typed to come from one configuration to another, as `show archive config differences` shows it.
#[must_use]
pub fn differences(was: &Config, now: &Config) -> String {
    let (before, after) = (apart(was), apart(now));
    let by_head = |blocks: &[Block]| -> BTreeMap<String, Block> {
        blocks.iter().map(|b| (b.head.clone(), b.clone())).collect()
    };
    let (old, new) = (by_head(&before), by_head(&after));
    let mut text = Differences::default();
    for block in &after {
        match old.get(&block.head) {
            None => text.block('+', block),
            Some(old) if old != block => {
                text.line(&block.head);
                let new = block.lines.iter().filter(|l| !old.lines.contains(l));
                new.for_each(|l| text.line(&format!(" +{l}")));
                let gone = old.lines.iter().filter(|l| !block.lines.contains(l));
                gone.for_each(|l| text.line(&format!(" -{l}")));
            }
            Some(_) => {}
        }
    }
    for block in before.iter().filter(|b| !new.contains_key(&b.head)) {
        text.block('-', block);
    }
    text.close();
    text.text
}

/// The text of differences; VLANs that come or go one after the other are a list.
#[derive(Default)]
struct Differences {
    text: String,
    vlans: Option<(char, BTreeSet<u16>)>,
}

impl Differences {
    fn close(&mut self) {
        if let Some((sign, ids)) = self.vlans.take() {
            pieces(&ids, 180)
                .iter()
                .for_each(|p| self.text.push_str(&format!("{sign}vlan {p}\n")));
        }
    }

    fn line(&mut self, line: &str) {
        self.close();
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn block(&mut self, sign: char, block: &Block) {
        let id = block
            .head
            .strip_prefix("vlan ")
            .and_then(|id| id.parse().ok());
        if let Some(id) = id.filter(|_| block.lines.is_empty()) {
            if self.vlans.as_ref().is_none_or(|(other, _)| *other != sign) {
                self.close();
            }
            self.vlans
                .get_or_insert((sign, BTreeSet::new()))
                .1
                .insert(id);
            return;
        }
        self.line(&format!("{sign}{}", block.head));
        block
            .lines
            .iter()
            .for_each(|l| self.line(&format!(" {sign}{l}")));
    }
}
