//! The driver's end. Calls may sleep, each with a limit.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tandem_abi::handshake::{self, Request};
use tandem_abi::layout::{DOORBELL_HEADER, REGION_MAX};
use tandem_abi::memory::read_struct;
use tandem_abi::{DriverRings, Layout, Memory, Status, get_name, raw};
use tandem_linux::eventfd::EventFd;
use tandem_linux::fdpass;
use tandem_linux::shm::Shared;

use crate::ivshmem::Peer;
use crate::message::{Incoming, KEPT_MAX, Kind, Message, NAME_MAX, receive};
use crate::{Bell, CarrierError, Region, io};

/// One step of a wait: the header's words are looked at this often even without a doorbell.
const SLICE: Duration = Duration::from_millis(10);

/// How the device is reached.
#[derive(Debug)]
enum Link {
    /// Its socket.
    Socket(OwnedFd),
    /// An ivshmem server brought the memory.
    Ivshmem {
        /// Our place there; it is left on drop.
        peer: Box<Peer>,
        /// Of our attach; 0 before it.
        epoch: u32,
        /// Number 0.
        bell: Bell,
    },
}

/// A connection to the device, and what came with it. Dropping it detaches; tables stay.
#[derive(Debug)]
pub struct DriverSide {
    link: Link,
    region: Region,
    layout: Layout,
    name: String,
    to_device: Vec<Bell>,
    to_driver: Vec<Bell>,
    timeout: Duration,
    /// Questions asked so far: tells a late answer from the one that is waited for.
    asked: u32,
}

impl DriverSide {
    /// Connects and gets a region of its own; not attached yet. `name` is what a refused second
    /// driver is told; `timeout` holds for this and every later call.
    pub fn connect(path: &Path, name: &str, timeout: Duration) -> Result<Self, CarrierError> {
        if name.len() > NAME_MAX {
            return Err(CarrierError::Protocol(format!(
                "driver name of {} bytes, at most {NAME_MAX}",
                name.len()
            )));
        }
        let socket = fdpass::connect(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => {
                CarrierError::NoAsic(path.into())
            }
            std::io::ErrorKind::WouldBlock => CarrierError::Timeout("a connection"),
            _ => io("connect to the driver socket")(e),
        })?;
        let hello = Message {
            a: u32::from(raw::TND_ABI_MAJOR),
            ..Message::named(Kind::Hello, name)
        };
        let (welcome, fds) = exchange(&socket, &hello, &[], "HELLO", timeout)?;
        if welcome.kind != Kind::Welcome {
            return Err(unexpected(&welcome));
        }
        let mut fds = fds.into_iter();
        let memfd = fds
            .next()
            .ok_or_else(|| CarrierError::Protocol("no memory came with WELCOME".into()))?;
        let region = Region::new(Shared::open(memfd, REGION_MAX)?);
        let layout = Layout::read(&region)?;
        let mut bells: Vec<Bell> = Vec::new();
        for fd in fds {
            bells.push(Arc::new(EventFd::from_fd(fd).map_err(io("eventfd"))?));
        }
        let (n_device, n_driver) = layout.doorbells();
        if (welcome.a, welcome.b) != (n_device, n_driver)
            || bells.len() as u64 != u64::from(n_device) + u64::from(n_driver)
        {
            return Err(CarrierError::Protocol(format!(
                "{} doorbells came, the directory has {n_device} + {n_driver}",
                bells.len()
            )));
        }
        let to_driver = bells.split_off(n_device as usize);
        Ok(DriverSide {
            link: Link::Socket(socket),
            region,
            layout,
            name: name.into(),
            to_device: bells,
            to_driver,
            timeout,
            asked: 0,
        })
    }

    /// Reaches the device as a VM does: as a peer of the ivshmem server at `path`. Waits until a
    /// device serves the memory. Not attached yet; to be done again when [`check`](Self::check)
    /// says that the device is gone.
    pub fn join(path: &Path, name: &str, timeout: Duration) -> Result<Self, CarrierError> {
        let mut peer = Peer::join(path, timeout)?;
        let region = peer.region().clone();
        let mut bells = Vec::new();
        peer.wait_until("a device at the ivshmem server", timeout, |p| {
            if !handshake::has_frame(&region) || handshake::state(&region).0 == raw::TND_DEV_ABSENT
            {
                return false;
            }
            let device = handshake::peers(&region).0.and_then(|id| p.bells_of(id));
            bells = device.unwrap_or(&[]).to_vec();
            let Ok(layout) = Layout::read(&region) else {
                return false;
            };
            let (n_device, n_driver) = layout.doorbells();
            bells.len() >= n_device as usize && p.own().len() >= n_driver as usize
        })?;
        let to_driver = peer.own().to_vec();
        Ok(DriverSide {
            layout: Layout::read(&region)?,
            region,
            name: name.into(),
            to_device: bells,
            link: Link::Ivshmem {
                peer: Box::new(peer),
                epoch: 0,
                bell: bell(&to_driver, DOORBELL_HEADER)?,
            },
            to_driver,
            timeout,
            asked: 0,
        })
    }

    /// Attaches: cold empties the tables, warm keeps them. The rings of an earlier attach on this
    /// connection are dead with the call. The answer's parts may go to different threads.
    pub fn attach(&mut self, cold: bool) -> Result<DriverRings<Region>, CarrierError> {
        let request = if cold {
            Request::AttachCold
        } else {
            Request::AttachWarm
        };
        self.begin(request, "attach")
    }

    /// Resets the device: as a cold attach, on a live region.
    pub fn reset(&mut self) -> Result<DriverRings<Region>, CarrierError> {
        self.begin(Request::Reset, "reset")
    }

    /// Detaches: tables stay, rings are dead.
    pub fn detach(&mut self) -> Result<(), CarrierError> {
        self.request(Request::Detach, "detach").map(|_| ())
    }

    fn begin(
        &mut self,
        request: Request,
        what: &'static str,
    ) -> Result<DriverRings<Region>, CarrierError> {
        let (offered, _) = handshake::features(&self.region);
        let known = raw::TND_FEAT_LEASE
            | raw::TND_FEAT_RESYNC
            | raw::TND_FEAT_ACTIVITY
            | raw::TND_FEAT_HW_LEARNING
            | raw::TND_FEAT_DOORBELL_HINT;
        handshake::introduce(&self.region, &self.name, offered & known);
        if let Link::Ivshmem { peer, .. } = &self.link {
            handshake::set_driver_peer(&self.region, peer.id());
        }
        let epoch = self.request(request, what)?;
        if let Link::Ivshmem { epoch: ours, .. } = &mut self.link {
            *ours = epoch;
        }
        let mut rings = DriverRings::new(&self.region, &self.layout, epoch)?;
        rings.set_features(offered & known);
        Ok(rings)
    }

    fn request(&mut self, request: Request, what: &'static str) -> Result<u32, CarrierError> {
        let seq = handshake::request(&self.region, request);
        let bell = self.from_device(DOORBELL_HEADER);
        self.to_device(DOORBELL_HEADER)?.ring();
        // counted in slices: no clock; a doorbell that rings for nothing shortens the wait
        for _ in 0..slices(self.timeout) {
            if let Some(ack) = handshake::acknowledged(&self.region, seq) {
                let status = Status::from_raw(ack.status);
                if !status.is_ok() {
                    return Err(CarrierError::Status { what, status });
                }
                return Ok(ack.epoch);
            }
            match &self.link {
                Link::Socket(_) => self.check()?,
                // what the state says may be of an earlier session
                Link::Ivshmem { .. } if self.state() == raw::TND_DEV_ABSENT => {
                    return Err(CarrierError::Gone);
                }
                Link::Ivshmem { .. } => {}
            }
            if let Ok(bell) = &bell {
                bell.wait(SLICE).map_err(io("wait"))?;
                bell.drain();
            }
        }
        Err(CarrierError::Timeout(what))
    }

    /// Whether the session stands: an error says why it doesn't.
    pub fn check(&self) -> Result<(), CarrierError> {
        let state = handshake::state(&self.region);
        match (&self.link, state) {
            (_, (raw::TND_DEV_FAILED, reason)) => Err(CarrierError::Failed(reason)),
            (Link::Socket(socket), _) if fdpass::hung_up(socket) => Err(CarrierError::Gone),
            (Link::Ivshmem { epoch: 0, .. }, (raw::TND_DEV_ABSENT, _)) => Err(CarrierError::Gone),
            (Link::Ivshmem { epoch, .. }, (state, _))
                if *epoch != 0
                    && (state != raw::TND_DEV_ATTACHED
                        || handshake::epoch(&self.region) != *epoch) =>
            {
                Err(CarrierError::Gone)
            }
            _ => Ok(()),
        }
    }

    fn state(&self) -> u32 {
        handshake::state(&self.region).0
    }

    /// The socket: a hang-up there means that the device is gone or has ended the session. Over
    /// ivshmem doorbell 0: when it rings, [`check`](Self::check).
    pub fn socket(&self) -> BorrowedFd<'_> {
        match &self.link {
            Link::Socket(socket) => socket.as_fd(),
            Link::Ivshmem { bell, .. } => bell.as_ref().as_fd(),
        }
    }

    /// The region.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Where everything lies in it.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The device's name.
    pub fn device_name(&self) -> String {
        let header: raw::tnd_header = read_struct(&self.region, 0);
        get_name(&header.device_name)
    }

    /// A copy of the platform description: `struct tnd_platform` and what follows it.
    pub fn platform(&self) -> Vec<u8> {
        let (offset, size) = self.layout.platform;
        let mut out = vec![0; size];
        self.region.read(offset, &mut out);
        out
    }

    /// The doorbell to ring for one of our producers (its ring's `doorbell`).
    pub fn to_device(&self, number: u32) -> Result<Bell, CarrierError> {
        bell(&self.to_device, number)
    }

    /// The doorbell that the device rings for one of our consumers (its ring's `doorbell`); number
    /// 0: acknowledgements and changes of state.
    pub fn from_device(&self, number: u32) -> Result<Bell, CarrierError> {
        bell(&self.to_driver, number)
    }

    /// Has the device keep a duplicate of `fd` for this and the next driver process.
    pub fn keep(&mut self, name: &str, fd: BorrowedFd<'_>) -> Result<(), CarrierError> {
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(CarrierError::Protocol(format!(
                "name of {} bytes, need 1 to {NAME_MAX}",
                name.len()
            )));
        }
        self.ask(&Message::named(Kind::Keep, name), &[fd], "KEEP")?
            .map(|_| ())
            .ok_or_else(|| CarrierError::Refused(format!("{name} was not kept")))
    }

    /// A duplicate of what is kept under `name`.
    pub fn get(&mut self, name: &str) -> Result<Option<OwnedFd>, CarrierError> {
        let answer = self.ask(&Message::named(Kind::Get, name), &[], "GET")?;
        match answer {
            None => Ok(None),
            Some((_, mut fds)) => fds
                .pop()
                .map(Some)
                .ok_or_else(|| CarrierError::Protocol(format!("GET {name} without descriptor"))),
        }
    }

    /// Lets the device close what it keeps under `name`; false: nothing was.
    pub fn forget(&mut self, name: &str) -> Result<bool, CarrierError> {
        Ok(self
            .ask(&Message::named(Kind::Forget, name), &[], "FORGET")?
            .is_some())
    }

    /// All names that are kept, sorted.
    pub fn kept(&mut self) -> Result<Vec<String>, CarrierError> {
        let mut names = Vec::new();
        for a in 0..KEPT_MAX as u32 {
            let list = Message {
                a,
                ..Message::new(Kind::List)
            };
            match self.ask(&list, &[], "LIST")? {
                Some((m, _)) => names.push(m.name),
                None => break,
            }
        }
        Ok(names)
    }

    /// `None`: there is no such name.
    fn ask(
        &mut self,
        message: &Message,
        fds: &[BorrowedFd<'_>],
        what: &'static str,
    ) -> Result<Option<(Message, Vec<OwnedFd>)>, CarrierError> {
        self.asked = self.asked.wrapping_add(1);
        let message = Message {
            b: self.asked,
            ..message.clone()
        };
        let Link::Socket(socket) = &self.link else {
            return Err(CarrierError::Refused(
                "descriptors can't be kept by an ASIC beyond ivshmem".into(),
            ));
        };
        let (answer, fds) = exchange(socket, &message, fds, what, self.timeout)?;
        match (answer.kind, answer.a) {
            (Kind::Ok, _) => Ok(Some((answer, fds))),
            (Kind::Error, 1) => Ok(None),
            (Kind::Error, _) => Err(CarrierError::Refused(answer.text)),
            _ => Err(unexpected(&answer)),
        }
    }
}

fn bell(bells: &[Bell], number: u32) -> Result<Bell, CarrierError> {
    bells
        .get(number as usize)
        .cloned()
        .ok_or_else(|| CarrierError::Protocol(format!("no doorbell {number}")))
}

fn slices(timeout: Duration) -> u128 {
    timeout.as_millis() / SLICE.as_millis() + 1
}

fn unexpected(m: &Message) -> CarrierError {
    CarrierError::Protocol(format!("unexpected answer {:?}", m.kind))
}

/// Answers to questions that timed out earlier: more than this many are not skipped.
const STALE_MAX: usize = 16;

/// Sends and waits for the answer, which carries the question's `b`.
fn exchange(
    socket: &OwnedFd,
    message: &Message,
    fds: &[BorrowedFd<'_>],
    what: &'static str,
    timeout: Duration,
) -> Result<(Message, Vec<OwnedFd>), CarrierError> {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, WouldBlock};
    match message.send(socket, fds) {
        // a refusal may have come before we said anything: read it
        Err(e) if matches!(e.kind(), BrokenPipe | ConnectionReset) => {}
        Err(e) if e.kind() == WouldBlock => return Err(CarrierError::Timeout(what)),
        r => r.map_err(io("send to the ASIC"))?,
    }
    let mut waited = false;
    for _ in 0..STALE_MAX {
        match receive(socket) {
            Incoming::Message(m, _) if m.kind == Kind::Refused => {
                return Err(CarrierError::Refused(m.text));
            }
            Incoming::Message(m, fds) if m.kind == Kind::Welcome || m.b == message.b => {
                return Ok((m, fds));
            }
            Incoming::Message(..) => {}
            Incoming::Closed => return Err(CarrierError::Gone),
            Incoming::Bad(why) => return Err(CarrierError::Protocol(why)),
            Incoming::Nothing if waited => break,
            Incoming::Nothing => {
                let limit = Timespec::try_from(timeout).ok();
                let mut fds = [PollFd::new(socket, PollFlags::IN)];
                match poll(&mut fds, limit.as_ref()) {
                    Ok(n) => waited = n == 0,
                    Err(rustix::io::Errno::INTR) => {}
                    Err(e) => return Err(io("wait for the ASIC")(e.into())),
                }
            }
        }
    }
    Err(CarrierError::Timeout(what))
}
