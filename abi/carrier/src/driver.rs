//! The driver's end. Calls may sleep, each with a limit; for whoever can't wait there are all of them in two halves, of which
//! the second one says *not yet*: [`Connecting`], [`DriverSide::begin_attach`], [`DriverSide::ask_kept`].

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
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
    /// Those that were asked without waiting and are not answered, oldest first.
    owed: VecDeque<u32>,
    /// An attach that was begun.
    begun: Option<Begun>,
}

/// An attach that was asked for.
#[derive(Clone, Copy, Debug)]
struct Begun {
    /// Number of the request.
    seq: u32,
    /// Features that this end has said it takes.
    features: u64,
}

/// A connection to the device's socket that the device has not answered yet.
#[derive(Debug)]
pub struct Connecting {
    path: PathBuf,
    /// None: too many wait at the door.
    socket: Option<OwnedFd>,
    name: String,
    timeout: Duration,
}

/// What [`Connecting::go_on`] comes to.
#[derive(Debug)]
pub enum Connection {
    /// Nothing was heard.
    Waits(Connecting),
    /// It stands.
    Up(DriverSide),
}

impl Connecting {
    /// Says HELLO, and doesn't wait. As [`DriverSide::connect`]; `timeout` is of the later calls. A device that takes no
    /// connections, so that there is no room for one more to wait, is one that has not answered.
    ///
    /// # Errors
    /// Nobody listens.
    pub fn begin(path: &Path, name: &str, timeout: Duration) -> Result<Self, CarrierError> {
        if name.len() > NAME_MAX {
            return Err(CarrierError::Protocol(format!(
                "driver name of {} bytes, at most {NAME_MAX}",
                name.len()
            )));
        }
        Ok(Connecting {
            path: path.into(),
            socket: hello(path, name)?,
            name: name.into(),
            timeout,
        })
    }

    /// Readable when the device has answered; none while there is no connection: nothing tells then when there is room for
    /// one.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    /// Looks whether it has.
    ///
    /// # Errors
    /// It has refused, or gone, or its answer can't be used.
    pub fn go_on(mut self) -> Result<Connection, CarrierError> {
        let socket = match self.socket.take() {
            Some(socket) => Some(socket),
            None => hello(&self.path, &self.name)?,
        };
        let Some(socket) = socket else {
            return Ok(Connection::Waits(self));
        };
        // WELCOME answers whatever was asked
        match heard(&socket, 0)? {
            None => {
                self.socket = Some(socket);
                Ok(Connection::Waits(self))
            }
            Some((welcome, fds)) => self.welcomed(socket, &welcome, fds).map(Connection::Up),
        }
    }

    fn welcomed(
        self,
        socket: OwnedFd,
        welcome: &Message,
        fds: Vec<OwnedFd>,
    ) -> Result<DriverSide, CarrierError> {
        if welcome.kind != Kind::Welcome {
            return Err(unexpected(welcome));
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
            name: self.name,
            to_device: bells,
            to_driver,
            timeout: self.timeout,
            asked: 0,
            owed: VecDeque::new(),
            begun: None,
        })
    }
}

impl DriverSide {
    /// Connects and gets a region of its own; not attached yet. `name` is what a refused second
    /// driver is told; `timeout` holds for this and every later call.
    pub fn connect(path: &Path, name: &str, timeout: Duration) -> Result<Self, CarrierError> {
        let mut begun = Connecting::begin(path, name, timeout)?;
        let Some(socket) = begun.socket.take() else {
            return Err(CarrierError::Timeout("a connection"));
        };
        let (welcome, fds) = wait_for(&socket, 0, "HELLO", timeout)?;
        begun.welcomed(socket, &welcome, fds)
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
            owed: VecDeque::new(),
            begun: None,
        })
    }

    /// Attaches: cold empties the tables, warm keeps them. The rings of an earlier attach on this
    /// connection are dead with the call. The answer's parts may go to different threads.
    pub fn attach(&mut self, cold: bool) -> Result<DriverRings<Region>, CarrierError> {
        let begun = self.begin(if cold {
            Request::AttachCold
        } else {
            Request::AttachWarm
        })?;
        let epoch = self.wait(begun.seq, "attach")?;
        self.rings(begun, epoch)
    }

    /// Asks for an attach; [`attached`](Self::attached) says when it is made.
    ///
    /// # Errors
    /// The device's doorbells are not there.
    pub fn ask_attach(&mut self, cold: bool) -> Result<(), CarrierError> {
        let request = if cold {
            Request::AttachCold
        } else {
            Request::AttachWarm
        };
        self.begin(request).map(|_| ())
    }

    /// The attach that was [asked](Self::ask_attach) for; `None`: not yet. The device rings doorbell 0.
    ///
    /// # Errors
    /// It was refused, or the device is gone.
    pub fn attached(&mut self) -> Result<Option<DriverRings<Region>>, CarrierError> {
        let begun = self.begun.ok_or_else(|| {
            CarrierError::Protocol("an attach was to be made that nobody has asked for".into())
        })?;
        match self.acknowledged(begun.seq, "attach")? {
            Some(epoch) => self.rings(begun, epoch).map(Some),
            None => Ok(None),
        }
    }

    /// Resets the device: as a cold attach, on a live region.
    pub fn reset(&mut self) -> Result<DriverRings<Region>, CarrierError> {
        let begun = self.begin(Request::Reset)?;
        let epoch = self.wait(begun.seq, "reset")?;
        self.rings(begun, epoch)
    }

    /// Detaches: tables stay, rings are dead.
    pub fn detach(&mut self) -> Result<(), CarrierError> {
        self.request(Request::Detach, "detach").map(|_| ())
    }

    fn begin(&mut self, request: Request) -> Result<Begun, CarrierError> {
        let (offered, _) = handshake::features(&self.region);
        let known = raw::TND_FEAT_LEASE
            | raw::TND_FEAT_RESYNC
            | raw::TND_FEAT_ACTIVITY
            | raw::TND_FEAT_HW_LEARNING
            | raw::TND_FEAT_DOORBELL_HINT
            | raw::TND_FEAT_FLOWS
            | raw::TND_FEAT_FLOW_MEMBERS
            | raw::TND_FEAT_FLOW_FIDS
            | raw::TND_FEAT_FLOW_CLASS
            | raw::TND_FEAT_FLOW_EGRESS;
        let features = offered & known;
        handshake::introduce(&self.region, &self.name, features);
        if let Link::Ivshmem { peer, .. } = &self.link {
            handshake::set_driver_peer(&self.region, peer.id());
        }
        let seq = self.send(request)?;
        let begun = Begun { seq, features };
        self.begun = Some(begun);
        Ok(begun)
    }

    fn rings(&mut self, begun: Begun, epoch: u32) -> Result<DriverRings<Region>, CarrierError> {
        self.begun = None;
        if let Link::Ivshmem { epoch: ours, .. } = &mut self.link {
            *ours = epoch;
        }
        let mut rings = DriverRings::new(&self.region, &self.layout, epoch)?;
        rings.set_features(begun.features);
        Ok(rings)
    }

    fn request(&mut self, request: Request, what: &'static str) -> Result<u32, CarrierError> {
        let seq = self.send(request)?;
        self.wait(seq, what)
    }

    fn send(&mut self, request: Request) -> Result<u32, CarrierError> {
        let seq = handshake::request(&self.region, request);
        self.to_device(DOORBELL_HEADER)?.ring();
        Ok(seq)
    }

    /// The epoch of a request that was acknowledged.
    fn acknowledged(&self, seq: u32, what: &'static str) -> Result<Option<u32>, CarrierError> {
        if let Some(ack) = handshake::acknowledged(&self.region, seq) {
            let status = Status::from_raw(ack.status);
            if !status.is_ok() {
                return Err(CarrierError::Status { what, status });
            }
            return Ok(Some(ack.epoch));
        }
        match &self.link {
            Link::Socket(_) => self.check()?,
            // what the state says may be of an earlier session
            Link::Ivshmem { .. } if self.state() == raw::TND_DEV_ABSENT => {
                return Err(CarrierError::Gone);
            }
            Link::Ivshmem { .. } => {}
        }
        Ok(None)
    }

    fn wait(&mut self, seq: u32, what: &'static str) -> Result<u32, CarrierError> {
        let bell = self.from_device(DOORBELL_HEADER);
        // counted in slices: no clock; a doorbell that rings for nothing shortens the wait
        for _ in 0..slices(self.timeout) {
            if let Some(epoch) = self.acknowledged(seq, what)? {
                return Ok(epoch);
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

    /// What the device can: `TND_FEAT_*`.
    pub fn offered(&self) -> u64 {
        handshake::features(&self.region).0
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

    /// Asks whether something is kept under `name`; [`answered`](Self::answered) says so. Several questions may be under way.
    ///
    /// # Errors
    /// It can't be asked.
    pub fn ask_kept(&mut self, name: &str) -> Result<(), CarrierError> {
        self.put(&Message::named(Kind::Get, name), &[], "GET")?;
        self.owed.push_back(self.asked);
        Ok(())
    }

    /// Asks the device to [`keep`](Self::keep) a duplicate; [`answered`](Self::answered) says whether it does.
    ///
    /// # Errors
    /// It can't be asked.
    pub fn ask_keep(&mut self, name: &str, fd: BorrowedFd<'_>) -> Result<(), CarrierError> {
        self.put(&Message::named(Kind::Keep, name), &[fd], "KEEP")?;
        self.owed.push_back(self.asked);
        Ok(())
    }

    /// The answer to the oldest question that is not answered: whether it is there, or was done; `None`: not yet. The
    /// [socket](Self::socket) is readable then.
    ///
    /// # Errors
    /// Refused, or the device is gone.
    pub fn answered(&mut self) -> Result<Option<bool>, CarrierError> {
        let Some(oldest) = self.owed.front() else {
            return Err(CarrierError::Protocol(
                "an answer was to come that nobody has asked for".into(),
            ));
        };
        let Some((answer, fds)) = heard(self.asks()?, *oldest)? else {
            return Ok(None);
        };
        self.owed.pop_front();
        Ok(Some(of_kept(answer, fds)?.is_some()))
    }

    fn put(
        &mut self,
        message: &Message,
        fds: &[BorrowedFd<'_>],
        what: &'static str,
    ) -> Result<(), CarrierError> {
        if message.name.len() > NAME_MAX {
            return Err(CarrierError::Protocol(format!(
                "name of {} bytes, at most {NAME_MAX}",
                message.name.len()
            )));
        }
        self.asked = self.asked.wrapping_add(1);
        let message = Message {
            b: self.asked,
            ..message.clone()
        };
        tell(self.asks()?, &message, fds, what)
    }

    /// Where questions go.
    fn asks(&self) -> Result<&OwnedFd, CarrierError> {
        match &self.link {
            Link::Socket(socket) => Ok(socket),
            Link::Ivshmem { .. } => Err(CarrierError::Refused(
                "descriptors can't be kept by an ASIC beyond ivshmem".into(),
            )),
        }
    }

    /// `None`: there is no such name.
    fn ask(
        &mut self,
        message: &Message,
        fds: &[BorrowedFd<'_>],
        what: &'static str,
    ) -> Result<Option<(Message, Vec<OwnedFd>)>, CarrierError> {
        self.put(message, fds, what)?;
        let (answer, fds) = wait_for(self.asks()?, self.asked, what, self.timeout)?;
        of_kept(answer, fds)
    }
}

/// Connects and says HELLO. `None`: somebody listens, and takes nobody: too many wait.
fn hello(path: &Path, name: &str) -> Result<Option<OwnedFd>, CarrierError> {
    let socket = match fdpass::connect(path) {
        Ok(socket) => socket,
        Err(e) => {
            return match e.kind() {
                std::io::ErrorKind::WouldBlock => Ok(None),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => {
                    Err(CarrierError::NoAsic(path.into()))
                }
                _ => Err(io("connect to the driver socket")(e)),
            };
        }
    };
    let hello = Message {
        a: u32::from(raw::TND_ABI_MAJOR),
        ..Message::named(Kind::Hello, name)
    };
    tell(&socket, &hello, &[], "HELLO")?;
    Ok(Some(socket))
}

/// An answer about what is kept; `None`: there is no such name.
fn of_kept(
    answer: Message,
    fds: Vec<OwnedFd>,
) -> Result<Option<(Message, Vec<OwnedFd>)>, CarrierError> {
    match (answer.kind, answer.a) {
        (Kind::Ok, _) => Ok(Some((answer, fds))),
        (Kind::Error, 1) => Ok(None),
        (Kind::Error, _) => Err(CarrierError::Refused(answer.text)),
        _ => Err(unexpected(&answer)),
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

/// Sends.
fn tell(
    socket: &OwnedFd,
    message: &Message,
    fds: &[BorrowedFd<'_>],
    what: &'static str,
) -> Result<(), CarrierError> {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, WouldBlock};
    match message.send(socket, fds) {
        // a refusal may have come before we said anything: it is read
        Err(e) if matches!(e.kind(), BrokenPipe | ConnectionReset) => Ok(()),
        Err(e) if e.kind() == WouldBlock => Err(CarrierError::Timeout(what)),
        r => r.map_err(io("send to the ASIC")),
    }
}

/// The answer to a question, which carries its `b`; `None`: it has not come.
fn heard(socket: &OwnedFd, b: u32) -> Result<Option<(Message, Vec<OwnedFd>)>, CarrierError> {
    for _ in 0..STALE_MAX {
        match receive(socket) {
            Incoming::Message(m, _) if m.kind == Kind::Refused => {
                return Err(CarrierError::Refused(m.text));
            }
            Incoming::Message(m, fds) if m.kind == Kind::Welcome || m.b == b => {
                return Ok(Some((m, fds)));
            }
            Incoming::Message(..) => {}
            Incoming::Closed => return Err(CarrierError::Gone),
            Incoming::Bad(why) => return Err(CarrierError::Protocol(why)),
            Incoming::Nothing => return Ok(None),
        }
    }
    Err(CarrierError::Protocol(format!(
        "{STALE_MAX} answers came that nobody waits for"
    )))
}

/// Waits for the answer to a question.
fn wait_for(
    socket: &OwnedFd,
    b: u32,
    what: &'static str,
    timeout: Duration,
) -> Result<(Message, Vec<OwnedFd>), CarrierError> {
    let limit = Timespec::try_from(timeout).ok();
    for _ in 0..STALE_MAX {
        if let Some(answer) = heard(socket, b)? {
            return Ok(answer);
        }
        let mut fds = [PollFd::new(socket, PollFlags::IN)];
        match poll(&mut fds, limit.as_ref()) {
            Ok(0) => break,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(io("wait for the ASIC")(e.into())),
        }
    }
    Err(CarrierError::Timeout(what))
}
