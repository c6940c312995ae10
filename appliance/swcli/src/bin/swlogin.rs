// SPDX-License-Identifier: Apache-2.0
//! swlogin: the shell of a user of the appliance, for sshd: a session and nothing else. It has no privileges, and what it
//! says of itself is believed by nobody: the daemon asks the kernel who is there.
//!
//! ```text
//!   -swlogin               a terminal: a session.  A pipe: a command a line
//!   swlogin -c COMMANDS    what `ssh switch COMMANDS` asks for: of the console, whatever they are called
//!   swlogin --ask          is asked for a name, whoever it is
//!   swlogin --check        for PAM (pam_exec, expose_authtok): is the secret on standard input that of $PAM_USER?
//! ```

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, bail};
use tandem_mgmt::instance::Instance;
use tandem_swcli::{lines, typed};
use tandem_swconsole::wire::{Hello, asking, login_socket};
use tandem_swconsole::{Kind, WRONG_AFTER};

/// Octets of a secret.
const SECRET_MOST: u64 = 1024;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|a| a.to_string_lossy().into_owned())
        .collect();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            let _ = writeln!(io::stderr(), "swlogin: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> anyhow::Result<bool> {
    let instance = Instance::resolve(None)?;
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let (ask, commands) = match words.as_slice() {
        ["--check"] => {
            let begun = Instant::now();
            let right = check(&instance);
            if !matches!(right, Ok(true)) {
                // whether there is such a user, and whether the appliance was asked at all, does not show
                std::thread::sleep(WRONG_AFTER.saturating_sub(begun.elapsed()));
            }
            return right;
        }
        [] => (None, None),
        ["--ask"] => (Some(Kind::Vty), None),
        ["-c", commands] => (None, Some(*commands)),
        _ => bail!("it takes nothing but -c COMMANDS, --ask, --check"),
    };
    let path = login_socket(instance.dir());
    let stream = UnixStream::connect(&path)
        .with_context(|| format!("no appliance answers at {}", path.display()))?;
    // for those who look at who is there; a user can write here what it likes
    let from = std::env::var("SSH_CLIENT").unwrap_or_default();
    let from = from.split(' ').next().unwrap_or_default();
    let hello = |hello: &Hello| asking(hello, ask, from);
    match commands {
        Some(commands) => lines(
            stream,
            &hello(&Hello::Lines),
            commands.lines().map(|l| Ok(l.to_string())),
            true,
        ),
        None if io::stdin().is_terminal() => typed(stream, hello).map(|()| true),
        None => lines(
            stream,
            &hello(&Hello::Lines),
            io::stdin().lock().lines(),
            true,
        ),
    }
}

/// For who is root: is it that user's secret? The status says it.
fn check(instance: &Instance) -> anyhow::Result<bool> {
    let name = std::env::var("PAM_USER").context("PAM_USER")?;
    let mut secret = String::new();
    io::stdin().take(SECRET_MOST).read_to_string(&mut secret)?;
    let secret = secret.trim_end_matches(['\0', '\n', '\r']);
    if [name.as_str(), secret]
        .iter()
        .any(|t| t.contains(['\n', '\r', '\0']))
    {
        return Ok(false);
    }
    // a secret of the console is none of Unix: it opens nothing but a session
    let passwd = std::fs::read_to_string("/etc/passwd")?;
    if !has_this_shell(&passwd, &name) {
        return Ok(false);
    }
    let path = instance.dir().join("swcfgd.sock");
    let mut stream = UnixStream::connect(&path)
        .with_context(|| format!("no appliance answers at {}", path.display()))?;
    write!(stream, "tandem-session 1 check\n{name}\n{secret}\n")?;
    let mut answer = String::new();
    stream.take(16).read_to_string(&mut answer)?;
    Ok(answer == "yes\n")
}

/// Is the shell of this user, wherever it is named, a session and nothing else?
fn has_this_shell(passwd: &str, name: &str) -> bool {
    let of_user = |line: &&str| line.split(':').next() == Some(name);
    let is = |line: &str| {
        line.rsplit(':')
            .next()
            .is_some_and(|s| s.ends_with("/swlogin"))
    };
    let mut lines = passwd.lines().filter(of_user).peekable();
    lines.peek().is_some() && lines.all(is)
}

#[cfg(test)]
mod tests {
    #[test]
    fn who_has_another_shell_has_no_secret_here() {
        let passwd = "root:x:0:0::/:/bin/bash\nbob:x:1:1::/:/usr/bin/swlogin\nal:x:2:2::/:\n\
                      eve:x:3:3::/:/usr/bin/swlogin\neve:x:4:4::/:/bin/sh\njo:x:5:5::/:/bin/swlogin.sh\n";
        for (name, right) in [
            ("bob", true),
            ("root", false),
            ("al", false),
            ("eve", false),
            ("jo", false),
            ("x", false),
        ] {
            assert_eq!(super::has_this_shell(passwd, name), right, "{name}");
        }
    }
}
