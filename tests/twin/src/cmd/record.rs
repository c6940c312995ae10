//! `tandem-twin record`: histories of the kernel that runs here, as JSON.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use tandem_twin::fold;
use tandem_twin::history::{BRIDGES, History, STILL_BRIDGES};
use tandem_twin::normal;
use tandem_twin::player::Player;

/// Plays random histories to this machine's kernel, in namespaces of its own, and keeps what it does. Needs root.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The first history's seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// So many histories, with seeds in a row
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// Keep each recording in this folder, as SEED.json
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// The processor that the recorder keeps to
    #[arg(long, default_value_t = 0)]
    cpu: usize,
    /// Histories with bridges too
    #[arg(long)]
    bridges: bool,
    /// Record each history twice and say where the two differ
    #[arg(long)]
    twice: bool,
    /// Count where notifications and tables disagree
    #[arg(long)]
    silent: bool,
    /// What the kernel must have for histories to be made of: rule, vlan, vrf, …
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    need: Vec<String>,
    /// Print the commands and what the kernel answered
    #[arg(long)]
    print: bool,
}

/// Runs it: 0, or 1 where recordings of one history differ.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut player = Player::open(args.cpu)?;
    let mut other = if args.twice {
        Some(Player::open(args.cpu)?)
    } else {
        None
    };
    if let Some(dir) = &args.keep {
        std::fs::create_dir_all(dir).with_context(|| format!("make {}", dir.display()))?;
    }
    let begin = Instant::now();
    let mut have = player.have().to_vec();
    if args.bridges {
        have.extend([BRIDGES, STILL_BRIDGES].map(str::to_owned));
    }
    println!("histories are made of routes and {}", have.join(", "));
    if let Some(missing) = args.need.iter().find(|n| !have.contains(n)) {
        anyhow::bail!("this kernel has no {missing}, or refuses the command that asks for it");
    }
    let mut differ = 0;
    let mut silent = fold::Counts::new();
    for seed in args.seed..args.seed.saturating_add(args.count) {
        let history = History::draw(seed, &have);
        let recording = player
            .record(&history)
            .with_context(|| format!("seed {seed}"))?;
        if args.print {
            for op in &history.topology {
                println!("      {}", op.text);
            }
            for step in &recording.steps {
                if let Some(c) = &step.command {
                    println!("{:4}  {} ({} told)", c.errno, c.text, step.told.len());
                }
            }
        }
        if let Some(other) = &mut other
            && let Some(words) = normal::difference(&recording, &other.record(&history)?)
        {
            differ += 1;
            println!("seed {seed}: {words}");
        }
        if args.silent {
            fold::count(&recording, &mut silent);
            if args.print {
                for f in fold::findings(&recording) {
                    println!("step {}, {} {:?}: {}", f.step, f.table, f.gap, f.words);
                }
            }
        }
        if let Some(dir) = &args.keep {
            let file = dir.join(format!("{seed}.json"));
            std::fs::write(&file, serde_json::to_vec(&recording)?)
                .with_context(|| format!("write {}", file.display()))?;
        }
    }
    let (c, s) = (player.counts(), begin.elapsed().as_secs_f64());
    println!(
        "{} histories in {s:.1} s ({:.1}/s): {} commands ({} refused), {} notifications, {} probes, {} frames came out, \
         {} others, {} namespaces",
        c.histories,
        c.histories as f64 / s,
        c.commands,
        c.refused,
        c.told,
        c.probes,
        c.answers,
        c.other,
        c.spaces
    );
    for ((table, gap, command), n) in &silent {
        println!("{n:8}  {table:9} {gap:?} after `{command}`");
    }
    if args.twice {
        println!("recorded twice: {differ} differ");
    }
    Ok(ExitCode::from(u8::from(differ != 0)))
}
