//! What the tests of this crate share.

use crate::state::State;
use tandem_tables::exact::{ExactMatch, Geometry, Widths};
use tandem_tables::lpm::{Lpm4, Lpm6};

/// A chip with `ports` ports, a 4,096-slot exact-match table and 1,024 routes of each family.
pub fn state(ports: u16) -> State {
    let exact = ExactMatch::new(
        Geometry {
            banks: 4,
            buckets_per_bank: 256,
            slots_per_bucket: 4,
            stash: 16,
            max_moves: 16,
        },
        Widths {
            mac: 1,
            host4: 1,
            host6: 2,
        },
        1,
    )
    .unwrap();
    State::new(ports, exact, Lpm4::new(1024, 1), Lpm6::new(1024, 1))
}
