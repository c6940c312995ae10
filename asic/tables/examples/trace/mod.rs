//! Writes what the exact-match table answers to a random sequence of operations, for the C model in `kernel/` to replay.
//!
//! ```text
//! g BANKS BUCKETS SLOTS STASH MOVES DEPTH BUDGET SEED W_MAC W_HOST4 W_HOST6     a new table
//! i|I KIND SPACE ADDRESS = STATUS MOVES STASH      insert, I: out of committed slots. 0 new, 1 there, 2 table, 3 bucket full
//! d KIND SPACE ADDRESS = SLOTS                     remove
//! c|r SLOTS = STATUS                               commit, release: 0 done, 2 no
//! u USED COMMITTED FREE STASH                      the counters now
//! p KIND SPACE ADDRESS PLACE                       an entry at the end
//! e ENTRIES
//! ```

use std::fmt::Write;
use tandem_tables::exact::{
    BUDGET, ExactMatch, FullKind, Geometry, InsertError, Key, MAX_DEPTH, Widths,
};

/// One table and how it is treated.
pub struct Scenario {
    pub geometry: Geometry,
    pub widths: Widths,
    pub seed: u64,
    pub operations: u32,
    /// Different keys; fewer than the table holds never fill it.
    pub keys: u64,
}

const fn scenario(
    shape: [u32; 5],
    widths: [u32; 3],
    seed: u64,
    operations: u32,
    keys: u64,
) -> Scenario {
    let [banks, buckets_per_bank, slots_per_bucket, stash, max_moves] = shape;
    let [mac, host4, host6] = widths;
    Scenario {
        geometry: Geometry {
            banks,
            buckets_per_bank,
            slots_per_bucket,
            stash,
            max_moves,
        },
        widths: Widths { mac, host4, host6 },
        seed,
        operations,
        keys,
    }
}

/// The scenarios of the checked-in trace: small enough to read, all shapes of tables, filled to the brim.
pub const SMALL: [Scenario; 5] = [
    scenario([2, 3, 4, 8, 4], [1, 1, 2], 0x7461_6e64_656d, 700, 90),
    scenario([4, 17, 4, 16, 16], [1, 1, 2], 1, 1400, 700),
    scenario([3, 9, 8, 8, 8], [1, 2, 4], 2, 1000, 300),
    scenario([1, 5, 8, 4, 2], [2, 2, 2], 3, 500, 60),
    scenario([8, 6, 4, 0, 16], [1, 2, 2], 4, 900, 400),
];

struct Rand(u64);
impl Rand {
    fn next(&mut self) -> u64 {
        // splitmix64 (Steele, Lea, Flood 2014)
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

fn key(n: u64) -> Key {
    let a = Rand(n).next().to_be_bytes();
    let [b0, b1, b2, b3, b4, b5, ..] = a;
    match n % 3 {
        0 => Key::Mac {
            fid: (n % 5) as u16 + 1,
            mac: [b0 & 0xfe, b1, b2, b3, b4, b5],
        },
        1 => Key::Host4 {
            vrf: (n % 7) as u16,
            addr: [b0, b1, b2, b3],
        },
        _ => {
            let mut addr = [0; 16];
            addr[..8].copy_from_slice(&a);
            addr[8..].copy_from_slice(&n.to_be_bytes());
            Key::Host6 {
                vrf: (n % 7) as u16,
                addr,
            }
        }
    }
}

fn text(key: &Key) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    match key {
        Key::Mac { fid, mac } => format!("0 {fid} {}", hex(mac)),
        Key::Host4 { vrf, addr } => format!("1 {vrf} {}", hex(addr)),
        Key::Host6 { vrf, addr } => format!("2 {vrf} {}", hex(addr)),
    }
}

/// The trace of one scenario.
pub fn trace(s: &Scenario, out: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let mut t = ExactMatch::new(s.geometry, s.widths, s.seed)?;
    let (g, w) = (s.geometry, s.widths);
    writeln!(
        out,
        "g {} {} {} {} {} {MAX_DEPTH} {BUDGET} {} {} {} {}",
        g.banks,
        g.buckets_per_bank,
        g.slots_per_bucket,
        g.stash,
        g.max_moves,
        s.seed,
        w.mac,
        w.host4,
        w.host6
    )?;
    let mut r = Rand(s.seed);
    for n in 0..s.operations {
        // fill, then churn near the brim, then drain a little
        let phase = n * 4 / s.operations;
        let what = r.below(100);
        let deletes = if phase == 3 {
            55
        } else {
            8 + phase as u64 * 12
        };
        let k = key(r.below(s.keys));
        if what < deletes {
            writeln!(
                out,
                "d {} = {}",
                text(&k),
                t.remove(&k).map_or(0, |(_, slots)| slots)
            )?;
        } else if what >= 97 {
            let slots = r.below(4) as u32 + 1;
            let status = if t.commit(slots).is_ok() { 0 } else { 2 };
            writeln!(out, "c {slots} = {status}")?;
        } else if what >= 95 && t.pool().committed() > 0 {
            let slots = r.below(u64::from(t.pool().committed())) as u32 + 1;
            t.release(slots);
            writeln!(out, "r {slots} = 0")?;
        } else {
            let promised = what >= 88;
            let there = t.get(&k).is_some();
            let answer = if promised {
                t.insert_committed(k, u64::from(n), 0)
            } else {
                t.insert(k, u64::from(n), 0)
            };
            let op = if promised { 'I' } else { 'i' };
            match answer {
                Ok(p) => writeln!(
                    out,
                    "{op} {} = {} {} {}",
                    text(&k),
                    u8::from(there),
                    p.moves,
                    u8::from(p.in_stash)
                )?,
                Err(InsertError::Full(f)) => {
                    let status = if f.kind == FullKind::Table { 2 } else { 3 };
                    writeln!(out, "{op} {} = {status} 0 0", text(&k))?;
                }
                Err(e) => return Err(e.into()),
            }
        }
        if n % 64 == 63 {
            let p = t.pool();
            writeln!(
                out,
                "u {} {} {} {}",
                p.used(),
                p.committed(),
                p.free(),
                t.stash_used()
            )?;
        }
    }
    let mut cursor = 0;
    while let Some((next, e)) = t.next(cursor) {
        writeln!(
            out,
            "p {} {}",
            text(&e.key),
            t.place(e.id).unwrap_or(u32::MAX)
        )?;
        cursor = next;
    }
    writeln!(out, "e {}", t.len())?;
    Ok(())
}
