//! Which domain of the chip stands for which bridge, or VLAN of one: asked of a chip that an earlier switchd has filled.
//!
//! A domain's number follows from its VLAN or its bridge ([`preferred_fid`]). Of two bridges that filter by VLAN both may
//! have VLAN 1, and the second one's got another number, whichever was free.

use std::collections::{BTreeMap, HashMap, HashSet};

use tandem_abi::raw::TND_VID_ANY;

use crate::Store;
use crate::api::{Domain, Left};
use crate::hw::Ids;

/// Numbers of domains: 1..=4094.
pub(crate) const FIDS: u32 = 4094;

/// The chip's number of a domain, if nobody else took it first.
pub(crate) fn preferred_fid(domain: Domain) -> u16 {
    let n = match domain.vlan {
        0 => domain.dev,
        vid => u32::from(vid),
    };
    (n.wrapping_sub(1) % FIDS) as u16 + 1
}

impl Store {
    /// What stands in the chip that is to be attached: the numbers there stay those of what they stand for. Before
    /// [`Store::attach`], and nothing is planned between the two.
    pub fn adopt(&mut self, left: Left) {
        self.hw.ids = Ids::new(left);
        self.hw.bare |= self.hw.ids.left_bare();
    }

    /// Learns what the domains stand for that an earlier switchd has left, by the bridges in which ports are now (ifindex, 0:
    /// none); and says it. Before the first plan.
    pub fn name_left(&mut self, bridge_of: impl Fn(u16) -> u32) -> HashMap<u16, Domain> {
        let members = self.hw.ids.members().iter().map(|(k, fid)| (*k, *fid));
        let owners = owners(members, bridge_of);
        for (fid, domain) in &owners {
            self.hw.ids.left_domain(*domain, *fid);
        }
        owners
    }

    /// A domain of whose number nobody could be sure keeps that of its first member.
    pub(crate) fn name_left_by_members(&mut self) {
        if !self.hw.ids.ask_domains() {
            return;
        }
        let mut found = Vec::new();
        for (member, id) in &self.member_ids {
            let wanted = self.hw.members.get(*id).and_then(|o| o.want.as_ref());
            let domain = wanted.and_then(|m| self.topo.domain_of.get(&m.vlan));
            let fid = self.hw.ids.members().get(member);
            found.extend(domain.copied().zip(fid.copied()));
        }
        for (domain, fid) in found {
            self.hw.ids.left_domain(domain, fid);
        }
    }

    /// What a domain of the chip stands for.
    pub fn domain(&self, fid: u16) -> Option<Domain> {
        let id = self.hw.ids.fids.table(u32::from(fid))?;
        self.topo.domain_of.get(&id).copied()
    }

    /// The chip's numbers of domains and VRFs: for another store's [`Store::adopt`].
    pub fn numbers(&self) -> Left {
        let domains = self.topo.domain_of.iter();
        let domains = domains.map(|(id, d)| (*d, self.hw.ids.fid(*id)));
        let vrfs = self.vrfs.slots.iter().filter(|(_, v)| !v.dying);
        let vrfs = vrfs.map(|(slot, v)| (v.table, self.hw.ids.vrf(*slot)));
        let given = |n: &u16| *n != 0;
        Left {
            domains: domains.filter(|(_, n)| given(n)).collect(),
            vrfs: vrfs.filter(|(_, n)| given(n)).collect(),
            ..Left::default()
        }
    }
}

/// What each domain stands for, by its members (port and VID) and the bridges in which those ports are now. A port may have
/// moved while nobody listened: it speaks for a bridge only where no other one does.
fn owners(
    members: impl Iterator<Item = ((u16, u16), u16)>,
    bridge_of: impl Fn(u16) -> u32,
) -> HashMap<u16, Domain> {
    let mut votes: BTreeMap<(u16, u32, u16), i64> = BTreeMap::new();
    for ((port, vid), fid) in members {
        let dev = bridge_of(port);
        let vlan = if vid == TND_VID_ANY { 0 } else { vid };
        if dev != 0 {
            *votes.entry((fid, dev, vlan)).or_default() += 1;
        }
    }
    // the two numbers of each domain for which most speaks
    let mut most: HashMap<(u32, u16), [(i64, u16); 2]> = HashMap::new();
    for (&(fid, dev, vlan), &n) in &votes {
        let [first, second] = most.entry((dev, vlan)).or_default();
        if n > first.0 {
            (*first, *second) = ((n, fid), *first);
        } else if n > second.0 {
            *second = (n, fid);
        }
    }
    // how much more speaks for this than for another number of the same domain
    let lead = |&(fid, dev, vlan): &(u16, u32, u16), n: i64| {
        let [first, second] = most.get(&(dev, vlan)).copied().unwrap_or_default();
        n - if first.1 == fid { second.0 } else { first.0 }
    };
    let mut all: Vec<_> = votes
        .iter()
        .map(|(k, n)| {
            let domain = Domain {
                dev: k.1,
                vlan: k.2,
            };
            (preferred_fid(domain) != k.0, -lead(k, *n), k.0, domain)
        })
        .collect();
    all.sort_unstable_by_key(|(other, lead, fid, domain)| {
        (*other, *lead, *fid, domain.dev, domain.vlan)
    });
    let mut owners: HashMap<u16, Domain> = HashMap::new();
    let mut named = HashSet::new();
    for (other, _, fid, domain) in all {
        // one that has not its own number has it because somebody else was first
        let may = !other || owners.contains_key(&preferred_fid(domain));
        if may && !named.contains(&domain) && !owners.contains_key(&fid) {
            owners.insert(fid, domain);
            named.insert(domain);
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners_of(members: &[(u16, u16, u16)], bridges: &[u32]) -> Vec<(u16, u32, u16)> {
        let members = members.iter().map(|m| ((m.0, m.1), m.2));
        let bridge_of = |port: u16| bridges.get(usize::from(port)).copied().unwrap_or(0);
        let mut all: Vec<_> = owners(members, bridge_of)
            .into_iter()
            .map(|(fid, d)| (fid, d.dev, d.vlan))
            .collect();
        all.sort_unstable();
        all
    }

    /// Ports 1, 2 in bridge 50, ports 3, 4 in bridge 60, both with VLAN 1.
    const TWO: [(u16, u16, u16); 4] = [(1, 1, 1), (2, 1, 1), (3, 1, 2), (4, 1, 2)];

    #[test]
    fn two_bridges_have_the_same_vlan() {
        let both = [(1, 50, 1), (2, 60, 1)];
        assert_eq!(owners_of(&TWO, &[0, 50, 50, 60, 60]), both);
        // whoever was first has the number
        let both = [(1, 60, 1), (2, 50, 1)];
        assert_eq!(owners_of(&TWO, &[0, 60, 60, 50, 50]), both);
    }

    #[test]
    fn a_port_that_moved_does_not_speak_for_its_new_bridge() {
        let both = [(1, 50, 1), (2, 60, 1)];
        assert_eq!(owners_of(&TWO, &[0, 50, 60, 60, 60]), both);
        assert_eq!(owners_of(&TWO, &[0, 50, 50, 50, 60]), both);
        // VLAN 1 of the second bridge has its own number, so that of the first is nobody's
        assert_eq!(
            owners_of(&[(1, 1, 1), (3, 1, 7)], &[0, 60, 0, 0]),
            [(1, 60, 1)]
        );
    }

    /// Two bridges of all VLANs: the time that this takes grows with their number, not with its square.
    #[test]
    fn two_bridges_have_all_vlans() {
        let all =
            (1..4095u16).flat_map(|v| [(1, v, v), (2, v, v), (3, v, 4094 + v), (4, v, 4094 + v)]);
        let all: Vec<_> = all.collect();
        let owners = owners_of(&all, &[0, 50, 50, 60, 60]);
        assert_eq!(owners.len(), 2 * 4094);
        assert!(owners.iter().all(|&(fid, dev, vlan)| match dev {
            50 => fid == vlan,
            _ => fid == 4094 + vlan,
        }));
    }

    #[test]
    fn bridges_without_vlans_go_by_their_device() {
        let any = TND_VID_ANY;
        let members = [(1, any, 50), (2, any, 60)];
        assert_eq!(
            owners_of(&members, &[0, 50, 60]),
            [(50, 50, 0), (60, 60, 0)]
        );
        // the port is in another bridge now, whose number nobody has taken: what was learned behind it is of before
        assert_eq!(owners_of(&members, &[0, 70, 60]), [(60, 60, 0)]);
        assert_eq!(owners_of(&members, &[0, 60, 60]), [(60, 60, 0)]);
        assert_eq!(owners_of(&members, &[0, 0, 0]), []);
    }
}
