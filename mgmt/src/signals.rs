//! A daemon's end: SIGTERM, SIGINT, and SIGHUP, which a terminal sends that is closed.

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
    let (mut term, mut int, mut hup) = {
        let _in = runtime.enter();
        (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::hangup())?,
        )
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = term.recv() => {}
                    _ = int.recv() => {}
                    _ = hup.recv() => {}
                }
            });
            end();
        })?;
    Ok(())
}
