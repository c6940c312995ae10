//! What was played: which construct, which operation, with which outcome.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::recording::Command;

/// Outcomes, in the order of the table's columns.
pub const OUTCOMES: [&str; 5] = ["fits", "full", "refused", "trap", "restart"];

/// Words that say what kind of object a command is about.
const KINDS: [(&str, &str); 14] = [
    (" nhid ", "+nhid"),
    (" nexthop ", "+multipath"),
    (" blackhole", "+blackhole"),
    (" unreachable", "+unreachable"),
    (" prohibit", "+prohibit"),
    (" group ", "+group"),
    (" resilient", "+resilient"),
    (" via inet6 ", "+inet6"),
    (" vrf ", "+vrf"),
    (" type bridge", "+bridge"),
    (" type vlan", "+vlan"),
    (" type bond", "+bond"),
    (" master ", "+master"),
    (" metric ", "+metric"),
];

/// Construct and operation of a command, by iproute2's words.
#[must_use]
pub fn cell(command: &Command) -> (String, String) {
    let text = &command.text;
    let v6 = text.contains(" -6 ") || text.contains("::");
    let mut words = text.split_whitespace().filter(|w| !w.starts_with('-'));
    let (tool, object, how) = (words.next(), words.next(), words.next());
    let mut what = match (tool, object) {
        (Some("ip" | "bridge"), Some(object)) => {
            let object = object.split('.').next().unwrap_or(object);
            format!("{object}{}", if v6 { "6" } else { "" })
        }
        (Some(tool), _) => tool.to_owned(),
        _ => "nothing".to_owned(),
    };
    for (word, name) in KINDS {
        // a word at the end has no blank behind it; the object itself is named already
        if object != Some(word.trim()) && format!("{text} ").contains(word) {
            what += name;
        }
    }
    let mut how = match tool {
        Some("ip" | "bridge" | "tc") => how.unwrap_or("show").to_owned(),
        _ => "write".to_owned(),
    };
    if command.errno != 0 {
        how += " (error)";
    }
    (what, how)
}

/// The table.
#[must_use]
pub fn table(cells: &BTreeMap<(String, String, &'static str), u64>) -> String {
    let mut rows: BTreeMap<(&str, &str), [u64; OUTCOMES.len()]> = BTreeMap::new();
    for ((what, how, outcome), n) in cells {
        let row = rows.entry((what, how)).or_default();
        let place = OUTCOMES.iter().position(|o| o == outcome);
        if let Some(cell) = place.and_then(|p| row.get_mut(p)) {
            *cell += n;
        }
    }
    let mut text = format!("{:<34} {:<16}", "construct", "operation");
    for outcome in OUTCOMES {
        let _ = write!(text, " {outcome:>9}");
    }
    text.push('\n');
    for ((what, how), row) in rows {
        let _ = write!(text, "{what:<34} {how:<16}");
        for n in row {
            let _ = write!(text, " {n:>9}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_their_cells() {
        let cell = |text: &str, errno| {
            let (what, how) = cell(&Command {
                text: text.into(),
                errno,
                ..Command::default()
            });
            format!("{what} | {how}")
        };
        assert_eq!(
            cell("ip route append 21.0.0.0/24 nhid 3", 0),
            "route+nhid | append"
        );
        assert_eq!(
            cell("ip nexthop replace id 6 blackhole", 17),
            "nexthop+blackhole | replace (error)"
        );
        assert_eq!(
            cell("ip -6 route add 2001:db8::/64 dev swp1", 0),
            "route6 | add"
        );
        assert_eq!(cell("sysctl -w net.ipv4.x=1", 0), "sysctl | write");
    }
}
