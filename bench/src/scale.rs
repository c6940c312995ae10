//! What a change costs the core when much is configured: the processor time of the store's thread, with the firmware in the
//! process, at full size and at a tenth of it.
//!
//! ```text
//!   shape (4,093 VLAN interfaces, 46 ports x 4,093 VLANs, 1,000 bridges, 2,000 filters, a million routes by one port, by 46)
//!     event ──► approach, apply ─┐
//!                                ├─ CLOCK_THREAD_CPUTIME_ID        firmware: executes, not counted
//!     catch_up, plan, complete ──┘  until nothing is to do
//! ```
//!
//! Each event comes with the one that takes it back, so that the next pair finds the shape as it was. What depends on
//! an event is counted in commands to the chip.

mod objects;
mod routes;

use crate::Options;
use crate::report::{Row, Target};
use anyhow::{Context, Result, ensure};
use objects::*;
use routes::By;
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use tandem_abi::raw::{TND_OP_SNAPSHOT, tnd_cmd, tnd_cpl};
use tandem_firmware::{Firmware, Profile};
use tandem_store::model::*;
use tandem_store::{Attach, Completion, Config, Planned, Store};

const SRC: SourceId = SourceId::NETLINK;
/// VLANs of a bridge at full size, one left for the event.
const VLANS: usize = 4093;
const BRIDGES: usize = 1000;
/// Rules of all ports together, of which the chip has room for more.
const FILTERS: usize = 2000;
const PORTS: u16 = 48;
/// ifindex of the bridge, and of the first VLAN interface or further bridge.
const BRIDGE: u32 = 100;
const FIRST: u32 = 1000;
/// The port of which nothing of a shape depends.
const SPARE: u16 = PORTS;
/// A VRF without interfaces, and a bond, which every shape has, with its port.
const VRF: u32 = 90;
const BOND: u32 = 91;
const BONDED: u16 = PORTS - 1;
/// Events of a message at most.
const MESSAGE: usize = 256;
/// Milliseconds that a change without dependents may take.
const IDLE_MS: f64 = 5.0;
/// Microseconds for each entry that depends.
const ENTRY_US: f64 = 3.0;

/// Store and chip.
struct Bed {
    store: Store,
    chip: Firmware,
    now: u64,
    /// What reading the clock takes by itself, ns: that is not counted.
    clock: u64,
    /// Processor time in the store, ns: of all calls, and of the longest.
    spent: u64,
    longest: (u64, &'static str),
    commands: u64,
}

/// What depends on an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depends {
    /// Nothing of the shape.
    None,
    /// Entries that are written.
    Entries,
    /// All of the shape is looked at, and little is written.
    All,
}

/// Its name, what depends on it, and the events with their reverse.
type Change = (&'static str, Depends, Vec<Vec<Event>>);

/// What an event and its reverse cost.
#[derive(Clone, Copy)]
struct Cost {
    ms: f64,
    longest_ms: f64,
    /// Which call that was.
    longest: &'static str,
    commands: u64,
}

fn cpu_ns() -> u64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

impl Bed {
    fn new() -> Result<Bed> {
        let chip = Firmware::new(Profile::builtin("scale")?)?;
        let (pools, costs) = chip.resources();
        let config = Config::of_chip(PORTS, &pools, &costs);
        Ok(Bed {
            store: Store::new(config),
            chip,
            now: 0,
            clock: (0..1000)
                .map(|_| -> u64 {
                    let at = cpu_ns();
                    cpu_ns() - at
                })
                .min()
                .unwrap_or(0),
            spent: 0,
            longest: (0, ""),
            commands: 0,
        })
    }

    fn timed<T>(&mut self, name: &'static str, call: impl FnOnce(&mut Store, u64) -> T) -> T {
        self.now += 1000;
        let before = cpu_ns();
        let out = call(&mut self.store, self.now);
        let took = (cpu_ns() - before).saturating_sub(self.clock);
        self.spent += took;
        self.longest = self.longest.max((took, name));
        out
    }

    fn tell(&mut self, event: Event) {
        self.catch_up();
        self.timed("apply", |s, now| s.apply(event, now));
    }

    /// As the core does, which takes no event before.
    fn catch_up(&mut self) {
        while self.store.behind() {
            self.timed("catch_up", |s, now| s.catch_up(now));
        }
    }

    fn up(&mut self, object: Object) {
        self.tell(Event::Upsert(SRC, object));
    }

    fn execute(&mut self, p: &Planned) -> Completion {
        let cmd = tnd_cmd {
            op: p.op,
            cls: p.cls,
            flags: p.flags,
            lease: p.lease,
            body_size: p.body.bytes().len() as u32,
            ..Default::default()
        };
        let mut out = Vec::new();
        let c: tnd_cpl = self.chip.execute(&cmd, p.body.bytes(), &mut out, self.now);
        let mut deltas = [(0u16, 0i32); 8];
        for (d, s) in deltas.iter_mut().zip(c.delta.iter()) {
            *d = (s.pool, s.slots.cast_signed());
        }
        Completion {
            status: c.status,
            table: c.table,
            needed: c.needed,
            free: c.free,
            size: c.size,
            result: c.result,
            delta_count: c.delta_count as u8,
            deltas,
        }
    }

    /// Until nothing more is to do.
    fn settle(&mut self) -> Result<()> {
        let mut queue: VecDeque<Planned> = VecDeque::new();
        loop {
            let mut out = Vec::new();
            self.catch_up();
            self.timed("plan", |s, now| s.plan_some(&mut out, now));
            self.commands += out.len() as u64;
            queue.extend(out);
            if queue.is_empty() && !self.store.unfinished() {
                break;
            }
            while let Some(p) = queue.pop_front() {
                let c = self.execute(&p);
                ensure!(c.status == 0, "the chip refused: {:?} {c:?}", (p.op, p.cls));
                self.timed("complete", |s, now| s.complete(p.token, &c, now));
            }
        }
        ensure!(self.store.idle(), "the store waits for something");
        Ok(())
    }

    /// An event and its reverse, each until all is in hardware.
    fn cost(&mut self, events: &[Vec<Event>]) -> Result<Cost> {
        (self.spent, self.longest, self.commands) = (0, (0, ""), 0);
        for part in events {
            for message in part.chunks(MESSAGE) {
                self.timed("approach", |s, _| s.approach(message));
                for e in message {
                    self.tell(e.clone());
                }
            }
            self.settle()?;
        }
        Ok(Cost {
            ms: self.spent as f64 / 1e6,
            longest_ms: self.longest.0 as f64 / 1e6,
            longest: self.longest.1,
            commands: self.commands,
        })
    }

    /// Everything that was said is dumped, and written.
    fn filled(mut self) -> Result<Bed> {
        self.tell(Event::EndSync(SRC));
        self.store.attach(Attach::Cold, self.now);
        self.settle()?;
        let cmd = tnd_cmd {
            op: TND_OP_SNAPSHOT,
            out_size: 65536,
            ..Default::default()
        };
        let c = self.chip.execute(&cmd, &[], &mut Vec::new(), self.now);
        ensure!(c.status == 0, "the chip has no snapshot");
        Ok(self)
    }
}

// -- shapes -----------------------------------------------------------------------------------------------------------

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Interfaces,
    Members,
    Bridges,
    Lists,
    List,
    Routes,
    Ways(By),
}

impl Shape {
    const ALL: [Shape; 9] = [
        Shape::Interfaces,
        Shape::Members,
        Shape::Bridges,
        Shape::Lists,
        Shape::List,
        Shape::Routes,
        Shape::Ways(By::One),
        Shape::Ways(By::Two),
        Shape::Ways(By::Group),
    ];

    fn text(self) -> &'static str {
        match self {
            Shape::Interfaces => "VLAN interfaces",
            Shape::Members => "VLANs on 46 ports",
            Shape::Bridges => "bridges",
            Shape::Lists => "filters on 46 ports",
            Shape::List => "filters on one port",
            Shape::Routes => "routes",
            Shape::Ways(by) => by.text(),
        }
    }

    fn size(self, routes: usize) -> usize {
        match self {
            Shape::Interfaces | Shape::Members => VLANS,
            Shape::Bridges => BRIDGES,
            Shape::Lists | Shape::List => FILTERS,
            Shape::Routes | Shape::Ways(_) => routes,
        }
    }

    fn build(self, n: usize) -> Result<Bed> {
        let mut bed = Bed::new()?;
        bed.tell(Event::BeginSync(SRC, KindSet::ALL));
        let spare = u32::from(SPARE);
        bed.up(Object::Link(swp(SPARE)));
        for o in addressed(spare, 0xffff)? {
            bed.up(o);
        }
        for o in kernel_rules() {
            bed.up(o);
        }
        let red = link(VRF, "red".into(), LinkKind::Vrf { table: 100 });
        bed.up(Object::Link(red));
        bed.up(Object::Link(bond(None)));
        bed.up(Object::Link(bonded(true)));
        match self {
            Shape::Interfaces | Shape::Members => {
                let br = bridge(BRIDGE, true);
                bed.up(Object::Link(br.clone()));
                let ports = match self {
                    Shape::Interfaces => 1..=2,
                    _ => 1..=BONDED - 1,
                };
                for port in ports {
                    bed.up(Object::Link(joined(port, BRIDGE)));
                    for v in 1..=n {
                        bed.up(vlan(u32::from(port), v as u16));
                    }
                }
                for v in (1..=n).filter(|_| self == Shape::Interfaces) {
                    bed.up(vlan(BRIDGE, v as u16));
                    let i = FIRST + v as u32;
                    bed.up(Object::Link(vlan_interface(i, v as u16, &br)));
                    for o in addressed(i, v as u32)? {
                        bed.up(o);
                    }
                }
            }
            // As a host of containers has them: all but a few have no front-panel port.
            Shape::Bridges => {
                for b in 0..n as u32 {
                    let br = bridge(FIRST + b, false);
                    bed.up(Object::Link(br.clone()));
                    let member = match u16::try_from(b + 1) {
                        Ok(port) if port < BONDED => joined(port, br.ifindex),
                        _ => Link {
                            master: br.ifindex,
                            ..link(
                                10_000 + b,
                                format!("veth{b}"),
                                LinkKind::Other("veth".into()),
                            )
                        },
                    };
                    bed.up(Object::Link(member));
                }
            }
            Shape::Lists => {
                for port in 1..BONDED {
                    bed.up(Object::Link(swp(port)));
                }
                for k in 0..n {
                    let port = u32::from(BONDED - 1);
                    let mut f = filter();
                    f.key.ifindex = 1 + k as u32 % port;
                    f.key.priority = 10 + (k as u32 / port) as u16;
                    bed.up(Object::Filter(Box::new(f)));
                }
            }
            Shape::List => {
                bed.up(Object::Link(swp(1)));
                bed.up(Object::Link(swp(2)));
                for k in 0..n {
                    bed.up(Object::Filter(Box::new(to_port_two(k))));
                }
            }
            Shape::Routes => {
                bed.up(Object::Link(swp(1)));
                for o in addressed(1, 1)? {
                    bed.up(o);
                }
                let gateway = Ipv4Addr::new(10, 0, 1, 2);
                for r in far_routes(n, gateway)? {
                    bed.up(r);
                }
            }
            Shape::Ways(by) => by.build(n, &mut bed)?,
        }
        bed.filled()
    }

    /// Events with their reverse: name, whether entries depend on it, and the two.
    fn events(self, n: usize) -> Result<Vec<Change>> {
        let spare = u32::from(SPARE);
        let set = |o: Object| vec![Event::Upsert(SRC, o)];
        let gone = |k: Key| vec![Event::Remove(SRC, k)];
        let carrier = |l: Link, on| set(Object::Link(Link { carrier: on, ..l }));
        let bond = |unsupported| set(Object::Link(bond(unsupported)));
        let a = address(spare, Ipv4Addr::new(10, 254, 0, 1));
        let f = filter();
        let looks_at = |iif: &str| Rule {
            family: Family::V4,
            priority: 100,
            table: 200,
            is_default: false,
            l3mdev: false,
            iif: iif.into(),
            text: format!("from all iif {iif} lookup 200"),
        };
        let rule = looks_at(&format!("swp{SPARE}"));
        // it begins with the rules that stay
        let mut sweep = vec![Event::BeginSync(SRC, KindSet::RULE)];
        sweep.extend(kernel_rules().into_iter().flat_map(set));
        sweep.push(Event::EndSync(SRC));
        let mut out = vec![
            (
                "one flap of another port",
                Depends::None,
                vec![carrier(swp(SPARE), false), carrier(swp(SPARE), true)],
            ),
            (
                "an address of another port, and gone",
                Depends::None,
                vec![set(Object::Addr(a)), gone(Key::Addr(a))],
            ),
            (
                "a VLAN interface on another port, and gone",
                Depends::None,
                vec![
                    set(Object::Link(vlan_interface(900, 7, &swp(SPARE)))),
                    gone(Key::Link(900)),
                ],
            ),
            (
                "a filter at another port, and gone",
                Depends::None,
                vec![
                    set(Object::Filter(Box::new(f.clone()))),
                    gone(Key::Filter(f.key)),
                ],
            ),
            (
                "a policy rule for another port, and gone",
                Depends::None,
                vec![
                    set(Object::Rule(rule.clone())),
                    gone(Key::Rule(rule.clone())),
                ],
            ),
            (
                "the same, swept",
                Depends::None,
                vec![set(Object::Rule(rule)), sweep],
            ),
            (
                "another port joins a VRF, and leaves it",
                Depends::None,
                vec![
                    set(Object::Link(Link {
                        master: VRF,
                        ..swp(SPARE)
                    })),
                    set(Object::Link(swp(SPARE))),
                ],
            ),
            (
                "another port is renamed, and back",
                Depends::None,
                vec![
                    set(Object::Link(Link {
                        name: "uplink".into(),
                        ..swp(SPARE)
                    })),
                    set(Object::Link(swp(SPARE))),
                ],
            ),
            (
                "a bond is no group of the chip's, and one again: all is looked at",
                Depends::All,
                vec![bond(Some("mode broadcast")), bond(None)],
            ),
            (
                "one flap of a bond's port",
                Depends::None,
                vec![
                    set(Object::Link(bonded(false))),
                    set(Object::Link(bonded(true))),
                ],
            ),
        ];
        match self {
            Shape::Interfaces | Shape::Members => {
                let vid = n as u16 + 1;
                out.push((
                    "a VLAN of a port of the bridge, and gone",
                    Depends::None,
                    vec![set(vlan(1, vid)), gone(Key::BridgeVlan(1, vid))],
                ));
                let flap = |on| carrier(joined(1, BRIDGE), on);
                out.push((
                    "one flap of a port of the bridge",
                    Depends::None,
                    vec![flap(false), flap(true)],
                ));
                out.push((
                    "a port of the bridge leaves, and comes back with its VLANs",
                    Depends::Entries,
                    vec![
                        {
                            let vids =
                                (1..=n).map(|v| Event::Remove(SRC, Key::BridgeVlan(1, v as u16)));
                            let mut all: Vec<Event> = vids.collect();
                            all.extend(set(Object::Link(swp(1))));
                            all
                        },
                        {
                            let mut all = set(Object::Link(joined(1, BRIDGE)));
                            all.extend((1..=n).flat_map(|v| set(vlan(1, v as u16))));
                            all
                        },
                    ],
                ));
            }
            Shape::Bridges | Shape::Lists => {}
            Shape::List => {
                let one = to_port_two(n / 2);
                out.push((
                    "one of them goes, and is back",
                    Depends::None,
                    vec![
                        gone(Key::Filter(one.key)),
                        set(Object::Filter(Box::new(one))),
                    ],
                ));
                let above = Link {
                    lower: 2,
                    ..link(901, "above".into(), LinkKind::Other("macvlan".into()))
                };
                out.push((
                    "the port that they send to is the kernel's, and the chip's again",
                    Depends::Entries,
                    vec![set(Object::Link(above)), gone(Key::Link(901))],
                ));
            }
            Shape::Routes => {
                let gateway = Ipv4Addr::new(10, 0, 1, 2);
                let down = |up| {
                    set(Object::Link(Link {
                        admin_up: up,
                        carrier: up,
                        ..swp(1)
                    }))
                };
                let mut back = down(true);
                let own = hop(1, None);
                back.extend(set(route(
                    (Ipv4Addr::new(10, 0, 1, 0), 24),
                    TABLE_MAIN,
                    RouteType::Unicast,
                    own,
                )?));
                back.extend(far_routes(n, gateway)?.into_iter().flat_map(set));
                out.push((
                    "their port goes down, and up with the routes",
                    Depends::Entries,
                    vec![down(false), back],
                ));
            }
            Shape::Ways(by) => out.extend(by.events(n)?),
        }
        Ok(out)
    }
}

fn far_routes(n: usize, gateway: Ipv4Addr) -> Result<Vec<Object>> {
    (0..n as u32)
        .map(|i| {
            // /24 from 20.0.0.0 on
            let net = Ipv4Addr::from((20 << 24) + (i << 8));
            route(
                (net, 24),
                TABLE_MAIN,
                RouteType::Unicast,
                hop(1, Some(gateway)),
            )
        })
        .collect()
}

// -- the figures --------------------------------------------------------------------------------------------------------

/// The rows of this benchmark.
pub fn run(o: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let wanted = |part: &Option<String>, name: &str| part.iter().all(|p| name.contains(p));
    let shapes = Shape::ALL.into_iter();
    for shape in shapes.filter(|s| wanted(&o.shape, s.text())) {
        let full = shape.size(o.routes);
        let sizes = [full, full / 10];
        let events = sizes
            .iter()
            .map(|n| shape.events(*n))
            .collect::<Result<Vec<_>>>()?;
        // a shape takes a while to build
        if !events.iter().flatten().any(|c| wanted(&o.event, c.0)) {
            continue;
        }
        let mut beds = sizes
            .iter()
            .map(|n| {
                shape
                    .build(*n)
                    .with_context(|| format!("{n} {}", shape.text()))
            })
            .collect::<Result<Vec<Bed>>>()?;
        let [of_full, of_tenth] = events.as_slice() else {
            continue;
        };
        let changes = of_full.iter().zip(of_tenth);
        for ((name, depends, big), (_, _, small)) in changes.filter(|c| wanted(&o.event, c.0.0)) {
            let mut pairs: Vec<[Cost; 2]> = Vec::new();
            for _ in 0..o.pairs {
                let mut pair = beds.iter_mut().zip([big, small]);
                let mut next = || {
                    let (bed, events) = pair.next().context("two sizes")?;
                    bed.cost(events)
                        .with_context(|| format!("{}: {name}", shape.text()))
                };
                pairs.push([next()?, next()?]);
            }
            rows.extend(report(shape, full, name, *depends, &pairs));
        }
    }
    ensure!(
        !rows.is_empty(),
        "no shape and event have these words in their names"
    );
    Ok(rows)
}

fn report(
    shape: Shape,
    full: usize,
    name: &str,
    depends: Depends,
    pairs: &[[Cost; 2]],
) -> Vec<Row> {
    let what = format!("scale, {full} {}: {name}", shape.text());
    let commands = pairs.first().map_or(0, |p| p[0].commands);
    let times: Vec<(f64, f64)> = pairs.iter().map(|p| (p[0].ms, p[1].ms)).collect();
    let full_ms: Vec<f64> = pairs.iter().map(|p| p[0].ms).collect();
    if depends == Depends::None {
        return vec![
            Row::alone(&what, "ms", &full_ms, Target::ValueAtMost(IDLE_MS)),
            Row::paired(
                &format!("{what}; {commands} commands"),
                "ms",
                "a tenth",
                &times,
                Target::RatioAtMost(2.0),
            ),
        ];
    }
    let each: Vec<f64> = full_ms
        .iter()
        .map(|ms| ms * 1000.0 / commands.max(1) as f64)
        .collect();
    let call = pairs
        .iter()
        .map(|p| p[0])
        .max_by(|a, b| a.longest_ms.total_cmp(&b.longest_ms))
        .map_or("", |c| c.longest);
    let longest: Vec<f64> = pairs.iter().map(|p| p[0].longest_ms).collect();
    let whole = Row::paired(
        &format!("{what}; {commands} commands"),
        "ms",
        "a tenth",
        &times,
        Target::None,
    );
    let of_each = Row::alone(
        &format!("{what}: each command"),
        "µs",
        &each,
        Target::ValueAtMost(ENTRY_US),
    );
    let of_each = (depends == Depends::Entries).then_some(of_each);
    [Some(whole), of_each]
        .into_iter()
        .flatten()
        .chain([Row::alone(
            &format!("{what}: longest call ({call})"),
            "ms",
            &longest,
            Target::ValueAtMost(IDLE_MS),
        )])
        .collect()
}
