//! The subcommands.

pub mod judge;
pub mod model;
pub mod play;
pub mod record;
