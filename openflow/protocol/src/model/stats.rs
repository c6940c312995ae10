// SPDX-License-Identifier: Apache-2.0
//! Multipart requests (§7.3.5) and what their replies consist of. A counter that is not kept is all ones (§7.3.5).

use super::{Band, Bucket, Experimenter, GroupType, Lifetime, Port, TableFeatures};
use crate::{Instructions, Match};

/// A multipart request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multipart<'a> {
    /// `OFPMPF_REQ_MORE`: another of the same transaction follows.
    pub more: bool,
    /// What is asked.
    pub asks: Asks<'a>,
}

/// Which of the flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowFilter {
    /// [`super::TABLE_ALL`] for all.
    pub table: u8,
    /// [`crate::port::ANY`] for all.
    pub out_port: u32,
    /// [`super::GROUP_ANY`] for all.
    pub out_group: u32,
    /// With this cookie in the mask's bits.
    pub cookie: u64,
    /// 0: all.
    pub cookie_mask: u64,
    /// As a non-strict delete would match.
    pub matching: Match,
}

/// `ofp_multipart_type` with the request's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asks<'a> {
    /// `OFPMP_DESC`.
    Desc,
    /// `OFPMP_FLOW`.
    Flow(FlowFilter),
    /// `OFPMP_AGGREGATE`.
    Aggregate(FlowFilter),
    /// `OFPMP_TABLE`.
    Table,
    /// `OFPMP_PORT_STATS`; [`crate::port::ANY`]: all.
    #[allow(missing_docs)]
    Port { port: u32 },
    /// `OFPMP_QUEUE`; [`crate::port::ANY`] and [`QUEUE_ALL`]: all.
    #[allow(missing_docs)]
    Queue { port: u32, queue: u32 },
    /// `OFPMP_GROUP`; [`super::GROUP_ALL`]: all.
    #[allow(missing_docs)]
    Group { group: u32 },
    /// `OFPMP_GROUP_DESC`.
    GroupDesc,
    /// `OFPMP_GROUP_FEATURES`.
    GroupFeatures,
    /// `OFPMP_METER`; [`super::METER_ALL`]: all.
    #[allow(missing_docs)]
    Meter { meter: u32 },
    /// `OFPMP_METER_CONFIG`; [`super::METER_ALL`]: all.
    #[allow(missing_docs)]
    MeterConfig { meter: u32 },
    /// `OFPMP_METER_FEATURES`.
    MeterFeatures,
    /// `OFPMP_TABLE_FEATURES`; with tables it is a wish, without a question.
    TableFeatures(Vec<TableFeatures>),
    /// `OFPMP_PORT_DESC`.
    PortDesc,
    /// `OFPMP_EXPERIMENTER`; 1.0's vendor statistics.
    Experimenter(Experimenter<'a>),
}

/// `OFPQ_ALL`.
pub const QUEUE_ALL: u32 = 0xffff_ffff;

/// `ofp_desc`: up to 255, and of the serial number 31, bytes of each are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Desc {
    /// Manufacturer.
    pub manufacturer: String,
    /// Hardware.
    pub hardware: String,
    /// Software.
    pub software: String,
    /// Serial number.
    pub serial: String,
    /// The datapath, for people.
    pub datapath: String,
}

/// `ofp_flow_stats`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStats {
    /// Where it is.
    pub table: u8,
    /// How long it has been there.
    pub lifetime: Lifetime,
    /// The higher first.
    pub priority: u16,
    /// Seconds, 0: none.
    pub idle_timeout: u16,
    /// Seconds, 0: none.
    pub hard_timeout: u16,
    /// [`super::flow_flags`]. Not in 1.0.
    pub flags: u16,
    /// Opaque.
    pub cookie: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// What it is for.
    pub matching: Match,
    /// What it does; 1.0 is told the actions that are applied, as far as it has them.
    pub instructions: Instructions,
}

/// `ofp_aggregate_stats_reply`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aggregate {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// Flows.
    pub flows: u32,
}

/// `ofp_table_stats`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableStats {
    /// Number.
    pub table: u8,
    /// 1.0 alone.
    pub name: String,
    /// 1.0 alone: flows at most.
    pub max_entries: u32,
    /// Flows.
    pub active: u32,
    /// Packets.
    pub lookups: u64,
    /// Packets that a flow was found for.
    pub matched: u64,
}

/// `ofp_port_stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PortStats {
    pub port: u32,
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_frame_err: u64,
    pub rx_over_err: u64,
    pub rx_crc_err: u64,
    pub collisions: u64,
    /// Not in 1.0.
    pub lifetime: Lifetime,
}

/// `ofp_queue_stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct QueueStats {
    pub port: u32,
    pub queue: u32,
    pub tx_bytes: u64,
    pub tx_packets: u64,
    pub tx_errors: u64,
    /// Not in 1.0.
    pub lifetime: Lifetime,
}

/// `ofp_group_stats`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupStats {
    /// Number.
    pub group: u32,
    /// Flows and groups that lead to it.
    pub references: u32,
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// How long it has been there.
    pub lifetime: Lifetime,
    /// Packets and bytes of each bucket.
    pub buckets: Vec<(u64, u64)>,
}

/// `ofp_group_desc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDesc {
    /// Number.
    pub group: u32,
    /// How buckets are chosen.
    pub kind: GroupType,
    /// In their order.
    pub buckets: Vec<Bucket>,
}

/// `ofp_group_features`; arrays by [`GroupType`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupFeatures {
    /// Bit n: the type of number n.
    pub types: u32,
    /// `ofp_group_capabilities`: 1 weights, 2 liveness of select groups, 4 chaining, 8 chains are checked.
    pub capabilities: u32,
    /// Groups at most.
    pub max_groups: [u32; 4],
    /// Bit n: the action of number n.
    pub actions: [u32; 4],
}

/// `ofp_meter_stats`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeterStats {
    /// Number.
    pub meter: u32,
    /// Flows that lead to it.
    pub flows: u32,
    /// Packets that came.
    pub packets: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// How long it has been there.
    pub lifetime: Lifetime,
    /// Packets and bytes of each band.
    pub bands: Vec<(u64, u64)>,
}

/// `ofp_meter_config`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterConfig {
    /// Number.
    pub meter: u32,
    /// [`super::meter_flags`].
    pub flags: u16,
    /// In their order.
    pub bands: Vec<Band>,
}

/// `ofp_meter_features`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterFeatures {
    /// Meters at most.
    pub max_meters: u32,
    /// Bit n: the band of number n.
    pub band_types: u32,
    /// [`super::meter_flags`].
    pub capabilities: u32,
    /// Bands of one meter at most.
    pub max_bands: u8,
    /// Of colours.
    pub max_color: u8,
}

/// One element of a multipart reply's body. Of one reply all are of one kind; `Desc`, `Aggregate`, `GroupFeatures`,
/// `MeterFeatures` and `Experimenter` stand alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Part<'a> {
    Desc(&'a Desc),
    Flow(&'a FlowStats),
    Aggregate(&'a Aggregate),
    Table(&'a TableStats),
    Port(&'a PortStats),
    Queue(&'a QueueStats),
    Group(&'a GroupStats),
    GroupDesc(&'a GroupDesc),
    GroupFeatures(&'a GroupFeatures),
    Meter(&'a MeterStats),
    MeterConfig(&'a MeterConfig),
    MeterFeatures(&'a MeterFeatures),
    TableFeatures(&'a TableFeatures),
    PortDesc(&'a Port),
    Experimenter(&'a Experimenter<'a>),
}
