//! What the tables' values mean: 64 bits in the exact-match table, 32 bits in the LPM, packed and unpacked here only.
//!
//! ```text
//!   FDB   63 50 49         34 33  32 31      16 15       0      host  63           16 15 14 13       0
//!        ┌─────┬─────────────┬──────┬──────────┬──────────┐          ┌───────────────┬─────┬──────────┐
//!        │ 0   │ set, from 1 │action│ flags    │ port     │          │ MAC           │ act │ RIF      │
//!        └─────┴─────────────┴──────┴──────────┴──────────┘          └───────────────┴─────┴──────────┘
//!   route 31 30 29                0
//!        ┌─────┬──────────────────┐   kind 0 trap (reason)  1 drop  2 next hop (slot)  3 group (slot)
//!        └─────┴──────────────────┘
//! ```

use std::num::NonZeroU16;

use tandem_abi::raw;
use tandem_packet::Mac;

/// Largest RIF id: 14 bits, so that RIF, action and MAC fill one word.
pub const MAX_RIF: u16 = (1 << 14) - 1;

/// What an entry does with a packet (`TND_ACT_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Forward.
    Forward,
    /// To the CPU.
    Trap,
    /// Drop.
    Drop,
}

impl Action {
    /// From the ABI's number; None if unknown.
    pub fn from_abi(a: u8) -> Option<Action> {
        match a {
            raw::TND_ACT_FORWARD => Some(Action::Forward),
            raw::TND_ACT_TRAP => Some(Action::Trap),
            raw::TND_ACT_DROP => Some(Action::Drop),
            _ => None,
        }
    }

    /// The ABI's number.
    pub fn to_abi(self) -> u8 {
        match self {
            Action::Forward => raw::TND_ACT_FORWARD,
            Action::Trap => raw::TND_ACT_TRAP,
            Action::Drop => raw::TND_ACT_DROP,
        }
    }

    #[inline]
    fn bits(self) -> u64 {
        self as u64
    }

    #[inline]
    fn from_bits(b: u64) -> Action {
        match b & 3 {
            0 => Action::Forward,
            2 => Action::Drop,
            _ => Action::Trap,
        }
    }
}

/// Value of a MAC entry (`struct tnd_fdb` without its key). When it was seen last is the table's stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FdbValue {
    /// Egress port, from 1, with [`Action::Forward`].
    pub port: u16,
    /// `TND_FDB_*`.
    pub flags: u16,
    /// What to do with frames to it.
    pub action: Action,
    /// With [`Action::Forward`], in place of a port: slot of the port set, from 1. In this form nothing is to be done for it where
    /// nobody asks.
    pub set: Option<NonZeroU16>,
}

impl FdbValue {
    /// To table form.
    #[inline]
    pub fn pack(self) -> u64 {
        let set = self.set.map_or(0, |set| u64::from(set.get()));
        u64::from(self.port) | u64::from(self.flags) << 16 | self.action.bits() << 32 | set << 34
    }

    /// The slot of its port set.
    #[inline]
    pub fn set_slot(self) -> Option<u32> {
        self.set.map(|set| u32::from(set.get()) - 1)
    }

    /// The form of a slot. None: no entry can name it.
    pub fn of_slot(slot: u32) -> Option<NonZeroU16> {
        u16::try_from(slot + 1).ok().and_then(NonZeroU16::new)
    }

    /// From table form.
    #[inline]
    pub fn unpack(v: u64) -> FdbValue {
        FdbValue {
            port: v as u16,
            flags: (v >> 16) as u16,
            action: Action::from_bits(v >> 32),
            set: NonZeroU16::new((v >> 34) as u16),
        }
    }
}

/// Value of a host entry (`struct tnd_neigh` without its key).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostValue {
    /// Egress router interface, at most [`MAX_RIF`].
    pub rif: u16,
    /// What to do with packets to it.
    pub action: Action,
    /// The host's address.
    pub mac: Mac,
}

impl HostValue {
    /// To table form; a RIF above [`MAX_RIF`] is cut (the setters refuse one).
    #[inline]
    pub fn pack(self) -> u64 {
        let [a, b, c, d, e, f] = self.mac;
        u64::from_be_bytes([a, b, c, d, e, f, 0, 0])
            | self.action.bits() << 14
            | u64::from(self.rif & MAX_RIF)
    }

    /// From table form.
    #[inline]
    pub fn unpack(v: u64) -> HostValue {
        let [a, b, c, d, e, f, _, _] = v.to_be_bytes();
        HostValue {
            rif: v as u16 & MAX_RIF,
            action: Action::from_bits(v >> 14),
            mac: [a, b, c, d, e, f],
        }
    }
}

/// Value of an LPM entry. Next hops and groups are named by their *slot* in the [`crate::state::State`], which
/// `State::nexthop_slot` and `State::nhg_slot` tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteTarget {
    /// To the CPU, with a `TND_TRAP_*` reason.
    Trap(u8),
    /// Blackhole.
    Drop,
    /// Over one next hop.
    Nexthop(u32),
    /// Over a group.
    Group(u32),
}

const SLOT_MASK: u32 = (1 << 30) - 1;

impl RouteTarget {
    /// To table form.
    #[inline]
    pub fn pack(self) -> u32 {
        match self {
            RouteTarget::Trap(reason) => u32::from(reason),
            RouteTarget::Drop => 1 << 30,
            RouteTarget::Nexthop(slot) => 2 << 30 | slot & SLOT_MASK,
            RouteTarget::Group(slot) => 3 << 30 | slot & SLOT_MASK,
        }
    }

    /// From table form.
    #[inline]
    pub fn unpack(v: u32) -> RouteTarget {
        match v >> 30 {
            0 => RouteTarget::Trap(v as u8),
            1 => RouteTarget::Drop,
            2 => RouteTarget::Nexthop(v & SLOT_MASK),
            _ => RouteTarget::Group(v & SLOT_MASK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn values_round_trip(port: u16, flags: u16, rif in 0..=MAX_RIF, mac: [u8; 6], a in 0u8..3, set: Option<NonZeroU16>, slot in 0..=SLOT_MASK, reason: u8) {
            let action = Action::from_abi(a).unwrap();
            prop_assert_eq!(action.to_abi(), a);
            let f = FdbValue { port, flags, action, set };
            prop_assert_eq!(FdbValue::unpack(f.pack()), f);
            let h = HostValue { rif, action, mac };
            prop_assert_eq!(HostValue::unpack(h.pack()), h);
            for t in [RouteTarget::Trap(reason), RouteTarget::Drop, RouteTarget::Nexthop(slot), RouteTarget::Group(slot)] {
                prop_assert_eq!(RouteTarget::unpack(t.pack()), t);
            }
        }
    }

    #[test]
    fn unknown_action_is_refused() {
        assert!(Action::from_abi(3).is_none());
    }
}
