//! A route costs at most 160 bytes in the store, indexes included. `RATE=1` prints how fast routes go through (use
//! a release build for a number that means something).

use crate::common::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;
use tandem_abi::raw::*;
use tandem_store::model::*;
use tandem_store::*;

/// Prefix lengths in about the shares of a full table: most /24, then /22, /23, /20, /16.
fn prefixes(n: u32) -> Vec<(u32, u8)> {
    let mut x = 0x2545_f491u32;
    let mut out = std::collections::BTreeSet::new();
    while (out.len() as u32) < n {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        let len = match x % 20 {
            0..12 => 24,
            12..15 => 22,
            15..17 => 23,
            17 => 20,
            18 => 21,
            _ => 16,
        };
        let bits = (0x1400_0000 + x % 0xa000_0000) & (u32::MAX << (32 - len));
        out.insert((bits, len as u8));
    }
    out.into_iter().collect()
}

/// The chip says yes to everything.
fn yes(store: &mut Store, now: u64) -> usize {
    let mut out = Vec::new();
    let mut n = 0;
    loop {
        out.clear();
        if store.plan(&mut out, now) == 0 {
            return n;
        }
        n += out.len();
        for p in &out {
            store.complete(p.token, &Completion::default(), now);
        }
    }
}

fn fill(v6: bool, n: u32) -> (Store, Vec<Object>) {
    let mut store = Store::new(Config {
        ports: 8,
        ..Config::default()
    });
    let up = |s: &mut Store, o: Object| s.apply(Event::Upsert(SRC, o), 0);
    store.apply(Event::BeginSync(SRC, KindSet::ALL), 0);
    for i in 1..=4u16 {
        up(&mut store, Object::Link(swp(i)));
        up(
            &mut store,
            addr(10 + u32::from(i), &format!("10.{i}.0.1/24")),
        );
    }
    store.apply(Event::EndSync(SRC), 0);
    store.attach(Attach::Cold, 0);
    yes(&mut store, 0);
    let routes = prefixes(n)
        .into_iter()
        .enumerate()
        .map(|(i, (bits, len))| {
            let n = 1 + i as u32 % 4;
            let (addr, len): (IpAddr, u8) = if v6 {
                // The same shape, 32 bits further down: /48 to /56.
                let b = 0x2001_0db8_0000_0000_0000_0000_0000_0000u128 | u128::from(bits) << 64;
                (Ipv6Addr::from_bits(b).into(), len + 32)
            } else {
                (Ipv4Addr::from_bits(bits).into(), len)
            };
            let net = ipnet::IpNet::new(addr, len).unwrap().trunc();
            let mut r = route(
                "0.0.0.0/0",
                RouteNextHops::One(hop(10 + n, &format!("10.{n}.0.2"))),
            );
            r.key.prefix = net;
            Object::Route(r)
        })
        .collect();
    (store, routes)
}

fn measure(v6: bool) {
    let n = 100_000;
    let (mut store, routes) = fill(v6, n);
    let t = Instant::now();
    let mut posted = 0;
    for (i, r) in routes.into_iter().enumerate() {
        store.apply(Event::Upsert(SRC, r), 0);
        if i % 1000 == 999 {
            posted += yes(&mut store, 0);
        }
    }
    posted += yes(&mut store, 0);
    let took = t.elapsed();
    let (bytes, count) = store.route_memory();
    let each = bytes as f64 / count as f64;
    if std::env::var_os("RATE").is_some() {
        println!(
            "{} bytes a route; {:.0} routes/s",
            each as u32,
            f64::from(n) / took.as_secs_f64()
        );
    }
    assert!(posted >= n as usize, "{posted} commands");
    assert!(each <= 160.0, "{each} bytes a route (v6: {v6})");
    assert!(store.idle());
    let _ = TND_ST_OK;
}

#[test]
fn ipv4_routes_are_small() {
    measure(false);
}

#[test]
fn ipv6_routes_are_small() {
    measure(true);
}

/// The default route waits for its next hop, and all routes below it go: each is looked at a few times, however many wait
/// already. `RATE=1` prints how long that takes.
#[test]
fn all_below_one_that_waits_go() {
    let rate = std::env::var_os("RATE").is_some();
    let sizes: &[u32] = if rate {
        &[50_000, 100_000, 200_000]
    } else {
        &[50_000]
    };
    for &n in sizes {
        let (mut store, routes) = fill(false, n);
        let up = |s: &mut Store, o: Object| s.apply(Event::Upsert(SRC, o), 0);
        up(&mut store, via("0.0.0.0/0", 11, "10.1.0.2"));
        let mut keys = Vec::new();
        for r in routes {
            if let Object::Route(r) = &r {
                keys.push(r.key);
            }
            up(&mut store, r);
        }
        yes(&mut store, 0);
        up(&mut store, neigh(12, "10.2.0.9", 9));
        up(&mut store, via("0.0.0.0/0", 12, "10.2.0.9"));
        let t = Instant::now();
        for k in keys {
            store.apply(Event::Remove(SRC, Key::Route(k)), 0);
        }
        // what the default leads to gets no answer yet
        let (mut late, mut traps) = (Vec::new(), 0);
        loop {
            let mut out = Vec::new();
            if store.plan(&mut out, 0) == 0 {
                break;
            }
            for p in out {
                match p.ring {
                    Ring::Sync => late.push(p.token),
                    Ring::Bulk => {
                        traps += u32::from(p.op == TND_OP_SET_TRAP);
                        store.complete(p.token, &Completion::default(), 0);
                    }
                }
            }
        }
        assert_eq!(traps, n);
        if rate {
            println!("{n} wait after {:.2} s", t.elapsed().as_secs_f64());
        }
        for token in late {
            store.complete(token, &Completion::default(), 0);
        }
        yes(&mut store, 0);
        assert!(store.idle());
        assert!(store.route_memory().1 < 100);
    }
}
