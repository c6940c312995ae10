// SPDX-License-Identifier: Apache-2.0
//! Meters by the letter of the standard.

use super::model::Stop;
use tandem_openflow::model::{Band, BandType, MeterMod};

pub const SECOND: u64 = 1_000_000_000;

#[derive(Clone, Debug)]
pub struct Meter {
    per_packet: bool,
    /// Band, what is in its bucket (in billionths), what fits in.
    bands: Vec<(Band, u128, u128)>,
    at: u64,
    pub packets: u64,
}

impl Meter {
    pub fn new(m: &MeterMod, now: u64, packets: u64) -> Meter {
        let per_packet = m.flags & 2 != 0;
        let unit = if per_packet { 1 } else { 125 };
        let bands = m
            .bands
            .iter()
            .map(|b| {
                let burst = u128::from(b.burst) * unit * u128::from(SECOND);
                (*b, burst, burst)
            })
            .collect();
        Meter {
            per_packet,
            bands,
            at: now,
            packets,
        }
    }

    /// Drop, or levels of remarking.
    pub fn measure(&mut self, bytes: u64, now: u64) -> Result<u8, Stop> {
        let unit = if self.per_packet { 1 } else { 125 };
        let passed = u128::from(now - self.at);
        self.at = now;
        self.packets += 1;
        for (band, level, most) in &mut self.bands {
            *level = (*level + passed * u128::from(band.rate) * unit).min(*most);
        }
        let cost = |most: u128| {
            let tokens = if self.per_packet {
                1
            } else {
                u128::from(bytes)
            };
            (tokens * u128::from(SECOND)).min(most)
        };
        let exceeded = self
            .bands
            .iter()
            .filter(|(_, level, most)| *level < cost(*most));
        // Of equal rates the first
        let worst = exceeded
            .rev()
            .max_by_key(|(b, ..)| b.rate)
            .map(|(b, ..)| *b);
        if worst.is_some_and(|b| b.kind == BandType::Drop) {
            return Err(Stop::Dropped);
        }
        for (_, level, most) in &mut self.bands {
            let tokens = if self.per_packet {
                1
            } else {
                u128::from(bytes)
            };
            let cost = (tokens * u128::from(SECOND)).min(*most);
            if *level >= cost {
                *level -= cost;
            }
        }
        Ok(match worst.map(|b| b.kind) {
            Some(BandType::DscpRemark(levels)) => levels,
            _ => 0,
        })
    }
}
