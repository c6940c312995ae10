//! VLANs of bridges and ports, message by message: what no message says must follow.

use tandem_linux::netlink as nl;
use tandem_store::model::{BridgeVlan, Event, Key, KindSet, Object};

use super::super::view::KernelView;
use super::told;

fn vlans(ifindex: u32, first: u16, last: u16, pvid: bool) -> nl::Object {
    nl::Object::BridgeVlans(nl::BridgeVlans {
        ifindex,
        vlans: vec![nl::BridgeVlan {
            first,
            last,
            pvid,
            untagged: pvid,
            state: 3,
            other: None,
        }],
    })
}

fn new(object: nl::Object) -> nl::Event {
    nl::Event::New(object, nl::NewMode::Plain)
}

/// What a message says, as (VID, PVID); removals as (VID, None).
fn said(view: &mut KernelView, event: nl::Event) -> Vec<(u16, Option<bool>)> {
    let mut out = Vec::new();
    view.event(event, &mut |e| match e {
        Event::Upsert(_, Object::BridgeVlan(BridgeVlan { vid, pvid, .. })) => {
            out.push((vid, Some(pvid)));
        }
        Event::Remove(_, Key::BridgeVlan(_, vid)) => out.push((vid, None)),
        _ => {}
    });
    out
}

#[test]
fn a_pvid_that_moves_takes_the_flag_from_the_one_before() {
    let mut v = KernelView::default();
    assert_eq!(said(&mut v, new(vlans(7, 1, 1, true))), [(1, Some(true))]);
    assert_eq!(
        said(&mut v, new(vlans(7, 10, 12, false))),
        [(10, Some(false)), (11, Some(false)), (12, Some(false))]
    );
    assert_eq!(
        said(&mut v, new(vlans(7, 11, 11, true))),
        [(1, Some(false)), (11, Some(true))]
    );
    // another device has a PVID of its own, and a message that changes nothing says nothing
    assert_eq!(said(&mut v, new(vlans(8, 1, 1, true))), [(1, Some(true))]);
    assert_eq!(said(&mut v, new(vlans(8, 1, 1, true))), []);
    assert_eq!(
        said(&mut v, nl::Event::Del(vlans(7, 10, 11, false))),
        [(10, None), (11, None)]
    );
}

fn link(index: u32, master: u32) -> nl::Object {
    nl::Object::Link(told::link(index, master, nl::LinkKind::Tun))
}

#[test]
fn a_port_that_leaves_its_bridge_leaves_its_vlans() {
    let mut v = KernelView::default();
    said(&mut v, new(link(7, 50)));
    said(&mut v, new(vlans(7, 1, 2, false)));
    assert_eq!(said(&mut v, new(link(7, 0))), [(1, None), (2, None)]);
    assert_ne!(
        v.take_doubts().kinds & KindSet::BRIDGE_VLAN.0,
        0,
        "and they are read once more"
    );
    said(&mut v, new(link(7, 50)));
    said(&mut v, new(vlans(7, 5, 5, true)));
    assert_eq!(said(&mut v, nl::Event::Del(link(7, 50))), [(5, None)]);
}
