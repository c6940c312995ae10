//! How long flow ports answer by entries that nobody looks after: timeouts of flows are their driver's to end.
//!
//! ```text
//!                      a command, a packet, an attach
//!                    ┌─────────────┐
//!                    ▼             │
//!              looked after ───────┴── nothing for so long ──► over: flow ports give every frame to the CPU
//!                ▲      ▲                                                │                 │
//!                │      └── what was added to the ports goes ── a sign of the driver        │
//!                └───── it reads what they do, and opens them itself ── another attach ◄───┘
//! ```
//!
//! A driver that was killed has told nothing and one that is stopped tells nothing: both are silent, and both are told from
//! one that has nothing to do because that one sends a `TND_OP_NOP` each second; one that never sent one in its session may
//! have nothing to do, and is believed while it is attached. A session that ends soon without any has looked after nothing:
//! what stood before it stands, and its time goes on from the session before, so that one that crashes again and again has
//! an end as well. A switch chip can do no more for a flow than
//! count its hits; that a port traps is one bit, and the next driver finds it in what it reads.

use std::time::Duration;

use tandem_abi::raw;
use tandem_mgmt::types::DeadlineStatus;
use tandem_pipeline::State;
use tandem_pipeline::state::PortConfig;

/// A session that lasted so long counts, also without a sign: a driver of before there were signs gives none, and one that
/// writes all the while has no time for one.
const COUNTS_NS: u64 = 10_000_000_000;

/// Flow ports trap, all of them.
#[derive(Clone, Debug)]
struct Over {
    since_ns: u64,
    /// Those that did not before. Empty: they are the next driver's to open.
    ports: Vec<u16>,
}

/// A warm session that has not counted yet: when it began, who was there last before it, and until when.
#[derive(Clone, Debug)]
struct Begun {
    at_ns: u64,
    driver: Option<String>,
    seen_ns: u64,
}

/// Who looks after the flows, and until when they are believed.
#[derive(Clone, Debug, Default)]
pub struct Deadline {
    /// None: for ever.
    limit_ns: Option<u64>,
    attached: bool,
    /// It says when it has nothing to do.
    signs: bool,
    driver: Option<String>,
    seen_ns: u64,
    begun: Option<Begun>,
    over: Option<Over>,
}

/// All flow ports, as they are configured.
fn flow_ports(state: &State) -> impl Iterator<Item = (u16, PortConfig)> {
    let all = (1..=state.last_port()).filter(|n| state.has_port(*n));
    let all = all.filter_map(|n| Some((n, state.port(n)?.config)));
    all.filter(|(_, c)| c.flags & raw::TND_PORT_FLOWS != 0)
}

/// Those that forward.
fn open_ports(state: &State) -> impl Iterator<Item = (u16, PortConfig)> {
    flow_ports(state).filter(|(_, c)| c.flags & raw::TND_PORT_TRAP_ALL == 0)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl Deadline {
    /// None: no end. Nobody has looked after anything since now.
    pub fn new(limit: Option<Duration>, now_ns: u64) -> Deadline {
        let ns = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        Deadline {
            limit_ns: limit.map(ns),
            seen_ns: now_ns,
            ..Deadline::default()
        }
    }

    /// A driver attaches: what ports do it reads, and those that trap do until it opens one. `warm`: what stands there is
    /// others', and it has looked at none of it yet.
    pub fn attached(&mut self, driver: String, warm: bool, now_ns: u64) {
        self.begun = warm.then(|| Begun {
            at_ns: now_ns,
            driver: self.driver.clone(),
            seen_ns: self.seen_ns,
        });
        self.driver = Some(driver);
        (self.attached, self.signs, self.seen_ns) = (true, false, now_ns);
        if let Some(over) = &mut self.over {
            over.ports.clear();
        }
    }

    /// Nobody is attached any more. One that was silent has been gone for longer.
    pub fn detached(&mut self, now_ns: u64) {
        let silent = self.is_silent(now_ns);
        if !std::mem::take(&mut self.attached) {
            return;
        }
        let soon = |b: &Begun| now_ns.saturating_sub(b.at_ns) < COUNTS_NS;
        if let Some(before) = self.begun.take().filter(soon) {
            (self.driver, self.seen_ns) = (before.driver, before.seen_ns);
        } else if !silent {
            self.seen_ns = now_ns;
        }
    }

    /// It is gone, or would have said something.
    fn is_silent(&self, now_ns: u64) -> bool {
        let over = |limit_ns| now_ns.saturating_sub(self.seen_ns) >= limit_ns;
        (self.signs || !self.attached) && self.limit_ns.is_some_and(over)
    }

    /// The driver has said something (`sign`: a `TND_OP_NOP` is in it), and nothing of that is done yet: ports that trap
    /// because it was silent are as it has them again.
    pub fn heard(&mut self, state: &mut State, sign: bool, now_ns: u64) {
        let silent_ns = now_ns.saturating_sub(self.seen_ns);
        self.seen_ns = now_ns;
        self.signs |= sign;
        if sign {
            self.begun = None;
        }
        let Some(over) = self.over.take_if(|o| !o.ports.is_empty()) else {
            return;
        };
        for port in over.ports {
            let Some(mut config) = state.port(port).map(|p| p.config) else {
                continue;
            };
            config.flags &= !raw::TND_PORT_TRAP_ALL;
            if let Err(e) = state.set_port(port, config) {
                tracing::error!("swp{port}: {e}");
            }
        }
        tracing::info!(
            "driver {} is heard again after {} s: flow ports forward",
            self.who(),
            silent_ns / 1_000_000_000
        );
    }

    /// Now and then. `pending`: commands of the driver are not executed yet, so it is the chip that it waits for, and what
    /// it wants of ports may be among them.
    pub fn turn(&mut self, state: &mut State, pending: bool, now_ns: u64) {
        if pending && self.attached {
            self.seen_ns = now_ns;
        }
        if self.over.is_some() {
            if open_ports(state).next().is_some() || flow_ports(state).next().is_none() {
                self.over = None;
            }
            return;
        }
        if !self.is_silent(now_ns) || flow_ports(state).next().is_none() {
            return;
        }
        let open: Vec<(u16, PortConfig)> = open_ports(state).collect();
        let mut ports = Vec::new();
        for (port, mut config) in open {
            config.flags |= raw::TND_PORT_TRAP_ALL;
            match state.set_port(port, config) {
                Ok(()) => ports.push(port),
                Err(e) => tracing::error!("swp{port}: {e}"),
            }
        }
        let since_ns = now_ns;
        self.over = Some(Over { since_ns, ports });
        tracing::warn!("{}", self.over_text(now_ns));
    }

    fn who(&self) -> &str {
        self.driver.as_deref().unwrap_or("nobody")
    }

    /// That it is over, and whose flows they were.
    fn over_text(&self, now_ns: u64) -> String {
        let silent = now_ns.saturating_sub(self.seen_ns) / 1_000_000_000;
        let what = match (self.attached, self.is_silent(now_ns)) {
            (true, false) => "is here, and has opened none yet".to_owned(),
            (true, true) => {
                format!("says nothing for {silent} s, and nobody looks after its flows")
            }
            (false, _) => format!("is gone for {silent} s, and nobody looks after its flows"),
        };
        let who = self.who();
        format!("flow ports give every frame to the CPU: driver {who} {what}")
    }

    /// For `/v1/status`. None: it has no end.
    pub fn status(&self, state: &State, now_ns: u64) -> Option<DeadlineStatus> {
        let limit_ns = self.limit_ns?;
        let silent_ns = now_ns.saturating_sub(self.seen_ns);
        let runs = self.over.is_none() && (self.signs || !self.attached);
        let waits = runs && open_ports(state).next().is_some();
        let over = self.over.as_ref();
        Some(DeadlineStatus {
            after_s: seconds(limit_ns),
            driver: self.driver.clone(),
            silent_s: seconds(silent_ns),
            traps_in_s: waits.then(|| seconds(limit_ns.saturating_sub(silent_ns))),
            trapping_s: over.map(|o| seconds(now_ns.saturating_sub(o.since_ns))),
        })
    }

    /// What a person should know.
    pub fn warning(&self, state: &State, now_ns: u64) -> Option<String> {
        if self.over.is_some() {
            return Some(self.over_text(now_ns));
        }
        let s = self.status(state, now_ns)?;
        let left = s.traps_in_s.filter(|_| !self.attached)?;
        Some(format!(
            "flow ports forward by what driver {} has left, which is gone for {:.0} s: in {left:.0} s they give every frame to the CPU",
            self.who(),
            s.silent_s
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_firmware::{Firmware, Profile};

    const S: u64 = 1_000_000_000;
    const FLOWS: u32 = raw::TND_PORT_FLOWS | raw::TND_PORT_UP;
    const TRAPS: u32 = FLOWS | raw::TND_PORT_TRAP_ALL;

    struct Bed {
        fw: Firmware,
        d: Deadline,
    }

    impl Bed {
        /// Flow ports 1 and 2, of which the second traps already, and port 3, a bridge's; a driver since 100 s.
        fn new(limit: Option<u64>) -> Bed {
            let mut fw = Firmware::new(Profile::builtin("nxp-t1040").unwrap()).unwrap();
            for (port, flags) in [(1, FLOWS), (2, TRAPS), (3, raw::TND_PORT_UP)] {
                let mut config = fw.state.port(port).unwrap().config;
                config.flags = flags;
                fw.state.set_port(port, config).unwrap();
            }
            let mut d = Deadline::new(limit.map(Duration::from_secs), 40 * S);
            d.attached("ofagentd (pid 7)".into(), false, 100 * S);
            d.heard(&mut fw.state, true, 100 * S);
            Bed { fw, d }
        }

        fn heard(&mut self, s: u64) {
            self.d.heard(&mut self.fw.state, false, s * S);
        }

        fn set(&mut self, port: u16, flags: u32) {
            let mut config = self.fw.state.port(port).unwrap().config;
            config.flags = flags;
            self.fw.state.set_port(port, config).unwrap();
        }

        fn said(&self, s: u64) -> String {
            self.d.warning(&self.fw.state, s * S).unwrap_or_default()
        }

        fn at(&mut self, s: u64) -> [u32; 3] {
            self.d.turn(&mut self.fw.state, false, s * S);
            [1, 2, 3].map(|n| self.fw.state.port(n).unwrap().config.flags)
        }

        fn told(&self, s: u64) -> DeadlineStatus {
            self.d.status(&self.fw.state, s * S).unwrap()
        }
    }

    const OPEN: [u32; 3] = [FLOWS, TRAPS, raw::TND_PORT_UP];
    const SHUT: [u32; 3] = [TRAPS, TRAPS, raw::TND_PORT_UP];

    #[test]
    fn flow_ports_of_a_driver_that_is_gone_trap_when_its_time_is_up() {
        let mut b = Bed::new(Some(300));
        b.heard(150);
        b.d.detached(200 * S);
        assert!(
            b.d.warning(&b.fw.state, 210 * S)
                .unwrap()
                .contains("in 290 s")
        );
        assert_eq!(b.at(499), OPEN);
        let told = b.told(499);
        assert_eq!(
            (told.silent_s, told.traps_in_s, told.trapping_s),
            (299.0, Some(1.0), None)
        );
        assert_eq!(b.at(500), SHUT);
        let told = b.told(510);
        assert_eq!(
            (told.silent_s, told.traps_in_s, told.trapping_s),
            (310.0, None, Some(10.0))
        );
        assert_eq!(told.driver.as_deref(), Some("ofagentd (pid 7)"));
        let said = b.d.warning(&b.fw.state, 510 * S).unwrap();
        assert!(
            said.contains("ofagentd (pid 7) is gone for 310 s"),
            "{said}"
        );
        // the next one sees that they trap; if it ends before it opens them, they trap on
        b.d.attached("ofagentd (pid 8)".into(), true, 600 * S);
        b.heard(601);
        assert_eq!(b.at(602), SHUT);
        assert_eq!(b.told(602).trapping_s, Some(102.0));
        assert!(b.said(602).contains("(pid 8) is here, and has opened none"));
        b.d.detached(603 * S);
        assert_eq!(b.at(604), SHUT);
        // who has looked after nothing is not who was there last
        let told = b.told(610);
        assert_eq!(
            (told.silent_s, told.traps_in_s, told.trapping_s),
            (410.0, None, Some(110.0))
        );
        assert!(b.said(610).contains("(pid 7) is gone for 410 s"));
        // the next one opens them
        b.d.attached("ofagentd (pid 9)".into(), true, 700 * S);
        b.heard(701);
        b.set(1, FLOWS);
        assert_eq!(b.at(702), OPEN);
        assert_eq!(b.told(702).trapping_s, None);
        assert_eq!(b.said(702), "");
    }

    #[test]
    fn ports_that_trap_for_their_driver_forward_nothing_that_could_end() {
        let mut b = Bed::new(Some(300));
        b.set(1, TRAPS);
        b.d.detached(200 * S);
        assert_eq!(b.at(210), SHUT);
        let told = b.told(210);
        assert_eq!((told.traps_in_s, told.trapping_s), (None, None));
        assert_eq!(b.said(210), "");
        assert_eq!(b.at(500), SHUT);
        assert!(b.said(501).contains("is gone for 301 s"));
        // who was silent with them all trapping finds that they do
        let mut b = Bed::new(Some(300));
        b.set(1, TRAPS);
        assert_eq!(b.at(400), SHUT);
        b.heard(410);
        assert_eq!(b.at(411), SHUT);
    }

    #[test]
    fn who_waits_for_the_chip_or_never_gave_a_sign_is_not_silent() {
        let mut b = Bed::new(Some(300));
        b.d.turn(&mut b.fw.state, true, 399 * S);
        assert_eq!(b.at(400), OPEN);
        assert_eq!(b.at(698), OPEN);
        assert_eq!(b.at(699), SHUT);
        // of before there were signs: while it is here it is believed
        let mut b = Bed::new(Some(300));
        b.d.detached(110 * S);
        b.d.attached("ofagentd (pid 8)".into(), true, 111 * S);
        b.heard(112);
        assert_eq!(b.at(1000), OPEN);
        assert_eq!(b.told(1000).traps_in_s, None);
        b.d.detached(1000 * S);
        assert_eq!(b.at(1299), OPEN);
        assert_eq!(b.told(1299).traps_in_s, Some(1.0));
        assert_eq!(b.at(1300), SHUT);
    }

    #[test]
    fn one_that_crashes_again_and_again_looks_after_nothing() {
        // before its first sign: the time goes on, whoever attaches
        let mut b = Bed::new(Some(300));
        b.d.detached(200 * S);
        let mut shut = None;
        for n in 0..200 {
            let at = 201 + 2 * n;
            b.d.attached(format!("ofagentd (pid {at})"), true, at * S);
            b.heard(at);
            b.d.turn(&mut b.fw.state, true, at * S);
            b.d.detached(at * S + S / 2);
            if b.at(at + 1) == SHUT {
                shut = shut.or(Some(at + 1));
            }
        }
        assert_eq!(shut, Some(500));
        assert!(b.said(600).contains("(pid 7) is gone for 400 s"));
        // one that has come so far as to give a sign has ended what was overdue, and so has one that was there for long
        for (sign, lasts) in [(true, 2), (false, 10)] {
            let mut b = Bed::new(Some(300));
            b.d.detached(200 * S);
            b.d.attached("ofagentd (pid 8)".into(), true, 400 * S);
            b.d.heard(&mut b.fw.state, sign, 401 * S);
            b.d.detached((400 + lasts) * S);
            assert_eq!(b.at(699 + lasts), OPEN);
            assert_eq!(b.at(700 + lasts), SHUT);
            assert!(b.said(701 + lasts).contains("(pid 8) is gone for 301 s"));
        }
        // what stands after a cold attach it has written itself
        let mut b = Bed::new(Some(300));
        b.d.detached(200 * S);
        b.d.attached("ofagentd (pid 8)".into(), false, 400 * S);
        b.heard(400);
        b.d.detached(401 * S);
        assert_eq!(b.at(700), OPEN);
        assert_eq!(b.at(701), SHUT);
    }

    #[test]
    fn before_any_driver_it_is_silent_since_the_start() {
        let fw = Firmware::new(Profile::builtin("nxp-t1040").unwrap()).unwrap();
        let d = Deadline::new(Some(Duration::from_secs(300)), 5000 * S);
        let told = d.status(&fw.state, 5002 * S).unwrap();
        assert_eq!((told.silent_s, told.driver), (2.0, None));
    }

    #[test]
    fn one_that_was_silent_finds_its_ports_as_it_left_them() {
        let mut b = Bed::new(Some(300));
        assert_eq!(b.at(399), OPEN);
        assert_eq!(b.at(400), SHUT);
        let said = b.d.warning(&b.fw.state, 400 * S).unwrap();
        assert!(said.contains("says nothing for 300 s"), "{said}");
        b.heard(450);
        assert_eq!(b.at(451), OPEN);
        // and its time begins anew
        assert_eq!(b.at(749), OPEN);
        assert_eq!(b.at(750), SHUT);
        // one that ends meanwhile has been gone since it was heard last; its ports are the next one's to open
        b.d.detached(800 * S);
        assert_eq!(b.told(800).silent_s, 350.0);
        b.d.attached("another".into(), true, 900 * S);
        b.heard(900);
        assert_eq!(b.at(901), SHUT);
    }

    #[test]
    fn without_a_limit_or_flow_ports_nothing_happens() {
        let mut b = Bed::new(None);
        b.d.detached(200 * S);
        assert_eq!(b.at(1 << 30), OPEN);
        assert_eq!(b.d.status(&b.fw.state, 300 * S), None);
        assert_eq!(b.d.warning(&b.fw.state, 300 * S), None);
        let mut b = Bed::new(Some(300));
        for port in [1, 2] {
            b.fw.state.set_port(port, PortConfig::default()).unwrap();
        }
        b.d.detached(200 * S);
        b.at(600);
        let told = b.told(600);
        assert_eq!((told.traps_in_s, told.trapping_s), (None, None));
        assert_eq!(b.d.warning(&b.fw.state, 600 * S), None);
    }
}
