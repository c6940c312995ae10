//! How fast the tables are: `cargo run --release -p tandem-tables --example speed`.
//!
//! Prints one line per claim: lookups and writes per second on one core, bytes of memory.

use std::hint::black_box;
use tandem_tables::exact::{ExactMatch, Geometry, Key, Widths};
use tandem_tables::lpm::{Lpm4, Lpm6};

struct Rand(u64);
impl Rand {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Time that this thread was on a CPU, in ns: other people's work on the machine doesn't count.
fn cpu_ns() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = stat.split(' ').next().and_then(|n| n.parse().ok());
    first.unwrap_or(0.0)
}

fn rate(what: &str, n: usize, f: impl FnOnce()) {
    let t = cpu_ns();
    f();
    println!("{what}: {:.1} M/s", n as f64 / (cpu_ns() - t) * 1e3);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut r = Rand(88_172_645_463_325_252);
    let g = Geometry {
        banks: 4,
        buckets_per_bank: 15360,
        slots_per_bucket: 4,
        stash: 16384,
        max_moves: 16,
    };
    let mut t = ExactMatch::new(
        g,
        Widths {
            mac: 1,
            host4: 1,
            host6: 2,
        },
        1,
    )?;
    let macs: Vec<[u8; 6]> = (0..65536)
        .map(|_| {
            let [_, _, a, b, c, d, e, f] = r.next().to_be_bytes();
            [a & 0xfe, b, c, d, e, f]
        })
        .collect();
    rate("exact insert, 64k random MACs", macs.len(), || {
        for m in &macs {
            let _ = black_box(t.insert(Key::Mac { fid: 1, mac: *m }, 1, 0));
        }
    });
    let order: Vec<[u8; 6]> = (0..10_000_000)
        .map(|_| macs[r.next() as usize % macs.len()])
        .collect();
    rate("exact lookup, 64k random MACs", order.len(), || {
        for m in &order {
            black_box(t.get_mac(1, *m));
        }
    });
    rate("exact miss, 64k random MACs", order.len(), || {
        for m in &order {
            black_box(t.get_mac(2, *m));
        }
    });

    let n = 1_000_000;
    let mut l = Lpm4::new(1_310_720, 1);
    // lengths as in the Internet's table: most are /24, some /16 … /23, few longer or shorter
    let routes: Vec<(u32, u8)> = (0..n)
        .map(|_| {
            let plen = match r.next() % 100 {
                0..=59 => 24,
                60..=97 => 16 + (r.next() % 8) as u8,
                98 => 8 + (r.next() % 8) as u8,
                _ => 25 + (r.next() % 8) as u8,
            };
            // 40 % of the space, in clusters, as allocations are
            let addr = (r.next() as u32 % 26_000) << 16 | r.next() as u32 & 0xffff;
            (addr & (u32::MAX << (32 - plen)), plen)
        })
        .collect();
    rate("IPv4 LPM insert, 1M routes", n, || {
        for (i, (a, p)) in routes.iter().enumerate() {
            let _ = black_box(l.insert(0, *a, *p, i as u32));
        }
    });
    println!(
        "IPv4 LPM memory, {} routes: {:.0} MB",
        l.len(),
        l.memory() as f64 / 1e6
    );
    let order: Vec<u32> = (0..10_000_000)
        .map(|_| routes[r.next() as usize % n].0 | r.next() as u32 & 0xff)
        .collect();
    rate(
        "IPv4 LPM lookup, 1M routes, uniform over routes",
        order.len(),
        || {
            for a in &order {
                black_box(l.lookup(0, *a));
            }
        },
    );
    let few: Vec<u32> = (0..10_000_000)
        .map(|_| order[r.next() as usize % 65536])
        .collect();
    rate(
        "IPv4 LPM lookup, 1M routes, 64k addresses",
        few.len(),
        || {
            for a in &few {
                black_box(l.lookup(0, *a));
            }
        },
    );
    rate("IPv4 LPM update in place", n, || {
        for (a, p) in &routes {
            black_box(l.update(0, *a, *p, 7));
        }
    });
    rate("IPv4 LPM remove, 1M routes", n, || {
        for (a, p) in &routes {
            black_box(l.remove(0, *a, *p));
        }
    });

    let n = 200_000;
    let mut l = Lpm6::new(524_288, 2);
    let routes: Vec<(u128, u8)> = (0..n)
        .map(|_| {
            let plen = if r.next() & 1 == 0 {
                48
            } else {
                29 + (r.next() % 16) as u8
            };
            let addr =
                (0x2000_u128 + u128::from(r.next() % 0xe00)) << 112 | u128::from(r.next()) << 48;
            (addr & (u128::MAX << (128 - plen)), plen)
        })
        .collect();
    rate("IPv6 LPM insert, 200k routes", n, || {
        for (a, p) in &routes {
            let _ = black_box(l.insert(0, *a, *p, 1));
        }
    });
    println!(
        "IPv6 LPM memory, {} routes: {:.0} MB",
        l.len(),
        l.memory() as f64 / 1e6
    );
    let order: Vec<u128> = (0..5_000_000)
        .map(|_| routes[r.next() as usize % n].0 | 1)
        .collect();
    rate("IPv6 LPM lookup, 200k routes", order.len(), || {
        for a in &order {
            black_box(l.lookup(0, *a));
        }
    });
    Ok(())
}
