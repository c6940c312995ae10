// SPDX-License-Identifier: Apache-2.0
//! `swcfgd.sock`, and the one that everybody may knock at: each connection is a session of whoever is given its stream.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tandem_swconsole::Switch;
use tandem_swconsole::wire::{self, Peer};

use crate::names::Names;

/// Sessions at once by one socket: who knocks at the one for everybody takes none of root's.
const SESSIONS: usize = 32;
/// Of one user that is not root: the others get in as well.
const OF_ONE: usize = 12;

/// Binds the socket for everybody (0666): before the daemon locks itself in, for it lies beside the instance's own folder.
///
/// # Errors
/// One line.
pub fn bind_login(dir: &Path) -> anyhow::Result<UnixListener> {
    let path = tandem_swconsole::wire::login_socket(dir);
    let listener = tandem_mgmt::server::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666))?;
    // made below a umask that leaves nothing to others, it would be a door that nobody comes to; what is in it is root's
    let base = Path::new("/run/tandem");
    if dir.parent() == Some(base) {
        let mode = std::fs::metadata(base)?.permissions().mode();
        std::fs::set_permissions(base, std::fs::Permissions::from_mode(mode & 0o7777 | 0o011))?;
    }
    Ok(listener)
}

/// Opens both sockets of a console: root's alone at `path`, and `login`, at which everybody may knock.
///
/// # Errors
/// One line.
pub fn open(
    path: &Path,
    login: UnixListener,
    names: Names,
    console: &Arc<Mutex<Switch>>,
) -> anyhow::Result<()> {
    let (root, other, names) = (Arc::clone(console), Arc::clone(console), Arc::new(names));
    serve(path, move |stream| {
        let peer = Peer::root(&who(&stream));
        wire::serve(stream, Arc::clone(&root), &peer);
    })?;
    serve_at(login, move |stream| {
        let peer = Peer {
            root: false,
            user: names.of(uid(&stream)),
            who: who(&stream),
        };
        wire::serve(stream, Arc::clone(&other), &peer);
    })
}

/// Listens at `path` (0600); as [`serve_at`].
///
/// # Errors
/// One line.
pub fn serve(
    path: &Path,
    session: impl FnMut(UnixStream) + Clone + Send + 'static,
) -> anyhow::Result<()> {
    serve_at(tandem_mgmt::server::bind(path)?, session)
}

/// Listens; each connection is a thread's, which `session` is run in. Beyond [`SESSIONS`] a connection is
/// told so and closed at once. The thread that accepts lives as long as the process.
///
/// # Errors
/// One line.
pub fn serve_at(
    listener: UnixListener,
    session: impl FnMut(UnixStream) + Clone + Send + 'static,
) -> anyhow::Result<()> {
    let open = Arc::new(Open::default());
    std::thread::Builder::new()
        .name("door".into())
        .spawn(move || {
            for stream in listener.incoming() {
                let mut stream = match stream {
                    Ok(stream) => stream,
                    Err(e) => {
                        tracing::warn!("swcfgd.sock: {e}");
                        std::thread::sleep(std::time::Duration::from_millis(100));
                        continue;
                    }
                };
                let Some(left) = open.take(uid(&stream)) else {
                    // nothing waits in the socket yet, so this waits for nobody
                    let _ = writeln!(stream, "% All {SESSIONS} sessions are taken");
                    continue;
                };
                let mut session = session.clone();
                let begun = std::thread::Builder::new()
                    .name("session".into())
                    .spawn(move || {
                        let _left = left;
                        session(stream);
                    });
                if let Err(e) = begun {
                    tracing::warn!("swcfgd.sock: {e}");
                }
            }
        })?;
    Ok(())
}

/// How many sessions each user has.
#[derive(Debug, Default)]
struct Open(Mutex<BTreeMap<u32, usize>>);

impl Open {
    fn take(self: &Arc<Open>, uid: u32) -> Option<Left> {
        let mut of = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, own) = (of.values().sum::<usize>(), of.get(&uid).unwrap_or(&0));
        if all >= SESSIONS || uid != 0 && *own >= OF_ONE {
            return None;
        }
        *of.entry(uid).or_default() += 1;
        Some(Left(Arc::clone(self), uid))
    }
}

/// A session's place, free again with this value.
struct Left(Arc<Open>, u32);

impl Drop for Left {
    fn drop(&mut self) {
        let mut of = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = of.entry(self.1).or_default();
        *own = own.saturating_sub(1);
        if *own == 0 {
            of.remove(&self.1);
        }
    }
}

/// The user at the other end; nobody's number where that is not known.
#[must_use]
pub fn uid(stream: &UnixStream) -> u32 {
    rustix::net::sockopt::socket_peercred(stream).map_or(u32::MAX, |peer| peer.uid.as_raw())
}

/// Who is at the other end, for the log.
#[must_use]
pub fn who(stream: &UnixStream) -> String {
    match rustix::net::sockopt::socket_peercred(stream) {
        Ok(peer) => format!(
            "user {}, process {}",
            peer.uid.as_raw(),
            peer.pid.as_raw_pid()
        ),
        Err(e) => format!("somebody ({e})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn who_comes_when_all_sessions_are_taken_is_told() {
        let dir = std::env::temp_dir().join(format!("tandem-door-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("d.sock");
        // each session ends with its stream
        serve(&path, |mut stream| {
            let _ = stream.write_all(b"!");
            let _ = stream.read(&mut [0]);
        })
        .unwrap();
        let mut inside = Vec::new();
        for _ in 0..SESSIONS {
            let mut stream = UnixStream::connect(&path).unwrap();
            stream.read_exact(&mut [0]).unwrap();
            inside.push(stream);
        }
        let mut said = String::new();
        let mut late = UnixStream::connect(&path).unwrap();
        late.read_to_string(&mut said).unwrap();
        assert_eq!(said, "% All 32 sessions are taken\n");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn one_user_leaves_room_for_others() {
        let open = Arc::new(Open::default());
        let mut own: Vec<_> = (0..OF_ONE).map(|_| open.take(1000).unwrap()).collect();
        assert!(open.take(1000).is_none());
        let other = open.take(1001).unwrap();
        own.pop();
        assert!(open.take(1000).is_some());
        let root: Vec<_> = (0..SESSIONS).map_while(|_| open.take(0)).collect();
        assert_eq!(root.len(), SESSIONS - OF_ONE);
        assert!(open.take(1001).is_none() && open.take(1002).is_none());
        drop((own, other, root));
        assert!(
            open.0.lock().unwrap().is_empty(),
            "nothing is kept of who is gone, or never was in"
        );
    }
}
