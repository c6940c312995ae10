//! The daemon's plant: TAPs here, asicd behind a socket.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tandem_core::Plant;
use tandem_core::plant::{Attached, Fault, Front, Names, NotYet};
use tandem_linux::netlink::tc::{QdiscWatch, Tc};
use tandem_sal::{Attach, Platform, Sal, SalError, Splits};
use tandem_store::Policy;

use crate::forward_mark::ForwardMark;
use crate::ports::{Keeper, Port};
use crate::takeover;

/// A carrier call takes at most this long.
const CARRIER_TIMEOUT: Duration = Duration::from_secs(5);

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
    fn names(&self) -> Names {
        Names {
            daemon: "switchd",
            device: "asicd",
            origin: "the kernel",
        }
    }

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
