//! Plays histories to the kernel that runs here, and keeps what it says and does.
//!
//! ```text
//!        Player, on one processor: softirqs run in the order in which frames were sent
//!   ┌───────┼──────────── namespace "switch" ─────┐      ┌── namespace "hosts" ──┐
//!   │  Requests: commands, dumps    swp1 … swp4 ══╪══════╪══ h1 … h4             │
//!   │  Monitor: the listener's groups             │      │  Wires: one packet    │
//!   └─────────────────────────────────────────────┘      │  socket for all ends  │
//!     command ─► errno ─► rest: nothing deferred is left │  m1 ══ m2: markers    │
//!       ─► notifications ─► dumps ─► probes, marker ─► answers                   │
//!                                                        └───────────────────────┘
//! ```
//!
//! After a history all that it made is taken away; where what is left differs from the beginning, new namespaces are made.

mod answers;
mod space;

use tandem_linux::netlink::Protocol;

use crate::history::{Act, History, Op, Wait};
use crate::recording::{self, Bytes, Command, FORMAT, Port, Recording, Step, Told};

pub use answers::{is_copy, is_route_error, untagged, vid};
use space::Space;

/// How often everything is dumped until nothing is told meanwhile.
const ATTEMPTS: usize = 10;

/// What went wrong with the recorder itself: no answer of the kernel to a command is an error.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {why}")]
pub struct Error {
    /// What was wanted.
    pub what: String,
    /// What is there instead.
    pub why: String,
}

impl Error {
    fn new(what: impl Into<String>, why: impl ToString) -> Self {
        Self {
            what: what.into(),
            why: why.to_string(),
        }
    }
}

/// What has been recorded so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Histories.
    pub histories: u64,
    /// Commands in them, without what makes the topology.
    pub commands: u64,
    /// Of these, refused by the kernel.
    pub refused: u64,
    /// Notifications: datagrams.
    pub told: u64,
    /// Frames sent.
    pub probes: u64,
    /// Frames that came out and say of which probe.
    pub answers: u64,
    /// Other frames that came out: what the kernel sends by itself.
    pub other: u64,
    /// Namespaces that were made.
    pub spaces: u64,
}

/// The resident player. Belongs to the thread that made it.
#[derive(Debug)]
pub struct Player {
    space: Space,
    counts: Counts,
    have: Vec<String>,
    kernel: String,
    stacked: bool,
}

impl Player {
    /// Makes the namespaces, and keeps the calling thread to the processor `cpu`: the kernel then works on frames in the
    /// order in which they were sent.
    ///
    /// # Errors
    /// Where the kernel refuses: not root, no veth.
    pub fn open(cpu: usize) -> Result<Self, Error> {
        Self::open_as(cpu, true)
    }

    /// The same, whose kernel has neither VLANs nor VRFs: as far as the model knows it.
    ///
    /// # Errors
    /// As [`Player::open`].
    pub fn open_plain(cpu: usize) -> Result<Self, Error> {
        Self::open_as(cpu, false)
    }

    fn open_as(cpu: usize, stacked: bool) -> Result<Self, Error> {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu);
        rustix::thread::sched_setaffinity(None, &set)
            .map_err(|e| Error::new(format!("keep to processor {cpu}"), e))?;
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .map_err(|e| Error::new("the kernel's version", e))?;
        let mut space = Space::open(stacked)?;
        let have = space.constructs(stacked)?;
        Ok(Self {
            space,
            counts: Counts {
                spaces: 1,
                ..Counts::default()
            },
            have,
            kernel: kernel.trim().to_owned(),
            stacked,
        })
    }

    /// What this kernel has, by the names of `tests/scenario/constructs.py`.
    #[must_use]
    pub fn have(&self) -> &[String] {
        &self.have
    }

    /// `uname -r`
    #[must_use]
    pub fn kernel(&self) -> &str {
        &self.kernel
    }

    /// So far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Plays one history.
    ///
    /// # Errors
    /// When the kernel does not come to rest, or a socket fails.
    pub fn record(&mut self, history: &History) -> Result<Recording, Error> {
        let recorded = self.play(history);
        let clean = recorded.is_ok() && self.space.clean()?;
        if !clean {
            self.space = Space::open(self.stacked)?;
            self.counts.spaces += 1;
        }
        recorded
    }

    fn play(&mut self, history: &History) -> Result<Recording, Error> {
        for op in &history.topology {
            self.apply(op, 0)?;
            self.space.forget()?;
        }
        let mut recording = Recording {
            format: FORMAT,
            seed: history.seed,
            kernel: self.kernel.clone(),
            have: history.have.clone(),
            ports: self.space.ports(),
            probes: history.probes.clone(),
            steps: Vec::with_capacity(history.commands.len() + 1),
        };
        let mut first = Step::default();
        self.rest(&recording, &mut first)?;
        let mut files = self.space.files(&first.dumps)?;
        first.files.clone_from(&files);
        recording.steps.push(first);
        for (n, op) in history.commands.iter().enumerate() {
            let command = self.apply(op, n as u32 + 1)?;
            self.counts.refused += u64::from(command.errno != 0);
            let mut step = Step {
                command: Some(command),
                ..Step::default()
            };
            self.rest(&recording, &mut step)?;
            let now = match changes_files(op) {
                true => self.space.files(&step.dumps)?,
                false => self.space.restless_files()?,
            };
            let changed = now.into_iter();
            let changed = changed.filter(|(path, text)| files.get(path) != Some(text));
            step.files = changed.collect();
            files.extend(step.files.clone());
            recording.steps.push(step);
        }
        self.counts.histories += 1;
        self.counts.commands += history.commands.len() as u64;
        Ok(recording)
    }

    /// Does one thing, and waits until nothing of it is left to be done.
    fn apply(&mut self, op: &Op, seq: u32) -> Result<Command, Error> {
        let (request, errno) = match &op.act {
            Act::Message(message) => {
                let mut message = message.clone();
                if let Some(slot) = message.get_mut(8..12) {
                    slot.copy_from_slice(&seq.to_ne_bytes());
                }
                let errno = self.space.ask(&message)?;
                (message, errno)
            }
            Act::Cable(port, up) => (Vec::new(), self.space.cable(*port, *up)?),
            Act::Sysctl(key, value) => (Vec::new(), self.space.sysctl(key, value)?),
        };
        match op.wait {
            Wait::Links => self.space.settle_links()?,
            Wait::Tick => {
                wait_for_a_tick();
                self.space.settle_links()?;
            }
            Wait::Device(dev) if errno == 0 => {
                self.space.settings_of(dev)?;
                self.space.settle_links()?;
            }
            Wait::Address(dev, addr) if errno == 0 => self.space.settle_address(dev, addr)?,
            _ => {}
        }
        Ok(Command {
            text: op.text.clone(),
            request: Bytes(request),
            errno,
        })
    }

    /// What there is at a rest: notifications up to it, dumps, answers.
    fn rest(&mut self, recording: &Recording, step: &mut Step) -> Result<(), Error> {
        step.told = self.space.told()?;
        for _ in 0..ATTEMPTS {
            step.dumps = self.space.dumps()?;
            // the machine's own upkeep of neighbours may come at any time
            let late = self.space.told()?;
            if late.is_empty() {
                return self.answers(recording, step);
            }
            step.told.extend(late);
        }
        Err(Error::new(
            format!("a rest after `{}`", words(step.command.as_ref())),
            format!("notifications come on and on: {:?}", step.told.last()),
        ))
    }

    /// What becomes of the probes.
    fn answers(&mut self, recording: &Recording, step: &mut Step) -> Result<(), Error> {
        let got = self.space.probe(&recording.probes)?;
        self.counts.told += step.told.len() as u64;
        self.counts.probes += recording.probes.len() as u64;
        self.counts.answers += got.frames;
        self.counts.other += got.other;
        step.answers = got.answers;
        Ok(())
    }
}

/// Until the kernel's jiffies are others than at the call. The coarse clock goes on at a tick, behind them: the first time that may
/// be the tick of before.
fn wait_for_a_tick() {
    let now = || rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    for _ in 0..2 {
        let before = now();
        while now() == before {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// In a namespace of one's own files but the one of routes change by sysctls alone, and there are more where a device is new.
const fn changes_files(op: &Op) -> bool {
    matches!(op.act, Act::Sysctl(..)) || matches!(op.wait, Wait::Device(_))
}

fn words(command: Option<&Command>) -> &str {
    command.map_or("the topology", |c| c.text.as_str())
}

const fn socket(protocol: Protocol) -> recording::Socket {
    match protocol {
        Protocol::Route => recording::Socket::Route,
        Protocol::Netfilter => recording::Socket::Netfilter,
    }
}
