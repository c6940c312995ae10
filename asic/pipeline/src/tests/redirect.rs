//! Packets that leave by the interface that they came in on.

use tandem_abi::raw;

use super::l3::to;
use crate::entry::RouteTarget;
use crate::state::{GroupConfig, HashPolicy};
use crate::testkit::Answer::{Both, Tx};
use crate::testkit::*;

/// Back out of the interface it came in on: the kernel gets a copy where it has no other way either.
#[test]
fn redirect_by_a_group() {
    let mut s = router(4);
    for (group, prefix, members, copied) in [
        (8, 30, vec![(1, 1)], true),
        (9, 31, vec![(1, 1), (2, 1)], false),
    ] {
        let config = GroupConfig {
            hash: HashPolicy::L4,
            members,
        };
        let slot = s.set_nhg(group, &config).unwrap();
        route4(&mut s, [prefix, 0, 0, 0], 8, RouteTarget::Group(slot));
        let mut back = 0;
        for n in 0..32 {
            match run(&mut s, 1, &to([prefix, 0, 0, n])) {
                Both(ports, raw::TND_TRAP_REDIRECT) if copied => back += u32::from(ports == [1]),
                Tx(ports) if !copied => back += u32::from(ports == [1]),
                other => panic!("group {group}: {other:?}"),
            }
        }
        assert!(back > 0, "group {group}");
    }
}
