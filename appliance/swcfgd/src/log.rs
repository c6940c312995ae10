// SPDX-License-Identifier: Apache-2.0
//! What the console's log has from outside the console: links of ports, the daemon's own warnings, and a way to hosts.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tandem_mgmt::client::Client;
use tandem_mgmt::types::{Items, Port};
use tandem_swconfig::Name;
use tandem_swconsole::{Logs, logs};

/// How often one looks how ports are: what is shorter is not seen.
const EVERY: Duration = Duration::from_millis(500);

/// A socket for messages to hosts: what does not go at once is lost.
///
/// # Errors
/// There is none to be had.
pub fn socket() -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Hosts are sent messages by this.
pub fn to_hosts(logs: &Logs, socket: UdpSocket) {
    logs.send_by(Box::new(move |to, text| socket.send_to(text, to).is_ok()));
}

/// A thread that looks how the chip's ports are, whichever engine has them.
///
/// # Errors
/// There is no thread to be had.
pub fn look_at_links(
    logs: Arc<Logs>,
    asicd: Client,
    ports: Vec<Name>,
    stop: Arc<AtomicBool>,
) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name("links".into());
    thread.spawn(move || {
        while !stop.load(Relaxed) {
            // who has no chip knows of no links
            if let Ok(rows) = asicd.get::<Items<Port>>("/v1/ports") {
                logs.links(&links(&ports, &rows.items));
            }
            std::thread::sleep(EVERY);
        }
    })?;
    Ok(())
}

fn links(names: &[Name], ports: &[Port]) -> Vec<(Name, bool)> {
    let of = |p: &Port| {
        let name = names.iter().find(|n| n.is_port() && n.number == p.port)?;
        Some((*name, p.link))
    };
    ports.iter().filter_map(of).collect()
}

/// What the daemon itself warns of is in the console's log as well.
#[must_use]
pub fn of_daemon(logs: &Arc<Logs>) -> tandem_mgmt::log::Also {
    let logs = Arc::clone(logs);
    Box::new(move |error, text| {
        logs.say(if error { logs::ERROR } else { logs::WARNING }, text);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_swconfig::Kind;

    #[test]
    fn links_have_the_names_of_ports() {
        let name = |kind, number| Name { kind, number };
        let names = [name(Kind::Gigabit, 1), name(Kind::TenGigabit, 2)];
        let port = |port, link| Port {
            port,
            link,
            ..Port::default()
        };
        let ports = [port(2, true), port(1, false), port(3, true)];
        assert_eq!(links(&names, &ports), [(names[1], true), (names[0], false)]);
    }
}
