// SPDX-License-Identifier: Apache-2.0
//! swcli: a session at the appliance, privileged, for root: the socket is root's alone.
//!
//! ```text
//!   a terminal ──► raw, byte by byte ──────┐
//!   -c COMMAND ──► a command, its answer ──┼──► /run/tandem/INSTANCE/swcfgd.sock
//!   a pipe ──────► a line, its answer ─────┘
//! ```

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use tandem_mgmt::instance::Instance;
use tandem_swcli::{lines, typed};
use tandem_swconsole::wire::Hello;

/// A session at the appliance, privileged. At a terminal it is interactive; from a pipe each line is a command.
#[derive(Debug, Parser)]
#[command(name = "swcli", version)]
struct Args {
    /// Instance name; by default derived from the network namespace.
    #[arg(long)]
    name: Option<String>,
    /// A command; may be given several times. The first one that is refused ends it, with status 1.
    #[arg(short, long = "command", value_name = "COMMAND")]
    command: Vec<String>,
    /// Goes on after a command that was refused; the status is 1 at the end.
    #[arg(short, long)]
    keep_going: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            let _ = writeln!(io::stderr(), "swcli: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<bool> {
    let instance = Instance::resolve(args.name.as_deref())?;
    let path = instance.dir().join("swcfgd.sock");
    let stream = UnixStream::connect(&path).with_context(|| {
        let path = path.display();
        format!("no appliance answers at {path} (is swcfgd running, and are you root?)")
    })?;
    if !args.command.is_empty() {
        return lines(
            stream,
            &Hello::Lines.line(),
            args.command.iter().cloned().map(Ok),
            args.keep_going,
        );
    }
    if io::stdin().is_terminal() {
        return typed(stream, Hello::line).map(|()| true);
    }
    lines(
        stream,
        &Hello::Lines.line(),
        io::stdin().lock().lines(),
        args.keep_going,
    )
}
