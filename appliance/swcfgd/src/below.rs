// SPDX-License-Identifier: Apache-2.0
//! What both engines have in common: how they begin, what they ask of asicd, and of the core, which explains.

use serde_json::Value;
use tandem_mgmt::client::{Client, query};
use tandem_mgmt::types::{Explain, Items, Port, Resources};
use tandem_swconfig::{Config, Engine, Platform};
use tandem_swconsole::Store;

fn explain(core: &Client, kind: &str, key: &str) -> Result<Vec<Vec<String>>, String> {
    let path = query(&format!("/v1/explain/{kind}"), &[("key", key)]);
    let e: Explain = core.get(&path).map_err(|e| e.to_string())?;
    let mut rows = vec![Vec::new()];
    let mut say = |what: &str, how: String| rows.push(vec![what.to_owned(), how]);
    say("Object", e.object);
    say(
        "In hardware",
        if e.in_hardware { "yes" } else { "no" }.into(),
    );
    let since = e
        .since_s
        .map_or_else(String::new, |s| format!(", for {s:.0} s"));
    say("State", format!("{}{since}", e.state));
    if let Some(reason) = e.reason {
        say("Reason", reason);
    }
    for c in e.cost {
        say("Cost", format!("{} of {}", c.slots, c.pool));
    }
    if let Some(n) = e.slow_path_packets {
        say("Slow path", format!("{n} packets"));
    }
    for line in e.details {
        say("Details", line);
    }
    Ok(rows)
}

fn numbers(what: &str, of: [u32; 3]) -> Vec<String> {
    std::iter::once(what.to_owned())
        .chain(of.map(|n| n.to_string()))
        .collect()
}

/// The chip's ports; none, with a warning, when asicd does not answer.
pub fn ports(asicd: &Client) -> Vec<Port> {
    match asicd.get::<Items<Port>>("/v1/ports") {
        Ok(rows) => rows.items,
        Err(e) => {
            tracing::warn!("{e}");
            Vec::new()
        }
    }
}

/// As `Engine::platform`.
///
/// # Errors
/// Nobody answers, or knows nothing of that.
pub fn platform(
    asicd: &Client,
    core: &Client,
    what: &Platform,
) -> Result<Vec<Vec<String>>, String> {
    let heads = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect();
    match what {
        Platform::Resources => {
            let all: Resources = asicd.get("/v1/resources").map_err(|e| e.to_string())?;
            let mut rows = vec![heads(&["Memory", "Used", "Free", "Size"])];
            rows.extend(
                all.items
                    .iter()
                    .map(|r| numbers(&r.name, [r.used, r.free, r.size])),
            );
            Ok(rows)
        }
        Platform::Replication => {
            let all: Items<Value> = asicd.get("/v1/replication").map_err(|e| e.to_string())?;
            let row = all.items.into_iter().next().unwrap_or_default();
            let count = |key: &str| row[key].as_u64().unwrap_or_default().to_string();
            Ok([
                ("Frames flooded", count("frames")),
                ("Frames sent for them", count("sent")),
                ("References beyond one each", count("references")),
                ("Tags changed", count("tag_changes")),
                ("Most of one frame", count("tag_changes_max")),
                (
                    "Bridge and VLAN interfaces would change",
                    count("tag_changes_stacked"),
                ),
            ]
            .map(|(what, n)| vec![what.to_owned(), n])
            .into_iter()
            .collect())
        }
        Platform::Route(prefix) => explain(core, "route", prefix),
        Platform::Mac(mac) => {
            let colons: Vec<String> = mac.iter().map(|b| format!("{b:02x}")).collect();
            explain(core, "mac", &colons.join(":"))
        }
        Platform::Neighbour(address) => explain(core, "neighbour", &address.to_string()),
        // nobody else changes the database
        Platform::Drift => {
            Err("Engine chip has no drift: nobody else changes what it has set".into())
        }
    }
}

/// Carries the startup-config out, by what an engine does at its start; what of it is wrong or refused is in the log. One that is
/// refused as a whole is begun without, and done line by line: the console has to come up, or nobody could mend it.
///
/// # Errors
/// Not even nothing can be carried out.
pub fn begin<E: Engine>(
    store: &dyn Store,
    engine: &mut E,
    mut restore: impl FnMut(&mut E, &Config) -> Result<(), String>,
) -> anyhow::Result<Config> {
    let (mut config, mut said) = tandem_swconsole::startup(store, engine);
    if let Err(e) = restore(engine, &config) {
        tracing::warn!("startup-config is refused as a whole, and done line by line: {e}");
        restore(engine, &Config::default()).map_err(anyhow::Error::msg)?;
        (config, said) = tandem_swconsole::by_line(store, engine);
    }
    for line in &said {
        tracing::warn!("startup-config: {}", line.trim_start_matches("% "));
    }
    Ok(config)
}
