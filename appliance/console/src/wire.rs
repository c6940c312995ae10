// SPDX-License-Identifier: Apache-2.0
//! What a door and the daemon say to each other on a stream before a session's own bytes, and in a session of lines.
//!
//! ```text
//!   swcli ── tandem-session 1 terminal 80 24\n ──► then what is typed, and what is shown, byte by byte
//!         ◄── a last octet 0: the session is over. Without it the daemon has gone, or has no room for a session
//!         ── … console FROM\n, … vty FROM\n ─────► asks for less than it may: the line at the box, or to be asked who it is;
//!         ── … self FROM\n ───────────────────────► asks for what it may, and says from where it is
//!         ── tandem-session 1 lines\n ───────────► then a command a line; each is answered:
//!         ◄── LENGTH ok|failed open|closed|asks\n, and so many octets of text; after `asks` the next line is an answer
//!   PAM   ── tandem-session 1 check\nNAME\nSECRET\n ► yes\n or no\n; of root alone
//! ```

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::load::LINE_MOST;
use crate::places::Kind;
use crate::session::{Came, Session, check};
use crate::shell::{Shell, Terminal};
use crate::{Output, Switch};

/// Octets of the first line, its end included.
const HELLO_MOST: u64 = 128;
/// A door says its first line at once, or is closed.
const HELLO_WITHIN: Duration = Duration::from_secs(30);
/// Octets that one command may answer.
const ANSWER_MOST: usize = 64 << 20;
/// Who does not take what is shown to it for so long is gone.
const WRITE_WITHIN: Duration = Duration::from_secs(60);
/// For so long a command that goes on may take, before it is looked whether anybody waits for it.
const STEP: Duration = Duration::from_millis(50);
const WORD: &str = "tandem-session";

/// The last octet of a session at a terminal that has come to its end: no text has it.
pub const END: u8 = 0;

/// How a door will speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hello {
    /// Somebody types, at a terminal of so many characters a line and lines.
    Terminal {
        /// Characters of a line, 0: not known.
        width: u16,
        /// Lines, 0: not known.
        height: u16,
    },
    /// A command a line.
    Lines,
}

impl Hello {
    /// As it is said, with its end.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Hello::Terminal { width, height } => format!("{WORD} 1 terminal {width} {height}\n"),
            Hello::Lines => format!("{WORD} 1 lines\n"),
        }
    }

    /// What a door said; `None`: something else.
    #[must_use]
    pub fn read(line: &str) -> Option<Hello> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            [WORD, "1", "lines"] => Some(Hello::Lines),
            [WORD, "1", "terminal", width, height] => Some(Hello::Terminal {
                width: width.parse().ok()?,
                height: height.parse().ok()?,
            }),
            _ => None,
        }
    }
}

/// Who is at the other end of a stream, as the kernel says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Did it come by the socket that is root's alone?
    pub root: bool,
    /// What its user is called.
    pub user: Option<String>,
    /// What the log calls it.
    pub who: String,
}

impl Peer {
    /// Who came by the socket that is root's.
    #[must_use]
    pub fn root(who: &str) -> Peer {
        Peer {
            root: true,
            user: None,
            who: who.into(),
        }
    }

    /// What the kernel says decides what a session may be. What the door says can only make it less.
    fn came(&self, asked: Option<Kind>, from: &str) -> Came {
        let (kind, user) = match (self.root, asked) {
            (true, None | Some(Kind::Cli)) => (Kind::Cli, Some("root".into())),
            (true, Some(kind)) => (kind, None),
            (false, None) => (Kind::Vty, self.user.clone()),
            (false, Some(_)) => (Kind::Vty, None),
        };
        Came {
            kind,
            user,
            from: from.into(),
            who: self.who.clone(),
        }
    }
}

/// What a door may say behind its first line's own words: `vty 10.0.0.5`. Without a kind: what it may be.
#[must_use]
pub fn asking(hello: &Hello, kind: Option<Kind>, from: &str) -> String {
    let word = match kind {
        Some(Kind::Console) => "console",
        Some(Kind::Vty) => "vty",
        Some(Kind::Cli) => "cli",
        None => "self",
    };
    format!("{} {word} {}\n", hello.line().trim_end(), shown(from))
}

/// What comes from elsewhere, as a word that may be shown.
fn shown(from: &str) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || ".:/_-[]%".contains(*c);
    from.chars().filter(plain).take(45).collect()
}

/// What a door has asked for, and from where it says it is.
fn asked(line: &str) -> (String, Option<Kind>, String) {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let is = |w: &&str| ["console", "vty", "cli", "self"].contains(w);
    let Some(at) = words.iter().position(is) else {
        return (line.into(), None, String::new());
    };
    let kind = match words.get(at) {
        Some(&"console") => Some(Kind::Console),
        Some(&"self") => None,
        Some(&"cli") => Some(Kind::Cli),
        _ => Some(Kind::Vty),
    };
    let from = words.get(at + 1).copied().unwrap_or_default();
    let before = words.get(..at).unwrap_or_default().join(" ");
    (before, kind, shown(from))
}

/// Where who is not root comes in: beside the instance's own folder, which is root's alone.
#[must_use]
pub fn login_socket(dir: &Path) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(".login");
    name.into()
}

/// What a command of a session of lines came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What it says.
    pub text: String,
    /// Was it refused.
    pub failed: bool,
    /// Is the session over.
    pub closed: bool,
    /// Does it wait for an answer, with nothing done yet? Its text ends with the question.
    pub asks: bool,
}

impl Answer {
    /// To a line that `session` has had.
    fn of(output: Output, session: &Session) -> Answer {
        let mut answer = Answer {
            text: output.text,
            failed: output.refused,
            closed: output.closed,
            asks: session.asks(),
        };
        if answer.asks {
            answer.text.push_str(&session.prompt());
            answer.text.push('\n');
        }
        answer
    }

    fn write(&self, to: &mut impl io::Write) -> io::Result<()> {
        let how = if self.failed { "failed" } else { "ok" };
        let goes_on = match (self.closed, self.asks) {
            (true, _) => "closed",
            (_, true) => "asks",
            _ => "open",
        };
        write!(to, "{} {how} {goes_on}\n{}", self.text.len(), self.text)?;
        to.flush()
    }

    /// Waits for the next one.
    ///
    /// # Errors
    /// The daemon is gone, or what came is no answer.
    pub fn read(from: &mut impl io::BufRead) -> io::Result<Answer> {
        let odd = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let mut head = String::new();
        from.take(HELLO_MOST).read_line(&mut head)?;
        let words: Vec<&str> = head.split_ascii_whitespace().collect();
        let [length, how, goes_on] = words.as_slice() else {
            return Err(match head.is_empty() {
                true => io::ErrorKind::UnexpectedEof.into(),
                false => odd(&format!("what came is no answer: {}", head.trim_end())),
            });
        };
        let length: usize = length
            .parse()
            .map_err(|_| odd("an answer without its length"))?;
        if length > ANSWER_MOST {
            return Err(odd("an answer that is too long"));
        }
        let mut text = vec![0; length];
        from.read_exact(&mut text)?;
        Ok(Answer {
            text: String::from_utf8(text).map_err(|_| odd("an answer that is no text"))?,
            failed: *how == "failed",
            closed: *goes_on == "closed",
            asks: *goes_on == "asks",
        })
    }
}

/// One session, from its first line to its end, of who is at the other end of the stream.
pub fn serve(stream: UnixStream, switch: Arc<Mutex<Switch>>, peer: &Peer) {
    // a door that goes away is no matter of the daemon's
    let _ = session(stream, switch, peer);
}

/// A line of who asks for another: its end is no part of it.
fn told(from: &mut impl io::BufRead) -> io::Result<String> {
    let mut line = String::new();
    from.take(LINE_MOST as u64).read_line(&mut line)?;
    match line.strip_suffix('\n') {
        Some(line) => Ok(line.trim_end_matches('\r').into()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn session(stream: UnixStream, switch: Arc<Mutex<Switch>>, peer: &Peer) -> io::Result<()> {
    stream.set_read_timeout(Some(HELLO_WITHIN))?;
    let mut to = stream.try_clone()?;
    let mut from = BufReader::new(stream);
    let mut first = String::new();
    (&mut from).take(HELLO_MOST).read_line(&mut first)?;
    if peer.root && first.trim_end() == format!("{WORD} 1 check") {
        let (name, secret) = (told(&mut from)?, told(&mut from)?);
        let right = check(&switch, &peer.who, &name, &secret);
        return writeln!(to, "{}", if right { "yes" } else { "no" });
    }
    let (words, kind, place) = asked(&first);
    let Some(hello) = Hello::read(&words) else {
        return writeln!(to, "% This is a session's door: swcli speaks to it");
    };
    let came = peer.came(kind, &place);
    let kind = came.kind;
    let mut session = match Session::enter(switch, came) {
        Ok(session) => session,
        Err(why) => {
            write!(to, "{why}\r\n")?;
            return to.write_all(&[END]);
        }
    };
    if kind != Kind::Cli {
        // who does not read does not keep its place for ever
        to.set_write_timeout(Some(WRITE_WITHIN))?;
    }
    match hello {
        Hello::Terminal { width, height } => {
            from.get_ref().set_read_timeout(None)?;
            session.size(width, height);
            let mut end = to.try_clone()?;
            Shell::new(session, Wire { from, to, width }).run()?;
            end.write_all(&[END])
        }
        Hello::Lines if !session.is_in() => writeln!(to, "% Log in at a terminal first"),
        Hello::Lines => loop {
            let idle = session.patience().map(|(most, _)| most);
            from.get_ref().set_read_timeout(idle)?;
            let mut line = Vec::new();
            let most = LINE_MOST as u64 + 2;
            (&mut from).take(most).read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                if (line.len() as u64) < most {
                    // the door is gone: what it had not said to its end is nothing that it asked for
                    return Ok(());
                }
                // it is refused, and what is left of it is no line of its own
                from.skip_until(b'\n')?;
            }
            let text = String::from_utf8_lossy(&line);
            let typed = text.trim_end_matches(['\r', '\n']);
            let (prompt, hidden) = (session.prompt(), session.hides());
            let mut output = session.line(typed);
            while session.runs() {
                let step = session.step(STEP);
                // whom it waits for is nothing for a script, which hears of it when it has waited
                if !session.waits() {
                    output.add(step);
                }
                // nobody is there to hear of it
                if output.text.len() > ANSWER_MOST || is_gone(&mut from)? {
                    output.add(session.stop());
                }
            }
            let mut answer = Answer::of(output, &session);
            if answer.failed && !hidden {
                // a caret stands under the line as it would be on a screen
                answer.text.insert_str(0, &format!("{prompt}{typed}\n"));
            }
            answer.write(&mut to)?;
            if answer.closed {
                return Ok(());
            }
        },
    }
}

/// Is there something to read, or the other end gone? Not waited for.
fn has(from: &mut BufReader<UnixStream>) -> io::Result<bool> {
    from.get_ref().set_nonblocking(true)?;
    let has = match from.fill_buf() {
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(e) => Err(e),
        Ok(_) => Ok(true),
    };
    from.get_ref().set_nonblocking(false)?;
    has
}

fn is_gone(from: &mut BufReader<UnixStream>) -> io::Result<bool> {
    Ok(has(from)? && from.fill_buf()?.is_empty())
}

/// A door's stream as a terminal.
struct Wire {
    from: BufReader<UnixStream>,
    to: UnixStream,
    width: u16,
}

impl Terminal for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.from.read(into)
    }

    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.to.write_all(data)
    }

    fn has(&mut self) -> io::Result<bool> {
        has(&mut self.from)
    }

    fn width(&self) -> Option<u16> {
        (self.width != 0).then_some(self.width)
    }

    fn wait_for(&mut self, most: Option<Duration>) -> io::Result<()> {
        // no time at all would be for ever
        let most = most.map(|m| m.max(Duration::from_millis(1)));
        self.from.get_ref().set_read_timeout(most)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::{Answer, END, Hello, LINE_MOST, Peer};
    use crate::tests::Bench;
    use std::sync::Arc;

    /// What a session of lines answers to these, up to its end.
    fn answers(bench: &Bench, lines: &str) -> Vec<Answer> {
        let (mut door, daemon) = UnixStream::pair().unwrap();
        let switch = bench.switch.clone();
        let session = std::thread::spawn(move || super::serve(daemon, switch, &Peer::root("test")));
        write!(door, "{}{lines}", Hello::Lines.line()).unwrap();
        door.shutdown(std::net::Shutdown::Write).unwrap();
        let mut from = BufReader::new(door);
        let mut all = Vec::new();
        while let Ok(answer) = Answer::read(&mut from) {
            all.push(answer);
        }
        session.join().unwrap();
        all
    }

    #[test]
    fn a_terminal_is_told_that_the_session_is_over() {
        for typed in ["show privilege\rexit\r", "show privilege\r"] {
            let (mut door, daemon) = UnixStream::pair().unwrap();
            let hello = Hello::Terminal {
                width: 80,
                height: 24,
            };
            write!(door, "{}{typed}", hello.line()).unwrap();
            door.shutdown(std::net::Shutdown::Write).unwrap();
            super::serve(daemon, Bench::new().switch, &Peer::root("test"));
            let mut shown = Vec::new();
            door.read_to_end(&mut shown).unwrap();
            assert_eq!(shown.iter().filter(|b| **b == END).count(), 1);
            assert_eq!(shown.last(), Some(&END));
        }
    }

    #[test]
    fn what_is_left_of_a_long_line_is_no_command() {
        let bench = Bench::new();
        // wherever the octets that are read at once end
        for long in 1000..1040 {
            let line = format!("description {}hostname tail", "x".repeat(long));
            let text = format!("configure terminal\n{line}\nhostname after\n");
            let got = answers(&bench, &text);
            assert_eq!(got.len(), 3, "{long}: an answer a line");
            assert!(got[1].failed && !got[2].failed, "{long}");
            assert_eq!(bench.config().hostname.as_deref(), Some("after"));
        }
    }

    #[test]
    fn a_question_is_said_to_be_one() {
        let bench = Bench::new();
        let got = answers(
            &bench,
            "write erase\nn\ncopy running-config startup-config\n",
        );
        let asks: Vec<bool> = got.iter().map(|a| a.asks).collect();
        assert_eq!(asks, [true, false, true]);
        assert_eq!(got[2].text, "Destination filename [startup-config]? \n");
        assert!(bench.files.0.lock().unwrap().is_empty());
        answers(&bench, "copy running-config startup-config\n\n");
        assert!(!bench.files.0.lock().unwrap().is_empty());
    }

    #[test]
    fn first_lines_there_and_back() {
        for hello in [
            Hello::Lines,
            Hello::Terminal {
                width: 80,
                height: 24,
            },
        ] {
            assert_eq!(Hello::read(&hello.line()), Some(hello));
        }
        for odd in [
            "",
            "GET / HTTP/1.1",
            "tandem-session 2 lines",
            "tandem-session 1 terminal 80",
            "tandem-session 1 terminal x 1",
        ] {
            assert_eq!(Hello::read(odd), None, "{odd}");
        }
    }

    /// A session of lines that is told this, and then hears no more: what it answers.
    fn told(bench: &Bench, lines: &str) -> Vec<Answer> {
        let (here, there) = UnixStream::pair().unwrap();
        let mut to = here.try_clone().unwrap();
        let text = format!("{}{lines}", Hello::Lines.line());
        let says = std::thread::spawn(move || {
            to.write_all(text.as_bytes()).unwrap();
            to.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let switch = Arc::clone(&bench.switch);
        let serves = std::thread::spawn(move || super::serve(there, switch, &Peer::root("test")));
        let mut from = BufReader::new(here);
        let all = std::iter::from_fn(|| Answer::read(&mut from).ok()).collect();
        says.join().unwrap();
        serves.join().unwrap();
        all
    }

    #[test]
    fn the_rest_of_a_line_that_is_too_long_is_no_command() {
        let bench = Bench::new();
        let long = "x".repeat(LINE_MOST + 2);
        for rest in ["", "hostname rest", &"y".repeat(99_999)] {
            let said = told(
                &bench,
                &format!("configure terminal\n{long}{rest}\nhostname after\n"),
            );
            let failed: Vec<bool> = said.iter().map(|a| a.failed).collect();
            assert_eq!(failed, [false, true, false], "{said:?}");
            assert_eq!(bench.config().hostname.as_deref(), Some("after"));
        }
    }

    #[test]
    fn half_a_line_of_a_door_that_is_gone_is_no_command() {
        let bench = Bench::new();
        let said = told(&bench, "configure terminal\nvlan 100\nno vlan 10");
        assert_eq!(said.len(), 2);
        told(&bench, "configure terminal\nno vlan 100\nvlan 10");
        assert!(bench.config().vlans.is_empty());
    }

    #[test]
    fn answers_there_and_back() {
        let answers = [
            Answer {
                text: String::new(),
                failed: false,
                closed: false,
                asks: false,
            },
            Answer {
                text: "sure?\n".into(),
                failed: false,
                closed: false,
                asks: true,
            },
            Answer {
                text: "ä\n% no\n".into(),
                failed: true,
                closed: true,
                asks: false,
            },
        ];
        let mut bytes = Vec::new();
        for answer in &answers {
            answer.write(&mut bytes).unwrap();
        }
        let mut from = bytes.as_slice();
        for answer in answers {
            assert_eq!(Answer::read(&mut from).unwrap(), answer);
        }
        assert!(Answer::read(&mut from).is_err(), "it is gone");
        assert!(
            Answer::read(&mut &b"99999999999 ok open\n"[..]).is_err(),
            "too long"
        );
        assert!(Answer::read(&mut &b"hello\n"[..]).is_err());
        assert!(Answer::read(&mut &b"4 ok open\nab"[..]).is_err(), "cut off");
    }
}
