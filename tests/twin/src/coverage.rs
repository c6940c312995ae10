//! What was played: which construct, which operation, with which outcome. Each cell of the table that histories can reach is
//! counted, or is impossible for a reason that stands here; a hit on an impossible one is a mistake of the recorder, of the
//! kernel, or of the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use crate::history::port_flags;
use crate::recording::Command;

/// Outcomes, in the order of the table's columns.
pub const OUTCOMES: [&str; 5] = ["fits", "full", "refused", "trap", "restart"];

/// Construct, operation and outcome.
pub type Cell = (Arc<str>, Arc<str>, &'static str);

/// Hits, by cell.
pub type Cells = BTreeMap<Cell, u64>;

/// Words that say what kind of object a command is about.
const KINDS: [(&str, &str); 13] = [
    (" nhid ", "+nhid"),
    (" nexthop ", "+multipath"),
    (" blackhole", "+blackhole"),
    (" unreachable", "+unreachable"),
    (" prohibit", "+prohibit"),
    (" throw", "+throw"),
    (" local", "+local"),
    (" group ", "+group"),
    (" resilient", "+resilient"),
    (" type bridge", "+bridge"),
    (" type vlan", "+vlan"),
    (" type bond", "+bond"),
    (" metric ", "+metric"),
];
const REFUSED: &str = " (error)";

/// Construct and operation of a command, by iproute2's words.
#[must_use]
pub fn cell(command: &Command) -> (String, String) {
    let text = &command.text;
    let v6 = text.contains("ip -6 ") || text.contains("::");
    let words: Vec<&str> = text
        .split_whitespace()
        .filter(|w| !w.starts_with('-'))
        .collect();
    let (mut what, how) = match words.as_slice() {
        ["bridge", "link", "set", "dev", _, flag, ..] => ("port".to_owned(), *flag),
        ["bridge", object, how, ..] => (format!("bridge {object}"), *how),
        ["ip", "link", "set", _, how, ..] => ("link".to_owned(), *how),
        ["ip", object, how, ..] => (format!("{object}{}", if v6 { "6" } else { "" }), *how),
        ["host", _, how] => ("cable".to_owned(), *how),
        ["sysctl", .., setting] => {
            let key = setting.split('=').next().unwrap_or(setting);
            let family = if key.contains("ipv6") {
                "sysctl6"
            } else {
                "sysctl"
            };
            (family.to_owned(), key.rsplit('/').next().unwrap_or(key))
        }
        [tool, ..] => ((*tool).to_owned(), "write"),
        [] => ("nothing".to_owned(), "write"),
    };
    let object = words.get(1).copied().unwrap_or_default();
    for (word, name) in KINDS {
        // a word at the end has no blank behind it; the object itself is named already
        if object != word.trim() && format!("{text} ").contains(word) {
            what += name;
        }
    }
    let mut how = how.to_owned();
    if command.errno != 0 {
        how += REFUSED;
    }
    (what, how)
}

/// Construct, operation, and why it can't be; `*`: any that ends or begins like that.
const IMPOSSIBLE: [(&str, &str, &str); 10] = [
    (
        "cable",
        "* (error)",
        "the far end of a veth pair: `veth_open` and `veth_close` refuse nothing",
    ),
    (
        "link",
        "up (error)",
        "`veth_open` and `br_dev_open` refuse nothing",
    ),
    ("link", "down (error)", "`dev_close` has no way to refuse"),
    (
        "link",
        "master (error)",
        "`do_set_master` takes the port out of its bridge first; a veth end is no loop",
    ),
    (
        "link",
        "nomaster (error)",
        "`do_set_master` to none: nothing to do where there is no master",
    ),
    (
        "sysctl*",
        "* (error)",
        "the device is there, and so is the file; 0 and 1 are in range",
    ),
    (
        "neigh",
        "replace (error)",
        "`neigh_add` with NLM_F_CREATE and NLM_F_REPLACE takes what is there and what is not",
    ),
    (
        "nexthop*+blackhole",
        "del*",
        "a request to delete names the id alone",
    ),
    (
        "nexthop*+group",
        "del*",
        "a request to delete names the id alone",
    ),
    (
        "rule*+*",
        "del*",
        "a request to delete names the preference alone",
    ),
];

fn like(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((begin, end)) => text.strip_prefix(begin).is_some_and(|rest| {
            let inner = (0..=rest.len()).filter_map(|n| rest.get(n..));
            inner.into_iter().any(|rest| like(end, rest))
        }),
    }
}

/// Why that can't be, if it can't.
#[must_use]
pub fn impossible(what: &str, how: &str) -> Option<&'static str> {
    let mut all = IMPOSSIBLE.iter();
    let found = all.find(|(w, h, _)| like(w, what) && like(h, how));
    found.map(|(.., why)| *why)
}

/// Constructs and operations that histories draw.
fn drawn() -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    let mut add = |what: &str, how: &str| {
        for refused in ["", REFUSED] {
            all.insert((what.to_owned(), format!("{how}{refused}")));
        }
    };
    for family in ["", "6"] {
        for kind in [
            "",
            "+nhid",
            "+multipath",
            "+blackhole",
            "+unreachable",
            "+prohibit",
            "+throw",
            "+local",
        ] {
            for metric in ["", "+metric"] {
                for verb in ["add", "append", "prepend", "replace", "change", "del"] {
                    add(&format!("route{family}{kind}{metric}"), verb);
                }
            }
        }
        for kind in ["", "+blackhole"] {
            for verb in ["add", "replace"] {
                add(&format!("nexthop{family}{kind}"), verb);
            }
        }
        for kind in ["", "+blackhole", "+unreachable", "+prohibit"] {
            add(&format!("rule{family}{kind}"), "add");
        }
        add(&format!("rule{family}"), "del");
        for verb in ["add", "del"] {
            add(&format!("addr{family}"), verb);
        }
        for verb in ["replace", "del"] {
            add(&format!("neigh{family}"), verb);
        }
        for key in ["forwarding", "fib_multipath_hash_policy"] {
            add(&format!("sysctl{family}"), key);
        }
    }
    for verb in ["add", "replace"] {
        add("nexthop+group", verb);
        add("nexthop+group+resilient", verb);
    }
    add("nexthop", "del");
    add("sysctl", "ignore_routes_with_linkdown");
    add("sysctl6", "disable_ipv6");
    for state in ["up", "down"] {
        add("link", state);
        add("cable", state);
    }
    for how in ["master", "nomaster"] {
        add("link", how);
    }
    for verb in ["add", "replace", "del"] {
        add("bridge fdb", verb);
    }
    for verb in ["add", "del"] {
        add("bridge vlan", verb);
        add("bridge mdb", verb);
    }
    for flag in port_flags() {
        add("port", flag);
    }
    all
}

/// Hits on cells that can't be hit, in words.
#[must_use]
pub fn violations(cells: &Cells) -> Vec<String> {
    let words = |((what, how, outcome), n): (&Cell, &u64)| {
        let why = impossible(what, how)?;
        Some(format!(
            "impossible, and hit {n} times: {what}, {how}, {outcome} ({why})"
        ))
    };
    cells.iter().filter_map(words).collect()
}

/// The table: what was hit; then what was neither hit nor is impossible; then what was hit and is.
#[must_use]
pub fn table(cells: &Cells) -> String {
    let mut rows: BTreeMap<(&str, &str), [u64; OUTCOMES.len()]> = BTreeMap::new();
    for ((what, how, outcome), n) in cells {
        let row = rows.entry((&**what, &**how)).or_default();
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
    for ((what, how), row) in &rows {
        let _ = write!(text, "{what:<34} {how:<16}");
        for n in row {
            let _ = write!(text, " {n:>9}");
        }
        text.push('\n');
    }
    let drawn = drawn();
    let foreign = rows
        .keys()
        .filter(|(w, h)| !drawn.contains(&((*w).to_owned(), (*h).to_owned())));
    for (what, how) in foreign {
        let _ = writeln!(text, "hit, though no history draws it: {what}, {how}");
    }
    let (mut hit, mut never, mut cannot) = (0, 0, 0);
    for (what, how) in &drawn {
        let row = rows
            .get(&(what.as_str(), how.as_str()))
            .copied()
            .unwrap_or_default();
        let zeros: Vec<&str> = OUTCOMES
            .iter()
            .zip(row)
            .filter(|(_, n)| *n == 0)
            .map(|(o, _)| *o)
            .collect();
        hit += OUTCOMES.len() - zeros.len();
        if impossible(what, how).is_some() {
            cannot += zeros.len();
        } else if !zeros.is_empty() {
            never += zeros.len();
            let _ = writeln!(
                text,
                "neither hit nor impossible: {what}, {how}: {}",
                zeros.join(", ")
            );
        }
    }
    let _ = writeln!(
        text,
        "{} cells: {hit} hit, {cannot} impossible, {never} neither",
        drawn.len() * OUTCOMES.len()
    );
    for words in violations(cells) {
        let _ = writeln!(text, "{words}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{BRIDGES, History, STILL_BRIDGES};

    fn cell_of(text: &str, errno: i32) -> (String, String) {
        cell(&Command {
            text: text.into(),
            errno,
            ..Command::default()
        })
    }

    #[test]
    fn commands_have_their_cells() {
        for (text, errno, what, how) in [
            (
                "ip route append 21.0.0.0/24 nhid 3",
                0,
                "route+nhid",
                "append",
            ),
            (
                "ip nexthop replace id 6 blackhole",
                17,
                "nexthop+blackhole",
                "replace (error)",
            ),
            (
                "ip -6 nexthop replace id 16 dev swp1",
                0,
                "nexthop6",
                "replace",
            ),
            (
                "ip nexthop add id 16 via fd01::2 dev swp1",
                0,
                "nexthop6",
                "add",
            ),
            ("ip -6 route add 2001:db8::/64 dev swp1", 0, "route6", "add"),
            ("ip link set swp1 master br1", 0, "link", "master"),
            (
                "bridge link set dev swp1 learning off",
                22,
                "port",
                "learning (error)",
            ),
            (
                "bridge fdb add 02:00:00:00:00:77 dev swp1 master static",
                0,
                "bridge fdb",
                "add",
            ),
            ("host h3 down", 0, "cable", "down"),
            (
                "sysctl ipv4/conf/swp1/forwarding=1",
                0,
                "sysctl",
                "forwarding",
            ),
            (
                "sysctl ipv6/fib_multipath_hash_policy=1",
                0,
                "sysctl6",
                "fib_multipath_hash_policy",
            ),
        ] {
            let (what, how) = (what.to_owned(), how.to_owned());
            assert_eq!(cell_of(text, errno), (what, how), "{text}");
        }
    }

    /// Each command of many histories is one that the table has a row for.
    #[test]
    fn what_is_drawn_has_a_row() {
        let drawn = drawn();
        let have = ["rule", "vlan", "vrf", BRIDGES, STILL_BRIDGES].map(str::to_owned);
        let mut seen = BTreeSet::new();
        for seed in 0..1500 {
            for op in History::draw(seed, &have).commands {
                let cell = cell_of(&op.text, 0);
                assert!(drawn.contains(&cell), "{}: {cell:?}", op.text);
                seen.insert(cell);
            }
        }
        // and what no history draws has none; some of it is drawn in one of many thousands
        let rare = |what: &str| what.contains("+metric") || what.contains("+local");
        let never: Vec<_> = drawn
            .iter()
            .filter(|(w, h)| !h.ends_with(REFUSED) && impossible(w, h).is_none())
            .filter(|c| !seen.contains(c) && !rare(&c.0))
            .collect();
        assert!(never.is_empty(), "{never:?}");
    }

    #[test]
    fn a_hit_on_an_impossible_cell_is_found() {
        let mut cells = Cells::new();
        let mut hit = |text: &str, errno| {
            let (what, how) = cell_of(text, errno);
            *cells.entry((what.into(), how.into(), "fits")).or_default() += 1;
            violations(&cells).len()
        };
        assert_eq!(hit("host h1 down", 0), 0);
        assert_eq!(hit("ip route add 21.0.0.0/24 nhid 3", 22), 0);
        assert_eq!(hit("host h1 down", 16), 1);
        assert_eq!(hit("sysctl ipv6/conf/swp1/forwarding=1", 2), 2);
        assert!(table(&cells).contains("impossible, and hit 1 times: cable, down (error), fits"));
    }

    #[test]
    fn patterns() {
        assert!(
            like("nexthop*+group", "nexthop6+group") && like("nexthop*+group", "nexthop+group")
        );
        assert!(!like("nexthop*+group", "nexthop+blackhole") && !like("link", "link6"));
        assert!(like("rule*+*", "rule6+blackhole") && !like("rule*+*", "rule6"));
    }
}
