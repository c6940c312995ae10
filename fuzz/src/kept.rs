//! The file of an agent's tables, and what the agent said at the end of each of its batches: whoever is killed at any byte
//! leaves the last whole one's.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;

use tandem_ofagent::Agent;
use tandem_ofkeep::{Boot, State, Store, Unfit};
use tandem_openflow::model::port_config;

const BOOT: Boot = [b'f'; 36];
/// Counters are written so often.
const COUNTS_NS: u64 = 1_000_000_000;
/// Ends of batches that are remembered.
const SAID: usize = 16;

/// What an agent says of its tables and ports: without counters, which may be older in the file, and with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Said {
    what: Vec<String>,
    counts: Vec<String>,
}

impl Said {
    fn of(agent: &Agent) -> Said {
        let (dp, mut said) = (agent.datapath(), Said::default());
        let (switch, config) = (dp.switch(), dp.switch().config());
        let (version, len) = (config.version, config.miss_send_len);
        said.what
            .push(format!("{version:?} {:?} {len}", config.fragments));
        for f in (0..switch.flow_numbers()).filter_map(|n| switch.flow_count(n)) {
            let of = f.flow;
            let place = (of.table, of.priority, &of.matching);
            let rest = (of.cookie, of.idle, of.hard, of.flags, of.since_ns);
            said.what
                .push(format!("{place:?} {rest:?} {:?}", of.instructions));
            let counts = (f.packets, f.bytes, f.last_ns);
            said.counts.push(format!("{place:?} {counts:?}"));
        }
        // their numbers are an agent's own affair
        said.what.sort();
        said.counts.sort();
        for n in switch.groups() {
            if let Some((g, c)) = switch.group(n) {
                let what = (n, g.kind, c.since_ns, &g.buckets);
                said.what.push(format!("group {what:?}"));
                said.counts
                    .push(format!("group {n} {:?} {:?}", c.count, c.buckets));
            }
        }
        for n in switch.meters() {
            if let Some(m) = switch.meter(n) {
                let what = (n, m.flags, m.since_ns, &m.bands);
                said.what.push(format!("meter {what:?}"));
                said.counts
                    .push(format!("meter {n} {:?} {:?}", m.count, m.band_counts));
            }
        }
        for t in switch.table_stats() {
            said.counts.push(format!("table {} {:?}", t.table, t.count));
        }
        for e in dp.ports() {
            let n = e.port.number;
            said.what
                .push(format!("port {n} {}", e.port.config & port_config::ALL));
            // a chip's ports count in the chip
            if dp.chip().is_none() {
                said.counts.push(format!("port {n} {:?}", dp.port_count(n)));
            }
        }
        said
    }
}

/// What an agent has at the end of a batch.
#[derive(Debug)]
struct End {
    bytes: u64,
    said: Said,
    /// Its counters are all written.
    counted: bool,
}

/// The file, which goes with this.
#[derive(Debug)]
pub(crate) struct Kept {
    path: PathBuf,
    store: Store,
    counts_ns: u64,
    ends: VecDeque<End>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(self.path.with_extension("new"));
    }
}

impl Kept {
    pub(crate) fn new(agent: &mut Agent, now_ns: u64) -> Kept {
        let (process, thread) = (std::process::id(), std::thread::current().id());
        let name = format!("tandem-fuzz-{process}-{thread:?}");
        // in memory, as /run is: a file that takes another's place has to reach no disk
        let memory = PathBuf::from("/dev/shm");
        let path = match memory.is_dir() {
            true => memory.join(name),
            false => std::env::temp_dir().join(name),
        };
        let store = Store::new(&path, BOOT);
        let mut kept = Kept {
            path,
            store,
            counts_ns: now_ns,
            ends: VecDeque::new(),
        };
        kept.begin(agent, now_ns);
        kept
    }

    /// An agent, before controllers come.
    fn begin(&mut self, agent: &mut Agent, now_ns: u64) {
        agent.keep();
        self.store = Store::new(&self.path, BOOT);
        self.write_all(agent);
        while self.store.is_written() {
            agent.keep_slice(64, &mut self.store).expect("room");
        }
        self.ends.clear();
        self.counts_ns = now_ns;
        self.end(agent, true);
    }

    /// The file is written anew, while the switch goes on.
    pub(crate) fn write_all(&mut self, agent: &mut Agent) {
        self.store.begin().expect("room");
        agent.keep_all();
    }

    fn end(&mut self, agent: &Agent, counted: bool) {
        let bytes = self.store.bytes();
        self.ends.truncate(SAID - 1);
        let said = Said::of(agent);
        self.ends.push_front(End {
            bytes,
            said,
            counted,
        });
    }

    /// A turn's end, as ofagentd's.
    pub(crate) fn settle(&mut self, agent: &mut Agent, now_ns: u64) {
        let counted = now_ns.saturating_sub(self.counts_ns) >= COUNTS_NS;
        if counted {
            self.counts_ns = now_ns;
            agent.keep_counts(now_ns);
            while agent.keep_some_counts(4096) {}
        }
        let before = self.store.bytes();
        self.store.append(&agent.take_kept()).expect("room");
        if self.store.bytes() > before {
            self.end(agent, counted);
        }
        if self.store.is_written() {
            agent.keep_slice(1, &mut self.store).expect("room");
            if !self.store.is_written() {
                self.ends.clear();
                self.end(agent, false);
            }
        }
    }

    /// What a process that is killed leaves: the file without its last bytes. The next agent takes it over, gets its
    /// ports and chip from `equip`, and writes on.
    pub(crate) fn next(
        &mut self,
        back: u16,
        mut agent: Agent,
        now_ns: u64,
        equip: impl Fn(&mut Agent),
    ) -> Agent {
        let file = fs::read(&self.path).expect("it is there");
        // some bytes, or a part of all of it
        let back = match back >> 14 {
            3 => (file.len() * usize::from(back & 0x3fff)) >> 14,
            _ => usize::from(back & 0x1ff),
        };
        let cut = file.len().saturating_sub(back);
        let left = file.get(..cut).unwrap_or_default();
        let end = self.ends.iter().find(|e| e.bytes <= cut as u64);
        match State::read(left, &BOOT) {
            Ok(state) => {
                let refused = agent.restore(&state, now_ns);
                if let Some(end) = end {
                    assert!(!refused.any(), "{refused:?}");
                    assert_eq!(state.torn as u64, cut as u64 - end.bytes);
                }
            }
            Err(e) => assert_eq!((e, end.is_none()), (Unfit::Foreign, true)),
        }
        equip(&mut agent);
        if let Some(end) = end {
            let said = Said::of(&agent);
            assert_eq!(said.what, end.said.what);
            if end.counted {
                assert_eq!(said.counts, end.said.counts);
            }
        }
        self.begin(&mut agent, now_ns);
        agent
    }

    /// Records that somebody else wrote: they are read or refused.
    pub(crate) fn foreign(&mut self, records: &[u8], mut agent: Agent, now_ns: u64) {
        let mut path = self.path.clone().into_os_string();
        path.push("-foreign");
        let path = PathBuf::from(path);
        let mut store = Store::new(&path, BOOT);
        store.begin().expect("room");
        store.slice(Some(records)).expect("room");
        store.slice(None).expect("room");
        let file = fs::read(&path).expect("it is there");
        fs::remove_file(&path).expect("it is there");
        match State::read(&file, &BOOT) {
            Ok(state) => {
                agent.restore(&state, now_ns);
            }
            Err(e) => assert!(matches!(e, Unfit::Garbled(_)), "{e}"),
        }
    }
}
