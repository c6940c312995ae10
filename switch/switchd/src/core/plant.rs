//! What is around the core: the ports' netdevs with their programs, and the way to the device.
//!
//! ```text
//!   Core ── ports, carrier, marks ──► Plant ── attach ──► Attached { Device, SalIo }
//!                                       ├─ Wired: TAPs, tcx, asicd's socket        the daemon
//!                                       └─ any other: no netdevs, no socket        tests, simulation
//! ```

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tandem_linux::netlink::tc::{QdiscWatch, Tc};
use tandem_sal::{Attach, Device, Platform, Sal, SalError, SalIo, Splits};
use tandem_store::Policy;

use crate::forward_mark::{Fault, ForwardMark};
use crate::ports::{Keeper, Port};
use crate::takeover;

/// A carrier call takes at most this long.
const CARRIER_TIMEOUT: Duration = Duration::from_secs(5);

/// A front-panel port as the core knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front {
    /// Its number, from 1.
    pub port: u16,
    /// Its name in the platform's map.
    pub name: String,
    /// The netdev's interface index.
    pub ifindex: u32,
}

/// A device that was just attached.
pub struct Attached {
    /// Whether its tables were kept.
    pub how: Attach,
    /// Its command pairs.
    pub control: Box<dyn Device>,
    /// Its packets and events, for the io thread; none where there is no such thread.
    pub io: Option<Box<SalIo>>,
}

/// Why there is no device yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotYet {
    /// One line.
    pub text: String,
    /// A person should know: it does not go away by itself.
    pub warn: bool,
}

impl<E: std::fmt::Display> From<E> for NotYet {
    fn from(e: E) -> Self {
        NotYet {
            text: e.to_string(),
            warn: false,
        }
    }
}

/// What the core needs of what is around it.
pub trait Plant: Send {
    /// What happens to what does not fit.
    fn policy(&self) -> Policy;
    /// The chip's name.
    fn chip(&self) -> &str;
    /// The front panel, by number.
    fn ports(&self) -> &[Front];
    /// Whether the netdev of a port lives, in this network namespace or another.
    fn lives(&self, port: u16) -> bool;
    /// Carrier of all netdevs.
    fn set_carrier(&self, up: bool);
    /// Whether the forward mark is at a netdev; where that can't be told: yes.
    fn is_marked(&mut self, ifindex: u32) -> bool;
    /// What is wrong with the forward mark at a netdev; where that can't be told: nothing.
    fn mark_fault(&mut self, ifindex: u32) -> Option<Fault> {
        (!self.is_marked(ifindex)).then_some(Fault::Missing)
    }
    /// Something has happened that may have taken a mark away.
    fn marks_doubtful(&mut self) -> bool {
        false
    }
    /// Attaches the forward mark.
    ///
    /// # Errors
    /// One line.
    fn mark(&mut self, ifindex: u32) -> Result<(), String>;
    /// `learning`, which a switchd of before had turned off, is on again.
    fn relearned(&mut self) {}
    /// Whether the device is there.
    ///
    /// # Errors
    /// Why it is not: one line.
    fn check(&self) -> Result<(), String>;
    /// Attaches the device; `cold`: with empty tables in any case.
    ///
    /// # Errors
    /// It is not there (yet).
    fn attach(&mut self, cold: bool) -> Result<Attached, NotYet>;
    /// Gives the device up: it is dead, or about to be attached again.
    fn give_up(&mut self);
    /// Detaches in good order: its tables stay.
    fn detach(&mut self);
    /// Sleeps until one of `fds` is readable or the device's state changes, at most `limit`.
    fn sleep(&self, fds: &[BorrowedFd<'_>], limit: &Timespec);
}

/// The daemon's: TAPs here, asicd behind a socket.
pub struct Wired {
    /// The carrier's socket.
    pub socket: PathBuf,
    /// What a refused second driver is told.
    pub name: String,
    /// What happens to what does not fit.
    pub policy: Policy,
    /// The ports' netdevs.
    pub ports: Arc<Vec<Port>>,
    /// The same, as the core knows them.
    pub front: Vec<Front>,
    /// Ports that are split.
    pub splits: Splits,
    /// The board, with them.
    pub platform: Platform,
    /// The programs at the ports.
    pub mark: ForwardMark,
    /// To look after them.
    pub tc: Tc,
    /// Where they stand in `clsact`: says when one was deleted.
    pub watch: Option<QdiscWatch>,
    /// The connection, while there is one.
    pub sal: Option<Sal>,
}

/// The front panel of these netdevs.
#[must_use]
pub fn front(ports: &[Port]) -> Vec<Front> {
    let one = |p: &Port| Front {
        port: p.port,
        name: p.name.clone(),
        ifindex: p.ifindex,
    };
    ports.iter().map(one).collect()
}

/// Connects to asicd.
pub fn connect(socket: &std::path::Path, name: &str, splits: &Splits) -> Result<Sal, SalError> {
    Sal::connect(socket, name, splits, CARRIER_TIMEOUT)
}

impl Keeper for Sal {
    fn get(&mut self, name: &str) -> anyhow::Result<Option<OwnedFd>> {
        Ok(Sal::get(self, name)?)
    }
    fn keep(&mut self, name: &str, fd: BorrowedFd<'_>) -> anyhow::Result<()> {
        Ok(Sal::keep(self, name, fd)?)
    }
    fn kept(&mut self) -> anyhow::Result<Vec<String>> {
        Ok(Sal::kept(self)?)
    }
    fn forget(&mut self, name: &str) -> anyhow::Result<()> {
        Ok(Sal::forget(self, name).map(|_| ())?)
    }
}

impl Plant for Wired {
    fn policy(&self) -> Policy {
        self.policy
    }

    fn chip(&self) -> &str {
        &self.platform.chip
    }

    fn ports(&self) -> &[Front] {
        &self.front
    }

    fn lives(&self, port: u16) -> bool {
        let port = self.ports.iter().find(|p| p.port == port);
        port.is_some_and(Port::lives)
    }

    fn set_carrier(&self, up: bool) {
        for port in self.ports.iter() {
            let _ = port.set_carrier(up);
        }
    }

    fn is_marked(&mut self, ifindex: u32) -> bool {
        self.mark_fault(ifindex) != Some(Fault::Missing)
    }

    fn mark_fault(&mut self, ifindex: u32) -> Option<Fault> {
        self.mark.fault(&mut self.tc, ifindex).ok().flatten()
    }

    fn marks_doubtful(&mut self) -> bool {
        self.watch.as_mut().is_some_and(QdiscWatch::deleted)
    }

    fn mark(&mut self, ifindex: u32) -> Result<(), String> {
        self.mark
            .attach(&mut self.tc, ifindex)
            .map_err(|e| e.to_string())
    }

    fn relearned(&mut self) {
        if let Some(sal) = &mut self.sal
            && let Err(e) = takeover::relearned(sal)
        {
            tracing::warn!("{e}: whoever starts next turns `learning` on once more");
        }
    }

    fn check(&self) -> Result<(), String> {
        match &self.sal {
            Some(sal) => sal.check().map_err(|e| e.to_string()),
            None => Err("not connected".into()),
        }
    }

    fn attach(&mut self, cold: bool) -> Result<Attached, NotYet> {
        let mut sal = connect(&self.socket, &self.name, &self.splits)?;
        if sal.platform().ports != self.platform.ports {
            // other ports mean other netdevs: that is a restart's business
            return Err(NotYet {
                text: format!(
                    "the ASIC came back as {} with other ports: restart switchd",
                    sal.platform().chip
                ),
                warn: true,
            });
        }
        // an asicd that still keeps our ports is the one that we lost: its tables are ours
        let mut known = true;
        for port in self.ports.iter() {
            if Port::is_kept(&port.name, &mut sal)? {
                continue;
            }
            known = false;
            port.keep(&mut sal)?;
        }
        self.mark.keep(&mut sal)?;
        let how = if known && !cold {
            Attach::Warm
        } else {
            Attach::Cold
        };
        let (control, io) = sal.attach(how)?;
        self.platform = sal.platform().clone();
        self.sal = Some(sal);
        Ok(Attached {
            how,
            control: Box::new(control),
            io: Some(Box::new(io)),
        })
    }

    fn give_up(&mut self) {
        self.sal = None;
    }

    fn detach(&mut self) {
        if let Some(mut sal) = self.sal.take()
            && let Err(e) = sal.detach()
        {
            tracing::warn!("detach: {e}");
        }
    }

    fn sleep(&self, fds: &[BorrowedFd<'_>], limit: &Timespec) {
        let fds = fds.iter();
        let mut fds: Vec<PollFd<'_>> = fds
            .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
            .collect();
        let bell = self.sal.as_ref().and_then(|s| s.state_bell().ok());
        if let Some(sal) = &self.sal {
            fds.push(PollFd::from_borrowed_fd(sal.socket(), PollFlags::IN));
        }
        if let Some(bell) = &bell {
            fds.push(PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN));
        }
        if let Some(watch) = &self.watch {
            fds.push(PollFd::from_borrowed_fd(watch.as_fd(), PollFlags::IN));
        }
        let _ = poll(&mut fds, Some(limit));
        if let Some(bell) = &bell {
            bell.drain();
        }
    }
}
