// SPDX-License-Identifier: Apache-2.0
//! The agent: connections come and go, frames come in, time passes.

use std::collections::BTreeMap;
use std::sync::Arc;

use tandem_ofchip::{Chip, PortOf};
use tandem_openflow::model::{FlowRemoved, Port, PortReason, Reply};
use tandem_openflow::{Action, Error, Header, Hello, Version, decode, model, negotiate, port};
use tandem_packet::{Buffer, Frame, Offload, checksum};

use crate::below::Wait;
use crate::buffers::Buffers;
use crate::conn::{Conn, Pace};
use crate::datapath::Datapath;
use crate::learning::Goes;
use crate::leaves::{Leaves, Normal, Wires};
use crate::ports::{Lost, PortEntry};
use crate::trace::{Step, Steps};
use crate::{Fail, Settings};

/// Names a connection.
pub type ConnId = u32;

/// Connections at most.
pub const CONNECTIONS: usize = 64;
/// Flows that are looked at in one call of [`Agent::tick`].
const EXPIRIES: usize = 4096;
/// `OFPT_ECHO_REQUEST`, of both versions.
const ECHO_REQUEST: u8 = 2;
/// How often old packets and addresses are looked for.
const SWEEP_NS: u64 = 5_000_000_000;

/// A switch and its controllers.
#[derive(Debug)]
pub struct Agent {
    pub(crate) settings: Settings,
    pub(crate) dp: Datapath,
    pub(crate) conns: BTreeMap<ConnId, Conn>,
    pub(crate) generation: Option<u64>,
    pub(crate) buffers: Buffers,
    pub(crate) removed: Vec<FlowRemoved>,
    normal: Normal,
    mem: Buffer,
    next_id: ConnId,
    alone: bool,
    /// Of hellos.
    pace: Pace,
    swept_ns: u64,
}

impl Agent {
    /// A switch without ports and controllers.
    pub fn new(settings: Settings, now_ns: u64) -> Agent {
        let mut agent = Agent {
            dp: Datapath::new(&settings),
            settings,
            conns: BTreeMap::new(),
            generation: None,
            buffers: Buffers::default(),
            removed: Vec::new(),
            normal: Normal::default(),
            mem: Buffer::new(),
            next_id: 0,
            alone: false,
            pace: Pace::default(),
            swept_ns: now_ns,
        };
        agent.refresh();
        agent
    }

    /// What it is.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Tables and ports.
    pub fn datapath(&self) -> &Datapath {
        &self.dp
    }

    /// Connections.
    pub fn conns(&self) -> impl Iterator<Item = (ConnId, &Conn)> {
        self.conns.iter().map(|(id, c)| (*id, c))
    }

    /// One of them.
    pub fn conn(&self, id: ConnId) -> Option<&Conn> {
        self.conns.get(&id)
    }

    /// Is it an ordinary switch now, as no controller is connected?
    pub fn stands_alone(&self) -> bool {
        self.alone
    }

    // -- controllers

    /// A connection was made: our hello waits. `None`: there are too many.
    pub fn connected(&mut self, name: String, now_ns: u64) -> Option<ConnId> {
        if self.conns.len() >= CONNECTIONS {
            return None;
        }
        let offered = match self.spoken_by_others(None) {
            Some(version) => vec![version],
            None => self.settings.versions.clone(),
        };
        let hello = Hello::of(&offered);
        let mut conn = Conn::new(name, offered, self.settings.packet_ins, now_ns);
        let xid = conn.next_xid();
        conn.reply(xid, &Reply::Hello(hello));
        self.next_id = self.next_id.wrapping_add(1);
        self.conns.insert(self.next_id, conn);
        Some(self.next_id)
    }

    /// It is gone; what it had asked for stays.
    pub fn disconnected(&mut self, id: ConnId, now_ns: u64) {
        self.conns.remove(&id);
        // whoever asks next makes them anew
        self.dp.empty = None;
        self.refresh();
        self.follow_controllers(now_ns);
    }

    /// Nobody hears its answers any more: what it has sent is done all the same, and waits only for what the chip needs.
    pub fn deaf(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.deaf = true;
        }
    }

    /// Where its next bytes go; empty while earlier ones wait.
    pub fn room(&mut self, id: ConnId) -> &mut [u8] {
        match self.conns.get_mut(&id).and_then(|c| c.framer.as_mut()) {
            Some(framer) => framer.room(),
            None => &mut [],
        }
    }

    /// So many came.
    pub fn filled(&mut self, id: ConnId, bytes: usize, now_ns: u64) {
        if let Some(conn) = self.conns.get_mut(&id) {
            if let Some(framer) = &mut conn.framer {
                framer.filled(bytes);
            }
            conn.heard(now_ns);
        }
    }

    /// What is to be sent to it.
    pub fn output(&self, id: ConnId) -> &[u8] {
        self.conns.get(&id).map_or(&[], Conn::output)
    }

    /// So much of it was.
    pub fn sent(&mut self, id: ConnId, bytes: usize, now_ns: u64) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.sent(bytes, now_ns);
        }
    }

    /// Looks at up to `budget` messages of a connection. True: there may be more.
    pub fn work<W: Wires>(
        &mut self,
        id: ConnId,
        budget: usize,
        now_ns: u64,
        wires: &mut W,
    ) -> bool {
        if !self.release(id, now_ns, wires) {
            return self.echo(id, budget, now_ns, wires);
        }
        let Some(mut framer) = self.conns.get_mut(&id).and_then(|c| c.framer.take()) else {
            return false;
        };
        let mut left = budget;
        let more = loop {
            if !self.conns.get(&id).is_some_and(Conn::takes) {
                break false;
            }
            if left == 0 || self.list(id, now_ns) {
                break true;
            }
            left -= 1;
            match framer.next() {
                Ok(Some(message)) => {
                    if !self.holds(id, message) {
                        self.message(id, message, now_ns, wires);
                    }
                }
                Ok(None) => break false,
                Err(malformed) => {
                    if let Some(conn) = self.conns.get_mut(&id) {
                        conn.refuse(0, malformed.error, &[]);
                        conn.finish(format!("disconnected: {malformed}"));
                    }
                    break false;
                }
            }
        };
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.framer = Some(framer);
        }
        self.refresh();
        self.follow_controllers(now_ns);
        more
    }

    /// Echo requests that are next behind a message that waits are answered: they ask whether the switch lives, and
    /// nothing comes of them. True: there may be more.
    fn echo<W: Wires>(&mut self, id: ConnId, budget: usize, now_ns: u64, wires: &mut W) -> bool {
        for _ in 0..budget {
            let Some(conn) = self.conns.get_mut(&id).filter(|c| c.is_held()) else {
                return false;
            };
            let Some(mut framer) = conn.framer.take() else {
                return false;
            };
            let some = framer.has(ECHO_REQUEST);
            if some && let Ok(Some(message)) = framer.next() {
                self.message(id, message, now_ns, wires);
            }
            if let Some(conn) = self.conns.get_mut(&id) {
                conn.framer = Some(framer);
            }
            if !some {
                return false;
            }
        }
        true
    }

    /// What the chip has told of the use of flows is theirs.
    pub fn refresh_use(&mut self) {
        self.dp.take_used();
    }

    /// A message that has to wait for the chip is kept, and nothing behind it is looked at.
    fn holds(&mut self, id: ConnId, message: &[u8]) -> bool {
        let Some(conn) = self.conns.get_mut(&id) else {
            return false;
        };
        let wait = conn.version.and_then(|v| self.dp.wait(v, message));
        let Some(wait) = wait.filter(|w| !conn.deaf || *w == Wait::Room) else {
            return false;
        };
        conn.held = Some((wait, message.to_vec()));
        true
    }

    /// The message that waits is looked at, if what it waits for is there. False: it is not.
    fn release<W: Wires>(&mut self, id: ConnId, now_ns: u64, wires: &mut W) -> bool {
        let Some(conn) = self.conns.get_mut(&id) else {
            return false;
        };
        match &conn.held {
            None => return true,
            Some((wait, _)) => {
                let asked = !conn.deaf || *wait == Wait::Room;
                if asked && !self.dp.is_over(*wait) {
                    return false;
                }
            }
        }
        if let Some((_, message)) = conn.held.take() {
            self.message(id, &message, now_ns, wires);
        }
        true
    }

    /// A chip below the tables. Its ports have to be added as any others are.
    pub fn set_chip(&mut self, chip: Chip, now_ns: u64) {
        self.dp.set_chip(chip, now_ns);
        self.dp.stand_alone(self.alone);
    }

    /// The chip below the tables: for who carries its commands.
    pub fn chip_mut(&mut self) -> Option<&mut Chip> {
        self.dp.below.as_mut().map(|b| &mut b.chip)
    }

    fn message<W: Wires>(&mut self, id: ConnId, message: &[u8], now_ns: u64, wires: &mut W) {
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        conn.counts.received += 1;
        match conn.version {
            None => self.hello(id, message, now_ns),
            Some(version) => self.request(id, version, message, now_ns, wires),
        }
    }

    /// The first message (§6.3.1). One switch has tables of one version: that of the controllers that change it, for as
    /// long as one is connected.
    fn hello(&mut self, id: ConnId, message: &[u8], now_ns: u64) {
        let others = self.spoken_by_others(Some(id));
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        let header = Header::of(message);
        let xid = header.map_or(0, |h| h.xid);
        let hello = match decode(conn.spoken(), message) {
            Ok((_, model::Request::Hello(hello))) => Ok(hello),
            _ => Err("the first message has to be a hello".to_owned()),
        };
        let agreed = hello.and_then(|hello| {
            let version = negotiate(&conn.offered, hello)?;
            match others {
                Some(other) if other != version => Err(format!(
                    "this switch speaks OpenFlow {} with another controller, not {}",
                    other.name(),
                    version.name()
                )),
                _ => Ok(version),
            }
        });
        match agreed {
            Ok(version) => {
                conn.version = Some(version);
                let (name, spoken) = (&conn.name, version.name());
                let tables = self.dp.version();
                let stand = match tables != version && !self.dp.is_empty() {
                    true => format!(
                        "; the flows of OpenFlow {} stand until it changes something",
                        tables.name()
                    ),
                    false => String::new(),
                };
                match self.pace.may(now_ns) {
                    true => tracing::info!("controller {name}: OpenFlow {spoken}{stand}"),
                    false => tracing::debug!("controller {name}: OpenFlow {spoken}{stand}"),
                }
                self.follow_controllers(now_ns);
            }
            Err(text) => {
                // in the peer's version, if it is one that can be written
                let theirs = header.and_then(|h| Version::of(h.version));
                let own = conn.spoken();
                conn.version = theirs.filter(|v| *v <= own);
                let error = Error::HELLO_FAILED_INCOMPATIBLE;
                conn.refuse(xid, error, text.as_bytes());
                conn.version = None;
                conn.finish(format!("disconnected: {error}: {text}"));
            }
        }
    }

    /// What follows from who is connected, and from what they wish.
    pub(crate) fn refresh(&mut self) {
        let up = || self.conns.values().filter(|c| c.is_up());
        let alone = self.settings.fail == Fail::Standalone && up().next().is_none();
        let ttl = up().any(|c| {
            c.wants
                .packet_in
                .get(c.half())
                .is_some_and(|w| w >> 2 & 1 != 0)
        });
        if alone != self.alone {
            self.alone = alone;
            self.dp.stand_alone(alone);
            tracing::info!(
                "{}",
                if alone {
                    "no controller: an ordinary learning switch (fail-standalone)"
                } else {
                    "a controller is there: its tables forward"
                }
            );
        }
        if ttl != self.dp.switch.config().invalid_ttl {
            self.dp.set_invalid_ttl(ttl);
        }
    }

    // -- ports

    /// A port is there. False: it was there already, and is as it was.
    pub fn add_port(
        &mut self,
        number: u32,
        name: &str,
        hw_addr: [u8; 6],
        link: (bool, u32),
        now_ns: u64,
    ) -> bool {
        if self.dp.ports.contains_key(&number) {
            return false;
        }
        let mut entry = PortEntry::new(number, name, hw_addr, now_ns);
        let past = self.dp.past_ports.remove(&number);
        if let Some(past) = past.filter(|p| p.name == name) {
            entry.restore(past, self.dp.version());
        }
        entry.set_link(link.0, link.1);
        let port = entry.port.clone();
        self.dp.ports.insert(number, entry);
        self.dp.set_port(number, now_ns);
        self.dp.keep_port(number);
        self.tell_port(PortReason::Add, &port);
        true
    }

    /// A port of the chip below, which is nobody's, is the switch's from here on.
    pub fn add_chip_port(&mut self, of: PortOf, name: &str, link: (bool, u32), now_ns: u64) {
        if self.add_port(of.number, name, of.mac, link, now_ns) {
            self.dp.add_chip_port(of);
        }
    }

    /// It is gone. False: it was not there.
    pub fn remove_port(&mut self, number: u32) -> bool {
        match self.dp.remove_port(number) {
            Some(entry) => {
                self.tell_port(PortReason::Delete, &entry.port);
                true
            }
            None => false,
        }
    }

    /// Its link and speed (Mb/s).
    pub fn set_link(&mut self, number: u32, up: bool, mbps: u32, now_ns: u64) {
        if let Some(e) = self.dp.ports.get_mut(&number)
            && e.set_link(up, mbps)
        {
            let port = e.port.clone();
            self.dp.set_port(number, now_ns);
            self.dp.keep_port(number);
            self.tell_port(PortReason::Modify, &port);
        }
    }

    /// What its cable lost since the start.
    pub fn set_lost(&mut self, number: u32, lost: Lost) {
        if let Some(e) = self.dp.ports.get_mut(&number) {
            e.lost = lost.and(e.past_lost);
        }
    }

    pub(crate) fn tell_port(&mut self, reason: PortReason, port: &Port) {
        for conn in self.conns.values_mut().filter(|c| c.is_up()) {
            let wanted = conn.wants.port_status.get(conn.half()).copied();
            if wanted.unwrap_or(0) >> reason as u8 & 1 != 0 {
                conn.tell(&Reply::PortStatus { reason, port });
            }
        }
    }

    pub(crate) fn tell_removed(&mut self) {
        let mut removed = std::mem::take(&mut self.removed);
        // one message empties all tables at most; who does not read meanwhile has another one's to come
        let most = (self.settings.max_flows as usize).saturating_mul(2);
        for flow in removed.drain(..).map(Arc::new) {
            for conn in self.conns.values_mut().filter(|c| c.is_up()) {
                let wanted = conn.wants.flow_removed.get(conn.half()).copied();
                if wanted.unwrap_or(0) >> flow.reason as u8 & 1 != 0 {
                    conn.tell_removed(&flow, most);
                }
            }
        }
        if removed.capacity() > EXPIRIES {
            removed = Vec::new();
        }
        self.removed = removed;
    }

    // -- packets

    /// A frame that came in by a port, segmented if it was a super-frame.
    #[inline]
    pub fn frame<W: Wires>(
        &mut self,
        in_port: u32,
        frame: &mut Frame<'_>,
        now_ns: u64,
        wires: &mut W,
    ) {
        if self.alone {
            self.frame_alone(in_port, frame, now_ns, wires);
            return;
        }
        let mut leaves = Leaves {
            wires: &mut *wires,
            conns: &mut self.conns,
            buffers: &mut self.buffers,
            normal: &mut self.normal,
            now_ns,
        };
        self.dp.switch.process(frame, in_port, now_ns, &mut leaves);
        if !self.normal.is_empty() {
            self.settle(now_ns, wires);
        }
    }

    fn frame_alone<W: Wires>(
        &mut self,
        in_port: u32,
        frame: &mut Frame<'_>,
        now_ns: u64,
        wires: &mut W,
    ) {
        let Some(e) = self.dp.ports.get_mut(&in_port).filter(|e| e.receives()) else {
            return;
        };
        e.past.rx.add(frame.len() as u64);
        if frame.offload.csum.is_some() {
            checksum::complete(frame);
        }
        self.switch_normally(in_port, frame, now_ns, wires);
    }

    /// What an ordinary switch would do.
    fn switch_normally<W: Wires>(
        &mut self,
        in_port: u32,
        frame: &mut Frame<'_>,
        now_ns: u64,
        wires: &mut W,
    ) {
        let from = self.dp.ports.contains_key(&in_port).then_some(in_port);
        let to = match self.dp.learning.see(from, frame.bytes(), now_ns) {
            Goes::To(port) => port,
            Goes::Everywhere => port::FLOOD,
            Goes::Nowhere => return,
        };
        let max_len = 0;
        let _ = self.run(
            in_port,
            &[Action::Output { port: to, max_len }],
            frame,
            now_ns,
            wires,
        );
    }

    /// Frames for `NORMAL`. What they become goes to ports alone, so that none are left.
    fn settle<W: Wires>(&mut self, now_ns: u64, wires: &mut W) {
        for (in_port, mut mem) in self.normal.take() {
            let end = mem.len();
            let mut frame = Frame::new(&mut mem, 0, end, Offload::NONE);
            self.switch_normally(in_port, &mut frame, now_ns, wires);
            self.normal.done(mem);
        }
    }

    fn run<W: Wires>(
        &mut self,
        in_port: u32,
        actions: &[Action],
        frame: &mut Frame<'_>,
        now_ns: u64,
        wires: &mut W,
    ) -> Result<(), Error> {
        let mut leaves = Leaves {
            wires,
            conns: &mut self.conns,
            buffers: &mut self.buffers,
            normal: &mut self.normal,
            now_ns,
        };
        self.dp
            .switch
            .packet_out(frame, in_port, actions, now_ns, &mut leaves)
    }

    /// A controller's packet.
    ///
    /// # Errors
    /// Nothing was done.
    pub(crate) fn packet_out<W: Wires>(
        &mut self,
        in_port: u32,
        actions: &[Action],
        bytes: &[u8],
        now_ns: u64,
        wires: &mut W,
    ) -> Result<(), Error> {
        let mut mem = std::mem::take(&mut self.mem);
        let done = if mem.set(bytes) {
            let mut frame = mem.frame(Offload::NONE);
            self.run(in_port, actions, &mut frame, now_ns, wires)
        } else {
            Err(Error::BAD_REQUEST_BAD_PACKET)
        };
        self.mem = mem;
        self.settle(now_ns, wires);
        done
    }

    // -- time

    /// Does what is due; when to be called again at the latest.
    pub fn tick(&mut self, now_ns: u64) -> u64 {
        let mut next = now_ns + SWEEP_NS;
        let mut removed = std::mem::take(&mut self.removed);
        if let Some(at) = self.dp.expire(now_ns, EXPIRIES, &mut removed) {
            next = next.min(at.max(now_ns));
        }
        self.removed = removed;
        self.tell_removed();
        let mut ended = false;
        for conn in self.conns.values_mut().filter(|c| c.end().is_none()) {
            next = next.min(conn.look(self.settings.probe_ns, now_ns));
            ended |= conn.end().is_some();
        }
        if ended {
            self.refresh();
        }
        self.follow_controllers(now_ns);
        if now_ns.saturating_sub(self.swept_ns) >= SWEEP_NS {
            self.swept_ns = now_ns;
            self.buffers.expire(now_ns);
            self.dp.learning.expire(now_ns);
        }
        next
    }

    fn goes_alone(&self, in_port: u32, bytes: &[u8], now_ns: u64) -> Option<u32> {
        self.dp.ports.get(&in_port).filter(|e| e.receives())?;
        match self.dp.learning.goes(bytes, now_ns) {
            Goes::To(port) => Some(port),
            Goes::Everywhere => Some(port::FLOOD),
            Goes::Nowhere => None,
        }
    }

    /// A packet's way on paper, in order: nothing is counted or learned, nothing leaves.
    pub fn on_paper(&self, in_port: u32, bytes: &[u8], now_ns: u64) -> Vec<Step> {
        let mut steps = Steps::default();
        let mut mem = Buffer::new();
        if mem.set(bytes) {
            let mut switch = self.dp.switch.clone();
            let mut frame = mem.frame(Offload::NONE);
            if self.alone {
                let to = self.goes_alone(in_port, bytes, now_ns);
                steps.0.push(Step::Alone { to });
                let actions = to.map(|port| Action::Output { port, max_len: 0 });
                let _ =
                    switch.packet_out(&mut frame, in_port, actions.as_slice(), now_ns, &mut steps);
            } else {
                switch.process(&mut frame, in_port, now_ns, &mut steps);
            }
        }
        steps.0
    }
}
