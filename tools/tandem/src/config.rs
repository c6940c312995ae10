//! What a switch is started with: the command line of `tandem up`, its file, and the instance's `config.toml`.

use crate::Usage;
use crate::args::Up;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tandem_mgmt::{Daemon, Instance};

/// What swcfgd is told that takes switchd's place.
const CHIP: [&str; 2] = ["--engine", "chip"];
const DEFAULT_PROFILE: &str = "spectrum-sn2700";

/// What `-f FILE` may say; the instance's own config.toml has the same form.
#[derive(Serialize, Deserialize, Default, Clone, PartialEq, Eq, Debug)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Chip profile
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// `kernel`, `chip`, or `auto`: the one that this kernel can have
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// `trap` or `fail`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Charge the chip's latencies
    pub latency: bool,
    /// A plan of faults that the chip starts with
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<String>,
    /// Seconds that flow ports forward without a driver; 0: for ever
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_deadline: Option<u64>,
    /// Log level
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// `swp1 = "eth3"`
    pub ports: BTreeMap<String, String>,
    /// `swp1 = 4`: ports that are split
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub split: BTreeMap<String, u16>,
    /// `[storm.swp1]`, `broadcast = 500`: packets a second by kind, by port
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub storm: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Config {
    pub fn read(path: &Path) -> Result<Self> {
        let text = match fs::read_to_string(path) {
            // what can't be read now may be readable later; what is no text stays so
            Err(e) if e.kind() == std::io::ErrorKind::InvalidData => {
                bail!(Usage(format!("{}: {e}", path.display())))
            }
            text => text.with_context(|| format!("read {}", path.display()))?,
        };
        let config: Config = toml::from_str(&text)
            .map_err(|e| Usage(format!("{}: {}", path.display(), e.message())))?;
        for (name, cable) in &config.ports {
            check_port(name, cable)?;
        }
        for (what, said, words) in [
            ("engine", &config.engine, &["kernel", "chip", "auto"][..]),
            ("policy", &config.policy, &["trap", "fail"][..]),
        ] {
            if let Some(said) = said.as_deref().filter(|s| !words.contains(s)) {
                let (words, path) = (words.join(" or "), path.display());
                bail!(Usage(format!("{path}: {what} is {words}, not {said}")));
            }
        }
        if let Some(s) = config.flow_deadline {
            tandem_mgmt::deadline::parse(&s.to_string())
                .map_err(|e| Usage(format!("{}: flow_deadline: {e}", path.display())))?;
        }
        Ok(config)
    }

    /// What the instance was started with last. It is never empty: one that is was cut short, and says nothing of the cables.
    pub fn own(instance: &Instance) -> Result<Self> {
        let file = instance.config_file();
        if fs::metadata(&file).is_ok_and(|m| m.len() == 0) {
            bail!(
                "{} is empty, so what the switch was started with is lost: name profile and ports again",
                file.display()
            );
        }
        Self::read(&file)
    }

    /// The file's or the last start's settings with the command line's laid over.
    pub fn resolve(instance: &Instance, up: &Up) -> Result<Self> {
        let last = instance.config_file();
        let mut config = match &up.file {
            Some(path) => Self::read(path)?,
            // `tandem up` alone starts what was there before
            None if up.is_bare() && last.exists() => Self::own(instance)?,
            None => Config::default(),
        };
        if let Some(p) = &up.profile {
            config.profile = Some(p.clone());
        }
        if let Some(e) = up.engine {
            config.engine = Some(e.as_str().into());
        }
        if let Some(p) = up.policy {
            config.policy = Some(p.as_str().into());
        }
        if let Some(l) = &up.log {
            config.log = Some(l.clone());
        }
        config.latency |= up.latency;
        if let Some(f) = &up.faults {
            config.faults = Some(f.clone()).filter(|f| f != "none");
        }
        for port in &up.ports {
            let Some((name, cable)) = port.split_once('=') else {
                bail!(Usage(format!(
                    "--port {port}: wanted swpN=CABLE, such as swp1=eth3"
                )));
            };
            check_port(name, cable)?;
            config.ports.insert(name.into(), cable.into());
        }
        for split in &up.splits {
            let parts = split
                .split_once('=')
                .and_then(|(name, parts)| Some((name, parts.parse().ok()?)));
            let Some((name, parts)) = parts else {
                bail!(Usage(format!(
                    "--split {split}: wanted swpN=PARTS, such as swp1=4"
                )));
            };
            config.split.insert(name.into(), parts);
        }
        if let Some(log) = &config.log {
            tandem_mgmt::log::check(log).map_err(Usage)?;
        }
        config.is_of_one_engine()?;
        config.paths_are_absolute()?;
        Ok(config)
    }

    /// What is said has to be something that the engine has.
    fn is_of_one_engine(&self) -> Result<()> {
        if self.is_chip()
            && (self.policy.is_some() || !self.split.is_empty() || !self.storm.is_empty())
        {
            bail!(Usage(
                "engine chip has no policy, split ports or storm limits: those are switchd's"
                    .into()
            ));
        }
        Ok(())
    }

    /// `engine = "auto"` becomes the one that this kernel can have, as `asked` (swcfgd) says: its word, and in the next
    /// line why. Which one and why, where it was asked for.
    pub fn settle(&mut self, asked: impl FnOnce() -> Result<String>) -> Result<Option<String>> {
        if self.engine.as_deref() != Some("auto") {
            return Ok(None);
        }
        let said = asked()?;
        let (engine, why) = match said.split_once('\n') {
            Some((engine @ ("kernel" | "chip"), why)) => (engine, why.trim()),
            _ => bail!("swcfgd does not say which engine this kernel can have: name one"),
        };
        self.engine = Some(engine.to_owned());
        self.is_of_one_engine()?;
        Ok(Some(format!("engine {engine}: {why}")))
    }

    fn engine(&self) -> &str {
        self.engine.as_deref().unwrap_or("kernel")
    }

    /// Are the VLANs the appliance's?
    pub fn is_chip(&self) -> bool {
        self.engine() == "chip"
    }

    /// The daemons of such a switch, in the order in which they start.
    pub fn daemons(&self) -> Vec<Daemon> {
        let mut all = vec![Daemon::Asicd, Daemon::Switchd];
        // without a word about it the kernel is ruled by `ip` and `bridge` alone
        if self.has_console() {
            all.push(Daemon::Swcfgd);
        }
        all
    }

    /// Has it engine kernel's console, beside switchd?
    pub fn has_console(&self) -> bool {
        self.engine.as_deref() == Some("kernel")
    }

    /// The program that is this daemon.
    pub fn program(&self, daemon: Daemon) -> &'static str {
        match daemon {
            Daemon::Switchd if self.is_chip() => "swcfgd",
            _ => daemon.name(),
        }
    }

    /// Makes it independent of the folder that `tandem up` was called from.
    fn paths_are_absolute(&mut self) -> Result<()> {
        // as asicd tells a file from a name of its own
        if let Some(p) = &mut self.profile
            && (p.contains('/') || p.ends_with(".toml"))
        {
            *p = absolute(p)?;
        }
        if let Some(f) = &mut self.faults {
            *f = absolute(f)?;
        }
        for cable in self.ports.values_mut() {
            *cable = absolute_cable(cable)?;
        }
        Ok(())
    }

    pub fn profile(&self) -> &str {
        self.profile.as_deref().unwrap_or(DEFAULT_PROFILE)
    }

    fn policy(&self) -> &str {
        self.policy.as_deref().unwrap_or("trap")
    }

    /// Storm limits as words, with those that `of` has.
    fn storms(&self, of: &Self) -> String {
        let limits = of.storm.iter().flat_map(|(port, kinds)| {
            kinds.keys().map(move |kind| {
                let rate = self.storm.get(port).and_then(|kinds| kinds.get(kind));
                let rate = rate.map_or_else(|| "off".into(), ToString::to_string);
                format!("{port} {kind} {rate}")
            })
        });
        limits.collect::<Vec<_>>().join(", ")
    }

    /// What runs and is other than wanted, if a daemon runs that would not take it: `policy trap, not fail`.
    pub fn other_than(&self, wanted: &Self, asicd: bool, switchd: bool) -> Option<String> {
        let ports = |c: &Self| listed(&c.ports, "no cables");
        let split = |c: &Self| listed(&c.split, "none");
        let log = |c: &Self| c.log.as_deref().unwrap_or("info").to_owned();
        let latency = |c: &Self| if c.latency { "on" } else { "off" }.to_owned();
        let faults = |c: &Self| c.faults.as_deref().unwrap_or("none").to_owned();
        let deadline = |c: &Self| c.flow_deadline.unwrap_or(0).to_string();
        let all = [
            (
                asicd,
                "profile",
                self.profile().to_owned(),
                wanted.profile().to_owned(),
            ),
            (asicd, "ports", ports(self), ports(wanted)),
            (asicd, "latency", latency(self), latency(wanted)),
            (asicd, "faults", faults(self), faults(wanted)),
            (asicd, "flow_deadline", deadline(self), deadline(wanted)),
            (
                switchd,
                "engine",
                self.engine().to_owned(),
                wanted.engine().to_owned(),
            ),
            // a switchd that starts could split anew, but not under what the chip holds of the one before
            (true, "split", split(self), split(wanted)),
            (
                switchd,
                "policy",
                self.policy().to_owned(),
                wanted.policy().to_owned(),
            ),
            (true, "log", log(self), log(wanted)),
            // `tandem port storm` may have set others since: only what is asked for has to be so
            (
                switchd,
                "storm limits",
                self.storms(wanted),
                wanted.storms(wanted),
            ),
        ];
        let other: Vec<String> = all
            .into_iter()
            .filter(|(counts, _, here, there)| *counts && here != there)
            .map(|(_, what, here, there)| format!("{what} {here}, not {there}"))
            .collect();
        (!other.is_empty()).then(|| other.join("; "))
    }

    /// The daemon's own command line.
    pub fn words(&self, instance: &Instance, daemon: Daemon) -> Vec<String> {
        let mut w = vec!["--name".to_owned(), instance.name().to_owned()];
        match daemon {
            Daemon::Asicd => {
                w.extend(["--profile".into(), self.profile().into()]);
                for (name, cable) in &self.ports {
                    w.extend(["--port".into(), format!("{name}={cable}")]);
                }
                if self.latency {
                    w.push("--latency".into());
                }
                if let Some(f) = &self.faults {
                    w.extend(["--faults".into(), f.clone()]);
                }
                if let Some(s) = self.flow_deadline {
                    w.extend(["--flow-deadline".into(), s.to_string()]);
                }
            }
            Daemon::Switchd if self.is_chip() => w.extend(CHIP.map(String::from)),
            Daemon::Switchd => {
                if let Some(p) = &self.policy {
                    w.extend(["--policy".into(), p.clone()]);
                }
                for (name, parts) in &self.split {
                    w.extend(["--split".into(), format!("{name}={parts}")]);
                }
                for (name, kinds) in &self.storm {
                    for (kind, rate) in kinds {
                        w.extend(["--storm".into(), format!("{name}={kind}:{rate}")]);
                    }
                }
            }
            Daemon::Swcfgd => w.extend(["--engine".into(), "kernel".into()]),
            // it has its own: tandem openflow up
            Daemon::Ofagentd => {}
        }
        if let Some(l) = &self.log {
            w.extend(["--log".into(), l.clone()]);
        }
        w
    }
}

/// `swp1=eth3 swp2=eth4`
fn listed<T: std::fmt::Display>(of: &BTreeMap<String, T>, none: &str) -> String {
    let all: Vec<String> = of.iter().map(|(k, v)| format!("{k}={v}")).collect();
    match all.is_empty() {
        true => none.to_owned(),
        false => all.join(" "),
    }
}

fn check_port(name: &str, cable: &str) -> Result<()> {
    let number = name
        .strip_prefix("swp")
        .and_then(|n| n.parse::<u16>().ok())
        .filter(|n| *n > 0);
    if number.is_none() {
        bail!(Usage(format!(
            "{name} is no port name: wanted swp1, swp2, …"
        )));
    }
    if cable.is_empty() {
        bail!(Usage(format!("{name} has no cable: wanted {name}=IFACE")));
    }
    Ok(())
}

/// Keeps a limit that switchd has taken (`rate` 0: it has none any more) for the next `tandem up`. If somebody else started
/// the daemons: where it can be kept.
pub fn keep_storm(
    instance: &Instance,
    port: &str,
    kind: &str,
    rate: u64,
) -> Result<Option<String>> {
    if !instance.config_file().exists() {
        return Ok(Some(format!(
            "it holds until both daemons have stopped: instance {} was not started by tandem up, put it into [storm.{port}] of its file",
            instance.name()
        )));
    }
    let _alone = alone(instance, Instant::now() + Duration::from_secs(5))
        .with_context(|| format!("keep the limit of {port} for the next tandem up"))?;
    let mut config = Config::own(instance)?;
    let kinds = config.storm.entry(port.to_owned()).or_default();
    match rate {
        0 => kinds.remove(kind),
        _ => kinds.insert(kind.to_owned(), rate),
    };
    config.storm.retain(|_, kinds| !kinds.is_empty());
    save(instance, &config)?;
    Ok(None)
}

/// Is a limit kept for the next `tandem up`?
pub fn has_storm(instance: &Instance, port: &str, kind: &str) -> Result<bool> {
    if !instance.config_file().exists() {
        return Ok(false);
    }
    let config = Config::own(instance)?;
    Ok(config
        .storm
        .get(port)
        .is_some_and(|kinds| kinds.contains_key(kind)))
}

/// The right to start daemons of an instance and to write its config.toml, until it is dropped: two calls at once would
/// each start a daemon, of which one can't run.
pub fn alone(instance: &Instance, end: Instant) -> Result<File> {
    let failed = || format!("lock {}", instance.dir().display());
    let dir = File::open(instance.dir()).with_context(failed)?;
    loop {
        match dir.try_lock() {
            Ok(()) => return Ok(dir),
            Err(TryLockError::Error(e)) => return Err(e).with_context(failed),
            Err(TryLockError::WouldBlock) if Instant::now() > end => bail!(
                "another tandem up or tandem port is at work on instance {}: call again when it is done",
                instance.name()
            ),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// What `tandem up` alone repeats: settings that a chip has started with.
pub fn save(instance: &Instance, config: &Config) -> Result<()> {
    replace(&instance.config_file(), toml::to_string(config)?.as_bytes())
}

/// Writes a file so that whoever reads it later, after a full disk, a kill or a power cut too, finds all of the old text or
/// all of the new.
pub fn replace(file: &Path, text: &[u8]) -> Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = file.with_file_name(name);
    let written = (|| {
        let mut to = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)?;
        to.write_all(text)?;
        // its bytes before its name: some file systems would do it the other way round
        to.sync_all()?;
        fs::rename(&new, file)?;
        match file.parent() {
            Some(dir) => File::open(dir)?.sync_all(),
            None => Ok(()),
        }
    })();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written.with_context(|| format!("write {}", file.display()))
}

/// A path that holds wherever the daemon's working directory is, and at the next `tandem up` from another folder.
fn absolute(path: &str) -> Result<String> {
    // an empty one is for the daemon to refuse
    if path.is_empty() {
        return Ok(String::new());
    }
    let whole = std::path::absolute(path).with_context(|| format!("find {path}"))?;
    whole.into_os_string().into_string().map_err(|whole| {
        Usage(format!(
            "{} is not UTF-8: give the whole path of {path} from another folder",
            Path::new(&whole).display()
        ))
        .into()
    })
}

/// A cable with the files and sockets in it as whole paths.
fn absolute_cable(cable: &str) -> Result<String> {
    let (kind, paths, rest) = match cable.split_once(':') {
        Some(("pcap", arg)) => {
            let mut parts = arg.splitn(3, ',');
            let paths: Vec<&str> = parts.by_ref().take(2).collect();
            ("pcap", paths, parts.next())
        }
        Some(("dgram", arg)) => ("dgram", arg.splitn(2, ',').collect(), None),
        _ => return Ok(cable.to_owned()),
    };
    let mut parts = paths
        .into_iter()
        .map(absolute)
        .collect::<Result<Vec<_>>>()?;
    parts.extend(rest.map(str::to_owned));
    Ok(format!("{kind}:{}", parts.join(",")))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::path::PathBuf;

    fn up(file: Option<PathBuf>, ports: &[&str]) -> Up {
        Up {
            profile: None,
            engine: None,
            ports: ports.iter().map(|p| (*p).to_owned()).collect(),
            file,
            policy: None,
            splits: Vec::new(),
            latency: false,
            faults: None,
            log: None,
            timeout: 1.0,
            exec: None,
            check: false,
        }
    }

    pub fn instance(name: &str) -> (PathBuf, Instance) {
        let dir = std::env::temp_dir().join(format!("tandem-cli-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let i = Instance::in_dir(&dir, "t").unwrap();
        i.create_dir().unwrap();
        (dir, i)
    }

    #[test]
    fn the_engine_says_which_daemon_it_is() {
        let (dir, i) = instance("engine");
        let file = dir.join("a.toml");
        let read = |text: &str| {
            fs::write(&file, text).unwrap();
            Config::resolve(&i, &up(Some(file.clone()), &[]))
        };
        let c = read("engine = \"chip\"\nlog = \"debug\"\n").unwrap();
        assert_eq!(
            (c.program(Daemon::Asicd), c.program(Daemon::Switchd)),
            ("asicd", "swcfgd")
        );
        assert_eq!(
            c.words(&i, Daemon::Switchd),
            ["--name", "t", "--engine", "chip", "--log", "debug"]
        );
        let other = Config::default().other_than(&c, false, true).unwrap();
        assert!(other.contains("engine kernel, not chip"), "{other}");
        for more in [
            "policy = \"trap\"\n",
            "[split]\nswp1 = 4\n",
            "[storm.swp1]\nbroadcast = 5\n",
        ] {
            let said = read(&format!("engine = \"chip\"\n{more}"))
                .unwrap_err()
                .to_string();
            assert!(said.contains("engine chip has no policy"), "{said}");
        }
        let said = read("engine = \"asic\"\n").unwrap_err().to_string();
        assert!(
            said.ends_with("engine is kernel or chip or auto, not asic"),
            "{said}"
        );
        assert_eq!(Config::default().program(Daemon::Switchd), "switchd");
        // a console of its own is beside switchd only where it was asked for
        let two = [Daemon::Asicd, Daemon::Switchd];
        assert_eq!(
            (Config::default().daemons(), c.daemons()),
            (two.into(), two.into())
        );
        let c = read("engine = \"kernel\"\npolicy = \"trap\"\n").unwrap();
        assert_eq!(c.daemons(), [two[0], two[1], Daemon::Swcfgd]);
        assert_eq!(c.program(Daemon::Switchd), "switchd");
        assert_eq!(
            c.words(&i, Daemon::Swcfgd),
            ["--name", "t", "--engine", "kernel"]
        );
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn an_engine_that_is_not_named_is_the_kernels_to_say() {
        let auto = |policy: Option<&str>| Config {
            engine: Some("auto".into()),
            policy: policy.map(str::to_owned),
            ..Config::default()
        };
        let says = |text: &str| {
            let text = text.to_owned();
            || Ok(text)
        };
        let mut c = auto(None);
        let told = c.settle(says("kernel\nit has both\n")).unwrap();
        assert_eq!(told.as_deref(), Some("engine kernel: it has both"));
        assert!(c.has_console() && !c.is_chip());
        // what is settled is asked no more
        let none = c.settle(|| panic!("asked again")).unwrap();
        assert_eq!((none, c.engine()), (None, "kernel"));
        let mut c = auto(None);
        c.settle(says("chip\nit has no bridges\n")).unwrap();
        assert_eq!(c.program(Daemon::Switchd), "swcfgd");
        // and then it is held to what that engine has
        let e = auto(Some("fail")).settle(says("chip\nso\n")).unwrap_err();
        assert!(e.is::<Usage>(), "{e}");
        assert!(auto(None).settle(says("")).is_err());
    }

    #[test]
    fn options_win_over_the_file() {
        let (dir, i) = instance("options");
        let file = dir.join("a.toml");
        fs::write(
            &file,
            "profile = \"tiny\"\npolicy = \"fail\"\n[ports]\nswp1 = \"eth1\"\nswp2 = \"eth2\"\n",
        )
        .unwrap();
        let c = Config::resolve(&i, &up(Some(file), &["swp2=tap:x"])).unwrap();
        assert_eq!(c.profile(), "tiny");
        assert_eq!(c.ports["swp1"], "eth1");
        assert_eq!(c.ports["swp2"], "tap:x");
        assert_eq!(
            c.words(&i, Daemon::Switchd),
            ["--name", "t", "--policy", "fail"]
        );
        assert_eq!(
            c.words(&i, Daemon::Asicd),
            [
                "--name",
                "t",
                "--profile",
                "tiny",
                "--port",
                "swp1=eth1",
                "--port",
                "swp2=tap:x"
            ]
        );
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn one_at_a_time_changes_an_instance() {
        let (dir, i) = instance("alone");
        let first = alone(&i, Instant::now()).unwrap();
        let e = alone(&i, Instant::now()).unwrap_err().to_string();
        assert!(e.contains("at work on instance t"), "{e}");
        drop(first);
        alone(&i, Instant::now()).unwrap();
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_a_running_switch_does_not_take_is_named() {
        let read = |text: &str| toml::from_str::<Config>(text).unwrap();
        let running =
            read("policy = \"trap\"\n[ports]\nswp1 = \"a\"\n[storm.swp1]\nbroadcast = 5\n");
        let same = read("log = \"info\"\n[ports]\nswp1 = \"a\"\n");
        assert_eq!(running.other_than(&same, true, true), None);
        for (text, told) in [
            ("policy = \"fail\"", "policy trap, not fail"),
            ("latency = true", "latency off, not on"),
            ("faults = \"/a.toml\"", "faults none, not /a.toml"),
            ("log = \"debug\"", "log info, not debug"),
            ("flow_deadline = 60", "flow_deadline 0, not 60"),
            ("profile = \"tiny\"", "profile spectrum-sn2700, not tiny"),
            ("[split]\nswp1 = 4", "split none, not swp1=4"),
            (
                "[storm.swp1]\nbroadcast = 6",
                "storm limits swp1 broadcast 5, not swp1 broadcast 6",
            ),
        ] {
            let mut wanted = read(text);
            wanted.ports = running.ports.clone();
            let other = running.other_than(&wanted, true, true);
            assert_eq!(other.as_deref(), Some(told));
        }
        let other = running.other_than(&read("[ports]\nswp2 = \"b\"\n"), true, true);
        assert_eq!(other.as_deref(), Some("ports swp1=a, not swp2=b"));
        // a switchd that has to be started anyway may have another policy
        let mut wanted = running.clone();
        wanted.policy = Some("fail".into());
        assert_eq!(running.other_than(&wanted, true, false), None);
    }

    #[test]
    fn files_are_found_from_any_folder() {
        let (dir, i) = instance("folders");
        let here = std::env::current_dir().unwrap();
        let here = here.to_str().unwrap();
        for (given, kept) in [
            ("my.toml", format!("{here}/my.toml")),
            ("./my.toml", format!("{here}/my.toml")),
            ("/a/my.toml", "/a/my.toml".into()),
            ("tiny", "tiny".into()),
        ] {
            let mut with_profile = up(None, &[]);
            with_profile.profile = Some(given.into());
            let c = Config::resolve(&i, &with_profile).unwrap();
            assert_eq!(c.profile(), kept);
        }
        for (given, kept) in [
            ("pcap:in,/out,fast", format!("pcap:{here}/in,/out,fast")),
            ("pcap:in", format!("pcap:{here}/in")),
            ("dgram:a,./b", format!("dgram:{here}/a,{here}/b")),
            ("pcap:,", "pcap:,".into()),
            ("tap:x", "tap:x".into()),
            ("eth3@lab", "eth3@lab".into()),
        ] {
            let c = Config::resolve(&i, &up(None, &[&format!("swp1={given}")])).unwrap();
            assert_eq!(c.ports["swp1"], kept);
        }
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn up_alone_repeats_the_last_start() {
        let (dir, i) = instance("again");
        let first = Config::resolve(&i, &up(None, &["swp1=a"])).unwrap();
        fs::write(i.config_file(), toml::to_string(&first).unwrap()).unwrap();
        assert_eq!(Config::resolve(&i, &up(None, &[])).unwrap(), first);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_could_not_be_written_leaves_what_was_there() {
        let (dir, i) = instance("whole");
        let first = Config::resolve(&i, &up(None, &["swp1=a"])).unwrap();
        save(&i, &first).unwrap();
        let old = fs::read_to_string(i.config_file()).unwrap();
        let new = i.config_file().with_file_name("config.toml.new");
        // somebody who reads meanwhile has the old text, however far the new one is
        let reader = File::open(i.config_file()).unwrap();
        save(&i, &Config::default()).unwrap();
        assert_eq!(std::io::read_to_string(reader).unwrap(), old);
        assert!(!new.exists());
        // no room for the new text
        save(&i, &first).unwrap();
        std::os::unix::fs::symlink("/dev/full", &new).unwrap();
        let e = save(&i, &Config::default()).unwrap_err();
        assert!(format!("{e:#}").contains("No space left"), "{e:#}");
        assert_eq!(fs::read_to_string(i.config_file()).unwrap(), old);
        assert_eq!(Config::resolve(&i, &up(None, &[])).unwrap(), first);
        // one that an earlier version has cut short is no wish for a chip without cables
        fs::write(i.config_file(), "").unwrap();
        let e = Config::resolve(&i, &up(None, &[])).unwrap_err().to_string();
        assert!(e.contains("is empty"), "{e}");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_storm_limit_is_there_at_the_next_start() {
        let (dir, i) = instance("storm");
        let told = keep_storm(&i, "swp1", "broadcast", 500).unwrap();
        assert!(
            told.unwrap().contains("[storm.swp1]"),
            "nobody said tandem up"
        );
        let first = Config::resolve(&i, &up(None, &["swp1=a"])).unwrap();
        save(&i, &first).unwrap();
        for (kind, rate) in [("broadcast", 500), ("multicast", 9), ("broadcast", 600)] {
            assert_eq!(keep_storm(&i, "swp1", kind, rate).unwrap(), None);
        }
        let again = Config::resolve(&i, &up(None, &[])).unwrap();
        assert_eq!(again.ports, first.ports);
        assert_eq!(
            again.words(&i, Daemon::Switchd)[2..],
            [
                "--storm",
                "swp1=broadcast:600",
                "--storm",
                "swp1=multicast:9"
            ]
        );
        for kind in ["broadcast", "multicast"] {
            keep_storm(&i, "swp1", kind, 0).unwrap();
        }
        assert_eq!(Config::resolve(&i, &up(None, &[])).unwrap(), first);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn nonsense_is_refused_in_one_line() {
        let (dir, i) = instance("nonsense");
        let file = dir.join("a.toml");
        for text in [
            "profil = \"x\"",
            "policy = \"both\"",
            "[ports]\neth1 = \"x\"",
            "= 3",
            "log = \"warning\"",
            "flow_deadline = 2",
        ] {
            fs::write(&file, text).unwrap();
            let e = Config::resolve(&i, &up(Some(file.clone()), &[])).unwrap_err();
            assert!(e.is::<Usage>(), "{text}: {e}");
            assert!(!e.to_string().contains('\n'), "{e}");
        }
        // what is no text stays so; what is not there may come
        fs::write(&file, b"\xff\xfe").unwrap();
        let read = || Config::resolve(&i, &up(Some(file.clone()), &[])).unwrap_err();
        assert!(read().is::<Usage>());
        fs::remove_file(&file).unwrap();
        assert!(!read().is::<Usage>());
        for port in ["swp1", "swp0=x", "eth0=x", "swp1="] {
            assert!(Config::resolve(&i, &up(None, &[port])).is_err(), "{port}");
        }
        fs::remove_dir_all(dir).unwrap();
    }
}
