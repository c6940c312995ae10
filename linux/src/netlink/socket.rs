//! Sockets: one that listens ([`Monitor`]) and one that asks ([`Requests`]).
//!
//! ```text
//!  Monitor   route socket, all groups ─┐  order kept across kinds
//!            nftables socket ──────────┴► datagrams; ENOBUFS = overrun
//!  Requests  one message, one answer (errno + the kernel's text), or a dump by steps
//! ```

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use netlink_sys::{Socket, SocketAddr, protocols};

use super::consts::{
    NLM_F_ACK, NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_DUMP_INTR, NLMSG_DONE, NLMSG_ERROR,
    NLMSG_OVERRUN, group,
};
pub use super::dump::Dump;
pub use super::error::{Error, Result};
use super::mmsg::Mmsg;
use super::types::{Event, Object, Route};
use super::wire::{Attrs, HEADER_LEN, Msg, Msgs, Writer, text, u32_at};
use super::{link, neigh, nft, route};

/// Which protocol a datagram came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// NETLINK_ROUTE.
    Route,
    /// NETLINK_NETFILTER.
    Netfilter,
}

/// Decodes every message of a datagram. Unknown messages are skipped.
pub fn decode(protocol: Protocol, datagram: &[u8], mut sink: impl FnMut(Event)) {
    for msg in Msgs::new(datagram) {
        if msg.kind == NLMSG_OVERRUN {
            sink(Event::Overrun);
        } else if let Some(event) = decode_one(protocol, &msg) {
            sink(event);
        }
    }
}

fn decode_one(protocol: Protocol, msg: &Msg<'_>) -> Option<Event> {
    match protocol {
        Protocol::Route => super::decode_route_family(msg),
        Protocol::Netfilter => nft::decode(msg),
    }
}

/// A message without a body that says that others were lost.
fn lost() -> [u8; HEADER_LEN] {
    let mut message = [0; HEADER_LEN];
    message[..4].copy_from_slice(&(HEADER_LEN as u32).to_ne_bytes());
    message[4..6].copy_from_slice(&NLMSG_OVERRUN.to_ne_bytes());
    message
}

/// Listens to everything that decides forwarding.
///
/// `NETLINK_NO_ENOBUFS` stays off, so that losses are seen.
#[derive(Debug)]
pub struct Monitor {
    route: Socket,
    netfilter: Option<Socket>,
    mmsg: Mmsg,
}

impl Monitor {
    /// Opens the sockets in the calling thread's network namespace. `rcvbuf`: bytes of kernel memory
    /// for messages not yet read (forced beyond `rmem_max` when privileged).
    ///
    /// # Errors
    /// When the routing socket can't be had; a kernel without nftables is fine.
    pub fn open(rcvbuf: usize) -> Result<Self> {
        const GROUPS: [u32; 14] = [
            group::LINK,
            group::NEIGH,
            group::IPV4_IFADDR,
            group::IPV4_ROUTE,
            group::IPV4_RULE,
            group::IPV6_IFADDR,
            group::IPV6_ROUTE,
            group::IPV6_RULE,
            group::IPV4_NETCONF,
            group::IPV6_NETCONF,
            group::MDB,
            group::NEXTHOP,
            group::BRVLAN,
            group::TC,
        ];
        let route = listen(protocols::NETLINK_ROUTE, rcvbuf, &GROUPS)?;
        let netfilter = listen(protocols::NETLINK_NETFILTER, 1 << 20, &[group::NFTABLES]).ok();
        Ok(Self {
            route,
            netfilter,
            mmsg: Mmsg::new(),
        })
    }

    /// Takes fresh sockets in place of those that lost messages, with all that is still in them: reading it to throw it
    /// away takes longer. What happens from now on is seen. `false`: there are none to be had, and all is as it was.
    pub fn renew(&mut self, rcvbuf: usize) -> bool {
        match Self::open(rcvbuf) {
            Ok(new) if new.netfilter.is_some() || self.netfilter.is_none() => {
                (self.route, self.netfilter) = (new.route, new.netfilter);
                true
            }
            _ => false,
        }
    }

    /// The descriptors to wait on.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [
            Some(borrow(&self.route)),
            self.netfilter.as_ref().map(borrow),
        ]
        .into_iter()
        .flatten()
    }

    /// Bytes of kernel memory that the routing socket really got.
    #[must_use]
    pub fn receive_buffer(&self) -> usize {
        self.route.get_rx_buf_sz().unwrap_or(0)
    }

    /// Takes what is there, up to one batch for each socket, without waiting. `true`: the kernel
    /// dropped messages (the ones given are still good, in order). If only the netfilter socket's are lost, it is no overrun of
    /// all: `sink` gets an NLMSG_OVERRUN of that protocol.
    ///
    /// # Errors
    /// Anything but `ENOBUFS`.
    pub fn recv(&mut self, mut sink: impl FnMut(Protocol, &[u8])) -> Result<(usize, bool)> {
        let (mut datagrams, mut overrun) = (0, false);
        let sockets = [
            (Protocol::Route, Some(&self.route)),
            (Protocol::Netfilter, self.netfilter.as_ref()),
        ];
        for (protocol, socket) in sockets {
            let Some(socket) = socket else { continue };
            let missed = match self.mmsg.recv(borrow(socket), |d| sink(protocol, d)) {
                Ok(got) => {
                    datagrams += got.datagrams;
                    got.truncated
                }
                Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => true,
                Err(e) => return Err(Error::io("receive notifications", &e)),
            };
            match protocol {
                Protocol::Route => overrun |= missed,
                Protocol::Netfilter if missed => sink(protocol, &lost()),
                Protocol::Netfilter => {}
            }
        }
        Ok((datagrams, overrun))
    }
}

fn borrow(socket: &Socket) -> BorrowedFd<'_> {
    socket.as_fd()
}

pub(super) fn open(protocol: isize) -> Result<Socket> {
    let mut socket = Socket::new(protocol).map_err(|e| Error::io("open a netlink socket", &e))?;
    socket
        .bind(&SocketAddr::new(0, 0))
        .map_err(|e| Error::io("bind a netlink socket", &e))?;
    Ok(socket)
}

fn force_rcvbuf(socket: &Socket, bytes: usize) {
    // without CAP_NET_ADMIN: as much as rmem_max allows
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(borrow(socket), bytes).is_err() {
        let _ = socket.set_rx_buf_sz(bytes as i32);
    }
}

pub(super) fn listen(protocol: isize, rcvbuf: usize, groups: &[u32]) -> Result<Socket> {
    let socket = open(protocol)?;
    force_rcvbuf(&socket, rcvbuf);
    for group in groups {
        // an old kernel may lack a group (next hops: 5.3); what it doesn't have it doesn't tell
        let _ = socket.add_membership(*group);
    }
    Ok(socket)
}

/// How a step of a dump ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// There is more.
    More,
    /// That was all. `interrupted`: the tables changed meanwhile (`NLM_F_DUMP_INTR`), so objects may
    /// be missing; dump again.
    Done {
        /// Dump again.
        interrupted: bool,
    },
}

#[derive(Debug)]
struct Running {
    what: Dump,
    seq: u32,
    interrupted: bool,
}

/// Asks the kernel: changes with an answer each, and dumps.
#[derive(Debug)]
pub struct Requests {
    route: Socket,
    netfilter: Option<Socket>,
    /// None: not asked yet, or a kernel without IPsec.
    xfrm: Option<Socket>,
    seq: u32,
    writer: Writer,
    pub(super) buf: Vec<u8>,
    running: Option<Running>,
}

/// Bytes that one receive may bring; the kernel fills what it is given, up to 32 KiB.
pub(super) const RECV: usize = 64 * 1024;
/// Messages of one batch before answers are read.
pub(super) const MAX_BATCH: usize = 256;
/// How often [`Requests::objects`] repeats a dump that the kernel calls interrupted.
const DUMP_ATTEMPTS: u32 = 10;

impl Requests {
    /// Opens a socket in the calling thread's network namespace.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn open() -> Result<Self> {
        let route = open(protocols::NETLINK_ROUTE)?;
        prepare(&route);
        Ok(Self {
            route,
            netfilter: None,
            xfrm: None,
            seq: 0,
            writer: Writer::new(),
            buf: vec![0; RECV],
            running: None,
        })
    }

    pub(super) const fn next_seq(&mut self) -> u32 {
        self.seq = self.seq.wrapping_add(1);
        if self.seq == 0 {
            self.seq = 1;
        }
        self.seq
    }

    pub(super) fn socket(&mut self, protocol: Protocol) -> Result<&Socket> {
        match protocol {
            Protocol::Route => Ok(&self.route),
            Protocol::Netfilter => {
                if self.netfilter.is_none() {
                    let socket = open(protocols::NETLINK_NETFILTER)?;
                    prepare(&socket);
                    self.netfilter = Some(socket);
                }
                self.netfilter
                    .as_ref()
                    .ok_or_else(|| Error::protocol("open a netfilter socket", "not there"))
            }
        }
    }

    /// One question to IPsec: what `answer` finds in the reply. `None`: the kernel does not know the question.
    pub(super) fn ask_xfrm<T>(
        &mut self,
        request: &'static str,
        write: impl Fn(&mut Writer, u32),
        answer: impl Fn(&Msg<'_>) -> Option<T>,
    ) -> Result<Option<T>> {
        if self.xfrm.is_none() {
            match open(protocols::NETLINK_XFRM) {
                Ok(socket) => {
                    prepare(&socket);
                    self.xfrm = Some(socket);
                }
                Err(e) if e.errno == libc::EPROTONOSUPPORT => return Ok(None),
                Err(e) => return Err(e),
            }
        }
        let seq = self.next_seq();
        self.writer.clear();
        write(&mut self.writer, seq);
        match &self.xfrm {
            Some(socket) => question(socket, &self.writer, &mut self.buf, seq, request, answer),
            None => Ok(None),
        }
    }

    /// One question to rtnetlink: what `answer` finds in the reply. `None`: there is no such object, or the kernel does not
    /// know the question.
    pub(super) fn ask_one<T>(
        &mut self,
        request: &'static str,
        write: impl Fn(&mut Writer, u32),
        answer: impl Fn(&Msg<'_>) -> Option<T>,
    ) -> Result<Option<T>> {
        let seq = self.next_seq();
        self.writer.clear();
        write(&mut self.writer, seq);
        question(
            &self.route,
            &self.writer,
            &mut self.buf,
            seq,
            request,
            answer,
        )
    }

    /// Begins a dump; one that was under way is given up.
    ///
    /// # Errors
    /// When the request can't be sent.
    pub fn begin(&mut self, what: Dump) -> Result<()> {
        if let Some(old) = self.running.take() {
            // a socket has one dump at a time: read the old one to its end
            self.running = Some(old);
            while self.step(|_| {})? == Step::More {}
        }
        let seq = self.next_seq();
        let mut w = std::mem::take(&mut self.writer);
        w.clear();
        what.write(&mut w, seq);
        let sent = self
            .socket(what.protocol())
            .and_then(|s| s.send(w.bytes(), 0).map_err(|e| Error::io(what.name(), &e)));
        self.writer = w;
        sent?;
        self.running = Some(Running {
            what,
            seq,
            interrupted: false,
        });
        Ok(())
    }

    /// Reads one datagram of the dump and gives its objects to `each`. Does not wait: the kernel
    /// makes a dump's next datagram while the one before is read.
    ///
    /// # Errors
    /// What the kernel says; the dump is over then.
    pub fn step(&mut self, mut each: impl FnMut(Object)) -> Result<Step> {
        let Some(mut running) = self.running.take() else {
            return Ok(Step::Done { interrupted: false });
        };
        let (what, name) = (running.what, running.what.name());
        let mut buf = std::mem::take(&mut self.buf);
        let got = self
            .socket(what.protocol())
            .and_then(|s| recv(s, &mut buf, name));
        let mut result = Ok(Step::More);
        match &got {
            Err(e) => result = Err(e.clone()),
            Ok(n) => {
                for msg in Msgs::new(buf.get(..*n).unwrap_or(&[])).filter(|m| m.seq == running.seq)
                {
                    running.interrupted |= msg.flags & NLM_F_DUMP_INTR != 0;
                    match msg.kind {
                        NLMSG_DONE | NLMSG_ERROR => {
                            let errno = (u32_at(msg.payload, 0) as i32).unsigned_abs() as i32;
                            result = if errno == 0 {
                                Ok(Step::Done {
                                    interrupted: running.interrupted,
                                })
                            } else {
                                Err(Error {
                                    request: name,
                                    errno,
                                    extack: extack(&msg),
                                })
                            };
                            break;
                        }
                        _ => {
                            if let Some(Event::New(object, _)) = decode_one(what.protocol(), &msg) {
                                each(object);
                            }
                        }
                    }
                }
            }
        }
        self.buf = buf;
        if result == Ok(Step::More) {
            self.running = Some(running);
        }
        result
    }

    /// A whole dump, once; `true`: it was interrupted and may miss objects.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn dump(&mut self, what: Dump, mut each: impl FnMut(Object)) -> Result<bool> {
        self.begin(what)?;
        loop {
            if let Step::Done { interrupted } = self.step(&mut each)? {
                return Ok(interrupted);
            }
        }
    }

    /// A whole dump, repeated until none of it was interrupted.
    ///
    /// # Errors
    /// What the kernel says; `EINTR` when the tables never stood still.
    pub fn objects(&mut self, what: Dump) -> Result<Vec<Object>> {
        let mut all = Vec::new();
        for _ in 0..DUMP_ATTEMPTS {
            all.clear();
            if !self.dump(what, |o| all.push(o))? {
                return Ok(all);
            }
        }
        Err(Error {
            request: what.name(),
            errno: libc::EINTR,
            extack: format!("interrupted {DUMP_ATTEMPTS} times, try again"),
        })
    }

    /// Sends one request and waits for its answer.
    pub(super) fn ask<W>(&mut self, request: &'static str, write: W) -> Result<()>
    where
        W: Fn(&mut Writer, u16, u32),
    {
        let mut failure = None;
        self.batch(
            request,
            1,
            |w, flags, seq, _| write(w, flags, seq),
            |_, e| failure = Some(e),
        )?;
        failure.map_or(Ok(()), Err)
    }

    /// Sends `count` requests, at most 256 to a system call, and reads their answers; each failure
    /// goes to `failed` with its number. `write` writes request *i*.
    ///
    /// # Errors
    /// Only when the socket itself fails.
    pub(super) fn batch(
        &mut self,
        request: &'static str,
        count: usize,
        mut write: impl FnMut(&mut Writer, u16, u32, usize),
        mut failed: impl FnMut(usize, Error),
    ) -> Result<()> {
        let mut w = std::mem::take(&mut self.writer);
        let mut buf = std::mem::take(&mut self.buf);
        let mut result = Ok(());
        let mut done = 0;
        while done < count && result.is_ok() {
            w.clear();
            let first = self.seq.wrapping_add(1);
            let n = MAX_BATCH.min(count - done);
            for i in 0..n {
                let seq = first.wrapping_add(i as u32);
                write(&mut w, NLM_F_ACK, seq, done + i);
            }
            self.seq = first.wrapping_add(n as u32 - 1);
            result = self
                .route
                .send(w.bytes(), 0)
                .map(|_| ())
                .map_err(|e| Error::io(request, &e));
            let mut answers = 0;
            while answers < n && result.is_ok() {
                match recv(&self.route, &mut buf, request) {
                    Err(e) => result = Err(e),
                    Ok(len) => {
                        for msg in Msgs::new(buf.get(..len).unwrap_or(&[])) {
                            let index = msg.seq.wrapping_sub(first) as usize;
                            if msg.kind != NLMSG_ERROR || index >= n {
                                continue;
                            }
                            answers += 1;
                            let errno = (u32_at(msg.payload, 0) as i32).unsigned_abs() as i32;
                            if errno != 0 {
                                failed(
                                    done + index,
                                    Error {
                                        request,
                                        errno,
                                        extack: extack(&msg),
                                    },
                                );
                            }
                        }
                    }
                }
            }
            done += n;
        }
        self.writer = w;
        self.buf = buf;
        result
    }

    /// Waits until every change that is under way is over: asks for nothing, but under the
    /// kernel's configuration lock (RTNL). A device's message may come before its routes are
    /// touched, and dumps don't take that lock.
    ///
    /// # Errors
    /// What the kernel says; `EPERM` without CAP_NET_ADMIN.
    pub fn settle(&mut self) -> Result<()> {
        // 1 is the loopback device of every namespace
        self.ask("wait for the configuration lock", |w, f, s| {
            link::touch(w, f, s, 1)
        })
    }

    /// Sets a device's MAC address.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn link_mac(&mut self, ifindex: u32, mac: &[u8; 6]) -> Result<()> {
        self.ask("set MAC address", |w, f, s| {
            link::set_mac(w, f, s, ifindex, mac)
        })
    }

    /// Lets the kernel's bridge learn on a port, or not: kernel learning moves `extern_learn` entries.
    ///
    /// # Errors
    /// What the kernel says; `EOPNOTSUPP` when the device is no bridge port.
    pub fn port_learning(&mut self, ifindex: u32, on: bool) -> Result<()> {
        self.ask("set bridge port learning", |w, f, s| {
            link::set_learning(w, f, s, ifindex, on)
        })
    }

    /// Writes what the hardware learned into the bridge's FDB, or moves it to this port.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn fdb_learned(&mut self, port: u32, mac: &[u8; 6], vlan: u16) -> Result<()> {
        self.ask("write learned FDB entry", |w, f, s| {
            neigh::fdb_learned(w, f, s, port, mac, vlan)
        })
    }

    /// Removes what the hardware aged.
    ///
    /// # Errors
    /// What the kernel says; [`Error::is_gone`] when it was not there.
    pub fn fdb_del(&mut self, port: u32, mac: &[u8; 6], vlan: u16) -> Result<()> {
        self.ask("remove FDB entry", |w, f, s| {
            neigh::fdb_del(w, f, s, port, mac, vlan)
        })
    }

    /// Removes what the hardware learned behind a port in a VLAN, whether the port is still in it or not.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn fdb_flush(&mut self, port: u32, vlan: u16) -> Result<()> {
        self.ask("flush FDB entries", |w, f, s| {
            neigh::fdb_flush(w, f, s, port, vlan)
        })
    }

    /// Many of `fdb_learned` and `fdb_del` for one system call per 256, in order: (port, mac, vlan, learned or
    /// removed). Failures go to `failed` with the entry's number.
    ///
    /// # Errors
    /// Only when the socket itself fails.
    pub fn fdb_batch(
        &mut self,
        entries: &[(u32, [u8; 6], u16, bool)],
        failed: impl FnMut(usize, Error),
    ) -> Result<()> {
        let write = |w: &mut Writer, f: u16, s: u32, i: usize| match entries.get(i) {
            Some((port, mac, vlan, true)) => neigh::fdb_learned(w, f, s, *port, mac, *vlan),
            Some((port, mac, vlan, false)) => neigh::fdb_del(w, f, s, *port, mac, *vlan),
            None => {}
        };
        self.batch("write FDB entries", entries.len(), write, failed)
    }

    /// Many routes, 256 to a system call: added (`flags`: NLM_F_REPLACE, _APPEND, _EXCL or 0) or removed.
    ///
    /// # Errors
    /// Only when the socket itself fails.
    pub fn routes(
        &mut self,
        routes: &[Route],
        remove: bool,
        flags: u16,
        failed: impl FnMut(usize, Error),
    ) -> Result<()> {
        let write = |w: &mut Writer, f: u16, s: u32, i: usize| match routes.get(i) {
            Some(r) if remove => route::del(w, f | flags, s, r),
            Some(r) => route::add(w, f | flags, s, r),
            None => {}
        };
        self.batch(
            if remove {
                "remove routes"
            } else {
                "add routes"
            },
            routes.len(),
            write,
            failed,
        )
    }
}

/// Sends what `writer` has and reads until there is an answer to it.
fn question<T>(
    socket: &Socket,
    writer: &Writer,
    buf: &mut [u8],
    seq: u32,
    request: &'static str,
    answer: impl Fn(&Msg<'_>) -> Option<T>,
) -> Result<Option<T>> {
    socket
        .send(writer.bytes(), 0)
        .map_err(|e| Error::io(request, &e))?;
    loop {
        let n = recv(socket, buf, request)?;
        for msg in Msgs::new(buf.get(..n).unwrap_or(&[])).filter(|m| m.seq == seq) {
            if msg.kind != NLMSG_ERROR {
                if let Some(found) = answer(&msg) {
                    return Ok(Some(found));
                }
                continue;
            }
            return match (u32_at(msg.payload, 0) as i32).unsigned_abs() as i32 {
                0 | libc::EINVAL | libc::EOPNOTSUPP | libc::ENOENT => Ok(None),
                errno => Err(Error {
                    request,
                    errno,
                    extack: extack(&msg),
                }),
            };
        }
    }
}

pub(super) fn prepare(socket: &Socket) {
    // all three only make answers better; kernels without them are fine
    let _ = socket.set_ext_ack(true);
    let _ = socket.set_cap_ack(true);
    let _ = socket.set_netlink_get_strict_chk(true);
    force_rcvbuf(socket, 1 << 20);
    // the kernel answers within the call that asks; a lost answer must not hang its reader
    let timeout = Some(std::time::Duration::from_secs(10));
    let _ = rustix::net::sockopt::set_socket_timeout(
        borrow(socket),
        rustix::net::sockopt::Timeout::Recv,
        timeout,
    );
}

/// One datagram of the kernel into `buf`; its length.
pub(super) fn recv(socket: &Socket, buf: &mut [u8], request: &'static str) -> Result<usize> {
    loop {
        match rustix::net::recvfrom(borrow(socket), &mut *buf, rustix::net::RecvFlags::TRUNC) {
            Ok((_, len, _)) if len > buf.len() => {
                return Err(Error::protocol(request, "answer longer than 64 KiB"));
            }
            Ok((_, len, _)) => return Ok(len),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => {
                return Err(Error {
                    request,
                    errno: e.raw_os_error(),
                    extack: String::new(),
                });
            }
        }
    }
}

/// The kernel's words in an error or done message.
pub(super) fn extack(msg: &Msg<'_>) -> String {
    const NLMSGERR_ATTR_MSG: u16 = 1;
    if msg.flags & NLM_F_ACK_TLVS == 0 {
        return String::new();
    }
    let fixed = match msg.kind {
        NLMSG_DONE => 4,
        _ if msg.flags & NLM_F_CAPPED != 0 => 4 + super::wire::HEADER_LEN,
        _ => 4 + u32_at(msg.payload, 4) as usize,
    };
    Attrs::after(msg.payload, fixed)
        .get(NLMSGERR_ATTR_MSG)
        .map(text)
        .unwrap_or_default()
}

impl AsRawFd for Requests {
    fn as_raw_fd(&self) -> i32 {
        self.route.as_raw_fd()
    }
}
