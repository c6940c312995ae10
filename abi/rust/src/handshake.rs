//! The header's words: requests, acknowledgements, state. See `abi/README.md`, *Attach*.
//!
//! The driver's side of a request: [`request`], ring doorbell 0, wait until [`acknowledged`]. The
//! device's side: [`pending_request`] after doorbell 0 or now and then, do it, [`acknowledge`],
//! ring doorbell 0 of the driver.

use std::mem::offset_of;

use crate::memory::{Memory, read_struct};
use crate::raw;

const STATE: usize = offset_of!(raw::tnd_header, device_state);
const FAIL_REASON: usize = offset_of!(raw::tnd_header, fail_reason);
const EPOCH: usize = offset_of!(raw::tnd_header, epoch);
const REQ_OP: usize = offset_of!(raw::tnd_header, req_op);
const REQ_SEQ: usize = offset_of!(raw::tnd_header, req_seq);
const ACK_SEQ: usize = offset_of!(raw::tnd_header, ack_seq);
const ACK_STATUS: usize = offset_of!(raw::tnd_header, ack_status);
const ACK_EPOCH: usize = offset_of!(raw::tnd_header, ack_epoch);
const DRIVER_NAME: usize = offset_of!(raw::tnd_header, driver_name);
const DEVICE_PEER: usize = offset_of!(raw::tnd_header, device_peer);
const DRIVER_PEER: usize = offset_of!(raw::tnd_header, driver_peer);
const FEATURES_ACCEPTED: usize = offset_of!(raw::tnd_header, features_accepted);

/// What a driver asks of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// `TND_REQ_ATTACH_COLD`: tables emptied.
    AttachCold,
    /// `TND_REQ_ATTACH_WARM`: tables kept.
    AttachWarm,
    /// `TND_REQ_DETACH`: tables kept, rings dead.
    Detach,
    /// `TND_REQ_RESET`: tables emptied, on a live region.
    Reset,
}

impl Request {
    /// The ABI's number.
    pub fn to_raw(self) -> u32 {
        match self {
            Request::AttachCold => raw::TND_REQ_ATTACH_COLD,
            Request::AttachWarm => raw::TND_REQ_ATTACH_WARM,
            Request::Detach => raw::TND_REQ_DETACH,
            Request::Reset => raw::TND_REQ_RESET,
        }
    }

    /// `None` for a number of a later version.
    pub fn from_raw(op: u32) -> Option<Self> {
        Some(match op {
            raw::TND_REQ_ATTACH_COLD => Request::AttachCold,
            raw::TND_REQ_ATTACH_WARM => Request::AttachWarm,
            raw::TND_REQ_DETACH => Request::Detach,
            raw::TND_REQ_RESET => Request::Reset,
            _ => return None,
        })
    }

    /// True for those that begin an epoch and empty the rings.
    pub fn attaches(self) -> bool {
        self != Request::Detach
    }
}

/// The device's answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// `TND_ST_*`.
    pub status: u16,
    /// Epoch that the request began.
    pub epoch: u32,
}

/// Driver: who it is and which features it takes; before an attach.
pub fn introduce(mem: &impl Memory, name: &str, features: u64) {
    let mut field = [0u8; raw::TND_NAME_SIZE];
    crate::set_name(&mut field, name);
    mem.write(DRIVER_NAME, &field);
    mem.write(FEATURES_ACCEPTED, &features.to_le_bytes());
}

/// Driver: writes a request; the answer is its sequence number. One at a time.
pub fn request(mem: &impl Memory, request: Request) -> u32 {
    let seq = mem.load_acquire(REQ_SEQ).wrapping_add(1);
    mem.store_release(REQ_OP, request.to_raw());
    mem.store_release(REQ_SEQ, seq);
    seq
}

/// Driver: the acknowledgement of request `seq`, once it is there.
pub fn acknowledged(mem: &impl Memory, seq: u32) -> Option<Ack> {
    if mem.load_acquire(ACK_SEQ) != seq {
        return None;
    }
    Some(Ack {
        status: u16::try_from(mem.load_acquire(ACK_STATUS)).unwrap_or(u16::MAX),
        epoch: mem.load_acquire(ACK_EPOCH),
    })
}

/// Device: a request newer than `last_seq` (the last one acknowledged), as sequence and raw number.
pub fn pending_request(mem: &impl Memory, last_seq: u32) -> Option<(u32, u32)> {
    let seq = mem.load_acquire(REQ_SEQ);
    (seq != last_seq).then(|| (seq, mem.load_acquire(REQ_OP)))
}

/// Device: answers request `seq`. Everything the request did must be in place before.
pub fn acknowledge(mem: &impl Memory, seq: u32, ack: Ack) {
    mem.store_release(ACK_STATUS, u32::from(ack.status));
    mem.store_release(ACK_EPOCH, ack.epoch);
    mem.store_release(ACK_SEQ, seq);
}

/// What the driver calls itself, printable.
pub fn driver_name(mem: &impl Memory) -> String {
    let h: raw::tnd_header = read_struct(mem, 0);
    crate::get_name(&h.driver_name)
}

/// Device: the sequence of the last request, answered or not, and whether it was answered.
pub fn last_request(mem: &impl Memory) -> (u32, bool) {
    let seq = mem.load_acquire(REQ_SEQ);
    (seq, seq == mem.load_acquire(ACK_SEQ))
}

/// Device: the peer that its doorbells are rung at, on carriers that address them.
pub fn set_device_peer(mem: &impl Memory, peer: u16) {
    mem.store_release(DEVICE_PEER, u32::from(peer) + 1);
}

/// Driver: as [`set_device_peer`], before a request.
pub fn set_driver_peer(mem: &impl Memory, peer: u16) {
    mem.store_release(DRIVER_PEER, u32::from(peer) + 1);
}

/// Peers of the device and of the driver, as they stand in the header.
pub fn peers(mem: &impl Memory) -> (Option<u16>, Option<u16>) {
    let peer = |at| u16::try_from(mem.load_acquire(at).checked_sub(1)?).ok();
    (peer(DEVICE_PEER), peer(DRIVER_PEER))
}

/// The epoch as it stands in the header: a device that takes a region over goes on from there.
pub fn epoch(mem: &impl Memory) -> u32 {
    mem.load_acquire(EPOCH)
}

/// True for a region that a device has written its frame into.
pub fn has_frame(mem: &impl Memory) -> bool {
    u64::from(mem.load_acquire(4)) << 32 | u64::from(mem.load_acquire(0)) == raw::TND_MAGIC
}

/// Device: `TND_DEV_*`, with the reason when it is `TND_DEV_FAILED`.
pub fn set_state(mem: &impl Memory, state: u32, fail_reason: u32) {
    mem.store_release(FAIL_REASON, fail_reason);
    mem.store_release(STATE, state);
}

/// Device: the current epoch.
pub fn set_epoch(mem: &impl Memory, epoch: u32) {
    mem.store_release(EPOCH, epoch);
}

/// `TND_DEV_*` and `TND_FAIL_*`.
pub fn state(mem: &impl Memory) -> (u32, u32) {
    let state = mem.load_acquire(STATE);
    (state, mem.load_acquire(FAIL_REASON))
}

/// Features offered and accepted, as they stand in the header.
pub fn features(mem: &impl Memory) -> (u64, u64) {
    let h: raw::tnd_header = read_struct(mem, 0);
    (h.features_offered, h.features_accepted)
}

/// A reason in words, for logs.
pub fn fail_reason_text(reason: u32) -> &'static str {
    match reason {
        raw::TND_FAIL_NONE => "no failure",
        raw::TND_FAIL_RING_INDEX => "corrupt ring index",
        raw::TND_FAIL_SEQUENCE => "command sequence broken",
        raw::TND_FAIL_BOUNDS => "arena offset out of bounds",
        raw::TND_FAIL_CPL_FULL => "completions not reaped",
        raw::TND_FAIL_INTERNAL => "device reset itself",
        _ => "unknown reason",
    }
}
