//! The device's end: listens, serves one driver, keeps descriptors for the next one.
//!
//! ```text
//!            HELLO, WELCOME            attach acknowledged
//!   nobody ────────────────► connected ───────────────────► attached
//!     ▲                        │   ▲                          │
//!     └── closed, bad message ─┘   └── detach acknowledged ───┤
//!     └── closed, bad message, DeviceSide::fail ──────────────┘
//! ```
//!
//! Drivers come by the socket, each with a fresh region ([`DeviceSide::listen`]), or through the one
//! memory of an ivshmem server ([`DeviceSide::join`]); the daemon notices no difference.
//!
//! Nothing here ever sleeps: the daemon polls [`DeviceSide::poll_fds`] and calls
//! [`DeviceSide::handle`].

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tandem_abi::handshake::{self, Ack, Request};
use tandem_abi::layout::DOORBELL_HEADER;
use tandem_abi::{Corrupt, DeviceRings, Layout, LayoutSpec, Producer, Status, raw};
use tandem_linux::eventfd::EventFd;
use tandem_linux::fdpass;
use tandem_linux::shm::Shared;

use crate::ivshmem::{PeerEvent, Seat};
use crate::message::{Incoming, KEPT_MAX, Kind, Message, receive};
use crate::{Bell, CarrierError, Region, io};

/// Connections that have not said HELLO yet; the oldest goes when one more comes.
const WAITING_MAX: usize = 8;
/// Messages taken from one connection in one call of [`DeviceSide::handle`].
const BURST: usize = 32;

/// Who drives the chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// What it calls itself.
    pub name: String,
    /// Its process; 0: in a VM.
    pub pid: u32,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.pid {
            0 => f.write_str(&self.name),
            pid => write!(f, "{} (pid {pid})", self.name),
        }
    }
}

/// What the daemon must know or do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceEvent {
    /// A driver is there. Nothing to do.
    Connected(Holder),
    /// The driver asks for this. The rings are dead already; do the work on the tables, then call
    /// [`DeviceSide::acknowledge`].
    Request(Request),
    /// The driver is gone, or its session was ended; tables stay.
    Gone {
        /// Who it was.
        holder: Holder,
        /// One line.
        reason: String,
    },
}

/// One driver's session: a region and doorbells. Over ivshmem there is no socket, and the region
/// and the doorbells to the device are the seat's.
#[derive(Debug)]
struct Session {
    socket: Option<OwnedFd>,
    holder: Holder,
    region: Region,
    layout: Layout,
    /// Rung by the driver; index = number in the directory.
    to_device: Vec<Bell>,
    /// Rung by us.
    to_driver: Vec<Bell>,
    rings: Option<DeviceRings<Region>>,
    /// Last request seen.
    request_seq: u32,
    /// Seen and not acknowledged.
    open_request: Option<Request>,
}

/// Where drivers come from.
#[derive(Debug)]
enum Entrance {
    /// Processes connect.
    Socket(Door),
    /// A VM writes requests into the memory.
    Ivshmem(Box<Seat>),
}

/// `driver.sock`.
#[derive(Debug)]
struct Door {
    listener: OwnedFd,
    path: PathBuf,
    waiting: Vec<OwnedFd>,
    kept: BTreeMap<String, OwnedFd>,
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The device's end of the carrier.
#[derive(Debug)]
pub struct DeviceSide {
    entrance: Entrance,
    spec: LayoutSpec,
    session: Option<Session>,
    epoch: u32,
    /// What an ivshmem header says while there is no session: state and reason.
    idle_state: (u32, u32),
    events: Vec<DeviceEvent>,
}

impl DeviceSide {
    /// Listens on `path`, mode 0600; its directory should be 0700. `spec` is what every driver's
    /// region will look like.
    pub fn listen(path: &Path, spec: LayoutSpec) -> Result<Self, CarrierError> {
        Layout::new(&spec)?;
        let listener = fdpass::listen(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::AddrInUse => CarrierError::InUse(path.into()),
            _ => io("listen on the driver socket")(e),
        })?;
        Ok(DeviceSide {
            entrance: Entrance::Socket(Door {
                listener,
                path: path.into(),
                waiting: Vec::new(),
                kept: BTreeMap::new(),
            }),
            spec,
            session: None,
            epoch: 0,
            idle_state: (raw::TND_DEV_READY, raw::TND_FAIL_NONE),
            events: Vec::new(),
        })
    }

    /// Takes the device's seat at the ivshmem server of `path`, within `timeout`. The memory may be
    /// that of a device process that is gone: its driver sees a state other than attached and a
    /// greater epoch, and attaches again.
    pub fn join(path: &Path, spec: LayoutSpec, timeout: Duration) -> Result<Self, CarrierError> {
        let (seat, epoch) = Seat::take(path, &spec, timeout)?;
        Ok(DeviceSide {
            entrance: Entrance::Ivshmem(Box::new(seat)),
            spec,
            session: None,
            epoch,
            idle_state: (raw::TND_DEV_READY, raw::TND_FAIL_NONE),
            events: Vec::new(),
        })
    }

    /// What to poll for input: when one is ready, call [`handle`](Self::handle).
    pub fn poll_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let (door, seat) = match &self.entrance {
            Entrance::Socket(door) => (Some(door), None),
            Entrance::Ivshmem(seat) => (None, Some(seat)),
        };
        let door = door.into_iter().flat_map(|d| {
            std::iter::once(d.listener.as_fd()).chain(d.waiting.iter().map(AsFd::as_fd))
        });
        let session = self.session.iter().flat_map(|s| {
            let socket = s.socket.iter().map(AsFd::as_fd);
            socket.chain(s.to_device.iter().map(|b| b.as_ref().as_fd()))
        });
        door.chain(seat.into_iter().flat_map(|s| s.peer.poll_fds()))
            .chain(session)
    }

    /// Who drives the chip now.
    pub fn holder(&self) -> Option<&Holder> {
        self.session.as_ref().map(|s| &s.holder)
    }

    /// True between an acknowledged attach and detach, failure or disconnect.
    pub fn attached(&self) -> bool {
        self.session.as_ref().is_some_and(|s| s.rings.is_some())
    }

    /// Epoch of the last attach; 0 before the first.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The rings, while a driver is attached. An index found corrupt: [`fail`](Self::fail).
    pub fn rings(&mut self) -> Option<&mut DeviceRings<Region>> {
        self.session.as_mut()?.rings.as_mut()
    }

    /// Features that the attached driver accepted, of those offered.
    pub fn features(&self) -> u64 {
        self.session.as_ref().map_or(0, |s| {
            let (_, accepted) = handshake::features(&s.region);
            accepted & self.spec.features
        })
    }

    /// Makes what was pushed into completion, event and RX rings visible, and rings the doorbells
    /// of consumers that sleep.
    pub fn flush(&mut self) {
        let Some(Session {
            rings: Some(rings),
            to_driver,
            ..
        }) = &mut self.session
        else {
            return;
        };
        for ring in filled(rings) {
            if ring.publish() {
                ring_bell(to_driver, ring.ring().doorbell);
            }
        }
    }

    /// A fault: the driver sees an impossible index in its rings of this kind (`TND_RING_*`), and is told to look. False:
    /// there is no driver.
    pub fn scribble(&mut self, kind: u16) -> bool {
        let Some(Session {
            rings: Some(rings),
            to_driver,
            ..
        }) = &mut self.session
        else {
            return false;
        };
        for ring in filled(rings).filter(|r| r.ring().kind == kind) {
            ring.scribble();
            ring_bell(to_driver, ring.ring().doorbell);
        }
        true
    }

    /// Before sleeping: asks the driver for doorbells. False: something is there to be done
    /// already, don't sleep.
    pub fn arm(&mut self) -> Result<bool, Corrupt> {
        let Some(Session {
            rings: Some(rings),
            region,
            request_seq,
            ..
        }) = &mut self.session
        else {
            return Ok(true);
        };
        let mut idle = handshake::pending_request(region, *request_seq).is_none();
        for pair in &mut rings.pairs {
            idle &= pair.cmd.arm()?;
        }
        idle &= rings.tx.arm()?;
        Ok(idle)
    }

    /// After waking: the driver may save its doorbells while the daemon polls the rings.
    pub fn disarm(&mut self) {
        if let Some(rings) = self.rings() {
            for pair in &mut rings.pairs {
                pair.cmd.disarm();
            }
            rings.tx.disarm();
        }
    }

    /// Takes connections, messages, doorbells and requests. Never sleeps; the work per call is
    /// bounded. Cheap enough to be called every few hundred microseconds; needed after one of
    /// [`poll_fds`](Self::poll_fds) was ready and at least every 100 ms.
    pub fn handle(&mut self) -> Vec<DeviceEvent> {
        if let Some(session) = &self.session {
            for bell in &session.to_device {
                bell.drain();
            }
        }
        self.serve_session();
        self.accept();
        self.serve_waiting();
        self.serve_seat();
        self.look_for_request();
        std::mem::take(&mut self.events)
    }

    /// Answers the open request. `Status::Ok` to an attach or reset begins a new epoch with empty
    /// rings; any other status leaves the driver without rings. The answer is the epoch.
    pub fn acknowledge(&mut self, status: Status) -> u32 {
        let Some(session) = &mut self.session else {
            return self.epoch;
        };
        let Some(request) = session.open_request.take() else {
            return self.epoch;
        };
        let mut status = status;
        session.rings = None;
        if request.attaches() && status.is_ok() {
            self.epoch = self.epoch.wrapping_add(1);
            session.layout.clear_rings(&session.region);
            handshake::set_epoch(&session.region, self.epoch);
            let (_, accepted) = handshake::features(&session.region);
            match DeviceRings::new(&session.region, &session.layout, self.epoch) {
                Ok(mut rings) => {
                    rings.set_features(accepted & self.spec.features);
                    session.rings = Some(rings);
                }
                Err(e) => {
                    tracing::error!("attach of {}: {e}", session.holder.name);
                    status = Status::Fault;
                }
            }
        }
        let mut leaves = false;
        if let (Entrance::Ivshmem(seat), Request::Detach) = (&self.entrance, request) {
            // before the answer: what comes after it is the next driver's
            seat.write_frame(&self.spec, self.epoch);
            leaves = true;
        }
        let state = if session.rings.is_some() {
            raw::TND_DEV_ATTACHED
        } else {
            raw::TND_DEV_READY
        };
        handshake::set_state(&session.region, state, raw::TND_FAIL_NONE);
        handshake::acknowledge(
            &session.region,
            session.request_seq,
            Ack {
                status: status.to_raw(),
                epoch: self.epoch,
            },
        );
        ring_bell(&session.to_driver, DOORBELL_HEADER);
        tracing::info!(
            "{}: {request:?}: {status}, epoch {}",
            session.holder,
            self.epoch
        );
        if leaves {
            self.idle_state = (raw::TND_DEV_READY, raw::TND_FAIL_NONE);
            // what a closed connection says elsewhere
            self.forget_session("detached".into());
        }
        self.epoch
    }

    /// Ends the session for a reason (`TND_FAIL_*`): the driver reads it in its header, the log
    /// says it with `detail`, and the listener goes on. Tables stay, forwarding goes on. The next
    /// [`handle`](Self::handle) reports [`DeviceEvent::Gone`].
    pub fn fail(&mut self, reason: u32, detail: &str) {
        let Some(session) = &self.session else {
            return;
        };
        if session.socket.is_some() {
            handshake::set_state(&session.region, raw::TND_DEV_FAILED, reason);
            ring_bell(&session.to_driver, DOORBELL_HEADER);
        }
        let text = format!("{}: {detail}", handshake::fail_reason_text(reason));
        tracing::error!("driver {} detached: {text}", session.holder);
        self.end_session(text, raw::TND_DEV_FAILED, reason);
    }

    /// Number of descriptors kept.
    pub fn kept(&self) -> usize {
        match &self.entrance {
            Entrance::Socket(door) => door.kept.len(),
            Entrance::Ivshmem(_) => 0,
        }
    }

    /// Ends the session. The frame of an ivshmem region is written anew, as this driver may have
    /// spoilt it, and shows `state` for `fail_reason`; that of a socket's goes with the driver.
    fn end_session(&mut self, text: String, state: u32, fail_reason: u32) {
        self.idle_state = (state, fail_reason);
        if let (Entrance::Ivshmem(seat), Some(_)) = (&self.entrance, &self.session) {
            seat.write_frame(&self.spec, self.epoch);
            seat.show(state, fail_reason);
        }
        self.forget_session(text);
    }

    fn drop_session(&mut self, reason: String) {
        self.end_session(reason, raw::TND_DEV_READY, raw::TND_FAIL_NONE);
    }

    fn forget_session(&mut self, reason: String) {
        if let Some(session) = self.session.take() {
            if let Entrance::Ivshmem(seat) = &mut self.entrance {
                seat.seen = session.request_seq;
            }
            self.events.push(DeviceEvent::Gone {
                holder: session.holder,
                reason,
            });
        }
    }

    fn accept(&mut self) {
        let Entrance::Socket(door) = &mut self.entrance else {
            return;
        };
        for _ in 0..WAITING_MAX {
            let socket = match fdpass::accept(&door.listener) {
                Ok(Some(socket)) => socket,
                Ok(None) => return,
                Err(e) => {
                    tracing::warn!("accept on {}: {e}", door.path.display());
                    return;
                }
            };
            match fdpass::peer(&socket) {
                Ok(peer) if peer.uid == fdpass::own_uid() => {
                    if door.waiting.len() == WAITING_MAX {
                        door.waiting.remove(0);
                    }
                    door.waiting.push(socket);
                }
                Ok(peer) => {
                    tracing::warn!("refused user {} (pid {})", peer.uid, peer.pid);
                    let text = format!(
                        "only user {} may drive this chip, not {}",
                        fdpass::own_uid(),
                        peer.uid
                    );
                    refuse(&socket, text);
                }
                Err(e) => tracing::warn!("peer of {}: {e}", door.path.display()),
            }
        }
    }

    /// Connections that have not said HELLO yet.
    fn serve_waiting(&mut self) {
        let Entrance::Socket(door) = &mut self.entrance else {
            return;
        };
        for socket in std::mem::take(&mut door.waiting) {
            match receive(&socket) {
                Incoming::Nothing => self.wait_on(socket),
                Incoming::Message(m, _) if m.kind == Kind::Hello => self.greet(socket, &m),
                Incoming::Closed => {}
                Incoming::Message(..) => refuse(&socket, "say HELLO first"),
                Incoming::Bad(why) => refuse(&socket, why),
            }
        }
    }

    fn wait_on(&mut self, socket: OwnedFd) {
        if let Entrance::Socket(door) = &mut self.entrance {
            door.waiting.push(socket);
        }
    }

    fn greet(&mut self, socket: OwnedFd, hello: &Message) {
        let pid = fdpass::peer(&socket).map_or(0, |p| p.pid);
        if self
            .session
            .as_ref()
            .is_some_and(|s| s.socket.as_ref().is_some_and(fdpass::hung_up))
        {
            self.drop_session("process ended".into());
        }
        if let Some(s) = &self.session {
            let holder = &s.holder;
            tracing::warn!(
                "{} (pid {pid}) refused: {holder} drives the chip",
                hello.name
            );
            refuse(
                &socket,
                format!("the chip is driven by {holder}: stop it first"),
            );
            return;
        }
        if hello.a != u32::from(raw::TND_ABI_MAJOR) {
            refuse(
                &socket,
                format!(
                    "this device speaks ABI {}.{}, the driver {}.x",
                    raw::TND_ABI_MAJOR,
                    raw::TND_ABI_MINOR,
                    hello.a
                ),
            );
            return;
        }
        let holder = Holder {
            name: hello.name.clone(),
            pid,
        };
        match self.open_session(socket, holder) {
            Ok(session) => {
                self.events
                    .push(DeviceEvent::Connected(session.holder.clone()));
                self.session = Some(session);
            }
            Err((socket, e)) => {
                tracing::error!("session for {} (pid {pid}): {e}", hello.name);
                refuse(&socket, e.to_string());
            }
        }
    }

    fn open_session(
        &self,
        socket: OwnedFd,
        holder: Holder,
    ) -> Result<Session, (OwnedFd, CarrierError)> {
        let make = || -> Result<_, CarrierError> {
            let layout = Layout::new(&self.spec)?;
            let region = Region::new(Shared::create("tandem", layout.size)?);
            layout.write(&region, &self.spec);
            handshake::set_epoch(&region, self.epoch);
            let (n_device, n_driver) = layout.doorbells();
            let bells = |n: u32| -> Result<Vec<Bell>, CarrierError> {
                (0..n)
                    .map(|_| Ok(Arc::new(EventFd::new().map_err(io("eventfd"))?)))
                    .collect()
            };
            let (to_device, to_driver) = (bells(n_device)?, bells(n_driver)?);
            let mut fds = vec![region.as_fd()];
            fds.extend(
                to_device
                    .iter()
                    .chain(&to_driver)
                    .map(|b| b.as_ref().as_fd()),
            );
            Message {
                a: n_device,
                b: n_driver,
                ..Message::new(Kind::Welcome)
            }
            .send(&socket, &fds)
            .map_err(io("welcome"))?;
            Ok((layout, region, to_device, to_driver))
        };
        match make() {
            Ok((layout, region, to_device, to_driver)) => Ok(Session {
                socket: Some(socket),
                holder,
                region,
                layout,
                to_device,
                to_driver,
                rings: None,
                request_seq: 0,
                open_request: None,
            }),
            Err(e) => Err((socket, e)),
        }
    }

    /// Messages of the driver.
    fn serve_session(&mut self) {
        for _ in 0..BURST {
            let (Entrance::Socket(door), Some(session)) = (&mut self.entrance, &self.session)
            else {
                return;
            };
            let Some(socket) = &session.socket else {
                return;
            };
            let (message, fds) = match receive(socket) {
                Incoming::Nothing => return,
                Incoming::Closed => return self.drop_session("process ended".into()),
                Incoming::Bad(why) => {
                    tracing::error!("driver {}: {why}", session.holder.name);
                    return self.drop_session(why);
                }
                Incoming::Message(m, fds) => (m, fds),
            };
            let (mut reply, fds) =
                answer(&mut door.kept, &message, fds).unwrap_or_else(|error| (error, Vec::new()));
            reply.b = message.b;
            let sent = reply.send(socket, &fds);
            if let Err(e) = sent {
                // it sends and doesn't read: no buffer of ours grows for that
                return self.drop_session(format!("driver doesn't read its answers: {e}"));
            }
        }
    }

    /// What the ivshmem server says, doorbells, and a first request.
    fn serve_seat(&mut self) {
        let Entrance::Ivshmem(seat) = &mut self.entrance else {
            return;
        };
        let mut header_bell = false;
        for (number, bell) in (0..).zip(seat.peer.own()) {
            header_bell |= bell.drain() && number == DOORBELL_HEADER;
        }
        for event in seat.peer.handle() {
            match event {
                PeerEvent::Left(id) => tracing::info!("ivshmem peer {id} is gone"),
                PeerEvent::NoServer(why) => tracing::error!(
                    "the ivshmem server is gone ({why}): the VM that is there drives on; for another one start the \
                     server, the VM and asicd again"
                ),
            }
        }
        if let Some(session) = &self.session
            && !seat.has(&session.to_driver)
        {
            self.drop_session("the VM is gone".into());
            return;
        }
        if header_bell {
            self.mend_frame();
        }
        let Entrance::Ivshmem(seat) = &mut self.entrance else {
            return;
        };
        if self.session.is_some() {
            return;
        }
        let region = seat.peer.region();
        if let Some((seq, op)) = handshake::pending_request(region, seat.seen) {
            let (to_driver, name) = match seat.driver() {
                Ok(found) => found,
                Err(why) => {
                    tracing::warn!("request {op} refused: {why}");
                    let ack = Ack {
                        status: raw::TND_ST_INVALID,
                        epoch: self.epoch,
                    };
                    seat.seen = seq;
                    handshake::acknowledge(region, seq, ack);
                    return;
                }
            };
            let holder = Holder { name, pid: 0 };
            self.events.push(DeviceEvent::Connected(holder.clone()));
            self.session = Some(Session {
                socket: None,
                holder,
                region: region.clone(),
                layout: seat.layout.clone(),
                to_device: Vec::new(),
                to_driver,
                rings: None,
                request_seq: seat.seen,
                open_request: None,
            });
        }
    }

    /// Writes the frame of an ivshmem region anew if it doesn't say any more what it should.
    fn mend_frame(&mut self) {
        let Entrance::Ivshmem(seat) = &self.entrance else {
            return;
        };
        let state = match &self.session {
            Some(s) if s.rings.is_some() => raw::TND_DEV_ATTACHED,
            Some(_) => raw::TND_DEV_READY,
            None => self.idle_state.0,
        };
        if seat.frame_stands(state, self.epoch) {
            return;
        }
        tracing::warn!("the frame of the region was overwritten: written anew");
        let (_, reason) = self.idle_state;
        // the driver's own words stay: a request may be among them
        let (name, accepted) = (
            handshake::driver_name(seat.peer.region()),
            handshake::features(seat.peer.region()).1,
        );
        seat.write_frame(&self.spec, self.epoch);
        handshake::introduce(seat.peer.region(), &name, accepted);
        seat.show(state, reason);
    }

    fn look_for_request(&mut self) {
        let Some(session) = &mut self.session else {
            return;
        };
        if session.open_request.is_some() {
            return;
        }
        let Some((seq, op)) = handshake::pending_request(&session.region, session.request_seq)
        else {
            return;
        };
        session.request_seq = seq;
        match Request::from_raw(op) {
            Some(request) => {
                session.open_request = Some(request);
                session.rings = None;
                self.events.push(DeviceEvent::Request(request));
            }
            None => {
                let ack = Ack {
                    status: raw::TND_ST_UNSUPPORTED,
                    epoch: self.epoch,
                };
                handshake::acknowledge(&session.region, seq, ack);
                ring_bell(&session.to_driver, DOORBELL_HEADER);
            }
        }
    }
}

/// The rings that the device fills.
fn filled(rings: &mut DeviceRings<Region>) -> impl Iterator<Item = &mut Producer<Region>> {
    let completions = rings.pairs.iter_mut().map(|p| &mut p.cpl);
    completions.chain([&mut rings.event, &mut rings.rx])
}

fn ring_bell(bells: &[Bell], number: u32) {
    if let Some(bell) = bells.get(number as usize) {
        bell.ring();
    }
}

fn refuse(socket: &OwnedFd, text: impl Into<String>) {
    let _ = Message::with_text(Kind::Refused, text).send(socket, &[]);
}

/// A driver's message about kept descriptors.
fn answer<'a>(
    kept: &'a mut BTreeMap<String, OwnedFd>,
    message: &Message,
    mut fds: Vec<OwnedFd>,
) -> Result<(Message, Vec<BorrowedFd<'a>>), Message> {
    let name = &message.name;
    let ok = Message::named(Kind::Ok, name);
    let absent = || Message {
        a: 1,
        ..Message::with_text(Kind::Error, format!("no descriptor is kept as {name}"))
    };
    match message.kind {
        Kind::Keep => {
            let fd = match (fds.pop(), fds.is_empty()) {
                (Some(fd), true) if !name.is_empty() => fd,
                _ => {
                    return Err(Message::with_text(
                        Kind::Error,
                        "KEEP needs a name and one descriptor",
                    ));
                }
            };
            if !kept.contains_key(name) && kept.len() >= KEPT_MAX {
                let text = format!("no room to keep {name}: {KEPT_MAX} of {KEPT_MAX} names in use");
                return Err(Message::with_text(Kind::Error, text));
            }
            kept.insert(name.clone(), fd);
            Ok((ok, Vec::new()))
        }
        Kind::Get => {
            let fd = kept.get(name).ok_or_else(absent)?;
            Ok((ok, vec![fd.as_fd()]))
        }
        Kind::Forget => {
            kept.remove(name).ok_or_else(absent)?;
            Ok((ok, Vec::new()))
        }
        Kind::List => {
            let at = message.a as usize;
            let name = kept.keys().nth(at).ok_or_else(absent)?;
            Ok((Message::named(Kind::Ok, name), Vec::new()))
        }
        other => Err(Message::with_text(
            Kind::Error,
            format!("{other:?} is not for the device"),
        )),
    }
}
