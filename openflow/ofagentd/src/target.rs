// SPDX-License-Identifier: Apache-2.0
//! `--controller KIND:WHERE`: whom to call, or where to be called.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// IANA's port of OpenFlow.
const PORT: u16 = 6653;

/// One controller, or one place where controllers come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Call there.
    Tcp {
        /// As it was written.
        host: String,
        /// TCP port.
        port: u16,
        /// By TLS.
        tls: bool,
    },
    /// Be called there.
    Ptcp {
        /// Of this machine.
        at: SocketAddr,
        /// By TLS.
        tls: bool,
    },
    /// Call there.
    Unix(PathBuf),
    /// Be called there.
    Punix(PathBuf),
}

const KINDS: &str = "expected tcp:HOST[:PORT] or ssl:HOST[:PORT], ptcp:[ADDRESS:][PORT] or pssl:[ADDRESS:][PORT], unix:PATH or punix:PATH";

fn port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("'{text}' is no TCP port")),
        Ok(port) => Ok(port),
    }
}

/// `HOST`, `HOST:PORT`, `[V6]`, `[V6]:PORT`.
fn host_port(text: &str) -> Result<(String, u16), String> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(v6) => v6
            .split_once(']')
            .ok_or_else(|| format!("'{text}' has no ']'"))?,
        None => text.find(':').map_or((text, ""), |at| text.split_at(at)),
    };
    let port = match rest.strip_prefix(':') {
        Some(p) => port(p)?,
        None if rest.is_empty() => PORT,
        None => return Err(format!("'{rest}' is no :PORT")),
    };
    if host.is_empty() {
        return Err("the host is missing".into());
    }
    Ok((host.to_owned(), port))
}

fn listen(text: &str) -> Result<SocketAddr, String> {
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    if text.is_empty() {
        return Ok(SocketAddr::new(any, PORT));
    }
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(SocketAddr::new(any, port(text)?));
    }
    let (host, port) = host_port(text)?;
    let ip = host
        .parse()
        .map_err(|_| format!("'{host}' is no address of this machine"))?;
    Ok(SocketAddr::new(ip, port))
}

fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err("the path is missing".into());
    }
    std::path::absolute(text).map_err(|e| e.to_string())
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        let fail = |why: String| format!("controller '{text}': {why}; {KINDS}");
        let (kind, at) = text
            .split_once(':')
            .map_or((text, ""), |(kind, at)| (kind, at));
        match kind {
            "tcp" | "ssl" => host_port(at).map(|(host, port)| Target::Tcp {
                host,
                port,
                tls: kind == "ssl",
            }),
            "ptcp" | "pssl" => listen(at).map(|at| Target::Ptcp {
                at,
                tls: kind == "pssl",
            }),
            "unix" => path(at).map(Target::Unix),
            "punix" => path(at).map(Target::Punix),
            other => Err(format!("unknown kind '{other}'")),
        }
        .map_err(fail)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Tcp { host, port, tls } => {
                let kind = if *tls { "ssl" } else { "tcp" };
                match host.contains(':') {
                    true => write!(f, "{kind}:[{host}]:{port}"),
                    false => write!(f, "{kind}:{host}:{port}"),
                }
            }
            Target::Ptcp { at, tls } => {
                write!(f, "{}:{at}", if *tls { "pssl" } else { "ptcp" })
            }
            Target::Unix(path) => write!(f, "unix:{}", path.display()),
            Target::Punix(path) => write!(f, "punix:{}", path.display()),
        }
    }
}

impl Target {
    /// Addresses of a host, asked for once, at the start.
    ///
    /// # Errors
    /// In one line.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, String> {
        let Target::Tcp { host, port, .. } = self else {
            return Ok(Vec::new());
        };
        let found: Vec<SocketAddr> = (host.as_str(), *port)
            .to_socket_addrs()
            .map_err(|e| format!("controller {self}: {host} has no address: {e}"))?
            .collect();
        if found.is_empty() {
            return Err(format!("controller {self}: {host} has no address"));
        }
        Ok(found)
    }

    /// Does it need keys?
    pub fn is_tls(&self) -> bool {
        matches!(
            self,
            Target::Tcp { tls: true, .. } | Target::Ptcp { tls: true, .. }
        )
    }

    /// Does it call?
    pub fn is_active(&self) -> bool {
        matches!(self, Target::Tcp { .. } | Target::Unix(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_and_written() {
        for (text, shown) in [
            ("tcp:127.0.0.1:6653", "tcp:127.0.0.1:6653"),
            ("tcp:host", "tcp:host:6653"),
            ("tcp:[::1]:99", "tcp:[::1]:99"),
            ("ptcp:", "ptcp:0.0.0.0:6653"),
            ("ptcp:99", "ptcp:0.0.0.0:99"),
            ("ptcp:127.0.0.1:99", "ptcp:127.0.0.1:99"),
            ("ptcp:[::]:99", "ptcp:[::]:99"),
            ("ssl:host", "ssl:host:6653"),
            ("pssl:", "pssl:0.0.0.0:6653"),
            ("unix:/a", "unix:/a"),
            ("punix:/a", "punix:/a"),
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), shown);
        }
        for (bad, why) in [
            ("tcp", "host is missing"),
            ("tcp:", "host is missing"),
            ("tcp:a:0", "no TCP port"),
            ("tcp:[::1", "no ']'"),
            ("ptcp:70000", "no TCP port"),
            ("ptcp:here:1", "no address of this machine"),
            ("unix:", "path is missing"),
            ("udp:a", "unknown kind"),
        ] {
            let e = bad.parse::<Target>().unwrap_err();
            assert!(e.contains(why) && !e.contains('\n'), "{bad}: {e}");
        }
    }
}
