// SPDX-License-Identifier: Apache-2.0
//! The log, the clock, NTP, SNMP, DHCP servers elsewhere: what commands make of a configuration, the lines that say it, and
//! who carries it out.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use tandem_swconfig::services::{
    Buffer, FACILITIES, FACILITY, Logging, NtpServer, SEVERITIES, SYSLOG_PORT, Services, Snmp,
    Stamp, TRAP, Zone,
};
use tandem_swconfig::{Config, Interface, Name};
use tandem_swgrammar::{Arg, Form, Id, Parsed};

use crate::change::INTERNAL;
use crate::render::Block;
use crate::users::{numbers, texts};

/// Hosts that are sent messages, servers of each kind, communities.
const MOST: usize = 16;
/// Characters of a community, a location, a contact.
const TEXT_MOST: usize = 200;

/// What daemons that others keep do for the switch: who tells them, and asks them.
pub trait Daemons: Send + Sync {
    /// From here on it is to be as this configuration says. Called before the engine is; a refusal of that one has it called
    /// again with what was before.
    ///
    /// # Errors
    /// Why not, in a line; then everything is as before.
    fn set(&self, config: &Config) -> Result<(), String>;

    /// What `show ntp` shows.
    ///
    /// # Errors
    /// Nobody answers.
    fn ntp(&self, what: Ntp) -> Result<String, String>;

    /// Who is at the other end of cables.
    ///
    /// # Errors
    /// Nobody knows.
    fn neighbours(&self) -> Result<Vec<Neighbour>, String>;
}

/// A neighbour, as LLDP tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbour {
    /// At which port, by its short name.
    pub port: String,
    /// The box: its number, its name, what it is.
    pub chassis: String,
    /// Its name.
    pub name: Option<String>,
    /// What it is, as it says.
    pub description: Option<String>,
    /// Its port.
    pub port_id: String,
    /// What that is.
    pub port_description: Option<String>,
    /// For how many seconds it is to be believed.
    pub hold: u32,
    /// What it can, and whether it does, by the words of lldpd.
    pub capabilities: Vec<(String, bool)>,
    /// Where it is managed.
    pub addresses: Vec<String>,
}

/// What is asked of who has the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ntp {
    /// `show ntp status`
    Status,
    /// `show ntp associations`
    Associations,
}

/// Nobody: the tests' sessions, and a switch that has none yet.
pub(crate) struct Nobody;

impl Daemons for Nobody {
    fn set(&self, _: &Config) -> Result<(), String> {
        Ok(())
    }

    fn ntp(&self, _: Ntp) -> Result<String, String> {
        Err("Nobody keeps the clock here".into())
    }

    fn neighbours(&self) -> Result<Vec<Neighbour>, String> {
        Err("Nobody listens here".into())
    }
}

/// Is it one of the switch's that is dealt with here?
pub(crate) fn is_switchs(id: Id) -> bool {
    matches!(
        id,
        Id::ClockZone
            | Id::Stamps
            | Id::DomainName
            | Id::LldpRun
            | Id::CdpRun
            | Id::DomainLookup
            | Id::SshVersion
            | Id::LogLine
            | Id::LogOn
            | Id::LogBuffer
            | Id::LogTrap
            | Id::LogFacility
            | Id::LogOrigin
            | Id::LogHost
            | Id::NtpServer
            | Id::SnmpCommunity
            | Id::SnmpLocation
            | Id::SnmpContact
    )
}

fn address(parsed: &Parsed) -> Option<Ipv4Addr> {
    parsed.args.iter().find_map(|a| match a {
        Arg::Address(a) => Some(*a),
        _ => None,
    })
}

/// A severity that was said by its word or its number.
fn severity(parsed: &Parsed) -> Option<u8> {
    let word = SEVERITIES.iter().position(|s| parsed.has(s));
    let number = || numbers(parsed).into_iter().find(|n| *n < 8);
    let found = word.and_then(|n| u32::try_from(n).ok()).or_else(number);
    found.and_then(|n| u8::try_from(n).ok())
}

/// A host that may be asked, or told.
fn host(parsed: &Parsed) -> Result<Ipv4Addr, String> {
    let host = address(parsed).ok_or(INTERNAL)?;
    match host.is_unspecified() || host.is_multicast() || host.is_broadcast() || host.is_loopback()
    {
        true => Err(format!("% Invalid host address - {host}")),
        false => Ok(host),
    }
}

fn room(is: usize, has: bool, what: &str) -> Result<(), String> {
    match !has && is >= MOST {
        true => Err(format!("% There are {MOST} {what}, and no room for more")),
        false => Ok(()),
    }
}

/// Changes what is set of the switch.
pub(crate) fn of_switch(services: &mut Services, parsed: &Parsed) -> Result<(), String> {
    let plain = parsed.form == Form::Plain;
    match parsed.id {
        Id::ClockZone => services.zone = zone(parsed)?,
        Id::Stamps => stamps(services, parsed),
        Id::DomainName => {
            let name = parsed.text().filter(|_| plain);
            if name.is_some_and(|n| !is_domain(n)) {
                return Err("% A domain's name has letters, digits, - and . in between".into());
            }
            services.domain = name.map(Into::into);
        }
        Id::DomainLookup if plain => {
            return Err("% There are no names for addresses here: addresses are typed".into());
        }
        Id::LogLine if plain => {
            return Err("% Nothing is logged to a line: show logging has what is kept".into());
        }
        Id::CdpRun if plain => {
            return Err(
                "% CDP is not spoken here: lldp run tells neighbours of other makes too".into(),
            );
        }
        Id::DomainLookup | Id::LogLine | Id::CdpRun => {}
        Id::LldpRun => services.lldp = plain,
        Id::SshVersion if plain && parsed.number() == Some(1) => {
            return Err("% OpenSSH speaks version 2 alone".into());
        }
        Id::SshVersion => services.ssh2 = plain,
        Id::NtpServer => {
            let server = host(parsed)?;
            if !plain {
                services.ntp.remove(&server);
                return Ok(());
            }
            room(
                services.ntp.len(),
                services.ntp.contains_key(&server),
                "NTP servers",
            )?;
            let how = NtpServer {
                iburst: parsed.has("iburst"),
                prefer: parsed.has("prefer"),
            };
            services.ntp.insert(server, how);
        }
        Id::SnmpCommunity | Id::SnmpLocation | Id::SnmpContact => snmp(&mut services.snmp, parsed)?,
        _ => logging(&mut services.logging, parsed)?,
    }
    Ok(())
}

/// `datetime` without a word is without milliseconds; with `no` messages have no time.
fn stamps(services: &mut Services, parsed: &Parsed) {
    let stamp = match parsed.form {
        Form::Plain => Some(Stamp {
            millis: parsed.has("msec"),
            local: parsed.has("localtime"),
            zone: parsed.has("show-timezone"),
            year: parsed.has("year"),
        }),
        Form::No => None,
        Form::Default => Some(Stamp::default()),
    };
    if !parsed.has("debug") {
        services.stamp = stamp;
    }
    if !parsed.has("log") {
        services.debug_stamp = stamp;
    }
}

fn stamp_line(which: &str, stamp: Option<Stamp>) -> Option<String> {
    let Some(stamp) = stamp else {
        return Some(format!("no service timestamps {which}"));
    };
    let words = [
        (stamp.millis, " msec"),
        (stamp.local, " localtime"),
        (stamp.zone, " show-timezone"),
        (stamp.year, " year"),
    ];
    let said: String = words
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, w)| *w)
        .collect();
    (stamp != Stamp::default()).then(|| format!("service timestamps {which} datetime{said}"))
}

fn is_domain(name: &str) -> bool {
    let label = |l: &str| !l.is_empty() && l.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    name.len() <= TEXT_MOST && name.split('.').all(label)
}

fn zone(parsed: &Parsed) -> Result<Option<Zone>, String> {
    if parsed.form != Form::Plain {
        return Ok(None);
    }
    let mut texts = texts(parsed);
    let (name, hours) = (texts.next().ok_or(INTERNAL)?, texts.next().ok_or(INTERNAL)?);
    let right = (1..=7).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric());
    if !right {
        return Err("% A time zone's name has 1 to 7 letters and digits".into());
    }
    let digits = hours.strip_prefix(['-', '+']).unwrap_or(hours);
    let whole = digits
        .parse::<i32>()
        .ok()
        .filter(|h| *h < 24 && digits.len() <= 2);
    let whole = whole.ok_or("% Hours before UTC are -23 to 23")?;
    let minutes = parsed.number().and_then(|m| i32::try_from(m).ok());
    let minutes = whole * 60 + minutes.unwrap_or(0);
    Ok(Some(Zone {
        name: name.into(),
        minutes: if hours.starts_with('-') {
            -minutes
        } else {
            minutes
        },
    }))
}

fn snmp(snmp: &mut Snmp, parsed: &Parsed) -> Result<(), String> {
    let plain = parsed.form == Form::Plain;
    let text = parsed.text().filter(|_| plain);
    if text.is_some_and(|t| t.len() > TEXT_MOST) {
        return Err(format!("% It has more than {TEXT_MOST} characters"));
    }
    match parsed.id {
        Id::SnmpLocation => snmp.location = text.map(Into::into),
        Id::SnmpContact => snmp.contact = text.map(Into::into),
        _ => {
            let word = parsed.text().ok_or(INTERNAL)?;
            if !plain {
                snmp.communities.remove(word);
                return Ok(());
            }
            if parsed.has("rw") {
                return Err("% Nothing is changed by SNMP here: a community may read (ro)".into());
            }
            // it stands between others in a file of snmpd's
            let odd = |c: char| !c.is_ascii_graphic() || "\"'\\#".contains(c);
            if word.contains(odd) || word.len() > 32 {
                return Err("% A community has 1 to 32 characters, without \" ' \\ #".into());
            }
            room(
                snmp.communities.len(),
                snmp.communities.contains(word),
                "communities",
            )?;
            snmp.communities.insert(word.into());
        }
    }
    Ok(())
}

fn logging(logging: &mut Logging, parsed: &Parsed) -> Result<(), String> {
    let (plain, usual) = (parsed.form == Form::Plain, parsed.form == Form::Default);
    match parsed.id {
        Id::LogOn => logging.off = parsed.form == Form::No,
        Id::LogBuffer if parsed.form == Form::No => logging.buffer = None,
        Id::LogBuffer if usual => logging.buffer = Some(Buffer::default()),
        Id::LogBuffer => {
            let Buffer { octets, level } = Buffer::default();
            let said = numbers(parsed).into_iter().find(|n| *n >= octets);
            logging.buffer = Some(Buffer {
                octets: said.unwrap_or(octets),
                level: severity(parsed).unwrap_or(level),
            });
        }
        Id::LogTrap if parsed.form == Form::No => logging.trap = None,
        Id::LogTrap => logging.trap = Some(severity(parsed).filter(|_| plain).unwrap_or(TRAP)),
        Id::LogFacility => {
            let said = FACILITIES
                .iter()
                .find(|(word, _)| plain && parsed.has(word));
            logging.facility = said.map_or(FACILITY, |(_, number)| *number);
        }
        Id::LogOrigin => logging.origin = plain,
        Id::LogHost => {
            let host = host(parsed)?;
            if !plain {
                logging.hosts.remove(&host);
                return Ok(());
            }
            room(
                logging.hosts.len(),
                logging.hosts.contains_key(&host),
                "logging hosts",
            )?;
            let port = parsed.number().and_then(|n| u16::try_from(n).ok());
            logging.hosts.insert(host, port.unwrap_or(SYSLOG_PORT));
        }
        _ => return Err(INTERNAL.into()),
    }
    Ok(())
}

/// `ip helper-address` of an interface.
pub(crate) fn helper(name: &Name, set: &mut Interface, parsed: &Parsed) -> Result<(), String> {
    if set.switchport.is_some() {
        return Err(format!(
            "% Command rejected: {name} is no routed interface."
        ));
    }
    match (parsed.form, address(parsed)) {
        (Form::Plain, _) => {
            let server = host(parsed)?;
            room(
                set.helpers.len(),
                set.helpers.contains(&server),
                "helper addresses",
            )?;
            set.helpers.insert(server);
        }
        (_, Some(server)) => drop(set.helpers.remove(&server)),
        (_, None) => set.helpers.clear(),
    }
    Ok(())
}

/// The lines of an interface.
pub(crate) fn helper_lines(helpers: &BTreeSet<Ipv4Addr>) -> Vec<String> {
    let line = |server: &Ipv4Addr| format!("ip helper-address {server}");
    helpers.iter().map(line).collect()
}

/// The lines of the switch.
pub(crate) fn blocks(id: Id, services: &Services) -> Vec<Block> {
    let lines = match id {
        Id::ClockZone => services.zone.iter().map(zone_line).collect(),
        Id::Stamps => {
            let both = [("debug", services.debug_stamp), ("log", services.stamp)];
            both.into_iter()
                .filter_map(|(which, stamp)| stamp_line(which, stamp))
                .collect()
        }
        Id::DomainName => {
            let line = |name: &String| format!("ip domain name {name}");
            services.domain.iter().map(line).collect()
        }
        Id::LldpRun => {
            let line = services.lldp.then(|| "lldp run".to_owned());
            line.into_iter().collect()
        }
        Id::SshVersion => {
            let line = services.ssh2.then(|| "ip ssh version 2".to_owned());
            line.into_iter().collect()
        }
        Id::NtpServer => {
            let line = |(server, how): (&Ipv4Addr, &NtpServer)| {
                let iburst = if how.iburst { " iburst" } else { "" };
                let prefer = if how.prefer { " prefer" } else { "" };
                format!("ntp server {server}{iburst}{prefer}")
            };
            services.ntp.iter().map(line).collect()
        }
        Id::SnmpCommunity => {
            let line = |word: &String| format!("snmp-server community {word} RO");
            services.snmp.communities.iter().map(line).collect()
        }
        Id::SnmpLocation => {
            let line = |text: &String| format!("snmp-server location {text}");
            services.snmp.location.iter().map(line).collect()
        }
        Id::SnmpContact => {
            let line = |text: &String| format!("snmp-server contact {text}");
            services.snmp.contact.iter().map(line).collect()
        }
        _ => log_lines(id, &services.logging),
    };
    let block = |head: String| Block {
        head,
        lines: Vec::new(),
    };
    lines.into_iter().map(block).collect()
}

fn zone_line(zone: &Zone) -> String {
    let (hours, minutes) = (zone.minutes / 60, zone.minutes.abs() % 60);
    // less than an hour behind has its sign all the same
    let sign = if zone.minutes < 0 && hours == 0 {
        "-"
    } else {
        ""
    };
    format!("clock timezone {} {sign}{hours} {minutes}", zone.name)
}

fn log_lines(id: Id, set: &Logging) -> Vec<String> {
    let word = |level: u8| SEVERITIES.get(usize::from(level)).copied().unwrap_or("");
    let line = match id {
        Id::LogOn => set.off.then(|| "no logging on".to_owned()),
        Id::LogBuffer => match set.buffer {
            None => Some("no logging buffered".into()),
            Some(b) if b == Buffer::default() => None,
            Some(b) if b.level == Buffer::default().level => {
                Some(format!("logging buffered {}", b.octets))
            }
            Some(b) => Some(format!("logging buffered {} {}", b.octets, word(b.level))),
        },
        Id::LogTrap => match set.trap {
            None => Some("no logging trap".into()),
            Some(TRAP) => None,
            Some(level) => Some(format!("logging trap {}", word(level))),
        },
        Id::LogFacility => {
            let found = FACILITIES.iter().find(|(_, n)| *n == set.facility);
            let other = found.filter(|_| set.facility != FACILITY);
            other.map(|(word, _)| format!("logging facility {word}"))
        }
        Id::LogOrigin => set.origin.then(|| "logging origin-id hostname".to_owned()),
        Id::LogHost => {
            let line = |(host, port): (&Ipv4Addr, &u16)| match *port {
                SYSLOG_PORT => format!("logging host {host}"),
                port => format!("logging host {host} transport udp port {port}"),
            };
            return set.hosts.iter().map(line).collect();
        }
        _ => None,
    };
    line.into_iter().collect()
}
