//! The C model of the exact-match table (`kernel/clsw/resource/bank.c`) replays a checked-in trace: it must be what this
//! table does today.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../examples/trace/mod.rs"]
mod trace;

#[test]
fn the_checked_in_trace_is_current() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../kernel/tests/resource/exact.trace"
    );
    let mut now = String::new();
    for s in &trace::SMALL {
        trace::trace(s, &mut now).unwrap();
    }
    let file = std::fs::read_to_string(path).unwrap();
    assert!(
        now == file,
        "{path} is not current: write it anew with `cargo run -p tandem-tables --example exact_trace`"
    );
}
