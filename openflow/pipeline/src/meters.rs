// SPDX-License-Identifier: Apache-2.0
//! Meters (§5.7, §7.3.4.4).
//!
//! A band is a token bucket, exact in integers. A packet that finds too few tokens in a band has exceeded that band's
//! rate; of the bands exceeded the one with the highest rate is applied. A dropped packet takes no tokens, so a drop band
//! lets its rate pass, exactly; a remarked packet takes those of the bands that it did not exceed.
use std::collections::BTreeMap;
use tandem_openflow::Error;
use tandem_tables::bucket::Bucket as Tokens;

/// `OFPM_MAX`
pub const MAX: u32 = 0xffff_0000;
/// `OFPM_CONTROLLER`: for packet-ins.
pub const CONTROLLER: u32 = 0xffff_fffe;
/// `OFPM_ALL`
pub const ALL: u32 = 0xffff_ffff;

/// `ofp_meter_flags`
pub mod flags {
    #![allow(missing_docs)]
    pub const KBPS: u16 = 1;
    pub const PKTPS: u16 = 2;
    pub const BURST: u16 = 4;
    pub const STATS: u16 = 8;
}

/// One band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Band {
    /// `OFPMBT_DROP`
    #[allow(missing_docs)]
    Drop { rate: u32, burst: u32 },
    /// `OFPMBT_DSCP_REMARK`: the drop precedence of an assured-forwarding class (RFC 2597) goes up by `levels`.
    #[allow(missing_docs)]
    Remark { rate: u32, burst: u32, levels: u8 },
}

impl Band {
    fn rate_burst(self) -> (u32, u32) {
        match self {
            Band::Drop { rate, burst } | Band::Remark { rate, burst, .. } => (rate, burst),
        }
    }
}

/// `ofp_meter_mod_command`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MeterCommand {
    Add,
    Modify,
    Delete,
}

/// `ofp_meter_mod`
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MeterMod {
    pub command: MeterCommand,
    pub flags: u16,
    pub meter: u32,
    pub bands: Vec<Band>,
}

/// A meter.
#[derive(Clone, Debug)]
pub struct Meter {
    /// As it was asked for.
    pub flags: u16,
    /// As they were asked for.
    pub bands: Vec<Band>,
    tokens: Vec<Tokens>,
    /// Flows that name it.
    pub flows: u32,
    /// Packets that came to it.
    pub count: crate::ports::Count,
    /// Packets that a band was applied to, band by band.
    pub band_counts: Vec<crate::ports::Count>,
    /// When it was made.
    pub since_ns: u64,
}

/// What a meter says of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Pass,
    /// It ends here.
    Drop,
    /// Its drop precedence goes up by so much.
    Remark(u8),
}

impl Meter {
    fn new(flags: u16, bands: Vec<Band>, now_ns: u64) -> Meter {
        let tokens = bands
            .iter()
            .map(|b| {
                let (rate, burst) = b.rate_burst();
                // kilobits to bytes
                let unit = if flags & self::flags::PKTPS != 0 {
                    1
                } else {
                    125
                };
                let rate = u64::from(rate) * unit;
                let least = if unit == 1 { 1 } else { 1_514 };
                let burst = match u64::from(burst) * unit {
                    asked if flags & self::flags::BURST != 0 && asked > 0 => asked,
                    // None was asked for: a fiftieth of a second
                    _ => (rate / 50).max(least),
                };
                Tokens::new(rate, burst)
            })
            .collect();
        Meter {
            flags,
            band_counts: vec![crate::ports::Count::default(); bands.len()],
            bands,
            tokens,
            flows: 0,
            count: crate::ports::Count::default(),
            since_ns: now_ns,
        }
    }

    /// Measures one packet.
    #[inline]
    pub fn measure(&mut self, bytes: u64, now_ns: u64) -> Verdict {
        self.count.add(bytes);
        let tokens = if self.flags & flags::PKTPS != 0 {
            1
        } else {
            bytes
        };
        let mut worst: Option<(u32, usize)> = None;
        for (n, (band, bucket)) in self.bands.iter().zip(&self.tokens).enumerate() {
            let rate = band.rate_burst().0;
            if !bucket.admits(tokens, now_ns) && worst.is_none_or(|(r, _)| rate > r) {
                worst = Some((rate, n));
            }
        }
        let mut verdict = Verdict::Pass;
        if let Some((_, n)) = worst {
            if let Some(c) = self.band_counts.get_mut(n) {
                c.add(bytes);
            }
            verdict = match self.bands.get(n) {
                Some(Band::Remark { levels, .. }) => Verdict::Remark(*levels),
                _ => return Verdict::Drop,
            };
        }
        for bucket in &mut self.tokens {
            if bucket.admits(tokens, now_ns) {
                bucket.charge(tokens, now_ns);
            }
        }
        verdict
    }
}

/// The DSCP with a drop precedence that is higher by `levels`: of the assured-forwarding classes, up to 3. Others stay.
pub fn remarked(dscp: u8, levels: u8) -> u8 {
    let (class, precedence) = (dscp >> 3, dscp >> 1 & 3);
    if dscp & 1 == 0 && matches!(class, 1..=4) && precedence > 0 {
        class << 3 | precedence.saturating_add(levels).min(3) << 1
    } else {
        dscp
    }
}

/// All meters.
#[derive(Clone, Debug, Default)]
pub struct Meters {
    /// By number.
    pub map: BTreeMap<u32, Meter>,
}

impl Meters {
    /// Carries out all but a deletion, which takes flows with it ([`crate::Switch::meter_mod`]).
    pub fn change(
        &mut self,
        m: &MeterMod,
        most: u32,
        most_bands: u32,
        now_ns: u64,
    ) -> Result<(), Error> {
        if m.meter == 0
            || m.meter > MAX && m.meter != CONTROLLER && m.command != MeterCommand::Delete
        {
            return Err(Error::METER_MOD_FAILED_INVALID_METER);
        }
        let there = self.map.contains_key(&m.meter);
        match m.command {
            MeterCommand::Add if there => return Err(Error::METER_MOD_FAILED_METER_EXISTS),
            MeterCommand::Add if self.map.len() >= most as usize => {
                return Err(Error::METER_MOD_FAILED_OUT_OF_METERS);
            }
            MeterCommand::Modify if !there => return Err(Error::METER_MOD_FAILED_UNKNOWN_METER),
            _ => {}
        }
        let rate = m.flags & (flags::KBPS | flags::PKTPS);
        if m.flags & !15 != 0 || !matches!(rate, flags::KBPS | flags::PKTPS) {
            return Err(Error::METER_MOD_FAILED_BAD_FLAGS);
        }
        if m.bands.len() > most_bands as usize {
            return Err(Error::METER_MOD_FAILED_OUT_OF_BANDS);
        }
        if m.bands.iter().any(|b| b.rate_burst().0 == 0) {
            return Err(Error::METER_MOD_FAILED_BAD_RATE);
        }
        let flows = self.map.get(&m.meter).map_or(0, |old| old.flows);
        let mut new = Meter::new(m.flags, m.bands.clone(), now_ns);
        if let Some(old) = self.map.get(&m.meter) {
            new.count = old.count;
            new.since_ns = old.since_ns;
        }
        new.flows = flows;
        self.map.insert(m.meter, new);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(flags: u16, bands: Vec<Band>) -> Meter {
        Meter::new(flags, bands, 5)
    }

    /// Offered twice the rate for ten seconds, what passes is within two per cent of it, in either unit.
    #[test]
    fn rate_is_held_within_two_per_cent() {
        for (flags, rate, bytes) in [
            (flags::KBPS, 1_000u32, 1_500u64),
            (flags::KBPS, 100_000, 1_500),
            (flags::KBPS, 10_000, 60),
            (flags::PKTPS, 100, 1_500),
            (flags::PKTPS, 10_000, 60),
        ] {
            let mut m = meter(flags, vec![Band::Drop { rate, burst: 0 }]);
            let per_second = match flags {
                super::flags::PKTPS => u64::from(rate),
                _ => u64::from(rate) * 125 / bytes,
            };
            let gap = 1_000_000_000 / (per_second * 2);
            let mut passed = 0u64;
            let mut now = 77;
            for _ in 0..per_second * 20 {
                if m.measure(bytes, now) == Verdict::Pass {
                    passed += 1;
                }
                now += gap;
            }
            let want = per_second * 10;
            assert!(
                passed.abs_diff(want) * 50 <= want,
                "{passed} for {want}, {rate}"
            );
        }
    }

    #[test]
    fn the_highest_band_exceeded_is_applied() {
        let mut m = meter(
            flags::PKTPS | flags::BURST,
            vec![
                Band::Drop { rate: 20, burst: 2 },
                Band::Remark {
                    rate: 10,
                    burst: 1,
                    levels: 1,
                },
            ],
        );
        let all: Vec<_> = (0..4).map(|_| m.measure(100, 9)).collect();
        assert_eq!(
            all,
            [
                Verdict::Pass,
                Verdict::Remark(1),
                Verdict::Drop,
                Verdict::Drop
            ]
        );
        assert_eq!(m.count.packets, 4);
        assert_eq!([m.band_counts[0].packets, m.band_counts[1].packets], [2, 1]);
    }

    #[test]
    fn drop_precedence_goes_up_within_the_class() {
        assert_eq!(remarked(10, 1), 12);
        assert_eq!(remarked(10, 9), 14);
        assert_eq!(remarked(34, 2), 38);
        for other in [0, 8, 46, 48, 11] {
            assert_eq!(remarked(other, 1), other);
        }
    }
}
