// SPDX-License-Identifier: Apache-2.0
//! Configurations that are kept: copied, added, made the one that is carried out.

use tandem_swgrammar::Parsed;

use super::Ask;
use crate::load::{differences, read};
use crate::turns::Turn;
use crate::{STARTUP, Store as _, Switch, logs, render, revert};

/// Where a configuration is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum File {
    /// The one that is carried out.
    Running,
    /// A kept one, by its name.
    Kept(String),
}

impl File {
    /// As it is typed.
    pub(super) fn name(&self) -> &str {
        match self {
            File::Running => "running-config",
            File::Kept(name) => name,
        }
    }
}

pub(super) fn ask_copy(parsed: &Parsed) -> Option<Ask> {
    let file = || parsed.text().map(|name| File::Kept(name.into()));
    // the keywords stand in the order in which they were said, and a file is where there is none
    let named = |key: &str| match key {
        "running-config" => File::Running,
        _ => File::Kept(STARTUP.into()),
    };
    let keys: Vec<&str> = parsed
        .keys
        .iter()
        .copied()
        .filter(|k| *k != "copy")
        .collect();
    match keys.as_slice() {
        [from, to] => Some(Ask::Copy {
            from: named(from),
            to: named(to),
        }),
        [key] => {
            let first = parsed.argument_first;
            let (file, named) = (file()?, named(key));
            let (from, to) = if first { (file, named) } else { (named, file) };
            Some(Ask::Copy { from, to })
        }
        _ => None,
    }
}

pub(super) fn save(turn: &Turn, name: &str) -> String {
    let mut switch = turn.seen();
    let text = render::config(&switch.config, &switch.engine.ports());
    match switch.store.write(name, &text) {
        Ok(()) => "[OK]".into(),
        Err(e) => format!("% {name} is not written: {e}"),
    }
}

pub(super) fn copy(turn: &Turn, from: &File, to: &File) -> String {
    // the next start would begin with it
    if to.name() == revert::KEPT {
        return format!(
            "% {} is what has to be confirmed: give another name",
            revert::KEPT
        );
    }
    let mut switch = turn.seen();
    match (from, to) {
        // a start would begin with it
        (_, File::Kept(name)) if name == revert::KEPT => {
            format!("% {name} is what configure terminal revert writes")
        }
        (File::Running, File::Kept(name)) if name == STARTUP => {
            format!("Building configuration...\n{}", save(turn, STARTUP))
        }
        (File::Running, File::Kept(name)) => save(turn, name),
        (File::Running, File::Running) => String::new(),
        (File::Kept(from), to) => {
            let text = match switch.store.read(from) {
                Ok(Some(text)) => text,
                Ok(None) => return format!("%Error opening {from} (No such file or directory)"),
                Err(e) => return format!("% {from}: {e}"),
            };
            match to {
                File::Kept(to) => match switch.store.write(to, &text) {
                    Ok(()) => format!("{} bytes copied", text.len()),
                    Err(e) => format!("% {to} is not written: {e}"),
                },
                File::Running => {
                    let ports = switch.ports();
                    let (now, bad) = read(&switch.config, &text, &ports, true);
                    let mut lines: Vec<String> = bad.iter().map(ToString::to_string).collect();
                    lines.push(match turn.apply(now) {
                        Ok(()) => {
                            configured(&switch, from);
                            format!("{} bytes copied", text.len())
                        }
                        Err(why) => why,
                    });
                    lines.join("\n")
                }
            }
        }
    }
}

fn configured(switch: &Switch, file: &str) {
    let text = format!("Configured from {file}");
    switch.logs.say(logs::CONFIGURED, &text);
}

/// Makes the configuration that of a file: whole, or not at all.
pub(super) fn replace(turn: &Turn, file: &str) -> String {
    let switch = turn.seen();
    let text = match switch.store.read(file) {
        Ok(Some(text)) => text,
        Ok(None) => return format!("%Error opening {file} (No such file or directory)"),
        Err(e) => return format!("% {file}: {e}"),
    };
    let ports = switch.ports();
    let (now, bad) = read(&tandem_swconfig::Config::default(), &text, &ports, false);
    if !bad.is_empty() {
        let mut lines: Vec<String> = bad.iter().map(ToString::to_string).collect();
        lines.push(format!("% {file} has bad lines: nothing is replaced"));
        return lines.join("\n");
    }
    let changes = differences(&switch.config, &now);
    match turn.apply(now) {
        Ok(()) => {
            configured(&switch, file);
            format!("{changes}Total number of passes: 1\nRollback Done\n")
        }
        Err(why) => format!("{why}\n% Nothing is replaced"),
    }
}
