//! Orders to a thread that sleeps on descriptors: a bounded channel, and a bell.

use std::sync::Arc;

use crossbeam_channel::Sender;

use crate::eventfd::EventFd;

/// The way for other threads to have something done by one that sleeps on a bell.
#[derive(Debug)]
pub struct Jobs<T> {
    to: Sender<T>,
    bell: Arc<EventFd>,
}

impl<T> Clone for Jobs<T> {
    fn clone(&self) -> Self {
        Jobs::new(self.to.clone(), Arc::clone(&self.bell))
    }
}

impl<T> Jobs<T> {
    /// Into this channel; whoever empties it sleeps on `bell`.
    #[must_use]
    pub fn new(to: Sender<T>, bell: Arc<EventFd>) -> Self {
        Jobs { to, bell }
    }

    /// False when too many wait already, or nobody is there any more.
    #[must_use]
    pub fn post(&self, job: T) -> bool {
        let posted = self.to.try_send(job).is_ok();
        if posted {
            self.bell.ring();
        }
        posted
    }
}
