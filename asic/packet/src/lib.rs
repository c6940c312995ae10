//! Packets: the frame buffer, header views, checksums, segmentation.
//!
//! ```text
//!   Buffer (owned, 64 KiB + headroom) ──frame()──► Frame { bytes, Offload }
//!                                                    │ parse()
//!                                                    ▼
//!                             Parsed { tags, L3 { offsets, protocol }, L4 ports }
//! ```
//!
//! A [`Frame`] borrows memory and may grow to the front, so a tag is pushed or removed by moving the two MAC addresses,
//! never the payload. [`Offload`] says what the producer of a frame left undone (a partial checksum, segmentation), in
//! the meaning of virtio's `virtio_net_hdr`. Nothing here knows tables, ports or time.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod buffer;
pub mod checksum;
pub mod ether;
mod offload;
pub mod parse;
pub mod rewrite;
pub mod segment;

pub use buffer::{Buffer, Frame, HEADROOM, MAX_FRAME};
pub use ether::{EtherType, Mac, Tag};
pub use offload::{Gso, Offload, PartialChecksum, VIRTIO_NET_HDR_LEN};
pub use parse::{BadHeader, Ip4, Ip6, L3, L4, Parsed, parse};
