//! The frame: where everything lies in a region.
//!
//! ```text
//!  0      header page: struct tnd_header, then the ring directory
//!  4096   index lines: two of 64 bytes per ring
//!  …      entries of every ring, page aligned
//!  …      arena (driver's)
//!  …      platform (read only)
//!  size   page aligned
//! ```
//!
//! The device writes a frame with [`Layout::new`] + [`Layout::write`]; the driver reads it with
//! [`Layout::read`], which trusts nothing: whatever it answers lies within the region.

use crate::memory::{Memory, read_struct, write_struct};
use crate::raw;
use crate::ring::RingLayout;

const PAGE: usize = 4096;
const LINE: usize = 64;
/// The ring directory starts here: behind the header's fields, in the same page.
const RING_DIR: usize = 512;
/// A region larger than this is refused: 1 GiB.
pub const REGION_MAX: usize = 1 << 30;

const _: () = assert!(RING_DIR >= std::mem::size_of::<raw::tnd_header>());
const _: () =
    assert!(RING_DIR + raw::TND_MAX_RINGS * std::mem::size_of::<raw::tnd_ring_info>() <= 2 * PAGE);

/// Doorbell 0 of each direction stands for the header's words: a request to the device, an
/// acknowledgement or a change of state to the driver. The rings' own numbers follow.
pub const DOORBELL_HEADER: u32 = 0;

/// What a device wants in its region. All counts in entries, powers of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutSpec {
    /// Entries of each command pair (command ring and completion ring alike); at least two pairs.
    pub pairs: Vec<u32>,
    /// Entries of the event ring.
    pub events: u32,
    /// Entries of the RX ring.
    pub rx: u32,
    /// Entries of the TX ring.
    pub tx: u32,
    /// Bytes of a packet entry, meta included; a multiple of 64.
    pub packet_entry: usize,
    /// Bytes of the driver's arena.
    pub arena: usize,
    /// `struct tnd_platform` and what follows it (ports, EEPROM image).
    pub platform: Vec<u8>,
    /// `TND_FEAT_*` offered.
    pub features: u64,
    /// Name of the device, cut to 31 bytes.
    pub device_name: String,
}

impl Default for LayoutSpec {
    /// Two pairs of 256 and 4096, 4096 events, 1024 RX and 512 TX entries of 64 + 10240 bytes, an
    /// arena of 4 MiB: about 20 MiB.
    fn default() -> Self {
        LayoutSpec {
            pairs: vec![256, 4096],
            events: 4096,
            rx: 1024,
            tx: 512,
            packet_entry: raw::TND_PKT_META_SIZE + 10240,
            arena: 4 << 20,
            platform: Vec::new(),
            features: raw::TND_FEAT_LEASE
                | raw::TND_FEAT_RESYNC
                | raw::TND_FEAT_ACTIVITY
                | raw::TND_FEAT_HW_LEARNING
                | raw::TND_FEAT_DOORBELL_HINT,
            device_name: "tandem".into(),
        }
    }
}

/// Why a frame can't be made or can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A wish that the ABI can't express.
    #[error("region layout: {0}")]
    Spec(String),
    /// Not a Tandem region.
    #[error("not a Tandem region: magic is {0:#018x}, wanted {want:#018x}", want = raw::TND_MAGIC)]
    Magic(u64),
    /// A frame of another major version.
    #[error("device speaks ABI {0}.x, this driver {want}.x", want = raw::TND_ABI_MAJOR)]
    Version(u16),
    /// Something in the header or directory lies outside of the region or can't be.
    #[error("region header: {0}")]
    Header(String),
}

/// Where everything lies; every part was checked against the region's size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the region.
    pub size: usize,
    /// All rings, in directory order.
    pub rings: Vec<RingLayout>,
    /// Number of command pairs, at least two.
    pub cmd_pairs: u16,
    /// Offset and bytes of the arena.
    pub arena: (usize, usize),
    /// Offset and bytes of the platform description.
    pub platform: (usize, usize),
}

fn align(n: usize, to: usize) -> Option<usize> {
    Some(n.checked_add(to - 1)? / to * to)
}

/// True for rings that the driver fills.
pub fn driver_produces(kind: u16) -> bool {
    matches!(kind, raw::TND_RING_CMD | raw::TND_RING_TX)
}

impl Layout {
    /// Places everything.
    pub fn new(spec: &LayoutSpec) -> Result<Layout, LayoutError> {
        let bad = |m: String| LayoutError::Spec(m);
        let pairs = u16::try_from(spec.pairs.len()).unwrap_or(u16::MAX);
        let mut want: Vec<(u16, u16, usize, u32)> = Vec::new();
        for (pair, &n) in (0u16..).zip(&spec.pairs) {
            want.push((raw::TND_RING_CMD, pair, raw::TND_CMD_SIZE, n));
            want.push((raw::TND_RING_CPL, pair, raw::TND_CPL_SIZE, n));
        }
        want.push((raw::TND_RING_EVENT, 0, raw::TND_EVENT_SIZE, spec.events));
        want.push((raw::TND_RING_RX, 0, spec.packet_entry, spec.rx));
        want.push((raw::TND_RING_TX, 0, spec.packet_entry, spec.tx));
        if pairs < 2 || want.len() > raw::TND_MAX_RINGS {
            return Err(bad(format!("{pairs} command pairs, need 2 to 30")));
        }
        if spec.packet_entry < raw::TND_PKT_META_SIZE + LINE {
            return Err(bad(format!(
                "packet entries of {} bytes",
                spec.packet_entry
            )));
        }

        let too_large = || bad(format!("more than {REGION_MAX} bytes"));
        let dir_end = RING_DIR + want.len() * std::mem::size_of::<raw::tnd_ring_info>();
        let mut at = align(dir_end, PAGE).ok_or_else(too_large)?;
        let lines = at;
        at += want.len() * 2 * LINE;
        let (mut to_device, mut to_driver) = (DOORBELL_HEADER, DOORBELL_HEADER);
        let mut rings = Vec::new();
        for (i, (kind, pair, entry_size, entry_count)) in want.into_iter().enumerate() {
            if !entry_count.is_power_of_two()
                || entry_count > 1 << 24
                || !entry_size.is_multiple_of(LINE)
            {
                return Err(bad(format!(
                    "ring of {entry_count} entries of {entry_size} bytes: need a power of two and a multiple of 64"
                )));
            }
            let bell = if driver_produces(kind) {
                &mut to_device
            } else {
                &mut to_driver
            };
            *bell += 1;
            at = align(at, PAGE).ok_or_else(too_large)?;
            rings.push(RingLayout {
                kind,
                pair,
                entry_size,
                entry_count,
                doorbell: *bell,
                prod: lines + 2 * i * LINE,
                cons: lines + (2 * i + 1) * LINE,
                entries: at,
            });
            at = entry_size
                .checked_mul(entry_count as usize)
                .and_then(|n| n.checked_add(at))
                .ok_or_else(too_large)?;
        }
        let arena = align(at, PAGE).ok_or_else(too_large)?;
        let platform = arena
            .checked_add(spec.arena)
            .and_then(|n| align(n, PAGE))
            .ok_or_else(too_large)?;
        let size = platform
            .checked_add(spec.platform.len())
            .and_then(|n| align(n, PAGE))
            .filter(|&n| n <= REGION_MAX)
            .ok_or_else(too_large)?;
        Ok(Layout {
            size,
            rings,
            cmd_pairs: pairs,
            arena: (arena, spec.arena),
            platform: (platform, spec.platform.len()),
        })
    }

    /// Writes header, directory and platform into a zeroed region; the magic comes last, and then
    /// the state [`TND_DEV_READY`](raw::TND_DEV_READY).
    pub fn write(&self, mem: &impl Memory, spec: &LayoutSpec) {
        self.write_absent(mem, spec);
        crate::handshake::set_state(mem, raw::TND_DEV_READY, raw::TND_FAIL_NONE);
    }

    /// The same with the state [`TND_DEV_ABSENT`](raw::TND_DEV_ABSENT), over whatever the region
    /// holds: the words of requests and acknowledgements stay as they are, so that a driver that
    /// lives on loses no count.
    pub fn write_absent(&self, mem: &impl Memory, spec: &LayoutSpec) {
        let mut header = raw::tnd_header {
            abi_major: raw::TND_ABI_MAJOR,
            abi_minor: raw::TND_ABI_MINOR,
            header_size: raw::TND_HEADER_SIZE as u32,
            region_size: self.size as u64,
            features_offered: spec.features,
            device_state: raw::TND_DEV_ABSENT,
            ring_count: self.rings.len() as u32,
            ring_dir_offset: RING_DIR as u32,
            ring_dir_stride: std::mem::size_of::<raw::tnd_ring_info>() as u32,
            cmd_pairs: u32::from(self.cmd_pairs),
            arena_offset: self.arena.0 as u64,
            arena_size: self.arena.1 as u64,
            platform_offset: self.platform.0 as u64,
            platform_size: self.platform.1 as u64,
            ..Default::default()
        };
        crate::set_name(&mut header.device_name, &spec.device_name);
        let own = std::mem::offset_of!(raw::tnd_header, req_op);
        mem.write(
            0,
            zerocopy::IntoBytes::as_bytes(&header)
                .get(..own)
                .unwrap_or(&[]),
        );
        for (i, r) in self.rings.iter().enumerate() {
            let info = raw::tnd_ring_info {
                kind: r.kind,
                pair: r.pair,
                entry_size: r.entry_size as u32,
                entry_count: r.entry_count,
                doorbell: r.doorbell,
                prod_offset: r.prod as u64,
                cons_offset: r.cons as u64,
                entries_offset: r.entries as u64,
                ..Default::default()
            };
            write_struct(mem, RING_DIR + i * std::mem::size_of_val(&info), &info);
        }
        mem.write(self.platform.0, &spec.platform);
        mem.store_release(4, (raw::TND_MAGIC >> 32) as u32);
        mem.store_release(0, raw::TND_MAGIC as u32);
    }

    /// Reads and checks a frame. Rings of kinds this side doesn't know are left out.
    pub fn read(mem: &impl Memory) -> Result<Layout, LayoutError> {
        let bad = |m: String| LayoutError::Header(m);
        let len = mem.len();
        if len < PAGE {
            return Err(bad(format!("region of {len} bytes, need at least {PAGE}")));
        }
        let magic = u64::from(mem.load_acquire(4)) << 32 | u64::from(mem.load_acquire(0));
        if magic != raw::TND_MAGIC {
            return Err(LayoutError::Magic(magic));
        }
        let h: raw::tnd_header = read_struct(mem, 0);
        if h.abi_major != raw::TND_ABI_MAJOR {
            return Err(LayoutError::Version(h.abi_major));
        }
        if h.region_size > len as u64 {
            return Err(bad(format!(
                "says {} bytes, the region has {len}",
                h.region_size
            )));
        }
        // from here on offsets are checked against what the header claims, which is ≤ len
        let size = h.region_size as usize;
        let range = |what: &str, off: u64, bytes: u64, to: u64| -> Result<usize, LayoutError> {
            let end = off.checked_add(bytes);
            if !off.is_multiple_of(to) || end.is_none_or(|e| e > size as u64) {
                return Err(bad(format!(
                    "{what} at {off} with {bytes} bytes does not lie in {size} bytes"
                )));
            }
            Ok(off as usize)
        };
        let stride = h.ring_dir_stride as usize;
        let info_size = std::mem::size_of::<raw::tnd_ring_info>();
        if h.ring_count as usize > raw::TND_MAX_RINGS || stride < info_size {
            return Err(bad(format!(
                "{} rings with a stride of {stride}",
                h.ring_count
            )));
        }
        let dir = range(
            "ring directory",
            u64::from(h.ring_dir_offset),
            u64::from(h.ring_count) * stride as u64,
            8,
        )?;
        let mut rings = Vec::new();
        for i in 0..h.ring_count as usize {
            let info: raw::tnd_ring_info = read_struct(mem, dir + i * stride);
            let min = match info.kind {
                raw::TND_RING_CMD => raw::TND_CMD_SIZE,
                raw::TND_RING_CPL => raw::TND_CPL_SIZE,
                raw::TND_RING_EVENT => raw::TND_EVENT_SIZE,
                raw::TND_RING_RX | raw::TND_RING_TX => raw::TND_PKT_META_SIZE + LINE,
                _ => continue,
            };
            let entry_size = info.entry_size as usize;
            if !info.entry_count.is_power_of_two()
                || !entry_size.is_multiple_of(LINE)
                || entry_size < min
            {
                return Err(bad(format!(
                    "ring {i} has {} entries of {entry_size} bytes",
                    info.entry_count
                )));
            }
            let bytes = u64::from(info.entry_size) * u64::from(info.entry_count);
            rings.push(RingLayout {
                kind: info.kind,
                pair: info.pair,
                entry_size,
                entry_count: info.entry_count,
                doorbell: info.doorbell,
                prod: range("producer line", info.prod_offset, 64, 64)?,
                cons: range("consumer line", info.cons_offset, 64, 64)?,
                entries: range("entries", info.entries_offset, bytes, 64)?,
            });
        }
        let layout = Layout {
            size,
            rings,
            cmd_pairs: u16::try_from(h.cmd_pairs).unwrap_or(0),
            arena: (
                range("arena", h.arena_offset, h.arena_size, 8)?,
                h.arena_size as usize,
            ),
            platform: (
                range("platform", h.platform_offset, h.platform_size, 8)?,
                h.platform_size as usize,
            ),
        };
        if !(2..=30).contains(&layout.cmd_pairs) {
            return Err(bad(format!("{} command pairs, need 2 to 30", h.cmd_pairs)));
        }
        for pair in 0..layout.cmd_pairs {
            layout.need(raw::TND_RING_CMD, pair)?;
            layout.need(raw::TND_RING_CPL, pair)?;
        }
        for kind in [raw::TND_RING_EVENT, raw::TND_RING_RX, raw::TND_RING_TX] {
            layout.need(kind, 0)?;
        }
        Ok(layout)
    }

    /// The ring of a kind and pair.
    pub fn ring(&self, kind: u16, pair: u16) -> Option<RingLayout> {
        self.rings
            .iter()
            .copied()
            .find(|r| r.kind == kind && r.pair == pair)
    }

    pub(crate) fn need(&self, kind: u16, pair: u16) -> Result<RingLayout, LayoutError> {
        self.ring(kind, pair).ok_or_else(|| {
            LayoutError::Header(format!(
                "no ring of kind {kind}, pair {pair} in the directory"
            ))
        })
    }

    /// Number of doorbells towards the device and towards the driver, the header's included.
    pub fn doorbells(&self) -> (u32, u32) {
        let top = |to_device| {
            self.rings
                .iter()
                .filter(|r| driver_produces(r.kind) == to_device)
                .map(|r| r.doorbell)
                .max()
                .unwrap_or(DOORBELL_HEADER)
                .saturating_add(1)
        };
        (top(true), top(false))
    }

    /// Empties all rings: part of the device's work on an attach or reset, while the driver waits
    /// for the acknowledgement and touches no ring.
    pub fn clear_rings(&self, mem: &impl Memory) {
        for r in &self.rings {
            mem.write(r.prod, &[0; LINE]);
            mem.write(r.cons, &[0; LINE]);
        }
    }
}
