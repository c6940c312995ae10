//! What the chip is told beside the tables: the core waits for no answer, and each comes, or the reason why there is none.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "sources/fake.rs"]
#[allow(dead_code)]
mod fake;

use crossbeam_channel::{Receiver, bounded};
use fake::Fake;
use tandem_abi::raw;
use tandem_core::plant::Front;
use tandem_core::{Core, Seat, Sources, storm};
use tandem_sal::Attach;
use tandem_twin::chip::{Direct, Shared, Sizes};
use tandem_twin::random::Random;
use tandem_twin::wired;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const KIND: u8 = raw::TND_STORM_BROADCAST;

struct Rig {
    core: Core,
    chip: Shared,
    now: u64,
}

impl Rig {
    fn new() -> Rig {
        let chip = Shared::new(Sizes::BIG.firmware(4).unwrap(), Random::new(1));
        chip.lock().cables(&[]);
        let front = |port: u16| Front {
            port,
            name: format!("swp{port}"),
            ifindex: 10 + u32::from(port),
        };
        let seat = Seat {
            source: Fake::told(1, "kernel", Vec::new()),
            ports: (1..=4).collect(),
            hold_ns: u64::MAX,
        };
        let sources = Sources::new(vec![seat]).unwrap();
        let front = (1..=4).map(front).collect();
        let wired = wired::core(&chip, front, Attach::Cold, sources).unwrap();
        let mut rig = Rig {
            core: wired.core,
            chip,
            now: SECOND,
        };
        rig.run(SECOND);
        assert!(rig.core.settled());
        rig
    }

    fn run(&mut self, ns: u64) {
        let end = self.now + ns;
        while self.now < end {
            self.now += 5 * MS;
            self.core.turn(self.now);
        }
    }

    /// Sets a limit of swp1; where the answer comes.
    fn limit(&mut self, rate: u64) -> Receiver<Result<String, String>> {
        let (to, said) = bounded(1);
        let done = Box::new(move |answer| to.send(answer).unwrap());
        self.core.set_storm(1, KIND, rate, done);
        assert!(said.is_empty(), "answered before a turn");
        said
    }

    /// What the chip has of it.
    fn left(&self) -> storm::Storms {
        storm::left(&mut Direct::attach(&self.chip, Attach::Warm)).unwrap()
    }
}

#[test]
fn an_answer_comes_in_a_later_turn() {
    let mut rig = Rig::new();
    let said = rig.limit(500);
    rig.run(SECOND);
    let done = "swp1: broadcast at most 500 packets/s";
    assert_eq!(said.try_recv(), Ok(Ok(done.into())));
    assert_eq!(rig.left(), storm::Storms::from([((1, KIND), 500)]));
}

#[test]
fn a_chip_that_does_not_answer_keeps_nobody_waiting_for_ever() {
    let mut rig = Rig::new();
    rig.chip.lock().faults.ignored = 1000;
    let said = rig.limit(500);
    // it has five seconds
    rig.run(3 * SECOND);
    assert!(said.is_empty());
    rig.run(4 * SECOND);
    let why = said.try_recv().unwrap().unwrap_err();
    assert_eq!(why, "swp1: storm control: the chip did not answer in time");
}

/// Who asks when the chip dies is told so; a chip that has forgotten the limits has them again.
#[test]
fn a_chip_that_dies_owes_nobody_an_answer() {
    let mut rig = Rig::new();
    let set = rig.limit(500);
    rig.run(SECOND);
    assert!(set.try_recv().unwrap().is_ok());
    rig.chip.lock().faults.ignored = 1000;
    let said = rig.limit(700);
    rig.run(100 * MS);
    {
        let mut chip = rig.chip.lock();
        (chip.dead, chip.faults.ignored) = (true, 0);
    }
    rig.run(10 * MS);
    let why = said.try_recv().unwrap().unwrap_err();
    assert!(why.contains("the ASIC is lost: power failed"), "{why}");
    rig.run(SECOND);
    assert_eq!(rig.left(), storm::Storms::from([((1, KIND), 500)]));
}

#[test]
fn without_a_chip_there_is_a_reason_at_once() {
    let mut rig = Rig::new();
    rig.chip.lock().dead = true;
    // one turn: it is lost, and not looked for yet
    rig.run(5 * MS);
    let said = rig.limit(500);
    rig.run(5 * MS);
    let why = said.try_recv().unwrap().unwrap_err();
    assert_eq!(why, "swp1: no ASIC attached: is the chip running?");
}
