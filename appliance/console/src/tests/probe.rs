// SPDX-License-Identifier: Apache-2.0
//! `ping` and `traceroute`, whose questions a fake answers.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tandem_swconfig::probe::{Heard, Prober, Question};

use super::Bench;
use crate::lock;
use crate::wire::{Hello, Peer, serve};

const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// What is to come back, one after the other; nothing more: nothing.
#[derive(Default)]
pub(crate) struct Echoes {
    pub back: VecDeque<Option<Heard>>,
    pub asked: Vec<(Option<Ipv4Addr>, Question)>,
    /// Nothing can be sent.
    pub no_way: bool,
}

pub(crate) struct Echo(Arc<Mutex<Echoes>>, Option<Ipv4Addr>);

impl Echo {
    pub fn new(echoes: Arc<Mutex<Echoes>>, source: Option<Ipv4Addr>) -> Echo {
        Echo(echoes, source)
    }
}

impl Prober for Echo {
    fn ask(&mut self, question: &Question) -> Result<(), String> {
        let mut echoes = self.0.lock().unwrap();
        echoes.asked.push((self.1, *question));
        match echoes.no_way {
            true => Err("no way".into()),
            false => Ok(()),
        }
    }

    fn hear(&mut self, within: Duration) -> Option<Heard> {
        let back = self.0.lock().unwrap().back.pop_front();
        if back.flatten().is_none() {
            std::thread::sleep(within.min(Duration::from_millis(5)));
        }
        back.flatten()
    }
}

/// All that a line says until it is over.
fn whole(bench: &mut Bench, line: &str) -> String {
    let mut text = bench.say(line);
    while bench.session.runs() {
        text.push_str(&bench.session.step(Duration::from_millis(20)).text);
    }
    // times are those of this machine
    let times = regex::bytes::Regex::new(r"= \d+/\d+/\d+ ms|\d+ msec").unwrap();
    String::from_utf8(
        times
            .replace_all(text.as_bytes(), &b"TIME"[..])
            .into_owned(),
    )
    .unwrap()
}

fn bench(back: &[Option<Heard>]) -> Bench {
    let bench = Bench::new();
    let echoes = Arc::clone(&bench.fake.lock().unwrap().echoes);
    echoes.lock().unwrap().back = back.iter().copied().collect();
    bench
}

#[test]
fn as_ios_says_it() {
    let answer = Some(Heard::Answer(HOST));
    let mut all = bench(&[
        answer,
        answer,
        Some(Heard::Unreachable(HOST)),
        answer,
        answer,
    ]);
    assert_eq!(
        whole(&mut all, "ping 10.0.0.2"),
        "Type escape sequence to abort.\n\
         Sending 5, 100-byte ICMP Echos to 10.0.0.2, timeout is 2 seconds:\n\
         !!U!!\nSuccess rate is 80 percent (4/5), round-trip min/avg/max TIME\n"
    );
    let mut none = bench(&[]);
    assert_eq!(
        whole(&mut none, "ping 10.0.0.2 timeout 0 size 36 repeat 72"),
        format!(
            "Type escape sequence to abort.\n\
             Sending 72, 36-byte ICMP Echos to 10.0.0.2, timeout is 0 seconds:\n\
             {}\n..\nSuccess rate is 0 percent (0/72)\n",
            ".".repeat(70)
        )
    );
    let mut no_way = bench(&[]);
    no_way.fake.lock().unwrap().echoes.lock().unwrap().no_way = true;
    assert!(
        whole(&mut no_way, "ping 10.0.0.2").contains("\n.....\nSuccess rate is 0 percent (0/5)\n")
    );
}

#[test]
fn from_an_address_or_an_interface() {
    let mut bench = bench(&[Some(Heard::Answer(HOST))]);
    bench.set(&["interface vlan 7", "ip address 10.7.0.1 255.255.255.0"]);
    let text = whole(&mut bench, "ping 10.0.0.2 source vlan 7 repeat 1");
    assert!(
        text.contains("\nPacket sent with a source address of 10.7.0.1 \n!\n"),
        "{text}"
    );
    whole(
        &mut bench,
        "ping 10.0.0.2 repeat 1 timeout 0 source 10.7.0.1 size 1500",
    );
    let refused = bench.say("ping 10.0.0.2 source vlan 8");
    assert!(
        refused.starts_with("% Invalid source interface"),
        "{refused}"
    );
    bench.set(&["interface vlan 7", "shutdown"]);
    assert!(
        bench
            .say("ping 10.0.0.2 source vlan 7")
            .starts_with("% Invalid source interface")
    );
    let asked = bench
        .fake
        .lock()
        .unwrap()
        .echoes
        .lock()
        .unwrap()
        .asked
        .clone();
    let own = Some(Ipv4Addr::new(10, 7, 0, 1));
    let question = |size| Question {
        to: HOST,
        size,
        ttl: 255,
    };
    assert_eq!(asked, [(own, question(100)), (own, question(1500))]);
    // each once
    assert!(
        bench
            .say("ping 10.0.0.2 repeat 1 repeat 2")
            .contains("marker")
    );
}

#[test]
fn the_routers_on_the_way() {
    let router = Ipv4Addr::new(10, 0, 0, 1);
    let expired = Some(Heard::Expired(router));
    let answer = Some(Heard::Answer(HOST));
    let mut bench = bench(&[expired, expired, answer, answer]);
    assert_eq!(
        whole(&mut bench, "traceroute 10.0.0.2 probe 2"),
        "Type escape sequence to abort.\nTracing the route to 10.0.0.2\n  \
         1 10.0.0.1 TIME TIME \n  2 10.0.0.2 TIME TIME \n"
    );
    let asked = bench
        .fake
        .lock()
        .unwrap()
        .echoes
        .lock()
        .unwrap()
        .asked
        .clone();
    assert_eq!(
        asked.iter().map(|a| a.1.ttl).collect::<Vec<_>>(),
        [1, 1, 2, 2]
    );
}

/// Another session goes on meanwhile, `^C` is heard, and what was typed ahead comes after it.
#[test]
fn it_is_ended_by_a_key_and_holds_nobody_up() {
    for (key, goes_on) in [(&b"\x03"[..], true), (b"\x1e", true), (b"", false)] {
        let bench = Bench::new();
        let (mut door, daemon) = UnixStream::pair().unwrap();
        door.set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let switch = Arc::clone(&bench.switch);
        let serves = std::thread::spawn(move || serve(daemon, switch, &Peer::root("test")));
        let hello = Hello::Terminal {
            width: 80,
            height: 24,
        };
        write!(
            door,
            "{}ping 10.0.0.2 repeat 1000000 timeout 3600\r",
            hello.line()
        )
        .unwrap();
        let mut shown = String::new();
        let mut until = |door: &mut UnixStream, end: &str| {
            while !shown.ends_with(end) {
                let mut some = [0; 256];
                let n = door.read(&mut some).unwrap();
                assert_ne!(n, 0, "{shown}");
                shown.push_str(&String::from_utf8_lossy(&some[..n]));
            }
        };
        until(&mut door, "seconds:\r\n");
        assert_eq!(lock(&bench.switch).config.hostname, None);
        door.write_all(key).unwrap();
        if goes_on {
            until(&mut door, "Success rate is 0 percent (0/0)\r\nSwitch#");
            door.write_all(b"exit\r").unwrap();
        } else {
            door.shutdown(std::net::Shutdown::Write).unwrap();
        }
        serves.join().unwrap();
    }
    // a door of lines that goes away
    let bench = Bench::new();
    let (mut door, daemon) = UnixStream::pair().unwrap();
    let switch = Arc::clone(&bench.switch);
    let serves = std::thread::spawn(move || serve(daemon, switch, &Peer::root("test")));
    writeln!(
        door,
        "{}ping 10.0.0.2 repeat 1000000 timeout 3600",
        Hello::Lines.line()
    )
    .unwrap();
    drop(door);
    serves.join().unwrap();
}

#[test]
fn what_is_typed_ahead_comes_after_it() {
    let bench = Bench::new();
    let echoes = Arc::clone(&bench.fake.lock().unwrap().echoes);
    echoes.lock().unwrap().back = (0..5).map(|_| Some(Heard::Answer(HOST))).collect();
    let (mut door, daemon) = UnixStream::pair().unwrap();
    let switch = Arc::clone(&bench.switch);
    let hello = Hello::Terminal {
        width: 80,
        height: 24,
    };
    write!(
        door,
        "{}ping 10.0.0.2\rshow privilege\rexit\r",
        hello.line()
    )
    .unwrap();
    serve(daemon, switch, &Peer::root("test"));
    let mut shown = String::new();
    door.read_to_string(&mut shown).unwrap();
    let (ping, rest) = shown
        .split_once("Success rate is 100 percent (5/5)")
        .unwrap();
    assert!(
        ping.ends_with("!!!!!\r\n") && rest.contains("Current privilege level is 15"),
        "{shown}"
    );
}
