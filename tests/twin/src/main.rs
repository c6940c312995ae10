//! `tandem-twin`: records a kernel's histories, plays them against chips. Each subcommand has a file in `cmd/`.

use std::process::ExitCode;

use clap::Parser;

mod cmd;

/// Histories of a real kernel, recorded once and played against many chips.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Record(cmd::record::Args),
    Play(cmd::play::Args),
    Judge(cmd::judge::Args),
    Model(cmd::model::Args),
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Record(args) => cmd::record::run(&args),
        Command::Play(args) => cmd::play::run(&args),
        Command::Judge(args) => cmd::judge::run(&args),
        Command::Model(args) => cmd::model::run(&args),
    };
    done.unwrap_or_else(|e| {
        eprintln!("tandem-twin: {e:#}");
        ExitCode::from(2)
    })
}
