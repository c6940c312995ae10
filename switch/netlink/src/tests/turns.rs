//! The listener's turns with a kernel that misbehaves: dumps that never succeed, notifications that are lost.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tandem_linux::eventfd::EventFd;
use tandem_linux::netlink::{self as nl, Dump, Protocol, Step};
use tandem_store::model::{Event, Key, Object, RouteNextHops};

use super::super::Config;
use super::super::kernel::{Ears, Questions};
use super::super::pipe::Pipe;
use super::super::stepped::{Origin, Stepped};
use super::mirror::Mirror;
use tandem_core::source::{Message, Source, WriteBack};

/// What the test and the listener share.
#[derive(Debug, Default)]
struct Kernel {
    /// Microseconds since the beginning: it passes only while somebody sleeps.
    now: AtomicU64,
    /// Dumps that were begun.
    begun: Mutex<Vec<Dump>>,
    /// Notifications to come.
    told: Mutex<VecDeque<(Protocol, Vec<u8>)>>,
    /// Tables never stand still.
    restless: bool,
    /// IPv4 routes, as a dump brings them: those of one device where it asks for that one's.
    routes4: Mutex<Vec<nl::Route>>,
    /// IPv6 routes, as a dump brings them.
    routes6: Vec<nl::Route>,
    /// What the kernel answers who asks for one group's buckets; 0: that there are none.
    buckets: i32,
    /// A notification that comes in the middle of the next such dump, which misses everything because of it.
    meanwhile: Mutex<Option<(Dump, Vec<u8>)>>,
    /// A device that is gone: nobody dumps its routes.
    gone: u32,
}

#[derive(Clone, Debug)]
struct Fake(Arc<Kernel>, Instant);

impl Ears for Fake {
    fn recv(&mut self, sink: &mut dyn FnMut(Protocol, &[u8])) -> nl::Result<(usize, bool)> {
        let told = self.0.told.lock().unwrap().pop_front();
        if let Some((protocol, datagram)) = &told {
            sink(*protocol, datagram);
        }
        Ok((usize::from(told.is_some()), false))
    }

    fn renew(&mut self, _: usize) -> bool {
        true
    }

    fn wait(&self, _: &EventFd, timeout: Duration) {
        self.pause(timeout);
    }

    fn pause(&self, time: Duration) {
        self.0
            .now
            .fetch_add(time.as_micros() as u64, Ordering::Relaxed);
    }
}

impl Questions for Fake {
    fn begin(&mut self, what: Dump) -> nl::Result<()> {
        self.0.begun.lock().unwrap().push(what);
        match what {
            Dump::Routes(_, filter) if self.0.gone != 0 && filter.oif == Some(self.0.gone) => {
                Err(nl::Error {
                    request: "routes",
                    errno: libc::ENODEV,
                    extack: String::new(),
                })
            }
            _ => Ok(()),
        }
    }

    fn step(&mut self, sink: &mut dyn FnMut(nl::Object)) -> nl::Result<Step> {
        let what = self.0.begun.lock().unwrap().last().copied();
        if let (Some(Dump::NexthopBuckets(Some(_))), 1..) = (what, self.0.buckets) {
            return Err(nl::Error {
                request: "buckets",
                errno: self.0.buckets,
                extack: String::new(),
            });
        }
        let told = (self.0.meanwhile.lock().unwrap()).take_if(|(dump, _)| Some(*dump) == what);
        let missed = told.is_some();
        let told = told.map(|(_, datagram)| (Protocol::Route, datagram));
        self.0.told.lock().unwrap().extend(told);
        if let (false, Some(Dump::Routes(family, filter))) = (missed, what) {
            let routes = match family {
                nl::Family::V4 => self.0.routes4.lock().unwrap().clone(),
                nl::Family::V6 => self.0.routes6.clone(),
            };
            let asked = |r: &nl::Route| {
                let mut hops = r.nexthops.as_slice().iter();
                family == nl::Family::V6 || filter.oif.is_none_or(|i| hops.any(|h| h.ifindex == i))
            };
            for r in routes.into_iter().filter(asked) {
                sink(nl::Object::Route(r));
            }
        }
        Ok(Step::Done {
            interrupted: self.0.restless,
        })
    }

    fn lookups(
        &mut self,
        _: &[nl::Lookup],
        _: &mut dyn FnMut(usize, nl::Found),
    ) -> nl::Result<usize> {
        Ok(0)
    }

    fn settle(&mut self) -> nl::Result<()> {
        Ok(())
    }

    fn ipsec_policies(&mut self) -> nl::Result<bool> {
        Ok(false)
    }

    fn file(&self, _: &str) -> Option<String> {
        None
    }

    fn now(&self) -> Instant {
        self.1 + Duration::from_micros(self.0.now.load(Ordering::Relaxed))
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

fn listen(kernel: &Arc<Kernel>) -> (Fake, Stepped, super::super::stepped::Steps) {
    let fake = Fake(Arc::clone(kernel), Instant::now());
    let ears = Box::new(fake.clone());
    let (stepped, steps) = Stepped::new(Config::default(), ears, Box::new(fake.clone())).unwrap();
    (fake, stepped, steps)
}

/// Turns for so long (by the kernel's clock), asleep in between as the thread is.
fn run(fake: &Fake, stepped: &mut Stepped, time: Duration) {
    let end = fake.now() + time;
    for _ in 0..100_000 {
        if fake.now() >= end {
            return;
        }
        if let Some(idle) = stepped.turn() {
            let left = end.saturating_duration_since(fake.now());
            fake.pause(idle.min(left).max(Duration::from_micros(1)));
        }
    }
    panic!("it does not sleep");
}

#[test]
fn who_waits_at_the_barrier_hurries_no_dump_that_fails() {
    let kernel = Arc::new(Kernel {
        restless: true,
        ..Kernel::default()
    });
    let (fake, mut stepped, source) = listen(&kernel);
    source.barrier(1);
    run(&fake, &mut stepped, Duration::from_secs(10));
    // each attempt asks the first table up to eight times; the pauses between them grow from 50 ms to 3.2 s
    let attempts = kernel.begun.lock().unwrap().len() / 8;
    assert!((5..=10).contains(&attempts), "{attempts} in ten seconds");
    assert!(
        !source
            .messages()
            .try_iter()
            .any(|m| matches!(m, Message::Barrier(_)))
    );
}

#[test]
fn the_core_is_woken_for_what_it_gets() {
    let event = || Arc::new(EventFd::new().unwrap());
    let (bell, wake) = (event(), event());
    let (to, from) = crossbeam_channel::bounded(2);
    let ears = Box::new(Fake(Arc::default(), Instant::now()));
    let ring = Some(Arc::clone(&bell));
    let mut pipe = Pipe::new(ears, 1 << 20, to, ring, wake, Arc::default());
    pipe.flush();
    assert!(!bell.drain(), "nothing was sent");
    pipe.send(Message::Barrier(1));
    assert!(bell.drain() && from.try_recv().is_ok());
}

#[test]
fn barriers_of_those_who_have_given_up_are_forgotten() {
    let kernel = Arc::new(Kernel {
        restless: true,
        ..Kernel::default()
    });
    let (_, mut stepped, source) = listen(&kernel);
    for token in 0..200 {
        source.barrier(token);
    }
    stepped.turn();
    assert_eq!(stepped.waiting(), tandem_core::WAITERS);
}

#[test]
fn lost_notifications_of_nftables_cost_a_look_at_its_chains() {
    let kernel = Arc::new(Kernel::default());
    let (fake, mut stepped, source) = listen(&kernel);
    run(&fake, &mut stepped, Duration::from_secs(1));
    kernel.begun.lock().unwrap().clear();
    let mut lost = vec![0; nl::wire::HEADER_LEN];
    lost[0] = nl::wire::HEADER_LEN as u8;
    lost[4] = 4; // NLMSG_OVERRUN
    let told = (Protocol::Netfilter, lost.clone());
    kernel.told.lock().unwrap().push_back(told);
    source.barrier(7);
    run(&fake, &mut stepped, Duration::from_secs(1));
    let begun = kernel.begun.lock().unwrap().clone();
    assert_eq!(begun, [Dump::BaseChains]);
    assert!(
        source
            .messages()
            .try_iter()
            .any(|m| m == Message::Barrier(7))
    );
    assert_eq!(source.status().overruns, 0);
    // the other socket's are another matter
    let told = (Protocol::Route, lost);
    kernel.told.lock().unwrap().push_back(told);
    run(&fake, &mut stepped, Duration::from_secs(1));
    assert_eq!(source.status().overruns, 1);
    assert!(kernel.begun.lock().unwrap().len() > 10);
}

/// A message of rtnetlink.
fn message(kind: u16, flags: u16, head: &[u8], attributes: &[(u8, &[u8])]) -> Vec<u8> {
    let mut m = vec![0; nl::wire::HEADER_LEN];
    m[4..6].copy_from_slice(&kind.to_ne_bytes());
    m[6..8].copy_from_slice(&flags.to_ne_bytes());
    m.extend(head);
    for (kind, value) in attributes {
        m.extend([4 + value.len() as u8, 0, *kind, 0]);
        m.extend(*value);
        m.resize(m.len().next_multiple_of(4), 0);
    }
    m[0] = m.len() as u8;
    m
}

/// An IPv6 route to 2001:db8::/64 by device 1, and a gateway there if one is given.
fn route6(kind: u16, flags: u16, gateway: &[(u8, &[u8])]) -> Vec<u8> {
    let dst = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let head = [10, 64, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0]; // rtmsg: boot, universe, unicast
    // RTA_DST, RTA_OIF, RTA_PRIORITY
    let (oif, metric) = (1u32.to_ne_bytes(), 50u32.to_ne_bytes());
    let mut attributes: Vec<(u8, &[u8])> = vec![(1, &dst), (4, &oif), (6, &metric)];
    attributes.extend(gateway);
    message(kind, flags, &head, &attributes)
}

/// An IPv4 route to 172.16.0.0/16 by a device.
fn route4(device: u32, flags: u16) -> Vec<u8> {
    let head = [2, 16, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0];
    let oif = device.to_ne_bytes();
    message(24, flags, &head, &[(1, &[172, 16, 0, 0]), (4, &oif)])
}

/// It takes another's place.
fn replaced6() -> Vec<u8> {
    route6(24, 0x100, &[]) // RTM_NEWROUTE, NLM_F_REPLACE
}

/// One by a gateway is gone, which contradicts whoever has only the other.
fn gone6() -> Vec<u8> {
    let gateway = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
    route6(25, 0, &[(5, &gateway)]) // RTM_DELROUTE, RTA_GATEWAY
}

/// What the decoder makes of it.
fn decoded(datagram: &[u8]) -> nl::Route {
    let mut route = None;
    nl::decode(Protocol::Route, datagram, |e| {
        if let nl::Event::New(nl::Object::Route(r), _) = e {
            route = Some(r);
        }
    });
    route.unwrap()
}

/// What becomes of a key with two equal routes only a dump of everything says: one now and then, whatever happens in that key.
#[test]
fn equal_routes_cost_a_dump_now_and_then() {
    let twin = decoded(&replaced6());
    let kernel = Arc::new(Kernel {
        routes6: vec![twin.clone(), twin],
        ..Kernel::default()
    });
    let (fake, mut stepped, source) = listen(&kernel);
    run(&fake, &mut stepped, Duration::from_secs(1));
    let dumps = || source.status().resyncs;
    assert_eq!(dumps(), 1);
    for _ in 0..400 {
        let told = (Protocol::Route, replaced6());
        kernel.told.lock().unwrap().push_back(told);
        run(&fake, &mut stepped, Duration::from_millis(50));
    }
    // 20 s
    assert!((8..=20).contains(&dumps()), "{}", dumps());
    // and soon again where that was the only one for a while; a barrier waits for it
    run(&fake, &mut stepped, Duration::from_secs(30));
    let before = dumps();
    let told = (Protocol::Route, replaced6());
    kernel.told.lock().unwrap().push_back(told);
    source.barrier(9);
    run(&fake, &mut stepped, Duration::from_millis(50));
    assert_eq!(dumps(), before + 1);
    assert!(
        source
            .messages()
            .try_iter()
            .any(|m| m == Message::Barrier(9))
    );
}

/// A resilient group, of which nothing is known.
fn resilient() -> Vec<u8> {
    // NHA_ID; NHA_GROUP: object 1; NHA_GROUP_TYPE: resilient
    let (id, members, kind) = (10u32.to_ne_bytes(), [1, 0, 0, 0, 0, 0, 0, 0], [1, 0]);
    let attributes = [(1, &id[..]), (2, &members), (3, &kind)];
    message(104, 0x400, &[0; 8], &attributes) // RTM_NEWNEXTHOP, NLM_F_CREATE
}

/// Buckets that the kernel does not tell of: the group is gone, and its message comes; or everything is asked for again.
#[test]
fn buckets_that_are_refused_are_asked_for_again() {
    for (errno, resyncs) in [
        (0, 1),
        (libc::ENOENT, 1),
        (libc::ENOMEM, 2),
        (libc::EPERM, 2),
    ] {
        let kernel = Arc::new(Kernel {
            buckets: errno,
            ..Kernel::default()
        });
        let (fake, mut stepped, source) = listen(&kernel);
        run(&fake, &mut stepped, Duration::from_secs(1));
        let told = (Protocol::Route, resilient());
        kernel.told.lock().unwrap().push_back(told);
        run(&fake, &mut stepped, Duration::from_secs(10));
        let asked = Dump::NexthopBuckets(Some(10));
        assert!(kernel.begun.lock().unwrap().contains(&asked));
        assert_eq!(source.status().resyncs, resyncs, "errno {errno}");
    }
}

/// A dump of IPv6 routes counts its way: one that goes meanwhile makes it miss others, which are not taken for gone.
#[test]
fn what_a_dump_that_counts_has_missed_is_not_gone() {
    let kernel = Arc::new(Kernel {
        routes6: vec![decoded(&replaced6())],
        ..Kernel::default()
    });
    let (fake, mut stepped, source) = listen(&kernel);
    let mut mirror = Mirror::default();
    let mut look = |source: &super::super::stepped::Steps| {
        for message in source.messages().try_iter() {
            if let Message::Events(events) = message {
                events.into_iter().for_each(|e| mirror.apply(e));
            }
        }
        let route = |o: &Object| matches!(o, Object::Route(_)).then_some(());
        (mirror.syncs, mirror.get(route).len())
    };
    run(&fake, &mut stepped, Duration::from_secs(1));
    assert_eq!(look(&source), (1, 1));
    // another one goes
    let mut other = gone6();
    other[nl::wire::HEADER_LEN + 12 + 4] = 0x30;
    let all = Dump::Routes(nl::Family::V6, nl::RouteFilter::default());
    *kernel.meanwhile.lock().unwrap() = Some((all, other));
    source.resync();
    for _ in 0..100 {
        stepped.turn();
        if look(&source).0 == 2 {
            break;
        }
    }
    assert!(kernel.meanwhile.lock().unwrap().is_none());
    assert_eq!(look(&source), (2, 1));
}

/// A look at a device's routes no longer finds one that another has replaced meanwhile: it does not go before that one is there.
#[test]
fn what_a_look_has_missed_is_replaced_and_not_gone() {
    let kernel = Arc::new(Kernel::default());
    let (fake, mut stepped, source) = listen(&kernel);
    run(&fake, &mut stepped, Duration::from_secs(1));
    // known, and to be looked at
    for datagram in [route4(1, 0), gone6()] {
        let told = (Protocol::Route, datagram);
        kernel.told.lock().unwrap().push_back(told);
    }
    let by_device = nl::RouteFilter {
        oif: Some(1),
        ..nl::RouteFilter::default()
    };
    let look = Dump::Routes(nl::Family::V4, by_device);
    *kernel.meanwhile.lock().unwrap() = Some((look, route4(2, 0x100)));
    source.barrier(7);
    run(&fake, &mut stepped, Duration::from_secs(1));
    assert!(kernel.meanwhile.lock().unwrap().is_none());
    let mut by = Vec::new();
    for message in source.messages().try_iter() {
        let Message::Events(events) = message else {
            continue;
        };
        for event in events {
            match event {
                Event::Upsert(_, Object::Route(r)) => by.push(r.nexthops),
                Event::Remove(_, Key::Route(key)) => panic!("{key:?} is removed after {by:?}"),
                _ => {}
            }
        }
    }
    let device = |n: &RouteNextHops| matches!(n, RouteNextHops::One(h) if h.ifindex == 2);
    assert!(by.last().is_some_and(device), "{by:?}");
}

/// A look at next-hop objects no longer finds one that a route has left meanwhile, and not yet one that came: neither goes.
#[test]
fn what_came_during_a_look_at_objects_comes_first() {
    // RTM_NEWNEXTHOP and RTM_DELNEXTHOP: NHA_ID, NHA_OIF
    let object = |kind, id: u32| {
        let oif = 1u32.to_ne_bytes();
        message(
            kind,
            0,
            &[2, 0, 4, 0, 0, 0, 0, 0],
            &[(1, &id.to_ne_bytes()), (5, &oif)],
        )
    };
    // RTA_DST, RTA_NH_ID
    let head = [2, 16, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0];
    let attributes: [(u8, &[u8]); 2] = [(1, &[172, 16, 0, 0]), (30, &5u32.to_ne_bytes())];
    let by_object = message(24, 0, &head, &attributes);
    for meanwhile in [route4(2, 0x100), object(104, 7)] {
        let kernel = Arc::new(Kernel::default());
        let (fake, mut stepped, source) = listen(&kernel);
        run(&fake, &mut stepped, Duration::from_secs(1));
        // the last one makes the look
        for datagram in [object(104, 5), by_object.clone(), object(105, 9)] {
            let told = (Protocol::Route, datagram);
            kernel.told.lock().unwrap().push_back(told);
        }
        *kernel.meanwhile.lock().unwrap() = Some((Dump::Nexthops, meanwhile));
        source.barrier(7);
        run(&fake, &mut stepped, Duration::from_secs(1));
        assert!(kernel.meanwhile.lock().unwrap().is_none());
        let events = source.messages().try_iter().filter_map(|m| match m {
            Message::Events(events) => Some(events),
            _ => None,
        });
        let events: Vec<Event> = events.flatten().collect();
        let at = |f: &dyn Fn(&Event) -> bool| events.iter().rposition(f);
        let gone = at(&|e| matches!(e, Event::Remove(_, Key::Nexthop(5))));
        assert!(gone.is_some(), "{events:?}");
        let moved = at(
            &|e| matches!(e, Event::Upsert(_, Object::Route(r)) if matches!(&r.nexthops, RouteNextHops::One(_))),
        );
        if moved.is_some() {
            assert!(moved < gone, "{events:?}");
            // the kernel of this test dumps no IPv4 routes
            let mut all = events.iter();
            let left = all.position(|e| matches!(e, Event::Remove(_, Key::Route(_))));
            assert!(left.is_none() || left > gone, "{events:?}");
        } else {
            assert!(
                at(&|e| matches!(e, Event::Upsert(_, Object::Nexthop(n)) if n.id == 7)).is_some()
            );
            assert_eq!(
                at(&|e| matches!(e, Event::Remove(_, Key::Nexthop(7)))),
                None
            );
        }
    }
}

/// A device that goes while its routes are looked at takes them along, and nothing else is read for that.
#[test]
fn a_device_that_is_gone_costs_no_dump_of_everything() {
    let kernel = Arc::new(Kernel {
        routes6: vec![decoded(&replaced6())],
        gone: 1,
        ..Kernel::default()
    });
    let (fake, mut stepped, source) = listen(&kernel);
    run(&fake, &mut stepped, Duration::from_secs(1));
    let told = (Protocol::Route, gone6());
    kernel.told.lock().unwrap().push_back(told);
    source.barrier(7);
    run(&fake, &mut stepped, Duration::from_secs(1));
    assert_eq!((source.status().resyncs, source.status().routes), (1, 0));
    assert!(
        source
            .messages()
            .try_iter()
            .any(|m| m == Message::Barrier(7))
    );
}

/// Routes by a device and next-hop objects are uncertain at once: both are asked for.
#[test]
fn each_doubt_is_looked_into() {
    let kernel = Arc::new(Kernel {
        routes6: vec![decoded(&replaced6())],
        ..Kernel::default()
    });
    let (fake, mut stepped, source) = listen(&kernel);
    run(&fake, &mut stepped, Duration::from_secs(1));
    kernel.begun.lock().unwrap().clear();
    // RTM_DELNEXTHOP, NHA_ID
    let object = message(
        105,
        0,
        &[2, 0, 4, 0, 0, 0, 0, 0],
        &[(1, &5u32.to_ne_bytes())],
    );
    for datagram in [object, gone6()] {
        let told = (Protocol::Route, datagram);
        kernel.told.lock().unwrap().push_back(told);
    }
    source.barrier(7);
    run(&fake, &mut stepped, Duration::from_secs(1));
    let begun = kernel.begun.lock().unwrap().clone();
    let of = |d: &&Dump| matches!(d, Dump::Routes(_, f) if f.oif == Some(1));
    assert!(begun.contains(&Dump::Nexthops), "{begun:?}");
    assert_eq!(begun.iter().filter(of).count(), 2, "{begun:?}");
}

/// A bucket has moved, and something comes in while another doubt is looked into: whoever waits is answered when the buckets
/// are read.
#[test]
fn who_waits_is_answered_when_the_buckets_are_read() {
    let kernel = Arc::new(Kernel {
        routes6: vec![decoded(&replaced6())],
        ..Kernel::default()
    });
    let (fake, mut stepped, source) = listen(&kernel);
    run(&fake, &mut stepped, Duration::from_secs(1));
    kernel.begun.lock().unwrap().clear();
    // RTM_NEWNEXTHOPBUCKET, NHA_ID, NHA_RES_BUCKET with index and member
    let bucket = [6, 0, 1, 0, 0, 0, 0, 0, 8, 0, 3, 0, 1, 0, 0, 0];
    let id = 10u32.to_ne_bytes();
    let moved = message(116, 0, &[0; 8], &[(1, &id), (13, &bucket)]);
    for datagram in [moved, gone6()] {
        let told = (Protocol::Route, datagram);
        kernel.told.lock().unwrap().push_back(told);
    }
    let by_device = nl::RouteFilter {
        oif: Some(1),
        ..nl::RouteFilter::default()
    };
    let look = Dump::Routes(nl::Family::V4, by_device);
    *kernel.meanwhile.lock().unwrap() = Some((look, gone6()));
    source.barrier(7);
    for _ in 0..100 {
        stepped.turn();
        let mut messages = source.messages().try_iter();
        if messages.any(|m| m == Message::Barrier(7)) {
            let begun = kernel.begun.lock().unwrap().clone();
            assert!(begun.contains(&look), "{begun:?}");
            let read = Dump::NexthopBuckets(Some(10));
            assert!(begun.contains(&read), "{begun:?}");
            return;
        }
    }
    panic!("nobody is answered");
}

/// A look at one device finds a route of it ahead of its message, before another of its key that leads elsewhere: where it stands all
/// IPv4 routes say.
#[test]
fn a_look_at_one_device_moves_no_route_behind_another_ones() {
    let way = |device| decoded(&route4(device, 0));
    let kernel = Arc::new(Kernel {
        routes6: vec![decoded(&replaced6())],
        ..Kernel::default()
    });
    let (fake, mut stepped, source) = listen(&kernel);
    run(&fake, &mut stepped, Duration::from_secs(1));
    let prepended = nl::Route {
        mtu: 1400,
        ..way(1)
    };
    *kernel.routes4.lock().unwrap() = vec![prepended, way(1), way(2)];
    let appended = 0x800;
    for datagram in [route4(1, appended), route4(2, appended), gone6()] {
        let told = (Protocol::Route, datagram);
        kernel.told.lock().unwrap().push_back(told);
    }
    source.barrier(7);
    run(&fake, &mut stepped, Duration::from_secs(1));
    let mut order = BTreeMap::new();
    for message in source.messages().try_iter() {
        let Message::Events(events) = message else {
            continue;
        };
        for event in events {
            match event {
                Event::Upsert(_, Object::Route(r)) if r.key.prefix.addr().is_ipv4() => {
                    let RouteNextHops::One(hop) = &r.nexthops else {
                        panic!("{r:?}");
                    };
                    order.insert(r.key.position, hop.ifindex);
                }
                Event::Remove(_, Key::Route(key)) if key.prefix.addr().is_ipv4() => {
                    order.remove(&key.position);
                }
                _ => {}
            }
        }
    }
    assert_eq!(order.into_values().collect::<Vec<_>>(), [1, 1, 2]);
}
