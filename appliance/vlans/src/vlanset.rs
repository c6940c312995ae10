//! A set of VLAN ids.

use std::ops::RangeInclusive;

/// Some of 1..=4094.
#[derive(Clone, PartialEq, Eq)]
pub struct VlanSet(Box<[u64; 64]>);

impl std::fmt::Debug for VlanSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.ranges()).finish()
    }
}

/// Ids that a VLAN may have.
pub(crate) const IDS: RangeInclusive<u16> = 1..=4094;

impl VlanSet {
    /// None.
    #[must_use]
    pub fn none() -> VlanSet {
        VlanSet(Box::new([0; 64]))
    }

    /// All.
    #[must_use]
    pub fn all() -> VlanSet {
        IDS.collect()
    }

    /// Whether it has this one.
    #[must_use]
    pub fn contains(&self, vid: u16) -> bool {
        let word = self.0.get(usize::from(vid / 64));
        word.is_some_and(|w| w & 1 << (vid % 64) != 0)
    }

    /// Adds one; what is no VLAN id is left out.
    pub fn insert(&mut self, vid: u16) {
        if let (true, Some(w)) = (IDS.contains(&vid), self.0.get_mut(usize::from(vid / 64))) {
            *w |= 1 << (vid % 64);
        }
    }

    /// Takes one out.
    pub fn remove(&mut self, vid: u16) {
        if let Some(w) = self.0.get_mut(usize::from(vid / 64)) {
            *w &= !(1 << (vid % 64));
        }
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        IDS.filter(|vid| self.contains(*vid))
    }

    /// In order, as people write them.
    #[must_use]
    pub fn ranges(&self) -> Vec<RangeInclusive<u16>> {
        let mut all: Vec<RangeInclusive<u16>> = Vec::new();
        for vid in self.iter() {
            match all.last_mut() {
                Some(last) if last.end() + 1 == vid => *last = *last.start()..=vid,
                _ => all.push(vid..=vid),
            }
        }
        all
    }
}

impl FromIterator<u16> for VlanSet {
    fn from_iter<T: IntoIterator<Item = u16>>(all: T) -> Self {
        let mut set = VlanSet::none();
        all.into_iter().for_each(|vid| set.insert(vid));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_vlan_id_is_never_in_it() {
        let mut all = VlanSet::all();
        for vid in [0, 4095, 4096, u16::MAX] {
            all.insert(vid);
            assert!(!all.contains(vid), "{vid}");
            all.remove(vid);
        }
        assert_eq!(all.ranges(), [1..=4094]);
        all.remove(64);
        assert_eq!(all.ranges(), [1..=63, 65..=4094]);
        assert_eq!(all.iter().count(), 4093);
        assert_eq!(VlanSet::none().ranges(), []);
    }
}
