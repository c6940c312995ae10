//! Hardware tables: banked exact-match hash, longest-prefix match, ternary match, counted pools, token buckets.
//!
//! ```text
//!   firmware ── insert / remove / update ──►  ┌────────────┐  ◄── get / lookup / touch ── pipeline
//!                                             │ ExactMatch │  MAC, IPv4 host, IPv6 host share it
//!                                             │ Lpm4 Lpm6  │  keyed by (VRF, prefix)
//!                                             │ Matcher    │  value, mask, priority: what a TCAM holds
//!                                             │ Slots Ways │  next hops, groups of them, aggregation groups,
//!                                             │ Active Mdb │  multicast groups, policers
//!                                             └─────┬──────┘
//!                                                 Pool        used + in_flight + committed + free == size
//! ```
//!
//! Pure: no clock, no I/O, no thread. Time comes in as an argument (`now_ns`), randomness as a seed, so every test can
//! replay. The sharing of the tables follows seed 000 §2.7, figures 10 (exact match) and 11 (longest-prefix match) and 12 (TCAM).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod bucket;
pub mod ecmp;
pub mod exact;
mod index;
pub mod lag;
pub mod lpm;
pub mod mcast;
pub mod policer;
pub mod pool;
mod prefetch;
pub mod slots;
pub mod tcam;
