//! switchd, the switch daemon for kernels without the module.

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;
use tandem_switchd::args::Args;
use tandem_switchd::daemon;

fn main() -> ExitCode {
    let args = Args::parse();
    match start(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "switchd: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(args: &Args) -> anyhow::Result<()> {
    let settings = args.settings()?;
    tandem_mgmt::log::start(&settings.log, true).map_err(anyhow::Error::msg)?;
    daemon::run(args.name.as_deref(), &settings)
}
