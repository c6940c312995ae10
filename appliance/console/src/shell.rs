// SPDX-License-Identifier: Apache-2.0
//! A session that somebody types into: a line editor and pages, over any stream of bytes.
//!
//! An editor of our own: those that there are want a terminal of this process with its modes, ask it where the cursor is
//! (a serial line, a script does not answer), and paint a line anew at each key. This one writes what is typed, as it is
//! typed, and moves by backspaces alone.
//!
//! ```text
//!   bytes ──► Shell::feed ──► line ── Enter ──► Session::line ──► text ──► pages ──► bytes
//! ```

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use crate::load::LINE_MOST;
use crate::session::Session;

/// Who is at the other end.
pub trait Terminal {
    /// Waits for what is typed; 0 octets: it is gone.
    ///
    /// # Errors
    /// As the system says; the session ends.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Shows this.
    ///
    /// # Errors
    /// As the system says; the session ends.
    fn write(&mut self, data: &[u8]) -> io::Result<()>;

    /// Is there something to read, or is it gone? Waits for nothing.
    ///
    /// # Errors
    /// As the system says; the session ends.
    fn has(&mut self) -> io::Result<bool> {
        Ok(false)
    }

    /// Characters of a line, if it is known.
    fn width(&self) -> Option<u16> {
        None
    }

    /// For how long the next [`Terminal::read`] waits; then it says [`io::ErrorKind::WouldBlock`] or `TimedOut`.
    ///
    /// # Errors
    /// As the system says; the session ends.
    fn wait_for(&mut self, most: Option<Duration>) -> io::Result<()> {
        let _ = most;
        Ok(())
    }
}

const BELL: u8 = 0x07;
const BACK: u8 = 0x08;
/// For so long something that goes on may take, before keys are looked at.
const STEP: Duration = Duration::from_millis(50);
/// Octets that are kept meanwhile.
const AHEAD_MOST: usize = 64 << 10;
/// Octets that are read at once.
const READ_MOST: usize = 512;
const MORE: &str = " --More-- ";

/// Where in a sequence of the terminal's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    No,
    Begun,
    /// `ESC [`, and the first digit behind it.
    Sequence(u8),
}

/// An interactive session.
pub struct Shell<T> {
    session: Session,
    terminal: T,
    editor: Editor,
    /// What is not shown yet, a line each.
    pages: VecDeque<String>,
    out: Vec<u8>,
    closed: bool,
    /// What was typed while something went on, for what comes after it.
    ahead: VecDeque<u8>,
}

/// The line that is typed.
#[derive(Debug)]
struct Editor {
    line: Vec<u8>,
    at: usize,
    /// More was typed than a line has: it is refused, for half of it is another one.
    over: bool,
    escape: Escape,
    after_cr: bool,
    quoted: bool,
    /// How far back in history, and what was typed before that.
    back: usize,
    draft: Vec<u8>,
}

impl Editor {
    fn new() -> Editor {
        Editor {
            line: Vec::new(),
            at: 0,
            over: false,
            escape: Escape::No,
            after_cr: false,
            quoted: false,
            back: 0,
            draft: Vec::new(),
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.line).into_owned()
    }

    fn tail(&self) -> &[u8] {
        self.line.get(self.at..).unwrap_or_default()
    }

    fn insert(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.line.len() >= LINE_MOST {
            self.over = true;
            return out.push(BELL);
        }
        self.line.insert(self.at.min(self.line.len()), byte);
        out.extend(self.tail());
        self.at += 1;
        out.extend(vec![BACK; self.line.len() - self.at]);
    }

    /// Takes out what is from here to the cursor.
    fn cut_to(&mut self, from: usize, out: &mut Vec<u8>) {
        let gone = self.at.saturating_sub(from);
        if gone == 0 {
            return;
        }
        self.line.drain(from..self.at);
        self.at = from;
        out.extend(vec![BACK; gone]);
        self.blank_behind(gone, out);
    }

    /// Takes out the character at the cursor.
    fn cut_here(&mut self, out: &mut Vec<u8>) {
        if self.at < self.line.len() {
            self.line.remove(self.at);
            self.blank_behind(1, out);
        }
    }

    /// Paints what is behind the cursor, and blanks for what is gone there.
    fn blank_behind(&self, gone: usize, out: &mut Vec<u8>) {
        out.extend(self.tail());
        out.extend(vec![b' '; gone]);
        out.extend(vec![BACK; self.tail().len() + gone]);
    }

    fn move_to(&mut self, to: usize, out: &mut Vec<u8>) {
        let to = to.min(self.line.len());
        match to < self.at {
            true => out.extend(vec![BACK; self.at - to]),
            false => out.extend(self.line.get(self.at..to).unwrap_or_default()),
        }
        self.at = to;
    }

    fn cut_tail(&mut self, out: &mut Vec<u8>) {
        let gone = self.tail().len();
        self.line.truncate(self.at);
        self.blank_behind(gone, out);
    }

    /// Another line in its place.
    fn exchange(&mut self, line: &[u8], out: &mut Vec<u8>) {
        self.move_to(0, out);
        let gone = self.line.len().saturating_sub(line.len());
        self.line = line.to_vec();
        self.at = self.line.len();
        out.extend(line);
        out.extend(vec![b' '; gone]);
        out.extend(vec![BACK; gone]);
    }

    /// The begin of the word in front of the cursor.
    fn word_before(&self) -> usize {
        let before = self.line.get(..self.at).unwrap_or_default();
        let end = before.iter().rposition(|b| *b != b' ').map_or(0, |i| i + 1);
        let word = before.get(..end).unwrap_or_default();
        word.iter().rposition(|b| *b == b' ').map_or(0, |i| i + 1)
    }

    /// The end of the word behind the cursor.
    fn word_after(&self) -> usize {
        let skip = self.tail().iter().take_while(|b| **b == b' ').count();
        let word = self
            .tail()
            .iter()
            .skip(skip)
            .take_while(|b| **b != b' ')
            .count();
        self.at + skip + word
    }

    fn clear(&mut self) {
        self.line.clear();
        self.draft.clear();
        (self.at, self.back, self.escape, self.quoted) = (0, 0, Escape::No, false);
        self.over = false;
    }
}

impl<T: Terminal> Shell<T> {
    /// A session at a terminal.
    pub fn new(session: Session, terminal: T) -> Shell<T> {
        Shell {
            session,
            terminal,
            editor: Editor::new(),
            pages: VecDeque::new(),
            out: Vec::new(),
            closed: false,
            ahead: VecDeque::new(),
        }
    }

    /// Until the session is over, or the terminal is gone.
    ///
    /// # Errors
    /// Of the terminal.
    pub fn run(&mut self) -> io::Result<()> {
        let greeting = self.session.greeting();
        self.say(&greeting);
        self.prompt();
        let mut buffer = [0; READ_MOST];
        loop {
            let out = std::mem::take(&mut self.out);
            if !out.is_empty() {
                self.terminal.write(&out)?;
            }
            if self.closed {
                return Ok(());
            }
            let patience = self.session.patience();
            // keys without an end leave nothing to wait for
            if self.session.is_late()
                && let Some((_, why)) = patience
            {
                self.say(&format!("\n{why}\n"));
                let out = std::mem::take(&mut self.out);
                return self.terminal.write(&out);
            }
            self.terminal
                .wait_for(patience.as_ref().map(|(most, _)| *most))?;
            let read = match (self.terminal.read(&mut buffer), patience) {
                (Err(e), _) if e.kind() == io::ErrorKind::Interrupted => continue,
                (Err(e), Some((_, why)))
                    if matches!(
                        e.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) =>
                {
                    self.say(&format!("\n{why}\n"));
                    let out = std::mem::take(&mut self.out);
                    return self.terminal.write(&out);
                }
                (read, _) => read?,
            };
            if read == 0 {
                return Ok(());
            }
            for byte in buffer.get(..read).unwrap_or_default() {
                self.feed(*byte);
                // a line's text goes before the next line is carried out: who waits for it sees it
                if self.out.len() > 4096 || matches!(byte, b'\r' | b'\n') {
                    let out = std::mem::take(&mut self.out);
                    self.terminal.write(&out)?;
                }
                self.follow()?;
                if self.closed || self.session.is_late() {
                    break;
                }
            }
            while let Some(byte) = self.ahead.pop_front() {
                self.feed(byte);
                self.follow()?;
                if self.closed {
                    break;
                }
            }
        }
    }

    /// What a line has begun goes on, and is shown as it comes, until it is over or somebody has had enough.
    fn follow(&mut self) -> io::Result<()> {
        if !self.session.runs() {
            return Ok(());
        }
        while self.session.runs() {
            let out = std::mem::take(&mut self.out);
            self.terminal.write(&out)?;
            let step = self.session.step(STEP);
            self.say(&step.text);
            self.closed |= step.closed;
            // of lines that wait for their turn none is lost: what has no room stays where it comes from
            let room = |s: &Shell<T>| !s.session.waits() || s.ahead.len() + READ_MOST <= AHEAD_MOST;
            while self.session.runs() && room(self) && self.terminal.has()? {
                let mut buffer = [0; READ_MOST];
                let read = self.terminal.read(&mut buffer)?;
                let typed = buffer.get(..read).unwrap_or_default();
                // IOS's own is ^^, which is typed as control and 6
                let enough = typed.iter().rposition(|b| matches!(b, 0x03 | 0x1e));
                if read == 0 || enough.is_some() {
                    let stopped = self.session.stop();
                    self.say(&stopped.text);
                    self.ahead.clear();
                    self.closed = read == 0;
                }
                let after = enough.map_or(0, |at| at + 1);
                let room = AHEAD_MOST.saturating_sub(self.ahead.len());
                self.ahead
                    .extend(typed.get(after..).unwrap_or_default().iter().take(room));
            }
        }
        if !self.closed {
            self.prompt();
        }
        Ok(())
    }

    fn say(&mut self, text: &str) {
        for part in text.split_inclusive('\n') {
            match part.strip_suffix('\n') {
                Some(line) => {
                    self.out.extend(line.as_bytes());
                    self.out.extend(b"\r\n");
                }
                None => self.out.extend(part.as_bytes()),
            }
        }
    }

    fn prompt(&mut self) {
        let prompt = self.session.prompt();
        self.say(&prompt);
        self.out.extend(&self.editor.line);
        let back = self.editor.tail().len();
        self.out.extend(vec![BACK; back]);
    }

    fn feed(&mut self, byte: u8) {
        let after_cr = std::mem::replace(&mut self.editor.after_cr, byte == b'\r');
        if after_cr && (byte == b'\n' || byte == 0) {
            return;
        }
        if !self.pages.is_empty() {
            return self.page_key(byte);
        }
        if self.session.hides() {
            return self.secret_key(byte);
        }
        match (self.editor.escape, byte) {
            // a control character ends a sequence, whatever it was to be
            (_, 0..0x20 | 0x7f) => {
                self.editor.escape = Escape::No;
                self.control(byte);
            }
            (Escape::Begun, b'[' | b'O') => self.editor.escape = Escape::Sequence(0),
            (Escape::Begun, _) => {
                self.editor.escape = Escape::No;
                let to = match byte {
                    b'b' => self.editor.word_before(),
                    b'f' => self.editor.word_after(),
                    _ => return,
                };
                self.editor.move_to(to, &mut self.out);
            }
            (Escape::Sequence(first), _) => self.sequence(first, byte),
            (Escape::No, b'?') if !self.editor.quoted && !self.session.asks() => self.help(),
            (Escape::No, 0x20..0x7f) => {
                self.editor.quoted = false;
                self.editor.insert(byte, &mut self.out);
            }
            (Escape::No, _) => self.out.push(BELL),
        }
    }

    /// A key of a secret: nothing of it is shown, nor how long it is.
    fn secret_key(&mut self, byte: u8) {
        match byte {
            b'\r' | b'\n' => self.enter(),
            0x03 | 0x1a => {
                self.session.leave();
                self.say("\n");
                self.editor.clear();
                self.prompt();
            }
            0x08 | 0x7f => drop(self.editor.line.pop()),
            0x15 | 0x18 => self.editor.clear(),
            0..0x20 => {}
            _ if self.editor.line.len() < LINE_MOST => self.editor.line.push(byte),
            _ => self.editor.over = true,
        }
    }

    fn sequence(&mut self, first: u8, byte: u8) {
        if !(0x40..0x7f).contains(&byte) {
            if first == 0 {
                self.editor.escape = Escape::Sequence(byte);
            }
            return;
        }
        self.editor.escape = Escape::No;
        let (at, end) = (self.editor.at, self.editor.line.len());
        match (byte, first) {
            (b'A', _) => self.recall(true),
            (b'B', _) => self.recall(false),
            (b'C', _) => self.editor.move_to(at + 1, &mut self.out),
            (b'D', _) => self.editor.move_to(at.saturating_sub(1), &mut self.out),
            (b'H', _) | (b'~', b'1' | b'7') => self.editor.move_to(0, &mut self.out),
            (b'F', _) | (b'~', b'4' | b'8') => self.editor.move_to(end, &mut self.out),
            (b'~', b'3') => self.editor.cut_here(&mut self.out),
            _ => {}
        }
    }

    fn control(&mut self, byte: u8) {
        self.editor.quoted = false;
        let (at, end) = (self.editor.at, self.editor.line.len());
        let (editor, out) = (&mut self.editor, &mut self.out);
        match byte {
            b'\r' | b'\n' => self.enter(),
            0x01 => editor.move_to(0, out),
            0x02 => editor.move_to(at.saturating_sub(1), out),
            0x03 => {
                self.session.leave();
                self.say("^C\n");
                self.editor.clear();
                self.prompt();
            }
            0x04 => editor.cut_here(out),
            0x05 => editor.move_to(end, out),
            0x06 => editor.move_to(at + 1, out),
            0x08 | 0x7f => editor.cut_to(at.saturating_sub(1), out),
            b'\t' => self.complete(),
            0x0b => editor.cut_tail(out),
            0x0c | 0x12 => {
                self.say("\n");
                self.prompt();
            }
            0x0e => self.recall(false),
            0x10 => self.recall(true),
            0x15 | 0x18 => {
                editor.cut_to(0, out);
                editor.over &= !editor.line.is_empty();
            }
            0x16 => editor.quoted = true,
            0x17 => {
                let from = editor.word_before();
                editor.cut_to(from, out);
            }
            // a question is not answered by leaving it: Enter would say yes to most
            0x1a if self.session.asks() => {
                self.session.leave();
                self.say("^Z\n");
                self.editor.clear();
                self.prompt();
            }
            0x1a => {
                self.out.extend(b"^Z");
                self.enter();
                self.leave_after_enter();
            }
            0x1b => editor.escape = Escape::Begun,
            _ => {}
        }
    }

    /// `^Z` has carried the line out, and then leaves configuration mode: the prompt that is there is another one.
    fn leave_after_enter(&mut self) {
        let before = self.session.prompt();
        self.session.leave();
        // the prompt is not there yet
        if self.session.runs() {
            return;
        }
        if self.closed || !self.pages.is_empty() || before == self.session.prompt() {
            return;
        }
        self.out
            .truncate(self.out.len().saturating_sub(before.len()));
        self.prompt();
    }

    fn enter(&mut self) {
        self.say("\n");
        let (line, over) = (self.editor.text(), self.editor.over);
        self.editor.clear();
        if over {
            self.say(&format!("% Line is longer than {LINE_MOST} octets\n"));
            return self.prompt();
        }
        let done = self.session.line(&line);
        self.closed = done.closed;
        if self.closed {
            return self.say(&done.text);
        }
        if self.session.runs() {
            // the prompt comes behind it
            return self.say(&done.text);
        }
        self.show(&done.text);
    }

    /// A page of a text, and the others when somebody wants them.
    fn show(&mut self, text: &str) {
        self.pages = text.lines().map(str::to_string).collect();
        let lines = match self.session.length() {
            0 => u16::MAX.into(),
            length => usize::from(length).saturating_sub(1).max(1),
        };
        let all = self.session.length() == 0;
        self.page(if all { usize::MAX } else { lines });
    }

    /// Shows so many rows of what there is to show.
    fn page(&mut self, mut rows: usize) {
        let wide = match (self.session.width(), self.terminal.width()) {
            (_, Some(width)) if width > 0 => width,
            (width, _) => width,
        };
        while rows > 0 {
            let Some(line) = self.pages.pop_front() else {
                break;
            };
            let needs = match usize::from(wide) {
                0 => 1,
                wide => line.chars().count().div_ceil(wide).max(1),
            };
            self.out.extend(line.as_bytes());
            self.out.extend(b"\r\n");
            rows = rows.saturating_sub(needs);
        }
        match self.pages.is_empty() {
            true => self.prompt(),
            false => self.out.extend(MORE.as_bytes()),
        }
    }

    /// A key while there is more to show: a page, a line, or no more of it.
    fn page_key(&mut self, byte: u8) {
        self.out.push(b'\r');
        self.out.extend(vec![b' '; MORE.len()]);
        self.out.push(b'\r');
        match byte {
            b' ' => self.page(usize::from(self.session.length()).saturating_sub(1).max(1)),
            b'\r' | b'\n' => self.page(1),
            _ => {
                if byte == 0x03 {
                    self.session.leave();
                }
                self.pages.clear();
                self.prompt();
            }
        }
    }

    fn help(&mut self) {
        self.out.extend(b"?\r\n");
        let before = self.editor.line.get(..self.editor.at).unwrap_or_default();
        let before = String::from_utf8_lossy(before).into_owned();
        let text = self.session.help(&before);
        // the line is shown again behind it
        self.show(&format!("{text}\n"));
    }

    fn complete(&mut self) {
        let editor = &mut self.editor;
        let line = editor.text();
        let whole = editor.at == editor.line.len() && !self.session.asks();
        match self
            .session
            .complete(&line)
            .filter(|l| whole && l.len() <= LINE_MOST)
        {
            None => self.out.push(BELL),
            Some(now) => match now.strip_prefix(&line) {
                Some(rest) => {
                    editor.line.extend(rest.as_bytes());
                    editor.at = editor.line.len();
                    self.out.extend(rest.as_bytes());
                }
                None => editor.exchange(now.as_bytes(), &mut self.out),
            },
        }
    }

    fn recall(&mut self, older: bool) {
        let editor = &mut self.editor;
        if self.session.asks() {
            return self.out.push(BELL);
        }
        let back = match older {
            true => editor.back + 1,
            false => editor.back.saturating_sub(1),
        };
        if back == editor.back {
            return self.out.push(BELL);
        }
        let line = match back {
            0 => Some(editor.draft.clone()),
            n => self
                .session
                .history()
                .rev()
                .nth(n - 1)
                .map(|l| l.as_bytes().to_vec()),
        };
        let Some(line) = line else {
            return self.out.push(BELL);
        };
        if editor.back == 0 {
            editor.draft = editor.line.clone();
        }
        editor.back = back;
        editor.exchange(&line, &mut self.out);
    }
}
