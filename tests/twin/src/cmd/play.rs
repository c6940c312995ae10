//! `tandem-twin play`: recordings against many chips, on all processors.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Context;
use tandem_twin::coverage::{table, violations};
use tandem_twin::kernel::Prepared;
use tandem_twin::play::{Failure, Shelf, Variant, play};
use tandem_twin::recording::Recording;
use tandem_twin::shrink::{Kept, shrink};
use tandem_twin::tally::Tally;

/// Plays recordings against chips of all sizes, with losses, restarts and answers that go astray. Fails when a packet gets an
/// answer that the kernel did not give.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Recordings or kept failures, or folders of them
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The first variant's seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// So many variants of each recording, with seeds in a row
    #[arg(long, default_value_t = 10)]
    count: u64,
    /// Play on after failures, until there are so many
    #[arg(long, default_value_t = 1)]
    failures: usize,
    /// Keep shrunk failures in this folder
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Print the table of what was played, and what was not and could have been
    #[arg(long)]
    cells: bool,
    /// Threads; 0: one for each processor
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Say the play's variant and nothing else: a big chip that does as it is told
    #[arg(long)]
    plain: bool,
}

/// A recording to be played, and how it is played if it says so itself.
struct Job {
    path: PathBuf,
    prepared: Arc<Prepared>,
    variant: Option<Variant>,
}

fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in paths {
        if !path.is_dir() {
            all.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "json") {
                all.push(path);
            }
        }
    }
    all.sort();
    anyhow::ensure!(!all.is_empty(), "no recordings (*.json) there");
    Ok(all)
}

fn read(path: &Path) -> anyhow::Result<Job> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let (recording, variant) = match serde_json::from_str::<Kept>(&text) {
        Ok(kept) => (kept.recording, Some(kept.variant)),
        Err(_) => {
            let recording = Recording::parse(&text).with_context(|| path.display().to_string())?;
            (recording, None)
        }
    };
    Ok(Job {
        path: path.to_owned(),
        prepared: Arc::new(Prepared::new(recording)),
        variant,
    })
}

/// What all threads share.
struct Shared<'a> {
    args: &'a Args,
    jobs: Vec<Job>,
    next: AtomicU64,
    stop: AtomicBool,
    tally: Mutex<Tally>,
    failures: Mutex<Vec<(usize, Variant, Failure)>>,
}

/// Runs it.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let jobs: anyhow::Result<Vec<Job>> = files(&args.files)?.iter().map(|p| read(p)).collect();
    let shared = Shared {
        args,
        jobs: jobs?,
        next: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        tally: Mutex::default(),
        failures: Mutex::default(),
    };
    let threads = match args.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work(&shared));
        }
    });
    let seconds = begin.elapsed().as_secs_f64();
    let tally = shared
        .tally
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let have = shared
        .jobs
        .iter()
        .flat_map(|j| j.prepared.recording.have.clone());
    report(&tally, seconds, args, &have.collect::<Vec<_>>());
    let violations = violations(&tally.cells);
    violations.iter().for_each(|words| println!("{words}"));
    let failures = shared
        .failures
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    for (job, variant, failure) in &failures {
        if let Some(job) = shared.jobs.get(*job) {
            tell(job, variant, failure, args)?;
        }
    }
    Ok(match failures.is_empty() && violations.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn work(shared: &Shared<'_>) {
    let mut shelf = Shelf::default();
    let mut tally = Tally::default();
    let args = shared.args;
    while !shared.stop.load(Relaxed) {
        let n = shared.next.fetch_add(1, Relaxed);
        // all recordings with one seed, then all with the next: a short run sees all of them
        let (seed, place) = (n / shared.jobs.len() as u64, n % shared.jobs.len() as u64);
        let Some(job) = shared
            .jobs
            .get(place as usize)
            .filter(|_| seed < args.count)
        else {
            break;
        };
        let variant = match &job.variant {
            Some(v) => v.clone(),
            None if args.plain => Variant::plain(),
            None => Variant::draw(mix(job.prepared.recording.seed, args.seed + seed)),
        };
        match play(&job.prepared, &variant, &mut shelf) {
            Ok(t) => tally.add(&t),
            Err(failure) => {
                let failures = shared.failures.lock();
                let mut failures = failures.unwrap_or_else(PoisonError::into_inner);
                failures.push((place as usize, variant, failure));
                if failures.len() >= args.failures {
                    shared.stop.store(true, Relaxed);
                }
            }
        }
    }
    let mut all = shared.tally.lock().unwrap_or_else(PoisonError::into_inner);
    all.add(&tally);
}

/// A variant's seed from the recording's and its own.
fn mix(recording: u64, seed: u64) -> u64 {
    tandem_twin::random::Random::new(recording ^ seed.rotate_left(32)).next()
}

fn report(tally: &Tally, seconds: f64, args: &Args, have: &[String]) {
    println!(
        "{} plays in {seconds:.1} s ({:.0} a second), {} rests",
        tally.plays,
        tally.plays as f64 / seconds.max(1e-9),
        tally.rests
    );
    print!("{}", tally.packets());
    let [warm, cold] = tally.restarts;
    println!(
        "{warm} warm restarts, {cold} power failures, {} losses of notifications, {} write-backs (not taken)",
        tally.overflows, tally.writes
    );
    if args.cells {
        print!("{}", table(&tally.cells, have).0);
    }
}

fn tell(job: &Job, variant: &Variant, failure: &Failure, args: &Args) -> anyhow::Result<()> {
    let name = job.path.display();
    println!(
        "{name}, recorded with seed {}: {failure}",
        job.prepared.recording.seed
    );
    let (kept, failure) = shrink(&job.prepared.recording, variant);
    if let Some(failure) = &failure {
        println!("  shrunk: {failure}");
    }
    for step in &kept.recording.steps {
        if let Some(c) = &step.command {
            let errno = if c.errno == 0 {
                String::new()
            } else {
                format!(" (errno {})", c.errno)
            };
            println!("    {}{errno}", c.text);
        }
    }
    println!("  {}", serde_json::to_string(&kept.variant)?);
    if let Some(folder) = &args.keep {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(format!(
            "{}-{}.json",
            kept.recording.seed, kept.variant.seed
        ));
        std::fs::write(&path, serde_json::to_string(&kept)?)
            .with_context(|| path.display().to_string())?;
        println!("  kept as {}", path.display());
    }
    Ok(())
}
