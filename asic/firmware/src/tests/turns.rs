//! No command holds up packets for long: what is long is done in slices, and a turn ends when it has done its units of work.

use super::*;
use raw::*;
use tandem_pipeline::entry::{Action, FdbValue};
use tandem_tables::exact::Key;

/// What a turn may do beyond its units: one DUMP (positions and records), the command itself, the last entry removed.
const BEYOND: u64 = 2 * turn::DUMP + turn::COMMAND + 2 * turn::REMOVE;

const EXACT: u16 = PoolId::ExactMatch as u16;

/// Status and result of each command that is done, and what it gave back or took.
#[derive(Default)]
struct Done(Vec<(u16, u64)>, Vec<Vec<(u16, i32)>>);

impl CplSink for Done {
    fn room(&mut self, _: usize, _: u32) -> bool {
        true
    }
    fn complete(&mut self, _: usize, _: &tnd_cmd, cpl: &tnd_cpl, _: &[u8]) {
        self.0.push((cpl.status, cpl.result));
        self.1.push(deltas(cpl));
    }
}

/// A group without members.
fn lag_of(lag: u16) -> tnd_lag {
    tnd_lag {
        struct_size: size::<tnd_lag>(),
        lag,
        ..Default::default()
    }
}

struct Rig {
    f: Firmware,
    p: Processor,
    seq: [u32; 2],
    done: Done,
}

impl Rig {
    fn new(profile: &str) -> Self {
        let mut f = chip(profile);
        let mut p = Processor::new(false);
        p.reset(&mut f, 2, 7);
        let (seq, done) = ([0; 2], Done::default());
        Rig { f, p, seq, done }
    }

    fn post(&mut self, c: tnd_cmd, body: &[u8]) {
        self.post_to(0, c, body);
    }

    fn post_to(&mut self, pair: usize, c: tnd_cmd, body: &[u8]) {
        let seq = self.seq[pair];
        self.seq[pair] += 1;
        let c = tnd_cmd { seq, epoch: 7, ..c };
        self.p.submit(&mut self.f, pair, &c, body, 0).unwrap();
    }

    /// Turns until nothing waits; gives their number. Each is as short as it must be, and says truly how long it was.
    fn turns(&mut self, units: u64) -> u32 {
        for turns in 1.. {
            let before = self.f.state.work.done();
            let ran = self.p.run(&mut self.f, 0, units, &mut self.done);
            let worked = self.f.state.work.done() - before;
            assert_eq!(ran.units, worked + ran.executed as u64 * turn::COMMAND);
            assert!(ran.units <= units + BEYOND, "{} units", ran.units);
            if self.p.pending() == 0 {
                return turns;
            }
            assert!(ran.units >= units.min(turn::COMMAND), "nothing was done");
        }
        0
    }

    /// Domain 1 and group 1 without members, and the group's port.
    fn group(&mut self) -> (tnd_lag, u16) {
        let group = lag_of(1);
        assert_eq!(create(&mut self.f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
        assert_eq!(create(&mut self.f, TND_CLS_LAG, &group), TND_ST_OK);
        (group, self.f.state.lag_port(1))
    }

    fn learned(&mut self, fid: u16, port: u16, n: u32) {
        let value = FdbValue {
            port,
            flags: TND_FDB_LEARNED,
            action: Action::Forward,
            set: None,
        };
        for i in 0..n {
            let [a, b, c, d] = i.to_be_bytes();
            let mac = [2, fid as u8, a, b, c, d];
            let key = Key::Mac { fid, mac };
            assert!(self.f.state.exact.insert(key, value.pack(), 0).is_ok());
        }
    }
}

#[test]
fn a_domain_with_many_addresses_goes_in_slices() {
    let mut r = Rig::new("spectrum-sn2700");
    for fid in [1, 2] {
        assert_eq!(create(&mut r.f, TND_CLS_VLAN, &vlan(fid)), TND_ST_OK);
        r.learned(fid, 1, 20_000);
    }
    let delete = cmd(TND_OP_DELETE, TND_CLS_VLAN);
    r.post(delete, vlan(1).as_bytes());
    // 40,000 looked at twice, 20,000 removed
    let turns = r.turns(turn::TURN);
    assert!((20..=70).contains(&turns), "{turns} turns");
    assert_eq!(r.done.0, [(TND_ST_OK, 0)]);
    let given = [(EXACT, -20_000), (PoolId::Vlan as u16, -1)];
    assert_eq!(r.done.1[0], given);
    assert_eq!(pool(&r.f, PoolId::ExactMatch).used, 20_000);

    // one of the driver's keeps the domain, and what was learned stays
    assert_eq!(create(&mut r.f, TND_CLS_FDB, &fdb(2, 7, 1)), TND_ST_OK);
    r.post(delete, vlan(2).as_bytes());
    r.turns(turn::TURN);
    assert_eq!(r.done.0[1], (TND_ST_IN_USE, 0));
    assert_eq!(r.done.1[1], []);
    assert_eq!(pool(&r.f, PoolId::ExactMatch).used, 20_001);
    // it is gone when its turn comes
    r.post(cmd(TND_OP_DELETE, TND_CLS_FDB), fdb(2, 7, 1).as_bytes());
    r.post(delete, vlan(2).as_bytes());
    r.turns(turn::TURN);
    assert_eq!(r.done.0[2..], [(TND_ST_OK, 0), (TND_ST_OK, 0)]);
    assert_eq!(r.done.1[2], [(EXACT, -1)]);
    assert_eq!(r.done.1[3], given);
    assert_eq!(pool(&r.f, PoolId::ExactMatch).used, 0);
    r.f.check_accounting().unwrap();
}

#[test]
fn a_group_with_many_addresses_goes_in_slices() {
    let mut r = Rig::new("spectrum-sn2700");
    let (group, port) = r.group();
    r.learned(1, 3, 10_000);
    r.learned(2, port, 10_000);
    let delete = cmd(TND_OP_DELETE, TND_CLS_LAG);
    assert_eq!(
        create(&mut r.f, TND_CLS_FDB, &fdb(1, 1 << 20, port)),
        TND_ST_OK
    );
    r.post(delete, group.as_bytes());
    r.turns(turn::TURN);
    assert_eq!(r.done.0, [(TND_ST_IN_USE, 0)]);
    assert_eq!(pool(&r.f, PoolId::ExactMatch).used, 20_001);
    let gone = op(&mut r.f, TND_OP_DELETE, TND_CLS_FDB, &fdb(1, 1 << 20, port));
    assert_eq!(gone.status, TND_ST_OK);
    r.post(delete, group.as_bytes());
    assert!(r.turns(turn::TURN) > 10);
    assert_eq!(r.done.0[1], (TND_ST_OK, 0));
    assert_eq!(r.done.1[0], []);
    let given = [(EXACT, -10_000), (PoolId::Lag as u16, -1)];
    assert_eq!(r.done.1[1], given);
    assert_eq!(pool(&r.f, PoolId::ExactMatch).used, 10_000);
    r.f.check_accounting().unwrap();
}

/// The driver names an address behind the walk: it is found.
#[test]
fn what_is_named_during_the_walk_counts() {
    let mut r = Rig::new("spectrum-sn2700");
    assert_eq!(create(&mut r.f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    r.learned(1, 1, 20_000);
    r.post(cmd(TND_OP_DELETE, TND_CLS_VLAN), vlan(1).as_bytes());
    let mut done = Done::default();
    assert!(r.p.run(&mut r.f, 0, 4096, &mut done).sliced);
    let first = Key::Mac {
        fid: 1,
        mac: [2, 1, 0, 0, 0, 0],
    };
    assert!(r.f.state.exact.get(&first).is_some());
    let mine = tnd_fdb {
        mac: [2, 1, 0, 0, 0, 0],
        ..fdb(1, 0, 1)
    };
    assert_eq!(create(&mut r.f, TND_CLS_FDB, &mine), TND_ST_OK);
    r.turns(4096);
    assert_eq!(r.done.0, [(TND_ST_IN_USE, 0)]);
    assert_eq!(pool(&r.f, PoolId::ExactMatch).used, 20_000);
}

/// The same behind a group's port.
#[test]
fn what_is_named_behind_a_group_counts() {
    let mut r = Rig::new("spectrum-sn2700");
    let (group, port) = r.group();
    r.learned(1, port, 20_000);
    r.post(cmd(TND_OP_DELETE, TND_CLS_LAG), group.as_bytes());
    let mut done = Done::default();
    assert!(r.p.run(&mut r.f, 0, 4096, &mut done).sliced);
    let mine = tnd_fdb {
        mac: [2, 1, 0, 0, 0, 0],
        ..fdb(1, 0, port)
    };
    assert_eq!(create(&mut r.f, TND_CLS_FDB, &mine), TND_ST_OK);
    r.turns(4096);
    assert_eq!(r.done.0, [(TND_ST_IN_USE, 0)]);
    assert_eq!(pool(&r.f, PoolId::ExactMatch).used, 20_000);
}

/// What slices have removed is told even if the rest is refused.
#[test]
fn a_delete_refused_half_way_tells_what_is_gone() {
    let mut r = Rig::new("spectrum-sn2700");
    assert_eq!(create(&mut r.f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    r.learned(1, 1, 20_000);
    r.post(cmd(TND_OP_DELETE, TND_CLS_VLAN), vlan(1).as_bytes());
    while pool(&r.f, PoolId::ExactMatch).used == 20_000 {
        let mut done = Done::default();
        assert!(r.p.run(&mut r.f, 0, 4096, &mut done).sliced);
    }
    let gone = 20_000 - pool(&r.f, PoolId::ExactMatch).used as i32;
    assert!(gone < 20_000);
    let held = create(&mut r.f, TND_CLS_VLAN_MEMBER, &member(1, 1, 1));
    assert_eq!(held, TND_ST_OK);
    r.turns(4096);
    assert_eq!(r.done.0, [(TND_ST_IN_USE, 0)]);
    assert_eq!(r.done.1[0], [(EXACT, -gone)]);
}

/// A table that was full and is nearly empty: a DUMP looks at a part of it.
#[test]
fn many_dumps_take_many_turns() {
    let mut r = Rig::new("spectrum-sn2700");
    assert_eq!(create(&mut r.f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    r.learned(1, 1, 40_000);
    for i in 0..39_999u32 {
        let [a, b, c, d] = i.to_be_bytes();
        let mac = [2, 1, a, b, c, d];
        assert!(r.f.state.exact.remove(&Key::Mac { fid: 1, mac }).is_some());
    }
    for _ in 0..100 {
        r.post(cmd(TND_OP_DUMP, TND_CLS_FDB), &[]);
    }
    assert!(r.turns(turn::TURN) >= 40);
    assert!(r.done.0.iter().all(|d| *d == (TND_ST_OK, turn::DUMP)));
    // going on from there finds the one that is left
    let all: Vec<tnd_fdb> = dump(&mut r.f, TND_OP_DUMP, TND_CLS_FDB, 1 << 16);
    assert_eq!(all.len(), 1);
}

/// What its descriptor refuses has done nothing, however long it would have taken.
#[test]
fn a_refused_command_leaves_everything() {
    let mut r = Rig::new("spectrum-sn2700");
    let (group, port) = r.group();
    r.learned(1, port, 100);
    let refused = |op, cls| tnd_cmd {
        flags: TND_CMD_LEASE,
        lease: 99,
        ..cmd(op, cls)
    };
    r.post(cmd(TND_OP_BEGIN_RESYNC, 0), &[]);
    r.post(refused(TND_OP_DELETE, TND_CLS_VLAN), vlan(1).as_bytes());
    r.post(refused(TND_OP_DELETE, TND_CLS_LAG), group.as_bytes());
    r.post(refused(TND_OP_END_RESYNC, 0), &[]);
    // the resync goes on as if nobody had asked to end it
    r.post(cmd(TND_OP_BEGIN_RESYNC, 0), &[]);
    r.turns(turn::TURN);
    assert_eq!(r.done.0[1..4], [(TND_ST_LEASE, 0); 3]);
    assert_eq!(r.done.0[4], (TND_ST_OK, 0));
    assert_eq!(pool(&r.f, PoolId::ExactMatch).used, 100);
    assert_eq!(pool(&r.f, PoolId::Vlan).used, 1);
}

/// What the other pair writes beside a walk neither throws it back nor waits for it.
#[test]
fn a_walk_and_another_pair_share_the_turns() {
    for cls in [TND_CLS_NEIGH, TND_CLS_FDB] {
        let mut r = Rig::new("spectrum-sn2700");
        for fid in [1, 2] {
            assert_eq!(create(&mut r.f, TND_CLS_VLAN, &vlan(fid)), TND_ST_OK);
        }
        assert_eq!(create(&mut r.f, TND_CLS_RIF, &rif(1, 0, 3)), TND_ST_OK);
        r.learned(2, 1, 40_000);
        r.learned(1, 1, 1);
        r.post(cmd(TND_OP_DELETE, TND_CLS_VLAN), vlan(1).as_bytes());
        let (mut turns, mut n) = (0, 0);
        while r.f.state.vlan(1).is_some() {
            while r.p.room(1) > 0 {
                n += 1;
                let c = cmd(TND_OP_CREATE, cls);
                match cls {
                    TND_CLS_FDB => r.post_to(1, c, fdb(2, n, 1).as_bytes()),
                    _ => r.post_to(1, c, neigh4(1, n).as_bytes()),
                }
            }
            let mut done = Done::default();
            let ran = r.p.run(&mut r.f, 0, turn::TURN, &mut done);
            assert!(ran.units <= turn::TURN + BEYOND, "{} units", ran.units);
            assert!(done.0.iter().all(|d| d.0 == TND_ST_OK));
            let least = turn::TURN / turn::COMMAND / 2;
            assert!(done.0.len() as u64 >= least, "{} of {cls}", done.0.len());
            turns += 1;
            // 40,001 looked at twice, half a turn each time
            assert!(turns <= 10, "no end after {turns} turns beside class {cls}");
        }
        r.f.check_accounting().unwrap();
    }
}

/// What there is of a class is far apart: the way between is gone once.
#[test]
fn a_sweep_goes_through_a_table_once_for_each_class() {
    let mut r = Rig::new("spectrum-sn2700");
    let f = &mut r.f;
    assert_eq!(create(f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_RIF, &rif(1, 0, 3)), TND_ST_OK);
    for n in 1..=100 {
        assert_eq!(create(f, TND_CLS_NEIGH, &neigh4(1, n)), TND_ST_OK);
    }
    r.learned(1, 1, 40_000);
    r.post(cmd(TND_OP_BEGIN_RESYNC, 0), &[]);
    r.post(cmd(TND_OP_CREATE, TND_CLS_VLAN), vlan(1).as_bytes());
    r.post(cmd(TND_OP_END_RESYNC, 0), &[]);
    let before = r.f.state.work.done();
    r.turns(turn::TURN);
    let worked = r.f.state.work.done() - before;
    // the hosts and the RIF; what a domain that stays has learned stays
    assert_eq!(r.done.0[2], (TND_ST_OK, 101));
    assert_eq!(pool(&r.f, PoolId::ExactMatch).used, 40_000);
    // neighbours once, addresses once with a unit for each
    let most = 3 * 40_100 + 101 * turn::REMOVE + 1000;
    assert!(worked <= most, "{worked} units");
}

/// Learned addresses go with a domain that nobody has named, and count.
#[test]
fn a_sweep_takes_learned_addresses_with_their_domain() {
    let mut r = Rig::new("tiny");
    for fid in [1, 2] {
        assert_eq!(create(&mut r.f, TND_CLS_VLAN, &vlan(fid)), TND_ST_OK);
        r.learned(fid, 1, 3);
    }
    r.post(cmd(TND_OP_BEGIN_RESYNC, 0), &[]);
    r.post(cmd(TND_OP_CREATE, TND_CLS_VLAN), vlan(1).as_bytes());
    r.post(cmd(TND_OP_END_RESYNC, 0), &[]);
    r.turns(turn::TURN);
    assert_eq!(r.done.0[2], (TND_ST_OK, 4));
    let given = [(EXACT, -3), (PoolId::Vlan as u16, -1)];
    assert_eq!(r.done.1[2], given);
    assert_eq!(pool(&r.f, PoolId::ExactMatch).used, 3);
}

/// Each group goes through the table of addresses, in slices as everything else.
#[test]
fn a_sweep_of_groups_is_charged_with_their_walks() {
    let mut r = Rig::new("spectrum-sn2700");
    for lag in 1..=20 {
        assert_eq!(create(&mut r.f, TND_CLS_LAG, &lag_of(lag)), TND_ST_OK);
    }
    assert_eq!(create(&mut r.f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    r.learned(1, 1, 40_000);
    let f = &mut r.f;
    let begun = run(f, &cmd(TND_OP_BEGIN_RESYNC, 0), &[]).0.status;
    assert_eq!(begun, TND_ST_OK);
    assert_eq!(create(f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    sweep(f, turn::TURN);
    assert_eq!(f.state.lags().count(), 0);
}

/// Sweeps to the end; no slice is longer than it may be but for what it removes at last, and one step of a walk.
fn sweep(f: &mut Firmware, units: u64) -> u32 {
    for slices in 1.. {
        let before = f.state.work.done();
        let all = f.sweep_slice(units);
        let worked = f.state.work.done() - before;
        assert!(
            worked <= units + 3 * turn::REMOVE,
            "{worked} units in a slice"
        );
        if all {
            return slices;
        }
    }
    0
}

/// A table that was full and is empty: what is left of it is no shorter to look at.
#[test]
fn a_sweep_of_an_empty_stretch_goes_in_slices() {
    let mut r = Rig::new("spectrum-sn2700");
    let f = &mut r.f;
    assert_eq!(create(f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    let routes = 20_000;
    for n in 0..routes {
        assert_eq!(
            create(f, TND_CLS_ROUTE, &route4(0, n << 8, 24, None)),
            TND_ST_OK
        );
    }
    for n in 0..routes - 1 {
        let gone = op(
            f,
            TND_OP_DELETE,
            TND_CLS_ROUTE,
            &route4(0, n << 8, 24, None),
        );
        assert_eq!(gone.status, TND_ST_OK);
    }
    let begun = run(f, &cmd(TND_OP_BEGIN_RESYNC, 0), &[]).0.status;
    assert_eq!(begun, TND_ST_OK);
    assert!(sweep(f, 2048) > 9);
    assert_eq!(f.state.lpm4.len(), 0);
    let (cpl, _) = run(f, &cmd(TND_OP_END_RESYNC, 0), &[]);
    assert_eq!((cpl.status, cpl.result), (TND_ST_OK, 2));
    f.check_accounting().unwrap();
}

/// A domain that the sweep of addresses has passed, and that has learned since.
#[test]
fn a_sweep_of_a_domain_that_has_learned_since_goes_in_slices() {
    let mut r = Rig::new("spectrum-sn2700");
    assert_eq!(create(&mut r.f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    for n in 1..=20 {
        assert_eq!(create(&mut r.f, TND_CLS_RIF, &rif(n, 0, n)), TND_ST_OK);
    }
    let begun = run(&mut r.f, &cmd(TND_OP_BEGIN_RESYNC, 0), &[]).0.status;
    assert_eq!(begun, TND_ST_OK);
    // the addresses are through, the domains are not
    while r.f.state.rifs().count() == 20 {
        assert!(!r.f.sweep_slice(64));
    }
    r.learned(1, 1, 20_000);
    assert_eq!(r.f.state.vlans().count(), 1);
    assert!(sweep(&mut r.f, 2048) > 9);
    assert_eq!(r.f.state.vlans().count(), 0);
    let (cpl, _) = run(&mut r.f, &cmd(TND_OP_END_RESYNC, 0), &[]);
    assert_eq!((cpl.status, cpl.result), (TND_ST_OK, 21));
    let mut told = deltas(&cpl);
    told.sort_unstable();
    let (rif, vlan) = (PoolId::Rif as u16, PoolId::Vlan as u16);
    assert_eq!(told, [(EXACT, -20_000), (rif, -20), (vlan, -1)]);
    r.f.check_accounting().unwrap();
}

/// Who names an address of a domain on one pair whenever the other one looks does not keep its DELETE for ever.
#[test]
fn a_delete_that_is_thrown_back_again_and_again_is_refused() {
    let mut r = Rig::new("spectrum-sn2700");
    assert_eq!(create(&mut r.f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    r.learned(1, 1, 20_000);
    r.post(cmd(TND_OP_DELETE, TND_CLS_VLAN), vlan(1).as_bytes());
    let mut turns = 0;
    while r.done.0.is_empty() {
        let _ = r.p.run(&mut r.f, 0, 4096, &mut r.done);
        for o in [TND_OP_CREATE, TND_OP_DELETE] {
            let named = op(&mut r.f, o, TND_CLS_FDB, &fdb(1, 7, 1));
            assert_eq!(named.status, TND_ST_OK);
        }
        turns += 1;
        assert!(turns < 100, "no end");
    }
    assert_eq!(r.done.0, [(TND_ST_IN_USE, 0)]);
    // with nobody beside it, it goes
    r.post(cmd(TND_OP_DELETE, TND_CLS_VLAN), vlan(1).as_bytes());
    r.turns(4096);
    assert_eq!(r.done.0[1], (TND_ST_OK, 0));
    r.f.check_accounting().unwrap();
}

/// What a call looks at is counted in every class, and it goes on from its cursor.
#[test]
fn a_dump_of_any_class_is_counted() {
    let f = &mut chip("scale");
    for n in 1..=1000u16 {
        assert_eq!(create(f, TND_CLS_VLAN, &vlan(n)), TND_ST_OK);
        assert_eq!(create(f, TND_CLS_RIF, &rif_fid(n, n)), TND_ST_OK);
        let counter = tnd_acl_counter {
            struct_size: size::<tnd_acl_counter>(),
            counter: n.into(),
            ..Default::default()
        };
        assert_eq!(create(f, TND_CLS_ACL_COUNTER, &counter), TND_ST_OK);
    }
    for (cls, all) in [
        (TND_CLS_VLAN, 4096),
        (TND_CLS_RIF, 1001),
        (TND_CLS_ACL_COUNTER, 1000),
    ] {
        let (work, cpl) = call(f, TND_OP_DUMP, cls);
        let records = u64::from(cpl.out_count) * turn::RECORD;
        assert_eq!((cpl.out_count, work - records), (1000, all), "class {cls}");
        let last = tnd_cmd {
            arg: 990,
            ..cmd(TND_OP_DUMP, cls)
        };
        let before = f.state.work.done();
        let (cpl, _) = run(f, &last, &[]);
        let work = f.state.work.done() - before - u64::from(cpl.out_count) * turn::RECORD;
        assert!(matches!(cpl.out_count, 10 | 11), "class {cls}");
        assert_eq!(work, all - 990, "class {cls}");
    }
}

/// Work of one call, and its cursor.
fn call(f: &mut Firmware, op: u16, cls: u16) -> (u64, tnd_cpl) {
    let before = f.state.work.done();
    let (cpl, _) = run(f, &cmd(op, cls), &[]);
    assert_eq!(cpl.status, TND_ST_OK);
    (f.state.work.done() - before, cpl)
}

#[test]
fn activity_is_counted_like_a_dump() {
    let f = &mut chip("scale");
    assert_eq!(create(f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_RIF, &rif(1, 0, 3)), TND_ST_OK);
    for n in 1..=2000 {
        assert_eq!(create(f, TND_CLS_FDB, &fdb(1, n, 1)), TND_ST_OK);
        let key = Key::Mac {
            fid: 1,
            mac: fdb(1, n, 1).mac,
        };
        let id = f.state.exact.get(&key).unwrap().id;
        f.state.exact.touch(id, 1);
    }
    let (work, cpl) = call(f, TND_OP_ACTIVITY, TND_CLS_FDB);
    let records = u64::from(cpl.out_count);
    assert_eq!(records, turn::DUMP / turn::RECORD);
    assert!(work >= records * turn::RECORD, "{work} units");

    for n in 1..=20_000 {
        assert_eq!(create(f, TND_CLS_NEXTHOP, &nexthop(n, 1)), TND_ST_OK);
    }
    let (work, cpl) = call(f, TND_OP_ACTIVITY, TND_CLS_NEXTHOP);
    assert_eq!((cpl.out_count, cpl.result), (0, turn::DUMP));
    assert_eq!(work, turn::DUMP);
    let all: Vec<tnd_nexthop> = dump(f, TND_OP_ACTIVITY, TND_CLS_NEXTHOP, 1 << 16);
    assert_eq!(all.len(), 0);
}

/// A few records that are far apart: a DUMP ends by what it has looked at.
#[test]
fn a_dump_of_memberships_ends_by_its_work() {
    let f = &mut chip("scale");
    for port in 1..=48 {
        let fid = port;
        assert_eq!(create(f, TND_CLS_VLAN, &vlan(fid)), TND_ST_OK);
        let far = member(fid, port, 4094);
        assert_eq!(create(f, TND_CLS_VLAN_MEMBER, &far), TND_ST_OK);
    }
    let (work, cpl) = call(f, TND_OP_DUMP, TND_CLS_VLAN_MEMBER);
    assert!(cpl.result != 0 && work <= turn::DUMP + 2 * 4096, "{work}");
    let all: Vec<tnd_vlan_member> = dump(f, TND_OP_DUMP, TND_CLS_VLAN_MEMBER, 1 << 16);
    let ports: Vec<u16> = all.iter().map(|m| m.port).collect();
    assert_eq!(ports, (1..=48).collect::<Vec<u16>>());
}
