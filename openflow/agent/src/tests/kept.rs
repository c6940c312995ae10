// SPDX-License-Identifier: Apache-2.0
//! What was answered before the process was killed is so in the next one.

use std::path::PathBuf;

use tandem_ofkeep::{Boot, State, Store};
use tandem_ofpipeline::flows::all_flows;
use tandem_openflow::model::{
    Band, BandType, Bucket, Config, FlowCommand, Fragments, GROUP_ALL, GROUP_ANY, GroupCommand,
    GroupMod, GroupType, METER_ALL, MeterCommand, MeterMod, PortMod, QUEUE_ALL, Role, RoleRequest,
    flow_flags, meter_flags, port_config,
};
use tandem_openflow::port;

use super::*;
use crate::Lost;

const BOOT: Boot = [b'a'; 36];

/// A switch, and the file that it writes.
struct Kept {
    b: Bench,
    store: Store,
    path: PathBuf,
}

impl Kept {
    fn new(name: &str) -> Kept {
        let path = std::env::temp_dir().join(format!("ofagent-{name}-{}", std::process::id()));
        let mut b = Bench::new(Settings::default());
        b.agent.keep();
        let store = Store::new(&path, BOOT);
        let mut kept = Kept { b, store, path };
        kept.all();
        kept
    }

    /// All anew.
    fn all(&mut self) {
        self.store.begin().unwrap();
        self.b.agent.keep_all();
        while self.store.is_written() {
            self.b.agent.keep_slice(2, &mut self.store).unwrap();
        }
    }

    /// It is killed; the next process, which has no ports yet.
    fn agent(&mut self, settings: Settings) -> Agent {
        self.store.append(&self.b.agent.take_kept()).unwrap();
        let file = Store::left(&self.path).unwrap().unwrap();
        let state = State::read(&file, &BOOT).unwrap();
        let now = self.b.now;
        let mut agent = Agent::new(settings, now);
        assert!(!agent.restore(&state, now).any());
        agent
    }

    fn next(&mut self, settings: Settings) -> Bench {
        let (mut agent, now) = (self.agent(settings), self.b.now);
        for n in 1..=4 {
            agent.add_port(n, &format!("swp{n}"), mac(n as u8), (true, 1_000), now);
        }
        let out = Out::default();
        Bench { agent, out, now }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What a controller is told of all there is.
fn told(b: &mut Bench, id: ConnId, version: Version) -> Vec<Vec<u8>> {
    let (port, queue) = (port::ANY, QUEUE_ALL);
    let mut questions = vec![
        Request::GetConfig,
        asks(Asks::Flow(all_flows())),
        asks(Asks::Aggregate(all_flows())),
        asks(Asks::Table),
        asks(Asks::Port { port }),
        asks(Asks::Queue { port, queue }),
    ];
    if version == Version::V13 {
        let (group, meter) = (GROUP_ALL, METER_ALL);
        questions.extend([
            asks(Asks::PortDesc),
            asks(Asks::Group { group }),
            asks(Asks::GroupDesc),
            asks(Asks::Meter { meter }),
            asks(Asks::MeterConfig { meter }),
        ]);
    }
    let said = questions.iter().flat_map(|q| b.ask(id, q));
    said.map(|s| s.body).collect()
}

fn active(b: &Bench) -> u32 {
    b.agent
        .datapath()
        .switch()
        .table_stats()
        .map(|t| t.active)
        .sum()
}

fn out(port: u32) -> Action {
    Action::Output { port, max_len: 0 }
}

/// A flow of each kind of what it may name, port 4 closed, fragments dropped.
fn fill(b: &mut Bench, id: ConnId, version: Version) {
    let config = Config {
        fragments: Fragments::Drop,
        miss_send_len: 99,
    };
    b.fine(id, &Request::SetConfig(config));
    let closed = PortMod {
        port: 4,
        hw_addr: mac(4),
        config: port_config::NO_RECV,
        mask: port_config::NO_RECV,
        advertise: 0,
    };
    assert_eq!(b.ask(id, &Request::PortMod(closed))[0].kind, PORT_STATUS);
    let mut flow = applying(vec![out(2)]);
    if version == Version::V13 {
        let bucket = Bucket {
            weight: 0,
            watch_port: port::ANY,
            watch_group: GROUP_ANY,
            actions: vec![out(2)],
        };
        let group = GroupMod {
            command: GroupCommand::Add,
            kind: GroupType::Indirect,
            group: 3,
            buckets: vec![bucket],
        };
        let meter = MeterMod {
            command: MeterCommand::Add,
            flags: meter_flags::PKTPS,
            meter: 5,
            bands: vec![Band {
                rate: 1,
                burst: 0,
                kind: BandType::Drop,
            }],
        };
        for watch_port in [2, 4] {
            let watching = GroupMod {
                command: GroupCommand::Add,
                kind: GroupType::FastFailover,
                group: 10 + watch_port,
                buckets: vec![Bucket {
                    watch_port,
                    ..group.buckets[0].clone()
                }],
            };
            b.fine(id, &Request::GroupMod(watching));
        }
        b.fine(id, &Request::GroupMod(group));
        b.fine(id, &Request::MeterMod(meter));
        flow = applying(vec![Action::Group(3)]);
        flow.instructions.meter = Some(5);
    }
    flow.idle_timeout = 10;
    flow.flags = flow_flags::SEND_FLOW_REM;
    b.fine(id, &Request::FlowMod(flow));
}

#[test]
fn a_ports_link_is_known_before_anybody_tells_it() {
    let mut k = Kept::new("links");
    k.b.agent.set_link(2, true, 100, 2);
    k.b.agent.set_link(3, false, 0, 2);
    let agent = k.agent(Settings::default());
    let up = (true, 1_000);
    let links = [1, 2, 3, 4].map(|n| agent.past_link(n, &format!("swp{n}")));
    assert_eq!(links, [up, (true, 100), (false, 0), up]);
    assert_eq!(agent.past_link(1, "another"), (false, 0));
    assert_eq!(agent.past_link(5, "swp5"), (false, 0));
}

#[test]
fn what_was_told_is_so_in_the_next_process() {
    for version in [Version::V13, Version::V10] {
        let mut k = Kept::new(&format!("told{}", version as u8));
        let id = k.b.connect(version);
        fill(&mut k.b, id, version);
        k.b.seconds(3);
        for _ in 0..4 {
            k.b.frame(1, &ether(9, 1));
        }
        let lost = Lost {
            rx_errors: 3,
            ..Lost::default()
        };
        k.b.agent.set_lost(1, lost);
        let before = told(&mut k.b, id, version);
        // of what came behind nobody was told: it may be lost
        k.b.frame(1, &ether(9, 1));
        let mut n = k.next(Settings::default());
        n.agent.set_lost(1, Lost::default());
        let one = n.connect(version);
        assert_eq!(told(&mut n, one, version), before);
        // what is written once more has all that there is
        k.all();
        let before = told(&mut k.b, id, version);
        let mut n = k.next(Settings::default());
        let one = n.connect(version);
        assert_eq!(told(&mut n, one, version), before);
        // the flow was used at 3 s, and is idle for 10
        n.seconds(9);
        assert_eq!(active(&n), 1);
        n.seconds(2);
        assert_eq!(active(&n), 0);
        assert_eq!(n.said(one).last().unwrap().kind, FLOW_REMOVED);
    }
}

#[test]
fn a_deleted_flow_a_gone_port_and_an_older_master_stay_so() {
    let mut k = Kept::new("gone");
    let id = k.b.connect(Version::V13);
    fill(&mut k.b, id, Version::V13);
    let master = |generation| {
        Request::Role(RoleRequest {
            role: Role::Master,
            generation,
        })
    };
    k.b.ask(id, &master(7));
    // its flow goes with it
    let gone = GroupMod {
        command: GroupCommand::Delete,
        kind: GroupType::All,
        group: 3,
        buckets: Vec::new(),
    };
    k.b.ask(id, &Request::GroupMod(gone));
    assert!(k.b.agent.remove_port(4));
    let mut n = k.next(Settings::default());
    assert_eq!(active(&n), 0);
    let ports = n.agent.datapath().ports();
    assert!(
        ports.into_iter().all(|p| p.port.config == 0),
        "another port 4"
    );
    let id = n.connect(Version::V13);
    let stale = code(Error::ROLE_REQUEST_FAILED_STALE);
    assert_eq!(n.refused(id, &master(6)), stale);
}

#[test]
fn a_file_of_what_is_not_written_down_is_none() {
    let mut k = Kept::new("none");
    let mut silent = Agent::new(Settings::default(), 1);
    k.store.begin().unwrap();
    silent.keep_all();
    assert!(silent.keep_slice(2, &mut k.store).is_err());
    assert!(!k.store.keeps() && !k.store.is_written() && !k.path.exists());
}

/// Each of these alone has its numbers written, whether one thing is asked for or all.
#[test]
fn what_one_answer_told_is_so_in_the_next_process() {
    let (any, all) = (port::ANY, QUEUE_ALL);
    let questions = [
        Asks::Flow(all_flows()),
        Asks::Aggregate(all_flows()),
        Asks::Table,
        Asks::Port { port: 1 },
        Asks::Port { port: any },
        Asks::Queue {
            port: 2,
            queue: all,
        },
        Asks::Queue {
            port: any,
            queue: all,
        },
        Asks::Group { group: 3 },
        Asks::Group { group: GROUP_ALL },
        Asks::Meter { meter: 5 },
        Asks::Meter { meter: METER_ALL },
    ];
    for (n, question) in questions.iter().enumerate() {
        let mut k = Kept::new(&format!("one{n}"));
        let id = k.b.connect(Version::V13);
        fill(&mut k.b, id, Version::V13);
        k.b.agent.keep_counts(k.b.now);
        assert!(!k.b.agent.keep_some_counts(100));
        k.b.seconds(3);
        k.b.frame(1, &ether(9, 1));
        let before = k.b.ask(id, &asks(question.clone()));
        let mut n = k.next(Settings::default());
        let one = n.connect(Version::V13);
        assert_eq!(n.ask(one, &asks(question.clone())), before, "{question:?}");
    }
}

/// Looking at flows for a sum leaves the next change in the file, and the sum is no smaller.
#[test]
fn a_sum_that_was_told_is_so_in_the_next_process() {
    let mut k = Kept::new("sum");
    let id = k.b.connect(Version::V13);
    k.b.fine(id, &Request::FlowMod(applying(vec![out(2)])));
    k.b.seconds(3);
    for _ in 0..4 {
        k.b.frame(1, &ether(9, 1));
    }
    let sum = |b: &mut Bench, id| {
        b.ask(id, &asks(Asks::Aggregate(all_flows())))[0]
            .body
            .clone()
    };
    let before = sum(&mut k.b, id);
    let mut n = k.next(Settings::default());
    let one = n.connect(Version::V13);
    assert_eq!(sum(&mut n, one), before);
    let mut other = applying(vec![out(3)]);
    other.priority = 7;
    k.b.fine(id, &Request::FlowMod(other));
    assert_eq!(active(&k.next(Settings::default())), 2);
}

#[test]
fn tables_of_a_version_that_is_not_offered_begin_empty() {
    let mut k = Kept::new("version");
    let id = k.b.connect(Version::V10);
    fill(&mut k.b, id, Version::V10);
    assert_eq!(active(&k.b), 1);
    let only = Settings {
        versions: vec![Version::V13],
        ..Settings::default()
    };
    assert_eq!(active(&k.next(only)), 0);
    let n = k.next(Settings::default());
    assert_eq!(
        (active(&n), n.agent.datapath().version()),
        (1, Version::V10)
    );
    // what another version's controller changes begins them anew, also for the process behind it
    k.b.agent.disconnected(id, k.b.now);
    let id = k.b.connect(Version::V13);
    assert_eq!(active(&k.next(Settings::default())), 1);
    k.b.fine(
        id,
        &Request::FlowMod(FlowMod {
            command: FlowCommand::DeleteStrict,
            ..blank()
        }),
    );
    assert_eq!(active(&k.next(Settings::default())), 0);
}
