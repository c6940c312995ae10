//! How fast the firmware executes: `cargo run --release -p tandem-firmware --example speed`.
//!
//! One line per claim: commands per second on one core, the longest single command, memory.

use std::time::{Duration, Instant};
use tandem_abi::raw::*;
use tandem_firmware::{Firmware, Profile};
use zerocopy::IntoBytes;

/// Time that this thread was on a CPU, in ns.
fn cpu_ns() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = stat.split(' ').next().and_then(|n| n.parse().ok());
    first.unwrap_or(0.0)
}

fn rss_mb() -> f64 {
    let s = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = s
        .split(' ')
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(0.0);
    pages * 4096.0 / 1e6
}

fn run(fw: &mut Firmware, op: u16, cls: u16, arg: u64, body: &[u8], out: &mut Vec<u8>) -> tnd_cpl {
    let cmd = tnd_cmd {
        op,
        cls,
        arg,
        out_size: 1 << 16,
        ..Default::default()
    };
    fw.execute(&cmd, body, out, 0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut fw = Firmware::new(Profile::builtin("jericho2-large")?)?;
    let out = &mut Vec::new();
    let before = rss_mb();
    let rif = tnd_rif {
        struct_size: size_of::<tnd_rif>() as u16,
        rif: 1,
        kind: TND_RIF_PORT,
        port: 1,
        mtu: 1500,
        ..Default::default()
    };
    run(&mut fw, TND_OP_CREATE, TND_CLS_RIF, 0, rif.as_bytes(), out);
    for id in 0..64 {
        let nexthop = tnd_nexthop {
            struct_size: size_of::<tnd_nexthop>() as u16,
            rif: 1,
            nexthop: id,
            ..Default::default()
        };
        run(
            &mut fw,
            TND_OP_CREATE,
            TND_CLS_NEXTHOP,
            0,
            nexthop.as_bytes(),
            out,
        );
    }
    let n = 1_000_000u32;
    let routes: Vec<tnd_route> = (0..n)
        .map(|i| {
            let mut addr = [0; 16];
            let a = i.wrapping_mul(0x009e_3779) & 0x00ff_ffff;
            addr[..4].copy_from_slice(&(a << 8).to_be_bytes());
            tnd_route {
                struct_size: size_of::<tnd_route>() as u16,
                family: TND_AF_INET,
                prefix_len: 24,
                target_kind: TND_RT_NEXTHOP,
                target: i % 64,
                addr,
                ..Default::default()
            }
        })
        .collect();
    for (what, op) in [
        ("CREATE", TND_OP_CREATE),
        ("CREATE again", TND_OP_CREATE),
        ("SET_TRAP", TND_OP_SET_TRAP),
        ("UPDATE", TND_OP_UPDATE),
    ] {
        let t = cpu_ns();
        let ok = routes
            .iter()
            .filter(|r| run(&mut fw, op, TND_CLS_ROUTE, 0, r.as_bytes(), out).status == TND_ST_OK)
            .count();
        let s = (cpu_ns() - t) / 1e9;
        println!("{what}: {:.0} k/s, {ok} ok", f64::from(n) / s / 1e3);
    }
    println!("memory of 1M IPv4 routes: {:.0} MB", rss_mb() - before);
    let t = Instant::now();
    let (mut arg, mut longest, mut count) = (0, Duration::ZERO, 0);
    loop {
        let t = Instant::now();
        let cpl = run(&mut fw, TND_OP_DUMP, TND_CLS_ROUTE, arg, &[], out);
        longest = longest.max(t.elapsed());
        count += cpl.out_count;
        arg = cpl.result;
        if arg == 0 {
            break;
        }
    }
    let rate = f64::from(count) / t.elapsed().as_secs_f64() / 1e3;
    println!("DUMP: {count} records, {rate:.0} k/s, longest command {longest:?}");
    run(&mut fw, TND_OP_BEGIN_RESYNC, 0, 0, &[], out);
    for r in &routes {
        run(&mut fw, TND_OP_CREATE, TND_CLS_ROUTE, 0, r.as_bytes(), out);
    }
    for what in ["all routes confirmed", "nothing confirmed"] {
        let t = Instant::now();
        let cpl = run(&mut fw, TND_OP_END_RESYNC, 0, 0, &[], out);
        println!(
            "END_RESYNC, {what}: {} swept in {:?}",
            cpl.result,
            t.elapsed()
        );
        run(&mut fw, TND_OP_BEGIN_RESYNC, 0, 0, &[], out);
    }
    Ok(())
}
