// SPDX-License-Identifier: Apache-2.0
//! What Unix users are called. The daemon has locked itself out of /etc, where root's secrets are, so a process of its own
//! looks there: it is nobody's, reads what all may read, and knows nothing but numbers. It becomes nobody's by itself, once
//! it runs: the kernel then lets no other process of nobody's look into it or change what it says (ptrace(2), `dumpable`).
//!
//! ```text
//!   swcfgd ── 1001\n ──► swcfgd names (nobody) ── /etc/passwd
//!         ◄── bob\n ──
//! ```

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use tandem_linux::sandbox::Sandbox;

/// The first argument of the process that looks.
pub const WORD: &str = "names";
/// Nobody, and its group.
const NOBODY: u32 = 65_534;
const PASSWD: &str = "/etc/passwd";
/// It has so long to answer: another process of nobody's may have stopped it.
const ANSWER: Duration = Duration::from_secs(5);
/// Octets of an answer.
const NAME_MOST: u64 = 256;

/// Asks that process. It ends with this end of its socket.
#[derive(Debug)]
pub struct Names(Mutex<Option<Asked>>);

#[derive(Debug)]
struct Asked {
    stream: BufReader<UnixStream>,
}

impl Names {
    /// Starts it: before the daemon locks itself in. Without it nobody has a name, and all are asked.
    #[must_use]
    pub fn start() -> Names {
        Names(Mutex::new(
            begin().inspect_err(|e| tracing::warn!("names: {e}")).ok(),
        ))
    }

    /// What a user is called; `None`: it has no name, or more than one has that number.
    #[must_use]
    pub fn of(&self, uid: u32) -> Option<String> {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = asked.as_mut()?.ask(uid);
        if let Err(e) = &answer {
            tracing::warn!("names: {e}: who comes in from here on is asked for a name");
            *asked = None;
        }
        answer.ok().filter(|name| !name.is_empty())
    }
}

fn begin() -> io::Result<Asked> {
    let (mine, its) = UnixStream::pair()?;
    mine.set_read_timeout(Some(ANSWER))?;
    mine.set_write_timeout(Some(ANSWER))?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(WORD).env_clear().current_dir("/");
    command.stdin(OwnedFd::from(its.try_clone()?));
    command.stdout(OwnedFd::from(its));
    command.spawn()?;
    Ok(Asked {
        stream: BufReader::new(mine),
    })
}

impl Asked {
    fn ask(&mut self, uid: u32) -> io::Result<String> {
        writeln!(self.stream.get_mut(), "{uid}")?;
        let mut name = String::new();
        (&mut self.stream).take(NAME_MOST).read_line(&mut name)?;
        match name.strip_suffix('\n') {
            Some(name) => Ok(name.into()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// That process, until nobody asks any more.
///
/// # Errors
/// Of its socket; it can't become nobody's.
pub fn run() -> anyhow::Result<()> {
    let _ = rustix::thread::set_name(c"swcfgd names");
    become_nobodys().context("becoming nobody's")?;
    let sandbox = Sandbox {
        read: vec!["/etc".into()],
        ..Sandbox::default()
    };
    sandbox.lock_in(true)?;
    let mut to = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let passwd = std::fs::read_to_string(PASSWD).unwrap_or_default();
        let name = line?.parse().ok().and_then(|uid| name(&passwd, uid));
        writeln!(to, "{}", name.unwrap_or_default())?;
        to.flush()?;
    }
    Ok(())
}

/// While it runs, and not before: by that the kernel forbids others of nobody's to look into it. It has one thread.
fn become_nobodys() -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        set_thread_groups(&[])?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
    }
    Ok(())
}

/// The name that has this number, if it is the only one.
fn name(passwd: &str, uid: u32) -> Option<String> {
    let mut found = passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, _, number) = (fields.next()?, fields.next()?, fields.next()?);
        (number.parse() == Ok(uid)).then_some(name)
    });
    found
        .next()
        .filter(|_| found.next().is_none())
        .map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that says this when it is asked, or nothing.
    fn says(answer: &'static str) -> (Asked, UnixStream) {
        let (mine, mut its) = UnixStream::pair().unwrap();
        mine.set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
        its.write_all(answer.as_bytes()).unwrap();
        (
            Asked {
                stream: BufReader::new(mine),
            },
            its,
        )
    }

    #[test]
    fn who_does_not_answer_is_asked_no_more() {
        for (answer, ends, right) in [
            ("bob\n", false, Some("bob")),
            ("\n", false, None),
            ("", false, None),
            ("bob", false, None),
            ("bob", true, None),
        ] {
            let (asked, its) = says(answer);
            if ends {
                its.shutdown(std::net::Shutdown::Write).unwrap();
            }
            let names = Names(Mutex::new(Some(asked)));
            assert_eq!(names.of(1001).as_deref(), right, "{answer:?}");
            // an answer that comes late is not the next one's
            let asks_on = names.0.lock().unwrap().is_some();
            assert_eq!(asks_on, answer.ends_with('\n'), "{answer:?}");
        }
    }

    #[test]
    fn a_number_has_one_name() {
        let passwd = "root:x:0:0::/:/bin/sh\nbob:x:1001:1::/:/x\nal:x:1002:1::/:/x\nodd\ntwin:x:1002:1::/:/x\n";
        assert_eq!(name(passwd, 0).as_deref(), Some("root"));
        assert_eq!(name(passwd, 1001).as_deref(), Some("bob"));
        assert_eq!(name(passwd, 1002), None, "which of the two is it?");
        assert_eq!(name(passwd, 7), None);
    }
}
