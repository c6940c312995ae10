//! tandem, the operator's command: a client of the management API, and what starts and stops the daemons.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod args;
mod batch;
mod below;
mod config;
mod driver;
mod flows;
mod frame;
mod lifecycle;
mod openflow;
mod out;
mod query;
mod show;
mod table;
mod trace;

use anyhow::Result;
use args::{Cli, Command};
use clap::Parser;
use std::process::ExitCode;
use tandem_mgmt::Instance;

/// What a command found out; becomes the exit code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It is so: 0
    Yes,
    /// It is not so: 1
    No,
}

/// The command line was understood by clap, but makes no sense: exit code 2.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

fn dispatch(cli: &Cli) -> Result<Answer> {
    let instance = Instance::resolve(cli.name.as_deref()).map_err(|e| Usage(e.to_string()))?;
    let out = out::Out {
        json: cli.json || cli.pretty,
        pretty: cli.pretty,
    };
    match &cli.command {
        Command::Up(up) => lifecycle::up(&instance, up, out),
        Command::Down => lifecycle::down(&instance, out),
        Command::Status => query::status(&instance, out),
        Command::Show(s) => show::show(&instance, s, out),
        Command::Explain { kind, key } => query::explain(&instance, *kind, key, out),
        Command::Trace(t) => trace::trace(&instance, t, out),
        Command::Capture(c) => trace::capture(&instance, c),
        Command::Sync { timeout } => query::sync(&instance, *timeout, out),
        Command::Audit { wait } => query::audit(&instance, *wait, out),
        Command::Batch(b) => batch::batch(b, out),
        Command::Port { port } => query::port(&instance, port, out),
        Command::Fault { fault } => query::fault(&instance, fault, out),
        Command::Openflow { openflow } => openflow::openflow(&instance, openflow, out),
    }
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            let _ = e.print();
            return ExitCode::from(if e.use_stderr() { 2 } else { 0 });
        }
    };
    match dispatch(&cli) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(e) => {
            // one line, whatever came from below; a reader that went away (| head) is no error
            if out::is_broken_pipe(&e) {
                return ExitCode::SUCCESS;
            }
            eprintln!("tandem: {}", format!("{e:#}").replace('\n', " "));
            ExitCode::from(if e.is::<Usage>() { 2 } else { 1 })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_may_stand_after_the_command() {
        let c = Cli::try_parse_from(["tandem", "show", "ports", "-j", "--name", "x"]).unwrap();
        assert!(c.json);
        assert_eq!(c.name.as_deref(), Some("x"));
        assert!(Cli::try_parse_from(["tandem", "show", "nothing"]).is_err());
        assert!(Cli::try_parse_from(["tandem", "trace", "swp1"]).is_err());
        // asicd takes 0 for no end
        assert!(Cli::try_parse_from(["tandem", "capture", "swp1", "-c", "0"]).is_err());
        assert!(Cli::try_parse_from(["tandem", "capture", "swp1", "-c", "1"]).is_ok());
        assert!(
            Cli::try_parse_from(["tandem", "trace", "swp1", "--icmp", "10.0.0.1", "10.0.0.2"])
                .is_ok()
        );
        assert!(Cli::try_parse_from(["tandem", "trace", "swp1", "00"]).is_ok());
    }
}
