//! The daemon's plant: TAPs here, asicd behind a socket.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tandem_core::Plant;
use tandem_core::plant::{Attached, Fault, Front, Names, NotYet, Progress};
use tandem_linux::netlink::tc::{QdiscWatch, Tc};
use tandem_sal::{Platform, Sal, SalError, Splits};
use tandem_store::Policy;

use crate::forward_mark::ForwardMark;
use crate::ports::{Keeper, Port};
use crate::reattach::Reattach;
use crate::takeover;

/// A carrier call takes at most this long.
pub(crate) const CARRIER_TIMEOUT: Duration = Duration::from_secs(5);

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
    /// One that is being made.
    pub begun: Option<Reattach>,
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

    fn check(&self) -> Result<(), NotYet> {
        match &self.sal {
            Some(sal) => sal.check().map_err(|e| SalError::from(e).into()),
            None => Err(NotYet::away("not connected")),
        }
    }

    fn begin_attach(&mut self, cold: bool) -> Result<(), NotYet> {
        self.give_up();
        let ports = self.ports.len();
        let programs = self.mark.to_keep().len();
        let begun = Reattach::begin(
            &self.socket,
            &self.name,
            &self.splits,
            ports,
            programs,
            cold,
        )?;
        self.begun = Some(begun);
        Ok(())
    }

    fn go_on(&mut self) -> Result<Progress, NotYet> {
        let Some(begun) = &mut self.begun else {
            return Err(NotYet::refused("nothing was begun"));
        };
        let Some((how, control, io)) = begun.go_on(&self.platform, &self.ports, &mut self.mark)?
        else {
            return Ok(Progress::Waits(begun.waits()));
        };
        self.sal = self.begun.take().and_then(Reattach::into_sal);
        if let Some(sal) = &self.sal {
            self.platform = sal.platform().clone();
        }
        Ok(Progress::Done(Attached {
            how,
            control: Box::new(control),
            io: Some(Box::new(io)),
        }))
    }

    fn give_up(&mut self) {
        (self.sal, self.begun) = (None, None);
    }

    fn detach(&mut self) {
        if let Some(mut sal) = self.sal.take()
            && let Err(e) = sal.detach()
        {
            tracing::warn!("detach: {e}");
        }
    }

    fn sleep(&self, fds: &[BorrowedFd<'_>], limit: &Timespec) {
        let watch = self.watch.as_ref().map(AsFd::as_fd);
        let fds = fds.iter().copied().chain(watch);
        wait(fds, self.sal.as_ref(), self.begun.as_ref(), limit);
    }
}

/// Sleeps until one of `fds` is readable or asicd has something to say, at most `limit`. True: that came before the limit.
fn wait<'a>(
    fds: impl Iterator<Item = BorrowedFd<'a>>,
    sal: Option<&'a Sal>,
    begun: Option<&'a Reattach>,
    limit: &Timespec,
) -> bool {
    fn readable(fd: BorrowedFd<'_>) -> PollFd<'_> {
        PollFd::from_borrowed_fd(fd, PollFlags::IN)
    }
    let bell = sal.or_else(|| begun.and_then(Reattach::sal));
    let bell = bell.and_then(|s| s.state_bell().ok());
    let mut fds: Vec<PollFd<'_>> = fds.map(readable).collect();
    fds.extend(begun.and_then(Reattach::connecting).map(readable));
    fds.extend(begun.and_then(Reattach::sal).map(Sal::socket).map(readable));
    // after an attach nobody reads answers there: one that came too late would end every sleep; a hang-up does always
    let hang_up = |s: &'a Sal| PollFd::from_borrowed_fd(s.socket(), PollFlags::empty());
    fds.extend(sal.map(hang_up));
    if let Some(bell) = &bell {
        fds.push(readable(bell.as_fd()));
    }
    let woken = poll(&mut fds, Some(limit)).is_ok_and(|n| n > 0);
    if let Some(bell) = &bell {
        bell.drain();
    }
    woken
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_abi::{LayoutSpec, raw};
    use tandem_carrier::DeviceSide;
    use tandem_sal::Connected;
    use zerocopy::IntoBytes;

    /// An answer that nobody waits for any more ends no sleep; a device that goes does.
    #[test]
    fn a_late_answer_wakes_nobody() {
        let dir = std::env::temp_dir().join(format!("swd-late-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let socket = dir.join("driver.sock");
        let mut side = DeviceSide::listen(&socket, board()).unwrap();
        let begun = tandem_sal::Connecting::begin(&socket, "test", &Splits::new(), CARRIER_TIMEOUT);
        side.handle();
        let Connected::Up(mut sal) = begun.unwrap().go_on().unwrap() else {
            panic!("no welcome");
        };
        let now = Timespec::default();
        let wakes = |sal: &Sal| wait(std::iter::empty(), Some(sal), None, &now);
        assert!(!wakes(&sal));
        sal.ask_kept("nothing").unwrap();
        side.handle();
        assert!(!wakes(&sal));
        drop(side);
        assert!(wakes(&sal));
        let _ = std::fs::remove_dir_all(dir);
    }

    fn board() -> LayoutSpec {
        let head = size_of::<raw::tnd_platform>() as u32;
        let platform = raw::tnd_platform {
            struct_size: head as u16,
            port_count: 1,
            ports_offset: head,
            ..Default::default()
        };
        let port = raw::tnd_platform_port {
            port: 1,
            front_panel: 1,
            ..Default::default()
        };
        LayoutSpec {
            platform: [platform.as_bytes(), port.as_bytes()].concat(),
            ..LayoutSpec::default()
        }
    }
}
