// SPDX-License-Identifier: Apache-2.0
//! A line that takes long holds up nobody who looks; who changes something has to wait, is told so, and may give up.

use std::io::{BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Bench;
use crate::session::{Door, Session};
use crate::wire::{self, Answer, Hello, Peer};

/// Nothing that the tests wait for takes as long.
const LONG: Duration = Duration::from_secs(60);

/// A session whose line is not carried out before the gate is opened.
struct Slow {
    open: mpsc::Sender<()>,
    here: mpsc::Receiver<()>,
    done: JoinHandle<String>,
}

fn slow(bench: &Bench, line: &'static str) -> Slow {
    let (here, came) = mpsc::channel();
    let (open, opened) = mpsc::channel();
    bench.fake.lock().unwrap().gate = Some((here, Arc::new(Mutex::new(opened))));
    let mut session = Session::new(bench.switch.clone(), Door::cli()).named("al");
    let done = std::thread::spawn(move || {
        session.line("configure terminal");
        session.line(line).text
    });
    came.recv_timeout(LONG).unwrap();
    // the next one has none
    bench.fake.lock().unwrap().gate = None;
    Slow {
        open,
        here: came,
        done,
    }
}

impl Slow {
    fn end(self) -> String {
        assert!(!self.done.is_finished(), "it has not waited");
        self.open.send(()).unwrap();
        let said = self.done.join().unwrap();
        drop(self.here);
        said
    }
}

#[test]
fn who_looks_waits_for_nobody() {
    let mut bench = Bench::new();
    let slow = slow(&bench, "vlan 77");
    // each of these has an answer before that line has
    for line in [
        "show running-config",
        "show vlan",
        "show interfaces status",
        "show interfaces",
        "show mac address-table",
        "show ip route",
        "show users",
        "show version",
        "show startup-config",
        "show archive config differences",
        "terminal length 0",
        "show vlan | json",
    ] {
        let said = bench.session.line(line);
        assert!(!bench.session.runs(), "{line} waits");
        assert!(
            !said.text.contains("VLAN0077") && !said.text.contains("vlan 77"),
            "{line} shows what is not there"
        );
    }
    assert!(bench.session.help("show ").contains("vlan"));
    assert_eq!(bench.session.complete("show vl").unwrap(), "show vlan ");
    bench.say("configure terminal");
    bench.say("exit");
    assert_eq!(slow.end(), "");
    assert!(bench.say("show vlan").contains("77   VLAN0077"));
}

#[test]
fn who_changes_something_waits_says_so_and_may_give_up() {
    let mut bench = Bench::new();
    bench.session = Session::new(bench.switch.clone(), Door::cli()).named("bo");
    bench.say("configure terminal");
    let slow = slow(&bench, "vlan 77");
    assert_eq!(bench.say("vlan 78"), "");
    assert!(bench.session.runs());
    let told = Instant::now();
    let said = loop {
        let said = bench.session.step(Duration::from_millis(10)).text;
        if !said.is_empty() || told.elapsed() > LONG {
            break said;
        }
    };
    assert_eq!(said, "Waiting for al: vlan 77 (^C ends this)\n");
    let ended = bench.session.stop();
    assert_eq!(
        ended.text,
        "% It was not its turn yet: nothing is changed\n"
    );
    assert!(ended.refused && !bench.session.runs());
    // a write is of a configuration that is whole
    bench.say("end");
    assert_eq!(bench.say("write memory"), "");
    assert!(bench.session.runs());
    assert!(bench.files.0.lock().unwrap().is_empty());
    assert_eq!(slow.end(), "");
    let said = bench.session.step(LONG).text;
    assert_eq!(said, "Building configuration...\n[OK]\n");
    let kept = bench.files.0.lock().unwrap()["startup-config"].clone();
    assert!(kept.contains("vlan 77\n") && !kept.contains("vlan 78"));
}

#[test]
fn what_waits_is_of_the_configuration_that_it_finds_then() {
    let mut bench = Bench::new();
    bench.set(&["vlan 5"]);
    bench.say("configure terminal");
    bench.say("vlan 5");
    let slow = slow(&bench, "no vlan 5");
    assert_eq!(bench.say("name five"), "");
    assert_eq!(slow.end(), "");
    let said = bench.session.step(LONG);
    assert!(said.refused, "{}", said.text);
    assert!(!bench.config().vlans.contains_key(&5));
}

#[test]
fn a_secret_is_hashed_before_it_is_anybodys_turn() {
    let mut bench = Bench::new();
    bench.say("configure terminal");
    let slow = slow(&bench, "vlan 77");
    // what can't be hashed is refused at once, whoever has the turn
    let said = bench
        .session
        .line(&format!("enable secret {}", "x".repeat(200)));
    assert!(
        said.refused && !bench.session.runs(),
        "it waits: {}",
        said.text
    );
    assert!(said.text.contains("% A secret has"), "{}", said.text);
    assert_eq!(bench.say("username al privilege 3 secret hidden one"), "");
    let waits = bench.session.runs();
    assert!(waits);
    // what is kept of it is of the form that is kept, so nothing is left to hash
    assert_eq!(slow.end(), "");
    let said = bench.session.step(LONG);
    assert_eq!((said.text.as_str(), said.refused), ("", false));
    let kept = bench.config().access.users["al"].clone();
    assert_eq!(kept.level, Some(3));
    assert!(kept.secret.unwrap().0.starts_with("9 $argon2id$"));
}

#[test]
fn a_session_that_fails_leaves_the_turn_to_others() {
    let bench = Bench::new();
    let slow = slow(&bench, "vlan 77");
    // its gate is gone: it panics in the middle of its turn
    drop(slow.open);
    assert!(slow.done.join().is_err());
    let mut other = Session::new(bench.switch.clone(), Door::cli());
    other.line("configure terminal");
    assert_eq!(other.line("vlan 78").text, "");
    assert!(!other.runs());
    let ids: Vec<u16> = bench.config().vlans.into_keys().collect();
    assert_eq!(ids, [78]);
}

#[test]
fn a_script_has_its_answer_when_it_has_waited_and_no_word_of_that() {
    let bench = Bench::new();
    let slow = slow(&bench, "vlan 77");
    let (mut door, daemon) = UnixStream::pair().unwrap();
    let switch = bench.switch.clone();
    let session = std::thread::spawn(move || wire::serve(daemon, switch, &Peer::root("test")));
    write!(door, "{}configure terminal\nvlan 78\n", Hello::Lines.line()).unwrap();
    let mut from = BufReader::new(door.try_clone().unwrap());
    assert!(!Answer::read(&mut from).unwrap().failed);
    // longer than somebody at a terminal waits for a word; what is right does not depend on it
    std::thread::sleep(Duration::from_millis(1300));
    assert_eq!(slow.end(), "");
    let answer = Answer::read(&mut from).unwrap();
    assert_eq!((answer.text.as_str(), answer.failed), ("", false));
    drop((door, from));
    session.join().unwrap();
    let ids: Vec<u16> = bench.config().vlans.into_keys().collect();
    assert_eq!(ids, [77, 78]);
}

/// The first of many lines waits for its turn, the others behind it.
#[test]
fn what_is_pasted_meanwhile_is_there_to_its_end() {
    let bench = Bench::new();
    let slow = slow(&bench, "vlan 4000");
    let (mut door, daemon) = UnixStream::pair().unwrap();
    let switch = bench.switch.clone();
    let session = std::thread::spawn(move || wire::serve(daemon, switch, &Peer::root("test")));
    let hello = Hello::Terminal {
        width: 80,
        height: 24,
    };
    let lines: String = (2..302).map(|n| format!("vlan {n}\r")).collect();
    let hello = hello.line();
    write!(door, "{hello}configure terminal\r{lines}end\rexit\r").unwrap();
    // so that it is typed ahead; what is right does not depend on it
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(slow.end(), "");
    let mut shown = Vec::new();
    door.read_to_end(&mut shown).unwrap();
    session.join().unwrap();
    assert_eq!(bench.config().vlans.len(), 301);
}

#[test]
fn who_goes_away_while_it_waits_changes_nothing() {
    let bench = Bench::new();
    let slow = slow(&bench, "vlan 77");
    let (mut door, daemon) = UnixStream::pair().unwrap();
    let switch = bench.switch.clone();
    let session = std::thread::spawn(move || wire::serve(daemon, switch, &Peer::root("test")));
    write!(door, "{}configure terminal\nvlan 78\n", Hello::Lines.line()).unwrap();
    let mut from = BufReader::new(door.try_clone().unwrap());
    assert!(!Answer::read(&mut from).unwrap().failed);
    drop((door, from));
    // it ends by itself, before its turn has come
    session.join().unwrap();
    assert_eq!(slow.end(), "");
    let ids: Vec<u16> = bench.config().vlans.into_keys().collect();
    assert_eq!(ids, [77]);
}
