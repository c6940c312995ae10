//! TND_CLS_VLAN_MEMBER: (port, VID) belongs to a forwarding domain.

use crate::Firmware;
use crate::costs::{Cost, CostRow};
use crate::object::{DEPEND, EXISTS, Failure, INVALID, Object, body};
use crate::pools::PoolId;
use tandem_abi::raw;
use tandem_pipeline::state::{MAX_VID, MemberConfig};
use zerocopy::IntoBytes;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member(raw::tnd_vlan_member);

impl Member {
    pub(crate) fn from_state(port: u16, vid: u16, c: MemberConfig) -> Self {
        Self(raw::tnd_vlan_member {
            struct_size: size_of::<raw::tnd_vlan_member>() as u16,
            fid: c.fid,
            port,
            vid,
            flags: c.flags,
            reserved0: 0,
        })
    }
}

impl Object for Member {
    // by port and VID: far apart
    const SPARSE: bool = true;
    const CLASS: u16 = raw::TND_CLS_VLAN_MEMBER;
    const NAME: &'static str = "member";
    const COSTS: &'static [CostRow] = &[CostRow::only("vlan-member", |_| {
        vec![Cost::of(PoolId::VlanMember, 1)]
    })];

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 8).map(Self)
    }
    fn normal(self, fw: &Firmware) -> Result<Self, Failure> {
        let m = self.0;
        let any = m.vid == raw::TND_VID_ANY;
        if !fw.state.has_port(m.port) || !(any || (1..=MAX_VID).contains(&m.vid)) {
            return Err(INVALID);
        }
        let known = raw::TND_MEMBER_PVID | raw::TND_MEMBER_UNTAGGED;
        // a VLAN-unaware port takes and leaves everything: its flags say so
        let flags = if any { known } else { m.flags & known };
        Ok(Self::from_state(
            m.port,
            m.vid,
            MemberConfig { fid: m.fid, flags },
        ))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        let m = self.0;
        fw.state
            .member(m.port, m.vid)
            .map(|c| Self::from_state(m.port, m.vid, c))
    }
    fn depends(&self, fw: &Firmware) -> Result<(), Failure> {
        let m = self.0;
        if fw.state.vlan(m.fid).is_none() {
            return Err(DEPEND);
        }
        // A port is VLAN-aware or not, and has one VID in a domain: another entry must go first.
        let clash = if m.vid == raw::TND_VID_ANY {
            fw.state.is_vlan_aware(m.port)
        } else {
            let here = fw.state.vid_in(m.fid, m.port);
            fw.state.member(m.port, raw::TND_VID_ANY).is_some()
                || here.is_some_and(|vid| vid != m.vid)
        };
        if clash { Err(EXISTS) } else { Ok(()) }
    }
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        let m = self.0;
        if old.is_none() {
            fw.take(PoolId::VlanMember, 1)?;
        }
        fw.state
            .set_member(
                m.port,
                m.vid,
                MemberConfig {
                    fid: m.fid,
                    flags: m.flags,
                },
            )
            .map_err(|_| INVALID)
    }
    fn in_use(&self, _: &Firmware) -> bool {
        false
    }
    fn remove(&self, fw: &mut Firmware) {
        if fw.state.remove_member(self.0.port, self.0.vid) {
            fw.give(PoolId::VlanMember, 1);
        }
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn position(&self, _: &Firmware) -> Option<u64> {
        Some(u64::from(self.0.port) << 16 | u64::from(self.0.vid))
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        let (first, vid) = ((from >> 16) as u16, from as u16);
        let at = |port: u16, vid: u16| u64::from(port) << 16 | u64::from(vid);
        (first.max(1)..=fw.state.last_port()).flat_map(move |port| {
            let members = fw
                .state
                .members_of(port, if port == first { vid } else { 0 });
            let members =
                members.map(move |(vid, m)| (at(port, vid), Some(Self::from_state(port, vid, m))));
            // a port without any is looked at as well
            members.chain([(at(port, u16::MAX), None)])
        })
    }
}
