//! What the API's answers look like. Keys are stable: they are added, never renamed; `docs/api.md`
//! describes them. A reader takes what is missing as zero, empty or null.
//!
//! MAC addresses are `aa:bb:cc:dd:ee:ff`, prefixes `10.0.0.0/8`, times seconds unless the key says
//! otherwise, families `ipv4` and `ipv6`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// An answer with a 4xx or 5xx status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// One line: what was wanted, what is there, what to do.
    pub error: String,
}

/// Every list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Items<T, C = u64> {
    /// The rows.
    pub items: Vec<T>,
    /// Paged lists: `cursor` of the next request; null at the end.
    #[serde(default)]
    pub next: Option<C>,
}

impl<T> From<Vec<T>> for Items<T> {
    fn from(items: Vec<T>) -> Self {
        Items { items, next: None }
    }
}

impl<T> Default for Items<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

/// Query of paged lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Page {
    /// Where to go on; 0 first.
    pub cursor: u64,
    /// Rows at most; 0: the daemon's own limit.
    pub limit: u32,
}

/// `GET /v1/status` of either daemon; a part that a daemon doesn't have is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// `asicd` or `switchd`.
    pub daemon: String,
    /// Version of the program.
    pub version: String,
    /// Instance name.
    pub instance: String,
    /// Process.
    pub pid: u32,
    /// Seconds since it started.
    pub uptime_s: f64,
    /// Chip profile.
    pub profile: String,
    /// `ready`, `attaching`, `attached` or `failed`: the device's state as this daemon sees it.
    pub device: String,
    /// Epoch of the attach.
    pub epoch: u32,
    /// Number of front-panel ports.
    pub ports: u32,
    /// asicd: who drives the chip.
    pub driver: Option<DriverStatus>,
    /// asicd: how long flow ports forward without a driver; null where that has no end.
    pub deadline: Option<DeadlineStatus>,
    /// switchd: what the control plane does.
    pub sync: Option<SyncStatus>,
    /// One line each: what a person should know.
    pub warnings: Vec<String>,
}

/// When flow ports stop to forward by entries that nobody looks after.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeadlineStatus {
    /// Seconds without a sign of a driver.
    pub after_s: f64,
    /// The driver that was attached last; null: none was.
    pub driver: Option<String>,
    /// Seconds since its last sign: an attach, a command, a packet, its end.
    pub silent_s: f64,
    /// Seconds until flow ports trap; null: there are none, or they do.
    pub traps_in_s: Option<f64>,
    /// Seconds since flow ports trap for it; null: they don't.
    pub trapping_s: Option<f64>,
}

/// Who drives the chip.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DriverStatus {
    /// What it calls itself.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Seconds since it attached.
    pub attached_s: f64,
}

/// Where the control plane stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncStatus {
    /// `trap` or `fail`: what happens to what doesn't fit.
    pub policy: String,
    /// `starting`, `resync` or `steady`.
    pub phase: String,
    /// Commands posted and not answered.
    pub in_flight: u64,
    /// Objects whose desired state is not in hardware yet.
    pub pending: u64,
    /// Objects that are not in hardware, with a reason.
    pub failed: u64,
    /// Resyncs since the start.
    pub resyncs: u64,
}

/// Packets and bytes of a port. Further counters by name in `detail`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortCounters {
    /// Frames that came in.
    pub rx_packets: u64,
    /// Their bytes, without FCS.
    pub rx_bytes: u64,
    /// Frames that left.
    pub tx_packets: u64,
    /// Their bytes, without FCS.
    pub tx_bytes: u64,
    /// Frames that came in and were dropped, whatever the reason.
    pub rx_dropped: u64,
    /// Frames that should have left and could not.
    pub tx_dropped: u64,
    /// Frames that came in to the CPU.
    pub rx_cpu_packets: u64,
    /// Frames from the CPU that left here.
    pub tx_cpu_packets: u64,
    /// Further counters.
    pub detail: BTreeMap<String, u64>,
}

/// A row of `GET /v1/ports`; asicd and switchd fill their own parts, the CLI merges by `port`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Port {
    /// `swp1`.
    pub name: String,
    /// Number in the ABI, from 1.
    pub port: u16,
    /// asicd: what it is cabled to: `af_packet:eth3`, `af_xdp:eth3`, `tap:x`, `pcap:IN,OUT`; empty: nothing.
    pub attachment: String,
    /// asicd: why it is another kind of socket than the one asked for; empty: it is that one.
    pub note: String,
    /// asicd: carrier.
    pub link: bool,
    /// asicd: speed, 0 = unknown.
    pub speed_mbps: u32,
    /// asicd: what the chip's port can do.
    pub max_speed_mbps: u32,
    /// asicd: counters of the chip.
    pub counters: Option<PortCounters>,
    /// switchd: the netdev.
    pub netdev: String,
    /// switchd: its index.
    pub ifindex: u32,
    /// switchd: its address.
    pub mac: String,
    /// switchd: bytes of L3 packet.
    pub mtu: u32,
    /// switchd: administratively up.
    pub admin_up: bool,
    /// switchd: name of the bridge it is in, or empty.
    pub bridge: String,
    /// switchd: `offloaded` or `trap`.
    pub state: State,
    /// switchd: why it is `trap`.
    pub reason: Option<String>,
}

/// One physical pool: `used + in_flight + committed + free == size`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resource {
    /// `exact-match`, `ipv4-lpm`, …
    pub name: String,
    /// What a slot is.
    pub unit: String,
    /// Slots.
    pub size: u32,
    /// Slots of objects that are written.
    pub used: u32,
    /// Slots of commands accepted and not completed.
    pub in_flight: u32,
    /// Slots of leases.
    pub committed: u32,
    /// Slots of nobody.
    pub free: u32,
    /// Largest `used + in_flight` since reset.
    pub high_watermark: u32,
}

/// What an object of a class takes, and how many more fit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceClass {
    /// `mac`, `ipv4-host`, `ipv4-route`, …
    pub cls: String,
    /// `ipv4`, `ipv6`, or `any`.
    pub family: String,
    /// Name of the pool it lives in.
    pub pool: String,
    /// Slots of one object.
    pub cost: u32,
    /// Objects that fit whatever their keys are.
    pub free_guaranteed: u32,
    /// Objects that fit if keys spread as usual.
    pub free_expected: u32,
}

/// `GET /v1/resources`: one snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// The pools.
    pub items: Vec<Resource>,
    /// The classes.
    pub classes: Vec<ResourceClass>,
}

/// A row of `GET /v1/traps`: one reason for a packet to come to the CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trap {
    /// `arp`, `lpm-miss`, …
    pub reason: String,
    /// `link`, `control`, `discovery`, `unresolved`, `data` or `flow`.
    pub class: String,
    /// Packets delivered to the CPU.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that the reason's policer, the class's policer or a full queue dropped.
    pub dropped: u64,
    /// Packets per second of the class's policer that are the reason's whatever the others do; 0 = the class has none.
    pub guaranteed_pps: u32,
    /// The most that the reason gets; 0 = what its class's policer lets pass.
    pub rate_pps: u32,
    /// The burst of that, packets.
    pub burst: u32,
}

/// One queue to the CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrapClass {
    /// `link`, `control`, `discovery`, `unresolved`, `data` or `flow`.
    pub class: String,
    /// Packets that wait.
    pub queued: u32,
    /// How many may wait.
    pub queue_size: u32,
    /// Packets delivered.
    pub packets: u64,
    /// Packets that the class's policer dropped.
    pub policer_dropped: u64,
    /// Packets that found the queue or the RX ring's share full.
    pub queue_dropped: u64,
    /// The class's policer; 0 = none.
    pub rate_pps: u32,
    /// Its burst, packets.
    pub burst: u32,
}

/// `GET /v1/traps`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traps {
    /// By reason.
    pub items: Vec<Trap>,
    /// By queue, highest priority first.
    pub classes: Vec<TrapClass>,
}

/// A row of `GET /v1/drops`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Drop {
    /// Name of the reason.
    pub reason: String,
    /// Stage of the pipeline.
    pub stage: String,
    /// Packets.
    pub packets: u64,
}

/// Where an object is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The chip does it.
    Offloaded,
    /// Its packets go to the CPU.
    Trap,
    /// It did not fit, or the chip refused it.
    Failed,
    /// It is on its way.
    Pending,
    /// Nobody has it.
    Absent,
    /// The kernel driver is taking it away.
    Leaving,
    /// The kernel driver says something that is not known here.
    Unknown,
    /// Another daemon says it.
    #[default]
    #[serde(rename = "")]
    Unsaid,
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// A row of switchd's `GET /v1/routes`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Route {
    /// `ipv4` or `ipv6`.
    pub family: String,
    /// VRF, 0 = the default one.
    pub vrf: u16,
    /// `13.0.0.0/24`.
    pub prefix: String,
    /// The kernel's table.
    pub table: u32,
    /// The kernel's metric.
    pub metric: u32,
    /// What the kernel wants: `via 10.0.0.1 dev swp1`, `connected`, `local`, `blackhole`, …
    pub desired: String,
    /// What the chip has: `forward`, `trap`, `drop`, or `none`.
    pub installed: String,
    /// `offloaded`, `trap`, `failed` or `pending`.
    pub state: State,
    /// Why it isn't offloaded.
    pub reason: Option<String>,
    /// Who wanted it: `netlink`.
    pub source: String,
}

/// A row of switchd's `GET /v1/neighbours`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Neighbour {
    /// `ipv4` or `ipv6`.
    pub family: String,
    /// The address.
    pub address: String,
    /// The netdev.
    pub dev: String,
    /// Its MAC, or empty while it isn't resolved.
    pub mac: String,
    /// What its source calls it: `reachable`, `stale`, …
    pub source_state: String,
    /// The same, under the name that it had first.
    pub kernel_state: String,
    /// `offloaded`, `trap`, `failed` or `pending`.
    pub state: State,
    /// Why it isn't offloaded.
    pub reason: Option<String>,
}

/// A row of switchd's `GET /v1/acl`: a filter of traffic control at a port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AclRule {
    /// The netdev.
    pub dev: String,
    /// `ingress` or `egress`.
    pub hook: String,
    /// Preference: the lower is tried first.
    pub pref: u16,
    /// Number within the preference.
    pub handle: u32,
    /// What it looks at and does.
    pub rule: String,
    /// Frames that the chip has dealt with by this rule; null: it does not count them.
    pub packets: Option<u64>,
    /// `offloaded`, `trap`, `failed` or `pending`.
    pub state: State,
    /// Why it isn't offloaded.
    pub reason: Option<String>,
}

/// A row of switchd's `GET /v1/fdb`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fdb {
    /// The address.
    pub mac: String,
    /// The bridge.
    pub bridge: String,
    /// Forwarding domain in the chip.
    pub fid: u16,
    /// The port or other netdev behind which it is.
    pub dev: String,
    /// `static`, `learned`, `local`.
    pub kind: String,
    /// `offloaded`, `trap`, `failed` or `pending`.
    pub state: State,
    /// Why it isn't offloaded.
    pub reason: Option<String>,
}

/// A row of switchd's `GET /v1/mdb`: a multicast group, or `routers`, the ports to multicast routers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Group {
    /// IP address, MAC address, or `routers`.
    pub group: String,
    /// The sender, if only one counts.
    pub source: Option<String>,
    /// The bridge.
    pub bridge: String,
    /// VLAN, 0 without filtering.
    pub vlan: u16,
    /// Devices behind which members are; the bridge itself among them.
    pub members: Vec<String>,
    /// `offloaded`, `trap`, `failed` or `pending`.
    pub state: State,
    /// Why it isn't offloaded.
    pub reason: Option<String>,
}

/// `GET /v1/explain/…?key=` of switchd.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explain {
    /// `route`, `mac`, `neighbour` or `group`.
    pub kind: String,
    /// As asked.
    pub key: String,
    /// The object that answers for the key, as text.
    pub object: String,
    /// Packets of this key are forwarded by the chip.
    pub in_hardware: bool,
    /// `offloaded`, `trap`, `failed`, `pending` or `absent`.
    pub state: State,
    /// Why it isn't in hardware.
    pub reason: Option<String>,
    /// Seconds since it is in this state.
    pub since_s: Option<f64>,
    /// What it takes.
    pub cost: Vec<Cost>,
    /// Packets that took the slow path because of it, if the chip counts them.
    pub slow_path_packets: Option<u64>,
    /// What it stands on, and what suffers with it: one line each.
    pub details: Vec<String>,
}

/// Slots of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// The pool.
    pub pool: String,
    /// Slots.
    pub slots: u32,
}

/// Body of `POST /v1/sync`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncRequest {
    /// How long to wait; 0: the daemon's own limit.
    pub timeout_ms: u64,
}

/// Answer of `POST /v1/sync`; not in time is status 504.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncAnswer {
    /// How long it took.
    pub waited_ms: u64,
}

/// Body of `POST /v1/audit`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditRequest {
    /// Differences may go away within this time.
    pub wait_s: f64,
}

/// Answer of `GET /v1/audit`: audits under way go on as long as `steps` does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditProgress {
    /// Counted since the daemon's start.
    pub steps: u64,
    /// What is done, or was last.
    pub doing: String,
}

/// One difference that an audit found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Difference {
    /// `route`, `neighbour`, `fdb`, …
    pub kind: String,
    /// Its key.
    pub key: String,
    /// Between which two: `kernel-store` (what a source says, or what switchd has set at the kernel itself) or `store-asic`.
    pub between: String,
    /// What the first has.
    pub wanted: String,
    /// What the second has.
    pub found: String,
}

/// Answer of `POST /v1/audit`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditAnswer {
    /// The differences; none is good.
    pub items: Vec<Difference>,
    /// Objects compared, by kind.
    pub compared: BTreeMap<String, u64>,
    /// Things that exist and can't be seen or followed.
    pub warnings: Vec<String>,
}

/// Body of `POST /v1/trace`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceRequest {
    /// Ingress port: `swp1`.
    pub port: String,
    /// The frame from its destination MAC on, hexadecimal.
    pub frame: String,
}

/// One step of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceStep {
    /// Stage of the pipeline.
    pub stage: String,
    /// What it found and decided.
    pub text: String,
}

/// Answer of `POST /v1/trace`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceAnswer {
    /// In order.
    pub items: Vec<TraceStep>,
    /// One line: what becomes of the frame.
    pub verdict: String,
    /// Names of the ports it leaves by.
    pub egress: Vec<String>,
    /// As what it leaves there, one for each, hexadecimal.
    pub frames: Vec<String>,
    /// Why the CPU gets it, or a copy; empty when it does not.
    pub cpu: Vec<String>,
}
