//! A VM's driver, played by a process that is a peer of the server as QEMU is, and a device.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tandem_abi::handshake::{self, Request};
use tandem_abi::{Command, DriverPair, Layout, LayoutSpec, Memory, Status, command, raw};
use tandem_carrier::ivshmem::{Peer, PeerEvent};
use tandem_carrier::{
    Bell, CarrierError, DeviceEvent, DeviceSide, DriverSide, EventFd, Holder, Region,
};
use tandem_ivshmem_server::{Server, ServerError};
use zerocopy::IntoBytes;

/// The end of a test that hangs, and no verdict on a machine that has other work.
const LIMIT: Duration = Duration::from_secs(60);
const SIZE: usize = 1 << 20;

struct Running {
    path: PathBuf,
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<Server>>,
}

impl Running {
    fn start(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("tandem-ivshmem-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join(name);
        let mut server = Server::new(&path, SIZE, 8).unwrap();
        let stop = Arc::new(EventFd::new().unwrap());
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            server.serve(&stopped).unwrap();
            server
        });
        Running {
            path,
            stop,
            thread: Some(thread),
        }
    }

    fn stop(&mut self) {
        self.stop.ring();
        drop(self.thread.take().unwrap().join().unwrap());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop();
        }
    }
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

/// A device that answers every command, sends every TX packet back and says LINK at each attach.
struct Device {
    stop: Arc<AtomicBool>,
    events: mpsc::Receiver<DeviceEvent>,
    thread: Option<JoinHandle<()>>,
}

impl Device {
    fn start(path: &Path) -> Result<Self, CarrierError> {
        let mut side = DeviceSide::join(path, spec(), LIMIT)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, events) = mpsc::channel();
        let told = stop.clone();
        let thread = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                for e in side.handle() {
                    if let DeviceEvent::Request(request) = &e {
                        side.acknowledge(Status::Ok);
                        if request.attaches() {
                            let link = raw::tnd_event {
                                kind: raw::TND_EV_LINK,
                                port: 1,
                                up: 1,
                                ..Default::default()
                            };
                            let rings = side.rings().unwrap();
                            rings.event.push(&[link.as_bytes()]).unwrap();
                        }
                    }
                    let _ = tell.send(e);
                }
                if let Err(e) = answer(&mut side) {
                    side.fail(raw::TND_FAIL_RING_INDEX, &e.to_string());
                    continue;
                }
                side.flush();
                if side.arm().unwrap() {
                    let limit = Timespec::try_from(Duration::from_millis(500)).unwrap();
                    let mut fds: Vec<PollFd> = side
                        .poll_fds()
                        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                        .collect();
                    poll(&mut fds, Some(&limit)).unwrap();
                    drop(fds);
                    side.disarm();
                }
            }
        });
        Ok(Device {
            stop,
            events,
            thread: Some(thread),
        })
    }

    fn event(&self) -> DeviceEvent {
        self.events.recv_timeout(LIMIT).unwrap()
    }

    fn gone(&self) -> (Holder, String) {
        loop {
            if let DeviceEvent::Gone { holder, reason } = self.event() {
                return (holder, reason);
            }
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(side: &mut DeviceSide) -> Result<(), tandem_abi::Corrupt> {
    let Some(rings) = side.rings() else {
        return Ok(());
    };
    let mut body = Vec::new();
    for pair in &mut rings.pairs {
        while let Some(cmd) = pair.cmd.pop_struct::<raw::tnd_cmd>()? {
            let cpl = command::completion(&cmd, raw::TND_ST_OK);
            pair.cpl.push(&[cpl.as_bytes()]).unwrap();
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
        rings.rx.push(&[rx.as_bytes(), &body]).unwrap();
    }
    Ok(())
}

fn ask(driver: &DriverSide, pair: &mut DriverPair<Region>, seq: u32, epoch: u32) {
    let vrf = raw::tnd_vrf {
        vrf: 9,
        ..Default::default()
    };
    let cmd = Command::create(&vrf).cookie(u64::from(seq) << 8);
    let bell = driver.from_device(pair.cpl.ring().doorbell).unwrap();
    pair.cmd
        .push(&[cmd.encode(seq, epoch, 0).as_bytes()])
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
}

/// Looks at each ring, as a driver does: one may be of what was before, as an answer is there before its ring.
fn rung_until(bell: &Bell, mut seen: impl FnMut() -> bool) -> bool {
    while bell.wait(LIMIT).unwrap() {
        bell.drain();
        if seen() {
            return true;
        }
    }
    false
}

fn until(what: &str, mut f: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !f() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn attach_commands_packets_events_detach() {
    let server = Running::start("attach");
    let device = Device::start(&server.path).unwrap();
    let mut driver = DriverSide::join(&server.path, "clsw", LIMIT).unwrap();
    assert_eq!(driver.device_name(), "testchip");
    assert_eq!(driver.platform(), vec![5; 100]);
    let mut rings = driver.attach(true).unwrap();
    let holder = Holder {
        name: "clsw (ivshmem peer 1)".into(),
        pid: 0,
    };
    assert_eq!(holder.to_string(), "clsw (ivshmem peer 1)");
    assert_eq!(device.event(), DeviceEvent::Connected(holder));
    assert_eq!(device.event(), DeviceEvent::Request(Request::AttachCold));
    assert_eq!(rings.epoch, 1);
    for seq in 0..300 {
        ask(&driver, &mut rings.pairs[1], seq, 1);
    }
    let bell = driver.from_device(rings.event.ring().doorbell).unwrap();
    if rings.event.arm().unwrap() {
        assert!(bell.wait(LIMIT).unwrap());
    }
    let e: raw::tnd_event = rings.event.pop_struct().unwrap().unwrap();
    assert_eq!((e.kind, e.port), (raw::TND_EV_LINK, 1));

    let frame: Vec<u8> = (0..1500).map(|n| n as u8).collect();
    let tx = raw::tnd_tx {
        len: 1500,
        port: 3,
        ..Default::default()
    };
    rings.tx.push(&[tx.as_bytes(), &frame]).unwrap();
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
        .pop_packet(&mut body, |r: &raw::tnd_rx| r.len as usize);
    assert_eq!((rx.unwrap().unwrap().port, &body), (3, &frame));

    assert_eq!(driver.attach(false).unwrap().epoch, 2);
    assert_eq!(device.event(), DeviceEvent::Request(Request::AttachWarm));
    driver.check().unwrap();
    driver.detach().unwrap();
    assert_eq!(device.gone().1, "detached");
    let (fd, _) = tandem_linux::fdpass::pair().unwrap();
    let e = driver.keep("tap/1", fd.as_fd()).unwrap_err();
    assert!(e.to_string().contains("beyond ivshmem"), "{e}");
    // a module that is loaded again, then a VM that is gone without a word
    assert_eq!(driver.reset().unwrap().epoch, 3);
    drop(driver);
    assert_eq!(device.gone().1, "the VM is gone");
    let mut driver = DriverSide::join(&server.path, "clsw", LIMIT).unwrap();
    assert_eq!(driver.attach(false).unwrap().epoch, 4);
}

#[test]
fn another_device_process_takes_the_region_over() {
    let server = Running::start("restart");
    let device = Device::start(&server.path).unwrap();
    let mut driver = DriverSide::join(&server.path, "clsw", LIMIT).unwrap();
    let rings = driver.attach(true).unwrap();
    let bell = driver.from_device(0).unwrap();
    drop((device, rings));
    assert!(
        rung_until(&bell, || matches!(driver.check(), Err(CarrierError::Gone))),
        "nobody rang when the device left"
    );
    assert_eq!(handshake::state(driver.region()).0, raw::TND_DEV_ABSENT);
    assert!(matches!(driver.attach(false), Err(CarrierError::Gone)));

    let device = Device::start(&server.path).unwrap();
    assert!(
        rung_until(&bell, || {
            handshake::last_request(driver.region()).1
                && handshake::state(driver.region()).0 == raw::TND_DEV_READY
        }),
        "nobody rang when it was back"
    );
    // the request that found nobody was answered by the next device, as made of another frame
    assert!(driver.check().is_err());
    let region = driver.region().clone();
    assert!(handshake::epoch(&region) > 1, "the epoch must grow");
    drop(driver);
    // doorbells are those of the new process: as QEMU, join again or follow the server's word
    let mut driver = DriverSide::join(&server.path, "clsw", LIMIT).unwrap();
    let mut rings = driver.attach(false).unwrap();
    assert!(rings.epoch > 2);
    ask(&driver, &mut rings.pairs[0], 0, rings.epoch);
    drop(device);
}

#[test]
fn a_device_that_was_killed_is_marked_by_the_server() {
    let server = Running::start("killed");
    let device = Peer::join(&server.path, LIMIT).unwrap();
    let region = device.region().clone();
    Layout::new(&spec()).unwrap().write(&region, &spec());
    handshake::set_device_peer(&region, device.id());
    let mut vm = Peer::join(&server.path, LIMIT).unwrap();
    vm.wait_until("vectors", LIMIT, |p| p.own().len() == 8)
        .unwrap();
    assert_eq!(handshake::state(&region).0, raw::TND_DEV_READY);
    drop(device);
    assert!(vm.own()[0].wait(LIMIT).unwrap());
    assert_eq!(handshake::state(&region).0, raw::TND_DEV_ABSENT);
    until("the word of its leaving", || {
        vm.handle() == [PeerEvent::Left(0)]
    });
    // a VM that leaves is no device that leaves
    let device = Peer::join(&server.path, LIMIT).unwrap();
    assert_eq!(
        device.id(),
        2,
        "QEMU doesn't survive an identity that comes back"
    );
    handshake::set_device_peer(&region, device.id());
    handshake::set_state(&region, raw::TND_DEV_READY, 0);
    drop(vm);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(handshake::state(&region).0, raw::TND_DEV_READY);
}

#[test]
fn a_corrupt_ring_ends_the_session_and_the_frame_is_whole_again() {
    let server = Running::start("corrupt");
    let device = Device::start(&server.path).unwrap();
    let mut driver = DriverSide::join(&server.path, "evil", LIMIT).unwrap();
    let rings = driver.attach(true).unwrap();
    let ring = *rings.pairs[0].cmd.ring();
    let before = Layout::read(driver.region()).unwrap();
    // the directory, then an impossible index
    driver.region().write(512, &[0xee; 256]);
    driver
        .region()
        .store_release(ring.prod, ring.entry_count + 1);
    driver.to_device(ring.doorbell).unwrap().ring();
    let (holder, reason) = device.gone();
    assert_eq!(holder.name, "evil (ivshmem peer 1)");
    assert!(reason.starts_with("corrupt ring index"), "{reason}");
    let e = driver.check().unwrap_err();
    assert!(matches!(e, CarrierError::Failed(raw::TND_FAIL_RING_INDEX)));
    assert_eq!(Layout::read(driver.region()).unwrap(), before);
    // on the same region, at once
    let mut rings = driver.attach(false).unwrap();
    assert_eq!(rings.epoch, 2);
    ask(&driver, &mut rings.pairs[0], 0, 2);
    driver.check().unwrap();
}

#[test]
fn a_frame_that_was_overwritten_is_mended_when_somebody_asks() {
    let server = Running::start("mend");
    let device = Device::start(&server.path).unwrap();
    let mut driver = DriverSide::join(&server.path, "clsw", LIMIT).unwrap();
    let mut rings = driver.attach(true).unwrap();
    let before = Layout::read(driver.region()).unwrap();
    for spoilt in [0..8, 16..24, 40..56, 64..72, 512..2048] {
        driver
            .region()
            .write(spoilt.start, &vec![0xee; spoilt.len()]);
        driver.to_device(0).unwrap().ring();
        until("a frame that stands", || {
            Layout::read(driver.region()).as_ref() == Ok(&before) && driver.check().is_ok()
        });
    }
    // the session has not noticed
    ask(&driver, &mut rings.pairs[0], 0, 1);
    drop(device);
}

#[test]
fn a_driver_that_lies_about_its_doorbells_is_refused() {
    let server = Running::start("liar");
    let device = Device::start(&server.path).unwrap();
    let mut vm = Peer::join(&server.path, LIMIT).unwrap();
    let region = vm.region().clone();
    vm.wait_until("a device", LIMIT, |p| {
        p.bells_of(0).is_some_and(|b| b.len() == 8)
    })
    .unwrap();
    let bell: Bell = vm.bells_of(0).unwrap()[0].clone();
    for peer in [None, Some(0), Some(7), Some(u16::MAX)] {
        match peer {
            Some(peer) => handshake::set_driver_peer(&region, peer),
            None => region.store_release(264, 0),
        }
        let seq = handshake::request(&region, Request::AttachCold);
        bell.ring();
        until("an answer", || {
            handshake::acknowledged(&region, seq).is_some()
        });
        let ack = handshake::acknowledged(&region, seq).unwrap();
        assert_eq!(ack.status, raw::TND_ST_INVALID, "{peer:?}");
    }
    assert!(device.events.try_recv().is_err(), "no driver was let in");
    handshake::set_driver_peer(&region, vm.id());
    let seq = handshake::request(&region, Request::AttachCold);
    bell.ring();
    until("an answer", || {
        handshake::acknowledged(&region, seq).is_some()
    });
    assert_eq!(
        handshake::acknowledged(&region, seq).unwrap().status,
        raw::TND_ST_OK
    );
}

#[test]
fn seats_sizes_and_speakers() {
    let mut server = Running::start("seats");
    let again = Server::new(&server.path, SIZE, 8).err().unwrap();
    assert!(matches!(again, ServerError::InUse(_)), "{again}");
    for bad in [0, 2048, 3 << 20, 2 << 30] {
        let e = Server::new(Path::new("/nowhere"), bad, 8).err().unwrap();
        assert!(matches!(e, ServerError::Size(n) if n == bad));
    }
    assert!(Server::new(Path::new("/nowhere"), SIZE, 65).is_err());

    let device = Device::start(&server.path).unwrap();
    let e = Device::start(&server.path).err().unwrap().to_string();
    assert!(
        e.contains("peer 0 is the device of this memory already"),
        "{e}"
    );
    // the refused one's place must be free again before the next takes it
    until("a free seat", || Peer::join(&server.path, LIMIT).is_ok());
    let large = LayoutSpec { rx: 4096, ..spec() };
    let e = DeviceSide::join(&server.path, large, LIMIT).err().unwrap();
    assert!(
        e.to_string()
            .starts_with("ivshmem memory too small (needs "),
        "{e}"
    );
    until("a free seat", || {
        DriverSide::join(&server.path, "clsw", LIMIT).is_ok()
    });
    let speaker = tandem_linux::fdpass::connect_stream(&server.path).unwrap();
    until("a seat, and words", || {
        tandem_linux::fdpass::send(&speaker, b"hello", &[]).is_err()
    });
    let vm = Peer::join(&server.path, LIMIT).unwrap();
    let e = Peer::join(&server.path, LIMIT).unwrap_err().to_string();
    assert!(e.contains("takes no further peer"), "{e}");
    drop(vm);

    // without the server the device and its driver go on
    let mut driver = None;
    until("a seat", || {
        driver = DriverSide::join(&server.path, "clsw", LIMIT).ok();
        driver.is_some()
    });
    let mut driver = driver.unwrap();
    let mut rings = driver.attach(true).unwrap();
    server.stop();
    for seq in 0..20 {
        ask(&driver, &mut rings.pairs[0], seq, rings.epoch);
    }
    drop(device);
    let e = Peer::join(&server.path, LIMIT).unwrap_err().to_string();
    assert!(e.starts_with("no ivshmem server listens on"), "{e}");
}
