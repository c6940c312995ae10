//! tandem, the operator's command

fn main() {}
