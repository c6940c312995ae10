// SPDX-License-Identifier: Apache-2.0
//! `monitor session` and `storm-control`: what they make of a configuration, and the lines that say it.

use tandem_swconfig::monitor::{Level, Session, Storm, Ways};
use tandem_swconfig::{Config, Kind, Name};
use tandem_swgrammar::{Form, Id, Parsed};

use crate::change::INTERNAL;
use crate::render::Block;

/// Commands of sessions.
pub(crate) fn of_switch(config: &mut Config, parsed: &Parsed) -> Result<(), String> {
    if parsed.id == Id::NoMonitor && parsed.has("all") {
        config.sessions.clear();
        return Ok(());
    }
    let number = parsed.number().and_then(|n| u8::try_from(n).ok());
    let number = number.ok_or(INTERNAL)?;
    if parsed.id == Id::NoMonitor {
        config.sessions.remove(&number);
        return Ok(());
    }
    let plain = parsed.form == Form::Plain;
    let port = *parsed.interfaces().first().ok_or(INTERNAL)?;
    let mut session = config.sessions.get(&number).cloned().unwrap_or_default();
    let (rx, tx) = (!parsed.has("tx"), !parsed.has("rx"));
    match (parsed.id, plain) {
        (Id::MonitorSource, true) => {
            if let Some(n) = config.monitors_to(&port) {
                return Err(format!("% {port} is the destination of session {n}"));
            }
            session.sources.insert(port, Ways { rx, tx });
        }
        (Id::MonitorSource, false) => {
            let was = session.sources.remove(&port).unwrap_or_default();
            let left = Ways {
                rx: was.rx && !rx,
                tx: was.tx && !tx,
            };
            if left != Ways::default() {
                session.sources.insert(port, left);
            }
        }
        (_, true) => {
            let others = config.sessions.iter().filter(|(n, _)| **n != number);
            for (n, other) in others {
                if other.destination == Some(port) {
                    return Err(format!("% {port} is the destination of session {n}"));
                }
            }
            let source = |(_, s): &(&u8, &Session)| s.sources.contains_key(&port);
            if let Some((n, _)) = config.sessions.iter().find(source) {
                return Err(format!("% {port} is a source of session {n}"));
            }
            session.destination = Some(port);
        }
        (_, false) => session.destination = session.destination.filter(|d| *d != port),
    }
    match session == Session::default() {
        true => config.sessions.remove(&number),
        false => config.sessions.insert(number, session),
    };
    Ok(())
}

/// The lines of sessions.
pub(crate) fn blocks(id: Id, config: &Config) -> Vec<Block> {
    let mut all = Vec::new();
    for (n, session) in &config.sessions {
        let mut line = |text: String| {
            all.push(Block {
                head: format!("monitor session {n} {text}"),
                lines: Vec::new(),
            });
        };
        if id == Id::MonitorSource {
            for (port, ways) in &session.sources {
                let which = match (ways.rx, ways.tx) {
                    (true, true) => "",
                    (true, false) => " rx",
                    _ => " tx",
                };
                line(format!("source interface {port}{which}"));
            }
        } else if let Some(port) = &session.destination {
            line(format!("destination interface {port}"));
        }
    }
    all
}

/// `20`, `0.5`, `99.99`: hundredths of a percent.
fn percent(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |t: &str| !t.is_empty() && t.len() < 4 && t.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 2 {
        return None;
    }
    let part: u32 = format!("{part:0<2}").parse().ok()?;
    let all = whole.parse::<u32>().ok()? * 100 + part;
    (all <= 10_000).then_some(all)
}

/// `storm-control` of a port.
pub(crate) fn storm(name: &Name, storm: &mut Storm, parsed: &Parsed) -> Result<(), String> {
    if name.kind == Kind::PortChannel {
        return Err(format!("% {name} has no storm-control: ports have"));
    }
    if !name.is_port() {
        return Err(format!("% Command rejected: {name} not a switching port."));
    }
    let level = match (parsed.form, parsed.number(), parsed.text()) {
        (Form::Plain, Some(n), _) if parsed.has("pps") => Some(Level::Pps(n)),
        (Form::Plain, Some(n), _) => Some(Level::Bps(n)),
        (Form::Plain, None, text) => {
            let text = text.ok_or(INTERNAL)?;
            let level = percent(text).ok_or("% The level is 0.00 to 100.00")?;
            Some(Level::Percent(level))
        }
        _ => None,
    };
    match (parsed.has("broadcast"), parsed.has("multicast")) {
        (true, _) => storm.broadcast = level,
        (_, true) => storm.multicast = level,
        _ => storm.unicast = level,
    }
    Ok(())
}

/// `20.00`
pub(crate) fn level_text(level: Level) -> String {
    match level {
        Level::Percent(n) => format!("{}.{:02}", n / 100, n % 100),
        Level::Pps(n) => format!("pps {n}"),
        Level::Bps(n) => format!("bps {n}"),
    }
}

/// Each that is set.
pub(crate) fn levels(storm: &Storm) -> impl Iterator<Item = (&'static str, Level)> {
    let all = [
        ("broadcast", storm.broadcast),
        ("multicast", storm.multicast),
        ("unicast", storm.unicast),
    ];
    all.into_iter()
        .filter_map(|(word, level)| level.map(|l| (word, l)))
}

/// The lines of a port.
pub(crate) fn storm_lines(storm: &Storm) -> Vec<String> {
    let line = |(word, level)| format!("storm-control {word} level {}", level_text(level));
    levels(storm).map(line).collect()
}
