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
use tandem_sal::{Attach, Sal, SalIo, Splits};

use crate::asic::Panel;

/// asicd answers within this time, or is asked again later.
const ANSWER: Duration = Duration::from_secs(1);

/// What is to be attached to.
pub struct Ask {
    pub socket: PathBuf,
    pub name: String,
    /// A connection that was made already.
    pub sal: Option<Sal>,
    /// What the chip holds may be an earlier process's.
    pub warm: bool,
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
    /// May the next one be warm?
    pub warm: bool,
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

fn go(ask: Ask, next: &mut bool) -> anyhow::Result<Made> {
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
    // what goes wrong with a warm one goes with a cold one
    let warm = std::mem::take(next);
    let (control, io) = sal.attach(if warm { Attach::Warm } else { Attach::Cold })?;
    let control = Ahead::read(Box::new(control), warm)?;
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

impl Attempt {
    /// `bell` rings at its end.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn begin(ask: Ask, bell: Arc<EventFd>) -> std::io::Result<Attempt> {
        let (to, from) = bounded(1);
        let thread = std::thread::Builder::new().name("attach".into());
        thread.spawn(move || {
            let _ = to.send(make(ask));
            bell.ring();
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
                warm: false,
            }),
        }
    }
}
