//! Status, ports, resources, traps and drops.

use serde_json::{Value, json};
use tandem_abi::object::{fixed, records};
use tandem_abi::{get_name, raw};
use tandem_mgmt::types::{
    DriverStatus, PortCounters, Resource, ResourceClass, Resources, Status, Trap, TrapClass, Traps,
};
use tandem_pipeline::DropReason;
use tandem_pipeline::trap::{ORDER, reason_name, reasons, trap_class_name};
use tandem_ports::{PortKind, RxPort};

use crate::asic::Asic;
use crate::cpu::QUEUE_PACKETS;
use crate::slot::PortSlot;

use super::table::read;

/// Room for all pools and classes of any chip.
const SNAPSHOT: usize = 64 * 1024;

/// `GET /v1/status`, without what only the API knows.
pub fn status(asic: &mut Asic, now_ns: u64) -> Status {
    asic.hear(now_ns);
    let device = if asic.side.attached() {
        "attached"
    } else if asic.fail_reason.is_some() && asic.driver.is_none() && failed(asic) {
        "failed"
    } else {
        "ready"
    };
    let mut warnings = Vec::new();
    if let (None, Some(reason)) = (&asic.driver, &asic.fail_reason) {
        warnings.push(format!("no driver: {reason}"));
    }
    warnings.extend(asic.deadline.warning(&asic.fw.state, now_ns));
    if asic.out.events.lost() > 0 {
        warnings.push(format!(
            "{} FDB events were lost; the driver was told to read the table again",
            asic.out.events.lost()
        ));
    }
    for slot in &asic.ports {
        if let (Some(kind), None) = (&slot.kind, &slot.rx) {
            warnings.push(format!(
                "swp{}: its cable {kind} is gone, or in another namespace: plugged in again as soon as it is back",
                slot.number
            ));
        } else if let Some(note) = &slot.note {
            warnings.push(format!("swp{}: {note}", slot.number));
        }
    }
    if !asic.fw.faults.is_empty() {
        warnings.push("a fault plan is armed".into());
    }
    Status {
        daemon: "asicd".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        pid: std::process::id(),
        profile: asic.fw.profile().name.clone(),
        device: device.into(),
        epoch: asic.side.epoch(),
        ports: asic.ports.len() as u32,
        driver: asic.driver.as_ref().map(|d| DriverStatus {
            name: d.name.clone(),
            pid: d.pid,
            attached_s: now_ns.saturating_sub(d.since_ns) as f64 / 1e9,
        }),
        deadline: asic.deadline.status(&asic.fw.state, now_ns),
        warnings,
        ..Status::default()
    }
}

/// The last session ended because of the driver's fault, not because it left.
fn failed(asic: &Asic) -> bool {
    asic.fail_reason
        .as_deref()
        .is_some_and(|r| !matches!(r, "process ended" | "the VM is gone" | "detached"))
}

/// What a port is cabled to, with the kind that is in use.
fn attachment(slot: &PortSlot) -> String {
    match (&slot.kind, &slot.rx) {
        (None, _) => String::new(),
        (Some(kind @ PortKind::Packet { xdp, .. }), rx) => {
            let text = kind.to_string();
            let cable = text.strip_prefix("af_xdp:").unwrap_or(&text);
            let by_xdp = rx.as_ref().map_or(*xdp, |rx| matches!(rx, RxPort::Xdp(_)));
            format!("{}:{cable}", if by_xdp { "af_xdp" } else { "af_packet" })
        }
        (Some(other), _) => other.to_string(),
    }
}

/// `GET /v1/ports`.
pub fn ports(asic: &mut Asic) -> Vec<Value> {
    let mut rows = Vec::with_capacity(asic.ports.len());
    let runs = asic.fw.profile().ports.iter();
    let speeds: Vec<u32> = runs
        .flat_map(|run| (0..run.count).map(|_| run.speed_mbps))
        .collect();
    for ((slot, tx), most) in asic.ports.iter_mut().zip(&asic.out.tx).zip(speeds) {
        let cable_rx = slot.rx.as_mut().map(|rx| rx.stats()).unwrap_or_default();
        let cable_tx = tx.as_ref().map(|tx| tx.stats()).unwrap_or_default();
        let mut c = PortCounters::default();
        if let Some(p) = asic.fw.state.counters.port(slot.number) {
            c.rx_packets = p.rx.packets;
            c.rx_bytes = p.rx.bytes;
            c.tx_packets = p.tx.packets;
            c.tx_bytes = p.tx.bytes;
            c.rx_dropped = p.drops.iter().sum::<u64>() + cable_rx.overrun + cable_rx.malformed;
            let tail_drops = asic.out.fabric.tail_drops(slot.number);
            c.tx_dropped = cable_tx.dropped + tail_drops;
            c.rx_cpu_packets = p.trapped + p.copied;
            let details = [
                ("rx_unicast", p.rx.unicast),
                ("rx_multicast", p.rx.multicast),
                ("rx_broadcast", p.rx.broadcast),
                ("tx_unicast", p.tx.unicast),
                ("tx_multicast", p.tx.multicast),
                ("tx_broadcast", p.tx.broadcast),
                ("trapped", p.trapped),
                ("copied", p.copied),
                ("l2_forwarded", p.l2_forwarded),
                ("l3_forwarded", p.l3_forwarded),
                ("cable_rx_frames", cable_rx.frames),
                ("cable_rx_overrun", cable_rx.overrun),
                ("cable_rx_malformed", cable_rx.malformed),
                ("cable_tx_frames", cable_tx.frames),
                ("cable_tx_dropped", cable_tx.dropped),
                ("tail_drops", tail_drops),
            ];
            c.detail
                .extend(details.map(|(name, n)| (name.to_owned(), n)));
        }
        c.tx_cpu_packets = slot.cpu_tx;
        rows.push(json!({
            "name": format!("swp{}", slot.number),
            "port": slot.number,
            "attachment": attachment(slot),
            "note": slot.note.as_deref().unwrap_or_default(),
            "link": slot.link.up,
            "blinks": asic.fw.blinks(slot.number),
            "speed_mbps": slot.link.speed_mbps,
            "max_speed_mbps": most,
            "counters": c,
        }));
    }
    rows
}

/// `GET /v1/resources`: pools and classes of one instant.
pub fn resources(asic: &mut Asic) -> Result<Resources, String> {
    let (_, pools) = read(asic, raw::TND_OP_SNAPSHOT, raw::TND_CLS_NONE, 0, SNAPSHOT)?;
    let (_, costs) = read(asic, raw::TND_OP_DUMP, raw::TND_CLS_COST, 0, SNAPSHOT)?;
    // a memory that the chip has not is no row
    let items: Vec<(u16, Resource)> = fixed::<raw::tnd_pool>(&pools)
        .filter(|p| p.size > 0)
        .map(|p| {
            let row = Resource {
                name: get_name(&p.name),
                unit: get_name(&p.unit),
                size: p.size,
                used: p.used,
                in_flight: p.in_flight,
                committed: p.committed,
                free: p.free,
                high_watermark: p.high_watermark,
            };
            (p.pool, row)
        })
        .collect();
    let classes = records::<raw::tnd_class_cost>(&costs)
        .map(|(c, _)| ResourceClass {
            cls: get_name(&c.name),
            family: match u32::from(c.family) {
                x if x == raw::TND_AF_INET as u32 => "ipv4",
                x if x == raw::TND_AF_INET6 as u32 => "ipv6",
                _ => "any",
            }
            .into(),
            pool: items
                .iter()
                .find(|(id, _)| *id == c.pool)
                .map(|(_, p)| p.name.clone())
                .unwrap_or_default(),
            cost: c.cost,
            free_guaranteed: c.free_guaranteed,
            free_expected: c.free_expected,
        })
        .collect();
    Ok(Resources {
        items: items.into_iter().map(|(_, r)| r).collect(),
        classes,
    })
}

/// `GET /v1/replication`: one row, since the start.
pub fn replication(asic: &Asic) -> Value {
    let f = asic.fw.state.counters.flood;
    json!({
        "frames": f.frames,
        "sent": f.sent,
        "references": f.sent.saturating_sub(f.frames),
        "tag_changes": f.tag_changes,
        "tag_changes_max": f.most_tag_changes,
        "tag_changes_stacked": f.stacked_tag_changes,
    })
}

/// `GET /v1/learning`: one row, addresses since the start.
pub fn learning(asic: &Asic) -> Value {
    let l = asic.fw.state.counters.learn;
    json!({ "learned": l.learned, "moved": l.moved, "full": l.full, "aged": l.aged })
}

/// `GET /v1/traps`.
pub fn traps(asic: &Asic) -> Traps {
    let (cpu, police) = (&asic.out.cpu, &asic.fw.state.police);
    let items = reasons()
        .map(|reason| {
            let config = asic.fw.state.trap(reason);
            let policed = asic
                .fw
                .state
                .counters
                .traps
                .get(usize::from(reason))
                .map_or(0, |t| t.policed);
            let c = cpu.reason(reason);
            Trap {
                reason: reason_name(reason).into(),
                class: config.map_or("", |t| trap_class_name(t.class)).into(),
                packets: c.delivered,
                bytes: c.bytes,
                dropped: policed + police.lost(reason) + c.queue_full + c.no_driver,
                guaranteed_pps: config.map_or(0, |t| police.share(t.class, reason)),
                rate_pps: config.map_or(0, |t| t.rate_pps),
                burst: config.map_or(0, |t| t.burst),
            }
        })
        .collect();
    let classes = ORDER
        .into_iter()
        .map(|class| {
            let c = cpu.class(class);
            let (rate_pps, burst) = police.class(class);
            TrapClass {
                class: trap_class_name(class).into(),
                queued: cpu.queued(class) as u32,
                queue_size: QUEUE_PACKETS
                    .get(usize::from(class))
                    .map_or(0, |n| *n as u32),
                packets: c.delivered,
                policer_dropped: police.class_dropped(class),
                queue_dropped: c.queue_full + c.no_driver,
                rate_pps,
                burst,
            }
        })
        .collect();
    Traps { items, classes }
}

/// `GET /v1/drops`: by port and reason; then what was lost before and after the pipeline. Only
/// rows where something was lost.
pub fn drops(asic: &mut Asic) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut row = |stage: &str, reason: &str, port: Option<u16>, packets: u64, what: &str| {
        if packets > 0 {
            rows.push(json!({
                "stage": stage,
                "reason": reason,
                "port": port.map(|p| format!("swp{p}")),
                "packets": packets,
                "meaning": what,
            }));
        }
    };
    for slot in &mut asic.ports {
        let port = Some(slot.number);
        if let Some(p) = asic.fw.state.counters.port(slot.number) {
            for reason in DropReason::ALL {
                let n = p.drops.get(*reason as usize).copied().unwrap_or(0);
                row(
                    reason.stage().name(),
                    reason.name(),
                    port,
                    n,
                    reason.describe(),
                );
            }
        }
        if let Some(rx) = &mut slot.rx {
            let s = rx.stats();
            row(
                "cable",
                "rx_overrun",
                port,
                s.overrun,
                "the receive ring was full",
            );
            row(
                "cable",
                "rx_malformed",
                port,
                s.malformed,
                "not received whole, or with senseless offload marks",
            );
        }
    }
    for (slot, tx) in asic.ports.iter().zip(&asic.out.tx) {
        if let Some(tx) = tx {
            row(
                "cable",
                "tx_refused",
                Some(slot.number),
                tx.stats().dropped,
                "the netdev did not take it: its queue is full, it is down, or the frame is longer than its MTU",
            );
        }
    }
    if let Some(p) = asic.fw.state.counters.port(0) {
        for reason in DropReason::ALL {
            let n = p.drops.get(*reason as usize).copied().unwrap_or(0);
            let stage = reason.stage().name();
            row(stage, reason.name(), None, n, reason.describe());
        }
    }
    for class in ORDER {
        let c = asic.out.cpu.class(class);
        let name = trap_class_name(class);
        let list = [
            (
                "policer",
                asic.fw.state.police.class_dropped(class),
                "the trap class's policer is exhausted",
            ),
            ("queue", c.queue_full, "the trap class's queue is full"),
            ("no_driver", c.no_driver, "no driver is attached"),
        ];
        for (reason, n, what) in list {
            row("cpu", &format!("{name}_{reason}"), None, n, what);
        }
    }
    row(
        "egress",
        "unplugged",
        None,
        asic.out.unplugged,
        "nothing is cabled to the port",
    );
    row(
        "cpu",
        "bad_segmentation",
        None,
        asic.out.uncuttable,
        "a super-frame for the CPU with senseless headers",
    );
    row(
        "tx_ring",
        "refused",
        None,
        asic.stats.tx_dropped,
        "a packet of the driver of an earlier epoch, too long, or for a port that is down",
    );
    row(
        "capture",
        "slow_client",
        None,
        asic.out.captures.dropped(),
        "a capture's client was too slow; the frame itself was forwarded",
    );
    rows
}
