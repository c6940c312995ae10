//! A front-panel port of the daemon.

use tandem_ports::{Link, PortKind, RxPort};

use crate::poller::Poller;

/// A front-panel port as the daemon sees it.
pub struct PortSlot {
    /// Its number, from 1.
    pub number: u16,
    /// What it is cabled to; none: nothing.
    pub kind: Option<PortKind>,
    /// Receiving half.
    pub rx: Option<RxPort>,
    /// Why it is another kind than the one asked for.
    pub note: Option<String>,
    /// Link state, as the chip and its driver have it.
    pub link: Link,
    /// Link state of what it is cabled to: a fault may keep the port's own down.
    pub(crate) cable: Link,
    /// Packets of the driver that left here.
    pub cpu_tx: u64,
    /// Frames wait, as epoll said.
    pub(crate) ready: bool,
    /// Its descriptor is among those that are slept on.
    pub(crate) watched: bool,
}

impl PortSlot {
    /// Nothing is plugged in.
    pub(crate) fn new(number: u16) -> Self {
        PortSlot {
            number,
            kind: None,
            rx: None,
            note: None,
            link: Link::default(),
            cable: Link::default(),
            cpu_tx: 0,
            ready: false,
            watched: false,
        }
    }

    /// While frames come one after the other nobody needs to be told: the kernel would tell whoever watches a socket about
    /// each frame that has come and about each one that has left. True: it was watched.
    pub(crate) fn unwatch(&mut self, poller: &Poller) -> bool {
        if self.watched
            && let Some(rx @ (RxPort::Packet(_) | RxPort::Xdp(_))) = &self.rx
            && let Some(fd) = rx.fd()
        {
            poller.remove_port(fd);
            self.watched = false;
            return true;
        }
        false
    }
}
