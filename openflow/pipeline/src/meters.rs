// SPDX-License-Identifier: Apache-2.0
//! Meters (§5.7, §7.3.4.4).
//!
//! A band is a token bucket, exact in integers. A packet that finds too few tokens in a band has exceeded that band's
//! rate; of the bands exceeded the one with the highest rate is applied. A dropped packet takes no tokens, so a drop band
//! lets its rate pass, exactly; a remarked packet takes those of the bands that it did not exceed.
use std::collections::BTreeMap;
use tandem_openflow::Error;
use tandem_openflow::model::{
    Band, BandType, METER_CONTROLLER, METER_MAX, MeterCommand, MeterMod, meter_flags,
};
use tandem_tables::bucket::Bucket as Tokens;

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
                let (rate, burst) = (b.rate, b.burst);
                // kilobits to bytes
                let unit = if flags & meter_flags::PKTPS != 0 {
                    1
                } else {
                    125
                };
                let rate = u64::from(rate) * unit;
                let least = if unit == 1 { 1 } else { 1_514 };
                let burst = match u64::from(burst) * unit {
                    asked if flags & meter_flags::BURST != 0 && asked > 0 => asked,
                    // None was asked for: a tenth of a second, as packets are measured when they are seen, and
                    // who sees them may be kept from it for as long
                    _ => (rate / 10).max(least),
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
        let tokens = if self.flags & meter_flags::PKTPS != 0 {
            1
        } else {
            bytes
        };
        let mut worst: Option<(u32, usize)> = None;
        for (n, (band, bucket)) in self.bands.iter().zip(&self.tokens).enumerate() {
            let rate = band.rate;
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
                Some(Band {
                    kind: BandType::DscpRemark(levels),
                    ..
                }) => Verdict::Remark(*levels),
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
            || m.meter > METER_MAX
                && m.meter != METER_CONTROLLER
                && m.command != MeterCommand::Delete
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
        let rate = m.flags & (meter_flags::KBPS | meter_flags::PKTPS);
        if m.flags & !15 != 0 || !matches!(rate, meter_flags::KBPS | meter_flags::PKTPS) {
            return Err(Error::METER_MOD_FAILED_BAD_FLAGS);
        }
        if m.bands.len() > most_bands as usize {
            return Err(Error::METER_MOD_FAILED_OUT_OF_BANDS);
        }
        if m.bands.iter().any(|b| b.rate == 0) {
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

    fn band(rate: u32, burst: u32, kind: BandType) -> Band {
        Band { rate, burst, kind }
    }

    fn meter(flags: u16, bands: Vec<Band>) -> Meter {
        Meter::new(flags, bands, 5)
    }

    /// Offered twice the rate for ten seconds, what passes is within two per cent of it, in either unit.
    #[test]
    fn rate_is_held_within_two_per_cent() {
        for (flags, rate, bytes) in [
            (meter_flags::KBPS, 1_000u32, 1_500u64),
            (meter_flags::KBPS, 100_000, 1_500),
            (meter_flags::KBPS, 10_000, 60),
            (meter_flags::PKTPS, 100, 1_500),
            (meter_flags::PKTPS, 10_000, 60),
        ] {
            let mut m = meter(flags, vec![band(rate, 0, BandType::Drop)]);
            let per_second = match flags {
                meter_flags::PKTPS => u64::from(rate),
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

    /// Packets are seen when somebody has time to look: what comes late in bunches has the same rate.
    #[test]
    fn rate_is_held_when_packets_are_seen_late() {
        for rate in [100, 10_000] {
            let mut m = meter(meter_flags::PKTPS, vec![band(rate, 0, BandType::Drop)]);
            let (seconds, pause) = (10, 80_000_000);
            let many = u64::from(rate) * 2 * pause / 1_000_000_000;
            let mut passed = 0u64;
            for bunch in 0..seconds * 1_000_000_000 / pause {
                for _ in 0..many {
                    passed += u64::from(m.measure(100, bunch * pause + 5) == Verdict::Pass);
                }
            }
            let want = u64::from(rate) * seconds;
            assert!(
                passed.abs_diff(want) * 50 <= want,
                "{passed} for {want}, {rate}"
            );
        }
    }

    #[test]
    fn the_highest_band_exceeded_is_applied() {
        let mut m = meter(
            meter_flags::PKTPS | meter_flags::BURST,
            vec![
                band(20, 2, BandType::Drop),
                band(10, 1, BandType::DscpRemark(1)),
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
