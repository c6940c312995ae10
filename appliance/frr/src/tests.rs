// SPDX-License-Identifier: Apache-2.0
//! Daemons of a test in FRR's place: they keep the lines that they are told, refuse some, go away, and come back.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use proptest::collection::btree_set;
use proptest::prelude::*;
use tandem_swconfig::routing::{Area, AtInterface, Origin, Peer, Router, Setting};
use tandem_swconfig::{Config, Interface, Kind, Name, Net};

use crate::lines::{Daemon, Line, lines, read};
use crate::{Frr, show};

/// What such a daemon has: pairs of what a line stands below, and the line.
#[derive(Default)]
struct Fake {
    has: Vec<(Vec<String>, String)>,
    /// So many lines are taken, and then one is refused.
    left: Option<usize>,
    /// It then says nothing more, in place of that.
    hangs_up: bool,
    /// It has neighbours, and goes by its name until it is told to begin anew.
    known: bool,
    said: Vec<String>,
}

impl Fake {
    /// As FRR does it: a line in the place of another of the same kind, and with `no` all that begins so.
    fn line(&mut self, below: &[String], line: &str) -> Result<(), &'static str> {
        let refused = match &mut self.left {
            Some(0) => true,
            Some(n) => {
                *n -= 1;
                false
            }
            None => false,
        };
        if refused {
            self.left = None;
            return Err("% It is not to be\n");
        }
        let gone = line
            .strip_prefix("no ")
            .filter(|l| !l.starts_with("bgp ebgp"));
        let gone = gone.filter(|l| !l.starts_with("bgp default"));
        let gone = gone.filter(|l| !l.ends_with(" activate"));
        let default = (below.to_vec(), "passive-interface default".to_owned());
        let excepted = line.contains("passive-interface vlan") && self.has.contains(&default);
        // an exception goes when it is none
        if excepted && gone.is_none() {
            self.has
                .retain(|(b, l)| b != below || *l != format!("no {line}"));
            return Ok(());
        }
        let gone = gone.filter(|_| !excepted);
        let slot = |l: &str| -> String {
            let words: Vec<&str> = l.split(' ').collect();
            let most = match words[0] {
                "neighbor" => 3,
                "version" | "maximum-paths" => 1,
                "network" => 4,
                "ip" | "area" => 3,
                "no" if words[1] == "neighbor" => return words[1..].join(" "),
                "no" => 9,
                _ => 2,
            };
            words
                .iter()
                .take(most)
                .copied()
                .collect::<Vec<_>>()
                .join(" ")
        };
        if let Some(gone) = gone {
            self.has.retain(|(b, l)| {
                let same =
                    b.as_slice() == below && (l == gone || l.starts_with(&format!("{gone} ")));
                let inside = below.is_empty() && b.first().is_some_and(|b| b == gone);
                let peer = gone.split(' ').count() == 2
                    && gone.starts_with("neighbor ")
                    && b.first() == below.first()
                    && l.trim_start_matches("no ").starts_with(&format!("{gone} "));
                !(same || inside || peer)
            });
            return Ok(());
        }
        let turned = line
            .strip_prefix("no ")
            .map_or(format!("no {line}"), str::to_owned);
        self.has.retain(|(b, l)| {
            !(b.as_slice() == below && !b.is_empty() && (slot(l) == slot(line) || *l == turned))
        });
        let one = (below.to_vec(), line.to_owned());
        // as it is without a word
        if line.starts_with("bgp default") || line.starts_with("bgp ebgp") {
            return Ok(());
        }
        if !self.has.contains(&one) {
            self.has.push(one);
        }
        Ok(())
    }

    fn running(&self) -> String {
        let mut text = String::from("frr version 8.4.4\nhostname x\nlog file /x\n!\n");
        let mut heads: BTreeSet<String> = self
            .has
            .iter()
            .filter_map(|(b, _)| b.first().cloned())
            .collect();
        heads.extend(
            self.has
                .iter()
                .filter(|(b, _)| b.is_empty())
                .map(|(_, l)| l.clone()),
        );
        for head in heads {
            text.push_str(&format!("{head}\n"));
            let mut inside = String::new();
            for (b, l) in self.has.iter().filter(|(b, _)| b.first() == Some(&head)) {
                match b.len() {
                    1 => text.push_str(&format!(" {l}\n")),
                    _ => inside.push_str(&format!("  {l}\n")),
                }
            }
            if !inside.is_empty() {
                text.push_str(&format!(
                    " !\n address-family ipv4 unicast\n{inside} exit-address-family\n"
                ));
            }
            text.push_str("exit\n!\n");
        }
        text + "end\n"
    }

    fn sorted(&self) -> BTreeSet<(Vec<String>, String)> {
        self.has.iter().cloned().collect()
    }
}

/// What FRR refuses is in the daemon's log, and who typed it may be long gone: said again to a bgpd that has come back.
#[test]
fn a_password_that_is_refused_is_in_no_log() {
    let line = "neighbor 10.0.0.1 password hunter2";
    for text in [
        "% Unknown command: neighbor 10.0.0.1 password hunter2",
        "% Specify remote-as or peer-group commands first\n",
        "",
    ] {
        for line in [line, "no neighbor 10.0.0.1 password hunter2"] {
            let words = crate::vty::words(text, line);
            assert!(words.contains("neighbor 10.0.0.1 password"), "{words}");
            assert!(!words.contains("hunter2"), "{words}");
        }
    }
    let other = crate::vty::words("% Not there", "network 10.0.0.0/8 area 0");
    assert_eq!(other, "network 10.0.0.0/8 area 0: Not there");
}

fn serve(stream: &mut UnixStream, fake: &Mutex<Fake>) -> Option<()> {
    let mut at: Option<Vec<String>> = None;
    let mut buffer = Vec::new();
    loop {
        let mut octet = [0];
        if stream.read(&mut octet).ok()? == 0 {
            return None;
        }
        if octet[0] != 0 {
            buffer.push(octet[0]);
            continue;
        }
        let line = String::from_utf8(std::mem::take(&mut buffer)).ok()?;
        let mut fake = fake.lock().unwrap();
        fake.said.push(line.clone());
        let enters = ["router ", "interface ", "address-family "];
        let mut answer = (0u8, String::new());
        match (line.as_str(), &mut at) {
            ("enable", _) | ("clear ip ospf process", None) => {}
            ("end", at) => *at = None,
            ("configure terminal", at) => *at = Some(Vec::new()),
            ("show running-config", _) => answer.1 = fake.running(),
            (_, None) => answer = (2, "% Unknown command\n".into()),
            (line, Some(at)) => {
                // a way to a mode of a line that there is
                let is_there = fake.has.iter().any(|(b, l)| b.is_empty() && l == line);
                let way = enters.iter().any(|e| line.starts_with(e));
                let mut done = Ok(());
                if !way || at.is_empty() && !is_there && !line.starts_with("interface") {
                    done = fake.line(&at.clone(), line);
                }
                if way {
                    at.push(line.to_owned());
                }
                if fake.known && line.contains("ospf router-id") {
                    answer.1 = "\nFor this router-id change to take effect, use \"clear ip ospf process\" command\n".into();
                }
                if let Err(why) = done {
                    if fake.hangs_up {
                        return None;
                    }
                    answer = (13, why.into());
                }
            }
        }
        let mut out = answer.1.into_bytes();
        out.extend([0, 0, 0, answer.0]);
        stream.write_all(&out).ok()?;
    }
}

/// A folder with such daemons, each of which takes one connection after the other.
struct Bench {
    folder: PathBuf,
    fakes: Vec<(Daemon, Arc<Mutex<Fake>>)>,
    frr: Frr,
}

impl Bench {
    fn empty() -> Bench {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("tandem-frr-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Bench {
            frr: Frr::new(&folder),
            folder,
            fakes: Vec::new(),
        }
    }

    fn new() -> Bench {
        let mut bench = Bench::empty();
        for daemon in Daemon::ALL {
            bench.start(daemon);
        }
        bench
    }

    fn start(&mut self, daemon: Daemon) -> Arc<Mutex<Fake>> {
        let fake: Arc<Mutex<Fake>> = Arc::default();
        let path = self.folder.join(format!("{}.vty", daemon.word()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let shared = Arc::clone(&fake);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = Arc::clone(&shared);
                let mut stream = stream.unwrap();
                std::thread::spawn(move || serve(&mut stream, &shared));
            }
        });
        self.fakes.retain(|(d, _)| *d != daemon);
        self.fakes.push((daemon, Arc::clone(&fake)));
        fake
    }

    fn of(&self, daemon: Daemon) -> Arc<Mutex<Fake>> {
        let found = self.fakes.iter().find(|(d, _)| *d == daemon);
        Arc::clone(&found.unwrap().1)
    }

    fn all(&self) -> Vec<BTreeSet<(Vec<String>, String)>> {
        let of = |d: &Daemon| self.of(*d).lock().unwrap().sorted();
        Daemon::ALL.iter().map(of).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn vlan(number: u16) -> Name {
    Name {
        kind: Kind::Vlan,
        number,
    }
}

fn net(a: u8) -> Net<std::net::Ipv4Addr> {
    Net {
        address: [10, a, 0, 0].into(),
        prefix: 16,
    }
}

/// Settings of a router, of which one kind each is there.
fn settings(bgp: bool, ospf: bool) -> impl Strategy<Value = BTreeSet<Setting>> {
    let one = prop_oneof![
        (1u8..4).prop_map(|n| Setting::RouterId([1, 1, 1, n].into())),
        Just(Setting::LogChanges),
        (1u8..4, 0u32..2).prop_map(move |(n, area)| Setting::Network(net(n), ospf.then_some(area))),
        proptest::option::of(1u32..9).prop_map(|m| Setting::Redistribute(Origin::Connected, m)),
        proptest::option::of(1u32..9).prop_map(|m| Setting::Redistribute(Origin::Static, m)),
        any::<bool>().prop_map(move |on| match bgp {
            true => Setting::MaximumPaths(2 + u8::from(on)),
            false if on => Setting::PassiveDefault,
            // what of the two it is follows from that
            false => Setting::Passive(vlan(9), true),
        }),
        any::<bool>().prop_map(move |most| match bgp {
            true => Setting::NoDefaultUnicast,
            false => Setting::Area(3, Area::Nssa(most)),
        }),
        any::<bool>().prop_map(move |a| Setting::DefaultInformation(a && ospf)),
    ];
    let peer = prop_oneof![
        (1u32..4).prop_map(Peer::RemoteAs),
        (1u16..3).prop_map(|n| Peer::Timers(n, 9)),
        Just(Peer::Description("a  b".into())),
        Just(Peer::NextHopSelf),
        Just(Peer::Shutdown),
        any::<bool>().prop_map(Peer::Activate),
    ];
    let peers = btree_set((1u8..4, peer), 0..8);
    (btree_set(one, 0..8), peers).prop_map(move |(all, peers)| {
        let mut out = BTreeSet::new();
        for one in all {
            if matches!(one, Setting::DefaultInformation(_)) && bgp {
                continue;
            }
            tandem_swconfig::routing::set(&mut out, one);
        }
        if out.contains(&Setting::PassiveDefault) && out.remove(&Setting::Passive(vlan(9), true)) {
            out.insert(Setting::Passive(vlan(9), false));
        }
        for (n, peer) in peers.into_iter().filter(|_| bgp) {
            let address = [10, 0, 0, n].into();
            // it begins with its AS
            if !out
                .iter()
                .any(|s| matches!(s, Setting::Neighbor(a, _) if *a == address))
            {
                out.insert(Setting::Neighbor(address, Peer::RemoteAs(7)));
            }
            tandem_swconfig::routing::set(&mut out, Setting::Neighbor(address, peer));
        }
        out
    })
}

fn config() -> impl Strategy<Value = Config> {
    let of = |bgp, ospf| proptest::option::of(settings(bgp, ospf));
    let at = proptest::option::of((1u16..4, any::<bool>()));
    (
        of(false, true),
        of(false, false),
        of(true, false),
        1u32..3,
        at,
    )
        .prop_map(|(ospf, rip, bgp, asn, at)| {
            let mut config = Config::default();
            let all = [
                (Router::Ospf(1), ospf),
                (Router::Rip, rip),
                (Router::Bgp(asn), bgp),
            ];
            for (router, settings) in all {
                config.routers.extend(settings.map(|s| (router, s)));
            }
            if let Some((cost, one)) = at {
                let mut of = Interface::new(&vlan(9));
                of.ospf.insert(AtInterface::Cost(cost));
                if one {
                    of.ospf.insert(AtInterface::PointToPoint);
                }
                config.interfaces.insert(vlan(9), of);
            }
            config
        })
}

fn wanted(config: &Config, daemon: Daemon) -> BTreeSet<(Vec<String>, String)> {
    let all = lines(config).into_iter().filter(|l| l.daemon == daemon);
    all.map(|l| (l.below, l.text)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 2))]

    /// From any configuration to any other, and whichever line is refused, all is as it was, in all daemons.
    #[test]
    fn all_or_nothing(from in config(), to in config(), who in 0usize..3, left in 0usize..12, lost in any::<bool>()) {
        let bench = Bench::new();
        bench.frr.set(&lines(&from)).unwrap();
        for daemon in Daemon::ALL {
            prop_assert_eq!(bench.of(daemon).lock().unwrap().sorted(), wanted(&from, daemon));
        }
        let before = bench.all();
        let daemon = Daemon::ALL[who];
        {
            let fake = bench.of(daemon);
            let mut fake = fake.lock().unwrap();
            (fake.left, fake.hangs_up) = (Some(left), lost);
        }
        let done = bench.frr.set(&lines(&to));
        if let Err(why) = &done {
            prop_assert!(why.starts_with(daemon.word()), "{}", why);
            prop_assert!(!why.contains("not back"), "{}", why);
            // one that has hung up is seen to when it is looked for
            bench.frr.tick();
            prop_assert_eq!(bench.all(), before);
        }
        bench.of(daemon).lock().unwrap().left = None;
        bench.frr.set(&lines(&to)).unwrap();
        for daemon in Daemon::ALL {
            prop_assert_eq!(bench.of(daemon).lock().unwrap().sorted(), wanted(&to, daemon));
        }
    }

    /// Who comes anew with anything, its own or another's, has what is wanted after that, and is told nothing twice.
    #[test]
    fn who_comes_back_is_told_what_differs(was in config(), now in config()) {
        let mut bench = Bench::empty();
        bench.frr.set(&lines(&now)).unwrap();
        prop_assert_eq!(bench.frr.notes().is_empty(), now == Config::default() || lines(&now).is_empty());
        for daemon in Daemon::ALL {
            let fake = bench.start(daemon);
            fake.lock().unwrap().has = lines(&was).into_iter().filter(|l| l.daemon == daemon).map(|l| (l.below, l.text)).collect();
        }
        bench.frr.tick();
        for daemon in Daemon::ALL {
            // of whom nothing is wanted, that one's configuration is nobody's here
            let ours = lines(&now).iter().any(|l| l.daemon == daemon);
            let is = bench.of(daemon).lock().unwrap().sorted();
            prop_assert_eq!(is, wanted(if ours { &now } else { &was }, daemon));
        }
        for (_, fake) in &bench.fakes {
            fake.lock().unwrap().said.clear();
        }
        bench.frr.tick();
        let another = Frr::new(&bench.folder);
        another.set(&lines(&now)).unwrap();
        for (_, fake) in &bench.fakes {
            let said = fake.lock().unwrap().said.clone();
            let only = |l: &String| ["enable", "end", "show running-config"].contains(&l.as_str());
            prop_assert!(said.iter().all(only), "{:?}", said);
        }
    }

    /// Lines are read from the text of a daemon as they were said.
    #[test]
    fn read_as_they_were_said(config in config()) {
        for daemon in Daemon::ALL {
            let mut fake = Fake::default();
            let all: Vec<Line> = lines(&config).into_iter().filter(|l| l.daemon == daemon).collect();
            for line in &all {
                fake.line(&line.below, &line.text).unwrap();
            }
            let got = read(daemon, &fake.running());
            prop_assert!(got.iter().all(|g| all.iter().any(|l| l.is(g))), "{:?}", got);
            prop_assert!(all.iter().all(|l| got.iter().any(|g| l.is(g))), "{:?}", fake.running());
        }
    }
}

fn ospf() -> Config {
    let mut config = Config::default();
    let settings = BTreeSet::from([Setting::RouterId([1, 1, 1, 1].into())]);
    config.routers.insert(Router::Ospf(1), settings);
    config
}

/// What a daemon is told to come from one set of a router's settings to another, and then back again.
fn told(router: Router, daemon: Daemon, from: &[Setting], to: &[Setting]) -> [Vec<String>; 2] {
    let of = |settings: &[Setting]| {
        let mut config = Config::default();
        let settings = settings.iter().cloned().collect();
        config.routers.insert(router, settings);
        lines(&config)
    };
    let bench = Bench::new();
    bench.frr.set(&of(from)).unwrap();
    let fake = bench.of(daemon);
    [to, from].map(|now| {
        fake.lock().unwrap().said.clear();
        bench.frr.set(&of(now)).unwrap();
        let said = std::mem::take(&mut fake.lock().unwrap().said);
        let ways = ["end", "configure terminal", "router ", "address-family "];
        let is_way = |l: &String| ways.iter().any(|w| l.starts_with(w));
        said.into_iter().filter(|l| !is_way(l)).collect()
    })
}

#[test]
fn in_another_as_a_neighbour_is_another_one() {
    let address = [10, 0, 0, 1].into();
    let set = |asn| {
        let all = [
            Peer::RemoteAs(asn),
            Peer::EbgpMultihop(3),
            Peer::Activate(true),
            Peer::NextHopSelf,
        ];
        all.map(|p| Setting::Neighbor(address, p))
    };
    // FRR has no multihop of a neighbour in its own AS, and forgets it
    let [there, back] = told(Router::Bgp(1), Daemon::Bgp, &set(2), &set(1));
    let wanted = |asn| {
        let tails = [
            &format!("remote-as {asn}"),
            "ebgp-multihop 3",
            "next-hop-self",
            "activate",
        ];
        let all = tails.map(|t| format!("neighbor 10.0.0.1 {t}"));
        let mut all = Vec::from(all);
        all.insert(0, "no neighbor 10.0.0.1".into());
        all
    };
    assert_eq!((there, back), (wanted(1), wanted(2)));
}

#[test]
fn what_bgp_tells_of_others_loses_its_metric() {
    let set = |metric| [Setting::Redistribute(Origin::Connected, metric)];
    let [there, back] = told(Router::Bgp(1), Daemon::Bgp, &set(Some(5)), &set(None));
    let no = "no redistribute connected";
    assert_eq!(there, [no, "redistribute connected"]);
    assert_eq!(back, [no, "redistribute connected metric 5"]);
}

#[test]
fn a_router_has_its_new_name_at_once() {
    let bench = Bench::new();
    bench.frr.set(&lines(&ospf())).unwrap();
    let fake = bench.of(Daemon::Ospf);
    let anew = || {
        let said = std::mem::take(&mut fake.lock().unwrap().said);
        said.iter()
            .filter(|l| *l == "clear ip ospf process")
            .count()
    };
    assert_eq!(anew(), 0);
    fake.lock().unwrap().known = true;
    let mut other = ospf();
    let settings = [Setting::RouterId([1, 1, 1, 2].into()), Setting::LogChanges];
    other.routers.insert(Router::Ospf(1), settings.into());
    bench.frr.set(&lines(&other)).unwrap();
    assert_eq!(anew(), 1);
    assert_eq!(fake.lock().unwrap().sorted(), wanted(&other, Daemon::Ospf));
}

#[test]
fn an_area_of_a_kind_loses_its_tail() {
    let area = |most| [Setting::Area(3, Area::Nssa(most))];
    let [there, back] = told(Router::Ospf(1), Daemon::Ospf, &area(true), &area(false));
    let [no, plain] = ["no area 0.0.0.3 nssa", "area 0.0.0.3 nssa"];
    assert_eq!(there, [no, plain]);
    assert_eq!(back, [no, "area 0.0.0.3 nssa no-summary"]);
    let text = "router ospf\n area 0.0.0.3 nssa \n area 0.0.0.3 nssa no-summary\nexit\n";
    let found: Vec<String> = read(Daemon::Ospf, text).into_iter().map(|l| l.no).collect();
    assert_eq!(found, ["no router ospf", no]);
}

#[test]
fn who_hears_hellos_waits_for_four_of_them() {
    let at = |set: &[AtInterface]| {
        let mut config = Config::default();
        let mut of = Interface::new(&vlan(9));
        of.ospf.extend(set);
        config.interfaces.insert(vlan(9), of);
        let all = lines(&config).into_iter().map(|l| l.text);
        all.collect::<Vec<String>>()
    };
    let [hello, dead] = [AtInterface::Hello(5), AtInterface::Dead(9)];
    let said = "ip ospf hello-interval 5";
    assert_eq!(at(&[hello]), [said, "ip ospf dead-interval 20"]);
    assert_eq!(at(&[hello, dead]), [said, "ip ospf dead-interval 9"]);
    assert_eq!(at(&[dead]), ["ip ospf dead-interval 9"]);
    let most = at(&[AtInterface::Hello(65_535)]);
    assert_eq!(most.last().unwrap(), "ip ospf dead-interval 65535");
}

#[test]
fn who_is_away_is_told_later_and_that_is_said() {
    let mut bench = Bench::empty();
    bench.frr.set(&lines(&ospf())).unwrap();
    let notes = bench.frr.notes();
    assert!(
        notes[0].starts_with("% ospfd is not reached ("),
        "{notes:?}"
    );
    assert_eq!(bench.frr.notes(), Vec::<String>::new());
    let fake = bench.start(Daemon::Ospf);
    bench.frr.tick();
    assert_eq!(fake.lock().unwrap().sorted(), wanted(&ospf(), Daemon::Ospf));
}

#[test]
fn who_takes_nobody_and_who_answers_nothing_is_not_waited_for_long() {
    let bench = Bench::empty();
    // it listens, and its only place is taken
    let path = bench.folder.join("ospfd.vty");
    let listener = UnixListener::bind(&path).unwrap();
    // until the queue of those who wait is full, each is heard of no more than the time that an answer has
    let why = bench.frr.ask("ospfd", "show ip ospf").unwrap_err();
    assert!(why.contains("no answer within 5 s"), "{why}");
    // nor is it asked again and again, while lines of all sessions wait
    bench.frr.set(&lines(&ospf())).unwrap();
    bench.frr.tick();
    listener.set_nonblocking(true).unwrap();
    let asked = std::iter::from_fn(|| listener.accept().ok()).count();
    assert_eq!(asked, 2);
    drop(listener);
    // nobody listens
    let why = bench.frr.ask("ospfd", "show ip ospf").unwrap_err();
    assert!(why.contains("is not reached"), "{why}");
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let bench = Bench::new();
    let fake = bench.of(Daemon::Ospf);
    let others = (
        vec!["interface vlan9".to_owned()],
        "description x".to_owned(),
    );
    fake.lock().unwrap().has = vec![
        others.clone(),
        (vec![], "ip prefix-list a permit any".into()),
    ];
    bench.frr.set(&lines(&ospf())).unwrap();
    bench.frr.set(&[]).unwrap();
    assert_eq!(fake.lock().unwrap().has.len(), 2);
    let text = "router bgp 5\n neighbor 1.1.1.1 remote-as 7\nexit\nrouter bgp 6 vrf red\nexit\ninterface vlan9\n description x\nexit\n";
    let found: Vec<String> = read(Daemon::Bgp, text).into_iter().map(|l| l.no).collect();
    let active = "no neighbor 1.1.1.1 activate";
    assert_eq!(found, ["no router bgp 5", "no neighbor 1.1.1.1", active]);
}

#[test]
fn a_line_that_frr_has_twice_is_one() {
    let text = "router ospf\n area 0.0.0.3 nssa \n area 0.0.0.3 nssa no-summary\n area 0.0.0.4 stub\nexit\n";
    let found: Vec<String> = read(Daemon::Ospf, text)
        .into_iter()
        .map(|l| l.text)
        .collect();
    assert_eq!(
        found,
        [
            "router ospf",
            "area 0.0.0.3 nssa no-summary",
            "area 0.0.0.4 stub"
        ]
    );
}

/// What 8.4 says in JSON, shortened, in the columns of IOS.
#[test]
fn in_the_columns_of_ios() {
    let of = |text: &str| serde_json::from_str(text).unwrap();
    let neighbours = show::neighbours(&of(r#"{"neighbors": {"10.2.0.3": [
            {"priority": 1, "nbrPriority": 1, "nbrState": "Full/-", "converged": "Full", "role": "DROther",
             "routerDeadIntervalTimerDueMsec": 35019, "ifaceAddress": "10.2.0.3", "ifaceName": "vlan2:10.2.0.1"},
            {"priority": 5, "state": "2-Way/DROther", "deadTimeMsecs": 3723000, "address": "10.2.0.4", "ifaceName": "vlan3:10.3.0.1"}]}}"#));
    assert_eq!(
        neighbours,
        "\nNeighbor ID     Pri   State           Dead Time   Address         Interface\n\
         10.2.0.3          1   FULL/  -        00:00:35    10.2.0.3        Vlan2\n\
         10.2.0.3          5   2WAY/DROTHER    01:02:03    10.2.0.4        Vlan3\n"
    );
    let interfaces = show::interfaces(
        &of(
            r#"{"interfaces": {"vlan2": {"ipAddress": "10.2.0.1", "ipAddressPrefixlen": 24, "area": "0.0.0.7 [NSSA]",
            "cost": 10, "state": "Point-To-Point", "nbrCount": 2, "nbrAdjacentCount": 1}}}"#,
        ),
        9,
    );
    assert_eq!(
        interfaces,
        "Interface    PID   Area            IP Address/Mask    Cost  State Nbrs F/C\n\
         Vl2          9     7               10.2.0.1/24        10    P2P   1/2\n"
    );
    let summary = show::summary(&of(
        r#"{"ipv4Unicast": {"routerId": "1.1.1.1", "as": 65001, "tableVersion": 2, "peers": {
            "10.2.0.3": {"remoteAs": 65002, "version": 4, "msgRcvd": 7, "msgSent": 8, "tableVersion": 0, "outq": 0,
                "inq": 0, "peerUptime": "00:00:02", "pfxRcd": 3, "state": "Established"},
            "10.2.0.4": {"remoteAs": 1, "version": 4, "peerUptime": "never", "state": "Idle (Admin)"}}}}"#,
    ));
    assert_eq!(
        summary,
        "BGP router identifier 1.1.1.1, local AS number 65001\n\
         BGP table version is 2, main routing table version 2\n\n\
         Neighbor        V           AS MsgRcvd MsgSent   TblVer  InQ OutQ Up/Down  State/PfxRcd\n\
         10.2.0.3        4        65002       7       8        0    0    0 00:00:02        3\n\
         10.2.0.4        4            1       0       0        0    0    0 never    Idle (Admin)\n"
    );
    let table = show::table(&of(
        r#"{"tableVersion": 5, "routerId": "1.1.1.1", "routes": {
            "100.100.100.128/25": [{"bestpath": true, "valid": true, "pathFrom": "internal", "locPrf": 100, "weight": 0,
                "path": "7 8", "origin": "EGP", "nexthops": [{"ip": "10.2.0.3"}]}],
            "20.0.0.0/8": [{"bestpath": true, "metric": 0, "weight": 32768, "path": "", "origin": "IGP",
                "nexthops": [{"ip": "0.0.0.0"}]}, {"valid": false, "origin": "incomplete", "nexthops": []}]}}"#,
    ));
    let rows: Vec<&str> = table.lines().skip(6).collect();
    assert_eq!(
        rows,
        [
            " *>  20.0.0.0/8       0.0.0.0                  0         32768 i",
            "                                                               ?",
            " *>i 100.100.100.128/25",
            "                      10.2.0.3                      100      0 7 8 e",
        ]
    );
}

#[test]
fn interfaces_have_the_consoles_names() {
    let text = "vlan10 is up, vlan2:10.0.0.1; myvlan3 vlan, evlan4";
    assert_eq!(
        show::named(text),
        "Vlan10 is up, Vlan2:10.0.0.1; myvlan3 vlan, evlan4"
    );
    assert_eq!(show::named("vlan"), "vlan");
    let _: &Path = Path::new("");
}
