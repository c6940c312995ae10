// SPDX-License-Identifier: Apache-2.0
//! What interfaces are called.

use std::fmt;

/// What an interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `Port-channelN`.
    PortChannel,
    /// A port of 1 Gb/s, or of a speed that is not known: `GigabitEthernet1/0/N`.
    Gigabit,
    /// Of 10 Gb/s: `TenGigabitEthernet1/0/N`.
    TenGigabit,
    /// Of 25 Gb/s: `TwentyFiveGigE1/0/N`.
    TwentyFiveGig,
    /// Of 40 Gb/s: `FortyGigabitEthernet1/0/N`.
    FortyGigabit,
    /// Of 100 Gb/s or more: `HundredGigE1/0/N`.
    HundredGig,
    /// `LoopbackN`.
    Loopback,
    /// `VlanN`.
    Vlan,
}

/// An interface; the order is that of a running-config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// What it is.
    pub kind: Kind,
    /// The port (from 1, the chip's front panel), group, loopback or VLAN.
    pub number: u16,
}

impl Kind {
    /// The kind of a port of so many Mb/s.
    #[must_use]
    pub fn of_speed(mbps: u32) -> Kind {
        match mbps {
            100_000.. => Kind::HundredGig,
            40_000.. => Kind::FortyGigabit,
            25_000.. => Kind::TwentyFiveGig,
            10_000.. => Kind::TenGigabit,
            _ => Kind::Gigabit,
        }
    }

    /// The word in front of the number.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Kind::Gigabit => "GigabitEthernet",
            Kind::TenGigabit => "TenGigabitEthernet",
            Kind::TwentyFiveGig => "TwentyFiveGigE",
            Kind::FortyGigabit => "FortyGigabitEthernet",
            Kind::HundredGig => "HundredGigE",
            Kind::PortChannel => "Port-channel",
            Kind::Loopback => "Loopback",
            Kind::Vlan => "Vlan",
        }
    }

    /// As in `show interfaces status`: `Gi1/0/1`.
    #[must_use]
    pub fn short(self) -> &'static str {
        match self {
            Kind::Gigabit => "Gi",
            Kind::TenGigabit => "Te",
            Kind::TwentyFiveGig => "Twe",
            Kind::FortyGigabit => "Fo",
            Kind::HundredGig => "Hu",
            Kind::PortChannel => "Po",
            Kind::Loopback => "Lo",
            Kind::Vlan => "Vl",
        }
    }

    /// Is it a port of the front panel?
    #[must_use]
    pub fn is_port(self) -> bool {
        !matches!(self, Kind::PortChannel | Kind::Loopback | Kind::Vlan)
    }
}

impl Name {
    /// Is it a port of the front panel?
    #[must_use]
    pub fn is_port(&self) -> bool {
        self.kind.is_port()
    }

    /// May it be in VLANs: a port, or a port-channel?
    #[must_use]
    pub fn is_switched(&self) -> bool {
        self.is_port() || self.kind == Kind::PortChannel
    }

    /// `Gi1/0/1`, `Vl10`.
    #[must_use]
    pub fn short(&self) -> String {
        let unit = if self.is_port() { "1/0/" } else { "" };
        format!("{}{unit}{}", self.kind.short(), self.number)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = if self.is_port() { "1/0/" } else { "" };
        write!(f, "{}{unit}{}", self.kind.word(), self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Name};

    #[test]
    fn names_as_the_console_says_them() {
        let port = Name {
            kind: Kind::of_speed(10_000),
            number: 3,
        };
        assert_eq!(
            (port.to_string(), port.short()),
            ("TenGigabitEthernet1/0/3".into(), "Te1/0/3".into())
        );
        let vlan = Name {
            kind: Kind::Vlan,
            number: 10,
        };
        assert_eq!(
            (vlan.to_string(), vlan.short()),
            ("Vlan10".into(), "Vl10".into())
        );
        assert!(port.is_port() && !vlan.is_port());
        assert!(port < vlan, "ports stand before VLAN interfaces");
        let channel = Name {
            kind: Kind::PortChannel,
            number: 1,
        };
        assert!(channel < port, "and port-channels before ports, as in IOS");
        assert!(channel.is_switched() && !channel.is_port() && !vlan.is_switched());
    }
}
