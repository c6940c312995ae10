// SPDX-License-Identifier: Apache-2.0
//! ofagentd, an OpenFlow switch on this machine's interfaces.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod api;
mod args;
mod asic;
mod attempt;
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
    tandem_linux::heap::give_back_large_blocks();
    let args = args::Args::parse();
    let say = |why: String| writeln!(std::io::stderr(), "ofagentd: {why}");
    // options that clap understood, and that make no sense: 2, as it ends with
    let checked = args.check().and_then(|()| lsi::switches(&args));
    let switches = match checked.and_then(|s| tandem_mgmt::log::start(&args.log, true).map(|()| s))
    {
        Ok(switches) => switches,
        Err(why) => {
            let _ = say(why);
            return ExitCode::from(2);
        }
    };
    match daemon::run(&args, &switches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = say(format!("{e:#}"));
            ExitCode::FAILURE
        }
    }
}
