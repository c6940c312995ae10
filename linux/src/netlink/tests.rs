//! See the tests of each kind; here: what needs a kernel, and all kinds at once.

use std::process::Command;
use std::time::Instant;

use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::AddressAttribute;
use netlink_packet_route::link::{InfoData, InfoKind, LinkAttribute, LinkInfo};
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute};
use netlink_packet_route::route::{RouteAddress, RouteAttribute};
use netlink_sys::{Socket, SocketAddr, protocols};
use proptest::prelude::*;

use super::wire::{Msgs, Writer};
use super::*;

/// A network namespace that goes with its guard.
struct Ns(String);

impl Ns {
    fn new(what: &str) -> Option<Self> {
        let ns = Self(format!("nl-{what}-{}", std::process::id()));
        if !ip(&["netns", "add", &ns.0]) {
            // root has the right: where it doesn't come to that, something else is wrong
            assert!(
                !rustix::process::geteuid().is_root(),
                "ip netns add {}",
                ns.0
            );
            eprintln!("skipped: no right to make network namespaces");
            return None;
        }
        assert!(ns.ip("link set lo up"));
        Some(ns)
    }

    fn ip(&self, args: &str) -> bool {
        let mut all = vec!["-n", &self.0];
        all.extend(args.split(' '));
        ip(&all)
    }

    fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> T {
        use std::os::fd::AsFd;
        let ns = crate::netns::open(&self.0).unwrap();
        crate::netns::run_in(ns.as_fd(), || Ok(f())).unwrap()
    }
}

impl Drop for Ns {
    fn drop(&mut self) {
        ip(&["netns", "del", &self.0]);
    }
}

fn ip(args: &[&str]) -> bool {
    Command::new("ip").args(args).status().unwrap().success()
}

fn some_route(i: u32) -> Route {
    let a = i.to_be_bytes();
    Route {
        table: 254,
        dst: ipnet::IpNet::V4(ipnet::Ipv4Net::new([20 + a[1], a[2], a[3], 0].into(), 24).unwrap()),
        tos: 0,
        metric: 20,
        kind: RTN_UNICAST,
        scope: 0,
        protocol: 186,
        flags: 0,
        nh_id: 0,
        nexthops: Nexthops::One(RouteNexthop {
            ifindex: 2,
            gateway: Some([10, 0, 0, 2].into()),
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

/// Why routes have a decoder of their own: prints ns per message of both. Measured on 2 × 2.x GHz
/// virtual cores, release build; see the assertion for what must hold in any build.
#[test]
fn bench_decode() {
    let mut w = Writer::new();
    for i in 0..256 {
        route::add(&mut w, 0, i, &some_route(i));
    }
    let bytes = w.bytes().to_vec();
    let rounds = if cfg!(debug_assertions) { 20 } else { 400 };
    // the fastest round: in the others somebody else may have had the processor
    let fastest = |round: &mut dyn FnMut() -> u64| {
        let time = |_| {
            let t = Instant::now();
            let messages = round();
            t.elapsed().as_nanos() as f64 / messages as f64
        };
        (0..rounds).map(time).fold(f64::INFINITY, f64::min)
    };
    let ours_ns = fastest(&mut || {
        let mut ours = 0;
        decode(Protocol::Route, &bytes, |e| {
            ours += u64::from(matches!(e, Event::New(Object::Route(_), _)))
        });
        ours
    });
    let typed_ns = fastest(&mut || {
        let mut typed = 0;
        for m in Msgs::new(&bytes) {
            let header = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&frame(&m)).unwrap();
            typed += u64::from(!matches!(
                header.payload,
                netlink_packet_core::NetlinkPayload::Noop
            ));
        }
        typed
    });
    eprintln!("route message: ours {ours_ns:.0} ns, typed library {typed_ns:.0} ns");
    assert!(
        ours_ns < 3_333.0,
        "{ours_ns} ns: less than 300,000 messages a second"
    );
}

fn frame(m: &wire::Msg<'_>) -> Vec<u8> {
    let mut b = ((m.payload.len() + 16) as u32).to_ne_bytes().to_vec();
    b.extend_from_slice(&m.kind.to_ne_bytes());
    b.extend_from_slice(&m.flags.to_ne_bytes());
    b.extend_from_slice(&m.seq.to_ne_bytes());
    b.extend_from_slice(&[0; 4]);
    b.extend_from_slice(m.payload);
    b
}

/// All datagrams of a dump, raw.
fn raw_dump(w: &Writer) -> Vec<Vec<u8>> {
    let mut socket = Socket::new(protocols::NETLINK_ROUTE).unwrap();
    socket.bind(&SocketAddr::new(0, 0)).unwrap();
    socket.send(w.bytes(), 0).unwrap();
    let mut out = Vec::new();
    loop {
        let (datagram, _) = socket.recv_from_full().unwrap();
        let done = Msgs::new(&datagram).any(|m| m.kind == NLMSG_DONE || m.kind == NLMSG_ERROR);
        out.push(datagram);
        if done {
            return out;
        }
    }
}

/// What the typed library makes of the same bytes, in our words; only what both have.
fn typed(m: &wire::Msg<'_>) -> Option<String> {
    let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&frame(m)).ok()?;
    let NetlinkPayload::InnerMessage(inner) = message.payload else {
        return None;
    };
    match inner {
        RouteNetlinkMessage::NewRoute(r) => {
            let (mut dst, mut gw, mut oif, mut metric, mut table) = (None, None, 0, 0, 0);
            for a in &r.attributes {
                match a {
                    RouteAttribute::Destination(RouteAddress::Inet(a)) => dst = Some((*a).into()),
                    RouteAttribute::Destination(RouteAddress::Inet6(a)) => dst = Some((*a).into()),
                    RouteAttribute::Gateway(RouteAddress::Inet(a)) => gw = Some((*a).into()),
                    RouteAttribute::Gateway(RouteAddress::Inet6(a)) => gw = Some((*a).into()),
                    RouteAttribute::Oif(i) => oif = *i,
                    RouteAttribute::Priority(p) => metric = *p,
                    RouteAttribute::Table(t) => table = *t,
                    RouteAttribute::MultiPath(_) => return None,
                    _ => {}
                }
            }
            let h = &r.header;
            let unset = if u8::from(h.address_family) == libc::AF_INET as u8 {
                std::net::IpAddr::from([0, 0, 0, 0])
            } else {
                std::net::Ipv6Addr::UNSPECIFIED.into()
            };
            let dst = dst.unwrap_or(unset);
            Some(route_words(
                dst,
                h.destination_prefix_length,
                table,
                metric,
                oif,
                gw,
                u8::from(h.kind),
            ))
        }
        RouteNetlinkMessage::NewAddress(a) => {
            let local = a.attributes.iter().find_map(|x| match x {
                AddressAttribute::Local(l) => Some(*l),
                _ => None,
            });
            let address = a.attributes.iter().find_map(|x| match x {
                AddressAttribute::Address(l) => Some(*l),
                _ => None,
            });
            Some(format!(
                "{} {:?} {}",
                a.header.index,
                local.or(address)?,
                a.header.prefix_len
            ))
        }
        RouteNetlinkMessage::NewNeighbour(n) => {
            let (mut dst, mut mac) = (None, None);
            for x in &n.attributes {
                match x {
                    NeighbourAttribute::Destination(NeighbourAddress::Inet(a)) => {
                        dst = Some((*a).into())
                    }
                    NeighbourAttribute::Destination(NeighbourAddress::Inet6(a)) => {
                        dst = Some((*a).into())
                    }
                    NeighbourAttribute::LinkLayerAddress(a) => {
                        mac = <[u8; 6]>::try_from(a.as_slice()).ok()
                    }
                    _ => {}
                }
            }
            let dst: std::net::IpAddr = dst?;
            Some(format!(
                "{} {dst} {mac:?} {}",
                n.header.ifindex,
                u16::from(n.header.state)
            ))
        }
        RouteNetlinkMessage::NewLink(l) => {
            let (mut name, mut mtu, mut master, mut bridge) = (String::new(), 0, 0, None);
            for x in &l.attributes {
                match x {
                    LinkAttribute::IfName(n) => name.clone_from(n),
                    LinkAttribute::Mtu(m) => mtu = *m,
                    LinkAttribute::Controller(m) => master = *m,
                    LinkAttribute::LinkInfo(info) => {
                        for i in info {
                            if let LinkInfo::Data(InfoData::Bridge(b)) = i {
                                bridge = Some(bridge_words(b));
                            }
                        }
                        assert!(
                            bridge.is_none() || info.contains(&LinkInfo::Kind(InfoKind::Bridge))
                        );
                    }
                    _ => {}
                }
            }
            Some(format!(
                "{} {name} {mtu} {master} {:#x} {bridge:?}",
                l.header.index,
                l.header.flags.bits()
            ))
        }
        _ => None,
    }
}

fn bridge_words(b: &[netlink_packet_route::link::InfoBridge]) -> (bool, u32, bool) {
    use netlink_packet_route::link::InfoBridge as I;
    let mut out = (false, 0, false);
    for x in b {
        match x {
            I::VlanFiltering(v) => out.0 = *v,
            I::AgeingTime(v) => out.1 = *v,
            I::MulticastSnooping(v) => out.2 = *v,
            _ => {}
        }
    }
    out
}

#[allow(clippy::too_many_arguments)]
fn route_words(
    dst: std::net::IpAddr,
    len: u8,
    table: u32,
    metric: u32,
    oif: u32,
    gateway: Option<std::net::IpAddr>,
    kind: u8,
) -> String {
    format!("{dst}/{len} table {table} metric {metric} oif {oif} gateway {gateway:?} type {kind}")
}

fn ours(object: &Object) -> Option<String> {
    match object {
        Object::Route(r) => {
            let hop = match &r.nexthops {
                Nexthops::None => (0, None),
                Nexthops::One(h) => (h.ifindex, h.gateway),
                Nexthops::Many(_) => return None,
            };
            Some(route_words(
                r.dst.addr(),
                r.dst.prefix_len(),
                r.table,
                r.metric,
                hop.0,
                hop.1,
                r.kind,
            ))
        }
        Object::Addr(a) => Some(format!("{} {:?} {}", a.ifindex, a.local, a.prefix_len)),
        Object::Neigh(n) => Some(format!("{} {} {:?} {}", n.ifindex, n.addr, n.mac, n.state)),
        Object::Link(l) => {
            let bridge = match &l.kind {
                LinkKind::Bridge(b) => Some((b.vlan_filtering, b.ageing_time, b.mcast_snooping)),
                _ => None,
            };
            Some(format!(
                "{} {} {} {} {:#x} {bridge:?}",
                l.index, l.name, l.mtu, l.master, l.flags
            ))
        }
        _ => None,
    }
}

const SETUP: &[&str] = &[
    "link add br0 type bridge ageing_time 1000 mcast_snooping 0",
    "link add v1 type veth peer name p1",
    "link add v2 type veth peer name p2 address 02:00:00:00:00:02",
    "link set v2 master br0",
    "link set v1 up",
    "link set p1 up",
    "link set v2 up",
    "link set p2 up",
    "link set br0 up",
    "addr add 10.0.0.1/24 dev v1",
    "addr add 10.9.0.1 peer 10.9.0.2/32 dev v1",
    "addr add 2001:db8::1/64 dev v1 nodad",
    "neigh add 10.0.0.9 lladdr 02:00:00:00:00:09 dev v1",
    "neigh add 2001:db8::9 lladdr 02:00:00:00:00:19 dev v1",
    "route add 172.16.0.0/16 via 10.0.0.9 metric 7",
    "route add 172.17.0.0/16 via inet6 fe80::9 dev v1 table 1000",
    "route add blackhole 172.18.0.0/16",
    "route add 2001:db8:1::/48 via 2001:db8::9",
    "route add default via 10.0.0.9",
];

/// The library knows the wire as well as anybody: both must read the same out of a real dump.
#[test]
fn what_a_typed_library_reads() {
    let Some(ns) = Ns::new("oracle") else { return };
    for command in SETUP {
        assert!(ns.ip(command), "{command}");
    }
    let (mut compared, mut vias) = (0, 0);
    ns.run(|| {
        let every = RouteFilter::default();
        let mut requests: Vec<Writer> = vec![Writer::new(); 6];
        link::dump(&mut requests[0], 1);
        addr::dump(&mut requests[1], 1);
        neigh::dump(&mut requests[2], 1, Family::V4);
        neigh::dump(&mut requests[3], 1, Family::V6);
        route::dump(&mut requests[4], 1, Family::V4, every);
        route::dump(&mut requests[5], 1, Family::V6, every);
        for w in &requests {
            for datagram in raw_dump(w) {
                for m in Msgs::new(&datagram) {
                    let Some(Event::New(object, NewMode::Plain)) = decode_route_family(&m) else {
                        continue;
                    };
                    if let Object::Route(r) = &object
                        && r.family() == Family::V4
                        && r.nexthops
                            .as_slice()
                            .iter()
                            .any(|h| h.gateway.is_some_and(|g| g.is_ipv6()))
                    {
                        vias += 1; // told as RTA_VIA, another attribute in the library
                        continue;
                    }
                    assert_eq!(ours(&object), typed(&m), "{object:?}");
                    compared += 1;
                }
            }
        }
    });
    assert!(compared > 25, "{compared}");
    assert_eq!(vias, 1);
}

#[test]
fn changes_and_their_answers() {
    let Some(ns) = Ns::new("ask") else { return };
    for command in SETUP {
        assert!(ns.ip(command), "{command}");
    }
    ns.run(|| {
        let mut r = Requests::open().unwrap();
        let link = |r: &mut Requests, name: &str| {
            let all = r.objects(Dump::Links).unwrap();
            all.into_iter()
                .find_map(|o| match o {
                    Object::Link(l) if l.name == name => Some(l),
                    _ => None,
                })
                .unwrap()
        };
        let v1 = link(&mut r, "v1");
        assert!(v1.admin_up() && v1.carrier());
        r.settle().unwrap();
        r.link_mac(v1.index, &[2, 0, 0, 0, 0, 0x77]).unwrap();
        assert_eq!(link(&mut r, "v1").mac, Some([2, 0, 0, 0, 0, 0x77]));
        let e = r.link_mac(4711, &[2, 0, 0, 0, 0, 0x77]).unwrap_err();
        assert!(e.is_gone(), "{e}");
        // the kernel's own words come through
        let e = r.fdb_learned(4711, &[2, 0, 0, 0, 1, 1], 0).unwrap_err();
        assert_eq!(e.errno, libc::ENODEV);
        assert!(e.extack.contains("ifindex"), "{e}");
        assert!(ns.ip("link set v1 down"));
        assert!(!link(&mut r, "v1").admin_up());
        assert!(ns.ip("link set v1 up"));
        let v2 = link(&mut r, "v2");
        assert_eq!(v2.brport.map(|p| p.learning), Some(true));
        r.port_learning(v2.index, false).unwrap();
        assert_eq!(link(&mut r, "v2").brport.map(|p| p.learning), Some(false));
        // an entry of the hardware's moves, and goes
        r.fdb_learned(v2.index, &[2, 0, 0, 0, 1, 1], 0).unwrap();
        let fdb = |r: &mut Requests| -> Vec<FdbEntry> {
            let all = r.objects(Dump::Fdb).unwrap();
            all.into_iter()
                .filter_map(|o| match o {
                    Object::Fdb(f) if f.mac == [2, 0, 0, 0, 1, 1] => Some(f),
                    _ => None,
                })
                .collect()
        };
        let entry = fdb(&mut r);
        assert_eq!(entry.len(), 1);
        assert_eq!((entry[0].ifindex, entry[0].master), (v2.index, v2.master));
        assert_ne!(entry[0].flags & NTF_EXT_LEARNED, 0);
        r.fdb_del(v2.index, &[2, 0, 0, 0, 1, 1], 0).unwrap();
        assert_eq!(fdb(&mut r), []);
        assert!(
            r.fdb_del(v2.index, &[2, 0, 0, 0, 1, 1], 0)
                .unwrap_err()
                .is_gone()
        );
        // filtered dumps
        let filter = RouteFilter {
            table: Some(1000),
            ..RouteFilter::default()
        };
        assert_eq!(
            r.objects(Dump::Routes(Family::V4, filter)).unwrap().len(),
            0,
            "went with the link"
        );
        let gone = RouteFilter {
            oif: Some(4711),
            ..RouteFilter::default()
        };
        let e = r.objects(Dump::Routes(Family::V4, gone)).unwrap_err();
        assert_eq!(e.errno, libc::ENODEV);
        // and the socket is still in step after all these refusals
        assert!(r.objects(Dump::Rules(Family::V4)).unwrap().len() == 3);
    });
}

#[test]
fn next_hop_objects_in_the_kernel() {
    let Some(ns) = Ns::new("nh") else { return };
    for command in SETUP {
        assert!(ns.ip(command), "{command}");
    }
    for made in [
        "id 1 via 10.0.0.9 dev v1",
        "id 2 via 10.0.0.8 dev v1",
        "id 3 blackhole",
        "id 4 group 1/2,255",
        "id 5 group 1,3/2,4 type resilient buckets 32",
    ] {
        assert!(ns.ip(&format!("nexthop add {made}")), "{made}");
    }
    ns.run(|| {
        let mut r = Requests::open().unwrap();
        let index = rustix::net::netdevice::name_to_index(
            Socket::new(protocols::NETLINK_ROUTE).unwrap(),
            "v1",
        )
        .unwrap();
        let kinds = [
            (
                1,
                NexthopKind::Single {
                    ifindex: index,
                    gateway: Some([10, 0, 0, 9].into()),
                    encap: false,
                },
            ),
            (
                2,
                NexthopKind::Single {
                    ifindex: index,
                    gateway: Some([10, 0, 0, 8].into()),
                    encap: false,
                },
            ),
            (3, NexthopKind::Blackhole),
            (
                4,
                NexthopKind::Group {
                    members: vec![(1, 1), (2, 255)],
                    resilient: false,
                },
            ),
            (
                5,
                NexthopKind::Group {
                    members: vec![(1, 3), (2, 4)],
                    resilient: true,
                },
            ),
        ];
        let back: Vec<_> = r
            .objects(Dump::Nexthops)
            .unwrap()
            .into_iter()
            .filter_map(|o| match o {
                Object::Nexthop(n) => Some((n.id, n.kind)),
                _ => None,
            })
            .collect();
        for (id, kind) in kinds {
            // the kernel puts a blackhole on loopback and tells it so
            assert!(
                back.contains(&(id, kind.clone())),
                "{id} {kind:?} not in {back:?}"
            );
        }
        for group in [None, Some(5)] {
            let buckets: Vec<_> = r
                .objects(Dump::NexthopBuckets(group))
                .unwrap()
                .into_iter()
                .filter_map(|o| match o {
                    Object::NexthopBucket(b) => Some(b),
                    _ => None,
                })
                .collect();
            assert!(
                buckets
                    .iter()
                    .map(|b| (b.group, b.index))
                    .eq((0..32).map(|i| (5, i))),
                "{buckets:?}"
            );
            // weights 3 and 4 of 32 buckets: 13.7 and 18.3
            let of = |id| buckets.iter().filter(|b| b.nexthop == id).count();
            assert_eq!((of(1), of(2)), (14, 18));
        }
        assert!(r.objects(Dump::NexthopBuckets(Some(4))).is_err());
    });
}

proptest! {
    /// Whatever bytes come, nothing panics and nothing loops.
    #[test]
    fn any_bytes_are_survived(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), kind in 16u16..110, netfilter: bool) {
        if bytes.len() >= 16 {
            let len = (bytes.len() as u32).to_ne_bytes();
            bytes[..4].copy_from_slice(&len);
            bytes[4..6].copy_from_slice(&(if netfilter { (10 << 8) | (kind % 8) } else { kind }).to_ne_bytes());
        }
        let protocol = if netfilter { Protocol::Netfilter } else { Protocol::Route };
        decode(protocol, &bytes, |_| {});
    }

    /// A true message with a few bytes changed: the same.
    #[test]
    fn a_damaged_message_is_survived(i in 0u32..1000, at in 0usize..80, value: u8, cut in 16usize..90) {
        let mut w = Writer::new();
        route::add(&mut w, 0, 1, &some_route(i));
        let mut bytes = w.bytes().to_vec();
        if let Some(b) = bytes.get_mut(at) {
            *b = value;
        }
        bytes.truncate(cut);
        decode(Protocol::Route, &bytes, |_| {});
    }
}
