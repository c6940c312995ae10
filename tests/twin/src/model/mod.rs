//! A model of the kernel: commands in, datagrams, dumps and packet answers out. Linear lists; each rule names the kernel
//! function that it follows. What it does not know it refuses.
//!
//! ```text
//!   History ─► links, addresses, addrconf, neighbours, nexthops, rules, routes4 + infos ─►───────── told, errno
//!                      └─ dumps ─────────────────────────────────────────────────────────────────► dumps
//!   probes ──► packets4 (lookup4, hash) ─────────────────────────────────────────────────────────► answers
//! ```

mod addrconf;
mod addresses;
mod dumps;
mod hash;
mod infos;
mod links;
mod lookup4;
mod messages;
mod neighbours;
mod nexthops;
mod packets4;
mod routes4;
mod rules;

use crate::history::op::PORT_INDEX;
use crate::history::{Act, History, Op, PORTS, port_mac};
use crate::recording::{
    Answer, Bytes, Command, FORMAT, Port, Probe, Recording, Socket, Step, Told, is_older,
};
use links::Dev;
use messages::Request;
use tandem_netlink::DUMPS;

const ENOENT: i32 = 2;
const ESRCH: i32 = 3;
const EAGAIN: i32 = 11;
const EACCES: i32 = 13;
const EEXIST: i32 = 17;
const ENODEV: i32 = 19;
const EINVAL: i32 = 22;
const EADDRNOTAVAIL: i32 = 99;
const ENETDOWN: i32 = 100;
const ENETUNREACH: i32 = 101;
const EHOSTUNREACH: i32 = 113;

/// RTNH_F_*
const DEAD: u32 = 1;
const ONLINK: u32 = 4;
const LINKDOWN: u32 = 16;
/// RT_SCOPE_*
const LINK: u8 = 253;
const HOST: u8 = 254;
const NOWHERE: u8 = 255;
/// RT_TABLE_*
const MAIN: u32 = 254;
const LOCAL: u32 = 255;

const fn mask4(len: u8) -> u32 {
    if len == 0 { 0 } else { u32::MAX << (32 - len) }
}

/// A construct that the model does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("history holds {0}")]
pub struct Unknown(pub String);

/// Who made the kernel say something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Kernel,
    Asked,
}

/// A network namespace.
#[derive(Debug, Default)]
struct Net {
    devs: Vec<Dev>,
    neighs: Vec<neighbours::Neigh>,
    nexthops: Vec<nexthops::Nexthop>,
    infos: Vec<infos::Info>,
    tables: Vec<routes4::Table>,
    groups6: Vec<addrconf::Groups6>,
    rules: [Vec<rules::Rule>; 2],
    told: Vec<Told>,
    /// Ways of a multipath route are chosen by the hash alone: before Linux 6.16.
    by_hash_alone: bool,
    /// Something that the model does not know has happened.
    refused: Option<&'static str>,
    seq: u32,
    stamps: u64,
}

impl Net {
    /// As the recorder makes it before a history.
    fn new() -> Self {
        let mut net = Self {
            rules: rules::Rule::defaults(),
            ..Self::default()
        };
        for id in [LOCAL, MAIN] {
            net.table4(id);
        }
        net.devs.push(Dev::new(1, "lo", [0; 6]));
        for n in 1..=PORTS {
            let index = PORT_INDEX + u32::from(n);
            (net.devs).push(Dev::new(index, &format!("swp{n}"), port_mac(n)));
        }
        let all: Vec<u32> = net.devs.iter().map(|d| d.index).collect();
        for index in all.iter().copied() {
            let _ = net.set_up(index, true);
        }
        for index in all.into_iter().skip(1) {
            net.set_cable(index, true);
            net.watch();
        }
        net.told.clear();
        net
    }

    fn stamp(&mut self) -> u64 {
        self.stamps += 1;
        self.stamps
    }

    fn cause(&self, from: Cause) -> (u32, u32) {
        match from {
            Cause::Kernel => (0, 0),
            Cause::Asked => (self.seq, messages::PORT),
        }
    }

    fn tell(&mut self, bytes: Vec<u8>) {
        self.told.push(Told {
            socket: Socket::Route,
            data: Bytes(bytes),
        });
    }

    /// A message to rtnetlink; its errno.
    fn ask(&mut self, bytes: &[u8]) -> Result<i32, Unknown> {
        let unknown = || Unknown("a message of another kind".into());
        let r = Request::read(bytes).ok_or_else(unknown)?;
        self.seq = r.seq;
        if r.byte(0) == messages::INET6 {
            return Err(Unknown("IPv6".into()));
        }
        let done = match r.kind {
            messages::NEWLINK
                if r.byte(0) == 0 && r.attrs().next().is_none() && r.long(12) == 1 =>
            {
                self.set_up(r.long(4), r.long(8) & 1 != 0)
            }
            messages::NEWADDR => self.inet_newaddr(&r),
            messages::DELADDR => self.inet_deladdr(&r),
            messages::NEWROUTE => self.inet_newroute(&r),
            messages::DELROUTE => self.inet_delroute(&r),
            messages::NEWNEIGH if r.byte(0) == messages::INET => self.neigh_add(&r),
            messages::DELNEIGH if r.byte(0) == messages::INET => self.neigh_delete(&r),
            messages::NEWRULE => self.rule_new(&r),
            messages::DELRULE => self.rule_del(&r),
            // NHA_RES_GROUP
            messages::NEWNEXTHOP if r.attr(12).is_some() => {
                return Err(Unknown("a resilient group".into()));
            }
            messages::NEWNEXTHOP => self.nexthop_new(&r),
            messages::DELNEXTHOP => self.nexthop_del(&r),
            _ => return Err(unknown()),
        };
        Ok(done.err().unwrap_or(0))
    }

    /// Something of a dump, asked for: what the kernel makes by itself comes by itself.
    fn restore(&mut self, r: &Request<'_>) -> Result<(), Unknown> {
        let (family, index) = (r.byte(0), r.long(4));
        match r.kind {
            messages::NEWLINK if index != 1 => {
                let dev = self.dev(index).filter(|_| family == 0);
                dev.ok_or_else(|| Unknown(format!("device {index}")))?;
                let (up, carrier) = (r.long(8) & links::IFF_UP != 0, r.long(8) & 0x1_0000 != 0);
                if !up || !carrier {
                    return Err(Unknown("a link that is down at first".into()));
                }
            }
            messages::NEWADDR if family == messages::INET && index != 1 => {
                let _ = self.inet_newaddr(r);
            }
            messages::NEWNEIGH if family == messages::INET && r.short(8) & 0xc0 != 0 => {
                let all = messages::CREATE | messages::REPLACE;
                let _ = self.neigh_add(&r.with_flags(all));
            }
            messages::NEWNEXTHOP => {
                let flags = messages::CREATE | messages::EXCL;
                let _ = self.nexthop_new(&r.with_flags(flags));
            }
            messages::NEWROUTE if family == messages::INET && r.byte(5) != 2 => {
                let flags = messages::CREATE | messages::APPEND;
                // of an object's route its ways are shown too, and may not be asked for
                let object = r.attr(30).is_some();
                let mut m = messages::Message::new(r.kind, flags, 0, 0, r.fixed());
                for (kind, value) in r.attrs().filter(|(k, _)| !object || ![4, 5, 9].contains(k)) {
                    m.bytes(kind, value);
                }
                if let Some(r) = Request::read(&m.done()) {
                    let _ = self.inet_newroute(&r);
                }
            }
            messages::NEWRULE if family == messages::INET && !rules::is_default(r) => {
                let _ = self.rule_new(&r.with_flags(messages::CREATE));
            }
            _ => {}
        }
        Ok(())
    }

    /// Does one thing, and all that is deferred by it; what was sent, and the errno.
    fn apply(&mut self, act: &Act, seq: u32) -> Result<(Vec<u8>, i32), Unknown> {
        let (request, errno) = match act {
            Act::Message(message) => {
                let mut message = message.clone();
                if let Some(slot) = message.get_mut(8..12) {
                    slot.copy_from_slice(&seq.to_ne_bytes());
                }
                let errno = self.ask(&message)?;
                (message, errno)
            }
            Act::Cable(port, up) => {
                self.set_cable(PORT_INDEX + u32::from(*port), *up);
                (Vec::new(), 0)
            }
            Act::Sysctl(key, value) => {
                self.sysctl(key, value)?;
                (Vec::new(), 0)
            }
        };
        self.watch();
        Ok((request, errno))
    }

    /// The first rest, then each command and its rest.
    fn live<'a>(
        &mut self,
        dumps: &[Vec<u8>],
        probes: &[Probe],
        acts: impl Iterator<Item = (&'a String, Act)>,
    ) -> Result<Vec<Step>, Unknown> {
        let mut steps = vec![self.rest(dumps, probes)?];
        for (n, (text, act)) in acts.enumerate() {
            let (request, errno) = self.apply(&act, n as u32 + 1)?;
            let mut step = self.rest(dumps, probes)?;
            step.command = Some(Command {
                text: text.clone(),
                request: Bytes(request),
                errno,
            });
            steps.push(step);
        }
        Ok(steps)
    }

    fn rest(&mut self, dumps: &[Vec<u8>], probes: &[Probe]) -> Result<Step, Unknown> {
        let mut step = Step {
            told: std::mem::take(&mut self.told),
            dumps: self.dumps(dumps),
            ..Step::default()
        };
        for probe in probes {
            let frame = &probe.frame.0;
            if frame.get(12..14) != Some(&[8, 0]) {
                return Err(Unknown("packets that are not IPv4".into()));
            }
            let dev = self.dev(PORT_INDEX + u32::from(probe.port)).cloned();
            let mut answer = Answer::default();
            if let Some(dev) = dev.filter(|d| d.up && d.carrier) {
                answer.out = self.receive4(&dev, frame);
                answer.out.sort();
            }
            step.answers.push(answer);
        }
        if let Some(what) = self.refused {
            return Err(Unknown(what.into()));
        }
        Ok(step)
    }
}

/// What the newest kernel would do in a history.
///
/// # Errors
/// The history holds what the model does not know.
pub fn record(history: &History) -> Result<Recording, Unknown> {
    record_as(history, "")
}

/// What a kernel of that version (`uname -r`) would do in a history.
///
/// # Errors
/// The history holds what the model does not know.
pub fn record_as(history: &History, kernel: &str) -> Result<Recording, Unknown> {
    let mut net = Net::new();
    net.by_hash_alone = is_older(kernel, (6, 16));
    for op in &history.topology {
        net.apply(&op.act, 0)?;
        net.told.clear();
    }
    let acts = history.commands.iter().map(|op| (&op.text, op.act.clone()));
    let steps = net.live(&DUMPS.map(|d| d.request()), &history.probes, acts)?;
    Ok(Recording {
        format: FORMAT,
        seed: history.seed,
        kernel: "model".into(),
        have: history.have.clone(),
        ports: (1..=PORTS)
            .map(|n| Port {
                name: format!("swp{n}"),
                ifindex: PORT_INDEX + u32::from(n),
                mac: port_mac(n),
            })
            .collect(),
        probes: history.probes.clone(),
        steps,
    })
}

/// What the kernel would do in a recorded history, from the tables of its first rest on.
///
/// # Errors
/// The recording holds what the model does not know.
pub fn again(recording: &Recording) -> Result<Recording, Unknown> {
    let Some(first) = recording.steps.first() else {
        return Err(Unknown("no steps".into()));
    };
    let mut net = Net::new();
    net.by_hash_alone = is_older(&recording.kernel, (6, 16));
    // links, addresses, neighbours, next-hop objects, routes, rules: each after what it needs
    for kind in [
        messages::NEWLINK,
        messages::NEWADDR,
        messages::NEWNEIGH,
        messages::NEWNEXTHOP,
        messages::NEWROUTE,
        messages::NEWRULE,
    ] {
        let data = first.dumps.iter().flat_map(|d| &d.data);
        let messages = data.flat_map(|d| messages::split(&d.0));
        let mut all: Vec<Request<'_>> = (messages.filter_map(Request::read))
            .filter(|r| r.kind == kind)
            .collect();
        if kind == messages::NEWNEIGH {
            // a dump does not say which one is older; histories make them in the order of their addresses
            all.sort_by_key(|r| (r.long(4), r.attr(1)));
        }
        for r in &all {
            net.restore(r)?;
        }
    }
    net.told.clear();
    let mut acts = Vec::new();
    for step in recording.steps.iter().skip(1) {
        let command = step.command.as_ref();
        let command = command.ok_or_else(|| Unknown("a step without a command".into()))?;
        let act = act_of(command)?;
        acts.push((&command.text, act));
    }
    let dumps: Vec<Vec<u8>> = first.dumps.iter().map(|d| d.request.0.clone()).collect();
    let steps = net.live(&dumps, &recording.probes, acts.into_iter())?;
    Ok(Recording {
        kernel: "model".into(),
        steps,
        ..recording.clone()
    })
}

/// As [`Op`] says it in words where there is no message.
fn act_of(command: &Command) -> Result<Act, Unknown> {
    if !command.request.0.is_empty() {
        return Ok(Act::Message(command.request.0.clone()));
    }
    let ops = (1..=PORTS).flat_map(|n| [true, false].map(|up| Op::cable(n, up)));
    if let Some(op) = ops.into_iter().find(|op| op.text == command.text) {
        return Ok(op.act);
    }
    let setting = command.text.strip_prefix("sysctl ");
    match setting.and_then(|s| s.split_once('=')) {
        Some((key, value)) => Ok(Act::Sysctl(key.into(), value.into())),
        None => Err(Unknown(command.text.clone())),
    }
}
