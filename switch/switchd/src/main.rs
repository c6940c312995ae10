//! switchd, the switch daemon for kernels without the module

fn main() {}
