//! Order, waiting, latency, sequence and epoch.

use super::*;
use proptest::prelude::*;
use raw::*;

#[derive(Default)]
struct Seen {
    done: Vec<(usize, u32, u16)>,
    full: bool,
    /// Completions that there is room for; 0: no limit.
    room: u32,
}

impl CplSink for Seen {
    fn room(&mut self, _: usize, completions: u32) -> bool {
        !self.full && (self.room == 0 || completions <= self.room)
    }
    fn complete(&mut self, pair: usize, cmd: &tnd_cmd, cpl: &tnd_cpl, _: &[u8]) {
        assert_eq!((cpl.seq, cpl.cookie), (cmd.seq, cmd.cookie));
        self.done.push((pair, cpl.seq, cpl.status));
    }
}

struct Rig {
    fw: Firmware,
    p: Processor,
    seen: Seen,
    seq: [u32; 2],
}

impl Rig {
    fn new(latency: bool) -> Self {
        let mut fw = chip("tiny");
        let mut p = Processor::new(latency);
        p.reset(&mut fw, 2, 7);
        Self {
            fw,
            p,
            seen: Seen::default(),
            seq: [0; 2],
        }
    }
    fn post(&mut self, pair: usize, c: tnd_cmd, body: &[u8], now: u64) {
        let c = tnd_cmd {
            seq: self.seq[pair],
            epoch: 7,
            ..c
        };
        self.seq[pair] = self.seq[pair].wrapping_add(1);
        self.p.submit(&mut self.fw, pair, &c, body, now).unwrap();
    }
    fn run(&mut self, now: u64) -> Ran {
        self.p
            .run(&mut self.fw, now, 100 * turn::COMMAND, &mut self.seen)
    }
}

fn nop() -> tnd_cmd {
    cmd(TND_OP_NOP, 0)
}

#[test]
fn each_ring_in_order() {
    let mut r = Rig::new(false);
    for _ in 0..3 {
        r.post(0, nop(), &[], 0);
        r.post(1, nop(), &[], 0);
    }
    assert_eq!(r.run(0).executed, 6);
    for pair in 0..2 {
        let seqs: Vec<u32> = r
            .seen
            .done
            .iter()
            .filter(|d| d.0 == pair)
            .map(|d| d.1)
            .collect();
        assert_eq!(seqs, [0, 1, 2]);
    }
}

#[test]
fn a_command_waits_for_the_other_ring() {
    let mut r = Rig::new(false);
    let wait = tnd_cmd {
        flags: TND_CMD_WAIT,
        wait_pair: 1,
        wait_seq: 1,
        ..nop()
    };
    r.post(0, wait, &[], 0);
    r.post(0, nop(), &[], 0);
    r.post(1, nop(), &[], 0);
    r.run(0);
    assert_eq!(r.seen.done, [(1, 0, TND_ST_OK)]);
    r.post(1, nop(), &[], 0);
    r.run(0);
    assert_eq!(
        r.seen.done[1..],
        [(1, 1, TND_ST_OK), (0, 0, TND_ST_OK), (0, 1, TND_ST_OK)]
    );
}

#[test]
fn waits_hold_where_sequence_numbers_wrap() {
    let mut r = Rig::new(false);
    r.p.at_sequence(u32::MAX);
    r.seq = [u32::MAX; 2];
    let wait = |seq| tnd_cmd {
        flags: TND_CMD_WAIT,
        wait_pair: 1,
        wait_seq: seq,
        ..nop()
    };
    // for the last before they wrap, and for the second after
    r.post(0, wait(u32::MAX), &[], 0);
    r.post(0, wait(1), &[], 0);
    r.run(0);
    assert_eq!(r.seen.done, []);
    r.post(1, nop(), &[], 0);
    r.post(1, nop(), &[], 0);
    r.run(0);
    let ok = |pair, seq| (pair, seq, TND_ST_OK);
    assert_eq!(r.seen.done.len(), 3);
    assert!(r.seen.done.contains(&ok(0, u32::MAX)));
    r.post(1, nop(), &[], 0);
    r.run(0);
    assert_eq!(r.seen.done[3..], [ok(1, 1), ok(0, 0)]);
}

#[test]
fn rings_that_wait_for_each_other_are_told() {
    let mut r = Rig::new(false);
    let wait = |pair, seq| tnd_cmd {
        flags: TND_CMD_WAIT,
        wait_pair: pair,
        wait_seq: seq,
        ..nop()
    };
    r.post(0, wait(1, 0), &[], 0);
    r.post(1, wait(0, 0), &[], 0);
    r.post(1, wait(1, 5), &[], 0);
    r.post(1, wait(9, 0), &[], 0);
    r.run(0);
    r.run(0);
    let invalid = r.seen.done.iter().filter(|d| d.2 == TND_ST_INVALID).count();
    assert_eq!((r.seen.done.len(), invalid), (4, 3));
}

#[test]
fn a_wrong_sequence_is_corrupt_and_a_wrong_epoch_stale() {
    let mut r = Rig::new(false);
    let stale = tnd_cmd {
        epoch: 6,
        ..cmd(TND_OP_CREATE, TND_CLS_VLAN)
    };
    r.p.submit(&mut r.fw, 0, &stale, vlan(1).as_bytes(), 0)
        .unwrap();
    r.run(0);
    assert_eq!(r.seen.done, [(0, 0, TND_ST_STALE)]);
    assert!(r.fw.state.vlan(1).is_none());
    let got = r.p.submit(
        &mut r.fw,
        0,
        &tnd_cmd {
            seq: 5,
            epoch: 7,
            ..nop()
        },
        &[],
        0,
    );
    assert_eq!(got, Err(SubmitError::Sequence { got: 5, want: 1 }));
    assert_eq!(
        r.p.submit(&mut r.fw, 2, &nop(), &[], 0),
        Err(SubmitError::NoPair(2))
    );
}

#[test]
fn queues_are_bounded_and_a_full_completion_ring_stops_execution() {
    let mut r = Rig::new(false);
    for _ in 0..crate::processor::MAX_PENDING {
        r.post(0, nop(), &[], 0);
    }
    let next = tnd_cmd {
        seq: r.seq[0],
        epoch: 7,
        ..nop()
    };
    assert_eq!(
        r.p.submit(&mut r.fw, 0, &next, &[], 0),
        Err(SubmitError::Busy)
    );
    assert_eq!(
        (r.p.room(0), r.p.room(1)),
        (0, crate::processor::MAX_PENDING)
    );
    r.seen.full = true;
    assert_eq!(r.run(0).executed, 0);
    r.seen.full = false;
    assert_eq!(r.run(0).executed, 100);
}

#[test]
fn slots_are_in_flight_until_due() {
    let mut r = Rig::new(true);
    let write = r.fw.profile().latency.write_ns;
    r.post(
        0,
        cmd(TND_OP_CREATE, TND_CLS_VLAN),
        vlan(1).as_bytes(),
        1000,
    );
    r.post(
        0,
        cmd(TND_OP_CREATE, TND_CLS_VLAN),
        vlan(2).as_bytes(),
        1000,
    );
    r.run(1000);
    let p = pool(&r.fw, PoolId::Vlan);
    assert_eq!(
        (p.used, p.in_flight, p.free, p.high_watermark),
        (0, 2, 2, 2)
    );
    assert_eq!(r.p.next_due(), Some(1000 + write));
    r.run(1000 + write);
    let p = pool(&r.fw, PoolId::Vlan);
    assert_eq!((p.used, p.in_flight, p.free), (1, 1, 2));
    // the second starts when the first is done, not when somebody looked
    r.run(1000 + 2 * write);
    assert_eq!(pool(&r.fw, PoolId::Vlan).used, 2);
    assert_eq!(r.p.next_due(), None);
    assert_eq!(r.fw.check_accounting(), Ok(()));
}

#[test]
fn in_flight_slots_come_back_when_the_driver_goes() {
    let mut r = Rig::new(true);
    r.post(0, cmd(TND_OP_CREATE, TND_CLS_VLAN), vlan(1).as_bytes(), 0);
    r.run(0);
    r.p.reset(&mut r.fw, 2, 8);
    let p = pool(&r.fw, PoolId::Vlan);
    assert_eq!((p.used, p.in_flight, p.free), (0, 0, 4));
    assert_eq!(r.p.pending(), 0);
}

#[test]
fn a_leased_command_in_flight_keeps_its_guarantee() {
    let mut r = Rig::new(true);
    let items = super::lease::lease(&[(TND_CLS_FDB, 0, 2)]);
    r.post(0, cmd(TND_OP_LEASE, 0), &items, 0);
    r.post(0, cmd(TND_OP_CREATE, TND_CLS_VLAN), vlan(1).as_bytes(), 0);
    r.run(1_000_000);
    let leased = tnd_cmd {
        flags: TND_CMD_LEASE,
        lease: 1,
        ..cmd(TND_OP_CREATE, TND_CLS_FDB)
    };
    r.post(0, leased, fdb(1, 1, 1).as_bytes(), 1_000_000);
    r.run(1_000_000);
    let p = pool(&r.fw, PoolId::ExactMatch);
    assert_eq!((p.used, p.in_flight, p.committed), (0, 1, 1));
    assert_eq!(r.fw.state.exact.stash_free(), 6);
    // released while in flight: the command finds no lease, its slot is free again
    let release = tnd_cmd {
        lease: 1,
        ..cmd(TND_OP_RELEASE, 0)
    };
    r.post(1, release, &[], 1_000_000);
    r.run(1_000_000 + r.fw.profile().latency.query_ns);
    let p = pool(&r.fw, PoolId::ExactMatch);
    assert_eq!((p.in_flight, p.committed), (1, 0));
    r.run(2_000_000);
    assert_eq!(r.seen.done.last(), Some(&(0, 2, TND_ST_LEASE)));
    let p = pool(&r.fw, PoolId::ExactMatch);
    assert_eq!((p.used, p.in_flight, p.committed, p.free), (0, 0, 0, 32));
}

#[test]
fn faults_delay_drop_and_reset() {
    let mut r = Rig::new(false);
    let fault = |action, after| Fault {
        action,
        op: Some(TND_OP_CREATE),
        cls: None,
        pool: None,
        after,
        count: 1,
    };
    r.fw.faults.add(fault(FaultAction::Delay(500), 1)).unwrap();
    r.fw.faults
        .add(fault(FaultAction::DropCompletion, 2))
        .unwrap();
    r.fw.faults.add(fault(FaultAction::Reset, 3)).unwrap();
    let c = cmd(TND_OP_CREATE, TND_CLS_VLAN);
    r.post(0, c, vlan(1).as_bytes(), 100);
    r.run(100);
    assert!(r.seen.done.is_empty());
    assert_eq!(pool(&r.fw, PoolId::Vlan).in_flight, 1);
    r.run(600);
    assert_eq!(r.seen.done, [(0, 0, TND_ST_OK)]);
    r.post(0, c, vlan(2).as_bytes(), 600);
    r.run(600);
    assert_eq!(r.seen.done.len(), 1);
    assert!(r.fw.state.vlan(2).is_some());
    r.post(0, c, vlan(3).as_bytes(), 600);
    assert!(r.run(600).reset);
    assert_eq!(pool(&r.fw, PoolId::Vlan).used, 0);
}

#[test]
fn a_completion_that_comes_twice_is_one_command_and_has_room_for_both() {
    let mut r = Rig::new(false);
    r.fw.faults
        .add(Fault {
            action: FaultAction::DuplicateCompletion,
            op: None,
            cls: None,
            pool: None,
            after: 1,
            count: 1,
        })
        .unwrap();
    r.seen.room = 1;
    r.post(0, cmd(TND_OP_CREATE, TND_CLS_VLAN), vlan(1).as_bytes(), 0);
    r.post(0, nop(), &[], 0);
    r.run(0);
    assert!(r.seen.done.is_empty() && r.fw.state.vlan(1).is_none());
    r.seen.room = 2;
    r.run(0);
    let twice = (0, 0, TND_ST_OK);
    assert_eq!(r.seen.done, [twice, twice, (0, 1, TND_ST_OK)]);
    assert_eq!(pool(&r.fw, PoolId::Vlan).used, 1);
}

#[test]
fn a_reset_forgets_what_was_in_flight() {
    let mut r = Rig::new(true);
    let reset = Fault {
        action: FaultAction::Reset,
        op: Some(TND_OP_DELETE),
        cls: None,
        pool: None,
        after: 1,
        count: 1,
    };
    r.fw.faults.add(reset).unwrap();
    r.post(0, cmd(TND_OP_DELETE, TND_CLS_VLAN), vlan(1).as_bytes(), 0);
    r.post(1, cmd(TND_OP_CREATE, TND_CLS_VLAN), vlan(2).as_bytes(), 10);
    r.run(10);
    assert_eq!(pool(&r.fw, PoolId::Vlan).in_flight, 1);
    assert!(r.run(55_000).reset);
    assert_eq!(pool(&r.fw, PoolId::Vlan).in_flight, 0);
    r.p.detach(&mut r.fw);
    assert_eq!(pool(&r.fw, PoolId::Vlan).free, 4);
    // as the daemon does at a cold attach: the chip first, then the queues
    r.p.reset(&mut r.fw, 2, 8);
    r.seq = [0; 2];
    let c = tnd_cmd {
        epoch: 8,
        ..cmd(TND_OP_CREATE, TND_CLS_VLAN)
    };
    r.p.submit(&mut r.fw, 0, &c, vlan(1).as_bytes(), 0).unwrap();
    r.fw.attach(false);
    r.p.reset(&mut r.fw, 2, 9);
    assert_eq!(r.fw.check_accounting(), Ok(()));
    assert_eq!(pool(&r.fw, PoolId::Vlan).free, 4);
}

#[test]
fn a_sweep_is_done_in_slices() {
    let mut fw = chip("spectrum-sn2700");
    let n = 5000;
    for i in 0..n {
        assert_eq!(
            create(&mut fw, TND_CLS_ROUTE, &route4(0, i << 8, 24, None)),
            TND_ST_OK
        );
    }
    let mut p = Processor::new(false);
    p.reset(&mut fw, 2, 7);
    fw.attach(true);
    let mut r = Rig {
        fw,
        p,
        seen: Seen::default(),
        seq: [0; 2],
    };
    r.post(0, cmd(TND_OP_BEGIN_RESYNC, 0), &[], 0);
    r.run(0);
    r.post(0, cmd(TND_OP_END_RESYNC, 0), &[], 0);
    assert!(r.run(0).sliced);
    let used = pool(&r.fw, PoolId::Lpm4).used;
    assert!(used > 0 && used < n, "{used}");
    assert_eq!(r.p.next_due(), Some(0));
    // another ring goes on meanwhile; what it names stays
    r.post(
        1,
        cmd(TND_OP_CREATE, TND_CLS_ROUTE),
        route4(0, (n - 1) << 8, 24, None).as_bytes(),
        0,
    );
    r.post(1, cmd(TND_OP_BEGIN_RESYNC, 0), &[], 0);
    let mut runs = 1;
    while r.run(0).sliced {
        runs += 1;
    }
    assert!(runs > 3);
    assert_eq!(
        r.seen.done,
        [
            (0, 0, TND_ST_OK),
            (1, 0, TND_ST_OK),
            (1, 1, TND_ST_INVALID),
            (0, 1, TND_ST_OK)
        ]
    );
    assert_eq!(pool(&r.fw, PoolId::Lpm4).used, 1);
    assert_eq!(r.fw.check_accounting(), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Random creates, deletes, leases and releases on two rings, with time passing, delays, lost completions and
    /// drivers that come and go: the sum holds at every instant, and nothing is in flight or committed at the end.
    #[test]
    fn the_sum_holds_while_commands_are_in_flight(
        steps in prop::collection::vec((0u8..12, 0usize..2, 0u32..12, 0u64..80_000), 1..200),
    ) {
        let mut r = Rig::new(true);
        let delay = Fault {
            action: FaultAction::Delay(30_000),
            op: Some(TND_OP_CREATE),
            cls: None,
            pool: None,
            after: 3,
            count: 0,
        };
        r.fw.faults.add(delay).unwrap();
        let lost = Fault { action: FaultAction::DropCompletion, op: None, after: 5, count: 2, ..delay };
        r.fw.faults.add(lost).unwrap();
        let mut now = 0;
        r.post(0, cmd(TND_OP_CREATE, TND_CLS_VLAN), vlan(1).as_bytes(), now);
        for (what, pair, n, dt) in steps {
            now += dt;
            let lease = n % 3 + 1;
            let body = fdb(1, n + 1, 1);
            let create = cmd(TND_OP_CREATE, TND_CLS_FDB);
            match what {
                0..=3 => r.post(pair, create, body.as_bytes(), now),
                4..=5 => {
                    let c = tnd_cmd { flags: TND_CMD_LEASE, lease, ..create };
                    r.post(pair, c, body.as_bytes(), now);
                }
                6 => r.post(pair, cmd(TND_OP_DELETE, TND_CLS_FDB), body.as_bytes(), now),
                7 => r.post(pair, cmd(TND_OP_LEASE, 0), &super::lease::lease(&[(TND_CLS_FDB, 0, n)]), now),
                8 => r.post(pair, tnd_cmd { lease, ..cmd(TND_OP_RELEASE, 0) }, &[], now),
                9 if n < 3 => {
                    r.fw.attach(pair == 1);
                    r.p.reset(&mut r.fw, 2, 7);
                    r.seq = [0; 2];
                    r.post(0, cmd(TND_OP_CREATE, TND_CLS_VLAN), vlan(1).as_bytes(), now);
                }
                _ => {}
            }
            r.run(now);
            for id in PoolId::ALL {
                let p = pool(&r.fw, id);
                prop_assert_eq!(p.used + p.in_flight + p.committed + p.free, p.size, "{}", id.name());
                prop_assert!(p.high_watermark >= p.used + p.in_flight);
            }
            prop_assert_eq!(r.fw.check_accounting(), Ok(()));
            let e = &r.fw.state.exact;
            prop_assert!(e.stash_used() + e.pool().committed() <= e.geometry().stash);
        }
        r.run(u64::MAX);
        r.run(u64::MAX);
        r.run(u64::MAX);
        prop_assert_eq!(r.p.pending(), 0);
        r.fw.attach(true);
        for id in PoolId::ALL {
            let p = pool(&r.fw, id);
            prop_assert_eq!((p.in_flight, p.committed), (0, 0), "{}", id.name());
        }
    }
}
