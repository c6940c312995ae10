//! No command holds up packets for long: what is long is done in slices, and a turn ends when it has done its units of work.

use super::*;
use raw::*;
use tandem_pipeline::entry::{Action, FdbValue};
use tandem_tables::exact::Key;

/// What a turn may do beyond its units: one DUMP (positions and records), the command itself, the last entry removed.
const BEYOND: u64 = 2 * turn::DUMP + turn::COMMAND + 2 * turn::REMOVE;

/// Status and result of each command that is done.
#[derive(Default)]
struct Done(Vec<(u16, u64)>);

impl CplSink for Done {
    fn room(&mut self, _: usize, _: u32) -> bool {
        true
    }
    fn complete(&mut self, _: usize, _: &tnd_cmd, cpl: &tnd_cpl, _: &[u8]) {
        self.0.push((cpl.status, cpl.result));
    }
}

struct Rig {
    f: Firmware,
    p: Processor,
    seq: u32,
    done: Done,
}

impl Rig {
    fn new(profile: &str) -> Self {
        let mut f = chip(profile);
        let mut p = Processor::new(false);
        p.reset(&mut f, 1, 7);
        let done = Done::default();
        Rig { f, p, seq: 0, done }
    }

    fn post(&mut self, c: tnd_cmd, body: &[u8]) {
        let seq = self.seq;
        self.seq += 1;
        let c = tnd_cmd { seq, epoch: 7, ..c };
        self.p.submit(&mut self.f, 0, &c, body, 0).unwrap();
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

    fn learned(&mut self, fid: u16, port: u16, n: u32) {
        let value = FdbValue {
            port,
            flags: TND_FDB_LEARNED,
            action: Action::Forward,
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
    assert_eq!(pool(&r.f, PoolId::ExactMatch).used, 20_000);

    // one of the driver's keeps the domain, and what was learned stays
    assert_eq!(create(&mut r.f, TND_CLS_FDB, &fdb(2, 7, 1)), TND_ST_OK);
    r.post(delete, vlan(2).as_bytes());
    r.turns(turn::TURN);
    assert_eq!(r.done.0[1], (TND_ST_IN_USE, 0));
    assert_eq!(pool(&r.f, PoolId::ExactMatch).used, 20_001);
    // it is gone when its turn comes
    r.post(cmd(TND_OP_DELETE, TND_CLS_FDB), fdb(2, 7, 1).as_bytes());
    r.post(delete, vlan(2).as_bytes());
    r.turns(turn::TURN);
    assert_eq!(r.done.0[2..], [(TND_ST_OK, 0), (TND_ST_OK, 0)]);
    assert_eq!(pool(&r.f, PoolId::ExactMatch).used, 0);
    r.f.check_accounting().unwrap();
}

#[test]
fn a_group_with_many_addresses_goes_in_slices() {
    let mut r = Rig::new("spectrum-sn2700");
    let group = tnd_lag {
        struct_size: size::<tnd_lag>(),
        lag: 1,
        ..Default::default()
    };
    assert_eq!(create(&mut r.f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    assert_eq!(create(&mut r.f, TND_CLS_LAG, &group), TND_ST_OK);
    let port = r.f.state.lag_port(1);
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
