//! asicd: see the library.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = tandem_asicd::args::Args::parse();
    // options that clap understood, and that make no sense: 2, as it ends with
    let checked = args.check();
    if let Err(e) = checked.and_then(|()| tandem_mgmt::log::start(&args.log, false)) {
        let _ = writeln!(std::io::stderr(), "asicd: {e}");
        return ExitCode::from(2);
    }
    match tandem_asicd::daemon::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "asicd: {e:#}");
            ExitCode::FAILURE
        }
    }
}
