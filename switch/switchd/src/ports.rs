//! Front-panel ports as netdevs: one multi-queue TAP for each, kept open by asicd as well.
//!
//! ```text
//!   kernel: swpN ◄── queue 0, queue 1 ── switchd          kill -9: asicd's duplicates hold the
//!                          └── duplicates kept by asicd    netdev, its carrier, its FDB, its filters
//! ```
//!
//! A TAP loses carrier with its last descriptor, and a netdev that loses carrier makes the bridge
//! flush its FDB and FRR withdraw its routes. So the next switchd takes the same descriptors over
//! from asicd, and the kernel sees nothing.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tandem_linux::ifreq::ControlSocket;
use tandem_linux::netlink::Requests;
use tandem_linux::netlink::tc::Tc;
use tandem_linux::tap::{Tap, TapOptions};
use tandem_sal::platform::PlatformPort;

use crate::forward_mark::{ForwardMark, QUEUES};

/// One front-panel port's netdev.
#[derive(Debug)]
pub struct Port {
    /// Front-panel port of the ABI, from 1.
    pub port: u16,
    /// Name from the platform map, under which asicd keeps the descriptors.
    pub name: String,
    /// Interface index; a rename does not change it.
    pub ifindex: u32,
    /// The queues: `forward_mark::QUEUE_TRAPPED`, `forward_mark::QUEUE_COPY`.
    pub queues: [Tap; QUEUES],
    /// It was there before: a restart.
    pub taken_over: bool,
}

/// Keeps descriptors across drivers: asicd, or a map in tests.
pub trait Keeper {
    /// A duplicate of what is kept under `name`.
    fn get(&mut self, name: &str) -> anyhow::Result<Option<OwnedFd>>;
    /// Keeps a duplicate of `fd`.
    fn keep(&mut self, name: &str, fd: BorrowedFd<'_>) -> anyhow::Result<()>;
    /// All names under which something is kept.
    fn kept(&mut self) -> anyhow::Result<Vec<String>>;
    /// Closes what is kept under `name`.
    fn forget(&mut self, name: &str) -> anyhow::Result<()>;
}

/// Under which names a port's queues are kept.
fn kept_name(port: &str, queue: usize) -> String {
    format!("tap/{port}/{queue}")
}

/// Lets go of ports that are not in `map` any more, such as the neighbours of one that is split now: with the last
/// descriptor their netdevs go, and with them what was configured there.
pub fn let_go(map: &[PlatformPort], keeper: &mut dyn Keeper) -> anyhow::Result<()> {
    for kept in keeper.kept()? {
        let Some((name, _)) = kept.strip_prefix("tap/").and_then(|k| k.rsplit_once('/')) else {
            continue;
        };
        if map.iter().all(|p| p.name != name) {
            keeper.forget(&kept)?;
        }
    }
    Ok(())
}

impl Port {
    /// Takes the port over from `keeper`, or makes it there and here.
    pub fn open(map: &PlatformPort, keeper: &mut dyn Keeper) -> anyhow::Result<Port> {
        let name = map.name.clone();
        let mut kept = Vec::new();
        for q in 0..QUEUES {
            kept.extend(keeper.get(&kept_name(&name, q))?);
        }
        if let Ok(kept) = <[OwnedFd; QUEUES]>::try_from(kept)
            && let Some(port) = Self::take_over(map, kept)
        {
            return Ok(port);
        }
        let port = Self::create(map)?;
        port.keep(keeper)?;
        Ok(port)
    }

    /// `None`: the netdev was deleted or lives elsewhere; a new one is due.
    fn take_over(map: &PlatformPort, kept: [OwnedFd; QUEUES]) -> Option<Port> {
        let [q0, q1] = kept;
        let queues = [Tap::from_fd(q0).ok()?, Tap::from_fd(q1).ok()?];
        let [first, _] = &queues;
        let own = tandem_linux::netns::current_id().ok()?;
        let ns = first.netns().ok()?;
        if tandem_linux::netns::id_of(ns.as_fd()).ok()? != own {
            tracing::warn!(port = %map.name, "the kept TAP is in another network namespace: making a new one");
            return None;
        }
        let name = first.current_name().ok()?;
        let link = ControlSocket::open().ok()?.link(&name).ok()?;
        Some(Port {
            port: map.port,
            name: map.name.clone(),
            ifindex: link.ifindex,
            queues,
            taken_over: true,
        })
    }

    fn create(map: &PlatformPort) -> anyhow::Result<Port> {
        let name = &map.name;
        let control = ControlSocket::open()?;
        if control.link(name).is_ok() {
            // opening it would add queues to somebody else's device
            anyhow::bail!(
                "{name} is there already and is not kept by this instance's asicd: remove or rename it"
            );
        }
        let options = TapOptions {
            multi_queue: true,
            vnet_hdr: false,
        };
        let queues = [Tap::open(name, options)?, Tap::open(name, options)?];
        let [first, _] = &queues;
        // no carrier before the chip says so
        first.set_carrier(false)?;
        let ifindex = control.link(name)?.ifindex;
        if let Some(mac) = map.mac {
            Requests::open()
                .and_then(|mut r| r.link_mac(ifindex, &mac))
                .map_err(|e| anyhow::anyhow!("{name}: {e}"))?;
        }
        Ok(Port {
            port: map.port,
            name: name.clone(),
            ifindex,
            queues,
            taken_over: false,
        })
    }

    /// Its queues, and under which names they are kept.
    pub fn to_keep(&self) -> impl Iterator<Item = (String, BorrowedFd<'_>)> {
        let queues = self.queues.iter().enumerate();
        queues.map(|(q, tap)| (kept_name(&self.name, q), tap.as_fd()))
    }

    /// Hands duplicates to `keeper`.
    pub fn keep(&self, keeper: &mut dyn Keeper) -> anyhow::Result<()> {
        self.to_keep()
            .try_for_each(|(name, fd)| keeper.keep(&name, fd))
    }

    /// The netdev lives. Where the kernel here says that it is gone, it is in another network namespace.
    pub fn lives(&self) -> bool {
        let [first, _] = &self.queues;
        first.current_name().is_ok()
    }

    /// Marks forwarded frames; see [`crate::forward_mark`].
    pub fn attach_mark(&self, mark: &ForwardMark, tc: &mut Tc) -> anyhow::Result<()> {
        mark.attach(tc, self.ifindex)
            .map_err(|e| anyhow::anyhow!("{}: forward mark: {e}", self.name))
    }

    /// Carrier of the netdev follows the chip's port. Without a change the kernel sends no message.
    pub fn set_carrier(&self, up: bool) -> std::io::Result<()> {
        let [first, _] = &self.queues;
        first.set_carrier(up)?;
        // Routes move when the kernel's link watch has run, for a lost carrier up to a second later.
        // Asking for the carrier makes it run now. The netdev may have been renamed.
        let _ = first
            .current_name()
            .and_then(|name| ControlSocket::open()?.carrier(&name));
        Ok(())
    }
}
