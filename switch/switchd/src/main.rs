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
    tandem_mgmt::log::check(&settings.log).map_err(anyhow::Error::msg)?;
    let filter = tracing_subscriber::EnvFilter::try_new(&settings.log)
        .map_err(|e| anyhow::anyhow!("log {}: {e}", settings.log))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        // a full disk loses log lines, and nothing else: told of on the same descriptor, that would be a panic
        .log_internal_errors(false)
        .init();
    daemon::run(args.name.as_deref(), &settings)
}
