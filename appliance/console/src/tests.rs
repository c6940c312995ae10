// SPDX-License-Identifier: Apache-2.0
//! What the tests have together: an engine that carries nothing out, and refuses on demand.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, mpsc};

use tandem_swconfig::{Config, Engine, Kind, Link, Name, Station};

use crate::session::{Door, Session};
use crate::{Store, Switch, lock};

mod acl;
mod channel;
mod everyday;
mod files;
mod lines;
mod monitor;
mod policy;
mod probe;
mod property;
mod revert;
mod routing;
mod services;
mod shell;
mod shown;
mod snooping;
mod store;
mod turns;
mod users;

/// What a fake does, for the test to look at and to change.
#[derive(Default)]
pub(crate) struct Fake {
    pub applied: Vec<Config>,
    /// Refuses a configuration that has this VLAN, in these words.
    pub refuse: Option<(u16, &'static str)>,
    pub stations: Vec<Station>,
    pub forgotten: Vec<(Option<u16>, Option<Name>)>,
    pub tree: Option<tandem_swconfig::tree::View>,
    /// Of IGMP; of MLD it does not snoop.
    pub snooping: tandem_swconfig::snooping::View,
    /// What comes back to the questions of `ping`, and those who asked: from where, and what.
    pub echoes: Arc<Mutex<probe::Echoes>>,
    /// What routing protocols were asked, and told.
    pub asked: Mutex<Vec<tandem_swconfig::routing::Ask>>,
    pub neighbours: Vec<(Name, std::net::IpAddr, Option<[u8; 6]>)>,
    pub learned: Vec<tandem_swconfig::routing::Learned>,
    pub matches: BTreeMap<(bool, String, u32), u64>,
    pub policed: BTreeMap<(Name, String), [u64; 2]>,
    /// What there is to say of each configuration with a router, and what has not been said yet.
    pub away: Option<&'static str>,
    pub notes: Vec<String>,
    /// Carries nothing out until this gate is opened: the test knows by the first that somebody is there.
    pub gate: Option<Gate>,
}

type Gate = (mpsc::Sender<()>, Arc<Mutex<mpsc::Receiver<()>>>);

pub(crate) struct FakeEngine(pub Arc<Mutex<Fake>>);

pub(crate) fn port(number: u16) -> Name {
    Name {
        kind: if number > 8 {
            Kind::TenGigabit
        } else {
            Kind::Gigabit
        },
        number,
    }
}

pub(crate) fn vlan_interface(number: u16) -> Name {
    Name {
        kind: Kind::Vlan,
        number,
    }
}

impl Engine for FakeEngine {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn ports(&self) -> Vec<Name> {
        (1..=10).map(port).collect()
    }

    fn called(&self) -> Vec<(Name, String)> {
        let called = |n: u16| (port(n), format!("swp{n}"));
        (1..=10).map(called).collect()
    }

    fn apply(&self, was: &Config, now: &Config) -> Result<(), String> {
        let gate = self.0.lock().unwrap().gate.clone();
        if let Some((here, open)) = gate {
            here.send(()).unwrap();
            open.lock().unwrap().recv().unwrap();
        }
        let mut fake = self.0.lock().unwrap();
        if let Some((vlan, why)) = fake.refuse
            && now.vlans.contains_key(&vlan)
        {
            return Err(why.into());
        }
        let told = now.routers != was.routers && !now.routers.is_empty();
        let away = fake.away.filter(|_| told);
        fake.notes.extend(away.map(str::to_owned));
        fake.applied.push(now.clone());
        Ok(())
    }

    /// Odd ports have carrier, and port-channels with such; VLAN interfaces have.
    fn links(&self) -> Vec<Link> {
        let fake = self.0.lock().unwrap();
        let of = fake.applied.last().cloned().unwrap_or_default();
        let above = |n: &Name| matches!(n.kind, Kind::Vlan | Kind::PortChannel);
        let names = of.interfaces.keys().copied().filter(above);
        let link = |name: Name| Link {
            name,
            linux: if name.is_port() {
                format!("swp{}", name.number)
            } else {
                format!("vlan{}", name.number)
            },
            mac: [2, 0, 0, 0, u8::from(!name.is_port()), name.number as u8],
            carrier: match name.kind {
                Kind::Vlan => true,
                Kind::PortChannel => of.members(name.number).any(|n| n.number % 2 == 1),
                _ => name.number % 2 == 1,
            },
            speed: match name.kind {
                Kind::TenGigabit => 10_000,
                Kind::Gigabit => 1000,
                _ => 0,
            },
            counters: [10, 1000, 20, 2000],
        };
        (1..=10).map(port).chain(names).map(link).collect()
    }

    fn stations(&self) -> Vec<Station> {
        self.0.lock().unwrap().stations.clone()
    }

    fn matches(&self) -> BTreeMap<(bool, String, u32), u64> {
        self.0.lock().unwrap().matches.clone()
    }

    fn policed(&self) -> BTreeMap<(Name, String), [u64; 2]> {
        self.0.lock().unwrap().policed.clone()
    }

    fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().notes)
    }

    fn spanning_tree(&self) -> Option<tandem_swconfig::tree::View> {
        self.0.lock().unwrap().tree.clone()
    }

    fn snooping(
        &self,
        of: tandem_swconfig::snooping::Protocol,
    ) -> Option<tandem_swconfig::snooping::View> {
        let is = of == tandem_swconfig::snooping::Protocol::Igmp;
        is.then(|| self.0.lock().unwrap().snooping.clone())
    }

    fn prober(
        &self,
        source: Option<std::net::Ipv4Addr>,
    ) -> Result<Box<dyn tandem_swconfig::probe::Prober>, String> {
        Ok(Box::new(probe::Echo::new(
            Arc::clone(&self.0.lock().unwrap().echoes),
            source,
        )))
    }

    fn protocols(&self, what: tandem_swconfig::routing::Ask) -> Result<String, String> {
        self.0.lock().unwrap().asked.lock().unwrap().push(what);
        Ok(String::new())
    }

    fn neighbours(&self) -> Vec<(Name, std::net::IpAddr, Option<[u8; 6]>)> {
        self.0.lock().unwrap().neighbours.clone()
    }

    fn forget_neighbours(&self) -> Result<(), String> {
        self.0.lock().unwrap().neighbours.clear();
        Ok(())
    }

    fn learned(&self) -> Vec<tandem_swconfig::routing::Learned> {
        self.0.lock().unwrap().learned.clone()
    }

    fn forget_stations(&self, vlan: Option<u16>, port: Option<&Name>) -> Result<(), String> {
        self.0.lock().unwrap().forgotten.push((vlan, port.copied()));
        Ok(())
    }
}

/// Files in memory.
#[derive(Clone, Default)]
pub(crate) struct Memory(pub Arc<Mutex<BTreeMap<String, String>>>);

impl Store for Memory {
    fn read(&self, name: &str) -> io::Result<Option<String>> {
        Ok(self.0.lock().unwrap().get(name).cloned())
    }

    fn write(&mut self, name: &str, text: &str) -> io::Result<()> {
        self.0.lock().unwrap().insert(name.into(), text.into());
        Ok(())
    }

    fn list(&self) -> io::Result<crate::store::Listed> {
        let all = self.0.lock().unwrap();
        let entry = |(name, text): (&String, &String)| crate::store::Entry {
            name: name.clone(),
            size: text.len() as u64,
            modified: std::time::UNIX_EPOCH + std::time::Duration::from_secs(951_827_696),
        };
        Ok((all.iter().map(entry).collect(), (1000, 400)))
    }

    fn erase(&mut self, name: &str) -> io::Result<()> {
        self.0.lock().unwrap().remove(name);
        Ok(())
    }
}

/// A switch of ten ports, and a session at it.
pub(crate) struct Bench {
    pub switch: Arc<Mutex<Switch>>,
    pub fake: Arc<Mutex<Fake>>,
    pub files: Memory,
    pub session: Session,
}

impl Bench {
    pub fn new() -> Bench {
        let (fake, files) = (Arc::default(), Memory::default());
        let engine = Arc::new(FakeEngine(Arc::clone(&fake)));
        let switch = Switch::new(engine, Box::new(files.clone()));
        let switch = Arc::new(Mutex::new(switch));
        let session = Session::new(Arc::clone(&switch), Door::cli());
        Bench {
            switch,
            fake,
            files,
            session,
        }
    }

    /// Types a line, and says what it says.
    pub fn say(&mut self, line: &str) -> String {
        self.session.line(line).text
    }

    /// Types lines of which none says anything.
    pub fn quiet(&mut self, lines: &[&str]) {
        for line in lines {
            let text = self.say(line);
            assert_eq!(text, "", "{line}");
        }
    }

    /// From exec mode: lines of configuration mode, and back.
    pub fn set(&mut self, lines: &[&str]) {
        self.say("configure terminal");
        self.quiet(lines);
        self.quiet(&["end"]);
    }

    pub fn config(&self) -> Config {
        Config::clone(&lock(&self.switch).config)
    }
}
