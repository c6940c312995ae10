//! asicd comes back and answers nothing, or not enough: switchd goes on, says how far it is, and tries again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Daemon, Ns, asicd, get, switchd, sync, wait_for};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use tandem_abi::{LayoutSpec, Status};
use tandem_carrier::{DeviceEvent, DeviceSide, DriverSide};
use tandem_linux::fdpass;

const LIMIT: Duration = common::PATIENCE;

/// How far the one that stands where asicd stood goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goes {
    /// Nobody takes connections.
    Nowhere,
    /// Nor is there room for one more to wait.
    Full,
    /// It says who it is, keeps what it is given, and makes no attach.
    Welcomes,
    /// It says that it makes none.
    Refuses,
    /// It makes it, and answers no command.
    Attaches,
}

struct Mute {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Mute {
    fn start(socket: &Path, platform: &[u8], goes: Goes) -> Mute {
        let spec = LayoutSpec {
            platform: platform.to_vec(),
            ..LayoutSpec::default()
        };
        let mut side = DeviceSide::listen(socket, spec).unwrap();
        while goes == Goes::Full && fdpass::connect(socket).is_ok() {}
        let stop = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !ends.load(SeqCst) {
                let events = match goes {
                    Goes::Nowhere | Goes::Full => Vec::new(),
                    _ => side.handle(),
                };
                let requests = events
                    .iter()
                    .filter(|e| matches!(e, DeviceEvent::Request(_)));
                for _ in requests {
                    match goes {
                        Goes::Attaches => side.acknowledge(Status::Ok),
                        Goes::Refuses => side.acknowledge(Status::Fault),
                        _ => 0,
                    };
                }
                side.flush();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Mute {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Mute {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// `status`, while it says that an attach is under way, and where.
fn attaching(run: &Path, at: &str) -> bool {
    get(run, "/v1/status").is_some_and(|s: Value| {
        let line = format!("asicd is being attached: {at}");
        s["device"] == "attaching" && s["warnings"].to_string().contains(&line)
    })
}

fn knows_route(run: &Path, prefix: &str) -> bool {
    get(run, "/v1/routes?family=ipv4&limit=1000").is_some_and(|list| {
        let rows = list["items"].as_array().unwrap();
        rows.iter().any(|r| r["prefix"] == prefix)
    })
}

#[test]
fn an_asicd_that_answers_nothing_keeps_nobody_waiting() {
    let Some(asicd) = asicd() else { return };
    let Some(ns) = Ns::new("mute") else { return };
    let run = std::env::temp_dir().join(format!("swd-mute-{}", std::process::id()));
    let socket = run.join("t/driver.sock");
    let args = ["--profile", "tiny"];
    let device = Daemon::start(&asicd, &ns, &run, &args);
    let mut board = Vec::new();
    assert!(wait_for(LIMIT, || {
        let driver = DriverSide::connect(&socket, "test", LIMIT);
        board = driver.map(|d| d.platform()).unwrap_or_default();
        !board.is_empty()
    }));
    let _switchd = Daemon::start(&switchd(), &ns, &run, &[]);
    sync(&run);
    ns.run("sysctl -qw net.ipv4.ip_forward=1");
    ns.run("ip link set swp1 up");
    ns.run("ip addr add 10.1.0.254/24 dev swp1");
    ns.run("ip neigh replace 10.1.0.2 lladdr 02:aa:00:00:00:02 dev swp1 nud permanent");
    sync(&run);
    device.kill();
    let steps = [
        (Goes::Nowhere, "connecting to it"),
        (Goes::Full, "connecting to it"),
        (Goes::Welcomes, "it makes its rings"),
        (Goes::Attaches, "reading its pools"),
    ];
    for (n, (goes, at)) in steps.into_iter().enumerate() {
        let mute = Mute::start(&socket, &board, goes);
        assert!(wait_for(LIMIT, || attaching(&run, at)), "{goes:?}");
        // what the kernel says is taken meanwhile
        let prefix = format!("30.{n}.0.0/16");
        ns.run(&format!("ip route add {prefix} via 10.1.0.2"));
        assert!(wait_for(LIMIT, || knows_route(&run, &prefix)), "{goes:?}");
        // a person is told, and it is tried again
        let line = format!("no ASIC: attaching it got no answer in 5 s: {at}");
        assert!(wait_for(LIMIT, || {
            let status = get(&run, "/v1/status");
            status.is_some_and(|s| s["warnings"].to_string().contains(&line))
        }));
        assert!(wait_for(LIMIT, || attaching(&run, at)), "{goes:?}, again");
        drop(mute);
    }
    let mute = Mute::start(&socket, &board, Goes::Refuses);
    let why = format!("the ASIC refused attach: {}", Status::Fault);
    assert!(wait_for(LIMIT, || {
        get(&run, "/v1/status").is_some_and(|s| {
            let none = format!("no ASIC is attached: nothing is in hardware ({why})");
            let warnings = s["warnings"].as_array().unwrap();
            let said = |text: String| warnings.contains(&json!(text));
            s["device"] == "failed" && said(none) && said(format!("no ASIC: {why}"))
        })
    }));
    drop(mute);
    let _device = Daemon::start(&asicd, &ns, &run, &args);
    assert!(wait_for(LIMIT, || {
        get(&run, "/v1/status").is_some_and(|s| s["device"] == "attached")
    }));
    sync(&run);
    let client = tandem_mgmt::Client::new(run.join("t/switchd.sock"));
    let audit: Value = client.post("/v1/audit", &json!({"wait_s": 5})).unwrap();
    assert_eq!(audit["items"], json!([]), "{audit}");
    let routes = get(&run, "/v1/routes?family=ipv4&limit=1000").unwrap();
    for row in routes["items"].as_array().unwrap() {
        if row["prefix"].as_str().unwrap().starts_with("30.") {
            assert_eq!(row["state"], "offloaded", "{row}");
        }
    }
    assert!(knows_route(&run, "30.2.0.0/16"));
    let status = get(&run, "/v1/status").unwrap();
    assert!(
        !status["warnings"].to_string().contains("no ASIC"),
        "{status}"
    );
    let _ = std::fs::remove_dir_all(run);
}
