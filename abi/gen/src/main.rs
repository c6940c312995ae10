//! Generates abi/rust/src/generated.rs from abi/tandem.h

fn main() {}
