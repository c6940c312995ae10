// SPDX-License-Identifier: Apache-2.0
//! Starting and stopping: files, sockets, threads, signals.

use std::sync::Arc;

use anyhow::anyhow;
use crossbeam_channel::bounded;
use tandem_linux::clock;
use tandem_linux::eventfd::EventFd;
use tandem_linux::sandbox::folder_of;
use tandem_mgmt::instance::{Daemon, Instance};
use tandem_ofagent::{Agent, Settings};
use tandem_openflow::model::Desc;
use tandem_openflow::port;
use tandem_ports::{rights, self_test};

use tandem_ofchip::{Chip, Limits, Lookup, Slice};

use crate::args::{Args, Fail, MacLookup, PortArg};
use crate::asic::{Asic, Common, FrontPort};
use crate::keeper::{self, UPDATES};
use crate::kept::{self, Kept, Past};
use crate::links::Links;
use crate::lsi;
use crate::poller::Poller;
use crate::switch::{Jobs, Lsi, Plant};
use crate::target::Target;

/// Requests of the management API that may wait.
const JOBS: usize = 64;

/// Runs the daemon until SIGTERM, SIGINT or SIGHUP.
pub fn run(args: &Args, asked: &[lsi::Switch]) -> anyhow::Result<()> {
    let instance = Instance::resolve(args.name.as_deref())?;
    instance.create_dir()?;
    let _pid = instance.claim(Daemon::Ofagentd)?;
    self_test::ahead(args.ports.iter().map(|p| &p.spec.kind));
    let poller = Poller::new()?;
    // hosts' addresses are looked up and sockets made where files can still be read
    let mut links = Vec::new();
    for (n, switch) in (0..).zip(asked) {
        links.push(Links::open(n, &switch.controllers, &args.tls, &poller)?);
    }
    let (asic, mut parts) = match args.asic {
        true => connect(args, &instance, asked)?,
        false => (None, Vec::new()),
    };
    let boot = kept::boot()?;
    lock_in(args, &instance)?;
    let bell = Arc::new(EventFd::new()?);
    let now = clock::now_ns();
    let mut cables = Vec::new();
    let mut opened = Vec::new();
    let mut lsis = Vec::new();
    let mut count = 0;
    for ((n, switch), links) in (0..).zip(asked).zip(links) {
        let part = match parts.is_empty() {
            true => None,
            false => Some(parts.remove(0)),
        };
        let front = part.as_ref().and_then(|(_, ports)| ports.first());
        let mut first = front.map(|p| p.mac);
        for port in switch.cables(args) {
            let (cable, mac, halves) = keeper::open(n, &port)?;
            first = first.or(Some(mac));
            cables.push(cable);
            count += usize::from(port.number != port::LOCAL);
            opened.push((n, port, mac, halves));
        }
        let mut agent = Agent::new(settings(args, &instance, switch, first), now);
        let past = Past::read(instance.dir(), &switch.name, boot);
        past.restore(&mut agent, now);
        let mut lsi = Lsi::new(switch.name.clone(), agent, links);
        if let Some((chip, ports)) = part {
            count += ports.len();
            lsi.set_chip(chip, ports, now);
        }
        lsis.push(lsi);
    }
    let ids = |l: &Lsi| l.agent.settings().datapath;
    lsi::same_ids(lsis.iter().map(|l| (&l.name, ids(l)))).map_err(|e| anyhow!(e))?;
    let datapaths: Vec<String> = lsis.iter().map(|l| format!("{:016x}", ids(l))).collect();
    let warm = lsis.iter().any(|l| l.agent.datapath().is_restored());
    let mut plant = Plant::new(lsis, poller);
    plant.asic = asic.map(|a| a.of_earlier(warm, &bell));
    for (n, port, mac, halves) in opened {
        plant.add_port(n, port, mac, *halves, now);
    }
    for l in &mut plant.lsis {
        l.kept = Some(Kept::begin(
            instance.dir(),
            &l.name,
            boot,
            &mut l.agent,
            now,
        ));
    }
    let (update_to, updates) = bounded(UPDATES);
    let (keeper, orders) = keeper::start(cables, update_to, Arc::clone(&bell))?;
    let (job_to, jobs) = bounded(JOBS);
    let handle = Jobs::new(job_to, Arc::clone(&bell));
    let server = tandem_mgmt::server::serve(
        &instance.socket(Daemon::Ofagentd),
        crate::api::router(handle, orders, instance.name().to_owned()),
    )?;
    let wake = Arc::clone(&bell);
    let stop = tandem_mgmt::signals::on_end(move || wake.ring())?;
    let ready = format!(
        "datapath {}, {count} ports, {} controllers",
        datapaths.join(", "),
        args.controllers.len()
    );
    tracing::info!("instance {} ready: {ready}", instance.name());
    tandem_mgmt::service::ready(&ready);
    let done = plant.run(&bell, &updates, &jobs, &stop);
    tracing::info!("stopping");
    tandem_mgmt::service::stopping();
    // the API first: its requests need the switch's thread no more
    drop(jobs);
    server.stop();
    drop(updates);
    drop(keeper);
    for lsi in &mut plant.lsis {
        lsi.links.close();
    }
    if let Some(asic) = &mut plant.asic {
        asic.close();
    }
    done
}

/// The chip of the instance's asicd, and what of it each switch has.
type Parts = (Option<Asic>, Vec<(Chip, Vec<FrontPort>)>);

fn connect(args: &Args, instance: &Instance, asked: &[lsi::Switch]) -> anyhow::Result<Parts> {
    let name = format!("ofagentd of {}", instance.name());
    let mut asic = Asic::connect(instance.driver_socket(), name)?;
    let common = Common {
        lookup: match args.mac_lookup {
            MacLookup::Address => Lookup::Address,
            MacLookup::Vlan => Lookup::Vlan,
        },
        chains: Limits {
            per_flow: args.chains,
            ..Limits::default()
        },
    };
    let of = u8::try_from(asked.len())?;
    let slice = |index| Slice {
        index,
        of,
        domains: asic.panel().domains && of > 1,
    };
    let part = |(index, switch)| asic.panel().part(switch, slice(index), common);
    let parts: anyhow::Result<Vec<_>> = (0..).zip(asked).map(part).collect();
    let parts = parts?;
    asic.used_by(parts.iter().map(|(chip, _)| chip), common.lookup);
    Ok((Some(asic), parts))
}

fn settings(
    args: &Args,
    instance: &Instance,
    of: &lsi::Switch,
    first: Option<[u8; 6]>,
) -> Settings {
    let datapath = of
        .datapath_id
        .unwrap_or_else(|| datapath_id(instance, first));
    Settings {
        datapath,
        versions: of.offers(),
        tables: args.tables,
        max_flows: args.max_flows,
        fail: match of.fail {
            Fail::Secure => tandem_ofagent::Fail::Secure,
            Fail::Standalone => tandem_ofagent::Fail::Standalone,
        },
        desc: Desc {
            manufacturer: "Tandem".into(),
            hardware: match args.asic {
                true => "switch ASIC".into(),
                false => "software switch".into(),
            },
            software: format!("ofagentd {}", env!("CARGO_PKG_VERSION")),
            serial: "none".into(),
            datapath: match of.name.as_str() {
                "" => instance.name().into(),
                name => format!("{}/{name}", instance.name()),
            },
        },
        queues: args.queues,
        local: of.local.is_some(),
        packet_ins: args.packet_in_rate,
        probe_ns: args.probe * 1_000_000_000,
        secret: secret(),
    }
}

/// A seed for the tables' hashes that nobody knows.
fn secret() -> u64 {
    let mut bytes = [0; 8];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => u64::from_ne_bytes(bytes),
        _ => clock::now_ns(),
    }
}

/// The first port's address (§7.3.1: the lower 48 bits are for one); without ports of the instance's name.
fn datapath_id(instance: &Instance, first: Option<[u8; 6]>) -> u64 {
    let bytes = first.unwrap_or_else(|| {
        let [_, _, _, a, b, c, d, e] = instance.hash().to_be_bytes();
        [2, a, b, c, d, e]
    });
    bytes.iter().fold(0, |all, b| all << 8 | u64::from(*b))
}

/// Gives away what the daemon doesn't need; nothing else of it runs yet.
fn lock_in(args: &Args, instance: &Instance) -> anyhow::Result<()> {
    let ports: Vec<PortArg> = args.all_ports().collect();
    let mut sandbox = rights(ports.iter().map(|p| &p.spec.kind));
    // a TAP may be added later
    sandbox
        .write
        .extend([instance.dir().into(), "/dev/net/tun".into()]);
    sandbox.ip6 = true;
    for target in &args.controllers {
        match &target.value {
            // its file is taken away at the end
            Target::Punix(path) => sandbox.write.push(folder_of(path)),
            Target::Unix(path) => sandbox.read.push(folder_of(path)),
            Target::Tcp { .. } | Target::Ptcp { .. } => {}
        }
    }
    Ok(sandbox.lock_in(!args.no_sandbox)?)
}
