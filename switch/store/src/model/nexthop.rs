//! Next hops and next-hop objects (`ip nexthop`).

use std::net::IpAddr;

use super::Unsupported;

/// One way to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NextHop {
    /// Outgoing interface; 0 = none.
    pub ifindex: u32,
    /// Gateway; None = the destination is on the link. May be of the other family (RTA_VIA).
    pub gateway: Option<IpAddr>,
    /// 1..=65536 as the user counts (rtnh_hops + 1); buckets in a row.
    pub weight: u32,
    /// RTNH_F_DEAD
    pub dead: bool,
    /// RTNH_F_LINKDOWN
    pub linkdown: bool,
    /// RTNH_F_ONLINK
    pub onlink: bool,
}

/// What a next-hop object (`ip nexthop`) is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NexthopKind {
    /// One way.
    Single(NextHop),
    /// Members by id, with weights 1..=65536.
    Group(Vec<(u32, u32)>),
    /// A resilient group: its buckets from the first to the last, as runs of a member and how many there are in a row.
    Buckets(Vec<(u32, u32)>),
    /// NHA_BLACKHOLE
    Blackhole,
}

impl NexthopKind {
    /// Members' ids, some of them several times. A single next hop has none.
    pub fn members(&self) -> impl Iterator<Item = u32> + '_ {
        match self {
            NexthopKind::Group(m) | NexthopKind::Buckets(m) => m.as_slice(),
            NexthopKind::Single(_) | NexthopKind::Blackhole => &[],
        }
        .iter()
        .map(|(id, _)| *id)
    }

    /// A group without some of its members. `None`: nobody is left. Buckets of those that go are given to a neighbour,
    /// so that nobody else's flows move; the kernel chooses by its timers, and its choice is read soon after.
    pub fn without(&self, gone: impl Fn(u32) -> bool) -> Option<NexthopKind> {
        match self {
            NexthopKind::Group(m) => {
                let left: Vec<_> = m.iter().filter(|(id, _)| !gone(*id)).copied().collect();
                (!left.is_empty()).then_some(NexthopKind::Group(left))
            }
            NexthopKind::Buckets(runs) => {
                let mut runs = runs.clone();
                let all = hand_on(&mut runs, |r| gone(r.0), |r, from| r.0 = from.0);
                let mut left: Vec<(u32, u32)> = Vec::with_capacity(runs.len());
                for (id, n) in runs {
                    add_run(&mut left, id, n);
                }
                all.then_some(NexthopKind::Buckets(left))
            }
            NexthopKind::Single(_) | NexthopKind::Blackhole => Some(self.clone()),
        }
    }
}

/// Puts buckets behind those that are there.
pub fn add_run(runs: &mut Vec<(u32, u32)>, member: u32, count: u32) {
    match runs.last_mut() {
        Some((last, n)) if *last == member => *n += count,
        _ => runs.push((member, count)),
    }
}

/// What `bad` holds is given to the next one that is good, or to the first of them if none follows, as the kernel gives
/// on the flows of a next hop that it doesn't use (net/ipv4/nexthop.c `nexthop_select_path_hthr`). `false`: none is good.
pub fn hand_on<T: Copy>(
    runs: &mut [T],
    bad: impl Fn(&T) -> bool,
    give: impl Fn(&mut T, T),
) -> bool {
    let Some(mut good) = runs.iter().find(|r| !bad(r)).copied() else {
        return false;
    };
    for r in runs.iter_mut().rev() {
        if bad(r) {
            give(r, good);
        } else {
            good = *r;
        }
    }
    true
}

/// A next-hop object. Key: `id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NexthopObject {
    /// NHA_ID
    pub id: u32,
    /// Kind.
    pub kind: NexthopKind,
    /// Set if the chip can't do it.
    pub unsupported: Option<Unsupported>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stays_keeps_the_buckets() {
        let group = NexthopKind::Buckets(vec![(1, 5), (2, 3), (3, 6), (2, 2)]);
        let two = |id| id == 2;
        let left = NexthopKind::Buckets(vec![(1, 5), (3, 9), (1, 2)]);
        assert_eq!(group.without(two), Some(left));
        let left = NexthopKind::Buckets(vec![(2, 8), (3, 6), (2, 2)]);
        assert_eq!(group.without(|id| id == 1), Some(left));
        assert_eq!(group.without(|_| true), None);
        assert_eq!(NexthopKind::Buckets(Vec::new()).without(two), None);
        let group = NexthopKind::Group(vec![(1, 5), (2, 3)]);
        assert_eq!(group.without(two), Some(NexthopKind::Group(vec![(1, 5)])));
        assert_eq!(group.without(|_| true), None);
        assert_eq!(
            NexthopKind::Blackhole.without(|_| true),
            Some(NexthopKind::Blackhole)
        );
    }
}
