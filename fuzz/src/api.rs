//! The management API: any bytes on its socket, through the daemons' own routers and the server that carries them.

use std::cell::RefCell;
use std::sync::Arc;

use crossbeam_channel::{Receiver, bounded};
use serde_json::Value;
use tandem_abi::LayoutSpec;
use tandem_asicd::asic::Asic;
use tandem_asicd::daemon as asicd_daemon;
use tandem_asicd::poller::Poller;
use tandem_carrier::{DeviceSide, EventFd};
use tandem_firmware::Profile;
use tandem_mgmt::server::serve_bytes;

/// Turns of the server's thread in which a client waits for its answers.
const ROUNDS: usize = 24;
/// Requests that may wait.
const JOBS: usize = 64;

/// A chip without ports and driver, in this process. Made once: its tables are emptied for every input.
struct Bench {
    asic: Asic,
    bell: Arc<EventFd>,
    jobs: Receiver<asicd_daemon::Job>,
    handle: asicd_daemon::Jobs,
}

impl Bench {
    fn new() -> Bench {
        let profile = Profile::builtin("tiny").expect("a profile");
        let path = std::env::temp_dir().join(format!("tandem-fuzz-{}.sock", std::process::id()));
        let side = DeviceSide::listen(&path, LayoutSpec::default()).expect("a carrier");
        // nobody is to come by it
        let _ = std::fs::remove_file(&path);
        let bell = Arc::new(EventFd::new().expect("an eventfd"));
        let poller = Poller::new(bell.as_ref()).expect("a poller");
        let asic = Asic::new(profile, false, side, poller, 0).expect("a chip");
        let (to, jobs) = bounded(JOBS);
        let handle = asicd_daemon::Jobs::new(to, Arc::clone(&bell));
        Bench {
            asic,
            bell,
            jobs,
            handle,
        }
    }

    fn reset(&mut self) {
        self.asic.fw.cold_reset();
        self.asic.fw.faults.clear();
        self.asic.out.cpu.set_stray_tag(None);
        self.asic.out.captures.sweep();
        self.bell.drain();
    }
}

/// asicd with a chip behind it: requests are answered from its tables, and change it.
pub(crate) fn asicd(data: &[u8]) {
    thread_local! {
        static BENCH: RefCell<Option<Bench>> = const { RefCell::new(None) };
    }
    BENCH.with_borrow_mut(|bench| {
        let bench = bench.get_or_insert_with(Bench::new);
        bench.reset();
        let router = tandem_asicd::api::router(bench.handle.clone(), "fuzz".into());
        let (asic, jobs) = (&mut bench.asic, &bench.jobs);
        let answer = runtime().block_on(serve_bytes(router, data, ROUNDS, || {
            for job in jobs.try_iter() {
                job(asic);
            }
        }));
        check(&answer);
        // requests whose client is gone
        for job in bench.jobs.try_iter() {
            job(&mut bench.asic);
        }
        assert_eq!(bench.asic.fw.check_accounting(), Ok(()));
    });
}

/// switchd whose core is gone: paths, queries and bodies are taken or refused, and whoever gets to the core is told.
pub(crate) fn switchd(data: &[u8]) {
    let bell = Arc::new(EventFd::new().expect("an eventfd"));
    let (to, jobs) = bounded(JOBS);
    let router = tandem_core::api::router(tandem_core::Jobs::new(to, bell), "fuzz".into());
    let answer = runtime().block_on(serve_bytes(router, data, ROUNDS, || {
        for job in jobs.try_iter() {
            drop(job);
        }
    }));
    check(&answer);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

/// Whole answers, one behind the other: no error of the daemon's own, and each refusal is one line.
fn check(mut answer: &[u8]) {
    while let Some(end) = answer.windows(4).position(|w| w == b"\r\n\r\n") {
        let (head, rest) = answer.split_at(end + 4);
        let head = std::str::from_utf8(head).expect("a head of text");
        let mut lines = head.split("\r\n");
        let status: u16 = lines
            .next()
            .and_then(|l| l.split(' ').nth(1))
            .and_then(|s| s.parse().ok())
            .expect("a status");
        assert!(status != 500, "{head}");
        let header = |name: &str| {
            let mut all = head.split("\r\n").filter_map(|l| l.split_once(':'));
            all.find(|(n, _)| n.eq_ignore_ascii_case(name))
                .map(|(_, v)| v.trim())
        };
        // a stream has no length: what follows is it
        let Some(length) = header("content-length").and_then(|v| v.parse::<usize>().ok()) else {
            return;
        };
        // the answer to HEAD has a length and no body; one that is cut off is the last
        let Some(body) = rest.get(..length) else {
            return;
        };
        if body.starts_with(b"HTTP/1.") {
            answer = rest;
            continue;
        }
        if status >= 400 && length > 0 {
            let value: Value = serde_json::from_slice(body).expect("JSON");
            let error = value.get("error").and_then(Value::as_str);
            let error = error.expect("what is wrong");
            assert!(!error.is_empty() && !error.contains('\n'), "{error:?}");
        } else if header("content-type") == Some("application/json") {
            let _: Value = serde_json::from_slice(body).expect("JSON");
        }
        answer = rest.get(length..).unwrap_or_default();
    }
}
