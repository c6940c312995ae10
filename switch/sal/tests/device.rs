//! The SAL against a device of its own: pipelining, time-outs, answers that lie, event order.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use tandem_abi::{LayoutSpec, Status, command, raw};
use tandem_carrier::{DeviceEvent, DeviceSide};
use tandem_sal::{
    Attach, Event, Outcome, PostError, Request, Sal, SalControl, SalError, SalIo, Splits,
};
use zerocopy::IntoBytes;

/// The end of a test that hangs, and no verdict on a machine that has other work.
const LIMIT: Duration = Duration::from_secs(60);
/// The device takes commands and keeps them to itself.
const SILENT: u32 = 1;
/// Every answer comes twice, the second one with another epoch, and claims gigabytes of output.
const LIES: u32 = 2;
/// For every TX packet: a learn event, then the packet back as RX; event numbers skip one.
const GAP: u32 = 4;

/// Entries of all rings are noise, some of it shaped like answers.
const NOISE: u32 = 8;

struct Device {
    mode: Arc<AtomicU32>,
    stop: Arc<AtomicBool>,
    path: PathBuf,
    thread: Option<std::thread::JoinHandle<()>>,
}

fn platform() -> Vec<u8> {
    let head = std::mem::size_of::<raw::tnd_platform>() as u32;
    let mut out = raw::tnd_platform {
        struct_size: head as u16,
        port_count: 1,
        ports_offset: head,
        ..Default::default()
    }
    .as_bytes()
    .to_vec();
    let port = raw::tnd_platform_port {
        port: 1,
        front_panel: 1,
        ..Default::default()
    };
    out.extend_from_slice(port.as_bytes());
    out
}

impl Device {
    fn start(name: &str) -> Device {
        let dir = std::env::temp_dir().join(format!("tandem-sal-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join(name);
        let spec = LayoutSpec {
            pairs: vec![16, 64],
            events: 16,
            rx: 8,
            tx: 8,
            packet_entry: 2048,
            arena: 1 << 20,
            platform: platform(),
            ..Default::default()
        };
        let mut side = DeviceSide::listen(&path, spec).unwrap();
        let mode = Arc::new(AtomicU32::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (m, s) = (mode.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            let mut next_event = 0;
            while !s.load(SeqCst) {
                for e in side.handle() {
                    if matches!(e, DeviceEvent::Request(_)) {
                        side.acknowledge(Status::Ok);
                        next_event = 0;
                    }
                }
                serve(&mut side, &m, &mut next_event);
                side.flush();
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        Device {
            mode,
            stop,
            path,
            thread: Some(thread),
        }
    }

    fn attach(&self) -> (Sal, SalControl, SalIo) {
        let mut sal = Sal::connect(&self.path, "test", &Splits::new(), LIMIT).unwrap();
        let (control, io) = sal.attach(Attach::Cold).unwrap();
        (sal, control, io)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        self.thread.take().unwrap().join().unwrap();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The mode of what is taken is asked for behind it: a test sets it before it posts, and may do both after this has begun.
fn serve(side: &mut DeviceSide, mode: &AtomicU32, next_event: &mut u32) {
    let Some(rings) = side.rings() else { return };
    let epoch = rings.epoch;
    if mode.load(SeqCst) & NOISE != 0 {
        noise(rings, next_event);
        return;
    }
    for pair in &mut rings.pairs {
        while let Ok(Some(cmd)) = pair.cmd.pop_struct::<raw::tnd_cmd>() {
            let mode = mode.load(SeqCst);
            if mode & SILENT != 0 {
                continue;
            }
            let mut cpl = command::completion(&cmd, raw::TND_ST_OK);
            if cmd.out_size > 0 {
                let text = b"result";
                rings.arena.write(cmd.out_offset, text).unwrap();
                cpl.out_len = text.len() as u32;
                cpl.out_count = 1;
            }
            if mode & LIES != 0 {
                cpl.out_len = u32::MAX;
                cpl.delta_count = u16::MAX;
            }
            let _ = pair.cpl.push(&[cpl.as_bytes()]);
            if mode & LIES != 0 {
                let _ = pair.cpl.push(&[cpl.as_bytes()]);
                cpl.epoch = epoch.wrapping_sub(1);
                let _ = pair.cpl.push(&[cpl.as_bytes()]);
            }
        }
    }
    let mut frame = Vec::new();
    while let Ok(Some(tx)) = rings
        .tx
        .pop_packet(&mut frame, |t: &raw::tnd_tx| t.len as usize)
    {
        if mode.load(SeqCst) & GAP != 0 {
            *next_event += 1;
        }
        let event = raw::tnd_event {
            kind: raw::TND_EV_LEARN,
            seq: *next_event,
            epoch,
            fid: 5,
            port: tx.port,
            mac: [2, 0, 0, 0, 0, 1],
            ..Default::default()
        };
        *next_event += 1;
        let _ = rings.event.push(&[event.as_bytes()]);
        let rx = raw::tnd_rx {
            len: tx.len,
            port: tx.port,
            flags: raw::TND_RX_L2_FORWARDED,
            event_seq: *next_event,
            epoch,
            ..Default::default()
        };
        let _ = rings.rx.push(&[rx.as_bytes(), &frame]);
    }
}

/// xorshift: the same noise in every run.
fn random(state: &mut u32) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    *state
}

fn noise(rings: &mut tandem_abi::DeviceRings<tandem_carrier::Region>, seed: &mut u32) {
    if *seed < 1000 {
        *seed = 0x1234_5678;
    }
    let bytes =
        |n: usize, seed: &mut u32| -> Vec<u8> { (0..n).map(|_| random(seed) as u8).collect() };
    for pair in &mut rings.pairs {
        while let Ok(Some(cmd)) = pair.cmd.pop_struct::<raw::tnd_cmd>() {
            let mut raw_cpl = bytes(raw::TND_CPL_SIZE, seed);
            if random(seed).is_multiple_of(2) {
                // the head is right, the rest is not
                let head = command::completion(&cmd, raw::TND_ST_OK);
                raw_cpl[..32].copy_from_slice(&head.as_bytes()[..32]);
            }
            let _ = pair.cpl.push(&[&raw_cpl]);
        }
    }
    for _ in 0..4 {
        let mut event = bytes(raw::TND_EVENT_SIZE, seed);
        event[0] = (random(seed) % 8) as u8;
        event[1] = 0;
        event[8..12].copy_from_slice(&rings.epoch.to_le_bytes());
        let _ = rings.event.push(&[&event]);
        let mut packet = bytes(raw::TND_PKT_META_SIZE + 100, seed);
        let at = std::mem::offset_of!(raw::tnd_rx, epoch);
        packet[at..at + 4].copy_from_slice(&rings.epoch.to_le_bytes());
        let _ = rings.rx.push(&[&packet]);
    }
}

fn reap(control: &mut SalControl, now: u64, wanted: usize) -> Vec<Outcome> {
    let mut all = Vec::new();
    let end = Instant::now() + LIMIT;
    while all.len() < wanted && Instant::now() < end {
        control.reap(now, 1000, &mut |o| all.push(o)).unwrap();
        std::thread::sleep(Duration::from_micros(200));
    }
    all
}

fn nop() -> Request<'static> {
    Request {
        op: raw::TND_OP_NOP,
        ..Default::default()
    }
}

#[test]
fn many_are_outstanding_and_the_ring_is_the_limit() {
    let device = Device::start("many");
    let (_sal, mut control, _io) = device.attach();
    device.mode.store(SILENT, SeqCst);
    let mut posted = 0;
    while control.post(1, posted, &nop(), 0) == Ok(()) {
        posted += 1;
    }
    assert_eq!(posted, 64, "as many as the completion ring holds");
    assert_eq!(control.post(1, 99, &nop(), 0), Err(PostError::Full));
    assert_eq!(control.outstanding(), 64);
    assert_eq!(control.post(7, 0, &nop(), 0), Err(PostError::Impossible));
    // the other pair is not concerned
    assert_eq!(control.post(0, 99, &nop(), 0), Ok(()));
}

#[test]
fn answers_come_with_their_tokens_and_output() {
    let device = Device::start("answers");
    let (_sal, mut control, _io) = device.attach();
    let long = vec![7u8; 2000];
    for round in 0..20 {
        for token in 0..8 {
            let request = Request {
                body: &long,
                output: token % 2 == 0,
                ..nop()
            };
            control.post(1, round * 8 + token, &request, 0).unwrap();
        }
        control.flush();
        let done = reap(&mut control, 0, 8);
        assert_eq!(done.len(), 8);
        for (i, o) in done.into_iter().enumerate() {
            let Outcome::Done { token, output, .. } = o else {
                panic!("{o:?}");
            };
            assert_eq!(token, round * 8 + i as u64);
            assert_eq!(output, if i % 2 == 0 { &b"result"[..] } else { b"" });
        }
    }
    assert_eq!(control.counters().stray, 0);
    // synchronous on top of it
    let (_, out) = control
        .call(
            "question",
            &Request {
                output: true,
                ..nop()
            },
        )
        .unwrap();
    assert_eq!(out, b"result");
}

#[test]
fn no_answer_in_time_is_told_once() {
    let device = Device::start("silent");
    let (_sal, mut control, _io) = device.attach();
    device.mode.store(SILENT, SeqCst);
    control.post(1, 42, &nop(), 1000).unwrap();
    control.flush();
    // the device may take it now, or later: it says nothing
    std::thread::sleep(Duration::from_millis(20));
    let due = control.next_deadline_ns().unwrap();
    let mut seen = Vec::new();
    control.reap(due - 1, 10, &mut |o| seen.push(o)).unwrap();
    assert!(seen.is_empty());
    control.reap(due, 10, &mut |o| seen.push(o)).unwrap();
    assert!(
        matches!(seen[..], [Outcome::TimedOut { token: 42 }]),
        "{seen:?}"
    );
    control.reap(due + 1, 10, &mut |o| seen.push(o)).unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!(control.outstanding(), 0);
    // too many of them end the attach
    device.mode.store(SILENT, SeqCst);
    for t in 0..40 {
        control.post(1, t, &nop(), 0).unwrap();
    }
    assert!(matches!(
        control.reap(u64::MAX, 100, &mut |_| {}),
        Err(SalError::Unanswered(_))
    ));
}

#[test]
fn lies_are_counted_and_cost_nothing() {
    let device = Device::start("lies");
    let (_sal, mut control, _io) = device.attach();
    device.mode.store(LIES, SeqCst);
    for token in 0..5u64 {
        let request = Request {
            output: true,
            ..nop()
        };
        control.post(1, token, &request, 0).unwrap();
        control.flush();
        let done = reap(&mut control, 0, 1);
        let Some(Outcome::Done { cpl, output, .. }) = done.first() else {
            panic!("{done:?}");
        };
        assert_eq!(cpl.delta_count, raw::TND_MAX_DELTAS as u16);
        assert!(output.len() <= 65536, "cut to what was given");
        // the other two answers may come later
        let end = Instant::now() + LIMIT;
        while control.counters().stray < 2 * (token + 1) {
            assert!(Instant::now() < end, "{:?}", control.counters());
            control.reap(0, 100, &mut |o| panic!("{o:?}")).unwrap();
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    control.reap(0, 100, &mut |o| panic!("{o:?}")).unwrap();
    assert_eq!(control.counters().stray, 10);
}

#[test]
fn events_come_before_the_packet_that_names_them() {
    let device = Device::start("events");
    let (_sal, _control, mut io) = device.attach();
    for n in 0..20u8 {
        assert!(io.transmit(1, 0, &[n; 64]).unwrap());
        io.flush();
        let mut frame = Vec::new();
        let end = Instant::now() + LIMIT;
        let meta = loop {
            if let Some(m) = io.receive(&mut frame).unwrap() {
                break m;
            }
            assert!(Instant::now() < end);
        };
        assert_eq!(frame, vec![n; 64]);
        assert!(meta.forwarded());
        let before = io.event_before(&meta).unwrap();
        assert!(matches!(
            before,
            Some(Event::Learn {
                fid: 5,
                port: 1,
                ..
            })
        ));
        assert_eq!(io.event_before(&meta).unwrap(), None);
    }
    assert!(
        !io.transmit(1, 0, &[0; 4000]).unwrap(),
        "longer than an entry"
    );
    assert_eq!(io.counters().tx_long, 1);
}

#[test]
fn a_gap_in_the_events_is_a_loss() {
    let device = Device::start("gap");
    let (_sal, _control, mut io) = device.attach();
    device.mode.store(GAP, SeqCst);
    assert!(io.transmit(1, 0, &[1; 64]).unwrap());
    io.flush();
    let end = Instant::now() + LIMIT;
    let mut events = Vec::new();
    while events.len() < 2 && Instant::now() < end {
        events.extend(io.event().unwrap());
    }
    assert!(
        matches!(events[..], [Event::Lost { .. }, Event::Learn { .. }]),
        "{events:?}"
    );
}

#[test]
fn a_device_that_goes_away_is_noticed() {
    let device = Device::start("gone");
    let (sal, mut control, _io) = device.attach();
    assert!(sal.check().is_ok());
    drop(device);
    assert!(sal.check().is_err());
    control.post(0, 1, &nop(), 0).unwrap();
    control.flush();
    assert!(control.reap(0, 10, &mut |_| {}).is_ok());
    assert!(
        Sal::connect(
            std::path::Path::new("/nonexistent"),
            "x",
            &Splits::new(),
            LIMIT
        )
        .is_err()
    );
}

#[test]
fn noise_of_the_device_is_read_and_survived() {
    let device = Device::start("noise");
    let (_sal, mut control, mut io) = device.attach();
    device.mode.store(NOISE, SeqCst);
    // so long, and until there was some of everything: the device makes noise when it gets a processor
    let begin = Instant::now();
    let (mut token, mut answered, mut events, mut frame) = (0, 0, 0, Vec::new());
    loop {
        let (time, stray) = (begin.elapsed(), control.counters().stray);
        if time > Duration::from_millis(800) && answered > 0 && events > 0 && stray > 0 {
            break;
        }
        let what = (answered, events, stray);
        assert!(time < LIMIT, "answers, events and strays: {what:?}");
        let request = Request {
            output: token % 3 == 0,
            ..nop()
        };
        if control
            .post((token % 2) as usize, token, &request, token)
            .is_ok()
        {
            token += 1;
        }
        control.flush();
        control
            .reap(token, 100, &mut |o| {
                if let Outcome::Done { output, cpl, .. } = o {
                    assert!(output.len() <= 65536);
                    assert!(cpl.delta_count <= raw::TND_MAX_DELTAS as u16);
                    answered += 1;
                }
            })
            .unwrap();
        while let Some(meta) = io.receive(&mut frame).unwrap() {
            assert!(frame.len() <= 2048 - raw::TND_PKT_META_SIZE);
            for _ in 0..8 {
                if io.event_before(&meta).unwrap().is_none() {
                    break;
                }
                events += 1;
            }
        }
    }
}
