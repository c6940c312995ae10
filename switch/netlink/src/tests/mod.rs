//! The source against the real kernel, in network namespaces of its own.
//!
//! ```text
//!   namespace:  v1 ══ p1   v2 ══ p2   v3 ══ p3      ip, by random commands (fixed seeds)
//!                 └── NetlinkSource ──► Mirror (a store as simple as can be)
//!                                          ==? `ip -j route`, and a fresh snapshot
//! ```

mod aliases;
mod buckets;
mod cases;
mod churn;
mod hidden;
mod messages;
mod mirror;
mod missing;
mod order6;
mod overtaken;
mod settings;
mod silent;
mod told;
mod turns;
mod vlans;

use std::io::Write as _;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tandem_core::source::{Source, Status};

use super::{Config, NetlinkSource};
use mirror::Mirror;

/// How long what is to come is waited for: the end of a test that hangs or fails, and no verdict on a machine that has other work.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A namespace with its source and mirror.
pub(super) struct Lab {
    name: String,
    pub source: NetlinkSource,
    pub mirror: Mirror,
    token: u64,
}

impl Lab {
    /// With commands run before the source starts. `None`: no right to make namespaces.
    pub fn with(what: &str, setup: &str, config: Config) -> Option<Self> {
        Self::made(what, setup, || NetlinkSource::start(config).unwrap())
    }

    /// The same, with a source of one's own making.
    pub fn made(
        what: &str,
        setup: &str,
        start: impl FnOnce() -> NetlinkSource + Send,
    ) -> Option<Self> {
        let name = format!("nl-{what}-{}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).status();
        if !made.as_ref().is_ok_and(|s| s.success()) {
            // root has the right: where it doesn't come to that, something else is wrong
            assert!(
                !rustix::process::geteuid().is_root(),
                "ip netns add {name}: {made:?}"
            );
            eprintln!("skipped: no right to make network namespaces");
            return None;
        }
        let guard = Cleanup(name.clone());
        batch(&name, "link set lo up");
        batch(&name, setup);
        let ns = tandem_linux::netns::open(&name).unwrap();
        let source = tandem_linux::netns::run_in(ns.as_fd(), || Ok(start())).unwrap();
        std::mem::forget(guard);
        Some(Self {
            name,
            source,
            mirror: Mirror::default(),
            token: 0,
        })
    }

    /// Runs `ip` commands, one a line; which fail does not matter.
    pub fn ip(&self, commands: &str) {
        batch(&self.name, commands);
    }

    /// Runs any command in the namespace.
    pub fn exec(&self, command: &[&str]) -> bool {
        Command::new("ip")
            .args(["netns", "exec", &self.name])
            .args(command)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    }

    /// Runs `ip` outside.
    pub fn host_ip(&self, args: &[&str]) -> bool {
        Command::new("ip").args(args).status().unwrap().success()
    }

    pub fn json(&self, args: &str) -> serde_json::Value {
        let out = Command::new("ip")
            .args(["-n", &self.name, "-j", "-d"])
            .args(args.split(' '))
            .output()
            .unwrap();
        serde_json::from_slice(&out.stdout).unwrap_or_default()
    }

    /// Everything that happened up to now is in the mirror.
    pub fn sync(&mut self) {
        use tandem_core::source::Message;
        self.token += 1;
        self.source.barrier(self.token);
        loop {
            let message = self.source.messages().recv_timeout(2 * PATIENCE);
            match message.expect("the source answers a barrier") {
                Message::Events(events) => events.into_iter().for_each(|e| self.mirror.apply(e)),
                Message::Barrier(t) if t == self.token => break,
                other => eprintln!("{other:?}"),
            }
        }
    }

    /// What the source has counted, all that it said up to now included. Its counts may come a moment after its answer: they are
    /// there when it answers the next one.
    pub fn counts(&mut self) -> Status {
        self.sync();
        self.sync();
        self.source.status()
    }

    pub fn in_ns<T: Send>(&self, f: impl FnOnce() -> T + Send) -> T {
        let ns = tandem_linux::netns::open(&self.name).unwrap();
        tandem_linux::netns::run_in(ns.as_fd(), || Ok(f())).unwrap()
    }

    /// Asks until `look` finds nothing wrong. The kernel does things by itself, late (carrier, DAD), and they may lie between two
    /// looks: a difference must last to count.
    pub fn lasts(&mut self, context: &str, mut look: impl FnMut(&mut Self) -> Result<(), String>) {
        let until = Instant::now() + PATIENCE;
        let mut pause = Duration::ZERO;
        loop {
            std::thread::sleep(pause);
            self.sync();
            match look(self) {
                Ok(()) => return,
                Err(why) if Instant::now() > until => {
                    panic!("{context}\n{why}\n{:?}", self.source.status())
                }
                Err(_) => pause = (pause + Duration::from_millis(50)).min(PATIENCE / 20),
            }
        }
    }

    /// The mirror's routes are the kernel's.
    pub fn check_routes(&mut self, context: &str) {
        self.lasts(context, |lab| {
            let mut truth = mirror::routes_of_ip(&lab.json("-4 route show table all"), false);
            truth.extend(mirror::routes_of_ip(
                &lab.json("-6 route show table all"),
                true,
            ));
            let names = mirror::names(&lab.json("link show"));
            let ours = lab.mirror.routes(&names);
            truth.sort();
            if ours == truth {
                return Ok(());
            }
            let only = |a: &[String], b: &[String]| -> Vec<String> {
                a.iter().filter(|x| !b.contains(x)).cloned().collect()
            };
            Err(format!(
                "only in the view: {:#?}\nonly in the kernel: {:#?}",
                only(&ours, &truth),
                only(&truth, &ours)
            ))
        });
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(Cleanup(self.name.clone()));
    }
}

struct Cleanup(String);

impl Drop for Cleanup {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

fn batch(ns: &str, commands: &str) {
    let mut child = Command::new("ip")
        .args(["-n", ns, "-force", "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(commands.as_bytes())
        .unwrap();
    child.wait().unwrap();
}
