//! libFuzzer around one target, which the environment variable `TANDEM_FUZZ_TARGET` names; the arguments are libFuzzer's.
#![no_main]
#![allow(missing_docs)]

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();

fuzz_target!(
    init: {
        let name = std::env::var("TANDEM_FUZZ_TARGET").unwrap_or_default();
        match tandem_fuzz::target(&name) {
            Some(target) => {
                let _ = TARGET.set(target.run);
            }
            None => {
                eprintln!("fuzz: no target '{name}' in TANDEM_FUZZ_TARGET: there are {}", tandem_fuzz::names());
                std::process::exit(2);
            }
        }
    },
    |data: &[u8]| {
        if let Some(run) = TARGET.get() {
            run(data);
        }
    }
);
