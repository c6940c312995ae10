//! The listener's two ends: the monitor socket with its backlog on one side, the channel to the
//! core on the other. Whoever waits for the core reads the socket meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{Sender, TrySendError};
use tandem_linux::eventfd::EventFd;
use tandem_linux::netlink::consts::{
    RTM_DELMDB, RTM_DELNEIGH, RTM_DELROUTE, RTM_NEWMDB, RTM_NEWROUTE,
};
use tandem_linux::netlink::wire::HEADER_LEN;
use tandem_linux::netlink::{Family, Protocol};
use tandem_store::model::Event;

use super::kernel::Ears;
use tandem_core::source::{BATCH, Message, Status};

/// Bytes of datagrams that are kept and processed together.
const CHUNK: usize = 64 * 1024;
/// Batches of datagrams taken in one go, so that other work gets its turn.
const PUMP: usize = 32;
/// How long to sleep when the core is behind.
const BEHIND: Duration = Duration::from_millis(1);

/// Datagrams read and not yet applied, bounded in bytes.
#[derive(Debug)]
struct Backlog {
    chunks: VecDeque<Vec<u8>>,
    /// One that is empty again: a message at a time needs no new one each.
    spare: Option<Vec<u8>>,
    bytes: usize,
    limit: usize,
}

/// Before each datagram: protocol (1 byte) and length (4).
const PREFIX: usize = 5;

impl Backlog {
    /// `false`: full, the datagram is lost.
    fn push(&mut self, protocol: Protocol, datagram: &[u8]) -> bool {
        let need = datagram.len() + PREFIX;
        if self.bytes + need > self.limit {
            return false;
        }
        if self.chunks.back().is_none_or(|c| c.len() + need > CHUNK) {
            let spare = self.spare.take().filter(|c| c.capacity() >= need);
            let chunk = spare.unwrap_or_else(|| Vec::with_capacity(CHUNK.max(need)));
            self.chunks.push_back(chunk);
        }
        if let Some(chunk) = self.chunks.back_mut() {
            chunk.push(u8::from(protocol == Protocol::Netfilter));
            chunk.extend_from_slice(&(datagram.len() as u32).to_ne_bytes());
            chunk.extend_from_slice(datagram);
        }
        self.bytes += need;
        true
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        let chunk = self.chunks.pop_front()?;
        self.bytes = self.bytes.saturating_sub(chunk.len());
        Some(chunk)
    }

    /// A chunk has been read.
    fn done(&mut self, mut chunk: Vec<u8>) {
        chunk.clear();
        self.spare = Some(chunk);
    }

    fn clear(&mut self) {
        self.chunks.clear();
        self.bytes = 0;
    }
}

/// Walks the datagrams of a chunk.
pub(super) fn datagrams(mut chunk: &[u8], mut each: impl FnMut(Protocol, &[u8])) {
    while let Some((prefix, rest)) = chunk.split_first_chunk::<PREFIX>() {
        let [netfilter, a, b, c, d] = *prefix;
        let len = u32::from_ne_bytes([a, b, c, d]) as usize;
        let Some((datagram, next)) = rest.split_at_checked(len) else {
            return;
        };
        let protocol = if netfilter == 0 {
            Protocol::Route
        } else {
            Protocol::Netfilter
        };
        each(protocol, datagram);
        chunk = next;
    }
}

/// Both ends.
#[derive(Debug)]
pub(super) struct Pipe {
    monitor: Box<dyn Ears>,
    backlog: Backlog,
    channel: Sender<Message>,
    /// Rung after each message.
    bell: Option<Arc<EventFd>>,
    batch: Vec<Event>,
    wake: Arc<EventFd>,
    stop: Arc<AtomicBool>,
    /// Notifications were lost since this was last cleared.
    pub overrun: bool,
    /// The reading side is gone, or a stop was asked for: events are dropped.
    pub dead: bool,
    pub status: Status,
    /// Notifications read so far that unsettle a dump, by [`Counting`].
    changes: [u64; 3],
}

/// Tables of which the kernel's dump finds its place again by counting: when objects go meanwhile
/// it misses others, without saying so (net/ipv6/ip6_fib.c `fib6_dump_table`, net/bridge/br_fdb.c
/// `br_fdb_dump`, net/core/neighbour.c `neigh_dump_table`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    /// IPv6 routes.
    Routes6,
    /// Neighbours and FDB entries.
    Neighs,
    /// Multicast groups (`br_mdb_fill_info`): new ones come to the front.
    Groups,
}

/// This datagram tells of a change that makes a dump which counts lose its place.
fn unsettles(protocol: Protocol, datagram: &[u8]) -> Option<Counting> {
    let kind = datagram.get(4..6)?.try_into().ok()?;
    match u16::from_ne_bytes(kind) {
        _ if protocol != Protocol::Route => None,
        RTM_NEWROUTE | RTM_DELROUTE => {
            let v6 = datagram.get(HEADER_LEN) == Some(&Family::V6.raw());
            v6.then_some(Counting::Routes6)
        }
        RTM_DELNEIGH => Some(Counting::Neighs),
        RTM_NEWMDB | RTM_DELMDB => Some(Counting::Groups),
        _ => None,
    }
}

impl Pipe {
    pub fn new(
        monitor: Box<dyn Ears>,
        limit: usize,
        channel: Sender<Message>,
        bell: Option<Arc<EventFd>>,
        wake: Arc<EventFd>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self {
            monitor,
            backlog: Backlog {
                chunks: VecDeque::new(),
                spare: None,
                bytes: 0,
                limit,
            },
            channel,
            bell,
            batch: Vec::with_capacity(BATCH),
            wake,
            stop,
            overrun: false,
            dead: false,
            status: Status::default(),
            changes: [0; 3],
        }
    }

    /// Reads what is there into the backlog. `true`: something was there.
    pub fn pump(&mut self) -> bool {
        let mut any = false;
        for _ in 0..PUMP {
            let (backlog, changes) = (&mut self.backlog, &mut self.changes);
            let mut lost = false;
            let got = self.monitor.recv(&mut |protocol, d| {
                if let Some(n) = unsettles(protocol, d)
                    && let Some(n) = changes.get_mut(n as usize)
                {
                    *n += 1;
                }
                lost |= !backlog.push(protocol, d);
            });
            let (datagrams, overrun) = match got {
                Ok(got) => got,
                Err(e) => {
                    tracing::error!("netlink source: {e}");
                    (0, true)
                }
            };
            self.status.notifications += datagrams as u64;
            self.overrun |= lost || overrun;
            any |= datagrams > 0;
            if datagrams == 0 {
                break;
            }
        }
        self.status.backlog_bytes = self.backlog.bytes as u64;
        any
    }

    /// Reads until nothing is there: all that happened before this call is in the backlog after it.
    pub fn pump_all(&mut self) {
        // bounded: who changes the tables faster than we read them makes an overrun at last
        for _ in 0..1000 {
            if !self.pump() || self.overrun {
                break;
            }
        }
    }

    /// The oldest of the backlog.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        self.backlog.pop()
    }

    /// What was popped has been read. True: notifications were lost meanwhile, the rest is worth nothing.
    pub fn done(&mut self, chunk: Vec<u8>) -> bool {
        self.backlog.done(chunk);
        self.overrun
    }

    pub fn has_backlog(&self) -> bool {
        !self.backlog.chunks.is_empty()
    }

    /// Pieces that [`Pipe::pop`] would give now.
    pub fn chunks(&self) -> usize {
        self.backlog.chunks.len()
    }

    /// Forgets the backlog: a dump will tell.
    pub fn forget(&mut self) {
        self.backlog.clear();
    }

    /// Forgets what the kernel holds for us as well.
    pub fn renew(&mut self, receive_buffer: usize) {
        self.forget();
        if !self.monitor.renew(receive_buffer) {
            tracing::debug!("netlink source: no new socket, the old one is read to its end");
        }
    }

    /// Puts an event into the batch, and the batch into the channel when it is full.
    pub fn push(&mut self, event: Event) {
        self.batch.push(event);
        if self.batch.len() >= BATCH {
            self.flush();
        }
    }

    /// Sends the batch.
    pub fn flush(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        self.status.events += self.batch.len() as u64;
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        self.send(Message::Events(batch));
    }

    /// Sends a message; while the channel is full, reads on.
    pub fn send(&mut self, mut message: Message) {
        while !self.dead {
            match self.channel.try_send(message) {
                Ok(()) => {
                    if let Some(bell) = &self.bell {
                        bell.ring();
                    }
                    return;
                }
                Err(TrySendError::Disconnected(_)) => {
                    self.dead = true;
                    return;
                }
                Err(TrySendError::Full(m)) => {
                    message = m;
                    self.dead |= self.stop.load(Ordering::Relaxed);
                    if !self.pump() {
                        self.pause(BEHIND);
                    }
                }
            }
        }
    }

    /// How many notifications of this kind were read so far.
    pub fn changes(&self, of: Counting) -> u64 {
        self.changes.get(of as usize).copied().unwrap_or(0)
    }

    /// Stop was asked for, or nobody listens.
    pub fn finished(&mut self) -> bool {
        self.dead |= self.stop.load(Ordering::Relaxed);
        self.dead
    }

    /// Sleeps until a notification or a command comes, at most `timeout`.
    pub fn wait(&self, timeout: Duration) {
        self.monitor.wait(&self.wake, timeout);
        self.wake.drain();
    }

    /// Gives others time.
    pub fn pause(&self, time: Duration) {
        self.monitor.pause(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_linux::netlink::consts::RTM_NEWNEIGH;

    /// New ones go to the end of IPv6 routes' and neighbours' tables, and to the front of the groups'; where one goes, what
    /// is behind it moves up.
    #[test]
    fn what_makes_a_counting_dump_lose_its_place() {
        let datagram = |kind: u16, family: Family| {
            let mut d = vec![0; HEADER_LEN + 4];
            d[4..6].copy_from_slice(&kind.to_ne_bytes());
            d[HEADER_LEN] = family.raw();
            d
        };
        for (kind, v4, v6) in [
            (RTM_NEWROUTE, None, Some(Counting::Routes6)),
            (RTM_DELROUTE, None, Some(Counting::Routes6)),
            (RTM_NEWNEIGH, None, None),
            (RTM_DELNEIGH, Some(Counting::Neighs), Some(Counting::Neighs)),
            (RTM_NEWMDB, Some(Counting::Groups), Some(Counting::Groups)),
            (RTM_DELMDB, Some(Counting::Groups), Some(Counting::Groups)),
        ] {
            for (family, want) in [(Family::V4, v4), (Family::V6, v6)] {
                let d = datagram(kind, family);
                assert_eq!(unsettles(Protocol::Route, &d), want, "{kind} {family:?}");
                assert_eq!(unsettles(Protocol::Netfilter, &d), None);
            }
        }
        assert_eq!(unsettles(Protocol::Route, &[0; 5]), None);
    }

    #[test]
    fn a_backlog_gives_back_what_it_took_and_is_bounded() {
        let mut b = Backlog {
            chunks: VecDeque::new(),
            spare: None,
            bytes: 0,
            limit: 200_000,
        };
        let mut taken = Vec::new();
        for i in 0..u32::MAX {
            let datagram = vec![i as u8; 1 + (i as usize * 37) % 5000];
            let protocol = if i % 3 == 0 {
                Protocol::Netfilter
            } else {
                Protocol::Route
            };
            if !b.push(protocol, &datagram) {
                break;
            }
            taken.push((protocol, datagram));
        }
        assert!(b.bytes <= 200_000 && taken.len() > 50);
        let mut back = Vec::new();
        while let Some(chunk) = b.pop() {
            datagrams(&chunk, |p, d| back.push((p, d.to_vec())));
            b.done(chunk);
        }
        assert_eq!(b.bytes, 0);
        assert_eq!(back.len(), taken.len());
        assert!(
            back.iter()
                .zip(&taken)
                .all(|(a, b)| a.0 == b.0 && a.1 == b.1)
        );
        // the last one's room is used again, and what was in it is gone; not where there is too little of it
        let room = b.spare.as_ref().map(|c| c.as_ptr());
        assert!(b.push(Protocol::Route, &[7; 10]));
        let chunk = b.pop().unwrap();
        assert_eq!((Some(chunk.as_ptr()), chunk.len()), (room, 10 + PREFIX));
        b.done(chunk);
        assert!(b.push(Protocol::Route, &[8; CHUNK + 1]));
        assert_eq!(b.pop().unwrap().len(), CHUNK + 1 + PREFIX);
    }
}
