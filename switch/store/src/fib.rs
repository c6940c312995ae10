//! The routing table of one family, in compact form.
//!
//! ```text
//!   trie node (32 or 44 bytes) ──value──► Entry (32): one prefix, what the chip should and does hold
//!                                           │ head
//!                                           ▼
//!                                         Alias (36) ──next──► Alias …   the kernel's routes of that prefix
//!                                           │ path
//!                                           ▼
//!                                         PathSet: next hops, interned, with the list of the aliases that use it
//! ```

use crate::HashMap;
use crate::hw::{Cls, Ref};
use crate::model::RouteType;
use crate::slices::{Below, Walk};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tandem_abi::raw::*;
use tandem_cover::slab::Slab;
use tandem_cover::{Bits, Cover, NONE};

/// What an entry of the chip's route table says. Eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    /// `TND_ACT_*`, or [`Content::ABSENT`]'s.
    pub action: u8,
    /// `TND_TRAP_*` with a trap.
    pub reason: u8,
    /// `TND_RT_*`; [`KIND_CONNECTED`] for a connected route (a trap on the chip).
    pub kind: u8,
    /// Table id of the next hop or group; ifindex with [`KIND_CONNECTED`].
    pub target: u32,
}

/// A connected route: `target` is the interface.
pub(crate) const KIND_CONNECTED: u8 = 0x80;

impl Content {
    pub const ABSENT: Content = Content::of(0xff, 0, 0, 0);
    pub const DROP: Content = Content::of(TND_ACT_DROP, 0, 0, 0);

    const fn of(action: u8, reason: u16, kind: u8, target: u32) -> Content {
        Content {
            action,
            reason: reason as u8,
            kind,
            target,
        }
    }

    pub fn trap(reason: u16) -> Content {
        Content::of(TND_ACT_TRAP, reason, 0, 0)
    }

    pub fn connected(ifindex: u32) -> Content {
        Content::of(TND_ACT_TRAP, TND_TRAP_CONNECTED, KIND_CONNECTED, ifindex)
    }

    pub fn nexthop(id: u32) -> Content {
        Content::of(TND_ACT_FORWARD, 0, TND_RT_NEXTHOP, id)
    }

    pub fn group(id: u32) -> Content {
        Content::of(TND_ACT_FORWARD, 0, TND_RT_NHG, id)
    }

    pub fn present(self) -> bool {
        self.action != 0xff
    }

    pub fn is_trap(self) -> bool {
        self.action == TND_ACT_TRAP
    }

    pub fn is_connected(self) -> bool {
        self.kind == KIND_CONNECTED
    }

    /// As the chip sees it: what only the store knows is left out.
    pub fn on_chip(self) -> Content {
        if self.is_connected() {
            Content {
                kind: 0,
                target: 0,
                ..self
            }
        } else {
            self
        }
    }

    /// The object that it refers to.
    pub fn dep(self) -> Option<Ref> {
        match self.kind {
            TND_RT_NEXTHOP => Some(Ref::new(Cls::Nexthop, self.target)),
            TND_RT_NHG => Some(Ref::new(Cls::Nhg, self.target)),
            _ => None,
        }
    }
}

/// In the queue.
pub(crate) const F_QUEUED: u16 = 1;
/// A command is on its way.
pub(crate) const F_FLIGHT: u16 = 1 << 1;
/// It did not fit; the reason is in the list of failures.
pub(crate) const F_FAILED: u16 = 1 << 2;
/// Something was freed: try once more.
pub(crate) const F_RETRY: u16 = 1 << 3;
/// Left out on purpose: its cover traps in the same way.
pub(crate) const F_OMIT: u16 = 1 << 4;
/// The parser sends such packets to the CPU before any lookup: never programmed.
pub(crate) const F_PARSER: u16 = 1 << 5;
/// The next attempt draws on the reserve for local and connected prefixes.
pub(crate) const F_LEASE: u16 = 1 << 6;
/// A delete waits for its cover to trap.
pub(crate) const F_DEFERRED: u16 = 1 << 7;
/// The chip says that what it refers to is not there: trap.
pub(crate) const F_DEPEND: u16 = 1 << 8;
/// An update or a delete got no answer: write it again, whatever `have` says.
pub(crate) const F_REPEAT: u16 = 1 << 9;
/// It waits for what it leads to, or is to be tried again: what comes after it may overtake it. If nothing of it is on the chip,
/// or it is about to go from there, it is in [`Fib::undecided`].
pub(crate) const F_UNDECIDED: u16 = 1 << 10;
/// What is wanted changed after it got its place in the queue, or while a command was on its way.
pub(crate) const F_MOVED: u16 = 1 << 11;
/// The command that is on its way is a DELETE.
pub(crate) const F_DELETE: u16 = 1 << 12;
/// It goes after another one that goes, and is looked at again when that one is ([`Fib::held`]).
pub(crate) const F_HELD: u16 = 1 << 13;
/// The chip does not delete it: it stays until the kernel has it again.
pub(crate) const F_GIVEN_UP: u16 = 1 << 14;

/// One prefix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Node in the trie; [`NONE`]: the slot is free.
    pub node: u32,
    /// First alias, best first; [`NONE`]: an aggregate trap or on its way out.
    pub head: u32,
    /// What the kernel's table asks for; absent: nothing usable.
    pub want: Content,
    /// What the chip has.
    pub have: Content,
    /// When `want` or the state changed last, in units of 2^27 ns.
    pub since: u32,
    pub flags: u16,
}

impl Default for Entry {
    fn default() -> Self {
        Entry {
            node: NONE,
            head: NONE,
            want: Content::ABSENT,
            have: Content::ABSENT,
            since: 0,
            flags: 0,
        }
    }
}

impl Entry {
    pub fn is(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    pub fn set(&mut self, flag: u16, on: bool) {
        if on {
            self.flags |= flag;
        } else {
            self.flags &= !flag;
        }
    }
}

/// Coarse time of [`Entry::since`].
pub(crate) fn coarse(now_ns: u64) -> u32 {
    (now_ns >> 27) as u32
}

/// One kernel route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alias {
    pub next: u32,
    /// Entry; [`NONE`]: the slot is free.
    pub entry: u32,
    pub path: u32,
    /// Neighbours in the path's list of users.
    pub user_prev: u32,
    pub user_next: u32,
    pub metric: u32,
    pub position: u16,
    pub generation: u16,
    /// The kernel's table number, the three that count as 0 (local) and 1 (main).
    pub table: u8,
    pub tos: u8,
    /// `RouteType` as a number.
    pub kind: u8,
    /// RT_SCOPE_HOST (survives a link going down), or another.
    pub scope: u8,
    /// `Unsupported` as a number, 0 = none.
    pub unsupported: u8,
    pub source: u8,
    pub protocol: u8,
    pub v6: bool,
}

impl Default for Alias {
    fn default() -> Self {
        Alias {
            next: NONE,
            entry: NONE,
            path: NONE,
            user_prev: NONE,
            user_next: NONE,
            metric: 0,
            position: 0,
            generation: 0,
            table: 0,
            tos: 0,
            kind: 0,
            scope: 0,
            unsupported: 0,
            source: 0,
            protocol: 0,
            v6: false,
        }
    }
}

impl Alias {
    /// Order in the list: the table that is looked up first, then as fib_insert_alias: TOS descending, metric
    /// ascending, then in order of arrival.
    pub fn order(&self) -> (u8, u8, u32, u16, u8) {
        (
            self.table,
            255 - self.tos,
            self.metric,
            self.position,
            self.source,
        )
    }
}

/// `RouteType` back from its number.
pub(crate) fn kind_of(n: u8) -> RouteType {
    match n {
        1 => RouteType::Unicast,
        2 => RouteType::Local,
        3 => RouteType::Broadcast,
        4 => RouteType::Anycast,
        6 => RouteType::Blackhole,
        7 => RouteType::Unreachable,
        8 => RouteType::Prohibit,
        9 => RouteType::Throw,
        _ => RouteType::Multicast,
    }
}

/// One family's table.
#[derive(Debug)]
pub(crate) struct Fib<B: Bits> {
    pub cover: Cover<B>,
    pub entries: Slab<Entry>,
    /// Number of connected prefixes per length.
    pub connected: [u32; MAX_LEN + 1],
    /// Number of aliases of the local table that are shorter than a host.
    pub wide_local: u32,
    /// Prefixes that are to be made, and wait for what they lead to or are to be tried again; with each the entries
    /// above it that trap meanwhile, for the kernel never had them without it.
    pub undecided: BTreeMap<(B, u8), Vec<u32>>,
    /// Prefixes whose CREATE is on its way; with each how many there were up to it, and the entries above it that wait for its
    /// answer, for they would answer for it if the chip did not make it.
    pub making: BTreeMap<(B, u8), (u64, Vec<u32>)>,
    /// How many such CREATEs there were.
    pub made: u64,
    /// For entries that wait for one of them: how many there were when they began to.
    pub waits_since: HashMap<u32, u64>,
    /// For entries that are to be looked at again, by number: those below them that go, and trap until then.
    pub held: BTreeMap<u32, BTreeSet<u32>>,
}

impl<B: Bits> Default for Fib<B> {
    fn default() -> Self {
        Fib {
            cover: Cover::new(),
            entries: Slab::default(),
            connected: [0; MAX_LEN + 1],
            wide_local: 0,
            undecided: BTreeMap::new(),
            making: BTreeMap::new(),
            made: 0,
            waits_since: HashMap::default(),
            held: BTreeMap::new(),
        }
    }
}

impl<B: Bits> Fib<B> {
    /// The entry at a node.
    pub fn at_node(&self, node: u32) -> Option<u32> {
        let v = self.cover.value(node);
        (v != NONE).then_some(v)
    }

    /// Length of the shortest connected prefix; larger than any length if there is none.
    pub fn shortest_connected(&self) -> u8 {
        self.connected.iter().position(|&n| n > 0).unwrap_or(255) as u8
    }

    #[cfg(feature = "oracle")]
    pub fn bytes(&self) -> usize {
        self.cover.bytes() + self.entries.bytes()
    }
}

/// Both families.
#[derive(Debug, Default)]
pub(crate) struct Fibs {
    pub v4: Fib<V4>,
    pub v6: Fib<V6>,
}

/// Bits of a key in front of the address: the table of routes ("slot") that a prefix belongs to, 0 = the default VRF's.
/// So one trie holds all VRFs, and no prefix of one covers another's.
pub(crate) const SLOT_BITS: u8 = 8;
/// Longest key of any family, in bits.
pub(crate) const MAX_LEN: usize = 128 + SLOT_BITS as usize;

/// An IPv4 prefix's key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct V4 {
    slot: u8,
    addr: u32,
}

/// An IPv6 prefix's key; words keep trie nodes small.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct V6 {
    slot: u8,
    addr: [u32; 4],
}

impl V6 {
    fn number(self) -> u128 {
        tandem_cover::V6(self.addr).to_u128()
    }
}

/// Number of leading bits that two keys share, from what their addresses share.
fn common(a: u8, b: u8, rest: u32) -> u8 {
    match (a ^ b).leading_zeros() {
        8 => SLOT_BITS + rest as u8,
        n => n as u8,
    }
}

fn mask_slot(slot: u8, len: u8) -> u8 {
    match len {
        0 => 0,
        1..SLOT_BITS => slot & (u8::MAX << (SLOT_BITS - len)),
        _ => slot,
    }
}

impl Bits for V4 {
    const WIDTH: u8 = 32 + SLOT_BITS;
    fn bit(self, i: u8) -> usize {
        if i < SLOT_BITS {
            usize::from(self.slot >> (SLOT_BITS - 1 - i) & 1)
        } else {
            tandem_cover::V4(self.addr).bit(i - SLOT_BITS)
        }
    }
    fn common(self, other: Self) -> u8 {
        common(
            self.slot,
            other.slot,
            (self.addr ^ other.addr).leading_zeros(),
        )
    }
    fn mask(self, len: u8) -> Self {
        V4 {
            slot: mask_slot(self.slot, len),
            addr: tandem_cover::V4(self.addr)
                .mask(len.saturating_sub(SLOT_BITS))
                .0,
        }
    }
    /// Of the default VRF.
    fn from_bytes(b: &[u8; 16]) -> Self {
        V4 {
            slot: 0,
            addr: tandem_cover::V4::from_bytes(b).0,
        }
    }
    /// The address alone.
    fn to_bytes(self) -> [u8; 16] {
        tandem_cover::V4(self.addr).to_bytes()
    }
}

impl Bits for V6 {
    const WIDTH: u8 = 128 + SLOT_BITS;
    fn bit(self, i: u8) -> usize {
        if i < SLOT_BITS {
            usize::from(self.slot >> (SLOT_BITS - 1 - i) & 1)
        } else {
            tandem_cover::V6(self.addr).bit(i - SLOT_BITS)
        }
    }
    fn common(self, other: Self) -> u8 {
        common(
            self.slot,
            other.slot,
            (self.number() ^ other.number()).leading_zeros(),
        )
    }
    fn mask(self, len: u8) -> Self {
        V6 {
            slot: mask_slot(self.slot, len),
            addr: tandem_cover::V6(self.addr)
                .mask(len.saturating_sub(SLOT_BITS))
                .0,
        }
    }
    /// Of the default VRF.
    fn from_bytes(b: &[u8; 16]) -> Self {
        V6 {
            slot: 0,
            addr: tandem_cover::V6::from_bytes(b).0,
        }
    }
    /// The address alone.
    fn to_bytes(self) -> [u8; 16] {
        tandem_cover::V6(self.addr).to_bytes()
    }
}

/// A family of addresses. Lengths are those of keys: [`SLOT_BITS`] longer than the prefix's own.
pub(crate) trait Fam: Bits {
    const CLS: Cls;
    const AF: u8;
    fn fib(f: &Fibs) -> &Fib<Self>;
    fn fib_mut(f: &mut Fibs) -> &mut Fib<Self>;
    /// An address's key in a table of routes.
    fn new(slot: u8, a: IpAddr) -> Self;
    fn slot(self) -> u8;
    fn to_ip(self) -> IpAddr;
    /// The last address of the prefix.
    fn last(self, len: u8) -> IpAddr;
    /// The parser traps packets to this prefix before any lookup (docs/mapping.md).
    fn parser_traps(self, len: u8) -> bool;
    /// All prefixes below one, among what is left to do.
    fn walk(below: Below<Self>) -> Walk;
}

impl Fam for V4 {
    const CLS: Cls = Cls::Route4;
    const AF: u8 = TND_AF_INET;
    fn fib(f: &Fibs) -> &Fib<Self> {
        &f.v4
    }
    fn fib_mut(f: &mut Fibs) -> &mut Fib<Self> {
        &mut f.v4
    }
    fn new(slot: u8, a: IpAddr) -> Self {
        let addr = match a {
            IpAddr::V4(a) => a.to_bits(),
            IpAddr::V6(_) => 0,
        };
        V4 { slot, addr }
    }
    fn slot(self) -> u8 {
        self.slot
    }
    fn to_ip(self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(self.addr))
    }
    fn last(self, len: u8) -> IpAddr {
        let host = u32::MAX
            .checked_shr(u32::from(len.saturating_sub(SLOT_BITS)))
            .unwrap_or(0);
        IpAddr::V4(Ipv4Addr::from_bits(self.addr | host))
    }
    fn walk(below: Below<V4>) -> Walk {
        Walk::Below4(below)
    }
    fn parser_traps(self, len: u8) -> bool {
        // 224.0.0.0/4 multicast
        len >= SLOT_BITS + 4 && self.addr >> 28 == 0xe
    }
}

impl Fam for V6 {
    const CLS: Cls = Cls::Route6;
    const AF: u8 = TND_AF_INET6;
    fn fib(f: &Fibs) -> &Fib<Self> {
        &f.v6
    }
    fn fib_mut(f: &mut Fibs) -> &mut Fib<Self> {
        &mut f.v6
    }
    fn new(slot: u8, a: IpAddr) -> Self {
        let addr = match a {
            IpAddr::V6(a) => tandem_cover::V6::from_u128(a.to_bits()).0,
            IpAddr::V4(_) => [0; 4],
        };
        V6 { slot, addr }
    }
    fn slot(self) -> u8 {
        self.slot
    }
    fn to_ip(self) -> IpAddr {
        IpAddr::V6(Ipv6Addr::from_bits(self.number()))
    }
    fn last(self, len: u8) -> IpAddr {
        let host = u128::MAX
            .checked_shr(u32::from(len.saturating_sub(SLOT_BITS)))
            .unwrap_or(0);
        IpAddr::V6(Ipv6Addr::from_bits(self.number() | host))
    }
    fn walk(below: Below<V6>) -> Walk {
        Walk::Below6(below)
    }
    fn parser_traps(self, len: u8) -> bool {
        // ff00::/8 multicast, fe80::/10 link-local
        let [a, ..] = self.addr;
        (len >= SLOT_BITS + 8 && a >> 24 == 0xff) || (len >= SLOT_BITS + 10 && a >> 22 == 0x3fa)
    }
}
