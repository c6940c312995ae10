//! The fuzz entries with deterministic bytes. `FUZZ_ITERATIONS` raises the number of runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use tandem_fuzz::rings::{fuzz_device, fuzz_driver};

/// xorshift64*: the same bytes on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

fn run(target: fn(&[u8])) {
    let runs: u64 = std::env::var("FUZZ_ITERATIONS")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(20_000);
    for seed in 1..=runs {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let len = random.next() % 400;
        // small numbers half of the time: scripts that get far
        let data: Vec<u8> = (0..len)
            .map(|_| {
                let r = random.next();
                if r & 1 == 0 {
                    (r >> 8) as u8 & 15
                } else {
                    (r >> 8) as u8
                }
            })
            .collect();
        let result = std::panic::catch_unwind(|| target(&data));
        assert!(result.is_ok(), "seed {seed}: {data:?}");
    }
}

#[test]
fn a_hostile_driver_does_no_harm() {
    run(fuzz_device);
}

#[test]
fn a_hostile_device_does_no_harm() {
    run(fuzz_driver);
}
