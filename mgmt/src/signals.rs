//! A daemon's end: SIGTERM and SIGINT.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Calls `end`, once, in a thread of its own, when the process is asked to stop. From then on the signals no longer kill.
///
/// # Errors
/// The system's, if there is no thread or descriptor left.
pub fn on_end(end: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let (mut term, mut int) = {
        let _in = runtime.enter();
        (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        )
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = term.recv() => {}
                    _ = int.recv() => {}
                }
            });
            end();
        })?;
    Ok(())
}
