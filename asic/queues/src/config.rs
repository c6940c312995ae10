//! What a chip has for queues.

use crate::class::{CLASSES, Trust};

/// Where frames wait before the crossbar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ingress {
    /// One queue per egress port and class: virtual output queues.
    #[default]
    Voq,
    /// One queue per ingress slice: the head blocks everything behind it.
    Fifo,
}

/// Sizes and rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Front-panel ports, from 1.
    pub ports: u16,
    /// Ports of one slice, 1..=64. The CPU has a slice of its own.
    pub ports_per_slice: u16,
    /// Where frames wait before the crossbar.
    pub ingress: Ingress,
    /// A frame for an idle port leaves at once. Off: every frame goes through queues and crossbar, for measurements.
    pub bypass: bool,
    /// What is believed of a frame.
    pub trust: Trust,
    /// Frame bytes that all queues together hold.
    pub buffer_bytes: u64,
    /// Frame bytes of one queue before the crossbar.
    pub ingress_bytes: u64,
    /// Frame bytes of one queue behind it.
    pub egress_bytes: u64,
    /// Per class: 0 is strict priority, more is the share of what these leave (deficit round robin).
    pub weights: [u16; CLASSES],
}

/// A number that can't be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Slices of no port, or of too many.
    #[error("ports_per_slice is {0}, must be 1..64")]
    Slice(u16),
    /// A queue that holds nothing.
    #[error("{0} is {1}, must be at least 1")]
    Empty(&'static str, u64),
}

impl Config {
    /// The sizes that a profile has if it doesn't say otherwise.
    pub fn new(ports: u16) -> Self {
        Config {
            ports,
            ports_per_slice: 8,
            ingress: Ingress::Voq,
            bypass: true,
            trust: Trust::Both,
            buffer_bytes: 16 << 20,
            ingress_bytes: 512 << 10,
            egress_bytes: 64 << 10,
            weights: [1, 2, 2, 4, 4, 8, 0, 0],
        }
    }

    /// Can it be?
    pub fn check(&self) -> Result<(), ConfigError> {
        if !(1..=64).contains(&self.ports_per_slice) {
            return Err(ConfigError::Slice(self.ports_per_slice));
        }
        for (name, value) in [
            ("buffer_bytes", self.buffer_bytes),
            ("ingress_bytes", self.ingress_bytes),
            ("egress_bytes", self.egress_bytes),
        ] {
            if value == 0 {
                return Err(ConfigError::Empty(name, value));
            }
        }
        Ok(())
    }

    /// Slices with ports; the CPU's comes behind them.
    pub(crate) fn slices(&self) -> usize {
        usize::from(self.ports).div_ceil(usize::from(self.ports_per_slice))
    }

    /// The slice of a port; 0 and what is beyond the ports is the CPU's.
    pub(crate) fn slice(&self, port: u16) -> usize {
        if port == 0 || port > self.ports {
            return self.slices();
        }
        usize::from((port - 1) / self.ports_per_slice)
    }
}
