// SPDX-License-Identifier: Apache-2.0
//! What a controller of the other version costs that changes nothing.

use super::*;
use tandem_openflow::Action;
use tandem_openflow::model::{Config, Fragments, PortMod};

/// What is refused is tried on tables that are made once, what changes no table on none.
#[test]
fn tables_are_not_made_for_each_message_that_is_refused() {
    let mut b = Bench::new(Settings::default());
    let first = b.connect(Version::V13);
    b.fine(first, &Request::FlowMod(blank()));
    b.agent.disconnected(first, b.now);
    let id = b.connect(Version::V10);
    let queue = Action::Enqueue10 { port: 2, queue: 99 };
    let refused = [
        Request::FlowMod(applying(vec![queue])),
        Request::PortMod(PortMod {
            port: 99,
            hw_addr: mac(1),
            config: 0,
            mask: 0,
            advertise: 0,
        }),
        Request::SetConfig(Config {
            fragments: Fragments::Reassemble,
            miss_send_len: 0,
        }),
    ];
    let made = |b: &Bench| b.agent.datapath().made;
    for n in 0..30 {
        for request in &refused[1..] {
            b.refused(id, request);
        }
        assert_eq!(made(&b), u32::from(n > 0));
        b.refused(id, &refused[0]);
    }
    assert_eq!(made(&b), 1);
    // other ports are other tables
    b.agent.add_port(9, "swp9", mac(9), (true, 1_000), b.now);
    assert_eq!(b.said(id).len(), 1, "it is told of the port");
    b.refused(id, &refused[0]);
    assert_eq!(made(&b), 2);
    assert_eq!(b.agent.datapath().version(), Version::V13);
    let sum = |b: &Bench| {
        let tables = b.agent.datapath().switch().table_stats();
        tables.map(|t| t.active).sum::<u32>()
    };
    assert_eq!(sum(&b), 1);
    // what is taken begins in tables that nobody has tried anything on
    b.fine(id, &Request::FlowMod(applying(Vec::new())));
    assert_eq!(b.agent.datapath().version(), Version::V10);
    assert_eq!((sum(&b), made(&b)), (1, 2));
}
