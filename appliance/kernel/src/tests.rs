// SPDX-License-Identifier: Apache-2.0
//! The engine on a kernel that is a [`Plan`], and refuses what it is told to.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use tandem_linux::netlink::Membership;
use tandem_swconfig::{
    Config, Engine, Interface, Kind, Mode, Name, Net, Platform, Route, Switchport, Via, Vlan,
};
use tandem_swfrr::Line;
use tandem_swstack::tree;
use tandem_swstack::{Device, RouteKey, Wanted};

use crate::engine::{Below, Kernel, KernelEngine, Known, Netdev, PortState, Was};
use crate::plan::{Board, Plan, Port, plan};
use crate::steps::{At, Step, steps};

mod again;

const PORTS: u16 = 4;
const BARE: Membership = Membership {
    pvid: true,
    untagged: true,
};
const TAGGED: Membership = Membership {
    pvid: false,
    untagged: false,
};

#[derive(Clone, Debug, Default)]
struct Fake {
    is: Plan,
    /// Made, and not only dreamt of.
    bridge: bool,
    left: Option<usize>,
    /// The same, from there on.
    then: Option<usize>,
    asked: usize,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Fake>>);

impl Shared {
    fn ask(&self, f: impl FnOnce(&mut Plan)) -> Result<(), String> {
        let mut fake = self.0.lock().unwrap();
        fake.asked += 1;
        // what it refuses is done half, for all that is known
        f(&mut fake.is);
        match fake.left {
            Some(0) => {
                fake.left = fake.then.take();
                return Err("refused".into());
            }
            Some(n) => fake.left = Some(n - 1),
            None => {}
        }
        Ok(())
    }

    fn is(&self) -> Plan {
        self.0.lock().unwrap().is.clone()
    }

    /// As with `ip` and `bridge`.
    fn others(&self, f: impl FnOnce(&mut Plan)) {
        f(&mut self.0.lock().unwrap().is);
    }

    fn asked(&self) -> usize {
        self.0.lock().unwrap().asked
    }
}

impl Kernel for Shared {
    fn members(
        &mut self,
        at: At,
        (first, last): (u16, u16),
        of: Option<Membership>,
    ) -> Result<(), String> {
        self.ask(|is| {
            let vlans = match at {
                At::Port(n) => &mut is.ports.get_mut(&n).unwrap().vlans,
                At::Bridge => &mut is.own,
            };
            for vid in first..=last {
                // as the kernel has it: one PVID, the last one
                if let Some(Membership { pvid: true, .. }) = of {
                    vlans.values_mut().for_each(|m| m.pvid = false);
                }
                match of {
                    Some(of) => vlans.insert(vid, of),
                    None => vlans.remove(&vid),
                };
            }
        })
    }

    fn up(&mut self, port: u16, up: bool) -> Result<(), String> {
        self.ask(|is| is.ports.get_mut(&port).unwrap().up = up)
    }

    fn mtu(&mut self, port: u16, mtu: u32) -> Result<(), String> {
        self.ask(|is| is.ports.get_mut(&port).unwrap().mtu = mtu)
    }

    fn aging(&mut self, seconds: u32) -> Result<(), String> {
        self.ask(|is| is.aging = seconds)
    }

    fn station(&mut self, key: (u16, [u8; 6]), port: u16, on: bool) -> Result<(), String> {
        let there = self.is().ports[&port].vlans.contains_key(&key.0);
        assert!(there || !on, "EINVAL: port {port} is not in {}", key.0);
        self.ask(|is| {
            match on {
                true => is.stations.insert(key, port),
                false => is.stations.remove(&key),
            };
        })
    }

    fn device(&mut self, vid: u16, on: bool) -> Result<(), String> {
        self.ask(|is| match on {
            true => {
                is.devices.entry(Device::Vlan(vid)).or_default();
            }
            false => {
                is.devices.remove(&Device::Vlan(vid));
            }
        })
    }

    fn change(&mut self, device: Device, was: &Wanted, now: &Wanted) -> Result<(), String> {
        self.ask(|is| {
            if let Device::Loopback(_) = device {
                is.devices.insert(device, now.clone());
                if *now == Wanted::default() {
                    is.devices.remove(&device);
                }
                return;
            }
            let there = is.devices.get_mut(&device).unwrap();
            if was.addresses != now.addresses {
                let keep = |a: &(IpAddr, u8)| !was.addresses.contains(a);
                there
                    .addresses
                    .retain(|a| keep(a) && !now.addresses.contains(a));
                there.addresses.extend(now.addresses.clone());
            }
            if was.mtu != now.mtu {
                there.mtu = now.mtu;
            }
            if was.up != now.up {
                there.up = now.up;
            }
        })
    }

    fn forward(&mut self, on: bool) -> Result<(), String> {
        self.ask(|is| is.routing = on)
    }

    fn route(&mut self, to: Net<IpAddr>, far: u8, via: &BTreeSet<Via>) -> Result<(), String> {
        self.ask(|is| {
            match via.is_empty() {
                true => is.routes.remove(&(to, far)),
                false => is.routes.insert((to, far), via.clone()),
            };
        })
    }

    fn routes(&mut self) -> Result<Vec<RouteKey>, String> {
        Ok(self.is().routes.keys().copied().collect())
    }

    fn begin(&mut self) -> Result<bool, String> {
        let mut fake = self.0.lock().unwrap();
        for n in 1..=PORTS {
            fake.is.ports.entry(n).or_insert_with(|| Port {
                up: false,
                mtu: 1500,
                vlans: [(1, BARE)].into(),
            });
        }
        if !fake.bridge {
            fake.is.aging = 300;
        }
        Ok(!std::mem::replace(&mut fake.bridge, true))
    }

    fn read(&self, _: &Plan) -> Result<Plan, String> {
        let mut is = self.is();
        is.protocols.clear();
        Ok(is)
    }

    fn netdevs(&self) -> Result<BTreeMap<String, Netdev>, String> {
        let netdev = Netdev {
            mac: [2, 0, 0, 0, 0, 9],
            carrier: true,
        };
        Ok([("swp1".into(), netdev.clone()), ("vlan2".into(), netdev)].into())
    }

    fn known(&self) -> Result<Vec<Known>, String> {
        Ok(vec![
            (2, [2, 0, 0, 0, 0, 1], false, 1),
            (3, [2, 0, 0, 0, 0, 2], false, 2),
            (3, [2, 0, 0, 0, 0, 3], true, 2),
        ])
    }

    fn forget(&mut self, all: &[Known]) -> Result<(), String> {
        self.others(|is| is.own = all.iter().map(|k| (k.0, TAGGED)).collect());
        Ok(())
    }

    fn tree(&mut self, wanted: &tree::Wanted) -> Result<(), String> {
        self.ask(|is| is.tree = wanted.clone())
    }

    fn protocols(&mut self, now: &[Line]) -> Result<(), String> {
        // all of it, or as it was
        let was = self.is().protocols;
        let done = self.ask(|is| is.protocols = now.to_vec());
        if done.is_err() {
            self.others(|is| is.protocols = was);
        }
        done
    }

    fn counters(&self) -> BTreeMap<String, [u64; 4]> {
        BTreeMap::new()
    }
}

struct Nothing;

impl Below for Nothing {
    fn ports(&self) -> Vec<PortState> {
        vec![PortState {
            port: 1,
            speed: 100,
            counters: [1, 2, 3, 4],
        }]
    }

    fn platform(&self, _: &Platform) -> Result<Vec<Vec<String>>, String> {
        Err("nothing below".into())
    }
}

fn board() -> Board {
    let port = |n: u16| (n, format!("swp{n}"), [2, 0, 0, 0, 1, n as u8], 1000);
    Board {
        ports: (1..=PORTS).map(port).collect(),
    }
}

fn both(kernel: &Shared) -> [Box<dyn Kernel>; 2] {
    [Box::new(kernel.clone()), Box::new(kernel.clone())]
}

fn on(kernel: &Shared) -> KernelEngine {
    let quiet = Box::new(|_: Option<&Config>| {});
    KernelEngine::new(board(), both(kernel), Box::new(Nothing), quiet)
}

/// One that has carried this out.
fn engine(config: &Config) -> (KernelEngine, Shared) {
    let kernel = Shared::default();
    let mut engine = on(&kernel);
    engine.restore(Was::Unknown, config).unwrap();
    (engine, kernel)
}

fn name(kind: Kind, number: u16) -> Name {
    Name { kind, number }
}

fn port(number: u16) -> Name {
    name(Kind::Gigabit, number)
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
        ..Interface::default()
    }
}

fn trunk(allowed: &[u16]) -> Interface {
    let mut i = Interface::new(&port(1));
    i.switchport = Some(Switchport {
        mode: Mode::Trunk,
        allowed: Some(allowed.iter().copied().collect()),
        ..Switchport::default()
    });
    i
}

fn access(vid: u16) -> Interface {
    let mut i = Interface::new(&port(1));
    i.switchport = Some(Switchport {
        access: vid,
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

const STATION: [u8; 6] = [2, 0, 0, 0, 0, 7];

fn configs() -> [Config; 3] {
    let mut one = Config {
        routing: true,
        ..Config::default()
    };
    one.vlans = BTreeMap::from([(2, Vlan::default()), (3, Vlan::default())]);
    one.interfaces = BTreeMap::from([
        (port(1), trunk(&[1, 2])),
        (port(2), trunk(&[1, 3])),
        (port(3), access(2)),
        (port(4), access(3)),
        (name(Kind::Vlan, 2), address([10, 2, 0, 1])),
        (name(Kind::Vlan, 3), address([10, 3, 0, 1])),
    ]);
    let gateway = Via::Gateway([10, 2, 0, 9].into());
    one.routes.insert(route([10, 77, 0, 0], gateway));
    one.stations.insert((2, STATION), port(3));
    let mut two = Config {
        tag_native: true,
        aging: Some(10),
        ..Config::default()
    };
    let suspended = Vlan {
        name: Some("x".into()),
        suspended: true,
    };
    two.vlans = (4..=9).map(|vid| (vid, Vlan::default())).collect();
    two.vlans.insert(2, suspended);
    two.vlans.insert(3, Vlan::default());
    let mut shut = trunk(&[1, 2, 3, 4, 5, 6, 7, 8]);
    (shut.shutdown, shut.mtu) = (true, Some(9000));
    two.interfaces = BTreeMap::from([
        (port(1), shut),
        (port(3), access(3)),
        (name(Kind::Vlan, 3), address([10, 2, 0, 1])),
        (name(Kind::Vlan, 2), Interface::default()),
        (name(Kind::Loopback, 0), address([10, 9, 0, 1])),
    ]);
    two.routes.insert(route([10, 77, 0, 0], Via::Null));
    two.stations.insert((3, STATION), port(1));
    two.stations.insert((2, STATION), port(1));
    two.tree.on = true;
    let rip = tandem_swconfig::routing::Router::Rip;
    two.routers.insert(rip, BTreeSet::new());
    [Config::default(), one, two]
}

/// The seed's example, as `bridge vlan show` and `ip addr` have it.
#[test]
fn the_seeds_example() {
    let [_, one, _] = configs();
    let (_, kernel) = engine(&one);
    let is = kernel.is();
    let vlans = |n: u16| is.ports[&n].vlans.clone();
    assert_eq!(vlans(1), BTreeMap::from([(1, BARE), (2, TAGGED)]));
    assert_eq!(vlans(2), BTreeMap::from([(1, BARE), (3, TAGGED)]));
    assert_eq!(vlans(3), BTreeMap::from([(2, BARE)]));
    assert_eq!(vlans(4), BTreeMap::from([(3, BARE)]));
    assert_eq!(is.own, BTreeMap::from([(2, TAGGED), (3, TAGGED)]));
    let of = |a: [u8; 4]| Wanted {
        up: true,
        mtu: 1500,
        addresses: vec![(IpAddr::from(a), 24)],
    };
    let devices = [
        (Device::Vlan(2), of([10, 2, 0, 1])),
        (Device::Vlan(3), of([10, 3, 0, 1])),
    ];
    assert_eq!(is.devices, BTreeMap::from(devices));
    assert!(is.routing && is.ports.values().all(|p| p.up));
}

#[test]
fn what_is_carried_out_is_the_plan() {
    for config in configs() {
        let (_, kernel) = engine(&config);
        assert_eq!(kernel.is(), plan(&config, &board().names()));
    }
}

#[test]
fn whatever_is_refused_all_is_as_it_was() {
    for was in configs() {
        for now in configs() {
            let mut refusals = 0;
            for n in 0.. {
                let (engine, kernel) = engine(&was);
                let before = kernel.is();
                kernel.0.lock().unwrap().left = Some(n);
                match engine.apply(&was, &now) {
                    Ok(()) => break,
                    Err(why) => assert_eq!(why, "refused"),
                }
                refusals += 1;
                assert_eq!(kernel.is(), before, "{was:?} to {now:?}, {n}");
                // and it is no worse a beginning than any other
                engine.apply(&was, &now).unwrap();
                assert_eq!(kernel.is(), plan(&now, &board().names()));
            }
            assert_eq!(refusals > 0, was != now, "{was:?} to {now:?}");
        }
    }
}

#[test]
fn that_the_way_back_is_refused_as_well_is_said() {
    let [was, now, _] = configs();
    let (engine, kernel) = engine(&was);
    {
        let mut fake = kernel.0.lock().unwrap();
        (fake.left, fake.then) = (Some(2), Some(0));
    }
    let why = engine.apply(&was, &now).unwrap_err();
    assert_eq!(why, "refused; and what was before is not back: refused");
}

fn others(is: &mut Plan) {
    is.ports.get_mut(&2).unwrap().vlans.insert(9, TAGGED);
    is.ports.get_mut(&2).unwrap().up = false;
    is.ports.get_mut(&3).unwrap().mtu = 1400;
    is.own.insert(1, BARE);
    let vlan2 = is.devices.get_mut(&Device::Vlan(2)).unwrap();
    vlan2.addresses.push(([10, 2, 9, 1].into(), 24));
    is.aging = 77;
}

/// What is shown, without its heads.
fn drift(engine: &KernelEngine) -> Vec<String> {
    let rows = engine.platform(&Platform::Drift).unwrap();
    rows.iter().skip(1).map(|r| r.join(" | ")).collect()
}

#[test]
fn what_others_change_is_shown_and_left_alone() {
    let [_, was, _] = configs();
    let (engine, kernel) = engine(&was);
    assert_eq!(drift(&engine), Vec::<String>::new());
    kernel.others(others);
    let shown = [
        "swp2 | up | down",
        "swp2 VLAN 9 | - | tagged",
        "swp3 MTU | 1500 | 1400",
        "br0 VLAN 1 | - | untagged, PVID",
        "br0 ageing time | 300 | 77",
        "vlan2 | - | 10.2.9.1/24",
    ];
    assert_eq!(drift(&engine), shown);
    // a command of the same port and the same VLAN interface, not about what was changed
    let mut now = was.clone();
    now.vlans.insert(4, Vlan::default());
    now.interfaces.insert(port(2), trunk(&[1, 3, 4]));
    now.interfaces.get_mut(&name(Kind::Vlan, 2)).unwrap().mtu = Some(1600);
    engine.apply(&was, &now).unwrap();
    assert_eq!(drift(&engine), shown);
    // what is said of it wins
    let mut then = now.clone();
    then.aging = Some(50);
    engine.apply(&now, &then).unwrap();
    assert_eq!(kernel.is().aging, 50);
}

#[test]
fn who_begins_again_changes_nothing() {
    let [_, was, _] = configs();
    let (_, kernel) = engine(&was);
    kernel.others(others);
    let (before, asked) = (kernel.is(), kernel.asked());
    let mut again = on(&kernel);
    again.restore(Was::Said(&was), &was).unwrap();
    assert_eq!((kernel.is(), kernel.asked()), (before, asked));
    assert_eq!(drift(&again).len(), 6);
    // and what was not kept goes, without what others have done
    let mut kept = was.clone();
    kept.vlans.remove(&3);
    kept.interfaces.remove(&name(Kind::Vlan, 3));
    let mut again = on(&kernel);
    again.restore(Was::Said(&was), &kept).unwrap();
    assert_eq!(drift(&again).len(), 6);
    assert!(!kernel.is().devices.contains_key(&Device::Vlan(3)));
    // one that knows nothing of before makes it be as it is to be
    let mut again = on(&kernel);
    again.restore(Was::Unknown, &kept).unwrap();
    assert_eq!(kernel.is(), plan(&kept, &board().names()));
}

#[test]
fn what_is_not_there_is_made() {
    let [_, was, _] = configs();
    let (_, kernel) = engine(&was);
    // the switch's ports are new, as after a new chip; somebody has deleted a VLAN interface, and its route with it
    kernel.others(|is| {
        is.ports.remove(&1);
        is.ports.remove(&3);
        is.stations.clear();
        is.devices.remove(&Device::Vlan(2));
        is.routes.clear();
    });
    let mut again = on(&kernel);
    again.restore(Was::Said(&was), &was).unwrap();
    assert_eq!(kernel.is(), plan(&was, &board().names()));
    // all of it is: what was said of before is of another kernel
    let fresh = Shared::default();
    on(&fresh).restore(Was::Said(&was), &was).unwrap();
    assert_eq!(fresh.is(), plan(&was, &board().names()));
}

#[test]
fn routes_come_back_with_their_device() {
    let [_, was, _] = configs();
    let (engine, kernel) = engine(&was);
    let mut now = was.clone();
    let vlan2 = name(Kind::Vlan, 2);
    now.interfaces.get_mut(&vlan2).unwrap().shutdown = true;
    engine.apply(&was, &now).unwrap();
    kernel.others(|is| is.routes.clear());
    engine.apply(&now, &was).unwrap();
    assert_eq!(kernel.is().routes.len(), 1);
}

#[test]
fn a_way_of_a_route_comes_back_with_its_device() {
    let [_, mut was, _] = configs();
    let gateway = Via::Gateway([10, 3, 0, 9].into());
    was.routes.insert(route([10, 77, 0, 0], gateway.clone()));
    let (engine, kernel) = engine(&was);
    let mut now = was.clone();
    now.interfaces.remove(&name(Kind::Vlan, 3));
    engine.apply(&was, &now).unwrap();
    kernel.others(|is| {
        is.routes.values_mut().for_each(|via| {
            via.remove(&gateway);
        });
    });
    engine.apply(&now, &was).unwrap();
    assert!(kernel.is().routes.values().all(|via| via.len() == 2));
}

#[test]
fn what_is_recorded_is_what_is_carried_out() {
    let [was, now, _] = configs();
    let said = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&said);
    let record = Box::new(move |c: Option<&Config>| to.lock().unwrap().push(c.cloned()));
    let kernel = Shared::default();
    let mut engine = KernelEngine::new(board(), both(&kernel), Box::new(Nothing), record);
    engine.restore(Was::Unknown, &was).unwrap();
    engine.apply(&was, &now).unwrap();
    kernel.0.lock().unwrap().left = Some(1);
    engine.apply(&now, &was).unwrap_err();
    let all = said.lock().unwrap().clone();
    let wanted = [None, Some(was), None, Some(now.clone()), None, Some(now)];
    assert_eq!(all, wanted);
}

#[test]
fn what_this_engine_can_not_do_is_said() {
    let mut now = Config::default();
    let limited = now
        .interfaces
        .entry(port(1))
        .or_insert(Interface::new(&port(1)));
    limited.policy = Some("slow".into());
    let (engine, kernel) = engine(&Config::default());
    let before = kernel.asked();
    let why = engine.apply(&Config::default(), &now).unwrap_err();
    assert_eq!(
        why,
        "engine kernel has no policies at interfaces yet: engine chip has"
    );
    // what a spanning tree can't have
    let mut now = Config::default();
    now.tree.on = true;
    now.tree.priority = Some(1);
    let why = engine.apply(&Config::default(), &now).unwrap_err();
    assert!(why.starts_with("spanning tree: "), "{why}");
    for of in 0..2 {
        let mut now = Config::default();
        (now.igmp.on, now.mld.on) = (of == 0, of == 1);
        let why = engine.apply(&Config::default(), &now).unwrap_err();
        assert_eq!(
            why,
            "engine kernel has no snooping that is configured yet: engine chip has"
        );
    }
    let mut now = Config::default();
    let group = name(Kind::PortChannel, 1);
    now.interfaces.insert(group, Interface::new(&group));
    let why = engine.apply(&Config::default(), &now).unwrap_err();
    assert_eq!(
        why,
        "engine kernel has no port-channels yet: engine chip has"
    );
    assert_eq!(kernel.asked(), before);
}

#[test]
fn how_things_are() {
    let [_, one, _] = configs();
    let (engine, kernel) = engine(&one);
    let links = engine.links();
    assert_eq!(links.len(), 6);
    let first = &links[0];
    assert_eq!(
        (first.name, first.carrier, first.speed),
        (port(1), true, 100)
    );
    assert_eq!((links[1].carrier, links[1].mac[5]), (false, 2));
    assert_eq!(links[4].name, name(Kind::Vlan, 2));
    assert!(links[4].carrier && !links[5].carrier);
    let stations = engine.stations();
    let own: Vec<_> = stations.iter().filter(|s| s.port.is_none()).collect();
    assert_eq!((own.len(), own[0].vlan, own[0].fixed), (1, 2, true));
    // none that was set by hand
    engine.forget_stations(Some(3), Some(&port(2))).unwrap();
    assert_eq!(kernel.is().own.into_keys().collect::<Vec<_>>(), [3]);
    engine.forget_stations(None, Some(&port(1))).unwrap();
    assert_eq!(kernel.is().own.into_keys().collect::<Vec<_>>(), [2]);
}

#[test]
fn neighbours_in_number_are_one_step() {
    let mut was = Config::default();
    was.interfaces
        .insert(port(1), trunk(&(1..=4094).collect::<Vec<_>>()));
    let mut now = was.clone();
    now.vlans = (2..=4094).map(|vid| (vid, Vlan::default())).collect();
    let names = board().names();
    let all = steps(&plan(&was, &names), &plan(&now, &names));
    assert_eq!(
        all,
        [Step::Members(
            At::Port(1),
            ((2, 4094), [None, Some(TAGGED)])
        )]
    );
}

fn switchports() -> impl Strategy<Value = Switchport> {
    let vid = 1u16..6;
    let some = proptest::collection::btree_set(1u16..6, 0..5);
    (any::<bool>(), vid.clone(), vid, proptest::option::of(some)).prop_map(
        |(trunk, access, native, allowed)| Switchport {
            mode: if trunk { Mode::Trunk } else { Mode::Access },
            access,
            native,
            allowed,
        },
    )
}

prop_compose! {
    fn any_config()(
        vlans in proptest::collection::btree_map(2u16..6, any::<bool>(), 0..5),
        ports in proptest::collection::vec(switchports(), usize::from(PORTS)),
        routed in proptest::collection::btree_set(1u16..6, 0..3),
        stations in proptest::collection::btree_map((1u16..6, 0u8..3), 1..=PORTS, 0..4),
        tag_native in any::<bool>(),
        routing in any::<bool>(),
        aging in proptest::option::of(0u32..100),
    ) -> Config {
        let vlan = |(vid, suspended)| (vid, Vlan { name: None, suspended });
        let port = |(n, s): (u16, Switchport)| {
            let mut i = Interface::new(&port(n));
            i.switchport = Some(s);
            (self::port(n), i)
        };
        let mut interfaces: BTreeMap<Name, Interface> = (1..).zip(ports).map(port).collect();
        for vid in routed {
            interfaces.insert(name(Kind::Vlan, vid), address([10, vid as u8, 0, 1]));
        }
        let station = |((vid, n), at)| ((vid, [2, 0, 0, 0, 0, n]), self::port(at));
        Config {
            vlans: vlans.into_iter().map(vlan).collect(),
            stations: stations.into_iter().map(station).collect(),
            interfaces,
            tag_native,
            routing,
            aging,
            ..Config::default()
        }
    }
}

/// The database of engine `chip`, of the same configuration.
fn database(config: &Config) -> tandem_vlans::Database {
    use tandem_vlans::{Database, Mode as M, Port as P, Vlan as V};
    let mut d = Database::new([2; 6]);
    for (vid, v) in &config.vlans {
        let vlan = V {
            name: "x".into(),
            active: !v.suspended,
        };
        d.set_vlan(*vid, vlan).unwrap();
    }
    for n in 1..=PORTS {
        let s = config.interface(&port(n)).switchport.unwrap();
        let mode = match (s.mode, &s.allowed) {
            (Mode::Access, _) => M::Access(s.access),
            (Mode::Trunk, None) => M::Trunk {
                native: s.native,
                allowed: tandem_vlans::VlanSet::all(),
            },
            (Mode::Trunk, Some(some)) => M::Trunk {
                native: s.native,
                allowed: some.iter().copied().collect(),
            },
        };
        let p = P {
            name: "x".into(),
            mac: [2; 6],
            mtu: 1500,
            up: true,
            mode,
        };
        d.set_port(n, p).unwrap();
        d.set_carrier(n, true);
    }
    d.set_tag_native(config.tag_native);
    d
}

proptest! {
    /// Both engines have each port in the same VLANs, with the same tags.
    #[test]
    fn memberships_are_those_of_engine_chip(config in any_config()) {
        let (mine, theirs) = (plan(&config, &board().names()), database(&config));
        for vid in 1..6u16 {
            let ports = mine.ports.iter();
            let of = |(n, p): (&u16, &Port)| Some((*n, !p.vlans.get(&vid)?.untagged));
            let mine: Vec<_> = ports.filter_map(of).collect();
            prop_assert_eq!(mine, theirs.ways(vid, [2, 0, 0, 0, 0, 1]));
        }
        for (n, p) in &mine.ports {
            let pvid = p.vlans.iter().find(|(_, m)| m.pvid).map(|(vid, _)| *vid);
            prop_assert_eq!(pvid, theirs.vlan_at(*n, 0));
        }
    }

    /// From anywhere to anywhere, also by way of a refusal.
    #[test]
    fn any_configuration_after_any_other(was in any_config(), now in any_config(), n in 0usize..12) {
        let (engine, kernel) = engine(&was);
        let before = kernel.is();
        prop_assert_eq!(&before, &plan(&was, &board().names()));
        kernel.0.lock().unwrap().left = Some(n);
        if engine.apply(&was, &now).is_err() {
            prop_assert_eq!(kernel.is(), before);
        }
        kernel.0.lock().unwrap().left = None;
        let mut again = on(&kernel);
        again.restore(Was::Unknown, &now).unwrap();
        let mut is = kernel.is();
        if now.routers.is_empty() {
            // what another process has told FRR is FRR's
            is.protocols.clear();
        }
        prop_assert_eq!(is, plan(&now, &board().names()));
    }
}
