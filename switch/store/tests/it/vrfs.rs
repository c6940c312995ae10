//! VRFs: tables of routes beside each other, interfaces that move between them, rules that must be in order.

use crate::common::*;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

const RED: u32 = 70;
const TABLE: u32 = 10;
/// The chip's number of its VRF.
const VRF: u16 = TABLE as u16;

fn red() -> Object {
    Object::Link(Link {
        ifindex: RED,
        name: "red".into(),
        kind: LinkKind::Vrf { table: TABLE },
        mac: mac(170),
        ..swp(1)
    })
}

fn rule(family: Family, priority: u32, table: u32, l3mdev: bool) -> Object {
    Object::Rule(Rule {
        family,
        priority,
        table,
        is_default: !l3mdev,
        l3mdev,
        iif: String::new(),
        text: format!("from all lookup {table}"),
    })
}

/// The rules as `ip rule add pref 32765 table local; ip rule del pref 0` leaves them; `local`: where local is.
fn rules(r: &mut Rig, local: u32) {
    for f in [Family::V4, Family::V6] {
        r.up(rule(f, local, TABLE_LOCAL, false));
        r.up(rule(f, 1000, 0, true));
        r.up(rule(f, 32766, TABLE_MAIN, false));
    }
}

fn in_table(o: Object, table: u32) -> Object {
    match o {
        Object::Route(mut r) => {
            r.key.table = table;
            Object::Route(r)
        }
        other => other,
    }
}

/// swp1 (10.1.0.1/24) in red, swp2 (10.2.0.1/24) in the default VRF.
fn rig() -> Rig {
    let mut r = Rig::new("spectrum-sn2700", Policy::Trap);
    r.begin();
    rules(&mut r, 32765);
    r.up(red());
    interface(&mut r, 2);
    in_red(&mut r, 1);
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    r
}

/// As [`interface`], in red.
fn in_red(r: &mut Rig, n: u16) {
    let i = 10 + u32::from(n);
    r.up(Object::Link(Link {
        master: RED,
        ..swp(n)
    }));
    r.up(forwarding(Family::V4, ConfScope::Interface(i)));
    r.up(addr(i, &format!("10.{n}.0.1/24")));
    r.up(in_table(
        local(&format!("10.{n}.0.1/32"), i, RouteType::Local),
        TABLE,
    ));
    r.up(in_table(via(&format!("10.{n}.0.0/24"), i, ""), TABLE));
    r.up(neigh(i, &format!("10.{n}.0.2"), 100 + n as u8));
}

fn routes(r: &mut Rig) -> Vec<(u16, String, u8)> {
    let mut all: Vec<_> = r
        .chip
        .dump::<tnd_route>(TND_CLS_ROUTE)
        .iter()
        .map(|x| {
            let [a, b, c, d, ..] = x.addr;
            (x.vrf, format!("{a}.{b}.{c}.{d}/{}", x.prefix_len), x.action)
        })
        .collect();
    all.sort();
    all
}

fn rif(r: &Rig, m: [u8; 6]) -> Option<tnd_rif> {
    r.chip.rifs.values().find(|x| x.mac == m).copied()
}

#[test]
fn equal_prefixes_of_two_tables_stand_side_by_side() {
    let mut r = rig();
    r.up(via("10.9.0.0/16", 12, "10.2.0.2"));
    r.up(in_table(via("10.9.0.0/16", 11, "10.1.0.2"), TABLE));
    r.settle();
    let all = routes(&mut r);
    let nine: Vec<_> = all.iter().filter(|x| x.1 == "10.9.0.0/16").collect();
    assert_eq!(nine.len(), 2);
    assert_eq!((nine[0].0, nine[1].0), (0, VRF));
    assert!(nine.iter().all(|x| x.2 == TND_ACT_FORWARD));
    assert!(all.contains(&(VRF, "10.1.0.1/32".into(), TND_ACT_TRAP)));
    assert_eq!(rif(&r, mac(1)).unwrap().vrf, VRF);
    assert_eq!(rif(&r, mac(2)).unwrap().vrf, 0);
    assert_eq!(rif(&r, mac(1)).unwrap().flags & TND_RIF_TRAP_ALL, 0);
    // hosts are found in their own table
    assert_eq!(r.chip.hosts.len(), 2);
    let slot = r.store.vrf_slot("red").unwrap();
    let said = r
        .store
        .explain_route_in(slot, "10.9.0.0/16".parse().unwrap());
    assert_eq!(said.key, "10.9.0.0/16 vrf red");
    assert!(said.in_hardware && said.target.contains("10.1.0.2"));
    assert!(
        r.store
            .explain_route("10.9.0.0/16".parse().unwrap())
            .target
            .contains("10.2.0.2")
    );
    let mut rows = Vec::new();
    r.store.routes(Family::V4, 0, 100, &mut rows);
    assert!(
        rows.iter()
            .any(|x| x.key() == "10.9.0.0/16 vrf red" && x.table == TABLE)
    );
    // a warm attach writes nothing again
    r.chip.fw.attach(true);
    r.chip.changed.clear();
    r.store.attach(Attach::Warm, 0);
    r.settle();
    assert_eq!(r.chip.changed, Vec::<String>::new());
}

/// The same of IPv6, and routes that lead nowhere: each table has its own.
#[test]
fn ipv6_routes_of_two_tables_stand_side_by_side() {
    let mut r = rig();
    r.up(forwarding(Family::V6, ConfScope::All));
    for i in [11, 12] {
        r.up(forwarding(Family::V6, ConfScope::Interface(i)));
        r.up(neigh(i, "fe80::2", 80 + i as u8));
    }
    // in red everything is the other way round
    let kinds = [
        RouteType::Blackhole,
        RouteType::Unreachable,
        RouteType::Prohibit,
        RouteType::Throw,
    ];
    let nowhere = |n: usize, kind| {
        let mut x = route(&format!("2001:db8:6{n}::/48"), RouteNextHops::None);
        x.kind = kind;
        Object::Route(x)
    };
    for prefix in ["::/0", "2001:db8:9::/48"] {
        r.up(via(prefix, 12, "fe80::2"));
        r.up(in_table(via(prefix, 11, "fe80::2"), TABLE));
    }
    for n in 0..4 {
        r.up(nowhere(n, kinds[n]));
        r.up(in_table(nowhere(n, kinds[3 - n]), TABLE));
    }
    r.settle();
    let at = |r: &mut Rig, prefix: &str| {
        let net: ipnet::Ipv6Net = prefix.parse().unwrap();
        let mut all: Vec<(u16, u8)> = r
            .chip
            .dump::<tnd_route>(TND_CLS_ROUTE)
            .iter()
            .filter(|x| x.family == TND_AF_INET6 && x.addr == net.addr().octets())
            .filter(|x| x.prefix_len == net.prefix_len())
            .map(|x| (x.vrf, x.action))
            .collect();
        all.sort_unstable();
        all
    };
    let (forward, trap, drop) = (TND_ACT_FORWARD, TND_ACT_TRAP, TND_ACT_DROP);
    for prefix in ["::/0", "2001:db8:9::/48"] {
        assert_eq!(
            at(&mut r, prefix),
            [(0, forward), (VRF, forward)],
            "{prefix}"
        );
    }
    for (n, want) in [
        (0, [drop, trap]),
        (1, [trap; 2]),
        (2, [trap; 2]),
        (3, [trap, drop]),
    ] {
        let there = at(&mut r, &format!("2001:db8:6{n}::/48"));
        assert_eq!(there, [(0, want[0]), (VRF, want[1])], "{:?}", kinds[n]);
    }
    // one table's goes, the other's stays
    r.del(Key::Route(key("2001:db8:60::/48")));
    r.del(Key::Route(key("2001:db8:9::/48")));
    r.settle();
    assert_eq!(at(&mut r, "2001:db8:60::/48"), [(VRF, trap)]);
    assert_eq!(at(&mut r, "2001:db8:9::/48"), [(VRF, forward)]);
    r.del(Key::Link(RED));
    r.up(Object::Link(swp(1)));
    r.settle();
    assert_eq!(at(&mut r, "2001:db8:9::/48"), []);
    assert_eq!(at(&mut r, "2001:db8:63::/48"), [(0, trap)]);
    r.chip.accounting();
}

#[test]
fn an_interface_moves_into_a_vrf_and_out() {
    let mut r = rig();
    r.up(via("10.9.0.0/16", 12, "10.2.0.2"));
    r.settle();
    for _ in 0..3 {
        // the kernel sets it down and up: addresses stay, routes are new ones
        r.del(Key::Route(key("10.9.0.0/16")));
        r.del(Key::Route(key("10.2.0.0/24")));
        r.del(Key::Neigh(12, "10.2.0.2".parse().unwrap()));
        in_red(&mut r, 2);
        r.up(in_table(via("10.9.0.0/16", 12, "10.2.0.2"), TABLE));
        r.settle();
        assert_eq!(rif(&r, mac(2)).unwrap().vrf, VRF);
        let all = routes(&mut r);
        assert!(
            all.contains(&(VRF, "10.9.0.0/16".into(), TND_ACT_FORWARD)),
            "{all:?}"
        );
        let out = |p: &str| {
            Key::Route(RouteKey {
                table: TABLE,
                ..key(p)
            })
        };
        r.del(out("10.9.0.0/16"));
        r.del(out("10.2.0.0/24"));
        r.del(out("10.2.0.1/32"));
        r.del(Key::Neigh(12, "10.2.0.2".parse().unwrap()));
        interface(&mut r, 2);
        r.up(via("10.9.0.0/16", 12, "10.2.0.2"));
        r.settle();
        assert_eq!(rif(&r, mac(2)).unwrap().vrf, 0);
        assert!(routes(&mut r).contains(&(0, "10.9.0.0/16".into(), TND_ACT_FORWARD)));
    }
    // without any event about routes in between, nothing hangs either
    r.up(Object::Link(Link {
        master: RED,
        ..swp(2)
    }));
    r.settle();
    assert_eq!(rif(&r, mac(2)).unwrap().vrf, VRF);
}

/// The kernel makes them for packets of its own, and says nothing: no audit may ask for them.
#[test]
fn neighbours_of_the_vrf_device_itself_are_none() {
    let mut r = rig();
    r.settle();
    let before = r.store.neighbours();
    r.up(neigh(RED, "10.1.0.1", 170));
    r.settle();
    assert_eq!(r.store.neighbours(), before);
}

#[test]
fn a_vrf_goes_with_all_of_its_table() {
    let mut r = rig();
    let wanted = |r: &mut Rig| r.chip.dump::<tnd_vrf>(TND_CLS_VRF).len();
    assert_eq!(wanted(&mut r), 2, "the default one and red");
    r.del(Key::Link(RED));
    r.up(Object::Link(swp(1)));
    r.settle();
    assert_eq!(wanted(&mut r), 1);
    assert!(routes(&mut r).iter().all(|x| x.0 == 0));
    assert_eq!(rif(&r, mac(1)).unwrap().vrf, 0);
    // again, with routes that came before it: they are asked for
    assert!(!r.store.take_resync());
    r.up(in_table(via("10.8.0.0/16", 12, "10.2.0.2"), TABLE));
    r.up(red());
    assert!(r.store.take_resync() && !r.store.take_resync());
    r.up(in_table(via("10.8.0.0/16", 12, "10.2.0.2"), TABLE));
    r.settle();
    assert!(routes(&mut r).contains(&(VRF, "10.8.0.0/16".into(), TND_ACT_FORWARD)));
    r.chip.accounting();
}

#[test]
fn what_the_chip_would_answer_otherwise_traps() {
    let mut r = rig();
    let red_traps = |r: &mut Rig| {
        r.settle();
        rif(r, mac(1)).unwrap().flags & TND_RIF_TRAP_ALL != 0
    };
    // local first: own addresses of other VRFs would answer
    rules(&mut r, 0);
    assert!(red_traps(&mut r));
    let why = words(&r.store.port_reason(11));
    assert!(why.contains("looks up the table local (rule 0)"), "{why}");
    assert_eq!(
        rif(&r, mac(2)).unwrap().flags & TND_RIF_TRAP_ALL,
        0,
        "the default VRF is not touched"
    );
    for f in [Family::V4, Family::V6] {
        let Object::Rule(x) = rule(f, 0, TABLE_LOCAL, false) else {
            panic!()
        };
        r.del(Key::Rule(x));
    }
    assert!(!red_traps(&mut r));
    let Object::Link(l) = red() else { panic!() };
    r.up(Object::Link(Link {
        admin_up: false,
        ..l
    }));
    assert!(red_traps(&mut r));
    assert!(words(&r.store.port_reason(11)).contains("red is down"));
    r.up(red());
    assert!(!red_traps(&mut r));
}

#[test]
fn no_room_for_a_vrf_is_told_and_its_packets_go_to_the_cpu() {
    let mut r = Rig::new("tiny", Policy::Trap);
    r.begin();
    rules(&mut r, 32765);
    for n in 0..5u32 {
        let Object::Link(l) = red() else { panic!() };
        r.up(Object::Link(Link {
            ifindex: RED + n,
            name: format!("red{n}"),
            kind: LinkKind::Vrf { table: TABLE + n },
            ..l
        }));
    }
    let last = RED + 4;
    r.up(Object::Link(Link {
        master: last,
        ..swp(1)
    }));
    r.up(addr(11, "10.1.0.1/24"));
    r.up(in_table(via("10.1.0.0/24", 11, ""), TABLE + 4));
    r.end();
    r.store.attach(Attach::Cold, 0);
    r.settle();
    assert_eq!(rif(&r, mac(1)), None);
    let slot = r.store.vrf_slot("red4").unwrap();
    let said = r
        .store
        .explain_route_in(slot, "10.1.0.0/24".parse().unwrap());
    assert!(!said.in_hardware);
    assert!(
        words(&said.reason).contains("full (needs 1, free 0 of"),
        "{said:?}"
    );
    // room comes
    r.del(Key::Link(RED));
    r.settle();
    assert!(rif(&r, mac(1)).is_some());
    r.chip.accounting();
}

#[test]
fn a_policy_rule_traps_what_it_may_look_at() {
    let mut r = rig();
    r.up(forwarding(Family::V6, ConfScope::All));
    for i in [11, 12] {
        r.up(forwarding(Family::V6, ConfScope::Interface(i)));
    }
    r.settle();
    let both = TND_RIF_V4 | TND_RIF_V6;
    let forwards = |r: &mut Rig, n| {
        r.settle();
        rif(r, mac(n)).unwrap().flags & both
    };
    assert_eq!((forwards(&mut r, 1), forwards(&mut r, 2)), (both, both));
    let mine = |iif: &str| Rule {
        family: Family::V4,
        priority: 500,
        table: 99,
        is_default: false,
        l3mdev: false,
        iif: iif.into(),
        text: "from 10.1.0.0/24 lookup 99".into(),
    };
    for (iif, one, two) in [
        ("", TND_RIF_V6, TND_RIF_V6),
        ("swp2", both, TND_RIF_V6),
        ("red", TND_RIF_V6, both),
        ("eth7", both, both),
    ] {
        r.up(Object::Rule(mine(iif)));
        assert_eq!(
            (forwards(&mut r, 1), forwards(&mut r, 2)),
            (one, two),
            "iif {iif}"
        );
        if two != both {
            let why = words(&r.store.port_reason(12));
            assert_eq!(why, "policy rule \"from 10.1.0.0/24 lookup 99\"");
        }
        r.del(Key::Rule(mine(iif)));
        assert_eq!((forwards(&mut r, 1), forwards(&mut r, 2)), (both, both));
    }
}

/// Where packets come in says whose routes the kernel looks at: for the counts of its slow path.
#[test]
fn a_place_has_the_vrf_of_its_interface() {
    let mut r = rig();
    let red = r.store.vrf_slot("red").unwrap();
    assert_eq!(r.store.slot_at(1, 0, 0), red);
    assert_eq!(r.store.slot_at(2, 0, 0), 0);
    assert_eq!(r.store.slot_at(1, 5, 0), 0, "nothing is on that VLAN");
    for (n, slot) in [(1, red), (2, 0)] {
        let addr = format!("10.{n}.0.9");
        r.up(neigh(10 + n, &addr, 9));
        let e = &r.store.explain_neighbour(addr.parse().unwrap())[0];
        assert_eq!(
            (e.slot, e.devices.as_slice()),
            (slot, &[format!("swp{n}")][..])
        );
    }
}

/// A VRF comes while another source tells all that it has: what its own source had said of the table is asked for again. Where its own
/// source is telling, the routes come behind it.
#[test]
fn a_vrf_asks_for_its_routes_whoever_else_is_telling() {
    let (own, other) = (SourceId(1), SourceId(7));
    let vrf = |ifindex, table| {
        Object::Link(Link {
            ifindex,
            kind: LinkKind::Vrf { table },
            ..swp(1)
        })
    };
    for (telling, asks) in [(other, true), (own, false)] {
        let mut store = Store::new(Config::default());
        store.set_sources(&[(own, vec![1]), (other, vec![2])]);
        store.apply(Event::BeginSync(telling, KindSet::ALL), 1);
        store.apply(Event::Upsert(own, vrf(RED, 10)), 1);
        assert_eq!(store.take_resync(), asks, "{telling:?}");
    }
}
