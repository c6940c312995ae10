//! Multicast in a domain that snoops: to the members of a group and to where multicast routers are.
//!
//! ```text
//!  IGMP, MLD, PIM hello, what the kernel looks at ──► CPU
//!  group of the link alone ─────────────────────────► flood
//!  IP ──► no querier: flood ──► querier: (S, G) or (*, G) in the MDB? ─► its ports + router ports
//!  else ► MAC address in the MDB? ─► its ports + router ports               └ no: router ports
//!                      └ no: flood
//! ```

use tandem_abi::raw;
use tandem_packet::L3;
use tandem_packet::parse::protocol;

use crate::egress::Kind;
use crate::entry::Action;
use crate::io::Sink;
use crate::l2::ALL_NODES;
use crate::names::Stage;
use crate::run::{Run, Step};
use crate::state::{MdbKey, NO_GROUP};

/// All PIM routers (RFC 7761 4.3).
const PIM_ROUTERS: [u8; 4] = [224, 0, 0, 13];

/// Who gets a frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToGroup {
    /// Slot of the group, or none: router ports alone.
    slot: u32,
    /// `TND_PORT_ROUTER*`
    routers: u32,
    /// The CPU is one of them.
    cpu: bool,
}

/// Bits of a domain's flags for one family.
struct Family {
    members: u32,
    trap: u32,
    cpu: u32,
    routers: u32,
    key: MdbKey,
}

impl<S: Sink> Run<'_, '_, S> {
    /// None: the frame is flooded.
    pub(crate) fn snoop(&mut self, flags: u32) -> Step<Option<ToGroup>> {
        let fid = self.fid;
        let key = |family, addr, source| MdbKey {
            fid,
            family,
            addr,
            source,
        };
        match self.eth.l3(self.frame.bytes()) {
            L3::Ip4(ip) if ip.l4.protocol == protocol::IGMP => self.trap(raw::TND_TRAP_IGMP_MLD),
            // tells where routers are
            L3::Ip4(ip) if ip.dst == PIM_ROUTERS && ip.l4.protocol == protocol::PIM => {
                self.trap(raw::TND_TRAP_ROUTING)
            }
            L3::Ip4(ip) if matches!(ip.dst, [224, 0, 0, _]) => Ok(None),
            L3::Ip4(ip) => self.in_family(
                flags,
                &Family {
                    members: raw::TND_VLAN_MC4_MEMBERS,
                    trap: raw::TND_VLAN_MC4_TRAP,
                    cpu: raw::TND_VLAN_MC4_CPU,
                    routers: raw::TND_PORT_ROUTER4,
                    key: key(raw::TND_AF_INET, wide(&ip.dst), wide(&ip.src)),
                },
            ),
            L3::Ip6(ip) if ip.l4.is_mld() => self.trap(raw::TND_TRAP_IGMP_MLD),
            // the kernel looks for MLD behind it, and drops what it finds broken; so it does without a payload
            L3::Ip6(ip) if ip.hop_by_hop || ip.payload_len == 0 => self.trap(raw::TND_TRAP_ERROR),
            L3::Ip6(ip) if ip.dst == ALL_NODES => Ok(None),
            L3::Ip6(ip) => self.in_family(
                flags,
                &Family {
                    members: raw::TND_VLAN_MC6_MEMBERS,
                    trap: raw::TND_VLAN_MC6_TRAP,
                    cpu: raw::TND_VLAN_MC6_CPU,
                    routers: raw::TND_PORT_ROUTER6,
                    key: key(raw::TND_AF_INET6, ip.dst, ip.src),
                },
            ),
            L3::Bad(_) => self.trap(raw::TND_TRAP_ERROR),
            L3::Other | L3::Arp => {
                let key = key(0, wide(&self.eth.dst), [0; 16]);
                match self.st.mdb.lookup(key) {
                    Some((slot, e)) if e.config.action == Action::Forward => Ok(Some(ToGroup {
                        slot,
                        routers: raw::TND_PORT_ROUTER4,
                        cpu: e.config.cpu,
                    })),
                    None if flags & raw::TND_VLAN_MAC_TRAP == 0 => Ok(None),
                    _ => self.trap_group(),
                }
            }
        }
    }

    fn in_family(&mut self, flags: u32, f: &Family) -> Step<Option<ToGroup>> {
        let traps = flags & f.trap != 0;
        if flags & f.members == 0 {
            return if traps { self.trap_group() } else { Ok(None) };
        }
        let (slot, cpu) = match self.st.mdb.lookup(f.key) {
            Some((slot, e)) if e.config.action == Action::Forward => (slot, e.config.cpu),
            None if !traps => (NO_GROUP, false),
            _ => return self.trap_group(),
        };
        Ok(Some(ToGroup {
            slot,
            routers: f.routers,
            cpu: cpu || flags & f.cpu != 0,
        }))
    }

    fn trap_group<T>(&mut self) -> Step<T> {
        let reason = self.protocol_reason();
        self.trap(reason.unwrap_or(raw::TND_TRAP_L2_MULTICAST))
    }

    /// Sends the frame to a group, the CPU among its members where the bridge device is up in this domain.
    pub(crate) fn send_to_group(&mut self, to: ToGroup, flags: u32) -> Step<()> {
        if S::TRACE {
            match self.st.mdb.at(to.slot) {
                Some(e) => {
                    let ports = e.config.ports.len();
                    self.trace(
                        Stage::L2Lookup,
                        format_args!("multicast group of {ports} ports"),
                    );
                }
                None => self.trace(
                    Stage::L2Lookup,
                    format_args!("multicast group without members: to routers"),
                ),
            }
        }
        self.group = to.slot;
        let kind = Kind::Group(to.routers);
        if self.filtered_out() {
            self.leaving_by_flood(self.fid, kind, None)?;
        }
        let copied = to.cpu && flags & raw::TND_VLAN_CPU_COPY != 0 && {
            let reason = self.protocol_reason();
            self.copy(
                reason.unwrap_or(raw::TND_TRAP_L2_MULTICAST),
                raw::TND_RX_L2_FORWARDED,
            )
        };
        self.flood(self.fid, kind, copied)
    }
}

/// An address in the field that holds all kinds.
fn wide(addr: &[u8]) -> [u8; 16] {
    let mut out = [0; 16];
    for (to, from) in out.iter_mut().zip(addr) {
        *to = *from;
    }
    out
}
