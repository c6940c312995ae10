//! Which stations a port learns, lets in and forgets.

use tandem_abi::raw;

use super::l2::vlan_flags;
use crate::entry::Action;
use crate::state::{PortConfig, State};
use crate::testkit::Answer::{Both, Cpu, Tx};
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

/// Where the CPU learns it gets the first frame of a station, the first from another place, and a few in each ageing time.
#[test]
fn the_cpu_learns_in_place_of_the_chip() {
    let learn = Answer::Cpu(raw::TND_TRAP_FDB_INCOMPLETE);
    let mut s = bridge(2);
    vlan_flags(&mut s, raw::TND_VLAN_CPU_LEARN, raw::TND_VLAN_LEARNING);
    let at = |s: &mut State, port, src, now| {
        let (out, answer) = run_with(s, port, &frame(9, src), Offload::NONE, now);
        assert_eq!(out.events, []);
        answer
    };
    for now in [0, S] {
        assert_eq!(at(&mut s, 1, 1, now), learn, "until it has an entry");
    }
    assert_eq!(s.exact.len(), 0);
    fdb(&mut s, 1, mac(1), 1, Action::Forward, 0);
    fdb(&mut s, 1, mac(2), 1, Action::Forward, raw::TND_FDB_NO_AGE);
    let sticky = raw::TND_FDB_STICKY | raw::TND_FDB_NO_AGE;
    fdb(&mut s, 1, mac(3), 1, Action::Forward, sticky);
    fdb(&mut s, 1, mac(4), 0, Action::Trap, raw::TND_FDB_STATIC);
    fdb(&mut s, 1, mac(5), 0, Action::Drop, raw::TND_FDB_STATIC);
    let there = Answer::Tx(vec![2]);
    for (src, elsewhere) in [(1, true), (2, true), (3, false), (4, false), (5, false)] {
        assert_eq!(at(&mut s, 1, src, S), there, "station {src}");
        let moved = at(&mut s, 2, src, S);
        assert_eq!(moved == learn, elsewhere, "station {src}");
    }
    // one that speaks all the time stays young, and is forwarded but for these few
    let mut heard = 0;
    for n in 0..3000 {
        heard += u32::from(at(&mut s, 1, 1, (2 + n) * S) == learn);
        assert_eq!(at(&mut s, 1, 2, (2 + n) * S), there, "which does not age");
    }
    assert!((75..=80).contains(&heard), "{heard}");
    let mut out = Out::default();
    age(&mut s, 3100 * S, 10_000, &mut out);
    assert_eq!(out.events, []);
    // no port that does not learn asks anybody to
    port_flags(&mut s, 1, 0, raw::TND_PORT_LEARNING);
    assert_eq!(at(&mut s, 1, 7, 0), there);
}

/// A station without room moves, and is heard of by a frame that the CPU need not forward.
#[test]
fn the_cpu_hears_whom_it_answers_for() {
    let incomplete = raw::TND_TRAP_FDB_INCOMPLETE;
    let mut s = bridge(2);
    let mut small = state_sized(2, 2);
    std::mem::swap(&mut s.exact, &mut small.exact);
    run(&mut s, 2, &frame(0x7777, 0x299));
    for n in 1..200 {
        run(&mut s, 1, &frame(0x7777, n));
    }
    let known = |s: &State, n: u16| s.exact.get_mac(1, mac(n)).is_some();
    let (there, new): (Vec<u16>, Vec<u16>) = (1..200).partition(|&n| known(&s, n));
    let (to, from) = (there[0], new[0]);
    let arp = ether(mac(to), mac(from), 0x0806, &[0; 46]);
    assert_eq!(run(&mut s, 2, &frame(to, from)), Tx(vec![1]));
    vlan_flags(&mut s, raw::TND_VLAN_UC_TRAP, 0);
    let copied = |reason| Both(vec![1], reason);
    assert_eq!(run(&mut s, 2, &frame(to, from)), copied(incomplete));
    assert_eq!(run(&mut s, 2, &frame(to, new[1])), copied(incomplete));
    assert_eq!(run(&mut s, 2, &frame(to, new[2])), copied(incomplete));
    // once is enough until it moves, or until the CPU may be about to forget it
    assert_eq!(run(&mut s, 2, &frame(to, from)), Tx(vec![1]));
    let moved = frame(0x299, from);
    assert_eq!(run(&mut s, 1, &moved), Both(vec![2], incomplete));
    assert_eq!(run(&mut s, 2, &arp), copied(raw::TND_TRAP_ARP));
    let (later, _) = run_with(&mut s, 2, &arp, Offload::NONE, 40 * S);
    assert_eq!((later.tx.len(), later.cpu.len()), (1, 1));
    // one for the CPU is not told twice, and one that the chip learned is not told
    assert_eq!(run(&mut s, 2, &frame(0x7777, from)), Cpu(incomplete));
    assert_eq!(run(&mut s, 2, &frame(to, there[1])), Tx(vec![1]));
}

/// While a driver says anew what there is, a station may be elsewhere than its entry says, or be known and not named yet: what would be
/// dropped for a port out of service, and what goes to an unknown station, is the CPU's.
#[test]
fn while_all_is_said_anew_the_cpu_answers_for_ports_out_of_service() {
    let mut s = bridge(2);
    fdb(&mut s, 1, mac(2), 2, Action::Forward, raw::TND_FDB_STATIC);
    let c = s.port(2).unwrap().config;
    let stp_state = raw::TND_STP_DISABLED;
    s.set_port(2, PortConfig { stp_state, ..c }).unwrap();
    vlan_flags(&mut s, 0, raw::TND_VLAN_CPU_COPY);
    let broadcast = ether([0xff; 6], mac(1), 0x88b5, &[0; 46]);
    let frames = [frame(2, 1), frame(9, 1), broadcast];
    let answers = |s: &mut State| frames.each_ref().map(|f| run(s, 1, f));
    let known = Answer::Drop(DropReason::StpEgress);
    let unknown = Answer::Drop(DropReason::NoFloodPort);
    let gone = [known, unknown.clone(), unknown];
    assert_eq!(answers(&mut s), gone);
    s.replayed = true;
    let cpu = Answer::Cpu(raw::TND_TRAP_FDB_INCOMPLETE);
    assert_eq!(answers(&mut s), [(); 3].map(|()| cpu.clone()));
    // a port in service is one, whoever says what
    s.set_port(2, c).unwrap();
    let sent = Tx(vec![2]);
    assert_eq!(answers(&mut s), [sent.clone(), cpu, sent]);
    s.replayed = false;
    s.set_port(2, PortConfig { stp_state, ..c }).unwrap();
    assert_eq!(answers(&mut s), gone);
}
