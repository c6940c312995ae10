//! What the tests of this crate share: small chips, frames built by an independent library, answers in a comparable form.

use etherparse::PacketBuilder;
use tandem_abi::raw;
use tandem_tables::exact::{ExactMatch, Geometry, Key, Widths};
use tandem_tables::lpm::{Lpm4, Lpm6};

use crate::entry::{Action, FdbValue, HostValue, RouteTarget};
use crate::state::{
    MemberConfig, NexthopConfig, PortConfig, RifConfig, RifPlace, State, VlanConfig,
};
use crate::{Buffer, CpuMeta, DropReason, Event, Frame, Mac, Offload, Sink};

/// A chip with `ports` ports, a 4,096-slot exact-match table and 1,024 routes of each family.
pub fn state(ports: u16) -> State {
    state_sized(ports, 256)
}

/// The same with `buckets` buckets of 4 slots in each of 4 banks.
pub fn state_sized(ports: u16, buckets: u32) -> State {
    let exact = ExactMatch::new(
        Geometry {
            banks: 4,
            buckets_per_bank: buckets,
            slots_per_bucket: 4,
            stash: 4,
            max_moves: 16,
        },
        Widths {
            mac: 1,
            host4: 1,
            host6: 2,
        },
        1,
    )
    .unwrap();
    State::new(ports, exact, Lpm4::new(1024, 1), Lpm6::new(1024, 1))
}

/// MAC address of a station: 02:00:00:00:hi:lo.
pub fn mac(n: u16) -> Mac {
    let [hi, lo] = n.to_be_bytes();
    [2, 0, 0, 0, hi, lo]
}

/// MAC address of a router interface.
pub fn router_mac(rif: u16) -> Mac {
    let [hi, lo] = rif.to_be_bytes();
    [2, 0xaa, 0, 0, hi, lo]
}

/// All ports up, as a driver would set them.
pub fn ports_up(s: &mut State) {
    for port in 1..=s.port_count() {
        let flags = PortConfig::default().flags | raw::TND_PORT_UP;
        let config = PortConfig {
            flags,
            mac: router_mac(port),
            ..PortConfig::default()
        };
        s.set_port(port, config).unwrap();
        s.set_link(port, true).unwrap();
    }
}

/// Sets or clears flags of a port.
pub fn port_flags(s: &mut State, port: u16, on: u32, off: u32) {
    let mut c = s.port(port).unwrap().config;
    c.flags = c.flags & !off | on;
    s.set_port(port, c).unwrap();
}

/// VLAN-unaware bridge, FID 1, over all ports; the bridge device is up.
pub fn bridge(ports: u16) -> State {
    let mut s = state(ports);
    ports_up(&mut s);
    s.set_vlan(
        1,
        VlanConfig {
            flags: raw::TND_VLAN_LEARNING | raw::TND_VLAN_CPU_COPY,
            ageing_s: 300,
        },
    )
    .unwrap();
    for port in 1..=ports {
        let flags = raw::TND_MEMBER_PVID | raw::TND_MEMBER_UNTAGGED;
        s.set_member(port, raw::TND_VID_ANY, MemberConfig { fid: 1, flags })
            .unwrap();
    }
    s
}

/// Writes an FDB entry.
pub fn fdb(s: &mut State, fid: u16, addr: Mac, port: u16, action: Action, flags: u16) {
    let value = FdbValue {
        port,
        flags,
        action,
        set: None,
    };
    s.exact
        .insert(Key::Mac { fid, mac: addr }, value.pack(), 0)
        .unwrap();
}

/// Router with RIF n on port n (1..=ports): 10.0.n.0/24 and 2001:db8:n::/64 connected, .1 ours, host .9 known as
/// `mac(n)`; both families forward. Next hop n goes to that host.
pub fn router(ports: u16) -> State {
    let mut s = state(ports);
    ports_up(&mut s);
    for n in 1..=ports {
        add_rif(&mut s, n, RifPlace::Port(n));
    }
    s
}

/// One router interface of [`router`].
pub fn add_rif(s: &mut State, n: u16, place: RifPlace) {
    s.set_rif(
        n,
        RifConfig {
            vrf: 0,
            place,
            mac: router_mac(n),
            flags: raw::TND_RIF_V4 | raw::TND_RIF_V6,
            mtu: 1500,
        },
    )
    .unwrap();
    let nh = NexthopConfig {
        rif: n,
        action: Action::Forward,
        reason: 0,
        mac: mac(n),
    };
    s.set_nexthop(u32::from(n), nh).unwrap();
    let host = HostValue {
        rif: n,
        action: Action::Forward,
        mac: mac(n),
    };
    let connected = RouteTarget::Trap(raw::TND_TRAP_CONNECTED as u8).pack();
    let local = RouteTarget::Trap(raw::TND_TRAP_LOCAL as u8).pack();
    let net4 = u32::from_be_bytes([10, 0, n as u8, 0]);
    s.lpm4.insert(0, net4, 24, connected).unwrap();
    s.lpm4.insert(0, net4 + 1, 32, local).unwrap();
    let key = Key::Host4 {
        vrf: 0,
        addr: [10, 0, n as u8, 9],
    };
    s.exact.insert(key, host.pack(), 0).unwrap();
    let net6 = u128::from_be_bytes(ip6(n, 0));
    s.lpm6.insert(0, net6, 64, connected).unwrap();
    s.lpm6.insert(0, net6 + 1, 128, local).unwrap();
    let key = Key::Host6 {
        vrf: 0,
        addr: ip6(n, 9),
    };
    s.exact.insert(key, host.pack(), 0).unwrap();
}

/// 2001:db8:net::host
pub fn ip6(net: u16, host: u16) -> [u8; 16] {
    let [n1, n0] = net.to_be_bytes();
    let [h1, h0] = host.to_be_bytes();
    [0x20, 1, 0xd, 0xb8, n1, n0, 0, 0, 0, 0, 0, 0, 0, 0, h1, h0]
}

/// A route over next hop `id` of [`router`].
pub fn route4(s: &mut State, addr: [u8; 4], plen: u8, target: RouteTarget) {
    s.lpm4
        .insert(0, u32::from_be_bytes(addr), plen, target.pack())
        .unwrap();
}

/// UDP over IPv4.
pub fn udp4(dst: Mac, src: Mac, from: [u8; 4], to: [u8; 4], ttl: u8, payload: usize) -> Vec<u8> {
    let mut v = Vec::new();
    PacketBuilder::ethernet2(src, dst)
        .ipv4(from, to, ttl)
        .udp(1000, 2000)
        .write(&mut v, &vec![0x5a; payload])
        .unwrap();
    v
}

/// UDP over IPv6.
pub fn udp6(dst: Mac, src: Mac, from: [u8; 16], to: [u8; 16], hops: u8, payload: usize) -> Vec<u8> {
    let mut v = Vec::new();
    PacketBuilder::ethernet2(src, dst)
        .ipv6(from, to, hops)
        .udp(1000, 2000)
        .write(&mut v, &vec![0x5a; payload])
        .unwrap();
    v
}

/// TCP over IPv4.
pub fn tcp4(dst: Mac, src: Mac, from: [u8; 4], to: [u8; 4], ports: (u16, u16)) -> Vec<u8> {
    let mut v = Vec::new();
    PacketBuilder::ethernet2(src, dst)
        .ipv4(from, to, 64)
        .tcp(ports.0, ports.1, 1, 1000)
        .write(&mut v, &[1, 2, 3])
        .unwrap();
    v
}

/// An Ethernet frame with any type.
pub fn ether(dst: Mac, src: Mac, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut v = dst.to_vec();
    v.extend(src);
    v.extend(ethertype.to_be_bytes());
    v.extend(payload);
    v
}

/// Puts a tag into a frame.
pub fn tagged(mut frame: Vec<u8>, tpid: u16, tci: u16) -> Vec<u8> {
    let [a, b] = tpid.to_be_bytes();
    let [c, d] = tci.to_be_bytes();
    frame.splice(12..12, [a, b, c, d]);
    frame
}

/// Everything that came out.
#[derive(Debug, Default)]
pub struct Out {
    pub tx: Vec<(u16, Vec<u8>, Offload)>,
    pub cpu: Vec<(CpuMeta, Vec<u8>)>,
    pub events: Vec<Event>,
}

impl Sink for Out {
    fn tx(&mut self, port: u16, frame: &Frame<'_>) {
        self.tx.push((port, frame.bytes().to_vec(), frame.offload));
    }
    fn cpu(&mut self, meta: CpuMeta, frame: &Frame<'_>) {
        self.cpu.push((meta, frame.bytes().to_vec()));
    }
    fn event(&mut self, event: Event) {
        self.events.push(event);
    }
}

/// An answer in a form that tables of cases can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Left by these ports (in this order).
    Tx(Vec<u16>),
    /// To the CPU only, for this reason.
    Cpu(u16),
    /// Left by these ports, and a copy for this reason.
    Both(Vec<u16>, u16),
    /// Dropped.
    Drop(DropReason),
}

/// Runs one frame and gives all that came out.
pub fn run_with(
    s: &mut State,
    port: u16,
    frame: &[u8],
    offload: Offload,
    now: u64,
) -> (Out, Answer) {
    let drops = s.counters.drops;
    let mut b = Buffer::new();
    assert!(b.set(frame));
    let mut out = Out::default();
    crate::process(s, &mut b.frame(offload), port, now, &mut out);
    let dropped: Vec<DropReason> = DropReason::ALL
        .iter()
        .copied()
        .filter(|r| s.counters.drops[*r as usize] != drops[*r as usize])
        .collect();
    let ports: Vec<u16> = out.tx.iter().map(|t| t.0).collect();
    let answer = match (ports.is_empty(), out.cpu.as_slice(), dropped.as_slice()) {
        (false, [], []) => Answer::Tx(ports),
        (_, [(m, _)], []) if m.flags & FORWARDED != 0 => Answer::Both(ports, m.reason),
        (true, [(m, _)], []) => Answer::Cpu(m.reason),
        (true, [], [reason]) => Answer::Drop(*reason),
        other => panic!("not one answer: {other:?}"),
    };
    // Who goes to the CPU gets the frame as it came in.
    for (_, bytes) in &out.cpu {
        assert_eq!(bytes, frame);
    }
    (out, answer)
}

/// The kernel is told that the chip has done it.
pub const FORWARDED: u16 = raw::TND_RX_L2_FORWARDED | raw::TND_RX_L3_FORWARDED;

/// Runs one frame.
pub fn run(s: &mut State, port: u16, frame: &[u8]) -> Answer {
    run_with(s, port, frame, Offload::NONE, 1_000_000_000).1
}

/// Runs one frame that must leave by exactly one port, and gives it.
pub fn run_out(s: &mut State, port: u16, frame: &[u8]) -> (u16, Vec<u8>) {
    let (mut out, answer) = run_with(s, port, frame, Offload::NONE, 1_000_000_000);
    assert_eq!(out.tx.len(), 1, "{answer:?}");
    let (port, bytes, _) = out.tx.remove(0);
    (port, bytes)
}
