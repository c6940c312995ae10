//! The pipeline alone, one core, in memory, 64-byte frames: every stage, counter, learning and ageing on.
//!
//! A burst of 32 buffers is filled from templates (as DMA would leave them in the cache), processed, and counted by a
//! sink that reads what left. testpmd in macswap mode on net_null is the peer: it has no tables at all.

mod l2;
mod l3;

use crate::Options;
use crate::prefixes;
use crate::report::{Row, Target};
use crate::testpmd;
use anyhow::{Result, ensure};
use std::time::Instant;
use tandem_abi::{Command, Object, raw};
use tandem_firmware::Firmware;
use tandem_firmware::profile::Profile;
use tandem_packet::{Frame, Offload, checksum};
use tandem_pipeline::{Ahead, CpuMeta, Event, Sink, age, process, process_seen};

const BURST: usize = 32;
/// Frame without FCS: 64 bytes on the wire.
const LEN: usize = 60;
const HEADROOM: usize = 64;
const SLOT: usize = 192;
const FLOWS: usize = 1 << 16;

/// A frame of a flow.
type Flow = [u8; LEN];
/// A chip that is programmed, and the frames that are sent to its port 1.
type Made = (Chip, Vec<Flow>);

/// A port that is up, learns and is flooded to.
pub fn bridge_port(port: u16) -> raw::tnd_port {
    raw::tnd_port {
        port,
        flags: raw::TND_PORT_UP
            | raw::TND_PORT_LEARNING
            | raw::TND_PORT_FLOOD_UC
            | raw::TND_PORT_FLOOD_MC
            | raw::TND_PORT_FLOOD_BC,
        mtu: 1500,
        stp_state: raw::TND_STP_FORWARDING,
        mac: [2, 0, 0, 0, 1, port as u8],
        ..Default::default()
    }
}

/// A chip and the driver that programs it.
struct Chip {
    firmware: Firmware,
    seq: u32,
}

impl Chip {
    fn new(profile: &str) -> Result<Chip> {
        let mut chip = Chip {
            firmware: Firmware::new(Profile::builtin(profile)?)?,
            seq: 0,
        };
        for port in 1..=4 {
            chip.run(&Command::update(&bridge_port(port)))?;
            chip.firmware
                .state
                .set_link(port, true)
                .map_err(|e| anyhow::anyhow!("port {port}: {e:?}"))?;
        }
        Ok(chip)
    }

    fn run(&mut self, command: &Command) -> Result<()> {
        let cmd = command.encode(self.seq, 0, 0);
        self.seq = self.seq.wrapping_add(1);
        let cpl = self
            .firmware
            .execute(&cmd, command.body(), &mut Vec::new(), 0);
        ensure!(
            cpl.status == raw::TND_ST_OK,
            "command {} of class {}: status {}",
            cpl.op,
            cpl.cls,
            cpl.status
        );
        Ok(())
    }

    fn create(&mut self, object: &impl Object) -> Result<()> {
        self.run(&Command::create(object))
    }
}

#[derive(Default)]
struct Count {
    sent: u64,
    cpu: u64,
    events: u64,
    /// Sum over what left: port, last byte of both MAC addresses, TTL's place. Equal for equal answers.
    digest: u64,
}

impl Sink for Count {
    #[inline]
    fn tx(&mut self, port: u16, frame: &Frame<'_>) {
        self.sent += 1;
        let b = frame.bytes();
        let byte = |i: usize| u64::from(b.get(i).copied().unwrap_or(0));
        self.digest = self
            .digest
            .wrapping_add(u64::from(port) << 24 | byte(5) << 16 | byte(11) << 8 | byte(22));
    }
    fn cpu(&mut self, _meta: CpuMeta, _frame: &Frame<'_>) {
        self.cpu += 1;
    }
    fn event(&mut self, _event: Event) {
        self.events += 1;
    }
}

/// The digest of the flows' answers, each frame alone, nothing looked at ahead.
fn reference(chip: &mut Chip, flows: &[Flow]) -> u64 {
    let mut count = Count::default();
    for flow in flows {
        let mut slot = [0u8; SLOT];
        slot[HEADROOM..HEADROOM + LEN].copy_from_slice(flow);
        let mut frame = Frame::new(&mut slot, HEADROOM, HEADROOM + LEN, Offload::default());
        process(
            &mut chip.firmware.state,
            &mut frame,
            1,
            1_000_000_000,
            &mut count,
        );
    }
    count.digest
}

/// Sends the flows round and round for `seconds`; million packets per second.
fn drive(chip: &mut Chip, flows: &[Flow], seconds: f64) -> Result<(f64, Count)> {
    let digest = reference(chip, flows);
    let mut memory = vec![[0u8; SLOT]; BURST];
    let mut ahead = Ahead::default();
    let mut now = 1_000_000_000u64;
    let begin = Instant::now();
    let mut done = 0u64;
    let mut total = Count::default();
    loop {
        let mut round = Count::default();
        for burst in flows.chunks_exact(BURST) {
            for (slot, template) in memory.iter_mut().zip(burst) {
                slot[HEADROOM..HEADROOM + LEN].copy_from_slice(template);
            }
            let state = &chip.firmware.state;
            ahead.begin(state, 1);
            for slot in &memory {
                ahead.see(state, &slot[HEADROOM..HEADROOM + LEN]);
            }
            ahead.finish(state);
            for (n, slot) in memory.iter_mut().enumerate() {
                let mut frame = Frame::new(slot, HEADROOM, HEADROOM + LEN, Offload::default());
                let state = &mut chip.firmware.state;
                process_seen(state, &mut frame, 1, now, &mut round, ahead.hint(n));
            }
            now += 2_000;
            done += BURST as u64;
        }
        age(&mut chip.firmware.state, now, 256, &mut round);
        ensure!(
            round.sent == flows.len() as u64 && round.cpu == 0,
            "{} left, {} to the CPU, of {}: dropped by reason {:?}",
            round.sent,
            round.cpu,
            flows.len(),
            chip.firmware.state.counters.drops
        );
        ensure!(
            digest == round.digest,
            "a round answered differently from the reference"
        );
        total.sent += round.sent;
        total.events += round.events;
        let t = begin.elapsed().as_secs_f64();
        if t >= seconds {
            return Ok((done as f64 / t / 1e6, total));
        }
    }
}

/// An IPv4 header with UDP behind it, from byte 14 on.
fn ip_header(f: &mut Flow, src: u32, dst: u32) {
    let len = (LEN - 14) as u16;
    f[14..34].copy_from_slice(&[
        0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ]);
    f[16..18].copy_from_slice(&len.to_be_bytes());
    f[26..30].copy_from_slice(&src.to_be_bytes());
    f[30..34].copy_from_slice(&dst.to_be_bytes());
    checksum::ip4_set(&mut f[14..34]);
    f[38..40].copy_from_slice(&(len - 20).to_be_bytes());
}

/// Cycles of the time stamp counter per nanosecond, from the kernel's word; 0 if it says nothing.
fn cycles_per_ns() -> f64 {
    std::fs::read_to_string("/proc/cpuinfo")
        .unwrap_or_default()
        .lines()
        .find_map(|l| {
            l.strip_prefix("cpu MHz")?
                .split(':')
                .nth(1)?
                .trim()
                .parse::<f64>()
                .ok()
        })
        .map_or(0.0, |mhz| mhz / 1e3)
}

/// What is sent, what it should reach beside the peer, and the chip for it.
type Kind<'a> = (&'a str, Target, &'a dyn Fn() -> Result<Made>);

/// The rows of this benchmark.
pub fn run(o: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let vdevs: Vec<String> = (0..2)
        .map(|i| format!("net_null{i},size=64,copy=0"))
        .collect();
    let small = prefixes::table(100_000, 42);
    let large = prefixes::table(900_000, 42);
    let ratio = Target::RatioAtLeast;
    let kinds: [Kind<'_>; 12] = [
        ("L2, 64k addresses", ratio(0.35), &l2::plain),
        (
            "L2, 64k addresses, tagged, 64 VLANs",
            Target::None,
            &l2::tagged,
        ),
        (
            "L2, 64k addresses, groups of 2 ports",
            Target::None,
            &l2::lag,
        ),
        ("L2, 256 ACL rules of 16 masks", ratio(0.15), &l2::acl),
        ("flow port, 64k addresses", Target::None, &l2::flow_stations),
        (
            "flow port, 256 rules of 16 masks",
            Target::None,
            &l2::flow_rules,
        ),
        ("L3, 100k routes", ratio(0.25), &|| l3::routes(&small)),
        ("L3, 900k routes", ratio(0.18), &|| l3::routes(&large)),
        (
            "L3, 100k routes, groups of 8, any source",
            Target::None,
            &|| l3::groups(&small),
        ),
        ("L3, 16k hosts", Target::None, &|| l3::host_routes(&small)),
        ("L3, 100k IPv6 routes", Target::None, &|| {
            l3::routes6(100_000)
        }),
        ("L3, 200k IPv6 routes", Target::None, &|| {
            l3::routes6(200_000)
        }),
    ];
    for (kind, target, make) in kinds {
        let name = &format!("pipeline {kind}");
        let (mut chip, flows) = make()?;
        let mut pairs = Vec::new();
        for run in 0..o.pairs {
            eprint!("\r  {name}: pair {} of {}  ", run + 1, o.pairs);
            let hits = |chip: &Chip| chip.firmware.state.acl.counter(1).map(|c| c.packets);
            let before = hits(&chip);
            let (mpps, count) = drive(&mut chip, &flows, o.seconds)?;
            if let (Some(before), Some(after)) = (before, hits(&chip)) {
                ensure!(after - before >= count.sent, "the last rule was not hit");
            }
            pairs.push((mpps, testpmd::run(&vdevs, "macswap", o.seconds)? / 1e6));
        }
        eprintln!();
        rows.push(Row::paired(
            name,
            "Mpps",
            "DPDK testpmd macswap, net_null",
            &pairs,
            target,
        ));
        let ghz = cycles_per_ns();
        if ghz > 0.0 {
            let cycles: Vec<f64> = pairs.iter().map(|p| 1e3 / p.0 * ghz).collect();
            rows.push(Row::alone(
                &format!("{name}: nominal cycles per packet"),
                "cycles",
                &cycles,
                Target::None,
            ));
        }
    }
    Ok(rows)
}
