//! One test for each thing that the kernel does in silence, and for each way that messages get lost.

use std::time::Duration;

use tandem_linux::netlink::{Nexthops, Requests, Route, RouteNexthop, blast};
use tandem_store::model::{FdbKind, LinkKind, Object, RouteNextHops};

use super::super::Config;
use super::{Lab, PATIENCE, mirror};
use tandem_core::source::{Message, Source, Write};

pub(super) const TWO: &str = "link add v1 type veth peer name p1
link add v2 type veth peer name p2
link set p1 up
link set p2 up
link set v1 up
link set v2 up
addr add 10.0.1.1/24 dev v1
addr add 10.0.2.1/24 dev v2
addr add 2001:db8:1::1/64 dev v1 nodad
";

pub(super) fn lab(what: &str, more: &str) -> Option<Lab> {
    let mut lab = Lab::with(what, &format!("{TWO}{more}"), Config::default())?;
    lab.sync();
    Some(lab)
}

impl Lab {
    /// The mirror's routes with this text in them.
    fn routes_with(&mut self, text: &str) -> Vec<String> {
        self.sync();
        let names = mirror::names(&self.json("link show"));
        let mut all = self.mirror.routes(&names);
        all.retain(|r| r.contains(text));
        all
    }

    pub(super) fn index(&self, name: &str) -> u32 {
        let links = self.mirror.get(|o| match o {
            Object::Link(l) if l.name == name => Some(l.ifindex),
            _ => None,
        });
        *links.first().unwrap()
    }
}

#[test]
fn link_down_takes_ipv4_routes() {
    let Some(mut lab) = lab("down", "route add 172.16.0.0/16 via 10.0.1.2\n") else {
        return;
    };
    assert_eq!(lab.routes_with("172.16").len(), 1);
    lab.ip("link set v1 down\n");
    assert_eq!(lab.routes_with("172.16").len(), 0);
    assert!(
        !lab.routes_with("10.0.1.1/32").is_empty(),
        "the own address stays"
    );
    lab.check_routes("link down");
}

#[test]
fn link_down_lets_the_worse_metric_alias_act() {
    let Some(mut lab) = lab(
        "alias",
        "route add 172.16.0.0/16 via 10.0.1.2 metric 10\nroute add 172.16.0.0/16 via 10.0.2.2 metric 20\n",
    ) else {
        return;
    };
    lab.ip("link set v1 down\n");
    let left = lab.routes_with("172.16");
    assert_eq!(left.len(), 1);
    assert!(left[0].contains("m20"), "{left:?}");
    lab.check_routes("alias");
}

#[test]
fn link_down_marks_next_hops_dead_and_up_revives_them() {
    let Some(mut lab) = lab(
        "next-hops",
        "route add 172.16.0.0/16 nexthop via 10.0.1.2 nexthop via 10.0.2.2 weight 3\n",
    ) else {
        return;
    };
    assert!(!lab.routes_with("172.16")[0].contains("dead"));
    lab.ip("link set v1 down\n");
    assert!(lab.routes_with("172.16")[0].contains("dead"));
    lab.check_routes("a next hop dead");
    lab.ip("link set v1 up\n");
    lab.check_routes("a next hop revived");
    lab.ip("link set v2 down\nlink set v1 down\n");
    assert_eq!(lab.routes_with("172.16").len(), 0, "no next hop left");
    lab.check_routes("no next hop left");
}

#[test]
fn carrier_loss_marks_routes_linkdown() {
    let Some(mut lab) = lab("carrier", "route add 172.16.0.0/16 via 10.0.1.2\n") else {
        return;
    };
    lab.ip("link set p1 down\n");
    lab.check_routes("carrier lost");
    lab.lasts("marked linkdown", |lab| match lab.routes_with("172.16") {
        routes if routes[0].contains("linkdown") => Ok(()),
        routes => Err(format!("{routes:?}")),
    });
    lab.ip("link set p1 up\n");
    lab.check_routes("carrier back");
}

#[test]
fn link_down_takes_nexthop_objects_their_groups_and_routes() {
    let Some(mut lab) = lab(
        "nhdown",
        "nexthop add id 1 via 10.0.1.2 dev v1
nexthop add id 2 via 10.0.2.2 dev v2
nexthop add id 10 group 1/2,3
nexthop add id 11 group 1
route add 172.16.0.0/16 nhid 1
route add 172.17.0.0/16 nhid 10
route add 172.18.0.0/16 nhid 11
nexthop add id 6 via fe80::2 dev v1
route add 2001:db8:6::/48 nhid 6
",
    ) else {
        return;
    };
    let ids = |lab: &Lab| {
        lab.mirror.get(|o| match o {
            Object::Nexthop(n) => Some(n.id),
            _ => None,
        })
    };
    assert_eq!(ids(&lab).len(), 5);
    lab.ip("link set v1 down\n");
    let left = lab.routes_with("nhid");
    assert_eq!(left.len(), 1, "{left:?}");
    let mut now = ids(&lab);
    now.sort_unstable();
    assert_eq!(now, [2, 10]);
    lab.check_routes("next-hop objects");
    // the same ids come back for other things: the old routes must not
    lab.ip("link set v1 up\nnexthop add id 1 via 10.0.1.3 dev v1\n");
    assert_eq!(lab.routes_with("nhid 1\"").len(), 0);
    lab.check_routes("ids used again");
}

#[test]
fn a_deleted_nexthop_object_takes_its_routes() {
    let Some(mut lab) = lab(
        "nhdel",
        "nexthop add id 1 via 10.0.1.2 dev v1\nroute add 172.16.0.0/16 nhid 1\n",
    ) else {
        return;
    };
    assert_eq!(lab.routes_with("nhid 1").len(), 1);
    lab.ip("nexthop del id 1\n");
    assert_eq!(lab.routes_with("nhid 1").len(), 0);
    lab.check_routes("deleted next-hop object");
}

#[test]
fn a_deleted_address_takes_routes_that_prefer_it() {
    let Some(mut lab) = lab(
        "prefsrc",
        "addr add 10.0.1.9/32 dev v1
route add 172.16.0.0/16 via 10.0.2.2 src 10.0.1.9
addr add 2001:db8:9::9/128 dev v1 nodad
route add 2001:db8:a::/48 via fe80::2 dev v2 src 2001:db8:9::9
",
    ) else {
        return;
    };
    assert_eq!(lab.routes_with("172.16").len(), 1);
    lab.ip("addr del 10.0.1.9/32 dev v1\naddr del 2001:db8:9::9/128 dev v1\n");
    assert_eq!(lab.routes_with("172.16").len(), 0);
    lab.check_routes("preferred source");
}

#[test]
fn a_deleted_link_takes_everything() {
    let Some(mut lab) = lab(
        "del",
        "route add 172.16.0.0/16 nexthop via 10.0.1.2 nexthop via 10.0.2.2
route add 2001:db8:b::/48 nexthop via fe80::1 dev v1 nexthop via fe80::2 dev v2
neigh add 10.0.1.7 lladdr 02:00:00:00:00:07 dev v1
",
    ) else {
        return;
    };
    let index = lab.index("v1");
    lab.ip("link del v1\n");
    lab.check_routes("deleted link");
    let left = lab.mirror.get(|o| match o {
        Object::Neigh(n) if n.ifindex == index => Some(()),
        Object::Addr(a) if a.ifindex == index => Some(()),
        Object::Link(l) if l.ifindex == index => Some(()),
        _ => None,
    });
    assert_eq!(left.len(), 0);
}

#[test]
fn a_snapshot_holds_what_was_sent() {
    let Some(mut lab) = lab(
        "snap",
        "link add br0 type bridge
link set v2 master br0
link set br0 up
rule add pref 100 from 10.9.0.0/16 lookup 77
nexthop add id 1 via 10.0.1.2 dev v1
route add 172.16.0.0/16 nhid 1
route append 172.16.0.0/16 via 10.0.1.3 tos 4
neigh add 10.0.1.7 lladdr 02:00:00:00:00:07 dev v1
",
    ) else {
        return;
    };
    lab.exec(&[
        "bridge",
        "fdb",
        "add",
        "02:00:00:00:00:99",
        "dev",
        "v2",
        "master",
        "static",
    ]);
    // passing neighbour states aside
    let text = |o: &Object| match o {
        Object::Neigh(n) => format!("{} {:?}", n.ifindex, n.addr),
        Object::Netconf(_) => String::new(), // comes in two halves
        other => format!("{other:?}"),
    };
    let text = |o: &Object| Some(text(o)).filter(|t| !t.is_empty());
    let mut fresh = Vec::new();
    // the kernel tells of a tentative address when it is one no longer
    lab.lasts("a snapshot", |lab| {
        let snapshot = lab.in_ns(|| lab.source.snapshot().unwrap());
        let mut ours = lab.mirror.get(text);
        fresh = snapshot.iter().filter_map(text).collect();
        ours.sort();
        fresh.sort();
        match ours == fresh {
            true => Ok(()),
            false => Err(format!("ours: {ours:#?}\nthe snapshot's: {fresh:#?}")),
        }
    });
    for kind in [
        "Link(",
        "Rule(",
        "Nexthop(",
        "Fdb(",
        "Route(",
        "Settings(",
        "Addr(",
    ] {
        assert!(fresh.iter().any(|o| o.starts_with(kind)), "{kind}");
    }
    let custom = lab.mirror.get(|o| match o {
        Object::Rule(r) if !r.is_default => Some(r.text.clone()),
        _ => None,
    });
    assert_eq!(custom, ["from 10.9.0.0/16 lookup 77"]);
    lab.ip("rule del pref 100\n");
    lab.sync();
    let rules = lab
        .mirror
        .get(|o| matches!(o, Object::Rule(_)).then_some(()));
    assert_eq!(rules.len(), 5, "three of IPv4, two of IPv6");
}

#[test]
fn bridges_ports_and_write_back() {
    let Some(mut lab) = lab(
        "bridge",
        "link add br0 type bridge ageing_time 12345 mcast_snooping 0\n",
    ) else {
        return;
    };
    lab.ip("link set v1 master br0\nlink set v2 master br0\nlink set br0 up\n");
    let learn = |ifindex, mac| Write::FdbLearned {
        ifindex,
        mac,
        vlan: 0,
    };
    lab.sync();
    let (v1, v2) = (lab.index("v1"), lab.index("v2"));
    let bridge = lab.mirror.get(|o| match o {
        Object::Link(l) if l.name == "br0" => Some(l.kind.clone()),
        _ => None,
    });
    let LinkKind::Bridge(info) = &bridge[0] else {
        panic!("{bridge:?}")
    };
    assert_eq!((info.ageing_s, info.mcast_snooping), (124, false));
    let mut writer = lab.in_ns(|| lab.source.writer().unwrap());
    let macs = [[2, 0, 0, 0, 1, 1], [2, 0, 0, 0, 1, 2]];
    let writes = [
        Write::Learning {
            ifindex: v1,
            on: false,
        },
        learn(v1, macs[0]),
        learn(v1, macs[1]),
        learn(v2, macs[1]), // it moved
        Write::FdbAged {
            ifindex: v1,
            mac: [2, 0, 0, 0, 9, 9], // was never there: no failure
            vlan: 0,
        },
    ];
    writer
        .write(&writes, &mut |i, e| panic!("{i}: {e}"))
        .unwrap();
    lab.sync();
    let mut learned = lab.mirror.get(|o| match o {
        Object::Fdb(f) if f.kind == FdbKind::ExternLearn => Some((f.mac, f.ifindex)),
        _ => None,
    });
    learned.sort_unstable();
    assert_eq!(learned, [(macs[0], v1), (macs[1], v2)]);
    let learning = lab.mirror.get(|o| match o {
        Object::Link(l) => l.bridge_port.map(|p| (l.ifindex, p.learning)),
        _ => None,
    });
    assert!(
        learning.contains(&(v1, false)) && learning.contains(&(v2, true)),
        "{learning:?}"
    );
    let aged = Write::FdbAged {
        ifindex: v1,
        mac: macs[0],
        vlan: 0,
    };
    writer.write(&[aged], &mut |_, e| panic!("{e}")).unwrap();
    // a refusal has its number: no bridge port, no learning flag
    let mut refused = Vec::new();
    let lo = Write::Learning {
        ifindex: 1,
        on: false,
    };
    writer
        .write(&[aged, lo], &mut |i, _| refused.push(i))
        .unwrap();
    assert_eq!(refused, [1]);
    lab.ip("link set v2 nomaster\n");
    lab.sync();
    let fdb = lab.mirror.get(|o| match o {
        Object::Fdb(f) if f.kind == FdbKind::ExternLearn => Some(f.mac),
        _ => None,
    });
    assert_eq!(fdb.len(), 0, "the port left with its entries");
    let v2_port = lab.mirror.get(|o| match o {
        Object::Link(l) if l.ifindex == v2 => Some((l.master, l.bridge_port)),
        _ => None,
    });
    assert_eq!(v2_port, [(0, None)]);
}

/// Its own address's route stays, with next hops that the kernel doesn't call dead: no reason for doubt without end.
#[test]
fn a_bridge_with_an_address_goes_down() {
    let Some(mut lab) = lab(
        "bridgedown",
        "link add br0 type bridge\nlink set br0 up\naddr add 10.0.3.1/24 dev br0\n",
    ) else {
        return;
    };
    lab.ip("link set br0 down\n");
    assert_eq!(lab.routes_with("10.0.3.0/24").len(), 0);
    assert_eq!(lab.routes_with("10.0.3.1/32").len(), 1);
    lab.check_routes("bridge down");
}

#[test]
fn neighbours_are_resolved_on_demand() {
    let Some(mut lab) = lab("neigh", "") else {
        return;
    };
    let v1 = lab.index("v1");
    let mut writer = lab.in_ns(|| lab.source.writer().unwrap());
    let addr = |n: u8| std::net::IpAddr::from([10, 0, 1, n]);
    let mut resolve = |n| {
        let write = Write::NeighUse {
            ifindex: v1,
            addr: addr(n),
        };
        writer
            .write(&[write], &mut |i, e| panic!("{i}: {e}"))
            .unwrap();
    };
    resolve(7);
    // the kernel tells of it when it is resolved or given up
    let have = lab.json("neigh show").to_string();
    assert!(have.contains("10.0.1.7"), "{have}");
    lab.ip("neigh replace 10.0.1.7 lladdr 02:00:00:00:00:07 dev v1\n");
    lab.sync();
    let known = lab.mirror.get(|o| match o {
        Object::Neigh(n) => Some((n.addr, n.mac)),
        _ => None,
    });
    assert_eq!(known, [(addr(7), [2, 0, 0, 0, 0, 7])]);
    // one that is there and out of date is asked for again: the kernel waits for long before it does
    assert!(lab.exec(&[
        "sysctl",
        "-qw",
        "net.ipv4.neigh.v1.delay_first_probe_time=1000"
    ]));
    lab.ip("neigh replace 10.0.1.8 lladdr 02:00:00:00:00:08 dev v1 nud stale\n");
    resolve(8);
    let have = lab.json("neigh show 10.0.1.8 dev v1").to_string();
    assert!(have.contains("DELAY") || have.contains("PROBE"), "{have}");
}

/// What is set by hand while switchd believes that nobody is there stays as it was set.
#[test]
fn a_neighbour_set_by_hand_is_not_asked_for() {
    let Some(lab) = lab("neighhand", "") else {
        return;
    };
    let v1 = lab.index("v1");
    let mut writer = lab.in_ns(|| lab.source.writer().unwrap());
    for (addr, state) in [
        ("10.0.1.7", "permanent"),
        ("10.0.1.8", "noarp"),
        ("fd00::7", "permanent"),
    ] {
        lab.ip(&format!(
            "neigh replace {addr} lladdr 02:00:00:00:00:07 dev v1 nud {state}\n"
        ));
        let write = Write::NeighUse {
            ifindex: v1,
            addr: addr.parse().unwrap(),
        };
        writer
            .write(&[write], &mut |i, e| panic!("{i}: {e}"))
            .unwrap();
        let have = lab
            .json(&format!("neigh show {addr} dev v1 nud all"))
            .to_string();
        assert!(have.contains(&state.to_uppercase()), "{have}");
    }
}

pub(super) fn many_routes(ifindex: u32, n: u32) -> Vec<Route> {
    (0..n)
        .map(|i| {
            let [_, a, b, c] = i.to_be_bytes();
            let net = ipnet::Ipv4Net::new([20 + a, b, c, 0].into(), 24).unwrap();
            Route {
                table: 254,
                dst: net.into(),
                tos: 0,
                metric: 20,
                kind: 1,
                scope: 0,
                protocol: 186,
                flags: 0,
                nh_id: 0,
                nexthops: Nexthops::One(RouteNexthop {
                    ifindex,
                    gateway: Some([10, 0, 1, 2].into()),
                    weight: 1,
                    flags: 0,
                    encap: false,
                }),
                src: None,
                prefsrc: None,
                mtu: 0,
                other: 0,
            }
        })
        .collect()
}

/// The reader sleeps while the kernel's and our own buffers overflow; afterwards all is right, and
/// nothing that was right was taken away meanwhile.
#[test]
fn lost_notifications_are_made_good_by_a_full_dump() {
    for (what, config) in [
        (
            "enobufs",
            Config {
                receive_buffer: 4096,
                ..Config::default()
            },
        ),
        (
            "backlog",
            Config {
                backlog: 20_000,
                channel: 2,
                ..Config::default()
            },
        ),
    ] {
        let Some(mut lab) = Lab::with(what, TWO, config) else {
            return;
        };
        lab.sync();
        let v1 = lab.index("v1");
        let routes = many_routes(v1, 5000);
        let out =
            lab.in_ns(|| blast::add_routes(&mut Requests::open().unwrap(), &routes, 0).unwrap());
        assert_eq!(out.accepted, routes.len(), "{:?}", out.first_error);
        lab.in_ns(|| blast::del_routes(&mut Requests::open().unwrap(), &routes[..2500]).unwrap());
        lab.sync();
        let status = lab.source.status();
        assert!(
            status.overruns > 0 && status.resyncs > 1,
            "{what}: {status:?}"
        );
        assert!(lab.mirror.syncs > 1);
        let held = lab.mirror.get(|o| match o {
            Object::Route(r) if matches!(r.nexthops, RouteNextHops::One(h) if h.gateway.is_some()) => Some(()),
            _ => None,
        });
        assert_eq!(held.len(), 2500, "{what}: {status:?}");
        lab.check_routes(what);
        lab.ip("link set v1 down\n");
        lab.check_routes(what);
    }
}

/// The same routes as IPv6.
pub(super) fn as_v6(routes: &mut [Route]) {
    for r in routes {
        let ipnet::IpNet::V4(net) = r.dst else {
            continue;
        };
        let a = u128::from(u32::from(net.addr()));
        let net = ipnet::Ipv6Net::new((0x2001_0db8_u128 << 96 | a << 64).into(), 64).unwrap();
        r.dst = net.into();
        if let Nexthops::One(h) = &mut r.nexthops {
            h.gateway = Some("fe80::99".parse().unwrap());
        }
    }
}

/// A full dump in the middle of changes: never an end of a dump with something missing.
fn full_dump_under_churn(what: &str, v6: bool, dumps: u32) {
    let Some(mut lab) = lab(what, "") else { return };
    let v1 = lab.index("v1");
    // the moving ones before and among the steady ones: a dump that counts loses its place
    let mut all = many_routes(v1, 40_000);
    if v6 {
        as_v6(&mut all);
    }
    let (mut steady, mut moving) = (Vec::new(), Vec::new());
    for (i, route) in all.into_iter().enumerate() {
        if i < 1000 || i % 2 == 0 {
            moving.push(route);
        } else {
            steady.push(route);
        }
    }
    let keys: std::collections::HashSet<_> = steady.iter().map(|r| r.dst).collect();
    lab.in_ns(|| blast::add_routes(&mut Requests::open().unwrap(), &steady, 0).unwrap());
    lab.sync();
    let ns = tandem_linux::netns::open(&lab.name).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::os::fd::AsFd;
            tandem_linux::netns::run_in(ns.as_fd(), || {
                let mut socket = Requests::open().unwrap();
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let out = blast::add_routes(&mut socket, &moving, 0).unwrap();
                    assert_eq!(out.refused, 0, "{:?}", out.first_error);
                    blast::del_routes(&mut socket, &moving).unwrap();
                }
                Ok(())
            })
            .unwrap();
        });
        for round in 0..dumps {
            lab.source.resync();
            let mut ended = false;
            while !ended {
                let messages = lab.source.messages();
                let message = messages.recv_timeout(2 * PATIENCE).unwrap();
                let Message::Events(events) = message else {
                    continue;
                };
                for event in events {
                    let end = matches!(event, tandem_store::model::Event::EndSync(_));
                    lab.mirror.apply(event);
                    if end && !ended {
                        ended = true;
                        let there = lab.mirror.get(|o| match o {
                            Object::Route(r) if keys.contains(&r.key.prefix) => Some(()),
                            _ => None,
                        });
                        if there.len() != keys.len() {
                            stop.store(true, std::sync::atomic::Ordering::Relaxed);
                        }
                        assert_eq!(there.len(), keys.len(), "{what}, dump {round}");
                    }
                }
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    lab.check_routes("after the churn");
    eprintln!("{what}: {:?}", lab.source.status());
}

#[test]
fn a_full_dump_under_churn_takes_nothing_away() {
    full_dump_under_churn("churn4", false, 6);
}

#[test]
fn a_full_dump_under_churn_takes_nothing_away_v6() {
    full_dump_under_churn("churn6", true, 2);
}

/// Equal objects are not said again outside of dumps: nothing is rewritten that was right. The kernel makes addresses and routes by
/// itself, whenever it comes to it: a look during which it said anything is taken again.
#[test]
fn a_quiet_kernel_makes_no_events() {
    // with a bridge devices are read at each barrier, as sysctls are
    let more = "route add 172.16.0.0/16 via 10.0.1.2
link add br0 type bridge mcast_snooping 0
link set br0 up
";
    let Some(mut lab) = lab("quiet", more) else {
        return;
    };
    let until = std::time::Instant::now() + 2 * PATIENCE;
    for look in 0.. {
        // what was read up to the first counts is said before the second ones
        let first = lab.counts();
        if look == 0 {
            lab.ip("addr add 2001:db8:9::1/64 dev v1\n");
        }
        let before = lab.counts();
        for _ in 0..3 {
            lab.sync();
        }
        let after = lab.counts();
        if first.notifications != after.notifications {
            let now = std::time::Instant::now();
            assert!(now < until, "never quiet: {first:?}, {after:?}");
            std::thread::sleep(Duration::from_millis(100));
            continue;
        }
        assert!(look > 0, "an address came, and nobody said so: {after:?}");
        assert_eq!(before.events, after.events, "{before:?}, {after:?}");
        break;
    }
}

/// Prints how fast routes come through, from the kernel's notification to the core's side of the
/// channel, while the kernel adds them: `cargo test … -- --ignored --nocapture throughput`.
#[test]
#[ignore = "a measurement; wants an optimised build"]
fn throughput() {
    let Some(mut lab) = Lab::with("speed", TWO, Config::default()) else {
        return;
    };
    lab.sync();
    let n: u32 = 500_000;
    let routes = many_routes(lab.index("v1"), n);
    let (events, adding, total) = std::thread::scope(|scope| {
        let messages = lab.source.messages().clone();
        let reader = scope.spawn(move || {
            let mut events = 0;
            for message in messages.iter() {
                match message {
                    Message::Events(batch) => events += batch.len(),
                    Message::Barrier(7) => break,
                    _ => {}
                }
            }
            events
        });
        let start = std::time::Instant::now();
        lab.in_ns(|| blast::add_routes(&mut Requests::open().unwrap(), &routes, 0).unwrap());
        let adding = start.elapsed();
        lab.source.barrier(7);
        (reader.join().unwrap(), adding, start.elapsed())
    });
    let memory = std::fs::read_to_string("/proc/self/status").unwrap();
    let rss = memory
        .lines()
        .find(|l| l.starts_with("VmRSS"))
        .unwrap_or("");
    eprintln!(
        "{n} routes: the kernel took {adding:?}, all of it {total:?}, {events} events, {rss}, {:?}",
        lab.source.status()
    );
    let start = std::time::Instant::now();
    lab.source.resync();
    lab.source.barrier(8);
    for message in lab.source.messages().iter() {
        if message == Message::Barrier(8) {
            break;
        }
    }
    eprintln!(
        "full dump of {n} routes to the channel: {:?}",
        start.elapsed()
    );
    let start = std::time::Instant::now();
    lab.ip("link set v1 down\n");
    lab.source.barrier(9);
    let mut removed = 0;
    for message in lab.source.messages().iter() {
        match message {
            Message::Barrier(9) => break,
            Message::Events(batch) => removed += batch.len(),
            _ => {}
        }
    }
    eprintln!("link down: {removed} events after {:?}", start.elapsed());
}
