// SPDX-License-Identifier: Apache-2.0
//! ofagentd, an OpenFlow switch on this machine's interfaces.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod api;
mod args;
mod asic;
mod daemon;
mod explain;
mod keeper;
mod kept;
mod links;
mod lsi;
mod poller;
mod rows;
mod slots;
mod stream;
mod switch;
mod target;
mod text;
mod tls;
mod trace;

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
    tandem_mgmt::log::start(&args.log, true).map_err(anyhow::Error::msg)?;
    daemon::run(args)
}
