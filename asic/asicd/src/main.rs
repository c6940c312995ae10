//! asicd: see the library.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let args = tandem_asicd::args::Args::parse();
    let checked = tandem_mgmt::log::check(&args.log);
    let filter = match checked
        .and_then(|()| EnvFilter::try_new(&args.log).map_err(|e| format!("log {}: {e}", args.log)))
    {
        Ok(filter) => filter,
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "asicd: {e}");
            return ExitCode::from(2);
        }
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        // a full disk loses log lines, and nothing else: told of on the same descriptor, that would be a panic
        .log_internal_errors(false)
        .init();
    match tandem_asicd::daemon::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "asicd: {e:#}");
            ExitCode::FAILURE
        }
    }
}
