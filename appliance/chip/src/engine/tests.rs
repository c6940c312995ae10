// SPDX-License-Identifier: Apache-2.0
//! Whatever is refused, all is as it was.

use super::*;
use crate::steps::{Device, Wanted};
use crate::taps::NoKeeper;
use std::net::IpAddr;
use std::sync::Mutex;
use tandem_linux::eventfd::EventFd;
use tandem_swconfig::acl::{Entry, List, ListKind};
use tandem_swconfig::{Interface, Mode, Net, Route, Via, Vlan};
use tandem_swfrr::Line;
use tandem_vlans::{TapMaker, TapOf};

/// An IP stack that is asked for something so often, and then refuses once.
#[derive(Debug, Default)]
struct Fake {
    left: Option<usize>,
    /// The same, from there on.
    then: Option<usize>,
    devices: BTreeMap<Device, Wanted>,
    forward: bool,
    routes: BTreeMap<(Net<IpAddr>, u8), BTreeSet<Via>>,
    /// On devices; they go with those, or with a change of them.
    neighbours: BTreeMap<(Device, Ipv4Addr), [u8; 6]>,
    /// To routing protocols.
    said: Vec<String>,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Fake>>);

impl Shared {
    fn ask(&self, f: impl FnOnce(&mut Fake)) -> Result<(), String> {
        let mut fake = self.0.lock().unwrap();
        match fake.left {
            Some(0) => {
                // half of it is done
                f(&mut fake);
                fake.left = fake.then.take();
                return Err("refused".into());
            }
            Some(n) => fake.left = Some(n - 1),
            None => {}
        }
        f(&mut fake);
        Ok(())
    }
}

impl TapMaker for Shared {
    fn make(&mut self, vid: u16) -> Result<TapOf, String> {
        let device = Device::Vlan(vid);
        self.ask(|f| {
            f.devices.entry(device).or_default();
        })?;
        Ok(TapOf {
            device: 100 + u32::from(vid),
            mac: [2, 0, 0, 0, 0, 0x99],
        })
    }

    fn remove(&mut self, vid: u16) {
        let mut fake = self.0.lock().unwrap();
        fake.devices.remove(&Device::Vlan(vid));
        fake.neighbours
            .retain(|(at, _), _| *at != Device::Vlan(vid));
    }
}

impl Stack for Shared {
    fn set(&mut self, device: Device, wanted: &Wanted) -> Result<(), String> {
        self.ask(|f| {
            f.neighbours.retain(|(at, _), _| *at != device);
            match wanted == &Wanted::default() {
                true => f.devices.remove(&device),
                false => f.devices.insert(device, wanted.clone()),
            };
        })
    }

    fn forward(&mut self, on: bool) -> Result<(), String> {
        self.ask(|f| f.forward = on)
    }

    fn route(&mut self, to: Net<IpAddr>, far: u8, via: &BTreeSet<Via>) -> Result<(), String> {
        self.ask(|f| {
            match via.is_empty() {
                true => f.routes.remove(&(to, far)),
                false => f.routes.insert((to, far), via.clone()),
            };
        })
    }

    fn neighbour(
        &mut self,
        at: Device,
        address: Ipv4Addr,
        mac: Option<[u8; 6]>,
    ) -> Result<(), String> {
        self.ask(|f| {
            assert!(mac.is_none() || f.devices.contains_key(&at), "ENODEV");
            match mac {
                Some(mac) => f.neighbours.insert((at, address), mac),
                None => f.neighbours.remove(&(at, address)),
            };
        })
    }

    fn fixed(&mut self) -> Result<Vec<(Device, Ipv4Addr)>, String> {
        Ok(self.0.lock().unwrap().neighbours.keys().copied().collect())
    }

    fn routes(&mut self) -> Result<Vec<(Net<IpAddr>, u8)>, String> {
        Ok(self.0.lock().unwrap().routes.keys().copied().collect())
    }

    fn protocols(&mut self, now: &[Line]) -> Result<(), String> {
        let said = now.iter().map(|l| l.text.clone()).collect();
        self.ask(|f| f.said = said)
    }

    fn says(&self) -> Box<dyn Says> {
        Box::new(self.clone())
    }
}

impl Says for Shared {
    fn counters(&self) -> BTreeMap<String, [u64; 4]> {
        BTreeMap::new()
    }
}

/// A chip that refuses what it is told to.
#[derive(Clone, Default)]
struct FakeChip(Arc<Mutex<Vec<&'static str>>>);

impl Chip for FakeChip {
    fn settle(&self) -> Option<BTreeMap<String, String>> {
        // one more each time that it is asked, until there are no more
        let mut left = self.0.lock().unwrap();
        let now = left.pop().unwrap_or_default();
        left.is_empty().then(|| left.push(now));
        let refused = now.split_terminator(',');
        let why = |o: &str| {
            if o.starts_with("Member") {
                FOLLOWS
            } else {
                "vlan full"
            }
        };
        let all = refused.map(|o| (o.into(), why(o).into())).collect();
        (now != "silent").then_some(all)
    }

    fn ports(&self) -> Vec<PortState> {
        Vec::new()
    }

    /// Of port 1, in: five by the first rule, two by the second.
    fn matches(&self) -> BTreeMap<(u16, bool, u16), u64> {
        [((1, false, 1), 5), ((1, false, 2), 2), ((4, true, 1), 9)].into()
    }

    fn platform(&self, _: &Platform) -> Result<Vec<Vec<String>>, String> {
        Err("nothing below".into())
    }
}

fn engine() -> (ChipEngine, Shared, Switch) {
    let mac = [2, 0, 0, 0, 0, 0x99];
    let port = |n: u16| (n, format!("swp{n}"), [2, 0, 0, 0, 1, n as u8], 1000);
    let board = Board {
        mac,
        ports: (1..=4).map(port).collect(),
    };
    let switch = Switch::new(board.database());
    let stack = Shared::default();
    let bell = Arc::new(EventFd::new().unwrap());
    let taps = Arc::new(Taps::new(mac, bell, Arc::new(NoKeeper)));
    let engine = ChipEngine::new(board, switch.clone(), Box::new(stack.clone()), taps);
    (engine, stack, switch)
}

/// All that a configuration comes to.
fn all(switch: &Switch, stack: &Shared) -> String {
    let fake = stack.0.lock().unwrap();
    switch.ask(|d| {
        let taps: Vec<_> = (1..=4094).filter_map(|v| Some((v, d.tap(v)?))).collect();
        let fixed: Vec<_> = d.fixed().collect();
        let (vlans, ports) = (d.vlans(), d.ports());
        let kernel = (
            &fake.devices,
            fake.forward,
            &fake.routes,
            &fake.neighbours,
            &fake.said,
        );
        let rules = [1, 2, 3, 4].map(|n| [d.rules(n, false), d.rules(n, true)]);
        let groups = [1, 2, 3, 4].map(|n| (d.bridged(n), d.state(n)));
        format!("{vlans:?} {ports:?} {taps:?} {fixed:?} {kernel:?} {rules:?} {groups:?}")
    })
}

fn name(kind: Kind, number: u16) -> Name {
    Name { kind, number }
}

fn net(a: [u8; 4], prefix: u8) -> Net<Ipv4Addr> {
    Net {
        address: a.into(),
        prefix,
    }
}

fn address(a: [u8; 4]) -> Interface {
    Interface {
        ipv4: Some(net(a, 24)),
        ..Interface::new(&name(Kind::Vlan, 1))
    }
}

fn trunk() -> Interface {
    let mut i = Interface::new(&name(Kind::Gigabit, 1));
    i.switchport = Some(Switchport {
        mode: Mode::Trunk,
        allowed: Some([1, 2].into()),
        ..Switchport::default()
    });
    i
}

fn route(a: [u8; 4], via: Via) -> Route {
    let Net { address, prefix } = net(a, 16);
    Route {
        to: Net {
            address: address.into(),
            prefix,
        },
        via,
        distance: 1,
    }
}

/// Ports as a port-channel, in VLAN 1.
fn channel(config: &mut Config, number: u16, ports: &[u16]) {
    let group = name(Kind::PortChannel, number);
    config.interfaces.insert(group, Interface::new(&group));
    for n in ports {
        let port = name(Kind::Gigabit, *n);
        let mut of = Interface::new(&port);
        of.channel = Some(channel::Channel {
            number,
            mode: channel::Mode::On,
        });
        config.interfaces.insert(port, of);
    }
}

fn configs() -> [Config; 3] {
    let mut one = Config {
        routing: true,
        ..Config::default()
    };
    one.vlans.insert(2, Vlan::default());
    one.interfaces.insert(name(Kind::Gigabit, 1), trunk());
    let svi = name(Kind::Vlan, 2);
    one.interfaces.insert(svi, address([10, 2, 0, 1]));
    let gateway = Via::Gateway([10, 2, 0, 9].into());
    one.routes.insert(route([10, 77, 0, 0], gateway));
    let mac = [2, 0, 0, 0, 0, 7];
    one.stations.insert((2, mac), name(Kind::Gigabit, 1));
    // the second one is of no network, and waits for one
    one.neighbours.insert([10, 2, 0, 9].into(), mac);
    one.neighbours.insert([10, 9, 0, 9].into(), mac);
    let id = routing::Setting::RouterId([1, 1, 1, 1].into());
    one.routers.insert(routing::Router::Ospf(1), [id].into());
    let list = |permit| List {
        kind: ListKind::Standard,
        entries: [(
            10,
            Entry::Rule(tandem_swconfig::acl::Rule {
                permit,
                ..Default::default()
            }),
        )]
        .into(),
    };
    one.lists.insert("x".into(), list(true));
    one.interfaces
        .get_mut(&name(Kind::Gigabit, 1))
        .unwrap()
        .groups
        .ipv4_in = Some("x".into());
    channel(&mut one, 1, &[3, 4]);
    let mut two = Config {
        tag_native: true,
        aging: Some(10),
        ..Config::default()
    };
    let suspended = Vlan {
        name: Some("x".into()),
        suspended: true,
    };
    two.vlans = BTreeMap::from([(2, suspended), (3, Vlan::default())]);
    let svi = name(Kind::Vlan, 3);
    let mut routed = address([10, 2, 0, 1]);
    (routed.groups.ipv4_in, routed.groups.ipv4_out) = (Some("x".into()), Some("x".into()));
    two.interfaces.insert(svi, routed);
    two.lists.insert("x".into(), list(false));
    let mut access = Interface::new(&name(Kind::Gigabit, 2));
    access.switchport.as_mut().unwrap().access = 3;
    two.interfaces.insert(name(Kind::Gigabit, 2), access);
    let loopback = name(Kind::Loopback, 0);
    two.interfaces.insert(loopback, address([10, 9, 0, 1]));
    two.routes.insert(route([10, 77, 0, 0], Via::Null));
    two.stations.insert((2, mac), name(Kind::Gigabit, 4));
    channel(&mut two, 2, &[3]);
    two.stations
        .insert((1, [2, 0, 0, 0, 0, 8]), name(Kind::PortChannel, 2));
    two.routers
        .insert(routing::Router::Rip, BTreeSet::default());
    [Config::default(), one, two]
}

#[test]
fn whatever_is_refused_all_is_as_it_was() {
    for was in configs() {
        for now in configs() {
            let mut refusals = 0;
            for n in 0.. {
                let (engine, stack, switch) = engine();
                engine.apply(&Config::default(), &was).unwrap();
                let before = all(&switch, &stack);
                stack.0.lock().unwrap().left = Some(n);
                match engine.apply(&was, &now) {
                    Ok(()) => break,
                    Err(why) => assert_eq!(why, "refused"),
                }
                refusals += 1;
                assert_eq!(all(&switch, &stack), before, "{was:?} to {now:?}, {n}");
                // and it is no worse a beginning than any other
                engine.apply(&was, &now).unwrap();
                let (other, clean, fresh) = self::engine();
                other.apply(&Config::default(), &now).unwrap();
                assert_eq!(all(&switch, &stack), all(&fresh, &clean));
            }
            assert_eq!(refusals > 0, was != now, "{was:?} to {now:?}");
        }
    }
}

#[test]
fn that_the_way_back_is_refused_as_well_is_said() {
    let [was, now, _] = configs();
    let (engine, stack, _) = engine();
    {
        let mut fake = stack.0.lock().unwrap();
        (fake.left, fake.then) = (Some(2), Some(0));
    }
    let why = engine.apply(&was, &now).unwrap_err();
    assert_eq!(why, "refused; and what was before is not back: refused");
}

#[test]
fn what_the_chip_refuses_is_undone() {
    let [was, now, other] = configs();
    let (mut engine, stack, switch) = engine();
    let chip = FakeChip::default();
    engine.set_chip(Box::new(chip.clone()));
    let before = all(&switch, &stack);
    *chip.0.lock().unwrap() = vec!["Vlan 9,Member 1,Vlan 2", "Vlan 9"];
    let why = engine.apply(&was, &now).unwrap_err();
    assert_eq!(why, "the chip refuses Vlan 2: vlan full");
    assert_eq!(all(&switch, &stack), before);
    *chip.0.lock().unwrap() = vec!["Rule { body: 7 }", ""];
    let why = engine.apply(&was, &now).unwrap_err();
    assert_eq!(why, "the chip refuses a rule of an access list: vlan full");
    // what waits for room from before, be it from the start, says nothing of what is asked for now
    *chip.0.lock().unwrap() = vec!["Vlan 9", "Vlan 9,Vlan 2"];
    engine.apply(&was, &other).unwrap();
    // and one that did not answer before it did has said nothing of these either
    *chip.0.lock().unwrap() = vec!["Vlan 9", "silent"];
    engine.apply(&other, &now).unwrap();
}

#[test]
fn rules_count_for_the_lines_that_they_are_of() {
    let [was, now, _] = configs();
    let (mut engine, _, _) = engine();
    assert_eq!(engine.matches(), BTreeMap::new());
    engine.set_chip(Box::new(FakeChip::default()));
    engine.apply(&was, &now).unwrap();
    // the second one is the list's silent end
    let line = |name: &str| (false, name.to_owned(), 10);
    assert_eq!(engine.matches(), [(line("x"), 5)].into());
    engine.apply(&now, &was).unwrap();
    assert_eq!(engine.matches(), BTreeMap::new());
}

#[test]
fn what_can_not_be_is_said_before_anything_is_done() {
    let wide = Interface {
        ipv4: Some(net([10, 200, 0, 1], 8)),
        ..Interface::default()
    };
    let small = Interface {
        mtu: Some(1279),
        ipv6: [Net {
            address: "fd02::1".parse().unwrap(),
            prefix: 64,
        }]
        .into(),
        ..Interface::default()
    };
    let cases: [(Name, Interface, &str); 7] = [
        (name(Kind::Vlan, 9), small, "IPv6 asks for an MTU of 1280"),
        (
            name(Kind::Gigabit, 5),
            trunk(),
            "there is no GigabitEthernet1/0/5",
        ),
        (
            name(Kind::Vlan, 4095),
            Interface::default(),
            "4095 is no VLAN id",
        ),
        (
            name(Kind::PortChannel, 1),
            Interface::default(),
            "no routed ports",
        ),
        (
            name(Kind::Gigabit, 1),
            Interface::default(),
            "no routed ports",
        ),
        (
            name(Kind::Vlan, 9),
            address([10, 2, 0, 200]),
            "10.2.0.0/24 overlaps with 10.2.0.0/24 of Vlan2",
        ),
        (
            name(Kind::Vlan, 9),
            wide,
            "10.0.0.0/8 overlaps with 10.2.0.0/24 of Vlan2",
        ),
    ];
    let [_, was, _] = configs();
    let (engine, stack, switch) = engine();
    engine.apply(&Config::default(), &was).unwrap();
    let before = all(&switch, &stack);
    for (name, interface, words) in cases {
        let mut now = was.clone();
        now.routing = false;
        now.interfaces.insert(name, interface);
        let why = engine.apply(&was, &now).unwrap_err();
        assert!(why.contains(words), "{why}");
        assert_eq!(all(&switch, &stack), before);
    }
}

#[test]
fn a_port_channel_is_a_port_of_its_own() {
    let (engine, _, switch) = engine();
    let group = name(Kind::PortChannel, 1);
    let mut config = Config::default();
    channel(&mut config, 1, &[3, 4]);
    engine.apply(&Config::default(), &config).unwrap();
    let bridged = |n| switch.ask(|d| d.bridged(n));
    let port = tandem_vlans::port_of_group(1);
    assert_eq!([1, 3, 4].map(bridged), [1, port, port]);
    switch.change(|d| d.set_carrier(4, true));
    let link = |engine: &ChipEngine| engine.links().into_iter().find(|l| l.name == group);
    let there = link(&engine).unwrap();
    assert_eq!(
        (there.mac[5], there.carrier),
        (3, false),
        "the chip knows of no link"
    );
    // shut down it takes its ports with it
    let mut shut = config.clone();
    shut.interfaces.get_mut(&group).unwrap().shutdown = true;
    engine.apply(&config, &shut).unwrap();
    let up = |n| switch.ask(|d| d.ports()[&n].up);
    assert_eq!([1, 3, 4, port].map(up), [true, false, false, false]);
    engine.apply(&shut, &config).unwrap();
    assert_eq!([1, 3, 4, port].map(up), [true; 4]);
    // what is said of it is said of its number in the database
    let mut fixed = config.clone();
    fixed.stations.insert((1, [2, 0, 0, 0, 0, 8]), group);
    engine.apply(&config, &fixed).unwrap();
    assert_eq!(engine.stations()[0].port, Some(group));
    engine.apply(&fixed, &Config::default()).unwrap();
    assert!(link(&engine).is_none());
    assert_eq!(bridged(3), 3);
}

#[test]
fn what_a_port_channel_can_not_have() {
    let gi = |n| name(Kind::Gigabit, n);
    type Case = (&'static str, fn(&mut Config));
    let cases: [Case; 12] = [
        ("there is no Port-channel2", |c| {
            set(c, 3, |i| i.channel.as_mut().unwrap().number = 2)
        }),
        ("are those of Port-channel1", |c| {
            set(c, 3, |i| i.mtu = Some(2000))
        }),
        ("speaks no LACP", |c| {
            for n in [3, 4] {
                set(c, n, |i| {
                    i.channel.as_mut().unwrap().mode = channel::Mode::Active
                });
            }
        }),
        ("has an access list", |c| {
            set(c, 3, |i| i.groups.ipv4_in = Some("x".into()))
        }),
        ("has storm-control", |c| {
            set(c, 3, |i| {
                i.storm.unicast = Some(tandem_swconfig::monitor::Level::Pps(1))
            })
        }),
        ("has a policy", |c| {
            set(c, 3, |i| i.policy = Some("p".into()))
        }),
        ("has a monitor session", |c| {
            let session = tandem_swconfig::monitor::Session {
                destination: Some(name(Kind::Gigabit, 4)),
                ..Default::default()
            };
            c.sessions.insert(1, session);
        }),
        ("has a router or a static group of snooping", |c| {
            let of = c.igmp.vlans.entry(1).or_default();
            of.routers.insert(name(Kind::Gigabit, 4));
        }),
        ("has a router or a static group of snooping", |c| {
            let of = c.mld.vlans.entry(1).or_default();
            let group = "ff05::1".parse().unwrap();
            of.members.insert((group, name(Kind::Gigabit, 3)));
        }),
        ("only ports have limits", |c| {
            let group = name(Kind::PortChannel, 1);
            c.interfaces.get_mut(&group).unwrap().policy = Some("p".into());
        }),
        ("a station set by hand is behind that", |c| {
            c.stations
                .insert((1, [2, 0, 0, 0, 0, 8]), name(Kind::Gigabit, 3));
        }),
        (
            "Vlan1 has access list x, and Port-channel1 is in VLAN 1",
            |c| {
                let two = &configs()[2];
                c.lists = two.lists.clone();
                let svi = two.interfaces[&name(Kind::Vlan, 3)].clone();
                c.interfaces.insert(name(Kind::Vlan, 1), svi);
            },
        ),
    ];
    let mut was = Config::default();
    channel(&mut was, 1, &[3, 4]);
    let (engine, stack, switch) = engine();
    engine.apply(&Config::default(), &was).unwrap();
    let before = all(&switch, &stack);
    for (words, f) in cases {
        let mut now = was.clone();
        now.tag_native = true;
        f(&mut now);
        let why = engine.apply(&was, &now).unwrap_err();
        assert!(why.contains(words), "{words}: {why}");
        assert_eq!(all(&switch, &stack), before);
    }
    // eight ports are the most
    let mut many = Config::default();
    channel(&mut many, 1, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let ports: Vec<Name> = (1..=9).map(gi).collect();
    let why = tandem_swstack::check(&many, &ports, "chip").unwrap_err();
    assert_eq!(why, "Port-channel1 has 8 ports, which is the most");
    many.interfaces.remove(&gi(9));
    assert_eq!(tandem_swstack::check(&many, &ports, "chip"), Ok(()));
    many.stations
        .insert((1, [2, 0, 0, 0, 0, 8]), name(Kind::PortChannel, 2));
    assert!(tandem_swstack::check(&many, &ports, "chip").is_err());
    // and all by one mode
    set(&mut was, 3, |i| {
        i.channel.as_mut().unwrap().mode = channel::Mode::Active
    });
    let why = tandem_swstack::check(&was, &ports, "kernel").unwrap_err();
    assert!(why.ends_with("a port-channel has one"), "{why}");
}

fn set(config: &mut Config, port: u16, f: impl FnOnce(&mut Interface)) {
    f(config
        .interfaces
        .get_mut(&name(Kind::Gigabit, port))
        .unwrap());
}

#[test]
fn a_neighbour_set_by_hand_is_where_its_network_is() {
    let (mut engine, stack, _) = engine();
    let there = || stack.0.lock().unwrap().neighbours.clone();
    let mac = [2, 0, 0, 0, 0, 7];
    let key = (Device::Vlan(2), Ipv4Addr::new(10, 2, 0, 9));
    let mut now = Config::default();
    now.vlans.insert(2, Vlan::default());
    now.neighbours.insert(key.1, mac);
    engine.apply(&Config::default(), &now).unwrap();
    assert!(there().is_empty(), "no network");
    let mut next = now.clone();
    let svi = name(Kind::Vlan, 2);
    next.interfaces.insert(svi, address([10, 2, 0, 1]));
    engine.apply(&now, &next).unwrap();
    assert_eq!(there(), [(key, mac)].into());
    // another MTU, and the kernel may have dropped it
    let mut more = next.clone();
    if let Some(of) = more.interfaces.get_mut(&svi) {
        of.mtu = Some(1400);
    }
    engine.apply(&next, &more).unwrap();
    assert_eq!(there(), [(key, mac)].into());
    let mut shut = more.clone();
    if let Some(of) = shut.interfaces.get_mut(&svi) {
        of.shutdown = true;
    }
    engine.apply(&more, &shut).unwrap();
    assert!(there().is_empty());
    engine.apply(&shut, &more).unwrap();
    assert_eq!(there(), [(key, mac)].into());
    // who begins anew takes away what is set no more
    engine.restore(Vec::new(), &Config::default()).unwrap();
    assert!(there().is_empty());
}
