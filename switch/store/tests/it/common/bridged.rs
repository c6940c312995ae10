//! A bridge of two ports, for tests of what it knows of stations.

use super::*;

/// Its ifindex.
pub const BRIDGE: u32 = 50;

/// The chip's number of its domain.
pub const FID: u16 = BRIDGE as u16;

/// An entry of the kernel.
pub fn fdb(last: u16, ifindex: u32, kind: FdbKind) -> FdbEntry {
    let [a, b] = last.to_be_bytes();
    FdbEntry {
        bridge: BRIDGE,
        vlan: 0,
        mac: [2, 1, 1, 1, a, b],
        ifindex,
        kind,
        sticky: false,
    }
}

/// Its key.
pub fn key_of(e: &FdbEntry) -> Key {
    Key::Fdb(FdbKey {
        bridge: e.bridge,
        vlan: e.vlan,
        mac: e.mac,
    })
}

/// The bridge itself.
pub fn bridge(ageing_s: u32) -> Object {
    Object::Link(Link {
        ifindex: BRIDGE,
        name: "br0".into(),
        kind: LinkKind::Bridge(BridgeInfo {
            ageing_s,
            ..BridgeInfo::default()
        }),
        mac: mac(200),
        ..swp(1)
    })
}

/// swp1 and swp2 in the bridge.
pub fn bridged(profile: &str) -> Rig {
    let mut r = Rig::new(profile, Policy::Trap);
    r.begin();
    r.up(bridge(300));
    for n in [1, 2] {
        r.up(joined(n));
    }
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    r
}

/// swpN in the bridge.
pub fn joined(n: u16) -> Object {
    Object::Link(Link {
        master: BRIDGE,
        bridge_port: Some(BridgePort::default()),
        ..swp(n)
    })
}

/// A port of the bridge in this state of its spanning tree.
pub fn in_state(n: u16, state: u8) -> Object {
    Object::Link(Link {
        master: BRIDGE,
        bridge_port: Some(BridgePort {
            state,
            ..BridgePort::default()
        }),
        ..swp(n)
    })
}
