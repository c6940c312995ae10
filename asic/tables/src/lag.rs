//! Link aggregation: which member of a group a flow leaves by.

/// Members that take part and are up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Active(Vec<u16>);

impl Active {
    /// Those of `ports`, in ascending order.
    #[must_use]
    pub fn new(ports: impl Iterator<Item = u16>) -> Active {
        let mut all: Vec<u16> = ports.collect();
        all.sort_unstable();
        Active(all)
    }

    /// Nobody: the group has no carrier.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A flow's member: equal parts of the hashes in the order of ports.
    #[inline]
    #[must_use]
    pub fn choose(&self, hash: u32) -> Option<u16> {
        let at = (u64::from(hash) * self.0.len() as u64) >> 32;
        self.0.get(at as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_equal_and_ascend() {
        assert_eq!(Active::default().choose(7), None);
        let all = Active::new([9, 2, 5].into_iter());
        let mut seen = [0u32; 3];
        for i in 0..3000u32 {
            match all.choose(i * (u32::MAX / 3000)) {
                Some(2) => seen[0] += 1,
                Some(5) => seen[1] += 1,
                Some(9) => seen[2] += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(seen.iter().all(|n| n.abs_diff(1000) <= 1), "{seen:?}");
        assert_eq!((all.choose(0), all.choose(u32::MAX)), (Some(2), Some(9)));
    }
}
