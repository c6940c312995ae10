//! Sysctls, firewall chains and the like: what the kernel tells of, and what has to be looked at.

use std::time::{Duration, Instant};

use tandem_store::model::{LinkKind, Object};

use super::super::Config;
use super::cases::{TWO, lab};
use super::{Lab, PATIENCE};
use tandem_core::source::{Message, Source};

/// Takes what the source says until the mirror has what is wanted. No barrier: that reads sysctls by itself.
fn heard<T: PartialEq + std::fmt::Debug>(lab: &mut Lab, found: impl Fn(&Lab) -> T, wanted: T) {
    let until = Instant::now() + 2 * PATIENCE;
    while found(lab) != wanted {
        let late = Instant::now() > until;
        assert!(!late, "never seen: {wanted:?}, but {:?}", found(lab));
        let messages = lab.source.messages();
        if let Ok(Message::Events(events)) = messages.recv_timeout(Duration::from_millis(100)) {
            events.into_iter().for_each(|e| lab.mirror.apply(e));
        }
    }
}

#[test]
fn sysctls_are_followed() {
    let config = Config {
        sysctl_every: Duration::from_millis(50),
        ..Config::default()
    };
    let Some(mut lab) = Lab::with("sysctl", TWO, config) else {
        return;
    };
    lab.sync();
    let v1 = lab.index("v1");
    let set = |lab: &Lab, key: &str, value: &str| {
        assert!(
            lab.exec(&["sysctl", "-q", "-w", &format!("{key}={value}")]),
            "{key}"
        );
    };
    set(&lab, "net.ipv4.ip_forward", "1");
    set(&lab, "net.ipv4.conf.v1.rp_filter", "2");
    set(&lab, "net.ipv4.conf.v1.ignore_routes_with_linkdown", "1");
    set(&lab, "net.ipv4.conf.v1.send_redirects", "0");
    set(&lab, "net.ipv4.fib_multipath_hash_policy", "1");
    set(&lab, "net.ipv6.conf.all.forwarding", "1");
    set(&lab, "net.ipv6.conf.v1.disable_ipv6", "1");
    let v6 = |lab: &Lab, index| {
        let conf = lab.mirror.get(|o| match o {
            Object::Netconf(c) if c.scope == tandem_store::model::ConfScope::Interface(index) => {
                Some(*c)
            }
            _ => None,
        });
        conf.iter()
            .find(|c| c.family == tandem_store::model::Family::V6)
            .map(|c| (c.forwarding, c.disabled))
    };
    let off = Some((Some(true), Some(true)));
    let on = Some((Some(true), Some(false)));
    let v2 = lab.index("v2");
    let all = |lab: &Lab| {
        let v4 = lab.mirror.get(|o| match o {
            Object::Netconf(c)
                if c.scope == tandem_store::model::ConfScope::Interface(v1)
                    && c.family == tandem_store::model::Family::V4 =>
            {
                Some((
                    c.forwarding,
                    c.rp_filter,
                    c.ignore_linkdown,
                    c.send_redirects,
                ))
            }
            _ => None,
        });
        let hash = lab.mirror.get(|o| match o {
            Object::Settings(s) => Some(s.hash_policy_v4),
            _ => None,
        });
        (v4, hash, v6(lab, v1), v6(lab, v2))
    };
    let v4 = (Some(true), Some(2), Some(true), Some(false));
    heard(&mut lab, all, (vec![v4], vec![1], off, on));
    set(&lab, "net.ipv6.conf.v1.disable_ipv6", "0");
    lab.sync();
    assert_eq!(v6(&lab, v1), on);
    // An MTU below 1280 takes IPv6 off the interface.
    lab.ip("link set v1 mtu 1000\n");
    lab.sync();
    assert_eq!(v6(&lab, v1), None);
    lab.source.resync();
    lab.sync();
    assert_eq!(v6(&lab, v1), None);
    lab.ip("link set v1 mtu 1500\n");
    lab.sync();
    assert_eq!(v6(&lab, v1), on);
}

#[test]
fn disable_ipv6_is_seen_by_what_it_takes() {
    let config = Config {
        sysctl_every: Duration::from_secs(3600),
        ..Config::default()
    };
    let Some(mut lab) = Lab::with("off6", TWO, config) else {
        return;
    };
    lab.sync();
    // what the start makes, late: an address of a link that is no longer tentative has the settings read as well
    lab.lasts("at rest", |lab| {
        let before = lab.counts().notifications;
        std::thread::sleep(Duration::from_millis(300));
        match lab.counts().notifications {
            now if now == before => Ok(()),
            now => Err(format!("{} more messages", now - before)),
        }
    });
    assert!(lab.exec(&["sysctl", "-qw", "net.ipv6.conf.v1.disable_ipv6=1"]));
    let v1 = lab.index("v1");
    let off = |lab: &Lab| {
        lab.mirror.get(|o| match o {
            Object::Netconf(c)
                if c.scope == tandem_store::model::ConfScope::Interface(v1)
                    && c.family == tandem_store::model::Family::V6 =>
            {
                c.disabled
            }
            _ => None,
        })
    };
    heard(&mut lab, off, vec![true]);
}

#[test]
fn what_sees_bridged_frames_is_told() {
    let Some(mut lab) = lab("brnf", "link add br0 type bridge\nlink set br0 up\n") else {
        return;
    };
    let info = |lab: &mut Lab| {
        lab.sync();
        let found = lab.mirror.get(|o| match o {
            Object::Link(l) if l.name == "br0" => match l.kind {
                LinkKind::Bridge(b) => Some((b.nf_call, l.promiscuous)),
                _ => None,
            },
            _ => None,
        });
        found[0]
    };
    let settings = |lab: &mut Lab| {
        lab.sync();
        let all = lab.mirror.get(|o| match o {
            Object::Settings(s) => Some(*s),
            _ => None,
        });
        all[0]
    };
    let (nf_call, promiscuous) = info(&mut lab);
    assert!(!nf_call.ip && !nf_call.ip6 && !nf_call.arp && !promiscuous);
    lab.ip("link set br0 type bridge nf_call_iptables 1 nf_call_arptables 1\n");
    if info(&mut lab).0.ip {
        assert!(info(&mut lab).0.arp && !info(&mut lab).0.ip6);
        for on in [false, true] {
            let value = format!("net.bridge.bridge-nf-call-iptables={}", u8::from(on));
            assert!(lab.exec(&["sysctl", "-qw", &value]));
            assert_eq!(settings(&mut lab).nf_call.ip, on);
        }
    } else {
        eprintln!("no br_netfilter here");
    }
    lab.ip("link set br0 promisc on\n");
    assert!(info(&mut lab).1);
    lab.ip("link set br0 promisc off\n");
    assert!(!info(&mut lab).1);
    // In another namespace nothing but the bridge's own state tells of it.
    let other = format!("nl-brnf-up-{}", std::process::id());
    assert!(lab.host_ip(&["netns", "add", &other]));
    lab.ip(&format!(
        "link add mv0 link br0 netns {other} type macvlan\n"
    ));
    lab.host_ip(&["-n", &other, "link", "set", "mv0", "up"]);
    let seen = info(&mut lab).1;
    lab.host_ip(&["netns", "del", &other]);
    assert!(seen, "macvlan elsewhere");
    lab.lasts("the macvlan has gone", |lab| match info(lab).1 {
        true => Err("still promiscuous".into()),
        false => Ok(()),
    });
}

#[test]
fn ipsec_policies_are_seen() {
    let Some(mut lab) = lab("xfrm", "") else {
        return;
    };
    let reason = |lab: &mut Lab| {
        lab.sync();
        let all = lab.mirror.get(|o| match o {
            Object::Settings(s) => Some(s.unsupported),
            _ => None,
        });
        all[0].unwrap_or_default()
    };
    assert_eq!(reason(&mut lab), "");
    let policy = "policy add src 10.9.0.0/16 dst 10.8.0.0/16 dir fwd action block";
    let words: Vec<&str> = ["ip", "xfrm"]
        .into_iter()
        .chain(policy.split(' '))
        .collect();
    if !lab.exec(&words) {
        eprintln!("skipped: no IPsec");
        return;
    }
    assert!(reason(&mut lab).contains("IPsec"));
    assert!(lab.exec(&["ip", "xfrm", "policy", "flush"]));
    assert_eq!(reason(&mut lab), "");
    assert!(lab.exec(&["ip", "xfrm", "policy", "setdefault", "fwd", "block"]));
    assert!(reason(&mut lab).contains("IPsec"));
}

#[test]
fn nftables_base_chains_are_followed() {
    let Some(mut lab) = lab("nft", "") else {
        return;
    };
    if !lab.exec(&["nft", "list", "ruleset"]) {
        eprintln!("skipped: no nft");
        return;
    }
    let nft = |lab: &Lab, text: &str| assert!(lab.exec(&["nft", text]), "{text}");
    let chains = |lab: &mut Lab| {
        lab.sync();
        lab.mirror.get(|o| match o {
            Object::BaseChain(c) => Some((c.family, c.name.clone(), c.hook, c.devices.clone())),
            _ => None,
        })
    };
    nft(&lab, "add table inet t");
    nft(&lab, "add chain inet t jumped_to");
    nft(
        &lab,
        "add chain inet t forw { type filter hook forward priority 0; }",
    );
    assert_eq!(chains(&mut lab), [(1, "forw".into(), 2, vec![])]);
    nft(&lab, "add table ip s");
    nft(
        &lab,
        "add chain ip s pre { type filter hook prerouting priority 0; }",
    );
    assert_eq!(chains(&mut lab).len(), 2);
    nft(&lab, "delete chain inet t forw");
    assert_eq!(chains(&mut lab), [(2, "pre".into(), 0, vec![])]);
    lab.source.resync();
    assert_eq!(chains(&mut lab), [(2, "pre".into(), 0, vec![])]);
    nft(&lab, "add table netdev n");
    nft(
        &lab,
        "add chain netdev n ingr { type filter hook ingress device v1 priority 0; }",
    );
    assert!(chains(&mut lab).contains(&(5, "ingr".into(), 0, vec!["v1".into()])));
    nft(
        &lab,
        "add chain inet t ing { type filter hook ingress device v1 priority 0; }",
    );
    assert!(chains(&mut lab).contains(&(1, "ing".into(), 5, vec!["v1".into()])));
    nft(&lab, "flush ruleset");
    assert_eq!(chains(&mut lab), []);
}
