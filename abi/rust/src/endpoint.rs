//! All rings of one attach, for either side.
//!
//! Made anew after every acknowledged attach or reset: the indices start at zero then.

use crate::layout::{Layout, LayoutError};
use crate::memory::{Arena, Memory};
use crate::raw;
use crate::ring::{Consumer, Producer};

/// One command/completion pair as the driver holds it.
#[derive(Debug)]
pub struct DriverPair<M> {
    /// Commands to the device.
    pub cmd: Producer<M>,
    /// Completions from it.
    pub cpl: Consumer<M>,
}

/// The driver's ends. The parts may go to different threads.
#[derive(Debug)]
pub struct DriverRings<M> {
    /// Command pairs; 0 is for synchronous work, the others for bulk.
    pub pairs: Vec<DriverPair<M>>,
    /// Events.
    pub event: Consumer<M>,
    /// Packets to the CPU.
    pub rx: Consumer<M>,
    /// Packets from the CPU.
    pub tx: Producer<M>,
    /// Memory for long bodies and results.
    pub arena: Arena<M>,
    /// Epoch of this attach: into every command and TX packet.
    pub epoch: u32,
}

/// One command/completion pair as the device holds it.
#[derive(Debug)]
pub struct DevicePair<M> {
    /// Commands from the driver.
    pub cmd: Consumer<M>,
    /// Completions to it.
    pub cpl: Producer<M>,
}

/// The device's ends.
#[derive(Debug)]
pub struct DeviceRings<M> {
    /// Command pairs; 0 is for synchronous work, the others for bulk.
    pub pairs: Vec<DevicePair<M>>,
    /// Events.
    pub event: Producer<M>,
    /// Packets to the CPU.
    pub rx: Producer<M>,
    /// Packets from the CPU.
    pub tx: Consumer<M>,
    /// The driver's memory.
    pub arena: Arena<M>,
    /// Epoch of this attach: other commands are `TND_ST_STALE`, other TX packets are dropped.
    pub epoch: u32,
}

impl<M: Memory + Clone> DriverRings<M> {
    /// The driver's ends of a checked layout.
    pub fn new(mem: &M, layout: &Layout, epoch: u32) -> Result<Self, LayoutError> {
        let pairs = (0..layout.cmd_pairs)
            .map(|p| {
                Ok(DriverPair {
                    cmd: Producer::new(mem.clone(), layout.need(raw::TND_RING_CMD, p)?),
                    cpl: Consumer::new(mem.clone(), layout.need(raw::TND_RING_CPL, p)?),
                })
            })
            .collect::<Result<_, LayoutError>>()?;
        Ok(DriverRings {
            pairs,
            event: Consumer::new(mem.clone(), layout.need(raw::TND_RING_EVENT, 0)?),
            rx: Consumer::new(mem.clone(), layout.need(raw::TND_RING_RX, 0)?),
            tx: Producer::new(mem.clone(), layout.need(raw::TND_RING_TX, 0)?),
            arena: Arena::new(mem.clone(), layout.arena.0, layout.arena.1),
            epoch,
        })
    }

    /// Heeds the features that both sides agreed on.
    pub fn set_features(&mut self, features: u64) {
        let hint = features & raw::TND_FEAT_DOORBELL_HINT != 0;
        for pair in &mut self.pairs {
            pair.cmd.set_hint(hint);
        }
        self.tx.set_hint(hint);
    }
}

impl<M: Memory + Clone> DeviceRings<M> {
    /// The device's ends of a layout.
    pub fn new(mem: &M, layout: &Layout, epoch: u32) -> Result<Self, LayoutError> {
        let pairs = (0..layout.cmd_pairs)
            .map(|p| {
                Ok(DevicePair {
                    cmd: Consumer::new(mem.clone(), layout.need(raw::TND_RING_CMD, p)?),
                    cpl: Producer::new(mem.clone(), layout.need(raw::TND_RING_CPL, p)?),
                })
            })
            .collect::<Result<_, LayoutError>>()?;
        Ok(DeviceRings {
            pairs,
            event: Producer::new(mem.clone(), layout.need(raw::TND_RING_EVENT, 0)?),
            rx: Producer::new(mem.clone(), layout.need(raw::TND_RING_RX, 0)?),
            tx: Consumer::new(mem.clone(), layout.need(raw::TND_RING_TX, 0)?),
            arena: Arena::new(mem.clone(), layout.arena.0, layout.arena.1),
            epoch,
        })
    }

    /// Heeds the features that both sides agreed on.
    pub fn set_features(&mut self, features: u64) {
        let hint = features & raw::TND_FEAT_DOORBELL_HINT != 0;
        for pair in &mut self.pairs {
            pair.cpl.set_hint(hint);
        }
        self.event.set_hint(hint);
        self.rx.set_hint(hint);
    }
}
