//! Which stations a port learns, lets in and forgets.

use tandem_abi::raw;

use crate::entry::Action;
use crate::state::PortConfig;
use crate::testkit::*;
use crate::{DropReason, Offload, age};

const S: u64 = 1_000_000_000;

fn frame(dst: u16, src: u16) -> Vec<u8> {
    ether(mac(dst), mac(src), 0x88b5, &[0; 46])
}

#[test]
fn a_port_that_listens_learns_nobody() {
    for (stp_state, many) in [
        (raw::TND_STP_BLOCKING, 0),
        (raw::TND_STP_LISTENING, 0),
        (raw::TND_STP_LEARNING, 1),
    ] {
        let mut s = bridge(2);
        let c = s.port(1).unwrap().config;
        s.set_port(1, PortConfig { stp_state, ..c }).unwrap();
        run(&mut s, 1, &frame(9, 1));
        assert_eq!(s.exact.len(), many, "state {stp_state}");
    }
}

#[test]
fn a_locked_port_knows_only_its_own_stations() {
    let mut s = bridge(3);
    port_flags(&mut s, 1, raw::TND_PORT_LOCKED, 0);
    fdb(&mut s, 1, mac(1), 2, Action::Forward, raw::TND_FDB_STATIC);
    let answer = run(&mut s, 1, &frame(9, 1));
    assert_eq!(answer, Answer::Drop(DropReason::Locked));
}

#[test]
fn a_station_that_moved_is_young_and_one_without_age_stays() {
    let mut s = bridge(2);
    fdb(&mut s, 1, mac(5), 1, Action::Forward, raw::TND_FDB_NO_AGE);
    run_with(&mut s, 1, &frame(9, 1), Offload::NONE, 0);
    run_with(&mut s, 2, &frame(9, 1), Offload::NONE, 200 * S);
    let mut out = Out::default();
    age(&mut s, 400 * S, 10_000, &mut out);
    assert_eq!(s.exact.len(), 2);
    age(&mut s, 501 * S, 10_000, &mut out);
    assert_eq!(s.exact.len(), 1);
    assert!(s.exact.get_mac(1, mac(5)).is_some());
}
