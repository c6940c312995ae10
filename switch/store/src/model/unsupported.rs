//! What of the kernel's objects the chip can't do.

/// A construct that the chip can't do as the kernel would. Objects that carry one trap, with this reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[repr(u8)]
pub enum Unsupported {
    /// Light-weight tunnel (RTA_ENCAP, NHA_ENCAP).
    Encap = 1,
    /// IPv6 `from` (RTA_SRC).
    SourcePrefix = 2,
    /// A route or next-hop attribute that this version does not know.
    Attribute = 3,
    /// A resilient next-hop group whose buckets are still to be read.
    BucketsUnread = 4,
    /// Next hop for FDB entries (NHA_FDB).
    FdbNexthop = 5,
    /// Route metrics that change forwarding (a locked MTU, for instance).
    Metrics = 6,
    /// Route type outside the list (NAT, multicast …).
    Type = 7,
    /// An IPv6 route between the next hops of another, of which nothing but that is known: no dump shows it (net/ipv6/ip6_fib.c
    /// `fib6_dump_node`).
    Hidden = 8,
}

impl Unsupported {
    /// For people.
    pub fn text(self) -> &'static str {
        match self {
            Unsupported::Encap => "encapsulation is not offloaded",
            Unsupported::SourcePrefix => "a route with a source prefix (from) is not offloaded",
            Unsupported::Attribute => "an attribute of this object is not known",
            Unsupported::BucketsUnread => "the buckets of the resilient group are not read yet",
            Unsupported::FdbNexthop => "next hops for FDB entries are not offloaded",
            Unsupported::Metrics => "route metrics that change forwarding are not offloaded",
            Unsupported::Type => "this route type is not offloaded",
            Unsupported::Hidden => {
                "between this route's next hops stands another one that the kernel does not show"
            }
        }
    }
}
