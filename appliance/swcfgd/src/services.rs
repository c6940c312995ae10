// SPDX-License-Identifier: Apache-2.0
//! Daemons that others keep, for what the console sets: files that they read, and what they answer.
//!
//! ```text
//!   Config ── texts ──► INSTANCE/services/{dhcp-relay,lldp,ntp,snmpd} ── changed/NAME ──► tandem-services@INSTANCE.path (systemd)
//!                                                                                         └─► dnsmasq, lldpd, chrony, snmpd
//!   show ntp … ◄── chrony ◄── 127.0.0.1:323, UDP ──► chronyd
//!   show lldp neighbors ◄── INSTANCE/services/neighbors ◄── a unit that has lldpcli watch lldpd
//! ```
//!
//! swcfgd runs no programs: who starts the daemons is systemd.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tandem_swconfig::Config;
use tandem_swconsole::services::{Daemons, Neighbour, Ntp};
use tandem_swconsole::{FileStore, Store};

mod chrony;
mod lldp;

pub use lldp::Port;

/// What the switch says that it is.
const DESCRIPTION: &str = concat!("Tandem Software, Version ", env!("CARGO_PKG_VERSION"));

/// What a daemon is to read; empty: it has nothing to do.
type Texts = BTreeMap<&'static str, String>;

/// The texts that a configuration comes to.
fn texts(config: &Config, ports: &[Port]) -> Texts {
    BTreeMap::from([
        ("dhcp-relay", relay(config)),
        ("lldp", lldp::text(config, ports)),
        ("ntp", ntp(config)),
        ("snmpd", snmpd(config)),
    ])
}

/// For dnsmasq: whose questions are passed on, by the address that the server answers to, and to whom.
fn relay(config: &Config) -> String {
    let mut lines = String::new();
    for set in config.interfaces.values().filter(|i| !i.shutdown) {
        for (address, server) in set
            .ipv4
            .iter()
            .flat_map(|net| set.helpers.iter().map(|s| (net.address, s)))
        {
            let _ = writeln!(lines, "dhcp-relay={address},{server}");
        }
    }
    match lines.is_empty() {
        true => lines,
        // no DNS, and nothing of the machine's own
        false => format!("port=0\nno-hosts\nno-resolv\nno-ping\n{lines}"),
    }
}

/// For chrony, in a folder of sources.
fn ntp(config: &Config) -> String {
    let mut lines = String::new();
    for (server, how) in &config.services.ntp {
        let iburst = if how.iburst { " iburst" } else { "" };
        let prefer = if how.prefer { " prefer" } else { "" };
        let _ = writeln!(lines, "server {server}{iburst}{prefer}");
    }
    lines
}

/// The switch's name, with its domain.
fn name(config: &Config) -> String {
    let domain = config.services.domain.iter().map(|d| format!(".{d}"));
    let host = config.hostname.as_deref().unwrap_or("Switch");
    host.to_owned() + &domain.collect::<String>()
}

/// For snmpd: it begins with the first community.
fn snmpd(config: &Config) -> String {
    let snmp = &config.services.snmp;
    if snmp.communities.is_empty() {
        return String::new();
    }
    let name = name(config);
    let mut lines =
        format!("agentaddress udp:161\nsysDescr {DESCRIPTION}\nsysName {name}\nsysServices 6\n");
    for (word, text) in [
        ("sysLocation", &snmp.location),
        ("sysContact", &snmp.contact),
    ] {
        // what the switch does not say, nobody else says
        let _ = writeln!(lines, "{word} {}", text.as_deref().unwrap_or("-"));
    }
    for community in &snmp.communities {
        let _ = writeln!(lines, "rocommunity {community}");
    }
    lines
}

/// The daemons of an instance, by files.
pub struct Services {
    files: Mutex<FileStore>,
    changed: PathBuf,
    ports: Vec<Port>,
}

impl Services {
    /// Of the instance with this folder, and these ports.
    ///
    /// # Errors
    /// There can be no files in it.
    pub fn new(instance: &Path, ports: Vec<Port>) -> io::Result<Services> {
        let folder = instance.join("services");
        let files = Mutex::new(FileStore::new(&folder)?);
        let changed = folder.join("changed");
        fs::create_dir_all(&changed)?;
        Ok(Services {
            files,
            changed,
            ports,
        })
    }

    fn files(&self) -> MutexGuard<'_, FileStore> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what differs; who has read what was there before is to read it again.
    fn write(&self, texts: &Texts) -> io::Result<()> {
        let mut files = self.files();
        for (name, text) in texts {
            let was = files.read(name)?.unwrap_or_default();
            if was == *text {
                continue;
            }
            match text.is_empty() {
                true => files.erase(name)?,
                false => files.write(name, text)?,
            }
            // behind the text: who sees the flag finds it
            fs::write(self.changed.join(name), "")?;
        }
        Ok(())
    }
}

impl Daemons for Services {
    fn set(&self, config: &Config) -> Result<(), String> {
        let now = texts(config, &self.ports);
        let was: io::Result<Texts> = now
            .keys()
            .map(|name| Ok((*name, self.files().read(name)?.unwrap_or_default())))
            .collect();
        let done = was.and_then(|was| {
            self.write(&now).inspect_err(|_| {
                // what was there is written as far as that goes
                if let Err(e) = self.write(&was) {
                    tracing::warn!("services: {e}");
                }
            })
        });
        done.map_err(|e| format!("What daemons read can't be written: {e}"))
    }

    fn ntp(&self, what: Ntp) -> Result<String, String> {
        let asked = match what {
            Ntp::Status => chrony::status(),
            Ntp::Associations => chrony::associations(),
        };
        asked.map_err(|e| format!("chronyd is not reached: {e}"))
    }

    fn neighbours(&self) -> Result<Vec<Neighbour>, String> {
        let text = self.files().read("neighbors").map_err(|e| e.to_string())?;
        let text = text.ok_or("lldpd is not reached")?;
        lldp::neighbours(&text, &self.ports).map_err(|e| format!("lldpd: {e}"))
    }
}

#[cfg(test)]
mod tests;
