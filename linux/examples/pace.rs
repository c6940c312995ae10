//! Frames at a steady rate, and a sink that drops them: for measurements.
//!
//! ```text
//!  pace send ──BPF_PROG_TEST_RUN──► redirect ──► DEV ═ veth ═ …device under test… ═ veth ═ DEV ──► XDP_DROP ◄── pace sink
//! ```
//!
//! `pace send DEV FRAME COUNT RATE BURST`, in the namespace of DEV: COUNT copies of FRAME (hexadecimal digits), RATE a
//! second, 0 for as fast as it can. BURST frames at a time, and it sleeps between two bursts, so that who has the
//! same processor gets the rest of it; BURST 0: one endless call that waits in its program and needs a processor of its
//! own. Between two bursts lies a call of the kernel that waits for RCU: `rcu_expedited` makes that short. Prints how
//! many frames were sent, and in how many seconds.
//!
//! `pace sink DEV…` drops what comes in, until its standard input ends; it prints a line when it does.

use std::error::Error;
use std::io::Read;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tandem_linux::{ifreq::ControlSocket, xdp, xdp_flood, xdp_pace::Pacer};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A burst that is later than so many is forgotten, and those after it are sent at their rate.
const BEHIND: u32 = 8;
/// Frames that a call hands over together: the ring of a veth has room for 256.
const BATCH: u32 = 64;
/// Frames of one call when nothing is to be waited for.
const CALL: u32 = 1_000_000;

fn bytes(hex: &str) -> Result<Vec<u8>> {
    let digit = |at: usize| {
        let two = hex.get(at..at + 2).ok_or("an odd number of digits")?;
        u8::from_str_radix(two, 16).map_err(|_| format!("{two} is no byte"))
    };
    Ok((0..hex.len())
        .step_by(2)
        .map(digit)
        .collect::<std::result::Result<_, _>>()?)
}

/// Bursts at their times. What was late is caught up with, but for what is very late.
fn bursts(dev: &str, frame: &[u8], count: u32, rate: f64, burst: u32) -> Result<u32> {
    let program = xdp_flood::load_redirect(ControlSocket::open()?.link(dev)?.ifindex)?;
    let every = Duration::from_secs_f64(f64::from(burst) / rate);
    let mut due = Instant::now();
    let mut sent = 0;
    while sent < count {
        let now = Instant::now();
        if now < due {
            std::thread::sleep(due - now);
        } else if now - due > every * BEHIND {
            due = now;
        }
        let n = burst.min(count - sent);
        xdp_flood::send(program.as_fd(), frame, n, n.min(BATCH))?;
        sent += n;
        due += every;
    }
    Ok(sent)
}

fn send(dev: &str, frame: &[u8], count: u32, rate: f64, burst: u32) -> Result<()> {
    let begin = Instant::now();
    let (sent, seconds) = if rate == 0.0 {
        let program = xdp_flood::load_redirect(ControlSocket::open()?.link(dev)?.ifindex)?;
        let mut left = count;
        while left > 0 {
            let n = left.min(CALL);
            xdp_flood::blast(program.as_fd(), frame, n)?;
            left -= n;
        }
        (count, begin.elapsed().as_secs_f64())
    } else if burst == 0 {
        let pacer = Pacer::new(
            ControlSocket::open()?.link(dev)?.ifindex,
            (1e9 / rate) as u64,
        )?;
        let kept = pacer.send(frame, count)?;
        (count, f64::from(count) / kept)
    } else {
        let sent = bursts(dev, frame, count, rate, burst)?;
        (sent, begin.elapsed().as_secs_f64())
    };
    println!("{sent} {seconds:.6}");
    Ok(())
}

fn sink(devs: &[&str]) -> Result<()> {
    let control = ControlSocket::open()?;
    let mut links = Vec::new();
    for dev in devs {
        let program = xdp_flood::load_drop()?;
        links.push(xdp::attach(program.as_fd(), control.link(dev)?.ifindex)?);
    }
    println!("dropping");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    drop(links);
    Ok(())
}

fn run() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["send", dev, frame, count, rate, burst] => send(
            dev,
            &bytes(frame)?,
            count.parse()?,
            rate.parse()?,
            burst.parse()?,
        ),
        ["sink", devs @ ..] if !devs.is_empty() => sink(devs),
        _ => Err("usage: pace send DEV FRAME COUNT RATE BURST, or pace sink DEV...".into()),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("pace: {e}");
            ExitCode::FAILURE
        }
    }
}
