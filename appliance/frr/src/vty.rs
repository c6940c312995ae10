// SPDX-License-Identifier: Apache-2.0
//! One of FRR's daemons, spoken to as vtysh does: `FOLDER/ospfd.vty` takes commands that end in an octet 0, and answers
//! each with its text, three octets 0 and a code. vtysh itself is not run: the daemon here runs no programs.
//!
//! ```text
//!   router ospf\0 ──►          a deadline for all of it: who is late is hung up on
//!             ◄── text \0\0\0 code      0: done; all else: refused, and the text says why
//! ```

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use tandem_swsecret::redacted;

/// A command has so long to be answered.
pub const ANSWER: Duration = Duration::from_secs(5);
/// What makes a router's new name be its name, where FRR says that this has to be said.
const ANEW: &str = "clear ip ospf process";
/// Octets that one command may answer.
const MOST: usize = 64 << 20;

/// A daemon that is listened to.
pub struct Vty {
    stream: UnixStream,
    /// In which mode it is; `None`: not known.
    at: Option<Vec<String>>,
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It was refused, in these words.
    Refused(String),
    /// It is not known what became of it: the daemon is gone, or late.
    Lost(String),
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Failure {
        Failure::Lost(match e.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                format!("no answer within {} s", ANSWER.as_secs())
            }
            _ => e.to_string(),
        })
    }
}

impl Vty {
    /// To the daemon behind a socket. It is not waited for.
    ///
    /// # Errors
    /// It is not there, or takes nobody.
    pub fn open(path: &Path) -> Result<Vty, Failure> {
        let socket = socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )
        .map_err(io::Error::from)?;
        let to = SocketAddrUnix::new(path).map_err(io::Error::from)?;
        connect(&socket, &to).map_err(io::Error::from)?;
        let mut vty = Vty {
            stream: UnixStream::from(socket),
            at: None,
        };
        vty.stream.set_nonblocking(false)?;
        vty.command("enable")?;
        Ok(vty)
    }

    /// Says a command in the mode in which it is, and waits for its answer: the text.
    ///
    /// # Errors
    /// As it came.
    pub fn command(&mut self, line: &str) -> Result<String, Failure> {
        let (code, text) = self.exchange(line)?;
        match code {
            0 => Ok(text),
            _ => Err(Failure::Refused(words(&text, line))),
        }
    }

    fn exchange(&mut self, line: &str) -> Result<(u8, String), Failure> {
        let end = Instant::now() + ANSWER;
        let left = || {
            let left = end.saturating_duration_since(Instant::now());
            // none at all would be: without an end
            left.max(Duration::from_millis(1))
        };
        self.stream.set_write_timeout(Some(left()))?;
        // an octet 0 inside would be the end of a command, and another one behind it
        let mut said: Vec<u8> = line.bytes().filter(|b| *b >= b' ').collect();
        said.push(0);
        self.stream.write_all(&said)?;
        let mut heard = Vec::new();
        let mut some = [0; 4096];
        loop {
            if let Some((rest, [0, 0, 0, code])) = heard.split_last_chunk::<4>() {
                let text = String::from_utf8_lossy(rest).replace('\0', "");
                return Ok((*code, text));
            }
            if Instant::now() >= end || heard.len() > MOST {
                return Err(io::Error::from(io::ErrorKind::TimedOut).into());
            }
            self.stream.set_read_timeout(Some(left()))?;
            match self.stream.read(&mut some)? {
                0 => return Err(Failure::Lost("it has ended".into())),
                n => heard.extend(some.get(..n).unwrap_or_default()),
            }
        }
    }

    /// Says a line of configuration below others: `router ospf`, or nothing.
    ///
    /// # Errors
    /// As it came.
    pub fn configure(&mut self, below: &[String], line: &str) -> Result<(), Failure> {
        if self.at.as_deref() != Some(below) {
            self.at = None;
            for step in ["end", "configure terminal"] {
                self.command(step)?;
            }
            for step in below {
                self.command(step)?;
            }
            self.at = Some(below.to_vec());
        }
        // one that goes to another mode
        if below.is_empty() {
            self.at = None;
        }
        // it is set, and not so yet: neighbours hear of it at once, as of all that is set
        if self.command(line)?.contains(ANEW) {
            self.at = None;
            self.command("end")?;
            self.command(ANEW)?;
        }
        Ok(())
    }

    /// What it is set to, as it writes it.
    ///
    /// # Errors
    /// As it came.
    pub fn running(&mut self) -> Result<String, Failure> {
        self.at = None;
        self.command("end")?;
        self.command("show running-config")
    }

    /// Is it there no more? What it says unasked is nothing that is known of.
    pub fn is_gone(&mut self) -> bool {
        if self.stream.set_nonblocking(true).is_err() {
            return true;
        }
        let alive = matches!(self.stream.read(&mut [0]),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock);
        !alive || self.stream.set_nonblocking(false).is_err()
    }
}

/// Why something was refused, in one line, which logs may have: a neighbour's password is not in it.
pub(crate) fn words(text: &str, line: &str) -> String {
    let first = text.lines().map(str::trim).find(|l| !l.is_empty());
    let first = first
        .unwrap_or("it is refused")
        .trim_start_matches(['%', ' ']);
    match first.contains(line) {
        true => redacted(first),
        false => format!("{}: {}", redacted(line), redacted(first)),
    }
}
