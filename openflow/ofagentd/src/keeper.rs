// SPDX-License-Identifier: Apache-2.0
//! The thread that looks after cables: opening a port and asking for a netdev's state may wait for locks of the kernel,
//! so the switch's thread does neither.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tandem_linux::clock;
use tandem_linux::eventfd::EventFd;
use tandem_linux::ifreq::ControlSocket;
use tandem_linux::jobs::Jobs;
use tandem_linux::netns;
use tandem_ports::{Cable, Change, Opened, PortKind, PortSpec};
use tokio::sync::oneshot;

use crate::args::PortArg;

/// Event that may wait for the switch's thread.
pub const UPDATES: usize = 256;
const ORDERS: usize = 16;
const PERIOD: Duration = Duration::from_secs(1);

/// What happened to a port.
pub enum Event {
    /// It is new: its address, and its halves.
    Added(PortArg, [u8; 6], Box<Opened>),
    /// It is to go.
    Removed,
    /// Its cable: opened again, gone, another link.
    Cable(Change),
}

/// Which, and what.
pub struct Update {
    /// The number that controllers know.
    pub number: u32,
    /// What happened.
    pub event: Event,
}

/// What it was told to do, and where the answer goes: one line if it could not be done.
pub enum Order {
    /// Another port.
    Add(PortArg, oneshot::Sender<Result<(), String>>),
    /// Away with the port `swpN`.
    Remove(u16, oneshot::Sender<Result<(), String>>),
}

/// A port's cable, and whether it is plugged in.
pub struct Kept {
    arg: PortArg,
    cable: Cable,
    plugged: bool,
}

/// Opens a cable.
///
/// # Errors
/// It can't be opened.
pub fn open(arg: PortArg) -> io::Result<(Kept, [u8; 6], Box<Opened>)> {
    let mut cable = Cable::new(arg.spec.clone(), clock::epoch_ns());
    let Some(Change::Opened(opened)) = cable.check()? else {
        return Err(io::Error::other(format!("{} can't be opened", arg.name())));
    };
    if let Some(note) = &opened.note {
        tracing::warn!("{}={}: {note}", arg.name(), arg.spec.kind);
    }
    let mac = address(&arg.spec);
    let plugged = true;
    Ok((
        Kept {
            arg,
            cable,
            plugged,
        },
        mac,
        opened,
    ))
}

/// The address of a port: its netdev's, or for a cable without one a locally administered one that ends with its number.
fn address(spec: &PortSpec) -> [u8; 6] {
    let of = |iface: &str, ns: &Option<String>| {
        netns::run_in_named(ns.as_deref(), || ControlSocket::open()?.mac(iface)).ok()
    };
    let found = match &spec.kind {
        PortKind::Packet { iface, netns, .. } | PortKind::Tap { iface, netns } => of(iface, netns),
        PortKind::Dgram { .. } | PortKind::Pcap { .. } => None,
    };
    let [a, b] = spec.number.to_be_bytes();
    found.unwrap_or([2, 0, 0, 0, a, b])
}

/// Gives orders to the thread.
pub type Orders = Jobs<Order>;

/// The running thread. Stopping it opens the netdevs to the local stack again.
pub struct Keeper {
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts it, with the cables that are open already.
    pub fn start(
        cables: Vec<Kept>,
        to: Sender<Update>,
        bell: Arc<EventFd>,
    ) -> io::Result<(Keeper, Orders)> {
        let stop = Arc::new(EventFd::new()?);
        let wake = Arc::new(EventFd::new()?);
        let (order_to, orders) = bounded(ORDERS);
        let thread = {
            let (stop, wake) = (Arc::clone(&stop), Arc::clone(&wake));
            std::thread::Builder::new()
                .name("keeper".into())
                .spawn(move || run(cables, &orders, &to, [&bell, &wake, &stop]))?
        };
        let keeper = Keeper {
            stop,
            thread: Some(thread),
        };
        Ok((keeper, Jobs::new(order_to, wake)))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(
    mut cables: Vec<Kept>,
    orders: &Receiver<Order>,
    to: &Sender<Update>,
    [bell, wake, stop]: [&EventFd; 3],
) {
    let tell = |number, event| {
        let told = to.send(Update { number, event }).is_ok();
        bell.ring();
        told
    };
    loop {
        if !sleep(&cables, wake, stop) {
            return;
        }
        for order in orders.try_iter() {
            let (answer, done) = match order {
                Order::Add(arg, answer) => (answer, add(&mut cables, arg, &tell)),
                Order::Remove(n, answer) => (answer, remove(&mut cables, n, &tell)),
            };
            // who asked may have gone
            let _ = answer.send(done);
        }
        for kept in &mut cables {
            if let Some(change) = look(kept)
                && !tell(kept.arg.number, Event::Cable(change))
            {
                return;
            }
        }
    }
}

fn add(
    cables: &mut Vec<Kept>,
    arg: PortArg,
    tell: &impl Fn(u32, Event) -> bool,
) -> Result<(), String> {
    if let Some(k) = cables.iter().find(|k| k.arg.spec.number == arg.spec.number) {
        return Err(format!(
            "{} is cabled to {} already",
            arg.name(),
            k.arg.spec.kind
        ));
    }
    if let Some(k) = cables.iter().find(|k| k.arg.number == arg.number) {
        return Err(format!(
            "{} has the number {} already",
            k.arg.name(),
            arg.number
        ));
    }
    let number = arg.number;
    let (kept, mac, opened) = open(arg.clone()).map_err(|e| e.to_string())?;
    cables.push(kept);
    tracing::info!(
        "{}: {} is a port now, number {number}",
        arg.name(),
        arg.spec.kind
    );
    tell(number, Event::Added(arg, mac, opened));
    Ok(())
}

fn remove(
    cables: &mut Vec<Kept>,
    port: u16,
    tell: &impl Fn(u32, Event) -> bool,
) -> Result<(), String> {
    let at = cables
        .iter()
        .position(|k| k.arg.spec.number == port)
        .ok_or_else(|| format!("there is no port swp{port}"))?;
    let kept = cables.remove(at);
    tracing::info!("{}: no port any more", kept.arg.name());
    tell(kept.arg.number, Event::Removed);
    Ok(())
}

fn look(kept: &mut Kept) -> Option<Change> {
    let name = kept.arg.name();
    let up_down = |up| if up { "up" } else { "down" };
    match kept.cable.check() {
        Ok(change) => {
            let kind = &kept.cable.spec().kind;
            match change.as_ref()? {
                Change::Opened(o) => {
                    tracing::info!("{name}: {kind} is back, link {}", up_down(o.link.up));
                }
                Change::Gone => tracing::warn!("{name}: {kind} is gone, link down"),
                Change::Link(l) => tracing::info!("{name}: link {}", up_down(l.up)),
            }
            kept.plugged = !matches!(change, Some(Change::Gone));
            change
        }
        Err(e) => {
            // said once; it is tried again all the time
            if kept.plugged {
                kept.plugged = false;
                tracing::warn!("{e}");
            }
            None
        }
    }
}

/// Until a link changes, an order comes, a second has passed, or (false) the end.
fn sleep(cables: &[Kept], wake: &EventFd, stop: &EventFd) -> bool {
    let fds: Vec<BorrowedFd<'_>> = [stop.as_fd(), wake.as_fd()]
        .into_iter()
        .chain(cables.iter().filter_map(|k| k.cable.notify_fd()))
        .collect();
    let mut polled: Vec<PollFd<'_>> = fds
        .iter()
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    let limit = Timespec::try_from(PERIOD).ok();
    let _ = poll(&mut polled, limit.as_ref());
    wake.drain();
    !stop.drain()
}
