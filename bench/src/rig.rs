//! Namespaces and a switch to measure in; all gone when dropped.

use anyhow::{Context, Result, bail, ensure};
use std::path::PathBuf;
use std::process::{Command, Output};

/// Runs a command to its end; its standard output, or its standard error as the error.
pub fn sh(words: &[&str]) -> Result<String> {
    let (program, args) = words.split_first().context("empty command")?;
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(program)
        .args(args)
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    if !status.success() {
        bail!(
            "{}: {}",
            words.join(" "),
            String::from_utf8_lossy(&stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// The binary `name` beside this one.
pub fn sibling(name: &str) -> Result<PathBuf> {
    let me = std::env::current_exe()?;
    let path = me.with_file_name(name);
    ensure!(
        path.exists(),
        "no {} beside this program: build the workspace first",
        path.display()
    );
    Ok(path)
}

/// Some namespaces and perhaps a switch in the first of them.
pub struct Rig {
    prefix: String,
    names: Vec<String>,
    switch_up: bool,
}

impl Rig {
    /// Makes one namespace per word, with loopback up and IPv6 autoconfiguration's chatter off.
    pub fn new(words: &[&str]) -> Result<Rig> {
        ensure!(
            is_root(),
            "this benchmark makes network namespaces and needs root"
        );
        let prefix = format!("tnb{}", std::process::id());
        let mut rig = Rig {
            prefix,
            names: Vec::new(),
            switch_up: false,
        };
        for w in words {
            let ns = rig.ns(w);
            sh(&["ip", "netns", "add", &ns])?;
            rig.names.push(ns.clone());
            sh(&["ip", "-n", &ns, "link", "set", "lo", "up"])?;
            rig.sysctl(w, "net/ipv6/conf/default/disable_ipv6", "1")?;
        }
        Ok(rig)
    }

    /// Full name of a namespace.
    pub fn ns(&self, word: &str) -> String {
        format!("{}-{word}", self.prefix)
    }

    /// Writes a sysctl inside a namespace.
    pub fn sysctl(&self, word: &str, path: &str, value: &str) -> Result<()> {
        let script = format!("echo {value} > /proc/sys/{path}");
        sh(&["ip", "netns", "exec", &self.ns(word), "sh", "-c", &script]).map(|_| ())
    }

    /// `ip -n NS …`
    pub fn ip(&self, word: &str, args: &[&str]) -> Result<()> {
        let ns = self.ns(word);
        let mut all = vec!["ip", "-n", &ns];
        all.extend_from_slice(args);
        sh(&all).map(|_| ())
    }

    /// A veth pair between two namespaces, both ends up.
    pub fn veth(&self, a: (&str, &str), b: (&str, &str)) -> Result<()> {
        let (na, nb) = (self.ns(a.0), self.ns(b.0));
        sh(&[
            "ip", "-n", &na, "link", "add", a.1, "type", "veth", "peer", "name", b.1, "netns", &nb,
        ])?;
        self.ip(a.0, &["link", "set", a.1, "up"])?;
        self.ip(b.0, &["link", "set", b.1, "up"])
    }

    /// Runs `tandem` for this rig's switch, in the namespace `sw`.
    pub fn tandem(&self, args: &[&str]) -> Result<String> {
        let exe = sibling("tandem")?.display().to_string();
        let ns = self.ns("sw");
        let mut all = vec!["ip", "netns", "exec", &ns, &exe, "--name", &self.prefix];
        all.extend_from_slice(args);
        sh(&all)
    }

    /// Starts the switch.
    pub fn up(&mut self, profile: &str, ports: &[&str]) -> Result<()> {
        let mut args = vec!["up", "--profile", profile];
        for p in ports {
            args.extend_from_slice(&["--port", p]);
        }
        self.switch_up = true;
        self.tandem(&args).map(|_| ())
    }

    /// Stops the switch.
    pub fn down(&mut self) -> Result<()> {
        if std::mem::take(&mut self.switch_up) {
            self.tandem(&["down"])?;
        }
        Ok(())
    }

    /// Instance of the switch.
    pub fn instance(&self) -> &str {
        &self.prefix
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Err(e) = self.down() {
            eprintln!("{e}");
        }
        for ns in &self.names {
            if let Err(e) = sh(&["ip", "netns", "del", ns]) {
                eprintln!("{e}");
            }
        }
    }
}

fn is_root() -> bool {
    // The effective user of this process owns its own /proc entry
    std::os::unix::fs::MetadataExt::uid(&match std::fs::metadata("/proc/self") {
        Ok(m) => m,
        Err(_) => return false,
    }) == 0
}
