// SPDX-License-Identifier: Apache-2.0
//! swcfgd, the daemon of the appliance.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;
use tandem_swcfgd::args::{Args, Which};
use tandem_swcfgd::{daemon, kernel, log, names};

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(names::WORD) {
        return match names::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let args = Args::parse();
    let say = |e: anyhow::Error| writeln!(std::io::stderr(), "swcfgd: {e:#}");
    let logs = Arc::default();
    let also = Some(log::of_daemon(&logs));
    if let Err(e) = tandem_mgmt::log::start_also(&args.log, true, also) {
        let _ = say(anyhow::Error::msg(e));
        return ExitCode::from(2);
    }
    if args.which {
        let (which, why) = Which::usual();
        let said = writeln!(std::io::stdout(), "{}\n{why}", which.word());
        return said.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let engine = args.engine.unwrap_or_else(|| {
        let (which, why) = Which::usual();
        tracing::info!("engine {}: {why}", which.word());
        which
    });
    let done = match engine {
        Which::Chip => daemon::run(&args, logs),
        Which::Kernel => kernel::run(&args, logs),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = say(e);
            ExitCode::FAILURE
        }
    }
}
