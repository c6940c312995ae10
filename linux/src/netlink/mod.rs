//! Netlink: the only place in the house that speaks it.
