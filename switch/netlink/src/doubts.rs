//! What should be checked against the kernel soon, and what has to be dumped for it.

use std::collections::BTreeSet;

use tandem_linux::netlink::Family;

/// More devices than this: all routes are dumped once. For a dump of one device's routes the kernel walks the whole table as
/// well (net/ipv4/fib_trie.c `fib_table_dump`): it saves the messages, not the walk.
const FEW: usize = 8;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Doubts {
    /// Routes via these devices.
    pub links: BTreeSet<u32>,
    /// IPv6 routes via these devices.
    pub links6: BTreeSet<u32>,
    /// Next-hop objects.
    pub nexthops: bool,
    /// All objects of these kinds (few each).
    pub kinds: u16,
    /// All routes: a message contradicted the view.
    pub routes: bool,
}

impl Doubts {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whose routes of this family are to be dumped; `None`: everybody's.
    pub fn devices(&self, family: Family) -> Vec<Option<u32>> {
        let mut devices = self.links.clone();
        if family == Family::V6 {
            devices.extend(&self.links6);
        }
        if self.routes || devices.len() > FEW {
            return vec![None];
        }
        devices.into_iter().map(Some).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_walked_a_few_times_at_most() {
        let mut d = Doubts::default();
        assert!(d.is_empty() && d.devices(Family::V4).is_empty());
        d.links6.extend(1..=3);
        assert!(!d.is_empty());
        assert!(d.devices(Family::V4).is_empty());
        assert_eq!(d.devices(Family::V6), [Some(1), Some(2), Some(3)]);
        d.links.extend(3..=4);
        assert_eq!(d.devices(Family::V4), [Some(3), Some(4)]);
        assert_eq!(d.devices(Family::V6).len(), 4);
        d.links6.extend(1..=32);
        assert_eq!(d.devices(Family::V4), [Some(3), Some(4)]);
        assert_eq!(d.devices(Family::V6), [None]);
        d.routes = true;
        assert_eq!(d.devices(Family::V4), [None]);
    }
}
