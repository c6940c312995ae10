// SPDX-License-Identifier: Apache-2.0
//! One attempt to attach to asicd: all of it that waits for answers, on a thread of its own. An asicd that is stopped, or in
//! no hurry, keeps nobody from controllers meanwhile.
//!
//! ```text
//!   switches' thread: begin ──► a thread: connect, attach, read what the chip tells ──► bell ──► done, attach the switches
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use crossbeam_channel::{Receiver, TryRecvError, bounded};
use tandem_abi::raw;
use tandem_linux::eventfd::EventFd;
use tandem_linux::process::Process;
use tandem_ofchip::Ahead;
use tandem_sal::{Attach, Sal, SalError, SalIo, Splits};

use crate::asic::Panel;

/// asicd answers within this time, or is asked again later.
const ANSWER: Duration = Duration::from_secs(1);
/// So many attempts are warm before one is cold, if what goes wrong with them is what passes.
pub const WARM: u8 = 3;

/// What is to be attached to.
pub struct Ask {
    pub socket: PathBuf,
    pub name: String,
    /// A connection that was made already.
    pub sal: Option<Sal>,
    /// What the chip holds may be an earlier process's: so many attempts may still be warm.
    pub warm: u8,
    /// Which chip it is to be.
    pub panel: Arc<Panel>,
}

/// An attach.
pub struct Made {
    pub sal: Sal,
    pub control: Ahead,
    pub io: SalIo,
    pub warm: bool,
    /// Whose it is.
    pub process: Option<Process>,
}

/// What became of an attempt.
pub struct Outcome {
    pub done: anyhow::Result<Made>,
    /// So many of the next ones may be warm.
    pub warm: u8,
}

/// A connection to a chip that has flow ports.
pub fn connect(socket: &std::path::Path, name: &str) -> anyhow::Result<Sal> {
    let sal = Sal::connect(socket, name, &Splits::new(), ANSWER)
        .with_context(|| format!("asicd, {}", socket.display()))?;
    let chip = &sal.platform().chip;
    // What does not know them takes their bits for nothing, and answers OK
    match sal.offered() & raw::TND_FEAT_FLOWS {
        0 => Err(anyhow!("a chip {chip} has no flow ports")),
        _ => Ok(sal),
    }
}

/// The attempt itself, which waits.
pub fn make(ask: Ask) -> Outcome {
    let mut warm = ask.warm;
    let done = go(ask, &mut warm);
    Outcome { done, warm }
}

/// Is it nothing that the chip holds, so that the next attempt may go well? A list that can't be read, and what is refused,
/// stay as they are.
fn passes(e: &SalError) -> bool {
    match e {
        SalError::Carrier(_)
        | SalError::Corrupt(_)
        | SalError::Timeout(_)
        | SalError::RingFull(_)
        | SalError::Unanswered(_) => true,
        SalError::Platform(_) | SalError::Refused { .. } | SalError::List { .. } => false,
    }
}

/// So many of the next attempts may be warm, behind one that ended so: what does not pass goes wrong with each warm one, and
/// not with a cold one.
fn left<T>(done: &Result<T, SalError>, warm: u8) -> u8 {
    match done {
        Err(e) if passes(e) => warm.saturating_sub(1),
        _ => 0,
    }
}

fn go(ask: Ask, next: &mut u8) -> anyhow::Result<Made> {
    let mut sal = match ask.sal {
        Some(sal) => sal,
        None => {
            let sal = connect(&ask.socket, &ask.name)?;
            if let Some(other) = ask.panel.other(&Panel::of(&sal)) {
                return Err(anyhow!(
                    "another chip is there, {other}: tandem openflow down, and up"
                ));
            }
            sal
        }
    };
    let process = Process::of_peer(sal.socket()).ok();
    let warm = *next > 0;
    let attached = sal.attach(if warm { Attach::Warm } else { Attach::Cold });
    let read = attached.and_then(|(control, io)| Ok((Ahead::read(Box::new(control), warm)?, io)));
    // A warm one has written nothing
    *next = left(&read, *next);
    let (control, io) = read?;
    Ok(Made {
        sal,
        control,
        io,
        warm,
        process,
    })
}

/// An attempt that is under way.
pub struct Attempt(Receiver<Outcome>);

/// Rings when it goes, also where an attempt breaks off (a release ends then).
struct Rings(Arc<EventFd>);

impl Drop for Rings {
    fn drop(&mut self) {
        self.0.ring();
    }
}

impl Attempt {
    /// `bell` rings at its end.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn begin(ask: Ask, bell: Arc<EventFd>) -> std::io::Result<Attempt> {
        Attempt::of(bell, move || make(ask))
    }

    fn of(
        bell: Arc<EventFd>,
        make: impl FnOnce() -> Outcome + Send + 'static,
    ) -> std::io::Result<Attempt> {
        let (to, from) = bounded(1);
        let thread = std::thread::Builder::new().name("attach".into());
        thread.spawn(move || {
            let _rings = Rings(bell);
            // goes before the bell rings, also where there is no outcome
            let to = to;
            let _ = to.send(make());
        })?;
        Ok(Attempt(from))
    }

    /// What became of it; none: it is under way.
    pub fn done(&self) -> Option<Outcome> {
        match self.0.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Outcome {
                done: Err(anyhow!("an attempt to attach ended without a word")),
                warm: 0,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use tandem_abi::Status;

    /// Whoever sleeps on the bell until it rings has an outcome then.
    fn rung(bell: &EventFd, attempt: &Attempt) -> Outcome {
        let mut waits = (0..60).map(|_| bell.wait(Duration::from_secs(1)).unwrap());
        assert!(waits.any(|rings| rings) && bell.drain());
        attempt.done().unwrap()
    }

    fn bell() -> Arc<EventFd> {
        Arc::new(EventFd::new().unwrap())
    }

    /// Nobody waits for it; it rings when there is an outcome, once.
    #[test]
    fn an_attempt_rings_at_its_end() {
        let (bell, (go, told)) = (bell(), bounded(0));
        let attempt = Attempt::of(Arc::clone(&bell), move || {
            let warm = told.recv().unwrap();
            let done = Err(anyhow!("told to"));
            Outcome { done, warm }
        });
        let attempt = attempt.unwrap();
        assert!(attempt.done().is_none() && !bell.drain());
        go.send(2).unwrap();
        let outcome = rung(&bell, &attempt);
        assert_eq!(outcome.warm, 2);
        assert_eq!(outcome.done.err().unwrap().to_string(), "told to");
    }

    /// One that ends without an outcome rings as well, and the next one is cold.
    #[test]
    fn an_attempt_that_breaks_off_rings() {
        let bell = bell();
        let attempt = Attempt::of(Arc::clone(&bell), || {
            std::panic::resume_unwind(Box::new("breaks off"))
        });
        let outcome = rung(&bell, &attempt.unwrap());
        assert_eq!(outcome.warm, 0);
        assert!(outcome.done.is_err());
    }

    /// Nobody is there, or one who takes connections and says nothing: neither has said what the chip holds, so all that may
    /// be warm still may.
    #[test]
    fn an_attempt_that_reaches_nobody_costs_none() {
        let folder = std::env::temp_dir().join(format!("ofagentd-attempt-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for listens in [false, true] {
            let socket = folder.join(format!("driver-{listens}.sock"));
            let listener = listens.then(|| UnixListener::bind(&socket).unwrap());
            let bell = bell();
            let ask = Ask {
                socket: socket.clone(),
                name: "test".into(),
                sal: None,
                warm: WARM,
                panel: Arc::default(),
            };
            let attempt = Attempt::begin(ask, Arc::clone(&bell)).unwrap();
            let outcome = rung(&bell, &attempt);
            assert_eq!(outcome.warm, WARM);
            let said = format!("{:#}", outcome.done.err().unwrap());
            let whose = format!("asicd, {}", socket.display());
            assert!(said.starts_with(&whose), "{said}");
            drop(listener);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// What the chip holds is not thrown away because one answer was late; what it says of itself it says again.
    #[test]
    fn what_passes_is_no_reason_for_a_cold_attach() {
        let refused = SalError::Refused {
            what: "attach",
            status: Status::Fault,
        };
        let list = SalError::List {
            what: "FDB",
            why: "it goes back".into(),
        };
        for (e, passing) in [
            (SalError::Timeout("a page"), true),
            (SalError::RingFull("a page"), true),
            (SalError::Unanswered(9), true),
            (refused, false),
            (list, false),
        ] {
            // One is counted off, or all are
            let e = Err::<(), _>(e);
            let want = if passing { [2, 1, 0, 0] } else { [0; 4] };
            assert_eq!([WARM, 2, 1, 0].map(|warm| left(&e, warm)), want, "{e:?}");
        }
        assert_eq!(left(&Ok(()), WARM), 0);
    }
}
