// SPDX-License-Identifier: Apache-2.0
//! The log: what has happened, kept for `show logging`, and sent to hosts.
//!
//! ```text
//!   sessions, logins, links ── say ──► %SYS-5-CONFIG_I: … ──┬─► the buffer: so many octets, the oldest go
//!                                                           └─► each `logging host`, by UDP; who can't be sent to is counted
//! ```
//!
//! Nobody waits for it: a datagram that the kernel does not take at once is lost, as any other of syslog.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tandem_swconfig::services::{Logging, SEVERITIES, Stamp, Zone};
use tandem_swconfig::{Config, Name};

use crate::clock::Moment;

/// Octets of a message at most; the rest of it is cut off.
const MESSAGE_MOST: usize = 1024;

/// Sends a datagram, and does not wait. `false`: it is lost.
pub type Send = Box<dyn FnMut(SocketAddrV4, &[u8]) -> bool + std::marker::Send>;

/// What is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Which part of the switch says it.
    pub facility: &'static str,
    /// 0 to 7.
    pub severity: u8,
    /// What it says.
    pub mnemonic: &'static str,
}

const fn kind(facility: &'static str, severity: u8, mnemonic: &'static str) -> Kind {
    Kind {
        facility,
        severity,
        mnemonic,
    }
}

/// The switch has begun.
pub const RESTART: Kind = kind("SYS", 5, "RESTART");
/// Somebody has asked for that.
pub const RELOAD: Kind = kind("SYS", 5, "RELOAD");
/// Somebody has left the configuration's modes, or has exchanged the configuration.
pub const CONFIGURED: Kind = kind("SYS", 5, "CONFIG_I");
/// A line of a configuration was carried out.
pub const COMMAND: Kind = kind("PARSER", 5, "CFGLOG_LOGGEDCMD");
/// Another command was typed.
pub const EXEC: Kind = kind("PARSER", 7, "EXEC");
/// Somebody has said who he is.
pub const LOGIN: Kind = kind("SEC_LOGIN", 5, "LOGIN_SUCCESS");
/// Somebody has not.
pub const NO_LOGIN: Kind = kind("SEC_LOGIN", 4, "LOGIN_FAILED");
/// A cable's signal has come or gone.
pub const LINK: Kind = kind("LINK", 3, "UPDOWN");
/// `shutdown`.
pub const ADMIN_DOWN: Kind = kind("LINK", 5, "CHANGED");
/// An interface carries frames, or does not any more.
pub const PROTOCOL: Kind = kind("LINEPROTO", 5, "UPDOWN");
/// The daemon's own words.
pub const WARNING: Kind = kind("TANDEM", 4, "WARNING");
/// The same, of what has failed.
pub const ERROR: Kind = kind("TANDEM", 3, "ERROR");

#[derive(Default)]
struct Log {
    set: Logging,
    zone: Option<Zone>,
    stamp: Option<Stamp>,
    hostname: Option<String>,
    /// Ports that are shut.
    shut: BTreeSet<Name>,
    /// Ports whose cables have a signal, or have none.
    up: BTreeMap<Name, bool>,
    kept: VecDeque<String>,
    octets: usize,
    /// Messages that were kept, and those for hosts.
    buffered: u64,
    trapped: u64,
    /// Of each host: sent, lost.
    hosts: BTreeMap<Ipv4Addr, [u64; 2]>,
    send: Option<Send>,
}

/// The log.
pub struct Logs(Mutex<Log>);

impl Default for Logs {
    fn default() -> Logs {
        // messages of before there is a configuration have the usual times
        Logs(Mutex::new(Log {
            stamp: Some(Stamp::default()),
            ..Log::default()
        }))
    }
}

impl Logs {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on hosts are sent messages by this.
    pub fn send_by(&self, send: Send) {
        self.log().send = Some(send);
    }

    /// As a configuration says.
    pub(crate) fn set(&self, config: &Config) {
        let mut log = self.log();
        log.set = config.services.logging.clone();
        log.zone = config.services.zone.clone();
        log.stamp = config.services.stamp;
        log.hostname = config.hostname.clone();
        let is_shut = |(n, i): (&Name, &tandem_swconfig::Interface)| i.shutdown.then_some(*n);
        log.shut = config.interfaces.iter().filter_map(is_shut).collect();
        let Log { hosts, set, .. } = &mut *log;
        hosts.retain(|host, _| set.hosts.contains_key(host));
        if log.set.buffer.is_none() {
            log.clear();
        }
        log.fit();
    }

    /// Something has happened.
    pub fn say(&self, kind: Kind, text: &str) {
        self.log().say(kind, text);
    }

    /// Forgets what is kept.
    pub(crate) fn clear(&self) {
        self.log().clear();
    }

    /// How ports are. What has changed since the last time is logged; how they are at first is nothing that happens.
    pub fn links(&self, ports: &[(Name, bool)]) {
        let mut log = self.log();
        for (name, up) in ports {
            let was = log.up.insert(*name, *up);
            if was.is_none_or(|was| was == *up) {
                continue;
            }
            let word = if *up { "up" } else { "down" };
            if *up || !log.shut.contains(name) {
                log.say(LINK, &format!("Interface {name}, changed state to {word}"));
            }
            let text = format!("Line protocol on Interface {name}, changed state to {word}");
            log.say(PROTOCOL, &text);
        }
    }

    /// `show logging`
    pub(crate) fn shown(&self) -> String {
        self.log().shown()
    }
}

impl Log {
    fn clear(&mut self) {
        self.kept.clear();
        self.octets = 0;
    }

    /// The oldest ones go.
    fn fit(&mut self) {
        let most = self.set.buffer.map_or(0, |b| b.octets as usize);
        while self.octets > most {
            let Some(gone) = self.kept.pop_front() else {
                return;
            };
            self.octets -= gone.len() + 1;
        }
    }

    fn say(&mut self, kind: Kind, text: &str) {
        if self.set.off {
            return;
        }
        let stamp = self.stamp.map_or_else(String::new, |how| {
            let zone = self.zone.as_ref().filter(|_| how.local);
            format!("{}: ", Moment::now(zone).stamp(how))
        });
        let text: String = text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let Kind {
            facility,
            severity,
            mnemonic,
        } = kind;
        let mut line = format!("{stamp}%{facility}-{severity}-{mnemonic}: {text}");
        line.truncate(line.floor_char_boundary(MESSAGE_MOST));
        if self.set.trap.is_some_and(|level| severity <= level) {
            self.trapped += 1;
            self.send(severity, &line);
        }
        if self.set.buffer.is_some_and(|b| severity <= b.level) {
            self.buffered += 1;
            self.octets += line.len() + 1;
            self.kept.push_back(line);
            self.fit();
        }
    }

    /// As IOS sends it: a number that counts, and the switch's name if that is asked for.
    fn send(&mut self, severity: u8, line: &str) {
        let priority = u16::from(self.set.facility) * 8 + u16::from(severity);
        let name = self.hostname.as_deref().unwrap_or("Switch");
        let origin = if self.set.origin {
            format!("{name}: ")
        } else {
            String::new()
        };
        let datagram = format!("<{priority}>{}: {origin}{line}", self.trapped);
        for (host, port) in &self.set.hosts {
            let to = SocketAddrV4::new(*host, *port);
            let sent = match &mut self.send {
                Some(send) => send(to, datagram.as_bytes()),
                None => false,
            };
            let [good, lost] = self.hosts.entry(*host).or_default();
            *(if sent { good } else { lost }) += 1;
        }
    }

    fn shown(&self) -> String {
        let word = |level: u8| SEVERITIES.get(usize::from(level)).unwrap_or(&"");
        let on = if self.set.off { "disabled" } else { "enabled" };
        let mut text = format!(
            "Syslog logging: {on} (0 messages dropped, 0 messages rate-limited, 0 flushes, 0 overruns, \
             xml disabled, filtering disabled)\n\n\
             No Active Message Discriminator.\n\n\n\
             No Inactive Message Discriminator.\n\n\n    \
             Console logging: disabled\n    \
             Monitor logging: disabled\n"
        );
        let _ = match self.set.buffer {
            Some(b) => writeln!(
                text,
                "    Buffer logging:  level {}, {} messages logged, xml disabled,\n                     \
                 filtering disabled",
                word(b.level),
                self.buffered
            ),
            None => writeln!(text, "    Buffer logging:  disabled"),
        };
        let _ = match self.set.trap {
            Some(level) => writeln!(
                text,
                "    Trap logging: level {}, {} message lines logged",
                word(level),
                self.trapped
            ),
            None => writeln!(text, "    Trap logging: disabled"),
        };
        for (host, port) in &self.set.hosts {
            let [sent, lost] = self.hosts.get(host).copied().unwrap_or_default();
            let _ = writeln!(
                text,
                "        Logging to {host}  (udp port {port}, audit disabled,\n              \
                 link up),\n              \
                 {sent} message lines logged, \n              \
                 {lost} message lines lost, \n              \
                 xml disabled, sequence number disabled\n              \
                 filtering disabled"
            );
        }
        if let Some(b) = self.set.buffer {
            let _ = writeln!(text, "\nLog Buffer ({} bytes):\n", b.octets);
            for line in &self.kept {
                let _ = writeln!(text, "{line}");
            }
        }
        text
    }
}
