// SPDX-License-Identifier: Apache-2.0
//! Multipart requests and their replies (§7.3.5; 1.0 §5.3.5).

use std::ops::ControlFlow;

use tandem_ofpipeline::ports::Count;
use tandem_openflow::model::{
    Aggregate, Asks, FlowFilter, FlowStats, GROUP_ALL, GroupDesc, GroupFeatures, GroupStats,
    METER_ALL, METER_CONTROLLER, METER_MAX, METER_SLOWPATH, MeterConfig, MeterFeatures, MeterStats,
    Part, PortStats, QUEUE_ALL, QueueStats, TABLE_ALL, TableFeatures, TableStats, meter_flags,
};
use tandem_openflow::{Error, Multiparts, port};

use crate::agent::{Agent, ConnId};
use crate::conn::Listing;
use crate::ports::PortEntry;
use crate::requests::lifetime;
use crate::tables;

/// Flows that are looked at in one turn for an answer to flow_stats, and bytes of it that end the turn.
const LOOKS: u32 = 4_096;
const PAGE: usize = 256 << 10;

/// `ofp_group_capabilities`: weights, liveness of select groups, chains, and that loops are refused.
const GROUP_CAPABILITIES: u32 = 0xf;
/// Types of groups: all four.
const GROUP_TYPES: u32 = 0xf;
/// Bands: drop and DSCP remark, `1 << OFPMBT_DROP | 1 << OFPMBT_DSCP_REMARK`.
const BANDS: u32 = 0b110;

fn pair(c: &Count) -> (u64, u64) {
    (c.packets, c.bytes)
}

impl Agent {
    /// The whole answer, or an error. One about flows begins with the next [`Agent::list`].
    pub(crate) fn multipart(
        &mut self,
        id: ConnId,
        xid: u32,
        more: bool,
        asks: &Asks<'_>,
        now_ns: u64,
    ) -> Result<(), Error> {
        if let Asks::TableFeatures(wish) = asks {
            return self.wish(id, xid, more, (asks, wish), now_ns);
        }
        // only wishes for tables have more than one message has room for
        if more {
            return Err(Error::BAD_REQUEST_MULTIPART_BUFFER_OVERFLOW);
        }
        self.check(asks)?;
        let Some(conn) = self.conns.get_mut(&id) else {
            return Ok(());
        };
        if let Asks::Flow(filter) | Asks::Aggregate(filter) = asks {
            conn.listing = Some(Listing {
                xid,
                filter: filter.clone(),
                from: 0,
                sum: matches!(asks, Asks::Aggregate(_)).then(Aggregate::default),
            });
            return Ok(());
        }
        self.dp.keep_told(asks);
        let (version, dp, desc) = (conn.spoken(), &self.dp, &self.settings.desc);
        conn.append(|out| {
            let mut parts = Multiparts::new(version, xid, asks, out);
            let mut add = |part: &Part<'_>| {
                // the longest is a group, and those that are too long are refused
                if parts.add(part).is_err() {
                    tracing::error!("a part of more than 64 KiB was left out of a multipart reply");
                }
            };
            let switch = &dp.switch;
            let ports = |asked: u32| {
                let wanted = move |e: &&PortEntry| asked == port::ANY || e.port.number == asked;
                dp.ports().filter(wanted)
            };
            let meters = |asked: u32| {
                let wanted = move |n: &u32| asked == METER_ALL || *n == asked;
                let all = switch.meters().filter(wanted);
                all.filter_map(|n| Some((n, switch.meter(n)?)))
            };
            match asks {
                Asks::Desc => add(&Part::Desc(desc)),
                Asks::Table => {
                    for t in dp.table_stats() {
                        add(&Part::Table(&TableStats {
                            table: t.table,
                            name: format!("table{}", t.table),
                            max_entries: t.max_entries,
                            active: t.active,
                            lookups: t.count.lookups,
                            matched: t.count.matched,
                        }));
                    }
                }
                Asks::Port { port } => {
                    for e in ports(*port) {
                        if let Some(c) = dp.port_count(e.port.number) {
                            add(&Part::Port(&PortStats {
                                port: e.port.number,
                                rx_packets: c.rx.packets,
                                tx_packets: c.tx.packets,
                                rx_bytes: c.rx.bytes,
                                tx_bytes: c.tx.bytes,
                                rx_dropped: c.rx_dropped + e.lost.rx_dropped,
                                // what is not known stays all ones
                                tx_dropped: c.tx_dropped.saturating_add(e.lost.tx_dropped),
                                rx_errors: e.lost.rx_errors,
                                lifetime: lifetime(c.since_ns, now_ns),
                                ..PortStats::default()
                            }));
                        }
                    }
                }
                Asks::Queue { port, queue } => {
                    for p in ports(*port) {
                        let Some(e) = switch.port(p.port.number) else {
                            continue;
                        };
                        for (n, c) in e.port.queues.iter().zip(p.queue_counts(e)) {
                            if *queue == QUEUE_ALL || n == queue {
                                add(&Part::Queue(&QueueStats {
                                    port: e.port.number,
                                    queue: *n,
                                    tx_bytes: c.bytes,
                                    tx_packets: c.packets,
                                    tx_errors: 0,
                                    lifetime: lifetime(p.past.since_ns, now_ns),
                                }));
                            }
                        }
                    }
                }
                Asks::Group { group } => {
                    for n in switch
                        .groups()
                        .filter(|n| *group == GROUP_ALL || n == group)
                    {
                        if let Some((_, c)) = switch.group(n) {
                            let (packets, bytes) = dp.group_counted(n, None, &c.count);
                            let each = (0..).zip(&c.buckets);
                            let each = each.map(|(b, c)| dp.group_counted(n, Some(b), c));
                            add(&Part::Group(&GroupStats {
                                group: n,
                                references: c.refs,
                                packets,
                                bytes,
                                lifetime: lifetime(c.since_ns, now_ns),
                                buckets: each.collect(),
                            }));
                        }
                    }
                }
                Asks::GroupDesc => {
                    for n in switch.groups() {
                        if let Some((g, _)) = switch.group(n) {
                            add(&Part::GroupDesc(&GroupDesc {
                                group: n,
                                kind: g.kind,
                                buckets: g.buckets.clone(),
                            }));
                        }
                    }
                }
                Asks::GroupFeatures => add(&Part::GroupFeatures(&GroupFeatures {
                    types: GROUP_TYPES,
                    capabilities: GROUP_CAPABILITIES,
                    max_groups: [switch.config().groups; 4],
                    actions: [tables::action_bits(); 4],
                })),
                Asks::Meter { meter } => {
                    for (n, m) in meters(*meter) {
                        add(&Part::Meter(&MeterStats {
                            meter: n,
                            flows: m.flows,
                            packets: m.count.packets,
                            bytes: m.count.bytes,
                            lifetime: lifetime(m.since_ns, now_ns),
                            bands: m.band_counts.iter().map(pair).collect(),
                        }));
                    }
                }
                Asks::MeterConfig { meter } => {
                    for (n, m) in meters(*meter) {
                        add(&Part::MeterConfig(&MeterConfig {
                            meter: n,
                            flags: m.flags,
                            bands: m.bands.clone(),
                        }));
                    }
                }
                Asks::MeterFeatures => {
                    let c = switch.config();
                    add(&Part::MeterFeatures(&MeterFeatures {
                        max_meters: c.meters,
                        band_types: BANDS,
                        capabilities: u32::from(meter_flags::ALL),
                        max_bands: u8::try_from(c.bands).unwrap_or(u8::MAX),
                        max_color: 0,
                    }));
                }
                Asks::PortDesc => {
                    for e in dp.ports() {
                        add(&Part::PortDesc(&e.port));
                    }
                }
                Asks::Flow(_)
                | Asks::Aggregate(_)
                | Asks::TableFeatures(_)
                | Asks::Experimenter(_) => {}
            }
        });
        conn.counts.sent += 1;
        Ok(())
    }

    /// The next flows of an answer about flows: a million are not looked at in one turn, as packets would wait. False:
    /// there is no such answer.
    pub(crate) fn list(&mut self, id: ConnId, now_ns: u64) -> bool {
        let Some(conn) = self.conns.get_mut(&id) else {
            return false;
        };
        let Some(mut listing) = conn.listing.take() else {
            return false;
        };
        let mut journal = self.dp.journal.take();
        let (version, dp, switch) = (conn.spoken(), &self.dp, &self.dp.switch);
        let asks = match listing.sum {
            Some(_) => Asks::Aggregate(listing.filter.clone()),
            None => Asks::Flow(listing.filter.clone()),
        };
        let mut more = None;
        if let Some(sum) = &mut listing.sum {
            let (filter, from) = (&listing.filter, listing.from);
            let next = switch.flow_page(filter, from, LOOKS, |f| {
                let (packets, bytes) = dp.counted(&f);
                if let Some(journal) = &mut journal {
                    journal.flow_told(&f);
                }
                // What is not kept is all ones, and so is a sum of it
                sum.packets = sum.packets.saturating_add(packets);
                sum.bytes = sum.bytes.saturating_add(bytes);
                sum.flows += 1;
                ControlFlow::Continue(())
            });
            match next {
                Some(next) => {
                    listing.from = next;
                    conn.listing = Some(listing);
                }
                None => {
                    let sum = *sum;
                    conn.append(|out| {
                        let mut parts = Multiparts::new(version, listing.xid, &asks, out);
                        let _ = parts.add(&Part::Aggregate(&sum));
                    });
                    conn.counts.sent += 1;
                }
            }
            self.dp.journal = journal;
            return true;
        }
        conn.append(|out| {
            let mut parts = Multiparts::new(version, listing.xid, &asks, out);
            let next = switch.flow_page(&listing.filter, listing.from, LOOKS, |f| {
                let flow = f.flow;
                let (packets, bytes) = dp.counted(&f);
                if let Some(journal) = &mut journal {
                    journal.flow_told(&f);
                }
                let part = FlowStats {
                    table: flow.table,
                    lifetime: lifetime(flow.since_ns, now_ns),
                    priority: flow.priority,
                    idle_timeout: flow.idle,
                    hard_timeout: flow.hard,
                    flags: flow.flags,
                    cookie: flow.cookie,
                    packets,
                    bytes,
                    matching: flow.matching.clone(),
                    instructions: flow.instructions.clone(),
                };
                if parts.add(&Part::Flow(&part)).is_err() {
                    tracing::error!("a flow of more than 64 KiB was left out of an answer");
                }
                match parts.written() < PAGE {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
            if let Some(next) = next {
                listing.from = next;
                parts.go_on();
                more = Some(listing);
            }
        });
        conn.listing = more;
        conn.counts.sent += u64::from(conn.listing.is_none());
        self.dp.journal = journal;
        true
    }

    /// Is what it asks for there?
    fn check(&self, asks: &Asks<'_>) -> Result<(), Error> {
        let switch = &self.dp.switch;
        let ok = |there: bool, error: Error| if there { Ok(()) } else { Err(error) };
        match *asks {
            Asks::Flow(FlowFilter { table, .. }) | Asks::Aggregate(FlowFilter { table, .. }) => ok(
                table == TABLE_ALL || table < switch.config().tables,
                Error::BAD_REQUEST_BAD_TABLE_ID,
            ),
            Asks::Port { port } => ok(
                port == port::ANY || switch.port(port).is_some(),
                Error::BAD_REQUEST_BAD_PORT,
            ),
            Asks::Queue { port, queue } => {
                ok(
                    port == port::ANY || switch.port(port).is_some(),
                    Error::QUEUE_OP_FAILED_BAD_PORT,
                )?;
                let there = switch
                    .ports()
                    .filter(|e| port == port::ANY || e.port.number == port)
                    .any(|e| e.port.queues.contains(&queue));
                ok(
                    queue == QUEUE_ALL || there,
                    Error::QUEUE_OP_FAILED_BAD_QUEUE,
                )
            }
            Asks::Meter { meter } | Asks::MeterConfig { meter } => match meter {
                METER_ALL => Ok(()),
                n if switch.meter(n).is_some() => Ok(()),
                1..=METER_MAX | METER_SLOWPATH | METER_CONTROLLER => {
                    Err(Error::METER_MOD_FAILED_UNKNOWN_METER)
                }
                _ => Err(Error::METER_MOD_FAILED_INVALID_METER),
            },
            Asks::Experimenter(_) => Err(Error::BAD_REQUEST_BAD_EXPERIMENTER),
            _ => Ok(()),
        }
    }

    /// A question about tables, or a wish for others.
    fn wish(
        &mut self,
        id: ConnId,
        xid: u32,
        more: bool,
        (asks, wish): (&Asks<'_>, &[TableFeatures]),
        now_ns: u64,
    ) -> Result<(), Error> {
        let Some(conn) = self.conns.get_mut(&id) else {
            return Ok(());
        };
        let Some(all) = tables::gather(&mut conn.parts, xid, more, wish)? else {
            return Ok(());
        };
        let version = conn.spoken();
        // the tables that it has when it changes something
        let others = (version != self.dp.version())
            .then(|| self.dp.take_empty(&self.settings, version, now_ns));
        let switch = others.as_ref().unwrap_or(&self.dp.switch);
        let checked = tables::check_wish(switch, &all);
        let have = tables::features(switch);
        self.dp.empty = others;
        checked?;
        conn.append(|out| {
            let mut parts = Multiparts::new(version, xid, asks, out);
            for t in &have {
                // some 1.5 KB each
                let _ = parts.add(&Part::TableFeatures(t));
            }
        });
        conn.counts.sent += 1;
        Ok(())
    }
}
