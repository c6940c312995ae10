// SPDX-License-Identifier: Apache-2.0
//! `class-map`, `policy-map`, `service-policy`: what they make of a configuration, and the lines that say it.

use tandem_swconfig::acl::words::DSCP;
use tandem_swconfig::policy::{Class, DEFAULT, Match, Police, Policy};
use tandem_swconfig::{Config, Kind, Name};
use tandem_swgrammar::{Form, Id, Parsed};

use crate::change::{Done, INTERNAL, Scope};
use crate::render::Block;

/// The longest name.
const NAME_MOST: usize = 40;
/// Classes of a policy at most.
const CLASSES: usize = 64;

fn name(parsed: &Parsed) -> Result<String, String> {
    let name = parsed.text().ok_or(INTERNAL)?;
    match name.len() <= NAME_MOST && !name.contains(['?', '"', '|']) {
        true => Ok(name.into()),
        false => Err("% Invalid name.".into()),
    }
}

/// Commands of configuration mode.
pub(crate) fn of_switch(config: &mut Config, parsed: &Parsed) -> Result<Done, String> {
    let plain = parsed.form == Form::Plain;
    let name = name(parsed)?;
    let mut done = Done::default();
    match (parsed.id, plain) {
        (Id::ClassMap, _) if name == DEFAULT => {
            return Err(format!("% {DEFAULT} is what no other class has met"));
        }
        (Id::ClassMap, true) => {
            let any = parsed.has("match-any");
            let said = any || parsed.has("match-all");
            let class = config.classes.entry(name.clone()).or_insert(Class {
                any,
                ..Class::default()
            });
            if said && class.any != any {
                return Err(format!(
                    "% Class {name} is of the other kind: remove it first"
                ));
            }
            done.scope = Some(Scope::Class(name));
        }
        (Id::ClassMap, false) => drop(config.classes.remove(&name)),
        (_, true) => {
            config.policies.entry(name.clone()).or_default();
            done.scope = Some(Scope::Policy { name, class: None });
        }
        (_, false) => drop(config.policies.remove(&name)),
    }
    Ok(done)
}

/// A line of a class.
pub(crate) fn of_class(config: &mut Config, class: &str, parsed: &Parsed) -> Result<(), String> {
    let gone = || format!("% Class {class} is not there any more");
    let class = config.classes.get_mut(class).ok_or_else(gone)?;
    let line = match (parsed.has("dscp"), parsed.number(), parsed.text()) {
        (true, _, text) => {
            let text = text.ok_or(INTERNAL)?;
            let named = DSCP.iter().find(|(w, _)| w.eq_ignore_ascii_case(text));
            let number = text.parse().ok().filter(|n| *n < 64);
            let value = named.map(|(_, n)| *n).or(number);
            Match::Dscp(value.ok_or("% A DSCP is 0 to 63, or a word")?)
        }
        (_, Some(n), _) => Match::Number(n),
        (_, _, Some(name)) => Match::List(name.into()),
        _ => Match::Any,
    };
    match parsed.form {
        Form::Plain => class.matches.insert(line),
        _ => class.matches.remove(&line),
    };
    Ok(())
}

/// A line of a policy, or of one of its classes.
pub(crate) fn of_policy(
    config: &mut Config,
    policy: &str,
    class: Option<&str>,
    parsed: &Parsed,
) -> Result<Done, String> {
    let gone = || format!("% Policy {policy} is not there any more");
    let Policy { classes } = config.policies.get_mut(policy).ok_or_else(gone)?;
    let plain = parsed.form == Form::Plain;
    let mut done = Done::default();
    let at = |classes: &[(String, Option<Police>)], name: &str| {
        classes.iter().position(|(c, _)| c == name)
    };
    match parsed.id {
        Id::PolicyClass => {
            let name = name(parsed)?;
            match (plain, at(classes, &name)) {
                (true, None) if classes.len() == CLASSES => {
                    return Err(format!("% A policy has {CLASSES} classes at most"));
                }
                (true, None) => {
                    // what is left stays the last one
                    let last = at(classes, DEFAULT).filter(|_| name != DEFAULT);
                    classes.insert(last.unwrap_or(classes.len()), (name.clone(), None));
                }
                (false, Some(n)) => drop(classes.remove(n)),
                _ => {}
            }
            let policy = policy.to_owned();
            let class = Some(name).filter(|_| plain);
            done.scope = Some(Scope::Policy {
                name: policy,
                class,
            });
        }
        Id::Police => {
            let class = class.ok_or(INTERNAL)?;
            let n = at(classes, class);
            let there = n.and_then(|n| classes.get_mut(n));
            let there = there.ok_or_else(|| format!("% Class {class} is not there any more"))?;
            let mut numbers = parsed.args.iter().filter_map(|a| match a {
                tandem_swgrammar::Arg::Number(n) => Some(*n),
                _ => None,
            });
            there.1 = match (plain, numbers.next(), numbers.next()) {
                (true, rate, burst) => {
                    let rate = rate.ok_or(INTERNAL)?;
                    Some(Police { rate, burst })
                }
                _ => None,
            };
        }
        _ => return Err(INTERNAL.into()),
    }
    Ok(done)
}

/// `service-policy` of a port.
pub(crate) fn of_interface(
    port: &Name,
    policy: &mut Option<String>,
    parsed: &Parsed,
) -> Result<(), String> {
    if port.kind == Kind::PortChannel {
        return Err(format!("% {port} has no policy: ports have"));
    }
    if !port.is_port() {
        return Err(format!("% Command rejected: {port} not a switching port."));
    }
    *policy = match parsed.form {
        Form::Plain => Some(name(parsed)?),
        _ => None,
    };
    Ok(())
}

fn match_text(line: &Match) -> String {
    match line {
        Match::Number(n) => format!("match access-group {n}"),
        Match::List(name) => format!("match access-group name {name}"),
        Match::Dscp(n) => {
            let word = DSCP.iter().find(|(_, d)| d == n);
            let text = word.map_or_else(|| n.to_string(), |(w, _)| (*w).to_owned());
            format!("match dscp {text}")
        }
        Match::Any => "match any".into(),
    }
}

/// `police 1000000 8000`
pub(crate) fn police_text(police: &Police) -> String {
    let burst = police.burst.map_or_else(String::new, |b| format!(" {b}"));
    format!(
        "police {}{burst} conform-action transmit exceed-action drop",
        police.rate
    )
}

/// The blocks of classes and of policies.
pub(crate) fn blocks(id: Id, config: &Config) -> Vec<Block> {
    let class = |(name, class): (&String, &Class)| Block {
        head: format!(
            "class-map {} {name}",
            if class.any { "match-any" } else { "match-all" }
        ),
        lines: class.matches.iter().map(match_text).collect(),
    };
    let policy = |(name, policy): (&String, &Policy)| {
        let lines = policy.classes.iter().flat_map(|(class, police)| {
            let police = police.iter().map(|p| format!(" {}", police_text(p)));
            std::iter::once(format!("class {class}")).chain(police)
        });
        Block {
            head: format!("policy-map {name}"),
            lines: lines.collect(),
        }
    };
    match id {
        Id::ClassMap => config.classes.iter().map(class).collect(),
        _ => config.policies.iter().map(policy).collect(),
    }
}

/// `show policy-map`, `show class-map`.
pub(crate) fn show(config: &Config, parsed: &Parsed) -> String {
    let wanted = |name: &str| parsed.text().is_none_or(|only| only == name);
    let mut text = String::new();
    if parsed.id == Id::ShowClassMap {
        for (name, class) in config.classes.iter().filter(|(n, _)| wanted(n)) {
            let kind = if class.any { "match-any" } else { "match-all" };
            text += &format!(" Class Map {kind} {name}\n");
            for line in &class.matches {
                text += &format!("   {}\n", match_text(line).replacen('m', "M", 1));
            }
            text.push('\n');
        }
        return text;
    }
    for (name, policy) in config.policies.iter().filter(|(n, _)| wanted(n)) {
        text += &format!("  Policy Map {name}\n");
        for (class, police) in &policy.classes {
            text += &format!("    Class {class}\n");
            if let Some(police) = police {
                text += &format!("     {}\n", police_text(police));
            }
        }
    }
    text
}
