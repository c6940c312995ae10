//! What the kernel would tell of a link or a route, for tests that need no kernel: whatever a test does not speak of is as usual.

use tandem_linux::netlink::{
    Event as Told, Link, LinkKind, NewMode, Nexthop, NexthopKind, Nexthops, Object, Route,
    RouteNexthop,
};
use tandem_store::model::Event;

use super::super::view::KernelView;

/// A message: this is there.
pub(super) fn new(object: Object) -> Told {
    Told::New(object, NewMode::Plain)
}

/// What the view makes of a message.
pub(super) fn said(view: &mut KernelView, told: Told) -> Vec<Event> {
    let mut out = Vec::new();
    view.event(told, &mut |e| out.push(e));
    out
}

/// A link that is up, with a carrier.
pub(super) fn link(index: u32, master: u32, kind: LinkKind) -> Link {
    Link {
        index,
        name: format!("if{index}"),
        kind,
        flags: 0x1_0041,
        mtu: 1500,
        mac: Some([2, 0, 0, 0, 0, 1]),
        master,
        slave_kind: String::new(),
        lower: 0,
        lower_elsewhere: false,
        operstate: 6,
        promiscuity: 0,
        brport: None,
        bond: None,
    }
}

/// A next-hop object.
fn nexthop(id: u32, kind: NexthopKind) -> Object {
    Object::Nexthop(Nexthop {
        id,
        family: 2,
        protocol: 4,
        flags: 0,
        fdb: false,
        kind,
    })
}

/// A next-hop object that leads to a device.
pub(super) fn single(id: u32, ifindex: u32) -> Object {
    let kind = NexthopKind::Single {
        ifindex,
        gateway: None,
        encap: false,
    };
    nexthop(id, kind)
}

/// One of others, each of weight 1.
pub(super) fn group(id: u32, members: &[u32], resilient: bool) -> Object {
    let members = members.iter().map(|m| (*m, 1)).collect();
    nexthop(id, NexthopKind::Group { members, resilient })
}

/// As it is told of.
pub(super) fn of(route: &Route) -> Object {
    Object::Route(route.clone())
}

/// A unicast route of the main table.
pub(super) fn route(dst: &str, nexthops: Nexthops) -> Route {
    Route {
        table: 254,
        dst: dst.parse().unwrap(),
        tos: 0,
        metric: 50,
        kind: 1,
        scope: 0,
        protocol: 4,
        flags: 0,
        nh_id: 0,
        nexthops,
        src: None,
        prefsrc: None,
        mtu: 0,
        other: 0,
    }
}

/// One way; the gateway "" is none.
pub(super) fn next_hop(ifindex: u32, gateway: &str) -> RouteNexthop {
    RouteNexthop {
        ifindex,
        gateway: gateway.parse().ok(),
        weight: 1,
        flags: 0,
        encap: false,
    }
}
