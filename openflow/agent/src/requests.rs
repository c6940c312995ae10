// SPDX-License-Identifier: Apache-2.0
//! A controller's messages, one by one.

use tandem_ofpipeline::Fragments;
use tandem_openflow::model::{
    Config, Features, FlowMod, Fragments as Wanted, Lifetime, Multipart, PacketOut, PortMod,
    PortReason, Queue, Reply, Request, TABLE_ALL, capabilities,
};
use tandem_openflow::{Action, Error, Header, Version, decode, port};

use crate::agent::{Agent, ConnId};
use crate::buffers::BUFFERS;
use crate::datapath;
use crate::leaves::Wires;
use crate::roles;
use tandem_openflow::model::Role;

/// What it can (§7.3.1).
const CAPABILITIES: u32 = capabilities::FLOW_STATS
    | capabilities::TABLE_STATS
    | capabilities::PORT_STATS
    | capabilities::GROUP_STATS
    | capabilities::QUEUE_STATS;

/// Time as messages have it.
pub(crate) fn lifetime(since_ns: u64, now_ns: u64) -> Lifetime {
    let ns = now_ns.saturating_sub(since_ns);
    Lifetime {
        sec: u32::try_from(ns / 1_000_000_000).unwrap_or(u32::MAX),
        nsec: (ns % 1_000_000_000) as u32,
    }
}

impl Agent {
    /// One message; its answer, or an error, is appended to the connection's output.
    pub(crate) fn request<W: Wires>(
        &mut self,
        id: ConnId,
        version: Version,
        message: &[u8],
        now_ns: u64,
        wires: &mut W,
    ) {
        let refused = match decode(version, message) {
            Ok((xid, request)) => self.carry_out(id, xid, &request, now_ns, wires),
            Err(malformed) => {
                tracing::debug!("controller {}: {malformed}", self.name(id));
                Err(malformed.error)
            }
        };
        if let Err(error) = refused
            && let Some(conn) = self.conns.get_mut(&id)
        {
            tracing::debug!("controller {}: {error}", conn.name);
            let xid = Header::of(message).map_or(0, |h| h.xid);
            conn.refuse(xid, error, message);
        }
    }

    fn name(&self, id: ConnId) -> &str {
        self.conns.get(&id).map_or("", |c| c.name())
    }

    /// # Errors
    /// `EPERM`: the answer would be longer than a message may be.
    fn answer(&mut self, id: ConnId, xid: u32, reply: &Reply<'_>) -> Result<(), Error> {
        let written = self.conns.get_mut(&id).is_none_or(|c| c.reply(xid, reply));
        match reply {
            _ if written => Ok(()),
            Reply::QueueConfig { .. } => Err(Error::QUEUE_OP_FAILED_EPERM),
            _ => Err(Error::BAD_REQUEST_EPERM),
        }
    }

    fn carry_out<W: Wires>(
        &mut self,
        id: ConnId,
        xid: u32,
        request: &Request<'_>,
        now_ns: u64,
        wires: &mut W,
    ) -> Result<(), Error> {
        let slave = self.conns.get(&id).is_some_and(|c| c.role == Role::Slave);
        if slave && roles::modifies(request) {
            return Err(Error::BAD_REQUEST_IS_SLAVE);
        }
        self.take_tables(id, request, now_ns)?;
        match request {
            Request::Hello(_) | Request::EchoReply(_) => {}
            Request::Error { kind, code, .. } => {
                let error = Error {
                    kind: *kind,
                    code: *code,
                };
                let loud = self.conns.get_mut(&id).is_some_and(|c| c.pace.may(now_ns));
                let name = self.name(id);
                match loud {
                    true => tracing::warn!("controller {name} says: {error}"),
                    false => tracing::debug!("controller {name} says: {error}"),
                }
            }
            Request::Echo(data) => self.answer(id, xid, &Reply::EchoReply(data))?,
            Request::Experimenter(_) => return Err(Error::BAD_REQUEST_BAD_EXPERIMENTER),
            Request::Features => {
                let features = self.features(id);
                self.answer(id, xid, &Reply::Features(&features))?;
            }
            Request::GetConfig => {
                let config = self.config();
                self.answer(id, xid, &Reply::Config(config))?;
            }
            Request::SetConfig(c) => self.dp.set_config(c.fragments, c.miss_send_len)?,
            Request::PacketOut(m) => self.packet_out_message(m, now_ns, wires)?,
            Request::FlowMod(m) => self.flow_mod(m, now_ns, wires)?,
            Request::GroupMod(m) => {
                self.dp.group_mod(m, now_ns, &mut self.removed)?;
                self.tell_removed();
            }
            Request::MeterMod(m) => {
                self.dp.meter_mod(m, now_ns, &mut self.removed)?;
                self.tell_removed();
            }
            Request::PortMod(m) => self.port_mod(m, now_ns)?,
            Request::TableMod(m) => {
                let tables = datapath::tables(&self.settings, self.spoken(id));
                if m.table != TABLE_ALL && m.table >= tables {
                    return Err(Error::TABLE_MOD_FAILED_BAD_TABLE);
                }
            }
            Request::Multipart(Multipart { more, asks }) => {
                self.multipart(id, xid, *more, asks, now_ns)?;
            }
            Request::Barrier => self.answer(id, xid, &Reply::Barrier)?,
            Request::QueueConfig { port } => self.queue_config(id, xid, *port)?,
            Request::Role(asked) => {
                let role = self.change_role(id, *asked)?;
                self.answer(id, xid, &Reply::Role(role))?;
            }
            Request::GetAsync => {
                if let Some(wants) = self.conns.get(&id).map(|c| c.wants) {
                    self.answer(id, xid, &Reply::Async(wants))?;
                }
            }
            Request::SetAsync(wants) => {
                if let Some(conn) = self.conns.get_mut(&id) {
                    conn.wants = *wants;
                }
                self.refresh();
            }
        }
        Ok(())
    }

    /// The version of a controller.
    fn spoken(&self, id: ConnId) -> Version {
        let own = self.conns.get(&id).and_then(|c| c.version());
        own.unwrap_or(self.dp.version())
    }

    /// What a controller has that changes something: tables of its version.
    fn features(&self, id: ConnId) -> Features {
        Features {
            datapath: self.settings.datapath,
            buffers: BUFFERS,
            tables: datapath::tables(&self.settings, self.spoken(id)),
            auxiliary: 0,
            capabilities: CAPABILITIES,
            ports: self.dp.ports().map(|e| e.port.clone()).collect(),
        }
    }

    fn config(&self) -> Config {
        let c = self.dp.switch.config();
        Config {
            fragments: match c.fragments {
                Fragments::Normal => Wanted::Normal,
                Fragments::Drop => Wanted::Drop,
            },
            miss_send_len: c.miss_send_len,
        }
    }

    /// The buffer that it names and that counts, if it is there.
    pub(crate) fn look_for_buffer(
        &mut self,
        m: &FlowMod,
        now_ns: u64,
    ) -> Result<Option<u32>, Error> {
        let buffer = m.buffer.filter(|_| !m.command.deletes());
        if let Some(b) = buffer {
            self.buffers.look(b, now_ns)?;
        }
        Ok(buffer)
    }

    /// Is the port there that a packet is to have come in by?
    pub(crate) fn check_in_port(&self, m: &PacketOut<'_>) -> Result<(), Error> {
        match m.in_port <= port::MAX && !self.dp.ports.contains_key(&m.in_port) {
            true => Err(Error::BAD_REQUEST_BAD_PORT),
            false => Ok(()),
        }
    }

    /// A buffer that it names has to be there before the flow is taken, so that nothing is half done.
    fn flow_mod<W: Wires>(&mut self, m: &FlowMod, now_ns: u64, wires: &mut W) -> Result<(), Error> {
        let buffer = self.look_for_buffer(m, now_ns)?;
        self.dp.flow_mod(m, now_ns, &mut self.removed)?;
        self.tell_removed();
        let Some(b) = buffer else {
            return Ok(());
        };
        let kept = self.buffers.take(b, now_ns)?;
        let through = [Action::Output {
            port: port::TABLE,
            max_len: 0,
        }];
        let actions = match self.dp.version() {
            Version::V10 => m.instructions.apply.as_deref().unwrap_or_default(),
            Version::V13 => through.as_slice(),
        };
        self.packet_out(kept.in_port, actions, &kept.bytes, now_ns, wires)
    }

    fn packet_out_message<W: Wires>(
        &mut self,
        m: &PacketOut<'_>,
        now_ns: u64,
        wires: &mut W,
    ) -> Result<(), Error> {
        self.check_in_port(m)?;
        let Some(b) = m.buffer else {
            return self.packet_out(m.in_port, &m.actions, m.data, now_ns, wires);
        };
        let kept = self.buffers.take(b, now_ns)?;
        let done = self.packet_out(m.in_port, &m.actions, &kept.bytes, now_ns, wires);
        if done.is_err() {
            self.buffers.put_back(b, kept);
        }
        done
    }

    fn port_mod(&mut self, m: &PortMod, now_ns: u64) -> Result<(), Error> {
        let version = self.dp.version();
        let entry = self
            .dp
            .ports
            .get_mut(&m.port)
            .ok_or(Error::PORT_MOD_FAILED_BAD_PORT)?;
        if entry.modify(m, version)? {
            let port = entry.port.clone();
            self.dp.set_port(m.port, now_ns);
            self.dp.keep_port(m.port);
            self.tell_port(PortReason::Modify, &port);
        }
        Ok(())
    }

    /// Queues of a port, or of all.
    fn queue_config(&mut self, id: ConnId, xid: u32, asked: u32) -> Result<(), Error> {
        if asked != port::ANY && !self.dp.ports.contains_key(&asked) {
            return Err(Error::QUEUE_OP_FAILED_BAD_PORT);
        }
        let queues: Vec<Queue> = self
            .dp
            .switch
            .ports()
            .filter(|e| asked == port::ANY || e.port.number == asked)
            .flat_map(|e| {
                e.port.queues.iter().map(|q| Queue {
                    queue: *q,
                    port: e.port.number,
                    ..Queue::default()
                })
            })
            .collect();
        let queues = queues.as_slice();
        self.answer(
            id,
            xid,
            &Reply::QueueConfig {
                port: asked,
                queues,
            },
        )
    }
}
