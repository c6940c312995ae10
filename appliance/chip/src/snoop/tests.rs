use super::*;
use tandem_swconfig::snooping::{OfVlan, Snooping as Settings};
use tandem_swconfig::{Interface, Net, Vlan};

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn snoop() -> (Snoop, Switch) {
    let board = Board {
        mac: MAC,
        ports: (1..=4)
            .map(|n| (n, format!("swp{n}"), [2, 0, 0, 0, 1, n as u8], 1000))
            .collect(),
    };
    let switch = Switch::new(board.database());
    let wake = Arc::new(EventFd::new().unwrap());
    (Snoop::new(&board, switch.clone(), wake), switch)
}

fn name(number: u16) -> Name {
    Name {
        kind: Kind::Gigabit,
        number,
    }
}

fn on() -> Config {
    Config {
        igmp: Settings {
            on: true,
            ..Settings::default()
        },
        ..Config::default()
    }
}

/// A query of all groups, as another switch sends it: 10.0.0.1, 0.1 s.
fn query() -> Vec<u8> {
    let q = tandem_snoop::Query {
        mac: [2, 0, 0, 0, 0, 7],
        from: "10.0.0.1".parse().unwrap(),
        group: None,
        delay: 100,
    };
    tandem_snoop::query(&q).unwrap()
}

/// An IGMPv2 message of 10.0.0.2: 0x16 joins, 0x17 leaves.
fn message(kind: u8, group: [u8; 4], to: [u8; 4]) -> Vec<u8> {
    let sum = |b: &[u8]| {
        let words = b.chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(c[1]));
        let all: u32 = words.sum();
        (!((all & 0xffff) + (all >> 16)) as u16).to_be_bytes()
    };
    let mut body = [&[kind, 0, 0, 0][..], &group].concat();
    let s = sum(&body);
    body[2..4].copy_from_slice(&s);
    let mut head = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 1, 2, 0, 0, 10, 0, 0, 2];
    head.extend(to);
    let s = sum(&head);
    head[10..12].copy_from_slice(&s);
    let mac = [
        1,
        0,
        0x5e,
        to[1] & 0x7f,
        to[2],
        to[3],
        2,
        0,
        0,
        0,
        2,
        2,
        8,
        0,
    ];
    [&mac[..], &head, &body].concat()
}

const GROUP: [u8; 4] = [225, 1, 2, 3];

/// By which ports what the CPU sends to a group leaves.
fn ways(switch: &Switch, group: [u8; 4]) -> Vec<u16> {
    let frame = message(0, [0; 4], group);
    switch.ask(|d| {
        let mut ways = d.ways(1, [1, 0, 0x5e, 1, 2, 3]);
        d.to_members(1, &frame, &mut ways);
        ways.into_iter().map(|w| w.0).collect()
    })
}

#[test]
fn members_are_in_the_database_and_reports_go_to_routers() {
    let (snoop, switch) = snoop();
    let now = clock::now_ns();
    assert_eq!(snoop.receive(1, 1, &query(), now), None, "nobody snoops");
    snoop.configure(&wanted(&on(), MAC));
    let join = message(0x16, GROUP, GROUP);
    // nobody has asked yet: where routers are is not known
    assert_eq!(snoop.receive(1, 2, &join, now), Some(Onward::All));
    assert_eq!(ways(&switch, GROUP), [1, 2, 3, 4]);
    assert_eq!(snoop.receive(1, 1, &query(), now), Some(Onward::All));
    assert_eq!(ways(&switch, GROUP), [1, 2, 3, 4]);
    let soon = now + 100_000_000;
    assert_eq!(snoop.tick(now, 0), Some(soon));
    snoop.tick(soon, 0);
    assert_eq!(ways(&switch, GROUP), [1, 2]);
    assert_eq!(ways(&switch, [225, 9, 9, 9]), [1]);
    let routers = Some(Onward::Ports(BTreeSet::from([1])));
    assert_eq!(snoop.receive(1, 3, &join, soon), routers);
    assert_eq!(ways(&switch, GROUP), [1, 2, 3]);
    let mut broken = join.clone();
    broken[30] ^= 1;
    let nowhere = Some(Onward::Ports(BTreeSet::new()));
    assert_eq!(snoop.receive(1, 3, &broken, soon), nowhere);
    // what is no message is none
    let data = message(0x99, GROUP, GROUP);
    assert_eq!(snoop.receive(1, 3, &data, soon), None);
    snoop.link(2, false);
    assert_eq!(ways(&switch, GROUP), [1, 3]);
    let view = snoop.view(Protocol::Igmp);
    let group: IpAddr = Ipv4Addr::from(GROUP).into();
    assert_eq!(view.members, [(1, group, Some(name(3)), false)]);
    assert_eq!(view.routers, [(1, name(1), false)]);
    assert_eq!(view.queriers[&1], (Some("10.0.0.1".parse().unwrap()), true));
    assert_eq!(snoop.view(Protocol::Mld), View::default());
    // the tree has changed: all is flooded until the next query
    snoop.tick(soon + 1, 1);
    assert_eq!(ways(&switch, GROUP), [1, 2, 3, 4]);
    snoop.tick(soon + 2, 1);
    assert_eq!(snoop.view(Protocol::Igmp).members.len(), 1);
    snoop.configure(&Wanted::new());
    assert_eq!(snoop.view(Protocol::Igmp), View::default());
    assert_eq!(snoop.receive(1, 3, &join, soon), None);
}

#[test]
fn what_a_configuration_wants() {
    let mut config = on();
    config.mld.on = true;
    config.igmp.querier = true;
    for vid in [10, 20] {
        config.vlans.insert(vid, Vlan::default());
    }
    let group: IpAddr = "225.1.2.3".parse().unwrap();
    let ten = OfVlan {
        immediate: true,
        routers: BTreeSet::from([name(4)]),
        members: BTreeSet::from([(group, name(2))]),
        ..OfVlan::default()
    };
    let off = OfVlan {
        off: true,
        ..OfVlan::default()
    };
    // of a VLAN that is not there nothing is wanted
    let nowhere = config.igmp.vlans.insert(30, ten.clone());
    assert_eq!(nowhere, None);
    config.igmp.vlans.insert(10, ten);
    config.igmp.vlans.insert(20, off);
    config.mld.vlans.insert(
        20,
        OfVlan {
            querier: true,
            ..OfVlan::default()
        },
    );
    let device = Name {
        kind: Kind::Vlan,
        number: 10,
    };
    let mut interface = Interface::new(&device);
    interface.ipv4 = Some(Net {
        address: "10.10.0.1".parse().unwrap(),
        prefix: 24,
    });
    config.interfaces.insert(device, interface);
    let all = wanted(&config, [0, 0x11, 0x22, 0x33, 0x44, 0x55]);
    use Family::{V4, V6};
    let keys: Vec<_> = all.keys().copied().collect();
    assert_eq!(keys, [(1, V4), (1, V6), (10, V4), (10, V6), (20, V6)]);
    assert_eq!(all[&(1, V4)].querier, Some("0.0.0.0".parse().unwrap()));
    let ten = &all[&(10, V4)];
    assert_eq!(ten.querier, Some("10.10.0.1".parse().unwrap()));
    assert_eq!((ten.immediate, &ten.routers), (true, &BTreeSet::from([4])));
    assert_eq!(ten.members, BTreeMap::from([(group, BTreeSet::from([2]))]));
    let own = Some("fe80::211:22ff:fe33:4455".parse().unwrap());
    assert_eq!(
        (all[&(20, V6)].querier, all[&(10, V6)].querier),
        (own, None)
    );
}

#[test]
fn queries_wait_for_the_packet_thread() {
    let (snoop, _) = snoop();
    let mut config = on();
    config.igmp.querier = true;
    snoop.configure(&wanted(&config, MAC));
    let (vid, to, frame) = snoop.next_out().unwrap();
    assert_eq!((vid, to), (1, To::All));
    assert!(frame.starts_with(&[1, 0, 0x5e, 0, 0, 1, 2, 0, 0, 0, 0, 1]));
    assert_eq!(snoop.next_out(), None);
}
