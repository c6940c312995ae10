//! asicd, the software ASIC's daemon

fn main() {}
