// SPDX-License-Identifier: Apache-2.0
//! Controllers' connections: calling, being called, reading, writing.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use anyhow::Context;
use tandem_ofagent::{Agent, CONNECTIONS, Conn, ConnId, Pace, Wires};

use crate::poller::{Poller, Ready, Token};
use crate::stream::{Listener, Stream};
use crate::target::Target;
use crate::tls::{Files, Tls};

const SECOND: u64 = 1_000_000_000;
/// A call is not answered for so long, or a handshake of TLS is not done: it is given up.
const CONNECT_NS: u64 = 5 * SECOND;
/// Between two calls, from the first to the last.
const BACK_OFF: [u64; 4] = [SECOND, 2 * SECOND, 4 * SECOND, 8 * SECOND];
/// Messages of one connection in one turn.
const MESSAGES: usize = 256;
/// Who calls at once; others wait for the next turn.
const CALLS: usize = 16;

/// A `--controller`.
pub struct Place {
    /// As it was asked for.
    pub target: Target,
    /// Why there is no connection.
    pub error: Option<String>,
    addrs: Vec<SocketAddr>,
    listener: Option<Listener>,
    calls: usize,
    due_ns: Option<u64>,
    /// Of who calls.
    pace: Pace,
}

enum State {
    /// The connection is being made: a call that was not answered yet, TLS that shakes hands. The agent knows none of it.
    Calling {
        until_ns: u64,
    },
    Up(ConnId),
}

struct Link {
    place: usize,
    stream: Stream,
    state: State,
    interest: (bool, bool),
    /// The peer takes nothing now.
    blocked: bool,
    /// Whole messages wait that were not looked at.
    more: bool,
    /// Bytes may wait that epoll does not tell of: TLS has them already.
    unread: bool,
    /// Nothing more comes, and why: what came is looked at first.
    over: Option<String>,
    agreed: bool,
}

/// All of them.
pub struct Links {
    /// Whose they are.
    lsi: u16,
    tls: Option<Tls>,
    places: Vec<Place>,
    links: BTreeMap<u32, Link>,
    next: u32,
    /// Somebody was sent something in the last turn.
    wrote: bool,
}

impl Links {
    /// Opens the places where controllers come.
    ///
    /// # Errors
    /// A place can't be opened, a host has no address.
    pub fn open(
        lsi: u16,
        targets: &[Target],
        files: &Files,
        poller: &Poller,
    ) -> anyhow::Result<Links> {
        let tls = match targets.iter().any(Target::is_tls) {
            true => Some(Tls::load(files)?),
            false => None,
        };
        let mut places = Vec::new();
        for target in targets {
            let listener = match target {
                Target::Ptcp { at, .. } => {
                    Some(Listener::tcp(*at).with_context(|| target.to_string())?)
                }
                Target::Punix(path) => Some(Listener::unix(path)?),
                Target::Tcp { .. } | Target::Unix(_) => None,
            };
            if let Some(listener) = &listener {
                let number = u32::try_from(places.len())?;
                poller.add(Token::Listener(lsi, number), listener, true, false)?;
            }
            places.push(Place {
                target: target.clone(),
                error: None,
                addrs: target.resolve().map_err(anyhow::Error::msg)?,
                listener,
                calls: 0,
                due_ns: target.is_active().then_some(0),
                pace: Pace::default(),
            });
        }
        Ok(Links {
            lsi,
            tls,
            places,
            links: BTreeMap::new(),
            next: 0,
            wrote: false,
        })
    }

    /// Each place with its connections, those that are being made as `None`.
    pub fn places(&self) -> impl Iterator<Item = (&Place, Vec<Option<ConnId>>)> {
        self.places.iter().enumerate().map(|(n, place)| {
            let own = self.links.values().filter(move |l| l.place == n);
            let ids = own.map(|l| match l.state {
                State::Up(id) => Some(id),
                State::Calling { .. } => None,
            });
            (place, ids.collect())
        })
    }

    /// Takes away the sockets' files.
    pub fn close(&mut self) {
        for place in &self.places {
            if let Target::Punix(path) = &place.target {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    /// A connection that is being made. It can be written when it is there: at once, if it was the peer that called.
    fn add(
        &mut self,
        place: usize,
        stream: Stream,
        until_ns: u64,
        poller: &Poller,
    ) -> std::io::Result<()> {
        self.next = self.next.wrapping_add(1);
        poller.add(Token::Link(self.lsi, self.next), &stream, false, true)?;
        let link = Link {
            place,
            stream,
            state: State::Calling { until_ns },
            interest: (false, true),
            blocked: false,
            more: false,
            unread: false,
            over: None,
            agreed: false,
        };
        self.links.insert(self.next, link);
        Ok(())
    }

    /// Who calls may take the connections that no target needs which is called.
    fn has_room_for_callers(&self) -> bool {
        let active = |n: usize| self.places.get(n).is_some_and(|p| p.target.is_active());
        let called = (0..self.places.len()).filter(|n| active(*n)).count();
        let callers = self.links.values().filter(|l| !active(l.place)).count();
        callers < CONNECTIONS.saturating_sub(called)
    }

    /// Somebody calls.
    pub fn accept(&mut self, number: u32, agent: &mut Agent, poller: &Poller, now_ns: u64) {
        for _ in 0..CALLS {
            let Some(place) = self.places.get(number as usize) else {
                return;
            };
            let Some(listener) = &place.listener else {
                return;
            };
            let stream = match listener.accept() {
                Ok(Some(stream)) => stream,
                Ok(None) => return,
                Err(e) => {
                    tracing::debug!("{}: {e}", place.target);
                    return;
                }
            };
            let secured = match (&place.target, &self.tls) {
                (Target::Ptcp { tls: true, .. }, Some(tls)) => stream.secure(tls, None),
                (Target::Ptcp { tls: true, .. }, None) => continue,
                _ => Ok(stream),
            };
            let stream = match secured {
                Ok(stream) => stream,
                Err(e) => {
                    tracing::debug!("{}: {e}", place.target);
                    continue;
                }
            };
            if !self.has_room_for_callers() {
                tracing::debug!("{}: too many connections", place.target);
                continue;
            }
            match self.add(number as usize, stream, now_ns + CONNECT_NS, poller) {
                Ok(()) => self.made(self.next, agent, poller, now_ns),
                Err(e) => tracing::error!("a controller's socket can't be watched: {e}"),
            }
        }
    }

    /// Calls whose time has come; when the next one is due.
    fn call(&mut self, poller: &Poller, now_ns: u64) -> u64 {
        let mut next = u64::MAX;
        for n in 0..self.places.len() {
            let Some(place) = self.places.get_mut(n) else {
                break;
            };
            match place.due_ns {
                None => continue,
                Some(at) if at > now_ns => {
                    next = next.min(at);
                    continue;
                }
                Some(_) => {}
            }
            place.due_ns = None;
            let at = place.addrs.get(place.calls % place.addrs.len().max(1));
            let stream = match (&place.target, at) {
                (Target::Unix(path), _) => Stream::to_unix(path),
                (_, Some(at)) => Stream::to_tcp(*at),
                _ => continue,
            };
            // its first byte waits until the connection is made
            let stream = match (&place.target, &self.tls) {
                (
                    Target::Tcp {
                        host, tls: true, ..
                    },
                    Some(tls),
                ) => stream.and_then(|s| s.secure(tls, Some(host))),
                _ => stream,
            };
            let until_ns = now_ns + CONNECT_NS;
            match stream.and_then(|s| self.add(n, s, until_ns, poller)) {
                Ok(()) => next = next.min(until_ns),
                Err(e) => next = next.min(self.failed(n, &e.to_string(), now_ns)),
            }
        }
        next
    }

    /// There is no connection; when the next call is.
    fn failed(&mut self, place: usize, why: &str, now_ns: u64) -> u64 {
        let Some(place) = self.places.get_mut(place) else {
            return u64::MAX;
        };
        if !place.target.is_active() {
            // who calls may hang up, and others are not kept from calling
            match place.pace.may(now_ns) {
                true => tracing::info!("controller {}: {why}", place.target),
                false => tracing::debug!("controller {}: {why}", place.target),
            }
            return u64::MAX;
        }
        // said once
        if place.error.as_deref() != Some(why) {
            tracing::warn!("controller {}: {why}", place.target);
            place.error = Some(why.to_owned());
        }
        let wait = BACK_OFF.get(place.calls).or(BACK_OFF.last());
        let at = now_ns + wait.copied().unwrap_or(SECOND);
        place.calls = place.calls.saturating_add(1);
        place.due_ns = Some(at);
        at
    }

    /// A connection is ready for something.
    pub fn ready(
        &mut self,
        id: u32,
        ready: Ready,
        agent: &mut Agent,
        poller: &Poller,
        now_ns: u64,
    ) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        match link.state {
            State::Calling { .. } => self.made(id, agent, poller, now_ns),
            State::Up(conn) => {
                if ready.write {
                    link.blocked = false;
                }
                if ready.read {
                    read(link, conn, agent, now_ns);
                }
                link.more = true;
            }
        }
    }

    /// A connection that is being made got on. The agent has it when it is there, and by TLS when both have shown who
    /// they are: a peer without a certificate is no controller at all.
    fn made(&mut self, id: u32, agent: &mut Agent, poller: &Poller, now_ns: u64) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let Some(place) = self.places.get(link.place) else {
            return;
        };
        match link.stream.check().and_then(|()| link.stream.handshake()) {
            Ok(None) => {
                let peer = link.stream.peer().filter(|_| !place.target.is_active());
                let peer = peer.map_or(String::new(), |p| format!(" from {p}"));
                match agent.connected(format!("{}{peer}", place.target), now_ns) {
                    Some(conn) => {
                        link.state = State::Up(conn);
                        // what came with the handshake
                        link.unread = true;
                        link.more = true;
                    }
                    None => self.end(id, "too many connections", agent, poller, now_ns),
                }
            }
            Ok(Some(wanted)) => {
                if wanted != link.interest {
                    match poller.change(Token::Link(self.lsi, id), &link.stream, wanted.0, wanted.1)
                    {
                        Ok(()) => link.interest = wanted,
                        Err(e) => self.end(id, &e.to_string(), agent, poller, now_ns),
                    }
                }
            }
            Err(e) => self.end(id, &e.to_string(), agent, poller, now_ns),
        }
    }

    fn end(&mut self, id: u32, why: &str, agent: &mut Agent, poller: &Poller, now_ns: u64) {
        let Some(link) = self.links.remove(&id) else {
            return;
        };
        poller.remove(link.stream.as_fd());
        if let State::Up(conn) = link.state {
            agent.disconnected(conn, now_ns);
        }
        self.failed(link.place, why, now_ns);
    }

    /// Whether messages wait that could be looked at now.
    pub fn has_more(&self) -> bool {
        self.links.values().any(|l| l.more)
    }

    /// Whether the last turn sent something.
    pub fn has_written(&self) -> bool {
        self.wrote
    }

    /// What is left to do in a turn: messages that wait, output, calls, ends. When to be called again at the latest.
    pub fn turn<W: Wires>(
        &mut self,
        agent: &mut Agent,
        wires: &mut W,
        poller: &Poller,
        settle: &mut dyn FnMut(&mut Agent),
        now_ns: u64,
    ) -> u64 {
        let mut ended: Vec<(u32, String)> = Vec::new();
        let mut next = u64::MAX;
        for (id, link) in &mut self.links {
            let conn = match link.state {
                State::Up(conn) => conn,
                State::Calling { until_ns } if until_ns <= now_ns => {
                    ended.push((*id, "no answer in 5 s".into()));
                    continue;
                }
                State::Calling { until_ns } => {
                    next = next.min(until_ns);
                    continue;
                }
            };
            if link.unread && agent.conn(conn).is_some_and(Conn::takes) {
                read(link, conn, agent, now_ns);
            }
            if link.over.is_some() {
                agent.deaf(conn);
            }
            if link.more || agent.conn(conn).is_some_and(Conn::is_held) {
                link.more = agent.work(conn, MESSAGES, now_ns, wires);
            }
        }
        settle(agent);
        self.wrote = false;
        // when all messages were looked at: what one controller does, others are told of
        for (id, link) in &mut self.links {
            let State::Up(conn) = link.state else {
                continue;
            };
            let waited = agent.conn(conn).is_some_and(|c| !c.takes());
            match write(link, conn, agent, now_ns) {
                Ok(sent) => self.wrote |= sent,
                Err(e) => {
                    // what it said before is done, though it does not hear the answers
                    link.over.get_or_insert_with(|| e.to_string());
                    agent.deaf(conn);
                    while let left @ 1.. = agent.output(conn).len() {
                        agent.sent(conn, left, now_ns);
                    }
                }
            }
            let Some(c) = agent.conn(conn) else {
                continue;
            };
            if let Some(why) = c.end() {
                ended.push((*id, why.to_owned()));
                continue;
            }
            // A message that waits for room in the chip, or for the next turn, is done before the end
            if let Some(why) = link.over.as_ref().filter(|_| !link.more && !c.is_held()) {
                ended.push((*id, why.clone()));
                continue;
            }
            if !link.agreed && c.version().is_some() {
                link.agreed = true;
                if let Some(place) = self.places.get_mut(link.place) {
                    place.calls = 0;
                    place.error = None;
                }
            }
            // it reads again, so that what it had sent meanwhile is looked at
            let takes = c.takes();
            // Behind a message that waits there may be an echo request
            let reads = takes || c.is_held();
            let room = !agent.room(conn).is_empty();
            link.more |= takes && (waited || link.unread && room);
            let wanted = (reads && room && link.over.is_none(), link.blocked);
            if wanted != link.interest
                && poller
                    .change(Token::Link(self.lsi, *id), &link.stream, wanted.0, wanted.1)
                    .is_ok()
            {
                link.interest = wanted;
            }
        }
        for (id, why) in ended {
            self.end(id, &why, agent, poller, now_ns);
        }
        next.min(self.call(poller, now_ns))
    }
}

/// Reads what there is room for.
fn read(link: &mut Link, conn: ConnId, agent: &mut Agent, now_ns: u64) {
    link.unread = true;
    link.more = true;
    while link.over.is_none() {
        let room = agent.room(conn);
        if room.is_empty() {
            return;
        }
        match link.stream.read(room) {
            Ok(0) => link.over = Some("the controller hung up".into()),
            Ok(n) => {
                let more = n == room.len() || link.stream.is_tls();
                agent.filled(conn, n, now_ns);
                // of what comes later epoll tells
                if !more {
                    break;
                }
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => break,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => link.over = Some(e.to_string()),
        }
    }
    link.unread = false;
}

/// Sends what waits, as far as the peer takes it. False: nothing waited, or it takes nothing.
fn write(link: &mut Link, conn: ConnId, agent: &mut Agent, now_ns: u64) -> std::io::Result<bool> {
    let mut sent = false;
    while !link.blocked {
        let bytes = agent.output(conn);
        if bytes.is_empty() {
            break;
        }
        match link.stream.write(bytes) {
            Ok(n) => {
                sent = true;
                agent.sent(conn, n, now_ns);
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => link.blocked = true,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    if !link.blocked {
        link.blocked = !link.stream.flush()?;
    }
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;
    use tandem_ofagent::{CONNECTIONS, Settings};

    /// No port has a far end.
    struct Nowhere;

    impl Wires for Nowhere {
        fn send(&mut self, _: u32, _: Option<u32>, _: &tandem_packet::Frame<'_>) {}
    }

    /// OFPT_HELLO of 1.3
    const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];
    /// OFPT_PORT_MOD: OFPPC_PORT_DOWN of port 1
    const PORT_DOWN: [u8; 40] = [
        4, 16, 0, 40, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0,
        0, 1, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    /// An agent of one port, and its controllers in a folder that goes with it.
    struct Stage {
        dir: PathBuf,
        poller: Poller,
        links: Links,
        agent: Agent,
    }

    impl Stage {
        /// Controllers come to `here`; with `calls` the one at `there` is called.
        fn new(name: &str, calls: bool) -> Stage {
            let dir = std::env::temp_dir().join(format!("ofagentd-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&dir).unwrap();
            let mut targets = vec![Target::Punix(dir.join("here"))];
            targets.extend(calls.then(|| Target::Unix(dir.join("there"))));
            let poller = Poller::new().unwrap();
            let links = Links::open(0, &targets, &Files::default(), &poller).unwrap();
            let mut agent = Agent::new(Settings::default(), 1);
            agent.add_port(1, "swp1", [2, 0, 0, 0, 0, 1], (true, 1_000), 1);
            Stage {
                dir,
                poller,
                links,
                agent,
            }
        }
        fn peer(&mut self) -> UnixStream {
            let peer = UnixStream::connect(self.dir.join("here")).unwrap();
            self.links.accept(0, &mut self.agent, &self.poller, 1);
            peer
        }
        /// A connection can be read, or else written.
        fn ready(&mut self, id: u32, read: bool, now: u64) {
            let ready = Ready {
                token: Token::Bell,
                read,
                write: !read,
                error: false,
            };
            self.links
                .ready(id, ready, &mut self.agent, &self.poller, now);
        }
        fn turn(&mut self, now: u64) -> u64 {
            self.links.turn(
                &mut self.agent,
                &mut Nowhere,
                &self.poller,
                &mut |_| {},
                now,
            )
        }
    }

    impl Drop for Stage {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }

    #[test]
    fn who_calls_takes_no_place_of_those_that_are_called() {
        let mut s = Stage::new("links", true);
        let _peers: Vec<UnixStream> = (0..CONNECTIONS + 9).map(|_| s.peer()).collect();
        assert_eq!(s.agent.conns().count(), CONNECTIONS - 1);
        let controller = Listener::unix(&s.dir.join("there")).unwrap();
        s.turn(2);
        assert!(controller.accept().unwrap().is_some());
        s.ready(s.links.next, false, 3);
        assert_eq!(s.agent.conns().count(), CONNECTIONS);
    }

    #[test]
    fn what_one_controller_causes_the_others_hear_at_once() {
        let mut s = Stage::new("turn", false);
        let mut peers = [s.peer(), s.peer()];
        for peer in &mut peers {
            peer.write_all(&HELLO).unwrap();
        }
        s.turn(2);
        let mut hello = [0; 16];
        peers[0].read_exact(&mut hello).unwrap();
        peers[1].write_all(&PORT_DOWN).unwrap();
        s.ready(2, true, 3);
        s.turn(3);
        peers[0].set_nonblocking(true).unwrap();
        let mut told = [0; 200];
        assert_eq!(peers[0].read(&mut told).unwrap(), 80);
        assert_eq!(told[1], 12, "OFPT_PORT_STATUS");
    }

    #[test]
    fn who_hangs_up_behind_a_barrier_is_done_with_what_it_sent() {
        let mut s = Stage::new("behind", false);
        // never attached: a barrier waits
        let setup = tandem_ofchip::Setup {
            profile: "tiny".into(),
            lookup: tandem_ofchip::Lookup::Address,
            version: tandem_openflow::Version::V13,
            ports: Vec::new(),
            local: false,
            chains: tandem_ofchip::Limits::default(),
            classes: true,
            slice: tandem_ofchip::Slice::default(),
        };
        s.agent
            .set_chip(tandem_ofchip::Chip::new(setup).unwrap(), 0);
        let mut peer = s.peer();
        let barrier = [4, 20, 0, 8, 0, 0, 0, 2];
        peer.write_all(&[&HELLO[..], &barrier, &PORT_DOWN].concat())
            .unwrap();
        let seen = |s: &Stage| {
            let port = s.agent.datapath().ports().next().unwrap();
            (port.port.config, s.links.links.len())
        };
        s.ready(1, true, 2);
        s.turn(2);
        assert_eq!(seen(&s), (0, 1));
        drop(peer);
        for now in 3..6 {
            s.ready(1, true, now);
            s.turn(now);
        }
        assert_eq!(seen(&s), (1, 0));
    }

    #[test]
    fn only_what_went_was_written() {
        let mut s = Stage::new("wrote", false);
        let mut peer = s.peer();
        peer.write_all(&HELLO).unwrap();
        s.turn(2);
        assert!(s.links.has_written(), "OFPT_HELLO");
        s.turn(3);
        assert!(!s.links.has_written());
        // OFPT_ECHO_REQUEST, until no more of the answers goes
        let mut echo = vec![4, 2, 0xff, 0xf8, 0, 0, 0, 2];
        echo.resize(0xfff8, 0);
        peer.set_nonblocking(true).unwrap();
        for now in 4..100 {
            let _ = peer.write(&echo);
            s.ready(1, true, now);
            s.turn(now);
        }
        let (_, conn) = s.agent.conns().next().unwrap();
        assert!(conn.waiting() > 0);
        assert!(!s.links.has_written(), "it takes nothing");
    }

    #[test]
    fn a_socket_that_cannot_be_watched_leaves_nothing_behind() {
        let mut s = Stage::new("watch", true);
        let _controller = Listener::unix(&s.dir.join("there")).unwrap();
        let works = std::mem::replace(&mut s.poller, Poller::broken());
        let _peer = s.peer();
        assert_eq!((s.links.links.len(), s.agent.conns().count()), (0, 0));
        // and who was called is called again
        let next = s.turn(2);
        assert_eq!(next, 2 + SECOND);
        s.poller = works;
        s.turn(next);
        assert_eq!(s.links.links.len(), 1);
    }
}
