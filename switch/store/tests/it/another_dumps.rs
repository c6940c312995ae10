// SPDX-License-Identifier: Apache-2.0
//! While one source tells all that it has, what another one says is written at once.

use crate::common::bridged::*;
use crate::common::*;
use tandem_store::model::*;

const BLOCKING: u8 = 4;

fn station(n: u16, port: u32) -> Object {
    Object::Fdb(fdb(n, 10 + port, FdbKind::Static))
}

/// Ports 1 to 3 in the bridge, the third one in this state, and a station behind the first.
fn three(state: u8) -> Rig {
    let mut r = bridged("spectrum-sn2700");
    r.up(in_state(3, state));
    r.up(station(1, 1));
    r.settle();
    r
}

/// Command by command until nothing more is to do, while a dump runs.
fn within_a_dump(r: &mut Rig, mut each: impl FnMut(&Rig)) {
    while r.plan() > 0 || r.run(0) || r.run(1) {
        each(r);
    }
}

/// The source that tells of these ports is in no dump: what it says is in order, whoever else tells all that it has.
#[test]
fn a_port_shuts_while_another_source_dumps() {
    let mut r = three(BR_STATE_FORWARDING);
    let other = Event::BeginSync(SourceId(9), KindSet::ALL);
    r.store.apply(other, r.now);
    r.up(in_state(3, BLOCKING));
    within_a_dump(&mut r, |_| {});
    assert_eq!(r.chip.ports[&3].stp_state, BLOCKING);
}

/// The same of a station that was told before.
#[test]
fn a_port_shuts_behind_its_station_while_another_source_dumps() {
    let mut r = three(BR_STATE_FORWARDING);
    let other = Event::BeginSync(SourceId(9), KindSet::ALL);
    r.store.apply(other, r.now);
    r.up(station(2, 3));
    r.up(in_state(3, BLOCKING));
    within_a_dump(&mut r, |_| {});
    assert_eq!(r.chip.ports[&3].stp_state, BLOCKING);
}
