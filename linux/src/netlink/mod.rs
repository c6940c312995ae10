//! Netlink: the only place in the house that speaks it.

pub mod tc;
