// SPDX-License-Identifier: Apache-2.0
//! One turn: what may be posted is, what was answered is looked at. And what follows where an answer is not the expected one.

use tandem_abi::object::records;
use tandem_abi::{Status, raw};
use tandem_sal::{Outcome, PostError, Request};

use crate::part::is_answer;
use crate::room::release;
use crate::silence::Silence;
use crate::want::{Command, Scope, Target, counter};
use crate::{Chip, Flight, Step, Trust, What, ports};

/// Commands under way at most: what opens looks at each.
const FLIGHTS: usize = 512;
/// Answers that are looked at in one turn.
const ANSWERS: usize = 2048;
const ROUNDS: usize = 4;
const SECOND: u64 = 1_000_000_000;
/// Who posts nothing for so long says that it is there: the chip may be told to trap when nobody looks after it.
const SIGN: u64 = SECOND;
const BACKOFF_MAX: u64 = 64 * SECOND;

/// What is deleted and written anew where it is not sure.
fn is_entry(t: &Target) -> bool {
    use Target::{Class, Form, Mac, Member, Row};
    matches!(t, Row(_) | Class(..) | Form(..) | Mac(_) | Member(..))
}

/// A step that nobody's answer depends on.
fn aside(what: What, command: Command) -> Step {
    Step {
        what,
        scope: Scope::Nothing,
        opens: false,
        command,
    }
}

impl Chip {
    /// Posts what may be posted, and looks at what was answered. True: something was.
    pub fn turn(&mut self, now_ns: u64) -> bool {
        let mut any = false;
        self.now_ns = now_ns;
        if self.lost().is_some() {
            self.counts.give_up(now_ns);
        }
        if self.device.is_some() && !self.is_busy() {
            let due = self.uses.due(now_ns);
            self.ask(&due, true);
        }
        // What is not answered is no reason to be silent, but for a sign itself
        let signed = self.flights.iter().any(|f| f.what == What::Sign);
        let idle = self.queue.is_empty() && !signed;
        if self.device.is_some() && idle && now_ns >= self.posted_ns + SIGN {
            self.aside(What::Sign, Command::nothing());
        }
        for _ in 0..ROUNDS {
            self.go_on(now_ns);
            let Some(device) = &mut self.device else {
                return any;
            };
            device.flush();
            let mut answers = Vec::new();
            let reaped = device.reap(now_ns, ANSWERS, &mut |o| answers.push(o));
            let heard = answers.iter().any(is_answer);
            let told = |o: &Outcome| matches!(o, Outcome::Done { .. });
            let told = answers.iter().any(told);
            for a in answers {
                self.answered(a, now_ns);
            }
            self.settle_uses();
            if heard {
                self.hears(now_ns);
            } else if told && self.flights.is_empty() {
                // its sign was answered for the chip (`part.rs`); what is given up says nothing
                self.silence.rests();
            }
            match reaped {
                Ok(0) => {
                    self.looks(now_ns);
                    return any;
                }
                Ok(_) => any = true,
                Err(e) => self.lose(&e.to_string()),
            }
        }
        // there may be more
        true
    }

    /// It answers: what it has counted is read, if that was not so before.
    fn hears(&mut self, now_ns: u64) {
        if self.silence.heard(!self.flights.is_empty(), now_ns) {
            tracing::info!("the chip answers again");
            let read = self.read();
            self.counts.hears(read);
        }
    }

    /// Nothing is answered now.
    fn looks(&mut self, now_ns: u64) {
        if self.silence.look(now_ns) {
            tracing::warn!(
                "the chip does not answer: what it has counted is not known until it does"
            );
            self.counts.silent();
        }
    }

    /// Before sleeping. True: nothing waits.
    pub fn arm(&mut self) -> bool {
        match self.device.as_mut().map(|d| d.arm()) {
            Some(Ok(quiet)) => quiet,
            Some(Err(e)) => {
                self.lose(&e.to_string());
                true
            }
            None => true,
        }
    }

    /// After waking.
    pub fn disarm(&mut self) {
        if let Some(d) = &mut self.device {
            d.disarm();
        }
    }

    /// When [`Chip::turn`] is to be called at the latest.
    pub fn next_ns(&self) -> Option<u64> {
        let device = self.device.as_ref();
        let overdue = device.and_then(|d| d.next_deadline_ns());
        // While it is busy it asks nothing; what wakes it then is an answer
        let asks = device.and_then(|_| self.uses.next_ns());
        let asks = asks.filter(|_| !self.is_busy());
        let looks = device.and_then(|_| self.silence.next_ns());
        let overdue = overdue.into_iter().chain(asks).chain(looks).min();
        match self.trust {
            Trust::Trapped { retry_ns } => Some(overdue.map_or(retry_ns, |o| o.min(retry_ns))),
            _ => overdue,
        }
    }

    /// Entries that don't forward any more have stopped to when the chip has said so.
    fn settle_uses(&mut self) {
        let mut uses = std::mem::take(&mut self.uses);
        uses.settle(self.now_ns, |mark| self.is_settled_to(mark));
        self.uses = uses;
    }

    /// The next state, where this one has nothing left to do; and what may be posted.
    fn go_on(&mut self, now_ns: u64) {
        loop {
            self.ask_on();
            self.post(now_ns);
            let open = |f: &Flight| !f.void && f.scope != Scope::Nothing;
            let quiet = self.queue.is_empty() && !self.flights.iter().any(open);
            match self.trust {
                Trust::Trapping if quiet => {
                    if self.lookups.is_awaited() {
                        // One that was begun before has looked at open ports
                        if self.is_reading() {
                            return;
                        }
                        self.read();
                    }
                    self.trust = Trust::Mending;
                    self.mend();
                }
                Trust::Mending if quiet && !self.dirty.is_empty() => self.mend(),
                Trust::Mending if quiet && !self.lookups.is_awaited() => {
                    self.trust = Trust::Opening;
                    self.write_ports(true);
                }
                Trust::Whole if quiet && self.compose.is_late() && now_ns >= self.settle_ns => {
                    // What was cut may fit: asked when there is time, as it looks at much
                    self.settle_ns = now_ns + SECOND;
                    let rules = self.compose.settle();
                    self.decide(rules);
                }
                Trust::Whole if quiet && !self.leaving.is_empty() => self.leaving.clear(),
                Trust::Opening if quiet => {
                    self.trust = Trust::Whole;
                    self.backoff_ns = 0;
                }
                Trust::Trapped { retry_ns } if now_ns >= retry_ns => {
                    self.trust = Trust::Mending;
                    self.mend();
                }
                _ => return,
            }
        }
    }

    /// Questions that stand behind the writes: nobody's answer depends on them.
    fn ask_on(&mut self) {
        if self.device.is_none() || matches!(self.trust, Trust::Lost { .. } | Trust::Trapping) {
            return;
        }
        // Their rows are gone, or the ports trap and nothing meets them any more
        if self.writes_now() || matches!(self.trust, Trust::Trapped { .. }) {
            for id in self.counts.ask() {
                let mut query = Command::of(raw::TND_OP_QUERY, &counter(id));
                query.output = true;
                // its end behind the question, so that the answer is no reason to wake the chip again
                let ends = self.writes_now();
                self.aside(What::Last(id, ends), query);
                if ends {
                    self.drop_object(Target::Counter(id), Scope::Nothing, false);
                }
            }
        }
        if self.leases()
            && let Some(ask) = self.room.ask(self.want.macs.len() as u32)
        {
            self.aside(What::Lease, ask);
        }
        if self.counts.begins() {
            self.read_page(What::ReadPorts, 0);
        }
    }

    pub(crate) fn aside(&mut self, what: What, command: Command) {
        self.queue.push_back(aside(what, command));
    }

    fn is_reading(&self) -> bool {
        let reads = |w: What| matches!(w, What::ReadPorts | What::Read);
        self.queue.iter().any(|s| reads(s.what)) || self.flights.iter().any(|f| reads(f.what))
    }

    /// Frames that came in at the switch's ports and did not go to the CPU.
    pub(crate) fn kept(&self) -> u64 {
        let of = |p: &crate::PortOf| self.totals.of(u16::from(p.port));
        let ports = self.ports.list.iter().filter_map(|(p, _)| of(p));
        ports.map(|p| p.rx_packets.saturating_sub(p.rx_cpu)).sum()
    }

    fn read_page(&mut self, what: What, cursor: u64) {
        let dump = Command {
            op: raw::TND_OP_DUMP,
            cls: match what {
                What::ReadPorts => raw::TND_CLS_PORT_STATS,
                _ => raw::TND_CLS_ACL_COUNTER,
            },
            flags: 0,
            lease: 0,
            arg: cursor,
            body: Vec::new(),
            output: true,
        };
        self.aside(what, dump);
    }

    fn post(&mut self, now_ns: u64) {
        while let Some(step) = self.queue.front() {
            let Some(device) = &mut self.device else {
                return;
            };
            if self.flights.len() >= FLIGHTS {
                return;
            }
            let waits = |f: &Flight| !f.void && f.scope.meets(&step.scope);
            if step.opens && self.flights.iter().any(waits) {
                return;
            }
            // Whoever changes domains relies on ports that trap: they do once the chip has said so
            let member = matches!(step.what, What::Write(Target::Member(..)));
            let port = |f: &Flight| !f.void && f.what == What::Port;
            if member && self.flights.iter().any(port) {
                return;
            }
            // A form asks for a VLAN id alone: what came in with it would leave so where the guard does not stand yet
            let form = matches!(step.what, What::Write(Target::Form(..)));
            let guard = |f: &Flight| !f.void && f.what == What::Write(Target::Class(0, 0));
            if form && self.flights.iter().any(guard) {
                return;
            }
            let c = &step.command;
            let request = Request {
                op: c.op,
                cls: c.cls,
                flags: c.flags,
                lease: c.lease,
                arg: c.arg,
                body: &c.body,
                output: c.output,
            };
            let token = self.token;
            match device.post(self.pair, token, &request, now_ns) {
                Ok(()) => {}
                Err(PostError::Full) => return,
                Err(e) => {
                    self.lose(&e.to_string());
                    return;
                }
            }
            self.token += 1;
            self.posted_ns = now_ns;
            self.silence.posted(now_ns);
            let flight = Flight {
                token,
                what: step.what,
                scope: step.scope,
                void: false,
            };
            self.flights.push(flight);
            self.queue.pop_front();
        }
        // what a full chip made wait once is not kept room for
        if self.queue.is_empty() && self.queue.capacity() > 4 * FLIGHTS {
            self.queue.shrink_to(FLIGHTS);
        }
    }

    fn answered(&mut self, outcome: Outcome, now_ns: u64) {
        let token = match &outcome {
            Outcome::Done { token, .. } | Outcome::TimedOut { token } => *token,
        };
        let Some(at) = self.flights.iter().position(|f| f.token == token) else {
            return;
        };
        let flight = self.flights.remove(at);
        let (status, cpl, output) = match outcome {
            Outcome::Done { cpl, output, .. } => (Some(Status::from_raw(cpl.status)), cpl, output),
            Outcome::TimedOut { .. } => (None, raw::tnd_cpl::default(), Vec::new()),
        };
        let ok = status.is_some_and(|s| s.is_ok());
        if let What::Write(target) = flight.what {
            self.written(target, token, ok, cpl.op);
        }
        match flight.what {
            What::Write(target) => match status {
                _ if flight.void => {}
                Some(s) if s.is_ok() => {
                    if (cpl.op, cpl.cls) == (raw::TND_OP_DELETE, raw::TND_CLS_FDB) {
                        self.room.freed();
                    }
                }
                status => self.failed(target, status, now_ns),
            },
            What::Port if ok || flight.void => {}
            What::Port => self.lose("a port can't be written"),
            // Of a row that stands still, perhaps: it is asked again when all frames have gone to the CPU
            What::Last(id, _) if flight.void => self.counts.not_asked(id),
            What::Last(id, ends) if ok => {
                let told = records::<raw::tnd_acl_counter>(&output).next();
                // Its row may count on: the write by which it does not has no answer, where this has
                let early = self.parting.tell(id);
                if early && let Some((c, _)) = &told {
                    self.counts.tell(c, false, now_ns);
                    if ends {
                        self.counts.said(id);
                    }
                } else if told.is_some_and(|(c, _)| self.counts.tell(&c, true, now_ns)) {
                    self.counter_told(id, ends);
                } else {
                    self.counts.not_asked(id);
                }
            }
            What::Last(id, _) if status == Some(Status::NoEnt) && self.counts.had_said(id) => {
                self.counts.gone(id);
            }
            // asked again, a device that refuses would refuse again
            What::Last(id, ends) if status.is_some() => {
                self.counts.lose(id, now_ns);
                self.counter_told(id, ends);
            }
            What::Last(id, _) => self.counts.not_asked(id),
            What::ReadPorts if ok => {
                for (p, _) in records::<raw::tnd_port_stats>(&output).take(cpl.out_count as usize) {
                    self.totals.tell(p);
                }
                match cpl.result {
                    0 => {
                        if self.trust != Trust::Trapping {
                            self.lookups.read(self.kept());
                        }
                        self.read_page(What::Read, 0);
                    }
                    next => self.read_page(What::ReadPorts, next),
                }
            }
            What::Read if ok => {
                for (c, _) in records::<raw::tnd_acl_counter>(&output).take(cpl.out_count as usize)
                {
                    self.counts.tell(&c, false, now_ns);
                }
                match cpl.result {
                    0 => self.counts.ends(true),
                    next => self.read_page(What::Read, next),
                }
            }
            // a device may not tell
            What::ReadPorts if status.is_some() => {
                self.lookups.unread();
                self.read_page(What::Read, 0);
            }
            What::Read if status.is_some() => self.counts.refused(now_ns),
            What::Read | What::ReadPorts => self.counts.ends(false),
            What::Lease if ok => {
                self.room.granted(cpl.result as u32);
                self.resize();
            }
            What::Lease if status.is_some() => self.room.refused(),
            What::Lease => {
                self.room.lost();
                self.aside(What::Release, release(0, token));
            }
            What::Release => self.room.freed(),
            What::Sign => {}
        }
    }

    /// Nobody needs a counter any more. Of an end that was queued behind the question it is not known whether it was thrown
    /// away with all that waited, unless that is all written now.
    fn counter_told(&mut self, id: u32, ends: bool) {
        if !ends || !self.writes_now() {
            self.drop_object(Target::Counter(id), Scope::Nothing, false);
        }
    }

    /// It may be otherwise in the chip than it is wanted. An attach finds out anew.
    pub(crate) fn soil(&mut self, target: Target) {
        if !matches!(self.trust, Trust::Lost { .. }) {
            self.dirty.insert(target);
        }
    }

    /// A row's counter is read for the last time behind the write with which it counts there no more, which is the next one.
    pub(crate) fn retire(&mut self, at: u32, counter: u32) {
        self.part(at, counter);
        self.counts.retire(counter);
    }

    /// The next write to a row parts it from a counter, if there is one.
    pub(crate) fn part(&mut self, at: u32, counter: u32) {
        if self.writes_now() && counter != 0 {
            self.parting.begin(at, counter, self.mark());
        }
    }

    /// A write was answered, or is given up: what of counters whose rows were to go, or to count elsewhere.
    fn written(&mut self, target: Target, token: u64, ok: bool, op: u16) {
        match target {
            Target::Row(at) => {
                for (id, told) in self.parting.answered(at, token) {
                    if told {
                        // it may have counted since
                        self.counts.not_asked(id);
                    } else if !ok {
                        self.counts_on(id);
                    }
                }
            }
            Target::Counter(id) if ok && op == raw::TND_OP_DELETE && self.parting.gone(id) => {
                self.counts.gone(id);
            }
            _ => {}
        }
    }

    /// A row counts on where it was to count no more: what its counter says now is not its last word.
    fn counts_on(&mut self, id: u32) {
        let of = |f: &&mut Flight| matches!(f.what, What::Last(c, _) if c == id);
        self.flights
            .iter_mut()
            .filter(of)
            .for_each(|f| f.void = true);
    }

    /// A write was refused, or its answer was lost.
    fn failed(&mut self, target: Target, status: Option<Status>, now_ns: u64) {
        match status {
            Some(_) => self.troubles.refused += 1,
            None => self.troubles.unanswered += 1,
        }
        let full = matches!(status, Some(Status::TableFull | Status::BucketFull));
        let mends = matches!(self.trust, Trust::Mending);
        self.dirty.insert(target);
        if mends && full && matches!(target, Target::Mac(_)) {
            // What was not promised did not fit: somebody leaves
            self.squeeze();
            return;
        }
        let why = status.map_or("not answered".to_owned(), |s| s.to_string());
        self.distrust(&format!("{target:?}: {why}"), now_ns);
    }

    /// One entry of the MAC table less.
    fn squeeze(&mut self) {
        let fewer = (self.want.macs.len() as u32).saturating_sub(1);
        let writes = self.offload.resize(self.lines, fewer);
        self.apply(writes);
    }

    /// The chip may answer otherwise than it should: all ports to the CPU, and what is not sure is written anew.
    fn distrust(&mut self, why: &str, now_ns: u64) {
        tracing::warn!("the chip is not as it should be: {why}: frames go to the CPU until it is");
        let releases = self.give_back();
        match self.trust {
            Trust::Whole | Trust::Opening => {
                self.troubles.mended += 1;
                self.trust = Trust::Trapping;
                self.write_ports(false);
            }
            Trust::Mending => {
                self.backoff_ns = (self.backoff_ns * 2).clamp(SECOND, BACKOFF_MAX);
                self.trust = Trust::Trapped {
                    retry_ns: now_ns + self.backoff_ns,
                };
            }
            Trust::Trapping => self.lose(why),
            Trust::Trapped { .. } | Trust::Lost { .. } => {}
        }
        // behind the ports: nothing is in a hurry but these
        self.queue.extend(releases);
    }

    /// All that this switch has in the chip, and these, is another's: deleted, while all its frames go to the CPU, and
    /// what is wanted now is written then. What others have there stands.
    pub(crate) fn start_over(&mut self, old: impl Iterator<Item = Target>) {
        if matches!(self.trust, Trust::Lost { .. }) {
            return;
        }
        let given = self.give_back();
        self.dirty.extend(old);
        self.trust = Trust::Trapping;
        self.write_ports(false);
        self.queue.extend(given);
    }

    /// What waits is written anew, what was promised is given back.
    fn give_back(&mut self) -> Vec<Step> {
        let mut releases = self.void();
        for release in self.room.forget() {
            releases.push(aside(What::Release, release));
        }
        releases
    }

    /// What waits and what is under way is to be written anew. What is left of what waits: leases that are given back,
    /// which hold slots until then.
    fn void(&mut self) -> Vec<Step> {
        for id in self.parting.void(&self.flights) {
            self.counts.not_asked(id);
        }
        let (stays, waits): (Vec<Step>, Vec<Step>) =
            self.queue.drain(..).partition(|s| s.what == What::Release);
        // nobody waits for tokens that are not used
        self.token += (stays.len() + waits.len()) as u64;
        // While it is mended, those that are written anew may be there, and may have counted
        let new = self.writes_now();
        let made = |s: &&Step| new && s.command.op == raw::TND_OP_CREATE;
        for s in waits.iter().filter(made) {
            if let What::Write(Target::Counter(id)) = s.what {
                self.counts.unmake(id);
            }
        }
        let waits: Vec<What> = waits.iter().map(|s| s.what).collect();
        let mut flies = Vec::new();
        for f in self.flights.iter_mut().filter(|f| !f.void) {
            // Questions are answered all the same
            if let What::Write(_) | What::Port = f.what {
                f.void = true;
                flies.push(f.what);
            }
        }
        for what in flies.iter().chain(&waits) {
            if let What::Write(target) = what {
                self.dirty.insert(*target);
            }
        }
        for what in waits {
            match what {
                What::Last(id, _) => self.counts.not_posted(id),
                What::Read | What::ReadPorts => self.counts.ends(false),
                What::Lease => self.room.lost(),
                What::Write(_) | What::Port | What::Release | What::Sign => {}
            }
        }
        stays
    }

    /// The device can't be used any more, or what it does is not known: it is to be attached anew.
    pub fn lose(&mut self, why: &str) {
        if let Trust::Lost { why: known, .. } = &mut self.trust {
            *known = why.into();
            return;
        }
        tracing::warn!("the chip has to be attached anew: {why}");
        self.void();
        self.flights.clear();
        self.silence = Silence::default();
        self.parting.clear();
        self.room.void();
        self.uses.lost(self.now_ns);
        self.counts.unasked(self.now_ns);
        self.lookups.ends();
        self.device = None;
        self.trust = Trust::Lost {
            why: why.into(),
            gone: false,
        };
    }

    /// A device that is lost has ended: it forwards nothing, and the next one begins without anything. So every answer is
    /// that of the tables, there being none, and nothing is sent to a port that was the switch's.
    pub fn gone(&mut self) {
        if let Trust::Lost { gone, .. } = &mut self.trust {
            *gone = true;
            self.leaving.clear();
        }
    }

    /// All that is not sure, written anew while every frame goes to the CPU: so in the order that needs least room.
    fn mend(&mut self) {
        let dirty = std::mem::take(&mut self.dirty);
        let mut steps: Vec<(What, Command)> = Vec::new();
        let mut step = |target: Target, command: Option<Command>| {
            steps.extend(command.map(|c| (What::Write(target), c)));
        };
        for t in &dirty {
            if is_entry(t) {
                step(*t, self.want.delete(*t));
            }
        }
        let make = raw::TND_OP_CREATE;
        // Who named these was dirty too, and is gone; what comes needs their room
        for t in &dirty {
            match t {
                Target::Set(_) if self.want.write(make, *t).is_none() => {
                    step(*t, self.want.delete(*t))
                }
                Target::Counter(id) if !self.counts.has(*id) => step(*t, self.want.delete(*t)),
                _ => {}
            }
        }
        if dirty.contains(&Target::List) {
            for c in self.list() {
                step(Target::List, Some(c));
            }
        }
        for t in &dirty {
            match t {
                Target::Vlan(_) | Target::Set(_) => step(*t, self.want.write(make, *t)),
                Target::Row(at) => {
                    let counter = self.want.rows.get(at).map(|r| r.counter);
                    if let Some(id) = counter.filter(|id| *id != 0) {
                        let t = Target::Counter(id);
                        step(t, self.want.write(make, t));
                        self.counts.make(id);
                    }
                }
                _ => {}
            }
        }
        for t in &dirty {
            if is_entry(t) {
                step(*t, self.want.write(make, *t));
            }
        }
        for (what, command) in steps {
            self.queue.push_back(Step {
                what,
                scope: Scope::All,
                opens: false,
                command,
            });
        }
    }

    /// The lists, what guards that of the rows, and the bindings.
    fn list(&self) -> Vec<Command> {
        let mut all = Vec::new();
        let own = |stage: &u16| *stage != raw::TND_ACL_FLOW_EGRESS;
        for stage in self.known.stages().filter(own) {
            all.push(ports::list(stage, self.setup.slice.list(stage, 0)));
        }
        let guards = self.guards();
        all.extend(guards.iter().map(|g| Command::of(raw::TND_OP_CREATE, g)));
        for (p, _) in &self.ports.list {
            all.extend(self.lists_of(p.port));
        }
        all
    }

    /// A port's own list, and its bindings.
    pub(crate) fn lists_of(&self, port: u8) -> impl Iterator<Item = Command> + use<> {
        let slice = self.setup.slice;
        let stages = || self.known.stages();
        let own = stages().filter(|stage| *stage == raw::TND_ACL_FLOW_EGRESS);
        let lists = own.map(move |stage| ports::list(stage, slice.list(stage, port)));
        let binds = stages().map(move |stage| ports::bind(port, stage, slice.list(stage, port)));
        lists.chain(binds)
    }
}
