//! The namespaces: a switch of veth ends, hosts at the other ends.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tandem_linux::netlink as nl;
use tandem_linux::netlink::consts::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, RTM_GETLINK, RTM_NEWLINK,
};
use tandem_linux::netlink::wire::Writer;
use tandem_linux::netlink::{Event, Monitor, Object, Protocol, Requests};
use tandem_linux::netns;
use tandem_linux::wires::Wires;
use tandem_netlink::{DUMPS, ROUTES6, files};

use super::answers::{Errors, Got};
use super::{Error, Port, Told, socket};
use crate::history::op::{BRIDGE_INDEX, HOST_INDEX, PORT_INDEX, Policy, Target, Verb, Way, device};
use crate::history::{Act, Op, PORTS, Wait, optional, port_mac};
use crate::normal::{self, State};
use crate::recording::{Bytes, Dump, Probe};

/// The ends of the cable that markers go by, both among the hosts.
const MARKERS: [u32; 2] = [200, 201];
const MARKER: &[u8] = b"\x02\0\0\0\x0f\x02\x02\0\0\0\x0f\x01\x88\xb5 the frames before this one have arrived ........";
/// A frame that makes the kernel send another one is worked on before that one: after so many rounds of markers nothing
/// is under way any more.
const ROUNDS: usize = 3;
/// The kernel comes to rest within this time, or the recording is given up.
const PATIENCE: Duration = Duration::from_secs(60);
const RECEIVE_BUFFER: usize = 32 << 20;

/// What is set before there are devices: forwarding; no limits on ICMP errors; addresses only by hand; the same member of a
/// multipath route for the same flow in every recording. Some kernels lack some.
const SETTINGS: [(&str, &str); 19] = [
    ("ipv4/ip_forward", "1"),
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv4/conf/default/rp_filter", "0"),
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/default/send_redirects", "0"),
    ("ipv4/icmp_ratelimit", "0"),
    ("ipv4/icmp_ratemask", "0"),
    ("ipv4/icmp_msgs_per_sec", "1000000000"),
    ("ipv4/icmp_msgs_burst", "1000000000"),
    ("ipv4/fib_multipath_hash_seed", "7"),
    ("ipv6/icmp/ratelimit", "0"),
    // a type that nobody has is limited alone
    ("ipv6/icmp/ratemask", "255"),
    ("ipv6/conf/all/forwarding", "1"),
    ("ipv6/conf/default/forwarding", "1"),
    ("ipv6/conf/all/accept_dad", "0"),
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv6/conf/default/addr_gen_mode", "1"),
    ("ipv6/conf/default/router_solicitations", "0"),
    ("ipv6/conf/default/accept_ra", "0"),
];
/// Of each device: no neighbour is asked for or forgotten by a timer. One that is not known is said to have failed at once.
const TIMES: [(&str, &str); 6] = [
    ("mcast_solicit", "0"),
    ("app_solicit", "0"),
    ("delay_first_probe_time", "86400"),
    ("base_reachable_time_ms", "86400000"),
    ("gc_stale_time", "86400"),
    ("locktime", "0"),
];

#[derive(Debug)]
pub(super) struct Space {
    switch: File,
    requests: Requests,
    hosts: Requests,
    monitor: Monitor,
    wires: Wires,
    /// Notifications that were read while something was waited for.
    early: Vec<Told>,
    errors: Errors,
    /// Devices of the switch that a history made, besides its ports.
    devices: Vec<u32>,
    /// Sysctls that a history wrote, and what they were before.
    settings: BTreeMap<String, String>,
    /// What there is when nothing was done.
    pristine: State,
}

fn io_error(what: &str) -> impl Fn(io::Error) -> Error + '_ {
    move |e| Error::new(what, e)
}

fn netlink_error(e: nl::Error) -> Error {
    Error::new("netlink", e)
}

fn new_namespace() -> Result<File, Error> {
    netns::run_in_new(|| File::open("/proc/thread-self/ns/net"))
        .map_err(io_error("a network namespace of its own (are you root?)"))
}

fn set(key: &str, value: &str) -> io::Result<()> {
    match std::fs::write(format!("/proc/sys/net/{key}"), value) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Err(io::Error::new(e.kind(), format!("sysctl {key}: {e}")))
        }
        _ => Ok(()),
    }
}

fn link(dev: u32, body: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::new();
    let mut fixed = [0; 16];
    fixed[4..8].copy_from_slice(&dev.to_ne_bytes());
    w.begin(
        RTM_NEWLINK,
        NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
        1,
        &fixed,
    );
    body(&mut w);
    w.bytes().to_vec()
}

/// A pair of veth ends; the far one in the namespace `there`.
fn veth(near: (u32, &str, [u8; 6]), far: (u32, &str, [u8; 6]), there: Option<&File>) -> Vec<u8> {
    const IFLA_ADDRESS: u16 = 1;
    const IFLA_IFNAME: u16 = 3;
    const IFLA_LINKINFO: u16 = 18;
    const IFLA_NET_NS_FD: u16 = 28;
    const INFO_KIND: u16 = 1;
    const INFO_DATA: u16 = 2;
    const VETH_INFO_PEER: u16 = 1;
    let name = |n: &str| [n.as_bytes(), &[0]].concat();
    link(near.0, |w| {
        w.attr(IFLA_IFNAME, &name(near.1));
        w.attr(IFLA_ADDRESS, &near.2);
        let info = w.nest(IFLA_LINKINFO);
        w.attr(INFO_KIND, b"veth");
        let data = w.nest(INFO_DATA);
        let peer = w.nest(VETH_INFO_PEER);
        let mut fixed = [0; 16];
        fixed[4..8].copy_from_slice(&far.0.to_ne_bytes());
        w.raw(&fixed);
        w.attr(IFLA_IFNAME, &name(far.1));
        w.attr(IFLA_ADDRESS, &far.2);
        if let Some(there) = there {
            w.attr_u32(IFLA_NET_NS_FD, there.as_raw_fd() as u32);
        }
        w.end_nest(peer);
        w.end_nest(data);
        w.end_nest(info);
    })
}

fn must(requests: &mut Requests, what: &str, message: &[u8]) -> Result<(), Error> {
    match requests.raw(message, |_| {}).map_err(netlink_error)? {
        0 => Ok(()),
        errno => Err(Error::new(what, io::Error::from_raw_os_error(errno))),
    }
}

fn set_up(dev: u32, up: bool) -> Vec<u8> {
    match Op::link(dev, up).act {
        Act::Message(m) => m,
        _ => Vec::new(),
    }
}

impl Space {
    /// `stacked`: asks the kernel for VLANs and VRFs too. A namespace that ever had a VRF has a policy rule more.
    pub fn open(stacked: bool) -> Result<Self, Error> {
        let (switch, far) = (new_namespace()?, new_namespace()?);
        let within = io_error("a namespace of its own");
        let mut requests = netns::run_in(switch.as_fd(), || {
            SETTINGS
                .iter()
                .try_for_each(|(key, value)| set(key, value))?;
            Requests::open().map_err(io::Error::other)
        })
        .map_err(&within)?;
        let (mut hosts, wires) = netns::run_in(far.as_fd(), || {
            set("ipv6/conf/default/disable_ipv6", "1")?;
            let requests = Requests::open().map_err(io::Error::other)?;
            Ok((requests, Wires::open()?))
        })
        .map_err(&within)?;
        for n in 1..=PORTS {
            let (dev, host) = (PORT_INDEX + u32::from(n), HOST_INDEX + u32::from(n));
            let message = veth(
                (dev, &format!("swp{n}"), port_mac(n)),
                (host, &format!("h{n}"), [2, 0, 0, 0, 3, n as u8]),
                Some(&far),
            );
            must(&mut requests, "make a veth pair", &message)?;
        }
        let [m1, m2] = MARKERS;
        let message = veth(
            (m1, "m1", [2, 0, 0, 0, 0xf, 1]),
            (m2, "m2", [2, 0, 0, 0, 0xf, 2]),
            None,
        );
        must(&mut hosts, "make a veth pair", &message)?;
        netns::run_in(switch.as_fd(), || {
            for n in 1..=PORTS {
                settings_of(&format!("swp{n}"))?;
            }
            Ok(())
        })
        .map_err(&within)?;
        let monitor = netns::run_in(switch.as_fd(), || {
            Monitor::open(RECEIVE_BUFFER).map_err(io::Error::other)
        })
        .map_err(&within)?;
        must(&mut requests, "set lo up", &set_up(1, true))?;
        for n in 1..=PORTS {
            let dev = PORT_INDEX + u32::from(n);
            must(&mut requests, "set a port up", &set_up(dev, true))?;
        }
        for dev in MARKERS {
            must(&mut hosts, "set a cable up", &set_up(dev, true))?;
        }
        let mut space = Self {
            switch,
            requests,
            hosts,
            monitor,
            wires,
            early: Vec::new(),
            errors: Errors::new(),
            devices: Vec::new(),
            settings: BTreeMap::new(),
            pristine: State::default(),
        };
        for n in 1..=PORTS {
            // one after the other: some routes are made when a link is there, and stand in that order
            space.cable(n, true)?;
            space.settle_links()?;
        }
        // whether a namespace ever had a policy rule shows: until then the local and the main table are one
        // (net/ipv4/fib_rules.c `fib_unmerge`)
        space.constructs(stacked)?;
        space.pristine = normal::state(&space.dumps()?);
        space.forget()?;
        Ok(space)
    }

    /// What this kernel has of what histories can be made of.
    pub fn constructs(&mut self, stacked: bool) -> Result<Vec<String>, Error> {
        let rule = Policy {
            pref: 100,
            table: 99,
            ..Policy::default()
        };
        let mut have = vec![];
        let mut there = true;
        for add in [true, false] {
            for v6 in [false, true] {
                if let Act::Message(m) = Op::rule(add, &Policy { v6, ..rule.clone() }).act {
                    there &= self.ask(&m)? == 0;
                }
            }
        }
        if there {
            have.push("rule".to_owned());
        }
        for (name, ops) in optional().into_iter().filter(|_| stacked) {
            let mut there = true;
            for op in &ops {
                if let Act::Message(m) = &op.act {
                    there &= self.ask(m)? == 0;
                }
            }
            if there {
                have.push(name.to_owned());
            }
            for op in ops.iter().rev() {
                if let Wait::Device(dev) = op.wait
                    && let Act::Message(m) = Op::link_del(dev).act
                {
                    self.ask(&m)?;
                }
            }
        }
        self.forget()?;
        Ok(have)
    }

    pub fn ports(&self) -> Vec<Port> {
        (1..=PORTS)
            .map(|n| Port {
                name: format!("swp{n}"),
                ifindex: PORT_INDEX + u32::from(n),
                mac: port_mac(n),
            })
            .collect()
    }

    /// A command; its errno.
    pub fn ask(&mut self, message: &[u8]) -> Result<i32, Error> {
        self.requests.raw(message, |_| {}).map_err(netlink_error)
    }

    /// The host's end of a cable; an errno.
    pub fn cable(&mut self, port: u16, up: bool) -> Result<i32, Error> {
        let message = set_up(HOST_INDEX + u32::from(port), up);
        self.hosts.raw(&message, |_| {}).map_err(netlink_error)
    }

    /// A sysctl of the switch; an errno.
    pub fn sysctl(&mut self, key: &str, value: &str) -> Result<i32, Error> {
        let file = format!("/proc/sys/net/{key}");
        let (before, errno) = netns::run_in(self.switch.as_fd(), || {
            let before = std::fs::read_to_string(&file).unwrap_or_default();
            let written = std::fs::write(&file, value).err();
            Ok((before, written.and_then(|e| e.raw_os_error()).unwrap_or(0)))
        })
        .map_err(io_error("a sysctl"))?;
        // until the first of them is put back
        self.settings
            .entry(key.to_owned())
            .or_insert_with(|| before.trim().to_owned());
        Ok(errno)
    }

    /// A device that is new is set as the others are.
    pub fn settings_of(&mut self, dev: u32) -> Result<(), Error> {
        self.devices.push(dev);
        let name = device(dev);
        netns::run_in(self.switch.as_fd(), || settings_of(&name))
            .map_err(io_error("a device's settings"))
    }

    fn read(&mut self) -> Result<usize, Error> {
        let early = &mut self.early;
        let (n, lost) = self
            .monitor
            .recv(|protocol, datagram| {
                early.push(Told {
                    socket: socket(protocol),
                    data: Bytes(datagram.to_vec()),
                });
            })
            .map_err(netlink_error)?;
        if lost {
            return Err(Error::new(
                "all notifications",
                "the kernel lost some: the monitor's memory was full",
            ));
        }
        Ok(n)
    }

    /// Notifications since the last time.
    pub fn told(&mut self) -> Result<Vec<Told>, Error> {
        while self.read()? != 0 {}
        Ok(std::mem::take(&mut self.early))
    }

    /// Throws them away.
    pub fn forget(&mut self) -> Result<(), Error> {
        self.told().map(|_| ())
    }

    /// Waits for a notification, or a while.
    fn doze(&self) -> Result<(), Error> {
        let mut fds: Vec<PollFd<'_>> = self
            .monitor
            .fds()
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        wait(&mut fds, Duration::from_millis(10))
    }

    /// Waits until the link watch has told of every change of carrier (net/core/link_watch.c). Asking for one device makes
    /// it do so at once (`rtnl_getlink`, since Linux 6.8); before, it is seen by a device whose carrier and operational
    /// state agree.
    pub fn settle_links(&mut self) -> Result<(), Error> {
        let begin = Instant::now();
        loop {
            let before = self.early.len();
            let mut agree = true;
            let ports = PORT_INDEX + 1..=PORT_INDEX + u32::from(PORTS);
            for dev in ports.chain(self.devices.iter().copied()) {
                let mut w = Writer::new();
                let mut fixed = [0; 16];
                fixed[4..8].copy_from_slice(&dev.to_ne_bytes());
                w.begin(RTM_GETLINK, 0, 1, &fixed);
                self.requests
                    .raw(w.bytes(), |datagram| {
                        nl::decode(Protocol::Route, datagram, |event| {
                            if let Event::New(Object::Link(l), _) = event {
                                agree &= told_of(l.flags, l.operstate);
                            }
                        });
                    })
                    .map_err(netlink_error)?;
            }
            while self.read()? != 0 {}
            if agree && self.early.len() == before {
                return Ok(());
            }
            if begin.elapsed() > PATIENCE {
                return Err(Error::new("a rest", "links change on and on"));
            }
            if !agree {
                self.doze()?;
            }
        }
    }

    /// Waits until an IPv6 address is told of.
    pub fn settle_address(&mut self, dev: u32, addr: IpAddr) -> Result<(), Error> {
        let begin = Instant::now();
        let mut seen = 0;
        loop {
            while self.read()? != 0 {}
            let mut found = false;
            for told in self.early.iter().skip(seen) {
                nl::decode(Protocol::Route, &told.data.0, |event| {
                    found |= matches!(event, Event::New(Object::Addr(a), _)
                        if a.ifindex == dev && a.local == addr);
                });
            }
            if found {
                return Ok(());
            }
            seen = self.early.len();
            if begin.elapsed() > PATIENCE {
                return Err(Error::new("a rest", format!("{addr} is never told of")));
            }
            self.doze()?;
        }
    }

    /// Everything that the listener dumps.
    pub fn dumps(&mut self) -> Result<Vec<Dump>, Error> {
        let mut all = Vec::with_capacity(DUMPS.len());
        for what in DUMPS {
            let request = what.request();
            let mut data = Vec::with_capacity(2);
            for _ in 0..10 {
                data.clear();
                let again = self
                    .requests
                    .raw_dump(what.protocol(), &request, |d| data.push(Bytes(d.to_vec())))
                    .map_err(netlink_error)?;
                if !again {
                    break;
                }
            }
            all.push(Dump {
                socket: socket(what.protocol()),
                request: Bytes(request),
                data,
            });
        }
        Ok(all)
    }

    /// What the listener reads besides: files of the switch's namespace by path, those that there are.
    pub fn files(&self, dumps: &[Dump]) -> Result<BTreeMap<String, String>, Error> {
        let state = normal::state(dumps);
        let names: Vec<&str> = state
            .objects()
            .filter_map(|o| match o {
                Object::Link(l) => Some(l.name.as_str()),
                _ => None,
            })
            .collect();
        self.texts(files(names.into_iter()))
    }

    /// Those of them that any command may change.
    pub fn restless_files(&self) -> Result<BTreeMap<String, String>, Error> {
        self.texts([ROUTES6.to_owned()])
    }

    fn texts(
        &self,
        paths: impl IntoIterator<Item = String> + Send,
    ) -> Result<BTreeMap<String, String>, Error> {
        netns::run_in(self.switch.as_fd(), || {
            let text = |path: String| {
                let text = std::fs::read_to_string(&path).ok()?;
                match path == ROUTES6 {
                    true => Some((path, several(&text))),
                    false => Some((path, text)),
                }
            };
            Ok(paths.into_iter().filter_map(text).collect())
        })
        .map_err(io_error("the namespace's files"))
    }

    /// Sends all probes and takes what comes out.
    pub fn probe(&mut self, probes: &[Probe]) -> Result<Got, Error> {
        let mut got = Got::new(probes.len());
        let frames: Vec<(u32, &[u8])> = probes
            .iter()
            .map(|p| (HOST_INDEX + u32::from(p.port), p.frame.0.as_slice()))
            .collect();
        self.wires.send(&frames).map_err(io_error("send frames"))?;
        let begin = Instant::now();
        for _ in 0..ROUNDS {
            self.wires
                .send(&[(MARKERS[0], MARKER)])
                .map_err(io_error("send a marker"))?;
            let mut arrived = false;
            while !arrived {
                let n = self
                    .wires
                    .receive(|dev, frame| match dev.wrapping_sub(HOST_INDEX) {
                        port @ 1..=99 => got.take(probes, port as u16, frame),
                        _ => arrived |= frame == MARKER,
                    })
                    .map_err(io_error("take frames"))?;
                if n == 0 && !arrived {
                    let mut fds = [PollFd::new(&self.wires, PollFlags::IN)];
                    wait(&mut fds, Duration::from_millis(10))?;
                }
                if begin.elapsed() > PATIENCE {
                    return Err(Error::new("a rest", "a marker never arrives"));
                }
            }
        }
        match self.wires.lost() {
            Ok(0) => {}
            Ok(n) => {
                return Err(Error::new("all frames", format!("the kernel lost {n}")));
            }
            Err(e) => return Err(Error::new("the packet socket's counters", e)),
        }
        got.end(probes, &mut self.errors);
        Ok(got)
    }

    /// Takes away what a history made. `false`: something is left.
    pub fn clean(&mut self) -> Result<bool, Error> {
        let state = normal::state(&self.dumps()?);
        for op in undo(&state, &self.pristine) {
            if let Act::Message(m) = &op.act {
                self.ask(m)?;
            }
        }
        for (key, value) in std::mem::take(&mut self.settings) {
            self.sysctl(&key, &value)?;
        }
        self.settings.clear();
        self.devices.clear();
        for n in 1..=PORTS {
            self.cable(n, true)?;
            if let Act::Message(m) = Op::link(PORT_INDEX + u32::from(n), true).act {
                self.ask(&m)?;
            }
        }
        self.settle_links()?;
        let left = normal::state(&self.dumps()?);
        self.forget()?;
        Ok(left == self.pristine)
    }
}

/// What takes away what is not in the pristine state.
fn undo(state: &State, pristine: &State) -> Vec<Op> {
    let mut ops = Vec::new();
    let more: Vec<&Object> = state
        .objects()
        .filter(|o| !pristine.objects().any(|p| p == *o))
        .collect();
    for object in &more {
        match object {
            Object::Rule(r) if !r.is_default() => ops.push(Op::rule(
                false,
                &Policy {
                    v6: r.family == nl::Family::V6,
                    pref: r.priority,
                    ..Policy::default()
                },
            )),
            Object::Nexthop(n) => ops.push(Op::nexthop_del(n.id)),
            Object::Link(l) if l.index > BRIDGE_INDEX && l.index < HOST_INDEX => {
                ops.push(Op::link_del(l.index));
            }
            _ => {}
        }
    }
    for object in &more {
        match object {
            Object::Route(r) if r.protocol != 2 => ops.push(Op::route(
                Verb::Delete,
                &Way {
                    dst: r.dst,
                    table: r.table,
                    metric: r.metric,
                    tos: r.tos,
                    src: None,
                    target: Target::Any,
                },
            )),
            Object::Neigh(n) => ops.push(Op::neighbour(n.ifindex, n.addr, None, true)),
            Object::Addr(a) => {
                if let Ok(net) = ipnet::IpNet::new(a.local, a.prefix_len) {
                    ops.push(Op::address(false, a.ifindex, net));
                }
            }
            _ => {}
        }
    }
    ops
}

fn settings_of(device: &str) -> io::Result<()> {
    for family in ["ipv4", "ipv6"] {
        for (key, value) in TIMES {
            set(&format!("{family}/neigh/{device}/{key}"), value)?;
        }
    }
    Ok(())
}

/// Has the link watch said what it has to say of this device?
const fn told_of(flags: u32, operstate: u8) -> bool {
    const IFF_UP: u32 = 1;
    const IFF_LOWER_UP: u32 = 1 << 16;
    const IF_OPER_UP: u8 = 6;
    flags & IFF_UP == 0 || (flags & IFF_LOWER_UP != 0) == (operstate == IF_OPER_UP)
}

fn wait(fds: &mut [PollFd<'_>], time: Duration) -> Result<(), Error> {
    let time = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    match poll(fds, Some(&time)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(Error::new("wait", e)),
    }
}

/// Of [`ROUTES6`] the lines of a destination, source and metric that have several, and who uses a route left out: that is another
/// number each time. The kernel's own routes to links and groups are not among them.
fn several(text: &str) -> String {
    let place = |line: &str| -> Vec<String> {
        let words = line.split_ascii_whitespace().enumerate();
        let counts = words.filter(|(n, _)| matches!(n, 0..=3 | 5));
        counts.map(|(_, word)| word.to_owned()).collect()
    };
    let mut count: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for line in text.lines() {
        *count.entry(place(line)).or_default() += 1;
    }
    let kept = text.lines().filter(|line| {
        let own = line.starts_with("fe80") || line.starts_with("ff00");
        !own && count.get(&place(line)).is_some_and(|n| *n > 1)
    });
    let unused = |line: &str| -> String {
        let words = line.split_ascii_whitespace().enumerate();
        let words = words.map(|(n, word)| if n == 6 { "00000000" } else { word });
        words.collect::<Vec<_>>().join(" ") + "\n"
    };
    kept.map(unused).collect()
}
