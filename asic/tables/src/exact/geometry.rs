//! How the memory is organised, and how much of it an entry takes.

use super::{Kind, MAX_BANKS};

/// How the memory is organised. `slots_per_bucket` is 4 or 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Banks, each with a hash function of its own; at most [`MAX_BANKS`].
    pub banks: u32,
    /// Buckets of one bank; need not be a power of two.
    pub buckets_per_bank: u32,
    /// Slots of one bucket: 4 or 8.
    pub slots_per_bucket: u32,
    /// Slots of the overflow stash.
    pub stash: u32,
    /// Most entries that one insert may move.
    pub max_moves: u32,
}

/// A geometry or width that can't be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("exact-match geometry: {0}")]
pub struct BadGeometry(String);

impl Geometry {
    /// All slots, stash included.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.banks
            .saturating_mul(self.buckets_per_bank)
            .saturating_mul(self.slots_per_bucket)
            .saturating_add(self.stash)
    }

    pub(super) fn check(&self) -> Result<(), BadGeometry> {
        let bad = |s: String| Err(BadGeometry(s));
        if self.banks == 0 || self.banks as usize > MAX_BANKS {
            return bad(format!("banks is {}, must be 1..{MAX_BANKS}", self.banks));
        }
        if self.slots_per_bucket != 4 && self.slots_per_bucket != 8 {
            return bad(format!(
                "slots_per_bucket is {}, must be 4 or 8",
                self.slots_per_bucket
            ));
        }
        if self.buckets_per_bank == 0 {
            return bad("buckets_per_bank is 0".into());
        }
        if self.size() > 1 << 26 {
            return bad(format!("{} slots, at most {}", self.size(), 1 << 26));
        }
        Ok(())
    }
}

/// Slots that one entry of each kind takes: 1, 2 or 4, at most half a bucket; an IPv6 host at least 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct Widths {
    /// A MAC address.
    pub mac: u32,
    /// An IPv4 host.
    pub host4: u32,
    /// An IPv6 host.
    pub host6: u32,
}

impl Widths {
    /// Slots of one entry of a kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> u32 {
        match kind {
            Kind::Mac => self.mac,
            Kind::Host4 => self.host4,
            Kind::Host6 => self.host6,
        }
    }

    pub(super) fn check(&self, slots_per_bucket: u32) -> Result<(), BadGeometry> {
        for (name, w) in [
            ("mac", self.mac),
            ("host4", self.host4),
            ("host6", self.host6),
        ] {
            if !matches!(w, 1 | 2 | 4) {
                return Err(BadGeometry(format!(
                    "width of {name} is {w}, must be 1, 2 or 4"
                )));
            }
        }
        let widest = self.mac.max(self.host4).max(self.host6);
        if widest * 2 > slots_per_bucket {
            // Measured: entries that fill a bucket alone make a table fail 4 % before it is full.
            return Err(BadGeometry(format!(
                "width {widest} in buckets of {slots_per_bucket}, at least two entries must fit"
            )));
        }
        if self.host6 == 1 {
            return Err(BadGeometry(
                "width of host6 is 1, an IPv6 address needs 2 slots".into(),
            ));
        }
        Ok(())
    }
}

/// Checks a geometry and widths without making the table.
///
/// # Errors
/// [`BadGeometry`] names the number that can't be.
pub fn check(geometry: Geometry, widths: Widths) -> Result<(), BadGeometry> {
    geometry.check()?;
    widths.check(geometry.slots_per_bucket)
}
