// SPDX-License-Identifier: Apache-2.0
//! Keys, and what is written for them.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Bench, port};
use crate::lock;
use crate::session::{Door, Session};
use crate::shell::{Shell, Terminal};

/// A terminal whose user has typed all of it already.
struct Typed {
    keys: VecDeque<Vec<u8>>,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Terminal for Typed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(mut keys) = self.keys.pop_front() else {
            return Ok(0);
        };
        let rest = keys.split_off(keys.len().min(into.len()));
        if !rest.is_empty() {
            self.keys.push_front(rest);
        }
        into[..keys.len()].copy_from_slice(&keys);
        Ok(keys.len())
    }

    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        // what waits to be written is bounded: a page, a line, and what came together
        assert!(data.len() < 64 << 10, "{} octets at once", data.len());
        self.shown.lock().unwrap().extend(data);
        Ok(())
    }
}

/// What a terminal shows that has got these octets: no more than carriage return, backspace and new lines move.
fn screen(data: &[u8]) -> Vec<String> {
    let (mut lines, mut at) = (vec![Vec::new()], 0);
    for byte in data {
        let line = lines.last_mut().unwrap();
        match byte {
            b'\r' => at = 0,
            b'\n' => {
                lines.push(vec![b' '; at]);
            }
            0x08 => {
                assert!(at > 0, "left of the first column");
                at -= 1;
            }
            0x07 => {}
            0x20..0x7f => {
                if at == line.len() {
                    line.push(*byte);
                } else {
                    line[at] = *byte;
                }
                at += 1;
            }
            other => panic!("octet {other:#x} is written"),
        }
    }
    lines
        .into_iter()
        .map(|l| String::from_utf8(l).unwrap().trim_end().to_string())
        .collect()
}

fn type_in(bench: &Bench, door: Door, keys: Vec<Vec<u8>>) -> Vec<u8> {
    let shown = Arc::default();
    let terminal = Typed {
        keys: keys.into(),
        shown: Arc::clone(&shown),
    };
    let session = Session::new(bench.switch.clone(), door);
    Shell::new(session, terminal).run().unwrap();
    shown.lock().unwrap().clone()
}

/// At once, and octet by octet: the same is written.
fn keys(text: &str) -> Vec<String> {
    let at_once = type_in(&Bench::new(), Door::cli(), vec![text.into()]);
    let one_by_one = type_in(
        &Bench::new(),
        Door::cli(),
        text.bytes().map(|b| vec![b]).collect(),
    );
    assert_eq!(
        String::from_utf8_lossy(&at_once),
        String::from_utf8_lossy(&one_by_one)
    );
    screen(&at_once)
}

fn last(text: &str) -> String {
    keys(text).last().unwrap().clone()
}

#[test]
fn what_is_typed_is_written_and_nothing_else() {
    let shown = type_in(
        &Bench::new(),
        Door::cli(),
        vec![b"show privilege\r".to_vec()],
    );
    assert_eq!(
        String::from_utf8(shown).unwrap(),
        "Switch#show privilege\r\nCurrent privilege level is 15\r\nSwitch#"
    );
}

#[test]
fn all_ends_of_lines_are_one() {
    for end in ["\r", "\n", "\r\n", "\r\0"] {
        let shown = keys(&format!("conf t{end}hostname x{end}"));
        assert_eq!(
            shown,
            [
                "Switch#conf t",
                "Enter configuration commands, one per line.  End with CNTL/Z.",
                "Switch(config)#hostname x",
                "x(config)#"
            ],
            "{end:?}"
        );
    }
    assert_eq!(keys("\r\n\r\n"), ["Switch#", "Switch#", "Switch#"]);
}

#[test]
fn editing() {
    assert_eq!(last("shoe\x08w"), "Switch#show");
    assert_eq!(last("shoe\x7f\x7fow"), "Switch#show");
    assert_eq!(last("how\x01s"), "Switch#show");
    assert_eq!(last("sow\x1b[D\x1b[Dh\x05 vlan"), "Switch#show vlan");
    assert_eq!(last("sow\x02\x02h\x06\x06 x"), "Switch#show x");
    assert_eq!(
        last("show vlan brief\x17\x17version"),
        "Switch#show version"
    );
    assert_eq!(last("nonsense\x15show"), "Switch#show");
    assert_eq!(last("show nonsense\x01\x1bf\x0b"), "Switch#show");
    assert_eq!(last("a b c\x1bb\x1bbX"), "Switch#a Xb c");
    assert_eq!(last("xshow\x01\x04\x05y"), "Switch#showy");
    assert_eq!(last("shxow\x1b[D\x1b[D\x1b[D\x1b[3~"), "Switch#show");
    assert_eq!(
        last("b\x1b[Ha\x1b[Fc\x1b[1~0\x1b[4~1\x1bOHz"),
        "Switch#z0abc1"
    );
    assert_eq!(last("ab\x08\x08\x08\x08c"), "Switch#c");
    assert_eq!(last("show\x0c"), "Switch#show");
    assert_eq!(last("what\x16?"), "Switch#what?");
}

#[test]
fn leaving() {
    assert_eq!(keys("nonsense\x03")[..], ["Switch#nonsense^C", "Switch#"]);
    assert_eq!(last("conf t\rint gi1/0/1\r\x03"), "Switch#");
    assert_eq!(
        last("conf t\rhostname z\x1a"),
        "z#",
        "what was typed in front of it is done"
    );
    assert_eq!(keys("conf t\r\x1a")[2..], ["Switch(config)#^Z", "Switch#"]);
    let bench = Bench::new();
    let shown = type_in(
        &bench,
        Door::cli(),
        vec![b"write erase\rn\rexit\rshow vlan\r".to_vec()],
    );
    assert_eq!(
        screen(&shown).last().unwrap(),
        "",
        "after exit nothing is read"
    );
}

#[test]
fn history() {
    assert_eq!(
        last("show privilege\rshow history\r\x10"),
        "Switch#show history"
    );
    assert_eq!(
        last("show privilege\rshow history\r\x10\x1b[A"),
        "Switch#show privilege"
    );
    assert_eq!(
        last("show privilege\rshow history\rdraft\x10\x10\x0e\x1b[B"),
        "Switch#draft"
    );
    assert_eq!(last("\x10\x0e\x1b[A"), "Switch#");
    let many: String = (0..50).map(|i| format!("x{i}\r")).collect();
    let shown = keys(&format!("terminal length 0\r{many}show history\r"));
    let kept = shown.iter().filter(|l| l.starts_with("  x")).count();
    assert_eq!(kept, 19, "twenty lines, of which one is the command itself");
}

#[test]
fn help_shows_the_line_again() {
    let shown = keys("show vlan br?");
    assert_eq!(
        shown,
        ["Switch#show vlan br?", "brief", "", "Switch#show vlan br"]
    );
    let shown = keys("conf t\rint vlan 1\rip address ?");
    assert_eq!(
        shown[4..],
        ["  A.B.C.D  IP address", "", "Switch(config-if)#ip address"]
    );
    assert_eq!(
        last("conf t\rint gi1/0/1\rdescription why\x16?"),
        "Switch(config-if)#description why?"
    );
}

#[test]
fn completion() {
    assert_eq!(last("sh\tru\t"), "Switch#show running-config");
    assert_eq!(last("conf t\rint gi\t1/0/1\r"), "Switch(config-if)#");
    assert_eq!(last("SH\t"), "Switch#show");
    assert_eq!(last("show v\t"), "Switch#show v", "more than one");
    assert_eq!(last("show \t"), "Switch#show");
}

#[test]
fn questions() {
    let shown = keys("copy running-config startup-config\r\rshow startup | include host\r");
    assert_eq!(shown[1], "Destination filename [startup-config]?");
    assert_eq!(shown[2..4], ["Building configuration...", "[OK]"]);
    assert!(shown.contains(&"hostname Switch".to_string()));
    // no help, no history in an answer
    assert_eq!(
        last("erase startup-config\r\x10?"),
        "Erasing the nvram filesystem will remove all configuration files! Continue? [confirm]?"
    );
    assert_eq!(last("erase startup-config\r\x03"), "Switch#");
    // who leaves has not said yes, whatever stands there
    for leave in ["\x1a", "y\x1a", "\x03", "y\x03"] {
        let typed = format!("write memory\rwrite erase\r{leave}show startup-config | count .\r");
        let shown = keys(&typed);
        let kept = "Number of lines which match regexp = ";
        assert!(
            shown
                .iter()
                .any(|l| l.starts_with(kept) && !l.ends_with(" = 1")),
            "{shown:?}"
        );
    }
}

#[test]
fn pages() {
    let text = "terminal length 10\rshow running-config\r";
    let shown = keys(text);
    assert_eq!(shown.last().unwrap(), " --More--");
    assert_eq!(shown.len(), 2 + 9 + 1);
    let shown = keys(&format!("{text} "));
    assert_eq!(shown.len(), 2 + 18 + 1);
    let shown = keys(&format!("{text}\r"));
    assert_eq!(shown.len(), 2 + 10 + 1);
    assert_eq!(last(&format!("{text}q")), "Switch#");
    assert_eq!(last(&format!("{text}\x03")), "Switch#");
    let all = keys(&format!("{text}     show privilege\r"));
    assert!(all.contains(&"end".to_string()) && !all.iter().any(|l| l.contains("More")));
    assert_eq!(all[all.len() - 2], "Current privilege level is 15");
    let all = keys("terminal length 0\rshow running-config\r");
    assert!(all.contains(&"end".to_string()));
    // the end of a line that came as two octets is no key
    assert_eq!(
        keys("terminal length 10\r\nshow running-config\r\n").len(),
        2 + 9 + 1
    );
    // long lines count as the rows that they take
    let shown =
        keys("terminal length 10\rterminal width 20\rshow interfaces trunk\rshow vlan brief\r");
    assert_eq!(shown.last().unwrap(), " --More--");
}

#[test]
fn two_hundred_lines_at_once() {
    let mut text = String::from("conf t\n");
    for n in 2..102 {
        text += &format!("vlan {n}\n name net-{n}\n");
    }
    text += "end\n";
    let bench = Bench::new();
    let shown = type_in(&bench, Door::cli(), vec![text.clone().into()]);
    assert_eq!(lock(&bench.switch).config.vlans.len(), 100);
    assert_eq!(
        lock(&bench.switch).config.vlans[&101].name.as_deref(),
        Some("net-101")
    );
    assert_eq!(screen(&shown).last().unwrap(), "Switch#");
    assert!(!screen(&shown).iter().any(|l| l.contains('%')));
    // at 300 baud nobody waits for more than is typed: prompts and echo
    assert!(
        shown.len() < text.len() * 4,
        "{} octets for {}",
        shown.len(),
        text.len()
    );
}

#[test]
fn a_line_has_an_end() {
    let long = "description ".to_string() + &"x".repeat(5000) + "\r";
    let bench = Bench::new();
    let shown = type_in(
        &bench,
        Door::cli(),
        vec![
            b"conf t\rint gi1/0/1\r".to_vec(),
            long.into_bytes(),
            // what is rubbed out was not typed
            [vec![b'x'; 2000], b"\x15mtu 2000\r".to_vec()].concat(),
        ],
    );
    assert!(shown.len() < 20_000);
    // it is refused: the first part of it is another line
    let set = lock(&bench.switch).config.interface(&port(1));
    assert_eq!((set.description, set.mtu), (None, Some(2000)));
    let refused = screen(&shown);
    let refused = refused
        .iter()
        .filter(|l| **l == "% Line is longer than 1024 octets");
    assert_eq!(refused.count(), 1);
}

#[test]
fn help_has_pages_and_the_line_stays() {
    let keys = |more: &[u8]| [b"show ?".as_slice(), more].concat();
    let shown = type_in(&Bench::new(), Door::cli(), vec![keys(b" vlan id 1\r")]);
    let lines = screen(&shown);
    assert!(lines.len() > 30, "{lines:?}");
    // a page, then the rest of it, then the line goes on
    let at = |text: &str| lines.iter().position(|l| l.contains(text));
    assert!(at("Switch#show vlan id 1").unwrap() > at("  vlan ").unwrap());
    // who has had enough has the line as well
    let shown = type_in(&Bench::new(), Door::cli(), vec![keys(b"qvlan id 1\r")]);
    let lines = screen(&shown);
    assert!(!lines.iter().any(|l| l.starts_with("  vlan ")), "{lines:?}");
    assert!(
        lines.iter().any(|l| l == "Switch#show vlan id 1"),
        "{lines:?}"
    );
}

fn noise() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "show ",
        "vlan ",
        "interface ",
        "gi1/0/1",
        "conf t\r",
        "no ",
        "10",
        "running-config\r",
        "\x1b[",
        "?",
        "\t",
        "| ",
        "\r",
    ];
    let piece = prop_oneof![
        3 => any::<u8>().prop_map(|b| vec![b]),
        2 => (0u8..0x20).prop_map(|b| vec![b]),
        4 => proptest::sample::select(words.to_vec()).prop_map(|w| w.as_bytes().to_vec()),
        1 => vec(0x20u8..0x7f, 0..2000),
    ];
    vec(piece, 0..60).prop_map(|p| p.concat())
}

proptest! {
    /// Whatever comes: nothing but plain text and backspaces is written, no more than is bounded, and after ^C the next
    /// command is answered.
    #[test]
    fn any_octets(noise in noise(), at_once in any::<bool>()) {
        let bench = Bench::new();
        let input = [&noise[..], b"\x03show privilege\r"].concat();
        let input = if at_once { vec![input] } else { input.into_iter().map(|b| vec![b]).collect() };
        let shown = type_in(&bench, Door::cli(), input);
        let plain = |b: &u8| matches!(b, 0x07 | 0x08 | b'\r' | b'\n' | 0x20..0x7f);
        prop_assert!(shown.iter().all(plain));
        let text = String::from_utf8_lossy(&shown);
        // `l` is logout: nothing is behind it, not even a prompt
        prop_assume!(!text.ends_with('\n'));
        let tail = text.rsplit('\n').nth(1).unwrap_or_default();
        prop_assert!(tail.starts_with("Current privilege level is"), "{:?}", text);
    }
}

/// A terminal behind a connection.
struct Connection(std::net::TcpStream);

impl Terminal for Connection {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        io::Read::read(&mut self.0, into)
    }

    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        io::Write::write_all(&mut self.0, data)
    }
}

/// For `tests/clients.py`, which says where in TANDEM_CONSOLE_AT: one session for who connects there. Without it the two
/// ends are both here.
#[test]
fn behind_a_connection() {
    let at = std::env::var("TANDEM_CONSOLE_AT").ok();
    let listener = std::net::TcpListener::bind(at.as_deref().unwrap_or("127.0.0.1:0")).unwrap();
    let bench = Bench::new();
    let switch = bench.switch.clone();
    let own = at.is_none().then(|| {
        let to = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut client = std::net::TcpStream::connect(to).unwrap();
            io::Write::write_all(&mut client, b"show privilege\rexit\r").unwrap();
            // a session that goes on is over by that
            client.shutdown(std::net::Shutdown::Write).unwrap();
            io::read_to_string(&mut client).unwrap()
        })
    });
    let (stream, _) = listener.accept().unwrap();
    let session = Session::new(switch, Door::console());
    Shell::new(session, Connection(stream)).run().unwrap();
    if let Some(own) = own {
        assert!(
            own.join()
                .unwrap()
                .contains("Current privilege level is 1\r\n")
        );
    }
}
