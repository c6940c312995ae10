//! Bridging: source and destination address of a frame in a forwarding domain.

use tandem_abi::raw;
use tandem_packet::{L3, ether};
use tandem_tables::exact::{Key, Place};

use crate::egress::Kind;
use crate::entry::{Action, FdbValue};
use crate::io::{Event, Sink};
use crate::names::{DropReason, Stage};
use crate::run::{Run, Step, action_text};
use crate::state::HOT_STORM;

/// Where the CPU learns it hears of a station so often in an ageing time: some of these frames may be lost on their way.
const HEARD: u64 = 8;
const fn often(ageing_s: u32) -> u64 {
    ageing_s as u64 * 1_000_000_000 / HEARD
}

/// What stays where it is, whatever its station does.
const FIXED: u16 = raw::TND_FDB_STATIC | raw::TND_FDB_STICKY;

/// ff02::1.
pub(crate) const ALL_NODES: [u8; 16] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

impl<S: Sink> Run<'_, '_, S> {
    /// Stages of a frame that belongs to a forwarding domain.
    pub(crate) fn bridge(&mut self) -> Step<()> {
        let Some(vlan) = self.st.vlan(self.fid) else {
            return self.drop(DropReason::NotMember);
        };
        let (flags, rif) = (vlan.config.flags, vlan.rif);
        self.source(flags)?;
        self.stage(Stage::L2Lookup);
        let dst = self.eth.dst;
        if ether::is_group(&dst) {
            return self.group(flags);
        }
        if let Some(rif) = rif
            && self.st.rif(rif).is_some_and(|r| r.mac == dst)
        {
            if S::TRACE {
                self.trace(Stage::L2Lookup, format_args!("router MAC of RIF {rif}"));
            }
            // Within the domain the classifying tag is no part of the frame; any other makes it a VLAN interface's.
            if self.eth.tag.is_some() && self.tag.tag().is_none() {
                let reason = self.protocol_reason().unwrap_or(raw::TND_TRAP_UNSUPPORTED);
                return self.trap(reason);
            }
            return self.route(rif);
        }
        match self.st.exact.get_mac_seen(self.fid, dst, self.hint.dst) {
            Some(hit) => {
                let entry = FdbValue::unpack(hit.value);
                if S::TRACE {
                    self.trace(
                        Stage::L2Lookup,
                        format_args!(
                            "FDB hit: {}, port {}",
                            action_text(entry.action),
                            entry.port
                        ),
                    );
                }
                match entry.action {
                    Action::Forward => self.unicast(entry.port),
                    Action::Drop => self.drop(DropReason::FdbDrop),
                    Action::Trap => {
                        let reason = self.protocol_reason().unwrap_or(raw::TND_TRAP_L2_LOCAL);
                        self.trap(reason)
                    }
                }
            }
            // what is not said yet may be known
            None if flags & raw::TND_VLAN_UC_TRAP != 0 || self.st.replayed => {
                let reason = self
                    .protocol_reason()
                    .unwrap_or(raw::TND_TRAP_FDB_INCOMPLETE);
                self.trap(reason)
            }
            None => {
                if S::TRACE {
                    self.trace(Stage::L2Lookup, format_args!("FDB miss: flood"));
                }
                self.storm(raw::TND_STORM_UNKNOWN_UC)?;
                self.flood(self.fid, Kind::Unicast, false)
            }
        }
    }

    /// Spanning tree, and what the source address teaches.
    fn source(&mut self, vlan_flags: u32) -> Step<()> {
        self.stage(Stage::Learning);
        if !ether::is_valid_source(&self.eth.src) {
            return self.drop(DropReason::BadSource);
        }
        let state = self
            .st
            .port(self.from)
            .map_or(raw::TND_STP_DISABLED, |p| p.config.stp_state);
        let link_local = ether::is_link_local(&self.eth.dst);
        let learns = matches!(state, raw::TND_STP_LEARNING | raw::TND_STP_FORWARDING);
        if learns {
            if self.port_flags & raw::TND_PORT_LOCKED != 0 && !link_local {
                self.check_locked()?;
            }
            let teaches = !link_local || vlan_flags & raw::TND_VLAN_NO_LL_LEARN == 0;
            if self.port_flags & raw::TND_PORT_LEARNING != 0
                && vlan_flags & raw::TND_VLAN_LEARNING != 0
                && teaches
            {
                self.learn();
            } else if vlan_flags & raw::TND_VLAN_CPU_LEARN != 0
                && self.port_flags & raw::TND_PORT_LEARNING != 0
                && !link_local
            {
                self.learned_by_cpu()?;
            }
        }
        // Spanning tree's own frames and their kin come through whatever the port's state is.
        if link_local {
            return self.trap(raw::TND_TRAP_LINK_PROTO);
        }
        match state {
            raw::TND_STP_FORWARDING => Ok(()),
            raw::TND_STP_LEARNING => self.drop(DropReason::StpLearning),
            _ => self.drop(DropReason::StpIngress),
        }
    }

    /// A locked port takes only frames of stations that its FDB knows behind it.
    #[cold]
    fn check_locked(&mut self) -> Step<()> {
        let known = self
            .st
            .exact
            .get_mac(self.fid, self.eth.src)
            .map(|hit| FdbValue::unpack(hit.value))
            .is_some_and(|e| e.action == Action::Forward && e.port == self.from);
        if known {
            Ok(())
        } else {
            self.drop(DropReason::Locked)
        }
    }

    /// Where the CPU learns, it gets what a bridge would learn from, and now and then a frame of a station that it knows.
    #[cold]
    fn learned_by_cpu(&mut self) -> Step<()> {
        let (fid, src) = (self.fid, self.eth.src);
        if let Some(hit) = self.st.exact.get_mac_seen(fid, src, self.hint.src) {
            let entry = FdbValue::unpack(hit.value);
            if entry.flags & FIXED != 0 || entry.action != Action::Forward {
                return Ok(());
            }
            if entry.port == self.from {
                let ageing = self.st.vlan(fid).map_or(0, |v| v.config.ageing_s);
                if entry.flags & raw::TND_FDB_NO_AGE != 0
                    || self.st.exact.idle_at(hit.place, self.now) < often(ageing)
                {
                    return Ok(());
                }
                if !S::DRY {
                    self.st.exact.touch_at(hit.place, self.now);
                }
            }
        }
        if S::TRACE {
            self.trace(
                Stage::Learning,
                format_args!("the CPU learns where the source is"),
            );
        }
        let reason = self.protocol_reason();
        self.trap(reason.unwrap_or(raw::TND_TRAP_FDB_INCOMPLETE))
    }

    #[inline]
    fn learn(&mut self) {
        let (fid, src) = (self.fid, self.eth.src);
        match self.st.exact.get_mac_seen(fid, src, self.hint.src) {
            Some(hit) => {
                let entry = FdbValue::unpack(hit.value);
                if entry.port == self.from && entry.action == Action::Forward {
                    if !S::DRY {
                        self.st.exact.touch_at(hit.place, self.now);
                    }
                } else {
                    self.learn_moved(hit.place, entry);
                }
            }
            None => self.learn_new(),
        }
    }

    #[cold]
    fn learn_moved(&mut self, at: Place, entry: FdbValue) {
        if entry.action != Action::Forward || entry.flags & FIXED != 0 {
            return;
        }
        let ingress = self.from;
        if S::TRACE {
            self.trace(
                Stage::Learning,
                format_args!("source moves from port {} to {ingress}", entry.port),
            );
        }
        if S::DRY {
            return;
        }
        // One without age stays somebody's, and may not give way to others.
        let learned = match entry.flags & raw::TND_FDB_NO_AGE {
            0 => raw::TND_FDB_LEARNED,
            _ => 0,
        };
        let now_here = FdbValue {
            port: self.from,
            flags: entry.flags | learned,
            ..entry
        };
        self.st.exact.set_value_at(at, now_here.pack());
        self.st.exact.touch_at(at, self.now);
        self.st.counters.learn.moved += 1;
        self.sink.event(Event::Move {
            fid: self.fid,
            mac: self.eth.src,
            port: self.from,
            old_port: entry.port,
        });
    }

    #[cold]
    fn learn_new(&mut self) {
        if S::TRACE {
            self.trace(Stage::Learning, format_args!("source is new: learned"));
        }
        if S::DRY {
            return;
        }
        let (fid, mac) = (self.fid, self.eth.src);
        let value = FdbValue {
            port: self.from,
            flags: raw::TND_FDB_LEARNED,
            action: Action::Forward,
            set: None,
        };
        match self
            .st
            .exact
            .insert(Key::Mac { fid, mac }, value.pack(), self.now)
        {
            Ok(_) => {
                self.st.counters.learn.learned += 1;
                self.sink.event(Event::Learn {
                    fid,
                    mac,
                    port: self.from,
                });
            }
            Err(_) => {
                self.st.counters.learn.full += 1;
                let vlan = self.st.vlan(fid);
                let asks = vlan.filter(|v| v.has(raw::TND_VLAN_UC_TRAP));
                if let Some(often) = asks.map(|v| often(v.config.ageing_s)) {
                    let (port, now) = (self.from, self.now);
                    self.unheard = self.st.heard.is_due(fid, mac, port, now, often);
                }
            }
        }
    }

    /// Broadcast and multicast.
    fn group(&mut self, flags: u32) -> Step<()> {
        let broadcast = self.eth.dst == ether::BROADCAST;
        self.storm(if broadcast {
            raw::TND_STORM_BROADCAST
        } else {
            raw::TND_STORM_MULTICAST
        })?;
        if !broadcast && flags & (raw::TND_VLAN_MC_TRAP | raw::TND_VLAN_SNOOP) != 0 {
            if flags & raw::TND_VLAN_MC_TRAP != 0 {
                self.snooped()?;
            } else if let Some(to) = self.snoop(flags)? {
                return self.send_to_group(to, flags);
            }
        }
        let (kind, otherwise) = if broadcast {
            (Kind::Broadcast, raw::TND_TRAP_BROADCAST)
        } else {
            (Kind::Multicast, raw::TND_TRAP_BROADCAST)
        };
        // a list that traps gets the frame before a copy of it is on its way
        if self.filtered_out() {
            self.leaving_by_flood(self.fid, kind, None)?;
        }
        let copied = flags & raw::TND_VLAN_CPU_COPY != 0 && {
            let reason = self.protocol_reason().unwrap_or(otherwise);
            self.copy(reason, raw::TND_RX_L2_FORWARDED)
        };
        self.flood(self.fid, kind, copied)
    }

    /// Storm control of the port that the frame came in by: before a copy of it goes anywhere, the CPU included.
    #[inline]
    fn storm(&mut self, kind: u8) -> Step<()> {
        if self.port_flags & HOT_STORM == 0 {
            return Ok(());
        }
        self.limited(kind)
    }

    #[cold]
    fn limited(&mut self, kind: u8) -> Step<()> {
        let (packets, bytes, now) = (self.wire.packets, self.wire.bytes, self.now);
        let passes = self
            .st
            .storm_of(self.from, kind)
            .is_none_or(|s| s.admit(packets, bytes, now, S::DRY));
        if passes {
            Ok(())
        } else {
            self.drop(DropReason::StormControl)
        }
    }

    /// A bridge that snoops: membership messages and IP multicast beyond the link are the CPU's to forward.
    fn snooped(&mut self) -> Step<()> {
        use tandem_packet::parse::protocol::IGMP;
        match self.eth.l3(self.frame.bytes()) {
            L3::Ip4(ip) if ip.l4.protocol == IGMP => self.trap(raw::TND_TRAP_IGMP_MLD),
            L3::Ip4(ip) if !matches!(ip.dst, [224, 0, 0, _]) => {
                let reason = self.protocol_reason();
                self.trap(reason.unwrap_or(raw::TND_TRAP_L2_MULTICAST))
            }
            L3::Ip6(ip) if ip.l4.is_mld() => self.trap(raw::TND_TRAP_IGMP_MLD),
            // Of the link's own groups only all nodes: every other one has its listeners (RFC 4541 3).
            L3::Ip6(ip) if ip.dst != ALL_NODES => {
                let reason = self.protocol_reason();
                self.trap(reason.unwrap_or(raw::TND_TRAP_L2_MULTICAST))
            }
            L3::Bad(_) => self.trap(raw::TND_TRAP_ERROR),
            _ => Ok(()),
        }
    }
}
