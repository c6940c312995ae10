//! Random changes with fixed seeds; after each burst the view must be the kernel's.

use super::Lab;

/// A small generator: the same commands for the same seed, everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len() as u64) as usize]
    }
}

const SETUP: &str = "link add v1 type veth peer name p1
link add v2 type veth peer name p2
link add v3 type veth peer name p3
link set p1 up
link set p2 up
link set p3 up
link set v1 up
link set v2 up
link set v3 up
addr add 10.0.1.1/24 dev v1
addr add 10.0.2.1/24 dev v2
addr add 10.0.3.1/24 dev v3
addr add 2001:db8:1::1/64 dev v1 nodad
addr add 2001:db8:2::1/64 dev v2 nodad
addr add 2001:db8:3::1/64 dev v3 nodad
";

fn gateway(d: &mut Dice, v6: bool) -> String {
    let i = 1 + d.roll(3);
    let host = 2 + d.roll(3);
    match v6 {
        false => format!("via 10.0.{i}.{host} dev v{i}"),
        true if d.roll(3) == 0 => format!("via fe80::{host} dev v{i}"),
        true => format!("via 2001:db8:{i}::{host} dev v{i}"),
    }
}

fn ways(d: &mut Dice, v6: bool, via6: bool) -> String {
    match d.roll(10) {
        0..=3 => gateway(d, v6),
        4..=5 => {
            let n = 2 + d.roll(2);
            (0..n)
                .map(|_| format!("nexthop {} weight {} ", gateway(d, v6), 1 + d.roll(4)))
                .collect()
        }
        6 => format!("dev v{}", 1 + d.roll(3)),
        7 if via6 && !v6 => {
            let i = 1 + d.roll(3);
            format!("via inet6 fe80::{} dev v{i}", 2 + d.roll(3))
        }
        _ => format!(
            "nhid {}",
            d.pick(&["1", "2", "3", "100", "101", "102", "9"])
        ),
    }
}

fn command(d: &mut Dice) -> String {
    let v6 = d.roll(2) == 0;
    let i = 1 + d.roll(3);
    match d.roll(40) {
        0..=1 => format!("link set v{i} down"),
        2..=4 => format!("link set v{i} up"),
        5 => format!("link set p{i} down"),
        6..=7 => format!("link set p{i} up"),
        8 => match v6 {
            true => format!("addr del 2001:db8:{i}::1/64 dev v{i}"),
            false => format!("addr del 10.0.{i}.1/24 dev v{i}"),
        },
        9..=11 => match v6 {
            true => format!("addr add 2001:db8:{i}::1/64 dev v{i} nodad"),
            false => format!("addr add 10.0.{i}.1/24 dev v{i}"),
        },
        12 => format!("addr add 10.0.{i}.{}/24 dev v{i}", 10 + d.roll(3)),
        13 => format!("addr del 10.0.{i}.{}/24 dev v{i}", 10 + d.roll(3)),
        14..=16 => {
            let id = 1 + d.roll(3);
            match d.roll(4) {
                0 => format!("nexthop replace id {id} blackhole"),
                _ => format!("nexthop replace id {id} {}", gateway(d, v6)),
            }
        }
        17 => format!(
            "nexthop del id {}",
            d.pick(&["1", "2", "3", "100", "101", "102", "9"])
        ),
        18 => format!(
            "nexthop replace id 10{} group 1,{}/2,{}",
            d.roll(2),
            1 + d.roll(4),
            2 + d.roll(5)
        ),
        19 => match d.roll(2) {
            0 => "nexthop replace id 9 blackhole".into(),
            _ => format!("nexthop replace id 9 {}", gateway(d, v6)),
        },
        22 => format!(
            "nexthop replace id 102 group 1,{}/{},2 type resilient buckets 8 idle_timer {}",
            1 + d.roll(4),
            2 + d.roll(2),
            1 + d.roll(3)
        ),
        20 => format!("link del v{i}"),
        21 => format!(
            "link add v{i} type veth peer name p{i}\nlink set p{i} up\nlink set v{i} up\naddr add 10.0.{i}.1/24 dev v{i}\naddr add 2001:db8:{i}::1/64 dev v{i} nodad"
        ),
        _ => {
            let verb = d.pick(&[
                "add", "append", "prepend", "replace", "replace", "add", "del", "del",
            ]);
            let dst = match v6 {
                true => d.pick(&[
                    "default",
                    "2001:db8:a::/48",
                    "2001:db8:a:1::/64",
                    "2001:db8:b::7/128",
                ]),
                false => d.pick(&["default", "172.16.0.0/16", "172.16.1.0/24", "172.17.0.7/32"]),
            };
            let kind = match d.roll(12) {
                0 => d.pick(&["blackhole ", "unreachable ", "prohibit ", "throw "]),
                _ => "",
            };
            // what two routes of IPv4 may differ in, and no two of IPv6
            let rest = match (v6, d.roll(8)) {
                (false, 0..=1) => d.pick(&[" advmss 1300", " advmss 1400", " realm 5"]),
                _ => "",
            };
            let mut out = format!("route {verb} {kind}{dst}");
            if d.roll(3) == 0 {
                out += &format!(" metric {}", 10 + d.roll(2));
            }
            if !v6 && d.roll(6) == 0 {
                out += " tos 0x10";
            }
            if d.roll(5) == 0 {
                out += " table 77";
            }
            if kind.is_empty() && (verb != "del" || d.roll(2) == 0) {
                out += " ";
                out += &ways(d, v6, true);
                out += rest;
                if !v6 && d.roll(6) == 0 {
                    out += &format!(" src 10.0.{i}.1{}", d.pick(&["", "0", "1"]));
                }
            }
            out
        }
    }
}

fn churn(what: &str, seed: u64) {
    let Some(mut lab) = Lab::with(what, SETUP, super::Config::default()) else {
        return;
    };
    let mut d = Dice(seed);
    let bursts = std::env::var("NETLINK_BURSTS")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(25);
    let mut history = String::new();
    for burst in 0..bursts {
        let n = 1 + d.roll(12);
        let commands: String = (0..n).map(|_| command(&mut d) + "\n").collect();
        history += &commands;
        if d.roll(8) == 0 {
            // without it the kernel does not tell the routes of an object that was replaced
            let compat = format!("net.ipv4.nexthop_compat_mode={}", d.roll(2));
            lab.exec(&["sysctl", "-w", &compat]);
            history += &format!("# {compat}\n");
        }
        lab.ip(&commands);
        let context = format!("seed {seed}, burst {burst}, commands:\n{history}");
        lab.check_routes(&context);
        super::buckets::check(&mut lab, &context);
        lab.lasts(&context, |lab| {
            let theirs = lab.json("nexthop show").as_array().map_or(0, Vec::len);
            let ours = lab
                .mirror
                .get(|o| matches!(o, tandem_store::model::Object::Nexthop(_)).then_some(()));
            match ours.len() == theirs {
                true => Ok(()),
                false => Err(format!("next-hop objects: {}, {theirs}", ours.len())),
            }
        });
    }
    let status = tandem_core::source::Source::status(&lab.source);
    eprintln!("seed {seed}: {status:?}");
    assert_eq!(
        (status.overruns, status.resyncs),
        (0, 1),
        "the view must do without full dumps"
    );
}

/// `NETLINK_BURSTS` makes each run longer, `NETLINK_SEED` shifts the seeds.
fn seed(n: u64) -> u64 {
    let base: u64 = std::env::var("NETLINK_SEED")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(0);
    base + n
}

#[test]
fn random_changes_1() {
    churn("c1", seed(1));
}

#[test]
fn random_changes_2() {
    churn("c2", seed(2));
}

#[test]
fn random_changes_3() {
    churn("c3", seed(3));
}
