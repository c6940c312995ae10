//! Open vSwitch's userspace datapath as a peer, in a namespace of its own with a database that dies with it.

use crate::ofswitch::{Calls, Target};
use crate::rig::{Rig, sh};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// Is it installed?
pub fn is_there() -> bool {
    Path::new(SCHEMA).exists() && Path::new("/usr/sbin/ovs-vswitchd").exists()
}

/// An error where it is not.
pub fn required() -> Result<()> {
    ensure!(
        is_there(),
        "the peer is missing: apt-get install openvswitch-switch"
    );
    Ok(())
}

/// A running switch; gone when dropped.
pub struct Ovs {
    dir: PathBuf,
    /// ovsdb-server, then ovs-vswitchd.
    daemons: Vec<Child>,
}

impl Ovs {
    /// One bridge over interfaces of the rig's `sw`; each port with options as `ovs-vsctl add-port` has them (`tag=10`).
    pub fn new(rig: &Rig, ports: &[(&str, &[&str])]) -> Result<Ovs> {
        let dir = std::env::temp_dir().join(format!("tandem-ovs-{}", std::process::id()));
        std::fs::create_dir_all(&dir)?;
        let mut ovs = Ovs {
            daemons: Vec::new(),
            dir,
        };
        let db = ovs.path("conf.db");
        let _ = std::fs::remove_file(&db);
        sh(&["ovsdb-tool", "create", &db, SCHEMA])?;
        let remote = format!("--remote=punix:{}", ovs.path("db.sock"));
        ovs.start(rig, "ovsdb-server", &[&db, &remote])?;
        ovs.wait_for("db.sock")?;
        ovs.vsctl(&["--no-wait", "init"])?;
        let socket = format!("unix:{}", ovs.path("db.sock"));
        ovs.start(rig, "ovs-vswitchd", &[&socket])?;
        ovs.wait_for("ovs-vswitchd.ctl")?;
        let netdev = ["set", "bridge", "br0", "datapath_type=netdev"];
        let bridge = [&["add-br", "br0", "--"], &netdev[..]].concat();
        ovs.vsctl(&bridge)?;
        for (port, options) in ports {
            ovs.vsctl(&[&["add-port", "br0", *port], *options].concat())?;
        }
        Ok(ovs)
    }

    /// Process id of the datapath.
    pub fn pid(&self) -> Option<u32> {
        self.daemons.get(1).map(Child::id)
    }

    /// It becomes an OpenFlow 1.3 switch.
    pub fn controllers(&self, calls: Calls) -> Result<()> {
        let mut words: Vec<String> = ["set", "bridge", "br0", "protocols=OpenFlow13"]
            .map(String::from)
            .to_vec();
        words.push("fail-mode=secure".into());
        for (n, target) in calls.targets().iter().enumerate() {
            let target = match target {
                Target::Waits(port) => format!("ptcp\\:{port}\\:127.0.0.1"),
                Target::Calls(port) => format!("tcp\\:127.0.0.1\\:{port}"),
            };
            let one = format!("--id=@c{n} create controller target={target}");
            words.push("--".into());
            words.extend(one.split(' ').map(String::from));
            // in band, it would install rules of its own
            words.extend(["connection-mode=out-of-band", "max_backoff=1000"].map(String::from));
            words.extend(["--", "add", "bridge", "br0", "controller"].map(String::from));
            words.push(format!("@c{n}"));
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.vsctl(&words)
    }

    /// A static address behind a port.
    pub fn learn(&self, port: &str, vlan: u16, mac: &str) -> Result<()> {
        let target = self.path("ovs-vswitchd.ctl");
        let vlan = vlan.to_string();
        let args = ["fdb/add", "br0", port, &vlan, mac];
        sh(&[&["ovs-appctl", "-t", &target], &args[..]].concat()).map(|_| ())
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    fn vsctl(&self, args: &[&str]) -> Result<()> {
        let db = format!("--db=unix:{}", self.path("db.sock"));
        sh(&[&["ovs-vsctl", "--timeout=20", &db], args].concat()).map(|_| ())
    }

    fn start(&mut self, rig: &Rig, program: &str, args: &[&str]) -> Result<()> {
        let control = format!("--unixctl={}", self.path(&format!("{program}.ctl")));
        let child = Command::new("ip")
            .args(["netns", "exec", &rig.ns("sw"), program, "--no-chdir"])
            .arg(control)
            .args(args)
            .env("OVS_RUNDIR", &self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.daemons
            .push(child.with_context(|| format!("cannot start {program}"))?);
        Ok(())
    }

    fn wait_for(&mut self, name: &str) -> Result<()> {
        let begin = Instant::now();
        while !self.dir.join(name).exists() {
            for d in &mut self.daemons {
                ensure!(d.try_wait()?.is_none(), "a daemon of OVS stopped by itself");
            }
            ensure!(
                begin.elapsed() < Duration::from_secs(20),
                "OVS made no {name} in 20 s"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Ovs {
    fn drop(&mut self) {
        for d in self.daemons.iter_mut().rev() {
            let _ = d.kill();
            let _ = d.wait();
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
