// SPDX-License-Identifier: Apache-2.0
//! What the switch tells others, and what others do for it: the log, the clock, NTP, SNMP.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Severities by number, as IOS and syslog have them.
pub const SEVERITIES: [&str; 8] = [
    "emergencies",
    "alerts",
    "critical",
    "errors",
    "warnings",
    "notifications",
    "informational",
    "debugging",
];

/// Facilities of syslog by number that IOS has a word for; the others it has none for.
pub const FACILITIES: [(&str, u8); 24] = [
    ("kern", 0),
    ("user", 1),
    ("mail", 2),
    ("daemon", 3),
    ("auth", 4),
    ("syslog", 5),
    ("lpr", 6),
    ("news", 7),
    ("uucp", 8),
    ("sys9", 9),
    ("sys10", 10),
    ("sys11", 11),
    ("sys12", 12),
    ("sys13", 13),
    ("sys14", 14),
    ("cron", 15),
    ("local0", 16),
    ("local1", 17),
    ("local2", 18),
    ("local3", 19),
    ("local4", 20),
    ("local5", 21),
    ("local6", 22),
    ("local7", 23),
];

/// `logging buffered`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Octets that are kept.
    pub octets: u32,
    /// Messages up to this severity are.
    pub level: u8,
}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer {
            octets: 4096,
            level: 7,
        }
    }
}

/// `logging …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logging {
    /// `no logging on`: nothing is kept, and nothing is sent.
    pub off: bool,
    /// `logging buffered`; `None`: `no logging buffered`.
    pub buffer: Option<Buffer>,
    /// `logging trap`: what hosts are sent; `None`: `no logging trap`.
    pub trap: Option<u8>,
    /// `logging facility`, its number in syslog.
    pub facility: u8,
    /// `logging origin-id hostname`.
    pub origin: bool,
    /// `logging host`, and the UDP port.
    pub hosts: BTreeMap<Ipv4Addr, u16>,
}

/// `logging host` without a port.
pub const SYSLOG_PORT: u16 = 514;
/// `logging trap` unless it is said.
pub const TRAP: u8 = 6;
/// `logging facility` unless it is said: local7.
pub const FACILITY: u8 = 23;

impl Default for Logging {
    fn default() -> Logging {
        Logging {
            off: false,
            buffer: Some(Buffer::default()),
            trap: Some(TRAP),
            facility: FACILITY,
            origin: false,
            hosts: BTreeMap::new(),
        }
    }
}

/// What stands in front of a message: `service timestamps … datetime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// `msec`
    pub millis: bool,
    /// `localtime`: of the zone that is set, and not UTC.
    pub local: bool,
    /// `show-timezone`
    pub zone: bool,
    /// `year`
    pub year: bool,
}

impl Default for Stamp {
    fn default() -> Stamp {
        Stamp {
            millis: true,
            local: false,
            zone: false,
            year: false,
        }
    }
}

/// `clock timezone`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// What it is called.
    pub name: String,
    /// Minutes east of UTC.
    pub minutes: i32,
}

/// `ntp server`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NtpServer {
    /// It is asked often at first.
    pub iburst: bool,
    /// It is believed rather than others.
    pub prefer: bool,
}

/// `snmp-server …`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snmp {
    /// Who knows one of these words may read.
    pub communities: std::collections::BTreeSet<String>,
    /// Where the switch stands.
    pub location: Option<String>,
    /// Who looks after it.
    pub contact: Option<String>,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Services {
    /// `service timestamps log`; `None`: messages have none.
    pub stamp: Option<Stamp>,
    /// `service timestamps debug`: is kept.
    pub debug_stamp: Option<Stamp>,
    /// `ip domain name`: what stands behind the switch's name.
    pub domain: Option<String>,
    /// `lldp run`.
    pub lldp: bool,
    /// `ip ssh version 2`: is kept, there is no other one.
    pub ssh2: bool,
    /// `logging …`.
    pub logging: Logging,
    /// `clock timezone`; `None`: UTC.
    pub zone: Option<Zone>,
    /// `ntp server`.
    pub ntp: BTreeMap<Ipv4Addr, NtpServer>,
    /// `snmp-server`.
    pub snmp: Snmp,
}

impl Default for Services {
    fn default() -> Services {
        Services {
            stamp: Some(Stamp::default()),
            debug_stamp: Some(Stamp::default()),
            domain: None,
            lldp: false,
            ssh2: false,
            logging: Logging::default(),
            zone: None,
            ntp: BTreeMap::new(),
            snmp: Snmp::default(),
        }
    }
}
