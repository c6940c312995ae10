//! `tandem-twin model`: the model beside the kernel that runs here.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use tandem_twin::history::History;
use tandem_twin::model;
use tandem_twin::normal::{self, LEVELS, Level};
use tandem_twin::player::Player;

/// Records histories on this machine's kernel and compares the model with it, step by step. Needs root.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The first history's seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// So many histories, with seeds in a row
    #[arg(long, default_value_t = 100)]
    count: u64,
    /// Fewer histories compared (what the model refuses is not) are a failure
    #[arg(long, default_value_t = 1)]
    least: u64,
    /// Print so many that differ, cut down
    #[arg(long, default_value_t = 1)]
    failures: usize,
    /// The processor that the recorder keeps to
    #[arg(long, default_value_t = 0)]
    cpu: usize,
}

/// Where the two differ at one level; `None`: nowhere.
fn compare(
    player: &mut Player,
    history: &History,
    level: Level,
) -> anyhow::Result<Option<(usize, String)>> {
    let model = model::record_as(history, player.kernel())?;
    let recording = player.record(history)?;
    Ok(normal::difference_at(level, &recording, &model))
}

/// The fewest commands that still differ at that level.
fn shrunk(player: &mut Player, history: &History, level: Level) -> anyhow::Result<History> {
    let mut best = history.clone();
    for topology in [false, true] {
        let len = |h: &History| match topology {
            true => h.topology.len(),
            false => h.commands.len(),
        };
        let mut size = len(&best).div_ceil(2);
        while size > 0 {
            let mut at = 0;
            while at < len(&best) {
                let rest: Vec<usize> = (0..len(&best))
                    .filter(|n| !(at..at + size).contains(n))
                    .collect();
                let less = match topology {
                    true => best.with_topology(&rest),
                    false => best.with_commands(&rest),
                };
                match compare(player, &less, level)? {
                    Some(_) => best = less,
                    None => at += size,
                }
            }
            size /= 2;
        }
    }
    Ok(best)
}

fn print(player: &mut Player, history: &History, level: Level) -> anyhow::Result<()> {
    let small = shrunk(player, history, level)?;
    let Some((step, words)) = compare(player, &small, level)? else {
        println!("  not again when it was cut down");
        return Ok(());
    };
    for op in &small.topology {
        println!("      {}", op.text);
    }
    println!("      --");
    for op in small.commands.iter().take(step) {
        println!("      {}", op.text);
    }
    println!("  the kernel and the model: {words:.3000}");
    Ok(())
}

/// Runs it: 0, or 1 where the two differ.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut player = Player::open_plain(args.cpu)?;
    let (mut compared, mut equal, mut printed) = (0u64, 0u64, 0usize);
    let mut levels = LEVELS.map(|level| (level, 0u64));
    let mut refused: BTreeMap<String, u64> = BTreeMap::new();
    let mut time = Duration::ZERO;
    let have = player.have().to_vec();
    for seed in args.seed..args.seed.saturating_add(args.count) {
        let history = History::draw(seed, &have);
        let begin = Instant::now();
        let model = match model::record_as(&history, player.kernel()) {
            Ok(model) => model,
            Err(e) => {
                *refused.entry(e.to_string()).or_default() += 1;
                continue;
            }
        };
        time += begin.elapsed();
        let recording = player
            .record(&history)
            .with_context(|| format!("seed {seed}"))?;
        compared += 1;
        let mut first = None;
        for (level, count) in &mut levels {
            match normal::difference_at(*level, &recording, &model) {
                None => *count += 1,
                Some((step, words)) if first.is_none() => first = Some((*level, step, words)),
                Some(_) => {}
            }
        }
        let Some((level, step, words)) = first else {
            equal += 1;
            continue;
        };
        println!("seed {seed}: {level:?} differ at step {step}: {words:.200}");
        if printed < args.failures {
            printed += 1;
            print(&mut player, &history, level)?;
        }
    }
    println!(
        "{compared} histories compared, {equal} equal in everything, {:.0} a second by the model alone",
        compared as f64 / time.as_secs_f64()
    );
    for (level, count) in levels {
        println!("{count:8}  equal: {level:?}");
    }
    for (why, n) in &refused {
        println!("{n:8}  refused: {why}");
    }
    if compared < args.least {
        println!("at least {} were to be compared", args.least);
    }
    Ok(ExitCode::from(u8::from(
        equal != compared || compared < args.least,
    )))
}
