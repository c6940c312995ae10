// SPDX-License-Identifier: Apache-2.0
//! Files that are kept, as `dir`, `more`, `verify` and `delete` have them.

use std::fmt::Write as _;
use std::time::UNIX_EPOCH;

use tandem_swgrammar::{Id, Parsed};

use crate::Switch;
use crate::clock::Moment;
use crate::store::{Entry, Store as _};

/// What a command says of files.
pub(crate) fn files(switch: &Switch, parsed: &Parsed) -> String {
    let name = parsed.text();
    match (parsed.id, name) {
        (Id::More, Some(name)) => match text(switch, name) {
            Ok(text) => text,
            Err(why) => why,
        },
        (Id::Verify, Some(name)) => match text(switch, name) {
            Ok(text) => format!(
                ".Done!\nverify /md5 (flash:{name}) = {}\n",
                tandem_swsecret::md5(text.as_bytes())
            ),
            Err(why) => why,
        },
        (Id::ShowFlash, _) => match entries(switch, None) {
            Ok((entries, space)) => flash(&entries, space),
            Err(why) => why,
        },
        (_, name) => match entries(switch, name) {
            Ok((entries, space)) => directory(name.unwrap_or_default(), &entries, space),
            Err(why) => why,
        },
    }
}

/// What is said where a file is not there.
pub(crate) fn missing(name: &str) -> String {
    format!("%Error opening flash:/{name} (No such file or directory)")
}

fn text(switch: &Switch, name: &str) -> Result<String, String> {
    match switch.store.read(name) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(missing(name)),
        Err(e) => Err(format!("% {name}: {e}")),
    }
}

/// Those of this name, or all, and how large the file system is and how much of it is free.
fn entries(switch: &Switch, name: Option<&str>) -> Result<(Vec<Entry>, (u64, u64)), String> {
    let (mut all, space) = switch.store.list().map_err(|e| format!("% flash: {e}"))?;
    all.retain(|e| name.is_none_or(|n| n == e.name));
    match name {
        Some(name) if all.is_empty() => Err(missing(name)),
        _ => Ok((all, space)),
    }
}

/// `Nov 27 2026 15:02:03 +00:00`
fn when(entry: &Entry) -> String {
    let since = entry
        .modified
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let text = Moment::of(since.as_secs(), 0, None).clock();
    // 15:02:03.000 UTC Fri Nov 27 2026
    let words: Vec<&str> = text.split_whitespace().collect();
    let [time, _, _, month, day, year] = words.as_slice() else {
        return text;
    };
    let time = time.split('.').next().unwrap_or_default();
    format!("{month} {day:>2} {year} {time} +00:00")
}

fn directory(name: &str, entries: &[Entry], (all, free): (u64, u64)) -> String {
    let mut text = format!("Directory of flash:/{name}\n\n");
    for (n, entry) in (1..).zip(entries) {
        let _ = writeln!(
            text,
            "{n:>5}  -rw-  {:>12}  {}  {}",
            entry.size,
            when(entry),
            entry.name
        );
    }
    if entries.is_empty() {
        text.push_str("No files in directory\n");
    }
    let _ = writeln!(text, "\n{all} bytes total ({free} bytes free)");
    text
}

fn flash(entries: &[Entry], (all, free): (u64, u64)) -> String {
    let mut text = String::from("-#- --length-- ---------date/time--------- path\n");
    for (n, entry) in (1..).zip(entries) {
        let _ = writeln!(
            text,
            "{n:<3} {:>10} {} {}",
            entry.size,
            when(entry),
            entry.name
        );
    }
    let used = all.saturating_sub(free);
    let _ = writeln!(text, "\n{free} bytes available ({used} bytes used)");
    text
}
