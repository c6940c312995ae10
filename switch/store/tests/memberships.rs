//! Memberships of a port's VLANs: what their answers cost.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
use common::*;
use tandem_store::model::*;
use tandem_store::*;

const BRIDGE: u32 = 50;

/// A port's memberships give way to those of the other kind, and all go with their port: an answer is no look at all the others.
#[test]
fn an_answer_to_a_membership_costs_no_look_at_the_others() {
    const VLANS: u16 = 200;
    let mut r = two_ports("spectrum-sn2700", Policy::Trap);
    let bridge = |vlan_filtering| {
        Object::Link(Link {
            ifindex: BRIDGE,
            name: "br0".into(),
            kind: LinkKind::Bridge(BridgeInfo {
                vlan_filtering,
                ageing_s: 300,
                ..BridgeInfo::default()
            }),
            mac: mac(50),
            ..swp(1)
        })
    };
    r.up(bridge(false));
    r.up(Object::Link(Link {
        master: BRIDGE,
        bridge_port: Some(BridgePort::default()),
        ..swp(3)
    }));
    for vid in 1..=VLANS {
        r.up(Object::BridgeVlan(BridgeVlan {
            ifindex: 13,
            vid,
            pvid: vid == 1,
            untagged: vid == 1,
            state: BR_STATE_FORWARDING,
            unsupported: None,
        }));
    }
    r.settle();
    let mut looks = |what: &str, o: Object, members: usize| {
        let before = r.store.looks();
        r.up(o);
        r.settle();
        assert_eq!(r.chip.members.len(), members, "{what}");
        let looks = r.store.looks() - before;
        assert!(looks < 20 * usize::from(VLANS), "{what}: {looks} looks");
    };
    looks("comes to filter", bridge(true), usize::from(VLANS));
    looks("no longer filters", bridge(false), 1);
    looks("filters again", bridge(true), usize::from(VLANS));
    looks("leaves", Object::Link(swp(3)), 0);
}
