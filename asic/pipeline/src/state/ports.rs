//! Ports, forwarding domains, members.

use tandem_abi::raw;

use super::{
    EgressTag, MAX_VID, MemberConfig, Port, PortConfig, SetError, State, Untagged, Vlan, VlanConfig,
};

impl State {
    // ---- ports

    /// Number of front-panel ports; they are 1..=this.
    #[inline]
    pub fn port_count(&self) -> u16 {
        self.physical
    }

    /// One port, from 1.
    #[inline]
    pub fn port(&self, port: u16) -> Option<&Port> {
        self.ports.get(usize::from(port).wrapping_sub(1))
    }

    pub(super) fn port_mut(&mut self, port: u16) -> Result<&mut Port, SetError> {
        self.ports
            .get_mut(usize::from(port).wrapping_sub(1))
            .ok_or(SetError::NoPort(port))
    }

    /// UPDATE of a port.
    pub fn set_port(&mut self, port: u16, config: PortConfig) -> Result<(), SetError> {
        self.port_mut(port)?.configure(config);
        self.refresh_lag_of(port);
        Ok(())
    }

    /// Carrier came or went.
    pub fn set_link(&mut self, port: u16, up: bool) -> Result<(), SetError> {
        if port > self.physical {
            // that of a group follows its members
            return Err(SetError::NoPort(port));
        }
        self.port_mut(port)?.link = up;
        self.refresh_lag_of(port);
        Ok(())
    }

    // ---- forwarding domains and members

    /// One forwarding domain.
    #[inline]
    pub fn vlan(&self, fid: u16) -> Option<&Vlan> {
        self.vlans.get(usize::from(fid))?.as_deref()
    }

    #[inline]
    pub(crate) fn vlan_mut(&mut self, fid: u16) -> Option<&mut Vlan> {
        self.vlans.get_mut(usize::from(fid))?.as_deref_mut()
    }

    /// Creates or updates a forwarding domain.
    pub fn set_vlan(&mut self, fid: u16, config: VlanConfig) -> Result<(), SetError> {
        let ports = self.ports.len() + 1;
        if fid == 0 {
            return Err(SetError::NoVlan(fid));
        }
        match self.vlans.get_mut(usize::from(fid)) {
            Some(Some(vlan)) => vlan.config = config,
            Some(empty) => {
                *empty = Some(Box::new(Vlan {
                    config,
                    members: Vec::new(),
                    egress: vec![None; ports].into_boxed_slice(),
                    vids: vec![0; ports].into_boxed_slice(),
                    rif: None,
                }));
            }
            None => return Err(SetError::NoVlan(fid)),
        }
        Ok(())
    }

    /// Removes a forwarding domain with its members (FDB entries and the RIF are the caller's). False: it was not there.
    pub fn remove_vlan(&mut self, fid: u16) -> bool {
        let Some(vlan) = self.vlan(fid) else {
            return false;
        };
        let by = |port: u16| Some((port, *vlan.vids.get(usize::from(port))?));
        let of_it: Vec<(u16, u16)> = vlan.ports().filter_map(by).collect();
        for (port, vid) in of_it {
            self.remove_member(port, vid);
        }
        if let Some(v) = self.vlans.get_mut(usize::from(fid)) {
            *v = None;
        }
        true
    }

    /// All forwarding domains.
    pub fn vlans(&self) -> impl Iterator<Item = (u16, &Vlan)> {
        self.vlans
            .iter()
            .enumerate()
            .filter_map(|(fid, v)| v.as_deref().map(|v| (fid as u16, v)))
    }

    /// One member entry; `vid` may be `TND_VID_ANY`.
    pub fn member(&self, port: u16, vid: u16) -> Option<MemberConfig> {
        let p = self.port(port)?;
        if vid == raw::TND_VID_ANY {
            return match p.untagged {
                Untagged::Any(fid) => Some(MemberConfig {
                    fid,
                    flags: raw::TND_MEMBER_PVID | raw::TND_MEMBER_UNTAGGED,
                }),
                _ => None,
            };
        }
        let fid = *p.vids.as_ref()?.get(usize::from(vid))?;
        if fid == 0 {
            return None;
        }
        let mut flags = 0;
        if self.egress_tag(fid, port) == Some(EgressTag::Untagged) {
            flags |= raw::TND_MEMBER_UNTAGGED;
        }
        if p.untagged == Untagged::Pvid(fid) {
            flags |= raw::TND_MEMBER_PVID;
        }
        Some(MemberConfig { fid, flags })
    }

    /// The VID by which a port is a member of a domain; `TND_VID_ANY` as well.
    pub fn vid_in(&self, fid: u16, port: u16) -> Option<u16> {
        let vid = *self.vlan(fid)?.vids.get(usize::from(port))?;
        (vid != 0).then_some(vid)
    }

    /// The port is a member of some domain by a VID.
    pub fn is_vlan_aware(&self, port: u16) -> bool {
        self.port(port).is_some_and(|p| p.vids.is_some())
    }

    /// Creates or updates a member entry. A port is either VLAN-unaware (one `TND_VID_ANY` entry, whose flags count for
    /// nothing) or VLAN-aware; whichever is set last wins. One VID per port in a domain.
    pub fn set_member(
        &mut self,
        port: u16,
        vid: u16,
        config: MemberConfig,
    ) -> Result<(), SetError> {
        if self.port(port).is_none() {
            return Err(SetError::NoPort(port));
        }
        if self.vlan(config.fid).is_none() {
            return Err(SetError::NoVlan(config.fid));
        }
        if vid != raw::TND_VID_ANY && !(1..=MAX_VID).contains(&vid) {
            return Err(SetError::BadVid(vid));
        }
        let aware = vid != raw::TND_VID_ANY;
        if aware {
            self.remove_member(port, raw::TND_VID_ANY);
            self.remove_member(port, vid);
        } else {
            let stale: Vec<u16> = self.members_of(port, 0).map(|(vid, _)| vid).collect();
            for vid in stale {
                self.remove_member(port, vid);
            }
        }
        if let Some(other) = self.vid_in(config.fid, port) {
            self.remove_member(port, other);
        }
        let p = self.port_mut(port)?;
        let tag = if aware {
            let vids = p
                .vids
                .get_or_insert_with(|| vec![0; usize::from(MAX_VID) + 1].into_boxed_slice());
            if let Some(slot) = vids.get_mut(usize::from(vid)) {
                *slot = config.fid;
                p.vid_count += 1;
            }
            if config.flags & raw::TND_MEMBER_PVID != 0 {
                p.untagged = Untagged::Pvid(config.fid);
            }
            if config.flags & raw::TND_MEMBER_UNTAGGED != 0 {
                EgressTag::Untagged
            } else {
                EgressTag::Vid(vid)
            }
        } else {
            p.untagged = Untagged::Any(config.fid);
            EgressTag::AsIs
        };
        if let Some(Some(v)) = self.vlans.get_mut(usize::from(config.fid)) {
            let at = v.members.partition_point(|m| (m.1, m.0) < (tag, port));
            self.work.add((v.members.len() - at) as u64);
            v.members.insert(at, (port, tag));
            if let Some(e) = v.egress.get_mut(usize::from(port)) {
                *e = Some(tag);
            }
            if let Some(by) = v.vids.get_mut(usize::from(port)) {
                *by = vid;
            }
        }
        self.member_count += 1;
        Ok(())
    }

    /// Removes a member entry. False: it was not there.
    pub fn remove_member(&mut self, port: u16, vid: u16) -> bool {
        let Some(member) = self.member(port, vid) else {
            return false;
        };
        if let Ok(p) = self.port_mut(port) {
            if vid == raw::TND_VID_ANY {
                p.untagged = Untagged::None;
            } else {
                if let Some(slot) = p.vids.as_mut().and_then(|v| v.get_mut(usize::from(vid))) {
                    *slot = 0;
                    p.vid_count -= 1;
                }
                if p.untagged == Untagged::Pvid(member.fid) {
                    p.untagged = Untagged::None;
                }
                if p.vid_count == 0 {
                    p.vids = None;
                }
            }
        }
        if let Some(Some(v)) = self.vlans.get_mut(usize::from(member.fid)) {
            let tag = v.egress.get(usize::from(port)).copied().flatten();
            let line = tag.map(|tag| v.members.binary_search_by_key(&(tag, port), |m| (m.1, m.0)));
            if let Some(Ok(at)) = line {
                self.work.add((v.members.len() - at) as u64);
                v.members.remove(at);
            }
            if let Some(e) = v.egress.get_mut(usize::from(port)) {
                *e = None;
            }
            if let Some(by) = v.vids.get_mut(usize::from(port)) {
                *by = 0;
            }
        }
        self.member_count -= 1;
        true
    }

    /// The largest port number that there is, a group's or a physical one's.
    pub fn last_port(&self) -> u16 {
        self.ports.len() as u16
    }

    /// All member entries: port, vid, entry; ascending.
    pub fn members(&self) -> impl Iterator<Item = (u16, u16, MemberConfig)> + '_ {
        let ports = 1..=self.last_port();
        ports.flat_map(|port| self.members_of(port, 0).map(move |(vid, m)| (port, vid, m)))
    }

    /// Those of one port, from a VID on; that of `TND_VID_ANY` is the last.
    pub fn members_of(
        &self,
        port: u16,
        first: u16,
    ) -> impl Iterator<Item = (u16, MemberConfig)> + '_ {
        let vids = self.port(port).and_then(|p| p.vids.as_deref());
        let aware = vids
            .unwrap_or_default()
            .iter()
            .enumerate()
            .skip(first.into())
            .inspect(|_| self.work.add(1))
            .filter(|(_, fid)| **fid != 0)
            .map(|(vid, _)| vid as u16);
        let all = aware.chain([raw::TND_VID_ANY]);
        all.filter_map(move |vid| self.member(port, vid).map(|m| (vid, m)))
    }

    /// Number of member entries.
    pub fn member_count(&self) -> usize {
        self.member_count
    }

    #[inline]
    pub(crate) fn egress_tag(&self, fid: u16, port: u16) -> Option<EgressTag> {
        self.vlan(fid)?
            .egress
            .get(usize::from(port))
            .copied()
            .flatten()
    }
}
