//! An instance's name follows the network namespace.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::Path;
use std::process::Command;

use tandem_mgmt::instance::{base_dir, current_name};

/// Runs in a process of its own, started by the test below.
#[test]
fn helper_says_its_name() {
    println!("NAME {}", current_name());
}

/// Runs in a process of its own, started by the test below.
#[test]
fn helper_says_its_base() {
    println!("BASE {}", base_dir().display());
}

#[test]
fn the_base_is_absolute() {
    let base_of = |run: &str| {
        let out = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "helper_says_its_base", "--nocapture"])
            .env("TANDEM_RUN", run)
            .current_dir("/tmp")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let (_, base) = text.split_once("BASE ").unwrap();
        base.lines().next().unwrap().to_owned()
    };
    assert_eq!(base_of("relative"), "/tmp/relative");
    assert_eq!(base_of("./a/b"), "/tmp/a/b");
    assert_eq!(base_of("/x"), "/x");
    assert_eq!(base_of(""), "/run/tandem");
}

/// What the helper says when it is started by `wrapper`.
fn name_under(wrapper: &[&str]) -> Option<String> {
    name_by(&std::env::current_exe().unwrap(), wrapper)
}

fn name_by(program: &Path, wrapper: &[&str]) -> Option<String> {
    let this = program;
    let (program, args) = wrapper.split_first()?;
    let out = Command::new(program)
        .args(args)
        .arg(this)
        .args(["--exact", "helper_says_its_name", "--nocapture"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let (_, name) = text.split_once("NAME ")?;
    Some(name.lines().next()?.trim().to_owned())
}

/// The same where ordinary users may not read this program: from a copy that they may.
fn name_as_nobody(wrapper: &[&str]) -> Option<String> {
    let copy = std::env::temp_dir().join(format!("tandem-name-{}", std::process::id()));
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let name = name_by(&copy, wrapper);
    std::fs::remove_file(copy).unwrap();
    name
}

/// A named network namespace, removed at the end.
struct Netns(String);

impl Netns {
    fn new(name: String) -> Option<Self> {
        let done = Command::new("ip").args(["netns", "add", &name]).output();
        done.ok()?.status.success().then_some(Netns(name))
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        let _ = Command::new("ip")
            .args(["netns", "delete", &self.0])
            .output();
    }
}

#[test]
fn initial_named_and_nameless_namespaces() {
    let own = std::fs::read_link("/proc/self/ns/net").unwrap();
    if std::fs::read_link("/proc/1/ns/net").is_ok_and(|init| init == own) {
        assert_eq!(current_name(), "default");
    }
    let Some(netns) = Netns::new(format!("tndabi{}", std::process::id())) else {
        eprintln!("skipped: needs root and `ip netns add`");
        return;
    };
    let named = name_under(&["ip", "netns", "exec", &netns.0]);
    assert_eq!(named, Some(netns.0.clone()));
    let nameless = name_under(&["unshare", "--net"]).unwrap();
    // an ordinary user may not look at process 1's namespace, and is in none of its own for that
    let user = [
        "setpriv",
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
    ];
    let in_netns = [&["ip", "netns", "exec", netns.0.as_str()], &user[..]].concat();
    assert_eq!(name_as_nobody(&in_netns), Some(netns.0.clone()));
    assert_eq!(name_as_nobody(&user), Some(current_name()));
    let inode = nameless.strip_prefix("ns-").expect(&nameless);
    assert!(inode.parse::<u64>().is_ok(), "{nameless}");
}
