//! TND_CLS_STORM: how much of a kind a port may bring into a bridge. There from the start, UPDATE only.

use crate::Firmware;
use crate::dump::slots;
use crate::object::{Failure, INVALID, Object, body};
use tandem_abi::raw;
use tandem_pipeline::state::{Port, STORM_KINDS, StormConfig};
use tandem_tables::bucket::MAX;
use zerocopy::IntoBytes;

/// Equal without what it has counted.
#[derive(Debug, Clone)]
pub(crate) struct Storm(raw::tnd_storm);

impl PartialEq for Storm {
    fn eq(&self, other: &Self) -> bool {
        let key = |s: &raw::tnd_storm| (s.port, s.kind);
        key(&self.0) == key(&other.0) && self.config() == other.config()
    }
}

impl Storm {
    fn config(&self) -> StormConfig {
        StormConfig {
            rate_packets: self.0.rate_packets,
            burst_packets: self.0.burst_packets,
            rate_bytes: self.0.rate_bytes,
            burst_bytes: self.0.burst_bytes,
        }
    }

    pub(crate) fn from_state(port: u16, kind: u8, p: &Port) -> Self {
        let (config, dropped) = p
            .storm(kind)
            .map_or_else(Default::default, |s| (s.config, s.dropped));
        Self(raw::tnd_storm {
            struct_size: size_of::<raw::tnd_storm>() as u16,
            port,
            kind,
            rate_packets: config.rate_packets,
            burst_packets: config.burst_packets,
            rate_bytes: config.rate_bytes,
            burst_bytes: config.burst_bytes,
            dropped,
            ..Default::default()
        })
    }
}

impl Object for Storm {
    const CLASS: u16 = raw::TND_CLS_STORM;
    const NAME: &'static str = "storm";
    const FIXED: bool = true;

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 5).map(Self)
    }
    fn normal(self, _: &Firmware) -> Result<Self, Failure> {
        let mut s = self.0;
        for (rate, burst) in [
            (&mut s.rate_packets, &mut s.burst_packets),
            (&mut s.rate_bytes, &mut s.burst_bytes),
        ] {
            if *rate == 0 {
                *burst = 0;
            } else if *rate > MAX || !(1..=MAX).contains(burst) {
                return Err(INVALID);
            }
        }
        Ok(Self(s))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        let (port, kind) = (self.0.port, self.0.kind);
        let port_state = fw.state.port(port)?;
        (1..=STORM_KINDS)
            .contains(&kind)
            .then(|| Self::from_state(port, kind, port_state))
    }
    fn write(&self, fw: &mut Firmware, _: Option<&Self>) -> Result<(), Failure> {
        fw.state
            .set_storm(self.0.port, self.0.kind, self.config())
            .map_err(|_| INVALID)
    }
    fn remove(&self, _: &mut Firmware) {}
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        // only what has a limit or has dropped something: all others are at zero
        slots(fw, from, u32::from(fw.state.port_count() + 1) << 2, |at| {
            let (n, kind) = ((at >> 2) as u16, at as u8 & 3);
            let port = fw.state.port(n)?;
            let there = port.storm(kind).is_some_and(|s| !s.is_zero());
            there.then(|| Self::from_state(n, kind, port))
        })
    }
}
