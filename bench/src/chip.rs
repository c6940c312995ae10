//! asicd by itself in a rig's namespace `sw` or another one, for whoever programs it.

use crate::rig::{Rig, sh, sibling};
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tandem_mgmt::Instance;

/// A chip; gone when dropped.
pub struct Chip {
    child: Child,
    instance: Instance,
}

impl Chip {
    /// From when a driver may attach. `words`: further options of asicd.
    pub fn start(rig: &Rig, word: &str, name: &str, words: &[&str]) -> Result<Chip> {
        let instance = Instance::resolve(Some(name))?;
        let mut child = Command::new("ip")
            .args(["netns", "exec", &rig.ns(word)])
            .arg(sibling("asicd")?)
            .args(["--name", name, "--log", "error"])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start asicd")?;
        let begin = Instant::now();
        while !instance.driver_socket().exists() {
            ensure!(child.try_wait()?.is_none(), "asicd stopped by itself");
            ensure!(
                begin.elapsed() < Duration::from_secs(10),
                "asicd takes no driver"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Chip { child, instance })
    }

    /// Its process: `ip netns exec` becomes the program.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its driver attaches.
    pub fn driver_socket(&self) -> PathBuf {
        self.instance.driver_socket()
    }
}

impl Drop for Chip {
    fn drop(&mut self) {
        let _ = sh(&["kill", "-TERM", &self.child.id().to_string()]);
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(self.instance.dir());
    }
}
