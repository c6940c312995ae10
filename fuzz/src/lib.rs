//! Fuzz targets: one function each, which takes any bytes and must come back.
//!
//! ```text
//!   ./run fuzz ── libFuzzer (src/main.rs, feature `engine`) ──┐                 ┌─► the crates, as they are shipped
//!                   begins with fuzz/corpus, grows out/fuzz   ├──► TARGETS ─────┤
//!   ./run test unit ── tests/corpus.rs: every kept input ─────┘                 └─► invariants: assert!
//! ```
//!
//! A target gets at its subject through functions that are public anyway, or through a `fuzz_…` function beside
//! what is private (feature `testing`). `docs/testing.md` says how to run them, and how to add one.
#![forbid(unsafe_code)]
// An assertion that fails is what a target is for
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used)]

mod agent;
mod api;
mod chip;
mod input;
mod kept;
mod netlink;
mod openflow;
pub mod rings;
mod text;

/// One target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: of its archive in `fuzz/corpus`, and for `./run fuzz`.
    pub name: &'static str,
    /// Takes any bytes; panics when an invariant does not hold.
    pub run: fn(&[u8]),
}

/// All of them, sorted.
pub const TARGETS: &[Target] = &[
    Target {
        name: "api-asicd",
        run: api::asicd,
    },
    Target {
        name: "api-switchd",
        run: api::switchd,
    },
    Target {
        name: "carrier",
        run: tandem_carrier::fuzz_message,
    },
    Target {
        name: "commands",
        run: chip::commands,
    },
    Target {
        name: "completions",
        run: tandem_sal::fuzz::fuzz_driver,
    },
    Target {
        name: "frames",
        run: chip::frames,
    },
    Target {
        name: "netlink",
        run: netlink::decode,
    },
    Target {
        name: "netlink-switch",
        run: netlink::switch,
    },
    Target {
        name: "openflow-agent",
        run: agent::agent,
    },
    Target {
        name: "openflow-controller",
        run: openflow::controller,
    },
    Target {
        name: "openflow-pipeline",
        run: openflow::pipeline,
    },
    Target {
        name: "openflow-switch",
        run: openflow::switch,
    },
    Target {
        name: "rings-device",
        run: rings::fuzz_device,
    },
    Target {
        name: "rings-driver",
        run: rings::fuzz_driver,
    },
    Target {
        name: "toml",
        run: text::toml,
    },
];

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|t| t.name == name)
}

/// All names, for people.
#[must_use]
pub fn names() -> String {
    let names: Vec<&str> = TARGETS.iter().map(|t| t.name).collect();
    names.join(", ")
}
