//! Next-hop objects: RTM_*NEXTHOP (`linux/nexthop.h`), which the typed libraries do not know.

use super::consts::{
    NHA_BLACKHOLE, NHA_ENCAP, NHA_ENCAP_TYPE, NHA_FDB, NHA_GATEWAY, NHA_GROUP, NHA_GROUP_TYPE,
    NHA_ID, NHA_OIF, NHA_RES_BUCKET, NHA_RES_BUCKET_INDEX, NHA_RES_BUCKET_NH_ID, NLM_F_DUMP,
    RTM_GETNEXTHOP, RTM_GETNEXTHOPBUCKET,
};
use super::types::{Nexthop, NexthopBucket, NexthopKind, Object};
use super::wire::{Attrs, Writer, ip, u8_at, u16_at, u32_at};

/// Bytes of `struct nhmsg`.
const NHMSG: usize = 8;
/// Bytes of `struct nexthop_grp`.
const GRP: usize = 8;
const GROUP_TYPE_RES: u16 = 1;

pub(super) fn decode(payload: &[u8]) -> Option<Object> {
    let (mut id, mut ifindex, mut gateway) = (0, 0, None);
    let (mut encap, mut fdb, mut blackhole, mut resilient) = (false, false, false, false);
    let mut members = None;
    for (kind, v) in Attrs::after(payload, NHMSG) {
        match kind {
            NHA_ID => id = u32_at(v, 0),
            NHA_OIF => ifindex = u32_at(v, 0),
            NHA_GATEWAY => gateway = ip(v),
            NHA_GROUP => {
                members = Some(
                    v.chunks_exact(GRP)
                        .map(|m| {
                            (
                                u32_at(m, 0),
                                u32::from(u8_at(m, 5)) << 8 | u32::from(u8_at(m, 4)),
                            )
                        })
                        .map(|(id, w)| (id, w + 1))
                        .collect(),
                );
            }
            NHA_GROUP_TYPE => resilient = u16_at(v, 0) == GROUP_TYPE_RES,
            NHA_BLACKHOLE => blackhole = true,
            NHA_ENCAP | NHA_ENCAP_TYPE => encap = true,
            NHA_FDB => fdb = true,
            _ => {}
        }
    }
    let kind = match members {
        Some(members) => NexthopKind::Group { members, resilient },
        None if blackhole => NexthopKind::Blackhole,
        None => NexthopKind::Single {
            ifindex,
            gateway,
            encap,
        },
    };
    (id != 0).then(|| {
        Object::Nexthop(Nexthop {
            id,
            family: u8_at(payload, 0),
            protocol: u8_at(payload, 2),
            flags: u32_at(payload, 4),
            fdb,
            kind,
        })
    })
}

/// A bucket, as dumps and the upkeep's notifications (net/ipv4/nexthop.c `nh_res_table_upkeep_dw`) have it.
pub(super) fn decode_bucket(payload: &[u8]) -> Option<Object> {
    let (mut group, mut index, mut nexthop) = (0, None, 0);
    for (kind, v) in Attrs::after(payload, NHMSG) {
        match kind {
            NHA_ID => group = u32_at(v, 0),
            NHA_RES_BUCKET => {
                for (kind, v) in Attrs::new(v) {
                    match kind {
                        NHA_RES_BUCKET_INDEX => index = Some(u16_at(v, 0)),
                        NHA_RES_BUCKET_NH_ID => nexthop = u32_at(v, 0),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let index = index?;
    (group != 0 && nexthop != 0).then_some(Object::NexthopBucket(NexthopBucket {
        group,
        index,
        nexthop,
    }))
}

/// The request that dumps the buckets of a resilient group, or of all, by group and index.
pub(super) fn dump_buckets(w: &mut Writer, seq: u32, group: Option<u32>) {
    w.begin(RTM_GETNEXTHOPBUCKET, NLM_F_DUMP, seq, &[0; NHMSG]);
    if let Some(group) = group {
        w.attr_u32(NHA_ID, group);
    }
}

/// The request that dumps all next-hop objects.
pub(super) fn dump(w: &mut Writer, seq: u32) {
    w.begin(RTM_GETNEXTHOP, NLM_F_DUMP, seq, &[0; NHMSG]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::consts::RTM_NEWNEXTHOP;
    use crate::netlink::wire::Msgs;

    /// As the kernel tells an object.
    fn write(w: &mut Writer, nh: &Nexthop) {
        let mut fixed = [0; NHMSG];
        fixed[0] = nh.family;
        fixed[2] = nh.protocol;
        fixed[4..8].copy_from_slice(&nh.flags.to_ne_bytes());
        w.begin(RTM_NEWNEXTHOP, 0, 1, &fixed);
        w.attr_u32(NHA_ID, nh.id);
        if nh.fdb {
            w.attr(NHA_FDB, &[]);
        }
        match &nh.kind {
            NexthopKind::Single {
                ifindex, gateway, ..
            } => {
                if *ifindex != 0 {
                    w.attr_u32(NHA_OIF, *ifindex);
                }
                if let Some(gw) = gateway {
                    w.attr_ip(NHA_GATEWAY, gw);
                }
            }
            NexthopKind::Blackhole => w.attr(NHA_BLACKHOLE, &[]),
            NexthopKind::Group { members, resilient } => {
                let mut body = Vec::with_capacity(members.len() * GRP);
                for (id, weight) in members {
                    let w = weight.saturating_sub(1);
                    body.extend_from_slice(&id.to_ne_bytes());
                    body.extend_from_slice(&[w as u8, (w >> 8) as u8, 0, 0]);
                }
                w.attr(NHA_GROUP, &body);
                if *resilient {
                    w.attr(NHA_GROUP_TYPE, &GROUP_TYPE_RES.to_ne_bytes());
                }
            }
        }
    }

    #[test]
    fn every_kind_survives_the_wire() {
        let kinds = [
            NexthopKind::Single {
                ifindex: 3,
                gateway: Some([10, 0, 0, 1].into()),
                encap: false,
            },
            NexthopKind::Blackhole,
            NexthopKind::Group {
                members: vec![(1, 1), (2, 256), (3, 65536)],
                resilient: true,
            },
        ];
        for kind in kinds {
            let nh = Nexthop {
                id: 7,
                family: 2,
                protocol: 4,
                flags: 0,
                fdb: false,
                kind,
            };
            let mut w = Writer::new();
            write(&mut w, &nh);
            let back = Msgs::new(w.bytes()).next().and_then(|m| decode(m.payload));
            assert_eq!(back, Some(Object::Nexthop(nh)));
        }
    }
}
