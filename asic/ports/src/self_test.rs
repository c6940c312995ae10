//! Is AF_XDP on this kernel as good as a packet socket? Tried out before the first port is opened by it.
//!
//! ```text
//!   a namespace of its own, gone afterwards
//!   ┌────────────────────────────────────────────────────────────────────┐
//!   │ packet socket ── t1 ═══ veth ═══ t0 ── the very program and socket │
//!   │ BPF: vlan_push ──┘                     code of a port              │
//!   └────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Proved, both ways where it has two: short frames and such of a full MTU (several chunks) arrive byte by byte; a tag
//! that lies beside its frame is put into it, with its TPID; a checksum that is not computed yet is marked, wherever in the
//! frame it is, and a complete one is not; a checksum left undone is complete when the frame leaves.
//!
//! Not proved: the driver of a NIC (its own frames are on a wire, where tags and checksums are in their places; its
//! queues and its VLAN offload are looked at when a port is opened), and how fast it is.

use std::io;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tandem_linux::ifreq::ControlSocket;
use tandem_linux::netlink::Requests;
use tandem_linux::xdp_program::Layout;
use tandem_linux::{netns, packet_socket, xdp};
use tandem_packet::{Frame, HEADROOM, Offload, PartialChecksum, checksum};

use crate::SCRATCH;
use crate::spec::PortKind;
use crate::xdp::{XdpRx, XdpTx, connect};

const MTU: u32 = 9216;
/// All of it takes some milliseconds: this long only where the machine has other work, or where a frame never comes. Who waits for
/// the daemon waits longer.
const PATIENCE: Duration = Duration::from_secs(15);
/// Behind a frame that is not as it should be, the right one is hardly to come.
const AFTER_A_WRONG_ONE: Duration = Duration::from_millis(500);
/// Whoever waits longer says what for.
const SILENT: Duration = Duration::from_secs(1);

/// What came of it; it is done once in a process, at the first call. Afterwards a process may lose the right to make
/// namespaces, so a daemon calls this before that.
pub fn passed() -> Result<&'static Layout, String> {
    static RESULT: OnceLock<Result<Layout, String>> = OnceLock::new();
    RESULT
        .get_or_init(|| run().map_err(|e| format!("AF_XDP self-test: {e}")))
        .as_ref()
        .map_err(Clone::clone)
}

/// Does it while the right is there, for ports that will ask; each of them says what came of it.
pub fn ahead<'a>(mut kinds: impl Iterator<Item = &'a PortKind>) {
    if kinds.any(|kind| matches!(kind, PortKind::Packet { xdp: true, .. })) {
        let _ = passed();
    }
}

fn run() -> io::Result<Layout> {
    let layout = Layout::of_kernel()?;
    netns::run_in_new(|| in_namespace(&layout))?;
    Ok(layout)
}

fn in_namespace(layout: &Layout) -> io::Result<()> {
    Requests::open()
        .and_then(|mut r| r.add_veth(["t0", "t1"], MTU))
        .map_err(|e| io::Error::other(e.to_string()))?;
    let control = ControlSocket::open()?;
    for iface in ["t0", "t1"] {
        control.set_up(iface, true)?;
    }
    let (port, far) = (control.link("t0")?.ifindex, control.link("t1")?.ifindex);
    let (rx, tx, attached) = connect(port, Some(layout)).map_err(io::Error::other)?;
    let (far_rx, far_tx) = packet_socket::open(far, MTU)?;
    let mut bench = Bench {
        rx,
        tx,
        far_rx,
        far_tx,
        far,
        scratch: vec![0; SCRATCH],
        waits: Waits::new(),
    };
    for length in [60, 1514, 1792, 1793, 4000, MTU as usize + 14] {
        bench.plain(length)?;
    }
    for tag in [(0x8100, 0x2064), (0x88a8, 7), (0x8100, 0)] {
        bench.tag(tag)?;
    }
    for start in [34, 54, 84] {
        bench.partial(start, 16)?;
    }
    drop(attached);
    Ok(())
}

/// A frame of an EtherType that nobody answers.
fn sample(length: usize) -> Vec<u8> {
    let head = [2, 0, 0, 0, 0, 0x71, 2, 0, 0, 0, 0, 0x72, 0x88, 0xb5];
    let body = (0..length).map(|n| (n * 7 % 251) as u8);
    head.into_iter().chain(body).take(length).collect()
}

struct Bench {
    rx: XdpRx,
    tx: XdpTx,
    far_rx: packet_socket::PacketRx,
    far_tx: packet_socket::PacketTx,
    far: u32,
    scratch: Vec<u8>,
    waits: Waits,
}

/// How long the self-test waits yet: it has one end, however many frames there are.
struct Waits {
    begin: Instant,
    end: Instant,
    /// Behind a frame that was not as it should be.
    soon: Option<Instant>,
    told: bool,
}

impl Waits {
    fn new() -> Waits {
        let begin = Instant::now();
        Waits {
            begin,
            end: begin + PATIENCE,
            soon: None,
            told: false,
        }
    }

    /// A frame came that is not the one waited for.
    fn wrong(&mut self) {
        self.soon = self.soon.or(Some(Instant::now() + AFTER_A_WRONG_ONE));
    }

    fn right(&mut self) {
        self.soon = None;
    }

    /// Waits a little for what is to come; false: no longer.
    fn on(&mut self, fd: std::os::fd::BorrowedFd<'_>, what: &str) -> bool {
        let now = Instant::now();
        if now >= self.end || self.soon.is_some_and(|soon| now >= soon) {
            return false;
        }
        if !self.told && now.duration_since(self.begin) >= SILENT {
            self.told = true;
            tracing::info!("AF_XDP self-test: it waits for {what}");
        }
        wait(fd);
        true
    }
}

impl Bench {
    fn plain(&mut self, length: usize) -> io::Result<()> {
        let frame = sample(length);
        self.far_tx.queue(&[0; packet_socket::VNET_HDR_LEN], &frame);
        self.far_tx.flush();
        self.arrives(&frame, None, &format!("a frame of {length} bytes"))?;
        self.leaves(&frame, None, &frame, &format!("{length} bytes"))
    }

    /// A tag that the sender's kernel leaves beside the frame.
    fn tag(&mut self, (tpid, tci): (u16, u16)) -> io::Result<()> {
        let bare = sample(100);
        let program = xdp::load_tag_and_send(self.far, tpid, tci)?;
        xdp::run_once(program.as_fd(), &bare)?;
        let mut tagged = bare;
        tagged.splice(12..12, [tpid.to_be_bytes(), tci.to_be_bytes()].concat());
        self.arrives(&tagged, None, &format!("a tag {tpid:#06x} {tci}"))?;
        self.leaves(&tagged, None, &tagged, &format!("a tag {tpid:#06x} {tci}"))
    }

    fn partial(&mut self, start: u16, offset: u16) -> io::Result<()> {
        let what = format!("a checksum to be computed from byte {start}");
        let csum = PartialChecksum { start, offset };
        let frame = sample(200);
        let offload = Offload {
            csum: Some(csum),
            ..Offload::NONE
        };
        self.far_tx.queue(&offload.to_virtio(), &frame);
        self.far_tx.flush();
        self.arrives(&frame, Some(csum), &what)?;
        let mut complete = frame.clone();
        if !checksum::complete_at(&mut complete, csum) {
            return Err(io::Error::other("the test's own frame is too short"));
        }
        self.leaves(&frame, Some(csum), &complete, &what)
    }

    /// Waits for a frame at the port.
    fn arrives(
        &mut self,
        want: &[u8],
        csum: Option<PartialChecksum>,
        what: &str,
    ) -> io::Result<()> {
        let mut seen = String::from("nothing");
        loop {
            let (mut right, mut wrong) = (false, false);
            self.rx
                .receive(64, &mut self.scratch, &mut |f: &mut Frame<'_>| {
                    if f.bytes().get(..12) != want.get(..12) {
                        return;
                    }
                    let same = f.bytes() == want && f.offload.csum == csum;
                    (right, wrong) = (right | same, wrong | !same);
                    seen = format!("{} bytes, to be computed: {:?}", f.len(), f.offload.csum);
                });
            if right {
                self.waits.right();
                return Ok(());
            }
            if wrong {
                self.waits.wrong();
            }
            if !self.waits.on(self.rx.fd(), what) {
                break;
            }
        }
        Err(io::Error::other(format!(
            "{what} of {} bytes came in as {seen}",
            want.len()
        )))
    }

    /// Sends a frame by the port and waits for what must come out at the far end.
    fn leaves(
        &mut self,
        frame: &[u8],
        csum: Option<PartialChecksum>,
        want: &[u8],
        what: &str,
    ) -> io::Result<()> {
        let mut memory = vec![0; HEADROOM + frame.len()];
        if let Some(room) = memory.get_mut(HEADROOM..) {
            room.copy_from_slice(frame);
        }
        let end = memory.len();
        let offload = Offload {
            csum,
            ..Offload::NONE
        };
        self.tx
            .queue(&Frame::new(&mut memory, HEADROOM, end, offload));
        self.tx.flush();
        loop {
            let (mut right, mut wrong) = (false, false);
            self.far_rx
                .receive(64, &mut self.scratch, HEADROOM, &mut |f| {
                    let bytes = f.mem.get(f.start..f.end).unwrap_or_default();
                    let mut whole = bytes.to_vec();
                    if let Some((tpid, tci)) = f.tag {
                        let at = whole.len().min(12);
                        whole.splice(at..at, [tpid.to_be_bytes(), tci.to_be_bytes()].concat());
                    }
                    right |= whole == want;
                    wrong |= whole != want && whole.get(..12) == want.get(..12);
                });
            if right {
                self.waits.right();
                return Ok(());
            }
            if wrong {
                self.waits.wrong();
            }
            if !self.waits.on(self.far_rx.as_fd(), what) {
                break;
            }
        }
        Err(io::Error::other(format!(
            "{what} did not go out as it should"
        )))
    }
}

fn wait(fd: std::os::fd::BorrowedFd<'_>) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    let _ = poll(
        &mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)],
        Some(&limit),
    );
}
