//! Sysctls that no notification tells of, read from the caller's network namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use tandem_store::model::{ConfScope, Settings};

fn number(path: &str) -> Option<u8> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Settings of the whole namespace. What this kernel does not have is at its default.
pub(super) fn settings() -> Settings {
    let legacy = [
        // not /proc/net: that is the namespace of the process, not of the thread
        "/proc/thread-self/net/ip_tables_names",
        "/proc/thread-self/net/ip6_tables_names",
    ]
    .iter()
    .any(|p| fs::read_to_string(p).is_ok_and(|names| !names.trim().is_empty()));
    Settings {
        hash_policy_v4: number("/proc/sys/net/ipv4/fib_multipath_hash_policy").unwrap_or(0),
        hash_policy_v6: number("/proc/sys/net/ipv6/fib_multipath_hash_policy").unwrap_or(0),
        multipath_use_neigh: number("/proc/sys/net/ipv4/fib_multipath_use_neigh") == Some(1),
        unsupported: legacy
            .then_some("legacy iptables tables are loaded; nftables can't show them"),
    }
}

/// `send_redirects` of all, default and the interfaces given.
pub(super) fn redirects<'a>(
    interfaces: impl Iterator<Item = (u32, &'a str)>,
) -> BTreeMap<ConfScope, bool> {
    let read = |name: &str| {
        // a name may hold a dot, never a slash
        let path = format!("/proc/sys/net/ipv4/conf/{name}/send_redirects");
        number(&path).map(|v| v != 0)
    };
    let fixed = [(ConfScope::All, "all"), (ConfScope::Default, "default")];
    let each = interfaces.map(|(i, name)| (ConfScope::Interface(i), name));
    fixed
        .into_iter()
        .chain(each)
        .filter_map(|(scope, name)| Some((scope, read(name)?)))
        .collect()
}

/// Interfaces on which IPv6 is switched off (`disable_ipv6`): packets are dropped there, whatever
/// `forwarding` says.
pub(super) fn without_ipv6<'a>(interfaces: impl Iterator<Item = (u32, &'a str)>) -> BTreeSet<u32> {
    interfaces
        .filter(|(_, name)| {
            number(&format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6")) == Some(1)
        })
        .map(|(i, _)| i)
        .collect()
}
