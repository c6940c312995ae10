// SPDX-License-Identifier: Apache-2.0
//! The TAPs of routed VLANs, for who makes them and who moves their frames; and kept where they outlive both.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tandem_linux::eventfd::EventFd;
use tandem_linux::ifreq::ControlSocket;
use tandem_linux::netlink::Requests;
use tandem_linux::tap::Tap;
use tandem_vlans::{KernelTaps, TapMaker, TapOf, is_here};

/// Keeps duplicates of descriptors for whoever comes next: a TAP that nobody holds loses its carrier, and with that its
/// neighbours and routes.
pub trait Keeper: Send + Sync {
    /// Keeps a duplicate.
    ///
    /// # Errors
    /// One line.
    fn keep(&self, name: &str, fd: BorrowedFd<'_>) -> Result<(), String>;

    /// Closes it.
    fn forget(&self, name: &str);
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoKeeper;

impl Keeper for NoKeeper {
    fn keep(&self, _: &str, _: BorrowedFd<'_>) -> Result<(), String> {
        Ok(())
    }

    fn forget(&self, _: &str) {}
}

/// Its device goes, whoever holds it.
pub(crate) fn delete(tap: &Tap) -> std::io::Result<()> {
    // of one that is elsewhere the name here may be another's
    if !is_here(tap)? {
        return Ok(());
    }
    let link = ControlSocket::open()?.link(&tap.current_name()?)?;
    Ok(Requests::open()?.delete_link(link.ifindex)?)
}

/// TAPs by VLAN.
pub struct Taps {
    all: Mutex<KernelTaps>,
    /// Grows with each change of them, or of what their carrier follows.
    version: AtomicU64,
    /// Rung with it.
    bell: Arc<EventFd>,
    keeper: Arc<dyn Keeper>,
}

impl Taps {
    /// The bell.
    pub(crate) fn bell(&self) -> Arc<EventFd> {
        Arc::clone(&self.bell)
    }

    /// None yet: each will have this MAC, and be kept there; `bell` is rung with each change.
    #[must_use]
    pub fn new(mac: [u8; 6], bell: Arc<EventFd>, keeper: Arc<dyn Keeper>) -> Taps {
        Taps {
            all: Mutex::new(KernelTaps::with_mac(mac)),
            version: AtomicU64::new(1),
            bell,
            keeper,
        }
    }

    fn lock(&self) -> MutexGuard<'_, KernelTaps> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Under which name the TAP of a VLAN is kept.
    #[must_use]
    pub fn kept_name(vid: u16) -> String {
        format!("vlan/{vid}")
    }

    /// The VLAN whose TAP is kept under this name.
    #[must_use]
    pub fn vlan_of(name: &str) -> Option<u16> {
        name.strip_prefix("vlan/")?.parse().ok()
    }

    /// Takes over what was kept. False: the device is gone, or elsewhere.
    pub fn adopt(&self, vid: u16, fd: OwnedFd) -> bool {
        let there = Tap::from_fd(fd).is_ok_and(|tap| self.lock().adopt(vid, tap));
        self.touch();
        there
    }

    /// All of them.
    #[must_use]
    pub fn list(&self) -> Vec<(u16, Arc<Tap>)> {
        let all = self.lock();
        all.iter()
            .map(|(vid, tap)| (vid, Arc::clone(tap)))
            .collect()
    }

    /// Another number after each change.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Something is another way that carriers follow.
    pub fn touch(&self) {
        self.version.fetch_add(1, Ordering::Release);
        self.bell.ring();
    }

    /// A device for a VLAN, as [`TapMaker::make`].
    ///
    /// # Errors
    /// One line.
    pub fn make(&self, vid: u16) -> Result<TapOf, String> {
        let mut all = self.lock();
        let there = all.of(vid).map(Arc::clone);
        let of = all.make(vid)?;
        let is_there = |tap: &Arc<Tap>| there.as_ref().is_some_and(|t| Arc::ptr_eq(t, tap));
        let new = all.of(vid).filter(|tap| !is_there(tap)).map(Arc::clone);
        if let Some(tap) = &new {
            // none before a port is known to have it; and before anybody sees it, who may know that already
            tap.set_carrier(false)
                .map_err(|e| format!("vlan{vid}: carrier: {e}"))?;
        }
        // nobody waits for a keeper while the TAPs are locked: it may be waiting for them
        drop(all);
        // before it is kept: whoever attaches meanwhile, and is to keep what there is then, sees that there is more
        self.touch();
        if let Some(tap) = new
            && let Err(e) = self.keeper.keep(&Taps::kept_name(vid), tap.as_fd())
        {
            tracing::warn!("vlan{vid} is not kept, and goes with this process: {e}");
        }
        Ok(of)
    }

    /// As [`TapMaker::remove`].
    pub fn remove(&self, vid: u16) {
        let mut all = self.lock();
        let tap = all.of(vid).map(Arc::clone);
        all.remove(vid);
        drop(all);
        // before it is forgotten, as above
        self.touch();
        self.keeper.forget(&Taps::kept_name(vid));
        // others hold it still: its name is to be free at once
        if let Some(tap) = tap
            && let Err(e) = delete(&tap)
        {
            tracing::debug!("vlan{vid}: {e}");
        }
    }
}
