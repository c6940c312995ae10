//! The recorded kernel, as the listener hears it and asks it.
//!
//! ```text
//!   Recording ─ decoded once ─► Prepared ─┬─ rests: objects of the dumps, files     ◄── Questions
//!                                         └─ datagrams of each step ─► queue        ◄── Ears
//!                        Kernel: at which rest it is, what of its datagrams is unread or lost
//! ```
//!
//! It is at one of its rests at any time, and all that it told up to there has been put into the listener's socket; the
//! listener may be far behind. While it is being asked it may go on to its next rests.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use tandem_core::source::{SourceError, Write, WriteBack};
use tandem_linux::eventfd::EventFd;
use tandem_linux::netlink::{self as nl, Dump, Family, Protocol};
use tandem_netlink::kernel::{Ears, Questions};
use tandem_netlink::stepped::Origin;

use crate::recording::{Port, Recording, Socket, Step};

/// Time of a play, ns, monotonic: only the play moves it.
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    /// Now.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// So much later.
    pub fn pass(&self, ns: u64) {
        self.0.fetch_add(ns, Relaxed);
    }
}

/// What files say, by path.
type Files = HashMap<String, String>;

/// A rest of the recording: what the kernel has.
#[derive(Debug, Default)]
pub struct Rest {
    /// All objects of its dumps, by kind.
    objects: HashMap<Kind, Vec<nl::Object>>,
    /// Files by path.
    files: Arc<Files>,
    /// Front-panel ports with nothing at the other end of the wire: those whose netdev is up and has no carrier; what a netdev
    /// can't tell while it is down is as it was.
    pub dark: Vec<u16>,
    /// Those, and the ones whose netdev is down.
    pub down: Vec<u16>,
}

/// What is dumped together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Link,
    Addr,
    Neigh(Family),
    Fdb,
    Nexthop,
    Bucket,
    Route(Family),
    Rule(Family),
    Netconf(Family),
    Chain,
    Vlan,
    Mdb,
    Qdisc,
    Filter,
}

fn family(v6: bool) -> Family {
    if v6 { Family::V6 } else { Family::V4 }
}

fn kind_of(object: &nl::Object) -> Option<Kind> {
    Some(match object {
        nl::Object::Link(_) => Kind::Link,
        nl::Object::Addr(_) => Kind::Addr,
        nl::Object::Neigh(n) => Kind::Neigh(family(n.addr.is_ipv6())),
        nl::Object::Fdb(_) => Kind::Fdb,
        nl::Object::Nexthop(_) => Kind::Nexthop,
        nl::Object::NexthopBucket(_) => Kind::Bucket,
        nl::Object::Route(r) => Kind::Route(r.family()),
        nl::Object::Rule(r) => Kind::Rule(r.family),
        nl::Object::Netconf(n) => Kind::Netconf(n.family),
        nl::Object::BaseChain(_) => Kind::Chain,
        nl::Object::BridgeVlans(_) => Kind::Vlan,
        nl::Object::Mdb(_) => Kind::Mdb,
        nl::Object::Qdisc(_) => Kind::Qdisc,
        nl::Object::Filter(_) => Kind::Filter,
        _ => return None,
    })
}

impl Rest {
    /// What the kernel has, with these front-panel ports.
    #[must_use]
    pub fn new(
        objects: impl IntoIterator<Item = nl::Object>,
        files: Arc<Files>,
        ports: &[Port],
    ) -> Rest {
        let mut rest = Rest {
            files,
            ..Rest::default()
        };
        for object in objects {
            if let Some(kind) = kind_of(&object) {
                rest.objects.entry(kind).or_default().push(object);
            }
        }
        let (mut dark, mut down) = (Vec::new(), Vec::new());
        for (port, n) in ports.iter().zip(1..) {
            let Some(link) = rest.link(port.ifindex) else {
                continue;
            };
            if !link.admin_up() || !link.carrier() {
                down.push(n);
            }
            if link.admin_up() && !link.carrier() {
                dark.push(n);
            }
        }
        (rest.dark, rest.down) = (dark, down);
        rest
    }

    /// What was at the other end of wires is there still, where the port's netdev is down and can't tell.
    fn keep_wires(&mut self, before: &Rest, ports: &[Port]) {
        for (port, n) in ports.iter().zip(1..) {
            let down = self.link(port.ifindex).is_some_and(|l| !l.admin_up());
            if down && before.dark.contains(&n) {
                self.dark.push(n);
            }
        }
    }

    fn of(&self, kind: Kind) -> &[nl::Object] {
        self.objects.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// All devices.
    pub fn links(&self) -> impl Iterator<Item = &nl::Link> {
        self.of(Kind::Link).iter().filter_map(|o| match o {
            nl::Object::Link(l) => Some(l),
            _ => None,
        })
    }

    /// A device.
    #[must_use]
    pub fn link(&self, ifindex: u32) -> Option<&nl::Link> {
        self.links().find(|l| l.index == ifindex)
    }

    /// All addresses.
    pub fn addrs(&self) -> impl Iterator<Item = &nl::Addr> {
        self.of(Kind::Addr).iter().filter_map(|o| match o {
            nl::Object::Addr(a) => Some(a),
            _ => None,
        })
    }

    /// The VLANs of a bridge or of one of its ports.
    pub fn vlans(&self, ifindex: u32) -> impl Iterator<Item = &nl::BridgeVlan> {
        let all = self.of(Kind::Vlan).iter().filter_map(move |o| match o {
            nl::Object::BridgeVlans(v) if v.ifindex == ifindex => Some(&v.vlans),
            _ => None,
        });
        all.flatten()
    }

    /// Members of multicast groups, of this bridge or of all.
    pub fn members(&self, bridge: Option<u32>) -> impl Iterator<Item = &nl::MdbEntry> {
        let all = self.of(Kind::Mdb).iter().filter_map(move |o| match o {
            nl::Object::Mdb(m) if bridge.is_none_or(|b| b == m.bridge) => Some(&m.entries),
            _ => None,
        });
        all.flatten()
    }

    /// All policy rules of a family.
    pub fn rules(&self, family: Family) -> impl Iterator<Item = &nl::Rule> {
        self.of(Kind::Rule(family)).iter().filter_map(|o| match o {
            nl::Object::Rule(r) => Some(r),
            _ => None,
        })
    }

    /// Whether packets of a family that come in by a device are routed, if it is told. In IPv6 no device is asked (net/ipv6/ip6_output.c
    /// `ip6_forward`), but one without settings takes none.
    #[must_use]
    pub fn forwards(&self, ifindex: u32, family: Family) -> bool {
        let device = nl::NetconfTarget::Link(ifindex);
        let is = |target, on: bool| {
            self.of(Kind::Netconf(family)).iter().any(|o| {
                matches!(o, nl::Object::Netconf(n)
                    if n.target == target && (!on || n.forwarding == Some(true)))
            })
        };
        match family {
            Family::V6 => is(nl::NetconfTarget::All, true) && is(device, false),
            _ => is(device, true),
        }
    }

    /// The port by which a station of a device is reached: the device itself, the one beneath a VLAN interface, or the
    /// bridge's where the station is known.
    #[must_use]
    pub fn port_to(&self, ifindex: u32, mac: [u8; 6], ports: &[Port]) -> Option<u16> {
        let beneath = self.link(ifindex).and_then(|l| match l.kind {
            nl::LinkKind::Vlan(vlan) => Some((l.lower, vlan.id)),
            _ => None,
        });
        let (ifindex, vlan) = beneath.unwrap_or((ifindex, 0));
        let number = |ifindex: u32| {
            let place = ports.iter().position(|p| p.ifindex == ifindex)?;
            u16::try_from(place + 1).ok()
        };
        number(ifindex).or_else(|| {
            self.of(Kind::Fdb).iter().find_map(|o| match o {
                nl::Object::Fdb(f)
                    if f.master == ifindex
                        && f.mac == mac
                        && (vlan == 0 || [0, vlan].contains(&f.vlan)) =>
                {
                    number(f.ifindex)
                }
                _ => None,
            })
        })
    }

    /// All routes.
    pub fn routes(&self) -> impl Iterator<Item = &nl::Route> {
        let both = [Family::V4, Family::V6].into_iter();
        both.flat_map(|f| self.of(Kind::Route(f)))
            .filter_map(|o| match o {
                nl::Object::Route(r) => Some(r),
                _ => None,
            })
    }

    /// How many lines the kernel's file has of a destination and metric: one for each IPv6 route, of a multipath route one for
    /// each next hop, those that no dump shows as well.
    #[must_use]
    pub fn lines6(&self, dst: &IpNet, metric: u32) -> usize {
        let (IpNet::V6(dst), Some(text)) = (dst, self.files.get(tandem_netlink::ROUTES6)) else {
            return 0;
        };
        let net = format!("{:032x} {:02x} ", u128::from(dst.addr()), dst.prefix_len());
        let metric = format!("{metric:08x}");
        let of = |line: &&str| {
            let place = line.split_ascii_whitespace().nth(5);
            line.starts_with(&net) && place == Some(&metric)
        };
        text.lines().filter(of).count()
    }

    /// IPv6 is switched off at this interface (`disable_ipv6`), which no message tells.
    #[must_use]
    pub fn is_without6(&self, name: &str) -> bool {
        let path = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
        self.files.get(&path).is_some_and(|text| text.trim() == "1")
    }

    /// All next-hop objects.
    pub fn nexthops(&self) -> impl Iterator<Item = &nl::Nexthop> {
        self.of(Kind::Nexthop).iter().filter_map(|o| match o {
            nl::Object::Nexthop(n) => Some(n),
            _ => None,
        })
    }

    /// The address of a neighbour, when it is known.
    #[must_use]
    pub fn mac_of(&self, ifindex: u32, addr: &std::net::IpAddr) -> Option<[u8; 6]> {
        let all = self.of(Kind::Neigh(family(addr.is_ipv6())));
        all.iter().find_map(|o| match o {
            nl::Object::Neigh(n) if n.ifindex == ifindex && n.addr == *addr && n.usable() => n.mac,
            _ => None,
        })
    }

    /// What the kernel would answer to this lookup: a route of the tables that every address is looked up in, by the longest
    /// prefix and then the least metric. A VRF's, one by device or with sources, and what refuses packets it is not asked for here.
    fn look_up(&self, lookup: &nl::Lookup) -> nl::Found {
        let routes = self.of(Kind::Route(nl::Family::V6)).iter();
        let routes = routes.filter_map(|o| match o {
            nl::Object::Route(r) => Some(r),
            _ => None,
        });
        let leads = |r: &&nl::Route| {
            let here = r.table >= 254 && r.src.is_none() && lookup.oif == 0 && lookup.src.is_none();
            here && r.dst.contains(&std::net::IpAddr::V6(lookup.dst))
        };
        let best = routes
            .filter(leads)
            .max_by_key(|r| (r.table, r.dst.prefix_len(), std::cmp::Reverse(r.metric)));
        best.cloned().ok_or_else(|| nl::Error {
            request: "look up routes",
            errno: rustix::io::Errno::NETUNREACH.raw_os_error(),
            extack: String::new(),
        })
    }

    /// What the kernel would answer to this dump.
    fn answer(&self, what: Dump) -> Vec<nl::Object> {
        let kind = match what {
            Dump::Links => Kind::Link,
            Dump::Addrs => Kind::Addr,
            Dump::Neighs(f) => Kind::Neigh(f),
            Dump::Fdb => Kind::Fdb,
            Dump::Nexthops => Kind::Nexthop,
            Dump::NexthopBuckets(_) => Kind::Bucket,
            Dump::Routes(f, _) => Kind::Route(f),
            Dump::Rules(f) => Kind::Rule(f),
            Dump::Netconf(f) => Kind::Netconf(f),
            Dump::BaseChains => Kind::Chain,
            Dump::BridgeVlans => Kind::Vlan,
            Dump::Mdb => Kind::Mdb,
            Dump::Qdiscs => Kind::Qdisc,
            Dump::Filters(..) => Kind::Filter,
        };
        let wanted = |o: &&nl::Object| match (what, o) {
            (Dump::NexthopBuckets(Some(group)), nl::Object::NexthopBucket(b)) => b.group == group,
            // as the kernel's filter: a route with any next hop by that device
            (Dump::Routes(_, f), nl::Object::Route(r)) => f
                .oif
                .is_none_or(|oif| r.nexthops.as_slice().iter().any(|n| n.ifindex == oif)),
            (Dump::Filters(ifindex, hook), nl::Object::Filter(f)) => {
                f.ifindex == ifindex && f.hook == hook
            }
            _ => true,
        };
        self.of(kind).iter().filter(wanted).cloned().collect()
    }
}

/// A recording, ready to be played often.
#[derive(Debug)]
pub struct Prepared {
    /// As it was read.
    pub recording: Recording,
    /// The datagrams of each step.
    told: Vec<Vec<(Protocol, Vec<u8>)>>,
    rests: Vec<Rest>,
    /// Of each step: construct and operation of its command (`coverage.rs`).
    cells: Vec<Option<(Arc<str>, Arc<str>)>>,
    /// Of each step, by probe: whether the kernel owes an ICMP error (`verdict.rs`), once that was asked.
    owes: Vec<Vec<OnceLock<bool>>>,
}

const fn protocol(socket: Socket) -> Protocol {
    match socket {
        Socket::Route => Protocol::Route,
        Socket::Netfilter => Protocol::Netfilter,
    }
}

/// Neighbours that the kernel told of, and what the first dump held. With probes for neighbours turned off, as the recorder
/// has them, one that a packet is for fails at once and in silence (net/core/neighbour.c `__neigh_event_send`), which no kernel does
/// that asks: such entries are in no dump here.
#[derive(Debug, Default)]
struct Heard(HashSet<(u32, IpAddr)>);

impl Heard {
    fn told(&mut self, step: &Step) {
        for t in &step.told {
            nl::decode(protocol(t.socket), &t.data.0, |event| match event {
                nl::Event::New(nl::Object::Neigh(n), _) => {
                    self.0.insert((n.ifindex, n.addr));
                }
                nl::Event::Del(nl::Object::Neigh(n)) => {
                    self.0.remove(&(n.ifindex, n.addr));
                }
                _ => {}
            });
        }
    }

    /// Whether an object of a dump, the first one perhaps, could have been heard of.
    fn knows(&mut self, object: &nl::Object, first: bool) -> bool {
        let nl::Object::Neigh(n) = object else {
            return true;
        };
        if first {
            self.0.insert((n.ifindex, n.addr));
        }
        n.usable() || self.0.contains(&(n.ifindex, n.addr))
    }
}

impl Prepared {
    /// Decodes the dumps.
    #[must_use]
    pub fn new(recording: Recording) -> Prepared {
        let (mut told, mut rests) = (Vec::new(), Vec::<Rest>::new());
        let mut files = Arc::<Files>::default();
        let mut heard = Heard::default();
        for (at, step) in recording.steps.iter().enumerate() {
            heard.told(step);
            let datagrams = step.told.iter();
            told.push(
                datagrams
                    .map(|t| (protocol(t.socket), t.data.0.clone()))
                    .collect(),
            );
            if !step.files.is_empty() {
                Arc::make_mut(&mut files).extend(step.files.clone());
            }
            let mut objects = Vec::new();
            for dump in &step.dumps {
                for datagram in &dump.data {
                    nl::decode(protocol(dump.socket), &datagram.0, |event| {
                        if let nl::Event::New(object, _) = event
                            && heard.knows(&object, at == 0)
                        {
                            objects.push(object);
                        }
                    });
                }
            }
            let mut rest = Rest::new(objects, Arc::clone(&files), &recording.ports);
            if let Some(before) = rests.last() {
                rest.keep_wires(before, &recording.ports);
            }
            rests.push(rest);
        }
        let cell = |step: &Step| {
            let (what, how) = crate::coverage::cell(step.command.as_ref()?);
            Some((what.into(), how.into()))
        };
        let cells = recording.steps.iter().map(cell).collect();
        let answers = recording.steps.iter().map(|s| s.answers.len());
        let owes = answers.map(|n| vec![OnceLock::new(); n]).collect();
        Prepared {
            recording,
            told,
            rests,
            cells,
            owes,
        }
    }

    /// Construct and operation of a step's command.
    #[must_use]
    pub fn cell(&self, step: usize) -> Option<&(Arc<str>, Arc<str>)> {
        self.cells.get(step)?.as_ref()
    }

    /// Where it is kept whether the kernel owed an ICMP error for a probe at a rest.
    #[must_use]
    pub fn owes(&self, at: usize, probe: usize) -> Option<&OnceLock<bool>> {
        self.owes.get(at)?.get(probe)
    }

    /// What the kernel has at a rest.
    #[must_use]
    pub fn rest(&self, at: usize) -> &Rest {
        static NOTHING: OnceLock<Rest> = OnceLock::new();
        self.rests
            .get(at)
            .unwrap_or_else(|| NOTHING.get_or_init(Rest::default))
    }
}

#[derive(Debug, Default)]
struct State {
    at: usize,
    /// Unread datagrams: step and place.
    queue: VecDeque<(usize, usize)>,
    lost: bool,
    /// Datagrams that one call gives at most.
    burst: usize,
    /// How many rests it may go on by itself while it is asked.
    ahead: usize,
    /// What was written back.
    writes: u64,
}

/// The kernel of one play.
#[derive(Clone, Debug)]
pub struct Kernel {
    prepared: Arc<Prepared>,
    clock: Clock,
    state: Arc<Mutex<State>>,
}

impl Kernel {
    /// At its first rest, with all that it said before unheard.
    #[must_use]
    pub fn new(prepared: Arc<Prepared>, clock: Clock) -> Kernel {
        let state = State {
            burst: usize::MAX,
            ..State::default()
        };
        Kernel {
            prepared,
            clock,
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn go_on(&self, state: &mut State) {
        if state.at + 1 >= self.prepared.told.len() {
            return;
        }
        state.at += 1;
        let told = self.prepared.told.get(state.at).map_or(0, Vec::len);
        let at = state.at;
        state.queue.extend((0..told).map(|n| (at, n)));
    }

    /// Executes the next command.
    pub fn advance(&self) {
        let mut state = self.lock();
        self.go_on(&mut state);
    }

    /// At which rest it is.
    #[must_use]
    pub fn at(&self) -> usize {
        self.lock().at
    }

    /// It may go on so far by itself while it is asked.
    pub fn allow(&self, steps: usize) {
        self.lock().ahead = steps;
    }

    /// How many datagrams one call gives at most.
    pub fn set_burst(&self, burst: usize) {
        self.lock().burst = burst.max(1);
    }

    /// The socket overflows: the newest datagrams are lost, all but `keep`.
    pub fn overflow(&self, keep: usize) {
        let mut state = self.lock();
        if state.queue.len() > keep {
            state.queue.truncate(keep);
            state.lost = true;
        }
    }

    /// Unread datagrams.
    #[must_use]
    pub fn unread(&self) -> usize {
        let state = self.lock();
        state.queue.len() + usize::from(state.lost)
    }

    /// What was written back to it.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.lock().writes
    }

    /// A listener that starts anew hears from now on.
    pub fn forget(&self) {
        let mut state = self.lock();
        state.queue.clear();
        state.lost = false;
    }
}

impl Ears for Kernel {
    fn recv(&mut self, sink: &mut dyn FnMut(Protocol, &[u8])) -> nl::Result<(usize, bool)> {
        let mut state = self.lock();
        let mut n = 0;
        while n < state.burst {
            let Some((step, place)) = state.queue.pop_front() else {
                break;
            };
            n += 1;
            if let Some((protocol, data)) = self.prepared.told.get(step).and_then(|t| t.get(place))
            {
                sink(*protocol, data);
            }
        }
        let lost = state.queue.is_empty() && std::mem::take(&mut state.lost);
        Ok((n, lost))
    }

    fn renew(&mut self, _receive_buffer: usize) -> bool {
        self.forget();
        true
    }

    fn wait(&self, _wake: &EventFd, _timeout: Duration) {}

    fn pause(&self, time: Duration) {
        self.clock
            .pass(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }
}

/// A socket to ask it.
#[derive(Debug)]
struct Asking {
    kernel: Kernel,
    objects: Vec<nl::Object>,
}

impl Questions for Asking {
    fn begin(&mut self, what: Dump) -> nl::Result<()> {
        let mut state = self.kernel.lock();
        if state.ahead > 0 {
            state.ahead -= 1;
            self.kernel.go_on(&mut state);
        }
        self.objects = self.kernel.prepared.rest(state.at).answer(what);
        Ok(())
    }

    fn step(&mut self, each: &mut dyn FnMut(nl::Object)) -> nl::Result<nl::Step> {
        std::mem::take(&mut self.objects).into_iter().for_each(each);
        Ok(nl::Step::Done { interrupted: false })
    }

    fn lookups(
        &mut self,
        all: &[nl::Lookup],
        each: &mut dyn FnMut(usize, nl::Found),
    ) -> nl::Result<usize> {
        let at = self.kernel.at();
        let rest = self.kernel.prepared.rest(at);
        let found = |(i, lookup): (usize, &nl::Lookup)| each(i, rest.look_up(lookup));
        all.iter().enumerate().for_each(found);
        Ok(all.len())
    }

    fn settle(&mut self) -> nl::Result<()> {
        Ok(())
    }

    fn ipsec_policies(&mut self) -> nl::Result<bool> {
        Ok(false)
    }

    fn file(&self, path: &str) -> Option<String> {
        let at = self.kernel.at();
        self.kernel.prepared.rest(at).files.get(path).cloned()
    }

    fn now(&self) -> Instant {
        // any instant will do to count from
        static BEGIN: OnceLock<Instant> = OnceLock::new();
        *BEGIN.get_or_init(Instant::now) + Duration::from_nanos(self.kernel.clock.now())
    }
}

impl Origin for Kernel {
    fn questions(&self) -> Box<dyn Questions> {
        Box::new(Asking {
            kernel: self.clone(),
            objects: Vec::new(),
        })
    }

    fn writer(&self) -> Box<dyn WriteBack> {
        Box::new(Nowhere(self.clone()))
    }
}

/// A kernel that lived once takes no writes: they are counted.
struct Nowhere(Kernel);

impl WriteBack for Nowhere {
    fn write(
        &mut self,
        writes: &[Write],
        _failed: &mut dyn FnMut(usize, SourceError),
    ) -> Result<(), SourceError> {
        self.0.lock().writes += writes.len() as u64;
        Ok(())
    }
}
