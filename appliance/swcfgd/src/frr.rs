// SPDX-License-Identifier: Apache-2.0
//! FRR beside the daemon: who may speak to it, and who looks whether it is there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tandem_swfrr::Frr;

/// Where they are.
const ALL: &str = "/run/frr";
/// Whose the sockets of FRR's daemons are.
const GROUP: &str = "frrvty";
/// How often one looks whether a daemon has come, or has come back.
const EVERY: Duration = Duration::from_millis(500);

/// Where FRR is that has this network namespace: the machine's own one is in the namespace of its first process, and is not
/// to be told what a switch in another one routes.
#[must_use]
pub fn folder(said: Option<&Path>, name: &str) -> PathBuf {
    let of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
    // whoever has fewer capabilities than the first process, as a unit of systemd, may not look at its namespaces
    let same = of("self").zip(of("1")).map(|(here, first)| here == first);
    said.map_or_else(|| usual(same, name), Path::to_owned)
}

/// Where nothing is known of the first process, FRR is the machine's own, unless there is one for this instance.
fn usual(machines_own: Option<bool>, name: &str) -> PathBuf {
    let all = Path::new(ALL);
    let its = all.join(name);
    match machines_own.unwrap_or_else(|| !its.is_dir()) {
        true => all.to_owned(),
        false => its,
    }
}

/// Joins the group that may speak to FRR, as long as that may be done: root without capabilities may not by itself. Of this
/// thread, and of those that it starts.
pub fn join() {
    let Some(gid) = group(
        &std::fs::read_to_string("/etc/group").unwrap_or_default(),
        GROUP,
    ) else {
        return;
    };
    let mut all = rustix::process::getgroups().unwrap_or_default();
    let gid = rustix::fs::Gid::from_raw(gid);
    if all.contains(&gid) {
        return;
    }
    all.push(gid);
    if let Err(e) = rustix::thread::set_thread_groups(&all) {
        tracing::warn!("{GROUP}: {e}: routing protocols may not be reached");
    }
}

/// A group's number, as /etc/group has it.
fn group(text: &str, name: &str) -> Option<u32> {
    let of = |line: &str| {
        let mut fields = line.split(':');
        let found = fields.next() == Some(name);
        found.then(|| fields.nth(1)?.parse().ok()).flatten()
    };
    text.lines().find_map(of)
}

/// A thread that looks, and says all again to who has come back; it waits for FRR, and nobody for it but a line that is
/// typed for FRR meanwhile.
///
/// # Errors
/// There is no thread to be had.
pub fn look_after(frr: Frr, stop: Arc<AtomicBool>) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name("frr".into());
    thread.spawn(move || {
        while !stop.load(Relaxed) {
            frr.tick();
            std::thread::sleep(EVERY);
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn another_namespace_has_another_frr() {
        let said = super::Path::new("/x");
        assert_eq!(super::folder(Some(said), "sw"), said);
        let usual = |same| super::usual(same, "no-such-switch");
        assert_eq!(usual(Some(true)), super::Path::new("/run/frr"));
        let its = super::Path::new("/run/frr/no-such-switch");
        assert_eq!(usual(Some(false)), its);
        // as by systemd: nothing says that it has one of its own
        assert_eq!(usual(None), super::Path::new("/run/frr"));
    }

    #[test]
    fn a_group_by_its_name() {
        let text = "root:x:0:\nfrrvty2:x:7:\nfrrvty:x:105:frr\n";
        assert_eq!(super::group(text, "frrvty"), Some(105));
        assert_eq!(super::group(text, "frr"), None);
        assert_eq!(super::group("frrvty:x\n", "frrvty"), None);
    }
}
