// SPDX-License-Identifier: Apache-2.0
//! A chip that is lost, one that was not attached to at once, and one that refuses: what is told of its counters.

use super::cases::{add, frame, to};
use super::device::{Fate, Shared};
use super::universe::{FIRST, bucket};
use super::world::{World, hush};
use crate::{Chip, Counted, Limits, Lookup, Past, PortOf, Setup, Slice, Tally};
use tandem_abi::raw;
use tandem_ofpipeline::{ChangeKind, Config, Port, Switch};
use tandem_openflow::model::{FlowCommand, FlowMod, GroupCommand, GroupMod, GroupType, flow_flags};
use tandem_openflow::{Action, Field, Instructions, Version, port};

const CHIP: &str = "nxp-t1040";
const MS: u64 = 1_000_000;

fn typed(n: u128) -> [(Field, u128); 1] {
    [(Field::EthType, 0x2000 + n)]
}

/// What it has counted since the last read nobody knows, and it may count on. Of what it never had all is known, and of its
/// ports when it has ended.
#[test]
fn a_chip_that_is_lost_tells_no_number() {
    for ended in [false, true] {
        let mut w = World::new(CHIP, Lookup::Address, Version::V13);
        w.rest();
        w.flow_mod(&add(1, &typed(0), 2));
        w.rest();
        w.send(1, &frame(0x2000));
        w.check_counts();
        let port = |w: &World| w.chip.port_stats(FIRST).map(|s| s.rx_packets);
        assert_eq!((w.chip.counted(0).0, port(&w)), (Some(1), Some(1)));
        assert_eq!(w.chip.looked_up()[0].0, Some(1));
        // two that nobody has read
        for _ in 0..2 {
            w.send(1, &frame(0x2000));
        }
        w.outage(&[add(1, &typed(1), 2)], ended);
        assert_eq!(w.chip.counted(0), (None, None));
        assert_eq!(w.chip.counted(1).0, Some(0));
        assert_eq!(w.chip.looked_up()[0].0, None);
        // the numbers of one that has ended stand still
        assert_eq!(port(&w), ended.then_some(1));
        // what was lost is lost for good, unless the flow's counts begin anew
        w.check_counts();
        assert!(w.chip.is_open());
        assert_eq!([0, 1].map(|n| w.chip.counted(n).0), [None, Some(0)]);
        assert!(port(&w).is_some());
        let anew = FlowMod {
            flags: flow_flags::RESET_COUNTS,
            ..add(1, &typed(0), 2)
        };
        w.flow_mod(&anew);
        w.rest();
        w.send(1, &frame(0x2000));
        w.check_counts();
        assert_eq!(w.chip.counted(0).0, Some(1));
    }
}

/// A process with its chip, of which each turn is written down.
struct Bed {
    chip: Chip,
    device: Shared,
    switch: Switch,
    kept: Past,
    now: u64,
}

impl Bed {
    fn new(flows: &[FlowMod]) -> Bed {
        let device = Shared::new(CHIP);
        let mut switch = Switch::new(Config {
            tables: 2,
            ..Config::default()
        });
        for n in 0..4 {
            let port = Port {
                number: FIRST + n,
                live: true,
                ..Port::default()
            };
            switch.set_port(port, 0);
        }
        switch.watch();
        let mut b = Bed {
            chip: Bed::chip(),
            device,
            switch,
            kept: Past::default(),
            now: 1_000 * MS,
        };
        let device = b.device.attach(false);
        b.chip.attach(device, b.now).unwrap();
        b.rest();
        for m in flows {
            b.flow_mod(m);
        }
        b.rest();
        assert!(b.chip.is_open());
        b
    }

    fn chip() -> Chip {
        let ports = (1..=4u8).map(|p| PortOf {
            number: FIRST + u32::from(p) - 1,
            port: p,
            mac: [2, 0, 0, 0, 1, p],
        });
        Chip::new(Setup {
            profile: CHIP.into(),
            lookup: Lookup::Address,
            version: Version::V13,
            ports: ports.collect(),
            local: false,
            chains: Limits::default(),
            classes: true,
            slice: Slice::default(),
        })
        .unwrap()
    }

    fn keep(&mut self) {
        self.kept.take(self.chip.take_unwritten());
    }

    /// What became of the counts of those that went.
    fn flow_mod(&mut self, m: &FlowMod) -> Vec<Result<Tally, Counted>> {
        let now = self.now;
        self.switch.flow_mod(m, now, &mut Vec::new()).unwrap();
        let changes = self.switch.take_changes();
        let left = self.chip.follow(&self.switch, &changes);
        for c in &changes {
            if let ChangeKind::Gone { .. } = c.kind {
                self.kept.flows.remove(&c.flow);
                let all = self.kept.counters.values_mut();
                all.for_each(|of| of.retain(|f| *f != c.flow));
            }
        }
        self.keep();
        left
    }

    /// What the next change is one decision with.
    fn group_mod(&mut self, m: &GroupMod) {
        self.switch.group_mod(m, self.now, &mut Vec::new()).unwrap();
        let groups = self.switch.take_regrouped();
        self.chip.regroup(&self.switch, &groups);
    }

    /// What the device makes of all that is under way, before an answer is looked at. Was there something?
    fn executes(&mut self, refused: impl Fn(&raw::tnd_cmd) -> bool) -> bool {
        let fate = |c: &raw::tnd_cmd| match refused(c) {
            true => Fate::Refused,
            false => Fate::Done,
        };
        let mut some = self.chip.turn(self.now);
        while self.device.lock().step(self.now, fate).is_some() {
            some = true;
        }
        some
    }

    fn step(&mut self, fate: Fate) -> bool {
        let before = self.chip.turn(self.now);
        let some = self.device.lock().step(self.now, |_| fate).is_some();
        let after = self.chip.turn(self.now);
        self.keep();
        before || some || after
    }

    fn rest(&mut self) {
        for _ in 0..10_000 {
            if !self.step(Fate::Done) {
                return;
            }
        }
        panic!("it never ends: {:?}", self.chip);
    }

    fn read(&mut self) {
        self.chip.read();
        self.rest();
    }

    /// A frame that the chip sends by itself, or not at all.
    fn passes(&mut self, ether: u16) -> usize {
        self.now += MS;
        let passed = self.device.lock().send(1, &frame(ether), self.now);
        assert_eq!(passed.cpu.len(), 0, "the CPU has it");
        passed.out.len()
    }

    /// The next process, whose tables are those that there are; it has not attached yet.
    fn begins_again(&mut self, restored: bool) {
        self.chip = Bed::chip();
        self.chip.follow_all(&self.switch, self.now);
        if restored {
            self.chip
                .restore_counts(Some(&self.kept), &self.switch, self.now);
        }
    }

    fn adopt(&mut self) -> bool {
        let device = self.device.attach(true);
        let open = self.chip.adopt(device, self.now).unwrap();
        self.rest();
        self.read();
        open
    }

    fn packets(&self, flow: u32) -> Option<u64> {
        self.chip.counted(flow).0
    }
}

/// The device's answer to the row's end is a refusal: the row stands, and forwards until all ports trap. It is these packets
/// as well that went by the flow.
#[test]
fn a_row_whose_end_is_refused_counts_to_the_last() {
    let mut b = Bed::new(&[add(1, &typed(0), 2), add(1, &typed(1), 2)]);
    assert_eq!(b.passes(0x2000), 1);
    let left = b.flow_mod(&to(FlowCommand::DeleteStrict, 1, &typed(0), 2));
    let Ok(tally) = left[0] else {
        panic!("its rows' last counts are known: {left:?}");
    };
    b.step(Fate::Refused);
    // its counter's last question is behind that
    b.step(Fate::Done);
    assert_eq!(b.passes(0x2000), 1);
    b.rest();
    assert_eq!(b.chip.troubles().refused, 1);
    assert!(b.chip.is_open());
    let whole = b.chip.whole(tally).unwrap();
    assert_eq!((whole.packets, whole.lost), (2, false));
    // the same of one that only counts for others from then on
    assert_eq!(b.passes(0x2001), 1);
    let anew = FlowMod {
        flags: flow_flags::RESET_COUNTS,
        ..add(1, &typed(1), 2)
    };
    b.flow_mod(&anew);
    b.rest();
    assert_eq!(b.passes(0x2001), 1);
    b.read();
    assert_eq!(b.packets(1), Some(1));
}

/// A flow is deleted.
fn goes(b: &mut Bed, n: u128) -> Tally {
    let left = b.flow_mod(&to(FlowCommand::DeleteStrict, 1, &typed(n), 2));
    left[0].expect("its rows' last counts are known")
}

fn whole(b: &mut Bed, tally: Tally) -> Option<(u64, bool)> {
    b.chip.whole(tally).map(|c| (c.packets, c.lost))
}

/// An earlier write to the row is confirmed, and its end, which is behind that, is refused.
#[test]
fn what_was_written_before_says_nothing_of_a_rows_end() {
    let mut b = Bed::new(&[add(1, &typed(0), 2)]);
    assert_eq!(b.passes(0x2000), 1);
    b.flow_mod(&to(FlowCommand::ModifyStrict, 1, &typed(0), 3));
    let tally = goes(&mut b, 0);
    b.step(Fate::Done);
    b.step(Fate::Refused);
    b.step(Fate::Done);
    assert_eq!(b.passes(0x2000), 1);
    b.rest();
    assert_eq!(b.chip.troubles().refused, 1);
    assert_eq!(whole(&mut b, tally), Some((2, false)));
}

/// Two ends are under way, and both are refused: after the first one nothing is trusted any more, and the second row counts on
/// until all ports trap.
#[test]
fn each_row_whose_end_is_refused_counts_to_the_last() {
    let mut b = Bed::new(&[add(1, &typed(0), 2), add(1, &typed(1), 2)]);
    let of = [0, 1].map(|n| goes(&mut b, n));
    b.step(Fate::Refused);
    b.step(Fate::Refused);
    for _ in 0..4 {
        b.step(Fate::Done);
    }
    for ether in [0x2000, 0x2001, 0x2001] {
        assert_eq!(b.passes(ether), 1);
    }
    b.rest();
    assert!(b.chip.is_open());
    let of = of.map(|t| whole(&mut b, t));
    assert_eq!(of, [Some((1, false)), Some((2, false))]);
}

/// A row's end has no answer, and its counter's last question, behind it, has: it was not executed, or its answer was lost.
#[test]
fn a_row_whose_end_is_not_answered_counts_to_the_last() {
    for (fate, sent) in [(Fate::Ignored, 1), (Fate::Lost, 0)] {
        let mut b = Bed::new(&[add(1, &typed(0), 2)]);
        assert_eq!(b.passes(0x2000), 1);
        let tally = goes(&mut b, 0);
        b.step(fate);
        b.step(Fate::Done);
        assert_eq!(b.passes(0x2000), sent);
        assert_eq!(whole(&mut b, tally), None);
        // its counter's end says whether the row had ended
        b.step(Fate::Done);
        if fate == Fate::Lost {
            assert_eq!(whole(&mut b, tally), Some((1, false)));
        }
        b.rest();
        b.now += 6_000 * MS;
        b.rest();
        assert!(b.chip.is_open());
        if fate == Fate::Ignored {
            assert_eq!(whole(&mut b, tally), Some((2, false)));
        }
    }
}

/// The same where its counter's end is not answered either: only when the write is given up it is asked again.
#[test]
fn a_row_whose_end_is_given_up_is_asked_again() {
    let mut b = Bed::new(&[add(1, &typed(0), 2)]);
    assert_eq!(b.passes(0x2000), 1);
    let tally = goes(&mut b, 0);
    for fate in [Fate::Ignored, Fate::Done, Fate::Ignored] {
        b.step(fate);
    }
    for _ in 0..2 {
        assert_eq!(b.passes(0x2000), 1);
    }
    b.read();
    assert_eq!(whole(&mut b, tally), None);
    b.now += 6_000 * MS;
    b.rest();
    assert!(b.chip.is_open());
    assert_eq!(whole(&mut b, tally), Some((3, false)));
}

/// It is stopped while nothing is written: nobody asks for anything, and all the same its numbers are not told for long. When it
/// goes on they are read.
#[test]
fn a_chip_that_does_not_answer_is_missed() {
    let mut b = Bed::new(&[add(1, &typed(0), 2)]);
    assert_eq!(b.passes(0x2000), 1);
    b.read();
    let all = |b: &Bed| {
        let port = b.chip.port_stats(FIRST).map(|s| s.rx_packets);
        (b.packets(0), port, b.chip.looked_up()[0].0)
    };
    let known = (Some(1), Some(1), Some(1));
    for second in 0..9 {
        assert_eq!(
            all(&b),
            if second < 4 {
                known
            } else {
                (None, None, None)
            }
        );
        assert_eq!(b.chip.is_silent(), second >= 4, "{second}");
        b.now += 1_000 * MS;
        b.chip.turn(b.now);
    }
    // a flow that it never had is known; so is one that comes, when it has answered
    b.flow_mod(&add(1, &typed(1), 2));
    assert!(!b.chip.is_settled() && b.chip.lost().is_none());
    assert_eq!(b.passes(0x2000), 1);
    // what was given up meanwhile nobody waits for
    while b.chip.is_silent() {
        assert!(b.step(Fate::Done));
    }
    // it is not read yet
    assert_eq!(all(&b), (None, None, None));
    b.rest();
    assert!(b.chip.is_settled() && b.chip.is_open());
    assert_eq!(all(&b), (Some(2), Some(2), Some(2)));
    assert_eq!(b.packets(1), Some(0));
    // tables that begin anew meanwhile make no number of its ports known
    for _ in 0..5 {
        b.chip.turn(b.now);
        b.now += 1_000 * MS;
    }
    assert!(b.chip.is_silent());
    b.chip.begin(Version::V10);
    assert_eq!(all(&b).1, None);
    b.now += 1_000 * MS;
    // nor do they where it has answered, and is not read yet
    while b.chip.is_silent() {
        assert!(b.step(Fate::Done));
    }
    b.chip.begin(Version::V13);
    assert_eq!(all(&b).1, None);
    b.rest();
    assert!(all(&b).1.is_some());
}

/// The first attempt to attach did not succeed, and flows came, went and began anew before the next one, which is warm as
/// well: each has its own packets, and no other's.
#[test]
fn a_chip_that_is_attached_to_later_is_the_same_flows() {
    let flows = [0, 1, 2].map(|n| add(1, &typed(n), 2));
    for kills in 0..2 {
        let mut b = Bed::new(&flows);
        for ether in [0x2000, 0x2001, 0x2002, 0x2002] {
            assert_eq!(b.passes(ether), 1);
        }
        b.begins_again(true);
        assert_eq!(b.packets(2), None);
        // one goes, its number is another's; one begins anew
        b.flow_mod(&to(FlowCommand::DeleteStrict, 1, &typed(0), 2));
        b.flow_mod(&add(1, &typed(9), 3));
        b.flow_mod(&FlowMod {
            flags: flow_flags::RESET_COUNTS,
            ..add(1, &typed(1), 2)
        });
        for _ in 0..kills {
            b.begins_again(true);
        }
        assert!(!b.adopt());
        assert_eq!([0, 1, 2].map(|n| b.packets(n)), [Some(0), Some(0), Some(2)]);
        for ether in [0x2009, 0x2001, 0x2002] {
            assert_eq!(b.passes(ether), 1);
        }
        assert_eq!(b.passes(0x2000), 0);
        b.read();
        assert_eq!([0, 1, 2].map(|n| b.packets(n)), [Some(1), Some(1), Some(3)]);
        assert!(b.chip.is_open() && b.chip.troubles().refused == 0);
    }
}

/// A switch whose file alone was lost begins with nothing, and what the chip has looked up for it from the attach on is
/// counted, also where nothing has to be written.
#[test]
fn what_a_chip_looks_up_that_goes_on_is_counted_from_there() {
    let mut b = Bed::new(&[]);
    assert_eq!(b.passes(0x2000), 0);
    b.begins_again(false);
    let device = b.device.attach(true);
    assert_eq!(b.chip.adopt(device, b.now).ok(), Some(true));
    assert_eq!(b.passes(0x2000), 0);
    b.read();
    assert_eq!(b.passes(0x2000), 0);
    b.read();
    // it drops what meets no flow, so how many met one is not known
    assert_eq!(b.chip.looked_up()[0], (Some(2), None));
}

/// A row that gives all to the CPU counts nothing, so no write parts it from its counter: the last question is answered, and the
/// counter's end is not. It is asked again, and not forgotten.
#[test]
fn a_counter_that_no_write_parts_is_asked_again() {
    let mut b = Bed::new(&[add(2, &typed(0), 2), add(1, &[], 3)]);
    assert_eq!(b.passes(0x2000), 1);
    let before = b.chip.counters();
    let output = Action::Output {
        port: port::CONTROLLER,
        max_len: 0,
    };
    let instructions = Instructions {
        apply: Some(vec![output]),
        ..Instructions::default()
    };
    for (command, flags) in [
        (FlowCommand::ModifyStrict, 0),
        (FlowCommand::Add, flow_flags::RESET_COUNTS),
    ] {
        b.flow_mod(&FlowMod {
            flags,
            instructions: instructions.clone(),
            ..to(command, 2, &typed(0), 2)
        });
        if flags == 0 {
            b.rest();
        }
    }
    b.step(Fate::Done);
    b.step(Fate::Lost);
    assert_eq!(b.chip.counters(), before);
    b.now += 6_000 * MS;
    b.rest();
    assert_eq!(b.chip.counters().0, before.0 - 1);
}

/// Its signs are answered for the chip, as another switch has always something to do and gives none: the chip is asked nothing, and
/// so is not silent.
#[test]
fn an_idle_switch_beside_a_busy_one_misses_no_chip() {
    let mut b = Bed::new(&[]);
    b.chip = Bed::chip();
    let part = crate::parts(b.device.attach(false), 2).swap_remove(0);
    b.chip.attach(Box::new(part), b.now).unwrap();
    b.rest();
    for _ in 0..20 {
        b.now += 1_000 * MS;
        b.rest();
        assert!(!b.chip.is_silent());
    }
}

fn instructions(apply: Vec<Action>) -> Instructions {
    Instructions {
        apply: Some(apply),
        ..Instructions::default()
    }
}

/// A row counts for another group from here on, and moves before the write that says so, which is refused: it counts on where
/// it did until all ports trap.
#[test]
fn a_row_that_moves_counts_to_the_last() {
    const FRONT: u32 = 1;
    let mut b = Bed::new(&[add(1, &typed(0), 3)]);
    let group = |command| GroupMod {
        command,
        kind: GroupType::Indirect,
        group: 1,
        buckets: vec![bucket(vec![Action::Output {
            port: FIRST + 1,
            max_len: 0,
        }])],
    };
    b.group_mod(&group(GroupCommand::Add));
    b.flow_mod(&FlowMod {
        instructions: instructions(vec![Action::Group(1)]),
        ..add(100, &typed(1), 2)
    });
    b.rest();
    let mut sent = b.passes(0x2001) as u64;
    let row = *b.chip.want.rows.keys().next().unwrap();
    b.group_mod(&group(GroupCommand::Modify));
    // right behind it, as one decision with that, until there is no number between
    for n in 2.. {
        b.flow_mod(&add(n, &typed(n.into()), 3));
        if !b.chip.want.rows.contains_key(&row) {
            break;
        }
        b.rest();
        b.group_mod(&group(GroupCommand::Modify));
    }
    let update = (raw::TND_OP_UPDATE, raw::TND_CLS_ACL_ENTRY);
    while b.chip.troubles().refused == 0 {
        // all that may be under way is executed before an answer is looked at
        assert!(b.executes(|c| (c.op, c.cls) == update));
        sent += b.passes(0x2001) as u64;
        b.chip.turn(b.now);
    }
    b.rest();
    b.read();
    assert!(b.chip.is_open());
    assert_eq!(b.packets(FRONT), Some(sent));
}

/// No write parts a counter, and its end is under way while another write is given up: it was told what it had counted, and is
/// known, whether the answer to its end comes or not.
#[test]
fn a_counter_that_no_write_parts_is_known_where_it_was_told() {
    for fate in [Fate::Done, Fate::Lost] {
        let goes = FlowMod {
            instructions: Instructions {
                goto: Some(1),
                ..Instructions::default()
            },
            ..add(2, &typed(0), 2)
        };
        let then = |command, apply| FlowMod {
            table: 1,
            instructions: instructions(apply),
            ..to(command, 1, &[], 2)
        };
        let out = |port| Action::Output { port, max_len: 0 };
        let sends = then(FlowCommand::Add, vec![out(FIRST + 1)]);
        let mut b = Bed::new(&[goes.clone(), sends, add(1, &[], 3)]);
        assert_eq!(b.passes(0x2000), 1);
        // its row traps from here on, and counts nothing
        let tells = then(FlowCommand::ModifyStrict, vec![out(port::CONTROLLER)]);
        b.flow_mod(&tells);
        b.rest();
        // a write that is not answered
        b.flow_mod(&add(3, &typed(7), 2));
        b.step(Fate::Done);
        b.step(Fate::Ignored);
        b.now += 4_000 * MS;
        let before = b.chip.counters().0;
        b.flow_mod(&FlowMod {
            flags: flow_flags::RESET_COUNTS,
            ..goes
        });
        // a sign, and the counter's last question; its end is behind that
        b.step(Fate::Done);
        b.step(Fate::Done);
        assert_eq!(b.chip.counters().0, before);
        b.now += 2_000 * MS;
        b.chip.turn(b.now);
        assert_eq!(b.chip.troubles().unanswered, 1);
        b.step(fate);
        b.rest();
        b.now += 6_000 * MS;
        b.rest();
        b.read();
        assert!(b.chip.is_open());
        assert_eq!(b.chip.counters().0, before - 1);
        assert_eq!([0, 1].map(|n| b.packets(n)), [Some(0), Some(1)], "{fate:?}");
    }
}

/// Killed when the device had a new row's counter, and nobody had written that down: no row names it, so nothing of it is any
/// flow's. When a row does, it may be.
#[test]
fn a_counter_that_nobody_wrote_down_and_no_row_names_makes_no_number_unknown() {
    for commands in 1..3 {
        let mut b = Bed::new(&[add(1, &typed(0), 2)]);
        assert_eq!(b.passes(0x2000), 1);
        let (kept, switch) = (b.kept.clone(), b.switch.clone());
        b.flow_mod(&add(1, &typed(1), 2));
        for _ in 0..commands {
            b.step(Fate::Done);
        }
        (b.kept, b.switch) = (kept, switch);
        b.begins_again(true);
        b.adopt();
        assert_eq!(b.packets(0), (commands == 1).then_some(1), "{commands}");
        assert!(b.chip.is_open() && b.chip.troubles().refused == 0);
        assert_eq!(b.passes(0x2000), 1);
        assert_eq!(b.chip.counters().0, 1);
    }
}

/// Killed when a row counted by a counter that nobody had written down: what the flow's other counters say is not all.
#[test]
fn a_counter_that_nobody_wrote_down_makes_numbers_unknown() {
    let mut b = Bed::new(&[add(1, &typed(0), 2)]);
    assert_eq!(b.passes(0x2000), 1);
    let (kept, switch) = (b.kept.clone(), b.switch.clone());
    b.flow_mod(&FlowMod {
        flags: flow_flags::RESET_COUNTS,
        ..add(1, &typed(0), 2)
    });
    // the counter, and the row that counts there
    for _ in 0..2 {
        b.step(Fate::Done);
    }
    assert_eq!(b.passes(0x2000), 1);
    (b.kept, b.switch) = (kept, switch);
    b.begins_again(true);
    b.adopt();
    assert_eq!(b.packets(0), None);
}

/// Who comes round so seldom that what was under way is given up in between notices all the same that nothing is answered.
#[test]
fn a_silence_that_is_seldom_looked_at() {
    let mut w = World::new("nxp-t1040", Lookup::Address, Version::V13);
    w.rest();
    hush(&mut [&mut w], true);
    for _ in 0..8 {
        assert!(!w.chip.is_silent() || w.chip.counts.is_stale());
        w.now += 2_500_000_000;
        w.chip.turn(w.now);
    }
    assert!(w.chip.is_silent());
    hush(&mut [&mut w], false);
    w.rest();
    assert!(!w.chip.is_silent());
}
