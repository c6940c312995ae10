//! Lists in pages: entries come and go between two of them, and what is there all along is in exactly one.

use crate::common::bridged::*;
use crate::common::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tandem_store::model::*;
use tandem_store::*;

/// Reads `list` in pages of `limit`. Between two, what `guest` makes of a number comes when it is even and goes again; what it
/// makes of `residents` is there all along.
fn read<R>(
    residents: std::ops::Range<u16>,
    limit: usize,
    guest: impl Fn(u16) -> (Object, Key),
    list: fn(&Store, &str, usize) -> Option<Page<R>>,
    name: impl Fn(&R) -> Option<String>,
) -> Vec<String> {
    let mut r = bridged("spectrum-sn2700");
    for n in residents.clone() {
        r.up(guest(2 * n + 1).0);
    }
    r.settle();
    let (mut all, mut after, mut turn) = (Vec::new(), String::new(), 0);
    loop {
        let page = list(&r.store, &after, limit).expect("the cursor is the store's own");
        assert!(page.rows.len() <= limit, "{} rows", page.rows.len());
        all.extend(page.rows.iter().filter_map(&name));
        let Some(next) = page.next else { break };
        after = next;
        // guests on both sides of where the list is
        for n in residents.clone() {
            let (object, key) = guest(2 * n);
            match (n + turn) % 3 {
                0 => r.up(object),
                _ => r.del(key),
            }
        }
        r.settle();
        turn += 1;
    }
    assert!(turn > 5, "only {turn} pages");
    all
}

/// Those of `wanted` once each, and nothing twice.
fn once(all: &[String], wanted: impl Iterator<Item = String>) {
    let mut sorted = all.to_vec();
    sorted.sort_unstable();
    let twice = sorted.windows(2).find(|w| w[0] == w[1]);
    assert_eq!(twice, None, "listed twice");
    let missing: Vec<String> = wanted
        .filter(|w| sorted.binary_search(w).is_err())
        .collect();
    assert!(missing.is_empty(), "left out: {missing:?}");
}

#[test]
fn stations_come_and_go_between_pages() {
    let guest = |n| {
        let e = fdb(n, 11, FdbKind::ExternLearn);
        (Object::Fdb(e), key_of(&e))
    };
    let mac = |n: u16| {
        let [a, b] = (2 * n + 1).to_be_bytes();
        format!("02:01:01:01:{a:02x}:{b:02x}")
    };
    for limit in [1, 7] {
        let all = read(0..80, limit, guest, Store::fdb_page, |r| {
            (r.kind == Some(FdbKind::ExternLearn)).then(|| r.mac.clone())
        });
        once(&all, (0..80).map(mac));
    }
}

fn host(n: u16) -> IpAddr {
    let [a, b] = n.to_be_bytes();
    match n / 2 % 2 {
        1 => IpAddr::V4(Ipv4Addr::new(10, 0, a, b)),
        _ => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n)),
    }
}

#[test]
fn neighbours_come_and_go_between_pages() {
    let guest = |n| {
        let addr = host(n);
        let key = Key::Neigh(BRIDGE, addr);
        (neigh(BRIDGE, &addr.to_string(), n as u8), key)
    };
    for limit in [1, 7] {
        let all = read(0..80, limit, guest, Store::neighbour_page, |r| {
            Some(r.addr.to_string())
        });
        once(&all, (0..80).map(|n| host(2 * n + 1).to_string()));
    }
}

/// Groups of IP and of other frames, for all sources and for one.
#[test]
fn groups_come_and_go_between_pages() {
    let entry = |n: u16| {
        let [a, b] = n.to_be_bytes();
        MdbEntry {
            bridge: BRIDGE,
            vlan: 0,
            group: match n / 2 % 2 {
                1 => GroupAddr::Ip(IpAddr::V4(Ipv4Addr::new(225, 0, a, b))),
                _ => GroupAddr::Mac([0x01, 0, 0, 0, a, b]),
            },
            source: (n / 2 % 4 == 1).then_some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))),
            ifindex: 11,
            include: false,
            blocked: false,
        }
    };
    let guest = |n| (Object::Mdb(entry(n)), Key::Mdb(entry(n).key()));
    let name = |group, source: Option<IpAddr>| format!("{group:?} {source:?}");
    for limit in [1, 7] {
        let all = read(0..80, limit, guest, Store::mdb_page, |r| {
            Some(name(r.group, r.source))
        });
        let wanted = (0..80).map(|n| entry(2 * n + 1));
        let wanted = wanted.map(|e| name(Some(e.group), e.source));
        once(&all, wanted);
    }
}

/// Behind the groups of all bridges are the router ports of each, one row a bridge.
#[test]
fn router_ports_are_behind_the_groups() {
    let mut r = bridged("spectrum-sn2700");
    for bridge in [60, 70, 80] {
        r.up(Object::RouterPort(RouterPort {
            bridge,
            ifindex: 11,
            v4: true,
            v6: true,
        }));
    }
    r.settle();
    let all = r.store.mdb();
    assert_eq!(all.len(), 3);
    let (mut paged, mut after) = (Vec::new(), String::new());
    loop {
        let page = r.store.mdb_page(&after, 1).unwrap();
        paged.extend(page.rows);
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(paged, all);
}
