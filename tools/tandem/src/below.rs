// SPDX-License-Identifier: Apache-2.0
//! The asicd that `tandem openflow up` starts below ofagentd, and that is ended with it.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use serde_json::Value;
use tandem_mgmt::{Daemon, Instance};

use crate::config::replace;
use crate::lifecycle::{end_daemon, serving, start, wait_ready};
use crate::query::status_of;
use crate::table::cell;

/// How asicd calls `--deadline`.
pub const FLOW_DEADLINE: &str = "--flow-deadline";
/// Seconds, where nothing was said of it.
const DEADLINE_S: &str = "300";

/// The asicd that `openflow up` started: its number and what it was started with, one word a line.
fn chip_file(instance: &Instance) -> PathBuf {
    instance.dir().join("ofagentd.asicd")
}

/// The asicd that runs, if it is ofagentd's, and what it was started with.
pub fn own_asicd(instance: &Instance) -> Result<Option<(u32, Vec<String>)>> {
    let Ok(text) = fs::read_to_string(chip_file(instance)) else {
        return Ok(None);
    };
    let mut lines = text.lines();
    let started = lines.next().and_then(|l| l.parse().ok());
    let words = lines.map(ToOwned::to_owned).collect();
    let runs = instance.running(Daemon::Asicd)?;
    Ok(runs.filter(|_| runs == started).map(|pid| (pid, words)))
}

pub fn end_asicd(instance: &Instance, pid: u32) -> Result<String> {
    let said = end_daemon(instance, Daemon::Asicd, pid)?;
    fs::remove_file(chip_file(instance))?;
    Ok(said)
}

/// One that was started otherwise, or by an earlier version, may have no deadline where a new one would.
fn runs_already(pid: u32, words: &[String], status: &Value) -> String {
    let asked = words.iter().any(|w| w == FLOW_DEADLINE);
    let never = status.is_object() && status["deadline"].is_null();
    let more = match never && !asked {
        true => {
            format!(", without a deadline: a new one has {DEADLINE_S} s (openflow down, then up)")
        }
        false => String::new(),
    };
    format!("asicd runs already (pid {pid}){more}")
}

/// asicd as it is to be, before ofagentd.
///
/// What is said of it, and its number if it did not run before.
pub fn up_asicd(
    instance: &Instance,
    words: &[String],
    end: Instant,
) -> Result<(String, Option<u32>)> {
    let name = instance.name();
    if let Some(pid) = serving(instance, Daemon::Asicd, end)? {
        match own_asicd(instance)? {
            None => bail!(
                "asicd of instance {name} runs (pid {pid}), and is not ofagentd's: tandem --name {name} down first"
            ),
            Some((_, with)) if with != words => bail!(
                "asicd of instance {name} runs with other options: tandem --name {name} openflow down first"
            ),
            Some(_) => {
                // one that does not say it is no reason not to go on
                let status = status_of(instance, Daemon::Asicd).unwrap_or_default();
                return Ok((runs_already(pid, words, &status), None));
            }
        }
    }
    let mut all = vec!["--name".to_owned(), instance.name().to_owned()];
    all.extend(words.iter().cloned());
    // what nobody asked for is no reason to refuse one that runs without
    if !words.iter().any(|w| w == FLOW_DEADLINE) {
        all.extend([FLOW_DEADLINE.to_owned(), DEADLINE_S.to_owned()]);
    }
    let (mut child, from) = start(instance, &all, Daemon::Asicd, Daemon::Asicd.name())?;
    // who asks for it to end has to know that it is ours
    let lines = [child.id().to_string()].into_iter().chain(words.to_vec());
    let text: String = lines.map(|l| l + "\n").collect();
    replace(&chip_file(instance), text.as_bytes())?;
    let status = wait_ready(instance, Daemon::Asicd, &mut child, from, end)?;
    let ports = cell(&status["ports"]);
    let said = format!("asicd started (pid {}): {ports} ports", child.id());
    Ok((said, Some(child.id())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::instance;
    use serde_json::json;

    #[test]
    fn one_that_runs_without_a_deadline_says_so() {
        let without = json!({ "deadline": null });
        let never = [FLOW_DEADLINE.to_owned(), "never".to_owned()];
        let said = |words: &[String], status| runs_already(7, words, status);
        assert!(said(&[], &without).contains("without a deadline: a new one has 300 s"));
        assert_eq!(said(&never, &without), "asicd runs already (pid 7)");
        let with = json!({"deadline": {"after_s": 300.0}});
        assert_eq!(said(&[], &with), "asicd runs already (pid 7)");
    }

    #[test]
    fn an_asicd_that_others_started_is_not_ours() {
        let (dir, i) = instance("chips");
        // the one that runs is this process
        let _claim = i.claim(Daemon::Asicd).unwrap();
        assert_eq!(own_asicd(&i).unwrap(), None);
        let of = |pid: u32| format!("{pid}\n--profile\ntiny\n");
        fs::write(chip_file(&i), of(std::process::id() + 1)).unwrap();
        assert_eq!(own_asicd(&i).unwrap(), None, "one that ran before");
        fs::write(chip_file(&i), of(std::process::id())).unwrap();
        let own = (
            std::process::id(),
            ["--profile", "tiny"].map(str::to_owned).to_vec(),
        );
        assert_eq!(own_asicd(&i).unwrap(), Some(own));
        fs::remove_dir_all(dir).unwrap();
    }
}
