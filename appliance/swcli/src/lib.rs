// SPDX-License-Identifier: Apache-2.0
//! The doors of the appliance: programs with a terminal, a pipe or a connection at one end and a session at the other.
//! What a session may is the daemon's to say, which the kernel tells who is there: a door has no privileges to lose.
//!
//! ```text
//!   swcli    root, at a terminal or by a script ──► swcfgd.sock (0600)      privileged
//!   swcon    root, for agetty at a serial line ───► swcfgd.sock, `console`  line console 0
//!   swlogin  the shell of a user, behind sshd ────► INSTANCE.login (0666)   that user's level, or Username, Password
//!   swclid   telnet on loopback ──────────────────► INSTANCE.login, `vty`   Username, Password
//! ```

use std::io::{self, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tandem_swconsole::wire::{Answer, END, Hello};

pub mod telnet;

/// Said where the appliance closes what it has not ended.
pub const GONE: &str = "the appliance is gone, or has no room for another session";

/// Each command, and what it came to; false: one was refused.
///
/// # Errors
/// The appliance is gone; a command asks, and nobody has answered.
pub fn lines(
    mut stream: UnixStream,
    hello: &str,
    commands: impl Iterator<Item = io::Result<String>>,
    keep_going: bool,
) -> anyhow::Result<bool> {
    // who lets nobody in says so at once, and may be gone before it is spoken to: what it has said is there to be read
    let begun = stream.write_all(hello.as_bytes());
    let mut from = BufReader::new(stream.try_clone()?);
    let mut good = true;
    let mut asks: Option<String> = None;
    for command in commands {
        let command = command.context("standard input")?;
        if command.contains(['\n', '\r']) {
            anyhow::bail!("a command is one line: {command:?}");
        }
        let _ = writeln!(stream, "{command}");
        let answer = Answer::read(&mut from).context(GONE)?;
        if answer.failed {
            good = false;
            io::stderr().write_all(answer.text.as_bytes())?;
        } else {
            io::stdout().write_all(answer.text.as_bytes())?;
        }
        // what was said to a question is no command, and may be a secret
        asks = answer.asks.then(|| asks.take().unwrap_or(command));
        if answer.closed || answer.failed && !keep_going {
            break;
        }
    }
    begun.context(GONE)?;
    io::stdout().flush()?;
    if let Some(command) = asks {
        anyhow::bail!(
            "{command:?} asks, and nobody has answered: the next line is the answer, as -c \"\""
        );
    }
    Ok(good)
}

/// A terminal in raw mode, as it was before when this ends.
pub struct Raw(Termios);

impl Raw {
    /// From here on each key comes as it is, and none does anything to this process.
    ///
    /// # Errors
    /// Standard input is no terminal.
    pub fn begin() -> io::Result<Raw> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Drain, &raw)?;
        Ok(Raw(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.0);
    }
}

/// What is typed goes there, what comes is shown, until the appliance ends it.
///
/// # Errors
/// The appliance is gone.
pub fn typed(mut stream: UnixStream, hello: impl Fn(&Hello) -> String) -> anyhow::Result<()> {
    let (width, height) = tcgetwinsize(io::stdin()).map_or((0, 0), |s| (s.ws_col, s.ws_row));
    let hello = hello(&Hello::Terminal { width, height });
    // as above: what was said instead is shown
    let _ = stream.write_all(hello.as_bytes());
    let end = stream.try_clone()?;
    let stopped = Arc::new(AtomicBool::new(false));
    let stops = Arc::clone(&stopped);
    // SIGTERM, SIGHUP: the stream ends, so that the terminal is as it was before; from before it is another one
    let _stop = tandem_mgmt::signals::on_end(move || {
        stops.store(true, Ordering::Release);
        let _ = end.shutdown(std::net::Shutdown::Both);
    })?;
    let _raw = Raw::begin().context("the terminal")?;
    let mut to = stream.try_clone()?;
    std::thread::Builder::new()
        .name("typed".into())
        .spawn(move || {
            let mut bytes = [0; 1024];
            while let Ok(n @ 1..) = io::stdin().read(&mut bytes) {
                if to.write_all(bytes.get(..n).unwrap_or_default()).is_err() {
                    return;
                }
            }
            let _ = to.shutdown(std::net::Shutdown::Write);
        })?;
    let mut shown = [0; 4096];
    let mut over = false;
    loop {
        match stream.read(&mut shown) {
            Ok(0) | Err(_) if over || stopped.load(Ordering::Acquire) => return Ok(()),
            Ok(0) | Err(_) => break,
            Ok(n) => {
                let text = shown.get(..n).unwrap_or_default();
                let text = text
                    .strip_suffix(&[END])
                    .inspect(|_| over = true)
                    .unwrap_or(text);
                let mut out = io::stdout().lock();
                out.write_all(text)?;
                out.flush()?;
            }
        }
    }
    // behind the prompt that is still there, in a terminal that is still raw
    io::stdout().write_all(b"\r\n")?;
    anyhow::bail!(GONE)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn said(commands: &[&str], refusal: &str) -> String {
        let (stream, mut daemon) = UnixStream::pair().unwrap();
        daemon.write_all(refusal.as_bytes()).unwrap();
        drop(daemon);
        let commands = commands.iter().map(|c| Ok((*c).to_string()));
        let done = lines(stream, "hello\n", commands, true);
        format!("{:#}", done.unwrap_err())
    }

    #[test]
    fn who_refuses_and_is_gone_is_heard() {
        let refusal = "% Log in at a terminal first\n";
        let heard = said(&["show vlan"], refusal);
        assert!(heard.contains(refusal.trim_end()), "{heard}");
        assert!(said(&["show vlan"], "").starts_with(GONE));
        assert!(said(&[], "").starts_with(GONE));
    }
}
