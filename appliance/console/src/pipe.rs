// SPDX-License-Identifier: Apache-2.0
//! `show … | include REGEX`: what of a text is shown; `| json` is none of these, and no text.

use regex::bytes::{Regex, RegexBuilder};

/// What a filter does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Include,
    Exclude,
    Begin,
    Section,
    Count,
}

#[rustfmt::skip]
const FILTERS: &[(&str, What, &str)] = &[
    ("begin", What::Begin, "Begin with the line that matches"),
    ("count", What::Count, "Count number of lines which match regexp"),
    ("exclude", What::Exclude, "Exclude lines that match"),
    ("include", What::Include, "Include lines that match"),
    ("section", What::Section, "Filter a section of output"),
];

/// A filter.
pub(crate) struct Pipe {
    what: What,
    regex: Regex,
}

/// Is it no filter, but the wish for JSON?
pub(crate) fn is_json(text: &str) -> bool {
    let word = text.trim();
    !word.is_empty() && "json".starts_with(&word.to_ascii_lowercase())
}

/// A line's command and its filter, if it has one: a `|` with a space in front of it.
pub(crate) fn split(line: &str) -> Option<(&str, &str)> {
    let mut space = false;
    for (i, c) in line.char_indices() {
        if c == '|' && space {
            return Some((line.get(..i)?, line.get(i + 1..)?));
        }
        space = c.is_whitespace();
    }
    None
}

/// What may follow a `|`.
pub(crate) fn help() -> String {
    let mut lines: Vec<String> = FILTERS
        .iter()
        .map(|(word, _, help)| format!("  {word:9}{help}\n"))
        .collect();
    lines.insert(4, "  json     As JSON, for programs\n".into());
    lines.concat()
}

impl Pipe {
    /// `include REGEX`
    pub(crate) fn new(text: &str) -> Result<Pipe, String> {
        let text = text.trim();
        let (word, regex) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        if word.is_empty() || regex.trim().is_empty() {
            return Err("% Incomplete command.\n".into());
        }
        let word = word.to_ascii_lowercase();
        let Some((_, what, _)) = FILTERS.iter().find(|(w, ..)| w.starts_with(&word)) else {
            return Err(format!("% Unknown filter: {word}"));
        };
        // bounded: whoever types it has not all of the memory; of ASCII, whose classes need no tables
        let regex = RegexBuilder::new(regex.trim())
            .unicode(false)
            .size_limit(1 << 20)
            .build();
        let regex = regex.map_err(|_| "% Failed to compile regular expression.".to_string())?;
        Ok(Pipe { what: *what, regex })
    }

    /// What is left of a text.
    pub(crate) fn run(&self, text: &str) -> String {
        let indent = |line: &str| line.len() - line.trim_start().len();
        let (mut begun, mut section, mut count) = (false, None, 0);
        let mut out = String::new();
        for line in text.lines() {
            let hit = self.regex.is_match(line.as_bytes());
            let keep = match self.what {
                What::Include => hit,
                What::Exclude => !hit,
                What::Begin => {
                    begun |= hit;
                    begun
                }
                // a line, and those below it that are further in
                What::Section => match section {
                    Some(from) if indent(line) > from => true,
                    _ => {
                        section = hit.then(|| indent(line));
                        hit
                    }
                },
                What::Count => {
                    count += usize::from(hit);
                    false
                }
            };
            if keep {
                out.push_str(line);
                out.push('\n');
            }
        }
        match self.what {
            What::Count => format!("Number of lines which match regexp = {count}\n"),
            _ => out,
        }
    }
}
