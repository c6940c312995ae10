// SPDX-License-Identifier: Apache-2.0
//! Messages as values, one form for both versions. Ports have 1.3's 32 bits, features of ports 1.3's bits; what 1.0
//! lacks has the value that means the same (table 0, no cookie mask, no group).

mod features;
mod flow;
mod group;
mod meter;
mod packet;
mod port;
mod stats;
mod switch;

pub use features::*;
pub use flow::*;
pub use group::*;
pub use meter::*;
pub use packet::*;
pub use port::*;
pub use stats::*;
pub use switch::*;

use crate::Hello;

/// `OFP_NO_BUFFER`.
pub const NO_BUFFER: u32 = 0xffff_ffff;
/// `OFPTT_ALL`.
pub const TABLE_ALL: u8 = 0xff;

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident: $int:ty { $($(#[$d:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr($int)]
        pub enum $name { $($(#[$d])* $variant = $number,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Of the wire's number.
            pub const fn of(number: $int) -> Option<$name> {
                match number { $($number => Some($name::$variant),)* _ => None }
            }
        }
    };
}
pub(crate) use numbered;

/// What a controller sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// §7.5.1.
    Hello(Hello),
    /// §7.4.4. `kind` and `code` as the wire has them.
    #[allow(missing_docs)]
    Error {
        kind: u16,
        code: u16,
        data: &'a [u8],
    },
    /// §7.5.2; the answer has the same data.
    Echo(&'a [u8]),
    /// §7.5.3.
    EchoReply(&'a [u8]),
    /// §7.5.4; 1.0's vendor message, of which `data` is everything after the vendor.
    Experimenter(Experimenter<'a>),
    /// §7.3.1.
    Features,
    /// §7.3.2.
    GetConfig,
    /// §7.3.2; no answer.
    SetConfig(Config),
    /// §7.3.7.
    PacketOut(PacketOut<'a>),
    /// §7.3.4.1.
    FlowMod(FlowMod),
    /// §7.3.4.2.
    GroupMod(GroupMod),
    /// §7.3.4.3.
    PortMod(PortMod),
    /// §7.3.3.
    TableMod(TableMod),
    /// §7.3.5; 1.0's statistics request.
    Multipart(Multipart<'a>),
    /// §7.3.8.
    Barrier,
    /// §7.3.6: the queues of a port, of all for [`crate::port::ANY`].
    #[allow(missing_docs)]
    QueueConfig { port: u32 },
    /// §7.3.9.
    Role(RoleRequest),
    /// §7.3.10.
    GetAsync,
    /// §7.3.10; no answer.
    SetAsync(Async),
    /// §7.3.4.4.
    MeterMod(MeterMod),
}

/// What a switch sends, but multipart replies ([`crate::Multiparts`] writes these).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// §7.5.1.
    Hello(Hello),
    /// §7.4.4: `data` is the request, of which at least 64 bytes are sent; for a failed hello it is text.
    #[allow(missing_docs)]
    Error { error: crate::Error, data: &'a [u8] },
    /// §7.5.2.
    Echo(&'a [u8]),
    /// §7.5.3.
    EchoReply(&'a [u8]),
    /// §7.5.4.
    Experimenter(Experimenter<'a>),
    /// §7.3.1.
    Features(&'a Features),
    /// §7.3.2.
    Config(Config),
    /// §7.4.1.
    PacketIn(PacketIn<'a>),
    /// §7.4.2.
    FlowRemoved(&'a FlowRemoved),
    /// §7.4.3.
    #[allow(missing_docs)]
    PortStatus { reason: PortReason, port: &'a Port },
    /// §7.3.8.
    Barrier,
    /// §7.3.6.
    #[allow(missing_docs)]
    QueueConfig { port: u32, queues: &'a [Queue] },
    /// §7.3.9; the role is never [`Role::NoChange`].
    Role(RoleRequest),
    /// §7.3.10.
    Async(Async),
}

/// An experimenter's message (§7.5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experimenter<'a> {
    /// Whose.
    pub experimenter: u32,
    /// Which; 0 of 1.0, where it is a part of the data.
    pub kind: u32,
    /// The rest.
    pub data: &'a [u8],
}
