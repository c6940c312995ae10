//! A port's cable: opening it, watching it, opening it again.
//!
//! A netdev that serves as front-panel port belongs to the switch alone. Both of its doors to the
//! local network stack are shut with a program of one instruction at clsact (packet sockets see
//! a frame before tc ingress; PACKET_QDISC_BYPASS sends past tc egress), so the host neither
//! answers ARP nor sends router solicitations or MLD reports by it, whatever addresses and
//! sysctls it has. The doors are opened again when the cable is dropped.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tandem_linux::ifreq::{ControlSocket, LinkState};
use tandem_linux::link_notify::LinkNotify;
use tandem_linux::netlink::tc::{self, Direction, Slot, Tc};
use tandem_linux::netns::{self, NetnsId};
use tandem_linux::packet_socket;
use tandem_linux::tap::Tap;

use crate::dgram;
use crate::packet::{self, Takes};
use crate::pcap::{PcapRx, PcapTx};
use crate::port::{RxPort, TxPort};
use crate::spec::{PortKind, PortSpec};
use crate::tap;
use crate::xdp;

/// Link state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Carrier, and administratively up.
    pub up: bool,
    /// Mbit/s, 0 = not known.
    pub speed_mbps: u32,
}

/// A port that can be used.
pub struct Opened {
    /// Receiving half.
    pub rx: RxPort,
    /// Sending half.
    pub tx: TxPort,
    /// Link state now.
    pub link: Link,
    /// Why it is another kind of port than the one that was asked for, in one line.
    pub note: Option<String>,
}

/// What happened to a cable.
pub enum Change {
    /// It was opened (again): use these halves from now on.
    Opened(Box<Opened>),
    /// The netdev or its namespace is gone: drop the halves, link down.
    Gone,
    /// Link state changed.
    Link(Link),
}

/// A port's connection to the outside.
pub struct Cable {
    spec: PortSpec,
    epoch_ns: u64,
    state: State,
}

enum State {
    Closed,
    Netdev(Box<Netdev>),
    Tap(TapState),
    Dgram(Arc<dgram::Socket>, Link),
    Pcap,
}

struct Netdev {
    control: ControlSocket,
    notify: LinkNotify,
    ns: NetnsId,
    ifindex: u32,
    /// As it is called now.
    name: String,
    link: Link,
    by: By,
    /// Keeps the netdev cut off; opens the doors when dropped.
    _shut: Shut,
}

/// The kind of socket on a netdev.
enum By {
    Packet {
        takes: Arc<Takes>,
        mtu: Arc<AtomicU32>,
        vlan: bool,
    },
    Xdp(xdp::Attached),
}

impl By {
    /// The netdev may take other frames than before.
    fn look(&self, control: &ControlSocket, iface: &str) {
        match self {
            By::Packet { takes, mtu, vlan } => {
                takes.set(control.features(iface).unwrap_or_default(), *vlan);
                if let Ok(now) = control.mtu(iface) {
                    mtu.store(now, Ordering::Relaxed);
                }
            }
            By::Xdp(attached) => {
                if let Ok(mtu) = control.mtu(iface) {
                    attached.set_mtu(mtu);
                }
            }
        }
    }
}

struct TapState {
    tap: Arc<Tap>,
    control: ControlSocket,
    notify: LinkNotify,
    ns: NetnsId,
    link: Link,
}

impl Cable {
    /// A cable that is not plugged in yet. `epoch_ns` is the time since 1970 at time 0 of the
    /// clock that [`TxPort::queue`] is given.
    pub fn new(spec: PortSpec, epoch_ns: u64) -> Self {
        Cable {
            spec,
            epoch_ns,
            state: State::Closed,
        }
    }

    /// The port and what it is cabled to.
    pub fn spec(&self) -> &PortSpec {
        &self.spec
    }

    /// Becomes readable when [`Cable::check`] should be called soon; it should also be called
    /// about once a second.
    pub fn notify_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::Netdev(n) => Some(n.notify.as_fd()),
            State::Tap(t) => Some(t.notify.as_fd()),
            State::Closed | State::Dgram(..) | State::Pcap => None,
        }
    }

    /// Looks at the cable: opens it if it is closed and can be opened, tells what changed.
    /// An error says why it is closed; it may be tried again later.
    pub fn check(&mut self) -> io::Result<Option<Change>> {
        match &mut self.state {
            State::Closed => self.plug().map(|o| Some(Change::Opened(Box::new(o)))),
            State::Pcap => Ok(None),
            State::Dgram(socket, link) => Ok(changed(link, link_of_socket(socket))),
            State::Netdev(n) => {
                n.notify.drain();
                let PortKind::Packet { iface, netns, .. } = &self.spec.kind else {
                    return Ok(None);
                };
                let here = match netns {
                    Some(name) => netns::open(name).and_then(|f| netns::id_of(f.as_fd())).ok(),
                    None => Some(n.ns),
                };
                // whatever it is called now: who renames a netdev does not unplug it
                let found = (here == Some(n.ns))
                    .then(|| n.control.name(n.ifindex).ok())
                    .flatten()
                    .and_then(|name| Some((n.control.link(&name).ok()?, name)))
                    .filter(|(s, _)| s.ifindex == n.ifindex);
                let Some((state, name)) = found else {
                    self.state = State::Closed;
                    return Ok(Some(Change::Gone));
                };
                if n.name != name {
                    tracing::warn!(
                        "swp{}={iface}: {} is called {name} now: at its next start asicd looks for {iface}",
                        self.spec.number,
                        n.name
                    );
                    n.name.clone_from(&name);
                }
                let iface = name.as_str();
                if matches!(n.by, By::Xdp(_)) && xdp::has_one_queue(&n.control, iface).is_err() {
                    // Frames of the other queues would be lost: it is opened again, another way
                    self.state = State::Closed;
                    return Ok(Some(Change::Gone));
                }
                n.by.look(&n.control, iface);
                let link = link_of(&n.control, iface, is_up(&n.control, iface, state));
                Ok(changed(&mut n.link, link))
            }
            State::Tap(t) => {
                t.notify.drain();
                let ns = t.tap.netns()?;
                let id = netns::id_of(ns.as_fd())?;
                if id != t.ns {
                    // It was moved to another namespace: watch it there
                    (t.control, t.notify) = netns::run_in(ns.as_fd(), || {
                        Ok((ControlSocket::open()?, LinkNotify::open()?))
                    })?;
                    t.ns = id;
                }
                let name = t.tap.current_name()?;
                let up = t.control.link(&name).is_ok_and(|s| s.admin_up);
                let link = link_of(&t.control, &name, up);
                Ok(changed(&mut t.link, link))
            }
        }
    }

    fn plug(&mut self) -> io::Result<Opened> {
        let number = self.spec.number;
        let (opened, state) = match &self.spec.kind {
            PortKind::Packet { iface, netns, xdp } => {
                netns::run_in_named(netns.as_deref(), || plug_netdev(iface, *xdp))
            }
            PortKind::Tap { iface, netns } => {
                netns::run_in_named(netns.as_deref(), || plug_tap(iface))
            }
            PortKind::Dgram { local, remote } => plug_dgram(local, remote),
            PortKind::Pcap {
                input,
                output,
                pace,
            } => plug_pcap(input, output, *pace, self.epoch_ns),
        }
        .map_err(|e| io::Error::new(e.kind(), format!("swp{number}={}: {e}", self.spec.kind)))?;
        self.state = state;
        Ok(opened)
    }
}

fn changed(old: &mut Link, new: Link) -> Option<Change> {
    if *old == new {
        return None;
    }
    *old = new;
    Some(Change::Link(new))
}

/// Administratively up, with carrier; where a driver can't be asked, as the kernel says.
fn is_up(control: &ControlSocket, iface: &str, state: LinkState) -> bool {
    state.admin_up && control.carrier(iface).unwrap_or(state.running)
}

fn link_of(control: &ControlSocket, iface: &str, up: bool) -> Link {
    Link {
        up,
        speed_mbps: control.speed_mbps(iface).ok().flatten().unwrap_or(0),
    }
}

fn plug_netdev(iface: &str, by_xdp: bool) -> io::Result<(Opened, State)> {
    let control = ControlSocket::open()?;
    let notify = LinkNotify::open()?;
    let ifindex = control
        .link(iface)
        .map_err(|e| io::Error::new(e.kind(), format!("no interface {iface}: {e}")))?
        .ifindex;
    // Shut the doors before the netdev comes up: the host never says a word by it
    let shut = Shut::new(iface, ifindex)?;
    let mtu = shut.was.mtu;
    let set_up = || {
        // What is too long is for the switch to say, by each port's own MTU; two tags must fit, too
        if mtu < PORT_MTU {
            // A driver that can't: the port then takes what the netdev takes
            let _ = control.set_mtu(iface, PORT_MTU);
        }
        control
            .set_up(iface, true)
            .map_err(|e| io::Error::new(e.kind(), format!("setting {iface} up: {e}")))
    };
    let mut note = None;
    let opened = match by_xdp.then(|| xdp::open(&control, iface, ifindex)) {
        // A driver refuses XDP on a large MTU rather than a large MTU on XDP, so it is raised afterwards
        Some(Ok(all)) => Some(all),
        Some(Err(why)) => {
            note = Some(format!("AF_PACKET, not AF_XDP: {why}"));
            None
        }
        None => None,
    };
    set_up()?;
    let (rx, tx, by) = match opened {
        Some((rx, tx, attached)) => (
            RxPort::Xdp(Box::new(rx)),
            TxPort::Xdp(Box::new(tx)),
            By::Xdp(attached),
        ),
        None => {
            let takes = Arc::new(Takes::default());
            let vlan = control.driver(iface).is_ok_and(|d| d == "veth");
            let halves = packet_socket::open(ifindex, mtu)?;
            let mtu = halves.1.mtu();
            let (rx, tx) = packet::halves(halves, Arc::clone(&takes));
            let by = By::Packet { takes, mtu, vlan };
            (RxPort::Packet(rx), TxPort::Packet(tx), by)
        }
    };
    by.look(&control, iface);
    let state = control.link(iface)?;
    let link = link_of(&control, iface, is_up(&control, iface, state));
    Ok((
        Opened { rx, tx, link, note },
        State::Netdev(Box::new(Netdev {
            control,
            notify,
            ns: netns::current_id()?,
            ifindex,
            name: iface.to_owned(),
            link,
            by,
            _shut: shut,
        })),
    ))
}

fn plug_tap(iface: &str) -> io::Result<(Opened, State)> {
    let control = ControlSocket::open()?;
    let notify = LinkNotify::open()?;
    let tap = tap::open(iface)?;
    tap.set_carrier(true)?;
    let up = control.link(iface).is_ok_and(|s| s.admin_up);
    let link = link_of(&control, iface, up);
    let (rx, tx) = tap::halves(&tap);
    Ok((
        Opened {
            rx: RxPort::Tap(rx),
            tx: TxPort::Tap(tx),
            link,
            note: None,
        },
        State::Tap(TapState {
            tap,
            control,
            notify,
            ns: netns::current_id()?,
            link,
        }),
    ))
}

fn link_of_socket(socket: &dgram::Socket) -> Link {
    Link {
        up: socket.linked(),
        speed_mbps: 0,
    }
}

fn plug_dgram(local: &std::path::Path, remote: &std::path::Path) -> io::Result<(Opened, State)> {
    let socket = dgram::Socket::open(local, remote)?;
    let link = link_of_socket(&socket);
    let (rx, tx) = dgram::halves(&socket);
    Ok((
        Opened {
            rx: RxPort::Dgram(rx),
            tx: TxPort::Dgram(Box::new(tx)),
            link,
            note: None,
        },
        State::Dgram(socket, link),
    ))
}

fn plug_pcap(
    input: &std::path::Path,
    output: &std::path::Path,
    pace: crate::spec::Pace,
    epoch_ns: u64,
) -> io::Result<(Opened, State)> {
    let rx = PcapRx::open(input, pace)
        .map_err(|e| io::Error::other(format!("{}: {e}", input.display())))?;
    let tx = PcapTx::create(output, epoch_ns)
        .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", output.display())))?;
    Ok((
        Opened {
            rx: RxPort::Pcap(Box::new(rx)),
            tx: TxPort::Pcap(Box::new(tx)),
            link: Link {
                up: true,
                speed_mbps: 0,
            },
            note: None,
        },
        State::Pcap,
    ))
}

/// Priority and handle of our filters; a start after a crash finds and replaces its own.
const PRIORITY: u16 = 1;
const HANDLE: u32 = 1;

/// MTU that a front-panel netdev gets if its driver allows it: what switches usually take.
const PORT_MTU: u32 = 9216;

/// Both doors between a netdev and the local stack, shut.
///
/// What the netdev was before is noted in the very programs that shut it (`tc filter show` prints
/// them), so that an asicd after one that was killed gives back what the first one found.
struct Shut {
    tc: Tc,
    control: ControlSocket,
    iface: String,
    ifindex: u32,
    was: Was,
    /// Says that the netdev is taken, for as long as we live.
    _claim: UnixDatagram,
}

/// Takes a netdev for this process alone: an abstract address of its network namespace, which the
/// kernel frees with the process, however it ends.
fn claim(iface: &str, ifindex: u32) -> io::Result<UnixDatagram> {
    let name = SocketAddr::from_abstract_name(format!("tandem-port-{ifindex}"))?;
    UnixDatagram::bind_addr(&name).map_err(|e| match e.kind() {
        io::ErrorKind::AddrInUse => io::Error::new(
            e.kind(),
            format!("{iface} is a port of a switch already: take another interface, or take it away there"),
        ),
        _ => e,
    })
}

/// A netdev before it became a front-panel port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Was {
    /// Bytes.
    mtu: u32,
    /// It had no clsact qdisc: that one is ours, too.
    bare: bool,
}

impl Was {
    const BARE: u32 = 1 << 31;

    fn note(self) -> u32 {
        self.mtu & !Self::BARE | if self.bare { Self::BARE } else { 0 }
    }

    fn of(note: u32) -> Self {
        Was {
            mtu: note & !Self::BARE,
            bare: note & Self::BARE != 0,
        }
    }
}

fn slot(ifindex: u32, direction: Direction) -> Slot {
    Slot {
        ifindex,
        direction,
        priority: PRIORITY,
        handle: HANDLE,
    }
}

impl Shut {
    fn new(iface: &str, ifindex: u32) -> io::Result<Self> {
        let claim = claim(iface, ifindex)?;
        let control = ControlSocket::open()?;
        let mut tc = Tc::open()?;
        let bare = tc.ensure_clsact(ifindex)?;
        let mut was = Was {
            mtu: control.mtu(iface)?,
            bare,
        };
        // A note of one that was killed, unless somebody has given the netdev another MTU since
        if let Some(note) = tc
            .classic(slot(ifindex, Direction::Ingress))?
            .and_then(|program| tc::noted(&program))
        {
            let noted = Was::of(note);
            was.bare = noted.bare;
            if was.mtu == PORT_MTU {
                was.mtu = noted.mtu;
            }
        }
        let mut shut = Shut {
            tc,
            control,
            iface: iface.to_owned(),
            ifindex,
            was,
            _claim: claim,
        };
        for direction in [Direction::Ingress, Direction::Egress] {
            shut.tc
                .replace_classic(slot(ifindex, direction), &tc::drop_all(was.note()))?;
        }
        Ok(shut)
    }
}

impl Drop for Shut {
    fn drop(&mut self) {
        // Before the note goes
        if self.was.mtu < PORT_MTU
            && let Ok(name) = self.control.name(self.ifindex)
            && let Err(e) = self.control.set_mtu(&name, self.was.mtu)
        {
            tracing::warn!("{} keeps its MTU of a port: {e}", self.iface);
        }
        let result = if self.was.bare {
            self.tc.remove_clsact(self.ifindex)
        } else {
            [Direction::Ingress, Direction::Egress]
                .into_iter()
                .try_for_each(|d| self.tc.remove_bpf(slot(self.ifindex, d)))
        };
        if let Err(e) = result {
            tracing::warn!("interface {} stays cut off: {e}", self.ifindex);
        }
    }
}
