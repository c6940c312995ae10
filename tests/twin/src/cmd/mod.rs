//! The subcommands.

pub mod judge;
pub mod play;
pub mod record;
