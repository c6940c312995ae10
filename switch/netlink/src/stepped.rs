//! The listener without a thread: whoever owns it gives it its turns, and is its kernel.
//!
//! ```text
//!   Ears, Questions ─► Stepped::turn ─► Steps (a Source: messages out; resync, barrier, snapshot in) ─► core
//! ```

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use ipnet::IpNet;
use tandem_linux::eventfd::EventFd;
use tandem_store::model::{Object, SourceId};

use super::Config;
use super::kernel::{Ears, Questions};
use super::listener::{Command, Listener};
use super::snapshot;
use tandem_core::source::{Message, Source, SourceError, Status, WriteBack};

/// Questions to ask and writers to have at any time: for audit and write-back.
pub trait Origin: Send + Sync {
    /// Somebody to ask.
    fn questions(&self) -> Box<dyn Questions>;
    /// A way to write back.
    fn writer(&self) -> Box<dyn WriteBack>;
}

/// The listener.
#[derive(Debug)]
pub struct Stepped {
    listener: Listener,
}

/// The source that it is for the core.
pub struct Steps {
    messages: Receiver<Message>,
    commands: Sender<Command>,
    status: Arc<Mutex<Status>>,
    ports: std::collections::HashMap<u32, u16>,
    origin: Box<dyn Origin>,
}

impl Stepped {
    /// Begins with a full dump at its first turn. The channel to the core has no limit: nobody reads it while a turn lasts.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn new(
        config: Config,
        ears: Box<dyn Ears>,
        origin: Box<dyn Origin>,
    ) -> Result<(Stepped, Steps), SourceError> {
        let (to_core, messages) = crossbeam_channel::unbounded();
        let (commands, from_core) = crossbeam_channel::unbounded();
        let wake = EventFd::new().map_err(|e| SourceError(format!("netlink source: {e}")))?;
        let status = Arc::new(Mutex::new(Status::default()));
        let ports = config.ports.clone();
        let listener = Listener::new(
            config,
            (ears, origin.questions()),
            to_core,
            from_core,
            Arc::new(wake),
            Arc::new(AtomicBool::new(false)),
            Arc::clone(&status),
        );
        let steps = Steps {
            messages,
            commands,
            status,
            ports,
            origin,
        };
        Ok((Stepped { listener }, steps))
    }

    /// One turn; gives how long there is nothing to do unless something comes. None: there is more now.
    pub fn turn(&mut self) -> Option<Duration> {
        self.listener.turn()
    }

    /// Barriers that were asked for and not sent yet.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.listener.waiting()
    }

    /// A dump or a check is due, at once or later.
    #[must_use]
    pub fn owes(&self) -> bool {
        self.listener.owes()
    }

    /// IPv6 routes that another stands for, as nothing tells the two apart: table, destination, metric of each.
    #[must_use]
    pub fn twins6(&self) -> Vec<(u32, IpNet, u32)> {
        self.listener.twins6()
    }
}

impl Source for Steps {
    fn id(&self) -> SourceId {
        SourceId::NETLINK
    }

    fn name(&self) -> &str {
        "netlink"
    }

    fn messages(&self) -> &Receiver<Message> {
        &self.messages
    }

    fn resync(&self) {
        let _ = self.commands.send(Command::Resync);
    }

    fn barrier(&self, token: u64) {
        let _ = self.commands.send(Command::Barrier(token));
    }

    fn snapshot(&self) -> Result<Vec<Object>, SourceError> {
        snapshot::snapshot(&mut *self.origin.questions(), &self.ports)
    }

    fn writer(&self) -> Result<Box<dyn WriteBack>, SourceError> {
        Ok(self.origin.writer())
    }

    fn status(&self) -> Status {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
