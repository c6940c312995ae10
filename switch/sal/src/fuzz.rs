//! Fuzz entry: a device that writes anything into the region, at any time between two calls of the driver.
//!
//! The fuzzer's bytes are a script. Half of it is what an honest driver does, the rest what the device puts into the
//! completion, event and rx rings: answers to what was asked, nearly right ones, and noise. `abi`'s own entries look
//! at the rings below; here the subject is what is made of an entry that was taken.

use std::collections::BTreeSet;

use tandem_abi::{DriverRings, HeapMemory, Layout, LayoutSpec, Memory, RingLayout, raw};
use tandem_carrier::{Bell, EventFd, Region};
use zerocopy::IntoBytes;

use crate::control::{Outcome, PostError, Request, SalControl};
use crate::io::{Parts, SalIo};

/// Epoch of the attach.
const EPOCH: u32 = 3;
/// Entries of the event ring.
const EVENTS: u32 = 4;
/// Bytes of a packet entry.
const ENTRY: usize = 256;
/// Calls of one script.
const STEPS: usize = 400;

struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }
    fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        head
    }
    /// Small, or anything.
    fn number(&mut self) -> u32 {
        match self.byte() {
            255 => self.take(4).iter().fold(0, |n, b| n << 8 | u32::from(*b)),
            254 => u32::MAX,
            n => u32::from(n),
        }
    }
    /// Over the struct's bytes: pairs of place and value.
    fn spoil<T: IntoBytes + zerocopy::FromBytes>(&mut self, value: &mut T, changes: u8) {
        for _ in 0..changes {
            let (at, to) = (usize::from(self.byte()), self.byte());
            if let Some(b) = value.as_mut_bytes().get_mut(at) {
                *b = to;
            }
        }
    }
}

/// One end of a ring that the device fills: it needs no consent for it.
struct Filled {
    ring: RingLayout,
    prod: u32,
}

impl Filled {
    fn put(&mut self, mem: &Region, parts: &[&[u8]]) {
        let slot = self.prod as usize % self.ring.entry_count as usize;
        let mut at = self.ring.entries + slot * self.ring.entry_size;
        let end = at + self.ring.entry_size;
        for part in parts {
            let n = part.len().min(end - at);
            mem.write(at, part.get(..n).unwrap_or(part));
            at += n;
        }
        self.prod = self.prod.wrapping_add(1);
        mem.store_release(self.ring.prod, self.prod);
    }
}

/// A driver attached to a region, and the device's ends of its rings.
struct Bench {
    mem: Region,
    control: SalControl,
    io: SalIo,
    cpl: Vec<Filled>,
    event: Filled,
    rx: Filled,
    now: u64,
    next_token: u64,
    /// Posted, neither answered nor given up.
    open: BTreeSet<u64>,
    /// Descriptors as they were posted, by pair, for answers.
    cmd: Vec<RingLayout>,
}

impl Bench {
    fn new() -> Option<Bench> {
        let spec = LayoutSpec {
            pairs: vec![4, 8],
            events: EVENTS,
            rx: 4,
            tx: 4,
            packet_entry: ENTRY,
            arena: 32 << 10,
            platform: vec![0; 64],
            device_name: "fuzz".into(),
            ..Default::default()
        };
        let layout = Layout::new(&spec).ok()?;
        let heap = HeapMemory::new(layout.size);
        layout.write(&heap, &spec);
        let mem = Region::create("fuzz", layout.size).ok()?;
        let mut bytes = vec![0; layout.size];
        heap.read(0, &mut bytes);
        mem.write(0, &bytes);
        let rings = DriverRings::new(&mem, &layout, EPOCH).ok()?;
        let bell = || EventFd::new().map(Bell::new).ok();
        let filled = |ring: &RingLayout| Filled {
            ring: *ring,
            prod: 0,
        };
        let (mut pairs, mut cpl, mut cmd) = (Vec::new(), Vec::new(), Vec::new());
        for pair in rings.pairs {
            cpl.push(filled(pair.cpl.ring()));
            cmd.push(*pair.cmd.ring());
            pairs.push((pair, bell()?, bell()?));
        }
        let (event, rx) = (filled(rings.event.ring()), filled(rings.rx.ring()));
        let parts = Parts {
            event: rings.event,
            rx: rings.rx,
            tx: rings.tx,
            event_wake: bell()?,
            rx_wake: bell()?,
            tx_kick: bell()?,
        };
        Some(Bench {
            mem,
            control: SalControl::new(pairs, rings.arena, EPOCH),
            io: SalIo::new(parts, EPOCH),
            cpl,
            event,
            rx,
            now: 0,
            next_token: 0,
            open: BTreeSet::new(),
            cmd,
        })
    }

    fn post(&mut self, script: &mut Script<'_>) -> bool {
        let how = script.byte();
        let body = vec![how; script.number().min(8192) as usize];
        let request = Request {
            op: u16::from(how & 0xf),
            cls: u16::from(how >> 4),
            flags: u32::from(script.byte()),
            body: &body,
            output: how & 0x10 != 0,
            ..Default::default()
        };
        let token = self.next_token;
        match self
            .control
            .post(usize::from(how & 3), token, &request, self.now)
        {
            Ok(()) => {
                self.next_token += 1;
                assert!(self.open.insert(token));
                true
            }
            Err(PostError::Full | PostError::Impossible) => true,
            Err(PostError::Corrupt(_)) => false,
        }
    }

    /// The device answers what lies in a command ring, more or less.
    fn answer(&mut self, script: &mut Script<'_>) {
        let at = usize::from(script.byte()) % self.cpl.len().max(1);
        let (Some(cpl), Some(ring)) = (self.cpl.get_mut(at), self.cmd.get(at)) else {
            return;
        };
        let slot = usize::from(script.byte()) % ring.entry_count as usize;
        let cmd: raw::tnd_cmd =
            tandem_abi::memory::read_struct(&self.mem, ring.entries + slot * ring.entry_size);
        let mut answer = raw::tnd_cpl {
            op: cmd.op,
            cls: cmd.cls,
            cookie: cmd.cookie,
            seq: cmd.seq,
            epoch: EPOCH,
            out_len: script.number(),
            delta_count: u16::from(script.byte()),
            ..Default::default()
        };
        let changes = script.byte() % 8;
        script.spoil(&mut answer, changes);
        cpl.put(&self.mem, &[answer.as_bytes()]);
    }

    /// Takes answers; each token comes back once at most, whatever the device says.
    fn reap(&mut self, script: &mut Script<'_>) -> bool {
        self.now += u64::from(script.byte()) << 26;
        let open = &mut self.open;
        let reaped = self
            .control
            .reap(self.now, 64, &mut |outcome| match outcome {
                Outcome::Done { token, cpl, output } => {
                    assert!(open.remove(&token), "token {token} twice, or never posted");
                    assert!(usize::from(cpl.delta_count) <= raw::TND_MAX_DELTAS);
                    assert!(output.len() <= cpl.out_len as usize);
                    assert!(output.len() <= 64 << 10);
                    let _ = tandem_abi::describe(&cpl, "ipv4-lpm");
                }
                Outcome::TimedOut { token } => {
                    assert!(open.remove(&token), "token {token} twice, or never posted");
                }
            });
        assert_eq!(self.control.outstanding(), self.open.len());
        reaped.is_ok()
    }

    fn event(&mut self, script: &mut Script<'_>) {
        let mut event = raw::tnd_event {
            kind: u16::from(script.byte() % 8),
            seq: self.event.prod,
            epoch: EPOCH,
            fid: u16::from(script.byte()),
            port: u16::from(script.byte()),
            ..Default::default()
        };
        let changes = script.byte() % 4;
        script.spoil(&mut event, changes);
        self.event.put(&self.mem, &[event.as_bytes()]);
    }

    fn packet(&mut self, script: &mut Script<'_>) {
        let mut meta = raw::tnd_rx {
            len: script.number(),
            port: u16::from(script.byte()),
            event_seq: script.number(),
            epoch: EPOCH,
            ..Default::default()
        };
        let changes = script.byte() % 4;
        script.spoil(&mut meta, changes);
        let n = usize::from(script.byte());
        let frame = script.take(n);
        self.rx.put(&self.mem, &[meta.as_bytes(), frame]);
    }

    /// Takes packets, each after the events that it waits for. An error ends the attach.
    fn receive(&mut self) -> Result<(), crate::SalError> {
        let mut frame = Vec::new();
        for _ in 0..16 {
            let Some(meta) = self.io.receive(&mut frame)? else {
                break;
            };
            assert!(frame.len() <= self.io.frame_max());
            let before = self.io.counters().events;
            // A packet may name any event: what is not there is not waited for. What was seen before is taken, then what
            // the device has put since, more than a ring at no time. A gap is told beside its event, and kinds that
            // nobody knows are taken and not told
            let mut told = 0;
            while self.io.event_before(&meta)?.is_some() {
                told += 1;
                assert!(told <= 4 * EVENTS + 1, "more events than the ring holds");
            }
            assert!(self.io.counters().events - before <= u64::from(2 * EVENTS));
        }
        Ok(())
    }

    fn step(&mut self, script: &mut Script<'_>) -> bool {
        match script.byte() % 16 {
            0..=3 => return self.post(script),
            4..=6 => self.answer(script),
            7 => return self.reap(script),
            8 => self.event(script),
            9 => self.packet(script),
            10 => return self.receive().is_ok(),
            11 => self.control.flush(),
            12 => {
                let (port, flags) = (u16::from(script.byte()), u16::from(script.byte()));
                let frame = vec![flags as u8; script.number().min(70_000) as usize];
                let sent = self.io.transmit(port, flags, &frame);
                self.io.flush();
                assert!(!matches!(sent, Ok(true)) || frame.len() <= self.io.frame_max());
                return sent.is_ok();
            }
            13 => {
                let armed = self.control.arm().is_ok() && self.io.arm().is_ok();
                self.control.disarm();
                self.io.disarm();
                return armed;
            }
            14 => {
                // how far the device has got, true or not
                let pair = usize::from(script.byte());
                if let Some(ring) = self.cmd.get(pair % 2) {
                    let now = self.mem.load_acquire(ring.prod);
                    let to = now.wrapping_sub(script.number());
                    self.mem.store_release(ring.cons, to);
                }
            }
            _ => {
                let at = script.number() as usize * 4;
                if at + 4 <= self.mem.len() {
                    self.mem.store_release(at, script.number());
                }
            }
        }
        true
    }
}

/// Fuzz entry, see the module: no panic, no token twice, nothing longer than what it was given room for.
pub fn fuzz_driver(data: &[u8]) {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    let mut script = Script(data);
    for _ in 0..STEPS {
        if script.0.is_empty() || !bench.step(&mut script) {
            break;
        }
    }
    let _ = bench.control.next_deadline_ns();
}
