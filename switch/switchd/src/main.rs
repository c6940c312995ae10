//! switchd, the switch daemon for kernels without the module.

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;
use tandem_switchd::args::{Args, Settings};
use tandem_switchd::daemon;

fn main() -> ExitCode {
    let args = Args::parse();
    let say = |e: anyhow::Error| writeln!(std::io::stderr(), "switchd: {e:#}");
    // options and a file that are understood, and make no sense: 2, as clap ends with
    let settings = match settings(&args) {
        Ok(settings) => settings,
        Err(e) => {
            let _ = say(e);
            return ExitCode::from(2);
        }
    };
    match daemon::run(args.name.as_deref(), &settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = say(e);
            ExitCode::FAILURE
        }
    }
}

fn settings(args: &Args) -> anyhow::Result<Settings> {
    let settings = args.settings()?;
    tandem_mgmt::log::start(&settings.log, true).map_err(anyhow::Error::msg)?;
    Ok(settings)
}
