//! Histories from a seed: what there is at first, what is done then, and the frames that are sent at every rest. The same
//! seed gives the same history for the same constructs; what a kernel answers has no part in it.
//!
//! ```text
//!   seed ─► draw.rs    addresses, neighbours, bridges; then commands     op.rs, bridging.rs  one command: words, message
//!           known.rs   what there is by then                             stacked.rs          VLANs, VRFs
//!           rare.rs    every fourth history: what is rare in others      rng.rs              numbers
//!           probes.rs  frames of the hosts
//! ```

mod bridging;
mod draw;
mod known;
pub mod op;
mod probes;
mod rare;
mod rng;
mod stacked;

pub use op::{Act, Op, Wait};
pub use probes::{MAGIC, probe_of};
pub use rng::Rng;

use crate::recording::Probe;

/// How many front-panel ports a history has.
pub const PORTS: u16 = 4;
/// At least so many commands.
pub const COMMANDS: usize = 20;
/// So many frames are sent at every rest.
pub const PROBES: usize = 64;

/// The construct of histories with bridges. Every kernel has it; a bridge learns from the probes themselves, in the order in
/// which they are sent, so what it answers is no answer for who sends them in another one.
pub const BRIDGES: &str = "bridge";

/// The construct of histories with bridges that learn nothing: an answer does not hang on the frames before.
pub const STILL_BRIDGES: &str = "still bridge";

/// A history, not yet lived through.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct History {
    /// What it was drawn from.
    pub seed: u64,
    /// Constructs that it has, by the names of `tests/scenario/constructs.py`.
    pub have: Vec<String>,
    /// What is there at first is made by these.
    pub topology: Vec<Op>,
    /// What is done then.
    pub commands: Vec<Op>,
    /// What hosts send at every rest.
    pub probes: Vec<Probe>,
}

impl History {
    /// That of a seed, for a kernel that has these constructs.
    #[must_use]
    pub fn draw(seed: u64, have: &[String]) -> Self {
        draw::Draw::new(seed, have).history()
    }

    /// Its commands in words; true: it can't succeed, as far as is known of what was done before.
    #[cfg(test)]
    pub(crate) fn with_hopes(seed: u64, have: &[String]) -> Vec<(String, bool)> {
        let mut draw = draw::Draw::new(seed, have);
        let count = draw.history().commands.len();
        draw.hopes.split_off(draw.hopes.len() - count)
    }

    /// The same with some of the commands only (for who looks for the fewest that do): those of these places.
    #[must_use]
    pub fn with_commands(&self, places: &[usize]) -> Self {
        let some = places
            .iter()
            .filter_map(|n| self.commands.get(*n).cloned())
            .collect();
        Self {
            commands: some,
            ..self.clone()
        }
    }

    /// The same with some of what is there at first only: what is made by those of these places.
    #[must_use]
    pub fn with_topology(&self, places: &[usize]) -> Self {
        let some = places
            .iter()
            .filter_map(|n| self.topology.get(*n).cloned())
            .collect();
        Self {
            topology: some,
            ..self.clone()
        }
    }
}

/// The settings of bridge ports that are drawn, by the words of `bridge link set`.
pub fn port_flags() -> impl Iterator<Item = &'static str> {
    let all = bridging::PORT_FLAGS.into_iter();
    all.chain([bridging::PORT_STATE]).map(|flag| flag.1)
}

/// What makes constructs that not every kernel has, by the names of `tests/scenario/constructs.py`.
#[must_use]
pub fn optional() -> [(&'static str, Vec<Op>); 2] {
    let kind = stacked::BridgeKind {
        vlans: true,
        snooping: false,
    };
    let bridge = op::BRIDGE_INDEX + 1;
    let [(first, ..), ..] = stacked::VLAN_DEVICES;
    let vlan = vec![
        Op::bridge(bridge, bridge_mac(1), kind),
        Op::vlan_device(first),
    ];
    let vrf = vec![Op::vrf(stacked::VRF, stacked::VRF_TABLE)];
    [("vlan", vlan), ("vrf", vrf)]
}

/// The port's own address.
#[must_use]
pub const fn port_mac(port: u16) -> [u8; 6] {
    [2, 0, 0, 0, 2, port as u8]
}

/// A host's: none of the switch's.
#[must_use]
pub const fn host_mac(port: u16, station: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0x10 + port as u8, station]
}

/// A bridge's.
#[must_use]
pub const fn bridge_mac(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 1, n]
}

/// An interface's number is in its addresses, 10.N.0.1/24 and fdN::1/64: that of swp1 is 1, that of br1 is 11.
const fn number(dev: u32) -> u8 {
    (dev - op::PORT_INDEX) as u8
}

/// A station's IPv4 address on the interface; 1: the switch's own.
#[must_use]
pub const fn v4(dev: u32, station: u8) -> std::net::IpAddr {
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, number(dev), 0, station))
}

/// The same in IPv6.
#[must_use]
pub const fn v6(dev: u32, station: u8) -> std::net::IpAddr {
    let net = 0xfd00 + number(dev) as u16;
    std::net::IpAddr::V6(std::net::Ipv6Addr::new(
        net,
        0,
        0,
        0,
        0,
        0,
        0,
        station as u16,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_history() {
        let have = ["rule".to_owned()];
        let one = History::draw(7, &have);
        assert_eq!(one, History::draw(7, &have));
        assert_ne!(one, History::draw(8, &have));
        for seed in 0..200 {
            let h = History::draw(seed, &have);
            assert!(h.commands.len() >= COMMANDS && h.probes.len() >= PROBES);
            for (n, probe) in h.probes.iter().enumerate() {
                assert_eq!(probe_of(&probe.frame.0), Some(n));
                assert!((1..=PORTS).contains(&probe.port));
            }
        }
        let own = (1..=PORTS).flat_map(|n| [port_mac(n), bridge_mac(n as u8)]);
        for own in own {
            let mut hosts = (1..=PORTS).flat_map(|n| [2, 3, 0x33].map(|s| host_mac(n, s)));
            assert!(hosts.all(|host| host != own), "{own:?} is a host's too");
        }
        let some = one.with_commands(&[0, 5, 999]);
        assert_eq!(
            some.commands,
            [one.commands[0].clone(), one.commands[5].clone()]
        );
    }
}
