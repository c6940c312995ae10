//! Attaching to asicd again: it is asked, several questions at once, and nobody waits for it.
//!
//! ```text
//!   HELLO ─► are our ports kept? ─► those that aren't are handed over, and the programs ─► attach: warm if all were kept
//! ```

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::BorrowedFd;
use std::path::Path;

use tandem_carrier::CarrierError;
use tandem_core::plant::{NotYet, Waits};
use tandem_sal::{
    Attach, Connected, Connecting, Platform, Sal, SalControl, SalError, SalIo, Splits,
};

use crate::forward_mark::{ForwardMark, QUEUES};
use crate::ports::Port;
use crate::wired::CARRIER_TIMEOUT;

/// Questions under way: no more than asicd takes in one turn.
const AT_ONCE: usize = 16;

/// A question about what asicd keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    /// Whether it has a queue of a port.
    Has { port: usize, queue: usize },
    /// A queue of a port is to be kept.
    Keep { port: usize, queue: usize },
    /// One of the programs is.
    Program(usize),
}

/// What asicd is asked about what it keeps.
#[derive(Debug)]
struct Asking {
    todo: VecDeque<Ask>,
    /// Put and not answered, oldest first.
    put: VecDeque<Ask>,
    /// Ports that it doesn't have: they are handed over.
    anew: BTreeSet<usize>,
}

impl Asking {
    fn new(ports: usize, programs: usize) -> Asking {
        let queues = |port| (0..QUEUES).map(move |queue| Ask::Has { port, queue });
        let todo = (0..ports).flat_map(queues);
        Asking {
            todo: todo.chain((0..programs).map(Ask::Program)).collect(),
            put: VecDeque::new(),
            anew: BTreeSet::new(),
        }
    }

    /// What is to be put now, if anything.
    fn next(&mut self) -> Option<Ask> {
        match self.put.len() < AT_ONCE {
            true => self.todo.pop_front(),
            false => None,
        }
    }

    /// The oldest that was put is answered.
    fn answered(&mut self, yes: bool) -> Result<(), NotYet> {
        match (self.put.pop_front(), yes) {
            (Some(Ask::Has { port, .. }), false) => {
                if self.anew.insert(port) {
                    let same = |a: &Ask| matches!(a, Ask::Has { port: p, .. } if *p == port);
                    self.todo.retain(|a| !same(a));
                    for queue in (0..QUEUES).rev() {
                        self.todo.push_front(Ask::Keep { port, queue });
                    }
                }
                Ok(())
            }
            (Some(Ask::Keep { .. } | Ask::Program(_)), false) => {
                Err(NotYet::refused("what was to be kept was not"))
            }
            (_, true) | (None, false) => Ok(()),
        }
    }

    fn left(&self) -> usize {
        self.todo.len() + self.put.len()
    }
}

/// An attach under way.
#[derive(Debug)]
pub struct Reattach {
    connecting: Option<Connecting>,
    sal: Option<Sal>,
    asking: Asking,
    cold: bool,
    /// The attach was asked for.
    how: Option<Attach>,
    /// Answers so far.
    answers: u64,
}

/// What an attach comes to.
pub type Halves = (Attach, SalControl, SalIo);

impl Reattach {
    /// Says HELLO. `ports`, `programs`: how many there are to be kept; `cold`: with empty tables in any case.
    ///
    /// # Errors
    /// Nobody listens.
    pub fn begin(
        socket: &Path,
        name: &str,
        splits: &Splits,
        ports: usize,
        programs: usize,
        cold: bool,
    ) -> Result<Self, NotYet> {
        let connecting = Connecting::begin(socket, name, splits, CARRIER_TIMEOUT)?;
        Ok(Reattach {
            connecting: Some(connecting),
            sal: None,
            asking: Asking::new(ports, programs),
            cold,
            how: None,
            answers: 0,
        })
    }

    /// What is waited for.
    #[must_use]
    pub fn waits(&self) -> Waits {
        let (what, which) = match (&self.connecting, self.how) {
            (Some(_), _) => ("connecting to it", String::new()),
            (None, Some(_)) => ("it makes its rings", String::new()),
            (None, None) => {
                let left = self.asking.left();
                ("it is handed the ports", format!("{left} questions left"))
            }
        };
        Waits {
            what: what.into(),
            which,
            answers: self.answers,
        }
    }

    /// The connection that is not answered yet.
    #[must_use]
    pub fn connecting(&self) -> Option<BorrowedFd<'_>> {
        self.connecting.as_ref().and_then(Connecting::socket)
    }

    /// The connection.
    #[must_use]
    pub fn sal(&self) -> Option<&Sal> {
        self.sal.as_ref()
    }

    /// The connection, which is attached.
    #[must_use]
    pub fn into_sal(self) -> Option<Sal> {
        self.sal
    }

    /// Goes on as far as asicd has answered. `None`: not yet.
    ///
    /// # Errors
    /// It is gone, or refuses.
    pub fn go_on(
        &mut self,
        board: &Platform,
        ports: &[Port],
        mark: &mut ForwardMark,
    ) -> Result<Option<Halves>, NotYet> {
        if let Some(connecting) = self.connecting.take() {
            match connecting.go_on()? {
                Connected::Waits(connecting) => {
                    self.connecting = Some(connecting);
                    return Ok(None);
                }
                Connected::Up(sal) => {
                    same_board(&sal, board)?;
                    self.sal = Some(*sal);
                    self.answers += 1;
                }
            }
        }
        let Some(sal) = &mut self.sal else {
            return Err(NotYet::refused("nothing was begun"));
        };
        loop {
            while let Some(ask) = self.asking.next() {
                if put(sal, ask, ports, mark)? {
                    self.asking.put.push_back(ask);
                }
            }
            let Some(oldest) = self.asking.put.front() else {
                break;
            };
            let yes = match (oldest, sal.answered()) {
                (_, Ok(None)) => return Ok(None),
                (_, Ok(Some(yes))) => yes,
                // it has no room for them
                (Ask::Program(_), Err(CarrierError::Refused(why))) => {
                    mark.not_kept(&why);
                    true
                }
                (_, Err(e)) => return Err(SalError::from(e).into()),
            };
            self.answers += 1;
            self.asking.answered(yes)?;
        }
        // an asicd that still keeps our ports is the one that we lost: its tables are ours
        self.cold |= !self.asking.anew.is_empty();
        let how = match self.how {
            Some(how) => how,
            None => {
                let how = match self.cold {
                    true => Attach::Cold,
                    false => Attach::Warm,
                };
                sal.ask_attach(how)?;
                self.how = Some(how);
                how
            }
        };
        let halves = sal.attached()?;
        Ok(halves.map(|(control, io)| (how, control, io)))
    }
}

/// Other ports mean other netdevs: that is a restart's business.
fn same_board(sal: &Sal, board: &Platform) -> Result<(), NotYet> {
    if sal.platform().ports == board.ports {
        return Ok(());
    }
    Err(NotYet::refused(format!(
        "it came back as {} with other ports: restart switchd",
        sal.platform().chip
    )))
}

/// Asks. False: there is nothing to be asked.
fn put(sal: &mut Sal, ask: Ask, ports: &[Port], mark: &ForwardMark) -> Result<bool, NotYet> {
    let of_port = |port: usize, queue| ports.get(port).and_then(|p| p.to_keep().nth(queue));
    let (kept, has) = match ask {
        Ask::Has { port, queue } => (of_port(port, queue), true),
        Ask::Keep { port, queue } => (of_port(port, queue), false),
        Ask::Program(n) => (mark.to_keep().into_iter().nth(n), false),
    };
    let Some((name, fd)) = kept else {
        return Ok(false);
    };
    let asked = match has {
        true => sal.ask_kept(&name),
        false => sal.ask_keep(&name, fd),
    };
    asked.map_err(SalError::from)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts what may be put.
    fn put_all(asking: &mut Asking) -> Vec<Ask> {
        let mut all = Vec::new();
        while let Some(ask) = asking.next() {
            asking.put.push_back(ask);
            all.push(ask);
        }
        all
    }

    #[test]
    fn a_switch_of_48_ports_is_asked_in_few_turns() {
        let mut asking = Asking::new(48, 2);
        let (mut turns, mut asked) = (0, 0);
        while asking.left() > 0 {
            let put = put_all(&mut asking);
            assert!((1..=AT_ONCE).contains(&put.len()));
            asked += put.len();
            for _ in put {
                asking.answered(true).unwrap();
            }
            turns += 1;
        }
        assert_eq!((asked, asking.anew.len()), (48 * QUEUES + 2, 0));
        assert!(turns <= 7, "{turns}");
    }

    #[test]
    fn a_port_that_is_not_kept_is_handed_over_once_and_before_the_programs() {
        let mut asking = Asking::new(AT_ONCE, 1);
        let mut all = put_all(&mut asking);
        // the first port has neither queue; the rest is there
        while !asking.put.is_empty() {
            let yes = !matches!(asking.put.front(), Some(Ask::Has { port: 0, .. }));
            asking.answered(yes).unwrap();
            all.extend(put_all(&mut asking));
        }
        let keeps: Vec<usize> = (0..all.len())
            .filter(|i| matches!(all[*i], Ask::Keep { port: 0, .. }))
            .collect();
        assert_eq!(keeps.len(), QUEUES, "{all:?}");
        assert_eq!(all.len(), AT_ONCE * QUEUES + QUEUES + 1, "{all:?}");
        assert_eq!(all.last(), Some(&Ask::Program(0)));
        assert_eq!(asking.anew, BTreeSet::from([0]));
        let mut asking = Asking::new(1, 0);
        put_all(&mut asking);
        asking.answered(false).unwrap();
        asking.answered(false).unwrap();
        put_all(&mut asking);
        assert!(asking.answered(false).unwrap_err().warn);
    }
}
