//! One frame's way: the context every stage works on, and the first stages.

use std::fmt::Arguments;

use tandem_abi::raw;
use tandem_packet::segment::{self, Wire};
use tandem_packet::{EtherType, Frame, L3, L4, Parsed, Tag, ether, parse};

use crate::acl::Pending;
use crate::entry::Action;
use crate::io::{CpuMeta, Sink};
use crate::names::{DropReason, Stage};
use crate::police::Policed;
use crate::state::{HOT_ACL, NO_GROUP, State, Untagged};
use crate::tag::DomainTag;
use crate::warm::Hint;

/// What a stage says when the frame has found its end (forwarded, trapped or dropped, and counted).
pub(crate) struct Done;

/// A stage's answer: go on with `T`, or the frame is done.
pub(crate) type Step<T> = Result<T, Done>;

/// Bytes that a frame may have beyond the port's MTU: header and one tag. An outer tag is not counted beyond that, as the
/// kernel carries it beside the packet (net/core/dev.c, `is_skb_forwardable`).
const OVERHEAD: usize = ether::HEADER + ether::TAG;

/// A frame on its way.
pub(crate) struct Run<'a, 'm, S: Sink> {
    pub(crate) st: &'a mut State,
    pub(crate) frame: &'a mut Frame<'m>,
    pub(crate) sink: &'a mut S,
    pub(crate) now: u64,
    /// The front-panel port.
    pub(crate) ingress: u16,
    /// That port, or the one of its link aggregation group: what is configured, learned, kept apart.
    pub(crate) from: u16,
    /// [`crate::state::Port::hot`] of [`Run::from`].
    pub(crate) port_flags: u32,
    pub(crate) eth: Parsed,
    pub(crate) wire: Wire,
    /// Forwarding domain, 0 = none.
    pub(crate) fid: u16,
    /// The tag that chose the domain.
    pub(crate) tag: DomainTag,
    /// Longest frame on the wire, without outer tag: what the MTU checks of Ethernet see.
    pub(crate) l2_len: usize,
    /// The CPU answers for stations that are not in the table, and there is no room for this frame's: it has to hear of it.
    pub(crate) unheard: bool,
    /// The frame was routed; its addresses are new.
    pub(crate) routed: bool,
    /// What rules have to say later.
    pub(crate) acl: Pending,
    /// Slot of the next-hop group that decided, and which of its members it took.
    pub(crate) member: Option<(u32, u32)>,
    /// Slot of the multicast group that says who gets it; [`crate::state::NO_GROUP`]: none.
    pub(crate) group: u32,
    /// What is known about it ahead.
    pub(crate) hint: Hint,
}

/// Does a frame of `l2_len` bytes fit a port with this MTU?
#[inline]
pub(crate) fn fits(l2_len: usize, mtu: u32) -> bool {
    l2_len <= mtu as usize + OVERHEAD
}

/// The first stages, before there is a parsed frame to work on.
pub(crate) fn process<S: Sink>(
    st: &mut State,
    frame: &mut Frame<'_>,
    ingress: u16,
    now: u64,
    sink: &mut S,
    hint: Hint,
) {
    let wire = segment::wire(frame.bytes(), &frame.offload);
    macro_rules! end {
        ($reason:expr) => {{
            if !S::DRY {
                st.counters.drop(ingress, $reason, wire.packets);
            }
            if S::TRACE {
                sink.trace($reason.stage(), format_args!("drop: {}", $reason));
            }
            return;
        }};
    }
    if !S::DRY {
        st.counters.stage(Stage::IngressMac);
        let known = if ingress <= st.port_count() {
            ingress
        } else {
            0
        };
        if let Some(c) = st.counters.port_mut(known) {
            c.rx.count(frame.bytes(), wire);
        }
    }
    if S::TRACE {
        sink.trace(
            Stage::IngressMac,
            format_args!("port {ingress}, {} bytes", frame.len()),
        );
    }
    let Some(port) = st.port(ingress).filter(|_| ingress <= st.port_count()) else {
        end!(DropReason::NoSuchPort);
    };
    if !port.is_up() {
        end!(DropReason::PortDown);
    }
    let Some(eth) = parse(frame.bytes()) else {
        end!(DropReason::Runt);
    };
    let l2_len = match eth.tag {
        Some(_) => wire.longest.saturating_sub(ether::TAG),
        None => wire.longest,
    };
    if !fits(l2_len, port.config.mtu) {
        end!(DropReason::Oversize);
    }
    let (from, port_flags) = match port.lag {
        0 => (ingress, port.hot),
        lag => (lag, st.port(lag).map_or(0, |l| l.hot)),
    };
    let mut run = Run {
        st,
        frame,
        sink,
        now,
        ingress,
        from,
        port_flags,
        eth,
        wire,
        fid: 0,
        tag: DomainTag::None,
        l2_len,
        unheard: false,
        routed: false,
        acl: Pending::nothing(),
        member: None,
        group: NO_GROUP,
        hint,
    };
    // Whatever the stages answer has been counted where it was decided.
    let _ = run.stages();
}

impl<S: Sink> Run<'_, '_, S> {
    fn stages(&mut self) -> Step<()> {
        self.stage(Stage::Parser);
        if S::TRACE {
            let e = self.eth;
            self.trace(
                Stage::Parser,
                format_args!(
                    "{} -> {}, type {:#06x}{}",
                    ether::show(&e.src),
                    ether::show(&e.dst),
                    e.ethertype.0,
                    ShowTag(e.tag)
                ),
            );
        }
        if self.from != self.ingress {
            self.by_lag()?;
        }
        if self.port_flags & (raw::TND_PORT_TRAP_ALL | raw::TND_PORT_FLOWS | HOT_ACL) != 0 {
            if self.port_flags & raw::TND_PORT_FLOWS != 0 {
                return self.by_flows();
            }
            if self.port_flags & raw::TND_PORT_TRAP_ALL != 0 {
                let reason = self.protocol_reason().unwrap_or(raw::TND_TRAP_UNSUPPORTED);
                return self.trap(reason);
            }
            self.port_acl()?;
        }
        if self.classify()? {
            self.bridge()
        } else {
            self.router_port()
        }
    }

    /// What comes in by a member of a link aggregation group is the group's, if the member takes part.
    #[cold]
    fn by_lag(&mut self) -> Step<()> {
        let (from, ingress) = (self.from, self.ingress);
        if S::TRACE {
            self.trace(
                Stage::Parser,
                format_args!("link aggregation group: port {from}"),
            );
        }
        // its own protocol comes through, whoever takes part
        if matches!(self.eth.dst, [0x01, 0x80, 0xc2, 0, 0, 0x02]) {
            return self.trap(raw::TND_TRAP_LINK_PROTO);
        }
        let lag = self.st.lag_at(from).and_then(|l| self.st.lag(l));
        let why = if !lag.is_some_and(|l| l.takes_part(ingress)) {
            DropReason::LagInactive
        } else if !self.st.port(from).is_some_and(|p| p.is_up()) {
            DropReason::PortDown
        } else {
            return Ok(());
        };
        // what is for this link alone is the link's, part of a group or not: LLDP on a backup (the kernel's
        // bond_handle_frame passes every such address)
        if ether::is_link_local(&self.eth.dst) {
            return self.trap(raw::TND_TRAP_LINK_PROTO);
        }
        self.drop(why)
    }

    /// VLAN classification. True: the frame belongs to a forwarding domain; false: the port is in none.
    fn classify(&mut self) -> Step<bool> {
        self.stage(Stage::Vlan);
        let Some(port) = self.st.port(self.from) else {
            return self.drop(DropReason::NoSuchPort);
        };
        let own = self.eth.tag.filter(|t| t.tpid == EtherType::VLAN.0);
        // what a rule gave it goes before what it came with
        let tag = match self.tag {
            DomainTag::None => own.map_or(DomainTag::None, DomainTag::Present),
            given => given,
        };
        match (&port.vids, tag.tag()) {
            (Some(vids), Some(t)) if t.vid() != 0 => {
                let fid = vids.get(usize::from(t.vid())).copied().unwrap_or(0);
                if fid == 0 {
                    return self.no_vlan(DropReason::NotMember);
                }
                self.fid = fid;
                self.tag = tag;
            }
            (vids, _) => match port.untagged {
                Untagged::Any(fid) => self.fid = fid,
                Untagged::Pvid(fid) => {
                    self.fid = fid;
                    // a priority tag carries no VLAN, and ends here
                    self.tag = tag;
                }
                Untagged::None if vids.is_some() && port.rif.is_none() => {
                    return self.no_vlan(DropReason::NoPvid);
                }
                Untagged::None => return Ok(false),
            },
        }
        if S::TRACE {
            let fid = self.fid;
            self.trace(Stage::Vlan, format_args!("forwarding domain {fid}"));
        }
        Ok(true)
    }

    /// A frame of none of the port's VLANs. What is for this link alone is not the VLAN filter's to drop: BPDUs, LLDP
    /// (IEEE 802.1Q 8.6.3; the kernel's br_handle_frame looks at the address first).
    #[cold]
    fn no_vlan(&mut self, why: DropReason) -> Step<bool> {
        if ether::is_link_local(&self.eth.dst) {
            return self.trap(raw::TND_TRAP_LINK_PROTO);
        }
        self.drop(why)
    }

    /// A port that is in no bridge: a router interface, or nothing but the CPU's.
    fn router_port(&mut self) -> Step<()> {
        let dst = self.eth.dst;
        if ether::is_link_local(&dst) {
            return self.trap(raw::TND_TRAP_LINK_PROTO);
        }
        let Some(port) = self.st.port(self.from) else {
            return self.drop(DropReason::NoSuchPort);
        };
        // A priority tag (VID 0) is as good as none; any other belongs to a VLAN interface.
        let tag = self.eth.tag.filter(|t| t.vid() != 0);
        let own = port.config.mac;
        let rif = match tag {
            None => port.rif,
            Some(t) if t.tpid == EtherType::VLAN.0 => port.vid_rif(t.vid()),
            Some(_) => None,
        };
        let rif_mac = rif.and_then(|r| self.st.rif(r)).map(|r| r.mac);
        if S::TRACE {
            match rif {
                Some(rif) => self.trace(Stage::Vlan, format_args!("router interface {rif}")),
                None => self.trace(Stage::Vlan, format_args!("no bridge, no router interface")),
            }
        }
        let for_us = dst == own || rif_mac == Some(dst);
        let group = ether::is_group(&dst);
        if !for_us && !group {
            return self.drop(DropReason::OtherHost);
        }
        // without a router interface for its VLAN: one that only the CPU may have
        if tag.is_some() && rif.is_none() {
            let reason = self.protocol_reason().unwrap_or(raw::TND_TRAP_UNSUPPORTED);
            return self.trap(reason);
        }
        if group {
            let reason = self
                .protocol_reason()
                .unwrap_or(if dst == ether::BROADCAST {
                    raw::TND_TRAP_BROADCAST
                } else {
                    raw::TND_TRAP_L2_MULTICAST
                });
            return self.trap(reason);
        }
        match rif {
            Some(rif) if rif_mac == Some(dst) => {
                self.tag = match self.eth.tag {
                    Some(_) => DomainTag::Foreign,
                    None => DomainTag::None,
                };
                self.route(rif)
            }
            _ => {
                let reason = self.protocol_reason().unwrap_or(raw::TND_TRAP_L2_LOCAL);
                self.trap(reason)
            }
        }
    }

    /// The reason that the frame's own protocol gives, whatever brought it to the CPU: so ARP and routing protocols keep
    /// their class in every trap.
    #[cold]
    pub(crate) fn protocol_reason(&self) -> Option<u16> {
        if ether::is_link_local(&self.eth.dst) {
            return Some(raw::TND_TRAP_LINK_PROTO);
        }
        // IS-IS: all level 1 and level 2 systems (ISO 10589)
        if matches!(self.eth.dst, [0x01, 0x80, 0xc2, 0, 0, 0x14 | 0x15]) {
            return Some(raw::TND_TRAP_ROUTING);
        }
        match self.eth.l3(self.frame.bytes()) {
            L3::Arp => Some(raw::TND_TRAP_ARP),
            l3 => self.ip_reason(&l3),
        }
    }

    /// The reason that the protocol over IP gives, behind an authentication header, too: OSPFv3 has no other authentication
    /// (RFC 4552).
    #[cold]
    fn ip_reason(&self, l3: &L3) -> Option<u16> {
        use tandem_packet::parse::protocol::AH;
        let behind = |l4: L4| match l4.protocol {
            AH => self.eth.behind_ah(self.frame.bytes()).unwrap_or(l4),
            _ => l4,
        };
        match l3 {
            L3::Ip4(ip) => protocol4(&behind(ip.l4)),
            L3::Ip6(ip) => protocol6(&behind(ip.l4)),
            _ => None,
        }
    }

    /// The reason of a packet to an own address.
    #[cold]
    pub(crate) fn local_reason(&self, l3: &L3) -> u16 {
        self.ip_reason(l3).unwrap_or(raw::TND_TRAP_LOCAL)
    }

    // ---- ends

    /// Counts a drop.
    #[cold]
    pub(crate) fn drop<T>(&mut self, reason: DropReason) -> Step<T> {
        self.commit();
        if !S::DRY {
            self.st
                .counters
                .drop(self.ingress, reason, self.wire.packets);
        }
        if S::TRACE {
            self.trace(reason.stage(), format_args!("drop: {reason}"));
        }
        Err(Done)
    }

    /// To the CPU, and nowhere else.
    pub(crate) fn trap<T>(&mut self, reason: u16) -> Step<T> {
        self.trap_as(reason, None)
    }

    /// The same, for a rule that names the class (it counts with the rule's own reason only: protocols keep theirs).
    pub(crate) fn trap_as<T>(&mut self, reason: u16, class: Option<u16>) -> Step<T> {
        self.forget();
        if self.punt(reason, 0, class) {
            if !S::DRY
                && let Some(c) = self.st.counters.port_mut(self.ingress)
            {
                c.trapped += self.wire.packets;
            }
            Err(Done)
        } else {
            self.drop(DropReason::TrapPolicer)
        }
    }

    /// A copy to the CPU of what is forwarded as well (`flags`: `TND_RX_*`). True if the policer let it pass.
    pub(crate) fn copy(&mut self, reason: u16, flags: u16) -> bool {
        let passed = self.punt(reason, flags, None);
        if passed
            && !S::DRY
            && let Some(c) = self.st.counters.port_mut(self.ingress)
        {
            c.copied += self.wire.packets;
        }
        passed
    }

    /// Hands the frame, still as it came in, to the CPU if the reason's policer lets it pass. True as well if its class's
    /// does not: it is lost behind the decision.
    fn punt(&mut self, reason: u16, flags: u16, class: Option<u16>) -> bool {
        self.stage(Stage::Cpu);
        let by_rule = matches!(reason, raw::TND_TRAP_ACL | raw::TND_TRAP_FLOW);
        let class = class.filter(|_| by_rule);
        let (class, policed) = self.police_trap(reason, class, self.wire.packets);
        if policed != Policed::Pass {
            return policed == Policed::Class;
        }
        if S::TRACE {
            self.trace(
                Stage::Cpu,
                format_args!(
                    "{} to CPU: {}, class {}",
                    if flags == 0 { "packet" } else { "copy" },
                    crate::trap::reason_name(reason),
                    crate::trap::trap_class_name(class)
                ),
            );
        }
        let tag = self.eth.tag;
        let meta = CpuMeta {
            port: self.ingress,
            reason,
            class,
            flags: flags | if tag.is_some() { raw::TND_RX_TAGGED } else { 0 },
            fid: self.fid,
            tag,
            time_ns: self.now,
        };
        self.sink.cpu(meta, self.frame);
        true
    }

    /// What the policers say to this frame for a reason, and in which class it is, if it is so many packets to the CPU; it is
    /// counted. Nobody else polices traps.
    /// Apart from the stages that trap: within them it costs those that forward.
    #[inline(never)]
    pub(crate) fn police_trap(
        &mut self,
        reason: u16,
        class: Option<u16>,
        packets: u64,
    ) -> (u16, Policed) {
        let Some(config) = self.st.trap(reason) else {
            return (raw::TND_TC_DATA, Policed::Reason);
        };
        let class = class.unwrap_or(config.class);
        if S::DRY {
            return (class, Policed::Pass);
        }
        let (port, now, bytes) = (self.ingress, self.now, self.wire.bytes);
        let policed = self.st.police.admit(reason, class, port, packets, now);
        if let Some(c) = self.st.counters.traps.get_mut(usize::from(reason)) {
            if policed == Policed::Reason {
                c.policed += packets;
            } else {
                c.packets += packets;
                c.bytes += bytes;
            }
        }
        (class, policed)
    }

    // ---- help

    /// Counts the frame into a stage.
    #[inline]
    pub(crate) fn stage(&mut self, stage: Stage) {
        if !S::DRY {
            self.st.counters.stage(stage);
        }
    }

    /// One line of a trace; the caller has asked `S::TRACE`, so that arguments cost nothing.
    pub(crate) fn trace(&mut self, stage: Stage, text: Arguments<'_>) {
        self.sink.trace(stage, text);
    }
}

/// Protocols over IPv4 that have a reason of their own.
fn protocol4(l4: &L4) -> Option<u16> {
    use tandem_packet::parse::protocol::IGMP;
    if l4.protocol == IGMP {
        return Some(raw::TND_TRAP_IGMP_MLD);
    }
    routing(l4)
}

/// Protocols over IPv6 that have a reason of their own.
fn protocol6(l4: &L4) -> Option<u16> {
    if l4.is_nd() {
        return Some(raw::TND_TRAP_ND);
    }
    if l4.is_mld() {
        return Some(raw::TND_TRAP_IGMP_MLD);
    }
    routing(l4)
}

/// Routing protocols by protocol number, or by port (IANA): BGP 179, LDP 646, RIP 520, RIPng 521, BFD 3784, 3785, 4784.
fn routing(l4: &L4) -> Option<u16> {
    use tandem_packet::parse::protocol::{EIGRP, OSPF, PIM, TCP, UDP, VRRP};
    let is = match l4.protocol {
        EIGRP | OSPF | PIM | VRRP => true,
        TCP => [l4.src_port, l4.dst_port]
            .iter()
            .any(|p| matches!(p, 179 | 646)),
        UDP => matches!(l4.dst_port, 520 | 521 | 646 | 3784 | 3785 | 4784),
        _ => false,
    };
    is.then_some(raw::TND_TRAP_ROUTING)
}

/// Text of a tag in a trace.
struct ShowTag(Option<Tag>);

impl std::fmt::Display for ShowTag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(t) => write!(f, ", tag {:#06x} VLAN {}", t.tpid, t.vid()),
            None => f.write_str(", untagged"),
        }
    }
}

/// Text of an action in a trace.
pub(crate) fn action_text(a: Action) -> &'static str {
    match a {
        Action::Forward => "forward",
        Action::Trap => "trap",
        Action::Drop => "drop",
    }
}
