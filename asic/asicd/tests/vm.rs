//! asicd as the PCI device of a VM: a driver over ivshmem, and asicd replaced under it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;
use std::time::Duration;

use common::{Driver, eventually};
use tandem_abi::{Command, Layout, Status, handshake, raw};
use tandem_carrier::{DriverSide, EventFd};
use tandem_ivshmem_server::Server;
use tandem_mgmt::Client;

const LIMIT: Duration = common::PATIENCE;

struct Lab {
    dir: PathBuf,
    stop: Arc<EventFd>,
    server: Option<std::thread::JoinHandle<()>>,
    asicd: Option<Child>,
}

impl Lab {
    fn new(name: &str) -> Lab {
        let dir = std::env::temp_dir().join(format!("tandem-vm-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut server = Server::new(&dir.join("ivshmem"), 32 << 20, 8).unwrap();
        let stop = Arc::new(EventFd::new().unwrap());
        let stopped = stop.clone();
        let server = std::thread::spawn(move || server.serve(&stopped).unwrap());
        Lab {
            dir,
            stop,
            server: Some(server),
            asicd: None,
        }
    }

    fn socket(&self) -> PathBuf {
        self.dir.join("ivshmem")
    }

    fn asicd(&mut self, profile: &str) {
        let child = Process::new(env!("CARGO_BIN_EXE_asicd"))
            .env("TANDEM_RUN", &self.dir)
            .args(["--name", "t", "--profile", profile])
            .arg(format!("--carrier=ivshmem:{}", self.socket().display()))
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        self.asicd = Some(child);
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.asicd.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    fn driver(&self) -> DriverSide {
        DriverSide::join(&self.socket(), "clsw", LIMIT).unwrap()
    }

    fn status(&self) -> serde_json::Value {
        let api = Client::new(self.dir.join("t/asicd.sock"));
        api.get("/v1/status").unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.kill();
        self.stop.ring();
        let _ = self.server.take().map(std::thread::JoinHandle::join);
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn vrf(n: u16) -> Command {
    Command::create(&raw::tnd_vrf {
        vrf: n,
        ..Default::default()
    })
}

#[test]
fn a_vm_drives_the_chip_and_asicd_is_replaced_under_it() {
    let mut lab = Lab::new("drive");
    lab.asicd("tiny");
    let mut driver = Driver::on(lab.driver(), true);
    assert_eq!(driver.side.device_name(), "tiny");
    assert_eq!(driver.rings.epoch, 1);
    let status = lab.status();
    let name = status["driver"]["name"].as_str().unwrap();
    assert!(name.starts_with("clsw (ivshmem peer "), "{status}");
    driver.ok(&vrf(1));
    driver.vlan(7);
    driver.port_up(1, 0);
    driver.member_any(1, 7);
    // the link state of every port comes first, by event
    let links = std::iter::from_fn(|| driver.event())
        .filter(|e| e.kind == raw::TND_EV_LINK)
        .count();
    assert!(links > 0);
    // 2000 commands, the round trip by polling
    let start = std::time::Instant::now();
    for _ in 0..2000 {
        driver.ok(&vrf(1));
    }
    eprintln!("command round trip {:?}", start.elapsed() / 2000);

    lab.kill();
    let bell = driver.side.from_device(0).unwrap();
    // the attach may have rung after its answer was seen: each ring is a reason to look, no more
    let mut told = false;
    while !told && bell.wait(LIMIT).unwrap() {
        bell.drain();
        told = driver.side.check().is_err();
    }
    assert!(told, "the server tells that asicd is gone");
    assert_eq!(
        handshake::state(driver.side.region()).0,
        raw::TND_DEV_ABSENT
    );
    // another chip takes its place: other layout of the platform, same memory
    lab.asicd("spectrum-sn2700");
    let region = driver.side.region().clone();
    eventually("asicd is back", || {
        handshake::state(&region).0 == raw::TND_DEV_READY
    });
    assert_ne!(Layout::read(&region).unwrap(), *driver.side.layout());
    drop(driver);
    let mut driver = Driver::on(lab.driver(), false);
    assert!(driver.rings.epoch > 2, "epoch {}", driver.rings.epoch);
    assert_eq!(driver.side.device_name(), "spectrum-sn2700");
    let gone = driver.run(&Command::delete(&raw::tnd_vrf {
        vrf: 1,
        ..Default::default()
    }));
    assert_eq!(
        Status::from_raw(gone.status),
        Status::NoEnt,
        "tables go with the process"
    );
    driver.ok(&vrf(1));
    driver.side.detach().unwrap();
    eventually("no driver", || lab.status()["driver"].is_null());
}

#[test]
fn without_a_server_there_is_one_line() {
    let dir = std::env::temp_dir().join(format!("tandem-vm-none-{}", std::process::id()));
    let out = Process::new(env!("CARGO_BIN_EXE_asicd"))
        .env("TANDEM_RUN", &dir)
        .args(["--name", "t", "--carrier", "ivshmem:/nowhere"])
        .output()
        .unwrap();
    let _ = std::fs::remove_dir_all(Path::new(&dir));
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success());
    assert_eq!(
        said.trim_end(),
        "asicd: no ivshmem server listens on /nowhere: start tandem-ivshmem-server"
    );
}
