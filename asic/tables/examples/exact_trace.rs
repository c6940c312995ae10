//! Traces of the exact-match table for the C model in `kernel/clsw/resource`.
//!
//! ```text
//! cargo run -p tandem-tables --example exact_trace            > kernel/tests/resource/exact.trace
//! cargo run -p tandem-tables --example exact_trace -- large   a full-size chip, half a million operations
//! ```

mod trace;

use tandem_tables::exact::{Geometry, Widths};
use trace::{SMALL, Scenario, trace};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = String::new();
    if std::env::args().nth(1).as_deref() == Some("large") {
        // profiles/spectrum-sn2700.toml
        let large = Scenario {
            geometry: Geometry {
                banks: 4,
                buckets_per_bank: 5100,
                slots_per_bucket: 4,
                stash: 5440,
                max_moves: 16,
            },
            widths: Widths {
                mac: 1,
                host4: 1,
                host6: 2,
            },
            seed: 0x7461_6e64_656d,
            operations: 500_000,
            keys: 130_000,
        };
        trace(&large, &mut out)?;
    } else {
        for s in &SMALL {
            trace(s, &mut out)?;
        }
    }
    print!("{out}");
    Ok(())
}
