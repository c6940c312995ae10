//! Storm control: each kind has its own limit, in packets and in bytes; what is known or routed has none.

use tandem_abi::raw;

use crate::entry::Action;
use crate::state::StormConfig;
use crate::testkit::*;
use crate::{DropReason, Offload, State};

const BC: [u8; 6] = [0xff; 6];
const MC: [u8; 6] = [1, 0, 0x5e, 1, 1, 1];
const MS: u64 = 1_000_000;

fn frame(dst: [u8; 6]) -> Vec<u8> {
    ether(dst, mac(1), 0x88b5, &[0; 46])
}

/// Frames of `n` that are not dropped by storm control.
fn passed(s: &mut State, port: u16, dst: [u8; 6], n: usize, now: u64) -> usize {
    let f = frame(dst);
    (0..n)
        .filter(|_| {
            run_with(s, port, &f, Offload::NONE, now).1 != Answer::Drop(DropReason::StormControl)
        })
        .count()
}

#[test]
fn each_kind_has_its_own_limit() {
    let mut s = bridge(4);
    fdb(&mut s, 1, mac(2), 2, Action::Forward, 0);
    let limit = |rate, burst| StormConfig {
        rate_packets: rate,
        burst_packets: burst,
        ..StormConfig::default()
    };
    s.set_storm(1, raw::TND_STORM_BROADCAST, limit(1000, 5))
        .unwrap();
    s.set_storm(1, raw::TND_STORM_UNKNOWN_UC, limit(1000, 2))
        .unwrap();
    assert_eq!(passed(&mut s, 1, BC, 20, 0), 5);
    assert_eq!(passed(&mut s, 1, mac(9), 20, 0), 2);
    assert_eq!(passed(&mut s, 1, MC, 20, 0), 20, "multicast has no limit");
    assert_eq!(
        passed(&mut s, 1, mac(2), 20, 0),
        20,
        "a known station is no storm"
    );
    assert_eq!(passed(&mut s, 3, BC, 20, 0), 20, "another port");
    // a packet per millisecond comes back
    assert_eq!(passed(&mut s, 1, BC, 20, 3 * MS), 3);
    let of = |s: &State, kind| s.port(1).unwrap().storm(kind).unwrap().dropped;
    assert_eq!(of(&s, raw::TND_STORM_BROADCAST), 15 + 17);
    assert_eq!(of(&s, raw::TND_STORM_UNKNOWN_UC), 18);
    // bytes: 60 each
    let bytes = StormConfig {
        rate_bytes: 60_000,
        burst_bytes: 180,
        ..limit(1_000_000, 100)
    };
    s.set_storm(1, raw::TND_STORM_MULTICAST, bytes).unwrap();
    assert_eq!(passed(&mut s, 1, MC, 20, 10 * MS), 3);
    assert_eq!(passed(&mut s, 1, MC, 20, 12 * MS), 2);
    // and off again
    for kind in 1..=3 {
        s.set_storm(1, kind, StormConfig::default()).unwrap();
    }
    for dst in [BC, MC, mac(9)] {
        assert_eq!(passed(&mut s, 1, dst, 50, 12 * MS), 50);
    }
    assert!(s.set_storm(1, 4, limit(1, 1)).is_err() && s.set_storm(9, 1, limit(1, 1)).is_err());
}
