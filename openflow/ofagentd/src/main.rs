// SPDX-License-Identifier: Apache-2.0
//! ofagentd, an OpenFlow switch on this machine's interfaces.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod api;
mod args;
mod daemon;
mod keeper;
mod links;
mod poller;
mod slots;
mod stream;
mod switch;
mod target;
mod text;
mod tls;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = args::Args::parse();
    match start(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "ofagentd: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(args: &args::Args) -> anyhow::Result<()> {
    tandem_mgmt::log::check(&args.log).map_err(anyhow::Error::msg)?;
    let filter = tracing_subscriber::EnvFilter::try_new(&args.log)
        .map_err(|e| anyhow::anyhow!("log {}: {e}", args.log))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        // a full disk loses log lines, and nothing else: told of on the same descriptor, that would be a panic
        .log_internal_errors(false)
        .init();
    daemon::run(args)
}
