// SPDX-License-Identifier: Apache-2.0
//! The way to asicd, for the core: ports without netdevs, TAPs of VLANs that asicd keeps.
//!
//! ```text
//!   HELLO ─► is our mark kept? ─► yes: warm    no, or cold: the mark and the TAPs are handed over ─► attach
//! ```

use std::collections::VecDeque;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tandem_carrier::{Bell, CarrierError};
use tandem_core::plant::{Attached, Front, Names, NotYet, Plant, Progress, Waits};
use tandem_linux::eventfd::EventFd;
use tandem_linux::tap::Tap;
use tandem_sal::{Attach, Connected, Connecting, Platform, Sal, SalError, Splits};
use tandem_store::Policy;
use tandem_swchip::{Keeper, Taps};

/// A carrier call takes at most this long.
pub const CARRIER_TIMEOUT: Duration = Duration::from_secs(5);
/// Something is kept under this name in a chip whose tables are ours.
pub const MARK: &str = "swcfgd";
/// Questions under way: no more than asicd takes in one turn.
const AT_ONCE: usize = 16;

/// The connection, while there is one: the core's, and of who makes TAPs that are to be kept.
#[derive(Clone, Default)]
pub struct Cell(Arc<Mutex<Option<Sal>>>);

impl Cell {
    /// The connection.
    pub fn lock(&self) -> MutexGuard<'_, Option<Sal>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cell {
    /// The same, unless somebody has it.
    fn try_lock(&self) -> Option<MutexGuard<'_, Option<Sal>>> {
        match self.0.try_lock() {
            Ok(sal) => Some(sal),
            Err(TryLockError::Poisoned(e)) => Some(e.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Keeper for Cell {
    fn keep(&self, name: &str, fd: BorrowedFd<'_>) -> Result<(), String> {
        match &mut *self.lock() {
            Some(sal) => sal.keep(name, fd).map_err(|e| e.to_string()),
            // whoever attaches next hands over what there is then
            None => Ok(()),
        }
    }

    fn forget(&self, name: &str) {
        if let Some(sal) = &mut *self.lock()
            && let Err(e) = sal.forget(name)
        {
            tracing::warn!("{name} is kept on: {e}");
        }
    }
}

/// The daemon's.
pub struct Wired {
    /// The carrier's socket.
    pub socket: PathBuf,
    /// What a refused second driver is told.
    pub name: String,
    /// The board.
    pub platform: Platform,
    /// Its ports, as the core knows them.
    pub front: Vec<Front>,
    /// TAPs of VLANs.
    pub taps: Arc<Taps>,
    /// The connection.
    pub cell: Cell,
    /// Tells when it ends or changes.
    pub watch: Option<Watch>,
    /// One that is being made.
    pub begun: Option<Begun>,
}

/// What tells that a connection ends, or that its device's state changes.
pub struct Watch {
    socket: OwnedFd,
    bell: Bell,
}

impl Watch {
    /// Of this connection.
    ///
    /// # Errors
    /// It is gone.
    pub fn of(sal: &Sal) -> Result<Watch, SalError> {
        Ok(Watch {
            socket: sal
                .socket()
                .try_clone_to_owned()
                .map_err(|_| CarrierError::Gone)?,
            bell: sal.state_bell()?,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    /// Whether our mark is kept.
    Mark,
    /// It is to be.
    KeepMark,
    /// A TAP is to be, by its place in the list.
    Keep(usize),
}

/// An attach under way.
pub struct Begun {
    connecting: Option<Connecting>,
    sal: Option<Sal>,
    watch: Option<Watch>,
    taps: Vec<(u16, Arc<Tap>)>,
    /// Of the TAPs, as they are in the list.
    version: u64,
    mark: EventFd,
    todo: VecDeque<Ask>,
    put: VecDeque<Ask>,
    cold: bool,
    how: Option<Attach>,
    answers: u64,
}

fn carrier(e: CarrierError) -> NotYet {
    SalError::from(e).into()
}

impl Begun {
    fn begin(wired: &Wired, cold: bool) -> Result<Begun, NotYet> {
        let splits = Splits::new();
        let connecting = Connecting::begin(&wired.socket, &wired.name, &splits, CARRIER_TIMEOUT)?;
        let version = wired.taps.version();
        Ok(Begun {
            connecting: Some(connecting),
            sal: None,
            watch: None,
            taps: wired.taps.list(),
            version,
            mark: EventFd::new().map_err(|e| NotYet::refused(e.to_string()))?,
            todo: VecDeque::from([Ask::Mark]),
            put: VecDeque::new(),
            cold,
            how: None,
            answers: 0,
        })
    }

    fn waits(&self) -> Waits {
        let (what, which) = match (&self.connecting, self.how) {
            (Some(_), _) => ("connecting to it", String::new()),
            (None, Some(_)) => ("it makes its rings", String::new()),
            (None, None) => {
                let left = self.todo.len() + self.put.len();
                ("it is handed the TAPs", format!("{left} questions left"))
            }
        };
        Waits {
            what: what.into(),
            which,
            answers: self.answers,
        }
    }

    fn answered(&mut self, yes: bool) -> Result<(), NotYet> {
        match (self.put.pop_front(), yes) {
            // an asicd that knows us not has nothing of ours: its tables are another's, or empty
            (Some(Ask::Mark), false) => {
                self.cold = true;
                self.todo.push_back(Ask::KeepMark);
                self.todo.extend((0..self.taps.len()).map(Ask::Keep));
                Ok(())
            }
            (Some(Ask::KeepMark | Ask::Keep(_)), false) => {
                Err(NotYet::refused("what was to be kept was not"))
            }
            _ => Ok(()),
        }
    }

    fn go_on(&mut self, board: &Platform) -> Result<Option<Attached>, NotYet> {
        if let Some(connecting) = self.connecting.take() {
            match connecting.go_on()? {
                Connected::Waits(connecting) => {
                    self.connecting = Some(connecting);
                    return Ok(None);
                }
                Connected::Up(sal) => {
                    if sal.platform().ports != board.ports {
                        return Err(NotYet::refused(format!(
                            "it came back as {} with other ports: restart swcfgd",
                            sal.platform().chip
                        )));
                    }
                    self.watch = Some(Watch::of(&sal)?);
                    self.sal = Some(*sal);
                    self.answers += 1;
                }
            }
        }
        let Some(mut sal) = self.sal.take() else {
            return Err(NotYet::refused("nothing was begun"));
        };
        let done = self.ask(&mut sal);
        self.sal = Some(sal);
        done
    }

    fn ask(&mut self, sal: &mut Sal) -> Result<Option<Attached>, NotYet> {
        loop {
            while self.put.len() < AT_ONCE
                && let Some(ask) = self.todo.pop_front()
            {
                match ask {
                    Ask::Mark => sal.ask_kept(MARK).map_err(carrier)?,
                    Ask::KeepMark => sal.ask_keep(MARK, self.mark.as_fd()).map_err(carrier)?,
                    Ask::Keep(n) => match self.taps.get(n) {
                        Some((vid, tap)) => sal
                            .ask_keep(&Taps::kept_name(*vid), tap.as_fd())
                            .map_err(carrier)?,
                        None => continue,
                    },
                }
                self.put.push_back(ask);
            }
            if self.put.is_empty() {
                break;
            }
            let yes = match (sal.answered(), self.put.front()) {
                (Ok(None), _) => return Ok(None),
                (Ok(Some(yes)), _) => yes,
                // as when one is made: it has no place left, and that is no reason to do without the chip
                (Err(CarrierError::Refused(why)), Some(Ask::Keep(n))) => {
                    let vid = self.taps.get(*n).map_or(0, |(vid, _)| *vid);
                    tracing::warn!("vlan{vid} is not kept, and goes with this process: {why}");
                    true
                }
                (Err(e), _) => return Err(carrier(e)),
            };
            self.answers += 1;
            self.answered(yes)?;
        }
        let how = match (self.how, self.cold) {
            (Some(how), _) => how,
            (None, cold) => {
                let how = if cold { Attach::Cold } else { Attach::Warm };
                sal.ask_attach(how)?;
                self.how = Some(how);
                how
            }
        };
        let halves = sal.attached()?;
        Ok(halves.map(|(control, io)| Attached {
            how,
            control: Box::new(control),
            io: Some(Box::new(io)),
        }))
    }
}

impl Plant for Wired {
    fn names(&self) -> Names {
        Names {
            daemon: "swcfgd",
            device: "asicd",
            origin: "the configuration",
        }
    }

    fn policy(&self) -> Policy {
        Policy::Trap
    }

    fn chip(&self) -> &str {
        &self.platform.chip
    }

    fn ports(&self) -> &[Front] {
        &self.front
    }

    // no netdev that could be moved or deleted
    fn lives(&self, _: u16) -> bool {
        true
    }

    fn set_carrier(&self, up: bool) {
        for (vid, tap) in self.taps.list() {
            if let Err(e) = tap.set_carrier(up) {
                tracing::warn!("vlan{vid}: carrier: {e}");
            }
        }
    }

    // what leaves by a port is sent there by name: no copy can leave twice
    fn is_marked(&mut self, _: u32) -> bool {
        true
    }

    fn mark(&mut self, _: u32) -> Result<(), String> {
        Ok(())
    }

    fn check(&self) -> Result<(), NotYet> {
        // who keeps a TAP there just now may wait for an answer: the core does not, and looks at its next turn
        match self.cell.try_lock().as_deref() {
            None => Ok(()),
            Some(Some(sal)) => sal.check().map_err(carrier),
            Some(None) => Err(NotYet::away("not connected")),
        }
    }

    fn begin_attach(&mut self, cold: bool) -> Result<(), NotYet> {
        self.give_up();
        self.begun = Some(Begun::begin(self, cold)?);
        Ok(())
    }

    fn go_on(&mut self) -> Result<Progress, NotYet> {
        let Some(begun) = &mut self.begun else {
            return Err(NotYet::refused("nothing was begun"));
        };
        let Some(attached) = begun.go_on(&self.platform)? else {
            return Ok(Progress::Waits(begun.waits()));
        };
        let Some(Begun {
            sal: Some(mut sal),
            watch,
            version,
            ..
        }) = self.begun.take()
        else {
            return Err(NotYet::refused("nothing was begun"));
        };
        self.platform = sal.platform().clone();
        self.watch = watch;
        let mut cell = self.cell.lock();
        if self.taps.version() != version {
            // made or removed meanwhile, when there was nobody to keep them
            hand_over(&mut sal, &self.taps);
        }
        *cell = Some(sal);
        Ok(Progress::Done(attached))
    }

    fn give_up(&mut self) {
        *self.cell.lock() = None;
        (self.watch, self.begun) = (None, None);
    }

    fn detach(&mut self) {
        self.watch = None;
        if let Some(mut sal) = self.cell.lock().take()
            && let Err(e) = sal.detach()
        {
            tracing::warn!("detach: {e}");
        }
    }

    fn sleep(&self, fds: &[BorrowedFd<'_>], limit: &Timespec) {
        fn readable(fd: BorrowedFd<'_>) -> PollFd<'_> {
            PollFd::from_borrowed_fd(fd, PollFlags::IN)
        }
        let mut all: Vec<PollFd<'_>> = fds.iter().copied().map(readable).collect();
        let begun = self.begun.as_ref();
        let connecting = begun.and_then(|b| b.connecting.as_ref());
        all.extend(connecting.and_then(Connecting::socket).map(readable));
        let new = begun.and_then(|b| b.watch.as_ref());
        all.extend(new.map(|w| readable(w.socket.as_fd())));
        // after an attach answers are others' to read; a hang-up ends every sleep
        let hang_up = |w| PollFd::from_borrowed_fd(w, PollFlags::empty());
        all.extend(self.watch.as_ref().map(|w| hang_up(w.socket.as_fd())));
        let bells = [self.watch.as_ref(), new].into_iter().flatten();
        all.extend(bells.clone().map(|w| readable(w.bell.as_fd())));
        let _ = poll(&mut all, Some(limit));
        for watch in bells {
            watch.bell.drain();
        }
    }
}

/// What is kept is what there is.
fn hand_over(sal: &mut Sal, taps: &Taps) {
    let there = taps.list();
    for (vid, tap) in &there {
        if let Err(e) = sal.keep(&Taps::kept_name(*vid), tap.as_fd()) {
            tracing::warn!("vlan{vid} is not kept, and goes with this process: {e}");
        }
    }
    for name in sal.kept().unwrap_or_default() {
        let gone = Taps::vlan_of(&name).is_some_and(|vid| there.iter().all(|(v, _)| *v != vid));
        if gone && let Err(e) = sal.forget(&name) {
            tracing::warn!("{name} is kept on: {e}");
        }
    }
}
