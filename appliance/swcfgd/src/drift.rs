// SPDX-License-Identifier: Apache-2.0
//! What others change by `ip` and `bridge` while engine `kernel` runs: a line in the log when it happens.
//!
//! ```text
//!   kernel's notifications ─ of what a configuration may be about ─► quiet for a second ─► `show platform drift` ─► what is new
//! ```
//!
//! A notification is a reason to look, and nothing more: what this process does itself is told as well, and is no drift.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tandem_linux::netlink::consts::{NTF_EXT_LEARNED, NUD_NOARP};
use tandem_linux::netlink::{Event, Monitor, Object, decode};
use tandem_swconfig::Platform;
use tandem_swconsole::Switch;

/// Kernel memory for what is not read yet; more than that is a reason to look as well.
const BUFFER: usize = 256 << 10;
/// Several changes that belong together are one look.
const QUIET: Duration = Duration::from_secs(1);
/// Where it is never quiet one looks so often.
const LATEST: Duration = Duration::from_secs(10);
/// How long one waits for the daemon's end.
const WAIT: Duration = Duration::from_secs(1);
/// Rows that are said one by one.
const SAID: usize = 64;

/// Whether this may be about something that a configuration says.
fn counts(event: &Event) -> bool {
    let (Event::New(object, _) | Event::Del(object)) = event else {
        // messages were lost
        return true;
    };
    match object {
        Object::Link(_)
        | Object::BridgePort { .. }
        | Object::Addr(_)
        | Object::BridgeVlans(_)
        | Object::Netconf(_) => true,
        Object::Route(r) => r.protocol == tandem_swstack::PROTOCOL,
        Object::Fdb(e) => e.state & NUD_NOARP != 0 && e.flags & NTF_EXT_LEARNED == 0,
        _ => false,
    }
}

/// What is said of rows that are others than before.
fn lines(was: &BTreeSet<String>, now: &BTreeSet<String>) -> Vec<String> {
    let new = now
        .difference(was)
        .map(|r| format!("changed by others: {r}"));
    let gone = was.difference(now).map(|r| format!("no more: {r}"));
    let mut all: Vec<String> = new.chain(gone).collect();
    if let Some(more) = all.len().checked_sub(SAID).filter(|n| *n > 0) {
        all.truncate(SAID);
        all.push(format!("and {more} more: show platform drift"));
    }
    all
}

/// Rows of drift, each as a line.
fn rows(switch: &Arc<Mutex<Switch>>) -> Result<BTreeSet<String>, String> {
    // sessions do not wait while the kernel is asked
    let engine = Arc::clone(&tandem_swconsole::lock(switch).engine);
    let rows = engine.platform(&Platform::Drift)?;
    Ok(rows.iter().skip(1).map(|row| row.join(", ")).collect())
}

/// A thread that looks. What is so already is said at once.
///
/// # Errors
/// There is none to be had, or no socket.
pub fn watch(switch: Arc<Mutex<Switch>>, stop: Arc<AtomicBool>) -> anyhow::Result<()> {
    let mut monitor = Monitor::open(BUFFER).context("netlink")?;
    std::thread::Builder::new()
        .name("drift".into())
        .spawn(move || {
            let mut known = BTreeSet::new();
            let mut since = Some(Instant::now());
            let mut last = Instant::now()
                .checked_sub(QUIET)
                .unwrap_or_else(Instant::now);
            while !stop.load(Relaxed) {
                let due = since.is_some_and(|s| last.elapsed() >= QUIET || s.elapsed() >= LATEST);
                if due {
                    since = None;
                    match rows(&switch) {
                        Ok(now) => {
                            for line in lines(&known, &now) {
                                tracing::warn!("{line}");
                            }
                            known = now;
                        }
                        Err(e) => tracing::warn!("drift: {e}"),
                    }
                }
                if heard(&mut monitor) {
                    last = Instant::now();
                    since = since.or(Some(last));
                }
            }
        })?;
    Ok(())
}

/// Waits a second at most, and says whether something has come that counts.
fn heard(monitor: &mut Monitor) -> bool {
    let ready = {
        let mut fds: Vec<PollFd<'_>> = monitor
            .fds()
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let wait = Timespec::try_from(WAIT).ok();
        poll(&mut fds, wait.as_ref()).is_ok_and(|n| n > 0)
    };
    if !ready {
        return false;
    }
    let mut any = false;
    let got = monitor.recv(|protocol, datagram| {
        decode(protocol, datagram, |event| any |= counts(&event));
    });
    match got {
        Ok((_, lost)) => any || lost,
        Err(e) => {
            tracing::warn!("drift: {e}");
            std::thread::sleep(WAIT);
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_said_and_not_without_end() {
        let set = |all: &[&str]| all.iter().map(|s| (*s).to_owned()).collect::<BTreeSet<_>>();
        let (was, now) = (set(&["swp1, up, down"]), set(&["swp1, up, down", "x"]));
        assert_eq!(lines(&was, &now), ["changed by others: x"]);
        assert_eq!(lines(&now, &was), ["no more: x"]);
        assert!(lines(&was, &was).is_empty());
        let many: BTreeSet<String> = (0..100).map(|n| n.to_string()).collect();
        let said = lines(&BTreeSet::new(), &many);
        assert_eq!(said.len(), SAID + 1);
        assert!(said[SAID].starts_with("and 36 more"));
    }

    #[test]
    fn lost_messages_count_and_neighbours_do_not() {
        let fdb = |state, flags| {
            let e = tandem_linux::netlink::FdbEntry {
                ifindex: 3,
                master: 2,
                mac: [2, 0, 0, 0, 0, 1],
                vlan: 2,
                state,
                flags,
                ext_flags: 0,
            };
            counts(&Event::Del(Object::Fdb(e)))
        };
        assert!(fdb(NUD_NOARP, 0) && !fdb(2, 0) && !fdb(NUD_NOARP, NTF_EXT_LEARNED));
    }
}
