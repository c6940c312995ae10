//! A daemon's end: SIGTERM, SIGINT, and SIGHUP, which a terminal sends that is closed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tokio::signal::unix::{SignalKind, signal};

/// A flag that is set when the process is asked to stop; then `wake` is called, once, in a thread of its own. From now on the
/// signals no longer kill.
///
/// # Errors
/// The system's, if there is no thread or descriptor left.
pub fn on_end(wake: impl FnOnce() + Send + 'static) -> io::Result<Arc<AtomicBool>> {
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
    let stop = Arc::<AtomicBool>::default();
    let ended = Arc::clone(&stop);
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
            ended.store(true, Relaxed);
            wake();
        })?;
    Ok(stop)
}
