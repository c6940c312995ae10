// SPDX-License-Identifier: Apache-2.0
//! The thread that looks after cables ([`tandem_ports::kept`]), and takes orders for more and fewer of them.

use std::io;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use tandem_linux::clock;
use tandem_linux::eventfd::EventFd;
use tandem_linux::ifreq::ControlSocket;
use tandem_linux::jobs::Jobs;
use tandem_linux::netns;
use tandem_ports::{Change, Keeper, Kept, Opened, PortKind, PortSpec, kept};
use tokio::sync::oneshot;

use crate::args::PortArg;
use crate::lsi::At;

/// Event that may wait for the switch's thread.
pub const UPDATES: usize = 256;
const ORDERS: usize = 16;

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
    /// Whose, and the number that its controllers know.
    pub at: At,
    /// What happened.
    pub event: Event,
}

/// What it was told to do, and where the answer goes: one line if it could not be done.
pub enum Order {
    /// Another port of a switch.
    Add(u16, PortArg, oneshot::Sender<Result<(), String>>),
    /// Away with the port `swpN`.
    Remove(u16, oneshot::Sender<Result<(), String>>),
}

/// A port of controllers', and its cable.
pub struct Port {
    at: At,
    cable: Kept,
}

/// Opens a cable.
///
/// # Errors
/// It can't be opened.
pub fn open(lsi: u16, arg: &PortArg) -> io::Result<(Port, [u8; 6], Box<Opened>)> {
    let (cable, opened) = Kept::open(arg.spec.clone(), arg.name(), clock::epoch_ns())?;
    let at = At {
        lsi,
        number: arg.number,
    };
    Ok((Port { at, cable }, address(&arg.spec), opened))
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

/// Starts the thread, with the cables that are open already.
pub fn start(
    cables: Vec<Port>,
    to: Sender<Update>,
    bell: Arc<EventFd>,
) -> io::Result<(Keeper, Orders)> {
    let wake = Arc::new(EventFd::new()?);
    let (order_to, orders) = bounded(ORDERS);
    let handle = Jobs::new(order_to, Arc::clone(&wake));
    let keeper = Keeper::start(move |stop| run(cables, &orders, &to, [&bell, &wake, stop]))?;
    Ok((keeper, handle))
}

fn run(
    mut cables: Vec<Port>,
    orders: &Receiver<Order>,
    to: &Sender<Update>,
    [bell, wake, stop]: [&EventFd; 3],
) {
    let tell = |at, event| {
        let told = to.send(Update { at, event }).is_ok();
        bell.ring();
        told
    };
    while kept::sleep(cables.iter().map(|p| &p.cable), Some(wake), stop) {
        for order in orders.try_iter() {
            let (answer, done) = match order {
                Order::Add(lsi, arg, answer) => (answer, add(&mut cables, lsi, arg, &tell)),
                Order::Remove(n, answer) => (answer, remove(&mut cables, n, &tell)),
            };
            // who asked may have gone
            let _ = answer.send(done);
        }
        for port in &mut cables {
            if let Some(change) = port.cable.look()
                && !tell(port.at, Event::Cable(change))
            {
                return;
            }
        }
    }
}

fn add(
    cables: &mut Vec<Port>,
    lsi: u16,
    arg: PortArg,
    tell: &impl Fn(At, Event) -> bool,
) -> Result<(), String> {
    if let Some(p) = cables
        .iter()
        .find(|p| p.cable.spec().number == arg.spec.number)
    {
        return Err(format!(
            "{} is cabled to {} already",
            arg.name(),
            p.cable.spec().kind
        ));
    }
    let number = arg.number;
    if let Some(p) = cables.iter().find(|p| p.at == At { lsi, number }) {
        return Err(format!(
            "{} has the number {} already",
            p.cable.name(),
            arg.number
        ));
    }
    let (port, mac, opened) = open(lsi, &arg).map_err(|e| e.to_string())?;
    let at = port.at;
    cables.push(port);
    tracing::info!(
        "{}: {} is a port now, number {number}",
        arg.name(),
        arg.spec.kind
    );
    tell(at, Event::Added(arg, mac, opened));
    Ok(())
}

fn remove(
    cables: &mut Vec<Port>,
    port: u16,
    tell: &impl Fn(At, Event) -> bool,
) -> Result<(), String> {
    let at = cables
        .iter()
        .position(|p| p.cable.spec().number == port)
        .ok_or_else(|| format!("there is no port swp{port}"))?;
    let port = cables.remove(at);
    tracing::info!("{}: no port any more", port.cable.name());
    tell(port.at, Event::Removed);
    Ok(())
}
