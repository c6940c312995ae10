//! What was played: which construct, which operation, with which outcome. Each cell of the table that histories can reach is
//! counted, or is impossible for a reason that stands here; a hit on an impossible one is a mistake of the recorder, of the
//! kernel, or of the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::history::{STILL_BRIDGES, port_flags};
use crate::recording::Command;

/// Outcomes, in the order of the table's columns.
pub const OUTCOMES: [&str; 5] = ["fits", "full", "refused", "trap", "restart"];

/// Hits, by outcome.
type Row = [u64; OUTCOMES.len()];

/// Hits, by construct, operation and outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cells(BTreeMap<Arc<str>, BTreeMap<Arc<str>, Row>>);

impl Cells {
    fn row(&mut self, what: &Arc<str>, how: &Arc<str>) -> &mut Row {
        let rows = self.0.entry(Arc::clone(what)).or_default();
        rows.entry(Arc::clone(how)).or_default()
    }

    /// A rest after that had these outcomes, in the order of [`OUTCOMES`].
    pub fn count(&mut self, what: &Arc<str>, how: &Arc<str>, outcomes: [bool; OUTCOMES.len()]) {
        let row = self.row(what, how);
        row.iter_mut()
            .zip(outcomes)
            .for_each(|(n, hit)| *n += u64::from(hit));
    }

    /// Adds another one's.
    pub fn add(&mut self, other: &Cells) {
        for (what, how, from) in other.rows() {
            let to = self.row(what, how);
            to.iter_mut().zip(from).for_each(|(a, b)| *a += b);
        }
    }

    fn rows(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>, &Row)> {
        let of = |(what, rows)| std::iter::repeat(what).zip(rows);
        self.0
            .iter()
            .flat_map(of)
            .map(|(what, (how, row))| (what, how, row))
    }
}

/// Words that say what kind of object a command is about.
const KINDS: [(&str, &str); 14] = [
    (" master vrf", "+vrf"),
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
        "link*",
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

/// Construct and operation that not all histories are about, and what they have then ([`History::have`]); `*` as above.
///
/// [`History::have`]: crate::history::History::have
const NEEDS: [(&str, &str, &str); 6] = [
    ("rule*", "*", "rule"),
    ("bridge vlan", "*", "vlan"),
    ("link+vrf", "*", "vrf"),
    ("link", "*master*", STILL_BRIDGES),
    ("port", "*", STILL_BRIDGES),
    ("bridge *", "*", STILL_BRIDGES),
];

/// What histories must have for that.
fn needs(what: &str, how: &str) -> Option<&'static str> {
    let mut all = NEEDS.iter();
    let found = all.find(|(w, h, _)| like(w, what) && like(h, how));
    found.map(|(.., have)| *have)
}

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
    add("link+vrf", "master");
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
    let mut all = Vec::new();
    for (what, how, row) in cells.rows() {
        let Some(why) = impossible(what, how) else {
            continue;
        };
        for (outcome, n) in OUTCOMES.iter().zip(row).filter(|(_, n)| **n > 0) {
            all.push(format!(
                "impossible, and hit {n} times: {what}, {how}, {outcome} ({why})"
            ));
        }
    }
    all
}

/// The sums of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Cells that were hit.
    pub hit: usize,
    /// Those that can't be, by [`impossible`].
    pub impossible: usize,
    /// Those of what these histories had not, by that: some of it has the machine alone.
    pub elsewhere: BTreeMap<&'static str, usize>,
    /// Those that could have been hit and were not.
    pub missing: usize,
}

/// The table: what was hit; then what was not and could have been, in histories that have these constructs; then what was and
/// can't be.
#[must_use]
pub fn table(cells: &Cells, have: &[String]) -> (String, Sums) {
    let rows: BTreeMap<(&str, &str), Row> = cells
        .rows()
        .map(|(what, how, row)| ((&**what, &**how), *row))
        .collect();
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
    let mut sums = Sums::default();
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
        sums.hit += OUTCOMES.len() - zeros.len();
        if impossible(what, how).is_some() {
            sums.impossible += zeros.len();
            continue;
        }
        let absent = needs(what, how).filter(|n| !have.iter().any(|h| h == n));
        if let Some(absent) = absent {
            *sums.elsewhere.entry(absent).or_default() += zeros.len();
        } else if !zeros.is_empty() {
            sums.missing += zeros.len();
            let _ = writeln!(text, "missing: {what}, {how}: {}", zeros.join(", "));
        }
    }
    let _ = write!(
        text,
        "{} cells: {} hit, {} impossible",
        drawn.len() * OUTCOMES.len(),
        sums.hit,
        sums.impossible
    );
    for (what, n) in &sums.elsewhere {
        let _ = write!(text, ", {n} only with: {what}");
    }
    let _ = writeln!(text, ", {} missing", sums.missing);
    for words in violations(cells) {
        let _ = writeln!(text, "{words}");
    }
    (text, sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{BRIDGES, History};

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
        for seed in 0..1500 {
            for op in History::draw(seed, &have).commands {
                let cell = cell_of(&op.text, 0);
                assert!(drawn.contains(&cell), "{}: {cell:?}", op.text);
            }
        }
    }

    /// Each row is drawn often enough, those of refused commands too, by what is known of what was done before: whoever draws
    /// less of something does so knowingly. Histories as `judge` has them, and those of kernels with VLANs and VRFs.
    #[test]
    fn each_row_is_drawn_often_enough() {
        let drawn = drawn();
        // with VLANs and VRFs each of the others has its turn more seldom
        let kernels: [(&[&str], u64); 3] = [
            (&["rule"], 8),
            (&["rule", STILL_BRIDGES], 8),
            (&["rule", "vlan", "vrf", STILL_BRIDGES], 4),
        ];
        for (have, least) in kernels {
            let have: Vec<String> = have.iter().map(|h| (*h).to_owned()).collect();
            let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
            for seed in 0..4000 {
                for (text, vain) in History::with_hopes(seed, &have) {
                    *counts.entry(cell_of(&text, i32::from(vain))).or_default() += 1;
                }
            }
            let here = |what: &str, how: &str| {
                impossible(what, how).is_none()
                    && needs(what, how).is_none_or(|n| have.iter().any(|h| h == n))
            };
            let few: Vec<_> = drawn
                .iter()
                .filter(|(w, h)| here(w, h))
                .map(|row| (counts.get(row).copied().unwrap_or(0), row))
                .filter(|(n, _)| *n < least)
                .collect();
            assert!(few.is_empty(), "{have:?}: {few:?}");
        }
    }

    #[test]
    fn a_hit_on_an_impossible_cell_is_found() {
        let mut cells = Cells::default();
        let mut hit = |text: &str, errno| {
            let (what, how) = cell_of(text, errno);
            cells.count(
                &what.into(),
                &how.into(),
                [true, false, false, false, false],
            );
            violations(&cells).len()
        };
        assert_eq!(hit("host h1 down", 0), 0);
        assert_eq!(hit("ip route add 21.0.0.0/24 nhid 3", 22), 0);
        assert_eq!(hit("host h1 down", 16), 1);
        assert_eq!(hit("sysctl ipv6/conf/swp1/forwarding=1", 2), 2);
        let (text, _) = table(&cells, &[]);
        assert!(text.contains("impossible, and hit 1 times: cable, down (error), fits"));
    }

    /// What histories have not is missed by nobody, and by those that have it.
    #[test]
    fn what_is_elsewhere_is_not_missing() {
        let cells = Cells::default();
        let all = ["rule", "vlan", "vrf", STILL_BRIDGES].map(str::to_owned);
        let here = ["rule".to_owned(), STILL_BRIDGES.to_owned()];
        let (text, sums) = table(&cells, &here);
        assert_eq!(sums.elsewhere, BTreeMap::from([("vlan", 20), ("vrf", 5)]));
        assert!(text.ends_with(&format!(
            ", 20 only with: vlan, 5 only with: vrf, {} missing\n",
            sums.missing
        )));
        let (text, with_all) = table(&cells, &all);
        assert_eq!(with_all.missing, sums.missing + 25);
        assert!(
            text.contains(
                "missing: bridge vlan, add (error): fits, full, refused, trap, restart\n"
            )
        );
        let (_, without) = table(&cells, &[]);
        assert!(without.elsewhere[STILL_BRIDGES] > 100);
        let sum = |s: &Sums| s.hit + s.impossible + s.missing + s.elsewhere.values().sum::<usize>();
        assert_eq!(sum(&without), drawn().len() * OUTCOMES.len());
        assert_eq!(sum(&sums), sum(&without));
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
