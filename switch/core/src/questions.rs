//! What the chip is asked, or told, while the core goes on: posted like every other command, answered in a later turn.
//!
//! ```text
//!   ask ─► waiting ─► post, before what the store plans ─► done | timed out | device lost ─► answer, at the end of a turn
//! ```

use std::collections::{HashMap, VecDeque};

use tandem_abi::{Status, raw};
use tandem_sal::{PostError, Request};

use crate::Core;
use crate::program::OWN;

/// The first of the questions' numbers: those below are the upkeep's.
const FIRST: u64 = 1 << 16;
/// So many numbers there are; long before all are used up the first is free again.
const NUMBERS: u64 = 1 << 31;

/// What is done with the answer; the chip's refusals are errors.
pub(crate) type Answer = Box<dyn FnOnce(&mut Core, Result<(raw::tnd_cpl, Vec<u8>), String>) + Send>;

/// A command whose answer somebody wants.
pub(crate) struct Question {
    /// For error messages: `dump`.
    pub what: &'static str,
    /// `TND_OP_*`
    pub op: u16,
    /// `TND_CLS_*`
    pub cls: u16,
    /// Cursor of a dump.
    pub arg: u64,
    /// Body; may be empty.
    pub body: Vec<u8>,
    /// It is answered with records.
    pub output: bool,
    /// Whose it is.
    pub answer: Answer,
}

type Answered = (Answer, Result<(raw::tnd_cpl, Vec<u8>), String>);

/// All that are open.
#[derive(Default)]
pub(crate) struct Questions {
    next: u64,
    waiting: VecDeque<Question>,
    posted: HashMap<u64, (&'static str, Answer)>,
    answered: Vec<Answered>,
}

impl Questions {
    /// The chip has answered.
    pub(crate) fn done(&mut self, token: u64, cpl: &raw::tnd_cpl, output: &[u8]) {
        let Some((what, answer)) = self.posted.remove(&token) else {
            return;
        };
        let status = Status::from_raw(cpl.status);
        let result = match status.is_ok() {
            true => Ok((*cpl, output.to_vec())),
            false => Err(format!("{what}: {status}")),
        };
        self.answered.push((answer, result));
    }

    /// The chip has not.
    pub(crate) fn timed_out(&mut self, token: u64) {
        if let Some((what, answer)) = self.posted.remove(&token) {
            let late = format!("{what}: the chip did not answer in time");
            self.answered.push((answer, Err(late)));
        }
    }

    /// Nobody answers any more.
    pub(crate) fn lost(&mut self, why: &str) {
        let posted = self.posted.drain().map(|(_, (_, answer))| answer);
        let waiting = self.waiting.drain(..).map(|q| q.answer);
        let lost = posted.chain(waiting);
        self.answered
            .extend(lost.map(|answer| (answer, Err(why.to_owned()))));
    }
}

impl Core {
    /// Asks the chip. The answer comes at the end of this turn at the soonest, and in any case.
    pub(crate) fn ask_chip(&mut self, question: Question) {
        if self.control.is_some() {
            self.questions.waiting.push_back(question);
        } else {
            let none = Err(self.no_asic());
            self.questions.answered.push((question.answer, none));
        }
    }

    /// Posts what there is room for. True: there was something.
    pub(crate) fn post_questions(&mut self, now: u64) -> bool {
        let mut posted = false;
        while let Some(q) = self.questions.waiting.pop_front() {
            let Some(control) = &mut self.control else {
                return posted;
            };
            let request = Request {
                op: q.op,
                cls: q.cls,
                arg: q.arg,
                body: &q.body,
                output: q.output,
                ..Default::default()
            };
            let token = OWN | (FIRST + self.questions.next);
            match control.post(0, token, &request, now) {
                Ok(()) => {
                    posted = true;
                    self.questions.next = (self.questions.next + 1) % NUMBERS;
                    self.questions.posted.insert(token, (q.what, q.answer));
                }
                Err(PostError::Full) => {
                    self.questions.waiting.push_front(q);
                    break;
                }
                Err(e @ PostError::Impossible) => {
                    let answer = (q.answer, Err(format!("{}: {e}", q.what)));
                    self.questions.answered.push(answer);
                }
                Err(PostError::Corrupt(e)) => {
                    self.questions.waiting.push_front(q);
                    self.lose(&e.to_string());
                    return posted;
                }
            }
        }
        if let Some(control) = self.control.as_mut().filter(|_| posted) {
            control.flush();
        }
        posted
    }

    /// Gives the answers that have come. True: there were some.
    pub(crate) fn give_answers(&mut self) -> bool {
        let answered = std::mem::take(&mut self.questions.answered);
        let some = !answered.is_empty();
        for (answer, result) in answered {
            answer(self, result);
        }
        some
    }
}
