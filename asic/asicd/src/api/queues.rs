//! Queues of ports: what they counted, and a port's limit.

use serde::Deserialize;
use serde_json::{Value, json};
use tandem_queues::{CLASSES, QueueStats};

use crate::asic::Asic;

/// Body of `POST /v1/queues`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// `swp1`.
    pub port: String,
    /// Mbit/s on the wire; 0: no limit.
    pub limit_mbps: u32,
}

/// `GET /v1/queues`: every class of every port through which something went, or that has a limit; and the crossbar.
pub fn show(asic: &Asic) -> Value {
    let fabric = &asic.out.fabric;
    let mut items = Vec::new();
    for port in 1..=fabric.config().ports {
        let limit = fabric.rate(port);
        let Some(classes) = fabric.stats(port) else {
            continue;
        };
        for (class, q) in (0..CLASSES).zip(classes) {
            if *q == QueueStats::default() && limit == 0 {
                continue;
            }
            items.push(json!({
                "port": format!("swp{port}"),
                "class": class,
                "limit_mbps": limit,
                "packets": q.packets,
                "bytes": q.bytes,
                "queued": q.queued,
                "tail_drops": q.tail_drops,
                "tail_drop_bytes": q.tail_drop_bytes,
                "depth": q.depth,
                "high_watermark": q.watermark,
            }));
        }
    }
    let t = fabric.totals();
    json!({
        "items": items,
        "crossbar": {
            "unicast": t.unicast,
            "multicast": t.multicast,
            "replicas": t.replicas,
            "rounds": t.rounds,
            "buffered": t.buffered,
            "high_watermark": t.watermark,
            "buffer_size": fabric.config().buffer_bytes,
        },
    })
}

/// Limits a port; the answer says what was done.
pub fn limit(asic: &mut Asic, port: u16, mbps: u32) -> Result<String, String> {
    if !asic.out.fabric.set_rate(port, mbps) {
        return Err(format!(
            "no port swp{port}: there are swp1 to swp{}",
            asic.ports.len()
        ));
    }
    Ok(match mbps {
        0 => format!("swp{port} has no limit"),
        mbps => format!("swp{port} carries {mbps} Mbit/s"),
    })
}
