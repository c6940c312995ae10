// SPDX-License-Identifier: Apache-2.0
//! Who comes in, what is kept of secrets, and what nobody may without one.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use tandem_swsecret::Gate;

use super::Bench;
use crate::places::Kind;
use crate::session::{Came, Door, Session, check};
use crate::shell::{Shell, Terminal};
use crate::wire::{self, END, Hello, Peer};
use crate::{load, lock, render};

type Told = Arc<Mutex<Vec<String>>>;

/// Nobody waits for an answer, and no time brings a try back.
fn gate() -> Arc<Gate> {
    Arc::new(Gate::new(Duration::ZERO).once_more_after(Duration::from_secs(86_400)))
}

/// bob, privileged, and al, who is not; `enable` has a secret.
fn bench() -> Bench {
    // of a type that costs little
    let mut bench = Bench::new();
    bench.set(&[
        "username bob privilege 15 secret 5 $1$salthunt$b.VjvQSx2gvMi3S2FkX6R0",
        "username al secret 5 $1$saltswor$Zh4NuMnMiYzVekTyaxRBz.",
        "username keys privilege 7",
        "enable secret 5 $1$saltletm$qQI0qdwedt0NvWTCNv8q60",
        "enable secret level 5 5 $1$saltfive$PvRl7q2ejtqstv6/YHSz01",
    ]);
    lock(&bench.switch).gate = gate();
    bench
}

fn came(bench: &Bench, kind: Kind, user: Option<&str>) -> Session {
    let came = Came {
        kind,
        user: user.map(String::from),
        from: "10.0.0.9".into(),
        who: "test".into(),
    };
    Session::enter(bench.switch.clone(), came).unwrap()
}

fn told(bench: &Bench) -> Told {
    let told = Told::default();
    let log = told.clone();
    lock(&bench.switch).log =
        crate::Log::new(move |who, line| log.lock().unwrap().push(format!("{who}: {line}")));
    told
}

fn running(bench: &Bench) -> String {
    let s = lock(&bench.switch);
    render::config(&s.config, &[])
}

#[test]
fn a_secret_is_kept_as_a_hash_and_is_in_no_log_and_no_history() {
    let mut bench = Bench::new();
    let told = told(&bench);
    bench.session = Session::new(bench.switch.clone(), Door::cli()).named("root");
    bench.set(&[
        "username bob privilege 15 secret 0 hunter2",
        "enable secret hunter2",
    ]);
    bench.say("do show history | include hunter2");
    bench.say("conf t");
    bench.say("usrname bob secret hunter2");
    bench.say("username bob secret 5 hunter2");
    bench.say("end");
    let text = running(&bench);
    assert!(
        text.contains("username bob privilege 15 secret 9 $argon2id$"),
        "{text}"
    );
    assert!(text.contains("enable secret 9 $argon2id$"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    assert!(!format!("{:?}", bench.config()).contains("argon2id"));
    assert!(!bench.say("show history").contains("secret"));
    let told = told.lock().unwrap().join("\n");
    assert!(
        told.contains("username bob privilege 15 secret *****"),
        "{told}"
    );
    assert_eq!(
        told.matches("hunter2").count(),
        1,
        "that of the filter: {told}"
    );
    // nor in what is wrong with a file
    let ports = lock(&bench.switch).ports();
    let (_, bad) = load::read(
        &Default::default(),
        "username bob secrt 0 hunter2\n",
        &ports,
        false,
    );
    assert!(!bad[0].to_string().contains("hunter2"), "{}", bad[0]);
}

#[test]
fn what_others_have_kept_is_taken_and_nothing_else() {
    let mut bench = Bench::new();
    bench.set(&[
        "username a secret 5 $1$28772684$iEwNOgGugqO9.bIz5sk8k/",
        "username b secret 8 $8$TnGX/fE4KGHOVU$pEhnEvxrvaynpi8j4f.EMHr6M.FzU8xnZnBr/tJdFWk",
        "username c secret 9 $9$2MJBozw/9R3UsU$2lFhcKvpghcyw8deP25GOfyZaagyUOGBymkryvOdfo6",
    ]);
    for name in ["a", "b", "c"] {
        assert!(check(&bench.switch, "test", name, "hashcat"), "{name}");
    }
    bench.say("conf t");
    let before = bench.config();
    for wrong in [
        "username a secret 5 hashcat",
        "username a secret 8 $9$2MJBozw/9R3UsU$2lFhcKvpghcyw8deP25GOfyZaagyUOGBymkryvOdfo6",
        "username a/../b secret x",
        "username -a secret x",
    ] {
        assert!(bench.say(wrong).starts_with("% "), "{wrong}");
    }
    assert!(bench.config() == before);
    bench.quiet(&[
        "no username a",
        "no username b secret 8 whatever",
        "no enable secret",
    ]);
    assert_eq!(bench.config().access.users.len(), 1);
}

#[test]
fn users_have_a_bound() {
    let mut bench = Bench::new();
    bench.say("conf t");
    for i in 0..256 {
        bench.quiet(&[&format!("username u{i}")]);
    }
    assert!(bench.say("username more").contains("no room for more"));
    bench.quiet(&["username u7 privilege 3", "no username u8", "username more"]);
}

#[test]
fn lines_there_and_back() {
    let mut bench = Bench::new();
    bench.set(&[
        "line con 0",
        "exec-timeout 5 30",
        "logging synchronous",
        "login local",
        "line vty 0 4",
        "exec-timeout 0",
        "privilege level 7",
        "line vty 5 15",
        "no exec-timeout",
    ]);
    let wanted = "line con 0\n exec-timeout 5 30\n logging synchronous\n login local\n!\n\
                  line vty 0 4\n exec-timeout 0 0\n privilege level 7\n!\n\
                  line vty 5 15\n exec-timeout 0 0\n!\nend\n";
    assert!(running(&bench).ends_with(wanted), "{}", running(&bench));
    bench.set(&["no line vty 0 15", "line console 0", "default exec-timeout"]);
    assert!(!running(&bench).contains("vty"));
    assert!(!running(&bench).contains("exec-timeout"));
    bench.say("conf t");
    assert!(bench.say("line vty 9 3").starts_with("% Bad line"));
    bench.say("line vty 0");
    assert!(bench.say("login").starts_with("% A line has no password"));
}

#[test]
fn a_banner_has_lines_up_to_its_end() {
    let mut bench = Bench::new();
    bench.say("conf t");
    assert_eq!(
        bench.say("banner motd #"),
        "Enter TEXT message.  End with the character '#'.\n"
    );
    assert_eq!(bench.session.prompt(), "");
    assert!(bench.session.asks() && !bench.session.hides());
    bench.quiet(&[
        "  Keep  out!",
        "",
        "no vlan 1",
        "#",
        "banner login ^CHello^C",
    ]);
    let access = bench.config().access;
    assert_eq!(access.motd.as_deref(), Some("  Keep  out!\n\nno vlan 1"));
    assert_eq!(access.before_login.as_deref(), Some("Hello"));
    let text = running(&bench);
    assert!(
        text.contains("banner motd ^C\n  Keep  out!\n\nno vlan 1\n^C\n"),
        "{text}"
    );
    let ports = lock(&bench.switch).ports();
    let (read, bad) = load::read(&Default::default(), &text, &ports, false);
    assert!(bad.is_empty() && read.access == access, "{bad:?}");
    // an end that never comes is no end of the file, and takes no commands away unsaid
    let (_, bad) = load::read(
        &Default::default(),
        "banner motd #\nhostname x\n",
        &ports,
        false,
    );
    assert_eq!(bad.len(), 1, "{bad:?}");
    for wrong in [
        "banner motd #a^Cb#",
        &format!("banner motd #{}#", "x".repeat(900)),
    ] {
        let said = bench.say(wrong);
        assert_eq!(said.starts_with("% "), wrong.len() < 900, "{said}");
    }
    bench.say("banner motd #");
    for _ in 0..10_000 {
        bench.say(&"x".repeat(1000));
    }
    assert!(bench.say("#").contains("at most 4096 octets"));
    bench.quiet(&["no banner motd", "no banner login"]);
    assert!(!running(&bench).contains("banner"));
}

#[test]
fn who_logs_in_has_the_level_of_its_name() {
    let bench = bench();
    for (name, secret, prompt, level) in [
        ("bob", "hunter2", "Switch#", 15),
        ("al", "swordfish", "Switch>", 1),
    ] {
        let mut vty = came(&bench, Kind::Vty, None);
        assert_eq!(vty.prompt(), "Username: ");
        vty.line(name);
        assert_eq!(vty.prompt(), "Password: ");
        assert!(vty.hides());
        assert_eq!(vty.line(secret).text, "");
        assert_eq!(vty.prompt(), prompt);
        assert_eq!(
            vty.line("show privilege").text,
            format!("Current privilege level is {level}\n")
        );
    }
    let told = told(&bench);
    // as sshd has made sure of it: with its level, and without a name that is one here it is asked
    assert_eq!(came(&bench, Kind::Vty, Some("keys")).prompt(), "Switch#");
    assert_eq!(came(&bench, Kind::Vty, Some("root")).prompt(), "Username: ");
    assert_eq!(came(&bench, Kind::Console, None).prompt(), "Switch>");
    assert_eq!(*told.lock().unwrap(), ["keys on vty 0 (test): (is in)"]);
}

/// A name that is not there, one without a secret, and one with another: the same is said. Three times, and it is over.
#[test]
fn a_wrong_name_is_as_a_wrong_secret() {
    let bench = bench();
    let told = told(&bench);
    for name in ["bob", "keys", "nobody-here", "", "bob "] {
        let mut vty = came(&bench, Kind::Vty, None);
        for i in 0..3 {
            vty.line(if name.is_empty() { "x" } else { name });
            assert_eq!(vty.prompt(), "Password: ", "{name}");
            let said = vty.line("nobody's");
            assert_eq!(said.text, "% Login invalid\n\n", "{name}");
            assert_eq!(said.closed, i == 2, "{name}");
        }
        lock(&bench.switch).gate = gate();
    }
    let told = told.lock().unwrap().join("\n");
    assert!(told.contains("(bob was refused)"), "{told}");
    assert!(
        !told.contains("nobody"),
        "what was typed for a name may be a secret: {told}"
    );
}

#[test]
fn too_many_wrong_logins_are_not_even_looked_at() {
    let bench = bench();
    let mut right = 0;
    for _ in 0..5 {
        assert!(!check(&bench.switch, "test", "bob", "wrong"));
    }
    right += usize::from(check(&bench.switch, "test", "bob", "hunter2"));
    assert_eq!(right, 0, "the sixth one is too much");
    assert!(
        check(&bench.switch, "test", "al", "swordfish"),
        "another is none of it"
    );
    let mut vty = came(&bench, Kind::Vty, None);
    vty.line("bob");
    assert!(vty.line("hunter2").text.starts_with("% Too many"));
    // in front of the box it is another matter
    let mut bench = bench;
    bench.set(&["line con 0", "login local"]);
    let mut console = came(&bench, Kind::Console, None);
    console.line("bob");
    console.line("hunter2");
    assert_eq!(console.prompt(), "Switch#");
}

#[test]
fn a_wrong_answer_takes_its_time() {
    let bench = bench();
    let delay = Duration::from_millis(300);
    lock(&bench.switch).gate = Arc::new(Gate::new(delay));
    for name in ["bob", "not-there", "bob"] {
        let begun = std::time::Instant::now();
        assert!(!check(&bench.switch, "test", name, "wrong"));
        assert!(begun.elapsed() >= delay);
    }
}

#[test]
fn enable_asks_three_times() {
    let bench = bench();
    let mut vty = came(&bench, Kind::Vty, Some("al"));
    for wrong in ["", "hunter2", "letmein "] {
        assert_eq!(
            vty.prompt(),
            if wrong.is_empty() {
                "Switch>"
            } else {
                "Password: "
            }
        );
        if wrong.is_empty() {
            vty.line("enable");
        }
        assert!(vty.hides());
        let said = vty.line(wrong).text;
        assert_eq!(
            said,
            if wrong == "letmein " {
                "% Bad secrets\n\n"
            } else {
                ""
            }
        );
    }
    assert_eq!(vty.prompt(), "Switch>");
    vty.line("enable");
    assert_eq!(vty.line("letmein").text, "");
    assert_eq!(
        vty.line("show privilege").text,
        "Current privilege level is 15\n"
    );
    vty.line("disable 7");
    assert_eq!(vty.line("enable 5").text, "", "down is free");
    assert_eq!(
        vty.line("show privilege").text,
        "Current privilege level is 5\n"
    );
    assert_eq!(vty.line("enable 9").text, "% No password set\n");
    assert!(vty.line("disable 6").text.starts_with("% New privilege"));
    vty.line("disable");
    vty.line("enable 5");
    vty.line("five");
    assert_eq!(vty.prompt(), "Switch#");
    assert!(
        vty.line("configure terminal")
            .text
            .contains("Invalid input")
    );
    assert!(!vty.help("").contains("configure") && !vty.help("show ").contains("running"));
    // too often
    vty.line("disable");
    for _ in 0..2 {
        vty.line("enable");
        for _ in 0..3 {
            vty.line("wrong");
        }
    }
    vty.line("enable");
    assert_eq!(vty.line("letmein").text, "% Access denied\n\n");
    assert_eq!(vty.prompt(), "Switch>");
}

/// With a secret the line at the box asks for it as well.
#[test]
fn at_the_box_a_secret_is_asked_for_as_soon_as_there_is_one() {
    let bench = bench();
    let mut console = came(&bench, Kind::Console, None);
    console.line("enable");
    assert_eq!(console.prompt(), "Password: ");
    console.leave();
    assert_eq!(console.line("enable 3").text, "% No password set\n");
    assert_eq!(console.prompt(), "Switch>");
    let mut free = Bench::new();
    free.set(&["line con 0", "login local", "exit", "username al secret x"]);
    let mut console = came(&free, Kind::Console, None);
    console.line("al");
    console.line("x");
    assert_eq!(
        console.line("enable").text,
        "% No password set\n",
        "al has a level"
    );
    free.set(&["no line con 0"]);
    let mut console = came(&free, Kind::Console, None);
    console.line("enable");
    assert_eq!(console.prompt(), "Switch#");
}

#[test]
fn lines_from_elsewhere_are_sixteen_and_come_back() {
    let bench = bench();
    let mut all: Vec<Session> = (0..16)
        .map(|_| came(&bench, Kind::Vty, Some("al")))
        .collect();
    let one = |kind| Came {
        kind,
        user: None,
        from: String::new(),
        who: "test".into(),
    };
    assert!(Session::enter(bench.switch.clone(), one(Kind::Vty)).is_err());
    assert!(Session::enter(bench.switch.clone(), one(Kind::Cli)).is_ok());
    drop(all.remove(3));
    let mut again = came(&bench, Kind::Vty, Some("bob"));
    let users = again.line("show users").text;
    assert!(users.contains("*  4 vty 3     bob "), "{users}");
    assert_eq!(users.lines().count(), 17, "{users}");
    let lines = again.line("show line").text;
    assert!(
        lines.contains("\n*    4    4 VTY") && lines.contains("\nA    5    5 VTY"),
        "{lines}"
    );
}

/// Who has not said who it is takes eight of them at most; who has is none of those any more.
#[test]
fn strangers_leave_lines_for_who_is_known() {
    let bench = bench();
    let stranger = || {
        let came = Came {
            kind: Kind::Vty,
            user: None,
            from: String::new(),
            who: "test".into(),
        };
        Session::enter(bench.switch.clone(), came)
    };
    let mut all: Vec<Session> = (0..8).map(|_| stranger().unwrap()).collect();
    assert!(stranger().is_err());
    let known = came(&bench, Kind::Vty, Some("al"));
    assert!(stranger().is_err());
    all[0].line("al");
    all[0].line("swordfish");
    all.push(stranger().unwrap());
    assert!(stranger().is_err());
    drop((known, all));
    assert!(stranger().is_ok());
}

/// A terminal whose user has typed all of it, and then waits.
struct Waits {
    keys: VecDeque<u8>,
    shown: Vec<u8>,
    waited: Vec<Option<Duration>>,
}

impl Terminal for &mut Waits {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.keys.pop_front() {
            Some(key) => {
                into[0] = key;
                Ok(1)
            }
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.shown.extend(data);
        Ok(())
    }

    fn wait_for(&mut self, most: Option<Duration>) -> io::Result<()> {
        self.waited.push(most);
        Ok(())
    }
}

fn typed(session: Session, keys: &str) -> (String, Vec<Option<Duration>>) {
    let mut terminal = Waits {
        keys: keys.bytes().collect(),
        shown: Vec::new(),
        waited: Vec::new(),
    };
    Shell::new(session, &mut terminal).run().unwrap();
    (String::from_utf8(terminal.shown).unwrap(), terminal.waited)
}

#[test]
fn who_types_nothing_is_told_and_gone() {
    let mut bench = bench();
    bench.set(&[
        "line vty 0 15",
        "exec-timeout 2 5",
        "banner motd #Hello#",
        "banner login #Who?#",
    ]);
    let (shown, waited) = typed(came(&bench, Kind::Vty, Some("al")), "show pri\r");
    assert!(shown.starts_with("Hello\r\nSwitch>"), "{shown:?}");
    assert!(!shown.contains("Who?"));
    assert!(
        shown.ends_with("\r\n% Nothing was typed for 2 min 5 s: the session is closed\r\n"),
        "{shown:?}"
    );
    assert_eq!(waited.last(), Some(&Some(Duration::from_secs(125))));
    // who is not in yet has a minute in all
    let (shown, waited) = typed(came(&bench, Kind::Vty, None), "al\rswo");
    assert!(shown.starts_with(
        "Hello\r\nWho?\r\n\r\nUser Access Verification\r\n\r\nUsername: al\r\nPassword: "
    ));
    assert!(shown.ends_with("\r\n% Login timed out\r\n"), "{shown:?}");
    assert!(
        waited
            .iter()
            .all(|w| w.is_some_and(|w| w <= Duration::from_secs(60)))
    );
    bench.set(&["line vty 0 15", "no exec-timeout"]);
    let never = came(&bench, Kind::Vty, Some("al"));
    assert_eq!(never.patience(), None);
    assert_eq!(came(&bench, Kind::Cli, None).patience(), None);
}

/// One that types without an end: its place is another's after a minute.
#[test]
fn who_never_stops_to_type_is_gone_as_well() {
    let bench = bench();
    let keys = "x\r\u{3}".repeat(10_000);
    let late = |seconds| came(&bench, Kind::Vty, None).came_before(Duration::from_secs(seconds));
    let (shown, waited) = typed(late(60), &keys);
    assert!(shown.ends_with("\r\n% Login timed out\r\n"), "{shown:?}");
    assert!(waited.is_empty(), "what is typed is not even read");
    // who is in may type as long as it likes
    let known = came(&bench, Kind::Vty, Some("al")).came_before(Duration::from_secs(9999));
    assert!(typed(known, "show privilege\r").0.contains("level is 1"));
}

/// Who asks sshd in a thousand ways at once has eight answers at once, and takes none of root's places beyond that.
#[test]
fn so_many_secrets_are_looked_at_at_once() {
    let bench = bench();
    let places = Arc::clone(&lock(&bench.switch).places);
    let mut all: Vec<_> = (0..8).map(|_| places.check().unwrap()).collect();
    assert!(places.check().is_none());
    assert!(!check(&bench.switch, "test", "bob", "hunter2"));
    all.pop();
    for _ in 0..20 {
        assert!(check(&bench.switch, "test", "bob", "hunter2"));
    }
    drop(all);
    let all: Vec<_> = (0..20).map_while(|_| places.check()).collect();
    assert_eq!(all.len(), 8);
}

#[test]
fn who_knocks_outside_does_not_shut_out_who_is_in() {
    let bench = bench();
    let mut al = came(&bench, Kind::Vty, Some("al"));
    for i in 0..100 {
        assert!(!check(&bench.switch, "test", &format!("user{i}"), "x"));
    }
    assert!(
        !check(&bench.switch, "test", "al", "swordfish"),
        "none is left outside"
    );
    al.line("enable");
    al.line("letmein");
    assert_eq!(al.prompt(), "Switch#");
}

/// What was said to `Password:` is in no error: that of a program has it in its log.
#[test]
fn a_refused_secret_is_not_said_back() {
    let bench = bench();
    let (mut door, daemon) = UnixStream::pair().unwrap();
    let lines = "enable\nhunter1\nhunter2\nhunter3\nenable\nhunter4\nconfigure terminal\n";
    write!(door, "{}{lines}", Hello::Lines.line()).unwrap();
    door.shutdown(std::net::Shutdown::Write).unwrap();
    let peer = Peer {
        root: false,
        user: Some("al".into()),
        who: "test".into(),
    };
    wire::serve(daemon, bench.switch.clone(), &peer);
    let mut said = String::new();
    door.read_to_string(&mut said).unwrap();
    assert!(said.contains("% Bad secrets"), "{said}");
    assert!(!said.contains("hunter"), "{said}");
}

#[test]
fn a_secret_is_not_written_nor_how_long_it_is() {
    let bench = bench();
    let keys =
        "al\rsw\u{8}ordfish\u{15}swordfishh\u{7f}\rshow pri\renable\r\u{10}\tletmein\rexit\r";
    let (shown, _) = typed(came(&bench, Kind::Vty, None), keys);
    assert!(
        shown.contains("Username: al\r\nPassword: \r\nSwitch>show pri\r\n"),
        "{shown:?}"
    );
    assert!(
        shown.contains("Switch>enable\r\nPassword: \r\nSwitch#exit\r\n"),
        "{shown:?}"
    );
    // left, and asked anew: who is not in is not in by that
    for key in ["\u{3}", "\u{1a}"] {
        let (shown, _) = typed(
            came(&bench, Kind::Vty, None),
            &format!("al\rswo{key}show vlan\r"),
        );
        assert!(
            shown.contains("Password: \r\nUsername: show vlan\r\nPassword: "),
            "{shown:?}"
        );
    }
}

/// What a door says of itself can make a session less, and never more.
#[test]
fn a_door_asks_for_less_alone() {
    let bench = bench();
    let prompt = |peer: &Peer, hello: &str, typed: &str| {
        let (mut door, daemon) = UnixStream::pair().unwrap();
        write!(door, "{hello}{typed}").unwrap();
        door.shutdown(std::net::Shutdown::Write).unwrap();
        wire::serve(daemon, bench.switch.clone(), peer);
        let mut shown = Vec::new();
        door.read_to_end(&mut shown).unwrap();
        let text: Vec<u8> = shown.into_iter().filter(|b| *b != END).collect();
        String::from_utf8(text).unwrap()
    };
    let terminal = Hello::Terminal {
        width: 80,
        height: 24,
    };
    let other = |user: Option<&str>| Peer {
        root: false,
        user: user.map(String::from),
        who: "test".into(),
    };
    let as_kind = |kind| wire::asking(&terminal, Some(kind), "10.0.0.1 \u{1b}[2J; x");
    let asked = "\r\nUser Access Verification\r\n\r\nUsername: ";
    let root = Peer::root("test");
    assert_eq!(prompt(&root, &terminal.line(), ""), "Switch#");
    assert_eq!(prompt(&root, &as_kind(Kind::Console), ""), "Switch>");
    assert_eq!(prompt(&root, &as_kind(Kind::Vty), ""), asked);
    for user in [None, Some("root"), Some("nobody-here")] {
        assert_eq!(prompt(&other(user), &terminal.line(), ""), asked);
    }
    assert_eq!(prompt(&other(Some("al")), &terminal.line(), ""), "Switch>");
    for kind in [Kind::Console, Kind::Vty, Kind::Cli] {
        assert_eq!(prompt(&other(Some("bob")), &as_kind(kind), ""), asked);
        assert_eq!(prompt(&other(None), &as_kind(kind), ""), asked);
    }
    let own = wire::asking(&terminal, None, "10.0.0.1");
    assert_eq!(prompt(&root, &own, ""), "Switch#");
    assert_eq!(prompt(&other(Some("al")), &own, ""), "Switch>");
    assert_eq!(prompt(&other(None), &own, ""), asked);
    // who asks for others is root
    let asks = "tandem-session 1 check\n";
    assert_eq!(prompt(&root, asks, "bob\nhunter2\n"), "yes\n");
    assert_eq!(prompt(&root, asks, "bob\nhunter\n"), "no\n");
    assert!(
        prompt(&other(Some("bob")), asks, "bob\nhunter2\n")
            .starts_with("% This is a session's door")
    );
    // a command a line has no way to be asked
    let lines = Hello::Lines.line();
    assert!(
        prompt(&other(None), &lines, "show vlan\n").starts_with("% Log in at a terminal first")
    );
    assert!(prompt(&other(Some("al")), &lines, "show privilege\n").contains("level is 1"));
    let place = prompt(
        &root,
        &wire::asking(&Hello::Lines, Some(Kind::Console), "tty S0\u{7}"),
        "show users\n",
    );
    assert!(place.contains("00:00:00   ttyS0"), "{place}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 16))]

    /// Whatever is typed by who has no secret: nothing is changed, nothing privileged is shown.
    #[test]
    fn without_a_secret_nothing(
        keys in vec(prop_oneof![
            "[ -~]{0,12}", Just("\r".into()), Just("en\r".into()), Just("conf t\r".into()), Just("\u{3}".into()),
            Just("\u{1a}".into()), Just("\u{4}".into()), Just("al\r".into()), Just("bob\r".into()), Just("hostname x\r".into()),
            Just("do ".into()), Just("show run\r".into()), Just("\t".into()), Just("?".into()), Just("\u{1b}[A".into()),
            Just("enable 5\r".into()), Just("write erase\r\r".into()), Just("reload\r".into()), Just("!sh\r".into()),
        ], 0..60),
        user in prop_oneof![Just(None), Just(Some("al"))],
    ) {
        let bench = bench();
        let before = bench.config();
        let (shown, _) = typed(came(&bench, Kind::Vty, user), &keys.concat());
        prop_assert!(bench.config() == before);
        prop_assert!(bench.files.0.lock().unwrap().is_empty());
        prop_assert!(!shown.contains("Switch#") && !shown.contains("$1$"), "{}", shown);
        if user.is_none() {
            prop_assert!(!shown.contains("Switch>"), "{}", shown);
        }
    }
}
