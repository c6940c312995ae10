//! The command line: what can be said, in the words of `ip` and `bridge`.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// A Linux switch whose forwarding is done by an ASIC: start it, look into it, ask why.
#[derive(Parser, Debug)]
#[command(name = "tandem", version, max_term_width = 110, after_help = EXIT_CODES)]
pub struct Cli {
    /// The switch to talk to; by default that of the current network namespace
    #[arg(long, global = true, value_name = "INSTANCE")]
    pub name: Option<String>,
    /// Print JSON (keys: docs/api.md)
    #[arg(short, long, global = true)]
    pub json: bool,
    /// Indent the JSON
    #[arg(short, long, global = true)]
    pub pretty: bool,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 it is so; 1 it is not so (not found, differences, a daemon refused); \
                          2 the command line was wrong.";

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Start the switch: asicd and switchd, as daemons; what already runs is left alone
    Up(Up),
    /// Stop the switch
    Down,
    /// What runs, and how it is
    Status,
    /// Tables and counters
    Show(Show),
    /// Why is it, or is it not, in hardware?
    Explain {
        /// What kind of thing
        #[arg(value_enum)]
        kind: ExplainKind,
        /// A prefix or address, also 'PREFIX vrf NAME'; a MAC address, also MAC@BRIDGE; an address, also ADDRESS@DEV
        key: String,
    },
    /// Send one frame through the ASIC's pipeline on paper, and show every stage
    Trace(Trace),
    /// What passes a port, as pcap
    Capture(Capture),
    /// Wait until the ASIC does what the kernel says now
    Sync {
        /// Give up after so many seconds
        #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
        timeout: f64,
    },
    /// Install routes all or nothing: room for all of them is reserved first (kernel driver)
    Batch(Batch),
    /// Compare the kernel, the store and the ASIC's table memory; exit 1 if they differ
    Audit {
        /// Differences that go away within this time are none
        #[arg(long, default_value_t = 2.0, value_name = "SECONDS")]
        wait: f64,
    },
    /// What a front-panel port of the ASIC is
    Port {
        /// What to change
        #[command(subcommand)]
        port: Port,
    },
    /// Make the ASIC misbehave (for tests and teaching)
    Fault {
        /// What is to go wrong
        #[command(subcommand)]
        fault: Fault,
    },
    /// An OpenFlow switch on this machine's interfaces, ruled by a controller
    Openflow {
        /// What to do
        #[command(subcommand)]
        openflow: crate::openflow::Openflow,
    },
}

/// `tandem up`
#[derive(Args, Debug)]
pub struct Up {
    /// The chip: a name of profiles/*.toml, or a file
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Whose the VLANs are, with a console, swcli: kernel (switchd, and swcfgd beside it: a bridge and VLAN interfaces of the
    /// kernel) or chip (swcfgd in its place: a VLAN database of its own) or auto (the first where the kernel can)
    /// [default: the kernel's, by ip and bridge alone]
    #[arg(long, value_enum)]
    pub engine: Option<Engine>,
    /// Cable a front-panel port: swp1=eth3, swp1=eth3@NAMESPACE, swp2=tap:NAME, swp3=pcap:IN,OUT[,timed|fast],
    /// swp4=dgram:LOCAL,REMOTE (Unix datagram sockets, as QEMU's -netdev dgram)
    #[arg(long = "port", value_name = "SWPN=CABLE")]
    pub ports: Vec<String>,
    /// Split a port of a cage into 2 or 4: swp1=4; its neighbours are disabled
    #[arg(long = "split", value_name = "SWPN=PARTS")]
    pub splits: Vec<String>,
    /// All that in a file (profile, engine, policy, faults, [ports], [split], [storm.swpN]); options win over the file
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// When something does not fit: trap (correct, slow) or fail (flag only; loses packets, for teaching)
    #[arg(long, value_enum)]
    pub policy: Option<Policy>,
    /// Charge the time that this chip takes for writes and queries
    #[arg(long)]
    pub latency: bool,
    /// Faults that the chip has from the start: a TOML file of [[fault]] tables, kinds and arguments as docs/api.md has
    /// them for POST /v1/fault; none: without those of the last start
    #[arg(long, value_name = "FILE")]
    pub faults: Option<String>,
    /// How much the daemons log: error, warn, info, debug, trace, off, or a filter of tracing (info,tandem_ports=debug)
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,
    /// How long the daemons may take to be ready
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS")]
    pub timeout: f64,
    /// Become this daemon instead of starting both (for systemd)
    #[arg(long, value_enum, value_name = "DAEMON")]
    pub exec: Option<Daemon>,
    /// Say whether there is such a daemon, by the exit code (for systemd)
    #[arg(long, requires = "exec")]
    pub check: bool,
}

impl Up {
    /// Whether it starts what was there before.
    pub fn is_bare(&self) -> bool {
        self.file.is_none() && self.ports.is_empty() && self.splits.is_empty()
    }
}

/// One of the daemons.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Daemon {
    /// The software ASIC
    Asicd,
    /// The control plane: switchd, or with engine chip swcfgd
    Switchd,
    /// The console of engine kernel
    Swcfgd,
}

/// Whose the VLANs are.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// The kernel's
    Kernel,
    /// The appliance's
    Chip,
    /// The kernel's where it can, else the appliance's
    Auto,
}

impl Engine {
    /// As the file spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Engine::Kernel => "kernel",
            Engine::Chip => "chip",
            Engine::Auto => "auto",
        }
    }
}

/// What happens when something does not fit.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// To the CPU
    Trap,
    /// Flag only
    Fail,
}

impl Policy {
    /// As switchd spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Policy::Trap => "trap",
            Policy::Fail => "fail",
        }
    }
}

/// `tandem show`
#[derive(Args, Debug)]
pub struct Show {
    /// Which table
    #[arg(value_enum)]
    pub what: Table,
    /// Only rows that contain this word in a column
    pub word: Option<String>,
    /// The ASIC's table memory instead of what switchd knows (fdb, routes, neighbours)
    #[arg(long)]
    pub hw: bool,
    /// Routes of one family
    #[arg(long, value_name = "4|6", value_parser = ["4", "6"])]
    pub family: Option<String>,
    /// At most so many rows of each table
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// What `show` can show.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Ports: link, state and hardware counters. Beside a daemon `ip -s link` (and SNMP, node_exporter …) counts the CPU's packets only: these are the port's
    Ports,
    /// MAC addresses
    Fdb,
    /// Multicast groups of bridges, and their ports to multicast routers
    Mdb,
    /// Routes
    Routes,
    /// Neighbours
    #[value(alias = "neighbors", alias = "neigh")]
    Neighbours,
    /// Pools and what fits into them
    Resources,
    /// Packets that came to the CPU, by reason
    Traps,
    /// Packets that the ASIC dropped, by stage and reason
    Drops,
    /// Next hops (table memory)
    Nexthops,
    /// Next-hop groups (table memory)
    Nhgs,
    /// Router interfaces (table memory)
    Rifs,
    /// Forwarding domains (table memory)
    Vlans,
    /// Filters of traffic control at ports, with what they look at and packets
    Acl,
    /// Lists of rules (table memory)
    Acls,
    /// Rules of these lists, with match and action
    AclRules,
    /// Which port has which list, at which stage
    AclBinds,
    /// Hits of rules
    AclCounters,
    /// Ranges of ports that rules share (table memory)
    AclRanges,
    /// Token buckets of rules
    Policers,
    /// Mirror sessions
    Mirrors,
    /// Link aggregation groups and their members (table memory)
    Lags,
    /// Storm control by port and kind (table memory)
    Storms,
    /// Sets of ports that addresses of flow ports go to (table memory)
    PortSets,
    /// What flooding cost: references and tag changes instead of copies
    Replication,
    /// Addresses that the chip has learned, and those that found no room
    Learning,
    /// Queues by port and class: packets, tail drops, most that ever waited; the crossbar
    Queues,
}

/// What `explain` can explain.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExplainKind {
    /// A prefix, or the route that an address takes
    Route,
    /// An FDB entry
    Mac,
    /// A host entry
    #[value(alias = "neighbor", alias = "neigh")]
    Neighbour,
    /// A multicast group: IP or MAC address
    Group,
}

/// As it is written on the command line, and in the API's paths.
pub fn name(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |v| v.get_name().to_owned())
}

/// `tandem trace`
#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("packet").required(true).args(["hex", "pcap", "icmp", "udp", "tcp"])))]
pub struct Trace {
    /// Where the frame comes in: swp1
    pub port: String,
    /// The frame, in hexadecimal; blanks and colons are ignored
    pub hex: Option<String>,
    /// The first frame of a capture
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// An echo request
    #[arg(long, num_args = 2, value_names = ["SRC", "DST"])]
    pub icmp: Option<Vec<String>>,
    /// A UDP datagram; an address may carry a port: 10.0.0.1:53, [2001:db8::1]:53
    #[arg(long, num_args = 2, value_names = ["SRC", "DST"])]
    pub udp: Option<Vec<String>>,
    /// A TCP SYN
    #[arg(long, num_args = 2, value_names = ["SRC", "DST"])]
    pub tcp: Option<Vec<String>>,
    /// Destination MAC; by default the port's own, which means: route it
    #[arg(long, value_name = "MAC")]
    pub dmac: Option<String>,
    /// Source MAC
    #[arg(long, value_name = "MAC", default_value = "02:00:00:00:00:01")]
    pub smac: String,
    /// Tag it
    #[arg(long, value_name = "VID", value_parser = clap::value_parser!(u16).range(0..4095))]
    pub vlan: Option<u16>,
    /// TTL or hop limit
    #[arg(long, default_value_t = 64, value_name = "N")]
    pub ttl: u8,
    /// Bytes of payload
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = clap::value_parser!(u16).range(0..9000))]
    pub size: u16,
}

/// `tandem batch`
#[derive(Args, Debug)]
pub struct Batch {
    /// Lines as for `ip -batch`, only `route add …`; `-` for standard input
    pub file: PathBuf,
    /// The chip, as `devlink dev` names it, where there are several
    #[arg(long, value_name = "BUS/NAME")]
    pub device: Option<String>,
}

/// `tandem capture`
#[derive(Args, Debug)]
pub struct Capture {
    /// Which port: swp1
    pub port: String,
    /// arp, ip, ip6, icmp, icmp6, tcp, udp, host ADDRESS, port N; joined by `and`
    pub filter: Vec<String>,
    /// Write there instead of to standard output
    #[arg(short = 'w', long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Stop after so many packets
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
}

/// `tandem port`
#[derive(Subcommand, Debug)]
pub enum Port {
    /// Give its wire a speed, so that its queues fill; 0: as fast as the cable
    Limit {
        /// Which port: swp1
        port: String,
        /// Mbit/s, preamble and gap included
        mbps: u32,
    },
    /// Make several ports of one: swp1s0, swp1s1, …; its neighbours are disabled. What was configured on these is gone
    Split {
        /// Which port: swp1
        port: String,
        /// 2 or 4, as its cage can
        parts: u16,
    },
    /// Make one port of the parts again
    Unsplit {
        /// Which port: swp1
        port: String,
    },
    /// Limit what it may bring into a bridge, in packets a second; kept over restarts of either daemon
    #[command(group(clap::ArgGroup::new("kind").required(true).multiple(true).args(["broadcast", "multicast", "unknown_unicast"])))]
    Storm {
        /// Which port: swp1
        port: String,
        /// Broadcast: packets a second, or off
        #[arg(long, value_name = "PPS", value_parser = pps)]
        broadcast: Option<u64>,
        /// Multicast other than broadcast
        #[arg(long, value_name = "PPS", value_parser = pps)]
        multicast: Option<u64>,
        /// Unicast that no FDB entry knows
        #[arg(long, value_name = "PPS", value_parser = pps)]
        unknown_unicast: Option<u64>,
    },
}

/// Packets a second; 0 stands for no limit.
fn pps(text: &str) -> Result<u64, String> {
    match (text, text.parse::<u32>()) {
        ("off", _) => Ok(0),
        (_, Ok(n)) if n > 0 => Ok(u64::from(n)),
        _ => Err(format!("packets a second up to {}, or off", u32::MAX)),
    }
}

/// `tandem fault`
#[derive(Subcommand, Debug)]
pub enum Fault {
    /// Let a write fail
    Fail {
        /// The how-manieth from now on
        #[arg(long, default_value_t = 1, value_name = "N")]
        nth: u64,
        /// How often; 0: from then on always
        #[arg(long, default_value_t = 1, value_name = "N")]
        count: u64,
        /// Only writes of this class: port, vlan, member, fdb, vrf, rif, neigh, nexthop, nhg, route, trap, lag, mdb,
        /// acl-table, acl-entry, acl-bind, acl-counter, policer, mirror, storm
        #[arg(long, value_name = "CLASS")]
        cls: Option<String>,
    },
    /// Let every insert into a table fail
    Table {
        /// A pool's name, as `show resources` has it
        table: String,
    },
    /// Let completions come late
    Delay {
        /// By so many milliseconds
        ms: u64,
    },
    /// Lose a completion
    Drop {
        /// The how-manieth from now on
        #[arg(long, default_value_t = 1, value_name = "N")]
        nth: u64,
    },
    /// Give a completion twice
    Duplicate {
        /// The how-manieth from now on
        #[arg(long, default_value_t = 1, value_name = "N")]
        nth: u64,
    },
    /// Take a port's link down and up again, whatever it is cabled to
    Flap {
        /// The port
        port: String,
        /// How often
        #[arg(long, default_value_t = 1, value_name = "N")]
        count: u32,
        /// How long it is down, and up before it goes down again
        #[arg(long, default_value_t = 100, value_name = "MILLISECONDS")]
        ms: u64,
    },
    /// Show the driver an index that can't be in a ring: its session ends, as with a chip that has gone mad
    Corrupt {
        /// completion, event or rx
        ring: String,
    },
    /// Change one entry of the table memory behind everybody's back
    Flip {
        /// fdb, routes, neighbours or nexthops
        table: String,
        /// The entry; by default any one
        key: Option<String>,
    },
    /// Give untagged packets a tag on their way to the driver that was not on the wire
    StrayTag {
        /// Its VLAN
        vid: u16,
    },
    /// Reset the chip: tables empty, driver detached
    Reset,
    /// What is armed
    List,
    /// No faults any more
    Clear,
}
