// SPDX-License-Identifier: Apache-2.0
//! Who is in, and where: a session has its place until it ends.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tandem_swconfig::users::{Access, Line, VTYS};

/// Sessions of root, and at the box, that are counted; others than those from elsewhere have no bound here.
const NUMBERS: usize = 1000;

/// Of those from elsewhere so many at once may not have said who they are: users that are known find a line.
const STRANGERS: usize = 8;

/// So many others at once may ask whether somebody's secret is right: an sshd that all the world knocks at leaves root's
/// socket to swcli and to the line at the box.
const CHECKS: usize = 8;

/// Where a session comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A line at the box itself.
    Console,
    /// From elsewhere.
    Vty,
    /// Root's.
    Cli,
}

#[derive(Clone, Debug)]
struct Entry {
    user: String,
    from: String,
    last: Instant,
}

type Taken = BTreeMap<(Kind, usize), Entry>;

#[derive(Debug, Default)]
struct Table {
    taken: Taken,
    uses: BTreeMap<(Kind, usize), u64>,
    checks: usize,
}

/// All places.
#[derive(Debug, Default)]
pub struct Places(Mutex<Table>);

/// A session's place; free again with this value.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    at: (Kind, usize),
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.table().taken.remove(&self.at);
    }
}

/// One that asks whether a secret is right; less by one with this value.
#[derive(Debug)]
pub(crate) struct Checks(Arc<Places>);

impl Drop for Checks {
    fn drop(&mut self) {
        self.0.table().checks -= 1;
    }
}

impl Place {
    /// Somebody has typed a line.
    pub(crate) fn touch(&self) {
        if let Some(entry) = self.places.table().taken.get_mut(&self.at) {
            entry.last = Instant::now();
        }
    }

    /// It is known who it is.
    pub(crate) fn is_of(&self, user: &str) {
        if let Some(entry) = self.places.table().taken.get_mut(&self.at) {
            entry.user = user.into();
        }
    }

    /// `vty 0`
    pub(crate) fn name(&self) -> String {
        name(self.at)
    }

    /// What is set of it; root's has nothing that could be.
    pub(crate) fn line<'a>(&self, access: &'a Access) -> Option<&'a Line> {
        match self.at {
            (Kind::Console, _) => Some(&access.console),
            (Kind::Vty, number) => access.vty.get(number),
            (Kind::Cli, _) => None,
        }
    }
}

fn name((kind, number): (Kind, usize)) -> String {
    match kind {
        Kind::Console => format!("con {number}"),
        Kind::Vty => format!("vty {number}"),
        Kind::Cli => format!("cli {number}"),
    }
}

/// All lines one after the other: the console, those from elsewhere, root's.
fn number((kind, number): (Kind, usize)) -> usize {
    match kind {
        Kind::Console => number,
        Kind::Vty => 1 + number,
        Kind::Cli => 1 + VTYS + number,
    }
}

impl Places {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first place of a kind that is free, for a user or for somebody who is to say who it is.
    pub(crate) fn take(
        self: &Arc<Places>,
        kind: Kind,
        user: Option<&str>,
        from: &str,
    ) -> Option<Place> {
        let most = if kind == Kind::Vty { VTYS } else { NUMBERS };
        let mut table = self.table();
        let strangers = |((k, _), e): &(&(Kind, usize), &Entry)| *k == kind && e.user.is_empty();
        if kind == Kind::Vty
            && user.is_none()
            && table.taken.iter().filter(strangers).count() >= STRANGERS
        {
            return None;
        }
        let at = (0..most)
            .map(|n| (kind, n))
            .find(|at| !table.taken.contains_key(at))?;
        let entry = Entry {
            user: user.unwrap_or_default().into(),
            from: from.into(),
            last: Instant::now(),
        };
        table.taken.insert(at, entry);
        *table.uses.entry(at).or_default() += 1;
        Some(Place {
            places: Arc::clone(self),
            at,
        })
    }

    /// Room to ask whether a secret is right.
    pub(crate) fn check(self: &Arc<Places>) -> Option<Checks> {
        let mut table = self.table();
        if table.checks >= CHECKS {
            return None;
        }
        table.checks += 1;
        Some(Checks(Arc::clone(self)))
    }

    /// `show users`
    pub(crate) fn users(&self, own: Option<&Place>) -> String {
        let mut text =
            String::from("    Line       User       Host(s)              Idle       Location\n");
        for (at, entry) in &self.table().taken {
            let seconds = entry.last.elapsed().as_secs();
            let idle = format!(
                "{:02}:{:02}:{:02}",
                seconds / 3600,
                seconds / 60 % 60,
                seconds % 60
            );
            let line = format!(
                "{}{:>3} {:<9} {:<10} {:<20} {idle:<10} {}",
                mark(own, *at),
                number(*at),
                name(*at),
                entry.user,
                "idle",
                entry.from,
            );
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }

    /// `show line`
    pub(crate) fn lines(&self, own: Option<&Place>) -> String {
        let mut text = String::from(
            "   Tty Line Typ     Tx/Rx    A Modem  Roty AccO AccI   Uses   Noise  Overruns   Int\n",
        );
        let table = self.table();
        let vtys = (0..VTYS).map(|n| (Kind::Vty, n));
        for at in [(Kind::Console, 0)].into_iter().chain(vtys) {
            let typ = if at.0 == Kind::Vty { "VTY" } else { "CTY" };
            let uses = table.uses.get(&at).copied().unwrap_or(0);
            let mark = match mark(own, at) {
                ' ' if table.taken.contains_key(&at) => 'A',
                mark => mark,
            };
            let _ = writeln!(
                text,
                "{mark}{:>5} {:>4} {typ}              -    -      -    -    - {uses:>6}       0       0/0     -",
                number(at),
                number(at),
            );
        }
        text
    }
}

fn mark(own: Option<&Place>, at: (Kind, usize)) -> char {
    if own.is_some_and(|p| p.at == at) {
        '*'
    } else {
        ' '
    }
}
