//! VLANs of bridges and their ports: RTM_*VLAN (`linux/if_bridge.h`, "Bridge VLAN database").

use super::consts::{NLM_F_DUMP, RTM_GETVLAN};
use super::types::{BridgeVlan, BridgeVlans, Object};
use super::wire::{Attrs, Writer, u8_at, u16_at, u32_at};

/// Bytes of `struct br_vlan_msg`.
const BR_VLAN_MSG: usize = 8;

const BRIDGE_VLANDB_ENTRY: u16 = 1;
const ENTRY_INFO: u16 = 1;
const ENTRY_RANGE: u16 = 2;
const ENTRY_STATE: u16 = 3;
const ENTRY_TUNNEL_INFO: u16 = 4;
const ENTRY_NEIGH_SUPPRESS: u16 = 9;

const BRIDGE_VLAN_INFO_PVID: u16 = 1 << 1;
const BRIDGE_VLAN_INFO_UNTAGGED: u16 = 1 << 2;

/// Decodes RTM_NEWVLAN or RTM_DELVLAN. A message about a bridge's global options holds no VLAN of a port.
pub(super) fn decode(payload: &[u8]) -> Option<Object> {
    if payload.len() < BR_VLAN_MSG || i32::from(u8_at(payload, 0)) != libc::AF_BRIDGE {
        return None;
    }
    let vlans: Vec<BridgeVlan> = Attrs::after(payload, BR_VLAN_MSG)
        .filter(|(kind, _)| *kind == BRIDGE_VLANDB_ENTRY)
        .filter_map(|(_, v)| entry(v))
        .collect();
    (!vlans.is_empty()).then(|| {
        Object::BridgeVlans(BridgeVlans {
            ifindex: u32_at(payload, 4),
            vlans,
        })
    })
}

fn entry(v: &[u8]) -> Option<BridgeVlan> {
    let attrs = Attrs::new(v);
    let info = attrs.get(ENTRY_INFO).filter(|i| i.len() >= 4)?;
    let (flags, first) = (u16_at(info, 0), u16_at(info, 2));
    let last = attrs.get(ENTRY_RANGE).map_or(first, |r| u16_at(r, 0));
    if first == 0 || first > last || last > 4094 {
        return None;
    }
    Some(BridgeVlan {
        first,
        last,
        pvid: flags & BRIDGE_VLAN_INFO_PVID != 0,
        untagged: flags & BRIDGE_VLAN_INFO_UNTAGGED != 0,
        // a kernel without states per VLAN has them all forwarding
        state: attrs.get(ENTRY_STATE).map_or(3, |s| u8_at(s, 0)),
        other: if attrs.get(ENTRY_TUNNEL_INFO).is_some() {
            Some("tunnel_info")
        } else if attrs
            .get(ENTRY_NEIGH_SUPPRESS)
            .is_some_and(|n| u8_at(n, 0) != 0)
        {
            Some("neigh_suppress")
        } else {
            None
        },
    })
}

/// The request that dumps the VLANs of all bridges and ports.
pub(super) fn dump(w: &mut Writer, seq: u32) {
    let mut fixed = [0; BR_VLAN_MSG];
    fixed[0] = libc::AF_BRIDGE as u8;
    w.begin(RTM_GETVLAN, NLM_F_DUMP, seq, &fixed);
}

#[cfg(test)]
mod tests {
    use super::super::wire::Msgs;
    use super::*;

    fn message(ifindex: u32, entries: &[(u16, u16, Option<u16>, Option<u8>)]) -> Vec<u8> {
        let mut w = Writer::default();
        let mut fixed = [0; BR_VLAN_MSG];
        fixed[0] = libc::AF_BRIDGE as u8;
        fixed[4..].copy_from_slice(&ifindex.to_ne_bytes());
        w.begin(super::super::consts::RTM_NEWVLAN, 0, 1, &fixed);
        for (flags, vid, range, state) in entries {
            let nest = w.nest(BRIDGE_VLANDB_ENTRY);
            let mut info = flags.to_ne_bytes().to_vec();
            info.extend(vid.to_ne_bytes());
            w.attr(ENTRY_INFO, &info);
            if let Some(r) = range {
                w.attr(ENTRY_RANGE, &r.to_ne_bytes());
            }
            if let Some(s) = state {
                w.attr(ENTRY_STATE, &[*s]);
            }
            w.end_nest(nest);
        }
        w.bytes().to_vec()
    }

    fn read(bytes: &[u8]) -> Option<Object> {
        Msgs::new(bytes).next().and_then(|m| decode(m.payload))
    }

    #[test]
    fn ranges_flags_and_states() {
        let m = message(
            7,
            &[
                (6, 1, None, Some(3)),
                (0, 10, Some(20), Some(4)),
                (0, 30, None, None),
            ],
        );
        let Some(Object::BridgeVlans(b)) = read(&m) else {
            panic!("not decoded");
        };
        assert_eq!(b.ifindex, 7);
        assert_eq!((b.vlans[0].pvid, b.vlans[0].untagged), (true, true));
        assert_eq!(
            (b.vlans[1].first, b.vlans[1].last, b.vlans[1].state),
            (10, 20, 4)
        );
        assert!(!b.vlans[1].pvid && !b.vlans[1].untagged);
        assert_eq!((b.vlans[2].last, b.vlans[2].state), (30, 3));
    }

    #[test]
    fn nonsense_is_nothing() {
        assert_eq!(read(&message(7, &[])), None);
        assert_eq!(read(&message(7, &[(0, 0, None, None)])), None);
        assert_eq!(read(&message(7, &[(0, 20, Some(10), None)])), None);
        assert_eq!(read(&message(7, &[(0, 20, Some(4095), None)])), None);
        assert_eq!(decode(&[libc::AF_BRIDGE as u8, 0, 0]), None);
    }
}
