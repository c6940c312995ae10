// SPDX-License-Identifier: Apache-2.0
//! Classes of packets as rules, each with the policer of its class.
//!
//! What an access list permits is of a class, what it denies is not: it goes on to the classes behind. Of a packet in pieces
//! only rules that ask for no ports have the first one.

use tandem_store::model::FilterVerdict;
use tandem_swconfig::policy::{Class, DEFAULT, Match, Police};
use tandem_swconfig::{Config, Interface};
use tandem_vlans::RULES;

use crate::acl::{Ruled, all_of, nothing_yet, of_rule};
use crate::layers::{POLICERS_OF_PORT, both, police};

/// A second's part that may come at once, where nobody has said another.
const BURST: u64 = 4;
/// The least of it: a frame of any length passes a full bucket.
const LEAST: u64 = 9238;

fn ruled(filter: tandem_store::model::Filter) -> Ruled {
    Ruled {
        filter,
        of: Vec::new(),
    }
}

/// A line of a class: rules that permit what is of it, and deny what is not; what none of them meets is not either.
fn of_match(config: &Config, line: &Match) -> Vec<Ruled> {
    let mut all = Vec::new();
    let mut list = |v6: bool, name: &str| {
        let lists = if v6 { &config.lists6 } else { &config.lists };
        for (_, rule) in lists.get(name).into_iter().flat_map(|l| l.rules()) {
            of_rule(&all_of(v6), v6, rule, &mut all);
        }
    };
    match line {
        Match::Number(n) => list(false, &n.to_string()),
        Match::List(name) => [false, true].into_iter().for_each(|v6| list(v6, name)),
        Match::Dscp(dscp) => all.extend([false, true].map(|v6| {
            let mut f = all_of(v6);
            (f.fields.tos, f.mask.tos) = (dscp << 2, 0xfc);
            f
        })),
        Match::Any => all.push(nothing_yet()),
    }
    all.into_iter().map(ruled).collect()
}

/// The same of all lines of a class.
fn of_class(config: &Config, class: &Class) -> Vec<Ruled> {
    let mut lines = class.matches.iter().map(|line| of_match(config, line));
    if class.any {
        // what one line denies another may permit: so each is asked for what it permits, and what it denies in front of that
        return lines.fold(Vec::new(), either);
    }
    let first = lines.next().unwrap_or_default();
    lines.fold(first, |all, more| {
        let pairs = all
            .iter()
            .flat_map(|a| more.iter().filter_map(|b| both(a, b)));
        pairs.take(RULES + 1).collect()
    })
}

fn permits(rule: &Ruled) -> bool {
    rule.filter.verdict == FilterVerdict::Permit
}

fn permitted(mut rule: Ruled) -> Ruled {
    rule.filter.verdict = FilterVerdict::Permit;
    rule
}

/// What the first list permits, or the second one.
fn either(first: Vec<Ruled>, second: Vec<Ruled>) -> Vec<Ruled> {
    let mut all = Vec::new();
    for rule in first {
        if !permits(&rule) {
            let open = permitted(rule.clone());
            all.extend(second.iter().filter_map(|b| both(&open, b)));
        }
        all.push(rule);
    }
    all.extend(second);
    all.truncate(RULES + 1);
    all
}

fn limit(port: u16, n: u32, of: &Police) -> tandem_store::model::FilterPolice {
    let rate = u64::from(of.rate) / 8;
    let burst = of.burst.map_or((rate / BURST).max(LEAST), u64::from);
    police(port, n, false, rate, burst)
}

/// The rules of a port's policy.
pub(crate) fn rules(config: &Config, port: u16, of: &Interface) -> Vec<Ruled> {
    let policy = of.policy.as_ref().and_then(|n| config.policies.get(n));
    let Some(policy) = policy else {
        return Vec::new();
    };
    // from the last one: what a class denies is asked of those behind it
    let mut behind: Vec<Ruled> = Vec::new();
    for (n, (name, of)) in (0..POLICERS_OF_PORT).zip(&policy.classes).rev() {
        let class = match (name.as_str(), config.classes.get(name)) {
            (DEFAULT, _) => vec![ruled(nothing_yet())],
            (_, Some(class)) => of_class(config, class),
            (_, None) => Vec::new(),
        };
        let mut all = Vec::new();
        for mut rule in class {
            let is_of_it = permits(&rule);
            rule = permitted(rule);
            match is_of_it {
                true => {
                    rule.filter.police = of.as_ref().map(|p| limit(port, n, p));
                    rule.filter.text = format!("class {name}");
                }
                false => all.extend(behind.iter().filter_map(|b| both(&rule, b))),
            }
            all.push(rule);
        }
        all.extend(behind);
        all.truncate(RULES + 1);
        behind = all;
    }
    behind
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_swconfig::acl::{Entry, List, ListKind, Ports, Rule};
    use tandem_swconfig::policy::Policy;

    fn list(rules: &[(bool, u16)]) -> List {
        let entry = |(n, (permit, port)): (u32, &(bool, u16))| {
            let rule = Rule {
                permit: *permit,
                protocol: Some(17),
                to_ports: Ports::Eq(*port),
                ..Rule::default()
            };
            (n, Entry::Rule(rule))
        };
        List {
            kind: ListKind::Extended,
            entries: (1..).zip(rules).map(entry).collect(),
        }
    }

    fn class(any: bool, matches: &[Match]) -> Class {
        Class {
            any,
            matches: matches.iter().cloned().collect(),
        }
    }

    const SOME: Police = Police {
        rate: 8_000_000,
        burst: None,
    };

    /// Classes a and b, and what is left.
    fn config(a: Class, b: Class) -> (Config, Interface) {
        let mut config = Config::default();
        config
            .lists
            .insert("100".into(), list(&[(false, 53), (true, 54)]));
        config.lists.insert("x".into(), list(&[(true, 53)]));
        config.classes = [("a".into(), a), ("b".into(), b)].into();
        let slow = Police {
            rate: 80_000,
            burst: Some(20_000),
        };
        let all = [
            ("a", Some(SOME)),
            ("none", Some(SOME)),
            ("b", None),
            (DEFAULT, Some(slow)),
        ];
        let classes = all.map(|(n, p)| (n.to_owned(), p)).to_vec();
        config.policies.insert("p".into(), Policy { classes });
        let of = Interface {
            policy: Some("p".into()),
            ..Interface::default()
        };
        (config, of)
    }

    /// Ports that rules ask for, and the rates of their policers.
    fn shown(rules: &[Ruled]) -> Vec<(Option<u16>, Option<u64>)> {
        // pieces of packets, and other families, are beside
        let whole = rules.iter().filter(|r| r.filter.mask.fragment != 3);
        let one = |r: &Ruled| {
            let rate = r.filter.police.map(|p| p.rate);
            (r.filter.dst_ports.map(|p| p.0), rate)
        };
        whole.map(one).collect()
    }

    #[test]
    fn what_a_class_denies_goes_on_to_the_next() {
        let (config, of) = config(
            class(false, &[Match::Number(100)]),
            class(false, &[Match::List("x".into())]),
        );
        let all = rules(&config, 3, &of);
        let (fast, slow) = (Some(1_000_000), Some(10_000));
        assert_eq!(
            shown(&all),
            [
                // denied by a: b's, which has no limit, then what is left
                (Some(53), None),
                (Some(53), slow),
                (Some(53), None),
                (Some(54), fast),
                (Some(53), None),
                (None, slow)
            ]
        );
        assert!(all.iter().all(permits));
        let police: Vec<_> = all
            .iter()
            .filter_map(|r| r.filter.police)
            .map(|p| (p.index & 0xffff, p.burst))
            .collect();
        assert!(police.contains(&(3 << 8, 250_000)) && police.contains(&(3 << 8 | 3, 20_000)));
        // a policy that is not there has no rules
        assert_eq!(rules(&Config::default(), 3, &of), []);
    }

    #[test]
    fn all_lines_of_a_class_or_one() {
        let both = [Match::Number(100), Match::Dscp(46)];
        let nothing = Class::default();
        let (all, of) = config(class(false, &both), nothing.clone());
        let tos = |rules: &[Ruled]| {
            let of_a = rules.iter().filter(|r| r.filter.text == "class a");
            let of_a: Vec<_> = of_a
                .map(|r| (r.filter.dst_ports.is_some(), r.filter.mask.tos))
                .collect();
            of_a
        };
        // port 54 and its pieces, with the DSCP
        assert_eq!(tos(&rules(&all, 1, &of)), [(true, 0xfc), (false, 0xfc)]);
        let (any, of) = config(class(true, &both), nothing);
        // what the list denies may still have the DSCP
        assert_eq!(
            tos(&rules(&any, 1, &of)),
            [
                (true, 0xfc),
                (true, 0),
                (false, 0),
                (false, 0xfc),
                (false, 0xfc)
            ]
        );
        let (none, of) = config(class(false, &[]), class(true, &[Match::Any]));
        let all = rules(&none, 1, &of);
        assert_eq!((all.len(), shown(&all)[0]), (2, (None, None)));
    }
}
