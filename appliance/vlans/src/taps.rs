//! TAPs of VLANs that are routed: the kernel's IP stack has a device there.

use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use tandem_linux::ifreq::ControlSocket;
use tandem_linux::netlink::Requests;
use tandem_linux::netns;
use tandem_linux::tap::{Tap, TapOptions};

use crate::database::TapOf;

/// Makes and removes the devices of VLANs that are routed.
pub trait TapMaker {
    /// A device for a VLAN; the one that is there, if there is one still.
    ///
    /// # Errors
    /// One line: why there is none.
    fn make(&mut self, vid: u16) -> Result<TapOf, String>;

    /// Removes it.
    fn remove(&mut self, vid: u16);
}

/// TAPs of the network namespace in which this is called: `vlan10` is that of VLAN 10. They go with the last of those who
/// have them: this value, whom it gave one, whoever has a duplicate of its descriptor.
#[derive(Debug, Default)]
pub struct KernelTaps {
    all: BTreeMap<u16, Arc<Tap>>,
    mac: Option<[u8; 6]>,
}

impl KernelTaps {
    /// None yet.
    #[must_use]
    pub fn new() -> KernelTaps {
        KernelTaps::default()
    }

    /// None yet; each will have this MAC.
    #[must_use]
    pub fn with_mac(mac: [u8; 6]) -> KernelTaps {
        KernelTaps {
            mac: Some(mac),
            ..KernelTaps::default()
        }
    }

    /// The TAP of a VLAN, for frames.
    #[must_use]
    pub fn of(&self, vid: u16) -> Option<&Arc<Tap>> {
        self.all.get(&vid)
    }

    /// All of them, by VLAN.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &Arc<Tap>)> {
        self.all.iter().map(|(vid, tap)| (*vid, tap))
    }

    /// One that another process has left, if it is here still. False: it is let go of.
    pub fn adopt(&mut self, vid: u16, tap: Tap) -> bool {
        let here = is_here(&tap).unwrap_or(false);
        if here {
            self.all.insert(vid, Arc::new(tap));
        }
        here
    }
}

/// `EBADFD`: what a descriptor says whose device was deleted.
const GONE: i32 = 77;

/// Nobody has deleted it, or moved it to another namespace, where it is none of the kernel's that routes.
///
/// # Errors
/// It can't be looked at.
pub fn is_here(tap: &Tap) -> std::io::Result<bool> {
    match tap.current_name() {
        Err(e) if e.raw_os_error() == Some(GONE) => return Ok(false),
        name => name?,
    };
    Ok(netns::id_of(tap.netns()?.as_fd())? == netns::current_id()?)
}

fn found(tap: &Tap) -> std::io::Result<TapOf> {
    let control = ControlSocket::open()?;
    let name = tap.current_name()?;
    Ok(TapOf {
        device: control.link(&name)?.ifindex,
        mac: control.mac(&name)?,
    })
}

impl TapMaker for KernelTaps {
    fn make(&mut self, vid: u16) -> Result<TapOf, String> {
        let name = format!("vlan{vid}");
        let words = |e: std::io::Error| format!("{name}: {e}");
        if let Some(tap) = self.all.get(&vid) {
            // of one that can't be looked at nobody says that it is gone: it goes with its descriptor, addresses and all
            if is_here(tap).map_err(words)? {
                return found(tap).map_err(words);
            }
            self.all.remove(&vid);
        }
        // its own words name the device
        let tap = Tap::open(&name, TapOptions::default()).map_err(|e| e.to_string())?;
        let mut of = found(&tap).map_err(words)?;
        if let Some(mac) = self.mac {
            Requests::open()
                .and_then(|mut r| r.link_mac(of.device, &mac))
                .map_err(|e| format!("{name}: {e}"))?;
            of.mac = mac;
        }
        self.all.insert(vid, Arc::new(tap));
        Ok(of)
    }

    fn remove(&mut self, vid: u16) {
        self.all.remove(&vid);
    }
}
