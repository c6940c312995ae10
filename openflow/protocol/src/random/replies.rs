// SPDX-License-Identifier: Apache-2.0
//! A switch's messages.

use super::Source;
use crate::model::*;
use crate::{Error, Field, Hello, Oxm, Version};

/// A switch's message, with what it borrows.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum OwnedReply {
    Hello(Hello),
    Error(Error, Vec<u8>),
    Echo(Vec<u8>),
    EchoReply(Vec<u8>),
    Experimenter(u32, u32, Vec<u8>),
    Features(Features),
    Config(Config),
    PacketIn {
        buffer: Option<u32>,
        total_len: u16,
        reason: PacketReason,
        table: u8,
        cookie: u64,
        fields: Vec<Oxm>,
        data: Vec<u8>,
    },
    FlowRemoved(FlowRemoved),
    PortStatus(PortReason, Port),
    Barrier,
    QueueConfig(u32, Vec<Queue>),
    Role(RoleRequest),
    Async(Async),
}

impl OwnedReply {
    /// As it is encoded.
    pub fn borrow(&self) -> Reply<'_> {
        match self {
            OwnedReply::Hello(hello) => Reply::Hello(*hello),
            OwnedReply::Error(error, data) => Reply::Error {
                error: *error,
                data,
            },
            OwnedReply::Echo(data) => Reply::Echo(data),
            OwnedReply::EchoReply(data) => Reply::EchoReply(data),
            OwnedReply::Experimenter(experimenter, kind, data) => {
                Reply::Experimenter(Experimenter {
                    experimenter: *experimenter,
                    kind: *kind,
                    data,
                })
            }
            OwnedReply::Features(features) => Reply::Features(features),
            OwnedReply::Config(config) => Reply::Config(*config),
            OwnedReply::PacketIn {
                buffer,
                total_len,
                reason,
                table,
                cookie,
                fields,
                data,
            } => Reply::PacketIn(PacketIn {
                buffer: *buffer,
                total_len: *total_len,
                reason: *reason,
                table: *table,
                cookie: *cookie,
                fields,
                data,
            }),
            OwnedReply::FlowRemoved(removed) => Reply::FlowRemoved(removed),
            OwnedReply::PortStatus(reason, port) => Reply::PortStatus {
                reason: *reason,
                port,
            },
            OwnedReply::Barrier => Reply::Barrier,
            OwnedReply::QueueConfig(port, queues) => Reply::QueueConfig {
                port: *port,
                queues,
            },
            OwnedReply::Role(role) => Reply::Role(*role),
            OwnedReply::Async(filters) => Reply::Async(*filters),
        }
    }
}

/// A part of a multipart reply, with what it borrows.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum OwnedPart {
    Desc(Desc),
    Flow(FlowStats),
    Aggregate(Aggregate),
    Table(TableStats),
    Port(PortStats),
    Queue(QueueStats),
    Group(GroupStats),
    GroupDesc(GroupDesc),
    GroupFeatures(GroupFeatures),
    Meter(MeterStats),
    MeterConfig(MeterConfig),
    MeterFeatures(MeterFeatures),
    TableFeatures(TableFeatures),
    PortDesc(Port),
}

impl OwnedPart {
    /// As it is encoded.
    pub fn borrow(&self) -> Part<'_> {
        match self {
            OwnedPart::Desc(x) => Part::Desc(x),
            OwnedPart::Flow(x) => Part::Flow(x),
            OwnedPart::Aggregate(x) => Part::Aggregate(x),
            OwnedPart::Table(x) => Part::Table(x),
            OwnedPart::Port(x) => Part::Port(x),
            OwnedPart::Queue(x) => Part::Queue(x),
            OwnedPart::Group(x) => Part::Group(x),
            OwnedPart::GroupDesc(x) => Part::GroupDesc(x),
            OwnedPart::GroupFeatures(x) => Part::GroupFeatures(x),
            OwnedPart::Meter(x) => Part::Meter(x),
            OwnedPart::MeterConfig(x) => Part::MeterConfig(x),
            OwnedPart::MeterFeatures(x) => Part::MeterFeatures(x),
            OwnedPart::TableFeatures(x) => Part::TableFeatures(x),
            OwnedPart::PortDesc(x) => Part::PortDesc(x),
        }
    }
}

impl Source<'_> {
    /// A switch's message of the version.
    pub fn reply(&mut self, version: Version) -> OwnedReply {
        let kinds = if version == Version::V10 { 12 } else { 14 };
        match self.u8() % kinds {
            0 => OwnedReply::Hello(Hello {
                version: version as u8,
                bitmap: self.often().then(|| self.u32()),
            }),
            1 => {
                let error = Error {
                    kind: u16::from(self.u8() % 14),
                    code: u16::from(self.u8() % 16),
                };
                OwnedReply::Error(error, self.data().to_vec())
            }
            2 => OwnedReply::Echo(self.data().to_vec()),
            3 => OwnedReply::EchoReply(self.data().to_vec()),
            4 => OwnedReply::Experimenter(self.u32(), self.u32(), self.data().to_vec()),
            5 => OwnedReply::Features(Features {
                datapath: self.u64(),
                buffers: self.u32(),
                tables: self.u8(),
                auxiliary: self.u8(),
                capabilities: self.u32(),
                ports: self.many(5, |s| s.phy_port(version)),
            }),
            6 => OwnedReply::Config(self.config()),
            7 => OwnedReply::PacketIn {
                buffer: self.buffer(),
                total_len: self.u16(),
                reason: self.one(PacketReason::ALL).unwrap_or(PacketReason::NoMatch),
                table: self.u8(),
                cookie: self.u64(),
                fields: self.pipeline_fields(version),
                data: self.data().to_vec(),
            },
            8 => OwnedReply::FlowRemoved(FlowRemoved {
                cookie: self.u64(),
                priority: self.u16(),
                reason: self
                    .one(RemovedReason::ALL)
                    .unwrap_or(RemovedReason::Delete),
                table: self.u8(),
                lifetime: self.lifetime(),
                idle_timeout: self.u16(),
                hard_timeout: self.u16(),
                packets: self.u64(),
                bytes: self.u64(),
                matching: self.matching(version),
            }),
            9 => OwnedReply::PortStatus(
                self.one(PortReason::ALL).unwrap_or(PortReason::Add),
                self.phy_port(version),
            ),
            10 => OwnedReply::Barrier,
            11 => OwnedReply::QueueConfig(
                self.port(version),
                self.many(4, |s| Queue {
                    queue: s.u32(),
                    port: s.u32(),
                    min_rate: s.often().then(|| s.u16()),
                    max_rate: s.often().then(|| s.u16()),
                }),
            ),
            12 => OwnedReply::Role(self.role()),
            _ => OwnedReply::Async(self.filters()),
        }
    }

    fn pipeline_fields(&mut self, version: Version) -> Vec<Oxm> {
        let mut fields = vec![Oxm::exact(Field::InPort, u128::from(self.port(version)))];
        for field in [Field::InPhyPort, Field::Metadata, Field::TunnelId] {
            if self.often() {
                fields.push(Oxm::exact(field, u128::from(self.u64())));
            }
        }
        fields
    }

    fn phy_port(&mut self, version: Version) -> Port {
        Port {
            number: self.port(version),
            hw_addr: self.mac(),
            name: self.text(16),
            config: self.u32() & 0x7f,
            state: self.u32() & 7,
            current: self.u32() & 0xffff,
            advertised: self.u32() & 0xffff,
            supported: self.u32() & 0xffff,
            peer: self.u32() & 0xffff,
            current_speed: self.u32(),
            max_speed: self.u32(),
        }
    }

    fn pairs(&mut self) -> Vec<(u64, u64)> {
        self.many(5, |s| (s.u64(), s.u64()))
    }

    /// An answer's part to `asks`.
    pub fn part(&mut self, version: Version, asks: &Asks<'_>) -> Option<OwnedPart> {
        Some(match asks {
            Asks::Desc => OwnedPart::Desc(Desc {
                manufacturer: self.text(256),
                hardware: self.text(200),
                software: self.text(20),
                serial: self.text(32),
                datapath: self.text(90),
            }),
            Asks::Flow(_) => OwnedPart::Flow(FlowStats {
                table: self.u8(),
                lifetime: self.lifetime(),
                priority: self.u16(),
                idle_timeout: self.u16(),
                hard_timeout: self.u16(),
                flags: self.u16() & flow_flags::ALL,
                cookie: self.u64(),
                packets: self.u64(),
                bytes: self.u64(),
                matching: self.matching(version),
                instructions: self.instructions(version),
            }),
            Asks::Aggregate(_) => OwnedPart::Aggregate(Aggregate {
                packets: self.u64(),
                bytes: self.u64(),
                flows: self.u32(),
            }),
            Asks::Table => OwnedPart::Table(TableStats {
                table: self.u8(),
                name: self.text(32),
                max_entries: self.u32(),
                active: self.u32(),
                lookups: self.u64(),
                matched: self.u64(),
            }),
            Asks::Port { .. } => OwnedPart::Port(PortStats {
                port: self.port(version),
                rx_packets: self.u64(),
                tx_packets: self.u64(),
                rx_bytes: self.u64(),
                tx_bytes: self.u64(),
                rx_dropped: self.u64(),
                tx_dropped: self.u64(),
                rx_errors: self.u64(),
                tx_errors: self.u64(),
                rx_frame_err: self.u64(),
                rx_over_err: self.u64(),
                rx_crc_err: self.u64(),
                collisions: self.u64(),
                lifetime: self.lifetime(),
            }),
            Asks::Queue { .. } => OwnedPart::Queue(QueueStats {
                port: self.port(version),
                queue: self.u32(),
                tx_bytes: self.u64(),
                tx_packets: self.u64(),
                tx_errors: self.u64(),
                lifetime: self.lifetime(),
            }),
            Asks::Group { .. } => OwnedPart::Group(GroupStats {
                group: self.u32(),
                references: self.u32(),
                packets: self.u64(),
                bytes: self.u64(),
                lifetime: self.lifetime(),
                buckets: self.pairs(),
            }),
            Asks::GroupDesc => OwnedPart::GroupDesc(GroupDesc {
                group: self.u32(),
                kind: self.one(GroupType::ALL).unwrap_or(GroupType::All),
                buckets: self.buckets(),
            }),
            Asks::GroupFeatures => OwnedPart::GroupFeatures(GroupFeatures {
                types: self.u32(),
                capabilities: self.u32(),
                max_groups: std::array::from_fn(|_| self.u32()),
                actions: std::array::from_fn(|_| self.u32()),
            }),
            Asks::Meter { .. } => OwnedPart::Meter(MeterStats {
                meter: self.u32(),
                flows: self.u32(),
                packets: self.u64(),
                bytes: self.u64(),
                lifetime: self.lifetime(),
                bands: self.pairs(),
            }),
            Asks::MeterConfig { .. } => OwnedPart::MeterConfig(MeterConfig {
                meter: self.u32(),
                flags: self.u16() & meter_flags::ALL,
                bands: self.bands(),
            }),
            Asks::MeterFeatures => OwnedPart::MeterFeatures(MeterFeatures {
                max_meters: self.u32(),
                band_types: self.u32(),
                capabilities: self.u32(),
                max_bands: self.u8(),
                max_color: self.u8(),
            }),
            Asks::TableFeatures(_) => OwnedPart::TableFeatures(self.table_features()),
            Asks::PortDesc => OwnedPart::PortDesc(self.phy_port(version)),
            Asks::Experimenter(_) => return None,
        })
    }
}
