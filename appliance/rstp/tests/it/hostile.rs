// SPDX-License-Identifier: Apache-2.0
//! Anything in any order: nothing panics, nothing goes on for ever, nothing grows.

use proptest::prelude::*;
use tandem_rstp::bpdu::{Bpdu, Info, Rapid, SentRole};
use tandem_rstp::{
    Action, Bridge, BridgeId, Config, Link, PointToPoint, PortConfig, PortId, Times, Vector,
    Version,
};

#[derive(Clone, Debug)]
enum Do {
    Up(u16, u32, bool),
    Down(u16),
    Octets(u16, Vec<u8>),
    Hears(u16, Bpdu),
    Tick(u64),
    SetPort(u16, PortConfig),
    Remove(u16),
    Recover(u16),
    Check(u16),
    Configure(Config),
}

fn bpdu() -> impl Strategy<Value = Bpdu> {
    let id = prop_oneof![
        Just(BridgeId::new(32_768, [2, 0, 0, 0, 0, 1])),
        Just(BridgeId::new(0, [2, 0, 0, 0, 0, 2])),
        any::<u64>().prop_map(BridgeId),
    ];
    let time = prop_oneof![Just(0u16), Just(512), Just(5120), any::<u16>()];
    let role = prop::sample::select(vec![
        SentRole::Unknown,
        SentRole::AlternateBackup,
        SentRole::Root,
        SentRole::Designated,
    ]);
    let flags = any::<[bool; 6]>();
    let info = (
        [id.clone(), id],
        prop_oneof![Just(0u32), any::<u32>()],
        prop_oneof![Just(0x8001u16), Just(0x8002), any::<u16>()],
        [time.clone(), time.clone(), time.clone(), time],
    );
    (info, role, flags, 0..8u8).prop_map(|((ids, cost, port, times), role, f, kind)| {
        let info = Info {
            vector: Vector {
                root: ids[0],
                cost,
                bridge: ids[1],
                port: PortId(port),
            },
            times: Times {
                message_age: times[0],
                max_age: times[1],
                hello: times[2],
                forward_delay: times[3],
            },
            topology_change: f[0],
            topology_change_ack: f[1],
        };
        let rapid = Rapid {
            role,
            proposal: f[2],
            agreement: f[3],
            learning: f[4],
            forwarding: f[5],
        };
        match kind {
            0 => Bpdu::Tcn,
            1 | 2 => Bpdu::Config(info),
            _ => Bpdu::Rst(info, rapid),
        }
    })
}

fn port_config() -> impl Strategy<Value = PortConfig> {
    let p2p = prop::sample::select(vec![
        PointToPoint::Auto,
        PointToPoint::Yes,
        PointToPoint::No,
    ]);
    (
        any::<[bool; 4]>(),
        any::<u8>(),
        prop::option::of(any::<u32>()),
        p2p,
    )
        .prop_map(|(f, priority, cost, point_to_point)| PortConfig {
            mac: [2; 6],
            priority: if f[0] { priority & 0xf0 } else { priority },
            cost,
            admin_edge: f[1],
            auto_edge: f[2],
            point_to_point,
            bpdu_guard: f[3] && f[0],
            root_guard: f[3] && f[1],
        })
}

fn config() -> impl Strategy<Value = Config> {
    (0u16..20, 0u8..12, 0u8..45, 0u8..35, 0u8..12, any::<bool>()).prop_map(
        |(p, h, a, f, t, old)| Config {
            mac: [2, 0, 0, 0, 0, 1],
            priority: p.saturating_mul(4096),
            hello: h,
            max_age: a,
            forward_delay: f,
            tx_hold_count: t,
            version: if old { Version::Stp } else { Version::Rstp },
        },
    )
}

fn what() -> impl Strategy<Value = Do> {
    let port = 1u16..5;
    prop_oneof![
        4 => (port.clone(), any::<u32>(), any::<bool>()).prop_map(|(p, m, d)| Do::Up(p, m, d)),
        1 => port.clone().prop_map(Do::Down),
        1 => (port.clone(), prop::collection::vec(any::<u8>(), 0..70)).prop_map(|(p, o)| Do::Octets(p, o)),
        12 => (port.clone(), bpdu()).prop_map(|(p, b)| Do::Hears(p, b)),
        12 => prop_oneof![Just(1_000_000_000u64), any::<u64>()].prop_map(Do::Tick),
        2 => (0u16..6, port_config()).prop_map(|(p, c)| Do::SetPort(p, c)),
        1 => port.clone().prop_map(Do::Remove),
        1 => port.clone().prop_map(Do::Recover),
        1 => port.prop_map(Do::Check),
        1 => config().prop_map(Do::Configure),
    ]
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn anything_in_any_order(does in prop::collection::vec(what(), 0..120)) {
        let mut bridge = Bridge::new(Config::new([2, 0, 0, 0, 0, 1])).unwrap();
        let mut now = 0u64;
        for n in 1..5 {
            bridge.set_port(n, PortConfig::new([2; 6]), now).unwrap();
        }
        for one in does {
            let actions = match one.clone() {
                Do::Up(p, mbps, full_duplex) => bridge.port_up(p, Link { mbps, full_duplex }, now).ok(),
                Do::Down(p) => bridge.port_down(p, now).ok(),
                Do::Octets(p, octets) => bridge.receive(p, &octets, now).ok(),
                Do::Hears(p, bpdu) => bridge.receive(p, &bpdu.to_frame([2; 6]), now).ok(),
                Do::Tick(by) => {
                    now = now.saturating_add(by);
                    Some(bridge.tick(now))
                }
                Do::SetPort(p, config) => bridge.set_port(p, config, now).ok(),
                Do::Remove(p) => bridge.remove_port(p, now).ok(),
                Do::Recover(p) => bridge.recover(p, now).ok(),
                Do::Check(p) => bridge.migration_check(p, now).ok(),
                Do::Configure(config) => bridge.configure(config, now).ok(),
            };
            let actions = actions.unwrap_or_default();
            let sends = actions.iter().filter(|a| matches!(a, Action::Send { .. })).count();
            prop_assert!(sends <= 40, "four ports, at most ten each");
            let view = bridge.show();
            prop_assert_eq!(view.cut_short, 0, "at rest after {:?}", one);
            prop_assert!(view.root <= view.id);
        }
    }
}
