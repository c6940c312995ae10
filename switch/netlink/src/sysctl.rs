//! Sysctls that no notification tells of, read from the caller's network namespace.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use tandem_store::model::{ConfScope, NfCall, Settings};

use super::fib::FILE;

/// What a file says, if there is such a file.
pub(super) type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

fn number(read: Read<'_>, path: &str) -> Option<u8> {
    read(path)?.trim().parse().ok()
}

/// The kernel's neighbour tables, one each for the whole machine, where they are smaller than the chip's: a kernel that forgets
/// neighbours for want of room sends their packets to the CPU. Only the initial namespace shows it; what can't be seen can't
/// be warned about.
pub(super) fn neighbour_limits(hosts: [Option<u32>; 2], read: Read<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for (family, hosts) in ["ipv4", "ipv6"].into_iter().zip(hosts) {
        let limit = read(&format!("/proc/sys/net/{family}/neigh/default/gc_thresh3"));
        let limit = limit.and_then(|text| text.trim().parse::<u32>().ok());
        if let (Some(hosts), Some(limit)) = (hosts, limit)
            && limit < hosts
        {
            let key = format!("net.{family}.neigh.default.gc_thresh3");
            lines.push(format!(
                "{key} is {limit}, the chip holds {hosts} {family} hosts: raise it (sysctl -w {key}={hosts})"
            ));
        }
    }
    lines
}

/// Settings of the whole namespace; `ipsec`: it has IPsec policies. What this kernel does not have is at its default.
pub(super) fn settings(ipsec: bool, read: Read<'_>) -> Settings {
    let number = |path: &str| number(read, path);
    // not /proc/net: that is the namespace of the process, not of the thread
    let tables = |name: &str| {
        read(&format!("/proc/thread-self/net/{name}_tables_names"))
            .is_some_and(|names| !names.trim().is_empty())
    };
    let on = |name: &str| number(&format!("/proc/sys/net/bridge/bridge-nf-call-{name}")) == Some(1);
    let iptables = tables("ip") || tables("ip6");
    Settings {
        hash_policy_v4: number("/proc/sys/net/ipv4/fib_multipath_hash_policy").unwrap_or(0),
        hash_policy_v6: number("/proc/sys/net/ipv6/fib_multipath_hash_policy").unwrap_or(0),
        multipath_use_neigh: number("/proc/sys/net/ipv4/fib_multipath_use_neigh") == Some(1),
        nf_call: NfCall {
            ip: on("iptables"),
            ip6: on("ip6tables"),
            arp: on("arptables"),
        },
        arptables: tables("arp"),
        iptables,
        unsupported: if iptables {
            Some("legacy iptables tables are loaded; nftables can't show them")
        } else if ipsec {
            Some("IPsec policies (ip xfrm policy) are not offloaded")
        } else {
            None
        },
    }
}

/// `send_redirects` of all, default and the interfaces given.
pub(super) fn redirects<'a>(
    interfaces: impl Iterator<Item = (u32, &'a str)>,
    read: Read<'_>,
) -> BTreeMap<ConfScope, bool> {
    let on = |name: &str| {
        // a name may hold a dot, never a slash
        let path = format!("/proc/sys/net/ipv4/conf/{name}/send_redirects");
        number(read, &path).map(|v| v != 0)
    };
    let fixed = [(ConfScope::All, "all"), (ConfScope::Default, "default")];
    let each = interfaces.map(|(i, name)| (ConfScope::Interface(i), name));
    fixed
        .into_iter()
        .chain(each)
        .filter_map(|(scope, name)| Some((scope, on(name)?)))
        .collect()
}

/// Interfaces on which IPv6 is switched off (`disable_ipv6`): packets are dropped there, whatever
/// `forwarding` says.
pub(super) fn without_ipv6<'a>(
    interfaces: impl Iterator<Item = (u32, &'a str)>,
    read: Read<'_>,
) -> BTreeSet<u32> {
    interfaces
        .filter(|(_, name)| {
            let path = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
            number(read, &path) == Some(1)
        })
        .map(|(i, _)| i)
        .collect()
}

/// The paths of all files that are read, where the interfaces have these names: for who records a kernel.
#[must_use]
pub fn files<'a>(interfaces: impl Iterator<Item = &'a str> + Clone) -> BTreeSet<String> {
    let paths = RefCell::new(BTreeSet::new());
    let read = |path: &str| {
        paths.borrow_mut().insert(path.to_owned());
        None
    };
    settings(false, &read);
    redirects(interfaces.clone().map(|name| (0, name)), &read);
    without_ipv6(interfaces.map(|name| (0, name)), &read);
    read(FILE);
    paths.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_table_smaller_than_the_chips_is_warned_of() {
        let read = |path: &str| match path {
            "/proc/sys/net/ipv4/neigh/default/gc_thresh3" => Some("1024\n".to_owned()),
            "/proc/sys/net/ipv6/neigh/default/gc_thresh3" => Some("8192\n".to_owned()),
            _ => None,
        };
        let said = neighbour_limits([Some(4096), Some(4096)], &read);
        let key = "net.ipv4.neigh.default.gc_thresh3";
        let wanted = format!(
            "{key} is 1024, the chip holds 4096 ipv4 hosts: raise it (sysctl -w {key}=4096)"
        );
        assert_eq!(said, [wanted]);
        assert!(neighbour_limits([Some(1024), None], &read).is_empty());
        // another namespace than the initial one doesn't have the files
        assert!(neighbour_limits([Some(4096), Some(4096)], &|_| None).is_empty());
    }

    #[test]
    fn each_file_that_is_read_is_listed() {
        let all = files(["swp1", "br1.10"].into_iter());
        for path in [
            "/proc/thread-self/net/arp_tables_names",
            "/proc/thread-self/net/ip6_tables_names",
            "/proc/sys/net/bridge/bridge-nf-call-ip6tables",
            "/proc/sys/net/ipv4/fib_multipath_hash_policy",
            "/proc/sys/net/ipv6/fib_multipath_hash_policy",
            "/proc/sys/net/ipv4/fib_multipath_use_neigh",
            "/proc/sys/net/ipv4/conf/all/send_redirects",
            "/proc/sys/net/ipv4/conf/br1.10/send_redirects",
            "/proc/sys/net/ipv6/conf/swp1/disable_ipv6",
        ] {
            assert!(all.contains(path), "{path} is not in {all:?}");
        }
    }
}
