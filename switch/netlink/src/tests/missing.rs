//! IPv6 routes that dumps pass over while others come and go.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use tandem_core::source::{Message, Source, WriteBack};
use tandem_linux::eventfd::EventFd;
use tandem_linux::netlink::consts::{RTN_BLACKHOLE, RTN_UNICAST};
use tandem_linux::netlink::{self as nl, Dump, Nexthops, Protocol, RouteNexthop, Step, blast};
use tandem_store::model::Object;

use super::super::kernel::{Ears, Questions};
use super::super::stepped::{Origin, Stepped, Steps};
use super::super::{Config, NetlinkSource};
use super::Lab;
use super::cases::{TWO, as_v6, many_routes};
use super::mirror::Mirror;

/// Asks the kernel, whose first IPv6 routes come before each dump and go in the middle of it: the dump counts on without them, and
/// passes over as many behind, however fast or slow who reads it is.
#[derive(Debug)]
struct Unsettled {
    asking: nl::Requests,
    changing: nl::Requests,
    first: Arc<Mutex<Vec<nl::Route>>>,
    /// Steps of a dump of IPv6 routes.
    steps: Option<u32>,
    looked_up: Arc<AtomicUsize>,
}

impl Questions for Unsettled {
    fn begin(&mut self, what: Dump) -> nl::Result<()> {
        self.steps = matches!(what, Dump::Routes(nl::Family::V6, _)).then_some(0);
        if self.steps.is_some() {
            blast::add_routes(&mut self.changing, &self.first.lock().unwrap(), 0)?;
        }
        self.asking.begin(what)
    }

    fn step(&mut self, each: &mut dyn FnMut(nl::Object)) -> nl::Result<Step> {
        self.steps = self.steps.map(|n| n + 1);
        if self.steps == Some(4) {
            let first = self.first.lock().unwrap();
            blast::del_routes(&mut self.changing, &first)?;
            // a new one makes the kernel begin anew, and count
            blast::add_routes(&mut self.changing, first.get(..1).unwrap_or_default(), 0)?;
        }
        self.asking.step(each)
    }

    fn lookups(
        &mut self,
        all: &[nl::Lookup],
        each: &mut dyn FnMut(usize, nl::Found),
    ) -> nl::Result<usize> {
        let done = self.asking.lookups(all, each)?;
        self.looked_up.fetch_add(done, Ordering::Relaxed);
        Ok(done)
    }

    fn settle(&mut self) -> nl::Result<()> {
        self.asking.settle()
    }

    fn ipsec_policies(&mut self) -> nl::Result<bool> {
        self.asking.ipsec_policies()
    }

    fn file(&self, path: &str) -> Option<String> {
        Questions::file(&self.asking, path)
    }

    fn now(&self) -> Instant {
        Instant::now()
    }
}

/// With the kernel: each of eight dumps passes over the same routes, of every kind.
#[test]
fn what_the_kernels_dumps_pass_over_is_not_gone() {
    let first = Arc::new(Mutex::new(Vec::new()));
    let looked_up = Arc::new(AtomicUsize::new(0));
    let source = || {
        let config = Config::default();
        let ears = nl::Monitor::open(config.receive_buffer).unwrap();
        let questions = Unsettled {
            asking: nl::Requests::open().unwrap(),
            changing: nl::Requests::open().unwrap(),
            first: Arc::clone(&first),
            steps: None,
            looked_up: Arc::clone(&looked_up),
        };
        NetlinkSource::listen(config, ears, Box::new(questions)).unwrap()
    };
    let Some(mut lab) = Lab::made("passed", TWO, source) else {
        return;
    };
    lab.sync();
    let mut routes = many_routes(lab.index("v1"), 4000);
    as_v6(&mut routes);
    let steady = routes.split_off(600);
    lab.in_ns(|| blast::add_routes(&mut nl::Requests::open().unwrap(), &steady, 0).unwrap());
    // 2001:db8:1400:0::/64, :100::/64 … :ff00::/64, 2001:db8:1401:0::/64 … are there
    let mut others = String::new();
    for n in 0x03..0x0e {
        for kind in ["blackhole", "prohibit", "unreachable"] {
            let place = 0x30 + kind.len() as u32;
            others += &format!("route add {kind} 2001:db8:14{n:02x}:40{place:x}::/64\n");
        }
        others += &format!(
            "route add 2001:db8:14{n:02x}:5000::/56 via 2001:db8:1::2
route add 2001:db8:14{n:02x}:60aa::/64 via 2001:db8:1::2 metric 7
route add 2001:db8:14{n:02x}:60aa::/64 dev v2 metric 9
route add 2001:db8:14{n:02x}:70aa::/64 nexthop via 2001:db8:1::2 nexthop via fe80::7 dev v2
route add 2001:db8:14{n:02x}:80aa::/64 dev v1
route append 2001:db8:14{n:02x}:80aa::/64 dev v2
route add 2001:db8:14{n:02x}:90aa::/64 from 2001:db8:9::/48 via 2001:db8:1::2
"
        );
    }
    lab.ip(&others);
    lab.check_routes("before");
    // the kernel makes others by itself
    let ours: IpNet = "2001:db8:1400::/40".parse().unwrap();
    let prefix = |o: &Object| match o {
        Object::Route(r) => Some((r.key.prefix, r.key.metric)).filter(|p| ours.contains(&p.0)),
        _ => None,
    };
    let before = lab.mirror.get(prefix);
    assert!(before.len() > 3400 + 11 * 8, "{}", before.len());
    *first.lock().unwrap() = routes;
    lab.source.resync();
    lab.sync();
    let mut after = lab.mirror.get(prefix);
    let lost: Vec<_> = before.iter().filter(|p| !after.contains(p)).collect();
    assert!(
        lost.is_empty(),
        "{} lost: {:?}",
        lost.len(),
        &lost[..lost.len().min(40)]
    );
    // all but the one that is left of those that come and go
    after.retain(|p| !before.contains(p));
    assert_eq!(after.len(), 1, "{after:?}");
    lab.check_routes("after");
    let looked_up = looked_up.load(Ordering::Relaxed);
    assert!(looked_up > 500, "{looked_up}");
}

/// A kernel whose dumps of IPv6 routes show some of them never.
#[derive(Debug, Default)]
struct World {
    routes: Mutex<Vec<nl::Route>>,
    /// Others come and go, and dumps pass over the prefixes in 2001:db8::/32.
    churns: AtomicBool,
    /// What dumps find behind the others.
    begun: Mutex<Vec<nl::Route>>,
    told: Mutex<Vec<Vec<u8>>>,
    looked_up: Mutex<Vec<nl::Lookup>>,
    /// What /proc/sys/net/ipv6/route/max_size says.
    copies: Mutex<Option<&'static str>>,
}

#[derive(Debug, Clone)]
struct Fake(Arc<World>, Instant);

/// A message of a route to 3fff::/20 that is gone.
fn noise() -> Vec<u8> {
    let mut m = vec![0; 48];
    (m[0], m[4]) = (48, 25); // RTM_DELROUTE
    m[16..28].copy_from_slice(&[10, 20, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0]);
    m[28..34].copy_from_slice(&[20, 0, 1, 0, 0x3f, 0xff]); // RTA_DST
    m
}

impl Ears for Fake {
    fn recv(&mut self, sink: &mut dyn FnMut(Protocol, &[u8])) -> nl::Result<(usize, bool)> {
        let told = std::mem::take(&mut *self.0.told.lock().unwrap());
        told.iter().for_each(|m| sink(Protocol::Route, m));
        Ok((told.len(), false))
    }

    fn renew(&mut self, _: usize) -> bool {
        true
    }

    fn wait(&self, _: &EventFd, _: Duration) {}

    fn pause(&self, _: Duration) {}
}

impl Questions for Fake {
    fn begin(&mut self, what: Dump) -> nl::Result<()> {
        let world = &self.0;
        let mut found = Vec::new();
        if let Dump::Routes(nl::Family::V6, filter) = what {
            let churns = world.churns.load(Ordering::Relaxed);
            let passed: IpNet = "2001:db8::/32".parse().unwrap();
            let by = |r: &nl::Route| {
                let mut hops = r.nexthops.as_slice().iter();
                filter.oif.is_none_or(|i| hops.any(|h| h.ifindex == i))
            };
            found = world.routes.lock().unwrap().clone();
            found.retain(|r| by(r) && !(churns && passed.contains(&r.dst)));
            if churns {
                world.told.lock().unwrap().push(noise());
            }
        }
        *world.begun.lock().unwrap() = found;
        Ok(())
    }

    fn step(&mut self, each: &mut dyn FnMut(nl::Object)) -> nl::Result<Step> {
        let found = std::mem::take(&mut *self.0.begun.lock().unwrap());
        found.into_iter().map(nl::Object::Route).for_each(each);
        Ok(Step::Done { interrupted: false })
    }

    /// One at a time.
    fn lookups(
        &mut self,
        all: &[nl::Lookup],
        each: &mut dyn FnMut(usize, nl::Found),
    ) -> nl::Result<usize> {
        let Some(lookup) = all.first() else {
            return Ok(0);
        };
        self.0.looked_up.lock().unwrap().push(*lookup);
        let routes = self.0.routes.lock().unwrap();
        let leads = routes.iter().filter(|r| {
            let mut hops = r.nexthops.as_slice().iter();
            let by = lookup.oif == 0 || hops.any(|h| h.ifindex == lookup.oif);
            by && r.dst.contains(&IpAddr::V6(lookup.dst))
        });
        let best = leads.max_by_key(|r| (r.dst.prefix_len(), std::cmp::Reverse(r.metric)));
        let refused = |errno| {
            Err(nl::Error {
                request: "lookup",
                errno,
                extack: String::new(),
            })
        };
        each(
            0,
            match best {
                None => refused(libc::ENETUNREACH),
                Some(r) if r.kind == RTN_BLACKHOLE => refused(libc::EINVAL),
                Some(r) => Ok(r.clone()),
            },
        );
        Ok(1)
    }

    fn settle(&mut self) -> nl::Result<()> {
        Ok(())
    }

    fn ipsec_policies(&mut self) -> nl::Result<bool> {
        Ok(false)
    }

    fn file(&self, path: &str) -> Option<String> {
        let copies = path == "/proc/sys/net/ipv6/route/max_size";
        let text = (*self.0.copies.lock().unwrap()).filter(|_| copies);
        text.map(Into::into)
    }

    fn now(&self) -> Instant {
        self.1
    }
}

impl Origin for Fake {
    fn questions(&self) -> Box<dyn Questions> {
        Box::new(self.clone())
    }

    fn writer(&self) -> Box<dyn WriteBack> {
        unreachable!("nobody writes")
    }
}

fn route(dst: &str, metric: u32, device: u32) -> nl::Route {
    nl::Route {
        table: 254,
        dst: dst.parse().unwrap(),
        tos: 0,
        metric,
        kind: RTN_UNICAST,
        scope: 0,
        protocol: 4,
        flags: 0,
        nh_id: 0,
        nexthops: Nexthops::One(RouteNexthop {
            ifindex: device,
            gateway: None,
            weight: 1,
            flags: 0,
            encap: false,
        }),
        src: None,
        prefsrc: None,
        mtu: 0,
        other: 0,
    }
}

fn blackhole(dst: &str) -> nl::Route {
    nl::Route {
        kind: RTN_BLACKHOLE,
        ..route(dst, 1024, 1)
    }
}

struct Play {
    world: Arc<World>,
    stepped: Stepped,
    source: Steps,
    mirror: Mirror,
}

impl Play {
    /// All of these are known.
    fn of(routes: Vec<nl::Route>) -> Self {
        let world = Arc::new(World {
            routes: Mutex::new(routes),
            ..World::default()
        });
        let fake = Fake(Arc::clone(&world), Instant::now());
        let ears = Box::new(fake.clone());
        let (stepped, source) = Stepped::new(Config::default(), ears, Box::new(fake)).unwrap();
        let mut play = Play {
            world,
            stepped,
            source,
            mirror: Mirror::default(),
        };
        play.turns();
        play
    }

    fn turns(&mut self) {
        self.source.barrier(1);
        for _ in 0..20 {
            self.stepped.turn();
        }
        for message in self.source.messages().try_iter() {
            if let Message::Events(events) = message {
                events.into_iter().for_each(|e| self.mirror.apply(e));
            }
        }
    }

    /// Everything is dumped while others come and go; which of the routes there are after it.
    fn dump(&mut self) -> Vec<String> {
        self.world.churns.store(true, Ordering::Relaxed);
        self.source.resync();
        self.turns();
        self.known()
    }

    fn known(&self) -> Vec<String> {
        let mut known = self.mirror.get(|o| match o {
            Object::Route(r) => Some(format!("{} {}", r.key.prefix, r.key.metric)),
            _ => None,
        });
        known.sort();
        known
    }

    fn gone(&self, dst: &str) {
        let dst: IpNet = dst.parse().unwrap();
        self.world.routes.lock().unwrap().retain(|r| r.dst != dst);
    }
}

#[test]
fn what_a_lookup_shows_is_not_gone() {
    let mut play = Play::of(vec![
        route("2001:db8:1::/48", 1024, 2),
        route("2001:db8:2::/48", 1024, 2),
        route("3fff:1::/32", 1024, 2),
    ]);
    assert_eq!(play.known().len(), 3);
    // one went, and its message was lost
    play.gone("2001:db8:2::/48");
    assert_eq!(play.dump(), ["2001:db8:1::/48 1024", "3fff:1::/32 1024"]);
    // what the dumps have shown is not looked up, and again nothing is lost
    assert_eq!(play.world.looked_up.lock().unwrap().len(), 2);
    assert_eq!(play.dump().len(), 2);
}

/// Before Linux 6.3 each lookup takes one of a few places that forwarding needs as well.
#[test]
fn no_more_is_looked_up_than_the_kernel_has_room_for() {
    let routes = (1..=9).map(|i| route(&format!("2001:db8:{i}::/48"), 1024, 2));
    let mut play = Play::of(routes.collect());
    *play.world.copies.lock().unwrap() = Some("16\n");
    assert_eq!(play.dump().len(), 4);
    assert_eq!(play.world.looked_up.lock().unwrap().len(), 4);
}

/// Behind a prefix of its own a lookup shows the least metric alone: a dump passes over all of them or none.
#[test]
fn all_metrics_of_a_prefix_are_there_with_the_least() {
    let mut play = Play::of(vec![
        route("2001:db8:1::/48", 20, 2),
        route("2001:db8:1::/48", 10, 2),
        route("2001:db8:1::/48", 20, 3),
    ]);
    assert_eq!(play.known().len(), 3);
    assert_eq!(play.dump().len(), 3);
}

#[test]
fn a_prefix_is_looked_up_where_no_longer_one_is() {
    let narrow = ["2001:db8::/34", "2001:db8:4000::/34", "2001:db8:c000::/34"];
    let mut routes: Vec<_> = narrow.iter().map(|dst| route(dst, 1024, 3)).collect();
    routes.push(route("2001:db8::/32", 1024, 2));
    let mut play = Play::of(routes);
    assert_eq!(play.dump().len(), 4);
    let looked_up = play.world.looked_up.lock().unwrap().clone();
    let wide = looked_up
        .iter()
        .find(|l| l.dst.segments()[1] == 0xdb8 && l.dst.segments()[2] >> 14 == 2);
    assert!(wide.is_some(), "{looked_up:?}");
    drop(looked_up);
    // nothing of it is left to look up: it goes, as after any dump, and so does no other
    let mut routes: Vec<_> = narrow.iter().map(|dst| route(dst, 1024, 3)).collect();
    routes.push(route("2001:db8:8000::/34", 1024, 3));
    routes.push(route("2001:db8::/32", 1024, 2));
    let mut play = Play::of(routes);
    assert_eq!(play.dump().len(), 4);
    assert!(!play.known().contains(&"2001:db8::/32 1024".into()));
}

#[test]
fn what_refuses_packets_is_known_by_its_error() {
    let mut play = Play::of(vec![
        blackhole("2001:db8:1::/48"),
        blackhole("2001:db8:2::/48"),
        route("2001:db8::/32", 1024, 2),
    ]);
    play.gone("2001:db8:2::/48");
    let left = ["2001:db8:1::/48 1024", "2001:db8::/32 1024"];
    assert_eq!(play.dump(), left);
    // there is none at all
    let mut play = Play::of(vec![blackhole("2001:db8:1::/48")]);
    play.gone("2001:db8:1::/48");
    assert!(play.dump().is_empty());
    // a wider one may be meant
    let mut play = Play::of(vec![
        blackhole("2001:db8:1::/48"),
        blackhole("2001:db8::/32"),
    ]);
    play.gone("2001:db8:1::/48");
    assert_eq!(play.dump(), ["2001:db8::/32 1024"]);
}

/// What was lost before the dump: another route is in its place.
#[test]
fn what_a_lookup_shows_instead_is_taken() {
    let mut play = Play::of(vec![
        route("2001:db8:1::/48", 10, 2),
        route("2001:db8:1::/48", 20, 2),
    ]);
    play.gone("2001:db8:1::/48");
    let other = route("2001:db8:1::/48", 5, 3);
    play.world.routes.lock().unwrap().push(other);
    assert_eq!(play.dump(), ["2001:db8:1::/48 5"]);
}

/// A look at one device's routes: who goes by another device says nothing about one that goes by this.
#[test]
fn a_look_at_a_device_looks_up_by_that_device() {
    let mut play = Play::of(vec![
        route("2001:db8:1::/48", 10, 3),
        route("2001:db8:1::/48", 20, 2),
        route("2001:db8:2::/48", 10, 3),
        route("2001:db8:2::/48", 20, 2),
    ]);
    play.world.churns.store(true, Ordering::Relaxed);
    // a route by device 2 goes that nobody knows, of another protocol
    let mut unknown = noise();
    unknown.extend([8, 0, 4, 0, 2, 0, 0, 0, 8, 0, 6, 0, 20, 0, 0, 0]); // RTA_OIF, RTA_PRIORITY
    unknown[0] += 16;
    unknown[32..38].copy_from_slice(&[0x20, 1, 0x0d, 0xb8, 0, 2]);
    (unknown[17], unknown[21]) = (48, 9);
    let gone = |r: &nl::Route| r.metric == 20 && r.dst.to_string() == "2001:db8:1::/48";
    play.world.routes.lock().unwrap().retain(|r| !gone(r));
    play.world.told.lock().unwrap().push(unknown);
    play.turns();
    let left = [
        "2001:db8:1::/48 10",
        "2001:db8:2::/48 10",
        "2001:db8:2::/48 20",
    ];
    assert_eq!(play.known(), left);
    let looked_up = play.world.looked_up.lock().unwrap();
    assert!(looked_up.iter().all(|l| l.oif == 2) && looked_up.len() == 2);
}
