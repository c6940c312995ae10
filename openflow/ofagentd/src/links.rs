// SPDX-License-Identifier: Apache-2.0
//! Controllers' connections: calling, being called, reading, writing.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use anyhow::Context;
use tandem_ofagent::{Agent, Conn, ConnId};

use crate::poller::{Poller, Ready, Token};
use crate::slots::Slots;
use crate::stream::{Listener, Stream};
use crate::target::Target;
use crate::tls::{Files, Tls};

const SECOND: u64 = 1_000_000_000;
/// A call is not answered for so long: it is given up.
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
}

enum State {
    Calling { until_ns: u64 },
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
    tls: Option<Tls>,
    places: Vec<Place>,
    links: BTreeMap<u32, Link>,
    next: u32,
}

impl Links {
    /// Opens the places where controllers come.
    ///
    /// # Errors
    /// A place can't be opened, a host has no address.
    pub fn open(targets: &[Target], files: &Files, poller: &Poller) -> anyhow::Result<Links> {
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
                poller.add(Token::Listener(number), listener, true, false)?;
            }
            places.push(Place {
                target: target.clone(),
                error: None,
                addrs: target.resolve().map_err(anyhow::Error::msg)?,
                listener,
                calls: 0,
                due_ns: target.is_active().then_some(0),
            });
        }
        Ok(Links {
            tls,
            places,
            links: BTreeMap::new(),
            next: 0,
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

    fn add(&mut self, place: usize, stream: Stream, state: State, poller: &Poller) {
        self.next = self.next.wrapping_add(1);
        let interest = match state {
            State::Calling { .. } => (false, true),
            State::Up(_) => (true, false),
        };
        if let Err(e) = poller.add(Token::Link(self.next), &stream, interest.0, interest.1) {
            tracing::error!("a controller's socket can't be watched: {e}");
            return;
        }
        let link = Link {
            place,
            stream,
            state,
            interest,
            blocked: false,
            more: false,
            unread: false,
            over: None,
            agreed: false,
        };
        self.links.insert(self.next, link);
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
            let peer = stream
                .peer()
                .map_or(String::new(), |p| format!(" from {p}"));
            let name = format!("{}{peer}", place.target);
            match agent.connected(name, now_ns) {
                Some(id) => self.add(number as usize, stream, State::Up(id), poller),
                None => tracing::debug!("{}: too many connections", place.target),
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
            match stream {
                Ok(stream) => {
                    let until_ns = now_ns + CONNECT_NS;
                    self.add(n, stream, State::Calling { until_ns }, poller);
                    next = next.min(until_ns);
                }
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
            tracing::debug!("controller {}: {why}", place.target);
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
            State::Calling { .. } => {
                if let Err(e) = link.stream.check() {
                    return self.end(id, &e.to_string(), agent, poller, now_ns);
                }
                let Some(place) = self.places.get(link.place) else {
                    return;
                };
                match agent.connected(place.target.to_string(), now_ns) {
                    Some(conn) => link.state = State::Up(conn),
                    None => self.end(id, "too many connections", agent, poller, now_ns),
                }
            }
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

    fn end(&mut self, id: u32, why: &str, agent: &mut Agent, poller: &Poller, now_ns: u64) {
        let Some(link) = self.links.remove(&id) else {
            return;
        };
        poller.remove(link.stream.as_fd());
        if let State::Up(conn) = link.state {
            agent.disconnected(conn);
        }
        self.failed(link.place, why, now_ns);
    }

    /// Whether messages wait that could be looked at now.
    pub fn has_more(&self) -> bool {
        self.links.values().any(|l| l.more)
    }

    /// What is left to do in a turn: messages that wait, output, calls, ends. When to be called again at the latest.
    pub fn turn(
        &mut self,
        agent: &mut Agent,
        slots: &mut Slots,
        poller: &Poller,
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
            if link.more {
                link.more = agent.work(conn, MESSAGES, now_ns, slots);
            }
            let waited = agent.conn(conn).is_some_and(|c| !c.takes());
            if let Err(e) = write(link, conn, agent, now_ns) {
                // what it said before is done, though it does not hear the answers
                link.over.get_or_insert_with(|| e.to_string());
                let left = agent.output(conn).len();
                agent.sent(conn, left, now_ns);
            }
            let Some(c) = agent.conn(conn) else {
                continue;
            };
            if let Some(why) = c.end() {
                ended.push((*id, why.to_owned()));
                continue;
            }
            if let Some(why) = link.over.as_ref().filter(|_| !link.more) {
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
            let room = !agent.room(conn).is_empty();
            link.more |= takes && (waited || link.unread && room);
            let wanted = (takes && room && link.over.is_none(), link.blocked);
            if wanted != link.interest
                && poller
                    .change(Token::Link(*id), &link.stream, wanted.0, wanted.1)
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
            Ok(n) => agent.filled(conn, n, now_ns),
            Err(e) if e.kind() == ErrorKind::WouldBlock => break,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => link.over = Some(e.to_string()),
        }
    }
    link.unread = false;
}

/// Sends what waits, as far as the peer takes it.
fn write(link: &mut Link, conn: ConnId, agent: &mut Agent, now_ns: u64) -> std::io::Result<()> {
    while !link.blocked {
        let bytes = agent.output(conn);
        if bytes.is_empty() {
            break;
        }
        match link.stream.write(bytes) {
            Ok(n) => agent.sent(conn, n, now_ns),
            Err(e) if e.kind() == ErrorKind::WouldBlock => link.blocked = true,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    if !link.blocked {
        link.blocked = !link.stream.flush()?;
    }
    Ok(())
}
