//! Benchmarks by claim

fn main() {}
