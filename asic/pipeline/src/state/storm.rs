//! Storm control: how much broadcast, multicast and unknown unicast a port may bring into a bridge.

use tandem_abi::raw;
use tandem_tables::bucket::Bucket;

use super::object::HOT_STORM;
use super::{Port, SetError, State};

/// Kinds of frames: `TND_STORM_*`, from 1.
pub const KINDS: u8 = raw::TND_STORM_UNKNOWN_UC;

/// `struct tnd_storm` without its key. A rate of 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StormConfig {
    /// Packets a second.
    pub rate_packets: u64,
    /// Packets at once.
    pub burst_packets: u64,
    /// Bytes a second, without FCS.
    pub rate_bytes: u64,
    /// Bytes at once.
    pub burst_bytes: u64,
}

/// One kind on one port.
#[derive(Debug, Clone, Copy)]
pub struct Storm {
    /// As set.
    pub config: StormConfig,
    packets: Bucket,
    bytes: Bucket,
    /// Packets that were too many.
    pub dropped: u64,
}

impl Storm {
    fn new(config: StormConfig, dropped: u64) -> Storm {
        Storm {
            config,
            packets: Bucket::new(config.rate_packets, config.burst_packets),
            bytes: Bucket::new(config.rate_bytes, config.burst_bytes),
            dropped,
        }
    }

    /// No limit, and nothing dropped.
    pub fn is_zero(&self) -> bool {
        self.config == StormConfig::default() && self.dropped == 0
    }

    /// May a frame of so many packets and bytes pass? It needs tokens of both, and then takes them.
    pub(crate) fn admit(&mut self, packets: u64, bytes: u64, now_ns: u64, look: bool) -> bool {
        let passes = self.packets.admits(packets, now_ns) && self.bytes.admits(bytes, now_ns);
        if look {
            return passes;
        }
        if passes {
            self.packets.charge(packets, now_ns);
            self.bytes.charge(bytes, now_ns);
        } else {
            self.dropped += packets;
        }
        passes
    }
}

impl Port {
    /// The port's limit of a kind (`TND_STORM_*`), if it ever had one.
    pub fn storm(&self, kind: u8) -> Option<&Storm> {
        self.storms.as_ref()?.get(usize::from(kind).wrapping_sub(1))
    }

    pub(crate) fn storm_mut(&mut self, kind: u8) -> Option<&mut Storm> {
        self.storms
            .as_mut()?
            .get_mut(usize::from(kind).wrapping_sub(1))
    }
}

impl State {
    pub(crate) fn storm_of(&mut self, port: u16, kind: u8) -> Option<&mut Storm> {
        self.port_mut(port).ok()?.storm_mut(kind)
    }

    /// UPDATE of a port's limit; the bucket is full again, the count stays.
    pub fn set_storm(&mut self, port: u16, kind: u8, config: StormConfig) -> Result<(), SetError> {
        if !(1..=KINDS).contains(&kind) {
            return Err(SetError::StormKind(kind));
        }
        let p = self.port_mut(port)?;
        let none = Storm::new(StormConfig::default(), 0);
        p.storms
            .get_or_insert_with(|| Box::new([none; KINDS as usize]));
        if let Some(s) = p.storm_mut(kind) {
            *s = Storm::new(config, s.dropped);
        }
        let mut all = p.storms.iter().flat_map(|s| s.iter());
        let any = all.any(|s| s.config != StormConfig::default());
        p.set_hot(HOT_STORM, any);
        Ok(())
    }
}
