//! AF_XDP ports: netdevs whose driver runs XDP programs.
//!
//! ```text
//!   netdev ──► XDP program ──► socket's memory ──► XdpRx::receive(…)    in place, note in front
//!              (takes all)      chunks of 2 KiB     └ partial checksum → Offload, tag → pushed into the frame
//!   netdev ◄── kernel ◄──────── copied there ◄───── XdpTx::queue(…), flush()    complete, cut: no offloads
//! ```
//!
//! Faster than a packet socket, and pickier: [`open`] says in one line why a netdev can't have it, and the port is then
//! opened as an AF_PACKET one. What a frame is must not depend on it, so the way is tested first
//! ([`crate::self_test`]).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tandem_linux::ifreq::ControlSocket;
use tandem_linux::xdp_program::{self, Layout};
use tandem_linux::{bpf, packet_socket, xdp, xdp_socket as socket};
use tandem_packet::{Buffer, Frame, HEADROOM, Offload, PartialChecksum, ether, segment};

use crate::port::{RxStats, TxStats};
use crate::self_test;

/// A queue whose last socket was closed just now is free a moment later.
const BUSY_TRIES: u32 = 20;
const BUSY_WAIT: Duration = Duration::from_millis(20);

/// Receiving half.
pub struct XdpRx {
    socket: socket::XdpRx,
    malformed: u64,
}

/// Sending half.
pub struct XdpTx {
    socket: socket::XdpTx,
    mtu: Arc<AtomicU32>,
    scratch: Buffer,
    /// Longer than the netdev's MTU, or could not be cut.
    refused: u64,
}

/// What keeps frames coming: the program leaves the netdev when this is dropped, or the process ends.
pub struct Attached {
    _link: OwnedFd,
    _map: OwnedFd,
    _promiscuous: OwnedFd,
    mtu: Arc<AtomicU32>,
    vlan_off: Option<VlanOff>,
}

/// The receive VLAN offload was turned off here, and is turned on again when this is dropped.
struct VlanOff {
    control: ControlSocket,
    iface: String,
}

impl Attached {
    /// The netdev's MTU in bytes, as it is now: frames that are too long for it are dropped.
    pub fn set_mtu(&self, mtu: u32) {
        self.mtu.store(mtu, Ordering::Relaxed);
    }
}

impl Drop for VlanOff {
    fn drop(&mut self) {
        // A netdev that is gone has none
        let _ = self.control.set_rx_vlan_offload(&self.iface, true);
    }
}

/// Opens a port by AF_XDP; the error says why this netdev can't have it, in one line. In the netdev's namespace.
pub fn open(
    control: &ControlSocket,
    iface: &str,
    ifindex: u32,
) -> Result<(XdpRx, XdpTx, Attached), String> {
    let layout = self_test::passed()?;
    has_one_queue(control, iface)?;
    let driver = control.driver(iface).unwrap_or_default();
    let (rx, tx, mut attached);
    if driver == "veth" {
        (rx, tx, attached) = connect(ifindex, Some(layout)).map_err(|why| {
            format!("{why} (its peer may have more queues than it, or too large an MTU)")
        })?;
    } else {
        let vlan = tags_stay_in_frames(iface)?;
        (rx, tx, attached) = connect(ifindex, None).map_err(|why| {
            format!(
                "{why} (driver {driver} has no native XDP, or not with this MTU and these offloads)"
            )
        })?;
        attached.vlan_off = vlan;
    }
    let copies = if rx.zero_copy() {
        "zero copy"
    } else {
        "copied"
    };
    tracing::info!("{iface}: AF_XDP, {copies}");
    Ok((rx, tx, attached))
}

/// All frames must reach the switch: one socket has one queue.
pub fn has_one_queue(control: &ControlSocket, iface: &str) -> Result<(), String> {
    match control.rx_queues(iface) {
        Ok(1) => Ok(()),
        Ok(n) => Err(format!(
            "{iface} has {n} receive queues, AF_XDP takes one (ethtool -L {iface} combined 1)"
        )),
        Err(e) => Err(format!("{iface}: asking for its queues: {e}")),
    }
}

/// Turns the receive VLAN offload off where it is on.
fn tags_stay_in_frames(iface: &str) -> Result<Option<VlanOff>, String> {
    let control = ControlSocket::open().map_err(|e| e.to_string())?;
    if !control.rx_vlan_offload(iface).unwrap_or(false) {
        return Ok(None);
    }
    let off = control
        .set_rx_vlan_offload(iface, false)
        .and_then(|()| control.rx_vlan_offload(iface));
    match off {
        Ok(false) => Ok(Some(VlanOff {
            control,
            iface: iface.to_owned(),
        })),
        Ok(true) => Err(format!("{iface} takes VLAN tags out of frames, always")),
        Err(e) => Err(format!("{iface} takes VLAN tags out of frames: {e}")),
    }
}

/// Socket, map, program, in the calling thread's namespace. With `layout`: the netdev is a veth.
pub(crate) fn connect(
    ifindex: u32,
    layout: Option<&Layout>,
) -> Result<(XdpRx, XdpTx, Attached), String> {
    let named = |what: &'static str| move |e: std::io::Error| format!("{what}: {e}");
    let map = bpf::socket_map("tnd_port", 1).map_err(named("a map of sockets"))?;
    let program = match layout {
        Some(l) => xdp_program::load_noting(map.as_fd(), ifindex, l),
        None => xdp_program::load_plain(map.as_fd()),
    }
    .map_err(|e| e.to_string())?;
    let mut tries = 0;
    let (rx, tx) = loop {
        match socket::open(ifindex, 0, layout.is_some()) {
            Err(e) if e.kind() == std::io::ErrorKind::ResourceBusy && tries < BUSY_TRIES => {
                tries += 1;
                std::thread::sleep(BUSY_WAIT);
            }
            other => break other.map_err(|e| e.to_string())?,
        }
    };
    bpf::set_socket(map.as_fd(), 0, rx.as_fd()).map_err(named("a map of sockets"))?;
    let promiscuous = packet_socket::promiscuous(ifindex).map_err(|e| e.to_string())?;
    let link =
        xdp::attach_native(program.as_fd(), ifindex).map_err(named("attaching an XDP program"))?;
    let mtu = Arc::new(AtomicU32::new(u32::MAX));
    Ok((
        XdpRx {
            socket: rx,
            malformed: 0,
        },
        XdpTx {
            socket: tx,
            mtu: Arc::clone(&mtu),
            scratch: Buffer::new(),
            refused: 0,
        },
        Attached {
            _link: link,
            _map: map,
            _promiscuous: promiscuous,
            mtu,
            vlan_off: None,
        },
    ))
}

impl XdpRx {
    /// Readable when there are frames.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The driver puts frames into our memory without a copy.
    pub fn zero_copy(&self) -> bool {
        self.socket.zero_copy()
    }

    /// Hands up to `budget` frames to `f`, in the socket's own memory, tags restored.
    #[inline]
    pub fn receive<F>(&mut self, budget: usize, scratch: &mut [u8], f: &mut F) -> usize
    where
        F: FnMut(&mut Frame<'_>),
    {
        let malformed = &mut self.malformed;
        self.socket.receive(budget, scratch, HEADROOM, &mut |rx| {
            let offload = Offload {
                csum: rx
                    .note
                    .csum
                    .map(|(start, offset)| PartialChecksum { start, offset }),
                ..Offload::NONE
            };
            let mut frame = Frame::new(rx.mem, rx.start, rx.end, offload);
            if let Some((tpid, tci)) = rx.note.tag
                && !frame.push_tag(tpid, tci)
            {
                *malformed += 1;
                return;
            }
            f(&mut frame);
        })
    }

    /// Shows the frames that the next [`XdpRx::receive`] will hand out; see [`tandem_linux::xdp_socket`].
    pub fn lookahead(&self, budget: usize, f: impl FnMut(&[u8])) {
        self.socket.lookahead(budget, f);
    }

    /// Lets the headers of the next frames come; see [`tandem_linux::xdp_socket`].
    pub fn bring(&self, budget: usize) {
        self.socket.bring(budget);
    }

    /// Counters; asks the kernel for its own.
    pub fn stats(&mut self) -> RxStats {
        let s = self.socket.stats();
        RxStats {
            frames: s.frames.saturating_sub(self.malformed),
            overrun: s.overrun,
            malformed: s.malformed + self.malformed,
        }
    }
}

impl XdpTx {
    /// Queues a frame, complete and cut.
    #[inline]
    pub fn queue(&mut self, frame: &Frame<'_>) {
        if frame.offload.is_none() {
            let mtu = self.mtu.load(Ordering::Relaxed);
            send(&mut self.socket, mtu, &mut self.refused, frame.bytes());
        } else {
            self.finish(frame);
        }
    }

    fn finish(&mut self, frame: &Frame<'_>) {
        let XdpTx {
            socket,
            mtu,
            scratch,
            refused,
        } = self;
        let mtu = mtu.load(Ordering::Relaxed);
        let mut long = 0;
        let cut = segment::segment_frame(frame, scratch, |bytes| {
            send(socket, mtu, &mut long, bytes);
        });
        *refused += long + u64::from(cut.is_err());
    }

    /// Sends what is queued. False: the netdev takes nothing more for now, and the rest waits.
    #[inline]
    pub fn flush(&mut self) -> bool {
        self.socket.flush()
    }

    /// Counters.
    pub fn stats(&self) -> TxStats {
        let s = self.socket.stats();
        TxStats {
            frames: s.frames,
            dropped: s.dropped + self.refused,
        }
    }
}

/// The kernel asks nobody how long a frame of AF_XDP is; this is what it allows a packet socket (net/packet/af_packet.c):
/// one 802.1Q tag goes on top of the MTU.
#[inline]
fn send(socket: &mut socket::XdpTx, mtu: u32, refused: &mut u64, bytes: &[u8]) {
    let over = bytes.len().saturating_sub(ether::HEADER);
    let tag = if bytes.get(12..14) == Some(&[0x81, 0x00]) {
        ether::TAG
    } else {
        0
    };
    if over > mtu as usize + tag {
        *refused += 1;
    } else {
        socket.queue(bytes);
    }
}
