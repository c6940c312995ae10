//! What other threads have done by the core between two turns.

use std::sync::Arc;

use crossbeam_channel::{Sender, TrySendError};
use tandem_linux::eventfd::EventFd;

use crate::Core;

/// Something that the API has done by the core between two turns.
pub type Job = Box<dyn FnOnce(&mut Core) + Send>;

/// The way for other threads to have something done by the core.
#[derive(Clone)]
pub struct Jobs {
    to: Sender<Job>,
    wake: Arc<EventFd>,
}

impl Jobs {
    /// Into this channel; whoever empties it sleeps on `wake`.
    #[must_use]
    pub fn new(to: Sender<Job>, wake: Arc<EventFd>) -> Self {
        Jobs { to, wake }
    }

    /// False when too many wait already.
    pub fn post(&self, job: Job) -> bool {
        match self.to.try_send(job) {
            Ok(()) => {
                self.wake.ring();
                true
            }
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }
}
