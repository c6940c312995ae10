//! Multicast groups of bridges: RTM_*MDB (`linux/if_bridge.h`).

use super::consts::{NLM_F_DUMP, RTM_GETMDB};
use super::types::{Mdb, MdbEntry, MdbGroup, Object, RouterPort};
use super::wire::{Attrs, Writer, ip, u8_at, u16_at, u32_at};

/// Bytes of `struct br_port_msg`: family, padding, ifindex of the bridge.
const BR_PORT_MSG: usize = 8;
/// Bytes of `struct br_mdb_entry`.
const ENTRY: usize = 28;

const MDBA_MDB: u16 = 1;
const MDBA_ROUTER: u16 = 2;
const MDBA_MDB_ENTRY: u16 = 1;
const MDBA_MDB_ENTRY_INFO: u16 = 1;
const MDBA_ROUTER_PORT: u16 = 1;
const EATTR_GROUP_MODE: u16 = 3;
const EATTR_SOURCE: u16 = 4;
const PATTR_INET_TIMER: u16 = 3;
const PATTR_INET6_TIMER: u16 = 4;

const MDB_FLAGS_BLOCKED: u8 = 1 << 3;
/// `MCAST_INCLUDE` of `linux/in.h`.
const MCAST_INCLUDE: u8 = 1;

const ETH_P_IP: u16 = 0x0800;
const ETH_P_IPV6: u16 = 0x86dd;

/// Decodes RTM_NEWMDB, RTM_DELMDB, and the parts of a dump (RTM_GETMDB).
pub(super) fn decode(payload: &[u8]) -> Option<Object> {
    if payload.len() < BR_PORT_MSG {
        return None;
    }
    let mut mdb = Mdb {
        bridge: u32_at(payload, 4),
        entries: Vec::new(),
        routers: Vec::new(),
    };
    for (kind, v) in Attrs::after(payload, BR_PORT_MSG) {
        match kind {
            MDBA_MDB => {
                let groups = Attrs::new(v).filter(|(k, _)| *k == MDBA_MDB_ENTRY);
                let infos = groups.flat_map(|(_, g)| Attrs::new(g));
                let infos = infos.filter(|(k, _)| *k == MDBA_MDB_ENTRY_INFO);
                mdb.entries.extend(infos.filter_map(|(_, i)| entry(i)));
            }
            MDBA_ROUTER => {
                let ports = Attrs::new(v).filter(|(k, _)| *k == MDBA_ROUTER_PORT);
                mdb.routers.extend(ports.map(|(_, p)| router(p)));
            }
            _ => {}
        }
    }
    Some(Object::Mdb(mdb))
}

fn entry(v: &[u8]) -> Option<MdbEntry> {
    let attrs = Attrs::after(v, ENTRY);
    let group = match u16_at(v, 24).to_be() {
        ETH_P_IP => MdbGroup::Ip(ip(v.get(8..12)?)?),
        ETH_P_IPV6 => MdbGroup::Ip(ip(v.get(8..24)?)?),
        0 => MdbGroup::Mac(*v.get(8..14)?.first_chunk()?),
        _ => return None,
    };
    Some(MdbEntry {
        ifindex: u32_at(v, 0),
        vlan: u16_at(v, 6) & 0xfff,
        group,
        source: attrs.get(EATTR_SOURCE).and_then(ip),
        mode: attrs
            .get(EATTR_GROUP_MODE)
            .map(|m| u8_at(m, 0) == MCAST_INCLUDE),
        blocked: u8_at(v, 5) & MDB_FLAGS_BLOCKED != 0,
    })
}

/// A notification names the port alone.
fn router(v: &[u8]) -> RouterPort {
    let attrs = Attrs::after(v, 4);
    RouterPort {
        ifindex: u32_at(v, 0),
        v4: attrs.get(PATTR_INET_TIMER).is_some(),
        v6: attrs.get(PATTR_INET6_TIMER).is_some(),
    }
}

/// The request that dumps the groups and router ports of all bridges.
pub(super) fn dump(w: &mut Writer, seq: u32) {
    let mut fixed = [0; BR_PORT_MSG];
    fixed[0] = libc::AF_BRIDGE as u8;
    w.begin(RTM_GETMDB, NLM_F_DUMP, seq, &fixed);
}

#[cfg(test)]
mod tests {
    use super::super::consts::RTM_NEWMDB;
    use super::super::wire::Msgs;
    use super::*;

    fn info(port: u32, vid: u16, flags: u8, proto: u16, addr: &[u8]) -> Vec<u8> {
        let mut e = vec![0; ENTRY];
        e[..4].copy_from_slice(&port.to_ne_bytes());
        e[5] = flags;
        e[6..8].copy_from_slice(&vid.to_ne_bytes());
        e[8..8 + addr.len()].copy_from_slice(addr);
        e[24..26].copy_from_slice(&proto.to_be_bytes());
        e
    }

    fn message(infos: &[Vec<u8>], routers: &[(u32, &[u16])]) -> Vec<u8> {
        let mut w = Writer::default();
        let mut fixed = [0; BR_PORT_MSG];
        fixed[4..8].copy_from_slice(&7u32.to_ne_bytes());
        w.begin(RTM_NEWMDB, 0, 1, &fixed);
        let all = w.nest(MDBA_MDB);
        for i in infos {
            let one = w.nest(MDBA_MDB_ENTRY);
            w.attr(MDBA_MDB_ENTRY_INFO, i);
            w.end_nest(one);
        }
        w.end_nest(all);
        let all = w.nest(MDBA_ROUTER);
        for (port, timers) in routers {
            let one = w.nest(MDBA_ROUTER_PORT);
            w.raw(&port.to_ne_bytes());
            for t in *timers {
                w.attr_u32(*t, 5);
            }
            w.end_nest(one);
        }
        w.end_nest(all);
        w.bytes().to_vec()
    }

    fn decoded(bytes: &[u8]) -> Mdb {
        let msg = Msgs::new(bytes).next().unwrap();
        match decode(msg.payload) {
            Some(Object::Mdb(m)) => m,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn groups_of_all_kinds_and_routers() {
        let mut by_source = info(3, 10, MDB_FLAGS_BLOCKED, ETH_P_IP, &[225, 1, 2, 3]);
        let mut w = Writer::default();
        w.begin(0, 0, 0, &[]);
        w.attr(EATTR_SOURCE, &[10, 0, 0, 1]);
        w.attr(EATTR_GROUP_MODE, &[MCAST_INCLUDE]);
        by_source.extend_from_slice(&w.bytes()[16..]);
        let mut six = [0u8; 16];
        (six[0], six[15]) = (0xff, 9);
        let m = decoded(&message(
            &[
                by_source,
                info(4, 0, 0, ETH_P_IPV6, &six),
                info(5, 0, 0, 0, &[1, 0, 0, 1, 2, 3]),
                info(5, 0, 0, 0x1234, &[1]),
            ],
            &[(3, &[PATTR_INET_TIMER]), (4, &[])],
        ));
        assert_eq!(m.bridge, 7);
        assert_eq!(m.entries.len(), 3);
        let first = m.entries[0];
        assert_eq!((first.ifindex, first.vlan, first.blocked), (3, 10, true));
        assert_eq!(first.group, MdbGroup::Ip("225.1.2.3".parse().unwrap()));
        assert_eq!(first.source, Some("10.0.0.1".parse().unwrap()));
        assert_eq!(first.mode, Some(true));
        assert_eq!(m.entries[1].group, MdbGroup::Ip("ff00::9".parse().unwrap()));
        assert_eq!(m.entries[2].group, MdbGroup::Mac([1, 0, 0, 1, 2, 3]));
        assert_eq!(m.entries[2].mode, None);
        let r: Vec<_> = m.routers.iter().map(|r| (r.ifindex, r.v4, r.v6)).collect();
        assert_eq!(r, [(3, true, false), (4, false, false)]);
    }

    #[test]
    fn cut_messages_end_the_walk() {
        let whole = message(&[info(3, 10, 0, ETH_P_IP, &[225, 1, 2, 3])], &[(3, &[3])]);
        let msg = Msgs::new(&whole).next().unwrap();
        for n in 0..msg.payload.len() {
            let _ = decode(&msg.payload[..n]);
        }
        assert_eq!(entry(&[0; 10]), None);
    }
}
