//! Whatever links, VLANs, addresses, VRFs, bonds, filters and chains do: what was computed step by step is what follows from
//! everything (`Store::topology_differs`), asked after each plan in two of three cases. To look mends what differs, so the third
//! case looks at its ends alone. What goes in slices goes in slices of one, of two, or at once.

use crate::common;
use crate::common::*;
use proptest::prelude::*;
use std::net::IpAddr;
use tandem_store::model::*;
use tandem_store::*;

const BRIDGES: [u32; 2] = [50, 51];
const VLAN_DEVICES: [u32; 4] = [30, 31, 32, 33];
const OTHERS: [u32; 2] = [40, 41];
const VRF: u32 = 60;
const BOND: u32 = 70;
const VIDS: [u16; 4] = [10, 1, 20, 30];

/// What is drawn for one event, digit by digit.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        let digit = self.0 % n;
        self.0 /= n;
        digit
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Mostly true.
    fn most(&mut self) -> bool {
        self.below(5) != 0
    }

    fn rarely(&mut self) -> bool {
        self.below(6) == 0
    }

    fn port(&mut self) -> u16 {
        1 + self.below(4) as u16
    }

    fn device(&mut self) -> u32 {
        match self.below(6) {
            0..3 => 10 + u32::from(self.port()),
            3 => self.one(&BRIDGES),
            4 => self.one(&VLAN_DEVICES),
            _ => self.one(&[OTHERS[0], VRF, BOND]),
        }
    }

    fn address(&mut self, host: u8) -> (u32, IpAddr) {
        let i = self.device();
        (i, IpAddr::from([10, i as u8, 0, host]))
    }
}

fn bridge_port(d: &mut Draw) -> BridgePort {
    BridgePort {
        state: d.one(&[3, 3, 3, 1]),
        learning: d.most(),
        locked: d.rarely(),
        unsupported: (d.below(3) == 0).then_some("proxy_arp"),
        ..BridgePort::default()
    }
}

fn link(d: &mut Draw) -> Object {
    let base = |ifindex: u32, name: String, kind| Link {
        ifindex,
        name,
        kind,
        mac: mac(ifindex as u8),
        ..swp(1)
    };
    let up = d.most();
    let carrier = d.most();
    let renamed = d.rarely();
    let mtu = d.one(&[1500, 1500, 9000]);
    let l = match d.below(10) {
        0..4 => {
            let n = d.port();
            let master = d.one(&[0, 0, 50, 50, 51, VRF, BOND]);
            Link {
                master,
                bridge_port: BRIDGES.contains(&master).then(|| bridge_port(d)),
                bond_active: master == BOND,
                ..swp(n)
            }
        }
        4..6 => {
            let i = d.one(&BRIDGES);
            let info = BridgeInfo {
                vlan_filtering: d.below(3) != 0,
                no_link_local_learning: d.rarely(),
                mcast_snooping: d.most(),
                igmp_version: 2,
                querier4: d.one(&[Querier::None, Querier::There]),
                ageing_s: 300,
                unsupported: d.rarely().then_some("802.1ad"),
                ..BridgeInfo::default()
            };
            Link {
                promiscuous: d.rarely(),
                master: if d.rarely() { VRF } else { 0 },
                ..base(i, format!("br{i}"), LinkKind::Bridge(info))
            }
        }
        6..8 => {
            let i = d.one(&VLAN_DEVICES);
            let lower = d.one(&[11, 12, 50, 51, 50, 30, BOND]);
            // no two on one device have the same VLAN: `vlan_check_real_dev` refuses that
            let vid = VIDS[(i - VLAN_DEVICES[0]) as usize];
            let kind = LinkKind::Vlan { vid };
            let mac = if d.most() { lower - 10 } else { 99 };
            let below = if lower < 20 { mac } else { lower };
            Link {
                lower,
                mac: common::mac(if mac == 99 { 99 } else { below as u8 }),
                master: d.one(&[0, 0, 0, 0, VRF, 51]),
                ..base(i, format!("v{i}"), kind)
            }
        }
        8 => {
            let i = d.one(&OTHERS);
            let kind = LinkKind::Other("veth".into());
            Link {
                lower: d.one(&[0, 0, 11, 50, 31]),
                master: d.one(&[0, 0, 50, 51]),
                ..base(i, format!("veth{i}"), kind)
            }
        }
        _ if d.below(2) == 0 => base(VRF, "red".into(), LinkKind::Vrf { table: 100 }),
        _ => {
            let info = BondInfo {
                lag: 1,
                hash: 0,
                unsupported: None,
            };
            let master = d.one(&[0, 0, 50]);
            Link {
                master,
                bridge_port: (master != 0).then(|| bridge_port(d)),
                ..base(BOND, "bond0".into(), LinkKind::Bond(info))
            }
        }
    };
    let name = match renamed {
        true => format!("x{}", l.ifindex),
        false => l.name.clone(),
    };
    Object::Link(Link {
        name,
        admin_up: up,
        carrier,
        mtu,
        ..l
    })
}

/// One of the kernel's own, one for VRFs, or one that looks at an interface or at all.
fn rule(d: &mut Draw) -> Rule {
    let family = d.one(&[Family::V4, Family::V4, Family::V6]);
    let own = |priority, table| Rule {
        family,
        priority,
        table,
        is_default: true,
        l3mdev: false,
        iif: String::new(),
        text: format!("from all lookup {table}"),
    };
    let before = d.one(&[0, 32765]);
    match d.below(8) {
        0 => own(before, TABLE_LOCAL),
        1 => own(32766, TABLE_MAIN),
        2 => Rule {
            is_default: false,
            l3mdev: true,
            ..own(1000, 0)
        },
        _ => {
            let iif = d.one(&["swp1", "x11", "red", "v30", "br50", "bond0", ""]);
            Rule {
                is_default: false,
                iif: iif.into(),
                text: format!("from all iif {iif} lookup 9"),
                ..own(d.one(&[500, 2000]), 9)
            }
        }
    }
}

fn event(rig: &mut Rig, d: &mut Draw) {
    match d.below(20) {
        0..4 => {
            let l = link(d);
            rig.up(l);
        }
        4 => {
            let i = d.device();
            rig.del(Key::Link(i));
        }
        5..8 => {
            let i = 10 + u32::from(d.port());
            let ifindex = if d.below(3) == 0 { d.one(&BRIDGES) } else { i };
            let vid = d.one(&VIDS);
            if d.below(3) == 0 {
                rig.del(Key::BridgeVlan(ifindex, vid));
                return;
            }
            let pvid = d.below(3) == 0;
            let of_bridge = BRIDGES.contains(&ifindex);
            let tap = match of_bridge && d.below(3) == 0 {
                true => d.one(&OTHERS),
                false => 0,
            };
            rig.up(Object::BridgeVlan(BridgeVlan {
                ifindex,
                vid,
                pvid,
                untagged: pvid,
                state: d.one(&[3, 3, 3, 3, 3, 3, 1]),
                unsupported: None,
                tap,
            }));
        }
        8..10 => {
            let (ifindex, addr) = d.address(1);
            let a = Addr {
                ifindex,
                addr,
                prefix_len: 24,
            };
            match d.below(3) {
                0 => rig.del(Key::Addr(a)),
                _ => {
                    rig.up(Object::Addr(a));
                    rig.up(via(&format!("10.{ifindex}.0.0/24"), ifindex, ""));
                }
            }
        }
        10 => {
            let ifindex = d.device();
            let scope = match d.rarely() {
                true => ConfScope::All,
                false => ConfScope::Interface(ifindex),
            };
            let family = d.one(&[Family::V4, Family::V6]);
            if d.rarely() {
                rig.del(Key::Netconf(family, scope));
                return;
            }
            rig.up(Object::Netconf(Netconf {
                family,
                scope,
                forwarding: Some(d.most()),
                rp_filter: Some(d.one(&[0, 0, 0, 1, 2])),
                ignore_linkdown: Some(d.below(2) == 0),
                send_redirects: Some(false),
                disabled: None,
            }));
        }
        11 => {
            let (ifindex, addr) = d.address(2);
            match d.below(4) {
                0 => rig.del(Key::Neigh(ifindex, addr)),
                1 => {
                    let far = format!("20.{ifindex}.0.0/16");
                    rig.up(via(&far, ifindex, &addr.to_string()));
                }
                2 => rig.del(Key::Route(key(&format!("20.{ifindex}.0.0/16")))),
                _ => rig.up(neigh(ifindex, &addr.to_string(), 7)),
            }
        }
        12 => {
            let e = FdbEntry {
                bridge: d.one(&BRIDGES),
                vlan: d.one(&[0, 10, 20]),
                mac: [2, 1, 1, 1, 0, d.below(3) as u8],
                ifindex: d.device(),
                kind: d.one(&[FdbKind::Static, FdbKind::ExternLearn, FdbKind::Locked]),
                sticky: false,
            };
            match d.below(4) {
                0 => rig.del(bridged::key_of(&e)),
                _ => rig.up(Object::Fdb(e)),
            }
        }
        13 => {
            let e = MdbEntry {
                bridge: d.one(&BRIDGES),
                vlan: d.one(&[0, 10]),
                group: GroupAddr::Ip([239, 1, 1, 1].into()),
                source: None,
                ifindex: d.device(),
                include: false,
                blocked: false,
            };
            match d.below(3) {
                0 => rig.del(Key::Mdb(e.key())),
                1 => rig.up(Object::RouterPort(RouterPort {
                    bridge: e.bridge,
                    ifindex: e.ifindex,
                    v4: true,
                    v6: false,
                })),
                _ => rig.up(Object::Mdb(e)),
            }
        }
        14 => {
            let device = d.device();
            let Object::Filter(mut f) = drops_all(device, d.one(&[10, 10, 20])) else {
                unreachable!()
            };
            f.key.egress = d.rarely();
            f.mirror = d.one(&[None, None, Some(11), Some(14)]);
            // shared by whoever has it
            let police = FilterPolice {
                index: 1,
                packets: true,
                rate: 10,
                burst: 5,
                longest: u32::MAX,
            };
            f.police = (d.below(3) == 0).then_some(police);
            match d.below(2) {
                0 => rig.del(Key::Filter(f.key)),
                _ => rig.up(Object::Filter(f)),
            }
        }
        15 => {
            let (table, name) = ("t".to_owned(), "c".to_owned());
            let family = d.one(&[5, 5, 5, 1, 2, 7]);
            match d.below(3) {
                0 => {
                    let at = ["swp1", "v30", "br50", "swp*", "x*", "red", "bond0", "x12"];
                    rig.up(Object::BaseChain(BaseChain {
                        family,
                        table,
                        name,
                        hook: d.one(&[0, 1, 5]),
                        devices: vec![d.one(&at).to_owned()],
                    }));
                }
                _ => rig.del(Key::BaseChain(family, table, name)),
            }
        }
        16 => {
            let rule = rule(d);
            match d.below(2) {
                0 => rig.del(Key::Rule(rule)),
                _ => rig.up(Object::Rule(rule)),
            }
        }
        17 => {
            let nf_call = NfCall {
                ip: d.rarely(),
                arp: d.rarely(),
                ..NfCall::default()
            };
            rig.up(Object::Settings(Settings {
                hash_policy_v4: d.one(&[0, 1]),
                hash_policy_v6: 0,
                multipath_use_neigh: d.rarely(),
                nf_call,
                arptables: d.rarely(),
                iptables: d.rarely(),
                unsupported: d.rarely().then_some("a setting"),
            }));
        }
        // what a wide own route answers for, and what is in a VRF
        18 => {
            let Object::Route(mut r) = (match d.below(3) {
                0 => {
                    let wide = d.one(&["0.0.0.0/0", "10.0.0.0/8", "20.0.0.0/8"]);
                    local(wide, 11, d.one(&[RouteType::Local, RouteType::Throw]))
                }
                1 => local("10.12.0.9/32", 12, RouteType::Local),
                _ => via(d.one(&["10.11.0.0/25", "30.0.0.0/8"]), 12, "10.12.0.2"),
            }) else {
                unreachable!()
            };
            if r.key.table == TABLE_MAIN {
                r.key.table = d.one(&[TABLE_MAIN, 100]);
            }
            match d.below(3) {
                0 => rig.del(Key::Route(r.key)),
                _ => rig.up(Object::Route(r)),
            }
        }
        // what nobody has said again is swept
        _ => {
            let kinds = d.one(&[
                KindSet::RULE,
                KindSet::BASE_CHAIN,
                KindSet::FILTER,
                KindSet::NETCONF,
                KindSet::BRIDGE_VLAN,
                KindSet::MDB,
                KindSet::NEIGH,
                KindSet::ADDR,
                KindSet::FDB,
                KindSet::ROUTE,
                KindSet::LINK,
            ]);
            rig.store.apply(Event::BeginSync(SRC, kinds), rig.now);
            if d.most() {
                let rule = rule(d);
                rig.up(Object::Rule(rule));
            }
            rig.end();
        }
    }
}

/// A bridge with VLAN 10, in which it has an interface with an address, and one without VLANs.
fn beginning() -> Vec<Object> {
    let bridge = |ifindex: u32, vlan_filtering| {
        let info = BridgeInfo {
            vlan_filtering,
            mcast_snooping: true,
            ageing_s: 300,
            ..BridgeInfo::default()
        };
        Link {
            ifindex,
            name: format!("br{ifindex}"),
            kind: LinkKind::Bridge(info),
            mac: mac(ifindex as u8),
            ..swp(1)
        }
    };
    let member = |n, master| {
        Object::Link(Link {
            master,
            bridge_port: Some(BridgePort::default()),
            ..swp(n)
        })
    };
    let [first, second] = [bridge(50, true), bridge(51, false)];
    let on_it = Link {
        ifindex: 30,
        name: "v30".into(),
        kind: LinkKind::Vlan { vid: 10 },
        lower: 50,
        ..first.clone()
    };
    let station = |bridge, vlan, ifindex| {
        Object::Fdb(FdbEntry {
            bridge,
            vlan,
            mac: [2, 1, 1, 1, 0, 0],
            ifindex,
            kind: FdbKind::Static,
            sticky: false,
        })
    };
    let group = |ifindex| {
        Object::Mdb(MdbEntry {
            bridge: 51,
            vlan: 0,
            group: GroupAddr::Ip([239, 1, 1, 1].into()),
            source: None,
            ifindex,
            include: false,
            blocked: false,
        })
    };
    vec![
        Object::Link(first),
        Object::Link(second),
        member(1, 50),
        member(2, 50),
        member(3, 51),
        member(4, 51),
        in_vlan(50, 10),
        in_vlan(11, 10),
        in_vlan(12, 10),
        Object::Link(on_it),
        addr(30, "10.30.0.1/24"),
        via("10.30.0.0/24", 30, ""),
        neigh(30, "10.30.0.2", 7),
        station(50, 10, 11),
        station(51, 0, 13),
        group(13),
        group(14),
    ]
}

fn in_vlan(ifindex: u32, vid: u16) -> Object {
    Object::BridgeVlan(BridgeVlan {
        ifindex,
        vid,
        pvid: false,
        untagged: false,
        state: 3,
        unsupported: None,
        tap: 0,
    })
}

/// That beginning, on the chip.
fn begun(profile: &str, judged: bool) -> Rig {
    let mut rig = Rig::new(profile, Policy::Trap);
    rig.judged = judged;
    rig.begin();
    for o in beginning() {
        rig.up(o);
    }
    rig.end();
    rig.store.attach(Attach::Cold, 0);
    rig.settle();
    rig
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Event(u64),
    Plan,
    Run,
    Settle,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => any::<u64>().prop_map(Op::Event),
        3 => Just(Op::Plan),
        3 => Just(Op::Run),
        2 => Just(Op::Settle),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: std::env::var("PROPTEST_CASES").ok().and_then(|v| v.parse().ok()).unwrap_or(300), ..ProptestConfig::default() })]

    #[test]
    fn step_by_step_is_anew(
        ops in prop::collection::vec(op(), 1..150),
        profile in prop::sample::select(vec!["spectrum-sn2700", "spectrum-sn2700", "tiny"]),
        judged in prop::sample::select(vec![true, true, false]),
        slice in prop::sample::select(vec![1, 2, SLICE]),
    ) {
        let mut rig = begun(profile, judged);
        rig.store.set_slice(slice);
        prop_assert!(rig.judge(), "not looked at");
        for op in ops {
            match op {
                Op::Event(n) => event(&mut rig, &mut Draw(n)),
                Op::Plan => _ = rig.plan(),
                Op::Run => _ = rig.run(0) || rig.run(1),
                Op::Settle => rig.settle(),
            }
        }
        rig.settle();
        // also where nothing was mended by looking before; not looked at where a VRF that went still has routes, or what failed waits
        rig.judge();
    }
}

/// A membership that is unwanted before it was written leaves nothing behind: its id is another port's next, and that one's bridge
/// is none that the former port has left.
#[test]
fn the_id_of_a_membership_never_written_is_another_ports() {
    let mut rig = begun("spectrum-sn2700", false);
    // the VLAN is on its way, the membership waits for it
    rig.up(in_vlan(12, 20));
    rig.plan();
    rig.del(Key::Link(12));
    rig.settle();
    rig.up(in_vlan(11, 20));
    rig.up(in_vlan(11, 30));
    rig.settle();
    rig.up(Object::Link(swp(2)));
    rig.settle();
    assert!(rig.judge());
}

/// The bridge that a port joins goes before the port's membership there was written: the port has changed its kind of bridge with
/// that, and no answer will say so.
#[test]
fn a_membership_never_written_ends_the_change_of_kind() {
    let mut early = 0;
    for answered in 0..8 {
        let mut rig = begun("spectrum-sn2700", true);
        // what it has of the other kind goes before the port itself is another one
        rig.del(Key::BridgeVlan(11, 10));
        rig.plan();
        rig.up(Object::Link(Link {
            master: 51,
            bridge_port: Some(BridgePort::default()),
            ..swp(1)
        }));
        for _ in 0..answered {
            rig.plan();
            rig.run(0);
        }
        rig.plan();
        early += usize::from(!rig.store.idle());
        rig.del(Key::Link(51));
        rig.settle();
        assert!(rig.judge(), "after {answered}");
    }
    assert!(early > 2, "{early}");
}

/// What changes little is not computed with everything.
#[test]
fn only_a_port_or_a_group_is_everything() {
    let mut rig = Rig::new("spectrum-sn2700", Policy::Trap);
    rig.judged = false;
    rig.begin();
    for o in beginning() {
        rig.up(o);
    }
    let device = |ifindex, name: &str, kind| Link {
        ifindex,
        name: name.into(),
        kind,
        mac: mac(ifindex as u8),
        ..swp(1)
    };
    let info = BondInfo {
        lag: 1,
        hash: 0,
        unsupported: None,
    };
    let red = device(VRF, "red", LinkKind::Vrf { table: 100 });
    let in_bond = |active| Link {
        master: BOND,
        bond_active: active,
        ..swp(4)
    };
    rig.up(Object::Link(device(BOND, "bond0", LinkKind::Bond(info))));
    rig.up(Object::Link(in_bond(true)));
    rig.up(Object::Link(swp(3)));
    rig.up(addr(13, "10.3.0.1/24"));
    rig.end();
    rig.store.attach(Attach::Cold, 0);
    rig.settle();
    let begun = rig.store.wholes();
    let rule = Rule {
        family: Family::V4,
        priority: 500,
        table: 9,
        is_default: false,
        l3mdev: false,
        iif: "swp3".into(),
        text: "from all iif swp3 lookup 9".into(),
    };
    let chain = BaseChain {
        family: 5,
        table: "t".into(),
        name: "c".into(),
        hook: 0,
        devices: vec!["swp3".into()],
    };
    let up = |o| Event::Upsert(SRC, o);
    let moved = |master| up(Object::Link(Link { master, ..swp(3) }));
    let conf = Netconf {
        family: Family::V4,
        scope: ConfScope::All,
        forwarding: Some(true),
        rp_filter: Some(2),
        ignore_linkdown: None,
        send_redirects: None,
        disabled: None,
    };
    let renamed = Link {
        name: "uplink".into(),
        ..swp(3)
    };
    let events = vec![
        up(Object::Rule(rule.clone())),
        Event::Remove(SRC, Key::Rule(rule.clone())),
        up(Object::BaseChain(chain)),
        Event::Remove(SRC, Key::BaseChain(5, "t".into(), "c".into())),
        up(Object::Link(renamed)),
        up(Object::Link(swp(3))),
        up(Object::Link(red)),
        moved(VRF),
        moved(0),
        up(Object::Link(in_bond(false))),
        up(Object::Link(in_bond(true))),
        up(Object::Netconf(conf)),
        up(Object::Rule(rule)),
        Event::BeginSync(SRC, KindSet::RULE),
        Event::EndSync(SRC),
        Event::Remove(SRC, Key::Link(VRF)),
    ];
    for e in events {
        let text = format!("{e:?}");
        rig.store.apply(e, rig.now);
        rig.settle_unsynced();
        assert_eq!(rig.store.wholes(), begun, "{text}");
    }
    assert!(rig.judge(), "not looked at");
}
