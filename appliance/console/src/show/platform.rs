// SPDX-License-Identifier: Apache-2.0
//! What lies below the configuration: no command of IOS's, in columns of our own.

use tandem_swconfig::Platform;
use tandem_swgrammar::{Id, Parsed};

use crate::Switch;

/// `show platform …`.
pub(super) fn platform(switch: &Switch, parsed: &Parsed) -> String {
    let word = parsed.text().unwrap_or_default();
    let what = match parsed.id {
        Id::ShowResources => Platform::Resources,
        Id::ShowReplication => Platform::Replication,
        Id::ShowDrift => Platform::Drift,
        _ if parsed.has("route") => Platform::Route(word.into()),
        _ => match (parsed.mac(), word.parse()) {
            (Some(mac), _) => Platform::Mac(mac),
            (None, Ok(address)) => Platform::Neighbour(address),
            (None, Err(_)) => return format!("% {word} is no IP address\n"),
        },
    };
    match switch.engine.platform(&what) {
        Ok(rows) => table(&rows),
        Err(why) => format!("% {}\n", why.trim_start_matches("% ")),
    }
}

/// Rows in columns, the first one theirs; columns of numbers stand at their right end. An empty first row: there are no heads.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |n: usize| rows.iter().filter_map(move |r| r.get(n));
    let number = |cell: &String| !cell.is_empty() && cell.bytes().all(|b| b.is_ascii_digit());
    let shape: Vec<(usize, bool)> = (0..columns)
        .map(|n| {
            let width = cells(n).map(|c| c.chars().count()).max().unwrap_or(0);
            let mut below = rows.iter().skip(1).filter_map(|r| r.get(n)).peekable();
            (width, below.peek().is_some() && below.all(number))
        })
        .collect();
    let mut text = String::new();
    for row in rows.iter().filter(|r| !r.is_empty()) {
        let cell = |(cell, (width, right)): (&String, &(usize, bool))| match right {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        };
        let line: Vec<String> = row.iter().zip(&shape).map(cell).collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::table;

    fn rows(text: &[&[&str]]) -> Vec<Vec<String>> {
        let row = |r: &&[&str]| r.iter().map(|c| (*c).to_owned()).collect();
        text.iter().map(row).collect()
    }

    #[test]
    fn numbers_stand_at_the_right() {
        let t = rows(&[
            &["POOL", "USED", "SIZE"],
            &["LPM", "7", "65536"],
            &["hosts", "12", "8"],
        ]);
        assert_eq!(
            table(&t),
            "POOL   USED   SIZE\nLPM       7  65536\nhosts    12      8\n"
        );
    }

    #[test]
    fn what_has_no_heads() {
        let t = rows(&[&[], &["state", "trap"], &["reason", "a connected route"]]);
        assert_eq!(table(&t), "state   trap\nreason  a connected route\n");
    }
}
