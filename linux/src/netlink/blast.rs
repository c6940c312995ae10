//! A fast sender of routes: 256 messages to a buffer on a real netlink socket. For benchmarks and
//! stress tests; `ip -batch` costs three times as much as the kernel itself.

use super::socket::{Error, Requests, Result};
use super::types::Route;

/// What became of a blast.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Requests that the kernel took.
    pub accepted: usize,
    /// Requests that it refused.
    pub refused: usize,
    /// The first refusal.
    pub first_error: Option<Error>,
}

/// Adds routes; `flags`: `NLM_F_REPLACE`, `NLM_F_APPEND`, `NLM_F_EXCL` or 0.
///
/// # Errors
/// Only when the socket itself fails.
pub fn add_routes(socket: &mut Requests, routes: &[Route], flags: u16) -> Result<Outcome> {
    run(socket, routes, false, flags)
}

/// Removes routes.
///
/// # Errors
/// Only when the socket itself fails.
pub fn del_routes(socket: &mut Requests, routes: &[Route]) -> Result<Outcome> {
    run(socket, routes, true, 0)
}

fn run(socket: &mut Requests, routes: &[Route], remove: bool, flags: u16) -> Result<Outcome> {
    let mut out = Outcome::default();
    socket.routes(routes, remove, flags, |_, e| {
        out.refused += 1;
        out.first_error.get_or_insert(e);
    })?;
    out.accepted = routes.len() - out.refused;
    Ok(out)
}
