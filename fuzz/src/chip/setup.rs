//! A chip on which frames get far.

use tandem_abi::raw;
use zerocopy::IntoBytes;

use super::Chip;
use super::frame::{ip4, ip6, router_mac, station};

impl Chip {
    fn create<T: IntoBytes + zerocopy::Immutable>(
        &mut self,
        op: u16,
        cls: u16,
        body: &T,
        more: &[u8],
    ) {
        let mut bytes = body.as_bytes().to_vec();
        bytes.extend(more);
        if let Some(size) = bytes.get_mut(..2) {
            size.copy_from_slice(&(size_of::<T>() as u16).to_le_bytes());
        }
        let cmd = raw::tnd_cmd {
            op,
            cls,
            body_size: bytes.len() as u32,
            epoch: self.epoch,
            ..Default::default()
        };
        let mut out = Vec::new();
        let cpl = self.fw.execute(&cmd, &bytes, &mut out, self.now);
        assert_eq!(
            cpl.status,
            raw::TND_ST_OK,
            "class {cls} of the configuration"
        );
    }

    /// Ports 1 to 3 are a bridge, 3 and 4 VLAN 10 of another one with an interface, 5 and 6 are routed, 7 and 8 are a
    /// group with an interface. Routes of both families to hosts, a gateway and a group; rules at every stage.
    pub(super) fn configure(&mut self) {
        use raw::*;
        let (new, set) = (TND_OP_CREATE, TND_OP_UPDATE);
        for port in 1..=8 {
            let _ = self.fw.state.set_link(port, true);
            self.create(
                set,
                TND_CLS_PORT,
                &tnd_port {
                    port,
                    flags: 0x7ff
                        & !(TND_PORT_TRAP_ALL
                            | TND_PORT_ISOLATED
                            | TND_PORT_LOCKED
                            | TND_PORT_HAIRPIN),
                    mtu: 1500,
                    stp_state: TND_STP_FORWARDING,
                    mac: router_mac(port),
                    ..Default::default()
                },
                &[],
            );
        }
        for fid in [1, 2] {
            self.create(
                new,
                TND_CLS_VLAN,
                &tnd_vlan {
                    fid,
                    flags: TND_VLAN_LEARNING
                        | if fid == 1 {
                            TND_VLAN_CPU_COPY
                        } else {
                            TND_VLAN_SNOOP | TND_VLAN_MC4_MEMBERS | TND_VLAN_MC6_MEMBERS
                        },
                    ageing_s: 10,
                    ..Default::default()
                },
                &[],
            );
        }
        let untagged = TND_MEMBER_UNTAGGED | TND_MEMBER_PVID;
        for (fid, port, vid, flags) in [
            (1, 1, TND_VID_ANY, untagged),
            (1, 2, TND_VID_ANY, untagged),
            (1, 3, 1, untagged),
            (2, 3, 10, 0),
            (2, 4, 10, untagged),
        ] {
            self.create(
                new,
                TND_CLS_VLAN_MEMBER,
                &tnd_vlan_member {
                    fid,
                    port,
                    vid,
                    flags,
                    ..Default::default()
                },
                &[],
            );
        }
        self.create(
            new,
            TND_CLS_MDB,
            &tnd_mdb {
                fid: 2,
                family: TND_AF_INET,
                count: 1,
                addr: ip4([239, 1, 1, 1]),
                ..Default::default()
            },
            &[3, 0, 0, 0],
        );
        self.create(
            new,
            TND_CLS_LAG,
            &tnd_lag {
                lag: 1,
                count: 2,
                hash: TND_LAG_HASH_L4,
                ..Default::default()
            },
            &[7, 0, 1, 0, 8, 0, 1, 0],
        );
        self.create(
            new,
            TND_CLS_VRF,
            &tnd_vrf {
                vrf: 1,
                ..Default::default()
            },
            &[],
        );
        let rif = |rif, kind, port, fid| tnd_rif {
            rif,
            kind,
            port,
            fid,
            mac: router_mac(rif),
            flags: TND_RIF_V4 | TND_RIF_V6,
            mtu: 1500,
            ..Default::default()
        };
        let lag = self.fw.state.lag_port(1);
        for r in [
            rif(1, TND_RIF_PORT, 5, 0),
            rif(2, TND_RIF_PORT, 6, 0),
            rif(3, TND_RIF_FID, 0, 2),
            rif(4, TND_RIF_PORT, lag, 0),
        ] {
            self.create(new, TND_CLS_RIF, &r, &[]);
        }
        for n in 1..=4_u16 {
            self.create(
                new,
                TND_CLS_NEIGH,
                &tnd_neigh {
                    rif: n,
                    family: TND_AF_INET,
                    mac: station(n),
                    addr: ip4([10, 0, n as u8, 9]),
                    ..Default::default()
                },
                &[],
            );
            self.create(
                new,
                TND_CLS_NEIGH,
                &tnd_neigh {
                    rif: n,
                    family: TND_AF_INET6,
                    mac: station(n),
                    addr: ip6(n, 9),
                    ..Default::default()
                },
                &[],
            );
            self.create(
                new,
                TND_CLS_NEXTHOP,
                &tnd_nexthop {
                    nexthop: u32::from(n),
                    rif: n,
                    mac: station(n),
                    ..Default::default()
                },
                &[],
            );
        }
        self.create(
            new,
            TND_CLS_NHG,
            &tnd_nhg {
                nhg: 1,
                count: 2,
                hash: 1,
                ..Default::default()
            },
            &[2, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0],
        );
        let forward = |kind, target| (TND_ACT_FORWARD, 0, kind, target);
        let trap = |reason: u16| (TND_ACT_TRAP, reason as u8, TND_RT_NONE, 0);
        for (net, len4, len6, (action, reason, target_kind, target)) in [
            (1, 24, 64, trap(TND_TRAP_CONNECTED)),
            (2, 24, 64, trap(TND_TRAP_CONNECTED)),
            (3, 24, 64, trap(TND_TRAP_CONNECTED)),
            (4, 24, 64, (TND_ACT_DROP, 0, TND_RT_NONE, 0)),
            (5, 24, 64, forward(TND_RT_NEXTHOP, 2)),
            (6, 24, 64, forward(TND_RT_NHG, 1)),
            (0, 8, 32, forward(TND_RT_NEXTHOP, 1)),
        ] {
            let route = tnd_route {
                family: TND_AF_INET,
                prefix_len: len4,
                action,
                reason,
                target_kind,
                target,
                addr: ip4([10, 0, net, 0]),
                ..Default::default()
            };
            self.create(new, TND_CLS_ROUTE, &route, &[]);
            let route = tnd_route {
                family: TND_AF_INET6,
                prefix_len: len6,
                addr: ip6(u16::from(net), 0),
                ..route
            };
            self.create(new, TND_CLS_ROUTE, &route, &[]);
        }
        self.create(
            new,
            TND_CLS_ACL_COUNTER,
            &tnd_acl_counter {
                counter: 1,
                ..Default::default()
            },
            &[],
        );
        self.create(
            new,
            TND_CLS_POLICER,
            &tnd_policer {
                policer: 1,
                rate: 1000,
                burst: 10,
                ..Default::default()
            },
            &[],
        );
        self.create(
            new,
            TND_CLS_ACL_RANGE,
            &tnd_acl_range {
                range: 1,
                field: TND_ACL_RANGE_DST,
                min: 100,
                max: 200,
                ..Default::default()
            },
            &[],
        );
        for (stage, port) in [(TND_ACL_PORT, 2), (TND_ACL_INGRESS, 6), (TND_ACL_EGRESS, 5)] {
            let table = u32::from(stage);
            self.create(
                new,
                TND_CLS_ACL_TABLE,
                &tnd_acl_table {
                    stage,
                    table,
                    ..Default::default()
                },
                &[],
            );
            let mut entry = tnd_acl_entry {
                table,
                priority: 1,
                action: TND_ACL_DROP,
                counter: 1,
                ..Default::default()
            };
            (entry.key.protocol, entry.mask.protocol) = (17, 0xff);
            (entry.src_port_min, entry.src_port_max) = (0, 60_000);
            entry.dst_range = 1;
            (entry.key.ethertype, entry.mask.ethertype) = (0x0800, 0xffff);
            self.create(new, TND_CLS_ACL_ENTRY, &entry, &[]);
            let entry = tnd_acl_entry {
                table,
                priority: 2,
                action: TND_ACL_PERMIT,
                policer: 1,
                ..Default::default()
            };
            self.create(new, TND_CLS_ACL_ENTRY, &entry, &[]);
            self.create(
                new,
                TND_CLS_ACL_BIND,
                &tnd_acl_bind {
                    port,
                    stage,
                    table,
                    ..Default::default()
                },
                &[],
            );
        }
        self.settled();
    }
}
