//! A driver that attaches warm: what the chip learned meanwhile is newer than what the driver remembers.

use super::*;
use tandem_abi::raw::*;

#[test]
fn a_resync_does_not_move_a_station_back() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    assert_eq!(create(f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    let learned = |n, port| tnd_fdb {
        flags: TND_FDB_LEARNED,
        ..fdb(1, n, port)
    };
    for n in 1..=3 {
        assert_eq!(create(f, TND_CLS_FDB, &learned(n, 2)), TND_ST_OK);
    }
    f.attach(true);
    assert_eq!(
        run(f, &cmd(TND_OP_BEGIN_RESYNC, 0), &[]).0.status,
        TND_ST_OK
    );
    assert_eq!(create(f, TND_CLS_VLAN, &vlan(1)), TND_ST_OK);
    // where the driver last saw them: the first elsewhere, the second there
    assert_eq!(create(f, TND_CLS_FDB, &fdb(1, 1, 1)), TND_ST_OK);
    assert_eq!(create(f, TND_CLS_FDB, &fdb(1, 2, 2)), TND_ST_OK);
    // a person's word counts whatever was learned
    let fixed = tnd_fdb {
        flags: TND_FDB_STATIC,
        ..fdb(1, 3, 1)
    };
    assert_eq!(create(f, TND_CLS_FDB, &fixed), TND_ST_OK);
    assert_eq!(run(f, &cmd(TND_OP_END_RESYNC, 0), &[]).0.status, TND_ST_OK);
    let mut all: Vec<tnd_fdb> = dump(f, TND_OP_DUMP, TND_CLS_FDB, 4096);
    all.sort_by_key(|e| e.mac);
    assert_eq!(all, [learned(1, 2), learned(2, 2), fixed]);
    // afterwards the driver's word counts
    assert_eq!(create(f, TND_CLS_FDB, &fdb(1, 1, 1)), TND_ST_OK);
    let port = dump::<tnd_fdb>(f, TND_OP_DUMP, TND_CLS_FDB, 4096)
        .iter()
        .find(|e| e.mac == fdb(1, 1, 1).mac)
        .map(|e| e.port);
    assert_eq!(port, Some(1));
    assert_eq!(f.check_accounting(), Ok(()));
}

/// The pipeline knows how long a driver says all anew: from BEGIN_RESYNC to the end of the sweep, or to the next driver.
#[test]
fn the_pipeline_knows_of_a_resync() {
    let mut fw = chip("tiny");
    let f = &mut fw;
    let does = |f: &mut Firmware, op| assert_eq!(run(f, &cmd(op, 0), &[]).0.status, TND_ST_OK);
    f.attach(true);
    assert!(!f.state.replayed);
    does(f, TND_OP_BEGIN_RESYNC);
    assert!(f.state.replayed);
    does(f, TND_OP_END_RESYNC);
    assert!(!f.state.replayed);
    for warm in [true, false] {
        does(f, TND_OP_BEGIN_RESYNC);
        assert!(f.state.replayed);
        f.attach(warm);
        assert!(!f.state.replayed, "{warm}");
    }
}
