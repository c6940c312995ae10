// SPDX-License-Identifier: Apache-2.0
//! Random messages and packets; whatever a file is cut to, what it holds is the tables as they were after some turn, and
//! after the last one that was acknowledged.

mod chip;

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;
use tandem_ofpipeline::flows::{all_flows, blank};
use tandem_ofpipeline::ports::Count;
use tandem_ofpipeline::{Config, PacketIn, Port, Sink, Switch};
use tandem_openflow::model::{
    Band, BandType, Bucket, FlowCommand, FlowMod, GROUP_ANY, GroupCommand, GroupMod, GroupType,
    MeterCommand, MeterMod, flow_flags, meter_flags,
};
use tandem_openflow::{Action, Field, Instructions, Match, Oxm, Version, port};
use tandem_packet::{Buffer, Frame, Offload};

use crate::batch::{head, seal};
use crate::{Boot, Journal, PortPast, State, Store, Unfit};

const BOOT: Boot = *b"01234567-89ab-cdef-0123-456789abcdef";
const SECOND: u64 = 1_000_000_000;

struct Nowhere;

impl Sink for Nowhere {
    fn output(&mut self, _: u32, _: Option<u32>, _: &Frame<'_>) {}
    fn packet_in(&mut self, _: &PacketIn<'_>, _: &Frame<'_>) {}
    fn normal(&mut self, _: u32, _: &Frame<'_>) {}
}

fn tables(version: Version) -> Switch {
    let mut s = Switch::new(Config {
        version,
        tables: if version == Version::V10 { 1 } else { 4 },
        ..Config::default()
    });
    for number in 1..=4 {
        let live = true;
        s.set_port(
            Port {
                number,
                live,
                ..Port::default()
            },
            0,
        );
    }
    s
}

/// All that is to outlive a process, as text.
fn said(s: &Switch) -> Vec<String> {
    let mut all = Vec::new();
    s.flow_page(&all_flows(), 0, u32::MAX, |f| {
        let w = f.flow;
        all.push(format!(
            "flow {} {} {:?} {:?} {:x} {} {} {} since {} last {} {} {}",
            w.table,
            w.priority,
            w.matching,
            w.instructions,
            w.cookie,
            w.idle,
            w.hard,
            w.flags,
            w.since_ns,
            f.last_ns,
            f.packets,
            f.bytes
        ));
        std::ops::ControlFlow::Continue(())
    });
    for n in s.groups() {
        let (g, c) = s.group(n).unwrap();
        all.push(format!("group {n} {:?} {:?} {c:?}", g.kind, g.buckets));
    }
    for n in s.meters() {
        let m = s.meter(n).unwrap();
        all.push(format!(
            "meter {n} {} {:?} {} {:?} {:?} {}",
            m.flags, m.bands, m.flows, m.count, m.band_counts, m.since_ns
        ));
    }
    for t in s.table_stats() {
        all.push(format!("table {:?}", (t.table, t.count)));
    }
    let c = s.config();
    all.push(format!("config {:?} {}", c.fragments, c.miss_send_len));
    all.sort();
    all
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn flow(d: &mut Dice, version: Version) -> FlowMod {
    let mut fields = Vec::new();
    if d.below(2) == 0 {
        fields.push(Oxm::exact(Field::InPort, u128::from(1 + d.below(4))));
    }
    if d.below(2) == 0 {
        fields.push(Oxm::exact(Field::EthDst, u128::from(d.below(3))));
    }
    let mut apply = vec![Action::Output {
        port: 1 + d.below(4) as u32,
        max_len: 0,
    }];
    let v13 = version == Version::V13;
    if v13 && d.below(3) == 0 {
        apply.push(Action::Group(d.below(3) as u32));
    }
    let (table, deletes) = (d.below(if v13 { 3 } else { 1 }) as u8, d.below(4));
    let flags = [
        0,
        flow_flags::CHECK_OVERLAP,
        flow_flags::RESET_COUNTS,
        flow_flags::NO_BYT_COUNTS | flow_flags::SEND_FLOW_REM,
    ];
    // 1.0's are read so
    let flags = match v13 {
        true => flags[d.below(4) as usize],
        false => flags[d.below(2) as usize] | flow_flags::RESET_COUNTS,
    };
    FlowMod {
        command: match (deletes, d.below(2)) {
            (0, 0) => FlowCommand::Delete,
            (0, _) => FlowCommand::DeleteStrict,
            (1, 0) => FlowCommand::Modify,
            (1, _) => FlowCommand::ModifyStrict,
            _ => FlowCommand::Add,
        },
        table,
        priority: d.below(3) as u16,
        cookie: d.below(4),
        idle_timeout: d.below(3) as u16 * 3,
        hard_timeout: d.below(3) as u16 * 7,
        flags,
        matching: Match {
            fields,
            exact: false,
        },
        instructions: Instructions {
            apply: Some(apply),
            meter: (v13 && d.below(4) == 0).then(|| 1 + d.below(2) as u32),
            goto: (v13 && d.below(3) == 0).then_some(table + 1),
            ..Instructions::default()
        },
        ..blank()
    }
}

fn group(d: &mut Dice) -> GroupMod {
    let commands = [
        GroupCommand::Add,
        GroupCommand::Modify,
        GroupCommand::Delete,
    ];
    let bucket = |d: &mut Dice| Bucket {
        weight: 1,
        watch_port: port::ANY,
        watch_group: GROUP_ANY,
        actions: match d.below(3) {
            // numbers that come first forward to those that come later, too
            0 => vec![Action::Group(d.below(3) as u32)],
            n => vec![Action::Output {
                port: n as u32,
                max_len: 0,
            }],
        },
    };
    GroupMod {
        command: commands[d.below(3) as usize],
        kind: [GroupType::All, GroupType::Select][d.below(2) as usize],
        group: d.below(3) as u32,
        buckets: (0..1 + d.below(2)).map(|_| bucket(d)).collect(),
    }
}

fn meter(d: &mut Dice) -> MeterMod {
    let commands = [
        MeterCommand::Add,
        MeterCommand::Modify,
        MeterCommand::Delete,
    ];
    MeterMod {
        command: commands[d.below(3) as usize],
        flags: meter_flags::PKTPS,
        meter: 1 + d.below(2) as u32,
        bands: vec![Band {
            rate: 1 + d.below(9) as u32,
            burst: 0,
            kind: BandType::Drop,
        }],
    }
}

/// A switch, its log, and what was to be read there after each batch.
struct World {
    switch: Switch,
    journal: Journal,
    dice: Dice,
    now: u64,
    log: Vec<u8>,
    /// Ends of batches, and the tables there.
    moments: BTreeMap<usize, Vec<String>>,
}

impl World {
    fn new(version: Version, seed: u64) -> World {
        let mut switch = tables(version);
        switch.watch();
        let mut w = World {
            journal: Journal::new(version),
            switch,
            dice: Dice(seed),
            now: SECOND,
            log: head(&BOOT),
            moments: BTreeMap::new(),
        };
        w.all(usize::MAX);
        w
    }

    fn append(&mut self, records: &[u8]) {
        self.log.extend_from_slice(&seal(records).unwrap());
        self.log.extend_from_slice(records);
    }

    /// All at once.
    fn all(&mut self, budget: usize) {
        self.journal.begin_all(&self.switch, Vec::new(), None, None);
        while let Some(slice) = self.journal.slice(&self.switch, budget) {
            self.append(&slice);
        }
        self.moments.clear();
        self.moments.insert(self.log.len(), said(&self.switch));
    }

    /// One message or packet.
    fn step(&mut self) {
        self.now += self.dice.below(2 * SECOND);
        let version = self.switch.config().version;
        let d = &mut self.dice;
        let mut removed = Vec::new();
        match d.below(12) {
            0 | 1 if version == Version::V13 => {
                let m = group(d);
                if self.switch.group_mod(&m, self.now, &mut removed).is_ok() {
                    self.tell(None);
                    self.journal.group(&self.switch, m.group);
                }
            }
            2 if version == Version::V13 => {
                let m = meter(d);
                if self.switch.meter_mod(&m, self.now, &mut removed).is_ok() {
                    self.tell(None);
                    self.journal.meter(&self.switch, m.meter);
                }
            }
            3..=6 => {
                let m = flow(d, version);
                let _ = self.switch.flow_mod(&m, self.now, &mut removed);
                self.tell(Some(&m));
            }
            7 => {
                let idle = |_| false;
                self.switch.expire(self.now, 1000, idle, &mut removed);
                self.tell(None);
            }
            8 => {
                self.switch.set_config(
                    tandem_ofpipeline::Fragments::Drop,
                    d.below(99) as u16,
                    false,
                );
                self.journal.config(&self.switch);
            }
            _ => {
                let to = d.below(3) as u8;
                let port = 1 + d.below(4) as u32;
                self.packet(to, port);
            }
        }
    }

    fn packet(&mut self, to: u8, port: u32) {
        let bytes = [&[0, 0, 0, 0, 0, to][..], &[2; 60]].concat();
        let mut b = Buffer::new();
        assert!(b.set(&bytes));
        let mut frame = b.frame(Offload::NONE);
        self.switch
            .process(&mut frame, port, self.now, &mut Nowhere);
    }

    fn tell(&mut self, by: Option<&FlowMod>) {
        let changes = self.switch.take_changes();
        self.journal.changes(&self.switch, &changes, by);
    }

    /// The end of a turn.
    fn settle(&mut self) -> Vec<u8> {
        self.journal.begin_counts(self.now);
        while self.journal.counts(&self.switch, 3) {}
        let records = self.journal.take();
        self.append(&records);
        self.moments.insert(self.log.len(), said(&self.switch));
        records
    }
}

fn read(log: &[u8], version: Version, now: u64) -> Vec<String> {
    let state = State::read(log, &BOOT).unwrap();
    let mut s = tables(version);
    assert!(
        !state.restore(&mut s, now).any(),
        "all that stood stands again"
    );
    said(&s)
}

fn version(ten: bool) -> Version {
    if ten { Version::V10 } else { Version::V13 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Killed anywhere: what is read is the tables after the last turn whose batch is whole.
    #[test]
    fn a_log_that_ends_anywhere_is_some_turns_tables(seed: u64, ten: bool) {
        let mut w = World::new(version(ten), seed);
        let first = *w.moments.keys().next().unwrap();
        for _ in 0..12 {
            for _ in 0..1 + w.dice.below(4) {
                w.step();
            }
            w.settle();
        }
        let all = w.log.len();
        let ends: Vec<usize> = w.moments.keys().copied().collect();
        // every byte of the last batches, and some of the others
        let cuts = (first..all).step_by(13).chain(ends[ends.len() - 2]..=all);
        for cut in cuts {
            let (end, then) = w.moments.range(..=cut).next_back().unwrap();
            prop_assert_eq!(&read(&w.log[..cut], version(ten), w.now), then, "{} of {}", cut, end);
            let torn = State::read(&w.log[..cut], &BOOT).unwrap().torn;
            prop_assert_eq!(torn, cut - end);
        }
    }

    /// What is written slice by slice while the tables change is what they are at its end.
    #[test]
    fn tables_that_change_while_they_are_written_are_whole(seed: u64, ten: bool, budget in 1usize..5) {
        let mut w = World::new(version(ten), seed);
        for _ in 0..40 {
            w.step();
        }
        w.settle();
        w.log = head(&BOOT);
        w.moments.clear();
        w.journal.begin_all(&w.switch, Vec::new(), None, None);
        while let Some(slice) = w.journal.slice(&w.switch, budget) {
            w.append(&slice);
            w.step();
            w.settle();
        }
        w.settle();
        let (_, then) = w.moments.last_key_value().unwrap();
        prop_assert_eq!(&read(&w.log, version(ten), w.now), then);
    }

    /// What meets flows while their counters are looked at, some in each turn, is written the next time.
    #[test]
    fn counters_that_grow_while_they_are_looked_at_come_the_next_time(seed: u64, budget in 1usize..4) {
        let mut w = World::new(Version::V13, seed);
        for _ in 0..40 {
            w.step();
        }
        w.settle();
        for _ in 0..3 {
            w.journal.begin_counts(w.now);
            while w.journal.counts(&w.switch, budget) {
                w.step();
                let records = w.journal.take();
                w.append(&records);
            }
        }
        w.settle();
        let (_, then) = w.moments.last_key_value().unwrap();
        prop_assert_eq!(&read(&w.log, Version::V13, w.now), then);
    }

    /// Any byte that is another one ends the log there: nothing behind it is believed.
    #[test]
    fn a_byte_that_is_wrong_ends_the_log(seed: u64, at: prop::sample::Index, bit in 0u8..8) {
        let mut w = World::new(Version::V13, seed);
        for _ in 0..10 {
            w.step();
            w.settle();
        }
        let first = head(&BOOT).len();
        let at = first + at.index(w.log.len() - first);
        w.log[at] ^= 1 << bit;
        match w.moments.range(..=at).next_back() {
            Some((_, then)) => prop_assert_eq!(&read(&w.log, Version::V13, w.now), then),
            None => prop_assert_eq!(State::read(&w.log, &BOOT).unwrap().version(), None),
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>, records: Vec<u8>) {
        let _ = State::read(&bytes, &BOOT);
        let log = [&head(&BOOT)[..], &seal(&records).unwrap(), &records].concat();
        if let Ok(state) = State::read(&log, &BOOT) {
            state.restore(&mut tables(Version::V13), SECOND);
        }
    }
}

#[test]
fn what_is_no_log_of_this_start_is_refused() {
    assert_eq!(State::read(b"", &BOOT), Err(Unfit::Foreign));
    assert_eq!(State::read(&[0; 200], &BOOT), Err(Unfit::Foreign));
    let other = head(&[b'x'; 36]);
    assert_eq!(State::read(&other, &BOOT), Err(Unfit::OtherBoot));
    let garbled = [&head(&BOOT)[..], &seal(&[99]).unwrap(), &[99]].concat();
    assert_eq!(State::read(&garbled, &BOOT), Err(Unfit::Garbled(44)));
    assert_eq!(State::read(&head(&BOOT), &BOOT).unwrap().version(), None);
}

#[test]
fn tables_with_less_room_take_what_they_can_and_say_so() {
    let mut w = World::new(Version::V13, 1);
    for n in 0..5 {
        let mut m = flow(&mut Dice(n), Version::V13);
        m.command = FlowCommand::Add;
        m.flags = 0;
        m.table = n as u8 % 3;
        m.instructions = Instructions::default();
        m.matching.fields = vec![Oxm::exact(Field::EthDst, u128::from(n))];
        w.switch.flow_mod(&m, w.now, &mut Vec::new()).unwrap();
        w.tell(Some(&m));
    }
    w.settle();
    let mut small = Switch::new(Config {
        tables: 2,
        ..Config::default()
    });
    let left = State::read(&w.log, &BOOT)
        .unwrap()
        .restore(&mut small, w.now);
    assert_eq!((left.flows, left.any()), (1, true));
    assert_eq!(small.aggregate(&all_flows()).flows, 4);
}

/// Ports come after the tables; a port or a group that a bucket watches may have gone before the process did.
#[test]
fn groups_that_watch_stand_before_there_are_ports() {
    let mut w = World::new(Version::V13, 1);
    let watching = |group, watch_port, watch_group| GroupMod {
        command: GroupCommand::Add,
        kind: GroupType::FastFailover,
        group,
        buckets: vec![Bucket {
            weight: 0,
            watch_port,
            watch_group,
            actions: vec![Action::Output {
                port: 2,
                max_len: 0,
            }],
        }],
    };
    let first_live = |s: &Switch| {
        let live = |n| s.group(n).unwrap().0.first_live();
        s.groups().map(live).collect::<Vec<_>>()
    };
    // the third watches one of a larger number, the fourth one that goes
    let groups = [
        watching(9, 2, GROUP_ANY),
        watching(10, 4, GROUP_ANY),
        watching(1, port::ANY, 9),
        watching(2, port::ANY, 10),
    ];
    for m in &groups {
        w.switch.group_mod(m, w.now, &mut Vec::new()).unwrap();
        w.journal.group(&w.switch, m.group);
    }
    let gone = GroupMod {
        command: GroupCommand::Delete,
        ..watching(10, 4, GROUP_ANY)
    };
    w.switch.group_mod(&gone, w.now, &mut Vec::new()).unwrap();
    w.journal.group(&w.switch, 10);
    w.settle();
    let before = first_live(&w.switch);
    assert_eq!(before, [Some(0), None, Some(0)]);
    let mut s = Switch::new(Config {
        tables: 4,
        ..Config::default()
    });
    let state = State::read(&w.log, &BOOT).unwrap();
    assert!(!state.restore(&mut s, w.now).any());
    assert_eq!(first_live(&s), [None, None, None]);
    let two = Port {
        number: 2,
        live: true,
        ..Port::default()
    };
    s.set_port(two, w.now);
    assert_eq!(first_live(&s), before);
}

/// A group of one bucket, which does this.
fn indirect(w: &mut World, group: u32, action: Action) {
    let m = GroupMod {
        command: GroupCommand::Add,
        kind: GroupType::Indirect,
        group,
        buckets: vec![Bucket {
            weight: 0,
            watch_port: port::ANY,
            watch_group: GROUP_ANY,
            actions: vec![action],
        }],
    };
    w.switch.group_mod(&m, w.now, &mut Vec::new()).unwrap();
    w.journal.group(&w.switch, group);
}

const OUT: Action = Action::Output {
    port: 2,
    max_len: 0,
};

#[test]
fn groups_forward_to_those_of_larger_numbers() {
    let mut w = World::new(Version::V13, 1);
    indirect(&mut w, 3, OUT);
    indirect(&mut w, 2, Action::Group(3));
    indirect(&mut w, 1, Action::Group(2));
    w.settle();
    assert_eq!(read(&w.log, Version::V13, w.now), said(&w.switch));
}

/// Counters that were written before the group and the meter that have them, as those come in a later slice.
#[test]
fn what_counts_before_its_slice_keeps_its_counters() {
    let mut w = World::new(Version::V13, 1);
    indirect(&mut w, 1, OUT);
    let mut m = meter(&mut w.dice);
    (m.command, m.meter) = (MeterCommand::Add, 1);
    w.switch.meter_mod(&m, w.now, &mut Vec::new()).unwrap();
    let m = FlowMod {
        command: FlowCommand::Add,
        instructions: Instructions {
            apply: Some(vec![Action::Group(1)]),
            meter: Some(1),
            ..Instructions::default()
        },
        ..blank()
    };
    w.switch.flow_mod(&m, w.now, &mut Vec::new()).unwrap();
    w.tell(Some(&m));
    w.packet(0, 1);
    w.log = head(&BOOT);
    w.journal.begin_all(&w.switch, Vec::new(), None, None);
    w.settle();
    while let Some(slice) = w.journal.slice(&w.switch, 1) {
        w.append(&slice);
    }
    assert_eq!(w.switch.group(1).unwrap().1.count.packets, 1);
    assert_eq!(read(&w.log, Version::V13, w.now), said(&w.switch));
}

fn folder(name: &str) -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("ofkeep-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// The file of earlier batches stands until the other one has all.
#[test]
fn a_file_is_replaced_when_the_other_is_whole() {
    let dir = folder("replaced");
    let path = dir.join("tables");
    assert_eq!(Store::left(&path).unwrap(), None);
    let mut w = World::new(Version::V13, 7);
    let mut store = Store::new(&path, BOOT);
    let whole = |w: &mut World, store: &mut Store| {
        store.begin().unwrap();
        w.journal.begin_all(&w.switch, Vec::new(), Some(9), None);
        loop {
            let slice = w.journal.slice(&w.switch, 2);
            store.slice(slice.as_deref()).unwrap();
            if slice.is_none() {
                break;
            }
            w.step();
            store.append(&w.settle()).unwrap();
            if store.keeps() {
                let now = Store::left(&path).unwrap().unwrap();
                assert_eq!(
                    read(&now, Version::V13, w.now),
                    said(&w.switch),
                    "meanwhile"
                );
            }
        }
    };
    whole(&mut w, &mut store);
    for _ in 0..20 {
        w.step();
        store.append(&w.settle()).unwrap();
    }
    let before = store.bytes();
    whole(&mut w, &mut store);
    assert!(store.bytes() < before && !store.is_long(true) && !store.is_written());
    let now = Store::left(&path).unwrap().unwrap();
    assert_eq!(now.len() as u64, store.bytes());
    assert_eq!(read(&now, Version::V13, w.now), said(&w.switch));
    assert_eq!(State::read(&now, &BOOT).unwrap().generation(), Some(9));
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    fs::remove_dir_all(dir).unwrap();
}

/// What changes behind the last slice, before the file takes the other's place.
#[test]
fn what_changes_while_all_is_written_is_in_both_files() {
    let dir = folder("both");
    let path = dir.join("tables");
    let mut w = World::new(Version::V13, 7);
    let mut store = Store::new(&path, BOOT);
    for len in [77, 78] {
        store.begin().unwrap();
        w.journal.begin_all(&w.switch, Vec::new(), None, None);
        while let Some(slice) = w.journal.slice(&w.switch, usize::MAX) {
            store.slice(Some(&slice)).unwrap();
        }
        let fragments = tandem_ofpipeline::Fragments::Drop;
        w.switch.set_config(fragments, len, false);
        w.journal.config(&w.switch);
        store.append(&w.settle()).unwrap();
        store.slice(None).unwrap();
        let now = Store::left(&path).unwrap().unwrap();
        assert_eq!(read(&now, Version::V13, w.now), said(&w.switch));
    }
    fs::remove_dir_all(dir).unwrap();
}

/// Where there is no room, nothing stays that lacks what came later.
#[test]
fn a_file_that_cannot_be_written_is_taken_away() {
    let dir = folder("full");
    let path = dir.join("tables");
    let mut store = Store::new(&path, BOOT);
    store.begin().unwrap();
    store.slice(None).unwrap();
    assert!(store.keeps() && path.exists());
    // the one that is written beside cannot take its place
    store.begin().unwrap();
    fs::remove_file(dir.join("tables.new")).unwrap();
    assert!(store.slice(None).is_err());
    assert!(!store.keeps() && !path.exists());
    fs::remove_dir_all(dir).unwrap();
}

/// What an earlier process left does not outlive this one, which keeps nothing; what is kept goes on.
#[test]
fn a_file_that_cannot_be_begun_is_taken_away() {
    let dir = folder("unbegun");
    let path = dir.join("tables");
    fs::write(&path, "an earlier process's").unwrap();
    let mut store = Store::new(&path, BOOT);
    // nothing can be made at this place
    let beside = dir.join("tables.new");
    fs::create_dir(&beside).unwrap();
    assert!(store.begin().is_err());
    assert!(!store.keeps() && !path.exists());
    fs::remove_dir(&beside).unwrap();
    store.begin().unwrap();
    store.slice(None).unwrap();
    fs::create_dir(&beside).unwrap();
    assert!(store.begin().is_err());
    assert!(store.keeps() && !store.is_written() && path.exists());
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn tables_of_another_version_have_no_config() {
    let mut w = World::new(Version::V13, 1);
    let fragments = tandem_ofpipeline::Fragments::Drop;
    w.switch.set_config(fragments, 99, false);
    w.journal.config(&w.switch);
    w.settle();
    w.switch = tables(Version::V10);
    w.journal.begin(Version::V10);
    w.settle();
    assert_eq!(read(&w.log, Version::V10, w.now), said(&w.switch));
}

#[test]
fn ports_come_back() {
    let count = |n| Count {
        packets: n,
        bytes: 2 * n,
    };
    let mut port = PortPast {
        name: "swp1".into(),
        config: 5,
        link: (true, 2_500),
        lost: [1, 2, 3],
        queues: vec![count(4), count(5)],
        ..PortPast::default()
    };
    port.count.rx = count(6);
    port.count.since_ns = 8;
    let mut w = World::new(Version::V13, 1);
    w.journal.port(1, port.clone());
    w.journal.port(2, PortPast::default());
    w.journal.port_gone(2);
    w.journal.generation(11);
    w.settle();
    let state = State::read(&w.log, &BOOT).unwrap();
    assert_eq!(state.ports().clone(), BTreeMap::from([(1, port)]));
    assert_eq!(state.generation(), Some(11));
}
