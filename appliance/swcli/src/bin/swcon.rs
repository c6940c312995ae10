// SPDX-License-Identifier: Apache-2.0
//! swcon: the console at a serial line, for agetty (`agetty -n -l /usr/bin/swcon …`). It ends with the session, and agetty
//! begins anew.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use tandem_mgmt::instance::Instance;
use tandem_swcli::{Raw, typed};
use tandem_swconsole::Kind;
use tandem_swconsole::wire::asking;

/// A session at the line of this terminal, as `line console 0` has it.
#[derive(Debug, Parser)]
#[command(name = "swcon", version)]
struct Args {
    /// Instance name; by default derived from the network namespace.
    #[arg(long)]
    name: Option<String>,
    /// Begins at once, without "Press RETURN to get started."
    #[arg(long)]
    at_once: bool,
    /// What agetty says beside it is of no use here.
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = writeln!(io::stderr(), "swcon: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    let instance = Instance::resolve(args.name.as_deref())?;
    if !args.at_once && !wait_for_return()? {
        return Ok(());
    }
    let path = instance.dir().join("swcfgd.sock");
    let stream = UnixStream::connect(&path)
        .with_context(|| format!("no appliance answers at {}", path.display()))?;
    let line = std::fs::read_link("/proc/self/fd/0").unwrap_or_default();
    let line = line.display().to_string();
    let from = line.strip_prefix("/dev/").unwrap_or(&line);
    typed(stream, |hello| asking(hello, Some(Kind::Console), from))
}

/// Nobody is at a line until a key says so. `false`: the line is gone.
fn wait_for_return() -> anyhow::Result<bool> {
    let _raw = Raw::begin().context("the terminal")?;
    let mut out = io::stdout().lock();
    out.write_all(b"\r\n\r\nPress RETURN to get started.\r\n\r\n")?;
    out.flush()?;
    let mut key = [0];
    while io::stdin().read(&mut key)? == 1 {
        if matches!(key, [b'\r' | b'\n']) {
            return Ok(true);
        }
    }
    Ok(false)
}
