//! Driver and device against each other: attach, doorbells, kept descriptors, failures.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tandem_abi::handshake::Request;
use tandem_abi::{Command, LayoutSpec, Memory, Status, command, raw};
use tandem_carrier::{
    CarrierError, Connecting, Connection, DeviceEvent, DeviceSide, DriverSide, KEPT_MAX,
};

/// The end of a test that hangs, and no verdict on a machine that has other work.
const LIMIT: Duration = Duration::from_secs(60);

fn socket(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("tandem-carrier-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir.join(name)
}

fn spec() -> LayoutSpec {
    LayoutSpec {
        pairs: vec![16, 64],
        events: 16,
        rx: 8,
        tx: 8,
        packet_entry: 2048,
        arena: 8192,
        platform: vec![5; 100],
        device_name: "testchip".into(),
        ..Default::default()
    }
}

/// A device that answers every command with its cookie and sends every TX packet back as RX.
struct Device {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    events: mpsc::Receiver<DeviceEvent>,
    thread: Option<std::thread::JoinHandle<usize>>,
}

impl Device {
    fn start(name: &str) -> Self {
        let path = socket(name);
        let mut device = DeviceSide::listen(&path, spec()).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, events) = mpsc::channel();
        let told = stop.clone();
        let thread = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                for e in device.handle() {
                    if matches!(e, DeviceEvent::Request(_)) {
                        device.acknowledge(Status::Ok);
                    }
                    let _ = tell.send(e);
                }
                if let Err(e) = serve(&mut device) {
                    device.fail(raw::TND_FAIL_RING_INDEX, &e.to_string());
                    continue;
                }
                device.flush();
                match device.arm() {
                    Ok(true) => {
                        let limit = Timespec::try_from(Duration::from_millis(500)).unwrap();
                        let mut fds: Vec<PollFd> = device
                            .poll_fds()
                            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                            .collect();
                        poll(&mut fds, Some(&limit)).unwrap();
                        drop(fds);
                        device.disarm();
                    }
                    Ok(false) => {}
                    Err(e) => device.fail(raw::TND_FAIL_RING_INDEX, &e.to_string()),
                }
            }
            device.kept()
        });
        Device {
            path,
            stop,
            events,
            thread: Some(thread),
        }
    }

    fn driver(&self, name: &str) -> Result<DriverSide, CarrierError> {
        DriverSide::connect(&self.path, name, LIMIT)
    }

    fn event(&self) -> DeviceEvent {
        self.events.recv_timeout(LIMIT).unwrap()
    }

    fn stop(mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

fn serve(device: &mut DeviceSide) -> Result<(), tandem_abi::Corrupt> {
    let Some(rings) = device.rings() else {
        return Ok(());
    };
    let mut body = Vec::new();
    for pair in &mut rings.pairs {
        while let Some(cmd) = pair.cmd.pop_struct::<raw::tnd_cmd>()? {
            let status = match command::read_body(&cmd, &rings.arena, &mut body) {
                Ok(()) => raw::TND_ST_OK,
                Err(_) => raw::TND_ST_INVALID,
            };
            let mut cpl = command::completion(&cmd, status);
            cpl.out_len = body.len() as u32;
            pair.cpl
                .push(&[zerocopy::IntoBytes::as_bytes(&cpl)])
                .unwrap();
        }
    }
    while let Some(tx) = rings
        .tx
        .pop_packet(&mut body, |t: &raw::tnd_tx| t.len as usize)?
    {
        let rx = raw::tnd_rx {
            len: body.len() as u32,
            port: tx.port,
            ..Default::default()
        };
        rings
            .rx
            .push(&[zerocopy::IntoBytes::as_bytes(&rx), &body])
            .unwrap();
    }
    Ok(())
}

#[test]
fn attach_commands_packets_and_doorbells() {
    let device = Device::start("attach.sock");
    let mut driver = device.driver("switchd").unwrap();
    assert!(matches!(device.event(), DeviceEvent::Connected(h) if h.name == "switchd"));
    assert_eq!(driver.device_name(), "testchip");
    assert_eq!(driver.platform(), vec![5; 100]);
    let mut rings = driver.attach(true).unwrap();
    assert_eq!(device.event(), DeviceEvent::Request(Request::AttachCold));
    assert_eq!(rings.epoch, 1);

    // 300 commands through a ring of 64, the driver sleeping in between: no doorbell is lost
    let vrf = raw::tnd_vrf {
        vrf: 9,
        ..Default::default()
    };
    let pair = &mut rings.pairs[1];
    let bell = driver.from_device(pair.cpl.ring().doorbell).unwrap();
    for seq in 0..300u32 {
        let cmd = Command::create(&vrf).cookie(u64::from(seq) << 8);
        let cmd = cmd.encode(seq, rings.epoch, 0);
        pair.cmd
            .push(&[zerocopy::IntoBytes::as_bytes(&cmd)])
            .unwrap();
        if pair.cmd.publish() {
            driver.to_device(pair.cmd.ring().doorbell).unwrap().ring();
        }
        let cpl = loop {
            if let Some(cpl) = pair.cpl.pop_struct::<raw::tnd_cpl>().unwrap() {
                break cpl;
            }
            if pair.cpl.arm().unwrap() {
                assert!(bell.wait(LIMIT).unwrap(), "no doorbell for {seq}");
                bell.drain();
            }
            pair.cpl.disarm();
        };
        assert_eq!((cpl.seq, cpl.cookie), (seq, u64::from(seq) << 8));
        assert_eq!((cpl.status, cpl.out_len), (raw::TND_ST_OK, 8));
    }

    let frame: Vec<u8> = (0..1500).map(|n| n as u8).collect();
    let tx = raw::tnd_tx {
        len: 1500,
        port: 3,
        ..Default::default()
    };
    rings
        .tx
        .push(&[zerocopy::IntoBytes::as_bytes(&tx), &frame])
        .unwrap();
    if rings.tx.publish() {
        driver.to_device(rings.tx.ring().doorbell).unwrap().ring();
    }
    let bell = driver.from_device(rings.rx.ring().doorbell).unwrap();
    if rings.rx.arm().unwrap() {
        assert!(bell.wait(LIMIT).unwrap());
    }
    let mut body = Vec::new();
    let rx = rings
        .rx
        .pop_packet(&mut body, |r: &raw::tnd_rx| r.len as usize)
        .unwrap()
        .unwrap();
    assert_eq!((rx.port, &body), (3, &frame));

    // warm again on the same connection: rings empty, next epoch
    let mut rings = driver.attach(false).unwrap();
    assert_eq!(device.event(), DeviceEvent::Request(Request::AttachWarm));
    assert_eq!((rings.epoch, rings.rx.pending().unwrap()), (2, 0));
    driver.detach().unwrap();
    assert_eq!(device.event(), DeviceEvent::Request(Request::Detach));
    assert_eq!(driver.reset().unwrap().epoch, 3);
    drop(driver);
    assert_eq!(device.event(), DeviceEvent::Request(Request::Reset));
    assert!(matches!(device.event(), DeviceEvent::Gone { .. }));
    device.stop();
}

#[test]
fn a_second_driver_is_told_who_holds_the_chip() {
    let device = Device::start("second.sock");
    let first = device.driver("switchd-a").unwrap();
    let e = device.driver("switchd-b").unwrap_err().to_string();
    assert_eq!(
        e,
        format!(
            "the chip is driven by switchd-a (pid {}): stop it first",
            std::process::id()
        )
    );
    drop(first);
    // at once: the hang-up is seen before the newcomer is judged
    let mut second = device.driver("switchd-b").unwrap();
    assert_eq!(second.attach(false).unwrap().epoch, 1);
    drop(second);
    device.stop();
    let e = DriverSide::connect(&socket("second.sock"), "x", LIMIT).unwrap_err();
    assert!(matches!(e, CarrierError::NoAsic(_)), "{e}");
}

#[test]
fn descriptors_outlive_their_driver() {
    let device = Device::start("keep.sock");
    let mut a = device.driver("a").unwrap();
    let (mut r, w) = std::io::pipe().unwrap();
    a.keep("tap/swp1", w.as_fd()).unwrap();
    a.keep("tap/swp2", w.as_fd()).unwrap();
    drop((a, w));
    let mut b = device.driver("b").unwrap();
    assert_eq!(b.kept().unwrap(), ["tap/swp1", "tap/swp2"]);
    assert!(b.get("tap/swp3").unwrap().is_none());
    let w = b.get("tap/swp1").unwrap().unwrap();
    rustix::io::write(&w, b"alive").unwrap();
    assert!(b.forget("tap/swp1").unwrap() && b.forget("tap/swp2").unwrap());
    assert!(!b.forget("tap/swp1").unwrap());
    drop(w);
    let mut got = String::new();
    r.read_to_string(&mut got).unwrap(); // ends: the device has closed its duplicates
    assert_eq!(got, "alive");
    assert!(b.keep("", r.as_fd()).is_err());
    for n in 0..KEPT_MAX {
        b.keep(&format!("n{n}"), r.as_fd()).unwrap();
    }
    b.keep("n7", r.as_fd()).unwrap(); // replaces
    let e = b.keep("more", r.as_fd()).unwrap_err().to_string();
    let full = format!("no room to keep more: {KEPT_MAX} of {KEPT_MAX} names in use");
    assert_eq!(e, full);
    assert_eq!(b.kept().unwrap().len(), KEPT_MAX);
    drop(b);
    assert_eq!(device.stop(), KEPT_MAX);
}

#[test]
fn a_corrupt_ring_ends_the_session_and_only_that() {
    let device = Device::start("corrupt.sock");
    let mut driver = device.driver("evil").unwrap();
    let rings = driver.attach(true).unwrap();
    let ring = *rings.pairs[0].cmd.ring();
    driver
        .region()
        .store_release(ring.prod, ring.entry_count + 1);
    driver.to_device(ring.doorbell).unwrap().ring();
    let gone = (0..3)
        .map(|_| device.event())
        .find(|e| matches!(e, DeviceEvent::Gone { .. }));
    let Some(DeviceEvent::Gone { holder, reason }) = gone else {
        panic!("session goes on");
    };
    assert_eq!(holder.name, "evil");
    assert!(
        reason.starts_with("corrupt ring index: producer index 17"),
        "{reason}"
    );
    assert!(matches!(
        driver.check().unwrap_err(),
        CarrierError::Failed(raw::TND_FAIL_RING_INDEX)
    ));
    assert!(driver.attach(false).is_err());
    // the listener goes on, and the next region is not the spoilt one
    let mut next = device.driver("good").unwrap();
    assert_eq!(next.attach(false).unwrap().epoch, 2);
    device.stop();
}

#[test]
fn a_request_of_a_later_version_is_unsupported() {
    let device = Device::start("later.sock");
    let driver = device.driver("later").unwrap();
    let at = std::mem::offset_of!(raw::tnd_header, req_op);
    driver.region().store_release(at, 77);
    driver.region().store_release(at + 4, 1);
    driver.to_device(0).unwrap().ring();
    assert!(driver.from_device(0).unwrap().wait(LIMIT).unwrap());
    let ack = tandem_abi::handshake::acknowledged(driver.region(), 1).unwrap();
    assert_eq!(ack.status, raw::TND_ST_UNSUPPORTED);
    drop(driver);
    device.stop();
}

#[test]
fn rubbish_on_the_socket_is_refused_and_bounded() {
    let device = Device::start("rubbish.sock");
    let raw_socket = tandem_linux::fdpass::connect(&device.path).unwrap();
    tandem_linux::fdpass::send(&raw_socket, &[0xff; 300], &[]).unwrap();
    // more connections than may wait, none of which says anything
    let silent: Vec<_> = (0..20)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(2));
            tandem_linux::fdpass::connect(&device.path)
        })
        .collect();
    assert!(silent.iter().any(Result::is_ok));
    let mut driver = device.driver("late").unwrap();
    driver.attach(true).unwrap();
    drop(driver);
    device.stop();
}

/// Runs in a process of its own, started by the test below.
#[test]
fn helper_connects() {
    let Some(path) = std::env::var_os("TANDEM_CARRIER_HELPER") else {
        return;
    };
    match DriverSide::connect(&PathBuf::from(path), "stranger", LIMIT) {
        Ok(_) => println!("ANSWER connected"),
        Err(e) => println!("ANSWER {e}"),
    }
}

fn helper(device: &Device, uid: u32) -> String {
    use std::os::unix::process::CommandExt;
    // the test's own binary may lie where another user can't go: hand it over by descriptor
    let exe = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    rustix::io::fcntl_setfd(&exe, rustix::io::FdFlags::empty()).unwrap();
    let out = std::process::Command::new(format!("/proc/self/fd/{}", exe.as_raw_fd()))
        .args(["--exact", "helper_connects", "--nocapture"])
        .env("TANDEM_CARRIER_HELPER", &device.path)
        .current_dir("/")
        .uid(uid)
        .output()
        .unwrap();
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[test]
fn only_the_same_user_may_drive() {
    use std::os::unix::fs::PermissionsExt;
    let device = Device::start("user.sock");
    let own = rustix::process::geteuid().as_raw();
    assert!(helper(&device, own).contains("ANSWER connected"));
    if own != 0 {
        eprintln!("skipped: a connection by another user needs root");
        return;
    }
    let said = helper(&device, 65534);
    assert!(
        said.contains("ANSWER connect to the driver socket"),
        "mode 0600: {said}"
    );
    // even through an open door
    std::fs::set_permissions(&device.path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let said = helper(&device, 65534);
    assert!(
        said.contains("ANSWER only user 0 may drive this chip, not 65534"),
        "{said}"
    );
    device.stop();
}

/// A device that hangs takes no connection, and the queue at its door fills with those that were given up. Who comes then
/// waits as well, and is served when the device goes on.
#[test]
fn who_finds_the_door_full_waits() {
    let path = socket("hangs");
    let mut device = DeviceSide::listen(&path, spec()).unwrap();
    let begin = || Connecting::begin(&path, "waits", LIMIT).unwrap();
    let mut waits = begin();
    for _ in 0..20 {
        waits = begin();
    }
    for _ in 0..10 {
        device.handle();
        match waits.go_on().unwrap() {
            Connection::Waits(still) => waits = still,
            Connection::Up(driver) => {
                assert!(driver.check().is_ok());
                assert_eq!(device.holder().unwrap().name, "waits");
                return;
            }
        }
    }
    panic!("not served");
}

/// Several questions are under way: each answer is that of its own.
#[test]
fn questions_are_answered_in_their_order() {
    let path = socket("questions");
    let mut device = DeviceSide::listen(&path, spec()).unwrap();
    let begun = Connecting::begin(&path, "asks", LIMIT).unwrap();
    device.handle();
    let Connection::Up(mut driver) = begun.go_on().unwrap() else {
        panic!("no welcome");
    };
    let (reader, _writer) = std::io::pipe().unwrap();
    driver.ask_kept("a").unwrap();
    driver.ask_keep("b", reader.as_fd()).unwrap();
    driver.ask_kept("b").unwrap();
    assert_eq!(driver.answered().unwrap(), None);
    device.handle();
    let answers: Vec<_> = (0..3).map(|_| driver.answered().unwrap()).collect();
    assert_eq!(answers, [Some(false), Some(true), Some(true)]);
    assert!(matches!(driver.answered(), Err(CarrierError::Protocol(_))));
    // one that is refused is one that is answered
    for i in 1..KEPT_MAX {
        driver.ask_keep(&format!("c{i}"), reader.as_fd()).unwrap();
        device.handle();
        assert_eq!(driver.answered().unwrap(), Some(true));
    }
    driver.ask_keep("d", reader.as_fd()).unwrap();
    driver.ask_kept("b").unwrap();
    device.handle();
    assert!(matches!(driver.answered(), Err(CarrierError::Refused(_))));
    assert_eq!(driver.answered().unwrap(), Some(true));
}
