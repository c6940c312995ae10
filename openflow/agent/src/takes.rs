// SPDX-License-Identifier: Apache-2.0
//! Whose the tables are: they are of one version, that of the controllers that change them, and begin anew in the other.

use tandem_ofpipeline::Switch;
use tandem_openflow::model::Request;
use tandem_openflow::{Error, Version};
use tandem_packet::{Buffer, Offload};

use crate::agent::{Agent, ConnId};
use crate::datapath;
use crate::roles::modifies;
use crate::trace::Steps;

/// Does it change flows, groups, meters, ports or the configuration, or send a packet? Then the tables have to be of its
/// version. Of a TABLE_MOD and a wish for tables nothing follows.
fn changes(request: &Request<'_>) -> bool {
    modifies(request) && !matches!(request, Request::TableMod(_) | Request::Multipart(_))
}

impl Agent {
    /// The tables' version, if a controller other than `id` speaks it: then they are its.
    pub(crate) fn spoken_by_others(&self, id: Option<ConnId>) -> Option<Version> {
        let tables = self.dp.version();
        let mut others = self.conns.iter().filter(|(other, _)| Some(**other) != id);
        others
            .any(|(_, c)| c.is_up() && c.version == Some(tables))
            .then_some(tables)
    }

    /// A controller is about to change something: from here on the tables are of its version. Who asks alone takes
    /// nothing away, nor does a change that is refused.
    ///
    /// # Errors
    /// `EPERM`: they are those of a controller of the other version. Else what is wrong with the change.
    pub(crate) fn take_tables(
        &mut self,
        id: ConnId,
        request: &Request<'_>,
        now_ns: u64,
    ) -> Result<(), Error> {
        let tables = self.dp.version();
        let own = self.conns.get(&id).and_then(|c| c.version);
        let Some(version) = own.filter(|v| *v != tables && changes(request)) else {
            return Ok(());
        };
        if self.spoken_by_others(Some(id)).is_some() {
            return Err(Error::BAD_REQUEST_EPERM);
        }
        self.try_out(version, request, now_ns)?;
        if !self.dp.is_empty() {
            tracing::warn!(
                "the tables were those of OpenFlow {}: they begin anew, empty",
                tables.name()
            );
        }
        self.begin_tables(version, now_ns);
        Ok(())
    }

    /// The change, on empty tables of its version that are nobody's, if it is one of tables.
    fn try_out(
        &mut self,
        version: Version,
        request: &Request<'_>,
        now_ns: u64,
    ) -> Result<(), Error> {
        match request {
            Request::SetConfig(c) => return datapath::fragments(c.fragments).map(|_| ()),
            Request::PortMod(m) => {
                let port = self.dp.ports.get(&m.port);
                let mut port = port.cloned().ok_or(Error::PORT_MOD_FAILED_BAD_PORT)?;
                return port.modify(m, version).map(|_| ());
            }
            _ => {}
        }
        let mut tables = self.dp.take_empty(&self.settings, version, now_ns);
        let done = self.try_on(&mut tables, request, now_ns);
        if done.is_err() {
            // What is refused has changed nothing: the next one is tried on these
            self.dp.empty = Some(tables);
        }
        done
    }

    fn try_on(
        &mut self,
        tables: &mut Switch,
        request: &Request<'_>,
        now_ns: u64,
    ) -> Result<(), Error> {
        let mut removed = Vec::new();
        match request {
            Request::FlowMod(m) => {
                self.look_for_buffer(m, now_ns)?;
                tables.flow_mod(m, now_ns, &mut removed)
            }
            Request::GroupMod(m) => tables.group_mod(m, now_ns, &mut removed),
            Request::MeterMod(m) => tables.meter_mod(m, now_ns, &mut removed),
            Request::PacketOut(m) => {
                self.check_in_port(m)?;
                let kept = match m.buffer {
                    Some(b) => Some((b, self.buffers.take(b, now_ns)?)),
                    None => None,
                };
                let mut mem = Buffer::new();
                let there = mem.set(kept.as_ref().map_or(m.data, |(_, k)| &k.bytes));
                if let Some((b, packet)) = kept {
                    self.buffers.put_back(b, packet);
                }
                if !there {
                    return Err(Error::BAD_REQUEST_BAD_PACKET);
                }
                let (mut frame, mut steps) = (mem.frame(Offload::NONE), Steps::default());
                tables.packet_out(&mut frame, m.in_port, &m.actions, now_ns, &mut steps)
            }
            _ => Ok(()),
        }
    }

    /// Empty tables of a version. Answers about flows of the earlier ones end with what they have told.
    pub(crate) fn begin_tables(&mut self, version: Version, now_ns: u64) {
        self.dp
            .begin(&self.settings, version, now_ns, &mut self.removed);
        self.tell_removed();
        let listings = self.conns.values_mut().filter_map(|c| c.listing.as_mut());
        listings.for_each(|l| l.from = u32::MAX);
    }

    /// Empty tables are of the version of those who are there, if none of them speaks theirs: nothing is taken away, and
    /// the version says what becomes of packets that meet no flow.
    pub(crate) fn follow_controllers(&mut self, now_ns: u64) {
        let tables = self.dp.version();
        let mut other = None;
        for conn in self.conns.values().filter(|c| c.is_up()) {
            if conn.version == Some(tables) {
                return;
            }
            other = conn.version;
        }
        if let Some(version) = other
            && self.dp.is_empty()
            && !self.dp.has_late()
        {
            self.begin_tables(version, now_ns);
        }
    }
}
