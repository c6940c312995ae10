//! Memberships of a port's VLANs: what their answers cost.

use crate::common::bridged::*;
use crate::common::*;
use tandem_store::model::*;
use tandem_store::*;

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
            tap: 0,
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

/// A port comes from a bridge with VLANs into one without, and changes once more when the last of its VLANs is answered: what it comes
/// into is of its present turn all the same, and another port that joins behind it joins behind it.
#[test]
fn a_port_that_changes_between_two_kinds_of_bridges_joins_before_who_came_later() {
    let mut r = bridged("spectrum-sn2700");
    let aware = 51;
    r.up(Object::Link(Link {
        ifindex: aware,
        name: "br1".into(),
        kind: LinkKind::Bridge(BridgeInfo {
            vlan_filtering: true,
            ..BridgeInfo::default()
        }),
        ..swp(9)
    }));
    r.up(Object::Link(Link {
        master: aware,
        bridge_port: Some(BridgePort::default()),
        ..swp(4)
    }));
    r.up(Object::Link(swp(3)));
    let vlan = BridgeVlan {
        ifindex: 14,
        vid: 1,
        pvid: true,
        untagged: true,
        state: BR_STATE_FORWARDING,
        unsupported: None,
        tap: 0,
    };
    r.up(Object::BridgeVlan(vlan));
    r.settle();
    assert!(r.chip.members.keys().any(|k| k.0 == 4));
    r.up(joined(4));
    r.del(Key::BridgeVlan(14, 1));
    r.plan();
    r.up(joined(3));
    let left = |r: &Rig| !r.chip.members.keys().any(|k| k.0 == 4);
    while !left(&r) {
        r.plan();
        assert!(r.run(0));
    }
    r.up(Object::Link(Link {
        master: BRIDGE,
        bridge_port: Some(BridgePort {
            isolated: true,
            ..BridgePort::default()
        }),
        ..swp(4)
    }));
    let is_in = |r: &Rig, n| {
        let mut all = r.chip.members.iter();
        all.any(|(k, m)| k.0 == n && m.fid == FID)
    };
    r.play(0, |_| Fate::Done, |r| assert!(is_in(r, 4) || !is_in(r, 3)));
    assert!(is_in(&r, 4) && is_in(&r, 3));
}
