// SPDX-License-Identifier: Apache-2.0
//! The file of tables that outlives the process, in the instance's folder: one for each logical switch.
//!
//! ```text
//!   turn: messages are looked at ─► Kept::settle: their changes go to the file ─► answers leave
//! ```

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tandem_ofagent::Agent;
use tandem_ofkeep::{Boot, State, Store};

/// Flows, groups and meters of a slice of all.
const SLICE: usize = 1024;
/// Of these it looks at so many in a turn for their counters: few of them are written.
const COUNTS: usize = 4096;
/// Nothing came for so long: it is quiet.
const QUIET_NS: u64 = 200_000_000;
/// Counters are written so often.
const COUNTS_NS: u64 = 1_000_000_000;
/// After a failure it is tried again.
const RETRY_NS: u64 = 8_000_000_000;

/// The file of a logical switch, or of the switch of all ports, which has no name.
fn file(dir: &Path, lsi: &str) -> PathBuf {
    match lsi {
        "" => dir.join("ofagentd.tables"),
        name => dir.join(format!("ofagentd-{name}.tables")),
    }
}

/// This start of the machine.
///
/// # Errors
/// The machine doesn't say which it is.
pub fn boot() -> anyhow::Result<Boot> {
    let path = "/proc/sys/kernel/random/boot_id";
    let id = std::fs::read(path).context(path)?;
    let id = id.first_chunk().context(path)?;
    Ok(*id)
}

/// What an earlier process left.
pub struct Past {
    path: PathBuf,
    boot: Boot,
    bytes: Option<Vec<u8>>,
}

impl Past {
    /// Reads it; where that can't be done there is nothing.
    pub fn read(dir: &Path, lsi: &str, boot: Boot) -> Past {
        let path = file(dir, lsi);
        let bytes = Store::left(&path).unwrap_or_else(|e| {
            tracing::warn!("{}: {e}: the tables begin empty", path.display());
            None
        });
        Past { path, boot, bytes }
    }

    /// Tables, if they are some that this switch can have.
    fn state(&self) -> Option<State<'_>> {
        let bytes = self.bytes.as_deref()?;
        match State::read(bytes, &self.boot) {
            Ok(state) => Some(state),
            Err(e) => {
                tracing::warn!("{}: {e}: the tables begin empty", self.path.display());
                None
            }
        }
    }

    /// They are the switch's.
    pub fn restore(&self, agent: &mut Agent, now_ns: u64) {
        let Some(state) = self.state().filter(|s| s.version().is_some()) else {
            return;
        };
        let at = self.path.display();
        let left = agent.restore(&state, now_ns);
        let spoken = agent.datapath().version();
        if state.version() != Some(spoken) {
            tracing::warn!("{at}: of an OpenFlow that is not spoken here: the tables begin empty");
            return;
        }
        let (flows, groups, meters) = state.sizes();
        tracing::info!(
            "{at}: {flows} flows, {groups} groups, {meters} meters of OpenFlow {} go on",
            spoken.name()
        );
        if left.any() {
            tracing::warn!(
                "{at}: {} flows, {} groups and {} meters of these have no room here",
                left.flows,
                left.groups,
                left.meters
            );
        }
    }
}

/// Writes for the next process.
pub struct Kept {
    path: PathBuf,
    store: Store,
    counts_ns: u64,
    changed_ns: u64,
    retry_ns: u64,
}

impl Kept {
    /// All that there is now is written before this returns, and what changes from here on.
    pub fn begin(dir: &Path, lsi: &str, boot: Boot, agent: &mut Agent, now_ns: u64) -> Kept {
        agent.keep();
        let path = file(dir, lsi);
        let mut kept = Kept {
            store: Store::new(&path, boot),
            path,
            counts_ns: now_ns,
            changed_ns: now_ns,
            retry_ns: 0,
        };
        kept.begin_all(agent, now_ns);
        while kept.store.is_written() {
            kept.slice(agent, now_ns);
        }
        kept
    }

    /// Does what changes outlive the process?
    pub fn keeps(&self) -> bool {
        self.store.keeps()
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.store.bytes()
    }

    fn failed(&mut self, done: io::Result<()>, now_ns: u64) {
        if let Err(e) = done {
            let at = self.path.display();
            match self.store.keeps() {
                true => tracing::warn!("{at}: {e}: it grows until it can be written anew"),
                false => tracing::error!(
                    "{at}: {e}: until it can be written the tables end with this process"
                ),
            }
            self.retry_ns = now_ns + RETRY_NS;
        }
    }

    fn begin_all(&mut self, agent: &mut Agent, now_ns: u64) {
        let done = self.store.begin();
        if done.is_ok() {
            agent.keep_all();
            self.slice(agent, now_ns);
        }
        self.failed(done, now_ns);
    }

    fn slice(&mut self, agent: &mut Agent, now_ns: u64) {
        let done = agent.keep_slice(SLICE, &mut self.store);
        self.failed(done, now_ns);
    }

    /// What has changed is in the file; nobody has been told of it yet. True: there is more to write.
    pub fn settle(&mut self, agent: &mut Agent, now_ns: u64) -> bool {
        if now_ns.saturating_sub(self.counts_ns) >= COUNTS_NS {
            self.counts_ns = now_ns;
            agent.keep_counts(now_ns);
        }
        let counts = agent.keep_some_counts(COUNTS);
        let changes = agent.take_kept();
        let done = self.store.append(&changes);
        self.failed(done, now_ns);
        if !changes.is_empty() {
            self.changed_ns = now_ns;
        }
        let quiet = now_ns.saturating_sub(self.changed_ns) >= QUIET_NS;
        agent.give_kept_back(changes);
        if self.store.is_written() {
            self.slice(agent, now_ns);
        } else if (self.store.is_long(quiet) || !self.store.keeps()) && now_ns >= self.retry_ns {
            self.begin_all(agent, now_ns);
        }
        self.store.is_written() || counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_ofagent::Settings;

    #[test]
    fn a_long_file_that_cannot_be_written_anew_is_tried_again_later() {
        let dir = std::env::temp_dir().join(format!("ofagentd-kept-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut agent = Agent::new(Settings::default(), 1);
        let mut kept = Kept::begin(&dir, "", [b'a'; 36], &mut agent, 1);
        kept.store.append(&vec![0; 5 << 20]).unwrap();
        kept.changed_ns = 0;
        assert!(kept.keeps() && kept.store.is_long(true));
        // while much comes it may be longer
        assert!(!kept.store.is_long(false));
        // nothing can be made at this place
        let beside = dir.join("ofagentd.new");
        std::fs::create_dir(&beside).unwrap();
        assert!(!kept.settle(&mut agent, QUIET_NS));
        assert!(kept.keeps());
        std::fs::remove_dir(&beside).unwrap();
        assert!(!kept.settle(&mut agent, RETRY_NS));
        assert!(kept.store.is_long(true));
        kept.settle(&mut agent, QUIET_NS + RETRY_NS);
        while kept.store.is_written() {
            kept.settle(&mut agent, QUIET_NS + RETRY_NS);
        }
        assert!(kept.keeps() && !kept.store.is_long(true));
        std::fs::remove_dir_all(dir).unwrap();
    }
}
