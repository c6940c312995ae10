// SPDX-License-Identifier: Apache-2.0
//! `tandem openflow`: starts and stops ofagentd, and looks into it.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Error, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use tandem_mgmt::{Client, Daemon, Instance};

use crate::below::{FLOW_DEADLINE, end_asicd, own_asicd, up_asicd};
use crate::config::{alone, replace};
use crate::flows;
use crate::lifecycle::{end_daemon, report, serving, start, wait_ready};
use crate::out::Out;
use crate::query::seconds;
use crate::show::rows;
use crate::table::{Column, cell, left, render, right};
use crate::{Answer, Usage};

/// `tandem openflow`
#[derive(Subcommand, Debug)]
pub enum Openflow {
    /// Start ofagentd, as a daemon; one that already runs like that is left alone. Without options: as it was last started
    Up(Box<Up>),
    /// Stop it; hosts at its ports no longer reach each other
    Down,
    /// Tables and counters
    Show {
        /// Which
        #[arg(value_enum)]
        what: What,
        /// Flows of this table alone
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=254))]
        table: Option<u8>,
        /// At most so many rows
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// Only flows of which the chip answers all packets (WHERE: hardware)
        #[arg(long, conflicts_with = "software")]
        hardware: bool,
        /// Only flows of which packets go to the software, all or some (WHERE: software, partly)
        #[arg(long)]
        software: bool,
        /// With flows: why each is where it is, instead of ages, timeouts and cookies
        #[arg(long)]
        why: bool,
        /// Of this logical switch
        #[arg(long, value_name = "NAME")]
        lsi: Option<String>,
    },
    /// Where one flow is and why: each rule that it is in, what turns it, what it costs, what would bring it into the chip
    Explain {
        /// What
        #[arg(value_enum)]
        kind: Kind,
        /// Its number (FLOW of show flows --why), or its match as show flows has it, with table=N and priority=N where
        /// several have that one; - is everything
        key: String,
        /// Of this logical switch
        #[arg(long, value_name = "NAME")]
        lsi: Option<String>,
    },
    /// Send one frame through the flow tables on paper, table by table, and through the chip: nothing is counted, nothing
    /// leaves
    Trace {
        /// Where it comes in: swp1, or its number
        port: String,
        /// The frame, in hexadecimal; blanks and colons are ignored
        hex: String,
        /// Of this logical switch
        #[arg(long, value_name = "NAME")]
        lsi: Option<String>,
    },
    /// Add a port to the switch while it runs, or take one away
    Port {
        /// What to change
        #[command(subcommand)]
        port: Port,
    },
}

/// `tandem openflow port`
#[derive(Subcommand, Debug)]
pub enum Port {
    /// Add a port; with logical switches --lsi says to which
    Add {
        /// swp3=eth3, or swp3=eth3:7 for number 7. On a chip, which has the cables: swp3, swp3:7
        cable: String,
        /// To this logical switch
        #[arg(long, value_name = "NAME")]
        lsi: Option<String>,
    },
    /// Take a port away, by its name (swp3), whichever logical switch has it
    Del {
        /// swp3
        port: String,
    },
}

/// `tandem openflow up`
#[derive(Args, Debug)]
pub struct Up {
    /// A port: swp1=eth3 is number 1 for controllers, swp1=eth3:7 is number 7 (not with --profile: there it is the
    /// port's own); swp1=eth3@NAMESPACE, swp2=tap:NAME
    #[arg(long = "port", value_name = "SWPN=CABLE")]
    ports: Vec<String>,
    /// Flows stand in the (software) switch ASIC of this profile, as far as they can: asicd is started with it, and the
    /// ports are its. Profiles: nxp-t1040, arista-7500e, tiny
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// How the chip's MAC table is looked up: by address alone, or by VLAN and address
    #[arg(long, value_name = "WAY", requires = "profile", value_parser = ["address", "vlan"])]
    mac_lookup: Option<String>,
    /// Chains of flows of several tables behind one flow that the chip may have; one with more is the software's
    #[arg(long, value_name = "N", requires = "profile")]
    chains: Option<u32>,
    /// The chip forwards by its flows for so many seconds after ofagentd is gone, or stopped, and by none then, until one is
    /// back; 0, never: for ever [default: 300]
    #[arg(long, value_name = "SECONDS", requires = "profile", value_parser = deadline)]
    deadline: Option<String>,
    /// A logical switch of some of the ports, by name, with a number for each: red:swp1,swp2=5. Each has its own tables and
    /// controllers; options with LSI= are that one's. Without, there is one switch of all ports
    #[arg(long = "lsi", value_name = "NAME:SWPN[=NUMBER],…")]
    lsis: Vec<String>,
    /// The port LOCAL: a TAP of this name is made, this machine's own interface at the switch
    #[arg(long, value_name = "[LSI=]IFACE")]
    local: Vec<String>,
    /// A controller to call (tcp:HOST[:PORT], ssl:HOST[:PORT], unix:PATH), or where controllers come
    /// (ptcp:[ADDRESS:][PORT], pssl:[ADDRESS:][PORT], punix:PATH)
    #[arg(long = "controller", value_name = "[LSI=]TARGET")]
    controllers: Vec<String>,
    /// The switch's private key, for ssl: and pssl: (PEM)
    #[arg(long, value_name = "FILE")]
    private_key: Option<PathBuf>,
    /// Its certificate (PEM)
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// The authority that controllers' certificates are checked against (PEM)
    #[arg(long, value_name = "FILE")]
    ca_cert: Option<PathBuf>,
    /// Datapath id: a number, 0xHEX or 16 hexadecimal digits; by default from the first port's address
    #[arg(long, value_name = "[LSI=]ID")]
    datapath_id: Vec<String>,
    /// Without controllers: secure (the flows stay) or standalone (an ordinary learning switch)
    #[arg(long, value_name = "[LSI=]MODE")]
    fail: Vec<String>,
    /// Versions that are offered: 1.0, 1.3 or 1.0,1.3
    #[arg(long, value_name = "[LSI=]LIST")]
    versions: Vec<String>,
    /// Flow tables of 1.3
    #[arg(long, value_name = "N")]
    tables: Option<u8>,
    /// Flows at most, of all tables together
    #[arg(long, value_name = "N")]
    max_flows: Option<u32>,
    /// Queues of each port, which count and do not schedule
    #[arg(long, value_name = "N")]
    queues: Option<u32>,
    /// Packet-ins a second for each controller; 0: no limit
    #[arg(long, value_name = "N")]
    packet_in_rate: Option<u64>,
    /// Seconds of silence after which a controller is asked whether it lives, and after as many more given up
    #[arg(long, value_name = "SECONDS")]
    probe: Option<u64>,
    /// How much the daemon logs
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
    /// How long it may take to be ready
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS")]
    timeout: f64,
}

/// What there is to be explained.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A flow
    Flow,
}

/// What there is to be shown.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Flows, by table and priority
    Flows,
    /// Groups and their buckets
    Groups,
    /// Meters and their bands
    Meters,
    /// Flow tables that have flows or had packets (-j: all), and how full they and the chip's are
    Tables,
    /// Ports, link and counters
    Ports,
    /// Controllers: connection, version, role
    Controllers,
    /// Logical switches: ports, datapath id, controllers, flows
    Lsis,
}

const FLOWS: &[Column] = &[
    right("TABLE", "table"),
    right("PRIORITY", "priority"),
    left("MATCH", "match"),
    left("DOES", "instructions"),
    right("PACKETS", "packets"),
    right("BYTES", "bytes"),
    right("AGE", "age_s"),
    right("IDLE", "idle_s"),
    right("IDLE-OUT", "idle_timeout"),
    right("HARD-OUT", "hard_timeout"),
    left("COOKIE", "cookie"),
];
/// Of flows, groups and meters, where a chip stands below the tables.
const PLACE: Column = left("WHERE", "place");
const WHY: Column = left("WHY", "why");
/// What is told of a flow beside that.
const WITH_WHY: &[&str] = &[
    "table",
    "priority",
    "match",
    "instructions",
    "place",
    "packets",
];
const NUMBER: Column = right("FLOW", "number");
const GROUPS: &[Column] = &[
    right("GROUP", "group"),
    left("KIND", "kind"),
    left("BUCKETS", "actions"),
    right("PACKETS", "packets"),
    right("BYTES", "bytes"),
    right("USED-BY", "references"),
    right("AGE", "age_s"),
];
const METERS: &[Column] = &[
    right("METER", "meter"),
    left("DOES", "does"),
    right("PACKETS", "packets"),
    right("BYTES", "bytes"),
    right("FLOWS", "flows"),
    right("AGE", "age_s"),
];
const TABLES: &[Column] = &[
    right("TABLE", "table"),
    right("FLOWS", "flows"),
    right("OF", "max_flows"),
    right("MASKS", "masks"),
    right("LOOKUPS", "lookups"),
    right("MATCHED", "matched"),
];
const PORTS: &[Column] = &[
    left("PORT", "name"),
    right("NUMBER", "number"),
    left("CABLE", "cable"),
    left("MAC", "mac"),
    left("LINK", "link"),
    right("MB/S", "speed_mbps"),
    left("CONFIG", "config"),
    right("RX-PACKETS", "rx_packets"),
    right("RX-BYTES", "rx_bytes"),
    right("TX-PACKETS", "tx_packets"),
    right("TX-BYTES", "tx_bytes"),
    right("RX-DROP", "rx_dropped"),
    right("TX-DROP", "tx_dropped"),
];
/// How full what ends is, under its list.
const SIZES: &[Column] = &[
    left("SIZE OF", "what"),
    right("USED", "used"),
    right("FREE", "free"),
    right("OF", "size"),
];
const CONTROLLERS: &[Column] = &[
    left("CONTROLLER", "controller"),
    left("STATE", "state"),
    left("VERSION", "version"),
    left("ROLE", "role"),
    right("SINCE", "since_s"),
    right("RECEIVED", "received"),
    right("SENT", "sent"),
    right("ERRORS", "errors"),
    right("PACKET-INS", "packet_ins"),
    right("DROPPED", "packet_ins_dropped"),
    left("ERROR", "error"),
];
const LSIS: &[Column] = &[
    left("LSI", "lsi"),
    left("DATAPATH", "datapath_id"),
    left("VERSION", "version_spoken"),
    left("PORTS", "members"),
    right("CONTROLLERS", "controllers"),
    right("FLOWS", "flows"),
    right("GROUPS", "groups"),
    right("METERS", "meters"),
];

/// With it there is a chip.
const PROFILE: &str = "--profile";
/// Of the chip, which has another word for it.
const DEADLINE: &str = "--deadline";

fn deadline(text: &str) -> Result<String, String> {
    tandem_mgmt::deadline::parse(text).map(|_| text.to_owned())
}

fn client(instance: &Instance) -> Client {
    Client::to(instance, Daemon::Ofagentd)
}

/// A relative path of a Unix socket counts from here, not from where the daemon works.
fn absolute(target: &str) -> String {
    let Some((kind, path)) = target.split_once(':') else {
        return target.to_owned();
    };
    // behind the logical switch's name
    let bare = kind.rsplit_once('=').map_or(kind, |(_, kind)| kind);
    match std::path::absolute(path) {
        Ok(p) if matches!(bare, "unix" | "punix") => format!("{kind}:{}", p.display()),
        _ => target.to_owned(),
    }
}

impl Up {
    fn words(&self) -> Vec<String> {
        let mut w = Vec::new();
        let mut add = |option: &str, value: String| w.extend([option.to_owned(), value]);
        for p in &self.ports {
            add("--port", p.clone());
        }
        for c in &self.controllers {
            add("--controller", absolute(c));
        }
        let lists = [
            ("--lsi", &self.lsis),
            ("--local", &self.local),
            ("--datapath-id", &self.datapath_id),
            ("--fail", &self.fail),
            ("--versions", &self.versions),
        ];
        for (option, values) in lists {
            for v in values {
                add(option, v.clone());
            }
        }
        let file = |path: &Option<PathBuf>| {
            let path = path.as_ref()?;
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            Some(path.display().to_string())
        };
        let options = [
            (PROFILE, self.profile.clone()),
            ("--mac-lookup", self.mac_lookup.clone()),
            ("--chains", self.chains.map(|n| n.to_string())),
            (DEADLINE, self.deadline.clone()),
            ("--private-key", file(&self.private_key)),
            ("--certificate", file(&self.certificate)),
            ("--ca-cert", file(&self.ca_cert)),
            ("--tables", self.tables.map(|n| n.to_string())),
            ("--max-flows", self.max_flows.map(|n| n.to_string())),
            ("--queues", self.queues.map(|n| n.to_string())),
            (
                "--packet-in-rate",
                self.packet_in_rate.map(|n| n.to_string()),
            ),
            ("--probe", self.probe.map(|n| n.to_string())),
            ("--log", self.log.clone()),
        ];
        for (option, value) in options {
            if let Some(value) = value {
                add(option, value);
            }
        }
        w
    }
}

/// Command lines of asicd, if there is to be one, and of ofagentd: with a chip, its ports are the chip's.
fn command_lines(words: &[String]) -> (Option<Vec<String>>, Vec<String>) {
    let chip = words.iter().any(|w| w == PROFILE);
    if !chip {
        return (None, words.to_vec());
    }
    let (mut asicd, mut agent) = (Vec::new(), vec!["--asic".to_owned()]);
    // each option has one value
    for pair in words.chunks(2) {
        match pair {
            [option, _] if option == PROFILE || option == "--port" => {
                asicd.extend(pair.iter().cloned());
            }
            [option, value] if option == DEADLINE => {
                asicd.extend([FLOW_DEADLINE.to_owned(), value.clone()]);
            }
            other => agent.extend(other.iter().cloned()),
        }
    }
    (Some(asicd), agent)
}

/// With a chip: what can't be, said before anything starts.
fn check(words: &[String]) -> Result<()> {
    let value = |option: &str| {
        let mut pairs = words.chunks(2);
        let pair = pairs.find(|p| p.first().is_some_and(|o| o == option))?;
        pair.get(1).map(String::as_str)
    };
    let Some(profile) = value(PROFILE) else {
        return Ok(());
    };
    if profile == "tiny" && value("--mac-lookup") == Some("vlan") {
        let why =
            "--mac-lookup vlan: a chip tiny has 4 forwarding domains, one for each VLAN takes 4094";
        return Err(Usage(why.into()).into());
    }
    for pair in words.chunks(2) {
        let [option, port] = pair else { continue };
        if option == "--port"
            && let Some((cable, number)) = port.rsplit_once(':')
            && number.bytes().all(|b| b.is_ascii_digit())
            // swp1=dgram:HOST:PORT,HOST:PORT ends like that, and swp1=tap:7 is a TAP
            && !cable.contains("=dgram:")
            && !["=tap", "=af_xdp"].iter().any(|kind| cable.ends_with(kind))
        {
            let why = format!(
                "--port {port}: with --profile a port's number is the chip's own: --port {cable}"
            );
            return Err(Usage(why).into());
        }
    }
    Ok(())
}

/// What it was last started with, one word a line: a word has no line breaks, as no interface and no option has any.
fn last(instance: &Instance) -> Option<Vec<String>> {
    let text = fs::read_to_string(instance.dir().join("ofagentd.args")).ok()?;
    Some(text.lines().map(ToOwned::to_owned).collect())
}

/// ofagentd did not start: no chip without its agent, so the one that the same call has started goes, too.
fn without(instance: &Instance, chip: Option<u32>, why: Error) -> Error {
    match chip.map(|pid| end_asicd(instance, pid)) {
        Some(Err(e)) => why.context(format!("asicd runs on: {e:#}")),
        _ => why,
    }
}

fn up(instance: &Instance, up: &Up, out: Out) -> Result<Answer> {
    let end = Instant::now() + seconds(up.timeout)?;
    instance.create_dir()?;
    let _alone = alone(instance, end)?;
    let known = last(instance);
    let mut wanted = up.words();
    if wanted.is_empty() {
        wanted = known.clone().unwrap_or_default();
    }
    check(&wanted)?;
    let same = known.as_ref() == Some(&wanted);
    let serves = serving(instance, Daemon::Ofagentd, end)?;
    if serves.is_some() && !same {
        bail!(
            "ofagentd of instance {name} runs with other options: tandem --name {name} openflow down first",
            name = instance.name()
        );
    }
    let (asicd, own) = command_lines(&wanted);
    let text: String = wanted.iter().map(|w| format!("{w}\n")).collect();
    let kept = instance.dir().join("ofagentd.args");
    let mut done = Vec::new();
    let mut chip = None;
    if let Some(asicd) = asicd {
        let (said, started) = up_asicd(instance, &asicd, end)?;
        done.push(said);
        chip = started;
    }
    if let Some(pid) = serves {
        done.push(format!("ofagentd runs already (pid {pid})"));
        return report(instance, &done, out);
    }
    let mut words = vec!["--name".to_owned(), instance.name().to_owned()];
    words.extend(own);
    let (mut child, from) = match start(instance, &words, Daemon::Ofagentd, Daemon::Ofagentd.name())
    {
        Ok(started) => started,
        Err(e) => return Err(without(instance, chip, e)),
    };
    let ready = wait_ready(instance, Daemon::Ofagentd, &mut child, from, end);
    // one that is late runs on
    let chip = chip.filter(|_| matches!(child.try_wait(), Ok(Some(_))));
    let status = ready.map_err(|e| without(instance, chip, e))?;
    replace(&kept, text.as_bytes())?;
    let said = format!(
        "ofagentd started (pid {}): datapath {}, {} ports",
        child.id(),
        cell(&status["datapath_id"]),
        cell(&status["ports"])
    );
    done.push(said);
    report(instance, &done, out)
}

fn down(instance: &Instance, out: Out) -> Result<Answer> {
    let mut said = vec![match instance.running(Daemon::Ofagentd)? {
        Some(pid) => end_daemon(instance, Daemon::Ofagentd, pid)?,
        None => "ofagentd does not run".to_owned(),
    }];
    // A switch that is taken down has no tables; one that merely ended has
    for file in std::fs::read_dir(instance.dir())
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = file.file_name().to_string_lossy().into_owned();
        let tables = [".tables", ".new"].iter().any(|end| name.ends_with(end));
        if name.starts_with("ofagentd") && tables {
            let _ = std::fs::remove_file(file.path());
        }
    }
    // its chip goes with it; another one's stays
    if let Some((pid, _)) = own_asicd(instance)? {
        said.push(end_asicd(instance, pid)?);
    }
    report(instance, &said, out)
}

/// Which flows, and what of them.
#[derive(Clone, Copy, Debug)]
struct Flows {
    places: Option<&'static [&'static str]>,
    why: bool,
}

impl Flows {
    /// Each flow of a chip's is either `--hardware` or `--software`.
    fn new(hardware: bool, software: bool, why: bool) -> Flows {
        let places: Option<&[&str]> = match (hardware, software) {
            (true, _) => Some(&["hardware"]),
            (_, true) => Some(&["software", "partly"]),
            _ => None,
        };
        Flows { places, why }
    }

    fn has(self, flow: &Value) -> bool {
        let at = flow["place"].as_str();
        self.places
            .is_none_or(|all| at.is_some_and(|at| all.contains(&at)))
    }
}

fn show(
    instance: &Instance,
    what: What,
    (lsi, table): (Option<&str>, Option<u8>),
    limit: Option<usize>,
    flows: Flows,
    out: Out,
) -> Result<Answer> {
    if (flows.places.is_some() || flows.why) && what != What::Flows {
        let why = "--hardware, --software and --why are of flows: tandem openflow show flows";
        return Err(Usage(why.into()).into());
    }
    if table.is_some() && what != What::Flows {
        let why = "--table is of flows: tandem openflow show flows --table N";
        return Err(Usage(why.into()).into());
    }
    let (path, columns) = match what {
        What::Flows => ("/v1/flows", FLOWS),
        What::Groups => ("/v1/groups", GROUPS),
        What::Meters => ("/v1/meters", METERS),
        What::Tables => ("/v1/tables", TABLES),
        What::Ports => ("/v1/ports", PORTS),
        What::Controllers => ("/v1/controllers", CONTROLLERS),
        What::Lsis => ("/v1/lsis", LSIS),
    };
    let table = table.map(|t| t.to_string()).unwrap_or_default();
    // of flows that are left out none counts for the limit
    let asked = limit.filter(|_| flows.places.is_none());
    let query = [("table", table.as_str()), ("lsi", lsi.unwrap_or_default())];
    let mut all = rows(&client(instance), path, &query, asked)?;
    if flows.places.is_some() {
        all.retain(|f| flows.has(f));
        all.truncate(limit.unwrap_or(usize::MAX));
    }
    if what == What::Flows {
        // The daemon lists them by their numbers
        all.sort_by_key(|f| {
            let of = |key: &str| f[key].as_u64().unwrap_or(0);
            (of("table"), std::cmp::Reverse(of("priority")))
        });
    }
    let lists: &[&str] = match what {
        What::Flows | What::Ports | What::Lsis => &[],
        What::Groups => &["groups"],
        What::Meters => &["meters"],
        What::Tables => &["tables", "chip"],
        What::Controllers => &["controllers"],
    };
    let mut sizes = Vec::new();
    if !lists.is_empty() {
        let whose = [("lsi", lsi.unwrap_or_default())];
        sizes = match (rows(&client(instance), "/v1/sizes", &whose, None), what) {
            // those of all logical switches are listed together
            (Err(_), What::Controllers) => Vec::new(),
            (sizes, _) => sizes?,
        };
        sizes.retain(|s| lists.iter().any(|l| s["of"] == *l));
    }
    let mut columns = columns.to_vec();
    let at = match what {
        What::Flows => Some(4),
        What::Groups => Some(3),
        What::Meters => Some(2),
        _ => None,
    };
    if let Some(at) = at
        && all.iter().any(|f| !f["place"].is_null())
    {
        columns.insert(at, PLACE);
        if flows.why {
            // A reason takes the place of ages and timeouts
            columns.retain(|c| WITH_WHY.contains(&c.key));
            columns.insert(0, NUMBER);
            columns.push(WHY);
        }
    }
    let mut v = json!({ "items": all });
    if !sizes.is_empty() {
        v["sizes"] = sizes.clone().into();
    }
    out.print(&v, || {
        // Lookups of which nobody knows are no sign of use
        let used = |r: &&Value| {
            let some = |k: &str| r[k].as_u64().is_some_and(|n| n > 0);
            some("flows") || some("lookups")
        };
        if what == What::Tables {
            let used: Vec<Value> = all.iter().filter(used).cloned().collect();
            return render(&columns, &used) + &under(&sizes);
        }
        render(&columns, &all) + &under(&sizes)
    })?;
    Ok(Answer::Yes)
}

/// What is under a list.
fn under(sizes: &[Value]) -> String {
    match sizes.is_empty() {
        true => String::new(),
        false => format!("\n{}", render(SIZES, sizes)),
    }
}

fn port(instance: &Instance, change: &Port, out: Out) -> Result<Answer> {
    let body = match change {
        Port::Add { cable, lsi } => json!({ "add": cable, "lsi": lsi }),
        Port::Del { port } => json!({ "remove": port }),
    };
    let v: Value = client(instance).post("/v1/ports", &body)?;
    out.print(&v, || cell(&v["applied"]))?;
    Ok(Answer::Yes)
}

/// `tandem openflow`
pub fn openflow(instance: &Instance, command: &Openflow, out: Out) -> Result<Answer> {
    match command {
        Openflow::Up(options) => up(instance, options, out),
        Openflow::Down => down(instance, out),
        Openflow::Show {
            what,
            table,
            limit,
            hardware,
            software,
            why,
            lsi,
        } => {
            let flows = Flows::new(*hardware, *software, *why);
            let which = (lsi.as_deref(), *table);
            show(instance, *what, which, *limit, flows, out)
        }
        Openflow::Explain {
            kind: Kind::Flow,
            key,
            lsi,
        } => flows::explain(&client(instance), lsi.as_deref(), key, out),
        Openflow::Trace { port, hex, lsi } => {
            flows::trace(instance, lsi.as_deref(), port, hex, out)
        }
        Openflow::Port { port: change } => port(instance, change, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(ToOwned::to_owned).collect()
    }

    #[test]
    fn sockets_count_from_here() {
        let here = std::env::current_dir().unwrap();
        for (given, wanted) in [
            ("unix:s", format!("unix:{}/s", here.display())),
            ("red=punix:s", format!("red=punix:{}/s", here.display())),
            ("red=tcp:h:1", "red=tcp:h:1".to_owned()),
            ("unix:", "unix:".to_owned()),
        ] {
            assert_eq!(absolute(given), wanted);
        }
    }

    #[test]
    fn flows_by_who_answers() {
        let which = |hardware, software| {
            let flows = Flows::new(hardware, software, false);
            let all = ["hardware", "partly", "software"];
            let mut taken = all.to_vec();
            taken.retain(|p| flows.has(&json!({ "place": p })));
            taken
        };
        assert_eq!(which(false, false), ["hardware", "partly", "software"]);
        assert_eq!(which(true, false), ["hardware"]);
        assert_eq!(which(false, true), ["partly", "software"]);
    }

    #[test]
    fn what_cannot_be_with_a_chip_is_said_at_once() {
        let refused = |text: &str| check(&words(text)).unwrap_err().to_string();
        assert!(refused("--profile tiny --mac-lookup vlan").contains("4 forwarding domains"));
        for port in ["swp1=eth1:7", "swp2=veth0@blue:9", "swp3=tap:t0:5"] {
            let said = refused(&format!("--port {port} --profile tiny"));
            assert!(said.contains("the chip's own"), "{said}");
            check(&words(&format!("--port {port}"))).unwrap();
        }
        for good in [
            "swp1=eth1",
            "swp1=tap:7",
            "swp1=dgram:127.0.0.1:1,127.0.0.1:2",
        ] {
            check(&words(&format!(
                "--port {good} --profile nxp-t1040 --mac-lookup vlan"
            )))
            .unwrap();
        }
    }
}
