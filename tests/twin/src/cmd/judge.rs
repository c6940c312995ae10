//! `tandem-twin judge`: records and plays at once, nothing touches the disk but what fails.
//!
//! ```text
//!   player (one processor) ──► recordings, a bounded queue ──► plays on the other threads ──► failures
//!         ▲                                                                                     │
//!         └──────────── fewer commands, recorded again, played again: does it still fail? ◄─────┘
//! ```

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Context;
use tandem_twin::coverage::{table, violations};
use tandem_twin::history::{History, Op, Rng, STILL_BRIDGES};
use tandem_twin::kernel::Prepared;
use tandem_twin::play::{Failure, Shelf, Variant, play};
use tandem_twin::player::Player;
use tandem_twin::recording::Recording;
use tandem_twin::shrink::Kept;
use tandem_twin::tally::{PRODUCTION, Sum, Tally, add_to};

/// Records random histories of the kernel that runs here and plays each against chips, in one process. Fails when a packet
/// gets an answer that the kernel did not give; what failed is cut down to the fewest commands. Needs root.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The first history's seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// So many histories, with seeds in a row
    #[arg(long, default_value_t = 100)]
    count: u64,
    /// So many plays of each
    #[arg(long, default_value_t = 10)]
    plays: u64,
    /// Stop after so many histories that fail
    #[arg(long, default_value_t = 1)]
    failures: usize,
    /// One play of each, with a big chip that does as it is told
    #[arg(long)]
    plain: bool,
    /// Keep what failed, cut down, in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Add histories, plays, failures and cells to this file's, by the hash of the production code
    #[arg(long, value_name = "FILE")]
    tally: Option<PathBuf>,
    /// Histories with bridges that learn nothing, too
    #[arg(long)]
    bridges: bool,
    /// Print the table of what was played, and what was not and could have been: with a tally, in all its runs
    #[arg(long)]
    cells: bool,
    /// The processor that the recorder keeps to
    #[arg(long, default_value_t = 0)]
    cpu: usize,
    /// Threads that play
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

/// Recordings that wait to be played, at most.
const QUEUE: usize = 16;

/// A history that failed in a play.
struct Failed {
    history: History,
    variant: Variant,
    failure: Failure,
}

type Job = (History, Arc<Prepared>);

/// What the threads that play share.
struct Shared<'a> {
    args: &'a Args,
    jobs: Mutex<Receiver<Job>>,
    tally: Mutex<Tally>,
    failed: Mutex<Vec<Failed>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn variants(args: &Args, seed: u64) -> Vec<Variant> {
    if args.plain {
        return vec![Variant::plain()];
    }
    let mut rng = Rng::new(seed);
    (0..args.plays).map(|_| Variant::draw(rng.next())).collect()
}

fn work(shared: &Shared<'_>) {
    let mut shelf = Shelf::default();
    let mut tally = Tally::default();
    loop {
        let job = lock(&shared.jobs).recv();
        let Ok((history, prepared)) = job else { break };
        for variant in variants(shared.args, history.seed) {
            match play(&prepared, &variant, &mut shelf) {
                Ok(t) => tally.add(&t),
                Err(failure) => {
                    lock(&shared.failed).push(Failed {
                        history,
                        variant,
                        failure,
                    });
                    break;
                }
            }
        }
    }
    lock(&shared.tally).add(&tally);
}

/// What histories are made of here.
fn constructs(player: &Player, args: &Args) -> Vec<String> {
    let mut have = player.have().to_vec();
    have.extend(args.bridges.then(|| STILL_BRIDGES.to_owned()));
    have
}

/// Records one after the other until there are enough, or enough failed.
fn record(
    player: &mut Player,
    args: &Args,
    jobs: &SyncSender<Job>,
    failed: &Mutex<Vec<Failed>>,
) -> anyhow::Result<()> {
    let have = constructs(player, args);
    for seed in args.seed..args.seed.saturating_add(args.count) {
        let history = History::draw(seed, &have);
        let recording = player
            .record(&history)
            .with_context(|| format!("seed {seed}"))?;
        if jobs
            .send((history, Arc::new(Prepared::new(recording))))
            .is_err()
            || lock(failed).len() >= args.failures
        {
            break;
        }
    }
    Ok(())
}

/// Runs it: 0, or 1 where a play failed.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (send, receive) = sync_channel(QUEUE);
    let shared = Shared {
        args,
        jobs: Mutex::new(receive),
        tally: Mutex::default(),
        failed: Mutex::default(),
    };
    let begin = Instant::now();
    let mut player = std::thread::scope(|scope| {
        // before the player keeps this thread, and those it makes, to one processor
        for _ in 0..args.threads.max(1) {
            scope.spawn(|| work(&shared));
        }
        let mut player = Player::open(args.cpu)?;
        let send = send;
        record(&mut player, args, &send, &shared.failed)?;
        anyhow::Ok(player)
    })?;
    let (seconds, counts) = (begin.elapsed().as_secs_f64(), player.counts());
    let tally = shared
        .tally
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    println!(
        "{} histories recorded ({:.1} a second), {} plays ({:.1} a second), {} rests",
        counts.histories,
        counts.histories as f64 / seconds,
        tally.plays,
        tally.plays as f64 / seconds,
        tally.rests
    );
    print!("{}", tally.packets());
    let failed = shared
        .failed
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let mut cells = tally.cells.clone();
    let mut have = constructs(&player, args);
    if let Some(file) = &args.tally {
        let run = Sum::of(counts.histories, failed.len() as u64, &tally, &have);
        let sum = add_to(file, PRODUCTION, &run).with_context(|| file.display().to_string())?;
        println!(
            "{PRODUCTION}: {} histories, {} plays, {} failures",
            sum.histories, sum.plays, sum.failures
        );
        cells = sum.cells;
        have = sum.have.into_iter().collect();
    }
    if args.cells {
        print!("{}", table(&cells, &have).0);
    }
    let violations = violations(&tally.cells);
    violations.iter().for_each(|words| println!("{words}"));
    for one in &failed {
        tell(&mut player, one, args)?;
    }
    let well = failed.is_empty() && violations.is_empty();
    Ok(ExitCode::from(u8::from(!well)))
}

/// A history that still fails, what it is recorded as, and how.
type Smaller = (History, Recording, Failure);

/// Records a history anew: does it fail in the same kind of play?
fn fails(
    player: &mut Player,
    history: &History,
    variant: &Variant,
) -> anyhow::Result<Option<Smaller>> {
    let recording = player.record(history)?;
    let prepared = Arc::new(Prepared::new(recording.clone()));
    let failure = play(&prepared, variant, &mut Shelf::default()).err();
    Ok(failure.map(|f| (history.clone(), recording, f)))
}

/// Leaves out what can be left out: of the commands, then of what was there at first.
fn smaller(
    player: &mut Player,
    history: &History,
    variant: &Variant,
) -> anyhow::Result<Option<Smaller>> {
    let Some(mut best) = fails(player, history, variant)? else {
        return Ok(None);
    };
    for topology in [false, true] {
        let len = |h: &History| {
            if topology {
                h.topology.len()
            } else {
                h.commands.len()
            }
        };
        let mut size = len(&best.0).div_ceil(2);
        while size > 0 {
            let mut at = 0;
            while at < len(&best.0) {
                // what bridges learn from probes no play knows
                let teaches = |op: &Op| op.text.ends_with("learning off");
                let kept = |n: &usize| best.0.topology.get(*n).is_some_and(teaches);
                let stays = |n: &usize| topology && kept(n);
                let places: Vec<usize> = (0..len(&best.0))
                    .filter(|n| !(at..at + size).contains(n) || stays(n))
                    .collect();
                if places.len() == len(&best.0) {
                    at += size;
                    continue;
                }
                let less = if topology {
                    best.0.with_topology(&places)
                } else {
                    best.0.with_commands(&places)
                };
                match fails(player, &less, variant)? {
                    Some(found) => best = found,
                    None => at += size,
                }
            }
            size /= 2;
        }
    }
    Ok(Some(best))
}

fn tell(player: &mut Player, one: &Failed, args: &Args) -> anyhow::Result<()> {
    println!("seed {}: {}", one.history.seed, one.failure);
    // the simplest play that fails
    let mut found = None;
    let mut variant = Variant::plain();
    for candidate in [Variant::plain(), one.variant.clone()] {
        variant = candidate;
        found = smaller(player, &one.history, &variant)?;
        if found.is_some() {
            break;
        }
    }
    let Some((history, recording, failure)) = found else {
        println!(
            "  recorded anew it does not fail; played: {:?}",
            one.variant
        );
        return Ok(());
    };
    println!("  cut down: {failure}");
    for op in &history.topology {
        println!("      {}", op.text);
    }
    println!("      --");
    for step in &recording.steps {
        if let Some(c) = &step.command {
            println!("{:4}  {}", c.errno, c.text);
        }
    }
    if variant != Variant::plain() {
        println!("  {}", serde_json::to_string(&variant)?);
    }
    if let Some(dir) = &args.keep {
        std::fs::create_dir_all(dir).with_context(|| format!("make {}", dir.display()))?;
        let file = dir.join(format!("{}.json", history.seed));
        let kept = Kept {
            what: failure.to_string(),
            variant,
            recording,
        };
        std::fs::write(&file, serde_json::to_vec(&kept)?)
            .with_context(|| format!("write {}", file.display()))?;
        println!("  kept as {}", file.display());
    }
    Ok(())
}
