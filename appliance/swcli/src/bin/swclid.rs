// SPDX-License-Identifier: Apache-2.0
//! swclid: the console by telnet, at addresses of the box itself. It is off unless somebody starts it.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Parser;
use tandem_mgmt::instance::Instance;
use tandem_swcli::telnet::{OFFER, Telnet, escaped};
use tandem_swconsole::Kind;
use tandem_swconsole::wire::{END, Hello, asking, login_socket};

/// Connections at once: as many as the daemon lets one user have.
const MOST: usize = 12;
/// For so long a client may say how large its window is.
const SIZE_WITHIN: Duration = Duration::from_millis(500);

/// The console by telnet: Username and Password, on loopback alone.
#[derive(Debug, Parser)]
#[command(name = "swclid", version)]
struct Args {
    /// Instance name; by default derived from the network namespace.
    #[arg(long)]
    name: Option<String>,
    /// Where to listen: an address of loopback, for what is typed goes over the wire as it is.
    #[arg(long, default_value = "127.0.0.1:23")]
    listen: SocketAddr,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = writeln!(io::stderr(), "swclid: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    let instance = Instance::resolve(args.name.as_deref())?;
    if !args.listen.ip().is_loopback() {
        bail!(
            "{} is no address of loopback: secrets would go over the wire as they are",
            args.listen.ip()
        );
    }
    let listener =
        TcpListener::bind(args.listen).with_context(|| format!("listening at {}", args.listen))?;
    let path: Arc<Path> = login_socket(instance.dir()).into();
    // its count is the number of connections, and one for this loop
    let open = Arc::new(());
    for client in listener.incoming() {
        let Ok(mut client) = client else {
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        if Arc::strong_count(&open) > MOST {
            let _ = client.write_all(b"% All connections are taken\r\n");
            continue;
        }
        let (path, place) = (Arc::clone(&path), Arc::clone(&open));
        let begun = std::thread::Builder::new().spawn(move || {
            let _place = place;
            let _ = serve(client, path.to_path_buf());
        });
        if let Err(e) = begun {
            let _ = writeln!(io::stderr(), "swclid: {e}");
        }
    }
    Ok(())
}

/// One connection, to its end.
fn serve(mut client: TcpStream, path: PathBuf) -> io::Result<()> {
    client.set_nodelay(true)?;
    client.set_write_timeout(Some(Duration::from_secs(60)))?;
    let Ok(mut session) = UnixStream::connect(path) else {
        return client.write_all(b"% No appliance answers\r\n");
    };
    client.write_all(OFFER)?;
    let mut telnet = Telnet::default();
    let mut typed = Vec::new();
    let mut bytes = [0; 1024];
    let begun = Instant::now();
    while telnet.size().is_none() && begun.elapsed() < SIZE_WITHIN && typed.is_empty() {
        let left = SIZE_WITHIN.saturating_sub(begun.elapsed());
        client.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match client.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(n) => {
                let reply = telnet.feed(bytes.get(..n).unwrap_or_default(), &mut typed);
                client.write_all(&reply)?;
            }
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                ) =>
            {
                break;
            }
            Err(e) => return Err(e),
        }
    }
    client.set_read_timeout(None)?;
    let (width, height) = telnet.size().unwrap_or((80, 24));
    let from = client.peer_addr()?.ip().to_string();
    let hello = asking(&Hello::Terminal { width, height }, Some(Kind::Vty), &from);
    session.write_all(hello.as_bytes())?;
    session.write_all(&typed)?;
    let (mut to, mut keys) = (session.try_clone()?, client.try_clone()?);
    let typing = std::thread::Builder::new().spawn(move || {
        let mut bytes = [0; 1024];
        while let Ok(n @ 1..) = keys.read(&mut bytes) {
            let mut typed = Vec::new();
            let reply = telnet.feed(bytes.get(..n).unwrap_or_default(), &mut typed);
            if keys.write_all(&reply).is_err() || to.write_all(&typed).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    })?;
    let mut shown = [0; 4096];
    while let Ok(n @ 1..) = session.read(&mut shown) {
        let text = shown.get(..n).unwrap_or_default();
        let end = text.last() == Some(&END);
        let text = if end {
            text.strip_suffix(&[END]).unwrap_or(text)
        } else {
            text
        };
        if client.write_all(&escaped(text)).is_err() || end {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = session.shutdown(Shutdown::Both);
    let _ = typing.join();
    Ok(())
}
