//! What the thread that looks after cables tells the packet thread.

use std::io;
use std::sync::Arc;

use crossbeam_channel::Sender;
use tandem_linux::eventfd::EventFd;
use tandem_ports::{Change, Keeper, Kept, kept};

/// Updates that may wait for the packet thread.
pub const UPDATES: usize = 256;

/// What happened to a port.
pub struct Update {
    /// Its number.
    pub port: u16,
    /// What happened.
    pub change: Change,
}

/// Starts the thread with cables that are open already.
pub fn start(mut cables: Vec<Kept>, to: Sender<Update>, bell: Arc<EventFd>) -> io::Result<Keeper> {
    Keeper::start(move |stop| {
        while kept::sleep(&cables, None, stop) {
            for cable in &mut cables {
                if let Some(change) = cable.look() {
                    let port = cable.spec().number;
                    if to.send(Update { port, change }).is_err() {
                        return;
                    }
                    bell.ring();
                }
            }
        }
    })
}
